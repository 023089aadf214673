"""Runs a suite: quiet checks side by side, loud ones alone; one line each, then the sum."""

import concurrent.futures
import signal
import sys
import threading
import time
import traceback
from dataclasses import dataclass
from typing import Callable, Iterable, Optional

import commands
import network_namespace
from waiting import CheckFailure, Interrupted, stop_requested


@dataclass(frozen=True)
class Run:
    """One run of one check."""

    label: str  # "7 roaming over IPv4"
    body: Callable[[], None]  # raises CheckFailure when the check fails
    exclusive: bool = False  # never beside another one
    waits: bool = False  # spends its time waiting, so that any number of its kind can run side by side


class Runner:
    """Executes runs and prints their outcome."""

    def __init__(self, prefix: str, jobs: int, log_directory: Optional[str] = None, measures_time: bool = False):
        """`prefix` starts the names of all namespaces that the runs make: what is left of them is removed at the end.
        `jobs` quiet runs go on at a time. Of a suite that measures time, what fails beside others is run once more
        alone, or with others that wait, and that counts: on a machine that is busy the clock that measures may be the
        one that is late."""
        self._prefix = prefix
        self._jobs = max(1, jobs)
        self._log_directory = log_directory
        self._measures_time = measures_time
        self._again: "list[Run]" = []
        self._lock = threading.Lock()
        self.passed = 0
        self.failed = 0
        self.skipped = 0

    def execute(self, runs: Iterable[Run]) -> int:
        """Runs everything, prints the sum as the last line and returns the exit status: 0 only if all passed."""
        runs = list(runs)
        previous = {number: signal.signal(number, self._interrupt) for number in (signal.SIGTERM, signal.SIGINT)}
        started = time.monotonic()
        try:
            quiet = [run for run in runs if not run.exclusive]
            with concurrent.futures.ThreadPoolExecutor(self._jobs) as pool:
                list(pool.map(lambda run: self._execute_one(run, self._measures_time), quiet))
            waiting = [run for run in self._again if run.waits]
            if waiting:
                with concurrent.futures.ThreadPoolExecutor(len(waiting)) as pool:
                    list(pool.map(self._execute_one, waiting))
            for run in self._again:
                if not run.waits:
                    self._execute_one(run)
            for run in runs:
                if run.exclusive:
                    self._execute_one(run)
        finally:
            network_namespace.delete_all_with_prefix(self._prefix)
            for number, handler in previous.items():
                signal.signal(number, handler)
        print(f"# {time.monotonic() - started:.0f} s")
        print(f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped", flush=True)
        return 0 if runs and self.passed == len(runs) else 1

    def _execute_one(self, run: Run, may_fail_once: bool = False) -> None:
        started = time.monotonic()
        outcome, reason = "ok", ""
        try:
            if stop_requested.is_set():
                raise Interrupted()
            run.body()
        except Interrupted:
            outcome, reason = "SKIP", "the run was interrupted"
        except CheckFailure as failure:
            outcome, reason = "FAIL", str(failure)
        except Exception as error:  # a defect of the check itself must not pass for anything else than a failure
            place = traceback.extract_tb(error.__traceback__)[-1]
            outcome, reason = "FAIL", f"{type(error).__name__}: {error} ({place.filename}:{place.lineno})"
        if outcome == "FAIL" and stop_requested.is_set():
            outcome, reason = "SKIP", "the run was interrupted"
        if outcome == "FAIL" and may_fail_once:
            outcome = "AGAIN"
        seconds = f"{time.monotonic() - started:.1f} s"
        with self._lock:
            if outcome == "AGAIN":
                self._again.append(run)
            self.passed += outcome == "ok"
            self.failed += outcome == "FAIL"
            self.skipped += outcome == "SKIP"
            print(f"{outcome} {run.label} ... {reason + ' ' if reason else ''}{seconds}", flush=True)

    def _interrupt(self, number: int, frame) -> None:
        if not stop_requested.is_set():
            print(f"# {signal.Signals(number).name}: ending", file=sys.stderr, flush=True)
        stop_requested.set()
        commands.kill_all()
