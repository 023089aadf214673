"""A client's connection to the upstream: what came by it, and everything that can be done to it."""

import asyncio
import socket
import struct
import time
from typing import TYPE_CHECKING, Callable, Optional

from dns_upstream.messages import Query
from dns_upstream.replies import HTTPReply, Received, Reply, ResetStream, Response, in_order

if TYPE_CHECKING:
    from dns_upstream.listener import Listener
    from dns_upstream.tls import TLSLayer


class Connection(asyncio.Protocol):
    """One accepted connection: DNS over TCP (RFC 7766), and what those over TLS and HTTPS have in common with it.

    Methods that act may be called by a script and by any thread.
    """

    def __init__(self, listener: "Listener", number: int):
        self.listener = listener
        self.number = number  # 1 for the upstream's first connection
        self.transport_name = listener.transport
        self.client: "tuple[str, int]" = ("", 0)
        self.opened_at = time.monotonic()
        self.raw_byte_count = 0  # what came, before TLS took it
        self.plain_byte_count = 0  # what came of the application
        self.raw_bytes = b""  # the first 64 KiB of it
        self.received: "list[Received]" = []
        self.is_open = True
        self.is_ended_by_client = False  # it sent a FIN or RST
        self.failure: Optional[str] = None  # what the client did against TLS or HTTP/2
        self.is_swallowing = False
        self.is_piecemeal = listener.is_piecemeal
        self.is_holding = False
        self.tls: "Optional[TLSLayer]" = None
        self._held: "list[bytes]" = []
        self._input = b""
        self._transport: Optional[asyncio.Transport] = None

    # What the event loop reports.

    def connection_made(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        # Each write is a segment, and none waits for the client's acknowledgement of the one before.
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.client = transport.get_extra_info("peername")[:2]
        self.listener.note(self)
        if self.listener.on_accept == "close":
            transport.close()
        elif self.listener.on_accept == "reset":
            self.reset()
        elif self.listener.on_accept == "silent":
            self.is_swallowing = True
        else:
            self.begin()

    def data_received(self, data: bytes) -> None:
        self.raw_byte_count += len(data)
        self.raw_bytes = (self.raw_bytes + data)[:65536]
        if self.is_swallowing:
            return
        if self.tls is not None:
            data = self.tls.receive(data)
        if data and self.is_open:
            self.plain_byte_count += len(data)
            self.take(data)

    def eof_received(self) -> bool:
        self.is_ended_by_client = True
        return self.keeps_half_open

    def connection_lost(self, error: Optional[Exception]) -> None:
        self.is_ended_by_client |= isinstance(error, ConnectionResetError)
        self.is_open = False
        if self.tls is not None:
            self.tls.end()

    # What a protocol over the connection does.

    keeps_half_open = True

    @property
    def is_ready(self) -> bool:
        """Whether queries can come."""
        return True

    def begin(self) -> None:
        """The connection is there."""

    def take(self, data: bytes) -> None:
        """Bytes of the application came: messages with their lengths in front."""
        self._input += data
        while len(self._input) >= 2:
            end = 2 + int.from_bytes(self._input[:2], "big")
            if len(self._input) < end:
                return
            message, self._input = self._input[2:end], self._input[end:]
            self.answer(self.listener.upstream.receive(
                self.listener, Query(message), self.client, self))

    def answer(self, received: Received) -> None:
        """Does what the script says about a query."""
        self.received.append(received)
        for one in in_order(self.listener.respond(received)):
            if one.after:
                self.listener.upstream.later(one.after, self.send, received, one)
            else:
                self.send(received, one)

    def send(self, received: Received, one: "Reply | HTTPReply | ResetStream") -> None:
        """Sends one reply."""
        if not isinstance(one, Reply):
            raise TypeError("only a message can be sent by TCP and TLS")
        self.write(struct.pack(">H", len(one.message)) + one.message)

    def write(self, data: bytes) -> None:
        """Sends bytes of the application."""
        if self.is_holding:
            self._held.append(data)
            return
        self.write_raw(self.tls.seal(data) if self.tls is not None else data)

    def write_raw(self, data: bytes) -> None:
        """Sends bytes as they are."""
        if not self.is_open or self._transport is None or self._transport.is_closing():
            return
        if self.is_piecemeal:
            for at in range(len(data)):
                self._transport.write(data[at:at + 1])
        elif data:
            self._transport.write(data)

    # What a check or a script does to it.

    def _act(self, action: Callable[[], None]) -> None:
        self.listener.upstream.in_loop(action)

    def close(self, notify: bool = True) -> None:
        """Ends the connection when what was written is sent, with TLS's close_notify unless told otherwise."""
        def action() -> None:
            if self.is_open and self._transport is not None:
                if self.tls is not None and notify:
                    self.write_raw(self.tls.close())
                self.is_open = False
                self._transport.close()

        self._act(action)

    def reset(self) -> None:
        """Ends the connection by a RST."""
        def action() -> None:
            if self._transport is not None:
                self.is_open = False
                endpoint = self._transport.get_extra_info("socket")
                if endpoint is not None and endpoint.fileno() >= 0:
                    endpoint.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self._transport.abort()

        self._act(action)

    def swallow(self) -> None:
        """From now on takes everything, and says nothing ever again."""
        def action() -> None:
            self.is_swallowing = True
            self.write_raw = lambda data: None

        self._act(action)

    def hold(self) -> None:
        """Keeps answers back until `release`."""
        self.is_holding = True

    def release(self) -> None:
        """Sends what was held back, all in one segment when it fits."""
        def action() -> None:
            self.is_holding = False
            data, self._held = b"".join(self._held), []
            if data:
                self.write(data)

        self._act(action)

    def reply(self, received: Received, response: Response) -> None:
        """Sends a late answer to a query of this connection."""
        self._act(lambda: [self.send(received, one) for one in in_order(response)] and None)
