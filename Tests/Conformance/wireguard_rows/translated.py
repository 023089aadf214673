"""An end behind address translation."""

from testbed import Testbed
from waiting import pause, wait_until
from wireguard_rows.pair import ADDRESS_1, ADDRESS_2, PORT_1, expect_no_ping, expect_ping
from wireguard_rows.registry import check
from wireguard_rows.router import routed_pair


@check(13, "persistent keepalives hold a translated flow open")
def keepalives_through_translation(testbed: Testbed) -> None:
    routed = routed_pair(testbed)
    pair, router = routed.pair, routed.router
    pair.first.set_peer(pair.keys_2.public, persistent_keepalive=1)
    wait_until(lambda: pair.first.namespace.ping(ADDRESS_2).answered, "the first ping answered", 10)
    expect_ping(pair.second.namespace, ADDRESS_1)
    pair.expect_endpoint_of_first(f"10.0.0.1:{PORT_1}")

    # Longer than the router remembers a silent flow.
    pause(3)
    expect_ping(pair.second.namespace, ADDRESS_1)

    pair.first.set_peer(pair.keys_2.public, persistent_keepalive=0)

    def forgotten() -> bool:
        return "192.168.1.100" not in router.run("conntrack", "-L", "-p", "udp").stdout

    wait_until(forgotten, "the router forgetting the flow once keepalives are off", 9)
    expect_no_ping(pair.second.namespace, ADDRESS_1)


@check(14, "pings bound to the interface, and marked and rerouted")
def bound_and_marked(testbed: Testbed) -> None:
    pair = routed_pair(testbed).pair
    namespace = pair.first.namespace
    wait_until(lambda: namespace.ping(ADDRESS_2).answered, "the first ping answered", 10)
    expect_ping(namespace, ADDRESS_2, "-I", pair.first.name)
    # A mark that is set on the way out makes the kernel look up the route again.
    namespace.nft("""table ip marking {
        chain output { type route hook output priority mangle; policy accept; meta mark set 1; }
    }""")
    expect_ping(namespace, ADDRESS_2)
    expect_ping(namespace, ADDRESS_2, "-I", pair.first.name)
    namespace.nft("delete table ip marking")
    expect_ping(namespace, ADDRESS_2)
