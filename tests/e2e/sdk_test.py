#!/usr/bin/env python3
"""One plugin, written once with each SDK, and one table of what every one of them must do.

`library` is the same C source as `c`, loaded into the server instead of started by it."""
import base64
import json
import os
import shutil
import tempfile

from lib import check, equal, main, npm, test, wait_until
from lib.plugins import Lab
from lib.server import BUILD, ROOT

HERE = os.path.join(ROOT, "tests", "e2e", "sdk")
SDKS = {
    "python": {"command": ["python3", os.path.join(HERE, "python", "main.py")], "env": ["LAB_SDK"]},
    "c": {"command": [os.path.join(BUILD, "sdk", "conform")]},
    "library": {"library": "conform.so"},
    "ts": {"command": ["node", os.path.join(HERE, "ts", "main.mjs")], "env": ["LAB_SDK"]},
}
FOLDER = {"python": "python", "ts": "typescript"}
ENTRIES = [{"id": "gate", "restart": "retry"}] + [{"id": e} for e in "echo context args items refused report burst partial deaf child fails raises "
           "unsound crash large".split()] + [{"id": "typed", "result_schema": {"type": "integer"}}]


def lab(sdk, **manifest):
    if sdk == "ts":
        npm.node()
    root = tempfile.mkdtemp(prefix="uar-sdk-")
    folder = os.path.join(root, "lab")
    os.makedirs(folder)
    with open(os.path.join(folder, "plugin.json"), "w") as f:
        json.dump({"id": "lab", "version": "1", "concurrency": 32, "cancel_grace_seconds": 20,
                   **({} if sdk == "library" else {"start_timeout_seconds": 600, "answer_timeout_seconds": 600}),
                   "entries": ENTRIES, **SDKS[sdk], **manifest}, f)
    if sdk == "library":
        shutil.copy(os.path.join(BUILD, "sdk", "conform.so"), folder)
    return Lab(root, env={"LAB_SDK": os.path.join(ROOT, "sdk", FOLDER.get(sdk, sdk))})


def each(name, ids, but=()):
    """The test for each SDK, under its name."""
    def keep(fn):
        for sdk in SDKS:
            if sdk not in but:
                test(f"{sdk}_{name}", ids)(lambda sdk=sdk: fn(sdk))
        return fn
    return keep


def values(s, run_id):
    return s.items(run_id)["items"]


@each("gets_arguments_and_returns_a_result", "PLUG-01")
def result(sdk):
    odd = "ä € 😀 \" \\ / \n \t \u2028 \x01"
    with lab(sdk) as s:
        r = s.play("echo", {"say": "x" * 70000})
        equal(r["status"], "succeeded", r)
        item = values(s, r["run_id"])[-1]
        equal((item["type"], item["mime"], item["label"], r["result_refs"]),
              ("binary_url", "application/json", "result", [item["export_item_id"]]))
        equal(s.http.get(item["binary_url"]).json, "x" * 70000, "too large for a list")
        r = s.play("echo", {"say": "x" * 1000000})
        equal((r["status"], r["error"]["code"]), ("failed", "PLUGIN_ERROR"), "too large for a message")
        for say in (odd, {"k": [1, -2.5, 1e300, True, None, odd]}, [], 9007199254740991, False):
            r = s.play("echo", {"say": say, "print": sdk != "library"})
            equal(r["status"], "succeeded", r)
            equal(values(s, r["run_id"])[-1]["json"], say)
        equal(s.play("echo", {"say": None})["result_refs"], [], "null is no result")
        r = s.play("args", {"deep": {"list": [7, "two\n", True, None, 2.5]}, "a/b": odd})
        equal(values(s, r["run_id"])[-1]["json"], [5, 7, "two\n", True, 2.5, odd, None])
        if sdk != "library":  # what it prints comes another way than what it says
            wait_until(lambda: "printed, not protocol" in s.log(), "the print in the log")


@each("knows_its_run", "PLUG-01 PLUG-02 OBS-01 OBS-02")
def context(sdk):
    with lab(sdk) as s:
        trace = "c" * 32
        run_id = s.begin("context", task_id="t", trace_id=trace, timeout=60)
        s.done(run_id)
        equal(values(s, run_id)[-1]["json"], {
            "run_id": run_id, "attempt": 1, "root": run_id, "parent": None, "task_id": "t",
            "trace_id": trace, "timeout": True})
        line = [x for x in s.log().splitlines() if "a line of the log" in x][0]
        check(run_id in line and trace in line and "warn" in line.lower(), line)
        again = s.http.post(f"/runs/{run_id}/retry", {}).json["run_id"]
        s.done(again)
        seen = values(s, again)[-1]["json"]
        equal((seen["attempt"], seen["root"], seen["parent"]), (2, run_id, run_id))


@each("exports_every_type", "PLUG-04 PLUG-05 PLUG-06 PLUG-09")
def exports(sdk):
    with lab(sdk) as s:
        r = s.play("items")
        equal(r["status"], "succeeded", r)
        items = values(s, r["run_id"])
        equal([i["type"] for i in items],
              ["text", "url", "binary_url", "binary", "json", "url", "json"])
        equal((items[0]["text"], items[0]["description"], items[0]["label"]),
              ("hello", "a text", "greeting"))
        equal(items[0]["metadata"]["k"], 1)
        equal((items[1]["url"], items[2]["binary_url"], items[5]["url"]),
              ("http://x/y", "http://x/z", "artifact://some-artifact"))
        equal(base64.b64decode(items[3]["binary"]), bytes(range(256)) * 16)
        equal((items[3]["mime"], items[3]["description"]), ("application/x-test", "bytes"))
        equal(items[4]["json"], {"deep": [1, None]})
        ids = [i["export_item_id"] for i in items]
        equal(items[6]["json"], ids[:6], "exports return ids")
        equal(sorted(r["result_refs"]), sorted(ids))
        r = s.play("items", {"keep": 2})
        ids = [i["export_item_id"] for i in values(s, r["run_id"])]
        equal(r["result_refs"], [ids[6], ids[2]])
        r = s.play("items", {"keep": 2, "times": 300})
        equal((r["status"], r.get("result_ref_count")), ("succeeded", 301), r["error"])


@each("is_told_why_an_export_is_refused", "")
def refused(sdk):
    with lab(sdk) as s:
        r = s.play("refused")
        equal(r["status"], "succeeded", r)
        equal(values(s, r["run_id"])[-1]["json"], ["PAYLOAD_TOO_LARGE", "INVALID_ARGUMENT"])


@each("uploads_what_is_large", "EXP-05")
def large(sdk):
    with lab(sdk) as s:
        with open(s.file("notes"), "w") as f:
            f.write("a note\n" * 60000)
        r = s.play("large", {"file": s.file("notes")})
        equal(r["status"], "succeeded", r)
        want = [bytes(i * 7 & 255 for i in range(600000)), b"x" * 100000, b"a note\n" * 60000]
        items = values(s, r["run_id"])
        equal([i["type"] for i in items], ["binary_url"] * 3)
        equal((items[0]["mime"], items[0]["description"], items[2]["label"], items[2]["mime"]),
              ("application/x-test", "many bytes", "notes.txt", "text/plain"))
        for item, content in zip(items, want):
            a = s.http.get(item["binary_url"])
            check(a.status == 200 and a.body == content, item, a.status)


@each("reports_progress", "PLUG-03 PLUG-08")
def progress(sdk):
    with lab(sdk) as s:
        run_id = s.begin("report", {"file": s.file("gate")})
        r = s.until(run_id, lambda r: r.get("stage") == "resting")
        equal((r["progress"], r["message"], r["step"], r["step_total"], r["eta_seconds"]),
              (0.25, "all said", 1, 4, 9))
        equal(r["metrics"]["pages"], 3)
        s.open_gate()
        r = s.done(run_id)
        equal((r["status"], r["step"], r["step_total"], r["eta_seconds"]), ("succeeded", 1, 4, 9))
        r = s.play("burst", {"n": 1000})
        equal((r["status"], r["progress"], r["message"]), ("succeeded", 1, "step 1000"))


@each("knows_that_it_may_have_been_called_before", "PLUG-01")
def restarted(sdk):
    with lab(sdk) as s:
        run_id = s.begin("gate", {"file": s.file("gate")})
        equal(s.until(run_id, lambda r: r["progress"])["message"], "at the gate")
        s.restart()
        s.until(run_id, lambda r: r["message"] == "at the gate again")
        s.open_gate()
        equal(s.done(run_id)["status"], "succeeded")
        equal(s.play("gate", {"file": s.file("gate")})["message"], "at the gate", "another run was not")


@each("notices_a_cancel", "PLUG-07 PLUG-10 PLUG-11 RUN-36")
def cancel(sdk):
    with lab(sdk) as s:
        for entry in ("gate", "report"):
            run_id = s.begin(entry, {"file": s.file("never")})
            s.until(run_id, lambda r: r["progress"])
            s.stop_run(run_id)
            equal(s.done(run_id)["status"], "canceled")
        run_id = s.begin("partial")
        s.until(run_id, lambda r: r["progress"] == 0.1)
        s.stop_run(run_id, reason="enough \"now\"")
        r = s.done(run_id)
        items = values(s, run_id)
        equal([i["text"] for i in items], ["left out", "partial"])
        equal(items[1]["description"], "enough \"now\"")
        equal((r["status"], r["result_refs"]), ("canceled", [items[1]["export_item_id"]]))
        check("ignored_cancel" not in s.log(), s.log())


@each("that_ignores_a_cancel_is_left_behind", "RUN-37")
def deaf(sdk):
    with lab(sdk, cancel_grace_seconds=0.1) as s:
        run_id = s.begin("deaf", {"file": s.file("gate")})
        s.until(run_id, lambda r: r["progress"] == 0.1)
        s.stop_run(run_id)
        equal(s.done(run_id)["status"], "canceled")
        check("plugin.ignored_cancel" in s.log(), s.log())
        equal(s.play("echo", {"say": 1})["status"], "succeeded", "the next one works")
        s.open_gate()
        r = s.play("deaf", {"file": s.file("gate")}, timeout=60)
        equal((r["status"], len(values(s, run_id))), ("succeeded", 0))


@each("that_takes_too_long_times_out", "ERR-02")
def timeout(sdk):
    with lab(sdk) as s:
        r = s.play("gate", {"file": s.file("never")}, timeout=0.3)
        equal((r["status"], r["error"]["code"]), ("timeout", "TIMEOUT"))


@each("fails_as_it_says", "ERR-01 ERR-04 ERR-06")
def failures(sdk):
    with lab(sdk) as s:
        r = s.play("fails")
        equal((r["status"], r["error"]), ("failed", {
            "code": "QUOTA", "message": "no more pages",
            "details": {"retriable": True, "plugin": {"left": 0}}}))
        r = s.play("fails", {"odd": True})
        equal((r["status"], r["error"]["code"]), ("failed", "QUOTA"), "whatever its details are")
        for code in ("two words", "x" * 64, "\u00e4"):
            r = s.play("fails", {"code": code})
            equal((r["status"], r["error"]["code"]), ("failed", "PLUGIN_ERROR"))
            check(r["error"]["message"].startswith("no more pages (code "), r["error"])
        for entry in ("raises", "typed", "unsound"):
            r = s.play(entry)
            equal((r["status"], r["error"]["code"]), ("failed", "PLUGIN_ERROR"), entry)
        if sdk == "library":
            check(": 1:8: " in r["error"]["message"], "where it is no JSON", r["error"])
        equal(s.play("echo", {"say": 1})["status"], "succeeded")


@each("has_many_runs_at_once", "")
def many(sdk):
    with lab(sdk) as s:
        held = [s.begin("gate", {"file": s.file("gate")}) for _ in range(31)]
        for run_id in held:
            s.until(run_id, lambda r: r["progress"] == 0.5)
        short = [s.begin("echo", {"say": i}) for i in range(100)]
        for i, run_id in enumerate(short):
            equal(s.done(run_id)["status"], "succeeded")
            equal(values(s, run_id)[-1]["json"], i)
        s.open_gate()
        equal({s.done(r)["status"] for r in held}, {"succeeded"})


@each("that_crashes_fails_its_run_alone", "ERR-07", but=("library",))
def crash(sdk):
    with lab(sdk) as s:
        r = s.play("crash")
        equal((r["status"], r["error"]["code"]), ("failed", "TRANSPORT_ERROR"))
        equal([i["text"] for i in values(s, r["run_id"])], ["before"])
        equal(s.play("echo", {"say": 1})["status"], "succeeded")


@each("keeps_the_wire_from_children_of_handlers", "", but=("library",))
def children(sdk):
    """They would read what is meant for others, and glue noise to the next message."""
    with lab(sdk) as s:
        runs = [s.begin(e, {"say": 1}) for _ in range(4) for e in ("child", "echo")]
        equal([s.done(r)["status"] for r in runs], ["succeeded"] * 8)
        equal([i["text"] for i in values(s, runs[0])], ["after"])
        check("plugin.noise" not in s.log(), s.log())


@each("that_is_at_work_does_not_hold_up_the_end", "")
def stop(sdk):
    with lab(sdk, cancel_grace_seconds=0.2) as s:
        held = [s.begin(e, {"file": s.file("never")}) for e in ("gate", "deaf", "partial")]
        for run_id in held:
            s.until(run_id, lambda r: r["progress"])


@test("a_library_that_is_worn_out_takes_no_more_runs", "")
def worn_out():
    with lab("library", cancel_grace_seconds=0) as s:
        for _ in range(16):
            run_id = s.begin("deaf", {"file": s.file("gate")})
            s.until(run_id, lambda r: r["progress"] == 0.1)
            s.stop_run(run_id)
            equal(s.done(run_id)["status"], "canceled")
        r = s.play("echo", {"say": 1})
        equal((r["status"], r["error"]["code"]), ("failed", "UNAVAILABLE"))
        check("16 runs of this library" in r["error"]["message"], r)
        equal([s.metric("uar_plugin_threads_lost"), s.metric("uar_plugin_threads_lost_total")], [16, 16])
        check(s.metric("uar_plugin_threads") >= 16)
        s.open_gate()
        wait_until(lambda: s.play("echo", {"say": 1})["status"] == "succeeded")
        wait_until(lambda: s.metric("uar_plugin_threads_lost") == 0)
        equal(s.metric("uar_plugin_threads_lost_total"), 16)


@test("a_library_that_does_not_fit_is_left_out", "")
def unfit():
    for manifest, why in (({"library": "missing.so"}, "cannot be loaded"),
                          ({"entries": [{"id": "echo"}, {"id": "other"}]}, "/entries/1/id"),
                          ({"processes": 2}, "/processes"),
                          ({"command": ["x"]}, "left_out")):
        with lab("library", **manifest) as s:
            line = [x for x in s.log().splitlines() if "plugin.left_out" in x]
            check(line and why in line[0], why, s.log())


main()
