"""The command line of scripts/conformance-wireguard-daemon."""

import argparse
import os
import secrets
import sys

import commands
import daemon_checks
from checks import Check
from daemon_testbed import DaemonTestbed, adopt_orphans
from runner import Run, Runner


def main() -> int:
    """Parses the arguments, runs the suite and returns the exit status."""
    arguments = _parse()
    checks = daemon_checks.in_order()
    if arguments.list:
        for check in checks:
            print(f"{check.number} {check.title}")
        return 0
    if arguments.only:
        unknown = [word for word in arguments.only if not any(daemon_checks.selected_by(one, {word}) for one in checks)]
        if unknown:
            sys.exit(f"no such check: {', '.join(sorted(unknown))}")
        checks = [check for check in checks if daemon_checks.selected_by(check, arguments.only)]
    if os.geteuid() != 0:
        sys.exit("network namespaces and TUN devices need root")
    adopt_orphans()
    command, prefix = commands.program(arguments.sut), "dc" + secrets.token_hex(2)
    # The longest first: they wait for protocol time while all others run.
    numbered = sorted(enumerate(checks), key=lambda pair: -daemon_checks.lasting(pair[1]))
    runs = [_run(check, f"{prefix}{index:02x}", command, arguments.keep_logs) for index, check in numbered]
    return Runner(prefix, arguments.jobs, arguments.keep_logs).execute(runs)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="conformance-wireguard-daemon",
        description="Judges a userspace WireGuard daemon as a program: its configuration socket, wg and wg-quick, "
        "its start and end, and bugs that were reported of others. COMMAND IFNAME must start the daemon in the "
        "background, COMMAND -f IFNAME in the foreground.")
    parser.add_argument("--sut", metavar="COMMAND", help="the program under test, for example 'wireguard-go'")
    parser.add_argument("--only", metavar="ID,ID,...", help="only these checks or groups of checks (U4.values, D2)",
                        type=lambda text: set(text.split(",")))
    parser.add_argument("--list", action="store_true", help="list the checks and run nothing")
    parser.add_argument("--jobs", type=int, default=10, metavar="N", help="checks that run at a time (default 10)")
    parser.add_argument("--keep-logs", metavar="DIR", help="copy the daemons' logs there")
    arguments = parser.parse_args()
    if not arguments.list and not arguments.sut:
        parser.error("--sut is needed")
    return arguments


def _run(check: Check, prefix: str, command: "list[str]", logs: str) -> Run:
    def body() -> None:
        with DaemonTestbed(prefix, command, logs) as testbed:
            check.body(testbed)

    return Run(f"{check.number} {check.title}", body, check.exclusive)
