#!/usr/bin/env python3
"""The list of runs in a browser: filters in the address, groups of attempts, many at once."""
import json

from lib import FIXTURES, Server, check, equal, main, test, wait_until
from lib.browser import SMALL, WIDER, Browser

ROWS = "[role=row][data-run]"
SLOW = {"UAR_SCRIPTED_TOKEN_MS": "60000"}


def fail(s):
    run_id = s.create("fixture", None, inputs={"fixture": "failure", "pace": "full"})
    s.finish(run_id)
    return run_id


def titles(b):
    return b.texts(f"{ROWS} .runs-title > a")


@test("page_f1_filters_combine_and_survive_a_reload", "")
def filters():
    with Browser() as b, Server(fixtures_dir=FIXTURES) as s:
        for i in range(3):
            s.finish(s.create("echo", f"apple number {i}"))
        s.finish(s.create("demo", "pear of the demo"))
        fail(s)
        b.enter(s)
        b.goto(s.url + "/ui/runs")
        b.wait(ROWS, "apple number 2")
        equal(b.count(ROWS), 5)
        equal(titles(b)[1:], ["pear of the demo", "apple number 2", "apple number 1", "apple number 0"])
        b.click("tab", "Succeeded")
        b.do(f"await page.waitForFunction(() => document.querySelectorAll({json.dumps(ROWS)}).length === 4)")
        b.do("await page.getByRole('searchbox', {name: 'Words of the message or the answer'}).fill('apple')")
        b.do(f"await page.waitForFunction(() => document.querySelectorAll({json.dumps(ROWS)}).length === 3)")
        b.do("await page.locator('.runs-filters').getByRole('button', {name: 'Agent', exact: true}).click()")
        b.click("menuitem", "Echo")
        b.wait(".runs-choice[data-set]", "Agent: Echo")
        b.click("button", "What was asked")
        b.do("await page.waitForURL(/sort=-title/)")
        b.click("button", "What was asked")
        b.do("await page.waitForURL(/sort=title/)")
        b.do(f"await page.waitForFunction(() => document.querySelector('{ROWS} .runs-title > a')?.textContent === 'apple number 0')")
        url = b.do("return page.url()")
        for part in ("state=succeeded", "q=apple", "agent=echo", "sort=title"):
            check(part in url, url)
        b.do("await page.reload()")
        b.wait(ROWS, "apple number 2")
        equal(titles(b), ["apple number 0", "apple number 1", "apple number 2"])
        equal(b.do("return page.getByRole('searchbox').first().inputValue()"), "apple")
        b.click("button", "Without agent")
        b.do("await page.waitForURL((u) => !u.search.includes('agent'))")
        b.do("await page.getByRole('searchbox', {name: 'Words of the message or the answer'}).fill('nothing like it')")
        b.wait(".empty", "No run fits these filters")
        b.click("button", "Show all runs")
        b.click("tab", "Failed")
        b.wait(ROWS)
        equal(b.count(ROWS), 1)
        b.do("await page.getByRole('searchbox', {name: 'Error code'}).fill('NO_SUCH_CODE')")
        b.wait(".empty", "No run fits these filters")
        equal(b.axe(), [])


@test("page_runs_change_by_themselves", "UI-16")
def live():
    with Browser() as b, Server(env=SLOW) as s:
        b.enter(s)
        b.goto(s.url + "/ui/runs")
        b.wait(".empty", "No run yet")
        run_id = s.create("demo", "a slow one")
        b.wait(ROWS, "Running")
        b.do("await page.getByRole('tab', {name: 'Running 1'}).waitFor()")
        s.cancel(run_id)
        s.finish(run_id)
        b.wait(ROWS, "Cancelled")
        equal(b.count(ROWS), 1)


@test("page_runs_group_attempts_by_their_root", "UI-13 UI-14")
def attempts():
    with Browser() as b, Server(fixtures_dir=FIXTURES) as s:
        first = fail(s)
        a = s.http.post(f"/api/runs/{first}/retry", {})
        check(a.status in (200, 201, 202), a.body)
        second = a.json["run_id"]
        s.finish(second)
        other = s.create("echo", "beside")
        s.finish(other)
        b.enter(s)
        b.goto(s.url + "/ui/runs")
        b.wait(ROWS, "beside")
        equal(b.do(f"return page.locator({json.dumps(ROWS)}).evaluateAll((all) => all.map((e) => e.dataset.run))"), [other, second])
        b.click("button", "2 attempts")
        b.wait("[data-child]", "Attempt 2")
        equal(b.do("return page.locator('[data-child]').evaluateAll((all) => all.map((e) => e.dataset.run))"), [first, second])
        b.do("await page.locator('[data-child] .err').first().waitFor()")  # the failed attempt stays, with its reason


@test("page_f3_bulk_cancel_asks_once_and_reports_each", "")
def bulk():
    with Browser() as b, Server(env=SLOW) as s:
        runs = [s.create("demo", f"slow {i}") for i in range(3)]
        b.enter(s)
        b.goto(s.url + "/ui/runs")
        for i in range(3):
            b.do(f"await page.getByRole('checkbox', {{name: 'Select slow {i}'}}).check()")
        s.cancel(runs[0])  # by another meanwhile
        s.finish(runs[0])
        b.do("await page.getByRole('toolbar').getByRole('button', {name: 'Cancel'}).click()")
        b.do("await page.getByRole('dialog', {name: 'Cancel 3 runs'}).waitFor()")
        equal([s.record(r)["cancel_requested"] for r in runs], [True, False, False])
        b.click("button", "Cancel 3 runs")
        b.do("await page.getByRole('dialog').getByRole('button', {name: 'Close'}).last().click()")
        for r in runs:
            s.finish(r)
            equal(s.record(r)["status"], "canceled")
        b.do(f"await page.waitForFunction(() => [...document.querySelectorAll({json.dumps(ROWS)})].every((r) => r.textContent.includes('Cancelled')))")


@test("page_runs_go_beyond_the_first_page", "")
def paging():
    with Browser() as b, Server() as s:
        for i in range(260):
            s.create("echo", f"run {i:03}")
        wait_until(lambda: s.http.get("/api/runs?status=succeeded&count=1&limit=1").json["total"] == 260, "all ended")
        b.enter(s)
        b.goto(s.url + "/ui/runs")
        b.wait(ROWS, "run 259")
        check(b.count(ROWS) < 100, "only what is shown is drawn")
        b.do("""await page.waitForFunction(() => { const e = document.querySelector('.runs-table .scroll'); e.scrollTop = e.scrollHeight;
                return [...document.querySelectorAll('[data-run]')].some((r) => r.textContent.includes('run 000')); })""")
        b.do("await page.keyboard.press('Escape')")


@test("page_runs_on_a_phone_and_in_the_dark", "")
def phone():
    with Server(fixtures_dir=FIXTURES) as s:
        fail(s)
        s.finish(s.create("echo", "a title that is rather long for the width of a phone, to see that it is cut"))
        with Browser(phone=True, dark=True) as b:
            b.enter(s)
            b.goto(s.url + "/ui/runs")
            b.wait(ROWS, "a title")
            equal((b.do(WIDER), b.do(SMALL), b.axe()), ([], [], []))
            b.shot("runs-dark-360")
        with Browser(width=1440, height=900) as b:
            s.link = s.url + "/#code=" + s.http.post("/api/links", {}).json["code"]
            b.enter(s)
            b.goto(s.url + "/ui/runs")
            b.wait(ROWS, "a title")
            b.shot("runs-light-1440")


main()
