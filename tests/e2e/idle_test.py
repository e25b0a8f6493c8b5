#!/usr/bin/env python3
"""A server that leaves when it has nothing to do, and what brings it back."""
from lib import Server, check, equal, main, test


def gone(s):
    """Waits until the server has left by itself."""
    equal(s.wait(), 0)


@test("leaving_for_idleness_is_called_that", "")
def reason():
    with Server(idle_exit_seconds="100ms") as s:
        gone(s)
        check("reason=idle" in s.log() and "reason=signal" not in s.log(), s.log())


main()
