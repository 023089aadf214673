"""Compares DNS proxies: the same queries, the same upstream, the programs in turn."""
