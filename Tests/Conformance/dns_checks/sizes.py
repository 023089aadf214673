"""How long answers may be, and what becomes of those that are longer (RFC 2181 §9, RFC 6891 §6.2.3)."""

import dns_wire
from dns_checks.registry import check
from dns_checks.shape import expect_code, expect_shape
from dns_testbed import TCP, TRANSPORTS, DNSTestbed
from dns_upstream import Received, messages
from waiting import expect, expect_equal


@check("B8", "sizes below 512 count as 512, and every size is taken; the proxy's own is 1232")
def sizes(testbed: DNSTestbed) -> None:
    # 440 octets of data: it fits into 512, and not into less.
    testbed.upstream.script = lambda received: messages.answer(received.query, [
        messages.text(b"x" * 200), messages.text(b"y" * 200)])
    testbed.run()
    for size in (0, 1, 100, 511, 512, 1232, 4096, 65535):
        for name in (f"size{size}.example", f"size{size}.example"):
            answer = testbed.ask(name, dns_wire.TXT, edns=dns_wire.opt(size))
            expect(len(answer.answers) == 2 and not answer.flags & dns_wire.TC,
                   f"an answer of less than 512 octets is cut for the size {size}: {answer}")
            expect_equal(answer.edns.size, 1232, "the proxy's own size")
    sent = [one.query.edns for one in testbed.upstream.received]
    expect(all(one is None or one.payload_size == 1232 for one in sent),
           f"another size was sent to the upstream: {sent}")


def _many_sets(received: Received) -> bytes:
    """Record sets of two records each: a chain of aliases, addresses, and more behind them."""
    query, chain = received.query, [f"alias{number}.many.example" for number in range(8)]
    records = [messages.alias(chain[0])]
    records += [messages.alias(after, owner=before) for before, after in zip(chain, chain[1:])]
    records += [messages.address(f"192.0.2.{number}", owner=chain[-1]) for number in range(1, 31)]
    authority = [messages.record(2, messages.name_bytes(f"ns{number}.many.example"), owner="many.example")
                 for number in range(4)]
    additional = [messages.address(f"192.0.2.{100 + number}", owner=f"ns{number}.many.example") for number in range(4)]
    return messages.answer(query, records, authority=authority, additional=additional)


def _set(one: dns_wire.Record) -> "tuple[bytes, int]":
    return one.owner, one.kind


@check("B9", "answers by UDP are no longer than the client and the proxy allow, and are cut between record sets")
def limits(testbed: DNSTestbed) -> None:
    testbed.upstream.script = _many_sets
    testbed.run()
    whole = testbed.ask("many.example", transport="tcp", edns=dns_wire.opt())
    expect(not whole.flags & dns_wire.TC and len(whole.bytes) > 1232,
           f"an answer by TCP is {len(whole.bytes)} octets: {whole}")
    previous = -1
    # The first of each size is asked with a name of its own, and is not in the cache.
    for size in [None, *range(512, 1946, 13)]:
        edns = dns_wire.opt(size) if size else None
        limit = min(size or 512, 1232)
        for name in ("many.example", f"{size or 512:04}.example"):
            query = dns_wire.query(name, edns=edns)
            answer = expect_shape(query, testbed.exchange(query), truncated=True, what=f"the answer to size {size}")
            expect(len(answer.bytes) <= limit, f"{len(answer.bytes)} octets came to a client that takes {limit}")
            expect((answer.edns is None) == (size is None), f"the OPT record is lost for size {size}: {answer}")
            for section, complete in zip(answer.sections, whole.sections):
                for one in {_set(one) for one in section if one.kind != dns_wire.OPT}:
                    count, wanted = (sum(_set(other) == one for other in part) for part in (section, complete))
                    expect(name != "many.example" or count == wanted,
                           f"{count} of {wanted} records of {dns_wire.text(one[0])} TYPE{one[1]} came for size {size}")
            if name == "many.example" and size:
                count = sum(map(len, answer.sections))
                expect(count >= previous, f"size {size} gets {count} records, a smaller one {previous}")
                previous = count


@check("B9.exact", "an answer that just fits is whole, and one octet more is cut")
def exact(testbed: DNSTestbed) -> None:
    # Header and question are 12 + 20, a TXT record is 12 and its strings with their lengths, OPT is 11.
    def script(received: Received) -> bytes:
        return messages.answer(received.query, [messages.record(dns_wire.TXT, _strings(int(received.name[1:5])))],
                               edns=False)

    testbed.upstream.script = script
    testbed.run(TCP)
    for edns, limit in ((None, 512), (dns_wire.opt(512), 512), (dns_wire.opt(900), 900), (dns_wire.opt(4096), 1232)):
        most = limit - 12 - len(dns_wire.question("s0000.example")) - 12 - (11 if edns else 0)
        for length, fits in ((most - 1, True), (most, True), (most + 1, False)):
            for time in ("first", "second"):
                answer = testbed.ask(f"s{length:04}.example", dns_wire.TXT, edns=edns)
                expect_equal((len(answer.answers), bool(answer.flags & dns_wire.TC)), (int(fits), not fits),
                             f"records and TC of {length} octets of data for {limit}, asked for the {time} time,")


def _strings(length: int) -> bytes:
    """Data of a TXT record of exactly so many octets."""
    data = b""
    while length:
        part = min(length, 256)
        part -= 1 if length - part == 1 else 0  # No empty string at the end.
        data += bytes([part - 1]) + b"t" * (part - 1)
        length -= part
    return data


@check("B10", "answers by TCP are never cut")
def whole_by_tcp(testbed: DNSTestbed) -> None:
    def script(received: Received) -> bytes:
        length = int(received.name[1:6])
        return messages.answer(received.query, [messages.record(dns_wire.TXT, _strings(250))
                                                for _ in range(length // 262)])

    testbed.upstream.script = script
    testbed.run(TCP)
    for length in (600, 3000, 20000, 65000):
        for edns in (dns_wire.opt(512), None, dns_wire.opt(0), dns_wire.opt(1232)):
            query = dns_wire.query(f"l{length:05}.example", dns_wire.TXT, edns=edns)
            answer = expect_shape(query, testbed.exchange(query, "tcp"), what=f"an answer of {length} octets")
            expect_equal(len(answer.answers), length // 262, f"the records of an answer of {length} octets")


@check("B11", "what the upstream cuts by UDP is asked for by TCP, and what was cut is not kept")
def asked_again(testbed: DNSTestbed) -> None:
    def script(received: Received) -> bytes:
        if received.transport == "udp":
            return messages.answer(received.query, flags=messages.TC | messages.RA)
        return messages.answer(received.query, [messages.text("whole" * 40) for _ in range(3)])

    testbed.upstream.script = script
    testbed.run()
    for transport in TRANSPORTS:
        for time in ("first", "second"):
            answer = testbed.ask(f"cut-{transport}.example", dns_wire.TXT, transport, edns=dns_wire.opt())
            expect(len(answer.answers) == 3 and not answer.flags & dns_wire.TC,
                   f"the {time} answer by {transport} is not the whole one: {answer}")
        ways = [one.transport for one in testbed.upstream.asked(f"cut-{transport}.example")]
        expect_equal(ways, ["udp", "tcp"], "the ways by which the upstream was asked")


@check("B8.query", "queries as long as a datagram can be are answered by UDP, and many of them leave no memory taken")
def long_queries(testbed: DNSTestbed) -> None:
    daemon = testbed.run()

    def query(name: str, size: int) -> bytes:
        padding = dns_wire.option(dns_wire.PADDING, bytes(size - len(dns_wire.query(name)) - 15))
        return dns_wire.query(name, edns=dns_wire.opt(options=padding))

    with testbed.client("udp") as client:
        client.exchange(dns_wire.query("www.example"))
        before = daemon.memory()
        for size in (512, 4096, 4097, 30000, 65507):
            for name in ("www.example", "localhost", f"n{size}.example"):
                one = query(name, size)
                expect_equal(len(one), size, "the length of the query")
                expect_code(client.exchange(one), 0, what=f"the answer to {size} octets about {name}")
        # What more there is than the socket's buffer holds is lost.
        for number in range(100):
            client.send(query("www.example", 65000))
        while client.receive_bytes(0.5) is not None:
            pass
        client.exchange(dns_wire.query("www.example"))
        grown = daemon.memory() - before
    expect(grown < 1 << 20, f"long queries have {grown >> 10} KiB of memory taken")


@check("B12", "an upstream by UDP is not asked by TCP without need")
def no_tcp(testbed: DNSTestbed) -> None:
    testbed.run()
    for number, kind in enumerate((dns_wire.A, dns_wire.AAAA, dns_wire.TXT, dns_wire.MX)):
        expect_code(testbed.ask(f"n{number}.example", kind, edns=dns_wire.opt()), 0)
    expect_equal({one.transport for one in testbed.upstream.received}, {"udp"},
                 "the ways by which the upstream was asked")
    expect_equal(len(testbed.upstream.connections), 0, "the connections to the upstream")
