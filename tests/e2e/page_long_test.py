#!/usr/bin/env python3
"""A run of 100,000 events in a browser."""
import json
import os
import tempfile

from lib import Server, check, main, test
from lib.browser import Browser

EVENTS = 100_000


def timeline(s, run_id):
    return s.http.get(f"/api/runs/{run_id}/timeline").json


@test("page_f6_events_of_a_run_of_100000_scroll", "")
def many():
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "long.jsonl"), "w") as f:
            for i in range(EVENTS):
                f.write(json.dumps({"at_ms": 0, "type": "ChatDelta", "data": {"text_delta": f"word {i} "}}) + "\n")
            f.write(json.dumps({"at_ms": 0, "type": "RunDone", "data": {}}) + "\n")
        with Browser() as b, Server(fixtures_dir=folder) as s:
            run_id = s.create("fixture", None, inputs={"fixture": "long", "pace": "full"})
            s.finish(run_id)
            last = timeline(s, run_id)["last"]
            check(last > EVENTS, last)
            b.enter(s)
            took = b.do(f"""const t = Date.now(); await page.goto('{s.url}/ui/runs/{run_id}?pieces=1');
                await page.locator('.run-event[data-event="1"]').waitFor(); return Date.now() - t""")
            print(f"  a run of {last} events is open after {took} ms")
            check(b.count(".run-event") < 150, "only what is shown is drawn")
            for at in (last // 2, last - 50, 10):
                b.do(f"await page.locator('.run-events').evaluate((e) => {{ e.scrollTop = {(at - 1) * 28}; }})")
                b.wait(f".run-event[data-event='{at + 3}']")
            b.goto(f"{s.url}/ui/runs/{run_id}?e={last // 3}&pieces=1")
            b.wait(f".run-event[data-event='{last // 3}'][aria-current=true]")
            b.goto(f"{s.url}/ui/runs/{run_id}")
            b.wait(".run-event", "pieces")


main()
