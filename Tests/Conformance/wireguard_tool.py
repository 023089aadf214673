"""Debian's `wg` applied to one interface of a daemon, and key pairs."""

import os
from dataclasses import dataclass
from typing import Optional

import commands
from daemon import Daemon
from network_namespace import NetworkNamespace

NO_KEY_FILE = "/dev/null"


@dataclass(frozen=True)
class KeyPair:
    """A private key and its public key, in base64 as `wg` prints them."""

    private: str
    public: str

    @staticmethod
    def generate() -> "KeyPair":
        """A new random pair."""
        private = commands.run(["wg", "genkey"]).stdout.strip()
        return KeyPair(private, commands.run(["wg", "pubkey"], input=private + "\n").stdout.strip())


def generate_preshared_key() -> str:
    """A new random preshared key in base64."""
    return commands.run(["wg", "genpsk"]).stdout.strip()


class SecretFiles:
    """Files that hand keys to `wg`, which takes secrets only from files."""

    def __init__(self, directory: str):
        """Files are made in `directory`, which the caller owns and removes."""
        self._directory = directory
        self._paths: "dict[str, str]" = {}

    def path(self, secret: str) -> str:
        """The path of a file that holds `secret`, readable by the owner alone."""
        if secret not in self._paths:
            path = os.path.join(self._directory, f"secret{len(self._paths)}")
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "w") as file:
                file.write(secret + "\n")
            self._paths[secret] = path
        return self._paths[secret]


class WireGuardInterface:
    """One WireGuard interface: its daemon, the namespace its TUN is in, and `wg` for it."""

    def __init__(self, daemon: Daemon, namespace: NetworkNamespace, secrets: SecretFiles):
        self.daemon = daemon
        self.name = daemon.interface
        self.namespace = namespace
        self._secrets = secrets

    # Link

    def move(self, namespace: NetworkNamespace) -> None:
        """Moves the TUN to another namespace; the daemon's UDP sockets stay in its birth namespace."""
        self.namespace.ip("link", "set", self.name, "netns", namespace.name)
        self.namespace = namespace

    def up(self) -> None:
        """Sets the link up."""
        self.namespace.ip("link", "set", self.name, "up")

    def down(self) -> None:
        """Sets the link down."""
        self.namespace.ip("link", "set", self.name, "down")

    def set_mtu(self, mtu: int) -> None:
        """Sets the device's MTU in bytes."""
        self.namespace.ip("link", "set", self.name, "mtu", str(mtu))

    @property
    def mtu(self) -> int:
        """The device's MTU in bytes."""
        return self.namespace.link(self.name)["mtu"]

    def add_address(self, *addresses: str) -> None:
        """Adds addresses in prefix notation to the interface."""
        self.namespace.add_address(self.name, *addresses)

    # Configuration

    def set(
        self,
        *words: str,
        private_key: Optional[str] = None,
        listen_port: Optional[int] = None,
    ) -> None:
        """`wg set IF [private-key FILE] [listen-port N] WORDS...`; keys are base64 text, "" removes one."""
        arguments = []
        if private_key is not None:
            arguments += ["private-key", self.key_file(private_key)]
        if listen_port is not None:
            arguments += ["listen-port", str(listen_port)]
        commands.run(["wg", "set", self.name, *arguments, *words])

    def set_peer(
        self,
        public_key: str,
        *words: str,
        preshared_key: Optional[str] = None,
        endpoint: Optional[str] = None,
        allowed_ips: Optional[str] = None,
        persistent_keepalive: Optional[int] = None,
    ) -> None:
        """`wg set IF peer KEY ...`: adds or changes one peer; None leaves a property alone, "" removes a key."""
        self.set(*self.peer_words(
            public_key, *words, preshared_key=preshared_key, endpoint=endpoint, allowed_ips=allowed_ips,
            persistent_keepalive=persistent_keepalive))

    def peer_words(
        self,
        public_key: str,
        *words: str,
        preshared_key: Optional[str] = None,
        endpoint: Optional[str] = None,
        allowed_ips: Optional[str] = None,
        persistent_keepalive: Optional[int] = None,
    ) -> "list[str]":
        """The words of `wg set` for one peer, to combine several changes in one call of `set`."""
        arguments = ["peer", public_key, *words]
        if preshared_key is not None:
            arguments += ["preshared-key", self.key_file(preshared_key)]
        if endpoint is not None:
            arguments += ["endpoint", endpoint]
        if persistent_keepalive is not None:
            arguments += ["persistent-keepalive", str(persistent_keepalive)]
        if allowed_ips is not None:
            arguments += ["allowed-ips", allowed_ips]
        return arguments

    def remove_peer(self, public_key: str) -> None:
        """`wg set IF peer KEY remove`."""
        self.set("peer", public_key, "remove")

    def key_file(self, key: str) -> str:
        """A file that holds a base64 key; /dev/null for the empty text."""
        return self._secrets.path(key) if key else NO_KEY_FILE

    def setconf(self, configuration: str, seconds: float = 60.0) -> None:
        """`wg setconf` with the text of a configuration."""
        commands.run(["wg", "setconf", self.name, "/dev/stdin"], input=configuration, seconds=seconds)

    # Reading back

    def show(self, field: str, seconds: float = 60.0) -> str:
        """`wg show IF FIELD`, without the last newline."""
        return commands.run(["wg", "show", self.name, field], seconds=seconds).stdout.rstrip("\n")

    def show_by_peer(self, field: str, seconds: float = 60.0) -> "dict[str, list[str]]":
        """`wg show IF FIELD` as words by public key, in the order shown."""
        lines = (line.split() for line in self.show(field, seconds).splitlines())
        return {words[0]: words[1:] for words in lines if words}

    def showconf(self) -> str:
        """`wg showconf IF`."""
        return commands.run(["wg", "showconf", self.name], seconds=60).stdout

    def transfer(self, public_key: str) -> "tuple[int, int]":
        """Received and sent bytes of one peer."""
        received, sent = self.show_by_peer("transfer")[public_key]
        return int(received), int(sent)

    def endpoint(self, public_key: str) -> str:
        """The endpoint of one peer, "(none)" when it has none."""
        return self.show_by_peer("endpoints")[public_key][0]

    def latest_handshake(self, public_key: str) -> int:
        """Seconds since the UNIX epoch of one peer's latest handshake; 0 before the first."""
        return int(self.show_by_peer("latest-handshakes")[public_key][0])
