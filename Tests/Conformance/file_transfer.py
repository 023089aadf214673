"""TCP transfers between two namespaces whose bytes are compared at the end, by digest and never by speed."""

import functools
import hashlib
import random
import socket
import threading
import time
from typing import Iterable, Optional

from network_namespace import NetworkNamespace
from waiting import Interrupted, expect, stop_requested

_BLOCK = 1 << 16


@functools.lru_cache
def _pool() -> memoryview:
    """Random bytes, always the same; a transfer sends pieces of it that start anywhere.

    Nearly as good as new ones, at none of their cost: what is displaced, doubled or missing changes the digest.
    """
    return memoryview(random.Random(0).randbytes(1 << 22))


def transfer_file(
    source: NetworkNamespace, destination: NetworkNamespace, address: str, size: int, **options
) -> None:
    """Sends `size` bytes from `source` to `address` in `destination`; the options are those of `Transfer`.

    Fails the check when they have not all arrived unchanged in time.
    """
    finish_all([Transfer(source, destination, address, size, **options)])


def finish_all(transfers: "Iterable[Transfer]") -> None:
    """Waits for transfers that run at the same time; the first that fails ends the others."""
    transfers = list(transfers)
    try:
        for one in transfers:
            one.finish()
    finally:
        for one in transfers:
            one.close()


class Transfer:
    """One TCP connection over which random bytes go from `source` to `address` in `destination`, from now on.

    Call `finish`, which judges it, and then `close`.
    """

    def __init__(
        self,
        source: NetworkNamespace,
        destination: NetworkNamespace,
        address: str,
        size: Optional[int] = None,
        *,
        seed: int = 0,
        seconds: float = 90.0,
        maximum_segment: Optional[int] = None,
    ):
        """Starts to send `size` bytes, or, without a size, bytes until `finish` is called.

        `seed` decides which bytes. All must have arrived after `seconds`. `maximum_segment` sets TCP_MAXSEG, in bytes,
        on both sides.
        """
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self._size, self._seed, self._limit = size, seed, seconds
        self._what = f"bytes to {address}" if size is None else f"{size:,} bytes to {address}"
        self._deadline = time.monotonic() + seconds
        self._finishing, self._closed = threading.Event(), False
        self._sent, self._sent_digest = 0, hashlib.sha256()
        self._arrived, self._arrived_digest = 0, hashlib.sha256()
        self._sending_error: Optional[OSError] = None
        self._receiving_error: Optional[OSError] = None
        self._listener = destination.socket(family, socket.SOCK_STREAM)
        self._client = source.socket(family, socket.SOCK_STREAM)
        for one in (self._listener, self._client):
            one.settimeout(seconds)
            if maximum_segment is not None:
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, maximum_segment)
        self._listener.bind((address, 0))
        self._listener.listen(1)
        self._receiver = threading.Thread(target=self._receive, daemon=True)
        self._sender = threading.Thread(target=self._send, daemon=True)
        self._receiver.start()
        self._sender.start()

    @property
    def arrived(self) -> int:
        """How many bytes have arrived until now."""
        return self._arrived

    def finish(self) -> None:
        """Waits for the end, and fails the check unless what arrived is what was sent."""
        self._finishing.set()
        for thread in (self._sender, self._receiver):
            while thread.is_alive() and time.monotonic() < self._deadline:
                if stop_requested.is_set():
                    raise Interrupted()
                if thread is self._sender and self._receiving_error is not None:
                    break  # Nobody takes any more: the sender would only wait for the deadline.
                thread.join(0.2)
        error = self._sending_error
        expect(error is None,
               f"{self._what}: sending stopped after {self._sent:,} ({error}); {self._arrived:,} arrived")
        error = self._receiving_error
        expect(error is None, f"{self._what}: {error} after {self._arrived:,}")
        expect(not self._receiver.is_alive(),
               f"{self._what}: only {self._arrived:,} of {self._sent:,} sent arrived within {self._limit:g} s")
        expect(self._arrived == self._sent, f"{self._what}: {self._arrived:,} arrived of {self._sent:,} sent")
        expect(self._arrived_digest.digest() == self._sent_digest.digest(),
               f"{self._what}: what arrived is not what was sent")

    def close(self) -> None:
        """Ends the connection, whether all has arrived or not."""
        self._closed = True
        for one in (self._client, self._listener):
            try:
                one.shutdown(socket.SHUT_RDWR)  # Wakes the thread that waits in it.
            except OSError:
                pass
            one.close()

    @property
    def _remaining(self) -> float:
        return max(0.01, self._deadline - time.monotonic())

    @property
    def _wanted(self) -> int:
        """How many bytes the next block takes; 0 when it is time to end."""
        if self._size is None:
            return 0 if self._finishing.is_set() else _BLOCK
        return min(_BLOCK, self._size - self._sent)

    def _send(self) -> None:
        pool, starts = _pool(), random.Random(self._seed)
        try:
            self._client.connect(self._listener.getsockname())
            while wanted := self._wanted:
                start = starts.randrange(len(pool) - wanted)
                piece = pool[start:start + wanted]
                self._client.settimeout(self._remaining)
                self._client.sendall(piece)
                self._sent_digest.update(piece)
                self._sent += wanted
            self._client.shutdown(socket.SHUT_WR)
        except OSError as error:
            self._sending_error = error

    def _receive(self) -> None:
        try:
            connection, _ = self._listener.accept()
            with connection:
                while not self._closed:
                    connection.settimeout(self._remaining)
                    data = connection.recv(1 << 18)
                    if not data:
                        return
                    self._arrived_digest.update(data)
                    self._arrived += len(data)
        except OSError as error:
            self._receiving_error = error
