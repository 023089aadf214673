"""B6, B7, B11, B15, B20, B22, B29: handshakes, their times and their keys."""

import base64
import os
import re
import subprocess
import time

import network_namespace
from daemon_checks.hexadecimal_keys import from_base64
from daemon_checks.registry import check
from daemon_testbed import DaemonTestbed
from scripted_peer.peer import ScriptedPeer
from scripted_peer.primitives import KeyPair as ScriptedKeyPair
from scripted_peer.sockets import PeerSocket
from scripted_peer.timestamps import TAI64N
from tunnel_pair import ADDRESS_1, ADDRESS_2, TunnelPair, join, tunnel_pair
from uapi_connection import UAPIConnection, apply
from udp_forwarder import UDPForwarder
from waiting import CheckFailure, expect, expect_equal, pause, wait_until
from wireguard_tool import KeyPair, generate_preshared_key

REJECT_AFTER_TIME = 180
FAKETIME = "/usr/lib/{}-linux-gnu/faketime/libfaketimeMT.so.1"


@check("B6", "what is set before link up, on a connection that stays open, holds")
def set_before_up(testbed: DaemonTestbed) -> None:
    first, second = testbed.namespace("a"), testbed.namespace("b")
    join(first, second)
    pair = TunnelPair(testbed.interface(1, first), testbed.interface(2, second))
    pair.second.add_address(f"{ADDRESS_2}/24")
    pair.second.set(*pair.second.peer_words(pair.keys_1.public, allowed_ips=f"{ADDRESS_1}/32", endpoint="10.0.0.1:1"),
                    private_key=pair.keys_2.private, listen_port=2)
    pair.second.up()
    with UAPIConnection(pair.first.daemon.socket_path) as connection:
        connection.send(
            f"set=1\nprivate_key={from_base64(pair.keys_1.private)}\nlisten_port=1\n"
            f"public_key={from_base64(pair.keys_2.public)}\nallowed_ip={ADDRESS_2}/32\n\n")
        pair.first.add_address(f"{ADDRESS_1}/24")
        pair.first.up()
        pair.expect_ping_back()
        expect_equal(connection.receive().errno, 0, "errno")


@check("B7", "after standing still for longer than a session lives, it works again at once", lasts=200)
def long_stop(testbed: DaemonTestbed) -> None:
    pair = tunnel_pair(testbed)
    pair.expect_ping_through()
    pid = pair.first.daemon.pid
    os.kill(pid, 19)
    testbed.on_exit(_continue, pid)
    pause(REJECT_AFTER_TIME + 6)
    os.kill(pid, 18)
    TunnelPair.expect_reached(pair.first.namespace, ADDRESS_2, 10)
    pair.expect_ping_back()


def _continue(pid: int) -> None:
    try:
        os.kill(pid, 18)
    except ProcessLookupError:
        pass


@check("B7.boot", "a boot clock that is a century ahead of the monotonic one confuses no timer", lasts=20)
def far_boot_clock(testbed: DaemonTestbed) -> None:
    first, second = testbed.namespace("a"), testbed.namespace("b")
    join(first, second)
    with testbed.prefixed("unshare", "--time", "--boottime", "3000000000", "--"):
        interface = testbed.interface(1, first)
    with open(f"/proc/{interface.daemon.pid}/timens_offsets") as file:
        offsets = dict(line.split()[:2] for line in file)
    expect_equal(offsets.get("boottime"), "3000000000", "the offset of the daemon's boot clock")
    pair = TunnelPair(interface, testbed.interface(2, second))
    pair.configure()
    pair.set_endpoints("10.0.0.2:2", "10.0.0.1:1")
    pair.expect_ping_through()
    pair.first.set_peer(pair.keys_2.public, persistent_keepalive=1)
    sent = pair.first.transfer(pair.keys_2.public)[1]
    busy = _processor_seconds(interface.daemon.pid)
    pause(6)
    keepalives = (pair.first.transfer(pair.keys_2.public)[1] - sent) // 32
    expect(4 <= keepalives <= 9, f"{keepalives} keepalives in 6 s at an interval of 1 s")
    busy = _processor_seconds(interface.daemon.pid) - busy
    expect(busy < 3, f"the daemon used {busy:.1f} s of processor time in 6 s of idling")
    # Retransmission: an initiation that nobody answers is repeated after 5 s and a third.
    sink = testbed.enter(first.udp_socket("127.0.0.1", 0, seconds=10))
    apply(interface.daemon.socket_path, f"public_key={from_base64(KeyPair.generate().public)}",
          f"endpoint=127.0.0.1:{sink.getsockname()[1]}", "persistent_keepalive_interval=25")
    arrivals = []
    for _ in range(2):
        try:
            sink.recv(65536)
        except TimeoutError:
            raise CheckFailure(f"{len(arrivals)} initiations within 10 s, expected 2") from None
        arrivals.append(time.monotonic())
    expect(3 <= arrivals[1] - arrivals[0] <= 9, f"the initiation was repeated after {arrivals[1] - arrivals[0]:.1f} s")


def _processor_seconds(pid: int) -> float:
    with open(f"/proc/{pid}/stat") as file:
        words = file.read().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


@check("B11", "the latest handshake is 0 before the first and UNIX time after it")
def handshake_time(testbed: DaemonTestbed) -> None:
    pair = tunnel_pair(testbed)
    for end, other in ((pair.first, pair.keys_2), (pair.second, pair.keys_1)):
        expect_equal(end.latest_handshake(other.public), 0, "the latest handshake before the first")
    before = int(time.time())
    pair.expect_ping_through()
    for end, other in ((pair.first, pair.keys_2), (pair.second, pair.keys_1)):
        at = end.latest_handshake(other.public)
        expect(before - 1 <= at <= time.time() + 1, f"the latest handshake was at {at}, now it is {time.time():.0f}")


@check("B15", "both ends with keepalive 1 under traffic: one rekey after 120 s, not one packet lost", lasts=160)
def one_rekey(testbed: DaemonTestbed) -> None:
    pair = tunnel_pair(testbed)
    pair.expect_ping_through()
    pair.first.set_peer(pair.keys_2.public, persistent_keepalive=1)
    pair.second.set_peer(pair.keys_1.public, persistent_keepalive=1)
    # What the ends began at the same time has settled.
    pause(12)
    settled = pair.first.latest_handshake(pair.keys_2.public)
    # Ten seconds beyond the rekey, however early in a second the handshake was.
    seconds = max(110, 132 - int(time.time() - settled))
    log = testbed.file("ping")
    with open(log, "wb") as file:
        ping = testbed.start(pair.first.namespace, "ping", "-n", "-i", "0.01", "-w", str(seconds), ADDRESS_2,
                             stdout=file, stderr=file)
    seen = {1: [settled], 2: [pair.second.latest_handshake(pair.keys_1.public)]}
    deadline = time.monotonic() + seconds + 30
    while ping.poll() is None and time.monotonic() < deadline:
        for number, end, other in ((1, pair.first, pair.keys_2), (2, pair.second, pair.keys_1)):
            at = end.latest_handshake(other.public)
            if at != seen[number][-1]:
                seen[number].append(at)
        pause(0.5)
    with open(log) as file:
        text = file.read()
    answered = [int(number) for number in re.findall(r"icmp_seq=(\d+) ttl", text)]
    sent = int(re.search(r"(\d+) packets transmitted", text).group(1))
    lost = sorted(set(range(1, sent + 1)) - set(answered))
    # The last one may have been on its way when the time was over.
    expect(lost in ([], [sent]), f"of {sent} pings {len(lost)} were lost, the first of them number {lost[:1]}")
    expect(sent > 10 * seconds, f"only {sent} pings in {seconds} s")
    for number, times in seen.items():
        gaps = [later - earlier for earlier, later in zip(times, times[1:])]
        # A second per end of slack for the rounding of the times shown.
        expect(len(gaps) == 1 and 118 <= gaps[0] <= 128,
               f"end {number} saw handshakes after {gaps} s, expected one after 120 s")


@check("B20", "a changed preshared key leaves the session alone and rules the next handshake")
def preshared_key_changes(testbed: DaemonTestbed) -> None:
    pair = tunnel_pair(testbed)
    pair.expect_ping_through()
    ping = testbed.start(pair.first.namespace, "ping", "-q", "-i", "0.02", "-c", "100", "-W", "3", ADDRESS_2,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    for _ in range(3):
        key = generate_preshared_key()
        pair.first.set_peer(pair.keys_2.public, preshared_key=key)
        pair.second.set_peer(pair.keys_1.public, preshared_key=key)
    output, _ = ping.communicate(timeout=60)
    expect("100 packets transmitted, 100 received" in output, f"the session suffered: {output.splitlines()[-2:]}")
    _new_handshake(pair)
    pair.expect_ping_through()
    # On one end only, first the one that answers and then the one that asks.
    for end, other in ((pair.second, pair.keys_1), (pair.first, pair.keys_2)):
        end.set_peer(other.public, preshared_key=generate_preshared_key())
        pair.expect_pings(5, "in the session that preceded the change of one end's preshared key")
        _new_handshake(pair)
        result = pair.first.namespace.ping(ADDRESS_2, "-i", "0.5", count=8, seconds=1)
        expect(not result.answered, "pings are answered although the ends have different preshared keys")
        key = generate_preshared_key()
        pair.first.set_peer(pair.keys_2.public, preshared_key=key)
        pair.second.set_peer(pair.keys_1.public, preshared_key=key)
        pair.expect_ping_through()


def _new_handshake(pair: TunnelPair) -> None:
    """Makes end 1 forget its sessions: its next packet begins a handshake, with the preshared key it has now."""
    preshared = pair.first.show_by_peer("preshared-keys")[pair.keys_2.public][0]
    pair.first.remove_peer(pair.keys_2.public)
    pair.first.set_peer(
        pair.keys_2.public, allowed_ips=f"{ADDRESS_2}/32", endpoint="10.0.0.2:2", preshared_key=preshared)


@check("B22.300ms", "handshakes over a path of 300 ms each way")
def slow_path(testbed: DaemonTestbed) -> None:
    _expect_works_with_delay(testbed, 0.3)


@check("B22.2s", "handshakes over a path of 2 s each way", lasts=30)
def very_slow_path(testbed: DaemonTestbed) -> None:
    _expect_works_with_delay(testbed, 2.0)


def _expect_works_with_delay(testbed: DaemonTestbed, delay: float) -> None:
    pair, _ = forwarded_pair(testbed, delay=delay)
    for namespace, destination in ((pair.first.namespace, ADDRESS_2), (pair.second.namespace, ADDRESS_1)):
        # Handshake and ping need two round trips; one ping is enough, for the packet that waits for keys is not lost.
        result = namespace.ping(destination, count=1, seconds=4 * delay + 6)
        expect(result.answered, f"a ping over a path of {delay:g} s each way is not answered: {result.summary}")
    handshake = pair.first.latest_handshake(pair.keys_2.public)
    result = pair.first.namespace.ping(ADDRESS_2, "-i", "0.2", count=10, seconds=2 * delay + 3)
    expect_equal(result.received, 10, "the number of ten pings answered")
    expect_equal(pair.first.latest_handshake(pair.keys_2.public), handshake, "the latest handshake")


def forwarded_pair(testbed: DaemonTestbed, **link) -> "tuple[TunnelPair, UDPForwarder]":
    """A pair that reaches each other only through a forwarder in a third namespace; only end 1 knows an endpoint."""
    first, second, middle = testbed.namespace("a"), testbed.namespace("b"), testbed.namespace("m")
    for namespace, number in ((first, 1), (second, 2)):
        network_namespace.connect(namespace, "under", middle, f"under{number}")
        namespace.add_address("under", f"10.0.{number}.1/24")
        middle.add_address(f"under{number}", f"10.0.{number}.254/24")
    pair = TunnelPair(testbed.interface(1, first), testbed.interface(2, second))
    pair.configure()
    front, back = middle.udp_socket("10.0.1.254", 7000), middle.udp_socket("10.0.2.254", 7000)
    forwarder = testbed.enter(UDPForwarder(front, back, ("10.0.2.1", 2), **link))
    pair.set_endpoints("10.0.1.254:7000")
    return pair, forwarder


def _scripted(testbed: DaemonTestbed, namespace, interface, public_key: str) -> ScriptedPeer:
    """A scripted peer on the loopback of the namespace that the daemon's sockets are in."""
    socket = PeerSocket(namespace, "127.0.0.1")
    testbed.on_exit(socket.close)
    return ScriptedPeer(socket, base64.b64decode(public_key), ("127.0.0.1", 1), ScriptedKeyPair())


@check("B29", "a peer whose clock stepped back is refused, which is logged, until its stamps have caught up")
def peer_clock_back(testbed: DaemonTestbed) -> None:
    namespace, keys = testbed.namespace("a"), KeyPair.generate()
    interface = testbed.interface(1, namespace, environment={"LOG_LEVEL": "debug"})
    interface.set(private_key=keys.private, listen_port=1)
    interface.up()
    peer = _scripted(testbed, namespace, interface, keys.public)
    apply(interface.daemon.socket_path, f"public_key={from_base64(peer.public_text)}", "allowed_ip=10.9.0.2/32")
    now = int(time.time())
    session = peer.connect(timestamp=TAI64N.at(now))
    handshake = interface.latest_handshake(peer.public_text)
    written = os.stat(interface.daemon.log_path).st_size
    for back in (3600, 1, 0):
        # Not more often than the responder takes initiations of one peer.
        pause(0.1)
        peer.drain()
        peer.send(peer.handshake(timestamp=TAI64N.at(now - back)).message)
        peer.expect_silence(1, f"a stamp {back} s before the greatest must be refused")
    with open(interface.daemon.log_path, "rb") as log:
        log.seek(written)
        expect(log.read().strip(), "refused stamps are not logged with LOG_LEVEL=debug")
    expect_equal(interface.latest_handshake(peer.public_text), handshake, "the latest handshake")
    # The session that stands is not touched.
    received = interface.transfer(peer.public_text)[0]
    peer.send(session.seal())
    wait_until(lambda: interface.transfer(peer.public_text)[0] == received + 32, "the old session being accepted", 5)
    pause(0.1)
    peer.connect(timestamp=TAI64N.at(now + 1))


@check("B29.own", "the own wall clock steps back an hour: stamps keep growing", lasts=25)
def own_clock_back(testbed: DaemonTestbed) -> None:
    library = FAKETIME.format(os.uname().machine)
    expect(os.path.exists(library), f"{library} is missing: install the Debian package faketime")
    namespace, keys, offset = testbed.namespace("a"), KeyPair.generate(), testbed.file("offset")

    def shift(seconds: int) -> None:
        with open(offset + ".new", "w") as file:
            file.write(f"{seconds:+d}\n")
        os.rename(offset + ".new", offset)

    shift(0)
    interface = testbed.interface(1, namespace, environment={
        "LD_PRELOAD": library, "FAKETIME_TIMESTAMP_FILE": offset, "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1", "FAKETIME_DONT_RESET": "1"})
    interface.set(private_key=keys.private, listen_port=1)
    interface.up()
    peer = _scripted(testbed, namespace, interface, keys.public)
    path = interface.daemon.socket_path
    apply(path, f"public_key={from_base64(peer.public_text)}", "allowed_ip=10.9.0.2/32",
          f"endpoint=127.0.0.1:{peer.socket.port}", "persistent_keepalive_interval=25")

    def next_stamp() -> TAI64N:
        """The stamp of the next initiation: none is answered, so one comes every five seconds."""
        return peer.expect_initiation(15).timestamp

    stamps = [next_stamp()]
    for seconds in (-3600, -7200):
        shift(seconds)
        stamps.append(next_stamp())
        expect(stamps[-2] < stamps[-1], f"with the clock {seconds} s off a stamp is not greater than the one before")
    # Proof that the clock was shifted at all: forward, no stamp can be held back.
    shift(7200)
    ahead = next_stamp().unix - time.time()
    expect(7100 < ahead < 7300,
           f"cannot judge: the daemon's clock could not be shifted (stamps {ahead:.0f} s ahead, not 7200)")
