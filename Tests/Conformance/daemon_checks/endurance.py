"""What the kernel's self-test leaves out: bad links, very many peers, and being killed."""

import subprocess

from daemon_checks.hexadecimal_keys import from_base64, keys
from daemon_checks.registry import check
from daemon_checks.sessions import forwarded_pair
from daemon_testbed import DaemonTestbed
from file_transfer import transfer_file
from tunnel_pair import ADDRESS_1, ADDRESS_2, tunnel_pair
from uapi_connection import apply, state
from waiting import expect, expect_equal, pause, wait_until
from wireguard_tool import WireGuardInterface

PEERS = 500


@check("link.disorder", "a quarter of all datagrams late, a twentieth twice: nothing is lost and nothing doubled")
def disorder(testbed: DaemonTestbed) -> None:
    pair, forwarder = forwarded_pair(testbed, reorder=0.25, reorder_delay=0.03, duplicate=0.05, seed=7)
    pair.expect_ping_through()
    for namespace, destination in ((pair.first.namespace, ADDRESS_2), (pair.second.namespace, ADDRESS_1)):
        result = namespace.ping(destination, "-i", "0.005", "-q", count=600, seconds=5)
        expect_equal(result.received, 600, "the number of 600 pings answered")
        expect("duplicate" not in result.output, f"packets were delivered twice: {result.summary}")
    transfer_file(pair.first.namespace, pair.second.namespace, ADDRESS_2, 1 << 20, seconds=120)
    transfer_file(pair.second.namespace, pair.first.namespace, ADDRESS_1, 1 << 20, seconds=120)
    expect(forwarder.counts["reordered"] > 100 and forwarder.counts["duplicated"] > 20, "the link was too good")


@check("link.doubled", "every datagram comes twice, handshakes included")
def doubled(testbed: DaemonTestbed) -> None:
    pair, _ = forwarded_pair(testbed, duplicate=1.0)
    pair.expect_ping_through()
    handshake = pair.first.latest_handshake(pair.keys_2.public)
    result = pair.first.namespace.ping(ADDRESS_2, "-i", "0.01", "-q", count=200, seconds=5)
    expect_equal(result.received, 200, "the number of 200 pings answered")
    expect("duplicate" not in result.output, f"packets were delivered twice: {result.summary}")
    expect_equal(pair.first.latest_handshake(pair.keys_2.public), handshake, "the latest handshake")


@check("link.loss", "three of ten datagrams are lost: a handshake comes about, and all is well after", lasts=40)
def loss(testbed: DaemonTestbed) -> None:
    pair, forwarder = forwarded_pair(testbed, loss=0.3, seed=30)
    # Each try succeeds half of the time and takes five seconds.
    pair.expect_ping_through(seconds=90)
    result = pair.first.namespace.ping(ADDRESS_2, "-i", "0.02", "-q", count=400, seconds=3)
    expect(110 <= result.received <= 290, f"{result.received} of 400 pings answered, about 196 expected")
    transfer_file(pair.first.namespace, pair.second.namespace, ADDRESS_2, 30_000, seconds=120)
    forwarder.loss = 0.0
    result = pair.first.namespace.ping(ADDRESS_2, "-i", "0.01", "-q", count=300, seconds=5)
    expect_equal(result.received, 300, "the number of 300 pings answered once the link is good")


@check("peers.500", f"{PEERS} peers at once: each is greeted, and one that is alive loses nothing")
def many_live_peers(testbed: DaemonTestbed) -> None:
    pair = tunnel_pair(testbed)
    pair.expect_ping_through()
    first = pair.first.namespace
    sink = testbed.enter(first.udp_socket("127.0.0.1", 0))
    sink.setsockopt(1, 33, 8 << 20)  # SO_RCVBUFFORCE
    port = sink.getsockname()[1]
    ping = testbed.start(first, "ping", "-q", "-i", "0.02", "-c", "500", "-W", "5", ADDRESS_2,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    others = keys(PEERS, seed=500)
    apply(pair.first.daemon.socket_path, *[line for number, key in enumerate(others) for line in (
        f"public_key={key}", f"endpoint=127.0.0.1:{port}", "persistent_keepalive_interval=25",
        f"allowed_ip=10.{100 + number // 256}.{number % 256}.0/24")])
    greeted, indices = set(), set()
    sink.settimeout(0.5)

    def all_greeted() -> bool:
        try:
            while True:
                data = sink.recv(65536)
                expect(len(data) == 148 and data[0] == 1, f"{len(data)} bytes arrived, not an initiation")
                greeted.add(data[116:132])
                indices.add(data[4:8])
        except TimeoutError:
            return len(indices) >= PEERS

    wait_until(all_greeted, f"an initiation for each of {PEERS} peers", 60)
    expect_equal(len(greeted), len(indices), "the number of different initiations")
    output, _ = ping.communicate(timeout=60)
    expect("500 packets transmitted, 500 received" in output, f"the live peer lost packets: {output.splitlines()[-2:]}")
    expect_equal(len(state(pair.first.daemon.socket_path).peers), PEERS + 1, "the number of peers listed")
    apply(pair.first.daemon.socket_path, *[line for key in others for line in (f"public_key={key}", "remove=true")])
    expect_equal(state(pair.first.daemon.socket_path).public_keys, [from_base64(pair.keys_2.public)], "the peers left")
    all_greeted()
    pause(6)
    sink.settimeout(0.2)
    arrived = 0
    try:
        while True:
            sink.recv(65536)
            arrived += 1
    except TimeoutError:
        pass
    # What was on its way when the peers went.
    expect(arrived == 0 or arrived < PEERS // 10, f"{arrived} datagrams were sent to peers that had been removed")
    pair.expect_pings(10, "after the other peers were removed")


@check("kill.restart", "killed and started again with the same configuration, it works at once, from both sides")
def killed(testbed: DaemonTestbed) -> None:
    pair = tunnel_pair(testbed)
    pair.expect_ping_through()
    for from_first in (True, False):
        configuration = pair.first.showconf()
        old = pair.first.daemon
        testbed.resign(old)
        old.signal(9)
        old.wait_for_exit()
        wait_until(lambda: not pair.first.namespace.has_interface(pair.first.name), "the TUN going away", 5)
        expect(old.has_socket, "the socket of a killed daemon is gone")
        pair.first = WireGuardInterface(
            testbed.interface(1, pair.first.namespace).daemon, pair.first.namespace, testbed.secrets)
        pair.first.setconf(configuration)
        pair.first.add_address(f"{ADDRESS_1}/24")
        pair.first.up()
        if from_first:
            pair.expect_ping_through(seconds=10)
        # The other side still believes in the old session for up to 15 s.
        pair.expect_ping_back(seconds=40)
        pair.expect_ping_through(seconds=10)
