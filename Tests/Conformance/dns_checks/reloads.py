"""Reading the configuration again: rules that change, files that are wrong, and doing it often."""

import itertools
import signal
import socket
import threading

import dns_wire
from dns_checks.registry import check
from dns_checks.shape import expect_addresses
from dns_testbed import TRANSPORTS, UDP, DNSTestbed
from dns_upstream import Received, messages, scripts
from waiting import expect, expect_equal, wait_until


@check("F11", "a rule that is new is followed at once, also for what is kept; one that is gone is forgotten", lasts=3)
def new_rules(testbed: DNSTestbed) -> None:
    def script(received: Received) -> bytes:
        if received.name == "alias.example":
            return messages.answer(received.query, [messages.alias("ads.example"),
                                                    messages.address("192.0.2.1", owner="ads.example")])
        return scripts.usual(received.query)

    testbed.upstream.script = script
    daemon = testbed.run(rules=["||other.example^"])
    names = ("ads.example", "www.ads.example", "alias.example")
    for rules, address in ((["||ads.example^"], "0.0.0.0"), ([], "192.0.2.1"), (["||ads.example^"], "0.0.0.0"),
                           (["||ads.example^", "@@||alias.example^"], None)):
        for name in (*names, "free.example"):
            testbed.ask(name)
        daemon.write(UDP, rules)
        daemon.signal(signal.SIGHUP)
        expected = {name: address or ("192.0.2.1" if name == "alias.example" else "0.0.0.0") for name in names}
        wait_until(lambda: all(testbed.ask(name).addresses == [one] for name, one in expected.items()),
                   f"the rules {rules} being followed", 10, 0.1, daemon.tail)
        for name, one in expected.items():
            for transport in TRANSPORTS:
                expect_addresses(testbed.ask(name, transport=transport), one, what=f"the answer to {name} by {rules}")
    testbed.expect_asked("free.example", 1, "reloading flushes nothing that has nothing to do with it")


@check("F11.wrong", "a file that is wrong changes nothing", lasts=2)
def wrong_file(testbed: DNSTestbed) -> None:
    daemon = testbed.run(rules=["||ads.example^"])
    for text in ("{", '{ dns: { upstreams: [], nonsense: true } }', ""):
        expect_addresses(testbed.ask("www.example"), "192.0.2.1")
        before = len(daemon.log())
        daemon.write_text(text)
        daemon.signal(signal.SIGHUP)
        wait_until(lambda: "ERROR" in daemon.log()[before:], "the log saying that the file is wrong", 10,
                   detail=daemon.tail)
        expect_addresses(testbed.ask("ads.example"), "0.0.0.0")
        expect_addresses(testbed.ask("www.example"), "192.0.2.1")
    testbed.expect_asked("www.example", 1, "it was kept")


def _rules(count: int, last: str) -> "list[str]":
    return [*(f"||ads{number}.tracker{number % 37}.example^" for number in range(count)), f"||{last}.example^"]


def _answers_at(testbed: DNSTestbed, address: str) -> bool:
    """Whether an address serves, by UDP and by TCP."""
    found = []
    for kind in (socket.SOCK_DGRAM, socket.SOCK_STREAM):
        with testbed.network.socket(socket.AF_INET, kind) as client:
            client.settimeout(0.5)
            length = b"\0\x1b" if kind == socket.SOCK_STREAM else b""
            try:
                client.connect((address, 53))
                client.sendall(length + dns_wire.query("localhost"))
                found.append(len(client.recv(4096)) > 27)
            except OSError:
                found.append(False)
    return all(found) if any(found) else False


@check("L9", "other places to listen at are taken and given up by reading again, and the rest serves on", lasts=3)
def other_places(testbed: DNSTestbed) -> None:
    both = ["127.0.0.1:53", "[::1]:53"]
    daemon = testbed.run()
    kept = testbed.tcp()
    expect_addresses(kept.exchange(dns_wire.query("www.example")), "192.0.2.1")
    for serving, silent in (("127.0.0.5", "127.0.0.6"), ("127.0.0.6", "127.0.0.5")):
        daemon.write(UDP, listen=[*both, f"{serving}:53"])
        daemon.signal(signal.SIGHUP)
        wait_until(lambda: _answers_at(testbed, serving), f"{serving} serving", 10, detail=daemon.tail)
        wait_until(lambda: not _answers_at(testbed, silent), f"{silent} being given up", 10, detail=daemon.tail)
        expect_addresses(kept.exchange(dns_wire.query("www.example")), "192.0.2.1", what="the connection of before")
        expect_addresses(testbed.ask("www.example", family=6), "192.0.2.1")
    testbed.expect_asked("www.example", 1, "it was kept")


@check("L10", "a place that is taken by somebody else changes nothing when the configuration is read again", lasts=2)
def place_taken(testbed: DNSTestbed) -> None:
    daemon = testbed.run(rules=["||ads.example^"])
    with testbed.network.udp_socket("127.0.0.5", 53):
        before = len(daemon.log())
        daemon.write(UDP, ["||other.example^"], listen=["127.0.0.1:53", "[::1]:53", "127.0.0.5:53"])
        daemon.signal(signal.SIGHUP)
        wait_until(lambda: "ERROR" in daemon.log()[before:], "the log saying what is wrong", 10, detail=daemon.tail)
        for transport in TRANSPORTS:
            expect_addresses(testbed.ask("ads.example", transport=transport), "0.0.0.0")
            expect_addresses(testbed.ask("other.example", transport=transport), "192.0.2.1")
    # It is free now.
    daemon.signal(signal.SIGHUP)
    wait_until(lambda: testbed.ask("other.example").addresses == ["0.0.0.0"], "the rules being followed", 10, 0.1)
    expect(_answers_at(testbed, "127.0.0.5"), "127.0.0.5 does not serve")


@check("L11", "another upstream is asked when the configuration names it, and queries under way are answered", lasts=3)
def other_upstream(testbed: DNSTestbed) -> None:
    other = testbed.upstream.udp(53, "127.0.0.3")
    other.script = lambda received: messages.answer(received.query, [messages.address("198.51.100.7")])
    testbed.upstream.script = scripts.late(1.0)
    daemon = testbed.run()
    with testbed.client("tcp") as client:
        client.send(dns_wire.query("slow.example"))
        testbed.upstream.wait_for_query("slow.example")
        daemon.write("udp://127.0.0.3:53")
        daemon.signal(signal.SIGHUP)
        answer = client.receive(6)
        expect(answer.addresses in (["192.0.2.1"], ["198.51.100.7"]), f"what was under way is lost: {answer}")
    numbers = itertools.count()
    wait_until(lambda: testbed.ask(f"new{next(numbers)}.example").addresses == ["198.51.100.7"],
               "the other upstream being asked", 10, 0.1)
    before = len([one for one in testbed.upstream.received if one.server[0] == "127.0.0.2"])
    for number in range(5):
        expect_addresses(testbed.ask(f"later{number}.example"), "198.51.100.7")
    after = len([one for one in testbed.upstream.received if one.server[0] == "127.0.0.2"])
    expect_equal(after, before, "the queries at the upstream of before")


@check("R31", "50 reloads under load: no query is lost, no memory either", lasts=20, exclusive=True)
def often(testbed: DNSTestbed) -> None:
    # A small cache, so that it is full before memory is measured.
    cache = {"maxBytes": 65536}
    daemon = testbed.run(rules=_rules(2000, "last0"), cache=cache)
    ended, lost, asked = threading.Event(), [], []

    def load() -> None:
        # The connection is the same for all the time.
        with testbed.client("udp") as datagrams, testbed.client("tcp") as stream:
            for number in itertools.count():
                if ended.is_set():
                    return
                query = dns_wire.query(("www.example", "ads7.tracker7.example", f"new{number}.example")[number % 3])
                client = stream if number % 2 else datagrams
                client.send(query)
                data = client.receive_bytes(4)
                asked.append(number)
                if not data or data[:2] != query[:2]:
                    lost.append((number, "TCP" if number % 2 else "UDP", data))
                    return

    loader = threading.Thread(target=load)
    loader.start()
    try:
        for number in range(1, 51):
            daemon.write(UDP, _rules(2000, f"last{number}"), cache=cache)
            daemon.signal(signal.SIGHUP)
            wait_until(lambda: testbed.ask(f"last{number}.example").addresses == ["0.0.0.0"],
                       f"the rules of reload {number} being followed", 10, 0.02, daemon.tail)
            if number == 10:
                early = daemon.memory()
    finally:
        ended.set()
        loader.join()
    expect_equal(lost, [], f"the queries of {len(asked)} that were lost")
    grown = daemon.memory() - early
    expect(grown <= 1 << 20, f"40 reloads cost {grown >> 10} KiB of memory")
