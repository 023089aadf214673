"""Several addresses of one server (RFC 8305): dead, silent, of the other family, not to be trusted."""

from dns_checks.registry import check
from dns_site import ADDRESS, MARGIN, EncryptedSite, ask, ask_in_time, expect_failure, expect_good, names
from dns_testbed import DNSTestbed
from waiting import expect, expect_equal


def _drop(testbed: DNSTestbed, *addresses: str) -> None:
    """Packets to these addresses vanish."""
    for address in addresses:
        family = "ip6" if ":" in address else "ip"
        testbed.network.nft(
            "table inet hole { chain output { type filter hook output priority 0;\n"
            f"{family} daddr {address} drop\n}}\n}}\n")


@check("D13", "of several addresses the next is tried when nobody is at one, or when it says nothing")
def dead_addresses(testbed: DNSTestbed) -> None:
    site = EncryptedSite(testbed)
    site.tls(), site.https()
    _drop(testbed, "127.0.0.7")
    for transport in ("tls", "https"):
        cases = {"refused": ["127.0.0.8"], "silent": ["127.0.0.7"], "both": ["127.0.0.7", "127.0.0.8"]}
        for label, dead in cases.items():
            daemon = testbed.run(site.member(transport, addresses=[*dead, ADDRESS]), timeoutSeconds=4)
            expect_good(ask_in_time(testbed, f"{label}-{transport}.example.org", 3))
            # The good one is known now.
            expect_good(ask_in_time(testbed, f"{label}-{transport}-again.example.org", 0.7))
            daemon.stop()
            testbed.resign_dns(daemon)
    testbed.run(site.member("tls"))


@check("D13.family", "a machine whose IPv6 leads nowhere reaches the server by IPv4, and the other way round")
def families(testbed: DNSTestbed) -> None:
    testbed.network.add_address("lo", "fd00:53::2/128")
    site = EncryptedSite(testbed)
    site.tls()
    site.tls(address="fd00:53::2")
    _drop(testbed, "fd00:53::9", "127.0.0.7")
    testbed.network.ip("-6", "route", "add", "fd00:53::9/128", "dev", "lo")
    for label, addresses in (("no-route", ["2001:db8::53", ADDRESS]), ("nowhere", ["fd00:53::9", ADDRESS]),
                             ("reverse", ["127.0.0.7", "fd00:53::2"])):
        daemon = testbed.run(site.member("tls", addresses=addresses), timeoutSeconds=4)
        expect_good(ask_in_time(testbed, f"{label}.example.org", 3))
        daemon.stop()
        testbed.resign_dns(daemon)
    testbed.run(site.member("tls"))


@check("D13.later", "a server that dies at one address is reached at the other at once, for the queries under way too")
def dies_later(testbed: DNSTestbed) -> None:
    site = EncryptedSite(testbed)
    first, second = site.tls(), site.tls(address="127.0.0.4")
    testbed.run(site.member("tls", addresses=[ADDRESS, "127.0.0.4"]), timeoutSeconds=4)
    expect_good(ask(testbed, "first.example.org"))
    expect_equal(len(first.received), 1, "the queries at the first address")
    first.close(connections=True)
    for name in names("moved", 3):
        expect_good(ask_in_time(testbed, name, 1))
    expect_equal(len(second.received), 3, "the queries at the second address")


@check("D13.untrusted", "an address with a server that is not to be trusted is passed over, and gets nothing")
def untrusted_address(testbed: DNSTestbed) -> None:
    site = EncryptedSite(testbed)
    wrong = site.tls(site.authority.issue("other.example"), address="127.0.0.4")
    right = site.tls()
    testbed.run(site.member("tls", addresses=["127.0.0.4", ADDRESS]), timeoutSeconds=4)
    for name in names("passed", 3):
        expect_good(ask_in_time(testbed, name, 2))
    expect(wrong.connections, "the first address was not tried")
    expect_equal((len(wrong.received), [one.plain_byte_count for one in wrong.connections if one.plain_byte_count]),
                 (0, []), "what came to the server that is not to be trusted")
    expect_equal(len(right.received), 3, "the queries at the second address")


@check("D13.none", "when nobody is at any address, that is a failure in time")
def no_address(testbed: DNSTestbed) -> None:
    site = EncryptedSite(testbed)
    _drop(testbed, "127.0.0.7")
    for label, addresses in (("refused", ["127.0.0.8", "127.0.0.9"]), ("silent", ["127.0.0.7"])):
        daemon = testbed.run(site.member("tls", addresses=addresses), timeoutSeconds=1.5)
        for name in names(label, 2):
            expect_failure(ask_in_time(testbed, name, 1.5 + MARGIN))
        daemon.stop()
        testbed.resign_dns(daemon)
    site.tls()
    testbed.run(site.member("tls"))


@check("D13.plain", "of several addresses of a plain server the next is tried as well")
def plain_addresses(testbed: DNSTestbed) -> None:
    site = EncryptedSite(testbed)
    site.witness()
    _drop(testbed, "127.0.0.7")
    for transport in ("udp", "tcp"):
        for label, dead in (("refused", "127.0.0.8"), ("silent", "127.0.0.7")):
            daemon = testbed.run({"url": f"{transport}://dns.example", "addresses": [dead, ADDRESS]}, timeoutSeconds=4)
            expect_good(ask_in_time(testbed, f"{label}-{transport}.example.org", 4))
            daemon.stop()
            testbed.resign_dns(daemon)
    testbed.run(site.member("udp"))
