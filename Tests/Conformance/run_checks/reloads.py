"""SIGHUP: what changed in the files is changed, and nothing else is touched."""

import signal
import subprocess
import threading

from daemon_testbed import DaemonTestbed
from name_server import NameServer
from run_checks.registry import check
from run_site import ENDPOINT, FULL, INSIDE, INSIDE6, LAN, LAN6, OUTSIDE, PORT, SPLIT, Peer, Site
from tunnel_pair import expect_sockets_on
from waiting import expect, expect_equal, wait_until
from wireguard_tool import KeyPair

PORT_LINE = "ListenPort = 5555"
#: A route of the check's own.
MARKER = "203.0.113.250"


class Untouched:
    """Watches that sessions and sockets live on, and what happens to routes and rules meanwhile."""

    def __init__(self, site: Site):
        self.site = site
        self.handshake, self.inodes = site.peer.handshake(), expect_sockets_on(site.namespace, 5555)
        self.monitor = site.testbed.start(
            site.namespace, "ip", "monitor", "route", "rule", "address", stdout=subprocess.PIPE, text=True,
            stderr=subprocess.DEVNULL)
        self._lines: "list[str]" = []
        threading.Thread(target=self._read, daemon=True).start()
        self._mark()

    def _read(self) -> None:
        for line in self.monitor.stdout:
            self._lines.append(line.strip())

    def _mark(self) -> None:
        """Makes a change of its own until it is heard of: what is heard later came later."""
        heard = len(self._lines)

        def is_heard() -> bool:
            self.site.namespace.ip("route", "add", "blackhole", MARKER)
            self.site.namespace.ip("route", "del", "blackhole", MARKER)
            return any(MARKER in line for line in self._lines[heard:])

        wait_until(is_heard, "ip monitor telling of a route", 20, 0.2)

    def expect(self, *changes: str) -> None:
        """Nothing but these routes (parts of a line each) may have changed; sessions and sockets are the same."""
        site = self.site
        self._mark()
        self.monitor.kill()
        # The kernel's own notices of neighbours and the like are none of ours.
        lines = [line for line in self._lines
                 if MARKER not in line and any(word in line for word in ("tun0", "lookup", "throw"))]
        for line in lines:
            expect(any(part in line for part in changes), f"this changed as well: {line}")
        for part in changes:
            expect(any(part in line for line in lines), f"nothing was heard of {part}: {lines}")
        site.expect_reached(site.peer.inner)
        expect_equal(site.peer.handshake(), self.handshake, "the time of the last handshake")
        expect_equal(expect_sockets_on(site.namespace, 5555), self.inodes, "the sockets")


def _up(testbed: DaemonTestbed, allowed: str) -> "tuple[Site, dict]":
    site = Site(testbed)
    before = site.prepare(allowed, PORT_LINE)
    site.instance.start()
    site.expect_inside()
    return site, before


@check("reload.nothing", "SIGHUP without a change touches nothing")
def nothing(testbed: DaemonTestbed) -> None:
    site, before = _up(testbed, FULL)
    state, untouched = site.machine.state(), Untouched(site)
    site.instance.reload("0 peers added, 0 removed, 0 changed")
    untouched.expect()
    site.machine.expect_state(state, "after a reload without a change")
    site.instance.stop()
    site.machine.expect_state(before, "after the end")


@check("reload.keepalive", "a changed keepalive is changed")
def keepalive(testbed: DaemonTestbed) -> None:
    site, _ = _up(testbed, FULL)
    untouched = Untouched(site)
    for text, shown in (("PersistentKeepalive = 17", "17"), ("PersistentKeepalive = off", "off")):
        site.instance.write_tunnel(site.peer.file(FULL, PORT_LINE, peer=text))
        site.instance.reload()
        expect_equal(site.instance.wg("persistent-keepalive").split()[1], shown, "the keepalive")
    untouched.expect()
    site.instance.stop()


@check("reload.peers", "a peer is added with its routes, and removed with them; the other one is not touched")
def peers(testbed: DaemonTestbed) -> None:
    site, before = _up(testbed, SPLIT)
    other = Peer(testbed, site.world, 9, PORT + 1)
    # It knows the machine by the machine's one key and address.
    other.interface.set(*other.interface.peer_words(
        site.peer.keys.public, preshared_key=other.preshared, allowed_ips="10.8.0.2/32"))
    state, untouched = site.machine.state(), Untouched(site)
    site.instance.write_tunnel(site.peer.file(SPLIT, PORT_LINE)
                               + other.section("10.9.0.0/24, fd09::/64", f"{ENDPOINT}:{PORT + 1}"))
    site.instance.reload("1 peers added, 0 removed, 0 changed")
    untouched.expect("10.9.0.0/24", "fd09::/64")
    expect_equal(sorted(site.instance.wg("peers").split()), sorted([site.peer.own_keys.public, other.own_keys.public]),
                 "the peers")
    site.world.ip("route", "add", "10.8.0.2/32", "dev", other.interface.name, "table", "99")
    site.world.ip("rule", "add", "from", "10.9.0.1", "lookup", "99")
    site.expect_reached("10.9.0.1")
    untouched = Untouched(site)
    site.instance.write_tunnel(site.peer.file(SPLIT, PORT_LINE))
    site.instance.reload("0 peers added, 1 removed, 0 changed")
    untouched.expect("10.9.0.0/24", "fd09::/64")
    expect_equal(site.instance.wg("peers"), site.peer.own_keys.public, "the peers")
    site.machine.expect_state(state, "after the peer is gone")
    site.instance.stop()
    site.machine.expect_state(before, "after the end")


@check("reload.allowed", "changed AllowedIPs: their routes follow, other routes are not touched")
def allowed(testbed: DaemonTestbed) -> None:
    site, before = _up(testbed, SPLIT)
    untouched = Untouched(site)
    site.instance.write_tunnel(site.peer.file(f"{SPLIT}, 203.0.113.0/24", PORT_LINE))
    site.instance.reload("0 peers added, 0 removed, 1 changed")
    untouched.expect("203.0.113.0/24")
    site.expect_silent(OUTSIDE)
    site.expect_inside()
    # From split to full and back.
    for text, silent in ((FULL, True), (SPLIT, False)):
        site.instance.write_tunnel(site.peer.file(text, PORT_LINE))
        site.instance.reload("0 peers added, 0 removed, 1 changed")
        site.expect_inside()
        site.expect_reached(LAN[1], LAN6[1])
        if silent:
            site.expect_silent(OUTSIDE)
        else:
            site.expect_reached(OUTSIDE)
    site.instance.stop()
    site.machine.expect_state(before, "after the end")


@check("reload.table", "a changed Table: the routes move, sessions live on")
def table(testbed: DaemonTestbed) -> None:
    site, before = _up(testbed, SPLIT)
    untouched = Untouched(site)
    route = "198.51.100.0/24"
    for text, in_main, in_table in (("Table = 1234", False, True), ("Table = off", False, False), ("", True, False)):
        site.instance.write_tunnel(site.peer.file(SPLIT, f"{PORT_LINE}\n{text}"))
        site.instance.reload()
        wait_until(lambda: (route in site.namespace.ip("route"), route in site.namespace.ip(
            "route", "show", "table", "1234", check=False)) == (in_main, in_table), f"the routes with {text!r}", 5)
    untouched.expect("198.51.100.0/24", "2001:db8:99::/48", "10.8.0.0/24", "fd08::/64")
    site.expect_inside()
    site.instance.stop()
    site.machine.expect_state(before, "after the end")


@check("reload.wrong", "a wrong file changes nothing and is told in the log; a right one is taken over then")
def wrong(testbed: DaemonTestbed) -> None:
    site, before = _up(testbed, FULL)
    state, untouched = site.machine.state(), Untouched(site)
    shown = site.instance.ask()["settings"]
    right = site.peer.file(FULL, PORT_LINE)
    for text in (right.replace("PublicKey", "PublikKey"), right.replace("0.0.0.0/0", "0.0.0.0/40"), "nonsense",
                 right.replace(f"PrivateKey = {site.peer.keys.private}", "PrivateKey = abc")):
        site.instance.write_tunnel(text)
        site.instance.reload("nothing is changed")
        expect_equal(site.instance.ask()["settings"], shown, "the settings")
    # A name that cannot be looked up fails the reload as a whole.
    site.instance.write_tunnel(site.peer.file(f"{FULL}, 10.99.0.0/16", PORT_LINE, "absent.invalid:1"))
    site.instance.reload("the configuration was not taken over")
    site.instance.write_tunnel(right)
    site.instance.reload()
    untouched.expect()
    site.machine.expect_state(state, "after wrong files")
    site.instance.stop()
    site.machine.expect_state(before, "after the end")


@check("reload.waiting", "a reload that waits for a name and one that fails after it: the first counts, whole", lasts=8)
def waiting(testbed: DaemonTestbed) -> None:
    site, before = _up(testbed, SPLIT)
    server = testbed.enter(NameServer(site.world, LAN[1], {"slow.example": ["192.0.2.9"]}, delay=2))
    other = KeyPair.generate().public
    section = f"[Peer]\nPublicKey = {other}\nAllowedIPs = 10.9.0.0/24\nEndpoint = %s.example:1\n"
    untouched = Untouched(site)
    site.instance.write_tunnel(site.peer.file(SPLIT, f"{PORT_LINE}\nTable = 1234") + section % "slow")
    site.instance.signal(signal.SIGHUP)
    wait_until(lambda: server.queries, "the name being looked up", 10)
    site.instance.write_tunnel(site.peer.file(SPLIT, f"{PORT_LINE}\nTable = off") + section % "absent")
    site.instance.signal(signal.SIGHUP)
    site.instance.wait_for_line("the configuration was read again: 1 peers added", 20)
    site.instance.wait_for_line("the configuration was not taken over", 20)
    in_table = site.namespace.ip("route", "show", "table", "1234")
    for route in ("198.51.100.0/24", "10.9.0.0/24"):
        expect(route in in_table, f"{route} is not in the table of the reload that succeeded: {in_table}")
    untouched.expect("198.51.100.0/24", "2001:db8:99::/48", "10.9.0.0/24", "10.8.0.0/24", "fd08::/64")
    expect(other in site.instance.wg("peers"), "the peer is missing")
    site.instance.stop()
    site.machine.expect_state(before, "after the end")


@check("reload.address", "a changed address, MTU and resolver are changed, sessions live on")
def address(testbed: DaemonTestbed) -> None:
    site, before = _up(testbed, SPLIT)
    handshake = site.peer.handshake()
    text = site.peer.file(SPLIT, f"{PORT_LINE}\nMTU = 1337\nDNS = 10.8.0.53").replace(
        "10.8.0.2/24", "10.8.0.2/24, 10.55.0.2/24")
    site.instance.write_tunnel(text)
    site.instance.reload()
    expect_equal(site.namespace.link("tun0")["mtu"], 1337, "the MTU")
    expect("10.55.0.2/24" in site.namespace.ip("address", "show", "dev", "tun0"), "the address is missing")
    expect("nameserver 10.8.0.53" in site.machine.read_etc("resolv.conf"), "the resolver is missing")
    site.expect_reached(INSIDE, INSIDE6)
    expect_equal(site.peer.handshake(), handshake, "the time of the last handshake")
    site.instance.write_tunnel(site.peer.file(SPLIT, PORT_LINE))
    site.instance.reload()
    expect_equal(site.namespace.link("tun0")["mtu"], 1420, "the MTU")
    expect("10.8.0.53" not in site.machine.read_etc("resolv.conf"), "the resolver is still there")
    site.instance.stop()
    site.machine.expect_state(before, "after the end")


@check("reload.sockets", "a changed FwMark and ListenPort: other sockets, marks, rules and table; sessions live on")
def sockets(testbed: DaemonTestbed) -> None:
    site, before = _up(testbed, FULL)
    handshake = site.peer.handshake()
    for lines, mark, port in (
            (f"{PORT_LINE}\nFwMark = 0x55", "0x55", "5555"), ("ListenPort = 5557\nFwMark = 0x55", "0x55", "5557"),
            (PORT_LINE, None, "5555")):
        site.instance.write_tunnel(site.peer.file(FULL, lines))
        site.instance.reload()
        expect_equal(site.instance.wg("listen-port"), port, "the port")
        if mark:
            expect_equal(site.instance.wg("fwmark"), mark, "the mark")
            expect(f"fwmark {mark}" in site.namespace.ip("rule"), "no rule is about the mark")
        site.expect_inside()
        site.expect_silent(OUTSIDE)
        wait_until(lambda: site.peer.place().endswith(f":{port}"), "the peer learning the port", 10)
    expect_equal(site.peer.handshake(), handshake, "the time of the last handshake")
    site.instance.stop()
    site.machine.expect_state(before, "after the end")


@check("reload.excluded", "routes that the configuration excludes are excluded by a reload, and included again")
def excluded(testbed: DaemonTestbed) -> None:
    site, before = _up(testbed, FULL)
    state, untouched = site.machine.state(), Untouched(site)
    site.instance.write('excludedRoutes: ["203.0.113.0/24"]')
    site.instance.reload()
    site.expect_reached(OUTSIDE)
    site.instance.write()
    site.instance.reload()
    site.expect_silent(OUTSIDE)
    untouched.expect("203.0.113.0/24")
    site.machine.expect_state(state, "after both reloads")
    site.instance.stop()
    site.machine.expect_state(before, "after the end")
