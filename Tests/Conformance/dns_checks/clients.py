"""Clients by TCP: segments, pipelining, keepalive (RFC 7766, RFC 7828)."""

import os
import socket
import struct

import dns_wire
from capture import PacketCapture
from dns_checks.registry import check
from dns_checks.shape import expect_addresses, expect_code, expect_shape
from dns_client import framed
from dns_testbed import TCP, DNSTestbed
from dns_upstream import Reply, messages, scripts
from dns_wire import FORMERR, NOTIMP, NXDOMAIN, REFUSED
from waiting import expect, expect_equal, pause, wait_until


@check("C1", "messages are read whatever the segments: one octet each, several messages in one, both mixed")
def segments(testbed: DNSTestbed) -> None:
    testbed.run()
    for family in (4, 6):
        queries = [dns_wire.query(f"host{number}.example", edns=dns_wire.opt() if number % 2 else None)
                   for number in range(6)]
        data = framed(*queries)
        cuts = {"one octet each": [1] * len(data), "all in one": [len(data)],
                "one octet, then the rest": [1, len(data)],
                "two octets, then the rest": [2, len(data)], "mixed": [3, 1, 70, 1, 1, 40, 2, 90, 5, len(data)]}
        for what, lengths in cuts.items():
            with testbed.client("tcp", family) as client:
                at = 0
                for length in lengths:
                    client.send_bytes(data[at:at + length])
                    at += length
                answers = {answer.identifier: answer for answer in (client.receive() for _ in queries)}
                for query in queries:
                    answer = answers.get(int.from_bytes(query[:2], "big"))
                    expect(answer is not None, f"segments of {what}: a query has no answer")
                    expect_addresses(expect_shape(query, answer), "192.0.2.1")


@check("C2", "the connection stays open after an answer, an error, a blocked one and one from the cache")
def stays_open(testbed: DNSTestbed) -> None:
    testbed.upstream.script = lambda received: (
        messages.answer(received.query, code=2) if received.name.startswith("fails") else scripts.usual(received.query))
    testbed.run(rules=["||blocked.example^"])
    with testbed.client("tcp") as client:
        for _ in range(3):
            expect_addresses(client.exchange(dns_wire.query("good.example")), "192.0.2.1")
            expect_code(client.exchange(dns_wire.query("fails.example")), 2)
            expect_addresses(client.exchange(dns_wire.query("blocked.example")), "0.0.0.0")
            expect_code(client.exchange(dns_wire.query("good.example", flags=0x7800)), 4)
            twice = dns_wire.header(1, dns_wire.RD, 2) + dns_wire.question("a.example") * 2
            expect_code(client.exchange(twice), FORMERR)
            expect_code(client.exchange(dns_wire.query("invalid")), NXDOMAIN)


@check("C3", "pipelined queries are all answered, and a slow one holds up no other", lasts=2)
def pipelined(testbed: DNSTestbed) -> None:
    testbed.upstream.script = lambda received: Reply(
        scripts.usual(received.query), after=1.5 if received.name.startswith("slow") else 0)
    testbed.run()
    with testbed.client("tcp") as client:
        queries = [dns_wire.query("slow.example", identifier=0)]
        queries += [dns_wire.query(f"host{number}.example", identifier=number) for number in range(1, 200)]
        client.send(*queries)
        order = []
        for _ in queries:
            answer = client.receive()
            order.append(answer.identifier)
            expect(answer.identifier < 200, f"an answer to nothing that was asked: {answer}")
            expect_addresses(expect_shape(queries[answer.identifier], answer), "192.0.2.1")
        expect_equal(sorted(order), list(range(200)), "the IDs of the answers")
        expect_equal(order[-1], 0, "the last answer, that to the slow query,")


@check("C4", "an answer and its length leave in one segment")
def one_segment(testbed: DNSTestbed) -> None:
    testbed.run()
    with PacketCapture(testbed.network, "lo") as capture:
        with testbed.client("tcp") as client:
            lengths = [2 + len(client.exchange(dns_wire.query(name)).bytes)
                       for name in ("first.example", "first.example", "localhost", "second.example")]
        sent = wait_until(lambda: (found := _segments(capture)) and len(found) >= len(lengths) and found,
                          "the answers in the capture")
    expect_equal(sent, lengths, "the lengths of the segments")


def _segments(capture: PacketCapture) -> "list[int]":
    """How many octets each segment has that came from port 53 with any, by IPv4 to a client."""
    found = []
    for packet in capture.packets:
        data = packet.data
        if packet.outgoing and data[0] == 0x45 and data[9] == socket.IPPROTO_TCP and data[12:16] == b"\x7f\0\0\1":
            port, = struct.unpack_from(">H", data, 20)
            length = int.from_bytes(data[2:4], "big") - 20 - (data[32] >> 4) * 4
            if port == 53 and length > 0:
                found.append(length)
    return found


@check("C5", "lengths of 0 to 11 end the connection or get an answer, 65,535 octets are taken")
def odd_lengths(testbed: DNSTestbed) -> None:
    daemon = testbed.run()
    for length in range(12):
        with testbed.client("tcp") as client:
            client.send_bytes(framed(bytes(length)))
            client.send(dns_wire.query("localhost"))
            data = client.receive_bytes()
            expect(data is not None, f"a message of {length} octets blocks the connection")
            if data:
                answer = dns_wire.Message.checked(data)
                expect(answer.addresses == ["127.0.0.1"] or answer.code == FORMERR,
                       f"after {length} octets came {answer}")
    for filler in (b"\0", b"\xff", b"\x01"):
        with testbed.client("tcp") as client:
            client.send_bytes(framed(b"\xab\xcd\x01\x00\x00\x01" + filler * 65529))
            # Of zeros there is a question in it: the root, type and class 0.
            codes = (FORMERR, NOTIMP, REFUSED) if filler == b"\0" else (FORMERR,)
            expect_code(client.receive(), *codes, what="the answer to 65,535 octets")
            expect_addresses(client.exchange(dns_wire.query("localhost")), "127.0.0.1")
    used = _processor_seconds(daemon.pid)
    with testbed.client("tcp") as client:
        client.send_bytes(b"\0\0")
        pause(0.5)
    expect(_processor_seconds(daemon.pid) - used < 0.25, "the daemon works although there is nothing to do")


def _processor_seconds(pid: int) -> float:
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@check("C7", "a client that has said all it wants gets the answers that are still to come")
def half_closed(testbed: DNSTestbed) -> None:
    testbed.upstream.script = scripts.late(0.5)
    testbed.run()
    with testbed.client("tcp") as client:
        queries = {number: dns_wire.query(f"host{number}.example", identifier=number) for number in range(5)}
        client.send(*queries.values())
        client.socket.shutdown(socket.SHUT_WR)
        for _ in range(5):
            answer = client.receive()
            expect_addresses(expect_shape(queries.pop(answer.identifier), answer), "192.0.2.1")
        client.expect_end(5)


@check("C8", "keepalive is answered by TCP to who asks, and never by UDP")
def keepalive(testbed: DNSTestbed) -> None:
    testbed.run(clientIdleSeconds=12.5)
    asking = dns_wire.opt(options=dns_wire.option(dns_wire.KEEPALIVE))
    for name in ("keep.example", "keep.example", "localhost", "invalid"):
        answer = testbed.ask(name, transport="tcp", edns=asking)
        expect_equal(answer.edns.options, ((dns_wire.KEEPALIVE, struct.pack(">H", 125)),), f"the options for {name}")
        for transport, edns in (("tcp", dns_wire.opt()), ("udp", asking)):
            answer = testbed.ask(name, transport=transport, edns=edns)
            expect_equal(answer.edns.options, (), f"the options for {name} by {transport}")
