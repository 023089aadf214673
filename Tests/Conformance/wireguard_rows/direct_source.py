"""The source address of what is sent: sticky, but not too sticky."""

from testbed import Testbed
from wireguard_rows.direct import bare_direct_pair, direct_pair
from wireguard_rows.pair import ADDRESS_1, ADDRESS_2, PORT_1, PORT_2, expect_ping
from wireguard_rows.registry import check


@check(18, "a local address that goes is replaced at once", judges=(1,))
def not_too_sticky(testbed: Testbed) -> None:
    pair = direct_pair(testbed)
    namespace = pair.first.namespace
    pair.establish()
    namespace.add_address("veth1", "10.0.0.10/24")
    namespace.delete_address("veth1", "10.0.0.1/24")
    expect_ping(namespace, ADDRESS_2, context="after the IPv4 source was replaced")
    pair.expect_endpoint_of_first(f"10.0.0.10:{PORT_1}")

    pair.set_endpoints(of_second=f"[fd00:aa::2]:{PORT_2}")
    expect_ping(namespace, ADDRESS_2)
    pair.expect_endpoint_of_first(f"[fd00:aa::1]:{PORT_1}")
    namespace.add_address("veth1", "fd00:aa::10/96")
    namespace.delete_address("veth1", "fd00:aa::1/96")
    expect_ping(namespace, ADDRESS_2, context="after the IPv6 source was replaced")
    pair.expect_endpoint_of_first(f"[fd00:aa::10]:{PORT_1}")


@check(19, "answers come from the address that was asked")
def reply_to_sender(testbed: Testbed) -> None:
    pair = bare_direct_pair(testbed)
    first, second = pair.first.namespace, pair.second.namespace
    first.add_address("veth1", "10.0.0.1/24", "10.0.0.2/24", "fd00:aa::1/96", "fd00:aa::2/96")
    second.add_address("veth2", "10.0.0.3/24", "fd00:aa::3/96")
    pair.set_endpoints(of_first=f"10.0.0.1:{PORT_1}", of_second=f"10.0.0.3:{PORT_2}")
    pair.establish()
    for host in ("10.0.0.1", "[fd00:aa::1]", "10.0.0.2", "[fd00:aa::2]"):
        pair.set_endpoints(of_first=f"{host}:{PORT_1}")
        expect_ping(second, ADDRESS_1)
        pair.expect_endpoint_of_first(f"{host}:{PORT_1}")


@check(20, "answers come from an address that belongs to another interface than the route's")
def address_of_another_interface(testbed: Testbed) -> None:
    pair = direct_pair(testbed)
    first, second = pair.first.namespace, pair.second.namespace
    pair.establish()
    first.ip("link", "add", "bridge0", "type", "bridge")
    first.add_address("bridge0", "10.50.0.1/24")
    first.ip("link", "set", "bridge0", "up")
    second.ip("route", "add", "10.50.0.0/24", "dev", "veth2")
    pair.set_endpoints(of_first=f"10.50.0.1:{PORT_1}")
    expect_ping(second, ADDRESS_1)
    pair.expect_endpoint_of_first(f"10.50.0.1:{PORT_1}")
    expect_ping(second, ADDRESS_1)
    pair.expect_endpoint_of_first(f"10.50.0.1:{PORT_1}")
