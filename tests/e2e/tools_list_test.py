#!/usr/bin/env python3
"""The list of tools that models may ask for."""
import re

from lib import Server, check, equal, main, refused, test

FIELDS = {"tool_id", "name", "model_name", "description", "version", "transport", "runtime_owner", "auth", "tags",
          "effect", "policy", "is_read_only", "is_concurrency_safe", "is_destructive", "interrupt_behavior",
          "timeout_ms", "input_schema", "output_schema"}


@test("tools_are_listed_with_all_that_is_declared", "API-14 TOOL-02")
def listed():
    with Server() as s:
        answer = s.http.get("/api/tools")
        equal(answer.status, 200)
        tools = {t["tool_id"]: t for t in answer.json["tools"]}
        equal(set(tools), {"internal:" + n for n in ("time.now", "math.evaluate", "fs.list", "fs.read", "fs.write",
                                                     "fs.delete")})
        equal(len({t["model_name"] for t in tools.values()}), len(tools))
        for t in tools.values():
            equal(set(t), FIELDS, t["tool_id"])
            equal((t["tool_id"], t["transport"]), ("internal:" + t["name"], "internal"))
            check(re.fullmatch("[a-zA-Z0-9_-]{1,64}", t["model_name"]), t)
            check(t["description"] and t["version"] and t["tags"], t)
            for schema in (t["input_schema"], t["output_schema"]):
                equal(schema["type"], "object", t["tool_id"])
            equal(t["is_read_only"], t["policy"] == "allowed", t["tool_id"])
        rules = {n: (tools["internal:" + n]["effect"], tools["internal:" + n]["is_destructive"])
                 for n in ("fs.read", "fs.write", "fs.delete")}
        equal(rules, {"fs.read": ("read_only", False), "fs.write": ("idempotent", True), "fs.delete": ("once", True)})
        refused(s.http.get("/api/tools", token=False), 401, "UNAUTHORIZED")


@test("without_tools_the_list_is_empty", "")
def none():
    with Server(tools="false") as s:
        equal(s.http.get("/api/tools").json, {"tools": []})


main()
