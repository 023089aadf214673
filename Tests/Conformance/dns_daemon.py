"""One `sluice run` that is a DNS proxy and nothing else: its configuration, its process, and what it says."""

import json
import os
import signal
import socket
from typing import TYPE_CHECKING, Iterable, Optional, Union

import commands
from daemon_process import DaemonProcess
from waiting import CheckFailure, expect, expect_equal, wait_until

if TYPE_CHECKING:
    from dns_testbed import DNSTestbed

Upstreams = Union[str, dict, Iterable[Union[str, dict]]]


class DNSDaemon(DaemonProcess):
    """A daemon in a testbed's namespace, under a configuration of its own."""

    def __init__(self, testbed: "DNSTestbed", name: str):
        """`name` is part of the names of its files."""
        super().__init__(testbed)
        self.name = name
        self.path = testbed.file(f"{name}.json5")
        self.socket = testbed.file(f"{name}.sock")
        self.log_path = testbed.file(f"{name}.log")

    def write(self, upstreams: Upstreams, rules: "Iterable[str]" = (), *, blocked: "Optional[str]" = None,
              level: str = "debug", **dns) -> None:
        """Writes the configuration: an upstream or several as URLs or members, rules, more members of `dns`."""
        given = [upstreams] if isinstance(upstreams, (str, dict)) else list(upstreams)
        names = ["main", "second", "third", "fourth"]
        listed = [{"name": names[index], "url": one} if isinstance(one, str) else {"name": names[index], **one}
                  for index, one in enumerate(given)]
        about_names = {"inline": list(rules), **({"blockedAnswer": blocked} if blocked else {})}
        self.write_text(json.dumps({
            "dns": {"listen": ["127.0.0.1:53", "[::1]:53"], "upstreams": listed, **dns},
            **({"rules": about_names} if rules or blocked else {}),
            "log": {"level": level},
            "control": {"socket": self.socket},
        }, indent=1))

    def write_text(self, text: str) -> None:
        """Writes a configuration as it is, in place of the one before."""
        with open(self.path + ".new", "w") as file:
            file.write(text)
        os.rename(self.path + ".new", self.path)

    # Life

    def launch(self) -> None:
        """Starts the process and waits for nothing."""
        notify_path = self.testbed.file(f"{self.name}.notify")
        self.begin(
            lambda **options: self.testbed.start(
                self.testbed.network, *self.testbed.command, "run", "--config", self.path, **options,
                env={**os.environ, "NOTIFY_SOCKET": notify_path}), notify_path)

    def stop(self, seconds: float = 10.0) -> None:
        """Asks the daemon to end, which it must with status 0 and leaving nothing behind."""
        self.signal(signal.SIGTERM)
        wait_until(lambda: self.process.poll() is not None, "the daemon ending after SIGTERM", seconds,
                   detail=self.tail)
        expect_equal(self.process.returncode, 0, f"the status after SIGTERM ({self.tail()})")
        expect(not os.path.exists(self.socket), "the daemon left its control socket behind")
        wait_until(lambda: not commands.group_is_alive(self.process), "the daemon's other processes ending", 2)

    def status(self) -> dict:
        """What it answers to programs that ask how it is."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(10)
            connection.connect(self.socket)
            connection.sendall(b'{"status": {}}\n')
            return json.loads(connection.makefile().readline())

    def memory(self, field: str = "RssAnon") -> int:
        """One of the sizes in /proc/PID/status, in bytes."""
        with open(f"/proc/{self.pid}/status") as file:
            for line in file:
                if line.startswith(field + ":"):
                    return int(line.split()[1]) * 1024
        raise CheckFailure(f"the kernel says nothing of the daemon's {field}")
