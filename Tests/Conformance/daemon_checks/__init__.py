"""The checks of a daemon as a program: its socket, its life, `wg` and wg-quick, and bugs that others reported.

Importing this package fills `registry`.
"""

from daemon_checks import (  # noqa: F401
    ending, endurance, environment, link, routing, sessions, start, transfers, uapi_configuration,
    uapi_protocol, wg_quick, wg_tool, workers)
from daemon_checks.registry import registry

__all__ = ["registry"]
