"""What HTTP says about the age of an answer (RFC 8484 §5.1), and a connection that nothing comes by any more."""

import time

import dns_wire
from dns_checks.registry import check
from dns_site import MARGIN, ask, ask_all, ask_in_time, expect_failure, expect_good, names, serving
from dns_testbed import DNSTestbed
from dns_upstream import HTTPReply, scripts
from waiting import expect, expect_equal


@check("D8", "a connection that says nothing any more: queries are answered in time by another one")
def silent(testbed: DNSTestbed) -> None:
    site = serving(testbed, "https")
    site.forward("https", timeoutSeconds=3)
    expect_good(ask(testbed, "first.example.org"))
    for connection in site.upstream.connections:
        connection.swallow()
    for answer in ask_all(testbed, names("silent", 5), seconds=3 + MARGIN).values():
        expect_good(answer)
    # From now on there is one that answers.
    for name in names("after", 3):
        expect_good(ask_in_time(testbed, name, 1))


@check("D8.steady", "new queries on a silent connection do not move the deadline of those before", lasts=4)
def steady(testbed: DNSTestbed) -> None:
    site = serving(testbed, "https")
    site.forward("https", timeoutSeconds=2)
    expect_good(ask(testbed, "first.example.org"))
    site.listener.on_accept = "silent"
    for connection in site.upstream.connections:
        connection.swallow()
    sent: "dict[int, float]" = {}
    with testbed.client("udp") as client:
        started = time.monotonic()
        while len(sent) < 30:
            # A query each tenth of a second, and what has come meanwhile.
            client.send(dns_wire.query(f"steady-{len(sent)}.example.org", identifier=len(sent), edns=dns_wire.opt()))
            sent[len(sent)] = time.monotonic()
            while time.monotonic() < started + len(sent) * 0.1:
                _take(client, sent, started + len(sent) * 0.1 - time.monotonic())
        while any(sent.values()):
            expect(_take(client, sent, 2 + MARGIN), f"{sum(map(bool, sent.values()))} queries are not answered in time")
    site.listener.on_accept = None
    for connection in site.upstream.connections:
        connection.reset()


def _take(client, sent: "dict[int, float]", seconds: float) -> bool:
    data = client.receive_bytes(seconds)
    if data is None:
        return False
    answer = dns_wire.Message.checked(data)
    taken = time.monotonic() - sent[answer.identifier]
    sent[answer.identifier] = 0.0
    expect_failure(answer)
    expect(taken <= 2 + MARGIN, f"a query was answered after {taken:.2f} s")
    return True


@check("D8.hung", "a connection that lives and brings no answers costs time, and no answer", lasts=10)
def hung(testbed: DNSTestbed) -> None:
    site = serving(testbed, "https")
    # It answers PING, and each query on it is met with silence.
    site.upstream.script = lambda received: (
        None if received.connection is site.upstream.connections[0] else scripts.usual(received.query))
    site.forward("https", timeoutSeconds=3)
    for name in names("hung", 8):
        expect_good(ask_in_time(testbed, name, 3))


@check("R3", "a connection whose packets are dropped: the next query is answered within its time")
def dropped(testbed: DNSTestbed) -> None:
    site = serving(testbed, "https")
    site.forward("https", timeoutSeconds=3)
    expect_good(ask(testbed, "first.example.org"))
    port = site.upstream.connections[0].client[1]
    testbed.network.nft(
        "table inet cut { chain input { type filter hook input priority 0;\n"
        f"tcp sport {port} drop\ntcp dport {port} drop\n}}\n}}\n")
    for answer in ask_all(testbed, names("dropped", 5), seconds=3 + MARGIN).values():
        expect_good(answer)
    expect(len(site.upstream.connections) >= 2, "there was no other connection")


@check("D9", "the time that an answer has been kept elsewhere is taken from its TTL")
def age(testbed: DNSTestbed) -> None:
    site = serving(testbed, "https")
    site.forward("https")
    for seconds, least, most in ((0, 298, 300), (100, 198, 200), (299, 0, 1), (300, 0, 0), (100_000, 0, 0)):
        site.upstream.script = lambda received: HTTPReply(
            scripts.usual(received.query, 300), fields=[("age", str(seconds))])
        name = f"age-{seconds}.example.org"
        for answer in (ask(testbed, name), ask(testbed, name)):
            expect_good(answer)
            expect(least <= answer.answers[0].ttl <= most,
                   f"the TTL is {answer.answers[0].ttl} with an age of {seconds}, expected {least} to {most}")
        expected = 2 if seconds >= 300 else 1
        expect_equal(len(site.upstream.asked(name)), expected, f"the queries with an age of {seconds}")


@check("D9.freshness", "an answer is kept no longer than HTTP says that it is fresh", lasts=3)
def freshness(testbed: DNSTestbed) -> None:
    site = serving(testbed, "https")
    site.forward("https")
    cases = {"max-age=600": 1, "max-age=60, public": 1, "no-store": 2, "no-cache": 2, "max-age=0": 2}
    for number, (directives, expected) in enumerate(cases.items()):
        site.upstream.script = lambda received: HTTPReply(
            scripts.usual(received.query, 300), fields=[("cache-control", directives)])
        name = f"fresh-{number}.example.org"
        for _ in range(2):
            expect_good(ask(testbed, name))
        expect_equal(len(site.upstream.asked(name)), expected, f"the queries with {directives!r}")
    # Age and freshness together, and the end of the time.
    site.upstream.script = lambda received: HTTPReply(
        scripts.usual(received.query, 300), fields=[("cache-control", "max-age=62"), ("age", "60")])
    started = time.monotonic()
    expect_good(ask(testbed, "short.example.org"))
    while len(site.upstream.asked("short.example.org")) < 2:
        expect_good(ask(testbed, "short.example.org"))
        expect(time.monotonic() - started < 5, "an answer that is fresh for two seconds is given for five")
        testbed.expect_answering()
    expect(time.monotonic() - started > 0.9, "an answer that is fresh for two seconds was asked for again at once")
