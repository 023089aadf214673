"""What is kept, for how long, and what is not (RFC 1035, RFC 8767 §4, RFC 9520)."""

import time

import dns_wire
from dns_checks.registry import check
from dns_checks.shape import ages, expect_addresses, expect_code
from dns_testbed import TCP, TRANSPORTS, DNSTestbed
from dns_upstream import Received, messages, scripts
from dns_wire import SERVFAIL
from waiting import expect, expect_equal, pause, wait_until


@check("F1", "TTLs count down in every record, each from its own", lasts=3)
def counting_down(testbed: DNSTestbed) -> None:
    def script(received: Received) -> bytes:
        return messages.answer(
            received.query,
            [messages.alias("b.example", 871), messages.alias("c.example", 444, owner="b.example"),
             messages.address("192.0.2.1", 563, owner="c.example"),
             messages.address("192.0.2.2", 563, owner="c.example")],
            authority=[messages.record(dns_wire.NS, messages.name_bytes("ns.example"), 7200, "c.example")],
            additional=[messages.address("192.0.2.53", 100, "ns.example")])

    testbed.upstream.script = script
    testbed.run()
    given = [[871, 444, 563, 563], [7200], [100]]
    for edns in (None, dns_wire.opt(dnssec=True)):
        first, second, age = ages(lambda: testbed.ask("a.example", edns=edns), 2.2)
        for answer, allowed in ((first, range(1)), (second, age)):
            ttls = [[one.ttl for one in section if one.kind != dns_wire.OPT] for section in answer.sections]
            fits = [[[ttl - passed for ttl in section] for section in given] for passed in allowed]
            expect(ttls in fits, f"the TTLs are {ttls}, expected {given} less {allowed[0]} to {allowed[-1]}")
        # The OPT record has flags where others have a TTL.
        expect_equal(second.edns and second.edns.flags, edns and 0x8000, "the flags of EDNS in an answer that was kept")
        expect_equal(second.edns and second.edns.version, edns and 0, "the version of EDNS in an answer that was kept")
    testbed.expect_asked("a.example", 2, "once for each DO")


@check("F1.end", "an answer is kept no longer than its shortest TTL says", lasts=2)
def ending(testbed: DNSTestbed) -> None:
    records = {
        "short.example": [messages.address("192.0.2.1", 1)],
        "alias.example": [messages.alias("to.example", 1), messages.address("192.0.2.1", 300, owner="to.example")],
        "target.example": [messages.alias("to.example", 300), messages.address("192.0.2.1", 1, owner="to.example")],
        "long.example": [messages.alias("to.example", 300), messages.address("192.0.2.1", 300, owner="to.example")],
    }
    testbed.upstream.script = lambda received: messages.answer(received.query, records[received.name])
    testbed.run()
    for name in records:
        testbed.ask(name)
    pause(1.3)
    for name in records:
        for transport in TRANSPORTS:
            expect_addresses(testbed.ask(name, transport=transport), "192.0.2.1")
        # The second may be another second old already when both are asked.
        count = len(testbed.upstream.asked(name))
        expect(count == 1 if name == "long.example" else count >= 2, f"{name} was asked for {count} times")


@check("F2", "a TTL with its highest bit set is 0 or a week at most, and always the same")
def highest_bit(testbed: DNSTestbed) -> None:
    ttls = {"a.example": 0x80000000, "b.example": 0x8000012C, "c.example": 0xFFFFFFFF, "d.example": 0x7FFFFFFF}
    testbed.upstream.script = lambda received: messages.answer(
        received.query, [messages.address("192.0.2.1", ttls[received.name])])
    testbed.run()
    for name in ttls:
        for transport in TRANSPORTS:
            for _ in range(2):
                ttl = expect_addresses(testbed.ask(name, transport=transport), "192.0.2.1").answers[0].ttl
                expect(0 <= ttl <= 604800, f"the TTL {ttls[name]:#x} is passed on as {ttl}")


@check("F3", "a TTL of 0 is for the client that asked and for no other")
def zero(testbed: DNSTestbed) -> None:
    testbed.upstream.script = lambda received: messages.answer(
        received.query, [messages.alias("to.example", 300 if received.name == "alias.example" else 0),
                         messages.address("192.0.2.1", 0 if received.name == "alias.example" else 300, "to.example")])
    testbed.run()
    for name in ("first.example", "alias.example"):
        for count in range(1, 4):
            answer = expect_addresses(testbed.ask(name), "192.0.2.1")
            expect(0 in [one.ttl for one in answer.answers], f"the TTL of 0 is another one: {answer}")
            testbed.expect_asked(name, count, "a TTL is 0")


@check("F7", "a failure is kept for a second, not for long, and is gone with the first good answer", lasts=4)
def failures(testbed: DNSTestbed) -> None:
    testbed.upstream.script = lambda received: messages.answer(received.query, code=SERVFAIL)
    testbed.run()
    name = "fails.example"
    started = time.monotonic()
    expect_code(testbed.ask(name), SERVFAIL)
    asked = len(testbed.upstream.asked(name))
    for _ in range(20):
        expect_code(testbed.ask(name), SERVFAIL)
        more = len(testbed.upstream.asked(name)) - asked
        if time.monotonic() - started >= 1:
            break
        expect(more == 0, "the upstream was asked again for what failed less than a second ago")
    testbed.upstream.script = scripts.addresses()
    wait_until(lambda: testbed.ask(name).addresses == ["192.0.2.1"], "a good answer after a failure", 5, 0.1)
    testbed.upstream.script = scripts.silence
    for _ in range(3):
        expect_addresses(testbed.ask(name), "192.0.2.1")


@check("F10", "answers are kept in the memory that is given, and a large one does not drive out all others", lasts=2)
def bounds(testbed: DNSTestbed) -> None:
    def script(received: Received) -> bytes:
        if received.query.type == dns_wire.TXT:
            return messages.answer(received.query, [messages.text(b"x" * 250) for _ in range(150)])
        return scripts.usual(received.query)

    testbed.upstream.script = script
    daemon = testbed.run(TCP, cache={"maxBytes": 65536}, timeoutSeconds=20)
    names = [f"small{number}.example" for number in range(20)]
    for _ in range(2):
        for name in names:
            expect_addresses(testbed.ask(name), "192.0.2.1")
    for number in range(10):
        expect_equal(len(testbed.ask(f"large{number}.example", dns_wire.TXT, "tcp").answers), 150,
                     "the large answer's records")
        for name in names:
            expect_addresses(testbed.ask(name), "192.0.2.1")
    for name in names:
        testbed.expect_asked(name, 1, "large answers were asked for, too")
    before = daemon.memory()
    with testbed.client("tcp") as client:
        for part in range(40):
            client.send(*(dns_wire.query(f"n{part}-{number}.example") for number in range(100)))
            for _ in range(100):
                expect_addresses(client.receive(), "192.0.2.1")
    grown = daemon.memory() - before
    expect(grown < 3 << 20, f"4,000 answers cost {grown >> 10} KiB of memory with a cache of 64 KiB")


@check("F10.none", "a cache of no bytes keeps nothing")
def no_cache(testbed: DNSTestbed) -> None:
    testbed.run(cache={"maxBytes": 0})
    for count in range(1, 4):
        expect_addresses(testbed.ask("www.example"), "192.0.2.1")
        testbed.expect_asked("www.example", count, "nothing is kept")


@check("F12", "what else stands in an answer is passed on, and is no answer to other questions")
def bailiwick(testbed: DNSTestbed) -> None:
    def script(received: Received) -> bytes:
        if received.name.startswith("victim"):
            return scripts.usual(received.query)
        lies = {one: messages.address("203.0.113.66", owner=f"{one}.example")
                for one in ("victim1", "victim2", "victim3")}
        return messages.answer(
            received.query, [messages.alias("victim1.example"), lies["victim1"]],
            authority=[messages.record(dns_wire.NS, messages.name_bytes("victim2.example"), owner="example")],
            additional=[lies["victim2"], lies["victim3"]])

    testbed.upstream.script = script
    testbed.run()
    for transport in TRANSPORTS:
        answer = testbed.ask("attack.example", transport=transport)
        expect_addresses(answer, "203.0.113.66")
        for one in ("victim1", "victim2", "victim3"):
            expect_addresses(testbed.ask(f"{one}.example", transport=transport), "192.0.2.1")
    for one in ("victim1", "victim2", "victim3"):
        testbed.expect_asked(f"{one}.example", 1, "an answer to another question said something about it")
