"""The command line of scripts/conformance-run."""

from named_suite import NamedSuite
from run_checks import registry

main = NamedSuite(
    program="conformance-run",
    description="Judges `sluice run`: what it makes of a machine, and that it takes all of it back.",
    registry=registry, example="full.v4, name", prefix="rc").main
