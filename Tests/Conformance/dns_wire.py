"""DNS messages as bytes: queries written octet by octet, so that they can be wrong, and answers read strictly."""

import ipaddress
import secrets
import struct
from dataclasses import dataclass
from typing import Iterable, Optional, Union

import dns.exception
import dns.message

from waiting import CheckFailure

A, NS, CNAME, SOA, PTR, MX, TXT, AAAA, SRV, DS, RRSIG, NSEC, DNSKEY = 1, 2, 5, 6, 12, 15, 16, 28, 33, 43, 46, 47, 48
OPT, NSEC3, SVCB, HTTPS, TSIG, IXFR, AXFR, ANY = 41, 50, 64, 65, 250, 251, 252, 255
IN, CH = 1, 3
NOERROR, FORMERR, SERVFAIL, NXDOMAIN, NOTIMP, REFUSED, NOTAUTH, BADVERS = 0, 1, 2, 3, 4, 5, 9, 16
RCODES = {"NOERROR": 0, "FORMERR": 1, "SERVFAIL": 2, "NXDOMAIN": 3, "NOTIMP": 4, "REFUSED": 5, "BADVERS": 16}
QR, AA, TC, RD, RA, Z, AD, CD = 0x8000, 0x0400, 0x0200, 0x0100, 0x0080, 0x0040, 0x0020, 0x0010
NSID, CLIENT_SUBNET, COOKIE, KEEPALIVE, PADDING, EXTENDED_ERROR = 3, 8, 10, 11, 12, 15
#: Extended errors (RFC 8914 §4).
BLOCKED, FILTERED, NO_REACHABLE_AUTHORITY, NETWORK_ERROR = 15, 17, 22, 23


# Writing

def name(text: "Union[str, bytes, Iterable[bytes]]") -> bytes:
    """A name on the wire: of text such as `www.example`, or of labels of any octets. Bytes stay as they are."""
    if isinstance(text, bytes):
        return text
    labels = [label.encode() for label in text.rstrip(".").split(".") if label] if isinstance(text, str) else text
    return b"".join(bytes([len(label)]) + label for label in labels) + b"\0"


def question(of, kind: int = A, record_class: int = IN) -> bytes:
    """One question."""
    return name(of) + struct.pack(">HH", kind, record_class)


def header(identifier: int, flags: int, questions: int = 1, answers: int = 0, authority: int = 0,
           additional: int = 0) -> bytes:
    """The twelve octets at the start."""
    return struct.pack(">HHHHHH", identifier, flags, questions, answers, authority, additional)


def option(code: int, data: bytes = b"") -> bytes:
    """One EDNS option."""
    return struct.pack(">HH", code, len(data)) + data


def opt(size: int = 1232, *, extended: int = 0, version: int = 0, dnssec: bool = False, flags: int = 0,
        options: bytes = b"", owner: bytes = b"\0") -> bytes:
    """An OPT record; `options` are those that `option` writes, one behind the other."""
    flags |= 0x8000 if dnssec else 0
    return owner + struct.pack(">HHBBHH", OPT, size, extended, version, flags, len(options)) + options


def query(of="example.com", kind: int = A, *, identifier: "Optional[int]" = None, flags: int = RD,
          edns: "Optional[bytes]" = None, record_class: int = IN) -> bytes:
    """A query with an ID drawn at random unless it is given; `edns` is a whole OPT record."""
    identifier = secrets.randbelow(65536) if identifier is None else identifier
    message = header(identifier, flags, additional=1 if edns is not None else 0) + question(of, kind, record_class)
    return message + (edns or b"")


def service(target, priority: int = 1, parameters: "Iterable[tuple[int, bytes]]" = ()) -> bytes:
    """The data of an HTTPS or SVCB record, its parameters in the order that is given."""
    return struct.pack(">H", priority) + name(target) + b"".join(
        struct.pack(">HH", key, len(value)) + value for key, value in parameters)


# Reading

class MalformedMessage(CheckFailure):
    """A message that breaks the protocol's form."""


@dataclass(frozen=True)
class Question:
    """What is asked; the name's octets as they stand there."""

    name: bytes
    kind: int
    record_class: int


@dataclass(frozen=True)
class Record:
    """One record. The owner is whole, without compression."""

    owner: bytes
    kind: int
    record_class: int
    ttl: int
    data: bytes  # as it stands there
    plain: bytes  # with names of the types of RFC 1035 written out

    @property
    def address(self) -> str:
        """The address of an A or AAAA record."""
        return str(ipaddress.ip_address(self.data))

    def __str__(self) -> str:
        return f"{text(self.owner)} {self.ttl} TYPE{self.kind} {self.plain.hex()}"


@dataclass(frozen=True)
class EDNS:
    """What an OPT record says."""

    size: int
    version: int
    flags: int
    options: "tuple[tuple[int, bytes], ...]"

    @property
    def errors(self) -> "list[int]":
        """The codes of the extended errors (RFC 8914)."""
        return [int.from_bytes(data[:2], "big") for code, data in self.options if code == EXTENDED_ERROR]


class Message:
    """A message that was read to its last octet; `MalformedMessage` says what is wrong with others."""

    def __init__(self, data: bytes):
        self.bytes = data
        if len(data) < 12:
            raise MalformedMessage(f"a message of {len(data)} octets: {data.hex()}")
        self.identifier, self.flags, *counts = struct.unpack_from(">HHHHHH", data)
        try:
            at, self.questions = 12, []
            for _ in range(counts[0]):
                owner, at = self._name(at)
                self.questions.append(Question(owner, *struct.unpack_from(">HH", data, at)))
                at += 4
            self.question_end = at
            self.sections: "list[list[Record]]" = []
            for count in counts[1:]:
                section = []
                for _ in range(count):
                    one, at = self._record(at)
                    section.append(one)
                self.sections.append(section)
        except (IndexError, struct.error):
            raise MalformedMessage(f"a message that is cut short: {data.hex()}") from None
        if at != len(data):
            raise MalformedMessage(f"{len(data) - at} octets behind a message: {data.hex()}")
        self.edns_records = [one for section in self.sections for one in section if one.kind == OPT]

    @classmethod
    def checked(cls, data: bytes) -> "Message":
        """The message, after dnspython could read it as well (which knows not all opcodes)."""
        message = cls(data)
        try:
            if message.opcode == 0:
                dns.message.from_wire(data)
        except dns.exception.DNSException as error:
            raise MalformedMessage(f"dnspython cannot read a message ({error!r}): {data.hex()}") from None
        return message

    @property
    def question(self) -> Question:
        """The only question."""
        if len(self.questions) != 1:
            raise CheckFailure(f"{len(self.questions)} questions in {self}")
        return self.questions[0]

    @property
    def answers(self) -> "list[Record]":
        """The records of the answer section."""
        return self.sections[0]

    @property
    def authority(self) -> "list[Record]":
        """The records of the authority section."""
        return self.sections[1]

    @property
    def additional(self) -> "list[Record]":
        """The records of the additional section but for OPT."""
        return [one for one in self.sections[2] if one.kind != OPT]

    @property
    def addresses(self) -> "list[str]":
        """The addresses of the answer section."""
        return [one.address for one in self.answers if one.kind in (A, AAAA)]

    @property
    def opcode(self) -> int:
        """The operation."""
        return self.flags >> 11 & 15

    @property
    def code(self) -> int:
        """The response code with what EDNS adds to it."""
        extended = self.edns_records[0].ttl >> 24 if self.edns_records else 0
        return extended << 4 | self.flags & 15

    @property
    def edns(self) -> "Optional[EDNS]":
        """What its OPT record says; None without one. More than one is a failure."""
        if not self.edns_records:
            return None
        if len(self.edns_records) > 1 or self.sections[2].count(self.edns_records[0]) != 1:
            raise MalformedMessage(f"OPT records where they do not belong in {self}")
        one, at, options = self.edns_records[0], 0, []
        while at < len(one.data):
            code, length = struct.unpack_from(">HH", one.data, at)
            options.append((code, one.data[at + 4:at + 4 + length]))
            at += 4 + length
        if at != len(one.data) or one.owner != b"\0":
            raise MalformedMessage(f"an OPT record that is not in order in {self}")
        return EDNS(one.record_class, one.ttl >> 16 & 255, one.ttl & 0xFFFF, tuple(options))

    def __str__(self) -> str:
        names = [(QR, "QR"), (AA, "AA"), (TC, "TC"), (RD, "RD"), (RA, "RA"), (Z, "Z"), (AD, "AD"), (CD, "CD")]
        flags = " ".join(word for bit, word in names if self.flags & bit)
        asked = ", ".join(f"{text(one.name)} TYPE{one.kind}" for one in self.questions)
        parts = [f"ID {self.identifier:04x}, opcode {self.opcode}, code {self.code}, {flags}",
                 f"asked {asked or 'nothing'}"]
        for title, section in zip(("answer", "authority", "additional"), self.sections):
            if section:
                parts.append(f"{title}: " + ", ".join(map(str, section[:6])) + (" …" if len(section) > 6 else ""))
        return "; ".join(parts)

    def _name(self, at: int) -> "tuple[bytes, int]":
        out, end, limit = b"", None, at
        while True:
            length = self.bytes[at]
            if length >= 0xC0:
                target = (length & 0x3F) << 8 | self.bytes[at + 1]
                end = at + 2 if end is None else end
                if target >= limit:
                    raise MalformedMessage(f"a name that points forward or to itself: {self.bytes.hex()}")
                at = limit = target
                continue
            if length > 63:
                raise MalformedMessage(f"a label of type {length >> 6}: {self.bytes.hex()}")
            if at + 1 + length > len(self.bytes):
                raise IndexError
            out += self.bytes[at:at + 1 + length]
            at += 1 + length
            if length == 0:
                break
        if len(out) > 255:
            raise MalformedMessage(f"a name of {len(out)} octets: {self.bytes.hex()}")
        return out, at if end is None else end

    def _record(self, at: int) -> "tuple[Record, int]":
        owner, at = self._name(at)
        kind, record_class, ttl, length = struct.unpack_from(">HHIH", self.bytes, at)
        at += 10
        data = self.bytes[at:at + length]
        if len(data) != length:
            raise IndexError
        plain = data
        if kind in (NS, CNAME, PTR, MX, SOA):
            start = at + 2 if kind == MX else at
            plain = data[:start - at]
            for _ in range(2 if kind == SOA else 1):
                part, start = self._name(start)
                plain += part
            plain += self.bytes[start:at + length]
        return Record(owner, kind, record_class, ttl, data, plain), at + length


def text(wire: bytes) -> str:
    """A name for people; octets that are no printable ASCII as \\DDD."""
    labels, at = [], 0
    while at < len(wire) and wire[at]:
        label = wire[at + 1:at + 1 + wire[at]]
        labels.append("".join(chr(one) if 0x21 <= one <= 0x7E and one != 0x2E else f"\\{one:03d}" for one in label))
        at += 1 + wire[at]
    return ".".join(labels) or "."
