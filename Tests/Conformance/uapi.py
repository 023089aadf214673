"""A client of the cross-platform WireGuard configuration protocol that talks to the socket directly."""

import socket
from dataclasses import dataclass, field


class MalformedReply(Exception):
    """The reply does not have the form `key=value` lines, `errno=N`, empty line."""


@dataclass
class Reply:
    """One reply: its lines in order, as (key, value), without the last one, and the number of that: errno."""

    errno: int
    lines: "list[tuple[str, str]]" = field(default_factory=list)

    @property
    def device(self) -> "dict[str, str]":
        """The lines before the first public_key."""
        lines = {}
        for key, value in self.lines:
            if key == "public_key":
                break
            lines[key] = value
        return lines

    @property
    def peers(self) -> "list[list[tuple[str, str]]]":
        """The lines of each peer, in order; each list starts with its public_key."""
        peers: "list[list[tuple[str, str]]]" = []
        for key, value in self.lines:
            if key == "public_key":
                peers.append([])
            if peers:
                peers[-1].append((key, value))
        return peers


def connect(path: str, seconds: float = 10.0) -> socket.socket:
    """A stream connection to the UAPI socket at `path`; reads and writes fail after `seconds`."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.settimeout(seconds)
        connection.connect(path)
    except BaseException:
        connection.close()
        raise
    return connection


def read_reply(connection: socket.socket) -> Reply:
    """Reads one reply from an open connection, byte-exact: what follows it stays unread (one reply at a time)."""
    data = bytearray()
    while not data.endswith(b"\n\n"):
        # Peek first: with pipelined operations the next reply may be in the same segment.
        peeked = connection.recv(65536, socket.MSG_PEEK)
        if not peeked:
            raise MalformedReply(f"the connection ended inside a reply: {bytes(data[-80:])!r}")
        joined = bytes(data[-1:]) + peeked
        end = joined.find(b"\n\n")
        taken = len(peeked) if end < 0 else end + 2 - len(data[-1:])
        data += connection.recv(taken)
    return parse_reply(bytes(data))


def parse_reply(data: bytes) -> Reply:
    """Parses one whole reply, ending in an empty line."""
    try:
        text = data.decode("ascii")
    except UnicodeDecodeError as error:
        raise MalformedReply(str(error)) from error
    lines = []
    for line in text.split("\n")[:-2]:
        key, separator, value = line.partition("=")
        if not separator:
            raise MalformedReply(f"line without '=': {line!r}")
        lines.append((key, value))
    if not lines or lines[-1][0] != "errno":
        raise MalformedReply("the reply does not end with errno")
    return Reply(int(lines[-1][1]), lines[:-1])


def operate(path: str, text: str) -> Reply:
    """Opens a connection, sends one operation (the text includes its empty line), returns the reply."""
    with connect(path) as connection:
        connection.sendall(text.encode("ascii"))
        return read_reply(connection)


def get(path: str) -> Reply:
    """One `get=1` operation."""
    return operate(path, "get=1\n\n")


def set(path: str, *lines: str) -> Reply:
    """One `set=1` operation with the given `key=value` lines."""
    return operate(path, "set=1\n" + "".join(f"{line}\n" for line in lines) + "\n")
