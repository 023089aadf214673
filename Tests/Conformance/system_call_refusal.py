"""Runs a program for which the kernel knows no IPv6 sockets: `python3 system_call_refusal.py COMMAND...`.

A seccomp filter answers socket(AF_INET6, ...) with EAFNOSUPPORT, as a kernel without IPv6 does.
"""

import ctypes
import errno
import os
import platform
import socket
import struct
import sys

#: The words to put before a command.
REFUSE_IPV6_SOCKETS = [sys.executable, os.path.realpath(__file__)]

_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 38, 22, 2
_LOAD_WORD, _JUMP_IF_EQUAL, _RETURN = 0x20, 0x15, 0x06
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
#: The number of socket(2) and the audit architecture, by machine.
_SOCKET_CALL = {"x86_64": (41, 0xC000003E), "aarch64": (198, 0xC00000B7)}


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("instructions", ctypes.c_void_p)]


def _refuse() -> None:
    number, architecture = _SOCKET_CALL[platform.machine()]
    # struct seccomp_data: number at 0, architecture at 4, the arguments from 16 on, eight bytes each.
    code = b"".join(struct.pack("HBBI", *instruction) for instruction in (
        (_LOAD_WORD, 0, 0, 4),
        (_JUMP_IF_EQUAL, 0, 5, architecture),
        (_LOAD_WORD, 0, 0, 0),
        (_JUMP_IF_EQUAL, 0, 3, number),
        (_LOAD_WORD, 0, 0, 16),
        (_JUMP_IF_EQUAL, 0, 1, socket.AF_INET6),
        (_RETURN, 0, 0, _ERRNO | errno.EAFNOSUPPORT),
        (_RETURN, 0, 0, _ALLOW),
    ))
    buffer = ctypes.create_string_buffer(code, len(code))
    program = _Program(len(code) // 8, ctypes.cast(buffer, ctypes.c_void_p))
    libc = ctypes.CDLL(None, use_errno=True)
    for words in ((_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0),
                  (_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0)):
        if libc.prctl(*words) != 0:
            raise OSError(ctypes.get_errno(), "prctl")


if __name__ == "__main__":
    _refuse()
    os.execvp(sys.argv[1], sys.argv[1:])
