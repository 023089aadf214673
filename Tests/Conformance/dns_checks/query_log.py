"""The log of queries that `sluice status --queries` prints."""

import datetime
import json
import os
import re
import signal
import socket
import subprocess
import threading

import dns_wire
from dns_checks.registry import check
from dns_checks.shape import expect_addresses, expect_code
from dns_daemon import DNSDaemon
from dns_secure_client import SecureListening
from dns_secure_client import query as secure_query
from dns_testbed import TRANSPORTS, DNSTestbed
from dns_upstream import scripts
from dns_wire import NXDOMAIN, SERVFAIL
from waiting import expect, expect_equal, pause, wait_until

HIDDEN = "<private>"
#: How many queries the log keeps.
CAPACITY = 512


def _print(testbed: DNSTestbed, daemon: DNSDaemon, *words: str, status: int = 0) -> subprocess.CompletedProcess:
    outcome = testbed.network.run(
        *testbed.command, "status", "--queries", *words, "--config", daemon.path, check=False)
    expect_equal(outcome.returncode, status, f"the status of sluice status --queries ({outcome.stderr})")
    return outcome


def queries(testbed: DNSTestbed, daemon: DNSDaemon) -> "list[dict]":
    """The log as programs get it: an object for each query."""
    return [json.loads(line) for line in _print(testbed, daemon, "--json").stdout.splitlines()]


def _short(entry: dict) -> "tuple[str, ...]":
    return tuple(str(entry[name]) for name in ("name", "type", "transport", "result", "code"))


@check("Q1", "with dns.queryLog full, each query is in the log once: name, client, type, result, code, upstream, times")
def full(testbed: DNSTestbed) -> None:
    testbed.upstream.script = scripts.by_name({"www.example": ["192.0.2.1"], "inside.example": ["10.0.0.1"]})
    daemon = testbed.run(rules=["||ads.example^"], queryLog="full", timeoutSeconds=1)
    before = datetime.datetime.now(datetime.timezone.utc)
    expect_addresses(testbed.ask("WwW.example"), "192.0.2.1")
    expect_addresses(testbed.ask("www.example", transport="tcp", family=6), "192.0.2.1")
    testbed.ask("x.ads.example", dns_wire.AAAA)
    testbed.ask("localhost")
    testbed.ask("inside.example")
    expect_code(testbed.ask("none.example", dns_wire.HTTPS), NXDOMAIN)
    testbed.ask("example.com", dns_wire.AXFR, "tcp")
    testbed.exchange(dns_wire.query("a.example", edns=dns_wire.opt(version=1)))
    testbed.upstream.script = scripts.silence
    expect_code(testbed.ask("lost.example"), SERVFAIL)
    expect_code(testbed.ask("lost.example"), SERVFAIL)
    after = datetime.datetime.now(datetime.timezone.utc)
    found = queries(testbed, daemon)
    expect_equal([_short(one) for one in found], [
        ("WwW.example.", "A", "udp", "forwarded", "NOERROR"), ("www.example.", "A", "tcp", "cached", "NOERROR"),
        ("x.ads.example.", "AAAA", "udp", "blocked", "NOERROR"), ("localhost.", "A", "udp", "local", "NOERROR"),
        ("inside.example.", "A", "udp", "rebinding", "NOERROR"),
        ("none.example.", "HTTPS", "udp", "forwarded", "NXDOMAIN"),
        ("example.com.", "AXFR", "tcp", "refused", "REFUSED"), ("a.example.", "A", "udp", "refused", "BADVERS"),
        ("lost.example.", "A", "udp", "failed", "SERVFAIL"), ("lost.example.", "A", "udp", "failed", "SERVFAIL"),
    ], "the log")
    expect_equal([one["client"] for one in found], ["127.0.0.1", "::1"] + ["127.0.0.1"] * 8, "the clients")
    expect_equal([one["upstream"] for one in found],
                 ["main", None, None, None, "main", "main", None, None, "main", None], "the upstreams")
    expect_equal([one["rule"] for one in found],
                 [None, None, "rules.inline", None, "dns.rebinding", None, None, None, None, None], "the rules")
    expect_equal([one["extendedError"] for one in found], [None] * 8 + [22, 13], "the extended errors (RFC 8914)")
    expect(all(not one["merged"] and not one["tunnel"] for one in found), f"some are merged, or of a tunnel: {found}")
    times = [datetime.datetime.strptime(one["time"], "%Y-%m-%dT%H:%M:%S.%f%z") for one in found]
    slack = datetime.timedelta(milliseconds=50)
    expect(times == sorted(times) and before - slack <= times[0] and times[-1] <= after + slack,
           f"the times are not those of the queries: {[one['time'] for one in found]}, {before}, {after}")
    expect(900_000 <= found[8]["microseconds"] <= 2_500_000, f"the time of a failure after a second: {found[8]}")
    expect(all(one["microseconds"] < 500_000 for one in found[:8]), "the times that answers took are too long")
    # For people: a line for each, of the same.
    lines = _print(testbed, daemon).stdout.splitlines()
    expect_equal(len(lines), len(found), "the number of lines")
    expect_equal(re.sub(r"^\S+Z | [0-9.]+ ms$", "", lines[0]), "udp 127.0.0.1 WwW.example. A NOERROR forwarded (main)",
                 "the first line")
    # Not even this log is a reason to have names in the other one.
    testbed.expect_no_name(daemon)


@check("Q2", "unless dns.queryLog is full, neither a name nor a client is in the log, nor in what programs get of it")
def private(testbed: DNSTestbed) -> None:
    daemon = testbed.run(rules=["||ads.example^"])
    for name in ("www.secret.example", "www.secret.example", "ads.example"):
        for transport in TRANSPORTS:
            testbed.ask(name, transport=transport)
    found = queries(testbed, daemon)
    expect_equal([(one["type"], one["result"]) for one in found],
                 [("A", "forwarded")] + [("A", "cached")] * 3 + [("A", "blocked")] * 2, "the log")
    expect_equal({(one["name"], one["client"]) for one in found}, {(HIDDEN, HIDDEN)}, "names and clients")
    for words in ((), ("--json",)):
        text = _print(testbed, daemon, *words).stdout
        expect("secret" not in text and "ads.example" not in text and "127.0.0.1" not in text, f"it is told: {text}")


@check("Q3", "with dns.queryLog off there is none, and SIGHUP turns it off, on, and to more; what was kept then goes")
def reloaded(testbed: DNSTestbed) -> None:
    daemon = testbed.run(queryLog="off")
    testbed.ask("one.example")
    outcome = _print(testbed, daemon, status=1)
    expect(outcome.stdout == "" and "queryLog" in outcome.stderr, f"it says {outcome}")

    def change(mode: str) -> None:
        daemon.write("udp://127.0.0.2:53", queryLog=mode)
        daemon.reload()

    change("full")
    testbed.ask("two.example")
    expect_equal([one["name"] for one in queries(testbed, daemon)], ["two.example."], "the log after it was begun")
    change("full")
    expect_equal(len(queries(testbed, daemon)), 1, "the queries that a reload leaves")
    change("private")
    testbed.ask("two.example")
    expect_equal([one["name"] for one in queries(testbed, daemon)], [HIDDEN], "the log after it was made private")
    change("off")
    _print(testbed, daemon, status=1)


@check("Q4", "queries that wait for one answer are marked as merged, all with the time that they took")
def merged(testbed: DNSTestbed) -> None:
    testbed.upstream.script = scripts.late(0.4)
    daemon = testbed.run(queryLog="full")
    clients = [testbed.udp() for _ in range(5)] + [testbed.tcp() for _ in range(5)]
    for client in clients:
        client.send(dns_wire.query("www.example"))
    for client in clients:
        expect_addresses(client.receive(), "192.0.2.1")
    found = queries(testbed, daemon)
    expect_equal(sorted(one["merged"] for one in found), [False] + [True] * 9, "which were merged")
    expect_equal({one["result"] for one in found}, {"forwarded"}, "the results")
    expect_equal(sorted(one["transport"] for one in found), ["tcp"] * 5 + ["udp"] * 5, "the transports")
    expect(all(200_000 <= one["microseconds"] <= 3_000_000 for one in found),
           f"the times are {[one['microseconds'] for one in found]} µs")


class _Follower:
    """Reads what `sluice status --queries --watch --json` prints."""

    def __init__(self, testbed: DNSTestbed, daemon: DNSDaemon):
        self.process = testbed.start(
            testbed.network, *testbed.command, "status", "--queries", "--watch", "--json", "--config", daemon.path,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.found: "list[dict]" = []
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        for line in self.process.stdout:
            self.found.append(json.loads(line))

    @property
    def lost(self) -> int:
        """How many queries it was told are lost."""
        return sum(one.get("lost", 0) for one in self.found)

    @property
    def names(self) -> "list[str]":
        """The names that were asked for."""
        return [one["name"] for one in self.found if "name" in one]


@check("Q5", "--watch prints what is there, then each query when it is answered, each once, whoever else watches")
def followed(testbed: DNSTestbed) -> None:
    daemon = testbed.run(queryLog="full")
    testbed.ask("before.example")
    followers = [_Follower(testbed, daemon) for _ in range(3)]
    for follower in followers:
        wait_until(lambda: follower.names == ["before.example."], "the first query being printed", 10)
    for number in range(20):
        testbed.ask(f"host{number}.example")
        for follower in followers:
            wait_until(lambda: len(follower.names) > number + 1, f"query {number} being printed", 10)
    # Many at once.
    client = testbed.udp(buffer=1 << 20)
    for number in range(300):
        client.send(dns_wire.query("localhost"))
    for number in range(300):
        client.receive()
    expected = ["before.example."] + [f"host{number}.example." for number in range(20)] + ["localhost."] * 300
    for follower in followers:
        wait_until(lambda: len(follower.names) + follower.lost >= len(expected), "all being printed", 10)
        expect_equal((follower.names, follower.lost), (expected, 0), "what was printed")
    # Nobody is told anything when nothing happens, and the daemon rests.
    spent = _processor_ticks(daemon)
    pause(1)
    expect(_processor_ticks(daemon) - spent <= 3, "the daemon is busy although nothing happens")
    daemon.stop()
    for follower in followers:
        wait_until(lambda: follower.process.poll() is not None, "a follower ending with the daemon", 10)
        expect_equal(follower.process.returncode, 1, "the status of a follower when the daemon ends")
    testbed.resign_dns(daemon)
    testbed.run()


def _processor_ticks(daemon: DNSDaemon) -> int:
    with open(f"/proc/{daemon.pid}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


@check("Q6", "who follows too slowly is told how many are lost; the log has a bound, and no query waits for it")
def slow(testbed: DNSTestbed) -> None:
    daemon = testbed.run(queryLog="full")
    follower = _Follower(testbed, daemon)
    testbed.ask("first.example")
    wait_until(lambda: follower.names == ["first.example."], "the first query being printed", 10)
    os.kill(follower.process.pid, signal.SIGSTOP)
    total = 5 * CAPACITY
    client = testbed.udp()
    for start in range(0, total, 64):
        for number in range(start, start + 64):
            client.send(dns_wire.query("localhost"))
        for number in range(64):
            client.receive()
    os.kill(follower.process.pid, signal.SIGCONT)
    testbed.ask("last.example")
    wait_until(lambda: "last.example." in follower.names, "the last query being printed", 10)
    expect(follower.lost > 0, "nothing is said to be lost")
    expect_equal(len(follower.names) + follower.lost, total + 2, "queries that were printed or are lost")
    expect_equal(len(queries(testbed, daemon)), CAPACITY, "the queries that are kept")
    follower.process.kill()
    follower.process.wait()


@check("Q7", "long names with any octets are told as zone files have them, and answers stay within their bound")
def long_names(testbed: DNSTestbed) -> None:
    daemon = testbed.run(queryLog="full")
    labels = [bytes(range(1, 64)), bytes(range(128, 191)), b'"\\' * 31, b"\0" * 50]
    client = testbed.tcp()
    for number in range(200):
        client.send(dns_wire.query(labels + [b"%03d" % number, b"example"], dns_wire.A))
        client.receive()
    found = queries(testbed, daemon)
    expect(len(found) >= 200, f"only {len(found)} queries are there")
    expected = "".join(_zone_text(label) + "." for label in labels)
    for number, entry in enumerate(found[-200:]):
        expect_equal(entry["name"], f"{expected}{number:03}.example.", "a long name")
    lines = _print(testbed, daemon).stdout.splitlines()
    expect(len(lines) == len(found) and all(line.isprintable() for line in lines), "a name breaks the lines")


def _zone_text(label: bytes) -> str:
    """A label as zone files have it (RFC 1035 §5.1), by dnspython."""
    import dns.name

    return dns.name.Name([label]).to_text()


@check("Q8", "nonsense instead of a request for queries is refused, and who leaves while waiting does no harm")
def nonsense(testbed: DNSTestbed) -> None:
    daemon = testbed.run(queryLog="full")

    def connect() -> socket.socket:
        connection = testbed.enter(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
        connection.settimeout(10)
        connection.connect(daemon.socket)
        return connection

    for request in ('{"queries": 1}', '{"queries": {"from": -1}}', '{"queries": {"x": 1}}', '{"queries": {}, "a": 1}'):
        with connect() as connection:
            connection.sendall(request.encode() + b"\n")
            answer = json.loads(connection.makefile().readline())
            expect("error" in answer, f"{request} is answered with {answer}")
    testbed.ask("one.example")
    waiting = [connect() for _ in range(60)]
    for connection in waiting:
        connection.sendall(b'{"queries": {"from": 1, "timeLimitSeconds": 60}}\n')
    status = daemon.status()
    expect("dns" in status, f"the status while many wait: {status}")
    for connection in waiting[:30]:
        connection.close()
    testbed.ask("two.example")
    for connection in waiting[30:]:
        answer = json.loads(connection.makefile().readline())
        expect_equal([one["name"] for one in answer["queries"]], ["two.example."], "what one gets that waited")
        connection.setblocking(False)
        try:
            expect(not connection.recv(1), "something came unasked")
        except BlockingIOError:
            pass
    # One that asks for what is there already, or for a number of another run, is not held.
    for first in (0, 1 << 40):
        with connect() as connection:
            connection.sendall(b'{"queries": {"from": %d, "timeLimitSeconds": 60}}\n' % first)
            answer = json.loads(connection.makefile().readline())
            expect_equal(len(answer["queries"]), 2, f"the queries from {first} on")
    # A time limit without a query.
    with connect() as connection:
        connection.sendall(b'{"queries": {"from": 2, "timeLimitSeconds": 1}}\n')
        answer = json.loads(connection.makefile().readline())
        expect_equal((answer["queries"], answer["next"], answer["lost"]), ([], 2, 0), "the answer at the time limit")


@check("Q9", "queries that several threads take are each in the log once, and the log takes no more memory than it may")
def threads(testbed: DNSTestbed) -> None:
    daemon = testbed.run(queryLog="full", workers=4)
    clients = [testbed.udp() for _ in range(16)]
    expected = []
    for turn in range(20):
        for index, client in enumerate(clients):
            client.send(dns_wire.query(f"t{turn}-{index}.localhost"))
            expected.append(f"t{turn}-{index}.localhost.")
        for client in clients:
            client.receive()
    expect_equal(sorted(one["name"] for one in queries(testbed, daemon)), sorted(expected), "the names in the log")
    before = daemon.memory()
    for turn in range(200):
        for client in clients:
            client.send(dns_wire.query(f"{'long' * 12}.{'long' * 12}.t{turn}.localhost"))
        for client in clients:
            client.receive()
    grown = daemon.memory() - before
    expect(grown <= 300_000, f"the daemon took {grown} bytes more for 3,200 queries")


@check("Q10", "clients by TLS and HTTPS, local aliases and hosts files are in the log as what they are")
def others(testbed: DNSTestbed) -> None:
    hosts = testbed.file("hosts")
    with open(hosts, "w") as file:
        file.write("0.0.0.0 ads.example\n")
    listening = SecureListening(testbed)
    daemon = listening.run(queryLog="full", hostsFile=hosts, records=["alias.example CNAME www.example"])
    with listening.tls() as client, listening.https() as web:
        for _ in range(2):
            expect_addresses(client.exchange(dns_wire.query("one.example")), "192.0.2.1")
            expect_addresses(web.ask(secure_query("two.example")).message, "192.0.2.1")
        web.ask(secure_query("ads.example"))
    expect_equal(testbed.ask("alias.example").code, 0, "the code of an alias")
    expect_equal(testbed.ask("alias.example").code, 0, "the code of an alias that is known")
    found = queries(testbed, daemon)
    expect_equal({(one["name"], one["transport"], one["result"], one["rule"]) for one in found}, {
        ("one.example.", "tls", "forwarded", None), ("one.example.", "tls", "cached", None),
        ("two.example.", "https", "forwarded", None), ("two.example.", "https", "cached", None),
        ("ads.example.", "https", "blocked", "dns.hostsFile"), ("alias.example.", "udp", "forwarded", None),
        ("alias.example.", "udp", "cached", None)}, "the log")
    expect_equal((len(found), {one["client"] for one in found}), (7, {"127.0.0.1"}), "the queries and their clients")
