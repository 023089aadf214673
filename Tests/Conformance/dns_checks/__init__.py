"""The checks of the DNS proxy. Importing this package fills `registry`."""

from dns_checks import (  # noqa: F401
    blocking, bootstrap, bursts, cache, client_subnets, connections, dnssec, edns, failover, flushing, garbage,
    headers, host_files, https, https_answers, https_ends, https_freshness, https_streams, local_records,
    malformed, metrics, mutations, name_policy, names, negative, path_changes, plain, plain_failures, plain_messages,
    prefetch, query_log, questions, real_clients, real_servers, reloads, reports, rewriting, secure_https,
    secure_listeners, secure_programs, secure_reload, secure_resolved, service, sizes, stale, strategies,
    stream_clients, stream_ends, synthesis, tls, tls_sessions, translation, trust, trusted,
)
from dns_checks.registry import registry

__all__ = ["registry"]
