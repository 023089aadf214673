"""The way to the network is lost, comes back, or is another one."""

import os
import signal
import time

from daemon_testbed import DaemonTestbed
from name_server import NameServer
from run_checks.registry import check
from run_site import ENDPOINT, FULL, LAN, LAN6, PORT, SECOND, SECOND6, SPLIT, Site
from tunnel_pair import expect_sockets_on
from waiting import expect, expect_equal, pause, wait_until

NAME = "peer.example"


def _up(testbed: DaemonTestbed, second: bool = False, allowed: str = FULL) -> "tuple[Site, NameServer, dict]":
    site = Site(testbed, second=second)
    server = testbed.enter(NameServer(site.world, LAN[1], {NAME: [ENDPOINT]}))
    before = site.prepare(allowed, "ListenPort = 5555", f"{NAME}:{PORT}")
    site.instance.start()
    site.expect_inside()
    return site, server, before


def _lose_and_return(site: Site, seconds: float, lose, give_back) -> None:
    """The path goes; what takes longer than the grace time must suspend the tunnel, what is shorter must not."""
    instance = site.instance
    started = time.monotonic()
    lose()
    instance.wait_for_line("there is no path to the network")
    if seconds > 12:
        instance.expect_status("reasserting", 20)
        expect(time.monotonic() - started >= 11.5, "the tunnel was suspended early")
        expect_equal(instance.ask()["reason"], "no path to the network", "the reason")
    pause(max(0, seconds - (time.monotonic() - started)))
    if seconds < 12:
        expect_equal(instance.ask()["status"], "connected", "the status while the path is lost")
    give_back()


@check("path.route5", "default routes gone for 5 s: nothing looked up, sessions kept, traffic goes on", lasts=5)
def route_for_a_moment(testbed: DaemonTestbed) -> None:
    site, server, before = _up(testbed)
    handshake, asked = site.peer.handshake(), len(server.queries)
    _lose_and_return(site, 5, site.lose_default_routes, lambda: site.default_routes("under", LAN, LAN6))
    site.expect_inside()
    expect_equal(site.peer.handshake(), handshake, "the time of the last handshake")
    expect_equal(len(server.queries), asked, "the number of queries")
    expect("reasserting" not in site.instance.log(), "the tunnel was suspended")
    site.instance.stop()
    site.machine.expect_state(before, "after a lost path")


@check("path.route30", "default routes gone for 30 s: suspended, then looked up afresh and back", lasts=30)
def route_for_long(testbed: DaemonTestbed) -> None:
    site, server, before = _up(testbed)
    asked = len(server.queries)
    _lose_and_return(site, 30, site.lose_default_routes, lambda: site.default_routes("under", LAN, LAN6))
    site.instance.expect_status("connected", 20)
    site.expect_inside()
    expect(len(server.queries) > asked, "the name was not looked up after a suspension")
    expect_equal([line.rpartition(" ")[2] for line in site.instance.log().splitlines() if "reasserting: " in line],
                 ["yes", "no"], "what was said of reasserting")
    site.instance.stop()
    site.machine.expect_state(before, "after a suspension")


@check("path.moved", "a suspended tunnel finds the peer where its name leads when the path is back", lasts=14)
def moved_while_suspended(testbed: DaemonTestbed) -> None:
    site, server, _ = _up(testbed, allowed=SPLIT)
    site.world.add_address("lo", "192.0.2.7/32")
    server.names[NAME] = ["192.0.2.7"]
    site.world.ip("address", "del", f"{ENDPOINT}/32", "dev", "lo")
    _lose_and_return(site, 14, site.lose_default_routes, lambda: site.default_routes("under", LAN, LAN6))
    site.instance.expect_status("connected", 20)
    site.expect_inside()
    expect_equal(site.instance.ask()["peers"][0]["endpoint"], f"192.0.2.7:{PORT}", "the endpoint")
    site.instance.stop()


def _link(site: Site, seconds: float) -> None:
    def down() -> None:
        site.namespace.ip("link", "set", "under", "down")

    def up() -> None:
        site.namespace.ip("link", "set", "under", "up")
        site.namespace.wait_for_link_up("under")
        site.namespace.ip("address", "replace", f"{LAN6[0]}/64", "dev", "under", "nodad")
        site.default_routes("under", LAN, LAN6)

    _lose_and_return(site, seconds, down, up)


@check("path.link5", "the link down for 5 s: sessions kept, traffic goes on", lasts=5)
def link_for_a_moment(testbed: DaemonTestbed) -> None:
    site, server, _ = _up(testbed)
    handshake, asked = site.peer.handshake(), len(server.queries)
    _link(site, 5)
    site.expect_inside()
    expect_equal(site.peer.handshake(), handshake, "the time of the last handshake")
    expect_equal(len(server.queries), asked, "the number of queries")
    site.instance.stop()


@check("path.link30", "the link down for 30 s: suspended, then back", lasts=30)
def link_for_long(testbed: DaemonTestbed) -> None:
    site, _, _ = _up(testbed)
    _link(site, 30)
    site.instance.expect_status("connected", 20)
    site.expect_inside()
    site.instance.stop()


@check("path.address", "another address of the machine: the peer learns it at once, sessions kept")
def address_changed(testbed: DaemonTestbed) -> None:
    site, server, before = _up(testbed)
    handshake, asked, inodes = site.peer.handshake(), len(server.queries), expect_sockets_on(site.namespace, 5555)
    site.namespace.delete_address("under", f"{LAN[0]}/24")
    site.namespace.add_address("under", "10.0.0.77/24")
    # The address took the route along.
    site.lose_default_routes()
    site.default_routes("under", LAN, LAN6)
    # Without traffic of the machine's own: what the daemon sends by itself tells the peer.
    wait_until(lambda: site.peer.place() == "10.0.0.77:5555", "the peer learning the new address", 10,
               detail=site.peer.place)
    site.expect_inside()
    expect_equal(site.peer.handshake(), handshake, "the time of the last handshake")
    expect_equal(len(server.queries), asked, "the number of queries")
    expect(expect_sockets_on(site.namespace, 5555) != inodes, "the sockets are the old ones")
    site.instance.stop()


@check("path.metric", "a second interface that is preferred is used at once, and the first again when that one goes")
def preferred_interface(testbed: DaemonTestbed) -> None:
    site, server, before = _up(testbed, second=True)
    handshake, asked = site.peer.handshake(), len(server.queries)
    site.default_routes("second", SECOND, SECOND6, metric=50)
    wait_until(lambda: site.peer.place() == f"{SECOND[0]}:5555", "the peer being told from the second network", 10,
               detail=site.peer.place)
    site.expect_inside()
    for family in ("-4", "-6"):
        site.namespace.ip(family, "route", "del", "default", "dev", "second")
    wait_until(lambda: site.peer.place() == f"{LAN[0]}:5555", "the peer being told from the first network again", 10,
               detail=site.peer.place)
    site.expect_inside()
    expect_equal(site.peer.handshake(), handshake, "the time of the last handshake")
    expect_equal(len(server.queries), asked, "the number of queries")
    site.instance.stop()
    site.machine.expect_state(before, "after a change of networks")


@check("path.frozen", "stopped for 200 s (SIGSTOP) it goes on with a new handshake and answers programs", lasts=200)
def frozen(testbed: DaemonTestbed) -> None:
    site, _, before = _up(testbed)
    handshake = site.peer.handshake()
    os.kill(site.instance.pid, signal.SIGSTOP)
    pause(200)
    os.kill(site.instance.pid, signal.SIGCONT)
    site.expect_inside()
    expect(site.peer.handshake() > handshake, "there was no new handshake")
    site.instance.expect_status("connected")
    site.instance.stop()
    site.machine.expect_state(before, "after a long halt")


@check("path.restored", "routes and rules that others take away are there again a moment later")
def restored(testbed: DaemonTestbed) -> None:
    site, _, before = _up(testbed)
    running = site.machine.state()
    rules = site.namespace.ip("rule", "show")
    for line in rules.splitlines():
        if "suppress_prefixlength" in line:
            site.namespace.ip("rule", "del", "priority", line.partition(":")[0])
    site.namespace.ip("route", "del", "default", "dev", "tun0", "table", str(site.instance.ask()["table"]))
    site.machine.expect_state(running, "the moment before", 10)
    site.instance.stop()
    site.machine.expect_state(before, "after that")
