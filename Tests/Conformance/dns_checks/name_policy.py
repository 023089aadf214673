"""Policy about names: Private Relay, domains that may lead to the inside, single labels, and which list blocks."""

import dns_wire
from dns_checks.registry import check
from dns_checks.shape import expect_addresses, expect_code, expect_negative
from dns_testbed import TRANSPORTS, UDP, DNSTestbed
from dns_upstream import messages
from dns_wire import A, AAAA, HTTPS, NOERROR, NXDOMAIN, TXT
from waiting import expect, expect_equal

RELAY = ("mask.icloud.com", "mask-h2.icloud.com")


@check("G7", "the names of Private Relay do not exist where it is blocked, and are like others where it is not", lasts=2)
def private_relay(testbed: DNSTestbed) -> None:
    daemon = testbed.run(privateRelay="block")
    for transport in TRANSPORTS:
        for name in (*RELAY, "Mask.iCloud.com", "x.mask.icloud.com"):
            for kind in (A, AAAA, HTTPS, TXT):
                answer = expect_negative(testbed.ask(name, kind, transport, edns=dns_wire.opt()), NXDOMAIN, name)
                expect(dns_wire.BLOCKED in answer.edns.errors, f"no extended error: {answer}")
    testbed.expect_nothing_asked()
    for name in ("icloud.com", "www.icloud.com", "unmask.icloud.com"):
        expect_code(testbed.ask(name), NOERROR)
    for privacy in ("allow", None):
        daemon.write(UDP, **({"privateRelay": privacy} if privacy else {}))
        daemon.reload()
        for name in RELAY:
            expect_addresses(testbed.ask(name), "192.0.2.1")


@check("G8.allowed", "domains of `rebindingAllow` may lead to the inside, at once when they are new", lasts=2)
def rebinding_allowed(testbed: DNSTestbed) -> None:
    testbed.upstream.script = lambda received: messages.answer(received.query, [messages.address("10.1.2.3")])
    daemon = testbed.run(rebindingAllow=["plex.direct"])
    for transport in TRANSPORTS:
        for name in ("plex.direct", "a.b.Plex.Direct"):
            expect_addresses(testbed.ask(name, A, transport), "10.1.2.3")
        for name in ("direct", "xplex.direct", "plex.direct.example"):
            answer = testbed.ask(name, A, transport)
            expect(not answer.addresses, f"{name} leads to the inside: {answer}")
    # What is kept is judged by what the configuration says now.
    asked = len(testbed.upstream.received)
    daemon.write(UDP, rebindingAllow=["xplex.direct"])
    daemon.reload()
    expect_addresses(testbed.ask("xplex.direct"), "10.1.2.3")
    expect_addresses(testbed.ask("plex.direct"))
    expect_equal(len(testbed.upstream.received), asked, "the questions, for what was kept")


@check("G4.forward", "with `singleLabels: \"forward\"` addresses of single labels are asked about")
def forwarded_labels(testbed: DNSTestbed) -> None:
    daemon = testbed.run(singleLabels="forward")
    for kind, address in ((A, "192.0.2.1"), (AAAA, "2001:db8::1")):
        expect_addresses(testbed.ask("printer", kind), address)
    testbed.expect_asked("printer", 2, "one for each type")
    daemon.write(UDP, singleLabels="local")
    daemon.reload()
    expect_code(testbed.ask("printer"), NXDOMAIN)


def _error_text(answer: dns_wire.Message) -> bytes:
    return next(data[2:] for code, data in answer.edns.options if code == dns_wire.EXTENDED_ERROR)


@check("I5.list", "extended error 15 names the list that a blocked alias is on, not the rule and not the name")
def list_name(testbed: DNSTestbed) -> None:
    hosts = testbed.file("hosts")
    with open(hosts, "w") as file:
        file.write("0.0.0.0 y.other.com\n")

    def script(received) -> bytes:
        target = "y.b.com" if received.name == "x.a.com" else "y.other.com"
        return messages.answer(received.query, [messages.alias(target), messages.address("192.0.2.9", owner=target)])

    testbed.upstream.script = script
    testbed.run(rules=["||b.com^"], hostsFile=hosts)
    for transport in TRANSPORTS:
        for _ in range(2):
            for name, source in (("x.a.com", b"rules.inline"), ("b.com", b"rules.inline"), ("x.c.com", b"dns.hostsFile"),
                                 ("y.other.com", b"dns.hostsFile")):
                answer = testbed.ask(name, A, transport, edns=dns_wire.opt())
                expect_equal(answer.addresses, ["0.0.0.0"], f"the address of {name}")
                expect_equal((answer.edns.errors, _error_text(answer)), ([dns_wire.BLOCKED], source), f"what blocks {name}")
