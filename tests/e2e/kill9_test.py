#!/usr/bin/env python3
"""kill -9 at random moments, under load. UAR_TEST_KILLS says how often (1,000).

What was acknowledged or shown before a kill is there after it, byte for byte; every run comes to
its true end; no finished model call is asked for again. UAR_TEST_SEED repeats a run's choices."""
# time limit: 600 s, a thousand kills and restarts take two minutes, with a sanitizer four
import os
import random
import sqlite3
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor

from lib import (FIXTURES, Provider, Server, check, check_run_stream, check_session, equal, goes_on, main,
                 run_uar, test, text_of, without_run_id)
from lib.events import lines_of
from lib.server import UAR, clean_environment, flags
from lib.world import World

KILLS = int(os.environ.get("UAR_TEST_KILLS", "1000"))
SEED = os.environ.get("UAR_TEST_SEED") or f"{random.SystemRandom().getrandbits(32):x}"
CLIENTS, PER_WORLD, AT_ONCE = 10, 50, 3
WORDS = 12
RESTARTS = 20  # UAR_LIMIT_MODEL_RESTARTS
FIXTURE = lines_of(os.path.join(FIXTURES, "tools.jsonl"))


def body_of(rng, kind):
    body = {"agent_id": kind, "inputs": {"message": f"m{rng.getrandbits(32)}"}}
    if kind == "echo":
        body["inputs"]["message"] *= rng.choice((1, 20, 3000))
    elif kind == "fixture":
        body["inputs"] = {"fixture": "tools", "pace": rng.choice(("recorded", "full"))}
    if rng.random() < 0.3:
        body["conversation_id"] = f"c{rng.randrange(4)}"
    return body


def scenario(world, rng):
    kind = rng.choice(("echo", "echo", "fixture", "demo", "assistant", "assistant"))
    run_id = world.create(rng, kind, body_of(rng, kind))
    choice = rng.random()
    if choice < 0.6:
        world.follow(run_id)
    elif choice < 0.75:
        world.follow(run_id, limit=rng.randrange(1, 6))
        world.acked[run_id]["canceled"] = True
        equal(world.ask("POST", f"/api/runs/{run_id}/cancel", {"reason": "enough"}).status, 200)


def kill_while_starting(server, rng):
    """It never gets to say hello."""
    proc = subprocess.Popen([UAR, "serve", "--json", "--data", server.data,
                             *flags(server.settings)], stdout=subprocess.DEVNULL,
                            stderr=subprocess.DEVNULL,
                            env=clean_environment(server.root, server.env))
    threading.Event().wait(rng.random() * 0.03)
    proc.kill()
    proc.wait()


def torment(world, kills):
    """Kills, restarts, looks. The moment is a number of answers and events, or none at all."""
    rng = random.Random(world.seed)
    server = world.server
    done = 0
    while done < kills:
        world.wait_progress(rng.choice((0, 1, 3, 10, 30, 60, 100, 200, 300)))
        server.kill()
        done += 1
        while done < kills and rng.random() < 0.15:
            kill_while_starting(server, rng)
            done += 1
        server.start()
        known = list(world.acked)
        recent = known[-CLIENTS * 2:]
        for run_id in set(recent + rng.sample(known, min(10, len(known)))):
            world.check_record(run_id)
        world.risen()


def check_log(run_ids, log, asked):
    """Order and numbers of the session, and per run: one completed model call at most."""
    ended = check_session(log)
    check(all(ended.values()), "a run has no end", ended)
    superseded = 0
    for run_id in run_ids:
        mine = [e.data for e in log if e.data.get("run_id") == run_id]
        kinds = [e["type"] for e in mine]
        check(kinds.count("model.completed") <= 1, "a finished call was repeated", kinds)
        lost = [e for e in mine if e["type"] == "model.failed" and
                e["payload"]["error"]["code"] == "LOST"]
        notes = [e for e in mine if e["type"] == "run.status" and
                 "superseded_message_id" in e["payload"].get("metadata", {})]
        equal(len(lost), len(notes), "each lost call is followed by its note")
        superseded += len(notes)
        if asked[run_id].get("given_up"):
            equal(len(lost), RESTARTS, kinds)
        elif not asked[run_id]["canceled"] and asked[run_id]["agent_id"] in ("demo", "assistant"):
            equal(kinds.count("model.completed"), 1, kinds)
    return superseded


def final_text(events):
    """What a reader holds who heeds the notes about text that no longer counts."""
    text = ""
    for e in events:
        if e.type == "meta" and "superseded_message_id" in e.data["data"].get("metadata", {}):
            text = ""
        elif e.type == "ChatDelta":
            text += e.data["data"]["text_delta"]
    return text


def check_run(world, run_id, asked, words):
    s = world.server
    events = s.events(run_id)
    check_run_stream(events, run_id)
    now = {e.id: e.text for e in events}
    for number, text in world.told.get(run_id, {}).items():
        equal(now.get(number), text, f"{run_id}: event {number} was shown and has changed")
    world.check_record(run_id)
    r = s.record(run_id)
    if asked["canceled"]:
        check(r["status"] in ("canceled", "succeeded"), r)
        return r
    if r["error"] and r["error"]["code"] == "RESTART_LIMIT":
        asked["given_up"] = True
        check(asked["kind"] in ("assistant", "demo"), r)
        return r
    equal((r["status"], events[-1].type), ("succeeded", "RunDone"), r)
    if asked["kind"] == "echo":
        equal(text_of(events), asked["inputs"]["message"])
    elif asked["kind"] == "fixture":
        equal([without_run_id(e) for e in events if e.type != "meta"],
              [without_run_id(e) for e in FIXTURE])
    elif asked["kind"] == "assistant":
        equal(final_text(events), words)
    else:
        check(final_text(events).startswith("You wrote:"), final_text(events))
    return r


def check_files(s, runs):
    """The database as it lies there, without the program."""
    equal(s.stop(), 0)
    db = sqlite3.connect(os.path.join(s.data, "uar.db"))
    equal(db.execute("PRAGMA integrity_check").fetchall(), [("ok",)])
    for column, group in (("sequence", "session_id"), ("run_sequence", "run_id")):
        rows = db.execute(f"SELECT {group}, count(*), count(DISTINCT {column}), min({column}), "
                          f"max({column}) FROM events WHERE {group} IS NOT NULL GROUP BY {group}")
        for name, n, distinct, low, high in rows:
            equal((distinct, low, high), (n, 1, n), f"{group} {name}")
    equal(db.execute("SELECT count(*) FROM runs WHERE terminal = 0").fetchone(), (0,))
    equal(db.execute("SELECT count(*) FROM runs").fetchone()[0], runs, "a key made two runs")
    db.close()
    out = run_uar("check", "--data", s.data, home=s.root)
    equal(out.returncode, 0, out.stdout + out.stderr)


def one_world(number, kills):
    seed = f"{SEED}/{number}"
    with Provider() as p, Server(env=p.env(f"paced:{WORDS}:8"), fixtures_dir=FIXTURES,
                                 scripted_token_ms=2, log_level="warn") as s:
        world = World(s, seed)
        threads = [threading.Thread(target=world.client, args=(i, scenario), daemon=True)
                   for i in range(CLIENTS)]
        for t in threads:
            t.start()
        try:
            torment(world, kills)
        finally:
            world.stopping = True
        for t in threads:
            t.join()
        if world.faults:
            raise world.faults[0]
        words = text_of(s.events(s.create("assistant", "how does it sound undisturbed?")))
        sessions = {}
        for run_id, asked in world.acked.items():
            sessions.setdefault(check_run(world, run_id, asked, words)["session_id"],
                                []).append(run_id)
        superseded = sum(check_log(ids, s.session_events(ids[-1]) if len(ids) == 1 else
                                   whole_session(s, session), world.acked)
                         for session, ids in sessions.items())
        check_files(s, len(world.acked) + 1)
        return len(world.acked), sum(map(len, world.told.values())), superseded


def whole_session(s, session):
    """All runs have ended, so the log ends with a thread that rests."""
    runs = s.http.get(f"/api/runs?limit=500&session_id={session}").json["runs"]
    ends = {r["run_id"] for r in runs}

    def last(e):
        if e.data["type"] in ("turn.completed", "turn.failed"):
            ends.discard(e.data["run_id"])
        return not ends
    with s.session_stream(session) as stream:
        return stream.until(last)


@test("nothing_acknowledged_is_lost_by_kill_9",
      "RUN-17 RUN-32 RUN-40 RUN-43 SSE-05 SSE-08 VAL-01 EVT-004 STAT-10")
def kills():
    def play(number):
        goes_on()
        try:
            return one_world(number, min(PER_WORLD, KILLS - number * PER_WORLD))
        except Exception:
            print(f"UAR_TEST_SEED={SEED} world {number}")
            raise
    with ThreadPoolExecutor(AT_ONCE) as pool:
        runs, events, superseded = map(sum, zip(*pool.map(play, range(-(-KILLS // PER_WORLD)))))
    print(f"# {KILLS} kills, {runs} runs, {events} events shown, {superseded} calls superseded")
    check(KILLS < 50 or superseded > 0, "no kill ever interrupted a model call")


@test("a_model_call_that_is_cut_off_by_each_start_is_not_made_for_ever", "")
def crash_loop():
    with Provider() as p, Server(env=p.env("stall")) as s:
        run_id = s.create("assistant", "hello")
        for n in range(RESTARTS + 1):
            p.wait_for(requests=n + 1)
            s.restart()
        r = s.finish(run_id)
        equal((r["status"], r["error"]["code"], r["error"]["details"]["retriable"]), ("failed", "RESTART_LIMIT", True))
        equal(p.stats()["requests"], RESTARTS + 1)
        log = [e.data for e in s.session_events(run_id)]
        kinds = [e["type"] for e in log]
        equal((kinds.count("model.requested"), kinds.count("model.failed")), (RESTARTS + 1, RESTARTS + 1))


@test("a_long_echo_goes_on_behind_what_it_said", "")
def long_echo():
    asked = "".join(f"{i} ü\n" for i in range(300000))
    with Server() as s:
        run_id = s.create("echo", asked)
        with s.stream(run_id) as stream:
            stream.until(lambda e: e.type == "ChatDelta")
        s.restart()
        equal(text_of(s.events(run_id)), asked)
        equal(s.record(run_id)["status"], "succeeded")


main()
