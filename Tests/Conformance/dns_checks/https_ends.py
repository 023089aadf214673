"""How streams and connections of HTTPS end (RFC 9113 §6.8, §8.7), and what HTTP says about an answer's age."""

import time

import dns_wire
from dns_checks.registry import check
from dns_site import MARGIN, EncryptedSite, ask, ask_all, ask_in_time, expect_failure, expect_good, names
from dns_testbed import DNSTestbed
from dns_upstream import HTTPReply, Received, ResetStream, Response, scripts
from dns_upstream.https import CANCEL, ENHANCE_YOUR_CALM, INTERNAL_ERROR, NO_ERROR, REFUSED_STREAM
from waiting import expect, expect_equal


def _site(testbed: DNSTestbed, **options) -> EncryptedSite:
    site = EncryptedSite(testbed)
    site.listener = site.https(**options)
    return site


def _away(testbed: DNSTestbed, last: "int | None") -> EncryptedSite:
    """A server that has five queries under way when it says GOAWAY, up to stream `last` or that of the first of them.
    It answers those that it has accepted a little later."""
    site = _site(testbed)
    held: "list[Received]" = []

    def script(received: Received) -> Response:
        if received.connection.number > 1 or received.name.startswith("first"):
            return scripts.usual(received.query)
        held.append(received)
        if len(held) == 5:
            limit = held[0].request.stream if last is None else last
            received.connection.go_away(limit)
            site.upstream.later(0.2, answer_accepted, limit)
        return None

    def answer_accepted(limit: int) -> None:
        for one in held:
            if one.request.stream <= limit:
                one.connection.reply(one, scripts.usual(one.query))

    site.upstream.script = script
    site.held = held
    return site


@check("D6", "GOAWAY: what is above its last stream is asked again at once, and what is below it is still answered")
def go_away(testbed: DNSTestbed) -> None:
    site = _away(testbed, None)
    site.forward("https")
    expect_good(ask(testbed, "first.example.org"))
    started = time.monotonic()
    for answer in ask_all(testbed, names("away", 5)).values():
        expect_good(answer)
    taken = time.monotonic() - started
    expect(taken < 1.5, f"the answers took {taken:.2f} s")
    expect(len(site.upstream.connections) >= 2, f"there was no second connection: {site.upstream.summary()}")
    accepted = site.upstream.asked(site.held[0].name)
    expect_equal(len(accepted), 1, "how often the query was asked that the server had accepted")


@check("R4", "GOAWAY before anything was taken up: everything is asked again, bodies and all")
def go_away_first(testbed: DNSTestbed) -> None:
    site = _away(testbed, 1)
    site.forward("https")
    expect_good(ask(testbed, "first.example.org"))
    started = time.monotonic()
    for answer in ask_all(testbed, names("away", 5)).values():
        expect_good(answer)
    expect(time.monotonic() - started < 1.5, f"the answers took {time.monotonic() - started:.2f} s")
    for name in names("away", 5):
        bodies = [one.request.body for one in site.upstream.asked(name)]
        expect(len(bodies) == 2 and bodies[0] == bodies[1],
               f"the queries for {name}: {[body.hex() for body in bodies]}")


@check("D6.graceful", "GOAWAY for the time to come: new queries go by a new connection, and none fails")
def graceful(testbed: DNSTestbed) -> None:
    site = _site(testbed)
    site.upstream.script = scripts.late(0.1)
    site.forward("https")
    expect_good(ask(testbed, "first.example.org"))
    for round_number in range(4):
        site.upstream.connections[-1].go_away(2**31 - 1)
        for answer in ask_all(testbed, names(f"round-{round_number}", 5)).values():
            expect_good(answer)
    expect_equal(len(site.upstream.received), 21, "the queries, none of which was asked twice")


@check("D6.idle", "GOAWAY and the connection's end while nothing is under way are not noticed by clients")
def idle_go_away(testbed: DNSTestbed) -> None:
    site = _site(testbed)
    site.forward("https")
    for number, code in enumerate((NO_ERROR, ENHANCE_YOUR_CALM, INTERNAL_ERROR)):
        expect_good(ask_in_time(testbed, f"before-{number}.example.org", 1))
        connection = site.upstream.connections[-1]
        connection.go_away(code=code)
        connection.close()
        expect_good(ask_in_time(testbed, f"after-{number}.example.org", 1))


@check("D7", "a refused stream is asked again, and nobody notices")
def refused(testbed: DNSTestbed) -> None:
    site = _site(testbed)
    seen: "set[str]" = set()

    def script(received: Received) -> Response:
        if received.name in seen:
            return scripts.usual(received.query)
        seen.add(received.name)
        return ResetStream(REFUSED_STREAM)

    site.upstream.script = script
    site.forward("https")
    for name in names("refused", 5):
        expect_good(ask_in_time(testbed, name, 1))
    for answer in ask_all(testbed, names("together", 20)).values():
        expect_good(answer)


@check("D7.always", "a stream that is refused again and again ends in a failure, after few tries")
def always_refused(testbed: DNSTestbed) -> None:
    site = _site(testbed)
    site.upstream.script = lambda received: ResetStream(REFUSED_STREAM)
    site.forward("https", timeoutSeconds=2)
    for name in names("always", 3):
        expect_failure(ask_in_time(testbed, name, 2 + MARGIN))
        expect(1 <= len(site.upstream.asked(name)) <= 4, f"{name} was asked {len(site.upstream.asked(name))} times")


@check("D7.codes", "a stream that is reset otherwise has the next upstream asked, at once")
def reset_codes(testbed: DNSTestbed) -> None:
    site = _site(testbed)
    second = EncryptedSite(testbed, "127.0.0.3", "second.example", "2")
    second.https()
    testbed.run([site.member("https"), second.member("https")])
    for code in (INTERNAL_ERROR, CANCEL, ENHANCE_YOUR_CALM, 13):
        site.upstream.script = lambda received: ResetStream(code)
        expect_good(ask_in_time(testbed, f"code-{code}.example.org", 1))
    expect(site.upstream.received, "the first upstream was never asked")


@check("D7.close", "a server that ends connections between queries is not noticed, however it ends them")
def closed_between(testbed: DNSTestbed) -> None:
    site = _site(testbed)
    site.forward("https")
    ends = (lambda one: one.close(), lambda one: one.close(notify=False), lambda one: one.reset())
    for number in range(9):
        expect_good(ask_in_time(testbed, f"close-{number}.example.org", 1))
        for connection in site.upstream.connections:
            if connection.is_open:
                ends[number % 3](connection)
    expect(len(site.upstream.connections) >= 9, f"the connections: {site.upstream.summary()}")


@check("D7.pending", "a connection that ends with queries under way has them asked again on another one")
def closed_within(testbed: DNSTestbed) -> None:
    site = _site(testbed)
    for number, end in enumerate((lambda one: one.close(), lambda one: one.reset())):
        pending: "list[Received]" = []

        def script(received: Received) -> Response:
            if received.connection.number != first or received.name.startswith("first"):
                return scripts.usual(received.query)
            pending.append(received)
            if len(pending) == 10:
                end(received.connection)
            return None

        first = -1
        site.upstream.script = script
        if number == 0:
            site.forward("https")
        expect_good(ask(testbed, f"first-{number}.example.org"))
        first = site.upstream.received[-1].connection.number
        for answer in ask_all(testbed, names(f"pending-{number}", 10)).values():
            expect_good(answer)
        expect_equal(len(pending), 10, "the queries that were under way when the connection ended")


@check("D8", "a connection that says nothing any more: queries are answered in time by another one")
def silent(testbed: DNSTestbed) -> None:
    site = _site(testbed)
    site.forward("https", timeoutSeconds=3)
    expect_good(ask(testbed, "first.example.org"))
    site.upstream.connections[0].swallow()
    for answer in ask_all(testbed, names("silent", 5), seconds=3 + MARGIN).values():
        expect_good(answer)
    # From now on there is one that answers.
    for name in names("after", 3):
        expect_good(ask_in_time(testbed, name, 1))


@check("D8.steady", "new queries on a silent connection do not move the deadline of those before", lasts=4)
def steady(testbed: DNSTestbed) -> None:
    site = _site(testbed)
    site.forward("https", timeoutSeconds=2)
    expect_good(ask(testbed, "first.example.org"))
    site.listener.on_accept = "silent"
    site.upstream.connections[0].swallow()
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


@check("R3", "a connection whose packets are dropped: the next query is answered within its time")
def dropped(testbed: DNSTestbed) -> None:
    site = _site(testbed)
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
    site = _site(testbed)
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
    site = _site(testbed)
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
