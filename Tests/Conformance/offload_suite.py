"""The command line of scripts/conformance-wireguard-offloads."""

import argparse
import os
import secrets
import sys

import commands
import offload_checks
from checks import Check
from runner import Run, Runner
from testbed import Testbed

MEGABYTE = 1 << 20


def main() -> int:
    """Parses the arguments, runs the suite and returns the exit status."""
    arguments = _parse()
    checks = offload_checks.planned(arguments.megabytes * MEGABYTE // 2, arguments.full)
    if arguments.only:
        unknown = [word for word in arguments.only
                   if not any(offload_checks.selected_by(one, {word}) for one in checks)]
        if unknown:
            sys.exit(f"no such check: {', '.join(sorted(unknown))}")
        checks = [check for check in checks if offload_checks.selected_by(check, arguments.only)]
    if arguments.list:
        for check in checks:
            print(f"{check.number} {check.title}")
        return 0
    if os.geteuid() != 0:
        sys.exit("network namespaces and TUN devices need root")
    command, prefix = commands.program(arguments.sut), "oc" + secrets.token_hex(2)
    runs = [_run(check, f"{prefix}{index:03x}", command, arguments.keep_logs)
            for index, check in enumerate(checks)]
    return Runner(prefix, arguments.jobs, arguments.keep_logs).execute(runs)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="conformance-wireguard-offloads",
        description="Judges that a userspace WireGuard daemon keeps every byte, whatever it and the kernel cut and "
        "join: with each combination of the switches in SLUICE_OFFLOADS (tun, udpSegment, udpGRO). Never judges speed. "
        "COMMAND IFNAME must start the daemon in the foreground.")
    parser.add_argument("--sut", metavar="COMMAND", help="the program under test, for example 'sluice -f'")
    parser.add_argument("--megabytes", type=int, metavar="N", help="what each transfer moves, both ways together "
                        "(default 64, with --full 2,048)")
    parser.add_argument("--full", action="store_true", help="the whole product of all values, not a set that covers "
                        "every pair")
    parser.add_argument("--only", metavar="ID,ID,...", help="only these checks or groups (segments.tun, transfer.none)",
                        type=lambda text: set(text.split(",")))
    parser.add_argument("--list", action="store_true", help="list the checks and run nothing")
    parser.add_argument("--jobs", type=int, default=3, metavar="N", help="checks that run at a time (default 3)")
    parser.add_argument("--keep-logs", metavar="DIR", help="copy the daemons' logs there")
    arguments = parser.parse_args()
    if not arguments.list and not arguments.sut:
        parser.error("--sut is needed")
    if arguments.megabytes is None:
        arguments.megabytes = 2048 if arguments.full else 64
    if arguments.megabytes < 1:
        parser.error("--megabytes must be at least 1")
    return arguments


def _run(check: Check, prefix: str, command: "list[str]", logs: str) -> Run:
    def body() -> None:
        with Testbed(prefix, {1: command, 2: command}, log_directory=logs) as testbed:
            check.body(testbed)

    return Run(f"{check.number} {check.title}", body, check.exclusive)
