"""What a check of encrypted upstreams works with: an authority, a scripted server, and how a configuration names it."""

import functools
import struct
import time
from typing import Iterable, Optional

import dns_wire
from capture import PacketCapture
from dns_testbed import DNSTestbed
from dns_upstream import HTTPListener, Listener, SecureListener, Upstream
from dns_upstream.certificates import Authority, Identity, write_authorities
from dns_wire import Message
from waiting import expect

#: The name of the scripted server, and where it is.
SERVER, ADDRESS = "dns.example", "127.0.0.10"
#: What a failure is explained with (RFC 8914 §4): no reachable authority, network error, invalid data.
UNREACHABLE, NETWORK_ERROR, INVALID_DATA = 22, 23, 24
#: The ways to ask an upstream.
TRANSPORTS = ("udp", "tcp", "tls", "https")
#: How much later than its deadline an answer may be, in seconds: the machine runs ten checks at a time.
MARGIN = 1.0


class EncryptedSite:
    """A scripted server for TLS (port 853) and HTTPS (port 443) in a testbed's network. Nobody listens until told to.

    At its port 53, by UDP and TCP, are witnesses: whatever comes there came unencrypted.
    """

    def __init__(self, testbed: DNSTestbed, address: str = ADDRESS, server: str = SERVER, label: str = "",
                 upstream: Optional[Upstream] = None):
        self.testbed, self.address, self.server = testbed, address, server
        self.authority = Authority.root(f"authority{label}")
        self.authority_file = write_authorities(testbed.file(f"authority{label}.pem"), self.authority)
        self.listener: Optional[SecureListener] = None  # the one that `serving` opened
        self.upstream = upstream or testbed.enter(Upstream(testbed.network, address))

    @functools.cached_property
    def identity(self) -> Identity:
        """A certificate that is in order, for the server's name and address."""
        return self.authority.issue(self.server, self.address)

    def tls(self, identity: Optional[Identity] = None, **options) -> SecureListener:
        """Listens for DNS over TLS."""
        return self.upstream.tls(identity or self.identity, **options)

    def https(self, identity: Optional[Identity] = None, **options) -> HTTPListener:
        """Listens for DNS over HTTPS."""
        return self.upstream.https(identity or self.identity, **options)

    def listen(self, transport: str, identity: Optional[Identity] = None, **options) -> Listener:
        """Listens by the name of a transport."""
        if transport in ("udp", "tcp"):
            return {"udp": self.upstream.udp, "tcp": self.upstream.tcp}[transport](**options)
        return {"tls": self.tls, "https": self.https}[transport](identity, **options)

    def witness(self) -> None:
        """Listens at port 53 for what must not come unencrypted."""
        self.upstream.udp()
        self.upstream.tcp()

    def member(self, transport: str, **more) -> dict:
        """The server as a member of `dns.upstreams`; `more` replaces or adds keys, None takes one away."""
        if transport in ("udp", "tcp"):
            return {"url": f"{transport}://{self.address}:53"}
        url = {"tls": f"tls://{self.server}", "https": f"https://{self.server}/dns-query"}[transport]
        members = {"url": url, "addresses": [self.address], "caFile": self.authority_file, **more}
        return {key: value for key, value in members.items() if value is not None}

    def forward(self, transport: str, **more):
        """Starts a daemon with the server as its only upstream; `more` are members of `dns`."""
        return self.testbed.run(self.member(transport), **more)


def serving(testbed: DNSTestbed, transport: str, **options) -> EncryptedSite:
    """A site whose server listens for TLS or HTTPS with a good certificate."""
    site = EncryptedSite(testbed)
    site.listener = site.listen(transport, **options)
    return site


def names(label: str, count: int) -> "list[str]":
    """Names that nobody has asked for before."""
    return [f"{label}-{number}.example.org" for number in range(1, count + 1)]


def ask_all(testbed: DNSTestbed, asked: "Iterable[str]", kind: int = dns_wire.A, seconds: float = 8.0,
            ) -> "dict[str, Message]":
    """Asks for several names at once from one UDP socket, and returns the answers by name; all must come."""
    asked = list(asked)
    with testbed.client("udp") as client:
        for number, name in enumerate(asked):
            client.send(dns_wire.query(name, kind, identifier=number, edns=dns_wire.opt()))
        answers: "dict[str, Message]" = {}
        deadline = time.monotonic() + seconds
        while len(answers) < len(asked):
            data = client.receive_bytes(deadline - time.monotonic())
            expect(data is not None,
                   f"{len(asked) - len(answers)} of {len(asked)} queries are not answered within {seconds:g} s")
            message = Message.checked(data)
            expect(message.identifier < len(asked), f"an answer with an ID that no query had: {message}")
            name = asked[message.identifier]
            expect(message.question.name == dns_wire.name(name), f"the answer to {name} is another one: {message}")
            expect(name not in answers, f"{name} is answered twice")
            answers[name] = message
    return answers


def expect_good(answer: Message, addresses: "Iterable[str]" = ("192.0.2.1",)) -> Message:
    """The answer must be the upstream's."""
    expect(answer.code == 0 and answer.addresses == list(addresses),
           f"expected the addresses {', '.join(addresses)}, and came: {answer}")
    return answer


def expect_failure(answer: Message, *errors: int) -> Message:
    """The answer must be SERVFAIL with one of these extended errors, or any when none is named."""
    expect(answer.code == dns_wire.SERVFAIL and not answer.answers, f"expected SERVFAIL, and came: {answer}")
    found = answer.edns.errors if answer.edns else []
    wanted = " or ".join(map(str, errors)) or "of any number"
    expect(found and (not errors or found[0] in errors),
           f"expected the extended error {wanted}, and came {found}: {answer}")
    return answer


def ask(testbed: DNSTestbed, name: str, kind: int = dns_wire.A, transport: str = "udp", **parts) -> Message:
    """Asks with EDNS, so that a failure has its reason."""
    return testbed.ask(name, kind, transport, edns=dns_wire.opt(), **parts)


def ask_in_time(testbed: DNSTestbed, name: str, limit: float, kind: int = dns_wire.A) -> Message:
    """Asks, and fails when the answer takes longer than `limit` seconds."""
    started = time.monotonic()
    answer = ask(testbed, name, kind)
    taken = time.monotonic() - started
    expect(taken <= limit, f"{name} was answered after {taken:.2f} s, and {limit:g} s were expected at most: {answer}")
    return answer


class ClearTextWatch:
    """Sees to it that no name that a client asks for passes the network unencrypted, but between client and daemon."""

    def __init__(self, testbed: DNSTestbed):
        self._capture = testbed.enter(PacketCapture(testbed.network, "lo"))

    def expect_nothing_of(self, *names: str) -> None:
        """No packet may have one of these names in it unless it comes from, or goes to, port 53 of 127.0.0.1 or ::1."""
        for packet in self._capture.packets:
            if _is_of_the_daemon(packet.data):
                continue
            data = packet.data.lower()
            for name in names:
                expect(dns_wire.name(name)[:-1] not in data and name.encode() not in data,
                       f"{name} is in the clear in a packet: {packet.data.hex()}")

    def expect_no_port(self, *ports: int) -> None:
        """No packet may go to one of these ports but those of the daemon itself at port 53."""
        for packet in self._capture.packets:
            if not _is_of_the_daemon(packet.data):
                _, _, _, port = _ends(packet.data)
                expect(port not in ports, f"a packet went to port {port}: {packet.data.hex()}")


def _ends(packet: bytes) -> "tuple[bytes, int, bytes, int]":
    """Source and destination of an IP packet with their ports, which are 0 when it is neither UDP nor TCP."""
    if packet[0] >> 4 == 4:
        protocol, start, source, destination = packet[9], (packet[0] & 15) * 4, packet[12:16], packet[16:20]
    else:
        protocol, start, source, destination = packet[6], 40, packet[8:24], packet[24:40]
    ports = struct.unpack_from(">HH", packet, start) if protocol in (6, 17) and len(packet) >= start + 4 else (0, 0)
    return source, ports[0], destination, ports[1]


def _is_of_the_daemon(packet: bytes) -> bool:
    listening = (bytes([127, 0, 0, 1]), bytes(15) + b"\1")
    source, source_port, destination, destination_port = _ends(packet)
    return source in listening and source_port == 53 or destination in listening and destination_port == 53
