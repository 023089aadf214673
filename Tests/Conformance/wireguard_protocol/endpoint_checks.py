"""E1 to E6: source addresses, sockets, marks."""

import errno
import socket

from scripted_peer import KeyPair, PeerSocket
from waiting import wait_until

from .registry import check, require
from .rig import DAEMON_PORT, OTHER4, OTHER6, OUTER4


def _contact(rig, version):
    """A session begun at the daemon's other address; returns peer, session, the default and the other address."""
    other = OTHER4 if version == 4 else OTHER6
    destination = "10.77.0.2" if version == 4 else "fd77::2"
    peer = rig.peer(address=destination, to=other)
    with rig.inside.socket(socket.AF_INET if version == 4 else socket.AF_INET6, socket.SOCK_DGRAM) as probe:
        probe.connect((destination, 9))
        default = probe.getsockname()[0]
    require(default != other, "the rig's addresses are in the wrong order")
    session = peer.connect()
    require(session.datagram.source == (other, DAEMON_PORT),
            f"the response comes from {session.datagram.source}, not from the address contacted")
    rig.stimulate(peer)
    _, datagram = peer.expect_data(session, 2)
    require(datagram.source == (other, DAEMON_PORT), f"data comes from {datagram.source}, not the address contacted")
    return peer, session, default, other


def _next_source(rig, peer, session):
    rig.stimulate(peer)
    return peer.expect_data(session, 2, "data must keep flowing")[1].source


def _reply_to_sender(rig, version):
    peer, session, default, other = _contact(rig, version)
    peer.send(session.seal(), to=(default, DAEMON_PORT))
    wait_until(lambda: _next_source(rig, peer, session) == (default, DAEMON_PORT),
               f"data coming from {default} after a keepalive to it", 2)
    peer.send(session.seal(), to=(other, DAEMON_PORT))
    wait_until(lambda: _next_source(rig, peer, session) == (other, DAEMON_PORT),
               f"data coming from {other} after a keepalive to it", 2)


@check("E1", "answers come from the address that was contacted")
def reply_to_sender(rig):
    _reply_to_sender(rig, 4)


@check("E1", "answers come from the address that was contacted, over IPv6")
def reply_to_sender_over_ipv6(rig):
    _reply_to_sender(rig, 6)


@check("E2", "a handshake after unanswered data lets go of the source address", seconds=24)
def source_after_no_answer(rig):
    peer, _, default, _ = _contact(rig, 4)
    datagram = peer.expect_initiation(18, "unanswered data must lead to a handshake").datagram
    require(datagram.source == (default, DAEMON_PORT), f"the initiation comes from {datagram.source}, not {default}")


@check("E2", "a handshake retry lets go of the source address", seconds=10)
def source_after_retry(rig):
    peer, _, default, _ = _contact(rig, 4)
    rig.set_private_key(KeyPair())
    rig.stimulate(peer)
    peer.expect_initiation(6)
    datagram = peer.expect_initiation(7, "the daemon must try again").datagram
    require(datagram.source == (default, DAEMON_PORT), f"the retry comes from {datagram.source}, not {default}")


@check("E2", "a new listen port lets go of the source address")
def source_after_port_change(rig):
    peer, session, default, _ = _contact(rig, 4)
    rig.set("listen_port=51999")
    require(_next_source(rig, peer, session) == (default, 51999), "data must come from the default address, new port")


@check("E2", "a new fwmark lets go of the source address")
def source_after_mark_change(rig):
    peer, session, default, _ = _contact(rig, 4)
    rig.set("fwmark=77")
    require(_next_source(rig, peer, session) == (default, DAEMON_PORT), "data must come from the default address")


def _address_gone(rig, version):
    peer, session, default, other = _contact(rig, version)
    rig.inside.delete_address("uplink", f"{other}/{24 if version == 4 else 64}")
    packet = rig.stimulate(peer)
    plaintext, datagram = peer.expect_data(session, 2, "data must be sent again at once from another address")
    require(plaintext.startswith(packet), "the first packet after the address vanished is lost")
    require(datagram.source == (default, DAEMON_PORT), f"data comes from {datagram.source}, not {default}")


@check("E2", "a vanished source address costs no packet")
def address_gone(rig):
    _address_gone(rig, 4)


@check("E2", "a vanished source address costs no packet, over IPv6")
def address_gone_over_ipv6(rig):
    _address_gone(rig, 6)


@check("E3", "link-local IPv6 endpoints keep their scope, configured and learned")
def link_local(rig):
    rig.inside.add_address("uplink", "fe80::1/64")
    rig.outside.add_address("peers", "fe80::2/64")
    # The same address lives on another link, too.
    rig.inside.ip("link", "add", "decoy", "type", "veth", "peer", "name", "decoy2")
    for link in ("decoy", "decoy2"):
        rig.inside.ip("link", "set", link, "up")
    configured = PeerSocket(rig.outside, "fe80::2", 0, "peers")
    peer = rig.peer(sock=configured, endpoint_text=f"[fe80::2%uplink]:{configured.port}", to="fe80::1")
    rig.stimulate(peer)
    session = peer.answer(peer.expect_initiation(2, "a link-local endpoint with a scope must be reached"))
    peer.expect_data(session, 2)
    rig.verify(peer, session)
    learned = PeerSocket(rig.outside, "fe80::2", 0, "peers")
    other = rig.peer(sock=learned, endpoint=False, number=3, to="fe80::1")
    rig.verify(other, other.connect())
    require(rig.endpoint(other) == ("fe80::2", learned.port), "the learned endpoint is another one")


@check("E4", "a port chosen by the system is one for IPv4 and IPv6", listen_port=0)
def chosen_port(rig):
    wait_until(lambda: rig.listen_port, "a port being chosen", 2)
    port = rig.listen_port
    versions = {version for version, found, _ in rig.udp_sockets() if found == port}
    require(versions == {4, 6}, f"port {port} is bound for IPv{versions} only")
    for number, address in ((2, "10.77.0.2"), (3, "fd77::2")):
        peer = rig.peer(address=address, number=number)
        rig.stimulate(peer)
        datagram = peer.expect_initiation(2).datagram
        require(datagram.source[1] == port, f"sent from port {datagram.source[1]}, not {port}")


@check("E4", "without IPv6 the daemon works over IPv4", ipv6=False)
def only_ipv4(rig):
    peer = rig.peer(allowed=["10.9.0.2/32"])
    rig.verify(peer, peer.connect())


@check("E5", "setting the same listen port again changes nothing")
def same_port(rig):
    peer = rig.peer()
    session = peer.connect()
    before = {entry for entry in rig.udp_sockets() if entry[1] == DAEMON_PORT}
    rig.set(f"listen_port={DAEMON_PORT}")
    after = {entry for entry in rig.udp_sockets() if entry[1] == DAEMON_PORT}
    require(before == after, "the sockets were replaced")
    rig.verify(peer, session)


@check("E5", "a port in use is EADDRINUSE, and the old one keeps working")
def busy_port(rig):
    peer = rig.peer()
    session = peer.connect()
    for family, address in ((socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::")):
        with rig.inside.socket(family, socket.SOCK_DGRAM) as taken:
            if family == socket.AF_INET6:
                taken.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            taken.bind((address, 0))
            rig.set(f"listen_port={taken.getsockname()[1]}", errno=errno.EADDRINUSE)
            require(rig.listens_on(DAEMON_PORT), "the old port is given up")
            rig.verify(peer, session)
    rig.set("listen_port=52000")
    peer.daemon = (peer.daemon[0], 52000)
    rig.stimulate(peer)
    peer.expect_data(session, 2, "a free port must be taken")
    rig.verify(peer, session)


def _only_marked_may_leave(rig, mark):
    # Not a routing rule: with an interface index in the ancillary data the kernel sends even where no route leads.
    rig.inside.nft("table inet marks {\nchain output {\ntype filter hook output priority 0;\n"
                   f"oifname uplink meta l4proto udp meta mark != {mark} drop\n}}\n}}\n")


@check("E6", "the mark is on every datagram and can be changed at any time")
def mark(rig):
    peer, six = rig.peer(), rig.peer(address="fd77::2", number=3)
    sessions = [(each, each.connect()) for each in (peer, six)]
    _only_marked_may_leave(rig, 1234)

    def flows(each, session):
        packet = rig.stimulate(each)
        found = each.collect_data(session, 0.3)
        return any(plaintext.startswith(packet) for plaintext, _ in found)

    for value, expected in ((0, False), (1234, True), (77, False), (1234, True)):
        rig.set(f"fwmark={value}")
        for each, session in sessions:
            require(flows(each, session) == expected, f"with mark {value} data "
                    f"{'does not pass' if expected else 'passes'} a rule that lets only mark 1234 out")
    for each, _ in sessions:
        each.connect(why="responses must carry the mark")


@check("E6", "a mark set before the link is up is on the first datagram", up=False)
def mark_before_up(rig):
    _only_marked_may_leave(rig, 1234)
    rig.set("fwmark=1234")
    peer = rig.peer()
    rig.up()
    rig.stimulate(peer)
    session = peer.answer(peer.expect_initiation(2))
    peer.expect_data(session, 2)
    # The mark outlives a change of the port, which makes new sockets.
    rig.set("listen_port=51999")
    peer.daemon = (OUTER4, 51999)
    rig.stimulate(peer)
    peer.expect_data(session, 2, "the sockets of a new port must carry the mark")
