"""A machine for `sluice run`, and behind its networks a world in which each destination proves the way taken."""

from typing import Optional

import network_namespace
from daemon_testbed import DaemonTestbed
from machine import Machine
from network_namespace import NetworkNamespace
from run_instance import Instance
from tunnel_pair import TunnelPair
from waiting import expect, wait_until
from wireguard_tool import KeyPair, WireGuardInterface, generate_preshared_key

#: The machine's two networks: its address and its router's.
LAN, LAN6 = ("10.0.0.1", "10.0.0.2"), ("fd00:aa::1", "fd00:aa::2")
SECOND, SECOND6 = ("10.0.1.1", "10.0.1.2"), ("fd00:bb::1", "fd00:bb::2")
#: Where the peer is: behind the default routes.
ENDPOINT, ENDPOINT6 = "192.0.2.1", "2001:db8:1::1"
#: Destinations that answer only to what comes through the tunnel.
INSIDE, INSIDE6 = "198.51.100.1", "2001:db8:99::1"
#: Destinations that answer only to what comes beside it; the router's own addresses do so too.
OUTSIDE, OUTSIDE6 = "203.0.113.1", "2001:db8:ee::1"
PORT = 51820

FULL = "0.0.0.0/0, ::/0"
SPLIT = "10.8.0.0/24, fd08::/64, 198.51.100.0/24, 2001:db8:99::/48"


class Peer:
    """A WireGuard interface in the world, and what the machine needs to know of it."""

    def __init__(self, testbed: DaemonTestbed, namespace: NetworkNamespace, number: int = 8, port: int = PORT,
                 label: str = ""):
        self.number, self.port = number, port
        self.keys, self.own_keys, self.preshared = KeyPair.generate(), KeyPair.generate(), generate_preshared_key()
        self.inner, self.inner6 = f"10.{number}.0.1", f"fd0{number}::1"
        self.interface: WireGuardInterface = testbed.interface(2, namespace, label=f"{label}{number}")
        self.interface.set(
            *self.interface.peer_words(
                self.keys.public, preshared_key=self.preshared,
                allowed_ips=f"10.{number}.0.2/32,fd0{number}::2/128"),
            private_key=self.own_keys.private, listen_port=port)
        self.interface.add_address(f"{self.inner}/24", f"{self.inner6}/64")
        self.interface.up()

    def section(self, allowed: str, endpoint: "Optional[str]" = f"{ENDPOINT}:{PORT}", more: str = "") -> str:
        """The peer as a section of the machine's file."""
        place = f"Endpoint = {endpoint}\n" if endpoint else ""
        return (f"[Peer]\nPublicKey = {self.own_keys.public}\nPresharedKey = {self.preshared}\n"
                f"AllowedIPs = {allowed}\n{place}{more}\n")

    def file(self, allowed: str, interface: str = "", endpoint: "Optional[str]" = f"{ENDPOINT}:{PORT}",
             peer: str = "") -> str:
        """The machine's file: more lines for the interface and for the peer."""
        return (f"[Interface]\nPrivateKey = {self.keys.private}\n"
                f"Address = 10.{self.number}.0.2/24, fd0{self.number}::2/64\n{interface}\n"
                + self.section(allowed, endpoint, peer))

    def handshake(self) -> int:
        """When the last handshake was."""
        return self.interface.latest_handshake(self.keys.public)

    def place(self) -> str:
        """Where the peer believes the machine to be."""
        return self.interface.endpoint(self.keys.public)


class Site:
    """The machine (`machine`), the world (`world`), a peer in it, and the daemon (`instance`), which is not started."""

    def __init__(self, testbed: DaemonTestbed, second: bool = False, label: str = "", resolver: str = LAN[1],
                 peer: bool = True):
        self.testbed = testbed
        self.machine = Machine(testbed, f"a{label}", f"nameserver {resolver}\n")
        self.namespace = self.machine.namespace
        self.world = testbed.namespace(f"b{label}")
        self._join("under", LAN, LAN6)
        if second:
            self._join("second", SECOND, SECOND6)
        self.default_routes("under", LAN, LAN6)
        self.world.add_address(
            "lo", *(f"{address}/32" for address in (ENDPOINT, INSIDE, OUTSIDE)),
            *(f"{address}/128" for address in (ENDPOINT6, INSIDE6, OUTSIDE6)))
        self.instance = Instance(self.machine)
        wait_until(lambda: "tentative" not in self.namespace.ip("address"), "the link-local address being settled", 20)
        if not peer:
            return
        self.peer = Peer(testbed, self.world, label=label)
        self.world.nft(
            "table inet proof { chain input { type filter hook input priority 0;\n"
            f'iifname {{ "under", "second" }} ip daddr {INSIDE} drop\n'
            f'iifname {{ "under", "second" }} ip6 daddr {INSIDE6} drop\n'
            f'iifname != {{ "under", "second", "lo" }} ip daddr {{ {OUTSIDE}, {LAN[1]} }} drop\n'
            f'iifname != {{ "under", "second", "lo" }} ip6 daddr {{ {OUTSIDE6}, {LAN6[1]} }} drop\n}}\n}}\n')

    def _join(self, name: str, addresses: "tuple[str, str]", addresses6: "tuple[str, str]") -> None:
        network_namespace.connect(self.namespace, name, self.world, name)
        self.namespace.add_address(name, f"{addresses[0]}/24", f"{addresses6[0]}/64")
        self.world.add_address(name, f"{addresses[1]}/24", f"{addresses6[1]}/64")

    def default_routes(self, interface: str, addresses: "tuple[str, str]", addresses6: "tuple[str, str]",
                       metric: int = 100, families: "tuple[str, ...]" = ("-4", "-6")) -> None:
        """Adds the default routes by way of an interface."""
        for family, router in (("-4", addresses[1]), ("-6", addresses6[1])):
            if family not in families:
                continue
            self.namespace.ip(
                family, "route", "add", "default", "via", router, "dev", interface, "metric", str(metric))

    def lose_default_routes(self) -> None:
        """Takes all default routes away."""
        for family in ("-4", "-6"):
            while self.namespace.ip(family, "route", "show", "default").strip():
                self.namespace.ip(family, "route", "del", "default")

    def prepare(self, allowed: str = FULL, interface: str = "", endpoint: str = f"{ENDPOINT}:{PORT}", peer: str = "",
                **configuration: str) -> "dict[str, str]":
        """Writes the daemon's files, and returns the machine's state without the daemon."""
        self.instance.write_tunnel(self.peer.file(allowed, interface, endpoint, peer))
        self.instance.write(**configuration)
        return self.machine.state()

    def expect_reached(self, *destinations: str, seconds: float = 20.0) -> None:
        """Each of them must answer the machine, which proves the way."""
        for destination in destinations:
            TunnelPair.expect_reached(self.namespace, destination, seconds)

    def expect_silent(self, *destinations: str) -> None:
        """None of them may answer the machine."""
        for destination in destinations:
            expect(not self.namespace.ping(destination, seconds=1).answered, f"{destination} answers")

    def expect_inside(self) -> None:
        """The tunnel must carry traffic of both families."""
        self.expect_reached(INSIDE, INSIDE6, self.peer.inner, self.peer.inner6)
