"""Expectations and deadlines: how a check says what went wrong and how it waits for an event."""

import threading
import time
from typing import Callable, Optional, TypeVar

Value = TypeVar("Value")

# Set once when the whole run is asked to end; everything that waits notices it.
stop_requested = threading.Event()


class CheckFailure(Exception):
    """What a check raises when the program under test did not do what it must; the text is the reason printed."""


class Interrupted(Exception):
    """The run was asked to end before this check was finished: neither passed nor failed."""


def expect(condition: object, reason: str) -> None:
    """Fails the check with `reason` unless `condition` is true."""
    if not condition:
        raise CheckFailure(reason)


def expect_equal(actual: object, expected: object, what: str) -> None:
    """Fails the check unless both values are equal; the reason names them."""
    if actual != expected:
        raise CheckFailure(f"{what} is {actual!r}, expected {expected!r}")


def wait_until(
    condition: Callable[[], Optional[Value]],
    what: str,
    seconds: float = 5.0,
    interval: float = 0.02,
    detail: Optional[Callable[[], object]] = None,
) -> Value:
    """Polls `condition` until it returns something true and returns that; fails the check after `seconds`.

    `what` completes the sentence "... did not happen within N s"; `detail` tells then what there is instead.
    """
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() >= deadline:
            rest = f", but: {detail()}" if detail is not None else ""
            raise CheckFailure(f"{what}: did not happen within {seconds:g} s{rest}")
        pause(interval)


def pause(seconds: float) -> None:
    """Lets protocol time pass (a conntrack timeout, a period in which nothing may be sent); ends early with the run.

    Never a means to wait for an event: that is what `wait_until` is for.
    """
    if stop_requested.wait(seconds):
        raise Interrupted()
