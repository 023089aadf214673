"""Malformed messages: the lists in dns_malformed, from clients and from the upstream."""

import os
from dataclasses import dataclass

import dns_wire
from dns_checks.registry import check
from dns_checks.shape import code_name, expect_addresses, expect_code, expect_empty
from dns_testbed import TCP, UDP, DNSTestbed
from dns_upstream import Received, scripts
from dns_wire import RCODES, SERVFAIL
from waiting import expect, expect_equal

FOLDER = os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(__file__))), "dns_malformed")


@dataclass(frozen=True)
class Entry:
    """One entry of a list, whose form queries.txt describes."""

    name: str
    reply: str  # a response code, or "drop"
    message: bytes


def read(file: str) -> "list[Entry]":
    """All entries of a list."""
    entries: "list[Entry]" = []
    with open(os.path.join(FOLDER, file)) as lines:
        paragraphs = "".join(line for line in lines if not line.startswith("#")).strip().split("\n\n")
    for paragraph in paragraphs:
        fields: "dict[str, str]" = {}
        for line in paragraph.strip().splitlines():
            if line.startswith(" "):
                fields["hex"] += line
            else:
                key, _, value = line.partition(":")
                fields[key] = value.strip()
        entries.append(Entry(fields["name"], fields["reply"], bytes.fromhex(fields["hex"])))
    return entries


QUERIES, ANSWERS = read("queries.txt"), read("answers.txt")


def expect_reply(entry: Entry, data: "bytes | None", transport: str) -> None:
    """What came for a malformed query must be what the list says: the header, perhaps the question, perhaps OPT."""
    what = f"the answer to {entry.name} by {transport}"
    expect(data, f"{what} did not come, expected {entry.reply}")
    answer = dns_wire.Message.checked(data)
    expect_empty(expect_code(answer, RCODES[entry.reply], what=what), what)
    expect_equal(answer.identifier, int.from_bytes(entry.message[:2], "big"), f"the ID of {what}")
    expect_equal(answer.opcode, entry.message[2] >> 3 & 15, f"the opcode of {what}")
    expect(answer.flags & dns_wire.QR and not answer.flags & (dns_wire.TC | dns_wire.AA),
           f"the flags of {what}: {answer}")
    if answer.questions:
        asked = entry.message[12:answer.question_end]
        expect_equal(answer.bytes[12:answer.question_end].hex(), asked.hex(), f"the question of {what}")


@check("M1.udp", "every malformed query by UDP gets its documented answer, and a good one after it")
def queries_by_udp(testbed: DNSTestbed) -> None:
    testbed.run()
    expect(len(QUERIES) >= 78, f"{len(QUERIES)} malformed queries are known")
    for family in (4, 6):
        client = testbed.udp(family)
        for entry in QUERIES:
            if entry.reply == "drop":
                testbed.expect_silence(client, [entry.message])
                continue
            client.send(entry.message)
            expect_reply(entry, client.receive_bytes(), f"UDP, IPv{family}")
            expect_addresses(client.exchange(dns_wire.query("localhost")), "127.0.0.1", what=f"after {entry.name}")
    testbed.expect_nothing_asked()


@check("M1.tcp", "every malformed query by TCP gets its documented answer, and a good one after it")
def queries_by_tcp(testbed: DNSTestbed) -> None:
    testbed.run()
    for entry in QUERIES:
        with testbed.client("tcp") as client:
            client.send(entry.message)
            if entry.reply != "drop":
                expect_reply(entry, client.receive_bytes(), "TCP")
                expect_addresses(client.exchange(dns_wire.query("localhost")), "127.0.0.1", what=f"after {entry.name}")
                continue
            # What is no query at all may end the connection, and gets no answer.
            good = dns_wire.query("localhost")
            client.send(good)
            data = client.receive_bytes()
            expect(data is not None and data[:2] in (b"", good[:2]),
                   f"{entry.name} was answered: {data and data.hex()}")
    expect_addresses(testbed.ask("www.example", transport="tcp"), "192.0.2.1")
    expect_equal(len(testbed.upstream.received), 1, "the questions that were sent on")


@check("M1.mixed", "malformed and good queries in one segment: each is answered")
def queries_in_one_segment(testbed: DNSTestbed) -> None:
    testbed.run()
    answered = [entry for entry in QUERIES if entry.reply != "drop"]
    with testbed.client("tcp") as client:
        sent: "dict[int, str]" = {}
        batch = []
        for number, entry in enumerate(answered):
            for identifier, message in ((2 * number, entry.message),
                                        (2 * number + 1, dns_wire.query(f"n{number}.example"))):
                sent[identifier] = entry.reply if identifier % 2 == 0 else "NOERROR"
                batch.append(identifier.to_bytes(2, "big") + message[2:])
        client.send(*batch)
        for _ in batch:
            answer = client.receive()
            wanted = sent.pop(answer.identifier, None)
            expect(wanted is not None, f"an answer to nothing that was asked, or a second one: {answer}")
            expect_equal(code_name(answer.code), wanted, f"the code of the answer {answer}")


def _send_malformed(entry: Entry, received: Received) -> bytes:
    """The malformed answer with the ID of the query that it is for. Its question is that of the list: example.com A."""
    return received.query.message[:2] + entry.message[2:]


@check("M2.udp", "no malformed answer by UDP reaches a client; the right one that comes after it does", lasts=4)
def answers_by_udp(testbed: DNSTestbed) -> None:
    expect(len(ANSWERS) >= 107, f"{len(ANSWERS)} malformed answers are known")
    testbed.run(cache={"maxBytes": 0}, timeoutSeconds=3)
    for entry in ANSWERS:
        asked = len(testbed.upstream.received)
        testbed.upstream.script = lambda received: [_send_malformed(entry, received), scripts.usual(received.query)]
        for edns in (None, dns_wire.opt()):
            answer = testbed.ask("example.com", edns=edns)
            expect_addresses(answer, "192.0.2.1", what=f"after {entry.name} the answer")
        expect(len(testbed.upstream.received) > asked, "the upstream was not asked")


@check("M2.tcp", "a malformed answer by TCP ends in SERVFAIL inside the deadline, or in the right answer", lasts=4)
def answers_by_tcp(testbed: DNSTestbed) -> None:
    testbed.run(TCP, cache={"maxBytes": 0}, timeoutSeconds=2)
    for entry in ANSWERS:
        testbed.upstream.script = lambda received: _send_malformed(entry, received)
        asked = len(testbed.upstream.received)
        answer = testbed.ask("example.com", transport="tcp", seconds=4)
        expect_empty(expect_code(answer, SERVFAIL, what=f"after {entry.name} the answer"))
        # Without a cache no failure is kept either.
        expect(len(testbed.upstream.received) > asked, "the upstream was not asked")


@check("M2.late", "malformed answers alone by UDP end in SERVFAIL inside the deadline", lasts=6)
def only_malformed(testbed: DNSTestbed) -> None:
    by_name = {entry.name: entry for entry in ANSWERS}
    testbed.run(UDP, cache={"maxBytes": 0}, timeoutSeconds=1)
    for entry in (by_name["two-questions"], by_name["owner-pointer-loop"], by_name["https-key-twice"]):
        testbed.upstream.script = lambda received: [_send_malformed(entry, received)] * 3
        answer = testbed.ask("example.com", edns=dns_wire.opt(), seconds=3)
        expect_empty(expect_code(answer, SERVFAIL, what=f"after {entry.name} the answer"))
        codes = set(answer.edns.errors)
        expect(codes & {dns_wire.NO_REACHABLE_AUTHORITY, dns_wire.NETWORK_ERROR},
               f"no extended error 22 or 23: {answer}")
