"""O1 to O5: the header around the messages."""

from capture import PacketCapture
from scripted_peer import MessageType
from scripted_peer.packets import IPView
from waiting import wait_until

from .registry import check, require

HANDSHAKE_TOS = 0x88
NOT_ECT, ECT1, ECT0, CE = 0, 1, 2, 3


def _require_tos(datagram, tos, what):
    require(datagram.tos == tos, f"the TOS of {what} is {datagram.tos:#04x}, not {tos:#04x}")


def _handshake_tos(rig):
    peer = rig.peer()
    session = peer.connect()
    _require_tos(session.datagram, HANDSHAKE_TOS, "a response")
    other = rig.peer(address=rig.peers[0].socket.address, number=3, keepalive=60)
    handshake = other.expect_initiation(2)
    _require_tos(handshake.datagram, HANDSHAKE_TOS, "an initiation")
    session = other.answer(handshake)
    _, datagram = other.expect_data(session, 2)
    require(datagram.message.is_keepalive, "not a keepalive")
    _require_tos(datagram, 0, "a keepalive")


@check("O1", "handshake messages carry TOS 0x88, keepalives 0")
def handshake_tos(rig):
    _handshake_tos(rig)


@check("O1", "handshake messages carry traffic class 0x88, keepalives 0", underlay=6)
def handshake_traffic_class(rig):
    _handshake_tos(rig)


@check("O1", "retries carry TOS 0x88 too", seconds=8)
def retry_tos(rig):
    peer = rig.peer()
    rig.stimulate(peer)
    for _ in range(2):
        _require_tos(peer.expect_initiation(7).datagram, HANDSHAKE_TOS, "an initiation")


def _data_tos(rig):
    peer = rig.peer()
    session = peer.connect()
    for version in (4, 6):
        for dscp in (0, 0xB8, 0x20, 0xFC):
            for ecn, outer in ((NOT_ECT, NOT_ECT), (ECT1, ECT1), (ECT0, ECT0), (CE, ECT0)):
                packet = rig.stimulate(peer, version=version, tos=dscp | ecn)
                plaintext, datagram = peer.expect_data(session, 2)
                require(plaintext.startswith(packet), "the inner packet was changed")
                _require_tos(datagram, outer, f"data with inner IPv{version} TOS {dscp | ecn:#04x}")


@check("O1", "data hides the DSCP and copies ECN, CE as ECT(0)")
def data_tos(rig):
    _data_tos(rig)


@check("O1", "data hides the DSCP and copies ECN, CE as ECT(0), over IPv6", underlay=6)
def data_traffic_class(rig):
    _data_tos(rig)


@check("O1", "staged packets keep their own ECN")
def staged_tos(rig):
    peer = rig.peer()
    marks = (NOT_ECT, ECT0, ECT1, CE, ECT0, NOT_ECT)
    for ecn in marks:
        rig.stimulate(peer, tos=ecn)
    session = peer.answer(peer.expect_initiation(2))
    for ecn in marks:
        _, datagram = peer.expect_data(session, 2)
        _require_tos(datagram, ECT0 if ecn == CE else ecn, f"a staged packet with ECN {ecn}")


def _congestion(rig):
    peer = rig.peer()
    session = peer.connect()
    capture = rig.capture()
    for version in (4, 6):
        for outer in (NOT_ECT, ECT1, ECT0, CE):
            for inner in (NOT_ECT, ECT1, ECT0, CE):
                packet = rig.incoming(peer, version=version, tos=0xB8 | inner)
                peer.send(session.seal(packet), tos=outer)
                found = capture.next(2)
                what = f"outer ECN {outer}, inner IPv{version} ECN {inner}"
                require(found is not None, f"not delivered: {what}")
                view = IPView(found)
                expected = CE if outer == CE and inner != NOT_ECT else inner
                require(view.tos == 0xB8 | expected, f"delivered with TOS {view.tos:#04x}: {what}")
                require(view.header_checksum_is_valid, f"the IPv4 header checksum is wrong: {what}")
                require(view.payload == IPView(packet).payload, f"the payload was changed: {what}")


@check("O2", "congestion marked outside is marked inside when the packet is capable, and never lost")
def congestion(rig):
    _congestion(rig)


@check("O2", "congestion marked outside is marked inside, over IPv6", underlay=6)
def congestion_over_ipv6(rig):
    _congestion(rig)


def _all_messages(rig, capture, address):
    """Makes the daemon send every kind of message and returns what was captured of them, by type."""
    peer = rig.peer(address=address, keepalive=60)
    peer.initiate()
    rig.restart_peer(peer, keepalive=60)
    handshake = peer.expect_initiation(7)
    session = peer.answer(handshake)
    peer.expect_data(session, 2)
    for size in (0, 500, 1300):
        rig.stimulate(peer, payload=bytes(size))
        peer.expect_data(session, 2)

    def sent():
        found = capture.datagrams(lambda d: d.source_port == 51820 and d.destination == address)
        kinds = [d.message_type for d in found]
        return found if {1, 2, 4} <= set(kinds) and kinds.count(4) >= 4 else None

    return wait_until(sent, "the capture seeing every kind of message", 2)


@check("O3", "DF is clear on every IPv4 datagram")
def dont_fragment(rig):
    with PacketCapture(rig.outside, "peers") as capture:
        for datagram in _all_messages(rig, capture, "10.77.0.2"):
            kind = MessageType(datagram.message_type).name.lower()
            require(not datagram.dont_fragment, f"DF is set on {kind} of {len(datagram.payload)} bytes")


def _fragmentation(rig, payload):
    peer = rig.peer()
    session = peer.connect()
    # Only the way out is narrower; what comes in may be larger.
    rig.inside.ip("link", "set", "uplink", "mtu", "1280")
    for version in (4, 6):
        packet = rig.stimulate(peer, version=version, payload=bytes(payload))
        plaintext, datagram = peer.expect_data(session, 3, "a datagram past the underlay's MTU must be fragmented")
        require(plaintext.startswith(packet), "another packet arrived")
        require(len(datagram.payload) > 1280, "the datagram is not larger than the underlay's MTU")


@check("O3", "datagrams larger than the underlay's MTU are fragmented, not lost")
def fragmentation(rig):
    _fragmentation(rig, 1340)


@check("O3", "datagrams larger than the underlay's MTU are fragmented, not lost, over IPv6", underlay=6)
def fragmentation_over_ipv6(rig):
    _fragmentation(rig, 1340)


@check("O4", "UDP checksums are on and the TTL is the system's default")
def checksum_and_ttl(rig):
    rig.inside.sysctl("net/ipv4/ip_default_ttl", 77)
    rig.inside.sysctl("net/ipv6/conf/all/hop_limit", 78)
    rig.inside.sysctl("net/ipv6/conf/uplink/hop_limit", 78)
    with PacketCapture(rig.outside, "peers") as capture:
        for address, hops in (("10.77.0.2", 77), ("fd77::2", 78)):
            for datagram in _all_messages(rig, capture, address):
                kind = MessageType(datagram.message_type).name.lower()
                require(datagram.checksum != 0, f"no UDP checksum on {kind} to {address}")
                require(datagram.hop_limit == hops, f"TTL {datagram.hop_limit} on {kind} to {address}, not {hops}")


def _mixed_burst(rig):
    peer = rig.peer()
    session = peer.connect()
    rig.verify(peer, session)
    # Equal sizes, so that only the marks tell them apart; runs of every length up to four.
    marks = [ecn for run in (1, 2, 3, 4, 1, 1, 2) for ecn in (ECT0,) * run + (NOT_ECT,) * run + (ECT1,) + (CE,) * run]
    packets = [rig.outgoing(peer, tos=ecn, payload=bytes(800)) for ecn in marks]
    for packet in packets:
        rig.inject(packet)
    for ecn, packet in zip(marks, packets):
        plaintext, datagram = peer.expect_data(session, 2, "a burst must arrive whole")
        require(plaintext.startswith(packet), "the burst is out of order")
        _require_tos(datagram, ECT0 if ecn == CE else ecn, f"a packet with ECN {ecn} within a burst")


@check("O5", "within a burst each packet keeps its own ECN")
def mixed_burst(rig):
    _mixed_burst(rig)


@check("O5", "within a burst each packet keeps its own ECN, over IPv6", underlay=6)
def mixed_burst_over_ipv6(rig):
    _mixed_burst(rig)
