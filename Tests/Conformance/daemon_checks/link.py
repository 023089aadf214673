"""D4, D5, B30: the TUN moves to another namespace, goes down and up, and changes its MTU."""


from capture import PacketCapture
from daemon_checks.registry import check
from daemon_testbed import DaemonTestbed
from file_transfer import transfer_file
from network_namespace import NetworkNamespace
from tunnel_pair import ADDRESS6_2, ADDRESS_1, ADDRESS_2, TunnelPair, join, tunnel_pair
from waiting import CheckFailure, expect, pause, wait_until

#: What a data message adds to the padded packet: header and tag.
DATA_OVERHEAD = 32


def _moved_pair(testbed: DaemonTestbed) -> "tuple[TunnelPair, NetworkNamespace, NetworkNamespace]":
    """A pair whose TUNs have moved into namespaces without any other link; and the two births."""
    births, homes = (testbed.namespace("a"), testbed.namespace("b")), (testbed.namespace("c"), testbed.namespace("d"))
    join(*births)
    pair = TunnelPair(testbed.interface(1, births[0], homes[0]), testbed.interface(2, births[1], homes[1]))
    pair.configure()
    pair.set_endpoints("10.0.0.2:2", "10.0.0.1:1")
    return pair, *births


@check("D4.move", "a TUN in another namespace works; the UDP sockets stay where the daemon was born")
def moved(testbed: DaemonTestbed) -> None:
    pair, _, _ = _moved_pair(testbed)
    for destination in (ADDRESS_2, ADDRESS6_2):
        pair.expect_ping_through(destination)
    pair.expect_ping_back()
    transfer_file(pair.first.namespace, pair.second.namespace, ADDRESS_2, 4 << 20)
    # Moved on while it carries a session; a link that moves goes down and loses its addresses.
    last = testbed.namespace("e")
    pair.first.move(last)
    pair.first.add_address(f"{ADDRESS_1}/24", "fd00::1/112")
    pair.first.up()
    pair.expect_ping_through()
    pair.expect_ping_back()


@check("D4.mtu", "a TUN in another namespace: its MTU is followed")
def moved_mtu(testbed: DaemonTestbed) -> None:
    pair, birth, _ = _moved_pair(testbed)
    _expect_mtu_followed(pair, birth)


@check("D4.link", "a TUN in another namespace: nothing is sent while it is down")
def moved_link(testbed: DaemonTestbed) -> None:
    pair, birth, _ = _moved_pair(testbed)
    _expect_silent_when_down(pair, birth)


@check("D5", "a changed MTU is followed while running")
def mtu_followed(testbed: DaemonTestbed) -> None:
    pair = tunnel_pair(testbed)
    _expect_mtu_followed(pair, pair.first.namespace)


def _expect_mtu_followed(pair: TunnelPair, underlay: NetworkNamespace) -> None:
    pair.expect_ping_through()
    with PacketCapture(underlay, "under") as capture:
        # 1,297 bytes are padded to 1,312, unless the MTU is below that.
        for mtu in (1420, 1299, 1305, 1420):
            pair.first.set_mtu(mtu)
            wanted = min(mtu, 1312) + DATA_OVERHEAD
            last = [0]

            def followed() -> bool:
                seen = len(capture.packets)
                pair.first.namespace.ping(ADDRESS_2, "-s", "1269", seconds=1)
                sizes = [len(datagram.payload) for datagram in (packet.datagram for packet in capture.packets[seen:])
                         if datagram and datagram.source_port == 1 and len(datagram.payload) > 1300]
                last[0] = sizes[-1] if sizes else 0
                return last[0] == wanted

            try:
                wait_until(followed, "", 10)
            except CheckFailure:
                expect(False, f"MTU {mtu}: a packet of 1,297 bytes leaves as {last[0]}, expected {wanted}")
    for interface in (pair.first, pair.second):
        interface.set_mtu(9000)
    wait_until(lambda: pair.first.namespace.ping(ADDRESS_2, "-s", "8900", seconds=1).answered,
               "a ping of 8,900 bytes being answered after the MTU was raised", 10)
    transfer_file(pair.first.namespace, pair.second.namespace, ADDRESS_2, 4 << 20)


@check("D5.link", "nothing is sent while the link is down, and the session is gone; up again it works")
def link_down(testbed: DaemonTestbed) -> None:
    pair = tunnel_pair(testbed)
    _expect_silent_when_down(pair, pair.first.namespace)


def _expect_silent_when_down(pair: TunnelPair, underlay: NetworkNamespace) -> None:
    pair.first.set_peer(pair.keys_2.public, persistent_keepalive=1)
    pair.expect_ping_through()
    with PacketCapture(underlay, "under") as capture:

        def sent() -> int:
            return len(capture.datagrams(lambda datagram: datagram.source_port == 1))

        wait_until(lambda: sent() >= 2, "keepalives being sent", 10)
        pair.first.down()
        # It may take a moment to notice; then three keepalives would be due.
        pause(2)
        before = sent()
        pause(3.5)
        expect(sent() == before, f"{sent() - before} datagrams were sent while the link is down")
        pair.first.up()
        initiation = capture.wait_for_datagram(
            lambda datagram: datagram.source_port == 1 and datagram.message_type == 1,
            "a new handshake after link up", 10)
        expect(len(initiation.payload) == 148, "the initiation has a wrong size")
    pair.expect_ping_through()


@check("B30", "padding never exceeds the MTU: 1,300 and 1,299 below an underlay that drops one byte more")
def padding_clamped(testbed: DaemonTestbed) -> None:
    pair = tunnel_pair(testbed)
    pair.expect_ping_through()
    for interface in (pair.first, pair.second):
        # A cable hands trains of datagrams over whole, and the rule below would judge their length: these are cut first.
        interface.namespace.run("ethtool", "-K", "under", "tx-udp-segmentation", "off", "gro", "off")
    for mtu in (1300, 1299):
        for interface in (pair.first, pair.second):
            interface.set_mtu(mtu)
            # 60 bytes of outer IPv4, UDP, message header and tag.
            interface.namespace.nft("\n".join((
                "table ip padding", "delete table ip padding", "table ip padding {", "chain input {",
                "type filter hook input priority 0", f'iifname "under" meta length > {mtu + 60} drop', "}", "}", "")))
        for size in (1260, 1268, 1269, 1270, mtu - 28):
            # The MTU may be noticed a moment after it was set.
            wait_until(
                lambda: pair.first.namespace.ping(ADDRESS_2, "-M", "do", "-s", str(size), seconds=1).answered,
                f"MTU {mtu}: a ping of {size + 28} bytes being answered", 10)
    transfer_file(pair.first.namespace, pair.second.namespace, ADDRESS_2, 1 << 20)


