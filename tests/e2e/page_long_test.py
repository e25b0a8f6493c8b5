#!/usr/bin/env python3
"""Very much of something in a browser: a run of 100,000 events, a list of many runs."""
# time limit: 600 s, with UAR_TEST_FULL=1 there are 100,000 runs instead of a tenth
import concurrent.futures
import json
import os
import tempfile

from lib import Server, check, equal, main, test, wait_until
from lib.browser import Browser
from lib.client import Client

EVENTS = 100_000
RUNS = 100_000 if os.environ.get("UAR_TEST_FULL") else 10_000


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


def make_runs(s, count):
    """So many runs, by eight clients."""
    def some(numbers):
        http = Client(s.url, s.token)
        for i in numbers:
            equal(http.post("/api/runs", {"agent_id": "echo", "inputs": {"message": f"run {i:06}"}}).status, 202)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(some, [range(i, count, 8) for i in range(8)]))
    wait_until(lambda: s.http.get("/api/runs?status=succeeded&min_created_at=0&limit=1&count=1").json["total"] >= min(count, 1000), "they have ended")


@test("page_f2_a_list_of_very_many_runs", "")
def many_runs():
    with Browser() as b, Server() as s:
        make_runs(s, RUNS)
        b.enter(s)
        took = b.do(f"""const t = Date.now(); await page.goto('{s.url}/ui/runs');
            await page.locator('[role=row][data-run]').first().waitFor(); return Date.now() - t""")
        print(f"  the list of {RUNS} runs is there after {took} ms")
        check(b.count("[role=row][data-run]") < 100, "only what is shown is drawn")
        b.do("""for (let i = 0; i < 5; i++) await page.evaluate(() => new Promise((done) => { const e = document.querySelector('.runs-table .scroll');
                e.scrollTop = e.scrollHeight; requestAnimationFrame(() => requestAnimationFrame(done)); }))""")
        b.do("await page.getByRole('searchbox', {name: 'Words of the message or the answer'}).fill('000777')")
        b.wait("[role=row][data-run]", "run 000777")
        b.do("await page.waitForFunction(() => document.querySelectorAll('[role=row][data-run]').length === 1)")


main()
