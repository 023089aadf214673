"""A scripted DNS server for the conformance suite of the DNS proxy: see `Upstream`.

Its modules: `messages` reads queries and writes answers, `faults` spoils answers, `scripts` are what most checks need,
`certificates` makes what servers show and clients trust.
"""

from dns_upstream import certificates, faults, messages, scripts
from dns_upstream.connection import Connection
from dns_upstream.https import HTTPConnection, HTTPListener
from dns_upstream.listener import Listener
from dns_upstream.messages import Query
from dns_upstream.replies import HTTPReply, Received, Reply, Request, ResetStream, Response, Script
from dns_upstream.tls import SecureConnection, SecureListener
from dns_upstream.upstream import Upstream

__all__ = [
    "Connection", "HTTPConnection", "HTTPListener", "HTTPReply", "Listener", "Query", "Received", "Reply", "Request",
    "ResetStream", "Response", "Script", "SecureConnection", "SecureListener", "Upstream", "certificates", "faults",
    "messages", "scripts",
]
