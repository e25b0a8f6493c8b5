#!/usr/bin/env python3
"""What each id names and to whom it belongs, what a status means, and what is never taken for granted."""
import hashlib
import json
import os

from lib import Provider, Server, check, check_session, equal, main, refused, test, text_of, wait_until
from lib.backends import ASK, SAY, TALK, Shop
from lib.payloads import check_payload
from lib.plugins import Lab


def log_of(s, run_id):
    events = s.session_events(run_id)
    check_session(events)
    log = [e.data for e in events]
    for e in log:
        check_payload(e)
    return log


def of(log, *kinds):
    return [e for e in log if e["type"] in kinds]


def call(name, **args):
    return f"tool {name} {json.dumps(args)}"


def asked(s, run_id):
    return wait_until(lambda: s.record(run_id).get("actions"), "a question")


def respond(s, action_id, decision="allow"):
    return s.http.post("/api/control/respond_action", {"action_id": action_id, "decision": decision})


def blob(s, ref):
    sha256 = ref.removeprefix("blob://")
    with open(os.path.join(s.data, "blobs", sha256[:2], sha256[2:]), "rb") as f:
        return f.read()


@test("a_thread_lives_in_one_session", "ID-03")
def threads():
    with Lab() as s:
        runs = [s.create("echo", str(i), conversation_id="c") for i in range(3)] + [s.create("echo", "x", conversation_id="d")]
        sessions = [s.finish(r)["session_id"] for r in runs]
        equal(len(set(sessions[:3])), 1)
        check(sessions[3] != sessions[0], "another thread, another session")
        s.restart()
        late = s.create("demo", "y", conversation_id="c")  # another agent, another process
        equal(s.finish(late)["session_id"], sessions[0])
        # Nobody can put it elsewhere: a caller names the thread, never the session.
        refused(s.http.post("/api/runs", {"agent_id": "echo", "inputs": {"message": "m"}, "conversation_id": "c",
                                          "session_id": sessions[3]}), 400, "VALIDATION_ERROR", "/session_id")
        refused(s.post_run("echo", {"say": 1}, session_id=sessions[3]), 400, "VALIDATION_ERROR", "/session_id")
        log = log_of(s, late)
        equal({e["thread_id"] for e in log if "thread_id" in e}, {"c"})
        turns = [e["run_id"] for e in of(log, "turn.started")]
        equal(turns, runs[:3] + [late], "in the order in which they came")
        equal(len(of(log, "thread.started")), 1)


@test("an_attempt_belongs_to_one_task", "ID-06")
def attempts():
    with Lab() as s:
        first = s.begin("fails", {}, task_id="t-1")
        s.done(first)
        second = s.http.post(f"/runs/{first}/retry", {}).json["run_id"]
        s.done(second)
        check(second != first, "a retry is another attempt")
        other = s.begin("fails", {})
        s.done(other)
        log = log_of(s, second)
        owner = {}
        for e in log:
            if "run_id" in e:
                owner.setdefault(e["run_id"], set()).add((e["task_id"], e["attempt_id"]))
        equal(owner, {first: {("t-1", first)}, second: {("t-1", second)}}, "each attempt has one task for all its events")
        started = {e["run_id"]: e["payload"] for e in of(log, "task.attempt.started")}
        equal([started[r]["attempt"] for r in (first, second)], [1, 2])
        equal([started[r]["worker"]["kind"] for r in (first, second)], ["plugin"] * 2, "the attempt binds a worker")
        mine = {e["task_id"] for e in log_of(s, other) if "run_id" in e}
        check(len(mine) == 1 and mine != {"t-1"}, "a run without a task of the caller's has one of its own", mine)


@test("each_call_of_a_tool_has_a_step_of_its_own", "ID-08")
def steps():
    with Server() as s:
        os.makedirs(os.path.join(s.data, "files"))
        with open(os.path.join(s.data, "files", "a.txt"), "w") as f:
            f.write("y" * 9000)
        run_id = s.create("tools", "\nthen\n".join([
            call("math.evaluate", expression="6*7") + "\n" + call("math.evaluate", expression="6*7"),
            call("fs.read", path="a.txt") + "\n" + call("math.evaluate", expression="1/0")]))
        log = of(log_of(s, run_id), "tool.started", "tool.args", "tool.progress", "tool.result", "tool.failed")
        pairs = {(e["tool_call_id"], e["step_id"]) for e in log}
        equal(len(of(log, "tool.started")), 4)
        equal((len(pairs), len({c for c, _ in pairs}), len({x for _, x in pairs})), (4, 4, 4), "one to one")
        for call_id, step in pairs:
            mine = [e["type"] for e in log if e["tool_call_id"] == call_id]
            equal((mine[0], mine.count("tool.started")), ("tool.started", 1), step)
            equal(sum(k in ("tool.result", "tool.failed") for k in mine), 1, mine)
        long = [e for e in of(log, "tool.result") if e["payload"]["output_bytes"] > 9000]
        equal(json.loads(blob(s, long[0]["refs"]["output_ref"]))["text"], "y" * 9000, "its result is referred to")


@test("an_action_is_resolved_by_its_id_alone", "ID-09")
def actions():
    with Server() as s:
        runs = [s.create("tools", call("fs.write", path="a.txt", text="x")) for _ in range(2)]
        ids = [asked(s, run_id)[0]["action_id"] for run_id in runs]
        check(ids[0] != ids[1], ids)
        refused(respond(s, ids[0] + "0"), 404, "NOT_FOUND")
        equal(respond(s, ids[0], "deny").status, 200)
        equal(s.finish(runs[0])["actions"], [])
        equal([a["action_id"] for a in asked(s, runs[1])], [ids[1]], "the other one is still open")
        refused(respond(s, ids[0]), 409, "ACTION_RESOLVED")
        equal(respond(s, ids[1], "deny").status, 200)
        for run_id, action_id in zip(runs, ids):
            log = log_of(s, run_id)
            required, resolved = of(log, "action.required"), of(log, "action.resolved")
            equal([e["action_id"] for e in required + resolved], [action_id] * 2, "one decision, one id")
            equal({(e["run_id"], e["turn_id"], e["task_id"]) for e in required + resolved},
                  {(run_id, log[-1]["turn_id"], log[-1]["task_id"])}, "it belongs to this turn and task")


@test("events_hold_references_and_the_store_holds_bytes", "ID-11 FACT-01")
def artifacts():
    """What is longer than a preview is in no row of the log, whoever made it; its id leads to it."""
    canary = "canary-of-an-artifact "
    page = "<p>" + canary * 400 + "</p>\n"
    with Provider() as p, Lab(env=p.env("repeat")) as s:
        answer = s.create("assistant", "look:\n```html A page\n" + page + "```\n")
        log = log_of(s, answer)
        e = of(log, "artifact.changed")[0]
        check(e["artifact_id"], e)
        equal((e["payload"]["bytes"], e["payload"]["sha256"]), (len(page), hashlib.sha256(page.encode()).hexdigest()))
        equal(blob(s, e["refs"]["read_ref"]), page.encode())
        equal(s.http.get(f"/api/runs/{answer}/blobs/{e['payload']['sha256']}").body, page.encode())
        run = s.play("items")
        items = s.items(run["run_id"])["items"]
        events = {e["artifact_id"]: e for e in of(log_of(s, run["run_id"]), "artifact.changed")}
        equal({i["export_item_id"] for i in items}, set(events), "an item is an artifact, by the same id")
        for item in items:
            e = events[item["export_item_id"]]
            if e["payload"]["bytes"] <= 2048:
                continue
            check("preview" not in e["payload"] and e["refs"]["read_ref"].startswith("blob://"), e)
            got = s.http.get(f"/runs/{run['run_id']}/export/{item['export_item_id']}/content")
            equal(hashlib.sha256(got.body).hexdigest(), e["payload"]["sha256"], "the id leads to the bytes")
        for e in [*of(log, "artifact.changed"), *events.values()]:
            check(json.dumps(e).count(canary.strip()) <= 2048 // len(canary) + 1, "more than a preview of it is in an event", e)
            check(len(json.dumps(e)) < 2048 + 2048, "bytes in an event", e)


@test("a_request_is_accepted_before_anything_else", "STAT-01")
def accepted():
    with Provider() as p, Server(env=p.env("gate")) as s:
        first = s.create("assistant", "one", conversation_id="c")
        second = s.create("assistant", "two", conversation_id="c")  # waits behind it
        s.kill()  # what was answered is in the log
        p.release()
        s.start()
        log = log_of(s, second)
        for run_id, status in ((first, "accepted"), (second, "queued")):
            mine = [e for e in log if e.get("run_id") == run_id]
            equal((mine[0]["type"], mine[0]["run_sequence"], mine[0]["payload"]["status"]),
                  ("turn.submitted", 1, status), "the first fact")
            equal((mine[1]["type"], mine[1]["payload"]["status"]), ("task.created", "accepted"))
            check(s.record(run_id)["created_at"] <= s.record(run_id)["started_at"])


@test("a_run_that_waits_for_permission_says_so", "STAT-06 CTL-49")
def waiting():
    with Server() as s:
        run_id = s.create("tools", call("fs.write", path="a.txt", text="x"))
        action = asked(s, run_id)[0]["action_id"]
        path = os.path.join(s.data, "files", "a.txt")
        for _ in range(2):  # nothing that happens meanwhile is a yes, not even a restart
            r = s.record(run_id)
            equal((r["status"], r["engine_status"], r["finished_at"]), ("running", "waiting_permission", None))
            equal(s.finish(s.create("tools", call("math.evaluate", expression="6*7")))["status"], "succeeded",
                  "another task goes on")
            equal(s.finish(s.create("echo", "hi"))["status"], "succeeded")
            check(not os.path.exists(path), "it was done without a yes")
            s.restart()
            wait_until(lambda: s.http.get("/ready").status == 200, "the end of recovery")
        equal([a["action_id"] for a in asked(s, run_id)], [action])
        refused(s.http.post("/api/control/respond_action", {"action_id": action}), 400, "VALIDATION_ERROR", "/decision")
        check(not os.path.exists(path), "an answer without a decision is no yes")
        s.cancel(run_id)
        r = s.finish(run_id)
        equal((r["status"], r["actions"]), ("canceled", []))
        log = log_of(s, run_id)
        waits = of(log, "task.waiting")
        equal([e["payload"]["status"] for e in waits[:1]], ["waiting_permission"])
        equal(of(log, "tool.started"), [], "it never began")
        check(not os.path.exists(path))


@test("a_question_that_expires_or_dies_with_its_run_is_a_no", "CTL-49")
def expires():
    ask = [*TALK, ASK % (1, 1, "x"), "expect deny", "result"]
    with Shop({"claude": {"script": ask, "policy": {"timeout_seconds": 1}}, "echo2": {"script": TALK + [SAY % "hi", "result"]}}) as s:
        run_id = s.create("claude", "hi")
        with s.session_stream(s.record(run_id)["session_id"]) as stream:
            stream.until(lambda e: e.data["type"] == "action.required")
        equal(s.finish(s.create("echo2", "hi"))["status"], "succeeded", "another task goes on")
        log = log_of(s, run_id)
        outcome = of(log, "permission.resolved")[0]["payload"]
        check(outcome["outcome"] != "allowed", outcome)
        refused(s.respond(run_id + ".1"), 409, "ACTION_RESOLVED")


@test("a_lost_worker_is_lost_whatever_its_plan_says", "STAT-11 TASK-07")
def lost():
    todo = ('line {"type":"assistant","message":{"id":"m2","content":[{"type":"tool_use","id":"call-9","name":"TodoWrite",'
            '"input":{"todos":[{"content":"everything","status":"completed","activeForm":"done"}]}}]}}')
    with Shop({"claude": {"script": TALK + [SAY % "All is done.", todo, "hang"]}}) as s:
        run_id = s.create("claude", "hi")
        with s.stream(run_id) as stream:
            stream.until(lambda e: e.type == "ToolStart" or "TodoWrite" in e.text)
        equal(s.record(run_id)["status"], "running", "a list of what is done ends nothing")
        s.kill()
        wait_until(lambda: not s.survivors(), "a dead server leaves no agent behind")
        s.start()
        r = s.finish(run_id)
        equal((r["status"], r["engine_status"], r["error"]["code"]), ("failed", "lost", "LOST"))
        log = log_of(s, run_id)
        equal(of(log, "task.completed", "turn.completed", "task.attempt.completed"), [])
        end = of(log, "task.attempt.failed")[0]["payload"]
        equal((end["status"], of(log, "task.lost")[0]["payload"]["status"]), ("lost", "lost"))
        equal([e.type for e in s.events(run_id)][-1], "Error")
    # A task that was made by a command is lost with its attempt, and has another one when it is asked for.
    with Shop({"claude": {"script": TALK + [SAY % "All is done.", todo, "hang"]}}) as s:
        def command(name, **body):
            a = s.http.post("/api/control/" + name, body)
            equal(a.status, 200, a.body)
            return a.json["result"]
        task_id = command("create_task", objective="hi", agent_id="claude")["task"]["task_id"]
        run_id = command("start_task", task_id=task_id)["attempt"]["run_id"]
        with s.stream(run_id) as stream:
            stream.until(lambda e: e.type == "ToolStart" or "TodoWrite" in e.text)
        s.kill()
        wait_until(lambda: not s.survivors(), "a dead server leaves no agent behind")
        s.start()
        wait_until(lambda: command("get_task", task_id=task_id)["task"]["status"] == "lost", "the task is lost")
        equal(command("get_task", task_id=task_id)["task"]["last_error"]["code"], "LOST")
        again = command("retry_task", task_id=task_id, cause="worker_lost", agent_id="echo", input={"message": "x"})
        s.finish(again["attempt"]["run_id"])
        wait_until(lambda: command("get_task", task_id=task_id)["task"]["status"] == "completed", "it is done")
        t = command("get_task", task_id=task_id)["task"]
        equal([(a["status"], a["error_code"]) for a in t["attempts"]], [("failed", "LOST"), ("succeeded", None)])
    # Its worker alone is killed: the run has failed, and is no success either.
    with Shop({"claude": {"script": TALK + [SAY % "All is done.", todo, "signal 9"]}}) as s:
        r = s.finish(s.create("claude", "hi"))
        equal(r["status"], "failed", r)


@test("completed_means_that_all_of_it_is_stored", "STAT-13")
def completed():
    """Whoever hears of the end finds everything, also when the server dies in that moment."""
    page = "<h1>Title</h1>\n" * 400
    with Provider() as p, Lab(env=p.env("repeat")) as s:
        for kind in ("assistant", "plugin"):
            run_id = (s.create("assistant", "```html\n" + page + "```\n") if kind == "assistant" else s.begin("items"))
            with s.stream(run_id) as stream:
                stream.until(lambda e: e.type in ("RunDone", "Error"))
            s.restart()  # kill -9 as soon as the end was heard
            r = s.record(run_id)
            equal((r["status"], r["engine_status"]), ("succeeded", "completed"))
            log = log_of(s, run_id)
            end = of(log, "task.completed")[0]
            equal(end["payload"]["reconciled"], {"artifacts": True, "evidence": True, "delivery": True})
            things = of(log, "artifact.changed")
            check(things and all(e["sequence"] < end["sequence"] for e in things), "artifacts after the end")
            for e in things:
                ref = e.get("refs", {}).get("read_ref", "")
                if ref.startswith("blob://"):
                    equal(hashlib.sha256(blob(s, ref)).hexdigest(), e["payload"]["sha256"])
            equal(end["payload"]["result_refs"], r["result_refs"])
            if kind == "plugin":
                equal(len(s.items(run_id)["items"]), len(things))


@test("what_a_tool_was_given_said_and_was_allowed_is_in_the_log", "VAL-03")
def inspected():
    text = "x" * 9000
    with Server() as s:
        run_id = s.create("tools", "\nthen\n".join([call("fs.write", path="a.txt", text=text), call("fs.read", path="a.txt"),
                                                    call("fs.read", path="gone.txt")]))
        equal(respond(s, asked(s, run_id)[0]["action_id"]).status, 200)
        denied = s.create("tools", call("fs.write", path="b.txt", text="no"))
        equal(respond(s, asked(s, denied)[0]["action_id"], "deny").status, 200)
        log, no = log_of(s, run_id), log_of(s, denied)
        write, read, gone = of(log, "tool.started")
        equal(json.loads(blob(s, write["refs"]["args_ref"].replace("args://", "blob://"))), {"path": "a.txt", "text": text})
        equal(read["payload"]["safe_args"], {"path": "a.txt"}, "short ones are there as they are")
        results = {e["tool_call_id"]: e for e in of(log, "tool.result")}
        equal(json.loads(blob(s, results[read["tool_call_id"]]["refs"]["output_ref"]))["text"], text)
        failure = of(log, "tool.failed")[0]
        equal((failure["tool_call_id"], failure["payload"]["failure_category"]), (gone["tool_call_id"], "value_invalid"))
        check(failure["payload"]["error"]["code"] and failure["payload"]["error"]["message"], failure)
        decisions = {e["payload"]["decision_id"]: e for e in of(log + no, "permission.evaluated", "permission.requested",
                                                                  "permission.resolved")}
        for e in of(log, "tool.started"):
            check(e["payload"]["decision_id"] in decisions, "who allowed it?", e)
        equal([e["payload"]["outcome"] for e in of(log, "permission.resolved")], ["allowed"])
        equal([e["payload"]["outcome"] for e in of(no, "permission.resolved")], ["denied"])
        equal([(e["payload"]["status"], e["payload"]["failure_category"]) for e in of(no, "tool.failed")],
              [("denied", "rejected")])


main()
