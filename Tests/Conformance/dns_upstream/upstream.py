"""A scripted DNS server in a namespace, by UDP, TCP, TLS and HTTPS, with every fault that a server can have."""

import asyncio
import logging
import threading
import time
from typing import Callable, Optional, Sequence

from network_namespace import NetworkNamespace
from waiting import wait_until

from dns_upstream import scripts
from dns_upstream.certificates import Identity
from dns_upstream.connection import Connection
from dns_upstream.https import HTTPListener
from dns_upstream.listener import Listener
from dns_upstream.messages import Query
from dns_upstream.replies import Received, Request, Script
from dns_upstream.tls import SecureListener


# It says each time that a client is gone already.
logging.getLogger("asyncio").setLevel(logging.CRITICAL)


class Upstream:
    """Runs in a thread of its own inside the `with` block (or `testbed.enter`).

        upstream = testbed.enter(Upstream(namespace, "127.0.0.2"))      # answers everything; see `scripts.usual`
        upstream.udp(), upstream.tcp()                                  # listens on port 53
        upstream.script = lambda received: ...                          # what is answered from now on
        upstream.received                                               # all queries that came

    A script is called in the upstream's thread with a `Received` and returns what is sent: the bytes of a message, a
    `Reply` (later, or from another address), a list of those, or None for silence. An exception in a script fails the
    check when the block ends.
    """

    def __init__(self, namespace: NetworkNamespace, address: str = "127.0.0.2", script: Optional[Script] = None):
        self.namespace, self.address = namespace, address
        self.script: Script = script or scripts.addresses()
        self.received: "list[Received]" = []
        self.connections: "list[Connection]" = []
        self.listeners: "list[Listener]" = []
        self.loop = asyncio.new_event_loop()
        self._errors: "list[BaseException]" = []
        self._connection_count = 0
        self._thread = threading.Thread(target=self._run, name=f"upstream-{address}", daemon=True)

    # Life

    def __enter__(self) -> "Upstream":
        self.loop.set_exception_handler(self._note_error)
        self._thread.start()
        return self

    def __exit__(self, kind, *exception) -> None:
        self.stop()
        if kind is None:
            self.expect_no_error()

    def stop(self) -> None:
        """Ends everything; harmless when that was done."""
        if not self._thread.is_alive():
            return
        for listener in self.listeners:
            listener.close()
        for connection in list(self.connections):
            if connection.is_open:
                connection.reset()
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(10)

    def expect_no_error(self) -> None:
        """Fails when a script did."""
        if self._errors:
            raise self._errors[0]

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_forever()
        finally:
            for task in asyncio.all_tasks(self.loop):
                task.cancel()
            self.loop.run_until_complete(asyncio.sleep(0))
            self.loop.close()

    def _note_error(self, loop, context: dict) -> None:
        self._errors.append(context.get("exception") or RuntimeError(context["message"]))

    def in_loop(self, action: "Callable[[], None]") -> None:
        """Calls `action` in the upstream's thread, and returns when it is done."""
        if threading.current_thread() is self._thread:
            action()
            return
        done, failures = threading.Event(), []

        def call() -> None:
            try:
                action()
            except BaseException as error:
                failures.append(error)
            done.set()

        self.loop.call_soon_threadsafe(call)
        if not done.wait(10):
            raise RuntimeError("the scripted upstream hangs")
        if failures:
            raise failures[0]

    def later(self, seconds: float, action: Callable, *arguments) -> None:
        """Calls `action` in the upstream's thread after so many seconds. For scripts."""
        self.loop.call_later(seconds, action, *arguments)

    def end_connections(self, end: "Callable[[Connection], None]" = Connection.close) -> None:
        """Ends the connections that are ready for queries, as servers do with idle ones; the others shake hands on."""
        for connection in list(self.connections):
            if connection.is_open and connection.is_ready:
                end(connection)

    # Places to listen

    def _listen(self, listener: Listener) -> Listener:
        self.listeners.append(listener)
        return listener.open()

    def udp(self, port: int = 53, address: Optional[str] = None) -> Listener:
        """Listens for datagrams."""
        return self._listen(Listener(self, "udp", address or self.address, port))

    def tcp(self, port: int = 53, address: Optional[str] = None) -> Listener:
        """Listens for connections with DNS over TCP."""
        return self._listen(Listener(self, "tcp", address or self.address, port))

    def tls(self, identity: Identity, port: int = 853, address: Optional[str] = None,
            protocols: Sequence[str] = ("dot",), newest: Optional[str] = None) -> SecureListener:
        """Listens for DNS over TLS; `newest` is the newest version of TLS that it speaks ("1.2"), 1.3 when None."""
        one = SecureListener(self, "tls", address or self.address, port, identity, protocols, newest)
        self._listen(one)
        return one

    def https(self, identity: Identity, port: int = 443, address: Optional[str] = None,
              protocols: Sequence[str] = ("h2",), newest: Optional[str] = None,
              most_streams: Optional[int] = 100) -> HTTPListener:
        """Listens for DNS over HTTPS, with `most_streams` as MAX_CONCURRENT_STREAMS."""
        one = HTTPListener(self, "https", address or self.address, port, identity, protocols, newest, most_streams)
        self._listen(one)
        return one

    # The record

    def next_connection_number(self) -> int:
        """The number of the connection that is being accepted."""
        self._connection_count += 1
        return self._connection_count

    def receive(self, listener: Listener, query: Query, client: "tuple[str, int]", connection: Optional[Connection],
                request: Optional[Request] = None) -> Received:
        """Notes a query."""
        received = Received(len(self.received) + 1, listener.transport, query, client,
                            (listener.address, listener.port), time.monotonic(), connection, request)
        self.received.append(received)
        return received

    def asked(self, name: str, kind: Optional[int] = None) -> "list[Received]":
        """The queries for a name (lower case), of one type or of any."""
        return [one for one in list(self.received) if one.name == name and kind in (None, one.query.type)]

    def wait_for(self, condition: "Callable[[Upstream], object]", what: str, seconds: float = 5.0):
        """Waits until `condition` is true of the upstream; fails the check after `seconds`."""
        return wait_until(lambda: condition(self), what, seconds, detail=self.summary)

    def wait_for_query(self, name: str, count: int = 1, seconds: float = 5.0) -> "list[Received]":
        """Waits until a name was asked for so many times."""
        return self.wait_for(lambda one: len(found := one.asked(name)) >= count and found,
                             f"{count} queries for {name} at the upstream", seconds)

    def summary(self) -> str:
        """What came until now, for the reason of a failure."""
        queries = [f"{one.transport} {one.name} {one.query.type}" for one in self.received[-8:]]
        connections = [
            f"#{one.number} {one.transport_name} {one.raw_byte_count} B" + ("" if one.is_open else " closed")
            + (f" {one.failure}" if one.failure else "") for one in self.connections[-4:]]
        return (f"{len(self.received)} queries came ({', '.join(queries)}), "
                f"connections: {', '.join(connections) or 'none'}")
