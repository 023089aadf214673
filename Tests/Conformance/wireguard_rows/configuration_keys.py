"""Keys and single settings through `wg`."""

import commands
from testbed import Testbed
from waiting import expect, expect_equal
from wireguard_rows.configuration_bulk import idle_interface, networks
from wireguard_rows.registry import check
from wireguard_tool import KeyPair, generate_preshared_key

# The points of small order of Curve25519 and their non-canonical spellings: every shared secret with them is zero.
LOW_ORDER_KEYS = (
    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
    "AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
    "4Ot6fDtBuK4WVuP68Z/EatoJjeucMrH9hmIFFl9JuAA=",
    "X5yVvKNQjCSx0LFVnIPvWwREXMRYHI6G2CJO3dCfEVc=",
    "7P///////////////////////////////////////38=",
    "7f///////////////////////////////////////38=",
    "7v///////////////////////////////////////38=",
)


@check(28, "an interface that does not exist cannot be shown", judges=())
def no_such_interface(testbed: Testbed) -> None:
    interface = idle_interface(testbed)
    expect_equal(commands.run(["wg", "show", interface.name], check=False).returncode, 0, "the status of wg show")
    missing = f"{testbed.prefix}9"
    expect(commands.run(["wg", "show", missing], check=False).returncode != 0, f"wg show {missing} succeeds")
    interface.daemon.signal()
    interface.daemon.expect_clean_exit()
    testbed.resign(interface.daemon)
    expect(commands.run(["wg", "show", interface.name], check=False).returncode != 0,
           "wg show succeeds although the daemon has ended")


@check(29, "private and preshared keys are read back and cleared", judges=())
def keys_set_and_cleared(testbed: Testbed) -> None:
    interface = idle_interface(testbed)
    keys, peer, preshared_key = KeyPair.generate(), KeyPair.generate().public, generate_preshared_key()
    interface.set(*interface.peer_words(peer, preshared_key=preshared_key), private_key=keys.private)
    expect(interface.show("private-key") == keys.private, "the private key shown differs")
    expect_equal(interface.show("public-key"), keys.public, "the public key shown")
    expect(interface.show("preshared-keys").split() == [peer, preshared_key], "the preshared key shown differs")
    interface.set(*interface.peer_words(peer, preshared_key=""), private_key="")
    expect_equal(interface.show("private-key"), "(none)", "the cleared private key")
    expect_equal(interface.show("preshared-keys").split(), [peer, "(none)"], "the cleared preshared key")
    expect_equal(interface.show("peers"), peer, "the peers after the keys were cleared")


@check(30, "the own public key is no peer", judges=())
def own_key_as_peer(testbed: Testbed) -> None:
    interface = idle_interface(testbed)
    keys, others = KeyPair.generate(), KeyPair.generate()
    interface.set_peer(others.public)
    expect_equal(interface.show("peers"), others.public, "the peers without a private key")
    interface.set(private_key=others.private)
    expect_equal(interface.show("public-key"), others.public, "the public key")
    expect_equal(interface.show("peers"), "", "the peers once the private key makes the only one the own key")
    interface.set_peer(others.public)
    expect_equal(interface.show("peers"), "", "the peers after the own key was added")
    interface.set(private_key=keys.private)
    interface.set_peer(others.public)
    expect_equal(interface.show("peers"), others.public, "the peers after another private key was set")


@check(31, "a private key is read back clamped", judges=())
def clamped_key(testbed: Testbed) -> None:
    interface = idle_interface(testbed)
    keys = KeyPair.generate()
    # The generated key is clamped: with "/" first, only the three lowest bits of the first byte are wrong.
    interface.set(private_key="/" + keys.private[1:])
    expect(interface.show("private-key") == "+" + keys.private[1:], "the private key shown is not the clamped one")


@check(32, "overlapping allowed IPs belong to their last owner", judges=())
def last_owner_wins(testbed: Testbed) -> None:
    interface = idle_interface(testbed)
    first, second = KeyPair.generate().public, KeyPair.generate().public
    lists = (
        "0.0.0.0/0,10.0.0.0/8,100.0.0.0/10,172.16.0.0/12,192.168.0.0/16",
        "0.0.0.0/0",
        "::/0,1700::/111,5000::/4,e000::/37,9000::/75",
        "::/0",
    )
    owned: "dict[str, set[str]]" = {first: set(), second: set()}
    for peer in owned:
        interface.set_peer(peer)

    def give(peer: str, prefixes: str) -> None:
        interface.set_peer(peer, allowed_ips=prefixes)
        for other in owned:
            owned[other] -= networks(prefixes.split(","))
        owned[peer] = networks(prefixes.split(","))
        for who, words in interface.show_by_peer("allowed-ips").items():
            expect_equal(networks(word for word in words if word != "(none)"), owned[who],
                         f"the allowed IPs of the {'first' if who == first else 'second'} peer")

    for prefixes in lists:
        give(first, prefixes)
    for _ in range(3):
        for prefixes in lists:
            give(second, prefixes)
            give(first, prefixes)
        give(second, lists[0])
        give(first, lists[2])
    interface.remove_peer(second)
    expect_equal(list(interface.show_by_peer("allowed-ips")), [first], "the peers left")
    expect_equal(networks(interface.show_by_peer("allowed-ips")[first]), owned[first], "the allowed IPs left")


@check(33, "nothing is sent to peers with low-order public keys", judges=())
def low_order_keys(testbed: Testbed) -> None:
    interface = idle_interface(testbed)
    interface.set(private_key=KeyPair.generate().private)
    for key in LOW_ORDER_KEYS:
        interface.set_peer(key, persistent_keepalive=1, endpoint="127.0.0.1:1111")
    expect(interface.show("peers"), "the peers with low-order keys are not listed")
    with interface.namespace.udp_socket("127.0.0.1", 1111) as inbox:
        interface.up()
        try:
            data = inbox.recv(65535)
            expect(False, f"{len(data)} bytes were sent to a peer with a low-order public key")
        except TimeoutError:
            pass
        # What shows that the interface was able to send all the time.
        interface.set_peer(KeyPair.generate().public, persistent_keepalive=1, endpoint="127.0.0.1:1111")
        try:
            expect_equal(len(inbox.recv(65535)), 148, "the size of the first datagram to an honest peer")
        except TimeoutError:
            expect(False, "nothing was sent to an honest peer either")
