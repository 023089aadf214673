"""WireGuard inside WireGuard, and inside itself."""

from testbed import Testbed
from waiting import expect, pause
from wireguard_rows.direct import direct_pair
from wireguard_rows.loopback_traffic import exercise
from wireguard_rows.pair import ADDRESS6_1, ADDRESS6_2, ADDRESS_1, ADDRESS_2, PORT_1, PORT_2, Pair, loopback_pair
from wireguard_rows.registry import check

OUTER_1, OUTER_2, INNER_PORT = "fd00::5:1", "fd00::5:2", 5


@check(11, "pings and iperf3 through WireGuard inside WireGuard", exclusive=True)
def nested(testbed: Testbed) -> None:
    outer_pair, _ = loopback_pair(testbed)
    for interface, address in ((outer_pair.first, OUTER_1), (outer_pair.second, OUTER_2)):
        interface.namespace.ip("address", "flush", "dev", interface.name)
        interface.add_address(f"{address}/112")
    outer_pair.first.set_peer(
        outer_pair.keys_2.public, allowed_ips=f"{OUTER_2}/128", endpoint=f"127.0.0.1:{PORT_2}")
    outer_pair.second.set_peer(
        outer_pair.keys_1.public, allowed_ips=f"{OUTER_1}/128", endpoint=f"127.0.0.1:{PORT_1}")

    inner = Pair(
        testbed.interface(1, outer_pair.first.namespace, label="in"),
        testbed.interface(2, outer_pair.second.namespace, label="in"))
    inner.first.add_address(f"{ADDRESS_1}/24", f"{ADDRESS6_1}/112")
    inner.second.add_address(f"{ADDRESS_2}/24", f"{ADDRESS6_2}/112")
    for interface in (inner.first, inner.second):
        interface.set_mtu(1340)
        interface.up()
    inner.first.set(
        *inner.first.peer_words(
            inner.keys_2.public, allowed_ips=f"{ADDRESS_2}/32,{ADDRESS6_2}/128", endpoint=f"[{OUTER_2}]:{INNER_PORT}"),
        private_key=inner.keys_1.private, listen_port=INNER_PORT)
    inner.second.set(
        *inner.second.peer_words(
            inner.keys_1.public, allowed_ips=f"{ADDRESS_1}/32,{ADDRESS6_1}/128", endpoint=f"[{OUTER_1}]:{INNER_PORT}"),
        private_key=inner.keys_2.private, listen_port=INNER_PORT)
    inner.establish()
    exercise(inner)


@check(12, "a routing loop dies out", judges=(1,))
def routing_loop(testbed: Testbed) -> None:
    # The kernel's scenario loops through two devices in two namespaces. Here the loop is the shortest there is: a live
    # session whose endpoint moves into its own tunnel, so that every datagram sent comes back as a packet to send.
    pair = direct_pair(testbed)
    pair.establish()
    testbed.resign(pair.second.daemon)
    pair.second.daemon.discard()
    pair.set_endpoints(of_second=f"{ADDRESS_2}:7")
    before = pair.first.transfer(pair.keys_2.public)[1]

    def grown() -> int:
        return pair.first.transfer(pair.keys_2.public)[1] - before

    result = pair.first.namespace.ping(ADDRESS_2, "-f", "-q", count=10)
    expect(not result.answered, "a ping into the loop is answered")
    pause(1)
    growth = grown()
    expect(growth < 70_000, f"10 pings into the loop grew to {growth} bytes sent")
    pause(1)
    # At most a few handshake attempts, if any, may still be going out.
    expect(grown() - growth < 1_000, f"the loop still grows: {growth} bytes, then {grown()}")
    pair.first.daemon.expect_alive()
