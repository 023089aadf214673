"""Clients by HTTPS: statuses, header fields, streams, floods and ends (RFC 8484, RFC 9113)."""

import ssl
import struct
import time

import dns_wire
from dns_checks.registry import check
from dns_checks.shape import expect_addresses, expect_code, expect_shape
from dns_secure_client import HTTPSClient, SecureListening, SecureStream, encoded, query
from dns_testbed import DNSTestbed
from dns_upstream import Received, Reply, messages, scripts
from dns_wire import FORMERR, NOTIMP, NXDOMAIN, REFUSED, SERVFAIL
from waiting import CheckFailure, expect, expect_equal, pause, wait_until

#: Codes of RFC 9113 §7.
NO_ERROR, PROTOCOL_ERROR, REFUSED_STREAM, ENHANCE_YOUR_CALM = 0, 1, 7, 11


def _script(received: Received):
    asked, name = received.query, received.name
    if name.startswith("fails"):
        return messages.answer(asked, code=SERVFAIL)
    if name.startswith("absent"):
        return messages.answer(asked, code=NXDOMAIN, authority=[messages.start_of_authority(ttl=900, minimum=120)])
    if name.startswith("empty"):
        return messages.answer(asked, authority=[messages.start_of_authority(ttl=70, minimum=600)])
    if name.startswith("alias"):
        return messages.answer(asked, [messages.alias("target.example", ttl=40),
                                       messages.address("192.0.2.1", ttl=400, owner="target.example")])
    if name.startswith("long"):
        return messages.answer(asked, [messages.text("x" * 250, ttl=80) for _ in range(200)])
    return scripts.usual(asked, ttl=300)


@check("D10", "POST and GET are answered with type, length and a max-age that the answer's TTLs allow", lasts=1)
def answers(testbed: DNSTestbed) -> None:
    testbed.upstream.script = _script
    listening = SecureListening(testbed)
    listening.run(rules=["||ads.example^"])
    cases = [("good.example", dns_wire.A, 0, 300), ("alias.example", dns_wire.A, 0, 40),
             ("absent.example", dns_wire.A, NXDOMAIN, 120), ("empty.example", dns_wire.A, 0, 70),
             ("long.example", dns_wire.TXT, 0, 80), ("fails.example", dns_wire.A, SERVFAIL, 0),
             ("ads.example", dns_wire.A, 0, 10), ("ads.example", dns_wire.MX, 0, 10),
             ("localhost", dns_wire.A, 0, 3600)]
    for family in (4, 6):
        with listening.https(family) as client:
            for name, kind, code, age in cases:
                for method in ("POST", "GET"):
                    asked = query(name, kind, edns=dns_wire.opt())
                    response = client.ask(asked, method)
                    answer = expect_code(expect_shape(asked, response.message), code, what=f"the answer for {name}")
                    # Seconds may have passed since it was kept.
                    expect(response.max_age is not None and max(0, age - 5) <= response.max_age <= age,
                           f"{name} by {method}: max-age is {response.max_age}, and {age} is what the answer allows")
                    ttls = [record.ttl for record in answer.answers]
                    if ttls:
                        expect_equal(response.max_age, min(ttls), f"{name} by {method}: max-age, by the smallest TTL")
    # The ID is the client's, whatever it is.
    with listening.https() as client:
        for identifier in (0, 1, 0xFFFF):
            expect_equal(client.ask(dns_wire.query("good.example", identifier=identifier)).message.identifier,
                         identifier, "the answer's ID")


@check("D10.codes", "what is no query gets the status that says why, and the connection goes on")
def codes(testbed: DNSTestbed) -> None:
    listening = SecureListening(testbed)
    daemon = listening.run()
    good = query("localhost")
    text = encoded(good)
    reply = good[:2] + b"\x81\x80" + good[4:]
    requests = [
        # What, the status, and the request.
        ("another path", 404, ("POST", "/", good)),
        ("a longer path", 404, ("POST", "/dns-query/", good)),
        ("a path in other letters", 404, ("POST", "/DNS-query", good)),
        ("another path by GET", 404, ("GET", f"/?dns={text}", None)),
        ("HEAD", 405, ("HEAD", f"/dns-query?dns={text}", None)),
        ("PUT", 405, ("PUT", "/dns-query", good)),
        ("DELETE", 405, ("DELETE", "/dns-query", None)),
        ("OPTIONS", 405, ("OPTIONS", "/dns-query", None)),
        ("a method in lower case", 405, ("get", f"/dns-query?dns={text}", None)),
        ("JSON", 415, ("POST", "/dns-query", good, "application/json")),
        ("a prefix of the type", 415, ("POST", "/dns-query", good, "application/dns-messages")),
        ("no type", 415, ("POST", "/dns-query", good, None)),
        ("a body of 65,536 octets", 413, ("POST", "/dns-query", good + bytes(65536 - len(good)))),
        ("a body of 200,000 octets", 413, ("POST", "/dns-query", good + bytes(200_000))),
        ("no body", 400, ("POST", "/dns-query", b"")),
        ("a body of 11 octets", 400, ("POST", "/dns-query", good[:11])),
        ("an answer", 400, ("POST", "/dns-query", reply)),
        ("no parameter", 400, ("GET", "/dns-query", None)),
        ("an empty query part", 400, ("GET", "/dns-query?", None)),
        ("an empty parameter", 400, ("GET", "/dns-query?dns=", None)),
        ("another parameter", 400, ("GET", f"/dns-query?name={text}", None)),
        ("a parameter in capitals", 400, ("GET", f"/dns-query?DNS={text}", None)),
        ("two parameters", 400, ("GET", f"/dns-query?dns={text}&dns={text}", None)),
        ("padding", 400, ("GET", f"/dns-query?dns={text}=", None)),
        ("padding of two", 400, ("GET", f"/dns-query?dns={text}==", None)),
        ("base64 with plus", 400, ("GET", f"/dns-query?dns=+{text[1:]}", None)),
        ("base64 with slash", 400, ("GET", f"/dns-query?dns=/{text[1:]}", None)),
        ("base64 with a blank", 400, ("GET", f"/dns-query?dns=%20{text}", None)),
        ("a length that nothing has", 400, ("GET", f"/dns-query?dns={'A' * 17}", None)),
        ("bits that are left over", 400, ("GET", f"/dns-query?dns={'A' * 17}B", None)),
        ("11 octets", 400, ("GET", f"/dns-query?dns={encoded(good[:11])}", None)),
        ("an answer by GET", 400, ("GET", f"/dns-query?dns={encoded(reply)}", None)),
    ]
    with listening.https() as client:
        for what, status, (method, path, body, *kind) in requests:
            stream = client.request(method, path, body, *kind)
            response = client.finish(stream)[0]
            expect_equal(response.status, status, f"the status for {what} (reset: {response.reset})")
            expect_equal(response.body, b"", f"the body for {what}")
            allow = response.fields.get("allow")
            expect_equal(allow, "GET, POST" if status == 405 else None, f"`allow` for {what}")
            expect("content-type" not in response.fields, f"a type of nothing for {what}")
        # And what is a query all the same.
        for what, stream in [
                ("the type in other letters", client.request("POST", "/dns-query", good, "Application/DNS-Message")),
                ("a parameter of the type", client.request("POST", "/dns-query", good, "application/dns-message; q=1")),
                ("POST with a query part", client.request("POST", "/dns-query?x=1", good)),
                ("other parameters", client.request("GET", f"/dns-query?a=b&dns={text}&c", None)),
                ("other types wanted", client.request("GET", f"/dns-query?dns={text}", None, None,
                                                      [("accept", "text/html"), ("user-agent", "x")]))]:
            answer = client.finish(stream)[0].message
            expect_addresses(answer, "127.0.0.1", what=f"the answer to {what}")
        # A message with a whole header has an answer of DNS, whatever that says (RFC 8484 §4.2.1).
        for what, data, code in (("two questions", dns_wire.header(0, dns_wire.RD, 2) + good[12:] * 2, FORMERR),
                                 ("a header alone", good[:12], FORMERR), ("a cut question", good[:-3], FORMERR),
                                 ("an unknown opcode", good[:2] + b"\x79\0" + good[4:], NOTIMP),
                                 ("class CH", query("version.bind", dns_wire.TXT, record_class=3), REFUSED)):
            for method in ("POST", "GET"):
                response = client.ask(data, method)
                expect_code(response.message, code, what=f"the answer to {what}")
                expect_equal(response.max_age, 0, f"max-age of the answer to {what}")
        expect_equal(client.end_code, None, "the code of GOAWAY")
    counts = daemon.status()["dns"]["clients"]["secure"]
    expect_equal(counts["refusedRequests"], len(requests), "the refused requests in the status")


@check("D10.path", "the path can be another one")
def other_path(testbed: DNSTestbed) -> None:
    listening = SecureListening(testbed)
    listening.run(secure=listening.member(path="/family/dns"))
    with listening.https() as client:
        expect_addresses(client.ask(query("localhost"), path="/family/dns").message, "127.0.0.1")
        expect_addresses(client.ask(query("localhost"), "GET", path="/family/dns").message, "127.0.0.1")
        expect_equal(client.ask(query("localhost")).status, 404, "the status at the usual path")


@check("D10.streams", "a hundred requests at once are all answered, a slow one holds up no other, the next is refused",
       lasts=2)
def streams(testbed: DNSTestbed) -> None:
    testbed.upstream.script = lambda received: Reply(
        scripts.usual(received.query), after=1.5 if received.name.startswith("slow") else 0.1)
    listening = SecureListening(testbed)
    daemon = listening.run()
    with listening.https() as client:
        client.ask(query("localhost"))
        expect_equal(client.session.remote_settings.max_concurrent_streams, 100, "the streams that are allowed")
        slow = client.post(query("slow.example"))
        others = [client.post(query(f"host{number}.example")) for number in range(99)]
        started = time.monotonic()
        for stream in client.finish(*others):
            expect_addresses(stream.message, "192.0.2.1")
        expect(not client.responses[slow].is_complete, "the slow answer came before the others")
        expect(time.monotonic() - started < 1.4, "the others waited for the slow one")
        expect_addresses(client.finish(slow)[0].message, "192.0.2.1")
        # What a client does not want any more is not waited for.
        unwanted = [client.post(query(f"slow{number}.example")) for number in range(20)]
        client.push()
        wait_until(lambda: daemon.status()["dns"]["waiting"] == 20, "20 queries waiting", 5)
        for stream in unwanted:
            client.session.reset_stream(stream, 8)
        expect_addresses(client.finish(client.post(query("after.example")))[0].message, "192.0.2.1")
        expect_equal(daemon.status()["dns"]["queries"]["abandoned"], 20, "the queries that nobody waits for any more")


@check("D10.uploads", "bodies in pieces are put together, also of many streams; those that do not end are bounded")
def uploads(testbed: DNSTestbed) -> None:
    listening = SecureListening(testbed)
    daemon = listening.run()
    message = query("localhost", edns=dns_wire.opt(options=dns_wire.option(100, bytes(300))))
    with listening.https() as client:
        streams = [client.request("POST", "/dns-query", b"", end=False) for _ in range(20)]
        for at in range(0, len(message), 7):
            for stream in streams:
                client.write(stream, message[at:at + 7], end=at + 7 >= len(message))
            client.push()
        for response in client.finish(*streams):
            expect_addresses(response.message, "127.0.0.1")
        before = daemon.memory()
        greedy = [client.request("POST", "/dns-query", b"", end=False) for _ in range(60)]
        for stream in greedy:
            try:
                client.write(stream, bytes(60_000), end=False)
            except Exception as error:  # The stream may have been refused meanwhile.
                if "StreamClosed" not in type(error).__name__:
                    raise
            client.push()
            client.pull(0.01)
        while client.pull(0.3):
            pass
        refused = [one for one in greedy if client.responses[one].reset == REFUSED_STREAM]
        expect(len(refused) >= 40, f"{len(refused)} of 60 requests of 60,000 octets without an end were refused")
        expect(daemon.memory() - before < 4 << 20, "unfinished requests take too much memory")


@check("D10.windows", "answers that a client has no window for wait, within bounds, and others are refused")
def windows(testbed: DNSTestbed) -> None:
    testbed.upstream.script = _script
    listening = SecureListening(testbed)
    daemon = listening.run()
    long = query("long.example", dns_wire.TXT)
    with listening.https() as client:
        expect_code(client.ask(long).message, 0)
        before = daemon.memory()
        # The window of the connection is never opened: `pull` is what would do it.
        streams = [client.post(long) for _ in range(60)]
        client.push()
        pause(0.5)
        expect(daemon.memory() - before < 4 << 20, "answers that cannot leave take too much memory")
        responses = client.finish(*streams)
        good = [one for one in responses if one.status == 200]
        refused = [one for one in responses if one.reset == REFUSED_STREAM]
        expect_equal(len(good) + len(refused), 60, "the requests that were answered or refused")
        expect(len(good) >= 5 and len(refused) >= 20, f"{len(good)} were answered and {len(refused)} refused")
        for one in good:
            expect_equal(len(one.message.answers), 200, "the records of a long answer")


@check("D10.floods", "who resets streams by the hundreds, or floods with PINGs, SETTINGS and header fields, is sent away")
def floods(testbed: DNSTestbed) -> None:
    listening = SecureListening(testbed)
    daemon = listening.run()

    def rapid_resets(client: HTTPSClient) -> None:
        for number in range(2000):
            stream = client.request("POST", "/dns-query", query(f"rapid{number}.example"))
            client.session.reset_stream(stream, 8)
            if number % 50 == 49:
                client.push()

    def pings(client: HTTPSClient) -> None:
        frame = b"\0\0\x08\6\0\0\0\0\0" + bytes(8)
        for _ in range(3000):
            client.send_bytes(frame * 1000)

    def settings(client: HTTPSClient) -> None:
        frame = b"\0\0\6\4\0\0\0\0\0" + struct.pack(">HI", 3, 100)
        for _ in range(3000):
            client.send_bytes(frame * 1000)

    def continuations(client: HTTPSClient) -> None:
        client.send_bytes(b"\0\0\1\1\0\0\0\0\1\x82" + b"\0\0\1\x09\0\0\0\0\1\x84" * 100)

    def headers(client: HTTPSClient) -> None:
        block = (b"\0\0\1\1\0\0\0\0\1\x82" + b"".join(
            b"\0\x40\x06\x09\0\0\0\0\1" + (b"\0\1x\x7f\x81\x7e" + bytes(16_376)) for _ in range(20)))
        client.send_bytes(block)

    def windows(client: HTTPSClient) -> None:
        client.send_bytes(b"\0\0\4\x08\0\0\0\0\0\x7f\xff\xff\xff" * 3)

    def wrong_frames(client: HTTPSClient) -> None:
        client.send_bytes(b"\0\0\5\3\0\0\0\0\1" + bytes(5))

    with listening.https() as watching:
        for flood in (rapid_resets, pings, settings, continuations, headers, windows, wrong_frames):
            with listening.https() as client:
                client.socket.settimeout(10)
                try:
                    flood(client)
                    # What is a library's own state has been left behind: only the end counts.
                    deadline = time.monotonic() + 8
                    while data := client.read(deadline - time.monotonic()):
                        pass
                    expect(data == b"", f"the connection is open 8 s after {flood.__name__}")
                except (OSError, ssl.SSLError):
                    pass  # The daemon ended the connection while it was written to.
            expect_addresses(watching.ask(query("localhost")).message, "127.0.0.1")
    expect_equal(daemon.status()["dns"]["waiting"], 0, "the queries that wait after all floods")


@check("D10.header", "a header that is too long gets 431, and the connection goes on")
def long_header(testbed: DNSTestbed) -> None:
    listening = SecureListening(testbed)
    listening.run()
    with listening.https() as client:
        for fields, path in (([(f"x{number}", "y" * 1000) for number in range(17)], "/dns-query"),
                             ([], f"/dns-query?x={'y' * 16_384}&dns={encoded(query('localhost'))}")):
            stream = client.request("GET", path, fields=fields)
            expect_equal(client.finish(stream)[0].status, 431, "the status")
        expect_addresses(client.ask(query("localhost")).message, "127.0.0.1")


@check("D10.ends", "an idle connection, and one whose daemon ends, is told so by GOAWAY and by TLS", lasts=3)
def ends(testbed: DNSTestbed) -> None:
    testbed.upstream.script = scripts.late(2.2)
    listening = SecureListening(testbed)
    daemon = listening.run(clientIdleSeconds=1)
    with listening.https() as client, listening.https() as pinging, listening.https() as waiting:
        expect_addresses(client.ask(query("localhost")).message, "127.0.0.1")
        stream = waiting.post(query("slow.example"))
        waiting.push()
        started = time.monotonic()
        while pinging.pull(0.1) or time.monotonic() - started < 4:
            if pinging.is_over or pinging.end_code is not None:
                break
            pinging.session.ping(bytes(8))
            try:
                pinging.push()
            except OSError:
                break
        expect(time.monotonic() - started < 4, "PINGs keep a connection that asks nothing")
        client.expect_end(4)
        expect_equal(client.end_code, NO_ERROR, "the code of GOAWAY")
        # Who waits for an answer is not idle.
        expect_addresses(waiting.finish(stream)[0].message, "192.0.2.1")
        with listening.https() as last:
            expect_addresses(last.ask(query("localhost")).message, "127.0.0.1")
            testbed.expect_answering()
            testbed.resign_dns(daemon)
            daemon.stop()
            last.expect_end(4)
            expect_equal(last.end_code, NO_ERROR, "the code of GOAWAY at the daemon's end")


@check("D10.other", "who does not speak HTTP/2 is refused by ALPN, or ended without an answer")
def other_protocols(testbed: DNSTestbed) -> None:
    listening = SecureListening(testbed)
    listening.run()

    class Bare(SecureStream):
        port = 443

    for protocols in (("http/1.1",), ("dot",)):
        try:
            Bare(listening, context=listening.context(*protocols))
            raise CheckFailure(f"a client that offers {protocols} is taken")
        except ssl.SSLError as error:
            expect("NO_APPLICATION_PROTOCOL" in str(error).upper().replace(" ", "_"), f"the alert is {error}")
    with Bare(listening, context=listening.context()) as client:
        expect_equal(client.read(5), b"", "what comes without ALPN")
    with HTTPSClient(listening, context=listening.context("http/1.1", "h2")) as client:
        expect_addresses(client.ask(query("localhost")).message, "127.0.0.1")
