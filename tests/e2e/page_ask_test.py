#!/usr/bin/env python3
"""What an agent asks a person, on the page: permissions and forms, in the conversation and in the inbox, on a phone."""
# time limit: 300 s, a browser is started for each test
import json
import re
import tempfile

from lib import Server, check, equal, main, test
from lib.backends import SAY, TALK, Shop, recording
from lib.browser import SMALL, WIDER, Browser
from lib.web import free_port

WRITES = 'tool fs.write {"path": "note.txt", "text": "kept"}'
SCHEMA = {"type": "object", "required": ["name", "age", "colour"], "properties": {
    "name": {"type": "string", "title": "Your name", "pattern": "^[A-Z]"}, "age": {"type": "integer", "minimum": 0},
    "colour": {"enum": ["red", "blue"]}, "vegan": {"type": "boolean"},
    "tags": {"type": "array", "items": {"type": "string"}}, "password": {"type": "string"},
    "home": {"type": "object", "title": "Home", "properties": {"town": {"type": "string"}}}}}
FORM = "tool ui.form.request " + json.dumps({"title": "Sign <b>up</b>", "schema": SCHEMA})
ALLOW = "await page.getByRole('button', {name: /^Allow once:/}).last().click()"


def deny(b, why=""):
    b.do("await page.getByRole('button', {name: /^Deny:/}).last().click()")
    b.do(f"await page.getByLabel(/Why not/).fill({json.dumps(why)}); await page.getByRole('button', {{name: 'Deny', exact: true}}).click()")


def states(b):
    return b.texts(".thread .ask-state")


@test("page_d6_lets_a_person_decide", "UI-16")
def decides():
    recorded = "dialogue " + recording("claude_code/dialogue_permission_{}.dialogue.jsonl")
    with Browser() as b, Shop({"yes": {"script": [recorded.format("allow")]},
                               "no": {"script": [recorded.format("deny")]}}) as s:
        b.chat(s)
        b.say("yes", "write it")
        b.wait(".question", "hello file")
        b.do(ALLOW)
        b.ended(1)
        b.say("no", "write it")
        b.wait(".question[data-state=pending]", "hello file")
        deny(b, "not today")
        b.ended(2)
        b.do("await page.waitForFunction(() => document.querySelectorAll('.question.settled').length === 2)")
        equal(states(b), ["Allowed once", "Denied"])
        b.do("await page.locator('.question.settled').last().locator('summary').click()")
        b.wait(".question.settled", "Reason: not today")
        b.wait(".question.settled", "by you")
        equal(b.count(".question button"), 0)


@test("page_d5_d7_says_that_a_run_waits", "UI-16")
def waits():
    with Browser() as b, Server() as s:
        b.chat(s)
        b.say("tools", WRITES)
        b.wait(".question .state", "Waits for you")
        b.wait(".ending", "Waits for your answer")
        b.wait(".rail-talk", "Waits for you")
        b.wait(".rail nav .badge", "1")
        equal(b.texts("[data-spoken]"), ["tools asks: fs.write: note.txt"])
        b.do("await page.waitForFunction(() => document.title.startsWith('Waits for you · tool fs.write'))")
        equal(b.texts(".question .facts"), ["Filenote.txt"])
        equal(b.texts(".question .diff"), ["+kept"])
        equal(b.axe(), [])
        b.do("await page.reload()")
        b.do("await page.getByRole('region', {name: 'Question: fs.write: note.txt'}).waitFor()")
        b.hold("**/respond_action")
        b.do("await page.getByRole('button', {name: 'Allow once: fs.write: note.txt'}).focus(); await page.keyboard.press('Enter'); await asked")
        b.wait(".question .state", "Answering")
        equal(b.count(".question.settled, .tool"), 0)  # neither allowed nor called before the server has said so
        b.do("go()")
        b.ended(1)
        equal(states(b), ["Allowed once"])
        check(b.do("return page.locator('.question').evaluate((e) => e === document.activeElement)"), "the focus is not lost")
        b.wait(".tool summary", "fs.write")
        b.say("tools", WRITES)
        b.do("await page.getByRole('button', {name: /^Deny:/}).waitFor()")
        b.do("await page.getByRole('button', {name: 'Stop', exact: true}).click()")
        b.ended(1, "Cancelled")
        b.do("await page.waitForFunction(() => document.querySelectorAll('.question.settled').length === 2)")
        equal(states(b), ["Allowed once", "Not answered"])
        equal(b.count(".question button"), 0)
        b.do("await page.reload()")  # what is history never asks again
        b.do("await page.waitForFunction(() => document.querySelectorAll('.question.settled').length === 2)")
        equal(b.count(".question button"), 0)


@test("page_d6_allows_for_a_conversation", "")
def longer():
    with Browser() as b, Server() as s:
        b.chat(s)
        b.say("tools", WRITES)
        b.allow_longer("Allow in this conversation")
        b.ended(1)
        equal(states(b), ["Allowed in this conversation"])
        b.say("tools", WRITES)
        b.ended(2)
        equal(b.count(".question[data-state=pending]"), 0)
        equal(s.http.get("/api/grants").json["grants"][0]["tool_id"], "internal:fs.write")


@test("page_keeps_an_answer_until_the_server_has_it", "")
def answered_away():
    with Browser() as b, Server(listen=f"127.0.0.1:{free_port()}") as s:
        b.chat(s)
        b.say("tools", WRITES)
        b.do("await page.getByRole('button', {name: /^Allow once:/}).waitFor()")
        s.kill()
        b.wait(".ending", "Reconnecting")
        # A press on a card that has just moved counts for nothing: a person presses again.
        b.do("""const button = page.getByRole('button', {name: /^Allow once:/}).last();
            while (!await page.locator('.ask-state', {hasText: 'Answering'}).count())
                await button.click({timeout: 500}).catch(() => {})""")
        check(b.do("return page.getByRole('button', {name: /^Deny:/}).isDisabled()"))
        s.start()
        b.ended(1)
        equal((states(b), b.texts(".ending-words")), (["Allowed once"], ["Done"]))


@test("page_d8_d9_takes_the_answer_of_another_tab", "")
def answered_elsewhere():
    with Browser() as b, Server() as s:
        b.chat(s)
        b.say("tools", WRITES)
        b.do("await page.getByRole('button', {name: /^Allow once:/}).waitFor()")
        action = s.http.get("/api/actions").json["actions"][0]["action_id"]
        b.hold("**/respond_action")
        b.do(ALLOW + "; await asked")
        equal(s.http.post("/api/control/respond_action", {"action_id": action, "decision": "deny"}).status, 200)
        b.wait(".question.settled", "Denied")
        b.do("await Promise.all([page.waitForResponse('**/respond_action'), go()])")
        b.wait(".toast", "It was answered already")
        b.ended(1)
        equal((states(b), b.texts(".ending-words")), (["Denied"], ["Done"]))


@test("page_shows_the_whole_of_what_is_to_be_allowed", "")
def whole():
    command = "echo \u202egnp.exe\u200b " + "x" * 20000 + " \u2066the-end"
    ask = {"type": "control_request", "request_id": "r1", "request": {
        "subtype": "can_use_tool", "tool_name": "Bash", "tool_use_id": "call-1", "input": {"command": command}}}
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as f, Browser() as b, Shop({"long": {
            "script": TALK + ["cat " + f.name, "expect deny", SAY % "not done", "result"]}}) as s:
        f.write(json.dumps(ask) + "\n")
        f.flush()
        b.chat(s)
        b.say("long", "do it")
        b.wait(".question", "The beginning of")
        check(len(b.texts(".question h3")[0]) < 200, "a heading is no place to read it all")
        check("the-end" not in "".join(b.texts(".question pre")))
        b.click("button", "Show all")
        b.wait(".question pre", "the-end")
        for part in (".question h3", ".question pre"):  # what cannot be seen is written out
            check("echo \\u{202e}gnp.exe\\u{200b} x" in b.texts(part)[0], b.texts(part)[0][:300])
        check(not re.search("[\u200b\u202e\u2066]", b.do("return page.locator('.question').evaluate((e) => e.outerHTML)")))
        deny(b)
        b.ended(1)


@test("page_d12_shows_a_form_and_sends_its_values", "UI-12 CTL-20")
def form():
    def fill(label, value):
        b.do(f"await page.locator('.schema-form').getByLabel({json.dumps(label)}).fill({json.dumps(value)})")
    with Browser() as b, Server() as s:
        b.chat(s)
        b.say("tools", FORM)
        b.do("await page.getByRole('button', {name: 'Submit'}).waitFor()")
        equal(states(b), ["Waits for you"])
        check(b.texts(".question h3")[0].startswith("Sign <b>up</b>"), "markup is text")
        equal(b.axe(), [])
        b.click("button", "Submit")  # the page misses what is required, beside the fields
        b.wait(".schema-form", "This is needed.")
        equal(s.http.get("/api/actions").json["actions"][0]["status"], "pending")
        equal(b.do("return page.locator('.schema-form').getByLabel('password').getAttribute('type')"), "password")
        fill("Your name", "ann")
        fill("age", "41")
        b.do("await page.locator('.schema-form').getByLabel('colour').selectOption({label: 'blue'})")
        b.do("await page.locator('.schema-form').getByLabel('vegan').check()")
        for i, tag in enumerate("ab"):
            b.do("await page.locator('.schema-form').getByRole('button', {name: 'Add'}).click()")
            b.do(f"await page.locator('.schema-form [id$=tags_{i}]').fill('{tag}')")
        fill("password", "hunter2")
        fill("town", "Lisbon")
        b.click("button", "Submit")
        b.wait(".schema-form", "It must look like ^[A-Z].")
        b.do("await page.locator('.schema-form').getByRole('button', {name: 'JSON'}).click()")  # the server checks it, too
        b.do("await page.getByLabel('Values as JSON').waitFor()")
        check('"age": 41' in b.do("return page.getByLabel('Values as JSON').inputValue()"), "the switch keeps data")
        b.click("button", "Submit")
        b.wait(".question .wrong", "/name")
        b.do("await page.locator('.schema-form').getByRole('button', {name: 'Form'}).click()")
        equal(b.do("return page.locator('.schema-form').getByLabel('town').inputValue()"), "Lisbon")
        fill("Your name", "Ann")
        b.click("button", "Submit")
        b.ended(1)
        equal((states(b), b.texts(".ending-words")), (["Answered"], ["Done"]))
        done = s.http.get("/api/actions?status=resolved").json["actions"][0]
        equal(done["payload"], {"name": "Ann", "age": 41, "colour": "blue", "vegan": True, "tags": ["a", "b"],
                                "password": "<redacted>", "home": {"town": "Lisbon"}})
        b.say("tools", FORM)
        b.click("button", "Decline")
        b.ended(2)
        b.do("await page.waitForFunction(() => document.querySelectorAll('.question.settled').length === 2)")
        equal(states(b), ["Answered", "Declined"])


@test("page_inbox_answers_all_that_waits", "")
def inbox():
    with Browser() as b, Server() as s:
        runs = [s.create("tools", WRITES.replace("note", n)) for n in ("one", "two")] + [s.create("tools", FORM)]
        b.enter(s)
        b.wait(".home section", "Waits for you")
        b.do("await page.keyboard.press('g'); await page.keyboard.press('i')")
        b.do("await page.getByRole('heading', {name: 'Inbox'}).waitFor()")
        b.do("await page.waitForFunction(() => document.querySelectorAll('.question[data-state=pending]').length === 3)")
        equal(b.axe(), [])
        b.do("await page.keyboard.press('j'); await page.keyboard.press('a')")  # the first, by the keyboard alone
        s.events(runs[0])
        b.do("await page.waitForFunction(() => document.querySelectorAll('.question[data-state=pending]').length === 2)")
        deny(b, "no")
        s.events(runs[1])
        b.do("await page.waitForFunction(() => document.querySelectorAll('.question[data-state=pending]').length === 1)")
        b.click("button", "Decline")
        s.events(runs[2])
        b.wait(".empty", "Nothing waits for you")
        b.do("await page.waitForFunction(() => document.querySelectorAll('.inbox-done .ask-state').length === 3)")
        equal(sorted(b.texts(".inbox-done .ask-state")), ["Allowed once", "Declined", "Denied"])
        answers = {a["run_id"]: (a["decision"], a.get("reason")) for a in s.http.get("/api/actions?status=resolved").json["actions"]}
        equal([answers[r] for r in runs], [("allow", None), ("deny", "no"), ("decline", None)])


@test("page_one_gesture_answers_one_question", "UI-16 SEC-04")
def one_gesture():
    waiting = "await page.waitForFunction((n) => document.querySelectorAll('.question[data-state=pending]').length === n, %d)"
    with Browser(phone=True) as b, Server() as s:
        for n in ("one", "two", "three", "four"):
            s.create("tools", WRITES.replace("note", n))
        b.enter(s)
        b.do("await page.locator('.bottom').getByRole('link', {name: 'Inbox'}).click(); " + waiting % 4)
        b.do("await page.locator('[data-allow]:not([aria-disabled])').first().waitFor(); globalThis.box = await page.locator('[data-allow]').first().boundingBox()")
        b.do("globalThis.tap = () => page.touchscreen.tap(box.x + 60, box.y + box.height / 2); await tap()")
        for _ in range(7):  # on the same spot, as an impatient finger does
            b.do("await page.waitForTimeout(100); await tap()")
        b.wait(".inbox > .question.settled", "Allowed once")  # it stays where it was
        b.do(waiting % 3)
        for _ in range(3):
            b.do("await page.waitForTimeout(300); await tap()")
        equal(len(s.http.get("/api/actions").json["actions"]), 3, "one was answered")
        b.do("await page.reload(); " + waiting % 3)
        b.do("await page.keyboard.press('j'); for (let i = 0; i < 30; i++) { await page.keyboard.down('a'); await page.waitForTimeout(30); } await page.keyboard.up('a')")
        b.do(waiting % 2)
        b.do("for (let i = 0; i < 30; i++) { await page.keyboard.down('a'); await page.waitForTimeout(30); } await page.keyboard.up('a')")
        equal(len(s.http.get("/api/actions").json["actions"]), 2, "a key that is held answers once; without the focus on a question none")
        b.do("await page.keyboard.press('a'); " + waiting % 1)  # the press before has chosen it


@test("page_h4_fits_a_phone", "")
def phone():
    with Browser(phone=True) as b, Server(listen=f"127.0.0.1:{free_port()}") as s:
        b.enter(s)
        equal((b.do(WIDER), b.do(SMALL)), ([], []))
        b.do("await page.locator('.bottom').getByRole('link', {name: 'Chat'}).click()")
        for i, words in enumerate(("x" * 500, "\u0645\u0631\u062d\u0628\u0627 " * 80, "/path" * 200)):
            b.say("echo", words)
            b.ended(i + 1)
        b.say("tools", 'tool fs.write {"path": "%s", "text": "%s"}' % ("n" * 200, "long" * 400))
        b.do("await page.getByRole('button', {name: /^Deny:/}).waitFor()")
        equal((b.do(WIDER), b.do(SMALL)), ([], []))
        b.do("await page.setViewportSize({width: 390, height: 844})")
        b.do("await page.locator('.bottom').getByRole('link', {name: 'Inbox'}).click()")
        b.wait(".inbox .question", "Waits for you")
        equal((b.do(WIDER), b.do(SMALL)), ([], []))
        size = b.do("return page.locator('[data-allow]').evaluate((e) => { const r = e.getBoundingClientRect(); return [r.width, r.height]; })")
        check(size[0] > 250 and size[1] >= 48, "a big button", size)
        equal(b.axe(), [])
        b.do(ALLOW)
        b.wait(".inbox-done", "Allowed once")
        s.kill()
        b.wait(".banner", "Reconnecting")
        equal(b.do(WIDER), [])


main()
