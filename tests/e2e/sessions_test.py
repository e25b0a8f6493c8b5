#!/usr/bin/env python3
"""Read models of sessions: snapshots, threads, windows of history, what is stored and repaired."""
import json
import os
import sqlite3
import tempfile

from lib import Provider, Server, check, equal, main, refused, run_uar, test, wait_until
from lib.payloads import check_payload
from lib.plugins import Lab

MODELS = {"session_snapshot", "thread_read_model", "tool_inventory_snapshot", "queue_snapshot", "task_snapshot",
          "context_boundary_snapshot", "artifact_checkpoint_summary", "evidence_summary",
          "permission_sandbox_summary", "execution_environment_snapshot", "routing_limit_summary",
          "subagent_job_summary", "channel_summary"}
THREAD = ("thread_id status active_turn last_outcome pending_requests queued_turns incidents actions tool_calls "
          "processes outputs evidence_summary diagnostics").split()
PAGE = "```html A page\n<h1>Title</h1>\n```\n"
ASK = 'tool fs.write {"path": "a.txt", "text": "x"}'


def command(s, name, **body):
    a = s.http.post(f"/api/control/{name}", body)
    equal(a.status, 200, a.body)
    return a.json["result"]


def session(s, session_id, query="include=tasks,artifacts"):
    a = s.http.get(f"/api/sessions/{session_id}?{query}")
    equal(a.status, 200, a.body)
    return a.json


def settled(s, session_id, turns=1):
    """The session once so many turns have ended and its threads are at rest."""
    def look():
        v = session(s, session_id)
        over = [t for t in v["active_thread"]["turns"] if t["ended_at"]]
        return v if len(over) >= turns and not v["active_thread"]["active_turn_id"] else None
    return wait_until(look, "the session is at rest")


def grown(s, events=600):
    """A session with more events than two snapshots are apart; its id."""
    t = command(s, "create_task", objective="long work")["task"]
    for i in range(events):
        command(s, "append_task_progress", task_id=t["task_id"], progress=i / events, message=f"step {i}")
    return t["session_id"]


def stored(s, session_id):
    """through_sequence and sha256 of the snapshot in the database, or None."""
    db = sqlite3.connect(f"file:{os.path.join(s.data, 'uar.db')}?mode=ro", uri=True)
    try:
        return db.execute("SELECT json_extract(body, '$.through'), json_extract(body, '$.sha256') FROM rows"
                          " WHERE kind = 'snapshot' AND id = ?", (session_id,)).fetchone()
    finally:
        db.close()


def types(s, session_id, last):
    with s.session_stream(session_id) as stream:
        return [e.data["type"] for e in stream.until(lambda e: e.data["sequence"] >= last)]


@test("a_session_shows_its_shell_threads_and_recent_steps", "SNAP-01 SNAP-02 SNAP-18 CTL-23 CTL-24")
def shell():
    with Provider() as p, Server(env=p.env("repeat")) as s:
        run_id = s.create("assistant", PAGE, conversation_id="talk")
        s.finish(run_id)
        session_id = s.record(run_id)["session_id"]
        command(s, "update_session", session_id=session_id, title="My work", metadata={"colour": "red"})
        command(s, "update_thread", thread_id="talk", title="First talk")
        v = settled(s, session_id)
        shell = v["session"]
        equal((shell["title"], shell["status"], shell["metadata"]), ("My work", "active", {"colour": "red"}))
        equal((shell["counts"]["turns"], shell["counts"]["artifacts"]), (1, 1))
        check(shell["created_at"] < shell["updated_at"], shell)
        thread = v["threads"]["items"][0]
        equal((thread["title"], thread["status"], thread["turn_count"]), ("First talk", "completed", 1))
        last = thread["last_outcome"]
        equal((last["run_id"], last["status"], last["output_preview"]), (run_id, "completed", PAGE))
        equal((last["usage_state"], last["usage"]["total_tokens"] > 0), ("reported", True))
        equal([(x["kind"], x["role"]) for x in v["recent"]["steps"]],
              [("message", "user"), ("message", "assistant"), ("artifact", None)])
        artifact = v["artifacts"]["artifacts"][0]
        equal((artifact["title"], artifact["issue_count"], len(artifact["versions"])), ("A page", 0, 1))
        equal(v["tasks"]["terminal"][0]["current_attempt"], {"run_id": run_id, "attempt": 1, "status": "completed"})
        equal(v["freshness"]["state"], "current")
        read = command(s, "get_thread_read", thread_id="talk")
        equal((read["session_id"], read["thread"]), (session_id, v["active_thread"]))
        check(set(THREAD) <= set(read["thread"]), set(THREAD) - set(read["thread"]))
        equal(s.http.get(f"/api/sessions/{session_id}/threads/talk").json, read)
        equal(command(s, "get_session", session_id=session_id, include="tasks,artifacts"), v)


@test("steps_are_ordered_within_a_turn", "ID-07")
def steps():
    with Server() as s:
        run_id = s.create("tools", 'tool math.evaluate {"expression": "6*7"}\ntool time.now {}', conversation_id="talk")
        s.finish(run_id)
        v = settled(s, s.record(run_id)["session_id"])
        found = v["recent"]["steps"]
        equal([x["kind"] for x in found if x["kind"] == "tool"], ["tool", "tool"])
        equal((found[0]["role"], found[-1]["role"]), ("user", "assistant"))
        first = [x["first_sequence"] for x in found]
        equal(first, sorted(set(first)))
        equal({(x["turn_id"], x["run_id"]) for x in found}, {(v["active_thread"]["last_outcome"]["turn_id"], run_id)})
        equal(len({x["step_id"] for x in found}), len(found))
        equal([x["step_id"] for x in found if x["kind"] == "tool"],
              [c["step_id"] for c in v["active_thread"]["tool_calls"]])


@test("what_cannot_be_read_is_refused", "CTL-23")
def bad():
    with Server() as s:
        session_id = command(s, "create_task", objective="x")["task"]["session_id"]
        refused(s.http.get("/api/sessions/none"), 404, "NOT_FOUND")
        refused(s.http.get(f"/api/sessions/{session_id}/threads/none"), 404, "NOT_FOUND")
        refused(s.http.get(f"/api/sessions/{session_id}?include=colour"), 400, "VALIDATION_ERROR")
        refused(s.http.get(f"/api/sessions/{session_id}?window=9999"), 400, "VALIDATION_ERROR")
        refused(s.http.get(f"/api/sessions/{session_id}?cursor=x"), 400, "VALIDATION_ERROR")
        refused(s.http.post("/api/control/get_session", {"session_id": "none"}), 404, "NOT_FOUND")
        refused(s.http.post("/api/control/get_session", {"session_id": session_id, "window": -1}), 400,
                "VALIDATION_ERROR")
        refused(s.http.post("/api/control/record_snapshot", {"session_id": session_id}), 404, "NOT_FOUND")
        s.finish(s.create("echo", "x", conversation_id="elsewhere"))
        refused(s.http.get(f"/api/sessions/{session_id}/threads/elsewhere"), 400, "VALIDATION_ERROR")


@test("a_late_reader_gets_the_snapshot_then_every_event_behind_it", "SNAP-15 CTL-23")
def late():
    with Server() as s:
        first = s.create("echo", "one", conversation_id="talk")
        s.finish(first)
        session_id = s.record(first)["session_id"]
        v = settled(s, session_id)
        s.finish(s.create("echo", "two", conversation_id="talk"))
        with s.session_stream(session_id, after=v["cursor"]) as stream:
            seen = stream.until(lambda e: e.data["type"] == "turn.completed")
        equal([e.data["sequence"] for e in seen],
              list(range(v["through_sequence"] + 1, v["through_sequence"] + 1 + len(seen))))
        equal(seen[0].data["type"], "turn.submitted")


@test("history_is_read_in_windows_from_the_newest_back", "CTL-23")
def windows():
    with Server() as s:
        session_id = grown(s, 60)
        pages, cursor = [], None
        while True:
            body = {"session_id": session_id, "window": 25}
            h = command(s, "get_session", **body, **({"cursor": cursor} if cursor else {}))["history"]
            pages.insert(0, h["events"])
            equal((h["events"][0]["sequence"], h["events"][-1]["sequence"]),
                  (h["from_sequence"], h["to_sequence"]))
            cursor = h["next_cursor"]
            if not cursor:
                break
        got = [e["sequence"] for page in pages for e in page if e["type"] != "history.window.loaded"]
        equal(got[:63], list(range(1, 64)))


@test("a_window_that_a_command_reads_is_a_fact", "EVT-121")
def window_fact():
    with Server() as s:
        run_id = s.create("echo", "hi", conversation_id="talk")
        s.finish(run_id)
        session_id = s.record(run_id)["session_id"]
        last = settled(s, session_id)["through_sequence"]
        a = s.http.post("/api/control/get_session", {"session_id": session_id, "window": 5}).json
        with s.session_stream(session_id, after=last) as stream:
            fact = stream.until(lambda e: True)[0].data
        equal((fact["type"], [fact["event_id"]], fact["thread_id"]), ("history.window.loaded", a["event_ids"], "talk"))
        equal(fact["payload"], {"next_cursor": a["result"]["history"]["next_cursor"], "from_sequence": last - 4,
                                "to_sequence": last, "count": 5, "truncated": True, "stale": False})
        equal(session(s, session_id)["session"]["updated_at"], fact["timestamp"])
        s.http.get(f"/api/sessions/{session_id}?window=5")  # a reader of the page leaves no trace
        equal(session(s, session_id)["through_sequence"], last + 1)


@test("tools_differ_by_caller_and_mode", "CTL-25 SNAP-03")
def inventory():
    with Server() as s:
        model = command(s, "get_tool_inventory", agent_id="tools")
        api = command(s, "get_tool_inventory")
        safe = command(s, "get_tool_inventory", agent_id="tools", mode="read_only")
        none = command(s, "get_tool_inventory", agent_id="echo")

        def ids(i):
            return {t["tool_id"] for t in i["tools"]}
        write = "internal:fs.write"
        check(write in ids(model) and write not in ids(api) and write not in ids(safe), ids(model))
        equal({x["tool_id"]: x["reason"] for x in api["excluded"]}[write], "needs_a_run")
        equal({x["tool_id"]: x["reason"] for x in safe["excluded"]}[write], "denied_by_mode")
        equal({x["reason"] for x in none["excluded"]}, {"denied_by_agent"})
        equal((none["count"], model["count"], model["caller"], api["caller"]), (0, len(ids(model)), "model", "api"))
        equal({t["tool_id"]: t["policy"] for t in model["tools"]}[write], "ask")
        check(len({i["inventory_id"] for i in (model, api, safe, none)}) == 4, "each is its own")
        equal(command(s, "get_tool_inventory", agent_id="tools"), model)
        refused(s.http.post("/api/control/get_tool_inventory", {"agent_id": "none"}), 404, "NOT_FOUND", "/agent_id")
        refused(s.http.post("/api/control/get_tool_inventory", {"caller": "model"}), 400, "VALIDATION_ERROR", "/caller")
        refused(s.http.post("/api/control/get_tool_inventory", {"mode": "wild"}), 400, "VALIDATION_ERROR", "/mode")
        run_id = s.create("tools", 'tool math.evaluate {"expression": "6*7"}', conversation_id="talk")
        s.finish(run_id)
        v = settled(s, s.record(run_id)["session_id"])
        offered = v["active_thread"]["tool_inventory"]
        equal((offered["state"], set(offered["tools"]["items"])), ("available", ids(model)))
        s.kill()
        s.start()
        equal(command(s, "get_thread_read", thread_id="talk")["thread"]["tool_inventory"], offered)


@test("a_long_session_is_stored_bounded_and_the_same_after_a_kill", "SNAP-15 SNAP-16 SNAP-17 EVT-068")
def long():
    with Server() as s:
        session_id = grown(s)
        through, sha = wait_until(lambda: stored(s, session_id), "a snapshot")
        check(through >= 512, through)
        before = session(s, session_id)
        check(len(s.http.get(f"/api/sessions/{session_id}").body) < 20000, "the answer does not grow with the log")
        log = types(s, session_id, before["through_sequence"])
        equal(log.count("snapshot.updated"), 1)
        with s.session_stream(session_id, after=log.index("snapshot.updated")) as stream:
            fact = stream.until(lambda e: True)[0].data
        check_payload(fact)
        equal((fact["type"], fact["payload"]["through_sequence"], fact["payload"]["status"]),
              ("snapshot.updated", through, "updated"))
        equal(fact["refs"]["snapshot_ref"], f"snapshot://session_snapshot/{session_id}@{through}")
        equal(log.count("snapshot.repaired"), 0)
        whole = session(s, session_id, "include=tasks,artifacts&verify=1")
        equal(whole, before, "the fold from the first event is the same")
        s.kill()
        s.start()
        equal(session(s, session_id), before)
        equal(session(s, session_id, "include=tasks,artifacts&verify=1"), before)
        equal(stored(s, session_id), (through, sha))


def damage(s, sql, *args):
    db = sqlite3.connect(os.path.join(s.data, "uar.db"))
    equal(db.execute(sql, args).rowcount, 1)
    db.commit()
    db.close()


@test("a_damaged_snapshot_is_folded_anew_and_reported", "SNAP-17 EVT-125")
def repaired():
    with Server() as s:
        session_id = grown(s)
        old = wait_until(lambda: stored(s, session_id), "a snapshot")
        before = session(s, session_id)
        s.stop()
        damage(s, "UPDATE rows SET body = replace(body, 'long work', 'wrong work') WHERE kind = 'snapshot' AND id = ?",
               session_id)
        s.start()
        after = session(s, session_id)
        equal(after["tasks"], before["tasks"])
        wait_until(lambda: stored(s, session_id)[0] > old[0], "a new snapshot")
        again = session(s, session_id)
        log = types(s, session_id, again["through_sequence"])
        equal((log.count("snapshot.repaired"), log[-1]), (1, "snapshot.repaired"))
        s.restart()
        equal(session(s, session_id), again)
        s.stop()
        fine = run_uar("check", "--log", "--data", s.data)
        check(fine.returncode == 0 and "1 of 1 are what their events lead to" in fine.stdout, fine.stdout, fine.stderr)
        s.start()


@test("what_is_not_known_is_said", "SNAP-14 SNAP-20 STAT-16 VAL-09")
def honest():
    with Server() as s:
        run_id = s.create("tools", ASK, conversation_id="talk")
        wait_until(lambda: s.record(run_id).get("actions"), "a question")
        session_id = s.record(run_id)["session_id"]
        v = session(s, session_id)
        thread = v["active_thread"]
        equal((thread["status"], thread["active_turn"]["run_id"]), ("blocked", run_id))
        equal(thread["active_turn"]["usage_state"] in ("unknown", "reported"), True)
        action = v["pending_requests"][0]
        equal((action["run_id"], action["status"], action["tool_name"]), (run_id, "pending", "fs.write"))
        equal(v["tasks"]["waiting"][0]["status"], "waiting_permission")
        equal(set(v["read_models"]), MODELS)
        equal(v["read_models"]["evidence_summary"]["state"], "not_applicable")
        equal(v["read_models"]["execution_environment_snapshot"]["state"], "not_applicable")
        s.kill()
        s.start()
        equal(session(s, session_id)["pending_requests"], [action])
        equal(s.http.post("/api/control/respond_action",
                          {"action_id": action["action_id"], "decision": "deny"}).status, 200)
        s.finish(run_id)
        v = settled(s, session_id)
        equal(v["pending_requests"], [])
        equal(v["active_thread"]["actions"][0]["result"], "deny")
        equal(v["active_thread"]["tool_calls"][0]["failure_category"] in ("policy_denied", "rejected"), True)
        s.stop()
        # A part of the log is damaged on disk: what was folded before it is shown as stale.
        damage(s, "UPDATE log SET body = replace(body, 'payload', 'qayload') WHERE pos ="
                  " (SELECT max(pos) FROM log)")
        s.start()
        v = session(s, session_id)
        equal((v["freshness"]["state"], v["read_models"]["session_snapshot"]["state"]), ("stale", "stale"))
        check(v["freshness"]["through_sequence"] < v["freshness"]["last_sequence"], v["freshness"])
        check("cannot be read" in v["freshness"]["reason"], v["freshness"])


def write_stream(folder, name, *events):
    with open(os.path.join(folder, name + ".jsonl"), "w") as f:
        for kind, data in events:
            f.write(json.dumps({"at_ms": 0, "type": kind, "data": data}) + "\n")


@test("artifacts_have_versions_and_context_its_sources", "SNAP-06 SNAP-07")
def material():
    def artifact(version, content):
        return "Artifact", {"artifact": {"artifact_id": "page", "artifact_type": "html", "title": "A page",
                                         "version": version, "content": content}}
    source = {"title": "A book", "url": "https://example.org/book"}
    with tempfile.TemporaryDirectory() as folder:
        write_stream(folder, "work", ("MemoryRecall", {"items": [{"key": "k", "value": "v", "source": "s"}]}),
                     ("Citation", {"sources": [source]}), artifact(1, "one"), artifact(2, "second"),
                     ("RunDone", {}))
        with Server(fixtures_dir=folder) as s:
            run_id = s.create("fixture", None, inputs={"fixture": "work", "pace": "full"}, conversation_id="talk")
            s.finish(run_id)
            session_id = s.record(run_id)["session_id"]
            v = settled(s, session_id)
            page = v["artifacts"]["artifacts"][0]
            equal((len(v["artifacts"]["artifacts"]), page["artifact_id"], page["version"], page["preview"]),
                  (1, "page", 2, "second"))
            equal([(x["version"], x["bytes"]) for x in page["versions"]], [(1, 3), (2, 6)])
            check(page["versions"][0]["sha256"] != page["versions"][1]["sha256"], page)
            equal(v["session"]["counts"]["artifacts"], 1)
            context = v["active_thread"]["context"]
            equal((context["state"], context["citations"]["items"], context["recalled"]["count"]),
                  ("available", [source], 1))
            equal((context["missing_facts"]["count"], context["compaction"]["state"]), (0, "not_applicable"))
            s.kill()
            s.start()
            equal(session(s, session_id), v)
            equal(session(s, session_id, "include=tasks,artifacts&verify=1"), v)


@test("a_lost_worker_leaves_its_thread_unknown", "SNAP-05 SNAP-14 VAL-09")
def lost():
    with Lab() as s:
        run_id = s.begin("gate_once", {"file": s.file("gate")})
        s.until(run_id, lambda r: r["progress"] == 0.5)
        s.restart()
        s.finish(run_id)
        v = settled(s, s.record(run_id)["session_id"])
        equal(v["active_thread"]["status"], "unknown")
        check("not known" in v["active_thread"]["diagnostics"]["status_reason"], v["active_thread"]["diagnostics"])
        equal([t["current_attempt"]["run_id"] for t in v["tasks"]["lost"]], [run_id])
        equal(v["active_thread"]["last_outcome"]["usage_state"], "unknown")
        equal([i["code"] for i in v["active_thread"]["incidents"]], ["LOST"])


@test("a_success_without_its_facts_is_not_completed", "STAT-17")
def not_completed():
    with Server() as s:
        t = command(s, "create_task", objective="make a page", agent_id="echo", input={"message": "it is done"},
                    acceptance=[{"id": "page", "text": "the page exists"}])["task"]
        command(s, "start_task", task_id=t["task_id"])

        def shown(group):
            tasks = session(s, t["session_id"])["tasks"]
            return [x for x in tasks[group] if x["task_id"] == t["task_id"]]
        waiting = wait_until(lambda: [x for x in shown("waiting") if x["current_attempt"]["status"] == "completed"],
                             "its attempt has ended well")
        equal((waiting[0]["status"], shown("terminal")), ("waiting_input", []))
        refused(s.http.post("/api/control/complete_task", {"task_id": t["task_id"]}), 409, "CONFLICT", "/acceptance")
        equal(shown("terminal"), [])
        command(s, "complete_task", task_id=t["task_id"],
                acceptance=[{"id": "page", "status": "met", "evidence_ref": "artifact://page@1"}])
        equal((shown("terminal")[0]["status"], shown("waiting")), ("completed", []))


@test("statuses_of_tasks_are_stated", "STAT-18")
def statuses():
    with Server(env={"UAR_SCRIPTED_TOKEN_MS": "60000"}) as s:
        first = command(s, "create_task", objective="draft", status="draft")["task"]
        where = {"session_id": first["session_id"]}
        paused, over, gone = (command(s, "create_task", objective=x, **where)["task"]["task_id"]
                              for x in ("paused", "archived", "cancelled"))
        command(s, "pause_task", task_id=paused)
        command(s, "append_task_progress", task_id=over, native_status="STATE_ODD")
        command(s, "fail_task", task_id=over, message="no")
        command(s, "update_task", task_id=over, status="archived")
        command(s, "cancel_task", task_id=gone)
        tasks = {t["task_id"]: t for group in session(s, first["session_id"])["tasks"].values()
                 if isinstance(group, list) for t in group if "task_id" in t}
        equal([tasks[x]["status"] for x in (first["task_id"], paused, over, gone)],
              ["draft", "paused", "archived", "cancelled"])
        equal(tasks[over]["native_status"], "STATE_ODD")
        kinds = [e["type"] for e in command(s, "get_session", session_id=first["session_id"], window=50)["history"]["events"]]
        check("task.cancel_requested" in kinds, "cancelling was said")
        # The view keeps so many tasks: of one that it has dropped and hears of again it knows no status.
        for i in range(140):
            command(s, "create_task", objective=f"task {i}", **where)
        command(s, "append_task_progress", task_id=first["task_id"], progress=0.5)
        v = session(s, first["session_id"])["tasks"]
        equal([(t["status"], t["progress"]) for t in v["active"] if t["task_id"] == first["task_id"]],
              [("unknown", 0.5)])
        check(v["omitted"] > 0, v["omitted"])
        equal(s.http.get(f"/api/tasks/{first['task_id']}").json["task"]["status"], "draft", "its row knows")


@test("queue_and_tasks_survive_a_restart", "SNAP-04 SNAP-05")
def queue():
    with Server(env={"UAR_SCRIPTED_TOKEN_MS": "60000"}) as s:
        runs = [s.create("tools", f"question {i}", conversation_id="talk") for i in range(4)]
        session_id = s.record(runs[0])["session_id"]
        a = command(s, "create_task", session_id=session_id, objective="first")["task"]
        b = command(s, "create_task", session_id=session_id, objective="second")["task"]
        command(s, "link_tasks", **{"from": a["task_id"], "to": b["task_id"], "kind": "blocks"})
        wait_until(lambda: s.record(runs[0])["status"] == "running", "the first one runs")

        def shown():
            v = session(s, session_id)
            return (v["queue"]["queued_turns"], v["queue"]["resume_state"], v["tasks"]["graph"],
                    [t["task_id"] for t in v["tasks"]["waiting"]])
        queued, state, graph, waiting = shown()
        equal(([q["run_id"] for q in queued], [q["position"] for q in queued]), (runs[1:], [1, 2, 3]))
        equal((state, waiting), ("running", [b["task_id"]]))
        equal([(e["kind"], e["source_id"], e["target_id"], e["status"]) for e in graph],
              [("blocks", a["task_id"], b["task_id"], "active")])
        command(s, "pause_queue", thread_id="talk", reason="lunch")
        command(s, "promote_queued_turn", thread_id="talk", queued_turn_id=queued[2]["queued_turn_id"])
        queued, state, graph, waiting = shown()
        equal(([q["run_id"] for q in queued], state), ([runs[3], runs[1], runs[2]], "paused"))
        s.kill()
        s.start()
        equal(shown(), (queued, state, graph, waiting))
        equal(session(s, session_id)["queue"]["pause_reason"], "lunch")
        for run_id in runs:
            s.cancel(run_id)


@test("a_long_queue_shows_its_head_and_its_true_length", "SNAP-04 CTL-21")
def long_queue():
    with Server(env={"UAR_SCRIPTED_TOKEN_MS": "60000"}) as s:
        first = s.create("tools", "first", conversation_id="talk")
        wait_until(lambda: s.record(first)["status"] == "running", "the first one runs")
        runs = [s.create("tools", f"question {i}", conversation_id="talk") for i in range(80)]
        session_id = s.record(first)["session_id"]

        def shown():
            return session(s, session_id)["queue"]
        q = shown()
        kept = len(q["queued_turns"])
        equal((q["length"], q["omitted"]), (80, 80 - kept))
        check(kept >= 60, kept)
        equal([t["run_id"] for t in q["queued_turns"]], runs[:kept])
        equal([t["position"] for t in q["queued_turns"]], list(range(1, kept + 1)))
        s.kill()
        s.start()
        equal(shown(), q)
        # one that is beyond what is shown, to the front
        last = s.record(runs[79])["turn_id"]
        command(s, "promote_queued_turn", thread_id="talk", queued_turn_id=last)
        q = shown()
        equal((q["queued_turns"][0]["queued_turn_id"], q["length"]), (last, 80))
        equal([t["run_id"] for t in q["queued_turns"]][1:40], runs[:39])
        for run_id in runs[:70]:
            s.cancel(run_id)
        wait_until(lambda: shown()["length"] == 10, "seventy have left")
        q = shown()
        equal(([t["queued_turn_id"] for t in q["queued_turns"]], q["omitted"]),
              ([last] + [s.record(r)["turn_id"] for r in runs[70:79]], 0))
        for run_id in [first] + runs[70:]:
            s.cancel(run_id)


main()
