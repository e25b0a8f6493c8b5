#!/usr/bin/env python3
"""Sessions, threads and tasks in a browser: the tree, dependencies, attempts, and what may be done."""
# time limit: 300 s, four browsers look at every view
import json

from lib import FIXTURES, Server, check, equal, main, test, wait_until
from lib.browser import Browser

ROW = ".tasks-tree [role=treeitem]"


def command(s, name, **body):
    a = s.http.post("/api/control/" + name, body)
    equal(a.status, 200, (name, a.body))
    return a.json["result"]


def made(s, objective, **more):
    return command(s, "create_task", objective=objective, agent_id="echo", input={"message": objective}, **more)["task"]


def state(s, task_id):
    return s.http.get("/api/tasks/" + task_id).json["task"]["status"]


def three(s):
    """First blocks second, second has a child."""
    first = made(s, "Find the cause")
    sid = first["session_id"]
    command(s, "update_session", session_id=sid, title="Checkout incident")
    second = made(s, "Write the migration", session_id=sid)
    child = made(s, "Write the note", session_id=sid, parent_task_id=second["task_id"])
    command(s, "link_tasks", **{"from": first["task_id"], "to": second["task_id"], "kind": "blocks"})
    return sid, first["task_id"], second["task_id"], child["task_id"]


def again(s, b):
    s.link = s.url + "/#code=" + s.http.post("/api/links", {}).json["code"]
    b.enter(s)


@test("page_tasks_are_a_tree_with_what_they_wait_for", "")
def tree():
    with Browser() as b, Server() as s:
        sid, first, second, child = three(s)
        b.enter(s)
        b.do("await page.keyboard.press('g'); await page.keyboard.press('t')")
        b.do("await page.getByRole('treeitem', {name: /Checkout incident/}).click()")
        b.wait(ROW, "Write the note")
        equal(b.do(f"return page.locator({json.dumps(ROW)}).evaluateAll((all) => all.map((e) => [e.ariaLevel, e.dataset.id]))"),
              [["1", sid], ["2", first], ["2", second], ["3", child]])
        b.do(f"await page.locator('[role=treeitem][data-id=\"{second}\"]').click()")
        b.do("await page.getByRole('heading', {name: 'Write the migration', level: 2}).waitFor()")
        b.do("await page.getByRole('list', {name: 'Must end first'}).getByRole('button', {name: /Find the cause/}).first().waitFor()")
        b.wait(".split-head .state", "Blocked")
        equal(b.do("return page.url()"), f"{s.url}/ui/tasks/{sid}?task={second}")
        b.do("await page.reload()")  # the address opens the same
        b.wait(".split-head .state", "Blocked")
        command(s, "start_task", task_id=first)  # by another: this page hears of it
        b.wait(".split-head .state", "Ready to start")
        b.do("await page.getByRole('list', {name: 'Must end first'}).getByRole('button', {name: /Succeeded.*Find the cause/}).waitFor()")
        equal(b.axe(), [])


@test("page_tasks_are_started_paused_cancelled_and_tried_again", "")
def acts():
    with Browser() as b, Server() as s:
        task = made(s, "Do it")["task_id"]
        sid = s.http.get("/api/tasks/" + task).json["task"]["session_id"]
        b.enter(s)
        b.goto(f"{s.url}/ui/tasks/{sid}?task={task}")
        b.click("button", "Pause")
        b.wait(".split-head .state", "Paused")
        equal(state(s, task), "paused")
        b.click("button", "Resume")
        b.wait(".split-head .state", "Ready to start")
        b.hold("**/api/control/start_task")
        b.click("button", "Start")
        b.do("await asked; await page.getByRole('button', {name: 'Starting'}).waitFor()")  # not done before the server says so
        equal(state(s, task), "accepted")
        b.do("go()")
        b.wait(".split-head .state", "Succeeded")
        b.do("await page.locator('tbody tr').first().waitFor()")
        b.click("button", "Retry")
        b.do("await page.locator('tbody tr').nth(1).waitFor()")
        equal(b.texts("tbody tr td:first-child"), ["2", "1"])
        runs = s.http.get(f"/api/runs?task_id={task}").json["runs"]
        equal(sorted(b.do("return page.locator('tbody tr').evaluateAll((all) => all.map((e) => e.dataset.run))")), sorted(r["run_id"] for r in runs))
        b.click("link", "2")
        b.do("await page.waitForURL(/\\/ui\\/runs\\//)")
        other = made(s, "Leave it", session_id=sid)["task_id"]
        below = made(s, "Leave this, too", session_id=sid, parent_task_id=other)["task_id"]
        b.goto(f"{s.url}/ui/tasks/{sid}?task={other}")
        b.wait(".split-head .state", "Ready to start")
        b.do("await page.locator('body').press('x')")
        b.do("await page.getByRole('dialog', {name: 'Cancel Leave it'}).waitFor()")
        equal(state(s, other), "accepted")
        b.click("button", "Cancel the task")
        b.wait(".split-head .state", "Cancelled")
        equal((state(s, other), state(s, below)), ("cancelled", "cancelled"))


@test("page_tasks_refusals_are_in_the_servers_words", "")
def refused():
    with Browser() as b, Server() as s:
        sid, first, second, _ = three(s)
        b.enter(s)
        b.goto(f"{s.url}/ui/tasks/{sid}?task={first}")
        b.do("await page.getByLabel('Wait for another task').waitFor()")
        b.do("await page.route('**/api/control/link_tasks', (r) => r.continue({postData: JSON.stringify({from: '%s', to: '%s', kind: 'blocks'})}))" % (second, first))
        b.do("await page.getByLabel('Wait for another task').selectOption({index: 1})")
        b.wait(".toast[data-kind=err]", "The relation was not made")
        check("CONFLICT" in b.texts(".toast[data-kind=err]")[0], b.texts(".toast"))


@test("page_tasks_new_one_runs_and_is_completed_by_its_facts", "")
def complete():
    with Browser() as b, Server() as s:
        b.enter(s)
        b.goto(s.url + "/ui/tasks")
        b.wait(".empty", "No session yet")
        b.do("await page.locator('.top').getByRole('button', {name: 'New task'}).click()")
        b.do("await page.getByLabel('What shall be reached').fill('Say hello'); await page.getByLabel('Who does it').selectOption('echo')")
        b.click("button", "Make the task")
        b.do("await page.getByRole('heading', {name: 'Say hello', level: 2}).waitFor()")
        b.wait(".split-head .state", "Succeeded")
        task = made(s, "Migrate", acceptance=[{"id": "a", "text": "It runs on an empty database"}])
        command(s, "start_task", task_id=task["task_id"])
        b.goto(f"{s.url}/ui/tasks/{task['session_id']}?task={task['task_id']}")
        b.wait(".split-head .state", "Waits for you")
        b.wait(".item", "Not declared yet")
        b.click("button", "Complete")
        b.do("await page.getByLabel('It runs on an empty database').selectOption('unmet')")
        b.click("button", "Complete the task")
        b.wait(".toast[data-kind=err]", "It was not completed")
        b.do("await page.getByLabel('It runs on an empty database').selectOption('met')")
        b.click("button", "Complete the task")
        b.wait(".split-head .state", "Succeeded")
        equal(state(s, task["task_id"]), "completed")


@test("page_tasks_tree_is_complete_by_keyboard", "")
def keyboard():
    with Browser() as b, Server() as s:
        sid, first, second, child = three(s)
        s.finish(s.create("echo", "a conversation"))
        b.enter(s)
        b.goto(s.url + "/ui/tasks")
        b.wait(ROW, "Checkout incident")
        b.do("await page.getByRole('tree').focus(); await page.keyboard.press('End'); await page.keyboard.press('ArrowRight')")
        b.wait(ROW, "Write the note")
        b.do("for (const k of ['ArrowRight', 'ArrowDown', 'ArrowLeft', 'ArrowRight', 'ArrowRight', 'Enter']) await page.keyboard.press(k)")
        b.do("await page.getByRole('heading', {name: 'Write the note', level: 2}).waitFor()")
        equal(b.do("return page.url()"), f"{s.url}/ui/tasks/{sid}?task={child}")
        equal(b.do("return page.evaluate(() => document.getElementById(document.activeElement.getAttribute('aria-activedescendant')).dataset.id)"), child)


@test("page_tasks_list_filters_by_state_in_the_address", "")
def flat():
    with Browser() as b, Server(fixtures_dir=FIXTURES) as s:
        _, first, second, _ = three(s)
        b.enter(s)
        b.goto(s.url + "/ui/tasks")
        b.do("await page.getByRole('group', {name: 'View'}).getByRole('button', {name: 'Tasks'}).click()")
        b.wait(".split-row", "Write the note")
        equal(b.count(".split-row"), 3)
        b.choose("State", "blocked")
        b.do("await page.waitForFunction(() => document.querySelectorAll('.split-row').length === 1)")
        equal(b.do("return page.url()"), s.url + "/ui/tasks?view=tasks&state=blocked")
        b.do("await page.reload()")
        b.wait(".split-row", "Write the migration")
        b.do("await page.locator('.split-row').click()")
        b.do("await page.getByRole('heading', {name: 'Write the migration', level: 2}).waitFor()")


@test("page_tasks_many_sessions_are_drawn_as_far_as_seen", "")
def many():
    with Browser() as b, Server() as s:
        for i in range(120):
            s.create("echo", f"conversation {i:03}")
        wait_until(lambda: s.http.get("/api/runs?status=succeeded&count=1&limit=1").json["total"] == 120, "all ended")
        b.enter(s)
        b.goto(s.url + "/ui/tasks")
        b.wait(ROW, "conversation 119")
        check(b.count(ROW) < 80, b.count(ROW))
        b.do("""await page.waitForFunction(() => { const e = document.querySelector('.tasks-tree'); e.scrollTop = e.scrollHeight;
                return [...document.querySelectorAll('[role=treeitem]')].some((r) => r.textContent.includes('conversation 000')); })""")


@test("page_tasks_on_a_phone_and_in_both_themes", "")
def looks():
    with Server() as s:
        sid, first, second, _ = three(s)
        command(s, "start_task", task_id=first)
        for phone in (True, False):
            with Browser(phone=phone, dark=phone) as b:
                again(s, b)
                for view, words in ((f"tasks/{sid}?task={second}", "Write the migration"), (f"tasks/{sid}", "Checkout incident"), ("tasks", "Sessions, threads and tasks")):
                    b.goto(f"{s.url}/ui/{view}")
                    role = "heading" if "/" in view else "tree"
                    b.do(f"await page.getByRole('{role}', {{name: {json.dumps(words)}}}).waitFor()")
                    if "task=" in view:
                        b.wait(".tasks-graph")
                    for size in ((360, 740),) if phone else ((2560, 1300), (1280, 800)):
                        b.size(*size)
                        b.looks("task" if "task=" in view else "tasks-of-one" if "/" in view else "tasks")


main()
