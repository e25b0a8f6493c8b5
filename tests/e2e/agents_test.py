#!/usr/bin/env python3
"""An agent is a file: what it says is what its runs do, whatever happens to the file."""
import base64
import hashlib
import json
import os
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from lib import ROOT, Provider, Server, check, equal, main, refused, run_uar, test, text_of, wait_until
from lib.agents import put_file

EXAMPLE = os.path.join(ROOT, "examples", "agents", "contract_agent.json")


def definition(agent_id, **more):
    return {"version": "1.0", "kind": "agent", "id": agent_id, "runtime": {"entry": "llm.chat"}, **more}


class Shop(Server):
    """A server with a directory of agents that a test writes to."""

    def __init__(self, *agents, files=None, **more):
        super().__init__(start=False, **more)
        self.agents = os.path.join(self.data, "agents")
        os.makedirs(self.agents)
        for a in agents:
            self.define(a)
        for name, text in (files or {}).items():
            self.write(name, text)
        self.start()

    def write(self, name, text):
        put_file(self.agents, name, text)

    def define(self, value):
        self.write(value["id"] + ".json", json.dumps(value))

    def listed(self):
        return {a["agent_id"]: a for a in self.http.get("/api/agents").json["agents"]}

    def broken(self):
        return self.http.get("/api/agents").json["broken"]


def env(p):
    return p.env("hello")


def told(p):
    """The messages of the last request to the provider, role and text."""
    out = []
    for m in p.stats()["last"]["messages"]:
        text = m["content"]
        if isinstance(text, list):
            text = "".join(part.get("text", "") for part in text)
        out.append((m["role"], text))
    return out


def resolved(s, run_id):
    return [e.data["payload"] for e in s.session_events(run_id)
            if e.data["type"] == "context.resolved" and e.data["run_id"] == run_id]


@test("a_file_is_an_agent", "ART-01 ART-08 ART-15 PROMPT-03")
def file_is_agent():
    yaml = """version: "1.0"
kind: agent
id: greeter       # a comment
metadata: {title: Greeter, description: Greets people, tags: [demo]}
runtime: {entry: llm.chat}
policy:
  provider: {default: {provider: openai, model: hello}}
  output: {language: German, max_characters: 500}
prompt:
  system: You greet {{who}} as {{agent.title}}.
  instructions:
    - Be {{tone}}.
  variables: {who: {}, tone: {default: brief}}
"""
    with Provider() as p, Shop(files={"greeter.yaml": yaml}, env=env(p)) as s:
        equal(s.listed()["greeter"]["title"], "Greeter")
        equal(s.listed()["greeter"]["source"], "file")
        a = s.http.post("/api/runs", {"agent_id": "greeter", "inputs": {"message": "hi"}})
        refused(a, 400, "VALIDATION_ERROR")
        equal(a.json["where"], "/inputs/who")
        run_id = s.create("greeter", "hi", inputs={"who": "Ada"})
        equal(text_of(s.events(run_id)), "Hello from the fake provider. ")
        (role, system), (_, user) = told(p)
        equal((role, user), ("system", "hi"))
        for part in ("You greet Ada as Greeter.", "- Be brief.", "language: German", "at most 500"):
            check(part in system, system)
        equal(p.stats()["last"]["model"], "hello")


@test("the_prompt_has_sections_in_order_with_hashes", "PROMPT-01 PROMPT-02 PROMPT-04")
def sections():
    agent = definition(
        "a", policy={"provider": {"default": {"provider": "openai", "model": "hello"}},
                     "tools": {"allow": ["internal:*"], "deny": ["internal:fs.*"]}},
        prompt={"system": "SYSTEM", "instructions": ["INSTRUCTION"]})
    with Provider() as p, Shop(agent, env=env(p)) as s:
        s.finish(s.create("a", "first", conversation_id="c"))
        run_id = s.create("a", "second </data>", conversation_id="c", inputs={"paper": "see </data> it"})
        (facts,) = resolved(s, run_id)
        names = [x["name"] for x in facts["prompt_sections"]]
        equal(names, ["base", "agent", "tools", "history", "message"])
        messages = told(p)
        system = messages[0][1]
        order = [system.index(x) for x in ("# Base", "# Agent", "SYSTEM", "INSTRUCTION", "# Tools")]
        equal(order, sorted(order))
        check("math_evaluate" in system and "fs_" not in system.split("# Tools")[1], system)
        equal([m[0] for m in messages], ["system", "user", "assistant", "user"])
        check('<data source="paper">\nsee &lt;/data> it\n</data>' in messages[3][1], messages[3])
        again = s.create("a", "second </data>", inputs={"paper": "see </data> it"}, conversation_id="d")
        by_name = {x["name"]: x["sha256"] for x in facts["prompt_sections"]}
        for x in resolved(s, again)[0]["prompt_sections"]:
            equal(x["sha256"], by_name[x["name"]], x["name"])


@test("inputs_are_checked_before_a_run_exists", "ART-12 ART-14")
def inputs():
    agent = definition("a", schemas={
        "inputs": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
        "state": {"type": "object", "required": ["step"]}})
    with Shop(agent) as s:
        for body, where in (({"inputs": {"message": "m"}}, "/inputs"),
                            ({"inputs": {"n": "x"}}, "/inputs/n"),
                            ({"inputs": {"n": 1}, "context": {"state": {}}}, "/context/state")):
            a = s.http.post("/api/runs", {"agent_id": "a", **body})
            refused(a, 400, "VALIDATION_ERROR")
            check(where in a.body.decode(), a.body)
        equal(s.http.get("/api/runs").json["runs"], [])
        run_id = s.create("a", None, inputs={"n": 1}, context={"state": {"step": 2}})
        equal(s.finish(run_id)["status"], "succeeded")


@test("a_run_keeps_its_revision", "ART-24")
def revision():
    def agent(text):
        return definition("a", policy={"provider": {"default": {"provider": "openai", "model": "gate"}}},
                          prompt={"system": text})
    with Provider() as p, Shop(agent("OLD"), env=env(p)) as s:
        p.hold()
        run_id = s.create("a", "m")
        p.wait_for(requests=1)
        before = s.listed()["a"]["revision"]
        s.define(agent("NEW"))
        wait_until(lambda: s.listed()["a"]["revision"] != before, "the new revision")
        s.restart()
        p.wait_for(requests=2)
        check("OLD" in told(p)[0][1], "after kill -9 it goes on with what it began with")
        os.unlink(os.path.join(s.agents, "a.json"))
        wait_until(lambda: "a" not in s.listed(), "it is gone")
        s.restart()
        p.wait_for(requests=3)
        check("OLD" in told(p)[0][1], "also without the file")
        p.release()
        equal(s.finish(run_id)["status"], "succeeded")
        submitted = [e.data for e in s.session_events(run_id) if e.data["type"] == "turn.submitted"][0]
        equal(submitted["payload"]["options"]["definition"], before)
        equal(submitted["refs"]["definition_ref"], "blob://" + before)
        refused(s.http.post("/api/runs", {"agent_id": "a", "inputs": {"message": "m"}}), 404, "NOT_FOUND")


@test("a_broken_file_keeps_what_it_said", "ART-23")
def broken():
    with Shop(definition("a", prompt={"system": "x"}), definition("b")) as s:
        equal(s.broken(), [])
        s.write("a.json", '{\n "version": "1.0",\n "kind": "agent", "id": "a",\n "promt": {}\n}')
        (b,) = wait_until(lambda: s.broken(), "the broken file")
        equal((b["file"], b["agent_id"]), ("a.json", "a"))
        check("a.json:" in b["error"] and "did you mean prompt" in b["error"], b)
        equal(s.http.get("/ready").json["broken_agents"], 1)
        equal(s.finish(s.create("a", "m"))["status"], "succeeded")
        for _ in range(2):  # also when it is broken at the start
            s.restart()
            equal([x["agent_id"] for x in s.broken()], ["a"])
            check("a" in s.listed() and "b" in s.listed(), s.listed())
            shown = s.http.get("/api/agents/a").json["definition"]
            equal((shown["prompt"], s.finish(s.create("a", "m"))["status"]), ({"system": "x"}, "succeeded"))
        equal(s.log().count("agent.refused file=a.json"), 3)
        s.define(definition("a"))
        wait_until(lambda: not s.broken() and "prompt" not in s.http.get("/api/agents/a").json["definition"], "it is mended")
        s.write("b.json", "{")
        wait_until(s.broken, "the other one")
        os.remove(os.path.join(s.agents, "b.json"))
        wait_until(lambda: not s.broken() and "b" not in s.listed(), "it is removed")
        s.write("b.json", "{")
        wait_until(s.broken, "it is back")
        s.restart()
        s.ready()
        check("b" not in s.listed(), "what was removed does not come back")


@test("the_example_of_the_specification_runs", "ART-23 ART-05 ART-22")
def contract():
    with open(EXAMPLE) as f:
        agent = json.load(f)
    agent["policy"]["provider"]["default"]["model"] = "hello"
    agent["extensions"] = {"x-own": [1, {"a": None}]}
    with Provider() as p, Shop(agent, env=env(p)) as s:
        equal(s.listed()["contract_agent"]["tags"], ["legal", "writing"])
        s.finish(s.create("contract_agent", "draft it"))
        system = told(p)[0][1]
        for part in (agent["prompt"]["system"], *agent["prompt"]["instructions"], '"answer"'):
            check(part in system, system)
        refused(s.http.post("/api/runs", {"agent_id": "contract_agent", "inputs": {}}), 400, "VALIDATION_ERROR")


@test("agents_are_kept_in_the_database_with_versions", "CFG-06")
def database():
    def agent(text, **more):
        return definition("mine", prompt={"system": text}, **more)
    with Provider() as p, Shop(definition("filed"), env=env(p)) as s:
        def put(value, agent_id="mine"):
            return s.http.send("PUT", "/api/agents/" + agent_id, value)
        a = put(agent("ONE"))
        equal(a.status, 201, a.body)
        equal((a.status, a.json["version"], a.json["changed"]), (201, 1, True))
        first = a.json["revision"]
        equal((put(agent("ONE")).json["version"], put(agent("ONE")).json["changed"]), (1, False))
        a = put(agent("TWO"))
        equal((a.status, a.json["version"]), (200, 2))
        equal(s.http.get("/api/agents/mine").json["definition"]["prompt"]["system"], "TWO")
        equal(s.listed()["mine"]["source"], "database")
        one = s.http.get("/api/agents/mine?version=1").json
        equal((one["version"], one["definition"]["prompt"]["system"]), (1, "ONE"))
        s.finish(s.create("mine", "m"))
        check("TWO" in told(p)[0][1])
        s.restart()
        wait_until(lambda: "mine" in s.listed(), "it is read again")
        equal(s.listed()["mine"]["version"], 2)
        for value, agent_id, status, code in (
                (agent("x", promt={}), "mine", 400, "VALIDATION_ERROR"),
                (agent("x"), "other", 400, "VALIDATION_ERROR"),
                (definition("skill:x"), "skill:x", 400, "VALIDATION_ERROR"),
                (definition("echo"), "echo", 409, "CONFLICT"),
                (definition("filed"), "filed", 409, "CONFLICT"),
                ({**definition("prog"), "runtime": {"entry": "backend.codex"}}, "prog", 403, "FORBIDDEN")):
            refused(put(value, agent_id), status, code)
        a = s.http.send("DELETE", "/api/agents/mine")
        equal((a.status, a.json["version"]), (200, 3))
        check("mine" not in s.listed())
        refused(s.http.get("/api/agents/mine"), 404, "NOT_FOUND")
        refused(s.http.send("DELETE", "/api/agents/mine"), 404, "NOT_FOUND")
        equal([(v["version"], v["change"]) for v in s.http.get("/api/agents/mine/versions").json["versions"]],
              [(3, "removed"), (2, "put"), (1, "put")])
        s.restart()
        s.ready()
        check("mine" not in s.listed())
        equal(put(agent("ONE")).json["version"], 4)
        with s.session_stream("uar.registry") as events:
            facts = events.until(lambda e: e.data["payload"].get("version") == 4)
        equal([(e.data["type"], e.data["payload"]["change"], e.data["payload"]["version"]) for e in facts[1:]],
              [("vendor.uar.registry.changed", c, v) for v, c in
               ((1, "put"), (2, "put"), (3, "removed"), (4, "put"))])
        equal(facts[1].data["payload"]["revision"], first)


def answers(model, **more):
    return definition("a", policy={"provider": {"default": {"provider": "openai", "model": model}},
                                   **more.pop("policy", {})}, **more)


@test("an_answer_is_checked_repaired_and_flagged", "ART-11 ART-13")
def outputs():
    schema = {"outputs": {"type": "object", "required": ["answer"]}}
    for agent, good, bad in (
            (answers("repeat", schemas=schema), '{"answer": 1}', '{"no": 1}'),
            (answers("repeat", policy={"output": {"max_characters": 5}}), "short", "too long for it"),
            (answers("repeat", policy={"output": {"format": "json"}}), "[1]", "no json")):
        with Provider() as p, Shop(agent, env=env(p)) as s:
            run_id = s.create("a", good)
            equal(s.finish(run_id)["status"], "succeeded")
            equal(p.stats()["requests"], 1)
            if "schemas" in agent:
                check("response_format" in p.stats()["last"], p.stats()["last"])
            run_id = s.create("a", bad)
            events = s.session_events(run_id)
            equal(s.record(run_id)["status"], "succeeded")
            equal(p.stats()["requests"], 3, "one answer, one repair")
            failed = [e.data["payload"] for e in events if e.data["type"] == "model.failed"]
            equal([f["error"]["code"] for f in failed], ["OUTPUT_INVALID"])
            flagged = [e.data["payload"] for e in events if e.data["type"] == "runtime.warning"]
            # the fake provider repeats what it was told last: the request for a repair
            equal([f["code"] for f in flagged], ["OUTPUT_INVALID"])


@test("a_repair_is_one_call_whatever_the_model_asks_for", "ART-11 ART-13")
def one_repair():
    def ends(model):
        agent = answers(model, policy={"output": {"format": "json"}, "tools": {"allow": ["internal:math.*"]}})
        with Provider() as p, Shop(agent, env=env(p)) as s:
            run_id = s.create("a", "six times seven")
            events = [e.data for e in s.session_events(run_id)]
            equal(s.record(run_id)["status"], "succeeded")
            last = p.stats()["last"]
            check("was not accepted" in last["messages"][-1]["content"], last["messages"])
            equal(last["tool_choice"], "none")
            return (p.stats()["requests"], sum(e["type"] == "tool.started" for e in events),
                    [e["payload"]["code"] for e in events if e["type"] == "runtime.warning"])

    equal(ends("seq:tools,hello,restless"), (3, 2, ["OUTPUT_INVALID"] * 2), "tools first, then a repair that asks for more")
    equal(ends("seq:tools,hello,says:[42]"), (3, 2, []), "a repair that succeeds")


@test("artifacts_are_of_the_wanted_types", "ART-20")
def artifacts():
    message = "```html\n<p>x</p>\n```\n\n```python\nprint(1)\n```\n"
    for ui, want in (({"artifacts": {"preferred_types": ["html"]}}, 1), ({"artifacts": {"enabled": False}}, 0),
                     ({"forms": {"enabled": True}}, 2)):
        with Provider() as p, Shop(answers("repeat", ui=ui), env=env(p)) as s:
            events = s.session_events(s.create("a", message))
            made = [e for e in events if e.data["type"] == "artifact.changed"]
            equal(len(made), want, ui)


@test("inputs_may_be_long_and_hold_images", "")
def long_inputs():
    paper = "word " * 40000
    image = {"type": "image", "media_type": "image/png", "data": "iVBORw0KGgoA" * 400}
    with Provider() as p, Shop(answers("gate"), env=env(p)) as s:
        p.hold()
        run_id = s.create("a", "sum it up", inputs={"paper": paper, "attachments": [image]})
        p.wait_for(requests=1)
        s.restart()
        p.wait_for(requests=2)
        p.release()
        equal(s.finish(run_id)["status"], "succeeded")
        user = p.stats()["last"]["messages"][-1]["content"]
        check(paper in user[0]["text"] and user[1]["image_url"]["url"].endswith(image["data"]), str(user)[-300:])
        submitted = [e.data for e in s.session_events(run_id) if e.data["type"] == "turn.submitted"][0]
        check(submitted["refs"]["inputs_ref"].startswith("blob://"), submitted["refs"])
        equal(submitted["payload"]["input_parts"][1]["bytes"] > 200000, True)
        a = s.http.post("/api/runs", {"agent_id": "echo", "inputs": {"message": "m", "x": "y" * 3000}})
        refused(a, 413, "PAYLOAD_TOO_LARGE")


@test("wrong_attachments_are_refused_before_a_run", "")
def wrong_attachments():
    good = {"type": "image", "media_type": "image/png", "data": "iVBORw0KGgo="}
    with Shop(definition("a")) as s:
        cases = (({"x": 1}, ""), (["x"], "/0"), ([good] * 65, ""), ([{**good, "type": "song"}], "/0/type"),
                 ([good, {**good, "media_type": "text/html"}], "/1/media_type"), ([{**good, "media_type": "png"}], "/0/media_type"),
                 ([{"type": "file", "data": "AAAA"}], "/0/media_type"), ([{**good, "data": "not base64"}], "/0/data"),
                 ([{**good, "data": "AAA"}], "/0/data"), ([{**good, "url": "https://x/"}], "/0"),
                 ([{"type": "image", "media_type": "image/png"}], "/0"), ([{"type": "file", "url": "blob://" + "0" * 64}], "/0/url"),
                 ([{"type": "image", "url": "file:///etc/passwd"}], "/0/url"))
        for attachments, where in cases:
            for agent in ("a", "demo"):
                a = s.http.post("/api/runs", {"agent_id": agent, "inputs": {"message": "m", "attachments": attachments}})
                refused(a, 400, "VALIDATION_ERROR", "/inputs/attachments" + where)
            a = s.http.post("/api/control/submit_turn", {"agent_id": "a", "message": "m", "options": {"inputs": {
                "attachments": attachments}}})
            refused(a, 400, "VALIDATION_ERROR")
        equal(s.http.get("/api/runs").json["runs"], [])


@test("an_attachment_may_be_an_upload", "")
def uploaded():
    pixels = bytes(range(256)) * 40
    with Provider() as p, Shop(answers("gate"), env=env(p)) as s:
        p.hold()
        first = s.create("a", "wait")
        p.wait_for(requests=1)
        place = s.http.post(f"/runs/{first}/uploads", {}).json
        image = {"type": "image", "media_type": "image/png", "ref": place["blob_url"]}

        def ask(*all_of_them):
            return s.http.post("/api/runs", {"agent_id": "a", "inputs": {"message": "m", "attachments": all_of_them}})
        refused(ask(image), 400, "VALIDATION_ERROR", "/inputs/attachments/0/ref")  # nothing is there yet
        a = s.http.send("PUT", place["upload_url"], pixels, headers={"Content-Type": "application/octet-stream"})
        check(a.status in (200, 201, 204), a.body)
        inline = {"type": "image", "media_type": "image/png", "data": "iVBORw0KGgo="}
        for ref in ("/etc/passwd", "blob://" + hashlib.sha256(pixels).hexdigest(), "/runs/none/blobs/" + "0" * 24):
            refused(ask(inline, {**image, "ref": ref}), 400, "VALIDATION_ERROR", "/inputs/attachments/1/ref")
        escaped = json.dumps({"agent_id": "a", "inputs": {"message": "m", "attachments": [{**image, "ref": "x"}]}})
        a = s.http.send("POST", "/api/runs", escaped.replace('"ref"', '"r\\u0065f"').encode(),
                        headers={"Content-Type": "application/json"})
        refused(a, 400, "VALIDATION_ERROR", "/inputs/attachments/0/ref")
        refused(ask({**image, "data": "AAAA"}), 400, "VALIDATION_ERROR", "/inputs/attachments/0")
        refused(ask({"type": "file", "ref": image["ref"]}), 400, "VALIDATION_ERROR", "/inputs/attachments/0/media_type")
        run_id = s.create("a", "look", inputs={"attachments": [inline, image], "more": "text"})
        p.wait_for(requests=2)
        user = p.stats()["last"]["messages"][-1]["content"]
        equal([x["image_url"]["url"].split(",")[1] for x in user[1:]], [inline["data"], base64.b64encode(pixels).decode()])
        check("text" in user[0]["text"], user[0])
        p.release()
        s.finish(first)
        equal(s.finish(run_id)["status"], "succeeded")
        refused(ask(image), 400, "VALIDATION_ERROR", "/inputs/attachments/0/ref")  # it went with its run


@test("images_and_files_are_parts_in_every_wire", "")
def attachments():
    image = {"type": "image", "media_type": "image/png", "data": "iVBORw0KGgo="}
    paper = {"type": "file", "media_type": "application/pdf", "name": "a.pdf", "data": "JVBERi0x"}
    want = {
        "openai_chat": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}},
                        {"type": "file", "file": {"file_data": "data:application/pdf;base64,JVBERi0x", "filename": "a.pdf"}}],
        "openai_responses": [
            {"type": "input_image", "detail": "auto", "image_url": "data:image/png;base64,iVBORw0KGgo="},
            {"type": "input_file", "file_data": "data:application/pdf;base64,JVBERi0x", "filename": "a.pdf"}],
        "anthropic": [
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}},
            {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0x"},
             "title": "a.pdf"}]}
    for dialect, parts in want.items():
        with Provider() as p:
            table = {"w": {"dialect": dialect, "base_url": p.url + "/v1", "key_env": "WIRE_KEY",
                           "models": {"*": {"images": True, "files": True}}}}
            agent = definition("a", policy={"provider": {"default": {"provider": "w", "model": "hello"}}})
            with Shop(agent, env={"UAR_PROVIDERS": json.dumps(table), "WIRE_KEY": Provider.KEY}) as s:
                equal(s.finish(s.create("a", "look", inputs={"attachments": [image, paper]}))["status"], "succeeded")
                body = p.stats()["last"]
                content = (body.get("messages") or body.get("input"))[-1]["content"]
                equal((content[0]["text"], content[1:]), ("look", parts), dialect)


class Registry:
    """A registry service on a free port: what it answers, and how often with 200 and 304."""

    def __init__(self, *agents):
        self.put(*agents)
        self.answers, self.down = {200: 0, 304: 0}, False
        registry = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                tag = '"%s"' % hashlib.sha256(registry.body).hexdigest()
                status = 304 if self.headers.get("If-None-Match") == tag else 200
                if registry.down or self.headers.get("Authorization") != "Bearer secret-registry":
                    self.send_error(503)
                    return
                registry.answers[status] += 1
                self.send_response(status)
                self.send_header("ETag", tag)
                self.send_header("Content-Length", str(len(registry.body) if status == 200 else 0))
                self.end_headers()
                self.wfile.write(registry.body if status == 200 else b"")

            def log_message(self, *_):
                pass
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = "http://127.0.0.1:%d/agents" % self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def put(self, *agents):
        self.body = json.dumps({"agents": agents}).encode()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


@test("agents_come_from_files_database_and_a_registry", "CFG-06 ART-01")
def three_sources():
    bad = definition("bad", promt={})
    with Registry(definition("remote", prompt={"system": "R1"}), bad, definition("filed")) as r, \
            Shop(definition("filed"), env={"UAR_AGENTS_URL_TOKEN": "secret-registry"}, agents_url=r.url,
                 agents_url_refresh_seconds="0.1") as s:
        wait_until(lambda: "remote" in s.listed(), "the registry was read")
        s.http.send("PUT", "/api/agents/kept", definition("kept"))
        equal({i: s.listed()[i]["source"] for i in ("filed", "kept", "remote")},
              {"filed": "file", "kept": "database", "remote": "url"})
        check(any("/agents/1" in b["error"] for b in s.broken()), s.broken())
        for agent in ("filed", "kept", "remote"):
            equal(s.finish(s.create(agent, "m"))["status"], "succeeded")
        wait_until(lambda: r.answers[304] > 0, "it has not changed")
        equal(r.answers[200], 1)
        r.put(definition("remote", prompt={"system": "R2"}))
        wait_until(lambda: s.http.get("/api/agents/remote").json["definition"]["prompt"]["system"] == "R2",
                   "the change")
        r.down = True
        s.restart()
        equal(s.http.get("/api/agents/remote").json["definition"]["prompt"]["system"], "R2")
        check("secret-registry" not in s.log())


def call(tool, **arguments):
    return "tool %s %s" % (tool, json.dumps(arguments))


@test("a_definition_says_which_tools_and_how_many_at_once", "ART-09")
def tool_policy():
    agent = definition("a", policy={
        "provider": {"default": {"provider": "scripted", "model": "scripted-tools"}},
        "tools": {"allow": ["internal:time.*", "internal:math.*"], "deny": ["internal:math.*"], "max_concurrent": 1}})
    with Shop(agent) as s:
        message = "\n".join([call("time.now")] * 3 + [call("internal__math_evaluate", expression="1+1"), call("internal__fs_list", path="/")])
        events = [e.data for e in s.session_events(s.create("a", message))]
        steps = [e["type"] for e in events if e["type"] in ("tool.started", "tool.result", "tool.failed")]
        equal(steps, ["tool.started", "tool.result"] * 3 + ["tool.started", "tool.failed"] * 2, "one after the other")
        failed = [e["payload"] for e in events if e["type"] == "tool.failed"]
        equal(len(failed), 2, failed)
        check(all("may not use" in json.dumps(f) for f in failed), failed)


@test("tools_and_routing_are_checked_with_the_definition", "")
def checked_parts():
    model = {"provider": "scripted", "model": "scripted-tools"}
    tool = {"name": "t", "url": "https://x.example/"}
    wrong = (({"tools": {"http": [{**tool, "url": "ftp://x.example/"}]}}, "/tools/http/0/url"),
             ({"tools": {"http": [tool, {**tool, "method": "FETCH"}]}}, "/tools/http/1/method"),
             ({"tools": {"openapi": [{"document": {}}]}}, "/tools/openapi/0"),
             ({"policy": {"provider": {"pattern": "split", "execute": model}}}, "/policy/provider/plan"),
             ({"policy": {"provider": {"pattern": "ensemble", "candidates": [model, model]}}}, "/policy/provider/ranker"),
             ({"policy": {"provider": {"default": model, "budget": {"seconds": 0.5}}}}, "/policy/provider/budget/seconds"),
             ({"policy": {"provider": {"default": model, "budget": {"tool_calls": 0}}}}, "/policy/provider/budget/tool_calls"))
    with Shop() as s:
        for more, where in wrong:
            agent = {**definition("wrong"), **more}
            a = s.http.post("/api/agents-check", {"text": json.dumps(agent)})
            check(a.json["good"] is False and where in a.body.decode(), (where, a.body))
            a = s.http.send("PUT", "/api/agents/wrong", agent)
            check(400 <= a.status < 500 and where in a.body.decode(), (where, a.status, a.body))
            path = os.path.join(s.data, "wrong.json")
            with open(path, "w", encoding="utf-8") as f:
                json.dump(agent, f)
            out = run_uar("agent", "check", path, "--data", s.data)
            check(out.returncode != 0 and where in out.stdout + out.stderr, (where, out.stdout, out.stderr))


@test("a_message_cannot_be_secret", "")
def sensitive_message():
    agent = definition("a", schemas={"inputs": {"type": "object", "properties": {
        "message": {"type": "string", "writeOnly": True}}}})
    with Shop(agent) as s:
        a = s.http.post("/api/runs", {"agent_id": "a", "inputs": {"message": "hush-4711"}})
        refused(a, 400, "VALIDATION_ERROR")
        check("/inputs/message" in a.body.decode() and "form" in a.body.decode(), a.body)


@test("forms_and_navigation_need_permission", "ART-19 ART-21")
def permissions():
    def agent(agent_id, ui):
        return definition(agent_id, ui=ui, policy={
            "provider": {"default": {"provider": "scripted", "model": "scripted-tools"}},
            "tools": {"allow": ["internal:*"]}})
    form = call("ui.form.request", title="Who?", schema={"type": "object", "properties": {"who": {"type": "string"}}})
    go = call("ui.navigate", target="/reports/7")
    with Shop(agent("closed", {"forms": {"enabled": False}}), agent("open", {"navigation": {"allow": ["/reports/*"]}}),
              agent("other", {"navigation": {"allow": ["/home"]}}), agent("any", {"navigation": {"allow": ["/*"]}})) as s:
        def facts(agent_id, message):
            events = s.session_events(s.create(agent_id, message))
            return {e.data["type"] for e in events}, [e.data["payload"] for e in events]
        types, payloads = facts("closed", form)
        check("action.required" not in types and "tool.failed" in types, types)
        check(any("ui.forms" in json.dumps(p) for p in payloads))
        for agent_id in ("closed", "other"):
            types, payloads = facts(agent_id, go)
            check("tool.failed" in types and any("ui.navigation" in json.dumps(p) for p in payloads), types)
        types, _ = facts("open", go)
        check("tool.failed" not in types, types)
        for target in ("/reports/../no", "/reports/%2e%2e/no", "/reports/..\\no", "/reports/\t../no"):
            types, payloads = facts("open", call("ui.navigate", target=target))
            check("tool.failed" in types and any("ui.navigation" in json.dumps(p) for p in payloads), (target, types))
        for target in ("//evil.example/x", "/\\evil.example", "/\t/evil.example"):
            types, payloads = facts("any", call("ui.navigate", target=target))
            check("tool.failed" in types, (target, types))
        run_id = s.create("open", form)
        wait_until(lambda: s.record(run_id).get("actions"), "the form")
        s.cancel(run_id)


@test("a_definition_says_how_much_is_remembered", "")
def remembered():
    for memory, want in (({}, 6), ({"conversation": {"enabled": False}}, 0), ({"conversation": {"max_turns": 1}}, 2)):
        with Provider() as p, Shop(answers("echo", memory=memory), env=env(p)) as s:
            for message in ("one", "two", "three", "four"):
                s.finish(s.create("a", message, conversation_id="c"))
            messages = told(p)
            equal(len(messages) - 2, want, messages)
            if want == 2:
                equal(messages[1], ("user", "three"))
            equal(messages[-1], ("user", "four"))


@test("a_new_agent_works_at_once", "")
def new_agent():
    with Shop() as s:
        def uar(*argv):
            return run_uar(*argv, "--data", s.data)
        out = uar("agent", "new", "poet")
        equal(out.returncode, 0, out.stderr)
        path = os.path.join(s.agents, "poet.yaml")
        check(path in out.stdout and os.path.exists(path), out.stdout)
        check("the running server knows it" in out.stdout, out.stdout)
        check("poet" in s.listed(), "who is told that it is there finds it")
        equal(json.loads(uar("agent", "new", "bard", "--json").stdout)["noticed"], True)
        equal(uar("agent", "show", "bard").returncode, 0)
        equal(uar("agent", "new", "poet").returncode, 1)
        equal(uar("agent", "new", "no such name").returncode, 2)
        for name in ("demo", "../x", os.path.join(s.data, "demo.yaml")):
            out = uar("agent", "new", name)
            equal(out.returncode, 2, out.stderr)
        check(not os.path.exists(os.path.join(s.agents, "demo.yaml")))
        out = uar("agent", "check", path)
        equal((out.returncode, "agent poet is right" in out.stdout), (0, True))
        out = uar("agent", "show", "poet")
        equal(out.returncode, 0, out.stderr)
        for line in ("poet", "file", "You are a helpful assistant", "internal:time.*"):
            check(line in out.stdout, out.stdout)
        equal(uar("run", "poet", "hi").returncode, 0)
        check("poet" in uar("agents").stdout)


@test("a_new_agent_is_not_waited_for_forever", "")
def new_agent_elsewhere():
    with Shop() as s:
        out = run_uar("agent", "new", "poet", "--data", s.data, "--agents-dir", s.root)
        equal(out.returncode, 0, out.stderr)
        check("does not know it yet" in out.stdout, out.stdout)
        s.stop()
        out = run_uar("agent", "new", "bard", "--data", s.data)
        equal((out.returncode, "server" in out.stdout), (0, False), out.stdout + out.stderr)


@test("what_is_wrong_with_a_file_is_said", "ART-23")
def check_files():
    with Shop() as s:
        out = run_uar("agent", "check", EXAMPLE)
        equal(out.returncode, 0, out.stderr)
        check("inactive" not in out.stdout, out.stdout)
        path = os.path.join(s.root, "bad.yaml")
        with open(path, "w") as f:
            f.write('version: "1.0"\nkind: agent\nid: bad\nruntime:\n  entry: llm.chat\n  timout: 3\n')
        out = run_uar("agent", "check", path)
        check(out.returncode == 1 and "bad.yaml:6 /runtime" in out.stderr and "'timout'" in out.stderr, out.stderr)
        with open(path, "w") as f:
            f.write('version: "1.0"\nkind: agent\nid: bad\nruntime: {entry: llm.chat}\npolicy:\n  tools:\n    denny: []\n')
        out = run_uar("agent", "check", path)
        check("bad.yaml:7 /policy/tools" in out.stderr, out.stderr)
        equal(out.stderr.count("did you mean deny"), 1, out.stderr)
        with open(path, "w") as f:
            f.write('version: "1.0"\nkind: agent\nid: bad\nruntime:\n  entry: llm.chatt\n')
        out = run_uar("agent", "check", path)
        equal(out.returncode, 1)
        check("bad.yaml:5 /runtime/entry" in out.stderr and "llm.chat" in out.stderr, out.stderr)
        with open(path) as f:
            s.write("bad.yaml", f.read())
        wait_until(s.broken, "the server has seen it")
        out = run_uar("agents", "--data", s.data)
        check("broken" in out.stdout and "bad.yaml:5" in out.stdout, out.stdout)
        out = run_uar("check", "--data", s.data)
        check(out.returncode == 1 and "bad.yaml:5" in out.stderr, out.stderr)
        check("\nusable without what is broken" in out.stdout, out.stdout)


if __name__ == "__main__":
    main()
