#!/usr/bin/env python3
"""libuar: a runtime inside another program, which sees the public header alone.

build/embed/driver gives the library what its standard input says; build/embed/tasks is the example."""
import json
import os
import shutil
import subprocess
import sys
import tempfile

from lib import check, equal, main, test, wait_until
from lib.check import SAFETY, readable
from lib.mcp_host import MOCK
from lib.plugins import LAB
from lib.server import BUILD, FAULTS, Server, clean_environment, run_uar

DRIVER = os.path.join(BUILD, "embed", "driver")
EXAMPLE = os.path.join(BUILD, "embed", "tasks")


class Host:
    """A program with a runtime inside."""

    def __init__(self, data=None, open_fails=False, **settings):
        self.root = tempfile.mkdtemp(prefix="uar-e2e-")
        self.data = data or os.path.join(self.root, "data")
        settings = {"data": self.data, **settings}
        with open(os.path.join(self.root, "log"), "w") as log:
            self.proc = subprocess.Popen([DRIVER, *(f"{k}={v}" for k, v in settings.items())], text=True,
                                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
                                         env=clean_environment(self.root))
        self.bytes = b""
        self.status, self.said = self.answer()
        check(open_fails == (self.status != 0), self.said)

    def answer(self):
        while b"\n" not in self.bytes:  # several lines may have come at once
            check(readable(self.proc.stdout), "the program said nothing")
            more = os.read(self.proc.stdout.fileno(), 65536)
            check(more, "the program has ended")
            self.bytes += more
        line, self.bytes = self.bytes.split(b"\n", 1)
        status, text = line.decode().split(" ", 1)
        return int(status), text

    def tell(self, line):
        self.proc.stdin.write(line + "\n")
        self.proc.stdin.flush()

    def control(self, command, **members):
        self.tell(f"control {command} {json.dumps(members)}")
        status, text = self.answer()
        return status, json.loads(text)

    def events(self, session_id, after=0, wait_ms=int(SAFETY * 1000)):
        self.tell(f"events {session_id} {after} {wait_ms}")
        status, text = self.answer()
        return status, json.loads(text)

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        self.proc.stdin.close()
        status = self.proc.wait(SAFETY)
        with open(os.path.join(self.root, "log")) as f:
            log = f.read()
        shutil.rmtree(self.root, ignore_errors=True)
        if not kind:
            equal(status, self.status, log)
            check(not FAULTS.search(log), log)


@test("built_in_skills_are_there_inside_another_program", "SKILL-20")
def skills():
    root = tempfile.mkdtemp(prefix="uar-e2e-")
    data = os.path.join(root, "data")
    os.makedirs(os.path.join(data, "agents"))
    with open(os.path.join(data, "agents", "a.json"), "w") as f:
        json.dump({"version": "1.0", "kind": "agent", "id": "a", "runtime": {"entry": "llm.chat"},
                   "policy": {"provider": {"default": {"provider": "scripted", "model": "scripted-tools"}},
                              "tools": {"allow": ["internal:*"]}, "skills": {"max_active": 4}}}, f)
    chosen = {}
    for where in ("inside", "served"):
        for message, skill in (("search docs", "rag_citations"), ("extract relations of entities", "relation_extraction")):
            if where == "inside":
                with Host(data=data) as h:
                    status, a = h.control("submit_turn", agent_id="a", message=message)
                    equal(status, 200, a)
                    after, events = 0, []
                    while not any(e["type"] == "turn.completed" for e in events):
                        status, page = h.events(a["result"]["session_id"], after)
                        equal(status, 200, page)
                        check(page["events"], "nothing came", events)
                        events += page["events"]
                        after = page["last"]
            else:
                with Server(data=data) as s:
                    run_id = s.create("a", message)
                    events = [e.data for e in s.session_events(run_id)]
            facts = [e["payload"]["selected_skills"] for e in events if e["type"] == "context.resolved"][0]
            chosen[where, message] = [(k["skill_id"], k["revision"], k["origin"]) for k in facts]
            check(skill in [k["skill_id"] for k in facts], facts)
    for message in ("search docs", "extract relations of entities"):
        equal(chosen["inside", message], chosen["served", message])
    shutil.rmtree(root, ignore_errors=True)


@test("a_command_is_the_same_over_http_and_in_process", "CTL-02")
def same():
    with Host() as h, Server() as s:
        for command, members, want in [
                ("create_task", {"task_id": "t1", "objective": "one"}, 200),
                ("update_task", {"task_id": "t1", "title": "first"}, 200),
                ("get_task", {"task_id": "t1"}, 200),
                ("list_tasks", {"status": "accepted"}, 200),
                ("pause_task", {"task_id": "t1"}, 200),
                ("complete_task", {"task_id": "t1"}, None),
                ("get_task", {"task_id": "none"}, 404),
                ("create_task", {"objective": 7}, 400),
                ("create_task", {"objective": "x", "other": 1}, 400),
                ("create_task", {}, 400),
                ("get_session", {"session_id": "none"}, 404),
                ("spawn_subagent", {}, None),
                ("respond_action", {"action_id": "none", "decision": "allow"}, 404),
                ("no_such_command", {}, 404)]:
            status, inside = h.control(command, **members)
            a = s.http.post("/api/control/" + command, members)
            equal(status, a.status, (command, inside, a.json))
            check(want in (None, status), command, inside)
            equal(sorted(inside), sorted(a.json), command)
            if status == 200:
                equal(sorted(inside["result"]), sorted(a.json["result"]), command)
            else:
                equal(inside["code"], a.json["code"], command)


def the_end(h, session):
    """The number of the last event once the thread is idle after its turn; None before."""
    page = h.events(session, 0, 0)[1]
    last = page["events"][-1]
    return page["last"] if (last["type"], last["payload"].get("status")) == ("thread.updated", "idle") else None


@test("a_turn_runs_inside_and_its_events_come_in_order", "CTL-02 CTL-03")
def turn():
    with Host() as h:
        status, a = h.control("submit_turn", agent_id="echo", message="hello inside")
        equal(status, 200, a)
        session, last, events = a["result"]["session_id"], 0, []
        while not any(e["type"] == "turn.completed" for e in events):
            status, page = h.events(session, last)
            equal(status, 200, page)
            check(page["events"], "nothing came", events)
            events += page["events"]
            last = page["last"]
        equal([e["sequence"] for e in events], list(range(1, last + 1)))
        check("hello inside" in json.dumps(events), events)
        end = wait_until(lambda: the_end(h, session), "the session is at rest")
        equal(h.events(session, end, 0), (200, {"events": [], "last": end}))
        equal(h.events(session, end, 50), (200, {"events": [], "last": end}))
        status, problem = h.events("none", 0, 0)
        equal((status, problem["code"]), (404, "NOT_FOUND"))


@test("an_mcp_server_of_the_settings_is_started_by_uar", "CTL-02")
def mcp_server():
    """And not by the program that the runtime is in."""
    servers = {"mock": {"command": sys.executable, "args": [MOCK, os.devnull]}}
    with Host(mcp_servers=json.dumps(servers)) as h:
        wait_until(lambda: "mcp:mock/add" in json.dumps(h.control("get_tool_inventory")), "its tools")


@test("many_threads_give_one_command_once", "CTL-45")
def crowd():
    with Host() as h:
        h.tell("crowd 12 create_task " + json.dumps({"objective": "once", "idempotency_key": "k"}))
        answers = [h.answer() for _ in range(12)]
        equal({status for status, _ in answers}, {200}, answers)
        equal(len({json.loads(text)["result"]["task"]["task_id"] for _, text in answers}), 1)
        equal(len(h.control("list_tasks")[1]["result"]["tasks"]), 1)


@test("what_was_answered_inside_survives_a_kill", "CTL-02")
def survives():
    with tempfile.TemporaryDirectory(prefix="uar-e2e-") as home:
        data = os.path.join(home, "data")
        h = Host(data)
        equal(h.control("create_task", task_id="kept", objective="stay")[0], 200)
        with Host(data, open_fails=True) as other:
            check("in use" in other.said and "UNAVAILABLE" in other.said, other.said)
        h.proc.kill()
        h.proc.wait(SAFETY)
        shutil.rmtree(h.root, ignore_errors=True)
        with Host(data) as h:
            equal(h.control("get_task", task_id="kept")[1]["result"]["task"]["objective"], "stay")
        done = run_uar("check", "--log", "--data", data)
        equal(done.returncode, 0, done.stderr)


@test("a_wrong_setting_is_named", "CTL-02")
def wrong():
    with Host(open_fails=True, no_such="x") as h:
        check("no_such" in h.said, h.said)
    with Host(open_fails=True, max_body_bytes="many") as h:
        check("max_body_bytes" in h.said or "max-body-bytes" in h.said, h.said)


@test("a_port_is_opened_when_it_is_asked_for", "CTL-02")
def port():
    with tempfile.TemporaryDirectory(prefix="uar-e2e-") as home:
        path = os.path.join(home, "socket")
        token = "a-token-of-a-test-that-is-long-enough"
        with Host(os.path.join(home, "data")) as h:
            check(not os.path.exists(path))
        with Host(os.path.join(home, "data"), listen="unix:" + path, token=token, plugins_dir=LAB) as h:
            check(os.path.exists(path), "a socket")
            equal(h.control("create_task", task_id="seen", objective="both")[0], 200)
            done = run_uar("ctl", "get_task", '{"task_id":"seen"}', "--url", "unix:" + path, env={"UAR_TOKEN": token})
            equal(done.returncode, 0, done.stderr)
            equal(json.loads(done.stdout)["result"]["task"]["objective"], "both")
            done = run_uar("trigger", "lab", "echo", "--args", '{"say":"from a process"}', "--wait",
                           "--url", "unix:" + path, env={"UAR_TOKEN": token})
            equal(done.returncode, 0, done.stderr)
            check("from a process" in done.stdout, done.stdout)


@test("the_example_runs", "CTL-02")
def example():
    with tempfile.TemporaryDirectory(prefix="uar-e2e-") as home:
        done = subprocess.run([EXAMPLE, os.path.join(home, "state"), "good morning"], timeout=SAFETY, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=clean_environment(home))
        equal(done.returncode, 0, done.stdout + done.stderr)
        check("turn.completed" in done.stdout and "good morning" in done.stdout, done.stdout)
        if "san" in os.path.basename(BUILD):
            return  # a sanitizer has symbols of its own
        exported = subprocess.run(["nm", "-D", "--defined-only", os.path.join(BUILD, "libuar.so")], text=True,
                                  stdout=subprocess.PIPE, check=True).stdout
        names = {line.split()[-1].split("@")[0] for line in exported.splitlines()} - {"UAR_1"}
        equal(names, {"uar_abi", "uar_open", "uar_control", "uar_events", "uar_release", "uar_close"})


main()
