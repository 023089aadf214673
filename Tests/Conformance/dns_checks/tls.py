"""DNS over TLS to the upstream (RFC 7858), and what streams have in common: pipelining, ends, silence, sessions."""

import ssl
import time
from typing import Callable

import dns_wire
from dns_checks.registry import check
from dns_client import UDPClient
from dns_site import MARGIN, EncryptedSite, ask, ask_all, ask_in_time, expect_failure, expect_good, names
from dns_testbed import DNSTestbed
from dns_upstream import Connection, Received, Reply, Response, messages, scripts
from dns_upstream.faults import WRONG_ANSWERS
from waiting import expect, expect_equal, wait_until


def _site(testbed: DNSTestbed, **options) -> EncryptedSite:
    site = EncryptedSite(testbed)
    site.listener = site.tls(**options)
    return site


def _numbered(received: Received) -> bytes:
    """An answer that tells which question it is for: the last number of the address is the one in the name."""
    number = int(received.name.split(".")[0].rpartition("-")[2])
    return messages.answer(received.query, [messages.address(f"192.0.2.{number}")])


@check("E4", "queries are pipelined under IDs of their own, and answers come in any order")
def out_of_order(testbed: DNSTestbed) -> None:
    site = _site(testbed)
    held: "list[Received]" = []

    def script(received: Received) -> Response:
        held.append(received)
        if len(held) == 50:
            for one in reversed(held):
                one.connection.reply(one, _numbered(one))
        return None

    site.upstream.script = script
    site.forward("tls")
    asked = names("order", 50)
    for name, answer in ask_all(testbed, asked).items():
        expect_good(answer, [f"192.0.2.{name.split('.')[0].rpartition('-')[2]}"])
    expect_equal(len(site.upstream.connections), 1, "the connections")
    expect_equal(len({one.query.id for one in held}), 50, "the IDs on the connection")


@check("E4.identifiers", "two clients with the same ID get their own answers")
def equal_identifiers(testbed: DNSTestbed) -> None:
    site = _site(testbed)
    site.upstream.script = lambda received: Reply(_numbered(received), after=0.2)
    site.forward("tls")
    with testbed.client("udp") as one, testbed.client("tcp") as other:
        one.send(dns_wire.query("same-1.example.org", identifier=7))
        other.send(dns_wire.query("same-2.example.org", identifier=7))
        expect_good(one.receive(), ["192.0.2.1"])
        expect_good(other.receive(), ["192.0.2.2"])


@check("E4.segments", "answers that come a byte at a time, or several in one segment, are read")
def segments(testbed: DNSTestbed) -> None:
    site = _site(testbed)
    for listener in (site.listener, site.upstream.tcp()):
        listener.script = _numbered
        daemon = testbed.run(site.member(listener.transport))
        listener.is_piecemeal = True
        for name in names(f"piece-{listener.transport}", 3):
            expect_good(ask(testbed, name), [f"192.0.2.{name.split('.')[0].rpartition('-')[2]}"])
        listener.is_piecemeal = False
        for connection in listener.connections:
            connection.close()
        _hold_and_release(testbed, listener)
        daemon.stop()
        testbed.resign_dns(daemon)
    testbed.run(site.member("tls"))


def _hold_and_release(testbed: DNSTestbed, listener) -> None:
    """Ten answers leave the server together."""
    held: "list[Received]" = []

    def script(received: Received) -> Response:
        received.connection.hold()
        held.append(received)
        if len(held) == 10:
            listener.upstream.later(0.05, received.connection.release)
        return _numbered(received)

    listener.script = script
    for name, answer in ask_all(testbed, names(f"joined-{listener.transport}", 10)).items():
        expect_good(answer, [f"192.0.2.{name.split('.')[0].rpartition('-')[2]}"])


@check("E4.wrong", "an answer with the right ID to another question, or that cannot be read, reaches no client")
def wrong_answers(testbed: DNSTestbed) -> None:
    site = EncryptedSite(testbed)
    for transport in ("tls", "https", "tcp"):
        listener = site.listen(transport)
        daemon = testbed.run(site.member(transport), timeoutSeconds=1)
        for label, change in WRONG_ANSWERS.items():
            listener.script = scripts.altered(change)
            expect_failure(ask_in_time(testbed, f"{label.lower()}.{transport}.example.org", 1 + MARGIN))
        listener.script = None
        expect_good(ask(testbed, f"right.{transport}.example.org"))
        daemon.stop()
        testbed.resign_dns(daemon)
    testbed.run(site.member("tls"))


@check("E4.once", "after a wrong answer the right one of the next connection is taken")
def wrong_once(testbed: DNSTestbed) -> None:
    site = EncryptedSite(testbed)
    for transport in ("tls", "https"):
        listener = site.listen(transport)
        daemon = testbed.run(site.member(transport), timeoutSeconds=2)
        seen: "set[str]" = set()

        def script(received: Received) -> Response:
            right = scripts.usual(received.query)
            if received.name in seen:
                return right
            seen.add(received.name)
            return WRONG_ANSWERS["name"](right)

        listener.script = script
        for name in names(f"once-{transport}", 3):
            expect_good(ask_in_time(testbed, name, 2 + MARGIN))
        daemon.stop()
        testbed.resign_dns(daemon)
    testbed.run(site.member("tls"))


ENDS: "dict[str, Callable[[Connection], None]]" = {
    "notified": lambda one: one.close(),
    "silent": lambda one: one.close(notify=False),
    "reset": lambda one: one.reset(),
}


@check("E5", "a server that ends an idle connection is normal: the next query succeeds at the first try")
def idle_end(testbed: DNSTestbed) -> None:
    site = _site(testbed)
    site.forward("tls")
    for end in ENDS.values():
        for number in range(3):
            expect_good(ask_in_time(testbed, f"idle-{len(site.upstream.received)}.example.org", 1))
            for connection in site.upstream.connections:
                if connection.is_open:
                    end(connection)
    expect_equal(len(site.upstream.received), 9, "the queries that came")


@check("E5.each", "a server that ends each connection after one answer serves all queries, alone and together")
def one_answer_each(testbed: DNSTestbed) -> None:
    site = _site(testbed)

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
    site = _site(testbed)
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
    site = _site(testbed)
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


@check("E6.version", "TLS 1.2 and 1.3 are spoken, nothing older is offered, and an older server gets no query")
def versions(testbed: DNSTestbed) -> None:
    site = EncryptedSite(testbed)
    listeners = {"1.3": site.tls(), "1.2": site.tls(port=8532, newest="1.2"), "1.1": site.tls(port=8531, newest="1.1")}
    for version, listener in listeners.items():
        daemon = testbed.run(site.member("tls", url=f"tls://dns.example:{listener.port}"), timeoutSeconds=2)
        answer = ask_in_time(testbed, f"version-{version}.example.org", 2 + MARGIN)
        if version == "1.1":
            expect_failure(answer)
            expect(listener.connections, "the old server was not tried")
        else:
            expect_good(answer)
            expect_equal(listener.connections[0].tls.version, "TLSv" + version, "the version")
        for connection in listener.connections:
            expect(connection.plain_byte_count == 0 or version != "1.1", "an old server got something")
            expect_equal(min(connection.client_hello.versions), ssl.TLSVersion.TLSv1_2, "the oldest version offered")
        daemon.stop()
        testbed.resign_dns(daemon)
    testbed.run(site.member("tls"))


@check("E6.session", "the next connection goes on with the session of the one before, without early data")
def resumption(testbed: DNSTestbed) -> None:
    site = EncryptedSite(testbed)
    for listener in (site.tls(), site.tls(port=8532, newest="1.2"), site.https(most_streams=100)):
        port = listener.port
        url = f"https://dns.example:{port}/dns-query" if listener.transport == "https" else f"tls://dns.example:{port}"
        daemon = testbed.run(site.member("tls", url=url))
        for number in range(4):
            if number == 3:
                # As when the server was started anew: its tickets are worth nothing.
                listener.forget_sessions()
            expect_good(ask_in_time(testbed, f"session-{port}-{number}.example.org", 1))
            used = site.upstream.received[-1].connection
            expect_equal(used.tls.is_resumed, number in (1, 2), f"whether query {number + 1} to {port} went on")
            expect(not used.client_hello.has_early_data, "there was early data")
            # The last one is closed, and so are those that were kept warm.
            for connection in listener.connections:
                if connection.is_open:
                    connection.close()
        daemon.stop()
        testbed.resign_dns(daemon)
    testbed.run(site.member("tls"))


@check("E6.names", "SNI is the name to be proved, an address has none; ALPN offers dot or h2")
def server_names(testbed: DNSTestbed) -> None:
    site = EncryptedSite(testbed)
    site.tls(site.authority.issue("dns.example", "corp.example", "127.0.0.10"))
    site.https(site.authority.issue("dns.example", "corp.example", "127.0.0.10"))
    cases = (
        (site.member("tls"), "dns.example", "dot"),
        (site.member("https"), "dns.example", "h2"),
        (site.member("tls", serverName="corp.example"), "corp.example", "dot"),
        (site.member("https", serverName="corp.example"), "corp.example", "h2"),
        (site.member("tls", url="tls://127.0.0.10", addresses=None), None, "dot"),
        (site.member("https", url="https://127.0.0.10/dns-query", addresses=None), None, "h2"),
        (site.member("tls", url="tls://127.0.0.10", addresses=None, serverName="dns.example"), "dns.example", "dot"),
    )
    for number, (member, server_name, protocol) in enumerate(cases):
        daemon = testbed.run(member)
        expect_good(ask(testbed, f"name-{number}.example.org"))
        hello = site.upstream.received[-1].connection.client_hello
        expect_equal((hello.server_name, hello.protocols), (server_name, (protocol,)), f"SNI and ALPN with {member}")
        daemon.stop()
        testbed.resign_dns(daemon)
    testbed.run(site.member("tls"))


@check("E6.protocol", "a server of DNS over TLS that knows no ALPN is asked all the same")
def no_alpn(testbed: DNSTestbed) -> None:
    site = _site(testbed, protocols=())
    site.forward("tls")
    expect_good(ask(testbed, "alpn.example.org"))


@check("R1", "a pooled connection that has gone silent: the query is answered in time by a new one")
def gone_silent(testbed: DNSTestbed) -> None:
    site = _site(testbed)
    site.forward("tls", timeoutSeconds=3)
    expect_good(ask(testbed, "first.example.org"))
    site.upstream.connections[0].swallow()
    for answer in ask_all(testbed, names("silent", 5), seconds=3 + MARGIN).values():
        expect_good(answer)
    for name in names("after", 3):
        expect_good(ask_in_time(testbed, name, 1))


@check("R1.fallback", "a server that has gone silent on all connections: the next upstream answers in time")
def fallback(testbed: DNSTestbed) -> None:
    site = _site(testbed)
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


@check("E4.load", "a thousand queries at once are answered through one server, each with what was asked")
def load(testbed: DNSTestbed) -> None:
    site = _site(testbed)
    site.upstream.script = lambda received: messages.answer(
        received.query, [messages.text(received.name)])
    site.forward("tls")
    with UDPClient(testbed, buffer=4 << 20) as client:
        for number in range(1000):
            client.send(dns_wire.query(f"load-{number}.example.org", dns_wire.TXT, identifier=number))
        deadline, seen = time.monotonic() + 10, set()
        while len(seen) < 1000:
            data = client.receive_bytes(deadline - time.monotonic())
            expect(data is not None, f"{1000 - len(seen)} of 1000 queries are not answered within 10 s")
            answer = dns_wire.Message.checked(data)
            text = f"load-{answer.identifier}.example.org".encode()
            expect(answer.code == 0 and answer.answers[0].data[1:] == text, f"expected {text}, and came: {answer}")
            seen.add(answer.identifier)
