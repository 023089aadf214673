"""Servers that break the protocol of their connections: clients get their answers by another connection."""

import random
import struct
from typing import Callable

from dns_checks.registry import check
from dns_site import ask_in_time, expect_good, serving
from dns_testbed import DNSTestbed
from dns_upstream import Connection, Received, Response, scripts
from waiting import expect


def _frame(kind: int, flags: int, stream: int, payload: bytes, length: "int | None" = None) -> bytes:
    """An HTTP/2 frame (RFC 9113 §4.1), with another length than its payload's when one is given."""
    size = len(payload) if length is None else length
    return size.to_bytes(3, "big") + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def _http2(stream: int) -> "dict[str, bytes]":
    """What no server may send while `stream` is open."""
    return {
        "noise": random.Random(stream).randbytes(200),
        "huge-frame": _frame(0, 0, stream, b"x" * 100, 0xFFFFFF),
        "bad-compression": _frame(1, 4, stream, b"\xff\xff\xff\xff\xff\xff"),
        "data-before-headers": _frame(0, 1, stream, b"x" * 20),
        "data-of-connection": _frame(0, 0, 0, b"x"),
        "data-of-idle-stream": _frame(0, 0, stream + 100, b"x"),
        "push": _frame(5, 4, stream, struct.pack(">I", 2) + b"\x88"),
        "settings-cut": _frame(4, 0, 0, b"\0\3\0"),
        "settings-of-stream": _frame(4, 0, stream, b""),
        "no-window": _frame(8, 0, 0, bytes(4)),
        "window-too-wide": _frame(8, 0, 0, struct.pack(">I", 0x7FFFFFFF)),
        "lone-continuation": _frame(9, 4, stream, b"\x88"),
        "reset-of-idle-stream": _frame(3, 0, stream + 100, struct.pack(">I", 8)),
        "ping-cut": _frame(6, 0, 0, b"1234"),
        "go-away-cut": _frame(7, 0, 0, b"\0\0"),
        "upper-case-field": _frame(1, 4, stream, b"\x88\x40\x01A\x01b"),
        "no-status": _frame(1, 5, stream, b"\x40\x01a\x01b"),
        "priority-cut": _frame(2, 0, stream, b"1"),
    }


#: What a server of DNS over TLS may not send, as bytes of the stream.
_FRAMING = {
    "noise": random.Random(1).randbytes(3000),
    "empty-message": b"\0\0",
    "short-message": b"\0\5hello",
    "eleven-bytes": b"\0\x0b" + bytes(11),
    "zeros": b"\xff\xff" + bytes(65535),
    "others": b"\0\x0c" + struct.pack(">HHHHHH", 0xFFFF, 0x8180, 0, 0, 0, 0),
}


def _judge(testbed: DNSTestbed, transport: str, label: str, spoil: "Callable[[Received], None]") -> None:
    """The first connection is spoiled when a query is under way; the query must be answered all the same."""
    site = serving(testbed, transport)
    spoilt: "list[Connection]" = []

    def script(received: Received) -> Response:
        if not spoilt:
            spoilt.append(received.connection)
            # Behind what the connection has to say by itself, such as that it has read the client's SETTINGS.
            site.upstream.later(0.02, spoil, received)
            return None
        return scripts.usual(received.query)

    site.upstream.script = script
    daemon = testbed.run(site.member(transport), timeoutSeconds=3)
    for number in range(3):
        expect_good(ask_in_time(testbed, f"{label}-{number}.example.org", 3))
    expect(spoilt, "nothing was spoilt")
    daemon.stop()
    testbed.resign_dns(daemon)
    site.listener.close(connections=True)
    site.upstream.stop()


@check("D7.garbage", "a server that breaks HTTP/2 in the middle costs its connection, and no answer")
def broken_http2(testbed: DNSTestbed) -> None:
    for label in _http2(1):
        _judge(testbed, "https", label, lambda received: received.connection.write(
            _http2(received.request.stream)[label]))
    testbed.run()


@check("E4.garbage", "a server that sends by TLS what are no messages costs its connection, and no answer")
def broken_framing(testbed: DNSTestbed) -> None:
    for label, noise in _FRAMING.items():
        _judge(testbed, "tls", label, lambda received: received.connection.write(noise))
    testbed.run()


@check("E6.garbage", "bytes in the middle of TLS that are no records cost a connection, and no answer")
def broken_records(testbed: DNSTestbed) -> None:
    records = {
        "noise": random.Random(2).randbytes(500),
        "alert": b"\x15\3\3\0\2\2\x28",
        "record": b"\x17\3\3\0\x20" + bytes(32),
        "plain": b"HTTP/1.1 400 Bad Request\r\n\r\n",
        "cut": b"\x17\3\3\x40\0",
        "too-long": b"\x17\3\3\xff\xff" + bytes(200),
    }
    for transport in ("tls", "https"):
        for label, noise in records.items():
            _judge(testbed, transport, f"{label}-{transport}",
                   lambda received: received.connection.write_raw(noise))
    testbed.run()
