"""What is taken out of HTTPS and SVCB records, and out of all answers without IPv6 (RFC 9460, as dnspython has it)."""

import random
import struct

import dns.rdata
import dns.rdatatype
import dns_wire
from dns_checks.registry import check
from dns_checks.shape import expect_addresses, expect_code, expect_shape, minimum_of
from dns_testbed import TRANSPORTS, DNSTestbed
from dns_upstream import Received, messages
from dns_wire import AAAA, ANY, CNAME, HTTPS, SOA, SVCB, A, Message
from waiting import expect, expect_equal

FORGED, FILTERED = 4, 17


def service(text: str, kind: int = HTTPS) -> bytes:
    """The data of a record that dnspython reads from its text; it refuses parameters that contradict each other."""
    return dns.rdata.from_text("IN", dns.rdatatype.to_text(kind), text).to_wire()


def read(data: bytes, kind: int = HTTPS):
    """A record as dnspython reads it: it takes no keys out of order, nor a mandatory one that is not there."""
    return dns.rdata.from_wire("IN", kind, data, 0, len(data))


def giving(*texts: str, kind: "int | None" = None):
    """A script that answers everything with these records, of the type that is asked for unless it is given."""
    def script(received: Received) -> bytes:
        asked = kind or received.query.type
        return messages.answer(received.query, [messages.record(asked, service(text, asked)) for text in texts])

    return script


def expect_records(answer: Message, *texts: str, kind: int = HTTPS, what: str = "the answer") -> Message:
    """The records of a type in the answer section must be these, octet by octet, in any order."""
    found = [one.data for one in answer.answers if one.kind == kind]
    expect_code(answer, 0, what=what)
    expect_equal(sorted(str(read(one, kind)) for one in found), sorted(str(read(service(one, kind), kind))
                                                                       for one in texts), f"the records of {what}")
    expect_equal(sorted(found), sorted(service(one, kind) for one in texts), f"the octets of {what}")
    return answer


def expect_error(answer: Message, code: "int | None") -> None:
    """The answer, to who sent OPT, must have this extended error, or none."""
    expect_equal(answer.edns.errors, [] if code is None else [code], f"the extended errors of {answer}")


@check("H4", "ech is taken out, mandatory with it, and everything else stays to the octet")
def without_ech(testbed: DNSTestbed) -> None:
    rest = "ipv4hint=192.0.2.1,192.0.2.2 ipv6hint=2001:db8::1 key65280=what"
    given = [f"1 svc.example. mandatory=alpn,ech alpn=h2,h3 port=8443 ech=AAECAwQF {rest}",
             f"2 . mandatory=ech ech=AAEC {rest}", f"3 . alpn=h2 {rest}", "4 . ech=AAEC"]
    left = [f"1 svc.example. mandatory=alpn alpn=h2,h3 port=8443 {rest}", f"2 . {rest}", f"3 . alpn=h2 {rest}", "4 ."]
    testbed.upstream.script = giving(*given)
    testbed.run(https={"ech": "remove"})
    for transport in TRANSPORTS:
        for kind in (HTTPS, SVCB):
            for time in ("first", "second", "third"):
                query = dns_wire.query(f"eCh-{transport}.example", kind, edns=dns_wire.opt())
                answer = expect_shape(query, testbed.exchange(query, transport))
                expect_records(answer, *left, kind=kind, what=f"the {time} answer by {transport}")
                expect_error(answer, FORGED)
    expect(testbed.ask("ech-udp.example", HTTPS).edns is None, "there is an OPT record that nobody asked for")


@check("H4.keep", "nothing is taken out of a record when nobody said so")
def untouched(testbed: DNSTestbed) -> None:
    given = "1 . mandatory=alpn,ech alpn=h2,h3 ech=AAEC ipv6hint=2001:db8::1"
    testbed.upstream.script = giving(given)
    testbed.run(https={"ech": "keep", "removeALPN": ["dot"], "hints": "keep"}, ipv6="allow")
    for _ in range(3):
        expect_error(expect_records(testbed.ask("keep.example", HTTPS, edns=dns_wire.opt()), given), None)


@check("H4.alpn", "protocols are taken out by name; a record that has none left goes, unless there is a default one")
def without_protocols(testbed: DNSTestbed) -> None:
    given = ["1 . alpn=h3,h2", "2 a.example. alpn=h3", "3 b.example. alpn=h3 no-default-alpn",
             "4 c.example. mandatory=alpn alpn=h3", "5 . alpn=h3-29", "6 . alpn=h3,h2 no-default-alpn", "7 . port=443"]
    left = ["1 . alpn=h2", "2 a.example.", "5 . alpn=h3-29", "6 . alpn=h2 no-default-alpn", "7 . port=443"]
    testbed.upstream.script = giving(*given)
    testbed.run(https={"removeALPN": ["h3", "doq"]})
    for transport in TRANSPORTS:
        for _ in range(3):
            expect_records(testbed.ask("alpn.example", HTTPS, transport), *left)
            # Other schemes have no default protocol that is known (RFC 9461 §4.1).
            expect_records(testbed.ask("_dns.alpn.example", SVCB, transport), "1 . alpn=h2", *left[2:], kind=SVCB)


@check("H4.nothing", "when no record is left that is said with SOA and a reason, for as long as they were to live")
def nothing_left(testbed: DNSTestbed) -> None:
    def script(received: Received) -> bytes:
        only = service("1 . alpn=h3 no-default-alpn")
        return messages.answer(received.query, [
            messages.alias("to.example", 900), messages.record(HTTPS, only, 77, owner="to.example")])

    testbed.upstream.script = script
    testbed.run(https={"removeALPN": ["h3"]})
    for transport in TRANSPORTS:
        for _ in range(3):
            answer = expect_code(testbed.ask("only.example", HTTPS, transport, edns=dns_wire.opt()), 0)
            expect_equal([one.kind for one in answer.answers], [CNAME], f"the records of {answer}")
            expect(minimum_of(answer)[0] in range(60, 78) and minimum_of(answer)[1] == 77, f"not for 77 s: {answer}")
            expect_error(answer, FILTERED)
    testbed.expect_asked("only.example", 1, "that there is nothing is kept")


@check("H4.hints", "hints are taken out, mandatory with them, and do not count for what the answer leads to")
def without_hints(testbed: DNSTestbed) -> None:
    hints = "ipv4hint=192.168.1.1 ipv6hint=2001:db8::1"
    testbed.upstream.script = giving(f"1 . mandatory=ipv4hint,ipv6hint alpn=h2 ech=AAEC {hints}")
    testbed.run(https={"hints": "remove"})
    for _ in range(3):
        expect_records(testbed.ask("hints.example", HTTPS), "1 . alpn=h2 ech=AAEC")


@check("H4.alias", "a record that only names another one is not changed, nor is the rest of the message")
def whole_messages(testbed: DNSTestbed) -> None:
    alias = service("0 svc.example.")
    text = bytes(range(256))[:200]

    def script(received: Received) -> bytes:
        # Owners that point into what comes before: the name of a target, which moves when a record gets shorter.
        query = received.query
        own = messages.alias("www.example.com")
        first = messages.record(HTTPS, service("1 svc.example.com. ech=AAECAwQFBgcI alpn=h2"), owner="www.example.com")
        owner = messages.name_bytes("www.example.com")
        start = len(messages.answer(query, edns=False)) + len(own) + len(owner) + 10 + 2
        pointer = (0xC000 | start).to_bytes(2, "big")
        return messages.answer(
            query, [own, first, messages.record(HTTPS, alias, owner="www.example.com")],
            authority=[messages.record(dns_wire.NS, b"\2ns" + pointer, owner=pointer)],
            additional=[messages.address("192.0.2.7", owner=pointer), messages.text(text, owner=b"\1x" + pointer),
                        messages.record(65400, b"\1\2\3", owner="Mixed.Example")])

    testbed.upstream.script = script
    testbed.run(https={"ech": "remove"})
    for time in ("first", "second", "third"):
        answer = testbed.ask("alias.example.com", HTTPS, "tcp", edns=dns_wire.opt())
        found = [[(dns_wire.text(one.owner), one.kind, one.plain) for one in section if one.kind != dns_wire.OPT]
                 for section in answer.sections]
        www = "www.example.com"
        expect_equal(found, [
            [("alias.example.com", CNAME, dns_wire.name(www)), (www, HTTPS, service("1 svc.example.com. alpn=h2")),
             (www, HTTPS, alias)],
            [("svc.example.com", dns_wire.NS, dns_wire.name("ns.svc.example.com"))],
            [("svc.example.com", A, bytes([192, 0, 2, 7])), ("x.svc.example.com", dns_wire.TXT, bytes([200]) + text),
             ("Mixed.Example", 65400, b"\1\2\3")],
        ], f"the records of the {time} answer")


@check("H4.random", "records at random: what is left is what dnspython makes of the same parameters without what goes")
def at_random(testbed: DNSTestbed) -> None:
    source = random.Random(9460)
    values = {"alpn": ["h2", "h3", "h2,h3", "h3,h2,http/1.1"], "port": ["443", "8443"],
              "ipv4hint": ["192.0.2.1", "192.0.2.1,192.0.2.2"], "ech": ["AAEC", "AAECAwQFBgcICQ=="],
              "ipv6hint": ["2001:db8::1", "2001:db8::1,2001:db8::2"], "key7": ["/q{?dns}"], "key300": ["abc"],
              "key65000": ["x" * 60], "key65534": ["y"]}
    given: "dict[str, list[str]]" = {}
    expected: "dict[str, list[str]]" = {}
    for number in range(60):
        name = f"n{number}.example"
        given[name], expected[name] = [], []
        for priority in range(1, source.randint(2, 5)):
            keys = [key for key in values if source.random() < 0.5]
            chosen = {key: source.choice(values[key]) for key in keys}
            listed = [key for key in keys if source.random() < 0.4]
            no_default = "alpn" in keys and source.random() < 0.3
            given[name].append(_text(priority, chosen, listed, no_default))
            left = {key: value for key, value in chosen.items() if key not in ("ech", "ipv6hint")}
            if "alpn" in left:
                left["alpn"] = ",".join(one for one in left["alpn"].split(",") if one != "h3")
                if not left["alpn"]:
                    if no_default or "alpn" in listed:
                        continue
                    del left["alpn"]
            expected[name].append(_text(priority, left, [key for key in listed if key in left], no_default))
    testbed.upstream.script = lambda received: messages.answer(
        received.query, [messages.record(HTTPS, service(one)) for one in given[received.name]])
    testbed.run(https={"ech": "remove", "removeALPN": ["h3"]}, ipv6="block")
    for name, texts in expected.items():
        answer = testbed.ask(name, HTTPS, "tcp", edns=dns_wire.opt())
        expect_records(answer, *texts, what=f"the answer made of {given[name]}")
        expect_error(answer, None if texts == given[name] else FORGED if texts else FILTERED)


def _text(priority: int, values: "dict[str, str]", mandatory: "list[str]", no_default: bool) -> str:
    words = [f"{priority} target.example."] + ([f"mandatory={','.join(mandatory)}"] if mandatory else [])
    words += [f"{key}={value}" for key, value in values.items()]
    return " ".join(words + (["no-default-alpn"] if no_default else []))


@check("H4.reload", "a reload acts at once on what is kept")
def reloaded(testbed: DNSTestbed) -> None:
    testbed.upstream.script = giving("1 . alpn=h2,h3 ech=AAEC")
    daemon = testbed.run()
    expect_records(testbed.ask("reload.example", HTTPS), "1 . alpn=h2,h3 ech=AAEC")
    for https, left in (({"ech": "remove"}, "1 . alpn=h2,h3"), ({"removeALPN": ["h3"]}, "1 . alpn=h2 ech=AAEC"),
                        ({}, "1 . alpn=h2,h3 ech=AAEC")):
        daemon.write("udp://127.0.0.2:53", https=https)
        daemon.reload()
        expect_records(testbed.ask("reload.example", HTTPS), left, what=f"the answer with {https}")


@check("H3", "without IPv6 nobody is asked for IPv6 addresses, there are none, and no record hints at them")
def without_ipv6(testbed: DNSTestbed) -> None:
    def script(received: Received) -> bytes:
        if received.query.type == ANY:
            return messages.answer(received.query, [messages.address("192.0.2.1"), messages.address("2001:db8::1")])
        if received.query.type == A:
            return messages.answer(received.query, [messages.address("192.0.2.1")])
        hints = "ipv4hint=192.0.2.1 ipv6hint=2001:db8::1"
        record = messages.record(HTTPS, service(f"1 svc.example. mandatory=ipv6hint {hints}"))
        return messages.answer(received.query, [record], additional=[
            messages.address("2001:db8::1", owner="svc.example"), messages.address("192.0.2.1", owner="svc.example")])

    testbed.upstream.script = script
    testbed.run(ipv6="block")
    for transport in TRANSPORTS:
        for _ in range(3):
            query = dns_wire.query("Six.example", AAAA, edns=dns_wire.opt(dnssec=True))
            answer = expect_shape(query, testbed.exchange(query, transport))
            expect(answer.code == 0 and [one.kind for one in answer.authority] == [SOA] and not answer.answers,
                   f"not NODATA: {answer}")
            expect_error(answer, FILTERED)
            expect_addresses(testbed.ask("six.example", A, transport), "192.0.2.1")
            https = expect_records(testbed.ask("six.example", HTTPS, transport), "1 svc.example. ipv4hint=192.0.2.1")
            expect_equal([one.kind for one in https.additional], [A], "the records beside it")
    expect(AAAA not in {one.query.type for one in testbed.upstream.received}, "the upstream was asked for addresses")
    expect_addresses(testbed.ask("six.example", ANY, "tcp"), "192.0.2.1")
    expect_addresses(testbed.ask("localhost", AAAA), "::1")


@check("H3.rules", "rules about addresses hold for A, AAAA and hints; what is let through is, also to the inside")
def address_rules(testbed: DNSTestbed) -> None:
    addresses = {"good": "192.0.2.1", "bad": "198.51.100.7", "but": "198.51.100.77", "six": "2001:db8:bad::1",
                 "fine": "2001:db8::1", "nas": "192.168.7.1", "inside": "192.168.8.1", "mapped": "::ffff:198.51.100.7"}

    def script(received: Received) -> bytes:
        one = addresses[received.name.split(".")[0]]
        if received.query.type == HTTPS:
            return giving(f"1 . alpn=h2 ipv{6 if ':' in one else 4}hint={one}")(received)
        return messages.answer(received.query, [messages.address(one)])

    testbed.upstream.script = script
    rules = ["198.51.100.0/24", "||2001:db8:bad::/48^", "@@198.51.100.77", "@@||192.168.7.0/24^"]
    daemon = testbed.run(rules=rules)
    held = {"bad": ["0.0.0.0"], "six": ["::"], "mapped": ["::"], "inside": []}
    for _ in range(3):
        for word, one in addresses.items():
            kind = AAAA if ":" in one else A
            answer = testbed.ask(f"{word}.example", kind, edns=dns_wire.opt())
            expect_addresses(answer, *held.get(word, [one]), what=f"the answer with {one}")
            expect_error(answer, dns_wire.BLOCKED if word in held else None)
            https = testbed.ask(f"{word}.example", HTTPS, edns=dns_wire.opt())
            expect_equal(len(https.answers), 0 if word in held else 1, f"the records with a hint at {one}")
            expect_error(https, dns_wire.BLOCKED if word in held else None)
    daemon.write("udp://127.0.0.2:53", [])
    daemon.reload()
    expect_addresses(testbed.ask("bad.example"), "198.51.100.7", what="the answer when the rules are gone")


#: What stands behind the covered type in an RRSIG record (RFC 4034 §3.1).
SIGNATURE = struct.pack(
    ">BBIIIH", 13, 2, 300, 1893456000, 1577836800, 12345) + dns_wire.name("example") + bytes(range(64))


def _signature(covered: int, owner: "str | None" = None) -> bytes:
    return messages.record(dns_wire.RRSIG, covered.to_bytes(2, "big") + SIGNATURE, owner=owner)


@check("B17", "what was changed is not signed and not authentic any more, and what was not still is")
def signed(testbed: DNSTestbed) -> None:
    def script(received: Received) -> bytes:
        text = "1 . alpn=h2" if received.name.startswith("plain") else "1 . alpn=h2 ech=AAEC"
        return messages.answer(received.query, [
            messages.alias("to.example"), _signature(CNAME), messages.record(HTTPS, service(text), owner="to.example"),
            _signature(HTTPS, "to.example")], flags=messages.RA | messages.AD)

    testbed.upstream.script = script
    testbed.run(https={"ech": "remove"}, trustAD=["main"])
    for transport in TRANSPORTS:
        for _ in range(3):
            edns = dns_wire.opt(dnssec=True)
            answer = testbed.ask("changed.example", HTTPS, transport, edns=edns, flags=dns_wire.RD | dns_wire.AD)
            covered = [one.data[:2] for one in answer.answers if one.kind == dns_wire.RRSIG]
            expect_equal(covered, [b"\0\5"], f"what is signed in {answer}")
            expect(not answer.flags & dns_wire.AD, f"what was changed is said to be authentic: {answer}")
            expect_records(answer, "1 . alpn=h2")
            expect_error(answer, FORGED)
            plain = testbed.ask("plain.example", HTTPS, transport, edns=edns)
            expect_equal(len([one for one in plain.answers if one.kind == dns_wire.RRSIG]), 2, f"signatures of {plain}")
            expect(plain.flags & dns_wire.AD, f"what was not changed is not authentic: {plain}")


@check("B17.made", "addresses that are made for DNS64 are neither signed nor authentic; blocked answers are not either")
def made(testbed: DNSTestbed) -> None:
    def script(received: Received) -> bytes:
        if received.query.type == AAAA:
            return messages.answer(received.query, authority=[messages.start_of_authority()],
                                   flags=messages.RA | messages.AD)
        return messages.answer(received.query, [messages.address("198.51.100.5"), _signature(A)],
                               flags=messages.RA | messages.AD)

    testbed.upstream.script = script
    testbed.run(dns64="64:ff9b::/96", trustAD=["main"], rules=["198.51.100.66", "||blocked.example^"])
    for _ in range(3):
        answer = testbed.ask("made.example", AAAA, edns=dns_wire.opt(dnssec=True))
        expect_addresses(answer, "64:ff9b::c633:6405")
        expect_equal([one.kind for one in answer.answers], [AAAA], f"the records of {answer}")
        expect(not answer.flags & dns_wire.AD, f"what was made is said to be authentic: {answer}")
        blocked = testbed.ask("blocked.example", A, edns=dns_wire.opt(dnssec=True))
        expect(not blocked.flags & dns_wire.AD and len(blocked.answers) == 1, f"not a plain blocked answer: {blocked}")
        own = testbed.ask("own.example", A, edns=dns_wire.opt(dnssec=True))
        expect(own.flags & dns_wire.AD and len(own.answers) == 2, f"what was not changed is not as it came: {own}")
