"""U1, U4, U5, U6, U9: how the configuration socket speaks, whatever is configured."""

import errno
import os
import socket
import stat

import commands
import uapi
from daemon_checks.hexadecimal_keys import keys
from daemon_checks.malformed_sets import INVALID, MALFORMED, OVERSIZE, PROTOCOL
from daemon_checks.registry import check
from daemon_testbed import DaemonTestbed
from tunnel_pair import tunnel_pair, udp_inodes
from uapi_connection import UAPIConnection, apply, set_errno, state
from waiting import expect, expect_equal, pause, wait_until

PEER_A, PEER_B = keys(2, seed=14)


@check("U1.operations", "several operations on one connection")
def several_operations(testbed: DaemonTestbed) -> None:
    path = _path(testbed)
    with UAPIConnection(path) as connection:
        for port in (1001, 1002, 1003):
            expect_equal(connection.set(f"listen_port={port}").errno, 0, "errno of set")
            reply = connection.get()
            expect_equal(reply.errno, 0, "errno of get")
            expect_equal(reply.device.get("listen_port"), str(port), "listen_port")
        expect_equal(connection.set().errno, 0, "errno of an empty set")
        expect_equal(connection.get().device.get("listen_port"), "1003", "listen_port after an empty set")


@check("U1.pipelined", "operations sent at once are all answered, in order")
def pipelined(testbed: DaemonTestbed) -> None:
    path = _path(testbed)
    with UAPIConnection(path) as connection:
        count = 100
        connection.send("".join(f"set=1\nfwmark={number}\n\nget=1\n\n" for number in range(1, count + 1)))
        for number in range(1, count + 1):
            expect_equal(connection.receive().errno, 0, f"errno of pipelined set {number}")
            reply = connection.receive()
            expect_equal(reply.errno, 0, f"errno of pipelined get {number}")
            expect_equal(reply.device.get("fwmark"), str(number), f"fwmark in pipelined get {number}")


@check("U1.split", "an operation that arrives byte by byte")
def split(testbed: DaemonTestbed) -> None:
    path = _path(testbed)
    with UAPIConnection(path) as connection:
        connection.send_byte_by_byte(f"set=1\nfwmark=77\npublic_key={PEER_A}\nallowed_ip=10.1.0.0/16\n\n")
        expect_equal(connection.receive().errno, 0, "errno of set")
        connection.send_byte_by_byte("get=1\n\n")
        reply = connection.receive()
        expect_equal(reply.device.get("fwmark"), "77", "fwmark")
        expect_equal(dict(reply.peers[0]).get("allowed_ip"), "10.1.0.0/16", "allowed_ip")


@check("U1.halfclose", "a client that shuts down its sending side still gets its answer")
def half_close(testbed: DaemonTestbed) -> None:
    path = _path(testbed)
    with UAPIConnection(path) as connection:
        connection.send("set=1\nfwmark=5\n\n")
        connection.socket.shutdown(socket.SHUT_WR)
        expect_equal(connection.receive().errno, 0, "errno of set")
        expect_equal(connection.socket.recv(1), b"", "what follows the reply")
    expect_equal(state(path).device.get("fwmark"), "5", "fwmark")


@check("U1.socket", "the socket is its owner's alone, and its folder is made when missing")
def socket_mode(testbed: DaemonTestbed) -> None:
    namespace = testbed.namespace("a")
    name = f"{testbed.prefix}1"
    folder = os.path.realpath(os.path.dirname(uapi_path(name)))
    # A mount namespace with an empty /run, and a mask that hides nothing.
    script = 'mount -t tmpfs none "$1" && umask 0 && shift && exec "$@"'
    process = testbed.start(
        namespace, "unshare", "--mount", "sh", "-c", script, "sh", os.path.dirname(folder),
        *testbed.foreground_command, name)
    seen = f"/proc/{process.pid}/root{folder}"
    path = os.path.join(seen, name + ".sock")
    wait_until(lambda: os.path.exists(path), "the socket's file", 20)
    mode = os.stat(path).st_mode
    expect(stat.S_ISSOCK(mode), "the file is not a socket")
    # The mode is set by a mask or after the bind: look when the daemon certainly is ready.
    expect_equal(wait_until(lambda: _answers(path), "an answer to get", 20), True, "answer")
    mode = os.stat(path).st_mode
    expect(mode & 0o077 == 0, f"the socket's mode is {stat.S_IMODE(mode):04o}: others can use it")
    expect(mode & 0o600 == 0o600, f"the socket's mode is {stat.S_IMODE(mode):04o}: its owner cannot use it")
    mode = os.stat(seen).st_mode
    expect(mode & 0o022 == 0, f"the folder's mode is {stat.S_IMODE(mode):04o}: others can write there")


def _answers(path: str) -> bool:
    try:
        return uapi.get(path).errno == 0
    except (OSError, uapi.MalformedReply):
        return False


@check("U1.thousand", "a thousand connections leave no descriptor behind")
def thousand_connections(testbed: DaemonTestbed) -> None:
    daemon = testbed.interface(1, testbed.namespace("a")).daemon
    path = daemon.socket_path

    def descriptors() -> int:
        return len(os.listdir(f"/proc/{daemon.pid}/fd"))

    uapi.get(path)
    before = descriptors()
    for number in range(1000):
        with UAPIConnection(path) as connection:
            # A third ask properly, a third leave in the middle of a line, a third say nothing.
            if number % 3 == 0:
                expect_equal(connection.get().errno, 0, "errno of get")
            elif number % 3 == 1:
                connection.send("set=1\nfwm")
    many = [UAPIConnection(path) for _ in range(40)]
    try:
        for connection in many:
            connection.send("get=1\n\n")
        for connection in many:
            expect_equal(connection.receive().errno, 0, "errno of a get beside 39 others")
    finally:
        for connection in many:
            connection.socket.close()
    # The runtime may open a few of its own; a thousand connections must not show.
    wait_until(lambda: descriptors() <= before + 8, f"descriptors returning to about {before}", 10)


@check("U1.halfline", "a client that leaves in the middle of a line changes nothing")
def half_line(testbed: DaemonTestbed) -> None:
    path = _path(testbed)
    apply(path, "fwmark=9")
    for cut in ("", "s", "set=1", "set=1\n", "set=1\nfwmark=1", "set=1\nfwmark=", "set=1\nfwm", "get=1", "get=1\n"):
        with UAPIConnection(path) as connection:
            connection.send(cut)
    # Time in which a daemon might yet do something with it.
    pause(0.5)
    expect_equal(state(path).device.get("fwmark"), "9", "fwmark")


@check("U1.stall", "a client that stalls holds up neither other clients nor packets")
def stalled_client(testbed: DaemonTestbed) -> None:
    pair = tunnel_pair(testbed)
    pair.expect_ping_through()
    path = pair.first.daemon.socket_path
    for what in ("set=1\nfwm", "set=1\nfwmark=1\n", f"set=1\npublic_key={PEER_A}\n", "get=1\n"):
        with UAPIConnection(path) as stalled:
            stalled.send(what)
            _expect_others_served(pair, path, f"while a client stalls after {what!r}")
    # One that asks again and again and reads nothing: its replies fill every buffer.
    apply(path, *[line for key in keys(200) for line in (f"public_key={key}", "allowed_ip=10.77.0.0/16")])
    with UAPIConnection(path) as deaf:
        deaf.socket.settimeout(0.5)
        try:
            for _ in range(200):
                deaf.send("get=1\n\n" * 200)
        except socket.timeout:
            pass
        _expect_others_served(pair, path, "while a client reads none of its replies")


def _expect_others_served(pair, path: str, when: str) -> None:
    try:
        with UAPIConnection(path, 5) as other:
            expect_equal(other.get().errno, 0, f"errno of get {when}")
            expect_equal(other.set("fwmark=0").errno, 0, f"errno of set {when}")
    except socket.timeout:
        expect(False, f"no answer to another client within 5 s {when}")
    result = pair.first.namespace.ping("192.168.241.2", "-i", "0.1", count=5, seconds=2)
    expect(result.received == 5, f"{result.received} of 5 pings answered {when}")


@check("U4.values", f"{sum(wanted is INVALID for _, _, wanted in MALFORMED)} bad keys and values: EINVAL, negative")
def bad_values(testbed: DaemonTestbed) -> None:
    _expect_table(testbed, INVALID)


@check("U4.lines", f"{sum(wanted is PROTOCOL for _, _, wanted in MALFORMED)} lines without '=': EPROTO, negative")
def bad_lines(testbed: DaemonTestbed) -> None:
    _expect_table(testbed, PROTOCOL)


@check("U4.oversize", "lines of a million bytes are refused, and the daemon stays small")
def oversize_lines(testbed: DaemonTestbed) -> None:
    _expect_table(testbed, OVERSIZE)


def _expect_table(testbed: DaemonTestbed, group: set) -> None:
    daemon = testbed.interface(1, testbed.namespace("a")).daemon
    before = _resident_bytes(daemon.pid)
    wrong, count = [], 0
    for name, raw, expected in MALFORMED:
        if expected is not group:
            continue
        count += 1
        try:
            answer = set_errno(daemon.socket_path, raw + b"\n", 5)
        except socket.timeout:
            wrong.append(f"{name}: no answer")
            if len(wrong) >= 12:
                break
            continue
        if answer not in expected and not (answer is None and group is OVERSIZE):
            wrong.append(f"{name}: {'connection closed' if answer is None else f'errno={answer}'}")
    daemon.expect_alive()
    apply(daemon.socket_path, "replace_peers=true")
    expect(not wrong, f"{len(wrong)} of {count} answered wrongly: {'; '.join(wrong[:12])}")
    if group is OVERSIZE:
        # 3 MB of lines went in; a daemon that keeps or repeats them would show it many times over.
        growth = _resident_bytes(daemon.pid) - before
        expect(growth < 64 << 20, f"resident memory grew by {growth >> 20} MiB")


def _resident_bytes(pid: int) -> int:
    with open(f"/proc/{pid}/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@check("U4.operations", "unknown operations are refused and harm nobody")
def unknown_operations(testbed: DaemonTestbed) -> None:
    daemon = testbed.interface(1, testbed.namespace("a")).daemon
    for raw in (b"\n", b"\n\n", b"foo\n\n", b"foo=1\n\n", b"set=2\n\n", b"get=2\n\n", b"set\n\n", b"get\n\n",
                b"SET=1\n\n", b"get=1 \n\n", b"=\n\n", b"\x00\n\n",
                b"\xff\xfe\n\n", b"x" * 1_000_000, b"fwmark=1\n\n"):
        with UAPIConnection(daemon.socket_path, 2) as connection:
            try:
                connection.send(raw)
                reply = connection.receive_or_none()
            except (BrokenPipeError, ConnectionResetError):
                continue
            except socket.timeout:
                # It may wait for a line's end, and pass over blank lines; nothing else may stay without an answer.
                expect(raw[-1:] != b"\n" or not raw.strip(), f"no answer to {raw!r}, and the connection stays open")
                continue
            expect(reply is None or reply.errno != 0, f"{raw[:20]!r} was answered with errno=0")
    daemon.expect_alive()
    expect(state(daemon.socket_path).device.get("fwmark") is None, "a line outside of any operation was applied")


@check("U4.applied", "the lines before a bad one stay applied")
def earlier_lines(testbed: DaemonTestbed) -> None:
    path = _path(testbed)
    answer = set_errno(path, (
        f"fwmark=1234\npublic_key={PEER_A}\npersistent_keepalive_interval=9\nallowed_ip=10.1.0.0/16\n"
        f"endpoint=nowhere\nallowed_ip=10.2.0.0/16\npublic_key={PEER_B}\n").encode())
    expect_equal(answer, -errno.EINVAL, "errno")
    after = state(path)
    expect_equal(after.device.get("fwmark"), "1234", "fwmark, which precedes the bad line")
    expect_equal(after.public_keys, [PEER_A], "the peers")
    peer = after.peer(PEER_A)
    expect_equal(peer["allowed_ip"], ["10.1.0.0/16"], "the allowed IPs")
    expect_equal(peer["persistent_keepalive_interval"], "9", "the keepalive")
    answer = set_errno(path, b"fwmark=4321\nnothing\nfwmark=1111\n")
    expect_equal(answer, -errno.EPROTO, "errno")
    expect_equal(state(path).device.get("fwmark"), "4321", "fwmark")


@check("U4.port", "a busy port: EADDRINUSE, and the old socket keeps working")
def busy_port(testbed: DaemonTestbed) -> None:
    pair = tunnel_pair(testbed)
    pair.expect_ping_through()
    namespace, path = pair.first.namespace, pair.first.daemon.socket_path
    for address in ("0.0.0.0", "::"):
        taken = testbed.enter(namespace.udp_socket(address, 0))
        port = taken.getsockname()[1]
        expect_equal(
            uapi.set(path, f"listen_port={port}").errno, -errno.EADDRINUSE, f"errno for a port busy on {address}")
        expect_equal(state(path).device.get("listen_port"), "1", f"listen_port after the refusal ({address})")
        expect(udp_inodes(namespace, 1), f"no socket is bound to the old port after the refusal ({address})")
        pair.expect_pings(5, f"after the refusal of a port busy on {address}")
        # The other side must be able to begin as well.
        pair.second.down()
        pair.second.up()
        pair.second.set_peer(pair.keys_1.public, endpoint="10.0.0.1:1")
        pair.expect_ping_back()
    outcome = commands.run(["wg", "set", pair.first.name, "listen-port", str(port)], check=False)
    expect(outcome.returncode != 0, "wg set listen-port BUSY succeeds")
    expect_equal(outcome.stderr.strip(), "Unable to modify interface: Address already in use", "wg's message")


@check("U5", "a get that fails is answered without a minus sign, or not at all")
def get_sign(testbed: DaemonTestbed) -> None:
    daemon = testbed.interface(1, testbed.namespace("a")).daemon
    for raw in (b"get=1\nfoo=bar\n\n", b"get=1\nx\n\n", b"get=1\npublic_key=\n\n"):
        with UAPIConnection(daemon.socket_path, 5) as connection:
            connection.send(raw)
            reply = connection.receive_or_none()
            expect(reply is None or reply.errno > 0, f"{raw!r} is answered with errno={reply and reply.errno}")
    daemon.expect_alive()


@check("U6", "a set is applied at its blank line, while the connection stays open")
def applied_at_blank_line(testbed: DaemonTestbed) -> None:
    path = _path(testbed)
    with UAPIConnection(path) as connection:
        connection.send(f"set=1\nfwmark=66\npublic_key={PEER_A}\nallowed_ip=10.6.0.0/16\n\n")
        wait_until(
            lambda: state(path).device.get("fwmark") == "66" and state(path).public_keys == [PEER_A],
            "what was set being visible to another client", 5)
        expect_equal(connection.receive().errno, 0, "errno")


@check("U9", "wg finds the interface by its socket, and not after its daemon was killed")
def found_by_wg(testbed: DaemonTestbed) -> None:
    interface = testbed.interface(1, testbed.namespace("a"))
    expect(interface.name in _interfaces(), "`wg show interfaces` does not list it")
    testbed.resign(interface.daemon)
    interface.daemon.signal(9)
    interface.daemon.wait_for_exit()
    expect(interface.daemon.has_socket, "the socket's file is gone although the process was killed")
    expect(interface.name not in _interfaces(), "`wg show interfaces` lists an interface without a daemon")


def _interfaces() -> "list[str]":
    return commands.run(["wg", "show", "interfaces"]).stdout.split()


def uapi_path(interface: str) -> str:
    """Where an interface's socket belongs."""
    return f"/var/run/wireguard/{interface}.sock"


def _path(testbed: DaemonTestbed) -> str:
    """The socket of a fresh daemon."""
    return testbed.interface(1, testbed.namespace("a")).daemon.socket_path
