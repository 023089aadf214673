"""What counts as an answer by HTTPS (RFC 8484 §4.2): status, media type, length; what is done about anything else."""

import dns_wire
from dns_checks.registry import check
from dns_site import MARGIN, NETWORK_ERROR, EncryptedSite, ask, ask_in_time, expect_failure, expect_good, names, serving
from dns_testbed import DNSTestbed
from dns_upstream import HTTPReply, Received, Response, messages, scripts
from waiting import expect, expect_equal


@check("D3", "a server that refuses the method is a failure with its reason, and the next upstream answers")
def refused_method(testbed: DNSTestbed) -> None:
    site = serving(testbed, "https")
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
    site = serving(testbed, "https")
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
    site = serving(testbed, "https")
    site.upstream.script = lambda received: HTTPReply(b"", 503)
    second = EncryptedSite(testbed, "127.0.0.3", "second.example", "2")
    second.https()
    testbed.run([site.member("https"), second.member("https")], timeoutSeconds=5)
    for name in names("next", 5):
        expect_good(ask_in_time(testbed, name, 1))
    expect(site.upstream.received, "the first upstream was never asked")


@check("D4.type", "only the media type of DNS messages is an answer, in any case and with parameters")
def media_types(testbed: DNSTestbed) -> None:
    site = serving(testbed, "https")
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


@check("D4.informational", "a status of 1xx is no answer yet: the one behind it is")
def informational(testbed: DNSTestbed) -> None:
    site = serving(testbed, "https")
    site.forward("https", timeoutSeconds=2)
    site.upstream.script = lambda received: [
        HTTPReply(status=103, content_type=None, has_length=False, ends=False),
        HTTPReply(scripts.usual(received.query))]
    for name in names("hints", 3):
        expect_good(ask_in_time(testbed, name, 1))


@check("D4.header", "a header that is longer than anybody needs is no answer, and what comes next is")
def long_header(testbed: DNSTestbed) -> None:
    site = serving(testbed, "https")
    site.forward("https", timeoutSeconds=2)
    for count, size in ((40, 1000), (3, 15_000)):
        fields = [(f"x-{number}", "y" * size) for number in range(count)]
        site.upstream.script = lambda received: HTTPReply(scripts.usual(received.query), fields=fields)
        expect_failure(ask_in_time(testbed, f"header-{count}.example.org", 2 + MARGIN))
    site.upstream.script = scripts.addresses()
    expect_good(ask(testbed, "after.example.org"))


@check("D4.pieces", "an answer may come a byte at a time, in frames or segments, and with fields behind it")
def pieces(testbed: DNSTestbed) -> None:
    site = serving(testbed, "https")
    site.listener.is_piecemeal = True
    site.forward("https", timeoutSeconds=3)
    site.upstream.script = lambda received: HTTPReply(scripts.usual(received.query), piece=1)
    for name in names("piece", 3):
        expect_good(ask_in_time(testbed, name, 3))
    site.upstream.script = lambda received: HTTPReply(scripts.usual(received.query), trailers=[("server-timing", "a")])
    for name in names("trailer", 3):
        expect_good(ask_in_time(testbed, name, 3))


@check("D4.body", "a body longer than a message, too short for one, or without an end is no answer; the longest one is")
def bodies(testbed: DNSTestbed) -> None:
    site = serving(testbed, "https")
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
    site = serving(testbed, "https")
    site.forward("https", timeoutSeconds=1.5)
    for number, difference in enumerate((-1, 1)):
        site.upstream.script = lambda received: HTTPReply(
            scripts.usual(received.query), has_length=False,
            fields=[("content-length", str(len(scripts.usual(received.query)) + difference))])
        expect_failure(ask_in_time(testbed, f"length-{number}.example.org", 1.5 + MARGIN))
    site.upstream.script = scripts.addresses()
    expect_good(ask(testbed, "after.example.org"))
