"""UDP inside the tunnel: payloads and order are kept, however the kernel and the program gather datagrams."""

from datagram_exchange import WINDOW, send_one_by_one, send_segmented, trains
from offload_checks.switches import Layout, switched_pair
from offload_checks.transfers import ways
from testbed import Testbed

_SIZES = range(1, 1401)


def _largest_whole(address: str, tunnel_mtu: int = Layout().tunnel_mtu) -> int:
    """The longest payload to that address that fits into one packet of the tunnel, in bytes."""
    return tunnel_mtu - (48 if ":" in address else 28)


def every_size(testbed: Testbed, combination: "tuple[str, ...]", over_ipv6: bool) -> None:
    """Sizes that grow (nothing can be joined), that shrink (pairs can), and that stay (all can)."""
    pair = switched_pair(testbed, combination, combination, Layout(over_ipv6=over_ipv6))
    equal = [size for size in (1, 2, 13, 100, 700, 1371, 1372) for _ in range(2 * WINDOW)]
    for seed, way in enumerate(ways(pair)):
        options = {"seed": seed, "largest_whole": _largest_whole(way[2])}
        send_one_by_one(*way, _SIZES, **options)
        send_one_by_one(*way, _SIZES[::-1], gathered=True, **options)
        send_one_by_one(*way, equal, **options)
        send_one_by_one(*way, equal, gathered=True, **options)
        if ":" not in way[2]:
            send_one_by_one(*way, equal, gathered=True, checksum=False, **options)


def segmented(testbed: Testbed, combination: "tuple[str, ...]", over_ipv6: bool) -> None:
    """Trains of UDP_SEGMENT, received as they come and gathered."""
    pair = switched_pair(testbed, combination, combination, Layout(over_ipv6=over_ipv6))
    for seed, way in enumerate(ways(pair)):
        largest = _largest_whole(way[2])
        sizes = (1, 2, 7, 8, 64, 100, 511, 512, 1000, largest - 1, largest)
        for gathered in (False, True):
            send_segmented(*way, trains(sizes), seed=seed, gathered=gathered)
