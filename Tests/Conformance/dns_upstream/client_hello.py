"""What a client offers in its ClientHello (RFC 8446 §4.1.2), read from the bytes that came."""

import struct
from dataclasses import dataclass
from typing import Iterable, Optional

_SERVER_NAME, _ALPN, _SESSION_TICKET, _PRE_SHARED_KEY, _EARLY_DATA, _VERSIONS = 0, 16, 35, 41, 42, 43


@dataclass(frozen=True)
class ClientHello:
    """One ClientHello."""

    server_name: Optional[str]  # None without the extension
    protocols: "tuple[str, ...]"  # ALPN, in order
    versions: "tuple[int, ...]"  # 0x0303 is TLS 1.2, 0x0304 TLS 1.3
    offers_session: bool  # a pre-shared key, or a session ticket that is not empty
    has_early_data: bool

    @staticmethod
    def parse(stream: bytes) -> "Optional[ClientHello]":
        """Reads the start of a TLS stream; None when it does not hold a whole ClientHello."""
        handshake = b""
        while len(stream) >= 5 and stream[0] == 22:
            length = int.from_bytes(stream[3:5], "big")
            handshake, stream = handshake + stream[5:5 + length], stream[5 + length:]
        if len(handshake) < 4 or handshake[0] != 1 or len(handshake) < 4 + int.from_bytes(handshake[1:4], "big"):
            return None
        return _read(handshake[4:4 + int.from_bytes(handshake[1:4], "big")])


def _read(body: bytes) -> ClientHello:
    version = int.from_bytes(body[:2], "big")
    at = 34
    at += 1 + body[at]
    at += 2 + int.from_bytes(body[at:at + 2], "big")
    at += 1 + body[at]
    extensions = dict(_extensions(body[at + 2:]))
    name = extensions.get(_SERVER_NAME)
    protocols = []
    alpn = extensions.get(_ALPN, b"")[2:]
    while alpn:
        protocols.append(alpn[1:1 + alpn[0]].decode())
        alpn = alpn[1 + alpn[0]:]
    listed = extensions.get(_VERSIONS, b"")[1:]
    versions = struct.unpack(f">{len(listed) // 2}H", listed) if listed else (version,)
    return ClientHello(
        name[5:].decode() if name is not None else None, tuple(protocols), versions,
        _PRE_SHARED_KEY in extensions or bool(extensions.get(_SESSION_TICKET)), _EARLY_DATA in extensions)


def _extensions(data: bytes) -> "Iterable[tuple[int, bytes]]":
    while len(data) >= 4:
        kind, length = struct.unpack_from(">HH", data)
        yield kind, data[4:4 + length]
        data = data[4 + length:]
