"""A machine whose way to its servers changes: other routes, other addresses, no network for a while."""

import itertools

import network_namespace
from dns_checks.registry import check
from dns_site import MARGIN, EncryptedSite, ask, ask_all, ask_in_time, expect_failure, expect_good, names
from dns_testbed import DNSTestbed
from dns_upstream import Upstream
from waiting import expect, expect_equal, pause, wait_until

#: Where the server is when it is not on the machine, and the machine's and the router's addresses on two networks.
OUTSIDE = "192.0.2.53"
FIRST, SECOND = ("10.1.0.1", "10.1.0.2"), ("10.2.0.1", "10.2.0.2")


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
