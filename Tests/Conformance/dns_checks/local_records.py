"""Records of the configuration: what is answered from them, what wins over what, and what a wrong one says."""

import signal
import subprocess
from typing import Iterable

import dns.rdata
import dns.rdataclass
import dns.rdatatype

import dns_wire
from dns_checks.registry import check
from dns_checks.shape import expect_addresses, expect_code, expect_negative, expect_shape, minimum_of
from dns_testbed import TRANSPORTS, UDP, DNSTestbed
from dns_upstream import Received, messages, scripts
from dns_wire import A, AAAA, CNAME, HTTPS, MX, NOERROR, NXDOMAIN, PTR, SERVFAIL, SRV, TXT
from waiting import expect, expect_equal, wait_until

RECORDS = [
    "nas.home.arpa. 60 IN A 192.168.1.9", "nas.home.arpa. 60 IN A 192.168.1.10", "nas.home.arpa. AAAA fd00::9",
    "www.home.arpa. 120 CNAME nas.home.arpa.", "mail.example 300 IN MX 10 nas.home.arpa.",
    "_ipp._tcp.home.arpa 300 IN SRV 0 5 631 printer.home.arpa.", "text.example. 300 IN TXT \"one; two\" \"three\"",
    "9.1.168.192.in-addr.arpa. 300 IN PTR nas.home.arpa.", "odd.example. TYPE65400 \\# 4 0a0b0c0d",
    "*.wild.example. 300 IN A 192.0.2.70", "own.wild.example. 300 IN TXT own", "*.deep.wild.example. A 192.0.2.71",
    "ads.example. A 192.0.2.80", "router. A 192.168.1.1",
]


def _wire(kind: str, text: str) -> bytes:
    """The data of a record as dnspython writes it."""
    return dns.rdata.from_text(dns.rdataclass.IN, dns.rdatatype.from_text(kind), text).to_wire()


@check("J1", "records of the configuration are answered in every type that they are of, and nobody is asked")
def answered(testbed: DNSTestbed) -> None:
    testbed.run(records=RECORDS)
    expected = {
        ("nas.home.arpa", A): [_wire("A", "192.168.1.9"), _wire("A", "192.168.1.10")],
        ("nas.home.arpa", AAAA): [_wire("AAAA", "fd00::9")],
        ("mail.example", MX): [_wire("MX", "10 nas.home.arpa.")],
        ("_ipp._tcp.home.arpa", SRV): [_wire("SRV", "0 5 631 printer.home.arpa.")],
        ("text.example", TXT): [_wire("TXT", '"one; two" "three"')],
        ("9.1.168.192.in-addr.arpa", PTR): [_wire("PTR", "nas.home.arpa.")],
        ("odd.example", 65400): [b"\x0a\x0b\x0c\x0d"],
        ("router", A): [_wire("A", "192.168.1.1")],
    }
    for transport in TRANSPORTS:
        for (name, kind), data in expected.items():
            for edns in (None, dns_wire.opt(), dns_wire.opt(dnssec=True)):
                query = dns_wire.query(name.title(), kind, edns=edns, flags=dns_wire.RD | dns_wire.AD)
                answer = expect_shape(query, testbed.exchange(query, transport))
                expect_code(answer, NOERROR)
                expect_equal(sorted(one.plain for one in answer.answers), sorted(data), f"the data of {name}")
                expect_equal({dns_wire.text(one.owner) for one in answer.answers}, {name.title()}, "the owner")
                expect(not answer.flags & dns_wire.AD, f"what the configuration says is no proof: {answer}")
                expect_equal(answer.edns is not None, edns is not None, "whether there is an OPT record")
    ttls = {one.ttl for one in testbed.ask("nas.home.arpa").answers}
    expect_equal(ttls, {60}, "the TTLs that are given")
    expect_equal({one.ttl for one in testbed.ask("ads.example").answers}, {300}, "the TTL where none is given")
    testbed.expect_nothing_asked()


@check("J1.nothing", "a name with records has nothing of other types: NODATA with an SOA record")
def nothing(testbed: DNSTestbed) -> None:
    testbed.run(records=RECORDS)
    for transport in TRANSPORTS:
        for name, kinds in (("nas.home.arpa", (MX, TXT, HTTPS, dns_wire.NS, dns_wire.SOA, CNAME)),
                            ("mail.example", (A, AAAA)), ("router", (AAAA,)), ("text.example", (A, 65400)),
                            ("own.wild.example", (A, AAAA)), ("x.wild.example", (AAAA, HTTPS))):
            for kind in kinds:
                answer = expect_negative(testbed.ask(name, kind, transport), NOERROR, f"{name} type {kind}")
                ttl, minimum = minimum_of(answer)
                expect(ttl == minimum and 0 < ttl <= 300, f"the SOA record of {name} lives for {ttl}, {minimum}")
    testbed.expect_nothing_asked()


@check("J1.alias", "aliases are followed: through local records, and out of them as for any name", lasts=2)
def aliases(testbed: DNSTestbed) -> None:
    def script(received: Received) -> bytes:
        query = received.query
        if received.name == "inner.example.net":
            return messages.answer(query, authority=[messages.start_of_authority()], code=NXDOMAIN)
        if received.name == "fails.example.net":
            return messages.answer(query, code=SERVFAIL)
        if received.name == "far.example.net":
            return messages.answer(query, [messages.alias("near.example.net"), messages.address(
                "192.0.2.5" if query.type == A else "2001:db8::5", 77, owner="near.example.net")])
        return scripts.usual(query)

    testbed.upstream.script = script
    testbed.run(rules=["||ads.example^"], records=[
        *RECORDS, "out.example. 200 CNAME far.example.net.", "first.example. 100 CNAME out.example.",
        "gone.example. CNAME inner.example.net.", "bad.example. CNAME fails.example.net.",
        "blocked.example. CNAME x.ads.example.", "inside.example. CNAME _ipp._tcp.home.arpa."])
    for transport in TRANSPORTS:
        answer = testbed.ask("WWW.home.arpa", A, transport)
        expect_equal([(dns_wire.text(one.owner), one.kind, one.ttl) for one in answer.answers],
                     [("WWW.home.arpa", CNAME, 120), ("nas.home.arpa", A, 60), ("nas.home.arpa", A, 60)], "the records")
        answer = testbed.ask("www.home.arpa", CNAME, transport)
        expect_equal([one.kind for one in answer.answers], [CNAME], "the records of type CNAME")
        answer = testbed.ask("www.home.arpa", MX, transport)
        expect_equal([one.kind for one in answer.answers], [CNAME], "the records of type MX")
        expect_equal([(dns_wire.text(one.owner), one.kind) for one in answer.authority],
                     [("nas.home.arpa", dns_wire.SOA)], "what says that there is no more")
        for time in ("first", "second"):
            query = dns_wire.query("First.example", A, edns=dns_wire.opt())
            answer = expect_shape(query, testbed.exchange(query, transport), what=f"the {time} answer")
            expect_equal([(dns_wire.text(one.owner), one.kind) for one in answer.answers],
                         [("First.example", CNAME), ("out.example", CNAME), ("far.example.net", CNAME),
                          ("near.example.net", A)], f"the records of the {time} answer")
            expect_addresses(answer, "192.0.2.5")
            expect(answer.edns is not None, "the OPT record is lost")
        expect_addresses(testbed.ask("out.example", AAAA, transport), "2001:db8::5")
        answer = expect_code(testbed.ask("gone.example", A, transport), NXDOMAIN)
        expect_equal([one.kind for one in answer.answers], [CNAME], "the alias of what does not exist")
        answer = expect_code(testbed.ask("bad.example", A, transport, seconds=8), SERVFAIL)
        expect(not answer.answers, f"a failure with records: {answer}")
        answer = testbed.ask("blocked.example", A, transport)
        expect_equal(answer.addresses, ["0.0.0.0"], "the address behind a blocked target")
    expect_equal(len(testbed.upstream.asked("far.example.net")), 2, "the questions for the target: one for each type")
    expect_equal(len(testbed.upstream.asked("out.example")), 0, "the questions for the alias")


@check("J1.wins", "local records win over rules, routes and what standards say")
def wins(testbed: DNSTestbed) -> None:
    inside = testbed.upstream.udp(53, "127.0.0.3")
    daemon = testbed.run([UDP, "udp://127.0.0.3:53"], rules=["||ads.example^"], records=[
        *RECORDS, "x.corp.example. A 192.0.2.90", "localhost. A 127.0.0.9", "a.onion. A 192.0.2.91"],
        routes=[{"domains": ["corp.example"], "upstreams": ["second"]}])
    for name, address in (("ads.example", "192.0.2.80"), ("x.corp.example", "192.0.2.90"), ("localhost", "127.0.0.9"),
                          ("a.onion", "192.0.2.91"), ("nas.home.arpa", None)):
        answer = testbed.ask(name)
        expect(answer.code == NOERROR and (address is None or answer.addresses == [address]), f"{name}: {answer}")
    # What is beside them is as it was.
    expect_addresses(testbed.ask("x.ads.example"), "0.0.0.0")
    expect_code(testbed.ask("other.home.arpa"), NXDOMAIN)
    expect_code(testbed.ask("y.corp.example"), NOERROR)
    expect_equal([one.name for one in inside.received], ["y.corp.example"], "the questions of the route")
    # The testbed asks for localhost at the end.
    daemon.write(UDP)
    daemon.reload()


@check("J1.wildcard", "a star stands for every name below that has no records of its own; the longest one counts")
def wildcards(testbed: DNSTestbed) -> None:
    testbed.run(records=RECORDS)
    for transport in TRANSPORTS:
        for name, address in (("a.wild.example", "192.0.2.70"), ("A.b.Wild.example", "192.0.2.70"),
                              ("x.deep.wild.example", "192.0.2.71"), ("deep.wild.example", "192.0.2.70"),
                              ("*.wild.example", "192.0.2.70")):
            answer = expect_addresses(testbed.ask(name, A, transport), address, what=name)
            expect_equal(dns_wire.text(answer.answers[0].owner), name, "the owner")
        expect_equal(len(testbed.ask("own.wild.example", TXT, transport).answers), 1, "the name's own records")
    testbed.expect_nothing_asked()
    expect_addresses(testbed.ask("wild.example"), "192.0.2.1")


@check("J1.size", "what does not fit into a datagram is cut by whole sets, and is whole by TCP")
def sizes(testbed: DNSTestbed) -> None:
    texts = [f"big.example. 300 IN TXT \"{number:03d}{'x' * 200}\"" for number in range(30)]
    many = [f"many.example. A 192.0.2.{number}" for number in range(1, 200)]
    testbed.run(records=[*texts, *many, "small.example. CNAME many.example."])
    for name, kind, count in (("big.example", TXT, 30), ("many.example", A, 199), ("small.example", A, 200)):
        for size in (None, 512, 1232, 4096):
            answer = testbed.ask(name, kind, edns=None if size is None else dns_wire.opt(size))
            limit = min(size or 512, 1232)
            expect(len(answer.bytes) <= limit, f"{len(answer.bytes)} octets of {limit}")
            expect(answer.flags & dns_wire.TC, f"it is not said that {name} is cut: {answer}")
            expect(len(answer.answers) in (0, 1), f"half a set of records: {answer}")
        answer = testbed.ask(name, kind, "tcp")
        expect_equal(len(answer.answers), count, f"the records of {name} by TCP")
        expect(not answer.flags & dns_wire.TC, f"cut by TCP: {answer}")


@check("J1.any", "for ANY, a datagram has one set, and a connection has all")
def everything(testbed: DNSTestbed) -> None:
    testbed.run(records=RECORDS)
    expect_equal(len({one.kind for one in testbed.ask("nas.home.arpa", dns_wire.ANY).answers}), 1, "the types by UDP")
    answer = testbed.ask("nas.home.arpa", dns_wire.ANY, "tcp")
    expect_equal(sorted(one.kind for one in answer.answers), [A, A, AAAA], "the types by TCP")


@check("J1.dns64", "an alias that leads to a host with IPv4 alone gets the address that is made for that host")
def translated(testbed: DNSTestbed) -> None:
    testbed.upstream.script = scripts.by_name({"four.example.net": ["198.51.100.5"]})
    testbed.run(dns64="64:ff9b::/96", records=["four.example. CNAME four.example.net."])
    for _ in range(2):
        answer = expect_addresses(testbed.ask("four.example", AAAA), "64:ff9b::c633:6405")
        expect_equal([dns_wire.text(one.owner) for one in answer.answers], ["four.example", "four.example.net"],
                     "the owners")


def _problems(testbed: DNSTestbed, records: "Iterable[str]") -> "list[str]":
    daemon = testbed.configured(UDP, records=list(records))
    testbed.resign_dns(daemon)
    result = subprocess.run([*testbed.command, "check", "--config", daemon.path], capture_output=True, text=True)
    expect_equal(result.returncode, 1, f"the status of a check of {records}: {result.stderr}")
    return result.stderr.splitlines()


@check("J1.wrong", "a record that is wrong is named with its line, its key and what was expected")
def wrong(testbed: DNSTestbed) -> None:
    good = "a.example. A 192.0.2.1"
    for record, part in (("x.example. A 192.0.2", "ldns says"), ("x.example. WHAT 1", "expected a record"),
                         ("x.example. CH TXT x", "class IN"), (good, "is there already"),
                         ("A.Example. 60 IN A 192.0.2.1", "is there already"), ("a.example. CNAME b.example.", "CNAME"),
                         ("x.example. A 192.0.2.1\nb.example. A 192.0.2.2", "one line"), ("", "expected a record")):
        lines = _problems(testbed, [good, record])
        expect(len(lines) == 1 and part in lines[0] and "dns.records[1]" in lines[0], f"{record!r}: {lines}")
        expect(int(lines[0].split(":")[1]) > 1, f"no line for {record!r}: {lines}")
    lines = _problems(testbed, ["a.example. CNAME b.example.", "b.example. CNAME a.example."])
    expect(lines and all("circle" in line for line in lines), f"aliases in a circle: {lines}")
    # Something has to run in the end.
    testbed.run()


@check("J1.reload", "records that are new are answered at once, and those that are gone are forgotten", lasts=2)
def reloaded(testbed: DNSTestbed) -> None:
    daemon = testbed.run(records=["a.example. A 192.0.2.50", "c.example. CNAME far.example.net."])
    expect_addresses(testbed.ask("a.example"), "192.0.2.50")
    expect_addresses(testbed.ask("b.example"), "192.0.2.1")
    expect_equal([one.kind for one in testbed.ask("c.example").answers], [CNAME, A], "the alias's records")
    daemon.write(UDP, records=["b.example. A 192.0.2.51"])
    daemon.signal(signal.SIGHUP)
    wait_until(lambda: testbed.ask("b.example").addresses == ["192.0.2.51"], "the new record", 10, 0.1, daemon.tail)
    expect_addresses(testbed.ask("a.example"), "192.0.2.1")
    expect_equal([one.kind for one in testbed.ask("c.example").answers], [A], "the records of what is no alias now")
    expect_equal(daemon.status()["dns"]["records"], 1, "the records in the status")
