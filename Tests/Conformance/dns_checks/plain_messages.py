"""What goes upstream beside the question, what comes back cut, and questions that are asked by many."""

import time

import dns_wire
from dns_checks.registry import check
from dns_site import MARGIN, TRANSPORTS, EncryptedSite, ask, ask_all, ask_in_time, expect_good, names
from dns_testbed import TCP, UDP, DNSTestbed
from dns_upstream import Received, Response, Upstream, faults, messages, scripts
from waiting import expect, expect_equal


@check("B7.upstream", "options of a client go no further, and the OPT record that goes upstream is the proxy's own")
def own_edns(testbed: DNSTestbed) -> None:
    site = EncryptedSite(testbed)
    for transport in TRANSPORTS:
        site.listen(transport)
    options = b"".join((
        dns_wire.option(dns_wire.COOKIE, b"secretcookie1234"), dns_wire.option(dns_wire.NSID),
        dns_wire.option(dns_wire.KEEPALIVE), dns_wire.option(dns_wire.PADDING, bytes(20)),
        dns_wire.option(dns_wire.CLIENT_SUBNET, bytes([0, 1, 24, 0, 203, 0, 113])), dns_wire.option(65001, b"private")))
    for transport in TRANSPORTS:
        daemon = testbed.run(site.member(transport))
        for number, edns in enumerate((
                dns_wire.opt(4096, flags=0x0040, options=options), dns_wire.opt(512, dnssec=True, options=options),
                None)):
            answer = testbed.ask(f"edns-{number}.{transport}.example.org", edns=edns, transport="tcp")
            expect_good(answer)
            edns = site.upstream.received[-1].query.edns
            expect(edns is not None, "the query has no OPT record")
            padded = [12] if transport in ("tls", "https") else []
            expect_equal([code for code, _ in edns.options], padded, f"the options of the query by {transport}")
            found = edns.payload_size, edns.version, edns.flags & 0x7FFF
            expect_equal(found, (1232, 0, 0), "size, version and flags but DO")
        daemon.stop()
        testbed.resign_dns(daemon)
    testbed.run(UDP)


@check("D11.clear", "nothing is padded that goes unencrypted")
def not_padded(testbed: DNSTestbed) -> None:
    for upstream in (UDP, TCP):
        daemon = testbed.run(upstream)
        for name in names(f"clear-{upstream[:3]}", 3):
            expect_good(testbed.ask(name, edns=dns_wire.opt(options=dns_wire.option(dns_wire.PADDING, bytes(9)))))
        daemon.stop()
        testbed.resign_dns(daemon)
    for received in testbed.upstream.received:
        expect_equal(received.query.edns.options, (), f"the options of a query by {received.transport}")
    testbed.run(UDP)


@check("B11.upstream", "an answer with TC is asked for again by TCP, and what was cut is not kept")
def truncated(testbed: DNSTestbed) -> None:
    testbed.run(UDP)

    def script(received: Received) -> Response:
        whole = messages.answer(received.query, [messages.text(b"z" * 2000)])
        return faults.truncated(whole) if received.transport == "udp" else whole

    testbed.upstream.script = script
    for _ in range(2):
        answer = testbed.ask("long.example.org", dns_wire.TXT, "tcp", edns=dns_wire.opt())
        expect(answer.code == 0 and len(answer.answers[0].data) > 2000,
               f"expected 2,000 bytes of text, and came: {answer}")
        expect(not answer.flags & dns_wire.TC, "an answer by TCP has TC")
    expect_equal([one.transport for one in testbed.upstream.asked("long.example.org")], ["udp", "tcp"],
                 "the transports of the queries")


@check("B11.lost", "an answer with TC from a server without TCP is a failure in time, and is not kept")
def truncated_without_tcp(testbed: DNSTestbed) -> None:
    upstream = testbed.enter(Upstream(testbed.network, "127.0.0.4"))
    upstream.udp()
    testbed.run("udp://127.0.0.4:53", timeoutSeconds=1.5)
    upstream.script = scripts.altered(faults.truncated)
    answer = ask_in_time(testbed, "cut.example.org", 1.5 + MARGIN)
    expect(answer.code == dns_wire.SERVFAIL or answer.flags & dns_wire.TC,
           f"expected SERVFAIL or TC, and came: {answer}")
    upstream.script = scripts.addresses()
    for name in names("whole", 3):
        expect_good(ask_in_time(testbed, name, 1.5 + MARGIN))


@check("B12.upstream", "a server that only knows UDP is enough: an answer without TC is not asked for again by TCP")
def udp_only(testbed: DNSTestbed) -> None:
    upstream = testbed.enter(Upstream(testbed.network, "127.0.0.4"))
    upstream.udp()
    testbed.run("udp://127.0.0.4:53")
    upstream.script = lambda received: messages.answer(received.query, [messages.text(b"z" * 1100)])
    for name in names("datagram", 5):
        answer = testbed.ask(name, dns_wire.TXT, "tcp", edns=dns_wire.opt())
        expect(answer.code == 0 and len(answer.answers[0].data) > 1100,
               f"expected 1,100 bytes of text, and came: {answer}")
    expect_equal(len(upstream.received), 5, "the queries")


@check("A14.upstream", "equal questions under way are one query to the upstream, by each transport")
def merged(testbed: DNSTestbed) -> None:
    site = EncryptedSite(testbed)
    site.upstream.script = scripts.late(0.6)
    for transport in ("udp", "tls", "https"):
        site.listen(transport)
        daemon = testbed.run(site.member(transport))
        name = f"merged.{transport}.example.org"
        with testbed.client("udp") as client:
            for number in range(200):
                client.send(dns_wire.query(name.upper() if number % 2 else name, identifier=number))
            found = {client.receive().identifier for _ in range(200)}
        expect_equal(len(found), 200, "the queries that were answered")
        expect_equal(len(site.upstream.asked(name)), 1, f"the queries to the upstream by {transport}")
        daemon.stop()
        testbed.resign_dns(daemon)
    testbed.run(UDP)


@check("C9.upstream", "clients that reset their connections with queries under way leave upstream and others in order")
def reset_clients(testbed: DNSTestbed) -> None:
    site = EncryptedSite(testbed)
    site.tls()
    site.upstream.script = scripts.late(0.5)
    site.forward("tls")
    for number in range(20):
        with testbed.client("tcp") as client:
            client.send(*(dns_wire.query(f"reset-{number}-{one}.example.org") for one in range(10)))
            client.socket.setsockopt(1, 13, b"\1\0\0\0\0\0\0\0")  # SO_LINGER with no time: closing sends RST
    for answer in ask_all(testbed, names("after", 20)).values():
        expect_good(answer)
    # What had been asked is answered from what was kept, or asked for anew.
    expect_good(ask(testbed, "reset-0-0.example.org"))


@check("A15.upstream", "a daemon that is its own upstream answers in time, after few queries")
def loop(testbed: DNSTestbed) -> None:
    testbed.run("udp://127.0.0.1:53", timeoutSeconds=1.5)
    started = time.monotonic()
    answer = ask(testbed, "loop.example.org", seconds=1.5 + MARGIN)
    expect(answer.code in (dns_wire.SERVFAIL, dns_wire.NXDOMAIN, dns_wire.REFUSED), f"a loop gave {answer}")
    expect(time.monotonic() - started <= 1.5 + MARGIN, "a loop goes on for too long")
