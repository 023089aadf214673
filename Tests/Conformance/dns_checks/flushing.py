"""Answers that are forgotten because somebody says so."""

import json
import socket
import subprocess

from dns_checks.registry import check
from dns_checks.shape import expect_code
from dns_testbed import DNSTestbed
from dns_wire import A, AAAA, NOERROR
from waiting import expect, expect_equal

NAMES = ("example.com", "www.example.com", "a.b.example.com", "example.org", "notexample.com")


def _flush(testbed: DNSTestbed, daemon, *arguments: str, status: int = 0) -> str:
    result = subprocess.run([*testbed.command, "dns", "flush", *arguments, "--config", daemon.path],
                            capture_output=True, text=True, timeout=20)
    expect_equal(result.returncode, status, f"the status of sluice dns flush {arguments}: {result.stderr}")
    return result.stdout + result.stderr


@check("F10.flush", "`sluice dns flush` forgets a name with all below it, or everything, and says how much that was")
def flush(testbed: DNSTestbed) -> None:
    daemon = testbed.run()

    def ask_all() -> None:
        for name in NAMES:
            for kind in (A, AAAA):
                expect_code(testbed.ask(name, kind), NOERROR)

    def asked() -> "dict[str, int]":
        return {name: len(testbed.upstream.asked(name)) for name in NAMES}

    ask_all()
    ask_all()
    expect_equal(set(asked().values()), {2}, "the questions before anything is forgotten")
    expect(_flush(testbed, daemon, "Example.COM").startswith("6 answers"), "not the six answers of the domain")
    ask_all()
    expect_equal(asked(), {"example.com": 4, "www.example.com": 4, "a.b.example.com": 4, "example.org": 2,
                           "notexample.com": 2}, "the questions after the domain is forgotten")
    expect(_flush(testbed, daemon, "www.example.com.").startswith("2 answers"), "not the two answers of the name")
    expect(_flush(testbed, daemon, "nothing.example").startswith("0 answers"), "something of a name that is not there")
    expect(_flush(testbed, daemon).startswith("8 answers"), "not all answers")
    expect_equal(daemon.status()["dns"]["cache"]["answers"], 0, "the answers that are kept")
    ask_all()
    expect_equal(_flush(testbed, daemon, ".").split()[0], "10", "the answers below the root")


@check("F10.wrong", "what cannot be forgotten, or asked for, is said in words")
def wrong(testbed: DNSTestbed) -> None:
    daemon = testbed.run()
    expect("not a name" in _flush(testbed, daemon, "a..b", status=2), "a name that is none")
    expect("one name" in _flush(testbed, daemon, "a.example", "b.example", status=2), "two names")
    for line, word in (('{"flushDNS": {"name": 7}}', "domain name"), ('{"flushDNS": {"names": "a"}}', "names"),
                       ('{"flushDNS": 1}', "object"), ('{"flushDNS": {"name": "a..b"}}', "domain name")):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(10)
            connection.connect(daemon.socket)
            connection.sendall(line.encode() + b"\n")
            answer = json.loads(connection.makefile().readline())
        expect(word in answer.get("error", ""), f"{line} is answered with {answer}")
