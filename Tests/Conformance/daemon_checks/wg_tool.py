"""`wg` as people use it: show, set, setconf, syncconf, addconf, showconf, its error texts, and very many peers."""

import ipaddress
import os
import re
import threading
import time

import commands
import uapi
from daemon import SOCKET_DIRECTORY
from daemon_checks.hexadecimal_keys import keys, to_base64
from daemon_checks.registry import check
from daemon_testbed import DaemonTestbed
from tunnel_pair import tunnel_pair
from uapi_connection import UAPIConnection, state
from waiting import expect, expect_equal, wait_until
from wireguard_tool import KeyPair, WireGuardInterface, generate_preshared_key

PEERS = [to_base64(key) for key in keys(8, seed=3)]
MANY = 24_000


def _interface(testbed: DaemonTestbed) -> WireGuardInterface:
    return testbed.interface(1, testbed.namespace("a"))


def _lines(text: str) -> "list[str]":
    return [line.rstrip() for line in text.strip().splitlines()]


@check("wg.show", "wg show: the picture, every single field, dump, all")
def show(testbed: DaemonTestbed) -> None:
    interface = _interface(testbed)
    pair, preshared = KeyPair.generate(), generate_preshared_key()
    name = interface.name
    interface.set("fwmark", "0xca6c", private_key=pair.private, listen_port=51820)
    interface.set_peer(PEERS[0], preshared_key=preshared, endpoint="192.0.2.1:51820",
                       allowed_ips="10.1.0.0/16,2001:db8:1::/48", persistent_keepalive=25)
    interface.set_peer(PEERS[1], endpoint="[2001:db8::1]:1")

    for field, expected in (
            ("public-key", pair.public), ("private-key", pair.private), ("listen-port", "51820"), ("fwmark", "0xca6c")):
        expect_equal(interface.show(field), expected, f"wg show {field}")
    for field, first, second in (
            ("peers", "", ""),
            ("preshared-keys", preshared, "(none)"),
            ("endpoints", "192.0.2.1:51820", "[2001:db8::1]:1"),
            ("latest-handshakes", "0", "0"),
            ("transfer", "0\t0", "0\t0"),
            ("persistent-keepalive", "25", "off")):
        expected = [(PEERS[0] + "\t" + first).strip(), (PEERS[1] + "\t" + second).strip()]
        expect_equal(sorted(interface.show(field).splitlines()), sorted(expected), f"wg show {field}")
    allowed = {key: sorted(prefixes) for key, prefixes in interface.show_by_peer("allowed-ips").items()}
    expect_equal(allowed, {PEERS[0]: ["10.1.0.0/16", "2001:db8:1::/48"], PEERS[1]: ["(none)"]}, "wg show allowed-ips")

    dump = [line.split("\t") for line in interface.show("dump").splitlines()]
    expect_equal(dump[0], [pair.private, pair.public, "51820", "0xca6c"], "the first line of wg show dump")
    rows = {row[0]: row[1:] for row in dump[1:]}
    expect_equal(sorted(rows), sorted(PEERS[:2]), "the peers of wg show dump")
    first = rows[PEERS[0]]
    expect_equal(sorted(first[2].split(",")), ["10.1.0.0/16", "2001:db8:1::/48"], "allowed IPs in wg show dump")
    expect_equal(first[:2] + first[3:], [preshared, "192.0.2.1:51820", "0", "0", "0", "25"], "a peer of wg show dump")
    second = ["(none)", "[2001:db8::1]:1", "(none)", "0", "0", "0", "off"]
    expect_equal(rows[PEERS[1]], second, "the other peer of wg show dump")

    picture = commands.run(["wg", "show", name]).stdout
    for line in (f"interface: {name}", f"  public key: {pair.public}", "  private key: (hidden)",
                 "  listening port: 51820", "  fwmark: 0xca6c", f"peer: {PEERS[0]}", "  preshared key: (hidden)",
                 "  endpoint: 192.0.2.1:51820", "  persistent keepalive: every 25 seconds", f"peer: {PEERS[1]}",
                 "  allowed ips: (none)"):
        expect(line in picture.splitlines(), f"wg show does not print {line!r}")
    for line in ("latest handshake", "transfer"):
        expect(line not in picture, f"wg show prints {line!r} before any traffic")
    expect(name in commands.run(["wg", "show", "interfaces"]).stdout.split(), "wg show interfaces does not list it")
    # `all` asks every daemon of the machine: in a mount namespace of its own there is no other one.
    script = ('touch "$1/$2" && mount --bind "$3/$2" "$1/$2" && mount --rbind "$1" "$3" && '
              "wg show all dump && wg show interfaces")
    folder = testbed.file("sockets")
    os.mkdir(folder)
    every = commands.run(["unshare", "--mount", "sh", "-c", script, "sh", folder, f"{name}.sock", SOCKET_DIRECTORY])
    lines = every.stdout.splitlines()
    expect_equal([line.split("\t")[0] for line in lines], [name] * 4, "the interfaces in wg show all dump")


@check("wg.live", "wg show after traffic: endpoint learned, handshake a moment ago, transfer on both ends alike")
def show_live(testbed: DaemonTestbed) -> None:
    pair = tunnel_pair(testbed)
    pair.set_endpoints(of_second="10.0.0.2:2")
    pair.expect_ping_through()
    pair.expect_pings(20, "on an idle tunnel")
    expect_equal(pair.second.endpoint(pair.keys_1.public), "10.0.0.1:1", "the endpoint learned")
    for end, other in ((pair.first, pair.keys_2), (pair.second, pair.keys_1)):
        ago = time.time() - end.latest_handshake(other.public)
        expect(-2 <= ago < 60, f"the latest handshake was {ago:.0f} s ago")
        picture = commands.run(["wg", "show", end.name]).stdout
        expect(re.search(r"latest handshake: (Now|\d+ seconds? ago|1 minute)", picture), "wg show names no handshake")
    expect(pair.first.transfer(pair.keys_2.public)[1] >= 20 * 128, "the bytes sent are too few")
    # What one end sent the other one received: nothing is lost here.
    wait_until(
        lambda: pair.first.transfer(pair.keys_2.public) == pair.second.transfer(pair.keys_1.public)[::-1],
        "both ends counting the same bytes", 5)


@check("wg.set", "wg set: each property, several peers at once, removal")
def set_properties(testbed: DaemonTestbed) -> None:
    interface = _interface(testbed)
    pair, preshared = KeyPair.generate(), generate_preshared_key()
    interface.set(
        *interface.peer_words(PEERS[0], allowed_ips="10.1.0.0/16", preshared_key=preshared),
        *interface.peer_words(PEERS[1], endpoint="192.0.2.9:9", persistent_keepalive=65535),
        *interface.peer_words(PEERS[2], allowed_ips="10.1.0.0/16,10.2.0.0/16"), private_key=pair.private,
        listen_port=777)
    expect_equal(interface.show("public-key"), pair.public, "the public key")
    expect_equal(sorted(interface.show("peers").split()), sorted(PEERS[:3]), "the peers")
    for key in PEERS[:2]:
        expect_equal(interface.show_by_peer("allowed-ips")[key], ["(none)"], "the allowed IPs without any")
    expect_equal(sorted(interface.show_by_peer("allowed-ips")[PEERS[2]]), ["10.1.0.0/16", "10.2.0.0/16"],
                 "the allowed IPs of the peer that named them last")
    interface.set("fwmark", "0x10")
    interface.set("peer", PEERS[1], "persistent-keepalive", "off", "peer", PEERS[0], "remove")
    expect_equal(interface.show_by_peer("persistent-keepalive")[PEERS[1]], ["off"], "the keepalive")
    expect_equal(interface.endpoint(PEERS[1]), "192.0.2.9:9", "the endpoint of a peer that was changed elsewhere")
    expect_equal(sorted(interface.show("peers").split()), sorted(PEERS[1:3]), "the peers after a removal")
    interface.set("fwmark", "off")
    expect_equal(interface.show("fwmark"), "off", "the fwmark")
    interface.set_peer(PEERS[2], allowed_ips="")
    expect_equal(interface.show_by_peer("allowed-ips")[PEERS[2]], ["(none)"], "the allowed IPs after they were emptied")
    interface.set(private_key="")
    expect_equal(interface.show("private-key"), "(none)", "the private key")


def _configuration(private: str, peers: "list[str]", port: int = 51820) -> str:
    text = f"[Interface]\nListenPort = {port}\nFwMark = 0x1\nPrivateKey = {private}\n"
    for key in peers:
        number = PEERS.index(key) + 1
        text += (f"\n[Peer]\nPublicKey = {key}\nAllowedIPs = 10.{number}.0.0/16\nEndpoint = 192.0.2.{number}:{number}\n"
                 f"PersistentKeepalive = {number}\n")
    return text


def _apply(verb: str, interface: WireGuardInterface, text: str) -> None:
    commands.run(["wg", verb, interface.name, "/dev/stdin"], input=text)


@check("wg.conf", "wg setconf, addconf, syncconf, showconf")
def configurations(testbed: DaemonTestbed) -> None:
    interface, private = _interface(testbed), KeyPair.generate().private

    def expect_peers(peers: "list[str]", when: str) -> None:
        expect_equal(sorted(interface.show("peers").split()), sorted(peers), f"the peers after {when}")
        for key in peers:
            number = PEERS.index(key) + 1
            expect_equal(
                interface.show_by_peer("allowed-ips")[key], [f"10.{number}.0.0/16"], f"allowed IPs after {when}")

    whole = _configuration(private, PEERS[:3])
    _apply("setconf", interface, whole)
    expect_peers(PEERS[:3], "setconf")
    sections = interface.showconf().split("\n[Peer]\n")
    wanted = whole.split("\n[Peer]\n")
    expect_equal(sorted(_lines(sections[0])), sorted(_lines(wanted[0])), "the interface in showconf")
    expect_equal(sorted(sorted(_lines(one)) for one in sections[1:]), sorted(sorted(_lines(one)) for one in wanted[1:]),
                 "the peers in showconf")
    _apply("addconf", interface, _configuration(private, PEERS[3:5]))
    expect_peers(PEERS[:5], "addconf")
    _apply("syncconf", interface, _configuration(private, PEERS[1:4], port=51821))
    expect_peers(PEERS[1:4], "syncconf")
    expect_equal(interface.show("listen-port"), "51821", "the port after syncconf")
    _apply("setconf", interface, _configuration(private, PEERS[6:7]))
    expect_peers(PEERS[6:7], "a second setconf")
    _apply("setconf", interface, "[Interface]\n")
    expect_equal(interface.show("peers"), "", "the peers after an empty setconf")
    expect_equal(interface.show("fwmark"), "off", "the fwmark after an empty setconf")


@check("wg.sync", "wg syncconf with what is set already leaves the session alone")
def syncconf_keeps_session(testbed: DaemonTestbed) -> None:
    pair = tunnel_pair(testbed)
    pair.expect_ping_through()
    path, transfer = pair.first.daemon.socket_path, pair.first.transfer(pair.keys_2.public)
    handshake = state(path).handshake_times
    for _ in range(3):
        _apply("syncconf", pair.first, pair.first.showconf())
        pair.expect_pings(5, "after syncconf")
        expect_equal(state(path).handshake_times, handshake, "the time of the latest handshake after syncconf")
    expect(pair.first.transfer(pair.keys_2.public)[1] > transfer[1], "the counters were reset")


@check("wg.errors", "wg's error texts come from the errno that the daemon answers")
def error_texts(testbed: DaemonTestbed) -> None:
    interface = _interface(testbed)
    interface.up()
    busy = testbed.enter(interface.namespace.udp_socket("0.0.0.0", 0)).getsockname()[1]
    for verb, text in (("set", None), ("setconf", f"[Interface]\nListenPort = {busy}\n"),
                       ("addconf", f"[Interface]\nListenPort = {busy}\n"),
                       ("syncconf", f"[Interface]\nListenPort = {busy}\n")):
        words = ["listen-port", str(busy)] if text is None else ["/dev/stdin"]
        outcome = commands.run(["wg", verb, interface.name, *words], input=text, check=False)
        expect(outcome.returncode != 0, f"wg {verb} with a busy port succeeds")
        expect(outcome.stderr.strip().endswith("Address already in use"), f"wg {verb} says {outcome.stderr.strip()!r}")
    outcome = commands.run(["wg", "set", testbed.name("9"), "listen-port", "1"], check=False)
    expect(outcome.returncode != 0, "wg set on an interface that does not exist succeeds")
    interface.daemon.expect_alive()


@check("wg.many", f"{MANY:,} peers load through wg setconf and are listed, while others are served", lasts=60)
def many_peers(testbed: DaemonTestbed) -> None:
    interface = _interface(testbed)
    interface.up()
    path, private = interface.daemon.socket_path, KeyPair.generate().private
    peers = [to_base64(key) for key in keys(MANY, seed=24)]
    address = ipaddress.ip_address("10.64.0.0")
    text = f"[Interface]\nPrivateKey = {private}\nListenPort = 51820\n" + "".join(
        f"[Peer]\nPublicKey = {key}\nAllowedIPs = {address + number}/32\n" for number, key in enumerate(peers))
    slowest, asked, failures, loaded = [0.0], [0], [], threading.Event()

    def ask() -> None:
        while not loaded.wait(0.05):
            started = time.monotonic()
            try:
                with UAPIConnection(path, 30) as connection:
                    connection.send("get=1\n\n")
                    uapi_end(connection)
            except (OSError, uapi.MalformedReply) as error:
                failures.append(f"{type(error).__name__} {error}")
                return
            slowest[0] = max(slowest[0], time.monotonic() - started)
            asked[0] += 1

    other = threading.Thread(target=ask)
    other.start()
    try:
        interface.setconf(text, seconds=60)
    finally:
        loaded.set()
        other.join()
    expect(not failures, f"another client was not answered while peers load: {failures[:1]}")
    expect(asked[0] > 0, "no other client was answered while peers load")
    listed = interface.show("dump", seconds=60).splitlines()[1:]
    expect_equal(len(listed), MANY, "the number of peers listed")
    expect({line.split("\t")[3] for line in listed} == {f"{address + number}/32" for number in range(MANY)},
           "the allowed IPs listed are others")
    expect_equal(len(state(path).peers), MANY, "the number of peers that get lists")
    interface.setconf("[Interface]\n", seconds=60)
    expect_equal(state(path).peers, [], "the peers after an empty setconf")


def uapi_end(connection: UAPIConnection) -> None:
    """Reads a reply of any size to its end, without keeping it."""
    tail = b""
    while not tail.endswith(b"\n\n"):
        received = connection.socket.recv(1 << 20)
        if not received:
            raise uapi.MalformedReply("the connection ended inside a reply")
        tail = (tail + received)[-16:]
