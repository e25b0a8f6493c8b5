#!/usr/bin/env python3
"""Rules of the run protocol that hold whatever plugins, readers and callers do."""
import os
import time

from lib import Server, all_of, check, equal, main, refused, test, wait_until
from lib.plugins import Lab
from lib.server import ROOT, TERMINAL
from lib.sse import Refusal, Stream


@test("items_are_appended_and_never_changed", "EXP-02")
def append_only():
    with Lab() as s:
        run_id = s.begin("rewrites")
        equal(s.done(run_id)["status"], "succeeded")
        items = s.items(run_id)["items"]
        equal([i.get("text") for i in items], ["first", None])
        equal(items[1]["json"], ["INVALID_ARGUMENT", items[0]["export_item_id"]])
        before = s.http.get(f"/runs/{run_id}/export").body
        for path in (f"/runs/{run_id}/export",
                     f"/runs/{run_id}/export/{items[0]['export_item_id']}/content"):
            for method in ("PUT", "PATCH", "DELETE", "POST"):
                equal(s.http.send(method, path, b"{}").status, 405)
        equal(s.http.get(f"/runs/{run_id}/export").body, before)


@test("a_slow_reader_of_runs_skips_what_is_stale", "EXP-09 PERF-05 RCH-06")
def coalesce():
    with Lab() as s:
        slow = s.channel("runs", receive_buffer=4096)
        runs = [s.begin("chatter", {"file": s.file("gate")}, task_id="t" * 128) for _ in range(16)]
        for run_id in runs:  # enough to fill what lies between here and the server
            s.until(run_id, lambda r: (r["step"] or 0) >= 75)
        s.open_gate()
        records = {run_id: s.done(run_id) for run_id in runs}
        slow.hurry()
        last, statuses, count = {}, {}, 0
        for e in slow:
            d, count = e.data, count + 1
            check(last.get(d["run_id"], {"updated_at": 0})["updated_at"] <= d["updated_at"], d)
            last[d["run_id"]] = d
            statuses.setdefault(d["run_id"], []).append(d["status"])
            if len(last) == 16 and all(x["status"] in TERMINAL for x in last.values()):
                break
        slow.close()
        written = sum(1 for run_id in runs for e in s.session_events(run_id)
                      if e.data["type"] == "task.progress")
        check(count < written, "nothing was skipped", count, written)
        for run_id in runs:
            equal(last[run_id]["updated_at"], records[run_id]["updated_at"], "the last is there")
            seen = statuses[run_id]
            check("running" in seen and seen[-1] == "succeeded", seen)


@test("a_reader_that_falls_behind_is_told_and_cut", "RCH-10")
def lagged():
    with Lab() as s:
        slow = s.channel("runs", receive_buffer=4096)
        quick = s.channel("runs")
        n = 0
        pad = "p" * 128  # notices are longer with a long task
        while n < 2400:
            runs = all_of([lambda i=i: s.begin("echo", {"say": i}, task_id=pad) for i in range(50)])
            open_ = set(runs)
            while open_:  # one who keeps up misses no end
                e = quick.next()
                equal(e.name, "runs", e)
                open_ -= {e.data["run_id"]} if e.data["status"] in TERMINAL else set()
            n += 50 * 2  # notices at least
        slow.hurry()
        events = list(slow)
        equal(events[-1].name, "lagged", events[-1])
        equal(events[-1].data["code"], "LAGGED")
        check(slow.ended and not slow.cut, "ended properly")
        last = s.begin("echo", {"say": "more"})
        quick.until(lambda e: e.data["run_id"] == last and e.data["status"] == "succeeded")
        quick.close()


@test("progress_may_be_made_items", "EXP-14 PERF-02")
def progress_items():
    with Lab() as s:
        r = s.play("burst", {"n": 50, "file": s.file_that_exists()})
        equal([i["label"] for i in s.items(r["run_id"])["items"]], [], "not unless asked for")
    with Lab(export_progress="true") as s:
        run_id = s.begin("chatter", {"file": s.file("gate")})
        s.until(run_id, lambda r: (r["step"] or 0) >= 15)
        s.open_gate()
        r = s.done(run_id)
        items = s.items(run_id)["items"]
        told = [i for i in items if i["label"] == "progress"]
        check(len(told) >= 2, items)
        equal({(i["type"], i["category"]) for i in told}, {("json", "system")})
        span = told[-1]["created_at"] - told[0]["created_at"]
        check(len(told) <= span / 0.5 + 2, "more than one each 500 ms", len(told), span)
        for a, b in zip(told, told[1:]):
            check(a["json"]["progress"] < b["json"]["progress"], a, b)
        equal(r["result_refs"], [i["export_item_id"] for i in items if i["label"] == "result"])


@test("a_run_token_admits_to_its_run_alone", "RCH-09")
def run_token():
    with Lab() as s:
        a, b = (s.post_run("gate", {"file": s.file("gate"), "export": "x"}).json for _ in range(2))
        check(a["expires_at"] > time.time() + 3000, a)

        def watch(name, run, token):
            path = f"/channels/{name}?run_id={run}&run_token={token}"
            return Stream(s.url, path, "wrong")

        def denied(name, run, token):
            try:
                watch(name, run, token).close()
                check(False, "admitted")
            except Refusal as r:
                refused(r, 401, "UNAUTHORIZED")
        with watch("runs", a["run_id"], a["run_token"]) as ch:
            s.open_gate()
            seen = ch.until(lambda e: e.data["status"] == "succeeded")
            equal({e.data["run_id"] for e in seen}, {a["run_id"]})
        with watch("export", a["run_id"], a["run_token"]) as ch:
            equal({e.data["run_id"] for e in ch.all()}, {a["run_id"]})
        expires, mac = a["run_token"].split(".")
        late = f"{int(expires) + 1}.{mac}"
        for name in ("runs", "export"):
            for token in (b["run_token"], "", "x", "1." + mac, late, a["run_token"][:-1]):
                denied(name, a["run_id"], token)
        denied("runs", "", a["run_token"])
        item = s.items(a["run_id"])["items"][0]["export_item_id"]
        content = f"/runs/{a['run_id']}/export/{item}/content"
        equal(s.http.get(f"{content}?run_token={a['run_token']}", token=False).body, b"x")
        p = refused(s.http.get(f"{content}?run_token={b['run_token']}", token=False), 401,
                    "UNAUTHORIZED", "?run_token")
        equal(p["detail"], "the run token is not of this run, or has expired")
        for headers in ({}, {"Authorization": "Basic dTpw"}):
            p = refused(s.http.get(content, token=False, headers=headers), 401, "UNAUTHORIZED")
            equal(p["detail"], 'send "Authorization: Bearer TOKEN"')
        for path in (f"/runs/{a['run_id']}?run_token={a['run_token']}",
                     f"/runs/{a['run_id']}/cancel?run_token={a['run_token']}"):
            refused(s.http.get(path, token=False), 401, "UNAUTHORIZED")


@test("the_example_gives_in_to_a_cancel", "PLUG-12 MIG-05")
def example():
    with Server(plugins_dir=os.path.join(ROOT, "examples", "plugins")) as s:
        body = {"plugin_id": "words", "entry_id": "count",
                "args": {"text": "one two three", "seconds_per_word": 60}}
        run_id = s.http.post("/runs", body).json["run_id"]
        wait_until(lambda: s.record(run_id)["progress"] is not None, "it is at work")
        s.cancel(run_id)
        s.events(run_id)
        equal(s.record(run_id)["status"], "canceled")
        check("ignored_cancel" not in s.log(), s.log())


@test("cancel_in_every_state", "RUN-16 RUN-17 RUN-33 RUN-34 RUN-35 RUN-37 RUN-51 MIG-08")
def every_state():
    with Lab() as s:
        args = {"file": s.file("never")}
        running = [s.begin("gate", args) for _ in range(16)]
        for run_id in running:
            s.until(run_id, lambda r: r["progress"] == 0.5)
        queued = s.begin("gate", args)
        equal(s.get(queued)["status"], "queued")
        r = s.stop_run(queued, reason="first")
        equal((r["status"], r["started_at"], r["cancel_reason"]), ("canceled", None, "first"))
        again = s.stop_run(queued, reason="second")
        equal(again, r, "an ended run does not change")
        r = s.stop_run(running[0], reason="first")
        check(r["status"] in ("cancel_requested", "canceled"), r)
        at = r["cancel_requested_at"]
        r = s.stop_run(running[0], reason="second")
        equal((r["cancel_requested_at"], r["cancel_reason"]), (at, "first"), "one cancel")
        ends = [e for e in s.session_events(running[0]) if e.data["type"] == "task.cancelled"]
        equal(len(ends), 1)
        all_of([lambda r=r: s.stop_run(r) for r in running[1:] for _ in range(3)])
        equal({s.done(r)["status"] for r in running}, {"canceled"})
        for entry, status in (("echo", "succeeded"), ("fails", "failed"), ("quick", "timeout")):
            run_id = s.begin(entry, {"say": 1})
            s.done(run_id)
            before = s.http.get("/runs/" + run_id).body
            r = s.stop_run(run_id)
            equal((r["status"], r["cancel_requested"]), (status, False))
            equal(s.http.get("/runs/" + run_id).body, before)


@test("a_stop_may_cancel_what_is_at_work", "RUN-50")
def shutdown():
    with Lab(shutdown="cancel") as s:
        runs = [s.begin(entry, {"file": s.file("never"), "export": "kept"})
                for entry in ("gate", "gate_once", "gate_async")]
        for run_id in runs:
            s.until(run_id, lambda r: r["progress"] == 0.5)
        s.create("demo", "hello")
        with s.channel("runs") as ch:
            equal(s.stop(), 0)
            ended = {e.data["run_id"] for e in ch if e.data["status"] == "canceled"}
        check(ended >= set(runs), "watchers are told first", ended, runs)
        s.start()
        for run_id in runs:
            r = s.get(run_id)
            equal((r["status"], r["cancel_reason"]), ("canceled", "the server is shutting down"))
            equal(len(s.items(run_id)["items"]), 1, "what it had stays")
    with Lab(shutdown="cancel", drain_seconds=0.2) as s:
        run_id = s.begin("late_for_ever")
        s.until(run_id, lambda r: r["progress"] == 0.1)
        equal(s.stop(), 0, "one that does not listen keeps nobody")
        s.start()
        r = s.done(run_id)
        equal(r["status"], "canceled", "and has been cancelled all the same")


@test("idempotent_creates_survive_a_kill_in_their_middle", "RUN-40 RUN-43")
def killed_creates():
    with Lab() as s:
        def post(i):
            try:
                a = s.post_run("echo", {"say": i, "mark": s.file("mark")}, idempotency_key=f"k{i}")
                return a.json["run_id"] if a.status == 202 else None
            except Exception:
                return None  # the server died first

        def attack():
            return all_of([lambda i=i: post(i % 16) for i in range(64)])
        answers = all_of([attack, lambda: wait_until(lambda: len(s.marks()) > 2) and s.kill()])[0]
        s.start()
        wait_until(lambda: s.http.get("/ready").status == 200, "it is recovered")
        told = {}
        for i, run_id in enumerate(answers):
            if run_id:
                equal(told.setdefault(i % 16, run_id), run_id, "one key, one run")
        for i in range(16):
            run_id = post(i)
            check(run_id, "accepted now")
            equal(run_id, told.get(i, run_id), "the same run after the kill")
            check(s.done(run_id)["status"] in TERMINAL)
        keys = [r["idempotency_key"] for r in s.http.get("/runs?limit=500").json["runs"]]
        equal(sorted(keys), sorted(f"k{i}" for i in range(16)), "none was made twice")


main()
