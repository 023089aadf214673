"""Network namespaces: created, entered, wired together and removed."""

import contextlib
import ctypes
import json
import os
import socket as sockets
import subprocess
from typing import Iterator, Sequence

import commands
from waiting import wait_until

_CLONE_NEWNET = 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)


def _setns(descriptor: int) -> None:
    if _libc.setns(descriptor, _CLONE_NEWNET) != 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))


class NetworkNamespace:
    """A named network namespace (as `ip netns` knows it), with the loopback interface up."""

    def __init__(self, name: str):
        """Creates the namespace `name`; use as a context manager or call `delete`."""
        self.name = name
        self.path = f"/run/netns/{name}"
        self.deleted = False
        commands.run(["ip", "netns", "add", name])
        self.ip("link", "set", "lo", "up")

    def __enter__(self) -> "NetworkNamespace":
        return self

    def __exit__(self, *exception) -> None:
        self.delete()

    def delete(self) -> None:
        """Removes the namespace's name; harmless when it is gone already."""
        if not self.deleted:
            self.deleted = True
            # Not through `commands.run`: it must also work while an interrupted run is being cleaned up.
            subprocess.run(["ip", "netns", "del", self.name], capture_output=True, check=False)

    @contextlib.contextmanager
    def entered(self) -> Iterator[None]:
        """The calling thread, and what it starts or opens meanwhile, is in this namespace inside the `with` block."""
        home = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        try:
            target = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                _setns(target)
            finally:
                os.close(target)
            try:
                yield
            finally:
                _setns(home)
        finally:
            os.close(home)

    def run(self, *argv: str, **options) -> subprocess.CompletedProcess:
        """`commands.run` inside the namespace."""
        with self.entered():
            return commands.run(argv, **options)

    def start(self, *argv: str, **options) -> subprocess.Popen:
        """`commands.start` inside the namespace; end it with `commands.end`."""
        with self.entered():
            return commands.start(argv, **options)

    def ip(self, *words: str, check: bool = True) -> str:
        """Runs `ip WORDS...` inside and returns what it printed."""
        return self.run("ip", *words, check=check).stdout

    def nft(self, ruleset: str) -> None:
        """Loads nftables commands (text in nft's own syntax) inside."""
        self.run("nft", "-f", "-", input=ruleset)

    def nft_counters(self, table: str) -> "dict[str, tuple[int, int]]":
        """Packets and bytes of each named counter of the ip, ip6 or inet table `table` ("ip NAME")."""
        text = self.run("nft", "-j", "list", "counters", "table", *table.split()).stdout
        counters = (entry["counter"] for entry in json.loads(text)["nftables"] if "counter" in entry)
        return {counter["name"]: (counter["packets"], counter["bytes"]) for counter in counters}

    def sysctl(self, key: str, value: object) -> None:
        """Writes `value` to /proc/sys/KEY (slashes, not dots) of this namespace."""
        with self.entered(), open(f"/proc/sys/{key}", "w") as file:
            file.write(f"{value}\n")

    def socket(self, family: int, kind: int, protocol: int = 0) -> sockets.socket:
        """A socket that belongs to this namespace, usable from any thread."""
        with self.entered():
            return sockets.socket(family, kind, protocol)

    def udp_socket(self, address: str, port: int, seconds: float = 2.0) -> sockets.socket:
        """A UDP socket bound in this namespace, with a receive time-out of `seconds`."""
        family = sockets.AF_INET6 if ":" in address else sockets.AF_INET
        socket = self.socket(family, sockets.SOCK_DGRAM)
        try:
            socket.bind((address, port))
            socket.settimeout(seconds)
        except BaseException:
            socket.close()
            raise
        return socket

    def has_interface(self, interface: str) -> bool:
        """Whether an interface of that name exists inside."""
        with self.entered():
            try:
                sockets.if_nametoindex(interface)
                return True
            except OSError:
                return False

    def link(self, interface: str) -> dict:
        """What `ip -j link show` says about one interface."""
        return json.loads(self.ip("-j", "link", "show", "dev", interface))[0]

    def wait_for_link_up(self, *interfaces: str) -> None:
        """Waits until each interface's operational state is UP."""
        for interface in interfaces:
            wait_until(lambda: self.link(interface)["operstate"] == "UP", f"link {interface} coming up")

    def add_address(self, interface: str, *addresses: str) -> None:
        """Adds addresses in prefix notation; IPv6 ones without duplicate address detection."""
        for address in addresses:
            self.ip("address", "add", address, "dev", interface, *(["nodad"] if ":" in address else []))

    def delete_address(self, interface: str, *addresses: str) -> None:
        """Removes addresses in prefix notation."""
        for address in addresses:
            self.ip("address", "del", address, "dev", interface)

    def process_ids(self) -> "list[int]":
        """Processes that are in this namespace now."""
        return [int(word) for word in commands.run(["ip", "netns", "pids", self.name]).stdout.split()]

    def ping(self, destination: str, *options: str, count: int = 1, seconds: float = 1.0) -> "PingResult":
        """`ping -c COUNT -W SECONDS OPTIONS DESTINATION`, whatever its outcome."""
        outcome = self.run(
            "ping", "-n", "-c", str(count), "-W", f"{seconds:g}", *options, destination,
            check=False, seconds=count * max(seconds, 1.0) + 10,
        )
        return PingResult(outcome)


class PingResult:
    """The outcome of one ping command."""

    def __init__(self, outcome: subprocess.CompletedProcess):
        self.output: str = outcome.stdout + outcome.stderr
        self.answered: bool = outcome.returncode == 0
        received = [line for line in outcome.stdout.splitlines() if " received" in line]
        # "10 packets transmitted, 10 received, 0% packet loss, time 1ms"
        self.received: int = int(received[-1].split(" received")[0].split()[-1]) if received else 0

    @property
    def summary(self) -> str:
        """ping's own words, on one line."""
        return " / ".join(line for line in self.output.splitlines() if line.strip())


def connect(
    first: NetworkNamespace, first_name: str, second: NetworkNamespace, second_name: str, up: bool = True
) -> None:
    """Wires two namespaces with a veth pair, and waits until both ends are up unless `up` is false."""
    first.ip("link", "add", first_name, "type", "veth", "peer", "name", second_name, "netns", second.name)
    if up:
        first.ip("link", "set", first_name, "up")
        second.ip("link", "set", second_name, "up")
        first.wait_for_link_up(first_name)
        second.wait_for_link_up(second_name)


def delete_all_with_prefix(prefix: str) -> "Sequence[str]":
    """Removes every namespace whose name starts with `prefix` (the last broom of a run); returns their names."""
    try:
        names = [name for name in os.listdir("/run/netns") if name.startswith(prefix)]
    except FileNotFoundError:
        return []
    for name in names:
        subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)
    return names
