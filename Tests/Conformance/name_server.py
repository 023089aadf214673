"""A scripted DNS server in a namespace: right, slow, or silent."""

import ipaddress
import socket
import struct
import threading
from typing import Iterable, Mapping

from network_namespace import NetworkNamespace

_A, _AAAA = 1, 28


class NameServer:
    """Answers for the names that it is given until the `with` block ends; other names do not exist."""

    def __init__(self, namespace: NetworkNamespace, address: str, names: "Mapping[str, Iterable[str]]",
                 delay: float = 0.0, silent: bool = False):
        """`names` leads from names to addresses of both families. Each answer takes `delay` seconds."""
        self.names = {name.lower(): list(addresses) for name, addresses in names.items()}
        self.delay, self.silent = delay, silent
        self._socket = namespace.udp_socket(address, 53, seconds=0.1)
        self._ended = threading.Event()
        self._queries: "list[str]" = []
        self._thread = threading.Thread(target=self._serve, name="name-server", daemon=True)

    def __enter__(self) -> "NameServer":
        self._thread.start()
        return self

    def __exit__(self, *exception) -> None:
        self._ended.set()
        self._thread.join()
        self._socket.close()

    @property
    def queries(self) -> "list[str]":
        """The names asked for until now, once for each query."""
        return list(self._queries)

    def _serve(self) -> None:
        while not self._ended.is_set():
            try:
                query, client = self._socket.recvfrom(2048)
            except socket.timeout:
                continue
            except OSError:
                continue  # An ICMP error of an answer before.
            name, end = _question(query)
            self._queries.append(name)
            if not self.silent:
                timer = threading.Timer(self.delay, self._answer, (query, name, end, client))
                timer.daemon = True
                timer.start()

    def _answer(self, query: bytes, name: str, end: int, client) -> None:
        kind = struct.unpack_from(">H", query, end - 4)[0]
        addresses = [ipaddress.ip_address(text) for text in self.names.get(name, [])]
        records = [one.packed for one in addresses if {4: _A, 6: _AAAA}[one.version] == kind]
        flags = 0x8180 if name in self.names else 0x8183
        answer = query[:2] + struct.pack(">HHHHH", flags, 1, len(records), 0, 0) + query[12:end]
        for record in records:
            answer += struct.pack(">HHHIH", 0xC00C, kind, 1, 60, len(record)) + record
        try:
            self._socket.sendto(answer, client)
        except OSError:
            pass  # Nobody waits any more.


def _question(query: bytes) -> "tuple[str, int]":
    """The name that a query is for, and where the question ends."""
    labels, at = [], 12
    while query[at]:
        labels.append(query[at + 1:at + 1 + query[at]].decode().lower())
        at += 1 + query[at]
    return ".".join(labels), at + 5
