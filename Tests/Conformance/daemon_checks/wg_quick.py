"""wg-quick with the program as WG_QUICK_USERSPACE_IMPLEMENTATION: up, down, and nothing left of it."""

import os
import re
import shutil
import stat
import subprocess

import commands
from capture import PacketCapture
from daemon_checks.hexadecimal_keys import from_base64
from daemon_checks.registry import check
from daemon_testbed import DaemonTestbed, process_ids
from tunnel_pair import OUTER6_2, OUTER_2, TunnelPair, join
from uapi_connection import state
from waiting import CheckFailure, expect, expect_equal, wait_until
from wireguard_tool import KeyPair, generate_preshared_key

#: Addresses behind the other end that only the default route leads to.
FAR, FAR6 = "198.51.100.1", "2001:db8:99::1"


class Quick:
    """A namespace in which wg-quick runs, and behind an underlay a peer for it."""

    def __init__(self, testbed: DaemonTestbed):
        self.testbed = testbed
        self.namespace, self.other = testbed.namespace("a"), testbed.namespace("b")
        join(self.namespace, self.other)
        self.namespace.ip("route", "add", "default", "via", OUTER_2)
        self.namespace.ip("-6", "route", "add", "default", "via", OUTER6_2)
        self.name = testbed.name()
        self.socket_path = testbed.socket_path(self.name)
        self.configuration = testbed.file(f"{self.name}.conf")
        self.keys, self.peer_keys, self.preshared = KeyPair.generate(), KeyPair.generate(), generate_preshared_key()
        self.peer = testbed.interface(2, self.other)
        self.peer.set(
            *self.peer.peer_words(
                self.keys.public, preshared_key=self.preshared, allowed_ips="10.8.0.2/32,fd08::2/128"),
            private_key=self.peer_keys.private, listen_port=2)
        self.peer.add_address("10.8.0.1/24", "fd08::1/64")
        self.other.add_address("lo", f"{FAR}/32", f"{FAR6}/128")
        self.peer.up()
        wait_until(lambda: "tentative" not in self.namespace.ip("address"), "the link-local address being settled", 20)
        self._make_tools()

    def _make_tools(self) -> None:
        """wg-quick puts its own folder first in PATH: a copy of it finds our `ip` and `resolvconf` there."""
        self.folder = self.testbed.file("tools")
        os.mkdir(self.folder, 0o755)
        source = shutil.which("wg-quick")
        if source is None:
            raise CheckFailure(commands.missing_tool_message("wg-quick"))
        shutil.copy(source, f"{self.folder}/wg-quick")
        program = " ".join(f"'{word}'" for word in self.testbed.command)
        self.dns_log = self.testbed.file("dns")
        for name, text in (
                # Without the kernel's module everywhere: where it exists this one refuses in its stead.
                ("ip", '#!/bin/sh\ncase " $* " in *" link add "*" type wireguard "*)\n'
                       '  echo "RTNETLINK answers: Operation not supported" >&2; exit 2;;\nesac\n'
                       f'exec {shutil.which("ip")} "$@"\n'),
                ("resolvconf", f'#!/bin/sh\necho "$@" >>{self.dns_log}\ncase $1 in -a) cat >>{self.dns_log};; esac\n'),
                # The variable holds a single word; the program may need several.
                ("implementation", f'#!/bin/sh\nexec {program} "$@"\n')):
            path = f"{self.folder}/{name}"
            with open(path, "w") as file:
                file.write(text)
            os.chmod(path, stat.S_IRWXU)

    def write(self, interface: str, peer: str, mode: int = 0o600) -> None:
        """Writes the configuration: more lines for the interface, and for the peer (its AllowedIPs above all)."""
        text = (f"[Interface]\nPrivateKey = {self.keys.private}\nAddress = 10.8.0.2/24, fd08::2/64\n{interface}\n"
                f"[Peer]\nPublicKey = {self.peer_keys.public}\nPresharedKey = {self.preshared}\n"
                f"Endpoint = {OUTER_2}:2\n{peer}\n")
        with open(os.open(self.configuration, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "w") as file:
            file.write(text)

    def run(self, verb: str, check_status: bool = True) -> subprocess.CompletedProcess:
        """wg-quick VERB, as on a machine without the kernel's module."""
        argv = ["bash", f"{self.folder}/wg-quick", verb, self.configuration]
        if os.path.exists("/sys/module/wireguard"):
            argv = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /sys/module && exec "$@"', "sh", *argv]
        outcome = self.testbed.launch(
            self.namespace, *argv, seconds=40,
            environment={"WG_QUICK_USERSPACE_IMPLEMENTATION": f"{self.folder}/implementation"})
        if check_status:
            expect(outcome.returncode == 0, f"wg-quick {verb} ended with {outcome.returncode}: "
                   + " / ".join(outcome.stderr.strip().splitlines()[-3:]))
        return outcome

    def up(self) -> None:
        """wg-quick up."""
        self.run("up")
        expect(self.namespace.has_interface(self.name), "wg-quick up made no interface")

    def down(self) -> None:
        """wg-quick down; the daemon must end."""
        self.run("down")
        wait_until(lambda: not process_ids(self.namespace), "the daemon ending after wg-quick down", 10)
        expect(not os.path.exists(self.socket_path), "the socket's file is there after wg-quick down")

    def state(self) -> "dict[str, str]":
        """Everything about the namespace's network that wg-quick may touch, as text."""
        commands_ = {
            "addresses": ["ip", "address"], "rules": ["ip", "rule"], "IPv6 rules": ["ip", "-6", "rule"],
            "routes": ["ip", "route", "show", "table", "all"],
            "IPv6 routes": ["ip", "-6", "route", "show", "table", "all"], "nft": ["nft", "list", "ruleset"]}
        return {what: self.namespace.run(*argv).stdout for what, argv in commands_.items()}

    def expect_state(self, before: "dict[str, str]") -> None:
        """The namespace must be what it was, to the byte."""
        for what, text in self.state().items():
            expect(text == before[what], f"the {what} after wg-quick down differ: {_difference(before[what], text)}")


def _difference(before: str, after: str) -> str:
    old, new = before.splitlines(), after.splitlines()
    return "; ".join([f"-{line}" for line in old if line not in new] + [f"+{line}" for line in new if line not in old])


@check("quick.split", "wg-quick up and down: addresses, MTU, routes, hooks, DNS; afterwards everything as before")
def split_tunnel(testbed: DaemonTestbed) -> None:
    quick = Quick(testbed)
    hooks = testbed.file("hooks")
    quick.write(
        "ListenPort = 5555\nDNS = 192.0.2.53, corp.example\n" + "".join(
            f"{name} = echo {name} %i $(wg show %i public-key 2>/dev/null) >>{hooks}\n"
            for name in ("PreUp", "PostUp", "PreDown", "PostDown")),
        "AllowedIPs = 10.8.0.0/24, fd08::/64, 198.51.100.0/24, 2001:db8:99::/48\nPersistentKeepalive = 20")
    before = quick.state()
    quick.up()
    namespace, name = quick.namespace, quick.name
    link = namespace.link(name)
    expect("UP" in link["flags"], "the link is not up")
    # The 1,500 of the route to the endpoint less 80.
    expect_equal(link["mtu"], 1420, "the MTU")
    addresses = namespace.ip("-o", "address", "show", "dev", name)
    for address in ("10.8.0.2/24", "fd08::2/64"):
        expect(f" {address} " in addresses, f"address {address} is missing")
    for family, route in (("-4", "198.51.100.0/24"), ("-6", "2001:db8:99::/48")):
        expect(route in namespace.ip(family, "route", "show", "dev", name), f"route {route} is missing")
    for address in ("10.8.0.1", "fd08::1", FAR, FAR6):
        TunnelPair.expect_reached(namespace, address)
    shown = commands.run(["wg", "show", name, "dump"]).stdout.splitlines()
    expect_equal(shown[0].split("\t")[1:3], [quick.keys.public, "5555"], "public key and port")
    expect_equal(shown[1].split("\t")[0:2], [quick.peer_keys.public, quick.preshared], "the peer")
    with open(quick.dns_log) as file:
        expect_equal(file.read().splitlines(), [f"-a {name} -m 0 -x", "nameserver 192.0.2.53", "search corp.example"],
                     "what resolvconf was told")
    quick.down()
    quick.expect_state(before)
    with open(hooks) as file:
        expect_equal(file.read().splitlines(), [
            f"PreUp {name}", f"PostUp {name} {quick.keys.public}", f"PreDown {name} {quick.keys.public}",
            f"PostDown {name}"], "what the hooks saw")


@check("quick.full", "a full tunnel: mark, rules, table, firewall; all traffic inside; afterwards everything as before")
def full_tunnel(testbed: DaemonTestbed) -> None:
    quick = Quick(testbed)
    quick.write("", "AllowedIPs = 0.0.0.0/0, ::/0")
    before = quick.state()
    quick.up()
    namespace, name = quick.namespace, quick.name
    expect_equal(commands.run(["wg", "show", name, "fwmark"]).stdout.strip(), "0xca6c", "the fwmark")
    for family in ("-4", "-6"):
        rules = namespace.ip(family, "rule")
        expect(re.search(r"not from all fwmark 0xca6c lookup 51820", rules), f"no rule on the mark ({family})")
        expect("suppress_prefixlength 0" in rules, f"no rule that suppresses the default route ({family})")
        expect("default" in namespace.ip(family, "route", "show", "table", "51820"), f"table 51820 is empty ({family})")
    expect(f"wg-quick-{name}" in namespace.run("nft", "list", "tables").stdout, "the firewall's table is missing")
    with PacketCapture(namespace, "under") as capture:
        for address in (FAR, FAR6, "10.8.0.1", "fd08::1"):
            TunnelPair.expect_reached(namespace, address)

        def carried() -> int:
            return len(capture.datagrams(lambda datagram: 2 in (datagram.source_port, datagram.destination_port)))

        wait_until(lambda: carried() >= 8, "tunnel packets on the underlay", 10)
        bare = [packet for packet in capture.packets if packet.data[0] >> 4 == 4 and packet.data[9] == 1]
        expect(not bare, "pings went out beside the tunnel")
    quick.down()
    quick.expect_state(before)


@check("quick.again", "up and down three times, with Table, MTU and FwMark of one's own")
def repeated(testbed: DaemonTestbed) -> None:
    quick = Quick(testbed)
    before = quick.state()
    for interface in ("Table = 1234\nMTU = 1380", "Table = off\nFwMark = 0x77", "MTU = 9000"):
        quick.write(interface, "AllowedIPs = 10.8.0.0/24, fd08::/64, 198.51.100.0/24")
        quick.up()
        link = quick.namespace.link(quick.name)
        if "MTU" in interface:
            expect_equal(link["mtu"], int(interface.rpartition(" ")[2]), "the MTU")
        in_table = "198.51.100.0/24" in quick.namespace.ip("route", "show", "table", "1234", check=False)
        expect_equal(in_table, "1234" in interface, "the route in table 1234")
        in_main = "198.51.100.0/24" in quick.namespace.ip("route", "show", "dev", quick.name)
        expect_equal(in_main, "Table" not in interface, "the route in the main table")
        TunnelPair.expect_reached(quick.namespace, "10.8.0.1")
        quick.down()
        quick.expect_state(before)


@check("quick.save", "SaveConfig and wg-quick save write what is set now")
def save_configuration(testbed: DaemonTestbed) -> None:
    quick = Quick(testbed)
    quick.write("SaveConfig = true", "AllowedIPs = 10.8.0.0/24")
    quick.up()
    added = KeyPair.generate().public
    for verb in ("save", "down"):
        port = {"save": 6001, "down": 6002}[verb]
        commands.run(["wg", "set", quick.name, "listen-port", str(port), "peer", added, "allowed-ips", "10.99.0.0/16",
                      "endpoint", "192.0.2.8:8"])
        quick.run(verb)
        with open(quick.configuration) as file:
            text = file.read()
        for line in (f"ListenPort = {port}", f"PrivateKey = {quick.keys.private}", f"PublicKey = {added}",
                     "AllowedIPs = 10.99.0.0/16", "Endpoint = 192.0.2.8:8", f"PublicKey = {quick.peer_keys.public}",
                     f"PresharedKey = {quick.preshared}", f"Endpoint = {OUTER_2}:2", "Address = 10.8.0.2/24"):
            expect(line in text.splitlines(), f"after {verb} the file has no line {line.split(' = ')[0]!r} as set")
    wait_until(lambda: not process_ids(quick.namespace), "the daemon ending after wg-quick down", 10)
    # And what was saved can be used.
    quick.up()
    expect_equal(sorted(commands.run(["wg", "show", quick.name, "peers"]).stdout.split()),
                 sorted([added, quick.peer_keys.public]), "the peers after up with the saved file")
    quick.down()


@check("quick.sync", "wg syncconf IF <(wg-quick strip IF) changes what changed, without losing a packet")
def reload_configuration(testbed: DaemonTestbed) -> None:
    quick = Quick(testbed)
    # Without a port of its own syncconf asks for any port, which moves the sockets under the traffic.
    quick.write("ListenPort = 5556\nPostUp = true", "AllowedIPs = 10.8.0.0/24")
    quick.up()
    TunnelPair.expect_reached(quick.namespace, "10.8.0.1")
    handshake = state(quick.socket_path).handshake_times[from_base64(quick.peer_keys.public)]
    added = KeyPair.generate().public
    ping = testbed.start(quick.namespace, "ping", "-q", "-i", "0.02", "-c", "150", "-W", "3", "10.8.0.1",
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    quick.write("ListenPort = 5556\nPostUp = true", "AllowedIPs = 10.8.0.0/24, 10.44.0.0/16\n"
                f"[Peer]\nPublicKey = {added}\nAllowedIPs = 10.45.0.0/16")
    script = f'wg syncconf "$1" <(bash {quick.folder}/wg-quick strip "$2")'
    for _ in range(5):
        commands.run(["bash", "-c", script, "bash", quick.name, quick.configuration])
    output, _ = ping.communicate(timeout=60)
    expect("150 packets transmitted, 150 received" in output, f"packets were lost: {output.splitlines()[-2:]}")
    allowed = dict(line.split("\t") for line in commands.run(
        ["wg", "show", quick.name, "allowed-ips"]).stdout.splitlines())
    expect_equal({key: sorted(value.split()) for key, value in allowed.items()},
                 {quick.peer_keys.public: ["10.44.0.0/16", "10.8.0.0/24"], added: ["10.45.0.0/16"]}, "the allowed IPs")
    expect_equal(state(quick.socket_path).handshake_times[from_base64(quick.peer_keys.public)], handshake,
                 "the time of the latest handshake after syncconf")
    quick.down()


@check("quick.fails", "wg-quick up with an impossible configuration cleans up after itself")
def failing_up(testbed: DaemonTestbed) -> None:
    quick = Quick(testbed)
    before = quick.state()
    quick.write("PostUp = false", "AllowedIPs = 0.0.0.0/0")
    outcome = quick.run("up", check_status=False)
    expect(outcome.returncode != 0, "wg-quick up succeeds although a hook fails")
    wait_until(lambda: not process_ids(quick.namespace), "the daemon ending after a failed wg-quick up", 10)
    expect(not os.path.exists(quick.socket_path), "the socket's file is left of a failed wg-quick up")
    quick.expect_state(before)
