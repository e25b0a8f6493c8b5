#!/usr/bin/env python3
"""Input after a turn was submitted: messages that join the active turn, and edited turns of the queue."""
import os
import tempfile

from lib import Provider, Server, check, check_session, equal, main, refused, test, text_of, wait_until

TYPE = "vendor.uar.turn.input"
LONG = "a long text " * 1000


def command(s, name, **body):
    a = s.http.post(f"/api/control/{name}", body)
    equal(a.status, 200, a.body)
    return a.json


def submit(s, message="hi", **more):
    return command(s, "submit_turn", agent_id=more.pop("agent_id", "assistant"), message=message, **more)["result"]


def streaming(s, message, **more):
    """A turn in the middle of its model's answer, and where it is."""
    t = submit(s, message, **more)
    with s.stream(t["run_id"]) as stream:
        stream.until(lambda e: e.type == "ChatDelta")
    return t, {"session_id": t["session_id"], "thread_id": t["thread_id"]}


def told(p):
    """What the model was told last, without instructions."""
    return [(m["role"], m["content"]) for m in p.stats()["last"]["messages"] if m["role"] != "system"]


def log_of(s, t):
    return [e.data for e in s.session_events(t["run_id"])]


@test("a_message_joins_the_active_turn", "CTL-03")
def joins():
    with Provider() as p, Server(env=p.env("seq:gate,repeat,repeat")) as s:
        first, where = streaming(s, "question")
        a = submit(s, "and this", policy="steer", **where)
        equal((a["status"], a["steered"], a["position"], a["existed"]), ("accepted", True, None, False))
        equal([a[k] for k in ("run_id", "turn_id", "task_id")], [first[k] for k in ("run_id", "turn_id", "task_id")])
        submit(s, LONG, policy="steer", **where)
        p.release()
        equal(s.finish(first["run_id"])["status"], "succeeded")
        # The answer that was under way is whole; then the model is called with what came meanwhile.
        equal(told(p), [("user", "question"), ("assistant", "before after"), ("user", "and this"), ("user", LONG)])
        equal(text_of(s.events(first["run_id"])), "before after" + LONG)
        log = log_of(s, first)
        check_session(s.session_events(first["run_id"]))
        facts = [e for e in log if e["type"] == TYPE]
        equal([(e["payload"]["op"], e["turn_id"], e["payload"]["input_parts"][0]["bytes"]) for e in facts],
              [("added", first["turn_id"], 8), ("added", first["turn_id"], len(LONG))])
        equal([e["type"] for e in log].count("turn.completed"), 1)
        steps = command(s, "get_session", session_id=first["session_id"])["result"]["recent"]["steps"]
        equal([(x["role"], x["text"][:8]) for x in steps if x["kind"] == "message"],
              [("user", "question"), ("assistant", "before a"), ("user", "and this"), ("user", LONG[:8]),
               ("assistant", LONG[:8])])
        # Later turns of the thread know it, too.
        s.finish(submit(s, "next", **where)["run_id"])
        equal(told(p), [("user", "question"), ("user", "and this"), ("user", LONG), ("assistant", LONG),
                        ("user", "next")])


@test("a_message_that_joined_survives_a_kill", "CTL-03")
def killed():
    with Provider() as p, Server(env=p.env("seq:gate,repeat")) as s:
        first, where = streaming(s, "question")
        body = {"turn_id": "mine", "policy": "steer", **where}
        a = submit(s, "and this", **body)
        s.kill()
        s.start()
        again = submit(s, "and this", **body)
        equal((again["existed"], again["run_id"]), (True, a["run_id"]))
        equal(s.finish(first["run_id"])["status"], "succeeded")
        equal(told(p), [("user", "question"), ("user", "and this")])
        equal([e["type"] for e in log_of(s, first)].count(TYPE), 1)


@test("a_message_joins_between_rounds_of_tools", "CTL-03")
def between():
    call = '[["internal__fs_write", "{\\"path\\": \\"a.txt\\", \\"text\\": \\"x\\"}"]]'
    with Provider() as p, Server(env=p.env("seq:asks,repeat")) as s:
        t = submit(s, call)
        wait_until(lambda: s.record(t["run_id"]).get("actions"), "a question")
        where = {"session_id": t["session_id"], "thread_id": t["thread_id"]}
        submit(s, "faster", policy="steer", **where)
        equal(s.record(t["run_id"])["status"], "running")
        action = s.record(t["run_id"])["actions"][0]["action_id"]
        command(s, "respond_action", action_id=action, decision="allow")
        equal(s.finish(t["run_id"])["status"], "succeeded")
        equal([role for role, _ in told(p)], ["user", "assistant", "tool", "user"])
        equal(told(p)[-1], ("user", "faster"))


@test("what_takes_no_message_refuses_it", "CTL-03")
def refusals():
    with tempfile.TemporaryDirectory() as folder, Provider() as p, \
            Server(env=p.env("gate"), fixtures_dir=folder) as s:
        with open(os.path.join(folder, "slow.jsonl"), "w") as f:
            f.write('{"at_ms": 600000, "type": "RunDone", "data": {}}\n')

        def steer(where, **more):
            return s.http.post("/api/control/submit_turn",
                               {"agent_id": "assistant", "message": "x", "policy": "steer", **where, **more})
        idle = submit(s, "first", policy="steer")
        equal((idle["status"], "steered" in idle), ("accepted", False))
        where = {"session_id": idle["session_id"], "thread_id": idle["thread_id"]}
        refused(steer(where, agent_id="echo"), 409, "CONFLICT", "/agent_id")
        command(s, "interrupt_turn", **where)
        s.finish(idle["run_id"])
        slow = {"agent_id": "fixture", "options": {"inputs": {"fixture": "slow"}}}
        replay = submit(s, "x", **slow)
        other = {"session_id": replay["session_id"], "thread_id": replay["thread_id"]}
        refused(steer(other, **slow), 409, "CONFLICT", "/policy")
        queued = submit(s, "x", **slow, **other)
        refused(s.http.post("/api/control/edit_queued_turn",
                            {"queued_turn_id": queued["turn_id"], "message": "y", **other}), 409, "CONFLICT",
                "/queued_turn_id")
        first, where = streaming(s, "again")
        for i in range(64):
            submit(s, f"message {i}", policy="steer", **where)
        refused(steer(where), 409, "CONFLICT", "/policy")
        p.release()
        equal(s.finish(first["run_id"])["status"], "succeeded")
        equal(told(p)[-1], ("user", "message 63"))


@test("a_queued_turn_is_edited_and_keeps_its_place", "EVT-054")
def edited():
    with Provider() as p, Server(env=p.env("seq:gate,repeat,repeat,repeat")) as s:
        first, where = streaming(s, "first")
        a, b, c = (submit(s, f"turn {x}", **where) for x in "abc")
        order = [t["turn_id"] for t in (a, b, c)]
        r = command(s, "edit_queued_turn", queued_turn_id=b["turn_id"], message="other", idempotency_key="k", **where)
        equal((r["result"]["queue"]["order"], len(r["event_ids"])), (order, 2))
        equal(command(s, "edit_queued_turn", queued_turn_id=b["turn_id"], message="other", idempotency_key="k",
                      **where), r)
        command(s, "edit_queued_turn", queued_turn_id=c["turn_id"], input=[{"type": "text", "text": LONG}], **where)
        equal(s.record(b["run_id"])["title"], "other")
        shown = {t["turn_id"]: t for t in
                 command(s, "get_session", session_id=first["session_id"])["result"]["active_thread"]["turns"]}
        equal((shown[a["turn_id"]]["input_preview"], shown[b["turn_id"]]["input_preview"]), ("turn a", "other"))
        for body, status, code, at in (
                ({"queued_turn_id": "none", "message": "x"}, 404, "NOT_FOUND", "/queued_turn_id"),
                ({"queued_turn_id": first["turn_id"], "message": "x"}, 409, "CONFLICT", "/queued_turn_id"),
                ({"queued_turn_id": a["turn_id"]}, 400, "VALIDATION_ERROR", "/message"),
                ({"queued_turn_id": a["turn_id"], "message": "x", "input": [{"type": "text", "text": "y"}]}, 400,
                 "VALIDATION_ERROR", "/input")):
            refused(s.http.post("/api/control/edit_queued_turn", {**where, **body}), status, code, at)
        s.kill()
        s.start()
        p.release()
        for t, text in ((a, "turn a"), (b, "other"), (c, LONG)):
            equal(s.finish(t["run_id"])["status"], "succeeded")
            equal(text_of(s.events(t["run_id"])), text)
        log = log_of(s, c)
        check_session(s.session_events(c["run_id"]))
        equal([e["turn_id"] for e in log if e["type"] == TYPE], order[1:])
        equal([e["payload"]["queued_turn_id"] for e in log if e["type"] == "queue.changed"
               and e["payload"].get("reason") == "edited"], order[1:])
        # The thread remembers what was asked in the end.
        equal([m for m in told(p) if m[0] == "user"],
              [("user", "first"), ("user", "turn a"), ("user", "other"), ("user", LONG)])


@test("an_edited_echo_says_its_new_message", "")
def echo():
    with Provider() as p, Server(env=p.env("gate")) as s:
        first, where = streaming(s, "first")
        t = submit(s, "old", agent_id="echo", **where)
        command(s, "edit_queued_turn", queued_turn_id=t["turn_id"], message="new", **where)
        p.release()
        equal(s.finish(t["run_id"])["status"], "succeeded")
        equal(text_of(s.events(t["run_id"])), "new")


main()
