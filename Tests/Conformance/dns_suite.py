"""The command line of scripts/conformance-dns."""

import argparse
import os
import secrets
import sys

import commands
from checks import Check
from daemon_testbed import adopt_orphans
from dns_testbed import DNSTestbed
from dns_checks import registry
from runner import Run, Runner


def main() -> int:
    """Parses the arguments, runs the suite and returns the exit status."""
    arguments = _parse()
    checks = registry.in_order()
    if arguments.list:
        for check in checks:
            print(f"{check.number} {check.title}")
        return 0
    if arguments.only:
        unknown = [word for word in arguments.only if not any(registry.selected_by(one, {word}) for one in checks)]
        if unknown:
            sys.exit(f"no such check: {', '.join(sorted(unknown))}")
        checks = [check for check in checks if registry.selected_by(check, arguments.only)]
    if os.geteuid() != 0:
        sys.exit("network namespaces need root")
    adopt_orphans()
    command, prefix = commands.program(arguments.sut), "dn" + secrets.token_hex(2)
    # The longest first: they wait for protocol time while all others run.
    numbered = sorted(enumerate(checks), key=lambda pair: -registry.lasting(pair[1]))
    runs = [_run(check, f"{prefix}{index:02x}", command, arguments.keep_logs) for index, check in numbered]
    return Runner(prefix, arguments.jobs, arguments.keep_logs, measures_time=True).execute(runs)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="conformance-dns",
        description="Judges the DNS proxy of `sluice run`: what it answers to clients, and what it asks of servers.")
    parser.add_argument("--sut", metavar="PATH", help="the program under test")
    parser.add_argument("--only", metavar="ID,ID,...", help="only these checks or groups of checks (A1.udp, B2)",
                        type=lambda text: set(text.split(",")))
    parser.add_argument("--list", action="store_true", help="list the checks and run nothing")
    parser.add_argument("--jobs", type=int, default=10, metavar="N", help="checks that run at a time (default 10)")
    parser.add_argument("--keep-logs", metavar="DIR", help="copy the logs of the daemons there")
    arguments = parser.parse_args()
    if not arguments.list and not arguments.sut:
        parser.error("--sut is needed")
    return arguments


def _run(check: Check, prefix: str, command: "list[str]", logs: str) -> Run:
    def body() -> None:
        with DNSTestbed(prefix, command, logs) as testbed:
            check.body(testbed)

    return Run(f"{check.number} {check.title}", body, check.exclusive)
