#!/usr/bin/env python3
"""Recorded streams: listed, replayed byte for byte, and run as if they happened now."""
import hashlib
import json
import os
import signal
import tempfile
import time

from lib import (FIXTURES, Server, Stream, check, check_run_stream, check_session, equal, main,
                 refused, test, without_run_id)
from lib.events import lines_of
from lib.sse import Refusal

NAMES = ["failure", "hello", "superseded", "tools"]
KINDS = {"RunStart": {"run_id", "agent_id"}, "ChatDelta": {"run_id", "text_delta"},
         "ReasoningDelta": {"run_id", "text_delta"}, "Citation": {"run_id", "sources"},
         "MemoryRecall": {"run_id", "items"}, "Error": {"run_id", "code", "message"},
         "ToolStart": {"run_id", "tool_call_id", "tool", "input"},
         "ToolDelta": {"run_id", "tool_call_id", "delta"},
         "ToolEnd": {"run_id", "tool_call_id", "output", "ok"},
         "Artifact": {"run_id", "artifact"}, "RunDone": {"run_id"},
         "meta": {"run_id", "phase", "status", "title", "metadata"}}


def shown(event):
    """Without ids that each run has of its own."""
    e = without_run_id(event)
    e["data"].get("metadata", {}).pop("superseded_message_id", None)
    return e


def lines(name):
    return lines_of(os.path.join(FIXTURES, name + ".jsonl"))


def replay(s, name, query="", headers=None):
    with Stream(s.url, f"/api/fixtures/{name}/stream{query}", s.token, headers) as stream:
        events = stream.all()
        return events, bytes(stream.raw)


def write(folder, name, *rows):
    with open(os.path.join(folder, name + ".jsonl"), "w") as f:
        for kind, data in (("RunStart", {"agent_id": "fixture"}),) + rows:
            f.write(json.dumps({"type": kind, "data": {"run_id": "x", **data}}) + "\n")


@test("every_line_is_a_normalized_event", "FIX-01")
def parse():
    found = set()
    for name in NAMES:
        for line in lines(name):
            check(set(line) <= {"type", "data", "at_ms"}, line)
            equal(set(line["data"]), KINDS[line["type"]], line)
            found.add(line["type"])
    equal(found, set(KINDS), "each variant is in a fixture")


@test("only_files_are_listed", "")
def listed():
    with tempfile.TemporaryDirectory() as folder:
        write(folder, "one")
        os.mkdir(os.path.join(folder, "folder.jsonl"))
        os.symlink("one.jsonl", os.path.join(folder, "link.jsonl"))
        with Server(fixtures_dir=folder) as s:
            equal(s.http.get("/api/fixtures").json, {"fixtures": ["one"]})


@test("replay_keeps_order_and_every_byte", "API-16 FIX-02 FIX-06 SSE-01 NEV-17")
def replays():
    with Server(fixtures_dir=FIXTURES, heartbeat_seconds="10m") as s:
        equal(s.http.get("/api/fixtures").json, {"fixtures": NAMES})
        for name in NAMES:
            events, raw = replay(s, name)
            equal([e.data for e in events],
                  [{"type": e["type"], "data": e["data"]} for e in lines(name)], name)
            equal([e.id for e in events], list(range(1, len(events) + 1)))
            equal(replay(s, name)[1], raw, "twice the same bytes")
            for n in range(len(events) + 1):
                equal([e.key() for e in replay(s, name, f"?after={n}")[0]],
                      [e.key() for e in events[n:]])
            equal([e.key() for e in replay(s, name, "", {"Last-Event-ID": "2"})[0]],
                  [e.key() for e in events[2:]])


@test("replay_at_the_recorded_pace", "API-16")
def pace():
    with Server(fixtures_dir=FIXTURES, heartbeat_seconds="10m") as s:
        began = time.monotonic()
        paced = replay(s, "hello", "?pace=recorded")
        took = time.monotonic() - began
        check(took > lines("hello")[-1]["at_ms"] / 1000 - 0.01, "too fast", took)
        equal(paced[1], replay(s, "hello")[1], "pace changes no byte")


@test("a_fixture_runs_as_if_it_happened", "FIX-01 FIX-02 NEV-05 NEV-06 NEV-07 NEV-08 NEV-09 "
      "NEV-10 NEV-11 NEV-13 NEV-17 EVT-059")
def runs():
    with Server(fixtures_dir=FIXTURES) as s:
        for name in NAMES:
            for speed in ("full", "recorded"):
                run_id = s.create("fixture", None, inputs={"fixture": name, "pace": speed})
                events = s.events(run_id)
                check_run_stream(events, run_id)
                equal([shown(e) for e in events], [shown(e) for e in lines(name)], name)
                equal(check_session(s.session_events(run_id)), {run_id: True})
                r = s.record(run_id)
                equal(r["status"], "failed" if name == "failure" else "succeeded")
                if speed == "recorded":
                    took = r["finished_at"] - r["created_at"]
                    check(took > lines(name)[-1]["at_ms"] / 1000 - 0.01, "too fast", took)
        equal(r["error"], None)


@test("bad_fixtures_are_refused", "ERR-08")
def bad():
    with Server(fixtures_dir=FIXTURES) as s:
        for name in ("missing", "..", "%2e%2e%2fhello", "Hello", "hello.jsonl", "a" * 65):
            a = s.http.get(f"/api/fixtures/{name}/stream")
            check(a.status in (400, 404), name, a.status)
        for query in ("?after=99", "?after=x", "?last_event_id=99", "?pace=slow", "?pace="):
            try:
                replay(s, "hello", query)
                raise AssertionError("opened with " + query)
            except Refusal as r:
                refused(r, 400, "VALIDATION_ERROR", query.split("=")[0])


@test("a_run_of_a_bad_fixture_is_not_made", "ERR-05 ERR-08")
def bad_runs():
    with tempfile.TemporaryDirectory() as folder, Server(fixtures_dir=folder) as s:
        write(folder, "good", ("RunDone", {}))
        os.mkdir(os.path.join(folder, "folder.jsonl"))
        os.mkfifo(os.path.join(folder, "pipe.jsonl"))
        os.symlink("good.jsonl", os.path.join(folder, "link.jsonl"))
        with open(os.path.join(folder, "large.jsonl"), "w") as f:
            f.truncate(17 << 20)
        for inputs, status, code, where in (
                ({"fixture": "missing"}, 404, "NOT_FOUND", "fixture"),
                ({"fixture": "folder"}, 404, "NOT_FOUND", "fixture"),
                ({"fixture": "pipe"}, 404, "NOT_FOUND", "fixture"),
                ({"fixture": "link"}, 404, "NOT_FOUND", "fixture"),
                ({"fixture": "large"}, 413, "PAYLOAD_TOO_LARGE", "fixture"),
                ({"fixture": "../good"}, 400, "VALIDATION_ERROR", "fixture"),
                ({"fixture": 1}, 400, "VALIDATION_ERROR", "fixture"),
                ({"fixture": ""}, 400, "VALIDATION_ERROR", "fixture"),
                ({}, 400, "VALIDATION_ERROR", "fixture"),
                ({"fixture": "good", "pace": "slow"}, 400, "VALIDATION_ERROR", "pace"),
                ({"fixture": "good", "pace": 1}, 400, "VALIDATION_ERROR", "pace")):
            refused(s.http.post("/api/runs", {"agent_id": "fixture", "inputs": inputs}), status,
                    code, "/inputs/" + where)
            refused(s.http.post("/runs", {"plugin_id": "uar.agent", "entry_id": "fixture",
                                          "args": inputs}), status, code, "/args/" + where)
        equal(s.http.get("/api/runs").json["runs"], [])
        for body in ({"fixture": "good"}, {"fixture": "good", "message": "m" * 9000}):
            equal(s.finish(s.create("fixture", None, inputs=body))["status"], "succeeded")
        for name in ("folder", "pipe", "link"):
            refused(s.http.get(f"/api/fixtures/{name}/stream"), 404, "NOT_FOUND")
        os.unlink(os.path.join(folder, "good.jsonl"))
        run_id = s.http.get("/api/runs").json["runs"][0]["run_id"]
        again = s.http.post(f"/api/runs/{run_id}/retry").json["run_id"]
        equal(s.events(again)[-1].data["data"]["code"], "NOT_FOUND", "it was there once")


@test("a_broken_file_is_not_replayed_in_part", "ERR-08")
def broken():
    good = '{"type":"RunStart","data":{}}\n'
    with tempfile.TemporaryDirectory() as folder, Server(fixtures_dir=folder) as s:
        for text, line in ((good + "\n" + good + "garbage\n" + good, 4), ('{"type":"RunStart"', 1),
                           (good + '{"type":"x","data":1}', 2)):
            with open(os.path.join(folder, "broken.jsonl"), "w", encoding="utf-8") as f:
                f.write(text)
            said = s.http.get("/api/fixtures/broken/stream")
            refused(said, 500, "INTERNAL")
            check(f'fixture "broken", line {line}: ' in said.json["detail"], said.json)
        run = s.finish(s.create("fixture", None, inputs={"fixture": "broken"}))
        equal((run["status"], run["error"]["code"]), ("failed", "VALIDATION_ERROR"), run)


@test("a_line_may_be_longer_than_an_event_of_the_log", "")
def long_line():
    with tempfile.TemporaryDirectory() as folder, Server(fixtures_dir=folder) as s:
        event = {"type": "ChatDelta", "data": {"text_delta": "x" * 3000000}}
        with open(os.path.join(folder, "long.jsonl"), "w", encoding="utf-8") as f:
            f.write(json.dumps(event) + "\n")
        with Stream(s.url, "/api/fixtures/long/stream", s.token) as stream:
            equal([e.data for e in stream.all()], [event])


@test("a_stop_ends_replays_too", "")
def stop():
    with tempfile.TemporaryDirectory() as folder, \
            Server(fixtures_dir=folder, drain_seconds="1h") as s:
        with open(os.path.join(folder, "slow.jsonl"), "w") as f:
            for at in (0, 3_600_000):
                f.write(json.dumps({"type": "RunDone", "data": {"run_id": "x"}, "at_ms": at}) + "\n")
        with Stream(s.url, "/api/fixtures/slow/stream?pace=recorded", s.token) as stream:
            stream.next()
            s.proc.send_signal(signal.SIGTERM)
            equal(stream.all(), [])
            equal(stream.retry, 1000)
        equal(s.wait(), 0)


@test("what_is_long_is_kept_apart_and_what_is_unknown_fails", "STAT-14 PERF-10")
def too_large():
    """No run may succeed that lost an event on its way into the log."""
    call = {"tool_call_id": "c", "tool": "t"}
    large = {"artifact_id": "a", "artifact_type": "text", "title": "t", "content": "y" * 20000,
             "metadata": {}}
    with tempfile.TemporaryDirectory() as folder, Server(fixtures_dir=folder) as s:
        write(folder, "artifact", ("Artifact", {"artifact": large}), ("RunDone", {}))
        write(folder, "unknown", ("ChatDelta", {"text_delta": "a"}), ("Surprise", {}),
              ("RunDone", {}))
        write(folder, "output", ("ToolStart", {**call, "input": {}}),
              ("ToolEnd", {"tool_call_id": "c", "output": "z" * 20000, "ok": True}),
              ("RunDone", {}))
        for name in ("artifact", "unknown", "output"):
            run_id = s.create("fixture", None, inputs={"fixture": name, "pace": "full"})
            events = s.events(run_id)
            kinds = [e.type for e in events]
            r = s.record(run_id)
            whole = kinds == [e["type"] for e in lines_of(os.path.join(folder, name + ".jsonl"))]
            equal((whole, r["status"]), (False, "failed") if name == "unknown"
                  else (True, "succeeded"), name)
            if name == "unknown":
                equal(r["error"]["code"], "VALIDATION_ERROR")
            else:
                data = events[-2].data["data"]
                data = data.get("artifact", data)
                text = data.get("content", data.get("output"))
                check(set(text) < {"y", "z"} and len(text) == 2048, data)
                check(data["truncated"], data)
                ref = data.get("content_ref", data.get("output_ref"))
                equal(ref, "blob://" + hashlib.sha256(text[:1].encode() * 20000).hexdigest())
            equal(check_session(s.session_events(run_id)), {run_id: True})


main()
