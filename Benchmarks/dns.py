#!/usr/bin/python3
"""Compares Sluice with other DNS proxies: the same queries and the same upstream, the programs in turn. See scripts/bench."""

import argparse
import json
import os
import secrets
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(ROOT, "Tests", "Conformance"))

import commands  # noqa: E402
from dns_benchmark import programs  # noqa: E402
from dns_benchmark.measurement import Plan, measure  # noqa: E402
from network_namespace import NetworkNamespace  # noqa: E402
from tunnel_benchmark.comparison import Comparison, Row  # noqa: E402
from waiting import CheckFailure, wait_until  # noqa: E402

#: Ratios are to dnsdist, which has no more than HTTPS to be compared by; latency is held against unbound's by TLS.
ROWS = [
    Row("hits_per_second", "cache hits", "1/s", 0, 1),
    Row("hit_user_microseconds", "    user CPU of one", "µs", 2, 0.5, True),
    Row("hit_system_microseconds", "    system CPU of one", "µs", 2),
    Row("hit_processor_microseconds", "    all CPU of one", "µs", 2, 0.85, True),
    Row("https_misses_per_second", "misses over HTTPS", "1/s", 0, 0.95),
    Row("https_miss_user_microseconds", "    user CPU of one", "µs", 2),
    Row("https_miss_system_microseconds", "    system CPU of one", "µs", 2),
    Row("https_miss_processor_microseconds", "    all CPU of one", "µs", 2, 0.55, True),
    Row("tls_light_p50_microseconds", "a miss over TLS at 500/s, p50", "µs", 0, 1, True, "unbound"),
    Row("https_light_p50_microseconds", "the same over HTTPS (unbound: TLS)", "µs", 0, 1.5, True, "unbound"),
    Row("resident_mebibytes", "VmRSS with a full cache of 2 MiB", "MiB", 1, 15, True, "value"),
    Row("anonymous_mebibytes", "RssAnon with a full cache of 2 MiB", "MiB", 1, 8, True, "value"),
]


def main() -> int:
    """Parses the arguments, measures, prints, and returns the exit status: 1 when a bar was missed and that was to be checked."""
    arguments = _parse()
    if os.geteuid() != 0:
        sys.exit("network namespaces need root")
    if (os.cpu_count() or 1) < 2:
        sys.exit("two processors are needed: one for the program, one for its load")
    folder = tempfile.mkdtemp(prefix="dns-bench-")
    try:
        with NetworkNamespace(f"bd{secrets.token_hex(3)}") as namespace:
            holds = _compare(arguments, namespace, folder)
        return 0 if holds or not arguments.check else 1
    except CheckFailure as failure:
        print(f"scripts/bench: {failure}", file=sys.stderr)
        return 1
    finally:
        commands.kill_all()
        shutil.rmtree(folder)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="scripts/bench dns", description="dnsperf, a DNS proxy on a processor of its own, and servers behind it.")
    parser.add_argument("--rounds", type=int, default=3, metavar="N",
                        help="how often each program is measured (default 3)")
    parser.add_argument("--seconds", type=float, default=5, metavar="N", help="length of each load (default 5)")
    parser.add_argument("--sut", metavar="PATH", help="the program to measure instead of Sluice, which is built first")
    parser.add_argument("--json", action="store_true", help="print JSON with every round's figures")
    parser.add_argument("--check", action="store_true", help="end with 1 when a bar is missed")
    arguments = parser.parse_args()
    if arguments.rounds < 1 or arguments.seconds < 1:
        parser.error("at least one round and one second are needed")
    return arguments


def _compare(arguments: argparse.Namespace, namespace: NetworkNamespace, folder: str) -> bool:
    """Measures and prints. Returns whether all bars hold."""
    subject = programs.Program("sluice", os.path.abspath(arguments.sut or _build()), programs.sluice)
    peers = [programs.Program("dnsdist", "/usr/bin/dnsdist", programs.dnsdist),
             programs.Program("unbound", "/usr/sbin/unbound", programs.unbound)]
    for program in [*peers, subject]:
        if not programs.exists(program.path):
            raise CheckFailure(commands.missing_tool_message(program.path))
    plan = Plan(namespace, folder, arguments.seconds)
    _make_certificates(folder)
    _acknowledge_at_once(namespace)
    upstreams = _start_upstreams(plan)
    comparison = Comparison(subject.name, [program.name for program in peers], ROWS, bases=())
    try:
        for number in range(1, arguments.rounds + 1):
            figures = {}
            comparison.rounds.append(figures)
            # Who comes first changes, so that a machine that gets slower or faster favours nobody.
            for program in [*peers, subject] if number % 2 else [subject, *reversed(peers)]:
                _say(f"round {number} of {arguments.rounds}: {program.name}")
                transports = {"dnsdist": ("https",), "unbound": ("tls",)}.get(program.name, ("tls", "https"))
                figures[program.name] = measure(program, plan, transports)
            # unbound forwards by no HTTPS: what it takes by TLS stands for it.
            figures["unbound"]["https_light_p50_microseconds"] = figures["unbound"]["tls_light_p50_microseconds"]
    finally:
        for upstream in upstreams:
            programs.stop(upstream)
    missed = sum(comparison.holds(row) is False for row in ROWS)
    if arguments.json:
        print(json.dumps({"seconds": arguments.seconds, **comparison.json()}, indent=2))
        return not missed
    print(f"loads of {arguments.seconds:g} s; medians of {arguments.rounds} "
          f"round{'s' if arguments.rounds > 1 else ''}, and of each round's ratio to dnsdist")
    print(comparison.table())
    print(f"{missed} of {sum(row.bar is not None for row in ROWS)} bars missed" if missed else "all bars hold")
    return not missed


def _acknowledge_at_once(namespace: NetworkNamespace) -> None:
    """Has every segment acknowledged when it comes. dnsdist 1.7 writes a query over HTTPS in two pieces, and the second one waits
    for the acknowledgement of the first, which takes 40 ms else: nothing more would be seen of it."""
    for network in ("127.0.0.0/8", "127.0.0.1", "127.0.0.2"):
        namespace.run("ip", "route", "replace", "local", network, "dev", "lo", "table", "local", "proto", "kernel",
                      "scope", "host", "src", "127.0.0.1", "quickack", "1")


def _start_upstreams(plan: Plan) -> "list[subprocess.Popen]":
    started = []
    for name, (words, text) in programs.upstreams().items():
        path = f"{plan.folder}/{name}.conf"
        with open(path, "w") as file:
            file.write(text.replace("FOLDER", plan.folder))
        with open(f"{plan.folder}/{name}.log", "wb") as log:
            started.append(plan.namespace.start(
                "taskset", "-c", str(plan.load_processor), *(path if word == "FILE" else word for word in words),
                stdin=subprocess.DEVNULL, stdout=log, stderr=log))
    wait_until(lambda: all(programs.listens(plan.namespace, port) for port in programs.PORTS.values()),
               "the upstreams listening", 20)
    return started


def _make_certificates(folder: str) -> None:
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    with open(f"{folder}/extensions", "w") as file:
        file.write(f"subjectAltName=DNS:{programs.UPSTREAM_NAME}\n")
    for words in (
            ["req", "-x509", *key, "-days", "2", "-subj", "/CN=authority", "-keyout", "ca.key", "-out", "ca.pem"],
            ["req", *key, "-subj", "/CN=server", "-keyout", "server.key", "-out", "request"],
            ["x509", "-req", "-in", "request", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2",
             "-extfile", "extensions", "-out", "server.pem"]):
        subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)


def _build() -> str:
    _say("building Sluice")
    outcome = commands.run(
        ["swift", "build", "--package-path", ROOT, "-c", "release", "--static-swift-stdlib", "--product", "sluice"],
        check=False, seconds=3600)
    if outcome.returncode != 0:
        raise CheckFailure(f"Sluice could not be built: {(outcome.stdout + outcome.stderr)[-800:]}")
    return os.path.join(ROOT, ".build", "release", "sluice")


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
