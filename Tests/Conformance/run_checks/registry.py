"""The registry that all checks of `sluice run` enter themselves in."""

from named_checks import NamedChecks

registry = NamedChecks()
check = registry.check
