"""The checks of `sluice run`. Importing this package fills `registry`."""

from run_checks import (  # noqa: F401
    ends, metrics, names, paths, proxy, quick, reloads, resolver, status, tunnel_names, tunnels,
)
from run_checks.registry import registry

__all__ = ["registry"]
