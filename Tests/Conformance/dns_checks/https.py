"""DNS over HTTPS to the upstream (RFC 8484): what is asked, what counts as an answer, streams and their ends."""

import base64
import itertools

import dns_wire
from dns_checks.registry import check
from dns_site import (INVALID_DATA, MARGIN, NETWORK_ERROR, EncryptedSite, ask, ask_all, ask_in_time, expect_failure,
                      expect_good, names)
from dns_testbed import DNSTestbed
from dns_upstream import HTTPReply, Received, Response, faults, messages, scripts
from waiting import expect, expect_equal, wait_until


def _site(testbed: DNSTestbed, **options) -> EncryptedSite:
    site = EncryptedSite(testbed)
    site.listener = site.https(**options)
    return site


@check("D1", "the ID is 0 on the wire, and each client gets its own back")
def identifiers(testbed: DNSTestbed) -> None:
    site = _site(testbed)
    site.forward("https")
    for number, transport in ((0x1234, "udp"), (0xFFFF, "tcp"), (0, "udp")):
        answer = testbed.ask(f"id-{number}.example.org", transport=transport, identifier=number)
        expect_good(answer)
    expect_equal([one.query.id for one in site.upstream.received], [0, 0, 0], "the IDs at the upstream")


@check("D1.answer", "an answer with another ID than 0 is none, each time")
def other_identifier(testbed: DNSTestbed) -> None:
    site = _site(testbed)
    site.forward("https", timeoutSeconds=1)
    site.upstream.script = scripts.altered(faults.wrong_id)
    for name in names("id", 3):
        expect_failure(ask_in_time(testbed, name, 1 + MARGIN), INVALID_DATA, NETWORK_ERROR)
    site.upstream.script = scripts.addresses()
    expect_good(ask(testbed, "right.example.org"))


@check("D2", "POST has type, length and accept; path, scheme and authority are the URL's; nothing tells who asks")
def post(testbed: DNSTestbed) -> None:
    site = _site(testbed)
    site.forward("https")
    expect_good(ask(testbed, "post.example.org"))
    request = site.upstream.received[0].request
    for name, expected in (
            (":method", "POST"), (":scheme", "https"), (":authority", "dns.example"), (":path", "/dns-query"),
            ("content-type", "application/dns-message"), ("accept", "application/dns-message"),
            ("content-length", str(len(request.body)))):
        expect_equal(request.field(name), expected, f"the field {name}")
    allowed = {":method", ":scheme", ":authority", ":path", "content-type", "accept", "content-length"}
    expect_equal({name for name, _ in request.fields} - allowed, set(), "the other fields")


@check("D2.get", "GET has the query as base64url without equals signs in the parameter dns, and no body")
def get(testbed: DNSTestbed) -> None:
    site = _site(testbed)
    testbed.run(site.member("https", method="get"))
    for name in names("get", 3):
        expect_good(ask(testbed, name))
    for received in site.upstream.received:
        request = received.request
        path, _, value = (request.field(":path") or "").partition("?dns=")
        found = request.field(":method"), path, request.body
        expect_equal(found, ("GET", "/dns-query", b""), "method, path and body")
        expect(not set(value) - set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"),
               f"the parameter is not base64url: {value}")
        decoded = base64.urlsafe_b64decode(value + "=" * (-len(value) % 4))
        expect_equal(received.query.message, decoded, "the message in the parameter")
        fields = [request.field(name) for name in ("accept", "content-type", "content-length")]
        expect_equal(fields, ["application/dns-message", None, None], "the fields accept, content-type, content-length")
    expect_equal({one.name for one in site.upstream.received}, set(names("get", 3)), "the names that were asked for")


@check("D2.url", "another port is in the authority, and a path of the URL's own is asked for")
def url(testbed: DNSTestbed) -> None:
    site = _site(testbed, port=8443)
    for method, path in (("post", "/a/b"), ("get", "/a/b?dns=")):
        daemon = testbed.run(site.member("https", url="https://dns.example:8443/a/b{?dns}", method=method))
        expect_good(ask(testbed, f"{method}.example.org"))
        request = site.upstream.received[-1].request
        expect_equal(request.field(":authority"), "dns.example:8443", "the authority")
        expect(request.field(":path").startswith(path), f"the path is {request.field(':path')}, expected {path}…")
        daemon.stop()
        testbed.resign_dns(daemon)
    testbed.run(site.member("https", url="https://dns.example:8443/a/b"))


def _strict(received: Received) -> Response:
    length = received.request.field("content-length")
    if received.request.field(":method") != "POST" or length != str(len(received.request.body)):
        return HTTPReply(b"bad request", 400, "text/plain")
    return scripts.usual(received.query)


@check("R29", "a server that wants a length of each POST gets it")
def strict_length(testbed: DNSTestbed) -> None:
    site = _site(testbed)
    site.upstream.script = _strict
    site.forward("https")
    for name in names("strict", 5):
        expect_good(ask(testbed, name))


@check("D3", "a server that refuses the method is a failure with its reason, and the next upstream answers")
def refused_method(testbed: DNSTestbed) -> None:
    site = _site(testbed)
    second = EncryptedSite(testbed, "127.0.0.3", "second.example", "2")
    second.https()
    alone = testbed.run(site.member("https", method="get"), timeoutSeconds=2)
    for status in (400, 405, 501):
        site.upstream.script = lambda received: HTTPReply(b"POST it", status, "text/plain", [("allow", "POST")])
        expect_failure(ask_in_time(testbed, f"alone-{status}.example.org", 2 + MARGIN), NETWORK_ERROR)
    expect_equal({one.request.field(":method") for one in site.upstream.received}, {"GET"}, "the methods")
    alone.stop()
    testbed.resign_dns(alone)
    testbed.run([site.member("https", method="get"), second.member("https")], timeoutSeconds=2)
    for name in names("both", 3):
        expect_good(ask_in_time(testbed, name, 1))
    expect(len(second.upstream.received) == 3, f"the second upstream: {second.upstream.summary()}")


STATUSES = (300, 301, 302, 303, 307, 308, 400, 401, 403, 404, 406, 413, 415, 429, 500, 501, 502, 503, 504)


@check("D4.status", "a status that is none of success is no answer, and nothing is followed to another server")
def statuses(testbed: DNSTestbed) -> None:
    site = _site(testbed)
    elsewhere = EncryptedSite(testbed, "127.0.0.3", "elsewhere.example", "2")
    elsewhere.https()
    site.forward("https", timeoutSeconds=2)

    def script(received: Received) -> Response:
        status = int(received.name.split(".")[0].removeprefix("status-"))
        # The body would be an answer.
        return HTTPReply(scripts.usual(received.query), status,
                         fields=[("location", "https://elsewhere.example/dns-query")])

    site.upstream.script = script
    for status in STATUSES:
        expect_failure(ask_in_time(testbed, f"status-{status}.example.org", 2 + MARGIN), NETWORK_ERROR)
    expect_equal({one.request.field(":path") for one in site.upstream.received}, {"/dns-query"}, "the paths asked for")
    expect_equal(len(elsewhere.upstream.connections), 0, "the connections to the other server")
    site.upstream.script = lambda received: HTTPReply(scripts.usual(received.query), 203)
    expect_good(ask(testbed, "success.example.org"))


@check("D4.next", "a status that is none of success has the next upstream asked at once")
def next_upstream(testbed: DNSTestbed) -> None:
    site = _site(testbed)
    site.upstream.script = lambda received: HTTPReply(b"", 503)
    second = EncryptedSite(testbed, "127.0.0.3", "second.example", "2")
    second.https()
    testbed.run([site.member("https"), second.member("https")], timeoutSeconds=5)
    for name in names("next", 5):
        expect_good(ask_in_time(testbed, name, 1))
    expect(site.upstream.received, "the first upstream was never asked")


@check("D4.type", "only the media type of DNS messages is an answer, in any case and with parameters")
def media_types(testbed: DNSTestbed) -> None:
    site = _site(testbed)
    site.forward("https", timeoutSeconds=2)
    wrong = ("text/html", "application/dns-json", "application/octet-stream", "application/dns-messages", "", None)
    for number, media_type in enumerate(wrong):
        site.upstream.script = lambda received: HTTPReply(scripts.usual(received.query), content_type=media_type)
        expect_failure(ask_in_time(testbed, f"wrong-{number}.example.org", 2 + MARGIN))
    right = ("application/dns-message", "Application/DNS-Message", "application/dns-message; charset=utf-8",
             "application/dns-message;a=b")
    for number, media_type in enumerate(right):
        site.upstream.script = lambda received: HTTPReply(scripts.usual(received.query), content_type=media_type)
        expect_good(ask(testbed, f"right-{number}.example.org"))


@check("D4.body", "a body longer than a message, too short for one, or without an end is no answer; the longest one is")
def bodies(testbed: DNSTestbed) -> None:
    site = _site(testbed)
    site.forward("https", timeoutSeconds=1.5)
    whole = {"empty": b"", "eleven": bytes(11), "header": bytes(12), "long": bytes(65536), "huge": bytes(2_000_000)}
    for label, body in whole.items():
        for has_length in (True, False):
            site.upstream.script = lambda received: HTTPReply(body, has_length=has_length)
            expect_failure(ask_in_time(testbed, f"{label}-{has_length}.example.org", 1.5 + MARGIN))
    site.upstream.script = lambda received: HTTPReply(
        scripts.usual(received.query), has_length=False, ends=False)
    expect_failure(ask_in_time(testbed, "endless.example.org", 1.5 + MARGIN))
    site.upstream.script = _longest
    answer = testbed.ask("longest.example.org", dns_wire.TXT, "tcp", edns=dns_wire.opt())
    expect(answer.code == 0 and sum(len(one.data) for one in answer.answers) > 60_000,
           f"an answer of 65,535 bytes came as {len(answer.bytes)} bytes, code {answer.code}")
    site.upstream.script = scripts.addresses()
    expect_good(ask(testbed, "after.example.org"))


def _longest(received: Received) -> bytes:
    """An answer of 65,535 bytes: records with 255 bytes of text, and a last one for what is left."""
    records, left = [], 65535 - len(messages.answer(received.query))
    while left > 600:
        records.append(messages.text(b"x" * 255))
        left -= len(records[-1])
    # An owner, type, class, TTL and length are 12 bytes, and each string has a length of its own.
    data = left - 12
    records.append(messages.record(messages.TXT, (b"\xff" + b"y" * 255 + bytes([data - 257]) + b"z" * (data - 257))
                                   if data > 256 else bytes([data - 1]) + b"z" * (data - 1)))
    return messages.answer(received.query, records)


@check("D4.length", "a body that is not as long as its content-length says is no answer")
def wrong_length(testbed: DNSTestbed) -> None:
    site = _site(testbed)
    site.forward("https", timeoutSeconds=1.5)
    for number, difference in enumerate((-1, 1)):
        site.upstream.script = lambda received: HTTPReply(
            scripts.usual(received.query), has_length=False,
            fields=[("content-length", str(len(scripts.usual(received.query)) + difference))])
        expect_failure(ask_in_time(testbed, f"length-{number}.example.org", 1.5 + MARGIN))
    site.upstream.script = scripts.addresses()
    expect_good(ask(testbed, "after.example.org"))


@check("D5", "one connection carries all queries, many at a time")
def one_connection(testbed: DNSTestbed) -> None:
    site = _site(testbed)
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
    site = _site(testbed, most_streams=4)
    site.forward("https")
    expect_good(ask(testbed, "first.example.org"))
    site.upstream.script = scripts.late(0.02)
    for answer in ask_all(testbed, names("limit", 60)).values():
        expect_good(answer)
    for connection in site.upstream.connections:
        expect_equal(connection.failure, None, "what the client did wrong")


@check("D5.settings", "queries at once on a connection whose SETTINGS come late are all answered, though it allows few")
def late_settings(testbed: DNSTestbed) -> None:
    site = _site(testbed, most_streams=3)
    site.listener.settings_after = 0.4
    site.upstream.script = scripts.late(0.02)
    site.forward("https")
    for answer in ask_all(testbed, names("settings", 40)).values():
        expect_good(answer)
    for connection in site.upstream.connections:
        expect_equal(connection.failure, None, "what the client did wrong")


@check("D5.none", "a server that allows no stream at all is a failure in time")
def no_streams(testbed: DNSTestbed) -> None:
    site = _site(testbed, most_streams=0)
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


@check("D11", "queries are padded to blocks of 128 bytes, by POST and by GET, whether or not the client has EDNS")
def padding(testbed: DNSTestbed) -> None:
    site = _site(testbed)
    tls = site.tls()
    for transport, more in (("https", {}), ("https", {"method": "get"}), ("tls", {})):
        daemon = testbed.run(site.member(transport, **more))
        label = transport + more.get("method", "")
        long = ".".join(["x" * 60] * 3 + [label, "example.org"])
        for name in (f"{label}.example.org", "a" * 50 + f".{label}.example.org", long):
            for edns in (None, dns_wire.opt()):
                testbed.ask(name, dns_wire.A if edns else dns_wire.AAAA, edns=edns)
        daemon.stop()
        testbed.resign_dns(daemon)
    expect_equal(len(site.upstream.received), 18, "the queries at the upstream")
    for received in site.upstream.received:
        length = len(received.query.message)
        shortest = 12 + len(received.query.question) + 11 + 4
        expected = -(-shortest // 128) * 128
        expect_equal(length, expected, f"the length of a query for a name of {len(received.query.wire_name)} bytes")
        expect(received.query.edns.option(12) is not None, "there is no padding option")
        expect(not any(received.query.edns.option(12)), "the padding is not zero")
    expect(tls.connections, "there was no connection by TLS")
    testbed.run(site.member("https"))
