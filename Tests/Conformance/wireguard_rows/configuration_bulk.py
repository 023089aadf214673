"""Configurations large enough for a reader or writer to need several messages."""

import base64
import ipaddress
from typing import Iterable

import uapi
from testbed import Testbed
from waiting import expect, expect_equal
from wireguard_rows.registry import check
from wireguard_tool import KeyPair, WireGuardInterface


def networks(words: Iterable[str]) -> "set[str]":
    """Prefixes in one canonical spelling each."""
    return {str(ipaddress.ip_network(word)) for word in words}


def idle_interface(testbed: Testbed) -> WireGuardInterface:
    """An interface of the program under test that nothing is configured on and whose link is down."""
    return testbed.interface(1, testbed.namespace("0"))


@check(23, "130,560 allowed IPs of one peer are read back", judges=())
def many_allowed_ips(testbed: Testbed) -> None:
    interface = idle_interface(testbed)
    peer = KeyPair.generate().public
    prefixes = [prefix for a in range(1, 256) for b in range(256) for prefix in (f"{a}.{b}.0.0/16", f"{a}::{b}/128")]
    lines = "".join(f"AllowedIPs={prefixes[i]},{prefixes[i + 1]}\n" for i in range(0, len(prefixes), 2))
    interface.setconf(
        f"[Interface]\nPrivateKey={KeyPair.generate().private}\n[Peer]\nPublicKey={peer}\n{lines}")
    shown = interface.show("allowed-ips")
    words = shown.split()
    expect_equal(words[0], peer, "the peer shown")
    expect_equal(len(words) - 1, 255 * 256 * 2, "the number of allowed IPs shown")
    expect(networks(words[1:]) == networks(prefixes), "the allowed IPs shown are not those that were set")
    expect(interface.show("allowed-ips") == shown, "the order differs from one reading to the next")


@check(24, "40 peers with 52 allowed IPs each are read back", judges=())
def many_peers(testbed: Testbed) -> None:
    interface = idle_interface(testbed)
    expected = {KeyPair.generate().public: [f"{a}.{b}.0.0/16" for b in range(1, 53)] for a in range(1, 41)}
    configuration = f"[Interface]\nPrivateKey={KeyPair.generate().private}\n"
    for peer, prefixes in expected.items():
        configuration += f"[Peer]\nPublicKey={peer}\n" + "".join(f"AllowedIPs={prefix}\n" for prefix in prefixes)
    interface.setconf(configuration)
    shown = interface.show_by_peer("allowed-ips")
    expect_equal({peer: networks(prefixes) for peer, prefixes in shown.items()},
                 {peer: networks(prefixes) for peer, prefixes in expected.items()}, "what is shown")
    expect(all(len(prefixes) == 52 for prefixes in shown.values()), "an allowed IP is shown twice")


@check(25, "30 peers written by setconf come back from showconf in their order", judges=())
def setconf_showconf(testbed: Testbed) -> None:
    interface = idle_interface(testbed)
    peers = [KeyPair.generate().public for _ in range(30)]
    last = ["255.2.3.4/32", "abcd::255/128"]
    interface.setconf("".join(f"[Peer]\nPublicKey={peer}\n" for peer in peers) + f"AllowedIPs={','.join(last)}\n")
    lines = [line.replace(" ", "") for line in interface.showconf().splitlines()]
    shown = [line.split("=", 1)[1] for line in lines if line.startswith("PublicKey=")]
    expect_equal(sorted(shown), sorted(peers), "the peers of showconf")
    expect(shown == peers, "showconf does not list the peers in the order of their creation")
    allowed = [line.split("=", 1)[1] for line in lines if line.startswith("AllowedIPs=")]
    expect_equal([networks(line.split(",")) for line in allowed], [networks(last)], "the allowed IPs of showconf")
    expect(lines.index(f"PublicKey={peers[-1]}") < lines.index(f"AllowedIPs={allowed[0]}"),
           "the allowed IPs are another peer's in showconf")
    expect(not any(line.startswith("PrivateKey") for line in lines), "showconf shows a private key that was never set")


@check(26, "a peer without and one with 197 allowed IPs, in the order of their creation", judges=())
def creation_order(testbed: Testbed) -> None:
    interface = idle_interface(testbed)
    first, second = KeyPair.generate().public, KeyPair.generate().public
    prefixes = [f"abcd::{i}" for i in range(1, 198)]
    # Neither order of the two keys as text may be luck: both are tried, and then many peers at once.
    for peers in ([first, second], [second, first]):
        interface.setconf("")
        interface.set_peer(peers[0])
        interface.set_peer(peers[1], allowed_ips=",".join(prefixes))
        shown = interface.show_by_peer("allowed-ips")
        expect(list(shown) == peers, "the peers are not listed in the order of their creation")
        expect_equal(shown[peers[0]], ["(none)"], "the first peer's allowed IPs")
        expect_equal(len(shown[peers[1]]), 197, "the number of the second peer's allowed IPs")
        expect(networks(shown[peers[1]]) == networks(prefixes), "the second peer's allowed IPs differ")
    interface.setconf("")
    expect_equal(interface.show("peers"), "", "the peers after an empty setconf")
    many = [KeyPair.generate().public for _ in range(20)]
    for peer in many:
        interface.set_peer(peer)
    expect(interface.show("peers").split() == many, "20 peers are not listed in the order of their creation")


@check(27, "allowed IPs are removed one by one", judges=())
def incremental_removal(testbed: Testbed) -> None:
    interface = idle_interface(testbed)
    peer, other = KeyPair.generate().public, KeyPair.generate().public
    prefixes = [f"192.168.0.{i}/32" for i in range(1, 198)] + [f"abcd::{i}/128" for i in range(1, 198)]
    removed = [f"192.168.0.{i}/32" for i in (1, 20, 100)] + [f"abcd::{i}/128" for i in (1, 20, 100)]
    interface.set_peer(peer, allowed_ips=",".join(prefixes))
    interface.set_peer(other, allowed_ips="10.0.0.0/8")

    # Debian 12's wg has no syntax for it yet: the protocol line itself.
    def remove(public_key: str, *gone: str) -> None:
        reply = uapi.set(interface.daemon.socket_path, f"public_key={hexadecimal(public_key)}",
                         *(f"allowed_ip=-{prefix}" for prefix in gone))
        expect_equal(reply.errno, 0, f"errno after removing {len(gone)} allowed IPs")

    remove(peer, *removed)
    shown = interface.show_by_peer("allowed-ips")
    expect_equal(len(shown[peer]), 388, "the number of allowed IPs left")
    expect(networks(shown[peer]) == networks(prefixes) - networks(removed), "other allowed IPs were removed than asked")

    # What another peer owns, and what nobody owns, is not this peer's to remove.
    remove(peer, "10.0.0.0/8", "172.16.0.0/12")
    shown = interface.show_by_peer("allowed-ips")
    expect_equal(shown[other], ["10.0.0.0/8"], "the other peer's allowed IPs")
    expect_equal(len(shown[peer]), 388, "the number of allowed IPs left")


def hexadecimal(key: str) -> str:
    """A base64 key as the configuration protocol spells it."""
    return base64.b64decode(key).hex()
