"""Endpoints by name: resolvers that are slow, dead or only outside, and names with several addresses."""

import os
import time

from daemon_testbed import DaemonTestbed
from name_server import NameServer
from run_checks.registry import check
from run_site import ENDPOINT, ENDPOINT6, FULL, LAN, LAN6, OUTSIDE, PORT, SPLIT, Site
from waiting import expect, expect_equal, wait_until

NAME = "peer.example"


def _site(testbed: DaemonTestbed, *addresses: str, resolver: str = LAN[1], **options) -> "tuple[Site, NameServer]":
    site = Site(testbed, resolver=resolver)
    return site, testbed.enter(NameServer(site.world, resolver, {NAME: addresses}, **options))


@check("name.plain", "an endpoint by name: looked up before anything is changed, of both families")
def plain(testbed: DaemonTestbed) -> None:
    for label, address in (("4", ENDPOINT), ("6", ENDPOINT6)):
        site = Site(testbed, label=label)
        server = testbed.enter(NameServer(site.world, LAN[1], {NAME: [address]}))
        before = site.prepare(FULL, endpoint=f"{NAME}:{PORT}")
        site.instance.start()
        site.expect_inside()
        expect_equal(set(server.queries), {NAME}, "the names asked for")
        place = f"{address}:{PORT}" if label == "4" else f"[{address}]:{PORT}"
        peer = site.instance.ask()["peers"][0]
        expect_equal((peer["endpointName"], peer["endpoint"]), (f"{NAME}:{PORT}", place), "name and place")
        site.instance.stop()
        site.machine.expect_state(before, "after a tunnel by name")


@check("name.slow", "a resolver that answers after three seconds is waited for", lasts=4)
def slow(testbed: DaemonTestbed) -> None:
    site, _ = _site(testbed, ENDPOINT, delay=3)
    before = site.prepare(FULL, endpoint=f"{NAME}:{PORT}")
    site.instance.launch()
    # Meanwhile programs can ask, and the machine is as it was but for the interface, which is down.
    site.instance.wait_for_socket()
    status = site.instance.expect_status("connecting")
    expect_equal((status["status"], status["reason"]), ("connecting", "looking up endpoints"), "the status meanwhile")
    site.expect_reached(OUTSIDE)
    site.instance.wait_until_ready()
    site.expect_inside()
    site.instance.stop()
    site.machine.expect_state(before, "after a slow look-up")


@check("name.dead", "a resolver that never answers ends the start in time: a reason, status 1, all as before", lasts=11)
def dead(testbed: DaemonTestbed) -> None:
    site, _ = _site(testbed, ENDPOINT, silent=True)
    hooks = testbed.file("hooks")
    before = site.prepare(FULL, f"PreUp = echo up >>{hooks}\nPostDown = echo down >>{hooks}", f"{NAME}:{PORT}")
    started = time.monotonic()
    site.instance.launch()
    site.instance.wait_for_end(1, 40)
    expect(time.monotonic() - started >= 9, "it gave up early")
    site.instance.wait_for_line("cannot look up an endpoint: no answer in time", 1)
    expect("READY=1" not in site.instance.notifications(), "it said to be ready")
    expect(NAME not in site.instance.log(), "the log has the name")
    with open(hooks) as file:
        expect_equal(file.read().split(), ["up", "down"], "the commands that ran")
    site.machine.expect_state(before, "after a start that failed")


@check("name.missing", "a name that does not exist ends the start at once: a reason, status 1, all as before")
def missing(testbed: DaemonTestbed) -> None:
    site, _ = _site(testbed, ENDPOINT)
    before = site.prepare(FULL, endpoint=f"absent.example:{PORT}")
    site.instance.launch()
    site.instance.wait_for_end(1, 20)
    site.instance.wait_for_line("cannot look up an endpoint: there is no such name", 1)
    site.machine.expect_state(before, "after a start that failed")


@check("name.outside", "a resolver that only answers outside of the tunnel serves the start and the one after it")
def outside(testbed: DaemonTestbed) -> None:
    site, server = _site(testbed, ENDPOINT, resolver=OUTSIDE)
    # A full tunnel whose own resolver is inside: nobody can reach the outer one while it is up.
    before = site.prepare(FULL, "DNS = 10.8.0.1", f"{NAME}:{PORT}")
    for _ in range(2):
        asked = len(server.queries)
        site.instance.start()
        site.expect_inside()
        site.expect_silent(OUTSIDE)
        expect(len(server.queries) > asked, "the outer resolver was not asked")
        site.instance.stop()
        site.machine.expect_state(before, "after a tunnel with resolvers of its own")


@check("name.remembered", "a name that nobody can look up leads where it led when the peer was last reached", lasts=11)
def remembered(testbed: DaemonTestbed) -> None:
    site, server = _site(testbed, ENDPOINT)
    before = site.prepare(FULL, endpoint=f"{NAME}:{PORT}")
    site.instance.start()
    site.expect_inside()
    site.instance.stop()
    path = f"{site.machine.root}/var/lib/sluice/{site.instance.name}.endpoints"
    expect_equal(os.stat(path).st_mode & 0o777, 0o600, "the mode of the file that it is remembered in")
    server.silent = True
    site.instance.start()
    site.expect_inside()
    site.instance.stop()
    site.machine.expect_state(before, "after a tunnel with a remembered endpoint")


@check("name.several", "a name with several addresses: a live peer is not moved to another one", lasts=4)
def several(testbed: DaemonTestbed) -> None:
    site, server = _site(testbed, ENDPOINT)
    site.prepare(SPLIT, endpoint=f"{NAME}:{PORT}")
    site.instance.start()
    site.expect_inside()
    handshake, asked = site.peer.handshake(), len(server.queries)
    # From now on the name leads elsewhere as well, and elsewhere first.
    server.names[NAME] = ["192.0.2.99", ENDPOINT]
    site.instance.reload()
    site.lose_default_routes()
    site.instance.wait_for_line("there is no path to the network")
    site.default_routes("under", LAN, LAN6)
    wait_until(lambda: site.namespace.ping(site.peer.inner, seconds=1).answered, "the tunnel going on", 10)
    expect_equal(site.instance.ask()["peers"][0]["endpoint"], f"{ENDPOINT}:{PORT}", "the endpoint")
    expect_equal(len(server.queries), asked, "the number of queries")
    expect_equal(site.peer.handshake(), handshake, "the time of the last handshake")
    site.instance.stop()
