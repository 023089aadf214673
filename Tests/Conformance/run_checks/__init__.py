"""The checks of `sluice run`. Importing this package fills `registry`."""

from run_checks import ends, metrics, names, paths, proxy, quick, reloads, status, tunnels  # noqa: F401
from run_checks.registry import registry

__all__ = ["registry"]
