#!/usr/bin/env python3
"""Permissions: modes, rules of every source, what is never waited for, and the commands about them."""
import json
import os

from lib import Server, check, check_session, equal, main, refused, test, wait_until
from lib.payloads import check_payload

WRITE = 'tool fs.write {"path": "a.txt", "text": "x"}'
READ = "tool fs.list {}"


def with_config(permissions, **more):
    """A server whose operator says that."""
    s = Server(start=False, env={"UAR_PERMISSIONS": json.dumps(permissions)}, **more)
    return s.start()


def post(s, name, **body):
    return s.http.post("/api/control/" + name, body)


def done(s, name, **body):
    a = post(s, name, **body)
    equal(a.status, 200, (name, a.body))
    return a.json["result"]


def log_of(s, run_id):
    events = s.session_events(run_id)
    check_session(events)
    log = [e.data for e in events if e.data.get("run_id", run_id) == run_id]
    for e in log:
        check_payload(e)
    return log


def all_of_session(s, session):
    return s.http.get(f"/api/sessions/{session}?window=200").json["history"]["events"]


def of(log, *kinds):
    return [e for e in log if e["type"] in kinds]


def decision(s, run_id):
    return of(log_of(s, run_id), "permission.evaluated")[0]["payload"]


def category(s, run_id):
    failed = of(log_of(s, run_id), "tool.failed")
    return failed[0]["payload"]["failure_category"] if failed else None


def asked(s, run_id):
    return wait_until(lambda: s.record(run_id).get("actions"), "a question")[0]


def run(s, message, **more):
    run_id = s.create("tools", message, **more)
    s.finish(run_id)
    return run_id


def is_written(s):
    return os.path.exists(os.path.join(s.data, "files", "a.txt"))


@test("a_deny_rule_beats_an_automatic_allow_and_bypass", "FACT-04")
def deny_beats_allow():
    rules = [{"tool": "internal:fs.*", "class": "write", "decision": "deny", "reason": "no writing here"},
             {"tool": "internal:*", "decision": "allow"}]
    with with_config({"allow_modes": ["auto", "bypass"], "rules": rules}) as s:
        for mode in ("auto", "bypass", "default"):  # bypass allows it by itself
            run_id = run(s, WRITE, permission_mode=mode)
            p = decision(s, run_id)
            equal((p["decision"], p["decision_source"], p["decision_reason"], p["mode"], p["rule_refs"]),
                  ("deny", "host_policy", "no writing here", mode, ["host:rules/0"]))
            check({"source": "host_policy", "decision": "allow", "by": "host_policy"} in p["overridden"], p)
            equal(category(s, run_id), "policy_denied")
            check(not is_written(s), "it was written")
        equal(decision(s, run(s, READ))["decision"], "allow")
    with with_config({"allow_modes": ["auto"], "rules": [{"tool": "internal:math.*", "decision": "deny"}]}) as s:
        p = decision(s, run(s, READ, permission_mode="auto"))
        equal((p["decision"], p["decision_source"]), ("allow", "classifier"))
        p = decision(s, run(s, 'tool math.evaluate {"expression": "1"}', permission_mode="auto"))
        equal((p["decision"], p["decision_source"]), ("deny", "host_policy"))
        check({"source": "classifier", "decision": "allow", "by": "host_policy"} in p["overridden"], p)
    with with_config({"allow_modes": ["bypass"]}) as s:
        p = decision(s, run(s, WRITE, permission_mode="bypass"))
        equal((p["decision"], p["decision_source"]), ("allow", "mode"))
        check(is_written(s), "without a rule it is allowed")


@test("each_mode_decides_as_its_row_says", "GOV-02")
def modes():
    # What becomes of a read, of a write by a tool that wants to be asked for, and of a network call.
    want = {"default": ("allow", "ask"), "untrusted": ("allow", "ask"), "on_request": ("allow", "ask"),
            "on_failure": ("allow", "ask"), "never": ("allow", "deny"), "plan": ("allow", "deny"),
            "bypass": ("allow", "allow"), "auto": ("allow", "ask")}
    with with_config({"allow_modes": ["auto", "bypass"]}) as s:
        for mode, (read, write) in want.items():
            p = decision(s, run(s, READ, permission_mode=mode))
            equal((p["decision"], p["mode"], p["destructive"]), (read, mode, False))
            run_id = s.create("tools", WRITE, permission_mode=mode)
            if write == "ask":
                action = asked(s, run_id)
                done(s, "resolve_permission", action_id=action["action_id"], decision="deny")
            s.finish(run_id)
            p = decision(s, run_id)
            equal((p["decision"], p["mode"], p["destructive"]), (write, mode, True))
            equal(p["decision_source"], "classifier" if mode == "auto" else "mode")
        # What cannot be undone always says so, and what it touches.
        for mode in want:
            t = s.create("tools", READ)
            s.finish(t)
            where = s.record(t)["conversation_id"] if "conversation_id" in s.record(t) else None
            thread = where or of(log_of(s, t), "turn.submitted")[0]["thread_id"]
            p = done(s, "evaluate_permission", thread_id=thread, agent_id="tools", tool="internal:fs.delete",
                     arguments={"path": "a.txt"}, mode=mode)
            equal((p["destructive"], p["impact"]), (True, "internal:fs.delete: a.txt"))
            check(p["rollback_advice"] and p["decision_source"], p)
    with Server() as s:
        for mode in ("auto", "bypass"):
            refused(s.http.post("/api/runs", {"agent_id": "tools", "inputs": {"message": READ}, "permission_mode": mode}),
                    403, "FORBIDDEN", "/permission_mode")
        refused(s.http.post("/api/runs", {"agent_id": "tools", "inputs": {"message": READ}, "permission_mode": "x"}),
                400, "VALIDATION_ERROR", "/permission_mode")


@test("a_decision_has_every_member_and_a_person_its_action", "GOV-01")
def members():
    with Server(action_timeout_seconds="1h") as s:
        run_id = s.create("tools", WRITE)
        action = asked(s, run_id)
        done(s, "respond_action", action_id=action["action_id"], decision="allow_for_session")
        s.finish(run_id)
        p = decision(s, run_id)
        equal((p["decision"], p["decision_source"], p["approval_action_id"]), ("ask", "mode", action["action_id"]))
        check(p["decision_reason"] and p["expires_at"] and p["scope"] and p["rule_refs"] == [], p)
        first = of(log_of(s, run_id), "turn.submitted")[0]
        d = done(s, "evaluate_permission", thread_id=first["thread_id"], agent_id="tools", tool="fs.write",
                 arguments={"path": "b.txt", "text": "y"})
        for member in ("decision", "decision_source", "decision_reason", "rule_refs", "updated_input_ref",
                       "approval_action_id", "expires_at", "scope"):
            check(member in d, member)
        equal((d["decision"], d["rule_refs"]), ("allow", [action["action_id"]]))
        check({"source": "mode", "decision": "ask", "by": "grant"} in d["overridden"], d)


@test("where_nobody_can_be_asked_the_run_never_waits", "GOV-05")
def unattended():
    form = 'tool ui.form.request {"title": "x", "schema": {"type": "object", "properties": {}}}'
    with Server() as s:
        for message in (WRITE, form):
            run_id = run(s, message, interactive=False)
            equal(s.record(run_id)["status"], "succeeded")
            equal(category(s, run_id), "policy_denied")
            equal(of(log_of(s, run_id), "action.required", "permission.requested", "task.waiting"), [])
        p = decision(s, run(s, WRITE, interactive=False))
        equal((p["decision"], p["decision_source"]), ("deny", "mode"))
        check("nobody can be asked" in p["decision_reason"], p)
        t = done(s, "submit_turn", agent_id="tools", message=WRITE, options={"interactive": False})
        s.finish(t["run_id"])
        equal(category(s, t["run_id"]), "policy_denied")
        s.restart()
        check(not is_written(s), "nobody allowed it")
    with with_config({"interactive": False}) as s:
        equal(category(s, run(s, WRITE)), "policy_denied")


@test("a_session_has_rules_of_its_own_that_survive_a_kill", "EVT-079")
def of_session():
    with Server() as s:
        session = done(s, "update_permissions", mode="plan")["policy"]["session_id"]
        t = done(s, "submit_turn", agent_id="tools", message=WRITE, session_id=session)
        s.finish(t["run_id"])
        equal(decision(s, t["run_id"])["mode"], "plan")
        s.restart()
        rule = {"tool": "internal:fs.list", "decision": "deny"}
        policy = done(s, "update_permissions", session_id=session, mode="default", rules=[rule])["policy"]
        equal((policy["version"], policy["rules"]), (2, [rule]))
        where = {"session_id": session, "thread_id": t["thread_id"]}
        t = done(s, "submit_turn", agent_id="tools", message=READ, **where)
        s.finish(t["run_id"])
        p = decision(s, t["run_id"])
        equal((p["decision"], p["decision_source"], p["rule_refs"]), ("deny", "rule", ["session:rules/0"]))
        done(s, "update_permissions", rules=[], mode="untrusted", **where)
        changed = of(all_of_session(s, session), "policy.changed")
        for e in changed:
            check_payload(e)
        equal([(e["payload"]["version"], e["payload"]["changed"], e["payload"].get("mode")) for e in changed],
              [("1", ["mode"], "plan"), ("2", ["mode", "rules"], "default"), ("1", ["mode", "rules"], "untrusted")])
        equal(changed[2]["thread_id"], t["thread_id"])
        check(changed[0]["refs"]["policy_ref"].startswith("policy://"), changed[0])
        refused(post(s, "update_permissions", session_id=session, mode="bypass"), 403, "FORBIDDEN", "/mode")
        refused(post(s, "update_permissions", session_id=session, rules=[{"tool": "x"}]), 400, "VALIDATION_ERROR",
                "/rules/0/decision")
        shown = s.http.get("/api/sessions/" + session + "?include=permissions").json["permission_sandbox_summary"]
        equal([(m["scope"], m["mode"]) for m in shown["policies"]], [("session", "default"), ("thread", "untrusted")])


@test("what_rules_say_is_told_and_recorded_without_a_call", "CTL-34")
def evaluated():
    with with_config({"rules": [{"tool": "internal:fs.read", "decision": "ask", "agent": "tool*"}]}) as s:
        run_id = run(s, READ)
        turn = of(log_of(s, run_id), "turn.submitted")[0]
        thread = turn["thread_id"]
        want = {"internal:fs.list": "allow", "internal:fs.read": "ask", "internal:fs.write": "ask"}
        for tool, verdict in want.items():
            d = done(s, "evaluate_permission", thread_id=thread, agent_id="tools", tool=tool)
            equal(d["decision"], verdict, d)
        d = done(s, "evaluate_permission", thread_id=thread, agent_id="tools", tool="internal:fs.read", interactive=False)
        equal(d["decision"], "deny")
        facts = [e for e in of(all_of_session(s, turn["session_id"]), "permission.evaluated")
                 if e["payload"]["scope"].get("dry_run")]
        for e in facts:
            check_payload(e)
        equal([e["payload"]["decision"] for e in facts], ["allow", "ask", "ask", "deny"])
        refused(post(s, "evaluate_permission", thread_id=thread, agent_id="tools", tool="nope"), 404, "NOT_FOUND", "/tool")
        refused(post(s, "evaluate_permission", thread_id="no-thread", agent_id="tools", tool="fs.read"), 404, "NOT_FOUND",
                "/thread_id")


@test("a_permission_is_resolved_allowed_denied_or_timed_out", "CTL-35")
def resolved():
    with Server() as s:
        for word, outcome in (("allow", "allowed"), ("deny", "denied"), ("timeout", "timed_out")):
            run_id = s.create("tools", WRITE)
            action_id = asked(s, run_id)["action_id"]
            done(s, "resolve_permission", action_id=action_id, decision=word)
            s.finish(run_id)
            p = of(log_of(s, run_id), "permission.resolved")[0]["payload"]
            equal((p["decision_id"], p["outcome"]), (action_id, outcome))
            refused(post(s, "resolve_permission", action_id=action_id, decision="allow_always"), 409, "ACTION_RESOLVED")
        run_id = s.create("tools", 'tool ui.form.request {"title": "x", "schema": {"type": "object", "properties": {}}}')
        refused(post(s, "resolve_permission", action_id=asked(s, run_id)["action_id"], decision="allow"), 400,
                "VALIDATION_ERROR", "/action_id")
        s.cancel(run_id)


@test("the_summary_shows_decisions_questions_and_policies", "")
def summary():
    with Server() as s:
        turn = done(s, "submit_turn", agent_id="tools", message=WRITE)
        run_id, session = turn["run_id"], turn["session_id"]
        action = asked(s, run_id)
        read = lambda: s.http.get("/api/sessions/" + session + "?include=permissions").json["permission_sandbox_summary"]
        equal([(a["action_id"], a["tool_name"]) for a in read()["pending"]], [(action["action_id"], "fs.write")])
        equal(read()["decisions"][0]["status"], "ask")
        done(s, "resolve_permission", action_id=action["action_id"], decision="deny")
        s.finish(run_id)
        equal((read()["pending"], read()["decisions"][0]["status"]), ([], "denied"))


main()
