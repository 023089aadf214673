"""DO, AD and CD: what belongs to DNSSEC is passed on, and only to who asks for it (RFC 4035 §3.2, RFC 6840 §5.7)."""

import struct

import dns_wire
from dns_checks.registry import check
from dns_checks.shape import expect_addresses, expect_shape
from dns_testbed import TRANSPORTS, DNSTestbed
from dns_upstream import Received, messages, scripts
from dns_wire import AD, CD, NXDOMAIN, RD, Message
from waiting import expect, expect_equal

SIGNATURE = struct.pack(">HBBIIIH", 1, 13, 2, 300, 1893456000, 1577836800,
                        12345) + dns_wire.name("example") + bytes(range(64))
NEXT = dns_wire.name("next.example") + b"\0\6\x40\0\0\0\0\3"
NEXT3 = b"\1\0\0\1\4salt\x14" + bytes(20) + b"\0\6\x40\0\0\0\0\2"


def _signed(received: Received) -> bytes:
    query = received.query
    kind = query.type
    signature = messages.record(dns_wire.RRSIG, SIGNATURE)
    if query.name.startswith("absent"):
        proofs = [messages.record(dns_wire.NSEC, NEXT, owner="example"),
                  messages.record(dns_wire.NSEC3, NEXT3, owner="aaaa.example"),
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
            expect_equal(_kinds(negative), [6, 47, 50, 46] if wanted else [6],
                         f"the records of NXDOMAIN for DO={int(wanted)}")
            found = {one.kind: one.data for one in negative.authority}
            expect(not wanted or (found[47], found[50]) == (NEXT, NEXT3),
                   f"the proofs are not those of the upstream: {negative}")
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
                                        (RD, dns_wire.opt(dnssec=True), True), (RD | AD, dns_wire.opt(dnssec=True),
                                                                                True),
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
        return messages.answer(received.query,
                               [messages.address("192.0.2.66" if received.query.flags & CD else "192.0.2.1")])

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
