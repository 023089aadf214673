"""Clients of the DNS proxy by TLS and HTTPS, with control over records, frames and ends."""

import base64
import socket
import ssl
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Optional, Sequence

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import ConnectionTerminated, DataReceived, ResponseReceived, StreamEnded, StreamReset

import dns_wire
from dns_client import PATIENCE, StreamAnswers, framed
from dns_upstream.certificates import Authority, Identity, write_authorities
from dns_wire import Message
from waiting import CheckFailure, expect

if TYPE_CHECKING:
    from dns_daemon import DNSDaemon
    from dns_testbed import DNSTestbed

#: What the daemon's certificate is for.
SERVER = "dns.home.example"
#: Where it listens for TLS and HTTPS, by family.
HOSTS = {4: "127.0.0.1", 6: "::1"}
TLS_PORT, HTTPS_PORT = 853, 443
MEDIA_TYPE = "application/dns-message"


class SecureListening:
    """A daemon's side of TLS: an authority, the certificate that it is shown with, and where it listens."""

    def __init__(self, testbed: "DNSTestbed"):
        self.testbed = testbed
        self.authority = Authority.root("home")
        self.authority_file = write_authorities(testbed.file("home.pem"), self.authority)
        self.identity = self.authority.issue(SERVER, *HOSTS.values())
        self.certificate_file, self.key_file = self.identity.write(testbed.file(""), "listener")

    def replace(self, identity: Identity) -> None:
        """Puts another certificate and its key in the place of those that there are."""
        identity.write(self.testbed.file(""), "listener")

    def member(self, **more) -> dict:
        """`dns.secureListen`; `more` replaces or adds keys, None takes one away."""
        members = {
            "tls": [f"127.0.0.1:{TLS_PORT}", f"[::1]:{TLS_PORT}"],
            "https": [f"127.0.0.1:{HTTPS_PORT}", f"[::1]:{HTTPS_PORT}"],
            "certificateFile": self.certificate_file, "keyFile": self.key_file, **more}
        return {key: value for key, value in members.items() if value is not None}

    def run(self, *arguments, secure: "Optional[dict]" = None, **more) -> "DNSDaemon":
        """Starts a daemon that listens for TLS and HTTPS too; `more` is as for `DNSTestbed.run`."""
        return self.testbed.run(*arguments, secureListen=secure or self.member(), **more)

    def context(self, *protocols: str, version: "Optional[ssl.TLSVersion]" = None) -> ssl.SSLContext:
        """What clients trust, and what they offer."""
        context = ssl.create_default_context(cafile=self.authority_file)
        if protocols:
            context.set_alpn_protocols(list(protocols))
        if version:
            context.minimum_version = context.maximum_version = version
        return context

    def tls(self, family: int = 4, **options) -> "TLSClient":
        """A client by TLS."""
        return TLSClient(self, family, **options)

    def https(self, family: int = 4, **options) -> "HTTPSClient":
        """A client by HTTPS."""
        return HTTPSClient(self, family, **options)


class SecureStream:
    """A TLS connection to the daemon: plaintext at one end, and records as they are sent at the other."""

    protocols: "tuple[str, ...]" = ()
    port = TLS_PORT

    def __init__(self, listening: SecureListening, family: int = 4, context: "Optional[ssl.SSLContext]" = None,
                 session=None, host: "Optional[str]" = None):
        self.testbed = listening.testbed
        self.is_over = False
        self.records = 0  # of data that came (RFC 8446 §5.1)
        self._unread = b""  # the begin of a record whose end has not come
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = (context or listening.context(*self.protocols)).wrap_bio(
            self._incoming, self._outgoing, server_hostname=SERVER, session=session)
        self.socket = self.testbed.network.socket(
            socket.AF_INET if family == 4 else socket.AF_INET6, socket.SOCK_STREAM)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.settimeout(PATIENCE)
        try:
            self.socket.connect((host or HOSTS[family], self.port))
            deadline = time.monotonic() + PATIENCE
            while True:
                try:
                    self.tls.do_handshake()
                    break
                except ssl.SSLWantReadError:
                    self.flush()
                    expect(self._pull(deadline - time.monotonic()), "the connection ended within the handshake")
            self.flush()
        except BaseException as error:
            self.socket.close()
            if isinstance(error, OSError) and not isinstance(error, ssl.SSLError):
                raise CheckFailure(f"connecting to the daemon by TLS: {error}") from None
            raise

    def __enter__(self):
        return self

    def __exit__(self, *exception) -> None:
        self.socket.close()

    def flush(self, piece: int = 0) -> None:
        """Sends the records that wait, in segments of `piece` bytes unless that is 0."""
        data = self._outgoing.read()
        for at in range(0, len(data), piece or max(1, len(data))):
            self.socket.sendall(data[at:at + piece] if piece else data)

    def send_bytes(self, data: bytes, record: int = 0, piece: int = 0) -> None:
        """Encrypts and sends bytes, in records of `record` bytes and segments of `piece` bytes unless those are 0."""
        for at in range(0, len(data), record or max(1, len(data))):
            self.tls.write(data[at:at + record] if record else data)
        self.flush(piece)

    def say_end(self) -> None:
        """Sends close_notify, and goes on reading."""
        try:
            self.tls.unwrap()
        except ssl.SSLWantReadError:
            pass
        self.flush()

    def read(self, seconds: float) -> "Optional[bytes]":
        """Some plaintext; None when none came in time, nothing when the daemon has said that it is done."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                return self.tls.read(1 << 16)
            except ssl.SSLWantReadError:
                self.flush()
                if self.is_over:
                    return b""
                if not self._pull(deadline - time.monotonic()) and not self.is_over:
                    return None
            except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
                return b""

    def _pull(self, seconds: float) -> bool:
        """Takes ciphertext from the connection. False when none came."""
        if seconds <= 0 or self.is_over:
            return False
        self.socket.settimeout(seconds)
        try:
            data = self.socket.recv(1 << 17)
        except socket.timeout:
            return False
        except ConnectionResetError:
            data = b""
        self._incoming.write(data)
        self._unread += data
        while len(self._unread) >= 5 and len(self._unread) >= (end := 5 + int.from_bytes(self._unread[3:5], "big")):
            self.records += self._unread[0] == 23
            self._unread = self._unread[end:]
        self.is_over = not data
        return bool(data)


class TLSClient(StreamAnswers, SecureStream):
    """DNS over TLS (RFC 7858)."""

    transport = "TLS"
    protocols = ("dot",)

    def __init__(self, *arguments, **options):
        self._received = b""
        super().__init__(*arguments, **options)

    def send(self, *messages: bytes) -> None:
        """Sends messages, each behind its length, in one record."""
        for message in messages:
            self.testbed.note(message)
        self.send_bytes(framed(*messages))

    def receive_bytes(self, seconds: float = PATIENCE) -> "Optional[bytes]":
        """The next message without its length. None when none came in time, nothing when the connection ended."""
        deadline = time.monotonic() + seconds
        while True:
            if len(self._received) >= 2:
                end = 2 + int.from_bytes(self._received[:2], "big")
                if len(self._received) >= end:
                    message, self._received = self._received[2:end], self._received[end:]
                    return message
            data = self.read(deadline - time.monotonic())
            if not data:
                expect(data is None or not self._received, "the connection ended within a message")
                return data
            self._received += data


@dataclass
class Response:
    """What came of one request."""

    fields: "dict[str, str]" = field(default_factory=dict)
    body: bytes = b""
    is_complete: bool = False
    reset: "Optional[int]" = None  # the code of RST_STREAM

    @property
    def status(self) -> int:
        """The status; 0 before it has come."""
        return int(self.fields.get(":status", 0))

    @property
    def message(self) -> Message:
        """The answer, which must be one, with a header that fits."""
        expect(self.status == 200, f"the status is {self.status}, and the stream was reset with {self.reset}")
        expect(self.fields.get("content-type") == MEDIA_TYPE, f"the content type is {self.fields.get('content-type')}")
        expect(self.fields.get("content-length") == str(len(self.body)),
               f"the content length is {self.fields.get('content-length')} for {len(self.body)} octets")
        return Message.checked(self.body)

    @property
    def max_age(self) -> "Optional[int]":
        """`max-age` of `cache-control`; None when there is none."""
        for directive in self.fields.get("cache-control", "").split(","):
            key, _, value = directive.strip().partition("=")
            if key == "max-age":
                return int(value)
        return None


class HTTPSClient(SecureStream):
    """DNS over HTTPS (RFC 8484) by HTTP/2."""

    protocols = ("h2",)
    port = HTTPS_PORT

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        expect(self.tls.selected_alpn_protocol() == "h2", f"ALPN agreed on {self.tls.selected_alpn_protocol()}")
        self.session = H2Connection(H2Configuration(client_side=True, header_encoding="utf-8"))
        self.session.initiate_connection()
        self.responses: "dict[int, Response]" = {}
        self.end_code: "Optional[int]" = None  # that of GOAWAY
        self.push()

    def push(self) -> None:
        """Sends the frames that wait."""
        self.send_bytes(self.session.data_to_send())

    def request(self, method: str, path: str, body: "Optional[bytes]" = None, content_type: "Optional[str]" = MEDIA_TYPE,
                fields: "Sequence[tuple[str, str]]" = (), end: bool = True) -> int:
        """Makes a request and returns its stream; nothing is sent before `push`."""
        stream = self.session.get_next_available_stream_id()
        self.responses[stream] = Response()
        head = [(":method", method), (":scheme", "https"), (":authority", SERVER), (":path", path),
                ("accept", MEDIA_TYPE), *fields]
        if body is not None and content_type:
            head.append(("content-type", content_type))
        self.session.send_headers(stream, head, end_stream=end and body is None)
        if body is not None:
            self.write(stream, body, end)
        return stream

    def write(self, stream: int, body: bytes, end: bool = True) -> None:
        """Sends a piece of a request's body, as fast as the daemon's windows allow."""
        at = 0
        while at < len(body):
            room = min(self.session.local_flow_control_window(stream), self.session.max_outbound_frame_size)
            if room == 0:
                self.push()
                expect(self.pull(PATIENCE), "the daemon opens no window")
                continue
            self.session.send_data(stream, body[at:at + room])
            at += room
        if end:
            self.session.end_stream(stream)

    def post(self, message: bytes, path: str = "/dns-query", **options) -> int:
        """Asks by POST."""
        self.testbed.note(message)
        return self.request("POST", path, message, **options)

    def get(self, message: bytes, path: str = "/dns-query", **options) -> int:
        """Asks by GET."""
        self.testbed.note(message)
        return self.request("GET", f"{path}?dns={encoded(message)}", **options)

    def pull(self, seconds: float) -> bool:
        """Takes what has come. False when nothing did in time, or nothing will."""
        data = self.read(seconds)
        if not data:
            return False
        for event in self.session.receive_data(data):
            response = self.responses.get(getattr(event, "stream_id", None))
            if isinstance(event, ConnectionTerminated):
                self.end_code = int(event.error_code)
            elif response is None:
                continue
            elif isinstance(event, ResponseReceived):
                response.fields = dict(event.headers)
            elif isinstance(event, DataReceived):
                response.body += event.data
                self.session.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            elif isinstance(event, StreamEnded):
                response.is_complete = True
            elif isinstance(event, StreamReset):
                response.reset, response.is_complete = int(event.error_code), True
        self.push()
        return True

    def finish(self, *streams: int, seconds: float = PATIENCE) -> "list[Response]":
        """Sends what waits, and returns what came of these streams, all of which must end."""
        self.push()
        deadline = time.monotonic() + seconds
        while not all(self.responses[stream].is_complete for stream in streams):
            expect(self.pull(deadline - time.monotonic()),
                   f"no response came on {[one for one in streams if not self.responses[one].is_complete]} within "
                   f"{seconds:g} s; the code of GOAWAY is {self.end_code}")
        return [self.responses[stream] for stream in streams]

    def ask(self, message: bytes, method: str = "POST", **options) -> Response:
        """Asks, and returns the response."""
        stream = self.post(message, **options) if method == "POST" else self.get(message, **options)
        return self.finish(stream)[0]

    def expect_end(self, seconds: float) -> None:
        """The daemon must end the connection."""
        deadline = time.monotonic() + seconds
        while self.pull(deadline - time.monotonic()):
            pass
        expect(self.read(0.01) == b"", f"the connection is open after {seconds:g} s")


def encoded(message: bytes) -> str:
    """A message as a parameter of a path: base64url without padding (RFC 8484 §6)."""
    return base64.urlsafe_b64encode(message).rstrip(b"=").decode()


def query(of: str, kind: int = dns_wire.A, **parts) -> bytes:
    """A query as HTTPS clients put it: with the ID 0."""
    return dns_wire.query(of, kind, identifier=0, **parts)
