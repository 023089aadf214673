"""How TLS is spoken (RFC 9325): versions, names, protocols, sessions."""

import ssl
from typing import Callable

from dns_checks.registry import check
from dns_site import MARGIN, EncryptedSite, ask, ask_in_time, expect_failure, expect_good, serving
from dns_testbed import DNSTestbed
from dns_upstream import SecureConnection, SecureListener
from dns_upstream.tls import server_context
from waiting import CheckFailure, expect, expect_equal


@check("E6.version", "TLS 1.2 and 1.3 are spoken, nothing older is offered, and an older server gets no query")
def versions(testbed: DNSTestbed) -> None:
    site = EncryptedSite(testbed)
    listeners = {"1.3": site.tls(), "1.2": site.tls(port=8532, newest="1.2"), "1.1": site.tls(port=8531, newest="1.1")}
    for version, listener in listeners.items():
        daemon = testbed.run(site.member("tls", url=f"tls://dns.example:{listener.port}"), timeoutSeconds=2)
        answer = ask_in_time(testbed, f"version-{version}.example.org", 2 + MARGIN)
        if version == "1.1":
            expect_failure(answer)
            expect(listener.connections, "the old server was not tried")
        else:
            expect_good(answer)
            expect_equal(listener.connections[0].tls.version, "TLSv" + version, "the version")
        for connection in listener.connections:
            expect(connection.plain_byte_count == 0 or version != "1.1", "an old server got something")
            expect_equal(min(connection.client_hello.versions), ssl.TLSVersion.TLSv1_2, "the oldest version offered")
        daemon.stop()
        testbed.resign_dns(daemon)
    testbed.run(site.member("tls"))


@check("E6.session", "the next connection goes on with the session of one before, without early data, or begins anew")
def resumption(testbed: DNSTestbed) -> None:
    site = EncryptedSite(testbed)
    for listener in (site.tls(), site.tls(port=8532, newest="1.2"), site.https()):
        host = f"dns.example:{listener.port}"
        url = f"https://{host}/dns-query" if listener.transport == "https" else f"tls://{host}"
        daemon = testbed.run(site.member("tls", url=url))
        _ask_by_new_connections(testbed, listener, "goes-on", lambda one: one.tls.is_resumed)
        # As when the server was started anew: its tickets are worth nothing.
        listener.forget_sessions()
        _ask_by_new_connections(
            testbed, listener, "begins-anew", lambda one: one.client_hello.offers_session and not one.tls.is_resumed)
        for connection in listener.connections:
            hello = connection.client_hello
            expect(hello is None or not hello.has_early_data, "there was early data")
        daemon.stop()
        testbed.resign_dns(daemon)
    testbed.run(site.member("tls"))


def _ask_by_new_connections(testbed: DNSTestbed, listener: SecureListener, label: str,
                            condition: "Callable[[SecureConnection], bool]") -> None:
    """Asks, each time after the connections that there were have been ended, until one is as it should be."""
    for number in range(6):
        expect_good(ask_in_time(testbed, f"{label}-{listener.port}-{number}.example.org", 1.5))
        if any(one.is_secure and condition(one) for one in listener.connections):
            return
        listener.upstream.end_connections()
    raise CheckFailure(f"no connection {label.replace('-', ' ')}: {listener.upstream.summary()}")


@check("E6.names", "SNI is the name to be proved, an address has none; ALPN offers dot or h2")
def server_names(testbed: DNSTestbed) -> None:
    site = EncryptedSite(testbed)
    site.tls(site.authority.issue("dns.example", "corp.example", "127.0.0.10"))
    site.https(site.authority.issue("dns.example", "corp.example", "127.0.0.10"))
    cases = (
        (site.member("tls"), "dns.example", "dot"),
        (site.member("https"), "dns.example", "h2"),
        (site.member("tls", serverName="corp.example"), "corp.example", "dot"),
        (site.member("https", serverName="corp.example"), "corp.example", "h2"),
        (site.member("tls", url="tls://127.0.0.10", addresses=None), None, "dot"),
        (site.member("https", url="https://127.0.0.10/dns-query", addresses=None), None, "h2"),
        (site.member("tls", url="tls://127.0.0.10", addresses=None, serverName="dns.example"), "dns.example", "dot"),
    )
    for number, (member, server_name, protocol) in enumerate(cases):
        daemon = testbed.run(member)
        expect_good(ask(testbed, f"name-{number}.example.org"))
        hello = site.upstream.received[-1].connection.client_hello
        expect_equal((hello.server_name, hello.protocols), (server_name, (protocol,)), f"SNI and ALPN with {member}")
        daemon.stop()
        testbed.resign_dns(daemon)
    testbed.run(site.member("tls"))


@check("E6.protocol", "a server of DNS over TLS that knows no ALPN is asked all the same")
def no_alpn(testbed: DNSTestbed) -> None:
    site = serving(testbed, "tls", protocols=())
    site.forward("tls")
    expect_good(ask(testbed, "alpn.example.org"))


@check("E6.curve", "a server that wants another curve than was offered first is spoken to all the same")
def other_curve(testbed: DNSTestbed) -> None:
    site = EncryptedSite(testbed)
    for listener in (site.tls(), site.https(), site.tls(port=8532, newest="1.2")):
        newest = "1.2" if listener.port == 8532 else None
        protocols = ("h2",) if listener.transport == "https" else ("dot",)
        listener.context = server_context(site.identity, protocols, newest, "secp384r1")
        member = site.member(listener.transport, **({"url": "tls://dns.example:8532"} if newest else {}))
        daemon = testbed.run(member)
        expect_good(ask(testbed, f"curve-{listener.port}.example.org"))
        daemon.stop()
        testbed.resign_dns(daemon)
    testbed.run(site.member("tls"))
