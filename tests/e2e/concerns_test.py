#!/usr/bin/env python3
"""The ten concerns of the runtime contract: one life of one session, and what each concern leaves in log and read models."""
# time limit: 300 s, a child agent, a job, a command and a kill
import json
import os

from lib import Provider, Server, Stream, check, check_session, equal, main, run_uar, test, wait_until
from lib.fanout import command, log_of, rest, spawn
from lib.payloads import check_payload

HOOK = "import json, sys; json.load(sys.stdin); print('{}')"
PEER = {"transport": "sse", "peer_role": "peer_agent", "peer_id": "https://peer.example/bob", "native_protocol": "a2a",
        "capabilities": ["permissions"]}


def settings(p):
    provider = {"dialect": "openai_chat", "base_url": p.url + "/v1", "key_env": "WIRE_KEY"}
    model = lambda name: {"provider": name[0], "model": name[2:]}
    return {"UAR_PROVIDERS": json.dumps({"a": provider, "b": provider}), "WIRE_KEY": Provider.KEY,
            "UAR_ROUTING": json.dumps({"default": model("a/err429"), "fallbacks": [model("b/hello")],
                                       "budget": {"model_calls": 8}}),
            "UAR_PRICES": json.dumps({"b/*": {"input": 1000, "output": 2000}}),
            "UAR_HOOKS": json.dumps({"watch": {"points": ["pre_tool_use"], "risk": "read_only",
                                               "command": ["python3", "-I", "-S", "-c", HOOK]}})}


class Life:
    """What happens once, on one server, before anything is looked at."""

    def __init__(self, s):
        self.s = s
        first = command(s, "submit_turn", agent_id="echo", message="hello")["result"]
        s.finish(first["run_id"])
        self.first, self.session, self.thread = first, first["session_id"], first["thread_id"]
        self.where = {"session_id": self.session, "thread_id": self.thread}
        self.channel = command(s, "connect_channel", session_id=self.session, **PEER)["result"]["channel"]["channel_id"]
        with Stream(s.url, f"/api/channels/{self.channel}/events", s.token) as peer:
            peer.next()
            self.work_and_wait()
        self.child = rest(s, spawn(s, first, message="dig"))
        self.job = command(s, "create_job", agent_id="echo", instruction="dig", items=["a", "b"],
                           thread_id=self.thread)["result"]["job"]["job_id"]
        wait_until(lambda: command(s, "get_job", job_id=self.job)["result"]["job"]["status"] == "completed", "the job")
        self.task = command(s, "create_task", objective="a report", session_id=self.session)["result"]["task"]["task_id"]
        command(s, "append_task_progress", task_id=self.task, progress=0.5, message="half")
        self.evidence = {k: command(s, "export_" + k, thread_id=self.thread, turn_id=self.run["turn_id"])["result"]
                         for k in ("evidence", "replay", "review")}
        self.before = self.read()
        s.restart()
        self.log = log_of(s, self.session)

    def work_and_wait(self):
        """A command that a person allows while a second turn waits; the peer is told of the question."""
        s = self.s
        line = json.dumps({"command": "echo written > a.txt; echo y > /outside; seq 2000; true"})
        self.run = command(s, "submit_turn", agent_id="a", message="tool process__run " + line, **self.where)["result"]
        action = wait_until(lambda: s.record(self.run["run_id"]).get("actions"), "a question")[0]["action_id"]
        self.routed = command(s, "submit_turn", agent_id="assistant", message="hello", **self.where)["result"]
        self.waiting = self.read()
        wait_until(lambda: [e for e in log_of(s, self.session) if e["type"] == "channel.permission_forwarded"], "it crosses")
        command(s, "respond_action", action_id=action, decision="allow")
        for t in (self.run, self.routed):
            equal(s.finish(t["run_id"])["status"], "succeeded")

    def read(self):
        a = self.s.http.get(f"/api/sessions/{self.session}?include=tasks,artifacts,subagents,permissions&verify=1")
        equal(a.status, 200, a.body)
        return a.json

    def of(self, *kinds):
        return [e for e in self.log if e["type"] in kinds]

    def payload(self, kind):
        found = self.of(kind)
        check(found, "the log lacks", kind)
        return found[-1]["payload"]


def identity(v):
    now = v.read()
    equal(now["session"]["session_id"] if "session" in now else now["session_id"], v.session)
    queued = [e for e in v.of("task.queued") if e["run_id"] == v.run["run_id"]][0]
    equal({k: queued[k] for k in ("session_id", "thread_id", "turn_id", "task_id", "run_id", "attempt_id")},
          {**v.where, "turn_id": v.run["turn_id"], "task_id": v.run["task_id"], "run_id": v.run["run_id"],
           "attempt_id": v.run["run_id"]})
    call, process = v.of("tool.started")[-1], v.of("process.started")[-1]
    equal((process["tool_call_id"], process["step_id"]), (call["tool_call_id"], call["step_id"]))


def events(v):
    with v.s.session_stream(v.session, stored=1) as stream:
        check_session(stream.all())
    for e in v.log:
        check_payload(e)
    again = log_of(v.s, v.session)
    equal([e["event_id"] for e in again], [e["event_id"] for e in v.log], "the log is the same when it is read again")


def control_plane(v):
    listed = {c["name"] for c in v.s.http.get("/api/control").json["commands"]}
    used = {"submit_turn", "connect_channel", "respond_action", "spawn_subagent", "create_job", "create_task", "export_evidence"}
    check(used <= listed, used - listed)
    got = command(v.s, "get_task", task_id=v.task)["result"]["task"]
    equal((got["task_id"], got["objective"], got["progress"]), (v.task, "a report", 0.5))


def snapshots(v):
    now = v.read()
    states = {name: m["state"] for name, m in now["read_models"].items()}
    equal(len(states), 13)
    silent = {"context_boundary_snapshot", "artifact_checkpoint_summary"}
    equal({n for n, state in states.items() if state != "available"} - silent, set())
    equal(now["through_sequence"], v.log[-1]["sequence"])


def orchestration(v):
    """A turn is a task that is an attempt with steps: each said when it began and how it ended, in this order."""
    mine = [e["type"] for e in v.log if e.get("run_id") == v.run["run_id"]]
    order = [mine.index(k) for k in ("turn.submitted", "task.created", "task.queued", "task.started", "turn.started",
                                     "model.requested", "model.completed", "tool.started", "tool.result",
                                     "task.attempt.completed", "task.completed", "turn.completed") if k in mine]
    equal((order, len(order) >= 10), (sorted(order), True), mine)
    turns = {t["turn_id"]: t["status"] for t in v.read()["active_thread"]["turns"]}
    equal({turns[t["turn_id"]] for t in (v.first, v.run, v.routed)}, {"completed"})


def people_and_queue(v):
    thread = v.waiting["active_thread"]
    equal((len(thread["pending_requests"]), [t["queued_turn_id"] for t in thread["queued_turns"]]), (1, [v.routed["turn_id"]]))
    [asked], [answered] = v.of("action.required"), v.of("action.resolved")
    equal((asked["action_id"], answered["payload"]["result"]), (answered["action_id"], "allow"))
    ops = [e["payload"]["op"] for e in v.of("queue.changed")]
    check("added" in ops and "started" in ops, ops)
    now = v.read()["active_thread"]
    equal((now["pending_requests"], now["queued_turns"]), ([], []))


def evidence(v):
    equal([e["payload"]["kind"] for e in v.of("evidence.changed")], ["evidence", "replay", "review"])
    shown = v.read()["evidence_summary"]["evidence"]
    equal({e["evidence_id"] for e in shown}, {m["evidence_id"] for m in v.evidence.values()})
    path = os.path.join(v.s.root, "pack.json")
    with open(path, "wb") as f:
        f.write(v.s.http.get("/api/evidence/" + v.evidence["evidence"]["evidence_id"]).body)
    equal(run_uar("verify", path).returncode, 0)
    check("uar_runs" in v.s.http.get("/metrics").body.decode())


def governance(v):
    mine = [e["type"] for e in v.log if e.get("run_id") == v.run["run_id"]]
    order = [mine.index(k) for k in ("hook.started", "hook.completed", "permission.evaluated", "permission.resolved",
                                     "sandbox.applied", "process.started", "sandbox.violation", "process.completed")]
    equal(order, sorted(order), mine)
    with open(os.path.join(v.s.data, "files", "a.txt")) as f:
        equal(f.read(), "written\n")
    now = v.read()
    summary = now["permission_sandbox_summary"]
    equal([x["target"] for x in summary["sandbox"]["violations"]], ["/outside"])
    process = now["execution_environment"]["ended_processes"][0]
    equal((process["status"], process["exit_code"]), ("completed", 0))
    channel = now["channel_summary"]["channels"][0]
    equal((channel["channel_id"], channel["peer_id"]), (v.channel, PEER["peer_id"]))
    equal(v.payload("channel.permission_forwarded")["to_channel_id"], v.channel)
    equal(v.payload("channel.permission_returned")["decided_side"], "local")


def routing_and_limits(v):
    equal(v.payload("routing.fallback.applied")["to"], {"provider": "b", "model": "hello"})
    equal(v.payload("rate_limit.hit")["http_status"], 429)
    shown = v.read()["active_thread"]["routing_limits"]
    equal((shown["decision"]["selected"], shown["run_id"]), ({"provider": "b", "model": "hello"}, v.routed["run_id"]))
    equal(shown["cost"]["cumulative"], v.payload("cost.recorded")["cumulative"])
    check(shown["rate_limit"]["hits"] > 0 and shown["cost"]["cumulative"]["run"] > 0, shown)


def reconstruction(v):
    """Tasks, jobs, children, outputs and the session are what they were before the kill."""
    now = v.read()
    for key in ("tasks", "active_thread", "subagent_job_summary", "evidence_summary", "permission_sandbox_summary",
                "execution_environment"):
        equal(now[key], v.before[key], key)
    check("tasks" in now and v.task in json.dumps(now["tasks"]), now.get("tasks"))
    equal(command(v.s, "get_job", job_id=v.job)["result"]["job"]["counts"]["completed"], 2)
    children = command(v.s, "list_subagents", session_id=v.session)["result"]["subagents"]
    equal([c["answer"] for c in children if c["subagent_id"] == v.child["subagent_id"]], ["dig"])
    ref = next(e for e in v.of("tool.result") if e["run_id"] == v.run["run_id"])["refs"]["output_ref"]
    output = next(o for o in now["active_thread"]["outputs"] if o["output_ref"] == ref)
    blob = v.s.http.get(f"/api/runs/{v.run['run_id']}/blobs/{ref.removeprefix('blob://')}")
    equal((blob.status, len(blob.body)), (200, output["bytes"]))


@test("the_ten_concerns_leave_their_facts_and_read_models", "FACT-02")
def ten():
    concerns = [identity, events, control_plane, snapshots, orchestration, people_and_queue, evidence, governance,
                routing_and_limits, reconstruction]
    equal(len(concerns), 10)
    with Provider() as p, Server(env=settings(p), process_tools="workspace_write", model_retry_seconds="1ms") as s:
        a = s.http.send("PUT", "/api/agents/a", {
            "version": "1.0", "kind": "agent", "id": "a", "runtime": {"entry": "llm.chat"},
            "policy": {"provider": {"default": {"provider": "scripted", "model": "scripted-tools"}},
                       "tools": {"allow": ["process:*"]}}})
        check(a.status in (200, 201), a.body)
        life = Life(s)
        for concern in concerns:
            concern(life)


if __name__ == "__main__":
    main()
