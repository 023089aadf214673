"""Programs that people use: dig, kdig and dnsperf."""

import json
import re

import dns_wire
from dns_checks.registry import check
from dns_testbed import TCP, DNSTestbed
from dns_upstream import Received, messages, scripts
from waiting import expect, expect_equal


def dig(testbed: DNSTestbed, *words: str) -> str:
    """What dig says, which must not be that something is wrong."""
    outcome = testbed.network.run("dig", "@127.0.0.1", "+tries=1", "+time=8", *words, check=False, seconds=20)
    expect(outcome.returncode == 0,
           f"dig {' '.join(words)} ended with {outcome.returncode}: {outcome.stdout.strip()[-200:]}")
    for word in ("WARNING", "mismatch", "malformed", "Truncated", "FORMERR: "):
        expect(word not in outcome.stdout, f"dig {' '.join(words)} says: {outcome.stdout.strip()[-300:]}")
    return outcome.stdout


@check("T1", "dig gets what the upstream says, by both transports and families, with EDNS, DNSSEC and cookies")
def digs(testbed: DNSTestbed) -> None:
    testbed.run(rules=["||ads.example^"])
    testbed.note_names("www.example", "ads.example", "text.example")
    for words in ([], ["+tcp"], ["+noedns"], ["+dnssec"], ["+bufsize=512"], ["+nocookie"], ["+cookie"],
                  ["+keepalive", "+tcp"], ["+nsid"], ["+subnet=198.51.100.0/24"], ["+padding=128"], ["+cdflag"],
                  ["+adflag"], ["+norecurse"]):
        for server in ([], ["@::1"]):
            for name, kind, expected in (("www.example", "A", "192.0.2.1"), ("www.example", "AAAA", "2001:db8::1"),
                                         ("text.example", "TXT", '"text"'), ("ads.example", "A", "0.0.0.0"),
                                         ("ads.example", "AAAA", "::"), ("localhost", "A", "127.0.0.1")):
                found = dig(testbed, *server, "+short", *words, name, kind).strip()
                expect_equal(found, expected, f"what dig {' '.join(words)} {name} {kind} says")
    expect("status: NXDOMAIN" in dig(testbed, "www.invalid"), "dig does not see that a name does not exist")


#: The tests of RFC 8906 §8 that a forwarder can be held to: dig's words and the status, by the section.
PLAIN, EDNS = "+noedns +noad +norec", "+nocookie +noad +norec +edns=0"
OTHER_EDNS = "+nocookie +noad +norec +noednsneg +edns=1"
RFC_8906 = {
    "8.1.1 is the server there": (f"{PLAIN} www.example SOA", "NOERROR"),
    "8.1.2 an unknown type": (f"{PLAIN} www.example TYPE1000", "NOERROR"),
    "8.1.3.1 CD=1": (f"{PLAIN} +cd www.example SOA", "NOERROR"),
    "8.1.3.1 AD=1": ("+noedns +norec +ad www.example SOA", "NOERROR"),
    "8.1.3.2 the reserved bit": (f"{PLAIN} +zflag www.example SOA", "NOERROR"),
    "8.1.3.3 RD=1": ("+noedns +noad +rec www.example SOA", "NOERROR"),
    "8.1.4 an unknown opcode": (f"{PLAIN} +opcode=15 +header-only", "NOTIMP"),
    "8.1.5 TCP": (f"{PLAIN} +tcp www.example SOA", "NOERROR"),
    "8.2.1 EDNS": (f"{EDNS} www.example SOA", "NOERROR"),
    "8.2.2 another version": (f"{OTHER_EDNS} www.example SOA", "BADVERS"),
    "8.2.3 an unknown option": (f"{EDNS} +ednsopt=100 www.example SOA", "NOERROR"),
    "8.2.4 an unknown flag": (f"{EDNS} +ednsflags=0x40 www.example SOA", "NOERROR"),
    "8.2.5 another version and a flag": (f"{OTHER_EDNS} +ednsflags=0x40 www.example SOA", "BADVERS"),
    "8.2.6 another version and an option": (f"{OTHER_EDNS} +ednsopt=100 www.example SOA", "BADVERS"),
    "8.2.7 DO": (f"{EDNS} +dnssec www.example SOA", "NOERROR"),
    "8.2.8 another version and DO": (f"{OTHER_EDNS} +dnssec www.example SOA", "BADVERS"),
    "8.2.9 several options": (
        "+edns=0 +noad +norec +cookie +nsid +expire +subnet=0.0.0.0/0 www.example SOA", "NOERROR"),
}


@check("T2", "the tests of RFC 8906, with the dig commands that stand there")
def rfc_8906(testbed: DNSTestbed) -> None:
    testbed.upstream.script = lambda received: messages.answer(
        received.query, [messages.start_of_authority()] if received.query.type == dns_wire.SOA else [],
        authority=[] if received.query.type == dns_wire.SOA else [messages.start_of_authority()])
    testbed.run()
    testbed.note_names("www.example")
    for what, (text, status) in RFC_8906.items():
        words = text.split()
        output = dig(testbed, *words)
        found = re.search(r"status: (\w+)", output)
        expect(found and found[1] == status, f"{what}: the status is {found and found[1]}, expected {status}")
        edns = re.search(r"EDNS: version: (\d+), flags:([^;]*);", output)
        expect_equal(edns and int(edns[1]), None if "+noedns" in words else 0, f"{what}: the version of EDNS")
        flags = re.search(r";; flags: ([^;]*);", output)[1].split()
        expect("qr" in flags and "aa" not in flags and "tc" not in flags, f"{what}: the flags are {flags}")
        expect_equal("cd" in flags, "+cd" in words, f"{what}: whether CD is set")
        expect_equal("rd" in flags, "+rec" in words, f"{what}: whether RD is set")
        expect("MBZ" not in output, f"{what}: flags that must be 0 are not: {output}")
        expect("OPT=100" not in output, f"{what}: the option is repeated: {output}")
        if edns:
            expect_equal(edns[2].split(), ["do"] if "+dnssec" in words else [], f"{what}: the flags of EDNS")
        answered = "ANSWER: 1," in output
        expect_equal(answered, status == "NOERROR" and "TYPE1000" not in words, f"{what}: whether there is an answer")


@check("T3", "kdig gets what the upstream says, also many queries by one connection")
def kdigs(testbed: DNSTestbed) -> None:
    testbed.run()
    names = [f"host{number}.example" for number in range(20)]
    testbed.note_names(*names)
    for words in (["+notcp"], ["+tcp"], ["+tcp", "+keepopen"], ["+edns", "+dnssec", "+padding=100"], ["+noedns"]):
        outcome = testbed.network.run("kdig", "@127.0.0.1", "+json", "+time=8", "+retry=0", *words, *names, seconds=30)
        decoder, at, replies = json.JSONDecoder(), 0, []
        text = outcome.stdout.strip()
        while at < len(text):
            reply, at = decoder.raw_decode(text, at)
            replies.append(reply)
            while at < len(text) and text[at].isspace():
                at += 1
        found = [(one["QNAME"].rstrip("."), one["RCODE"], [record.get("rdataA") for record in one.get("answerRRs", [])])
                 for one in (reply.get("responseMessage", reply) for reply in replies)]
        expect_equal(found, [(name, 0, ["192.0.2.1"]) for name in names], f"what kdig {' '.join(words)} says")


def _perform(testbed: DNSTestbed, *words: str) -> "dict[str, str]":
    """What dnsperf measures in three seconds."""
    names = [f"host{number}.example" for number in range(200)]
    testbed.note_names(*names)
    path = testbed.file("queries")
    with open(path, "w") as file:
        file.writelines(f"{name} {kind}\n" for name in [*names, "ads.example"] for kind in ("A", "AAAA", "HTTPS"))
    outcome = testbed.network.run(
        "dnsperf", "-s", "127.0.0.1", "-d", path, "-l", "3", "-t", "5", *words, seconds=30)
    return dict(re.findall(r"^\s*(Queries \w+|Response codes):\s+(.*)$", outcome.stdout, re.MULTILINE))


@check("T4", "dnsperf loses nothing", lasts=9, exclusive=True)
def performs(testbed: DNSTestbed) -> None:
    def script(received: Received) -> bytes:
        if received.query.type == dns_wire.HTTPS:
            data = dns_wire.service(b"\0", 1, [(1, b"\2h2")])
            return messages.answer(received.query, [messages.record(dns_wire.HTTPS, data)])
        return scripts.usual(received.query)

    testbed.upstream.script = script
    testbed.run(TCP, rules=["||ads.example^"])
    for words in (["-Q", "3000", "-c", "10"], ["-m", "tcp", "-Q", "2000", "-c", "20"], ["-e", "-D", "-Q", "3000"]):
        found = _perform(testbed, *words)
        expect(found.get("Queries lost", "").startswith("0 "), f"dnsperf {' '.join(words)} lost: {found}")
        expect(int(found["Queries completed"].split()[0]) > 2000, f"dnsperf {' '.join(words)} did little: {found}")
        expect(found["Response codes"].startswith("NOERROR") and "100.00%" in found["Response codes"],
               f"dnsperf {' '.join(words)} got: {found}")
