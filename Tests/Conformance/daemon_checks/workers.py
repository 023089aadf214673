"""WORKERS: several threads move the packets of one interface."""

import threading

from daemon_checks.registry import check
from daemon_testbed import DaemonTestbed
from network_namespace import NetworkNamespace
from traffic import report
from tunnel_pair import OUTER_1, expect_sockets_on, join
from waiting import expect, expect_equal, wait_until
from wireguard_tool import KeyPair, WireGuardInterface

THREADS = 4
PEERS = 6
PORT = 51820


class Hub:
    """An interface of several threads, and peers in namespaces of their own that reach it over one underlay."""

    def __init__(self, testbed: DaemonTestbed):
        self.namespace = testbed.namespace("h")
        keys = KeyPair.generate()
        self.interface = testbed.interface(
            1, self.namespace, label="h", environment={"SLUICE_WORKERS": str(THREADS)})
        self.interface.add_address("10.60.0.1/24")
        self.interface.set(private_key=keys.private, listen_port=PORT)
        self.interface.up()
        outer = testbed.namespace("o")
        join(self.namespace, outer)
        self.peers: "list[WireGuardInterface]" = []
        for number in range(PEERS):
            own = KeyPair.generate()
            # The daemon keeps its sockets in the namespace that it was born in: all peers send from one address, each from a port
            # of its own, by which the hub's kernel spreads them.
            inner = testbed.namespace(f"p{number}")
            peer = testbed.interface(2, outer, move_to=inner, label=f"p{number}")
            peer.add_address(f"10.60.0.{10 + number}/24")
            peer.set(
                *peer.peer_words(keys.public, allowed_ips="10.60.0.0/24", endpoint=f"{OUTER_1}:{PORT}"),
                private_key=own.private, listen_port=40_000 + number)
            peer.up()
            self.interface.set(*self.interface.peer_words(own.public, allowed_ips=f"10.60.0.{10 + number}/32"))
            self.peers.append(peer)

    def expect_pings(self, when: str) -> None:
        """Every peer must reach the hub, and the hub every peer."""
        for number, peer in enumerate(self.peers):
            _expect_reached(peer.namespace, "10.60.0.1", when)
            _expect_reached(self.namespace, f"10.60.0.{10 + number}", when)

    def expect_pings_back(self, when: str) -> None:
        """The same, the hub first: a peer whose session the hub has lost, or that does not know its new port, would notice only
        after 15 s."""
        for number, peer in enumerate(self.peers):
            _expect_reached(self.namespace, f"10.60.0.{10 + number}", when)
            _expect_reached(peer.namespace, "10.60.0.1", when)


def _expect_reached(namespace: NetworkNamespace, destination: str, when: str) -> None:
    wait_until(
        lambda: namespace.ping(destination, seconds=1).answered, f"a ping to {destination} being answered {when}", 20)


@check("WORKERS.peers", "peers on all threads keep their sessions over a change of the port, of the mark and of the link")
def peers(testbed: DaemonTestbed) -> None:
    hub = Hub(testbed)
    hub.expect_pings("at first")
    expect_equal(len(expect_sockets_on(hub.namespace, PORT)), 2 * THREADS, "the number of sockets")
    hub.interface.set(listen_port=PORT + 1)
    expect_equal(len(expect_sockets_on(hub.namespace, PORT + 1)), 2 * THREADS, "the number of sockets on the new port")
    hub.expect_pings_back("on the new port")
    hub.interface.set("fwmark", "0x10")
    hub.expect_pings("with a mark")
    hub.interface.down()
    hub.interface.up()
    hub.expect_pings_back("after the link was down")


@check("WORKERS.order", "the packets of a flow stay in order, whichever thread moves them")
def order(testbed: DaemonTestbed) -> None:
    hub = Hub(testbed)
    hub.expect_pings("at first")
    reports: "list[dict]" = []

    def send(number: int) -> None:
        reports.append(
            report(
                hub.peers[number].namespace, hub.namespace, "10.60.0.1", "-u", "-b", "20M", "-l", "300", "-P", "3",
                port=5300 + number, seconds=2)["end"])

    senders = [threading.Thread(target=send, args=(number,)) for number in range(3)]
    for sender in senders:
        sender.start()
    for sender in senders:
        sender.join()
    expect_equal(len(reports), len(senders), "the number of senders that came to an end")
    for end in reports:
        for stream in end["streams"]:
            expect_equal(stream["udp"]["out_of_order"], 0, "the number of packets out of order")
        expect(end["sum"]["packets"] > end["sum"]["lost_packets"], "no packet arrived")
