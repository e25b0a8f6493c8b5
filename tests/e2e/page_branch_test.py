#!/usr/bin/env python3
"""Conversations on the page: edited and regenerated as branches, searched, archived, exported whole; the queue; permissions."""
# time limit: 300 s, a browser is started for each test
import json

from lib import Provider, Server, check, equal, main, test
from lib.browser import SMALL, WIDER, Browser

WRITES = 'tool fs.write {"path": "note.txt", "text": "kept"}'


def talk(s, *messages, agent="echo"):
    """A conversation of these messages: its session."""
    first = s.create(agent, messages[0])
    s.finish(first)
    record = s.record(first)
    for m in messages[1:]:
        s.finish(s.http.post("/api/runs", {"agent_id": agent, "conversation_id": record["conversation_id"], "inputs": {"message": m}}).json["run_id"])
    return record["session_id"]


def said(b, words):
    b.do(f"await page.waitForFunction((w) => JSON.stringify([...document.querySelectorAll('.mine-text')].map((e) => e.textContent)) === w, {json.dumps(json.dumps(words, separators=(',', ':')))})")


@test("page_edits_a_message_as_a_branch", "")
def edits():
    with Browser() as b, Server() as s:
        session = talk(s, "one", "two", "three")
        b.enter(s)
        b.goto(f"{s.url}/ui/c/{session}")
        said(b, ["one", "two", "three"])
        b.do("await page.locator('.mine', {hasText: 'two'}).hover(); await page.locator('.mine', {hasText: 'two'}).getByRole('button', {name: 'Edit the message'}).click()")
        b.do("await page.getByLabel('Message, edited').fill('two, better'); await page.getByRole('button', {name: 'Send as a branch'}).click()")
        said(b, ["one", "two, better"])
        b.ended(2)
        check("/ui/c/" + session + "/" in b.do("return page.url()"))
        equal(b.texts(".branches .num"), ["2 of 2"])
        b.say("echo", "and on")  # it goes on in the branch
        b.ended(3)
        said(b, ["one", "two, better", "and on"])
        b.do("await page.reload()")
        said(b, ["one", "two, better", "and on"])
        b.click("button", "Version before")  # the old one stays as it was
        said(b, ["one", "two", "three"])
        b.click("button", "Next version")
        said(b, ["one", "two, better", "and on"])
        b.goto(f"{s.url}/ui/c/{session}")  # without a branch: where something was said last
        said(b, ["one", "two, better", "and on"])
        equal((b.axe(), b.do(WIDER)), ([], []))
        b.do("await page.locator('.mine').first().hover(); await page.locator('.mine').first().getByRole('button', {name: 'Edit the message'}).click()")
        b.do("await page.getByLabel('Message, edited').fill('one, again'); await page.getByRole('button', {name: 'Send as a branch'}).click()")
        said(b, ["one, again"])
        equal(len(s.http.get(f"/api/sessions/{session}").json["threads"]["items"]), 3)


@test("page_regenerates_an_answer_as_a_branch", "")
def regenerates():
    with Browser() as b, Server() as s:
        session = talk(s, "hello", "and again", agent="demo")
        b.enter(s)
        b.goto(f"{s.url}/ui/c/{session}")
        b.ended(2)
        b.click("button", "Regenerate the answer")
        b.do("await page.getByRole('group', {name: 'Versions'}).getByText('2 of 2').waitFor()")
        b.ended(2)
        said(b, ["hello", "and again"])
        check("(turns before this one: 1)" in b.texts(".answer")[1], "the branch knows what was said before")
        runs = s.http.get(f"/api/runs?session_id={session}").json["runs"]
        equal((len(runs), len({r["conversation_id"] for r in runs})), (3, 2))  # nothing was overwritten


@test("page_says_why_there_is_no_branch", "")
def no_branch():
    with Browser() as b, Server() as s:
        session = talk(s, "one", "two")
        b.enter(s)
        b.goto(f"{s.url}/ui/c/{session}")
        said(b, ["one", "two"])
        refusal = {"status": 409, "contentType": "application/problem+json", "body": json.dumps({"code": "CONFLICT", "detail": "its agent keeps a history of its own"})}
        b.do(f"await page.route('**/fork_thread', (r) => r.fulfill({json.dumps(refusal)}))")
        b.click("button", "Regenerate the answer")
        b.wait(".toast", "its agent keeps a history of its own (CONFLICT)")
        said(b, ["one", "two"])


@test("page_b12_the_queue_is_reordered_and_edited", "UI-16")
def queue():
    with Browser() as b, Provider() as p, Server(env=p.env("gate")) as s:
        b.chat(s)
        b.say("assistant", "first")
        b.wait(".answer", "before")
        for i, word in enumerate(("a", "b", "c")):
            b.say("echo", word)
            b.do(f"await page.waitForFunction(() => document.querySelectorAll('.queue li').length === {i + 2})")

        def order(*words):
            b.do(f"await page.waitForFunction((w) => [...document.querySelectorAll('.queue .grow.cut')].map((e) => e.textContent).join(' ') === w, {json.dumps(' '.join(words))})")

        def act(word, name):
            b.do(f"await page.locator('.queue li', {{has: page.getByText({json.dumps(word)}, {{exact: true}})}}).getByRole('button', {{name: {json.dumps(name)}}}).click()")
        order("a", "b", "c")
        act("a", "Move down")
        order("b", "a", "c")
        act("c", "Move up")
        order("b", "c", "a")
        act("a", "Move to the front")
        order("a", "b", "c")
        act("b", "Edit in the queue")
        b.do("await page.getByLabel('Message in the queue').fill('b changed'); await page.keyboard.press('Enter')")
        order("a", "b changed", "c")
        act("a", "Remove from the queue")
        order("b changed", "c")
        p.release()
        b.ended(3)
        equal([t.strip() for t in b.texts(".answer")], ["before after", "b changed", "c"])


@test("page_b13_searches_by_words_and_keeps_an_archive", "")
def searches():
    with Browser() as b, Server() as s:
        talk(s, "about apples", "the orchard is closed")
        talk(s, "about pears")
        b.enter(s)
        b.do("await page.locator('.rail').getByRole('link', {name: 'All', exact: true}).click()")
        b.do("await page.getByRole('heading', {name: 'Conversations', level: 1}).waitFor()")
        b.do("await page.waitForFunction(() => document.querySelectorAll('.talks-row').length === 2)")
        equal((b.axe(), b.do(WIDER)), ([], []))
        b.do("await page.getByRole('searchbox').fill('orchard')")  # said in it, not in its title
        b.do("await page.waitForFunction(() => document.querySelectorAll('.talks-row').length === 1)")
        b.wait(".talks-row", "the orchard is closed")
        b.do("await page.reload()")
        b.wait(".talks-row", "the orchard is closed")
        b.do("await page.locator('.talks-row a').click()")
        b.wait(".mine-text", "about apples")
        b.goto(s.url + "/ui/conversations")
        b.do("await page.getByRole('button', {name: 'Archive about pears'}).click()")
        b.do("await page.waitForFunction(() => document.querySelectorAll('.talks-row').length === 1)")
        b.click("button", "Archived")
        b.wait(".talks-row", "about pears")
        b.do("await page.getByRole('button', {name: 'Take about pears out of the archive'}).click()")
        b.wait(".empty", "The archive is empty")
        b.do("await page.keyboard.press('Control+k'); await page.getByRole('combobox', {name: /Search/}).fill('orchard')")
        b.do("await page.getByRole('option', {name: /Search what was said: orchard/}).click()")
        b.wait(".talks-row", "the orchard is closed")


@test("page_exports_a_conversation_whole", "")
def exports():
    with Browser() as b, Server() as s:
        long = "long " * 2000  # its event has the beginning only
        session = talk(s, long, *[f"turn {i}" for i in range(1, 45)])
        b.enter(s)
        b.goto(f"{s.url}/ui/c/{session}")
        b.wait(".answer", "turn 44")

        def export(form):
            b.do("await page.locator('.talk .top').getByRole('button', {name: 'More'}).click()")
            b.do(f"globalThis.saved = page.waitForEvent('download'); await page.getByRole('menuitem', {{name: 'Export as {form}'}}).click()")
            return b.do("const d = await saved; const fs = await import('node:fs'); return [d.suggestedFilename(), fs.readFileSync(await d.path(), 'utf8')]")
        name, text = export("Markdown")
        check(name.endswith(".md"), name)
        check(text.count("## You") == 45 and text.count(long.strip()) == 2, "all turns, said and answered")
        rows = json.loads(export("JSON")[1])
        equal([r["message"].strip() for r in rows][1:], [f"turn {i}" for i in range(1, 45)])
        equal(rows[0]["message"].strip(), long.strip())
        b.do("await page.reload()")
        b.wait(".answer", "turn 44")
        b.do("""await page.locator('.thread').hover(); while (!await page.getByRole('button', {name: 'Show all'}).count()) {
                    await page.mouse.wheel(0, -20000); await page.evaluate(() => new Promise(requestAnimationFrame)); }""")
        b.do("await page.getByRole('button', {name: 'Show all'}).click()")
        b.do(f"await page.waitForFunction(() => document.querySelector('.mine-text').textContent.length === {len(long)})")


@test("page_inbox_lists_permissions_and_takes_them_back", "")
def grants():
    with Browser(phone=True) as b, Server() as s:
        b.enter(s)
        b.goto(s.url + "/ui/c")
        b.say("tools", WRITES)
        b.allow_longer("Allow in this conversation")
        b.ended(1)
        b.do("await page.locator('.bottom').getByRole('link', {name: 'Inbox'}).click()")
        b.wait(".grant", "internal:fs.write")
        equal((b.axe(), b.do(WIDER), b.do(SMALL)), ([], [], []))
        b.do("await page.getByRole('button', {name: 'Take back: internal:fs.write'}).click()")
        b.do("await page.locator('.grant').waitFor({state: 'detached'})")
        equal(s.http.get("/api/grants").json["grants"], [])
        b.do("await page.goBack()")
        b.say("tools", WRITES)
        b.do("await page.getByRole('button', {name: /^Allow once:/}).waitFor()")  # it is asked about again


main()
