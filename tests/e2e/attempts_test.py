#!/usr/bin/env python3
"""Attempts at tasks: started, ended, retried, cancelled, released by what they waited for, after a kill."""
from lib import Provider, Server, check, equal, main, refused, test, wait_until

ATTEMPT = ("run_id attempt_id status worker input_refs output_refs checkpoint_refs started_at ended_at attempt_count "
           "retry_policy last_error completion_summary").split()


def command(s, name, **body):
    a = s.http.post(f"/api/control/{name}", body)
    equal(a.status, 200, a.body)
    return a.json


def task(s, agent="echo", **body):
    return command(s, "create_task", objective="write the report", agent_id=agent, **body)["result"]["task"]


def get(s, t):
    return s.http.get(f"/api/tasks/{t['task_id']}").json["task"]


def ended(s, t, status):
    return wait_until(lambda: (lambda r: r if r["status"] == status else None)(get(s, t)), f"the task to be {status}")


def log_of(s, t):
    """The events of the task up to its last change."""
    out, last = [], get(s, t)["through_sequence"]
    with s.session_stream(t["session_id"]) as stream:
        for e in stream:
            if e.data.get("task_id") == t["task_id"]:
                out.append(e.data)
            if e.data["sequence"] >= last:
                return out


def streaming(s, run_id):
    with s.stream(run_id) as stream:
        stream.until(lambda e: e.type == "ChatDelta")


@test("an_attempt_moves_its_task", "CTL-08 TASK-02 FACT-08")
def moves():
    with Provider() as p, Server(env=p.env("gate")) as s:
        quick = task(s, input={"message": "hello"})
        a = command(s, "start_task", task_id=quick["task_id"])["result"]  # an echo is over at once
        equal((a["task"]["status"], a["attempt"]["attempt"], a["attempt"]["status"]), ("completed", 1, "completed"))
        slow = task(s, "assistant")
        a = command(s, "start_task", task_id=slow["task_id"], idempotency_key="k")
        equal(a["result"]["task"]["status"], "running")
        equal(command(s, "start_task", task_id=slow["task_id"], idempotency_key="k"), a)
        run_id = a["result"]["attempt"]["run_id"]
        r = get(s, slow)
        equal((r["status"], r["current_run_id"], r["attempt_count"], len(r["attempts"])), ("running", run_id, 1, 1))
        refused(s.http.post("/api/control/start_task", {"task_id": slow["task_id"]}), 409, "CONFLICT", "/task_id")
        refused(s.http.post("/api/control/complete_task", {"task_id": slow["task_id"]}), 409, "CONFLICT")
        p.release()
        r = ended(s, slow, "completed")
        equal((r["delivery_state"], r["current_run_id"]), ("delivered", run_id))
        check(r["started_at"] and r["ended_at"] and r["result_refs"], r)
        (attempt,) = r["attempts"]
        check(set(ATTEMPT) <= set(attempt), set(ATTEMPT) - set(attempt))
        equal((attempt["status"], attempt["attempt_count"], attempt["last_error"]), ("succeeded", 1, None))
        kinds = [e["type"] for e in log_of(s, slow)]
        equal([k for k in kinds if k.startswith("task.")],
              ["task.created", "task.accepted", "task.queued", "task.attempt.started", "task.started",
               "task.attempt.completed", "task.completed"])
        equal(s.record(run_id)["task_id"], slow["task_id"])
        refused(s.http.post("/api/control/start_task", {"task_id": slow["task_id"]}), 409, "CONFLICT", "/task_id")
        refused(s.http.post("/api/control/start_task", {"task_id": "none"}), 404, "NOT_FOUND", "/task_id")
        plain = command(s, "create_task", objective="no agent")["result"]["task"]
        refused(s.http.post("/api/control/start_task", {"task_id": plain["task_id"]}), 400, "VALIDATION_ERROR",
                "/agent_id")
        equal(command(s, "start_task", task_id=plain["task_id"], agent_id="echo")["result"]["task"]["status"],
              "completed")
        draft = task(s, status="draft")
        refused(s.http.post("/api/control/start_task", {"task_id": draft["task_id"]}), 409, "CONFLICT")
        held = task(s)
        command(s, "pause_task", task_id=held["task_id"])
        refused(s.http.post("/api/control/start_task", {"task_id": held["task_id"]}), 409, "CONFLICT")


@test("an_attempt_does_not_declare_the_acceptance", "CTL-14")
def acceptance():
    with Server() as s:
        t = task(s, acceptance=[{"id": "a", "text": "it is read"}])
        r = command(s, "start_task", task_id=t["task_id"])["result"]["task"]
        equal((r["status"], r["ended_at"]), ("waiting_input", None))
        refused(s.http.post("/api/control/complete_task", {"task_id": t["task_id"]}), 409, "CONFLICT", "/acceptance")
        r = command(s, "complete_task", task_id=t["task_id"], acceptance=[{"id": "a", "status": "met"}])
        equal(r["result"]["task"]["status"], "completed")


@test("a_retry_keeps_the_attempts_before_it", "CTL-13 TASK-05")
def retried():
    with Provider() as p, Server(env=p.env("err401")) as s:
        t = task(s, "assistant")
        refused(s.http.post("/api/control/retry_task", {"task_id": t["task_id"]}), 409, "CONFLICT", "/task_id")
        first = command(s, "start_task", task_id=t["task_id"])["result"]["attempt"]["run_id"]
        r = ended(s, t, "failed")
        check(r["last_error"]["code"] and r["status_reason"], r)
        runs = [first]
        for i, cause in enumerate(("retry", "worker_lost", "recovery", "reroute", "rerun")):
            a = command(s, "retry_task", task_id=t["task_id"], cause=cause, reason=f"because {cause}",
                        agent_id="echo" if cause == "reroute" else "assistant")["result"]
            equal((a["attempt"]["attempt"], a["task"]["attempt_count"]), (i + 2, i + 2))
            runs.append(a["attempt"]["run_id"])
            ended(s, t, "completed" if cause == "reroute" else "failed")
        r = get(s, t)
        equal([(a["run_id"], a["attempt_count"]) for a in r["attempts"]], [(x, i + 1) for i, x in enumerate(runs)])
        equal([a["status"] for a in r["attempts"]], ["failed"] * 4 + ["succeeded", "failed"])
        log = log_of(s, t)
        equal([e["payload"]["reason"] for e in log if e["type"] == "task.retrying"],
              [f"because {c}" for c in ("retry", "worker_lost", "recovery", "reroute", "rerun")])
        equal([e["payload"]["cause"] for e in log if e["type"] == "task.attempt.started"],
              ["first", "retry", "retry", "resume", "reroute", "rerun"])
        equal([e["payload"]["root_run_id"] for e in log if e["type"] == "task.attempt.started"], [first] * 6)
        s.kill()
        s.start()
        equal(get(s, t), r)
        command(s, "update_task", task_id=t["task_id"], status="archived")
        refused(s.http.post("/api/control/retry_task", {"task_id": t["task_id"]}), 409, "CONFLICT", "/task_id")
        refused(s.http.post("/api/control/retry_task", {"task_id": "none"}), 404, "NOT_FOUND")
        never = task(s)
        command(s, "fail_task", task_id=never["task_id"], message="no paper")
        a = command(s, "retry_task", task_id=never["task_id"])["result"]
        equal((a["attempt"]["attempt"], a["task"]["status"]), (1, "completed"))
        check("task.retrying" in [e["type"] for e in log_of(s, never)])


@test("a_cancel_stops_the_attempt_and_holds", "CTL-12 TASK-04")
def cancelled():
    with Provider() as p, Server(env=p.env("gate")) as s:
        top = task(s, "assistant")
        child = task(s, "assistant", parent_task_id=top["task_id"])
        waiting = task(s, parent_task_id=top["task_id"])
        runs = [command(s, "start_task", task_id=t["task_id"])["result"]["attempt"]["run_id"] for t in (top, child)]
        for run_id in runs:
            streaming(s, run_id)
        a = command(s, "cancel_task", task_id=top["task_id"], reason="enough", propagation="all")
        equal((a["result"]["task"]["status"], get(s, waiting)["status"]), ("cancelling", "cancelled"))
        for t, run_id in zip((top, child), runs):
            r = ended(s, t, "cancelled")
            equal((r["status_reason"], s.record(run_id)["status"]), ("enough", "canceled"))
        kinds = [e["type"] for e in log_of(s, top)]
        check(kinds.index("task.cancel_requested") < kinds.index("task.attempt.failed") < kinds.index("task.cancelled"),
              kinds)
        for name, body in (("retry_task", {"task_id": child["task_id"]}), ("start_task", {"task_id": waiting["task_id"]}),
                           ("create_task", {"objective": "late", "parent_task_id": top["task_id"]})):
            refused(s.http.post(f"/api/control/{name}", body), 409, "CONFLICT")
        # without propagation what is at work below goes on, but nothing new starts there
        top = task(s, "assistant")
        child = task(s, "assistant", parent_task_id=top["task_id"])
        later = task(s, parent_task_id=top["task_id"])
        run_id = command(s, "start_task", task_id=child["task_id"])["result"]["attempt"]["run_id"]
        streaming(s, run_id)
        equal(command(s, "cancel_task", task_id=top["task_id"])["result"]["task"]["status"], "cancelled")
        refused(s.http.post("/api/control/start_task", {"task_id": later["task_id"]}), 409, "CONFLICT", "/task_id")
        p.release()
        ended(s, child, "completed")


@test("the_end_of_an_attempt_releases_what_waits_for_it", "EVT-028 EVT-093 VAL-06")
def released():
    with Provider() as p, Server(env=p.env("gate")) as s:
        a = task(s, "assistant")
        b = task(s, session_id=a["session_id"])
        command(s, "link_tasks", **{"from": a["task_id"], "to": b["task_id"], "kind": "blocks"})
        equal(get(s, b)["status"], "blocked")
        refused(s.http.post("/api/control/start_task", {"task_id": b["task_id"]}), 409, "CONFLICT", "/task_id")
        streaming(s, command(s, "start_task", task_id=a["task_id"])["result"]["attempt"]["run_id"])
        p.release()
        ended(s, a, "completed")
        equal(get(s, b)["status"], "accepted")
        equal(command(s, "start_task", task_id=b["task_id"])["result"]["task"]["status"], "completed")


def queue_behind(s, first, **body):
    """A task with an attempt that waits behind the one of the first task."""
    t = task(s, session_id=first["session_id"], thread_id=get(s, first)["attempts"][0]["thread_id"], **body)
    a = command(s, "start_task", task_id=t["task_id"])["result"]
    equal((a["task"]["status"], a["attempt"]["status"]), ("queued", "queued"))
    return t, a["attempt"]["run_id"]


@test("an_attempt_of_a_held_task_does_not_start", "CTL-10 CTL-11 CTL-18")
def held():
    """Its turn comes while the task is paused, or blocked; it starts when the task goes on, also after a kill."""
    with Provider() as p, Server(env=p.env("gate")) as s:
        first = task(s, "assistant")
        streaming(s, command(s, "start_task", task_id=first["task_id"])["result"]["attempt"]["run_id"])
        refused(s.http.post("/api/control/pause_task", {"task_id": first["task_id"]}), 409, "CONFLICT", "/task_id")
        equal(get(s, first)["status"], "running")
        equal(get(s, first)["can"], ["update_task", "append_task_progress", "cancel_task"])
        other = task(s, "assistant", session_id=first["session_id"])
        streaming(s, command(s, "start_task", task_id=other["task_id"])["result"]["attempt"]["run_id"])
        paused, paused_run = queue_behind(s, first)
        blocked, blocked_run = queue_behind(s, other)
        blocker = task(s, session_id=first["session_id"])
        command(s, "pause_task", task_id=paused["task_id"])
        command(s, "link_tasks", **{"from": blocker["task_id"], "to": blocked["task_id"], "kind": "blocks"})
        p.release()
        ended(s, first, "completed")
        ended(s, other, "completed")
        for again in (False, True):
            if again:
                s.kill()
                s.start()
            # a turn of another thread goes its whole way meanwhile
            s.finish(s.create("echo"))
            equal([get(s, t)["status"] for t in (paused, blocked)], ["paused", "blocked"])
            check("resume_task" in get(s, paused)["can"] and "pause_task" not in get(s, paused)["can"], "paused")
            check("pause_task" in get(s, blocked)["can"] and "start_task" not in get(s, blocked)["can"], "blocked")
            equal([s.record(r)["status"] for r in (paused_run, blocked_run)], ["queued", "queued"])
        command(s, "resume_task", task_id=paused["task_id"])
        equal(ended(s, paused, "completed")["current_run_id"], paused_run)
        command(s, "complete_task", task_id=blocker["task_id"])
        equal(ended(s, blocked, "completed")["current_run_id"], blocked_run)


@test("a_task_whose_attempt_asks_says_so", "CTL-16 CTL-17")
def asks():
    with Server() as s:
        t = task(s, "tools", input={"message": 'tool fs.write {"path": "x", "text": "y"}'})
        run_id = command(s, "start_task", task_id=t["task_id"])["result"]["attempt"]["run_id"]
        ended(s, t, "waiting_permission")
        for again in (False, True):
            if again:
                s.kill()
                s.start()
            equal(get(s, t)["status"], "waiting_permission")
            listed = s.http.get("/api/tasks?status=waiting_permission").json["tasks"]
            equal([x["task_id"] for x in listed], [t["task_id"]])
            equal(s.http.get("/api/tasks?status=running").json["tasks"], [])
            open_now = s.http.get(f"/api/sessions/{t['session_id']}?include=tasks&verify=1").json["tasks"]
            equal([x["status"] for g in open_now.values() if isinstance(g, list) for x in g if "task_id" in x],
                  ["waiting_permission"])
        refused(s.http.post("/api/control/pause_task", {"task_id": t["task_id"]}), 409, "CONFLICT", "/task_id")
        (asked,) = s.http.get(f"/api/actions?run_id={run_id}").json["actions"]
        command(s, "respond_action", action_id=asked["action_id"], decision="allow")
        ended(s, t, "completed")


@test("attempts_survive_a_kill", "CTL-08")
def killed():
    with Provider() as p, Server(env=p.env("gate")) as s:
        going, stopped = (task(s, "assistant") for _ in range(2))
        runs = [command(s, "start_task", task_id=t["task_id"])["result"]["attempt"]["run_id"] for t in (going, stopped)]
        for run_id in runs:
            streaming(s, run_id)
        queued = task(s, "assistant", thread_id=get(s, going)["attempts"][0]["thread_id"])
        a = command(s, "start_task", task_id=queued["task_id"])["result"]
        equal((a["task"]["status"], a["attempt"]["status"]), ("queued", "queued"))
        s.kill()
        s.start()
        equal(get(s, going)["status"], "running")
        command(s, "cancel_task", task_id=stopped["task_id"])
        ended(s, stopped, "cancelled")
        p.release()
        ended(s, going, "completed")
        r = ended(s, queued, "completed")
        check(r["started_at"] >= get(s, going)["started_at"], r)


@test("a_kill_behind_the_end_of_an_attempt_loses_no_end_of_its_task", "CTL-08")
def killed_behind():
    with Provider() as p, Server(env=p.env("hello")) as s:
        tasks = []
        for _ in range(8):
            tasks.append(task(s, "assistant"))
            run_id = command(s, "start_task", task_id=tasks[-1]["task_id"])["result"]["attempt"]["run_id"]
            with s.stream(run_id) as stream:
                stream.until(lambda e: e.type in ("RunDone", "Error"))
            s.kill()
            s.start()
        for t in tasks:
            r = ended(s, t, "completed")
            equal((r["attempt_count"], len(r["attempts"])), (1, 1))
            equal([e["type"] for e in log_of(s, t)].count("task.completed"), 1)


@test("a_run_that_names_a_task_is_its_next_attempt", "CTL-08 ID-05")
def named():
    with Provider() as p, Server(env=p.env("gate")) as s:
        t = task(s)
        first = s.create("assistant", "go", task_id=t["task_id"], idempotency_key="k")
        streaming(s, first)
        equal((get(s, t)["status"], get(s, t)["current_run_id"]), ("running", first))
        body = {"agent_id": "assistant", "inputs": {"message": "go"}, "task_id": t["task_id"]}
        refused(s.http.post("/api/runs", body), 409, "CONFLICT")
        again = s.http.post("/api/runs", {**body, "idempotency_key": "k"})
        equal((again.status, again.json["run_id"]), (202, first), "the same request, while the attempt lives")
        refused(s.http.post("/api/runs", {**body, "idempotency_key": "k", "inputs": {"message": "no"}}), 409, "CONFLICT")
        p.release()
        ended(s, t, "completed")
        second = s.create("echo", "again", task_id=t["task_id"])
        r = ended(s, t, "completed")
        equal([(a["run_id"], a["attempt_count"]) for a in r["attempts"]], [(first, 1), (second, 2)])
        third = s.http.post(f"/api/runs/{second}/retry", {})
        equal(third.status, 202, third.body)
        wait_until(lambda: get(s, t)["attempt_count"] == 3, "the third attempt")
        talk = task(s)
        run_id = s.create("echo", "here", task_id=talk["task_id"], conversation_id="talk")
        r = ended(s, talk, "completed")
        equal((r["attempts"][0]["run_id"], r["attempts"][0]["thread_id"]), (run_id, "talk"))
        # a thread lives in one session, and an attempt in that of its task
        s.finish(s.create("echo", "hello", conversation_id="elsewhere"))
        body = {"agent_id": "echo", "inputs": {"message": "x"}, "task_id": talk["task_id"], "conversation_id": "elsewhere"}
        refused(s.http.post("/api/runs", body), 409, "CONFLICT", "/conversation_id")
        equal(get(s, talk)["attempt_count"], 1)
        equal({s.record(s.create("echo", "x", conversation_id=c))["session_id"] == talk["session_id"]
               for c in ("talk", "elsewhere")}, {True, False})
        # a task without a row is a label that any number of runs share
        labelled = [s.create("echo", "x", task_id="label") for _ in range(3)]
        for run_id in labelled:
            equal(s.finish(run_id)["task_id"], "label")
        refused(s.http.get("/api/tasks/label"), 404, "NOT_FOUND")


if __name__ == "__main__":
    main()
