#!/usr/bin/env python3
"""Items of the acceptance list of the universal agent runtime, each as its user would try it."""
import json

from lib import Server, Stream, check, check_run_stream, check_session, equal, main, test, text_of


@test("an_internal_tool_executes_and_tells_of_its_life", "ACC-05")
def tool():
    with Server() as s:
        run_id = s.create("tools", 'tool math.evaluate {"expression": "6*7"}')
        stream = s.events(run_id)
        check_run_stream(stream, run_id)
        told = [e for e in stream if e.type.startswith("Tool")]
        equal([e.type for e in told], ["ToolStart", "ToolEnd"])
        start, end = (e.data["data"] for e in told)
        equal((start["tool"], start["input"]), ("math.evaluate", {"expression": "6*7"}))
        equal((end["tool_call_id"], end["output"], end["ok"]), (start["tool_call_id"], {"value": 42}, True))
        check("42" in text_of(stream), "the model was told", text_of(stream))
        log = s.session_events(run_id)
        check_session(log)
        life = [e.data["type"] for e in log if e.data.get("tool_call_id") == start["tool_call_id"]
                and e.data["type"].startswith("tool.")]
        equal((life[0], life[-1]), ("tool.started", "tool.result"))
        equal(s.record(run_id)["status"], "succeeded")


@test("messages_of_agents_come_by_endpoint_and_stream", "ACC-08")
def messages():
    def message(number, to):
        return {"message_id": f"m-{number}", "from_agent": "alice", "to_agent": to, "conversation_id": "c",
                "payload": {"type": "text", "text": f"number {number}"}, "capabilities": {"tools": [], "models": []}}

    with Server() as s, Stream(s.url, "/api/a2a/stream/bob", s.token) as bob:
        for number, route in ((1, "inbox"), (2, "send"), (3, "inbox")):
            answer = s.http.post("/api/a2a/" + route, message(number, "bob"))
            equal(answer.status, 202, answer.body)
            got = bob.next()  # while it is listened to
            equal((got.name, got.data), ("message", message(number, "bob")))
        equal(s.http.post("/api/a2a/inbox", message(4, "carol")).status, 202)
        s.kill()
        s.start()
        with Stream(s.url, "/api/a2a/stream/bob", s.token) as again:  # and to who comes later
            equal([again.next().data["message_id"] for _ in range(3)], ["m-1", "m-2", "m-3"])
        with Stream(s.url, "/api/a2a/stream/carol", s.token) as carol:
            equal(json.loads(carol.next().text), message(4, "carol"))


main()
