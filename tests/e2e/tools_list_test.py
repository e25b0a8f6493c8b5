#!/usr/bin/env python3
"""The list of tools that models may ask for, and calls of them without a run."""
import json
import os
import re

from lib import Server, check, equal, main, refused, run_uar, test

FIELDS = {"tool_id", "name", "model_name", "description", "version", "transport", "runtime_owner", "auth", "tags",
          "effect", "policy", "is_read_only", "is_concurrency_safe", "is_destructive", "interrupt_behavior",
          "timeout_ms", "input_schema", "output_schema", "capabilities"}


@test("tools_are_listed_with_all_that_is_declared", "API-14 TOOL-02")
def listed():
    with Server() as s:
        answer = s.http.get("/api/tools")
        equal(answer.status, 200)
        tools = {t["tool_id"]: t for t in answer.json["tools"]}
        missing = {"internal:" + n for n in ("time.now", "math.evaluate", "fs.list", "fs.read", "fs.write",
                                             "fs.delete", "http.fetch")} - set(tools)
        equal(missing, set())
        equal(len({t["model_name"] for t in tools.values()}), len(tools))
        for t in tools.values():
            equal(set(t), FIELDS, t["tool_id"])
            equal((t["tool_id"], t["transport"]), ("internal:" + t["name"], "internal"))
            check(re.fullmatch("[a-zA-Z0-9_-]{1,64}", t["model_name"]), t)
            check(t["description"] and t["version"] and t["tags"], t)
            for schema in (t["input_schema"], t["output_schema"]):
                equal(schema["type"], "object", t["tool_id"])
            # whom an agent may start its definition says (policy.agents)
            check(t["is_read_only"] or t["policy"] == "ask" or t["name"].startswith("agent."), t["tool_id"])
        rules = {n: (tools["internal:" + n]["effect"], tools["internal:" + n]["is_destructive"])
                 for n in ("fs.read", "fs.write", "fs.delete")}
        equal(rules, {"fs.read": ("read_only", False), "fs.write": ("idempotent", True), "fs.delete": ("once", True)})
        refused(s.http.get("/api/tools", token=False), 401, "UNAUTHORIZED")


@test("a_tool_called_directly_says_what_it_says_in_a_run", "API-15")
def called():
    with Server() as s:
        os.makedirs(os.path.join(s.data, "files", "sub"))
        for tool, arguments in (("math.evaluate", {"expression": "2^10"}), ("fs.list", {}),
                                ("math.evaluate", {"expression": "1/0"}), ("fs.read", {"path": "../token"})):
            answer = s.http.post("/api/tools/call", {"tool_id": "internal:" + tool, "arguments": arguments})
            equal(answer.status, 200)
            run_id = s.create("tools", f"tool {tool} {json.dumps(arguments)}")
            end = next(e.data["data"] for e in s.events(run_id) if e.type == "ToolEnd")
            equal(answer.json["ok"], end["ok"], arguments)
            if end["ok"]:
                equal(answer.json["output"], end["output"])
            else:
                failed = next(e.data["payload"] for e in s.session_events(run_id) if e.data["type"] == "tool.failed")
                for key in ("failure_category", "message", "retryable"):
                    equal(answer.json["error"][key], failed[key])
        equal(s.http.post("/api/tools/call", {"tool_id": "internal:time.now"}).json["ok"], True)


@test("a_direct_call_that_cannot_be_is_refused", "")
def not_called():
    with Server() as s:
        def call(**body):
            return s.http.post("/api/tools/call", body)
        refused(call(tool_id="internal:nope"), 404, "NOT_FOUND", "/tool_id")
        refused(call(tool_id="internal:fs.write", arguments={"path": "a", "text": "x"}), 403, "FORBIDDEN", "/tool_id")
        refused(call(tool_id="internal:fs.delete", arguments={"path": "a"}), 403, "FORBIDDEN", "/tool_id")
        refused(call(tool_id="internal:math.evaluate"), 400, "VALIDATION_ERROR", "/arguments")
        refused(call(tool_id="internal:time.now", arguments={"utc_offset": 1}), 400, "VALIDATION_ERROR",
                "/arguments/utc_offset")
        refused(call(tool_id="internal:time.now", arguments=[]), 400, "VALIDATION_ERROR", "/arguments")
        refused(call(arguments={}), 400, "VALIDATION_ERROR", "/tool_id")
        refused(s.http.send("POST", "/api/tools/call", token=False), 401, "UNAUTHORIZED")


@test("without_tools_the_list_is_empty", "")
def none():
    with Server(tools="false") as s:
        equal(s.http.get("/api/tools").json["tools"], [])


@test("files_of_tools_are_none_of_the_servers", "")
def apart():
    with Server() as s:
        s.stop()
        inside = os.path.join(s.data, "plugins")
        link = os.path.join(s.root, "link")
        os.symlink(s.root, link)
        for place in (s.data, s.root, inside, link, os.path.join(s.data, ".")):
            for verb in ("serve", "check"):
                out = run_uar(verb, "--data", s.data, "--tools-files-dir", place, home=s.root)
                equal(out.returncode, 1, (place, out))
                check("tools_files_dir would show" in out.stderr, place, out)
        s.settings["tools_files_dir"] = os.path.join(s.root, "beside")
        s.start()
        equal(s.http.post("/api/tools/call", {"tool_id": "internal:fs.list", "arguments": {}}).status, 200)


def cli(s, *argv):
    return run_uar(*argv, "--url", s.url, env={"UAR_TOKEN": s.token})


@test("a_recorded_call_is_made_again", "TOOL-04")
def replayed():
    with Server() as s:
        run_id = s.create("tools", 'tool math.evaluate {"expression": "6*7"}\ntool time.now {}\n'
                                   'tool math.evaluate {"expression": "1/0"}')
        started = [e.data for e in s.session_events(run_id) if e.data["type"] == "tool.started"]
        same, other, broken = (e["tool_call_id"] for e in started)
        s.kill()
        s.start()  # the log alone is enough
        r = cli(s, "tool", "replay", run_id, same, "--json")
        equal(r.returncode, 0, r.stderr)
        got = json.loads(r.stdout)
        equal((got["equal"], got["output"], got["arguments"]), (True, {"value": 42}, {"expression": "6*7"}))
        recorded = started[0]["payload"]
        equal((got["tool_id"], got["recorded_version"], got["recorded_environment_id"]),
              (recorded["tool_id"], recorded["tool_version"], recorded["environment_id"]))
        equal(got["version"], recorded["tool_version"])
        check("the same result" in cli(s, "tool", "replay", run_id, same).stdout)
        check(not json.loads(cli(s, "tool", "replay", run_id, other, "--json").stdout)["equal"], "time goes on")
        for call_id in (broken, "nothing"):
            equal(cli(s, "tool", "replay", run_id, call_id).returncode, 1)


@test("tools_are_listed_and_called_on_the_terminal", "")
def terminal():
    with Server() as s:
        listed = cli(s, "tools").stdout
        check("internal:fs.delete  once, ask" in listed, listed)
        check("internal:fs.read  read_only, sandboxed" in listed, listed)
        equal(cli(s, "tool", "call", "internal:math.evaluate", '{"expression": "2+2"}').stdout.strip(), '{"value":4}')
        for argv in (("internal:fs.delete", '{"path": "x"}'), ("internal:math.evaluate", '{"expression": "1/0"}'),
                     ("internal:nothing", "{}"), ("internal:math.evaluate", "{")):
            equal(cli(s, "tool", "call", *argv).returncode, 1, argv)
        equal(cli(s, "tool", "sing", "x").returncode, 2)


@test("an_entry_says_what_it_may_do", "TOOL-13")
def inventory():
    with Server() as s:
        kinds = {"capabilities": list, "policy": str, "runtime_owner": str, "is_read_only": bool,
                 "is_concurrency_safe": bool, "is_destructive": bool, "interrupt_behavior": str}
        tools = {t["tool_id"]: t for t in s.http.get("/api/tools").json["tools"]}
        run_id = s.create("tools", "tool time.now {}")
        catalog = next(e.data["payload"]["tools"] for e in s.session_events(run_id)
                       if e.data["type"] == "tool.catalog.resolved")
        for entry in [*tools.values(), *catalog]:
            equal({k: type(entry[k]) for k in kinds}, kinds, entry)
            check(entry["policy"] in ("allowed", "ask", "denied", "sandboxed", "unavailable"), entry)
            check(entry["interrupt_behavior"] in ("cancel", "block"), entry)
        equal([tools[t]["policy"] for t in ("internal:time.now", "internal:fs.read", "internal:fs.delete")],
              ["allowed", "sandboxed", "ask"])
        equal((tools["internal:fs.delete"]["is_destructive"], tools["internal:fs.delete"]["capabilities"]),
              (True, ["files"]))


main()
