#!/usr/bin/env python3
"""Replay in a browser: the state at any event, steps, speed, dialects, two runs compared."""
import json
import random

from lib import FIXTURES, Server, check, equal, main, test
from lib.browser import WIDER, Browser


def call(name, **args):
    return f"tool {name} {json.dumps(args)}"


TOOLS = "\nthen\n".join([call("math.evaluate", expression="6*7") + "\n" + call("time.now"),
                         call("math.evaluate", expression="1/0")])


def open_replay(b, s, what, query=""):
    b.goto(f"{s.url}/ui/replay/{what}{query}")
    b.wait("input[type=range]")


@test("page_f8_state_at_an_event_is_the_servers", "")
def states():
    with Browser() as b, Server() as s:
        run_id = s.create("tools", TOOLS)
        s.finish(run_id)
        last = s.http.get(f"/api/runs/{run_id}/timeline").json["last"]
        b.enter(s)
        open_replay(b, s, run_id)
        numbers = [random.Random(3).randrange(1, last + 1) for _ in range(50)]
        shown = b.do(f"""const out = [];
            for (const n of {numbers}) {{
                await page.locator('input[type=range]').fill(String(n));
                await page.locator(`[data-moment="${{n}}"]`).waitFor();
                out.push(await page.locator('.run-said').evaluateAll((all) => all.map((e) => [e.dataset.said, e.querySelector('p:not(.run-call)')?.textContent ?? ''])));
            }}
            return out""")
        for n, got in zip(numbers, shown):
            view = s.http.get(f"/api/runs/{run_id}/state?at={n}").json
            equal(got, [[m["kind"], m["text"]] for m in view["messages"]], n)


@test("page_f9_steps_play_and_keys", "")
def steps():
    with Browser() as b, Server() as s:
        run_id = s.create("tools", TOOLS)
        s.finish(run_id)
        t = s.http.get(f"/api/runs/{run_id}/timeline").json
        b.enter(s)
        open_replay(b, s, run_id)
        b.click("button", "Step")
        b.wait(".replay-now", "#2")
        b.do("await page.locator('.replay-left').focus(); await page.keyboard.press('ArrowRight')")
        b.wait(".replay-now", "#3")
        b.do("await page.keyboard.press('ArrowLeft')")
        b.wait(".replay-now", "#2")
        b.do("await page.keyboard.press('e')")
        failed = [x for x in t["spans"] if x["state"] == "failed"][0]
        b.wait(".replay-now", f"#{failed['last']}")
        b.do("await page.keyboard.press('Home')")
        b.wait(".replay-now", "#1")
        for speed in ("1×", "10×"):
            b.click("button", speed)
            b.do("await page.locator('.replay-left').focus(); await page.keyboard.press('Home')")
            b.do("await page.keyboard.press(' ')")
            b.do(f"await page.waitForFunction(() => document.querySelector('.replay-now').textContent === '#{t['last']}')")
            b.do("await page.getByRole('button', {name: 'Play', exact: true}).waitFor()")  # it stops at the end
        b.do("await page.reload()")
        b.wait(".replay-now", f"#{t['last']}")
        equal(b.axe(), [])


@test("page_f10_dialects_show_the_same_moment", "UI-07")
def dialects():
    with Browser() as b, Server(fixtures_dir=FIXTURES) as s:
        run_id = s.create("fixture", None, inputs={"fixture": "tools", "pace": "full"})
        s.finish(run_id)
        start = [e for e in s.events(run_id) if e.type == "ToolEnd"][0]
        b.enter(s)
        open_replay(b, s, run_id, f"?at={start.id}")
        row = f"tr[data-n='{start.id}'][aria-current=true]"
        b.wait(row, "ToolEnd")
        b.wait(row, "TOOL_CALL_RESULT")
        b.wait(row, "updateDataModel")
        b.click("button", "AG-UI")
        b.do("await page.waitForURL(/dialect=ag-ui/)")
        b.wait(row, "TOOL_CALL_RESULT")
        equal(b.do(f"return page.locator({json.dumps(row)}).getByText('ToolEnd').count()"), 0)
        b.shot("replay-light-1280")
        b.goto(f"{s.url}/ui/replay")
        b.do("await page.getByRole('link', {name: 'tools', exact: true}).click()")
        b.wait("tr[aria-current=true]", "RunStart")
        b.do("await page.locator('input[type=range]').focus(); await page.keyboard.press('End')")
        b.wait(".replay-left", "Succeeded")
        b.wait("tr[aria-current=true]", "RunDone")
        b.click("button", "Play as a run")
        b.do("await page.waitForURL(/ui.runs/)")


@test("page_f11_compare_finds_the_first_difference", "")
def compare():
    with Browser() as b, Server() as s:
        one = s.create("tools", call("math.evaluate", expression="6*7"))
        two = s.create("tools", call("math.evaluate", expression="6*8"))
        same = s.create("tools", call("math.evaluate", expression="6*7"))
        for r in (one, two, same):
            s.finish(r)
        b.enter(s)
        b.goto(f"{s.url}/ui/replay/{one}?with={two}")
        b.wait(".replay-compare", "first difference at #1")
        b.wait(".replay-diff", "6*8")
        b.goto(f"{s.url}/ui/replay/{one}?with={same}")
        b.wait(".replay-compare", "the same in all")
        b.goto(f"{s.url}/ui/runs")
        b.do("for (const i of [0, 1]) await page.getByRole('checkbox', {name: /Select tool/}).nth(i).check()")
        b.click("button", "Compare")
        b.do("await page.waitForURL(/with=/)")
        b.wait(".replay-compare", "first difference")


@test("page_replay_on_a_phone", "")
def phone():
    with Browser(phone=True, dark=True) as b, Server() as s:
        run_id = s.create("tools", TOOLS)
        s.finish(run_id)
        b.enter(s)
        open_replay(b, s, run_id, "?at=30")
        b.wait("[data-moment='30']")
        b.shot("replay-dark-360")
        equal((b.do(WIDER), b.axe()), ([], []))
        check(b.count("thead th") == 2, "one dialect at a time")


main()
