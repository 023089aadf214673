"""The header, the opcode and the question (RFC 1035 §4.1, RFC 8906 §8.1, RFC 9619)."""

import concurrent.futures
import random
import socket
import struct

import dns_wire
from capture import PacketCapture
from dns_checks.registry import check
from dns_checks.shape import expect_addresses, expect_code, expect_empty, expect_shape
from dns_testbed import TRANSPORTS, UDP, DNSTestbed
from dns_upstream import Received, messages, scripts
from dns_wire import CD, FORMERR, NOTIMP, NXDOMAIN, QR, RD, REFUSED, SERVFAIL, Z
from waiting import expect, expect_equal

NOTAUTH = 9
#: Header and question of the list of raw inputs: ID abcd, RD, example.com A.
HEADER, QUESTION = bytes.fromhex("abcd01000001000000000000"), bytes.fromhex("076578616d706c6503636f6d0000010001")


@check("A1", "answers copy ID, opcode, RD, CD and the question's letters; QR=1, RA=1, AA=0, Z=0")
def copies(testbed: DNSTestbed) -> None:
    def script(received: Received) -> bytes:
        # The upstream says that it is the authority, and sets what is reserved.
        if received.name.startswith("absent"):
            return messages.answer(received.query, authority=[messages.start_of_authority()], code=NXDOMAIN,
                                   flags=messages.AA | messages.RA | Z)
        return messages.answer(received.query, [messages.address("192.0.2.7")], flags=messages.AA | Z)

    testbed.upstream.script = script
    testbed.run(rules=["||blocked.example^"])
    kinds = {
        "a forwarded answer": "{}WwW.ExAmPlE.cOm", "an answer that there is nothing": "{}.aBsEnT.example",
        "a blocked answer": "{}.bLoCkEd.ExAmPlE", "a local answer": "{}.LoCaLhOsT", "a local NXDOMAIN": "{}.InVaLiD",
    }
    kinds["an answer that there is nothing"] = "absent{}.eXaMpLe"
    for transport in TRANSPORTS:
        for number, flags in enumerate((RD, 0, RD | CD, CD, RD | Z)):
            for what, pattern in kinds.items():
                name = pattern.format(f"q{number}")
                for time, spelled in (("first", name), ("second", name.swapcase())):
                    query = dns_wire.query(spelled, flags=flags)
                    expect_shape(query, testbed.exchange(query, transport),
                                 what=f"{what} by {transport} to flags {flags:04x}, asked for the {time} time")


@check("A1.errors", "errors copy ID, opcode, RD and the question's letters, too")
def errors(testbed: DNSTestbed) -> None:
    testbed.upstream.script = lambda received: messages.answer(received.query, code=SERVFAIL)
    testbed.run()
    for transport in TRANSPORTS:
        for flags in (RD, 0):
            for what, query in {
                "SERVFAIL": dns_wire.query(f"FaIlS-{transport}.eXample", flags=flags),
                "NOTIMP": dns_wire.query("ExAmPlE.cOm", flags=flags | 0x7800),
                "REFUSED": dns_wire.query("ExAmPlE.cOm", flags=flags, record_class=4),
            }.items():
                answer = testbed.exchange(query, transport)
                expect(answer.code != 0, f"what should be {what} is no error: {answer}")
                if answer.questions:
                    expect_shape(query, answer, what=what)
                expect_equal(answer.identifier, int.from_bytes(query[:2], "big"), f"the ID of {what}")
                expect_equal(answer.opcode, flags >> 11 & 15 if what != "NOTIMP" else 15, f"the opcode of {what}")


@check("A2", "what says to be an answer is dropped")
def answers(testbed: DNSTestbed) -> None:
    testbed.run()
    for family in (4, 6):
        client = testbed.udp(family)
        testbed.expect_silence(client, [dns_wire.query("example.com", flags=flags) for flags in (QR, QR | RD, 0x8583)])
    with testbed.client("tcp") as other:
        good = dns_wire.query("localhost")
        other.send(dns_wire.query("example.com", flags=0x8180), good)
        # The connection may end, too.
        data = other.receive_bytes()
        expect(data is not None and data[:2] in (b"", good[:2]),
               f"an answer by TCP was answered: {data and data.hex()}")
    testbed.expect_nothing_asked()


@check("A2.self", "a query that says to come from the proxy itself makes no loop")
def from_itself(testbed: DNSTestbed) -> None:
    testbed.run()
    with PacketCapture(testbed.network, "lo") as capture:
        for query in (dns_wire.query("localhost"), dns_wire.query("www.example"), HEADER,
                      dns_wire.query("www.example", flags=0x7800)):
            udp = struct.pack(">HHHH", 53, 53, 8 + len(query), 0) + query
            head = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0, b"\x7f\0\0\1", b"\x7f\0\0\1")
            with testbed.network.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW) as raw:
                raw.sendto(head + udp, ("127.0.0.1", 0))
        testbed.upstream.wait_for_query("www.example")
        testbed.expect_answering()
        own = capture.datagrams(lambda one: one.source_port == one.destination_port == 53)
    # Each passes the capture twice; four queries and an answer to each.
    expect(len(own) <= 16, f"{len(own) // 2} datagrams went from port 53 to port 53 for 4 queries")


@check("A3", "two questions or more: FORMERR, and nobody is asked")
def questions(testbed: DNSTestbed) -> None:
    testbed.run()
    for transport in TRANSPORTS:
        for count in (2, 3, 20):
            query = dns_wire.header(0x1234, RD, count) + b"".join(
                dns_wire.question(f"host{number}.example") for number in range(count))
            answer = expect_code(testbed.exchange(query, transport), FORMERR, what=f"the answer to {count} questions")
            expect_empty(answer)
    testbed.expect_nothing_asked()


@check("A4", "no question: FORMERR")
def no_question(testbed: DNSTestbed) -> None:
    testbed.run()
    for transport in TRANSPORTS:
        for query in (dns_wire.header(0x4321, RD, 0), dns_wire.header(0x4321, 0, 0)):
            answer = expect_code(testbed.exchange(query, transport), FORMERR)
            expect_equal(answer.questions, [], "the questions of the answer")
    testbed.expect_nothing_asked()


@check("A5", "an opcode that is not QUERY: NOTIMP with that opcode, and nothing else in it")
def opcodes(testbed: DNSTestbed) -> None:
    testbed.run()
    for transport in TRANSPORTS:
        for opcode in range(1, 16):
            query = dns_wire.query("example.com", flags=RD | opcode << 11)
            answer = testbed.exchange(query, transport)
            allowed = {4: (NOTIMP, REFUSED, NOTAUTH, FORMERR), 5: (NOTIMP, REFUSED, NOTAUTH, FORMERR)}
            expect_code(answer, *allowed.get(opcode, (NOTIMP,)), what=f"the answer to opcode {opcode}")
            expect_equal(answer.opcode, opcode, "the opcode of the answer")
            expect_empty(answer)
    testbed.expect_nothing_asked()


@check("A6", "less than a header is dropped, a header with less than a question is FORMERR")
def cut(testbed: DNSTestbed) -> None:
    testbed.run()
    for query in (dns_wire.query("www.example.com", identifier=0xBEEF),
                  dns_wire.query("www.example.com", identifier=0xBEEF, edns=dns_wire.opt(
                      options=dns_wire.option(dns_wire.COOKIE, b"12345678")))):
        testbed.expect_silence(testbed.udp(), [query[:length] for length in range(12)])
        for transport in TRANSPORTS:
            with testbed.client(transport) as client:
                for length in range(12, len(query)):
                    answer = expect_code(client.exchange(query[:length]), FORMERR,
                                         what=f"the answer to {length} of {len(query)} octets")
                    expect(len(answer.questions) <= 1, f"more than one question in {answer}")
                    expect_empty(answer)
    testbed.expect_nothing_asked()


@check("A6.behind", "octets behind a query: one rule for all of them, an answer or FORMERR")
def octets_behind(testbed: DNSTestbed) -> None:
    testbed.run()
    codes = set()
    for transport in TRANSPORTS:
        for filler in (bytes(100), b"\xff" * 100, b"\0"):
            codes.add(testbed.exchange(dns_wire.query("www.example") + filler, transport).code)
    expect(codes in ({0}, {FORMERR}), f"octets behind queries are answered with the codes {codes}")


@check("A7", "classes other than IN are answered locally: REFUSED or NOTIMP")
def classes(testbed: DNSTestbed) -> None:
    testbed.run()
    for transport in TRANSPORTS:
        for record_class in (dns_wire.CH, 4, 254, 255, 2, 0, 65535):
            answer = testbed.ask("version.bind", dns_wire.TXT, transport, record_class=record_class)
            expect_code(answer, REFUSED, NOTIMP, what=f"the answer to class {record_class}")
            expect_empty(answer)
    testbed.expect_nothing_asked()


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
