"""The DNS proxy beside a tunnel and alone: what it answers, what goes its way, and nothing left afterwards."""

import os
import shutil
import socket

import dns.exception
import dns.message
import dns.query
import dns.rcode

from daemon_testbed import DaemonTestbed
from name_server import NameServer
from network_namespace import NetworkNamespace
from run_checks.registry import check
from run_site import FULL, INSIDE, INSIDE6, LAN, LAN6, OUTSIDE, OUTSIDE6, SPLIT, Site
from waiting import CheckFailure, expect, expect_equal, wait_until

NAME, ADDRESS, ADDRESS6 = "www.example.net", "203.0.113.33", "2001:db8::33"
NOBODY = "65534"


def ask(namespace: NetworkNamespace, server: str, name: str = NAME, kind: str = "A", seconds: float = 5.0,
        by_tcp: bool = False) -> "list[str]":
    """The answers that a program of the machine gets from a server, or its RCODE alone."""
    query = dns.message.make_query(name, kind)
    with namespace.entered():
        try:
            # An answer from another address than the one that was asked is none, and so is one to another question.
            answer = (dns.query.tcp if by_tcp else dns.query.udp)(query, server, timeout=seconds)
        except (dns.exception.Timeout, OSError) as error:
            raise CheckFailure(f"no answer from {server} about {name} {kind}: {error}")
    return [item.to_text() for records in answer.answer for item in records] or [dns.rcode.to_text(answer.rcode())]


def silent(namespace: NetworkNamespace, server: str, by_tcp: bool = False) -> None:
    """Nobody may answer there."""
    try:
        answer = ask(namespace, server, seconds=1.0, by_tcp=by_tcp)
    except CheckFailure:
        return
    raise CheckFailure(f"{server} answered: {answer}")


def _site(testbed: DaemonTestbed) -> "tuple[Site, NameServer]":
    """A machine, and a server at the other end of its tunnel."""
    site = Site(testbed)
    server = testbed.enter(NameServer(site.world, site.peer.inner, {NAME: [ADDRESS, ADDRESS6]}))
    return site, server


def _dns(site: Site, more: str = "", rules: str = "") -> str:
    return (f'dns: {{ upstreams: [{{ name: "inside", url: "udp://{site.peer.inner}" }}], {more} }}, '
            f"rules: {{ inline: [{rules}] }}, ")


@check("dns.full", "in a full tunnel, queries to any server are answered by the proxy; what it asks itself goes through")
def full(testbed: DaemonTestbed) -> None:
    site, server = _site(testbed)
    before = site.prepare(FULL, more=_dns(site, rules='"||ads.example^"'))
    site.instance.start()
    site.expect_inside()
    # Nobody is at any of these ports; that of the router would be reached beside the tunnel.
    for place in (INSIDE, INSIDE6, OUTSIDE, OUTSIDE6, LAN[1], LAN6[1], site.peer.inner, site.peer.inner6):
        expect_equal(ask(site.namespace, place), [ADDRESS], f"the answer of {place}")
    expect_equal(ask(site.namespace, INSIDE, kind="AAAA"), [ADDRESS6], "the answer about AAAA")
    expect_equal(ask(site.namespace, INSIDE, "x.ads.example"), ["0.0.0.0"], "the answer about a blocked name")
    expect_equal(ask(site.namespace, INSIDE, "none.example.net"), ["NXDOMAIN"], "the answer about no name")
    expect_equal(server.queries, [NAME, NAME, "none.example.net"], "what the server was asked")
    silent(site.namespace, INSIDE, by_tcp=True)
    status = site.instance.ask()["dns"]
    expect_equal([status["queries"][key] for key in ("all", "cacheHits", "blocked", "forwarded", "lostInTunnel")],
                 [11, 7, 1, 3, 0], "what was counted")
    site.instance.stop()
    site.machine.expect_state(before, "after a tunnel with a DNS proxy")


@check("dns.split", "in a split tunnel, queries to servers inside are answered by the proxy; others go their way")
def split(testbed: DaemonTestbed) -> None:
    site, _ = _site(testbed)
    testbed.enter(NameServer(site.world, OUTSIDE, {NAME: ["192.0.2.66"]}))
    before = site.prepare(SPLIT, more=_dns(site))
    site.instance.start()
    site.expect_inside()
    expect_equal(ask(site.namespace, INSIDE), [ADDRESS], "the answer of a server inside")
    expect_equal(ask(site.namespace, OUTSIDE), ["192.0.2.66"], "the answer of a server outside")
    site.instance.stop()
    site.machine.expect_state(before, "after a split tunnel with a DNS proxy")


@check("dns.reload", "a DNS proxy comes, changes and goes by SIGHUP; a wrong one changes nothing; the tunnel stays")
def reload(testbed: DaemonTestbed) -> None:
    site, _ = _site(testbed)
    before = site.prepare(FULL)
    site.instance.start()
    site.expect_inside()
    handshake = site.peer.handshake()
    silent(site.namespace, INSIDE)

    def change(more: str, expected: str = "the configuration was read again") -> None:
        site.instance.write(more=more)
        site.instance.reload(expected)

    change(_dns(site, 'listen: ["127.0.0.1:53"]'))
    for place in ("127.0.0.1", INSIDE, LAN[1]):
        expect_equal(ask(site.namespace, place), [ADDRESS], f"the answer of {place}")
    change(_dns(site, 'listen: ["127.0.0.1:53"]', f'"||{NAME}^"'))
    for place in ("127.0.0.1", INSIDE):
        expect_equal(ask(site.namespace, place), ["0.0.0.0"], f"the answer of {place} about what is blocked now")
    taken = testbed.enter(site.namespace.udp_socket("127.0.0.2", 53))
    change(_dns(site, 'listen: ["127.0.0.1:53", "127.0.0.2:53"]'), "was not taken over")
    expect_equal(ask(site.namespace, "127.0.0.1"), ["0.0.0.0"], "the answer after a configuration that cannot be")
    taken.close()
    change(_dns(site, 'listen: ["127.0.0.2:53"]'))
    expect_equal(ask(site.namespace, "127.0.0.2"), [ADDRESS], "the answer at another address")
    silent(site.namespace, "127.0.0.1")
    change("")
    for place in ("127.0.0.2", INSIDE):
        silent(site.namespace, place)
    site.expect_inside()
    expect_equal(site.peer.handshake(), handshake, "the time of the last handshake")
    site.instance.stop()
    site.machine.expect_state(before, "after the end")


@check("dns.resolvers", "DNS= of the tunnel's file counts as long as there is no part dns, also by SIGHUP")
def resolvers(testbed: DaemonTestbed) -> None:
    site, _ = _site(testbed)
    before = site.prepare(FULL, f"DNS = {site.peer.inner}")
    ours = site.machine.read_etc("resolv.conf")
    site.instance.start()
    site.expect_inside()
    theirs = site.machine.read_etc("resolv.conf")
    expect(site.peer.inner in theirs, f"the resolver of the tunnel's file is not in resolv.conf: {theirs}")
    site.instance.write(more=_dns(site))
    site.instance.reload()
    wait_until(lambda: site.machine.read_etc("resolv.conf") == ours, "the machine's own resolv.conf with a part dns")
    site.instance.write()
    site.instance.reload()
    wait_until(lambda: site.machine.read_etc("resolv.conf") == theirs, "the tunnel's resolver without a part dns")
    site.instance.stop()
    site.machine.expect_state(before, "after the end")


@check("dns.alone", "with dns alone it runs without any privilege, and makes no device")
def alone(testbed: DaemonTestbed) -> None:
    site = Site(testbed, peer=False)
    testbed.enter(NameServer(site.world, LAN[1], {NAME: [ADDRESS]}))
    # Where the program is, its user may not be allowed to look.
    folder, outside = "/run/alone", f"{site.machine.root}/run/alone"
    os.mkdir(outside)
    os.chmod(outside, 0o777)
    shutil.copy(testbed.command[0], f"{outside}/sluice")
    site.machine.write_etc(
        "sluice/alone.json5",
        f'{{ dns: {{ listen: ["127.0.0.1:5353", "[::1]:5353"], upstreams: [{{ name: "a", url: "udp://{LAN[1]}" }}] }}, '
        f'control: {{ socket: "{folder}/control.sock" }} }}\n')
    log = testbed.enter(open(f"{outside}/log", "wb"))
    before, links = site.machine.state(), site.namespace.ip("link")
    process = site.machine.start(
        "setpriv", "--reuid", NOBODY, "--regid", NOBODY, "--clear-groups", "--bounding-set=-all", "--inh-caps=-all",
        "--no-new-privs", f"{folder}/sluice", *testbed.command[1:], "run", "--config", "/etc/sluice/alone.json5", stdout=log, stderr=log)

    def said() -> str:
        with open(f"{outside}/log") as text:
            return text.read()

    wait_until(lambda: "everything is up" in said() or process.poll() is not None, "the daemon being up", detail=said)
    expect(process.poll() is None, f"the daemon ended: {said()}")
    for place in ("127.0.0.1", "::1"):
        for transport in (dns.query.udp, dns.query.tcp):
            with site.namespace.entered():
                answer = transport(dns.message.make_query(NAME, "A"), place, port=5353, timeout=5)
            expect_equal([item.to_text() for item in answer.answer[0]], [ADDRESS], f"the answer at {place}")
    with open(f"/proc/{process.pid}/status") as status:
        fields = dict(line.split(":\t", 1) for line in status.read().splitlines() if ":\t" in line)
    expect_equal((fields["CapEff"], fields["CapPrm"]), ("0" * 16, "0" * 16), "the daemon's capabilities")
    expect_equal(site.namespace.ip("link"), links, "the interfaces")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as control:
        control.connect(f"{outside}/control.sock")
    process.terminate()
    wait_until(lambda: process.poll() is not None, "the daemon ending", detail=said)
    expect_equal(process.returncode, 0, "the exit status")
    expect("ERROR" not in said(), f"it complains: {said()}")
    site.machine.expect_state(before, "after the end")
