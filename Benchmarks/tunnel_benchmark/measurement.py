"""One round of one program: a tunnel is made, loaded in every way that counts, and taken down again."""

import secrets
from dataclasses import dataclass
from typing import Sequence

import tunnel_pair
from network_namespace import NetworkNamespace
from testbed import Testbed
from traffic import report
from tunnel_pair import ADDRESS_1, ADDRESS_2, OUTER_2
from waiting import pause

from . import processor_time
from .latency import Pings, percentile

# The payload of the small packets, in bytes.
SMALL_PACKET_LENGTH = 64
# How much longer than the packet inside a message's packet may be: IPv6, UDP, header, tag.
_OUTER_OVERHEAD = 80


@dataclass(frozen=True)
class Program:
    """A WireGuard daemon to measure."""

    name: str
    command: "tuple[str, ...]"  # without the interface name


@dataclass(frozen=True)
class Plan:
    """How long and how large."""

    seconds: float = 4
    mtu: int = 1420
    prefix: str = ""

    def testbed(self, command: Sequence[str] = ()) -> Testbed:
        """A testbed whose names no other one has."""
        return Testbed(self.prefix + secrets.token_hex(2), {1: command, 2: command}, judged_ends=())


# Figures by name; lists are flat so that they make JSON as they are.
Figures = "dict[str, float]"


def measure(program: Program, plan: Plan) -> Figures:
    """All figures of one program, of one round."""
    with plan.testbed(program.command) as testbed:
        pair = tunnel_pair.tunnel_pair(testbed, underlay_mtu=max(1500, plan.mtu + _OUTER_OVERHEAD))
        for end in (pair.first, pair.second):
            end.set_mtu(plan.mtu)
        pair.establish()
        daemons = [pair.first.daemon, pair.second.daemon]
        measurement = _Measurement(
            plan, pair.first.namespace, pair.second.namespace, [daemon.pid for daemon in daemons])
        figures = measurement.run()
        for daemon in daemons:
            daemon.expect_running()
        return figures


def measure_bare_link(plan: Plan) -> Figures:
    """The small packets that a veth pair of the tunnel's MTU carries without any tunnel."""
    with plan.testbed() as testbed:
        first, second = testbed.namespace("a"), testbed.namespace("b")
        tunnel_pair.join(first, second, plan.mtu)
        return {"small_packets_per_second": small_packets_per_second(first, second, OUTER_2, plan)}


class _Measurement:
    def __init__(self, plan: Plan, first: NetworkNamespace, second: NetworkNamespace, daemons: "list[int]"):
        self._plan, self._first, self._second, self._daemons = plan, first, second, daemons
        self.figures: Figures = {}

    def run(self) -> Figures:
        with Pings(self._first, ADDRESS_2) as idle:
            pause(1)
        self._note_latency("idle", idle.milliseconds)
        self._transfer("one_stream", 1)
        with Pings(self._first, ADDRESS_2) as loaded:
            self._transfer("four_streams", 4)
        self._note_latency("four_streams", loaded.milliseconds)
        self.figures["small_packets_per_second"] = small_packets_per_second(
            self._first, self._second, ADDRESS_2, self._plan)
        self.figures["resident_mebibytes"] = max(map(_resident_mebibytes, self._daemons))
        return self.figures

    def _note_latency(self, load: str, milliseconds: "list[float]") -> None:
        for percent in (50, 99):
            self.figures[f"ping_p{percent}_milliseconds_{load}"] = percentile(milliseconds, percent)

    def _transfer(self, name: str, streams: int) -> None:
        """TCP in both directions, one after the other; the processor time is that of both."""
        gigabytes, counted, watched, others = 0.0, 0.0, 0.0, 0.0
        for direction, options in (("forward", []), ("reverse", ["-R"])):
            before = processor_time.read(self._daemons)
            end = report(
                self._first, self._second, ADDRESS_2, "-P", str(streams), *options, seconds=self._plan.seconds)["end"]
            spent = processor_time.read(self._daemons).since(before)
            received = end["sum_received"]
            self.figures[f"{name}_{direction}_gigabits_per_second"] = received["bits_per_second"] / 1e9
            gigabytes += received["bytes"] / 1e9
            counted, watched, others = counted + spent.counted, watched + spent.watched, others + spent.others
        self.figures[f"{name}_processor_seconds_per_gigabyte"] = counted / gigabytes
        self.figures[f"{name}_daemon_seconds_per_gigabyte"] = watched / gigabytes
        self.figures[f"{name}_processor_seconds_of_others"] = others


def small_packets_per_second(first: NetworkNamespace, second: NetworkNamespace, address: str, plan: Plan) -> float:
    """Small UDP packets that one sender, as fast as it can, gets across."""
    seconds = max(1.0, plan.seconds / 2)
    total = report(
        first, second, address, "-u", "-b", "0", "-l", str(SMALL_PACKET_LENGTH), seconds=seconds)["end"]["sum"]
    return (total["packets"] - total["lost_packets"]) / total["seconds"]


def _resident_mebibytes(process_id: int) -> float:
    with open(f"/proc/{process_id}/status") as lines:
        for line in lines:
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1024
    return 0.0
