"""C1 to C9: MACs, cookies and load."""

import os
import time

from scripted_peer import CookieReply, Initiation, MessageType, seal_cookie_reply
from scripted_peer.messages import message_type
from scripted_peer.primitives import AuthenticationFailure

from .flood import Flood, UnderLoad, request_cookie
from .registry import check, require


def _bad_mac1(peer):
    message = peer.handshake().message
    message.mac1 = os.urandom(16)
    return message


@check("C1", "a wrong mac1 is never answered")
def wrong_mac1(rig):
    peer = rig.peer()
    for _ in range(5):
        peer.send(_bad_mac1(peer))
    flipped = peer.handshake().message
    flipped.mac1 = flipped.mac1[:15] + bytes([flipped.mac1[15] ^ 1])
    peer.send(flipped)
    foreign = peer.handshake().message
    peer.send(foreign.authenticate(os.urandom(32)))
    peer.expect_silence(0.4, "an initiation with a wrong mac1 was answered")
    peer.connect()


@check("C1", "a wrong mac1 is not answered under load either, mac2 right or wrong", loud=True)
def wrong_mac1_under_load(rig):
    peer = rig.peer()
    elsewhere = rig.socket("10.77.0.3")

    def body():
        cookie, _, _ = request_cookie(peer, rig.public, via=elsewhere)
        for _ in range(5):
            peer.send(_bad_mac1(peer), via=elsewhere)
        message = peer.handshake().message.authenticate(rig.public, cookie)
        message.mac1 = os.urandom(16)
        peer.send(message, via=elsewhere)
        peer.expect_silence(0.2, "an initiation with a wrong mac1 was answered under load", via=elsewhere)

    UnderLoad(rig).run(body, confirm=True)


@check("C2", "without load mac2 is not looked at")
def mac2_without_load(rig):
    peer = rig.peer()
    handshake = peer.handshake()
    handshake.message.mac2 = os.urandom(16)
    peer.send(handshake.message)
    session = peer.finish(handshake, why="a wrong mac2 must not matter without load")
    peer.send(session.seal())
    rig.verify(peer, session)


def _cookie_depends(rig, addresses):
    peer = rig.peer()
    sockets = [rig.socket(addresses[0]), rig.socket(addresses[0]), rig.socket(addresses[1])]

    def body():
        return [request_cookie(peer, rig.public, via=sock)[0] for sock in (*sockets, sockets[0])]

    first, other_port, other_address, again = UnderLoad(rig).run(body)
    require(len(first) == 16, "a cookie has 16 bytes")
    require(first == again, "the same source got two cookies within seconds")
    require(first != other_port, "the cookie does not depend on the source port")
    require(first != other_address, "the cookie does not depend on the source address")


@check("C3", "the cookie depends on address and port", loud=True)
def cookie_source(rig):
    _cookie_depends(rig, ("10.77.0.3", "10.77.0.4"))


@check("C3", "the cookie depends on address and port, over IPv6", loud=True, underlay=6)
def cookie_source_over_ipv6(rig):
    _cookie_depends(rig, ("fd77::3", "fd77::4"))


@check("C3", "the cookie's secret changes every 120 s", seconds=126)
def cookie_secret_changes(rig):
    peer = rig.peer()
    load = UnderLoad(rig)
    first = load.run(lambda: request_cookie(peer, rig.public)[0])
    rig.pause(122)
    second = load.run(lambda: request_cookie(peer, rig.public)[0])
    require(first != second, "the same cookie after 122 s")


@check("C4", "the cookie reply opens with the mac1 it answers and names its sender", loud=True)
def cookie_reply_form(rig):
    peer = rig.peer()

    def body():
        _, datagram, message = request_cookie(peer, rig.public)
        _, second, other = request_cookie(peer, rig.public)
        return datagram, message, second, other

    datagram, message, second, other = UnderLoad(rig).run(body)
    reply = CookieReply.unpack(datagram.payload)
    require(reply.receiver == message.sender, "the reply's receiver is not the sender of the message")
    require(reply.nonce != CookieReply.unpack(second.payload).nonce, "two replies with one nonce")
    try:
        peer.open_cookie(datagram, other.mac1)
    except AuthenticationFailure:
        pass
    else:
        require(False, "the reply opens with another mac1")
    require(datagram.source == peer.daemon, "the reply comes from another address than the one written to")


@check("C5", "under load: no mac2 brings a cookie reply, a right mac2 a response", loud=True)
def load_as_responder(rig):
    peer = rig.peer()

    def body():
        handshake = peer.handshake()
        peer.drain()
        peer.send(handshake.message)
        datagram = peer.expect(MessageType.COOKIE_REPLY, 0.5, "an initiation without mac2, under load")
        cookie = peer.open_cookie(datagram, handshake.message.mac1)
        wrong = peer.handshake()
        wrong.message.mac2 = os.urandom(16)
        peer.send(wrong.message)
        datagram = peer.expect(MessageType.COOKIE_REPLY, 0.5, "an initiation with a wrong mac2, under load")
        require(peer.open_cookie(datagram, wrong.message.mac1) == cookie, "another cookie for the same source")
        # Cookie replies came before any stamp was looked at.
        return peer.initiate(cookie=cookie, timeout=0.5, why="an initiation with the right mac2, under load")

    session = UnderLoad(rig).run(body)
    peer.send(session.seal())
    rig.verify(peer, session)


@check("C5", "under load: a response without mac2 brings a cookie reply, with it a session", loud=True)
def load_as_initiator(rig):
    peer = rig.peer()

    def body():
        # A peer just added has no initiation behind it, so that the daemon may send one at once.
        rig.restart_peer(peer)
        packet = rig.stimulate(peer)
        handshake = peer.expect_initiation(0.5)
        response, _ = handshake.respond(peer.preshared)
        peer.drain()
        peer.send(response)
        datagram = peer.expect(MessageType.COOKIE_REPLY, 0.3, "a response without mac2, under load")
        reply = CookieReply.unpack(datagram.payload)
        require(reply.receiver == response.sender, "the reply's receiver is not the sender of the response")
        cookie = peer.open_cookie(datagram, response.mac1)
        peer.expect_silence(0, "a response without mac2 was accepted under load", kinds={MessageType.DATA})
        session = peer.answer(handshake, cookie=cookie)
        peer.expect_packet(session, packet, 0.5, "a response with the right mac2 must be accepted under load")
        return session

    rig.verify(peer, UnderLoad(rig).run(body))


def _responses(peer, via, wanted):
    """The responses that arrive until `wanted` are there or time is up, and a moment longer."""
    found, deadline = [], time.monotonic() + 0.3
    while len(found) < wanted and time.monotonic() < deadline:
        found += peer.collect(0.02, via)
    found += peer.collect(0.05, via)
    return [datagram for datagram in found if message_type(datagram.payload) == MessageType.RESPONSE]


def _rate_limit(rig, shared, apart, shared_also=None):
    """Thirty peers behind one source get about five responses at once; another source has its own bucket."""
    sock, other = rig.socket(shared), rig.socket(apart)
    third = rig.socket(shared_also) if shared_also else None
    crowd = [rig.peer(number=10 + n, sock=sock, endpoint=False) for n in range(30)]
    few = [rig.peer(number=50 + n, sock=other, endpoint=False) for n in range(4)]
    also = [rig.peer(number=60 + n, sock=third, endpoint=False) for n in range(10)] if third else []

    def body():
        cookie = request_cookie(crowd[0], rig.public, via=sock)[0]
        cookie_apart = request_cookie(few[0], rig.public, via=other)[0]
        cookie_also = request_cookie(also[0], rig.public, via=third)[0] if third else None
        messages = [peer.handshake(cookie=cookie).message.pack() for peer in crowd]
        messages_apart = [peer.handshake(cookie=cookie_apart).message.pack() for peer in few]
        messages_also = [peer.handshake(cookie=cookie_also).message.pack() for peer in also]
        began = time.time()
        for message in messages:
            crowd[0].send(message, via=sock)
        for message in messages_also:
            crowd[0].send(message, via=third)
        for message in messages_apart:
            few[0].send(message, via=other)
        answered = _responses(crowd[0], sock, 5)
        answered_apart = _responses(few[0], other, len(few))
        answered_also = _responses(also[0], third, 0) if third else []
        # The daemon reads from several sockets: it may be either of the two addresses in one /64 that uses up the burst.
        first_five = len(answered) + len(answered_also)
        require(first_five >= 5, f"only {first_five} of {len(messages) + len(messages_also)} initiations with a right "
                "mac2 were answered; a burst of 5 is allowed")
        require(len(answered_apart) == len(few), f"only {len(answered_apart)} of {len(few)} from another source were "
                "answered: the limit is not per source")
        together = sorted(datagram.at for datagram in answered + answered_also)
        allowed = 5 + 20 * (together[-1] - began) + 1
        require(len(answered) <= allowed, f"{len(answered)} of 30 were answered within "
                f"{(together[-1] - began) * 1000:.0f} ms: more than 5 and 20 a second")
        require(len(together) <= allowed, f"{len(together)} were answered in one /64: more than 5 and 20 a second")

    # Buckets are forgotten after a second without traffic: a repeated step must find full ones.
    UnderLoad(rig).run(body, attempts=5, quiet=2.5)


@check("C6", "the limit under load is 20 a second and 5 at once, per IPv4 address", loud=True)
def rate_limit(rig):
    _rate_limit(rig, "10.77.0.3", "10.77.0.4")


@check("C6", "the limit under load counts an IPv6 /64 as one source", loud=True, underlay=6)
def rate_limit_over_ipv6(rig):
    _rate_limit(rig, "fd77::3", "fd78::2", "fd77::4")


@check("C6", "a bucket is full again after more than a second of quiet", loud=True)
def rate_limit_recovers(rig):
    sock = rig.socket("10.77.0.3")
    crowd = [rig.peer(number=10 + n, sock=sock, endpoint=False) for n in range(12)]

    def body():
        cookie = request_cookie(crowd[0], rig.public, via=sock)[0]
        for peer in crowd:
            peer.send(peer.handshake(cookie=cookie).message, via=sock)
        require(len(_responses(crowd[0], sock, 5)) >= 5, "fewer than five were answered from a full bucket")

    load = UnderLoad(rig)
    for _ in range(2):
        load.run(body, quiet=2.5)
        rig.pause(3)


@check("C7", "a modest burst is no load, and load ends about a second after the flood", loud=True)
def load_ends(rig):
    peer = rig.peer()
    small = Flood(rig.outside, "10.77.0.9", peer.daemon, rig.public, 80)
    rig.testbed.on_exit(small.close)
    small.burst()
    peer.drain()
    peer.connect(timeout=2, why="eighty initiations at once are no load")
    load = UnderLoad(rig)
    load.run(lambda: None)
    rig.settle()
    rig.pause(3)
    peer.drain()
    peer.connect(timeout=2, why="three seconds after the flood there is no load")


@check("C8", "a cookie is used on the next scheduled retry, and only the first reply counts", seconds=12)
def cookie_as_initiator(rig):
    peer = rig.peer()
    rig.stimulate(peer)
    first = peer.expect_initiation(2)
    mac1, sender = first.initiation.mac1, first.initiation.sender
    cookie, second_cookie = os.urandom(16), os.urandom(16)
    own = peer.keys.public
    # Refused: another mac1, another receiver, another key, a cut one.
    peer.send(seal_cookie_reply(own, sender, second_cookie, os.urandom(16)))
    peer.send(seal_cookie_reply(own, sender ^ 0x10101, second_cookie, mac1))
    peer.send(seal_cookie_reply(os.urandom(32), sender, second_cookie, mac1))
    peer.send(seal_cookie_reply(own, sender, cookie, mac1))
    rig.settle()
    rig.pause(0.05)
    peer.send(seal_cookie_reply(own, sender, second_cookie, mac1))
    rig.stimulate(peer)
    retry = peer.expect_initiation(8)
    gap = retry.datagram.at - first.datagram.at
    require(gap > 4.8, f"the retry came {gap:.1f} s after the first: a cookie is no reason to hurry")
    require(gap < 7, f"the retry came only after {gap:.1f} s")
    require(not retry.initiation.mac2_is_valid(second_cookie), "a second cookie reply to one message was accepted")
    require(retry.initiation.mac2_is_valid(cookie), "the retry does not carry the right mac2")
    # A reply to the first message is too late now: the last mac1 counts.
    peer.send(seal_cookie_reply(own, sender, second_cookie, mac1))
    peer.send(seal_cookie_reply(own, retry.initiation.sender, second_cookie, mac1))
    third = peer.expect_initiation(8)
    require(third.initiation.mac2_is_valid(cookie), "the cookie must be kept")
    session = peer.answer(third)
    peer.expect_data(session, 2)
    rig.verify(peer, session)


@check("C8", "a cookie is used in responses too")
def cookie_in_response(rig):
    peer = rig.peer()
    session = peer.initiate()
    cookie = os.urandom(16)
    peer.send(seal_cookie_reply(peer.keys.public, session.remote_index, cookie, session.response.mac1))
    rig.settle()
    rig.pause(0.1)
    session = peer.connect()
    require(session.response.mac2_is_valid(cookie), "the next response does not carry the right mac2")


@check("C8", "a cookie is forgotten after 120 s", seconds=130)
def cookie_expires(rig):
    peer = rig.peer()
    rig.stimulate(peer)
    first = peer.expect_initiation(2)
    cookie = os.urandom(16)
    peer.send(seal_cookie_reply(peer.keys.public, first.initiation.sender, cookie, first.initiation.mac1))
    given = time.time()
    with_cookie = without = 0
    while time.time() < given + 128:
        rig.stimulate(peer)
        datagram = peer.wait_for(MessageType.INITIATION, 2)
        if datagram is None:
            continue
        age = datagram.at - given
        initiation = Initiation.unpack(datagram.payload)
        if age < 114:
            require(initiation.mac2_is_valid(cookie), f"no right mac2 {age:.0f} s after the cookie")
            with_cookie += 1
        elif age > 120.5:
            require(initiation.mac2 == bytes(16), f"mac2 is still set {age:.0f} s after the cookie")
            without += 1
    require(with_cookie > 10 and without, "too few initiations to judge")


@check("C9", "a cookie reply never moves the endpoint, even a valid one", seconds=6)
def cookie_and_endpoint(rig):
    peer = rig.peer()
    elsewhere = rig.socket("10.77.0.3")
    rig.stimulate(peer)
    first = peer.expect_initiation(2)
    cookie = os.urandom(16)
    peer.send(seal_cookie_reply(peer.keys.public, first.initiation.sender, cookie, first.initiation.mac1),
              via=elsewhere)
    rig.settle()
    rig.pause(0.1)
    require(rig.endpoint(peer) == (peer.socket.address, peer.socket.port), "a cookie reply moved the endpoint")
    require(rig.latest_handshake(peer) == 0, "a cookie reply counted as a handshake")
    retry = peer.expect_initiation(8, "the retry must go to the old endpoint, a cookie reply or not")
    require(retry.initiation.mac2_is_valid(cookie), "a cookie reply is valid wherever it comes from")
    peer.expect_silence(0, "something was sent to where the cookie reply came from", via=elsewhere)


@check("C9", "a cookie reply does not count as heard from", seconds=35)
def cookie_is_not_heard_from(rig):
    peer = rig.peer()
    session = peer.connect()
    datagram = peer.expect_packet(session, rig.stimulate(peer), 2, "data must reach the peer")
    rig.pause(2)
    peer.send(seal_cookie_reply(peer.keys.public, session.remote_index, os.urandom(16), session.response.mac1))
    again = peer.expect_initiation(18, "unanswered data must lead to a handshake, a cookie reply or not")
    gap = again.datagram.at - datagram.at
    require(14.8 < gap < 17, f"the handshake came {gap:.1f} s after the unanswered data")
