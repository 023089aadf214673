"""Runs external commands with a time limit, and knows every child so that none outlives the run."""

import os
import shlex
import shutil
import signal
import subprocess
import sys
import threading
from typing import Optional, Sequence

from waiting import CheckFailure, Interrupted, stop_requested

# The Debian package of each tool that a suite calls: a missing one is a failure that says what to install.
PACKAGE_OF_TOOL = {
    "conntrack": "conntrack",
    "dig": "bind9-dnsutils",
    "dnsperf": "dnsperf",
    "ethtool": "ethtool",
    "ip": "iproute2",
    "iperf3": "iperf3",
    "iptables": "iptables",
    "kdig": "knot-dnsutils",
    "nft": "nftables",
    "ping": "iputils-ping",
    "ss": "iproute2",
    "wg": "wireguard-tools",
    "wg-quick": "wireguard-tools",
    "wireguard-go": "wireguard-go",
}

_children: "set[subprocess.Popen]" = set()
_children_lock = threading.Lock()


def start(argv: Sequence[str], **options) -> subprocess.Popen:
    """Starts a child in a session of its own. Options are those of `subprocess.Popen`."""
    if stop_requested.is_set():
        raise Interrupted()
    try:
        child = subprocess.Popen(list(argv), start_new_session=True, **options)
    except FileNotFoundError as error:
        raise CheckFailure(missing_tool_message(argv[0])) from error
    except PermissionError as error:
        raise CheckFailure(f"{argv[0]} cannot be executed") from error
    with _children_lock:
        _children.add(child)
    return child


def missing_tool_message(tool: str) -> str:
    """The sentence that says which Debian package brings a tool."""
    package = PACKAGE_OF_TOOL.get(os.path.basename(tool))
    return f"{tool} is missing" + (f": install the Debian package {package}" if package else "")


def program(text: str) -> "list[str]":
    """The words of a command that the user named, the program by its absolute path; ends the run if there is none."""
    words = shlex.split(text)
    path = shutil.which(words[0]) if words else None
    if path is None:
        sys.exit(missing_tool_message(words[0] if words else "the daemon's command"))
    return [os.path.abspath(path), *words[1:]]


def end(child: subprocess.Popen, seconds: float = 2.0) -> int:
    """Ends a child and its session: SIGTERM, then SIGKILL after `seconds`. Returns its exit status."""
    if child.poll() is None:
        _signal_group(child, signal.SIGTERM)
        try:
            child.wait(seconds)
        except subprocess.TimeoutExpired:
            pass
    _signal_group(child, signal.SIGKILL)
    status = child.wait()
    with _children_lock:
        _children.discard(child)
    return status


def group_is_alive(child: subprocess.Popen) -> bool:
    """Whether any process of the child's session group still exists (only meaningful once the child was reaped)."""
    try:
        os.killpg(child.pid, 0)
        return True
    except ProcessLookupError:
        return False


def kill_all() -> None:
    """Kills every child still known; for the end of an interrupted run."""
    with _children_lock:
        children = list(_children)
    for child in children:
        _signal_group(child, signal.SIGKILL)


def run(
    argv: Sequence[str],
    *,
    check: bool = True,
    seconds: float = 20.0,
    input: Optional[str] = None,
    environment: Optional[dict] = None,
) -> subprocess.CompletedProcess:
    """Runs a command to its end and returns its status, stdout and stderr as text.

    Fails the check when the command needs more than `seconds`, and when it ends with a non-zero status unless
    `check` is false.
    """
    child = start(
        argv,
        stdin=subprocess.PIPE if input is not None else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )
    command = " ".join(argv)
    if len(command) > 200:
        command = command[:200] + "…"
    try:
        output, errors = child.communicate(input, timeout=seconds)
    except subprocess.TimeoutExpired:
        raise CheckFailure(f"`{command}` did not end within {seconds:g} s") from None
    finally:
        end(child)
    if stop_requested.is_set():
        raise Interrupted()
    if check and child.returncode != 0:
        detail = (errors.strip() or output.strip()).splitlines()
        raise CheckFailure(f"`{command}` ended with {child.returncode}: {' / '.join(detail[:3])}")
    return subprocess.CompletedProcess(list(argv), child.returncode, output, errors)


def _signal_group(child: subprocess.Popen, number: int) -> None:
    # The group id is the pid of the child we started, which stays reserved while any member of its group lives.
    try:
        os.killpg(child.pid, number)
    except (ProcessLookupError, PermissionError):
        pass
