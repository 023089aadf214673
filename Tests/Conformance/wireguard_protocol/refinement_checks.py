"""Rows of the checklist's refinements that no other group holds: no key, and the routing loop."""

from capture import PacketCapture

from .registry import check, require


@check("1.17", "without a private key nothing is sent; with one, keepalives start at once", key=False)
def no_private_key(rig):
    peer = rig.peer(keepalive=1)
    rig.stimulate(peer)
    peer.send(peer.handshake().message)
    peer.expect_silence(2.5, "something was sent without a private key")
    rig.set(f"private_key={rig.keys.private.hex()}")
    session = peer.answer(peer.expect_initiation(2, "a persistent keepalive must start when the key is set"))
    peer.expect_data(session, 2)
    rig.verify(peer, session)


@check("1.17", "a removed private key ends everything")
def removed_private_key(rig):
    peer = rig.peer(keepalive=1)
    session = peer.answer(peer.expect_initiation(2))
    peer.expect_data(session, 2)
    rig.set(f"private_key={bytes(32).hex()}")
    rig.settle()
    rig.pause(0.2)
    peer.drain()
    rig.stimulate(peer)
    peer.send(peer.handshake().message)
    peer.expect_silence(2.5, "something was sent after the private key was removed")


@check("1.17", "a link that was never up sends nothing", up=False)
def never_up(rig):
    peer = rig.peer(keepalive=1)
    peer.send(peer.handshake().message)
    peer.expect_silence(2.5, "something was sent while the link was down")
    rig.up()
    peer.expect_initiation(3, "a persistent keepalive must start when the link comes up")


def _loop(rig, peer):
    """Routes the peer's own endpoint into the tunnel; returns (tunnel packets, bytes counted as sent)."""
    before = rig.transfer(peer)[1]
    with PacketCapture(rig.inside, rig.interface) as capture:
        rig.inside.ip("route", "add", "10.77.0.2/32", "dev", rig.interface)
        for _ in range(10):
            rig.stimulate(peer)
            rig.pause(0.3)
        outgoing = len([packet for packet in capture.packets if packet.outgoing])
    rig.inside.ip("route", "del", "10.77.0.2/32", "dev", rig.interface)
    return outgoing, rig.transfer(peer)[1] - before


@check("1.17", "a routing loop of initiations dies out and heals")
def loop_without_session(rig):
    peer = rig.peer(allowed=["0.0.0.0/0"])
    outgoing, sent = _loop(rig, peer)
    require(sent < 70_000, f"{sent} bytes were sent into the loop")
    require(outgoing < 200, f"{outgoing} packets went into the tunnel for 10")
    rig.stimulate(peer)
    session = peer.answer(peer.expect_initiation(8, "the handshake must get out once the loop is gone"))
    peer.expect_data(session, 2)
    rig.verify(peer, session)


@check("1.17", "a routing loop of data dies out and heals")
def loop_with_session(rig):
    peer = rig.peer(allowed=["0.0.0.0/0"])
    session = peer.connect()
    rig.verify(peer, session)
    outgoing, sent = _loop(rig, peer)
    require(sent < 70_000, f"{sent} bytes were sent into the loop")
    require(outgoing < 200, f"{outgoing} packets went into the tunnel for 10")
    rig.pause(0.5)
    peer.drain()
    peer.send(session.seal())
    rig.verify(peer, session)
