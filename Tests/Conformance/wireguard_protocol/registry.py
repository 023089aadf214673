"""The checks of the protocol suite, by the identifiers of the protocol checklist."""

from dataclasses import dataclass
from typing import Callable

from waiting import expect as require  # the name that reads best in checks

__all__ = ["Check", "check", "checks", "require"]


@dataclass(frozen=True)
class Check:
    """One proof of one row; several may share an identifier."""

    identifier: str
    title: str
    body: Callable  # takes a Rig
    loud: bool  # floods: runs beside no other check
    seconds: int  # how long it waits for protocol timers; 0: a few seconds at most
    options: dict  # how its rig is built

    @property
    def is_long(self):
        """Whether it spends its time waiting, so that any number of its kind can run side by side."""
        return self.seconds > 0


checks: "list[Check]" = []


def check(identifier: str, title: str, *, seconds: int = 0, loud: bool = False, **options) -> Callable:
    """Decorator that enters a function; `options` go to the Rig."""

    def enter(body: Callable) -> Callable:
        checks.append(Check(identifier, title, body, loud, seconds, options))
        return body

    return enter
