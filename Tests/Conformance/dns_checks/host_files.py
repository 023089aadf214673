"""Hosts files: addresses, names of addresses, what is blocked, and files that change."""

import ipaddress
import os
import signal
import subprocess

import dns_wire
from dns_checks.registry import check
from dns_checks.shape import expect_addresses, expect_code, expect_negative
from dns_testbed import TRANSPORTS, UDP, DNSTestbed
from dns_wire import A, AAAA, HTTPS, MX, NOERROR, NXDOMAIN, PTR
from waiting import expect, expect_equal, pause, wait_until

#: What Debian's installer writes, and what people add.
DEBIAN = """\
127.0.0.1\tlocalhost
127.0.1.1\tdebian.corp.example\tdebian

# The following lines are desirable for IPv6 capable hosts
::1     localhost ip6-localhost ip6-loopback
ff02::1 ip6-allnodes
ff02::2 ip6-allrouters
192.0.2.20 build.corp.example build   # two names
2001:db8::20 build.corp.example
192.0.2.21 Build.Corp.Example.
192.0.2.20 build.corp.example
"""


def _write(testbed: DNSTestbed, text: "str | bytes", name: str = "hosts") -> str:
    """Puts a hosts file in the place of the one before, whole."""
    path = testbed.file(name)
    with open(path + ".new", "wb") as file:
        file.write(text.encode() if isinstance(text, str) else text)
    os.rename(path + ".new", path)
    return path


def _pointers(testbed: DNSTestbed, address: str) -> "list[str]":
    answer = expect_code(testbed.ask(ipaddress.ip_address(address).reverse_pointer, PTR), NOERROR)
    return [dns_wire.text(one.plain) for one in answer.answers]


@check("I4", "a hosts file gives names their addresses, nothing of the other family, and addresses their names")
def addresses(testbed: DNSTestbed) -> None:
    testbed.run(hostsFile=_write(testbed, DEBIAN), rules=["||corp.example^"])
    for transport in TRANSPORTS:
        for name in ("build.corp.example", "Build.CORP.example"):
            expect_addresses(testbed.ask(name, A, transport), "192.0.2.20", "192.0.2.21")
            expect_addresses(testbed.ask(name, AAAA, transport), "2001:db8::20")
            expect_negative(testbed.ask(name, HTTPS, transport), NOERROR)
        expect_addresses(testbed.ask("build", A, transport), "192.0.2.20")
        expect_negative(testbed.ask("build", AAAA, transport), NOERROR)
        expect_addresses(testbed.ask("debian", A, transport), "127.0.1.1")
        expect_addresses(testbed.ask("debian.corp.example", A, transport), "127.0.1.1")
        expect_addresses(testbed.ask("ip6-loopback", AAAA, transport), "::1")
        # The machine itself is what standards say, whatever the file leaves out.
        expect_addresses(testbed.ask("localhost", A, transport), "127.0.0.1")
        expect_addresses(testbed.ask("localhost", AAAA, transport), "::1")
    expect_equal(_pointers(testbed, "192.0.2.20"), ["build.corp.example"], "the name of the first address")
    expect_equal(_pointers(testbed, "192.0.2.21"), ["Build.Corp.Example"], "the name of the second address")
    expect_equal(_pointers(testbed, "2001:db8::20"), ["build.corp.example"], "the name of the IPv6 address")
    expect_equal(_pointers(testbed, "127.0.0.1"), ["localhost"], "the name of the machine's address")
    expect_equal(_pointers(testbed, "127.0.1.1"), ["debian.corp.example"], "the name of Debian's address")
    expect_code(testbed.ask(ipaddress.ip_address("10.0.0.1").reverse_pointer, PTR), NXDOMAIN)
    testbed.expect_nothing_asked()
    # Names are as long as they stand there, and of other types the file says nothing.
    expect_code(testbed.ask("build.corp.example", MX), NOERROR)


BLOCKING = ("# a list\r\n0.0.0.0 ads.example\t tracker.example#glued\r\n:: six.example\r\n"
            "127.0.0.1 loop.example  other.example \r\n::1 loop6.example\r\n0.0.0.0 0.0.0.0\r\n0.0.0.0 fe #00::0 x\r\n"
            "127.0.0.1 localhost.localdomain\r127.0.0.1 app.test\r\n127.0.0.1 box.internal\r\n"
            "192.0.2.30 kept.example\r\n0.0.0.0 kept.example allowed.example\r\n")
JUNK = ("\r\nfe80::1%lo0 localhost\nnonsense\n1.2.3 x.example\n0.0.0.0\n<html>\n\0\0\n0.0.0.0 b\xe4d.example\n"
        "||ads.example^\n192.0.2.31 a..b\n" + "0.0.0.0 " + "x" * 70 + ".example\n" + "y" * 100_000
        + "\n0.0.0.0 last.example")


@check("I4.block", "names at 0.0.0.0, ::, 127.0.0.1 and ::1 are blocked, but those that the machine has itself", lasts=2)
def blocked(testbed: DNSTestbed) -> None:
    path = _write(testbed, b"\xef\xbb\xbf" + (BLOCKING + JUNK).encode("latin-1"))
    daemon = testbed.run(hostsFile=[path], rules=["@@||allowed.example^"])
    edns = dns_wire.opt()
    for transport in TRANSPORTS:
        for name in ("ads.example", "Tracker.example", "six.example", "loop.example", "other.example", "loop6.example",
                     "last.example"):
            for kind, address in ((A, "0.0.0.0"), (AAAA, "::")):
                answer = expect_addresses(testbed.ask(name, kind, transport, edns=edns), address, what=name)
                expect(dns_wire.BLOCKED in answer.edns.errors, f"no extended error: {answer}")
                text = next(data[2:] for code, data in answer.edns.options if code == dns_wire.EXTENDED_ERROR)
                expect_equal(text, b"dns.hostsFile", "what blocks")
            expect_negative(testbed.ask(name, MX, transport), NOERROR)
        # They stand for themselves alone.
        expect_addresses(testbed.ask("www.ads.example", A, transport), "192.0.2.1")
        expect_addresses(testbed.ask("kept.example", A, transport), "192.0.2.30")
        expect_addresses(testbed.ask("allowed.example", A, transport), "192.0.2.1")
        for name in ("localhost.localdomain", "app.test", "box.internal"):
            expect_addresses(testbed.ask(name, A, transport), "127.0.0.1", what=name)
    hosts = daemon.status()["dns"]["hosts"]
    expect_equal(hosts["blocked"], 9, "the names that are blocked")
    expect(hosts["ignoredLines"] >= 10, f"the lines that make no sense: {hosts}")
    expect_equal(daemon.log().count("lines ignored"), 1, "the lines in the log that count them")


@check("I4.own", "the machine's own name at 127.0.0.1 is the machine")
def own_name(testbed: DNSTestbed) -> None:
    own = subprocess.run(["hostname"], capture_output=True, text=True, check=True).stdout.strip().split(".")[0]
    testbed.run(hostsFile=_write(testbed, f"127.0.0.1 {own}.example.net {own}\n127.0.0.1 x.example.net\n"))
    expect_addresses(testbed.ask(f"{own}.example.net"), "127.0.0.1")
    expect_addresses(testbed.ask("x.example.net"), "0.0.0.0")


@check("I4.change", "a hosts file that changes is read again by itself; one that cannot be read changes nothing", lasts=12)
def changing(testbed: DNSTestbed) -> None:
    path = _write(testbed, "192.0.2.40 a.example\n")
    daemon = testbed.run(hostsFile=path)
    expect_addresses(testbed.ask("a.example"), "192.0.2.40")
    _write(testbed, "192.0.2.41 a.example\n0.0.0.0 b.example\n")
    wait_until(lambda: testbed.ask("a.example").addresses == ["192.0.2.41"], "the new address", 10, 0.1, daemon.tail)
    expect_addresses(testbed.ask("b.example"), "0.0.0.0")
    # In place: time and length tell.
    with open(path, "a") as file:
        file.write("192.0.2.42 c.example\n")
    wait_until(lambda: testbed.ask("c.example").addresses == ["192.0.2.42"], "the line more", 10, 0.1, daemon.tail)
    # While it is being written, nothing is read.
    with open(path, "w") as file:
        for _ in range(12):
            file.write("# a line\n")
            file.flush()
            expect_addresses(testbed.ask("a.example"), "192.0.2.41", what="the answer while somebody writes")
            pause(0.25)
        file.write("192.0.2.43 a.example\n")
    wait_until(lambda: testbed.ask("a.example").addresses == ["192.0.2.43"], "what was written", 10, 0.1, daemon.tail)
    os.unlink(path)
    daemon.wait_for_line("what hosts files said before stays", seconds=12)
    expect_addresses(testbed.ask("a.example"), "192.0.2.43")
    daemon.signal(signal.SIGHUP)
    daemon.wait_for_line("nothing is changed")
    expect_addresses(testbed.ask("a.example"), "192.0.2.43")
    _write(testbed, "192.0.2.44 a.example\n")
    wait_until(lambda: testbed.ask("a.example").addresses == ["192.0.2.44"], "the file again", 10, 0.1, daemon.tail)


@check("I4.reload", "SIGHUP reads hosts files at once, and takes over others", lasts=2)
def reloaded(testbed: DNSTestbed) -> None:
    first, second = _write(testbed, "192.0.2.50 a.example\n"), _write(testbed, "192.0.2.51 b.example\n", "more")
    daemon = testbed.run(hostsFile=[first, second])
    expect_addresses(testbed.ask("a.example"), "192.0.2.50")
    expect_addresses(testbed.ask("b.example"), "192.0.2.51")
    daemon.write(UDP, hostsFile=[second])
    daemon.reload()
    expect_addresses(testbed.ask("a.example"), "192.0.2.1")
    expect_addresses(testbed.ask("b.example"), "192.0.2.51")
    _write(testbed, "192.0.2.52 b.example\n", "more")
    daemon.reload()
    expect_addresses(testbed.ask("b.example"), "192.0.2.52")
    daemon.write(UDP)
    daemon.reload()
    expect_addresses(testbed.ask("b.example"), "192.0.2.1")
    expect_equal(daemon.status()["dns"]["hosts"], {"addresses": 0, "blocked": 0, "ignoredLines": 0}, "the status")
