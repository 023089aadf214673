"""X1 to X6: from the TUN to the wire."""

import errno
import ipaddress
import socket
import struct
import time

from scripted_peer import MessageType
from scripted_peer.packets import IPView, echo_answer, icmp, ip, udp
from waiting import wait_until

from .registry import check, require
from .rig import OUTER4, OUTER6, TUNNEL4, TUNNEL6

NOBODY4, NOBODY6 = "10.9.0.200", "fd09::200"
_IP_RECVERR, _IPV6_RECVERR = 11, 25


def _require_unreachable(rig, capture, packet, why):
    """The next packet on the TUN reports `packet` as undeliverable, in a form the stack accepts."""
    found = capture.next(2)
    require(found is not None, f"no ICMP error: {why}")
    original, view = IPView(packet), IPView(found)
    kind = (1, 3, 1) if view.version == 4 else (58, 1, 3)
    require(view.version == original.version, f"the error is of IP version {view.version}: {why}")
    require((view.protocol, *view.payload[:2]) == kind,
            f"protocol, type and code are {(view.protocol, *view.payload[:2])}, not {kind}: {why}")
    require(view.header_checksum_is_valid and view.transport_checksum_is_valid, f"a wrong checksum: {why}")
    require(view.destination == original.source, f"the error goes to {view.destination}: {why}")
    require(view.source not in (TUNNEL4, TUNNEL6, OUTER4, OUTER6) and not ipaddress.ip_address(view.source).is_loopback,
            f"the error comes from the local address {view.source}, which the stack drops: {why}")
    quoted = view.payload[8:]
    require(len(quoted) >= min(len(packet), original.header_length + 8), f"too little is quoted: {why}")
    require(packet.startswith(quoted[:original.header_length + 8]), f"the quotation is not the packet: {why}")
    require(len(found) <= (1280 if view.version == 6 else 576), f"the error has {len(found)} bytes: {why}")


@check("X1", "a packet for nobody is answered by ICMP host or address unreachable")
def unreachable_for_no_peer(rig):
    rig.peer()
    capture = rig.capture()
    for source, destination in ((TUNNEL4, NOBODY4), (TUNNEL6, NOBODY6)):
        for size in (0, 12, 1300):
            packet = udp(source, destination, 4000 + size, 9, bytes(size))
            rig.inject(packet)
            _require_unreachable(rig, capture, packet, f"UDP of {size} bytes to {destination}")
            rig.pause(1.1)


@check("X1", "a peer without endpoint is unreachable too")
def unreachable_without_endpoint(rig):
    peer = rig.peer(endpoint=False)
    capture = rig.capture()
    for source, destination in ((TUNNEL4, peer.inner4), (TUNNEL6, peer.inner6)):
        packet = udp(source, destination, 4000, 9, b"payload")
        rig.inject(packet)
        _require_unreachable(rig, capture, packet, f"to {destination}")


def _unreachable_error(rig, family, destination):
    """The errno and ICMP (type, code) that a connected UDP socket gets for a datagram through the tunnel."""
    level, option = (socket.IPPROTO_IP, _IP_RECVERR) if family == socket.AF_INET else \
        (socket.IPPROTO_IPV6, _IPV6_RECVERR)
    with rig.inside.socket(family, socket.SOCK_DGRAM) as sock:
        sock.setsockopt(level, option, 1)
        sock.settimeout(3)
        sock.connect((destination, 9))
        sock.send(b"anyone there?")
        try:
            sock.recv(100)
        except OSError as error:
            number = error.errno
        else:
            return None
        try:
            _, ancillary, _, _ = sock.recvmsg(500, 500, socket.MSG_ERRQUEUE)
        except OSError:
            return number, None
        for _, _, value in ancillary:
            if len(value) >= 16:
                _, _, kind, code = struct.unpack_from("IBBB", value)
                return number, (kind, code)
        return number, None


@check("X1", "a program learns of it: EHOSTUNREACH on its socket")
def unreachable_reaches_the_program(rig):
    rig.peer()
    for family, destination, kind in ((socket.AF_INET, NOBODY4, (3, 1)), (socket.AF_INET6, NOBODY6, (1, 3))):
        outcome = _unreachable_error(rig, family, destination)
        require(outcome == (errno.EHOSTUNREACH, kind), f"the socket got {outcome}, not EHOSTUNREACH and {kind}")


@check("X2", "no ICMP error answers ICMP errors, multicast, broadcast, or later fragments")
def no_error_about_errors(rig):
    rig.peer()
    capture = rig.capture()
    quoted = udp(NOBODY4, TUNNEL4, 1, 2, b"quoted")
    quoted6 = udp(NOBODY6, TUNNEL6, 1, 2, b"quoted")
    silent = [icmp(TUNNEL4, NOBODY4, kind, 0, bytes(4) + quoted) for kind in (3, 4, 5, 11, 12)]
    silent += [icmp(TUNNEL6, NOBODY6, kind, 0, bytes(4) + quoted6) for kind in (1, 2, 3, 4)]
    silent += [udp(TUNNEL4, group, 1, 2, b"x") for group in ("224.0.0.251", "239.1.2.3", "255.255.255.255")]
    silent += [udp(TUNNEL6, group, 1, 2, b"x") for group in ("ff02::fb", "ff05::1:3", "ff0e::1")]
    silent += [ip(TUNNEL4, NOBODY4, 17, bytes(64), fragment=100, identification=7)]
    silent += [ip(TUNNEL6, NOBODY6, 44, struct.pack(">BBHI", 17, 0, 100 << 3, 7) + bytes(64))]
    silent += [udp("0.0.0.0", NOBODY4, 1, 2, b"x"), udp("::", NOBODY6, 1, 2, b"x")]
    silent += [udp("224.0.0.9", NOBODY4, 1, 2, b"x"), udp("ff02::9", NOBODY6, 1, 2, b"x")]
    for packet in silent:
        rig.inject(packet)
        found = capture.next(0.05)
        require(found is None, f"answered although it must not be: {packet[:44].hex()}")
    capture.expect_nothing("one of them was answered late")
    packet = udp(TUNNEL4, NOBODY4, 4000, 9, b"payload")
    rig.inject(packet)
    _require_unreachable(rig, capture, packet, "an ordinary packet after those")


@check("X2", "a first fragment and an echo request are answered")
def errors_about_ordinary_packets(rig):
    rig.peer()
    capture = rig.capture()
    for packet in (ip(TUNNEL4, NOBODY4, 17, bytes(64), fragment=0x2000, identification=7),
                   icmp(TUNNEL6, NOBODY6, 128, 0, bytes(12))):
        rig.inject(packet)
        _require_unreachable(rig, capture, packet, "an ordinary packet")


@check("X2", "ICMP errors are limited in rate")
def errors_are_rate_limited(rig):
    rig.peer()
    capture = rig.capture()
    count, began = 3000, time.monotonic()
    for number in range(count):
        rig.inject(udp(TUNNEL4, NOBODY4, 1024 + number, 9, b"x"))
        if number % 100 == 99:
            rig.pause(0.004)
    answered = len([p for p in capture.collect(0.5) if IPView(p).protocol == 1])
    require(answered >= 1, "not even one was answered")
    require(answered <= count // 2, f"{answered} ICMP errors for {count} packets within "
            f"{time.monotonic() - began:.1f} s")


@check("X3", "checksums that a program's stack left to the device are finished")
def checksums_are_finished(rig):
    peer = rig.peer(allowed=["10.9.0.2/32", "fd09::2/128"])
    session = peer.connect()
    for family, destination in ((socket.AF_INET, peer.inner4), (socket.AF_INET6, peer.inner6)):
        for kind in (socket.SOCK_DGRAM, socket.SOCK_STREAM):
            with rig.inside.socket(family, kind) as sock:
                sock.setblocking(False)
                sock.connect_ex((destination, 9))
                if kind == socket.SOCK_DGRAM:
                    sock.send(b"an odd payload!")
                plaintext, _ = peer.expect_data(session, 2, "the packet must reach the peer")
                view = IPView(plaintext)
                require(view.protocol == (17 if kind == socket.SOCK_DGRAM else 6), "another packet than the one sent")
                require(view.header_checksum_is_valid and view.transport_checksum_is_valid,
                        f"protocol {view.protocol} over IPv{view.version} has a wrong checksum inside")


def _padded(mtu, length):
    return min(mtu, length + -length % 16)


def _require_padding(rig, peer, session, mtu, lengths):
    for version, source, destination in ((4, TUNNEL4, peer.inner4), (6, TUNNEL6, peer.inner6)):
        header = 28 if version == 4 else 48
        for length in lengths:
            if length < header:
                continue
            packet = udp(source, destination, 1, 2, b"\xa5" * (length - header))
            rig.inject(packet)
            plaintext, datagram = peer.expect_data(session, 2)
            require(plaintext[:length] == packet, f"{length} bytes arrive changed")
            require(len(plaintext) == _padded(mtu, length),
                    f"{length} bytes are padded to {len(plaintext)}, not {_padded(mtu, length)} (MTU {mtu})")
            require(not any(plaintext[length:]), "the padding is not zero")
            require(len(datagram.payload) == len(plaintext) + 32, "header and tag take 32 bytes")


@check("X4", "packets are padded with zeros to 16 bytes, but not past the MTU")
def padding(rig):
    peer = rig.peer()
    session = peer.connect()
    _require_padding(rig, peer, session, 1420, [
        28, 29, 31, 32, 33, 47, 48, 49, 63, 64, 65, 1000, 1300, 1391, 1392, 1393, 1407, 1408, 1409, 1415, 1419, 1420])


@check("X4", "the padding follows a change of the MTU")
def padding_follows_mtu(rig):
    peer = rig.peer()
    session = peer.connect()
    for mtu in (1290, 1411):
        rig.set_mtu(mtu)

        def followed():
            rig.inject(udp(TUNNEL4, peer.inner4, 1, 2, bytes(mtu - 28 - 1)))
            return len(peer.expect_data(session, 2)[0]) == mtu

        wait_until(followed, f"padding clamped to the new MTU of {mtu}", 4, 0.1)
        _require_padding(rig, peer, session, mtu, [mtu - 12, mtu - 5, mtu - 1, mtu, 1279, 100])


@check("X5", "128 packets wait for a key; the oldest go first when there are more; order is kept")
def staging(rig):
    peer = rig.peer()
    packets = [rig.outgoing(peer, payload=b"%04d" % number) for number in range(200)]
    for packet in packets:
        rig.inject(packet)
    handshake = peer.expect_initiation(2)
    # The TUN has been read when a packet for somebody else, injected last, has been dealt with.
    rig.pause(0.5)
    session = peer.answer(handshake)
    arrived = [plaintext[:len(packets[0])] for plaintext, _ in peer.collect_data(session, 1)]
    require(127 <= len(arrived) <= 129, f"{len(arrived)} packets had been kept, not 128")
    require(arrived == packets[-len(arrived):], "the kept packets are not the newest in their order")


@check("X5", "packets of one peer stay in order, counters step by one")
def order(rig):
    peer = rig.peer()
    session = peer.connect()
    rig.verify(peer, session)
    packets = [rig.outgoing(peer, payload=b"%05d" % number + bytes(number % 300)) for number in range(3000)]
    for number, packet in enumerate(packets):
        rig.inject(packet)
        if number % 100 == 99:
            rig.pause(0.004)
    arrived = peer.collect_data(session, 1.5)
    numbers = [packets.index(IPView(plaintext).packet) for plaintext, _ in arrived]
    require(len(numbers) > 1000, f"only {len(numbers)} of 3000 packets arrived")
    require(numbers == sorted(numbers), "packets overtook each other")
    counters = [datagram.message.counter for _, datagram in arrived]
    require(counters == list(range(counters[0], counters[0] + len(counters))), "the counters do not step by one")


@check("X6", "tx and rx count whole messages: ten pings as initiator are 1428 and 1372 bytes")
def counters_as_initiator(rig):
    peer = rig.peer()
    session = None
    for number in range(10):
        packet = icmp(TUNNEL4, peer.inner4, 8, 0, struct.pack(">HH", 77, number) + bytes(56))
        require(len(packet) == 84, "a ping has 84 bytes")
        rig.inject(packet)
        if session is None:
            session = peer.answer(peer.expect_initiation(2))
        plaintext, _ = peer.expect_data(session, 2)
        peer.send(session.seal(echo_answer(IPView(plaintext).packet)))
    wait_until(lambda: rig.transfer(peer)[0] == 1372, "rx_bytes reaching 1372", 2)
    require(rig.transfer(peer) == (1372, 1428), f"(rx, tx) is {rig.transfer(peer)}, not (1372, 1428)")


@check("X6", "tx and rx count handshakes and keepalives as responder")
def counters_as_responder(rig):
    peer = rig.peer()
    session = peer.connect()
    wait_until(lambda: rig.transfer(peer) == (148 + 32, 92), "rx reaching 180 and tx 92", 2)
    peer.send(session.seal(rig.incoming(peer)))
    size = 32 + len(rig.incoming(peer)) + -len(rig.incoming(peer)) % 16
    wait_until(lambda: rig.transfer(peer) == (180 + size, 92), f"rx reaching {180 + size}", 2)
    rig.stimulate(peer)
    _, datagram = peer.expect_data(session, 2)
    require(rig.transfer(peer)[1] == 92 + len(datagram.payload), "tx does not count the whole data message")
    peer.expect_silence(0, "something unexpected was sent", kinds=set(MessageType))
