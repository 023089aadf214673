"""Clients by TLS: how many, padding, and how they shake hands (RFC 7858, RFC 9325)."""

import errno
import socket
import ssl

import dns_wire
from dns_checks.registry import check
from dns_checks.shape import expect_addresses
from dns_client import framed
from dns_secure_client import SERVER, SecureListening, query
from dns_testbed import DNSTestbed
from dns_upstream import messages, scripts
from waiting import CheckFailure, expect, expect_equal, pause, wait_until


@check("C6.tls-many", "many clients by TLS are too many together with those by TCP, and take memory within bounds")
def many(testbed: DNSTestbed) -> None:
    listening = SecureListening(testbed)
    # On a busy machine three hundred handshakes take longer than clients may usually be idle.
    daemon = listening.run(clientIdleSeconds=120)
    started = daemon.memory()
    plain = [testbed.tcp() for _ in range(20)]
    context = listening.context("dot")
    clients = [listening.tls(context=context) for _ in range(300)]
    with listening.tls() as last:
        expect_addresses(last.exchange(dns_wire.query("localhost")), "127.0.0.1")
    counts = daemon.status()["dns"]["clients"]
    expect(counts["tcp"]["connected"] <= 256, f"more clients are connected than there may be: {counts}")
    expect(counts["tcp"]["displaced"] >= 65, f"too few clients made room: {counts}")
    expect(all(client.receive_bytes() == b"" for client in plain), "the idlest of all did not make room")
    grown = daemon.memory() - started
    expect(grown < 24 << 20, f"256 clients take {grown / 1048576:.1f} MiB")
    # As if a ClientHello of 128 KiB came to each: a header alone would have that much allocated.
    greedy = []
    for _ in range(256):
        one = testbed.network.socket(socket.AF_INET, socket.SOCK_STREAM)
        one.connect(("127.0.0.1", 853))
        one.sendall(b"\x16\3\1\x40\0\1\1\xff\xff\3\3")
        greedy.append(one)
    wait_until(lambda: daemon.status()["dns"]["clients"]["secure"]["overlongHandshakes"] >= 250,
               "ClientHellos without an end being refused", 10)
    for one in greedy:
        one.close()
    for client in clients:
        client.socket.close()
    wait_until(lambda: daemon.status()["dns"]["clients"]["tcp"]["connected"] == 0, "all clients being gone", 10)


def _connection(testbed: DNSTestbed, source: str, target: str, data: bytes = b"") -> socket.socket:
    one = testbed.enter(testbed.network.socket(socket.AF_INET, socket.SOCK_STREAM))
    one.settimeout(5)
    one.bind((source, 0))
    one.connect((target, 853))
    one.sendall(data)
    return one


def _is_open(one: socket.socket) -> bool:
    one.setblocking(False)
    try:
        return one.recv(1) != b""
    except BlockingIOError:
        return True
    except ConnectionResetError:
        return False


@check("C6.handshakes", "who shakes hands for long makes room, for others of his address and then for all, and harms nobody")
def slow_handshakes(testbed: DNSTestbed) -> None:
    addresses = [f"192.0.2.{number}" for number in (101, 102, 103)]
    for one in addresses:
        testbed.network.run("ip", "address", "add", f"{one}/32", "dev", "lo")
    listening = SecureListening(testbed)
    secure = listening.member(tls=["0.0.0.0:853"], https=None, maxHandshakes=8, maxHandshakesPerClient=3)
    daemon = listening.run(secure=secure)

    def counts() -> dict:
        return daemon.status()["dns"]["clients"]["secure"]

    # The begin of a ClientHello of 508 bytes, each when the one before it has been accepted.
    begun: "list[socket.socket]" = []
    for source in (*addresses[:1] * 5, *addresses[1:2] * 3, *addresses[2:] * 3):
        begun.append(_connection(testbed, source, addresses[0], b"\x16\3\1\2\0\1\0\1\xfc\3\3"))
        wait_until(lambda: daemon.status()["dns"]["clients"]["tcp"]["accepted"] == len(begun), "the connection", 10)
    wait_until(lambda: counts()["displacedHandshakes"] == 3, "slow clients making room", 10, detail=counts)
    expect_equal(counts()["handshaking"], 8, "the handshakes under way")
    # The first two of the first address, and then its third, as of all that have most it has been at it for longest.
    expect_equal([_is_open(one) for one in begun], [False] * 3 + [True] * 8, "the connections that are open")
    with listening.tls() as client:
        expect_addresses(client.exchange(dns_wire.query("localhost")), "127.0.0.1")
    expect_equal(counts()["displacedHandshakes"], 4, "the clients that made room")
    # Too much before the handshake is done: what is said to come, behind an alert too, and what comes.
    greedy = b"\x16\3\3\x40\0\1\1\xff\xff\3\3"
    for number, data in enumerate((greedy, b"\x15\3\3\0\2\1\x5a" + greedy), start=1):
        one = _connection(testbed, "127.0.0.1", "127.0.0.1", data)
        wait_until(lambda: not _is_open(one), "the end of a client that sends too much", 10)
        expect_equal(counts()["overlongHandshakes"], number, "the clients that sent too much")
    # Nearly all of a ClientHello of 16 KiB, from as many as there may be clients.
    before = daemon.memory()
    for _ in range(256):
        _connection(testbed, "127.0.0.1", "127.0.0.1", b"\x16\3\1\x3f\xf8\1\0\x3f\xf4\3\3" + bytes(15000))
    with listening.tls() as client:
        expect_addresses(client.exchange(dns_wire.query("localhost")), "127.0.0.1")
    grown = daemon.memory() - before
    expect(grown < 8 << 20, f"handshakes that are not done take {grown >> 10} KiB of memory")
    expect_addresses(testbed.ask("localhost"), "127.0.0.1")


@check("D11.listener", "answers by TLS and HTTPS are padded to 468 octets for who pads, and no others (RFC 8467 §4.1)")
def padding(testbed: DNSTestbed) -> None:
    testbed.upstream.script = lambda received: (
        messages.answer(received.query, [messages.text("x" * 200) for _ in range(9)])
        if received.query.type == dns_wire.TXT else scripts.usual(received.query))
    listening = SecureListening(testbed)
    listening.run(rules=["||ads.example^"])
    padded = dns_wire.opt(options=dns_wire.option(dns_wire.PADDING, bytes(20)))
    with listening.tls() as client, listening.https() as web, testbed.client("tcp") as plain:
        for name, kind in (("new.example", dns_wire.A), ("new.example", dns_wire.A), ("long.example", dns_wire.TXT),
                           ("ads.example", dns_wire.A), ("localhost", dns_wire.AAAA), ("invalid", dns_wire.A)):
            for what, answer in (("TLS", client.exchange(dns_wire.query(name, kind, edns=padded))),
                                 ("HTTPS", web.ask(query(name, kind, edns=padded)).message)):
                expect_equal(len(answer.bytes) % 468, 0, f"what {len(answer.bytes)} octets by {what} are too long by")
                expect(len(answer.bytes) < 936 or kind == dns_wire.TXT, f"{len(answer.bytes)} octets for {name}")
                data = dict(answer.edns.options)[dns_wire.PADDING]
                expect(not any(data), f"padding that is not zero: {data.hex()}")
            others = [client.exchange(dns_wire.query(name, kind, edns=dns_wire.opt())),
                      web.ask(query(name, kind, edns=dns_wire.opt())).message,
                      plain.exchange(dns_wire.query(name, kind, edns=padded))]
            for answer in others:
                expect(dns_wire.PADDING not in dict(answer.edns.options), f"padding for who did not ask: {answer}")


def _refuses(listening: SecureListening, context: ssl.SSLContext) -> bool:
    try:
        with listening.tls(context=context) as client:
            client.exchange(dns_wire.query("localhost"))
    except (ssl.SSLError, CheckFailure):
        return True
    return False


@check("E6.listener", "TLS 1.2 and 1.3 with forward secrecy, ALPN dot or none, and sessions that are gone on with")
def handshakes(testbed: DNSTestbed) -> None:
    listening = SecureListening(testbed)
    daemon = listening.run()
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        for protocols in ((), ("dot",), ("h2", "dot")):
            context = listening.context(*protocols, version=version)
            session = None
            for turn in range(3):
                with listening.tls(context=context, session=session) as client:
                    expect_equal(client.tls.selected_alpn_protocol(), "dot" if protocols else None, "ALPN's agreement")
                    expect_addresses(client.exchange(dns_wire.query("localhost")), "127.0.0.1")
                    expect(client.tls.session_reused == (turn > 0), f"connection {turn + 1} began with a session of "
                           f"{version.name} and ended with session_reused = {client.tls.session_reused}")
                    session = client.tls.session
                    client.say_end()
                    client.expect_end(5)
        expect(_refuses(listening, listening.context("h2", "http/1.1", version=version)),
               "a client that offers only other protocols is taken")
    for version in (ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1):
        old = listening.context()
        old.minimum_version, old.maximum_version = version, version
        old.set_ciphers("ALL:@SECLEVEL=0")
        expect(_refuses(listening, old), f"{version.name} is taken")
    weak = listening.context(version=ssl.TLSVersion.TLSv1_2)
    weak.set_ciphers("AES128-GCM-SHA256:AES256-SHA:ECDHE-ECDSA-AES128-SHA:@SECLEVEL=0")
    expect(_refuses(listening, weak), "ciphers without forward secrecy, or with CBC, are taken")
    counts = daemon.status()["dns"]["clients"]["secure"]
    expect_equal(counts["resumed"], 12, "the sessions that were gone on with, as the status counts them")
    expect(counts["failedHandshakes"] >= 4, f"the failed handshakes are counted: {counts}")
    # The other end sees the same.
    outcome = testbed.network.run(
        "openssl", "s_client", "-connect", "127.0.0.1:853", "-alpn", "dot", "-verify_return_error", "-verify_hostname",
        SERVER, "-CAfile", listening.authority_file, input="", check=False, seconds=20)
    expect("ALPN protocol: dot" in outcome.stdout and "Verify return code: 0" in outcome.stdout,
           f"openssl s_client says {outcome.stdout[-400:]}")


@check("E6.noise", "what is no TLS ends the connection, and nobody else notices")
def garbage(testbed: DNSTestbed) -> None:
    listening = SecureListening(testbed)
    daemon = listening.run()
    with listening.tls() as watching:
        for port in (853, 443):
            for data in (b"GET / HTTP/1.1\r\n\r\n", framed(dns_wire.query("localhost")), bytes(300), b"\x16\3\1\0\0",
                         b"\x16\3\1\0\1\1", b"\x17\3\3\0\x10" + bytes(16), b"\x15\3\3\0\2\2\x28", b"\xff" * 20000):
                with testbed.network.socket(socket.AF_INET, socket.SOCK_STREAM) as one:
                    one.settimeout(5)
                    one.connect(("127.0.0.1", port))
                    try:
                        one.sendall(data)
                        one.shutdown(socket.SHUT_WR)
                        while one.recv(4096):
                            pass
                    except (BrokenPipeError, ConnectionResetError):
                        pass
                    except OSError as error:
                        # It was over before all was sent.
                        expect(error.errno == errno.ENOTCONN, f"the connection ended with {error}")
        expect_addresses(watching.exchange(dns_wire.query("localhost")), "127.0.0.1")
    pause(0.1)
    daemon.expect_running()
