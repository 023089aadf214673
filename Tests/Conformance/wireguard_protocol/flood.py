"""Brings a daemon under load with initiations whose first MAC is right and whose rest is noise."""

import ctypes
import os
import socket
import threading
import time

from scripted_peer import Initiation, MessageType
from waiting import CheckFailure

#: One flood at a time in this process: two would only take the processor from each other.
_turn = threading.Lock()

_libc = ctypes.CDLL(None, use_errno=True)


class _IOVector(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]


class _MessageHeader(ctypes.Structure):
    _fields_ = [("name", ctypes.c_void_p), ("name_length", ctypes.c_uint), ("vectors", ctypes.POINTER(_IOVector)),
                ("vector_count", ctypes.c_size_t), ("control", ctypes.c_void_p), ("control_length", ctypes.c_size_t),
                ("flags", ctypes.c_int)]


class _CountedHeader(ctypes.Structure):
    _fields_ = [("header", _MessageHeader), ("length", ctypes.c_uint)]


class Flood:
    """A prepared burst of `count` messages, sent by few system calls as fast as the machine can."""

    def __init__(self, namespace, address: str, destination: tuple, receiver_public: bytes, count: int = 6000):
        self._socket = namespace.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind((address, 0))
        self._socket.connect(destination)
        template = Initiation.garbage(receiver_public)
        size = len(template.pack())
        self._bytes = ctypes.create_string_buffer(b"".join(self._messages(receiver_public, count)))
        self._vectors = (_IOVector * count)()
        self._headers = (_CountedHeader * count)()
        base = ctypes.addressof(self._bytes)
        for index in range(count):
            self._vectors[index] = _IOVector(base + index * size, size)
            self._headers[index].header.vectors = ctypes.pointer(self._vectors[index])
            self._headers[index].header.vector_count = 1
        self._count = count

    @staticmethod
    def _messages(receiver_public, count):
        for _ in range(count):
            yield Initiation.garbage(receiver_public).pack()

    def burst(self) -> None:
        """Sends everything once."""
        sent = 0
        while sent < self._count:
            headers = ctypes.byref(self._headers, sent * ctypes.sizeof(_CountedHeader))
            result = _libc.sendmmsg(self._socket.fileno(), headers, min(1024, self._count - sent), 0)
            if result < 0:
                if ctypes.get_errno() in (11, 105, 111):  # EAGAIN, ENOBUFS, ECONNREFUSED
                    continue
                raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
            sent += result

    def close(self) -> None:
        self._socket.close()


class UnderLoad:
    """Runs steps of a check while the daemon is under load, and proves that it was so before and after."""

    def __init__(self, rig, address=None):
        """Floods come from `address`, which the check itself does not use."""
        self.rig = rig
        version6 = rig.underlay == 6
        address = address or ("fd77::9" if version6 else "10.77.0.9")
        to = ("fd77::1" if version6 else "10.77.0.1", 51820)
        self._flood = Flood(rig.outside, address, to, rig.public)
        rig.testbed.on_exit(self._flood.close)
        self._probe = rig.socket("fd77::8" if version6 else "10.77.0.8")
        self._to = to

    def _is_under_load(self, seconds: float) -> bool:
        """Whether noise without mac2 is answered by a cookie reply."""
        message = Initiation.garbage(self.rig.public)
        while self._probe.receive(0):
            pass
        self._probe.send(message.pack(), self._to)
        deadline = time.monotonic() + seconds
        while (datagram := self._probe.receive(max(0, deadline - time.monotonic()))) is not None:
            if datagram.payload[:8] == b"\3\0\0\0" + message.sender.to_bytes(4, "little"):
                return True
        return False

    def begin(self) -> None:
        """Floods until a probe gets a cookie reply. The daemon then stays under load for about a second."""
        for _ in range(12):
            self._flood.burst()
            deadline = time.monotonic() + 0.7
            # The first probe may fall victim to the full queue.
            while time.monotonic() < deadline:
                if self._is_under_load(0.08):
                    return
        raise CheckFailure("thousands of initiations at once bring no cookie reply: never under load")

    def run(self, body, attempts: int = 8, quiet: float = 0.2, confirm: bool = False):
        """Runs `body` under load and returns what it returns.

        A failure counts only when the load has lasted until then, and when it comes a second time: a datagram may fall
        victim to the flood. Otherwise `body` runs again after `quiet` seconds. With `confirm` a success, too, counts
        only when the load has lasted: for a body that expects nothing to happen.
        """
        strikes, failure = 0, None
        with _turn:
            for _ in range(attempts):
                self.begin()
                try:
                    result = body()
                except CheckFailure as error:
                    failure = error
                    strikes += self._is_under_load(0.3)
                    if strikes == 2:
                        raise
                else:
                    if not confirm or self._is_under_load(0.3):
                        return result
                self.rig.pause(quiet)
        raise failure or CheckFailure("the load never lasted as long as the step")


def request_cookie(peer, receiver_public, via=None, to=None, timeout=0.5):
    """Sends noise without mac2 from a socket and returns (cookie, reply, message); the daemon must be under load."""
    message = Initiation.garbage(receiver_public)
    peer.drain(via)
    peer.send(message, via=via, to=to)
    datagram = peer.expect(MessageType.COOKIE_REPLY, timeout, "under load, a message without mac2 needs a cookie", via)
    return peer.open_cookie(datagram, message.mac1), datagram, message
