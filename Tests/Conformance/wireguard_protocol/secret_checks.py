"""N2, W4 and the rows on secrets: what must be gone from memory and must never be in the log."""

import base64
import os

from scripted_peer import KeyPair, Initiation
from scripted_peer.primitives import diffie_hellman
from waiting import wait_until

from . import memory
from .registry import check, require


def _session_keys(session, name="session"):
    return {f"{name} sending key": session.receiving_key, f"{name} receiving key": session.sending_key}


def _require_gone(rig, secrets, why):
    """Within a moment none of the secrets is in the daemon's memory."""
    found = {}

    def gone():
        nonlocal found
        found = memory.find(rig.daemon.pid, secrets)
        return not found

    try:
        wait_until(gone, "secrets leaving the memory", 1.5, 0.1)
    except Exception:
        places = "; ".join(f"{name} in {', '.join(sorted(set(where)))}" for name, where in found.items())
        require(False, f"still in memory {why}: {places}")


def _require_scan_works(rig):
    found = memory.find(rig.daemon.pid, {"private key": rig.keys.private})
    require("private key" in found, "the private key in use is not found in memory: the scan proves nothing")


@check("N2", "chaining key and hash of a handshake are wiped once its session stands, as responder")
def handshake_is_wiped_as_responder(rig):
    peer = rig.peer()
    session = peer.connect()
    rig.verify(peer, session)
    _require_scan_works(rig)
    _require_gone(rig, {"chaining key": session.handshake.chain, "hash": session.handshake.hash},
                  "after the session was derived")


@check("N2", "chaining key and hash of a handshake are wiped once its session stands, as initiator")
def handshake_is_wiped_as_initiator(rig):
    peer = rig.peer()
    rig.stimulate(peer)
    handshake = peer.expect_initiation(2)
    session = peer.answer(handshake)
    peer.expect_data(session, 2)
    rig.verify(peer, session)
    _require_scan_works(rig)
    _require_gone(rig, {
        "chaining key": handshake.final_chain, "hash": handshake.final_hash,
        "chaining key of the initiation": handshake.chain, "hash of the initiation": handshake.hash,
    }, "after the session was derived")


@check("W4", "a removed peer's keys are gone from memory: sessions, PSK, static-static secret")
def removed_peer(rig):
    preshared = os.urandom(32)
    peer = rig.peer(preshared=preshared)
    first = peer.connect()
    rig.verify(peer, first)
    rig.pause(0.05)
    second = peer.connect()
    rig.verify(peer, second)
    rig.pause(0.05)
    third = peer.initiate()
    _require_scan_works(rig)
    rig.remove(peer)
    secrets = {**_session_keys(first, "first session's"), **_session_keys(second, "second session's"),
               **_session_keys(third, "unconfirmed session's"), "PSK": preshared,
               "static-static secret": diffie_hellman(peer.keys.private, rig.public)}
    _require_gone(rig, secrets, "after the peer was removed")


@check("W4", "replacing all peers wipes those that go")
def replaced_peers(rig):
    preshared = os.urandom(32)
    peer = rig.peer(preshared=preshared)
    session = peer.connect()
    rig.verify(peer, session)
    _require_scan_works(rig)
    rig.set("replace_peers=true")
    _require_gone(rig, {**_session_keys(session), "PSK": preshared}, "after replace_peers")


@check("W4", "a changed private key is gone from memory, with every session and shared secret made with it")
def changed_private_key(rig):
    peer = rig.peer()
    session = peer.connect()
    rig.verify(peer, session)
    _require_scan_works(rig)
    secrets = {**_session_keys(session), "private key": rig.keys.private,
               "static-static secret": diffie_hellman(peer.keys.private, rig.public)}
    rig.set_private_key(KeyPair())
    _require_gone(rig, secrets, "after the private key was changed")


@check("W4", "a changed PSK is gone from memory")
def changed_psk(rig):
    preshared = os.urandom(32)
    peer = rig.peer(preshared=preshared)
    rig.verify(peer, peer.connect())
    _require_scan_works(rig)
    rig.set_preshared(peer, os.urandom(32))
    _require_gone(rig, {"PSK": preshared}, "after it was changed")


@check("W4", "a key that rotation displaced is gone from memory")
def displaced_session(rig):
    peer = rig.peer()
    sessions = []
    for _ in range(3):
        sessions.append(peer.connect())
        rig.verify(peer, sessions[-1])
        rig.pause(0.05)
    _require_scan_works(rig)
    _require_gone(rig, _session_keys(sessions[0]), "although two newer sessions have displaced it")


@check("K6", "the sessions are gone from memory when the link is down")
def link_down(rig):
    peer = rig.peer()
    session = peer.connect()
    rig.verify(peer, session)
    _require_scan_works(rig)
    rig.down()
    wait_until(lambda: not memory.find(rig.daemon.pid, _session_keys(session)),
               "the session's keys leaving the memory after link down", 4, 0.2)


def _log_keeps_secrets(rig):
    preshared = os.urandom(32)
    peer = rig.peer(preshared=preshared)
    own = rig.keys
    first = peer.connect()
    rig.verify(peer, first)
    second_psk = os.urandom(32)
    rig.set_preshared(peer, second_psk)
    peer.preshared = second_psk
    rig.restart_peer(peer, preshared=second_psk)
    rig.stimulate(peer)
    handshake = peer.expect_initiation(7)
    second = peer.answer(handshake)
    peer.expect_data(second, 2)
    rig.verify(peer, second)
    peer.send(Initiation.garbage(rig.public))
    peer.send(bytes(148))
    peer.send(second.seal(b"\x50" + bytes(47)))
    rig.set_private_key(KeyPair())
    for line in ("private_key=zz", f"private_key={own.private.hex()}0", f"preshared_key={preshared.hex()[:-2]}"):
        try:
            rig.set(line, errno=22)
        except Exception:
            pass  # how bad values are refused is another suite's business
    rig.verify(peer, peer.connect(timeout=2))
    secrets = {"private key": own.private, "new private key": rig.keys.private, "PSK": preshared,
               "new PSK": second_psk, **_session_keys(first), **_session_keys(second, "second session's"),
               "chaining key": handshake.final_chain}
    log = rig.log().lower()
    for name, secret in secrets.items():
        # A part is as bad as the whole; sixteen characters cannot be there by chance.
        text = base64.b64encode(secret).decode().lower().rstrip("=")
        for form in (secret.hex()[:24], secret.hex()[-24:], text[:16], text[-16:]):
            require(form not in log, f"the {name} is in the log")


@check("LOG", "no key is in the log, at LOG_LEVEL=verbose", level="verbose")
def verbose_log(rig):
    _log_keeps_secrets(rig)


@check("LOG", "no key is in the log, at LOG_LEVEL=debug", level="debug")
def debug_log(rig):
    _log_keeps_secrets(rig)
