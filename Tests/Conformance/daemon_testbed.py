"""The testbed of a check that judges a daemon as a program: it also starts it in the background, or oddly."""

import contextlib
import os
import subprocess
import time
from typing import Iterator, Optional, Sequence

from daemon import SOCKET_DIRECTORY
from network_namespace import NetworkNamespace
from testbed import Testbed
from waiting import CheckFailure, expect, wait_until


class DaemonTestbed(Testbed):
    """A testbed whose both ends run one program. `command` is the program without `-f`."""

    def __init__(self, prefix: str, command: Sequence[str], log_directory: Optional[str] = None):
        self.command = list(command)
        self.foreground_command = [*self.command, "-f"]
        super().__init__(
            prefix, {1: self.foreground_command, 2: self.foreground_command}, log_directory=log_directory)

    def name(self, label: str = "1") -> str:
        """An interface name of this check's own."""
        return self.prefix + label

    def socket_path(self, interface: str) -> str:
        """Where the configuration socket of an interface of that name belongs; removed when the check ends."""
        path = f"{SOCKET_DIRECTORY}/{interface}.sock"
        self.on_exit(_unlink, path)
        return path

    @contextlib.contextmanager
    def prefixed(self, *words: str) -> Iterator[None]:
        """Inside the block, daemons start by way of these words: `WORDS... COMMAND -f IFNAME`."""
        plain = dict(self._command_of_end)
        self._command_of_end = {end: [*words, *command] for end, command in plain.items()}
        try:
            yield
        finally:
            self._command_of_end = plain

    def file(self, name: str) -> str:
        """A path in this check's own temporary folder."""
        return os.path.join(self._directory, name)

    def launch(
        self,
        namespace: NetworkNamespace,
        *argv: str,
        seconds: float = 20.0,
        environment: Optional[dict] = None,
        **options,
    ) -> subprocess.CompletedProcess:
        """Runs a command that may leave processes behind, to its end; they end with the check at the latest.

        What it prints comes back as text. The time limit includes that everything it left has let go of stdout.
        """
        variables = dict(os.environ)
        variables.pop("LOG_LEVEL", None)
        variables.update(environment or {})
        self.on_exit(end_all, namespace)
        options.setdefault("stdin", subprocess.DEVNULL)
        with namespace.entered():
            process = subprocess.Popen(
                argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace",
                start_new_session=True, env=variables, **options)
        try:
            output, errors = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            ended = process.poll() is not None
            process.kill()
            end_all(namespace)
            process.communicate()
            raise CheckFailure(
                f"`{' '.join(argv)[:120]}` " + ("left a process that holds on to its stdout or stderr" if ended
                                                else f"did not end within {seconds:g} s")) from None
        return subprocess.CompletedProcess(argv, process.returncode, output, errors)


def _unlink(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass


def process_ids(namespace: NetworkNamespace) -> "list[int]":
    """The processes that live in the namespace, without asking a command that would be one of them."""
    wanted = os.stat(namespace.path).st_ino
    found = []
    for word in os.listdir("/proc"):
        if word.isdigit():
            try:
                if os.stat(f"/proc/{word}/ns/net").st_ino == wanted:
                    found.append(int(word))
            except OSError:
                pass  # It ended meanwhile, or is a zombie.
    return [pid for pid in found if pid != os.getpid()]


def end_all(namespace: NetworkNamespace) -> None:
    """Kills every process that lives in one of our own namespaces, and reaps those that became our children."""
    try:
        pids = process_ids(namespace)
    except FileNotFoundError:
        return
    for pid in pids:
        try:
            os.kill(pid, 9)
        except ProcessLookupError:
            pass
    deadline = time.monotonic() + 5
    for pid in pids:
        while time.monotonic() < deadline and exit_status(pid) is None and os.path.exists(f"/proc/{pid}"):
            time.sleep(0.01)


def exit_status(pid: int) -> Optional[int]:
    """The exit status of an orphan that this process has adopted; None while it runs or when it is nobody's to ask."""
    try:
        reaped, status = os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return None
    return os.waitstatus_to_exitcode(status) if reaped == pid else None


def parent_and_state(pid: int) -> "tuple[int, str]":
    """The parent's process id and the one-letter state of a process; (0, "") when it is gone."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            words = file.read().rpartition(")")[2].split()
        return int(words[1]), words[0]
    except (FileNotFoundError, ProcessLookupError):
        return 0, ""


class BackgroundDaemon:
    """A daemon that detached itself: found by the namespace it lives in, judged by the status it ends with."""

    def __init__(self, testbed: DaemonTestbed, namespace: NetworkNamespace, label: str = "1", **options):
        """Runs `COMMAND IFNAME`, whose end with status 0 says that the daemon is ready."""
        self.interface = testbed.name(label)
        self.namespace = namespace
        self.socket_path = testbed.socket_path(self.interface)
        self.outcome = testbed.launch(namespace, *testbed.command, self.interface, **options)
        expect(self.outcome.returncode == 0,
               f"starting in the background ended with {self.outcome.returncode}: {self.outcome.stderr.strip()[-200:]}")

    @property
    def pid(self) -> int:
        """The process that the detached start left to us. (Further processes may be its children.)"""
        orphans = [pid for pid in process_ids(self.namespace) if parent_and_state(pid)[0] == os.getpid()]
        expect(len(orphans) == 1, f"{len(orphans)} detached processes run, expected one")
        return orphans[0]

    def expect_clean_exit(self, pid: int, seconds: float = 5.0) -> None:
        """The detached process must end with status 0, and leave no socket and no other process."""
        status = wait_until(
            lambda: (found := exit_status(pid)) is not None and (found,), "the detached daemon ending", seconds)[0]
        expect(status == 0, f"the detached daemon ended with status {status}")
        expect(not os.path.exists(self.socket_path), "the detached daemon left its socket behind")
        wait_until(lambda: not process_ids(self.namespace), "the detached daemon's other processes ending", 2)


def adopt_orphans() -> None:
    """Makes this process the parent of whatever its descendants leave behind (PR_SET_CHILD_SUBREAPER)."""
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(36, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "PR_SET_CHILD_SUBREAPER")


