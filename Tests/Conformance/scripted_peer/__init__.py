"""A WireGuard peer that does exactly what a test tells it to, right or wrong.

Nothing in here runs on its own: no timers, no threads, no retries. A check chooses every field, counter,
time stamp, address and port, and reads whatever comes back.
"""

from .cookies import cookie_key, open_cookie_reply, seal_cookie_reply
from .handshake import InitiatorHandshake, ResponderHandshake
from .messages import (
    COOKIE_REPLY_SIZE,
    DATA_OVERHEAD,
    INITIATION_SIZE,
    RESPONSE_SIZE,
    CookieReply,
    Data,
    Initiation,
    MessageType,
    Response,
    message_type,
)
from .peer import ScriptedPeer
from .primitives import KeyPair
from .sockets import Datagram, PeerSocket
from .timestamps import TAI64N
from .transport import Session

__all__ = [
    "COOKIE_REPLY_SIZE", "CookieReply", "DATA_OVERHEAD", "Data", "Datagram", "INITIATION_SIZE", "Initiation",
    "InitiatorHandshake", "KeyPair", "MessageType", "PeerSocket", "RESPONSE_SIZE", "ResponderHandshake", "Response",
    "ScriptedPeer", "Session", "TAI64N", "cookie_key", "message_type", "open_cookie_reply", "seal_cookie_reply",
]
