#!/usr/bin/env python3
"""Starts a program whose fsync and fdatasync fail with EIO while the file $FAIL_SYNC exists, as
those of a dying disk do. It needs no privilege; where it is refused the exit status is 77.

    FAIL_SYNC=FILE python3 tests/lib/fail_sync.py PROGRAM ARGUMENT...
"""
import errno
import os

from hang_openat2 import start

if __name__ == "__main__":
    switch = os.environ["FAIL_SYNC"]
    start(["fsync", "fdatasync"], lambda: errno.EIO if os.path.exists(switch) else 0)
