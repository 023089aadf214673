"""Whom the proxy trusts (RFC 8310, RFC 7858 §4): whoever cannot prove to be the upstream gets no byte of a query."""

from dataclasses import dataclass
from typing import Callable

from cryptography.hazmat.primitives import hashes
from dns_checks.registry import check
from dns_site import (ADDRESS, MARGIN, NETWORK_ERROR, UNREACHABLE, ClearTextWatch, EncryptedSite, ask, ask_in_time,
                      expect_failure, expect_good, names)
from dns_testbed import DNSTestbed
from dns_upstream.certificates import SPARE_PIN, Authority, Identity, elliptic_key, rsa_key, self_signed
from waiting import expect, expect_equal, wait_until

TIMEOUT = 1.5


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
    Case("name", "a certificate for another name", lambda site: site.authority.issue("other.example"), "wrong name"),
    Case("wildcard", "a wildcard for what is below the name", lambda site: site.authority.issue("*.dns.example"),
         "wrong name"),
    Case("common-name", "a name that is only the subject's",
         lambda site: site.authority.issue(common_name=site.server), "wrong name"),
    Case("expired", "a certificate whose time is over",
         lambda site: site.authority.issue(site.server, first_day=-9, last_day=-1), "expired"),
    Case("early", "a certificate whose time has not come",
         lambda site: site.authority.issue(site.server, first_day=2), "not yet valid"),
    Case("self-signed", "a server that vouches for itself", lambda site: self_signed(site.server), "self-signed"),
    Case("foreign", "a certificate of another authority of the same name",
         lambda site: Authority.root("authority").issue(site.server), "unknown authority"),
    Case("intermediate", "a chain with a certificate missing", _without_intermediate, "unknown authority"),
    Case("leaf", "a certificate that another server has signed", _below_a_server, "wrong purpose"),
    Case("purpose", "a certificate for clients",
         lambda site: site.authority.issue(site.server, for_servers=False), "wrong purpose"),
    Case("rsa", "a key of RSA with 1,024 bits",
         lambda site: site.authority.issue(site.server, key=rsa_key(1024)), "weak"),
    Case("sha1", "a signature with SHA-1",
         lambda site: site.authority.issue(site.server, algorithm=hashes.SHA1()), "weak"),
    Case("foreign-chain", "a foreign certificate with the right one behind it", _foreign_with_good_appended,
         "unknown authority"),
)

PIN_CASES = (
    Case("pins", "a good certificate whose key is not pinned", _good, "pin", _pins(SPARE_PIN, OTHER_SPARE_PIN)),
    Case("pins-and-name", "a pinned key in a certificate for another name",
         lambda site: site.authority.issue("other.example"), "wrong name",
         lambda site, identity: {"pins": [identity.pin, SPARE_PIN]}),
    Case("pins-and-authority", "a pinned key in a certificate of its own making", lambda site: self_signed(site.server),
         "self-signed", lambda site, identity: {"pins": [identity.pin, SPARE_PIN]}),
    Case("pins-chain", "a pinned certificate in the chain that has signed nothing of it",
         lambda site: site.authority.issue(site.server).with_chain(site.identity), "pin",
         lambda site, identity: {"pins": [site.identity.pin, SPARE_PIN]}),
    Case("only-other", "pins alone: another key", lambda site: self_signed(site.server), "pin",
         lambda site, identity: {"pins": [SPARE_PIN, site.identity.pin], "pinOnly": True, "caFile": None}),
    Case("only-good", "pins alone: an authority's word does not help", _good, "pin",
         lambda site, identity: {"pins": [SPARE_PIN, OTHER_SPARE_PIN], "pinOnly": True}),
    Case("only-appended", "pins alone: a foreign certificate with the pinned one behind it",
         _foreign_with_good_appended, "pin",
         lambda site, identity: {"pins": [site.identity.pin, SPARE_PIN], "pinOnly": True, "caFile": None}),
    Case("only-issuer", "pins alone: an issuer of the same name that has not signed",
         lambda site: Authority.root("authority").issue(site.server).with_chain(site.authority), "pin",
         lambda site, identity: {"pins": [site.authority.pin, SPARE_PIN], "pinOnly": True, "caFile": None}),
    Case("only-weak", "pins alone: a pinned key that is too weak",
         lambda site: self_signed(site.server, key=rsa_key(1024)), "weak",
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
    expect_reason(daemon, case.reason)


def expect_no_query(site: EncryptedSite) -> None:
    """No byte of the application may have come to the server, and nothing unencrypted."""
    expect_equal([f"{one.transport} {one.name}" for one in site.upstream.received], [], "the queries that came")
    for connection in site.upstream.connections:
        expect(connection.transport_name != "tcp", f"a connection came to port 53: {site.upstream.summary()}")
        expect_equal(connection.plain_byte_count, 0, "the bytes of the application that came")


def expect_reason(daemon, reason: str) -> None:
    """The log and the status must say why the server is not trusted."""
    wait_until(lambda: reason in daemon.log(), f"the log saying {reason!r}", 5, detail=daemon.tail)
    upstream = daemon.status()["dns"]["upstreams"][0]
    expect(reason in str(upstream.get("lastFailure", "")), f"expected the reason {reason!r} in the status: {upstream}")


def _enter(row: str, case: Case, transport: str) -> None:
    @check(f"{row}.{case.label}.{transport}", f"{case.title}: refused by {transport}, and nothing is asked")
    def refused(testbed: DNSTestbed) -> None:
        _refused(testbed, case, transport)


for _transport in ("tls", "https"):
    for _case in CASES:
        _enter("E1", _case, _transport)
    for _case in PIN_CASES:
        _enter("E3" if _case.label.startswith("only") else "E2", _case, _transport)


def _trusted(testbed: DNSTestbed, site: EncryptedSite, identity: Identity, label: str, **members) -> None:
    """The same server by TLS and by HTTPS, which both must be asked."""
    for transport in ("tls", "https"):
        listener = site.listen(transport, identity)
        daemon = testbed.run(site.member(transport, **members), timeoutSeconds=3)
        expect_good(ask(testbed, f"{label}-{transport}.example.org"))
        daemon.stop()
        testbed.resign_dns(daemon)
        listener.close(connections=True)


def _end(testbed: DNSTestbed, site: EncryptedSite) -> None:
    """Leaves a daemon behind that the testbed can judge."""
    testbed.run(site.member("tls"))


@check("E1.good", "a certificate of the authority for the name is trusted, by way of another too, and by a wildcard")
def good(testbed: DNSTestbed) -> None:
    site = EncryptedSite(testbed)
    intermediate = site.authority.intermediate()
    _trusted(testbed, site, site.identity, "plain")
    _trusted(testbed, site, intermediate.issue(site.server).with_chain(intermediate), "chain")
    _trusted(testbed, site, site.authority.issue("*.corp.example"), "wildcard", serverName="dns.corp.example")
    _trusted(testbed, site, site.authority.issue(site.server, key=rsa_key(2048)), "rsa")
    _end(testbed, site)


@check("E1.recovery", "a server that was not trusted is asked when it shows the right certificate", lasts=35)
def recovery(testbed: DNSTestbed) -> None:
    site = EncryptedSite(testbed)
    listener = site.tls(site.authority.issue("other.example"))
    testbed.run(site.member("tls"), timeoutSeconds=TIMEOUT)
    expect_failure(ask(testbed, "before.example.org"))
    listener.present(site.identity)
    number = iter(range(10_000))
    wait_until(lambda: ask(testbed, f"again-{next(number)}.example.org").code == 0,
               "an answer by the right certificate", 60, interval=0.5, detail=site.upstream.summary)


@check("E1.later", "a certificate that becomes wrong is found out at the next connection, and nothing is asked by it")
def later(testbed: DNSTestbed) -> None:
    site = EncryptedSite(testbed)
    site.witness()
    listener = site.tls()
    testbed.run(site.member("tls"), timeoutSeconds=TIMEOUT)
    expect_good(ask(testbed, "before.example.org"))
    listener.present(site.authority.issue("other.example"))
    for connection in site.upstream.connections:
        connection.close()
    expect_failure(ask_in_time(testbed, "after.example.org", TIMEOUT + MARGIN))
    expect_equal([one.name for one in site.upstream.received], ["before.example.org"], "the queries that came")


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


@check("E2", "a pinned key is trusted wherever it is in the verified chain, and so is the backup pin's")
def pinned(testbed: DNSTestbed) -> None:
    site = EncryptedSite(testbed)
    intermediate = site.authority.intermediate()
    chained = intermediate.issue(site.server).with_chain(intermediate)
    _trusted(testbed, site, site.identity, "leaf", pins=[site.identity.pin, SPARE_PIN])
    _trusted(testbed, site, site.identity, "backup", pins=[SPARE_PIN, site.identity.pin])
    _trusted(testbed, site, chained, "intermediate", pins=[intermediate.pin, SPARE_PIN])
    _trusted(testbed, site, chained, "root", pins=[site.authority.pin, SPARE_PIN])
    _end(testbed, site)


@check("E2.rotation", "a server that changes to the key of the backup pin goes on being asked; to another key not")
def rotation(testbed: DNSTestbed) -> None:
    site = EncryptedSite(testbed)
    keys = [elliptic_key() for _ in range(3)]
    identities = [site.authority.issue(site.server, key=key) for key in keys]
    listener = site.tls(identities[0])
    testbed.run(site.member("tls", pins=[identities[0].pin, identities[1].pin]), timeoutSeconds=TIMEOUT)
    for number, identity in enumerate(identities):
        listener.present(identity)
        for connection in site.upstream.connections:
            connection.close()
        answer = ask_in_time(testbed, f"rotation-{number}.example.org", TIMEOUT + MARGIN)
        if number < 2:
            expect_good(answer)
        else:
            expect_failure(answer)
    expect_equal(len(site.upstream.received), 2, "the queries that came")


@check("E3", "pins alone: a server is trusted by its own key or by its issuer's, whoever vouches for it")
def pins_only(testbed: DNSTestbed) -> None:
    site = EncryptedSite(testbed)
    alone, stranger = self_signed("whatever.example"), Authority.root("stranger")
    chained = stranger.issue("whatever.example").with_chain(stranger)
    expired = stranger.issue(site.server, first_day=-9, last_day=-1)
    for label, identity, pin in (("alone", alone, alone.pin), ("issuer", chained, stranger.pin),
                                 ("expired", expired, expired.pin)):
        _trusted(testbed, site, identity, label, pins=[pin, SPARE_PIN], pinOnly=True, caFile=None)
    _end(testbed, site)


@check("D12.address", "a URL with an address is held to a certificate for that address")
def address(testbed: DNSTestbed) -> None:
    site = EncryptedSite(testbed)
    site.witness()
    urls = {"tls": f"tls://{ADDRESS}", "https": f"https://{ADDRESS}/dns-query"}
    for transport, url in urls.items():
        listener = site.listen(transport, site.authority.issue(ADDRESS))
        daemon = testbed.run(site.member(transport, url=url, addresses=None), timeoutSeconds=2)
        expect_good(ask(testbed, f"address-{transport}.example.org"))
        daemon.stop()
        testbed.resign_dns(daemon)
        count = len(site.upstream.received)
        for label, wrong in (("other", site.authority.issue("127.0.0.11")), ("name", site.authority.issue(site.server)),
                             ("text", site.authority.issue(common_name=ADDRESS))):
            listener.present(wrong)
            daemon = testbed.run(site.member(transport, url=url, addresses=None), timeoutSeconds=1)
            expect_failure(ask_in_time(testbed, f"{label}-{transport}.example.org", 1 + MARGIN))
            daemon.stop()
            testbed.resign_dns(daemon)
        expect_equal(len(site.upstream.received), count, "the queries that came to a server with a wrong address")
        listener.close(connections=True)
    _end_with_address(testbed, site)


def _end_with_address(testbed: DNSTestbed, site: EncryptedSite) -> None:
    site.tls(port=8853)
    testbed.run(site.member("tls", url=f"tls://{ADDRESS}:8853", addresses=None))


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
    _end(testbed, site)
