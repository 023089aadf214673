"""The checks of the DNS proxy. Importing this package fills `registry`."""

from dns_checks import (  # noqa: F401
    blocking, bootstrap, bursts, cache, clients, dnssec, edns, failover, headers, https, https_ends, malformed,
    mutations, names, plain, real_clients, real_servers, reloads, reports, service, sizes, tls, trust,
)
from dns_checks.registry import registry

__all__ = ["registry"]
