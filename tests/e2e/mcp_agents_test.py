#!/usr/bin/env python3
"""The real Claude Code and Codex with UAR as their MCP server, offline: they call an agent of UAR."""
# time limit: 300 s, real agents take seconds to start and may have to be installed
import json
import os
import subprocess

from lib import SAFETY, UAR, Server, check, equal, main, test
from lib.real_agents import Real

SAID = "said by another agent"


class Place:
    """Where Real.definition keeps the home of an agent."""

    def __init__(self, folder):
        self.folder = folder

    def file(self, name):
        return os.path.join(self.folder, name)


def called(s, *argv, **env):
    """Runs the agent; the run that it has started at UAR."""
    done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True, timeout=SAFETY,
                          cwd=s.data, env={**os.environ, **env}, check=False)
    runs = s.http.get("/api/runs").json["runs"]
    equal([r["agent_id"] for r in runs], ["echo"], done.stdout[-3000:])
    equal(runs[0]["status"], "succeeded")
    check(SAID in json.dumps([e.data for e in s.session_events(runs[0]["run_id"])]), "what was said")
    return done.stdout


@test("real_claude_calls_an_agent_as_a_tool", "MCP-08")
def claude():
    with Real() as real, Server() as s:
        made = real.definition(Place(s.data), "claude_code", "uar")
        config = os.path.join(s.data, "claude-mcp.json")
        with open(config, "w", encoding="utf-8") as f:
            json.dump({"mcpServers": {"uar": {"command": UAR, "args": ["mcp", "serve", "--data", s.data]}}}, f)
        called(s, made["program"], "-p", "hi", "--mcp-config", config, "--strict-mcp-config", "--allowedTools", "mcp__uar__agent_echo",
               "--output-format", "json", **made["env"])


@test("real_claude_calls_over_http", "MCP-08")
def claude_http():
    with Real() as real, Server() as s:
        made = real.definition(Place(s.data), "claude_code", "uar")
        config = os.path.join(s.data, "claude-mcp.json")
        with open(config, "w", encoding="utf-8") as f:
            json.dump({"mcpServers": {"uar": {"type": "http", "url": s.url + "/mcp", "headers": {"Authorization": "Bearer " + s.token}}}}, f)
        called(s, made["program"], "-p", "hi", "--mcp-config", config, "--strict-mcp-config", "--allowedTools", "mcp__uar__agent_echo",
               "--output-format", "json", **made["env"])


@test("real_codex_calls_an_agent_as_a_tool", "MCP-08")
def codex():
    with Real() as real, Server() as s:
        made = real.definition(Place(s.data), "codex", "uar")
        with open(os.path.join(made["home"], "config.toml"), "a", encoding="utf-8") as f:
            f.write(f'[mcp_servers.uar]\ncommand = "{UAR}"\nargs = ["mcp", "serve", "--data", "{s.data}"]\ndefault_tools_approval_mode = "approve"\n')
        called(s, made["program"], "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "hi",
               CODEX_HOME=made["home"], **made["env"])


if __name__ == "__main__":
    main()
