"""Defects that other DNS proxies were reported for, each by its smallest input."""

import dns_wire
from dns_checks.registry import check
from dns_checks.shape import (
    HEADER, QUESTION, expect_addresses, expect_code, expect_empty, expect_negative, expect_shape,
)
from dns_client import framed
from dns_testbed import TCP, TRANSPORTS, UDP, DNSTestbed
from dns_upstream import Received, messages, scripts
from dns_wire import AD, FORMERR, NOERROR, NXDOMAIN, RD, SERVFAIL
from waiting import expect, expect_equal, pause


def _long_text(received: Received) -> bytes:
    return messages.answer(received.query, [messages.text(bytes([97 + number]) * 250) for number in range(12)])


@check("R5", "3 KB by TCP are whole although the client takes 512 octets by UDP")
def cut_by_tcp(testbed: DNSTestbed) -> None:
    testbed.upstream.script = _long_text
    testbed.run(TCP)
    for _ in range(2):
        answer = testbed.ask("text.example", dns_wire.TXT, "tcp", edns=dns_wire.opt(512))
        expect(not answer.flags & dns_wire.TC, f"TC is set by TCP: {answer}")
        expect_equal(sum(len(one.data) - 1 for one in answer.answers), 3000, "the octets of text")


@check("R6", "more than 512 octets by UDP without EDNS are cut, cold and warm")
def long_without_tc(testbed: DNSTestbed) -> None:
    testbed.upstream.script = _long_text
    testbed.run(TCP)
    testbed.ask("warm.example", dns_wire.TXT, "tcp")
    for name in ("cold.example", "warm.example", "cold.example"):
        answer = testbed.ask(name, dns_wire.TXT)
        expect(answer.flags & dns_wire.TC and len(answer.bytes) <= 512,
               f"{len(answer.bytes)} octets came for {name}: {answer}")
        expect(answer.edns is None, f"there is an OPT record that nobody asked for: {answer}")


@check("R9", "AD is in no answer from the cache to who did not ask for it")
def leaked_ad(testbed: DNSTestbed) -> None:
    testbed.upstream.script = lambda received: messages.answer(
        received.query, [messages.address("192.0.2.1")], flags=messages.AD | messages.RA)
    testbed.run(trustAD=["main"])
    expect(testbed.ask("www.example", edns=dns_wire.opt(dnssec=True)).flags & AD, "AD is lost for DO")
    expect(testbed.ask("www.example", flags=RD | AD).flags & AD, "AD is lost for a client that sets it")
    answer = testbed.ask("www.example")
    expect(not answer.flags & AD, f"AD leaks: {answer}")


@check("R11", "NXDOMAIN without an authority section is not kept for a day")
def negative_without_soa(testbed: DNSTestbed) -> None:
    testbed.upstream.script = lambda received: messages.answer(received.query, code=NXDOMAIN)
    testbed.run()
    expect_code(testbed.ask("new.example"), NXDOMAIN)
    testbed.upstream.script = scripts.addresses()
    expect_addresses(testbed.ask("new.example"), "192.0.2.1")


@check("R13", "answers by UDP are not asked for again by TCP: an upstream without TCP serves")
def asked_again_by_tcp(testbed: DNSTestbed) -> None:
    # Nearly all that fits, which is no reason either.
    testbed.upstream.script = lambda received: messages.answer(
        received.query, [messages.text(b"x" * 250) for _ in range(4)])
    for listener in testbed.upstream.listeners:
        if listener.transport == "tcp":
            listener.close()
    testbed.run()
    for edns in (None, dns_wire.opt(), dns_wire.opt(dnssec=True)):
        answer = testbed.ask("text.example", dns_wire.TXT, "tcp", edns=edns)
        expect_equal(len(answer.answers), 4, "the records")


@check("R14", "two queries in one segment get two answers, and the connection stays open")
def two_in_a_segment(testbed: DNSTestbed) -> None:
    testbed.run()
    with testbed.client("tcp") as client:
        first, second = HEADER + QUESTION, b"\xab\xce" + HEADER[2:] + QUESTION[:-4] + b"\0\x1c\0\1"
        client.send_bytes(framed(first, second))
        answers = {answer.identifier: answer for answer in (client.receive(), client.receive())}
        expect_addresses(expect_shape(first, answers[0xABCD]), "192.0.2.1")
        expect_addresses(expect_shape(second, answers[0xABCE]), "2001:db8::1")
        expect_addresses(client.exchange(dns_wire.query("third.example")), "192.0.2.1")


@check("R16", "an OPT record that is cut gets FORMERR, not silence")
def cut_option(testbed: DNSTestbed) -> None:
    testbed.run()
    query = HEADER[:10] + b"\0\1" + QUESTION + bytes.fromhex("00002904d00000000000040008")
    for transport in TRANSPORTS:
        expect_empty(expect_code(testbed.exchange(query, transport), FORMERR))


@check("R19", "a rule that lets a name through wins over one that blocks its alias")
def allowed_alias(testbed: DNSTestbed) -> None:
    testbed.upstream.script = lambda received: messages.answer(
        received.query, [messages.alias("y.b.com"), messages.address("192.0.2.9", owner="y.b.com")])
    testbed.run(rules=["||b.com^", "@@||x.a.com^"])
    for _ in range(2):
        expect_addresses(testbed.ask("x.a.com"), "192.0.2.9")
        expect_addresses(testbed.ask("z.a.com"), "0.0.0.0")


@check("R20", "HTTPS of a blocked name tells no address")
def https_of_blocked(testbed: DNSTestbed) -> None:
    record = dns_wire.service(b"\0", 1, [(1, b"\2h2"), (4, b"\xc0\0\2\1"), (6, bytes(15) + b"\2")])
    testbed.upstream.script = lambda received: messages.answer(
        received.query, [messages.record(dns_wire.HTTPS, record)])
    testbed.run(rules=["||ads.example^"])
    for name in ("ads.example", "www.ads.example", "_8443._https.ads.example"):
        expect_negative(testbed.ask(name, dns_wire.HTTPS), NOERROR)
    expect_equal(len(testbed.upstream.received), 0, "the questions that were sent on")


@check("R23", "HTTPS records with keys out of order or twice are not passed on and not kept", lasts=2)
def service_keys(testbed: DNSTestbed) -> None:
    bad = {"order.example": [(4, b"\xc0\0\2\1"), (1, b"\2h2")], "twice.example": [(1, b"\2h2"), (1, b"\2h2")]}
    testbed.upstream.script = lambda received: messages.answer(received.query, [
        messages.record(dns_wire.HTTPS, dns_wire.service(b"\0", 1, bad[received.name]))])
    testbed.run(TCP, timeoutSeconds=1)
    for name in bad:
        expect_empty(expect_code(testbed.ask(name, dns_wire.HTTPS), SERVFAIL))
    testbed.upstream.script = lambda received: messages.answer(received.query, [
        messages.record(dns_wire.HTTPS, dns_wire.service(b"\0", 1, [(1, b"\2h2")]))])
    # A failure is kept for a second.
    pause(1.2)
    for name in bad:
        expect_equal(len(expect_code(testbed.ask(name, dns_wire.HTTPS), NOERROR).answers), 1, f"the records of {name}")


@check("R25", "a domain with a route is asked of its upstream alone: also DS, and when that upstream is dead", lasts=3)
def routes(testbed: DNSTestbed) -> None:
    inside = testbed.upstream.udp(53, "127.0.0.3")
    testbed.run([UDP, "udp://127.0.0.3:53"], timeoutSeconds=1,
                routes=[{"domains": ["fritz.box"], "upstreams": ["second"]}])
    for name, kind in (("fritz.box", dns_wire.A), ("fritz.box", dns_wire.DS), ("www.FRITZ.box", dns_wire.AAAA),
                       ("www.fritz.box", dns_wire.DS), ("_ldap._tcp.fritz.box", dns_wire.SRV)):
        expect_code(testbed.ask(name, kind), NOERROR)
    expect_equal(len(inside.received), 5, "the questions of the route")
    for name, kind in ((".", dns_wire.NS), ("box", dns_wire.DS), ("notfritz.box", dns_wire.A),
                       ("fritz.box.example", dns_wire.A)):
        expect_code(testbed.ask(name, kind), NOERROR)
    expect_equal(len(inside.received), 5, "the questions of the route after others")
    inside.close()
    for name, kind in (("dead.fritz.box", dns_wire.A), ("dead.fritz.box", dns_wire.DS)):
        expect_code(testbed.ask(name, kind), SERVFAIL)
    outside = {one.name for one in testbed.upstream.received if one.server[0] == "127.0.0.2"}
    leaked = sorted(name for name in outside if name.endswith("fritz.box") and name != "notfritz.box")
    expect_equal(leaked, [], "the names of the route that the default upstream was asked for")


@check("R26", "the TTL of an alias counts down with that of its target", lasts=2)
def alias_ttl(testbed: DNSTestbed) -> None:
    testbed.upstream.script = lambda received: messages.answer(
        received.query, [messages.alias("to.example", 871), messages.address("192.0.2.1", 563, owner="to.example")])
    testbed.run()
    expect_equal([one.ttl for one in testbed.ask("www.example").answers], [871, 563], "the TTLs")
    pause(2.1)
    first, second = (one.ttl for one in testbed.ask("www.example").answers)
    expect(first in (868, 869) and second == first - 308, f"the TTLs after 2 s are {first} and {second}")


@check("R34", "a blocked answer has an OPT record when the query had one")
def blocked_opt(testbed: DNSTestbed) -> None:
    testbed.run(rules=["||ads.example^"])
    for kind in (dns_wire.A, dns_wire.AAAA, dns_wire.HTTPS, dns_wire.TXT):
        answer = testbed.ask("ads.example", kind, edns=dns_wire.opt())
        expect(answer.edns is not None, f"the OPT record is lost: {answer}")
