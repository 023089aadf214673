"""EDNS, the size of answers, and what belongs to DNSSEC (RFC 6891, RFC 4035 §3.2, RFC 6840 §5.7)."""

import struct

import dns_wire
from dns_checks.headers import TRANSPORTS, expect_nothing_asked
from dns_checks.registry import check
from dns_checks.shape import expect_addresses, expect_code, expect_empty, expect_shape
from dns_testbed import TCP, UDP, DNSTestbed
from dns_upstream import Received, messages, scripts
from dns_wire import AD, BADVERS, CD, FORMERR, NXDOMAIN, RD, REFUSED, SERVFAIL, Message
from waiting import expect, expect_equal

#: Options that concern one hop only: their data as a client sends it.
HOP_OPTIONS = {dns_wire.NSID: b"", dns_wire.COOKIE: b"12345678", dns_wire.KEEPALIVE: b"", dns_wire.PADDING: bytes(20)}


def all_kinds(received: Received) -> "bytes | None":
    """Every kind of answer, by the first label of the name; with an OPT record of the upstream's own in each."""
    query = received.query
    options = [(dns_wire.NSID, b"upstream"), (dns_wire.COOKIE, bytes(16)), (dns_wire.PADDING, bytes(50)), (65001, b"own")]
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


def every_answer(testbed: DNSTestbed, transport: str, edns: "bytes | None", round_of: str) -> "dict[str, tuple[bytes, Message]]":
    """What each kind of query is answered with: query and answer by what the answer should be."""
    def name(word: str) -> str:
        return f"{word}-{transport}-{round_of}.example.com"

    header = dns_wire.header
    queries = {
        "a good answer": dns_wire.query(name("good"), edns=edns), "the same from the cache": dns_wire.query(name("good"), edns=edns),
        "NXDOMAIN": dns_wire.query(name("absent"), edns=edns), "NXDOMAIN from the cache": dns_wire.query(name("absent"), edns=edns),
        "NODATA": dns_wire.query(name("nodata"), edns=edns), "SERVFAIL": dns_wire.query(name("fails"), edns=edns),
        "SERVFAIL from the cache": dns_wire.query(name("fails"), edns=edns),
        "REFUSED": dns_wire.query(name("refused"), edns=edns), "a large answer": dns_wire.query(name("large"), 16, edns=edns),
        "a large answer from the cache": dns_wire.query(name("large"), 16, edns=edns),
        "a blocked A": dns_wire.query("blocked.example", edns=edns),
        "a blocked MX": dns_wire.query("blocked.example", dns_wire.MX, edns=edns),
        "a local answer": dns_wire.query("localhost", edns=edns), "a local NXDOMAIN": dns_wire.query("invalid", edns=edns),
        "REFUSED for a class": dns_wire.query(name("good"), edns=edns, record_class=3),
        "NOTIMP": dns_wire.query(name("good"), edns=edns, flags=0x7800),
        "FORMERR without a question": header(7, RD, 0, additional=1 if edns else 0) + (edns or b""),
        "FORMERR with two questions": header(7, RD, 2, additional=1 if edns else 0) + dns_wire.question("a.example") * 2
        + (edns or b""),
        "ANY": dns_wire.query(name("good"), dns_wire.ANY, edns=edns),
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
    expect_nothing_asked(testbed)


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
    expect_nothing_asked(testbed)


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
        for options in (b"\0\x0a\0\x09" + bytes(8), b"\0\x0a\0", b"\0\x64\xff\xff", dns_wire.option(100, b"ok") + b"\0\x65\0\1"):
            answer = testbed.ask("example.com", transport=transport, edns=dns_wire.opt(options=options))
            expect_empty(expect_code(answer, FORMERR, what=f"the answer to options {options.hex()}"))
    expect_nothing_asked(testbed)


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


@check("B8", "sizes below 512 count as 512, and every size is taken; the proxy's own is 1232")
def sizes(testbed: DNSTestbed) -> None:
    # 440 octets of data: it fits into 512, and not into less.
    testbed.upstream.script = lambda received: messages.answer(received.query, [
        messages.text(b"x" * 200), messages.text(b"y" * 200)])
    testbed.run()
    for size in (0, 1, 100, 511, 512, 1232, 4096, 65535):
        for name in (f"size{size}.example", f"size{size}.example"):
            answer = testbed.ask(name, dns_wire.TXT, edns=dns_wire.opt(size))
            expect(len(answer.answers) == 2 and not answer.flags & dns_wire.TC,
                   f"an answer of less than 512 octets is cut for the size {size}: {answer}")
            expect_equal(answer.edns.size, 1232, "the proxy's own size")
    sent = [one.query.edns for one in testbed.upstream.received]
    expect(all(one is None or one.payload_size == 1232 for one in sent), f"another size was sent to the upstream: {sent}")


def _many_sets(received: Received) -> bytes:
    """Record sets of two records each: a chain of aliases, addresses, and more behind them."""
    query, chain = received.query, [f"alias{number}.many.example" for number in range(8)]
    records = [messages.alias(chain[0])]
    records += [messages.alias(after, owner=before) for before, after in zip(chain, chain[1:])]
    records += [messages.address(f"192.0.2.{number}", owner=chain[-1]) for number in range(1, 31)]
    authority = [messages.record(2, messages.name_bytes(f"ns{number}.many.example"), owner="many.example")
                 for number in range(4)]
    additional = [messages.address(f"192.0.2.{100 + number}", owner=f"ns{number}.many.example") for number in range(4)]
    return messages.answer(query, records, authority=authority, additional=additional)


@check("B9", "answers by UDP are no longer than the client and the proxy allow, and are cut between record sets")
def limits(testbed: DNSTestbed) -> None:
    testbed.upstream.script = _many_sets
    testbed.run()
    whole = testbed.ask("many.example", transport="tcp", edns=dns_wire.opt())
    expect(not whole.flags & dns_wire.TC and len(whole.bytes) > 1232, f"an answer by TCP is {len(whole.bytes)} octets: {whole}")
    previous = -1
    # The first of each size is asked with a name of its own, and is not in the cache.
    for size in [None, *range(512, 1946, 13)]:
        edns = dns_wire.opt(size) if size else None
        limit = min(size or 512, 1232)
        for name in ("many.example", f"{size or 512:04}.example"):
            query = dns_wire.query(name, edns=edns)
            answer = expect_shape(query, testbed.exchange(query), truncated=True, what=f"the answer to size {size}")
            expect(len(answer.bytes) <= limit, f"{len(answer.bytes)} octets came to a client that takes {limit}")
            expect((answer.edns is None) == (size is None), f"the OPT record is lost for size {size}: {answer}")
            for section, complete in zip(answer.sections, whole.sections):
                for one in {(one.owner, one.kind) for one in section if one.kind != dns_wire.OPT}:
                    count = sum((other.owner, other.kind) == one for other in section)
                    wanted = sum((other.owner, other.kind) == one for other in complete)
                    expect(name != "many.example" or count == wanted,
                           f"{count} of {wanted} records of {dns_wire.text(one[0])} TYPE{one[1]} are in an answer of {size}")
            if name == "many.example" and size:
                count = sum(map(len, answer.sections))
                expect(count >= previous, f"size {size} gets {count} records, a smaller one {previous}")
                previous = count


@check("B9.exact", "an answer that just fits is whole, and one octet more is cut")
def exact(testbed: DNSTestbed) -> None:
    # Header and question are 12 + 20, a TXT record is 12 and its strings with their lengths, OPT is 11.
    def script(received: Received) -> bytes:
        return messages.answer(received.query, [messages.record(dns_wire.TXT, _strings(int(received.name[1:5])))], edns=False)

    testbed.upstream.script = script
    testbed.run(TCP)
    for edns, limit in ((None, 512), (dns_wire.opt(512), 512), (dns_wire.opt(900), 900), (dns_wire.opt(4096), 1232)):
        most = limit - 12 - len(dns_wire.question("s0000.example")) - 12 - (11 if edns else 0)
        for length, fits in ((most - 1, True), (most, True), (most + 1, False)):
            for time in ("first", "second"):
                answer = testbed.ask(f"s{length:04}.example", dns_wire.TXT, edns=edns)
                expect_equal((len(answer.answers), bool(answer.flags & dns_wire.TC)), (int(fits), not fits),
                             f"records and TC of {length} octets of data for a limit of {limit}, asked for the {time} time,")


def _strings(length: int) -> bytes:
    """Data of a TXT record of exactly so many octets."""
    data = b""
    while length:
        part = min(length, 256)
        part -= 1 if length - part == 1 else 0  # No empty string at the end.
        data += bytes([part - 1]) + b"t" * (part - 1)
        length -= part
    return data


@check("B10", "answers by TCP are never cut")
def whole_by_tcp(testbed: DNSTestbed) -> None:
    def script(received: Received) -> bytes:
        length = int(received.name[1:6])
        return messages.answer(received.query, [messages.record(dns_wire.TXT, _strings(250)) for _ in range(length // 262)])

    testbed.upstream.script = script
    testbed.run(TCP)
    for length in (600, 3000, 20000, 65000):
        for edns in (dns_wire.opt(512), None, dns_wire.opt(0), dns_wire.opt(1232)):
            query = dns_wire.query(f"l{length:05}.example", dns_wire.TXT, edns=edns)
            answer = expect_shape(query, testbed.exchange(query, "tcp"), what=f"an answer of {length} octets")
            expect_equal(len(answer.answers), length // 262, f"the records of an answer of {length} octets")


@check("B11", "what the upstream cuts by UDP is asked for by TCP, and what was cut is not kept")
def asked_again(testbed: DNSTestbed) -> None:
    def script(received: Received) -> bytes:
        if received.transport == "udp":
            return messages.answer(received.query, flags=messages.TC | messages.RA)
        return messages.answer(received.query, [messages.text("whole" * 40) for _ in range(3)])

    testbed.upstream.script = script
    testbed.run()
    for transport in TRANSPORTS:
        for time in ("first", "second"):
            answer = testbed.ask(f"cut-{transport}.example", dns_wire.TXT, transport, edns=dns_wire.opt())
            expect(len(answer.answers) == 3 and not answer.flags & dns_wire.TC,
                   f"the {time} answer by {transport} is not the whole one: {answer}")
        ways = [one.transport for one in testbed.upstream.asked(f"cut-{transport}.example")]
        expect_equal(ways, ["udp", "tcp"], "the ways by which the upstream was asked")


@check("B12", "an upstream by UDP is not asked by TCP without need")
def no_tcp(testbed: DNSTestbed) -> None:
    testbed.run()
    for number, kind in enumerate((dns_wire.A, dns_wire.AAAA, dns_wire.TXT, dns_wire.MX)):
        expect_code(testbed.ask(f"n{number}.example", kind, edns=dns_wire.opt()), 0)
    expect_equal({one.transport for one in testbed.upstream.received}, {"udp"}, "the ways by which the upstream was asked")
    expect_equal(len(testbed.upstream.connections), 0, "the connections to the upstream")


SIGNATURE = struct.pack(">HBBIIIH", 1, 13, 2, 300, 1893456000, 1577836800, 12345) + dns_wire.name("example") + bytes(range(64))
NEXT = dns_wire.name("next.example") + b"\0\6\x40\0\0\0\0\3"
NEXT3 = b"\1\0\0\1\4salt\x14" + bytes(20) + b"\0\6\x40\0\0\0\0\2"


def _signed(received: Received) -> bytes:
    query = received.query
    kind = query.type
    signature = messages.record(dns_wire.RRSIG, SIGNATURE)
    if query.name.startswith("absent"):
        proofs = [messages.record(dns_wire.NSEC, NEXT, owner="example"), messages.record(dns_wire.NSEC3, NEXT3, owner="aaaa.example"),
                  messages.record(dns_wire.RRSIG, SIGNATURE, owner="example")]
        return messages.answer(query, authority=[messages.start_of_authority(owner="example"), *proofs], code=NXDOMAIN)
    if kind == dns_wire.RRSIG:
        return messages.answer(query, [signature])
    if kind in (dns_wire.NSEC, dns_wire.NSEC3):
        return messages.answer(query, [messages.record(kind, NEXT if kind == dns_wire.NSEC else NEXT3), signature])
    records = [messages.alias("to.example"), signature, messages.address("192.0.2.1", owner="to.example"),
               messages.record(dns_wire.RRSIG, SIGNATURE, owner="to.example")]
    return messages.answer(query, records)


def _kinds(answer: Message) -> "list[int]":
    return [one.kind for section in answer.sections for one in section if one.kind != dns_wire.OPT]


@check("B13", "signatures and proofs only for who asks for them, and then to the octet")
def signatures(testbed: DNSTestbed) -> None:
    testbed.upstream.script = _signed
    testbed.run()
    proofs = {dns_wire.RRSIG, dns_wire.NSEC, dns_wire.NSEC3}
    for transport in TRANSPORTS:
        for edns in (None, dns_wire.opt(), dns_wire.opt(dnssec=True), None, dns_wire.opt(dnssec=True)):
            wanted = edns == dns_wire.opt(dnssec=True)
            answer = testbed.ask("signed.example", transport=transport, edns=edns)
            expect(dns_wire.CNAME in _kinds(answer) and "192.0.2.1" in answer.addresses, f"an alias is lost: {answer}")
            expect_equal(_kinds(answer), [5, 46, 1, 46] if wanted else [5, 1], f"the records for DO={int(wanted)}")
            data = [one.data for one in answer.answers if one.kind == dns_wire.RRSIG]
            expect_equal(data, [SIGNATURE] * len(data), "the signatures")
            negative = testbed.ask("absent.example", transport=transport, edns=edns)
            expect_equal(_kinds(negative), [6, 47, 50, 46] if wanted else [6], f"the records of NXDOMAIN for DO={int(wanted)}")
            found = {one.kind: one.data for one in negative.authority}
            expect(not wanted or (found[47], found[50]) == (NEXT, NEXT3), f"the proofs are not those of the upstream: {negative}")
            for kind in sorted(proofs):
                answer = testbed.ask("signed.example", kind, transport, edns=edns)
                expect(kind in _kinds(answer), f"type {kind} was asked for and is not there: {answer}")


def _authentic(received: Received) -> bytes:
    return messages.answer(received.query, [messages.address("192.0.2.1")], flags=messages.AD | messages.RA)


@check("B14", "AD only from upstreams that are trusted for it, and only for clients that know it")
def authentic(testbed: DNSTestbed) -> None:
    testbed.upstream.script = _authentic
    testbed.run(trustAD=["main"])
    for transport in TRANSPORTS:
        for time in ("first", "second"):
            for flags, edns, wanted in ((RD, None, False), (RD | AD, None, True), (RD, dns_wire.opt(), False),
                                        (RD, dns_wire.opt(dnssec=True), True), (RD | AD, dns_wire.opt(dnssec=True), True),
                                        (RD, None, False)):
                answer = testbed.ask(f"ad-{transport}.example", transport=transport, flags=flags, edns=edns)
                expect(bool(answer.flags & AD) == wanted,
                       f"AD is not {int(wanted)} in the {time} answer to flags {flags:04x}, "
                       f"{'DO' if edns == dns_wire.opt(dnssec=True) else 'no DO'}: {answer}")
    # What says nothing about it gets no AD, whoever asks.
    testbed.upstream.script = scripts.addresses()
    answer = testbed.ask("plain.example", flags=RD | AD, edns=dns_wire.opt(dnssec=True))
    expect(not answer.flags & AD, f"AD is of the proxy's own: {answer}")


@check("B14.untrusted", "AD of an upstream that is not trusted for it reaches nobody")
def not_trusted(testbed: DNSTestbed) -> None:
    testbed.upstream.script = _authentic
    testbed.run()
    for transport in TRANSPORTS:
        for time in ("first", "second"):
            answer = testbed.ask("ad.example", transport=transport, flags=RD | AD, edns=dns_wire.opt(dnssec=True))
            expect(not answer.flags & AD, f"AD in the {time} answer by {transport}: {answer}")


@check("B15", "CD is sent on and repeated, and what was got with it is for nobody else")
def checking_disabled(testbed: DNSTestbed) -> None:
    def script(received: Received) -> bytes:
        return messages.answer(received.query, [messages.address("192.0.2.66" if received.query.flags & CD else "192.0.2.1")])

    testbed.upstream.script = script
    testbed.run()
    for transport in TRANSPORTS:
        for time in ("first", "second"):
            for flags, address in ((RD | CD, "192.0.2.66"), (RD, "192.0.2.1"), (RD | CD, "192.0.2.66")):
                query = dns_wire.query(f"cd-{transport}.example", flags=flags)
                answer = expect_shape(query, testbed.exchange(query, transport), what=f"the {time} answer")
                expect_addresses(answer, address, what=f"the {time} answer to CD={int(bool(flags & CD))}")


@check("B16", "what is kept is kept by name, type, class, DO and CD; letters do not count")
def keys(testbed: DNSTestbed) -> None:
    testbed.run()
    for number, (flags, edns) in enumerate(((RD, None), (RD, dns_wire.opt(dnssec=True)), (RD | CD, None))):
        for kind in (dns_wire.A, dns_wire.AAAA):
            before = len(testbed.upstream.received)
            for name in ("kept.example", "KEPT.example", "kEpT.eXaMpLe"):
                for transport in TRANSPORTS:
                    query = dns_wire.query(name, kind, flags=flags, edns=edns)
                    answer = expect_shape(query, testbed.exchange(query, transport))
                    expect_equal(dns_wire.text(answer.answers[0].owner), name, "the answer's owner")
            expect_equal(len(testbed.upstream.received) - before, 1, f"the questions for key {number}, type {kind}")


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
        "family 3": b"\0\3\x18\0\xc6\x33\x64", "a prefix of 33": b"\0\1\x21\0\xc6\x33\x64\1\1", "a scope": b"\0\1\x18\x18\xc6\x33\x64",
        "bits behind the prefix": b"\0\1\x10\0\xc6\x33\x64", "an address that is too long": b"\0\1\x08\0\xc6\x33",
    }
    good = {"24 bits": b"\0\1\x18\0\xc6\x33\x64", "no bits": b"\0\1\0\0", "56 bits of IPv6": b"\0\2\x38\0" + bytes(7)}
    for transport in TRANSPORTS:
        for what, data in bad.items():
            answer = testbed.ask("example.com", transport=transport, edns=dns_wire.opt(options=dns_wire.option(8, data)))
            expect_code(answer, FORMERR, what=f"the answer to a subnet with {what}")
        expect_nothing_asked(testbed) if transport == "udp" else None
        for what, data in good.items():
            name = f"subnet-{transport}-{len(data)}.example"
            answer = testbed.ask(name, transport=transport, edns=dns_wire.opt(options=dns_wire.option(8, data)))
            expect_addresses(answer, "192.0.2.1", what=f"the answer to a subnet of {what}")
            expect_equal([code for code, _ in answer.edns.options], [], "the options of the answer")
            sent = testbed.upstream.wait_for_query(name)[0].query.edns
            expect(sent is None or sent.option(8) is None, f"the subnet of {what} was sent on: {sent}")
