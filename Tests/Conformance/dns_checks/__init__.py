"""The checks of the DNS proxy. Importing this package fills `registry`."""

from dns_checks import (  # noqa: F401
    blocking, bursts, cache, clients, dnssec, edns, headers, malformed, names, real_clients, reports, sizes,
)
from dns_checks.registry import registry

__all__ = ["registry"]
