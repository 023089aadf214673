"""What a script is told, and what it can have sent."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Callable, Optional, Sequence, Union

from dns_upstream.messages import Query

if TYPE_CHECKING:
    from dns_upstream.connection import Connection


@dataclass(frozen=True)
class Request:
    """The HTTP request that a query came by."""

    stream: int
    fields: "tuple[tuple[str, str], ...]"  # with :method, :path and so on, in their order
    body: bytes

    def field(self, name: str) -> Optional[str]:
        """The value of the first header field of that name (lower case); None when there is none."""
        return next((value for key, value in self.fields if key == name), None)


@dataclass(frozen=True)
class Received:
    """A query as it reached the upstream."""

    number: int  # 1 for the upstream's first query
    transport: str  # "udp", "tcp", "tls" or "https"
    query: Query
    client: "tuple[str, int]"  # address and port
    server: "tuple[str, int]"  # where it came to
    time: float  # seconds of the monotonic clock
    connection: "Optional[Connection]" = None  # None by UDP
    request: "Optional[Request]" = None  # by HTTPS

    @property
    def name(self) -> str:
        """The name that is asked for, in lower case."""
        return self.query.name


@dataclass(frozen=True)
class Reply:
    """A DNS message to be sent."""

    message: bytes
    after: float = 0.0  # seconds
    source: "Optional[tuple[str, int]]" = None  # UDP: another address and port to send from; port 0 for any


@dataclass(frozen=True)
class HTTPReply:
    """An HTTP response to be sent."""

    body: bytes = b""
    status: int = 200
    content_type: Optional[str] = "application/dns-message"
    fields: "Sequence[tuple[str, str]]" = ()
    after: float = 0.0  # seconds
    has_length: bool = True  # whether content-length is sent
    ends: bool = True  # false: the stream stays open after the body
    piece: int = 0  # bytes in each DATA frame; 0 for as many as fit
    trailers: "Sequence[tuple[str, str]]" = ()  # header fields behind the body


@dataclass(frozen=True)
class ResetStream:
    """An RST_STREAM to be sent (RFC 9113 §6.4); `code` is one of §7."""

    code: int
    after: float = 0.0  # seconds


#: Bytes are sent as a message at once; None is silence; several things are sent in their order.
Response = Union[None, bytes, Reply, HTTPReply, ResetStream, Sequence]
Script = Callable[[Received], Response]


def in_order(response: Response) -> "list[Union[Reply, HTTPReply, ResetStream]]":
    """What a script returned, as a list."""
    if response is None:
        return []
    if isinstance(response, (bytes, bytearray)):
        return [Reply(bytes(response))]
    if isinstance(response, (Reply, HTTPReply, ResetStream)):
        return [response]
    return [one for part in response for one in in_order(part)]
