#!/usr/bin/env python3
"""Runs that wait for an answer are rows: they leave memory, and come back when somebody needs them."""
import re

from lib import Provider, Server, all_of, check, equal, main, refused, test, text_of, wait_until

ASK = 'tool fs.write {"path": "a.txt", "text": "x"}'


def numbers(s):
    text = s.http.get("/metrics").body.decode()
    return {k: int(v) for k, v in re.findall(r"^uar_(runs_live|runs_parked|sessions_live) (\d+)$", text, re.M)}


def command(s, name, **body):
    a = s.http.post(f"/api/control/{name}", body)
    equal(a.status, 200, a.body)
    return a.json["result"]


def ask(s, **more):
    run_id = s.create("tools", ASK, **more)
    wait_until(lambda: s.record(run_id).get("actions"), "a question")
    return run_id


def parked(s, n):
    wait_until(lambda: numbers(s).get("runs_parked") == n and numbers(s)["runs_live"] == 0, f"{n} runs outside of memory")


def answer(s, run_id, decision="allow"):
    action = s.record(run_id)["actions"][0]["action_id"]
    return s.http.post("/api/control/respond_action", {"action_id": action, "decision": decision})


@test("a_run_that_waits_is_not_in_memory_and_goes_on_when_it_is_answered", "")
def answered():
    with Server() as s:
        runs = [ask(s) for _ in range(5)]
        parked(s, 5)
        equal(len(s.http.get("/api/actions").json["actions"]), 5)
        with s.stream(runs[0]) as stream:  # a reader of its stream waits with it
            equal(answer(s, runs[0]).status, 200)
            stream.until(lambda e: e.type == "RunDone")
        equal(s.record(runs[0])["status"], "succeeded")
        # The same answer again, and another one, as ever.
        action = command(s, "get_session", session_id=s.record(runs[0])["session_id"])["active_thread"]["actions"][0]
        body = {"action_id": action["action_id"], "decision": "allow"}
        equal(s.http.post("/api/control/respond_action", body).status, 200)
        refused(s.http.post("/api/control/respond_action", {**body, "decision": "deny"}), 409, "ACTION_RESOLVED")
        body = {"action_id": s.record(runs[1])["actions"][0]["action_id"], "decision": "allow"}
        answers = all_of([lambda: s.http.post("/api/control/respond_action", body)] * 4)  # it comes back once
        equal([a.status for a in answers], [200] * 4)
        s.finish(runs[1])
        parked(s, 3)


@test("a_start_leaves_those_that_wait_where_they_are", "")
def started():
    with Server() as s:
        runs = [ask(s) for _ in range(4)]
        parked(s, 4)
        for stop in (s.kill, s.stop):
            stop()
            s.start()
            parked(s, 4)
        equal(answer(s, runs[0], "deny").status, 200)
        equal(s.finish(runs[0])["status"], "succeeded")
        s.cancel(runs[1])
        equal(s.finish(runs[1])["status"], "canceled")
        s.kill()
        s.start()
        parked(s, 2)
        for r in runs[2:]:
            equal(answer(s, r).status, 200)
            equal(s.finish(r)["status"], "succeeded")
        equal(numbers(s)["runs_parked"], 0)


@test("turns_behind_one_that_waits_keep_their_order", "")
def behind():
    with Server() as s:
        first = ask(s, conversation_id="talk")
        parked(s, 1)
        later = [s.create("echo", f"later {i}", conversation_id="talk") for i in range(3)]
        equal([s.record(r)["status"] for r in later], ["queued"] * 3)
        session_id = s.record(first)["session_id"]
        queued = command(s, "get_session", session_id=session_id)["active_thread"]["queued_turns"]
        q = command(s, "promote_queued_turn", thread_id="talk", queued_turn_id=queued[2]["queued_turn_id"])
        equal(q["queue"]["length"], 3)
        s.kill()
        s.start()
        equal([s.record(r)["status"] for r in later], ["queued"] * 3)
        equal(answer(s, first).status, 200)
        for r in [first] + later:
            equal(s.finish(r)["status"], "succeeded")
        begun = [s.record(r)["started_at"] for r in (later[2], later[0], later[1])]
        equal(begun, sorted(begun))
        equal(text_of(s.events(later[0])), "later 0")


def queued(s, thread="talk"):
    return [q["run_id"] for q in command(s, "get_thread_read", thread_id=thread)["thread"]["queued_turns"]]


def check_ran_in_order(s, runs):
    for r in runs:
        equal(s.finish(r)["status"], "succeeded")
    begun = [s.record(r)["started_at"] for r in runs]
    equal(begun, sorted(begun))


@test("turns_that_wait_in_a_queue_are_not_in_memory", "")
def queues():
    with Server() as s:
        first = ask(s, conversation_id="talk")
        later = [s.create("echo", f"later {i}", conversation_id="talk") for i in range(4)]
        parked(s, 5)
        equal(queued(s), later)
        s.kill()
        s.start()
        parked(s, 5)
        s.cancel(later[1])  # one of those outside of memory
        equal(s.finish(later[1])["status"], "canceled")
        parked(s, 4)
        last = s.create("echo", "the last", conversation_id="talk")
        parked(s, 5)
        turn = command(s, "get_thread_read", thread_id="talk")["thread"]["queued_turns"][2]
        command(s, "promote_queued_turn", thread_id="talk", queued_turn_id=turn["queued_turn_id"])
        parked(s, 5)
        equal(answer(s, first).status, 200)
        check_ran_in_order(s, [first, later[3], later[0], later[2], last])
        equal((numbers(s)["runs_parked"], numbers(s)["runs_live"]), (0, 0))


@test("a_paused_queue_is_not_in_memory", "")
def paused():
    with Server() as s:
        run_id = s.create("echo", "first", conversation_id="talk")
        s.finish(run_id)
        command(s, "pause_queue", thread_id="talk")
        runs = [s.create("echo", f"later {i}", conversation_id="talk") for i in range(3)]
        parked(s, 3)
        before = len(s.session_events(run_id))
        turns = command(s, "get_thread_read", thread_id="talk")["thread"]["queued_turns"]
        for n in (1, 0):
            command(s, "edit_queued_turn", thread_id="talk", queued_turn_id=turns[n]["queued_turn_id"], message="another")
        parked(s, 3)
        command(s, "update_thread", thread_id="talk", title="A talk")
        parked(s, 3)
        after = [e.data["type"] for e in s.session_events(run_id)][before:]
        check("history.reconstructed" not in after, after, "to come back is nothing that happened")
        for stop in (s.kill, s.stop):
            stop()
            s.start()
            parked(s, 3)
        equal(queued(s), runs)
        command(s, "promote_queued_turn", thread_id="talk", queued_turn_id=turns[2]["queued_turn_id"])
        command(s, "resume_queue", thread_id="talk")
        check_ran_in_order(s, [runs[2], runs[0], runs[1]])
        equal([text_of(s.events(r)) for r in runs], ["another", "another", text_of(s.events(runs[2]))])


@test("an_attempt_that_waits_is_not_in_memory", "")
def attempts():
    def status(task):
        return s.http.get("/api/tasks/" + task).json["task"]["status"]

    with Server() as s:
        tasks, runs = [f"dig-{i}" for i in range(4)], []
        for t in tasks:
            command(s, "create_task", task_id=t, objective="dig", agent_id="tools", input={"message": ASK})
            runs.append(command(s, "start_task", task_id=t)["attempt"]["run_id"])
        for t in tasks:
            wait_until(lambda: status(t) == "waiting_permission", "the task follows its attempt")
        for stop in (None, s.kill, s.stop):
            if stop:
                stop()
                s.start()
            parked(s, 4)
            equal([status(t) for t in tasks], ["waiting_permission"] * 4)
        equal(answer(s, runs[0]).status, 200)
        wait_until(lambda: status(tasks[0]) == "completed", "its task is done")
        command(s, "cancel_task", task_id=tasks[1])
        equal(s.finish(runs[1])["status"], "canceled")
        wait_until(lambda: status(tasks[1]) == "cancelled", "its task is cancelled")
        s.cancel(runs[2])
        wait_until(lambda: status(tasks[2]) == "cancelled", "the task of a cancelled attempt")
        parked(s, 1)
        command(s, "update_task", task_id=tasks[3], title="Digging")
        parked(s, 1)
        equal(status(tasks[3]), "waiting_permission")
        with s.session_stream(s.record(runs[3])["session_id"], stored=1) as log:
            kinds = [e.data["type"] for e in log]
        equal(kinds.count("vendor.uar.task.followed"), 1, "starts and a command in between repeat nothing")


@test("another_thread_of_the_session_and_commands_wake_it", "")
def commanded():
    with Server() as s:
        first = ask(s, conversation_id="talk")
        session_id = s.record(first)["session_id"]
        parked(s, 1)
        t = command(s, "submit_turn", session_id=session_id, agent_id="echo", message="beside")
        equal(s.finish(t["run_id"])["status"], "succeeded")
        parked(s, 1)
        equal(command(s, "resume_thread", thread_id="talk")["status"], "blocked")
        parked(s, 1)
        command(s, "update_thread", thread_id="talk", title="A talk")
        parked(s, 1)
        with s.session_stream(session_id, stored=1) as log:
            check("history.reconstructed" not in [e.data["type"] for e in log], "to come back is nothing that happened")
        equal(command(s, "interrupt_turn", session_id=session_id)["status"], "accepted")
        equal(s.finish(first)["status"], "canceled")
        equal(numbers(s)["runs_parked"], 0)


@test("a_start_keeps_sessions_together_in_memory_or_on_disk", "")
def together():
    """A run that waits comes into memory with its session if another thread of that works, whichever was first."""
    with Provider() as p, Server(env=p.env("gate")) as s:
        alone = ask(s)
        before = ask(s)
        session_id = s.record(before)["session_id"]
        works = command(s, "submit_turn", session_id=session_id, agent_id="assistant", message="hello")["run_id"]
        after = command(s, "submit_turn", session_id=session_id, agent_id="tools", message=ASK)["run_id"]
        wait_until(lambda: s.record(after).get("actions"), "a question")
        for stop in (s.kill, s.stop):
            stop()
            s.start()
            wait_until(lambda: numbers(s) == {"runs_live": 3, "runs_parked": 1, "sessions_live": 1}, "one of two sessions")
        for run_id in (before, after, alone):
            equal(answer(s, run_id).status, 200)
            equal(s.finish(run_id)["status"], "succeeded")
        p.release()
        equal(s.finish(works)["status"], "succeeded")


main()
