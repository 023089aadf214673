"""The end of devices that live in each other's namespaces."""

import os

import commands
from testbed import Testbed
from waiting import expect, expect_equal, wait_until
from wireguard_rows.direct import wired_namespaces
from wireguard_rows.pair import PORT_1, PORT_2, Pair
from wireguard_rows.registry import check


@check(35, "two devices in each other's namespaces end without a trace")
def crossed_devices(testbed: Testbed) -> None:
    # A process holds on to the namespace it was born in, so that deleting both namespaces, as the kernel's scenario
    # does, proves nothing here: one device is deleted, the other's daemon stopped, and each time the rest is checked.
    first, second = wired_namespaces(testbed)
    first.add_address("veth1", "10.0.0.1/24")
    second.add_address("veth2", "10.0.0.2/24")
    pair = Pair(testbed.interface(1, first, second), testbed.interface(2, second, first))
    pair.configure()
    pair.set_endpoints(f"10.0.0.2:{PORT_2}", f"10.0.0.1:{PORT_1}")
    pair.establish()
    daemons = (pair.first.daemon, pair.second.daemon)
    for daemon in daemons:
        testbed.resign(daemon)

    pair.first.namespace.ip("link", "del", pair.first.name)
    if testbed.judges(1):
        daemons[0].expect_clean_exit()
    else:
        daemons[0].discard()

    if testbed.judges(2):
        daemons[1].expect_alive()
        expect(pair.second.namespace.has_interface(pair.second.name), "the other device went along")
        # It still works: a new configuration is taken and shown.
        pair.second.set(listen_port=2222)
        expect_equal(pair.second.show("listen-port"), "2222", "the other device's port")
        daemons[1].signal()
        daemons[1].expect_clean_exit()
        wait_until(lambda: not pair.second.namespace.has_interface(pair.second.name), "the TUN being gone", 2)
    else:
        daemons[1].discard()

    for daemon in daemons:
        expect(not daemon.has_socket, f"{daemon.socket_path} is left behind")
        expect(not commands.group_is_alive(daemon.process), f"a process of {daemon.title} is left behind")
    for namespace in (first, second):
        expect_equal(namespace.process_ids(), [], f"the processes in {namespace.name}")
        inode = os.stat(namespace.path).st_ino
        expect_equal(holders_of_namespace(inode), [], f"the descriptors that hold {namespace.name}")


def holders_of_namespace(inode: int) -> "list[str]":
    """Descriptors of any process, ours left out, that refer to the network namespace with that inode number."""
    found = []
    for process_id in filter(str.isdigit, os.listdir("/proc")):
        if int(process_id) == os.getpid():
            continue
        try:
            for descriptor in os.listdir(f"/proc/{process_id}/fd"):
                path = f"/proc/{process_id}/fd/{descriptor}"
                try:
                    if os.readlink(path) == f"net:[{inode}]":
                        found.append(path)
                except OSError:
                    continue
        except OSError:
            continue
    return found
