"""Whom the proxy trusts (RFC 8310, RFC 7858 §4): whoever cannot prove to be the upstream gets no byte of a query."""

from dataclasses import dataclass
from typing import Callable

from cryptography.hazmat.primitives import hashes
from dns_checks.registry import check
from dns_daemon import DNSDaemon
from dns_site import (MARGIN, NETWORK_ERROR, UNREACHABLE, ClearTextWatch, EncryptedSite, ask, ask_in_time,
                      expect_failure, expect_good, names)
from dns_testbed import DNSTestbed
from dns_upstream.certificates import SPARE_PIN, Authority, Identity, rsa_key, self_signed
from waiting import expect, expect_equal, wait_until

TIMEOUT = 1.5

#: Why a server is not trusted, in the words of the log and of the status.
WRONG_NAME, EXPIRED, NOT_YET_VALID = "for another name", "has expired", "not valid yet"
SELF_SIGNED, UNKNOWN_AUTHORITY = "by itself alone", "no authority that is trusted"
WRONG_PURPOSE, WEAK, PIN_MISMATCH = "not for servers", "too weak", "none of its keys is pinned"


@dataclass(frozen=True)
class Case:
    """A server that must not be trusted."""

    label: str
    title: str
    identity: Callable[[EncryptedSite], Identity]
    reason: str  # what the status and the log call it
    #: Members of the upstream's configuration that differ.
    members: "Callable[[EncryptedSite, Identity], dict]" = lambda site, identity: {}


def _good(site: EncryptedSite) -> Identity:
    return site.identity


def _without_intermediate(site: EncryptedSite) -> Identity:
    return site.authority.intermediate().issue(site.server)


def _foreign_with_good_appended(site: EncryptedSite) -> Identity:
    return Authority.root("foreign").issue(site.server).with_chain(site.identity)


def _below_a_server(site: EncryptedSite) -> Identity:
    """A certificate that a server's key has signed, which is no authority."""
    server = site.identity
    return Authority(server.key, server.certificate).issue(site.server).with_chain(server)


def _pins(*pins: str) -> "Callable[[EncryptedSite, Identity], dict]":
    return lambda site, identity: {"pins": list(pins)}


OTHER_SPARE_PIN = "sha256/" + "B" * 42 + "A="

CASES = (
    Case("name", "a certificate for another name", lambda site: site.authority.issue("other.example"), WRONG_NAME),
    Case("wildcard", "a wildcard for what is below the name", lambda site: site.authority.issue("*.dns.example"),
         WRONG_NAME),
    Case("common-name", "a name that is only the subject's",
         lambda site: site.authority.issue(common_name=site.server), WRONG_NAME),
    Case("expired", "a certificate whose time is over",
         lambda site: site.authority.issue(site.server, first_day=-9, last_day=-1), EXPIRED),
    Case("early", "a certificate whose time has not come",
         lambda site: site.authority.issue(site.server, first_day=2), NOT_YET_VALID),
    Case("self-signed", "a server that vouches for itself", lambda site: self_signed(site.server), SELF_SIGNED),
    Case("foreign", "a certificate of another authority of the same name",
         lambda site: Authority.root("authority").issue(site.server), UNKNOWN_AUTHORITY),
    Case("intermediate", "a chain with a certificate missing", _without_intermediate, UNKNOWN_AUTHORITY),
    Case("leaf", "a certificate that another server has signed", _below_a_server, WRONG_PURPOSE),
    Case("purpose", "a certificate for clients",
         lambda site: site.authority.issue(site.server, for_servers=False), WRONG_PURPOSE),
    Case("rsa", "a key of RSA with 1,024 bits",
         lambda site: site.authority.issue(site.server, key=rsa_key(1024)), WEAK),
    Case("sha1", "a signature with SHA-1",
         lambda site: site.authority.issue(site.server, algorithm=hashes.SHA1()), WEAK),
    Case("foreign-chain", "a foreign certificate with the right one behind it", _foreign_with_good_appended,
         UNKNOWN_AUTHORITY),
)

PIN_CASES = (
    Case("pins", "a good certificate whose key is not pinned", _good, PIN_MISMATCH, _pins(SPARE_PIN, OTHER_SPARE_PIN)),
    Case("pins-and-name", "a pinned key in a certificate for another name",
         lambda site: site.authority.issue("other.example"), WRONG_NAME,
         lambda site, identity: {"pins": [identity.pin, SPARE_PIN]}),
    Case("pins-and-authority", "a pinned key in a certificate of its own making", lambda site: self_signed(site.server),
         SELF_SIGNED, lambda site, identity: {"pins": [identity.pin, SPARE_PIN]}),
    Case("pins-chain", "a pinned certificate in the chain that has signed nothing of it",
         lambda site: site.authority.issue(site.server).with_chain(site.identity), PIN_MISMATCH,
         lambda site, identity: {"pins": [site.identity.pin, SPARE_PIN]}),
    Case("only-other", "pins alone: another key", lambda site: self_signed(site.server), PIN_MISMATCH,
         lambda site, identity: {"pins": [SPARE_PIN, site.identity.pin], "pinOnly": True, "caFile": None}),
    Case("only-good", "pins alone: an authority's word does not help", _good, PIN_MISMATCH,
         lambda site, identity: {"pins": [SPARE_PIN, OTHER_SPARE_PIN], "pinOnly": True}),
    Case("only-appended", "pins alone: a foreign certificate with the pinned one behind it",
         _foreign_with_good_appended, PIN_MISMATCH,
         lambda site, identity: {"pins": [site.identity.pin, SPARE_PIN], "pinOnly": True, "caFile": None}),
    Case("only-issuer", "pins alone: an issuer of the same name that has not signed",
         lambda site: Authority.root("authority").issue(site.server).with_chain(site.authority), PIN_MISMATCH,
         lambda site, identity: {"pins": [site.authority.pin, SPARE_PIN], "pinOnly": True, "caFile": None}),
    Case("only-weak", "pins alone: a pinned key that is too weak",
         lambda site: self_signed(site.server, key=rsa_key(1024)), WEAK,
         lambda site, identity: {"pins": [identity.pin, SPARE_PIN], "pinOnly": True, "caFile": None}),
)


def _refused(testbed: DNSTestbed, case: Case, transport: str) -> None:
    site = EncryptedSite(testbed)
    site.witness()
    watch = ClearTextWatch(testbed)
    identity = case.identity(site)
    site.listen(transport, identity)
    daemon = testbed.run(site.member(transport, **case.members(site, identity)), timeoutSeconds=TIMEOUT)
    asked = names(f"secret-{case.label}", 3)
    for name, client in zip(asked, ("udp", "tcp", "udp")):
        expect_failure(ask(testbed, name, transport=client, seconds=TIMEOUT + MARGIN), NETWORK_ERROR, UNREACHABLE)
    expect(site.upstream.connections, "the server was never tried")
    expect_no_query(site)
    watch.expect_nothing_of(*asked)
    watch.expect_no_port(53)
    expect_reason(testbed, daemon, case.reason)


def expect_no_query(site: EncryptedSite) -> None:
    """No byte of the application may have come to the server, and nothing unencrypted."""
    expect_equal([f"{one.transport} {one.name}" for one in site.upstream.received], [], "the queries that came")
    for connection in site.upstream.connections:
        expect(connection.transport_name != "tcp", f"a connection came to port 53: {site.upstream.summary()}")
        expect_equal(connection.plain_byte_count, 0, "the bytes of the application that came")


def expect_reason(testbed: DNSTestbed, daemon: DNSDaemon, reason: str) -> None:
    """The log and the status must say why the server is not trusted."""
    wait_until(lambda: reason in daemon.log(), f"the log saying {reason!r}", 5, detail=daemon.tail)
    upstream = daemon.status()["dns"]["upstreams"][0]
    expect(reason in str(upstream.get("trustProblem")), f"expected the reason {reason!r} in the status: {upstream}")
    # And so must what a person reads.
    text = testbed.network.run(*testbed.command, "status", "--json", "--config", daemon.path).stdout
    expect(reason in text, f"expected the reason {reason!r} in what `sluice status` prints: {text[-400:]}")


def _enter(row: str, case: Case, transport: str) -> None:
    @check(f"{row}.{case.label}.{transport}", f"{case.title}: refused by {transport}, and nothing is asked")
    def refused(testbed: DNSTestbed) -> None:
        _refused(testbed, case, transport)


for _transport in ("tls", "https"):
    for _case in CASES:
        _enter("E1", _case, _transport)
    for _case in PIN_CASES:
        _enter("E3" if _case.label.startswith("only") else "E2", _case, _transport)


@check("E1.next", "the next upstream is asked when the first is not trusted; the first gets nothing, encrypted or not")
def next_upstream(testbed: DNSTestbed) -> None:
    site = EncryptedSite(testbed)
    site.witness()
    site.tls(self_signed(site.server))
    second = EncryptedSite(testbed, "127.0.0.3", "second.example", "2")
    second.https()
    testbed.run([site.member("tls"), second.member("https")], timeoutSeconds=3)
    for name in names("next", 3):
        expect_good(ask_in_time(testbed, name, 2))
    expect_no_query(site)


@check("E1.plain", "a server that answers TLS with something else gets no query, nor does port 53")
def no_tls(testbed: DNSTestbed) -> None:
    site = EncryptedSite(testbed)
    site.witness()
    site.upstream.tcp(853), site.upstream.tcp(443)
    for transport in ("tls", "https"):
        daemon = testbed.run(site.member(transport), timeoutSeconds=1)
        watch = ClearTextWatch(testbed)
        asked = names(f"bare-{transport}", 2)
        for name in asked:
            expect_failure(ask_in_time(testbed, name, 1 + MARGIN))
        watch.expect_nothing_of(*asked)
        watch.expect_no_port(53)
        daemon.stop()
        testbed.resign_dns(daemon)
    site.tls(port=8853)
    testbed.run(site.member("tls", url="tls://dns.example:8853"))


@check("E1.system", "without a file of authorities those of the machine count, and they do not know this one")
def system_authorities(testbed: DNSTestbed) -> None:
    site = EncryptedSite(testbed)
    site.witness()
    site.tls()
    testbed.run(site.member("tls", caFile=None), timeoutSeconds=TIMEOUT)
    expect_failure(ask_in_time(testbed, "system.example.org", TIMEOUT + MARGIN))
    expect_no_query(site)


@check("R30", "without authorities that can be read nothing is asked in the clear: there is no start, or no answer")
def no_authorities(testbed: DNSTestbed) -> None:
    site = EncryptedSite(testbed)
    site.witness()
    site.tls(), site.https()
    watch = ClearTextWatch(testbed)
    empty, garbage = testbed.file("empty.pem"), testbed.file("garbage.pem")
    for path, text in ((empty, ""), (garbage, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")):
        with open(path, "w") as file:
            file.write(text)
    asked = []
    for transport in ("tls", "https"):
        for number, path in enumerate((empty, garbage, testbed.file("missing.pem"))):
            daemon = testbed.configured(site.member(transport, caFile=path), timeoutSeconds=1)
            testbed.resign_dns(daemon)
            daemon.launch()
            wait_until(lambda: daemon.process.poll() is not None or "READY=1" in daemon.notifications(),
                       "the daemon being ready or ending", 20, detail=daemon.tail)
            if daemon.process.poll() is not None:
                expect(daemon.process.returncode == 1, f"it ended with {daemon.process.returncode}: {daemon.tail()}")
                continue
            asked.append(f"authority-{transport}-{number}.example.org")
            expect_failure(ask_in_time(testbed, asked[-1], 1 + MARGIN))
            daemon.stop()
    expect_no_query(site)
    watch.expect_nothing_of(*asked)
    watch.expect_no_port(53)
    testbed.run(site.member("tls"))
