#!/usr/bin/env python3
"""The conversation of the page, further: addresses, scrolling, the queue, names, long ones, parts that come late."""
import json

from lib import FIXTURES, Provider, Server, check, equal, main, test, text_of
from lib.browser import WIDER, Browser


@test("page_goes_where_the_address_says", "")
def addresses():
    with Browser() as b, Server() as s:
        b.chat(s)
        for word in ("one", "two"):
            b.do("await page.locator('.rail').getByRole('link', {name: 'New chat'}).click()")
            b.say("echo", word)
            b.ended(1)
            b.do("await page.waitForURL(/\\/ui\\/c\\/./)")
        two, one = (r["session_id"] for r in s.http.get("/api/runs").json["runs"])
        b.do("await page.locator('.rail-talk a', {hasText: 'one'}).click()")
        b.wait(".answer", "one")
        equal(b.do("return page.url()"), f"{s.url}/ui/c/{one}")
        b.do("await page.goBack()")
        b.wait(".answer", "two")
        b.do("await page.goForward()")
        b.wait(".answer", "one")
        equal(b.texts(".answer"), ["one"])
        b.goto(f"{s.url}/ui/c/{two}")
        b.wait(".answer", "two")
        b.goto(f"{s.url}/ui/c/gone")
        b.wait(".problem", "NOT_FOUND")
        b.do("await page.locator('.flow').getByRole('link', {name: 'New chat'}).click()")
        b.say("echo", "three")  # one can go on from there
        b.ended(1)
        equal(b.texts(".answer"), ["three"])


@test("page_keeps_conversations_apart", "UI-13")
def apart():
    with Browser() as b, Server() as s:
        one, two = (s.create("echo", word) for word in ("one", "two"))
        sessions = [s.record(r)["session_id"] for r in (one, two)]
        b.enter(s)
        for held in (f"runs?limit=20&session_id={sessions[0]}", f"runs/{one}/stream?meta=1", f"runs/{one}/events?limit=1&types=turn.submitted"):
            b.hold("**/api/" + held)
            b.do("await page.locator('.rail-talk a', {hasText: 'one'}).click(); await asked")
            b.do("await page.locator('.rail-talk a', {hasText: 'two'}).click()")
            b.do("go()")
            b.wait(".answer", "two")
            b.wait(".mine-text", "two")
            equal((b.texts(".answer"), b.texts(".mine-text")), (["two"],) * 2)
        b.say("echo", "and on")
        b.ended(2)
        equal(s.http.get("/api/runs").json["runs"][0]["session_id"], sessions[1])


# An answer that is gone when the scroll is seen, and back before the frame is painted.
GONE_AND_BACK = """await page.evaluate(() => new Promise((done) => {
    const box = document.querySelector('.thread'), answer = document.querySelector('.answer');
    box.addEventListener('scroll', () => { answer.style.display = ''; requestAnimationFrame(() => requestAnimationFrame(done)); }, {once: true});
    answer.style.display = 'none'; }))"""
AT_END = "((e) => e.scrollHeight - e.scrollTop - e.clientHeight < 80)(document.querySelector('.thread'))"


@test("page_b6_stays_at_the_end_with_who_reads_it", "")
def at_end():
    with Browser() as b, Provider() as p, Server(env=p.env("gate")) as s:
        b.chat(s)
        b.say("echo", "many words " * 800)
        b.ended(1)
        for width, height in ((390, 600), (1280, 800)):
            b.do(f"await page.setViewportSize({{width: {width}, height: {height}}})")
            b.do(f"await page.waitForFunction(() => {AT_END} && !document.querySelector('.latest'))")
        b.do(GONE_AND_BACK)
        b.do(f"await page.waitForFunction(() => {AT_END} && !document.querySelector('.latest'))")
        b.say("assistant", "and more")
        b.wait(".answer", "before")
        b.do("await page.locator('.thread').hover(); await page.mouse.wheel(0, -20000)")
        b.do("await page.getByRole('button', {name: 'Jump to latest'}).waitFor()")
        b.do("await page.waitForFunction(() => document.querySelector('.thread').scrollTop === 0)")
        p.release()
        b.do("await page.locator('.ending-words', {hasText: /^Done/}).nth(1).waitFor({state: 'attached'})")
        equal(b.do("return page.locator('.thread').evaluate((e) => e.scrollTop)"), 0)  # who reads above stays there
        b.do("await page.getByRole('button', {name: 'Jump to latest'}).click()")
        b.do(f"await page.waitForFunction(() => {AT_END} && !document.querySelector('.latest'))")


@test("page_b1_offers_something_to_who_is_new", "")
def new_here():
    with Browser() as b, Server(fixtures_dir=FIXTURES) as s:
        b.enter(s)
        b.click("button", "Talk to the demo")
        b.click("button", "Say hello to the demo")
        b.ended(1)
        equal(b.texts(".mine-text"), ["Hello"])
        b.wait(".rail-talk a", "Hello")
        b.do("await page.locator('.rail').getByRole('link', {name: 'New chat'}).click()")
        b.wait(".empty", "What shall be done?")
        b.choose("Agent", "fixture")
        equal(b.do("return page.locator('#message').getAttribute('placeholder')"), "The recording is replayed as it was.")
        b.choose("Agent", "tools")
        b.do("await page.getByPlaceholder('Say something').waitFor()")


@test("page_shows_accepted_and_preparing_and_the_queue", "UI-16")
def queue():
    with Browser() as b, Provider() as p, Server(env=p.env("gate")) as s:
        b.chat(s)
        b.hold("**/api/runs", "r.continue()")
        b.do("await page.locator('#message').fill('first'); await page.getByLabel('Agent', {exact: true}).selectOption('assistant'); await page.locator('#message').press('Enter'); await asked")
        b.wait(".ending-words", "Sending")
        b.hold("**/stream?meta=1")
        b.do("globalThis.send = go; const was = asked; send(); await was")
        b.wait(".ending-words", "Accepted")  # the server has it, nothing was said yet
        b.do("go()")
        b.wait(".answer", "before")
        b.say("echo", "second")
        b.wait(".queue", "second")
        b.say("echo", "third")
        b.wait(".queue li", "third")
        equal(b.texts(".queue .grow.cut"), ["second", "third"])
        b.do("await page.locator('.queue li', {hasText: 'third'}).getByRole('button', {name: 'Move to the front'}).click()")
        b.do("await page.waitForFunction(() => document.querySelector('.queue li:nth-child(2)')?.textContent.includes('third'))")
        b.do("await page.locator('.queue li', {hasText: 'second'}).getByRole('button', {name: 'Remove from the queue'}).click()")
        b.do("await page.waitForFunction(() => document.querySelectorAll('.queue li').length === 2)")
        p.release()
        b.ended(2)
        b.ended(1, "Cancelled")
        equal(b.texts(".answer")[-1:], ["third"])


@test("page_b13_renames_archives_and_exports", "")
def renames():
    with Browser() as b, Server() as s:
        b.chat(s)
        b.say("echo", "a first message")
        b.ended(1)
        b.click("button", "Rename")
        b.do("await page.getByLabel('Title').fill('A better name'); await page.getByLabel('Title').press('Enter')")
        b.wait(".top h1", "A better name")
        b.wait(".rail-talk", "A better name")
        b.do("await page.locator('.talk .top').getByRole('button', {name: 'More'}).click()")
        b.do("globalThis.saved = page.waitForEvent('download'); await page.getByRole('menuitem', {name: 'Export as Markdown'}).click()")
        name, text = b.do("const d = await saved; const fs = await import('node:fs'); return [d.suggestedFilename(), fs.readFileSync(await d.path(), 'utf8')]")
        equal(name, "A better name.md")
        check("a first message" in text, text)
        b.do("await page.locator('.talk .top').getByRole('button', {name: 'More'}).click(); await page.getByRole('menuitem', {name: 'Delete…'}).click()")
        b.wait("dialog", "a log that is only added to")  # what it can mean is said, and nothing else is done
        b.click("button", "Leave it as it is")
        b.do("await page.locator('dialog').waitFor({state: 'detached'})")
        equal(s.http.get("/api/sessions?status=archived").json["sessions"], [])
        b.do("await page.locator('.talk .top').getByRole('button', {name: 'More'}).click(); await page.getByRole('menuitem', {name: 'Delete…'}).click()")
        b.click("button", "Archive it")
        b.do("await page.locator('.rail-talk a').waitFor({state: 'detached'})")
        equal(s.http.get("/api/sessions?status=archived").json["sessions"][0]["title"], "A better name")


@test("page_b5_opens_a_long_conversation_backwards", "")
def long_talk():
    with Browser() as b, Server() as s:
        first = s.create("echo", "turn 0")
        s.events(first)
        talk = s.record(first)["conversation_id"]
        for i in range(1, 60):
            s.events(s.http.post("/api/runs", {"agent_id": "echo", "conversation_id": talk, "inputs": {"message": f"turn {i}"}}).json["run_id"])
        b.enter(s)
        b.goto(f"{s.url}/ui/c/{s.record(first)['session_id']}")
        b.wait(".answer", "turn 59")
        equal(b.count("article.run"), 20)
        b.do("""await page.locator('.thread').hover();
                while (await page.locator('article.run').count() < 60) {
                    await page.mouse.wheel(0, -20000);
                    await page.evaluate(() => new Promise(requestAnimationFrame));
                }""")
        b.do("await page.waitForFunction(() => document.querySelectorAll('.mine-text').length === 60)")
        equal(b.texts(".mine-text"), [f"turn {i}" for i in range(60)])


@test("page_with_the_token_talks", "SEC-01")
def token():
    with Browser() as b, Server() as s:
        b.goto(s.url + "/ui/c")
        b.do(f"await page.locator('#token').fill({json.dumps(s.token)})")
        b.click("button", "Sign in")
        b.say("echo", "hello")
        b.ended(1)
        equal(b.texts(".answer"), [text_of(s.events(s.http.get("/api/runs").json["runs"][0]["run_id"]))])
        equal(b.do(WIDER), [])


@test("page_waits_for_parts_that_do_not_come", "")
def late_parts():
    with Browser() as b, Server() as s:
        b.chat(s)
        b.do("await page.route('**/page/Markdown-*', (r) => r.abort())")
        b.say("echo", "**strong**")
        b.ended(1)
        equal(b.texts(".answer"), ["**strong**"])  # readable, and no screen that failed
        b.do("await page.unroute('**/page/Markdown-*')")
        b.wait(".answer strong", "strong")


main()
