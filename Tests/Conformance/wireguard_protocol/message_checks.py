"""M1 to M3: the shape of messages."""

import os
import struct

from scripted_peer import Data, Initiation, MessageType, Response, TAI64N

from .registry import check, require


def _future():
    """A stamp that would lock out every later handshake of the peer, were it ever stored."""
    return TAI64N.at(TAI64N.now().unix + 100_000)


def _with_type_word(message, word, receiver_public):
    message.type_word = word
    return message.authenticate(receiver_public)


RESERVED = (1 << 8, 1 << 16, 1 << 24, 0xFFFFFF00)
UNKNOWN_TYPES = (0, 5, 6, 0x7F, 0x81, 0xFF)


@check("M1", "a malformed initiation is dropped in silence and leaves no trace")
def malformed_initiations(rig):
    peer = rig.peer()
    elsewhere = rig.socket("10.77.0.3")
    before = rig.endpoint(peer)
    for word in [1 | reserved for reserved in RESERVED] + list(UNKNOWN_TYPES):
        message = peer.handshake(timestamp=_future()).message
        peer.send(_with_type_word(message, word, rig.public), via=elsewhere)
    for change in (lambda p: p[:-1], lambda p: p + b"\0", lambda p: p[:132], lambda p: p + bytes(16), lambda p: p[:92]):
        peer.send(change(peer.handshake(timestamp=_future()).message.pack()), via=elsewhere)
    peer.expect_silence(0.4, "a malformed initiation must not be answered", via=elsewhere)
    require(rig.endpoint(peer) == before, "a malformed initiation moved the endpoint")
    require(rig.transfer(peer) == (0, 0), "a malformed initiation was counted for the peer")
    peer.connect(why="a malformed initiation must leave no state behind (its time stamp was stored?)")


@check("M1", "a malformed response is dropped and the true one still accepted")
def malformed_responses(rig):
    peer = rig.peer()
    rig.stimulate(peer)
    handshake = peer.expect_initiation(2)
    elsewhere = rig.socket("10.77.0.3")
    for word in [2 | reserved for reserved in RESERVED] + [0, 5, 0x82]:
        message, _ = handshake.respond()
        peer.send(_with_type_word(message, word, rig.public), via=elsewhere)
    for change in (lambda p: p[:-1], lambda p: p + b"\0", lambda p: p + bytes(56)):
        peer.send(change(handshake.respond()[0].pack()), via=elsewhere)
    peer.expect_silence(0.4, "a malformed response must not be answered", via=elsewhere)
    peer.expect_silence(0, "a malformed response must not complete the handshake", kinds={MessageType.DATA})
    session = peer.answer(handshake)
    peer.expect_data(session, 2, "the true response must be accepted after malformed ones")


@check("M1", "malformed data is dropped and its counter not used up")
def malformed_data(rig):
    peer = rig.peer()
    session = peer.connect()
    elsewhere = rig.socket("10.77.0.3")
    capture = rig.capture()
    packet = rig.incoming(peer, 1)
    message = session.seal(packet)
    for word in [4 | reserved for reserved in RESERVED] + [0, 5, 0x84]:
        message.type_word = word
        peer.send(message, via=elsewhere)
    message.type_word = 4
    good = message.pack()
    for length in (4, 8, 15, 16, 17, 24, 31):
        peer.send(good[:length], via=elsewhere)
    empty = session.seal().pack()
    peer.send(empty[:-1], via=elsewhere)
    peer.send(empty + b"\0", via=elsewhere)
    peer.send(Data(os.urandom(4)[0], 9, message.ciphertext), via=elsewhere)
    peer.expect_silence(0.3, "malformed data must not be answered", via=elsewhere)
    require(rig.endpoint(peer) == (peer.socket.address, peer.socket.port), "malformed data moved the endpoint")
    capture.expect_nothing("malformed data was delivered")
    peer.send(good)
    capture.expect(packet, "the same message, well formed, must be delivered: its counter was never used")


@check("M1", "a cookie reply of wrong form, or that answers nothing, is dropped")
def malformed_cookie_replies(rig):
    peer = rig.peer()
    session = peer.connect()
    for payload in (struct.pack("<II", 3, session.remote_index) + os.urandom(n) for n in (55, 56, 57, 0)):
        peer.send(payload)
    peer.send(struct.pack("<II", 3 | 1 << 24, session.remote_index) + os.urandom(56))
    peer.expect_silence(0.3, "a cookie reply is never answered")
    rig.verify(peer, session)


@check("M1", "thousands of malformed datagrams do not flood the log")
def log_is_not_flooded(rig):
    peer = rig.peer()
    session = peer.connect()
    rig.verify(peer, session)
    stranger = Initiation.garbage(rig.public)
    forms = [
        b"", b"\1", bytes(148), os.urandom(148), stranger.pack(), stranger.pack()[:-1],
        Initiation(mac1=os.urandom(16)).pack(), Response(1, 2, bytes(32), bytes(16)).authenticate(rig.public).pack(),
        struct.pack("<II", 3, 7) + os.urandom(56), Data(session.remote_index, 77, os.urandom(48)).pack(),
        Data(1234, 77, os.urandom(48)).pack(), session.seal(b"\x50" + os.urandom(40)).pack(),
        session.seal(rig.incoming(peer, 1, source="10.99.99.99")).pack(),
    ]
    lines = len(rig.log().splitlines())
    for number in range(2600):
        peer.send(forms[number % len(forms)])
        if number % 100 == 99:
            rig.settle()
            peer.drain()
    rig.verify(peer, session)
    grown = len(rig.log().splitlines()) - lines
    require(grown <= 20, f"{grown} log lines for 2600 malformed datagrams")


@check("M2", "datagrams of 0 to 31 bytes and of 65507 bytes do no harm")
def extreme_sizes(rig):
    peer = rig.peer()
    session = peer.connect()
    for size in range(32):
        peer.send(bytes(size))
        for kind in range(1, 5):
            peer.send((struct.pack("<I", kind) + os.urandom(32))[:size])
    for kind in range(6):
        for size in (1500, 9000, 65000, 65507):
            peer.send(struct.pack("<II", kind, session.remote_index) + os.urandom(size - 8))
    peer.send(session.seal(b"\x45" + bytes(65400)))
    peer.send(session.seal(rig.incoming(peer, 1, payload=bytes(60000))))
    peer.send(session.seal(os.urandom(65000)))
    rig.verify(peer, session)
    peer.connect()


@check("M2", "the same over IPv6", underlay=6)
def extreme_sizes_over_ipv6(rig):
    extreme_sizes(rig)


@check("M3", "indices are random and unique")
def indices(rig):
    peer = rig.peer()
    seen = []
    for _ in range(48):
        seen.append(peer.initiate().remote_index)
    require(len(set(seen)) == len(seen), "an index was given out twice in a row of 48")
    steps = [(b - a) % 2**32 for a, b in zip(seen, seen[1:])]
    require(len(set(steps)) > 40, "the indices follow a sequence")
    for shift in (0, 8, 16, 24):
        values = {index >> shift & 0xFF for index in seen}
        require(len(values) >= 20, f"byte {shift // 8} of 48 indices takes only {len(values)} values")
    # As initiator as well: the index in an initiation is new each time.
    rig.restart_peer(peer)
    rig.stimulate(peer)
    first = peer.expect_initiation(6).initiation.sender
    require(first not in seen, "an initiation reuses the index of an earlier response")
