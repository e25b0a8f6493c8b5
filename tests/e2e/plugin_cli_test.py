#!/usr/bin/env python3
"""Everything about entries and their runs from a terminal: words for people, JSON for programs."""
import json
import os
import pty
import subprocess

from lib import check, equal, main, test
from lib.check import readable
from lib.plugins import Lab
from lib.server import UAR, clean_environment, run_uar


def line(s):
    def uar(*argv):
        return run_uar(*argv, "--url", s.url, env={"UAR_TOKEN": s.token})
    return uar


def on_terminal(s, *argv):
    """What a person sees, and the exit status."""
    ours, theirs = pty.openpty()
    env = clean_environment(s.root, {"UAR_TOKEN": s.token, "TERM": "xterm"})
    with subprocess.Popen([UAR, *argv, "--url", s.url], stdin=theirs, stdout=theirs, stderr=theirs,
                          env=env) as p:
        os.close(theirs)
        seen = b""
        while readable(ours):
            try:
                piece = os.read(ours, 65536)
            except OSError:  # the other end is closed
                break
            if not piece:
                break
            seen += piece
    os.close(ours)
    return seen.decode(), p.returncode


@test("verbs_speak_json", "")
def as_json():
    with Lab() as s:
        uar = line(s)

        def ask(*argv, status=0):
            p = uar(*argv, "--json")
            equal(p.returncode, status, p.stderr)
            return json.loads(p.stdout.splitlines()[-1])
        entries = ask("plugins")["entries"]
        check({"plugin_id", "entry_id", "version"} <= set(entries[0]), entries[0])
        run_id = ask("trigger", "lab", "gate", "--args", json.dumps({"file": s.file("gate")}))["run_id"]
        s.until(run_id, lambda r: r["progress"] == 0.5)
        check(run_id in [r["run_id"] for r in ask("ps")["runs"]])
        equal(ask("show", run_id)["status"], "running")
        check(ask("cancel", run_id)["status"] in ("cancel_requested", "canceled"))
        s.done(run_id)
        equal(ask("show", run_id)["status"], "canceled")
        check(ask("logs", run_id, "-f")["type"] in ("Error", "RunDone"))
        again = ask("retry", run_id)["run_id"]
        check(again != run_id)
        s.open_gate()
        equal(s.done(again)["status"], "succeeded")
        r = ask("trigger", "lab", "fails", "--wait", status=1)
        equal((r["status"], r["error"]["code"]), ("failed", "QUOTA"))


@test("the_end_of_a_run_is_the_exit_status", "")
def statuses():
    with Lab() as s:
        uar = line(s)
        never = json.dumps({"file": s.file("never")})
        equal(uar("trigger", "lab", "echo", "--args", '{"say": 1}', "--wait").returncode, 0)
        shown = uar("trigger", "lab", "many", "--args", '{"n": 2050}', "--wait").stdout
        equal(len([line for line in shown.splitlines() if line.startswith("item ")]), 2050, "all pages")
        equal(uar("trigger", "lab", "raises", "--wait").returncode, 1)
        equal(uar("trigger", "lab", "gate", "--args", never, "--timeout", "1s", "--wait").returncode, 4)
        run_id = uar("trigger", "lab", "gate", "--args", never).stdout.strip()
        s.until(run_id, lambda r: r["progress"] == 0.5)
        equal(uar("cancel", run_id, "--reason", "no need").returncode, 0)
        s.done(run_id)
        check("no need" in uar("show", run_id).stdout)
        p = uar("retry", run_id)
        equal(p.returncode, 0, p.stderr)
        s.stop_run(p.stdout.strip())


@test("mistakes_are_explained", "")
def mistakes():
    with Lab() as s:
        uar = line(s)
        for argv, status, text in (
                (("trigger", "lab", "echo", "--args", "{}"), 1, "VALIDATION_ERROR: /args"),
                (("trigger", "lab", "echo", "--args", "["), 2, "--args takes a JSON object"),
                (("trigger", "lab", "echo", "--timeout", "soon"), 2, "--timeout takes"),
                (("trigger", "other", "echo"), 1, 'no plugin is named "other"'),
                (("trigger", "lab", "other"), 1, 'no entry "other"'),
                (("trigger", "lab"), 2, "usage: uar trigger PLUGIN ENTRY"),
                (("show", "none"), 1, "NOT_FOUND"), (("cancel", "none"), 1, "NOT_FOUND"),
                (("retry", "none"), 1, "NOT_FOUND"), (("logs", "none", "-f"), 1, "NOT_FOUND")):
            p = uar(*argv)
            equal(p.returncode, status, (argv, p.stderr))
            check(text in p.stderr and p.stdout == "", argv, p.stderr)


@test("a_terminal_shows_progress_as_it_is_made", "PLUG-03")
def terminal():
    with Lab() as s:
        s.open_gate()
        args = json.dumps({"file": s.file("gate")})
        seen, status = on_terminal(s, "trigger", "lab", "gate", "--args", args, "--wait")
        check(status == 0 and "[ 50%]" in seen and "at the gate" in seen and "through" in seen, seen)
        check("\r\x1b[K" in seen, "the line of progress is taken away", seen)
        run_id = s.http.get("/runs?limit=1").json["runs"][0]["run_id"]
        seen, status = on_terminal(s, "logs", "-f", run_id)
        check(status == 0 and "[ 50%]" in seen, seen)
        p = line(s)("logs", "-f", run_id)
        check("50%" not in p.stdout, "not in a pipe", p.stdout)


main()
