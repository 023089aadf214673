"""The command line of the suites whose checks have names: what they have in common."""

import argparse
import os
import secrets
import sys
from dataclasses import dataclass
from typing import Callable, Sequence

import commands
from checks import Check
from daemon_testbed import DaemonTestbed, adopt_orphans
from named_checks import NamedChecks
from runner import Run, Runner


@dataclass(frozen=True)
class NamedSuite:
    """A suite, as its command shows itself."""

    program: str  # the name of the command
    description: str
    registry: NamedChecks
    example: str  # what `--only` could be given
    prefix: str  # what the names of its namespaces begin with: two letters
    #: What a check gets: of a prefix, the words of the program under test, and a directory for logs or None.
    testbed: "Callable[[str, Sequence[str], str | None], DaemonTestbed]" = DaemonTestbed
    subject: str = "PATH"  # how the help calls the program under test
    subject_help: str = "the program under test"
    measures_time: bool = False  # see `Runner`

    def main(self) -> int:
        """Parses the arguments, runs the suite and returns the exit status."""
        arguments = self._parse()
        checks = self.registry.in_order()
        if arguments.list:
            for check in checks:
                print(f"{check.number} {check.title}")
            return 0
        if arguments.only:
            selected = self.registry.selected_by
            unknown = [word for word in arguments.only if not any(selected(one, {word}) for one in checks)]
            if unknown:
                sys.exit(f"no such check: {', '.join(sorted(unknown))}")
            checks = [check for check in checks if selected(check, arguments.only)]
        if os.geteuid() != 0:
            sys.exit("network namespaces and TUN devices need root")
        adopt_orphans()
        command, prefix = commands.program(arguments.sut), self.prefix + secrets.token_hex(2)
        # The longest first: they wait for protocol time while all others run.
        numbered = sorted(enumerate(checks), key=lambda pair: -self.registry.lasting(pair[1]))
        runs = [self._run(check, f"{prefix}{index:02x}", command, arguments.keep_logs) for index, check in numbered]
        runner = Runner(prefix, arguments.jobs, arguments.keep_logs, measures_time=self.measures_time)
        return runner.execute(runs)

    def _parse(self) -> argparse.Namespace:
        parser = argparse.ArgumentParser(prog=self.program, description=self.description)
        parser.add_argument("--sut", metavar=self.subject, help=self.subject_help)
        parser.add_argument(
            "--only", metavar="ID,ID,...", help=f"only these checks or groups of checks ({self.example})",
            type=lambda text: set(text.split(",")))
        parser.add_argument("--list", action="store_true", help="list the checks and run nothing")
        parser.add_argument("--jobs", type=int, default=10, metavar="N", help="checks that run at a time (default 10)")
        parser.add_argument("--keep-logs", metavar="DIR", help="copy the logs of the daemons there")
        arguments = parser.parse_args()
        if not arguments.list and not arguments.sut:
            parser.error("--sut is needed")
        return arguments

    def _run(self, check: Check, prefix: str, command: "list[str]", logs: "str | None") -> Run:
        def body() -> None:
            with self.testbed(prefix, command, logs) as testbed:
                check.body(testbed)

        return Run(f"{check.number} {check.title}", body, check.exclusive)
