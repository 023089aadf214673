"""The registry that all checks of the daemon enter themselves in, by an identifier such as `U4` or `D2.socket`."""

import re

from checks import Check, Registry

registry = Registry()

#: What a check costs in seconds of waiting, where that is long: the longest start first.
_lasting: "dict[str, int]" = {}


def check(identifier: str, title: str, *, lasts: int = 0):
    """Decorator that enters a check; `lasts` is about how long it must wait for protocol time, in seconds."""
    _lasting[identifier] = lasts
    return registry.check(identifier, title, judges=())


def lasting(one: Check) -> int:
    """About how many seconds of protocol time the check needs."""
    return _lasting[one.number]


def in_order() -> "list[Check]":
    """All checks, sorted as a person would: U4 before U10."""
    def key(one: Check):
        return [(int(part), "") if part.isdigit() else (-1, part) for part in re.findall(r"\d+|\D+", one.number)]

    return sorted(registry.checks, key=key)


def selected_by(one: Check, words: "set[str]") -> bool:
    """Whether a word names the check (`U4.values`) or its whole group (`U4`)."""
    return one.number in words or one.number.split(".")[0] in words
