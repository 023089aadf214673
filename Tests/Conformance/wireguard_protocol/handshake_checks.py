"""P1 to P3, N1 to N5, T1 to T3: the handshake and its time stamps."""

import os
import time

from scripted_peer import KeyPair, MessageType, Response, ScriptedPeer, TAI64N
from scripted_peer.primitives import LOW_ORDER_POINTS
from scripted_peer.timestamps import GRANULARITY, TAI64_EPOCH

from .registry import check, require

HANDSHAKE = {MessageType.INITIATION, MessageType.RESPONSE, MessageType.COOKIE_REPLY}


@check("P1", "handshake, keys and MACs follow the paper in both roles")
def both_roles(rig):
    peer = rig.peer()
    session = peer.connect()
    require(session.response.mac1_is_valid(peer.keys.public), "the response's mac1 is wrong")
    require(session.response.mac2 == bytes(16), "mac2 of the response must be zero without a cookie")
    rig.verify(peer, session)
    other = rig.peer(address="10.77.0.3", number=3)
    rig.stimulate(other)
    handshake = other.expect_initiation(2)
    require(handshake.initiation.mac2 == bytes(16), "mac2 of the initiation must be zero without a cookie")
    session = other.answer(handshake)
    other.expect_data(session, 2)
    rig.verify(other, session)


@check("P2", "a wrong tag, key or counter in the nonce is refused")
def authentication(rig):
    peer = rig.peer()
    session = peer.connect()
    capture = rig.capture()
    packet = rig.incoming(peer, 1)
    good = session.seal(packet)
    for bit in (0, 8 * 16 - 1, 8 * len(good.ciphertext) - 1):
        changed = bytearray(good.ciphertext)
        changed[bit // 8] ^= 1 << bit % 8
        peer.send(type(good)(good.receiver, good.counter, bytes(changed)))
    peer.send(type(good)(good.receiver, good.counter + 1, good.ciphertext))
    capture.expect_nothing("a forged message was delivered", 0.3)
    peer.send(good)
    capture.expect(packet, "the genuine message must be delivered")


@check("P3", "low-order points are refused as ephemeral key of an initiation")
def low_order_initiation_ephemeral(rig):
    peer = rig.peer()
    for point in LOW_ORDER_POINTS:
        peer.send(peer.handshake(ephemeral_public=point).message)
    peer.expect_silence(0.3, "an initiation with a low-order ephemeral key was answered")
    peer.connect()


@check("P3", "low-order points are refused as static key, even of a configured peer")
def low_order_static(rig):
    for number, point in enumerate(LOW_ORDER_POINTS):
        keys = KeyPair.claiming(point)
        peer = rig.peer(number=10 + number, keys=keys, endpoint=True, keepalive=1)
        rig.stimulate(peer)
        peer.send(peer.handshake().message)
        peer.expect_silence(0.2, f"the low-order static key {point.hex()} was talked to")
    rig.pause(1.2)
    for peer in rig.peers:
        peer.expect_silence(0, "a keepalive made the daemon initiate to a low-order static key")


@check("P3", "a response with a low-order ephemeral key is refused")
def low_order_response_ephemeral(rig):
    peer = rig.peer()
    rig.stimulate(peer)
    handshake = peer.expect_initiation(2)
    for point in LOW_ORDER_POINTS:
        peer.answer(handshake, ephemeral_public=point)
    peer.expect_silence(0.4, "a response with a low-order ephemeral key was accepted")
    session = peer.answer(handshake)
    peer.expect_data(session, 2, "the true response must be accepted after the refused ones")


@check("N1", "a response is accepted once, and only for a handshake under way")
def duplicate_response(rig):
    peer = rig.peer()
    rig.stimulate(peer)
    handshake = peer.expect_initiation(2)
    response, session = handshake.respond(peer.preshared)
    wrong = Response(**vars(response))
    wrong.receiver ^= 0x01010101
    peer.send(wrong.authenticate(rig.public))
    peer.expect_silence(0.2, "a response to an unknown index was accepted")
    payload = peer.send(response)
    peer.expect_data(session, 2, "the response must be accepted")
    elsewhere = rig.socket("10.77.0.3")
    peer.drain()
    for _ in range(3):
        peer.send(payload, via=elsewhere)
    second, _ = handshake.respond(peer.preshared)
    peer.send(second, via=elsewhere)
    peer.expect_silence(0.3, "a second response was accepted", via=elsewhere)
    peer.expect_silence(0, "a second response made the daemon send")
    require(rig.endpoint(peer) == (peer.socket.address, peer.socket.port), "a repeated response moved the endpoint")
    rig.verify(peer, session)


@check("N1", "a response may take 4.5 s", seconds=7)
def late_response(rig):
    peer = rig.peer()
    packet = rig.stimulate(peer)
    handshake = peer.expect_initiation(2)
    rig.pause_until(handshake.datagram.at + 4.5)
    session = peer.answer(handshake)
    peer.expect_packet(session, packet, 2, "a response that takes 4.5 s must be accepted")
    rig.verify(peer, session)


@check("N1", "a response to an initiation that a retry has replaced is refused", seconds=7)
def stale_response(rig):
    peer = rig.peer()
    packet = rig.stimulate(peer)
    stale = peer.expect_initiation(2)
    retry = peer.expect_initiation(7, "the daemon must try again")
    peer.answer(stale)
    peer.expect_silence(0.4, "a response to a replaced initiation was accepted", kinds={MessageType.DATA})
    session = peer.answer(retry)
    peer.expect_packet(session, packet, 2, "the response to the latest initiation must be accepted")
    rig.verify(peer, session)


@check("N3", "a new PSK spares the live session and binds the next handshake, ours")
def psk_as_responder(rig):
    first, second = os.urandom(32), os.urandom(32)
    peer = rig.peer(preshared=first)
    session = peer.connect()
    rig.verify(peer, session)
    rig.set_preshared(peer, second)
    rig.verify(peer, session)
    handshake = peer.handshake()
    peer.send(handshake.message)
    response = Response.unpack(peer.expect(MessageType.RESPONSE, 2).payload)
    try:
        handshake.finish(response)
    except Exception:
        pass
    else:
        require(False, "the response still uses the old PSK")
    peer.preshared = second
    rig.verify(peer, peer.connect())
    rig.set_preshared(peer, bytes(32))
    peer.preshared = bytes(32)
    rig.verify(peer, peer.connect())


@check("N3", "a new PSK spares the live session and binds the next handshake, the daemon's", seconds=18)
def psk_as_initiator(rig):
    first, second = os.urandom(32), os.urandom(32)
    peer = rig.peer(preshared=first)
    rig.stimulate(peer)
    session = peer.answer(peer.expect_initiation(2))
    peer.expect_data(session, 2)
    rig.set_preshared(peer, second)
    rig.verify(peer, session)
    # Unanswered data makes the daemon initiate again.
    rig.stimulate(peer)
    handshake = peer.expect_initiation(18, "unanswered data must lead to a new handshake")
    peer.answer(handshake, preshared=first)
    peer.expect_silence(0.3, "a response with the old PSK was accepted", kinds={MessageType.DATA})
    session = peer.answer(handshake, preshared=second)
    peer.expect_data(session, 2, "a response with the new PSK must be accepted")
    rig.verify(peer, session)


@check("N4", "both sides initiate at once: data flows again within 11 s", seconds=7)
def simultaneous_initiation(rig):
    peer = rig.peer()
    began = time.time()
    packet = rig.stimulate(peer)
    theirs = peer.expect_initiation(2)
    peer.initiate(why="an initiation must be answered although the daemon's own is under way")
    # As a kernel peer would, we have forgotten our part of either handshake and wait for the tie to break.
    retry = peer.expect_initiation(7, "the daemon must try again")
    require(4.8 < retry.datagram.at - theirs.datagram.at, "the daemon tried again too soon")
    session = peer.answer(retry)
    datagram = peer.expect_packet(session, packet, 2, "the staged packet must follow the handshake")
    require(datagram.at - began < 11.5, f"data took {datagram.at - began:.1f} s")
    rig.verify(peer, session)


@check("N4", "the responder's side of a collision carries the staged packet once confirmed")
def collision_confirmed(rig):
    peer = rig.peer()
    packet = rig.stimulate(peer)
    peer.expect_initiation(2)
    session = peer.initiate()
    peer.expect_silence(0.2, "data was sent under a key that is not confirmed", kinds={MessageType.DATA})
    peer.send(session.seal())
    plaintext, _ = peer.expect_data(session, 2, "the staged packet must follow the confirmation")
    require(plaintext.startswith(packet), "another packet than the staged one arrived")


@check("N5", "an initiation from an unknown static key is dropped in silence")
def unknown_static_key(rig):
    peer = rig.peer()
    stranger = ScriptedPeer(peer.socket, rig.public, peer.daemon)
    stranger.send(stranger.handshake().message)
    peer.expect_silence(0.3, "a stranger's initiation was answered")
    peer.connect()


@check("N5", "a removed peer is a stranger")
def removed_peer(rig):
    peer = rig.peer()
    peer.connect()
    rig.remove(peer)
    rig.pause(0.05)
    peer.drain()
    peer.send(peer.handshake().message)
    peer.expect_silence(0.3, "a removed peer's initiation was answered")


@check("T1", "stamps are TAI64N of the present, coarse, and strictly rising", seconds=12)
def stamps(rig):
    peer = rig.peer()
    stamps = []
    rig.stimulate(peer)
    for _ in range(3):
        handshake = peer.expect_initiation(7)
        stamp = handshake.timestamp
        require(stamp.nanoseconds % GRANULARITY == 0, f"{stamp.nanoseconds} ns is no multiple of 2^24")
        require(stamp.nanoseconds < 10**9, "nanoseconds out of range")
        late = handshake.datagram.at - (stamp.seconds_label - TAI64_EPOCH + stamp.nanoseconds / 1e9)
        require(-0.5 < late < 2, f"the stamp is {late:.2f} s before the arrival")
        stamps.append(stamp.pack())
    require(stamps == sorted(set(stamps)), "the stamps do not rise strictly")


@check("T2", "only a strictly greater stamp is accepted, compared byte by byte")
def replayed_stamps(rig):
    peer = rig.peer()
    base = TAI64N.now().unix

    def answered(stamp):
        peer.drain()
        handshake = peer.handshake(timestamp=stamp)
        peer.send(handshake.message)
        while datagram := peer.wait_for(MessageType.RESPONSE, 0.4):
            if Response.unpack(datagram.payload).receiver == handshake.index:
                return True
        return False

    require(answered(TAI64N.at(base, 500)), "the first stamp must be accepted")
    require(not answered(TAI64N.at(base, 500)), "an equal stamp was accepted")
    require(not answered(TAI64N.at(base, 499)), "a smaller nanosecond was accepted")
    require(not answered(TAI64N.at(base - 1, 999_999_999)), "a smaller second was accepted")
    require(answered(TAI64N.at(base, 501)), "a stamp one nanosecond greater must be accepted")
    require(answered(TAI64N.at(base + 1, 0)), "a stamp of the next second must be accepted")
    require(answered(TAI64N(0xFF << 56, 0)), "a stamp with the top bit set is greater")
    require(not answered(TAI64N.at(base + 1000)), "stamps must be compared as unsigned bytes")


@check("T2", "a replayed initiation is dropped and does not move the endpoint")
def replayed_initiation(rig):
    peer = rig.peer()
    handshake = peer.handshake()
    payload = peer.send(handshake.message)
    session = peer.finish(handshake)
    peer.send(session.seal())
    rig.pause(0.05)
    elsewhere = rig.socket("10.77.0.3")
    peer.send(payload, via=elsewhere)
    peer.expect_silence(0.4, "a replayed initiation was answered", via=elsewhere)
    require(rig.endpoint(peer) == (peer.socket.address, peer.socket.port), "a replay moved the endpoint")
    rig.verify(peer, session)


@check("T3", "at most one initiation per peer and 20 ms is consumed")
def initiation_rate(rig):
    peer = rig.peer()
    handshakes = [peer.handshake() for _ in range(12)]
    # From before the first: on a busy machine answers come while the others are still being sent.
    began = time.time()
    for handshake in handshakes:
        peer.send(handshake.message)
    answers = [d for d in peer.collect(0.4) if len(d.payload) == 92]
    require(answers, "the first initiation must be answered")
    allowed = 2 + (answers[-1].at - began + 0.002) / 0.020
    require(len(answers) <= allowed, f"{len(answers)} of 12 initiations were answered within "
            f"{(answers[-1].at - began) * 1000:.1f} ms")
    rig.verify(peer, peer.connect())
