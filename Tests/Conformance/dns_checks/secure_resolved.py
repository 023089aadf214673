"""systemd-resolved in front of the daemon, by TLS with a certificate that it checks, and without."""

import os
import subprocess

import dns_wire
from dns_checks.registry import check
from dns_checks.shape import expect_addresses
from dns_secure_client import SERVER, SecureListening
from dns_testbed import DNSTestbed
from waiting import CheckFailure, expect, wait_until

#: Where scripts/setup unpacks the program: as an installed package it would take over /etc/resolv.conf.
FOLDER = "/usr/local/lib/sluice-checks"
PROGRAM = f"{FOLDER}/systemd-resolved/lib/systemd/systemd-resolved"
#: Where it listens.
STUB = "127.0.0.53"

#: What it needs of a machine, in a mount namespace of its own: its folders, its user, and no settings but ours.
SCRIPT = """
set -e
mount --make-rprivate /
mount -t tmpfs none /run
mkdir -p /run/systemd/resolve
mount -t tmpfs none /etc/systemd
printf '%s\\n' "$RESOLVED_CONFIGURATION" > /etc/systemd/resolved.conf
if ! grep -q ^systemd-resolve: /etc/passwd; then
  cp /etc/passwd /run/passwd
  echo systemd-resolve:x:994:994::/:/usr/sbin/nologin >> /run/passwd
  mount --bind /run/passwd /etc/passwd
  cp /etc/group /run/group
  echo systemd-resolve:x:994: >> /run/group
  mount --bind /run/group /etc/group
fi
chown systemd-resolve:systemd-resolve /run/systemd/resolve
# It gives its privileges up before it reads this.
cp "$AUTHORITY" /run/authority.pem
chmod 644 /run/authority.pem
exec "$@"
"""


def _start(testbed: DNSTestbed, listening: SecureListening, server: str, mode: str):
    settings = "\n".join(["[Resolve]", f"DNS={server}", "FallbackDNS=", f"DNSOverTLS={mode}", "DNSSEC=no", "LLMNR=no",
                          "MulticastDNS=no", "Cache=no", "Domains=~."])
    # The library has to be of the same version, which an installed one need not be.
    libraries = f"{FOLDER}/libsystemd-shared/usr/lib/x86_64-linux-gnu/systemd"
    path = testbed.file(f"resolved-{mode}.log")
    testbed.keep_log(path)
    with open(path, "ab") as log:
        return testbed.start(
            testbed.network, "unshare", "--mount", "sh", "-c", SCRIPT, "sh", PROGRAM, stdin=subprocess.DEVNULL, stdout=log,
            stderr=log, env={
                "PATH": os.environ.get("PATH", ""), "RESOLVED_CONFIGURATION": settings, "SYSTEMD_LOG_TARGET": "console",
                "AUTHORITY": listening.authority_file, "SSL_CERT_FILE": "/run/authority.pem", "LD_LIBRARY_PATH": libraries})


def _ask(testbed: DNSTestbed, name: str, kind: int = dns_wire.A) -> dns_wire.Message:
    with testbed.network.socket(2, 2) as client:
        client.connect((STUB, 53))
        client.settimeout(8)
        message = dns_wire.query(name, kind)
        testbed.note(message)
        try:
            client.send(message)
            return dns_wire.Message.checked(client.recv(65535))
        except OSError as error:
            raise CheckFailure(f"systemd-resolved does not answer: {error}") from None


@check("T7.resolved", "systemd-resolved asks by TLS, with the certificate checked, and without TLS", lasts=3)
def resolved(testbed: DNSTestbed) -> None:
    expect(os.access(PROGRAM, os.X_OK), f"{PROGRAM} is missing: scripts/setup unpacks it")
    listening = SecureListening(testbed)
    daemon = listening.run(rules=["||ads.example^"])
    # It asks nobody as long as there is nothing but the loopback interface.
    testbed.network.ip("link", "add", "wire0", "type", "veth", "peer", "name", "wire1")
    testbed.network.add_address("wire0", "192.0.2.200/24")
    for one in ("wire0", "wire1"):
        testbed.network.ip("link", "set", one, "up")
    for mode, server in (("yes", f"127.0.0.1:853#{SERVER}"), ("no", "127.0.0.1")):
        process = _start(testbed, listening, server, mode)

        def answers() -> bool:
            expect(process.poll() is None, "systemd-resolved ended by itself")
            try:
                return _ask(testbed, "ready.example").addresses == ["192.0.2.1"]
            except CheckFailure:
                return False

        wait_until(answers, "systemd-resolved answering with the upstream's address", 15)
        for number in range(10):
            expect_addresses(_ask(testbed, f"{mode}{number}.example"), "192.0.2.1")
            expect_addresses(_ask(testbed, f"{mode}{number}.example", dns_wire.AAAA), "2001:db8::1")
        expect_addresses(_ask(testbed, "ads.example"), "0.0.0.0")
        process.terminate()
        process.wait(10)
        counts = daemon.status()["dns"]["clients"]
        expect(counts["secure"]["tls"] >= 1 and counts["secure"]["failedHandshakes"] == 0, f"by TLS came {counts}")
        expect(mode == "yes" or counts["udp"]["received"] >= 21, f"without TLS came {counts}")
    # Another name than the certificate's is nobody that it asks.
    before = daemon.status()["dns"]["clients"]
    process = _start(testbed, listening, "127.0.0.1:853#other.example", "yes")
    with testbed.network.socket(2, 2) as client:
        client.connect((STUB, 53))
        client.settimeout(0.2)

        def refuses() -> bool:
            try:
                client.send(dns_wire.query("refused.example"))
                code = dns_wire.Message.checked(client.recv(65535)).code
                expect(code == dns_wire.SERVFAIL, f"systemd-resolved answers with the code {code}")
            except OSError:
                pass  # It is not there yet, or tries again.
            return daemon.status()["dns"]["clients"]["tcp"]["accepted"] > before["tcp"]["accepted"]

        wait_until(refuses, "systemd-resolved trying a certificate for another name", 15)
    process.terminate()
    process.wait(10)
    testbed.expect_asked("refused.example", 0, "the certificate is for another name")
