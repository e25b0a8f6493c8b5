#!/usr/bin/env python3
"""The way of the README from nothing to an agent with a model, tools, an approval and a form, on one terminal."""
import json
import os
import re
import tempfile

from lib import ROOT, Provider, check, equal, main, run_uar, test, wait_until
from lib.services import Service
from lib.terminal import Terminal

EXAMPLE = os.path.join(ROOT, "examples", "agents", "contract_agent.json")
EDITED = """
tools:
  http:
    - name: weather
      description: Weather of a city
      url: "%(url)s/echo/{city}"
      input_schema: {type: object, required: [city], properties: {city: {type: string}}}
    - name: order
      description: Orders something
      method: POST
      url: "%(url)s/order"
      input_schema: {type: object, required: [item], properties: {item: {type: string}}}
"""
ENDED = re.compile(r"< ok [^ ]*(?:weather|order|form\.request), [\d.]+ m?s: ")
FORM = {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}}


class Home:
    """A machine that has nothing but the program."""

    def __init__(self, root):
        self.data = os.path.join(root, "data")

    def uar(self, *argv, **more):
        return run_uar(*argv, "--data", self.data, **more)

    def write(self, name, text):
        with open(os.path.join(self.data, name), "w", encoding="utf-8") as f:
            f.write(text)

    def configure(self, p, model):
        """As docs/models.md has it for a server on this machine."""
        self.write("config.json", json.dumps({
            "model": "local/" + model, "outbound_allow": ["127.0.0.1"],
            "providers": {"local": {"dialect": "openai_chat", "base_url": p.url + "/v1", "key_file": self.data + "/key"}},
            "prices": {"local/*": {"input": 1000, "output": 1000}}}))
        self.write("key", Provider.KEY)

    def gone(self):
        with open(os.path.join(self.data, "server.json"), encoding="utf-8") as f:
            pid = json.load(f)["pid"]
        wait_until(lambda: not os.path.exists(f"/proc/{pid}"), "its server leaves by itself")


@test("from_nothing_to_an_agent_with_tools_an_approval_and_a_form", "ART-01")
def sixty_seconds():
    with tempfile.TemporaryDirectory() as root, Provider() as p, Service() as web:
        home = Home(root)
        equal(home.uar("agent", "new", "clerk").returncode, 0)
        home.configure(p, "asks")
        path = os.path.join(home.data, "agents", "clerk.yaml")
        with open(path, encoding="utf-8") as f:
            text = f.read()
        allow = 'allow: ["internal:time.*", "internal:math.*"]'
        check(allow in text, text)
        home.write("agents/clerk.yaml", text.replace(allow, 'allow: ["http:*", "internal:ui.form.*"]')
                   + EDITED % {"url": web.url})
        out = home.uar("agent", "check", path)
        equal(out.returncode, 0, out.stderr)
        t = Terminal(home, "chat", "clerk")
        t.until("> ")
        t.type(json.dumps([["http__weather", '{"city":"Bern"}'], ["http__order", '{"item":"umbrella"}'],
                           ["internal__ui_form_request", json.dumps({"title": "Who pays?", "schema": FORM})]]))
        t.until("weather")
        shown = t.until("allow it?")
        equal([x["path"] for x in web.seen], ["/echo/Bern"], "the order waits")
        t.type("y")
        shown += t.until("Who pays?") + t.until("name")
        t.type("Ann")
        said = t.until(" tokens, $")
        equal(len(ENDED.findall(shown + said)), 3, (shown, said))
        check("/echo/Bern" in said and '"name":"Ann"' in said.replace(" ", ""), said)
        equal([(x["method"], x["path"], x["body"]) for x in web.seen[1:]], [("POST", "/order", '{"item":"umbrella"}')])
        t.until("> ")
        t.type("/quit")
        equal(t.end(), 0, t.seen)
        home.gone()


@test("the_agent_of_the_specification_answers_on_a_terminal", "ART-22")
def contract():
    with tempfile.TemporaryDirectory() as root, Provider() as p:
        home = Home(root)
        os.makedirs(os.path.join(home.data, "agents"))
        home.configure(p, "hello")
        with open(EXAMPLE, encoding="utf-8") as f:
            agent = json.load(f)
        agent["policy"]["provider"] = {"default": {"provider": "local", "model": 'says:{"answer":_"A_contract_[1]"}'}}
        home.write("agents/contract_agent.json", json.dumps(agent))
        equal(home.uar("check").returncode, 0)
        out = home.uar("chat", "contract_agent", "draft it", input="")
        equal(out.returncode, 0, out.stderr)
        equal(json.loads(out.stdout.strip()), {"answer": "A contract [1]"})
        home.gone()


if __name__ == "__main__":
    main()
