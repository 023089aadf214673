"""A scripted DNS server for the conformance suite of the DNS proxy: see `Upstream`.

Its modules: `messages` reads queries and writes answers, `faults` spoils answers, `scripts` are what most checks need.
"""

from dns_upstream import faults, messages, scripts
from dns_upstream.connection import Connection
from dns_upstream.listener import Listener
from dns_upstream.messages import Query
from dns_upstream.replies import HTTPReply, Received, Reply, Request, ResetStream, Response, Script
from dns_upstream.upstream import Upstream

__all__ = [
    "Connection", "HTTPReply", "Listener", "Query", "Received", "Reply", "Request", "ResetStream", "Response", "Script",
    "Upstream", "faults", "messages", "scripts",
]
