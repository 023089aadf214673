"""Captures what passes an interface of a namespace, without tcpdump."""

import socket
import struct
import threading
import time
from dataclasses import dataclass
from typing import Callable, Optional

from network_namespace import NetworkNamespace
from waiting import wait_until

_ETH_P_ALL = 0x0003
_ETH_P_IP = 0x0800
_ETH_P_IPV6 = 0x86DD
_PACKET_OUTGOING = 4
_SO_RCVBUFFORCE = 33


@dataclass(frozen=True)
class CapturedPacket:
    """One IP packet as it passed the interface."""

    time: float  # seconds of the monotonic clock
    outgoing: bool  # sent by the captured namespace's stack; false: received
    data: bytes  # from the IP header on

    @property
    def datagram(self) -> "Optional[Datagram]":
        """The UDP datagram in it; None for other protocols, fragments and what is cut short."""
        return Datagram.parse(self.data)


@dataclass(frozen=True)
class Datagram:
    """A UDP datagram with what its IP header says."""

    source: str
    source_port: int
    destination: str
    destination_port: int
    traffic_class: int  # TOS or traffic class: DSCP << 2 | ECN
    dont_fragment: bool  # always false for IPv6
    hop_limit: int
    ip_length: int  # whole IP packet in bytes
    checksum: int  # UDP checksum as sent
    payload: bytes

    @property
    def message_type(self) -> Optional[int]:
        """The WireGuard message type (first four bytes, little-endian); None when shorter than that."""
        return int.from_bytes(self.payload[:4], "little") if len(self.payload) >= 4 else None

    @staticmethod
    def parse(packet: bytes) -> "Optional[Datagram]":
        """Reads an IPv4 or IPv6 packet that carries one whole UDP datagram."""
        if len(packet) < 28:
            return None
        if packet[0] >> 4 == 4:
            header = (packet[0] & 15) * 4
            length, _, fragment, hop_limit, protocol = struct.unpack_from(">HHHBB", packet, 2)
            if protocol != 17 or fragment & 0x3FFF:
                return None
            source, destination = (socket.inet_ntop(socket.AF_INET, packet[at : at + 4]) for at in (12, 16))
            traffic_class, dont_fragment = packet[1], bool(fragment & 0x4000)
        elif packet[0] >> 4 == 6:
            if packet[6] != 17:
                return None
            header, length, hop_limit = 40, 40 + struct.unpack_from(">H", packet, 4)[0], packet[7]
            source, destination = (socket.inet_ntop(socket.AF_INET6, packet[at : at + 16]) for at in (8, 24))
            traffic_class, dont_fragment = (packet[0] & 15) << 4 | packet[1] >> 4, False
        else:
            return None
        if len(packet) < header + 8:
            return None
        source_port, destination_port, udp_length, checksum = struct.unpack_from(">HHHH", packet, header)
        # A segmentation super-packet carries length 0 or the first segment's; take what the IP header covers then.
        end = header + udp_length if udp_length >= 8 and header + udp_length <= length else length
        return Datagram(
            source, source_port, destination, destination_port, traffic_class, dont_fragment, hop_limit, length,
            checksum, packet[header + 8 : end])


class PacketCapture:
    """Everything IP that passes one interface (or all) of a namespace while the `with` block runs.

    On loopback each packet passes twice, once outgoing and once not.
    """

    def __init__(self, namespace: NetworkNamespace, interface: Optional[str] = None):
        # With protocol 0 nothing arrives before the socket is bound to its interface.
        protocol = 0 if interface else socket.htons(_ETH_P_ALL)
        self._socket = namespace.socket(socket.AF_PACKET, socket.SOCK_DGRAM, protocol)
        self._socket.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, 32 << 20)
        if interface:
            with namespace.entered():
                self._socket.bind((interface, _ETH_P_ALL))
        self._socket.settimeout(0.1)
        self._packets: "list[CapturedPacket]" = []
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._collect, name=f"capture-{namespace.name}", daemon=True)

    def __enter__(self) -> "PacketCapture":
        self._thread.start()
        return self

    def __exit__(self, *exception) -> None:
        self._ended.set()
        self._thread.join()
        self._socket.close()

    @property
    def packets(self) -> "list[CapturedPacket]":
        """What was captured until now, in order."""
        with self._lock:
            return list(self._packets)

    def datagrams(self, condition: "Callable[[Datagram], bool]" = lambda _: True) -> "list[Datagram]":
        """The whole UDP datagrams captured until now for which `condition` holds."""
        parsed = (packet.datagram for packet in self.packets)
        return [datagram for datagram in parsed if datagram is not None and condition(datagram)]

    def wait_for_datagram(self, condition: "Callable[[Datagram], bool]", what: str, seconds: float = 5.0) -> Datagram:
        """Waits until a datagram for which `condition` holds was captured and returns the first one."""
        return wait_until(lambda: self.datagrams(condition), what, seconds)[0]

    def _collect(self) -> None:
        while not self._ended.is_set():
            try:
                data, address = self._socket.recvfrom(1 << 17)
            except socket.timeout:
                continue
            except OSError:
                # ENETDOWN: an interface went down; the socket keeps working when it comes back.
                time.sleep(0.001)
                continue
            if address[1] in (_ETH_P_IP, _ETH_P_IPV6):
                packet = CapturedPacket(time.monotonic(), address[2] == _PACKET_OUTGOING, data)
                with self._lock:
                    self._packets.append(packet)
