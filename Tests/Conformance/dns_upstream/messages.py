"""DNS messages as the scripted upstream reads and writes them: byte by byte, so that they can be wrong in every way."""

import functools
import ipaddress
import struct
from dataclasses import dataclass
from typing import Iterable, Optional

A, NS, CNAME, SOA, PTR, MX, TXT, AAAA, SVCB, HTTPS, OPT, ANY = 1, 2, 5, 6, 12, 15, 16, 28, 64, 65, 41, 255
IN, CH = 1, 3
NOERROR, FORMERR, SERVFAIL, NXDOMAIN, NOTIMP, REFUSED = range(6)
QR, AA, TC, RD, RA, AD, CD = 0x8000, 0x0400, 0x0200, 0x0100, 0x0080, 0x0020, 0x0010
DO = 0x8000


def name_bytes(name: "str | bytes") -> bytes:
    """A name in wire form: text with dots between its labels, or what is in wire form already."""
    if isinstance(name, bytes):
        return name
    labels = [label.encode() for label in name.rstrip(".").split(".") if label]
    return b"".join(bytes([len(label)]) + label for label in labels) + b"\0"


@dataclass(frozen=True)
class EDNS:
    """What the OPT record of a query says (RFC 6891 §6.1.3)."""

    payload_size: int
    version: int
    flags: int  # DO is the highest bit
    options: "tuple[tuple[int, bytes], ...]"  # code and data of each option, in their order

    def option(self, code: int) -> Optional[bytes]:
        """The data of the first option with that code; None when there is none."""
        return next((data for number, data in self.options if number == code), None)


@dataclass(frozen=True)
class Query:
    """A query as it came. Parts that cannot be read are None or empty; `message` always has all bytes."""

    message: bytes

    @property
    def id(self) -> int:
        """The ID."""
        return int.from_bytes(self.message[:2], "big")

    @property
    def flags(self) -> int:
        """The flags and codes between ID and counts."""
        return int.from_bytes(self.message[2:4], "big")

    @property
    def counts(self) -> "tuple[int, ...]":
        """How many questions, answers, authorities and additional records there are."""
        return struct.unpack_from(">HHHH", self.message, 4) if len(self.message) >= 12 else ()

    @functools.cached_property
    def question_end(self) -> int:
        """Where the first question ends; 0 when it cannot be read."""
        end = _name_end(self.message, 12)
        return end + 4 if end and end + 4 <= len(self.message) else 0

    @property
    def question(self) -> bytes:
        """The first question, letters as they came."""
        return self.message[12:self.question_end] if self.question_end else b""

    @property
    def wire_name(self) -> bytes:
        """The name in wire form, letters as they came."""
        return self.question[:-4]

    @property
    def name(self) -> str:
        """The name in lower case without the dot of the root; bytes above 0x7E are written \\xNN."""
        labels, at, wire = [], 0, self.wire_name
        while at < len(wire) and wire[at]:
            labels.append(wire[at + 1:at + 1 + wire[at]].decode("ascii", "backslashreplace").lower())
            at += 1 + wire[at]
        return ".".join(labels)

    @property
    def type(self) -> int:
        """The type that is asked for; 0 when there is no question."""
        return int.from_bytes(self.question[-4:-2], "big")

    @property
    def klass(self) -> int:
        """The class that is asked for; 0 when there is no question."""
        return int.from_bytes(self.question[-2:], "big")

    @functools.cached_property
    def edns(self) -> Optional[EDNS]:
        """The OPT record, when the query has one that can be read."""
        if not self.question_end or len(self.counts) != 4:
            return None
        at = self.question_end
        for _ in range(sum(self.counts[1:])):
            start = _name_end(self.message, at)
            if not start or start + 10 > len(self.message):
                return None
            kind, payload_size, upper, length = struct.unpack_from(">HHIH", self.message, start)
            at = start + 10 + length
            if kind == OPT:
                data = self.message[start + 10:at]
                return EDNS(payload_size, upper >> 16 & 0xFF, upper & 0xFFFF, tuple(_options(data)))
        return None


def _name_end(message: bytes, at: int) -> int:
    """Where the name that starts at `at` ends; 0 when it does not."""
    while at < len(message):
        length = message[at]
        if length == 0:
            return at + 1
        if length >= 0xC0:
            return at + 2 if at + 2 <= len(message) else 0
        at += 1 + length
    return 0


def _options(data: bytes) -> "Iterable[tuple[int, bytes]]":
    while len(data) >= 4:
        code, length = struct.unpack_from(">HH", data)
        yield code, data[4:4 + length]
        data = data[4 + length:]


def record(kind: int, data: bytes, ttl: int = 300, owner: "str | bytes | None" = None, klass: int = IN) -> bytes:
    """A resource record in wire form; without an owner it is of the question's name, by a pointer. TTL in seconds."""
    name = b"\xc0\x0c" if owner is None else name_bytes(owner)
    return name + struct.pack(">HHIH", kind, klass, ttl, len(data)) + data


def address(text: str, ttl: int = 300, owner: "str | bytes | None" = None) -> bytes:
    """An A or AAAA record."""
    one = ipaddress.ip_address(text)
    return record(A if one.version == 4 else AAAA, one.packed, ttl, owner)


def text(value: "str | bytes", ttl: int = 300, owner: "str | bytes | None" = None) -> bytes:
    """A TXT record, cut into strings of at most 255 bytes."""
    value = value.encode() if isinstance(value, str) else value
    pieces = [value[at:at + 255] for at in range(0, len(value), 255)] or [b""]
    return record(TXT, b"".join(bytes([len(piece)]) + piece for piece in pieces), ttl, owner)


def alias(target: str, ttl: int = 300, owner: "str | bytes | None" = None) -> bytes:
    """A CNAME record."""
    return record(CNAME, name_bytes(target), ttl, owner)


def start_of_authority(ttl: int = 300, minimum: int = 300, owner: "str | bytes | None" = None) -> bytes:
    """An SOA record with that MINIMUM; the other numbers are of no interest."""
    numbers = struct.pack(">IIIII", 1, 3600, 600, 86400, minimum)
    return record(SOA, name_bytes("ns.invalid") + name_bytes("root.invalid") + numbers, ttl, owner)


def options_record(payload_size: int = 1232, flags: int = 0, options: "Iterable[tuple[int, bytes]]" = (),
                   extended_code: int = 0) -> bytes:
    """An OPT record."""
    data = b"".join(struct.pack(">HH", code, len(value)) + value for code, value in options)
    return b"\0" + struct.pack(">HHBBHH", OPT, payload_size, extended_code, 0, flags, len(data)) + data


def answer(query: Query, records: "Iterable[bytes]" = (), *, authority: "Iterable[bytes]" = (),
           additional: "Iterable[bytes]" = (), code: int = NOERROR, flags: int = RA, edns: bool = True) -> bytes:
    """The answer to a query: its ID and question, these records, and an OPT record when the query has one.

    `flags` are those beside QR, RD and CD, which are set as they must be.
    """
    records, authority, additional = list(records), list(authority), list(additional)
    if edns and query.edns is not None:
        additional.append(options_record(flags=query.edns.flags & DO))
    word = QR | query.flags & (RD | CD | 0x7800) | flags | code
    header = struct.pack(">HHHHHH", query.id, word, 1 if query.question else 0, len(records), len(authority),
                         len(additional))
    return header + query.question + b"".join(records + authority + additional)
