"""Two namespaces joined by a veth pair, each with a daemon of its own, and a tunnel between them."""

import re
from typing import Optional

import network_namespace
from network_namespace import NetworkNamespace
from testbed import Testbed
from waiting import expect, wait_until
from wireguard_rows.pair import ADDRESS6_1, ADDRESS6_2, ADDRESS_1, ADDRESS_2, Pair

__all__ = ["ADDRESS_1", "ADDRESS_2", "ADDRESS6_1", "ADDRESS6_2", "TunnelPair", "tunnel_pair", "udp_inodes"]

OUTER_1, OUTER_2 = "10.0.0.1", "10.0.0.2"
OUTER6_1, OUTER6_2 = "fd00:aa::1", "fd00:aa::2"


class TunnelPair(Pair):
    """Ends 1 and 2 over an underlay; end 1 is the one that most checks look at."""

    def expect_ping_through(self, destination: str = ADDRESS_2, seconds: float = 20.0) -> None:
        """The first answer to a ping from end 1 must come in that time, handshake and its repetitions included."""
        self.expect_reached(self.first.namespace, destination, seconds)

    def expect_ping_back(self, destination: str = ADDRESS_1, seconds: float = 20.0) -> None:
        """The first answer to a ping from end 2 must come in that time."""
        self.expect_reached(self.second.namespace, destination, seconds)

    @staticmethod
    def expect_reached(namespace: NetworkNamespace, destination: str, seconds: float = 20.0) -> None:
        """The first answer to a ping must come in that time."""
        wait_until(
            lambda: namespace.ping(destination, seconds=1).answered, f"a ping to {destination} being answered", seconds)

    def expect_pings(self, count: int, when: str, destination: str = ADDRESS_2, *options: str) -> None:
        """So many pings from end 1, none of which may be lost."""
        result = self.first.namespace.ping(destination, "-i", "0.05", *options, count=count, seconds=3)
        expect(result.received == count, f"{result.received} of {count} pings answered {when}")


def tunnel_pair(
    testbed: Testbed,
    *,
    underlay_mtu: Optional[int] = None,
    over_ipv6: bool = False,
    endpoints: bool = True,
    environment: Optional[dict] = None,
    environment_of_second: Optional[dict] = None,
) -> TunnelPair:
    """The pair with links up. Unless `endpoints` is false each end knows where the other one is.

    `environment` is added to that of end 1's daemon, `environment_of_second` to that of end 2's.
    """
    first, second = testbed.namespace("a"), testbed.namespace("b")
    join(first, second, underlay_mtu)
    pair = TunnelPair(
        testbed.interface(1, first, environment=environment),
        testbed.interface(2, second, environment=environment_of_second))
    pair.configure()
    if endpoints:
        pair.set_endpoints(
            f"[{OUTER6_2}]:2" if over_ipv6 else f"{OUTER_2}:2", f"[{OUTER6_1}]:1" if over_ipv6 else f"{OUTER_1}:1")
    return pair


def join(first: NetworkNamespace, second: NetworkNamespace, mtu: Optional[int] = None) -> None:
    """Lays the underlay: interface `under` in both namespaces, with an IPv4 and an IPv6 address."""
    network_namespace.connect(first, "under", second, "under")
    for namespace, addresses in ((first, (OUTER_1, OUTER6_1)), (second, (OUTER_2, OUTER6_2))):
        if mtu is not None:
            namespace.ip("link", "set", "under", "mtu", str(mtu))
        namespace.add_address("under", f"{addresses[0]}/24", f"{addresses[1]}/64")


def udp_inodes(namespace: NetworkNamespace, port: int) -> "set[str]":
    """The inodes of the UDP sockets bound to a port inside, both families."""
    text = namespace.run("ss", "-H", "-u", "-a", "-n", "-e", f"sport = :{port}").stdout
    return set(re.findall(r"\bino:(\d+)", text))


def expect_sockets_on(namespace: NetworkNamespace, port: int) -> "set[str]":
    """Both families must be bound to a port inside, as often the one as the other; their inodes are returned. How many there
    are is the daemon's own business: one of each, or one for each of its threads."""
    counts = [
        len(namespace.run("ss", "-H", "-u", "-a", "-n", family, f"sport = :{port}").stdout.splitlines())
        for family in ("-4", "-6")]
    expect(counts[0] == counts[1] > 0, f"{counts[0]} IPv4 and {counts[1]} IPv6 sockets are bound to port {port}")
    return udp_inodes(namespace, port)
