#!/usr/bin/env python3
"""What a run starts counts against its budget: children, theirs, jobs, at the same time and through kills."""
import json

from lib import Provider, Server, check, equal, main, test, wait_until
from lib.backends import SAY, TALK, Shop
from lib.fanout import children, command, log_of, of_class, rest

KEY = {"WIRE_KEY": Provider.KEY}
HELLO = {"provider": "a", "model": "hello"}
SCRIPTED = {"provider": "scripted", "model": "scripted-tools"}
ASK = {"path": "a.txt", "text": "x"}


def server(p):
    row = {"dialect": "openai_chat", "base_url": p.url + "/v1", "key_env": "WIRE_KEY"}
    return Server(env={"UAR_PROVIDERS": json.dumps({"a": row}), **KEY})


def define(s, agent_id, model=SCRIPTED, budget=None):
    """An agent that may start any other one."""
    provider = {"default": model, **({"budget": budget} if budget else {})}
    a = s.http.send("PUT", f"/api/agents/{agent_id}", {
        "version": "1.0", "kind": "agent", "id": agent_id, "runtime": {"entry": "llm.chat"},
        "policy": {"provider": provider, "agents": ["*"], "tools": {
            "allow": ["internal:agent.*", "internal:fs.write", "internal:time.now"], "ask": ["internal:fs.write"]}}})
    check(a.status in (200, 201), a.body)


def tool(name, **args):
    return f"tool {name} {json.dumps(args)}"


def rounds(*lines):
    return "\nthen\n".join(lines)


def calls_of(s, *sessions):
    """Model calls that were made, and those that a budget stopped."""
    events = [e for session in sessions for e in log_of(s, session)]
    return (len([e for e in events if e["type"] == "model.requested"]),
            [e["payload"] for e in events if e["type"] == "quota.blocked"])


def question(s, run_id):
    return wait_until(lambda: s.record(run_id).get("actions"), "a question")[0]["action_id"]


def blocked(s, run_id):
    record = s.finish(run_id)
    equal((record["status"], record["error"]["code"]), ("failed", "BUDGET_EXCEEDED"))


@test("children_at_the_same_time_share_the_budget_of_their_parent", "EVT-101 STAT-08 CTL-26")
def at_once():
    with Provider() as p, server(p) as s:
        define(s, "worker", {"provider": "a", "model": "gate"})
        define(s, "leader", budget={"model_calls": 5})
        run = s.create("leader", rounds("\n".join([tool("agent.spawn", agent_id="worker", message=str(i)) for i in range(6)]),
                                        tool("agent.wait")))
        p.wait_for(requests=3)
        p.release()
        blocked(s, run)
        session = s.record(run)["session_id"]
        made = [rest(s, c) for c in children(s, session)]
        equal(len(made), 6)
        calls, stops = calls_of(s, session, *(c["child_session_id"] for c in made))
        equal(calls, 5)
        own, _ = calls_of(s, session)
        equal((p.stats()["requests"], len([c for c in made if c["status"] == "completed"])), (5 - own, 5 - own))
        equal({c["last_error"]["code"] for c in made if c["status"] != "completed"}, {"BUDGET_EXCEEDED"})
        equal({(b.get("budget_run_id", run), b["quota_name"], b["limit"], b["used"]) for b in stops},
              {(run, "run.model_calls", 5, 5)})


@test("a_grandchild_spends_the_budget_of_the_run_at_the_root_through_kills", "EVT-101 CTL-26 FACT-07")
def below():
    with Provider() as p, server(p) as s:
        define(s, "worker", {"provider": "a", "model": "gate"})
        define(s, "middle", budget={"model_calls": 50})
        define(s, "leader", budget={"model_calls": 6})
        work = rounds(tool("agent.spawn", agent_id="worker", message="dig"), tool("agent.wait"))
        run = s.create("leader", rounds(tool("agent.spawn", agent_id="middle", message=work), tool("agent.wait")))
        p.wait_for(requests=1)
        session = s.record(run)["session_id"]
        wait_until(lambda: calls_of(s, session)[0] == 2, "the leader waits")
        middle, = children(s, session, depth=1)
        wait_until(lambda: calls_of(s, middle["child_session_id"])[0] == 2, "the middle waits")
        s.restart()  # the call that was cut off counts, too: it is made again, and is the sixth
        p.wait_for(requests=2)
        p.release()
        blocked(s, run)
        middle = rest(s, middle)
        equal((middle["status"], middle["last_error"]["code"]), ("failed", "BUDGET_EXCEEDED"))
        worker, = [c for c in children(s, session) if c["depth"] == 2]
        equal((worker["status"], p.stats()["requests"]), ("completed", 2))
        own = [e for e in log_of(s, worker["child_session_id"]) if e["type"] == "turn.submitted"][0]
        equal([b["budget"]["model_calls"] for b in own["payload"]["options"]["budgets"]], [6, 50])
        stop, = calls_of(s, middle["child_session_id"])[1]
        equal((stop["budget_run_id"], stop["used"]), (run, 6))


@test("what_a_child_has_spent_counts_after_a_kill_when_it_is_over", "EVT-101 CTL-26")
def remembered():
    with Provider() as p, server(p) as s:
        define(s, "worker", HELLO)
        define(s, "leader", budget={"model_calls": 6})
        one, two, three = (tool("agent.spawn", agent_id="worker", message=m) for m in ("one", "two", "three"))
        run = s.create("leader", rounds(one + "\n" + two, tool("agent.wait"), tool("fs.write", **ASK), three,
                                        tool("agent.wait")))
        asked = question(s, run)
        equal(p.stats()["requests"], 2)
        s.restart()
        command(s, "respond_action", action_id=asked, decision="allow")
        blocked(s, run)
        made = [rest(s, c) for c in children(s, s.record(run)["session_id"])]
        equal(sorted(c["status"] for c in made), ["completed", "completed", "failed"])
        equal(p.stats()["requests"], 2)


@test("the_items_of_a_job_share_the_budget_of_the_run_that_it_belongs_to", "EVT-101 JOB-02")
def job():
    with Provider() as p, server(p) as s:
        define(s, "worker", HELLO)
        define(s, "leader", budget={"model_calls": 11})
        run = s.create("leader", tool("fs.write", **ASK))
        question(s, run)
        thread = s.record(run)["conversation_id"]
        made = command(s, "create_job", agent_id="worker", instruction="dig", items=[str(i) for i in range(128)],
                       concurrency=64, thread_id=thread)["result"]["job"]
        counts = wait_until(lambda: (lambda j: j["status"] != "running" and j["counts"])(
            command(s, "get_job", job_id=made["job_id"])["result"]["job"]), "the job is over")
        equal((counts["completed"], counts["failed"], p.stats()["requests"]), (10, 118, 10))
        items = command(s, "get_job", job_id=made["job_id"])["result"]["items"]
        equal({i["last_error"]["code"] for i in items if i["status"] == "failed"}, {"BUDGET_EXCEEDED"})


@test("a_run_that_sends_to_a_child_of_an_earlier_one_pays_for_it", "EVT-101 CTL-27")
def sent():
    with Provider() as p, server(p) as s:
        define(s, "worker", HELLO)
        define(s, "leader", budget={"model_calls": 2})
        first = s.create("leader", tool("agent.spawn", agent_id="worker", message="dig"))
        s.finish(first)
        record = s.record(first)
        child = rest(s, children(s, record["session_id"])[0])
        before = p.stats()["requests"]
        again = s.create("leader", "\n".join(tool("agent.send", subagent_id=child["subagent_id"], message=m) for m in "xy"),
                         conversation_id=record["conversation_id"])
        s.finish(again)
        child = rest(s, child)
        own = len([e for e in log_of(s, record["session_id"]) if e["type"] == "model.requested" and e["run_id"] == again])
        equal((child["turns"], own + p.stats()["requests"] - before), (3, 2))
        stops = [e["payload"].get("budget_run_id", e["run_id"]) for session in (record["session_id"], child["child_session_id"])
                 for e in of_class(log_of(s, session), "quota.blocked")]
        check(again in stops, stops)


@test("tool_calls_of_children_count_against_the_budget_of_their_parent", "EVT-101 CTL-26")
def tools():
    with Provider() as p, server(p) as s:
        define(s, "worker")
        define(s, "leader", budget={"tool_calls": 4})
        work = rounds(*[tool("time.now") for _ in range(6)])
        run = s.create("leader", rounds(tool("agent.spawn", agent_id="worker", message=work), tool("agent.wait")))
        s.finish(run)
        session = s.record(run)["session_id"]
        child = rest(s, children(s, session)[0])
        equal((child["status"], child["last_error"]["code"]), ("failed", "BUDGET_EXCEEDED"))
        events = log_of(s, session) + log_of(s, child["child_session_id"])
        equal(len(of_class(events, "tool.started")), 4)



@test("an_agent_that_is_a_program_is_not_started_when_the_budget_above_is_spent", "EVT-101 CTL-26")
def program():
    with Shop({"prog": {"script": [*TALK, SAY % "done", "result"]}}) as s:
        for calls, status in ((1, "failed"), (3, "completed")):
            define(s, "leader", budget={"model_calls": calls})
            run = s.create("leader", tool("agent.spawn", agent_id="prog", message="dig"))
            s.finish(run)
            child = rest(s, children(s, s.record(run)["session_id"])[0])
            started = [e for e in log_of(s, child["child_session_id"]) if e["type"] == "model.requested"]
            equal((child["status"], len(started)), (status, 1 if status == "completed" else 0))


main()
