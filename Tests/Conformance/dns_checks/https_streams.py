"""One connection and many streams (RFC 8484 §5.2, RFC 9113 §5.1.2): as many as the server allows."""

import itertools

import dns_wire
from dns_checks.registry import check
from dns_site import MARGIN, EncryptedSite, ask, ask_all, ask_in_time, expect_failure, expect_good, names, serving
from dns_testbed import DNSTestbed
from dns_upstream import messages, scripts
from waiting import expect, expect_equal, wait_until


@check("D5", "one connection carries all queries, many at a time")
def one_connection(testbed: DNSTestbed) -> None:
    site = serving(testbed, "https")
    site.forward("https")
    for name in names("first", 10):
        expect_good(ask(testbed, name))
    site.upstream.script = scripts.late(0.5)
    for answer in ask_all(testbed, names("many", 50)).values():
        expect_good(answer)
    expect_equal(len(site.upstream.connections), 1, "the connections")
    connection = site.upstream.connections[0]
    expect(connection.most_open_streams >= 25, f"only {connection.most_open_streams} streams were open at a time")
    expect_equal(connection.tls.protocol, "h2", "what ALPN agreed on")
    expect_equal(connection.failure, None, "what the client did wrong")


@check("D5.limit", "no more streams are opened than the server allows, and all queries are answered all the same")
def stream_limit(testbed: DNSTestbed) -> None:
    site = serving(testbed, "https", most_streams=4)
    site.forward("https")
    expect_good(ask(testbed, "first.example.org"))
    site.upstream.script = scripts.late(0.02)
    for answer in ask_all(testbed, names("limit", 60)).values():
        expect_good(answer)
    for connection in site.upstream.connections:
        expect_equal(connection.failure, None, "what the client did wrong")


@check("D5.window", "a connection goes on however much has come by it: the windows are opened again")
def windows(testbed: DNSTestbed) -> None:
    site = serving(testbed, "https")
    site.upstream.script = lambda received: messages.answer(received.query, [messages.text(b"z" * 20_000)])
    site.forward("https")
    with testbed.client("tcp") as client:
        for name in names("window", 60):
            answer = client.exchange(dns_wire.query(name, dns_wire.TXT))
            expect(answer.code == 0 and len(answer.bytes) > 20_000, f"{name} came as {len(answer.bytes)} bytes")
    expect_equal(len(site.upstream.connections), 1, "the connections")


@check("D5.settings", "queries at once on a connection whose SETTINGS come late are all answered, though it allows few")
def late_settings(testbed: DNSTestbed) -> None:
    site = serving(testbed, "https", most_streams=3)
    site.listener.settings_after = 0.4
    site.upstream.script = scripts.late(0.02)
    site.forward("https")
    for answer in ask_all(testbed, names("settings", 40)).values():
        expect_good(answer)
    for connection in site.upstream.connections:
        expect_equal(connection.failure, None, "what the client did wrong")


@check("D5.none", "a server that allows no stream at all is a failure in time")
def no_streams(testbed: DNSTestbed) -> None:
    site = serving(testbed, "https", most_streams=0)
    site.forward("https", timeoutSeconds=1.5)
    for name in names("none", 2):
        expect_failure(ask_in_time(testbed, name, 1.5 + MARGIN))
    site.listener.most_streams = 10
    for connection in site.upstream.connections:
        connection.close()
    number = itertools.count()
    wait_until(lambda: ask(testbed, f"later-{next(number)}.example.org").code == 0,
               "an answer when streams are allowed", 15, interval=0.3, detail=site.upstream.summary)


@check("D5.protocol", "a server that does not speak HTTP/2 gets no query")
def no_http2(testbed: DNSTestbed) -> None:
    site = EncryptedSite(testbed)
    site.listener = site.https(protocols=("http/1.1",))
    plain = site.https(port=8443, protocols=())
    daemon = site.forward("https", timeoutSeconds=2)
    expect_failure(ask_in_time(testbed, "old.example.org", 2 + MARGIN))
    daemon.stop()
    testbed.resign_dns(daemon)
    testbed.run(site.member("https", url="https://dns.example:8443/dns-query"), timeoutSeconds=2)
    expect_failure(ask_in_time(testbed, "none.example.org", 2 + MARGIN))
    expect(site.listener.connections and plain.connections, "the server was not tried")
    for connection in site.upstream.connections:
        expect_equal((connection.client_hello.protocols, connection.plain_byte_count), (("h2",), 0),
                     "the protocols that were offered, and the bytes that came")
