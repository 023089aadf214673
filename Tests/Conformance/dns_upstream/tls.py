"""TLS under a scripted connection, between buffers in memory, so that the bytes on the wire are ours."""

import ssl
import tempfile
import warnings
from typing import TYPE_CHECKING, Optional, Sequence

from dns_upstream.certificates import Identity
from dns_upstream.client_hello import ClientHello
from dns_upstream.connection import Connection
from dns_upstream.listener import Listener

if TYPE_CHECKING:
    from dns_upstream.upstream import Upstream


def server_context(identity: Identity, protocols: Sequence[str], newest: Optional[str] = None,
                   curve: Optional[str] = None) -> ssl.SSLContext:
    """A server's context. It takes every key, however weak: it is the client who has to refuse.

    `newest` is the newest version that it speaks: "1.2", "1.1" or "1.0"; None for 1.3. Keys are exchanged on no other
    `curve` if there is one.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.set_ciphers("ALL:@SECLEVEL=0")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        context.minimum_version = ssl.TLSVersion.TLSv1
        if newest is not None:
            context.maximum_version = ssl.TLSVersion["TLSv" + newest.replace(".", "_").replace("1_0", "1")]
    with tempfile.TemporaryDirectory() as folder:
        context.load_cert_chain(*identity.write(folder, "server"))
    if curve:
        context.set_ecdh_curve(curve)
    if protocols:
        context.set_alpn_protocols(list(protocols))
    return context


class TLSLayer:
    """The server's side of the TLS of one connection, and what is known of the client by it."""

    def __init__(self, connection: "SecureConnection", context: ssl.SSLContext):
        self._connection = connection
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._object = context.wrap_bio(self._in, self._out, server_side=True)
        self.is_established = False

    @property
    def is_resumed(self) -> bool:
        """Whether the client went on with an earlier connection's session."""
        return bool(self._object.session_reused)

    @property
    def protocol(self) -> Optional[str]:
        """What ALPN agreed on."""
        return self._object.selected_alpn_protocol()

    @property
    def version(self) -> Optional[str]:
        """"TLSv1.3", "TLSv1.2" and so on."""
        return self._object.version()

    def receive(self, data: bytes) -> bytes:
        """Takes bytes of the wire, goes on with the handshake, and returns what the application gets."""
        self._in.write(data)
        plain = b""
        try:
            if not self.is_established:
                self._object.do_handshake()
                self.is_established = True
                self._flush()
                self._connection.become_secure()
                if self._connection.is_swallowing or not self._connection.is_open:
                    return plain
            while piece := self._object.read(65536):
                plain += piece
        except (ssl.SSLWantReadError, ssl.SSLZeroReturnError):
            pass
        except ssl.SSLError as error:
            self._connection.failure = error.reason or str(error)
            self._flush()
            self._connection.close(notify=False)
            return plain
        self._flush()
        return plain

    def _flush(self) -> None:
        self._connection.write_raw(self._out.read())

    def seal(self, data: bytes) -> bytes:
        """The bytes of the wire for bytes of the application."""
        self._object.write(data)
        return self._out.read()

    def close(self) -> bytes:
        """The bytes of close_notify."""
        if self.is_established:
            try:
                self._object.unwrap()
            except ssl.SSLError:
                pass  # The client's own has not come yet.
        return self._out.read()

    def end(self) -> None:
        """The socket is gone."""
        self._in.write_eof()


class SecureConnection(Connection):
    """A connection with DNS over TLS (RFC 7858), and what HTTPS has in common with it."""

    keeps_half_open = False

    def begin(self) -> None:
        self.tls = TLSLayer(self, self.listener.context)

    def become_secure(self) -> None:
        """The handshake is done."""
        if self.listener.on_secure == "close":
            self.close()
        elif self.listener.on_secure == "swallow":
            self.swallow()

    @property
    def client_hello(self) -> Optional[ClientHello]:
        """What the client offered."""
        return ClientHello.parse(self.raw_bytes)

    @property
    def is_ready(self) -> bool:
        return self.is_secure

    @property
    def is_secure(self) -> bool:
        """Whether the handshake was done."""
        return self.tls is not None and self.tls.is_established


class SecureListener(Listener):
    """Where DNS over TLS is spoken."""

    connection_class = SecureConnection

    def __init__(self, upstream: "Upstream", transport: str, address: str, port: int, identity: Identity,
                 protocols: Sequence[str], newest: Optional[str] = None):
        super().__init__(upstream, transport, address, port)
        self._protocols, self._newest = tuple(protocols), newest
        self.on_secure: Optional[str] = None  # "close" or "swallow": when the handshake of the next ones is done
        self.present(identity)

    def present(self, identity: Identity) -> None:
        """The next connections see this certificate, and no session of before is known any more."""
        self.identity = identity
        self.context = server_context(identity, self._protocols, self._newest)

    def forget_sessions(self) -> None:
        """Sessions of before are not resumed, as after a server's restart."""
        self.present(self.identity)

    def make_connection(self) -> Connection:
        return self.connection_class(self, self.upstream.next_connection_number())
