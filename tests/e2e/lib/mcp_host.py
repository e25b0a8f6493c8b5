"""A server that uses MCP servers, with an agent that may call all of their tools."""
import http.client
import json
import os
import signal
import sys
import tempfile
from urllib.parse import urlparse

from lib.check import check, wait_until
from lib.server import Server

MOCK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "mcp_mock.py")
AGENT = {"version": "1.0", "kind": "agent", "id": "user", "runtime": {"entry": "llm.chat"},
         "policy": {"provider": {"default": {"provider": "scripted", "model": "scripted-tools"}},
                    "tools": {"allow": ["mcp:*", "internal:*", "http:*"]}}}

LOOPBACK = {"outbound_allow": "127.0.0.1"}


class Host(Server):
    """`silent`: names of servers that never say whether they are connected."""

    def __init__(self, servers, agent=None, silent=(), **more):
        super().__init__(start=False, **more)
        self.silent = set(silent)
        os.makedirs(os.path.join(self.data, "agents"))
        self.write("agents/user.json", agent or AGENT)
        self.servers(servers)
        self.start()

    def write(self, name, value):
        with open(os.path.join(self.data, name), "w", encoding="utf-8") as f:
            json.dump(value, f)

    def servers(self, servers):
        self.env = {**self.env, "UAR_MCP_SERVERS": json.dumps(servers)}

    def start(self):
        """Waits for the servers of the settings longer than the program itself does."""
        super().start()
        for name in set(json.loads(self.env["UAR_MCP_SERVERS"])) - self.silent:
            wait_until(lambda name=name: state(self, name).get("state") != "connecting", name + " is connected or refused")
        return self

    def tools(self):
        return {t["tool_id"]: t for t in self.http.get("/api/tools").json["tools"] if t["transport"] == "mcp"}

    def run(self, *lines):
        run_id = self.create("user", "\n".join(lines))
        return run_id

    def finished(self, *lines):
        """The events of a run in which every question is allowed."""
        run_id = self.run(*lines)
        while self.record(run_id)["status"] not in ("succeeded", "failed", "canceled"):
            for action in self.record(run_id).get("actions") or []:
                self.allow(action)
        return [e.data for e in self.session_events(run_id)]

    def allow(self, action):
        answer = self.http.post("/api/control/respond_action", {"action_id": action["action_id"], "decision": "allow"})
        check(answer.status in (200, 409), answer.body)

    def end_children(self):
        """Kills the servers that it has started."""
        for entry in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{entry}/stat", encoding="utf-8", errors="replace") as f:
                    parent = int(f.read().rpartition(")")[2].split()[1])
                if parent == self.proc.pid:
                    os.kill(int(entry), signal.SIGKILL)
            except (OSError, IndexError):
                continue

    def asks(self, run_id):
        return wait_until(lambda: self.record(run_id).get("actions"), "a question")[0]


def pipes(log, *more, **settings):
    return {"command": sys.executable, "args": [MOCK, log, *more], **settings}


def of(events, kind):
    return [e["payload"] for e in events if e["type"] == kind]


def log_file(name):
    return os.path.join(tempfile.mkdtemp(prefix="uar-mcp-"), name)


def state(s, name):
    return s.http.get("/api/mcp/servers/" + name).json


def put(s, path, body):
    return s.http.send("PUT", path, body)


def delete(s, path):
    return s.http.send("DELETE", path)


def connected(s, name):
    return wait_until(lambda: state(s, name).get("state") == "connected" and state(s, name), "it is connected")


def browse(url):
    """Where a browser would be sent; it is not followed."""
    u = urlparse(url)
    c = http.client.HTTPConnection(u.hostname, u.port)
    c.request("GET", (u.path or "/") + "?" + u.query)
    answer = c.getresponse()
    body = answer.read().decode()
    c.close()
    return answer.status, answer.getheader("Location"), body
