#!/usr/bin/env python3
"""UAR and what others have made for MCP: servers of the official SDKs, ready servers, the inspector."""
# time limit: 300 s, programs of Node.js take seconds to start
import json
import os
import subprocess
import tempfile

from lib import ROOT, SAFETY, Server, check, equal, main, test, wait_until
from lib.mcp_host import Host, connected, of
from lib.npm import modules, node

PEER = os.path.join(ROOT, "tests", "e2e", "lib", "mcp_peer.mjs")


class Listening:
    """A program that prints its address first; it is ended behind the block."""

    def __init__(self, *argv, env=None):
        self.argv, self.env = argv, env

    def __enter__(self):
        self.process = subprocess.Popen(self.argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                        env={**os.environ, **(self.env or {})})
        for line in self.process.stdout:
            if "http://" in line:
                self.url = line[line.index("http://"):].strip()
                break
            if "listening on port" in line.lower():
                self.url = f"http://127.0.0.1:{line.split()[-1]}/mcp"
                break
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


@test("servers_of_both_official_kits_are_used_over_pipes_and_http", "MCP-01 MCP-03")
def kits():
    here, program = modules("mcp"), node()
    with Listening(program, PEER, here, "v1", "http") as one, Listening(program, PEER, here, "v2", "http") as two:
        servers = {"web1": {"url": one.url, "ask": False}, "web2": {"url": two.url, "ask": False},
                   "new": {"url": two.url, "ask": False, "era": "2026-07-28"}}
        servers |= {"pipe" + v: {"command": program, "args": [PEER, here, "v" + v, "stdio"], "ask": False} for v in "12"}
        with Host(servers) as s:
            revisions = {name: connected(s, name)["revision"] for name in servers}
            equal(revisions, {"web1": "2025-11-25", "web2": "2026-07-28", "new": "2026-07-28", "pipe1": "2025-11-25",
                              "pipe2": "2025-11-25"})
            for name in servers:
                events = s.finished(f'tool mcp__{name}_add {{"a":40,"b":2}}')
                equal([r["preview"] for r in of(events, "tool.result")], [{"sum": 42}], name)


@test("servers_of_both_kits_ask_the_model_of_the_run_when_a_person_allows_it", "")
def sampling():
    here, program = modules("mcp"), node()
    with Listening(program, PEER, here, "v2", "http") as two:
        servers = {"pipe" + v: {"command": program, "args": [PEER, here, "v" + v, "stdio"], "ask": False} for v in "12"}
        servers["new"] = {"url": two.url, "ask": False, "era": "2026-07-28"}
        with Host(servers) as s:
            for name in servers:
                connected(s, name)
                run_id = s.run(f"tool mcp__{name}_think")
                action = s.asks(run_id)
                equal(action["kind"], "sampling", action)
                s.allow(action)
                wait_until(lambda: s.record(run_id)["status"] == "succeeded", "the run ends")
                events = [e.data for e in s.session_events(run_id)]
                check("no tool for that" in json.dumps(of(events, "tool.result")), (name, of(events, "tool.failed")))
                equal([m["role"] for m in of(events, "model.requested")], ["execute", "sample", "execute"])


@test("a_server_of_a_kit_that_is_killed_in_a_call_is_used_again", "MCP-09")
def restarted():
    with Host({"pipe": {"command": node(), "args": [PEER, modules("mcp"), "v2", "stdio"], "ask": False}}) as s:
        connected(s, "pipe")
        s.end_children()
        wait_until(lambda: "mcp.not_connected" in s.log(), "its end is noticed")
        connected(s, "pipe")
        equal(len(of(s.finished('tool mcp__pipe_add {"a":1,"b":2}'), "tool.result")), 1)


@test("ready_servers_of_others_are_used", "MCP-03")
def ready():
    here, program = os.path.join(modules("mcp-servers"), "@modelcontextprotocol"), node()
    everything = os.path.join(here, "server-everything", "dist", "index.js")
    files = os.path.join(here, "server-filesystem", "dist", "index.js")
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "a.txt"), "w", encoding="utf-8") as f:
            f.write("said by a file")
        servers = {"all": {"command": program, "args": [everything, "stdio"], "ask": False},
                   "files": {"command": program, "args": [files, folder], "read_only": ["read_*", "list_*"], "roots": [folder]}}
        with Host(servers) as s:
            connected(s, "all"), connected(s, "files")
            check(len(s.tools()) > 15, sorted(s.tools()))
            events = s.finished('tool mcp__all_echo {"message":"hello"}', f'tool mcp__files_read_text_file {{"path":"{folder}/a.txt"}}',
                                "then", f'tool mcp__files_write_file {{"path":"{folder}/b.txt","content":"new"}}')
            text = json.dumps(of(events, "tool.result"))
            check("hello" in text and "said by a file" in text, text, of(events, "tool.failed"))
            events += s.finished("tool mcp__all_uar_list_resources", "tool mcp__all_uar_list_prompts", "then",
                                 'tool mcp__all_uar_get_prompt {"name":"simple-prompt"}')
            check("simple-prompt" in json.dumps(events) and "demo://resource" in json.dumps(events), of(events, "tool.failed"))
            equal(len(of(events, "action.required")), 1, "writing is asked for, reading is not")
            with open(os.path.join(folder, "b.txt"), encoding="utf-8") as f:
                equal(f.read(), "new")


def inspect(s, *words):
    program = os.path.join(modules("mcp-inspector"), "@modelcontextprotocol", "inspector", "clients", "launcher", "build", "index.js")
    with tempfile.TemporaryDirectory() as home:
        done = subprocess.run([node(), program, "--cli", s.url + "/mcp", "--transport", "http", "--header",
                               "Authorization: Bearer " + s.token, "--format", "json", *words],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=SAFETY, check=False,
                              env={**os.environ, "HOME": home})
    check(done.returncode == 0, done.returncode, done.stdout, done.stderr)
    return json.loads(done.stdout)


@test("the_inspector_lists_and_calls_in_both_eras", "MCP-08")
def inspector():
    modules("mcp-inspector")
    with Server() as s:
        for era in ("legacy", "modern"):
            listed = json.dumps(inspect(s, "--protocol-era", era, "--method", "tools/list"))
            check("agent_echo" in listed, listed)
            said = json.dumps(inspect(s, "--protocol-era", era, "--method", "tools/call", "--tool-name", "agent_echo",
                                      "--tool-arg", "message=hello"))
            check("hello" in said, said)


if __name__ == "__main__":
    main()
