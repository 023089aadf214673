"""Programs that people use, as clients by TLS and HTTPS: kdig, curl, dnsperf, and this daemon itself."""

import http.server
import json
import re
import threading

import dns_wire
from dns_checks.registry import check
from dns_checks.shape import expect_addresses
from dns_secure_client import SERVER, SecureListening
from dns_testbed import DNSTestbed
from dns_upstream import scripts
from waiting import expect, expect_equal

#: What curl looks up, and where the page is that it finds there.
SITE, PAGE = "page.example", "127.0.0.5"


@check("T3.secure", "kdig gets what the upstream says by TLS and HTTPS, POST and GET, also many queries by one connection")
def kdigs(testbed: DNSTestbed) -> None:
    listening = SecureListening(testbed)
    listening.run()
    names = [f"host{number}.example" for number in range(20)]
    testbed.note_names(*names)
    trust = [f"+tls-ca={listening.authority_file}", f"+tls-hostname={SERVER}"]
    for server in ("127.0.0.1", "::1"):
        for words in (["+tls"], ["+tls", "+keepopen"], ["+tls", "+padding=128", "+dnssec"], ["+https"],
                      ["+https=/dns-query", "+keepopen"], ["+https", "+https-get"]):
            outcome = testbed.network.run(
                "kdig", f"@{server}", "+json", "+time=8", "+retry=0", *trust, *words, *names, check=False, seconds=60)
            decoder, at, replies = json.JSONDecoder(), 0, []
            text = outcome.stdout.strip()
            while at < len(text):
                reply, at = decoder.raw_decode(text, at)
                replies.append(reply)
                while at < len(text) and text[at].isspace():
                    at += 1
            found = [(one["QNAME"].rstrip("."), one["RCODE"],
                      [record.get("rdataA") for record in one.get("answerRRs", [])])
                     for one in (reply.get("responseMessage", reply) for reply in replies)]
            expect_equal(found, [(name, 0, ["192.0.2.1"]) for name in names],
                         f"what kdig {' '.join(words)} says ({outcome.stderr.strip()[-200:]})")
    # A client that is strict about who it talks to.
    for words in (["+tls"], ["+https"]):
        outcome = testbed.network.run(
            "kdig", "@127.0.0.1", "+retry=0", trust[0], "+tls-hostname=other.example", *words, names[0], check=False,
            seconds=30)
        expect("NOERROR" not in outcome.stdout, f"kdig is content with another name: {outcome.stdout}")


class _Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = b"the page"
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words) -> None:
        pass


@check("T5.curl", "curl finds a page by the name that it looks up by HTTPS")
def curl(testbed: DNSTestbed) -> None:
    testbed.upstream.script = scripts.by_name({SITE: [PAGE]})
    listening = SecureListening(testbed)
    daemon = listening.run(rebinding="allow")
    testbed.note_names(SITE)
    with testbed.network.entered():
        server = http.server.ThreadingHTTPServer((PAGE, 80), _Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        for number in range(3):
            outcome = testbed.network.run(
                "curl", "--silent", "--show-error", "--fail", "--max-time", "15", "--cacert", listening.authority_file,
                "--doh-url", f"https://{SERVER}/dns-query", "--resolve", f"{SERVER}:443:127.0.0.1", f"http://{SITE}/",
                check=False, seconds=30)
            expect_equal((outcome.returncode, outcome.stdout), (0, "the page"),
                         f"what curl finds ({outcome.stderr.strip()})")
    finally:
        server.shutdown()
        server.server_close()
    expect(daemon.status()["dns"]["clients"]["secure"]["https"] >= 3, "curl did not come by HTTPS")


@check("T4.secure", "dnsperf loses nothing by TLS and by HTTPS", lasts=8, exclusive=True)
def performs(testbed: DNSTestbed) -> None:
    listening = SecureListening(testbed)
    listening.run(rules=["||ads.example^"])
    names = [f"host{number}.example" for number in range(200)]
    testbed.note_names(*names)
    path = testbed.file("queries")
    with open(path, "w") as file:
        file.writelines(f"{name} A\n" for name in [*names, "ads.example"])
    for words in (["-m", "dot", "-Q", "2000", "-c", "20"], ["-m", "dot", "-Q", "2000", "-c", "5", "-e", "-D"],
                  ["-m", "doh", "-Q", "2000", "-c", "20"],
                  ["-m", "doh", "-Q", "2000", "-c", "5", "-O", "doh-method=POST"]):
        outcome = testbed.network.run(
            "dnsperf", "-s", "127.0.0.1", "-d", path, "-l", "2", "-t", "5", "-O",
            "doh-uri=https://localhost/dns-query", *words, check=False, seconds=40)
        found = dict(re.findall(r"^\s*(Queries \w+|Response codes):\s+(.*)$", outcome.stdout, re.MULTILINE))
        expect(found.get("Queries lost", "").startswith("0 "),
               f"dnsperf {' '.join(words)} lost: {found} {outcome.stderr.strip()[-300:]}")
        expect(int(found["Queries completed"].split()[0]) > 2000, f"dnsperf {' '.join(words)} did little: {found}")
        expect("NOERROR" in found["Response codes"] and "100.00%" in found["Response codes"],
               f"dnsperf {' '.join(words)} got: {found}")


@check("T6.chain", "`sluice dns query`, and another daemon, use the listeners as their upstream")
def chain(testbed: DNSTestbed) -> None:
    listening = SecureListening(testbed)
    listening.run(rules=["||ads.example^"])
    urls = {"tls": f"tls://{SERVER}", "https": f"https://{SERVER}/dns-query"}
    testbed.note_names("www.example", "ads.example")
    for url in urls.values():
        for name, kind, expected in (("www.example", "A", "192.0.2.1"), ("www.example", "AAAA", "2001:db8::1"),
                                     ("ads.example", "A", "0.0.0.0")):
            outcome = testbed.network.run(
                *testbed.command, "dns", "query", name, kind, "--upstream", url, "--address", "127.0.0.1", "--ca",
                listening.authority_file, check=False, seconds=20)
            expect(outcome.returncode == 0 and expected in outcome.stdout,
                   f"sluice dns query {name} {kind} by {url} says {outcome.stdout} {outcome.stderr}")
    for number, (transport, method) in enumerate((("tls", None), ("https", "post"), ("https", "get")), start=2):
        upstream = {"url": urls[transport], "addresses": ["127.0.0.1"], "caFile": listening.authority_file,
                    **({"method": method} if method else {})}
        address = f"127.0.0.{number + 20}"
        second = testbed.configured(upstream, listen=[f"{address}:53"])
        second.launch()
        second.wait_until_ready()
        names = [f"{transport}{number}-{one}.example" for one in range(30)]
        with testbed.network.socket(2, 2) as client:
            client.connect((address, 53))
            client.settimeout(8)
            for identifier, name in enumerate(names):
                message = dns_wire.query(name, identifier=identifier, edns=dns_wire.opt())
                testbed.note(message)
                client.send(message)
            for _ in names:
                answer = dns_wire.Message.checked(client.recv(65535))
                expect_addresses(answer, "192.0.2.1")
        upstreams = second.status()["dns"]["upstreams"]
        expect(upstreams[0]["failures"] == 0 and upstreams[0]["connections"] == 1,
               f"the second daemon asked by something else than one connection, or in vain: {upstreams}")
        testbed.resign_dns(second)
        second.stop()
        testbed.expect_no_name(second)
