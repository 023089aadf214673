"""Cookie replies: sealing as a responder under load, opening as an initiator."""

import os

from .messages import CookieReply
from .primitives import hash_, xopen, xseal

LABEL_COOKIE = b"cookie--"


def cookie_key(responder_public):
    return hash_(LABEL_COOKIE, responder_public)


def seal_cookie_reply(responder_public, receiver, cookie, mac1, nonce=None):
    """A cookie reply to the message whose sender index is `receiver` and whose first MAC is `mac1`."""
    nonce = nonce or os.urandom(24)
    return CookieReply(receiver, nonce, xseal(cookie_key(responder_public), nonce, cookie, mac1))


def open_cookie_reply(responder_public, reply, mac1):
    """The cookie inside; raises AuthenticationFailure unless it answers the message with that first MAC."""
    return xopen(cookie_key(responder_public), reply.nonce, reply.encrypted_cookie, mac1)
