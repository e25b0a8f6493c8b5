#!/usr/bin/env python3
"""Starts a program whose every openat2 hangs, as it does in a file system that does not answer.

The kernel asks a listener what to do with the call, and nobody listens. It needs no privilege; where it is
refused the exit status is 77.

    python3 tests/lib/hang_openat2.py PROGRAM ARGUMENT...
"""
import ctypes
import os
import platform
import struct
import sys

OPENAT2, SECCOMP = 437, {"x86_64": 317, "aarch64": 277}
NO_NEW_PRIVS, SET_MODE_FILTER, NEW_LISTENER = 38, 1, 8
LOAD, JUMP_EQUAL, RETURN = 0x20, 0x15, 0x06
ASK, ALLOW = 0x7fc00000, 0x7fff0000


class Program(ctypes.Structure):
    _fields_ = [("count", ctypes.c_ushort), ("code", ctypes.c_char_p)]


def main():
    libc = ctypes.CDLL(None, use_errno=True)
    code = b"".join(struct.pack("HBBI", *line) for line in (
        (LOAD, 0, 0, 0), (JUMP_EQUAL, 0, 1, OPENAT2), (RETURN, 0, 0, ASK), (RETURN, 0, 0, ALLOW)))
    program = Program(4, code)
    number = SECCOMP.get(platform.machine(), -1)
    if libc.prctl(NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        sys.exit(77)
    listener = libc.syscall(number, SET_MODE_FILTER, NEW_LISTENER, ctypes.byref(program))
    if listener < 0:
        sys.exit(77)
    os.set_inheritable(listener, True)  # with nobody there the calls would fail
    os.execv(sys.argv[1], sys.argv[1:])


if __name__ == "__main__":
    main()
