#!/usr/bin/env python3
"""What UAR asks MCP clients for, and what it tells them without being asked."""
import json
import sys

from lib import Server, check, equal, main, test, wait_until
from lib.mcp import META, Modern, Session, last_message, offered
from mcp_conformance_test import FIXTURE

WRITE = {"name": "agent_tools", "arguments": {"message": 'tool fs.write {"path":"a.txt","text":"x"}'}}
FORM = {"name": "agent_tools", "arguments": {"message": 'tool ui.form.request ' + json.dumps(
    {"title": "Who", "schema": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}})}}
OFFER = {"UAR_MCP_SERVERS": json.dumps({"fixture": {"command": sys.executable, "args": [FIXTURE], "offer": True}})}


def messages(stream):
    return (e.data for e in stream if e.text)


def answer(s, c, request, result):
    r = s.http.post("/mcp", {"jsonrpc": "2.0", "id": request["id"], "result": result}, headers=c.headers())
    equal(r.status, 202, r.body)


def accept(**content):
    return {"action": "accept", "content": content}


@test("a_session_is_asked_for_what_a_run_needs", "MCP-08")
def asked_in_session():
    with Server() as s:
        c = Session(s, elicitation={})
        for call, content, end in ((WRITE, {"decision": "allow"}, "succeeded"), (FORM, {"name": "Ada"}, "succeeded")):
            stream = c.open("tools/call", call)
            said = messages(stream)
            question = next(said)
            equal(question["method"], "elicitation/create", question)
            check(set(question["params"]["requestedSchema"]["properties"]) == set(content), question)
            answer(s, c, question, accept(**content))
            got = next(said)["result"]
            equal(got["structuredContent"]["status"], end, got)
        refusing = messages(c.open("tools/call", WRITE))
        answer(s, c, next(refusing), {"action": "decline"})
        got = next(refusing)["result"]["structuredContent"]
        check("denied" in json.dumps(s.events(got["run_id"])[-1].data) or got["status"], got)
        quiet = Session(s)  # shows no forms: the inbox has the question
        stream = quiet.open("tools/call", WRITE)
        run = wait_until(lambda: [r for r in s.http.get("/api/runs").json["runs"]
                                  if s.record(r["run_id"]).get("actions")], "a question")[0]["run_id"]
        equal(s.http.post("/api/control/respond_action", {
            "action_id": s.record(run)["actions"][0]["action_id"], "decision": "allow"}).status, 200)
        equal([m.get("method") for m in messages(stream)], [None], "nothing but the answer was said")


@test("a_call_behind_a_question_fails_and_says_so", "")
def behind_a_question():
    """A client sees no queue: a call that waits for a person would look as if it hung."""
    with Server() as s:
        asks = s.create("tools", WRITE["arguments"]["message"], conversation_id="c")
        action = wait_until(lambda: (s.record(asks).get("actions") or [None])[0], "a question")["action_id"]
        got = Session(s).ask("tools/call", {"name": "agent_echo", "arguments": {"message": "more", "conversation_id": "c"}})
        check(got["isError"] and action in got["content"][0]["text"], got)
        equal(len(s.http.get("/api/runs").json["runs"]), 1)


@test("a_question_is_asked_again_after_a_kill", "MCP-08")
def asked_after_kill():
    with Server() as s:
        c = Session(s, elicitation={})
        stream = c.open("tools/call", WRITE)
        primed = next(iter(stream))
        first = next(messages(stream))
        stream.close()
        s.kill()
        s.start()
        again = messages(c.listen(primed.id))
        equal(next(again)["id"], first["id"], "what was said is said again")
        question = next(again)
        equal(question["params"], first["params"])
        answer(s, c, question, accept(decision="allow"))
        got = next(again)
        equal((got["id"], got["result"]["structuredContent"]["status"]), (c.count, "succeeded"))
        equal(len(s.http.get("/api/runs").json["runs"]), 1)


@test("a_call_without_a_session_returns_with_answers", "MCP-08")
def asked_without_session():
    with Server() as s:
        m = Modern(s, elicitation={})
        for call, content in ((WRITE, {"decision": "allow"}), (FORM, {"name": "Ada"})):
            first = last_message(m.post("tools/call", call))["result"]
            equal(first["resultType"], "input_required", first)
            (key, question), = first["inputRequests"].items()
            equal(question["method"], "elicitation/create")
            again = {**call, "requestState": first["requestState"]}
            asked = last_message(m.post("tools/call", again))["result"]
            equal(set(asked["inputRequests"]), {key}, "without an answer it is asked again")
            done = m.ask("tools/call", {**again, "inputResponses": {key: accept(**content), "other": {"x": 1}}})
            equal(done["structuredContent"]["status"], "succeeded", done)
        state = first["requestState"]
        for bad in (state[:-1] + ("0" if state[-1] != "0" else "1"), "x" + state, ""):
            refused = last_message(m.post("tools/call", {**FORM, "requestState": bad}))
            equal(refused["error"]["code"], -32602, refused)
        other = {"name": "agent_echo", "arguments": {"message": "x"}, "requestState": state}
        equal(last_message(m.post("tools/call", other))["error"]["code"], -32602, "of another call")
        equal(len(s.http.get("/api/runs").json["runs"]), 2, "no call made a second run")


@test("a_subscription_tells_of_a_run_also_after_a_kill", "MCP-08")
def subscribed():
    with Server() as s:
        c = Session(s)
        stream = c.open("tools/call", WRITE)
        run = wait_until(lambda: [r for r in s.http.get("/api/runs").json["runs"]
                                  if s.record(r["run_id"]).get("actions")], "a question")[0]["run_id"]
        uri = "uar://runs/" + run
        equal(c.ask("resources/subscribe", {"uri": uri}), {})
        equal(c.error("resources/subscribe", {"uri": "nothing://there"})["code"], -32002)
        stream.close()
        s.kill()
        s.start()
        wait_until(lambda: s.record(run).get("actions"), "the question again")
        own = c.listen()
        held = Modern(s).open("subscriptions/listen", {"notifications": {"resourceSubscriptions": [uri, "no://x"]}})
        acknowledged = next(messages(held))
        equal(acknowledged["params"]["notifications"], {"resourceSubscriptions": [uri]})
        equal(s.http.post("/api/control/respond_action", {
            "action_id": s.record(run)["actions"][0]["action_id"], "decision": "allow"}).status, 200)
        for said in (messages(own), messages(held)):
            told = next(said)
            equal((told["method"], told["params"]["uri"]), ("notifications/resources/updated", uri))
        check(META + "subscriptionId" in told["params"]["_meta"], told)
        own.close()
        held.close()
        equal(c.ask("resources/unsubscribe", {"uri": uri}), {})


@test("lists_that_change_are_told", "MCP-08")
def changed():
    with Server(env=OFFER) as s:
        offered(s, "test_trigger_tool_change")
        c = Session(s)
        own, held = c.listen(), Modern(s).open("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
        equal(next(messages(held))["method"], "notifications/subscriptions/acknowledged")
        c.ask("tools/call", {"name": "test_trigger_tool_change"})
        for said in (messages(own), messages(held)):
            equal(next(said)["method"], "notifications/tools/list_changed")
        own.close()
        held.close()


@test("what_is_passed_on_fails_once_when_uar_is_killed", "MCP-09")
def relay_ends():
    with Server(env=OFFER) as s:
        offered(s, "test_elicitation")
        c = Session(s, elicitation={}, sampling={})
        stream = c.open("tools/call", {"name": "test_elicitation", "arguments": {"message": "Who?"}})
        primed = next(iter(stream))
        question = next(messages(stream))
        stream.close()
        s.kill()
        s.start()
        offered(s, "test_simple_text")
        again = messages(c.listen(primed.id))
        equal(next(again)["id"], question["id"], "what was said is said again")
        lost = next(again)
        equal((lost["id"], lost["error"]["code"]), (c.count, -32603), lost)
        equal(list(again), [], "nothing more is said on that stream")
        answer(s, c, question, accept(username="a", email="b"))  # nothing waits for it any more
        got = c.ask("tools/call", {"name": "test_simple_text"})
        check("simple text" in got["content"][0]["text"], got)


if __name__ == "__main__":
    main()
