#!/usr/bin/env python3
"""What operators see: log lines that name their run, numbers by plugin, entry and outcome."""
import os
import re
import tempfile

from lib import check, equal, main, test, wait_until
from lib.plugins import Lab, write_plugin
from lib.server import ROOT

SDK = os.path.join(ROOT, "sdk", "python")
SCRIPT = f"import os, sys\nsys.path.insert(0, {SDK!r})\n" """
from uar_plugin import Plugin
plugin = Plugin()

@plugin.entry("e")
def e(ctx, args):
    print("said by", ctx.run.id, end="")
    os.write(2, b"raw " + ctx.run.id.encode() + b"\\n")
    print("", "to the end", end="")
    ctx.run.progress(0.5)
    if args.get("wait"):
        while not os.path.exists(args["wait"]):
            ctx.run.wait_cancelled(0.01)
    if args.get("die"):
        os._exit(3)
    return [os.environ.get("UAR_RUN_ID"), os.environ.get("UAR_TRACE_ID"), os.getpid()]

plugin.run()
"""
TRACE = "00112233445566778899aabbccddeeff"


def lab(**manifest):
    return Lab(write_plugin(tempfile.mkdtemp(prefix="uar-plugins-"), manifest, SCRIPT),
               log_level="debug")


def lines(s, *parts):
    return [x for x in s.log().splitlines() if all(p in x for p in parts)]


@test("every_line_about_a_run_names_it_and_its_trace", "OBS-01 OBS-02")
def log():
    with lab() as s:
        run_id = s.begin("e", plugin="p", trace_id=TRACE)
        s.done(run_id)
        wait_until(lambda: lines(s, f"said by {run_id} to the end"), "what it printed")
        dead = s.begin("e", {"die": True, "wait": s.file("gate")}, plugin="p", trace_id=TRACE)
        equal(s.metric("uar_plugin_processes_lived_seconds_total"), 0)
        s.open_gate()
        equal(s.done(dead)["error"]["code"], "TRANSPORT_ERROR")
        check(s.metric("uar_plugin_processes_lived_seconds_total") > 0, "one has ended")
        silent = s.begin("e", plugin="p")
        s.done(silent)
        wait_until(lambda: lines(s, "run.ended", silent), "its end")
        for what, of in (("run.created", run_id), ("run.ended", run_id), ("plugin.log", run_id),
                         ("plugin.process_gone", dead)):
            found = lines(s, what, "run_id=" + of)
            check(found and all("trace_id=" + TRACE in x for x in found), what, s.log()[-3000:])
        for line in lines(s, "run_id=01"):
            check(TRACE in line or silent in line, line)
            check("trace_id=\"\"" not in line, line)


@test("what_cannot_be_told_apart_is_not_guessed", "OBS-04")
def shared():
    with lab(concurrency=2) as s:
        args = {"wait": s.file("gate")}
        runs = [s.begin("e", args, plugin="p") for _ in range(2)]
        for run_id in runs:
            wait_until(lambda: lines(s, "raw " + run_id), "both are at work")
        s.open_gate()
        for run_id in runs:
            s.done(run_id)
        raw = lines(s, "plugin.stderr", "raw ")
        owners = [re.search(r"run_id=(\S+)", x)[1] for x in raw]
        check("unavailable" in owners, raw)
        for owner, line in zip(owners, raw):
            check(owner == "unavailable" or "raw " + owner in line, line)
        for line in lines(s, "plugin.log", "said by"):
            check("said by " + re.search(r"run_id=(\S+)", line)[1] in line, line)


@test("a_process_of_one_run_has_it_in_its_environment", "OBS-02")
def environment():
    with lab(runs_per_process=1, processes=2) as s:
        seen = []
        for trace in (TRACE, None, "f" * 32):
            more = {"trace_id": trace} if trace else {}
            run_id = s.begin("e", plugin="p", **more)
            s.done(run_id)
            told = s.items(run_id)["items"][0]["json"]
            equal(told[:2], [run_id, trace])
            seen.append(told[2])
        equal(len(set(seen)), 3, "a process each")


def value(text, name, **labels):
    want = ",".join(f'{k}="{v}"' for k, v in labels.items())
    found = re.search(rf"^{name}{{{re.escape(want)}}} (\S+)$", text, re.M)
    return float(found[1]) if found else 0


# What the catalogue of measures asks for, each by its name here.
MEASURES = {
    "time to the first token": "model_first_token_seconds", "model latency": "model_call_seconds",
    "task duration": "run_duration_seconds", "retry count": "runs_retried_total",
    "token usage": "model_output_tokens_total", "tool duration": "tool_seconds",
    "hook duration": "hook_seconds", "queue wait": "run_queue_seconds",
    "permission wait": "permission_wait_seconds",
    "process runtime": "plugin_processes_lived_seconds_total", "cost": "model_cost_usd_total",
    "limit events": "run_time_limits_total", "export duration": "export_seconds"}


@test("numbers_by_plugin_entry_and_status", "PERF-11")
def metrics():
    with Lab() as s:
        for _ in range(3):
            s.play("echo", {"say": 1})
        failed = s.play("fails")["run_id"]
        s.done(s.http.post(f"/runs/{failed}/retry", {}).json["run_id"])
        s.play("quick")
        s.events(s.create("demo", "hello"))
        gate = s.begin("gate", {"file": s.file("gate")})
        s.until(gate, lambda r: r["progress"] == 0.5)
        queued = [s.begin("gate", {"file": s.file("gate")}) for _ in range(17)]
        lab = {"plugin": "lab"}

        def at_work():
            text = s.http.get("/metrics").body.decode()
            return value(text, "uar_runs", **lab, entry="gate", status="running") == 16 and text
        text = wait_until(at_work, "every place is taken")

        def ended(entry, status):
            return value(text, "uar_runs_ended_total", **lab, entry=entry, status=status)
        equal((ended("echo", "succeeded"), ended("fails", "failed"), ended("quick", "timeout")),
              (3, 2, 1))
        equal(value(text, "uar_runs_retried_total", **lab, entry="fails"), 1)
        equal(value(text, "uar_exports_total", **lab, entry="echo"), 3)
        equal(value(text, "uar_runs_started_total", **lab, entry="gate"), 18)
        equal(value(text, "uar_runs", **lab, entry="gate", status="queued"), 2, "waits for a place")
        equal(value(text, "uar_runs", **lab, entry="gate", status="running"), 16)
        for name, count in (("uar_run_duration_seconds", 3), ("uar_run_queue_seconds", 3)):
            equal(value(text, name + "_count", **lab, entry="echo"), count)
            equal(value(text, name + "_bucket", **lab, entry="echo", le="+Inf"), count)
            check(name + '_sum{plugin="lab",entry="echo"}' in text, name)
        equal(value(text, "uar_model_call_seconds_count"), 1)
        equal(s.metric("uar_run_time_limits_total"), 1)
        equal(value(text, "uar_model_first_token_seconds_count"), 1)
        equal(s.metric("uar_plugin_runs_waiting"), 2)
        check(s.metric("uar_plugin_processes") >= 1)
        equal(s.metric("uar_plugin_processes_crashed_total"), 0)
        equal(s.metric("uar_plugin_processes_restarted_total"), 0)
        equal(s.metric("uar_plugin_threads"), 0)
        for line in text.splitlines():
            check(re.fullmatch(r'# (HELP|TYPE) uar_\w+ .+|uar_\w+(\{[^}]*\})? [\d.]+', line), line)
        names = re.findall(r"^# TYPE (\S+)", text, re.M)
        equal(len(names), len(set(names)), "each is declared once")
        equal(re.findall(r"^# HELP (\S+) \S", text, re.M), names, "and explained")
        equal([m for m, name in MEASURES.items() if "uar_" + name not in names], [])
        s.open_gate()
        for run_id in [gate] + queued:
            s.done(run_id)
        s.stop_run(s.begin("gate", {"file": s.file("never")}))
        text = s.http.get("/metrics").body.decode()
        equal(value(text, "uar_run_cancels_total", **lab, entry="gate"), 1)


main()
