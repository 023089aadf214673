"""A place where the upstream listens, with the transport that it speaks there."""

import asyncio
import socket
from typing import TYPE_CHECKING, Optional

from dns_upstream.connection import Connection
from dns_upstream.messages import Query
from dns_upstream.replies import Received, Reply, Response, Script, in_order

if TYPE_CHECKING:
    from dns_upstream.upstream import Upstream


class Listener:
    """A listening socket for connections, or a UDP socket. Everything may be changed while it runs."""

    def __init__(self, upstream: "Upstream", transport: str, address: str, port: int):
        self.upstream, self.transport = upstream, transport
        self.address, self.port = address, port
        self.script: Optional[Script] = None  # the upstream's when None
        self.on_accept: Optional[str] = None  # "close", "reset", "silent" (never speaks): for the next connections
        self.is_piecemeal = False  # the next connections send a byte per segment
        self.connections: "list[Connection]" = []
        self._server: "Optional[asyncio.Server]" = None
        self._socket: Optional[socket.socket] = None

    @property
    def received(self) -> "list[Received]":
        """The queries that came here, in their order."""
        return [one for one in self.upstream.received if one.server == (self.address, self.port)
                and one.transport == self.transport]

    def respond(self, received: Received) -> Response:
        """What the script says about a query."""
        return (self.script or self.upstream.script)(received)

    def note(self, connection: Connection) -> None:
        """A connection was accepted."""
        self.connections.append(connection)
        self.upstream.connections.append(connection)

    # Opening and closing; both may be called by any thread.

    def open(self) -> "Listener":
        """Begins to listen, again after `close`."""
        self.upstream.in_loop(self._open)
        return self

    def close(self, connections: bool = False) -> None:
        """Stops to listen: connections are refused, and datagrams answered by ICMP. Connections that there are live on
        unless they are to be closed too."""
        def action() -> None:
            if self._server is not None:
                self._server.close()
                self._server = None
            if self._socket is not None:
                if self.transport == "udp":
                    self.upstream.loop.remove_reader(self._socket)
                    self._socket.close()
                # The socket of a server is the server's to close, which may not have begun yet: see `_keep`.
                self._socket = None
            for connection in self.connections if connections else ():
                if connection.is_open:
                    connection.close()

        self.upstream.in_loop(action)

    def make_connection(self) -> Connection:
        """The protocol of the next connection."""
        return Connection(self, self.upstream.next_connection_number())

    def _open(self) -> None:
        family = socket.AF_INET6 if ":" in self.address else socket.AF_INET
        kind = socket.SOCK_DGRAM if self.transport == "udp" else socket.SOCK_STREAM
        one = self.upstream.namespace.socket(family, kind)
        one.setblocking(False)
        if kind == socket.SOCK_STREAM:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        else:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        one.bind((self.address, self.port))
        self._socket = one
        if kind == socket.SOCK_DGRAM:
            self.upstream.loop.add_reader(one, self._read_datagrams)
            return
        one.listen(512)
        # Returns at once: there is nothing to look up.
        start = self.upstream.loop.create_server(self.make_connection, sock=one, backlog=512)
        self.upstream.loop.create_task(self._keep(start))

    async def _keep(self, start) -> None:
        server = await start
        if self._socket is None:
            server.close()
        else:
            self._server = server

    # Datagrams

    def _read_datagrams(self) -> None:
        for _ in range(64):
            try:
                message, client = self._socket.recvfrom(65535)
            except BlockingIOError:
                return
            except OSError:
                continue  # An ICMP error of an answer before.
            received = self.upstream.receive(self, Query(message), client[:2], None)
            for one in in_order(self.respond(received)):
                if not isinstance(one, Reply):
                    raise TypeError("only a message can be sent by UDP")
                if one.after:
                    self.upstream.later(one.after, self._send_datagram, one, client)
                else:
                    self._send_datagram(one, client)

    def _send_datagram(self, reply: Reply, client) -> None:
        try:
            if reply.source is None:
                if self._socket is not None:
                    self._socket.sendto(reply.message, client)
                return
            with self.upstream.namespace.udp_socket(*reply.source) as other:
                other.sendto(reply.message, client)
        except OSError:
            pass  # Nobody waits any more.
