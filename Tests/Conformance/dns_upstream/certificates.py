"""Certificates for scripted servers: good ones, and all that a client must not trust. Made when a check runs."""

import base64
import datetime
import hashlib
import ipaddress
import os
import warnings
from dataclasses import dataclass
from typing import Iterable, Optional, Sequence

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

# That they are is why there are checks with them.
warnings.filterwarnings("ignore", message="SHA1 signatures are deprecated")

#: A pin that no key has.
SPARE_PIN = "sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="


def elliptic_key():
    """A new key on P-256."""
    return ec.generate_private_key(ec.SECP256R1())


def rsa_key(bits: int):
    """A new RSA key of so many bits."""
    return rsa.generate_private_key(65537, bits)


@dataclass(frozen=True)
class Identity:
    """A key with its certificate and those that the server sends behind it."""

    key: object
    certificate: x509.Certificate
    others: "tuple[x509.Certificate, ...]" = ()

    @property
    def pin(self) -> str:
        """The pin of the key, as the configuration has it: SHA-256 of SubjectPublicKeyInfo (RFC 7858 §4.2)."""
        return pin(self.certificate)

    def with_chain(self, *identities: "Identity") -> "Identity":
        """The same, with the certificates of others behind its own."""
        return Identity(self.key, self.certificate, tuple(one.certificate for one in identities))

    def write(self, folder: str, name: str) -> "tuple[str, str]":
        """Writes chain and key and returns their paths."""
        chain, key = os.path.join(folder, f"{name}.pem"), os.path.join(folder, f"{name}.key")
        with open(chain, "wb") as file:
            for one in (self.certificate, *self.others):
                file.write(one.public_bytes(Encoding.PEM))
        with open(os.open(key, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        return chain, key


def pin(certificate: x509.Certificate) -> str:
    """The pin of a certificate's key."""
    info = certificate.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return "sha256/" + base64.b64encode(hashlib.sha256(info).digest()).decode()


class Authority(Identity):
    """Somebody who vouches: a root, or what a root has made an authority."""

    @staticmethod
    def root(name: str = "authority", key=None) -> "Authority":
        """An authority that vouches for itself."""
        key = key or elliptic_key()
        return Authority(key, _certificate(name, key.public_key(), name, key, is_authority=True))

    def intermediate(self, name: str = "intermediate") -> "Authority":
        """An authority below this one."""
        key = elliptic_key()
        one = _certificate(name, key.public_key(), _common_name(self.certificate), self.key, is_authority=True)
        return Authority(key, one)

    def issue(self, *names: str, key=None, first_day: int = -1, last_day: int = 30, algorithm=None,
              for_servers: bool = True, common_name: str = "server") -> Identity:
        """A certificate for host names and addresses, valid between two days counted from today."""
        key = key or elliptic_key()
        certificate = _certificate(
            common_name, key.public_key(), _common_name(self.certificate), self.key, names, first_day, last_day,
            algorithm, for_servers=for_servers)
        return Identity(key, certificate, self.others if self.others else ())


def self_signed(*names: str, key=None) -> Identity:
    """A server that vouches for itself."""
    key = key or elliptic_key()
    return Identity(key, _certificate("server", key.public_key(), "server", key, names))


def _common_name(certificate: x509.Certificate) -> str:
    return certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _certificate(subject: str, public_key, issuer: str, issuer_key, names: Sequence[str] = (), first_day: int = -1,
                 last_day: int = 30, algorithm: Optional[hashes.HashAlgorithm] = None, is_authority: bool = False,
                 for_servers: bool = True) -> x509.Certificate:
    today = datetime.datetime.utcnow()
    builder = (
        x509.CertificateBuilder().subject_name(_name(subject)).issuer_name(_name(issuer)).public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(today + datetime.timedelta(days=first_day))
        .not_valid_after(today + datetime.timedelta(days=last_day))
        .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public_key), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), critical=False))
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(list(_alternatives(names))), critical=False)
    if not is_authority:
        usage = ExtendedKeyUsageOID.SERVER_AUTH if for_servers else ExtendedKeyUsageOID.CLIENT_AUTH
        builder = builder.add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
    return builder.sign(issuer_key, algorithm or hashes.SHA256())


def _alternatives(names: "Iterable[str]") -> "Iterable[x509.GeneralName]":
    for name in names:
        try:
            yield x509.IPAddress(ipaddress.ip_address(name))
        except ValueError:
            yield x509.DNSName(name)


def write_authorities(path: str, *authorities: Identity) -> str:
    """Writes a file of authorities for `caFile` and returns its path."""
    with open(path, "wb") as file:
        for one in authorities:
            file.write(one.certificate.public_bytes(Encoding.PEM))
    return path
