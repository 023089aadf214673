"""One connection to a configuration socket that sends exactly the bytes it is told to, and reads replies one by one."""

import time
from typing import Optional, Union

import uapi
from waiting import expect, expect_equal, pause

Bytes = Union[str, bytes]


class UAPIConnection:
    """A connection as a context manager; `path` is the socket's."""

    def __init__(self, path: str, seconds: float = 20.0):
        """Connects; each read and write may take `seconds`."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                self.socket = uapi.connect(path, seconds)
                return
            except BlockingIOError:
                # Its queue is full: a socket with a time limit does not wait for that by itself.
                if time.monotonic() >= deadline:
                    raise
                pause(0.005)

    def __enter__(self) -> "UAPIConnection":
        return self

    def __exit__(self, *exception) -> None:
        self.socket.close()

    def send(self, data: Bytes) -> None:
        """Sends bytes as they are."""
        self.socket.sendall(data.encode() if isinstance(data, str) else data)

    def send_byte_by_byte(self, data: Bytes) -> None:
        """Sends each byte in a write of its own."""
        for byte in data.encode() if isinstance(data, str) else data:
            self.socket.sendall(bytes([byte]))

    def receive(self) -> uapi.Reply:
        """The next whole reply."""
        return uapi.read_reply(self.socket)

    def receive_or_none(self) -> Optional[uapi.Reply]:
        """The next whole reply, or None when the daemon closes the connection instead."""
        try:
            return self.receive()
        except (uapi.MalformedReply, ConnectionError):
            return None

    def get(self) -> uapi.Reply:
        """One get operation."""
        self.send("get=1\n\n")
        return self.receive()

    def set(self, *lines: str) -> uapi.Reply:
        """One set operation with these lines."""
        self.send("set=1\n" + "".join(line + "\n" for line in lines) + "\n")
        return self.receive()


def set_errno(path: str, raw_lines: bytes, seconds: float = 20.0) -> Optional[int]:
    """The errno that answers a set of raw bytes, or None when the daemon closes the connection instead.

    `raw_lines` ends with a line's end; the blank line is added.
    """
    with UAPIConnection(path, seconds) as connection:
        try:
            connection.send(b"set=1\n" + raw_lines + b"\n")
        except (BrokenPipeError, ConnectionResetError):
            pass  # Answered before everything was read; the answer may still be there.
        reply = connection.receive_or_none()
        return None if reply is None else reply.errno


def apply(path: str, *lines: str) -> None:
    """A set that must be accepted."""
    first = lines[0] if lines else ""
    expect_equal(uapi.set(path, *lines).errno, 0, f"errno of a set of {len(lines)} good lines ({first}…)")


def state(path: str) -> "State":
    """What get says, for looking things up."""
    reply = uapi.get(path)
    expect_equal(reply.errno, 0, "errno of get")
    return State(reply)


class State:
    """The device's keys and the peers of one get reply, each peer as a dictionary with its allowed IPs as a list."""

    def __init__(self, reply: uapi.Reply):
        self.device = reply.device
        self.peers = []
        for lines in reply.peers:
            peer = {"allowed_ip": []}
            for key, value in lines:
                if key == "allowed_ip":
                    peer["allowed_ip"].append(value)
                else:
                    expect(key not in peer, f"get lists {key} twice for a peer")
                    peer[key] = value
            self.peers.append(peer)

    @property
    def public_keys(self) -> "list[str]":
        """The peers' public keys in hexadecimal, in the order listed."""
        return [peer["public_key"] for peer in self.peers]

    @property
    def handshake_times(self) -> "dict[str, str]":
        """When each peer's latest handshake was, to the nanosecond, by public key."""
        return {peer["public_key"]: f'{peer["last_handshake_time_sec"]}.{int(peer["last_handshake_time_nsec"]):09}'
                for peer in self.peers}

    def peer(self, public_key: str) -> dict:
        """The one peer with that key."""
        found = [peer for peer in self.peers if peer["public_key"] == public_key]
        expect_equal(len(found), 1, f"the number of peers listed with key {public_key[:8]}…")
        return found[0]
