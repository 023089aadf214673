"""The testbed of a check of the DNS proxy: a namespace, a scripted upstream, a daemon, clients."""

import functools
import re
from typing import Iterable, Sequence

import dns_wire
from daemon_testbed import DaemonTestbed
from dns_client import Clients
from dns_daemon import DNSDaemon, Upstreams
from dns_upstream import Upstream
from network_namespace import NetworkNamespace
from waiting import CheckFailure, expect

#: How a daemon reaches the testbed's upstream.
UDP, TCP = "udp://127.0.0.2:53", "tcp://127.0.0.2:53"
#: How clients reach a daemon.
TRANSPORTS = ("udp", "tcp")


class DNSTestbed(Clients, DaemonTestbed):
    """Owns everything a check makes, and removes it.

    When the check itself passed, leaving the block also judges the daemons that still should run: each must run and
    answer, end with status 0 on SIGTERM, leave nothing behind, and have no name in its log that a client asked for.
    """

    def __init__(self, prefix: str, command: Sequence[str], log_directory: "str | None" = None):
        """`prefix` starts the name of everything made; `command` is the program under test."""
        super().__init__(prefix, command, log_directory)
        self._dns_daemons: "list[DNSDaemon]" = []
        self._dns_resigned: "list[DNSDaemon]" = []
        self._asked: "set[bytes]" = set()

    def __exit__(self, kind, *exception) -> None:
        try:
            if kind is None:
                for daemon in self._dns_daemons:
                    if daemon not in self._dns_resigned:
                        self._judge(daemon)
        except BaseException as error:
            super().__exit__(type(error), error, None)
            raise
        super().__exit__(kind, *exception)

    @functools.cached_property
    def network(self) -> NetworkNamespace:
        """The check's own network: loopback only, with all of 127.0.0.0/8 and ::1."""
        return self.namespace("net")

    @functools.cached_property
    def upstream(self) -> Upstream:
        """A scripted server at 127.0.0.2, which listens at port 53 by UDP and TCP and answers everything."""
        upstream = self.enter(Upstream(self.network, "127.0.0.2"))
        upstream.udp()
        upstream.tcp()
        return upstream

    def run(self, upstreams: Upstreams = UDP, rules: "Iterable[str]" = (), **more) -> DNSDaemon:
        """Starts a daemon that listens at 127.0.0.1 and ::1, port 53, and waits until it is ready.

        `upstreams` is a URL, or members of an upstream, or several of those, and the testbed's own when it is left out;
        `rules` are inline ones. `more` are
        members of `dns` such as `timeoutSeconds=1`, and `blocked`, which is `rules.blockedAnswer`.
        """
        if re.search(r"127\.0\.0\.2:53\b", str(upstreams)):
            self.upstream  # It has to listen before.
        daemon = self.configured(upstreams, rules, **more)
        daemon.launch()
        daemon.wait_until_ready()
        return daemon

    def configured(self, upstreams: Upstreams, rules: "Iterable[str]" = (), **more) -> DNSDaemon:
        """A daemon whose configuration is written and that is not started yet: `launch` does that."""
        daemon = DNSDaemon(self, f"daemon{len(self._dns_daemons) + 1}")
        daemon.write(upstreams, rules, **more)
        self._dns_daemons.append(daemon)
        return daemon

    def resign_dns(self, daemon: DNSDaemon) -> None:
        """The check has itself ended this daemon: leaving the testbed no longer judges it."""
        self._dns_resigned.append(daemon)

    def note(self, message: bytes) -> None:
        """Notes that a client sent this: the names in it may be in no log."""
        try:
            self._asked.update(one.name for one in dns_wire.Message(message).questions)
        except CheckFailure:
            pass  # What is malformed has no name to tell.

    def note_names(self, *names: str) -> None:
        """Notes names that other programs asked for."""
        self._asked.update(map(dns_wire.name, names))

    def expect_nothing_asked(self) -> None:
        """The testbed's upstream must not have been asked anything."""
        expect(not self.upstream.received, f"the upstream was asked: {self.upstream.summary()}")

    def expect_asked(self, name: str, count: int, why: str) -> None:
        """The testbed's upstream must have been asked for a name (in lower case) so many times until now."""
        found = len(self.upstream.asked(name))
        expect(found == count, f"the upstream was asked for {name} {found} times, expected {count}: {why}")

    def expect_answering(self) -> None:
        """The daemon must answer a good query by UDP and by TCP. The question is one that needs no upstream."""
        for transport in ("udp", "tcp"):
            for kind, expected in ((dns_wire.A, "127.0.0.1"), (dns_wire.AAAA, "::1")):
                answer = self.ask("localhost", kind, transport)
                expect(answer.code == 0 and answer.addresses == [expected],
                       f"localhost by {transport} is answered with {answer}")

    def expect_no_name(self, daemon: DNSDaemon) -> None:
        """No name that was asked for may be in the daemon's log."""
        log = daemon.log().lower()
        for wire in sorted(self._asked):
            name = dns_wire.text(wire).lower()
            # Single labels may be words of another meaning.
            if "." not in name.strip(".") or len(name) < 6:
                continue
            found = re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", log)
            expect(found is None,
                   f"the log has the name {name}: {found and log[max(0, found.start() - 60):found.end()]!r}")

    def _judge(self, daemon: DNSDaemon) -> None:
        expect(daemon.process is not None, "the check started no daemon")
        daemon.expect_running()
        try:
            self.expect_answering()
        except CheckFailure as failure:
            raise CheckFailure(f"at the end of the check: {failure} ({daemon.tail()})") from None
        daemon.expect_running()
        daemon.stop()
        self.expect_no_name(daemon)
