"""Servers that are to be trusted, those that come to be and those that cease to be (RFC 7858 §4, RFC 8310)."""

import itertools

from dns_checks.registry import check
from dns_checks.trust import TIMEOUT
from dns_site import ADDRESS, MARGIN, EncryptedSite, ask, ask_in_time, expect_failure, expect_good
from dns_testbed import DNSTestbed
from dns_upstream.certificates import SPARE_PIN, Authority, Identity, elliptic_key, rsa_key, self_signed
from waiting import expect_equal, wait_until


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
    number = itertools.count()
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


@check("D12.address6", "a URL with an address of IPv6 is asked by that, without SNI, and held to a certificate for it")
def address6(testbed: DNSTestbed) -> None:
    testbed.network.add_address("lo", "fd00:53::2/128")
    site = EncryptedSite(testbed)
    for transport, url in (("tls", "tls://[fd00:53::2]"), ("https", "https://[fd00:53::2]:8443/dns-query")):
        port = {"tls": 853, "https": 8443}[transport]
        listener = site.listen(transport, site.authority.issue("fd00:53::2"), port=port, address="fd00:53::2")
        daemon = testbed.run(site.member(transport, url=url, addresses=None), timeoutSeconds=2)
        expect_good(ask(testbed, f"six-{transport}.example.org"))
        received = site.upstream.received[-1]
        expect_equal(received.connection.client_hello.server_name, None, "SNI")
        if transport == "https":
            expect_equal(received.request.field(":authority"), "[fd00:53::2]:8443", "the authority")
        daemon.stop()
        testbed.resign_dns(daemon)
        listener.present(site.authority.issue("fd00:53::3"))
        daemon = testbed.run(site.member(transport, url=url, addresses=None), timeoutSeconds=1)
        expect_failure(ask_in_time(testbed, f"wrong-{transport}.example.org", 1 + MARGIN))
        daemon.stop()
        testbed.resign_dns(daemon)
    expect_equal(len(site.upstream.received), 2, "the queries that came")
    site.tls()
    testbed.run(site.member("tls"))
