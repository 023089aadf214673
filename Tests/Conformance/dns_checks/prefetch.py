"""Answers that are asked for anew before their time is over, because many want them (`dns.cache.prefetch`)."""

import time

from dns_checks.registry import check
from dns_checks.shape import expect_addresses, expect_code
from dns_site import ask_all, ask_in_time
from dns_testbed import TCP, DNSTestbed
from dns_upstream import Received, Response, messages, scripts
from dns_wire import NXDOMAIN, SERVFAIL
from waiting import expect, expect_equal, pause, wait_until

#: The TTL of what is asked for anew, in seconds: the least there is. In the last tenth of it that happens.
TTL = 10
#: How long an answer from the cache may take on a busy machine, and when in its life it is asked for, in seconds.
AT_ONCE, LATE = 0.25, 9.2
ON = {"prefetch": True}


def _ask_often(testbed: DNSTestbed, *names: str) -> float:
    """Has answers given out three times; returns when they came."""
    started = time.monotonic()
    for _ in range(3):
        for name in names:
            testbed.ask(name)
    return started


def _wait_until_late(started: float) -> None:
    pause(max(0.0, started + LATE - time.monotonic()))


@check("P1", "what many ask for is asked for anew when a tenth of its time is left; no client waits for it", lasts=11)
def renewed(testbed: DNSTestbed) -> None:
    first, second = (scripts.by_name({"hot.example": [one]}, TTL) for one in ("192.0.2.1", "192.0.2.2"))
    testbed.upstream.script = first
    daemon = testbed.run(cache=ON, workers=3)
    started = _ask_often(testbed, "hot.example")
    testbed.upstream.script = scripts.late(0.15, second)
    pause(max(0.0, started + TTL * 0.8 - time.monotonic()))
    for _ in range(5):
        testbed.ask("hot.example")
    testbed.expect_asked("hot.example", 1, "it is too early to ask for it anew")
    _wait_until_late(started)
    answer = expect_addresses(ask_in_time(testbed, "hot.example", AT_ONCE), "192.0.2.1")
    expect(answer.answers[0].ttl <= 1, f"the TTL does not count down: {answer}")
    # From many ports, so that each of the daemon's threads has some.
    for _ in range(12):
        expect(ask_in_time(testbed, "hot.example", AT_ONCE).addresses, "an answer is missing")
    testbed.upstream.wait_for_query("hot.example", 2, 0.5)
    wait_until(lambda: ask_in_time(testbed, "hot.example", AT_ONCE).addresses == ["192.0.2.2"], "the new answer", 2,
               0.02)
    expect(testbed.ask("hot.example").answers[0].ttl >= TTL - 2, "the new answer has the time of the old one")
    expect_equal(daemon.status()["dns"]["cache"]["prefetches"], 1, "the number in the status")


@check("P2", "what few ask for, what does not exist and what is short-lived is not asked for before its end", lasts=11)
def not_renewed(testbed: DNSTestbed) -> None:
    ttls = {"once.example": TTL, "short.example": TTL - 1, "blocked.example": TTL}

    def script(received: Received) -> Response:
        if received.name not in ttls:
            return messages.answer(
                received.query, authority=[messages.start_of_authority(TTL, TTL, "example")], code=NXDOMAIN)
        address = "10.0.0.1" if received.name == "blocked.example" else "192.0.2.1"
        return messages.answer(received.query, [messages.address(address, ttls[received.name])])

    testbed.upstream.script = script
    testbed.run(cache=ON)
    testbed.ask("once.example")
    started = _ask_often(testbed, "short.example", "blocked.example", "none.example")
    pause(max(0.0, started + 8.3 - time.monotonic()))
    testbed.ask("short.example")
    _wait_until_late(started)
    for name in ("once.example", "blocked.example", "none.example"):
        testbed.ask(name)
    # A question behind them shows that what they could have led to has been sent.
    testbed.ask("last.example")
    asked = {name: len(testbed.upstream.asked(name)) for name in (*ttls, "none.example")}
    expect_equal(asked, dict.fromkeys(asked, 1), "how often the upstream was asked")


@check("P2.off", "by default nothing is asked for before its end", lasts=11)
def off(testbed: DNSTestbed) -> None:
    testbed.upstream.script = scripts.by_name({"hot.example": ["192.0.2.1"]}, TTL)
    testbed.run()
    started = _ask_often(testbed, "hot.example")
    _wait_until_late(started)
    _ask_often(testbed, "hot.example")
    testbed.ask("last.example")
    testbed.expect_asked("hot.example", 1, "nobody wished it")


@check("P3", "when it fails the old answer is given to its end, and the server not asked for each client", lasts=11)
def failing(testbed: DNSTestbed) -> None:
    answers = scripts.by_name({"hot.example": ["192.0.2.1"], "quiet.example": ["192.0.2.1"]}, TTL)
    testbed.upstream.script = answers
    testbed.run(TCP, cache={**ON, "staleSeconds": 0})
    started = _ask_often(testbed, "hot.example", "quiet.example")
    _wait_until_late(started)
    testbed.upstream.script = lambda received: (
        None if received.name == "quiet.example" else messages.answer(received.query, code=SERVFAIL))
    while time.monotonic() < started + 9.8:
        for name in ("hot.example", "quiet.example"):
            expect_addresses(ask_in_time(testbed, name, AT_ONCE), "192.0.2.1")
        pause(0.02)
    asked = len(testbed.upstream.asked("hot.example")) - 1
    expect(1 <= asked <= 4, f"the server was asked {asked} times more")
    pause(max(0.0, started + TTL + 0.3 - time.monotonic()))
    expect_code(testbed.ask("hot.example"), SERVFAIL)
    testbed.upstream.script = answers
    # Failures are kept for a second.
    wait_until(lambda: testbed.ask("hot.example").addresses, "the name being answered again", 3, 0.1)


@check("P4", "how many are asked for anew at a time is bounded", lasts=11)
def bounded(testbed: DNSTestbed) -> None:
    names = [f"hot{number}.example" for number in range(60)]
    testbed.upstream.script = scripts.by_name({name: ["192.0.2.1"] for name in names}, TTL)
    testbed.run(cache=ON)
    started = time.monotonic()
    ask_all(testbed, names)
    last = time.monotonic()
    expect(last - started < 0.6, "the machine is too slow for this check")
    for _ in range(2):
        ask_all(testbed, names)
    pause(max(0.0, last + LATE - time.monotonic()))
    before = len(testbed.upstream.received)
    testbed.upstream.script = scripts.silence
    ask_all(testbed, names)
    testbed.upstream.wait_for(lambda one: len(one.received) - before >= 32, "32 of them being asked for")
    pause(0.1)
    asked = {one.name for one in testbed.upstream.received[before:]}
    expect_equal(len(asked), 32, "how many were asked for anew")
