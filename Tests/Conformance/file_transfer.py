"""A TCP transfer between two namespaces whose bytes are compared at the end, by digest and never by speed."""

import hashlib
import random
import socket
import threading
import time
from typing import Optional

from network_namespace import NetworkNamespace
from waiting import CheckFailure, expect

_BLOCK = 1 << 16


def transfer_file(
    source: NetworkNamespace,
    destination: NetworkNamespace,
    address: str,
    size: int,
    *,
    seconds: float = 90.0,
    maximum_segment: Optional[int] = None,
) -> None:
    """Sends `size` bytes that depend on their position from `source` to `address` in `destination`.

    Fails the check when they have not all arrived unchanged after `seconds`. `maximum_segment` sets TCP_MAXSEG, in
    bytes, on both sides.
    """
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    what = f"{size:,} bytes to {address}"
    deadline = time.monotonic() + seconds
    kind = socket.SOCK_STREAM
    with destination.socket(family, kind) as listener, source.socket(family, kind) as client:
        for one in (listener, client):
            one.settimeout(seconds)
            if maximum_segment is not None:
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, maximum_segment)
        listener.bind((address, 0))
        listener.listen(1)
        received = _Receiver(listener, deadline)
        received.start()
        digest, sent = hashlib.sha256(), 0
        try:
            client.connect(listener.getsockname())
            block = bytearray(random.Random(size).randbytes(_BLOCK))
            while sent < size:
                # A block in the wrong place changes the digest too.
                block[:8] = sent.to_bytes(8, "big")
                piece = bytes(block[: min(_BLOCK, size - sent)])
                client.settimeout(max(0.01, deadline - time.monotonic()))
                client.sendall(piece)
                digest.update(piece)
                sent += len(piece)
            client.shutdown(socket.SHUT_WR)
        except OSError as error:
            arrived = received.count
            raise CheckFailure(f"{what}: sending stopped after {sent:,} ({error}); {arrived:,} arrived") from None
        finally:
            received.join(max(0.1, deadline - time.monotonic()))
        expect(not received.is_alive(), f"{what}: only {received.count:,} arrived within {seconds:g} s")
        expect(received.error is None, f"{what}: {received.error} after {received.count:,}")
        expect(received.count == size, f"{what}: {received.count:,} arrived")
        expect(received.digest.digest() == digest.digest(), f"{what}: what arrived is not what was sent")


class _Receiver(threading.Thread):
    def __init__(self, listener: socket.socket, deadline: float):
        super().__init__(daemon=True)
        self._listener, self._deadline = listener, deadline
        self.digest, self.count, self.error = hashlib.sha256(), 0, None

    def run(self) -> None:
        try:
            connection, _ = self._listener.accept()
            with connection:
                while True:
                    connection.settimeout(max(0.01, self._deadline - time.monotonic()))
                    data = connection.recv(1 << 18)
                    if not data:
                        return
                    self.digest.update(data)
                    self.count += len(data)
        except OSError as error:
            self.error = error
