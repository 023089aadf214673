"""Keys in hexadecimal, as the configuration protocol writes them."""

import base64
import random

#: What stands for "no key".
ZERO = "00" * 32


def keys(count: int, seed: int = 1) -> "list[str]":
    """So many different keys, always the same for a seed; their order is not their sorted order."""
    source = random.Random(seed)
    return [source.randbytes(32).hex() for _ in range(count)]


def clamped(key: str) -> str:
    """The key with the bits set and cleared that RFC 7748, section 5 asks of an X25519 scalar."""
    data = bytearray.fromhex(key)
    data[0] &= 248
    data[31] = data[31] & 127 | 64
    return data.hex()


def from_base64(text: str) -> str:
    """A key as `wg` writes it, in hexadecimal."""
    return base64.b64decode(text).hex()


def to_base64(key: str) -> str:
    """A hexadecimal key as `wg` writes it."""
    return base64.b64encode(bytes.fromhex(key)).decode()
