"""The command line of scripts/conformance-wireguard."""

import argparse
import os
import secrets
import sys

import commands
import wireguard_rows
from checks import Check
from runner import Run, Runner
from testbed import Testbed


def main() -> int:
    """Parses the arguments, runs the suite and returns the exit status."""
    arguments = _parse()
    checks = wireguard_rows.registry.checks
    if arguments.list:
        for check in checks:
            print(f"{check.number} {check.title}")
        return 0
    if arguments.only:
        unknown = arguments.only - {check.number for check in checks}
        if unknown:
            sys.exit(f"no such check: {', '.join(map(str, sorted(unknown)))}")
        checks = [check for check in checks if check.number in arguments.only]
    if os.geteuid() != 0:
        sys.exit("network namespaces and TUN devices need root")
    under_test, peer = commands.program(arguments.sut), commands.program(arguments.peer) if arguments.peer else None
    prefix = "cw" + secrets.token_hex(2)
    runs = _alone(checks, under_test, prefix, arguments.keep_logs)
    if peer is not None:
        runs = _mixed(checks, under_test, peer, prefix, arguments.keep_logs)
    return Runner(prefix, arguments.jobs, arguments.keep_logs).execute(runs)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="conformance-wireguard",
        description="Runs the scenarios of the Linux kernel's WireGuard self-test against a userspace daemon, in "
        "network namespaces. COMMAND IFNAME must start the daemon in the foreground.")
    parser.add_argument("--sut", metavar="COMMAND", help="the program under test, for example 'wireguard-go -f'")
    parser.add_argument("--peer", metavar="COMMAND", help="another daemon: each check with two ends runs as mixed "
                        "pairs, with the program under test at every end that the check judges")
    parser.add_argument("--only", metavar="N,N,...", help="only these checks",
                        type=lambda text: {int(word) for word in text.split(",")})
    parser.add_argument("--list", action="store_true", help="list the checks and run nothing")
    parser.add_argument("--jobs", type=int, default=3, metavar="N", help="quiet checks that run at a time (default 3)")
    parser.add_argument("--keep-logs", metavar="DIR", help="copy the daemons' logs there")
    arguments = parser.parse_args()
    if not arguments.list and not arguments.sut:
        parser.error("--sut is needed")
    return arguments


def _alone(checks: "list[Check]", under_test: "list[str]", prefix: str, logs: str) -> "list[Run]":
    """Each check once, with the program under test at both ends."""
    return [_run(check, prefix + "a", {1: under_test, 2: under_test}, {1, 2}, logs, "") for check in checks]


def _mixed(checks: "list[Check]", under_test: "list[str]", peer: "list[str]", prefix: str, logs: str) -> "list[Run]":
    """Each check of a pair with the program under test at each end that the check judges; the others once."""
    runs = []
    for check in checks:
        if not check.has_two_ends:
            runs.append(_run(check, prefix + "m", {1: under_test, 2: under_test}, {1, 2}, logs, ""))
        if 1 in check.judges:
            runs.append(_run(check, prefix + "m", {1: under_test, 2: peer}, {1}, logs, ", as end 1"))
        if 2 in check.judges:
            runs.append(_run(check, prefix + "n", {1: peer, 2: under_test}, {2}, logs, ", as end 2"))
    return runs


def _run(check: Check, prefix: str, command_of_end: dict, judged_ends: set, logs: str, suffix: str) -> Run:
    def body() -> None:
        with Testbed(f"{prefix}{check.number:02d}", command_of_end, judged_ends, logs) as testbed:
            check.body(testbed)

    return Run(f"{check.number} {check.title}{suffix}", body, check.exclusive)
