"""Clients by TCP (RFC 7766, RFC 7828): segments, pipelining, the connection's life and its limits."""

import os
import socket
import struct
import time

import dns_wire
from capture import PacketCapture
from dns_checks.registry import check
from dns_checks.shape import expect_addresses, expect_code, expect_shape
from dns_client import framed
from dns_testbed import TCP, TRANSPORTS, DNSTestbed
from dns_upstream import Reply, messages, scripts
from dns_wire import FORMERR, NOTIMP, NXDOMAIN, REFUSED
from waiting import CheckFailure, expect, expect_equal, pause, wait_until


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


@check("C6", "idle connections end in time, also within a message; those that ask live on", lasts=15)
def idle(testbed: DNSTestbed) -> None:
    testbed.run(clientIdleSeconds=2)
    silent, halfway, busy, slow = (testbed.tcp() for _ in range(4))
    halfway.send_bytes(framed(dns_wire.query("localhost"))[:7])
    started = last = time.monotonic()
    while time.monotonic() - started < 5:
        try:
            expect_addresses(busy.exchange(dns_wire.query("localhost")), "127.0.0.1")
        except CheckFailure:
            # A machine that is busy may hold this thread up for longer than connections may be idle.
            if time.monotonic() - last < 1.5:
                raise
            busy = testbed.tcp()
        last = time.monotonic()
        pause(0.25)
    silent.expect_end(0.1)
    halfway.expect_end(0.1)
    # A message that comes octet by octet must not keep a connection for as long as it likes.
    slow.socket.close()
    slow = testbed.tcp()
    started = time.monotonic()
    while _is_open(slow, b"\xff" if time.monotonic() - started < 0.2 else b"\0"):
        expect(time.monotonic() - started < 12, "a message that comes octet by octet keeps its connection for 12 s")
        pause(0.3)


def _is_open(client, octet: bytes) -> bool:
    try:
        client.socket.sendall(octet)
        client.socket.settimeout(0.01)
        return client.socket.recv(1) != b""
    except socket.timeout:
        return True
    except OSError:
        return False


@check("C6.many", "connections of one client leave room for others, and many clients for new ones", lasts=3)
def many(testbed: DNSTestbed) -> None:
    daemon = testbed.run()
    held: "list[socket.socket]" = []
    testbed.on_exit(lambda: [one.close() for one in held])
    for source, count in (("127.0.0.9", 400), *((f"127.0.1.{number}", 60) for number in range(1, 21))):
        for _ in range(count):
            one = testbed.network.socket(socket.AF_INET, socket.SOCK_STREAM)
            held.append(one)
            one.settimeout(2)
            one.bind((source, 0))
            try:
                one.connect(("127.0.0.1", 53))
            except OSError:
                break
        expect_addresses(testbed.ask("localhost", transport="tcp"), "127.0.0.1",
                         what=f"TCP beside {len(held)} connections")
        expect_addresses(testbed.ask("localhost"), "127.0.0.1", what=f"UDP beside {len(held)} connections")
    descriptors = len(os.listdir(f"/proc/{daemon.pid}/fd"))
    expect(descriptors < 1500, f"the daemon holds {descriptors} descriptors")


@check("C6.unread", "a client that asks and never reads costs little memory, and no other client its answers", lasts=4)
def unread(testbed: DNSTestbed) -> None:
    testbed.upstream.script = lambda received: messages.answer(
        received.query, [messages.text(bytes([97 + number % 26]) * 250) for number in range(200)])
    daemon = testbed.run(TCP)
    expect(len(testbed.ask("large.example", dns_wire.TXT, "tcp").bytes) > 50000, "the large answer is not large")
    before = daemon.memory()
    clients = [testbed.tcp() for _ in range(4)]
    query = framed(*(dns_wire.query("large.example", dns_wire.TXT) for _ in range(100)))
    for client in clients:
        client.socket.settimeout(0.5)
        try:
            for _ in range(200):
                client.socket.sendall(query)
        except OSError:
            pass  # The daemon reads no more, or has ended the connection: both are right.
        expect_addresses(testbed.ask("localhost", transport="tcp"), "127.0.0.1",
                         what="TCP beside a client that does not read")
    grown = daemon.memory() - before
    expect(grown < 8 << 20, f"clients that do not read cost {grown >> 10} KiB of memory")


@check("C6.slow", "a client that asks for 1.5 MB at once and reads late gets all of it", lasts=3)
def slow_reader(testbed: DNSTestbed) -> None:
    testbed.upstream.script = lambda received: messages.answer(
        received.query, [messages.text(bytes([97 + number % 26]) * 250) for number in range(30)])
    testbed.run(TCP)
    with testbed.client("tcp") as client:
        queries = [dns_wire.query(f"large{number % 10}.example", dns_wire.TXT, identifier=number)
                   for number in range(200)]
        client.send(*queries)
        pause(1)
        found = []
        for _ in queries:
            data = client.receive_bytes()
            expect(data, f"a client that reads late got {len(found)} of 200 answers")
            answer = dns_wire.Message(data)
            expect_equal(len(answer.answers), 30, "the records of an answer")
            found.append(answer.identifier)
        expect_equal(sorted(found), list(range(200)), "the answers")


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


@check("C9", "clients that reset their connections leave nothing behind, and what they asked is kept", lasts=2)
def reset(testbed: DNSTestbed) -> None:
    testbed.upstream.script = scripts.late(0.5)
    daemon = testbed.run()
    testbed.ask("warm.example", transport="tcp")
    before = len(os.listdir(f"/proc/{daemon.pid}/fd"))
    for number in range(100):
        client = testbed.tcp()
        client.send(*(dns_wire.query(f"gone{number % 10}-{part}.example") for part in range(5)))
        if number < 10:
            # What a reset overtakes is never read: each name is asked for once before.
            testbed.upstream.wait_for_query(f"gone{number}-4.example")
        if number % 2:
            client.send_bytes(b"\0")
        client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.socket.close()
    wait_until(lambda: (status := daemon.status()) and _waiting(status) == 0, "nothing being under way", 5,
               detail=daemon.status)
    for transport in TRANSPORTS:
        expect_addresses(testbed.ask("gone9-4.example", transport=transport), "192.0.2.1")
    expect_equal(len(testbed.upstream.asked("gone9-4.example")), 1, "the questions for what a lost client asked")
    wait_until(lambda: len(os.listdir(f"/proc/{daemon.pid}/fd")) <= before, "the descriptors being as before", 5,
               detail=lambda: (len(os.listdir(f"/proc/{daemon.pid}/fd")), before))


def _waiting(status: dict) -> int:
    return status.get("dns", {}).get("waiting", 0)
