#!/usr/bin/env python3
"""The nine items of the acceptance list of the universal agent runtime, in its order, each as its user would try it."""
import json
import os
import subprocess
import sys

from lib import (FIXTURES, ROOT, Provider, Server, Stream, check, check_run_stream, check_session, equal, main, run_uar,
                 test, text_of, wait_until)
from lib.browser import Browser
from lib.mcp_host import connected
from lib.npm import modules, node

HERE = os.path.join(ROOT, "tests", "e2e")


class Judge:
    """The official packages of a dialect, in a process of their own."""

    def __init__(self, dialect):
        self.proc = subprocess.Popen([node(), os.path.join(HERE, dialect + "_judge.mjs"), modules(dialect)],
                                     stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, **task):
        self.proc.stdin.write(json.dumps(task) + "\n")
        self.proc.stdin.flush()
        answer = json.loads(self.proc.stdout.readline())
        equal(answer["errors"], [], "what the official package complains of")
        return answer

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.proc.stdin.close()
        self.proc.wait()


def agent(s, agent_id, provider, model, **policy):
    a = s.http.send("PUT", f"/api/agents/{agent_id}", {
        "version": "1.0", "kind": "agent", "id": agent_id, "runtime": {"entry": "llm.chat"},
        "policy": {"provider": {"default": {"provider": provider, "model": model}}, **policy}})
    equal(a.status, 201, a.body)


def body(s, path):
    a = s.http.get(path)
    equal((a.status, a.headers["content-type"].split(";")[0]), (200, "text/event-stream"))
    return a.body.decode()


@test("item_1_post_api_runs_creates_a_run", "ACC-01")
def creates():
    with Server() as s:
        a = s.http.post("/api/runs", {"agent_id": "demo", "inputs": {"message": "hello"}})
        equal(a.status, 202, a.body)
        run_id = a.json["run_id"]
        s.kill()  # what was answered is kept
        s.start()
        equal((s.finish(run_id)["run_id"], s.record(run_id)["status"]), (run_id, "succeeded"))
        equal([r["run_id"] for r in s.http.get("/api/runs").json["runs"]], [run_id])


@test("item_2_the_stream_of_a_run_is_of_normalized_events", "ACC-02")
def normalized():
    with Server() as s:
        run_id = s.create("demo", "hello")
        events = s.events(run_id)
        check_run_stream(events, run_id)
        equal((events[0].type, events[-1].type), ("RunStart", "RunDone"), [e.type for e in events])
        check("hello" in text_of(events), text_of(events))
        equal([e.data for e in s.events(run_id, after=events[1].id)], [e.data for e in events[2:]])


@test("item_3_ag_ui_chunks_are_those_of_its_official_client", "ACC-03")
def ag_ui():
    with Server() as s, Judge("agui") as judge:
        run_id = s.create("demo", "hello")
        text = text_of(s.events(run_id))
        got = judge.ask(stream=body(s, f"/api/ag-ui/runs/{run_id}/stream"))
        said = "".join(m["content"] for m in got["messages"] if m["role"] == "assistant" and m.get("content"))
        equal(said, text)


@test("item_4_a2ui_events_are_those_of_its_official_processor", "ACC-04")
def a2ui():
    with Server() as s, Judge("a2ui") as judge:
        run_id = s.create("demo", "hello")
        text = text_of(s.events(run_id))
        lines = [line for line in body(s, f"/api/a2ui/runs/{run_id}/stream").splitlines() if line.startswith("data: ")]
        got = judge.ask(messages=[json.loads(line[6:]) for line in lines])
        model = got["models"][f"run-{run_id}"]
        equal(("".join(model["text"]), model["status"]), (text, "done"))


def check_tool(s, run_id, name, given, output):
    """Starts and ends once in the stream and in the log; its result is told to the model."""
    stream = s.events(run_id)
    check_run_stream(stream, run_id)
    told = [e for e in stream if e.type.startswith("Tool")]
    equal([e.type for e in told], ["ToolStart", "ToolEnd"])
    start, end = (e.data["data"] for e in told)
    equal((start["tool"], start["input"]), (name, given))
    equal((end["tool_call_id"], end["output"], end["ok"]), (start["tool_call_id"], output, True))
    check("42" in text_of(stream), "the model was told", text_of(stream))
    log = s.session_events(run_id)
    check_session(log)
    life = [e.data["type"] for e in log if e.data.get("tool_call_id") == start["tool_call_id"]
            and e.data["type"].startswith("tool.")]
    equal((life[0], life[-1]), ("tool.started", "tool.result"))
    equal(s.record(run_id)["status"], "succeeded")


@test("item_5_an_internal_tool_executes_and_tells_of_its_life", "ACC-05")
def tool():
    with Server() as s:
        run_id = s.create("tools", 'tool math.evaluate {"expression": "6*7"}')
        check_tool(s, run_id, "math.evaluate", {"expression": "6*7"}, {"value": 42})


@test("item_6_a_mocked_mcp_tool_executes_and_tells_of_its_life", "ACC-06")
def mcp_tool():
    with Server(start=False) as s:
        log = os.path.join(s.root, "mock.log")
        s.env["UAR_MCP_SERVERS"] = json.dumps({"mock": {
            "command": sys.executable, "args": [os.path.join(HERE, "lib", "mcp_mock.py"), log], "ask": False}})
        s.start()
        connected(s, "mock")
        agent(s, "user", "scripted", "scripted-tools", tools={"allow": ["mcp:*"]})
        run_id = s.create("user", 'tool mcp__mock_add {"a": 40, "b": 2}')
        check_tool(s, run_id, "add", {"a": 40, "b": 2}, {"sum": 42})
        with open(log, encoding="utf-8") as f:
            calls = [m for m in map(json.loads, f) if m.get("method") == "tools/call"]
        equal([c["params"]["arguments"] for c in calls], [{"a": 40, "b": 2}])


@test("item_7_skills_are_stored_matched_and_injected", "ACC-07")
def skills():
    with Provider() as p, Server(env=p.env("hello")) as s:
        a = s.http.send("PUT", "/api/skills/tea_master", {
            "skill_id": "tea_master", "version": "1.0.0", "title": "Tea master", "description": "How tea is brewed.",
            "triggers": {"keywords": ["tea", "brew"]},
            "prompt_overlay": "Green tea wants seventy degrees."})
        check(a.status in (200, 201), a.body)
        agent(s, "waiter", "openai", "hello", skills={"max_active": 2})
        s.kill()  # stored
        s.start()
        wait_until(lambda: s.http.get("/api/skills/tea_master").status == 200 and s.http.get("/api/agents/waiter").status == 200)
        equal(s.http.get("/api/skills/tea_master").json["title"], "Tea master")

        def asked(message):
            run_id = s.create("waiter", message)
            facts = [e.data["payload"] for e in s.session_events(run_id) if e.data["type"] == "context.resolved"
                     and e.data["run_id"] == run_id]
            return [k["skill_id"] for k in facts[0]["selected_skills"]], p.stats()["last"]["messages"][0]["content"]

        chosen, system = asked("please brew some tea")
        check("tea_master" in chosen and "seventy degrees" in system, chosen, system)
        chosen, system = asked("which planet is the largest")
        check("tea_master" not in chosen and "seventy degrees" not in system, chosen, system)


@test("item_8_messages_of_agents_come_by_endpoint_and_stream", "ACC-08")
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


@test("item_9_the_page_renders_a_fixture_stream_and_a_live_run", "ACC-09")
def page():
    with Browser() as b, Server(fixtures_dir=FIXTURES) as s:
        replayed = s.create("fixture", None, inputs={"fixture": "tools"})
        text = text_of(s.events(replayed))
        session = s.record(replayed)["session_id"]
        b.enter(s)
        b.goto(f"{s.url}/ui/c/{session}")
        b.ended(1)
        check(text.split()[0] in " ".join(b.texts(".answer")), text, b.texts(".answer"))
        b.do("await page.locator('.rail').getByRole('link', {name: 'New chat'}).click()")
        b.wait("#message")
        b.say("demo", "a live run")
        b.ended(1)
        equal(b.texts(".mine-text"), ["a live run"])
        check("a live run" in b.texts(".answer")[0], b.texts(".answer"))


@test("one_command_starts_all_of_it", "BLD-01")
def playground():
    """Runs, three dialects, messages between agents, tools, skills and the page, of one process without any setting."""
    with Server() as s:
        run_id = s.create("tools", 'tool time.now {}')
        equal(s.finish(run_id)["status"], "succeeded")
        for path in (f"/api/runs/{run_id}/stream", f"/api/ag-ui/runs/{run_id}/stream", f"/api/a2ui/runs/{run_id}/stream"):
            check("data: " in body(s, path), path)
        equal(s.http.post("/api/a2a/inbox", {
            "message_id": "m", "from_agent": "a", "to_agent": "b", "conversation_id": "c",
            "payload": {"type": "text", "text": "hi"}, "capabilities": {"tools": [], "models": []}}).status, 202)
        check(s.http.get("/api/tools").json["tools"] and s.http.get("/api/skills").json["skills"], "tools and skills")
        a = s.http.get("/", token=False)
        check(a.status == 200 and b"<script" in a.body, a.status, a.body[:300])
        done = run_uar("health", "--data", s.data)
        equal(done.returncode, 0, done.stdout + done.stderr)


main()
