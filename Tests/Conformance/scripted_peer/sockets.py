"""UDP sockets inside a network namespace that tell everything about what arrives."""

import select
import socket
import struct
import time
from dataclasses import dataclass

from waiting import Interrupted, stop_requested

SO_TIMESTAMPNS = 35
IPV6_RECVHOPLIMIT = 51
RECEIVE_BUFFER = 8 << 20


@dataclass
class Datagram:
    """A received datagram. `at` is when the kernel took it in, in UNIX seconds: a busy machine does not blur it."""

    payload: bytes
    source: tuple
    tos: int
    ttl: int
    at: float


class PeerSocket:
    """A UDP socket bound to `address` and `port` in `namespace` (an object whose `socket` method makes one there)."""

    def __init__(self, namespace, address, port=0, scope_interface=None):
        self.family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self.socket = namespace.socket(self.family, socket.SOCK_DGRAM)
        self.socket.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        self.socket.setsockopt(socket.SOL_SOCKET, 33, RECEIVE_BUFFER)  # SO_RCVBUFFORCE
        if self.family == socket.AF_INET:
            self.socket.setsockopt(socket.IPPROTO_IP, socket.IP_RECVTOS, 1)
            self.socket.setsockopt(socket.IPPROTO_IP, 12, 1)  # IP_RECVTTL
            self.socket.bind((address, port))
        else:
            self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVTCLASS, 1)
            self.socket.setsockopt(socket.IPPROTO_IPV6, IPV6_RECVHOPLIMIT, 1)
            self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            with namespace.entered():
                self.scope = socket.if_nametoindex(scope_interface) if scope_interface else 0
            self.socket.bind((address, port, 0, self.scope))
        self.socket.setblocking(False)
        self.address, self.port = address, self.socket.getsockname()[1]

    def fileno(self):
        return self.socket.fileno()

    def close(self):
        self.socket.close()

    def send(self, payload, destination, tos=0):
        """Sends to (address, port), with that TOS or traffic class."""
        if self.family == socket.AF_INET:
            ancillary = [(socket.IPPROTO_IP, socket.IP_TOS, struct.pack("i", tos))]
        else:
            ancillary = [(socket.IPPROTO_IPV6, socket.IPV6_TCLASS, struct.pack("i", tos))]
            destination = (*destination[:2], 0, self.scope)
        while True:
            try:
                return self.socket.sendmsg([payload], ancillary, 0, destination)
            except BlockingIOError:
                select.select([], [self.socket], [], 1)

    def receive(self, timeout):
        """The next datagram, or None when none arrives in time."""
        deadline = time.monotonic() + timeout
        while True:
            try:
                payload, ancillary, _, source = self.socket.recvmsg(65536, 512)
                return self._datagram(payload, ancillary, source)
            except BlockingIOError:
                remaining = deadline - time.monotonic()
                if remaining <= 0:
                    return None
                if stop_requested.is_set():
                    raise Interrupted()
                select.select([self.socket], [], [], min(remaining, 0.5))
            except ConnectionError:
                continue

    @staticmethod
    def _datagram(payload, ancillary, source):
        tos = ttl = at = None
        for level, kind, value in ancillary:
            if level == socket.SOL_SOCKET and kind == SO_TIMESTAMPNS:
                seconds, nanoseconds = struct.unpack("qq", value[:16])
                at = seconds + nanoseconds / 1e9
            elif level == socket.IPPROTO_IP and kind == socket.IP_TOS:
                tos = value[0]
            elif level == socket.IPPROTO_IP and kind == socket.IP_TTL:
                ttl = struct.unpack("i", value[:4])[0]
            elif level == socket.IPPROTO_IPV6 and kind == socket.IPV6_TCLASS:
                tos = struct.unpack("i", value[:4])[0]
            elif level == socket.IPPROTO_IPV6 and kind == socket.IPV6_HOPLIMIT:
                ttl = struct.unpack("i", value[:4])[0]
        return Datagram(payload, source[:2], tos, ttl, at if at is not None else time.time())
