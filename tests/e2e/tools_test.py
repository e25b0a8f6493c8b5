#!/usr/bin/env python3
"""Tools that UAR executes itself, in runs of the real server: rounds, questions, kill -9, cancel."""
import json
import os
import platform
import signal
import sqlite3
import subprocess
import sys

from lib import (ROOT, Provider, Server, Skip, check, check_run_stream, check_session, equal, main, refused, run_uar,
                 test, text_of, wait_until)
from lib.client import connect, host_of
from lib.payloads import check_payload

# One token of the scripted model; long enough to be cut off in the middle of an answer.
SLOW = {"UAR_SCRIPTED_TOKEN_MS": "60000"}


def call(name, **args):
    return f"tool {name} {json.dumps(args)}"


def rounds(*each):
    return "\nthen\n".join("\n".join(r) for r in each)


TWO = rounds([call("math.evaluate", expression="6*7"), call("time.now")])
THREE = rounds([call("math.evaluate", expression="6*7")],
               [call("fs.list", path="."), call("math.evaluate", expression="1+1")])


def log_of(s, run_id):
    events = s.session_events(run_id)
    check_session(events)
    log = [e.data for e in events if e.data.get("run_id", run_id) == run_id]
    for e in log:
        check_payload(e)
    return log


def of(log, *kinds):
    return [e for e in log if e["type"] in kinds]


def stored(s, run_id):
    """What the database says, in its own order."""
    db = sqlite3.connect(f"file:{os.path.join(s.data, 'uar.db')}?mode=ro", uri=True)
    rows = db.execute("SELECT type FROM events WHERE run_id = ? ORDER BY run_sequence", (run_id,)).fetchall()
    db.close()
    return [r[0] for r in rows]


def check_calls(log):
    """Each call begins once and ends once; what it may do was decided before it began."""
    open_calls, seen = {}, set()
    for e in log:
        if e["type"] == "tool.started":
            check(e["tool_call_id"] not in seen, "a call begins twice", e)
            seen.add(e["tool_call_id"])
            open_calls[e["tool_call_id"]] = e
        elif e["type"] in ("tool.args", "tool.progress"):
            check(e["tool_call_id"] in open_calls, "no call is open", e)
        elif e["type"] in ("tool.result", "tool.failed"):
            check(open_calls.pop(e["tool_call_id"], None), "it ends twice", e)
    equal(open_calls, {}, "calls without an end")
    return seen


def check_rounds(log, models, tools):
    """So many model calls ended well and so many tools, none of them twice."""
    equal(len(of(log, "model.completed")), models, [e["type"] for e in log])
    equal(len(check_calls(log)), tools)
    equal(len(of(log, "tool.catalog.resolved")), 1)


@test("a_model_uses_tools_for_two_rounds_and_three", "RUN-03 RUN-05 TOOL-03 TOOL-07")
def rounds_of_tools():
    with Server() as s:
        for message, models, tools in ((TWO, 2, 2), (THREE, 3, 3)):
            run_id = s.create("tools", message)
            stream = s.events(run_id)
            check_run_stream(stream, run_id)
            equal(s.record(run_id)["status"], "succeeded")
            starts = [e.data["data"] for e in stream if e.type == "ToolStart"]
            ends = {e.data["data"]["tool_call_id"]: e.data["data"] for e in stream if e.type == "ToolEnd"}
            equal(len(starts), tools)
            equal({x["tool_call_id"] for x in starts}, set(ends))
            first = next(x for x in starts if x["tool"] == "math.evaluate")
            equal(first["input"], {"expression": "6*7"})
            equal((ends[first["tool_call_id"]]["output"], ends[first["tool_call_id"]]["ok"]), ({"value": 42}, True))
            check('said: {"value":42}' in text_of(stream), text_of(stream))
            log = log_of(s, run_id)
            check_rounds(log, models, tools)
            phases = [e["payload"]["phase"] for e in of(log, "run.status")]
            equal(phases[:7], ["start", "context_assembly", "skill_selection", "model_selection", "stream_start",
                               "llm_streaming", "tool_loop"])
            equal(phases[-2:], ["tool_loop", "finalize"])
            started = of(log, "tool.started")[0]["payload"]
            equal((started["tool_version"], started["policy"], started["status"]), ("1", "allowed", "running"))
            check(started["environment_id"], started)
            kinds = stored(s, run_id)
            equal(kinds, [e["type"] for e in log if e.get("run_id")])
            at = [kinds.index(k) for k in ("model.requested", "model.completed", "tool.catalog.resolved",
                                           "permission.evaluated", "tool.started", "tool.args", "tool.result")]
            equal(at, sorted(at))


@test("what_the_model_gets_wrong_it_is_told", "TOOL-06")
def told():
    with Server() as s:
        run_id = s.create("tools", rounds([call("nope"), "tool math.evaluate {broken", call("time.now", x=1)]))
        answer = text_of(s.events(run_id))
        log = log_of(s, run_id)
        equal([e["payload"]["failure_category"] for e in of(log, "tool.failed")],
              ["unknown_tool", "schema_invalid", "schema_invalid"])
        for word in ("unknown_tool", "schema_invalid"):
            check(word in answer, answer)
        check_rounds(log, 2, 3)
        equal(s.record(run_id)["status"], "succeeded")


def asked(s, run_id):
    r = wait_until(lambda: (lambda r: r if r.get("actions") else None)(s.record(run_id)), "a question")
    equal((r["status"], r["engine_status"]), ("running", "waiting_permission"))
    return r["actions"][0]


def respond(s, action_id, decision="allow", **more):
    return s.http.post("/api/control/respond_action", {"action_id": action_id, "decision": decision, **more})


def file_of(s, name):
    return os.path.join(s.data, "files", name)


@test("writing_a_file_has_to_be_allowed", "")
def allowed_and_denied():
    with Server() as s:
        run_id = s.create("tools", rounds([call("fs.write", path="a.txt", text="hello")],
                                          [call("fs.read", path="a.txt")]))
        action = asked(s, run_id)
        check(not os.path.exists(file_of(s, "a.txt")), "it was written before it was allowed")
        equal((action["tool_name"], action["prompt"]), ("fs.write", "fs.write: a.txt"))
        refused(respond(s, action["action_id"], "perhaps"), 400, "VALIDATION_ERROR", "/decision")
        equal(respond(s, action["action_id"]).status, 200)
        answer = text_of(s.events(run_id))
        check("hello" in answer, answer)
        with open(file_of(s, "a.txt")) as f:
            equal(f.read(), "hello")
        log = log_of(s, run_id)
        check_rounds(log, 3, 2)
        kinds = [e["type"] for e in log]
        at = [kinds.index(k) for k in ("permission.requested", "action.required", "action.resolved", "tool.started",
                                       "tool.args", "tool.result")]
        equal(at, sorted(at))
        equal(respond(s, action["action_id"]).json["result"]["decision"], "allow")
        refused(respond(s, action["action_id"], "deny"), 409, "ACTION_RESOLVED")

        run_id = s.create("tools", call("fs.write", path="b.txt", text="no"))
        asked(s, run_id)
        done = run_uar("approve", "--data", s.data, run_id, "1", "--deny", "--reason", "not today")
        equal(done.returncode, 0, done.stderr)
        answer = text_of(s.events(run_id))
        check("rejected" in answer and "not today" in answer, answer)
        check(not os.path.exists(file_of(s, "b.txt")))
        failed = of(log_of(s, run_id), "tool.failed")[0]["payload"]
        equal((failed["status"], failed["failure_category"]), ("denied", "rejected"))
        equal(s.record(run_id)["status"], "succeeded")


@test("texts_are_found_and_changed_in_files", "")
def search_and_edit():
    with Server() as s:
        os.makedirs(file_of(s, "notes"), mode=0o700)
        with open(file_of(s, "notes/a.txt"), "w", encoding="utf-8") as f:
            f.write("one fish\ntwo fish\n")
        run_id = s.create("tools", rounds([call("fs.search", text="two")],
                                          [call("fs.edit", path="notes/a.txt", old="two fish", new="red fish")],
                                          [call("fs.search", text="red", path="notes")],
                                          [call("fs.edit", path="notes/a.txt", old="fish", new="bird")]))
        for _ in range(2):
            action = asked(s, run_id)
            equal(action["tool_name"], "fs.edit")
            equal(respond(s, action["action_id"]).status, 200)
            wait_until(lambda: s.record(run_id).get("actions", [action]) != [action], "it goes on")
        log = log_of(s, run_id)
        equal(s.record(run_id)["status"], "succeeded")
        found = [e["payload"]["preview"] for e in of(log, "tool.result")]
        equal([m["line"] for m in (found[0]["matches"] + found[2]["matches"])], [2, 2], found)
        with open(file_of(s, "notes/a.txt"), encoding="utf-8") as f:
            equal(f.read(), "one fish\nred fish\n")
        failed, = of(log, "tool.failed")
        equal(failed["payload"]["failure_category"], "value_invalid", "the old text stands there twice")


@test("line_ends_in_arguments_do_not_cut_events", "")
def line_ends():
    with Provider() as p, Server(env=p.env("asks")) as s:
        run_id = s.create("assistant", json.dumps([
            ["internal__math_evaluate", '{\n\n  "expression":\r\n\n "6*7"\n}\n\n'],
            ["internal__math_evaluate", "{\n\n"],
            ["internal__math_evaluate", '[\n\n"6*7"]'],
            ["internal__fs_write", '\n\n{\n\n"path": "a.txt",\n\n"text":\n"x\\n"}'],
        ]))
        action = asked(s, run_id)
        equal(respond(s, action["action_id"]).status, 200)
        check_run_stream(s.events(run_id), run_id)
        log = log_of(s, run_id)  # each event of it is read as JSON
        check_rounds(log, 2, 4)
        equal([e["payload"]["safe_args"] for e in of(log, "tool.started")],
              [{"expression": "6*7"}, {}, {}, {"path": "a.txt", "text": "x\n"}])
        equal([e["payload"]["args"] for e in of(log, "tool.args")],
              [{"expression": "6*7"}, "{\n\n", '[\n\n"6*7"]', {"path": "a.txt", "text": "x\n"}])
        asking = of(log, "action.required")[0]["payload"]
        equal(asking["scope"]["input"], {"path": "a.txt", "text": "x\n"})
        told = p.stats()["last"]["messages"]
        check('\n\n' in next(m for m in told if m.get("tool_calls"))["tool_calls"][0]["function"]["arguments"], told)


@test("what_a_call_was_is_the_same_after_kill_9", "TOOL-12")
def kept():
    """Arguments and outputs too long for an event, decisions and errors, read again from the log."""
    text = "x" * 9000
    with Server() as s:
        runs = [s.create("tools", rounds([call("fs.write", path="a.txt", text=text)],
                                         [call("fs.read", path="a.txt")], [call("fs.read", path="b.txt")])),
                s.create("tools", call("fs.write", path="b.txt", text="no"))]
        for run_id, decision in zip(runs, ("allow", "deny")):
            equal(respond(s, asked(s, run_id)["action_id"], decision).status, 200)
            s.finish(run_id)
        logs = [log_of(s, run_id) for run_id in runs]
        s.restart()
        equal([log_of(s, run_id) for run_id in runs], logs)
        for kind, ref, want in (("tool.started", "args_ref", {"path": "a.txt", "text": text}),
                                ("tool.result", "output_ref", None)):
            sha256 = next(e["refs"][ref] for e in of(logs[0], kind) if ref in e.get("refs", {})).partition("://")[2]
            with open(os.path.join(s.data, "blobs", sha256[:2], sha256[2:])) as f:
                value = json.load(f)
            equal(value if want else value["text"], want or text)
        equal([e["payload"]["decision"] for log in logs for e in of(log, "action.resolved")], ["allow", "deny"])
        equal([e["payload"]["failure_category"] for log in logs for e in of(log, "tool.failed")],
              ["value_invalid", "rejected"])


@test("a_question_waits_through_kill_9", "")
def question_survives():
    with Server() as s:
        message = rounds([call("math.evaluate", expression="6*7")], [call("fs.write", path="a.txt", text="x")],
                         [call("time.now")])
        run_id = s.create("tools", message)
        action = asked(s, run_id)
        for _ in range(2):
            s.restart()
            equal(asked(s, run_id), action)
            wait_until(lambda: s.http.get("/ready").status == 200, "the end of recovery")  # an answer is 503 before
        check(not os.path.exists(file_of(s, "a.txt")))
        equal(respond(s, action["action_id"]).status, 200)
        equal(s.finish(run_id)["status"], "succeeded")
        check_rounds(log_of(s, run_id), 4, 3)
        check(os.path.exists(file_of(s, "a.txt")))


@test("rounds_go_on_after_kill_9_where_they_were", "RUN-05")
def rounds_survive():
    message = rounds([call("math.evaluate", expression="6*7")], [call("math.evaluate", expression="1+1")],
                     [call("time.now")])
    for last in ("ToolStart", "ToolEnd", "ChatDelta"):
        with Server() as s:
            run_id = s.create("tools", message)
            for wanted in (1, 2, 3):
                with s.stream(run_id) as stream:
                    count = 0
                    for e in stream:
                        count += e.type == last
                        if count == wanted or e.type in ("RunDone", "Error"):
                            break
                s.restart()
            equal(s.finish(run_id)["status"], "succeeded")
            log = log_of(s, run_id)
            check_rounds(log, 4, 3)
            equal(len({e["model_request_id"] for e in of(log, "model.completed")}), 4)
            results = [e["payload"]["preview"] for e in of(log, "tool.result")]
            equal(results[:2], [{"value": 42}, {"value": 2}])


@test("cancelling_ends_a_run_between_and_in_its_rounds", "TOOL-14")
def cancelled():
    with Server() as s:
        run_id = s.create("tools", call("fs.write", path="a.txt", text="x"))
        action = asked(s, run_id)
        s.cancel(run_id)
        equal(s.finish(run_id)["status"], "canceled")
        refused(respond(s, action["action_id"]), 409, "ACTION_RESOLVED")
        check(not os.path.exists(file_of(s, "a.txt")))
        check_calls(log_of(s, run_id))
    with Server(env=SLOW) as s:
        run_id = s.create("tools", TWO)
        with s.stream(run_id) as stream:
            stream.until(lambda e: e.type in ("ReasoningDelta", "ChatDelta"))
        s.cancel(run_id)
        equal(s.finish(run_id)["status"], "canceled")
        check_calls(log_of(s, run_id))


HANGS = [sys.executable, os.path.join(ROOT, "tests", "lib", "hang_openat2.py")]


def hangs(pid, number=437):
    """Is one of its threads in the call that nobody answers?"""
    for name in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{name}/syscall") as f:
                if f.read().startswith(f"{number} "):
                    return True
        except PermissionError as e:
            raise Skip("what a thread does is not told here") from e
        except (FileNotFoundError, ProcessLookupError):
            continue
    return False


@test("a_tool_that_hangs_does_not_keep_the_server", "")
def hanging_tool():
    if subprocess.run([*HANGS, "/bin/true"]).returncode:
        raise Skip("no seccomp listener here")
    for settings, signals in (({"drain_seconds": "0.1"}, 1), ({"drain_seconds": "1h"}, 2)):
        with Server(under=HANGS, **settings) as s:
            run_id = s.create("tools", call("fs.read", path="a.txt"))
            wait_until(lambda: hangs(s.pid), "a thread that hangs")
            for _ in range(signals):
                s.proc.send_signal(signal.SIGTERM)
                wait_until(lambda: "server.draining" in s.log(), "the first signal")
            equal(s.wait(), 0)
            s.under = []
            s.start()
            equal(s.finish(run_id)["status"], "succeeded")
            check_rounds(log_of(s, run_id), 2, 1)


def needs_hanging():
    if subprocess.run([*HANGS, "/bin/true"]).returncode:
        raise Skip("no seccomp listener here")


def cut_by_its_limit(s, tool, seconds):
    """The run and its log. Somebody allows what it asks for, unless the time is over before."""
    answer = s.http.post("/api/runs", {"agent_id": "tools", "inputs": {"message": tool}, "timeout": seconds})
    run_id = answer.json["run_id"]

    def settled():
        r = s.record(run_id)
        for action in r.get("actions") or ():
            respond(s, action["action_id"])
        return r if r["finished_at"] else None
    r = wait_until(settled, "the end")
    return r, log_of(s, run_id)


@test("the_time_limit_of_a_run_cuts_a_tool_that_hangs", "TOOL-14")
def limit_cuts():
    needs_hanging()
    for tool, changes in ((call("fs.read", path="a.txt"), False), (call("fs.write", path="a.txt", text="x"), True)):
        for seconds in (1, 4, 16):  # on a slow machine the time is over before the tool has begun
            with Server(under=HANGS, drain_seconds="0.1", scripted_token_ms=0) as s:
                r, log = cut_by_its_limit(s, tool, seconds)
                equal((r["status"], r["error"]["code"]), ("timeout", "TIMEOUT"))
                if not of(log, "tool.started"):
                    continue
                check(hangs(s.pid), "the tool is not at work any more")
                check_calls(log)
                failed = of(log, "tool.failed")[0]["payload"]
                equal((failed["status"], failed["failure_category"]), ("timed_out", "timeout"))
                equal("may have taken effect" in failed["message"], changes)
                break
        else:
            check(False, "the tool has never begun in time")


@test("cancelling_does_not_wait_for_a_tool_that_has_changed_nothing", "TOOL-14")
def cancel_cuts():
    needs_hanging()
    with Server(under=HANGS, drain_seconds="0.1") as s:
        run_id = s.create("tools", call("fs.write", path="a.txt", text="x"))
        equal(respond(s, asked(s, run_id)["action_id"]).status, 200)
        wait_until(lambda: hangs(s.pid), "a thread that hangs")
        s.cancel(run_id)
        equal(s.finish(run_id)["status"], "canceled")
        check(hangs(s.pid), "the tool is not at work any more")
        failed = of(log_of(s, run_id), "tool.failed")[0]["payload"]
        equal((failed["status"], failed["message"]), ("cancelled", "cancelled before it changed anything"))


@test("tools_that_hang_do_not_hold_up_those_of_others", "TOOL-05")
def others_go_on():
    needs_hanging()
    with Server(under=HANGS, env={"HANG_FIRST": "2"}, drain_seconds="0.1") as s:
        for _ in range(2):
            s.create("tools", call("fs.list"))
        wait_until(lambda: s.metric("uar_work_running") == 2, "both threads at work")
        run_id = s.create("tools", call("fs.list"))
        equal(s.finish(run_id)["status"], "succeeded")
        equal(len(of(log_of(s, run_id), "tool.result")), 1)
        check(s.metric("uar_work_threads") > 2)
        check(s.metric("uar_work_running") >= 2, "what hung does not")


@test("a_write_that_kill_9_cuts_leaves_nothing_behind", "")
def nothing_left():
    """Killed right before the text gets its name; beside a new file, and beside one that is replaced."""
    needs_hanging()
    number = {"x86_64": 265, "aarch64": 37}.get(platform.machine(), -1)
    for before in (None, "old"):
        with Server(under=HANGS, env={"HANG_CALL": "linkat"}) as s:
            os.makedirs(os.path.join(s.data, "files"))
            if before:
                with open(file_of(s, "a.txt"), "w") as f:
                    f.write(before)
            with open(file_of(s, ".uar-0123456789abcdef"), "w") as f:
                f.write("left by another one")
            os.utime(file_of(s, ".uar-0123456789abcdef"), (1, 1))
            run_id = s.create("tools", rounds([call("fs.write", path="a.txt", text="new")], [call("fs.list")]))
            equal(respond(s, asked(s, run_id)["action_id"]).status, 200)
            wait_until(lambda: hangs(s.pid, number), "a thread that hangs")
            s.kill()
            equal(sorted(os.listdir(file_of(s, "."))), [".uar-0123456789abcdef"] + ["a.txt"] * bool(before))
            s.under = []
            s.start()
            equal(s.finish(run_id)["status"], "succeeded")
            equal(os.listdir(file_of(s, ".")), ["a.txt"])
            with open(file_of(s, "a.txt")) as f:
                equal(f.read(), "new")


@test("one_run_does_not_take_all_threads_with_it", "TOOL-05")
def run_is_bounded():
    """Calls without a run count together, as those of one; who leaves gives its call up."""
    needs_hanging()
    with Server(under=HANGS, env={"HANG_FIRST": "3"}, drain_seconds="0.1") as s:
        body = {"tool_id": "internal:fs.list", "arguments": {}}
        text = json.dumps(body)
        request = (f"POST /api/tools/call HTTP/1.1\r\nHost: {host_of(s.url)}\r\nAuthorization: Bearer {s.token}\r\n"
                   f"Content-Type: application/json\r\nContent-Length: {len(text)}\r\n\r\n{text}").encode()
        for n in range(3):
            with connect(s.url) as leaves:
                leaves.sendall(request)
                wait_until(lambda: s.metric("uar_work_running") == n + 1, "a call that hangs")
        answer = wait_until(lambda: (lambda a: a if not a.json["ok"] else None)(s.http.post("/api/tools/call", body)),
                            "the refusal")
        equal((answer.json["error"]["failure_category"], answer.json["error"]["retryable"]), ("dependency", True))
        run_id = s.create("tools", call("fs.list"))
        s.finish(run_id)
        equal(len(of(log_of(s, run_id), "tool.result")), 1, "another run is not concerned")


@test("the_next_turn_of_a_conversation_goes_on_after_tools", "RUN-05")
def next_turn():
    with Server() as s:
        first = s.create("tools", TWO, conversation_id="c")
        s.finish(first)
        second = s.create("tools", "tool math.evaluate {\"expression\":\"3\"}", conversation_id="c")
        equal(s.finish(second)["status"], "succeeded")
        log = log_of(s, second)
        said = of(log, "context.resolved")[0]["payload"]["omissions"]
        check(any(x["ref"] == "run://" + first and "tool calls" in x["reason"] for x in said), said)
        check_rounds(log, 2, 1)


@test("agents_without_tools_are_told_of_none", "")
def without():
    with Server() as s:
        run_id = s.create("echo", "hi")
        s.finish(run_id)
        equal(of(log_of(s, run_id), "tool.catalog.resolved"), [])
        run_id = s.create("demo", "hi")
        s.finish(run_id)
        log = log_of(s, run_id)
        equal(of(log, "tool.catalog.resolved"), [], "it uses none")
        count = of(log, "model.requested")[0]["payload"]["tool_count"]
        check(count >= 3, count)
        run_id = s.create("tools", TWO)
        s.finish(run_id)
        listed = of(log_of(s, run_id), "tool.catalog.resolved")[0]["payload"]
        equal((listed["count"], len(listed["tools"])), (count, count))


if __name__ == "__main__":
    main()
