"""The header, the opcode and the question."""

import dns_wire
from dns_testbed import DNSTestbed
from dns_checks.registry import check
from dns_wire import QR, RD
from waiting import expect

UPSTREAM = "udp://127.0.0.2:53"


@check("A2", "what says to be an answer is dropped")
def answers(testbed: DNSTestbed) -> None:
    testbed.run(UPSTREAM)
    client = testbed.udp()
    testbed.expect_silence(client, [dns_wire.query("localhost", flags=flags) for flags in (QR, QR | RD, 0x8180, 0x8583)])
    with testbed.client("tcp") as other:
        good = dns_wire.query("localhost")
        other.send(dns_wire.query("localhost", flags=0x8180), good)
        # The connection may end, too.
        data = other.receive_bytes()
        expect(data is not None and data[:2] in (b"", good[:2]), f"an answer by TCP was answered: {data and data.hex()}")
