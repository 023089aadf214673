"""What is counted of a tunnel, alone and beside the DNS proxy, as OpenMetrics by HTTP."""

import time

from daemon_testbed import DaemonTestbed
from name_server import NameServer
from openmetrics import ADDRESS, Metrics, connect, scrape
from run_checks.proxy import ask
from run_checks.registry import check
from run_site import ENDPOINT, INSIDE, LAN, LAN6, SPLIT, Site
from traffic import transfer
from waiting import CheckFailure, expect, expect_equal, wait_until
from wireguard_tool import KeyPair

METRICS = 'metrics: { listen: ["127.0.0.1:9153", "[::1]:9153"] }, '
RECEIVED, SENT = "sluice_tunnel_peer_received_bytes_total", "sluice_tunnel_peer_sent_bytes_total"
HANDSHAKE = "sluice_tunnel_peer_last_handshake_timestamp_seconds"


def _reasons(found: Metrics) -> "dict[str, float]":
    return {reason: found.value("sluice_tunnel_dropped_packets_total", reason=reason)
            for reason in found.labels("sluice_tunnel_dropped_packets_total", "reason")}


@check("metrics.tunnel", "a tunnel's metrics are those of wg show and the status: bytes, handshakes, drops; no keys")
def tunnel(testbed: DaemonTestbed) -> None:
    site = Site(testbed)
    before = site.prepare(SPLIT, more=METRICS)
    site.instance.start()
    earlier = scrape(site.namespace)
    expect_equal([earlier.value(name, peer="1") for name in (RECEIVED, SENT)], [0, 0], "the bytes at the start")
    expect(not earlier.labels(HANDSHAKE, "peer"), "there is a handshake already")
    expect("sluice_dns" not in earlier.text, "there is a DNS proxy in the metrics")
    site.expect_inside()
    transfer(site.namespace, site.world, site.peer.inner, seconds=1)
    # Packets for an address that no peer has.
    site.namespace.ip("route", "add", "203.0.113.77/32", "dev", "tun0")
    site.namespace.ping("203.0.113.77")

    def same() -> "Metrics | None":
        """A reading between two equal answers of wg: nothing came or went meanwhile."""
        shown = site.instance.wg("transfer"), site.instance.wg("latest-handshakes")
        found = scrape(site.namespace)
        return found if shown == (site.instance.wg("transfer"), site.instance.wg("latest-handshakes")) else None

    found = wait_until(same, "a moment without traffic", 10)
    found.expect_not_before(earlier)
    received, sent = (int(word) for word in site.instance.wg("transfer").split()[1:])
    expect_equal([found.value(name, peer="1") for name in (RECEIVED, SENT)], [received, sent], "the bytes")
    expect(sent > 1 << 20, f"only {sent} bytes were sent")
    expect_equal(str(int(found.value(HANDSHAKE, peer="1"))), site.instance.wg("latest-handshakes").split()[1],
                 "the time of the handshake")
    expect(abs(time.time() - found.value(HANDSHAKE, peer="1")) < 120, "the handshake was at another time")
    expect_equal(found.value("sluice_tunnel_connected"), 1, "whether it is up")
    expect(_reasons(found)["no_peer"] >= 1, f"the packets for nobody are not counted: {_reasons(found)}")
    expect_equal({reason: count for reason, count in _reasons(found).items() if count},
                 {_snake(reason): count for reason, count in site.instance.ask()["drops"].items()}, "the drops")
    for hidden in (site.peer.own_keys.public, site.peer.keys.public, ENDPOINT, INSIDE, site.peer.inner, "tun0"):
        expect(hidden not in found.text, f"the metrics have {hidden} in them")
    # Another peer comes behind the one that there is.
    site.machine.run("wg", "set", "tun0", "peer", KeyPair.generate().public, "allowed-ips", "10.66.0.0/16")
    later = scrape(site.namespace, ("::1", 9153))
    later.expect_not_before(found)
    expect_equal(later.labels(RECEIVED, "peer"), {"1", "2"}, "the peers")
    site.instance.stop()
    site.machine.expect_state(before, "after a tunnel with metrics")


def _snake(text: str) -> str:
    """`noPeer` as `no_peer`; the only capital letters in a row are those of TUN and MAC."""
    for word in ("TUN", "MAC"):
        text = text.replace(word, word.capitalize())
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in text)


@check("metrics.both", "with a tunnel and a DNS proxy the metrics have both; a lost path shows; SIGHUP takes them away")
def both(testbed: DaemonTestbed) -> None:
    site = Site(testbed)
    testbed.enter(NameServer(site.world, site.peer.inner, {"www.example.net": ["203.0.113.33"]}))
    dns = f'dns: {{ upstreams: [{{ name: "inside", url: "udp://{site.peer.inner}" }}], queryLog: "full" }}, '
    site.prepare(SPLIT, more=METRICS + dns)
    site.instance.start()
    site.expect_inside()
    for _ in range(3):
        expect_equal(ask(site.namespace, INSIDE), ["203.0.113.33"], "the answer about the name")
    found = scrape(site.namespace)
    expect_equal([found.value("sluice_dns_queries_total", transport="udp", result=result)
                  for result in ("forwarded", "cached")], [1, 2], "the queries")
    expect_equal(found.value("sluice_dns_upstream_answers_total", upstream="inside", transport="udp"), 1, "the answers")
    expect(found.value(SENT, peer="1") > 0, "nothing was sent")
    # What came out of the TUN device is in the log of queries as such.
    shown = site.instance.sluice("status", "--queries", "--config", site.instance.configuration).stdout.splitlines()
    words = [line.split()[1:7] for line in shown]
    client = words[0][1]
    expect_equal(words, [["tunnel", client, "www.example.net.", "A", "NOERROR", result]
                         for result in ("forwarded", "cached", "cached")], "the log of queries")
    expect(client == "10.8.0.2", f"the client is {client}")
    site.namespace.ip("link", "set", "under", "down")
    wait_until(lambda: scrape(site.namespace).value("sluice_tunnel_connected") == 0, "the lost path being told", 30)
    site.namespace.ip("link", "set", "under", "up")
    site.default_routes("under", LAN, LAN6, families=("-4",))
    wait_until(lambda: scrape(site.namespace).value("sluice_tunnel_connected") == 1, "the path being back", 30)
    site.instance.write(more=dns)
    site.instance.reload()
    try:
        connect(site.namespace).close()
    except CheckFailure:
        pass
    else:
        raise CheckFailure(f"somebody still listens at {ADDRESS}")
    site.instance.stop()
