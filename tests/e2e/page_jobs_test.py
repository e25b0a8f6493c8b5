#!/usr/bin/env python3
"""Child agents and jobs in a browser: who was started by whom, the items of a job, doing one again, cancelling."""
# time limit: 300 s, browsers are started
from lib import Server, check, equal, main, test, wait_until
from lib.browser import Browser

ASK = 'tool fs.write {"path": "a.txt", "text": "x"}'


def command(s, name, **body):
    a = s.http.post("/api/control/" + name, body)
    equal(a.status, 200, (name, a.body))
    return a.json["result"]


def has_none(s, b):
    """A server without jobs and child agents offers none."""
    if s.http.post("/api/control/list_jobs", {}).status == 200:
        return False
    b.enter(s)
    b.do("await page.locator('.rail').getByRole('link', {name: 'Runs'}).waitFor()")
    equal(b.do("return page.locator('.rail').getByRole('link', {name: 'Jobs'}).count()"), 0)
    return True


def state(s, job):
    return command(s, "get_job", job_id=job)["job"]["status"]


@test("page_child_agents_stand_below_those_that_started_them", "")
def children():
    with Browser() as b, Server() as s:
        if has_none(s, b):
            return
        run = s.create("echo", "the parent")
        s.finish(run)
        parent = s.record(run)
        b.enter(s)
        b.goto(f"{s.url}/ui/runs/{run}")
        b.do("await page.getByRole('tab', {name: 'Evidence'}).waitFor()")
        equal(b.do("return page.getByRole('tab', {name: 'Child agents'}).count()"), 0)  # nothing is offered where there is nothing
        ann = command(s, "spawn_subagent", thread_id=parent["conversation_id"], agent_id="echo", message="dig", nickname="Ann")["subagent"]
        command(s, "wait_subagents", subagent_ids=[ann["subagent_id"]], timeout_ms=30000)
        command(s, "spawn_subagent", thread_id=ann["child_thread_id"], agent_id="tools", message=ASK, nickname="Ben")
        b.click("tab", "Child agents")
        b.wait(".children .child", "Ben")
        b.wait(".children .child", "Waits for you")
        b.wait(".card > li > .child", "Ann")
        b.looks("run-children", small=False)
        equal(b.texts(".rail-talk .cut:first-child"), ["the parent"])  # theirs are found here, not among what people began
        b.click("link", "Run of Ann")
        b.do("await page.waitForURL(/runs\\/[^/]+$/)")
        check(run not in b.do("return page.url()"), "it is the run of the child")


@test("page_jobs_show_items_and_do_one_again", "")
def jobs():
    with Browser() as b, Server() as s:
        if has_none(s, b):
            return
        schema = {"type": "object", "required": ["n"]}
        job = command(s, "create_job", agent_id="echo", instruction="Give back a number", items=[f"item {i}" for i in range(3)], output_schema=schema)["job"]["job_id"]
        long = command(s, "create_job", agent_id="tools", instruction=ASK, items=["a", "b", "c"], concurrency=1)["job"]["job_id"]
        wait_until(lambda: state(s, job) in ("failed", "completed"), "the first job is over")
        b.enter(s)
        b.do("await page.locator('.rail').getByRole('link', {name: 'Jobs'}).waitFor()")  # it comes once the server has said that it has jobs
        b.do("await page.keyboard.press('g'); await page.keyboard.press('j')")
        b.do("await page.getByRole('list', {name: 'Jobs'}).getByRole('link').nth(1).waitFor()")
        b.do("await page.getByRole('list', {name: 'Jobs'}).getByRole('link', {name: /Give back a number/}).click()")
        b.do("await page.getByRole('list', {name: 'Items'}).getByRole('listitem').nth(2).waitFor()")
        b.looks("jobs", small=False)
        b.click("button", "Do item 2 again")
        b.wait("[data-item='1'] .badge", "attempt 2")
        equal(b.count("[data-item='0'] .badge"), 0)  # that one alone
        b.goto(f"{s.url}/ui/jobs/{long}")
        b.click("button", "/^Cancel/")
        b.click("button", "Cancel the job")
        b.wait(".split-head .state", "Cancelled")
        equal(state(s, long), "cancelled")
        b.goto(f"{s.url}/ui/jobs?status=cancelled")
        b.do("await page.getByRole('list', {name: 'Jobs'}).getByRole('link').first().waitFor()")
        equal(b.do("return page.getByRole('list', {name: 'Jobs'}).getByRole('link').count()"), 1)


main()
