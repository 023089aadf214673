"""Several addresses of one server (RFC 8305), and a machine whose way to it changes."""

import itertools

import network_namespace
from dns_checks.registry import check
from dns_site import ADDRESS, MARGIN, EncryptedSite, ask, ask_all, ask_in_time, expect_failure, expect_good, names
from dns_testbed import DNSTestbed
from dns_upstream import Upstream
from waiting import expect, expect_equal, pause, wait_until

#: Where the server is when it is not on the machine, and the machine's and the router's addresses on two networks.
OUTSIDE = "192.0.2.53"
FIRST, SECOND = ("10.1.0.1", "10.1.0.2"), ("10.2.0.1", "10.2.0.2")


def _drop(testbed: DNSTestbed, *addresses: str) -> None:
    """Packets to these addresses vanish."""
    for address in addresses:
        family = "ip6" if ":" in address else "ip"
        testbed.network.nft(
            "table inet hole { chain output { type filter hook output priority 0;\n"
            f"{family} daddr {address} drop\n}}\n}}\n")


@check("D13", "of several addresses the next is tried when nobody is at one, or when it says nothing")
def dead_addresses(testbed: DNSTestbed) -> None:
    site = EncryptedSite(testbed)
    site.tls(), site.https()
    _drop(testbed, "127.0.0.7")
    for transport in ("tls", "https"):
        cases = {"refused": ["127.0.0.8"], "silent": ["127.0.0.7"], "both": ["127.0.0.7", "127.0.0.8"]}
        for label, dead in cases.items():
            daemon = testbed.run(site.member(transport, addresses=[*dead, ADDRESS]), timeoutSeconds=4)
            expect_good(ask_in_time(testbed, f"{label}-{transport}.example.org", 3))
            # The good one is known now.
            expect_good(ask_in_time(testbed, f"{label}-{transport}-again.example.org", 0.7))
            daemon.stop()
            testbed.resign_dns(daemon)
    testbed.run(site.member("tls"))


@check("D13.family", "a machine whose IPv6 leads nowhere reaches the server by IPv4, and the other way round")
def families(testbed: DNSTestbed) -> None:
    testbed.network.add_address("lo", "fd00:53::2/128")
    site = EncryptedSite(testbed)
    site.tls()
    site.tls(address="fd00:53::2")
    _drop(testbed, "fd00:53::9", "127.0.0.7")
    testbed.network.ip("-6", "route", "add", "fd00:53::9/128", "dev", "lo")
    for label, addresses in (("no-route", ["2001:db8::53", ADDRESS]), ("nowhere", ["fd00:53::9", ADDRESS]),
                             ("reverse", ["127.0.0.7", "fd00:53::2"])):
        daemon = testbed.run(site.member("tls", addresses=addresses), timeoutSeconds=4)
        expect_good(ask_in_time(testbed, f"{label}.example.org", 3))
        daemon.stop()
        testbed.resign_dns(daemon)
    testbed.run(site.member("tls"))


@check("D13.later", "a server that dies at one address is reached at the other at once, for the queries under way too")
def dies_later(testbed: DNSTestbed) -> None:
    site = EncryptedSite(testbed)
    first, second = site.tls(), site.tls(address="127.0.0.4")
    testbed.run(site.member("tls", addresses=[ADDRESS, "127.0.0.4"]), timeoutSeconds=4)
    expect_good(ask(testbed, "first.example.org"))
    expect_equal(len(first.received), 1, "the queries at the first address")
    first.close(connections=True)
    for name in names("moved", 3):
        expect_good(ask_in_time(testbed, name, 1))
    expect_equal(len(second.received), 3, "the queries at the second address")


@check("D13.untrusted", "an address with a server that is not to be trusted is passed over, and gets nothing")
def untrusted_address(testbed: DNSTestbed) -> None:
    site = EncryptedSite(testbed)
    wrong = site.tls(site.authority.issue("other.example"), address="127.0.0.4")
    right = site.tls()
    testbed.run(site.member("tls", addresses=["127.0.0.4", ADDRESS]), timeoutSeconds=4)
    for name in names("passed", 3):
        expect_good(ask_in_time(testbed, name, 2))
    expect(wrong.connections, "the first address was not tried")
    expect_equal((len(wrong.received), [one.plain_byte_count for one in wrong.connections if one.plain_byte_count]),
                 (0, []), "what came to the server that is not to be trusted")
    expect_equal(len(right.received), 3, "the queries at the second address")


@check("D13.none", "when nobody is at any address, that is a failure in time")
def no_address(testbed: DNSTestbed) -> None:
    site = EncryptedSite(testbed)
    _drop(testbed, "127.0.0.7")
    for label, addresses in (("refused", ["127.0.0.8", "127.0.0.9"]), ("silent", ["127.0.0.7"])):
        daemon = testbed.run(site.member("tls", addresses=addresses), timeoutSeconds=1.5)
        for name in names(label, 2):
            expect_failure(ask_in_time(testbed, name, 1.5 + MARGIN))
        daemon.stop()
        testbed.resign_dns(daemon)
    site.tls()
    testbed.run(site.member("tls"))


class Networks:
    """A machine with two networks, behind both of which is the server; the default route says which one is used."""

    def __init__(self, testbed: DNSTestbed):
        self.machine, self.world = testbed.network, testbed.namespace("world")
        for name, (own, router) in (("first", FIRST), ("second", SECOND)):
            network_namespace.connect(self.machine, name, self.world, name)
            self.machine.add_address(name, f"{own}/24")
            self.world.add_address(name, f"{router}/24")
        self.world.add_address("lo", f"{OUTSIDE}/32")
        self.machine.ip("route", "add", "default", "via", FIRST[1], "metric", "100")
        # The routers' neighbours are known: a packet with an old address could otherwise hold up those behind it.
        for _, router in (FIRST, SECOND):
            expect(self.machine.ping(router).answered, f"{router} is not reached")
        self.upstream = testbed.enter(Upstream(self.world, OUTSIDE))

    def move(self) -> None:
        """The first network is gone without a word, and the default route leads by the second, where packets with an
        address of the first lead nowhere."""
        self.world.nft(
            "table inet gone { chain input { type filter hook input priority 0;\niifname first drop\n"
            f"ip saddr {FIRST[0]} drop\n}}\n}}\n")
        self.machine.ip("route", "replace", "default", "via", SECOND[1], "metric", "100")


def _outside(testbed: DNSTestbed) -> "tuple[EncryptedSite, Networks]":
    networks = Networks(testbed)
    return EncryptedSite(testbed, OUTSIDE, upstream=networks.upstream), networks


@check("D8.route", "when the machine's way is another one, connections by the old one are dropped, and answers go on")
def route_change(testbed: DNSTestbed) -> None:
    site, networks = _outside(testbed)
    site.tls(), site.https()
    testbed.run([site.member("https"), site.member("tls")], timeoutSeconds=4)
    for name in names("before", 3):
        expect_good(ask(testbed, name))
    expect_equal({one.client[0] for one in networks.upstream.received}, {FIRST[0]}, "the address of the machine before")
    networks.move()
    # It is told by the kernel; a query in the same moment may still go by the old connection, and is answered in time.
    for answer in ask_all(testbed, names("moment", 3), seconds=4 + MARGIN).values():
        expect_good(answer)
    for name in names("after", 5):
        expect_good(ask_in_time(testbed, name, 1))
    expect_equal(networks.upstream.received[-1].client[0], SECOND[0], "the address of the machine after")


@check("D8.address", "when the machine's address goes away, answers go on by another one")
def address_change(testbed: DNSTestbed) -> None:
    site, networks = _outside(testbed)
    site.tls()
    testbed.run(site.member("tls"), timeoutSeconds=4)
    expect_good(ask(testbed, "before.example.org"))
    old = networks.upstream.connections[-1]
    networks.machine.delete_address("first", f"{FIRST[0]}/24")
    networks.machine.add_address("first", "10.1.0.9/24")
    networks.machine.ip("route", "replace", "default", "via", FIRST[1], "metric", "100")
    # There was no way to the server for a moment.
    number = itertools.count()
    wait_until(lambda: ask(testbed, f"again-{next(number)}.example.org").code == 0, "an answer by the new address", 3,
               interval=0.1, detail=networks.upstream.summary)
    for name in names("after", 5):
        expect_good(ask_in_time(testbed, name, 1))
    expect(networks.upstream.received[-1].connection is not old, "the old connection is still used")
    expect_equal(networks.upstream.received[-1].client[0], "10.1.0.9", "the address of the machine after")


@check("D8.down", "a machine that loses its network for a moment answers again as soon as it has one")
def network_loss(testbed: DNSTestbed) -> None:
    site, networks = _outside(testbed)
    site.https()
    testbed.run(site.member("https"), timeoutSeconds=1)
    expect_good(ask(testbed, "before.example.org"))
    networks.machine.ip("link", "set", "first", "down")
    expect_failure(ask_in_time(testbed, "down.example.org", 1 + MARGIN))
    networks.machine.ip("link", "set", "first", "up")
    networks.machine.wait_for_link_up("first")
    networks.machine.ip("route", "replace", "default", "via", FIRST[1], "metric", "100")
    number = itertools.count()
    wait_until(lambda: ask(testbed, f"up-{next(number)}.example.org").code == 0, "an answer when the network is back",
               5, interval=0.1, detail=networks.upstream.summary)


@check("D8.start", "a machine that has no network at the start answers as soon as it has one")
def late_network(testbed: DNSTestbed) -> None:
    site, networks = _outside(testbed)
    site.tls()
    networks.machine.ip("route", "del", "default")
    testbed.run(site.member("tls"), timeoutSeconds=1)
    for name in names("before", 5):
        expect_failure(ask_in_time(testbed, name, 1 + MARGIN))
        pause(0.3)
    networks.machine.ip("route", "add", "default", "via", FIRST[1], "metric", "100")
    number = itertools.count()
    wait_until(lambda: ask(testbed, f"up-{next(number)}.example.org").code == 0, "an answer when there is a network", 2,
               interval=0.1, detail=networks.upstream.summary)


@check("D8.plain", "plain queries go on when the machine's way is another one")
def plain_route_change(testbed: DNSTestbed) -> None:
    networks = Networks(testbed)
    networks.upstream.udp(), networks.upstream.tcp()
    for transport in ("udp", "tcp"):
        daemon = testbed.run(f"{transport}://{OUTSIDE}:53", timeoutSeconds=4)
        expect_good(ask(testbed, f"before-{transport}.example.org"))
        if transport == "udp":
            networks.move()
            expect_good(ask_in_time(testbed, "after-udp.example.org", 4))
            expect_equal(networks.upstream.received[-1].client[0], SECOND[0], "the address of the machine after")
        daemon.stop()
        testbed.resign_dns(daemon)
    testbed.run(f"udp://{OUTSIDE}:53")
