"""A peer whose endpoint is reached through another peer of the same interface."""

from testbed import Testbed
from waiting import expect, wait_until
from wireguard_rows.pair import ADDRESS_2, expect_no_ping, expect_ping
from wireguard_rows.registry import check
from wireguard_rows.router import routed_pair
from wireguard_tool import KeyPair


@check(15, "a peer whose endpoint is inside the tunnel; an endpoint inside itself fails cleanly")
def onion(testbed: Testbed) -> None:
    pair = routed_pair(testbed).pair
    first, second = pair.first, pair.second
    wait_until(lambda: first.namespace.ping(ADDRESS_2).answered, "the first ping answered", 10)

    keys = KeyPair.generate()
    first.set_peer(keys.public, allowed_ips="192.168.242.2/32", endpoint=f"{ADDRESS_2}:5")
    first.add_address("192.168.242.1/24")
    inner = testbed.interface(2, second.namespace, label="in")
    inner.add_address("192.168.242.2/24")
    inner.set(*inner.peer_words(pair.keys_1.public, allowed_ips="192.168.242.1/32"),
              private_key=keys.private, listen_port=5)
    inner.up()
    wait_until(lambda: first.namespace.ping("192.168.242.2").answered, "a ping through the tunnel in the tunnel", 10)
    expect_ping(first.namespace, "192.168.242.2")

    if testbed.judges(1):
        # The session is alive, but what it sends now returns to it.
        testbed.resign(inner.daemon)
        inner.daemon.discard()
        first.set_peer(keys.public, endpoint="192.168.242.2:5")
        expect_no_ping(first.namespace, "192.168.242.2")
        first.daemon.expect_alive()
        first.remove_peer(keys.public)
        expect(keys.public not in first.show("peers"), "the removed peer is still listed")
        wait_until(lambda: first.namespace.ping(ADDRESS_2).answered, "the other peer answering after the loop", 5)
