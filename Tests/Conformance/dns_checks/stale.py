"""Answers whose time is over, where no server answers, and the bounds of TTLs (RFC 8767, RFC 2181 §8)."""

import time

import dns_wire
from dns_checks.registry import check
from dns_checks.shape import expect_addresses, expect_code, expect_negative
from dns_testbed import TCP, DNSTestbed
from dns_upstream import messages, scripts
from dns_wire import NXDOMAIN, SERVFAIL
from waiting import expect, expect_equal, pause

#: Extended errors of RFC 8914 §4.4 and §4.20.
STALE, STALE_NEGATIVE = 3, 19
#: How long a client waits before it gets what is old (RFC 8767 §5).
CLIENT_TIMER = 1.8
EDNS = dns_wire.opt()


def _ask_old(testbed: DNSTestbed, name: str) -> "tuple[dns_wire.Message, float]":
    """Asks for what is kept and old; returns the answer, and how long it took."""
    started = time.monotonic()
    answer = testbed.ask(name, edns=EDNS, seconds=8)
    return answer, time.monotonic() - started


def _expect_stale(answer: dns_wire.Message, *addresses: str) -> None:
    expect_addresses(answer, *addresses, what="the old answer")
    expect(all(one.ttl <= 30 for one in answer.answers), f"an old answer may be kept for 30 s at most: {answer}")
    expect(STALE in answer.edns.errors, f"it does not say that it is old: {answer}")


@check("F8", "an old answer is given when the server is silent: after 1.8 s, with a short TTL, and marked", lasts=4)
def silent(testbed: DNSTestbed) -> None:
    testbed.upstream.script = scripts.by_name({"a.example": ["192.0.2.1"]}, ttl=1)
    testbed.run()
    expect_addresses(testbed.ask("a.example"), "192.0.2.1")
    pause(1.3)
    testbed.upstream.script = scripts.silence
    answer, taken = _ask_old(testbed, "a.example")
    _expect_stale(answer, "192.0.2.1")
    expect(CLIENT_TIMER - 0.3 < taken < CLIENT_TIMER + 1.5, f"it came after {taken:.2f} s, expected about 1.8 s")
    # What was never asked for has no old answer.
    expect_code(testbed.ask("b.example", seconds=8), SERVFAIL)


@check("F8.failed", "an old answer is given at once when the server fails, and the server is left alone then")
def failing(testbed: DNSTestbed) -> None:
    testbed.upstream.script = scripts.by_name({"a.example": ["192.0.2.1"]}, ttl=1)
    testbed.run()
    expect_addresses(testbed.ask("a.example"), "192.0.2.1")
    pause(1.3)
    testbed.upstream.script = lambda received: messages.answer(received.query, code=SERVFAIL)
    answer, taken = _ask_old(testbed, "a.example")
    _expect_stale(answer, "192.0.2.1")
    expect(taken < 1.0, f"it came after {taken:.2f} s, although the server said at once that it fails")
    asked = len(testbed.upstream.asked("a.example"))
    for _ in range(3):
        _expect_stale(_ask_old(testbed, "a.example")[0], "192.0.2.1")
    expect_equal(len(testbed.upstream.asked("a.example")), asked, "how often a server was asked that has just failed")


@check("F8.late", "an answer that comes after the old one was given is kept, and given to the next client", lasts=4)
def late(testbed: DNSTestbed) -> None:
    testbed.upstream.script = scripts.by_name({"a.example": ["192.0.2.1"]}, ttl=1)
    testbed.run()
    expect_addresses(testbed.ask("a.example"), "192.0.2.1")
    pause(1.3)
    testbed.upstream.script = scripts.late(2.6, scripts.by_name({"a.example": ["192.0.2.9"]}))
    _expect_stale(_ask_old(testbed, "a.example")[0], "192.0.2.1")
    pause(1.5)
    fresh = expect_addresses(testbed.ask("a.example", edns=EDNS), "192.0.2.9", what="the answer after the late one")
    expect(STALE not in fresh.edns.errors, f"a fresh answer says that it is old: {fresh}")


@check("F8.negative", "that a name is gone replaces what was known; an old NXDOMAIN is marked as one", lasts=4)
def negative(testbed: DNSTestbed) -> None:
    gone = lambda received: messages.answer(
        received.query, authority=[messages.start_of_authority(1, 1, "example")], code=NXDOMAIN)
    testbed.upstream.script = scripts.by_name({"a.example": ["192.0.2.1"]}, ttl=1)
    testbed.run()
    expect_addresses(testbed.ask("a.example"), "192.0.2.1")
    pause(1.3)
    testbed.upstream.script = gone
    expect_negative(testbed.ask("a.example"), NXDOMAIN)
    pause(1.3)
    testbed.upstream.script = lambda received: messages.answer(received.query, code=SERVFAIL)
    answer, _ = _ask_old(testbed, "a.example")
    expect_code(answer, NXDOMAIN, what="the old answer")
    expect(STALE_NEGATIVE in answer.edns.errors, f"it does not say that it is old: {answer}")


@check("F8.rules", "rules are for old answers too")
def ruled(testbed: DNSTestbed) -> None:
    testbed.upstream.script = scripts.by_name({"a.example": ["192.0.2.1"]}, ttl=1)
    daemon = testbed.run()
    expect_addresses(testbed.ask("a.example"), "192.0.2.1")
    pause(1.3)
    testbed.upstream.script = lambda received: messages.answer(received.query, code=SERVFAIL)
    _expect_stale(_ask_old(testbed, "a.example")[0], "192.0.2.1")
    daemon.write("udp://127.0.0.2:53", ["||a.example^"])
    daemon.reload()
    expect_addresses(testbed.ask("a.example"), "0.0.0.0")


@check("F8.off", "with staleSeconds of 0, or after their time, no old answer is given", lasts=5)
def unwanted(testbed: DNSTestbed) -> None:
    testbed.upstream.script = scripts.by_name({"a.example": ["192.0.2.1"]}, ttl=1)
    for seconds, wait in ((0, 1.3), (1, 2.6)):
        daemon = testbed.run(cache={"staleSeconds": seconds})
        testbed.upstream.script = scripts.by_name({"a.example": ["192.0.2.1"]}, ttl=1)
        expect_addresses(testbed.ask("a.example"), "192.0.2.1")
        pause(wait)
        testbed.upstream.script = lambda received: messages.answer(received.query, code=SERVFAIL)
        expect_code(testbed.ask("a.example"), SERVFAIL)
        daemon.stop()
        testbed.resign_dns(daemon)


@check("F9", "TTLs are kept within the bounds of the configuration, but 0, and those of negative answers", lasts=2)
def bounds(testbed: DNSTestbed) -> None:
    ttls = {"short.example": 1, "long.example": 90_000, "fits.example": 100, "zero.example": 0}
    testbed.upstream.script = lambda received: (
        messages.answer(received.query, [messages.address("192.0.2.1", ttls[received.name])])
        if received.name in ttls else
        messages.answer(received.query, authority=[messages.start_of_authority(5, 5, "example")], code=NXDOMAIN))
    testbed.run(TCP, cache={"minTTL": 60, "maxTTL": 3600})
    for name, expected in (("short.example", 60), ("long.example", 3600), ("fits.example", 100), ("zero.example", 0)):
        answer = expect_addresses(testbed.ask(name), "192.0.2.1")
        expect_equal(answer.answers[0].ttl, expected, f"the TTL of {name}")
    expect_equal(testbed.ask("none.example").authority[0].ttl, 5, "the TTL of a negative answer")
    pause(1.3)
    expect_addresses(testbed.ask("short.example"), "192.0.2.1")
    testbed.expect_asked("short.example", 1, "it is kept as long as the least TTL says")
    expect_addresses(testbed.ask("zero.example"), "192.0.2.1")
    testbed.expect_asked("zero.example", 2, "a TTL of 0 is for the asking client alone")
