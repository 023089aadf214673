"""How long it is kept that there is nothing (RFC 2308, RFC 6604)."""

from typing import Callable

import dns_wire
from dns_checks.registry import check
from dns_checks.shape import ages, expect_code, expect_negative, minimum_of
from dns_testbed import TRANSPORTS, DNSTestbed
from dns_upstream import Received, messages
from dns_wire import NOERROR, NXDOMAIN
from waiting import expect, expect_equal, pause


def _negative(ttl: int, minimum: int) -> "Callable[[Received], bytes]":
    """Names that begin with `absent` do not exist, others have nothing of the type."""
    return lambda received: messages.answer(
        received.query, authority=[messages.start_of_authority(ttl, minimum, owner="example")],
        code=NXDOMAIN if received.name.startswith("absent") else NOERROR)


NEGATIVE = (("absent.example", NXDOMAIN), ("nodata.example", NOERROR))


@check("F4", "that there is nothing is kept, and the SOA record's TTL counts down", lasts=3)
def negative(testbed: DNSTestbed) -> None:
    testbed.upstream.script = _negative(400, 300)
    testbed.run()
    for name, code in NEGATIVE:
        first, second, age = ages(lambda: expect_negative(testbed.ask(name), code), 1.2)
        # RFC 2308 §3: the TTL that is given out is the smaller of both.
        expect_equal(minimum_of(first)[0], 300, "the SOA record's TTL")
        expect(300 - minimum_of(second)[0] in age, f"the SOA record's TTL is {minimum_of(second)[0]} after {age}")
        testbed.expect_asked(name, 1, "it was kept")


@check("F4.end", "that there is nothing is kept no longer than the SOA record's TTL and its MINIMUM say", lasts=3)
def negative_ending(testbed: DNSTestbed) -> None:
    testbed.run()
    for number, (ttl, minimum) in enumerate(((1, 300), (300, 1), (0, 300), (300, 0))):
        testbed.upstream.script = _negative(ttl, minimum)
        for word, code in NEGATIVE:
            expect_negative(testbed.ask(f"{word[:6]}-{number}.example"), code)
    pause(1.3)
    for number in range(4):
        for word, code in NEGATIVE:
            expect_negative(testbed.ask(f"{word[:6]}-{number}.example"), code)
            testbed.expect_asked(f"{word[:6]}-{number}.example", 2, f"its time was over (case {number})")


@check("F4.cap", "that there is nothing is kept for three hours at most")
def negative_cap(testbed: DNSTestbed) -> None:
    testbed.upstream.script = _negative(86400, 86400)
    testbed.run()
    for name, code in NEGATIVE:
        for transport in TRANSPORTS:
            ttl, _ = minimum_of(expect_negative(testbed.ask(name, transport=transport), code))
            expect(ttl <= 10800, f"the SOA record's TTL is {ttl}")


@check("F5", "that there is nothing is not kept without an SOA record")
def without_soa(testbed: DNSTestbed) -> None:
    testbed.upstream.script = lambda received: messages.answer(
        received.query, code=NXDOMAIN if received.name.startswith("absent") else NOERROR)
    testbed.run()
    for name, code in NEGATIVE:
        for _ in range(2):
            expect_code(testbed.ask(name), code)
        # A few seconds would be allowed; ours is not at all.
        testbed.expect_asked(name, 2, "there was no SOA record")


@check("F6", "an alias of what does not exist: the code of the last name, kept for the shortest time", lasts=2)
def alias_of_nothing(testbed: DNSTestbed) -> None:
    times = {"chain": (1, 300), "end": (300, 1), "long": (300, 300)}

    def script(received: Received) -> bytes:
        word, kind = received.name.split(".")[0].split("-")
        chain, end = times[word]
        return messages.answer(received.query, [messages.alias("gone.other", chain)],
                               authority=[messages.start_of_authority(end, 300, owner="other")],
                               code=NXDOMAIN if kind == "absent" else NOERROR)

    testbed.upstream.script = script
    testbed.run()
    kinds = {"absent": NXDOMAIN, "empty": NOERROR}
    names = {f"{word}-{kind}.example": code for word in times for kind, code in kinds.items()}
    for time_of in ("first", "second"):
        for name, code in names.items():
            answer = expect_code(testbed.ask(name), code, what=f"the {time_of} answer to {name}")
            expect_equal([dns_wire.text(one.plain) for one in answer.answers], ["gone.other"], "the alias")
            expect_equal([dns_wire.text(one.owner) for one in answer.authority], ["other"],
                         "the zone of the SOA record")
        if time_of == "first":
            pause(1.3)
    for name in names:
        testbed.expect_asked(name, 1 if name.startswith("long") else 2, "the shorter time decides")
