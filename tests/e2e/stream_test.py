#!/usr/bin/env python3
"""Streams: order, resuming at any number, many readers, slow readers, readers that leave."""
import os
import sqlite3

from lib import (BUILD, Provider, Server, Stream, all_of, check, check_run_stream,
                 check_session, equal, main, refused, test, text_of)
from lib.server import run_uar
from lib.sse import Refusal


def keys(events):
    return [e.key() for e in events]


def refusal(open_stream):
    try:
        open_stream().close()
    except Refusal as r:
        return r
    raise AssertionError("the stream was opened")


@test("from_start_to_done_in_order",
      "API-02 ACC-02 SSE-01 SSE-04 SSE-05 NEV-01 NEV-02 NEV-03 NEV-04 NEV-12")
def order():
    with Server() as s:
        run_id = s.create("demo", "hi")
        with s.stream(run_id) as stream:
            equal(stream.headers["content-type"], "text/event-stream; charset=utf-8")
            equal(stream.headers["cache-control"], "no-store")
            events = stream.all()
        kinds = check_run_stream(events, run_id, end=("RunDone",))
        equal(events[0].data["data"], {"run_id": run_id, "agent_id": "demo"})
        equal(events[-1].data["data"], {"run_id": run_id})
        check(kinds.index("ReasoningDelta") < kinds.index("ChatDelta"), kinds)
        check('You wrote: "hi"' in text_of(events), text_of(events))
        check("The user wrote" in text_of(events, "ReasoningDelta"))
        for e in events:
            if e.type in ("ChatDelta", "ReasoningDelta"):
                equal(sorted(e.data["data"]), ["run_id", "text_delta"])


@test("phases_come_in_their_order", "RUN-03 STAT-03 STAT-04 STAT-09")
def phases():
    want = ["start", "context_assembly", "skill_selection", "model_selection", "stream_start",
            "llm_streaming", "tool_loop", "finalize"]
    with Server() as s:
        run_id = s.create("demo", "hi")
        log = [e.data for e in s.session_events(run_id)]
        equal([e["payload"]["phase"] for e in log if e["type"] == "run.status"], want)
        shown = [e.data["data"]["phase"] for e in s.events(run_id, meta=1) if e.type == "meta"]
        equal(shown, want)
        check("meta" not in [e.type for e in s.events(run_id)], "phases without being asked for")


@test("resume_at_every_number_gives_exactly_the_rest", "API-27 SSE-05 SSE-07 SSE-08")
def resume():
    with Server() as s:
        run_id = s.create("demo", "hi")
        whole = s.events(run_id)
        last = whole[-1].id
        numbers = [e.data["run_sequence"] for e in s.session_events(run_id) if e.data.get("run_id") == run_id]
        check(numbers[-1] > last, "nothing is written behind the end of the stream")
        for n in range(0, numbers[-1] + 1):
            rest = keys(e for e in whole if e.id > n)
            equal(keys(s.events(run_id, after=n)), rest, f"after={n}")
            equal(keys(s.events(run_id, last_event_id=n)), rest, f"last_event_id={n}")
            equal(keys(s.events(run_id, header=n)), rest, f"Last-Event-ID: {n}")
        equal(keys(s.events(run_id, header=last - 1, after=0)), keys(whole[-1:]), "the header wins")
        session = s.record(run_id)["session_id"]
        log = s.session_events(run_id)
        for n in (0, 1, len(log) // 2, len(log) - 1):
            with s.session_stream(session, after=n) as stream:
                got = stream.until(lambda e: e.id == log[-1].id)
                equal(keys(got), keys(log[n:]), f"session after={n}")


@test("nothing_follows_the_end_of_a_run_whatever_the_number", "API-27 SSE-05")
def behind_the_end():
    with Server() as s:
        run_id = s.create("echo", "hi")
        end = s.events(run_id)[-1].id
        last = max(e.data.get("run_sequence", 0) for e in s.session_events(run_id))
        for _ in range(2):
            for n in range(end, last + 1):
                equal(s.events(run_id, after=n), [], f"after={n}")
            s.stop()
            s.start()


@test("a_number_that_nobody_sent_is_refused", "API-27")
def bad_cursor():
    with Server() as s:
        run_id = s.create("echo", "hi")
        last = s.events(run_id)[-1].id
        session = s.record(run_id)["session_id"]
        for value in (last + 100, 2**63, 2**64 - 1, 2**64, "x", "-1", "1.5", " ", "1 "):
            for open_stream, where in (
                    (lambda: s.stream(run_id, after=value), "?after"),
                    (lambda: s.stream(run_id, last_event_id=value), "?last_event_id"),
                    (lambda: s.session_stream(session, after=value), "?after")):
                refused(refusal(open_stream), 400, "VALIDATION_ERROR", where)
        refused(refusal(lambda: s.stream(run_id, header=last + 1000)), 400, "VALIDATION_ERROR",
                "Last-Event-ID")
        for value in ("x", "-1", "18446744073709551616"):
            refused(refusal(lambda: s.stream(run_id, header=value)), 400, "VALIDATION_ERROR",
                    "Last-Event-ID")


@test("fifty_readers_get_the_same_bytes", "SSE-03 SSE-06 SSE-07")
def fan_out():
    with Provider() as p, Server(env=p.env("gate"), heartbeat_seconds="10m") as s:
        run_id = s.create("assistant", "hi")
        early = [s.stream(run_id) for _ in range(50)]
        for stream in early:
            equal(stream.next().type, "RunStart")
        p.release()
        all_of([stream.all for stream in early])
        late = s.stream(run_id)
        late.all()
        equal(len({bytes(stream.raw) for stream in early + [late]}), 1)
        check(b"before" in late.raw and b"RunDone" in late.raw)


@test("leaving_does_not_cancel", "SSE-11")
def disconnect():
    with Provider() as p, Server(env=p.env("gate")) as s:
        run_id = s.create("assistant", "hi")
        with s.stream(run_id) as stream:
            stream.until(lambda e: e.type == "ChatDelta")
        p.release()
        events = s.events(run_id)
        equal((events[-1].type, text_of(events)), ("RunDone", "before after"))
        equal(p.stats()["closed_early"], 0)


@test("an_idle_stream_has_a_heartbeat", "SSE-02 SSE-12")
def heartbeat():
    with Provider() as p, Server(env=p.env("gate"), heartbeat_seconds="100ms") as s:
        with s.stream(s.create("assistant", "hi")) as stream:
            stream.until(lambda e: e.type == "ChatDelta")
            stream.beats(10)
            equal(set(stream.comments), {": ping"})
            p.release()
            stream.all()


@test("the_log_keeps_its_rules",
      "EVT-001 EVT-002 EVT-003 EVT-004 EVT-005 EVT-006 EVT-007 EVT-009 RUN-16 ID-13 ID-15 VAL-01 "
      "EVT-013 EVT-015 EVT-016")
def envelope():
    with Server() as s:
        runs = [s.create(agent, "hi", conversation_id="c") for agent in ("echo", "demo") * 5]
        runs += [s.create("echo", "alone")]
        for run_id in runs[:10]:
            s.finish(run_id)
        ended = check_session(s.session_events(runs[9]))
        equal((set(ended), set(ended.values())), (set(runs[:10]), {True}))
        equal(check_session(s.session_events(runs[10])), {runs[10]: True})


@test("a_slow_reader_costs_nobody_and_loses_nothing", "PERF-04 PERF-09 SSE-03")
def slow_reader():
    """It stops reading while far more is written than may wait for it, then reads on."""
    message = "0123456789abcdef" * 32768
    with Server(stall_timeout_seconds="1h") as s:
        first = s.create("echo", message, conversation_id="c")
        session = s.record(first)["session_id"]
        slow = Stream(s.url, f"/api/sessions/{session}/events", s.token, receive_buffer=65536)
        slow.next()
        s.events(first)
        before = s.resident_kb()
        fast_bytes = 0
        for _ in range(24):
            run_id = s.create("echo", message, conversation_id="c")
            with s.stream(run_id) as stream:
                events = stream.all()
                fast_bytes += len(stream.raw)
                equal(text_of(events), message)
        check(fast_bytes > 10_000_000, fast_bytes)
        grown = s.resident_kb() - before
        check(grown < 64 * 1024 or "san" in BUILD, f"{grown} KiB more for one slow reader")
        got = slow.until(lambda e: e.data["type"] == "turn.completed" and
                         e.data["run_id"] == run_id)
        slow.close()
        equal([e.id for e in got], list(range(2, len(got) + 2)))
        text = "".join(e.data["payload"]["text"] for e in got if e.data["type"] == "model.delta")
        equal(len(text), 25 * len(message))


@test("a_slow_model_stream_is_held_back_not_lost", "PERF-04 NEV-03")
def long_answer():
    """Much from a provider while one reader stands still."""
    words = 100_000
    with Provider() as p, Server(env=p.env(f"long:{words}"), stall_timeout_seconds="1h") as s:
        run_id = s.create("assistant", "hi")
        slow = s.stream(run_id, receive_buffer=65536)
        slow.next()
        whole = s.events(run_id)
        equal(whole[-1].type, "RunDone", whole[-1])
        equal(len(text_of(whole).split()), words)
        equal(text_of(slow.all()), text_of(whole))
        check_run_stream(whole, run_id)


@test("readers_that_come_and_go_while_it_runs_see_one_story", "SSE-05 SSE-08")
def churn():
    """Reads two events, leaves, comes back with the number of the last one, until the end."""
    def piecewise(s, run_id):
        seen, cursor = [], 0
        while not seen or seen[-1].type not in ("RunDone", "Error"):
            with s.stream(run_id, after=cursor) as stream:
                for event in stream:
                    seen.append(event)
                    cursor = event.id
                    if len(seen) % 2 == 0:
                        break
        return keys(seen)
    with Provider() as p, Server(env=p.env("paced:80:2")) as s:
        run_id = s.create("assistant", "hi")
        parts = all_of([lambda: piecewise(s, run_id)] * 8)
        whole = keys(s.events(run_id))
        for part in parts:
            equal(part, whole)


@test("a_stream_whose_next_event_is_damaged_is_cut_and_then_refused", "ERR-08")
def damaged():
    with Server() as s:
        run_id = s.create("demo", "a run of many rows")
        s.finish(run_id)
        s.stop()
        with sqlite3.connect(os.path.join(s.data, "uar.db")) as db:
            rows = [r[0] for r in db.execute("SELECT pos FROM log WHERE rid = (SELECT rid FROM runs WHERE run_id = ?)",
                                             (run_id,))]
            check(len(rows) > 2, rows)
            db.execute("UPDATE log SET body = replace(body, 'a', 'b') WHERE pos = ?", (rows[-1],))
        db.close()
        s.start()
        with s.stream(run_id) as stream:
            came = list(stream)
            check(came and stream.cut and not stream.ended, came[-1:])
        check("stream.cut" in s.log(), s.log())
        last = came[-1].id
        equal(refusal(lambda: s.stream(run_id, header=last)).status, 500)
        out = run_uar("logs", run_id, "--url", s.url, "--token", s.token, home=s.root)
        check(out.returncode == 1 and "INTERNAL" in out.stderr, out)



main()
