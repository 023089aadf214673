"""Routes that change under a session, and what a link that comes up sends."""

from network_namespace import connect
from testbed import Testbed
from waiting import expect, expect_equal, wait_until
from wireguard_rows.direct import bare_direct_pair, disable_reverse_path_filter, wired_namespaces
from wireguard_rows.pair import ADDRESS_2, PORT_1, PORT_2, expect_ping
from wireguard_rows.registry import check
from wireguard_tool import KeyPair

INITIATION_SIZE = 148


@check(21, "a route with a better metric takes the traffic over", judges=(1,))
def better_route(testbed: Testbed) -> None:
    pair = bare_direct_pair(testbed)
    first, second = pair.first.namespace, pair.second.namespace
    connect(first, "veth3", second, "veth4")
    disable_reverse_path_filter(first, "veth1", "veth3")
    disable_reverse_path_filter(second, "veth2", "veth4")
    first.add_address("veth1", "10.0.0.1/24")
    first.add_address("veth3", "10.0.0.3/24")
    second.add_address("veth2", "10.0.0.2/24")
    first.ip("route", "flush", "dev", "veth1")
    first.ip("route", "flush", "dev", "veth3")
    first.ip("route", "add", "10.0.0.0/24", "dev", "veth1", "src", "10.0.0.1", "metric", "2")
    pair.set_endpoints(of_second=f"10.0.0.2:{PORT_2}")
    wait_until(lambda: first.ping(ADDRESS_2).answered, "the first ping answered", 10)
    pair.expect_endpoint_of_first(f"10.0.0.1:{PORT_1}")
    first.ip("route", "add", "10.0.0.0/24", "dev", "veth3", "src", "10.0.0.3", "metric", "1")
    expect_ping(first, ADDRESS_2)

    # A daemon learns of the route by a message that the first ping may overtake; nothing may be lost meanwhile.
    def moved() -> bool:
        expect_ping(first, ADDRESS_2)
        return pair.second.endpoint(pair.keys_1.public) == f"10.0.0.3:{PORT_1}"

    wait_until(moved, "the traffic moving to 10.0.0.3", 2, detail=lambda: pair.second.endpoint(pair.keys_1.public))


@check(22, "a persistent keepalive goes out when the link comes up or the key is set", judges=())
def keepalive_at_link_up(testbed: Testbed) -> None:
    first, second = wired_namespaces(testbed)
    first.add_address("veth1", "10.0.0.1/24")
    second.add_address("veth2", "10.0.0.2/24")
    peer = KeyPair.generate().public
    # An interval that is too long for anything but the event itself to make the daemon send.
    long_interval, endpoint = 30, f"10.0.0.2:{PORT_2}"

    def received(inbox, seconds: float) -> int:
        inbox.settimeout(seconds)
        try:
            return len(inbox.recv(65535))
        except TimeoutError:
            return 0

    with second.udp_socket("10.0.0.2", PORT_2) as inbox:
        interface = testbed.interface(1, first, label="a")
        interface.set(*interface.peer_words(peer, endpoint=endpoint, persistent_keepalive=long_interval),
                      private_key=KeyPair.generate().private, listen_port=PORT_1)
        expect_equal(received(inbox, 0.5), 0, "the size of what was sent while the link is down")
        expect_equal(interface.transfer(peer)[1], 0, "bytes sent before the link is up")
        interface.up()
        expect_equal(received(inbox, 4), INITIATION_SIZE, "the size of what was sent when the link came up")
        wait_until(lambda: interface.transfer(peer)[1] > 0, "bytes sent being counted", 1)
        interface.namespace.ip("link", "del", interface.name)
        interface.daemon.expect_clean_exit()
        testbed.resign(interface.daemon)

    with second.udp_socket("10.0.0.2", PORT_2) as inbox:
        interface = testbed.interface(1, first, label="b")
        interface.set(*interface.peer_words(peer, endpoint=endpoint, persistent_keepalive=1), listen_port=PORT_1)
        interface.up()
        expect_equal(received(inbox, 2.5), 0, "the size of what was sent without a private key")
        expect_equal(interface.transfer(peer)[1], 0, "bytes sent without a private key")
        interface.set_peer(peer, persistent_keepalive=long_interval)
        interface.set(private_key=KeyPair.generate().private)
        size = received(inbox, 4)
        expect(size == INITIATION_SIZE, f"{size} bytes instead of an initiation were sent when the key was set")
        wait_until(lambda: interface.transfer(peer)[1] > 0, "bytes sent being counted", 1)
