"""Plain DNS to the upstream by UDP and TCP (RFC 5452, RFC 7766): what is asked, what is believed, what follows TC."""

import dns_wire
from dns_checks.registry import check
from dns_site import (MARGIN, NETWORK_ERROR, UNREACHABLE, EncryptedSite, ask, ask_all, ask_in_time, expect_failure,
                      expect_good, names)
from dns_testbed import UDP, DNSTestbed
from dns_upstream import Received, Reply, Response, faults, messages, scripts
from waiting import expect, expect_equal


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
