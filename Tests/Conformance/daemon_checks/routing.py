"""B8, B14, B18, B24, B34: addresses, routes, ports and sources change or mislead."""

import socket
import subprocess

import network_namespace
from capture import PacketCapture
from daemon_checks.registry import check
from daemon_testbed import DaemonTestbed
from system_call_refusal import REFUSE_IPV6_SOCKETS
from tunnel_pair import ADDRESS_1, ADDRESS_2, OUTER6_2, OUTER_2, TunnelPair, expect_sockets_on, join, tunnel_pair, udp_inodes
from waiting import expect, expect_equal, wait_until
from wireguard_tool import KeyPair, WireGuardInterface

HANDSHAKE_TRAFFIC_CLASS = 0x88


@check("B8", "a better route over another link: traffic, source and endpoint follow it")
def better_route(testbed: DaemonTestbed) -> None:
    first, second = testbed.namespace("a"), testbed.namespace("b")
    for number in (1, 2):
        network_namespace.connect(first, f"way{number}", second, f"way{number}")
        first.add_address(f"way{number}", f"10.0.{number}.1/24")
        second.add_address(f"way{number}", f"10.0.{number}.2/24")
    second.add_address("lo", "10.50.0.1/32")
    for namespace in (first, second):
        for key in ("all", "way1", "way2"):
            namespace.sysctl(f"net/ipv4/conf/{key}/rp_filter", 0)
    first.ip("route", "add", "10.50.0.1", "via", "10.0.1.2", "metric", "100")
    first.ip("route", "add", "10.50.0.1", "via", "10.0.2.2", "metric", "200")
    pair = TunnelPair(testbed.interface(1, first), testbed.interface(2, second))
    pair.configure()
    pair.set_endpoints("10.50.0.1:2")
    pair.expect_ping_through()
    expect_equal(pair.second.endpoint(pair.keys_1.public), "10.0.1.1:1", "the endpoint before")
    first.ip("route", "add", "10.50.0.1", "via", "10.0.2.2", "metric", "50")

    def follows(source: str) -> None:
        def moved() -> bool:
            pair.first.namespace.ping(ADDRESS_2, seconds=1)
            return pair.second.endpoint(pair.keys_1.public) == f"{source}:1"

        wait_until(moved, f"the endpoint becoming {source}:1", 10)
        expect_equal(pair.first.endpoint(pair.keys_2.public), "10.50.0.1:2", "the endpoint of end 2")
        pair.expect_pings(5, f"from {source}")

    follows("10.0.2.1")
    first.ip("route", "del", "10.50.0.1", "via", "10.0.2.2", "metric", "50")
    follows("10.0.1.1")
    # And when the link itself goes, with its routes.
    first.ip("link", "set", "way1", "down")
    follows("10.0.2.1")


@check("B14", "the local address is replaced: the tunnel follows, and so does the other side's endpoint")
def roaming(testbed: DaemonTestbed) -> None:
    pair = tunnel_pair(testbed)
    pair.expect_ping_through()
    first = pair.first.namespace
    for old, new in (("10.0.0.1", "10.0.0.9"), ("10.0.0.9", "10.0.0.77")):
        first.delete_address("under", f"{old}/24")
        first.add_address("under", f"{new}/24")
        pair.expect_ping_through()
        _wait_for_endpoint(pair, f"{new}:1")
        pair.expect_ping_back()
    # To IPv6, by endpoint, and to another port.
    pair.set_endpoints(f"[{OUTER6_2}]:2")
    pair.expect_ping_through()
    _wait_for_endpoint(pair, "[fd00:aa::1]:1")
    first.delete_address("under", "fd00:aa::1/64")
    first.add_address("under", "fd00:aa::9/64")
    pair.expect_ping_through()
    _wait_for_endpoint(pair, "[fd00:aa::9]:1")
    pair.first.set(listen_port=4242)
    pair.expect_ping_through()
    _wait_for_endpoint(pair, "[fd00:aa::9]:4242")


def _wait_for_endpoint(pair: TunnelPair, endpoint: str) -> None:
    wait_until(lambda: pair.second.endpoint(pair.keys_1.public) == endpoint, f"the endpoint becoming {endpoint}", 10)


@check("B14.header", "handshakes leave with DSCP AF41 and data with none; nothing forbids fragmentation")
def outer_header(testbed: DaemonTestbed) -> None:
    pair = tunnel_pair(testbed, endpoints=False)
    for over_ipv6 in (False, True):
        with_label = f"over IPv{6 if over_ipv6 else 4}"
        with PacketCapture(pair.first.namespace, "under") as capture:
            # A peer that is new has no session.
            pair.first.remove_peer(pair.keys_2.public)
            pair.first.set_peer(
                pair.keys_2.public, preshared_key=pair.preshared_key, allowed_ips=f"{ADDRESS_2}/32",
                endpoint=f"[{OUTER6_2}]:2" if over_ipv6 else f"{OUTER_2}:2")
            pair.expect_ping_through()
            pair.expect_pings(3, with_label)
            by_type = {kind: wait_until(lambda: capture.datagrams(
                lambda datagram: {datagram.source_port, datagram.destination_port} == {1, 2}
                and datagram.message_type == kind and (":" in datagram.source) == over_ipv6),
                f"a message of type {kind} {with_label}", 10) for kind in (1, 2, 4)}
        for kind, wanted in ((1, HANDSHAKE_TRAFFIC_CLASS), (2, HANDSHAKE_TRAFFIC_CLASS), (4, 0)):
            seen = {datagram.traffic_class for datagram in by_type[kind]}
            expect_equal(seen, {wanted}, f"the traffic class of messages of type {kind} {with_label}")
        whole = [datagram for group in by_type.values() for datagram in group]
        expect(not any(datagram.dont_fragment for datagram in whole), "DF is set")
        expect(all(datagram.checksum for datagram in whole), "a UDP checksum is zero")


@check("B18", "a peer cannot use the source of another peer's narrower prefix, though its endpoint is still noted")
def spoofed_source(testbed: DaemonTestbed) -> None:
    pair = tunnel_pair(testbed)
    server, client = pair.first, pair.second
    narrower = KeyPair.generate().public
    server.set_peer(pair.keys_2.public, allowed_ips="192.168.241.0/24")
    server.set_peer(narrower, allowed_ips="192.168.241.7/32")
    client.add_address("192.168.241.7/24")
    pair.expect_ping_back()
    with PacketCapture(server.namespace, server.name) as capture:

        def arrivals(source: bytes) -> int:
            return sum(packet.data[12:16] == source for packet in capture.packets if not packet.outgoing)

        own, foreign = bytes([192, 168, 241, 2]), bytes([192, 168, 241, 7])
        client.set(listen_port=2222)
        result = client.namespace.ping(ADDRESS_1, "-I", "192.168.241.7", "-i", "0.2", count=5, seconds=1)
        expect(not result.answered, "a ping from the other peer's address is answered")
        wait_until(lambda: server.endpoint(pair.keys_2.public) == "10.0.0.2:2222",
                   "the endpoint being noted although the inner packet is refused", 5)
        # What comes after in the same session shows that the refused ones were seen.
        expect(client.namespace.ping(ADDRESS_1, "-I", ADDRESS_2, count=3, seconds=2).answered, "own pings are lost")
        wait_until(lambda: arrivals(own) >= 3, "the peer's own packets arriving", 5)
        expect_equal(arrivals(foreign), 0, "the number of packets with the other peer's address")
        server.remove_peer(narrower)
        wait_until(lambda: client.namespace.ping(ADDRESS_1, "-I", "192.168.241.7", seconds=1).answered
                   and arrivals(foreign) > 0, "that address arriving once the narrower peer is gone", 10)


@check("B24.port", "listen_port 0 while most ports are taken on IPv6: one free on both families is found")
def port_on_both(testbed: DaemonTestbed) -> None:
    for attempt in range(3):
        first, second = testbed.namespace(f"a{attempt}"), testbed.namespace(f"b{attempt}")
        join(first, second)
        # Of ten ports only one is free on IPv6: nine of ten first tries fail, a hundred do one time in 38,000.
        first.sysctl("net/ipv4/ip_local_port_range", "50000 50009")
        for port in range(50000, 50010):
            if port == 50003 + attempt:
                continue
            taken = testbed.enter(first.socket(socket.AF_INET6, socket.SOCK_DGRAM))
            taken.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            taken.bind(("::", port))
        pair = TunnelPair(*(testbed.interface(end, namespace, label=f"{attempt}")
                            for end, namespace in ((1, first), (2, second))))
        pair.configure()
        pair.first.set(listen_port=0)
        port = int(pair.first.show("listen-port"))
        expect_equal(port, 50003 + attempt, "the port found")
        expect_sockets_on(first, port)
        for endpoint in (f"10.0.0.1:{port}", f"[fd00:aa::1]:{port}"):
            pair.set_endpoints(of_first=endpoint)
            pair.expect_ping_back()


@check("B24.disabled", "IPv6 disabled in the namespace: IPv4 works")
def ipv6_disabled(testbed: DaemonTestbed) -> None:
    first, second = testbed.namespace("a"), testbed.namespace("b")
    join(first, second)
    for key in ("all", "default", "lo", "under"):
        first.sysctl(f"net/ipv6/conf/{key}/disable_ipv6", 1)
    _expect_ipv4_works(testbed.interface(1, first), testbed.interface(2, second))


@check("B24.refused", "IPv6 sockets refused by the kernel: IPv4 works")
def ipv6_refused(testbed: DaemonTestbed) -> None:
    first, second = testbed.namespace("a"), testbed.namespace("b")
    join(first, second)
    with testbed.prefixed(*REFUSE_IPV6_SOCKETS):
        interface = testbed.interface(1, first)
    interface.up()
    expect(not _has_ipv6_socket(first), "the daemon has IPv6 sockets although the kernel refused them")
    interface.down()
    _expect_ipv4_works(interface, testbed.interface(2, second))


def _has_ipv6_socket(namespace: network_namespace.NetworkNamespace) -> bool:
    return bool(namespace.run("ss", "-H", "-u", "-a", "-n", "-6").stdout.strip())


def _expect_ipv4_works(first: WireGuardInterface, second: WireGuardInterface) -> None:
    pair = TunnelPair(first, second)
    for interface, address in ((first, ADDRESS_1), (second, ADDRESS_2)):
        interface.add_address(f"{address}/24")
    first.set(*first.peer_words(pair.keys_2.public, allowed_ips=f"{ADDRESS_2}/32", endpoint="10.0.0.2:2"),
              private_key=pair.keys_1.private, listen_port=1)
    second.set(*second.peer_words(pair.keys_1.public, allowed_ips=f"{ADDRESS_1}/32"),
               private_key=pair.keys_2.private, listen_port=2)
    first.up()
    second.up()
    pair.expect_ping_through()
    pair.expect_pings(10, "over IPv4 alone")
    # And with a port that it chooses itself.
    first.set(listen_port=0)
    expect(first.show("listen-port") != "0", "no port was chosen")
    pair.expect_ping_through()


@check("B34", "setting the same port again is a no-op, setting another one moves both sockets")
def same_port(testbed: DaemonTestbed) -> None:
    pair = tunnel_pair(testbed)
    pair.expect_ping_through()
    first = pair.first.namespace
    before = expect_sockets_on(first, 1)
    ping = testbed.start(first, "ping", "-q", "-i", "0.01", "-c", "200", "-W", "3", ADDRESS_2,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    for _ in range(20):
        pair.first.set(listen_port=1)
    output, _ = ping.communicate(timeout=60)
    expect_equal(udp_inodes(first, 1), before, "the sockets' inodes after setting the same port")
    expect("200 packets transmitted, 200 received" in output, f"packets were lost: {output.splitlines()[-2:]}")
    pair.first.set(listen_port=4343)
    expect_sockets_on(first, 4343)
    expect_equal(udp_inodes(first, 1), set(), "the sockets on the old port")
    pair.expect_ping_through()
