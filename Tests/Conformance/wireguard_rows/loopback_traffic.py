"""Traffic between two interfaces whose sockets share one loopback."""

from testbed import Testbed
from traffic import transfer
from waiting import expect, wait_until
from wireguard_rows.pair import (
    ADDRESS6_1, ADDRESS6_2, ADDRESS_1, ADDRESS_2, PORT_1, PORT_2, Pair, expect_flood, loopback_pair)
from wireguard_rows.registry import check

# Enough above the loopback's 1,500 bytes that every full datagram is cut into two dozen fragments.
BIG_MTU_INCREASE = 34816 - 1500


def exercise(pair: Pair) -> None:
    """Flood pings and iperf3 over both inner families and in both directions, then many streams at once."""
    first, second = pair.first.namespace, pair.second.namespace
    expect_flood(second, ADDRESS_1)
    expect_flood(first, ADDRESS_2)
    expect_flood(second, ADDRESS6_1)
    expect_flood(first, ADDRESS6_2)
    transfer(first, second, ADDRESS_2)
    transfer(second, first, ADDRESS6_1)
    transfer(second, first, ADDRESS_1, udp=True)
    transfer(first, second, ADDRESS6_2, udp=True)
    for streams in (4, 5, 50):
        transfer(first, second, ADDRESS_2, streams=streams)


@check(1, "ten pings move exactly the bytes the protocol needs")
def exact_bytes(testbed: Testbed) -> None:
    pair, _ = loopback_pair(testbed)
    pair.set_endpoints(f"127.0.0.1:{PORT_2}", f"127.0.0.1:{PORT_1}")
    expect_flood(pair.second.namespace, ADDRESS_1)

    # Ten echoes of 84 bytes, padded to 96 and 32 more for header and tag, are 1280. The initiator sends 148 for its
    # initiation and perhaps a keepalive of 32 that confirms the keys; the responder sends 92.
    initiator, responder = pair.second, pair.first
    from_initiator, from_responder = {1428, 1460}, {1372}

    def counted(judged_end: int) -> bool:
        if judged_end == 1:
            received, sent = responder.transfer(pair.keys_2.public)
            return received in from_initiator and sent in from_responder
        received, sent = initiator.transfer(pair.keys_1.public)
        return received in from_responder and sent in from_initiator

    for end, interface, key in ((2, initiator, pair.keys_1.public), (1, responder, pair.keys_2.public)):
        if testbed.judges(end):
            role = "initiator" if end == 2 else "responder"
            wait_until(
                lambda: counted(end), f"the {role} counting 1372 bytes to the initiator, 1428 or 1460 from it", 1,
                detail=lambda: "{} received, {} sent".format(*interface.transfer(key)))
            expect(interface.latest_handshake(key) != 0, f"end {end} shows no latest handshake")


@check(2, "pings and iperf3 over IPv4", exclusive=True)
def traffic_over_ipv4(testbed: Testbed) -> None:
    pair, _ = loopback_pair(testbed)
    pair.set_endpoints(f"127.0.0.1:{PORT_2}", f"127.0.0.1:{PORT_1}")
    exercise(pair)


@check(3, "pings and iperf3 over IPv4 with fragmented datagrams", exclusive=True)
def fragmented_over_ipv4(testbed: Testbed) -> None:
    exercise_fragmented(testbed, f"127.0.0.1:{PORT_2}", f"127.0.0.1:{PORT_1}")


@check(4, "pings and iperf3 over IPv6", exclusive=True)
def traffic_over_ipv6(testbed: Testbed) -> None:
    pair, _ = loopback_pair(testbed)
    pair.set_endpoints(f"[::1]:{PORT_2}", f"[::1]:{PORT_1}")
    exercise(pair)


@check(5, "pings and iperf3 over IPv6 with fragmented datagrams", exclusive=True)
def fragmented_over_ipv6(testbed: Testbed) -> None:
    exercise_fragmented(testbed, f"[::1]:{PORT_2}", f"[::1]:{PORT_1}")


def exercise_fragmented(testbed: Testbed, endpoint_of_second: str, endpoint_of_first: str) -> None:
    pair, outer = loopback_pair(testbed)
    outer.ip("link", "set", "lo", "mtu", "1500")
    for interface in (pair.first, pair.second):
        interface.set_mtu(interface.mtu + BIG_MTU_INCREASE)
    pair.set_endpoints(endpoint_of_second, endpoint_of_first)
    exercise(pair)


@check(6, "padding never exceeds the device's MTU")
def padding_within_mtu(testbed: Testbed) -> None:
    # The kernel honours the MTU of the route. A userspace daemon knows the device's: an MTU that is no multiple of 16
    # must cut the padding short, also when it was set after the device left the daemon's namespace.
    pair, outer = loopback_pair(testbed)
    mtu = 1299
    ping_payload = mtu - 28 - 2  # a packet of 1297 bytes: padded to 1312 without the limit, to 1299 with it
    largest = mtu + 32 + 28
    limited_ports = [port for end, port in ((1, PORT_1), (2, PORT_2)) if testbed.judges(end)]
    rules = "\n".join(
        f"udp sport {port} ip length {largest} counter name exact{port}\n"
        f"udp sport {port} ip length > {largest} counter name excess{port} drop" for port in limited_ports)
    counters = "\n".join(f"counter exact{port} {{ }}\ncounter excess{port} {{ }}" for port in limited_ports)
    outer.nft(f"""table ip padding {{
        {counters}
        chain input {{ type filter hook input priority 0; policy accept;
{rules}
}}
    }}""")
    for interface in (pair.first, pair.second):
        interface.set_mtu(mtu)
    pair.set_endpoints(f"127.0.0.1:{PORT_2}", f"127.0.0.1:{PORT_1}")
    pair.establish()

    def passes() -> bool:
        return pair.second.namespace.ping(ADDRESS_1, "-s", str(ping_payload), "-M", "do").answered

    def counted() -> "dict[str, int]":
        return {name: packets for name, (packets, _) in outer.nft_counters("ip padding").items()}

    # A daemon that polls for the new MTU may need a moment.
    wait_until(passes, f"ping -s {ping_payload} with MTU {mtu} passing a limit of {largest} bytes", 4, detail=counted)
    for port in limited_ports:
        expect(counted()[f"exact{port}"] > 0, f"no datagram of exactly {largest} bytes from port {port}: {counted()}")
    before = counted()
    expect(passes(), "a second ping of nearly the MTU is not answered")
    after = counted()
    expect(all(after[name] == before[name] for name in after if name.startswith("excess")),
           f"datagrams longer than {largest} bytes: {after}")
