"""The command line of scripts/conformance-wireguard-daemon."""

from daemon_checks import registry
from named_suite import NamedSuite

main = NamedSuite(
    program="conformance-wireguard-daemon",
    description="Judges a userspace WireGuard daemon as a program: its configuration socket, wg and wg-quick, "
    "its start and end, and bugs that were reported of others. COMMAND IFNAME must start the daemon in the "
    "background, COMMAND -f IFNAME in the foreground.",
    registry=registry, example="U4.values, D2", prefix="dc", subject="COMMAND",
    subject_help="the program under test, for example 'wireguard-go'").main
