#!/usr/bin/env python3
"""Runs as tasks of MCP (2026-07-28): a client asks for the result later, or is told."""
import json

from lib import Server, check, equal, main, test, wait_until
from lib.mcp import META, Modern, Session, last_message

TASKS = {"extensions": {"io.modelcontextprotocol/tasks": {}}}
SLOW = {"UAR_SCRIPTED_TOKEN_MS": "60000"}
TALK = {"name": "agent_demo", "arguments": {"message": "one two three"}}
WRITE = {"name": "agent_tools", "arguments": {"message": 'tool fs.write {"path":"a.txt","text":"x"}'}}


def task_of(m, call):
    got = last_message(m.post("tools/call", call))["result"]
    equal(got["resultType"], "task", got)
    check("requestState" not in got and "result" not in got, got)
    return got["taskId"]


def ask(m, method, task, **params):
    return m.ask(method, {"taskId": task, **params})


def refused(m, method, task, **params):
    return last_message(m.post(method, {"taskId": task, **params}))["error"]["code"]


@test("a_long_run_is_a_task_also_after_a_kill", "MCP-08")
def long_run():
    with Server(env=SLOW) as s:
        m = Modern(s, **TASKS)
        check("io.modelcontextprotocol/tasks" in m.ask("server/discover")["capabilities"]["extensions"])
        task = task_of(m, TALK)
        got = ask(m, "tasks/get", task)
        equal((got["taskId"], got["status"], got["ttlMs"]), (task, "working", None))
        s.kill()
        s.start()
        s.ready()
        equal(ask(m, "tasks/get", task)["status"], "working", "the run goes on")
        ended = ask(m, "tasks/cancel", task)
        check(set(ended) <= {"resultType", "_meta"}, ended)
        wait_until(lambda: ask(m, "tasks/get", task)["status"] == "cancelled", "the task is cancelled")
        ask(m, "tasks/cancel", task)
        for method in ("tasks/get", "tasks/cancel"):
            equal(refused(m, method, "nothing"), -32602)
        equal(refused(m, "tasks/update", "nothing", inputResponses={}), -32602)
        plain = Modern(s).post("tasks/get", {"taskId": task})
        equal((plain.status, plain.json["error"]["code"]), (400, -32021))
        equal(m.post("tasks/list").status, 404)


@test("a_short_run_is_answered_at_once", "MCP-08")
def short_run():
    with Server() as s:
        got = Modern(s, **TASKS).ask("tools/call", {"name": "agent_echo", "arguments": {"message": "hello"}})
        equal(got["content"][0]["text"], "hello")


@test("a_task_asks_and_is_answered", "MCP-08")
def answered():
    with Server() as s:
        m = Modern(s, elicitation={}, **TASKS)
        task = task_of(m, WRITE)
        got = wait_until(lambda: (lambda t: t if t["status"] == "input_required" else None)(ask(m, "tasks/get", task)), "a question")
        (key, question), = got["inputRequests"].items()
        equal(question["method"], "elicitation/create")
        equal(ask(Modern(s, **TASKS), "tasks/get", task)["status"], "working", "who shows no forms is not asked")
        held = m.open("subscriptions/listen", {"notifications": {"taskIds": [task]}})
        said = (e.data for e in held if e.text)
        equal(next(said)["params"]["notifications"], {"taskIds": [task]})
        first = next(said)
        equal((first["method"], first["params"]["status"]), ("notifications/tasks", "input_required"))
        check(META + "subscriptionId" in first["params"]["_meta"], first)
        equal(refused(m, "tasks/update", task, inputResponses=[]), -32602)
        ask(m, "tasks/update", task, inputResponses={key: {"action": "accept", "content": {"decision": "allow"}}})
        done = next(n["params"] for n in said if n["params"]["status"] == "completed")
        equal(done["result"]["structuredContent"]["status"], "succeeded", done)
        equal(ask(m, "tasks/get", task)["result"], done["result"])
        ask(m, "tasks/update", task, inputResponses={key: {"action": "decline"}})  # too late: it changes nothing
        equal(ask(m, "tasks/get", task)["status"], "completed")
        held.close()


@test("a_task_ends_with_the_result_of_its_run", "MCP-08")
def completed():
    with Server(env={"UAR_SCRIPTED_TOKEN_MS": "30"}) as s:
        m = Modern(s, **TASKS)
        task = task_of(m, {"name": "agent_demo", "arguments": {"message": "slowly please"}})
        got = wait_until(lambda: (lambda t: t if t["status"] == "completed" else None)(ask(m, "tasks/get", task)), "the end")
        equal(got["result"]["structuredContent"]["status"], "succeeded", got)
        legacy = Session(s)
        equal(legacy.error("tasks/get", {"taskId": task})["code"], -32601, "sessions have no tasks")


if __name__ == "__main__":
    main()
