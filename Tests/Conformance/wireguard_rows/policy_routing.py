"""Default routes through the tunnel by policy routing, and what senders learn when there is no way."""

from network_namespace import NetworkNamespace
from testbed import Testbed
from waiting import expect, wait_until
from wireguard_rows.pair import ADDRESS6_1, ADDRESS_1, ADDRESS_2, expect_flood
from wireguard_rows.registry import check
from wireguard_rows.router import routed_pair

TABLE = "51820"


@check(16, "a default route by mark and table, as wg-quick sets it")
def marked_default_route(testbed: Testbed) -> None:
    pair = routed_pair(testbed).pair
    first, second = pair.first, pair.second
    # An IPv6 address and default route on the lower link tease out a wrong choice of source.
    first.namespace.add_address("client", "fc00::9/96")
    first.namespace.ip("-6", "route", "add", "default", "via", "fc00::1")
    second.add_address("192.168.99.7/32", "abab::1111/128")
    first.set("fwmark", TABLE, *first.peer_words(pair.keys_2.public, allowed_ips="192.168.99.7,abab::1111"))
    for family in ("-6", "-4"):
        first.namespace.ip(family, "route", "add", "default", "dev", first.name, "table", TABLE)
        first.namespace.ip(family, "rule", "add", "not", "fwmark", TABLE, "table", TABLE)
        first.namespace.ip(family, "rule", "add", "table", "main", "suppress_prefixlength", "0")
    for name in ("all", "client"):
        first.namespace.sysctl(f"net/ipv4/conf/{name}/rp_filter", 0)
    wait_until(lambda: first.namespace.ping("192.168.99.7").answered, "the first ping answered", 10)
    expect_flood(first.namespace, "192.168.99.7", 100)
    expect_flood(first.namespace, "abab::1111", 100)

    first.set_peer(pair.keys_2.public, persistent_keepalive=1)
    before = second.transfer(pair.keys_1.public)[0]
    wait_until(
        lambda: second.transfer(pair.keys_1.public)[0] >= before + 64, "two keepalives passing by the marked route", 5)


@check(17, "host unreachable when there is no peer or no endpoint", judges=(2,))
def unreachable(testbed: Testbed) -> None:
    routed = routed_pair(testbed)
    pair, router = routed.pair, routed.router
    namespace = pair.second.namespace
    wait_until(lambda: pair.first.namespace.ping(ADDRESS_2).answered, "the first ping answered", 10)

    # ns0 reaches the tunnel through ns2, which translates its address into that of the tunnel's end.
    namespace.nft(f"""table ip translation {{
        chain postrouting {{
            type nat hook postrouting priority srcnat; policy accept;
            ip saddr 10.0.0.0/24 ip daddr 192.168.241.0/24 snat to {ADDRESS_2}
        }}
    }}""")
    namespace.sysctl("net/ipv4/ip_forward", 1)
    router.ip("route", "add", ADDRESS_1, "via", "10.0.0.100")
    wait_until(lambda: router.ping(ADDRESS_1).answered, "a ping through both translations answered", 5)

    pair.second.remove_peer(pair.keys_1.public)
    # The kernel's driver answers from the router's own address. A daemon answers through its TUN, and must not do so
    # from a local address: the address that cannot be reached speaks for itself.
    expect_unreachable(router, ADDRESS_1, "Destination Host Unreachable", ("10.0.0.100", ADDRESS_1))
    expect_unreachable(namespace, ADDRESS_1, "Destination Host Unreachable", (ADDRESS_2, ADDRESS_1))
    expect_unreachable(namespace, ADDRESS6_1, "Address unreachable", ("fd00::2", ADDRESS6_1))

    # A peer that nobody has heard of yet.
    pair.second.set_peer(pair.keys_1.public, allowed_ips=f"{ADDRESS_1}/32,{ADDRESS6_1}/128")
    expect(pair.second.endpoint(pair.keys_1.public) == "(none)", "a peer added anew has an endpoint")
    expect_unreachable(namespace, ADDRESS_1, "Destination Host Unreachable", (ADDRESS_2, ADDRESS_1))
    expect_unreachable(namespace, ADDRESS6_1, "Address unreachable", ("fd00::2", ADDRESS6_1))


def expect_unreachable(namespace: NetworkNamespace, destination: str, words: str, senders: "tuple[str, ...]") -> None:
    """One ping must be answered by an ICMP error that says `words` and comes from one of `senders`."""
    result = namespace.ping(destination)
    expect(not result.answered, f"ping {destination} is answered although there is no peer")
    lines = [line for line in result.output.splitlines() if words in line]
    expect(lines, f"ping {destination} does not report {words!r}: {result.summary}")
    expect(any(f"From {sender} icmp_seq=1 " in lines[0] for sender in senders),
           f"ping {destination} was answered from elsewhere than {' or '.join(senders)}: {lines[0]}")
