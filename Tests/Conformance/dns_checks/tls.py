"""DNS over TLS to the upstream (RFC 7858), and what streams have in common: pipelining, ends, silence, sessions."""

import time

import dns_wire
from dns_checks.registry import check
from dns_client import UDPClient
from dns_site import MARGIN, EncryptedSite, ask, ask_all, ask_in_time, expect_failure, expect_good, names, serving
from dns_testbed import DNSTestbed
from dns_upstream import Received, Reply, Response, messages, scripts
from dns_upstream.faults import WRONG_ANSWERS
from waiting import expect, expect_equal


def _numbered(received: Received) -> bytes:
    """An answer that tells which question it is for: the last number of the address is the one in the name."""
    number = int(received.name.split(".")[0].rpartition("-")[2])
    return messages.answer(received.query, [messages.address(f"192.0.2.{number}")])


@check("E4", "queries are pipelined under IDs of their own, and answers come in any order")
def out_of_order(testbed: DNSTestbed) -> None:
    site = serving(testbed, "tls")
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
    site = serving(testbed, "tls")
    site.upstream.script = lambda received: Reply(_numbered(received), after=0.2)
    site.forward("tls")
    with testbed.client("udp") as one, testbed.client("tcp") as other:
        one.send(dns_wire.query("same-1.example.org", identifier=7))
        other.send(dns_wire.query("same-2.example.org", identifier=7))
        expect_good(one.receive(), ["192.0.2.1"])
        expect_good(other.receive(), ["192.0.2.2"])


@check("E4.segments", "answers that come a byte at a time, or several in one segment, are read")
def segments(testbed: DNSTestbed) -> None:
    site = serving(testbed, "tls")
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


@check("E4.load", "a thousand queries at once are answered through one server, each with what was asked")
def load(testbed: DNSTestbed) -> None:
    site = serving(testbed, "tls")
    site.upstream.script = lambda received: messages.answer(
        received.query, [messages.text(received.name)])
    site.forward("tls")
    with UDPClient(testbed, buffer=4 << 20) as client:
        for number in range(1000):
            name = f"load-{number}.example.org"
            client.send(dns_wire.query(name, dns_wire.TXT, identifier=number, edns=dns_wire.opt()))
        deadline, seen = time.monotonic() + 10, set()
        while len(seen) < 1000:
            data = client.receive_bytes(deadline - time.monotonic())
            expect(data is not None, f"{1000 - len(seen)} of 1000 queries are not answered within 10 s")
            answer = dns_wire.Message.checked(data)
            text = f"load-{answer.identifier}.example.org".encode()
            expect(answer.code == 0 and answer.answers[0].data[1:] == text, f"expected {text}, and came: {answer}")
            seen.add(answer.identifier)
