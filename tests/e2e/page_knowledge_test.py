#!/usr/bin/env python3
"""Skills and knowledge in a browser: why a skill is chosen, what is known, and citations that open their passage."""
# time limit: 300 s, four browsers look at every view
import json
import os
import threading

from lib import Provider, Server, check, equal, main, test, wait_until
from lib.browser import Browser
from lib.embed import Embedder

NUTS = {"skill_id": "nuts", "title": "Nuts", "description": "How nuts are opened.", "version": "1.2",
        "triggers": {"keywords": ["walnut"]}, "prompt_overlay": "## Crack gently",
        "constraints": {"allow": ["internal:math.*"]}}
STEAM = """# Boiler

The boiler wants water.

# Valves

The ultramarine valve opens at nine bar and closes at eight.

# Pipes

Pipes are of copper."""


def agent(s, agent_id, **more):
    a = s.http.send("PUT", f"/api/agents/{agent_id}", {
        "version": "1.0", "kind": "agent", "id": agent_id, "runtime": {"entry": "llm.chat"},
        "policy": {"provider": {"default": {"provider": "openai", "model": "repeat"}}, "tools": {"allow": ["internal:*"]},
                   "skills": {"max_active": 1, "prefer": ["nuts"]}}, **more})
    check(a.status in (200, 201), a.body)


def put_skill(s, **more):
    a = s.http.send("PUT", "/api/skills/nuts", {**NUTS, **more})
    check(a.status in (200, 201), a.body)


def put(s, collection, document_id, text, **more):
    a = s.http.send("PUT", f"/api/kb/{collection}/documents", {"document_id": document_id, "text": text, **more})
    check(a.status in (200, 201), a.body)


def again(s):
    """Another one-time link."""
    s.link = s.url + "/#code=" + s.http.post("/api/links", {}).json["code"]


@test("page_says_why_a_skill_is_chosen_for_a_message_and_for_a_run", "SKILL-16")
def why():
    with Browser() as b, Provider() as p, Server(env=p.env("repeat")) as s:
        put_skill(s)
        s.http.send("PUT", "/api/skills/zebra", {**NUTS, "skill_id": "zebra", "title": "Zebra", "constraints": {}})
        s.http.send("PUT", "/api/skills/alien", {**NUTS, "skill_id": "alien", "title": "Alien", "requires": {"tenants": ["others"]}})
        agent(s, "cook")
        run_id = s.create("cook", "open a walnut")
        s.finish(run_id)
        b.enter(s)
        b.do("await page.keyboard.press('g'); await page.keyboard.press('s')")
        b.do("await page.getByRole('heading', {name: 'Skills', level: 1}).waitFor()")
        for title in ("Answers with sources", "Strict tool calling", "Nuts"):
            b.wait(".skills-row strong", title)
        b.do("await page.getByLabel('Message', {exact: true}).fill('open a walnut')")
        b.choose("Agent", "cook")
        b.click("button", "Test")
        b.do("await page.getByRole('list', {name: 'Candidates'}).waitFor()")
        equal(b.texts(".skills-candidate .state"), ["Chosen", "Left out", "Left out"])
        rows = b.texts(".skills-candidate")
        check("score 0." in rows[0] and "Found by a keyword" in rows[0] and "Preference100 %" in rows[0], rows)
        check(any("Others ranked higher" in r for r in rows) and any("Not for this tenant" in r for r in rows), rows)
        equal(b.texts(".skills-outcome .skills-overlay"), ["## Crack gently"])
        b.do("await page.getByText('Tools that the skills take away').click()")
        b.wait(".skills-names", "internal:time.now")
        b.do("await page.reload()")  # the address says what was asked
        b.wait(".skills-candidate", "Nuts")
        equal(b.axe(), [])
        b.click("button", "A run")
        b.choose("Run", run_id)
        b.do("await page.getByRole('list', {name: 'Chosen skills'}).waitFor()")
        equal(b.texts(".skills-candidate .strong"), ["Nuts"])
        b.wait(".skills-outcome", "skill:nuts")
        b.do("await page.getByRole('link', {name: /^Event #/}).click(); await page.waitForURL(/runs\\/.*e=/)")


@test("page_keeps_versions_of_a_skill_and_takes_one_back", "SKILL-03 SKILL-10")
def versions():
    with Browser() as b, Server() as s:
        put_skill(s)
        put_skill(s, prompt_overlay="## Crack hard")
        b.enter(s)
        b.goto(s.url + "/ui/skills")
        b.do("await page.getByRole('searchbox', {name: 'Find skills'}).fill('walnut')")
        b.do("await page.waitForFunction(() => document.querySelectorAll('a.skills-row').length === 1)")
        b.do("await page.locator('a.skills-row').click()")
        b.wait(".skills-panel .skills-overlay", "## Crack hard")
        b.click("tab", "Versions")
        b.click("button", "Show version 1")
        b.wait(".skills-panel .skills-overlay", "Crack gently")
        b.click("button", "Use it again")
        b.wait(".skills-panel .item", "v3")
        equal(s.http.get("/api/skills/nuts").json["skill"]["prompt_overlay"], "## Crack gently")
        b.click("tab", "Change")
        b.do("await page.getByLabel('Skill as JSON').fill('{\"skill_id\": \"nuts\", \"colour\": 1}')")
        b.click("button", "Save")
        b.wait(".problem", "colour")
        b.do(f"await page.getByLabel('Skill as JSON').fill({json.dumps(json.dumps({**NUTS, 'title': 'Nuts and bolts'}))})")
        b.click("button", "Save")
        b.wait(".skills-panel h2", "Nuts and bolts")
        equal(b.axe(), [])
        b.do("await page.locator('.skills-panel').getByRole('button', {name: 'Remove'}).click()")
        b.click("button", "Remove skill")
        wait_until(lambda: s.http.get("/api/skills/nuts").status == 404, "it is removed")
        b.goto(s.url + "/ui/skills/rag_citations")
        b.wait(".skills-panel .skills-fact", "Built in")
        equal(b.do("return page.locator('.skills-panel').getByRole('button', {name: 'Remove'}).count()"), 0)
        b.click("button", "New skill")
        b.click("button", "Save")
        b.wait(".skills-panel h2", "My skill")


@test("page_adds_searches_reads_and_removes_documents", "")
def documents():
    with Browser() as b, Server() as s:
        b.enter(s)
        b.goto(s.url + "/ui/knowledge")
        b.wait(".empty", "No collection yet")
        b.click("button", "Add documents")
        b.do("await page.getByLabel('Collection').fill('steam')")
        path = os.path.join(s.root, "engine.md")
        with open(path, "w") as f:
            f.write(STEAM)
        bad = os.path.join(s.root, "bad.pdf")
        with open(bad, "wb") as f:
            f.write(b"%PDF-1.4 nonsense")
        b.do(f"await page.locator('#kb-files').setInputFiles({json.dumps([path, bad])})")
        b.click("button", "Add")
        b.wait(".kb-row", "engine.md")
        b.wait(".kb-row[data-document='bad.pdf'] .state", "Failed")  # by itself
        b.click("button", "Add")
        b.do("await page.getByRole('button', {name: 'Text', exact: true}).click()")
        b.do("await page.getByLabel('Title').fill('Whistle'); await page.getByLabel('Text', {exact: true}).fill('The whistle is of brass.')")
        b.do("await page.getByRole('dialog').getByRole('button', {name: 'Add', exact: true}).click()")
        b.wait(".kb-row", "Whistle")
        b.do("await page.getByRole('searchbox', {name: 'Search this collection'}).fill('ultramarine valve'); await page.keyboard.press('Enter')")
        b.wait(".kb-hit", "nine bar")
        first = b.texts(".kb-hit")[0]
        for part in ("engine.md", "Valves", "line", "Score", "Words", "Vector"):
            check(part in first, first)
        b.click("button", "Words")
        b.do("await page.waitForFunction(() => document.querySelectorAll('.kb-hit').length === 1)")
        check("Vector not found" in b.texts(".kb-hit")[0], b.texts(".kb-hit"))
        b.do("await page.locator('.kb-hit').click()")
        b.wait(".kb-passage[data-marked]", "nine bar")
        equal(b.count(".kb-passage"), 3)
        equal(b.axe(), [])
        b.do("await page.reload()")
        b.wait(".kb-passage[data-marked]", "nine bar")
        b.do("await page.keyboard.press('Escape')")
        b.do("await page.locator('.kb-panel').waitFor({state: 'detached'})")
        b.click("button", "Remove bad.pdf")
        b.do("await page.getByRole('dialog').getByRole('button', {name: 'Remove', exact: true}).click()")
        b.do("await page.locator('.kb-row[data-document=\"bad.pdf\"]').waitFor({state: 'detached'})")
        equal([d["document_id"] for d in s.http.get("/api/kb/steam/documents").json["documents"]], ["Whistle", "engine.md"])
        b.click("tab", "How it is searched")
        b.do("await page.getByLabel('Passages at most').fill('3'); await page.getByLabel('An answer has to name its sources').check()")
        b.click("button", "Save")
        wait_until(lambda: s.http.get("/api/kb").json["collections"][0]["policy"].get("top_k") == 3, "the policy")
        equal(b.axe(), [])
        b.click("button", "Remove collection")
        b.do("await page.getByRole('dialog').getByRole('button', {name: 'Remove', exact: true}).click()")
        b.wait(".empty", "No collection yet")


@test("page_shows_how_far_the_index_is_and_what_leads_on", "")
def progress():
    gate = threading.Event()
    first = threading.Event()

    def vector(text):
        if first.is_set():
            gate.wait(60)
        first.set()
        return [1.0, float(len(text) % 7)]

    with Embedder(vector) as e, Server(env=e.env()) as s, Browser() as b:
        a = s.http.send("PUT", "/api/kb/long/relations", {"relations": [{"from": "Acme", "kind": "owns", "to": "Bolt"}]})
        equal(a.status, 200, a.body)
        put(s, "long", "book.md", "\n\n".join(f"# Part {i}\n" + f"sentence {i} about harbours. " * 40 for i in range(150)))
        b.enter(s)
        b.goto(s.url + "/ui/knowledge/long")
        b.wait(".kb-progress", "One document is being indexed")
        b.wait(".kb-progress", "book.md")
        b.wait(".kb-row .state", "Being indexed")
        gate.set()
        b.wait(".kb-row .state", "Ready")
        b.do("await page.locator('.kb-progress').waitFor({state: 'detached'})")
        b.click("tab", "Relations")
        b.do("await page.getByLabel('Entity').fill('Acme'); await page.keyboard.press('Enter')")
        b.wait(".kb-relation", "Acme owns Bolt")
        b.goto(s.url + "/ui/knowledge")
        b.click("button", "The index")
        b.click("menuitem", "Check the index")
        b.wait(".toast", "The index is what the documents make it")


@test("page_citations_open_their_passage", "MEM-06")
def citations():
    with Browser() as b, Provider() as p, Server(env=p.env("repeat")) as s:
        put(s, "steam", "notes/engine.md", STEAM, title="Engine")
        agent(s, "smith", memory={"kb": {"enabled": True, "collections": ["steam"]}})
        b.chat(s)
        b.say("smith", "the ultramarine valve [1]")
        b.ended(1)
        b.do("await page.locator('.answer .cite').first().click()")
        b.wait(".cite-card", "ultramarine valve")
        equal(b.axe(), [])
        b.do("await page.locator('.cite-card').getByRole('link', {name: 'Open the passage'}).click()")
        b.wait(".kb-passage[data-marked]", "nine bar")
        url = b.do("return page.url()")
        equal(s.http.send("POST", "/api/kb-index/rebuild").status, 200)  # names that a rebuild keeps
        b.goto(url)
        b.wait(".kb-passage[data-marked]", "nine bar")
        put(s, "steam", "notes/engine.md", STEAM.replace("nine bar", "ten bar"))
        b.goto(url)
        b.wait(".kb-note", "it was changed since it was cited")
        b.wait(".kb-passage", "ten bar")


@test("page_skills_and_knowledge_on_a_phone_and_in_both_themes", "")
def looks():
    with Provider() as p, Server(env=p.env("repeat")) as s:
        put_skill(s)
        agent(s, "cook")
        put(s, "steam", "notes/engine.md", STEAM, title="Engine")
        put(s, "steam", "whistle.txt", "The whistle is of brass. " * 200, title="A whistle with a rather long title that has to be cut somewhere")
        views = (("skills", "skills?message=open%20a%20walnut&agent=cook", ".skills-candidate"), ("skill", "skills/nuts", ".skills-panel pre"),
                 ("collections", "knowledge", "[data-collection]"), ("knowledge", "knowledge/steam?q=ultramarine%20valve", ".kb-hit"),
                 ("document", "knowledge/steam?q=ultramarine%20valve&document=notes%2Fengine.md", ".kb-passage"),
                 ("policy", "knowledge/steam?tab=policy", ".kb-policy"))
        for phone in (True, False):
            with Browser(phone=phone, dark=phone, width=1440, height=900) as b:
                again(s)
                b.enter(s)
                for name, path, ready in views:
                    b.goto(f"{s.url}/ui/{path}")
                    b.wait(ready)
                    b.looks(name)


main()
