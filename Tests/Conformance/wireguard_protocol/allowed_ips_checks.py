"""A1 to A3: allowed IPs as they show on the wire."""

import time

import uapi
from scripted_peer import MessageType
from scripted_peer.packets import echo_reply

from .registry import check, require
from .rig import TUNNEL4, TUNNEL6


def _peers(rig, *allowed_of_each):
    """Peers with a session each, all behind one address with a socket of their own."""
    peers = [rig.peer(address="10.77.0.2", number=10 + number, allowed=list(allowed))
             for number, allowed in enumerate(allowed_of_each)]
    for peer in peers:
        peer.session = peer.connect()
    return peers


def _route(rig, peers, destination):
    """Which of the peers gets a packet for that address; None when none does."""
    source = TUNNEL4 if ":" not in destination else TUNNEL6
    for peer in peers:
        peer.drain()
    packet = echo_reply(source, destination, b"whither")
    rig.inject(packet)
    deadline = time.monotonic() + 0.4
    while time.monotonic() < deadline:
        for peer in peers:
            datagram = peer.wait_for(MessageType.DATA, 0.01)
            if datagram:
                return peer
    return None


def _require_routes(rig, peers, table):
    for destination, expected in table.items():
        found = _route(rig, peers, destination)
        name = "nobody" if found is None else f"peer {peers.index(found)}"
        require(found is (None if expected is None else peers[expected]),
                f"{destination} went to {name}, not to {'nobody' if expected is None else f'peer {expected}'}")


def _require_sources(rig, peers, table):
    """The same table decides which peer may send from an address."""
    capture = rig.capture()
    for source, owner in table.items():
        target = TUNNEL4 if ":" not in source else TUNNEL6
        packets = [echo_reply(source, target, b"incoming%d" % number) for number in range(len(peers))]
        for peer, packet in zip(peers, packets):
            peer.send(peer.session.seal(packet))
        wanted = [] if owner is None else [packets[owner]]
        forbidden = [packet for number, packet in enumerate(packets) if number != owner]
        if wanted:
            capture.expect_among(wanted, forbidden, f"only peer {owner} may send from {source}")
        else:
            capture.expect_nothing(f"nobody may send from {source}")
    capture.close()


@check("A1", "the longest prefix decides, host bits are ignored, /0 and /32 are prefixes")
def longest_prefix(rig):
    peers = _peers(
        rig, ["10.1.2.3/8", "fd00:1:2:3::4/16"], ["10.9.5.0/24", "fd00:9:5::/48"], ["10.9.5.77/32", "fd00:9:5::77/128"],
        ["0.0.0.0/0", "::/0"], ["10.9.5.64/26", "fd00:9:5:0:8000::/65"])
    table = {
        "10.200.0.1": 0, "10.9.4.255": 0, "10.9.6.0": 0, "10.9.5.1": 1, "10.9.5.63": 1, "10.9.5.64": 4,
        "10.9.5.76": 4, "10.9.5.77": 2, "10.9.5.78": 4, "10.9.5.127": 4, "10.9.5.128": 1, "11.0.0.1": 3,
        "9.255.255.254": 3, "192.0.2.1": 3,
        "fd00:8::1": 0, "fd00:9:4:ffff::1": 0, "fd00:9:5::1": 1, "fd00:9:5::77": 2, "fd00:9:5:0:8000::1": 4,
        "fd00:9:5:0:7fff::1": 1, "fd00:9:5:1::1": 1, "fd01::1": 3, "2001:db8::1": 3,
    }
    _require_routes(rig, peers, table)
    _require_sources(rig, peers, table)
    listed = {value for lines in uapi.get(rig.daemon.socket_path).peers for key, value in lines if key == "allowed_ip"}
    require({"10.0.0.0/8", "fd00::/16", "0.0.0.0/0", "::/0"} <= listed, f"host bits are not masked: {sorted(listed)}")


@check("A2", "a prefix given to another peer moves, and comes back")
def moving(rig):
    peers = _peers(rig, ["10.1.0.0/16", "fd01::/32"], ["10.2.0.0/16", "fd02::/32"])
    _require_routes(rig, peers, {"10.1.0.1": 0, "10.2.0.1": 1, "fd01::1": 0, "fd02::1": 1, "10.3.0.1": None})
    rig.set_peer(peers[1], "allowed_ip=10.1.0.0/16", "allowed_ip=fd01::/32")
    table = {"10.1.0.1": 1, "10.2.0.1": 1, "fd01::1": 1}
    _require_routes(rig, peers, table)
    _require_sources(rig, peers, table)
    rig.set_peer(peers[0], "allowed_ip=10.1.0.0/16")
    table = {"10.1.0.1": 0, "fd01::1": 1}
    _require_routes(rig, peers, table)
    _require_sources(rig, peers, table)


@check("A2", "replace_allowed_ips clears first, removal of a peer removes all")
def replacing(rig):
    peers = _peers(rig, ["10.0.0.0/8", "fd00::/8"], ["10.2.0.0/16", "10.3.0.0/16", "fd02::/32"])
    rig.set_peer(peers[1], "replace_allowed_ips=true", "allowed_ip=10.4.0.0/16")
    table = {"10.2.0.1": 0, "10.3.0.1": 0, "fd02::1": 0, "10.4.0.1": 1}
    _require_routes(rig, peers, table)
    _require_sources(rig, peers, table)
    rig.remove(peers[1])
    _require_routes(rig, peers, {"10.4.0.1": 0})
    rig.set_peer(peers[0], "replace_allowed_ips=true")
    _require_routes(rig, peers, {"10.4.0.1": None, "fd02::1": None})


@check("A2", "-prefix removes a prefix, only from its owner")
def removing(rig):
    peers = _peers(rig, ["10.1.0.0/16", "fd01::/32"], ["10.2.0.0/16"])
    rig.set_peer(peers[1], "allowed_ip=-10.1.0.0/16", "allowed_ip=-fd01::/32")
    _require_routes(rig, peers, {"10.1.0.1": 0, "fd01::1": 0})
    rig.set_peer(peers[0], "allowed_ip=-10.1.0.0/16")
    _require_routes(rig, peers, {"10.1.0.1": None, "fd01::1": 0, "10.2.0.1": 1})
    rig.set_peer(peers[1], "allowed_ip=-10.2.0.0/24")
    _require_routes(rig, peers, {"10.2.0.1": 1})


@check("A3", "130,560 prefixes on one peer are loaded and listed in seconds, in a stable order, and route")
def many_prefixes(rig):
    peers = _peers(rig, ["10.9.0.10/32"], ["10.9.0.11/32"])
    prefixes = [f"allowed_ip={11 + c}.{a}.{b}.0/24" for a in range(255) for b in range(256) for c in range(2)]
    began = time.monotonic()
    rig.set_peer(peers[0], *prefixes)
    first, second = (uapi.get(rig.daemon.socket_path).peers for _ in range(2))
    spent = time.monotonic() - began
    require(spent < 30, f"loading and listing twice took {spent:.0f} s")
    require(first == second, "two listings differ")
    listed = [f"{key}={value}" for lines in first for key, value in lines if key == "allowed_ip"]
    require(set(prefixes) <= set(listed) and len(listed) == len(prefixes) + 2, f"{len(listed)} prefixes are listed")
    rig.set_peer(peers[1], "allowed_ip=11.7.7.128/25")
    table = {"11.7.7.1": 0, "11.7.7.129": 1, "12.254.255.9": 0, "11.255.0.1": None}
    _require_routes(rig, peers, table)
    _require_sources(rig, peers, table)
