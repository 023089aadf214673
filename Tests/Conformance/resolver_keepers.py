"""Those who keep the resolvers of a machine, real ones: they are unpacked beside the system by scripts/setup."""

import os
import re
import subprocess

from machine import Machine
from waiting import CheckFailure, expect, wait_until

#: Where scripts/setup unpacks them.
_FOLDER = "/usr/local/lib/sluice-checks"
_BUS = """<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig><type>system</type><listen>unix:path=/run/dbus/system_bus_socket</listen><auth>EXTERNAL</auth>
<policy context="default"><allow user="*"/><allow own="*"/><allow send_type="method_call"/>
<allow send_type="signal"/><allow send_destination="*"/><allow receive_sender="*"/></policy></busconfig>
"""


def _unpacked(path: str) -> str:
    if not os.path.exists(f"{_FOLDER}/{path}"):
        raise CheckFailure(f"{_FOLDER}/{path} is missing: scripts/setup unpacks it")
    return f"{_FOLDER}/{path}"


class OpenResolv:
    """openresolv's resolvconf, on a machine of its own."""

    def __init__(self, machine: Machine):
        self.machine = machine
        with open(_unpacked("openresolv/sbin/resolvconf")) as script:
            text = script.read()
        place = _unpacked("openresolv/lib/resolvconf")
        changed = re.sub(r"(?m)^LIBEXECDIR=.*$", f"LIBEXECDIR={place}", text)
        expect(changed != text, "openresolv does not say where its parts are")
        machine.install("resolvconf", changed)
        # Only the resolver file: the subscribers are for servers that do not run here.
        machine.write_etc("resolvconf.conf", "resolv_conf=/etc/resolv.conf\n")

    def tell(self, record: str, lines: str) -> None:
        """What a DHCP client tells it."""
        self.machine.run("resolvconf", "-a", record, input=lines)

    def records(self) -> "list[str]":
        """The names of its records."""
        return sorted(self.machine.run("resolvconf", "-i").stdout.split())


class SystemdResolved:
    """systemd-resolved, on a machine of its own whose resolver file is a link to its stub's."""

    def __init__(self, machine: Machine):
        self.machine = machine
        program = _unpacked("systemd-resolved/lib/systemd/systemd-resolved")
        tool = _unpacked("systemd-resolved/usr/bin/resolvectl")
        libraries = _unpacked("libsystemd-shared/usr/lib/x86_64-linux-gnu/systemd")
        for name, fields in (("passwd", "x:991:991::/:/usr/sbin/nologin"), ("group", "x:991:")):
            with open(f"{machine.etc}/{name}", "a") as file:
                file.write(f"systemd-resolve:{fields}\n")
        machine.install("resolvectl", f'#!/bin/sh\nLD_LIBRARY_PATH={libraries} exec {tool} "$@"\n')
        bus = machine.write_etc("bus.conf", _BUS)
        machine.run("sh", "-c", "mkdir -p /run/dbus /run/systemd/resolve && chown 991:991 /run/systemd/resolve")
        os.unlink(f"{machine.etc}/resolv.conf")
        os.symlink("/run/systemd/resolve/stub-resolv.conf", f"{machine.etc}/resolv.conf")
        silent = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        machine.start("dbus-daemon", f"--config-file={bus}", "--nofork", "--nopidfile", **silent)
        self._wait_for("/run/dbus/system_bus_socket")
        machine.start(program, env=machine.environment(LD_LIBRARY_PATH=libraries), **silent)
        self._wait_for("/run/systemd/resolve/io.systemd.Resolve")
        wait_until(lambda: self._ctl("status", check=False).returncode == 0, "systemd-resolved being on the bus", 20)

    def _wait_for(self, path: str) -> None:
        wait_until(lambda: os.path.exists(f"{self.machine.root}{path}"), f"{path} being there", 20)

    def _ctl(self, *words: str, check: bool = True) -> subprocess.CompletedProcess:
        return self.machine.run("resolvectl", "--no-pager", *words, check=check)

    def tell(self, link: str, server: str, domain: str) -> None:
        """What a network manager tells it of a link."""
        self._ctl("dns", link, server)
        self._ctl("domain", link, domain)
        self._ctl("default-route", link, "yes")

    def forget(self) -> None:
        """Has it forget what it asked."""
        self._ctl("flush-caches")

    def status(self, *link: str) -> str:
        """What it was told, without which server it asked last."""
        text = self._ctl("status", *link).stdout
        return "\n".join(
            re.sub(r" +", " ", line).strip() for line in text.splitlines() if "Current DNS Server" not in line)
