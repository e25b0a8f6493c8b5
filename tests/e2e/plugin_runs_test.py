#!/usr/bin/env python3
"""Entries of a plugin as runs: created, watched, cancelled, retried, read back."""
import base64
import hashlib
import json
import os
import shutil
from urllib.parse import urlencode

from lib import Server, all_of, check, check_session, equal, main, refused, run_uar, test, text_of, wait_until
from lib.plugins import LAB, Lab
from lib.server import ROOT

FIELDS = {"run_id": str, "plugin_id": str, "entry_id": str, "status": str, "created_at": float,
          "updated_at": float, "root_run_id": str, "attempt": int, "cancel_requested": bool,
          "result_refs": list}
MAYBE = {"task_id": str, "trace_id": str, "idempotency_key": str, "parent_run_id": str,
         "started_at": float, "finished_at": float, "progress": (int, float), "cancel_reason": str,
         "cancel_requested_at": float, "error": dict}


def check_record(r):
    for key, kind in FIELDS.items():
        check(isinstance(r.get(key), kind), key, r)
    for key, kind in MAYBE.items():
        check(key in r and (r[key] is None or isinstance(r[key], kind)), key, r)


@test("an_entry_runs_and_its_record_tells",
      "API-18 API-19 MIG-02 MIG-03 PLUG-01 RUN-11 RUN-23 RUN-24 RUN-27 RUN-29 RUN-44")
def runs():
    with Lab() as s:
        trace = "0123456789abcdef0123456789abcdef"
        run_id = s.begin("echo", {"say": {"a": [1]}}, task_id="task-7", trace_id=trace)
        r = s.done(run_id)
        check_record(r)
        equal((r["run_id"], r["plugin_id"], r["entry_id"]), (run_id, "lab", "echo"))
        equal((r["status"], r["progress"], r["error"]), ("succeeded", None, None))
        equal((r["task_id"], r["trace_id"], r["root_run_id"], r["parent_run_id"], r["attempt"]),
              ("task-7", trace, run_id, None, 1))
        check(r["created_at"] <= r["started_at"] <= r["finished_at"] <= r["updated_at"], r)
        items = s.items(run_id)["items"]
        equal([i["json"] for i in items], [{"a": [1]}])
        equal(r["result_refs"], [items[0]["export_item_id"]])
        equal(items[0]["metadata"], {"trace_id": trace})
        wait_until(lambda: "printed, not protocol" in s.log(), "where prints go")
        equal(check_session(s.session_events(run_id)), {run_id: True})
        refused(s.http.get("/runs/nobody"), 404, "NOT_FOUND")


@test("both_families_of_routes_see_the_same_runs", "API-19 RUN-45 MIG-01")
def families():
    with Lab() as s:
        run_id = s.begin("echo", {"say": "x"})
        s.done(run_id)
        equal(s.http.get("/api/runs/" + run_id).body, s.http.get("/runs/" + run_id).body)
        events = s.events(run_id)
        equal(events[0].data["data"]["agent_id"], "lab:echo")
        equal([e.type for e in events], ["RunStart", "Artifact", "RunDone"])
        agent = s.create("echo", "hello")
        s.events(agent)
        r = s.get(agent)
        equal((r["plugin_id"], r["entry_id"], r["status"]), ("uar.agent", "echo", "succeeded"))
        other = s.begin("echo", {"message": "hi"}, plugin="uar.agent")
        s.done(other)
        equal(s.record(other)["agent_id"], "echo")
        gate = s.begin("gate", {"file": s.file("gate")})
        s.until(gate, lambda r: r["progress"] == 0.5)
        s.cancel(gate)
        equal(s.done(gate)["status"], "canceled")


@test("bad_requests_never_become_runs", "API-18 ERR-05 PLUG-14 RUN-42 RUN-22")
def refusals():
    with Lab() as s:
        ok = {"plugin_id": "lab", "entry_id": "echo", "args": {"say": 1}}
        for gone in ok:
            refused(s.http.post("/runs", {k: v for k, v in ok.items() if k != gone}), 400,
                    "VALIDATION_ERROR", "/" + gone)
        for bad, where in (({"args": []}, "/args"), ({"args": {}}, "/args"),
                           ({"mode": "later"}, "/mode"), ({"extra": 1}, "/extra"),
                           ({"trace_id": "x y"}, "/trace_id"), ({"trace_id": "x" * 129}, "/trace_id"),
                           ({"task_id": ""}, "/task_id"), ({"task_id": "x" * 129}, "/task_id")):
            refused(s.http.post("/runs", {**ok, **bad}), 400, "VALIDATION_ERROR", where)
        refused(s.http.post("/runs", {**ok, "plugin_id": "nobody"}), 404, "NOT_FOUND")
        refused(s.http.post("/runs", {**ok, "entry_id": "nothing"}), 404, "NOT_FOUND")
        equal(s.http.get("/runs").json["runs"], [])


@test("export_items_of_every_type",
      "EXP-01 EXP-03 EXP-04 EXP-10 EXP-13 EXP-16 EXP-17 EXP-20 PLUG-04 PLUG-05 PLUG-06 PLUG-09 "
      "RUN-31 API-22")
def items():
    with Lab() as s:
        run_id = s.begin("items")
        r = s.done(run_id)
        equal(r["status"], "succeeded", r)
        got = s.items(run_id)["items"]
        result = got[-1]
        equal(result["json"], [i["export_item_id"] for i in got[:-1]], "ids were told truthfully")
        equal(r["result_refs"], [result["export_item_id"]] + result["json"])
        equal([i["type"] for i in got], ["text", "url", "binary_url", "binary", "json", "text",
                                         "url", "json"])
        for i in got:
            equal(i["run_id"], run_id)
            check(isinstance(i["created_at"], float) and i["created_at"] >= r["created_at"], i)
        equal((got[0]["text"], got[0]["description"], got[0]["label"], got[0]["metadata"],
               got[0]["category"]), ("hello", "a text", "greeting", {"k": 1}, "user"))
        equal((got[1]["url"], got[2]["binary_url"], got[2]["mime"]),
              ("http://x/y", "http://x/z", "image/png"))
        equal(base64.b64decode(got[3]["binary"]), bytes(range(256)) * 256)
        equal((got[4]["json"], got[4]["category"]), ({"deep": [1, None]}, "system"))
        equal(got[5]["text"], "ä" * 20000)
        equal(got[6]["url"], "artifact://some-artifact")
        kept = s.play("items", {"keep": [0, 2]})
        ids = [i["export_item_id"] for i in s.items(kept["run_id"])["items"]]
        equal(kept["result_refs"], [ids[-1], ids[0], ids[2]], "the ones that were named")
        refused_codes = s.play("refused")
        equal(s.items(refused_codes["run_id"])["items"][-1]["json"],
              ["PAYLOAD_TOO_LARGE", "INVALID_ARGUMENT", "INVALID_ARGUMENT"])
        s.restart()
        equal(s.items(run_id)["items"], got, "after a restart")


def all_refs(s, r):
    """Every id of the result, as a record with a large set links it."""
    equal(r["result_refs_url"].split("/blobs/")[0], "/api/runs/" + r["run_id"])
    a = s.http.get(r["result_refs_url"])
    equal((a.status, a.headers["content-type"].split(";")[0]), (200, "application/json"))
    equal((len(a.json), a.json[:256]), (r["result_ref_count"], r["result_refs"]), "the record has the first ones")
    return a.json


@test("a_result_of_many_items_keeps_every_id", "RUN-29 RUN-30")
def many_refs():
    with Lab() as s:
        few = s.play("many", {"n": 256})
        check(len(few["result_refs"]) == 256 and "result_refs_url" not in few, few)
        whole = s.play("many", {"n": 1000})
        ids = [i["export_item_id"] for i in s.items(whole["run_id"], limit=2000)["items"]]
        equal(all_refs(s, whole), ids)
        kept = s.play("many", {"n": 300, "keep": True})
        ids = [i["export_item_id"] for i in s.items(kept["run_id"], limit=2000)["items"]]
        equal((kept["status"], all_refs(s, kept)), ("succeeded", ids[::-1]), "as keep named them")
        broken = s.play("many", {"n": 257, "keep": True, "fail": True})
        equal((broken["status"], broken["error"]["code"], len(all_refs(s, broken))), ("failed", "PLUGIN_ERROR", 257))
        stopped = s.begin("many", {"n": 257, "keep": True, "wait": True})
        s.until(stopped, lambda r: r["progress"])
        equal(s.get(stopped)["result_refs"], [], "nothing before the end")
        s.stop_run(stopped)
        stopped = s.done(stopped)
        equal((stopped["status"], len(all_refs(s, stopped))), ("canceled", 257))
        equal(check_session(s.session_events(whole["run_id"])), {whole["run_id"]: True})
        s.restart()
        equal(s.get(whole["run_id"]), whole)
        equal(len(all_refs(s, whole)), 1000, "after a restart")


@test("export_items_page_by_page", "API-22 API-23 EXP-18 EXP-19")
def pages():
    with Lab() as s:
        run_id = s.begin("many", {"n": 300})
        s.done(run_id)
        equal(len(s.items(run_id)["items"]), 200)
        whole = s.items(run_id, limit=2000)
        equal(([i["text"] for i in whole["items"]], whole["next_after"]),
              ([f"item {i}" for i in range(300)], None))
        seen, after = [], None
        while True:
            page = s.items(run_id, limit=7, **({"after": after} if after else {}))
            seen += page["items"]
            after = page["next_after"]
            if after is None:
                break
            equal(len(page["items"]), 7)
        equal(seen, whole["items"])
        middle = whole["items"][100]["export_item_id"]
        equal(s.items(run_id, after=middle, limit=3)["items"], whole["items"][101:104])
        for bad in ("after=1", "after=999999", "after=no-such-item", "after=%20", "limit=0",
                    "limit=2001", "limit=x"):
            refused(s.http.get(f"/runs/{run_id}/export?{bad}"), 400, "VALIDATION_ERROR")
        refused(s.http.get("/runs/nobody/export"), 404, "NOT_FOUND")


@test("progress_and_stages_show_while_it_runs",
      "PLUG-02 PLUG-03 PLUG-08 RUN-22 RUN-47 MIG-09 PERF-01")
def progress():
    with Lab() as s:
        run_id = s.begin("burst", {"n": 5000, "file": s.file("gate")})
        r = s.until(run_id, lambda r: r["stage"] == "resting")
        equal((r["status"], r["message"], r["step"], r["step_total"]),
              ("running", "all said", 4999, 5000))
        check(0.999 < r["progress"] < 1, "the last value is there", r)
        s.open_gate()
        r = s.done(run_id)
        equal((r["status"], r["progress"]), ("succeeded", 1))
        reports = [e.data for e in s.session_events(run_id) if e.data["type"] == "task.progress"]
        times = [e["timestamp"] for e in reports]
        check(sum(1 + e["payload"]["coalesced"] for e in reports) == 5001, "none is forgotten")
        span = seconds(times[-1]) - seconds(times[0])
        check(len(times) <= span / 0.1 + 2, "more than one each 100 ms", len(times), span)


def seconds(timestamp):
    h, m, sec = timestamp[11:-1].split(":")
    return int(h) * 3600 + int(m) * 60 + float(sec)


@test("cancel_is_asked_for_and_heard",
      "API-20 PLUG-07 PLUG-10 PLUG-11 PLUG-13 RUN-15 RUN-33 RUN-35 RUN-36 ERR-03 MIG-09")
def cancel():
    with Lab() as s:
        for entry in ("gate", "gate_async"):
            run_id = s.begin(entry, {"file": s.file("never")})
            s.until(run_id, lambda r: r["progress"] == 0.5)
            r = s.stop_run(run_id, reason="changed my mind")
            check(r["status"] in ("cancel_requested", "canceled"), r)
            equal((r["cancel_requested"], r["cancel_reason"]), (True, "changed my mind"))
            check(r["cancel_requested_at"] > 0, r)
            r = s.done(run_id)
            equal((r["status"], r["error"]["code"], r["error"]["message"], r["result_refs"]),
                  ("canceled", "CANCELED", "changed my mind", []))
        check("ignored_cancel" not in s.log())
        equal(len(s.items(run_id)["items"]), 1, "what it exported stays")
        before = s.http.get("/runs/" + run_id).body
        equal(s.http.post(f"/runs/{run_id}/cancel", {}).body, before, "again")


@test("what_comes_after_the_cancel_is_kept", "RUN-18 RUN-19 RUN-54")
def late():
    with Lab() as s:
        run_id = s.begin("late")
        s.until(run_id, lambda r: r["progress"] == 0.1)
        s.stop_run(run_id)
        r = s.done(run_id)
        items = s.items(run_id)["items"]
        equal([i.get("text", i.get("json")) for i in items], ["what there was", "late"])
        equal((r["status"], r["result_refs"]),
              ("canceled", [items[1]["export_item_id"], items[0]["export_item_id"]]))
        run_id = s.begin("late", {"partial": True})
        s.until(run_id, lambda r: r["progress"] == 0.1)
        s.stop_run(run_id)
        r = s.done(run_id)
        items = s.items(run_id)["items"]
        equal((r["status"], r["result_refs"]), ("canceled", [items[1]["export_item_id"]]))


@test("failures_are_told_as_the_plugin_told_them", "ERR-01 ERR-04 ERR-06 PLUG-15")
def failures():
    with Lab() as s:
        r = s.play("fails")
        equal((r["status"], r["error"]), ("failed", {
            "code": "QUOTA", "message": "no more pages",
            "details": {"retriable": True, "plugin": {"left": 0}}}))
        r = s.play("raises")
        equal((r["status"], r["error"]["code"], r["error"]["message"]),
              ("failed", "PLUGIN_ERROR", "ValueError: a bug"))
        equal(r["error"]["details"]["retriable"], False)
        r = s.play("typed")
        equal((r["status"], r["error"]["code"]), ("failed", "PLUGIN_ERROR"))
        check("schema" in r["error"]["message"], r)


@test("a_run_that_takes_too_long_is_a_timeout", "ERR-02 MIG-09 RUN-49")
def timeout():
    with Lab() as s:
        r = s.play("quick")
        equal((r["status"], r["error"]["code"]), ("timeout", "TIMEOUT"))
        r = s.play("gate", {"file": s.file("never")}, timeout=0.2)
        equal((r["status"], r["error"]["code"]), ("timeout", "TIMEOUT"))
        equal(s.play("echo", {"say": 1})["status"], "succeeded", "the plugin is fine")
        r = s.play("quick", timeout=None)
        equal(r["status"], "timeout", "null means the entry's own limit")


@test("sync_waits_and_trigger_answers_the_envelope", "API-25 RUN-42 MIG-01 MIG-06 MIG-07")
def sync():
    with Lab(sync_wait_seconds="10m") as s:
        a = s.post_run("echo", {"say": "x"}, mode="sync")
        equal((a.status, a.json["status"]), (200, "succeeded"))
        equal(s.get(a.json["run_id"]), a.json)
        t = s.post_run("echo", {"say": {"deep": 1}}, path="/plugin/trigger")
        equal((t.status, t.json), (200, {"success": True, "data": {"deep": 1}, "error": None,
                                         "run_id": t.json["run_id"], "status": "succeeded"}))
        equal(s.get(t.json["run_id"])["status"], "succeeded")
        t = s.post_run("echo", {"say": "y" * 30000}, path="/plugin/trigger")
        equal(t.json["data"], "y" * 30000, "a result that is a blob")
        t = s.post_run("echo", {"say": "z" * 300000}, path="/plugin/trigger")
        equal((t.json["success"], t.json["data"]), (True, "z" * 300000), "one that is read by its address")
        t = s.post_run("fails", path="/plugin/trigger")
        equal((t.status, t.json["success"], t.json["error"]["code"]), (200, False, "QUOTA"))
        equal((t.json["data"], t.json["status"]), (None, "failed"))
        t = s.post_run("nobody", path="/plugin/trigger")
        refused(t, 404, "NOT_FOUND")
        check("success" not in t.json and t.json["status"] == 404, "no run, no envelope", t.body)
    with Lab(sync_wait_seconds=1) as s:
        a = s.post_run("gate", {"file": s.file("gate")}, mode="sync")
        check(a.status == 202 and a.json["status"] in ("queued", "running"), a.body)
        s.until(a.json["run_id"], lambda r: r["progress"] == 0.5)  # the plugin has started
        t = s.post_run("gate", {"file": s.file("gate")}, path="/plugin/trigger")
        equal((t.status, t.json), (202, {"success": None, "data": None, "error": None,
                                         "run_id": t.json["run_id"], "status": "running"}), "it has not failed")
        s.open_gate()
        equal(s.done(t.json["run_id"])["status"], "succeeded", "the wait did not touch the run")
    with Lab(plugin_trigger="false") as s:
        refused(s.post_run("echo", {"say": 1}, path="/plugin/trigger"), 404, "NOT_FOUND")


@test("the_envelope_of_a_trigger_has_all_members_whatever_became_of_the_run", "API-25")
def envelopes():
    def trigger(s, entry, args=None, **more):
        a = s.post_run(entry, args, path="/plugin/trigger", **more)
        equal(set(a.json), {"success", "data", "error", "run_id", "status"}, a.body)
        j = a.json
        equal(j["status"], s.get(j["run_id"])["status"])
        return a.status, j["success"], j["data"], (j["error"] or {}).get("code"), j["status"]

    with Lab(sync_wait_seconds="10m") as s:
        ended = (200, True, "x", None, "succeeded")
        equal([trigger(s, "echo", {"say": "x"}, idempotency_key="k") for _ in range(2)], [ended] * 2, "also of one that is over")
        equal(trigger(s, "echo", {"say": None}), (200, True, None, None, "succeeded"))
        equal(trigger(s, "raises"), (200, False, None, "PLUGIN_ERROR", "failed"))
        equal(trigger(s, "quick"), (200, False, None, "TIMEOUT", "timeout"))

        def at_work():
            found = s.http.get("/runs?status=running").json["runs"]
            return found and found[0]["run_id"]
        answers = all_of([lambda: trigger(s, "gate", {"file": s.file("never")}), lambda: s.stop_run(wait_until(at_work))])
        equal(answers[0], (200, False, None, "CANCELED", "canceled"))
        # the server stops while somebody waits: the run goes on after it
        answers = all_of([lambda: s.post_run("gate", {"file": s.file("gate")}, path="/plugin/trigger"),
                          lambda: (s.until(wait_until(at_work), lambda r: r["progress"]), s.stop())])
        run_id = answers[0].json["run_id"]
        equal((answers[0].status, answers[0].json),
              (202, {"success": None, "data": None, "error": None, "run_id": run_id, "status": "running"}))
        s.start()
        s.open_gate()
        equal(s.done(run_id)["status"], "succeeded")
    with Lab(sync_wait_seconds=1) as s:
        places = [s.begin("gate", {"file": s.file("gate")}) for _ in range(16)]
        for run_id in places:
            s.until(run_id, lambda r: r["progress"])
        equal(trigger(s, "echo", {"say": 1}), (202, None, None, None, "queued"), "it waits for a place")
        s.open_gate()


@test("a_key_that_created_a_run_retries_none", "RUN-41 RUN-43")
def used_keys():
    with Lab() as s:
        first = s.begin("echo", {"say": 1}, idempotency_key="k")
        s.done(first)
        refused(s.http.post(f"/runs/{first}/retry", {"idempotency_key": "k"}), 409, "CONFLICT")
        refused(s.http.post(f"/runs/{first}/retry", {}, headers={"Idempotency-Key": "k"}), 409, "CONFLICT")
        again = s.http.post(f"/runs/{first}/retry", {"idempotency_key": "r"})
        equal(again.status, 202, again.body)
        s.done(again.json["run_id"])
        refused(s.post_run("echo", {"say": 1}, idempotency_key="r"), 409, "CONFLICT")
        refused(s.http.post(f"/runs/{again.json['run_id']}/retry", {"idempotency_key": "r"}), 409, "CONFLICT")
        repeated = s.http.post(f"/runs/{first}/retry", {"idempotency_key": "r"})
        equal((repeated.json["run_id"], repeated.headers["idempotent-replayed"]), (again.json["run_id"], "true"))
        equal(len(s.http.get("/runs").json["runs"]), 2)


@test("foreign_ids_are_any_visible_characters", "RUN-11 OBS-02")
def foreign_ids():
    with Lab() as s:
        for foreign in ("x", "00-ABC/def?~" + "!" * 116, "a" * 31, "a" * 33, "A" * 32, "g" * 32):
            run_id = s.begin("context", task_id=foreign, trace_id=foreign)
            r = s.done(run_id)
            equal((r["status"], r["task_id"], r["trace_id"]), ("succeeded", foreign, foreign))
            item = s.items(run_id)["items"][-1]
            equal((item["json"]["trace_id"], item["json"]["task_id"]), (foreign, foreign))
            equal(item["metadata"]["trace_id"], foreign)
            for e in s.session_events(run_id):
                check("trace_id" not in e.data, "only W3C ids stand in the envelope", e)
            again = s.http.post(f"/runs/{run_id}/retry", {}).json["run_id"]
            equal(s.done(again)["trace_id"], foreign, "another attempt")
            equal([r["run_id"] for r in s.http.get("/runs?" + urlencode({"task_id": foreign})).json["runs"]],
                  [again, run_id])
        run_id = s.begin("context", trace_id="0af7651916cd43dd8448eb211c80319c")
        s.done(run_id)
        of_run = [e.data for e in s.session_events(run_id) if "run_id" in e.data]
        equal({e.get("trace_id") for e in of_run}, {"0af7651916cd43dd8448eb211c80319c"}, "one of theirs stands there")
        agent = s.http.post("/api/runs", {"agent_id": "echo", "inputs": {"message": "hi"}, "trace_id": "t-1"})
        s.events(agent.json["run_id"])
        equal(s.items(agent.json["run_id"])["items"][-1]["metadata"], {"trace_id": "t-1"})
        gate = s.begin("gate", {"file": s.file("gate")}, trace_id="after a".replace(" ", "-"))
        s.until(gate, lambda r: r["progress"] == 0.5)
        s.restart()
        s.open_gate()
        equal(s.done(gate)["trace_id"], "after-a", "read back from the log")


@test("foreign_ids_that_cannot_be_are_refused_at_every_door", "ERR-05")
def no_foreign_ids():
    with Lab() as s:
        entry = {"plugin_id": "lab", "entry_id": "echo", "args": {"say": 1}}
        doors = (("/runs", entry), ("/plugin/trigger", entry), ("/api/runs", {"agent_id": "echo", "inputs": {"message": "x"}}))
        for bad in ("", " ", "two words", "tab\t", "line\n", "\x7f", "\x01", "\u00e4", "\U0001f600", "x" * 129, 7, ["x"]):
            for path, body in doors:
                for key in ("task_id", "trace_id"):
                    p = refused(s.http.post(path, {**body, key: bad}), 400, "VALIDATION_ERROR", "/" + key)
                    check("1 to 128 visible ASCII characters" in p["detail"] or not isinstance(bad, str), p)
            turn = {"agent_id": "echo", "input": [{"type": "text", "text": "x"}], "options": {"trace_id": bad}}
            refused(s.http.post("/api/control/submit_turn", turn), 400, "VALIDATION_ERROR", "/options/trace_id")
        equal(s.http.get("/runs").json["runs"], [])


@test("one_key_is_one_run", "RUN-40 RUN-41 RUN-43")
def keys():
    with Lab() as s:
        args = {"say": "x", "mark": s.file("mark")}
        answers = all_of([lambda: s.post_run("echo", args, idempotency_key="k")] * 64)
        equal({a.status for a in answers}, {202}, answers[0].body)
        ids = {a.json["run_id"] for a in answers}
        equal(len(ids), 1)
        s.done(ids.pop())
        equal(len(s.marks()), 1, "executed once")
        header = s.post_run("echo", args, headers={"Idempotency-Key": "k"})
        equal((header.json["run_id"], header.headers["idempotent-replayed"]),
              (s.marks()[0], "true"))
        for other in ({"args": {"say": "y"}}, {"entry": "context", "args": {}}):
            entry = other.get("entry", "echo")
            refused(s.post_run(entry, other["args"], idempotency_key="k"), 409, "CONFLICT")
        s.restart()
        equal(s.post_run("echo", args, idempotency_key="k", mode="sync").json["run_id"],
              s.marks()[0], "after a restart, and also for one who waits")


@test("attempts_of_one_run_do_not_wait_for_each_other", "")
def side_by_side():
    with Lab() as s:
        first = s.begin("gate", {"file": s.file("gate")})
        s.stop_run(first)
        s.done(first)
        runs = [s.http.post(f"/runs/{first}/retry", {}).json["run_id"] for _ in range(3)]
        for run_id in runs:  # all are at work at the same time
            s.until(run_id, lambda r: r["progress"] == 0.5)
        s.open_gate()
        for run_id in runs:
            r = s.done(run_id)
            equal((r["status"], r["attempt"], r["root_run_id"]), ("succeeded", 2, first))
        equal({s.get(x)["session_id"] for x in [first] + runs}, {s.get(first)["session_id"]})
        log = s.session_events(runs[-1])
        equal([e.data["sequence"] for e in log], list(range(1, len(log) + 1)))
        s.restart()
        equal([s.get(x)["status"] for x in runs], ["succeeded"] * 3)


@test("what_an_agent_says_is_its_result", "API-25")
def agent_results():
    long = "ä" * 400000
    with Lab(run_timeout_seconds=60) as s:
        for agent, message, entry in (("echo", 'say "ä"\n', True), ("demo", "hi", False), ("echo", long, True)):
            body = {"plugin_id": "uar.agent", "entry_id": agent, "args": {"message": message}}
            t = s.http.post("/plugin/trigger", body)
            equal((t.status, t.json["success"]), (200, True), t.body[:500])
            run_id, said = t.json["run_id"], t.json["data"]
            equal(said, text_of(s.events(run_id)), "what the stream says")
            check(said == message if entry else "You wrote" in said, said[:100])
            check("Artifact" not in [e.type for e in s.events(run_id)], "it is not told twice")
            r = s.get(run_id)
            page = s.items(run_id)
            equal(([i["export_item_id"] for i in page["items"]], page["next_after"]), (r["result_refs"], None))
            item = page["items"][0]
            raw = said.encode()
            equal((item["type"], item["text"], item["bytes"], item["sha256"], item["label"]),
                  ("text", said, len(raw), hashlib.sha256(raw).hexdigest(), "answer"))
            content = f"/runs/{run_id}/export/{item['export_item_id']}/content"
            equal(s.http.get(content).body, raw)
            equal(s.http.get(content, headers={"Range": "bytes=2-5"}).body, raw[2:6])
            equal(s.items(run_id, after=item["export_item_id"])["items"], [])
            with s.channel("export", run_id=run_id) as ch:
                equal([e.data["export_item_id"] for e in ch], r["result_refs"])
            with s.channel("export", run_id=run_id, after=item["export_item_id"]) as ch:
                equal([e for e in ch], [])
        s.restart()
        equal(s.items(run_id)["items"], [item], "after a restart")
        run_id = s.create("echo", "x")
        with s.channel("export") as ch:
            other = s.create("echo", "y")
            seen = ch.until(lambda e: e.data["run_id"] == other)[-1].data
            equal((seen["bytes"], seen["label"]), (1, "answer"))


@test("a_key_names_its_run_whatever_became_of_the_entry", "RUN-40 RUN-43")
def keys_outlive_entries():
    with Lab() as s:
        args = {"say": {"n": 25, "list": [1, 2.50], "a": None}}
        run_id = s.begin("echo", args, idempotency_key="k", timeout=60)
        s.done(run_id)
        same = '{"args":{"say":{"a":null,"list":[1.0,25e-1],"n":25.0}},"entry_id":"echo",' \
               '"plugin_id":"lab","idempotency_key":"k","timeout":9,"trace_id":"%s"}' % ("ab" * 16)
        kind = {"Content-Type": "application/json"}
        a = s.http.send("POST", "/runs", same.encode(), kind)
        equal((a.status, a.json["run_id"]), (202, run_id), "equal values, another spelling")
        refused(s.post_run("echo", {"say": {"n": 25.5}}, idempotency_key="k"), 409, "CONFLICT")
        again = s.http.post(f"/runs/{run_id}/retry", {"idempotency_key": "r"}).json["run_id"]
        s.done(again)
        empty = s.file("none")
        os.mkdir(empty)
        s.restart(plugins_dir=empty)  # the plugin is gone
        a = s.http.send("POST", "/runs", same.encode(), kind)
        equal((a.status, a.json["run_id"], a.json["status"]), (202, run_id, "succeeded"), a.body)
        equal(s.http.post(f"/runs/{run_id}/retry", {"idempotency_key": "r"}).json["run_id"], again)
        refused(s.post_run("echo", {"say": 1}, idempotency_key="k"), 409, "CONFLICT")
        refused(s.post_run("echo", {"say": 1}, idempotency_key="other"), 404, "NOT_FOUND")
        shutil.copytree(os.path.join(LAB, "lab"), os.path.join(empty, "lab"))
        with open(os.path.join(empty, "lab", "plugin.json")) as f:
            manifest = json.load(f)
        for entry in manifest["entries"]:
            entry["args_schema"] = {"type": "object", "maxProperties": 0}
        with open(os.path.join(empty, "lab", "plugin.json"), "w") as f:
            json.dump(manifest, f)
        s.restart()  # it is back and takes other arguments now
        equal(s.post_run("echo", args, idempotency_key="k").json["run_id"], run_id)
        refused(s.post_run("echo", args, idempotency_key="other"), 400, "VALIDATION_ERROR")
        equal(len(s.http.get("/runs").json["runs"]), 2)


@test("a_retry_is_a_new_attempt_at_the_same_task", "API-24 RUN-26 RUN-38 RUN-39")
def retry():
    with Lab() as s:
        first = s.begin("context", {}, task_id="t-1")
        s.done(first)
        chain = [first]
        for attempt in (2, 3):
            a = s.http.post(f"/runs/{chain[-1]}/retry", {})
            equal(a.status, 202, a.body)
            chain.append(a.json["run_id"])
            r = s.done(chain[-1])
            equal((r["root_run_id"], r["parent_run_id"], r["attempt"], r["task_id"]),
                  (first, chain[-2], attempt, "t-1"))
            seen = s.items(chain[-1])["items"][-1]["json"]
            equal((seen["attempt"], seen["root"], seen["parent"]), (attempt, first, chain[-2]))
        equal([r["run_id"] for r in s.http.get(f"/runs?root_run_id={first}").json["runs"]],
              chain[::-1])
        again = [s.http.post(f"/runs/{first}/retry", {"idempotency_key": "r"}).json["run_id"]
                 for _ in range(2)]
        equal(again[0], again[1])
        gate = s.begin("gate", {"file": s.file("gate")})
        refused(s.http.post(f"/runs/{gate}/retry", {}), 409, "CONFLICT")
        refused(s.http.post("/runs/nobody/retry", {}), 404, "NOT_FOUND")
        s.open_gate()
        s.done(gate)
        equal(set(check_session(s.session_events(first)).values()), {True})


@test("lists_by_every_filter", "API-21")
def lists():
    with Lab() as s:
        a = s.play("echo", {"say": 1}, task_id="t-a")["run_id"]
        b = s.play("fails", task_id="t-b")["run_id"]
        s.events(s.create("echo", "hi"))
        for query, want in (("plugin_id=lab", {a, b}), ("task_id=t-a", {a}),
                            ("status=failed", {b}), ("entry_id=fails", {b}),
                            ("plugin_id=lab&status=succeeded", {a})):
            got = {r["run_id"] for r in s.http.get("/runs?" + query).json["runs"]}
            equal(got, want, query)


@test("the_context_of_a_run_reaches_the_plugin", "OBS-01 OBS-02 PLUG-02 EXP-15")
def context():
    with Lab(env={"LAB_ALLOWED": "yes", "LAB_SECRET": "no"}) as s:
        trace = "f" * 32
        run_id = s.begin("context", task_id="t", trace_id=trace)
        s.done(run_id)
        seen = s.items(run_id)["items"][-1]["json"]
        equal((seen["run_id"], seen["trace_id"], seen["task_id"], seen["attempt"]),
              (run_id, trace, "t", 1))
        equal((seen["allowed"], seen["secret"]), ("yes", None))
        equal(seen["cwd"], os.path.join(LAB, "lab"))
        line = [x for x in s.log().splitlines() if "a line of the log" in x][0]
        check(run_id in line and trace in line and "plugin_id=lab" in line, line)


@test("a_handler_sees_that_it_may_have_been_called_before", "PLUG-01")
def called_before():
    with Lab() as s:
        run_id = s.begin("gate", {"file": s.file("gate")})
        equal(s.until(run_id, lambda r: r["progress"])["message"], "at the gate")
        s.restart()
        s.until(run_id, lambda r: r["message"] == "at the gate again")
        s.open_gate()
        s.done(run_id)
        again = s.http.post(f"/runs/{run_id}/retry", {}).json["run_id"]
        equal(s.done(again)["message"], "at the gate", "another attempt is called for the first time")


@test("a_run_waits_until_the_plugin_has_a_place", "MIG-03 RUN-34")
def places():
    with Lab() as s:
        args = {"file": s.file("gate"), "mark": s.file("mark")}
        first = [s.begin("gate", args) for _ in range(16)]
        for run_id in first:
            s.until(run_id, lambda r: r["progress"] == 0.5)
        waiting = [s.begin("gate", args) for _ in range(4)]
        for run_id in waiting:
            r = s.get(run_id)
            equal((r["status"], r["started_at"], r["progress"]), ("queued", None, None))
        r = s.stop_run(waiting[0])
        equal(r["status"], "canceled", "at once, it never ran")
        s.open_gate()
        equal({s.done(r)["status"] for r in first + waiting[1:]}, {"succeeded"})
        check(waiting[0] not in s.marks() and len(s.marks()) == 19, s.marks())


@test("the_command_line_does_it_all", "")
def cli():
    words = os.path.join(ROOT, "examples", "plugins")
    with Server(plugins_dir=words) as s:
        def uar(*argv):
            return run_uar(*argv, "--url", s.url, env={"UAR_TOKEN": s.token})
        check("words" in uar("plugins").stdout and "count" in uar("plugins").stdout)
        p = uar("trigger", "words", "count", "--args", '{"text": "one three"}', "--wait")
        equal((p.returncode, p.stdout), (0, 'three\n{"words":2}\n'), p.stderr)
        p = uar("trigger", "words", "count", "--args", '{"text": "a b"}', "--wait", "--json")
        record = json.loads(p.stdout)
        equal(record["status"], "succeeded")
        p = uar("retry", record["run_id"], "--wait")
        equal((p.returncode, p.stdout), (0, 'a\n{"words":2}\n'), p.stderr)
        p = uar("trigger", "words", "count", "--args", '{"text": "x", "seconds_per_word": 60}')
        run_id = p.stdout.strip()
        check(run_id in uar("ps").stdout)
        equal(uar("cancel", run_id).returncode, 0)
        s.events(run_id)
        check("canceled" in uar("show", run_id).stdout)
        p = uar("trigger", "words", "count", "--args", "[]")
        equal(p.returncode, 2, p.stderr)
        p = uar("trigger", "words", "count", "--args", "{}")
        equal(p.returncode, 1, p.stdout)
        check("VALIDATION_ERROR" in p.stderr, p.stderr)


main()
