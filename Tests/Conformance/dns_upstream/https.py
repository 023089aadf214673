"""DNS over HTTPS (RFC 8484) by HTTP/2, with control over each frame."""

import base64
import struct
from typing import TYPE_CHECKING, Optional, Sequence

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import (DataReceived, PingReceived, RequestReceived, SettingsAcknowledged, StreamEnded, StreamReset,
                       WindowUpdated)
from h2.exceptions import ProtocolError, StreamClosedError
from h2.settings import SettingCodes, Settings
from hyperframe.frame import GoAwayFrame, PingFrame

from dns_upstream.messages import Query
from dns_upstream.replies import HTTPReply, Received, Reply, Request, ResetStream
from dns_upstream.tls import SecureConnection, SecureListener

if TYPE_CHECKING:
    from dns_upstream.certificates import Identity
    from dns_upstream.upstream import Upstream

#: Error codes of RFC 9113 §7.
NO_ERROR, PROTOCOL_ERROR, INTERNAL_ERROR, REFUSED_STREAM, CANCEL, ENHANCE_YOUR_CALM = 0, 1, 2, 7, 8, 11


class HTTPConnection(SecureConnection):
    """A connection with HTTP/2."""

    def begin(self) -> None:
        super().begin()
        self._requests: "dict[int, tuple[list[tuple[str, str]], bytearray]]" = {}
        self._bodies: "dict[int, tuple[bytes, HTTPReply]]" = {}
        self._session: Optional[H2Connection] = None
        self._unsent = b""
        self.open_streams: "set[int]" = set()  # those of the client that are not answered
        self.most_open_streams = 0
        self.last_stream = 0
        self.refused_streams: "list[int]" = []
        self.pings = 0  # of the client
        self.cancelled: "list[tuple[int, int]]" = []  # streams that the client reset, and its codes
        self.has_acknowledged_settings = False
        self.has_sent_settings = False

    def become_secure(self) -> None:
        super().become_secure()
        if not self.is_open or self.is_swallowing:
            return
        if self.tls.protocol != "h2":
            self.failure = f"ALPN agreed on {self.tls.protocol}"
            return
        self._session = H2Connection(H2Configuration(client_side=False, header_encoding="utf-8"))
        # h2 would end the connection of a client that opens too many streams; here they are refused one by one.
        self._session.local_settings = Settings(client=False, initial_values={
            SettingCodes.MAX_CONCURRENT_STREAMS: 2**31 - 1, SettingCodes.MAX_HEADER_LIST_SIZE: 65536})
        self._session.initiate_connection()
        self._session.clear_outbound_data_buffer()
        if self.listener.settings_after:
            self.listener.upstream.later(self.listener.settings_after, self._send_settings)
        else:
            self._send_settings()

    def _send_settings(self) -> None:
        """The server's preface (RFC 9113 §3.4), and what was kept back until then."""
        limit = self.listener.most_streams
        payload = b"" if limit is None else struct.pack(">HI", int(SettingCodes.MAX_CONCURRENT_STREAMS), limit)
        self.write(len(payload).to_bytes(3, "big") + b"\4\0" + bytes(4) + payload)
        self.has_sent_settings = True
        unsent, self._unsent = self._unsent, b""
        if unsent:
            self.write(unsent)

    def write_frames(self, data: bytes) -> None:
        """Sends frames, behind the SETTINGS."""
        if self.has_sent_settings:
            self.write(data)
        else:
            self._unsent += data

    def take(self, data: bytes) -> None:
        if self._session is None:
            return
        try:
            events = self._session.receive_data(data)
        except ProtocolError as error:
            self.failure = f"HTTP/2: {error}"
            self.write_frames(self._session.data_to_send())
            self.close()
            return
        for event in events:
            self._handle(event)
        if self.is_open and not self.is_swallowing:
            self.write_frames(self._session.data_to_send())

    def _handle(self, event) -> None:
        if isinstance(event, RequestReceived):
            self.last_stream = max(self.last_stream, event.stream_id)
            limit = self.listener.most_streams
            if limit is not None and len(self.open_streams) >= limit:
                if self.has_acknowledged_settings:
                    self.failure = f"a stream too many: {limit} are open"
                self.refused_streams.append(event.stream_id)
                self.reset_stream(event.stream_id, REFUSED_STREAM)
                return
            self.open_streams.add(event.stream_id)
            self.most_open_streams = max(self.most_open_streams, len(self.open_streams))
            self._requests[event.stream_id] = ([tuple(field[:2]) for field in event.headers], bytearray())
        elif isinstance(event, DataReceived):
            if event.stream_id in self._requests:
                self._requests[event.stream_id][1].extend(event.data)
            self._session.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        elif isinstance(event, StreamEnded):
            if event.stream_id in self._requests:
                fields, body = self._requests.pop(event.stream_id)
                self._take_request(Request(event.stream_id, tuple(fields), bytes(body)))
        elif isinstance(event, StreamReset):
            self.cancelled.append((event.stream_id, int(event.error_code)))
            self.open_streams.discard(event.stream_id)
            self._requests.pop(event.stream_id, None)
            self._bodies.pop(event.stream_id, None)
        elif isinstance(event, WindowUpdated):
            for stream in list(self._bodies):
                try:
                    self._send_body(stream)
                except StreamClosedError:
                    pass  # The client has given it up meanwhile.
        elif isinstance(event, PingReceived):
            self.pings += 1
        elif isinstance(event, SettingsAcknowledged):
            self.has_acknowledged_settings = True

    def _take_request(self, request: Request) -> None:
        message = request.body
        if request.field(":method") == "GET":
            message = _message_of(request.field(":path") or "")
        self.answer(self.listener.upstream.receive(self.listener, Query(message), self.client, self, request))

    # What is sent

    def send(self, received: Received, one: "Reply | HTTPReply | ResetStream") -> None:
        if not self.is_open or self.is_swallowing or received.request.stream not in self.open_streams:
            return  # The client has given it up.
        stream = received.request.stream
        try:
            if isinstance(one, ResetStream):
                self.reset_stream(stream, one.code)
            else:
                self._respond(stream, HTTPReply(one.message) if isinstance(one, Reply) else one)
        except ProtocolError:
            pass  # The client has given it up, or went away.

    def _respond(self, stream: int, one: HTTPReply) -> None:
        fields = [(":status", str(one.status))]
        if one.content_type is not None:
            fields.append(("content-type", one.content_type))
        if one.has_length:
            fields.append(("content-length", str(len(one.body))))
        self._session.send_headers(stream, [*fields, *one.fields])
        self._bodies[stream] = (one.body, one)
        self._send_body(stream)
        self.write_frames(self._session.data_to_send())

    def _send_body(self, stream: int) -> None:
        body, reply = self._bodies.pop(stream)
        while body:
            room = min(self._session.local_flow_control_window(stream), self._session.max_outbound_frame_size)
            if room <= 0:
                self._bodies[stream] = (body, reply)
                return
            room = min(room, reply.piece or room)
            self._session.send_data(stream, body[:room])
            body = body[room:]
        if reply.trailers:
            self._session.send_headers(stream, list(reply.trailers), end_stream=True)
        elif reply.ends:
            self._session.end_stream(stream)
        if reply.trailers or reply.ends:
            self.open_streams.discard(stream)

    def reset_stream(self, stream: int, code: int) -> None:
        """Sends RST_STREAM."""
        self._session.reset_stream(stream, code)
        self.open_streams.discard(stream)
        self.write_frames(self._session.data_to_send())

    def go_away(self, last_stream: Optional[int] = None, code: int = NO_ERROR) -> None:
        """Sends GOAWAY; streams up to `last_stream` (the last that came when None) can still be answered."""
        last = self.last_stream if last_stream is None else last_stream
        self._act(lambda: self.write_frames(GoAwayFrame(0, last, code).serialize()))

    def ping(self) -> None:
        """Sends PING."""
        self._act(lambda: self.write_frames(PingFrame(0, b"sluice!!").serialize()))


def _message_of(path: str) -> bytes:
    """The message in the variable `dns` of a path (RFC 8484 §4.1.1): base64url without padding."""
    for pair in path.partition("?")[2].split("&"):
        name, _, value = pair.partition("=")
        if name == "dns":
            try:
                return base64.b64decode(value + "=" * (-len(value) % 4), b"-_", validate=True)
            except ValueError:
                return b""
    return b""


class HTTPListener(SecureListener):
    """Where DNS over HTTPS is spoken."""

    connection_class = HTTPConnection

    def __init__(self, upstream: "Upstream", transport: str, address: str, port: int, identity: "Identity",
                 protocols: Sequence[str], newest: Optional[str] = None, most_streams: Optional[int] = 100):
        super().__init__(upstream, transport, address, port, identity, protocols, newest)
        #: MAX_CONCURRENT_STREAMS of the next connections. Streams above it are refused, also before a client knows it.
        self.most_streams = most_streams
        self.settings_after = 0.0  # seconds that the SETTINGS of the next connections are kept back
