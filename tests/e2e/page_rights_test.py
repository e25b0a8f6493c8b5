#!/usr/bin/env python3
"""What a conversation may do and did, on the page of its run: processes, boundary, mode, permissions that hold."""
import json

from lib import Server, check, equal, main, test, wait_until
from lib.browser import Browser

MODEL = {"default": {"provider": "scripted", "model": "scripted-tools"}}
LINE = "echo x > /outside; echo ready; while read line; do echo got $line; done"


def command(s, name, **body):
    a = s.http.post("/api/control/" + name, body)
    equal(a.status, 200, (name, a.body))
    return a.json["result"]


def question(s, run, tool):
    return wait_until(lambda: next((a for a in s.record(run).get("actions") or [] if a["tool_name"] == tool), None), tool)["action_id"]


def summary(s, run):
    return s.http.get(f"/api/sessions/{s.record(run)['session_id']}?include=permissions").json


@test("page_processes_of_a_run_take_input_and_are_ended", "")
def processes():
    with Browser() as b, Server(process_tools="workspace_write") as s:
        a = s.http.send("PUT", "/api/agents/a", {"version": "1.0", "kind": "agent", "id": "a", "runtime": {"entry": "llm.chat"},
                                                 "policy": {"provider": MODEL, "tools": {"allow": ["process:*", "internal:fs.*"]}, "sandbox": {"mode": "workspace_write"}}})
        check(a.status in (200, 201), a.body)
        run = s.create("a", f'tool process__start {json.dumps({"command": LINE})}\nthen\ntool fs.write {json.dumps({"path": "next", "text": "x"})}')
        command(s, "respond_action", action_id=question(s, run, "process.start"), decision="allow")
        question(s, run, "fs.write")
        b.enter(s)
        b.goto(f"{s.url}/ui/runs/{run}/rights")
        b.wait(".run-process .state", "Running")
        b.wait("[aria-label='Attempts to get out']", "/outside")
        b.wait(".run-boundary", "workspace_write")
        b.looks("rights", small=False)
        b.click("button", "/^Write to/")
        b.do("await page.getByLabel('One line').fill('hello'); await page.keyboard.press('Enter')")
        wait_until(lambda: summary(s, run)["execution_environment"]["active_processes"][0]["input_bytes"] == 6, "the input is in the log")
        b.wait(".run-process", "6 B in")
        b.click("button", "/^End /")
        b.wait(".run-process .state", "Cancelled")
        equal(summary(s, run)["execution_environment"]["ended_processes"][0]["reason"], "user")


@test("page_the_mode_of_a_conversation_is_set_and_a_permission_taken_back", "")
def rights():
    with Browser(phone=True) as b, Server() as s:
        run = s.create("tools", 'tool fs.write {"path": "note.txt", "text": "kept"}')
        command(s, "respond_action", action_id=question(s, run, "fs.write"), decision="allow_for_session")
        s.finish(run)
        b.enter(s)
        b.goto(f"{s.url}/ui/runs/{run}/rights")
        b.wait("[aria-label=Decisions]", "fs.write")
        b.looks("rights-phone")
        b.do("await page.getByLabel('For this conversation').selectOption('plan')")
        wait_until(lambda: [p["mode"] for p in summary(s, run)["permission_sandbox_summary"]["policies"] if p["mode"]] == ["plan"], "the mode")
        b.do("await page.waitForFunction(() => document.querySelector('#run-mode')?.value === 'plan')")
        b.do("await page.getByLabel('For this conversation').selectOption('bypass')")  # the operator does not list it
        b.wait(".toast", "The mode was not changed")
        b.click("button", "Take back: internal:fs.write")
        b.do("await page.locator('.grant').waitFor({state: 'detached'})")
        equal(s.http.get("/api/grants").json["grants"], [])


main()
