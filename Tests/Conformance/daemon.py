"""One WireGuard daemon process in the foreground: started, watched, ended."""

import os
import signal
import socket
import subprocess
from typing import Optional, Sequence

import commands
import uapi
from network_namespace import NetworkNamespace
from waiting import CheckFailure, wait_until

SOCKET_DIRECTORY = "/var/run/wireguard"


class Daemon:
    """A userspace WireGuard daemon for one interface, run as `COMMAND... IFNAME` inside its birth namespace."""

    def __init__(
        self,
        command: Sequence[str],
        interface: str,
        namespace: NetworkNamespace,
        log_path: str,
        environment: Optional[dict] = None,
    ):
        """Starts the process; `wait_until_ready` tells when it can be used. Its output goes to `log_path`."""
        self.command = list(command)
        self.interface = interface
        self.birth_namespace = namespace
        self.log_path = log_path
        self.socket_path = f"{SOCKET_DIRECTORY}/{interface}.sock"
        variables = dict(os.environ)
        variables.update(environment or {})
        with open(log_path, "ab") as log:
            # `ip netns exec` (not only setns) so that /sys shows the namespace's interfaces too; it execs: same pid.
            self.process = commands.start(
                ["ip", "netns", "exec", namespace.name, *self.command, interface],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=variables,
            )

    @property
    def pid(self) -> int:
        """The process id of the daemon."""
        return self.process.pid

    @property
    def is_running(self) -> bool:
        """Whether the process has not ended."""
        return self.process.poll() is None

    @property
    def has_socket(self) -> bool:
        """Whether the UAPI socket's file exists."""
        return os.path.exists(self.socket_path)

    def wait_until_ready(self, seconds: float = 20.0) -> None:
        """Waits until the TUN exists in the birth namespace and the UAPI socket answers a get."""

        def ready() -> bool:
            self.expect_running()
            return self.has_socket and self.birth_namespace.has_interface(self.interface) and self.answers_get()

        wait_until(ready, f"{self.title} becoming ready", seconds)

    def answers_get(self) -> bool:
        """Whether a get operation on the UAPI socket ends with errno=0."""
        try:
            return uapi.get(self.socket_path).errno == 0
        except (OSError, uapi.MalformedReply):
            return False

    def expect_running(self) -> None:
        """Fails the check, with the end of the log, when the process has ended."""
        if not self.is_running:
            raise CheckFailure(f"{self.title} ended by itself with {self.describe_status()}: {self.log_tail()}")

    def expect_alive(self) -> None:
        """Fails the check unless the process runs and its UAPI socket answers."""
        self.expect_running()
        wait_until(self.answers_get, f"{self.title} answering on its UAPI socket", 5)

    def wait_for_exit(self, seconds: float = 5.0) -> int:
        """Waits until the process has ended by itself and returns its status (negative: the signal's number)."""
        wait_until(lambda: not self.is_running, f"{self.title} exiting", seconds)
        return self.process.returncode

    def expect_clean_exit(self, seconds: float = 5.0) -> None:
        """Fails the check unless the process ends by itself with status 0, leaving no socket and no child behind."""
        if self.wait_for_exit(seconds) != 0:
            raise CheckFailure(f"{self.title} ended with {self.describe_status()}: {self.log_tail()}")
        if self.has_socket:
            raise CheckFailure(f"{self.title} left its socket {self.socket_path} behind")
        wait_until(lambda: not commands.group_is_alive(self.process), f"{self.title}'s other processes ending", 2)

    def signal(self, number: int = signal.SIGTERM) -> None:
        """Sends a signal to the daemon's own process."""
        if self.is_running:
            os.kill(self.process.pid, number)

    def discard(self) -> None:
        """Ends the process whatever its state and removes the socket it may have left; judges nothing."""
        commands.end(self.process)
        try:
            os.unlink(self.socket_path)
        except FileNotFoundError:
            pass

    def connect(self) -> socket.socket:
        """A connection to the UAPI socket."""
        return uapi.connect(self.socket_path)

    @property
    def title(self) -> str:
        """How messages name this daemon."""
        return f"{os.path.basename(self.command[0])} ({self.interface})"

    def describe_status(self) -> str:
        """The exit status in words."""
        status = self.process.poll()
        if status is None:
            return "no exit status yet"
        return f"status {status}" if status >= 0 else f"signal {signal.Signals(-status).name}"

    def log_tail(self, lines: int = 3) -> str:
        """The last lines the daemon printed, on one line."""
        with open(self.log_path, errors="replace") as log:
            return " / ".join(log.read().splitlines()[-lines:]) or "(nothing printed)"
