"""Reads what a daemon counts, by HTTP, and has an independent parser judge it (prometheus_client's for OpenMetrics)."""

import socket
from typing import Optional

from prometheus_client.openmetrics.parser import text_string_to_metric_families

from network_namespace import NetworkNamespace
from waiting import CheckFailure, expect, expect_equal

ADDRESS = ("127.0.0.1", 9153)
CONTENT_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"


class Answer:
    """An answer by HTTP: its status, its fields by their names in lower case, its body."""

    def __init__(self, data: bytes):
        head, end, self.body = data.partition(b"\r\n\r\n")
        expect(end, f"the answer has no whole head: {data[:200]!r}")
        lines = head.decode("ascii").split("\r\n")
        version, number, self.reason = lines[0].split(" ", 2)
        expect_equal(version, "HTTP/1.1", "the version of the answer")
        self.status = int(number)
        self.fields = {}
        for line in lines[1:]:
            name, colon, value = line.partition(":")
            expect(colon and name.lower() not in self.fields, f"a field that is none, or there twice: {line!r}")
            self.fields[name.lower()] = value.strip()


def connect(namespace: NetworkNamespace, address=ADDRESS) -> socket.socket:
    """A connection to who tells the metrics."""
    connection = namespace.socket(socket.AF_INET6 if ":" in address[0] else socket.AF_INET, socket.SOCK_STREAM)
    connection.settimeout(15)
    try:
        connection.connect(address)
    except OSError as error:
        connection.close()
        raise CheckFailure(f"connecting to {address}: {error}") from None
    return connection


def read_all(connection: socket.socket) -> bytes:
    """What comes until the connection ends."""
    data = b""
    while True:
        try:
            piece = connection.recv(1 << 16)
        except socket.timeout:
            raise CheckFailure(f"neither more nor the end came after {len(data)} octets") from None
        if not piece:
            return data
        data += piece


def request(namespace: NetworkNamespace, data: bytes, address=ADDRESS, piece: Optional[int] = None) -> Answer:
    """Sends a request and returns the answer, behind which the connection must end by itself."""
    with connect(namespace, address) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for start in range(0, len(data), piece or len(data)):
            connection.sendall(data[start:start + (piece or len(data))])
        return Answer(read_all(connection))


class Metrics:
    """One reading of all that is counted."""

    def __init__(self, answer: Answer):
        expect_equal((answer.status, answer.fields.get("content-type")), (200, CONTENT_TYPE), "status and content type")
        expect_equal(int(answer.fields["content-length"]), len(answer.body), "the length of the body")
        self.text = answer.body.decode()
        expect(self.text.endswith("\n# EOF\n"), "the text does not end as it has to")
        try:
            self.families = {one.name: one for one in text_string_to_metric_families(self.text)}
        except ValueError as error:
            raise CheckFailure(f"this is not OpenMetrics: {error}") from None
        self.samples = {(one.name, tuple(sorted(one.labels.items()))): one.value
                        for family in self.families.values() for one in family.samples}

    def value(self, sample: str, **labels: str) -> float:
        """The value of one sample."""
        key = (sample, tuple(sorted(labels.items())))
        expect(key in self.samples, f"there is no {sample} with {labels}")
        return self.samples[key]

    def total(self, sample: str, **labels: str) -> float:
        """The sum of all samples of a name that have these labels among theirs."""
        return sum(value for (name, found), value in self.samples.items()
                   if name == sample and set(labels.items()) <= set(found))

    def labels(self, sample: str, label: str) -> "set[str]":
        """The values of a label."""
        return {dict(found)[label] for name, found in self.samples if name == sample}

    def expect_not_before(self, earlier: "Metrics") -> None:
        """No counter may have less than before, and none may be gone."""
        for family in earlier.families.values():
            if family.type not in ("counter", "histogram"):
                continue
            for one in family.samples:
                later = self.value(one.name, **one.labels)
                expect(later >= one.value, f"{one.name} {one.labels} went from {one.value} to {later}")


def scrape(namespace: NetworkNamespace, address=ADDRESS) -> Metrics:
    """Reads all that is counted, as Prometheus does."""
    return Metrics(request(
        namespace, b"GET /metrics HTTP/1.1\r\nHost: localhost:9153\r\nUser-Agent: Prometheus/2.42.0\r\n"
        b"Accept: application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1\r\n"
        b"Accept-Encoding: gzip\r\n\r\n", address))
