#!/usr/bin/env python3
"""The EventSource of a real browser on the channels of one run: it comes back by itself after a kill."""
import json

from lib import check, equal, main, test
from lib.browser import Browser
from lib.plugins import Lab
from lib.web import free_port

# Keeps everything that each EventSource hears.
WATCH = """globalThis.heard = {};
    globalThis.wake = () => {};
    await page.exposeFunction('hear', (name, kind, id, data) => {
        (heard[name] ??= []).push({kind, id, data: JSON.parse(data)});
        wake();
    });
    await page.evaluate((urls) => {
        globalThis.sources = {};
        for (const [name, url] of Object.entries(urls)) {
            const source = sources[name] = new EventSource(url);
            for (const kind of ['runs', 'export', 'resync', 'snapshot', 'resynced', 'lagged'])
                source.addEventListener(kind, (e) => hear(name, kind, e.lastEventId, e.data));
            source.addEventListener('error', () => source.readyState === 2 && hear(name, 'gave up', '', 'null'));
        }
    }, %s)"""
UNTIL = """const wanted = (e) => %s;
    while (!(heard.%s ?? []).slice(%d).some(wanted)) {
        if (Object.values(heard).flat().some((e) => e.kind === 'gave up'))
            throw new Error('an EventSource has given up');
        await new Promise((on) => wake = on);
    }
    return heard.%s"""


def until(b, name, wanted, after=0):
    """All that was heard, once wanted holds for one that came after so many others."""
    return b.do(UNTIL % (wanted, name, after, name))


@test("page_event_sources_of_a_run_survive_restarts", "RCH-02 EXP-13")
def restarts():
    with Browser() as b, Lab(listen=f"127.0.0.1:{free_port()}") as s:
        b.goto(s.url + "/ui/")
        run = s.post_run("gate", {"file": s.file("gate"), "export": "one"}).json
        run_id, query = run["run_id"], f"?run_id={run['run_id']}&run_token={run['run_token']}"
        b.do(WATCH % json.dumps({name: f"/channels/{name}{query}" for name in ("runs", "export")}))
        before = until(b, "runs", "e.data.progress === 0.5")
        until(b, "export", "true")
        s.restart()
        seen = until(b, "runs", "e.kind === 'resynced'", len(before))[len(before):]
        equal(seen[0]["kind"], "resync", seen)
        equal((seen[0]["data"]["code"], seen[0]["data"]["requested"]), ("RESYNC", before[-1]["id"]))
        rows = [e["data"] for e in seen if e["kind"] == "snapshot"]
        equal([(r["run_id"], r["status"]) for r in rows], [(run_id, "running")], "the run as it is")
        s.open_gate()
        seen = until(b, "runs", "e.kind === 'runs' && e.data.status === 'succeeded'", len(before))
        check("lagged" not in {e["kind"] for e in seen}, seen)
        equal((seen[-1]["data"]["progress"], s.done(run_id)["progress"]), (1, 1))
        items = [i["export_item_id"] for i in s.items(run_id)["items"]]
        seen = until(b, "export", f"e.data.export_item_id === {json.dumps(items[-1])}")
        equal([e["data"]["export_item_id"] for e in seen], items, "each once")
        s.restart()  # the run is over: its state is told again
        count = len(b.do("return heard.runs"))
        seen = until(b, "runs", "e.kind === 'runs' && e.data.status === 'succeeded'", count)
        equal({e["kind"] for e in seen[count:]}, {"runs"}, "its state, and nothing to read again")
        until(b, "export", "true")
        b.do("await page.evaluate(() => Object.values(sources).forEach((s) => s.close()))")


main()
