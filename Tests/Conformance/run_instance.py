"""One `sluice run` on a machine: its files, its process, and what it says."""

import json
import os
import signal
import socket
import subprocess

from daemon_process import DaemonProcess
from machine import Machine
from waiting import expect_equal, wait_until


class Instance(DaemonProcess):
    """A daemon under a configuration of its own. `name` is its interface, its files' name and part of its socket's."""

    def __init__(self, machine: Machine, name: str = "tun0"):
        super().__init__(machine.testbed)
        self.machine = machine
        self.name = name
        self.socket = f"/run/sluice/{name}.sock"
        self.configuration = f"/etc/sluice/{name}.json5"
        self.tunnel_path = f"/etc/wireguard/{name}.conf"
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
        self._starts += 1
        self.log_path = f"{self.machine.folder}/{self.name}-{self._starts}.log"
        notify_path = f"{self.machine.folder}/{self.name}-{self._starts}.notify"
        self.begin(
            lambda **options: self.machine.start(
                *self.testbed.command, "run", "--config", self.configuration, **options,
                env=self.machine.environment(NOTIFY_SOCKET=notify_path, **environment)), notify_path)

    def wait_for_socket(self) -> None:
        """Waits until it listens to programs."""
        path = f"{self.machine.root}{self.socket}"
        wait_until(lambda: os.path.exists(path) or self.expect_running(), "the control socket", 20, detail=self.tail)

    def start(self, **environment: str) -> "Instance":
        """Starts the process and waits until everything is up."""
        self.launch(**environment)
        self.wait_until_ready()
        return self

    def stop(self, status: int = 0) -> None:
        """Asks the daemon to end, which it must with this status."""
        self.signal(signal.SIGTERM)
        self.wait_for_end(status)

    # What it says

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

    def expect_no_error(self) -> None:
        """The log must tell of no error."""
        errors = [line for line in self.log().splitlines() if line.startswith("ERROR")]
        expect_equal(errors, [], "the errors in the log")
