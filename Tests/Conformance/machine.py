"""A machine of its own for a daemon that changes the machine: its network, /run, /etc, /var/lib, /usr/local/sbin."""

import os
import shutil
import stat
import subprocess

from daemon_testbed import DaemonTestbed, end_all, process_ids
from network_namespace import NetworkNamespace
from waiting import expect, wait_until

#: What programs read in /etc; all else is not there.
_FILES = ("passwd", "group", "protocols", "services", "ld.so.cache", "iproute2", "alternatives", "ssl/openssl.cnf")

_SETUP = """set -e
mount --make-rprivate /
mount --bind "$1/etc" /etc
mount --bind "$1/sbin" /usr/local/sbin
mount -t tmpfs none /run
mount -t tmpfs none /var/lib
mkdir -m 755 /run/sluice /run/wireguard
[ ! -e /sys/module/wireguard ] || mount -t tmpfs none /sys/module
echo ready
exec sleep 1000000
"""


class Machine:
    """A network namespace with a mount namespace beside it, in which nothing is shared with other checks: not the
    records of settings, not resolv.conf, not the sockets."""

    def __init__(self, testbed: DaemonTestbed, label: str = "a", resolvers: str = "nameserver 10.0.0.2\n"):
        self.testbed = testbed
        self.namespace: NetworkNamespace = testbed.namespace(label)
        self.folder = testbed.file(f"machine-{label}")
        self.etc, self.sbin = f"{self.folder}/etc", f"{self.folder}/sbin"
        for path in (self.folder, self.etc, self.sbin, f"{self.etc}/wireguard", f"{self.etc}/sluice"):
            os.mkdir(path, 0o755)
        self._fill_etc(resolvers)
        self.keeper = testbed.start(
            self.namespace, "ip", "netns", "exec", self.namespace.name, "unshare", "--mount", "sh", "-c", _SETUP, "sh",
            self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        testbed.on_exit(end_all, self.namespace)
        expect(self.keeper.stdout.readline() == "ready\n", "the machine's file systems cannot be mounted")
        self.root = f"/proc/{self.keeper.pid}/root"

    def _fill_etc(self, resolvers: str) -> None:
        for name in _FILES:
            source, target = f"/etc/{name}", f"{self.etc}/{name}"
            os.makedirs(os.path.dirname(target), exist_ok=True)
            if os.path.isdir(source):
                shutil.copytree(source, target, symlinks=True)
            elif os.path.exists(source):
                shutil.copy(source, target)
        self.write_etc("nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n")
        self.write_etc("hosts", "127.0.0.1 localhost\n::1 localhost\n")
        self.write_etc("resolv.conf", resolvers)
        # A time of its own shows whether it is put back.
        os.utime(f"{self.etc}/resolv.conf", ns=(1_600_000_000_123_456_789, 1_600_000_000_987_654_321))

    def write_etc(self, name: str, text: str, mode: int = 0o644) -> str:
        """Writes a file below /etc and returns its path as the machine sees it."""
        path = f"{self.etc}/{name}"
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "w") as file:
            file.write(text)
        return f"/etc/{name}"

    def read_etc(self, name: str) -> str:
        """The text of a file below /etc."""
        with open(f"{self.etc}/{name}") as file:
            return file.read()

    def install(self, name: str, text: str) -> None:
        """Installs a program in /usr/local/sbin, which is the first of the PATH."""
        path = f"{self.sbin}/{name}"
        with open(path, "w") as file:
            file.write(text)
        os.chmod(path, stat.S_IRWXU)

    def words(self, *argv: str) -> "list[str]":
        """The command as it has to be started in the machine's network namespace."""
        return ["nsenter", f"--mount=/proc/{self.keeper.pid}/ns/mnt", "--", *argv]

    def environment(self, **extra: str) -> dict:
        """The variables that programs of the machine have."""
        variables = dict(os.environ)
        for name in ("LOG_LEVEL", "NOTIFY_SOCKET", "WG_I_PREFER_BUGGY_USERSPACE_TO_POLISHED_KMOD"):
            variables.pop(name, None)
        variables["PATH"] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        return {**variables, **extra}

    def run(self, *argv: str, **options) -> subprocess.CompletedProcess:
        """Runs a command on the machine to its end; options are those of `commands.run`."""
        options.setdefault("environment", self.environment())
        return self.namespace.run(*self.words(*argv), **options)

    def start(self, *argv: str, **options) -> subprocess.Popen:
        """Starts a command on the machine; it ends with the check at the latest."""
        options.setdefault("env", self.environment())
        return self.testbed.start(self.namespace, *self.words(*argv), **options)

    def process_ids(self) -> "list[int]":
        """The processes of the machine."""
        return [pid for pid in process_ids(self.namespace) if pid != self.keeper.pid]

    def state(self) -> "dict[str, str]":
        """All that settings may touch, as text: the network, the resolvers, what lies in /run, processes."""
        sections = {
            "addresses": "ip -d address", "rules": "ip rule", "IPv6 rules": "ip -6 rule",
            "routes": "ip -d route show table all", "IPv6 routes": "ip -d -6 route show table all",
            "firewall": "nft list ruleset", "src_valid_mark": "cat /proc/sys/net/ipv4/conf/all/src_valid_mark",
        }
        script = "".join(f"echo '== {name}'; {command} || exit 1\n" for name, command in sections.items())
        parts = self.run("sh", "-c", script).stdout.split("== ")[1:]
        state = {part.partition("\n")[0]: part.partition("\n")[2] for part in parts}
        state["resolvers"] = self._resolvers()
        state["files in /run"] = "\n".join(self._files_in_run())
        state["processes"] = "\n".join(_title(pid) for pid in self.process_ids())
        return state

    def _resolvers(self) -> str:
        path = f"{self.etc}/resolv.conf"
        entries = " ".join(sorted(name for name in os.listdir(self.etc)))
        if not os.path.lexists(path):
            return f"nothing, beside {entries}"
        status = os.lstat(path)
        what = os.readlink(path) if os.path.islink(path) else self.read_etc("resolv.conf")
        return f"{oct(status.st_mode)} {status.st_uid}:{status.st_gid} {status.st_mtime_ns} {what!r}, beside {entries}"

    def _files_in_run(self) -> "list[str]":
        found = []
        for folder, _, names in os.walk(f"{self.root}/run"):
            found += [os.path.relpath(f"{folder}/{name}", self.root) for name in names]
        # The lock between those who change settings is empty and stays.
        return sorted(name for name in found if name != "run/sluice/settings.lock")

    def expect_state(self, before: "dict[str, str]", when: str, seconds: float = 5.0) -> None:
        """The machine must be what it was, to the byte, a moment later at the latest: the kernel takes its time for
        some of an interface's routes."""
        wait_until(
            lambda: not difference(before, self.state()), f"everything being as before {when}", seconds, 0.1,
            lambda: difference(before, self.state()))


def difference(before: "dict[str, str]", after: "dict[str, str]") -> str:
    """What differs between two states, line by line; empty when nothing does."""
    found = []
    for what, text in before.items():
        old, new = text.splitlines(), after[what].splitlines()
        if old == new:
            continue
        lines = [f"-{line}" for line in old if line not in new] + [f"+{line}" for line in new if line not in old]
        found.append(f"{what}: {'; '.join(lines) or 'in another order'}")
    return " | ".join(found)


def _title(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""
