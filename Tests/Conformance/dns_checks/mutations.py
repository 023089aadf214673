"""Messages that were changed at random, with seeds: what can be is answered, and what is passed on is in order."""

import random
import struct

import dns.exception
import dns.message

import dns_wire
from dns_checks.malformed import ANSWERS, QUERIES
from dns_checks.registry import check
from dns_checks.shape import expect_shape
from dns_testbed import TCP, UDP, DNSTestbed
from dns_upstream import Received, messages, scripts
from dns_wire import QR
from waiting import expect, wait_until


def changed(message: bytes, drawn: random.Random) -> bytes:
    """The message with a few octets changed, put in, taken out, or its end lost."""
    data = bytearray(message)
    for _ in range(drawn.choice((1, 1, 1, 2, 3, 6))):
        at = drawn.randrange(len(data) + 1)
        kind = drawn.randrange(6)
        if kind == 0:
            data[at:at + 1] = bytes([drawn.choice((0, 1, 0x0C, 0x3F, 0x40, 0x80, 0xC0, 0xFF, drawn.randrange(256)))])
        elif kind == 1:
            data[at:at] = drawn.randbytes(drawn.choice((1, 2, 4, 11)))
        elif kind == 2:
            del data[at:at + drawn.choice((1, 1, 2, 4, 10))]
        elif kind == 3:
            del data[at:]
        elif kind == 4 and len(data) > at:
            data[at] ^= 1 << drawn.randrange(8)
        elif len(data) >= 12:
            # The counts and the flags are worth more than others.
            struct.pack_into(">H", data, drawn.randrange(1, 6) * 2, drawn.choice((0, 1, 2, 0x0100, 0xFFFF)))
    return bytes(data)


def _sources() -> "list[bytes]":
    options = dns_wire.option(dns_wire.COOKIE, b"12345678")
    options += dns_wire.option(dns_wire.CLIENT_SUBNET, b"\0\1\x18\0\xc6\x33\x64")
    return [
        dns_wire.query("www.example.com"), dns_wire.query("www.example.com", dns_wire.HTTPS, edns=dns_wire.opt()),
        dns_wire.query("a.b.c.d.e.example", edns=dns_wire.opt(options=options, dnssec=True)),
        dns_wire.query("localhost"),
        *(entry.message for entry in QUERIES if len(entry.message) > 11),
    ]


@check("M3.udp", "20,000 queries changed at random: each that has a header and is no answer gets one answer", lasts=10)
def changed_queries(testbed: DNSTestbed) -> None:
    testbed.run(rules=["||blocked.example^"])
    sources, drawn = _sources(), random.Random(20_000)
    with testbed.client("udp") as client:
        for part in range(400):
            waiting = {}
            for number in range(50):
                query = changed(drawn.choice(sources), drawn)
                if len(query) >= 2:
                    query = struct.pack(">H", part << 8 & 0xFF00 | number) + query[2:]
                if len(query) >= 12 and not query[2] & QR >> 8:
                    waiting[query[:2]] = query
                client.send(query)
            while waiting:
                data = client.receive_bytes(6)
                first = next(iter(waiting.values()))
                expect(data is not None, f"{len(waiting)} changed queries got no answer: {first.hex()}")
                query = waiting.pop(data[:2], None)
                expect(query is not None, f"an answer to nothing that may be answered, or a second one: {data.hex()}")
                answer = dns_wire.Message.checked(data)
                expect(answer.flags & QR and answer.opcode == query[2] >> 3 & 15,
                       f"the answer to {query.hex()} has another opcode, or is none: {answer}")


@check("M3.tcp", "10,000 queries changed at random by TCP: each that can be answered gets one answer", lasts=5)
def changed_queries_by_tcp(testbed: DNSTestbed) -> None:
    testbed.run(rules=["||blocked.example^"])
    sources, drawn = _sources(), random.Random(10_000)
    for part in range(50):
        with testbed.client("tcp") as client:
            waiting, batch = {}, []
            for number in range(200):
                query = changed(drawn.choice(sources), drawn)
                # What is no query at all may end the connection.
                if len(query) >= 12 and not query[2] & QR >> 8:
                    batch.append(struct.pack(">H", part << 8 & 0xFF00 | number) + query[2:])
                    waiting[batch[-1][:2]] = batch[-1]
            client.send(*batch)
            while waiting:
                answer = client.receive(6)
                query = waiting.pop(answer.bytes[:2], None)
                expect(query is not None, f"an answer to nothing that was asked, or a second one: {answer}")


def _rich(received: Received) -> bytes:
    """An answer with many types of records."""
    query = received.query
    soa = messages.start_of_authority(owner="example")
    parameters = [(0, b"\0\1"), (1, b"\2h2"), (4, b"\xc0\0\2\1"), (6, b"\x20\1" + bytes(14))]
    records = {
        dns_wire.A: [messages.alias("to.example"), messages.address("192.0.2.1", owner="to.example")],
        dns_wire.HTTPS: [messages.record(dns_wire.HTTPS, dns_wire.service("svc.example", 1, parameters))],
        dns_wire.MX: [messages.record(dns_wire.MX, b"\0\12\4mail\xc0\x0c")],
        dns_wire.TXT: [messages.text("some text"), messages.text("more")],
        dns_wire.SRV: [messages.record(dns_wire.SRV, b"\0\1\0\2\1\xbb" + messages.name_bytes("host.example"))],
        dns_wire.NS: [messages.record(dns_wire.NS, b"\2ns\xc0\x0c")],
        dns_wire.SOA: [soa],
    }
    return messages.answer(query, records.get(query.type, []), authority=[] if query.type in records else [soa],
                           additional=[messages.address("192.0.2.53", owner="ns.example")])


KINDS = (dns_wire.A, dns_wire.HTTPS, dns_wire.MX, dns_wire.TXT, dns_wire.SRV, dns_wire.NS, dns_wire.SOA, dns_wire.PTR)


#: What dnspython says of data that is in order but makes no sense, which is the client's to judge.
OPINIONS = ("declared mandatory but not present", "tag is not alphanumeric", "parameters in AliasMode",
            "URI target may not be empty")


def expect_order(query: bytes, data: "bytes | None") -> None:
    """What came must answer the query, and be a message that our reader and dnspython can read."""
    expect(data, "no answer came while the upstream sends changed ones")
    answer = expect_shape(query, dns_wire.Message(data))
    expect((answer.edns is None) == (dns_wire.Message(query).edns is None), f"OPT is lost or was added: {answer}")
    # dnspython has forms of its own for types in other classes.
    records = [one for section in answer.sections for one in section if one.kind != dns_wire.OPT]
    if all(one.record_class == dns_wire.IN for one in records):
        try:
            dns.message.from_wire(data)
        except dns.exception.DNSException as error:
            expect(any(opinion in str(error) for opinion in OPINIONS), f"dnspython cannot read {answer}: {error!r}")


@check("M4.udp", "answers changed at random by UDP: what a client gets is in order and answers its question", lasts=10)
def changed_answers(testbed: DNSTestbed) -> None:
    _ask_often(testbed, UDP, 4000, 44)


@check("M4.tcp", "answers changed at random by TCP: what a client gets is in order and answers its question", lasts=10)
def changed_answers_by_tcp(testbed: DNSTestbed) -> None:
    _ask_often(testbed, TCP, 300, 45)


def _ask_often(testbed: DNSTestbed, upstream: str, count: int, seed: int) -> None:
    drawn = random.Random(seed)

    def script(received: Received) -> list:
        spoiled = changed(_rich(received) if drawn.randrange(4) else drawn.choice(ANSWERS).message, drawn)
        # The ID is right, or it would not be looked at.
        return [received.query.message[:2] + spoiled[2:], scripts.usual(received.query)]

    testbed.upstream.script = script
    testbed.run(upstream, cache={"maxBytes": 0}, timeoutSeconds=2, rebinding="allow")
    with testbed.client("udp") as client:
        for number in range(count):
            edns = dns_wire.opt(dnssec=bool(number % 4 == 1)) if number % 2 else None
            query = dns_wire.query("www.example", KINDS[number % len(KINDS)], edns=edns)
            client.send(query)
            expect_order(query, client.receive_bytes(4))
    testbed.upstream.script = scripts.addresses()
    wait_until(lambda: testbed.ask("after.example").addresses == ["192.0.2.1"], "an answer after changed ones", 5)
