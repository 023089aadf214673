"""Which upstream is asked, and when: the order of the configuration, the fastest, several at once; and who is late."""

import itertools
import time

import commands
import dns_wire
from dns_checks.registry import check
from dns_site import (NETWORK_ERROR, UNREACHABLE, EncryptedSite, ask, ask_in_time, expect_failure, expect_good, names,
                      serving)
from dns_testbed import DNSTestbed
from dns_upstream import Script, Upstream, messages, scripts
from dns_wire import REFUSED, SERVFAIL
from waiting import expect, expect_equal, wait_until

#: How much later than it could be an answer may come where it has to be fast: the machine runs ten checks at a time.
HASTE = 0.6
#: What a validator says that found signatures wrong (RFC 8914 §4.7).
BOGUS = 6


def _servers(testbed: DNSTestbed, *answering: Script) -> "list[Upstream]":
    """Plain servers at 127.0.0.11 and so on, with these scripts."""
    found = []
    for number, script in enumerate(answering):
        upstream = testbed.enter(Upstream(testbed.network, f"127.0.0.{11 + number}", script))
        upstream.udp(), upstream.tcp()
        found.append(upstream)
    return found


def _members(servers: "list[Upstream]") -> "list[dict]":
    return [{"name": f"s{number}", "url": f"udp://{one.address}:53"} for number, one in enumerate(servers)]


def _say(code: int, *errors: int) -> Script:
    options = [(15, bytes([0, one])) for one in errors]
    return lambda received: messages.answer(
        received.query, code=code, edns=False, additional=[messages.options_record(options=options)])


def _counts(servers: "list[Upstream]") -> "list[int]":
    return [len(one.received) for one in servers]


@check("U1", "ordered, as by default: the first server has all questions, and the next ones only what it fails at")
def ordered(testbed: DNSTestbed) -> None:
    for strategy in ({}, {"strategy": "ordered"}):
        servers = _servers(testbed, scripts.late(0.05), scripts.addresses())
        daemon = testbed.run(_members(servers), **strategy)
        for name in names("ordered", 10):
            expect_good(ask(testbed, name))
        expect_equal(_counts(servers), [10, 0], "the queries at the servers")
        servers[0].script = _say(REFUSED)
        expect_good(ask_in_time(testbed, "refused.example.org", HASTE))
        expect_equal(_counts(servers), [11, 1], "the queries at the servers")
        daemon.stop()
        testbed.resign_dns(daemon)
        for one in servers:
            one.stop()
    testbed.run()


@check("U2", "fastest: the server with the shortest times has the questions, wherever it stands")
def fastest(testbed: DNSTestbed) -> None:
    servers = _servers(testbed, scripts.late(0.08), scripts.late(0.04), scripts.addresses())
    testbed.run(_members(servers), strategy="fastest")
    for name in names("learning", 8):
        expect_good(ask(testbed, name))
    before = _counts(servers)
    for name in names("known", 20):
        expect_good(ask(testbed, name))
    expect_equal([now - then for now, then in zip(_counts(servers), before)], [0, 0, 20], "the queries at the servers")


@check("U2.change", "fastest: when another one has become the fastest, it is found", lasts=4)
def fastest_changes(testbed: DNSTestbed) -> None:
    servers = _servers(testbed, scripts.addresses(), scripts.late(0.03))
    testbed.run(_members(servers), strategy="fastest")
    for name in names("learning", 5):
        expect_good(ask(testbed, name))
    servers[0].script = scripts.late(0.12)
    number = itertools.count()

    def moved() -> bool:
        expect_good(ask(testbed, f"slower-{next(number)}.example.org"))
        return len(servers[1].received) >= 10

    wait_until(moved, "the other server having the questions", 10, 0, lambda: _counts(servers))


@check("U2.dead", "fastest: when the fastest is silent or nobody is there, the next one answers, and then at once")
def fastest_dies(testbed: DNSTestbed) -> None:
    for label in ("silent", "closed"):
        servers = _servers(testbed, scripts.addresses(), scripts.late(0.03), scripts.late(0.2))
        daemon = testbed.run(_members(servers), strategy="fastest")
        for name in names(f"{label}-learning", 6):
            expect_good(ask(testbed, name))
        if label == "silent":
            servers[0].script = scripts.silence
        else:
            for listener in servers[0].listeners:
                listener.close()
        for name in names(label, 3):
            expect_good(ask_in_time(testbed, name, 2))
        for name in names(f"{label}-known", 10):
            expect_good(ask_in_time(testbed, name, HASTE))
        daemon.stop()
        testbed.resign_dns(daemon)
        for one in servers:
            one.stop()
    testbed.run()


@check("U3", "parallel: all are asked at once, up to three of them, and the first answer is the client's")
def parallel(testbed: DNSTestbed) -> None:
    servers = _servers(testbed, scripts.silence, scripts.silence, scripts.addresses(), scripts.addresses())
    testbed.run(_members(servers), strategy="parallel")
    for name in names("parallel", 2):
        expect_good(ask_in_time(testbed, name, HASTE))
        for one in servers[:3]:
            one.wait_for_query(name)
    expect_equal(_counts(servers), [2, 2, 2, 0], "the queries at the servers")


@check("U3.failures", "parallel: SERVFAIL, REFUSED, closed ports and wrong answers leave it to the others to answer")
def parallel_failures(testbed: DNSTestbed) -> None:
    servers = _servers(testbed, _say(SERVFAIL), _say(REFUSED), scripts.late(0.3))
    daemon = testbed.run(_members(servers), strategy="parallel")
    for name in names("failures", 3):
        expect_good(ask_in_time(testbed, name, 0.3 + HASTE))
    for one in servers[:2]:
        for listener in one.listeners:
            listener.close()
    for name in names("closed", 3):
        expect_good(ask_in_time(testbed, name, 0.3 + HASTE))
    daemon.stop()
    testbed.resign_dns(daemon)
    testbed.run([*_members(servers)[:2]], strategy="parallel")
    expect_failure(ask_in_time(testbed, "none.example.org", HASTE), UNREACHABLE, NETWORK_ERROR)


@check("U3.more", "parallel: what the first three cannot answer, the others are asked")
def parallel_more(testbed: DNSTestbed) -> None:
    servers = _servers(testbed, _say(SERVFAIL), _say(SERVFAIL), _say(REFUSED), scripts.addresses())
    testbed.run(_members(servers), strategy="parallel")
    for name in names("more", 3):
        expect_good(ask_in_time(testbed, name, HASTE))
    expect_equal(_counts(servers), [3, 3, 3, 3], "the queries at the servers")


@check("U3.bogus", "parallel: what came first counts, a verdict about signatures as well as an answer")
def parallel_bogus(testbed: DNSTestbed) -> None:
    servers = _servers(testbed, _say(SERVFAIL, BOGUS), scripts.late(1.5))
    testbed.run(_members(servers), strategy="parallel")
    expect_failure(ask_in_time(testbed, "bogus.example.org", 1), BOGUS)
    servers[0].script, servers[1].script = scripts.late(1.5, servers[0].script), scripts.addresses()
    expect_good(ask_in_time(testbed, "good.example.org", 1))


@check("U3.streams", "parallel: by TLS and HTTPS too; connections that the servers ended cost nothing")
def parallel_streams(testbed: DNSTestbed) -> None:
    first = EncryptedSite(testbed)
    second = EncryptedSite(testbed, "127.0.0.3", "second.example", "2")
    first.tls(), second.https()
    testbed.run([{"name": "a", **first.member("tls")}, {"name": "b", **second.member("https")}], strategy="parallel")
    expect_good(ask(testbed, "first.example.org"))
    for number in range(3):
        for site in (first, second):
            site.upstream.wait_for(lambda one: any(connection.is_open and connection.is_ready
                                                   for connection in one.connections), "a connection")
            site.upstream.end_connections()
        expect_good(ask_in_time(testbed, f"ended-{number}.example.org", HASTE))


@check("U4", "a route has a strategy of its own, and only its own servers are asked")
def of_a_route(testbed: DNSTestbed) -> None:
    servers = _servers(testbed, scripts.addresses(), scripts.late(0.05), scripts.late(0.05), scripts.addresses())
    testbed.run(_members(servers), strategy="ordered", routes=[
        {"domains": ["corp.example"], "upstreams": ["s2", "s3"], "strategy": "parallel"}])
    for name in ("www.corp.example", "corp.example", "www.corp.example.org"):
        expect_good(ask(testbed, name))
    servers[2].wait_for_query("corp.example")
    expect_equal(_counts(servers), [1, 0, 2, 2], "the queries at the servers")


@check("U4.reload", "another strategy is followed when the configuration is read again, and what is kept stays")
def reloaded(testbed: DNSTestbed) -> None:
    servers = _servers(testbed, scripts.late(0.05), scripts.addresses())
    daemon = testbed.run(_members(servers))
    expect_good(ask(testbed, "kept.example.org"))
    expect_equal(_counts(servers), [1, 0], "the queries at the servers")
    daemon.write(_members(servers), strategy="parallel")
    daemon.reload()
    expect_good(ask(testbed, "kept.example.org"))
    expect_equal(_counts(servers), [1, 0], "the queries at the servers")
    expect_good(ask(testbed, "new.example.org"))
    servers[0].wait_for_query("new.example.org")
    expect_equal(_counts(servers), [2, 1], "the queries at the servers")


@check("U5", "a datagram that is lost costs a fraction of a second where a server usually answers at once")
def lost_datagram(testbed: DNSTestbed) -> None:
    server, = _servers(testbed, scripts.losing_first("lost-"))
    testbed.run(_members([server]))
    expect_good(ask(testbed, "known.example.org"))
    for name in names("lost", 3):
        expect_good(ask_in_time(testbed, name, 0.2 + HASTE))
        expect_equal(len(server.asked(name)), 2, f"how often the server was asked for {name}")


@check("U5.hung", "a connection that lives and brings no answers costs a fraction of a second, and that once")
def hung(testbed: DNSTestbed) -> None:
    for transport in ("tls", "https"):
        site = serving(testbed, transport)
        daemon = site.forward(transport)
        for name in names(f"{transport}-known", 3):
            expect_good(ask(testbed, name))
        old = list(site.upstream.connections)
        site.upstream.script = lambda received: (
            None if received.connection in old else scripts.usual(received.query))
        expect_good(ask_in_time(testbed, f"{transport}-hung.example.org", 0.75 + HASTE))
        before = len(site.upstream.received)
        for name in names(f"{transport}-after", 5):
            expect_good(ask_in_time(testbed, name, HASTE))
        expect_equal(len(site.upstream.received) - before, 5, "the queries after that, each of them once")
        daemon.stop()
        testbed.resign_dns(daemon)
        site.upstream.stop()
    testbed.run()


@check("U5.silent", "a server that has gone silent costs a fraction of a second where there is another one")
def silent(testbed: DNSTestbed) -> None:
    servers = _servers(testbed, scripts.addresses(), scripts.addresses())
    testbed.run(_members(servers))
    for name in names("known", 3):
        expect_good(ask(testbed, name))
    servers[0].script = scripts.silence
    for name in names("silent", 4):
        expect_good(ask_in_time(testbed, name, 0.2 + HASTE))


@check("U5.slow", "a question that takes its time is not asked twice of a server that answers others", lasts=2)
def slow_name(testbed: DNSTestbed) -> None:
    slow = scripts.late(1.5)
    site = serving(testbed, "tls")
    site.upstream.script = lambda received: (slow(received) if received.name == "slow.example.org"
                                             else scripts.usual(received.query))
    site.forward("tls")
    expect_good(ask(testbed, "known.example.org"))
    number = itertools.count()
    with testbed.client("udp") as client:
        client.send(dns_wire.query("slow.example.org"))
        started = time.monotonic()
        while (data := client.receive_bytes(0.02)) is None:
            expect_good(ask(testbed, f"fast-{next(number)}.example.org"))
            expect(time.monotonic() - started < 4, "the slow question is not answered")
        expect_good(dns_wire.Message.checked(data))
    expect_equal(len(site.upstream.asked("slow.example.org")), 1, "how often the slow question was asked")
    expect_equal(len(site.upstream.connections), 1, "the connections")


@check("U6", "the status tells how long each server takes, and how many of its answers took how long")
def told(testbed: DNSTestbed) -> None:
    servers = _servers(testbed, scripts.late(0.15), scripts.addresses())
    daemon = testbed.run(_members(servers))
    expect_equal(daemon.status()["dns"]["upstreams"][0]["roundTripMicroseconds"], None, "the time before any answer")
    for name in names("told", 4):
        expect_good(ask(testbed, name))
    first, second = daemon.status()["dns"]["upstreams"]
    expect(150_000 <= first["roundTripMicroseconds"] < 400_000, f"the time is {first['roundTripMicroseconds']} µs")
    latency = first["latency"]
    bounds = latency["boundsMilliseconds"]
    expect_equal(len(latency["counts"]), len(bounds) + 1, "the number of counts")
    expect_equal(sum(latency["counts"]), 4, "the answers that are counted")
    expect_equal(sum(latency["counts"][:bounds.index(100) + 1]), 0, "the answers that took up to 100 ms")
    expect(600_000 <= latency["sumMicroseconds"] < 1_600_000, f"the sum of times is {latency['sumMicroseconds']} µs")
    expect_equal((second["roundTripMicroseconds"], sum(second["latency"]["counts"])), (None, 0), "what is known of s1")
    text = commands.run([*testbed.command, "status", "--config", daemon.path]).stdout
    line = next((one for one in text.splitlines() if "upstream s0" in one), "")
    expect(" ms" in line, f"the text says nothing of the time: {text}")
