#!/usr/bin/env python3
"""Workflows in a browser: one is made on its canvas, checked while it is drawn, saved, run, and watched."""
# time limit: 300 s, browsers are started
from lib import Server, check, equal, main, test, wait_until
from lib.browser import Browser


def stored(s, flow_id):
    return s.http.get(f"/api/workflows/{flow_id}").json


@test("page_a_workflow_is_made_saved_run_and_watched", "WF-01 WF-03")
def made():
    with Browser() as b, Server() as s:
        b.enter(s)
        b.do("await page.locator('.rail').getByRole('link', {name: 'Flows'}).click()")
        b.click("button", "New workflow")
        b.do("await page.getByLabel('Name').fill('Release note')")
        b.click("button", "Make it")
        b.do("await page.waitForURL(/flows\\/release_note/)")
        b.do("await page.locator('.react-flow__node').nth(2).waitFor()")
        equal(stored(s, "release_note")["version"], 1)
        # A node of the palette comes behind the chosen one; what is missing is told at once.
        b.do("await page.locator(\".react-flow__node[data-id='start']\").click()")
        b.click("button", "Add Approval")
        b.do("await page.locator(\".react-flow__node[data-id='approval']\").waitFor()")
        b.do("await page.getByLabel('Question').fill('Send it?')")
        b.do("await page.getByRole('button', {name: /^1 error|^No error|errors/}).waitFor()")
        first = stored(s, "release_note")["definition"]["workflow"]
        equal([n["id"] for n in first["nodes"]], ["start", "answer", "end"])
        b.do("await page.getByRole('button', {name: 'Save', exact: true}).click()")
        wait_until(lambda: stored(s, "release_note")["version"] == 2, "the second version")
        nodes = {n["id"]: n for n in stored(s, "release_note")["definition"]["workflow"]["nodes"]}
        equal(nodes["approval"]["config"]["title"], "Send it?")
        b.looks("flow", small=False)
        b.click("button", "Run")
        b.do("await page.getByRole('dialog').getByLabel(/Message/).fill('Version 2')")
        b.do("await page.getByRole('dialog').getByRole('button', {name: /^Run|^Start/}).click()")
        b.do("await page.waitForURL(/run=/)")
        b.do("await page.locator(\".react-flow__node[data-id='approval']\").filter({hasText: /waits|Answer here/i}).waitFor()")
        b.click("button", "Answer here")
        b.looks("flow-run", small=False)
        run = b.do("return new URL(page.url()).searchParams.get('run')")
        action = s.record(run)["actions"][0]
        check(action["action_id"], action)
        b.do("await page.locator('.flow-panel').getByLabel(/Decision/).selectOption('approve')")
        b.do("await page.locator('.flow-panel').getByRole('button', {name: /Submit|Send|Answer/}).last().click()")
        b.do("await page.locator('.flow-counts').filter({hasText: /^4 done$/}).waitFor()")
        equal(s.finish(run)["status"], "succeeded")
        b.goto(f"{s.url}/ui/runs/{run}")
        b.do("await page.getByRole('tab', {name: 'Graph'}).click()")
        b.do("await page.locator(\".react-flow__node[data-id='approval']\").waitFor()")


main()
