"""Clients by TCP and by TLS: pieces, pipelining, ends, keepalive (RFC 7766, RFC 7828, RFC 7858)."""

import os
import socket
import struct
import time

import dns_wire
from capture import PacketCapture
from dns_checks.shape import expect_addresses, expect_code, expect_shape
from dns_checks.stream_transports import StreamTransport, check_by_streams, expect_ended
from dns_client import framed
from dns_testbed import TRANSPORTS
from dns_upstream import Reply, messages, scripts
from dns_wire import FORMERR, NOTIMP, NXDOMAIN, REFUSED
from waiting import CheckFailure, expect, expect_equal, pause, wait_until


@check_by_streams("C1", "messages are read whatever the pieces: one octet each, several messages in one, both mixed")
def pieces(transport: StreamTransport) -> None:
    transport.run()
    for family in (4, 6):
        for what, client, send in transport.ways_to_send(family):
            queries = [dns_wire.query(f"host{number}.example", edns=dns_wire.opt() if number % 2 else None)
                       for number in range(6)]
            with client:
                send(client, framed(*queries))
                answers = {answer.identifier: answer for answer in (client.receive() for _ in queries)}
                for query in queries:
                    answer = answers.get(int.from_bytes(query[:2], "big"))
                    expect(answer is not None, f"{what}: a query has no answer")
                    expect_addresses(expect_shape(query, answer), "192.0.2.1")


@check_by_streams("C2", "the connection stays open after an answer, an error, a blocked one and one from the cache")
def stays_open(transport: StreamTransport) -> None:
    transport.testbed.upstream.script = lambda received: (
        messages.answer(received.query, code=2) if received.name.startswith("fails") else scripts.usual(received.query))
    transport.run(rules=["||blocked.example^"])
    with transport.client() as client:
        for _ in range(3):
            expect_addresses(client.exchange(dns_wire.query("good.example")), "192.0.2.1")
            expect_code(client.exchange(dns_wire.query("fails.example")), 2)
            expect_addresses(client.exchange(dns_wire.query("blocked.example")), "0.0.0.0")
            expect_code(client.exchange(dns_wire.query("good.example", flags=0x7800)), NOTIMP)
            twice = dns_wire.header(1, dns_wire.RD, 2) + dns_wire.question("a.example") * 2
            expect_code(client.exchange(twice), FORMERR)
            expect_code(client.exchange(dns_wire.query("invalid")), NXDOMAIN)


@check_by_streams(
    "C3", "pipelined queries are all answered, more than may wait at a time too; a slow one holds up no other", lasts=2)
def pipelined(transport: StreamTransport) -> None:
    transport.testbed.upstream.script = lambda received: Reply(
        scripts.usual(received.query), after=1.5 if received.name.startswith("slow") else 0)
    transport.run()
    with transport.client() as client:
        queries = [dns_wire.query("slow.example", identifier=0)]
        queries += [dns_wire.query(f"host{number}.example", identifier=number) for number in range(1, 500)]
        client.send(*queries)
        order = []
        for _ in queries:
            answer = client.receive()
            order.append(answer.identifier)
            expect(answer.identifier < len(queries), f"an answer to nothing that was asked: {answer}")
            expect_addresses(expect_shape(queries[answer.identifier], answer), "192.0.2.1")
        expect_equal(sorted(order), list(range(len(queries))), "the IDs of the answers")
        expect_equal(order[-1], 0, "the last answer, that to the slow query,")


@check_by_streams("C4", "an answer and its length leave in one segment and one record")
def in_one_piece(transport: StreamTransport) -> None:
    transport.run()
    with PacketCapture(transport.testbed.network, "lo") as capture, transport.answered_client() as client:
        lengths = [2 + len(client.exchange(dns_wire.query(name)).bytes)
                   for name in ("first.example", "first.example", "localhost", "second.example")]
        transport.expect_units(client, len(lengths))

        def beyond() -> "list[int]":
            """By how much the last segments are longer than the answers."""
            return [sent - length for sent, length in zip(_segments(capture, transport.port)[-len(lengths):], lengths)]

        # Each record has a header and a tag of its own. The connection is still open: its end is a record too.
        wait_until(lambda: len(found := beyond()) == len(lengths) and len(set(found)) == 1 and 0 <= found[0] < 64,
                   "a segment for each answer", detail=lambda: (_segments(capture, transport.port), lengths))
        if transport.name == "TCP":
            expect_equal(_segments(capture, transport.port), lengths, "the lengths of the segments")


def _segments(capture: PacketCapture, from_port: int) -> "list[int]":
    """How many octets each segment has that came from a port with any, by IPv4 to a client."""
    found = []
    for packet in capture.packets:
        data = packet.data
        if packet.outgoing and data[0] == 0x45 and data[9] == socket.IPPROTO_TCP and data[12:16] == b"\x7f\0\0\1":
            port, = struct.unpack_from(">H", data, 20)
            length = int.from_bytes(data[2:4], "big") - 20 - (data[32] >> 4) * 4
            if port == from_port and length > 0:
                found.append(length)
    return found


@check_by_streams("C5", "lengths of 0 to 11 end the connection or get an answer, 65,535 octets are taken")
def odd_lengths(transport: StreamTransport) -> None:
    daemon = transport.run()
    for length in range(12):
        with transport.client() as client:
            client.send_bytes(framed(bytes(length)))
            client.send(dns_wire.query("localhost"))
            data = client.receive_bytes()
            expect(data is not None, f"a message of {length} octets blocks the connection")
            if data:
                answer = dns_wire.Message.checked(data)
                expect(answer.addresses == ["127.0.0.1"] or answer.code == FORMERR,
                       f"after {length} octets came {answer}")
    for filler in (b"\0", b"\xff", b"\x01"):
        with transport.client() as client:
            client.send_bytes(framed(b"\xab\xcd\x01\x00\x00\x01" + filler * 65529))
            # Of zeros there is a question in it: the root, type and class 0.
            codes = (FORMERR, NOTIMP, REFUSED) if filler == b"\0" else (FORMERR,)
            expect_code(client.receive(), *codes, what="the answer to 65,535 octets")
            expect_addresses(client.exchange(dns_wire.query("localhost")), "127.0.0.1")
    with transport.client() as client:
        used = _processor_seconds(daemon.pid)
        client.send_bytes(b"\0\0")
        pause(0.5)
        expect(_processor_seconds(daemon.pid) - used < 0.25, "the daemon works although there is nothing to do")


def _processor_seconds(pid: int) -> float:
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@check_by_streams(
    "C6", "idle connections end in time, also within a message or before a handshake; those that ask live on", lasts=15)
def idle(transport: StreamTransport) -> None:
    daemon = transport.run(clientIdleSeconds=2)
    with transport.strangers() as strangers:
        silent, halfway, busy = (transport.client() for _ in range(3))
        halfway.send_bytes(framed(dns_wire.query("localhost"))[:7])
        started = last = time.monotonic()
        while time.monotonic() - started < 5:
            try:
                expect_addresses(busy.exchange(dns_wire.query("localhost")), "127.0.0.1")
            except (CheckFailure, OSError):
                # A machine that is busy may hold this thread up for longer than connections may be idle.
                if time.monotonic() - last < 1.5:
                    raise
                busy = transport.client()
            last = time.monotonic()
            pause(0.25)
        silent.expect_end(0.1)
        halfway.expect_end(0.1)
        for one in strangers:
            expect_ended(one, 0.1)
    # A message that comes octet by octet must not keep a connection for as long as it likes.
    slow = transport.client()
    started = time.monotonic()
    while _is_open(slow, b"\xff" if time.monotonic() - started < 0.2 else b"\0"):
        expect(time.monotonic() - started < 12, "a message that comes octet by octet keeps its connection for 12 s")
        pause(0.3)
    wait_until(lambda: daemon.status()["dns"]["clients"]["tcp"]["connected"] == 0, "all clients being gone", 10)


def _is_open(client, octet: bytes) -> bool:
    try:
        client.send_bytes(octet)
        return client.receive_bytes(0.01) != b""
    except OSError:
        return False


@check_by_streams("C7", "a client that has said all it wants gets the answers that are still to come")
def half_closed(transport: StreamTransport) -> None:
    transport.testbed.upstream.script = scripts.late(0.5)
    transport.run()
    for number, end in enumerate(transport.ends):
        with transport.client() as client:
            queries = {one: dns_wire.query(f"host{one}-{number}.example", identifier=one) for one in range(5)}
            client.send(*queries.values())
            end(client)
            for _ in range(5):
                answer = client.receive()
                expect_addresses(expect_shape(queries.pop(answer.identifier), answer), "192.0.2.1")
            client.expect_end(5)


@check_by_streams("C8", "keepalive is answered to who asks, and never by UDP or HTTPS")
def keepalive(transport: StreamTransport) -> None:
    transport.run(clientIdleSeconds=12.5)
    asking = dns_wire.opt(options=dns_wire.option(dns_wire.KEEPALIVE))
    with transport.client() as client:
        for name in ("keep.example", "keep.example", "localhost", "invalid"):
            answer = client.exchange(dns_wire.query(name, edns=asking))
            expect_equal(answer.edns.options, ((dns_wire.KEEPALIVE, struct.pack(">H", 125)),),
                         f"the options for {name}")
            answer = client.exchange(dns_wire.query(name, edns=dns_wire.opt()))
            expect_equal(answer.edns.options, (), f"the options for {name} to who does not ask")
            answer = transport.exchange_otherwise(name, edns=asking)
            expect_equal(answer.edns.options, (), f"the options for {name} by {transport.others}")


@check_by_streams(
    "C9", "clients that reset their connections leave nothing behind, and what they asked is kept", lasts=2)
def reset(transport: StreamTransport) -> None:
    testbed = transport.testbed
    testbed.upstream.script = scripts.late(0.5)
    daemon = transport.run()
    with transport.client() as client:
        expect_addresses(client.exchange(dns_wire.query("warm.example")), "192.0.2.1")
    before = len(os.listdir(f"/proc/{daemon.pid}/fd"))
    for number in range(100):
        client = transport.asking(number, [f"gone{number % 10}-{part}.example" for part in range(5)])
        if number < 10:
            # What a reset overtakes is never read: each name is asked for once before.
            testbed.upstream.wait_for_query(f"gone{number}-4.example")
        if number % 4 > 1:
            client.send_bytes(b"\0")
        client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.socket.close()
    wait_until(lambda: _counts(daemon.status()) == (0, 0), "nobody being connected and nothing under way", 10,
               detail=daemon.status)
    for by in TRANSPORTS:
        expect_addresses(testbed.ask("gone9-4.example", transport=by), "192.0.2.1")
    expect_equal(len(testbed.upstream.asked("gone9-4.example")), 1, "the questions for what a lost client asked")
    wait_until(lambda: len(os.listdir(f"/proc/{daemon.pid}/fd")) <= before, "the descriptors being as before", 5,
               detail=lambda: (len(os.listdir(f"/proc/{daemon.pid}/fd")), before))


def _counts(status: dict) -> "tuple[int, int]":
    """How many clients are connected, and how many queries wait."""
    return status["dns"]["clients"]["tcp"]["connected"], status["dns"]["waiting"]
