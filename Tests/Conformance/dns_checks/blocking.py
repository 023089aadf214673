"""Rules: the shape of what is blocked, aliases and services that lead there, and rules that let through."""

import struct

import dns_wire
from dns_checks.registry import check
from dns_checks.shape import expect_addresses, expect_code, expect_empty, expect_negative, expect_shape, minimum_of
from dns_testbed import TCP, TRANSPORTS, DNSTestbed
from dns_upstream import Received, messages
from dns_wire import AD, CD, NOERROR, NXDOMAIN, RD, REFUSED
from waiting import expect, expect_equal

#: All types that a client may well ask for, but A and AAAA.
OTHER_TYPES = (dns_wire.NS, dns_wire.CNAME, dns_wire.SOA, dns_wire.MX, dns_wire.TXT, dns_wire.SRV, dns_wire.SVCB,
               dns_wire.HTTPS, dns_wire.DS, 99, 65400)


@check("I1", "a blocked name has 0.0.0.0 and ::, one record each, with the name in the client's letters")
def addresses(testbed: DNSTestbed) -> None:
    # Several rules for one name make one record.
    testbed.run(rules=["||ads.example^", "||example.net^", "||b.example.net^", "||ads.example^"])
    for transport in TRANSPORTS:
        for name in ("ads.example", "x.Y.aDs.ExAmPle", "b.example.net", "a.b.example.net"):
            for kind, address in ((dns_wire.A, "0.0.0.0"), (dns_wire.AAAA, "::")):
                query = dns_wire.query(name, kind)
                answer = expect_shape(query, testbed.exchange(query, transport))
                expect(len(answer.answers) == 1 and not answer.authority, f"not one record: {answer}")
                only = answer.answers[0]
                expect_equal((dns_wire.text(only.owner), only.kind, only.address), (name, kind, address), "the record")
                expect(0 < only.ttl <= 3600, f"the TTL of a blocked answer is {only.ttl}")
    for name in ("bads.example", "ads.example.org", "example", "net"):
        expect_code(testbed.ask(name, dns_wire.NS), NOERROR)
        expect_equal(len(testbed.upstream.asked(name)), 1, f"the questions for {name}, which no rule is about,")


@check("I2", "a blocked name has nothing else: NODATA with an SOA record that says for how long")
def other_types(testbed: DNSTestbed) -> None:
    testbed.run(rules=["||ads.example^"])
    blocked = testbed.ask("ads.example").answers[0].ttl
    for transport in TRANSPORTS:
        for kind in OTHER_TYPES:
            answer = expect_negative(testbed.ask("www.ads.example", kind, transport), NOERROR,
                                     f"the answer to type {kind}")
            expect_equal(minimum_of(answer), (blocked, blocked), f"TTL and MINIMUM of the SOA record for type {kind}")
            owner = dns_wire.text(answer.authority[0].owner)
            expect("www.ads.example".endswith(owner), f"the SOA record is of {owner}")
    testbed.expect_nothing_asked()


@check("I2.others", "the other shapes of what is blocked hold for all types alike")
def other_shapes(testbed: DNSTestbed) -> None:
    for blocked in ("nxdomain", "nodata", "refused"):
        daemon = testbed.run(rules=["||ads.example^"], blocked=blocked)
        for transport in TRANSPORTS:
            for kind in (dns_wire.A, dns_wire.AAAA, *OTHER_TYPES):
                query = dns_wire.query("Www.ads.example", kind, edns=dns_wire.opt())
                answer = expect_shape(query, testbed.exchange(query, transport))
                if blocked == "refused":
                    expect_empty(expect_code(answer, REFUSED))
                else:
                    expect_negative(answer, NXDOMAIN if blocked == "nxdomain" else NOERROR, f"type {kind} as {blocked}")
                expect(set(answer.edns.errors) & {dns_wire.BLOCKED, dns_wire.FILTERED}, f"no extended error: {answer}")
        daemon.stop()
        testbed.resign_dns(daemon)
    testbed.run()


@check("I3", "blocked answers: RA=1, AD=0, RD and CD as they came")
def flags(testbed: DNSTestbed) -> None:
    testbed.run(rules=["||ads.example^"], trustAD=["main"])
    for transport in TRANSPORTS:
        for bits in (0, RD, CD, RD | CD, RD | AD, RD | AD | CD):
            for edns in (None, dns_wire.opt(dnssec=True)):
                for kind in (dns_wire.A, dns_wire.MX):
                    query = dns_wire.query("ads.example", kind, flags=bits, edns=edns)
                    answer = expect_shape(query, testbed.exchange(query, transport))
                    expect(not answer.flags & AD, f"what is blocked is not authentic: {answer}")
                    expect_addresses(answer, *(["0.0.0.0"] if kind == dns_wire.A else []))


HINTS = [(1, b"\2h2\2h3"), (3, b"\x20\xfb"), (4, b"\xc0\0\2\1\xc0\0\2\2\xc6\x33\x64\7"), (5, b"\xfe" * 60),
         (6, bytes.fromhex("20010db8") + bytes(11) + b"\1" + bytes.fromhex("20010db8") + bytes(11) + b"\2"),
         (7, b"/dns-query{?dns}"), (400, b"what nobody knows"), (65280, b""), (65534, bytes(range(256)))]


@check("H1", "HTTPS and SVCB records are passed on to the octet, with hints and keys that nobody knows")
def passed_on(testbed: DNSTestbed) -> None:
    several = [dns_wire.service(b"\0", 1, HINTS), dns_wire.service("other.example", 2, [(0, b"\0\1\0\4"), *HINTS]),
               dns_wire.service("alias.example", 0)]
    testbed.upstream.script = lambda received: messages.answer(
        received.query, [messages.record(received.query.type, one) for one in several])
    testbed.run()
    for transport in TRANSPORTS:
        for kind in (dns_wire.HTTPS, dns_wire.SVCB):
            for time in ("first", "second"):
                answer = testbed.ask("service.example", kind, transport, edns=dns_wire.opt(dnssec=True))
                if answer.flags & dns_wire.TC:
                    expect_equal(transport, "udp", "the transport of an answer that is cut")
                    continue
                expect_equal(sorted(one.data.hex() for one in answer.answers), sorted(one.hex() for one in several),
                             f"the {time} answer by {transport}")


@check("H2", "HTTPS of blocked names is blocked, and so is what leads to one by target or alias")
def targets(testbed: DNSTestbed) -> None:
    def script(received: Received) -> bytes:
        word = received.name.split(".")[0]
        own = dns_wire.service(b"\0", 1, HINTS)
        data = {"target": dns_wire.service("cdn.ads.example", 1, HINTS), "mode": dns_wire.service("ads.example", 0),
                "good": dns_wire.service("cdn.example", 1, HINTS)}.get(word, own)
        return messages.answer(received.query, [messages.record(received.query.type, data)])

    testbed.upstream.script = script
    testbed.run(rules=["||ads.example^", "||self.example^"])
    for transport in TRANSPORTS:
        for kind in (dns_wire.HTTPS, dns_wire.SVCB):
            for time in ("first", "second"):
                for name in ("ads.example", "x.ads.example", "self.example", "target.example", "mode.example"):
                    answer = testbed.ask(name, kind, transport)
                    expect_negative(answer, NOERROR, f"the {time} answer to {name} type {kind}")
                answer = testbed.ask("good.example", kind, transport)
                expect_equal(len(answer.answers), 1, f"the records of good.example type {kind}")


def _aliases(received: Received) -> bytes:
    """x.a.com is an alias of y.b.com."""
    query = received.query
    records = [messages.alias("y.B.com")]
    if query.type in (dns_wire.A, dns_wire.AAAA):
        records.append(messages.address("192.0.2.9" if query.type == dns_wire.A else "2001:db8::9", owner="y.b.com"))
    elif query.type == dns_wire.HTTPS:
        records.append(messages.record(dns_wire.HTTPS, dns_wire.service(b"\0", 1, HINTS), owner="y.b.com"))
    return messages.answer(query, records)


@check("I5", "an alias of a blocked name is blocked as a whole, in every type and from the cache")
def aliases(testbed: DNSTestbed) -> None:
    testbed.upstream.script = _aliases
    testbed.run(rules=["||b.com^"])
    for transport in TRANSPORTS:
        for time in ("first", "second"):
            for kind, address in ((dns_wire.A, "0.0.0.0"), (dns_wire.AAAA, "::")):
                query = dns_wire.query("X.a.com", kind, edns=dns_wire.opt())
                answer = expect_shape(query, testbed.exchange(query, transport))
                expect_equal([(dns_wire.text(one.owner), one.address) for one in answer.answers if one.kind == kind],
                             [("X.a.com", address)], f"the records of the {time} answer")
                expect_equal(len(answer.answers), 1, "the number of records")
                expect(set(answer.edns.errors) & {dns_wire.BLOCKED, dns_wire.FILTERED}, f"no extended error: {answer}")
            expect_negative(testbed.ask("x.a.com", dns_wire.HTTPS, transport), NOERROR)


@check("I5.allowed", "a rule that lets a name through holds for what its answer leads to")
def allowed(testbed: DNSTestbed) -> None:
    testbed.upstream.script = _aliases
    testbed.run(rules=["||b.com^", "||a.com^", "@@||x.a.com^"])
    for transport in TRANSPORTS:
        for _ in range(2):
            expect_addresses(testbed.ask("x.a.com", transport=transport), "192.0.2.9")
            expect_addresses(testbed.ask("w.x.a.com", transport=transport), "192.0.2.9")
            expect_equal(len(testbed.ask("x.a.com", dns_wire.HTTPS, transport).answers), 2, "the records of type HTTPS")
            for name in ("a.com", "z.a.com", "y.b.com"):
                expect_addresses(testbed.ask(name, transport=transport), "0.0.0.0", what=f"the answer to {name}")


@check("H5", "HTTPS records with parameters twice, out of order or of wrong lengths reach no client", lasts=3)
def broken_parameters(testbed: DNSTestbed) -> None:
    broken = {
        "out of order": dns_wire.service(b"\0", 1, [(4, b"\xc0\0\2\1"), (1, b"\2h2")]),
        "twice": dns_wire.service(b"\0", 1, [(1, b"\2h2"), (1, b"\2h3")]),
        "a hint of 5 octets": dns_wire.service(b"\0", 1, [(4, b"\xc0\0\2\1\0")]),
        "a value beyond the record": dns_wire.service(b"\0", 1) + struct.pack(">HH", 4, 65535) + b"\xc0\0\2\1",
        "half a parameter": dns_wire.service(b"\0", 1, [(1, b"\2h2")]) + b"\0\4\0",
    }
    names = dict(zip((f"n{number}.example" for number in range(len(broken))), broken))
    testbed.upstream.script = lambda received: messages.answer(
        received.query, [messages.record(received.query.type, broken[names[received.name]])])
    testbed.run(TCP, timeoutSeconds=1)
    for name, what in names.items():
        for kind in (dns_wire.HTTPS, dns_wire.SVCB):
            for _ in range(2):
                expect_empty(expect_code(testbed.ask(name, kind), 2, what=f"the answer with parameters {what}"))
