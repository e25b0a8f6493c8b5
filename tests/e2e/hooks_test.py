#!/usr/bin/env python3
"""Hooks that agents which are programs tell of, through the real server."""
import json
import re

from lib import check, equal, main, test
from lib.backends import TALK, Shop, of, one, recording

HOOK = ('line {"type":"system","subtype":"hook_%s","hook_id":"%s","hook_name":"%s:Bash","hook_event":"%s",'
        '"stdout":"secret","exit_code":%d,"outcome":"%s"}')


def with_hooks(s):
    """The recorded dialogue of Codex, with a hook that its server tells of."""
    told = {"id": "h-1", "eventName": "preToolUse", "status": "running", "durationMs": None}
    hooks = [{"method": "hook/started", "params": {"threadId": None, "run": told}},
             {"method": "hook/completed", "params": {"threadId": None, "run": {
                 **told, "status": "blocked", "durationMs": 1500}}}]
    with open(recording("codex/app_server_approval_accept.dialogue.jsonl")) as f:
        lines = f.readlines()
    at = next(i for i, l in enumerate(lines) if '"turn/started"' in l) + 1
    lines[at:at] = [json.dumps({"dir": "out", "msg": h}, separators=(",", ":")) + "\n" for h in hooks]
    with open(s.file("hooks.jsonl"), "w") as f:
        f.writelines(lines)
    return ["dialogue " + s.file("hooks.jsonl")]


LONG = "x" * 128  # an id that is longer than those that are followed


@test("hooks_of_an_agent_are_facts_with_their_durations", "EVT-076 EVT-077 EVT-078 PERF-11")
def hooks():
    """The user's hooks, as either CLI tells of them; what they print stays there."""
    script = TALK + [HOOK % ("started", "a", "PreToolUse", "PreToolUse", 0, ""),
                     HOOK % ("response", "a", "PreToolUse", "PreToolUse", 0, "success"),
                     HOOK % ("started", "b", "Stop", "Stop", 0, ""),
                     HOOK % ("response", "b", "Stop", "Stop", 1, "error"),
                     HOOK % ("started", "c", "PostToolUse", "PostToolUse", 0, ""),
                     HOOK % ("response", "c", "PostToolUse", "PostToolUse", 2, "error"),
                     HOOK % ("started", "d", "PreCompact", "PreCompact", 0, ""),
                     HOOK % ("response", "d", "PreCompact", "PreCompact", 0, "success"),
                     HOOK % ("started", LONG, "Stop", "Stop", 0, ""),
                     HOOK % ("response", LONG, "Stop", "Stop", 0, "success"), "result"]
    with Shop({"claude": {"script": script, "report_hooks": True}}) as s:
        log = s.log_of(s.create("claude", "hi"))
        equal([(e["payload"]["hook_id"], e["payload"]["hook_point"], e["payload"]["risk"])
               for e in of(log, "hook.started")],
              [("a", "pre_tool_use", "high"), ("b", "stop", "high"), ("c", "post_tool_use", "read_only")])
        equal([(e["payload"]["hook_id"], e["payload"]["outcome"]) for e in of(log, "hook.completed")],
              [("a", "continue"), ("c", "block")])
        failed = one(log, "hook.failed")["payload"]
        equal((failed["hook_id"], failed["failure_behavior"]), ("b", "fail_open"))
        check("secret" not in json.dumps(log), "what a hook printed is in the log")
        s.define("codex-app", entry="codex", script=with_hooks(s))
        s.restart()
        run_id = s.create("codex-app", "hi")
        s.respond(s.asked(run_id)["actions"][0]["action_id"])
        log = s.log_of(run_id)
        equal(one(log, "hook.started")["payload"]["handler_ref"], "codex")
        p = one(log, "hook.completed")["payload"]
        equal((p["outcome"], p["duration_ms"]), ("block", 1500))
        text = s.http.get("/metrics").body.decode()
        equal(re.findall(r"uar_hook_seconds_(?:count|sum)\S* (\S+)", text), ["1.500000", "1"])


main()
