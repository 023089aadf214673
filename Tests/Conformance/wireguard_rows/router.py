"""The second topology: end 1 behind a router that translates addresses.

    ns1: wireguard 192.168.241.1 over client 192.168.1.100
    ns0: inside 192.168.1.1, outside 10.0.0.1; translates 192.168.1.0/24 to 10.0.0.1, forgets UDP flows after 2 s
    ns2: wireguard 192.168.241.2 over server 10.0.0.100
"""

from dataclasses import dataclass

from network_namespace import NetworkNamespace, connect
from testbed import Testbed
from wireguard_rows.pair import PORT_2, Pair


@dataclass
class RoutedPair:
    """A configured pair and the router between its ends."""

    pair: Pair
    router: NetworkNamespace


def routed_pair(testbed: Testbed) -> RoutedPair:
    """The topology above; end 1 knows the endpoint of end 2, which has none for end 1. Links up."""
    router, first, second = (testbed.namespace(label) for label in ("0", "1", "2"))
    connect(router, "inside", first, "client")
    connect(router, "outside", second, "server")
    router.add_address("inside", "192.168.1.1/24")
    router.add_address("outside", "10.0.0.1/24")
    first.add_address("client", "192.168.1.100/24")
    first.ip("route", "add", "default", "via", "192.168.1.1")
    second.add_address("server", "10.0.0.100/24")
    router.sysctl("net/ipv4/ip_forward", 1)
    router.nft("""table ip translation {
        chain postrouting {
            type nat hook postrouting priority srcnat; policy accept;
            ip saddr 192.168.1.0/24 ip daddr 10.0.0.0/24 snat to 10.0.0.1
        }
    }""")
    for timeout in ("nf_conntrack_udp_timeout", "nf_conntrack_udp_timeout_stream"):
        router.sysctl(f"net/netfilter/{timeout}", 2)
    pair = Pair(testbed.interface(1, first), testbed.interface(2, second))
    pair.configure()
    pair.set_endpoints(of_second=f"10.0.0.100:{PORT_2}")
    return RoutedPair(pair, router)
