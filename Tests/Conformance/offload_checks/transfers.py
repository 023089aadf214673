"""Transfers of many streams, whose digests are equal at both ends."""

from file_transfer import Transfer, finish_all, transfer_file
from offload_checks.switches import Layout, switched_pair
from testbed import Testbed
from tunnel_pair import ADDRESS6_1, ADDRESS6_2, ADDRESS_1, ADDRESS_2, TunnelPair

MEGABYTE = 1 << 20


def ways(pair: TunnelPair) -> "list[tuple]":
    """Source, destination and address of both directions, over IPv4 and IPv6 inside."""
    first, second = pair.first.namespace, pair.second.namespace
    return [(first, second, ADDRESS_2), (second, first, ADDRESS6_1),
            (first, second, ADDRESS6_2), (second, first, ADDRESS_1)]


def transfer(
    testbed: Testbed, first: "tuple[str, ...]", second: "tuple[str, ...]", layout: Layout, streams: int, size: int
) -> None:
    """Sends `size` bytes each way: one stream after the other, several streams all at once."""
    pair = switched_pair(testbed, first, second, layout)
    # A limit for what hangs, and nothing that a slow machine comes near.
    seconds = 60 + size / (MEGABYTE / 2)
    if streams == 1:
        for seed, way in enumerate(ways(pair)):
            transfer_file(*way, size // 2, seed=seed, seconds=seconds)
        return
    # Half of the streams go over IPv4 inside and half over IPv6, each way.
    both, share = ways(pair), max(1, size // streams)
    finish_all([
        Transfer(*both[seed % 4], share, seed=seed, seconds=seconds) for seed in range(2 * streams)])


def small_segments(testbed: Testbed, combination: "tuple[str, ...]", size: int) -> None:
    """Segments so small that a super-packet has more than 128 of them."""
    pair = switched_pair(testbed, combination, combination)
    for end in (pair.first, pair.second):
        # Other ways to control congestion pace what is sent, and pacing keeps super-packets short.
        end.namespace.sysctl("net/ipv4/tcp_congestion_control", "reno")
        # The program may have asked for fewer: whoever manages the link can change that.
        end.namespace.ip("link", "set", "dev", end.name, "gso_max_segs", "65535")
    for segment in (88, 200):
        for end, addresses in ((pair.first, (ADDRESS_2, ADDRESS6_2)), (pair.second, (ADDRESS_1, ADDRESS6_1))):
            for address in addresses:
                # A first window of ten segments would be short of 128 for long.
                end.namespace.ip(
                    "route", "replace", address, "dev", end.name, "initcwnd", "2000", "advmss", str(segment))
        for seed, way in enumerate(ways(pair)):
            transfer_file(*way, size, seed=seed, maximum_segment=segment)
