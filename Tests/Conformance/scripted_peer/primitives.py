"""The primitives of the WireGuard paper, section 5.4, with HChaCha20 written out."""

import base64
import hashlib
import hmac
import os
import struct

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

KEY_SIZE = 32
ZERO_KEY = bytes(KEY_SIZE)


class AuthenticationFailure(Exception):
    """A tag did not match."""


def hash_(*parts):
    """HASH: BLAKE2s with a 32-byte output."""
    return hashlib.blake2s(b"".join(parts)).digest()


def mac(key, *parts):
    """MAC: keyed BLAKE2s with a 16-byte output."""
    return hashlib.blake2s(b"".join(parts), key=key, digest_size=16).digest()


def hmac_(key, *parts):
    """HMAC over BLAKE2s-256 (RFC 2104); not the keyed mode."""
    return hmac.new(key, b"".join(parts), hashlib.blake2s).digest()


def kdf(outputs, key, material):
    """KDFn: HKDF (RFC 5869) with `outputs` 32-byte results."""
    secret = hmac_(key, material)
    results, previous = [], b""
    for index in range(1, outputs + 1):
        previous = hmac_(secret, previous, bytes([index]))
        results.append(previous)
    return results[0] if outputs == 1 else tuple(results)


def _nonce(counter):
    return bytes(4) + struct.pack("<Q", counter)


def seal(key, counter, plaintext, associated):
    """AEAD: ChaCha20-Poly1305 (RFC 8439), nonce of four zero bytes and the little-endian counter."""
    return ChaCha20Poly1305(key).encrypt(_nonce(counter), plaintext, associated)


def open_(key, counter, ciphertext, associated):
    """The inverse of `seal`; raises AuthenticationFailure."""
    try:
        return ChaCha20Poly1305(key).decrypt(_nonce(counter), ciphertext, associated)
    except InvalidTag:
        raise AuthenticationFailure from None


def _quarter_round(state, a, b, c, d):
    mask = 0xFFFFFFFF
    for x, y, z, turn in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
        state[x] = (state[x] + state[y]) & mask
        mixed = state[z] ^ state[x]
        state[z] = ((mixed << turn) | (mixed >> (32 - turn))) & mask


def hchacha20(key, nonce16):
    """HChaCha20 (draft-irtf-cfrg-xchacha-03, section 2.2): a 32-byte subkey from 16 bytes of nonce."""
    state = list(struct.unpack("<16I", b"expand 32-byte k" + key + nonce16))
    for _ in range(10):
        for column in range(4):
            _quarter_round(state, column, 4 + column, 8 + column, 12 + column)
        for column in range(4):
            _quarter_round(state, column, 4 + (column + 1) % 4, 8 + (column + 2) % 4, 12 + (column + 3) % 4)
    return struct.pack("<8I", *state[:4], *state[12:])


def xseal(key, nonce24, plaintext, associated):
    """XAEAD: XChaCha20-Poly1305 with a 24-byte nonce."""
    subkey = hchacha20(key, nonce24[:16])
    return ChaCha20Poly1305(subkey).encrypt(bytes(4) + nonce24[16:], plaintext, associated)


def xopen(key, nonce24, ciphertext, associated):
    """The inverse of `xseal`; raises AuthenticationFailure."""
    try:
        subkey = hchacha20(key, nonce24[:16])
        return ChaCha20Poly1305(subkey).decrypt(bytes(4) + nonce24[16:], ciphertext, associated)
    except InvalidTag:
        raise AuthenticationFailure from None


def clamp(private):
    """The bits that X25519 forces (RFC 7748, section 5)."""
    return bytes([private[0] & 248]) + private[1:31] + bytes([(private[31] & 127) | 64])


def diffie_hellman(private, public):
    """X25519. An all-zero result is returned, not refused: a scripted peer must be able to carry on with it."""
    try:
        return X25519PrivateKey.from_private_bytes(private).exchange(X25519PublicKey.from_public_bytes(public))
    except ValueError:
        return ZERO_KEY


class KeyPair:
    """An X25519 key pair."""

    def __init__(self, private=None):
        self.private = clamp(private or os.urandom(KEY_SIZE))
        key = X25519PrivateKey.from_private_bytes(self.private)
        self.public = key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)

    @classmethod
    def claiming(cls, public):
        """A pair that claims `public` without knowing its private key."""
        pair = cls()
        pair.public = public
        return pair

    @property
    def private_text(self):
        return base64.b64encode(self.private).decode()

    @property
    def public_text(self):
        return base64.b64encode(self.public).decode()


#: The u-coordinates whose multiples by a clamped scalar are all zero (orders 1, 2, 4, 8, also unreduced, and the
#: points of the twist), as little-endian bytes.
_PRIME = 2**255 - 19
_ORDER_EIGHT = (
    325606250916557431795983626356110631294008115727848805560023387167927233504,
    39382357235489614581723060781553021112529911719440698176882885853963445705823,
)
LOW_ORDER_POINTS = tuple(
    value.to_bytes(32, "little")
    for value in (0, 1, *_ORDER_EIGHT, _PRIME - 1, _PRIME, _PRIME + 1)
)
