#!/usr/bin/env python3
"""Turns and the queue of a thread: submitted, queued, moved, paused, interrupted, after a kill."""
import re

from lib import Provider, Server, all_of, check, check_session, equal, main, refused, run_uar, test, text_of, wait_until


def command(s, name, **body):
    a = s.http.post(f"/api/control/{name}", body)
    equal(a.status, 200, a.body)
    return a.json


def submit(s, message="hi", **more):
    return command(s, "submit_turn", agent_id=more.pop("agent_id", "assistant"), message=message, **more)["result"]


def streaming(s, **more):
    """A turn in the middle of its model's answer."""
    t = submit(s, **more)
    equal((t["status"], t["position"]), ("accepted", None))
    with s.stream(t["run_id"]) as stream:
        stream.until(lambda e: e.type == "ChatDelta")
    return t


def busy(s, waiting, **more):
    """A thread with an active turn and some that wait."""
    first = streaming(s, **more)
    where = {"session_id": first["session_id"], "thread_id": first["thread_id"]}
    return first, where, [submit(s, f"turn {i}", **where) for i in range(waiting)]


def ids(turns):
    return [t["turn_id"] for t in turns]


def queue_facts(s, run_id):
    """The payloads of queue.changed in the session of the run, which is over."""
    return [e.data["payload"] for e in s.session_events(run_id) if e.data["type"] == "queue.changed"]


@test("a_turn_is_accepted_by_an_idle_thread_and_queued_by_a_busy_one", "CTL-01 CTL-03 EVT-054")
def submitted():
    with Provider() as p, Server(env=p.env("gate")) as s:
        first, where, waiting = busy(s, 2, metadata={"from": "a test"})
        equal([(t["status"], t["position"]) for t in waiting], [("queued", 1), ("queued", 2)])
        for t in waiting:
            equal((t["session_id"], t["thread_id"]), (first["session_id"], first["thread_id"]))
            check(len({t["turn_id"], t["task_id"], t["run_id"]}) == 3, t)
            equal(s.record(t["run_id"])["status"], "queued")
        p.release()
        for t in [first] + waiting:
            equal(s.finish(t["run_id"])["status"], "succeeded")
        log = [e.data for e in s.session_events(waiting[-1]["run_id"])]
        check_session(s.session_events(waiting[-1]["run_id"]))
        submitted = [e for e in log if e["type"] == "turn.submitted"]
        equal([e["turn_id"] for e in submitted], ids([first] + waiting))
        equal(submitted[0]["payload"]["metadata"]["caller"], {"from": "a test"})
        equal([e["payload"].get("queued_turn_id") for e in submitted], [None] + ids(waiting))
        facts = [e["payload"] for e in log if e["type"] == "queue.changed"]
        a, b = ids(waiting)
        equal([(f["op"], f["queued_turn_id"], f["order"], f["length"]) for f in facts],
              [("added", a, [a], 1), ("added", b, [a, b], 2), ("started", a, [b], 1), ("started", b, [], 0)])
        # an idle thread takes the next one at once; a session may have several threads
        equal(submit(s, **where)["status"], "accepted")
        other = submit(s, session_id=first["session_id"])
        check(other["thread_id"] != first["thread_id"] and other["session_id"] == first["session_id"], other)
        mine = submit(s, session_id=first["session_id"], thread_id="my-thread")
        equal((mine["thread_id"], mine["status"]), ("my-thread", "accepted"))
        s.finish(mine["run_id"])


@test("a_turn_is_made_of_parts", "CTL-03")
def parts():
    with Server() as s:
        a = submit(s, agent_id="echo", message="plain")
        equal(s.finish(a["run_id"])["status"], "succeeded")
        stored = submit(s, "y" * 100000, agent_id="echo")  # a long message lies apart, in a blob
        s.finish(stored["run_id"])
        ref = next(r for e in s.session_events(stored["run_id"])
                   for r in re.findall(r"blob://[0-9a-f]{64}", str(e.data)))
        body = {"agent_id": "echo", "input": [{"type": "text", "text": "look"}, {"type": "json", "data": {"a": [1]}},
                                              {"type": "form", "values": {"b": 2}},
                                              {"type": "file", "ref": ref, "name": "x.txt"}]}
        t = command(s, "submit_turn", **body)["result"]
        s.finish(t["run_id"])
        said = text_of(s.events(t["run_id"]))
        equal(said, 'look\n\n{"a":[1]}\n\n{"b":2}\n\n[x.txt: ' + ref + ']')
        long = submit(s, "x" * 100000, agent_id="echo")
        equal(s.finish(long["run_id"])["status"], "succeeded")
        for body, where in (({"agent_id": "echo"}, "/message"),
                            ({"message": "x"}, "/agent_id"),
                            ({"agent_id": "echo", "message": "x", "input": [{"type": "text", "text": "y"}]}, "/input"),
                            ({"agent_id": "echo", "input": [{"type": "song"}]}, "/input/0/type"),
                            ({"agent_id": "echo", "input": [{"type": "text"}]}, "/input/0/text"),
                            ({"agent_id": "echo", "input": [{"type": "file", "ref": "blob://x"}]}, "/input/0/ref"),
                            ({"agent_id": "echo", "input": [{"type": "file", "ref": "/etc/passwd"}]}, "/input/0/ref"),
                            ({"agent_id": "echo", "input": [{"type": "text", "text": "a"},
                                                            {"type": "file", "ref": ref},
                                                            {"type": "file", "ref": "blob://" + "0" * 64}]},
                             "/input/2/ref"),
                            ({"agent_id": "echo", "input": [{"type": "file", "ref": "/runs/none/blobs/" + "0" * 24}]},
                             "/input/0/ref"),
                            ({"agent_id": "echo", "input": [{"type": "file", "ref": ref}] * 33}, "/input/32"),
                            ({"agent_id": "echo", "message": "x", "policy": "later"}, "/policy"),
                            ({"agent_id": "echo", "message": "x", "options": {"colour": 1}}, "/options/colour")):
            refused(s.http.post("/api/control/submit_turn", body), 400, "VALIDATION_ERROR", where)
        refused(s.http.post("/api/control/submit_turn", {"agent_id": "echo", "message": "x", "session_id": "none"}),
                404, "NOT_FOUND")
        refused(s.http.post("/api/control/submit_turn", {"agent_id": "nobody", "message": "x"}), 404, "NOT_FOUND")


@test("the_same_turn_id_makes_no_second_turn", "CTL-45")
def repeated():
    with Provider() as p, Server(env=p.env("gate")) as s:
        body = {"agent_id": "assistant", "message": "hi", "turn_id": "mine", "thread_id": "t"}
        answers = all_of([lambda: s.http.post("/api/control/submit_turn", body)] * 6)
        equal({a.status for a in answers}, {200})
        results = [a.json["result"] for a in answers]
        equal(len({r["run_id"] for r in results}), 1)
        equal({r["turn_id"] for r in results}, {"mine"})
        equal(sorted(r["existed"] for r in results), [False] + [True] * 5)
        # with a key: the first outcome, to the letter, also after a kill
        keyed = {"agent_id": "assistant", "message": "two", "thread_id": "t", "idempotency_key": "k"}
        first = s.http.post("/api/control/submit_turn", keyed).json
        equal((first["result"]["status"], first["result"]["position"]), ("queued", 1))
        equal(s.http.post("/api/control/submit_turn", keyed).json, first)
        refused(s.http.post("/api/control/submit_turn", {**keyed, "message": "other"}), 409, "CONFLICT",
                "/idempotency_key")
        s.kill()
        s.start()
        equal(s.http.post("/api/control/submit_turn", keyed).json, first)
        again = command(s, "submit_turn", **body)["result"]
        equal((again["existed"], again["run_id"]), (True, results[0]["run_id"]))
        equal(len(s.http.get("/api/runs").json["runs"]), 2)


@test("policies_say_what_a_busy_thread_does", "CTL-03 CTL-04")
def policies():
    with Provider() as p, Server(env=p.env("gate")) as s:
        first, where, (waiting,) = busy(s, 1)
        refused(s.http.post("/api/control/submit_turn", {"agent_id": "assistant", "message": "x", "policy": "reject",
                                                         **where}), 409, "CONFLICT", "/policy")
        urgent = submit(s, "now", policy="interrupt", **where)
        equal((urgent["status"], urgent["position"]), ("queued", 1))
        equal(s.finish(first["run_id"])["status"], "canceled")
        with s.stream(urgent["run_id"]) as stream:
            stream.until(lambda e: e.type == "ChatDelta")  # it starts before the one that waited longer
        equal(s.record(waiting["run_id"])["status"], "queued")
        p.release()
        equal(s.finish(urgent["run_id"])["status"], "succeeded")
        equal(s.finish(waiting["run_id"])["status"], "succeeded")
        idle = submit(s, policy="reject", **where)
        equal(idle["status"], "accepted")
        s.finish(idle["run_id"])


@test("the_active_turn_is_interrupted", "CTL-04")
def interrupted():
    with Provider() as p, Server(env=p.env("gate")) as s:
        first, where, (waiting,) = busy(s, 1)
        wrong = command(s, "interrupt_turn", turn_id=waiting["turn_id"], **where)
        equal((wrong["result"]["status"], wrong["event_ids"]), ("no_op", []))
        a = command(s, "interrupt_turn", reason="enough", idempotency_key="k", **where)
        equal((a["result"]["status"], a["result"]["turn_ids"]), ("accepted", [first["turn_id"]]))
        check(a["event_ids"], a)
        equal(command(s, "interrupt_turn", reason="enough", idempotency_key="k", **where), a)
        r = s.finish(first["run_id"])
        equal((r["status"], r["cancel_reason"]), ("canceled", "enough"))
        with s.stream(waiting["run_id"]) as stream:
            stream.until(lambda e: e.type == "ChatDelta")  # the queue goes on
        # every thread of the session, when none is named
        other = streaming(s, session_id=first["session_id"])
        both = command(s, "interrupt_turn", session_id=first["session_id"])["result"]
        equal(sorted(both["turn_ids"]), sorted(ids([waiting, other])))
        for t in (waiting, other):
            equal(s.finish(t["run_id"])["status"], "canceled")
        # a turn may be named without its thread
        kept, last = (streaming(s, session_id=first["session_id"]) for _ in range(2))
        named = command(s, "interrupt_turn", session_id=first["session_id"], turn_id=last["turn_id"])["result"]
        equal((named["status"], named["turn_ids"]), ("accepted", [last["turn_id"]]))
        equal(s.finish(last["run_id"])["status"], "canceled")
        equal(s.record(kept["run_id"])["status"], "running")
        idle = command(s, "interrupt_turn", **where)
        equal((idle["result"]["status"], idle["event_ids"]), ("no_op", []))
        refused(s.http.post("/api/control/interrupt_turn", {"session_id": "none"}), 404, "NOT_FOUND")


def pending(s, run_id):
    return s.http.get(f"/api/actions?run_id={run_id}").json["actions"]


@test("an_interrupted_question_is_no_longer_asked", "CTL-04 CTL-20")
def interrupted_question():
    write = 'tool fs.write {"path": "x", "text": "y"}'
    with Server() as s:
        for how in ("interrupt_turn", "submit_turn"):
            t = submit(s, write, agent_id="tools")
            asked = wait_until(lambda: pending(s, t["run_id"]), "the question")[0]
            where = {"session_id": t["session_id"], "thread_id": t["thread_id"]}
            if how == "interrupt_turn":
                command(s, how, **where)
            else:
                s.finish(submit(s, agent_id="echo", policy="interrupt", **where)["run_id"])
            equal(s.finish(t["run_id"])["status"], "canceled")
            equal(pending(s, t["run_id"]), [])
            refused(s.http.post("/api/control/respond_action", {"action_id": asked["action_id"], "decision": "allow"}),
                    409, "ACTION_RESOLVED")
        s.stop()
        done = run_uar("check", "--log", "--data", s.data)
        equal(done.returncode, 0, done.stderr)
        s.start()


@test("the_queue_is_reordered_and_turns_leave_it", "EVT-054 CTL-01 CTL-21 CTL-22")
def reordered():
    with Provider() as p, Server(env=p.env("gate")) as s:
        first, where, waiting = busy(s, 4)
        a, b, c, d = ids(waiting)
        q = command(s, "promote_queued_turn", queued_turn_id=c, **where)["result"]["queue"]
        equal((q["order"], q["length"], q["paused"], q["active_turn_id"]), ([c, a, b, d], 4, False, first["turn_id"]))
        q = command(s, "promote_queued_turn", queued_turn_id=a, position=3, **where)["result"]["queue"]
        equal(q["order"], [c, b, a, d])
        equal(command(s, "promote_queued_turn", queued_turn_id=c, **where)["event_ids"], [])
        q = command(s, "remove_queued_turn", queued_turn_id=b, **where)["result"]["queue"]
        equal((q["order"], q["length"]), ([c, a, d], 3))
        equal(s.finish(waiting[1]["run_id"])["status"], "canceled")
        for body, status, code, at in (
                ({"queued_turn_id": b}, 404, "NOT_FOUND", "/queued_turn_id"),
                ({"queued_turn_id": first["turn_id"]}, 409, "CONFLICT", "/queued_turn_id"),
                ({"queued_turn_id": a, "position": 0}, 400, "VALIDATION_ERROR", "/position"),
                ({"queued_turn_id": a, "position": 9}, 400, "VALIDATION_ERROR", "/position")):
            refused(s.http.post("/api/control/promote_queued_turn", {**where, **body}), status, code, at)
        refused(s.http.post("/api/control/remove_queued_turn", {"thread_id": "none", "queued_turn_id": a}), 404,
                "NOT_FOUND")
        s.kill()
        s.start()
        p.release()
        for t in (waiting[2], waiting[0], waiting[3]):
            equal(s.finish(t["run_id"])["status"], "succeeded")
        begun = [s.record(waiting[i]["run_id"])["started_at"] for i in (2, 0, 3)]
        equal(begun, sorted(begun))
        ops = [(f["op"], f.get("queued_turn_id")) for f in queue_facts(s, waiting[3]["run_id"])]
        equal(ops[4:], [("promoted", c), ("reordered", a), ("removed", b), ("started", c), ("started", a),
                        ("started", d)])


@test("a_paused_queue_waits_and_survives_a_kill", "CTL-05 EVT-054")
def paused():
    with Provider() as p, Server(env=p.env("gate")) as s:
        first, where, waiting = busy(s, 2)
        q = command(s, "pause_queue", reason="lunch", **where)["result"]["queue"]
        equal((q["paused"], q["order"]), (True, ids(waiting)))
        equal(command(s, "pause_queue", **where)["event_ids"], [])
        p.release()
        equal(s.finish(first["run_id"])["status"], "succeeded")
        equal(s.record(waiting[0]["run_id"])["status"], "queued")
        s.kill()
        s.start()
        late = submit(s, "late", **where)
        equal((late["status"], late["position"]), ("queued", 3))
        equal([s.record(t["run_id"])["status"] for t in waiting + [late]], ["queued"] * 3)
        a = command(s, "resume_thread", **where)["result"]
        equal((a["status"], a["queue"]["paused"], a["queue"]["length"]), ("resumed", False, 3))
        for t in waiting + [late]:
            equal(s.finish(t["run_id"])["status"], "succeeded")
        equal(command(s, "resume_thread", **where)["result"]["status"], "nothing_to_resume")
        # an empty queue can be paused, too: the next turn waits, also when the session is not in memory
        command(s, "pause_queue", **where)
        s.kill()
        s.start()
        t = submit(s, "waits", **where)
        equal((t["status"], t["position"]), ("queued", 1))
        r = command(s, "resume_queue", reason="back", **where)
        equal(command(s, "resume_queue", **where)["event_ids"], [])
        equal(len(r["event_ids"]), 1)
        equal(s.finish(t["run_id"])["status"], "succeeded")
        facts = queue_facts(s, t["run_id"])
        equal([f["op"] for f in facts if f["op"] in ("paused", "resumed")], ["paused", "resumed"] * 2)
        equal([f["reason"] for f in facts if "reason" in f], ["lunch", "resume_thread", "back"])
        refused(s.http.post("/api/control/resume_thread", {"thread_id": "none"}), 404, "NOT_FOUND")
        refused(s.http.post("/api/control/pause_queue", {"thread_id": where["thread_id"], "session_id": "other"}), 400,
                "VALIDATION_ERROR", "/session_id")


def told_last(p):
    return [m["content"] for m in p.stats()["last"]["messages"] if m["role"] == "user"]


def talk(s, p, message, **where):
    """One turn to its end, and what the model was told in it."""
    t = submit(s, message, **where)
    equal(s.finish(t["run_id"])["status"], "succeeded")
    return t, told_last(p)


def log_of(s, t):
    return [e.data for e in s.session_events(t["run_id"])]


@test("a_thread_that_waits_for_an_answer_is_blocked_also_after_a_restart", "CTL-05")
def blocked():
    with Server() as s:
        t = submit(s, 'tool fs.write {"path": "a.txt", "text": "hello"}', agent_id="tools")
        where = {"session_id": t["session_id"], "thread_id": t["thread_id"]}
        wait_until(lambda: s.record(t["run_id"]).get("actions"), "a question")
        for again in (False, True):
            if again:
                s.kill()
                s.start()
            a = command(s, "resume_thread", **where)
            r = a["result"]
            equal((r["status"], r["active_turn_id"], r["run_id"], a["event_ids"]),
                  ("blocked", t["turn_id"], t["run_id"], []))
            (pending,) = r["pending"]
            equal((pending["action_id"], pending["tool_name"]),
                  (s.record(t["run_id"])["actions"][0]["action_id"], "fs.write"))
        command(s, "respond_action", action_id=pending["action_id"], decision="allow")
        equal(s.finish(t["run_id"])["status"], "succeeded")
        equal(command(s, "resume_thread", **where)["result"]["status"], "nothing_to_resume")


@test("a_fork_shares_the_turns_before_it", "CTL-01 CTL-45")
def forked():
    with Provider() as p, Server(env=p.env("hello")) as s:
        one, _ = talk(s, p, "one")
        where = {"session_id": one["session_id"], "thread_id": one["thread_id"]}
        two, told = talk(s, p, "two", **where)
        equal(told, ["one", "two"])
        three, _ = talk(s, p, "three", **where)
        a = command(s, "fork_thread", thread_id=where["thread_id"], turn_id=two["turn_id"], new_thread_id="fork",
                    title="Another way")
        f = a["result"]["thread"]
        equal((f["thread_id"], f["session_id"], f["parent_thread_id"], f["forked_turn_id"], f["title"]),
              ("fork", where["session_id"], where["thread_id"], two["turn_id"], "Another way"))
        shown = {t["thread_id"]: t["forked_turn_id"] for t in s.http.get(f"/api/sessions/{where['session_id']}").json["threads"]["items"]}
        equal(shown, {where["thread_id"]: None, "fork": two["turn_id"]})
        equal(s.record(two["run_id"])["turn_id"], two["turn_id"])
        again = command(s, "fork_thread", thread_id=where["thread_id"], turn_id=two["turn_id"], new_thread_id="fork")
        equal((again["result"]["thread"]["thread_id"], again["event_ids"]), ("fork", []))
        other, told = talk(s, p, "four", thread_id="fork")
        equal(told, ["one", "two", "four"], "what came behind the fork is not shared")
        equal(talk(s, p, "five", **where)[1], ["one", "two", "three", "five"], "the parent knows nothing of the fork")
        s.kill()
        s.start()
        equal(talk(s, p, "six", thread_id="fork")[1], ["one", "two", "four", "six"])
        whole = command(s, "fork_thread", thread_id="fork")["result"]["thread"]  # without a turn: all of them
        last, told = talk(s, p, "seven", thread_id=whole["thread_id"])
        equal(told, ["one", "two", "four", "six", "seven"], "a fork of a fork")
        started = [e for e in log_of(s, last) if e["type"] == "thread.started"]
        equal([(e["thread_id"], e["payload"]["origin"], e["payload"].get("parent_thread_id")) for e in started],
              [(where["thread_id"], "new", None), ("fork", "fork", where["thread_id"]),
               (whole["thread_id"], "fork", "fork")])
        refused(s.http.post("/api/control/fork_thread", {"thread_id": "none"}), 404, "NOT_FOUND")
        refused(s.http.post("/api/control/fork_thread", {"thread_id": "fork", "turn_id": three["turn_id"]}), 404,
                "NOT_FOUND", "/turn_id")
        refused(s.http.post("/api/control/fork_thread", {"thread_id": "fork", "new_thread_id": where["thread_id"]}), 409,
                "CONFLICT", "/new_thread_id")


@test("a_rollback_takes_turns_back_and_deletes_nothing", "CTL-01 CTL-45 EVT-123 EVT-124")
def rolled_back():
    with Provider() as p, Server(env=p.env("hello")) as s:
        one, _ = talk(s, p, "one")
        where = {"session_id": one["session_id"], "thread_id": one["thread_id"]}
        two, three = (talk(s, p, m, **where)[0] for m in ("two", "three"))
        a = command(s, "rollback_thread", turn_id=one["turn_id"], idempotency_key="k", **where)
        equal((a["result"]["removed_turn_ids"], a["result"]["surviving_baseline"]["turn_id"]),
              (ids([two, three]), one["turn_id"]))
        equal(command(s, "rollback_thread", turn_id=one["turn_id"], idempotency_key="k", **where), a)
        equal(command(s, "rollback_thread", turn_id=one["turn_id"], **where)["event_ids"], [], "nothing is behind it")
        four, told = talk(s, p, "four", **where)
        equal(told, ["one", "four"])
        s.kill()
        s.start()
        five, told = talk(s, p, "five", **where)
        equal(told, ["one", "four", "five"], "also when the log is read again")
        for t in (two, three):
            equal(s.record(t["run_id"])["status"], "succeeded", "its record stays")
            refused(s.http.post("/api/control/rollback_thread", {**where, "turn_id": t["turn_id"]}), 409, "CONFLICT",
                    "/turn_id")
        b = command(s, "rollback_thread", turn_id=four["turn_id"], **where)["result"]
        equal(b["removed_turn_ids"], ids([five]))
        fork = command(s, "fork_thread", thread_id=where["thread_id"])["result"]["thread"]
        equal(fork["forked_turn_id"], four["turn_id"], "the last turn that counts")
        last, told = talk(s, p, "six", thread_id=fork["thread_id"])
        equal(told, ["one", "four", "six"])
        log = log_of(s, last)
        kinds = [e["type"] for e in log if e["type"].startswith("history.rollback")]
        equal(kinds, ["history.rollback.started", "history.rollback.completed"] * 2)
        first = next(e["payload"] for e in log if e["type"] == "history.rollback.started")
        equal((first["target"]["turn_id"], sorted(first["affected"])),
              (one["turn_id"], ["artifact_ids", "job_ids", "subagent_ids", "tool_call_ids"]))
        refused(s.http.post("/api/control/rollback_thread", {**where, "turn_id": "none"}), 404, "NOT_FOUND", "/turn_id")
        refused(s.http.post("/api/control/rollback_thread", where), 400, "VALIDATION_ERROR", "/turn_id")
        refused(s.http.post("/api/control/rollback_thread", {"thread_id": "none", "turn_id": "x"}), 404, "NOT_FOUND")
    with Provider() as p, Server(env=p.env("gate")) as s:
        first, where, _ = busy(s, 0)
        for name in ("rollback_thread", "fork_thread"):
            refused(s.http.post(f"/api/control/{name}", {**where, "turn_id": first["turn_id"]}), 409, "CONFLICT")


@test("context_fork_and_rollback_follow_the_order_in_which_turns_ran", "CTL-01 CTL-03 CTL-21")
def overtaken():
    with Provider() as p, Server(env=p.env("gate")) as s:
        first, where, (c, d) = busy(s, 2)
        command(s, "promote_queued_turn", queued_turn_id=d["turn_id"], **where)
        p.release()
        for t in (first, d, c):
            equal(s.finish(t["run_id"])["status"], "succeeded")
        equal(told_last(p), ["hi", "turn 1", "turn 0"])
        e, told = talk(s, p, "turn 2", **where)
        equal(told, ["hi", "turn 1", "turn 0", "turn 2"])
        s.kill()
        s.start()
        _, told = talk(s, p, "again", **where)
        equal(told, ["hi", "turn 1", "turn 0", "turn 2", "again"], "also when the log is read again")
        fork = command(s, "fork_thread", thread_id=where["thread_id"], turn_id=d["turn_id"])["result"]["thread"]
        equal(talk(s, p, "forked", thread_id=fork["thread_id"])[1], ["hi", "turn 1", "forked"])
        fork = command(s, "fork_thread", thread_id=where["thread_id"], turn_id=c["turn_id"])["result"]["thread"]
        equal(talk(s, p, "branched", thread_id=fork["thread_id"])[1], ["hi", "turn 1", "turn 0", "branched"])
        a = command(s, "rollback_thread", turn_id=c["turn_id"], **where)["result"]
        equal(a["removed_turn_ids"][0], e["turn_id"])
        equal(len(a["removed_turn_ids"]), 2)
        a = command(s, "rollback_thread", turn_id=d["turn_id"], **where)["result"]
        equal(a["removed_turn_ids"], ids([c]), "a second rollback takes back what the first one left")
        equal(talk(s, p, "back", **where)[1], ["hi", "turn 1", "back"])
        s.kill()
        s.start()
        equal(talk(s, p, "later", **where)[1], ["hi", "turn 1", "back", "later"])


@test("a_turn_that_waited_is_told_of_the_one_that_interrupted", "CTL-03")
def told_of_interruption():
    with Provider() as p, Server(env=p.env("gate")) as s:
        first, where, (waiting,) = busy(s, 1)
        urgent = submit(s, "now", policy="interrupt", **where)
        s.finish(first["run_id"])
        p.release()
        for t in (urgent, waiting):
            equal(s.finish(t["run_id"])["status"], "succeeded")
        equal(told_last(p), ["hi", "now", "turn 0"])
        # the last turn that ran, not the last that was asked
        fork = command(s, "fork_thread", thread_id=where["thread_id"])["result"]["thread"]
        equal(fork["forked_turn_id"], waiting["turn_id"])


@test("a_turn_that_was_cancelled_in_the_queue_is_not_told_to_later_ones", "CTL-03")
def cancelled_in_the_queue():
    with Provider() as p, Server(env=p.env("gate")) as s:
        first, where, (removed, cancelled, last) = busy(s, 3)
        command(s, "remove_queued_turn", queued_turn_id=removed["turn_id"], **where)
        s.cancel(cancelled["run_id"])
        equal(s.finish(cancelled["run_id"])["status"], "canceled")
        p.release()
        for t in (first, last):
            equal(s.finish(t["run_id"])["status"], "succeeded")
        equal(told_last(p), ["hi", "turn 2"])
        said = [m["content"] for m in p.stats()["last"]["messages"] if m["role"] == "assistant"]
        equal(said, [text_of(s.events(first["run_id"]))], "the answer under way is whole")
        s.kill()
        s.start()
        equal(talk(s, p, "later", **where)[1], ["hi", "turn 2", "later"], "also when the log is read again")


if __name__ == "__main__":
    main()
