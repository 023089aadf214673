"""Transfers that go on while the underlay changes under them."""

from file_transfer import Transfer, finish_all
from network_namespace import NetworkNamespace
from offload_checks.switches import Layout, switched_pair
from offload_checks.transfers import MEGABYTE, ways
from testbed import Testbed
from waiting import CheckFailure, wait_until

#: What each transfer must have moved on by before the next change comes, in bytes.
_STEP = MEGABYTE // 2


def _features(*words: str) -> "tuple[str, ...]":
    return ("ethtool", "-K", "under", *words)


def _mtu(bytes: int) -> "tuple[str, ...]":
    return ("ip", "link", "set", "under", "mtu", str(bytes))


#: Each change comes at end 1 and, a while later, at end 2; a new MTU at both at once, as what one end sends above the
#: other's MTU is lost.
_CHANGES = [
    _features("tx-udp-segmentation", "off"),
    _features("tx-udp-segmentation", "on"),
    _features("tx", "off"),
    _features("tx", "on"),
    _features("gro", "on"),
    _features("gro", "off"),
    _mtu(1280),
    _mtu(1500),
    # Both at once: trains without checksums to lean on, in fragments.
    _features("tx", "off"),
    _mtu(1280),
    _mtu(1500),
    _features("tx", "on"),
]


def change_underlay(testbed: Testbed, combination: "tuple[str, ...]", over_ipv6: bool) -> None:
    """Changes the underlay again and again; all transfers must move on after each change, and end well."""
    pair = switched_pair(testbed, combination, combination, Layout(over_ipv6=over_ipv6))
    transfers = [Transfer(*way, seed=seed, seconds=180) for seed, way in enumerate(ways(pair))]
    done = "the start"
    try:
        _expect_progress(transfers, done)
        for change in _CHANGES:
            for namespaces in _groups(change, pair.first.namespace, pair.second.namespace):
                for namespace in namespaces:
                    namespace.run(*change)
                done = f"`{' '.join(change)}` at {' and '.join(namespace.name for namespace in namespaces)}"
                _expect_progress(transfers, done)
        try:
            finish_all(transfers)
        except CheckFailure as failure:
            raise CheckFailure(f"after all changes: {failure}") from None
    finally:
        for one in transfers:
            one.close()


def _groups(
    change: "tuple[str, ...]", first: NetworkNamespace, second: NetworkNamespace
) -> "list[list[NetworkNamespace]]":
    return [[first, second]] if change[0] == "ip" else [[first], [second]]


def _expect_progress(transfers: "list[Transfer]", after: str) -> None:
    marks = [one.arrived + _STEP for one in transfers]
    wait_until(
        lambda: all(one.arrived >= mark for one, mark in zip(transfers, marks)),
        f"each transfer moving on by {_STEP:,} bytes after {after}", 20,
        detail=lambda: f"the missing bytes are {[max(0, mark - one.arrived) for one, mark in zip(transfers, marks)]}")
