"""IPv6 addresses that are made: failures, what does not exist, and the names of translated addresses (RFC 6147, RFC 8880)."""

import ipaddress

import dns_wire
from dns_checks.registry import check
from dns_checks.shape import expect_addresses, expect_code, expect_negative
from dns_testbed import TCP, TRANSPORTS, DNSTestbed
from dns_upstream import Received, messages
from dns_wire import AAAA, NOERROR, NXDOMAIN, PTR, REFUSED, SERVFAIL, TXT, A
from waiting import expect_equal

PREFIX = "64:ff9b::/96"
#: What a server says to questions about AAAA and A, as response codes or an address, and what comes of it (RFC 6147 §5.1).
CASES = {
    "servfail": (SERVFAIL, "198.51.100.5", "address"), "refused": (REFUSED, "198.51.100.5", "address"),
    "notimp": (4, "198.51.100.5", "address"), "formerr": (1, "198.51.100.5", "address"),
    "nothing": (NOERROR, NOERROR, NOERROR), "absent": (NXDOMAIN, "198.51.100.5", NXDOMAIN),
    # What was asked for second is what counts, when both came to nothing (§5.1.6).
    "second-fails": (NOERROR, SERVFAIL, SERVFAIL), "second-absent": (NOERROR, NXDOMAIN, NXDOMAIN),
    "both-fail": (SERVFAIL, SERVFAIL, SERVFAIL),
}


@check("G9.codes", "failures count as the absence of IPv6 addresses, and what the question for IPv4 finds is the answer",
       lasts=4)
def codes(testbed: DNSTestbed) -> None:
    def script(received: Received) -> bytes:
        said = CASES[received.name.split(".")[0]][0 if received.query.type == AAAA else 1]
        if isinstance(said, str):
            return messages.answer(received.query, [messages.address(said)])
        soa = [messages.start_of_authority(owner="example")] if said in (NOERROR, NXDOMAIN) else []
        return messages.answer(received.query, authority=soa, code=said)

    testbed.upstream.script = script
    testbed.run(TCP, dns64=PREFIX)
    for label, (_, _, expected) in CASES.items():
        for transport in TRANSPORTS:
            answer = testbed.ask(f"{label}.example", AAAA, transport, seconds=8)
            if expected == "address":
                expect_addresses(answer, "64:ff9b::c633:6405", what=label)
            elif expected == SERVFAIL:
                expect_code(answer, SERVFAIL, what=label)
            else:
                expect_negative(answer, expected, label)


@check("G9.pointers", "the names of ipv4only.arpa's addresses are known, translated or not, while there is a prefix")
def pointers(testbed: DNSTestbed) -> None:
    daemon = testbed.run(dns64=PREFIX)
    for transport in TRANSPORTS:
        for address in ("192.0.0.170", "192.0.0.171", "64:ff9b::c000:aa", "64:ff9b::c000:ab"):
            name = ipaddress.ip_address(address).reverse_pointer
            answer = expect_code(testbed.ask(name, PTR, transport), NOERROR)
            expect_equal([(one.kind, dns_wire.text(one.plain)) for one in answer.answers], [(PTR, "ipv4only.arpa")], name)
        name = ipaddress.ip_address("192.0.0.170").reverse_pointer
        expect_negative(testbed.ask(name, TXT, transport), NOERROR)
        expect_negative(testbed.ask(f"x.{name}", PTR, transport), NXDOMAIN)
    testbed.expect_nothing_asked()
    expect_code(testbed.ask(ipaddress.ip_address("192.0.0.172").reverse_pointer, PTR), NOERROR)
    expect_equal(len(testbed.upstream.received), 1, "the questions for the address beside")
    daemon.stop()
    testbed.resign_dns(daemon)
    testbed.run()
    testbed.ask(ipaddress.ip_address("192.0.0.170").reverse_pointer, PTR)
    expect_equal(len(testbed.upstream.received), 2, "the questions without DNS64")


@check("G9.known", "ipv4only.arpa has its addresses of both families, and nobody is asked for them")
def known(testbed: DNSTestbed) -> None:
    testbed.run(dns64="2001:db8:64::/96")
    for transport in TRANSPORTS:
        expect_addresses(testbed.ask("IPv4only.arpa", A, transport), "192.0.0.170", "192.0.0.171")
        expect_addresses(testbed.ask("ipv4only.arpa", AAAA, transport), "2001:db8:64::c000:aa", "2001:db8:64::c000:ab")
        expect_negative(testbed.ask("ipv4only.arpa", TXT, transport), NOERROR)
        expect_negative(testbed.ask("x.ipv4only.arpa", A, transport), NXDOMAIN)
    testbed.expect_nothing_asked()
