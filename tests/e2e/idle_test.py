#!/usr/bin/env python3
"""A server that leaves when it has nothing to do, and what brings it back."""
import json
import os

from lib import Server, check, equal, main, run_uar, test, wait_until


def gone(s):
    """Waits until the server has left by itself."""
    equal(s.wait(), 0)


def left(data):
    """Has the one that a command has started left, too?"""
    with open(os.path.join(data, "server.json")) as f:
        return json.load(f)["url"] == ""


@test("leaving_for_idleness_is_called_that", "")
def reason():
    with Server(idle_exit_seconds="100ms") as s:
        gone(s)
        check("reason=idle" in s.log() and "reason=signal" not in s.log(), s.log())


@test("a_server_comes_back_with_the_settings_it_had", "")
def same_settings():
    with Server(tenant="acme", env={"UAR_USER": "ann"}) as s:
        record = s.finish(s.create())  # its owner alone sees it
        s.restart(idle_exit_seconds="2s")
        gone(s)
        for _ in range(2):  # also what came back
            p = run_uar("runs", "--json", "--data", s.data)
            equal(p.returncode, 0, p.stderr)
            equal([r["run_id"] for r in json.loads(p.stdout)["runs"]], [record["run_id"]])
            wait_until(lambda: left(s.data), "the server to leave again")


@test("a_server_whose_secret_is_gone_does_not_come_back_without_it", "")
def secret():
    with Server(idle_exit_seconds="2s", token="sesame") as s:
        gone(s)
        p = run_uar("runs", "--json", "--data", s.data)
        equal(p.returncode, 1, p.stdout)
        check("given token" in p.stderr and "UAR_TOKEN" in p.stderr, p.stderr)
        check(left(s.data), "a server was started")
        p = run_uar("runs", "--json", "--data", s.data, "--token", "sesame")
        equal((p.returncode, json.loads(p.stdout)["runs"]), (0, []), p.stderr)
        wait_until(lambda: left(s.data), "the server to leave again")


main()
