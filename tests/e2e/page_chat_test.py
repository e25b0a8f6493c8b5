#!/usr/bin/env python3
"""The conversation of the page in a real browser: said, streamed, stopped, reloaded, cut off, shared by two tabs."""
# time limit: 300 s, a browser is started for each test
import json

from lib import Provider, Server, check, equal, main, test
from lib.browser import Browser
from lib.web import free_port

STOP = "await page.getByRole('button', {name: 'Stop', exact: true}).click()"


@test("page_talks_and_shows_a_run_live", "UI-01 UI-02 UI-03")
def live():
    with Browser() as b, Server() as s:
        b.chat(s)
        check(b.do("return page.getByRole('button', {name: 'Send'}).isDisabled()"))
        b.say("demo", "hello")
        b.ended(1)
        equal(b.texts(".mine-text"), ["hello"])
        check(b.texts(".answer")[0].startswith('You wrote: "hello" (turns before this one: 0)'), b.texts(".answer"))
        check(b.texts(".reasoning p")[0].startswith('The user wrote "hello".'))
        equal(b.do("return page.locator('.reasoning').evaluate((e) => e.open)"), False)  # folded, apart from the answer
        b.say("demo", "again\nand again")
        b.ended(2)
        check("(turns before this one: 1)" in b.texts(".answer")[1], "the conversation goes on")
        answers = b.texts(".answer")
        session = s.http.get("/api/sessions").json["sessions"][0]["session_id"]
        equal(b.do("return page.url()"), f"{s.url}/ui/c/{session}")
        b.do("await page.reload()")
        b.ended(2)
        b.do("await page.waitForFunction(() => document.querySelectorAll('.mine-text').length === 2)")
        equal((b.texts(".mine-text"), b.texts(".answer")), (["hello", "again\nand again"], answers))
        b.do("await page.waitForFunction(() => document.title === 'hello · UAR')")
        equal(b.texts("[data-spoken]"), [""])  # what is old is no news
        equal(len(set(b.do("return page.locator('article.run').evaluateAll((all) => all.map((e) => e.dataset.run))"))), 2)


@test("page_goes_on_after_kill_9", "UI-01")
def killed():
    with Browser() as b, Provider() as p, \
            Server(env=p.env("gate:thinks"), listen=f"127.0.0.1:{free_port()}") as s:
        b.chat(s)
        b.say("assistant", "survive this")
        b.wait(".answer", "before")
        s.kill()
        b.wait(".ending", "Reconnecting")
        b.wait(".banner", "Reconnecting")
        p.release()
        s.start()
        b.ended(1)
        run = s.http.get("/api/runs").json["runs"][0]["run_id"]
        calls = [e for e in s.session_events(run) if e.data["type"] == "model.requested"]
        equal(len(calls), 2, "the call was cut off and made again")
        equal(b.texts(".answer"), ["before after"])
        equal(len(b.texts(".reasoning")), 1)
        b.wait(".cutline", "Server restarted")
        b.wait(".superseded", "characters no longer count")
        b.say("echo", "and on")
        b.ended(2)


@test("page_reloads_in_the_middle_and_two_tabs_show_the_same", "UI-01")
def reloads():
    with Browser() as b, Provider() as p, Server(env=p.env("gate")) as s:
        b.chat(s)
        b.say("assistant", "slowly")
        b.wait(".answer", "before")
        b.do("await page.waitForURL(/\\/ui\\/c\\/./); await page.reload()")
        b.wait(".answer", "before")
        b.do("""globalThis.second = await page.context().newPage();
                await second.addInitScript((t) => sessionStorage.setItem('uar.token', t), await page.evaluate(() => sessionStorage.getItem('uar.token')));
                await second.goto(page.url())""")
        b.wait(".answer", "before", page="second")
        p.release()
        b.ended(1)
        b.do("await second.locator('.ending-words', {hasText: /^Done/}).waitFor()")
        equal((b.texts(".answer"), b.texts(".answer", page="second")), (["before after"],) * 2)
        b.do("await second.locator('#message').fill('from the other tab'); await second.getByLabel('Agent', {exact: true}).selectOption('echo'); await second.locator('#message').press('Enter')")
        b.ended(2)
        equal(b.texts(".answer")[1:], ["from the other tab"])
        b.do("await second.close()")


@test("page_sends_what_was_said_while_the_server_was_away", "")
def said_away():
    with Browser() as b, Server(listen=f"127.0.0.1:{free_port()}") as s:
        b.chat(s)
        b.say("echo", "before")
        b.ended(1)
        s.kill()
        words = ["first", "second", "third"]
        for i, word in enumerate(words):
            b.say("echo", word)
            b.do(f"await page.locator('.ending-words', {{hasText: 'Sending'}}).nth({i}).waitFor()")
        equal(b.texts(".mine-text"), ["before", *words])
        b.do("await page.locator('.rail').getByRole('link', {name: 'New chat'}).click()")  # looks at something else meanwhile
        b.say("echo", "elsewhere")
        b.wait(".ending", "Sending")
        s.start()
        b.ended(1)
        equal(b.texts(".answer"), ["elsewhere"])
        b.do("await page.locator('.rail-talk a', {hasText: 'before'}).click()")
        b.ended(4)
        equal((b.texts(".mine-text"), b.texts(".answer")), (["before", *words],) * 2)
        equal(len(s.http.get("/api/runs").json["runs"]), 5)


@test("page_gives_back_what_was_refused", "")
def not_taken():
    refusal = {"status": 413, "contentType": "application/problem+json",
               "body": json.dumps({"code": "PAYLOAD_TOO_LARGE", "detail": "too much"})}
    with Browser() as b, Server() as s:
        b.chat(s)
        b.do(f"await page.route('**/api/runs', (r) => r.request().method() === 'POST' ? r.fulfill({json.dumps(refusal)}) : r.continue())")
        b.say("echo", "a long story")
        b.wait(".ending[data-state=bad]", "Not sent. PAYLOAD_TOO_LARGE: too much")
        equal((b.texts(".mine-text"), b.texts("[data-spoken]")), (["a long story"], ["Not sent: too much"]))
        b.do("await page.waitForFunction(() => document.getElementById('message').value === 'a long story')")
        equal(b.count(".stop"), 0)
        b.do("await page.unroute('**/api/runs'); await page.locator('#message').press('Enter')")
        b.ended(1)
        equal(b.texts(".answer"), ["a long story"])


@test("page_b11_stops", "UI-01")
def stops():
    with Browser() as b, Provider() as p, Server(env=p.env("gate:thinks")) as s:
        b.chat(s)
        b.say("assistant", "stop me")
        b.wait(".answer", "before")
        b.do("await page.waitForFunction(() => document.title === 'Running · stop me · UAR')")
        b.hold("**/cancel")
        b.do("await page.getByRole('button', {name: 'Stop', exact: true}).press('Enter'); await asked")
        b.wait(".stop", "Stopping")
        equal(b.count(".ending-words:text('Cancelled')"), 0)  # nothing is over before the server has said so
        b.do("go()")
        b.ended(1, "Cancelled")
        equal((b.count(".stop"), [a.strip() for a in b.texts(".answer")]), (0, ["before"]))
        check(b.do("return page.locator('#message').evaluate((e) => e === document.activeElement)"), "the focus is not lost")
        record = s.http.get("/api/runs").json["runs"][0]
        equal((record["status"], record["cancel_reason"]), ("canceled", "cancelled on the page"))


@test("page_stops_also_what_is_not_on_the_screen", "")
def stops_elsewhere():
    refusal = {"status": 409, "contentType": "application/problem+json", "body": json.dumps({"code": "CONFLICT", "detail": "not now"})}
    with Browser() as b, Provider() as p, Server(env=p.env("gate")) as s:
        b.chat(s)
        b.say("assistant", "stop me")
        b.wait(".answer", "before")
        run = s.http.get("/api/runs").json["runs"][0]["run_id"]
        b.do(f"await page.route('**/cancel', (r) => r.fulfill({json.dumps(refusal)}))")
        b.do(STOP)
        b.wait(".toast", "not now (CONFLICT)")
        b.do("await page.getByRole('button', {name: 'Stop', exact: true}).waitFor(); await page.unroute('**/cancel')")  # it can be tried again
        b.do("await page.route('**/cancel', (r) => r.abort())")  # the network is away
        lost = "page.waitForEvent('requestfailed', (r) => r.url().endsWith('/cancel'))"
        b.do(f"globalThis.lost = {lost}; {STOP}; await lost")
        b.do("await page.locator('.rail').getByRole('link', {name: 'New chat'}).click()")
        b.say("echo", "meanwhile")
        b.ended(1)
        b.do("await Promise.all([page.waitForResponse('**/cancel'), page.unroute('**/cancel')])")
        s.events(run)
        equal(s.record(run)["status"], "canceled")
        equal(b.texts(".ending-words"), ["Done"])  # and nothing of the other run


@test("page_says_that_an_answer_was_cut", "")
def cut_short():
    for reason, words in (("length", "Done, but cut: the model came to the limit of its output"), ("constructor", "Done")):
        with Browser() as b, Provider() as p, Server(env=p.env("ends:" + reason)) as s:
            b.chat(s)
            b.say("assistant", "tell me all")
            b.ended(1)
            equal((b.texts(".answer")[0].strip(), b.texts(".ending-words")), ("This is not", [words]))


main()
