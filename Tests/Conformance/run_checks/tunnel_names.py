"""DNS= of the tunnel's file beside the part `dns` with `dns.system`: which names are asked of whom."""

from daemon_testbed import DaemonTestbed
from name_server import NameServer
from run_checks.proxy import ask
from run_checks.registry import check
from run_checks.resolver import look_up, untimed, write
from run_site import FULL, OUTSIDE, SPLIT, Site
from waiting import expect, expect_equal, wait_until

#: The servers' answers tell them apart. That of the tunnel is an address of the inside.
INSIDE, OUTSIDE_ANSWER, CORP_ANSWER = "10.8.0.77", "203.0.113.33", "203.0.113.44"
#: A second server in the world.
CORP = "203.0.113.9"
NAMES = ("www.example.net", "host.corp.example", "deep.host.corp.example", "www.dev.example")


class Servers:
    """A server behind the tunnel, the proxy's upstream, and another one: each answers every name in its own way."""

    def __init__(self, testbed: DaemonTestbed, site: Site):
        site.world.add_address("lo", f"{CORP}/32")
        self.tunnel = testbed.enter(NameServer(site.world, site.peer.inner, {name: [INSIDE] for name in NAMES}))
        self.main = testbed.enter(NameServer(site.world, OUTSIDE, {name: [OUTSIDE_ANSWER] for name in NAMES}))
        self.corp = testbed.enter(NameServer(site.world, CORP, {name: [CORP_ANSWER] for name in NAMES}))


def _site(testbed: DaemonTestbed) -> "tuple[Site, Servers]":
    site = Site(testbed)
    return site, Servers(testbed, site)


def _tunnel(site: Site, line: str, allowed: str = SPLIT) -> None:
    site.instance.write_tunnel(site.peer.file(allowed, line))


def _write(site: Site, *routes: "tuple[list[str], list[str]]", **more) -> None:
    upstreams = [{"name": "main", "url": f"udp://{OUTSIDE}"}]
    if any("corp" in servers for _, servers in routes):
        upstreams.append({"name": "corp", "url": f"udp://{CORP}"})
    write(site.instance, tunnel=True, upstreams=upstreams, cache={"maxBytes": 0},
          routes=[{"domains": domains, "upstreams": servers} for domains, servers in routes], **more)


def _expect(site: Site, when: str, **answers: str) -> None:
    """The answers about the names, by their first label; an underscore stands for the dot after it."""
    for label, expected in answers.items():
        name = next(one for one in NAMES if one.startswith(label.replace("_", ".") + "."))
        expect_equal(ask(site.namespace, "127.0.0.1", name), [expected], f"the answer about {name} {when}")


@check("dns.domains", "domains in DNS= are asked of the tunnel's resolvers, all else of dns.upstreams; a route wins")
def domains(testbed: DaemonTestbed) -> None:
    site, servers = _site(testbed)
    _tunnel(site, f"DNS = {site.peer.inner}, Corp.Example.")
    _write(site)
    before = site.machine.state()
    site.instance.start()
    site.expect_inside()
    # Of the inside, and not held back: the domain is the tunnel's.
    _expect(site, "with a domain", www_example=OUTSIDE_ANSWER, host=INSIDE, deep=INSIDE, www_dev=OUTSIDE_ANSWER)
    expect_equal(look_up(site, "host"), [INSIDE], "what a program finds of a name that is not whole")
    expect_equal([one["name"] for one in site.instance.ask()["dns"]["upstreams"]], ["main", "tunnel"], "the upstreams")
    _write(site, (["corp.example"], ["corp"]))
    site.instance.reload()
    _expect(site, "with a route for the domain", www_example=OUTSIDE_ANSWER, host=CORP_ANSWER, deep=CORP_ANSWER)
    _write(site, (["deep.host.corp.example"], ["corp"]), (["dev.example"], ["tunnel"]))
    site.instance.reload()
    _expect(site, "with routes below and beside", www_example=OUTSIDE_ANSWER, host=INSIDE, deep=CORP_ANSWER,
            www_dev=INSIDE)
    # Who fails is not made up for by another one.
    servers.tunnel.silent = True
    _write(site, timeoutSeconds=1)
    site.instance.reload()
    asked = len(servers.main.queries)
    _expect(site, "with a server that is silent", host="SERVFAIL")
    expect("host.corp.example" not in servers.main.queries[asked:], "the tunnel's name was told to another server")
    site.instance.stop()
    site.machine.expect_state(before, "after the end")


@check("dns.everything", "DNS= without domains takes every name that has no route, unless a route names the tunnel")
def everything(testbed: DaemonTestbed) -> None:
    site, servers = _site(testbed)
    for allowed in (SPLIT, FULL):
        _tunnel(site, f"DNS = {site.peer.inner}, {site.peer.inner6}", allowed)
        _write(site, (["dev.example"], ["main"]), rebinding="allow")
        before = site.machine.state()
        site.instance.start()
        site.expect_inside()
        asked = len(servers.main.queries)
        _expect(site, "without domains", www_example=INSIDE, host=INSIDE)
        expect_equal(servers.main.queries[asked:], [], "what dns.upstreams were asked")
        if allowed == SPLIT:
            _expect(site, "with a route", www_dev=OUTSIDE_ANSWER)
            # What is asked of the tunnel's resolvers by default is of the outside, and may not lead inside.
            _write(site)
            site.instance.reload()
            _expect(site, "with dns.rebinding", host="NOERROR")
            _write(site, (["corp.example"], ["tunnel"]))
            site.instance.reload()
            _expect(site, "with a route to the tunnel", www_example=OUTSIDE_ANSWER, host=INSIDE, www_dev=OUTSIDE_ANSWER)
        expect_equal([one["name"] for one in site.instance.ask()["dns"]["upstreams"]], ["main", "tunnel", "tunnel-2"],
                     "the upstreams")
        site.instance.stop()
        site.machine.expect_state(before, "after the end")


@check("dns.comeandgo", "the tunnel's resolvers and domains come and go with the tunnel's file, by SIGHUP")
def come_and_go(testbed: DaemonTestbed) -> None:
    site, _ = _site(testbed)
    _tunnel(site, "")
    _write(site)
    before = site.machine.state()
    site.instance.start()
    site.expect_inside()
    handshake, plain = site.peer.handshake(), untimed(site)
    for _ in range(2):
        _expect(site, "without DNS=", www_example=OUTSIDE_ANSWER, host=OUTSIDE_ANSWER)
        _tunnel(site, f"DNS = {site.peer.inner}, corp.example")
        site.instance.reload()
        _expect(site, "with DNS=", www_example=OUTSIDE_ANSWER, host=INSIDE)
        expect("search corp.example" in site.machine.read_etc("resolv.conf"), "the domain is not searched")
        _tunnel(site, "")
        site.instance.reload()
        wait_until(lambda: "corp.example" not in site.machine.read_etc("resolv.conf"), "the domain being gone", 5)
    expect_equal(untimed(site), plain, "the machine after DNS= came and went")
    expect_equal(site.peer.handshake(), handshake, "the time of the last handshake")
    # Without dns.system they are nobody's: the part dns says who is asked.
    _tunnel(site, f"DNS = {site.peer.inner}, corp.example")
    _write(site, system=False)
    site.instance.reload()
    _expect(site, "without dns.system", host=OUTSIDE_ANSWER)
    expect(site.peer.inner not in site.machine.read_etc("resolv.conf"), "the tunnel's resolver is the machine's")
    site.instance.stop()
    site.machine.expect_state(before, "after the end")


@check("dns.named", "an upstream of one's own cannot be called as the tunnel's are")
def named(testbed: DaemonTestbed) -> None:
    site, _ = _site(testbed)
    _tunnel(site, f"DNS = {site.peer.inner}")
    write(site.instance, tunnel=True, upstreams=[{"name": "tunnel", "url": f"udp://{OUTSIDE}"}])
    outcome = site.instance.sluice("check", "--config", site.instance.configuration, check=False)
    expect_equal(outcome.returncode, 1, "the status of sluice check")
    expect('dns.upstreams[0].name: another upstream is called "tunnel"' in outcome.stderr, f"it says: {outcome.stderr}")
    _tunnel(site, "")
    site.instance.sluice("check", "--config", site.instance.configuration)
    _write(site, (["corp.example"], ["tunnel"]))
    outcome = site.instance.sluice("check", "--config", site.instance.configuration, check=False)
    expect("no upstream is called" in outcome.stderr, f"without DNS= it says: {outcome.stderr}")
