"""One round of one program: started with each transport to its upstream, loaded, and ended."""

import os
import re
import secrets
import socket
import struct
import subprocess
import time
from dataclasses import dataclass

from network_namespace import NetworkNamespace
from tunnel_benchmark.latency import percentile
from waiting import CheckFailure

from .programs import ADDRESS, PORT, USUAL_CACHE_BYTES, ZONE, Program, stop

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
_NAMES_OF_HITS = 1_000
#: More names than a usual cache has room for.
_NAMES_TO_FILL = 30_000
#: Names that nobody has asked for before, so many that no run gets to the end of them.
_NAMES_OF_MISSES = 400_000
_LIGHT_RATE = 500

Figures = "dict[str, float]"


@dataclass(frozen=True)
class Plan:
    """How long, where, and on which processors."""

    namespace: NetworkNamespace
    folder: str
    seconds: float
    program_processor: int = 0
    load_processor: int = 1


def measure(program: Program, plan: Plan, transports: "tuple[str, ...]") -> Figures:
    """All figures of one program, of one round."""
    figures: Figures = {}
    process = program.start(plan.namespace, plan.folder, "udp", plan.program_processor)
    try:
        names = [f"n{number}.{ZONE}" for number in range(_NAMES_OF_HITS)]
        _load(plan, names, 1, clients=1, warm=True)
        figures.update(_loaded(plan, process, names, "hit"))
    finally:
        stop(process)
    process = program.start(plan.namespace, plan.folder, "udp", plan.program_processor, USUAL_CACHE_BYTES)
    try:
        _load(plan, [f"f{number}.{ZONE}" for number in range(_NAMES_TO_FILL)], 1, warm=True)
        figures["resident_mebibytes"] = _memory(process, "VmRSS")
        figures["anonymous_mebibytes"] = _memory(process, "RssAnon")
    finally:
        stop(process)
    for transport in transports:
        process = program.start(plan.namespace, plan.folder, transport, plan.program_processor)
        try:
            # The first query pays for the handshake.
            _ask(plan, [f"warm{secrets.token_hex(4)}.{ZONE}"])
            mark = secrets.token_hex(4)
            count = int(_LIGHT_RATE * plan.seconds / 2)
            light = _ask(plan, [f"l{number}.{mark}.{ZONE}" for number in range(count)])
            figures[f"{transport}_light_p50_microseconds"] = percentile(light, 50)
            if transport == "https":
                names = [f"m{number}.{mark}.{ZONE}" for number in range(_NAMES_OF_MISSES)]
                figures.update(_loaded(plan, process, names, "https_miss"))
        finally:
            stop(process)
    return figures


def _loaded(plan: Plan, process: subprocess.Popen, names: "list[str]", what: str) -> Figures:
    before = _processor_time(process.pid)
    count, seconds = _load(plan, names, plan.seconds)
    user, system = (end - start for start, end in zip(before, _processor_time(process.pid)))
    return {
        f"{what}{'es' if what.endswith('s') else 's'}_per_second": count / seconds,
        f"{what}_user_microseconds": user / count * 1e6, f"{what}_system_microseconds": system / count * 1e6,
        f"{what}_processor_microseconds": (user + system) / count * 1e6}


def _load(plan: Plan, names: "list[str]", seconds: float, clients: int = 4, warm: bool = False) -> "tuple[int, float]":
    """Asks as fast as answers come. Returns how many came, and in how many seconds."""
    path = f"{plan.folder}/names"
    with open(path, "w") as file:
        file.writelines(f"{name} A\n" for name in names)
    limit = ["-n", "1"] if warm else ["-l", f"{seconds:g}"]
    output = plan.namespace.run(
        "taskset", "-c", str(plan.load_processor), "dnsperf", "-s", ADDRESS, "-p", str(PORT), "-d", path, *limit,
        "-c", str(clients), "-q", "100", "-t", "5", seconds=seconds + 60).stdout
    completed = re.search(r"completed:\s+(\d+)", output)
    time_taken = re.search(r"Run time \(s\):\s+([\d.]+)", output)
    codes = re.search(r"Response codes:\s+(.*)", output)
    if not completed or not time_taken or not codes or not re.fullmatch(r"NOERROR \d+ \(100.00%\)", codes[1].strip()):
        raise CheckFailure(f"not all answers are good: {output[-400:]}")
    return int(completed[1]), float(time_taken[1])


def _ask(plan: Plan, names: "list[str]") -> "list[float]":
    """Asks at a low rate, one query at a time. Returns how many microseconds each answer took."""
    taken = []
    with plan.namespace.udp_socket("127.0.0.1", 0, seconds=5) as client:
        client.connect((ADDRESS, PORT))
        previous = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {plan.load_processor})
        try:
            due = time.perf_counter()
            for number, name in enumerate(names):
                due += 1 / _LIGHT_RATE
                query = struct.pack(">HHHHHH", number & 0xFFFF, 0x0100, 1, 0, 0, 0) + b"".join(
                    bytes([len(label)]) + label.encode() for label in name.split(".")) + b"\0\0\1\0\1"
                # The pace is what is asked for; each answer is waited for.
                while (rest := due - time.perf_counter()) > 0:
                    time.sleep(rest)
                start = time.perf_counter()
                client.send(query)
                answer = client.recv(2048)
                taken.append((time.perf_counter() - start) * 1e6)
                if answer[:2] != query[:2] or answer[3] & 15:
                    raise CheckFailure(f"a bad answer about {name}")
        except socket.timeout:
            raise CheckFailure("no answer in five seconds")
        finally:
            os.sched_setaffinity(0, previous)
    return taken


def _processor_time(process_id: int) -> "tuple[float, float]":
    with open(f"/proc/{process_id}/stat") as file:
        words = file.read().rpartition(")")[2].split()
    return int(words[11]) / _TICKS_PER_SECOND, int(words[12]) / _TICKS_PER_SECOND


def _memory(process: subprocess.Popen, field: str) -> float:
    with open(f"/proc/{process.pid}/status") as lines:
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(f"{field}:"))
