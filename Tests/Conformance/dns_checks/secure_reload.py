"""Certificates and addresses of the listeners for TLS: what is refused, and what a reload changes."""

import os
import signal
import ssl

from cryptography.hazmat.primitives.serialization import Encoding

import dns_wire
from dns_checks.registry import check
from dns_checks.shape import expect_addresses
from dns_secure_client import SERVER, SecureListening, query
from dns_testbed import UDP, DNSTestbed
from dns_upstream.certificates import Authority, rsa_key
from waiting import CheckFailure, expect, expect_equal, wait_until


def _checked(testbed: DNSTestbed, path: str) -> str:
    """What `sluice check` says about a configuration that it must refuse."""
    outcome = testbed.network.run(*testbed.command, "check", "--config", path, check=False, seconds=20)
    expect_equal(outcome.returncode, 1, f"the status of `sluice check` ({outcome.stdout}{outcome.stderr})")
    return outcome.stdout + outcome.stderr


@check("S1.secure-configuration", "a wrong `secureListen` is refused with the file, the line, the key and what is wrong")
def wrong_configuration(testbed: DNSTestbed) -> None:
    listening = SecureListening(testbed)
    other = listening.authority.issue("other.example")
    other_chain, other_key = other.write(testbed.file(""), "other")
    weak_chain, weak_key = listening.authority.issue("weak.example", key=rsa_key(1024)).write(testbed.file(""), "weak")
    open_key = testbed.file("open.key")
    with open(listening.key_file) as source, open(open_key, "w") as target:
        target.write(source.read())
    os.chmod(open_key, 0o640)
    broken = testbed.file("broken.pem")
    with open(listening.certificate_file) as source, open(broken, "w") as target:
        target.write(source.read().replace("MII", "MIH", 1))
    locked = testbed.file("locked.key")
    testbed.network.run("openssl", "pkcs8", "-topk8", "-in", listening.key_file, "-out", locked, "-passout", "pass:x")
    os.chmod(locked, 0o600)
    cases = [
        ({"keyFile": other_key}, "dns.secureListen.keyFile", "the key of another certificate"),
        ({"keyFile": open_key}, "dns.secureListen.keyFile", "open to others (mode 0640)"),
        ({"keyFile": testbed.file("none.key")}, "dns.secureListen.keyFile", "No such file"),
        ({"keyFile": listening.certificate_file}, "dns.secureListen.keyFile", "open to others"),
        ({"keyFile": locked}, "dns.secureListen.keyFile", "expected PEM without a passphrase"),
        ({"keyFile": "listener.key"}, "dns.secureListen.keyFile", "expected an absolute path"),
        ({"certificateFile": listening.key_file}, "dns.secureListen.certificateFile", "has no certificate in it"),
        ({"certificateFile": broken}, "dns.secureListen.certificateFile", "has a certificate in it that cannot be read"),
        ({"certificateFile": testbed.file("none.pem")}, "dns.secureListen.certificateFile", "No such file"),
        ({"certificateFile": weak_chain, "keyFile": weak_key}, "dns.secureListen.certificateFile", "key too small"),
        ({"certificateFile": None}, "dns.secureListen.certificateFile", "missing"),
        ({"keyFile": None}, "dns.secureListen.keyFile", "missing"),
        ({"tls": None, "https": None}, "dns.secureListen.certificateFile", "tls or https"),
        ({"https": None, "path": "/x"}, "dns.secureListen.path", "https only"),
        ({"path": "dns-query"}, "dns.secureListen.path", "expected a path"),
        ({"path": "/dns-query{?dns}"}, "dns.secureListen.path", "expected a path"),
        ({"tls": []}, "dns.secureListen.tls", "expected a list of one address at least"),
        ({"tls": ["127.0.0.1"]}, "dns.secureListen.tls[0]", "expected an address and a port"),
        ({"tls": ["127.0.0.1:443"], "https": ["127.0.0.1:443"]}, "dns.secureListen.https[0]", "is listened at already"),
        ({"tls": ["127.0.0.1:53"]}, "dns.secureListen.tls[0]", "is listened at already"),
        ({"certificate": "x"}, "dns.secureListen.certificate", "certificateFile"),
    ]
    daemon = listening.run()
    for members, key, reason in cases:
        daemon.write(UDP, secureListen=listening.member(**members))
        said = _checked(testbed, daemon.path)
        expect(key in said and reason in said and daemon.path + ":" in said, f"{members}: `sluice check` says {said!r}")
        before = daemon.log().count("ERROR")
        daemon.signal(signal.SIGHUP)
        wait_until(lambda: daemon.log().count("ERROR") > before, "the daemon saying that the file is wrong", 10)
        with listening.tls() as client, listening.https() as web:
            expect_addresses(client.exchange(dns_wire.query("localhost")), "127.0.0.1")
            expect_addresses(web.ask(query("localhost")).message, "127.0.0.1")


def _shown(listening: SecureListening, make) -> bytes:
    with make() as client:
        return client.tls.getpeercert(binary_form=True)


@check("S1.secure-certificate", "a reload shows the new certificate to new clients and keeps the old ones; a bad one "
       "changes nothing", lasts=3)
def new_certificate(testbed: DNSTestbed) -> None:
    listening = SecureListening(testbed)
    daemon = listening.run(rules=["||ads.example^"])
    old_tls, old_https = testbed.enter(listening.tls()), testbed.enter(listening.https())

    def expect_old_ones() -> None:
        expect_addresses(old_tls.exchange(dns_wire.query("localhost")), "127.0.0.1")
        expect_addresses(old_https.ask(query("localhost")).message, "127.0.0.1")

    between = listening.authority.intermediate("between")
    for current in (listening.authority.issue(SERVER, "127.0.0.1"),
                    between.issue(SERVER, "127.0.0.1", key=rsa_key(2048)).with_chain(between),
                    listening.authority.issue(SERVER, "127.0.0.1")):
        listening.replace(current)
        daemon.reload()
        for make in (listening.tls, listening.https):
            expect_equal(_shown(listening, make), current.certificate.public_bytes(Encoding.DER), "the certificate")
        expect_old_ones()
    # Key and certificate do not fit, in a configuration that has other changes, too: none of them is taken over.
    with open(listening.key_file, "w") as file:
        file.write("nonsense")
    daemon.write(UDP, ["||other.example^"], secureListen=listening.member(tls=["127.0.0.1:8853"]))
    before = daemon.log().count("ERROR")
    daemon.signal(signal.SIGHUP)
    wait_until(lambda: daemon.log().count("ERROR") > before, "the daemon saying that the key is wrong", 10)
    for make in (listening.tls, listening.https):
        expect_equal(_shown(listening, make), current.certificate.public_bytes(Encoding.DER), "the certificate")
    expect_addresses(testbed.ask("ads.example"), "0.0.0.0")
    expect_addresses(testbed.ask("other.example"), "192.0.2.1")
    expect_old_ones()


@check("S1.secure-addresses", "a reload opens and closes addresses, and clients that are connected stay", lasts=2)
def new_addresses(testbed: DNSTestbed) -> None:
    listening = SecureListening(testbed)
    daemon = testbed.run()
    plan = [
        ({"tls": ["0.0.0.0:853"], "https": ["[::1]:443"]}, [("tls", 4)], [("https", 4), ("tls", 6)]),
        ({"tls": ["127.0.0.1:853"], "https": ["0.0.0.0:443"]}, [("tls", 4), ("https", 4)], [("https", 6)]),
        ({"tls": None, "https": ["127.0.0.1:443", "127.0.0.1:853"]}, [("https", 4)], [("tls", 4)]),
        (None, [], [("https", 4), ("tls", 4)]),
        ({"tls": ["127.0.0.1:853", "[::1]:853"]}, [("tls", 4), ("tls", 6), ("https", 4)], []),
    ]
    connected = []
    for members, present, absent in plan:
        daemon.write(UDP, **({"secureListen": listening.member(**members)} if members else {}))
        daemon.reload()
        for kind, family in present:
            client = testbed.enter(getattr(listening, kind)(family))
            connected.append((kind, client))
        for kind, family in absent:
            try:
                getattr(listening, kind)(family)
            except (CheckFailure, ssl.SSLError):
                continue
            raise CheckFailure(f"a client is taken by {kind} and IPv{family} under {members}")
        for kind, client in connected:
            answer = (client.exchange(dns_wire.query("localhost")) if kind == "tls" else
                      client.ask(query("localhost")).message)
            expect_addresses(answer, "127.0.0.1")


@check("S1.secure-taken", "an address that somebody else has is named, at the start and by a reload")
def taken(testbed: DNSTestbed) -> None:
    listening = SecureListening(testbed)
    owner = testbed.network.socket(2, 1)
    owner.bind(("127.0.0.1", 853))
    owner.listen()
    daemon = testbed.run()
    daemon.write(UDP, ["||ads.example^"], secureListen=listening.member())
    daemon.reload("the configuration was not taken over")
    expect_addresses(testbed.ask("ads.example"), "192.0.2.1")
    second = testbed.configured(UDP, secureListen=listening.member(), listen=["127.0.0.9:53"])
    testbed.resign_dns(second)
    second.launch()
    wait_until(lambda: second.process.poll() is not None, "a daemon ending whose address is taken", 10)
    expect(second.process.returncode != 0 and "cannot listen on 127.0.0.1:853 by TLS" in second.log(), second.tail())
    owner.close()


@check("S1.secure-expired", "a certificate whose time is over, or has not come, is a line in the log and no reason to stop")
def expired(testbed: DNSTestbed) -> None:
    listening = SecureListening(testbed)
    for (first, last), words in (((-9, -2), "the certificate has expired"), ((2, 9), "the certificate is not valid yet")):
        listening.replace(listening.authority.issue(SERVER, first_day=first, last_day=last))
        daemon = listening.run()
        expect(words in daemon.log(), f"the log does not say that {words}: {daemon.tail()}")
        context = ssl.create_default_context(cafile=listening.authority_file)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        with listening.tls(context=context) as client:
            expect_addresses(client.exchange(dns_wire.query("localhost")), "127.0.0.1")
        testbed.resign_dns(daemon)
        daemon.stop()
    listening.replace(listening.authority.issue(SERVER, "127.0.0.1"))
    daemon = listening.run()
    expect("certificate" not in daemon.log(), f"the log speaks of a certificate that is in order: {daemon.tail()}")
    listening.tls().exchange(dns_wire.query("localhost"))
