"""Plain DNS to the upstream by UDP and TCP (RFC 5452, RFC 7766): what is asked, what is believed, what follows TC."""

import time

import dns_wire
from dns_checks.registry import check
from dns_site import (MARGIN, NETWORK_ERROR, UNREACHABLE, EncryptedSite, ask, ask_all, ask_in_time, expect_failure,
                      expect_good, names)
from dns_testbed import TCP, UDP, DNSTestbed
from dns_upstream import Received, Reply, Response, Upstream, faults, messages, scripts
from waiting import expect, expect_equal, pause

TRANSPORTS = ("udp", "tcp", "tls", "https")


@check("E7", "each query by UDP has an ID and a source port that nobody can foresee")
def unforeseeable(testbed: DNSTestbed) -> None:
    testbed.run(UDP)
    upstream = testbed.upstream
    for round_number in range(5):
        for answer in ask_all(testbed, names(f"random-{round_number}", 60)).values():
            expect_good(answer)
    identifiers = [one.query.id for one in upstream.received]
    ports = [one.client[1] for one in upstream.received]
    expect_equal(len(identifiers), 300, "the queries")
    # Of 300 random numbers of 16 bits less than one is drawn twice; the kernel has 28,000 ports to choose from.
    expect(len(set(identifiers)) >= 290, f"only {len(set(identifiers))} different IDs in 300 queries")
    expect(len(set(ports)) >= 280, f"only {len(set(ports))} different ports in 300 queries")
    for what, values, width in (("IDs", identifiers, 65536), ("ports", ports, max(ports) - min(ports) + 1)):
        steps = [(after - before) % 65536 for before, after in zip(values, values[1:])]
        expect(max(steps.count(step) for step in set(steps)) < 30, f"the {what} follow a rule: {values[:10]}")
        halves = sum(value - min(values) < width / 2 for value in values)
        expect(75 <= halves <= 225, f"{halves} of 300 {what} are in the lower half of their range")


@check("E7.source", "what comes from another address or port is not believed, and the right answer is waited for")
def other_source(testbed: DNSTestbed) -> None:
    testbed.run(UDP, timeoutSeconds=2)

    def forged(received: Received) -> bytes:
        return messages.answer(received.query, [messages.address("198.51.100.66")])

    for label, source in (("address", ("127.0.0.9", 53)), ("port", ("127.0.0.2", 0))):
        testbed.upstream.script = lambda received: [
            Reply(forged(received), source=source), Reply(scripts.usual(received.query), after=0.2)]
        expect_good(ask(testbed, f"other-{label}.example.org"))
        testbed.upstream.script = lambda received: Reply(forged(received), source=source)
        expect_failure(ask_in_time(testbed, f"only-{label}.example.org", 2 + MARGIN), UNREACHABLE, NETWORK_ERROR)


@check("E7.wrong", "wrong answers by UDP are passed over while the right one is waited for, and never reach a client")
def wrong_answers(testbed: DNSTestbed) -> None:
    testbed.run(UDP, timeoutSeconds=1)
    changes = {"identifier": faults.wrong_id, **faults.WRONG_ANSWERS}
    for label, change in changes.items():
        def first(received: Received) -> Response:
            wrong = change(messages.answer(received.query, [messages.address("198.51.100.66")]))
            return [Reply(wrong), Reply(wrong), Reply(scripts.usual(received.query), after=0.15)]

        testbed.upstream.script = first
        expect_good(ask(testbed, f"then-right-{label.lower()}.example.org"))
    for label, change in changes.items():
        testbed.upstream.script = scripts.altered(change)
        expect_failure(ask_in_time(testbed, f"only-wrong-{label.lower()}.example.org", 1 + MARGIN))


@check("E7.many", "a hundred forged answers with other IDs do not keep the right one from coming")
def many_forged(testbed: DNSTestbed) -> None:
    testbed.run(UDP, timeoutSeconds=2)

    def script(received: Received) -> Response:
        wrong = messages.answer(received.query, [messages.address("198.51.100.66")])
        forged = [Reply(number.to_bytes(2, "big") + wrong[2:]) for number in range(100) if number != received.query.id]
        return [*forged, Reply(scripts.usual(received.query), after=0.1)]

    testbed.upstream.script = script
    for name in names("forged", 5):
        expect_good(ask(testbed, name))


@check("E8", "with mixCase the letters of questions are drawn at random, and the client gets its own back")
def mixed_case(testbed: DNSTestbed) -> None:
    testbed.run(UDP, mixCase=True)
    asked = [f"mixed-{number}.Example-With-Many-Letters.org" for number in range(20)]
    for name in asked:
        answer = ask(testbed, name)
        expect_good(answer)
        expect_equal(answer.question.name, dns_wire.name(name), "the name in the answer")
    seen = [one.query.wire_name for one in testbed.upstream.received]
    mixed = [name for name in seen if name != name.lower() and name != name.upper()]
    expect(len(mixed) >= 19, f"only {len(mixed)} of 20 questions are mixed: {seen[:3]}")
    shapes = {tuple(octet & 0x20 for octet in name[-30:] if 65 <= octet & 0xDF <= 90) for name in seen}
    expect(len(shapes) >= 18, f"only {len(shapes)} different ways to mix 20 questions")


@check("E8.forged", "with mixCase an answer with other letters is not believed, and the right one is taken")
def forged_case(testbed: DNSTestbed) -> None:
    testbed.run(UDP, mixCase=True, timeoutSeconds=2)

    def script(received: Received) -> Response:
        right = scripts.usual(received.query)
        if received.transport == "tcp":
            return right
        wrong = faults.lower_case(messages.answer(received.query, [messages.address("198.51.100.66")]))
        return [Reply(wrong), Reply(right, after=0.1)]

    testbed.upstream.script = script
    for name in names("forged-with-letters", 5):
        expect_good(ask(testbed, name))


@check("E8.fallback", "a server that does not keep the case of letters is asked without mixing")
def lost_case(testbed: DNSTestbed) -> None:
    testbed.run(UDP, mixCase=True, timeoutSeconds=2)
    testbed.upstream.script = scripts.altered(faults.lower_case)
    for name in names("lost-with-letters", 10):
        expect_good(ask_in_time(testbed, name, 2))
    expect(len([one for one in testbed.upstream.received if one.transport == "tcp"]) <= 3,
           f"each query costs a connection: {testbed.upstream.summary()}")
    for name in names("later-with-letters", 3):
        expect_good(ask_in_time(testbed, name, 0.5))


@check("E8.encrypted", "letters are not mixed where nobody can forge an answer")
def encrypted_case(testbed: DNSTestbed) -> None:
    site = EncryptedSite(testbed)
    site.https()
    site.forward("https", mixCase=True)
    for name in names("encrypted-with-letters", 5):
        expect_good(ask(testbed, name))
    expect_equal({one.query.wire_name for one in site.upstream.received},
                 {dns_wire.name(name) for name in names("encrypted-with-letters", 5)}, "the names that were asked for")


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


@check("E9", "a server that nobody is at costs no time: the next one answers at once")
def refused(testbed: DNSTestbed) -> None:
    for number, url in enumerate(("udp://127.0.0.8:53", "tcp://127.0.0.8:53", "udp://[::2]:53")):
        daemon = testbed.run([url, UDP])
        testbed.upstream
        for name in names(f"nobody-{number}", 3):
            expect_good(ask_in_time(testbed, name, 0.7))
        daemon.stop()
        testbed.resign_dns(daemon)
    testbed.run(UDP)


@check("E9.alone", "when nobody is at the only server's address, that is said at once")
def refused_alone(testbed: DNSTestbed) -> None:
    testbed.run(["udp://127.0.0.8:53", "tcp://127.0.0.8:53"])
    for name in names("nobody", 3):
        expect_failure(ask_in_time(testbed, name, 1.5), UNREACHABLE, NETWORK_ERROR)


@check("E9.silent", "a silent server is asked less and less, and costs little while another one answers", lasts=5)
def silent_server(testbed: DNSTestbed) -> None:
    silent = testbed.enter(Upstream(testbed.network, "127.0.0.5", scripts.silence))
    silent.udp()
    testbed.upstream
    testbed.run(["udp://127.0.0.5:53", UDP], timeoutSeconds=2)
    for name in names("silent", 4):
        expect_good(ask_in_time(testbed, name, 2 + MARGIN))
    before = len(silent.received)
    started = time.monotonic()
    for name in names("known", 40):
        expect_good(ask_in_time(testbed, name, 1.5))
    taken = time.monotonic() - started
    expect(taken < 4, f"40 queries took {taken:.1f} s beside a server that is known to be silent")
    more = len(silent.received) - before
    expect(more <= 8, f"the silent server was asked {more} times more")


@check("E9.return", "a dead server is tried again after a while, and asked first again when it answers", lasts=8)
def back_again(testbed: DNSTestbed) -> None:
    first = testbed.enter(Upstream(testbed.network, "127.0.0.5"))
    listener = first.udp()
    testbed.upstream
    testbed.run(["udp://127.0.0.5:53", UDP], timeoutSeconds=2)
    expect_good(ask(testbed, "before.example.org"))
    expect_equal(len(first.received), 1, "the queries at the first server before it died")
    listener.close()
    for name in names("dead", 5):
        expect_good(ask_in_time(testbed, name, 1))
    listener.open()
    deadline, number = time.monotonic() + 40, 0
    while len(first.received) < 2:
        number += 1
        expect_good(ask_in_time(testbed, f"again-{number}.example.org", 1))
        expect(time.monotonic() < deadline, "the first server was not asked again within 40 s")
        pause(0.2)
    count = len(first.received)
    for name in names("back", 5):
        expect_good(ask(testbed, name))
    expect_equal(len(first.received) - count, 5, "the queries at the first server after it was back")


@check("E9.all", "when all servers are silent the client is told so in time", lasts=2)
def all_silent(testbed: DNSTestbed) -> None:
    site = EncryptedSite(testbed)
    site.upstream.script = scripts.silence
    for transport in TRANSPORTS:
        site.listen(transport)
        daemon = testbed.run(site.member(transport), timeoutSeconds=1)
        started = time.monotonic()
        for answer in ask_all(testbed, names(f"silent-{transport}", 3), seconds=1 + MARGIN).values():
            expect_failure(answer, UNREACHABLE, NETWORK_ERROR)
        taken = time.monotonic() - started
        expect(taken >= 0.7, f"a silent server by {transport} was given up after {taken:.2f} s")
        daemon.stop()
        testbed.resign_dns(daemon)
    testbed.run(UDP)


@check("E9.late", "an answer that comes late to the first try is taken though a second one was made")
def late_answer(testbed: DNSTestbed) -> None:
    site = EncryptedSite(testbed)
    for transport in TRANSPORTS:
        seen: "set[str]" = set()

        def script(received: Received) -> Response:
            if received.name in seen:
                return None
            seen.add(received.name)
            return Reply(scripts.usual(received.query), after=1.4)

        site.upstream.script = script
        site.listen(transport)
        daemon = testbed.run(site.member(transport), timeoutSeconds=2)
        for answer in ask_all(testbed, names(f"late-{transport}", 3), seconds=2 + MARGIN).values():
            expect_good(answer)
        daemon.stop()
        testbed.resign_dns(daemon)
    testbed.run(UDP)


@check("E9.format", "a server that does not know EDNS is asked without it")
def no_edns(testbed: DNSTestbed) -> None:
    testbed.run(UDP)

    def script(received: Received) -> Response:
        if received.query.edns is not None:
            return messages.answer(received.query, code=dns_wire.FORMERR, edns=False)
        return scripts.usual(received.query)

    testbed.upstream.script = script
    for name in names("old", 3):
        expect_good(ask_in_time(testbed, name, 1))
