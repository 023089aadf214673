"""The life of one `sluice run`: its process, what it tells the service manager, and its log."""

import os
import signal
import socket
import subprocess
from typing import Callable, Optional

from daemon_testbed import DaemonTestbed
from waiting import CheckFailure, expect, wait_until


class DaemonProcess:
    """A daemon that is started and ended, once or several times."""

    log_path: str

    def __init__(self, testbed: DaemonTestbed):
        self.testbed = testbed
        self.process: "Optional[subprocess.Popen]" = None

    def begin(self, start: "Callable[..., subprocess.Popen]", notify_path: str) -> None:
        """Starts the process by `start`, which gets the options and the path that the service manager hears at.

        What it prints is added to the log."""
        self._notifications = self.testbed.enter(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
        self._notifications.bind(notify_path)
        self._notifications.setblocking(False)
        self._heard: "list[str]" = []
        self.testbed.keep_log(self.log_path)
        with open(self.log_path, "ab") as log:
            self.process = start(stdin=subprocess.DEVNULL, stdout=log, stderr=log)

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

    def reload(self, expected: str = "the configuration was read again") -> None:
        """Has the files read again and waits until the daemon says that, or something else."""
        before = self.log().count(expected)
        self.signal(signal.SIGHUP)
        self.wait_for_line(expected, 20, before + 1)

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
