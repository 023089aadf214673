"""Clients of the DNS proxy: sockets that send any bytes and wait for answers with a bound."""

import contextlib
import socket
import struct
import time
from typing import TYPE_CHECKING, Iterable, Iterator, Optional

import dns_wire
from dns_wire import Message
from waiting import CheckFailure, expect

if TYPE_CHECKING:
    from dns_testbed import DNSTestbed

#: Where daemons listen, by family.
ADDRESSES = {4: ("127.0.0.1", 53), 6: ("::1", 53)}
#: For how long an answer is waited for that must come; longer than the daemon's own bound for a query.
PATIENCE = 8.0


class UDPClient:
    """A UDP socket that is connected to the daemon."""

    def __init__(self, testbed: "DNSTestbed", family: int = 4, buffer: int = 0):
        """`buffer` is how much the socket asks the kernel to hold for it, in bytes; 0 for what is usual."""
        self._testbed = testbed
        self.socket = testbed.network.socket(socket.AF_INET if family == 4 else socket.AF_INET6, socket.SOCK_DGRAM)
        if buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, 33, buffer)  # SO_RCVBUFFORCE
        self.socket.connect(ADDRESSES[family])

    def __enter__(self) -> "UDPClient":
        return self

    def __exit__(self, *exception) -> None:
        self.socket.close()

    def send(self, message: bytes) -> None:
        """Sends one datagram."""
        self._testbed.note(message)
        self.socket.send(message)

    def receive_bytes(self, seconds: float = PATIENCE) -> "Optional[bytes]":
        """The next datagram; None when none came in time."""
        self.socket.settimeout(max(0.001, seconds))
        try:
            return self.socket.recv(65535)
        except socket.timeout:
            return None
        except ConnectionRefusedError:
            raise CheckFailure("nobody listens for datagrams at the daemon's address") from None

    def receive(self, seconds: float = PATIENCE) -> Message:
        """The next answer, which must come and be in order."""
        data = self.receive_bytes(seconds)
        expect(data is not None, f"no answer came by UDP within {seconds:g} s")
        return Message.checked(data)

    def exchange(self, message: bytes, seconds: float = PATIENCE) -> Message:
        """Sends a query and returns the answer, which must have its ID."""
        self.send(message)
        return _with_id(self.receive(seconds), message)


class StreamAnswers:
    """What comes back on a connection, by whatever its messages come: `send` sends one, and `receive_bytes` has the next one."""

    transport: str

    def send(self, *messages: bytes) -> None:
        """Sends messages, each behind its length."""
        raise NotImplementedError

    def receive_bytes(self, seconds: float = PATIENCE) -> "Optional[bytes]":
        """The next message without its length. None when none came in time, nothing when the connection ended."""
        raise NotImplementedError

    def receive(self, seconds: float = PATIENCE) -> Message:
        """The next answer, which must come and be in order."""
        data = self.receive_bytes(seconds)
        expect(data is not None, f"no answer came by {self.transport} within {seconds:g} s")
        expect(data != b"", "the connection ended before an answer came")
        return Message.checked(data)

    def exchange(self, message: bytes, seconds: float = PATIENCE) -> Message:
        """Sends a query and returns the next answer, which must have its ID."""
        self.send(message)
        return _with_id(self.receive(seconds), message)

    def expect_end(self, seconds: float) -> None:
        """The daemon must end the connection, without another answer."""
        data = self.receive_bytes(seconds)
        expect(data is not None, f"the connection is open after {seconds:g} s")
        expect(data == b"", f"an answer came instead of the connection's end: {data.hex()}")


class TCPClient(StreamAnswers):
    """A TCP connection to the daemon."""

    transport = "TCP"

    def __init__(self, testbed: "DNSTestbed", family: int = 4):
        self._testbed = testbed
        self._received = b""
        self.socket = testbed.network.socket(socket.AF_INET if family == 4 else socket.AF_INET6, socket.SOCK_STREAM)
        self.socket.settimeout(PATIENCE)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            self.socket.connect(ADDRESSES[family])
        except OSError as error:
            self.socket.close()
            raise CheckFailure(f"connecting to the daemon: {error}") from None

    def __enter__(self) -> "TCPClient":
        return self

    def __exit__(self, *exception) -> None:
        self.socket.close()

    def send(self, *messages: bytes) -> None:
        """Sends messages, each behind its length, in one call."""
        for message in messages:
            self._testbed.note(message)
        self.send_bytes(framed(*messages))

    def send_bytes(self, data: bytes, piece: int = 0) -> None:
        """Sends bytes, in segments of `piece` bytes unless that is 0."""
        for at in range(0, len(data), piece or max(1, len(data))):
            self.socket.sendall(data[at:at + piece] if piece else data)

    def receive_bytes(self, seconds: float = PATIENCE) -> "Optional[bytes]":
        """The next message without its length. None when none came in time, nothing when the connection ended."""
        deadline = time.monotonic() + seconds
        while True:
            if len(self._received) >= 2:
                length = struct.unpack_from(">H", self._received)[0]
                if len(self._received) >= 2 + length:
                    message, self._received = self._received[2:2 + length], self._received[2 + length:]
                    return message
            left = deadline - time.monotonic()
            if left <= 0:
                return None
            self.socket.settimeout(left)
            try:
                data = self.socket.recv(1 << 17)
            except socket.timeout:
                return None
            except ConnectionResetError:
                data = b""
            if not data:
                expect(not self._received, f"the connection ended within a message: {self._received.hex()}")
                return b""
            self._received += data


def framed(*messages: bytes) -> bytes:
    """Messages, each behind its length in two octets."""
    return b"".join(struct.pack(">H", len(message)) + message for message in messages)


def _with_id(answer: Message, query: bytes) -> Message:
    expected = int.from_bytes(query[:2], "big")
    expect(answer.identifier == expected, f"the answer's ID is not {expected:04x}: {answer}")
    return answer


class Clients:
    """What a testbed can do as a client of its daemon; a mix-in of `DNSTestbed`."""

    def udp(self, family: int = 4, buffer: int = 0) -> UDPClient:
        """A UDP client; use as a context manager, or it lasts as long as the check."""
        return self.enter(UDPClient(self, family, buffer))

    def tcp(self, family: int = 4) -> TCPClient:
        """A TCP client; use as a context manager, or it lasts as long as the check."""
        return self.enter(TCPClient(self, family))

    @contextlib.contextmanager
    def client(self, transport: str, family: int = 4) -> "Iterator":
        """A client by the name of its transport: udp or tcp."""
        with {"udp": UDPClient, "tcp": TCPClient}[transport](self, family) as client:
            yield client

    def exchange(self, message: bytes, transport: str = "udp", family: int = 4, seconds: float = PATIENCE) -> Message:
        """Sends a query from a socket of its own and returns the answer, which must come and have its ID."""
        with self.client(transport, family) as client:
            return client.exchange(message, seconds)

    def ask(self, of="example.com", kind: int = dns_wire.A, transport: str = "udp", *, family: int = 4,
            seconds: float = PATIENCE, **parts) -> Message:
        """Asks a question from a socket of its own; `parts` are those of `dns_wire.query`."""
        return self.exchange(dns_wire.query(of, kind, **parts), transport, family, seconds)

    def expect_silence(self, client: "UDPClient", after: "Iterable[bytes]" = ()) -> None:
        """No answer may come to what was sent before: one to a later query comes first, and nothing beside it."""
        for message in after:
            client.send(message)
        last = client.exchange(dns_wire.query("localhost"))
        expect(last.addresses == ["127.0.0.1"], f"after what must not be answered came {last}")
        more = client.receive_bytes(0.1)
        expect(more is None, f"an answer came to what must not be answered: {more and more.hex()}")
