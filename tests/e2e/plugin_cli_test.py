#!/usr/bin/env python3
"""Everything about entries and their runs from a terminal: words for people, JSON for programs."""
import hashlib
import json
import os
import pty
import signal
import subprocess

from lib import check, equal, main, test
from lib.check import SAFETY, readable
from lib.plugins import LAB, Lab
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


@test("what_a_waiting_program_gets_is_one_object", "")
def whole_as_json():
    with Lab() as s:
        uar = line(s)

        def ask(*argv):
            p = uar(*argv, "--wait", "--json")
            equal((p.returncode, p.stderr, p.stdout.count("\n")), (0, "", 1))
            r = json.loads(p.stdout)
            as_exported = uar("export", r["run_id"], "--json").stdout.splitlines()
            equal(r["items"], [json.loads(x) for x in as_exported])
            equal({k: r[k] for k in r if k != "items"}, s.http.get("/api/runs/" + r["run_id"]).json)
            return r
        items = ask("trigger", "lab", "echo", "--args", '{"say": 1}')["items"]
        equal([(x["label"], x["json"]) for x in items][-1], ("result", 1))
        many = ask("trigger", "lab", "many", "--args", '{"n": 2050}')
        equal(len([x for x in many["items"] if x["type"] == "text"]), 2050, "all pages")
        equal(ask("retry", many["run_id"])["attempt"], 2)


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


@test("whoever_leaves_a_run_is_told_its_name", "")
def left():
    with Lab() as s:
        argv = ["trigger", "lab", "gate", "--args", json.dumps({"file": s.file("gate")}), "--wait"]
        ours, theirs = pty.openpty()  # where progress shows that it follows the run
        with subprocess.Popen([UAR, *argv, "--url", s.url], stdout=subprocess.PIPE, stderr=theirs,
                              env=clean_environment(s.root, {"UAR_TOKEN": s.token, "TERM": "xterm"})) as p:
            os.close(theirs)
            seen = b""
            while b"at the gate" not in seen:
                check(readable(ours), seen)
                seen += os.read(ours, 65536)
            p.send_signal(signal.SIGINT)
            equal((p.wait(SAFETY), p.stdout.read()), (-signal.SIGINT, b""))
        while b"stops it" not in seen:
            check(readable(ours), seen)
            seen += os.read(ours, 65536)
        os.close(ours)
        run_id = s.http.get("/runs?limit=1").json["runs"][0]["run_id"]
        check(f"the run goes on: `uar logs -f {run_id}` shows it, `uar cancel {run_id}`".encode() in seen, seen)
        s.open_gate()
        equal(s.done(run_id)["status"], "succeeded")


@test("mistakes_are_explained", "")
def mistakes():
    with Lab() as s:
        uar = line(s)
        for argv, status, text in (
                (("trigger", "lab", "echo", "--args", "{}"), 1, "VALIDATION_ERROR: /args"),
                (("trigger", "lab", "echo", "--args", "["), 2, "--args takes a JSON object: 1:2"),
                (("trigger", "lab", "echo", "--args", '{"say": }'), 2, "--args takes a JSON object: 1:9"),
                (("trigger", "lab", "echo", "--args", "[]"), 2, "--args takes a JSON object"),
                (("trigger", "lab", "echo", "--timeout", "soon"), 2, "--timeout takes"),
                (("trigger", "other", "echo"), 1, 'no plugin is named "other"'),
                (("trigger", "lab", "other"), 1, 'no entry "other"'),
                (("trigger", "lab"), 2, "usage: uar trigger PLUGIN ENTRY"),
                (("show", ""), 1, "cannot be the id of a run"), (("show", "\u00e9"), 1, "cannot be the id of a run"),
                (("show", "none"), 1, "no run none"), (("cancel", "none"), 1, "no run none"),
                (("retry", "none"), 1, "no run none"), (("logs", "none", "-f"), 1, "no run none"),
                (("approve", "none"), 1, "no run none")):
            p = uar(*argv)
            equal(p.returncode, status, (argv, p.stderr))
            check(text in p.stderr and p.stdout == "", argv, p.stderr)


@test("a_plugin_in_place_of_its_folder_is_noticed", "")
def not_the_parent():
    with Lab(os.path.join(LAB, "lab")) as s:
        check("plugins.not_a_folder_of_plugins" in s.log() and "takes the folder that holds it" in s.log(), s.log())


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
        check("[ 50%] at the gate\n" in p.stdout and "\r" not in p.stdout, "lines in a pipe", p.stdout)


@test("logs_tell_what_a_run_did", "")
def logs():
    with Lab() as s:
        run_id = s.begin("burst", {"n": 1, "file": s.file_that_exists()})
        s.done(run_id)
        shown = line(s)("logs", run_id).stdout.splitlines()
        check("[status] resting all said" in shown or "[  0%] resting all said" in shown, shown)
        run_id = s.begin("items")
        s.done(run_id)
        shown = line(s)("logs", run_id).stdout
        check("[text] greeting: hello\n" in shown, shown)
        check("[url] " in shown and "http://x/y" in shown, shown)
        check(f"[text] a long text  (uar export {run_id})\n" in shown, "where the whole of it is", shown)
        plain = [json.loads(x) for x in line(s)("logs", run_id, "--json").stdout.splitlines()]
        check("meta" not in [e["type"] for e in plain], "programs get what the stream has")


@test("items_come_to_a_terminal_and_into_files", "")
def items():
    with Lab() as s:
        uar = line(s)
        run_id = s.begin("items", trace_id="ab" * 16)
        s.done(run_id)
        all_items = s.items(run_id)["items"]
        shown = uar("export", run_id).stdout.splitlines()
        equal(len(shown), len(all_items))
        equal(shown[:3], ["hello", "http://x/y", "http://x/z"])
        check(shown[3].startswith("[65536 bytes] ") and f"uar export {run_id} 4 -o" in shown[3], shown[3])
        equal(json.loads(shown[4]), {"deep": [1, None]})
        as_json = [json.loads(x) for x in uar("export", run_id, "--json").stdout.splitlines()]
        equal(as_json, all_items)
        out = s.file("bytes")
        equal(uar("export", run_id, "4", "-o", out).returncode, 0)
        with open(out, "rb") as f:
            equal(f.read(), bytes(range(256)) * 256)
        check(not os.path.exists(out + ".part"))
        equal(uar("export", run_id, all_items[5]["export_item_id"]).stdout, "ä" * 20000)
        equal(uar("export", run_id, "2").stdout, "http://x/y\n")
        for argv, text in (((run_id, "99"), "no item 99"), ((run_id, "2", "-o", out), "elsewhere"),
                           (("none",), "no run none"), ((run_id, "-o", out), "which item?"),
                           ((run_id, "1", "-o", s.file("no/such/folder")), "No such file")):
            p = uar("export", *argv)
            check(p.returncode and text in p.stderr, argv, p.stderr)
        seen, status = on_terminal(s, "export", run_id, "4")
        check(status == 1 and "not for a terminal" in seen, seen)


@test("an_upload_of_any_size_is_fetched", "")
def upload():
    with Lab() as s:
        run_id = s.begin("large", {"n": 9000001, "file": s.file("upload")})
        r = s.done(run_id)
        equal(r["status"], "succeeded", r)
        out = s.file("out")
        items = s.items(run_id)["items"]
        at = [i for i, x in enumerate(items) if x["type"] == "binary_url"][0]
        p = line(s)("export", run_id, str(at + 1), "-o", out)
        equal(p.returncode, 0, p.stderr)
        with open(out, "rb") as f:
            data = f.read()
        equal((len(data), hashlib.sha256(data).hexdigest()), (items[at]["bytes"], items[at]["sha256"]))


@test("runs_are_started_and_found_by_what_they_are", "")
def by_name():
    with Lab() as s:
        uar = line(s)
        path = s.file("args.json")
        with open(path, "w") as f:
            json.dump({"say": "x" * 300000, "n": 1}, f)
        a = uar("trigger", "lab", "many", "--args", "@" + path, "--task-id", "t-1", "--trace-id",
                "ab" * 16).stdout.strip()
        r = s.done(a)
        equal((r["status"], r["task_id"], r["trace_id"]), ("succeeded", "t-1", "ab" * 16))
        p = run_uar("trigger", "lab", "echo", "--args", "-", "--url", s.url, input='{"say": 7}',
                    env={"UAR_TOKEN": s.token})
        b = p.stdout.strip()
        equal(s.done(b)["status"], "succeeded")
        c = uar("retry", b).stdout.strip()
        s.done(c)
        d = s.begin("context")
        s.done(d)

        def found(*argv):
            return [r["run_id"] for r in json.loads(uar("ps", "--json", *argv).stdout)["runs"]]
        equal(found("--entry", "echo"), [c, b])
        equal(found("--plugin", "lab", "--entry", "context"), [d])
        equal(found("--task", "t-1"), [a])
        equal(found("--root", b), [c, b])
        equal(found("--plugin", "other"), [])
        ids = [a, b, c, d]
        for run_id in ids:
            n = max(len(os.path.commonprefix([run_id, x])) for x in ids if x != run_id)
            equal(json.loads(uar("show", run_id[:n + 1], "--json").stdout)["run_id"], run_id)
        many = uar("show", os.path.commonprefix(ids))
        check(many.returncode == 1 and "several runs begin with" in many.stderr, many.stderr)
        none = uar("show", "ffff")
        check(none.returncode == 1 and "NOT_FOUND: no run ffff" in none.stderr, none.stderr)
        for argv, text in ((("--args", "@/nonexistent"), "cannot be read"),
                           (("--trace-id", "x y"), "trace_id must be 1 to 128")):
            p = uar("trigger", "lab", "echo", *argv)
            check(p.returncode and text in p.stderr, p.stderr)


main()
