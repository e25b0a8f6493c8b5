#!/usr/bin/env python3
"""The `runs` and `export` channels: who sees what, and how one comes back."""
import contextlib
import os
import sqlite3

from lib import check, equal, main, refused, test
from lib.plugins import Lab
from lib.sse import Refusal

TERMINAL = ("succeeded", "failed", "canceled", "timeout")


def until_end(stream, run_id):
    events = stream.until(lambda e: e.data["run_id"] == run_id and e.data["status"] in TERMINAL)
    return [e for e in events if e.data["run_id"] == run_id]


@test("the_runs_channel_tells_every_status_and_the_last_value",
      "RCH-01 RCH-04 RCH-06 RCH-07 RCH-08 MIG-04 PERF-01 PLUG-03 PLUG-08 RUN-22")
def deltas():
    with Lab() as s:
        with s.channel("runs") as ch:
            run_id = s.begin("burst", {"n": 3000, "file": s.file("gate")})
            seen = ch.until(lambda e: e.data["stage"] == "resting")
            equal(seen[-1].data["progress"], 2999 / 3000, "the last value, without waiting for more")
            s.open_gate()
            seen += until_end(ch, run_id)
        equal({e.name for e in seen}, {"runs"})
        data = [e.data for e in seen]
        equal((data[0]["op"], {d["op"] for d in data[1:]}), ("add", {"change"}))
        for d in data:
            equal(d["run_id"], run_id)
            check(isinstance(d["updated_at"], float) and "progress" in d, d)
        values = [d["progress"] for d in data if d["progress"] is not None]
        equal(values, sorted(values))
        span = data[-2]["updated_at"] - data[0]["updated_at"]
        check(len(data) <= span / 0.1 + 4, "more than one each 100 ms", len(data), span)
        equal((data[-1]["status"], data[-1]["progress"]), ("succeeded", 1))


@test("a_channel_of_a_run_that_is_not_there_is_refused", "")
def unknown():
    with Lab() as s:
        for name in ("runs", "export"):
            a = s.http.get(f"/channels/{name}?run_id=nope")
            refused(a, 404, "NOT_FOUND")
            equal(a.json["detail"], "no run nope")
        for path in ("/runs/nope", "/api/runs/nope", "/runs/nope/export", "/api/runs/nope/stream"):
            equal(s.http.get(path).json["detail"], "no run nope")
        for path in ("/runs/nope/cancel", "/runs/nope/retry"):
            equal(s.http.post(path, {}).json["detail"], "no run nope")
        equal(s.http.get("/api/sessions/nope/events").json["detail"], "no session nope")
        wrong = s.http.send("GET", "/runs", token=False, headers={"Authorization": "Bearer x"})
        check("not one of this server" in wrong.json["detail"], wrong.body)
        none = s.http.send("GET", "/runs", token=False)
        check("send" in none.json["detail"], none.body)


@test("notices_agree_with_the_record", "RCH-04 RUN-44")
def agree():
    with Lab() as s:
        with s.channel("runs") as ch:
            run_id = s.begin("gate", {"file": s.file("gate")})
            ch.until(lambda e: e.data["run_id"] == run_id and e.data["progress"] == 0.5)
            s.open_gate()
            last = until_end(ch, run_id)[-1].data
        r = s.get(run_id)
        for key in ("status", "stage", "progress", "message", "updated_at", "engine_status", "attempt"):
            equal(last[key], r[key], key)
        equal(r["stage"], None, "it named none")
        run_id = s.begin("burst", {"n": 3, "file": s.file_that_exists()})
        r = s.done(run_id)
        equal((r["progress"], r["step"], r["step_total"], r["eta_seconds"]), (1, 2, 3, None), "what was reported stays")
        r = s.play("echo", {"say": 1})
        equal((r["status"], r["progress"]), ("succeeded", None), "never reported")


@test("only_success_sets_reported_progress_to_one", "RUN-44")
def whole_progress():
    with Lab() as s:
        def begin():
            run_id = s.begin("gate", {"file": s.file("gate")})
            s.until(run_id, lambda r: r["progress"] == 0.5)
            return run_id
        stopped = begin()
        s.stop_run(stopped)
        equal(s.done(stopped)["progress"], 0.5, "it was half done")
        good, silent = begin(), s.begin("echo", {"say": 1})
        s.done(silent)
        with s.channel("runs") as ch:
            s.open_gate()
            last = until_end(ch, good)[-1].data
        want = {stopped: ("canceled", 0.5), good: ("succeeded", 1), silent: ("succeeded", None)}
        equal((last["status"], last["progress"]), want[good])
        for _ in range(2):  # also as the log has it
            rows = {r["run_id"]: (r["status"], r["progress"]) for r in s.http.get("/runs").json["runs"]}
            equal(rows, want)
            equal({run_id: (s.get(run_id)["status"], s.get(run_id)["progress"]) for run_id in want}, want)
            s.restart()


@test("items_are_followed_from_one_that_is_known", "RCH-08")
def after_item():
    with Lab() as s:
        run_id = s.begin("many", {"n": 700})
        s.done(run_id)
        ids = [i["export_item_id"] for i in s.items(run_id, limit=2000)["items"]]
        for at in (0, 350, 699):
            with s.channel("export", run_id=run_id, after=ids[at]) as ch:
                equal([e.data["export_item_id"] for e in ch], ids[at + 1:])
        try:
            s.channel("export", run_id=run_id, after="unknown-item")
            check(False, "an unknown item is no cursor")
        except Refusal as r:
            equal(r.status, 400)


@test("filters_of_the_runs_channel", "RCH-03 RCH-01")
def filters():
    with Lab() as s:
        readers = {name: s.channel("runs", **query) for name, query in {
            "task": {"task_id": "t-1"}, "plugin": {"plugin_id": "uar.agent"},
            "status": {"status": "failed"}, "all": {}}.items()}
        a = s.begin("echo", {"say": 1}, task_id="t-1")
        b = s.begin("fails", task_id="t-2")
        for run_id in (a, b):
            s.done(run_id)
        c = s.create("echo", "hello")
        s.events(c)
        equal({e.data["run_id"] for e in until_end(readers["task"], a)}, {a})
        equal({e.data["run_id"] for e in until_end(readers["plugin"], c)}, {c})
        equal([e.data["run_id"] for e in until_end(readers["status"], b)], [b])
        seen = readers["all"].until(lambda e: e.data["run_id"] == c and
                                    e.data["status"] == "succeeded")
        equal({e.data["run_id"] for e in seen}, {a, b, c})
        with s.channel("runs", run_id=b, after=seen[0].id) as ch:
            equal({e.data["run_id"] for e in until_end(ch, b)}, {b})
        for reader in readers.values():
            reader.close()
        try:
            s.channel("runs", status="sleeping")
            check(False, "accepted")
        except Refusal as r:
            refused(r, 400, "VALIDATION_ERROR", "?status")
            for word in ("queued", "running", "cancel_requested", "failed", "canceled", "waiting"):
                check(word in r.body.decode(), r.body)


@test("who_waits_is_told_to_those_who_look_for_it", "RCH-03")
def waiting():
    with Lab() as s:
        with s.channel("runs", status="waiting") as ch:
            done = s.create("echo", "asks nobody")
            s.events(done)
            run_id = s.create("tools", 'tool fs.write {"path":"a","text":"x"}')
            e = ch.until(lambda e: True)[-1]
            equal((e.data["run_id"], e.data["status"], e.data["engine_status"]),
                  (run_id, "running", "waiting_permission"))
            equal([r["run_id"] for r in s.http.get("/runs?status=waiting").json["runs"]], [run_id])
            s.cancel(run_id)
            s.finish(run_id)
        refused(s.http.get("/runs?status=sleeping"), 400, "VALIDATION_ERROR", "?status")


@test("a_reader_of_a_channel_comes_back_where_it_was", "RCH-02 EXP-13 EXP-19")
def resume():
    with Lab() as s:
        with s.channel("runs") as ch:
            a = s.begin("echo", {"say": 1})
            seen = until_end(ch, a)
        b = s.begin("echo", {"say": 2})
        s.done(b)
        with s.channel("runs", header=seen[-1].id) as ch:
            equal({e.data["run_id"] for e in until_end(ch, b)}, {b}, "what was missed, no more")
        equal(s.get(b)["status"], "succeeded", "the record is the truth")
        for cursor in ("nonsense", "0-1", "xyzxyzxy-1", seen[-1].id.split("-")[0] + "-999999"):
            for name in ("runs", "export")[:1 if cursor.endswith("-999999") else 2]:  # one of runs
                try:
                    s.channel(name, header=cursor)
                    check(False, "accepted", cursor)
                except Refusal as r:
                    refused(r, 400, "VALIDATION_ERROR")


@test("a_resumed_channel_still_says_that_a_run_is_new", "RCH-02 RCH-05")
def resumed_add():
    with Lab() as s:
        with s.channel("runs") as ch:
            before = until_end(ch, s.begin("echo", {"say": 1}))[-1].id
        ids = [s.begin("burst", {"n": 50, "file": s.file_that_exists()}) for _ in range(3)]
        for run_id in ids:
            s.done(run_id)
        over = set()
        with s.channel("runs", header=before) as ch:
            seen = ch.until(lambda e: e.data["status"] == "succeeded" and over.add(e.data["run_id"]) or len(over) == 3)
        for run_id in ids:
            ops = [e.data["op"] for e in seen if e.data["run_id"] == run_id]
            equal((ops[0], set(ops[1:])), ("add", {"change"}), run_id)


@test("a_cursor_of_before_a_restart_is_told_to_resync_and_goes_on", "RCH-02")
def resync():
    with Lab() as s:
        with s.channel("runs") as ch:
            old = until_end(ch, s.begin("echo", {"say": 1}))[-1].id
        s.restart()
        for name in ("runs", "export"):
            with s.channel(name, header=old) as ch:
                first = ch.until(lambda e: e.id)
                equal((first[0].name, first[0].data["code"]), ("resync", "RESYNC"))
                equal((first[0].data["requested"], first[0].data["used"]), (old, first[-1].id))
                first = first[-1]
                run_id = s.begin("many", {"n": 1})
                e = ch.until(lambda e: True)[-1]
                equal((e.name, e.data["run_id"]), (name, run_id), "what is new follows")
            s.done(run_id)
            with s.channel(name, header=first.id) as ch:  # as a browser comes back
                e = ch.until(lambda e: True)[-1]
                equal((e.name, e.data["run_id"]), (name, run_id))


@test("a_reader_of_one_run_that_resyncs_reads_no_other_run", "RCH-02 RCH-03")
def resync_of_one():
    with Lab() as s:
        with s.channel("runs") as ch:
            over = s.begin("echo", {"say": 1})
            old = until_end(ch, over)[-1].id
        run_id = s.begin("gate", {"file": s.file("gate")})
        s.stop()
        with contextlib.closing(sqlite3.connect(os.path.join(s.data, "uar.db"))) as db, db:
            db.execute("UPDATE runs SET attempt = 7 WHERE run_id = ?", (over,))  # not what its checksum says
        s.start()
        with s.channel("runs", header=old, run_id=run_id) as ch:
            seen = ch.until(lambda e: e.id)
            equal([e.name for e in seen], ["resync", "snapshot", "resynced"])
            equal(seen[1].data["run_id"], run_id)
        with s.channel("runs", header=old) as ch:
            equal(ch.all()[-1].name, "lagged", "the damaged row is seen by a reader of all runs")
        s.open_gate()


@test("the_channel_of_a_run_that_is_over_shows_its_state_and_ends", "RCH-03 RCH-04")
def ended_run():
    with Lab() as s:
        with s.channel("runs") as ch:
            run_id = s.begin("burst", {"n": 3, "file": s.file_that_exists()}, task_id="t")
            last = until_end(ch, run_id)[-1]
        r = s.get(run_id)
        for _ in range(2):
            with s.channel("runs", run_id=run_id) as ch:
                seen = ch.all()
            equal([(e.name, e.data) for e in seen], [("runs", {**last.data, "op": "change"})])
            equal((seen[0].data["status"], seen[0].data["progress"]), (r["status"], r["progress"]))
            with s.channel("runs", run_id=run_id, status="failed") as ch:
                equal(ch.all(), [], "another status is asked for")
            s.restart()


@test("the_export_channel_tells_of_items_and_never_misses_one",
      "EXP-01 EXP-06 EXP-07 EXP-08 EXP-12 MIG-04")
def exports():
    with Lab() as s:
        everything = s.channel("export")
        run_id = s.begin("many", {"n": 300})
        with s.channel("export", run_id=run_id) as ch:
            seen = ch.all()
        items = s.items(run_id, limit=2000)["items"]
        equal([e.data["export_item_id"] for e in seen], [i["export_item_id"] for i in items])
        equal({e.name for e in seen}, {"export"})
        for e in seen:
            check("text" not in e.data and len(e.text) < 600, "ids and metadata alone", e.text)
        with s.channel("export", run_id=run_id, after=seen[99].id) as ch:
            equal([e.key() for e in ch.all()], [e.key() for e in seen[100:]])
        s.restart()
        with s.channel("export", run_id=run_id) as ch:
            equal([e.key() for e in ch.all()], [e.key() for e in seen], "after a restart")
        try:
            s.channel("export", run_id="nobody")
            check(False, "accepted")
        except Refusal as r:
            refused(r, 404, "NOT_FOUND")
        got = [e.data for e in everything]
        check([d["run_id"] for d in got] == [run_id] * len(got) and len(got) <= 300, len(got))


main()
