"""How streams and connections of HTTPS end (RFC 9113 §6.8, §8.7), and what HTTP says about an answer's age."""

import time

from dns_checks.registry import check
from dns_site import MARGIN, EncryptedSite, ask, ask_all, ask_in_time, expect_failure, expect_good, names, serving
from dns_testbed import DNSTestbed
from dns_upstream import Received, ResetStream, Response, scripts
from dns_upstream.https import CANCEL, ENHANCE_YOUR_CALM, INTERNAL_ERROR, NO_ERROR, REFUSED_STREAM
from waiting import expect, expect_equal


def _away(testbed: DNSTestbed, last: "int | None") -> EncryptedSite:
    """A server that has five queries under way when it says GOAWAY, up to stream `last` or that of the first of them.
    It answers those that it has accepted a little later."""
    site = serving(testbed, "https")
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
    site = serving(testbed, "https")
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
    site = serving(testbed, "https")
    site.forward("https")
    for number, code in enumerate((NO_ERROR, ENHANCE_YOUR_CALM, INTERNAL_ERROR)):
        expect_good(ask_in_time(testbed, f"before-{number}.example.org", 1))
        connection = site.upstream.connections[-1]
        connection.go_away(code=code)
        connection.close()
        expect_good(ask_in_time(testbed, f"after-{number}.example.org", 1))


@check("D7", "a refused stream is asked again, and nobody notices")
def refused(testbed: DNSTestbed) -> None:
    site = serving(testbed, "https")
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
    site = serving(testbed, "https")
    site.upstream.script = lambda received: ResetStream(REFUSED_STREAM)
    site.forward("https", timeoutSeconds=2)
    for name in names("always", 3):
        expect_failure(ask_in_time(testbed, name, 2 + MARGIN))
        expect(1 <= len(site.upstream.asked(name)) <= 4, f"{name} was asked {len(site.upstream.asked(name))} times")


@check("D7.codes", "a stream that is reset otherwise has the next upstream asked, at once")
def reset_codes(testbed: DNSTestbed) -> None:
    site = serving(testbed, "https")
    second = EncryptedSite(testbed, "127.0.0.3", "second.example", "2")
    second.https()
    testbed.run([site.member("https"), second.member("https")])
    for code in (INTERNAL_ERROR, CANCEL, ENHANCE_YOUR_CALM, 13):
        site.upstream.script = lambda received: ResetStream(code)
        expect_good(ask_in_time(testbed, f"code-{code}.example.org", 1))
    expect(site.upstream.received, "the first upstream was never asked")


@check("D7.close", "a server that ends connections between queries is not noticed, however it ends them")
def closed_between(testbed: DNSTestbed) -> None:
    site = serving(testbed, "https")
    site.forward("https")
    ends = (lambda one: one.close(), lambda one: one.close(notify=False), lambda one: one.reset())
    for number in range(9):
        expect_good(ask_in_time(testbed, f"close-{number}.example.org", 1))
        site.upstream.end_connections(ends[number % 3])
    expect(len(site.upstream.connections) >= 9, f"the connections: {site.upstream.summary()}")


@check("D7.pending", "a connection that ends with queries under way has them asked again on another one")
def closed_within(testbed: DNSTestbed) -> None:
    site = serving(testbed, "https")
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
