"""The header, the opcode, and queries that are none (RFC 1035 §4.1, RFC 8906 §8.1, RFC 9619)."""

import socket
import struct

import dns_wire
from capture import PacketCapture
from dns_checks.registry import check
from dns_checks.shape import HEADER, expect_code, expect_empty, expect_shape
from dns_testbed import TRANSPORTS, DNSTestbed
from dns_upstream import Received, messages
from dns_wire import CD, FORMERR, NOTAUTH, NOTIMP, NXDOMAIN, QR, RD, REFUSED, SERVFAIL, Z
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
