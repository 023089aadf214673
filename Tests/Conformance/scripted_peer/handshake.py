"""Noise_IKpsk2 in both roles, one step at a time.

The steps follow the table of the protocol paper, section 5.4. Both classes keep what a real peer would wipe (chaining
key, hash) so that a check can look for it in the other side's memory.
"""

from .messages import Initiation, Response, random_index
from .primitives import LOW_ORDER_POINTS, ZERO_KEY, KeyPair, diffie_hellman, hash_, kdf, open_, seal
from .timestamps import TAI64N
from .transport import Session

CONSTRUCTION = b"Noise_IKpsk2_25519_ChaChaPoly_BLAKE2s"
IDENTIFIER = b"WireGuard v1 zx2c4 Jason@zx2c4.com"


class _Symmetric:
    """The chaining key and the transcript hash."""

    def __init__(self, responder_public):
        self.chain = hash_(CONSTRUCTION)
        self.hash = hash_(hash_(self.chain, IDENTIFIER), responder_public)

    def mix_hash(self, data):
        self.hash = hash_(self.hash, data)

    def mix_key(self, material):
        self.chain = kdf(1, self.chain, material)

    def mix_key_and_seal_key(self, material):
        self.chain, key = kdf(2, self.chain, material)
        return key

    def mix_preshared(self, preshared):
        self.chain, tau, key = kdf(3, self.chain, preshared)
        self.mix_hash(tau)
        return key

    def seal_and_mix(self, key, plaintext):
        sealed = seal(key, 0, plaintext, self.hash)
        self.mix_hash(sealed)
        return sealed

    def open_and_mix(self, key, sealed):
        plaintext = open_(key, 0, sealed, self.hash)
        self.mix_hash(sealed)
        return plaintext


class InitiatorHandshake(_Symmetric):
    """We initiate: build `message`, then feed the response to `finish`."""

    def __init__(self, own, responder_public, preshared=ZERO_KEY, *, timestamp=None, index=None, ephemeral=None,
                 ephemeral_public=None, cookie=None):
        super().__init__(responder_public)
        self.own, self.responder_public, self.preshared = own, responder_public, preshared
        self.index = random_index() if index is None else index
        self.ephemeral = ephemeral or KeyPair()
        if ephemeral_public is not None:
            self.ephemeral = KeyPair.claiming(ephemeral_public)
        self.timestamp = timestamp or TAI64N.now()
        public = self.ephemeral.public
        self.mix_key(public)
        self.mix_hash(public)
        # With a low-order ephemeral key the other side computes zero; so must we.
        claimed = ephemeral_public is not None
        shared = ZERO_KEY if claimed else diffie_hellman(self.ephemeral.private, responder_public)
        key = self.mix_key_and_seal_key(shared)
        encrypted_static = self.seal_and_mix(key, own.public)
        key = self.mix_key_and_seal_key(self._static_static())
        encrypted_timestamp = self.seal_and_mix(key, self.timestamp.pack())
        self.message = Initiation(self.index, public, encrypted_static, encrypted_timestamp)
        self.message.authenticate(responder_public, cookie)

    def _static_static(self):
        if self.own.public in LOW_ORDER_POINTS:
            return ZERO_KEY
        return diffie_hellman(self.own.private, self.responder_public)

    def finish(self, response):
        """The session; raises AuthenticationFailure when the response is not for this handshake and PSK."""
        saved = self.chain, self.hash
        try:
            self.mix_key(response.ephemeral)
            self.mix_hash(response.ephemeral)
            self.mix_key(diffie_hellman(self.ephemeral.private, response.ephemeral))
            self.mix_key(diffie_hellman(self.own.private, response.ephemeral))
            key = self.mix_preshared(self.preshared)
            self.open_and_mix(key, response.encrypted_nothing)
        except Exception:
            self.chain, self.hash = saved
            raise
        sending, receiving = kdf(2, self.chain, b"")
        return Session(self.index, response.sender, sending, receiving, role="initiator")


class ResponderHandshake(_Symmetric):
    """The other side initiates: opens the initiation at once, then `respond` as often as wished."""

    def __init__(self, own, initiation):
        super().__init__(own.public)
        self.own, self.initiation = own, initiation
        self.mix_key(initiation.ephemeral)
        self.mix_hash(initiation.ephemeral)
        key = self.mix_key_and_seal_key(diffie_hellman(own.private, initiation.ephemeral))
        self.initiator_public = self.open_and_mix(key, initiation.encrypted_static)
        key = self.mix_key_and_seal_key(diffie_hellman(own.private, self.initiator_public))
        self.timestamp = TAI64N.unpack(self.open_and_mix(key, initiation.encrypted_timestamp))

    def respond(self, preshared=ZERO_KEY, *, index=None, ephemeral_public=None, cookie=None):
        """A response and its session. With `ephemeral_public` of low order, every DH with it counts as zero."""
        saved = self.chain, self.hash
        ephemeral = KeyPair() if ephemeral_public is None else KeyPair.claiming(ephemeral_public)
        index = random_index() if index is None else index
        self.mix_key(ephemeral.public)
        self.mix_hash(ephemeral.public)
        for public in (self.initiation.ephemeral, self.initiator_public):
            self.mix_key(ZERO_KEY if ephemeral_public is not None else diffie_hellman(ephemeral.private, public))
        key = self.mix_preshared(preshared)
        encrypted_nothing = self.seal_and_mix(key, b"")
        self.final_chain, self.final_hash = self.chain, self.hash
        receiving, sending = kdf(2, self.chain, b"")
        self.chain, self.hash = saved
        response = Response(index, self.initiation.sender, ephemeral.public, encrypted_nothing)
        response.authenticate(self.initiator_public, cookie)
        return response, Session(index, self.initiation.sender, sending, receiving, role="responder")
