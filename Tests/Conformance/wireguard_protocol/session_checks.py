"""K1 to K6: replay window, key rotation, key change, link down and up."""

import random
import time

from scripted_peer import KeyPair, MessageType

from .registry import check, require

WINDOW = 8128


def _model(counters, used=(0,)):
    """A slow reference: which counters of a sequence must be accepted, after `used` ones."""
    seen, greatest, verdicts = set(used), max(used), []
    for counter in counters:
        accepted = counter not in seen and counter >= greatest - WINDOW
        if accepted:
            seen.add(counter)
            greatest = max(greatest, counter)
        verdicts.append(accepted)
    return verdicts


def _judge(rig, peer, session, counters):
    """Sends data with chosen counters, in order, and compares what is delivered with the model."""
    capture = rig.capture()
    packets = [rig.incoming(peer) for _ in counters]
    for counter, packet in zip(counters, packets):
        peer.send(session.seal(packet, counter=counter))
        rig.settle()
    expected = {packet for packet, accepted in zip(packets, _model(counters)) if accepted}
    missing, found, deadline = set(expected), set(), time.monotonic() + 3
    while missing and (packet := capture.next(max(0.001, deadline - time.monotonic()))):
        found.add(packet)
        missing.discard(packet)
    found |= set(capture.collect(0.2))
    for number, (counter, packet) in enumerate(zip(counters, packets)):
        require((packet in found) == (packet in expected),
                f"step {number}: counter {counter} was {'accepted' if packet in found else 'refused'}")
    capture.close()


@check("K1", "each counter is accepted once, in any order inside the window of 8128")
def window_edges(rig):
    peer = rig.peer()
    session = peer.connect()
    base = 20_000
    counters = [
        0, 1, 1, 5, 3, 2, 4, 3, 5,
        base, base - WINDOW, base - WINDOW, base - WINDOW - 1, base - WINDOW + 1, base - 1, base - 1, base, 4, 6,
        base + 1, base - WINDOW + 1, base - WINDOW, base - WINDOW + 2,
    ]
    # The model itself is held to the two edges that decide.
    verdicts = dict(zip(counters[10:13:2], _model(counters)[10:13:2]))
    require(verdicts == {base - WINDOW: True, base - WINDOW - 1: False}, "the model of the window is wrong")
    _judge(rig, peer, session, counters)


@check("K1", "a jump of any size clears exactly what it passes")
def window_jumps(rig):
    peer = rig.peer()
    counters, top = [], 0
    session = peer.connect()
    for jump in (63, 64, 65, 127, 128, 4000, WINDOW - 1, WINDOW, WINDOW + 1, 8191, 8192, 8193, 16384, 100_000, 2**32):
        top += jump
        counters += [top, top, top - 1, top - 2, top - 1]
        if top > WINDOW:
            counters += [top - WINDOW, top - WINDOW - 1]
    counters += [top - 100_000, top - 64, top - 128, top - 64, top - 8000]
    _judge(rig, peer, session, counters)


@check("K1", "a random walk agrees with a slow reference")
def window_random_walk(rig):
    peer = rig.peer()
    session = peer.connect()
    source, counters, top = random.Random(8128), [], 0
    for _ in range(400):
        step = source.choice((1, 1, 2, 60, 64, 700, WINDOW, 9000))
        if source.random() < 0.5:
            top += source.randrange(step) + 1
            counters.append(top)
        else:
            counters.append(max(0, top - source.randrange(step * 2)))
    _judge(rig, peer, session, counters)


@check("K1", "far ahead is accepted, everything before it is then old")
def window_far_ahead(rig):
    peer = rig.peer()
    session = peer.connect()
    far = 2**60 - 7
    _judge(rig, peer, session, [
        7, far, 8, far - WINDOW - 1, far - WINDOW, far - 1, far, 2**63, far + 1, 2**63 - WINDOW])


@check("K1", "a forged message does not mark its counter nor move the window")
def window_and_forgery(rig):
    peer = rig.peer()
    session = peer.connect()
    for counter in (50, 2**40):
        message = session.seal(rig.incoming(peer), counter=counter)
        message.ciphertext = message.ciphertext[:-1] + bytes([message.ciphertext[-1] ^ 1])
        peer.send(message)
    _judge(rig, peer, session, [50, 49, 1])


@check("K1", "a reordering of thousands loses nothing")
def window_reordering(rig):
    peer = rig.peer()
    session = peer.connect()
    count = 8100
    capture = rig.capture()
    # Every hundredth of a long run arrives in reverse.
    chosen = list(range(1, count, 90))
    packets = [rig.incoming(peer) for _ in chosen]
    for counter, packet in reversed(list(zip(chosen, packets))):
        peer.send(session.seal(packet, counter=counter))
    capture.expect_among(packets, [], "packets reordered within the window must all be delivered", 4)


@check("K2", "an initiator's new key displaces an unconfirmed one, which stays valid for receiving", seconds=22)
def initiator_rotation(rig):
    peer = rig.peer()
    rig.stimulate(peer)
    first = peer.answer(peer.expect_initiation(2))
    peer.expect_data(first, 2)
    unconfirmed = peer.initiate()
    peer.expect_packet(first, rig.stimulate(peer), 2, "an unconfirmed key must not be used: data goes under the first")
    third = peer.answer(peer.expect_initiation(18, "unanswered data must lead to a handshake"))
    peer.expect_data(third, 2, "the initiator must confirm at once")
    capture = rig.capture()
    packets = [rig.incoming(peer) for _ in range(3)]
    peer.send(first.seal(packets[0]))
    peer.send(unconfirmed.seal(packets[1]))
    peer.send(third.seal(packets[2]))
    capture.expect_among(packets[1:], packets[:1], "the unconfirmed key becomes the previous one, the first is dropped")
    rig.verify(peer, third)


@check("K2", "an initiator's old key becomes the previous one", seconds=21)
def initiator_keeps_previous(rig):
    peer = rig.peer()
    rig.stimulate(peer)
    first = peer.answer(peer.expect_initiation(2))
    peer.expect_data(first, 2)
    rig.stimulate(peer)
    second = peer.answer(peer.expect_initiation(18, "unanswered data must lead to a handshake"))
    peer.expect_data(second, 2)
    capture = rig.capture()
    for session in (first, second, first):
        packet = rig.incoming(peer)
        peer.send(session.seal(packet))
        capture.expect(packet, "previous and current key must both be accepted")
    peer.expect_packet(second, rig.stimulate(peer), 2, "data goes under the new key")


@check("K3", "a responder's new key waits for the first data under it")
def responder_rotation(rig):
    peer = rig.peer()
    first = peer.initiate()
    packets = [rig.stimulate(peer) for _ in range(3)]
    peer.expect_silence(0.3, "data was sent under an unconfirmed key", kinds={MessageType.DATA})
    peer.send(first.seal())
    arrived = [plaintext for plaintext, _ in peer.collect_data(first, 0.5)]
    require([a[:len(p)] for a, p in zip(arrived, packets)] == packets and len(arrived) == 3,
            "the confirmation must flush the staged packets in order")
    second = peer.initiate()
    peer.expect_packet(first, rig.stimulate(peer), 2, "before confirmation data goes under the current key")
    capture = rig.capture()
    packet = rig.incoming(peer)
    peer.send(second.seal(packet))
    capture.expect(packet, "the first data under the new key must be delivered")
    peer.expect_packet(second, rig.stimulate(peer), 2, "after confirmation data goes under the new key")
    packet = rig.incoming(peer)
    peer.send(first.seal(packet))
    capture.expect(packet, "the previous key must still be accepted")
    # A third, unconfirmed one drops the previous key, not the current.
    third = peer.initiate()
    packets = [rig.incoming(peer) for _ in range(2)]
    peer.send(first.seal(packets[0]))
    peer.send(second.seal(packets[1]))
    capture.expect_among(packets[1:], packets[:1], "a new unconfirmed key must drop the previous one only")
    peer.send(third.seal())
    rig.verify(peer, third)


@check("K3", "the handshake counts as complete when the key is confirmed")
def handshake_completion(rig):
    peer = rig.peer()
    session = peer.initiate()
    rig.pause(0.1)
    require(rig.latest_handshake(peer) == 0, "a handshake is shown although its key is not confirmed")
    peer.send(session.seal())
    rig.verify(peer, session)
    shown = rig.latest_handshake(peer)
    require(abs(shown - time.time()) < 5, f"the handshake shown is {time.time() - shown:.0f} s old")


@check("K3", "data forged under the new key confirms nothing")
def forged_confirmation(rig):
    peer = rig.peer()
    session = peer.initiate()
    rig.stimulate(peer)
    forged = session.seal()
    forged.ciphertext = bytes(16)
    peer.send(forged)
    peer.expect_silence(0.3, "a forged message confirmed the key", kinds={MessageType.DATA})
    peer.send(session.seal(counter=0))
    peer.expect_data(session, 2, "the true confirmation must flush the staged packet")


@check("K4", "the previous key is accepted until it is 180 s old", seconds=190)
def previous_key_lives_on(rig):
    peer = rig.peer()
    first = peer.connect()
    began = first.datagram.at
    rig.pause_until(began + 100)
    second = peer.connect()
    rig.verify(peer, second)
    capture = rig.capture()
    rig.pause_until(began + 177)
    packet = rig.incoming(peer)
    peer.send(first.seal(packet))
    capture.expect(packet, "the previous key must be accepted 177 s after its handshake")
    rig.pause_until(began + 181)
    peer.send(first.seal(rig.incoming(peer)))
    capture.expect_nothing("the previous key was accepted 181 s after its handshake", 0.5)
    rig.verify(peer, second)


@check("K5", "a new private key ends sending at once and allows a new initiation at once")
def private_key_change(rig):
    peer = rig.peer()
    rig.stimulate(peer)
    old = peer.answer(peer.expect_initiation(2))
    peer.expect_data(old, 2)
    rig.set_private_key(KeyPair())
    peer.drain()
    packet = rig.stimulate(peer)
    # Within the five seconds of the last initiation.
    datagram = peer.receive(2)
    require(datagram is not None, "a new private key must allow a new initiation at once")
    require(len(datagram.payload) == 148, "data was sent under a key of the old identity")
    session = peer.answer(peer.open_initiation(datagram))
    plaintext, _ = peer.expect_data(session, 2, "the new identity must carry data")
    require(plaintext.startswith(packet), "the packet was not staged for the new identity")
    rig.verify(peer, session)


@check("K5", "a new private key takes effect for handshakes that the peer begins")
def private_key_change_as_responder(rig):
    peer = rig.peer()
    session = peer.connect()
    rig.verify(peer, session)
    stale = peer.handshake()
    rig.set_private_key(KeyPair())
    peer.send(stale.message)
    peer.expect_silence(0.3, "an initiation to the old identity was answered", kinds={MessageType.RESPONSE})
    rig.verify(peer, peer.connect())


@check("K5", "a handshake under way does not survive a new private key")
def private_key_change_during_handshake(rig):
    peer = rig.peer()
    rig.stimulate(peer)
    handshake = peer.expect_initiation(2)
    rig.set_private_key(KeyPair())
    peer.drain()
    peer.answer(handshake)
    for datagram in peer.collect(0.4):
        require(len(datagram.payload) == 148, "a response to the old identity's initiation was accepted")


@check("K5", "the own public key as a peer is ignored")
def own_public_key(rig):
    rig.set(f"public_key={rig.public.hex()}", "allowed_ip=10.9.0.2/32", "endpoint=10.77.0.2:1234")
    stranger = rig.peer(keys=rig.keys, configure=False)
    require(not rig.knows(stranger), "the own public key is listed as a peer")
    other = rig.peer(keys=KeyPair(), number=3)
    rig.set_private_key(other.keys)
    require(not rig.knows(other), "a peer is still listed although its key became the own one")


@check("K6", "link down ends every session and sends nothing; up starts persistent keepalives at once")
def link_down_and_up(rig):
    peer = rig.peer(keepalive=1)
    session = peer.answer(peer.expect_initiation(2))
    peer.expect_data(session, 2)
    idle = rig.peer(address="10.77.0.3", number=3)
    silent = idle.connect()
    rig.verify(idle, silent)
    rig.down()
    rig.pause(1.5)
    for each in (peer, idle):
        each.drain()
    idle.send(idle.handshake().message)
    peer.expect_silence(2.5, "something was sent while the link was down")
    idle.expect_silence(0, "an initiation was answered while the link was down")
    capture = rig.capture()
    rig.up()
    handshake = peer.expect_initiation(4, "a persistent keepalive must start a handshake when the link comes up")
    capture.collect(0.1)
    idle.send(silent.seal(rig.incoming(idle)))
    peer.send(session.seal(rig.incoming(peer)))
    require(not [p for p in capture.collect(0.4) if b"incoming" in p], "a session survived the link going down")
    session = peer.answer(handshake)
    peer.expect_data(session, 2)
    rig.verify(peer, session)
    rig.verify(idle, idle.connect())


@check("K6", "a packet right after link up starts a handshake, though one was sent just before")
def link_up_forgets_last_initiation(rig):
    peer = rig.peer()
    rig.stimulate(peer)
    peer.expect_initiation(2)
    rig.down()
    rig.pause(1)
    peer.drain()
    rig.up()
    rig.pause(0.2)
    rig.stimulate(peer)
    peer.expect_initiation(7, "after link up a packet must lead to a handshake")
