"""D3: what the environment tells the program: WG_PROCESS_FOREGROUND, WG_TUN_FD, WG_UAPI_FD, LOG_LEVEL."""

import fcntl
import os
import socket
import struct
import subprocess

import uapi
from daemon import SOCKET_DIRECTORY
from daemon_checks.hexadecimal_keys import from_base64, keys
from daemon_checks.registry import check
from daemon_testbed import DaemonTestbed
from network_namespace import NetworkNamespace
from uapi_connection import apply, set_errno
from waiting import expect, expect_equal, wait_until
from wireguard_tool import KeyPair

_TUNSETIFF = 0x400454CA
_IFF_TUN, _IFF_NO_PI, _IFF_VNET_HDR = 0x0001, 0x1000, 0x4000


def _answers(path: str) -> bool:
    try:
        return os.path.exists(path) and uapi.get(path).errno == 0
    except (OSError, uapi.MalformedReply):
        return False


def _open_tun(namespace: NetworkNamespace, name: str, flags: int) -> int:
    """A descriptor of a TUN of that name in the namespace."""
    with namespace.entered():
        descriptor = os.open("/dev/net/tun", os.O_RDWR | os.O_CLOEXEC)
        try:
            fcntl.ioctl(descriptor, _TUNSETIFF, struct.pack("16sH22x", name.encode(), flags))
        except OSError:
            os.close(descriptor)
            raise
    return descriptor


def _listen(path: str) -> socket.socket:
    os.makedirs(SOCKET_DIRECTORY, mode=0o755, exist_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(path)
    listener.listen(16)
    return listener


def _start(testbed: DaemonTestbed, namespace: NetworkNamespace, name: str, environment: dict, descriptors=(),
           foreground=True, **output):
    variables = {**os.environ, **environment}
    command = testbed.foreground_command if foreground else testbed.command
    output.setdefault("stdout", subprocess.DEVNULL)
    output.setdefault("stderr", subprocess.DEVNULL)
    return testbed.start(namespace, *command, name, env=variables, pass_fds=descriptors, stdin=subprocess.DEVNULL,
                         **output)


def _expect_end(process, path: str) -> None:
    process.terminate()
    try:
        status = process.wait(10)
    except subprocess.TimeoutExpired:
        expect(False, "it did not end within 10 s of SIGTERM")
    expect_equal(status, 0, "the status after SIGTERM")
    expect(not os.path.exists(path), "the socket's file was left behind")


@check("D3.foreground", "WG_PROCESS_FOREGROUND=1 keeps it in the foreground")
def foreground(testbed: DaemonTestbed) -> None:
    namespace, name = testbed.namespace("a"), testbed.name()
    path = testbed.socket_path(name)
    process = _start(testbed, namespace, name, {"WG_PROCESS_FOREGROUND": "1"}, foreground=False)
    wait_until(lambda: _answers(path), "an answer to get", 20)
    expect(process.poll() is None, f"the process that was started ended with {process.poll()}")
    _expect_end(process, path)


@check("D3.tun", "WG_TUN_FD: an inherited TUN is used")
def inherited_tun(testbed: DaemonTestbed) -> None:
    _inherit_tun(testbed, _IFF_TUN | _IFF_NO_PI)


@check("D3.header", "WG_TUN_FD: an inherited TUN with virtio headers is used or refused, but never misread")
def inherited_tun_with_header(testbed: DaemonTestbed) -> None:
    _inherit_tun(testbed, _IFF_TUN | _IFF_NO_PI | _IFF_VNET_HDR, may_refuse=True)


@check("D3.information", "WG_TUN_FD: an inherited TUN with packet information is used or refused, but never misread")
def inherited_tun_with_information(testbed: DaemonTestbed) -> None:
    _inherit_tun(testbed, _IFF_TUN, may_refuse=True)


def _inherit_tun(testbed: DaemonTestbed, flags: int, may_refuse: bool = False) -> None:
    namespace, name = testbed.namespace("a"), testbed.name()
    path = testbed.socket_path(name)
    descriptor = _open_tun(namespace, name, flags)
    try:
        process = _start(testbed, namespace, name, {"WG_TUN_FD": str(descriptor)}, (descriptor,))
    finally:
        os.close(descriptor)
    wait_until(lambda: _answers(path) or process.poll() is not None, "an answer to get", 20)
    if may_refuse and process.poll():
        return
    expect(process.poll() is None, f"it ended with {process.poll()}")
    _expect_tunnel_works(testbed, namespace, name, path)
    _expect_end(process, path)


def _expect_tunnel_works(testbed: DaemonTestbed, namespace: NetworkNamespace, name: str, path: str) -> None:
    """A packet into the TUN makes the daemon send an initiation: both descriptors are the ones that count."""
    sink = testbed.enter(namespace.udp_socket("127.0.0.1", 0, seconds=10))
    apply(path, f"private_key={from_base64(KeyPair.generate().private)}", f"public_key={keys(1)[0]}",
          f"endpoint=127.0.0.1:{sink.getsockname()[1]}", "allowed_ip=10.9.0.0/24")
    namespace.ip("link", "set", name, "up")
    namespace.add_address(name, "10.9.0.1/24")
    testbed.start(namespace, "ping", "-c", "8", "10.9.0.2", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        data = sink.recv(65536)
    except TimeoutError:
        expect(False, "a packet into the TUN does not lead to an initiation")
    expect(len(data) == 148 and data[0] == 1, f"{len(data)} bytes were sent, not an initiation")


@check("D3.uapi", "WG_UAPI_FD: an inherited listening socket is used")
def inherited_socket(testbed: DaemonTestbed) -> None:
    _inherit_socket(testbed, with_tun=False)


@check("D3.both", "WG_TUN_FD, WG_UAPI_FD and WG_PROCESS_FOREGROUND=1 together")
def inherited_both(testbed: DaemonTestbed) -> None:
    _inherit_socket(testbed, with_tun=True)


def _inherit_socket(testbed: DaemonTestbed, with_tun: bool) -> None:
    namespace, name = testbed.namespace("a"), testbed.name()
    path = testbed.socket_path(name)
    listener = _listen(path)
    inode = os.stat(path).st_ino
    environment, descriptors = {"WG_UAPI_FD": str(listener.fileno())}, [listener.fileno()]
    if with_tun:
        descriptors.append(_open_tun(namespace, name, _IFF_TUN | _IFF_NO_PI))
        environment |= {"WG_TUN_FD": str(descriptors[1]), "WG_PROCESS_FOREGROUND": "1"}
    try:
        process = _start(testbed, namespace, name, environment, tuple(descriptors), foreground=not with_tun)
    finally:
        listener.close()
        if with_tun:
            os.close(descriptors[1])
    wait_until(lambda: _answers(path) or process.poll() is not None, "an answer to get", 20)
    expect(process.poll() is None, f"it ended with {process.poll()}")
    expect_equal(os.stat(path).st_ino, inode, "the inode of the socket's file")
    _expect_tunnel_works(testbed, namespace, name, path)
    _expect_end(process, path)


@check("D3.bad", "a WG_TUN_FD or WG_UAPI_FD that is no such thing is refused")
def bad_descriptors(testbed: DaemonTestbed) -> None:
    namespace = testbed.namespace("a")
    for number, (key, value) in enumerate((
            ("WG_TUN_FD", "999"), ("WG_TUN_FD", "x"), ("WG_TUN_FD", "-1"), ("WG_TUN_FD", "0"),
            ("WG_UAPI_FD", "999"), ("WG_UAPI_FD", "x"), ("WG_UAPI_FD", "-1"), ("WG_UAPI_FD", "0"))):
        name = testbed.name(f"{number}")
        path = testbed.socket_path(name)
        outcome = testbed.launch(
            namespace, "timeout", "-k", "1", "5", *testbed.foreground_command, name, environment={key: value})
        expect(0 < outcome.returncode < 124, f"{key}={value}: " + (
            f"ended with {outcome.returncode}" if outcome.returncode < 124 else "it runs"))
        expect(outcome.stderr.strip(), f"{key}={value}: no message on stderr")
        expect(not os.path.exists(path), f"{key}={value}: left a socket")


@check("D3.log", "LOG_LEVEL: silent prints nothing, error little, debug and verbose more; keys never appear")
def log_levels(testbed: DaemonTestbed) -> None:
    length = {}
    for number, level in enumerate((None, "silent", "error", "debug", "verbose", "loud")):
        name = testbed.name(f"{number}")
        namespace = testbed.namespace(f"l{number}")
        path, log = testbed.socket_path(name), testbed.file(f"log{number}")
        environment = {"WG_PROCESS_FOREGROUND": "1"}
        if level is not None:
            environment["LOG_LEVEL"] = level
        with open(log, "wb") as file:
            process = _start(testbed, namespace, name, environment, stdout=file, stderr=file)
        wait_until(lambda: _answers(path) or process.poll() is not None, f"LOG_LEVEL={level}: an answer to get", 20)
        expect(process.poll() is None, f"LOG_LEVEL={level}: it ended with {process.poll()}")
        pair, preshared = KeyPair.generate(), keys(1, seed=number)[0]
        planted = [pair.private, from_base64(pair.private), preshared]
        apply(path, f"private_key={planted[1]}", f"public_key={keys(1)[0]}", f"preshared_key={preshared}")
        for line in (f"private_key={planted[1]}0", f"preshared_key={preshared}x", f"private_key:{planted[1]}",
                     f"public_key={keys(1)[0]}\npreshared_key={preshared[:-2]}", f"secret={planted[1]}"):
            set_errno(path, (line + "\n").encode())
        namespace.ip("link", "set", name, "up")
        _expect_tunnel_works(testbed, namespace, name, path)
        _expect_end(process, path)
        with open(log, errors="replace") as file:
            text = file.read()
        length[level] = len(text)
        for secret in planted:
            # What precedes the defect in a malformed line is as secret as the whole.
            expect(secret[:40] not in text, f"LOG_LEVEL={level}: a key appears in the log")
    expect_equal(length["silent"], 0, "the length of the log with LOG_LEVEL=silent")
    expect(length["debug"] > 0 and length["verbose"] > 0, "LOG_LEVEL=debug or verbose prints nothing")
    expect(length["error"] < length["debug"], "LOG_LEVEL=error prints as much as debug")
    expect(length[None] <= length["debug"], "without LOG_LEVEL it prints more than with debug")
