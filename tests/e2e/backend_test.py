#!/usr/bin/env python3
"""Agents that are programs, through the real server: the fake CLI replays what real ones said."""
import hashlib
import json
import os
import signal
import sqlite3
import tempfile

from lib import all_of, check, check_run_stream, equal, main, refused, run_uar, test, text_of, wait_until
from lib.agents import put_file
from lib.backends import ASK, INIT, SAY, TALK, TOOL, Shop, of, one, recording

ALLOW = ["dialogue " + recording("claude_code/dialogue_permission_allow.dialogue.jsonl")]
DENY = ["dialogue " + recording("claude_code/dialogue_permission_deny.dialogue.jsonl")]
CODEX_ALLOW = ["dialogue " + recording("codex/app_server_approval_accept.dialogue.jsonl")]
CODEX_DENY = ["dialogue " + recording("codex/app_server_approval_decline.dialogue.jsonl")]
ACP_ALLOW = ["dialogue " + recording("acp/claude_permission_allow.dialogue.jsonl")]


def kinds(events):
    return [e["type"] for e in events]


@test("recorded_agents_become_runs_of_the_log", "")
def replayed():
    """Every entry: approval and tool call, in the order the log wants it."""
    with Shop({"claude": {"script": ALLOW}, "codex-app": {"entry": "codex", "script": CODEX_ALLOW},
               "acp-claude": {"entry": "acp", "script": ACP_ALLOW}}) as s:
        for agent in ("claude", "codex-app", "acp-claude"):
            run_id = s.create(agent, "hi")
            r = s.asked(run_id)
            action = r["actions"][0]
            equal(action["action_id"], run_id + ".1")
            equal(s.respond(action["action_id"]).status, 200)
            log = s.log_of(run_id)
            r = s.record(run_id)
            equal((r["status"], r["actions"]), ("succeeded", []), r)
            equal(of(log, "turn.started")[0]["payload"]["entry"], "backend")
            equal(one(log, "task.attempt.started")["payload"]["worker"]["kind"], "backend")
            check(one(log, "model.requested") and one(log, "model.completed"))
            check(of(log, "tool.started") and of(log, "tool.result"), kinds(log))
            session = [e["payload"]["backend_session"] for e in of(log, "thread.updated")
                       if "backend_session" in e["payload"]]
            equal([x["id"] for x in session], [r["backend_session"]["id"]])
            stream = s.events(run_id)
            check_run_stream(stream, run_id)
            check(text_of(stream), "no text")


@test("a_question_parks_the_run_and_its_first_answer_counts", "CTL-20 VAL-04 EVT-027 EVT-030 EVT-052 EVT-053")
def parked():
    with Shop({"claude": {"script": ALLOW}}) as s:
        run_id = s.create("claude", "hi")
        r = s.asked(run_id)
        action_id = r["actions"][0]["action_id"]
        with s.stream(run_id) as stream:
            asked = stream.until(lambda e: e.data["data"].get("action_id"))[-1].data["data"]
        equal((asked["action_type"], asked["status"], asked["tool_name"]),
              ("tool_permission", "pending", "Write"))
        check("hello file" in asked["scope"]["input"]["content"], asked)
        refused(s.respond(action_id, "perhaps"), 400, "VALIDATION_ERROR", "/decision")
        refused(s.respond(action_id, payload={"x": 1}), 400, "VALIDATION_ERROR", "/payload")
        refused(s.respond(run_id + ".2"), 404, "NOT_FOUND")
        refused(s.respond(run_id + ".0"), 404, "NOT_FOUND")
        refused(s.respond("nobody.1"), 404, "NOT_FOUND")
        refused(s.respond("x"), 404, "NOT_FOUND")
        equal(s.http.post("/api/control/respond_action", {"action_id": action_id,
                                                          "decision": "allow"}, token=False).status, 401)
        equal(s.asked(run_id)["actions"], r["actions"])
        a = s.respond(action_id, reason="looks fine")
        first = a.json["result"]
        equal((a.status, a.json["ok"], first["decision"], first["run_id"]), (200, True, "allow", run_id))
        equal((first["status"], first["resolved_by"]["type"]), ("resolved", "user"))
        other = s.respond(action_id, "deny")
        refused(other, 409, "ACTION_RESOLVED")
        equal(other.json["action"]["decision"], "allow", "another answer is told the first")
        log = s.log_of(run_id)
        again = s.respond(action_id)
        equal((again.status, again.json["result"]["resolved_at"]), (200, first["resolved_at"]))
        equal(again.json["event_ids"], a.json["event_ids"], "the same answer has the same outcome")
        check({"action.resolved"} <= {e["type"] for e in log if e["event_id"] in a.json["event_ids"]}, a.json)
        order = [k for k in kinds(log) if k.startswith(("action.", "permission.", "task.wait",
                                                        "task.resumed"))]
        equal(order, ["permission.requested", "action.required", "task.waiting",
                      "permission.resolved", "action.resolved", "task.resumed"])
        p = one(log, "action.resolved")["payload"]
        equal((p["result"], p["source"], p["resolved_by"]["type"], p["reason"]),
              ("allow", "respond_action", "user", "looks fine"))
        between = kinds(log)[kinds(log).index("task.waiting"):kinds(log).index("action.resolved")]
        check(not {"tool.result", "model.delta"} & set(between), between)


@test("of_many_answers_at_once_one_counts", "CTL-20")
def at_once():
    script = TALK + [ASK % (1, 1, "a"), "expect behavior", "result"]
    with Shop({"claude": {"script": script}}) as s:
        run_id = s.create("claude", "hi")
        s.asked(run_id)
        answers = all_of([lambda i=i: s.respond(run_id + ".1", ("allow", "deny")[i % 2])
                          for i in range(40)])
        p = one(s.log_of(run_id), "action.resolved")["payload"]
        wins = ("allow", "deny").index(p["decision"])
        for i, a in enumerate(answers):
            equal(a.status, 200 if i % 2 == wins else 409, "all who said the same have the same outcome")
            equal((a.json["result"] if a.status == 200 else a.json["action"])["decision"], p["decision"])
        equal({a.json["code"] for a in answers if a.status != 200}, {"ACTION_RESOLVED"})


@test("a_no_reaches_the_agent", "CTL-20")
def denied():
    with Shop({"claude": {"script": DENY}, "codex-app": {"entry": "codex", "script": CODEX_DENY}}) as s:
        for agent in ("claude", "codex-app"):
            run_id = s.create(agent, "hi")
            equal(s.respond(s.asked(run_id)["actions"][0]["action_id"], "deny").status, 200)
            log = s.log_of(run_id)
            equal(one(log, "action.resolved")["payload"]["result"], "deny")
            equal(one(log, "permission.resolved")["payload"]["outcome"], "denied")
            failed = one(log, "tool.failed")["payload"]
            equal((failed["status"], failed["failure_category"]), ("denied", "rejected"))
            equal(s.record(run_id)["status"], "succeeded")


@test("uar_approve_decides_like_the_api", "")
def by_command():
    with Shop({"claude": {"script": ALLOW}, "no": {"script": DENY}}) as s:
        run_id = s.create("claude", "hi")
        s.asked(run_id)
        shown = run_uar("show", "--data", s.data, run_id)
        check(run_id + ".1" in shown.stdout and "waiting_permission" in shown.stdout, shown.stdout)
        done = run_uar("approve", "--data", s.data, run_id)
        equal((done.returncode, done.stdout), (0, run_id + ".1  allow\n"), done.stderr)
        equal(s.finish(run_id)["status"], "succeeded")
        again = run_uar("approve", "--data", s.data, run_id)
        check(again.returncode == 1 and "waits for nothing" in again.stderr, again)
        again = run_uar("approve", "--data", s.data, run_id, run_id + ".1")
        equal((again.returncode, again.stdout), (0, run_id + ".1  allow\n"), "the first outcome")
        again = run_uar("approve", "--data", s.data, run_id, run_id + ".1", "--deny")
        check(again.returncode == 1 and "ACTION_RESOLVED" in again.stderr, again)
        run_id = s.create("no", "hi")
        s.asked(run_id)
        done = run_uar("approve", "--data", s.data, run_id, "1", "--deny", "--reason", "not today")
        equal((done.returncode, done.stdout), (0, run_id + ".1  deny\n"), done.stderr)
        p = one(s.log_of(run_id), "action.resolved")["payload"]
        equal((p["result"], p["reason"]), ("deny", "not today"))
        s.finish(run_id)
        asked = s.http.get(f"/api/runs/{run_id}/actions/1/input")
        for more in ([], ["1"], [run_id + ".1"]):  # the only question, its number, its id
            shown = run_uar("approve", "--data", s.data, run_id, "--show", *more)
            equal((shown.returncode, shown.stdout), (0, asked.body.decode() + "\n[answered] deny\n"), shown)
        shown = run_uar("approve", "--data", s.data, run_id, "1", "--show", "--json")
        equal(json.loads(shown.stdout), {"action_id": run_id + ".1", "input": asked.json,
                                         "decision": "deny", "source": "respond_action"})
        other = s.create("echo", "x")
        s.finish(other)
        shown = run_uar("approve", "--data", s.data, other, "--show")
        check(shown.returncode == 1 and "has asked nothing" in shown.stderr, shown)


@test("what_took_how_long_is_measured", "")
def measured():
    with Shop({"claude": {"script": ALLOW}}) as s:
        def number(name):
            text = s.http.get("/metrics").body.decode()
            found = [x for x in text.splitlines() if x.startswith(f"uar_{name}{{}} ") or x.startswith(f"uar_{name} ")]
            equal(len(found), 1, name)
            return float(found[0].split()[-1])
        equal([number(n + "_count") for n in ("permission_wait_seconds", "tool_seconds", "export_seconds")],
              [0, 0, 0])
        run_id = s.create("claude", "hi")
        equal(s.respond(s.asked(run_id)["actions"][0]["action_id"]).status, 200)
        log = s.log_of(run_id)
        equal(number("permission_wait_seconds_count"), 1)
        waited = one(log, "action.resolved")["payload"]["waited_ms"]
        check(abs(number("permission_wait_seconds_sum") - waited / 1000) < 1e-6)
        tools = [e["payload"]["duration_ms"] for e in of(log, "tool.result") + of(log, "tool.failed")]
        equal(number("tool_seconds_count"), len(tools))
        cost = sum(e["payload"].get("cost_usd", 0) for e in of(log, "model.completed"))
        check(abs(number("model_cost_usd_total") - cost) < 1e-5, cost)
        item = s.http.get(f"/runs/{run_id}/export").json["items"][0]["export_item_id"]
        equal(s.http.get(f"/runs/{run_id}/export/{item}/content").status, 200)
        equal(number("export_seconds_count"), 2)
        equal(number("run_time_limits_total"), 0)


JOIN = """
SELECT r.run_id, r.status, count(e.event_id),
       sum(e.payload ->> 'cost_usd'),
       sum(iif(e.type GLOB 'tool.*', e.payload ->> 'duration_ms', NULL)), max(e.payload ->> 'waited_ms'),
       max(iif(e.type = 'action.resolved', e.payload ->> 'result', NULL)),
       count(DISTINCT e.task_id), count(DISTINCT e.turn_id)
FROM runs r JOIN events e USING (run_id) GROUP BY r.rid ORDER BY r.rid"""


@test("ids_join_what_a_run_did_took_cost_and_proves", "OBS-03")
def joined():
    """One query over the stored log, and the streams, records and log lines say the same."""
    with Shop({"claude": {"script": ALLOW}, "no": {"script": DENY}}, log_level="debug") as s:
        runs = [s.create("claude", "hi"), s.create("no", "hi")]
        for run_id, decision in zip(runs, ("allow", "deny")):
            equal(s.respond(s.asked(run_id)["actions"][0]["action_id"], decision=decision).status, 200)
        logs = [s.log_of(run_id) for run_id in runs]
        db = sqlite3.connect(os.path.join(s.data, "uar.db"))
        rows = db.execute(JOIN).fetchall()
        db.close()
        equal([r[0] for r in rows], runs)
        for row, log in zip(rows, logs):
            record = s.record(row[0])
            equal((row[1], row[2]), (record["status"], len([e for e in log if e.get("run_id") == row[0]])))
            cost = sum(e["payload"]["cost_usd"] for e in of(log, "model.completed"))
            check(cost > 0 and abs(row[3] - cost) < 1e-9, row, cost)
            took = [e["payload"]["duration_ms"] for e in of(log, "tool.result") + of(log, "tool.failed")]
            equal(row[4], sum(took) if took else None)
            decided = one(log, "action.resolved")
            equal((row[5], row[6]), (decided["payload"]["waited_ms"], decided["payload"]["result"]))
            equal((row[7], row[8]), (1, 1))
            for item in s.http.get(f"/runs/{row[0]}/export").json["items"]:
                equal(item["run_id"], row[0])
            check(any(row[0] in x for x in s.log().splitlines()), "log lines name it")
        equal([r[6] for r in rows], ["allow", "deny"])


@test("what_waits_is_found_across_runs", "")
def waiting():
    two = TALK + [ASK % (1, 1, "a"), ASK % (2, 2, "b"), "expect allow", "expect deny", "result"]
    with Shop({"claude": {"script": ALLOW}, "two": {"script": two}}) as s:
        equal(s.http.get("/api/actions").json, {"actions": [], "next_cursor": None, "total": 0})
        equal(run_uar("approve", "--data", s.data).stdout, "nothing waits\n")
        first = s.create("claude", "hi", task_id="t-1")
        question = s.asked(first)["actions"][0]
        other = s.create("two", "hi")
        wait_until(lambda: len(s.record(other).get("actions", [])) == 2, "two questions")
        listed = s.http.get("/api/actions").json
        equal([a["action_id"] for a in listed["actions"]], [first + ".1", other + ".1", other + ".2"])
        equal(listed["next_cursor"], None)
        mine = listed["actions"][0]
        equal({k: mine[k] for k in question}, question, "as in the record")
        equal((mine["run_id"], mine["agent_id"], mine["task_id"]), (first, "claude", "t-1"))
        few = s.http.get("/api/actions?limit=1").json
        rest = s.http.get(f"/api/actions?limit=2&cursor={few['next_cursor']}").json
        equal([a["action_id"] for a in few["actions"] + rest["actions"]], [first + ".1", other + ".1", other + ".2"])
        refused(s.http.get("/api/actions?limit=0"), 400, "VALIDATION_ERROR", "?limit")
        equal(s.http.send("GET", "/api/actions", token=False).status, 401)
        shown = run_uar("approve", "--data", s.data)
        equal((shown.returncode, len(shown.stdout.splitlines())), (0, 3), shown.stderr)
        check(first + ".1" in shown.stdout and question["prompt"] in shown.stdout, shown.stdout)
        ps = {row.split()[0]: row.split()[1] for row in run_uar("ps", "--data", s.data).stdout.splitlines()}
        equal((ps[first], ps[other]), ("waiting", "waiting"))
        p = run_uar("ps", "--status", "waiting", "--data", s.data)
        equal([row.split()[:2] for row in p.stdout.splitlines()[1:]], [[other, "waiting"], [first, "waiting"]], p.stderr)
        page = s.http.get("/api/runs?status=waiting&limit=1").json
        equal(([r["run_id"] for r in page["runs"]], page["next_before"]), ([other], other))
        page = s.http.get(f"/api/runs?status=waiting&limit=1&before={other}").json
        equal(([r["run_id"] for r in page["runs"]], page["next_before"]), ([first], None))
        equal(s.record(first)["status"], "running", "the record keeps to its words")
        bad = run_uar("approve", "--data", s.data, "--deny")
        check(bad.returncode == 2 and "name the run" in bad.stderr, bad.stderr)
        for action, decision in ((first + ".1", "allow"), (other + ".1", "allow"), (other + ".2", "deny")):
            equal(s.respond(action, decision).status, 200)
        for run_id in (first, other):
            equal(s.finish(run_id)["status"], "succeeded")
        equal(s.http.get("/api/actions").json["actions"], [])
        logs = run_uar("logs", "--data", s.data, other).stdout
        asked = [x.split("] ", 1)[1].rsplit("  (", 1)[0] for x in logs.splitlines() if "[asks]" in x]
        equal(len(asked), 2, logs)
        for decision, title in zip(("allow", "deny"), asked):
            check(f"[answered] {decision}: {title}\n" in logs, logs)


@test("the_policy_of_a_definition_decides_and_is_recorded", "")
def policy():
    rules = [{"kind": "command", "decision": "deny"}, {"tool": "Wri*", "decision": "allow"}]
    with Shop({"yes": {"script": ALLOW, "policy": {"rules": rules}},
               "no": {"script": DENY, "policy": {"default": "deny"}}}) as s:
        for agent, decision, rule in (("yes", "allow", "rules/1"), ("no", "deny", "default")):
            log = s.log_of(s.create(agent, "hi"))
            p = one(log, "permission.evaluated")["payload"]
            equal((p["decision"], p["decision_source"], p["rule_refs"]), (decision, "rule", [rule]))
            equal(of(log, "action.required"), [])
            equal(log[-1]["type"], "turn.completed", kinds(log)[-4:])


@test("a_question_that_nobody_answers_expires_as_a_no", "")
def expired():
    with Shop({"claude": {"script": DENY, "policy": {"timeout_seconds": 0.2}}}) as s:
        run_id = s.create("claude", "hi")
        log = s.log_of(run_id)
        equal(s.record(run_id)["status"], "succeeded")
        p = one(log, "action.resolved")["payload"]
        equal((p["result"], p["source"], p["resolved_by"]["type"]), ("timeout", "timeout", "runtime"))
        check("timeout_at" in one(log, "action.required")["payload"])
        refused(s.respond(run_id + ".1"), 409, "ACTION_RESOLVED")


@test("several_questions_wait_side_by_side", "")
def several():
    script = TALK + [ASK % (1, 1, "a"), ASK % (2, 2, "b"), "expect allow", "expect deny", "result"]
    with Shop({"claude": {"script": script}}) as s:
        run_id = s.create("claude", "hi")
        wait_until(lambda: len(s.record(run_id).get("actions", [])) == 2, "two questions")
        many = run_uar("approve", "--data", s.data, run_id)
        check(many.returncode == 1 and run_id + ".2" in many.stderr, many)
        equal(s.respond(run_id + ".1", "allow").status, 200)
        equal([a["action_id"] for a in s.asked(run_id)["actions"]], [run_id + ".2"])
        equal(s.respond(run_id + ".2", "deny").status, 200)
        log = s.log_of(run_id)
        equal(s.record(run_id)["status"], "succeeded")
        equal(len(of(log, "task.waiting")), 1)
        equal(len(of(log, "task.resumed")), 1)


@test("what_is_to_be_approved_can_be_read_whole", "")
def whole_input():
    long = {"command": "echo " + "x" * 20000 + "\u00e9"}
    text = json.dumps(long, separators=(",", ":"), ensure_ascii=False)
    short = {"command": "ls"}
    deep = '{"list":' + "[" * 60 + "]" * 60 + "}"  # deeper than an event may be
    ask = ('{"type":"control_request","request_id":"r%d","request":{"subtype":"can_use_tool",'
           '"tool_name":"Bash","tool_use_id":"call-%d","input":%s}}\n')
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as f, Shop({"claude": {
            "script": TALK + ["cat " + f.name, *["expect allow"] * 3, SAY % "both", "result"]}}) as s:
        f.write(ask % (1, 1, text) + ask % (2, 2, json.dumps(short)) + ask % (3, 3, deep))
        f.flush()
        run_id = s.create("claude", "m")
        with s.stream(run_id) as stream:
            asked = stream.until(lambda e: e.data["data"].get("action_id") == run_id + ".3")
        first, second, third = [e.data["data"]["scope"] for e in asked if "scope" in e.data["data"]]
        equal((first["input_truncated"], first["input_bytes"]), (True, len(text.encode())))
        check(text.startswith(first["input_preview"]) and "input" not in first, first)
        equal(second["input"], short)  # in the order in which they were asked
        a = s.http.get(first["input_url"])
        equal((a.status, a.body.decode(), a.headers["content-type"]),
              (200, text, "application/json"))
        equal(hashlib.sha256(a.body).hexdigest(), first["input_sha256"])
        equal(s.http.get(f"/api/runs/{run_id}/actions/2/input").json, short)
        equal((third["input_truncated"], third["input_bytes"]), (True, len(deep)))
        equal(s.http.get(third["input_url"]).body.decode(), deep)
        for path in (f"/api/runs/{run_id}/actions/4/input", "/api/runs/none/actions/1/input"):
            refused(s.http.get(path), 404, "NOT_FOUND")

        def shown(*more, status=0):
            p = run_uar("approve", run_id, *more, "--data", s.data)
            equal(p.returncode, status, p.stderr)
            return p.stdout + p.stderr
        equal(shown("1", "--show"), text + "\n")
        equal(shown("3", "--show"), deep + "\n")
        equal(json.loads(shown(run_id + ".2", "--show", "--json")), {"action_id": run_id + ".2", "input": short})
        check("name one" in shown("--show", status=1) and "not asked that" in shown("4", "--show", status=1))
        check("decides nothing" in shown("1", "--show", "--deny", status=2))
        equal(len(s.record(run_id)["actions"]), 3, "nothing was decided")
        for n in (1, 2, 3):
            equal(s.respond(f"{run_id}.{n}").status, 200)
        equal(text_of(s.events(run_id)), "both")
        s.log_of(run_id)
        s.restart()
        equal(s.http.get(first["input_url"]).body.decode(), text)
        equal(shown("1", "--show"), text + "\n[answered] allow\n")
        several = shown("--show", status=1)
        check("name one:\n" in several and all(f"{run_id}.{n}  Bash" in several for n in (1, 2, 3)), several)
        s.restart(user="somebody-else")
        refused(s.http.get(first["input_url"]), 404, "NOT_FOUND")


@test("what_is_shown_to_who_decides_steers_no_terminal", "")
def evil_input():
    line = json.loads((ASK % (1, 1, "a")).split(" ", 1)[1])
    line["request"]["input"] = {"file_path": "/tmp/x\u202egpj.exe", "content": "\x1b[2Jharmless\u2066"}
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as f, Shop({"claude": {
            "script": TALK + ["cat " + f.name, "expect allow", "result"]}}) as s:
        f.write(json.dumps(line, ensure_ascii=False) + "\n")
        f.flush()
        run_id = s.create("claude", "m")
        s.asked(run_id)
        p = run_uar("approve", run_id, "--show", "--data", s.data)
        check("gpj.exe" in p.stdout and "harmless" in p.stdout, p)
        check(not set("\u202e\u2066\x1b") & set(p.stdout), ascii(p.stdout))
        equal(run_uar("approve", run_id, "--data", s.data).returncode, 0)
        s.finish(run_id)


def asked_beyond_its_time(seconds):
    """The record of a run whose question waited longer than the run may take; None: it was too slow itself."""
    script = TALK + [ASK % (1, 1, "a"), "expect allow", "result"]
    with Shop({"claude": {"script": script, "runtime": {"timeout_seconds": seconds}}}) as s:
        run_id = s.create("claude", "hi")
        wait_until(lambda: s.record(run_id).get("actions") or s.record(run_id)["status"] == "timeout", "the question")
        if s.record(run_id)["status"] == "timeout":
            return None
        asked = s.asked(run_id)
        began = os.times().elapsed
        wait_until(lambda: os.times().elapsed > began + seconds + 0.5, "more time than the run has")
        equal(s.asked(run_id)["actions"], asked["actions"])
        equal(s.respond(run_id + ".1").status, 200)
        r = s.finish(run_id)
        return r if r["status"] == "succeeded" else None


@test("the_time_of_people_is_not_counted", "")
def slow_people():
    check(any(asked_beyond_its_time(seconds) for seconds in (0.5, 4, 30)), "its time was over")


@test("a_run_over_its_time_is_ended_and_leaves_nothing", "")
def timed_out():
    with Shop({"claude": {"script": TALK + ["escape", "hang"],
                          "runtime": {"timeout_seconds": 0.5}}}) as s:
        run_id = s.create("claude", "hi")
        equal(s.finish(run_id)["status"], "timeout")
        wait_until(lambda: not s.survivors(), "the processes to be gone")


@test("cancel_ends_a_tool_and_every_process", "")
def cancel_in_tool():
    with Shop({"claude": {"script": TALK + [TOOL, "fork", "escape", "ignoreterm", "hang"]}}) as s:
        run_id = s.create("claude", "hi")
        with s.stream(run_id) as stream:
            stream.until(lambda e: e.data["type"] == "ToolStart")
        check(s.survivors(), "the agent is at work")
        s.cancel(run_id, reason="enough")
        r = s.finish(run_id)
        equal((r["status"], r["error"]["code"]), ("canceled", "CANCELED"))
        equal(s.survivors(), [], "cancelled means gone")
        log = s.log_of(run_id)
        equal(one(log, "tool.failed")["payload"]["status"], "cancelled")


@test("cancel_while_a_question_waits", "")
def cancel_parked():
    with Shop({"claude": {"script": ALLOW}}) as s:
        run_id = s.create("claude", "hi")
        s.asked(run_id)
        s.cancel(run_id)
        equal(s.finish(run_id)["status"], "canceled")
        p = one(s.log_of(run_id), "action.resolved")["payload"]
        equal((p["result"], p["source"]), ("cancel", "cancel"))
        refused(s.respond(run_id + ".1"), 409, "ACTION_RESOLVED")
        equal(s.survivors(), [])


@test("a_supervisor_that_is_killed_is_told_truthfully", "")
def supervisor_killed():
    """Where control groups can be made nothing survives, elsewhere the log says that something may."""
    with Shop({"claude": {"script": TALK + ["escape", "ignoreterm", SAY % "here", "hang"]}}) as s:
        run_id = s.create("claude", "hi")
        with s.stream(run_id) as stream:
            stream.until(lambda e: "here" in json.dumps(e.data))
        with_words = {pid: open(f"/proc/{pid}/cmdline", "rb").read() for pid in s.survivors()}
        os.kill(next(pid for pid, words in with_words.items() if words.startswith(b"agent-api-supervisor\0")), 9)
        r = s.finish(run_id)
        left = s.survivors()
        equal((r["status"], r["error"]["code"]), ("failed", "TRANSPORT_ERROR"), r)
        warned = [e for e in s.log_of(run_id) if "TERMINATION_FAILED" in json.dumps(e)]
        wanted = "detached themselves may survive" if warned else "every process of the run is ended"
        check(wanted in r["error"]["message"] and (warned or not left), r, warned, left)  # they may have died since
        for pid in left:
            os.kill(pid, 9)


@test("kill_9_in_a_tool_is_told_as_lost", "")
def killed_at_work():
    with Shop({"claude": {"script": TALK + [TOOL, "escape", "hang"]}}) as s:
        run_id = s.create("claude", "hi", conversation_id="talk")
        with s.stream(run_id) as stream:
            stream.until(lambda e: e.data["type"] == "ToolStart")
        s.kill()
        wait_until(lambda: not s.survivors(), "a dead server leaves no agent behind")
        s.start()
        r = s.finish(run_id)
        equal((r["status"], r["error"]["code"]), ("failed", "LOST"))
        equal(r["backend_session"]["id"], "s-1")
        log = s.log_of(run_id)
        equal(kinds(log)[-2:], ["task.lost", "turn.failed"])
        equal(one(log, "tool.failed")["payload"]["status"], "cancelled")


@test("kill_9_while_a_question_waits_ends_both", "VAL-04")
def killed_parked():
    with Shop({"claude": {"script": ALLOW}}) as s:
        run_id = s.create("claude", "hi")
        s.asked(run_id)
        s.kill()
        wait_until(lambda: not s.survivors(), "a dead server leaves no agent behind")
        s.start()
        r = s.finish(run_id)
        equal((r["status"], r["error"]["code"], r["actions"]), ("failed", "LOST", []))
        refused(s.respond(run_id + ".1"), 409, "ACTION_RESOLVED")
        p = one(s.log_of(run_id), "action.resolved")["payload"]
        equal(p["result"], "cancel")


@test("an_orderly_stop_leaves_no_process", "")
def stopped():
    with Shop({"claude": {"script": TALK + ["escape", "ignoreterm", "hang"]}}) as s:
        run_id = s.create("claude", "hi")
        wait_until(lambda: s.record(run_id).get("backend_session"), "the agent's session")
        equal(s.stop(), 0)
        equal(s.survivors(), [])
        s.start()
        equal(s.finish(run_id)["error"]["code"], "LOST")


@test("a_stop_that_cancels_ends_what_waits_for_an_answer", "")
def stop_cancels():
    with Shop({"claude": {"script": ALLOW}}, shutdown="cancel") as s:
        run_id = s.create("claude", "hi")
        s.asked(run_id)
        equal(s.stop(), 0)
        equal(s.survivors(), [])
        s.start()
        r = s.record(run_id)
        equal((r["status"], r["actions"]), ("canceled", []))


def arguments(s):
    with open(os.path.join(s.root, "rec", "argv")) as f:
        return f.read().split("\n")


@test("a_conversation_goes_on_in_the_agents_own_session", "")
def sessions():
    script = TALK + [SAY % "well", "result"]
    with Shop() as s:
        os.mkdir(s.file("rec"))
        s.define("claude", script, env={"FAKE_RECORD": s.file("rec")})
        s.restart()

        def play(**inputs):
            with open(os.path.join(s.root, "rec", "argv"), "w"):
                pass
            run_id = s.create("claude", "hi", conversation_id="talk", inputs=inputs)
            return s.finish(run_id), arguments(s)
        r, argv = play()
        equal((r["status"], r["backend_session"]["id"]), ("succeeded", "s-1"), r)
        check("--resume" not in argv, argv)
        s.restart()  # it is in the log, not in memory
        r, argv = play()
        equal(r["status"], "succeeded", r)
        equal(argv[argv.index("--resume") + 1], "s-1")
        check("--fork-session" not in argv, argv)
        again = s.http.post(f"/api/runs/{r['run_id']}/retry", {})
        equal(s.finish(again.json["run_id"])["status"], "succeeded", "another attempt")
        r, argv = play(session="fork")
        check(argv[argv.index("--resume") + 1] == "s-1" and "--fork-session" in argv, argv)
        r, argv = play(session="new")
        check("--resume" not in argv, argv)
        r, argv = play(session="resume", session_id="s-7")
        equal(argv[argv.index("--resume") + 1], "s-7")
        run_id = s.create("claude", "hi", conversation_id="other", inputs={"session": "resume"})
        r = s.finish(run_id)
        equal((r["status"], r["error"]["code"]), ("failed", "NOT_FOUND"), "never silently a new one")
        for bad, where in (({"session": "old"}, "/inputs/session"),
                           ({"session_id": "x"}, "/inputs/session_id"),
                           ({"working_dir": "/tmp"}, "/inputs/working_dir")):
            refused(s.http.post("/api/runs", {"agent_id": "claude", "inputs": {"message": "x", **bad}}),
                    400, "VALIDATION_ERROR", where)


@test("a_session_that_is_gone_fails_the_run", "")
def gone():
    script = ["expect initialize", "cat " + recording("claude_code/resume_id_not_found.jsonl"), "exit 1"]
    with Shop({"claude": {"script": script}}) as s:
        run_id = s.create("claude", "hi", inputs={"session": "resume", "session_id": "gone"})
        r = s.finish(run_id)
        equal((r["status"], r["error"]["code"], r["error"]["message"]),
              ("failed", "NOT_FOUND", "session not found"))


@test("bad_definitions_are_left_out_and_named", "ART-02 ART-03 ART-04")
def definitions():
    good = {"version": "1.0", "kind": "agent", "id": "x", "runtime": {"entry": "backend.codex"}}

    def with_(**more):
        return json.dumps({**good, **more})
    bad = {"syntax.json": "{", "version.json": with_(version="2.0"), "kind.json": with_(kind="skill"),
           "id.json": with_(id="a b"), "taken.json": with_(id="echo"), "twice.json": with_(id="codex-x"),
           "entry.json": with_(runtime={"entry": "llm.talk"}), "more.json": with_(tools={}),
           "acp.json": with_(runtime={"entry": "backend.acp"}),
           "option.json": with_(runtime={"entry": "backend.claude_code",
                                         "backend": {"sandbox_mode": "read-only"}})}
    with Shop({"codex-x": {"entry": "codex", "metadata": {
            "title": "Codex X", "description": "d", "tags": ["t"], "author": "a", "icon": "i"}}},
            files={**bad, "notes.txt": "no definition"}) as s:
        s.ready()
        agents = {a["agent_id"]: a for a in s.http.get("/api/agents").json["agents"]}
        equal(agents["codex-x"], {"agent_id": "codex-x", "title": "Codex X", "description": "d",
                                  "entry": "backend.codex", "takes_working_dir": False, "runnable": True})
        check("x" not in agents and "echo" in agents, agents)
        for name in bad:
            lines = [line for line in s.log().splitlines()
                     if "agent.refused" in line and "file=" + name in line]
            equal(len(lines), 1, name)
        check("notes.txt" not in s.log())
        refused(s.http.post("/api/runs", {"agent_id": "x", "inputs": {"message": "m"}}), 404,
                "NOT_FOUND")


@test("definitions_are_read_again_on_sighup", "")
def reload():
    def says(text):
        return {"script": TALK + [SAY % text, "result"]}
    asks = {"script": TALK + [ASK % (1, 1, "x"), "expect allow", SAY % "as begun", "result"]}
    with Shop({"changes": asks, "leaves": asks, "breaks": says("still here"),
               "stays": says("the same")}) as s:
        parked = [s.create(agent, "m") for agent in ("changes", "leaves")]
        actions = [s.asked(run_id)["actions"][0]["action_id"] for run_id in parked]
        s.define("changes", **says("anew"))
        s.define("comes", **says("here I am"))
        os.unlink(os.path.join(s.agents, "leaves.json"))
        put_file(s.agents, "breaks.json", '{"version": "1.0"}')
        s.proc.send_signal(signal.SIGHUP)

        def read_again():  # the folder is watched, too: it may be read twice
            a = {a["agent_id"] for a in s.http.get("/api/agents").json["agents"]}
            return "comes" in a and "leaves" not in a and "agent.refused file=breaks.json" in s.log() and a
        agents = wait_until(read_again, "all changes are seen")
        check({"changes", "breaks", "stays"} <= agents, agents)
        refused(s.http.post("/api/runs", {"agent_id": "leaves", "inputs": {"message": "m"}}), 404,
                "NOT_FOUND")
        for agent, text in (("changes", "anew"), ("comes", "here I am"), ("breaks", "still here"),
                            ("stays", "the same")):
            equal(text_of(s.events(s.create(agent, "m"))), text)
        for run_id, action in zip(parked, actions):  # these go on with what they began with
            equal(s.respond(action).status, 200)
            equal(text_of(s.events(run_id)), "as begun")
            equal(s.record(run_id)["status"], "succeeded")
        log = s.log()
        for line in ("agent.removed file=leaves.json text=leaves",
                     "agent.refused file=breaks.json"):
            equal(log.count(line), 1, log)
        equal(log.count("agent.loaded file=stays.json"), 1, "unchanged files are not loaded again")
        check("the earlier definition stays" in log, log)
        s.define("breaks", **says("mended"))
        s.proc.send_signal(signal.SIGHUP)
        wait_until(lambda: text_of(s.events(s.create("breaks", "m"))) == "mended", "the mended one")


@test("agents_without_a_definition_need_a_directory_and_leave_on_demand", "")
def ad_hoc():
    with Shop() as s:
        agents = [a["agent_id"] for a in s.http.get("/api/agents").json["agents"]]
        check({"codex", "claude_code", "acp:gemini"} <= set(agents), agents)
        refused(s.http.post("/api/runs", {"agent_id": "codex", "inputs": {"message": "m"}}), 400,
                "VALIDATION_ERROR", "/inputs/working_dir")
        s.restart(exec_agents="off")
        agents = [a["agent_id"] for a in s.http.get("/api/agents").json["agents"]]
        check("codex" not in agents, agents)


@test("an_agent_that_cannot_start_fails_its_run", "")
def no_program():
    with Shop({"claude": {"program": "/nonexistent/claude"}}) as s:
        r = s.finish(s.create("claude", "hi"))
        equal((r["status"], r["error"]["code"]), ("failed", "TRANSPORT_ERROR"), r)
        equal(r["error"]["message"], "the program claude is not where the definition says")
    with Shop({"adhoc": {"program": "no-such-claude"}, "lost": {"working_dir": "/nonexistent"},
               "free": {"script": ["result"], "allow_working_dir": True}}) as s:
        r = s.finish(s.create("adhoc", "hi"))
        equal(r["error"]["message"], "the program no-such-claude is not in the server's PATH")
        r = s.finish(s.create("lost", "hi"))
        equal(r["error"]["message"], "its working directory is not there, or not for it")
        for bad in ("/nonexistent", "/dev/null"):
            refused(s.http.post("/api/runs", {"agent_id": "free", "inputs": {
                "message": "m", "working_dir": bad}}), 400, "VALIDATION_ERROR",
                "/inputs/working_dir")
        p = run_uar("exec", "--data", s.data, "--cwd", "/nonexistent", "free", "hi")
        check(p.returncode == 1 and "/inputs/working_dir" in p.stderr and
              "No such file" in p.stderr, p.stderr)
        equal(len(s.http.get("/api/runs").json["runs"]), 2)  # none of these became a run


@test("failures_have_stable_codes_and_leak_nothing", "")
def failures():
    cases = {"e401": ("claude_code/error_401.jsonl", "PROVIDER_ERROR"),
             "e500": ("claude_code/error_500_retries.jsonl", "PROVIDER_ERROR"),
             "cut": ("claude_code/stream_cut.jsonl", None)}
    with Shop({k: {"script": ["expect initialize", "cat " + recording(f), "exit 1"]}
               for k, (f, _) in cases.items()}) as s:
        for agent, (_, code) in cases.items():
            run_id = s.create(agent, "hi")
            r = s.finish(run_id)
            if code:
                equal((r["status"], r["error"]["code"]), ("failed", code), r)
            whole = json.dumps(s.log_of(run_id))
            for canary in ("SECRET", "sk-ant", "x-api-key"):
                check(canary not in whole, canary, agent)


@test("a_stream_faster_than_the_disk_loses_nothing_and_stays_small", "")
def burst():
    count = int(os.environ.get("UAR_TEST_BURST", "200000"))
    with Shop({"claude": {"script": TALK + [f"burst {count}", "result"]}}) as s:
        run_id = s.create("claude", "hi")
        text = text_of(s.events(run_id))
        equal(len(text), sum(len(str(i)) for i in range(count)))
        last = str(count - 1)
        equal(text[:10] + text[-len(last):], "0123456789" + last)
        if "asan" not in os.environ.get("BUILD", ""):
            check(s.resident_kb() < 300000, s.resident_kb())


main()
