"""Many queries at a time, and millions of bad ones: nothing is lost, mixed up, or kept."""

import itertools
import random
import select
import socket
import time

import dns_wire
from dns_checks.malformed import ANSWERS, QUERIES
from dns_checks.registry import check
from dns_checks.shape import expect_addresses, expect_shape
from dns_client import TCPClient, UDPClient, framed
from dns_daemon import DNSDaemon
from dns_testbed import UDP, DNSTestbed
from dns_upstream import Received, scripts
from waiting import expect, expect_equal


def _various(count: int, domain: str, seed: int) -> "dict[int, bytes]":
    """Queries by their IDs: each with a name, letters, and EDNS of its own."""
    drawn = random.Random(seed)
    identifiers = drawn.sample(range(65536), count)
    queries = {}
    for number, identifier in enumerate(identifiers):
        name = "".join(drawn.choice((letter.upper(), letter)) for letter in f"host{number}.{domain}")
        edns = dns_wire.opt(drawn.randrange(512, 4096), dnssec=drawn.random() < 0.5) if drawn.random() < 0.5 else None
        queries[identifier] = dns_wire.query(name, drawn.choice((dns_wire.A, dns_wire.AAAA)), identifier=identifier,
                                             edns=edns)
    return queries


def _expect_answer(query: bytes, data: bytes, daemon: DNSDaemon) -> None:
    answer = expect_shape(query, dns_wire.Message.checked(data))
    expect(answer.code == 0, f"an answer of a burst says that something failed: {answer} ({daemon.status()['dns']})")
    kind = answer.question.kind
    expect_addresses(answer, "192.0.2.1" if kind == dns_wire.A else "2001:db8::1")
    expect_equal(answer.edns is None, dns_wire.Message(query).edns is None, "whether OPT is left out")


@check("N1", "1,000 queries at once from one socket: each gets its own answer, from the upstream and from the cache",
       exclusive=True)
def burst(testbed: DNSTestbed) -> None:
    daemon = testbed.run()
    for family, domain in ((4, "four.example"), (6, "six.example"), (4, "four.example")):
        client = testbed.udp(family, buffer=8 << 20)
        queries = _various(1000, domain, 1)
        for query in queries.values():
            testbed.note(query)
        for query in queries.values():
            client.socket.send(query)
        started = time.monotonic()
        while queries and time.monotonic() - started < 10:
            data = client.receive_bytes(2)
            if data is None:
                break
            query = queries.pop(int.from_bytes(data[:2], "big"), None)
            expect(query is not None, f"an answer to nothing that was asked, or a second one: {data.hex()}")
            _expect_answer(query, data, daemon)
        expect(not queries, f"{len(queries)} of 1,000 queries of a burst were not answered")


@check("N2", "100 clients by TCP with 10 pipelined queries each, octet by octet", exclusive=True)
def many_clients(testbed: DNSTestbed) -> None:
    daemon = testbed.run()
    clients = [testbed.tcp(4 if number % 2 else 6) for number in range(100)]
    queries = [_various(10, f"c{number % 40}.example", number) for number in range(100)]
    streams = []
    for asked in queries:
        for query in asked.values():
            testbed.note(query)
        streams.append(framed(*asked.values()))
    for octets in itertools.zip_longest(*streams):
        for client, octet in zip(clients, octets):
            if octet is not None:
                client.socket.send(bytes([octet]))
    for number, client in enumerate(clients):
        for _ in range(10):
            data = client.receive_bytes()
            expect(data, f"client {number} has {len(queries[number])} queries without an answer")
            query = queries[number].pop(int.from_bytes(data[:2], "big"), None)
            expect(query is not None, f"client {number} got an answer to nothing that it asked: {data.hex()}")
            _expect_answer(query, data, daemon)


BAD = [entry.message for entry in QUERIES if entry.reply != "drop"]
SILENT = [entry.message for entry in QUERIES if entry.reply == "drop"]


def _flood_by_udp(client: UDPClient, count: int) -> None:
    """Sends malformed queries, a window at a time, and takes the answers."""
    connection, messages = client.socket, itertools.cycle(BAD)
    connection.settimeout(0.5)
    silent = itertools.cycle(SILENT)
    sent = answered = 0
    deadline = time.monotonic() + 120
    while sent < count:
        expect(time.monotonic() < deadline, f"{sent} malformed queries by UDP took 120 s, with {answered} answers")
        for _ in range(60):
            connection.send(next(messages))
        for _ in range(4):
            connection.send(next(silent))
        sent += 64
        try:
            for _ in range(60):
                connection.recv(4096)
                answered += 1
        except socket.timeout:
            pass
    expect(answered > count * 0.9, f"{answered} answers came to {sent} malformed queries")


def _flood_by_tcp(client: TCPClient, count: int) -> None:
    """Sends malformed queries by a connection, and takes the answers while doing so: one for each."""
    batch = framed(*BAD)
    connection = client.socket
    connection.setblocking(False)
    left, received, sent, answered = b"", b"", 0, 0
    deadline = time.monotonic() + 120
    while answered < sent or sent < count:
        expect(time.monotonic() < deadline, f"{sent} malformed queries by TCP took 120 s, with {answered} answers")
        writes = [connection] if left or sent < count else []
        readable, writable, _ = select.select([connection], writes, [], 5)
        expect(readable or writable, f"the connection stands still after {sent} queries and {answered} answers")
        if readable:
            data = connection.recv(1 << 18)
            expect(data, f"the connection ended after {sent} malformed queries and {answered} answers")
            found, received = _frames(received + data)
            answered += found
        if writable:
            if not left:
                left, sent = batch, sent + len(BAD)
            left = left[connection.send(left):]
    expect_equal(answered, sent, "the answers to malformed queries by TCP")


def _frames(data: bytes) -> "tuple[int, bytes]":
    """How many whole messages there are, and what is behind them."""
    count = at = 0
    while len(data) >= at + 2 and len(data) >= (end := at + 2 + int.from_bytes(data[at:at + 2], "big")):
        count, at = count + 1, end
    return count, data[at:]


def _sizes(daemon: DNSDaemon) -> "tuple[int, int]":
    return daemon.memory("RssAnon"), daemon.memory("VmRSS")


def _expect_flat(before: "tuple[int, int]", after: "tuple[int, int]", what: str) -> None:
    for name, one, other in zip(("RssAnon", "VmRSS"), before, after):
        expect(other - one <= 512 << 10, f"{name} grew from {one >> 10} to {other >> 10} KiB between {what}")


@check("N3", "a million malformed queries leave the memory as it was after 100,000", lasts=30, exclusive=True)
def memory(testbed: DNSTestbed) -> None:
    daemon = testbed.run()
    _flood_by_udp(testbed.udp(buffer=8 << 20), 50_000)
    _flood_by_tcp(testbed.tcp(), 50_000)
    early = _sizes(daemon)
    _flood_by_udp(testbed.udp(buffer=8 << 20), 200_000)
    _flood_by_tcp(testbed.tcp(), 700_000)
    _expect_flat(early, _sizes(daemon), "the 100,000th and the 1,000,000th malformed query")
    expect_equal(len(testbed.upstream.received), 0, "the questions that were sent on")


@check("N4", "malformed answers by the hundred thousand leave the memory as it was", lasts=20, exclusive=True)
def malformed_answers(testbed: DNSTestbed) -> None:
    def script(received: Received) -> list:
        identifier = received.query.message[:2]
        return [*(identifier + entry.message[2:] for entry in ANSWERS if len(entry.message) > 2),
                scripts.usual(received.query)]

    testbed.upstream.script = script
    daemon = testbed.run(UDP, cache={"maxBytes": 0})
    client = testbed.udp()
    for number in range(1500):
        expect_addresses(client.exchange(dns_wire.query("example.com")), "192.0.2.1")
        if number == 300:
            early = _sizes(daemon)
    _expect_flat(early, _sizes(daemon), "the 32,000th and the 160,000th malformed answer")
