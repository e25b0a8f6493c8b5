#!/usr/bin/env python3
"""The page lets a person choose the model that answers in a conversation."""
import json

from lib import Provider, Server, check, equal, main, test
from lib.browser import WIDER, Browser

CHOICES = "return page.getByLabel('Model', {exact: true}).locator('option').allTextContents()"
CHOSEN = "return page.getByLabel('Model', {exact: true}).inputValue()"


def two(p):
    table = {name: {"dialect": "openai_chat", "base_url": p.url + "/v1", "key_env": "WIRE_KEY"} for name in ("a", "b")}
    table["b"]["models"] = {"hello": {}}
    return {"UAR_PROVIDERS": json.dumps(table), "WIRE_KEY": Provider.KEY, "UAR_MODEL": "a/hello"}


def models(s):
    """Of the runs, the last first, what the log says of the model and whether it was chosen."""
    out = []
    for r in s.http.get("/api/runs").json["runs"]:
        submitted, = (e.data["payload"]["options"] for e in s.session_events(r["run_id"])
                      if e.data["type"] == "turn.submitted" and e.data["run_id"] == r["run_id"])
        out.append((f"{submitted['provider']}/{submitted['model']}", submitted.get("model_chosen", False)))
    return out


@test("page_a_person_chooses_the_model_of_a_conversation", "")
def chooses():
    with Browser() as b, Provider() as p, Server(env=two(p)) as s:
        b.chat(s)
        b.choose("Agent", "demo")
        b.choose("Agent", "assistant")
        b.wait("select[aria-label=Model]")
        equal(b.do(CHOICES), ["Default (hello)", "a/hello", "b/hello", "Another model…"])
        b.say("assistant", "one")
        b.ended(1)
        b.choose("Model", "b/hello")
        b.say("assistant", "two")
        b.ended(2)
        equal(models(s), [("b/hello", True), ("a/hello", False)])
        b.do("await page.waitForURL(/\\/ui\\/c\\/./); await page.reload()")  # it is remembered
        b.wait(".answer", "Hello")
        b.do("await page.waitForFunction(() => document.querySelector('select[aria-label=Model]')?.value === 'b/hello')")
        b.choose("Model", "\0")
        b.do("await page.getByLabel('Name of the model').fill('nobody/x'); await page.getByLabel('Name of the model').press('Enter')")
        b.say("assistant", "three")
        b.wait(".ending-words", "Not sent")
        b.wait(".ending-words", "no provider is named")  # with what there is
        equal(len(models(s)), 2)
        b.choose("Model", "")
        b.do("await page.locator('#message').fill('four'); await page.locator('#message').press('Enter')")
        b.ended(3)
        equal(models(s)[0], ("a/hello", False))
        equal(b.do(WIDER), [])
        b.choose("Agent", "echo")
        b.do("await page.locator('select[aria-label=Model]').waitFor({state: 'detached'})")


@test("page_a_model_chosen_at_home_goes_with_the_conversation", "")
def at_home():
    with Browser() as b, Provider() as p, Server(env=two(p)) as s:
        b.enter(s)
        b.choose("Agent", "assistant")
        b.choose("Model", "b/hello")
        b.do("await page.locator('#start-message').fill('hello'); await page.locator('#start-message').press('Enter')")
        b.ended(1)
        equal(models(s), [("b/hello", True)])
        equal(b.do(CHOSEN), "b/hello")
        b.do("await page.locator('.rail').getByRole('link', {name: 'New chat'}).click()")
        b.choose("Agent", "assistant")
        b.wait("select[aria-label=Model]")
        equal(b.do(CHOSEN), "")  # of that conversation only
        check(len(models(s)) == 1)


@test("page_on_a_phone_the_send_button_stays_while_a_model_is_typed", "")
def phone():
    right = """return page.evaluate(() => { const bar = document.querySelector('.composer-bar').getBoundingClientRect(), go = document.querySelector('.composer-bar > [aria-label=Send]').getBoundingClientRect();
               return [Math.round(bar.right - go.right), Math.round(bar.bottom - go.bottom)]; })"""
    with Browser(phone=True) as b, Provider() as p, Server(env=two(p)) as s:
        b.enter(s)
        b.goto(s.url + "/ui/c")
        b.wait("#message")
        b.choose("Agent", "assistant")
        b.choose("Model", "\0")
        b.do("await page.getByLabel('Name of the model').fill('a-provider-of-models/a-model-with-a-very-long-name-2026-11-18')")
        equal((b.do(right), b.do(WIDER)), ([0, 0], []))
        b.shot("model-phone")


main()
