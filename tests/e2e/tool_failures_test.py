#!/usr/bin/env python3
"""Each category of a tool's failure, provoked in a run and told to the model."""
import json
import os
import sys

from lib import check, equal, main, test, text_of, wait_until
from lib.mcp_host import AGENT, Host, log_file, of, pipes
from lib.mcp_mock import asked
from lib.services import Service

HOSTILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib", "mcp_hostile.py")
# A hook that refuses one of the tools.
GUARD = ("import json, sys; t = json.load(sys.stdin)['tool']['name']; "
         "print(json.dumps({'outcome': 'deny', 'reason': 'not on a Friday'} if t == 'time.now' else {}))")
GUARDED = {"UAR_HOOKS": json.dumps({"guard": {"points": ["pre_tool_use"], "tools": ["internal:time.now"],
                                             "command": ["python3", "-I", "-S", "-c", GUARD]}})}
SCHEMA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "src", "event", "schemas", "tool.failed.json")


def failures(url):
    """What the run calls, its category, the status of the call."""
    return [
        ("tool nope", "unknown_tool", "failed"),
        ("tool internal__fs_list {}", "not_surfaced", "denied"),
        ("tool time.now {}", "hook_blocked", "denied"),
        ("tool math.evaluate {broken", "schema_invalid", "failed"),
        ('tool math.evaluate {"expression":"1/0"}', "value_invalid", "failed"),
        ('tool math.evaluate {"expression":"2+2"}', "policy_denied", "denied"),
        ('tool mcp__pipe_add {"a":1,"b":2}', "rejected", "denied"),
        ("tool http__keyed", "setup_missing", "failed"),
        ("tool mcp__free_fails", "execution", "failed"),
        ('tool http.fetch {"url":"http://169.254.169.254/"}', "sandbox_violation", "failed"),
        ("tool mcp__free_die", "dependency", "failed"),
        ("tool http__huge", "result_too_large", "failed"),
        ("tool mcp__mute_wait", "timeout", "timed_out"),
        (f'tool http.fetch {{"url":"{url}/ok"}}', None, None),
    ]


def agent(url):
    return {**AGENT, "policy": {**AGENT["policy"], "tools": {"allow": ["mcp:*", "http:*", "internal:math.*", "internal:time.now", "internal:http.fetch"]}},
            "tools": {"http": [{"name": "keyed", "url": url + "/x", "headers": {"Authorization": "Bearer ${secret:NOT_THERE}"}},
                               {"name": "huge", "url": url + "/huge"}],
                      "guardrails": [{"tools": ["internal:math.*"], "deny_if": {"properties": {"expression": {"const": "2+2"}},
                                                                              "required": ["expression"]}}],
                      "mcp": [{"server": "pipe"}, {"server": "free"}, {"server": "mute"}]}}


@test("every_category_of_failure_is_recorded_and_told", "TOOL-15")
def categories():
    with Service() as web:
        log = log_file("a")
        servers = {"pipe": pipes(log), "free": pipes(log_file("b"), ask=False),
                   "mute": {"command": sys.executable, "args": [HOSTILE, "mute"], "ask": False, "timeout_seconds": 1}}
        with Host(servers, agent(web.url), outbound_allow="127.0.0.1", env=GUARDED) as s:
            table = failures(web.url)
            run_id = s.run("\nthen\n".join(line for line, _, _ in table))
            while s.record(run_id)["status"] not in ("succeeded", "failed"):
                for action in s.record(run_id).get("actions") or []:
                    decision = "deny" if "add" in action["prompt"] else "allow"
                    s.http.post("/api/control/respond_action", {"action_id": action["action_id"], "decision": decision})
            answer = text_of(s.events(run_id))
            events = [e.data for e in s.session_events(run_id)]
            failed = of(events, "tool.failed")
            equal([(f["failure_category"], f["status"]) for f in failed], [(c, status) for _, c, status in table if c])
            for f in failed:
                check(f["message"] and f["ok"] is False and f["error"]["failure_category"] == f["failure_category"], f)
            check(not [c for _, c, _ in table if c and c not in answer], answer)
            equal(len(of(events, "tool.result")), 1, "the run goes on after each of them")
            run_id = s.run("tool mcp__pipe_wait")
            s.allow(s.asks(run_id))
            wait_until(lambda: asked(log, "tools/call", "wait"), "it is called")
            s.cancel(run_id)
            s.finish(run_id)
            events = [e.data for e in s.session_events(run_id)]
            equal([(f["failure_category"], f["status"]) for f in of(events, "tool.failed")], [("cancelled", "cancelled")])
            shown = {c for _, c, _ in table if c} | {"cancelled"} | siblings(s, web)
            with open(SCHEMA, encoding="utf-8") as f:
                equal(shown, set(json.load(f)["properties"]["failure_category"]["enum"]))
            equal(len(shown), 15)


def siblings(s, web):
    """The calls of one answer belong together: one takes too long, one is at work, one has not begun."""
    linked = {**agent(web.url), "id": "linked"}
    linked["policy"] = {**linked["policy"], "tools": {"allow": ["http:*", "internal:*"], "max_concurrent": 3,
                                                      "on_failure": "cancel_siblings"}}
    linked["tools"] = {"http": [{"name": "slow", "url": web.url + "/gate"},
                                {"name": "late", "url": web.url + "/gate", "timeout_seconds": 0.5}]}
    a = s.http.send("PUT", "/api/agents/linked", linked)
    check(a.status in (200, 201), a.body)
    run_id = s.create("linked", "\n".join(("tool http__slow", "tool http__late",
                                           'tool fs.write {"path": "a.txt", "text": "x"}')))
    s.finish(run_id)
    events = [e.data for e in s.session_events(run_id)]
    names = {e["tool_call_id"]: e["payload"]["tool_name"] for e in events if e["type"] == "tool.started"}
    ends = {names[e["tool_call_id"]]: (e["payload"]["failure_category"], e["payload"]["status"])
            for e in events if e["type"] == "tool.failed"}
    equal(ends, {"slow": ("sibling_cancelled", "cancelled"), "late": ("timeout", "timed_out"),
                 "fs.write": ("sibling_cancelled", "cancelled")})
    equal((of(events, "action.required"), os.path.exists(os.path.join(s.data, "files", "a.txt"))), ([], False))
    return {"sibling_cancelled"}


if __name__ == "__main__":
    main()
