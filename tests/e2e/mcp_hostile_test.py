#!/usr/bin/env python3
"""A hostile MCP server harms nothing but its own tools; kills at any point repeat no call that may not be."""
import json
import os
import random
import sys
import threading
import time

from lib import check, equal, main, test, wait_until
from lib.mcp_host import AGENT, LOOPBACK, Host, connected, log_file, of, pipes, put, state
from lib.mcp_mock import HttpMock, asked

HOSTILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib", "mcp_hostile.py")
KILLS = int(os.environ.get("UAR_TEST_MCP_KILLS", "10"))
GOOD = 'tool mcp__good_add {"a":1,"b":2}'


def hostile(how, **more):
    return {"command": sys.executable, "args": [HOSTILE, how], "ask": False, **more}


def works(s):
    equal(len(of(s.finished(GOOD), "tool.result")), 1, "others are not harmed")


@test("floods_and_huge_lists_cost_a_server_its_tools_alone", "")
def floods():
    ways = ("flood", "endless_line", "huge_schema", "endless_pages", "not_json", "deep", "silent")
    servers = {"good": pipes(log_file("a"), ask=False), **{w: hostile(w) for w in ways}}
    with Host(servers, silent=["silent"]) as s:
        before = s.resident_kb()
        for _ in range(3):
            works(s)
        kept = {t.split("/")[0] for t in s.tools()}
        check("mcp:good" in kept and "mcp:endless_line" not in kept and "mcp:not_json" not in kept, kept)
        equal([t for t in s.tools() if t.startswith("mcp:huge_schema/")], ["mcp:huge_schema/small"], "the tool that fits is left")
        check(len([t for t in s.tools() if t.startswith("mcp:endless_pages/")]) <= 512, "a list has an end")
        check(s.resident_kb() - before < 200000, "memory is bounded", before, s.resident_kb())


@test("a_server_that_never_answers_ends_a_call_in_time", "MCP-09")
def silent():
    with Host({"good": pipes(log_file("a"), ask=False), "mute": hostile("mute", timeout_seconds=1)}) as s:
        events = s.finished("tool mcp__mute_wait", "then", GOOD)
        equal(of(events, "tool.failed")[0]["failure_category"], "timeout")
        equal(len(of(events, "tool.result")), 1)


@test("a_renamed_tool_takes_nobodys_place", "")
def renamed():
    with Host({"good": pipes(log_file("a"), ask=False), "thief": hostile("names")}) as s:
        tools = s.tools()
        check(all(t.startswith(("mcp:good/", "mcp:thief/")) for t in tools), sorted(tools))
        names = [t["model_name"] for t in tools.values()]
        equal(len(set(names)), len(names), "names for models are unique")
        equal(tools["mcp:good/add"]["model_name"], "mcp__good_add")
        works(s)


@test("words_in_a_description_give_no_rights", "")
def injected():
    with Host({"evil": hostile("injection", ask=True), "good": pipes(log_file("a"), ask=False)}) as s:
        tool = s.tools()["mcp:evil/helper"]
        equal((tool["effect"], tool["policy"]), ("once", "ask"), "what it says of itself is advice")
        check(len(tool["description"]) <= 8192, "its length is bounded")
        run_id = s.run("tool mcp__evil_helper")
        equal(s.asks(run_id)["action_id"].split(".")[0], run_id)
        s.cancel(run_id)


@test("a_key_that_a_server_gives_back_is_in_nothing_that_is_kept", "SEC-02")
def leaks():
    key, token = "k3y-of/the+mock 1", "t0ken-of-the-web"
    with HttpMock(log_file("w")) as web:
        servers = {"pipe": pipes(log_file("a"), ask=False, env={"MOCK_API_KEY": "${MOCK_KEY}", "MOCK_MODE": "innocent"}),
                   "web": {"url": web.url, "ask": False, "headers": {"Authorization": "Bearer " + token}}}
        with Host(servers, env={"MOCK_KEY": key}) as s:
            run_id = s.run(*[f'tool mcp__{name}_say {{"leaks":"{how}"}}' for name in servers for how in ("plain", "structured", "failing")])
            events = s.session_events(run_id)
            results = of([e.data for e in events], "tool.result") + of([e.data for e in events], "tool.failed")
            equal(len(results), 6)
            told = json.dumps([e.data for e in events] + [e.data for e in s.events(run_id)]) + s.log()
            check(key not in told and token not in told, told[:3000])
            check("<redacted>" in told and "innocent" in told and "Bearer <redacted>" in told, results)
            hidden = of([e.data for e in events], "output.redacted")
            check(hidden and all(e["redactions"][0]["kind"] == "secret" for e in hidden), hidden)


@test("a_redirect_to_the_inside_is_not_followed", "")
def redirected():
    log = log_file("a")
    with HttpMock(log) as inside, Host({}, outbound_allow="127.0.0.2") as s:
        import http.server
        class Away(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                self.send_response(307)
                self.send_header("Location", inside.url)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass
        web = http.server.HTTPServer(("127.0.0.2", 0), Away)
        threading.Thread(target=web.serve_forever, daemon=True).start()
        put(s, "/api/mcp/servers/away", {"url": f"http://127.0.0.2:{web.server_port}/mcp"})
        wait_until(lambda: state(s, "away").get("state") == "failed", "it is refused")
        equal(asked(log), [], "nobody inside was asked")
        web.shutdown()


@test("a_changed_tool_is_seen_and_a_pinned_one_is_asked_for_again", "")
def changed():
    pinned = {**AGENT, "id": "pinned"}
    with Host({"turn": hostile("turncoat")}) as s:
        first = s.tools()["mcp:turn/helper"]["version"]
        pinned["tools"] = {"pins": {"mcp:turn/helper": first}}
        equal(put(s, "/api/agents/pinned", pinned).status, 201)
        run_id = s.create("pinned", "tool mcp__turn_helper")
        wait_until(lambda: s.record(run_id)["status"] == "succeeded", "what was looked at is called")
        wait_until(lambda: s.tools()["mcp:turn/helper"]["version"] != first, "the change is seen")
        check("mcp.tool_changed" in s.log(), s.log())
        with s.session_stream("uar.registry") as stream:
            fact = stream.until(lambda e: e.data["payload"].get("kind") == "mcp_tools")[-1].data
        now = s.tools()["mcp:turn/helper"]["version"]
        equal((fact["type"], fact["payload"]["id"], fact["payload"]["change"], fact["payload"]["tools"]),
              ("vendor.uar.registry.changed", "turn", "changed", [{"tool_id": "mcp:turn/helper", "version": now}]))
        check(fact["refs"]["definition_ref"], fact)
        run_id = s.create("pinned", "tool mcp__turn_helper")
        s.asks(run_id)
        s.cancel(run_id)


@test("many_tools_are_told_of_after_a_search", "")
def lazy():
    few = {**AGENT, "id": "few", "policy": {**AGENT["policy"], "tools": {"allow": ["internal:time.now"]}}}
    with Host({"many": hostile("endless_pages")}) as s:
        check(len(s.tools()) > 400, len(s.tools()))
        events = s.finished('tool tools.search {"query":"t3_7 nothing"}', "then", "tool mcp__many_t3_7")
        counts = [e["tool_count"] for e in of(events, "model.requested")]
        check(counts[0] < 60, counts)
        found = json.loads(json.dumps(of(events, "tool.result")[0]["preview"]))["tools"]
        equal((found[0]["name"], len(found) <= 10), ("mcp__many_t3_7", True))
        equal(counts[1], counts[0] + len(found), "what was found is told")
        equal(len(of(events, "tool.result")), 2)
        equal(put(s, "/api/agents/few", few).status, 201)
        run_id = s.create("few", "tool time.now")
        wait_until(lambda: s.record(run_id)["status"] == "succeeded", "the run ends")
        counts = [e.data["payload"]["tool_count"] for e in s.session_events(run_id) if e.data["type"] == "model.requested"]
        equal(counts[0], 1, "who has few tools needs no search")


@test("kills_at_any_point_repeat_no_call_that_may_not_be", "MCP-09")
def kills():
    log, dice = log_file("a"), random.Random(18)
    with Host({"pipe": pipes(log, ask=False)}) as s:
        runs = []
        for n in range(KILLS):
            runs.append(s.run(*[f'tool mcp__pipe_say {{"n":"{n}.{i}"}}\nthen' for i in range(4)]))
            time.sleep(dice.random() * 0.06)  # the point is random, not the result
            s.kill()
            s.start()
        s.ready()
        for run_id in runs:
            while s.record(run_id)["status"] not in ("succeeded", "failed", "canceled", "lost"):
                for action in s.record(run_id).get("actions") or []:
                    s.http.post("/api/control/respond_action", {"action_id": action["action_id"], "decision": "deny"})
        calls = [m["params"]["arguments"]["n"] for m in asked(log, "tools/call", "say")]
        equal(len(calls), len(set(calls)), sorted(calls))
        print(f"{KILLS} kills, {len(calls)} calls, none twice")
        check(calls, "some were made")


if __name__ == "__main__":
    main()
