#!/usr/bin/env python3
"""Six shapes that clients of the log rely on, as files in fixtures/conformance: the server makes them again.

A shape has every member; values stand there as their type, save the words that clients branch on. What repeats in
a row (pieces of a text) stands once. UAR_WRITE_SHAPES=1 writes the files anew: then read what changed."""
import json
import os

from lib import FIXTURES, Provider, Server, check, check_session, equal, main, test, wait_until

FOLDER = os.path.join(os.path.dirname(FIXTURES), "conformance")
WORDS = {"type", "status", "kind", "decision", "action_type", "mode", "persistence", "reason_code", "outcome", "policy",
         "failure_category", "role", "selection", "format"}


def shape(value, key=""):
    if isinstance(value, dict):
        return {k: shape(v, k) for k, v in sorted(value.items())}
    if isinstance(value, list):
        items = [shape(v, key) for v in value]
        return [v for i, v in enumerate(items) if i == 0 or v != items[i - 1]]
    if value is None or isinstance(value, bool):
        return "null" if value is None else "boolean"
    if isinstance(value, str):
        return value if key in WORDS else "string"
    return "number"


def holds(name, value):
    """The file has the shape of the value."""
    path, made = os.path.join(FOLDER, name + ".json"), json.dumps(shape(value), indent=1) + "\n"
    if os.environ.get("UAR_WRITE_SHAPES"):
        with open(path, "w") as f:
            f.write(made)
    with open(path) as f:
        kept = f.read()
    if made != kept:
        import difflib
        check(False, name, "\n".join(difflib.unified_diff(kept.splitlines(), made.splitlines(), "kept", "made", n=4)))


def log_of(s, run_id):
    events = s.session_events(run_id)
    check_session(events)
    return [e.data for e in events]


def at_rest(s, session_id):
    def look():
        v = s.http.get(f"/api/sessions/{session_id}").json
        return v if not v["active_thread"]["active_turn_id"] else None
    return wait_until(look, "the session is at rest")


@test("a_submitted_turn_a_thread_and_its_evidence_keep_their_shapes", "FIX-07")
def turn():
    with Server() as s:
        run_id = s.create("demo", "hello", conversation_id="talk")
        s.events(run_id)
        session = s.record(run_id)["session_id"]
        holds("submit_turn", log_of(s, run_id))
        at_rest(s, session)
        holds("thread_read", s.http.get(f"/api/sessions/{session}/threads/talk").json)
        made = s.http.post("/api/control/export_evidence", {"thread_id": "talk", "turn_id": s.record(run_id)["turn_id"]})
        equal(made.status, 200, made.body)
        holds("evidence_export", {"answer": made.json, "document": s.http.get("/api/evidence/" + made.json["result"]["evidence_id"]).json})


@test("an_approved_tool_keeps_its_shape", "FIX-07")
def approval():
    with Server() as s:
        run_id = s.create("tools", 'tool fs.write {"path": "a.txt", "text": "x"}', conversation_id="talk")
        asked = wait_until(lambda: s.record(run_id).get("actions"), "a question")[0]
        a = s.http.post("/api/control/respond_action", {"action_id": asked["action_id"], "decision": "allow"})
        equal(a.status, 200, a.body)
        s.events(run_id)
        holds("tool_approval", {"action": asked, "log": log_of(s, run_id)})


@test("a_failed_attempt_and_its_retry_keep_their_shape", "FIX-07")
def retry():
    with Provider() as p, Server(env=p.env("seq:err401,hello")) as s:
        first = s.create("assistant", "hi", conversation_id="talk")
        s.events(first)
        a = s.http.post(f"/runs/{first}/retry", {})
        check(a.status in (200, 201, 202), a.status, a.body)
        second = a.json["run_id"]
        s.events(second)
        equal([s.record(r)["status"] for r in (first, second)], ["failed", "succeeded"])
        holds("failed_attempt_before_retry", [e for e in log_of(s, second) if e["type"].startswith(("task.", "turn.", "model.failed"))])


@test("a_route_with_one_candidate_keeps_its_shape", "FIX-07")
def routing():
    with Provider() as p:
        table = {"one": {"dialect": "openai_chat", "base_url": p.url + "/v1", "key_env": "WIRE_KEY"}}
        only = {"default": {"provider": "one", "model": "hello"}, "fallbacks": []}
        with Server(env={"UAR_PROVIDERS": json.dumps(table), "WIRE_KEY": Provider.KEY, "UAR_ROUTING": json.dumps(only)}) as s:
            run_id = s.create("assistant", "hi")
            s.events(run_id)
            log = [e for e in log_of(s, run_id) if e["type"].startswith(("routing.", "model."))]
            holds("single_candidate_routing", log)


main()
