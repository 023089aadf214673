"""What clients say about themselves: where it goes and where not (RFC 7871, RFC 6891 §6.2.6)."""

import struct

import dns_wire
from dns_checks.registry import check
from dns_checks.shape import expect_addresses, expect_code
from dns_site import TRANSPORTS as UPSTREAM_TRANSPORTS
from dns_site import EncryptedSite
from dns_testbed import TRANSPORTS, DNSTestbed
from dns_upstream import Received, messages, scripts
from dns_wire import CLIENT_SUBNET, FORMERR, RD, Message
from waiting import expect, expect_equal


def subnet(address: bytes, source: int = 24, scope: int = 0, family: int = 1) -> bytes:
    """The value of an option: as many octets as are given."""
    return struct.pack(">HBB", family, source, scope) + address


NEAR, SAME, FAR = (subnet(bytes((198, 51, third))) for third in (100, 111, 112))
NONE = subnet(b"", 0)
SIX = subnet(bytes.fromhex("20010db8000100"), 56, family=2)


def scoped(value: bytes, scope: int) -> bytes:
    """The same network with a scope."""
    return value[:3] + bytes([scope]) + value[4:]


def ask(testbed: DNSTestbed, name: str, value: "bytes | None", transport: str = "udp") -> Message:
    """Asks with a network, or with an OPT record alone."""
    options = b"" if value is None else dns_wire.option(CLIENT_SUBNET, value)
    return testbed.ask(name, transport=transport, edns=dns_wire.opt(options=options))


def subnets(answer: Message) -> "list[bytes]":
    """The values of the answer's options about networks."""
    return [data for code, data in answer.edns.options if code == CLIENT_SUBNET]


def tailored(scope: "int | None"):
    """A script: an address with the third octet of the client's network, for so many bits; None to say nothing."""
    def script(received: Received) -> bytes:
        value = received.query.edns and received.query.edns.option(CLIENT_SUBNET)
        last = value[6] if value and len(value) > 6 else 1
        options = [(CLIENT_SUBNET, scoped(value, scope))] if value is not None and scope is not None else []
        return messages.answer(received.query, [messages.address(f"192.0.2.{last}")], edns=False,
                               additional=[messages.options_record(options=options)])

    return script


def sent(testbed: DNSTestbed, name: str) -> "list[bytes | None]":
    """What the upstream was told about networks, with each question for a name."""
    return [one.query.edns and one.query.edns.option(CLIENT_SUBNET) for one in testbed.upstream.asked(name)]


@check("B19.pass", "when it is to be passed on, a network reaches the upstream and its scope the client")
def passed(testbed: DNSTestbed) -> None:
    testbed.upstream.script = tailored(20)
    testbed.run(clientSubnet="pass")
    for transport in TRANSPORTS:
        name = f"pass-{transport}.example"
        for _ in range(3):
            answer = expect_addresses(ask(testbed, name, NEAR, transport), "192.0.2.100")
            expect_equal(subnets(answer), [scoped(NEAR, 20)], "the network of the answer")
        expect_equal(sent(testbed, name), [NEAR], "what the upstream was told")
        plain = expect_addresses(ask(testbed, name, None, transport), "192.0.2.1")
        expect_equal(subnets(plain), [], "the networks in an answer to who told none")
        expect_equal(sent(testbed, name), [NEAR, None], "what the upstream was told")
        # Answers of the proxy's own are for all.
        expect_equal(subnets(ask(testbed, "localhost", NEAR, transport)), [NEAR], "the network of a local answer")


@check("B19.scope", "an answer is kept for the network of its scope and for no other")
def scopes(testbed: DNSTestbed) -> None:
    testbed.upstream.script = tailored(20)
    testbed.run(clientSubnet="pass")
    for _ in range(3):
        expect_addresses(ask(testbed, "scope.example", NEAR), "192.0.2.100")
        # 198.51.111.0/24 is in 198.51.96.0/20 too, 198.51.112.0/24 is not.
        expect_addresses(ask(testbed, "scope.example", SAME), "192.0.2.100")
        expect_addresses(ask(testbed, "scope.example", FAR), "192.0.2.112")
        expect_addresses(ask(testbed, "scope.example", subnet(b"\xc6\x33", 16)), "192.0.2.1")
        expect_addresses(ask(testbed, "scope.example", None), "192.0.2.1")
    told = [NEAR, FAR, subnet(b"\xc6\x33", 16), None]
    expect_equal(sent(testbed, "scope.example"), told, "what the upstream was told")


@check("B19.all", "an answer with scope 0, or that says nothing about networks, is for all")
def for_all(testbed: DNSTestbed) -> None:
    daemon = testbed.run(clientSubnet="pass")
    for scope in (0, None):
        testbed.upstream.script = tailored(scope)
        name = f"all-{scope}.example".lower()
        for value in (NEAR, SIX, FAR):
            answer = expect_addresses(ask(testbed, name, value), "192.0.2.100")
            expect_equal(subnets(answer), [value], "the network of the answer")
        expect_addresses(ask(testbed, name, None), "192.0.2.100")
        expect_equal(sent(testbed, name), [NEAR], "what the upstream was told")
    daemon.expect_running()


@check("B19.none", "who wants nothing told about itself is passed on as such, and gets nobody else's answer")
def anonymous(testbed: DNSTestbed) -> None:
    testbed.upstream.script = tailored(0)
    testbed.run(clientSubnet="pass")
    for value in (NONE, subnet(b"", 0, family=2)):
        name = f"none-{value[1]}.example"
        for _ in range(3):
            answer = expect_addresses(ask(testbed, name, value), "192.0.2.1")
            expect_equal(subnets(answer), [value], "the network of the answer")
        # What was made for nobody is not for who tells more.
        expect_addresses(ask(testbed, name, NEAR), "192.0.2.100")
        expect_addresses(ask(testbed, name, value), "192.0.2.1")
        expect_equal(sent(testbed, name), [value, NEAR], "what the upstream was told")


@check("B19.form", "a network that is not in order is FORMERR, whether it would be passed on or not")
def malformed(testbed: DNSTestbed) -> None:
    bad = {
        "family 3": subnet(b"\xc6\x33\x64", family=3), "a prefix of 33": subnet(b"\xc6\x33\x64\1\1", 33),
        "a scope": subnet(b"\xc6\x33\x64", 24, 24), "bits behind the prefix": subnet(b"\xc6\x33\x64", 19),
        "an address that is too long": subnet(b"\xc6\x33", 8), "an address that is too short": subnet(b"\xc6\x33", 24),
        "no scope": b"\0\1\x18", "nothing": b"", "a prefix of 129": subnet(bytes(17), 129, family=2),
    }
    for mode in ("pass", "remove"):
        daemon = testbed.run(clientSubnet=mode)
        for transport in TRANSPORTS:
            for what, value in bad.items():
                expect_code(ask(testbed, "form.example", value, transport), FORMERR, what=f"the answer to {what}")
        testbed.expect_nothing_asked()
        if mode == "pass":
            daemon.stop()
            testbed.resign_dns(daemon)


@check("B19.other", "an answer about another network than was asked for is none")
def other_network(testbed: DNSTestbed) -> None:
    def script(received: Received):
        value = received.query.edns.option(CLIENT_SUBNET)

        def answer(last: int, options) -> bytes:
            return messages.answer(received.query, [messages.address(f"192.0.2.{last}")], edns=False,
                                   additional=[messages.options_record(options=options)])

        wrong = [scoped(FAR, 24), subnet(b"\xc6\x33", 16, 16), b"\0\1"]
        return [answer(66, [(CLIENT_SUBNET, one)]) for one in wrong] + [answer(7, [(CLIENT_SUBNET, scoped(value, 24))])]

    testbed.upstream.script = script
    testbed.run(clientSubnet="pass")
    for _ in range(3):
        expect_addresses(ask(testbed, "other.example", NEAR), "192.0.2.7")


@check("B19.bound", "a client that tells many networks does not make the daemon keep them all")
def bounded(testbed: DNSTestbed) -> None:
    testbed.upstream.script = tailored(24)
    daemon = testbed.run(clientSubnet="pass")
    with testbed.client("udp") as client:
        for number in range(50):
            value = subnet(bytes((198, 18, number)))
            client.exchange(dns_wire.query("bound.example", edns=dns_wire.opt(options=dns_wire.option(8, value))))
    kept = daemon.status()["dns"]["cache"]["answers"]
    expect(kept <= 16, f"{kept} answers of one name are kept")


#: Everything that a client could be known by, or that concerns its own hop (the IANA registry of EDNS options).
EVERY_OPTION = {
    1: bytes(18), 2: bytes(4), 3: b"", 5: b"\x08\x0d", 6: b"\2", 7: b"\1", 8: NEAR, 9: b"", 10: b"12345678", 11: b"",
    12: bytes(20), 13: dns_wire.name("trust.example"), 14: b"\x4a\x5c", 15: b"\0\0", 16: b"\x10\x92", 17: b"\1",
    18: dns_wire.name("agent.example"), 19: b"\0", 26946: b"device", 65001: b"02:00:00:00:00:01", 65073: b"mac",
    65074: b"cpe", 65534: bytes(100),
}


@check("G10", "no option of a client, nor its flags, sizes and ID, reaches an upstream, whatever the transport")
def identifiers(testbed: DNSTestbed) -> None:
    site = EncryptedSite(testbed)
    site.upstream.script = scripts.addresses()
    options = b"".join(dns_wire.option(code, data) for code, data in EVERY_OPTION.items())
    for upstream in UPSTREAM_TRANSPORTS:
        site.listen(upstream)
        daemon = site.forward(upstream)
        for transport in TRANSPORTS:
            name = f"g10-{upstream}-{transport}.example"
            edns = dns_wire.opt(3999, flags=0x5A5A, options=options)
            query = dns_wire.query(name, identifier=0xBEEF, flags=RD | dns_wire.AD | dns_wire.Z, edns=edns)
            # Behind the OPT record of a client there may be more that is nobody's business.
            extra = messages.record(16, b"\7private", owner=b"\0")
            query = query[:10] + b"\0\2" + query[12:] + extra
            expect_addresses(testbed.exchange(query, transport), "192.0.2.1")
            for one in site.upstream.asked(name):
                _expect_anonymous(one, upstream)
        daemon.stop()
        testbed.resign_dns(daemon)
    site.forward("udp")


def _expect_anonymous(received: Received, transport: str) -> None:
    query, own = received.query, received.query.edns
    allowed = {dns_wire.PADDING} if transport in ("tls", "https") else set()
    found = [code for code, _ in own.options] if own else []
    expect(set(found) <= allowed and len(found) <= 1, f"options {found} reached an upstream by {transport}")
    expect(not any(any(data) for _, data in own.options), "padding that is not zero")
    expect_equal((own.payload_size, own.version, own.flags), (1232, 0, 0), f"size, version and flags by {transport}")
    expect_equal(query.flags, RD, f"the flags of the query by {transport}")
    expect_equal(query.counts, (1, 0, 0, 1), f"the counts of the query by {transport}")
    expect(query.id == 0 if transport == "https" else query.id != 0xBEEF, "the client's ID is the upstream's")
    if received.request is not None:
        names = {name for name, _ in received.request.fields}
        known = {":method", ":scheme", ":authority", ":path", "accept", "content-type", "content-length"}
        expect(names <= known, f"header fields that nobody needs: {sorted(names - known)}")
