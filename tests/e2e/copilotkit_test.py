#!/usr/bin/env python3
"""CopilotKit: its own client agent runs agents, comes back to threads and stops runs, over both transports."""
import json
import os
import subprocess

from lib import ROOT, Server, check, equal, main, refused, test, wait_until
from lib.npm import modules, node

SLOW = {"UAR_SCRIPTED_TOKEN_MS": "60000"}
BASE = "/api/copilotkit"
BOTH = ("rest", "single")


class Judge:
    """The official package in a process of its own."""

    def __init__(self, s):
        self.server = s
        self.proc = subprocess.Popen([node(), os.path.join(ROOT, "tests", "e2e", "copilotkit_judge.mjs"),
                                      modules("copilotkit")],
                                     stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, **task):
        task |= {"url": self.server.url + BASE, "token": self.server.token}
        self.proc.stdin.write(json.dumps(task) + "\n")
        self.proc.stdin.flush()
        answer = json.loads(self.proc.stdout.readline())
        check("value" in answer, answer)
        equal(answer["value"].pop("errors"), [], "what the client complains of")
        return answer["value"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.proc.stdin.close()
        self.proc.wait()


def user(text, message_id="u1"):
    return {"id": message_id, "role": "user", "content": text}


def spoken(messages):
    return [(m["role"], m.get("content")) for m in messages if m["role"] in ("user", "assistant")]


def types(got):
    return [e["type"] for e in got["events"]]


@test("the_client_of_copilotkit_finds_the_agents", "AGUI-01")
def info():
    with Server() as s, Judge(s) as judge:
        for transport in (*BOTH, "auto"):
            got = judge.ask(do="info", transport=transport)
            equal(sorted(got["agents"]), sorted(a["agent_id"] for a in s.http.get("/api/agents").json["agents"]))
            can = got["agents"]["tools"]
            check(can["transport"]["resumable"] and can["humanInTheLoop"]["interrupts"], can)
            check("math.evaluate" in [t["name"] for t in can["tools"]["items"]], can["tools"])
        equal(s.http.get("/api/ag-ui/agents/tools/capabilities").json, can)
        refused(s.http.get("/api/ag-ui/agents/nobody/capabilities"), 404, "NOT_FOUND")


@test("the_client_of_copilotkit_runs_agents_and_comes_back", "AGUI-01 AGUI-13")
def talks():
    with Server() as s, Judge(s) as judge:
        for transport in BOTH:
            thread, messages = f"t-{transport}", []
            empty = judge.ask(do="connect", agent="demo", thread=thread, run=f"c0-{transport}", transport=transport)
            equal((empty["messages"], types(empty)), ([], ["RUN_STARTED", "RUN_FINISHED"]))
            for i in range(3):
                messages = [*messages, user(f"number {i}", f"u{i}")]
                got = judge.ask(do="run", agent="demo", thread=thread, run=f"r{i}-{transport}", messages=messages,
                                transport=transport)
                messages = got["messages"]
                check(f'You wrote: "number {i}" (turns before this one: {i})' in messages[-1]["content"], messages[-1])
            s.kill()
            s.start()
            back = judge.ask(do="connect", agent="demo", thread=thread, run=f"c-{transport}", transport=transport)
            equal(spoken(back["messages"]), spoken(messages))
            equal(types(back)[-1], "RUN_FINISHED")
            # One that has them already has them once.
            again = judge.ask(do="connect", agent="demo", thread=thread, run=f"d-{transport}", transport=transport,
                              messages=back["messages"])
            equal(again["messages"], back["messages"])
            more = judge.ask(do="run", agent="demo", thread=thread, run=f"e-{transport}", transport=transport,
                             messages=[*back["messages"], user("more", "u9")])
            check("turns before this one: 3" in more["messages"][-1]["content"], more["messages"][-1])
        equal(len(s.http.get("/api/runs").json["runs"]), 8)


@test("the_client_of_copilotkit_stops_a_run", "AGUI-01 AGUI-14")
def stops():
    with Server(env=SLOW) as s, Judge(s) as judge:
        for transport in BOTH:
            got = judge.ask(do="run", agent="demo", thread=f"t-{transport}", run=f"r-{transport}", messages=[user("hi")],
                            transport=transport, stop="REASONING_MESSAGE_CONTENT")
            equal((types(got)[-1], got["events"][-1].get("code")), ("RUN_ERROR", "cancelled"))
            [run] = [r for r in s.http.get("/api/runs").json["runs"] if r["conversation_id"] == f"t-{transport}"]
            equal(run["status"], "canceled")
        # A run that is over is not another one of its thread.
        run_id = s.http.post("/api/runs", {"agent_id": "demo", "conversation_id": "t-rest", "inputs": {"message": "x"}}).json["run_id"]
        stop = f"{BASE}/agent/demo/stop/t-rest"
        wait_until(lambda: s.record(run_id)["status"] == "running", "the run to begin")
        equal(s.http.post(stop, {"runId": "r-rest"}).json, {"stopped": False})
        equal(s.http.post(stop).json, {"stopped": True})
        s.events(run_id)
        equal(s.http.post(stop).json, {"stopped": False})
        equal(s.http.post(f"{BASE}/agent/demo/stop/nothing").json, {"stopped": False})
        # The run that is named is stopped, also one in the queue; a name that nobody has stops nothing.
        made = [s.http.post("/api/runs", {"agent_id": "demo", "conversation_id": "t-queue", "inputs": {"message": m}},
                            headers={"Idempotency-Key": f"ag-ui:{m}"}).json["run_id"] for m in ("A", "B")]
        stop = f"{BASE}/agent/demo/stop/t-queue"
        equal(s.http.post(stop, {"runId": "nobody"}).json, {"stopped": False})
        equal(s.http.post(stop, {"runId": "B"}).json, {"stopped": True})
        s.events(made[1])
        check(s.record(made[0])["status"] != "canceled", "the other one goes on")
        equal(s.http.post(stop, {"runId": "A"}).json, {"stopped": True})


@test("a_client_that_connects_sees_a_run_that_goes_on", "AGUI-01 AGUI-14")
def live():
    color = {"name": "set_color", "description": "", "parameters": {"type": "object", "properties": {}}}
    with Server() as s, Judge(s) as judge:
        first = judge.ask(do="run", agent="tools", thread="t", run="r1", messages=[user('tool set_color {}')], tools=[color])
        [call] = [c for m in first["messages"] for c in m.get("toolCalls") or []]
        back = judge.ask(do="connect", agent="tools", thread="t", run="c1")
        equal([c["id"] for m in back["messages"] for c in m.get("toolCalls") or []], [call["id"]])
        done = {"id": "m1", "role": "tool", "toolCallId": call["id"], "content": "red"}
        rest = judge.ask(do="run", agent="tools", thread="t", run="r2", messages=[*back["messages"], done], tools=[color])
        equal(types(rest)[-1], "RUN_FINISHED")
        equal(len(s.http.get("/api/runs").json["runs"]), 1, "the same run went on")
        # What the client called the second part is a fact.
        run_id = s.http.get("/api/runs").json["runs"][0]["run_id"]
        text = s.http.get(f"/api/ag-ui/runs/{run_id}/stream").body.decode()
        started = [json.loads(line[6:]) for line in text.split("\n") if line.startswith("data: ") and "RUN_STARTED" in line]
        equal([e["runId"] for e in started], ["r1", "r2"])


@test("what_does_not_fit_is_refused_by_name", "")
def refusals():
    with Server() as s:
        for body, where in (({"method": "x"}, "/method"), ({"method": "agent/run"}, "/params/agentId"),
                            ({"method": "agent/stop", "params": {"agentId": "demo"}}, "/params/threadId"),
                            ({"method": "agent/run", "params": {"agentId": "demo"}}, "/body"),
                            ({"method": "agent/connect", "params": {"agentId": "demo"}, "body": {}}, "/threadId")):
            refused(s.http.post(BASE, body), 400, "VALIDATION_ERROR", where)
        equal(s.http.get(f"{BASE}/info", token=False).status, 401)


main()
