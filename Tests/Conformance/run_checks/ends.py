"""Ends in every state, by request, by force and from outside; starts that cannot be."""

import os
import resource
import signal
import socket
import time

import uapi
from daemon_testbed import DaemonTestbed
from name_server import NameServer
from run_checks.registry import check
from run_instance import Instance
from run_site import FULL, LAN, LAN6, OUTSIDE, PORT, SPLIT, Site
from waiting import expect, expect_equal, wait_until

NAME = "peer.example"


def _hooks(testbed: DaemonTestbed, **commands: str) -> "tuple[str, str]":
    """Lines for the file that note each command as it begins and then run one of `commands`, and where they note it."""
    path = testbed.file("hooks")
    lines = "".join(f"{name} = echo {name} >>{path}\n" + (f"{name} = {commands[name]}\n" if name in commands else "")
                    for name in ("PreUp", "PostUp", "PreDown", "PostDown"))
    return lines, path


def _noted(path: str) -> "list[str]":
    try:
        with open(path) as file:
            return file.read().split()
    except FileNotFoundError:
        return []


def _wait_for_hook(path: str, name: str) -> None:
    wait_until(lambda: name in _noted(path), f"{name} running", 20)


@check("stop.preup", "a stop during PreUp: the command ends, nothing else comes up, all as before")
def during_pre_up(testbed: DaemonTestbed) -> None:
    site = Site(testbed)
    lines, path = _hooks(testbed, PreUp="sleep 1.5")
    before = site.prepare(FULL, lines)
    site.instance.launch()
    _wait_for_hook(path, "PreUp")
    site.instance.stop()
    expect_equal(_noted(path), ["PreUp", "PostDown"], "the commands that ran")
    site.machine.expect_state(before, "after a stop during PreUp")


@check("stop.twice", "a second stop ends a command that runs long")
def stopped_twice(testbed: DaemonTestbed) -> None:
    site = Site(testbed)
    lines, path = _hooks(testbed, PostUp="sleep 1000")
    before = site.prepare(FULL, lines)
    site.instance.launch()
    _wait_for_hook(path, "PostUp")
    site.instance.signal(signal.SIGTERM)
    site.instance.wait_for_line("asked to end")
    site.instance.signal(signal.SIGINT)
    # The command failed: it was ended.
    site.instance.wait_for_end(1)
    site.machine.expect_state(before, "after two stops")


@check("stop.resolving", "a stop while a name is looked up: at once, all as before")
def while_resolving(testbed: DaemonTestbed) -> None:
    site = Site(testbed)
    testbed.enter(NameServer(site.world, LAN[1], {}, silent=True))
    before = site.prepare(FULL, endpoint=f"{NAME}:{PORT}")
    site.instance.launch()
    site.instance.wait_for_socket()
    site.instance.expect_status("connecting")
    started = time.monotonic()
    site.instance.stop()
    expect(time.monotonic() - started < 5, "the stop waited for the look-up")
    site.machine.expect_state(before, "after a stop while a name was looked up")


@check("stop.starting", "stops at any moment of the start: all as before each time")
def while_starting(testbed: DaemonTestbed) -> None:
    site = Site(testbed)
    before = site.prepare(FULL, "DNS = 10.8.0.1")
    for step in range(12):
        site.instance.launch()
        deadline = time.monotonic() + step * 0.01
        # The moment that signals are watched is that of the socket; before it the default action ends the process.
        site.instance.wait_for_socket()
        while time.monotonic() < deadline:
            pass
        site.instance.stop()
        site.machine.expect_state(before, f"after a stop {step * 10} ms after the start")


@check("stop.postup", "a stop during PostUp: PreDown, and all as before")
def during_post_up(testbed: DaemonTestbed) -> None:
    site = Site(testbed)
    lines, path = _hooks(testbed, PostUp="sleep 1.5")
    before = site.prepare(FULL, lines)
    site.instance.launch()
    _wait_for_hook(path, "PostUp")
    site.instance.stop()
    expect_equal(_noted(path), ["PreUp", "PostUp", "PreDown", "PostDown"], "the commands that ran")
    expect("READY=1" not in site.instance.notifications(), "it said to be ready although it was asked to end before")
    site.machine.expect_state(before, "after a stop during PostUp")


@check("hooks.descriptors", "commands may have as many descriptors as who starts the daemon, and not as many as the daemon has")
def descriptors_of_hooks(testbed: DaemonTestbed) -> None:
    site = Site(testbed)
    path = testbed.file("limits")
    site.prepare(FULL, "".join(f"{name} = ulimit -S -n >>{path}; ulimit -H -n >>{path}\n"
                               for name in ("PreUp", "PostUp", "PostDown")))
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    testbed.command = ["prlimit", f"--nofile=1024:{hard}", *testbed.command]
    site.instance.start()
    own = resource.prlimit(site.instance.pid, resource.RLIMIT_NOFILE)
    site.instance.stop()
    expect_equal(own, (min(hard, 65536), hard), "the daemon's own limits")
    expect_equal(_noted(path), ["1024", str(hard)] * 3, "the limits of the commands")


@check("stop.suspended", "a stop while suspended: all as before", lasts=13)
def while_suspended(testbed: DaemonTestbed) -> None:
    site = Site(testbed)
    site.prepare(FULL)
    site.lose_default_routes()
    before = site.machine.state()
    site.default_routes("under", LAN, LAN6)
    site.instance.start()
    site.expect_inside()
    site.lose_default_routes()
    site.instance.expect_status("reasserting", 30)
    site.instance.stop()
    site.machine.expect_state(before, "after a stop while suspended")


@check("stop.hooks", "PreUp or PostUp that fails: status 1, what is up goes down, PostDown runs")
def failing_hooks(testbed: DaemonTestbed) -> None:
    site = Site(testbed)
    for name, expected in (("PreUp", ["PreUp", "PostDown"]), ("PostUp", ["PreUp", "PostUp", "PostDown"])):
        lines, path = _hooks(testbed, **{name: "exit 7"})
        if os.path.exists(path):
            os.unlink(path)
        before = site.prepare(FULL, lines)
        site.instance.launch()
        site.instance.wait_for_end(1)
        site.instance.wait_for_line("a command of the tunnel's file failed: exit status 7", 1)
        expect_equal(_noted(path), expected, f"the commands that ran when {name} fails")
        site.machine.expect_state(before, f"after {name} failed")


@check("end.deleted", "the interface deleted from outside: status 1, all taken back, PostDown runs")
def deleted(testbed: DaemonTestbed) -> None:
    site = Site(testbed)
    lines, path = _hooks(testbed)
    before = site.prepare(FULL, f"{lines}DNS = 10.8.0.1")
    site.instance.start()
    site.expect_inside()
    site.namespace.ip("link", "delete", site.instance.name)
    site.instance.wait_for_end(1)
    expect_equal(_noted(path), ["PreUp", "PostUp", "PostDown"], "the commands that ran")
    site.machine.expect_state(before, "after the interface was deleted")


@check("end.inhook", "the interface deleted while a command runs: all taken back, PostDown runs")
def deleted_during_hook(testbed: DaemonTestbed) -> None:
    site = Site(testbed)
    for name, expected in (("PostUp", ["PreUp", "PostUp", "PostDown"]),
                           ("PreDown", ["PreUp", "PostUp", "PreDown", "PostDown"])):
        lines, path = _hooks(testbed, **{name: "ip link delete tun0; sleep 1"})
        if os.path.exists(path):
            os.unlink(path)
        before = site.prepare(FULL, lines)
        site.instance.launch()
        if name == "PreDown":
            site.instance.wait_until_ready()
            site.instance.signal(signal.SIGTERM)
        wait_until(lambda: site.instance.process.poll() is not None, "the daemon ending", 15)
        expect(site.instance.process.returncode in (0, 1), f"the daemon ended with {site.instance.process.returncode}")
        expect_equal(_noted(path), expected, f"the commands that ran with {name}")
        site.machine.expect_state(before, f"after the interface was deleted during {name}")


@check("stop.clients", "programs that are connected do not trouble the end: neither wg's socket nor the control socket")
def stop_with_clients(testbed: DaemonTestbed) -> None:
    site = Site(testbed)
    lines, path = _hooks(testbed, PostDown="sleep 1.5")
    before = site.prepare(FULL, lines)
    site.instance.start()
    controls = [testbed.enter(uapi.connect(f"{site.machine.root}/run/wireguard/tun0.sock")) for _ in range(3)]
    messages = [testbed.enter(site.instance.connect()) for _ in range(3)]
    messages[0].sendall(b'{"status": {"after": 1}}\n')
    site.instance.signal(signal.SIGTERM)
    _wait_for_hook(path, "PostDown")
    requests = [(one, b"get=1\n\n") for one in controls] + [(one, b'{"status": {}}\n') for one in messages]
    for connection, request in requests:
        try:
            connection.sendall(request)
        except OSError:
            pass  # It was let go.
    site.instance.wait_for_end(0)
    site.machine.expect_state(before, "after a stop with programs connected")


@check("end.killed", "kill -9, and the next start cleans up what was left")
def killed(testbed: DaemonTestbed) -> None:
    site = Site(testbed)
    before = site.prepare(FULL, "DNS = 10.8.0.1")
    site.instance.start()
    site.expect_inside()
    running = site.machine.state()
    site.instance.signal(signal.SIGKILL)
    site.instance.wait_for_end(-signal.SIGKILL)
    expect("fwmark" in site.namespace.ip("rule"), "nothing was left: the check proves nothing")
    asked = site.instance.sluice("status", "--config", site.instance.configuration, check=False)
    expect_equal((asked.returncode, asked.stderr.count("\n")), (1, 1), "the status of sluice status, and its lines")
    # Another tunnel cleans up as well as the same one.
    other = Instance(site.machine, "tun1")
    other.write_tunnel(site.peer.file(SPLIT))
    other.write()
    other.start()
    expect("fwmark" not in site.namespace.ip("rule"), "rules were left after the start of another tunnel")
    site.expect_reached(OUTSIDE)
    other.stop()
    # The sockets of the name that was not started again are nobody's business but that name's.
    for path in (site.instance.socket, "/run/wireguard/tun0.sock"):
        os.unlink(f"{site.machine.root}{path}")
    site.machine.expect_state(before, "after the start and the end of another tunnel")
    for _ in range(2):
        site.instance.start()
        site.expect_inside()
        site.instance.signal(signal.SIGKILL)
        site.instance.wait_for_end(-signal.SIGKILL)
    site.instance.start()
    site.expect_inside()
    expect_equal({what: text for what, text in site.machine.state().items() if what in ("rules", "IPv6 rules")},
                 {what: text for what, text in running.items() if what in ("rules", "IPv6 rules")}, "the rules")
    site.instance.stop()
    site.machine.expect_state(before, "after starts that followed kill -9")


def _expect_refused(site: Site, before: "dict[str, str]", instance: Instance, *parts: str) -> None:
    """The start must fail with one line, and change nothing."""
    instance.launch()
    instance.wait_for_end(1)
    lines = [line for line in instance.log().splitlines() if not line.startswith(("DEBUG", "INFO"))]
    expect(len(lines) == 1, f"{len(lines)} lines instead of one: {lines}")
    for part in parts:
        expect(part in lines[0], f"the line does not tell of {part!r}: {lines[0]}")
    site.machine.expect_state(before, "after a start that was refused")


@check("start.name", "a start with the name of an interface that exists: one line, status 1, nothing changed")
def name_in_use(testbed: DaemonTestbed) -> None:
    site = Site(testbed)
    site.prepare(FULL)
    for words in (("link", "add", "tun0", "type", "veth", "peer", "name", "other"),
                  ("tuntap", "add", "tun0", "mode", "tun")):
        site.namespace.ip(*words)
        if words[0] == "link":
            site.namespace.ip("link", "set", "tun0", "addrgenmode", "none")
        before = site.machine.state()
        _expect_refused(site, before, site.instance, "tun0")
        site.namespace.ip("link", "del", "tun0")


@check("start.socket", "a start with the control socket of a running daemon: one line, status 1, nothing changed")
def socket_in_use(testbed: DaemonTestbed) -> None:
    site = Site(testbed)
    site.prepare(FULL)
    site.instance.start()
    site.expect_inside()
    other = Instance(site.machine, "tun1")
    other.socket = site.instance.socket
    other.write_tunnel(site.peer.file(SPLIT))
    other.write()
    before = site.machine.state()
    _expect_refused(site, before, other, site.instance.socket)
    site.expect_inside()
    expect_equal(site.instance.ask()["status"], "connected", "the status of the one that runs")
    site.instance.stop()


@check("start.port", "a start with a port that is in use: one line, status 1, nothing changed")
def port_in_use(testbed: DaemonTestbed) -> None:
    site = Site(testbed)
    site.prepare(FULL, "ListenPort = 5555")
    taken = testbed.enter(site.namespace.socket(socket.AF_INET, socket.SOCK_DGRAM))
    taken.bind(("0.0.0.0", 5555))
    before = site.machine.state()
    site.instance.launch()
    site.instance.wait_for_end(1)
    site.instance.wait_for_line("cannot start: cannot open the UDP sockets: the port is in use", 1)
    site.machine.expect_state(before, "after a start that was refused")


@check("start.running", "a second start of the same configuration: one line, status 1, the first goes on")
def already_running(testbed: DaemonTestbed) -> None:
    site = Site(testbed)
    site.prepare(FULL)
    site.instance.start()
    site.expect_inside()
    again = Instance(site.machine)
    before = site.machine.state()
    again._starts = 10
    _expect_refused(site, before, again, "tun0")
    site.expect_inside()
    site.instance.stop()


#: Wrong configurations, and what is wrong with each: the file's text, whether the tunnel's file is meant.
_WRONG = (
    ('{ device: { mtu: "large" } }', None),
    ('{ tunel: { config: "/etc/wireguard/tun0.conf" } }', None),
    ('{ device: { addresses: ["10.0.0.1/33"] } }', None),
    ('{ device: { name: "sluice0" ', None),
    (None, "[Interface]\nPrivateKey = nonsense\n"),
    (None, "[Interface]\nAddress = 10.8.0.2/24\n[Peer]\nAllowedIPs = 0.0.0.0/0\n"),
    (None, "[Interface]\nMTU = many\n"),
)


@check("start.wrong", "wrong configurations: the same lines as of sluice check, status 1, nothing changed")
def wrong(testbed: DaemonTestbed) -> None:
    site = Site(testbed)
    for text, tunnel in _WRONG:
        site.prepare(FULL)
        if text is not None:
            site.machine.write_etc("sluice/tun0.json5", text)
        if tunnel is not None:
            site.instance.write_tunnel(tunnel)
        before = site.machine.state()
        checked = site.instance.sluice("check", "--config", site.instance.configuration, check=False)
        expect_equal(checked.returncode, 1, f"the status of sluice check with {text or tunnel!r}")
        site.instance.launch()
        site.instance.wait_for_end(1)
        expect_equal(site.instance.log(), checked.stderr, "what sluice run says")
        expect(checked.stderr.strip(), "sluice check says nothing")
        site.machine.expect_state(before, "after a start that was refused")


@check("start.readonly", "a /proc/sys that cannot be written: fine when src_valid_mark is 1, else told")
def read_only_sysctl(testbed: DaemonTestbed) -> None:
    site = Site(testbed)
    site.prepare(FULL)
    site.machine.run("sh", "-c", "mount --bind /proc/sys /proc/sys && mount -o remount,bind,ro /proc/sys")
    before = site.machine.state()
    site.instance.launch()
    site.instance.wait_for_end(1)
    expect("src_valid_mark" in site.instance.log(), f"the log does not tell of src_valid_mark: {site.instance.tail()}")
    site.machine.expect_state(before, "after a start that was refused")
    site.namespace.sysctl("net/ipv4/conf/all/src_valid_mark", 1)
    before = site.machine.state()
    site.instance.start()
    site.expect_inside()
    site.instance.stop()
    site.machine.expect_state(before, "after the end")


@check("end.foreign", "what others changed meanwhile stays as they left it")
def foreign_changes(testbed: DaemonTestbed) -> None:
    site = Site(testbed)
    before = site.prepare(FULL, "DNS = 10.8.0.1")
    site.instance.start()
    site.expect_inside()
    # DHCP writes the resolvers, somebody adds a rule that looks like ours, and a route.
    site.machine.write_etc("resolv.conf", "nameserver 192.0.2.200\n")
    site.namespace.ip("rule", "add", "table", "main", "suppress_prefixlength", "0", "priority", "99")
    site.namespace.ip("route", "add", "203.0.113.0/24", "via", LAN[1])
    site.instance.stop()
    expect_equal(site.machine.read_etc("resolv.conf"), "nameserver 192.0.2.200\n", "resolv.conf")
    expect("suppress_prefixlength 0" in site.namespace.ip("rule"), "somebody else's rule is gone")
    site.namespace.ip("rule", "del", "priority", "99")
    site.namespace.ip("route", "del", "203.0.113.0/24")
    before.pop("resolvers")
    site.machine.expect_state(before, "but for what others did")
