#!/usr/bin/env python3
"""One run in a browser: timeline, events, attempts, effects, its record."""
import json

from lib import FIXTURES, Server, check, equal, main, test, wait_until
from lib.browser import Browser


def call(name, **args):
    return f"tool {name} {json.dumps(args)}"


TOOLS = "\nthen\n".join([call("math.evaluate", expression="6*7") + "\n" + call("time.now"),
                         call("math.evaluate", expression="1/0")])
WRITE = call("fs.write", path="a.txt", text="hello")


def again(s):
    s.link = s.url + "/#code=" + s.http.post("/api/links", {}).json["code"]


def timeline(s, run_id):
    return s.http.get(f"/api/runs/{run_id}/timeline").json


@test("page_f4_waterfall_matches_the_times_of_events", "UI-13")
def waterfall():
    with Browser() as b, Server() as s:
        run_id = s.create("tools", TOOLS)
        s.finish(run_id)
        b.enter(s)
        b.goto(f"{s.url}/ui/runs/{run_id}")
        b.wait(".run-span[data-kind=tool]")
        t = timeline(s, run_id)
        boxes = b.do("""return page.evaluate(() => { const track = document.querySelector('[data-track]').getBoundingClientRect();
            return [track.width, Object.fromEntries([...document.querySelectorAll('.run-span')].map((e) => { const r = e.getBoundingClientRect();
                return [e.dataset.first, [r.left - track.left, r.width, r.top]]; }))]; })""")
        width, at = boxes
        total = t["last_at"] - t["first_at"]
        for x in t["spans"]:
            left, wide, _ = at[str(x["first"])]
            want = (x["first_at"] - t["first_at"]) / total * width
            check(abs(left - want) <= 1, (x, left, want))
            check(abs(wide - max(3, (x["last_at"] - x["first_at"]) / total * width)) <= 1, (x, wide))
        one, two, _ = [at[str(x["first"])] for x in t["spans"] if x["kind"] == "tool"]
        check(one[2] != two[2], "what runs at once is in rows of its own", one, two)
        equal(b.do("return page.locator('.run-span[data-state=failed]').count()"), 1)


@test("page_f5_f7_bars_events_search_and_kinds", "")
def events():
    with Browser() as b, Server() as s:
        run_id = s.create("tools", TOOLS)
        s.finish(run_id)
        t = timeline(s, run_id)
        failed = [x for x in t["spans"] if x["state"] == "failed"][0]
        b.enter(s)
        b.goto(f"{s.url}/ui/runs/{run_id}")
        b.do("await page.locator('.run-span[data-state=failed]').click()")
        b.wait(".run-inspector", f"Event #{failed['first']}")
        b.wait(".run-inspector", "tool.started")
        b.do(f"await page.waitForURL(/e={failed['first']}/)")
        b.wait(f".run-event[data-event='{failed['first']}'][aria-current=true]")
        b.do(f"await page.locator(\".run-event[data-event='{failed['last']}']\").click()")  # and back: its bar is marked
        b.wait(f".run-span[data-first='{failed['first']}'][aria-pressed=true]")
        b.do("await page.reload()")
        b.wait(".run-inspector", f"Event #{failed['last']}")
        b.do("await page.getByRole('searchbox', {name: 'Search in the events'}).fill('division by zero')")
        b.wait(".run-event", "a division by zero")
        whole = s.http.get(f"/api/runs/{run_id}/events?limit=1000&q=division%20by%20zero").json["events"]
        b.do(f"await page.waitForFunction(() => document.querySelectorAll('.run-event').length === {len(whole)})")
        b.do("await page.getByRole('searchbox', {name: 'Search in the events'}).fill('')")
        b.do("await page.waitForURL((u) => !u.search.includes('find'))")
        b.click("button", "All kinds")
        b.click("menuitem", "Tools")
        tools = [e for e in s.http.get(f"/api/runs/{run_id}/events?limit=1000").json["events"] if e["type"].startswith("tool.")]
        b.do(f"await page.waitForFunction(() => document.querySelectorAll('.run-event').length === {len(tools)})")
        equal(b.do("return page.locator('.run-event').evaluateAll((all) => all.map((e) => Number(e.dataset.event)))"), [e["run_sequence"] for e in tools])
        equal(b.axe(), [])
        b.click("tab", "Effects")
        b.wait(".run-effect", "a division by zero")
        equal(b.count(".run-effect"), 3)
        b.click("tab", "Conversation")
        b.wait(".run-said[data-said=user]", "6*7")
        b.click("tab", "Raw record")
        b.wait(".run-json", run_id)


@test("page_run_shows_attempts_questions_and_its_end", "UI-14 UI-16")
def attempts():
    with Browser() as b, Server(fixtures_dir=FIXTURES) as s:
        first = s.create("fixture", None, inputs={"fixture": "failure", "pace": "full"})
        s.finish(first)
        b.enter(s)
        b.goto(f"{s.url}/ui/runs/{first}")
        b.wait(".problem", s.record(first)["error"]["message"])
        b.click("button", "Retry")
        b.do(f"await page.waitForURL((u) => u.pathname.includes('/ui/runs/') && !u.pathname.includes({json.dumps(first)}))")
        b.do("await page.getByRole('navigation', {name: 'Attempts'}).getByRole('link', {name: /Failed ?2/}).waitFor()")
        equal(b.texts(".run-attempts a"), ["Failed1", "Failed2"])
        b.do("await page.locator('.run-attempts a').first().click()")
        b.do(f"await page.waitForURL((u) => u.pathname.includes({json.dumps(first)}))")
        waits = s.create("tools", WRITE)
        wait_until(lambda: s.record(waits).get("actions"), "a question")
        b.goto(f"{s.url}/ui/runs/{waits}")
        b.wait(".run-span[data-kind=ask][data-state=open]")
        b.wait(".run-trail", "Waits for you")
        s.http.post("/api/control/respond_action", {"action_id": s.record(waits)["actions"][0]["action_id"], "decision": "deny"})
        b.wait(".run-span[data-kind=ask][data-state=denied]")  # by itself
        b.wait(".run-trail .now", "Succeeded")


@test("page_run_on_a_phone_and_in_both_themes", "")
def looks():
    with Server() as s:
        run_id = s.create("tools", TOOLS)
        s.finish(run_id)
        for phone in (True, False):
            again(s)
            with Browser(phone=phone, dark=phone, width=1440, height=900) as b:
                b.enter(s)
                b.goto(f"{s.url}/ui/runs/{run_id}?e=27")
                b.wait(".run-inspector", "tool.result")
                b.looks("run", small=False)  # bars and rows of events are as dense as data is


main()
