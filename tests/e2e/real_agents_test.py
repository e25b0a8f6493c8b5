#!/usr/bin/env python3
"""The real Claude Code, Codex and an ACP agent through the real server, offline."""
# time limit: 300 s, nine times real agents take seconds to start and may have to be installed
from lib import check, equal, main, test, text_of
from lib.backends import Shop, of, one
from lib.real_agents import Real

ASKS = {"claude_code": ("write", {}), "codex": ("tool", {"approval_policy": "untrusted"}),
        "acp": ("write", {})}


class Agents:
    """A server with every real agent in the scenarios that the tests want."""

    def __init__(self, scenarios, **more):
        self.real = Real()
        self.shop = Shop()
        for agent in ("claude_code", "codex", "acp"):
            for scenario in scenarios:
                extra = more.get(agent, {})
                self.shop.define(f"{agent}-{scenario}",
                                 **self.real.definition(self.shop, agent, scenario, **extra))
        self.shop.restart()

    def __enter__(self):
        return self.shop

    def __exit__(self, *why):
        try:
            self.shop.__exit__(*why)
        finally:
            self.real.__exit__()


def hello(agent):
    with Agents(["hello"]) as s:
        run_id = s.create(f"{agent}-hello", "hi", conversation_id="talk")
        r = s.finish(run_id)
        equal(r["status"], "succeeded", r)
        equal(text_of(s.events(run_id)), "hello")
        first = r["backend_session"]["id"]
        r = s.finish(s.create(f"{agent}-hello", "again", conversation_id="talk"))
        equal((r["status"], r["backend_session"]["id"]), ("succeeded", first), "the same session")
        s.log_of(run_id)
        equal(s.survivors(), [])


def approval(agent):
    scenario, extra = ASKS[agent]
    with Agents([scenario], **{agent: extra}) as s:
        for decision in ("allow", "deny"):
            run_id = s.create(f"{agent}-{scenario}", "hi")
            action = s.asked(run_id)["actions"][0]
            equal(s.respond(action["action_id"], decision).status, 200)
            log = s.log_of(run_id)
            equal(s.record(run_id)["status"], "succeeded", s.record(run_id))
            equal(one(log, "action.resolved")["payload"]["result"], decision)
            equal([len(of(log, "tool.result")), len(of(log, "tool.failed"))],
                  [1, 0] if decision == "allow" else [0, 1])
        equal(s.survivors(), [])


def cancelled(agent):
    with Agents(["sleeptool"], **{"codex": {"sandbox_mode": "danger-full-access"}}) as s:
        run_id = s.create(f"{agent}-sleeptool", "hi")
        with s.stream(run_id) as stream:
            seen = stream.until(lambda e: e.data["type"] == "ToolStart" or
                                e.data["data"].get("action_id"))
        if seen[-1].data["type"] != "ToolStart":
            s.respond(seen[-1].data["data"]["action_id"])
        s.cancel(run_id)
        equal(s.finish(run_id)["status"], "canceled")
        equal(s.survivors(), [])
        check(s.log_of(run_id)[-1]["type"] == "turn.failed")


for name, fn in (("hello_and_resume", hello), ("approval", approval), ("cancel_in_a_tool", cancelled)):
    for agent in ("claude_code", "codex", "acp"):
        test(f"real_{agent}_{name}", "")(lambda fn=fn, agent=agent: fn(agent))

main()
