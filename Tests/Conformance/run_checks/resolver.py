"""`dns.system`: the machine's resolver is pointed at the proxy, in each way that it is kept, and back to the byte."""

import json
import os
import re
import shutil
import signal

from daemon_testbed import DaemonTestbed
from machine import difference
from name_server import NameServer
from resolver_keepers import OpenResolv, SystemdResolved
from run_checks.registry import check
from run_instance import Instance
from run_site import ENDPOINT, FULL, LAN, OUTSIDE, PORT, SPLIT, Site
from waiting import expect, expect_equal, wait_until

#: What the machine's own resolver answers, and what the proxy's upstream does.
NAME, THEIRS, OURS = "www.example.net", "192.0.2.66", "203.0.113.33"
LISTEN = ("127.0.0.1:53", "[::1]:53")
#: The machine's resolver file, with all that may be in one.
LINES = (f"# of the machine\nsearch lan.example\noptions ndots:2\tno-tld-query\nnameserver {LAN[1]}\n"
         "sortlist 10.0.0.0/8\n")


def names(addresses: str, *more: str) -> "dict[str, list[str]]":
    """What a server knows: the name that is looked up, and more names."""
    return {name: [addresses] for name in (NAME, *more)}


def site_of(testbed: DaemonTestbed, peer: bool = False) -> "tuple[Site, NameServer, NameServer]":
    """A machine, its resolver in the network, and the server that the proxy asks."""
    site = Site(testbed, peer=peer)
    theirs = testbed.enter(NameServer(site.world, LAN[1], names(THEIRS, "host.lan.example")))
    ours = testbed.enter(NameServer(site.world, OUTSIDE, names(OURS, "host.lan.example")))
    return site, theirs, ours


def write(instance: Instance, system: "bool | None" = True, listen: "tuple[str, ...]" = LISTEN, tunnel: bool = False,
          dns: bool = True, **more) -> None:
    """Writes a configuration with the part `dns`, and with the tunnel's file when there is a tunnel."""
    members = {"listen": list(listen), "upstreams": [{"name": "main", "url": f"udp://{OUTSIDE}"}], **more}
    if system is not None:
        members["system"] = system
    whole = {"log": {"level": "debug"}, "control": {"socket": instance.socket}}
    if dns:
        whole["dns"] = members
    if tunnel:
        whole["tunnel"] = {"config": instance.tunnel_path}
    instance.machine.write_etc(f"sluice/{instance.name}.json5", json.dumps(whole, indent=1))


def look_up(site: Site, name: str = NAME) -> "list[str]":
    """What a program of the machine finds that uses the C library, as they all do."""
    outcome = site.machine.run("getent", "ahostsv4", name, check=False, seconds=40)
    return sorted({line.split()[0] for line in outcome.stdout.splitlines()})


def expect_found(site: Site, address: str, when: str, name: str = NAME) -> None:
    """A program of the machine must find this address."""
    expect_equal(look_up(site, name), [address], f"the address of {name} {when}")


def resolver_lines(site: Site) -> "list[str]":
    """The lines of the machine's resolver file, as programs see it, without comments."""
    text = site.machine.run("cat", "/etc/resolv.conf").stdout
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def untimed(site: Site) -> "dict[str, str]":
    """The machine's state but for when its resolver file was written last."""
    state = site.machine.state()
    return {**state, "resolvers": re.sub(r" \d{18,} ", " ", state["resolvers"])}


def give(site: Site, text: str = LINES) -> None:
    """Gives the machine a resolver file of a mode and time of its own."""
    site.machine.write_etc("resolv.conf", text)
    os.chmod(f"{site.machine.etc}/resolv.conf", 0o640)
    os.utime(f"{site.machine.etc}/resolv.conf", ns=(1_600_000_000_123_456_789, 1_600_000_000_987_654_321))


@check("dns.file", "dns.system writes the resolver file: options and domains stay, and the file is the same afterwards")
def file(testbed: DaemonTestbed) -> None:
    site, _, ours = site_of(testbed)
    give(site)
    before = site.machine.state()
    expect_found(site, THEIRS, "before the start")
    for listen, servers in ((LISTEN, ["127.0.0.1", "::1"]), (("0.0.0.0:53", "[::]:53"), ["127.0.0.1", "::1"]),
                            (("127.0.0.1:5353", "127.0.0.9:53"), ["127.0.0.9"]), ((f"{LAN[0]}:53",), [LAN[0]]),
                            ((f"{LAN[0]}:53", "[::1]:53"), ["::1"])):
        write(site.instance, listen=listen)
        site.instance.start()
        expect_equal(resolver_lines(site), [f"nameserver {one}" for one in servers] + [
            "search lan.example", "options ndots:2 no-tld-query", "sortlist 10.0.0.0/8"],
            f"resolv.conf with {listen}")
        expect_found(site, OURS, f"with {listen}")
        expect_found(site, OURS, f"with {listen}", "host")
        expect_equal(site.instance.ask()["systemResolver"], "the resolver file", "what the status says")
        shown = site.instance.sluice("status", "--config", site.instance.configuration).stdout
        expect("machine's resolver: asks here, by way of the resolver file" in shown, f"sluice status: {shown}")
        site.instance.stop()
        site.instance.expect_no_error()
        site.machine.expect_state(before, f"after the end, with {listen}")
    expect(NAME in ours.queries, "the proxy's upstream was asked nothing")
    expect_found(site, THEIRS, "after the end")


@check("dns.forms", "a resolver file that is a link, that is not there, or that is mounted: the same again afterwards")
def forms(testbed: DaemonTestbed) -> None:
    site, _, _ = site_of(testbed)
    path = f"{site.machine.etc}/resolv.conf"
    write(site.instance)

    def run(what: str, expected: "list[str]") -> None:
        before = site.machine.state()
        site.instance.start()
        lines = ["nameserver 127.0.0.1", "nameserver ::1", *expected]
        expect_equal(resolver_lines(site), lines, f"resolv.conf with {what}")
        expect_found(site, OURS, f"with {what}")
        site.instance.stop()
        site.machine.expect_state(before, f"after the end, with {what}")

    os.unlink(path)
    site.machine.write_etc("elsewhere.conf", f"domain lan.example\nnameserver {LAN[1]}\n")
    os.symlink("elsewhere.conf", path)
    run("a link", ["search lan.example"])
    expect_equal(site.machine.read_etc("elsewhere.conf"), f"domain lan.example\nnameserver {LAN[1]}\n", "the target")
    os.unlink(path)
    run("no file", [])
    give(site)
    target = site.machine.write_etc("mounted.conf", f"nameserver {LAN[1]}\noptions edns0\n")
    site.machine.run("mount", "--bind", target, "/etc/resolv.conf")
    run("a mounted file", ["options edns0"])
    expect_equal(site.machine.read_etc("mounted.conf"), f"nameserver {LAN[1]}\noptions edns0\n", "the mounted file")


@check("dns.refused", "a resolver that cannot be pointed ends the start with one clear line, and all is as before")
def refused(testbed: DaemonTestbed) -> None:
    site, _, _ = site_of(testbed)
    give(site)
    target = site.machine.write_etc("mounted.conf", f"nameserver {LAN[1]}\n")
    site.machine.run("sh", "-c", f"mount --bind {target} /etc/resolv.conf && mount -o remount,bind,ro /etc/resolv.conf")
    write(site.instance)

    def expect_refused(*parts: str) -> None:
        before = site.machine.state()
        site.instance.launch()
        site.instance.wait_for_end(1)
        lines = [line for line in site.instance.log().splitlines() if "cannot point the machine's resolver" in line]
        expect(len(lines) == 1 and all(part in lines[0] for part in parts), f"the log: {site.instance.tail()}")
        expect("READY=1" not in site.instance.notifications(), "it said to be ready")
        site.machine.expect_state(before, "after a start that was refused")

    expect_refused("Read-only file system")
    # Two cannot have the resolver.
    site.machine.run("umount", "/etc/resolv.conf")
    other = Instance(site.machine, "tun1")
    write(other, listen=("127.0.0.2:53",))
    other.start()
    expect_refused("another process has pointed the machine's resolver at itself")
    expect_equal(resolver_lines(site)[0], "nameserver 127.0.0.2", "the resolver of the one that runs")
    other.stop()
    # Without privileges: port 53 is had, and the resolver is not.
    site.namespace.sysctl("net/ipv4/ip_unprivileged_port_start", 53)
    folder, outside = "/run/alone", f"{site.machine.root}/run/alone"
    os.mkdir(outside)
    os.chmod(outside, 0o777)
    site.instance.socket = f"{folder}/control.sock"
    write(site.instance)
    before = site.machine.state()
    # Where the program is, its user may not be allowed to look.
    shutil.copy(testbed.command[0], f"{outside}/sluice")
    outcome = site.machine.run(
        "setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "--bounding-set=-all", "--inh-caps=-all",
        "--no-new-privs", f"{folder}/sluice", *testbed.command[1:], "run", "--config", site.instance.configuration,
        check=False)
    os.unlink(f"{outside}/sluice")
    expect_equal(outcome.returncode, 1, "the status without privileges")
    lines = [line for line in outcome.stderr.splitlines() if "cannot point the machine's resolver here" in line]
    expect(len(lines) == 1, f"the log: {outcome.stderr}")
    expect("Permission denied" in lines[0] and "; it takes root" in lines[0], f"the line: {lines[0]}")
    site.machine.expect_state(before, "after a start without privileges")


@check("dns.unreachable", "dns.system without port 53, or asking systemd-resolved, is a conflict that is told")
def unreachable(testbed: DaemonTestbed) -> None:
    site, _, _ = site_of(testbed)
    for options, part in (({"listen": ("127.0.0.1:5353",)}, "needs an address with port 53 in dns.listen"),
                          ({"listen": ()}, "needs an address with port 53 in dns.listen"),
                          ({"upstreams": [{"name": "main", "url": "udp://127.0.0.53"}]}, "it would ask here"),
                          ({"bootstrap": ["127.0.0.53"]}, "it would ask here")):
        write(site.instance, **options)
        outcome = site.instance.sluice("check", "--config", site.instance.configuration, check=False)
        expect_equal(outcome.returncode, 1, f"the status of sluice check with {options}")
        expect("dns.system: " in outcome.stderr and part in outcome.stderr, f"sluice check says: {outcome.stderr}")
    write(site.instance)
    outcome = site.instance.sluice("check", "--config", site.instance.configuration)
    expect_equal((outcome.stdout.split(": ")[-1], outcome.stderr), ("fine\n", ""), "what sluice check says")


@check("dns.killed", "after kill -9 the next start restores the resolver first: endpoints are looked up as ever")
def killed(testbed: DaemonTestbed) -> None:
    site, theirs, _ = site_of(testbed, peer=True)
    give(site)
    before = site.machine.state()

    def kill() -> None:
        site.instance.start()
        expect_found(site, OURS, "while it runs")
        site.instance.signal(signal.SIGKILL)
        site.instance.wait_for_end(-signal.SIGKILL)
        expect_equal(resolver_lines(site)[0], "nameserver 127.0.0.1", "the resolver after kill -9")
        os.unlink(f"{site.machine.root}{site.instance.socket}")

    # By one that has nothing to do with the resolver, by the same, and by a tunnel to a name.
    write(site.instance)
    kill()
    write(site.instance, system=False)
    site.instance.start()
    expect("what an instance that died had left was removed" in site.instance.log(), "it does not tell of it")
    site.instance.stop()
    site.machine.expect_state(before, "after kill -9, a start without dns.system, and its end")
    write(site.instance)
    kill()
    kill()
    site.instance.start()
    site.instance.stop()
    site.machine.expect_state(before, "after kill -9 twice, a start and its end")
    kill()
    theirs.names["peer.example"] = [ENDPOINT]
    site.instance.write_tunnel(site.peer.file(SPLIT, endpoint=f"peer.example:{PORT}"))
    write(site.instance, tunnel=True)
    site.instance.start()
    site.expect_inside()
    expect("peer.example" in theirs.queries, "the endpoint's name was not looked up by the machine's own resolver")
    site.instance.signal(signal.SIGKILL)
    site.instance.wait_for_end(-signal.SIGKILL)
    site.instance.start()
    site.instance.stop()
    site.machine.expect_state(before, "after a tunnel, kill -9, a start and its end")


@check("dns.reboot", "after a loss of power the next start finds what the resolver file was, if nobody wrote it since")
def reboot(testbed: DaemonTestbed) -> None:
    site, theirs, _ = site_of(testbed, peer=True)
    theirs.names["peer.example"] = [ENDPOINT]
    site.instance.write_tunnel(site.peer.file(SPLIT, endpoint=f"peer.example:{PORT}"))

    def lose_power(number: int) -> None:
        """What is in memory is gone, and the kernel draws another number; what is on the disk stays."""
        site.instance.start()
        expect_found(site, OURS, "while it runs")
        site.instance.signal(signal.SIGKILL)
        site.instance.wait_for_end(-signal.SIGKILL)
        other = site.machine.write_etc(f"sluice/boot{number}", f"00000000-0000-0000-0000-{number:012}\n")
        site.machine.run("sh", "-c", "rm -rf /run/sluice /run/wireguard && mkdir /run/sluice /run/wireguard && "
                         f"mount --bind {other} /proc/sys/kernel/random/boot_id")
        expect_equal(resolver_lines(site)[0], "nameserver 127.0.0.1", "the resolver after the loss of power")

    for linked in (False, True):
        os.unlink(f"{site.machine.etc}/resolv.conf")
        if linked:
            site.machine.write_etc("elsewhere.conf", LINES)
            os.symlink("elsewhere.conf", f"{site.machine.etc}/resolv.conf")
        else:
            give(site)
        before = untimed(site)["resolvers"].split(", beside")[0]

        def expect_restored(when: str) -> None:
            expect_equal(untimed(site)["resolvers"].split(", beside")[0], before, f"the resolver file {when}")

        write(site.instance)
        lose_power(10 * linked + 1)
        # One that has nothing to do with the resolver, and one that needs it.
        write(site.instance, system=False)
        site.instance.start()
        expect_restored("after a start without dns.system")
        site.instance.stop()
        write(site.instance)
        lose_power(10 * linked + 2)
        write(site.instance, tunnel=True)
        site.instance.start()
        site.instance.stop()
        expect_restored("after a tunnel to a name")
        # What a DHCP client wrote when the machine came up is what counts.
        write(site.instance)
        lose_power(10 * linked + 3)
        os.unlink(f"{site.machine.etc}/resolv.conf")
        site.machine.write_etc("resolv.conf", f"nameserver {LAN[1]}\n# anew\n")
        site.instance.start()
        site.instance.stop()
        expect_equal(site.machine.read_etc("resolv.conf"), f"nameserver {LAN[1]}\n# anew\n", "the file that is new")


@check("dns.onoff", "SIGHUP points the resolver here, elsewhere, and back; what fails leaves it as it was")
def on_and_off(testbed: DaemonTestbed) -> None:
    site, _, ours = site_of(testbed, peer=True)
    give(site)
    ours.names["other.example"] = ["192.0.2.9"]
    site.instance.write_tunnel(site.peer.file(SPLIT))
    for tunnel in (False, True):
        before = site.machine.state()
        write(site.instance, system=None, tunnel=tunnel)
        site.instance.start()
        off = site.machine.state()
        for _ in range(2):
            write(site.instance, tunnel=tunnel)
            site.instance.reload()
            expect_found(site, OURS, "with dns.system")
            on = site.machine.state()
            site.instance.reload()
            site.machine.expect_state(on, "after a reload without a change")
            write(site.instance, listen=("127.0.0.7:53",), tunnel=tunnel)
            site.instance.reload()
            expect_equal(resolver_lines(site)[0], "nameserver 127.0.0.7", "the resolver after dns.listen changed")
            expect_found(site, OURS, "after dns.listen changed")
            # A port that is taken: nothing is changed.
            state = untimed(site)
            with site.namespace.udp_socket("127.0.0.8", 53):
                write(site.instance, listen=("127.0.0.8:53",), tunnel=tunnel)
                site.instance.reload("was not taken over")
            expect_found(site, OURS, "after a reload that failed")
            expect_equal(untimed(site), state, "the machine after a reload that failed")
            write(site.instance, system=False, tunnel=tunnel)
            site.instance.reload()
            site.machine.expect_state(off, "after dns.system was taken away")
            expect_found(site, THEIRS, "after dns.system was taken away")
        write(site.instance, tunnel=tunnel)
        site.instance.reload()
        if tunnel:
            # Without the part dns, and with a peer by a name that the machine's own resolver knows.
            write(site.instance, dns=False, tunnel=True)
            site.instance.reload()
            expect_equal(resolver_lines(site)[-2], f"nameserver {LAN[1]}", "the resolver without the part dns")
            write(site.instance, tunnel=True)
            site.instance.reload()
            expect_found(site, OURS, "with the part dns again")
        site.instance.stop()
        site.machine.expect_state(before, "after the end")


@check("dns.handover", "the part dns goes and a peer by name comes by one SIGHUP: the name is looked up as ever")
def handover(testbed: DaemonTestbed) -> None:
    site, theirs, ours = site_of(testbed, peer=True)
    theirs.names["late.example"] = ["192.0.2.9"]
    before = site.machine.state()
    site.instance.write_tunnel(site.peer.file(SPLIT))
    write(site.instance, tunnel=True)
    site.instance.start()
    key = "xTIBA5rboUvnH4htodjb6e697QjLERt1NAB4mZqp8Dg="
    late = f"[Peer]\nPublicKey = {key}\nAllowedIPs = 10.77.0.0/24\nEndpoint = late.example:1\n"
    site.instance.write_tunnel(site.peer.file(SPLIT) + late)
    write(site.instance, dns=False, tunnel=True)
    site.instance.reload("1 peers added")
    expect("late.example" in theirs.queries, "the machine's own resolver was not asked")
    # And the other way round: while the resolver asks here, the proxy's upstream is asked, once, and in no circle.
    site.instance.write_tunnel(site.peer.file(SPLIT))
    write(site.instance, tunnel=True)
    site.instance.reload("1 removed")
    ours.names["late.example"] = ["192.0.2.9"]
    site.instance.write_tunnel(site.peer.file(SPLIT) + late)
    site.instance.reload("1 peers added")
    expect_equal(set(name for name in ours.queries if name.startswith("late")), {"late.example"}, "what was asked")
    expect(ours.queries.count("late.example") <= 2, f"the upstream was asked too often: {ours.queries}")
    site.instance.stop()
    site.machine.expect_state(before, "after the end")


@check("dns.foreign", "a resolver file that somebody wrote meanwhile stays so, and is what comes back later")
def foreign(testbed: DaemonTestbed) -> None:
    site, _, _ = site_of(testbed)
    give(site)
    write(site.instance)
    site.instance.start()
    # As DHCP clients write it: in place, and by another file of the name.
    for replaces in (False, True):
        text = f"nameserver {LAN[1]}\n# by somebody else{' again' if replaces else ''}\n"
        if replaces:
            site.machine.write_etc("resolv.conf.new", text)
            os.rename(f"{site.machine.etc}/resolv.conf.new", f"{site.machine.etc}/resolv.conf")
        else:
            site.machine.write_etc("resolv.conf", text)
        before = site.machine.state()["resolvers"]
        expect_found(site, THEIRS, "after somebody wrote the file")
        site.instance.stop()
        site.instance.wait_for_line("the resolver file was changed by somebody else since: it stays as it is")
        expect_equal(site.machine.state()["resolvers"], before, "the resolver file")
        site.instance.start()
        expect_found(site, OURS, "after another start")
    site.instance.stop()
    expect_equal(site.machine.read_etc("resolv.conf"), text, "the file at last")


@check("dns.resolvconf", "with resolvconf (openresolv): its record comes first and alone, and is gone afterwards")
def resolvconf(testbed: DaemonTestbed) -> None:
    site, _, _ = site_of(testbed, peer=True)
    keeper = OpenResolv(site.machine)
    keeper.tell("under", f"nameserver {LAN[1]}\nsearch lan.example\n")
    expect_found(site, THEIRS, "before the start")
    before = untimed(site)
    write(site.instance)
    site.instance.start()
    expect_equal(keeper.records(), ["lo.sluice", "under"], "resolvconf's records")
    expect_equal([line for line in resolver_lines(site) if line.startswith("nameserver")],
                 ["nameserver 127.0.0.1", "nameserver ::1"], "the servers in resolv.conf")
    expect_found(site, OURS, "with resolvconf")
    expect_equal(site.instance.ask()["systemResolver"], "resolvconf", "what the status says")
    site.instance.signal(signal.SIGKILL)
    site.instance.wait_for_end(-signal.SIGKILL)
    expect_equal(keeper.records(), ["lo.sluice", "under"], "resolvconf's records after kill -9")
    # The next one is a tunnel that brings domains.
    site.instance.write_tunnel(site.peer.file(SPLIT, f"DNS = {site.peer.inner}, corp.example"))
    write(site.instance, tunnel=True)
    site.instance.start()
    expect("search corp.example" in " / ".join(resolver_lines(site)), f"resolv.conf: {resolver_lines(site)}")
    expect_found(site, OURS, "with a tunnel")
    write(site.instance, system=False, tunnel=True)
    site.instance.reload()
    expect_equal(keeper.records(), ["under"], "resolvconf's records after a reload without dns.system")
    site.instance.stop()
    wait_until(lambda: untimed(site) == before, "everything being as before after the end", 5,
               detail=lambda: difference(before, untimed(site)))


@check("dns.resolved", "with systemd-resolved: every name is asked here, and as ever afterwards, also after kill -9")
def resolved(testbed: DaemonTestbed) -> None:
    site, _, ours = site_of(testbed)
    keeper = SystemdResolved(site.machine)
    keeper.tell("under", LAN[1], "lan.example")
    expect_found(site, THEIRS, "before the start")
    before, told = site.machine.state(), keeper.status()
    for ending in ("stop", "kill", "reload"):
        write(site.instance)
        site.instance.start()
        expect_equal(site.instance.ask()["systemResolver"], "systemd-resolved", "what the status says")
        for name in (NAME, "a.example", "b.example"):
            ours.names[name] = [OURS]
            expect_found(site, OURS, f"with systemd-resolved, {ending}", name)
        keeper.forget()
        if ending == "kill":
            site.instance.signal(signal.SIGKILL)
            site.instance.wait_for_end(-signal.SIGKILL)
            # What was told goes with the device by itself.
            wait_until(lambda: keeper.status() == told, "systemd-resolved being as before, without another start", 5)
            expect_found(site, THEIRS, "after kill -9")
            os.unlink(f"{site.machine.root}{site.instance.socket}")
            continue
        if ending == "reload":
            write(site.instance, system=False)
            site.instance.reload()
            wait_until(lambda: keeper.status() == told, "systemd-resolved being as before after a reload", 5)
            expect_found(site, THEIRS, "after a reload without dns.system")
        site.instance.stop()
        keeper.forget()
        wait_until(lambda: keeper.status() == told, f"systemd-resolved being as before after {ending}", 5)
        expect_found(site, THEIRS, f"after {ending}")
        site.machine.expect_state(before, f"after {ending}")


@check("dns.link", "with systemd-resolved and a tunnel: the tunnel's link is told, with the tunnel's domains")
def link(testbed: DaemonTestbed) -> None:
    site, _, _ = site_of(testbed, peer=True)
    keeper = SystemdResolved(site.machine)
    keeper.tell("under", LAN[1], "lan.example")
    inside = testbed.enter(NameServer(site.world, site.peer.inner, names("10.8.0.77", "inner.corp.example")))
    before, told = site.machine.state(), keeper.status()
    site.instance.write_tunnel(site.peer.file(FULL, f"DNS = {site.peer.inner}, corp.example"))
    write(site.instance, tunnel=True)
    site.instance.start()
    site.expect_inside()
    shown = keeper.status("tun0")
    expect("127.0.0.1" in shown and "corp.example ~." in shown, f"what systemd-resolved was told: {shown}")
    expect(not site.namespace.has_interface("sluice-dns"), "a device was made although there is one")
    expect_found(site, "10.8.0.77", "of the tunnel's domain", "inner.corp.example")
    expect_found(site, "10.8.0.77", "of the tunnel's domain, by search", "inner")
    expect("inner.corp.example" in inside.queries, "the tunnel's server was not asked")
    write(site.instance, system=False, tunnel=True)
    site.instance.reload()
    expect("127.0.0.1" not in keeper.status("tun0"), "systemd-resolved still asks here")
    write(site.instance, tunnel=True)
    site.instance.reload()
    expect("127.0.0.1" in keeper.status("tun0"), "systemd-resolved does not ask here again")
    site.instance.stop()
    wait_until(lambda: keeper.status() == told, "systemd-resolved being as before after the end", 5)
    site.machine.expect_state(before, "after the end")
