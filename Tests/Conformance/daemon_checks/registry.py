"""The registry that all checks of the daemon enter themselves in."""

from named_checks import NamedChecks

registry = NamedChecks()
check = registry.check
