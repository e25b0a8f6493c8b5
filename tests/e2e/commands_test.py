#!/usr/bin/env python3
"""Every command of GET /api/control: success, bad input, wrong owner, wrong state, repetition.

ROWS has one row for each command that the server offers; a command without a row fails the test."""
import json

from lib import Server, check, equal, main, refused, test, wait_until
from lib.client import Client

ASK = 'tool fs.write {"path": "a.txt", "text": "x"}'


def post(s, name, **body):
    return s.http.post("/api/control/" + name, body)


def done(s, name, **body):
    a = post(s, name, **body)
    equal(a.status, 200, (name, a.body))
    return a.json["result"]


def new_task(s, **body):
    return {"task_id": done(s, "create_task", objective="x", **body)["task"]["task_id"]}


def ended_task(s):
    t = new_task(s, agent_id="echo", input={"message": "hello"})
    done(s, "fail_task", message="no", **t)
    return t


def held_turn(s, **where):
    """A turn that waits for an answer: it keeps its thread busy, also over a restart."""
    t = done(s, "submit_turn", agent_id="tools", message=ASK, **where)
    wait_until(lambda: s.record(t["run_id"]).get("actions"), "a question")
    return t


def busy_thread(s):
    t = held_turn(s)
    return {"session_id": t["session_id"], "thread_id": t["thread_id"]}


def queued_turn(s):
    where = busy_thread(s)
    turn = done(s, "submit_turn", agent_id="echo", message="later", **where)
    equal(turn["status"], "queued")
    return {**where, "queued_turn_id": turn["turn_id"]}


def started_turn(s):
    """The active turn where a queued one is asked for."""
    t = held_turn(s)
    return {"session_id": t["session_id"], "thread_id": t["thread_id"], "queued_turn_id": t["turn_id"]}


def idle_thread(s, turns=2):
    t = done(s, "submit_turn", agent_id="echo", message="one")
    s.finish(t["run_id"])
    where = {"session_id": t["session_id"], "thread_id": t["thread_id"]}
    for _ in range(turns - 1):
        s.finish(done(s, "submit_turn", agent_id="echo", message="more", **where)["run_id"])
    return where, t["turn_id"]


def open_action(s):
    return s.record(held_turn(s)["run_id"])["actions"][0]["action_id"]


def granted(s):
    action_id = open_action(s)
    done(s, "respond_action", action_id=action_id, decision="allow_for_session")
    return {"grant_id": action_id}


def two_tasks(s):
    first = done(s, "create_task", objective="x")["task"]
    return {"from": first["task_id"], "to": new_task(s, session_id=first["session_id"])["task_id"], "kind": "blocks"}


def linked(s):
    edge = two_tasks(s)
    done(s, "link_tasks", **edge)
    return edge


def circle(s):
    edge = linked(s)
    return {**edge, "from": edge["to"], "to": edge["from"]}


def paused_task(s):
    t = new_task(s)
    done(s, "pause_task", **t)
    return t


def thread_with_turn(s, busy=False):
    where, turn_id = idle_thread(s)
    if busy:
        held_turn(s, **where)
    return {**where, "turn_id": turn_id}


def child_of_cancelled(s):
    parent = new_task(s)
    done(s, "cancel_task", propagation="all", **parent)
    return {"objective": "x", "parent_task_id": parent["task_id"]}


def more(make, **members):
    return lambda s: {**make(s), **members}


def given(**members):
    return lambda s: members


def session_only(s):
    return {"session_id": idle_thread(s, 1)[0]["session_id"]}


def thread_only(s):
    return idle_thread(s, 1)[0]


def channel(s):
    c = done(s, "connect_channel", transport="sse", peer_role="client", **session_only(s))
    return {"channel_id": c["channel"]["channel_id"]}


def channel_that_left(s):
    c = done(s, "connect_channel", transport="sse", peer_role="client", **session_only(s))
    done(s, "disconnect_channel", channel_id=c["channel"]["channel_id"])
    return {"channel_id": c["channel"]["channel_id"], "resume_token": c["resume_token"]}


def taken_channel(s):
    where = session_only(s)
    done(s, "connect_channel", transport="sse", peer_role="client", channel_id="c-taken", **where)
    return {"transport": "sse", "peer_role": "client", "channel_id": "c-taken", **where}
def child(s, message="hello", agent_id="echo", closed=False, rests=True):
    where = idle_thread(s, 1)[0]
    c = done(s, "spawn_subagent", thread_id=where["thread_id"], agent_id=agent_id, message=message)["subagent"]
    if closed:
        done(s, "close_subagent", subagent_id=c["subagent_id"])
    while rests and done(s, "wait_subagents", subagent_ids=[c["subagent_id"]], timeout_ms=20000)["timed_out"]:
        pass
    return {"subagent_id": c["subagent_id"]}


def job(s, agent_id="echo", ended=True):
    j = done(s, "create_job", agent_id=agent_id, instruction="dig", items=["a"])["job"]
    wait_until(lambda: not ended or done(s, "get_job", job_id=j["job_id"])["job"]["status"] != "running", "the job ends")
    return {"job_id": j["job_id"]}


def job_item(agent_id):
    def make(s):
        j = job(s, agent_id)
        return {**j, "job_item_id": j["job_id"] + ".0"}
    return make


def cancelled_task(s):
    t = new_task(s)
    done(s, "cancel_task", **t)
    return t


# name: (members of a success, members that meet a wrong state or None, the status that they get)
def ended_process(s):
    """A command that has run; a call for it is answered with what is left."""
    a = s.http.send("PUT", "/api/agents/runs-commands", {
        "version": "1.0", "kind": "agent", "id": "runs-commands", "runtime": {"entry": "llm.chat"},
        "policy": {"provider": {"default": {"provider": "scripted", "model": "scripted-tools"}}, "tools": {"allow": ["process:*"]}}})
    check(a.status in (200, 201), a.body)
    run_id = s.create("runs-commands", 'tool process__run {"command": "true"}')
    action = wait_until(lambda: s.record(run_id).get("actions"), "a question")[0]["action_id"]
    equal(post(s, "respond_action", action_id=action, decision="allow").status, 200)
    log = [e.data for e in s.session_events(run_id)]
    return {"process_id": next(e["process_id"] for e in log if e["type"] == "process.completed")}


ROWS = {
    "submit_turn": (given(agent_id="echo", message="hello"),
                    more(busy_thread, agent_id="echo", message="x", policy="reject"), 409),
    "interrupt_turn": (busy_thread, None, "without an active turn the answer is no_op"),
    "resume_thread": (thread_only, None, "with nothing to resume the answer says so"),
    "remove_queued_turn": (queued_turn, started_turn, 409),
    "promote_queued_turn": (queued_turn, started_turn, 409),
    "edit_queued_turn": (more(queued_turn, message="new"), more(started_turn, message="new"), 409),
    "pause_queue": (busy_thread, None, "a paused queue stays paused"),
    "resume_queue": (busy_thread, None, "a queue that is not paused goes on"),
    "update_session": (more(session_only, title="a title"), None, "a session can always be renamed"),
    "update_thread": (more(thread_only, title="a title"), None, "so can a thread"),
    "fork_thread": (thread_with_turn, more(thread_only, turn_id="none"), 404),
    "rollback_thread": (thread_with_turn, lambda s: thread_with_turn(s, busy=True), 409),
    "create_task": (given(objective="x"), child_of_cancelled, 409),
    "update_task": (more(new_task, title="y"), more(ended_task, title="y"), 409),
    "start_task": (lambda s: new_task(s, agent_id="echo", input={"message": "hello"}), ended_task, 409),
    "append_task_progress": (more(new_task, progress=0.5), more(ended_task, progress=0.5), 409),
    "pause_task": (new_task, ended_task, 409),
    "resume_task": (paused_task, ended_task, 409),
    "cancel_task": (new_task, None, "a task that is over stays as it is"),
    "retry_task": (ended_task, more(new_task, agent_id="echo"), 409),
    "complete_task": (new_task, ended_task, 409),
    "fail_task": (more(new_task, message="no"), more(ended_task, message="no"), 409),
    "link_tasks": (two_tasks, circle, 409),
    "unlink_tasks": (linked, two_tasks, 404),
    "respond_action": (lambda s: {"action_id": open_action(s), "decision": "allow"}, None, "see actions_test"),
    "resolve_permission": (lambda s: {"action_id": open_action(s), "decision": "allow"}, None, "see permissions_test"),
    "evaluate_permission": (more(thread_only, agent_id="tools", tool="fs.list"), None, "it changes nothing"),
    "update_permissions": (more(session_only, mode="plan"), None, "it can always be set"),
    "revoke_grant": (granted, None, "a revoked grant stays revoked"),
    "connect_channel": (more(session_only, transport="sse", peer_role="client"), taken_channel, 409),
    "reconnect_channel": (channel_that_left, more(channel, resume_token="wrong"), 403),
    "disconnect_channel": (channel, None, "one that is gone stays so"),
    "ack_events": (more(channel, cursor="1"), more(channel, cursor="1000000"), 400),
    "export_evidence": (session_only, more(thread_only, turn_id="none"), 404),
    "export_replay": (thread_only, more(thread_only, turn_id="none"), 404),
    "export_review": (new_task, more(thread_only, turn_id="none"), 404),
    "write_process_stdin": (more(ended_process, input="x"), None, "see sandbox_test"),
    "terminate_process": (ended_process, None, "see sandbox_test"),
    "get_execution_environment": (session_only, None, "a read"),
    "get_session": (session_only, None, "a read"),
    "get_thread_read": (thread_only, None, "a read"),
    "get_tool_inventory": (given(), None, "a read"),
    "list_tasks": (given(), None, "a read"),
    "get_task": (new_task, None, "a read"),
    "spawn_subagent": (lambda s: {"thread_id": idle_thread(s, 1)[0]["thread_id"], "agent_id": "echo", "message": "x"},
                       more(thread_only, turn_id="none", agent_id="echo", message="x"), 404),
    "send_subagent_input": (more(child, message="x"), lambda s: {**child(s, closed=True), "message": "x"}, 409),
    "resume_subagent": (child, lambda s: child(s, ASK, "tools", rests=False), 409),
    "close_subagent": (child, None, "a closed one stays closed"),
    "wait_subagents": (lambda s: {"subagent_ids": [child(s)["subagent_id"]]}, None, "a read"),
    "list_subagents": (session_only, None, "a read"),
    "create_job": (given(agent_id="echo", instruction="dig", items=["a"]),
                   more(cancelled_task, agent_id="echo", instruction="dig", items=["a"]), 409),
    "list_jobs": (given(), None, "a read"),
    "get_job": (job, None, "a read"),
    "cancel_job": (job, None, "a job that is over stays as it is"),
    "retry_job_item": (job_item("nobody"), job_item("echo"), 409),
}


def offered(s):
    return {c["name"]: c for c in s.http.get("/api/control").json["commands"]}


def sequence_of(s, body):
    """What a session or task is at: it moves with every fact."""
    if "task_id" in body or "from" in body:
        return s.http.get("/api/tasks/" + body.get("task_id", body.get("from"))).json["task"]["through_sequence"]
    if "session_id" in body:
        return s.http.get("/api/sessions/" + body["session_id"]).json["through_sequence"]
    return None


@test("every_command_has_a_row_and_later_ones_are_501", "CTL-02")
def rows():
    with Server() as s:
        commands = offered(s)
        equal(sorted(n for n, c in commands.items() if c["available"]), sorted(ROWS))
        for name, c in commands.items():
            if not c["available"]:
                refused(post(s, name), 501, "NOT_IMPLEMENTED")


@test("every_command_succeeds_and_a_repetition_changes_nothing", "CTL-01 CTL-45")
def repeated():
    with Server(process_tools="workspace_write") as s:
        for name, c in offered(s).items():
            if not c["available"]:
                continue
            body = ROWS[name][0](s)
            if not c["changes"]:
                equal(post(s, name, **body).status, 200, name)
                refused(post(s, name, idempotency_key="k", **body), 400, "VALIDATION_ERROR", "/idempotency_key")
                continue
            first = post(s, name, idempotency_key="k-" + name, **body)
            equal((first.status, first.json.get("ok")), (200, True), (name, first.body))
            at = sequence_of(s, body)
            again = post(s, name, idempotency_key="k-" + name, **body)
            equal(again.status, 200, (name, again.body))
            equal(again.json["event_ids"], first.json["event_ids"], name)
            equal(json.dumps(again.json["result"], sort_keys=True), json.dumps(first.json["result"], sort_keys=True), name)
            if name not in ("submit_turn", "start_task", "retry_task", "respond_action", "resolve_permission", "interrupt_turn",
                            "resume_queue"):
                equal(sequence_of(s, body), at, name)  # of those a run goes on meanwhile


@test("every_command_has_its_first_outcome_after_a_kill", "CTL-45")
def outlives():
    with Server(process_tools="workspace_write") as s:
        answers = []
        for name, c in offered(s).items():
            if c["available"] and c["changes"]:
                body = {"idempotency_key": "k-" + name, **ROWS[name][0](s)}
                a = post(s, name, **body)
                equal(a.status, 200, (name, a.body))
                answers.append((name, body, a.json))
        s.restart()
        s.ready()
        for name, body, first in answers:
            a = post(s, name, **body)
            equal(a.status, 200, (name, a.body))
            equal(json.dumps(a.json, sort_keys=True), json.dumps(first, sort_keys=True), name)


@test("every_command_refuses_bad_input_and_names_the_member", "CTL-01")
def bad():
    with Server(process_tools="workspace_write") as s:
        for name, c in offered(s).items():
            if not c["available"]:
                continue
            schema, body = c["input_schema"], ROWS[name][0](s)
            refused(post(s, name, no_such_member=1, **body), 400, "VALIDATION_ERROR", "/no_such_member")
            for member in schema.get("required", []):
                short = {k: v for k, v in body.items() if k != member}
                refused(post(s, name, **short), 400, "VALIDATION_ERROR", "/" + member)
            for member, form in schema["properties"].items():
                wrong = {"string": 7, "object": [], "array": {}, "boolean": "x", "integer": "x", "number": "x"}
                if form.get("type") in wrong:
                    refused(post(s, name, **{**body, member: wrong[form["type"]]}), 400, "VALIDATION_ERROR", "/" + member)
            refused(s.http.send("POST", "/api/control/" + name, body="[]"), 400, "VALIDATION_ERROR")


@test("every_command_of_another_owner_finds_nothing", "CTL-01")
def another():
    with Server(user="one", process_tools="workspace_write") as s:
        bodies = {n: ROWS[n][0](s) for n, c in offered(s).items() if c["available"]}
        s.restart(user="two")
        for name, body in bodies.items():
            a = post(s, name, **body)
            if name in ("submit_turn", "create_task", "create_job", "get_tool_inventory", "list_tasks", "list_jobs"):
                equal(a.status, 200, (name, a.body))  # they name nothing that is somebody's
            else:
                p = refused(a, 404, "NOT_FOUND")
                if name.startswith(("get_", "list_", "respond_", "resolve_", "wait_")):
                    continue
                member = p["where"].lstrip("/")
                check(body[member] in p["detail"], p)
        equal([t["objective"] for t in done(s, "list_tasks")["tasks"]], ["x"], "its own alone")
        s.restart(user="one")
        for name, body in bodies.items():
            equal(post(s, name, **body).status, 200, (name, "its own owner finds it as it was"))


def foreign(s, mine, theirs):
    """(command, members): each names something of another owner beside what is the caller's own."""
    own, task, work = mine["spawn_subagent"], mine["get_task"]["task_id"], mine["retry_job_item"]
    their_task, their_turn = theirs["get_task"]["task_id"], theirs["fork_thread"]["turn_id"]
    session, thread = theirs["get_thread_read"]["session_id"], {"thread_id": own["thread_id"]}
    return (
        ("link_tasks", {"from": task, "to": their_task, "kind": "blocks"}),
        ("create_task", {"objective": "x", "parent_task_id": their_task}),
        ("create_task", {"objective": "x", "session_id": session}),
        ("submit_turn", {"agent_id": "echo", "message": "x", "session_id": session}),
        ("spawn_subagent", {**own, "task_id": their_task}), ("spawn_subagent", {**own, "turn_id": their_turn}),
        ("create_job", {"agent_id": "echo", "instruction": "x", "items": ["a"], "task_id": their_task}),
        ("create_job", {"agent_id": "echo", "instruction": "x", "items": ["a"], "session_id": session}),
        ("fork_thread", {**thread, "turn_id": their_turn}), ("rollback_thread", {**thread, "turn_id": their_turn}),
        ("promote_queued_turn", {**thread, "queued_turn_id": theirs["promote_queued_turn"]["queued_turn_id"]}),
        ("retry_job_item", {"job_id": work["job_id"], "job_item_id": theirs["retry_job_item"]["job_item_id"]}),
        ("wait_subagents", {"subagent_ids": mine["wait_subagents"]["subagent_ids"] + theirs["wait_subagents"]["subagent_ids"]}),
        ("connect_channel", {"transport": "sse", "peer_role": "client", "session_id": session}),
        ("export_evidence", {"session_id": session}), ("get_execution_environment", {"session_id": session}),
        ("list_subagents", {"session_id": session}), ("update_permissions", {"session_id": session, "mode": "plan"}))


@test("an_id_of_another_owner_is_nobodys_in_every_member", "CTL-01 TEN-07")
def members():
    made = "spawn_subagent get_task retry_job_item fork_thread get_thread_read promote_queued_turn wait_subagents".split()
    with Server(user="one") as s:
        theirs = {n: ROWS[n][0](s) for n in made}
        s.restart(user="two")
        mine = {n: ROWS[n][0](s) for n in made}
        for name, body in foreign(s, mine, theirs):
            refused(post(s, name, **body), 404, "NOT_FOUND")
        turn = {"session_id": mine["get_thread_read"]["session_id"], "turn_id": theirs["fork_thread"]["turn_id"]}
        equal(done(s, "interrupt_turn", **turn)["status"], "no_op")
        for filters in ({"session_id": theirs["get_thread_read"]["session_id"]}, {"parent_task_id": theirs["get_task"]["task_id"]}):
            equal(done(s, "list_tasks", **filters)["tasks"], [])


@test("every_command_is_refused_in_a_wrong_state", "CTL-01")
def states():
    with Server() as s:
        for name, (_, make, want) in ROWS.items():
            if not make:
                continue
            body = make(s)
            at = sequence_of(s, body)
            a = post(s, name, **body)
            refused(a, want, {400: "VALIDATION_ERROR", 403: "FORBIDDEN", 404: "NOT_FOUND", 409: "CONFLICT"}[want])
            equal(sequence_of(s, body), at, name)


def user_of(s, user):
    """A client with a key of its own."""
    a = s.http.post("/api/admin/credentials", {"user": user, "tenant": user + "s"})
    check(a.status in (200, 201), a.body)
    return Client(s.url, a.json["token"])


def command(http, name, **body):
    a = http.post("/api/control/" + name, body)
    equal(a.status, 200, (name, a.body))
    return a.json["result"]


def same_ids(http):
    """A task, a child agent and a job under ids that another user has, too; each asks."""
    command(http, "submit_turn", agent_id="echo", message="x", thread_id="talk", turn_id="turn")
    command(http, "create_task", task_id="task", objective="x", agent_id="tools", input={"message": ASK})
    command(http, "start_task", task_id="task")
    wait_until(lambda: command(http, "get_thread_read", thread_id="talk")["thread"]["last_outcome"], "the turn ends")
    command(http, "spawn_subagent", thread_id="talk", agent_id="tools", message=ASK, subagent_id="child")
    command(http, "create_job", job_id="job", agent_id="tools", instruction=ASK, items=["", ""], thread_id="talk")


def standing(http):
    """Task, child agent, items at work and questions."""
    return (command(http, "get_task", task_id="task")["task"]["status"],
            command(http, "wait_subagents", subagent_ids=["child"])["subagents"][0]["status"],
            command(http, "get_job", job_id="job")["job"]["counts"]["running"], len(http.get("/api/actions").json["actions"]))


@test("the_same_ids_of_two_users_are_two_things_also_after_a_kill", "TEN-04 TEN-05 CTL-01")
def ids_of_two():
    asks = ("waiting_permission", "waiting", 2, 4)
    with Server() as s:
        one, two = user_of(s, "alice"), user_of(s, "bob")
        for http in (one, two):
            same_ids(http)
        wait_until(lambda: standing(one) == standing(two) == asks, "all of them ask")
        command(one, "cancel_job", job_id="job")
        command(one, "close_subagent", subagent_id="child")
        command(one, "cancel_task", task_id="task")
        s.restart().ready()
        one, two = Client(s.url, one.token), Client(s.url, two.token)
        wait_until(lambda: standing(one) == ("cancelled", "closed", 0, 0), "what was stopped stays so")
        wait_until(lambda: standing(two) == asks, "nothing of the other one was")
        for a in two.get("/api/actions").json["actions"]:
            command(two, "respond_action", action_id=a["action_id"], decision="allow")
        wait_until(lambda: standing(two) == ("completed", "completed", 0, 0), "it goes on")
        equal(standing(one), ("cancelled", "closed", 0, 0))


main()
