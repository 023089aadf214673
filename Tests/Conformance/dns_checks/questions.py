"""What may be asked for: types, names, the same many times (RFC 3597, RFC 8482, RFC 2181 §11)."""

import concurrent.futures
import random

import dns_wire
from capture import PacketCapture
from dns_checks.registry import check
from dns_checks.shape import HEADER, expect_addresses, expect_code, expect_empty, expect_shape
from dns_testbed import TRANSPORTS, UDP, DNSTestbed
from dns_upstream import Received, messages, scripts
from dns_wire import FORMERR, NOTAUTH, NOTIMP, NXDOMAIN, REFUSED, SERVFAIL
from waiting import expect, expect_equal


@check("A8", "a type that nobody knows is forwarded and answered to the octet")
def unknown_type(testbed: DNSTestbed) -> None:
    # It looks like names with compression, which it is not (RFC 3597 §4).
    data = b"\xc0\x0c\x00\xc0\xff\x03www\xc0\x0c" + bytes(range(256))
    testbed.upstream.script = lambda received: messages.answer(received.query, [messages.record(65400, data)])
    testbed.run()
    for transport in TRANSPORTS:
        for time in ("first", "second"):
            answer = testbed.ask("what.example", 65400, transport)
            expect_equal([(one.kind, one.data.hex()) for one in answer.answers], [(65400, data.hex())],
                         f"the answer by {transport}, asked for the {time} time,")
    expect_equal({one.query.type for one in testbed.upstream.received}, {65400}, "the types that were asked for")


@check("A9", "ANY by UDP is answered with little")
def any_type(testbed: DNSTestbed) -> None:
    def script(received: Received) -> bytes:
        return messages.answer(received.query, [
            *(messages.address(f"192.0.2.{number}") for number in range(1, 40)),
            *(messages.text("x" * 200) for _ in range(20))])

    testbed.upstream.script = script
    testbed.run()
    answer = testbed.ask("example.com", dns_wire.ANY, edns=dns_wire.opt(4096))
    expect_code(answer, 0, NOTIMP, REFUSED)
    sets = {(one.owner, one.kind) for one in answer.answers}
    expect(len(sets) <= 1 or answer.flags & dns_wire.TC, f"more than one record set: {answer}")
    expect(len(answer.bytes) <= 512, f"{len(answer.bytes)} octets answer ANY: {answer}")


@check("A10", "types that are no data, such as AXFR and OPT, are refused and not forwarded")
def meta_types(testbed: DNSTestbed) -> None:
    testbed.run()
    for transport in TRANSPORTS:
        for kind in (dns_wire.OPT, 249, dns_wire.TSIG, dns_wire.IXFR, dns_wire.AXFR):
            answer = testbed.ask("example.com", kind, transport)
            expect_code(answer, NOTIMP, REFUSED, FORMERR, NOTAUTH, what=f"the answer to type {kind}")
            expect_empty(answer)
    testbed.expect_nothing_asked()


@check("A11", "names that are too long, of unknown label types, or with pointers: FORMERR")
def bad_names(testbed: DNSTestbed) -> None:
    testbed.run()
    tail = b"\0\1\0\1"
    cases = {
        "a pointer to itself": "c00c", "a loop of pointers": "0161c00c", "a pointer forward": "c0ff",
        "a pointer into the header": "c000", "label type 01": "4161", "label type 10": "8161",
        "a label of 64 octets": "40" + "61" * 64 + "00",
    }
    messages_by_defect = {what: HEADER + bytes.fromhex(name) + tail for what, name in cases.items()}
    messages_by_defect["a name of 256 octets"] = HEADER + dns_wire.name([b"a" * 63] * 3 + [b"a" * 62]) + tail
    messages_by_defect["a name of 128 labels"] = HEADER + dns_wire.name([b"a"] * 128) + tail
    for transport in TRANSPORTS:
        with testbed.client(transport) as client:
            for what, query in messages_by_defect.items():
                answer = expect_code(client.exchange(query), FORMERR, what=f"the answer to {what}")
                expect(b"\xc0" not in answer.bytes[12:13],
                       f"the name of the question has a pointer: {answer.bytes.hex()}")
    testbed.expect_nothing_asked()


@check("A11.longest", "the longest names that there can be are forwarded")
def longest_names(testbed: DNSTestbed) -> None:
    testbed.run()
    for transport in TRANSPORTS:
        for name in ([b"a" * 63] * 3 + [b"a" * 61], [b"b"] * 127, [b"c" * 63, b"example"]):
            query = dns_wire.query(name)
            expect_addresses(expect_shape(query, testbed.exchange(query, transport)), "192.0.2.1")
            wire = dns_wire.name(name)
            expect(any(one.query.wire_name == wire for one in testbed.upstream.received),
                   f"a name of {len(wire)} octets was not asked for")


@check("A12", "the root and top-level domains are asked about, of the default upstreams")
def short_names(testbed: DNSTestbed) -> None:
    testbed.upstream.script = lambda received: messages.answer(
        received.query, [messages.record(received.query.type, messages.name_bytes("a.root-servers.net"))])
    corp = testbed.upstream.udp(53, "127.0.0.3")
    testbed.run([UDP, "udp://127.0.0.3:53"], routes=[{"domains": ["corp.example"], "upstreams": ["second"]}])
    for transport in TRANSPORTS:
        for name in (".", "com", "example"):
            query = dns_wire.query(name, dns_wire.NS)
            answer = expect_shape(query, testbed.exchange(query, transport))
            expect_equal([one.plain for one in answer.answers], [dns_wire.name("a.root-servers.net")],
                         f"the name servers of {name}")
    expect_equal(len(corp.received), 0, "the queries at the upstream of another domain")


@check("A13", "labels of any octets are forwarded unchanged")
def any_octets(testbed: DNSTestbed) -> None:
    testbed.run()
    labels = [b"\0", b"a\0b", b"with.dot", b"with space", b"_dns", b"\xff\x80\xc0", b"back\\slash", b"\r\n", b'"',
              b"%s%n", bytes(range(1, 64)), b"*", b"-", b"\xc3\xa9"]
    for transport in TRANSPORTS:
        for label in labels:
            name = dns_wire.name([transport.encode(), label, b"example"])
            for time in ("first", "second"):
                query = dns_wire.query(name)
                answer = expect_shape(query, testbed.exchange(query, transport))
                expect_addresses(answer, "192.0.2.1", what=f"the {time} answer by {transport} to label {label!r}")
                expect_equal(dns_wire.text(answer.answers[0].owner).lower(), dns_wire.text(name).lower(), "the owner")
            found = [one for one in testbed.upstream.received if one.query.wire_name.lower() == name.lower()]
            expect(len(found) == 1, f"label {label!r} reached the upstream {len(found)} times, expected once")


@check("A14", "equal questions at the same time are asked once, and each client gets its own answer")
def merged(testbed: DNSTestbed) -> None:
    testbed.upstream.script = scripts.late(0.7)
    testbed.run()
    seed = random.Random(14)

    def one(number: int) -> "tuple[bytes, dns_wire.Message]":
        name = "".join(seed.choice((letter.upper(), letter)) for letter in "many.equal.example")
        query = dns_wire.query(name, edns=dns_wire.opt() if number % 3 else None, identifier=number * 7)
        return query, testbed.exchange(query, TRANSPORTS[number % 5 == 0])

    with concurrent.futures.ThreadPoolExecutor(200) as pool:
        for query, answer in pool.map(one, range(200)):
            expect_addresses(expect_shape(query, answer), "192.0.2.1")
            expect_equal(answer.edns is not None, dns_wire.Message(query).edns is not None,
                         "whether there is an OPT record")
    asked = len(testbed.upstream.asked("many.equal.example"))
    expect(asked == 1, f"200 equal questions at the same time were asked {asked} times")


@check("A15", "a proxy that is its own upstream answers in time, and does not ask without end", lasts=3)
def loop(testbed: DNSTestbed) -> None:
    with PacketCapture(testbed.network, "lo") as capture:
        testbed.run("udp://127.0.0.1:53", timeoutSeconds=2)
        for transport in TRANSPORTS:
            answer = testbed.ask(f"round.{transport}.example", transport=transport, seconds=4)
            expect_code(answer, SERVFAIL, NXDOMAIN)
        count = len(capture.datagrams(lambda one: one.destination_port == 53)) // 2
    expect(count <= 100, f"{count} datagrams came to port 53 for 2 questions")
