"""How clients reach the daemon by connections: what is the same for TCP and for TLS, and what is not."""

import contextlib
import functools
import socket
import ssl
from typing import Callable, Iterator, Optional, Union

import dns_wire
from dns_checks.registry import check
from dns_client import TCPClient
from dns_daemon import DNSDaemon
from dns_secure_client import TLS_PORT, SecureListening, TLSClient, query
from dns_testbed import DNSTestbed
from dns_wire import Message
from waiting import CheckFailure, expect_equal

#: What sends bytes to a daemon in some pieces.
Sending = Callable[[Union[TCPClient, TLSClient], bytes], None]


class ByTCP:
    """Clients by TCP. What is not by connections goes by UDP."""

    name, port = "TCP", 53
    others = "UDP"

    def __init__(self, testbed: DNSTestbed):
        self.testbed = testbed

    def run(self, *arguments, **more) -> DNSDaemon:
        """Starts a daemon; the arguments are as for `DNSTestbed.run`."""
        return self.testbed.run(*arguments, **more)

    def client(self, family: int = 4) -> TCPClient:
        """A client that is connected; it lasts as long as the check at most."""
        return self.testbed.enter(TCPClient(self.testbed, family))

    def ways_to_send(self, family: int) -> "Iterator[tuple[str, TCPClient, Sending]]":
        """Ways to send bytes, in words, each with a client for it."""
        for what, lengths in (("one octet each", None), ("all in one", ()), ("one octet, then the rest", (1,)),
                              ("two octets, then the rest", (2,)), ("mixed", (3, 1, 70, 1, 1, 40, 2, 90, 5))):
            yield f"segments of {what}", self.client(family), functools.partial(self._send, lengths)

    @staticmethod
    def _send(lengths: "Optional[tuple[int, ...]]", client: TCPClient, data: bytes) -> None:
        if lengths is None:
            client.send_bytes(data, piece=1)
            return
        for length in (*lengths, len(data)):
            client.send_bytes(data[:length])
            data = data[length:]

    def answered_client(self) -> TCPClient:
        """A client that is sent nothing but answers from now on."""
        return self.client()

    def expect_units(self, client: TCPClient, count: int) -> None:
        """The client must have got so many of what the transport sends things in."""

    #: Ways to say that nothing more is asked.
    ends = (lambda client: client.socket.shutdown(socket.SHUT_WR),)

    @contextlib.contextmanager
    def strangers(self) -> "Iterator[list[socket.socket]]":
        """Connections whose clients never come to ask anything."""
        yield []

    def exchange_otherwise(self, of: str, **parts) -> Message:
        """What comes of a question that goes by no connection of this kind."""
        return self.testbed.ask(of, **parts)

    def asking(self, number: int, names: "list[str]"):
        """A client that has just asked for the addresses of names."""
        client = self.client()
        client.send(*map(dns_wire.query, names))
        return client


class ByTLS:
    """Clients by TLS. What is not by connections of this kind goes by HTTPS."""

    name, port = "TLS", TLS_PORT
    others = "HTTPS"

    def __init__(self, testbed: DNSTestbed):
        self.testbed = testbed
        self.listening = SecureListening(testbed)

    def run(self, *arguments, **more) -> DNSDaemon:
        """Starts a daemon that listens for TLS too; the arguments are as for `DNSTestbed.run`."""
        return self.listening.run(*arguments, **more)

    def client(self, family: int = 4, **options) -> TLSClient:
        """A client that has shaken hands; it lasts as long as the check at most."""
        return self.testbed.enter(self.listening.tls(family, **options))

    def ways_to_send(self, family: int) -> "Iterator[tuple[str, TLSClient, Sending]]":
        """Ways to send bytes, in words, each with a client for it."""
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            for record, piece in ((1, 0), (0, 1), (1, 7), (0, 0), (3, 11)):
                client = self.client(family, context=self.listening.context("dot", version=version))
                yield (f"records of {record} and segments of {piece} octets by {version.name}", client,
                       functools.partial(TLSClient.send_bytes, record=record, piece=piece))

    def answered_client(self) -> TLSClient:
        """A client that is sent nothing but answers from now on: in this version tickets come within the handshake."""
        return self.client(context=self.listening.context("dot", version=ssl.TLSVersion.TLSv1_2))

    def expect_units(self, client: TLSClient, count: int) -> None:
        """The client must have got so many of what the transport sends things in."""
        expect_equal(client.records, count, "the number of records that came")

    #: Ways to say that nothing more is asked.
    ends = (TLSClient.say_end, lambda client: client.socket.shutdown(socket.SHUT_WR))

    @contextlib.contextmanager
    def strangers(self) -> "Iterator[list[socket.socket]]":
        """Connections whose clients never shake hands: silent, halfway, and in a ClientHello said to have 128 KiB."""
        with contextlib.ExitStack() as stack:
            found = []
            for words in (b"", b"\x16\3\1\2\0\1\0\1\xfc\3\3", b"\x16\3\1\x40\0\1\1\xff\xff\3\3"):
                one = stack.enter_context(self.testbed.network.socket(socket.AF_INET, socket.SOCK_STREAM))
                one.connect(("127.0.0.1", TLS_PORT))
                one.sendall(words)
                found.append(one)
            yield found

    def exchange_otherwise(self, of: str, **parts) -> Message:
        """What comes of a question that goes by no connection of this kind."""
        with self.listening.https() as client:
            return client.ask(query(of, **parts)).message

    def asking(self, number: int, names: "list[str]"):
        """A client that has just asked for the addresses of names: by TLS and by HTTPS by turns."""
        if number % 2:
            client = self.client()
            client.send(*map(dns_wire.query, names))
            return client
        client = self.testbed.enter(self.listening.https())
        for name in names:
            client.post(query(name))
        client.push()
        return client


StreamTransport = Union[ByTCP, ByTLS]


def check_by_streams(identifier: str, title: str, *, lasts: int = 0) -> "Callable[[Callable], Callable]":
    """Decorator that enters a check of clients by TCP, and the same of those by TLS with `.tls` behind its name."""

    def enter(body: "Callable[[StreamTransport], None]") -> Callable:
        for transport, suffix in ((ByTCP, ""), (ByTLS, ".tls")):
            check(identifier + suffix, f"{title} ({transport.name})", lasts=lasts)(
                lambda testbed, transport=transport: body(transport(testbed)))
        return body

    return enter


def expect_ended(connection: socket.socket, seconds: float) -> None:
    """The daemon must end a connection that nothing is asked by, whatever it says before."""
    connection.settimeout(seconds)
    try:
        while connection.recv(4096):
            pass
    except ConnectionResetError:
        pass
    except socket.timeout:
        raise CheckFailure(f"a connection that asks nothing is open after {seconds:g} s") from None
