"""Which checks a run consists of: a set that covers every pair of values, or the whole product."""

import itertools
from dataclasses import replace
from typing import Callable, Iterator

from checks import Check
from offload_checks import changes, datagrams, transfers
from offload_checks.switches import COMBINATIONS, Layout, name_of

_STREAMS = (1, 4, 50)

#: 8,920 fits an underlay of 9,000; over the others its messages go in fragments, as 1,420 does over 1,280.
_LAYOUTS = [
    Layout(1420, 1500), Layout(1420, 1280), Layout(1280, 1500), Layout(1280, 1280), Layout(8920, 9000),
    Layout(8920, 1500), Layout(8920, 1280)]

_SMALL_TRANSFER = transfers.MEGABYTE


def planned(size: int, full: bool) -> "list[Check]":
    """The checks in order; `size` is what each transfer moves each way, in bytes."""
    return [*_transfers(size, full), *_ends(size, full), *_of_each_combination(full)]


def selected_by(one: Check, words: "set[str]") -> bool:
    """Whether a word names the check (`segments.tun`) or begins its identifier at a point (`transfer.none`)."""
    return any(one.number == word or one.number.startswith(word + ".") for word in words)


def _check(identifier: str, title: str, body: Callable, *arguments) -> Check:
    return Check(identifier, title, lambda testbed: body(testbed, *arguments), frozenset(), False)


def _transfers(size: int, full: bool) -> "Iterator[Check]":
    """Of each combination and layout one transfer, or all.

    The one is chosen so that each combination and each layout meets every number of streams over both families.
    """
    for (number, combination), (row, layout) in itertools.product(enumerate(COMBINATIONS), enumerate(_LAYOUTS)):
        cells = [(_STREAMS[(number + row) % 3], bool((number // 3 + row) % 2))]
        if full:
            cells = list(itertools.product(_STREAMS, (False, True)))
        for streams, over_ipv6 in cells:
            outer = replace(layout, over_ipv6=over_ipv6)
            word = name_of(combination)
            yield _check(
                f"transfer.{word}.{outer.identifier}.{streams}",
                f"{_streams(streams)} through {outer.title} with {word}",
                transfers.transfer, combination, combination, outer, streams, size)


def _ends(size: int, full: bool) -> "Iterator[Check]":
    """Different switches at the two ends: each combination with its opposite and one more, or with all others."""
    for number, first in enumerate(COMBINATIONS):
        for other, second in enumerate(COMBINATIONS):
            if number != other and (full or number ^ other == 7 or other == (number + 3) % 8):
                yield _check(
                    f"ends.{name_of(first)}.{name_of(second)}",
                    f"{name_of(first)} at one end, {name_of(second)} at the other",
                    transfers.transfer, first, second, Layout(over_ipv6=bool(number % 2)), 4, size // 2)


def _of_each_combination(full: bool) -> "Iterator[Check]":
    for number, combination in enumerate(COMBINATIONS):
        word = name_of(combination)
        yield _check(
            f"segments.{word}", f"segments of 88 and 200 bytes, more than 128 to a super-packet, with {word}",
            transfers.small_segments, combination, _SMALL_TRANSFER)
        for over_ipv6 in (False, True) if full else (bool(number % 2),):
            family = "IPv6" if over_ipv6 else "IPv4"
            for identifier, title, body in (
                ("datagrams", "UDP payloads of 1 to 1,400 bytes and their order", datagrams.every_size),
                ("trains", "UDP sent with UDP_SEGMENT inside", datagrams.segmented),
                ("changes", "transfers that go on while the underlay changes", changes.change_underlay),
            ):
                yield _check(f"{identifier}.{word}.{family}", f"{title} over {family} with {word}",
                             body, combination, over_ipv6)


def _streams(count: int) -> str:
    return "one stream" if count == 1 else f"{count} streams"
