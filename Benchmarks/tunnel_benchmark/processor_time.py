"""How much processor time a transfer took, whoever spent it: daemons, iperf3, and the kernel on behalf of nobody."""

import os
from dataclasses import dataclass
from typing import Iterable

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class ProcessorTime:
    """Processor seconds at one moment, or between two."""

    # Of the whole machine but idle: also interrupts and kernel threads, and what a hypervisor took away.
    busy: float
    # Of processes that this one did not start, with their ended children.
    others: float
    # Of the watched processes.
    watched: float

    @property
    def counted(self) -> float:
        """What the machine spent, but for what other people's processes spent on their own."""
        return max(0.0, self.busy - self.others)

    def since(self, earlier: "ProcessorTime") -> "ProcessorTime":
        """What was spent between two readings."""
        return ProcessorTime(
            self.busy - earlier.busy, max(0.0, self.others - earlier.others), self.watched - earlier.watched)


def read(watched: Iterable[int] = ()) -> ProcessorTime:
    """The processor time spent so far. `watched` are process ids."""
    processes = _processes()
    own = _tree(os.getpid(), processes)
    kernel = _tree(2, processes)
    others = sum(process.seconds_with_children for number, process in processes.items() if number not in own | kernel)
    return ProcessorTime(_busy_seconds(), others, sum(processes[number].seconds for number in watched))


def _busy_seconds() -> float:
    with open("/proc/stat") as lines:
        # user nice system idle iowait irq softirq steal; guests are in user and nice already.
        user, nice, system, _, _, irq, softirq, steal = map(int, lines.readline().split()[1:9])
    return (user + nice + system + irq + softirq + steal) / _TICKS_PER_SECOND


@dataclass(frozen=True)
class _Process:
    parent: int
    seconds: float
    # With those children that ended and were waited for: their time does not get lost when they end.
    seconds_with_children: float


def _processes() -> "dict[int, _Process]":
    found = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat") as file:
                # The name in parentheses may hold anything.
                words = file.read().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        user, system, children_user, children_system = map(int, words[11:15])
        found[int(name)] = _Process(
            int(words[1]), (user + system) / _TICKS_PER_SECOND,
            (user + system + children_user + children_system) / _TICKS_PER_SECOND)
    return found


def _tree(root: int, processes: "dict[int, _Process]") -> "set[int]":
    """A process and all its descendants."""
    children: "dict[int, list[int]]" = {}
    for number, process in processes.items():
        children.setdefault(process.parent, []).append(number)
    tree, waiting = set(), [root]
    while waiting:
        number = waiting.pop()
        tree.add(number)
        waiting += children.get(number, [])
    return tree
