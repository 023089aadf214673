"""The third topology: ns1 and ns2 wired together, each with its own daemon.

    ns1: wireguard 192.168.241.1 over veth1 10.0.0.1, fd00:aa::1
    ns2: wireguard 192.168.241.2 over veth2 10.0.0.2, fd00:aa::2
"""

from network_namespace import NetworkNamespace, connect
from testbed import Testbed
from wireguard_rows.pair import PORT_1, PORT_2, Pair


def wired_namespaces(testbed: Testbed) -> "tuple[NetworkNamespace, NetworkNamespace]":
    """Two namespaces with veth1 and veth2 up between them, without addresses."""
    first, second = testbed.namespace("1"), testbed.namespace("2")
    for namespace in (first, second):
        # A primary address that is deleted must not take the others of its network along.
        namespace.sysctl("net/ipv4/conf/all/promote_secondaries", 1)
        namespace.sysctl("net/ipv4/conf/default/promote_secondaries", 1)
        disable_reverse_path_filter(namespace, "all", "default")
    connect(first, "veth1", second, "veth2")
    return first, second


def disable_reverse_path_filter(namespace: NetworkNamespace, *interfaces: str) -> None:
    """Lets packets in whatever interface their source is routed to."""
    for interface in interfaces:
        namespace.sysctl(f"net/ipv4/conf/{interface}/rp_filter", 0)


def bare_direct_pair(testbed: Testbed) -> Pair:
    """A configured pair on wired namespaces without outer addresses and endpoints."""
    first, second = wired_namespaces(testbed)
    pair = Pair(testbed.interface(1, first), testbed.interface(2, second))
    pair.configure()
    return pair


def direct_pair(testbed: Testbed) -> Pair:
    """A configured pair with the addresses and IPv4 endpoints of the drawing above."""
    pair = bare_direct_pair(testbed)
    pair.first.namespace.add_address("veth1", "10.0.0.1/24", "fd00:aa::1/96")
    pair.second.namespace.add_address("veth2", "10.0.0.2/24", "fd00:aa::2/96")
    pair.set_endpoints(f"10.0.0.2:{PORT_2}", f"10.0.0.1:{PORT_1}")
    return pair
