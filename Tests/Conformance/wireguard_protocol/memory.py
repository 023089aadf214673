"""Looks for secrets in the memory of a daemon.

The search runs as a program of its own, so that the threads of other checks do not wait for it.
"""

import json
import os
import re
import subprocess
import sys

_REGION = re.compile(r"^([0-9a-f]+)-([0-9a-f]+) (\S+) \S+ \S+ \S+\s*(.*)$")
_CHUNK = 1 << 24


def _regions(process_id):
    with open(f"/proc/{process_id}/maps") as maps:
        for line in maps:
            start, end, permissions, name = _REGION.match(line.rstrip()).groups()
            if permissions.startswith("rw") and name not in ("[vvar]", "[vsyscall]"):
                yield int(start, 16), int(end, 16), name or "anonymous memory"


def _processes_of_session(session_id):
    """The processes that the daemon is: all those of the session it was started in."""
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat") as stat:
                fields = stat.read().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == session_id and fields[0] != "Z":
            yield int(name)


def find(session_id, secrets):
    """Where each secret (name → bytes) is found in writable memory, as {name: [place]}; absent ones are left out.

    A secret is found also as hexadecimal text, which is how the configuration protocol carries keys.
    """
    order = json.dumps({"session": session_id, "secrets": {name: value.hex() for name, value in secrets.items()}})
    search = subprocess.run([sys.executable, __file__], input=order, capture_output=True, text=True, check=True)
    return json.loads(search.stdout)


def _search_session(session_id, secrets):
    patterns = []
    for name, secret in secrets.items():
        patterns += [(name, bytes.fromhex(secret)), (f"{name} as text", secret.encode())]
    found = {}
    for process_id in _processes_of_session(session_id):
        _search(process_id, patterns, found)
    return found


def _search(process_id, patterns, found):
    with open(f"/proc/{process_id}/mem", "rb", buffering=0) as memory:
        for start, end, name in _regions(process_id):
            position, tail = start, b""
            while position < end:
                try:
                    memory.seek(position)
                    data = memory.read(min(_CHUNK, end - position))
                except (OSError, ValueError, OverflowError):
                    break
                if not data:
                    break
                window = tail + data
                for label, pattern in patterns:
                    if pattern in window:
                        found.setdefault(label, []).append(name)
                tail = window[-64:]
                position += len(data)


if __name__ == "__main__":
    _order = json.load(sys.stdin)
    json.dump(_search_session(_order["session"], _order["secrets"]), sys.stdout)
