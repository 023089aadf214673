"""The checks of the DNS proxy. Importing this package fills `registry`."""

from dns_checks import headers  # noqa: F401
from dns_checks.registry import registry

__all__ = ["registry"]
