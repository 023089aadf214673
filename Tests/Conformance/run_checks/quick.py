"""Debian's wg-quick with wireguard-go beside it: the same file makes the same of a machine.

What may differ: routes carry our own number of origin (83), rules have priorities of their own and come with two more
for what is marked, the firewall has one table of another name for both families, PreUp finds the interface there
already (down, and without a key), and an address that the kernel gave the interface itself is not saved.
"""

import os
import re
import shutil

import commands
from daemon_testbed import DaemonTestbed
from name_server import NameServer
from run_checks.registry import check
from run_instance import Instance
from run_site import ENDPOINT, ENDPOINT6, LAN, PORT, Site
from waiting import CheckFailure, expect, expect_equal, wait_until
from wireguard_tool import KeyPair, generate_preshared_key

RESOLVCONF = '#!/bin/sh\necho "$@" >>/etc/told\ncase $1 in -a) cat >>/etc/told;; esac\n'


class Beside:
    """Two equal machines: on one wg-quick runs, on the other the program under test."""

    def __init__(self, testbed: DaemonTestbed, resolvconf: bool = True):
        self.reference, self.judged = (Site(testbed, label=label, peer=False) for label in ("q", "s"))
        self.keys, self.peer_keys, self.preshared = KeyPair.generate(), KeyPair.generate(), generate_preshared_key()
        self.judged.instance.write()
        source = shutil.which("wg-quick")
        if source is None:
            raise CheckFailure(commands.missing_tool_message("wg-quick"))
        with open(source) as script:
            text = script.read()
        for site in (self.reference, self.judged):
            # It puts its own folder first in PATH: there are an `ip` without the kernel's module and our resolvconf.
            site.machine.install("wg-quick", text)
            site.machine.install(
                "ip", '#!/bin/sh\ncase " $* " in *" link add "*" type wireguard "*)\n'
                '  echo "RTNETLINK answers: Operation not supported" >&2; exit 2;;\nesac\n'
                f'exec {shutil.which("ip")} "$@"\n')
            if resolvconf:
                site.machine.install("resolvconf", RESOLVCONF)
        self.before = {site: site.machine.state() for site in (self.reference, self.judged)}

    def file(self, interface: str = "", peer: str = "", allowed: str = "10.8.0.0/24, 198.51.100.0/24, fd08::/64",
             address: str = "Address = 10.8.0.2/24, fd08::2/64", endpoint: str = f"{ENDPOINT}:{PORT}") -> str:
        """A file with these lines."""
        return (f"[Interface]\nPrivateKey = {self.keys.private}\n{address}\n{interface}\n[Peer]\n"
                f"PublicKey = {self.peer_keys.public}\nAllowedIPs = {allowed}\nEndpoint = {endpoint}\n{peer}\n")

    def write(self, text: str) -> None:
        """Gives both the same file."""
        for site in (self.reference, self.judged):
            site.instance.write_tunnel(text)
            for name in ("told", "noted"):
                if os.path.exists(f"{site.machine.etc}/{name}"):
                    os.unlink(f"{site.machine.etc}/{name}")

    def quick(self, verb: str, check: bool = True) -> int:
        """wg-quick on the reference; its status."""
        machine = self.reference.machine
        outcome = self.reference.testbed.launch(
            self.reference.namespace, *machine.words("bash", "/usr/local/sbin/wg-quick", verb, "tun0"), seconds=60,
            environment=machine.environment(WG_QUICK_USERSPACE_IMPLEMENTATION="wireguard-go"))
        if check:
            expect(outcome.returncode == 0, f"wg-quick {verb}: {outcome.stderr.strip()[-300:]}")
        return outcome.returncode

    def compare(self, text: str, **options) -> None:
        """The file must make the same of both machines, and leave nothing on either."""
        self.write(text)
        self.quick("up")
        self.judged.instance.start()
        self.expect_equal(text, **options)
        self.quick("down")
        self.judged.instance.stop()
        self.expect_equal_notes(text)
        for site in (self.reference, self.judged):
            _forget(site)
        # wg-quick leaves it as it is.
        self.reference.namespace.sysctl("net/ipv4/conf/all/src_valid_mark", 0)
        self.judged.machine.expect_state(self.before[self.judged], "after the end")

    def expect_equal(self, text: str, port: bool = False) -> None:
        """Both machines must be equal now."""
        lines = " / ".join(line for line in text.splitlines() if line and "Key" not in line)
        wanted, found = (_summary(site, port) for site in (self.reference, self.judged))
        for what, value in wanted.items():
            expect(found[what] == value, f"{what} with {lines}: {found[what]!r}, with wg-quick {value!r}")

    def expect_equal_notes(self, text: str) -> None:
        """Both must have told resolvconf the same, and run the same commands."""
        for name in ("told", "noted"):
            wanted, found = (_read(site, name) for site in (self.reference, self.judged))
            expect_equal(found, wanted, f"what was {name}")


def _read(site: Site, name: str) -> "list[str]":
    try:
        return site.machine.read_etc(name).splitlines()
    except FileNotFoundError:
        return []


def _forget(site: Site) -> None:
    for name in ("told", "noted"):
        if os.path.exists(f"{site.machine.etc}/{name}"):
            os.unlink(f"{site.machine.etc}/{name}")


def _summary(site: Site, port: bool) -> dict:
    """What a tunnel made of a machine, in words that are the same for both programs."""
    namespace = site.namespace
    link = namespace.link("tun0")
    addresses = re.findall(r"inet6? (\S+) (.*?)\\", namespace.ip("-o", "address", "show", "dev", "tun0"))
    dump = [line.split("\t") for line in site.machine.run("wg", "show", "tun0", "dump").stdout.splitlines()]
    summary = {
        "MTU": link["mtu"], "flags": sorted(set(link["flags"]) & {"UP", "NOARP", "POINTOPOINT", "MULTICAST"}),
        "addresses": sorted(one for one in addresses if not one[0].startswith("fe80:")),
        "keys and mark": [dump[0][0], dump[0][1], dump[0][3]],
        "peers": sorted((*line[:3], ",".join(sorted(line[3].split(","))), line[7]) for line in dump[1:]),
        "has a firewall": bool(namespace.run("nft", "list", "tables").stdout.strip()),
        "src_valid_mark": site.machine.run("cat", "/proc/sys/net/ipv4/conf/all/src_valid_mark").stdout,
        "told resolvconf": _read(site, "told"), "commands": _read(site, "noted"),
    }
    if port:
        summary["port"] = dump[0][2]
    mark = summary["keys and mark"][2]
    extra = set() if mark == "off" else {
        f"from all fwmark {mark} lookup main",
        f"from all fwmark {hex(int(mark, 16) ^ 0x80000000)} lookup {int(mark, 16)}"}
    for family in ("-4", "-6"):
        routes = namespace.ip(family, "route", "show", "table", "all").splitlines()
        summary[f"routes {family}"] = sorted(
            re.sub(r" (proto (83|static|boot|sluice)|pref medium|metric 1024)(?= |$)", "", line).strip()
            for line in routes if "fe80:" not in line)
        rules = {re.sub(r" proto (83|sluice)$", "", line.partition(":")[2].strip())
                 for line in namespace.ip(family, "rule").splitlines()}
        summary[f"rules {family}"] = sorted(rules - extra)
    return summary


@check("quick.address", "Address: as wg-quick, one line or several, with and without a length")
def address(testbed: DaemonTestbed) -> None:
    beside = Beside(testbed)
    for text in ("Address = 10.8.0.2/24, fd08::2/64", "Address = 10.8.0.2\nAddress = fd08::2", "",
                 "Address = 10.8.0.2/24\naddress = 10.8.0.3/24, 10.18.0.2/16\nADDRESS=fd08::2/64,fd08::3/128 # two"):
        beside.compare(beside.file(address=text))


@check("quick.dns", "DNS: resolvconf is told what wg-quick tells it; without resolvconf the file itself is written")
def dns(testbed: DaemonTestbed) -> None:
    beside = Beside(testbed)
    for text in ("DNS = 192.0.2.53", "DNS = 192.0.2.53, fd00::53, corp.example",
                 "DNS = 192.0.2.53\nDNS = a.example,b.example"):
        beside.compare(beside.file(text))
        beside.compare(beside.file(text, allowed="0.0.0.0/0, ::/0"))
    site = beside.judged
    os.unlink(f"{site.machine.sbin}/resolvconf")
    before = site.machine.state()
    site.instance.write_tunnel(beside.file("DNS = 192.0.2.53, fd00::53, corp.example"))
    site.instance.start()
    lines = [line for line in site.machine.read_etc("resolv.conf").splitlines() if not line.startswith("#")]
    expect_equal(lines, ["nameserver 192.0.2.53", "nameserver fd00::53", "search corp.example"], "resolv.conf")
    site.instance.stop()
    site.machine.expect_state(before, "after a tunnel that wrote resolv.conf")


@check("quick.mtu", "MTU: as wg-quick, given, and derived from the narrowest way to an endpoint")
def mtu(testbed: DaemonTestbed) -> None:
    beside = Beside(testbed)
    for text in ("MTU = 1380", "MTU = 9000", ""):
        beside.compare(beside.file(text))
    for site in (beside.reference, beside.judged):
        site.namespace.ip("route", "add", "192.0.2.0/24", "via", "10.0.0.2", "mtu", "1390")
        beside.before[site] = site.machine.state()
    beside.compare(beside.file())
    beside.compare(beside.file(endpoint=f"[{ENDPOINT6}]:{PORT}"))


@check("quick.table", "Table: as wg-quick, off, auto, and a number, for split and full tunnels")
def table(testbed: DaemonTestbed) -> None:
    beside = Beside(testbed)
    for text in ("Table = off", "Table = auto", "Table = 1234", ""):
        for allowed in ("10.8.0.0/24, 198.51.100.0/24, 198.51.100.128/25, fd08::/64, 2001:db8:99::/48",
                        "0.0.0.0/0, ::/0", "0.0.0.0/0"):
            beside.compare(beside.file(text, allowed=allowed))


@check("quick.fwmark", "FwMark: as wg-quick, a number, hexadecimal, off, for split and full tunnels")
def fwmark(testbed: DaemonTestbed) -> None:
    beside = Beside(testbed)
    for text in ("FwMark = 1234", "FwMark = 0x4d2", "FwMark = off", "FwMark = 0"):
        for allowed in ("198.51.100.0/24, fd08::/64", "0.0.0.0/0, ::/0"):
            beside.compare(beside.file(text, allowed=allowed))


@check("quick.hooks", "PreUp, PostUp, PreDown, PostDown: as wg-quick, in order, with %i, and what they see")
def hooks(testbed: DaemonTestbed) -> None:
    beside = Beside(testbed)
    see = ("echo {0}{1} %i $(wg show %i public-key 2>&1 | cut -c1-4) "
           "$(ip -4 -o address show dev %i 2>/dev/null | wc -l) "
           "$(ip route show dev %i 2>/dev/null | wc -l) >>/etc/noted")
    lines = "\n".join(f"{name} = {see.format(name, number)}" for number in (1, 2)
                      for name in ("PreDown", "PostUp"))
    # wireguard-go may still answer when its interface is gone: nobody asks it then.
    lines += "".join(f"\nPostDown = echo PostDown{number} %i $(ip link show dev %i 2>/dev/null | wc -l) >>/etc/noted"
                     for number in (1, 2))
    lines += "\nPreUp = echo PreUp1 %i >>/etc/noted\nPreUp = echo PreUp2 %i >>/etc/noted"
    beside.compare(beside.file(lines))
    beside.compare(beside.file("PostUp = x=1; [[ $x == 1 ]] && echo \"a; b\" 'c' >>/etc/noted"))


@check("quick.failing", "a hook that fails leaves nothing, as with wg-quick; one on the way down does not stop it")
def failing(testbed: DaemonTestbed) -> None:
    beside = Beside(testbed)
    for name in ("PreUp", "PostUp"):
        beside.write(beside.file(f"{name} = echo {name} >>/etc/noted; false\n{name} = echo second >>/etc/noted\n"
                                 "PreDown = echo down >>/etc/noted"))
        expect(beside.quick("up", check=False) != 0, "wg-quick up succeeds")
        beside.judged.instance.launch()
        beside.judged.instance.wait_for_end(1)
        beside.expect_equal_notes("")
        for site in (beside.reference, beside.judged):
            _forget(site)
            wait_until(lambda: not site.namespace.has_interface("tun0"), "the interface being gone", 5)
        beside.judged.machine.expect_state(beside.before[beside.judged], "after the failure")
    beside.write(beside.file("PreDown = exit 3"))
    beside.judged.instance.start()
    beside.judged.instance.stop()
    beside.judged.machine.expect_state(beside.before[beside.judged], "after a PreDown that failed")


@check("quick.wg", "the keys of wg: PrivateKey, ListenPort, and all of a peer's, as wg-quick")
def wireguard_keys(testbed: DaemonTestbed) -> None:
    beside = Beside(testbed)
    other = KeyPair.generate().public
    for interface, peer, allowed, endpoint in (
            ("ListenPort = 5555", f"PresharedKey = {beside.preshared}\nPersistentKeepalive = 25", "10.8.0.0/24",
             f"{ENDPOINT}:{PORT}"),
            ("listenport=5556", "persistentkeepalive = off", "10.8.0.7, fd08::/64", f"[{ENDPOINT6}]:1"),
            ("ListenPort = 5557 # mine", "PersistentKeepalive = 65535\nAllowedIPs = 10.9.0.0/16", "10.8.0.99/24",
             f"{ENDPOINT}:65535"),
            # What one peer had goes to the later one.
            ("ListenPort = 5558", f"[Peer]\nPublicKey = {other}\nAllowedIPs = 10.8.0.0/24, 10.44.0.0/16",
             "10.8.0.0/24, fd08::/64", f"{ENDPOINT}:{PORT}")):
        beside.compare(beside.file(interface, peer, allowed, endpoint=endpoint), port=True)


@check("quick.save", "SaveConfig: what is set now is in the file afterwards, as wg-quick writes it")
def save(testbed: DaemonTestbed) -> None:
    beside = Beside(testbed)
    beside.write(beside.file("SaveConfig = true\nListenPort = 5555\nMTU = 1400\nPostUp = echo up >>/etc/noted"))
    beside.quick("up")
    beside.judged.instance.start()
    added = KeyPair.generate().public
    for site in (beside.reference, beside.judged):
        site.machine.run("wg", "set", "tun0", "listen-port", "6001", "peer", added, "allowed-ips", "10.99.0.0/16",
                         "endpoint", "192.0.2.8:8", "persistent-keepalive", "9")
    beside.quick("down")
    beside.judged.instance.stop()
    wanted, found = (
        _sections(site.machine.read_etc("wireguard/tun0.conf")) for site in (beside.reference, beside.judged))
    expect_equal(found, wanted, "the saved file")
    expect_equal(oct(os.stat(f"{beside.judged.machine.etc}/wireguard/tun0.conf").st_mode & 0o777), "0o600", "its mode")
    # And it can be used.
    beside.judged.instance.start()
    expect(added in beside.judged.instance.wg("peers"), "the saved peer is missing")
    beside.judged.instance.stop()


@check("quick.saveless", "SaveConfig: a start that is stopped, or fails, does not touch the file")
def save_nothing(testbed: DaemonTestbed) -> None:
    beside = Beside(testbed, resolvconf=False)
    site = beside.judged
    testbed.enter(NameServer(site.world, LAN[1], {}, silent=True))
    for text in (beside.file("SaveConfig = true", endpoint="slow.example:1"),
                 beside.file("SaveConfig = true\nPostUp = exit 1")):
        site.instance.write_tunnel(text)
        site.instance.launch()
        if "slow" in text:
            site.instance.wait_for_socket()
            site.instance.expect_status("connecting")
            site.instance.stop()
        else:
            site.instance.wait_for_end(1)
        expect_equal(site.machine.read_etc("wireguard/tun0.conf"), text, "the file")


def _sections(text: str) -> "list[list[tuple[str, list[str]]]]":
    """A file's sections, each with its keys and their values in order."""
    sections: "list[dict[str, list[str]]]" = []
    for line in text.splitlines():
        line = line.partition("#")[0].strip()
        if line.startswith("["):
            sections.append({"": [line]})
        elif line:
            key, _, value = line.partition("=")
            name = key.strip().lower()
            is_command = name in ("preup", "postup", "predown", "postdown")
            words = [value] if is_command else [word for word in value.split(",") if "fe80:" not in word]
            sections[-1].setdefault(name, []).extend(word.strip() for word in words)
    return sorted(sorted((key, sorted(value)) for key, value in section.items()) for section in sections)


@check("quick.beside", "wg-quick's own tunnel that comes and goes on the same machine leaves ours whole")
def beside_ours(testbed: DaemonTestbed) -> None:
    beside = Beside(testbed, resolvconf=False)
    site = beside.reference
    ours = Instance(site.machine, "tun1")
    ours.write_tunnel(beside.file(allowed="0.0.0.0/0, ::/0", address="Address = 10.9.0.2/24, fd09::2/64"))
    ours.write()
    beside.write(beside.file(allowed="0.0.0.0/0, ::/0"))
    before = site.machine.state()
    ours.start()
    running = site.machine.state()
    beside.quick("up")
    beside.quick("down")
    # wg-quick takes away every rule that looks like its own; ours come back.
    site.machine.expect_state(running, "while wg-quick's tunnel was not there", 10)
    ours.stop()
    site.machine.expect_state(before, "after the end")
