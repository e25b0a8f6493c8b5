#!/usr/bin/env python3
"""UAR uses MCP servers: over pipes and HTTP, of both eras; one that dies harms nothing but its own tools."""
import json

from lib import Provider, check, equal, main, test, text_of, wait_until
from lib.mcp_host import AGENT, Host, log_file, of, pipes
from lib.mcp_mock import PIXEL, HttpMock, asked


@test("servers_are_connected_and_their_tools_listed_once", "MCP-01 MCP-02")
def listed():
    logs = [log_file("a"), log_file("b"), log_file("c"), log_file("d")]
    with HttpMock(logs[1]) as old, HttpMock(logs[2], modern=True) as new:
        with Host({"pipe": pipes(logs[0]), "old": {"type": "http", "url": old.url, "headers": {"X-Team": "${TEAM}"}},
                   "new": {"url": new.url, "tools": ["a*", "say"]}, "pipe.new": pipes(logs[3], "modern"),
                   "gone": {"command": "/does/not/exist"}, "off": {"command": "x", "disabled": True}},
                  env={"TEAM": "blue"}) as s:
            tools = s.tools()
            equal(sorted(t for t in tools if t.startswith("mcp:new/")), ["mcp:new/add", "mcp:new/say"])
            equal(len([t for t in tools if t.startswith("mcp:pipe/")]), 6, sorted(tools))
            check("mcp:pipe.new/add" in tools and "mcp:old/add" in tools, sorted(tools))
            add = tools["mcp:old/add"]
            equal((add["effect"], add["policy"], add["model_name"]), ("once", "ask", "mcp__old_add"))
            equal(asked(logs[1], "initialize")[0]["headers"]["x-team"], "blue")
            for _ in range(3):
                s.finished('tool mcp__old_add {"a":1,"b":2}', 'tool mcp__new_add {"a":1,"b":2}')
            for log in logs:
                equal(len(asked(log, "tools/list")), 2, "two pages, once for all runs")
            call = asked(logs[2], "tools/call")[0]
            equal((call["headers"]["mcp-method"], call["headers"]["mcp-name"]), ("tools/call", "add"))
            equal(asked(logs[1], "tools/call")[0]["headers"]["mcp-session-id"], "s-1")


@test("a_run_uses_tools_of_servers_and_its_own", "MCP-03 MCP-04 BLD-04 ACC-06")
def used():
    logs = [log_file("a"), log_file("b")]
    with HttpMock(logs[1]) as old:
        with Host({"pipe": pipes(logs[0], read_only=["say"]), "web": {"url": old.url, "ask": False}}) as s:
            events = s.finished('tool mcp__pipe_add {"a":40,"b":2}', 'tool mcp__web_say {"x":1}', 'tool time.now', "then",
                                'tool mcp__pipe_say {"y":2}', "tool mcp__pipe_picture", "tool mcp__pipe_fails",
                                'tool mcp__pipe_add {"a":"no","b":1}')
            starts, ends = of(events, "tool.started"), of(events, "tool.result")
            equal(len(ends), 5, [e["type"] for e in events])
            equal({(m["params"]["name"], json.dumps(m["params"]["arguments"])) for m in asked(logs[0], "tools/call")},
                  {("add", '{"a": 40, "b": 2}'), ("say", '{"y": 2}'), ("picture", "{}"), ("fails", "{}")})
            equal([m["params"]["arguments"] for m in asked(logs[1], "tools/call")], [{"x": 1}])
            failed = of(events, "tool.failed")
            equal(len(failed), 2, failed)
            check("it does not work" in json.dumps(failed), failed)
            questions = of(events, "action.required")
            equal(len(questions), 3, "add, picture and fails are asked for; the others are free")
            check(len(starts) >= 5, starts)
            check("42" in "".join(p["text"] for p in of(events, "model.delta")), events)
            check([m for m in asked(logs[0]) if m.get("id") == "p" and m.get("result") == {}], "its ping is answered")


@test("one_run_uses_all_three_kinds_of_tools", "TOOL-01")
def three_kinds():
    with HttpMock(log_file("a")) as web:
        declared = log_file("tools.json")
        with open(declared, "w", encoding="utf-8") as f:
            json.dump({"http": [{"name": "weather", "url": web.url.replace("/mcp", "/weather")}]}, f)
        with Host({"web": {"url": web.url, "ask": False}}, tools_file=declared, outbound_allow="127.0.0.1") as s:
            events = s.finished('tool mcp__web_add {"a":1,"b":2}', "tool http__weather", "tool time.now")
            equal(len(of(events, "tool.result")), 3, of(events, "tool.failed"))
            equal({e["transport"] for e in of(events, "tool.started")}, {"internal", "http", "mcp"})


@test("a_server_that_dies_fails_the_call_once_and_is_not_asked_again", "MCP-09")
def died():
    logs = [log_file("a"), log_file("b")]
    with Host({"one": pipes(logs[0]), "two": pipes(logs[1])}) as s:
        before = s.tools()
        run_id = s.run("tool mcp__one_die", "then", 'tool mcp__two_add {"a":1,"b":1}')
        s.allow(s.asks(run_id))
        wait_until(lambda: [a for a in s.record(run_id).get("actions") or [] if a["action_id"].endswith(".2")], "the next")
        s.allow(s.record(run_id)["actions"][0])
        wait_until(lambda: s.record(run_id)["status"] == "succeeded", "the run goes on")
        events = [e.data for e in s.session_events(run_id)]
        equal(len(asked(logs[0], "tools/call", "die")), 1, "one call at the server")
        failed = of(events, "tool.failed")
        equal(len(failed), 1, failed)
        check("ended during the call" in json.dumps(failed), failed)
        wait_until(lambda: s.tools() == before, "it is back, with the same tools")
        equal(len(of(s.finished('tool mcp__one_add {"a":1,"b":2}'), "tool.result")), 1)
        equal(len(asked(logs[0], "tools/call", "die")), 1)


@test("a_lost_session_is_opened_again", "")
def session_lost():
    log = log_file("a")
    with HttpMock(log) as old, Host({"web": {"url": old.url, "ask": False}}) as s:
        old.session = "s-2"
        s.finished("tool mcp__web_say")
        wait_until(lambda: len(asked(log, "initialize")) == 2 and "mcp:web/say" in s.tools(), "a new session")
        equal(len(of(s.finished("tool mcp__web_say"), "tool.result")), 1)


@test("a_lost_session_that_an_error_names_is_opened_again", "")
def session_lost_by_error():
    for refusal in ((404, -32001), (400, -32000)):
        log = log_file("a")
        with HttpMock(log) as old, Host({"web": {"url": old.url, "ask": False}}) as s:
            old.refusal = refusal
            old.session = "s-2"
            s.finished("tool mcp__web_say")
            wait_until(lambda: len(asked(log, "initialize")) == 2 and "mcp:web/say" in s.tools(), "a new session")
            equal(len(of(s.finished("tool mcp__web_say"), "tool.result")), 1)


@test("a_cancelled_run_tells_the_server", "")
def cancelled():
    log = log_file("a")
    with Host({"pipe": pipes(log, ask=False)}) as s:
        run_id = s.run("tool mcp__pipe_wait")
        wait_until(lambda: asked(log, "tools/call"), "the call")
        s.http.post(f"/api/runs/{run_id}/cancel")
        wait_until(lambda: asked(log, "notifications/cancelled"), "the server is told")
        equal(asked(log, "notifications/cancelled")[0]["params"]["requestId"], asked(log, "tools/call")[0]["id"])


@test("a_call_that_a_kill_cuts_off_is_not_made_again", "MCP-09")
def killed():
    log = log_file("a")
    with Host({"pipe": pipes(log, ask=False)}) as s:
        run_id = s.run("tool mcp__pipe_wait")
        wait_until(lambda: asked(log, "tools/call"), "the call")
        s.kill()
        s.start()
        s.asks(run_id)
        equal(len(asked(log, "tools/call", "wait")), 1, "somebody is asked instead")


def has_image(dialect, body):
    """Is the picture in the request as its wire has it, and nowhere else?"""
    equal(json.dumps(body).count(PIXEL), 1)
    if dialect == "openai_chat":
        text, image = body["messages"][-1]["content"]
        return (text["text"], image) == ("What the tool mcp__pipe_picture brought:", {
            "type": "image_url", "image_url": {"url": "data:image/png;base64," + PIXEL}})
    if dialect == "openai_responses":
        return body["input"][-1]["output"][1] == {"type": "input_image", "detail": "auto",
                                                  "image_url": "data:image/png;base64," + PIXEL}
    return body["messages"][-1]["content"][0]["content"][1] == {
        "type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}


@test("models_see_the_pictures_that_tools_bring", "")
def pictures():
    message = json.dumps([["mcp__pipe_picture", "{}"]])
    for dialect in ("openai_chat", "openai_responses", "anthropic"):
        for images in (True, False):
            with Provider() as p:
                table = {"a": {"dialect": dialect, "base_url": p.url + "/v1", "key_env": "WIRE_KEY",
                               "models": {"*": {"images": images}}}}
                agent = {**AGENT, "policy": {**AGENT["policy"], "provider": {"default": {
                    "provider": "a", "model": "seq:asks,gate,asks"}}}}
                env = {"UAR_PROVIDERS": json.dumps(table), "WIRE_KEY": Provider.KEY}
                with Host({"pipe": pipes(log_file("p"), read_only=["picture"], ask=False)}, env=env, agent=agent) as s:
                    run_id = s.create("user", message)
                    p.wait_for(requests=2)
                    s.kill()  # what the tool brought is read from the log
                    s.start()
                    equal(s.finish(run_id)["status"], "succeeded")
                    check("a pixel" in text_of(s.events(run_id)), text_of(s.events(run_id)))
                    body = p.stats()["last"]
                    if images:
                        check(has_image(dialect, body), (dialect, body))
                    else:
                        check(PIXEL not in json.dumps(body) and "that this model cannot see" in json.dumps(body), body)
                    log = [e.data for e in s.session_events(run_id)]
                    check(PIXEL not in json.dumps(log), "bytes are beside the log")
                    equal(len([e for e in log if e["type"] == "tool.result" and "parts_ref" in e["refs"]]), 1)


if __name__ == "__main__":
    main()
