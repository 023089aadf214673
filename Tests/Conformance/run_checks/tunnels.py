"""Full and split tunnels: what goes inside, what stays outside, and nothing left afterwards."""

from daemon_testbed import DaemonTestbed
from name_server import NameServer
from run_checks.registry import check
from run_instance import Instance
from run_site import (
    ENDPOINT, ENDPOINT6, FULL, INSIDE, INSIDE6, LAN, LAN6, OUTSIDE, OUTSIDE6, PORT, SPLIT, Peer, Site)
from tunnel_pair import TunnelPair
from waiting import expect, expect_equal


@check("full.v4", "a full tunnel over IPv4: everything inside but the machine's own network; then all as before")
def full_over_ipv4(testbed: DaemonTestbed) -> None:
    _full(Site(testbed), f"{ENDPOINT}:{PORT}")


@check("full.v6", "a full tunnel over IPv6: everything inside but the machine's own network; then all as before")
def full_over_ipv6(testbed: DaemonTestbed) -> None:
    _full(Site(testbed), f"[{ENDPOINT6}]:{PORT}")


def _full(site: Site, endpoint: str) -> None:
    before = site.prepare(FULL, endpoint=endpoint)
    site.instance.start()
    site.expect_inside()
    site.expect_reached(*LAN[1:], *LAN6[1:])
    site.expect_silent(OUTSIDE, OUTSIDE6)
    site.instance.expect_no_error()
    site.instance.stop()
    site.machine.expect_state(before, "after a full tunnel")


@check("split.v4", "a split tunnel over IPv4: what is named inside, all else outside; then all as before")
def split_over_ipv4(testbed: DaemonTestbed) -> None:
    _split(Site(testbed), f"{ENDPOINT}:{PORT}")


@check("split.v6", "a split tunnel over IPv6: what is named inside, all else outside; then all as before")
def split_over_ipv6(testbed: DaemonTestbed) -> None:
    _split(Site(testbed), f"[{ENDPOINT6}]:{PORT}")


def _split(site: Site, endpoint: str) -> None:
    before = site.prepare(SPLIT, endpoint=endpoint)
    site.instance.start()
    site.expect_inside()
    site.expect_reached(OUTSIDE, OUTSIDE6, LAN[1], LAN6[1])
    site.instance.stop()
    site.machine.expect_state(before, "after a split tunnel")


@check("full.one", "a full tunnel of one family leaves the other one alone")
def one_family(testbed: DaemonTestbed) -> None:
    site = Site(testbed)
    before = site.prepare("0.0.0.0/0")
    site.instance.start()
    site.expect_reached(INSIDE)
    site.expect_reached(OUTSIDE6)
    site.expect_silent(OUTSIDE, INSIDE6)
    site.instance.stop()
    site.machine.expect_state(before, "after a tunnel of IPv4")


@check("routes.excluded", "excluded routes stay outside of a full tunnel; the device's routes win over AllowedIPs")
def excluded_routes(testbed: DaemonTestbed) -> None:
    site = Site(testbed)
    before = site.prepare(FULL, device='excludedRoutes: ["203.0.113.0/24", "2001:db8:ee::/48"]')
    site.instance.start()
    site.expect_inside()
    site.expect_reached(OUTSIDE, OUTSIDE6, LAN[1], LAN6[1])
    site.instance.stop()
    site.machine.expect_state(before, "after a tunnel with excluded routes")
    # The device's word on routes and addresses wins over the file's.
    site.prepare(FULL, device='includedRoutes: ["198.51.100.0/24", "2001:db8:99::/48"], '
                 'addresses: ["10.8.0.2/24", "fd08::2/64"]')
    site.instance.start()
    site.expect_inside()
    site.expect_reached(OUTSIDE, OUTSIDE6)
    site.instance.stop()
    site.machine.expect_state(before, "after a tunnel with routes of the device")


@check("routes.lan", "a part of the machine's own network goes inside where the configuration says so")
def lan_inside(testbed: DaemonTestbed) -> None:
    site = Site(testbed)
    # Half of the network, with an address of it at the other end.
    site.world.add_address(site.peer.interface.name, "10.0.0.200/32")
    site.world.nft('table inet proof { chain input { iifname "under" ip daddr 10.0.0.200 drop\n}\n}\n')
    before = site.prepare(f"{FULL}, 10.0.0.128/25")
    site.instance.start()
    site.expect_reached("10.0.0.200", LAN[1])
    site.expect_inside()
    site.instance.stop()
    site.machine.expect_state(before, "after a tunnel into the own network")


@check("routes.resolver", "a resolver on the machine's own network answers beside a full tunnel, one inside through it")
def resolvers(testbed: DaemonTestbed) -> None:
    site = Site(testbed)
    for address in (LAN[1], site.peer.inner):
        testbed.enter(NameServer(site.world, address, {f"host.{address}.example": ["192.0.2.33"]}))
    for line, name in ((f"DNS = {site.peer.inner}", f"host.{site.peer.inner}.example"),
                       (f"DNS = {LAN[1]}", f"host.{LAN[1]}.example"), ("", f"host.{LAN[1]}.example")):
        before = site.prepare(FULL, line)
        site.instance.start()
        site.expect_inside()
        found = site.machine.run("getent", "ahostsv4", name, seconds=30).stdout
        expect("192.0.2.33" in found, f"{name} is not found with {line!r}")
        site.instance.stop()
        site.machine.expect_state(before, "after a tunnel with resolvers")


@check("endpoint.inside", "an AllowedIPs that covers the endpoint swallows everything there but the tunnel itself")
def endpoint_inside(testbed: DaemonTestbed) -> None:
    for allowed, endpoint in (("192.0.2.0/24", f"{ENDPOINT}:{PORT}"), ("2001:db8:1::/48", f"[{ENDPOINT6}]:{PORT}")):
        site = Site(testbed, label="4" if "." in allowed else "6")
        site.world.nft('table inet proof { chain input { iifname "under" ip protocol icmp ip daddr 192.0.2.1 drop\n'
                       'iifname "under" ip6 daddr 2001:db8:1::1 icmpv6 type echo-request drop\n}\n}\n')
        before = site.prepare(f"{SPLIT}, {allowed}", endpoint=endpoint)
        site.instance.start()
        site.expect_inside()
        # By its address, which is the endpoint's too, only the inside answers pings.
        site.expect_reached(ENDPOINT if "." in allowed else ENDPOINT6, OUTSIDE, OUTSIDE6)
        site.instance.stop()
        site.machine.expect_state(before, "after a tunnel around its own endpoint")


@check("endpoint.none", "a peer without an endpoint calls, and is answered beside a full tunnel")
def no_endpoint(testbed: DaemonTestbed) -> None:
    site = Site(testbed)
    before = site.prepare(FULL, "ListenPort = 5555", endpoint="")
    site.instance.start()
    site.expect_silent(INSIDE, OUTSIDE)
    for place in (f"{LAN[0]}:5555", f"[{LAN6[0]}]:5555"):
        site.peer.interface.set_peer(site.peer.keys.public, endpoint=place)
        TunnelPair.expect_reached(site.world, "10.8.0.2")
        TunnelPair.expect_reached(site.world, "fd08::2")
        site.expect_inside()
    site.instance.stop()
    site.machine.expect_state(before, "after a tunnel without an endpoint")


@check("endpoint.ipv4", "on a machine without IPv6 a tunnel of IPv4 works")
def without_ipv6(testbed: DaemonTestbed) -> None:
    site = Site(testbed)
    for key in ("all", "default", "lo", "under"):
        site.namespace.sysctl(f"net/ipv6/conf/{key}/disable_ipv6", 1)
    before = site.machine.state()
    site.prepare()
    site.instance.write_tunnel(site.peer.file("0.0.0.0/0").replace(", fd08::2/64", ""))
    site.instance.start()
    site.expect_reached(INSIDE, LAN[1])
    site.expect_silent(OUTSIDE)
    site.instance.stop()
    site.machine.expect_state(before, "after a tunnel of IPv4")


@check("hooks.tunnel", "a PostUp command can use the tunnel, and gets no descriptor of the daemon's")
def hook_uses_tunnel(testbed: DaemonTestbed) -> None:
    site = Site(testbed)
    path = testbed.file("descriptors")
    before = site.prepare(FULL, f"PostUp = ping -n -c 1 -W 20 {INSIDE}\nPostUp = ls -l /proc/$$/fd >{path}")
    site.instance.start()
    with open(path) as file:
        entries = [line.split(" -> ")[1].strip() for line in file if " -> " in line]
    # The shell's own are standard input and what it was told to write to; no device, no socket.
    foreign = [entry for entry in entries if entry.startswith(("socket:", "anon_inode:", "/dev/net"))]
    expect_equal(foreign, [], "descriptors that a command has")
    site.instance.stop()
    site.machine.expect_state(before, "after a tunnel with commands")


@check("two.first", "two full tunnels at once: stopping the first one leaves the second and the machine whole")
def two_stop_first(testbed: DaemonTestbed) -> None:
    _two(Site(testbed), first_leaves_first=True)


@check("two.second", "two full tunnels at once: stopping the second one leaves the first and the machine whole")
def two_stop_second(testbed: DaemonTestbed) -> None:
    _two(Site(testbed), first_leaves_first=False)


def _two(site: Site, first_leaves_first: bool) -> None:
    other_peer = Peer(site.testbed, site.world, 9, PORT + 1)
    other = Instance(site.machine, "tun1")
    other.write_tunnel(other_peer.file(FULL, endpoint=f"{ENDPOINT}:{PORT + 1}"))
    other.write()
    before = site.prepare(FULL)
    site.instance.start()
    site.expect_inside()
    alone = site.machine.state()
    other.start()
    for inner in (site.peer.inner, site.peer.inner6, other_peer.inner, other_peer.inner6):
        site.expect_reached(inner)
    site.expect_reached(INSIDE, INSIDE6, LAN[1], LAN6[1])
    site.expect_silent(OUTSIDE, OUTSIDE6)
    going, staying, peer = (
        (site.instance, other, other_peer) if first_leaves_first else (other, site.instance, site.peer))
    handshake = peer.handshake()
    going.stop()
    if not first_leaves_first:
        site.machine.expect_state(alone, "with the first tunnel alone")
    site.expect_reached(INSIDE, INSIDE6, peer.inner, peer.inner6, LAN[1], LAN6[1])
    site.expect_silent(OUTSIDE, OUTSIDE6)
    expect_equal(peer.handshake(), handshake, "the time of the last handshake of the tunnel that stays")
    expect(staying.ask()["status"] == "connected", "the tunnel that stays is not connected")
    staying.stop()
    site.machine.expect_state(before, "after both tunnels")
