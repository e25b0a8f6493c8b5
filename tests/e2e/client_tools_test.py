#!/usr/bin/env python3
"""Tools of the client: a run hands calls over, and any door brings the results, once."""
import json
import os
import subprocess

from lib import ROOT, Server, check, equal, main, test
from lib.npm import modules, node

COLOR = {"name": "set_color", "description": "Colours the page.",
         "parameters": {"type": "object", "properties": {"color": {"type": "string"}}, "required": ["color"]}}
PICK = {"name": "pick", "description": "Lets the user pick."}


class Judge:
    """The official packages in a process of their own."""

    def __init__(self, name, *args):
        self.proc = subprocess.Popen([node(), os.path.join(ROOT, "tests", "e2e", f"{name}_judge.mjs"), modules(name), *args],
                                     stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, **task):
        self.proc.stdin.write(json.dumps(task) + "\n")
        self.proc.stdin.flush()
        return json.loads(self.proc.stdout.readline())

    def agent(self, s, old, **client_input):
        got = self.ask(url=s.url + "/api/ag-ui/agents/tools", token=s.token, old=old, input=client_input)
        equal((got["errors"], got["failed"]), ([], None))
        return got

    def openai(self, call, body):
        got = self.ask(call=call, args=[body], options=None)
        check("value" in got, got)
        return got["value"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.proc.stdin.close()
        self.proc.wait()


def call(name, **args):
    return f"tool {name} {json.dumps(args)}"


def user(text, message_id="u1"):
    return {"id": message_id, "role": "user", "content": text}


def result(call_id, content, **more):
    return {"id": f"m-{call_id}", "role": "tool", "toolCallId": call_id, "content": content, **more}


def calls_of(messages):
    return [c for m in messages for c in m.get("toolCalls") or []]


BOTH = call("math.evaluate", expression="6*7") + "\n" + call("set_color", color="red") + "\n" + call("pick", of=[1, 2])


@test("a_result_may_come_alone", "AGUI-01")
def alone():
    with Server() as s, Judge("agui") as judge:
        got = judge.agent(s, False, threadId="t", runId="r", messages=[user(call("set_color", color="red"))], tools=[COLOR])
        [asked] = calls_of(got["messages"])
        answer = s.http.post("/api/ag-ui/agents/tools", {"threadId": "t", "runId": "r2", "messages": [result(asked["id"], "done")]})
        equal(answer.status, 200, answer.body)
        [run] = s.http.get("/api/runs").json["runs"]
        equal(run["status"], "succeeded")


@test("http_agents_execute_their_own_tools", "AGUI-01 AGUI-13 AGUI-16")
def frontend_tools():
    with Server() as s, Judge("agui") as judge:
        for old in (False, True):
            got = judge.agent(s, old, threadId=f"t{old}", runId=f"r{old}", messages=[user(BOTH)], tools=[COLOR, PICK])
            end = got["events"][-1]
            pending = [c for c in calls_of(got["messages"]) if c["function"]["name"] in ("set_color", "pick")]
            equal([json.loads(c["function"]["arguments"]) for c in pending], [{"color": "red"}, {"of": [1, 2]}])
            if old:
                check("outcome" not in end, end)
            else:
                equal(end["outcome"], {"type": "success", "pendingToolCallIds": [c["id"] for c in pending]})
            # The tool of the server was answered first, in the stream.
            equal([e["content"] for e in got["events"] if e["type"] == "TOOL_CALL_RESULT"], ['{"value":42}'])
            run_id = got["events"][0]["metadata"]["uar"]["runId"]
            equal(s.record(run_id)["engine_status"], "waiting_input")
            s.kill()
            s.start()
            # One of the two: what is left is said again.
            first = got["messages"] + [result(pending[0]["id"], "done")]
            part = judge.agent(s, old, threadId=f"t{old}", runId=f"p{old}", messages=first, tools=[COLOR, PICK])
            equal(part["events"][0]["runId"], f"p{old}")
            if not old:
                equal(part["events"][-1]["outcome"]["pendingToolCallIds"], [pending[1]["id"]])
            rest = first + [result(pending[1]["id"], "", error="no user is there")]
            for name in (f"q{old}", f"again{old}"):
                whole = judge.agent(s, old, threadId=f"t{old}", runId=name, messages=rest, tools=[COLOR, PICK])
                equal((whole["events"][0]["runId"], whole["events"][-1]["type"]), (name, "RUN_FINISHED"))
                check("outcome" not in whole["events"][-1], whole["events"][-1])
                by_call = {m["toolCallId"]: m for m in whole["messages"] if m["role"] == "tool"}
                equal(by_call[pending[0]["id"]]["content"], "done")
                check("no user is there" in by_call[pending[1]["id"]]["content"], by_call)
                equal(len([m for m in whole["messages"] if m["role"] == "tool"]), 3, "nothing twice")
            equal(s.record(run_id)["status"], "succeeded")
            equal(len([r for r in s.http.get("/api/runs").json["runs"] if r["conversation_id"] == f"t{old}"]), 1)


@test("a_call_of_a_client_is_answered_from_any_door_once", "")
def any_door():
    with Server() as s, Judge("agui") as judge:
        got = judge.agent(s, False, threadId="t", runId="r", messages=[user(call("set_color", color="red"))], tools=[COLOR])
        [pending] = calls_of(got["messages"])
        run_id = got["events"][0]["metadata"]["uar"]["runId"]
        [action] = s.http.get(f"/api/actions?run_id={run_id}").json["actions"]
        equal((action["action_type"], action["tool_call_id"]), ("client_tool", pending["id"]))
        answer = s.http.post("/api/control/respond_action",
                             {"action_id": action["action_id"], "decision": "submit", "payload": "by hand"})
        equal(answer.status, 200, answer.body)
        whole = judge.agent(s, False, threadId="t", runId="r2",
                            messages=got["messages"] + [result(pending["id"], "too late")], tools=[COLOR])
        equal([m["content"] for m in whole["messages"] if m["role"] == "tool"], ["by hand"])
        # A message behind the results is another run.
        more = whole["messages"] + [user("and now?", "u2")]
        last = judge.agent(s, False, threadId="t", runId="r3", messages=more)
        equal(last["events"][0]["runId"], "r3")
        equal(len(s.http.get("/api/runs").json["runs"]), 2)


@test("arguments_that_the_schema_refuses_are_not_handed_over", "")
def wrong():
    with Server() as s, Judge("agui") as judge:
        got = judge.agent(s, False, threadId="t", runId="r", messages=[user(call("set_color"))], tools=[COLOR])
        check("outcome" not in got["events"][-1], got["events"][-1])
        [failed] = [m for m in got["messages"] if m["role"] == "tool"]
        check(failed["metadata"]["uar"]["isError"], failed)
        for tools, where in (([{"description": "x"}], "/tools/0"), ([PICK, {"name": "x", "parameters": {"type": 7}}], "/tools/1")):
            answer = s.http.post("/api/ag-ui/agents/tools", {"threadId": "t", "runId": "x", "messages": [user("hi")], "tools": tools})
            equal((answer.status, answer.json["errors"][0]["pointer"] if "errors" in answer.json else answer.json["where"]),
                  (400, where), answer.body)


def functions(*tools, nested):
    return [{"type": "function", "function": t} if nested else {"type": "function", **t} for t in tools]


@test("the_openai_client_executes_its_own_tools", "")
def openai_tools():
    with Server() as s:
        with Judge("openai", s.url, s.token) as judge:
            for how in ("chat", "chat_stream"):
                body = {"model": "tools", "tools": functions(COLOR, PICK, nested=True),
                        "messages": [{"role": "user", "content": BOTH}]}
                got = judge.openai(how, body)
                [choice] = got.get("final", got)["choices"]
                equal(choice["finish_reason"], "tool_calls")
                calls = choice["message"]["tool_calls"]
                equal([(c["function"]["name"], json.loads(c["function"]["arguments"])) for c in calls],
                      [("set_color", {"color": "red"}), ("pick", {"of": [1, 2]})])
                results = [{"role": "tool", "tool_call_id": c["id"], "content": f"{c['function']['name']} done"} for c in calls]
                rest = {**body, "messages": body["messages"] + [choice["message"], results[0]]}
                refused = judge.ask(call="chat", args=[rest], options=None)["error"]
                equal((refused["status"], refused["param"]), (400, "messages"))
                rest["messages"].append(results[1])
                [end] = (lambda v: v.get("final", v))(judge.openai(how, rest))["choices"]
                equal(end["finish_reason"], "stop")
                check("set_color done" in end["message"]["content"] and "pick done" in end["message"]["content"], end)
            for how in ("responses", "responses_stream"):
                body = {"model": "tools", "input": call("set_color", color="blue"), "tools": functions(COLOR, nested=False)}
                got = (lambda v: v.get("final", v))(judge.openai(how, body))
                [item] = [i for i in got["output"] if i["type"] == "function_call"]
                equal((item["name"], json.loads(item["arguments"]), got["status"]), ("set_color", {"color": "blue"}, "completed"))
                output = {"type": "function_call_output", "call_id": item["call_id"], "output": "is blue"}
                end = (lambda v: v.get("final", v))(judge.openai(how, {**body, "input": [output],
                                                                       "previous_response_id": got["id"]}))
                check("is blue" in end["output_text"], end)
                equal([i["type"] for i in end["output"] if i["type"] == "function_call"], [])
            equal({r["status"] for r in s.http.get("/api/runs").json["runs"]}, {"succeeded"})
            # Calls of another server are history.
            foreign = [{"role": "user", "content": "a"},
                       {"role": "assistant", "tool_calls": [{"id": "call_x", "type": "function",
                                                             "function": {"name": "f", "arguments": "{}"}}]},
                       {"role": "tool", "tool_call_id": "call_x", "content": "1"}]
            got = judge.openai("chat", {"model": "demo", "messages": foreign})
            equal(got["choices"][0]["finish_reason"], "stop")


main()
