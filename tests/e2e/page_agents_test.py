#!/usr/bin/env python3
"""Agents, models, tools and MCP servers in a browser."""
# time limit: 300 s, four browsers look at every view
import json
import os
import tempfile

from lib import Provider, Server, check, equal, main, test, wait_until
from lib.browser import Browser
from lib.mcp_host import connected, log_file, pipes
from lib.mcp_mock import HttpMock


def definition(agent_id="poet", **more):
    return {"version": "1.0", "kind": "agent", "id": agent_id, "metadata": {"title": "Poet", "description": "Writes verse"},
            "runtime": {"entry": "llm.chat"}, "prompt": {"system": "You write verse."}, **more}


def put(s, value):
    a = s.http.send("PUT", "/api/agents/" + value["id"], value)
    check(a.status in (200, 201), a.body)
    return a.json["version"]


def text(b):
    return b.do("return page.getByLabel('Definition').inputValue()")


def write(b, value):
    b.do(f"await page.getByLabel('Definition').fill({json.dumps(value)})")


@test("page_agents_definition_is_checked_and_kept", "")
def edit():
    with Browser() as b, Server() as s:
        b.enter(s)
        b.do("await page.keyboard.press('g'); await page.keyboard.press('a')")
        b.do("await page.getByRole('list', {name: 'Agents'}).getByRole('link', {name: /Echo/}).waitFor()")
        b.do("await page.locator('body').press('n')")
        b.wait("#agents-verdict", "No problem")
        first = text(b)
        write(b, first.replace("system: |", "system: 5").replace("    You answer in one paragraph.\n", "").replace("my_agent", "poet"))
        b.wait(".agents-problems", "/prompt/system")
        line = first.split("\n").index("  system: |") + 1
        equal(b.texts(".agents-gutter [data-wrong]"), [str(line)])
        check(b.do("return page.getByRole('button', {name: /^Save/}).isDisabled()"))
        b.do("await page.getByRole('list', {name: 'Problems'}).getByRole('button').click()")
        equal(b.do("return page.getByLabel('Definition').evaluate((e) => e.value.slice(e.selectionStart, e.selectionEnd))"), "  system: 5")
        write(b, first.replace("my_agent", "poet").replace("runtime:", "runtme:"))
        b.wait(".agents-problems", "runtime")  # says what was meant
        write(b, first.replace("my_agent", "poet"))
        b.hold("**/api/agents/poet")
        b.click("button", "Save as poet")
        b.do("await asked; await page.getByRole('button', {name: 'Saving'}).waitFor()")
        equal(s.http.get("/api/agents/poet").status, 404)
        b.do("go()")
        b.wait(".toast", "poet is kept as version 1")
        b.do("await page.getByRole('heading', {name: 'My agent', level: 2}).waitFor()")
        equal(s.http.get("/api/agents/poet").json["definition"]["prompt"]["system"].strip(), "You answer in one paragraph.")
        b.click("tab", "Definition")
        b.wait("#agents-verdict", "No problem")
        write(b, text(b).replace("one paragraph", "two lines"))
        b.do("await page.getByLabel('Definition').press('Control+s')")
        b.wait(".toast", "poet is kept as version 2")
        b.click("tab", "Prompt")
        b.wait(".json", "You answer in two lines.")


@test("page_agents_versions_are_compared_and_taken_up_again", "")
def versions():
    with Browser() as b, Server() as s:
        put(s, definition())
        put(s, definition(prompt={"system": "You write prose."}))
        b.enter(s)
        b.goto(s.url + "/ui/agents/poet?tab=versions")
        b.do("await page.getByRole('button', {name: /v1/}).click()")
        b.wait(".diff [data-sign='-']", "You write verse.")
        b.wait(".diff [data-sign='+']", "You write prose.")
        b.do("await page.waitForURL(/version=1/)")
        b.click("button", "Edit this version")
        b.do("await page.getByRole('button', {name: 'Save as version 3'}).waitFor()")
        check("You write verse." in text(b), text(b))
        b.do("await page.locator('.split-main').getByRole('button', {name: 'Remove'}).click()")
        b.click("button", "Remove Poet")
        b.wait(".toast", "Poet was removed")
        wait_until(lambda: s.http.get("/api/agents/poet").status == 404, "it is gone")


@test("page_agents_refusals_are_in_the_servers_words", "")
def refused():
    with Browser() as b, Server(start=False) as s:
        os.makedirs(os.path.join(s.data, "agents"))
        with open(os.path.join(s.data, "agents", "poet.json"), "w") as f:
            json.dump(definition(), f)
        with open(os.path.join(s.data, "agents", "broken.yaml"), "w") as f:
            f.write("id: [")
        s.start().ready()
        b.enter(s)
        b.goto(s.url + "/ui/agents/poet?tab=definition")
        b.wait(".problem", "A definition is broken")
        b.wait(".agents-edit", "This agent is the file")
        check(b.do("return page.getByRole('button', {name: /^Save/}).isDisabled()"))
        write(b, json.dumps(definition("poet_two"), indent=2))
        b.click("button", "Save as poet_two")
        b.wait(".toast", "poet_two is kept as version 1")
        b.do("await page.waitForURL(/poet_two/); await page.waitForFunction(() => document.querySelector('textarea')?.value.includes('poet_two'))")
        write(b, json.dumps({"version": "1.0", "kind": "agent", "id": "program", "runtime": {"entry": "backend.codex"}}, indent=2))
        b.click("button", "Save as program")
        b.wait(".problem", "It was not saved")
        equal(s.http.get("/api/agents/program").status, 404)


@test("page_agents_that_cannot_run_say_why", "")
def unable():
    with tempfile.TemporaryDirectory() as path, Browser() as b, Server(env={"PATH": path}) as s:
        def codex():
            return next(a for a in s.http.get("/api/agents").json["agents"] if a["agent_id"] == "codex")
        equal((codex()["runnable"], codex()["reason"]), (False, "The program codex is not in the server's PATH."))
        check("Install" in codex()["next_step"], codex())
        equal(s.http.get("/api/agents/echo").json["runnable"], True)
        b.enter(s)
        b.wait(".home-why", "The program codex is not in the server's PATH. Install it")
        b.goto(s.url + "/ui/agents/codex")
        b.wait(".split-head .health", "Not yet")
        b.wait(".problem", "The program codex is not in the server's PATH.")
        equal(b.count(".split-head a.btn"), 0)  # no new chat
        program = os.path.join(path, "codex")
        with open(program, "w") as f:
            f.write("#!/bin/sh\n")
        equal(codex()["runnable"], False)  # it cannot be executed
        os.chmod(program, 0o755)
        equal(codex()["runnable"], True)
        check("reason" not in codex(), codex())
        b.do("await page.reload()")
        b.wait(".split-head .health", "Ready")


@test("page_models_show_health_and_are_asked", "")
def models():
    with Provider() as p, Browser() as b, Server(env={**p.env("hello"), "UAR_MODEL_RETRIES": "0"}) as s:
        b.enter(s)
        b.do("await page.keyboard.press('g'); await page.keyboard.press('m')")
        b.wait(".models-row", "not called since the server was started")
        s.finish(s.create("assistant", "hi"))
        b.wait("[data-model=hello]", "Healthy")  # by itself
        b.wait("[data-model=hello]", "1 call")
        b.do("await page.getByRole('region', {name: 'openai'}).getByRole('button', {name: 'Check now'}).click()")
        b.wait(".models-note", "It answers")
        p.proc.kill()
        p.proc.wait()
        s.finish(s.create("assistant", "hi"))
        b.wait("[data-model=hello]", "Failing")
        b.wait(".models-error", "network")
        b.do("await page.getByRole('region', {name: 'openai'}).getByRole('button', {name: 'Check now'}).click()")
        b.wait(".models-note", "It does not answer as it should")
    with Browser() as b, Server() as s:
        b.enter(s)
        b.goto(s.url + "/ui/models")
        b.wait(".models-hint", "No provider is configured")


@test("page_tools_are_tried_alone", "")
def tools():
    with Browser() as b, Server() as s:
        b.enter(s)
        b.do("await page.keyboard.press('g'); await page.keyboard.press('o')")
        b.do("await page.getByRole('searchbox', {name: 'Find a tool'}).fill('arithmetic')")
        b.do("await page.getByRole('link', {name: /math.evaluate/}).click()")
        b.do("await page.getByRole('button', {name: 'Run it alone'}).click()")
        b.wait(".error-detail", "This is needed.")  # beside the field, before anything is sent
        b.do("await page.getByLabel(/expression/).fill('6 * 7')")
        b.click("button", "Run it alone")
        b.wait(".tools-outcome", "Ended")
        b.wait(".tools-outcome .json", "42")
        b.do("await page.getByLabel(/expression/).fill('1 / 0')")
        b.click("button", "Run it alone")
        b.wait(".tools-outcome", "value_invalid")
        check("q=arithmetic" in b.do("return page.url()"))
        b.choose("Effect", "once")
        b.wait(".empty", "No tool fits")
        b.goto(s.url + "/ui/tools/internal:fs.write")
        b.do("await page.getByLabel(/path/).fill('a.txt'); await page.getByLabel(/text|content/).first().fill('hello')")
        b.click("button", "Run it in a conversation")  # what changes something is written down and asked for
        b.do("await page.waitForURL(/\\/ui\\/c\\//)")
        b.wait(".question", "fs.write")
        check(not os.path.exists(os.path.join(s.data, "files", "a.txt")))
        b.do("await page.getByRole('button', {name: /^Allow once/}).first().click()")
        wait_until(lambda: os.path.exists(os.path.join(s.data, "files", "a.txt")), "the file is written")


@test("page_servers_show_state_last_error_and_tools", "")
def servers():
    with HttpMock(log_file("a")) as web, Browser() as b, Server(
            env={"UAR_MCP_SERVERS": json.dumps({"pipe": pipes(log_file("b")), "gone": {"command": "/does/not/exist"}})}, outbound_allow="127.0.0.1") as s:
        connected(s, "pipe")
        b.enter(s)
        b.do("await page.keyboard.press('g'); await page.keyboard.press('v')")
        b.wait(".split-row", "Connected")
        b.do("await page.getByRole('link', {name: /gone/}).click()")
        b.wait(".split-head .health", "Down")
        b.wait(".problem", "")
        b.do("await page.getByRole('link', {name: /pipe/}).click()")
        b.do("await page.getByRole('link', {name: /add.*Adds two numbers/}).waitFor()")
        b.do("await page.locator('.top').getByRole('button', {name: 'Add'}).click()")
        b.do("await page.getByLabel('Name').fill('web'); await page.getByLabel('Server, as JSON').fill('{')")
        b.click("button", "Add and connect")
        b.wait("dialog .problem", "This is not JSON")
        b.do("await page.getByLabel('Server, as JSON').fill('{\"url\": 5}')")
        b.click("button", "Add and connect")
        b.wait("dialog .problem", "It was not added")
        b.do(f"await page.getByLabel('Server, as JSON').fill({json.dumps(json.dumps({'mcpServers': {'web': {'url': web.url}}}))})")
        b.click("button", "Add and connect")
        b.do("await page.getByRole('heading', {name: 'web', level: 2}).waitFor()")
        b.wait(".split-head .health", "Connected")
        b.do("await page.getByRole('link', {name: /add.*Adds two numbers/}).click()")
        b.do("await page.waitForURL(/tools\\/mcp%3Aweb%2Fadd/)")
        b.do("await page.getByRole('link', {name: 'MCP server web'}).click()")
        b.do("await page.locator('.split-main').getByRole('button', {name: 'Remove'}).click()")
        b.click("button", "Remove web")
        b.wait(".toast", "web was removed")
        equal([x["name"] for x in s.http.get("/api/mcp/servers").json["servers"] if x["name"] == "web"], [])


@test("page_agents_models_tools_servers_on_a_phone_and_in_both_themes", "")
def looks():
    views = {"agents": "Echo", "agents/poet": "internal", "agents/poet?tab=definition": "No problem", "agents/poet?tab=versions&version=1": "Whole", "agents/poet?tab=prompt": "System",
             "agents?new=1": "No problem", "models": "Healthy", "tools": "math.evaluate", "tools/internal:math.evaluate": "Run it alone", "servers": "pipe", "servers/pipe": "Adds two numbers."}
    env = {"UAR_MCP_SERVERS": json.dumps({"pipe": pipes(log_file("b"))})}
    with Server(env=env) as s:
        connected(s, "pipe")
        put(s, definition(policy={"tools": {"allow": ["internal:*"]}}))
        put(s, definition(policy={"tools": {"allow": ["internal:*"]}}, prompt={"system": "You write prose."}))
        s.finish(s.create("demo", "hi"))
        for phone in (True, False):
            with Browser(phone=phone, dark=phone) as b:
                s.link = s.url + "/#code=" + s.http.post("/api/links", {}).json["code"]
                b.enter(s)
                for view, words in views.items():
                    b.goto(f"{s.url}/ui/{view}")
                    if words == "internal":
                        b.wait(".agents-tools li")
                    else:
                        b.do(f"await page.getByText({json.dumps(words)}).last().waitFor()")
                    b.looks(view.split("?")[0].replace("/", "-").replace(":", "-") + ("-" + view.split("=")[1].split("&")[0] if "=" in view else ""))


main()
