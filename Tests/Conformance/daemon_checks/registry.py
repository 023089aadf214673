"""The registry that all checks of the daemon enter themselves in."""

from named_checks import NamedChecks

registry = NamedChecks()
check, lasting, in_order, selected_by = registry.check, registry.lasting, registry.in_order, registry.selected_by
