"""The scripted peer: one identity, one socket at a time, and only what the test asks for."""

import time

from .cookies import open_cookie_reply
from .handshake import InitiatorHandshake, ResponderHandshake
from .messages import CookieReply, Data, Initiation, MessageType, Response, message_type
from .primitives import ZERO_KEY, KeyPair

from waiting import CheckFailure, pause

#: Fifty initiations of a peer are consumed in a second; a little slower is always accepted.
INITIATION_INTERVAL = 0.03


class Unexpected(CheckFailure):
    """The other side did not do what the check waits for."""


class ScriptedPeer:
    """A peer of the daemon whose public key is `daemon_public`, reached at `daemon` (address, port)."""

    def __init__(self, sock, daemon_public, daemon, keys=None, preshared=ZERO_KEY):
        self.socket, self.daemon_public, self.daemon = sock, daemon_public, daemon
        self.keys = keys or KeyPair()
        self.preshared = preshared
        self._next_handshake = 0.0

    @property
    def public_text(self):
        return self.keys.public_text

    def send(self, message, *, via=None, to=None, tos=0):
        """Sends a message record or raw bytes; returns the bytes."""
        payload = message if isinstance(message, (bytes, bytearray)) else message.pack()
        (via or self.socket).send(payload, to or self.daemon, tos)
        return payload

    # Receiving

    def receive(self, timeout, via=None):
        return (via or self.socket).receive(timeout)

    def drain(self, via=None):
        """Throws away what has arrived already."""
        while self.receive(0, via):
            pass

    def collect(self, seconds, via=None):
        """Everything that arrives in so many seconds."""
        deadline, result = time.monotonic() + seconds, []
        while (datagram := self.receive(max(0, deadline - time.monotonic()), via)) is not None:
            result.append(datagram)
        return result

    def wait_for(self, kind, timeout, via=None):
        """The next datagram of that message type, or None; others on the way are thrown away."""
        deadline = time.monotonic() + timeout
        while (datagram := self.receive(max(0, deadline - time.monotonic()), via)) is not None:
            if message_type(datagram.payload) == kind:
                return datagram
        return None

    def expect(self, kind, timeout, why="", via=None):
        datagram = self.wait_for(kind, timeout, via)
        if datagram is None:
            raise Unexpected(f"no {kind.name.lower()} within {timeout:g} s{': ' + why if why else ''}")
        return datagram

    def expect_silence(self, seconds, why, via=None, kinds=None):
        """Fails when anything (of those message types) arrives."""
        for datagram in self.collect(seconds, via):
            kind = message_type(datagram.payload)
            if kinds is None or kind in kinds:
                name = kind.name.lower() if kind else "something malformed"
                raise Unexpected(f"{name} of {len(datagram.payload)} bytes arrived: {why}")

    # As initiator

    def handshake(self, **fields):
        """An initiation that is not sent yet; made no sooner after the last one than a peer may have them consumed."""
        pause(max(0.0, self._next_handshake - time.monotonic()))
        self._next_handshake = time.monotonic() + INITIATION_INTERVAL
        fields.setdefault("preshared", self.preshared)
        return InitiatorHandshake(self.keys, self.daemon_public, **fields)

    def initiate(self, *, via=None, to=None, timeout=3, why="our initiation must be answered", **fields):
        """A whole handshake; the session's datagram and handshake are kept as attributes."""
        handshake = self.handshake(**fields)
        self.send(handshake.message, via=via, to=to)
        return self.finish(handshake, timeout=timeout, why=why, via=via)

    def finish(self, handshake, *, timeout=3, why="our initiation must be answered", via=None):
        deadline = time.monotonic() + timeout
        while True:
            datagram = self.expect(MessageType.RESPONSE, max(0.01, deadline - time.monotonic()), why, via)
            response = Response.unpack(datagram.payload)
            if response.receiver == handshake.index:
                break
        self._next_handshake = time.monotonic() + INITIATION_INTERVAL
        session = handshake.finish(response)
        session.datagram, session.handshake, session.response = datagram, handshake, response
        return session

    def connect(self, **fields):
        """A handshake that we initiate and confirm with a keepalive."""
        session = self.initiate(**fields)
        self.send(session.seal(), via=fields.get("via"), to=fields.get("to"))
        return session

    # As responder

    def open_initiation(self, datagram):
        """The handshake that this datagram begins."""
        initiation = Initiation.unpack(datagram.payload)
        if not initiation.mac1_is_valid(self.keys.public):
            raise Unexpected("the initiation's mac1 is wrong")
        handshake = ResponderHandshake(self.keys, initiation)
        if handshake.initiator_public != self.daemon_public:
            raise Unexpected("the initiation carries another static key")
        handshake.datagram = datagram
        return handshake

    def expect_initiation(self, timeout, why="the daemon must initiate", via=None):
        return self.open_initiation(self.expect(MessageType.INITIATION, timeout, why, via))

    def answer(self, handshake, *, via=None, to=None, **fields):
        """Sends a response; returns the session."""
        fields.setdefault("preshared", self.preshared)
        response, session = handshake.respond(**fields)
        self.send(response, via=via, to=to)
        session.handshake, session.response = handshake, response
        return session

    # Data

    def expect_data(self, session, timeout, why="", via=None, keepalive=None):
        """The next data message of that session, as (plaintext, datagram). `keepalive` False skips empty ones."""
        deadline = time.monotonic() + timeout
        while True:
            datagram = self.expect(MessageType.DATA, max(0.01, deadline - time.monotonic()), why, via)
            message = Data.unpack(datagram.payload)
            if message.receiver != session.local_index or keepalive is not None and message.is_keepalive != keepalive:
                continue
            datagram.message = message
            return session.open(message), datagram

    def expect_packet(self, session, packet, timeout, why="", via=None):
        """Waits for the data message of that session that carries `packet`; returns its datagram."""
        deadline = time.monotonic() + timeout
        while True:
            plaintext, datagram = self.expect_data(session, max(0.01, deadline - time.monotonic()), why, via)
            if plaintext.startswith(packet):
                return datagram

    def collect_data(self, session, seconds, via=None):
        """All data messages of that session within so many seconds, as (plaintext, datagram)."""
        result = []
        for datagram in self.collect(seconds, via):
            if message_type(datagram.payload) == MessageType.DATA:
                message = Data.unpack(datagram.payload)
                if message.receiver == session.local_index:
                    datagram.message = message
                    result.append((session.open(message), datagram))
        return result

    # Cookies

    def open_cookie(self, datagram, mac1):
        return open_cookie_reply(self.daemon_public, CookieReply.unpack(datagram.payload), mac1)
