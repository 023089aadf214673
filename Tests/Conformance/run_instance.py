"""One `sluice run` on a machine: its files, its process, and what it says."""

import json
import os
import signal
import socket
import subprocess
from typing import Optional

from machine import Machine
from waiting import CheckFailure, expect, expect_equal, wait_until


class Instance:
    """A daemon under a configuration of its own. `name` is its interface, its files' name and part of its socket's."""

    def __init__(self, machine: Machine, name: str = "tun0"):
        self.machine = machine
        self.name = name
        self.socket = f"/run/sluice/{name}.sock"
        self.configuration = f"/etc/sluice/{name}.json5"
        self.tunnel_path = f"/etc/wireguard/{name}.conf"
        self.process: "Optional[subprocess.Popen]" = None
        self._starts = 0

    # Files

    def write_tunnel(self, text: str) -> None:
        """Writes the tunnel's file."""
        self.machine.write_etc(f"wireguard/{self.name}.conf", text, 0o600)

    def write(self, device: str = "", level: str = "debug", more: str = "") -> None:
        """Writes the configuration: members of `device`, and more members of the whole."""
        device = f"device: {{ {device} }}, " if device else ""
        self.machine.write_etc(
            f"sluice/{self.name}.json5",
            f'{{ {device}tunnel: {{ config: "{self.tunnel_path}" }}, log: {{ level: "{level}" }}, '
            f'control: {{ socket: "{self.socket}" }}, {more} }}\n')

    # Life

    def launch(self, **environment: str) -> None:
        """Starts the process and waits for nothing."""
        testbed = self.machine.testbed
        self._starts += 1
        self.log_path = f"{self.machine.folder}/{self.name}-{self._starts}.log"
        notify_path = f"{self.machine.folder}/{self.name}-{self._starts}.notify"
        self._notifications = testbed.enter(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
        self._notifications.bind(notify_path)
        self._notifications.setblocking(False)
        self._heard: "list[str]" = []
        testbed.keep_log(self.log_path)
        with open(self.log_path, "wb") as log:
            self.process = self.machine.start(
                *testbed.command, "run", "--config", self.configuration, stdin=subprocess.DEVNULL, stdout=log,
                stderr=log, env=self.machine.environment(NOTIFY_SOCKET=notify_path, **environment))

    def wait_for_socket(self) -> None:
        """Waits until it listens to programs."""
        path = f"{self.machine.root}{self.socket}"
        wait_until(lambda: os.path.exists(path) or self.expect_running(), "the control socket", 20, detail=self.tail)

    def notifications(self) -> "list[str]":
        """What the service manager was told until now."""
        while True:
            try:
                self._heard += self._notifications.recv(4096).decode().splitlines()
            except BlockingIOError:
                return self._heard

    def wait_until_ready(self, seconds: float = 30.0) -> None:
        """Waits until the daemon has said that everything is up."""
        def ready() -> bool:
            self.expect_running()
            return "READY=1" in self.notifications()

        wait_until(ready, "the daemon saying READY=1", seconds, detail=self.tail)

    def start(self, **environment: str) -> "Instance":
        """Starts the process and waits until everything is up."""
        self.launch(**environment)
        self.wait_until_ready()
        return self

    @property
    def pid(self) -> int:
        """The daemon's process."""
        return self.process.pid

    def expect_running(self) -> None:
        """Fails the check when the daemon has ended."""
        if self.process.poll() is not None:
            raise CheckFailure(f"the daemon ended by itself with status {self.process.returncode}: {self.tail()}")

    def signal(self, number: int) -> None:
        """Sends a signal to the daemon."""
        self.expect_running()
        os.kill(self.pid, number)

    def wait_for_end(self, status: int = 0, seconds: float = 15.0) -> None:
        """The daemon must end by itself, with this status."""
        wait_until(lambda: self.process.poll() is not None, "the daemon ending", seconds, detail=self.tail)
        expect(self.process.returncode == status,
               f"the daemon ended with {self.process.returncode}, not {status}: {self.tail()}")

    def stop(self, status: int = 0) -> None:
        """Asks the daemon to end, which it must with this status."""
        self.signal(signal.SIGTERM)
        self.wait_for_end(status)

    # What it says

    def log(self) -> str:
        """All that it wrote."""
        with open(self.log_path, errors="replace") as log:
            return log.read()

    def tail(self) -> str:
        """The end of what it wrote, on one line."""
        return " / ".join(self.log().splitlines()[-6:]) or "(nothing printed)"

    def wait_for_line(self, part: str, seconds: float = 10.0, count: int = 1) -> None:
        """Waits until it has written something so often."""
        wait_until(lambda: self.log().count(part) >= count, f"the log saying {part!r}", seconds, detail=self.tail)

    def ask(self, request: str = '{"status": {}}') -> dict:
        """What it answers to a message."""
        with self.connect() as connection:
            connection.sendall(request.encode() + b"\n")
            return json.loads(connection.makefile().readline())

    def connect(self) -> socket.socket:
        """A connection to its control socket."""
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.settimeout(30)
        # From outside of the machine's mounts.
        connection.connect(f"{self.machine.root}{self.socket}")
        return connection

    def expect_status(self, expected: str, seconds: float = 10.0) -> dict:
        """Waits until the status is a certain one and returns all of it."""
        return wait_until(
            lambda: (status := self.ask())["status"] == expected and status, f"the status being {expected}", seconds,
            0.05, lambda: (self.ask()["status"], self.tail()))

    def sluice(self, *words: str, check: bool = True) -> subprocess.CompletedProcess:
        """Runs another command of the program on the machine."""
        return self.machine.run(*self.machine.testbed.command, *words, check=check)

    def wg(self, field: str) -> str:
        """`wg show IF FIELD`."""
        return self.machine.run("wg", "show", self.name, field).stdout.strip()

    def reload(self, expected: str = "the configuration was read again") -> None:
        """Has the files read again and waits until the daemon says that."""
        before = self.log().count(expected)
        self.signal(signal.SIGHUP)
        self.wait_for_line(expected, 20, before + 1)

    def expect_no_error(self) -> None:
        """The log must tell of no error."""
        errors = [line for line in self.log().splitlines() if line.startswith("ERROR")]
        expect_equal(errors, [], "the errors in the log")
