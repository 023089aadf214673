"""D1 and interface names: how the program starts, detaches, and refuses to."""

import os
import socket
import subprocess

import commands
import uapi
from daemon import SOCKET_DIRECTORY
from daemon_checks.registry import check
from daemon_testbed import BackgroundDaemon, DaemonTestbed, end_all, parent_and_state, process_ids
from network_namespace import NetworkNamespace
from waiting import expect, expect_equal, pause, wait_until

IMPOSSIBLE_NAMES = [
    "", ".", "..", "a/b", "/", "a b", " ", "a\tb", "a\nb", "a:b", "x" * 16, "x" * 300, "-x", "-", "--", "--foo",
    "--foo=bar", "../../tmp/x", "é" * 8,
]


@check("D1.ready", "the detached start ends with 0 when TUN and socket are there, and not before")
def ready(testbed: DaemonTestbed) -> None:
    namespace = testbed.namespace("a")
    for attempt in range(5):
        daemon = BackgroundDaemon(testbed, namespace)
        # Nothing may be waited for: wg-quick calls wg at once.
        expect(namespace.has_interface(daemon.interface), f"no TUN after start {attempt + 1}")
        try:
            expect_equal(uapi.get(daemon.socket_path).errno, 0, "errno of get")
        except OSError as error:
            expect(False, f"the socket is not usable after start {attempt + 1}: {error}")
        commands.run(["wg", "show", daemon.interface])
        expect_equal(daemon.outcome.stdout, "", "what the start printed on stdout")
        pid = daemon.pid
        os.kill(pid, 15)
        daemon.expect_clean_exit(pid)


@check("D1.detached", "the detached daemon holds no terminal, no pipe, no zombie, and survives its terminal")
def detached(testbed: DaemonTestbed) -> None:
    namespace = testbed.namespace("a")
    # `launch` itself fails when the daemon keeps the pipes that were stdout and stderr.
    daemon = BackgroundDaemon(testbed, namespace)
    pid = daemon.pid
    for descriptor in (0, 1, 2):
        target = os.readlink(f"/proc/{pid}/fd/{descriptor}")
        expect(not target.startswith(("pipe:", "/dev/pts", "/dev/tty")), f"descriptor {descriptor} is {target}")
    for other in os.listdir("/proc"):
        if other.isdigit():
            parent, letter = parent_and_state(int(other))
            expect(not (parent == pid and letter == "Z"), "the detached daemon has a zombie as a child")
    os.kill(pid, 15)
    daemon.expect_clean_exit(pid)

    master, slave = os.openpty()
    terminal_end = testbed.enter(os.fdopen(master, "rb", buffering=0))
    name = testbed.name("2")
    path = testbed.socket_path(name)
    testbed.on_exit(end_all, namespace)
    with namespace.entered():
        starter = subprocess.Popen(
            ["setsid", "--ctty", "--wait", "sh", "-c", '"$@"; exit $?', "sh", *testbed.command, name], stdin=slave,
            stdout=slave, stderr=slave)
    os.close(slave)
    expect_equal(_end(starter), 0, "the status of a start from a terminal")
    orphans = [one for one in process_ids(namespace) if parent_and_state(one)[0] == os.getpid()]
    expect(orphans, "the detached daemon ended with the session that it was started in")
    pid = orphans[0]
    with open(f"/proc/{pid}/stat") as file:
        terminal = int(file.read().rpartition(")")[2].split()[4])
    # The terminal goes away, as when an SSH session ends.
    terminal_end.close()
    pause(1)
    expect(os.path.exists(f"/proc/{pid}") and parent_and_state(pid)[1] != "Z",
           "the detached daemon ended when the terminal it was started from was closed")
    expect_equal(uapi.get(path).errno, 0, "errno of get after the terminal was closed")
    expect(terminal == 0, "the detached daemon keeps a controlling terminal")


def _end(process: subprocess.Popen, seconds: float = 20) -> int:
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        expect(False, f"the start did not end within {seconds:g} s")


@check("D1.closed", "starting with stdin, stdout and stderr closed works, in the background and in the foreground")
def closed_descriptors(testbed: DaemonTestbed) -> None:
    namespace = testbed.namespace("a")
    closing = ["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh"]
    name = testbed.name("1")
    path = testbed.socket_path(name)
    expect_equal(testbed.launch(namespace, *closing, *testbed.command, name).returncode, 0, "the status of the start")
    expect_equal(uapi.get(path).errno, 0, "errno of get")
    namespace.ip("link", "set", name, "up")
    name = testbed.name("2")
    path = testbed.socket_path(name)
    testbed.start(namespace, *closing, *testbed.foreground_command, name)
    wait_until(lambda: os.path.exists(path) and _answers(path), "an answer to get of the one in the foreground", 20)
    namespace.ip("link", "set", name, "up")


def _answers(path: str) -> bool:
    try:
        return uapi.get(path).errno == 0
    except (OSError, uapi.MalformedReply):
        return False


@check("D1.stdin", "a foreground daemon neither reads stdin nor ends with it")
def stdin(testbed: DaemonTestbed) -> None:
    namespace = testbed.namespace("a")
    name = testbed.name("1")
    path = testbed.socket_path(name)
    process = testbed.start(namespace, *testbed.foreground_command, name, stdin=subprocess.PIPE)
    wait_until(lambda: os.path.exists(path) and _answers(path), "an answer to get", 20)
    process.stdin.write(b"set=1\nfwmark=7\n\nquit\n\x03\x04")
    process.stdin.close()
    pause(1)
    expect(process.poll() is None, "the daemon ended when its stdin was closed")
    expect("fwmark" not in uapi.get(path).device, "the daemon took commands from stdin")


def _isolated(testbed: DaemonTestbed, namespace: NetworkNamespace, *argv: str) -> "list[str]":
    """The command, but with an empty /run of its own, so that whatever it leaves there is found and forgotten."""
    folder = os.path.realpath(os.path.dirname(SOCKET_DIRECTORY))
    report = testbed.file("sockets")
    script = ('mount -t tmpfs none "$1" && out=$2 && shift 2 && "$@"; status=$?; '
              'find /run/ -name "*.sock" >"$out"; exit $status')
    return ["unshare", "--mount", "timeout", "-k", "1", "4", "sh", "-c", script, "sh", folder, report, *argv]


def _expect_started_nothing(testbed: DaemonTestbed, namespace: NetworkNamespace, what: str) -> None:
    with open(testbed.file("sockets")) as file:
        expect(not file.read().strip(), f"{what} left a socket")
    links = [line.split(":")[1].strip() for line in namespace.ip("-o", "link").splitlines()]
    expect(links == ["lo"], f"{what} made the interface {links[-1]!r}")
    wait_until(lambda: not process_ids(namespace), f"{what}: every process ending", 2)


@check("D1.help", "--help prints help, ends with 0 and starts nothing")
def help_text(testbed: DaemonTestbed) -> None:
    namespace = testbed.namespace("a")
    for words in (["--help"], ["-h"]):
        outcome = testbed.launch(namespace, *_isolated(testbed, namespace, *testbed.command, *words))
        what = " ".join(words)
        expect_equal(outcome.returncode, 0, f"the status of {what}")
        expect("usage" in outcome.stdout.lower(), f"{what} prints no usage on stdout: {outcome.stdout[:80]!r}")
        _expect_started_nothing(testbed, namespace, what)


@check("D1.names", f"{len(IMPOSSIBLE_NAMES)} impossible interface names are refused, with and without -f")
def impossible_names(testbed: DaemonTestbed) -> None:
    wrong = []
    for number, name in enumerate(IMPOSSIBLE_NAMES):
        for command in (testbed.command, testbed.foreground_command):
            if command is testbed.command and name in ("-", "--"):
                continue  # Without -f a lone dash may stand for no argument at all.
            namespace = testbed.namespace(f"{number:x}{'f' if command is testbed.foreground_command else 'b'}")
            what = f"{' '.join(command[1:])} {name[:20]!r}".strip()
            outcome = testbed.launch(namespace, *_isolated(testbed, namespace, *command, name))
            try:
                expect(outcome.returncode not in (124, 137), f"{what} started something")
                expect(0 < outcome.returncode < 124, f"{what} ended with {outcome.returncode}")
                expect(outcome.stderr.strip(), f"{what} prints no message on stderr")
                _expect_started_nothing(testbed, namespace, what)
            except Exception as error:
                wrong.append(str(error))
            end_all(namespace)
            namespace.delete()
    expect(not wrong, f"{len(wrong)} wrong: {'; '.join(wrong[:10])}")


@check("D1.taken", "a second daemon for a name is refused and leaves the first alone")
def taken_name(testbed: DaemonTestbed) -> None:
    here, elsewhere = testbed.namespace("a"), testbed.namespace("b")
    first = testbed.interface(1, here)
    first.set(listen_port=4711)
    # Namespaces do not separate the socket's folder: elsewhere the name is taken as well.
    for namespace, place in ((here, "in the same namespace"), (elsewhere, "in another namespace")):
        for command in (testbed.command, testbed.foreground_command):
            outcome = testbed.launch(
                namespace, "timeout", "-k", "1", "5", *command, first.name)
            expect(0 < outcome.returncode < 124,
                   f"a second start {place} ended with {outcome.returncode}" if outcome.returncode < 124
                   else f"a second daemon runs {place}")
            expect(outcome.stderr.strip(), f"a second start {place} prints no message on stderr")
            first.daemon.expect_alive()
            expect(first.daemon.has_socket, f"a second start {place} removed the socket of the first")
            expect_equal(uapi.get(first.daemon.socket_path).device.get("listen_port"), "4711", "the first one's port")
            expect(here.has_interface(first.name), f"a second start {place} removed the first one's TUN")
    expect(not elsewhere.has_interface(first.name), "a refused start left a TUN behind")


@check("D1.stale", "a socket file that nobody listens on is replaced")
def stale_socket(testbed: DaemonTestbed) -> None:
    namespace = testbed.namespace("a")
    for label, background in (("1", False), ("2", True)):
        path = testbed.socket_path(testbed.name(label))
        os.makedirs(SOCKET_DIRECTORY, mode=0o755, exist_ok=True)
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as stale:
            stale.bind(path)
        if background:
            BackgroundDaemon(testbed, namespace, label)
        else:
            testbed.interface(1, namespace)
        expect_equal(uapi.get(path).errno, 0, "errno of get")


@check("D1.failed", "a detached start that cannot work ends with a status that says so")
def failed_start(testbed: DaemonTestbed) -> None:
    namespace = testbed.namespace("a")
    first = testbed.interface(1, namespace)
    outcome = testbed.launch(namespace, *testbed.command, first.name)
    expect(outcome.returncode > 0, f"the second start ended with {outcome.returncode}")
    # Without the right to make a TUN.
    name = testbed.name("5")
    path = testbed.socket_path(name)
    outcome = testbed.launch(
        namespace, "setpriv", "--bounding-set=-net_admin", "--inh-caps=-net_admin", *testbed.command, name)
    expect(outcome.returncode > 0, f"a start without CAP_NET_ADMIN ended with {outcome.returncode}")
    expect(outcome.stderr.strip(), "a start without CAP_NET_ADMIN prints no message on stderr")
    expect(not os.path.exists(path), "a start that failed left a socket")
    first.daemon.expect_alive()


