"""What one run of one check works with: namespaces, daemons, key files, all gone when it ends."""

import contextlib
import os
import shutil
import tempfile
from typing import Callable, Iterable, Optional, Sequence

import commands
from daemon import Daemon
from network_namespace import NetworkNamespace
from waiting import CheckFailure
from wireguard_tool import SecretFiles, WireGuardInterface


class Testbed:
    """Owns everything a check makes. As a context manager it removes all of it, also after a failure.

    When the check itself passed, leaving the block also judges each daemon under test that still should run: it must
    be running, end with status 0 on SIGTERM, and leave no socket and no process behind.
    """

    def __init__(
        self,
        prefix: str,
        command_of_end: "dict[int, Sequence[str]]",
        judged_ends: Iterable[int] = (1, 2),
        log_directory: Optional[str] = None,
    ):
        """`prefix` starts the name of everything made and is unique on the machine; at most 11 characters.

        `command_of_end` is the daemon's command (without the interface name) for end 1 and end 2, `judged_ends` those
        that are the program under test. Logs are kept in `log_directory` if given.
        """
        self.prefix = prefix
        self.judged_ends = frozenset(judged_ends)
        self._command_of_end = command_of_end
        self._log_directory = log_directory
        self._stack = contextlib.ExitStack()
        self._daemons: "list[tuple[Daemon, bool]]" = []
        self._resigned: "set[Daemon]" = set()

    def __enter__(self) -> "Testbed":
        self._directory = tempfile.mkdtemp(prefix=f"{self.prefix}-")
        self._stack.callback(shutil.rmtree, self._directory, ignore_errors=True)
        self.secrets = SecretFiles(self._directory)
        return self

    def __exit__(self, kind, *exception) -> None:
        try:
            if kind is None:
                self._judge_daemons()
        finally:
            for daemon, _ in reversed(self._daemons):
                daemon.discard()
            if self._log_directory:
                self._keep_logs(self._log_directory)
            self._stack.close()

    def judges(self, end: int) -> bool:
        """Whether the daemon at that end is the program under test: only then may the check hold it to anything."""
        return end in self.judged_ends

    def on_exit(self, function: Callable, *arguments) -> None:
        """Calls `function` when the check ends, however it ends; last come, first served."""
        self._stack.callback(function, *arguments)

    def enter(self, manager):
        """Enters a context manager until the check ends (a socket, a capture) and returns what it gives."""
        return self._stack.enter_context(manager)

    def keep_log(self, path: str) -> None:
        """When the check ends, copies a log of a program other than its daemons to where logs are kept, if they are."""
        if self._log_directory:
            os.makedirs(self._log_directory, exist_ok=True)
            copy = os.path.join(self._log_directory, f"{self.prefix}-{os.path.basename(path)}")
            self.on_exit(shutil.copy, path, copy)

    def namespace(self, label: str) -> NetworkNamespace:
        """A new network namespace named by the prefix and `label`."""
        return self.enter(NetworkNamespace(f"{self.prefix}-{label}"))

    def interface(
        self,
        end: int,
        birth: NetworkNamespace,
        move_to: Optional[NetworkNamespace] = None,
        label: str = "",
        environment: Optional[dict] = None,
    ) -> WireGuardInterface:
        """Starts the daemon of an end in `birth`, waits until it is ready, and moves its TUN to `move_to` if given.

        The interface's name is the prefix, the end and `label`: at most 15 characters.
        """
        daemon = self.daemon(end, birth, label, environment)
        daemon.wait_until_ready()
        interface = WireGuardInterface(daemon, birth, self.secrets)
        if move_to is not None:
            interface.move(move_to)
        return interface

    def daemon(
        self, end: int, birth: NetworkNamespace, label: str = "", environment: Optional[dict] = None
    ) -> Daemon:
        """Starts the daemon of an end without waiting for it."""
        name = f"{self.prefix}{end}{label}"
        if len(name) > 15:
            raise ValueError(f"interface name too long: {name}")
        log_path = os.path.join(self._directory, f"{name}.log")
        daemon = Daemon(self._command_of_end[end], name, birth, log_path, environment)
        self._daemons.append((daemon, self.judges(end)))
        return daemon

    def resign(self, daemon: Daemon) -> None:
        """The check has itself ended this daemon, or does not care: leaving the testbed no longer judges it."""
        self._resigned.add(daemon)

    def start(self, namespace: NetworkNamespace, *argv: str, **options):
        """Starts a process in a namespace that ends with the check at the latest."""
        process = namespace.start(*argv, **options)
        self.on_exit(commands.end, process)
        return process

    def _judge_daemons(self) -> None:
        judged = [daemon for daemon, is_judged in self._daemons if is_judged and daemon not in self._resigned]
        for daemon in judged:
            daemon.expect_running()
            daemon.signal()
        for daemon in judged:
            try:
                daemon.expect_clean_exit(10)
            except CheckFailure as failure:
                raise CheckFailure(f"after SIGTERM: {failure}") from None

    def _keep_logs(self, directory: str) -> None:
        os.makedirs(directory, exist_ok=True)
        for daemon, _ in self._daemons:
            shutil.copy(daemon.log_path, os.path.join(directory, os.path.basename(daemon.log_path)))
