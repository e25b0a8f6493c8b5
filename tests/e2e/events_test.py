#!/usr/bin/env python3
"""Classes of the log, one after the other: provoked, with their payload, and what the record says then.

Each test names the classes that it provokes; a payload is held against the schema of its class."""
import contextlib
import json
import os
import sqlite3
import tempfile

from lib import FIXTURES, Provider, Server, check, check_session, equal, main, test, text_of, wait_until
from lib.backends import SAY, TALK, Shop, recording
from lib.payloads import check_payload
from lib.plugins import Lab


def log_of(s, run_id):
    """The session's events so far as the run goes; each payload fits its class."""
    events = s.session_events(run_id)
    check_session(events)
    log = [e.data for e in events]
    for e in log:
        check_payload(e)
    return [e for e in log if e.get("run_id", run_id) == run_id]


def payloads(log, kind):
    found = [e["payload"] for e in log if e["type"] == kind]
    check(found, "no", kind, [e["type"] for e in log])
    return found


def places(log, *kinds):
    """Each of them is there, and they come in this order."""
    at = [next((i for i, e in enumerate(log) if e["type"] == k), None) for k in kinds]
    check(None not in at and at == sorted(at), dict(zip(kinds, at)))


@test("a_run_from_its_submission_to_its_end",
      "EVT-017 EVT-018 EVT-019 EVT-021 EVT-023 EVT-024 EVT-037 EVT-039 EVT-040 EVT-041 EVT-042 EVT-044 "
      "EVT-094 EVT-095")
def whole():
    with Provider() as p, Server(env=p.env("gate:thinks")) as s:
        first = s.create("assistant", "one", conversation_id="c")
        p.wait_for(requests=1)
        second = s.create("assistant", "two", conversation_id="c")
        waits = s.record(second)
        equal((waits["status"], waits["started_at"], waits["finished_at"]), ("queued", None, None),
              "task.queued, and no turn.started")
        runs = s.record(first)
        equal((runs["status"], runs["finished_at"]), ("running", None))
        check(runs["started_at"] >= runs["created_at"], runs)
        p.release()
        log = log_of(s, second)
        places(log, "turn.submitted", "task.created", "task.queued", "task.attempt.started", "task.started",
               "turn.started", "model.requested", "reasoning.delta", "model.delta",
               "model.completed", "task.attempt.completed", "task.completed", "turn.completed")
        equal("".join(x["text"] for x in payloads(log, "model.delta")), "before after")
        equal("".join(x["text"] for x in payloads(log, "reasoning.delta")), "Let me see. ")
        phases = [x["phase"] for x in payloads(log, "run.status")]
        check(phases[0] == "start" and phases[-1] == "finalize", phases)
        r = s.record(second)
        equal((r["status"], r["progress"], r["error"], r["stage"]), ("succeeded", None, None, phases[-1]))
        usage = payloads(log, "model.completed")[0]["usage"]
        equal({k: r["usage"][k] for k in ("input_tokens", "output_tokens")},
              {k: usage[k] for k in ("input_tokens", "output_tokens")}, "usage is in the record")
        check(s.record(first)["finished_at"] <= r["started_at"] <= r["finished_at"], r)


@test("a_call_that_fails", "EVT-020 EVT-035 EVT-043 EVT-096")
def failed():
    with Provider() as p, Server(env=p.env("err500")) as s:
        run_id = s.create("assistant", "hi")
        log = log_of(s, run_id)
        places(log, "model.failed", "task.attempt.failed", "task.failed", "turn.failed")
        equal(payloads(log, "turn.failed")[0]["status"], "failed")
        r = s.record(run_id)
        equal((r["status"], r["error"]["code"]), ("failed", payloads(log, "task.failed")[0]["error"]["code"]))


@test("a_run_that_is_cancelled", "EVT-020 EVT-032 EVT-033")
def cancelled():
    with Provider() as p, Server(env=p.env("gate")) as s:
        run_id = s.create("assistant", "hi")
        p.wait_for(requests=1)
        s.cancel(run_id, reason="enough")
        log = log_of(s, run_id)
        places(log, "task.cancel_requested", "task.attempt.failed", "task.cancelled", "turn.failed")
        equal(payloads(log, "turn.failed")[0]["status"], "cancelled")
        r = s.record(run_id)
        equal((r["status"], r["cancel_requested"], r["cancel_reason"]), ("canceled", True, "enough"))
        check(r["cancel_requested_at"] <= r["finished_at"], r)


@test("a_run_whose_time_is_over", "EVT-020 EVT-034")
def timed_out():
    with Provider() as p, Server(env=p.env("gate")) as s:
        run_id = s.create("assistant", "hi", timeout=0.2)
        log = log_of(s, run_id)
        places(log, "task.attempt.failed", "task.timed_out", "turn.failed")
        equal(payloads(log, "turn.failed")[0]["status"], "timed_out")
        equal((s.record(run_id)["status"], s.record(run_id)["error"]["code"]), ("timeout", "TIMEOUT"))


@test("a_run_of_a_plugin_that_reports_is_lost_and_tried_again", "EVT-026 EVT-031 EVT-036")
def lost():
    with Lab() as s:
        run_id = s.begin("gate_once", {"file": s.file("gate")})
        r = s.until(run_id, lambda r: r["progress"] == 0.5)
        equal(r["message"], "at the gate", "task.progress is in the record")
        s.restart()
        log = log_of(s, run_id)
        equal(payloads(log, "task.progress")[0]["progress"], 0.5)
        places(log, "task.progress", "task.attempt.failed", "task.lost", "turn.failed")
        equal(s.record(run_id)["error"]["code"], "LOST")
        s.open_gate()
        again = s.http.post(f"/runs/{run_id}/retry", {}).json["run_id"]
        log = log_of(s, again)
        places(log, "task.retrying", "task.attempt.started", "task.completed")
        r = s.record(again)
        equal((r["status"], r["attempt"], r["parent_run_id"]), ("succeeded", 2, run_id))


@test("tools_that_are_reported", "EVT-047 EVT-048 EVT-049 EVT-050 EVT-051")
def tools():
    with Server(fixtures_dir=FIXTURES) as s:
        run_id = s.create("fixture", None, inputs={"fixture": "tools", "pace": "full"})
        log = log_of(s, run_id)
        places(log, "tool.started", "tool.args", "tool.progress", "tool.result")
        shown = {e.data["data"]["tool_call_id"]: e.data["data"] for e in s.events(run_id) if e.type == "ToolEnd"}
        for kind, ok in (("tool.result", True), ("tool.failed", False)):
            calls = [e["tool_call_id"] for e in log if e["type"] == kind]
            check(calls, "no", kind)
            equal({shown[c]["ok"] for c in calls}, {ok}, kind)
        equal(s.record(run_id)["status"], "succeeded")


@test("questions_and_what_a_policy_decides", "EVT-071 EVT-072 EVT-073")
def permissions():
    allow = ["dialogue " + recording("claude_code/dialogue_permission_allow.dialogue.jsonl")]
    with Shop({"asks": {"script": allow},
               "rules": {"script": allow, "policy": {"default": "allow"}}}) as s:
        run_id = s.create("asks", "hi")
        action = s.asked(run_id)["actions"][0]["action_id"]
        equal(s.respond(action).status, 200)
        log = log_of(s, run_id)
        places(log, "permission.requested", "action.required", "permission.resolved", "action.resolved")
        equal(payloads(log, "permission.resolved")[0]["outcome"], "allowed")
        equal(s.record(run_id)["actions"], [], "nothing waits any more")
        run_id = s.create("rules", "hi")
        log = log_of(s, run_id)
        equal(payloads(log, "permission.evaluated")[0]["decision"], "allow")
        equal([e for e in log if e["type"] == "permission.requested"], [], "nobody was asked")
        equal(s.record(run_id)["status"], "succeeded")


@test("the_operators_rules_and_interactive_reach_programs", "")
def programs():
    allow = ["dialogue " + recording("claude_code/dialogue_permission_allow.dialogue.jsonl")]
    rules = [{"tool": "program:*", "class": "write", "decision": "deny", "reason": "not on this machine"}]
    with Shop({"rules": {"script": allow, "policy": {"default": "allow"}}},
              env={"UAR_PERMISSIONS": json.dumps({"rules": rules})}) as s:
        p = payloads(log_of(s, s.create("rules", "hi")), "permission.evaluated")[0]
        equal((p["decision"], p["decision_source"], p["decision_reason"], p["rule_refs"]),
              ("deny", "host_policy", "not on this machine", ["host:rules/0"]))
        check({"source": "definition", "decision": "allow", "by": "host_policy"} in p["overridden"], p)
    deny = ["dialogue " + recording("claude_code/dialogue_permission_deny.dialogue.jsonl")]
    codex = ["dialogue " + recording("codex/app_server_approval_decline.dialogue.jsonl")]
    with Shop({"asks": {"script": deny}, "silent": {"script": codex, "entry": "codex", "approval_policy": "never",
                                                    "policy": {"default": "deny"}}}) as s:
        run_id = s.create("asks", "hi", interactive=False)
        log = log_of(s, run_id)
        p = payloads(log, "permission.evaluated")[0]
        equal((p["decision"], "nobody can be asked" in p["decision_reason"]), ("deny", True), p)
        equal([e for e in log if e["type"] in ("permission.requested", "action.required")], [])
        warned = lambda log: [e["payload"] for e in log if e["payload"].get("code") == "POLICY_NOT_ENFORCED"]
        equal(warned(log), [])
        silent = warned(log_of(s, s.create("silent", "hi", interactive=False)))
        check(len(silent) == 1 and "not_enforced" in silent[0]["message"], silent)
        equal(warned(log_of(s, s.create("silent", "hi"))), [], "where nothing is to be enforced nothing is said")


@test("what_is_left_out_and_what_is_kept_apart", "EVT-055 EVT-117 EVT-010")
def context():
    with Provider() as p, Server(env=p.env("hello")) as s:
        for _ in range(3):
            s.finish(s.create("assistant", "x" * 500_000, conversation_id="c"))
        run_id = s.create("assistant", "and now", conversation_id="c")
        told = payloads(log_of(s, run_id), "context.resolved")[-1]
        check("older messages" in told["omissions"][0]["reason"], told)
    call = {"run_id": "x", "tool_call_id": "c"}
    rows = [("RunStart", {"run_id": "x", "agent_id": "fixture"}), ("ToolStart", {**call, "tool": "t", "input": {}}),
            ("ToolEnd", {**call, "output": "z" * 20000, "ok": True}), ("RunDone", {"run_id": "x"})]
    with tempfile.TemporaryDirectory() as folder, Server(fixtures_dir=folder) as s:
        with open(os.path.join(folder, "long.jsonl"), "w") as f:
            f.writelines(json.dumps({"type": kind, "data": data}) + "\n" for kind, data in rows)
        run_id = s.create("fixture", None, inputs={"fixture": "long", "pace": "full"})
        log = log_of(s, run_id)
        places(log, "output.spilled", "tool.result")
        equal(payloads(log, "output.spilled")[0]["total_bytes"], 20000)
        refs = {e["refs"]["output_ref"] for e in log if e["type"] in ("output.spilled", "tool.result")}
        equal(len(refs), 1, "both name the same bytes")
        name = refs.pop().removeprefix("blob://")
        with open(os.path.join(s.data, "blobs", name[:2], name[2:]), "rb") as f:
            equal(f.read(), b"z" * 20000, "where the reference leads")


@test("what_tools_a_turn_may_use", "EVT-046")
def catalogue():
    with Server() as s:
        run_id = s.create("tools", 'tool math.evaluate {"expression": "6*7"}')
        log = log_of(s, run_id)
        places(log, "turn.started", "tool.catalog.resolved", "tool.started")
        told = [e for e in log if e["type"] == "tool.catalog.resolved"]
        equal(len(told), 1, "once a turn")
        check("tool_call_id" not in told[0] and "step_id" not in told[0], "it is of the turn, not of a call", told)
        listed = told[0]["payload"]
        offered = {t["tool_id"]: t for t in s.http.get("/api/tools").json["tools"]}
        # Tools for the files of skills are there only in turns with such a skill.
        of_skills = {"internal:skill.read", "internal:skill.run", "internal:tools.search"}  # and of many tools
        of_skills |= {t for t in offered if t.startswith("internal:agent.")}  # policy.agents names nobody
        equal({t["tool_id"] for t in listed["tools"]} | {t["tool_id"] for t in listed["excluded"]},
              set(offered) - of_skills)
        equal(listed["count"], len(listed["tools"]))
        for tool in listed["tools"]:
            for key in ("name", "description", "version", "is_read_only", "is_destructive"):
                equal(tool[key], offered[tool["tool_id"]][key], tool["tool_id"])
        used = payloads(log, "tool.started")[0]
        found = next(t for t in listed["tools"] if t["tool_id"] == used["tool_id"])
        equal((found["policy"], found["version"]), (used["policy"], used["tool_version"]), "the call is of this list")


@test("a_limit_of_an_agents_provider_changes", "EVT-067")
def limit():
    said = ('line {"type":"rate_limit_event","rate_limit_info":{"status":"allowed_warning","resetsAt":1760000000,'
            '"rateLimitType":"five_hour","utilization":0.91}}')
    with Shop({"claude": {"script": TALK + [SAY % "before ", said, SAY % "after", "result"]}}) as s:
        run_id = s.create("claude", "hi")
        log = log_of(s, run_id)
        places(log, "turn.started", "limit.changed", "task.completed")
        told = payloads(log, "limit.changed")
        equal(len(told), 1, "once")
        equal((told[0]["limit_kind"], told[0]["unit"]), ("rate", "requests"))
        check(told[0]["name"], "nobody's limit", told)
        equal((s.record(run_id)["status"], text_of(s.events(run_id))), ("succeeded", "before after"), "it stops nothing")


@test("a_warning_does_not_end_a_run", "EVT-069")
def warning():
    retry = ('line {"type":"system","subtype":"api_retry","attempt":1,"max_retries":10,"retry_delay_ms":10,'
             '"error_status":529,"error":"overloaded"}')
    with Shop({"claude": {"script": TALK + [SAY % "before ", retry, SAY % "after", "result"]}}) as s:
        run_id = s.create("claude", "hi")
        log = log_of(s, run_id)
        places(log, "turn.started", "runtime.warning", "task.completed")
        told = payloads(log, "runtime.warning")
        equal([(x["code"], x["component"]) for x in told], [("RETRYING", "backend.claude_code")])
        check("provider" in told[0]["message"], told)
        r = s.record(run_id)
        equal((r["status"], r["error"], text_of(s.events(run_id))), ("succeeded", None, "before after"))


@test("output_that_is_cut_says_how_much", "EVT-118")
def cut():
    size = 16 * 1024 * 1024 + 1000  # one line may have 16 MiB
    script = TALK + [SAY % "before ", f"junkline {size}", SAY % "after", "result"]
    with Shop({"claude": {"script": script}}) as s:
        run_id = s.create("claude", "hi")
        log = log_of(s, run_id)
        places(log, "turn.started", "output.truncated", "task.completed")
        told = payloads(log, "output.truncated")
        equal([(x["original_bytes"], x["kept_bytes"], x["owner"]) for x in told], [(size, 0, {"run_id": run_id})])
        check("too long" in told[0]["reason"], told)
        equal((s.record(run_id)["status"], text_of(s.events(run_id))), ("succeeded", "before after"))


@test("a_thread_is_rebuilt_from_the_log", "EVT-122")
def rebuilt():
    with Provider() as p, Server(env=p.env("gate")) as s:
        first = s.create("assistant", "one", conversation_id="c")
        p.wait_for(requests=1)
        with s.stream(first) as stream:
            stream.until(lambda e: e.type == "ChatDelta")
        second = s.create("assistant", "two", conversation_id="c")
        with s.session_stream(s.record(second)["session_id"]) as stream:
            before = stream.until(lambda e: e.data["type"] == "task.queued" and e.data["run_id"] == second)
        s.restart()
        p.release()
        log = [e.data for e in s.session_events(second)]
        for e in log:
            check_payload(e)
        told = [e for e in log if e["type"] == "history.reconstructed"]
        equal(len(told), 1, "the run that waits behind it is not told of apart")
        equal(told[0]["thread_id"], "c")
        check(told[0]["sequence"] > before[-1].data["sequence"], "not before the restart", told)
        payload = told[0]["payload"]
        equal((payload["source"], payload["through_sequence"], payload["degraded"], payload["missing"]),
              ("log", told[0]["sequence"] - 1, False, []))
        calls = [e["sequence"] for e in log if e["type"] == "model.requested" and e["run_id"] == first]
        check(calls[0] < told[0]["sequence"] < calls[1], "the call is made again after it", calls)
        equal([s.record(r)["status"] for r in (first, second)], ["succeeded"] * 2)
        equal(text_of(s.events(second)), "before after")


@test("a_run_whose_events_are_damaged_ends_and_the_log_says_why", "EVT-070")
def unreadable():
    """Its first events are damaged while the server is down; it is read again for half a minute."""
    with Provider() as p, Server(env=p.env("gate:thinks")) as s:
        run_id = s.create("assistant", "one", conversation_id="c")
        p.wait_for(requests=1)
        s.kill()
        with contextlib.closing(sqlite3.connect(os.path.join(s.data, "uar.db"))) as db, db:
            db.execute("UPDATE log SET body = replace(body, '\"one\"', '\"two\"') WHERE pos = (SELECT min(pos) FROM log)")
            behind, = db.execute("SELECT seq + n FROM log ORDER BY pos LIMIT 1").fetchone()
        s.start()
        s.ready()
        p.release()
        record = wait_until(lambda: (lambda r: r if r["finished_at"] else None)(s.record(run_id)), "the end")
        equal((record["status"], record["engine_status"], record["error"]["code"]), ("failed", "lost", "LOST"))
        for word in ("run.recovery_failed", "run.lost"):
            check(word in s.log(), s.log())
        with s.session_stream(record["session_id"], after=behind) as stream:  # what can still be read
            log = [e.data for e in stream.until(lambda e: e.data["type"] == "task.lost")]
        for e in log:
            check_payload(e)
        fatal = payloads(log, "runtime.error")
        equal([(x["code"], x["component"], x["fatal"]) for x in fatal], [("LOG_UNREADABLE", "recovery", True)])
        places(log, "runtime.error", "task.attempt.failed", "task.lost")
        view = s.http.get(f"/api/sessions/{record['session_id']}").json
        equal(view["freshness"]["state"], "stale", "what is damaged is not guessed")
        equal(s.finish(s.create("assistant", "next"))["status"], "succeeded", "others go on")


main()
