"""Two WireGuard interfaces that are each other's only peer."""

from dataclasses import dataclass, field

from network_namespace import NetworkNamespace
from testbed import Testbed
from waiting import expect, wait_until
from wireguard_tool import KeyPair, WireGuardInterface, generate_preshared_key

ADDRESS_1, ADDRESS_2 = "192.168.241.1", "192.168.241.2"
ADDRESS6_1, ADDRESS6_2 = "fd00::1", "fd00::2"
PORT_1, PORT_2 = 1, 2


@dataclass
class Pair:
    """End 1 and end 2 with their keys; `outer` is the namespace between them, if there is one."""

    first: WireGuardInterface
    second: WireGuardInterface
    keys_1: KeyPair = field(default_factory=KeyPair.generate)
    keys_2: KeyPair = field(default_factory=KeyPair.generate)
    preshared_key: str = field(default_factory=generate_preshared_key)

    def configure(self) -> None:
        """Gives both ends addresses, keys, port 1 and 2 and each other as peers without endpoint; sets the links up."""
        self.first.add_address(f"{ADDRESS_1}/24", f"{ADDRESS6_1}/112")
        self.second.add_address(f"{ADDRESS_2}/24", f"{ADDRESS6_2}/112")
        self.first.set(
            *self.first.peer_words(
                self.keys_2.public, preshared_key=self.preshared_key, allowed_ips=f"{ADDRESS_2}/32,{ADDRESS6_2}/128"),
            private_key=self.keys_1.private, listen_port=PORT_1)
        self.second.set(
            *self.second.peer_words(
                self.keys_1.public, preshared_key=self.preshared_key, allowed_ips=f"{ADDRESS_1}/32,{ADDRESS6_1}/128"),
            private_key=self.keys_2.private, listen_port=PORT_2)
        self.first.up()
        self.second.up()

    def set_endpoints(self, of_second: "str | None" = None, of_first: "str | None" = None) -> None:
        """Tells end 1 where end 2 is (`of_second`) and end 2 where end 1 is (`of_first`); None tells nothing."""
        if of_second is not None:
            self.first.set_peer(self.keys_2.public, endpoint=of_second)
        if of_first is not None:
            self.second.set_peer(self.keys_1.public, endpoint=of_first)

    def expect_endpoint_of_first(self, endpoint: str) -> None:
        """End 2 must believe that end 1 is at `endpoint` (a moment later at the latest)."""
        self._expect_endpoint(self.second, self.keys_1.public, endpoint, "end 2's endpoint for end 1")

    def expect_endpoint_of_second(self, endpoint: str) -> None:
        """End 1 must believe that end 2 is at `endpoint` (a moment later at the latest)."""
        self._expect_endpoint(self.first, self.keys_2.public, endpoint, "end 1's endpoint for end 2")

    @staticmethod
    def _expect_endpoint(interface: WireGuardInterface, public_key: str, endpoint: str, what: str) -> None:
        # A daemon may take note of it just after it has delivered the packet that the ping waited for.
        wait_until(
            lambda: interface.endpoint(public_key) == endpoint, f"{what} being {endpoint}", 0.5,
            detail=lambda: interface.endpoint(public_key))

    def establish(self) -> None:
        """Waits until end 1 and end 2 reach each other: the link has been noticed and a session exists."""
        for namespace, destination in ((self.first.namespace, ADDRESS_2), (self.second.namespace, ADDRESS_1)):
            wait_until(
                lambda: namespace.ping(destination, "-i", "0.2", seconds=1).answered,
                f"the first ping to {destination} answered", 10)


def expect_ping(namespace: NetworkNamespace, destination: str, *options: str, context: str = "") -> None:
    """One ping must be answered within one second; `context` says in a failure what had happened before."""
    result = namespace.ping(destination, *options)
    words = " ".join(filter(None, ("ping", *options, destination, context)))
    expect(result.answered, f"{words} is not answered within 1 s: {result.summary}")


def expect_no_ping(namespace: NetworkNamespace, destination: str, *options: str) -> None:
    """One ping must not be answered within one second."""
    result = namespace.ping(destination, *options)
    expect(not result.answered, f"ping {' '.join((*options, destination))} answered although it cannot be")


def expect_flood(namespace: NetworkNamespace, destination: str, count: int = 10) -> None:
    """Of `count` flood pings nine in ten must be answered (the kernel's test is content with one)."""
    result = namespace.ping(destination, "-f", "-q", count=count, seconds=2)
    if result.received * 10 < count * 9:
        # A flood ends soon after its last request: on a machine that is busy elsewhere answers come too late to count. A way
        # that really loses packets loses them again.
        result = namespace.ping(destination, "-f", "-q", count=count, seconds=2)
    expect(result.received * 10 >= count * 9,
           f"ping -f {destination}: {result.received} of {count} answered: {result.summary}")


def loopback_pair(testbed: Testbed) -> "tuple[Pair, NetworkNamespace]":
    """The first topology: both daemons' sockets on the loopback of ns0, the TUNs in ns1 and ns2. Links up, no
    endpoints yet."""
    outer, inner_1, inner_2 = (testbed.namespace(label) for label in ("0", "1", "2"))
    pair = Pair(testbed.interface(1, outer, inner_1), testbed.interface(2, outer, inner_2))
    pair.configure()
    return pair, outer
