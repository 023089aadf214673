"""The scenarios of the kernel's self-test, by topology. Importing this package fills `registry`."""

from wireguard_rows.registry import registry
from wireguard_rows import loopback_traffic, loopback_roaming, loopback_nesting  # noqa: F401
from wireguard_rows import translated, onion, policy_routing  # noqa: F401
from wireguard_rows import direct_source, direct_routes  # noqa: F401
from wireguard_rows import configuration_bulk, configuration_keys, lifecycle  # noqa: F401

__all__ = ["registry"]
