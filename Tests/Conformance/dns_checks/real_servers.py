"""Servers that others wrote, behind the proxy: their answers must be what kdig gets of them without it."""

import os
import re
import time

from dns_checks.registry import check
from dns_site import EncryptedSite, ask_all, ask_in_time, expect_good, names
from dns_testbed import DNSTestbed
from dns_upstream import Received, messages
from waiting import CheckFailure, expect, expect_equal, wait_until

UNBOUND, DNSDIST = "127.0.0.20", "127.0.0.21"

_UNBOUND = """server:
  directory: "{folder}"
  chroot: ""
  username: ""
  pidfile: "{folder}/unbound.pid"
  use-syslog: no
  logfile: ""
  num-threads: 1
  do-ip6: no
  interface: {address}@853
  interface: {address}@443
  tls-port: 853
  https-port: 443
  tls-service-key: "{key}"
  tls-service-pem: "{chain}"
  access-control: 127.0.0.0/8 allow
  module-config: "iterator"
  do-not-query-localhost: no
  local-zone: "real.example." static
  local-data: "real.example. 300 IN SOA ns.real.example. root.real.example. 1 3600 600 86400 60"
  local-data: "a.real.example. 300 IN A 192.0.2.20"
  local-data: "a.real.example. 300 IN A 192.0.2.21"
  local-data: "a.real.example. 600 IN AAAA 2001:db8::20"
  local-data: "mail.real.example. 300 IN MX 10 a.real.example."
  local-data: 'text.real.example. 300 IN TXT "one string" "and another; with signs"'
  local-data: "secure.real.example. 300 IN HTTPS 1 . alpn=h2,h3 ipv4hint=192.0.2.20"
  local-data: "other.real.example. 300 IN TYPE65400 \\# 4 01020304"
forward-zone:
  name: "."
  forward-addr: {backend}
remote-control:
  control-enable: no
"""

_DNSDIST = """setSecurityPollSuffix("")
setACL({{"127.0.0.0/8"}})
addTLSLocal("{address}:853", "{chain}", "{key}", {{provider="openssl", numberOfStoredSessions=0}})
addDOHLocal("{address}:443", "{chain}", "{key}", "/dns-query", {{}})
newServer({{address="{backend}:53", healthCheckMode="up"}})
"""

#: What is asked of both, with and without DO.
QUESTIONS = (
    ("a.real.example", "A"), ("A.Real.Example", "AAAA"), ("a.real.example", "TXT"), ("mail.real.example", "MX"),
    ("text.real.example", "TXT"), ("secure.real.example", "HTTPS"), ("other.real.example", "TYPE65400"),
    ("none.real.example", "A"), ("real.example", "SOA"), ("forwarded.example.org", "A"), ("alias.example.org", "A"),
    ("long.example.org", "TXT"), ("absent.example.org", "A"), ("absent.example.org", "AAAA"),
)


def _backend(received: Received) -> bytes:
    """What is behind the servers."""
    query = received.query
    records = {
        ("forwarded", messages.A): [messages.address("192.0.2.30")],
        ("alias", messages.A): [messages.alias("target.example.org", 200),
                                messages.address("192.0.2.31", 100, "target.example.org")],
        ("target", messages.A): [messages.address("192.0.2.31", 100)],
        ("long", messages.TXT): [messages.text(b"%d " % number + b"x" * 200) for number in range(15)],
    }
    label, *domain = query.name.split(".", 1)
    authority = [messages.start_of_authority(owner="".join(domain))]
    if label == "absent":
        return messages.answer(query, authority=authority, code=messages.NXDOMAIN)
    found = records.get((label, query.type))
    if found is None and query.type == messages.A:
        found = [messages.address("192.0.2.1")]
    if found is None:
        return messages.answer(query, authority=authority)
    answer = messages.answer(query, found)
    return messages.answer(query, flags=messages.TC) if received.transport == "udp" and len(answer) > 1232 else answer


class RealServer:
    """unbound or dnsdist with frontends for TLS and HTTPS, and a scripted server behind them."""

    def __init__(self, testbed: DNSTestbed, program: str, address: str):
        self.testbed, self.address = testbed, address
        self.site = EncryptedSite(testbed, address)
        self.folder = testbed.file(program)
        os.mkdir(self.folder)
        self.chain, self.key = self.site.identity.write(self.folder, "server")
        testbed.upstream.script = _backend
        template, self.path = {"unbound": _UNBOUND, "dnsdist": _DNSDIST}[program], f"{self.folder}/{program}.conf"
        with open(self.path, "w") as file:
            file.write(template.format(folder=self.folder, chain=self.chain, key=self.key, address=address,
                                       backend="127.0.0.2"))
        self.words = {"unbound": ["unbound", "-d", "-c", self.path],
                      "dnsdist": ["dnsdist", "--supervised", "--disable-syslog", "-C", self.path]}[program]
        self.start()

    def start(self) -> None:
        """Starts the program and waits until it answers kdig."""
        self.log = f"{self.folder}/log"
        with open(self.log, "ab") as log:
            self.process = self.testbed.start(
                self.testbed.network, *self.words, stdout=log, stderr=log, cwd=self.folder)
        for option in ("+tls", "+https"):
            wait_until(lambda: self._is_answering(option), f"{self.words[0]} answering by {option}", 20, interval=0.1,
                       detail=lambda: open(self.log, errors="replace").read()[-500:])

    def _is_answering(self, option: str) -> bool:
        if self.process.poll() is not None:
            raise CheckFailure(f"{self.words[0]} ended: {open(self.log, errors='replace').read()[-500:]}")
        return "NOERROR" in self.testbed.network.run(
            "kdig", *self.words_of_kdig(option), "start.example.org", "A", "+timeout=1", "+retry=0", check=False).stdout

    def words_of_kdig(self, option: str) -> "list[str]":
        """How kdig reaches the server by TLS or HTTPS."""
        return [f"@{self.address}", option, f"+tls-ca={self.site.authority_file}", f"+tls-hostname={self.site.server}"]


def _answer(testbed: DNSTestbed, words: "list[str]") -> "tuple[str, dict[str, list[str]], list[int]]":
    """Response code, records by section without their TTLs, and TTLs of an answer, as kdig prints them."""
    text = testbed.network.run("kdig", *words, "+timeout=3", "+retry=0").stdout
    code = re.search(r"opcode: QUERY; status: (\w+)", text)
    expect(code is not None, f"kdig {' '.join(words)} printed no answer: {text[-300:]}")
    sections: "dict[str, list[str]]" = {}
    lifetimes, section = [], ""
    for line in text.splitlines():
        if line.startswith(";; ") and line.endswith(" SECTION:"):
            section = line[3:-9]
        elif line and not line.startswith(";") and section:
            owner, lifetime, *rest = line.split(None, 4)
            sections.setdefault(section, []).append(" ".join([owner.lower(), *rest]))
            lifetimes.append(int(lifetime))
    return code.group(1), {name: sorted(lines) for name, lines in sections.items()}, lifetimes


def _compare(testbed: DNSTestbed, server: RealServer, transport: str) -> None:
    option = {"tls": "+tls", "https": "+https"}[transport]
    for name, kind in QUESTIONS:
        for more in ([], ["+dnssec"]):
            asked = [name, kind, *more]
            direct = _answer(testbed, [*server.words_of_kdig(option), *asked])
            # By UDP, where kdig goes on by TCP when it is told to, and by TCP from the start.
            for way in ([], ["+tcp"]):
                through = _answer(testbed, ["@127.0.0.1", *asked, *way])
                what = f"{' '.join([*asked, *way])} through {server.words[0]} by {transport}"
                expect_equal(through[:2], direct[:2], f"the answer to {what}")
                expect(all(0 <= ours <= theirs for ours, theirs in zip(through[2], direct[2]))
                       or sorted(through[2]) <= sorted(direct[2]), f"TTLs of {what}: {through[2]} after {direct[2]}")


def _judge(testbed: DNSTestbed, program: str, address: str, transport: str, **more) -> None:
    server = RealServer(testbed, program, address)
    testbed.run(server.site.member(transport, **more), timeoutSeconds=3)
    _compare(testbed, server, transport)
    for answer in ask_all(testbed, names("burst", 100)).values():
        expect_good(answer)
    _restart(testbed, server)


def _restart(testbed: DNSTestbed, server: RealServer) -> None:
    """A server that is started anew between two queries is noticed by nobody."""
    expect_good(ask_in_time(testbed, "before-restart.example.org", 3))
    server.process.terminate()
    server.process.wait(10)
    server.start()
    started = time.monotonic()
    wait_until(lambda: ask_in_time(testbed, f"restart-{time.monotonic_ns()}.example.org", 4).code == 0,
               "an answer after the server was started anew", 10, interval=0.2)
    expect(time.monotonic() - started < 5, "an answer took long after the server was started anew")


def _enter(program: str, address: str, transport: str, **more) -> None:
    suffix = "".join(f".{value}" for value in more.values())
    row = {"tls": "E4", "https": "D5"}[transport]

    @check(f"{row}.{program}{suffix}", f"{program} by {transport}{suffix.replace('.', ' ')} answers through the proxy "
           "what it answers kdig, in bursts too, and may be started anew")
    def real(testbed: DNSTestbed) -> None:
        _judge(testbed, program, address, transport, **more)


for _program, _address in (("unbound", UNBOUND), ("dnsdist", DNSDIST)):
    _enter(_program, _address, "tls")
    _enter(_program, _address, "https")
_enter("unbound", UNBOUND, "https", method="get")
