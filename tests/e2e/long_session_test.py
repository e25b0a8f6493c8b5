#!/usr/bin/env python3
"""A session of 100,000 events: what its first answer costs, and how the rest of it is read."""
import json
import os
import sqlite3
import tempfile

from lib import Server, check, equal, main, test, wait_until

EVENTS = 100_000
ASK = 'tool fs.write {"path": "a.txt", "text": "x"}'


def write_long(folder):
    """A recording whose every line is a fact of its own."""
    with open(os.path.join(folder, "long.jsonl"), "w") as f:
        for i in range(EVENTS):
            f.write(json.dumps({"at_ms": 0, "type": "ChatDelta", "data": {"text_delta": f"word {i} "}}) + "\n")
        f.write(json.dumps({"at_ms": 0, "type": "RunDone", "data": {}}) + "\n")


def session(s, session_id, query=""):
    a = s.http.get(f"/api/sessions/{session_id}{query}")
    equal(a.status, 200, a.body)
    return a.json, len(a.body)


def damage_middle(s):
    """Makes a part in the middle of the log unreadable."""
    db = sqlite3.connect(os.path.join(s.data, "uar.db"))
    pos, = db.execute("SELECT pos FROM log ORDER BY pos LIMIT 1 OFFSET (SELECT count(*) / 2 FROM log)").fetchone()
    equal(db.execute("UPDATE log SET body = replace(body, 'payload', 'qayload') WHERE pos = ?", (pos,)).rowcount, 1)
    db.commit()
    db.close()


@test("a_session_of_100000_events_loads_progressively", "SNAP-19 VAL-07")
def progressively():
    with tempfile.TemporaryDirectory() as folder:
        write_long(folder)
        with Server(fixtures_dir=folder) as s:
            first = s.create("echo", "the very first", conversation_id="talk")
            s.finish(first)
            session_id = s.record(first)["session_id"]
            _, small = session(s, session_id)
            s.finish(s.create("fixture", None, inputs={"fixture": "long", "pace": "full"}, conversation_id="talk"))
            asks = s.create("tools", ASK, conversation_id="talk")
            wait_until(lambda: s.record(asks).get("actions"), "a question")
            waits = s.create("echo", "later", conversation_id="talk")

            # The first answer has the shell, the threads, what is recent and what waits, and it is small.
            v, size = session(s, session_id)
            check(v["through_sequence"] > EVENTS, v["through_sequence"])
            check(size < 4 * small + 16384, (size, small))
            equal((v["session"]["counts"]["turns"], len(v["threads"]["items"])), (4, 1))
            equal((v["active_thread"]["thread_id"], v["active_thread"]["active_turn"]["run_id"]), ("talk", asks))
            equal([q["run_id"] for q in v["active_thread"]["queued_turns"]], [waits])
            equal([p["run_id"] for p in v["pending_requests"]], [asks])
            check(v["recent"]["steps"], "steps of the last turns")
            check("history" not in v and "tasks" not in v, "what was not asked for is not there")

            # The rest comes on demand, from the newest window back to the first event.
            seen, cursor = [], None
            while True:
                h = session(s, session_id, "?window=200" + (f"&cursor={cursor}" if cursor else ""))[0]["history"]
                check(len(h["events"]) <= 200, len(h["events"]))
                seen.append([e["sequence"] for e in h["events"]])
                cursor = h["next_cursor"]
                if not cursor:
                    break
            equal([n for page in reversed(seen) for n in page], list(range(1, v["through_sequence"] + 1)))

            # After a kill the answer comes from the snapshot: what lies before it is not even read.
            s.kill()
            damage_middle(s)
            s.start()
            again, _ = session(s, session_id)
            equal((again["freshness"]["state"], again["session"]["counts"], again["session"]["created_at"]),
                  ("current", v["session"]["counts"], v["session"]["created_at"]))
            equal([(t["thread_id"], t["status"], t["turn_count"]) for t in again["threads"]["items"]],
                  [("talk", "blocked", 4)])
            equal(again["pending_requests"], v["pending_requests"])
            equal(session(s, session_id, "?verify=1")[0]["freshness"]["state"], "stale")


main()
