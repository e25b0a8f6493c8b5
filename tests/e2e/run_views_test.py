#!/usr/bin/env python3
"""What a page reads of one run: pages of its events, its timeline, its state at any event."""
import json
import random

from lib import Server, check, equal, main, refused, test, text_of, wait_until

SLOW = {"UAR_SCRIPTED_TOKEN_MS": "60000"}


def call(name, **args):
    return f"tool {name} {json.dumps(args)}"


TOOLS = "\nthen\n".join([call("math.evaluate", expression="6*7") + "\n" + call("time.now"),
                         call("math.evaluate", expression="1/0")])
WRITE = call("fs.write", path="a.txt", text="hello")


def page(s, run_id, query=""):
    a = s.http.get(f"/api/runs/{run_id}/events?{query}")
    equal(a.status, 200, a.body)
    return a.json


def every(s, run_id, query="limit=1000"):
    events, after = [], 0
    while after is not None:
        p = page(s, run_id, f"{query}&after={after}")
        events += p["events"]
        after = p["next_after"]
    return events


def timeline(s, run_id):
    a = s.http.get(f"/api/runs/{run_id}/timeline")
    equal(a.status, 200, a.body)
    return a.json


def state(s, run_id, at):
    a = s.http.get(f"/api/runs/{run_id}/state?at={at}")
    equal(a.status, 200, a.body)
    return a.json


def said(view, kind="text"):
    return "".join(m["text"] for m in view["messages"] if m["kind"] == kind)


@test("events_of_a_run_come_in_pages", "")
def pages():
    with Server() as s:
        run_id = s.create("tools", TOOLS)
        s.finish(run_id)
        whole = [e.data for e in s.session_events(run_id) if e.data.get("run_id") == run_id]
        equal(every(s, run_id), whole, "the same envelopes")
        equal(every(s, run_id, "limit=7"), whole)
        equal([e["run_sequence"] for e in page(s, run_id, "after=10&limit=3")["events"]], [11, 12, 13])
        kinds = every(s, run_id, "limit=2&types=tool.started,tool.result,tool.failed")
        equal(kinds, [e for e in whole if e["type"] in ("tool.started", "tool.result", "tool.failed")])
        check(len(kinds) >= 6, kinds)
        found = every(s, run_id, "limit=3&q=6*7")
        equal(found, [e for e in whole if "6*7" in json.dumps(e["payload"])])
        check(found)
        equal(every(s, run_id, "limit=3&q=TOOL.STARTED&types=tool.started"), every(s, run_id, "types=tool.started"))
        for bad, where in (("limit=0", "?limit"), ("limit=1001", "?limit"), ("types=no.such", "?types"),
                           ("after=x", "?after"), ("colour=red", "?colour")):
            refused(s.http.get(f"/api/runs/{run_id}/events?{bad}"), 400, "VALIDATION_ERROR", where)
        refused(s.http.get("/api/runs/nobody/events"), 404, "NOT_FOUND")
        equal(s.http.get(f"/api/runs/{run_id}/events", token=False).status, 401)


@test("timeline_shows_calls_with_the_events_at_both_ends", "")
def spans():
    with Server() as s:
        run_id = s.create("tools", TOOLS)
        s.finish(run_id)
        events = {e["run_sequence"]: e for e in every(s, run_id)}
        for n in (max(events), max(events) - 1):  # its task and its turn end behind it
            check(events.pop(n)["type"] in ("task.completed", "turn.completed"))
        t = timeline(s, run_id)
        equal((t["run_id"], t["events"], t["last"], t["over"], t["left_out"]),
              (run_id, len(events), max(events), True, 0))
        equal(sum(t["types"].values()), len(events))
        tools = [x for x in t["spans"] if x["kind"] == "tool"]
        equal([(x["name"], x["state"]) for x in tools],
              [("math.evaluate", "ended"), ("time.now", "ended"), ("math.evaluate", "failed")])
        check(tools[0]["first"] < tools[1]["first"] < max(tools[0]["last"], tools[1]["last"]), "side by side")
        models = [x for x in t["spans"] if x["kind"] == "model"]
        equal([x["state"] for x in models], ["ended"] * 3)
        check(all(x["input_tokens"] > 0 for x in models), models)
        for x in t["spans"]:
            first, last = events[x["first"]], events[x["last"]]
            check(x["first_at"] <= x["last_at"], x)
            if x["kind"] == "tool":
                equal((first["type"], first["tool_call_id"], last["tool_call_id"]), ("tool.started", x["key"], x["key"]))
            if x["kind"] == "model":
                equal((first["type"], last["type"]), ("model.requested", "model.completed"))


@test("timeline_shows_questions_and_what_was_cut_off", "")
def questions():
    with Server() as s:
        run_id = s.create("tools", WRITE)
        r = wait_until(lambda: (lambda r: r if r.get("actions") else None)(s.record(run_id)), "a question")
        ask = [x for x in timeline(s, run_id)["spans"] if x["kind"] == "ask"]
        equal([(x["state"], x["last"], x["key"]) for x in ask], [("open", None, r["actions"][0]["action_id"])])
        view = state(s, run_id, 100000)
        equal((view["waiting"], view["end"], [a["id"] for a in view["actions"]]),
              (True, "live", [r["actions"][0]["action_id"]]))
        s.http.post("/api/control/respond_action", {"action_id": r["actions"][0]["action_id"], "decision": "deny"})
        s.finish(run_id)
        ask = [x for x in timeline(s, run_id)["spans"] if x["kind"] == "ask"]
        equal([x["state"] for x in ask], ["denied"])
    with Server(env=SLOW) as s:
        run_id = s.create("tools", WRITE)
        wait_until(lambda: [x for x in timeline(s, run_id)["spans"] if x["kind"] == "model"] or None, "a model call")
        s.kill()
        s.start()
        wait_until(lambda: [x for x in timeline(s, run_id)["spans"] if x["kind"] == "restart"] or None, "a restart")
        kinds = [(x["kind"], x["state"]) for x in timeline(s, run_id)["spans"] if x["kind"] in ("model", "restart")]
        equal(kinds[:2], [("model", "superseded"), ("restart", "ended")])
        s.cancel(run_id)
        s.finish(run_id)
        last = timeline(s, run_id)["spans"][-1]
        equal((last["kind"], last["name"]), ("error", "CANCELED"))


@test("state_of_a_run_at_any_of_its_events", "")
def states():
    with Server() as s:
        run_id = s.create("tools", TOOLS)
        s.finish(run_id)
        events = every(s, run_id)
        last = events[-1]["run_sequence"]
        shown = s.events(run_id)
        for at in sorted(random.Random(7).sample(range(1, last + 1), 30)) + [last]:
            view = state(s, run_id, at)
            equal(view["at"], min(at, [e for e in events if e["type"].startswith("task.attempt.completed")][0]
                                  ["run_sequence"]))
            text = "".join(e["payload"].get("text", "") for e in events
                           if e["type"] == "model.delta" and e["run_sequence"] <= at)
            equal(said(view), text, at)
        equal(said(state(s, run_id, last)), text_of(shown))
        for bad in ("at=0", "at=x"):
            refused(s.http.get(f"/api/runs/{run_id}/state?{bad}"), 400, "VALIDATION_ERROR", "?at")
        refused(s.http.get("/api/runs/nobody/state?at=1"), 404, "NOT_FOUND")
        refused(s.http.get("/api/runs/nobody/timeline"), 404, "NOT_FOUND")


if __name__ == "__main__":
    main()
