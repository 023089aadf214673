"""DNS over HTTPS to the upstream (RFC 8484): what is asked, what counts as an answer, streams and their ends."""

import base64

import dns_wire
from dns_checks.registry import check
from dns_site import INVALID_DATA, MARGIN, NETWORK_ERROR, ask, ask_in_time, expect_failure, expect_good, names, serving
from dns_testbed import DNSTestbed
from dns_upstream import HTTPReply, Received, Response, faults, scripts
from waiting import expect, expect_equal


@check("D1", "the ID is 0 on the wire, and each client gets its own back")
def identifiers(testbed: DNSTestbed) -> None:
    site = serving(testbed, "https")
    site.forward("https")
    for number, transport in ((0x1234, "udp"), (0xFFFF, "tcp"), (0, "udp")):
        answer = testbed.ask(f"id-{number}.example.org", transport=transport, identifier=number)
        expect_good(answer)
    expect_equal([one.query.id for one in site.upstream.received], [0, 0, 0], "the IDs at the upstream")


@check("D1.answer", "an answer with another ID than 0 is none, each time")
def other_identifier(testbed: DNSTestbed) -> None:
    site = serving(testbed, "https")
    site.forward("https", timeoutSeconds=1)
    site.upstream.script = scripts.altered(faults.wrong_id)
    for name in names("id", 3):
        expect_failure(ask_in_time(testbed, name, 1 + MARGIN), INVALID_DATA, NETWORK_ERROR)
    site.upstream.script = scripts.addresses()
    expect_good(ask(testbed, "right.example.org"))


@check("D2", "POST has type, length and accept; path, scheme and authority are the URL's; nothing tells who asks")
def post(testbed: DNSTestbed) -> None:
    site = serving(testbed, "https")
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
    site = serving(testbed, "https")
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
    site = serving(testbed, "https", port=8443)
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
    site = serving(testbed, "https")
    site.upstream.script = _strict
    site.forward("https")
    for name in names("strict", 5):
        expect_good(ask(testbed, name))


@check("D11", "queries are padded to blocks of 128 bytes, by POST and by GET, whether or not the client has EDNS")
def padding(testbed: DNSTestbed) -> None:
    site = serving(testbed, "https")
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
