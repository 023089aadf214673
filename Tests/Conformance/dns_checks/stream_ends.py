"""Connections that servers end or leave without a word (RFC 7858 §3.4), and how little of it clients notice."""

import os
import time
from typing import Callable

from dns_checks.registry import check
from dns_site import MARGIN, EncryptedSite, ask, ask_all, ask_in_time, expect_failure, expect_good, names, serving
from dns_testbed import DNSTestbed
from dns_upstream import Connection, Received, Response, scripts
from waiting import expect, expect_equal, wait_until

ENDS: "dict[str, Callable[[Connection], None]]" = {
    "notified": lambda one: one.close(),
    "silent": lambda one: one.close(notify=False),
    "reset": lambda one: one.reset(),
}


@check("E5", "a server that ends an idle connection is normal: the next query succeeds at the first try")
def idle_end(testbed: DNSTestbed) -> None:
    site = serving(testbed, "tls")
    site.forward("tls")
    for end in ENDS.values():
        for number in range(3):
            expect_good(ask_in_time(testbed, f"idle-{len(site.upstream.received)}.example.org", 1))
            site.upstream.end_connections(end)
    expect_equal(len(site.upstream.received), 9, "the queries that came")


@check("E5.each", "a server that ends each connection after one answer serves all queries")
def one_answer_each(testbed: DNSTestbed) -> None:
    site = serving(testbed, "tls")

    def script(received: Received) -> Response:
        if len(received.connection.received) > 1:
            return None
        site.upstream.later(0, received.connection.close)
        return scripts.usual(received.query)

    site.upstream.script = script
    site.forward("tls")
    for name in names("each", 10):
        expect_good(ask_in_time(testbed, name, 1.5))


@check("E5.pending", "a server that ends a connection with queries under way has them asked again")
def pending_end(testbed: DNSTestbed) -> None:
    site = serving(testbed, "tls")
    site.forward("tls")
    for label, end in ENDS.items():
        expect_good(ask(testbed, f"before-{label}.example.org"))
        victim = site.upstream.received[-1].connection

        def script(received: Received) -> Response:
            if received.connection is not victim:
                return scripts.usual(received.query)
            if len(victim.received) == count + 10:
                site.upstream.later(0, end, victim)
            return None

        count = len(victim.received)
        site.upstream.script = script
        started = time.monotonic()
        for answer in ask_all(testbed, names(f"pending-{label}", 10)).values():
            expect_good(answer)
        expect(time.monotonic() - started < 1.5, f"the answers took {time.monotonic() - started:.2f} s")


@check("E5.idle", "an idle connection is not kept for ever, and not ended at once", lasts=40)
def own_idle_end(testbed: DNSTestbed) -> None:
    site = serving(testbed, "tls")
    site.forward("tls")
    expect_good(ask(testbed, "first.example.org"))
    connection = site.upstream.connections[0]
    expect_good(ask(testbed, "second.example.org"))
    expect(site.upstream.received[-1].connection is connection, "the second query went by another connection")
    started = time.monotonic()
    wait_until(lambda: not connection.is_open, "the client ending an idle connection", 120, interval=0.2)
    expect(time.monotonic() - started > 5, f"an idle connection was ended after {time.monotonic() - started:.1f} s")
    expect(connection.is_ended_by_client, "the connection did not end by the client")
    expect_good(ask_in_time(testbed, "third.example.org", 1))


@check("R1", "a pooled connection that has gone silent: the query is answered in time by a new one")
def gone_silent(testbed: DNSTestbed) -> None:
    site = serving(testbed, "tls")
    site.forward("tls", timeoutSeconds=3)
    expect_good(ask(testbed, "first.example.org"))
    for connection in site.upstream.connections:
        connection.swallow()
    for answer in ask_all(testbed, names("silent", 5), seconds=3 + MARGIN).values():
        expect_good(answer)
    for name in names("after", 3):
        expect_good(ask_in_time(testbed, name, 1))


@check("R1.fallback", "a server that has gone silent on all connections: the next upstream answers in time")
def fallback(testbed: DNSTestbed) -> None:
    site = serving(testbed, "tls")
    second = EncryptedSite(testbed, "127.0.0.3", "second.example", "2")
    second.tls()
    testbed.run([site.member("tls"), second.member("tls")], timeoutSeconds=3)
    expect_good(ask(testbed, "first.example.org"))
    site.listener.on_accept = "silent"
    for connection in site.upstream.connections:
        connection.swallow()
    for number in range(6):
        expect_good(ask_in_time(testbed, f"fallback-{number}.example.org", 3 + MARGIN))
    # By now it is known to be down, and the second one is asked at once.
    expect_good(ask_in_time(testbed, "known.example.org", 1))


#: What a server can do to a connection before any query: as it is accepted, or when the handshake is done.
EARLY_ENDS = (("on_accept", "close"), ("on_accept", "reset"), ("on_accept", "silent"),
              ("on_secure", "close"), ("on_secure", "swallow"))


def _early_end(testbed: DNSTestbed, transport: str) -> None:
    site = serving(testbed, transport)
    second = EncryptedSite(testbed, "127.0.0.3", "second.example", "2")
    second.listen(transport)
    for moment, what in EARLY_ENDS:
        setattr(site.listener, moment, what)
        daemon = testbed.run(site.member(transport), timeoutSeconds=1.5)
        before = len(site.upstream.connections)
        for answer in ask_all(testbed, names(f"alone-{moment}-{what}", 5), seconds=1.5 + MARGIN).values():
            expect_failure(answer)
        opened = len(site.upstream.connections) - before
        expect(1 <= opened <= 12, f"{opened} connections were opened for 5 queries to a server with {moment}={what}")
        daemon.stop()
        testbed.resign_dns(daemon)
        daemon = testbed.run([site.member(transport), second.member(transport)], timeoutSeconds=4)
        for name in names(f"both-{moment}-{what}", 3):
            expect_good(ask_in_time(testbed, name, 4))
        daemon.stop()
        testbed.resign_dns(daemon)
        setattr(site.listener, moment, None)
    expect_equal(site.upstream.received, [], "the queries that the server has read")
    testbed.run(site.member(transport))


@check("E5.early", "a server of TLS that ends connections at once or says nothing is a failure in time, and no storm")
def early_end(testbed: DNSTestbed) -> None:
    _early_end(testbed, "tls")


@check("D7.early", "a server of HTTPS that ends connections at once or says nothing is a failure in time, and no storm")
def early_end_of_https(testbed: DNSTestbed) -> None:
    _early_end(testbed, "https")


@check("E5.leak", "connections that ended, however they did, leave neither descriptors nor memory behind")
def nothing_left(testbed: DNSTestbed) -> None:
    for transport in ("tls", "https"):
        site = EncryptedSite(testbed, {"tls": "127.0.0.10", "https": "127.0.0.11"}[transport])
        site.listen(transport)
        daemon = testbed.run(site.member(transport))

        def ask_with_new_connections(count: int) -> None:
            for number, name in enumerate(names(f"{transport}-{len(site.upstream.received)}", count)):
                expect_good(ask_in_time(testbed, name, 1.5))
                site.upstream.end_connections(list(ENDS.values())[number % 3])

        ask_with_new_connections(60)
        before = daemon.memory(), len(os.listdir(f"/proc/{daemon.pid}/fd"))
        ask_with_new_connections(300)
        after = daemon.memory(), len(os.listdir(f"/proc/{daemon.pid}/fd"))
        expect(after[1] <= before[1] + 4, f"{before[1]} descriptors became {after[1]} with 300 connections")
        # A TLS connection has 20 KiB and more: 300 of them would be 6 MiB.
        expect(after[0] - before[0] < 1 << 20, f"{before[0]} bytes became {after[0]} with 300 connections")
        daemon.stop()
        testbed.resign_dns(daemon)
    testbed.run()
