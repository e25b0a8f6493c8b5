#!/usr/bin/env python3
"""Starts a program whose openat2 hangs, as it does in a file system that does not answer; with HANG_CALL=linkat
that call does.

The kernel asks a listener what to do with the call, and nobody listens. With HANG_FIRST=N somebody
does: the first N calls get no answer, later ones are let through. It needs no privilege; where it is
refused the exit status is 77.

    python3 tests/lib/hang_openat2.py PROGRAM ARGUMENT...
"""
import array
import ctypes
import fcntl
import os
import platform
import select
import socket
import struct
import sys

SECCOMP = {"x86_64": 317, "aarch64": 277}
CALLS = {"openat2": {"x86_64": 437, "aarch64": 437}, "linkat": {"x86_64": 265, "aarch64": 37},
         "fsync": {"x86_64": 74, "aarch64": 82}, "fdatasync": {"x86_64": 75, "aarch64": 83}}
NO_NEW_PRIVS, SET_MODE_FILTER, NEW_LISTENER = 38, 1, 8
LOAD, JUMP_EQUAL, RETURN = 0x20, 0x15, 0x06
ASK, ALLOW = 0x7fc00000, 0x7fff0000
RECEIVE, SEND, LET_THROUGH = 0xc0502100, 0xc0182101, 1


class Program(ctypes.Structure):
    _fields_ = [("count", ctypes.c_ushort), ("code", ctypes.c_char_p)]


def number_of(call):
    return CALLS[call].get(platform.machine(), -1)


def listen(*calls):
    """Every such call of this program asks whoever has the descriptor."""
    libc = ctypes.CDLL(None, use_errno=True)
    lines = [(LOAD, 0, 0, 0)]
    for call in calls:
        lines += [(JUMP_EQUAL, 0, 1, number_of(call)), (RETURN, 0, 0, ASK)]
    lines.append((RETURN, 0, 0, ALLOW))
    program = Program(len(lines), b"".join(struct.pack("HBBI", *line) for line in lines))
    number = SECCOMP.get(platform.machine(), -1)
    if libc.prctl(NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        sys.exit(77)
    listener = libc.syscall(number, SET_MODE_FILTER, NEW_LISTENER, ctypes.byref(program))
    if listener < 0:
        sys.exit(77)
    return listener


def decide(listener, verdict):
    """Until nobody is left who could ask. verdict(): None leaves a call without an answer,
    0 lets it through, an error number is its result."""
    poll = select.poll()
    poll.register(listener, select.POLLIN)
    while True:
        if poll.poll()[0][1] & (select.POLLHUP | select.POLLERR):
            return
        question = bytearray(80)
        try:
            fcntl.ioctl(listener, RECEIVE, question)
            error = verdict()
            if error is not None:
                fcntl.ioctl(listener, SEND, struct.pack("QqiI", *struct.unpack_from("Q", question), 0, -error,
                                                        0 if error else LET_THROUGH))
        except OSError:
            continue  # who asked is gone


def hang_first(hangs):
    left = [hangs]

    def verdict():
        left[0] -= 1
        return None if left[0] >= 0 else 0
    return verdict


def leave_to_another(verdict):
    """A process that decides, nobody's child; it gets the descriptor when there is one."""
    here, there = socket.socketpair()
    if os.fork():
        there.close()
        os.wait()
        return here
    here.close()
    if os.fork() == 0:
        os.setsid()
        listener = array.array("i")
        _, control, _, _ = there.recvmsg(1, socket.CMSG_SPACE(4))
        if control:
            listener.frombytes(control[0][2][:4])
            there.close()
            null = os.open(os.devnull, os.O_RDWR)
            for fd in range(3):  # the program's own readers wait for its end
                os.dup2(null, fd)
            decide(listener[0], verdict)
    os._exit(0)


def start(calls, verdict):
    """Becomes the program of the command line. verdict: as decide() says; None: nobody answers."""
    decider = leave_to_another(verdict) if verdict else None
    listener = listen(*calls)
    if decider:
        decider.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [listener]))])
        os.close(listener)
        decider.close()
    else:
        os.set_inheritable(listener, True)  # with nobody there the calls would fail
    os.execv(sys.argv[1], sys.argv[1:])


def main():
    hangs = os.environ.get("HANG_FIRST")
    start([os.environ.get("HANG_CALL", "openat2")], hang_first(int(hangs)) if hangs else None)


if __name__ == "__main__":
    main()
