"""U2, U3, U7, U8: what the configuration socket sets and lists."""

import time

import commands
import uapi
from daemon_checks.hexadecimal_keys import ZERO, clamped, from_base64, keys, to_base64
from daemon_checks.registry import check
from daemon_testbed import DaemonTestbed
from tunnel_pair import tunnel_pair
from uapi_connection import apply, state
from waiting import expect, expect_equal, wait_until

PEER_A, PEER_B, PEER_C, PRIVATE, SECRET = keys(5, seed=2)
INITIATION_SIZE = 148


def _path(testbed: DaemonTestbed) -> str:
    return testbed.interface(1, testbed.namespace("a")).daemon.socket_path


@check("U2.device", "private_key, listen_port, fwmark: set, listed, removed by zero")
def device_keys(testbed: DaemonTestbed) -> None:
    path = _path(testbed)
    fresh = state(path)
    for key in ("private_key", "fwmark"):
        expect(key not in fresh.device, f"a fresh device lists {key}")
    expect_equal(fresh.peers, [], "the peers of a fresh device")
    unclamped = "ff" + PRIVATE[2:62] + "ff"
    for key in (PRIVATE, unclamped):
        apply(path, f"private_key={key}")
        expect_equal(state(path).device.get("private_key"), clamped(key), "private_key, clamped")
    for mark in (1, 51820, 0x80000000, 0xFFFFFFFF):
        apply(path, f"fwmark={mark}")
        expect_equal(state(path).device.get("fwmark"), str(mark), "fwmark")
    for port in (1, 51820, 65535):
        apply(path, f"listen_port={port}")
        expect_equal(state(path).device.get("listen_port"), str(port), "listen_port")
    apply(path, "fwmark=0", f"private_key={ZERO}")
    after = state(path).device
    for key in ("private_key", "fwmark"):
        expect(key not in after, f"{key} is listed after it was set to zero")


@check("U2.peer", "peer keys: set, listed, changed one by one")
def peer_keys(testbed: DaemonTestbed) -> None:
    path = _path(testbed)
    apply(path, f"public_key={PEER_A}", "protocol_version=1", f"preshared_key={SECRET}", "endpoint=192.0.2.7:51820",
          "persistent_keepalive_interval=25", "allowed_ip=10.1.0.0/16", "allowed_ip=2001:db8:1::/48")
    whole = {
        "public_key": PEER_A, "preshared_key": SECRET, "endpoint": "192.0.2.7:51820",
        "persistent_keepalive_interval": "25", "allowed_ip": ["10.1.0.0/16", "2001:db8:1::/48"]}
    _expect_peer(path, whole)
    for line, key, value in (
            ("persistent_keepalive_interval=65535", "persistent_keepalive_interval", "65535"),
            ("persistent_keepalive_interval=0", "persistent_keepalive_interval", "0"),
            (f"preshared_key={ZERO}", "preshared_key", ZERO),
            ("endpoint=[2001:db8::9]:9", "endpoint", "[2001:db8::9]:9"),
            ("endpoint=203.0.113.255:65535", "endpoint", "203.0.113.255:65535")):
        apply(path, f"public_key={PEER_A}", line)
        whole[key] = value
        _expect_peer(path, whole)
    apply(path, f"public_key={PEER_A}")
    _expect_peer(path, whole)


def _expect_peer(path: str, expected: dict) -> None:
    listed = state(path).peer(expected["public_key"])
    for key, value in expected.items():
        actual = listed.get(key)
        if key == "allowed_ip":
            actual, value = sorted(actual), sorted(value)
        expect_equal(actual, value, key)


@check("U2.flags", "replace_peers, remove, update_only, replace_allowed_ips")
def flags(testbed: DaemonTestbed) -> None:
    path = _path(testbed)
    apply(path, f"public_key={PEER_A}", "allowed_ip=10.1.0.0/16", f"public_key={PEER_B}", "allowed_ip=10.2.0.0/16")
    expect_equal(sorted(state(path).public_keys), sorted([PEER_A, PEER_B]), "two peers")
    apply(path, f"public_key={PEER_C}", "update_only=true", "allowed_ip=10.3.0.0/16")
    expect_equal(sorted(state(path).public_keys), sorted([PEER_A, PEER_B]), "the peers after update_only")
    apply(path, f"public_key={PEER_C}", "remove=true")
    expect_equal(sorted(state(path).public_keys), sorted([PEER_A, PEER_B]), "the peers after a removal")
    apply(path, f"public_key={PEER_B}", "update_only=true", "persistent_keepalive_interval=7", "allowed_ip=10.4.0.0/16")
    _expect_peer(path, {"public_key": PEER_B, "persistent_keepalive_interval": "7",
                        "allowed_ip": ["10.2.0.0/16", "10.4.0.0/16"]})
    apply(path, f"public_key={PEER_B}", "replace_allowed_ips=true", "allowed_ip=10.5.0.0/16")
    _expect_peer(path, {"public_key": PEER_B, "persistent_keepalive_interval": "7", "allowed_ip": ["10.5.0.0/16"]})
    apply(path, f"public_key={PEER_B}", "replace_allowed_ips=true")
    _expect_peer(path, {"public_key": PEER_B, "allowed_ip": []})
    # The second entry of a key that was removed above it is a new peer.
    apply(path, f"public_key={PEER_A}", "remove=true", f"public_key={PEER_A}", "persistent_keepalive_interval=3")
    _expect_peer(path, {"public_key": PEER_A, "persistent_keepalive_interval": "3", "allowed_ip": []})
    apply(path, f"public_key={PEER_A}", "remove=true")
    expect_equal(sorted(state(path).public_keys), [PEER_B], "the peers after a removal")
    apply(path, "fwmark=3", "replace_peers=true", f"public_key={PEER_C}", "allowed_ip=10.6.0.0/16")
    expect_equal(sorted(state(path).public_keys), [PEER_C], "the peers after replace_peers with one")
    apply(path, "replace_peers=true")
    after = state(path)
    expect_equal(after.peers, [], "the peers after replace_peers alone")
    expect_equal(after.device.get("fwmark"), "3", "fwmark")


@check("U2.allowed", "allowed_ip: host bits masked, moved between peers, /0, removal by a minus sign")
def allowed_ips(testbed: DaemonTestbed) -> None:
    path = _path(testbed)

    def expect_allowed(key: str, *prefixes: str) -> None:
        expect_equal(sorted(state(path).peer(key)["allowed_ip"]), sorted(prefixes), "the allowed IPs")

    apply(path, f"public_key={PEER_A}", "allowed_ip=10.1.2.3/16", "allowed_ip=2001:db8:1:2::3/48",
          "allowed_ip=0.0.0.0/0", "allowed_ip=::/0", "allowed_ip=10.9.9.9/32", "allowed_ip=2001:db8::9/128")
    expect_allowed(PEER_A, "10.1.0.0/16", "2001:db8:1::/48", "0.0.0.0/0", "::/0", "10.9.9.9/32", "2001:db8::9/128")
    apply(path, f"public_key={PEER_A}", "allowed_ip=10.1.0.0/16")
    expect_allowed(PEER_A, "10.1.0.0/16", "2001:db8:1::/48", "0.0.0.0/0", "::/0", "10.9.9.9/32", "2001:db8::9/128")
    apply(path, f"public_key={PEER_B}", "allowed_ip=10.1.200.200/16", "allowed_ip=::/0")
    expect_allowed(PEER_A, "2001:db8:1::/48", "0.0.0.0/0", "10.9.9.9/32", "2001:db8::9/128")
    expect_allowed(PEER_B, "10.1.0.0/16", "::/0")
    # A length of its own is a prefix of its own.
    apply(path, f"public_key={PEER_B}", "allowed_ip=10.9.9.0/24")
    expect_allowed(PEER_A, "2001:db8:1::/48", "0.0.0.0/0", "10.9.9.9/32", "2001:db8::9/128")
    apply(path, f"public_key={PEER_B}", "remove=true")
    apply(path, f"public_key={PEER_C}", "allowed_ip=10.1.0.0/16")
    expect_allowed(PEER_C, "10.1.0.0/16")


@check("U2.minus", "allowed_ip=- removes a prefix from its owner only")
def minus(testbed: DaemonTestbed) -> None:
    path = _path(testbed)
    apply(path, f"public_key={PEER_A}", "allowed_ip=10.1.0.0/16", "allowed_ip=10.2.0.0/16", "allowed_ip=2001:db8::/32",
          f"public_key={PEER_B}", "allowed_ip=10.3.0.0/16")
    apply(path, f"public_key={PEER_A}", "allowed_ip=-10.1.7.7/16", "allowed_ip=-2001:db8::/32")
    expect_equal(state(path).peer(PEER_A)["allowed_ip"], ["10.2.0.0/16"], "the allowed IPs after a removal")
    apply(path, f"public_key={PEER_A}", "allowed_ip=-10.3.0.0/16", "allowed_ip=-10.2.0.0/24",
          "allowed_ip=-10.99.0.0/16")
    expect_equal(state(path).peer(PEER_A)["allowed_ip"], ["10.2.0.0/16"], "the allowed IPs of the peer named")
    expect_equal(state(path).peer(PEER_B)["allowed_ip"], ["10.3.0.0/16"], "the allowed IPs of the owner")
    apply(path, f"public_key={PEER_C}", "update_only=true", "allowed_ip=-10.2.0.0/16")
    expect_equal(sorted(state(path).public_keys), sorted([PEER_A, PEER_B]), "the peers")
    expect_equal(state(path).peer(PEER_A)["allowed_ip"], ["10.2.0.0/16"], "the allowed IPs of the peer named")


@check("U2.scope", "a link-local endpoint keeps its scope and is reached over it")
def scoped_endpoint(testbed: DaemonTestbed) -> None:
    pair = tunnel_pair(testbed, endpoints=False)
    first, second = pair.first.namespace, pair.second.namespace

    def link_local(namespace) -> str:
        return wait_until(
            lambda: [word.split("/")[0] for word in namespace.ip(
                "-6", "address", "show", "dev", "under", "scope", "link", "-tentative").split()
                if word.startswith("fe80:")], "a link-local address", 10)[0]

    link_local(first)
    endpoint = f"[{link_local(second)}%under]:2"
    path = pair.first.daemon.socket_path
    apply(path, f"public_key={from_base64(pair.keys_2.public)}", f"endpoint={endpoint}")
    expect_equal(state(path).peers[0].get("endpoint"), endpoint, "the endpoint as listed")
    pair.expect_ping_through()
    expect_equal(state(path).peers[0].get("endpoint"), endpoint, "the endpoint as listed after a handshake")
    learned = state(pair.second.daemon.socket_path).peers[0].get("endpoint", "")
    expect_equal(learned, f"[{link_local(first)}%under]:1", "the endpoint that the other side learned")


@check("U3", "a peer that was never heard of: no handshake, no bytes, a preshared key of zeros")
def fresh_peer(testbed: DaemonTestbed) -> None:
    path = _path(testbed)
    apply(path, f"public_key={PEER_A}")
    peer = state(path).peer(PEER_A)
    for key, value in (("preshared_key", ZERO), ("last_handshake_time_sec", "0"), ("last_handshake_time_nsec", "0"),
                       ("rx_bytes", "0"), ("tx_bytes", "0"), ("persistent_keepalive_interval", "0")):
        expect_equal(peer.get(key), value, key)
    expect("endpoint" not in peer, "a peer without endpoint lists one")
    expect_equal(peer.get("protocol_version", "1"), "1", "protocol_version")


@check("U3.counters", "after traffic: bytes counted, and the handshake's time is UNIX time")
def counters(testbed: DaemonTestbed) -> None:
    pair = tunnel_pair(testbed)
    started = time.time()
    pair.expect_ping_through()
    ended = time.time()
    for end in (pair.first, pair.second):
        peer = state(end.daemon.socket_path).peers[0]
        seconds = int(peer["last_handshake_time_sec"]) + int(peer["last_handshake_time_nsec"]) / 1e9
        expect(started - 1 <= seconds <= ended + 1, f"the handshake was at {seconds}, it is {ended} now")
        expect(0 <= int(peer["last_handshake_time_nsec"]) < 10**9, "nanoseconds beyond a second")
        expect(int(peer["rx_bytes"]) > 92 and int(peer["tx_bytes"]) > 92, "bytes are not counted")


@check("U7.set", "a keepalive interval set on a live interface sends one at once")
def keepalive_set(testbed: DaemonTestbed) -> None:
    interface, sink, endpoint = _sink(testbed)
    interface.set(private_key=to_base64(PRIVATE), listen_port=1)
    interface.up()
    apply(interface.daemon.socket_path, f"public_key={PEER_A}", f"endpoint={endpoint}")
    _expect_silence(sink, "without a keepalive interval")
    apply(interface.daemon.socket_path, f"public_key={PEER_A}", "persistent_keepalive_interval=25")
    _expect_initiation(sink, "the interval was set")


@check("U7.up", "a keepalive interval set before sends one at link up")
def keepalive_up(testbed: DaemonTestbed) -> None:
    interface, sink, endpoint = _sink(testbed)
    interface.set(private_key=to_base64(PRIVATE), listen_port=1)
    apply(interface.daemon.socket_path, f"public_key={PEER_A}", f"endpoint={endpoint}",
          "persistent_keepalive_interval=25")
    _expect_silence(sink, "while the link is down")
    interface.up()
    _expect_initiation(sink, "the link came up")


@check("U7.key", "nothing is sent without a private key, and at once when it is set")
def keepalive_key(testbed: DaemonTestbed) -> None:
    interface, sink, endpoint = _sink(testbed)
    apply(interface.daemon.socket_path, f"public_key={PEER_A}", f"endpoint={endpoint}",
          "persistent_keepalive_interval=1")
    interface.up()
    _expect_silence(sink, "without a private key")
    apply(interface.daemon.socket_path, f"private_key={PRIVATE}")
    _expect_initiation(sink, "the private key was set")


def _sink(testbed: DaemonTestbed):
    namespace = testbed.namespace("a")
    sink = testbed.enter(namespace.udp_socket("127.0.0.1", 0, seconds=5))
    return testbed.interface(1, namespace), sink, f"127.0.0.1:{sink.getsockname()[1]}"


def _expect_silence(sink, when: str) -> None:
    sink.settimeout(2)
    try:
        data = sink.recv(65536)
    except TimeoutError:
        return
    expect(False, f"{len(data)} bytes were sent {when}")


def _expect_initiation(sink, why: str) -> None:
    # Well before 5 s, after which a timer might have done it.
    sink.settimeout(4)
    try:
        data = sink.recv(65536)
    except TimeoutError:
        expect(False, f"nothing was sent within 4 s after {why}")
    expect(len(data) == INITIATION_SIZE and data[:4] == b"\x01\x00\x00\x00",
           f"{len(data)} bytes were sent, not an initiation")


@check("U8", "peers are listed in the order of their creation")
def creation_order(testbed: DaemonTestbed) -> None:
    interface = testbed.interface(1, testbed.namespace("a"))
    path, expected = interface.daemon.socket_path, keys(64, seed=8)
    apply(path, *[line for number, key in enumerate(expected[:40]) for line in (
        f"public_key={key}", f"allowed_ip=10.{number}.0.0/16")])
    for key in expected[40:]:
        apply(path, f"public_key={key}")
    expect(state(path).public_keys == expected, "the peers are not listed in the order of their creation")
    # Changing one does not move it; removing and adding it again does.
    apply(path, f"public_key={expected[5]}", "persistent_keepalive_interval=5")
    expect(state(path).public_keys == expected, "changing a peer moves it in the list")
    apply(path, f"public_key={expected[5]}", "remove=true")
    apply(path, f"public_key={expected[5]}")
    expected.append(expected.pop(5))
    expect(state(path).public_keys == expected, "a peer that was added again is not the last one")
    listed = commands.run(["wg", "show", interface.name, "peers"]).stdout.split()
    expect(listed == [to_base64(key) for key in expected], "wg lists the peers in another order")


@check("U8.allowed", "allowed IPs are listed in a stable order")
def stable_order(testbed: DaemonTestbed) -> None:
    path = _path(testbed)
    apply(path, f"public_key={PEER_A}", *[f"allowed_ip=10.{(number * 37) % 256}.0.0/16" for number in range(256)],
          *[f"allowed_ip=2001:db8:{(number * 53) % 256:x}::/48" for number in range(256)])
    first = uapi.get(path).lines
    expect_equal(len(state(path).peer(PEER_A)["allowed_ip"]), 512, "the number of allowed IPs")
    for _ in range(5):
        expect(uapi.get(path).lines == first, "two gets list different orders")
