"""Compares WireGuard daemons: the same program on both ends of a tunnel between two network namespaces."""
