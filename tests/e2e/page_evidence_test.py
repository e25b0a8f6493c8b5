#!/usr/bin/env python3
"""Exports of a run on the page: made, listed, downloaded, and checked in the browser."""
# time limit: 300 s, browsers are started
import json
import os
import tempfile

from lib import Server, check, equal, main, run_uar, test
from lib.browser import Browser

TOOLS = 'tool math.evaluate {"expression": "6*7.50"}\ntool time.now {}\nthen\ntool math.evaluate {"expression": "1/0"}'
ROW = ".evidence-item"


def saved(b, name):
    """What the page gave to its person as a file: its name and its bytes."""
    b.do(f"globalThis.saved = page.waitForEvent('download'); await page.getByRole('button', {{name: /^Download {name}/}}).first().click()")
    return b.do("const d = await saved; const fs = await import('node:fs'); return [d.suggestedFilename(), fs.readFileSync(await d.path(), 'utf8')]")


def bring(b, text):
    """A file to check; what the page says of it."""
    b.do(f"""await page.getByLabel('File to check').setInputFiles([{{name: 'x.json', mimeType: 'application/json', buffer: Buffer.from({json.dumps(text)})}}])
             await page.waitForFunction((old) => document.querySelector('section > .evidence-found')?.textContent !== old, globalThis.said ?? null)""")
    found = b.do("return globalThis.said = await page.locator('section > .evidence-found').textContent()")
    return found


def opened(b, s):
    run = s.create("tools", TOOLS)
    s.finish(run)
    s.http.post("/api/control/update_session", {"session_id": s.record(run)["session_id"], "title": "\u00dcber \U0001f600 \ufb01n\x07"})
    b.enter(s)
    b.goto(f"{s.url}/ui/runs/{run}")
    b.click("tab", "Evidence")
    b.wait(".evidence .empty", "Nothing was exported yet")
    return run


@test("page_f12_exports_are_made_listed_and_checked", "")
def exports():
    with Browser() as b, Server() as s:
        run = opened(b, s)
        for kind in ("Evidence", "Replay case", "Review"):
            b.click("button", f"Make: {kind}")
            b.wait(".toast", f"{kind} made")
        b.do(f"await page.locator({json.dumps(ROW)}).nth(2).waitFor()")
        session = s.record(run)["session_id"]
        summary = s.http.get(f"/api/sessions/{session}").json["evidence_summary"]["evidence"]
        equal(b.do(f"return page.locator({json.dumps(ROW)}).evaluateAll((all) => all.map((e) => e.dataset.evidence))"),
              [e["evidence_id"] for e in reversed(summary)])
        equal({e["scope"]["turn_id"] for e in summary}, {s.record(run)["turn_id"]})
        b.click("button", "Make: Evidence")  # nothing has happened since
        b.wait(".toast", "It was there already")
        equal(b.count(ROW), 3)
        b.do("await page.getByRole('group', {name: 'What of'}).getByRole('button', {name: 'The conversation'}).click()")
        b.click("button", "Make: Evidence")
        b.do(f"await page.locator({json.dumps(ROW)}).nth(3).waitFor()")
        b.wait(ROW + " .t2", "of the conversation")
        b.do("for (const one of await page.getByRole('button', {name: /^Check (Evidence|Replay|Review)/}).all()) await one.click()")
        b.do("await page.locator('.evidence-item .evidence-found').nth(3).waitFor()")
        equal(b.texts(".evidence-item .evidence-found strong"), ["Verified"] * 4)
        for name in ("Evidence", "Replay case", "Review"):
            file, text = saved(b, name)
            check(file.endswith(".json"), file)
            with tempfile.TemporaryDirectory() as at:
                path = os.path.join(at, "it.json")
                with open(path, "w") as f:
                    f.write(text)
                equal(run_uar("verify", path).returncode, 0, name)  # the other judge agrees
        b.looks("run-evidence")
        b.do("await page.reload()")
        b.do(f"await page.locator({json.dumps(ROW)}).nth(3).waitFor()")


@test("page_f12_a_changed_byte_is_found_and_named", "")
def changed():
    with Browser() as b, Server() as s:
        run = opened(b, s)
        b.click("button", "Make: Evidence")
        b.wait(ROW)
        good = json.loads(saved(b, "Evidence")[1])
        check("Verified" in bring(b, json.dumps(good, indent=3, ensure_ascii=True)), "its layout does not count")
        n = len(good["timeline"]) // 2
        event = good["timeline"][n]["event"]
        bad = json.loads(json.dumps(good))
        bad["timeline"][n]["event"]["timestamp"] = event["timestamp"][:-2] + ("1Z" if event["timestamp"][-2] == "0" else "0Z")
        said = bring(b, json.dumps(bad))
        check(f"Not verified Event {n + 1} of {len(good['timeline'])} is not what was exported." in said, said)
        check(event["type"] in said and f"sequence {event['sequence']}" in said, said)
        for name, change in (("missing at the end", lambda d: d["timeline"].pop()), ("content is not", lambda d: d["content"]["facts"].update(x=1)),
                             ("evidence_id is", lambda d: d.update(evidence_id="evidence-" + "0" * 32)), ("no document", lambda d: d.update(format="other"))):
            bad = json.loads(json.dumps(good))
            change(bad)
            said = bring(b, json.dumps(bad))
            check(name in said and "Not verified" in said, (name, said))
        check("It is not JSON" in bring(b, json.dumps(good)[:-1]), "a cut file")
        bad = json.loads(json.dumps(good))
        bad["timeline"][n]["event"]["timestamp"] = "2001-01-01T00:00:00.000000Z"
        bring(b, json.dumps(bad))
        b.do("await page.getByRole('link', {name: /^event #/}).click(); await page.waitForURL(/[?]e=/)")
        check(f"runs/{run}?e={event['run_sequence']}" in b.do("return page.url()"), "the event in the log")


main()
