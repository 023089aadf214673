"""D2 and B26: everything that ends the program ends it at once, with status 0, and leaves nothing."""

import os
import signal
from typing import Callable

import uapi
from daemon_checks.registry import check
from daemon_testbed import BackgroundDaemon, DaemonTestbed, process_ids
from network_namespace import NetworkNamespace
from tunnel_pair import tunnel_pair
from waiting import expect, expect_equal, wait_until

#: The reference says two seconds; a busy machine may make it longer.
LIMIT = 6.0

End = Callable[[NetworkNamespace, str, int], None]


def _terminate(namespace: NetworkNamespace, interface: str, pid: int) -> None:
    os.kill(pid, signal.SIGTERM)


def _interrupt(namespace: NetworkNamespace, interface: str, pid: int) -> None:
    os.kill(pid, signal.SIGINT)


def _delete_tun(namespace: NetworkNamespace, interface: str, pid: int) -> None:
    namespace.ip("link", "delete", interface)


def _delete_socket(namespace: NetworkNamespace, interface: str, pid: int) -> None:
    os.unlink(f"/var/run/wireguard/{interface}.sock")


WAYS: "list[tuple[str, End, str]]" = [
    ("sigterm", _terminate, "SIGTERM"),
    ("sigint", _interrupt, "SIGINT"),
    ("tun", _delete_tun, "deletion of the TUN"),
    ("socket", _delete_socket, "deletion of the socket's file"),
]


def _enter(identifier: str, way: End, what: str) -> None:
    @check(f"D2.{identifier}", f"{what} ends it with status 0, in the foreground and in the background")
    def ends(testbed: DaemonTestbed) -> None:
        namespace = testbed.namespace("a")
        foreground = testbed.interface(1, namespace)
        testbed.resign(foreground.daemon)
        if identifier in ("tun", "sigint"):
            foreground.up()
        way(namespace, foreground.name, foreground.daemon.pid)
        foreground.daemon.expect_clean_exit(LIMIT)
        wait_until(lambda: not namespace.has_interface(foreground.name), "the TUN going away", 5)

        background = BackgroundDaemon(testbed, namespace, "b")
        pid = background.pid
        expect_equal(uapi.get(background.socket_path).errno, 0, "errno of get")
        if identifier in ("tun", "sigterm"):
            namespace.ip("link", "set", background.interface, "up")
        way(namespace, background.interface, pid)
        background.expect_clean_exit(pid, LIMIT)
        wait_until(lambda: not namespace.has_interface(background.interface), "the TUN going away", 5)


for _identifier, _way, _what in WAYS:
    _enter(_identifier, _way, _what)


def _under_traffic(testbed: DaemonTestbed, way: End) -> None:
    pair = tunnel_pair(testbed)
    pair.expect_ping_through()
    testbed.start(pair.first.namespace, "ping", "-q", "-i", "0.01", "192.168.241.2", stdout=-3, stderr=-3)
    testbed.start(pair.second.namespace, "ping", "-q", "-i", "0.01", "192.168.241.1", stdout=-3, stderr=-3)
    wait_until(lambda: pair.first.transfer(pair.keys_2.public)[1] > 20_000, "traffic flowing", 20)
    testbed.resign(pair.first.daemon)
    way(pair.first.namespace, pair.first.name, pair.first.daemon.pid)
    pair.first.daemon.expect_clean_exit(LIMIT)
    pair.second.daemon.expect_alive()


@check("B26.tun", "deletion of the TUN under traffic")
def tun_deleted(testbed: DaemonTestbed) -> None:
    _under_traffic(testbed, _delete_tun)


@check("B26.socket", "deletion of the socket's file under traffic")
def socket_deleted(testbed: DaemonTestbed) -> None:
    _under_traffic(testbed, _delete_socket)


@check("B26.moved", "deletion of a TUN that was moved to another namespace")
def moved_tun_deleted(testbed: DaemonTestbed) -> None:
    birth, other = testbed.namespace("a"), testbed.namespace("b")
    interface = testbed.interface(1, birth, other)
    interface.up()
    testbed.resign(interface.daemon)
    other.ip("link", "delete", interface.name)
    interface.daemon.expect_clean_exit(LIMIT)
    expect(not process_ids(birth), "a process is left in the birth namespace")


@check("B26.namespace", "deletion of the namespace that the TUN was moved to")
def moved_tun_lost(testbed: DaemonTestbed) -> None:
    birth, other = testbed.namespace("a"), testbed.namespace("b")
    interface = testbed.interface(1, birth, other)
    interface.up()
    testbed.resign(interface.daemon)
    other.delete()
    # The kernel tears a namespace down in its own time.
    interface.daemon.expect_clean_exit(20)
