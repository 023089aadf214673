"""Plain servers that are dead, silent, late or old, and the next one that answers for them."""

import time

import dns_wire
from dns_checks.registry import check
from dns_site import (MARGIN, NETWORK_ERROR, TRANSPORTS, UNREACHABLE, EncryptedSite, ask, ask_all, ask_in_time,
                      expect_failure, expect_good, names)
from dns_testbed import UDP, DNSTestbed
from dns_upstream import Received, Reply, Response, Upstream, messages, scripts
from waiting import expect, expect_equal, pause


@check("E9", "a server that nobody is at costs no time: the next one answers at once")
def refused(testbed: DNSTestbed) -> None:
    for number, url in enumerate(("udp://127.0.0.8:53", "tcp://127.0.0.8:53", "udp://[::2]:53")):
        daemon = testbed.run([url, UDP])
        testbed.upstream
        for name in names(f"nobody-{number}", 3):
            expect_good(ask_in_time(testbed, name, 0.7))
        daemon.stop()
        testbed.resign_dns(daemon)
    testbed.run(UDP)


@check("E9.alone", "when nobody is at the only server's address, that is said at once")
def refused_alone(testbed: DNSTestbed) -> None:
    testbed.run(["udp://127.0.0.8:53", "tcp://127.0.0.8:53"])
    for name in names("nobody", 3):
        expect_failure(ask_in_time(testbed, name, 1.5), UNREACHABLE, NETWORK_ERROR)


@check("E9.silent", "a silent server is asked less and less, and costs little while another one answers", lasts=5)
def silent_server(testbed: DNSTestbed) -> None:
    silent = testbed.enter(Upstream(testbed.network, "127.0.0.5", scripts.silence))
    silent.udp()
    testbed.upstream
    testbed.run(["udp://127.0.0.5:53", UDP], timeoutSeconds=2)
    for name in names("silent", 4):
        expect_good(ask_in_time(testbed, name, 2 + MARGIN))
    before = len(silent.received)
    started = time.monotonic()
    for name in names("known", 40):
        expect_good(ask_in_time(testbed, name, 1.5))
    taken = time.monotonic() - started
    expect(taken < 4, f"40 queries took {taken:.1f} s beside a server that is known to be silent")
    more = len(silent.received) - before
    expect(more <= 8, f"the silent server was asked {more} times more")


@check("E9.return", "a dead server is tried again after a while, and asked first again when it answers", lasts=8)
def back_again(testbed: DNSTestbed) -> None:
    first = testbed.enter(Upstream(testbed.network, "127.0.0.5"))
    listener = first.udp()
    testbed.upstream
    testbed.run(["udp://127.0.0.5:53", UDP], timeoutSeconds=2)
    expect_good(ask(testbed, "before.example.org"))
    expect_equal(len(first.received), 1, "the queries at the first server before it died")
    listener.close()
    for name in names("dead", 5):
        expect_good(ask_in_time(testbed, name, 1))
    listener.open()
    deadline, number = time.monotonic() + 40, 0
    while len(first.received) < 2:
        number += 1
        expect_good(ask_in_time(testbed, f"again-{number}.example.org", 1))
        expect(time.monotonic() < deadline, "the first server was not asked again within 40 s")
        pause(0.2)
    count = len(first.received)
    for name in names("back", 5):
        expect_good(ask(testbed, name))
    expect_equal(len(first.received) - count, 5, "the queries at the first server after it was back")


@check("E9.all", "when all servers are silent the client is told so in time", lasts=2)
def all_silent(testbed: DNSTestbed) -> None:
    site = EncryptedSite(testbed)
    site.upstream.script = scripts.silence
    for transport in TRANSPORTS:
        site.listen(transport)
        daemon = testbed.run(site.member(transport), timeoutSeconds=1)
        started = time.monotonic()
        for answer in ask_all(testbed, names(f"silent-{transport}", 3), seconds=1 + MARGIN).values():
            expect_failure(answer, UNREACHABLE, NETWORK_ERROR)
        taken = time.monotonic() - started
        expect(taken >= 0.7, f"a silent server by {transport} was given up after {taken:.2f} s")
        daemon.stop()
        testbed.resign_dns(daemon)
    testbed.run(UDP)


@check("E9.late", "an answer that comes late to the first try is taken though a second one was made")
def late_answer(testbed: DNSTestbed) -> None:
    site = EncryptedSite(testbed)
    for transport in TRANSPORTS:
        seen: "set[str]" = set()

        def script(received: Received) -> Response:
            if received.name in seen:
                return None
            seen.add(received.name)
            return Reply(scripts.usual(received.query), after=1.4)

        site.upstream.script = script
        site.listen(transport)
        daemon = testbed.run(site.member(transport), timeoutSeconds=2)
        for answer in ask_all(testbed, names(f"late-{transport}", 3), seconds=2 + MARGIN).values():
            expect_good(answer)
        daemon.stop()
        testbed.resign_dns(daemon)
    testbed.run(UDP)


@check("E9.format", "a server that does not know EDNS is asked without it")
def no_edns(testbed: DNSTestbed) -> None:
    testbed.run(UDP)

    def script(received: Received) -> Response:
        if received.query.edns is not None:
            return messages.answer(received.query, code=dns_wire.FORMERR, edns=False)
        return scripts.usual(received.query)

    testbed.upstream.script = script
    for name in names("old", 3):
        expect_good(ask_in_time(testbed, name, 1))
