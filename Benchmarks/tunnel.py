#!/usr/bin/env python3
"""Compares Sluice with other WireGuard daemons: the same program on both ends, the programs in turn. See scripts/bench."""

import argparse
import json
import os
import secrets
import shlex
import shutil
import signal
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(ROOT, "Tests", "Conformance"))

import commands  # noqa: E402
import network_namespace  # noqa: E402
from tunnel_benchmark.comparison import BARE_LINK, Comparison  # noqa: E402
from tunnel_benchmark.measurement import Plan, Program, measure, measure_bare_link  # noqa: E402
from waiting import CheckFailure, Interrupted, stop_requested  # noqa: E402


def main() -> int:
    """Parses the arguments, measures, prints, and returns the exit status: how fast anything was does not matter to it."""
    arguments = _parse()
    if os.geteuid() != 0:
        sys.exit("network namespaces and TUN devices need root")
    prefix = "bn" + secrets.token_hex(2)
    caught: "list[int]" = []

    def interrupt(number: int, frame) -> None:
        caught.append(number)
        stop_requested.set()
        commands.kill_all()

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, interrupt)
    try:
        _compare(arguments, prefix)
        return 0
    except Interrupted:
        return 128 + caught[0]
    except CheckFailure as failure:
        if caught:
            return 128 + caught[0]
        print(f"scripts/bench: {failure}", file=sys.stderr)
        return 1
    finally:
        commands.kill_all()
        network_namespace.delete_all_with_prefix(prefix)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="scripts/bench tunnel", description="Two network namespaces, a veth pair, a tunnel, iperf3 and ping.")
    parser.add_argument("--rounds", type=int, metavar="N", help="how often each program is measured (default 3)")
    parser.add_argument("--seconds", type=float, metavar="N", help="length of each TCP transfer (default 4)")
    parser.add_argument("--quick", action="store_true", help="one round with transfers of two seconds")
    parser.add_argument("--mtu", type=int, default=1420, metavar="BYTES", help="the tunnel's MTU (default 1420)")
    parser.add_argument("--sut", metavar="PATH", help="the program to measure instead of Sluice, which is built first")
    parser.add_argument("--peers", default="wireguard-go", metavar="PATH,…", help="what to compare it with, the first "
                        "being what ratios are to (default wireguard-go); empty for nothing")
    parser.add_argument("--json", action="store_true", help="print JSON with every round's figures")
    arguments = parser.parse_args()
    arguments.rounds = arguments.rounds or (1 if arguments.quick else 3)
    arguments.seconds = arguments.seconds or (2 if arguments.quick else 4)
    if arguments.rounds < 1 or arguments.seconds < 1 or not 1280 <= arguments.mtu <= 65_440:
        parser.error("at least one round, one second, and an MTU of 1280 to 65440 bytes are needed")
    return arguments


def _compare(arguments: argparse.Namespace, prefix: str) -> None:
    peers = [_program(text) for text in arguments.peers.split(",") if text]
    subject = _program(arguments.sut or _build())
    programs = _with_distinct_names([*peers, subject])
    plan = Plan(arguments.seconds, arguments.mtu, prefix)
    comparison = Comparison(programs[-1].name, [program.name for program in programs[:-1]])
    for number in range(1, arguments.rounds + 1):
        figures = {}
        comparison.rounds.append(figures)
        _say(f"round {number} of {arguments.rounds}: {BARE_LINK}")
        figures[BARE_LINK] = measure_bare_link(plan)
        # Who comes first changes, so that a machine that gets slower or faster favours nobody.
        for program in programs if number % 2 else reversed(programs):
            _say(f"round {number} of {arguments.rounds}: {program.name}")
            figures[program.name] = measure(program, plan)
    if arguments.json:
        settings = {"seconds": arguments.seconds, "mtu": arguments.mtu}
        print(json.dumps({**settings, **comparison.json()}, indent=2))
        return
    print(f"tunnel MTU {arguments.mtu}, transfers of {arguments.seconds:g} s; medians of {arguments.rounds} "
          f"round{'s' if arguments.rounds > 1 else ''}, "
          "and of each round's ratio to the first peer")
    print(comparison.table())
    transferred = arguments.rounds * len(programs) * 4 * arguments.seconds
    share = comparison.time_of_others() / (transferred * (os.cpu_count() or 1))
    if share > 0.05:
        print(f"Other processes took {share:.0%} of the processors during the transfers: trust ratios, not figures.")


def _program(text: str) -> Program:
    words = shlex.split(text)
    path = shutil.which(words[0]) if words else None
    if path is None:
        raise CheckFailure(commands.missing_tool_message(words[0] if words else "a program"))
    return Program(os.path.basename(path), (os.path.abspath(path), *(words[1:] or ["-f"])))


def _with_distinct_names(programs: "list[Program]") -> "list[Program]":
    names = [program.name for program in programs]
    return [
        program if names.count(program.name) == 1 else Program(f"{program.name} #{number}", program.command)
        for number, program in enumerate(programs, 1)]


def _build() -> str:
    _say("building Sluice")
    outcome = commands.run(
        ["swift", "build", "--package-path", ROOT, "-c", "release", "--static-swift-stdlib", "--product", "sluice"],
        check=False, seconds=3600)
    if outcome.returncode != 0:
        print(outcome.stdout + outcome.stderr, file=sys.stderr)
        raise CheckFailure("Sluice could not be built")
    return os.path.join(ROOT, ".build", "release", "sluice")


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
