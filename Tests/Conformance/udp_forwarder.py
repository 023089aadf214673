"""A user-space link: a UDP forwarder with delay, loss, reordering and duplication, driven by a seeded random source."""

import heapq
import random
import select
import socket
import threading
import time


class UDPForwarder:
    """Passes datagrams between one client, whichever sends to the front socket, and one fixed server address.

    `front` and `back` are bound sockets, each created in the namespace it belongs to: the client talks to `front`,
    the server sees everything come from `back`. Each datagram is judged on its own, in both directions.
    """

    def __init__(
        self,
        front: socket.socket,
        back: socket.socket,
        server: "tuple[str, int]",
        delay: float = 0.0,
        loss: float = 0.0,
        reorder: float = 0.0,
        duplicate: float = 0.0,
        reorder_delay: float = 0.05,
        seed: int = 1,
    ):
        """`delay` is in seconds and for each way; `loss`, `reorder` and `duplicate` are shares of all datagrams.

        A datagram to be reordered waits for up to `reorder_delay` seconds more than the others.
        """
        self.front, self.back, self.server = front, back, server
        self.delay, self.loss, self.reorder, self.duplicate = delay, loss, reorder, duplicate
        self.reorder_delay = reorder_delay
        self.random = random.Random(seed)
        self.client = None
        self.counts = {"received": 0, "lost": 0, "reordered": 0, "duplicated": 0}
        self._queue = []
        self._sequence = 0
        self._wake_reader, self._wake_writer = socket.socketpair()
        self._thread = threading.Thread(target=self._run, daemon=True)
        for one in (front, back):
            one.setblocking(False)
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._wake_writer.send(b"x")
        self._thread.join()
        for one in (self.front, self.back, self._wake_reader, self._wake_writer):
            one.close()

    def _run(self):
        while True:
            wait = None
            if self._queue:
                wait = max(0.0, self._queue[0][0] - time.monotonic())
            ready, _, _ = select.select([self.front, self.back, self._wake_reader], [], [], wait)
            if self._wake_reader in ready:
                return
            if self.front in ready:
                self._receive(self.front, to_server=True)
            if self.back in ready:
                self._receive(self.back, to_server=False)
            now = time.monotonic()
            while self._queue and self._queue[0][0] <= now:
                _, _, to_server, data = heapq.heappop(self._queue)
                self._send(to_server, data)

    def _receive(self, source, to_server):
        for _ in range(256):
            try:
                data, address = source.recvfrom(65536)
            except BlockingIOError:
                return
            except OSError:
                continue  # An ICMP error that belongs to an earlier datagram.
            if to_server:
                self.client = address
            self._schedule(to_server, data)

    def _schedule(self, to_server, data):
        self.counts["received"] += 1
        if self.random.random() < self.loss:
            self.counts["lost"] += 1
            return
        delay = self.delay
        if self.random.random() < self.reorder:
            self.counts["reordered"] += 1
            delay += self.random.uniform(0, self.reorder_delay)
        copies = 1
        if self.random.random() < self.duplicate:
            self.counts["duplicated"] += 1
            copies = 2
        for _ in range(copies):
            if delay == 0.0:
                self._send(to_server, data)
                continue
            self._sequence += 1
            heapq.heappush(self._queue, (time.monotonic() + delay, self._sequence, to_server, data))

    def _send(self, to_server, data):
        try:
            if to_server:
                self.back.sendto(data, self.server)
            elif self.client:
                self.front.sendto(data, self.client)
        except OSError:
            pass  # A full queue or an unreachable peer is loss, which this link may always cause.
