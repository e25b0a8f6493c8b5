#!/usr/bin/env python3
"""kill -9 of the server in the middle of 200 plugin runs: the truth afterwards."""
import os
import shutil
import tempfile

from lib import all_of, check, check_session, equal, main, test, wait_until
from lib.plugins import LAB, Lab
from lib.server import ROOT

SDK = os.path.join(ROOT, "sdk", "python")

RUNS = int(os.environ.get("UAR_TEST_PLUGIN_RUNS", "200"))


def at_work(s, places):
    """The runs that have a place, once all places are taken: nobody leaves before the gate opens."""
    found = [r["run_id"] for r in s.http.get("/runs?status=running&limit=500").json["runs"]]
    check(len(found) <= places, found)
    return found if len(found) == places else None


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
        first = wait_until(lambda: at_work(s, min(16, RUNS)), "every place is taken")
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


@test("two_hundred_runs_at_work_when_the_server_is_killed",
      "RUN-30 RUN-32 EXP-06 EXP-13 MIG-08")
def all_running():
    root = tempfile.mkdtemp(prefix="uar-plugins-")
    shutil.copytree(os.path.join(LAB, "lab"), os.path.join(root, "lab"), symlinks=True)
    change(os.path.join(root, "lab", "plugin.json"), '"concurrency": 16', f'"concurrency": {RUNS}')
    change(os.path.join(root, "lab", "main.py"), "../../../../sdk/python", SDK)
    with Lab(root) as s:
        entries = ("gate", "gate_once", "gate_async")

        def begin(i):
            return entries[i % 3], s.begin(entries[i % 3], {
                "file": s.file("gate"), "mark": s.file("mark"), "export": f"item of {i}"})
        runs = []
        for base in range(0, RUNS, 20):
            runs += all_of([lambda i=i: begin(i) for i in range(base, min(base + 20, RUNS))])
        for _, run_id in runs:
            s.until(run_id, lambda r: r["progress"] == 0.5)
        equal({r["status"] for r in s.http.get("/runs?limit=500").json["runs"]}, {"running"})
        told = {run_id: s.items(run_id)["items"] for _, run_id in runs}
        equal({len(items) for items in told.values()}, {1})
        s.kill()
        s.start()
        s.open_gate()
        for entry, run_id in runs:
            r = s.done(run_id)
            lost = entry == "gate_once"
            equal((r["status"], (r["error"] or {}).get("code")),
                  ("failed", "LOST") if lost else ("succeeded", None), entry)
            items = s.items(run_id)["items"]
            ids = [i["export_item_id"] for i in items]
            equal(items[:1], told[run_id], "what was acknowledged is there")
            equal((len(ids), len(set(ids))), (1, 1) if lost else (3, 3), "nothing is doubled")
            equal(r["result_refs"], [] if lost else [ids[2], ids[1]], "refs of the second try")
            equal(s.marks().count(run_id), 1 if lost else 2)
            equal(check_session(s.session_stream_all(run_id)), {run_id: True})
        listed = [r["run_id"] for r in s.http.get("/runs?limit=500").json["runs"]]
        equal(sorted(listed), sorted(run_id for _, run_id in runs), "each once")


def change(path, old, new):
    with open(path) as f:
        text = f.read()
    check(old in text, path)
    with open(path, "w") as f:
        f.write(text.replace(old, new))


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
