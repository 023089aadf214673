"""The registry that all scenarios enter themselves in."""

from checks import Registry

registry = Registry()
check = registry.check
