"""Agents that are programs: definitions around the fake CLI, which replays recordings."""
import json
import os

from lib.agents import put_file
from lib.check import check, equal, wait_until
from lib.server import BUILD, ROOT, Server

RECORDED = os.path.join(ROOT, "tests", "fixtures", "backend")
FAKE = os.path.join(BUILD, "fake-cli")
# What the fake CLI says as Claude Code.
INIT = 'line {"type":"system","subtype":"init","session_id":"%s"}'
SAY = 'line {"type":"assistant","message":{"id":"m","content":[{"type":"text","text":"%s"}]}}'
TOOL = ('line {"type":"assistant","message":{"id":"t","content":[{"type":"tool_use","id":"call-1",'
        '"name":"Bash","input":{"command":"sleep"}}]}}')
ASK = ('line {"type":"control_request","request_id":"r%d","request":{"subtype":"can_use_tool",'
       '"tool_name":"Bash","tool_use_id":"call-%d","input":{"command":"touch %s"}}}')
TALK = ["expect initialize", 'line {"type":"control_response","response":{"subtype":"success",'
        '"request_id":"init1","response":{}}}', "expect user", INIT % "s-1"]


def recording(name):
    return os.path.join(RECORDED, name)


class Shop(Server):
    """A server with agents that the test defines."""

    def __init__(self, agents=None, files=None, env=None, **settings):
        super().__init__(env=env, start=False, **settings)
        self.work = os.path.join(self.root, "work")
        self.agents = os.path.join(self.data, "agents")
        os.makedirs(self.work)
        os.makedirs(self.agents)
        for name, more in (agents or {}).items():
            self.define(name, **more)
        for name, text in (files or {}).items():
            put_file(self.agents, name, text)
        self.start()

    def define(self, agent_id, script=(), entry="claude_code", policy=None, metadata=None,
               runtime=None, **backend):
        """A definition whose program is the fake CLI with this script."""
        env = {"FAKE_DO": "\n".join(script), "SHOP_OF_TEST": self.root, **backend.pop("env", {})}
        d = {"version": "1.0", "kind": "agent", "id": agent_id,
             "metadata": metadata or {"title": agent_id},
             "runtime": {"entry": "backend." + entry, **(runtime or {}),
                         "backend": {"program": FAKE, "working_dir": self.work, "env": env,
                                     **backend}}}
        if policy:
            d["policy"] = {"approvals": policy}
        put_file(self.agents, agent_id.replace(":", "_") + ".json", json.dumps(d))

    def file(self, name):
        return os.path.join(self.root, name)

    def asked(self, run_id):
        """The record once a question waits for its answer."""
        r = wait_until(lambda: (lambda r: r if r.get("actions") else None)(self.record(run_id)),
                       "a question")
        equal((r["status"], r["engine_status"]), ("running", "waiting_permission"))
        return r

    def respond(self, action_id, decision="allow", **more):
        return self.http.post("/api/control/respond_action",
                              {"action_id": action_id, "decision": decision, **more})

    def log_of(self, run_id):
        """The whole session's log, checked against the rules of every stream."""
        from lib.events import check_session
        events = self.session_events(run_id)
        check_session(events)
        return [e.data for e in events]

    def survivors(self):
        """Processes that the fake CLI left behind, whoever their parent is."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/environ", "rb") as f:
                    mine = ("SHOP_OF_TEST=" + self.root).encode() in f.read().split(b"\0")
            except OSError:
                continue
            if mine:
                found.append(int(pid))
        return found


def of(events, kind):
    return [e for e in events if e["type"] == kind]


def one(events, kind):
    found = of(events, kind)
    equal(len(found), 1, [e["type"] for e in events])
    return found[0]
