#!/usr/bin/env python3
"""The control plane: commands over HTTP, their refusals, repetition, and what survives a kill."""
import contextlib
import http.client
import os
import sqlite3
import threading

from lib import Server, check, equal, main, refused, test, wait_until


RECORD = ("task_id parent_task_id root_task_id title objective task_kind task_family visibility status priority "
          "requested_by owner assignee scope constraints task_profile acceptance progress current_run_id attempts "
          "relationships artifacts evidence_refs last_error status_reason created_at updated_at started_at "
          "ended_at").split()


ASK = 'tool fs.write {"path": "a.txt", "text": "x"}'


def command(s, name, **body):
    a = s.http.post(f"/api/control/{name}", body)
    equal(a.status, 200, a.body)
    return a.json


def task(s, **body):
    return command(s, "create_task", objective="write the report", **body)["result"]["task"]


def log_of(s, session_id, last):
    """Events of the session up to the sequence `last`."""
    out = []
    with s.session_stream(session_id) as stream:
        for event in stream:
            out.append(event.data)
            if event.data["sequence"] >= last:
                return out
    return out


@test("commands_are_listed_with_schemas", "CTL-02")
def listed():
    with Server() as s:
        commands = {c["name"]: c for c in s.http.get("/api/control").json["commands"]}
        check(len(commands) >= 50, sorted(commands))
        create = commands["create_task"]
        equal((create["changes"], create["available"]), (True, True))
        equal(create["input_schema"]["required"], ["objective"])
        equal(create["input_schema"]["properties"]["visibility"]["enum"],
              ["foreground", "background", "internal", "hidden"])
        for name, c in commands.items():
            if not c["available"]:
                refused(s.http.post(f"/api/control/{name}", {}), 501, "NOT_IMPLEMENTED")
        refused(s.http.post("/api/control/no_such", {}), 404, "NOT_FOUND")


@test("a_task_lives_without_a_run_and_survives_a_kill", "CTL-06 CTL-07 CTL-09 CTL-17 EVT-022 EVT-025 TASK-01")
def lives():
    with Server() as s:
        a = command(s, "create_task", objective="write the report", title="Report",
                    acceptance=[{"id": "a", "text": "it is written"}], priority="high")
        t = a["result"]["task"]
        equal((t["status"], t["title"], t["root_task_id"]), ("accepted", "Report", t["task_id"]))
        equal(len(a["event_ids"]), 3)  # the session, created, accepted
        b = command(s, "update_task", task_id=t["task_id"], title="The report", priority="low")
        equal(b["result"]["task"]["revision"], 1)
        command(s, "append_task_progress", task_id=t["task_id"], progress=0.5, message="half way")
        before = s.http.get(f"/api/tasks/{t['task_id']}").json["task"]
        check(set(RECORD) <= set(before), set(RECORD) - set(before))
        equal((before["title"], before["progress"], before["message"]), ("The report", 0.5, "half way"))
        log = log_of(s, t["session_id"], before["through_sequence"])
        equal([e["type"] for e in log], ["session.created", "task.created", "task.accepted",
                                         "task.updated", "task.progress"])
        equal(log[3]["payload"]["changed"]["title"], {"from": "Report", "to": "The report"})
        equal({e["task_id"] for e in log[1:]}, {t["task_id"]})
        s.kill()
        s.start()
        equal(s.http.get(f"/api/tasks/{t['task_id']}").json["task"], before)
        equal(command(s, "get_task", task_id=t["task_id"])["result"]["task"], before)


@test("bad_input_and_wrong_states_are_refused", "CTL-01")
def bad():
    with Server() as s:
        t = task(s)
        for name, body, where in (
                ("create_task", {}, "/objective"),
                ("create_task", {"objective": 1}, "/objective"),
                ("create_task", {"objective": "x", "visibility": "loud"}, "/visibility"),
                ("create_task", {"objective": "x", "colour": 1}, "/colour"),
                ("append_task_progress", {"task_id": t["task_id"], "progress": 2}, "/progress"),
                ("create_task", {"objective": "x", "acceptance": [1]}, None),
                ("complete_task", {"task_id": t["task_id"], "result_refs": [1]}, None)):
            refused(s.http.post(f"/api/control/{name}", body), 400, "VALIDATION_ERROR", where)
        refused(s.http.post("/api/control/update_task", {"task_id": "none"}), 404, "NOT_FOUND")
        refused(s.http.post("/api/control/update_task", {"task_id": t["task_id"], "status": "archived"}),
                409, "CONFLICT", "/status")
        refused(s.http.post("/api/control/update_task", {"task_id": t["task_id"], "status": "accepted"}),
                409, "CONFLICT", "/status")
        equal(s.http.get(f"/api/tasks/{t['task_id']}").json["task"]["revision"], 0)


@test("repeating_a_command_changes_nothing", "CTL-45")
def repeated():
    with Server() as s:
        first = command(s, "create_task", objective="x", idempotency_key="k")
        again = command(s, "create_task", objective="x", idempotency_key="k")
        equal(again, first)
        refused(s.http.post("/api/control/create_task", {"objective": "y", "idempotency_key": "k"}),
                409, "CONFLICT", "/idempotency_key")
        t = task(s, task_id="mine")
        same = command(s, "create_task", objective="another text", task_id="mine")
        equal((same["result"]["task"], same["event_ids"]), (t, []))
        s.kill()
        s.start()
        equal(command(s, "create_task", objective="x", idempotency_key="k"), first)
        equal(len(s.http.get("/api/tasks").json["tasks"]), 2)


@test("a_task_says_which_commands_can_change_it_now", "CTL-10 CTL-16")
def possible():
    """Each command it names changes it, and each one it does not name is refused or changes nothing."""
    ways = {"start_task": {"agent_id": "echo", "input": {"message": "x"}}, "pause_task": {}, "resume_task": {},
            "cancel_task": {}, "complete_task": {}, "fail_task": {"message": "x"}, "retry_task": {"agent_id": "echo",
            "input": {"message": "x"}}, "append_task_progress": {"progress": 0.5}}
    before = {"draft": [], "accepted": [], "paused": ["pause_task"], "cancelled": ["cancel_task"],
              "failed": ["fail_task"], "completed": ["complete_task"]}
    with Server() as s:
        for state, first in before.items():
            for name, body in ways.items():
                t = task(s, **({"status": "draft"} if state == "draft" else {}))
                for step in first:
                    command(s, step, task_id=t["task_id"], **ways[step])
                now = s.http.get(f"/api/tasks/{t['task_id']}").json["task"]
                equal(now["status"], state)
                a = s.http.post("/api/control/" + name, {"task_id": t["task_id"], **body})
                changed = a.status == 200 and bool(a.json["event_ids"])
                equal(changed, name in now["can"], f"{name} of a task that is {state}: {a.body}")


@test("the_first_outcome_is_the_answer_also_when_it_changed_nothing", "CTL-45")
def unchanged():
    with Server() as s:
        t = task(s)
        keyed = {"task_id": t["task_id"], "idempotency_key": "k"}
        first = command(s, "resume_task", **keyed)  # it is not paused
        equal(first["result"]["task"]["status"], t["status"])
        command(s, "pause_task", task_id=t["task_id"])
        equal(command(s, "resume_task", **keyed), first, "it is not decided again")
        equal(s.http.get(f"/api/tasks/{t['task_id']}").json["task"]["status"], "paused")
        s.kill()
        s.start()
        equal(command(s, "resume_task", **keyed), first)
        # the header of HTTP says the same as the member
        def post(key, **body):
            return s.http.post("/api/control/resume_task", {"task_id": t["task_id"], **body},
                               headers={"Idempotency-Key": key})
        equal(post("k", idempotency_key="k").json, first)
        now = post("other")
        equal((now.status, now.json["result"]["task"]["status"]), (200, "accepted"))
        command(s, "pause_task", task_id=t["task_id"])
        equal(post("other").json, now.json)
        refused(post("other", reason="y"), 409, "CONFLICT", "/idempotency_key")
        refused(post("k", idempotency_key="l"), 400, "VALIDATION_ERROR", "Idempotency-Key")



@test("the_key_means_the_same_in_the_header_and_in_the_body", "CTL-45")
def keys():
    with Server() as s:
        body = {"objective": "once"}
        key = {"Idempotency-Key": "k"}
        first = s.http.post("/api/control/create_task", {**body, "idempotency_key": "k"})
        equal(first.status, 200, first.body)
        for again in ((body, key), ({**body, "idempotency_key": "k"}, key), ({**body, "idempotency_key": "k"}, {})):
            a = s.http.post("/api/control/create_task", again[0], headers=again[1])
            equal((a.status, a.json), (200, first.json), again)
        a = s.http.post("/api/control/create_task", {"objective": "header first"}, headers={"Idempotency-Key": "h"})
        b = s.http.post("/api/control/create_task", {"objective": "header first", "idempotency_key": "h"})
        equal((b.status, b.json), (200, a.json))
        refused(s.http.post("/api/control/create_task", {"objective": "twice"}, headers=key), 409, "CONFLICT",
                "/idempotency_key")
        equal(len(s.http.get("/api/tasks").json["tasks"]), 2)


@test("sessions_of_the_runtime_are_not_written_by_users", "CTL-01")
def reserved():
    with Server() as s:
        for session_id in ("uar.registry", "uar.retention", "uar.inbox:echo", "uar.mine"):
            for name, body in (("submit_turn", {"agent_id": "echo", "message": "x"}),
                               ("update_session", {"title": "x"}), ("create_task", {"objective": "x"})):
                refused(s.http.post(f"/api/control/{name}", {"session_id": session_id, **body}), 400,
                        "VALIDATION_ERROR", "/session_id")
        # the id of a conversation is another name: its session has an id of its own
        run = s.finish(s.create("echo", "hello", conversation_id="uar.registry"))
        check(not run["session_id"].startswith("uar."), run)


@test("tasks_are_listed_by_filters_in_pages", "CTL-16")
def lists():
    with Server() as s:
        parent = task(s, title="parent")
        for i in range(7):
            task(s, parent_task_id=parent["task_id"], title=f"child {i}",
                 status="draft" if i % 2 else "accepted")
        task(s, title="elsewhere")
        children = f"/api/tasks?parent_task_id={parent['task_id']}"
        equal(len(s.http.get(children).json["tasks"]), 7)
        equal(len(s.http.get(children + "&status=draft").json["tasks"]), 3)
        equal(len(s.http.get(f"/api/tasks?session_id={parent['session_id']}").json["tasks"]), 8)
        seen, cursor = [], ""
        while cursor is not None:
            page = s.http.get(children + "&limit=3" + (f"&cursor={cursor}" if cursor else "")).json
            seen += [t["title"] for t in page["tasks"]]
            cursor = page["next_cursor"]
        equal(seen, [f"child {i}" for i in reversed(range(7))])
        equal(len(command(s, "list_tasks", parent_task_id=parent["task_id"], limit=2)["result"]["tasks"]), 2)
        refused(s.http.get("/api/tasks?cursor=x"), 400, "VALIDATION_ERROR", "?cursor")
        refused(s.http.post("/api/control/list_tasks", {"cursor": "x"}), 400, "VALIDATION_ERROR", "/cursor")
        refused(s.http.get("/api/tasks?status=zzz"), 400, "VALIDATION_ERROR", "?status")
        refused(s.http.post("/api/control/list_tasks", {"status": "zzz"}), 400, "VALIDATION_ERROR", "/status")
        equal(s.http.get("/api/tasks?status=timed_out").json["tasks"], [])


def facts(s, t, kind, until=None):
    """The payloads of that kind of event of the task, up to the last change of it or of `until`."""
    now = s.http.get(f"/api/tasks/{(until or t)['task_id']}").json["task"]["through_sequence"]
    return [e["payload"] for e in log_of(s, t["session_id"], now)
            if e["type"] == kind and e.get("task_id") == t["task_id"]]


def status(s, t):
    return s.http.get(f"/api/tasks/{t['task_id']}").json["task"]["status"]


def folded(s, t):
    """The status to which the log leads."""
    groups = s.http.get(f"/api/sessions/{t['session_id']}?include=tasks").json["tasks"].values()
    return {x["task_id"]: x["status"] for g in groups if isinstance(g, list) for x in g if "task_id" in x}[t["task_id"]]


def family(s):
    """A task, its child and its grandchild."""
    top = task(s, title="top")
    child = task(s, title="child", parent_task_id=top["task_id"])
    return top, child, task(s, title="grandchild", parent_task_id=child["task_id"])


@test("pause_and_resume_reach_as_far_as_asked", "CTL-10 CTL-11 EVT-029")
def paused():
    with Server() as s:
        tasks = family(s)
        for how, want in ((None, ["paused", "accepted", "accepted"]),
                          ("children", ["paused", "paused", "accepted"]),
                          ("all", ["paused", "paused", "paused"])):
            more = {"propagation": how} if how else {}
            command(s, "pause_task", task_id=tasks[0]["task_id"], reason="lunch", **more)
            equal([status(s, t) for t in tasks], want)
            s.kill()
            s.start()
            equal([status(s, t) for t in tasks], want)
            command(s, "resume_task", task_id=tasks[0]["task_id"], **more)
            equal([(status(s, t), folded(s, t)) for t in tasks], [("accepted", "accepted")] * 3)
        equal([p["reason"] for p in facts(s, tasks[0], "task.paused")], ["lunch"] * 3)
        equal([p["resumed_from"] for p in facts(s, tasks[0], "task.resumed")], ["paused"] * 3)


@test("a_resumed_task_is_what_it_was", "CTL-11 CTL-17")
def resumed():
    with Server() as s:
        draft = task(s, agent_id="echo", status="draft")
        refused(s.http.post("/api/control/pause_task", {"task_id": draft["task_id"]}), 409, "CONFLICT", "/task_id")
        top = task(s)
        below = task(s, agent_id="echo", status="draft", parent_task_id=top["task_id"])
        command(s, "pause_task", task_id=top["task_id"], propagation="all")
        equal((status(s, below), folded(s, below)), ("draft", "draft"))
        command(s, "resume_task", task_id=top["task_id"], propagation="all")
        equal((status(s, top), status(s, below)), ("accepted", "draft"))
        refused(s.http.post("/api/control/start_task", {"task_id": below["task_id"]}), 409, "CONFLICT")
        command(s, "link_tasks", **{"from": top["task_id"], "to": below["task_id"], "kind": "blocks"})
        equal((status(s, below), folded(s, below)), ("draft", "draft"))
        command(s, "update_task", task_id=below["task_id"], status="accepted")
        equal((status(s, below), folded(s, below)), ("blocked", "blocked"))
        command(s, "pause_task", task_id=below["task_id"])
        command(s, "resume_task", task_id=below["task_id"])
        equal((status(s, below), folded(s, below)), ("blocked", "blocked"))
        command(s, "complete_task", task_id=top["task_id"])
        equal((status(s, below), folded(s, below)), ("accepted", "accepted"))
        waits = task(s, agent_id="echo", acceptance=[{"id": "a", "text": "it is read"}])
        command(s, "start_task", task_id=waits["task_id"])
        command(s, "pause_task", task_id=waits["task_id"])
        command(s, "resume_task", task_id=waits["task_id"])
        equal((status(s, waits), folded(s, waits)), ("waiting_input", "waiting_input"))


@test("a_cancel_sticks_to_the_tree", "CTL-12 TASK-04")
def cancelled():
    with Server() as s:
        top, child, grandchild = family(s)
        done = task(s, parent_task_id=top["task_id"])
        command(s, "complete_task", task_id=done["task_id"])
        a = command(s, "cancel_task", task_id=top["task_id"], reason="enough", propagation="all")
        equal(a["result"]["task"]["status"], "cancelled")
        equal([status(s, t) for t in (child, grandchild, done)], ["cancelled", "cancelled", "completed"])
        log = log_of(s, top["session_id"], s.http.get(f"/api/tasks/{top['task_id']}").json["task"]["through_sequence"])
        kinds = [e["type"] for e in log if e.get("task_id") == top["task_id"]]
        equal(kinds[-2:], ["task.cancel_requested", "task.cancelled"])
        refused(s.http.post("/api/control/create_task",
                            {"objective": "late", "parent_task_id": top["task_id"]}), 409, "CONFLICT")
        again = command(s, "cancel_task", task_id=top["task_id"])
        equal((again["result"]["task"]["status"], again["event_ids"]), ("cancelled", []))
        refused(s.http.post("/api/control/pause_task", {"task_id": top["task_id"]}), 409, "CONFLICT")


def unanswered(s, body):
    """A cancel whose answer may not come."""
    with contextlib.suppress(OSError, http.client.HTTPException):
        s.http.post("/api/control/cancel_task", body)


def pending(s):
    """A command that has begun and is not finished, as the database knows it."""
    db = sqlite3.connect(f"file:{os.path.join(s.data, 'uar.db')}?mode=ro", uri=True)
    try:
        return db.execute("SELECT id FROM rows WHERE kind = 'intent' AND open = 1").fetchall()
    finally:
        db.close()


@test("a_large_tree_is_cancelled_and_resumed_through_kills", "CTL-11 CTL-12 TASK-04 VAL-06")
def large():
    with Server() as s:
        for how in ("all", "children"):
            top = task(s)
            sizes = {"all": (10, 60), "children": (160, 0)}[how]
            below, waits = [], task(s, session_id=top["session_id"])
            for _ in range(sizes[0]):
                below.append(task(s, parent_task_id=top["task_id"])["task_id"])
                below += [task(s, parent_task_id=below[-1])["task_id"] for _ in range(sizes[1])]
            command(s, "link_tasks", **{"from": below[-1], "to": waits["task_id"], "kind": "blocks"})

            def count(word):
                found, cursor = 0, ""
                while cursor is not None:
                    page = s.http.get(f"/api/tasks?session_id={top['session_id']}&status={word}&limit=500{cursor}").json
                    found += sum(t["task_id"] in below for t in page["tasks"])
                    cursor = page["next_cursor"] and "&cursor=" + page["next_cursor"]
                return found
            for t in below[1::3]:
                command(s, "pause_task", task_id=t)
            paused = count("paused")
            check(paused > 100 or how == "children", paused)
            command(s, "resume_task", task_id=top["task_id"], propagation=how)
            equal((count("paused"), count("accepted")), (0, len(below)))
            keyed = {"task_id": top["task_id"], "propagation": how, "reason": "enough", "idempotency_key": how}
            if how == "all":
                asking = threading.Thread(target=unanswered, args=(s, keyed))
                asking.start()
                while asking.is_alive() and not pending(s):
                    pass
                s.kill()
                asking.join()
                s.start()
                if status(s, top) != "cancelled":
                    command(s, "cancel_task", **keyed)
            else:
                first = command(s, "cancel_task", **keyed)
                equal(command(s, "cancel_task", **keyed), first)
            wait_until(lambda: count("cancelled") == len(below), "all are cancelled")
            equal((status(s, waits), pending(s)), ("accepted", []))


@test("completion_needs_its_facts", "CTL-14 CTL-15 TASK-06 EVT-038")
def completed():
    with Server() as s:
        t = task(s, acceptance=[{"id": "a", "text": "written"}, {"id": "b", "text": "read"}])
        end = {"task_id": t["task_id"], "acceptance": [{"id": "a", "status": "met"}]}
        refused(s.http.post("/api/control/complete_task", end), 409, "CONFLICT", "/acceptance")
        end["acceptance"].append({"id": "b", "status": "unmet"})
        refused(s.http.post("/api/control/complete_task", end), 409, "CONFLICT", "/acceptance")
        end["acceptance"][1]["status"] = "not_applicable"
        a = command(s, "complete_task", delivery_state="delivered", artifact_refs=["artifact://x@1"], **end)
        r = a["result"]["task"]
        equal((r["status"], r["delivery_state"], r["artifacts"]), ("completed", "delivered", ["artifact://x@1"]))
        refused(s.http.post("/api/control/fail_task", {"task_id": t["task_id"], "message": "no"}), 409, "CONFLICT")
        bad = task(s)
        r = command(s, "fail_task", task_id=bad["task_id"], message="no paper", code="NO_PAPER")["result"]["task"]
        equal((r["status"], r["last_error"]["code"], r["last_error"]["message"]), ("failed", "NO_PAPER", "no paper"))
        equal(command(s, "update_task", task_id=bad["task_id"], status="archived")["result"]["task"]["status"],
              "archived")
        equal([p["previous_status"] for p in facts(s, bad, "task.archived")], ["failed"])
        for word in ("pending", "delivered", "queued", "failed", "parent_missing", "not_applicable"):
            command(s, "append_task_progress", task_id=task(s)["task_id"], delivery_state=word)
        refused(s.http.post("/api/control/append_task_progress",
                            {"task_id": task(s)["task_id"], "delivery_state": "lost"}), 400, "VALIDATION_ERROR")


@test("a_dependency_blocks_until_it_is_over", "CTL-18 CTL-19 EVT-028 EVT-093 VAL-06 STAT-08")
def blocked():
    with Server() as s:
        a = task(s, title="a")
        b, c = (task(s, title=x, session_id=a["session_id"]) for x in "bc")
        link = {"from": a["task_id"], "to": c["task_id"], "kind": "blocks"}
        edge = command(s, "link_tasks", **link)["result"]["edge"]
        equal((edge["source_id"], edge["target_id"], edge["status"]), (a["task_id"], c["task_id"], "active"))
        equal(command(s, "link_tasks", **link)["event_ids"], [])
        command(s, "link_tasks", **{"from": c["task_id"], "to": b["task_id"], "kind": "blocked_by"})
        equal(status(s, c), "blocked")
        equal([p["blockers"][0]["id"] for p in facts(s, c, "task.blocked")], [a["task_id"], b["task_id"]])
        equal([p["op"] for p in facts(s, a, "task.dependency.updated", until=c)], ["linked"])
        refused(s.http.post("/api/control/link_tasks",
                            {"from": c["task_id"], "to": a["task_id"], "kind": "blocks"}), 409, "CONFLICT", "/to")
        refused(s.http.post("/api/control/complete_task", {"task_id": c["task_id"]}), 409, "CONFLICT")
        s.kill()
        s.start()
        equal(len(s.http.get(f"/api/tasks/{c['task_id']}").json["task"]["relationships"]), 2)
        command(s, "complete_task", task_id=a["task_id"])
        equal(status(s, c), "blocked")
        command(s, "unlink_tasks", **{"from": b["task_id"], "to": c["task_id"], "kind": "blocks"})
        equal((status(s, c), folded(s, c)), ("accepted", "accepted"))
        edges = s.http.get(f"/api/tasks/{c['task_id']}").json["task"]["relationships"]
        equal(sorted(e["status"] for e in edges), ["active", "removed"])
        other = task(s, title="elsewhere")
        refused(s.http.post("/api/control/link_tasks",
                            {"from": a["task_id"], "to": other["task_id"], "kind": "blocks"}), 409, "CONFLICT", "/to")


def retried(s, t):
    """Another attempt, which ends at once; the task when it is over."""
    run = command(s, "retry_task", task_id=t["task_id"], agent_id="echo", input={"message": "x"})["result"]["attempt"]
    s.finish(run["run_id"])
    return wait_until(lambda: status(s, t) == "completed", "the task is over again")


@test("a_task_waits_for_each_of_its_blockers_once", "CTL-18 CTL-13 STAT-08")
def blocked_once():
    with Server() as s:
        first = task(s)
        second, waits = (task(s, session_id=first["session_id"]) for _ in range(2))
        link = {"to": waits["task_id"], "kind": "blocks"}
        command(s, "link_tasks", **{"from": first["task_id"], **link})
        command(s, "fail_task", task_id=first["task_id"], message="no")
        equal(status(s, waits), "accepted")
        command(s, "link_tasks", **{"from": second["task_id"], **link})
        retried(s, first)
        equal(status(s, waits), "blocked", "the second one is not over")
        command(s, "complete_task", task_id=second["task_id"])
        equal((status(s, waits), folded(s, waits)), ("accepted", "accepted"))
        retry = {"task_id": waits["task_id"], "agent_id": "echo", "input": {"message": "x"}}
        third, fourth = (task(s, session_id=first["session_id"]) for _ in range(2))
        command(s, "link_tasks", **{"from": third["task_id"], **link})
        command(s, "fail_task", task_id=waits["task_id"], message="no")  # while it waits
        command(s, "link_tasks", **{"from": fourth["task_id"], **link})  # and when it is over
        for blocker in (third, fourth):
            refused(s.http.post("/api/control/retry_task", retry), 409, "CONFLICT", "/task_id")
            command(s, "complete_task", task_id=blocker["task_id"])
        equal(status(s, waits), "failed")
        retried(s, waits)
        asks = task(s, session_id=first["session_id"], agent_id="tools", input={"message": ASK})
        attempt = command(s, "start_task", task_id=asks["task_id"])["result"]["attempt"]
        action = wait_until(lambda: s.record(attempt["run_id"]).get("actions"), "a question")[0]["action_id"]
        wait_until(lambda: status(s, asks) == "waiting_permission", "the task follows")
        fifth = task(s, session_id=first["session_id"])
        command(s, "link_tasks", **{"from": fifth["task_id"], "to": asks["task_id"], "kind": "blocks"})
        equal(status(s, asks), "waiting_permission", "its attempt has begun")
        command(s, "respond_action", action_id=action, decision="deny")
        wait_until(lambda: status(s, asks) == "completed", "its end")
        command(s, "complete_task", task_id=fifth["task_id"])
        equal((status(s, asks), folded(s, asks)), ("completed", "completed"))


@test("a_tree_of_tasks_has_no_circle_and_a_depth", "CTL-18 CTL-19 CTL-12 TASK-03")
def trees():
    with Server() as s:
        top, child, grandchild = family(s)
        for link in ({"from": grandchild, "to": top, "kind": "parent"}, {"from": top, "to": grandchild, "kind": "child"}):
            body = {**link, "from": link["from"]["task_id"], "to": link["to"]["task_id"]}
            p = refused(s.http.post("/api/control/link_tasks", body), 409, "CONFLICT", "/to")
            way = " -> ".join(t["task_id"] for t in (grandchild, top, child, grandchild))
            check(way in p["detail"], p)
        above = task(s, session_id=top["session_id"])
        link = {"from": above["task_id"], "to": top["task_id"], "kind": "parent"}
        def roots():
            return {s.http.get(f"/api/tasks/{t['task_id']}").json["task"]["root_task_id"] for t in (top, child, grandchild)}
        command(s, "link_tasks", **link)
        equal(roots(), {above["task_id"]}, "those below go with it")
        command(s, "unlink_tasks", **link)
        equal(roots(), {top["task_id"]})
        def chain(n):
            out = [task(s, session_id=top["session_id"])]
            while len(out) < n:
                out.append(task(s, parent_task_id=out[-1]["task_id"]))
            return out
        long, longer = chain(32), chain(33)
        deep = {"from": long[-1]["task_id"], "to": longer[0]["task_id"], "kind": "parent"}
        refused(s.http.post("/api/control/link_tasks", deep), 413, "PAYLOAD_TOO_LARGE", "/to")
        deep["from"] = long[-2]["task_id"]
        command(s, "link_tasks", **deep)
        command(s, "cancel_task", task_id=long[0]["task_id"], propagation="all")
        equal({status(s, t) for t in long + longer}, {"cancelled"})


@test("the_same_id_again_makes_no_second_session", "CTL-45 CTL-46")
def same_id():
    with Server() as s:
        t = task(s, task_id="mine")
        work = {"job_id": "work", "agent_id": "echo", "instruction": "x", "items": ["a"]}
        j = command(s, "create_job", **work)["result"]["job"]
        wait_until(lambda: command(s, "get_job", job_id="work")["result"]["job"]["status"] == "completed", "the job")
        for key in ({}, {"idempotency_key": "k"}):
            again = command(s, "create_task", task_id="mine", objective="x", **key)["result"]["task"]
            equal((again["task_id"], again["session_id"]), ("mine", t["session_id"]))
            again = command(s, "create_job", **work, **key)["result"]["job"]
            equal((again["status"], again["session_id"]), ("completed", j["session_id"]))
        s.restart()
        equal(command(s, "create_job", **work, **key)["result"]["job"], again)
        equal({x["session_id"] for x in s.http.get("/api/sessions").json["sessions"]}, {t["session_id"], j["session_id"]})
        other = task(s)
        refused(s.http.post("/api/control/create_task", {"task_id": "mine", "objective": "x", "session_id": other["session_id"]}),
                400, "VALIDATION_ERROR", "/session_id")


@test("a_task_belongs_to_a_session_a_thread_or_a_task", "ID-05")
def owners():
    with Server() as s:
        run = s.finish(s.create("echo", "hello", conversation_id="talk"))
        of_thread = task(s, thread_id="talk")
        equal((of_thread["thread_id"], of_thread["session_id"]), ("talk", run["session_id"]))
        of_session = task(s, session_id=run["session_id"])
        equal((of_session["thread_id"], of_session["session_id"]), (None, run["session_id"]))
        of_task = task(s, parent_task_id=of_session["task_id"])
        equal((of_task["session_id"], of_task["root_task_id"]), (run["session_id"], of_session["task_id"]))
        equal(len(s.http.get("/api/tasks?thread_id=talk").json["tasks"]), 1)
        refused(s.http.post("/api/control/create_task", {"objective": "x", "session_id": "none"}), 404, "NOT_FOUND")
        refused(s.http.post("/api/control/create_task", {"objective": "x", "parent_task_id": "none"}), 404,
                "NOT_FOUND")


@test("edges_of_every_kind_are_kept", "TASK-03")
def kinds():
    with Server() as s:
        a = task(s)
        b = task(s, session_id=a["session_id"])
        for kind in ("parent", "blocks", "source_task"):
            command(s, "link_tasks", **{"from": a["task_id"], "to": b["task_id"], "kind": kind, "reason": "so"})
        for kind in ("source_attempt", "spawned_subagent", "assigned_thread", "produced_artifact",
                     "consumed_artifact", "evidence"):
            command(s, "link_tasks", **{"from": a["task_id"], "to": f"thing-{kind}", "kind": kind})
        for kind, stored in (("child", "parent"), ("blocked_by", "blocks")):
            edge = command(s, "link_tasks", **{"from": b["task_id"], "to": a["task_id"], "kind": kind})
            equal((edge["result"]["edge"]["kind"], edge["event_ids"]), (stored, []))
        edges = s.http.get(f"/api/tasks/{a['task_id']}").json["task"]["relationships"]
        equal(len(edges), 9)
        for e in edges:
            check({"kind", "source_id", "target_id", "status", "created_at", "updated_at"} <= set(e), e)
        equal({e.get("reason") for e in edges}, {"so", None})


@test("sessions_and_threads_are_renamed_and_archived", "EVT-014")
def renamed():
    with Server() as s:
        run = s.finish(s.create("echo", "hello", conversation_id="talk"))
        a = command(s, "update_session", session_id=run["session_id"], title="My work")
        equal((a["result"]["session"]["title"], a["result"]["session"]["status"]), ("My work", "active"))
        b = command(s, "update_session", session_id=run["session_id"], archived=True)
        equal((b["result"]["session"]["title"], b["result"]["session"]["status"]), ("My work", "archived"))
        c = command(s, "update_thread", thread_id="talk", title="Talk")
        equal((c["result"]["thread"]["title"], c["result"]["thread"]["session_id"]), ("Talk", run["session_id"]))
        told = []
        with s.session_stream(run["session_id"]) as stream:
            for event in stream:
                told += [event.data["payload"]] if event.data["type"] == "session.updated" else []
                if event.data["type"] == "thread.updated" and "title" in event.data["payload"]["changed"]:
                    break
        equal([(p["changed"], p.get("title"), p.get("status")) for p in told],
              [(["title"], "My work", None), (["archived"], None, "archived")])
        refused(s.http.post("/api/control/update_session", {"session_id": "none"}), 404, "NOT_FOUND")
        refused(s.http.post("/api/control/update_thread", {"thread_id": "none"}), 404, "NOT_FOUND")
        equal(s.finish(s.create("echo", "again", conversation_id="talk"))["status"], "succeeded")


if __name__ == "__main__":
    main()
