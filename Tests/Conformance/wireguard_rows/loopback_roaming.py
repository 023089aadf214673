"""Changes of address, port and key under a live session."""

from network_namespace import NetworkNamespace
from testbed import Testbed
from waiting import expect, expect_equal, wait_until
from wireguard_rows.pair import ADDRESS6_2, ADDRESS_1, ADDRESS_2, PORT_1, PORT_2, expect_ping, loopback_pair
from wireguard_rows.registry import check
from wireguard_tool import KeyPair


@check(7, "roaming over IPv4")
def roaming_over_ipv4(testbed: Testbed) -> None:
    pair, outer = loopback_pair(testbed)
    pair.set_endpoints(f"127.0.0.1:{PORT_2}", f"127.0.0.1:{PORT_1}")
    pair.establish()
    pair.expect_endpoint_of_first(f"127.0.0.1:{PORT_1}")
    outer.delete_address("lo", "127.0.0.1/8")
    outer.add_address("lo", "127.212.121.99/8")
    pair.first.set(listen_port=9999)
    pair.set_endpoints(of_second=f"127.0.0.1:{PORT_2}")
    expect_ping(pair.first.namespace, ADDRESS6_2)
    pair.expect_endpoint_of_first("127.212.121.99:9999")


@check(8, "roaming over IPv6")
def roaming_over_ipv6(testbed: Testbed) -> None:
    pair, _ = loopback_pair(testbed)
    pair.set_endpoints(f"127.0.0.1:{PORT_2}", f"127.0.0.1:{PORT_1}")
    pair.establish()
    pair.first.set(listen_port=9998)
    pair.set_endpoints(of_second=f"[::1]:{PORT_2}")
    expect_ping(pair.first.namespace, ADDRESS_2)
    pair.expect_endpoint_of_first("[::1]:9998")


@check(9, "the source filter refuses what another peer's narrower prefix covers, and still roams")
def source_filter(testbed: Testbed) -> None:
    pair, _ = loopback_pair(testbed)
    pair.set_endpoints(f"[::1]:{PORT_2}", f"[::1]:{PORT_1}")
    pair.establish()
    pair.first.set_peer(pair.keys_2.public, allowed_ips="192.168.241.0/24")
    inbox = testbed.enter(pair.first.namespace.udp_socket(ADDRESS_1, 1111))

    def send(text: bytes, sender: NetworkNamespace = pair.second.namespace) -> None:
        with sender.udp_socket(ADDRESS_2, 0) as outbox:
            outbox.sendto(text, (ADDRESS_1, 1111))

    def received() -> bytes:
        try:
            return inbox.recv(100)
        except TimeoutError:
            return b"nothing"

    send(b"before")
    expect_equal(received(), b"before", "what arrived without a narrower prefix")

    narrower = KeyPair.generate().public
    pair.first.set_peer(narrower, allowed_ips=f"{ADDRESS_2}/32")
    pair.second.set(listen_port=9997)
    send(b"refused")
    # That its endpoint was taken over shows that the datagram has been through: the endpoint comes from it alone.
    pair.expect_endpoint_of_second("[::1]:9997")
    inbox.settimeout(1)
    expect_equal(received(), b"nothing", "what arrived although another peer's narrower prefix covers its source")

    inbox.settimeout(2)
    pair.first.remove_peer(narrower)
    send(b"after")
    expect_equal(received(), b"after", "what arrived once the narrower prefix was gone")


@check(10, "new private keys carry traffic at once")
def new_private_keys(testbed: Testbed) -> None:
    pair, _ = loopback_pair(testbed)
    first, second = pair.first, pair.second
    of_second, of_first = f"127.0.0.1:{PORT_2}", f"127.0.0.1:{PORT_1}"
    pair.set_endpoints(of_second, of_first)
    pair.establish()

    # Both ends are configured anew with the keys they have.
    first.set(
        *first.peer_words(pair.keys_2.public, preshared_key=pair.preshared_key, allowed_ips=f"{ADDRESS_2}/32",
                          endpoint=of_second), private_key=pair.keys_1.private)
    second.set(
        *second.peer_words(pair.keys_1.public, preshared_key=pair.preshared_key, allowed_ips=f"{ADDRESS_1}/32"),
        private_key=pair.keys_2.private, listen_port=PORT_2)
    expect_ping(first.namespace, ADDRESS_2)

    # End 1 changes its key first, end 2 follows; end 2 does not know where its new peer is.
    third = KeyPair.generate()
    first.set(private_key=third.private)
    second.set(
        *second.peer_words(third.public, preshared_key=pair.preshared_key, allowed_ips=f"{ADDRESS_1}/32"),
        "peer", pair.keys_1.public, "remove")
    expect_ping(first.namespace, ADDRESS_2)

    # End 2 knows the new key before end 1 has it, and speaks first.
    fourth = KeyPair.generate()
    second.set(
        *second.peer_words(fourth.public, preshared_key=pair.preshared_key, allowed_ips=f"{ADDRESS_1}/32",
                           endpoint=of_first),
        "peer", third.public, "remove")
    first.set(private_key=fourth.private)
    expect_ping(second.namespace, ADDRESS_1)
    expect_ping(first.namespace, ADDRESS_2)
    expect(list(second.show_by_peer("peers")) == [fourth.public], "end 2 still lists a removed peer")

    # End 2 changes its own key, end 1 puts the new one in the old one's place.
    fifth = KeyPair.generate()
    second.set(private_key=fifth.private)
    first.set(
        *first.peer_words(fifth.public, preshared_key=pair.preshared_key, allowed_ips=f"{ADDRESS_2}/32",
                          endpoint=of_second),
        "peer", pair.keys_2.public, "remove")
    expect_ping(first.namespace, ADDRESS_2)
    wait_until(lambda: first.latest_handshake(fifth.public) > 0, "end 1's handshake with the new key showing", 1)
