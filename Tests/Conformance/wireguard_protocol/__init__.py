"""Black-box checks of the WireGuard protocol against a scripted peer; one module per group of the checklist."""
