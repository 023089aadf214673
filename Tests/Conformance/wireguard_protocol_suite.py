"""The command line of scripts/conformance-wireguard-protocol."""

import argparse
import os
import secrets
import sys

import commands
from runner import Run, Runner
from wireguard_protocol.registry import Check, checks
from wireguard_protocol.rig import Rig

# Importing a module enters its checks.
from wireguard_protocol import (  # noqa: F401
    allowed_ips_checks,
    cookie_checks,
    endpoint_checks,
    handshake_checks,
    message_checks,
    outer_header_checks,
    receive_checks,
    refinement_checks,
    secret_checks,
    session_checks,
    timer_checks,
    transmit_checks,
)


def main() -> int:
    """Parses the arguments, runs the suite and returns the exit status."""
    arguments = _parse()
    selected = [check for check in checks if not arguments.only or check.identifier in arguments.only]
    if arguments.list:
        for check in selected:
            print(check.identifier, check.title)
        return 0
    unknown = arguments.only - {check.identifier for check in checks}
    if unknown:
        sys.exit(f"no such check: {', '.join(sorted(unknown))}")
    if os.geteuid() != 0:
        sys.exit("network namespaces and TUN devices need root")
    command = commands.program(arguments.sut)
    prefix = "sp" + secrets.token_hex(2)
    # The long ones wait for protocol timers: all of them start at once, the longest first, beside `jobs` short ones.
    long = sorted((check for check in selected if check.is_long), key=lambda check: -check.seconds)
    short = [check for check in selected if not check.is_long]
    runs = [_run(check, f"{prefix}{number:03d}", command, arguments.keep_logs)
            for number, check in enumerate(long + short)]
    return Runner(prefix, len(long) + arguments.jobs, arguments.keep_logs, measures_time=True).execute(runs)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="conformance-wireguard-protocol",
        description="Holds a userspace WireGuard daemon to the protocol's rules, with a scripted peer in network "
        "namespaces. COMMAND IFNAME must start the daemon in the foreground.")
    parser.add_argument("--sut", metavar="COMMAND", help="the program under test, for example 'wireguard-go -f'")
    parser.add_argument("--only", metavar="ID,ID,...", help="only the checks with these identifiers", default=set(),
                        type=lambda text: set(text.split(",")))
    parser.add_argument("--list", action="store_true", help="list the checks and run nothing")
    parser.add_argument("--jobs", type=int, default=3, metavar="N", help="short checks that run at a time (default 3)")
    parser.add_argument("--keep-logs", metavar="DIR", help="copy the daemons' logs there")
    arguments = parser.parse_args()
    if not arguments.list and not arguments.sut:
        parser.error("--sut is needed")
    return arguments


def _run(check: Check, prefix: str, command: "list[str]", logs: str) -> Run:
    def body() -> None:
        with Rig(prefix, command, logs, **check.options) as rig:
            check.body(rig)

    return Run(f"{check.identifier} {check.title}", body, check.loud, check.is_long)
