#!/usr/bin/env python3
"""Evidence, replay cases and reviews: exported from the log, the same twice, checked without a server."""
import json
import os

from lib import Provider, Server, check, equal, main, refused, run_uar, test, wait_until
from lib.payloads import check_payload

KINDS = ("evidence", "replay", "review")
PACK = ("kind scope status refs facts runtime_summary attempts tool_calls failures actions artifacts context governance "
        "outputs notes runtime_correlation thread_read_models verification_outcomes signals known_gaps").split()
CASE = ("kind scope status refs facts inputs context tool_inventory determinism review_instructions expected "
        "verification_outcomes signals known_gaps").split()
STATES = {"exported", "not_applicable", "unsupported", "missing_correlation"}


def write(path):
    return f'tool fs.write {json.dumps({"path": path, "text": "x"})}'


def post(s, kind, **scope):
    return s.http.post(f"/api/control/export_{kind}", scope)


def export(s, kind, **scope):
    a = post(s, kind, **scope)
    equal(a.status, 200, a.body)
    return a.json


def document(s, kind, **scope):
    a = s.http.get("/api/evidence/" + export(s, kind, **scope)["result"]["evidence_id"])
    equal(a.status, 200, a.body)
    return a.json


def verify(s, text, name="d.json"):
    path = os.path.join(s.root, name)
    with open(path, "w") as f:
        f.write(text)
    return run_uar("verify", "--json", path)


def log_of(s, session_id):
    last = s.http.get(f"/api/sessions/{session_id}").json["through_sequence"]
    with s.session_stream(session_id) as stream:
        return [e.data for e in stream.until(lambda e: e.data["sequence"] >= last)]


def decided(s, decision):
    """A run whose tool was asked about and answered so; its record."""
    run_id = s.create("tools", write(f"{decision}.txt"), conversation_id="talk-" + decision)
    r = wait_until(lambda: (lambda r: r if r.get("actions") else None)(s.record(run_id)), "a question")
    equal(s.http.post("/api/control/respond_action",
                      {"action_id": r["actions"][0]["action_id"], "decision": decision}).status, 200)
    s.finish(run_id)
    return s.record(run_id)


def at_rest(s, session_id):
    def look():
        v = s.http.get(f"/api/sessions/{session_id}").json
        return v if not v["active_thread"]["active_turn_id"] else None
    return wait_until(look, "the session is at rest")


@test("the_same_scope_twice_is_the_same_document",
      "CTL-31 CTL-32 CTL-33 EVID-01 EVID-02 EVID-03 ID-12 EVT-060 SNAP-08")
def same():
    with Server() as s:
        r = decided(s, "allow")
        session = r["session_id"]
        at_rest(s, session)
        turn = {"thread_id": "talk-allow", "turn_id": r["turn_id"]}
        made = {}
        for kind in KINDS:
            a = export(s, kind, **turn)
            made[kind] = first = a["result"]
            equal((len(a["event_ids"]), first["existed"], first["status"]), (1, False, "ready"))
            fact = log_of(s, session)[-1]
            check_payload(fact)
            equal((fact["type"], fact["event_id"], fact["evidence_id"], fact["payload"]["sha256"]),
                  ("evidence.changed", a["event_ids"][0], first["evidence_id"], first["sha256"]))
            again = export(s, kind, **turn)
            equal((again["result"], again["event_ids"]), ({**first, "existed": True}, []))
            equal(export(s, kind, session_id=session, turn_id=r["turn_id"])["result"], {**first, "existed": True})
        refs = [{k: v for k, v in m["refs"].items() if k != "content_ref"} for m in made.values()]
        equal(refs[1:], refs[:-1], "the three share their references")
        equal(len({m["chain_head"] for m in made.values()}), 1)
        equal(len({m["evidence_id"] for m in made.values()}), 3)
        docs = {k: s.http.get("/api/evidence/" + m["evidence_id"]).json for k, m in made.items()}
        equal(sorted(docs["evidence"]["content"]), sorted(PACK))
        equal(sorted(docs["replay"]["content"]), sorted(CASE))
        links = [x["link"] for x in docs["evidence"]["timeline"]]
        equal([x["link"] for x in docs["review"]["timeline"]], links, "a review refers to the same facts")
        log = [e for e in log_of(s, session) if e.get("turn_id") == r["turn_id"] and e["type"] != "evidence.changed"]
        equal([x["event"]["event_id"] for x in docs["evidence"]["timeline"]], [e["event_id"] for e in log])
        summary = s.http.get(f"/api/sessions/{session}").json["evidence_summary"]
        equal([(e["kind"], e["evidence_id"]) for e in summary["evidence"]],
              [(k, m["evidence_id"]) for k, m in made.items()])
        for name in ("verification_outcomes", "trace_ids", "audit_notes", "known_gaps"):
            check(name in summary["evidence"][0], name)
        equal([x["evidence_id"] for x in summary["replay_refs"] + summary["review_refs"]],
              [made["replay"]["evidence_id"], made["review"]["evidence_id"]])
        thread = s.http.get(f"/api/sessions/{session}/threads/talk-allow").json["thread"]["evidence_summary"]
        equal((thread["state"], len(thread["evidence"])), ("available", 3))


@test("a_document_survives_kill_9_and_is_checked_without_a_server", "CTL-31 CTL-32 EVID-01 CTL-33")
def survives():
    with Server() as s:
        r = decided(s, "allow")
        at_rest(s, r["session_id"])
        made = {k: export(s, k, session_id=r["session_id"])["result"] for k in KINDS}
        texts = {k: s.http.get("/api/evidence/" + m["evidence_id"]).body for k, m in made.items()}
        s.kill()
        s.start()
        for k, m in made.items():
            equal(s.http.get("/api/evidence/" + m["evidence_id"]).body, texts[k])
            equal(export(s, k, session_id=r["session_id"])["result"], {**m, "existed": True})
            path = os.path.join(s.root, k + ".json")
            done = run_uar("export", k, "--session", r["session_id"], "--data", s.data, "-o", path)
            equal((done.returncode, done.stdout.strip()), (0, m["evidence_id"]), done.stderr)
            done = run_uar("verify", "--json", path)
            equal(done.returncode, 0, done.stderr)
            told = json.loads(done.stdout)
            equal((told["ok"], told["evidence_id"], told["sha256"], told["events"], told["replayed"]),
                  (True, m["evidence_id"], m["sha256"], m["events"], k == "replay"))
        d = json.loads(texts["replay"])
        at = len(d["timeline"]) // 2
        d["timeline"][at]["event"]["payload"]["forged"] = True
        done = verify(s, json.dumps(d))
        equal(done.returncode, 1)
        check(f"event {at + 1} of the timeline differs" in done.stderr
              and d["timeline"][at]["event"]["event_id"] in done.stderr, done.stderr)
        d = json.loads(texts["evidence"])
        gone = d["timeline"].pop(3)
        done = verify(s, json.dumps(d))
        check(done.returncode == 1 and "event 4 of" in done.stderr and gone["event"]["event_id"] not in done.stderr,
              done.stderr)
        d = json.loads(texts["review"])
        d["content"]["status"] = "partial"
        check("the content differs" in verify(s, json.dumps(d)).stderr)
        d = json.loads(texts["evidence"])
        d["timeline"].pop()
        check("chain_head" in verify(s, json.dumps(d)).stderr)
        check("not JSON" in verify(s, texts["evidence"][:-9].decode()).stderr)
        check(verify(s, json.dumps(json.loads(texts["evidence"]), indent=2)).returncode == 0, "layout does not count")


@test("what_was_denied_is_no_success_and_secrets_stay_out", "EVID-05 EVID-04 EVID-02")
def denied():
    with Server() as s:
        yes, no = decided(s, "allow"), decided(s, "deny")
        for r, outcome in ((yes, "succeeded"), (no, "denied")):
            at_rest(s, r["session_id"])
            a = s.http.get("/api/evidence/" + export(s, "evidence", session_id=r["session_id"])["result"]["evidence_id"])
            c = a.json["content"]
            equal([x["outcome"] for x in c["tool_calls"] if x["type"] != "tool.started"], [outcome])
            counts = c["runtime_summary"]["tool_calls"]
            equal((counts[outcome], sum(counts.values())), (1, 1))
            check(set(c["signals"].values()) <= STATES, c["signals"])
            gaps = {n for n, state in c["signals"].items() if state == "missing_correlation"}
            equal({g["signal"] for g in c["known_gaps"]}, gaps)
            equal(c["signals"]["tool_calls"], "exported")
            equal(c["signals"]["artifacts"], "not_applicable")
            check(c["runtime_correlation"]["run_ids"] == [r["run_id"]], c["runtime_correlation"])
            check([g["type"] for g in c["governance"] if g["type"].startswith("permission.")], c["governance"])
        a = s.http.post("/api/control/submit_turn", {"agent_id": "echo", "message": "hi", "thread_id": "quiet",
                                                     "metadata": {"password": "hunter2", "colour": "red"}})
        equal(a.status, 200, a.body)
        at_rest(s, a.json["result"]["session_id"])
        check("hunter2" in json.dumps(log_of(s, a.json["result"]["session_id"])), "the log has what the caller gave")
        text = json.dumps(document(s, "replay", thread_id="quiet"))
        check("hunter2" not in text and "red" in text and "<redacted>" in text, text)


@test("a_failed_attempt_stays_after_its_retry", "EVID-05 EVID-03")
def failed():
    with Provider() as p, Server(env=p.env("err401")) as s:
        t = s.http.post("/api/control/create_task", {"objective": "write", "agent_id": "assistant"}).json["result"]["task"]
        of_task = {"task_id": t["task_id"]}

        def ended(status):
            wait_until(lambda: s.http.get(f"/api/tasks/{t['task_id']}").json["task"]["status"] == status, status)
        first = s.http.post("/api/control/start_task", of_task).json["result"]["attempt"]["run_id"]
        ended("failed")
        before = document(s, "evidence", **of_task)
        a = s.http.post("/api/control/retry_task", {**of_task, "agent_id": "echo"})
        equal(a.status, 200, a.body)
        second = a.json["result"]["attempt"]["run_id"]
        wait_until(lambda: s.record(second).get("finished_at"), "the second attempt")
        wait_until(lambda: not s.http.get(f"/api/sessions/{t['session_id']}").json["active_thread"]["active_turn_id"],
                   "rest")
        d = document(s, "evidence", **of_task)
        equal(d["timeline"][:len(before["timeline"])], before["timeline"], "what was there stays, with its links")
        check(first in [x["run_id"] for x in d["content"]["failures"] if x["type"] == "task.attempt.failed"])
        equal(d["content"]["runtime_correlation"]["run_ids"], [first, second])
        case = document(s, "replay", **of_task)
        equal(case["content"]["inputs"][0]["type"], "task.created")
        check(case["content"]["determinism"]["execution"] in ("deterministic", "non_deterministic"))
        equal(verify(s, json.dumps(case)).returncode, 0)


@test("a_pack_says_what_the_page_shows", "VAL-08")
def as_shown():
    with Server() as s:
        r = decided(s, "deny")
        at_rest(s, r["session_id"])
        shown = s.http.get(f"/api/sessions/{r['session_id']}/threads/talk-deny").json["thread"]
        for kind in ("evidence", "replay"):
            c = document(s, kind, session_id=r["session_id"])["content"]
            models = c["thread_read_models"] if kind == "evidence" else c["expected"]["thread_read_models"]
            equal(models, [shown], "the read model of the page is that of the " + kind)
        c = document(s, "evidence", thread_id="talk-deny")["content"]
        equal({x["tool_call_id"] for x in c["tool_calls"]}, {x["tool_call_id"] for x in shown["tool_calls"]})
        equal({x["action_id"] for x in c["actions"]}, {x["action_id"] for x in shown["actions"]})
        run = s.record(r["run_id"])
        equal([x["run_id"] for x in c["attempts"] if x["type"] == "task.attempt.completed"], [run["run_id"]])


@test("a_scope_that_is_not_there_is_refused", "CTL-31 CTL-32 CTL-33")
def refusals():
    with Server() as s:
        run_id = s.create("echo", "hi", conversation_id="talk")
        s.finish(run_id)
        r = s.record(run_id)
        at_rest(s, r["session_id"])
        task = next(e["task_id"] for e in log_of(s, r["session_id"]) if e.get("task_id"))
        for kind in KINDS:
            refused(post(s, kind), 400, "VALIDATION_ERROR")
            refused(post(s, kind, turn_id=r["turn_id"]), 400, "VALIDATION_ERROR")
            refused(post(s, kind, task_id=task, thread_id="talk"), 400, "VALIDATION_ERROR")
            refused(post(s, kind, session_id="none"), 404, "NOT_FOUND", "/session_id")
            refused(post(s, kind, thread_id="none"), 404, "NOT_FOUND", "/thread_id")
            refused(post(s, kind, task_id="none"), 404, "NOT_FOUND", "/task_id")
            refused(post(s, kind, thread_id="talk", turn_id="none"), 404, "NOT_FOUND", "/turn_id")
            refused(post(s, kind, session_id="none", thread_id="talk"), 400, "VALIDATION_ERROR", "/session_id")
            equal(export(s, kind, task_id=task)["result"]["scope"]["level"], "task")
        refused(s.http.get("/api/evidence/evidence-0"), 404, "NOT_FOUND")
        key = {"idempotency_key": "k1", "session_id": r["session_id"]}
        first = export(s, "evidence", **key)
        s.finish(s.create("echo", "more", conversation_id="talk"))
        at_rest(s, r["session_id"])
        equal(export(s, "evidence", **key)["result"], first["result"], "the key's first answer")
        check(export(s, "evidence", session_id=r["session_id"])["result"]["sha256"] != first["result"]["sha256"])
        done = run_uar("export", "evidence", "--data", s.data)
        check(done.returncode == 2 and "--session" in done.stderr, done.stderr)


main()
