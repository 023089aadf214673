"""The four WireGuard messages as mutable records: every field may be set to anything before `pack`."""

import enum
import os
import struct
from dataclasses import dataclass, field

from .primitives import hash_, mac

INITIATION_SIZE = 148
RESPONSE_SIZE = 92
COOKIE_REPLY_SIZE = 64
DATA_OVERHEAD = 32

LABEL_MAC1 = b"mac1----"
ZERO_MAC = bytes(16)


class MessageType(enum.IntEnum):
    INITIATION = 1
    RESPONSE = 2
    COOKIE_REPLY = 3
    DATA = 4


def message_type(datagram):
    """The type of a well-formed message, or None."""
    if len(datagram) < 4 or datagram[1:4] != bytes(3):
        return None
    try:
        kind = MessageType(datagram[0])
    except ValueError:
        return None
    sizes = {1: INITIATION_SIZE, 2: RESPONSE_SIZE, 3: COOKIE_REPLY_SIZE}
    if kind == MessageType.DATA:
        return kind if len(datagram) >= DATA_OVERHEAD else None
    return kind if len(datagram) == sizes[kind] else None


def random_index():
    return int.from_bytes(os.urandom(4), "little")


def mac1_key(receiver_public):
    return hash_(LABEL_MAC1, receiver_public)


class _Authenticated:
    """What initiation and response share: the two MACs at the end."""

    def authenticate(self, receiver_public, cookie=None):
        """Sets mac1, and mac2 when a cookie is given."""
        self.mac1 = mac(mac1_key(receiver_public), self.before_mac1())
        if cookie is not None:
            self.mac2 = mac(cookie, self.before_mac1(), self.mac1)
        return self

    def mac1_is_valid(self, receiver_public):
        return self.mac1 == mac(mac1_key(receiver_public), self.before_mac1())

    def mac2_is_valid(self, cookie):
        return self.mac2 == mac(cookie, self.before_mac1(), self.mac1)

    def pack(self):
        return self.before_mac1() + self.mac1 + self.mac2


@dataclass
class Initiation(_Authenticated):
    sender: int = field(default_factory=random_index)
    ephemeral: bytes = bytes(32)
    encrypted_static: bytes = bytes(48)
    encrypted_timestamp: bytes = bytes(28)
    mac1: bytes = ZERO_MAC
    mac2: bytes = ZERO_MAC
    type_word: int = 1

    def before_mac1(self):
        return (struct.pack("<II", self.type_word, self.sender) + self.ephemeral + self.encrypted_static
                + self.encrypted_timestamp)

    @classmethod
    def unpack(cls, datagram):
        if message_type(datagram) != MessageType.INITIATION:
            raise ValueError("not an initiation")
        word, sender = struct.unpack_from("<II", datagram)
        return cls(sender, datagram[8:40], datagram[40:88], datagram[88:116], datagram[116:132], datagram[132:148],
                   word)

    @classmethod
    def garbage(cls, receiver_public, cookie=None):
        """Random bytes that only a check of the MACs lets through."""
        return cls(random_index(), os.urandom(32), os.urandom(48), os.urandom(28)).authenticate(receiver_public, cookie)


@dataclass
class Response(_Authenticated):
    sender: int
    receiver: int
    ephemeral: bytes
    encrypted_nothing: bytes
    mac1: bytes = ZERO_MAC
    mac2: bytes = ZERO_MAC
    type_word: int = 2

    def before_mac1(self):
        return (struct.pack("<III", self.type_word, self.sender, self.receiver) + self.ephemeral
                + self.encrypted_nothing)

    @classmethod
    def unpack(cls, datagram):
        if message_type(datagram) != MessageType.RESPONSE:
            raise ValueError("not a response")
        word, sender, receiver = struct.unpack_from("<III", datagram)
        return cls(sender, receiver, datagram[12:44], datagram[44:60], datagram[60:76], datagram[76:92], word)


@dataclass
class CookieReply:
    receiver: int
    nonce: bytes
    encrypted_cookie: bytes
    type_word: int = 3

    def pack(self):
        return struct.pack("<II", self.type_word, self.receiver) + self.nonce + self.encrypted_cookie

    @classmethod
    def unpack(cls, datagram):
        if message_type(datagram) != MessageType.COOKIE_REPLY:
            raise ValueError("not a cookie reply")
        word, receiver = struct.unpack_from("<II", datagram)
        return cls(receiver, datagram[8:32], datagram[32:64], word)


@dataclass
class Data:
    receiver: int
    counter: int
    ciphertext: bytes
    type_word: int = 4

    def pack(self):
        return struct.pack("<IIQ", self.type_word, self.receiver, self.counter) + self.ciphertext

    @property
    def is_keepalive(self):
        return len(self.ciphertext) == 16

    @classmethod
    def unpack(cls, datagram):
        if message_type(datagram) != MessageType.DATA:
            raise ValueError("not data")
        word, receiver, counter = struct.unpack_from("<IIQ", datagram)
        return cls(receiver, counter, datagram[16:], word)
