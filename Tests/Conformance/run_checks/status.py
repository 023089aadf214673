"""What it says of itself: status, changes, the log."""

import json
import os
import stat
import subprocess
import threading

from daemon_testbed import DaemonTestbed
from name_server import NameServer
from run_checks.registry import check
from run_instance import Instance
from run_site import ENDPOINT, FULL, INSIDE, INSIDE6, LAN, LAN6, PORT, SECOND, SECOND6, SPLIT, Site
from traffic import transfer
from waiting import expect, expect_equal, wait_until
from wireguard_tool import KeyPair


@check("status.json", "sluice status --json: what is in force, the offloads, and the peers as wg shows them")
def status_json(testbed: DaemonTestbed) -> None:
    site = Site(testbed)
    site.prepare(FULL, "DNS = 10.8.0.1, corp.example\nListenPort = 5555", peer="PersistentKeepalive = 20")
    site.instance.start()
    site.expect_inside()
    shown = site.instance.sluice("status", "--json", "--config", site.instance.configuration).stdout
    expect_equal(shown.count("\n"), 1, "the number of lines")
    status = json.loads(shown)
    expect_equal((status["status"], status["interface"], status["mtu"], status["listenPort"]),
                 ("connected", "tun0", 1420, 5555), "status, interface, MTU and port")
    expect_equal(status["firewallMark"], int(site.instance.wg("fwmark"), 16), "the mark")
    expect(f"lookup {status['table']}" in site.namespace.ip("rule"), "no rule leads to the table of the status")
    settings = status["settings"]
    expect_equal((settings["addresses"], settings["dnsServers"], settings["searchDomains"]),
                 (["10.8.0.2/24", "fd08::2/64"], ["10.8.0.1"], ["corp.example"]), "addresses and resolvers")
    expect_equal(settings["includedRoutes"], ["0.0.0.0/0", "::/0"], "the routes")
    for offload, parts in (("tun", ("tcp", "udp", "write")), ("udpSegment", ("ipv4", "ipv6"))):
        for part in parts:
            expect(isinstance(status["offloads"][offload][part], str), f"no state of the offload {offload}.{part}")
    expect(isinstance(status["offloads"]["udpGRO"], str), "no state of the offload udpGRO")
    peer = status["peers"][0]
    expect_equal((peer["publicKey"], peer["endpoint"], peer["persistentKeepaliveSeconds"], peer["handshake"]),
                 (site.peer.own_keys.public, f"{ENDPOINT}:{PORT}", 20, "completed"), "the peer")
    expect_equal(str(peer["lastHandshakeSeconds"]), site.instance.wg("latest-handshakes").split()[1], "the handshake")
    expect(peer["receivedBytes"] > 0 and peer["sentBytes"] > 0, "nothing was counted")
    # For people: the same, and no secret.
    text = site.instance.sluice("status", "--config", site.instance.configuration).stdout
    for part in ("interface: tun0", "status: connected", site.peer.own_keys.public, f"endpoint: {ENDPOINT}:{PORT}",
                 "routes: 0.0.0.0/0, ::/0", "offloads: tun "):
        expect(part in text, f"sluice status does not say {part!r}")
    for secret in (site.peer.keys.private, site.peer.preshared):
        expect(secret not in text and secret not in shown, "a secret is in the status")
    site.instance.stop()


@check("status.notify", "the service manager hears READY=1 after PostUp, once, and STOPPING=1 when it ends")
def notifications(testbed: DaemonTestbed) -> None:
    site = Site(testbed)
    go = testbed.file("go")
    site.prepare(FULL, f"PostUp = while ! [ -e {go} ]; do sleep 0.05; done")
    site.instance.launch()
    site.instance.wait_for_socket()
    site.expect_inside()
    expect("READY=1" not in site.instance.notifications(), "READY=1 came before PostUp was through")
    with open(go, "w"):
        site.instance.wait_until_ready()
    site.instance.stop()
    said = site.instance.notifications()
    expect_equal([said.count(word) for word in ("READY=1", "STOPPING=1")], [1, 1], f"how often each was said ({said})")


@check("status.none", "sluice status without a daemon: one clear line, status 1")
def nobody_there(testbed: DaemonTestbed) -> None:
    site = Site(testbed)
    site.prepare(FULL)
    for words in ((), ("--json",), ("--watch",)):
        outcome = site.instance.sluice("status", *words, "--config", site.instance.configuration, check=False)
        expect_equal((outcome.returncode, outcome.stdout), (1, ""), "status and output")
        expect_equal(outcome.stderr.count("\n"), 1, "the number of lines")
        expect("no daemon answers" in outcome.stderr and site.instance.socket in outcome.stderr, outcome.stderr)


class Watcher:
    """Reads what `sluice status --watch --json` prints."""

    def __init__(self, site: Site):
        self.process = site.machine.start(
            *site.testbed.command, "status", "--watch", "--json", "--config", site.instance.configuration,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.reports: "list[dict]" = []
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        for line in self.process.stdout:
            self.reports.append(json.loads(line))

    def revisions(self) -> "list[int]":
        """The revisions that were printed, in their order."""
        return [report["revision"] for report in self.reports]

    def wait_for(self, condition, what: str, seconds: float = 20.0) -> None:
        """Waits until the last report is so."""
        wait_until(lambda: self.reports and condition(self.reports[-1]), what, seconds,
                   detail=lambda: self.reports[-1:])


@check("status.watch", "sluice status --watch prints a roaming peer and a lost path, each change once", lasts=14)
def watch(testbed: DaemonTestbed) -> None:
    site = Site(testbed)
    site.prepare(SPLIT)
    site.instance.start()
    watcher = Watcher(site)
    watcher.wait_for(lambda report: report["status"] == "connected", "the first report")
    site.expect_inside()
    watcher.wait_for(lambda report: report["peers"][0]["handshake"] == "completed", "the handshake being printed")
    # The peer roams: it sends from another port.
    site.peer.interface.set(listen_port=PORT + 7)
    site.world.ping("10.8.0.2", seconds=2)
    watcher.wait_for(
        lambda report: report["peers"][0]["endpoint"].endswith(f":{PORT + 7}"), "the roaming being printed")
    site.namespace.ip("link", "set", "under", "down")
    watcher.wait_for(lambda report: report["status"] == "reasserting", "the suspension being printed", 30)
    site.namespace.ip("link", "set", "under", "up")
    site.default_routes("under", LAN, LAN6, families=("-4",))
    watcher.wait_for(lambda report: report["status"] == "connected", "the return being printed", 30)
    revisions = watcher.revisions()
    expect_equal(revisions, sorted(set(revisions)), "the revisions")
    texts = [_without_counts(report) for report in watcher.reports]
    for earlier, later in zip(texts, texts[1:]):
        expect(earlier != later, "a change was printed twice")
    site.instance.stop()
    wait_until(lambda: watcher.process.poll() is not None, "the watcher ending with the daemon", 10)
    expect_equal(watcher.process.returncode, 1, "the watcher's status when the daemon ends")


def _without_counts(report: dict) -> str:
    """A report without what is counted and without its number."""
    counted = ("receivedBytes", "sentBytes", "lastHandshakeSeconds")
    peers = [{name: value for name, value in peer.items() if name not in counted} for peer in report["peers"]]
    return json.dumps({**report, "peers": peers, "drops": None, "revision": None, "offloads": None}, sort_keys=True)


@check("status.many", "twenty long polls get every change, each once; those that leave do no harm")
def many_watchers(testbed: DaemonTestbed) -> None:
    site = Site(testbed)
    site.prepare(SPLIT)
    site.instance.start()
    site.expect_inside()
    connections = [testbed.enter(site.instance.connect()) for _ in range(20)]
    streams = [connection.makefile() for connection in connections]
    revision = site.instance.ask()["revision"]
    seen = [[] for _ in connections]
    for step in range(4):
        for connection in connections:
            connection.sendall(f'{{"status": {{"after": {revision}, "timeLimitSeconds": 60}}}}\n'.encode())
        # Some go while they wait.
        for _ in range(5):
            with site.instance.connect() as leaving:
                leaving.sendall(f'{{"status": {{"after": {revision}, "timeLimitSeconds": 60}}}}\n'.encode())
        site.instance.write_tunnel(site.peer.file(SPLIT, peer=f"PersistentKeepalive = {step + 10}"))
        site.instance.reload()
        for index, stream in enumerate(streams):
            report = json.loads(stream.readline())
            seen[index].append((report["revision"], report["peers"][0]["persistentKeepaliveSeconds"]))
        revision = seen[0][-1][0]
    expect_equal([number for _, number in seen[0]], [10, 11, 12, 13], "the changes seen")
    expect(all(one == seen[0] for one in seen), "not all saw the same")
    # Nobody is told anything more without asking.
    for connection in connections:
        connection.setblocking(False)
        try:
            expect(not connection.recv(1), "something came unasked")
        except BlockingIOError:
            pass
    expect_equal(site.instance.ask()["status"], "connected", "the status")
    site.instance.stop()


@check("status.socket", "the control socket is its owner's alone, and nonsense there does no harm")
def control_socket(testbed: DaemonTestbed) -> None:
    site = Site(testbed)
    site.prepare(SPLIT)
    site.instance.start()
    path = f"{site.machine.root}{site.instance.socket}"
    status = os.stat(path)
    expect_equal((stat.S_IMODE(status.st_mode) & 0o077, status.st_uid), (0, 0), "mode for others and owner")
    refused = site.machine.run(
        "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *testbed.command, "status", "--config",
        site.instance.configuration, check=False)
    expect_equal(refused.returncode, 1, "the status for another user")
    expect("Permission denied" in refused.stderr, f"another user is told: {refused.stderr}")
    for request, words in (
            ("nonsense", ["not JSON"]), ("{}", ["status", "queries", "flushDNS"]), ("[" * 500, ["not JSON"]),
            ('{"stop": {}}', ["stop", "status", "queries", "flushDNS"]),
            ('{"status": {"after": -1}}', ["status.after", "whole number"]),
            ('{"status": {"x": 1}}', ["x", "after", "timeLimitSeconds"])):
        answer = site.instance.ask(request).get("error", "")
        expect(all(word in answer for word in words), f"{request!r} is answered with {answer!r}")
    with site.instance.connect() as connection:
        try:
            connection.sendall(b"x" * 100_000)
            expect(connection.recv(10) == b"", "a line without an end is answered")
        except (BrokenPipeError, ConnectionResetError):
            pass
    expect_equal(site.instance.ask()["status"], "connected", "the status")
    site.instance.stop()


@check("wg.show", "wg shows a running instance as it is, and wg set changes it")
def wg_show(testbed: DaemonTestbed) -> None:
    site = Site(testbed)
    site.prepare(SPLIT, "ListenPort = 5555", peer="PersistentKeepalive = 25")
    site.instance.start()
    site.expect_inside()
    expect_equal(site.machine.run("wg", "show", "interfaces").stdout.split(), ["tun0"], "the interfaces")
    lines = [line.split("\t") for line in site.instance.wg("dump").splitlines()]
    expect_equal(lines[0], [site.peer.keys.private, site.peer.keys.public, "5555", "off"], "the interface")
    expect_equal(lines[1][:3], [site.peer.own_keys.public, site.peer.preshared, f"{ENDPOINT}:{PORT}"], "the peer")
    expect_equal(sorted(lines[1][3].split(",")), sorted(SPLIT.split(", ")), "the allowed IPs")
    expect_equal(lines[1][7], "25", "the keepalive")
    added = KeyPair.generate().public
    site.machine.run("wg", "set", "tun0", "peer", added, "allowed-ips", "10.66.0.0/16")
    expect_equal(sorted(site.instance.wg("peers").split()), sorted([added, site.peer.own_keys.public]), "the peers")
    site.expect_reached(INSIDE)
    site.instance.stop()


@check("log.private", "keys, names and addresses are in no log of starts, traffic and failures, unless showPrivate")
def private(testbed: DaemonTestbed) -> None:
    site = Site(testbed, second=True)
    name = "secret-peer.example"
    testbed.enter(NameServer(site.world, LAN[1], {name: [ENDPOINT]}))
    site.prepare(FULL, "DNS = 10.8.0.1, secret-domain.example\nListenPort = 5555\n"
                 "PostUp = echo hello-from-a-command", f"{name}:{PORT}")
    site.instance.start()
    site.expect_inside()
    site.namespace.ping("198.51.100.99")
    site.default_routes("second", SECOND, SECOND6, metric=50)
    wait_until(lambda: site.peer.place().startswith(SECOND[0]), "the change of networks", 10)
    site.peer.interface.set(listen_port=PORT + 7)
    site.world.ping("10.8.0.2", seconds=2)
    site.instance.write_tunnel(site.peer.file(SPLIT + ", 10.77.0.0/16", "ListenPort = 5555", f"absent-{name}:{PORT}"))
    site.instance.reload("the configuration was")
    site.instance.write_tunnel("[Interface]\nAddress = secret-address\n")
    site.instance.reload("nothing is changed")
    site.instance.stop()
    _expect_hidden(site, site.instance, name)
    # A name that does not exist, resolvers that cannot be set, a route that cannot be added.
    for allowed, interface, endpoint in (
            (FULL, "", f"absent-{name}:{PORT}"), (FULL, "DNS = 10.8.0.1", f"{ENDPOINT}:{PORT}"),
            (SPLIT, "", f"{ENDPOINT}:{PORT}")):
        if interface:
            site.machine.install("resolvconf", "#!/bin/sh\necho resolvconf: 10.8.0.1 is wrong >&2\nexit 3\n")
        if allowed == SPLIT:
            site.namespace.ip("route", "add", "198.51.100.0/24", "via", LAN[1])
        before = site.prepare(allowed, interface, endpoint)
        site.instance.launch()
        site.instance.wait_for_end(1, 40)
        _expect_hidden(site, site.instance, name)
        site.machine.expect_state(before, "after a start that failed")
    os.unlink(f"{site.machine.sbin}/resolvconf")
    # And when it is wanted, it is there; keys never.
    site.instance.write_tunnel(site.peer.file(FULL, endpoint=f"absent-{name}:{PORT}"))
    site.machine.write_etc("sluice/tun0.json5", f'{{ tunnel: {{ config: "{site.instance.tunnel_path}" }}, '
                           f'log: {{ level: "debug", showPrivate: true }}, control: {{ socket: "/run/sluice/s" }} }}')
    site.instance.launch()
    site.instance.wait_for_end(1, 40)
    expect(f"absent-{name}" in site.instance.log(), "showPrivate does not show the name")
    for secret in (site.peer.keys.private, site.peer.preshared):
        expect(secret not in site.instance.log(), "a key is in the log")


def _expect_hidden(site: Site, instance: Instance, name: str) -> None:
    log = instance.log()
    planted = (site.peer.keys.private, site.peer.keys.public, site.peer.own_keys.public, site.peer.preshared, name,
               "secret-domain", "secret-address", "10.8.0", "fd08:", ENDPOINT, INSIDE, INSIDE6, LAN[0], LAN[1], LAN6[0],
               SECOND[0], SECOND[1], "198.51.100", "10.77.0.0")
    for value in planted:
        lines = [line for line in log.splitlines() if value in line]
        expect(not lines, f"the log shows {value}: {lines[:1]}")
    expect(log.strip(), "nothing was logged: the check proves nothing")


@check("memory", "after iperf3 in both directions sluice run has at most 15 MiB VmRSS", lasts=8)
def memory(testbed: DaemonTestbed) -> None:
    site = Site(testbed)
    site.prepare(FULL)
    site.instance.start()
    site.expect_inside()
    for options in ((), ("-R",), ("-P", "8")):
        transfer(site.namespace, site.world, site.peer.inner, *options, seconds=1.5)
    with open(f"/proc/{site.instance.pid}/status") as file:
        resident = int(next(line for line in file if line.startswith("VmRSS:")).split()[1])
    print(f"# sluice run after iperf3: VmRSS {resident / 1024:.1f} MiB", flush=True)
    expect(resident <= 15 * 1024, f"VmRSS is {resident / 1024:.1f} MiB after iperf3")
    site.instance.stop()
