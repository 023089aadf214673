"""Reading the configuration again: rules that change, files that are wrong, and doing it often."""

import itertools
import signal
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


@check("R31", "50 reloads under load: no query is lost, no memory either", lasts=20, exclusive=True)
def often(testbed: DNSTestbed) -> None:
    # A small cache, so that it is full before memory is measured.
    cache = {"maxBytes": 65536}
    daemon = testbed.run(rules=_rules(2000, "last0"), cache=cache)
    ended, lost, asked = threading.Event(), [], []

    def load() -> None:
        with testbed.client("udp") as client:
            for number in itertools.count():
                if ended.is_set():
                    return
                query = dns_wire.query(("www.example", "ads7.tracker7.example", f"new{number}.example")[number % 3])
                client.send(query)
                data = client.receive_bytes(4)
                asked.append(number)
                if data is None or data[:2] != query[:2]:
                    lost.append(number)
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
