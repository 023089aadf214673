"""Names that the proxy itself knows something about (RFC 6761, RFC 6303, RFC 9462), and addresses of the inside."""

import ipaddress

import dns_wire
from dns_checks.registry import check
from dns_checks.shape import expect_addresses, expect_code, expect_negative, minimum_of
from dns_testbed import TRANSPORTS, UDP, DNSTestbed
from dns_upstream import messages
from dns_wire import NOERROR, NXDOMAIN
from waiting import expect, expect_equal

#: A route of its own for a domain: the second upstream.
INSIDE = "udp://127.0.0.3:53"


def _route(*domains: str) -> "list[dict]":
    return [{"domains": list(domains), "upstreams": ["second"]}]


@check("G1", "localhost is this machine, invalid and test do not exist")
def loopback(testbed: DNSTestbed) -> None:
    testbed.run()
    for transport in TRANSPORTS:
        for name in ("localhost", "www.localhost", "a.b.LocalHost"):
            expect_addresses(testbed.ask(name, dns_wire.A, transport), "127.0.0.1")
            expect_addresses(testbed.ask(name, dns_wire.AAAA, transport), "::1")
            for kind in (dns_wire.MX, dns_wire.HTTPS, dns_wire.TXT):
                expect_negative(testbed.ask(name, kind, transport), NOERROR, f"the answer to {name} type {kind}")
        for name in ("invalid", "www.invalid", "test", "www.test"):
            for kind in (dns_wire.A, dns_wire.AAAA, dns_wire.TXT):
                expect_negative(testbed.ask(name, kind, transport), NXDOMAIN, f"the answer to {name} type {kind}")
    # What only begins or ends like that is like any other.
    testbed.upstream.script = lambda received: messages.answer(received.query, [messages.address("192.0.2.1")])
    for name in ("localhost.example", "notlocalhost.example", "mytest.example", "xinvalid.example"):
        expect_addresses(testbed.ask(name), "192.0.2.1", what=f"the answer to {name}")
    expect_equal(len(testbed.upstream.received), 4, "the questions that were sent on")


@check("G2", "onion, local, alt and home.arpa do not exist and are not asked about")
def not_delegated(testbed: DNSTestbed) -> None:
    testbed.run()
    for transport in TRANSPORTS:
        for domain in ("onion", "local", "alt", "home.arpa"):
            for name in (domain, f"www.{domain}", f"_dns.a.b.{domain}".upper()):
                for kind in (dns_wire.A, dns_wire.AAAA, dns_wire.SRV, dns_wire.HTTPS, dns_wire.NS):
                    expect_code(testbed.ask(name, kind, transport), NXDOMAIN, what=f"the answer to {name} type {kind}")
    testbed.expect_nothing_asked()


@check("G2.routed", "local, alt and home.arpa are asked about where a route leads, onion nowhere")
def routed(testbed: DNSTestbed) -> None:
    inside = testbed.upstream.udp(53, "127.0.0.3")
    testbed.run([UDP, INSIDE], routes=_route("local", "home.arpa", "alt", "onion", "10.in-addr.arpa"))
    for name in ("printer.local", "host.home.arpa", "x.alt"):
        expect_addresses(testbed.ask(name), "192.0.2.1", what=f"the answer to {name}")
    expect_code(testbed.ask("x.onion"), NXDOMAIN)
    expect_code(testbed.ask("1.2.3.10.in-addr.arpa", dns_wire.PTR), NOERROR)
    expect_equal([one.name for one in inside.received],
                 ["printer.local", "host.home.arpa", "x.alt", "1.2.3.10.in-addr.arpa"], "the questions of the route")
    expect_equal(len(testbed.upstream.received), 4, "all questions")


def _reverse(address: str) -> str:
    return ipaddress.ip_address(address).reverse_pointer


@check("G3", "reverse names of private addresses do not exist and are not asked about")
def reverse_names(testbed: DNSTestbed) -> None:
    testbed.run()
    private = ["10.1.2.3", "192.168.7.9", "127.0.0.1", "169.254.1.1", "192.0.2.55", "198.51.100.4", "203.0.113.9",
               "255.255.255.255", "0.1.2.3", "172.16.0.1", "172.31.255.255", "100.64.0.1", "100.127.1.1",
               "fd00::1", "fe80::1", "fe90::1", "fea0::1", "febf::1", "::", "::1", "2001:db8::1"]
    for transport in TRANSPORTS:
        for address in private:
            answer = testbed.ask(_reverse(address), dns_wire.PTR, transport)
            expect_negative(answer, NXDOMAIN, f"the answer to {address}'s name")
            apex = dns_wire.text(answer.authority[0].owner)
            expect(_reverse(address).endswith(apex),
                   f"the SOA record is of {apex}, not of a zone of {_reverse(address)}")
            ttl, minimum = minimum_of(answer)
            expect_equal(ttl, minimum, "the SOA record's TTL beside its MINIMUM")
    testbed.expect_nothing_asked()
    for address in ("8.8.8.8", "172.15.0.1", "172.32.0.1", "100.63.0.1", "100.128.0.1", "192.1.1.1", "198.51.101.1",
                    "2001:db9::1", "fc00::1", "fec0::1", "2606:4700::1"):
        expect_code(testbed.ask(_reverse(address), dns_wire.PTR), NOERROR, what=f"the answer to {address}'s name")
        expect_equal(len(testbed.upstream.asked(_reverse(address))), 1, f"the questions for {address}'s name")


@check("G4", "addresses of single labels are not asked about, their DS, NS and SOA are")
def single_labels(testbed: DNSTestbed) -> None:
    testbed.run()
    for transport in TRANSPORTS:
        for kind in (dns_wire.A, dns_wire.AAAA):
            expect_code(testbed.ask("printer", kind, transport), NXDOMAIN, NOERROR)
        expect_equal(len(testbed.upstream.asked("printer")), 0, "the questions for addresses of a single label")
        for kind in (dns_wire.DS, dns_wire.NS, dns_wire.SOA):
            expect_code(testbed.ask("com", kind, transport), NOERROR)
    found = sorted(one.query.type for one in testbed.upstream.asked("com"))
    expect_equal(found, [dns_wire.NS, dns_wire.SOA, dns_wire.DS], "the types that were asked for")


@check("G5", "use-application-dns.net does not exist when names are filtered")
def canary(testbed: DNSTestbed) -> None:
    testbed.run(rules=["||ads.example^"])
    for transport in TRANSPORTS:
        for kind in (dns_wire.A, dns_wire.AAAA):
            answer = testbed.ask("use-application-dns.net", kind, transport)
            expect_code(answer, NXDOMAIN, NOERROR)
            expect(not answer.answers, f"there is an answer for the canary: {answer}")
    testbed.expect_nothing_asked()


@check("G6", "resolver.arpa has nothing, and is not asked about")
def designated_resolvers(testbed: DNSTestbed) -> None:
    testbed.run()
    for transport in TRANSPORTS:
        for name in ("_dns.resolver.arpa", "resolver.arpa", "x.resolver.arpa"):
            for kind in (dns_wire.SVCB, dns_wire.A, dns_wire.AAAA, dns_wire.HTTPS):
                expect_negative(testbed.ask(name, kind, transport), NOERROR, f"the answer to {name} type {kind}")
    testbed.expect_nothing_asked()


PRIVATE = ["10.0.0.1", "172.16.5.4", "172.31.255.255", "192.168.1.1", "127.0.0.1", "127.255.0.1", "169.254.169.254",
           "0.0.0.0", "0.1.2.3", "100.64.0.1", "::1", "::", "fd00::1", "fc00::1", "fe80::1", "::ffff:10.0.0.1",
           "::ffff:127.0.0.1", "64:ff9b::a00:1", "64:ff9b::7f00:1", "64:ff9b::c0a8:101"]
PUBLIC = ["8.8.8.8", "172.15.0.1", "172.32.0.1", "192.0.2.1", "198.18.0.1", "203.0.113.5", "100.63.0.1", "100.128.0.1",
          "1.0.0.0", "2001:db8::1", "2606:4700::1", "64:ff9b::808:808", "::ffff:8.8.8.8"]


def _by_number(received):
    """The address whose place in the lists the first label says, as an A, AAAA or HTTPS record, or beside an answer."""
    query = received.query
    address = ipaddress.ip_address((PRIVATE + PUBLIC)[int(query.name.split(".")[0][1:])])
    if query.type == dns_wire.HTTPS:
        parameters = [(4 if address.version == 4 else 6, address.packed)]
        return messages.answer(query, [messages.record(dns_wire.HTTPS, dns_wire.service(b"\0", 1, parameters))])
    if query.type == dns_wire.MX:
        data = b"\0\12" + messages.name_bytes("mail.example")
        return messages.answer(query, [messages.record(dns_wire.MX, data)],
                               additional=[messages.address(str(address), owner="mail.example")])
    if query.type == (dns_wire.A if address.version == 4 else dns_wire.AAAA):
        return messages.answer(query, [messages.address(str(address))])
    return messages.answer(query, authority=[messages.start_of_authority()])


@check("G8", "answers that lead to the inside are held back with extended error 15, also from the cache")
def rebinding(testbed: DNSTestbed) -> None:
    testbed.upstream.script = _by_number
    testbed.run()
    for number, text in enumerate(PRIVATE + PUBLIC):
        direct = dns_wire.A if ipaddress.ip_address(text).version == 4 else dns_wire.AAAA
        for kind in (direct, dns_wire.HTTPS, dns_wire.MX):
            for transport in TRANSPORTS:
                answer = testbed.ask(f"n{number}.example", kind, transport, edns=dns_wire.opt())
                if text in PUBLIC:
                    expect(answer.code == NOERROR and len(answer.answers) == 1,
                           f"{text} by type {kind} is lost: {answer}")
                    continue
                expect_code(answer, NOERROR)
                expect(not answer.answers and not answer.additional, f"{text} came by type {kind}: {answer}")
                expect(dns_wire.BLOCKED in answer.edns.errors, f"extended error 15 is not in {answer}")


@check("G8.routed", "servers of a route may lead to the inside, and `rebinding: \"allow\"` lets all")
def rebinding_allowed(testbed: DNSTestbed) -> None:
    testbed.upstream.script = lambda received: messages.answer(received.query, [messages.address("10.1.2.3")])
    testbed.upstream.udp(53, "127.0.0.3")
    daemon = testbed.run([UDP, INSIDE], routes=_route("corp.example"))
    for _ in range(2):
        expect_addresses(testbed.ask("www.corp.example"), "10.1.2.3")
        expect_addresses(testbed.ask("www.example"), what="what leads to the inside without a route")
    daemon.stop()
    testbed.resign_dns(daemon)
    testbed.run(rebinding="allow")
    for _ in range(2):
        expect_addresses(testbed.ask("www.example"), "10.1.2.3")
