"""The registry of a suite's checks."""

from dataclasses import dataclass
from typing import Callable, Iterable


@dataclass(frozen=True)
class Check:
    """One numbered requirement and the function that proves it."""

    number: int
    title: str
    body: Callable  # takes what the suite hands to each of its checks, a `Testbed` as a rule
    judges: "frozenset[int]"  # ends (1, 2) whose daemon the check judges; empty: the check uses only end 1
    exclusive: bool  # loads the processors: never runs beside another check

    @property
    def has_two_ends(self) -> bool:
        """Whether the check runs a pair of daemons, so that a mixed pair makes sense."""
        return bool(self.judges)


class Registry:
    """The checks of one suite, by number."""

    def __init__(self):
        self._checks: "dict[int, Check]" = {}

    def check(
        self, number: int, title: str, *, judges: Iterable[int] = (1, 2), exclusive: bool = False
    ) -> Callable[[Callable], Callable]:
        """Decorator that enters a function under a number of its own.

        `judges` names the ends whose daemon the check judges: in a mixed pair the program under test plays each of
        them in turn. Empty for a check of one daemon alone.
        """

        def enter(body: Callable) -> Callable:
            if number in self._checks:
                raise ValueError(f"check {number} is entered twice")
            self._checks[number] = Check(number, title, body, frozenset(judges), exclusive)
            return body

        return enter

    @property
    def checks(self) -> "list[Check]":
        """All checks in the order of their numbers."""
        return [self._checks[number] for number in sorted(self._checks)]
