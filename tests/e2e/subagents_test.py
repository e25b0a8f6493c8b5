#!/usr/bin/env python3
"""Child agents over the control plane: their graph, input, waiting, the end, and what kills leave."""
# time limit: 300 s, ten kills and twenty children that are waited for
import json
import random

from lib import Server, check, equal, main, refused, test, wait_until
from lib.fanout import children, command, log_of, of_class, parent_of, rest, spawn, wait

ASK = 'tool fs.write {"path": "a.txt", "text": "x"}'


@test("a_child_agent_is_spawned_with_links_and_answers",
      "CTL-26 CTL-28 CTL-39 EVT-061 EVT-062 EVT-064 ID-10 JOB-01")
def spawned():
    with Server() as s:
        parent = parent_of(s)
        child = spawn(s, parent, message="dig here", role="miner", nickname="Ann")
        equal(child["status"], "spawned")
        equal(child["parent"], {"session_id": parent["session_id"], "thread_id": parent["thread_id"],
                                "turn_id": parent["turn_id"]})
        done = rest(s, child)
        equal((done["status"], done["answer"], done["role"], done["nickname"], done["depth"]),
              ("completed", "dig here", "miner", "Ann", 1))
        check(done["isolation"] and done["model_policy"] and done["last_message_ref"], done)
        check(done["child_session_id"] != parent["session_id"], done)
        events = log_of(s, parent["session_id"])
        first = of_class(events, "subagent.spawned", child)[0]
        equal((first["payload"]["status"], first["thread_id"], first["turn_id"]),
              ("spawned", parent["thread_id"], parent["turn_id"]))
        equal(first["payload"]["child_thread_id"], done["child_thread_id"])
        equal([e["payload"]["status"] for e in of_class(events, "subagent.status", child)], ["running"])
        last = of_class(events, "subagent.completed", child)
        equal([e["payload"]["summary_preview"] for e in last], ["dig here"])
        equal(last[0]["refs"]["output_ref"], done["last_message_ref"])
        own = log_of(s, done["child_session_id"])
        started = [e for e in own if e["type"] == "thread.started"][0]["payload"]
        equal((started["origin"], started["parent_thread_id"]), ("subagent", parent["thread_id"]))
        s.restart()
        again = children(s, parent["session_id"])[0]
        equal((again["parent"], again["answer"], again["child_session_id"]),
              (done["parent"], done["answer"], done["child_session_id"]))


@test("a_child_agent_takes_input_is_closed_and_resumed", "CTL-27 CTL-29 CTL-30 EVT-063 EVT-066")
def talked_to():
    with Server() as s:
        parent = parent_of(s)
        child = rest(s, spawn(s, parent, message="one"))
        sent = command(s, "send_subagent_input", subagent_id=child["subagent_id"], message="two", input_id="i1")
        check(sent["event_ids"], sent)
        again = command(s, "send_subagent_input", subagent_id=child["subagent_id"], message="two", input_id="i1")
        equal((again["event_ids"], again["result"]["existed"]), ([], True))
        child = rest(s, child)
        equal((child["answer"], child["turns"]), ("two", 2))
        busy = spawn(s, parent, message=ASK, agent_id="tools")
        wait_until(lambda: children(s, parent["session_id"]) and [
            c for c in children(s, parent["session_id"]) if c["status"] == "waiting"], "the child asks")
        refused(s.http.post("/api/control/resume_subagent", {"subagent_id": busy["subagent_id"]}), 409, "CONFLICT")
        closed = command(s, "close_subagent", subagent_id=busy["subagent_id"], reason="enough")["result"]["subagent"]
        equal((closed["status"], closed["status_reason"]), ("closed", "enough"))
        busy = rest(s, busy)
        equal((busy["status"], busy["recoverable"], s.record(busy["run_id"])["status"]), ("closed", True, "canceled"))
        refused(s.http.post("/api/control/send_subagent_input", {"subagent_id": busy["subagent_id"], "message": "x"}),
                409, "CONFLICT")
        events = log_of(s, parent["session_id"])
        told = of_class(events, "subagent.input", child)[0]
        equal((told["payload"]["preview"], told["payload"]["index"], told["payload"]["kind"]), ("two", 1, "text"))
        ended = of_class(events, "subagent.closed", busy)[0]["payload"]
        equal((ended["status"], ended["reason"], ended["released"]), ("closed", "enough", False))
        equal([e["payload"].get("reason") for e in of_class(events, "subagent.status", busy)][-1], "released")
        s.restart()
        command(s, "resume_subagent", subagent_id=child["subagent_id"])
        child = rest(s, child)
        equal((child["answer"], child["turns"], child["status"]), ("two", 3, "completed"))
        equal(len([e for e in log_of(s, child["child_session_id"]) if e["type"] == "turn.submitted"]), 3)
        command(s, "resume_subagent", subagent_id=busy["subagent_id"], message="tool time.now {}")
        equal(rest(s, busy)["status"], "completed")


@test("waiting_for_child_agents_ends_with_any_all_or_its_time", "CTL-28")
def waited_for():
    with Server() as s:
        parent = parent_of(s)
        slow = spawn(s, parent, message=ASK, agent_id="tools")
        fast = spawn(s, parent, message="fast")
        both = slow["subagent_id"], fast["subagent_id"]
        some = wait(s, *both, mode="any")
        equal((some["timed_out"], [c["status"] for c in some["subagents"]][1]), (False, "completed"))
        late = wait(s, *both, mode="all", timeout_ms=200)
        equal(late["timed_out"], True)
        look = wait(s, slow["subagent_id"], timeout_ms=0)
        equal(look["timed_out"], True)
        command(s, "close_subagent", subagent_id=slow["subagent_id"])
        equal(wait(s, *both)["timed_out"], False)
        refused(s.http.post("/api/control/wait_subagents", {"subagent_ids": ["none"]}), 404, "NOT_FOUND")
        refused(s.http.post("/api/control/wait_subagents", {"subagent_ids": []}), 400, "VALIDATION_ERROR", "/subagent_ids")


@test("child_agents_that_fail_say_so_and_are_recoverable", "EVT-065")
def failed():
    with Server() as s:
        parent = parent_of(s)
        child = rest(s, spawn(s, parent, agent_id="nobody"))
        equal((child["status"], child["last_error"]["code"], child["recoverable"]), ("failed", "NOT_FOUND", True))
        end = of_class(log_of(s, parent["session_id"]), "subagent.failed", child)[0]["payload"]
        equal((end["status"], end["failure_category"], end["error"]["code"]), ("failed", "execution", "NOT_FOUND"))


@test("child_agents_have_children_up_to_a_depth_and_close_with_their_parent", "CTL-39 FACT-07")
def graph():
    with Server() as s:
        parent = parent_of(s)
        top = rest(s, spawn(s, parent))
        below = [rest(s, spawn(s, {"thread_id": top["child_thread_id"]}))]
        while len(below) < 3:
            below.append(rest(s, spawn(s, {"thread_id": below[-1]["child_thread_id"]})))
        equal([c["depth"] for c in below], [2, 3, 4])
        refused(s.http.post("/api/control/spawn_subagent", {
            "thread_id": below[-1]["child_thread_id"], "agent_id": "echo", "message": "x"}), 409, "CONFLICT")
        waits = spawn(s, {"thread_id": below[0]["child_thread_id"]}, message=ASK, agent_id="tools")
        detached = spawn(s, {"thread_id": below[0]["child_thread_id"]}, message=ASK, agent_id="tools",
                         on_parent_end="detach")
        all_of_them = children(s, parent["session_id"])
        equal(len(all_of_them), 6)
        equal({c["root_session_id"] for c in all_of_them}, {parent["session_id"]})
        by_id = {c["subagent_id"]: c for c in all_of_them}
        equal(by_id[below[1]["subagent_id"]]["parent_subagent_id"], below[0]["subagent_id"])
        equal(len(children(s, parent["session_id"], depth=2)), 2)
        s.restart()
        equal({c["subagent_id"] for c in children(s, parent["session_id"])}, set(by_id))
        command(s, "close_subagent", subagent_id=below[0]["subagent_id"])
        equal(rest(s, waits)["status"], "closed")
        wait_until(lambda: [c for c in children(s, parent["session_id"])
                            if c["subagent_id"] == detached["subagent_id"]][0]["status"] == "waiting")


@test("child_agents_are_closed_when_their_parents_run_is_cancelled", "FACT-07")
def cancelled():
    with Server() as s:
        t = command(s, "submit_turn", agent_id="tools", message=ASK)["result"]
        wait_until(lambda: s.record(t["run_id"]).get("actions"), "a question")
        child = spawn(s, t, message=ASK, agent_id="tools")
        equal(child["parent"]["run_id"], t["run_id"])
        kept = spawn(s, t, message=ASK, agent_id="tools", on_parent_end="detach")
        command(s, "interrupt_turn", session_id=t["session_id"])
        equal(rest(s, child)["status"], "closed")
        check(wait(s, kept["subagent_id"], timeout_ms=0)["timed_out"], kept)


@test("work_of_a_task_is_delegated_to_a_child_agent", "EVT-092")
def delegated():
    with Server() as s:
        parent = parent_of(s)
        task = command(s, "create_task", objective="dig", session_id=parent["session_id"])["result"]["task"]
        child = rest(s, spawn(s, parent, task_id=task["task_id"]))
        fact = of_class(log_of(s, parent["session_id"]), "task.delegated")[0]
        equal((fact["task_id"], fact["payload"]["target"]),
              (task["task_id"], {"kind": "subagent", "id": child["subagent_id"]}))
        edge = s.http.get(f"/api/tasks/{task['task_id']}").json["task"]["relationships"][0]
        equal((edge["kind"], edge["target_id"]), ("spawned_subagent", child["subagent_id"]))
        equal({k: fact["payload"]["edge"][k] for k in ("kind", "target_id")},
              {"kind": "spawned_subagent", "target_id": child["subagent_id"]})
        command(s, "cancel_task", task_id=task["task_id"])
        refused(s.http.post("/api/control/spawn_subagent", {
            "thread_id": parent["thread_id"], "agent_id": "echo", "message": "x", "task_id": task["task_id"]}),
            409, "CONFLICT")


def tool(name, **args):
    return f"tool {name} {json.dumps(args)}"


def leader(s, *agents):
    """An agent of the scripted model that may start these."""
    a = s.http.send("PUT", "/api/agents/leader", {
        "version": "1.0", "kind": "agent", "id": "leader", "runtime": {"entry": "llm.chat"},
        "policy": {"provider": {"default": {"provider": "scripted", "model": "scripted-tools"}},
                   "tools": {"allow": ["internal:agent.*"]}, "agents": list(agents)}})
    check(a.status in (200, 201), a.body)


def outputs(s, run_id):
    return [e.data["data"] for e in s.events(run_id) if e.type == "ToolEnd"]


@test("agents_start_others_with_tools_within_their_policy", "CTL-26 CTL-28 JOB-01")
def with_tools():
    with Server() as s:
        leader(s, "echo", "to*")
        run = s.create("leader", "\nthen\n".join((
            tool("agent.spawn", agent_id="echo", message="dig", nickname="Ann"),
            tool("agent.spawn", agent_id="tools", message="tool time.now {}"),
            tool("agent.spawn", agent_id="assistant", message="no"),
            tool("agent.wait"))))
        one, two, no, both = outputs(s, run)
        check(one["ok"] and two["ok"] and both["ok"] and not no["ok"], (one, two, no, both))
        equal({c["answer"] for c in both["output"]["subagents"]} >= {"dig"}, True)
        equal([c["status"] for c in both["output"]["subagents"]], ["completed"] * 2)
        child = one["output"]["subagent"]
        equal((child["parent"]["run_id"], child["origin_tool"]), (run, "agent.spawn"))
        check("policy.agents" in json.dumps(no), no)


@test("a_parent_that_waits_through_kills_starts_no_child_twice", "CTL-28 FACT-07")
def waits_through_kills():
    with Server() as s:
        leader(s, "*")
        run = s.create("leader", "\nthen\n".join((
            tool("agent.spawn", agent_id="tools", message=ASK), tool("agent.wait"))))
        session = s.record(run)["session_id"]
        for _ in range(3):
            wait_until(lambda: [c for c in children(s, session) if c["status"] == "waiting"], "the child asks")
            s.kill()
            s.start()
        child, = children(s, session)
        question = wait_until(lambda: s.record(child["run_id"]).get("actions"), "the question")
        command(s, "respond_action", action_id=question[0]["action_id"], decision="allow")
        spawned, waited = outputs(s, run)[-2:]
        equal([c["status"] for c in waited["output"]["subagents"]], ["completed"])
        equal(len(of_class(log_of(s, session), "subagent.spawned")), 1)
        equal(len([e for e in log_of(s, child["child_session_id"]) if e["type"] == "turn.submitted"]), 1)


@test("another_attempt_of_a_parent_adopts_the_children_that_are_there", "FACT-07 CTL-26")
def adopted():
    with Server() as s:
        leader(s, "*")
        run = s.create("leader", "\nthen\n".join((
            tool("agent.spawn", agent_id="echo", message="dig"), tool("agent.wait"),
            tool("agent.spawn", agent_id="tools", message=ASK), tool("agent.wait"))))
        session = s.record(run)["session_id"]
        wait_until(lambda: [c for c in children(s, session) if c["status"] == "waiting"], "the second child asks")
        first = {c["agent_id"]: c["subagent_id"] for c in children(s, session)}
        s.cancel(run)
        s.finish(run)
        again = s.http.post(f"/api/runs/{run}/retry", {}).json["run_id"]
        wait_until(lambda: [c for c in children(s, session) if c["status"] == "waiting" and
                            c["subagent_id"] != first["tools"]], "the new second child asks")
        now = children(s, session)
        equal(len(now), 3)
        dug, = [c for c in now if c["agent_id"] == "echo"]
        equal((dug["subagent_id"], dug["turns"], dug["parent"]["run_id"]), (first["echo"], 1, again))


@test("the_summary_of_a_session_shows_children_and_jobs_after_a_restart", "SNAP-12")
def summary():
    with Server() as s:
        parent = parent_of(s)
        child = rest(s, spawn(s, parent, message="dig", nickname="Ann"))
        waits = spawn(s, parent, message=ASK, agent_id="tools")
        wait_until(lambda: [c for c in children(s, parent["session_id"]) if c["status"] == "waiting"], "the child asks")
        job = command(s, "create_job", agent_id="echo", instruction="dig", items=["a", "b"],
                      thread_id=parent["thread_id"])["result"]["job"]
        wait_until(lambda: command(s, "get_job", job_id=job["job_id"])["result"]["job"]["status"] == "completed", "the job")

        def shown():
            a = s.http.get(f"/api/sessions/{parent['session_id']}?include=subagents").json
            equal(a["read_models"]["subagent_job_summary"]["state"], "available")
            return a["subagent_job_summary"]
        before = shown()
        by_id = {c["subagent_id"]: c for c in before["subagents"]}
        one, two = by_id[child["subagent_id"]], by_id[waits["subagent_id"]]
        equal((one["status"], one["summary"], one["nickname"], one["recoverability"], one["child_thread_id"]),
              ("completed", "dig", "Ann", "resume_subagent", child["child_thread_id"]))
        equal((two["status"], two["recoverability"]), ("waiting", "goes_on"))
        j = before["jobs"][0]
        equal((j["job_id"], j["status"], j["counts"]["completed"], j["progress"]), (job["job_id"], "completed", 2, 1))
        check(all(i["assigned_thread_id"] and i["status"] == "completed" for i in j["items"]), j)
        s.kill()
        s.start()
        equal(shown(), before)
        plain = parent_of(s)
        states = s.http.get(f"/api/sessions/{plain['session_id']}").json["read_models"]
        equal(states["subagent_job_summary"]["state"], "not_applicable")


@test("too_many_child_agents_at_work_are_refused", "CTL-26")
def counted():
    with Server() as s:
        parent = parent_of(s)
        for _ in range(64):
            spawn(s, parent, message=ASK, agent_id="tools")
        p = refused(s.http.post("/api/control/spawn_subagent", {
            "thread_id": parent["thread_id"], "agent_id": "echo", "message": "x"}), 409, "CONFLICT")
        check("wait for some of them" in p["detail"], p)


@test("twenty_child_agents_are_each_done_once_through_kills", "CTL-26 FACT-07")
def killed():
    rng = random.Random(7)
    with Server() as s:
        parent = parent_of(s)
        made = []
        for i in range(20):
            made.append(spawn(s, parent, message=f"work {i}", subagent_id=f"child-{i}"))
            if i % 2:
                s.kill()
                s.start()
                again = spawn(s, parent, message=f"work {i}", subagent_id=f"child-{i}")
                equal(again["subagent_id"], made[-1]["subagent_id"])
        rng.shuffle(made)
        for i, child in enumerate(made):
            done = rest(s, child)
            equal((done["status"], done["answer"], done["turns"]),
                  ("completed", "work " + child["subagent_id"][6:], 1))
            own = log_of(s, done["child_session_id"])
            equal(len([e for e in own if e["type"] == "turn.submitted"]), 1)
        events = log_of(s, parent["session_id"])
        for child in made:
            equal(len(of_class(events, "subagent.spawned", child)), 1)
            equal(len(of_class(events, "subagent.completed", child)), 1)


def asking(s, parent, **more):
    """A child that has asked for something and waits."""
    child = spawn(s, parent, message=ASK, agent_id="tools", **more)
    wait_until(lambda: wait(s, child["subagent_id"], timeout_ms=0)["subagents"][0]["status"] == "waiting", "it asks")
    return child


@test("a_kill_after_a_child_at_rest_was_closed_leaves_none_of_its_own_at_work", "CTL-30 FACT-07")
def closed_through_kills():
    with Server() as s:
        parent = parent_of(s)
        for i in range(4):
            top = rest(s, spawn(s, parent))
            middle = rest(s, spawn(s, {"thread_id": top["child_thread_id"]}))
            below = asking(s, {"thread_id": middle["child_thread_id"]})
            beside = asking(s, {"thread_id": top["child_thread_id"]}, on_parent_end="detach")
            command(s, "close_subagent", subagent_id=top["subagent_id"])
            s.kill()
            s.start()
            equal(rest(s, below)["status"], "closed", i)
            equal(wait(s, middle["subagent_id"])["subagents"][0]["status"], "completed")
            check(wait(s, beside["subagent_id"], timeout_ms=0)["timed_out"], "it is detached")
        command(s, "resume_subagent", subagent_id=below["subagent_id"], message=ASK)
        wait_until(lambda: wait(s, below["subagent_id"], timeout_ms=0)["subagents"][0]["status"] == "waiting", "it asks")
        s.restart()
        equal(wait(s, below["subagent_id"], timeout_ms=500)["timed_out"], True, "somebody has resumed it")


@test("long_answers_of_many_child_agents_are_told", "CTL-27 CTL-28 CTL-45")
def long():
    with Server() as s:
        parent = parent_of(s)
        children = [spawn(s, parent, message="x" * 65000)["subagent_id"] for _ in range(20)]
        for c in children:
            wait(s, c)
        told = command(s, "wait_subagents", subagent_ids=children)["result"]
        equal([(c["status"], len(c["answer"])) for c in told["subagents"]], [("completed", 65000)] * 20)
        leader(s, "echo")
        run = s.create("leader", "\nthen\n".join(
            [tool("agent.spawn", agent_id="echo", message=f"{i}" * 60000) for i in range(6)] + [tool("agent.wait")]))
        told = [e.data for e in s.session_events(run) if e.data["type"] == "tool.result"][-1]
        sha256 = told["refs"]["output_ref"].removeprefix("blob://")
        cut = json.loads(s.http.get(f"/api/runs/{run}/blobs/{sha256}").body)
        equal([c["answer"] for c in cut["subagents"]], [c["answer"][0] * cut["answers_cut_at"] for c in cut["subagents"]])
        check(len({c["answer"] for c in cut["subagents"]}) == 6 and cut["answers_cut_at"] > 30000, cut["answers_cut_at"])
        odd = spawn(s, parent, message="\x01" * 65000)["subagent_id"]
        wait(s, odd)
        body = {"subagent_id": odd, "message": "more", "idempotency_key": "k"}
        first = command(s, "send_subagent_input", **body)
        equal(command(s, "send_subagent_input", **body), first, "an outcome of any length is kept")


def asking_job(s, **more):
    j = command(s, "create_job", agent_id="tools", instruction=ASK, items=["", ""], **more)["result"]["job"]
    wait_until(lambda: job(s, j)["counts"]["running"] == 2, "its items are at work")
    return j


def job(s, j):
    return command(s, "get_job", job_id=j["job_id"])["result"]["job"]


@test("a_cancel_of_a_task_reaches_the_agents_and_jobs_that_work_for_it", "CTL-12 TASK-04 FACT-07")
def task_cancelled():
    with Server() as s:
        parent = parent_of(s)
        for how in ("all", "none", "children"):
            task = command(s, "create_task", objective="dig", session_id=parent["session_id"])["result"]["task"]
            child = asking(s, parent, task_id=task["task_id"])
            work = asking_job(s, task_id=task["task_id"])
            command(s, "cancel_task", task_id=task["task_id"], propagation=how)
            if how == "children":
                s.kill()
                s.start()
            fact, = [e for e in of_class(log_of(s, parent["session_id"]), "task.cancel_requested")
                     if e["task_id"] == task["task_id"]]
            targets = [{"kind": "subagent", "id": child["subagent_id"]}, {"kind": "job", "id": work["job_id"]}]
            equal(sorted(t["kind"] for t in fact["payload"]["targets"]), [] if how == "none" else ["job", "subagent"])
            check(all(t in targets for t in fact["payload"]["targets"]), fact)
            if how == "none":
                check(wait(s, child["subagent_id"], timeout_ms=500)["timed_out"], "it goes on")
                equal(job(s, work)["status"], "running")
                refused(s.http.post("/api/control/send_subagent_input", {
                    "subagent_id": child["subagent_id"], "message": "more"}), 409, "CONFLICT", "/subagent_id")
                continue
            equal(rest(s, child)["status"], "closed", how)
            wait_until(lambda: job(s, work)["status"] == "cancelled" and not job(s, work)["counts"]["running"], "the job")
            refused(s.http.post("/api/control/create_job", {
                "agent_id": "echo", "instruction": "x", "items": ["a"], "task_id": task["task_id"]}), 409, "CONFLICT")


@test("a_pause_says_what_cannot_be_suspended", "CTL-10")
def task_paused():
    with Server() as s:
        parent = parent_of(s)
        top = command(s, "create_task", objective="dig", session_id=parent["session_id"])["result"]["task"]["task_id"]
        task = command(s, "create_task", objective="dig", parent_task_id=top)["result"]["task"]["task_id"]
        child, work = asking(s, parent, task_id=task), asking_job(s, task_id=task)
        for name, at_work in (("close_subagent", child["subagent_id"]), ("cancel_job", work["job_id"])):
            p = refused(s.http.post("/api/control/pause_task", {"task_id": top, "propagation": "all"}), 409, "CONFLICT",
                        "/propagation")
            check(child["subagent_id"] in p["detail"] or work["job_id"] in p["detail"], p)
            command(s, name, **{name.split("_")[1] + "_id": at_work})
        rest(s, child)
        wait_until(lambda: not job(s, work)["counts"]["running"], "the items stop")
        command(s, "pause_task", task_id=top, propagation="all")
        equal(command(s, "get_task", task_id=task)["result"]["task"]["status"], "paused")
        for name, body in (("create_job", {"instruction": "x", "items": ["a"]}),
                           ("spawn_subagent", {"message": "x", "thread_id": parent["thread_id"]})):
            refused(s.http.post("/api/control/" + name, {"agent_id": "echo", "task_id": task, **body}), 409, "CONFLICT", "/task_id")
        command(s, "resume_task", task_id=top, propagation="all")
        command(s, "create_job", agent_id="echo", instruction="x", items=["a"], task_id=task)


@test("an_interrupt_reaches_the_jobs_of_the_turn", "CTL-04 FACT-07")
def job_interrupted():
    with Server() as s:
        t = command(s, "submit_turn", agent_id="tools", message=ASK)["result"]
        wait_until(lambda: s.record(t["run_id"]).get("actions"), "a question")
        work = asking_job(s, thread_id=t["thread_id"])
        equal(job(s, work)["run_id"], t["run_id"])
        kept = asking_job(s, thread_id=t["thread_id"], on_parent_end="detach")
        command(s, "interrupt_turn", session_id=t["session_id"])
        wait_until(lambda: job(s, work)["status"] == "cancelled" and not job(s, work)["counts"]["running"], "the job")
        equal(job(s, kept)["status"], "running")


@test("sessions_of_children_are_listed_only_when_they_are_asked_for", "CTL-39")
def listed():
    with Server() as s:
        parent = parent_of(s)
        child = rest(s, spawn(s, parent))
        work = command(s, "create_job", agent_id="echo", instruction="x", items=["a"])["result"]["job"]
        wait_until(lambda: job(s, work)["status"] == "completed", "the job")

        def kinds(query):
            a = s.http.get(f"/api/sessions?limit=50{query}").json["sessions"]
            return {x["session_id"]: x["kind"] for x in a}
        equal(kinds(""), {parent["session_id"]: "main", work["session_id"]: "main"})
        equal(kinds("&kind=subagent"), {child["child_session_id"]: "subagent"})
        equal(list(kinds("&kind=job_item").values()), ["job_item"])
        equal(len(kinds("&kind=any")), 4)
        refused(s.http.get("/api/sessions?kind=other"), 400, "VALIDATION_ERROR", "?kind")


if __name__ == "__main__":
    main()
