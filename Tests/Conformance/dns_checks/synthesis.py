"""IPv6 addresses for hosts that have none (RFC 6147, RFC 7050, RFC 8880)."""

import ipaddress

import dns_wire
from dns_checks.registry import check
from dns_checks.shape import expect_addresses, expect_code
from dns_testbed import TCP, DNSTestbed
from dns_upstream import Received, messages, scripts
from dns_wire import AAAA, CNAME, NXDOMAIN, PTR, SERVFAIL, A
from waiting import expect, expect_equal

PREFIX = "64:ff9b::/96"
#: RFC 6052 §2.4: 192.0.2.33 with each length of prefix.
LENGTHS = {
    "2001:db8::/32": "2001:db8:c000:221::", "2001:db8:100::/40": "2001:db8:1c0:2:21::",
    "2001:db8:122::/48": "2001:db8:122:c000:2:2100::", "2001:db8:122:300::/56": "2001:db8:122:3c0:0:221::",
    "2001:db8:122:344::/64": "2001:db8:122:344:c0:2:2100::", "2001:db8:122:344::/96": "2001:db8:122:344::c000:221",
}


@check("G9", "a host with an IPv4 address alone gets an IPv6 address; one that has both keeps its own")
def synthesized(testbed: DNSTestbed) -> None:
    testbed.upstream.script = scripts.by_name({
        "four.example": ["198.51.100.5"], "six.example": ["2001:db8::7"],
        "both.example": ["198.51.100.6", "2001:db8::6"]})
    testbed.run(dns64=PREFIX)
    for transport in ("udp", "tcp"):
        for _ in range(2):
            expect_addresses(testbed.ask("four.example", AAAA, transport), "64:ff9b::c633:6405")
            expect_addresses(testbed.ask("both.example", AAAA, transport), "2001:db8::6")
            expect_addresses(testbed.ask("four.example", A, transport), "198.51.100.5")
    expect_addresses(testbed.ask("six.example", AAAA), "2001:db8::7")
    expect_code(testbed.ask("none.example", AAAA), NXDOMAIN)


@check("G9.lengths", "addresses are made with prefixes of every length as RFC 6052 says")
def lengths(testbed: DNSTestbed) -> None:
    testbed.upstream.script = scripts.by_name({"host.example": ["192.0.2.33"]})
    for prefix, expected in LENGTHS.items():
        daemon = testbed.run(dns64=prefix)
        answer = testbed.ask("host.example", AAAA)
        expect_equal([ipaddress.ip_address(one) for one in answer.addresses], [ipaddress.ip_address(expected)],
                     f"the address with {prefix}")
        daemon.stop()
        testbed.resign_dns(daemon)


@check("G9.alias", "aliases stay in an answer that is made, and lead to what is made")
def alias(testbed: DNSTestbed) -> None:
    def script(received: Received) -> bytes:
        records = [messages.alias("to.example", 100)]
        if received.query.type == A:
            records.append(messages.address("198.51.100.5", 50, owner="to.example"))
        return messages.answer(received.query, records)

    testbed.upstream.script = script
    testbed.run(dns64=PREFIX)
    answer = expect_addresses(testbed.ask("www.example", AAAA), "64:ff9b::c633:6405")
    expect_equal([one.kind for one in answer.answers], [CNAME, AAAA], "the records")


@check("G9.mapped", "an IPv6 address that only holds an IPv4 address is none; a host that fails gets nothing")
def mapped(testbed: DNSTestbed) -> None:
    def script(received: Received) -> bytes:
        if received.name == "fails.example":
            return messages.answer(received.query, code=SERVFAIL)
        return messages.answer(received.query, [messages.address(
            "198.51.100.5" if received.query.type == A else "::ffff:198.51.100.5")])

    testbed.upstream.script = script
    testbed.run(TCP, dns64=PREFIX, rebinding="allow")
    expect_addresses(testbed.ask("mapped.example", AAAA), "64:ff9b::c633:6405")
    expect_code(testbed.ask("fails.example", AAAA, seconds=8), SERVFAIL)


@check("G9.checked", "who checks signatures gets no address that was made (DO and CD)")
def checked(testbed: DNSTestbed) -> None:
    testbed.upstream.script = scripts.by_name({"four.example": ["198.51.100.5"]})
    testbed.run(dns64=PREFIX)
    answer = testbed.ask("four.example", AAAA, flags=dns_wire.RD | dns_wire.CD, edns=dns_wire.opt(dnssec=True))
    expect(not answer.addresses, f"an address was made: {answer}")
    made = testbed.ask("four.example", AAAA, flags=dns_wire.RD | dns_wire.AD)
    expect_addresses(made, "64:ff9b::c633:6405")
    expect(not made.flags & dns_wire.AD, f"what was made is said to be authentic: {made}")


@check("G9.reverse", "an address that was made leads back to the name of the IPv4 address")
def reverse(testbed: DNSTestbed) -> None:
    testbed.upstream.script = lambda received: messages.answer(
        received.query, [messages.record(PTR, messages.name_bytes("host.example"))])
    testbed.run(dns64=PREFIX)
    # Documentation's own addresses have no names that may be asked for (RFC 6303).
    name = ipaddress.ip_address("64:ff9b::20.30.40.50").reverse_pointer
    answer = testbed.ask(name, PTR)
    expect_code(answer, 0)
    asked = {received.name for received in testbed.upstream.received}
    expect("50.40.30.20.in-addr.arpa" in asked, f"the upstream was asked for {asked}")


@check("G9.auto", "the network's own prefix is found by ipv4only.arpa, and used")
def discovered(testbed: DNSTestbed) -> None:
    def script(received: Received) -> bytes:
        if received.name == "ipv4only.arpa":
            return messages.answer(received.query, [
                messages.address(text) for text in (
                    ("2001:db8:64::c000:aa", "2001:db8:64::c000:ab") if received.query.type == AAAA
                    else ("192.0.0.170", "192.0.0.171"))])
        return scripts.by_name({"four.example": ["198.51.100.5"]})(received)

    testbed.upstream.script = script
    testbed.run(dns64="auto")
    expect_addresses(testbed.ask("four.example", AAAA), "2001:db8:64::c633:6405")


@check("G9.none", "without a prefix in the network, nothing is made")
def undiscovered(testbed: DNSTestbed) -> None:
    testbed.upstream.script = scripts.by_name({"four.example": ["198.51.100.5"], "ipv4only.arpa": ["192.0.0.170"]})
    testbed.run(dns64="auto")
    answer = testbed.ask("four.example", AAAA)
    expect(answer.code == 0 and not answer.addresses, f"an address was made: {answer}")
