"""What is counted, as OpenMetrics by HTTP (https://openmetrics.io, RFC 9110, RFC 9112)."""

import json
import socket
import time

import dns_wire
from dns_checks.registry import check
from dns_daemon import DNSDaemon
from dns_testbed import TRANSPORTS, DNSTestbed
from dns_upstream import scripts
from openmetrics import ADDRESS, Answer, Metrics, connect, read_all, request, scrape
from waiting import CheckFailure, expect, expect_equal, pause, wait_until

GET = b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n"
PLACE = "127.0.0.1:9153"
RESULTS = {"cached", "stale", "forwarded", "blocked", "rebinding", "local", "refused", "failed", "overloaded"}


def _listen(daemon: DNSDaemon, *places: str) -> None:
    """Writes where the daemon tells its metrics, and leaves the rest of its configuration."""
    with open(daemon.path) as file:
        configuration = json.load(file)
    configuration.pop("metrics", None)
    if places:
        configuration["metrics"] = {"listen": list(places)}
    daemon.write_text(json.dumps(configuration))


def _run(testbed: DNSTestbed, *places: str, **more) -> DNSDaemon:
    testbed.upstream  # It has to listen before.
    daemon = testbed.configured("udp://127.0.0.2:53", **more)
    _listen(daemon, *(places or (PLACE,)))
    daemon.launch()
    daemon.wait_until_ready()
    return daemon


def _expect_like_status(found: Metrics, status: dict) -> None:
    """What is counted must be what the status says, which was read when nothing happened."""
    queries, cache, upstream = status["dns"]["queries"], status["dns"]["cache"], status["dns"]["upstreams"][0]
    answered = queries["all"] - queries["dropped"] - queries["abandoned"] - status["dns"]["waiting"]
    expect_equal(found.total("sluice_dns_queries_total"), answered, "the queries that were answered")
    for result, name in (("blocked", "blocked"), ("local", "local"), ("refused", "refused"), ("failed", "failed"),
                         ("forwarded", "forwarded"), ("rebinding", "rebinding"), ("stale", "stale")):
        expect_equal(found.total("sluice_dns_queries_total", result=result), queries[name], f"queries {result}")
    expect_equal(found.value("sluice_dns_cache_hits_total"), queries["cacheHits"], "the hits")
    expect_equal(found.value("sluice_dns_merged_queries_total"), queries["merged"], "the merged queries")
    for sample, key in (("prefetches", "prefetches"), ("failed_prefetches", "failedPrefetches")):
        expect_equal(found.value(f"sluice_dns_cache_{sample}_total"), cache[key], sample)
    for key, count in status["dns"]["strategy"].items():
        expect_equal(found.value(f"sluice_dns_{key}_questions_total"), count, f"the questions that were {key}")
    secure = status["dns"]["clients"]["secure"]
    for transport in ("tls", "https"):
        expect_equal(found.value("sluice_dns_tls_handshakes_total", transport=transport), secure[transport], transport)
    for reason, key in (("failed", "failedHandshakes"), ("too_long", "overlongHandshakes"),
                        ("displaced", "displacedHandshakes")):
        expect_equal(found.value("sluice_dns_failed_tls_handshakes_total", reason=reason), secure[key], key)
    expect_equal(found.value("sluice_dns_tls_handshakes_under_way"), secure["handshaking"], "handshakes under way")
    for sample, key in (("sluice_dns_cache_entries", "answers"), ("sluice_dns_cache_used_bytes", "usedBytes")):
        expect_equal(found.value(sample), cache[key], sample)
    labels = {"upstream": upstream["name"], "transport": upstream["transport"]}
    for sample, key in (("sluice_dns_upstream_exchanges_total", "exchanges"),
                        ("sluice_dns_upstream_answers_total", "answers")):
        expect_equal(found.value(sample, **labels), upstream[key], sample)
    expect_equal(found.total("sluice_dns_upstream_failures_total", **labels), upstream["failures"], "the failures")
    expect_equal(found.value("sluice_dns_upstream_latency_seconds_count", **labels), upstream["answers"], "latencies")
    expect_equal(found.value("sluice_dns_upstream_up", **labels), 0 if upstream["down"] else 1, "whether it is up")


@check("O1", "metrics are OpenMetrics to an independent parser, and say what was asked and what the status says")
def counted(testbed: DNSTestbed) -> None:
    daemon = _run(testbed, rules=["||ads.example^"], timeoutSeconds=1)
    testbed.upstream.script = scripts.by_name({"www.example": ["192.0.2.1"], "in.example": ["10.0.0.1"]})
    for transport in TRANSPORTS:
        for name in ("www.example", "WWW.example", "x.ads.example", "localhost", "in.example"):
            testbed.ask(name, transport=transport)
        testbed.ask("www.example", dns_wire.AXFR, transport)
    testbed.upstream.script = scripts.silence
    testbed.ask("lost.example")
    found = scrape(testbed.network)
    expect_equal(found.labels("sluice_dns_queries_total", "transport") >= set(TRANSPORTS), True, "the transports")
    expect_equal(found.labels("sluice_dns_queries_total", "result"), RESULTS, "the results")
    expected = {("udp", "forwarded"): 1, ("udp", "cached"): 1, ("tcp", "cached"): 2, ("udp", "rebinding"): 1,
                ("tcp", "rebinding"): 1, ("udp", "failed"): 1}
    for transport in TRANSPORTS:
        expected.update({(transport, "blocked"): 1, (transport, "local"): 1, (transport, "refused"): 1})
    for transport in TRANSPORTS:
        for result in RESULTS:
            expect_equal(found.value("sluice_dns_queries_total", transport=transport, result=result),
                         expected.get((transport, result), 0), f"the queries by {transport} that were {result}")
    expect_equal(found.value("sluice_dns_cache_misses_total"), 3, "the misses")
    expect_equal(found.value("sluice_dns_cache_limit_bytes"), 2097152, "the limit of the cache")
    silent = found.value("sluice_dns_upstream_failures_total", upstream="main", transport="udp", reason="timed_out")
    expect(silent >= 1, "the silence of the upstream is not counted")
    waited = {"upstream": "main", "transport": "udp"}
    taken = found.value("sluice_dns_upstream_latency_seconds_sum", **waited)
    expect(0 < taken < 3, f"the answers took {taken} s")
    expect_equal(found.value("sluice_dns_upstream_latency_seconds_bucket", le="5.0", **waited), 2,
                 "the answers within five seconds")
    _expect_like_status(found, daemon.status())
    for name, kind in (("sluice_dns_queries", "counter"), ("sluice_dns_cache_entries", "gauge"),
                       ("sluice_build", "info"),
                       ("sluice_dns_upstream_latency_seconds", "histogram"), ("process_cpu_seconds", "counter"),
                       ("process_resident_memory_bytes", "gauge"), ("process_start_time_seconds", "gauge")):
        expect_equal(found.families[name].type, kind, f"the type of {name}")
    for family in found.families.values():
        expect(family.documentation.endswith("."), f"{family.name} is not explained: {family.documentation!r}")
        for unit in ("seconds", "bytes"):
            expect_equal(family.unit == unit, family.name.endswith(f"_{unit}"), f"the unit of {family.name}")
    version = testbed.network.run(*testbed.command, "--version").stdout.split()[1]
    expect_equal(found.value("sluice_build_info", version=version), 1, "the version")
    started = found.value("process_start_time_seconds")
    expect(time.time() - 60 < started <= time.time(), f"the process began at {started}")
    resident = found.value("process_resident_memory_bytes")
    expect(abs(resident - daemon.memory("VmRSS")) < 2 << 20, f"it has {resident} bytes of memory")
    # Nothing about a tunnel where there is none, and nothing that anybody asked for or where anybody is.
    expect("sluice_tunnel" not in found.text, "there is a tunnel in the metrics")
    for part in ("example", "localhost", "127.0.0", "192.0.2", ".ads"):
        expect(part not in found.text, f"the metrics have {part!r} in them")


@check("O1.strategy", "what is asked of upstreams besides is counted: because one is late, and of several at once", lasts=6)
def strategies(testbed: DNSTestbed) -> None:
    testbed.upstream.script = scripts.losing_first("lost-")
    daemon = _run(testbed, timeoutSeconds=1)
    testbed.ask("known.example")
    found = scrape(testbed.network)
    for kind in ("hastened", "unhastened", "parallel"):
        expect_equal(found.value(f"sluice_dns_{kind}_questions_total"), 0, f"the questions that are {kind}")
    for number in range(14):
        testbed.ask(f"lost-{number}.example")
    found = scrape(testbed.network)
    # Ten at once may be hastened, and one more for ten answers.
    expect(10 <= found.value("sluice_dns_hastened_questions_total") <= 12, found.text)
    expect(2 <= found.value("sluice_dns_unhastened_questions_total") <= 4, found.text)
    _expect_like_status(found, daemon.status())
    daemon.stop()
    testbed.resign_dns(daemon)
    daemon = testbed.configured([{"name": "main", "url": "udp://127.0.0.2:53"},
                                 {"name": "other", "url": "tcp://127.0.0.2:53"}], strategy="parallel")
    _listen(daemon, PLACE)
    daemon.launch()
    daemon.wait_until_ready()
    for number in range(3):
        testbed.ask(f"both-{number}.example")
    expect_equal(scrape(testbed.network).value("sluice_dns_parallel_questions_total"), 3, "the second questions")


@check("O1.prefetch", "what is asked anew before its time is over is counted, and what came to nothing", lasts=11)
def prefetches(testbed: DNSTestbed) -> None:
    testbed.upstream.script = scripts.by_name({"hot.example": ["192.0.2.1"], "lost.example": ["192.0.2.1"]}, 10)
    daemon = _run(testbed, cache={"prefetch": True}, timeoutSeconds=1)
    started = time.monotonic()
    for name in ("hot.example", "lost.example") * 3:
        testbed.ask(name)
    usual = testbed.upstream.script
    testbed.upstream.script = lambda received: None if received.name == "lost.example" else usual(received)
    pause(max(0.0, started + 9.2 - time.monotonic()))
    for name in ("hot.example", "lost.example"):
        testbed.ask(name)
    wait_until(lambda: scrape(testbed.network).value("sluice_dns_cache_failed_prefetches_total") == 1,
               "a question that comes to nothing", 5)
    found = scrape(testbed.network)
    expect_equal(found.value("sluice_dns_cache_prefetches_total"), 2, "the questions that were asked anew")
    _expect_like_status(found, daemon.status())


@check("O2", "counters only grow from reading to reading, whatever happens: traffic, an emptied cache, a reload")
def monotone(testbed: DNSTestbed) -> None:
    daemon = _run(testbed, cache={"maxBytes": 16384})
    earlier = scrape(testbed.network)
    client = testbed.udp()
    for turn in range(6):
        for number in range(60):
            client.send(dns_wire.query(f"h{turn}-{number}.example"))
        for number in range(60):
            client.receive()
        if turn == 3:
            daemon.write("udp://127.0.0.2:53", cache={"maxBytes": 32768})
            _listen(daemon, PLACE)
            daemon.reload()
        later = scrape(testbed.network)
        later.expect_not_before(earlier)
        expect_equal(later.total("sluice_dns_queries_total") - earlier.total("sluice_dns_queries_total"), 60,
                     "the queries between two readings")
        _expect_like_status(later, daemon.status())
        earlier = later
    expect(earlier.value("sluice_dns_cache_evictions_total") > 0, "nothing had to go for lack of room")


@check("O3", "HTTP: other paths are 404, other methods 405, HEAD has no body, and what is no request is refused")
def http(testbed: DNSTestbed) -> None:
    _run(testbed, PLACE, "[::1]:9153")

    def ask(data: bytes, status: int, **more) -> Answer:
        answer = request(testbed.network, data, **more)
        expect_equal(answer.status, status, f"the status for {data[:60]!r}")
        expect_equal(answer.fields.get("connection"), "close", "what is said about the connection")
        return answer

    host = b"Host: a\r\n"
    for data in (GET, b"GET /metrics HTTP/1.0\r\n\r\n", b"GET /metrics?a=b HTTP/1.1\r\n" + host + b"\r\n",
                 b"GET http://a/metrics HTTP/1.1\r\n" + host + b"\r\n", GET.replace(b"\r\n", b"\n"), b"\r\n" + GET,
                 GET[:-2] + b"Content-Length: 20000\r\n\r\n" + b"x" * 20000):
        Metrics(ask(data, 200))
    Metrics(ask(GET, 200, piece=1))
    Metrics(ask(GET, 200, address=("::1", 9153)))
    head = ask(GET.replace(b"GET", b"HEAD"), 200)
    expect(head.body == b"" and int(head.fields["content-length"]) > 1000, f"the answer to HEAD: {head.fields}")
    for path in (b"/", b"/metric", b"/metrics/", b"/Metrics", b"//metrics", b"*", b"/%6detrics"):
        ask(GET.replace(b"/metrics", path), 404)
    for method in (b"POST", b"PUT", b"OPTIONS", b"get", b"BREW"):
        allowed = ask(GET.replace(b"GET", method), 405).fields.get("allow")
        expect_equal(allowed, "GET, HEAD", f"the methods that {method!r} is told")
    for data in (b"nonsense\r\n\r\n", b"GET /metrics HTTP/1.1\r\n\r\n", GET[:-2] + host + b"\r\n",
                 GET[:-2] + b"A : b\r\n\r\n", GET[:-2] + b"A: b\r\n c\r\n\r\n", GET[:-2] + b"A: \0\r\n\r\n",
                 b"\x16\x03\x01\x02\x00\x01\n\n", b"\0" * 100 + b"\n\n"):
        ask(data, 400)
    ask(GET.replace(b"1.1", b"2.0"), 505)
    ask(b"GET /" + b"a" * 4000, 414)
    ask(GET[:-2] + (b"A: " + b"b" * 1000 + b"\r\n") * 20, 431)
    ask(GET[:-2] + b"A: " + b"b" * 60000, 431)
    # A real client.
    told = testbed.network.run("curl", "-sS", "--max-time", "10", "-w", "%{http_code} %{content_type}",
                               "http://127.0.0.1:9153/metrics").stdout
    expect(told.endswith("# EOF\n200 application/openmetrics-text; version=1.0.0; charset=utf-8"),
           f"what curl says: {told[-200:]!r}")


@check("O4", "who connects and does nothing, or reads nothing, is let go in time and keeps nobody out", lasts=12)
def limits(testbed: DNSTestbed) -> None:
    daemon = _run(testbed)
    before = daemon.memory()
    idle = [testbed.enter(connect(testbed.network)) for _ in range(40)]
    for index, connection in enumerate(idle):
        try:
            connection.sendall(GET[:index % len(GET)])
        except (BrokenPipeError, ConnectionResetError):
            pass  # Later ones have taken its place.
    scrape(testbed.network)
    expect(daemon.memory() - before < 1 << 20, "idle clients take too much memory")
    started = time.monotonic()
    # One sends an octet a second.
    slow = testbed.enter(connect(testbed.network))
    for octet in GET[:-2] + b"A: " + b"b" * 60:
        try:
            slow.sendall(bytes([octet]))
            slow.settimeout(0.4)
            if slow.recv(1) == b"":
                break
        except socket.timeout:
            continue
        except (BrokenPipeError, ConnectionResetError):
            break
    taken = time.monotonic() - started
    expect(8 <= taken <= 14, f"who sends an octet now and then is let go after {taken:.1f} s")
    for connection in idle:
        connection.settimeout(5)
        try:
            expect(connection.recv(1) == b"", "an answer came to half a request")
        except ConnectionResetError:
            pass
        except socket.timeout:
            raise CheckFailure("an idle connection is still open") from None
    # All of it while queries are answered.
    scrape(testbed.network)
    testbed.ask("www.example")


@check("O5", "SIGHUP moves, adds and takes away where metrics are told; a place that is taken changes nothing")
def reloaded(testbed: DNSTestbed) -> None:
    daemon = _run(testbed)
    holder = testbed.enter(testbed.network.socket(socket.AF_INET, socket.SOCK_STREAM))
    holder.bind(("127.0.0.1", 9155))
    holder.listen()

    def silent(address: "tuple[str, int]") -> None:
        try:
            connect(testbed.network, address).close()
        except CheckFailure:
            return
        raise CheckFailure(f"somebody listens at {address}")

    first = scrape(testbed.network)
    waiting = testbed.enter(connect(testbed.network))
    waiting.sendall(GET[:20])
    _listen(daemon, "127.0.0.1:9154", "127.0.0.1:9155")
    daemon.reload("was not taken over")
    scrape(testbed.network).expect_not_before(first)
    silent(("127.0.0.1", 9154))
    _listen(daemon, "127.0.0.1:9154")
    daemon.reload()
    silent(ADDRESS)
    scrape(testbed.network, ("127.0.0.1", 9154)).expect_not_before(first)
    # Who was connected is answered all the same.
    waiting.sendall(GET[20:])
    Metrics(Answer(read_all(waiting)))
    # All addresses, in place of one of them.
    _listen(daemon, "0.0.0.0:9154")
    daemon.reload()
    scrape(testbed.network, ("127.0.0.7", 9154)).expect_not_before(first)
    _listen(daemon)
    daemon.reload()
    silent(("127.0.0.1", 9154))
    testbed.ask("www.example")


@check("O6", "a place for metrics that is taken: the start ends with a status that is not 0, and leaves nothing")
def taken(testbed: DNSTestbed) -> None:
    holder = testbed.enter(testbed.network.socket(socket.AF_INET, socket.SOCK_STREAM))
    holder.bind(ADDRESS)
    holder.listen()
    daemon = testbed.configured("udp://127.0.0.2:53")
    _listen(daemon, PLACE)
    daemon.launch()
    wait_until(lambda: daemon.process.poll() is not None, "the daemon ending", 15, detail=daemon.tail)
    expect(daemon.process.returncode > 0 and "127.0.0.1:9153" in daemon.log(), f"it says: {daemon.tail()}")
    testbed.resign_dns(daemon)
    holder.close()
    _run(testbed)
    scrape(testbed.network)
