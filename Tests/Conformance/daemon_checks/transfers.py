"""B1, B3, B10: transfers over links that make offloads fail; every byte must arrive."""

from daemon_checks.registry import check
from daemon_testbed import DaemonTestbed
from file_transfer import transfer_file
from tunnel_pair import ADDRESS6_1, ADDRESS_1, ADDRESS_2, TunnelPair, tunnel_pair
from waiting import expect

MEGABYTE = 1 << 20


def _both_ways(pair: TunnelPair, size: int, **options) -> None:
    first, second = pair.first.namespace, pair.second.namespace
    transfer_file(first, second, ADDRESS_2, size, **options)
    transfer_file(second, first, ADDRESS_1, size, **options)


@check("B1", "an underlay of 1,280 bytes under a tunnel of 1,420 carries transfers both ways")
def small_underlay(testbed: DaemonTestbed) -> None:
    pair = tunnel_pair(testbed, underlay_mtu=1280)
    pair.expect_ping_through()
    _both_ways(pair, 8 * MEGABYTE)
    result = pair.first.namespace.ping(ADDRESS_2, "-s", "1392", "-i", "0.05", count=20, seconds=3)
    expect(result.received == 20, f"{result.received} of 20 pings of the tunnel's full size answered")


@check("B1.route", "a smaller MTU on the route to the endpoint, found only after the start")
def small_route(testbed: DaemonTestbed) -> None:
    pair = tunnel_pair(testbed)
    pair.expect_ping_through()
    _both_ways(pair, MEGABYTE)
    for namespace, outer in ((pair.first.namespace, "10.0.0.2"), (pair.second.namespace, "10.0.0.1")):
        namespace.ip("route", "add", f"{outer}/32", "dev", "under", "mtu", "1280")
    _both_ways(pair, 8 * MEGABYTE)


@check("underlay.1280", "an IPv6 underlay of 1,280 bytes carries transfers both ways")
def small_ipv6_underlay(testbed: DaemonTestbed) -> None:
    pair = tunnel_pair(testbed, underlay_mtu=1280, over_ipv6=True)
    pair.expect_ping_through()
    _both_ways(pair, 8 * MEGABYTE)
    transfer_file(pair.second.namespace, pair.first.namespace, ADDRESS6_1, 2 * MEGABYTE)


@check("B3.checksum", "an underlay without checksum offload (UDP_SEGMENT fails with EIO)")
def no_checksum_offload(testbed: DaemonTestbed) -> None:
    pair = tunnel_pair(testbed)
    pair.expect_ping_through()
    _both_ways(pair, MEGABYTE)
    # While the daemon already believes that it may batch.
    for namespace in (pair.first.namespace, pair.second.namespace):
        namespace.run("ethtool", "-K", "under", "tx", "off")
    _both_ways(pair, 16 * MEGABYTE)
    for namespace in (pair.first.namespace, pair.second.namespace):
        namespace.run("ethtool", "-K", "under", "tx", "on")
    _both_ways(pair, 4 * MEGABYTE)


@check("B3.segmentation", "an underlay without UDP segmentation offload, and one without receive offload")
def no_segmentation_offload(testbed: DaemonTestbed) -> None:
    pair = tunnel_pair(testbed)
    pair.expect_ping_through()
    for features in (["tx-udp-segmentation", "off"], ["gro", "off", "gso", "off", "tso", "off"]):
        for namespace in (pair.first.namespace, pair.second.namespace):
            namespace.run("ethtool", "-K", "under", *features)
        _both_ways(pair, 8 * MEGABYTE)


@check("B10", "segments of 88 and 200 bytes: more than 128 to a super-packet")
def small_segments(testbed: DaemonTestbed) -> None:
    pair = tunnel_pair(testbed)
    pair.expect_ping_through()
    _both_ways(pair, 2 * MEGABYTE, maximum_segment=88)
    for interface, other in ((pair.first, "192.168.241.0/24"), (pair.second, "192.168.241.0/24")):
        interface.namespace.ip("route", "change", other, "dev", interface.name, "advmss", "200")
    _both_ways(pair, 6 * MEGABYTE)
