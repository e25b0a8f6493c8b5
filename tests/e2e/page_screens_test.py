#!/usr/bin/env python3
"""What the page promises of every screen: both themes, three widths, a zoom of 200 percent, no other host."""
# time limit: 400 s, every screen is drawn in both themes and three widths
import json
import os
import re

from lib import FIXTURES, Server, equal, main, test, wait_until
from lib.browser import WIDER, Browser

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
WRITES = 'tool fs.write {"path": "note.txt", "text": "kept"}'
TOOLS = 'tool math.evaluate {"expression": "6*7"}\ntool time.now {}\nthen\ntool math.evaluate {"expression": "1/0"}'


def fresh_link(s):
    """A second browser needs a second link."""
    s.link = s.url + "/#code=" + s.http.post("/api/links", {}).json["code"]


def screens(s):
    """Every screen that exists, filled: their addresses."""
    run = s.http.get("/api/runs?limit=1").json["runs"][0]
    more = [f"/ui/{n}" for n in ("tasks", "agents", "models", "tools", "servers", "skills", "knowledge", "admin") if os.path.isdir(os.path.join(ROOT, "web", "src", "screens", n))]
    return [*more, "/", "/ui/c", f"/ui/c/{run['session_id']}", "/ui/conversations", "/ui/inbox", "/ui/runs", f"/ui/runs/{run['run_id']}", f"/ui/replay/{run['run_id']}", "/ui/replay"]


def fill(s):
    """Something of each kind: an ended run with tools, a failed one, a question, a form."""
    s.finish(s.create("demo", "What is an append-only log?"))
    s.finish(s.create("fixture", None, inputs={"fixture": "failure", "pace": "full"}))
    s.create("tools", WRITES)
    s.create("tools", "tool ui.form.request " + json.dumps({"title": "Your name?", "schema": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}}}))
    wait_until(lambda: len(s.http.get("/api/actions").json["actions"]) == 2, "two questions")
    s.finish(s.create("tools", TOOLS))


@test("page_a6_asks_no_other_host_on_any_screen", "")
def a6():
    with Server(fixtures_dir=FIXTURES) as s, Browser() as b:
        b.chat(s)
        b.say("echo", "![a](https://evil.example/a.png) [b](https://evil.example/) <img src=https://evil.example/c.png>")
        b.ended(1)
        for path in screens(s):
            b.goto(s.url + path)
            b.do("await page.locator('.main h1').first().waitFor()")
        equal(b.do("return [...seen.hosts]"), [s.url.removeprefix("http://")])


@test("page_h1_every_screen_in_both_themes_and_three_widths", "")
def h1():
    with Server(fixtures_dir=FIXTURES) as s:
        fill(s)
        for phone in (True, False):
            fresh_link(s)
            with Browser(phone=phone, dark=phone) as b:
                b.enter(s)
                for path in screens(s):
                    b.goto(s.url + path)
                    b.do("await page.locator('.main h1').first().waitFor(); await page.waitForFunction(() => !document.querySelector('.bone'))")
                    name = re.sub(r"[0-9a-f-]{36}", "one", path.removeprefix("/ui").strip("/")).replace("/", "-") or "home"
                    for size in ((360, 740),) if phone else ((2560, 1440), (1280, 800)):
                        b.size(*size)
                        b.looks(name, small=not re.match("/ui/(runs|replay)/", path))  # bars and rows of events are as dense as data is


@test("page_h4_zoom_of_200_percent_needs_no_sideways_scroll", "")
def h4():
    with Server(fixtures_dir=FIXTURES) as s, Browser(width=640, height=400) as b:  # 1280 x 800 at 200 %
        fill(s)
        b.enter(s)
        for path in screens(s):
            b.goto(s.url + path)
            b.do("await page.locator('.main h1').first().waitFor()")
            equal(b.do(WIDER), [], path)


main()
