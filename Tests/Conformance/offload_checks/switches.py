"""The three switches of the offloads, and a tunnel whose ends have them set."""

import itertools
from dataclasses import dataclass

from testbed import Testbed
from tunnel_pair import TunnelPair, tunnel_pair

SWITCHES = ("tun", "udpSegment", "udpGRO")
VARIABLE = "SLUICE_OFFLOADS"

#: Every combination, as sets of the switches that are on; the first has none.
COMBINATIONS = [
    tuple(name for name, on in zip(SWITCHES, bits) if on) for bits in itertools.product((False, True), repeat=3)]


def name_of(combination: "tuple[str, ...]") -> str:
    """The combination as a word of an identifier."""
    return "+".join(combination) or "none"


@dataclass(frozen=True)
class Layout:
    """The sizes of a tunnel and of what it runs over, in bytes, and the family of its outer packets."""

    tunnel_mtu: int = 1420
    underlay_mtu: int = 1500
    over_ipv6: bool = False

    @property
    def identifier(self) -> str:
        """The layout as a word of an identifier."""
        return f"{self.tunnel_mtu}-{self.underlay_mtu}-{'IPv6' if self.over_ipv6 else 'IPv4'}"

    @property
    def title(self) -> str:
        """The layout in words."""
        family = "IPv6" if self.over_ipv6 else "IPv4"
        return f"a tunnel of {self.tunnel_mtu:,} over {family} of {self.underlay_mtu:,}"


def switched_pair(
    testbed: Testbed, first: "tuple[str, ...]", second: "tuple[str, ...]", layout: Layout = Layout()
) -> TunnelPair:
    """A tunnel that answers pings, its end 1 and end 2 with only these switches on."""
    pair = tunnel_pair(
        testbed, underlay_mtu=layout.underlay_mtu, over_ipv6=layout.over_ipv6, environment=_environment(first),
        environment_of_second=_environment(second))
    for end in (pair.first, pair.second):
        end.set_mtu(layout.tunnel_mtu)
    pair.expect_ping_through()
    pair.expect_ping_back()
    return pair


def _environment(combination: "tuple[str, ...]") -> dict:
    return {VARIABLE: ",".join(combination) or "none"}
