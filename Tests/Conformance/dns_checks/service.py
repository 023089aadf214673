"""The service itself: where it listens, what it says of itself, and how it ends."""

import os
import signal
import socket
import time

import dns_wire
from dns_checks.registry import check
from dns_checks.shape import expect_addresses, expect_shape
from dns_testbed import TRANSPORTS, DNSTestbed
from dns_upstream import Upstream, scripts
from waiting import expect, expect_equal, wait_until


@check("L1", "answers come from the address that was asked, also when it listens at all of them")
def all_addresses(testbed: DNSTestbed) -> None:
    testbed.network.add_address("lo", "2001:db8:5::1/128", "2001:db8:5::2/128", "192.0.2.200/32")
    # All addresses are the daemon's at port 53.
    testbed.enter(Upstream(testbed.network, "127.0.0.2")).udp(5300)
    testbed.run("udp://127.0.0.2:5300", listen=["0.0.0.0:53", "[::]:53"])
    for family, addresses in ((socket.AF_INET, ("127.0.0.1", "127.0.0.7", "192.0.2.200")),
                              (socket.AF_INET6, ("::1", "2001:db8:5::1", "2001:db8:5::2"))):
        for address in addresses:
            with testbed.network.socket(family, socket.SOCK_DGRAM) as client:
                client.settimeout(5)
                client.connect((address, 53))
                for name in ("localhost", "www.example", "www.example"):
                    query = dns_wire.query(name)
                    testbed.note(query)
                    client.send(query)
                    try:
                        answer = dns_wire.Message.checked(client.recv(4096))
                    except socket.timeout:
                        expect(False, f"no answer came from {address} to a query to {address}")
                    expect_addresses(expect_shape(query, answer), "127.0.0.1" if name == "localhost" else "192.0.2.1")


@check("L2", "several places to listen at, other ports too; each serves by both transports and families")
def several_places(testbed: DNSTestbed) -> None:
    testbed.run(listen=["127.0.0.1:53", "[::1]:53", "127.0.0.5:5353", "127.0.0.6:53"])
    for address in (("127.0.0.5", 5353), ("127.0.0.6", 53)):
        for kind in (socket.SOCK_DGRAM, socket.SOCK_STREAM):
            with testbed.network.socket(socket.AF_INET, kind) as client:
                client.settimeout(5)
                client.connect(address)
                query = dns_wire.query("localhost")
                length = len(query).to_bytes(2, "big") if kind == socket.SOCK_STREAM else b""
                client.sendall(length + query)
                data = client.recv(4096)[len(length):]
                expect_addresses(dns_wire.Message.checked(data), "127.0.0.1", what=f"the answer of {address}")


@check("L3", "sockets for clients have a receive buffer of 1 MiB at least")
def buffers(testbed: DNSTestbed) -> None:
    testbed.run()
    listing = testbed.network.run("ss", "-H", "-u", "-l", "-n", "-m", "src", "127.0.0.1:53").stdout
    sizes = [int(part[2:]) for part in listing.replace("(", ",").split(",") if part[:2] == "rb" and part[2:].isdigit()]
    expect(sizes and min(sizes) >= 1 << 20, f"the receive buffers are {sizes}: {listing.strip()}")


@check("L4", "an end with queries under way: in time, with status 0, and with nothing left", lasts=2)
def ends_with_work(testbed: DNSTestbed) -> None:
    testbed.upstream.script = scripts.silence
    daemon = testbed.run()
    client, stream = testbed.udp(), testbed.tcp()
    for number in range(50):
        client.send(dns_wire.query(f"host{number}.example"))
        stream.send(dns_wire.query(f"other{number}.example"))
    testbed.upstream.wait_for_query("other49.example")
    started = time.monotonic()
    daemon.stop()
    expect(time.monotonic() - started < 3, f"the end took {time.monotonic() - started:.1f} s")
    testbed.expect_no_name(daemon)
    testbed.resign_dns(daemon)
    # The port is free at once, although connections were open.
    testbed.upstream.script = scripts.addresses()
    testbed.run()
    for transport in TRANSPORTS:
        expect_addresses(testbed.ask("again.example", transport=transport), "192.0.2.1")


@check("L5", "a port that is taken: it ends with a status that is not 0 and says so, and leaves nothing")
def port_taken(testbed: DNSTestbed) -> None:
    for kind in (socket.SOCK_DGRAM, socket.SOCK_STREAM):
        holder = testbed.network.socket(socket.AF_INET, kind)
        holder.bind(("127.0.0.1", 53))
        if kind == socket.SOCK_STREAM:
            holder.listen()
        daemon = testbed.configured("udp://127.0.0.2:53")
        daemon.launch()
        wait_until(lambda: daemon.process.poll() is not None, "the daemon ending", 15, detail=daemon.tail)
        expect(daemon.process.returncode not in (0, None) and daemon.process.returncode > 0,
               f"the status is {daemon.process.returncode}: {daemon.tail()}")
        expect("cannot listen" in daemon.log(), f"the log does not say what is wrong: {daemon.tail()}")
        expect(not os.path.exists(daemon.socket), "the control socket was left behind")
        expect("READY=1" not in daemon.notifications(), "it said to be ready")
        testbed.resign_dns(daemon)
        holder.close()
    testbed.run()


@check("L6", "the status tells of clients, the cache and upstreams, and of no name that was asked for")
def status(testbed: DNSTestbed) -> None:
    daemon = testbed.run(rules=["||ads.example^"])
    for name in ("www.private.example", "www.private.example", "ads.example"):
        for transport in TRANSPORTS:
            testbed.ask(name, transport=transport)
    words = testbed.network.run(*testbed.command, "status", "--json", "--config", daemon.path).stdout
    expect("private" not in words and "ads.example" not in words, f"the status has a name in it: {words}")
    found = daemon.status()
    expect("dns" in found, f"the status has no part for DNS: {found}")
    upstreams = [one.get("name") for one in found["dns"].get("upstreams", [])]
    expect_equal(upstreams, ["main"], "the upstreams of the status")


@check("L7", "a daemon that was stopped for a while goes on as before (SIGSTOP and SIGCONT)", lasts=2)
def stopped(testbed: DNSTestbed) -> None:
    daemon = testbed.run()
    client = testbed.udp()
    os.kill(daemon.pid, signal.SIGSTOP)
    queries = [dns_wire.query(f"host{number}.example", identifier=number) for number in range(100)]
    for query in queries:
        client.send(query)
    os.kill(daemon.pid, signal.SIGCONT)
    found = {client.receive().identifier for _ in queries}
    expect_equal(len(found), 100, "the queries that were answered after a stop")


@check("L8", "long queries by UDP are answered: padding of 3,000 octets")
def long_queries(testbed: DNSTestbed) -> None:
    testbed.run()
    for length in (500, 1300, 3000):
        edns = dns_wire.opt(options=dns_wire.option(dns_wire.PADDING, bytes(length)))
        for transport in TRANSPORTS:
            answer = testbed.ask(f"long{length}.example", transport=transport, edns=edns)
            expect_addresses(answer, "192.0.2.1", what=f"the answer to padding of {length} octets by {transport}")
