"""The checks of the offloads: whatever the kernel cuts and joins, every byte arrives as it was sent."""

from offload_checks.plan import planned, selected_by

__all__ = ["planned", "selected_by"]
