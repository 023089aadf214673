"""Round-trip times, while nothing else happens or while something does."""

import math
import re
import signal
import subprocess
import tempfile

import commands
from network_namespace import NetworkNamespace
from waiting import CheckFailure

_ROUND_TRIP = re.compile(rb"\btime=([0-9.]+) ms")


class Pings:
    """Pings at a steady pace for as long as the `with` block lasts."""

    def __init__(self, namespace: NetworkNamespace, destination: str, interval: float = 0.02):
        self._namespace, self._destination, self._interval = namespace, destination, interval
        # Milliseconds, in the order of the answers; filled when the block ends.
        self.milliseconds: "list[float]" = []

    def __enter__(self) -> "Pings":
        self._output = tempfile.TemporaryFile()
        self._process = self._namespace.start(
            "ping", "-n", "-i", str(self._interval), self._destination,
            stdin=subprocess.DEVNULL, stdout=self._output, stderr=subprocess.DEVNULL)
        return self

    def __exit__(self, kind, *exception) -> None:
        # It writes what it still holds when it is interrupted.
        self._process.send_signal(signal.SIGINT)
        try:
            self._process.wait(2)
        except subprocess.TimeoutExpired:
            pass
        commands.end(self._process)
        with self._output:
            self._output.seek(0)
            self.milliseconds = [float(value) for value in _ROUND_TRIP.findall(self._output.read())]
        if kind is None and not self.milliseconds:
            raise CheckFailure(f"no ping to {self._destination} was answered")


def percentile(values: "list[float]", percent: int) -> float:
    """The smallest of the values that `percent` of them do not exceed."""
    ordered = sorted(values)
    return ordered[max(1, math.ceil(len(ordered) * percent / 100)) - 1]
