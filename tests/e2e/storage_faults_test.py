#!/usr/bin/env python3
"""What an answer means when the disk fails while something is written."""
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from lib import Server, check, equal, main, refused, run_uar, test
from lib.check import Skip
from lib.server import ROOT

FAIL_SYNC = [sys.executable, os.path.join(ROOT, "tests", "lib", "fail_sync.py")]


def create(s, key):
    return s.http.post("/api/runs", {"agent_id": "echo", "inputs": {"message": key}, "idempotency_key": key})


def runs_of(s):
    return [r["run_id"] for r in s.http.get("/api/runs?limit=100").json["runs"]]


def repeat_after_restart(s, keys):
    """The keys of creates without a known outcome: each makes one run, however often it is sent."""
    s.start()
    first = [create(s, key) for key in keys]
    for a in first:
        check(a.status in (200, 202), a.status, a.body)
    again = [create(s, key) for key in keys]
    equal([a.json["run_id"] for a in again], [a.json["run_id"] for a in first])
    for a in first:
        equal(s.finish(a.json["run_id"])["status"], "succeeded")
    return [a.json["run_id"] for a in first]


@test("a_create_whose_sync_fails_has_no_known_outcome", "")
def sync_fails():
    with Server(start=False) as s:
        switch = os.path.join(s.root, "fail")
        if subprocess.run([*FAIL_SYNC, "/bin/true"], env={**os.environ, "FAIL_SYNC": switch}).returncode:
            raise Skip("no seccomp listener here")
        s.under, s.env = FAIL_SYNC, {"FAIL_SYNC": switch}
        s.start()
        before = s.create("echo", "before")
        equal(s.finish(before)["status"], "succeeded")
        open(switch, "w").close()
        problem = refused(create(s, "k"), 500, "OUTCOME_UNKNOWN")
        check("same idempotency key" in problem["detail"], problem)
        equal(s.wait(), 1, "a supervisor starts it again")
        check("store.broken" in s.log(), s.log())
        os.unlink(switch)
        made, = repeat_after_restart(s, ["k"])
        equal(sorted(runs_of(s)), sorted([before, made]), "the row was in the log, and is one run")


@test("a_create_that_meets_a_removed_log_has_no_known_outcome", "")
def log_removed():
    with Server() as s:
        before = s.create("echo", "before")
        equal(s.finish(before)["status"], "succeeded")
        os.unlink(os.path.join(s.data, "uar.db-wal"))
        refused(create(s, "k"), 500, "OUTCOME_UNKNOWN")
        equal(s.wait(), 1)
        equal(run_uar("check", "--data", s.data).returncode, 0)
        made, = repeat_after_restart(s, ["k"])
        equal(sorted(runs_of(s)), sorted([before, made]))


@test("only_writes_of_the_failed_commit_have_no_known_outcome", "")
def many_at_once():
    """Of many creates at the moment of the failure each is acknowledged, refused, or of unknown outcome.
    What was refused is not there after the restart."""
    keys = [f"k{n}" for n in range(40)]
    with Server() as s, ThreadPoolExecutor(8) as pool:
        def attempt(key):
            try:
                a = create(s, key)
            except OSError:
                return None  # closed without an answer
            return a
        answers = list(pool.map(attempt, keys[:20]))
        os.unlink(os.path.join(s.data, "uar.db-wal"))
        answers += list(pool.map(attempt, keys[20:]))
        equal(s.wait(), 1)
        s.start()
        there = set(runs_of(s))
        acked = {a.json["run_id"] for a in answers if a and a.status == 202}
        check(acked <= there, "acknowledged and lost")
        unknown = sum(1 for a in answers if a is None or a.status == 500)
        check(len(there) - len(acked) <= unknown, len(there), len(acked), unknown)
        for a in answers:
            if a and a.status not in (202, 503):
                refused(a, 500, "OUTCOME_UNKNOWN")


main()
