"""EDNS: OPT records, their versions and options, extended errors (RFC 6891, RFC 8914)."""

import dns_wire
from dns_checks.registry import check
from dns_checks.shape import expect_addresses, expect_code, expect_empty
from dns_testbed import TRANSPORTS, UDP, DNSTestbed
from dns_upstream import Received, messages, scripts
from dns_wire import BADVERS, FORMERR, NXDOMAIN, RD, REFUSED, SERVFAIL, Message
from waiting import expect, expect_equal

#: Options that concern one hop only: their data as a client sends it.
HOP_OPTIONS = {dns_wire.NSID: b"", dns_wire.COOKIE: b"12345678", dns_wire.KEEPALIVE: b"", dns_wire.PADDING: bytes(20)}


def all_kinds(received: Received) -> "bytes | None":
    """Every kind of answer, by the first label of the name; with an OPT record of the upstream's own in each."""
    query = received.query
    options = [(dns_wire.NSID, b"upstream"), (dns_wire.COOKIE, bytes(16)), (dns_wire.PADDING, bytes(50)),
               (65001, b"own")]
    own = [messages.options_record(4096, options=options)] if query.edns else []
    word = query.name.split(".")[0].split("-")[0]
    codes = {"absent": NXDOMAIN, "fails": SERVFAIL, "refused": REFUSED}
    soa = [messages.start_of_authority()]
    if word in codes:
        authority = soa if word == "absent" else []
        return messages.answer(query, authority=authority, additional=own, code=codes[word], edns=False)
    if word == "nodata":
        return messages.answer(query, authority=soa, additional=own, edns=False)
    if word == "large":
        records = [messages.text(bytes([65 + number]) * 200) for number in range(12)]
        return messages.answer(query, records, additional=own, edns=False)
    return messages.answer(query, [messages.address("192.0.2.1")], additional=own, edns=False)


def every_answer(testbed: DNSTestbed, transport: str, edns: "bytes | None",
                 round_of: str) -> "dict[str, tuple[bytes, Message]]":
    """What each kind of query is answered with: query and answer by what the answer should be."""
    def name(word: str) -> str:
        return f"{word}-{transport}-{round_of}.example.com"

    def query(of: str, kind: int = dns_wire.A, **parts) -> bytes:
        return dns_wire.query(of, kind, edns=edns, **parts)

    count, records = (1, edns) if edns else (0, b"")
    queries = {
        "a good answer": query(name("good")),
        "a good answer from the cache": query(name("good")),
        "NXDOMAIN": query(name("absent")),
        "NXDOMAIN from the cache": query(name("absent")),
        "NODATA": query(name("nodata")),
        "SERVFAIL": query(name("fails")),
        "SERVFAIL from the cache": query(name("fails")),
        "REFUSED": query(name("refused")),
        "a large answer": query(name("large"), dns_wire.TXT),
        "a large answer from the cache": query(name("large"), dns_wire.TXT),
        "a blocked A": query("blocked.example"),
        "a blocked MX": query("blocked.example", dns_wire.MX),
        "a local answer": query("localhost"),
        "a local NXDOMAIN": query("invalid"),
        "REFUSED for a class": query(name("good"), record_class=dns_wire.CH),
        "NOTIMP": query(name("good"), flags=0x7800),
        "FORMERR without a question": dns_wire.header(7, RD, 0, additional=count) + records,
        "FORMERR with two questions": dns_wire.header(7, RD, 2, additional=count) + dns_wire.question("a.example") * 2
        + records,
        "ANY": query(name("good"), dns_wire.ANY),
    }
    return {what: (query, testbed.exchange(query, transport)) for what, query in queries.items()}


@check("B1", "a query without OPT gets an answer without OPT, whatever the answer is")
def without(testbed: DNSTestbed) -> None:
    testbed.upstream.script = all_kinds
    testbed.run([UDP], rules=["||blocked.example^"])
    for transport in TRANSPORTS:
        # The second round comes after others with OPT: the cache has answers to both.
        for kind, edns in (("alone", None), ("mixed", dns_wire.opt()), ("mixed", None)):
            for what, (_, answer) in every_answer(testbed, transport, edns, kind).items():
                if edns is None:
                    expect(answer.edns is None, f"{what} by {transport} has an OPT record: {answer}")


@check("B2", "a query with OPT gets an OPT record of the proxy's own, whatever the answer is")
def with_opt(testbed: DNSTestbed) -> None:
    testbed.upstream.script = all_kinds
    testbed.run([UDP], rules=["||blocked.example^"])
    for transport in TRANSPORTS:
        for dnssec in (False, True):
            edns = dns_wire.opt(700, dnssec=dnssec)
            # First without: what is kept then has to get an OPT record as well.
            every_answer(testbed, transport, None, str(dnssec))
            for what, (query, answer) in every_answer(testbed, transport, edns, str(dnssec)).items():
                own = answer.edns
                expect(own is not None, f"{what} by {transport} has no OPT record: {answer}")
                expect_equal((own.size, own.version, own.flags), (1232, 0, 0x8000 if dnssec else 0),
                             f"size, version and flags of the OPT record of {what}")
                foreign = [code for code, _ in own.options if code != dns_wire.EXTENDED_ERROR]
                expect_equal(foreign, [], f"the options of {what} by {transport} that nobody asked for")
                if "large" in what and transport == "udp":
                    expect(answer.flags & dns_wire.TC, f"{what} is not cut: {answer}")


@check("B3", "another version of EDNS: BADVERS in version 0, and nobody is asked")
def versions(testbed: DNSTestbed) -> None:
    testbed.run()
    for transport in TRANSPORTS:
        for version in (1, 2, 255):
            answer = testbed.ask("example.com", transport=transport, edns=dns_wire.opt(version=version))
            expect_empty(expect_code(answer, BADVERS))
            expect_equal(answer.edns.version, 0, "the version in the answer")
    testbed.expect_nothing_asked()


@check("B4", "two OPT records, one that is not the root's, one among the answers: FORMERR")
def misplaced(testbed: DNSTestbed) -> None:
    testbed.run()
    good, other = dns_wire.opt(), dns_wire.opt(owner=dns_wire.name("example"))
    question = dns_wire.question("example.com")
    cases = {
        "two OPT records": dns_wire.header(5, RD, additional=2) + question + good + good,
        "an OPT record with a name": dns_wire.header(5, RD, additional=1) + question + other,
        "an OPT record with a pointer": dns_wire.header(5, RD, additional=1) + question + b"\xc0\x0c" + good[1:],
        "an OPT record among the answers": dns_wire.header(5, RD, answers=1) + question + good,
        "an OPT record in the authority section": dns_wire.header(5, RD, authority=1) + question + good,
    }
    for transport in TRANSPORTS:
        for what, query in cases.items():
            expect_empty(expect_code(testbed.exchange(query, transport), FORMERR, what=f"the answer to {what}"))
    testbed.expect_nothing_asked()


@check("B5", "unknown options and flags of EDNS change nothing and are not repeated")
def unknown_options(testbed: DNSTestbed) -> None:
    testbed.run()
    options = dns_wire.option(100, b"what") + dns_wire.option(65001) + dns_wire.option(65534, bytes(100))
    for transport in TRANSPORTS:
        for flags in (0, 0x40, 0x7FFF):
            edns = dns_wire.opt(flags=flags, options=options)
            for name in (f"unknown-{transport}.example", "localhost"):
                answer = expect_code(testbed.ask(name, transport=transport, edns=edns), 0)
                expect_equal((answer.edns.flags, answer.edns.options), (0, ()), "the flags and options of the answer")


@check("B6", "an option that is longer than the OPT record: FORMERR")
def long_options(testbed: DNSTestbed) -> None:
    testbed.run()
    for transport in TRANSPORTS:
        for options in (b"\0\x0a\0\x09" + bytes(8), b"\0\x0a\0", b"\0\x64\xff\xff",
                        dns_wire.option(100, b"ok") + b"\0\x65\0\1"):
            answer = testbed.ask("example.com", transport=transport, edns=dns_wire.opt(options=options))
            expect_empty(expect_code(answer, FORMERR, what=f"the answer to options {options.hex()}"))
    testbed.expect_nothing_asked()


@check("B7", "what concerns one hop is not sent on: cookie, padding, keepalive, NSID, subnet, unknown options")
def hops(testbed: DNSTestbed) -> None:
    testbed.upstream.script = all_kinds
    testbed.run()
    subnet = {dns_wire.CLIENT_SUBNET: b"\0\1\x18\0\xc6\x33\x64", 65001: b"mine"}
    for number, (code, data) in enumerate({**HOP_OPTIONS, **subnet}.items()):
        for transport in TRANSPORTS:
            name = f"good-{number}-{transport}.example"
            edns = dns_wire.opt(4000, options=dns_wire.option(code, data))
            expect_addresses(testbed.ask(name, transport=transport, edns=edns), "192.0.2.1")
            received = testbed.upstream.wait_for_query(name)
            for one in received:
                sent = one.query.edns
                expect(sent is None or sent.option(code) is None, f"option {code} of the client was sent on: {sent}")
                expect(sent is None or sent.payload_size != 4000, "the client's size was sent on")


@check("B18", "extended errors say that it was blocked or that no upstream answers, to who sent OPT", lasts=2)
def extended_errors(testbed: DNSTestbed) -> None:
    testbed.upstream.script = scripts.silence
    testbed.run(timeoutSeconds=1, rules=["||blocked.example^"])
    for transport in TRANSPORTS:
        for name, codes in (("blocked.example", (dns_wire.BLOCKED, dns_wire.FILTERED)),
                            (f"silent-{transport}.example", (dns_wire.NO_REACHABLE_AUTHORITY, dns_wire.NETWORK_ERROR))):
            answer = testbed.ask(name, transport=transport, edns=dns_wire.opt())
            expect(answer.edns and answer.edns.errors and answer.edns.errors[0] in codes,
                   f"the extended error of {name} is not {' or '.join(map(str, codes))}: {answer}")
            expect(testbed.ask(name, transport=transport).edns is None, "there is an OPT record that nobody asked for")


@check("B19", "a client's subnet is not sent on, and one that is not in order is FORMERR")
def subnets(testbed: DNSTestbed) -> None:
    testbed.run()
    bad = {
        "family 3": b"\0\3\x18\0\xc6\x33\x64", "a prefix of 33": b"\0\1\x21\0\xc6\x33\x64\1\1",
        "a scope": b"\0\1\x18\x18\xc6\x33\x64",
        "bits behind the prefix": b"\0\1\x10\0\xc6\x33\x64", "an address that is too long": b"\0\1\x08\0\xc6\x33",
    }
    good = {"24 bits": b"\0\1\x18\0\xc6\x33\x64", "no bits": b"\0\1\0\0", "56 bits of IPv6": b"\0\2\x38\0" + bytes(7)}
    for transport in TRANSPORTS:
        for what, data in bad.items():
            answer = testbed.ask("example.com", transport=transport,
                                 edns=dns_wire.opt(options=dns_wire.option(8, data)))
            expect_code(answer, FORMERR, what=f"the answer to a subnet with {what}")
        testbed.expect_nothing_asked() if transport == "udp" else None
        for what, data in good.items():
            name = f"subnet-{transport}-{len(data)}.example"
            answer = testbed.ask(name, transport=transport, edns=dns_wire.opt(options=dns_wire.option(8, data)))
            expect_addresses(answer, "192.0.2.1", what=f"the answer to a subnet of {what}")
            expect_equal([code for code, _ in answer.edns.options], [], "the options of the answer")
            sent = testbed.upstream.wait_for_query(name)[0].query.edns
            expect(sent is None or sent.option(8) is None, f"the subnet of {what} was sent on: {sent}")
