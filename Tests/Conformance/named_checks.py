"""A registry whose checks have identifiers such as `U4` or `D2.socket`, in groups by what stands before the dot."""

import re
from typing import Callable

from checks import Check, Registry


class NamedChecks:
    """The checks of one suite, by identifier, with about how long each of them waits."""

    def __init__(self):
        self._registry = Registry()
        self._lasting: "dict[str, int]" = {}

    def check(
        self, identifier: str, title: str, *, lasts: int = 0, exclusive: bool = False
    ) -> Callable[[Callable], Callable]:
        """Decorator that enters a check; `lasts` is about how long it must wait for protocol time, in seconds.

        An exclusive check loads the processors, and never runs beside another one."""
        self._lasting[identifier] = lasts
        return self._registry.check(identifier, title, judges=(), exclusive=exclusive)

    def lasting(self, one: Check) -> int:
        """About how many seconds of protocol time the check needs."""
        return self._lasting[one.number]

    def in_order(self) -> "list[Check]":
        """All checks, sorted as a person would: U4 before U10."""
        def key(one: Check):
            return [(int(part), "") if part.isdigit() else (-1, part) for part in re.findall(r"\d+|\D+", one.number)]

        return sorted(self._registry.checks, key=key)

    @staticmethod
    def selected_by(one: Check, words: "set[str]") -> bool:
        """Whether a word names the check (`U4.values`) or its whole group (`U4`)."""
        return one.number in words or one.number.split(".")[0] in words
