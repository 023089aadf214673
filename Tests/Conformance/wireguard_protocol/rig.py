"""One daemon in a namespace, and the world around it in scripted hands.

    namespace d                                        namespace p
    TUN 10.9.0.1, fd09::1 ── daemon ── veth 10.77.0.1, .11 ──── veth 10.77.0.2 .. .9      scripted peers
                                            fd77::1, ::11            fd77::2 .. ::9
                                                                     fd78::2 .. ::3

Packets reach the TUN by injection at its queue, so no stack adds or changes anything; what the daemon writes to the TUN
is read off a packet socket before any stack looks at it.
"""

import itertools
import socket
import time
from typing import Optional

import network_namespace
import uapi
from scripted_peer import KeyPair, PeerSocket, ScriptedPeer
from scripted_peer.packets import echo_reply
from testbed import Testbed
from waiting import CheckFailure, expect, pause, wait_until

DAEMON_PORT = 51820
TUNNEL4, TUNNEL6 = "10.9.0.1", "fd09::1"
OUTER4, OUTER6 = "10.77.0.1", "fd77::1"
OTHER4, OTHER6 = "10.77.0.11", "fd77::11"
PEER_ADDRESSES = ["10.77.0.%d" % n for n in range(2, 10)]
PEER_ADDRESSES6 = ["fd77::%d" % n for n in range(2, 10)] + ["fd78::2", "fd78::3"]

_ETH_P = {4: 0x0800, 6: 0x86DD}
_PACKET_OUTGOING = 4


class Rig:
    """Builds the picture above; as a context manager takes it down again and judges the daemon's end."""

    def __init__(self, prefix: str, command: "list[str]", log_directory: Optional[str] = None, *, underlay: int = 4,
                 up: bool = True, key: bool = True, level: Optional[str] = None, ipv6: bool = True,
                 listen_port: int = DAEMON_PORT, mtu: Optional[int] = None):
        """`underlay` is the IP version between daemon and peers; `level` a LOG_LEVEL; `up` whether the link is set
        up and `key` whether a private key is set at once."""
        self.testbed = Testbed(prefix, {1: command}, {1}, log_directory)
        self.underlay, self._up, self._level, self._mtu = underlay, up, level, mtu
        self._ipv6, self._with_key, self._listen_port = ipv6, key, listen_port
        self.keys = KeyPair()
        self.peers: "list[ScriptedPeer]" = []
        self._sequence = itertools.count(1)

    def __enter__(self) -> "Rig":
        self.testbed.__enter__()
        try:
            self._build()
        except BaseException as error:
            self.testbed.__exit__(type(error), error, error.__traceback__)
            raise
        return self

    def __exit__(self, kind, *exception) -> None:
        for peer in self.peers:
            peer.socket.close()
        self.testbed.__exit__(kind, *exception)

    def _build(self) -> None:
        self.inside, self.outside = self.testbed.namespace("d"), self.testbed.namespace("p")
        for namespace in (self.inside, self.outside):
            for scope in ("default", "all"):
                if not self._ipv6:
                    namespace.sysctl(f"net/ipv6/conf/{scope}/disable_ipv6", 1)
                    continue
                namespace.sysctl(f"net/ipv6/conf/{scope}/router_solicitations", 0)
                namespace.sysctl(f"net/ipv6/conf/{scope}/accept_dad", 0)
        network_namespace.connect(self.inside, "uplink", self.outside, "peers")
        self.inside.add_address("uplink", f"{OUTER4}/24", f"{OTHER4}/24")
        self.outside.add_address("peers", *(f"{address}/24" for address in PEER_ADDRESSES))
        if self._ipv6:
            self.inside.add_address("uplink", f"{OTHER6}/64", f"{OUTER6}/64")
            self.outside.add_address("peers", *(f"{address}/64" for address in PEER_ADDRESSES6))
            self.inside.ip("-6", "route", "add", "fd78::/64", "dev", "uplink")
        environment = {"LOG_LEVEL": self._level} if self._level else {}
        self.daemon = self.testbed.daemon(1, self.inside, "", environment)
        self.daemon.wait_until_ready()
        self.interface = self.daemon.interface
        if self._ipv6:
            self.inside.sysctl(f"net/ipv6/conf/{self.interface}/addr_gen_mode", 1)
        if self._mtu:
            self.set_mtu(self._mtu)
        self.inside.add_address(self.interface, f"{TUNNEL4}/24", *([f"{TUNNEL6}/64"] if self._ipv6 else []))
        if self._with_key:
            self.set(f"private_key={self.keys.private.hex()}", f"listen_port={self._listen_port}")
        else:
            self.set(f"listen_port={self._listen_port}")
        if self._up:
            self.up()

    # The link

    def up(self) -> None:
        """Sets the link up and waits until the daemon's UDP socket listens."""
        self.inside.ip("link", "set", self.interface, "up")
        if self._listen_port:
            wait_until(lambda: self.listens_on(self._listen_port), "the UDP socket being bound")

    def down(self) -> None:
        self.inside.ip("link", "set", self.interface, "down")

    def set_mtu(self, mtu: int) -> None:
        self.inside.ip("link", "set", self.interface, "mtu", str(mtu))

    def udp_sockets(self) -> "list[tuple[int, int, str]]":
        """(IP version, port, inode) of every UDP socket in the daemon's namespace."""
        result = []
        for version, table in ((4, "udp"), (6, "udp6")):
            try:
                with open(f"/proc/{self.daemon.pid}/net/{table}") as lines:
                    rows = [line.split() for line in lines][1:]
            except FileNotFoundError:
                continue
            result += [(version, int(row[1].rsplit(":", 1)[1], 16), row[9]) for row in rows]
        return result

    def listens_on(self, port: int) -> bool:
        return any(entry[1] == port for entry in self.udp_sockets())

    def settle(self) -> None:
        """Waits until the daemon has read everything that was sent to its UDP sockets."""

        def empty() -> bool:
            for table in ("udp", "udp6"):
                try:
                    with open(f"/proc/{self.daemon.pid}/net/{table}") as lines:
                        if any(not line.split()[4].endswith(":00000000") for line in list(lines)[1:]):
                            return False
                except FileNotFoundError:
                    pass
            return True

        wait_until(empty, "the daemon reading its socket", 10, 0.002)

    # Configuration

    @property
    def public(self) -> bytes:
        """The daemon's public key."""
        return self.keys.public

    def set(self, *lines: str, errno: int = 0) -> None:
        """A configuration operation that must end with that errno (as -errno, in the way of the protocol)."""
        reply = uapi.set(self.daemon.socket_path, *lines)
        expect(abs(reply.errno) == errno, f"set {lines[-1]!r} ended with errno {reply.errno}, not {errno}")

    def set_private_key(self, keys: KeyPair) -> None:
        """Changes the daemon's identity; the scripted peers follow."""
        self.keys = keys
        self.set(f"private_key={keys.private.hex()}")
        for peer in self.peers:
            peer.daemon_public = keys.public

    def peer(self, *, address: Optional[str] = None, number: int = 2, keys: Optional[KeyPair] = None,
             allowed: Optional["list[str]"] = None, endpoint: bool = True, preshared: Optional[bytes] = None,
             keepalive: Optional[int] = None, endpoint_text: Optional[str] = None, configure: bool = True,
             sock: Optional[PeerSocket] = None, to: Optional[str] = None) -> ScriptedPeer:
        """A scripted peer that the daemon knows, with inner addresses 10.9.0.NUMBER and fd09::NUMBER."""
        if address is None:
            address = PEER_ADDRESSES[0] if self.underlay == 4 else PEER_ADDRESSES6[0]
        to = to or (OUTER6 if ":" in address else OUTER4)
        peer = ScriptedPeer(sock or PeerSocket(self.outside, address), self.keys.public, (to, DAEMON_PORT), keys,
                            preshared or bytes(32))
        peer.inner4, peer.inner6 = f"10.9.0.{number}", f"fd09::{number:x}"
        peer.allowed = [f"{peer.inner4}/32", f"{peer.inner6}/128"] if allowed is None else allowed
        self.peers.append(peer)
        if configure:
            text = endpoint_text or (self.endpoint_text(peer.socket) if endpoint else None)
            self.configure(peer, endpoint=text, preshared=preshared, keepalive=keepalive)
        return peer

    @staticmethod
    def endpoint_text(sock: PeerSocket) -> str:
        return f"[{sock.address}]:{sock.port}" if ":" in sock.address else f"{sock.address}:{sock.port}"

    def configure(self, peer: ScriptedPeer, *, endpoint: Optional[str] = None, preshared: Optional[bytes] = None,
                  keepalive: Optional[int] = None) -> None:
        """Adds a peer with its allowed IPs."""
        lines = [f"public_key={peer.keys.public.hex()}"]
        lines += [f"preshared_key={preshared.hex()}"] if preshared else []
        lines += [f"endpoint={endpoint}"] if endpoint else []
        lines += [f"persistent_keepalive_interval={keepalive}"] if keepalive is not None else []
        self.set(*lines, *(f"allowed_ip={prefix}" for prefix in peer.allowed))

    def set_peer(self, peer: ScriptedPeer, *lines: str) -> None:
        """Changes one peer: `key=value` lines."""
        self.set(f"public_key={peer.keys.public.hex()}", *lines)

    def set_preshared(self, peer: ScriptedPeer, preshared: bytes) -> None:
        self.set_peer(peer, f"preshared_key={preshared.hex()}")

    def remove(self, peer: ScriptedPeer) -> None:
        self.set_peer(peer, "remove=true")

    def restart_peer(self, peer: ScriptedPeer, **options) -> None:
        """Removes the peer and adds it again: the daemon forgets every key and stamp."""
        self.remove(peer)
        peer.drain()
        self.configure(peer, endpoint=self.endpoint_text(peer.socket), **options)

    def _peer_lines(self, peer: ScriptedPeer) -> "Optional[list[tuple[str, str]]]":
        for lines in uapi.get(self.daemon.socket_path).peers:
            if lines[0][1] == peer.keys.public.hex():
                return lines
        return None

    def knows(self, peer: ScriptedPeer) -> bool:
        return self._peer_lines(peer) is not None

    def endpoint(self, peer: ScriptedPeer) -> "Optional[tuple[str, int]]":
        """The endpoint (address, port) the daemon shows."""
        text = dict(self._peer_lines(peer) or []).get("endpoint")
        if text is None:
            return None
        address, port = text.rsplit(":", 1)
        return address.strip("[]").partition("%")[0], int(port)

    def transfer(self, peer: ScriptedPeer) -> "tuple[int, int]":
        """(received, sent) bytes."""
        lines = dict(self._peer_lines(peer) or [])
        return int(lines.get("rx_bytes", 0)), int(lines.get("tx_bytes", 0))

    def latest_handshake(self, peer: ScriptedPeer) -> float:
        lines = dict(self._peer_lines(peer) or [])
        return int(lines.get("last_handshake_time_sec", 0)) + int(lines.get("last_handshake_time_nsec", 0)) / 1e9

    @property
    def listen_port(self) -> int:
        return int(uapi.get(self.daemon.socket_path).device.get("listen_port", 0))

    # Sockets and packets

    def socket(self, address: str, port: int = 0) -> PeerSocket:
        """Another scripted UDP socket outside; closed with the rig."""
        sock = PeerSocket(self.outside, address, port)
        self.testbed.on_exit(sock.close)
        return sock

    def inject(self, packet: bytes, version: Optional[int] = None) -> None:
        """Puts a packet into the TUN's queue as if the stack had routed it there."""
        if not hasattr(self, "_injector"):
            self._injector = self.inside.socket(socket.AF_PACKET, socket.SOCK_DGRAM)
            self.testbed.on_exit(self._injector.close)
        self._injector.sendto(packet, (self.interface, _ETH_P[version or packet[0] >> 4]))

    def outgoing(self, peer: ScriptedPeer, *, version: int = 4, payload: bytes = b"stimulus", tos: int = 0,
                 destination: Optional[str] = None) -> bytes:
        """A packet for the peer that nobody would answer, unlike every other."""
        source, inner = (TUNNEL4, peer.inner4) if version == 4 else (TUNNEL6, peer.inner6)
        number = next(self._sequence)
        return echo_reply(source, destination or inner, payload, identifier=number >> 16, sequence=number & 0xFFFF,
                          tos=tos)

    def stimulate(self, peer: ScriptedPeer, **fields) -> bytes:
        """Gives the daemon one packet for the peer; returns it."""
        packet = self.outgoing(peer, **fields)
        self.inject(packet)
        return packet

    def incoming(self, peer: ScriptedPeer, number: Optional[int] = None, *, version: int = 4, payload: bytes = b"",
                 tos: int = 0, source: Optional[str] = None, destination: Optional[str] = None) -> bytes:
        """A packet from the peer to the daemon's tunnel address that no stack answers, unlike every other."""
        inner, target = (peer.inner4, TUNNEL4) if version == 4 else (peer.inner6, TUNNEL6)
        number = next(self._sequence)
        return echo_reply(source or inner, destination or target, b"incoming" + payload, identifier=number >> 16,
                          sequence=number & 0xFFFF, tos=tos)

    def capture(self) -> "TunnelCapture":
        """Reads from now on what the daemon writes to the TUN."""
        capture = TunnelCapture(self.inside, self.interface)
        self.testbed.on_exit(capture.close)
        return capture

    def verify(self, peer: ScriptedPeer, session, *, via: Optional[PeerSocket] = None) -> None:
        """Proves that a session carries data in both directions."""
        capture = TunnelCapture(self.inside, self.interface)
        try:
            packet = self.incoming(peer)
            peer.send(session.seal(packet), via=via)
            capture.expect_among([packet], [], "data from the peer must be delivered")
        finally:
            capture.close()
        peer.expect_packet(session, self.stimulate(peer), 2, "data must reach the peer under this session", via=via)

    # The process

    def log(self) -> str:
        """Everything the daemon has printed."""
        with open(self.daemon.log_path, errors="replace") as log:
            return log.read()

    @staticmethod
    def pause(seconds: float) -> None:
        """Lets protocol time pass."""
        pause(seconds)

    @staticmethod
    def pause_until(moment: float) -> None:
        """Lets protocol time pass until a moment of `time.time()`."""
        pause(max(0, moment - time.time()))


class TunnelCapture:
    """The packets that the daemon writes to the TUN, in order, before the stack sees them."""

    def __init__(self, namespace, interface: str):
        self._socket = namespace.socket(socket.AF_PACKET, socket.SOCK_DGRAM, 0)
        self._socket.setsockopt(socket.SOL_SOCKET, 33, 8 << 20)
        with namespace.entered():
            self._socket.bind((interface, 3))

    def close(self) -> None:
        self._socket.close()

    def next(self, seconds: float) -> Optional[bytes]:
        """The next packet, or None when none is written in time."""
        deadline = time.monotonic() + seconds
        while (remaining := deadline - time.monotonic()) > 0 or seconds == 0:
            self._socket.settimeout(max(remaining, 0.0001))
            try:
                data, address = self._socket.recvfrom(1 << 17)
            except (TimeoutError, BlockingIOError):
                return None
            except OSError:
                continue  # the link went down; the socket keeps working when it comes back
            if address[2] != _PACKET_OUTGOING and address[1] in (0x0800, 0x86DD):
                return data
        return None

    def collect(self, seconds: float) -> "list[bytes]":
        """All packets within so many seconds."""
        deadline, result = time.monotonic() + seconds, []
        while (packet := self.next(max(0.0001, deadline - time.monotonic()))) is not None:
            result.append(packet)
        return result

    def expect(self, packet: bytes, why: str, seconds: float = 2) -> None:
        """The next packet written must be this one."""
        found = self.next(seconds)
        if found is None:
            raise CheckFailure(f"nothing was delivered: {why}")
        if found != packet:
            raise CheckFailure(f"{found[:60].hex()}… was delivered instead of {packet[:60].hex()}…: {why}")

    def expect_nothing(self, why: str, seconds: float = 0.3) -> None:
        """Fails when any packet is written in that time."""
        found = self.next(seconds)
        if found is not None:
            raise CheckFailure(f"{why} ({len(found)} bytes: {found[:48].hex()}…)")

    def expect_among(self, expected: "list[bytes]", forbidden: "list[bytes]", why: str, seconds: float = 2) -> None:
        """All of `expected` arrive, in any order, and none of `forbidden`, which were sent before the last of them."""
        missing, deadline = list(expected), time.monotonic() + seconds
        while missing:
            found = self.next(max(0.0001, deadline - time.monotonic()))
            if found is None:
                raise CheckFailure(f"{len(missing)} of {len(expected)} packets were not delivered: {why}")
            if found in forbidden:
                raise CheckFailure(f"delivered although forbidden: {why}")
            if found in missing:
                missing.remove(found)
        for found in self.collect(0.2 if forbidden else 0):
            if found in forbidden:
                raise CheckFailure(f"delivered although forbidden: {why}")
