"""The life of connections: idle ones, too many, those that do not read, and those that break off (RFC 7766 §6.2)."""

import os
import socket
import struct
import time

import dns_wire
from dns_checks.registry import check
from dns_checks.shape import expect_addresses
from dns_client import framed
from dns_testbed import TCP, TRANSPORTS, DNSTestbed
from dns_upstream import messages, scripts
from waiting import CheckFailure, expect, expect_equal, pause, wait_until


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
