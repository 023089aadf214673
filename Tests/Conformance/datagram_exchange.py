"""UDP datagrams between two namespaces, compared one by one with what was sent, and in order.

Few are on their way at a time, so that none may be lost: what does not arrive is a failure.
"""

import contextlib
import random
import socket
import struct
from typing import Iterable, Iterator, Sequence

from network_namespace import NetworkNamespace
from waiting import CheckFailure, expect

#: Datagrams on their way at a time: few enough for a receive buffer of the kernel's default size.
WINDOW = 48
#: The most datagrams of one send with UDP_SEGMENT that every kernel takes.
MAXIMUM_SEGMENTS = 64
_MAXIMUM_SEND = 65_000

# linux/udp.h and asm-generic/socket.h; Python does not name them.
_UDP_SEGMENT, _UDP_GRO = 103, 104
_SO_NO_CHECK, _SO_RCVBUFFORCE = 11, 33


def send_one_by_one(
    source: NetworkNamespace,
    destination: NetworkNamespace,
    address: str,
    sizes: Sequence[int],
    *,
    seed: int,
    largest_whole: int,
    gathered: bool = False,
    checksum: bool = True,
) -> None:
    """Sends a datagram of each size in order; each must arrive unchanged.

    Those of at most `largest_whole` bytes, which need no fragments, must keep their order, and so must the others
    among themselves. `gathered` receives with UDP_GRO; without `checksum` they are sent with UDP checksum 0.
    """
    content = random.Random(seed)
    with _flow(source, destination, address, gathered) as (sender, receiver):
        if not checksum:
            sender.setsockopt(socket.SOL_SOCKET, _SO_NO_CHECK, 1)
        for start in range(0, len(sizes), WINDOW):
            window = [content.randbytes(size) for size in sizes[start:start + WINDOW]]
            for one in window:
                sender.send(one)
            arrived = _receive(receiver, len(window), address, window)
            for belongs in (lambda one: len(one) <= largest_whole, lambda one: len(one) > largest_whole):
                _compare([one for one in window if belongs(one)], [one for one in arrived if belongs(one)], address)


def send_segmented(
    source: NetworkNamespace,
    destination: NetworkNamespace,
    address: str,
    trains: "Iterable[tuple[int, int, int]]",
    *,
    seed: int,
    gathered: bool,
) -> None:
    """Sends each train with one call by way of UDP_SEGMENT: (size of a segment, their count, bytes of a last one or 0).

    Each segment must arrive as a datagram of its own, unchanged and in order. `gathered` receives with UDP_GRO.
    """
    content = random.Random(seed)
    with _flow(source, destination, address, gathered) as (sender, receiver):
        for size, count, last in trains:
            segments = [content.randbytes(size) for _ in range(count)] + ([content.randbytes(last)] if last else [])
            what = f"{address}, {count} segments of {size} and {last} bytes"
            sender.sendmsg(segments, [(socket.IPPROTO_UDP, _UDP_SEGMENT, struct.pack("=H", size))])
            _compare(segments, _receive(receiver, len(segments), what, segments), what)


def trains(segment_sizes: Iterable[int]) -> "Iterator[tuple[int, int, int]]":
    """Trains for `send_segmented` of each segment size: short and as long as can be, with every kind of last one."""
    for size in segment_sizes:
        longest = min(MAXIMUM_SEGMENTS - 1, _MAXIMUM_SEND // size - 1)
        for count in (2, 17, longest):
            for last in sorted({0, 1, size - 1}):
                yield size, count, last


@contextlib.contextmanager
def _flow(
    source: NetworkNamespace, destination: NetworkNamespace, address: str, gathered: bool
) -> "Iterator[tuple[socket.socket, socket.socket]]":
    with destination.udp_socket(address, 0, seconds=5) as receiver:
        with source.socket(receiver.family, socket.SOCK_DGRAM) as sender:
            receiver.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, 4 << 20)
            if gathered:
                receiver.setsockopt(socket.IPPROTO_UDP, _UDP_GRO, 1)
            sender.connect(receiver.getsockname())
            yield sender, receiver


def _receive(receiver: socket.socket, count: int, what: str, sent: "list[bytes]") -> "list[bytes]":
    """That many datagrams, those that UDP_GRO has gathered taken apart."""
    arrived: "list[bytes]" = []
    while len(arrived) < count:
        try:
            data, control, _, _ = receiver.recvmsg(1 << 16, 64)
        except TimeoutError:
            missing = [len(one) for one in sent if one not in arrived]
            raise CheckFailure(
                f"datagrams to {what}: {len(arrived)} of {count} arrived; missing the sizes {missing[:8]}, "
                f"arrived {[len(one) for one in arrived][:8]}") from None
        size = next((struct.unpack("=i", value[:4])[0] for level, kind, value in control
                     if (level, kind) == (socket.IPPROTO_UDP, _UDP_GRO)), 0) or len(data) or 1
        arrived += [data[start:start + size] for start in range(0, max(1, len(data)), size)]
    expect(len(arrived) == count, f"datagrams to {what}: {len(arrived)} arrived of {count}")
    return arrived


def _compare(sent: "list[bytes]", arrived: "list[bytes]", what: str) -> None:
    if sent == arrived:
        return
    if sorted(sent) == sorted(arrived):
        order = [sent.index(one) for one in arrived]
        raise CheckFailure(f"datagrams to {what}: the order is {order[:16]}")
    index = next((index for index, pair in enumerate(zip(sent, arrived)) if pair[0] != pair[1]),
                 min(len(sent), len(arrived)))
    lengths = [len(one) for one in sent[index:index + 4]], [len(one) for one in arrived[index:index + 4]]
    raise CheckFailure(
        f"datagrams to {what}: number {index} of {len(sent)} is not what was sent; sizes sent {lengths[0]}, "
        f"arrived {lengths[1]}")
