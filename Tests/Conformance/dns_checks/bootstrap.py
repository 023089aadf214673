"""How an upstream that is known by name is found (RFC 8310 §7): by bootstrap resolvers alone, and in time again."""

import itertools
import time

import dns_wire
from dns_checks.registry import check
from dns_site import MARGIN, SERVER, ClearTextWatch, EncryptedSite, ask, ask_in_time, expect_failure, expect_good, names
from dns_testbed import DNSTestbed
from dns_upstream import Listener, Reply, Upstream, faults, messages, scripts
from waiting import expect, expect_equal, pause, wait_until

RESOLVER = "127.0.0.53"


def _resolver(testbed: DNSTestbed, *addresses: str, ttl: int = 300, at: str = RESOLVER) -> Upstream:
    """A plain resolver that knows the server's addresses."""
    resolver = testbed.enter(Upstream(testbed.network, at, scripts.by_name({SERVER: addresses}, ttl)))
    resolver.udp()
    resolver.tcp()
    return resolver


def _site(testbed: DNSTestbed, *servers: str) -> "tuple[EncryptedSite, dict[str, Listener]]":
    """A server at several addresses, with their listeners for TLS."""
    site = EncryptedSite(testbed)
    return site, {address: site.tls(address=address) for address in servers or ("127.0.0.10",)}


def _member(site: EncryptedSite, transport: str = "tls", **more) -> dict:
    return site.member(transport, addresses=None, **more)


@check("D12", "a name is looked up at the bootstrap resolver alone, which is asked about nothing else")
def only_bootstrap(testbed: DNSTestbed) -> None:
    site, _ = _site(testbed)
    site.https()
    resolver = _resolver(testbed, "127.0.0.10")
    watch = ClearTextWatch(testbed)
    asked = []
    for transport in ("tls", "https"):
        daemon = testbed.run(_member(site, transport), bootstrap=[f"{RESOLVER}:53"])
        for name in names(f"bootstrap-{transport}", 5):
            asked.append(name)
            expect_good(ask(testbed, name))
        daemon.stop()
        testbed.resign_dns(daemon)
    expect_equal({one.name for one in resolver.received}, {SERVER}, "the names that the resolver was asked for")
    expect({one.query.type for one in resolver.received} <= {dns_wire.A, dns_wire.AAAA}, "it was asked for other types")
    expect(2 <= len(resolver.received) <= 4, f"it was asked {len(resolver.received)} times by two daemons")
    watch.expect_nothing_of(*asked)
    testbed.run(_member(site), bootstrap=[RESOLVER])


@check("D12.self", "the server's name is not looked up through the proxy itself, whatever the machine's resolver is")
def never_itself(testbed: DNSTestbed) -> None:
    site, _ = _site(testbed)
    resolver = _resolver(testbed, "127.0.0.10")
    testbed.run(_member(site), bootstrap=[f"{RESOLVER}:53"])
    expect_good(ask(testbed, "self.example.org"))
    expect_equal(site.upstream.asked(SERVER), [], "the queries for the server's name at the server")
    expect(resolver.received, "the bootstrap resolver was not asked")
    # A client may ask for it, as for any other name.
    expect_good(ask(testbed, SERVER))


@check("D12.ttl", "the name is looked up again when its time is over, and the new address is used", lasts=8)
def time_to_live(testbed: DNSTestbed) -> None:
    site, _ = _site(testbed, "127.0.0.10", "127.0.0.11")
    resolver = _resolver(testbed, "127.0.0.10", ttl=1)
    testbed.run(_member(site), bootstrap=[f"{RESOLVER}:53"])
    expect_good(ask(testbed, "before.example.org"))
    expect_equal(site.upstream.received[-1].server[0], "127.0.0.10", "the address that was asked")
    resolver.script = scripts.by_name({SERVER: ["127.0.0.11"]}, 1)
    started, number = time.monotonic(), 0
    while site.upstream.received[-1].server[0] != "127.0.0.11":
        number += 1
        # Each query needs a connection.
        site.upstream.end_connections()
        expect_good(ask_in_time(testbed, f"again-{number}.example.org", 2))
        expect(time.monotonic() - started < 20, f"the new address is not used: {site.upstream.summary()}")
        pause(0.2)


@check("D12.failure", "the name is looked up again when nobody is at its address, whatever its TTL", lasts=2)
def failure(testbed: DNSTestbed) -> None:
    site, listeners = _site(testbed, "127.0.0.10", "127.0.0.11")
    resolver = _resolver(testbed, "127.0.0.10", ttl=86400)
    testbed.run(_member(site), bootstrap=[f"{RESOLVER}:53"], timeoutSeconds=2)
    expect_good(ask(testbed, "before.example.org"))
    resolver.script = scripts.by_name({SERVER: ["127.0.0.11"]}, 86400)
    listeners["127.0.0.10"].close(connections=True)
    number = itertools.count()
    wait_until(lambda: ask(testbed, f"moved-{next(number)}.example.org").code == 0, "an answer from the new address",
               15, interval=0.2, detail=site.upstream.summary)
    expect_equal(site.upstream.received[-1].server[0], "127.0.0.11", "the address that was asked")


@check("D12.dead", "while the bootstrap resolver is silent there is a failure in time, and no leak", lasts=8)
def dead_resolver(testbed: DNSTestbed) -> None:
    site, _ = _site(testbed)
    site.witness()
    resolver = _resolver(testbed, "127.0.0.10")
    answers = resolver.script
    resolver.script = scripts.silence
    watch = ClearTextWatch(testbed)
    testbed.run(_member(site), bootstrap=[f"{RESOLVER}:53"], timeoutSeconds=1.5)
    for name in names("dead", 3):
        expect_failure(ask_in_time(testbed, name, 1.5 + MARGIN))
    watch.expect_nothing_of(*names("dead", 3))
    expect_equal({one.name for one in resolver.received}, {SERVER}, "the names that the resolver was asked for")
    expect(len(resolver.received) <= 40, f"the bootstrap resolver was asked {len(resolver.received)} times")
    resolver.script = answers
    number = itertools.count()
    wait_until(lambda: ask(testbed, f"back-{next(number)}.example.org").code == 0,
               "an answer when the resolver is back", 20, interval=0.3, detail=resolver.summary)


@check("D12.refused", "a bootstrap resolver that is not there, or knows no address, is a failure in time")
def refused(testbed: DNSTestbed) -> None:
    site, _ = _site(testbed)
    resolver = _resolver(testbed)
    for label, bootstrap in (("nobody", "127.0.0.54:53"), ("no-address", f"{RESOLVER}:53")):
        daemon = testbed.run(_member(site), bootstrap=[bootstrap], timeoutSeconds=1.5)
        expect_failure(ask_in_time(testbed, f"{label}.example.org", 1.5 + MARGIN))
        daemon.stop()
        testbed.resign_dns(daemon)
    resolver.script = lambda received: messages.answer(received.query, code=dns_wire.NXDOMAIN)
    testbed.run(_member(site), bootstrap=[f"{RESOLVER}:53"], timeoutSeconds=1.5)
    expect_failure(ask_in_time(testbed, "no-name.example.org", 1.5 + MARGIN))
    expect_equal(site.upstream.received, [], "the queries that came to the server")


@check("D12.second", "the second bootstrap resolver is asked when the first one is dead or silent")
def second_resolver(testbed: DNSTestbed) -> None:
    site, _ = _site(testbed)
    silent = testbed.enter(Upstream(testbed.network, "127.0.0.55", scripts.silence))
    silent.udp()
    _resolver(testbed, "127.0.0.10")
    for label, first in (("dead", "127.0.0.54:53"), ("silent", "127.0.0.55:53")):
        daemon = testbed.run(_member(site), bootstrap=[first, f"{RESOLVER}:53"], timeoutSeconds=5)
        expect_good(ask_in_time(testbed, f"{label}.example.org", 5))
        daemon.stop()
        testbed.resign_dns(daemon)
    testbed.run(_member(site), bootstrap=[f"{RESOLVER}:53"])


@check("D12.forged", "an answer of the bootstrap resolver that is not one is passed over")
def forged(testbed: DNSTestbed) -> None:
    site, _ = _site(testbed)
    resolver = _resolver(testbed, "127.0.0.10")
    right = resolver.script
    for label, change in {"identifier": faults.wrong_id, **faults.WRONG_ANSWERS}.items():
        resolver.script = lambda received: [Reply(change(right(received))), Reply(right(received), after=0.1)]
        daemon = testbed.run(_member(site), bootstrap=[f"{RESOLVER}:53"])
        expect_good(ask_in_time(testbed, f"forged-{label.lower()}.example.org", 4))
        daemon.stop()
        testbed.resign_dns(daemon)
    resolver.script = right
    testbed.run(_member(site), bootstrap=[f"{RESOLVER}:53"])


@check("D12.family", "a server that has an address of IPv6 alone is found")
def other_family(testbed: DNSTestbed) -> None:
    testbed.network.add_address("lo", "fd00:53::2/128")
    site = EncryptedSite(testbed)
    site.tls(address="fd00:53::2")
    _resolver(testbed, "fd00:53::2")
    testbed.run(_member(site), bootstrap=[f"{RESOLVER}:53"])
    expect_good(ask(testbed, "family.example.org"))
    expect_equal(site.upstream.received[-1].server[0], "fd00:53::2", "the address that was asked")


@check("D12.alias", "a server whose name is an alias is found, and has to prove the name of the configuration")
def alias(testbed: DNSTestbed) -> None:
    site, _ = _site(testbed)
    resolver = _resolver(testbed)

    def script(received):
        records = [messages.alias("host.example.net")]
        if received.query.type == messages.A:
            records.append(messages.address("127.0.0.10", owner="host.example.net"))
        return messages.answer(received.query, records)

    resolver.script = script
    testbed.run(_member(site), bootstrap=[f"{RESOLVER}:53"])
    expect_good(ask(testbed, "alias.example.org"))
    expect_equal(site.upstream.received[-1].connection.client_hello.server_name, SERVER, "SNI")


@check("D12.tcp", "an answer of the bootstrap resolver that did not fit into a datagram is asked for again by TCP")
def by_tcp(testbed: DNSTestbed) -> None:
    site, _ = _site(testbed)
    resolver = _resolver(testbed, "127.0.0.10")
    right = resolver.script
    resolver.script = lambda received: (
        faults.truncated(right(received)) if received.transport == "udp" else right(received))
    testbed.run(_member(site), bootstrap=[f"{RESOLVER}:53"])
    expect_good(ask_in_time(testbed, "by-tcp.example.org", 4))


@check("D12.plain", "a plain server that is known by name is found the same way")
def plain_server(testbed: DNSTestbed) -> None:
    site = EncryptedSite(testbed)
    site.witness()
    resolver = _resolver(testbed, "127.0.0.10")
    for transport in ("udp", "tcp"):
        daemon = testbed.run(f"{transport}://{SERVER}", bootstrap=[f"{RESOLVER}:53"])
        for name in names(f"plain-{transport}", 3):
            expect_good(ask(testbed, name))
        daemon.stop()
        testbed.resign_dns(daemon)
    expect_equal({one.name for one in resolver.received}, {SERVER}, "the names that the resolver was asked for")
    testbed.run(f"udp://{SERVER}", bootstrap=[f"{RESOLVER}:53"])
