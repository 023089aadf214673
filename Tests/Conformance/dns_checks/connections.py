"""How many connections there may be, and those that do not read (RFC 7766 §6.2)."""

import os
import socket

import dns_wire
from dns_checks.registry import check
from dns_checks.shape import expect_addresses
from dns_client import framed
from dns_testbed import TCP, DNSTestbed
from dns_upstream import messages
from waiting import expect, expect_equal, pause


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
