"""R1 to R4: from the wire to the TUN."""

import struct

from scripted_peer.packets import ipv4, ipv6
from waiting import wait_until

from .registry import check, require
from .rig import TUNNEL4, TUNNEL6


def _require_endpoint(rig, peer, sock, why):
    wait_until(lambda: rig.endpoint(peer) == (sock.address, sock.port), f"the endpoint moving: {why}", 2)


def _roaming(rig, addresses):
    peer = rig.peer()
    home = peer.socket
    first, second, third = (rig.socket(address) for address in addresses)
    session = peer.connect()
    rig.verify(peer, session)
    peer.send(session.seal(), via=first)
    _require_endpoint(rig, peer, first, "a keepalive from there")
    rig.stimulate(peer)
    peer.expect_data(session, 2, "data must go to the new endpoint", via=first)
    peer.send(session.seal(rig.incoming(peer)), via=second)
    _require_endpoint(rig, peer, second, "data from there")
    peer.send(session.seal(rig.incoming(peer, source="10.200.0.1")), via=third)
    _require_endpoint(rig, peer, third, "data whose inner source is refused, from there")
    peer.send(session.seal(b"\x50" + bytes(47)), via=first)
    _require_endpoint(rig, peer, first, "data that is no IP packet, from there")
    # What is not authentic, or is not new, moves nothing.
    delivered = rig.incoming(peer)
    old = session.seal(delivered)
    capture = rig.capture()
    peer.send(old, via=first)
    # Several sockets may be read at once: what is sent again is a replay only when the first has been taken.
    capture.expect_among([delivered], [], "data from there must be delivered")
    forged = session.seal(rig.incoming(peer))
    forged.ciphertext = bytes([forged.ciphertext[0] ^ 1]) + forged.ciphertext[1:]
    peer.send(forged, via=second)
    peer.send(old, via=third)
    marker = rig.incoming(peer)
    rig.settle()
    rig.pause(0.1)
    require(rig.endpoint(peer) == (first.address, first.port), "a forged or replayed message moved the endpoint")
    peer.send(session.seal(marker), via=first)
    capture.expect_among([marker], [], "data must still be delivered")
    # Handshake messages move it as well.
    session = peer.initiate(via=second)
    _require_endpoint(rig, peer, second, "an initiation from there")
    peer.send(session.seal(), via=home)
    _require_endpoint(rig, peer, home, "the confirmation from there")
    rig.verify(peer, session)


@check("R1", "every authenticated message moves the endpoint, nothing else does")
def roaming(rig):
    _roaming(rig, ("10.77.0.3", "10.77.0.4", "10.77.0.2"))


@check("R1", "every authenticated message moves the endpoint, nothing else does, over IPv6", underlay=6)
def roaming_over_ipv6(rig):
    _roaming(rig, ("fd77::3", "fd77::4", "fd77::2"))


@check("R1", "the endpoint moves between IPv4 and IPv6, and with a response")
def roaming_between_families(rig):
    peer = rig.peer()
    six = rig.socket("fd77::5")
    rig.stimulate(peer)
    handshake = peer.expect_initiation(2)
    session = peer.answer(handshake, via=six, to=("fd77::1", 51820))
    peer.expect_data(session, 2, "the staged packet must go to where the response came from", via=six)
    _require_endpoint(rig, peer, six, "a response from there")
    peer.send(session.seal())
    _require_endpoint(rig, peer, peer.socket, "a keepalive from there")
    rig.verify(peer, session)


@check("R2", "only whole IPv4 and IPv6 packets are delivered")
def malformed_inner_packets(rig):
    peer = rig.peer()
    session = peer.connect()
    capture = rig.capture()
    inner4, inner6 = peer.inner4, peer.inner6
    good4, good6 = rig.incoming(peer), rig.incoming(peer, version=6)
    malformed = [good4[:length] for length in (1, 2, 19)] + [good6[:length] for length in (1, 24, 39)]
    malformed += [bytes([version << 4 | 5]) + good4[1:] for version in (0, 1, 3, 5, 7, 15)]
    malformed += [bytes([version << 4]) + good6[1:] for version in (0, 5, 7, 15)]
    malformed += [ipv4(inner4, TUNNEL4, 1, bytes(28), total_length=length) for length in (0, 1, 19, 49, 1000, 65535)]
    malformed += [ipv6(inner6, TUNNEL6, 58, bytes(24), payload_length=length) for length in (25, 1000, 65535)]
    malformed += [bytes(16), bytes(1000), b"\xff" * 1000]
    for plaintext in malformed:
        peer.send(session.seal(plaintext, pad=False))
        found = capture.next(0.02)
        require(found is None, f"delivered although malformed: {plaintext[:44].hex()}")
    capture.expect_nothing("something malformed was delivered late")
    for packet in (good4, good6):
        peer.send(session.seal(packet))
        capture.expect(packet, "a whole packet after the malformed ones")


@check("R2", "what follows the packet is cut off")
def padding_is_trimmed(rig):
    peer = rig.peer()
    session = peer.connect()
    capture = rig.capture()
    for version, source, target in ((4, peer.inner4, TUNNEL4), (6, peer.inner6, TUNNEL6)):
        for extra in (b"", bytes(1), bytes(15), b"\xa5" * 16, b"\xa5" * 700):
            packet = rig.incoming(peer, version=version)
            peer.send(session.seal(packet + extra, pad=False))
            capture.expect(packet, f"IPv{version} with {len(extra)} bytes after it")
        # A packet that is nothing but a header is whole, too.
        packet = ipv4(source, target, 253, b"") if version == 4 else ipv6(source, target, 59, b"")
        peer.send(session.seal(packet))
        capture.expect(packet, f"a bare IPv{version} header")


@check("R3", "the inner source must belong to this peer by the longest prefix of all peers")
def source_filter(rig):
    wide = rig.peer(allowed=["10.9.0.0/24", "fd09::/64"])
    narrow = rig.peer(address="10.77.0.3", number=7)
    wide.inner4, wide.inner6 = "10.9.0.2", "fd09::2"
    first, second = wide.connect(), narrow.connect()
    capture = rig.capture()
    for version, stolen, foreign in ((4, narrow.inner4, "10.200.0.1"), (6, narrow.inner6, "fd99::1")):
        packets = [rig.incoming(wide, version=version, source=source) for source in (stolen, foreign)]
        packets += [rig.incoming(narrow, version=version, source=source)
                    for source in ((wide.inner4, wide.inner6)[version == 6], foreign)]
        for peer, session, packet in zip((wide, wide, narrow, narrow), (first, first, second, second), packets):
            peer.send(session.seal(packet))
            require(capture.next(0.05) is None, f"a source of another peer was accepted: {packet[:40].hex()}")
        for peer, session in ((wide, first), (narrow, second)):
            packet = rig.incoming(peer, version=version)
            peer.send(session.seal(packet))
            capture.expect(packet, "a peer's own source must be accepted")
    # Without the narrower owner the wide prefix holds again.
    rig.remove(narrow)
    packet = rig.incoming(wide, source=narrow.inner4)
    wide.send(first.seal(packet))
    capture.expect(packet, "after the removal the wide prefix owns the address")


@check("R4", "rx_bytes counts authenticated, accepted messages only")
def refused_bytes(rig):
    peer = rig.peer()
    session = peer.connect()
    rig.verify(peer, session)
    before = rig.transfer(peer)[0]
    packet = rig.incoming(peer)
    forged = session.seal(packet)
    forged.ciphertext = forged.ciphertext[:-1] + bytes([forged.ciphertext[-1] ^ 1])
    peer.send(forged)
    for refused in (rig.incoming(peer, source="10.200.0.1"), b"\x50" + bytes(47), bytes(48),
                    struct.pack(">BBH", 0x45, 0, 2000) + bytes(60)):
        peer.send(session.seal(refused))
    good = session.seal(packet)
    peer.send(good)
    peer.send(good)
    size = len(good.pack())
    rig.settle()
    wait_until(lambda: rig.transfer(peer)[0] >= before + size, "rx_bytes counting good data", 2)
    rig.pause(0.2)
    grown = rig.transfer(peer)[0] - before
    require(grown == size, f"rx_bytes grew by {grown}, not {size}: refused bytes are counted")


@check("R2", "large packets, up to the MTU, arrive whole in both directions", mtu=9000)
def large_packets(rig):
    peer = rig.peer()
    session = peer.connect()
    capture = rig.capture()
    for size in (1500, 4000, 8999, 9000):
        packet = rig.incoming(peer, payload=bytes(size - len(rig.incoming(peer))))
        peer.send(session.seal(packet))
        capture.expect(packet, f"{size} bytes from the peer")
        packet = rig.stimulate(peer, payload=b"\x5a" * (size - 28))
        plaintext, _ = peer.expect_data(session, 2, f"{size} bytes to the peer")
        require(plaintext[:size] == packet, f"{size} bytes to the peer arrive changed")
