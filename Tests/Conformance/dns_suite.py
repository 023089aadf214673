"""The command line of scripts/conformance-dns."""

from dns_checks import registry
from dns_testbed import DNSTestbed
from named_suite import NamedSuite

main = NamedSuite(
    program="conformance-dns",
    description="Judges the DNS proxy of `sluice run`: what it answers to clients, and what it asks of servers.",
    registry=registry, example="A1.udp, B2", prefix="dn", testbed=DNSTestbed, measures_time=True).main
