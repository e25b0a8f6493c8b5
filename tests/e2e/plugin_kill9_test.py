#!/usr/bin/env python3
"""kill -9 of the server in the middle of 200 plugin runs: the truth afterwards."""
import os

from lib import all_of, check, check_session, equal, main, test
from lib.plugins import Lab

RUNS = int(os.environ.get("UAR_TEST_PLUGIN_RUNS", "200"))


@test("two_hundred_runs_survive_a_kill_or_say_that_they_did_not", "RUN-30 RUN-32 MIG-08 EXP-13")
def killed():
    with Lab() as s:
        def begin(i):
            entry = ("gate", "gate_once", "gate_async")[i % 3]
            args = {"file": s.file("gate"), "mark": s.file("mark"), "export": f"item of {i}"}
            return entry, s.begin(entry, args, idempotency_key=f"k-{i}")

        runs = []
        for base in range(0, RUNS, 20):
            runs += all_of([lambda i=i: begin(i) for i in range(base, min(base + 20, RUNS))])
        first = [run_id for entry, run_id in runs if s.get(run_id)["status"] == "running"]
        check(0 < len(first) <= 16, first)
        for run_id in first:
            s.until(run_id, lambda r: r["progress"] == 0.5)
        told = {run_id: s.items(run_id)["items"] for run_id in first}
        entries = {run_id: entry for entry, run_id in runs}
        s.kill()
        s.start()
        lost = {r for r in first if entries[r] == "gate_once"}
        for run_id in lost:
            r = s.done(run_id)
            equal((r["status"], r["error"]["code"], r["result_refs"]), ("failed", "LOST", []))
        s.open_gate()
        ended = all_of([lambda r=r: s.done(r) for _, r in runs])
        for r in ended:
            equal(r["status"], "failed" if r["run_id"] in lost else "succeeded", r)
        for run_id, items in told.items():
            now = s.items(run_id)["items"]
            equal(now[:len(items)], items, "what was acknowledged is there")
        marks = s.marks()
        for entry, run_id in runs:
            again = run_id in first and entry != "gate_once"
            check(marks.count(run_id) == (2 if again else 1), entry, run_id, marks.count(run_id))
            equal(check_session(s.session_stream_all(run_id)), {run_id: True})
        again = s.begin("gate", {"file": s.file("gate"), "mark": s.file("mark"),
                                 "export": "item of 0"}, idempotency_key="k-0")
        equal(again, runs[0][1], "the key still names its run")


@test("a_kill_between_items_and_end_leaves_no_refs", "RUN-19 RUN-30")
def between():
    with Lab() as s:
        run_id = s.begin("gate_once", {"file": s.file("gate"), "export": "one"})
        r = s.until(run_id, lambda r: r["progress"] == 0.5)
        equal(r["result_refs"], [])
        s.kill()
        s.start()
        r = s.done(run_id)
        equal((r["status"], r["error"]["code"], r["result_refs"]), ("failed", "LOST", []))
        equal([i["text"] for i in s.items(run_id)["items"]], ["one"])
        kinds = [e.data["type"] for e in s.session_stream_all(run_id)]
        check(kinds.index("task.attempt.failed") < kinds.index("task.lost"), kinds)


main()
