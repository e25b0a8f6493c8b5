#!/usr/bin/env python3
"""Normalized events beyond the usual ones: errors of artifact previews, and the optional variants."""
import json
import os
import tempfile

from lib import Server, Stream, check, equal, main, refused, test, wait_until

SLOW = {"UAR_SCRIPTED_TOKEN_MS": "60000"}


def call(name, **args):
    return f"tool {name} {json.dumps(args)}"


def full(s, run_id):
    with Stream(s.url, f"/api/runs/{run_id}/stream?variants=full", s.token) as stream:
        return [e.data for e in stream.all()]


def of(events, kind):
    return [e["data"] for e in events if e["type"] == kind]


@test("an_error_of_a_preview_becomes_an_event", "NEV-16")
def preview():
    with Server(env=SLOW) as s:
        run_id = s.create("demo", "hi")
        path = f"/api/runs/{run_id}/artifacts/a1/errors"
        with Stream(s.url, f"/api/runs/{run_id}/stream", s.token) as stream:
            stream.until(lambda e: e.type == "ReasoningDelta")
            report = {"message": "x is not defined", "details": {"line": 3, "source": "inline"}}
            equal(s.http.post(path, report).status, 202)
            got = stream.until(lambda e: e.type == "artifact.error")[-1].data["data"]
            equal(got, {"run_id": run_id, "artifact_id": "a1", **report})
        agui = f"/api/ag-ui/runs/{run_id}/stream?dialect=chunks"
        with Stream(s.url, agui, s.token) as stream:
            [seen] = [e for e in stream.until(lambda e: e.name == "artifact.error") if e.name == "artifact.error"]
            equal(seen.data["message"], "x is not defined")
        s.http.post(f"/api/runs/{run_id}/cancel")
        s.events(run_id)
        equal(s.http.post(path, {"message": "late"}).status, 202, "also when the run is over")
        session = s.session_events(run_id)[0].data["session_id"]
        with Stream(s.url, f"/api/sessions/{session}/events", s.token) as stream:
            late = stream.until(lambda e: e.data["payload"].get("message") == "late")[-1].data
        equal((late["payload"]["message"], late["artifact_id"], late["payload"]["run_id"]), ("late", "a1", run_id))
        check("late" not in json.dumps([e.data for e in s.events(run_id)]), "the stream of the run has ended")
        refused(s.http.post("/api/runs/none/artifacts/a1/errors", {"message": "x"}), 404, "NOT_FOUND")
        refused(s.http.post(path, {}), 400, "VALIDATION_ERROR", "/message")
        answers = [s.http.post(path, {"message": "again"}).status for _ in range(70)]
        equal(set(answers), {202, 429}, "a page that never stops is stopped")


@test("optional_variants_are_shown_when_asked_for", "NEV-18")
def optional():
    with Server() as s:
        run_id = s.create("tools", call("fs.write", path="a.txt", text="x"))
        action = wait_until(lambda: (s.record(run_id).get("actions") or [None])[0], "a question")["action_id"]
        s.http.post("/api/control/respond_action", {"action_id": action, "decision": "deny", "reason": "no"})
        got = wait_until(lambda: s.record(run_id)["status"] == "succeeded" and full(s, run_id), "the end")
        [asked], [denied] = of(got, "ToolCallApprovalRequired"), of(got, "ToolCallDenied")
        equal((asked["action_id"], denied["action_id"]), (action, action))
        [end] = of(got, "ToolEnd")
        equal((end["tool"], end["ok"]), ("fs.write", False))
        check("start" in [e["phase"] for e in of(got, "RuntimeStep")], got)
        equal(got[-1]["type"], "RunDoneWithUsage")
        equal(got[-1]["data"]["usage"]["total_tokens"], s.record(run_id)["usage"]["input_tokens"] +
              s.record(run_id)["usage"]["output_tokens"])
        plain = [e.data["type"] for e in s.events(run_id)]
        check(set(plain) <= {"RunStart", "ReasoningDelta", "ChatDelta", "ToolStart", "ToolEnd", "meta", "RunDone"}, plain)
        refused(s.http.get(f"/api/runs/{run_id}/stream?variants=some"), 400, "VALIDATION_ERROR", "?variants")
    with Server(env=SLOW) as s:
        run_id = s.create("demo", "hi")
        s.http.post(f"/api/runs/{run_id}/cancel")
        equal(full(s, run_id)[-1]["type"], "Cancelled")


def channel(s, cursor=None):
    return Stream(s.url, "/channels/runs", s.token, headers={"Last-Event-ID": cursor} if cursor else None)


def compared(record):
    return {k: record[k] for k in ("run_id", "status", "updated_at", "engine_status", "stage", "attempt")}


@test("a_cursor_older_than_what_is_kept_gets_snapshots_and_then_the_rest", "SSE-10")
def old_cursor():
    with Server() as s:
        with channel(s) as ch:
            first = s.create("demo", "hi")
            old = ch.until(lambda e: e.data["run_id"] == first and e.data["status"] == "succeeded")[-1].id
        notices, watch = 0, channel(s)
        while notices <= 1030:  # more than the channel keeps
            run_id = s.create("demo", "hi")
            notices += len(watch.until(lambda e: e.data["run_id"] == run_id and e.data["status"] == "succeeded"))
        watch.close()
        for again in range(2):
            with channel(s, old) as ch:
                told = ch.until(lambda e: e.name == "resynced")
                equal((told[0].name, told[0].data["code"], told[0].data["requested"]), ("resync", "RESYNC", old))
                equal(told[0].data["used"], told[-1].id, "the cursor that is used")
                check(all(not e.id for e in told[:-1]), "one that is cut off here begins again")
                shown = [compared(e.data) for e in told if e.name == "snapshot"]
                page, want = None, []
                while page is None or page.get("next_before"):
                    page = s.http.get("/api/runs?limit=100" + (f"&before={page['next_before']}" if page else "")).json
                    want += [compared(r) for r in page["runs"]]
                equal(shown, want, "every run as it is, once")
                run_id = s.create("demo", "after")
                rest = ch.until(lambda e: e.data["run_id"] == run_id and e.data["status"] == "succeeded")
                equal({e.data["run_id"] for e in rest}, {run_id}, "then what changes")
            with channel(s, told[-1].id) as ch:
                equal([e.key() for e in ch.until(lambda e: e.id == rest[-1].id)][-1], rest[-1].key(), "its cursor is good")
            if not again:  # and after a restart nothing is kept
                s.stop()
                s.start()


@test("a_reader_that_stops_is_told_where_it_stands", "SSE-09")
def lag():
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "long.jsonl"), "w", encoding="utf-8") as f:
            rows = [("RunStart", {"agent_id": "fixture"})]
            rows += [("ChatDelta", {"text_delta": f"{i} " + "x" * 2000}) for i in range(3000)] + [("RunDone", {})]
            for kind, data in rows:
                f.write(json.dumps({"type": kind, "data": {"run_id": "x", **data}}) + "\n")
        with Server(fixtures_dir=folder, heartbeat_seconds=1) as s:
            run_id = s.http.post("/api/runs", {"agent_id": "fixture", "inputs": {"fixture": "long"}}).json["run_id"]
            stalled = Stream(s.url, f"/api/runs/{run_id}/stream", s.token, receive_buffer=4096)
            whole = s.events(run_id)
            wait_until(lambda: s.log().count("stream.lagged") or None, "the server to notice")
            got = stalled.all()
            check(stalled.ended, "the stream ends in order")
            said = got[-1]
            equal(said.name, "lag")
            equal(said.data["lastDeliveredEventId"], str(got[-2].id))
            equal([e.key() for e in got[:-1]], [e.key() for e in whole[:len(got) - 1]], "no gap before it")
            check(said.data["skippedEvents"] > 0 and said.data["oldestRetainedEventId"].endswith("1"), said.data)
            with Stream(s.url, f"/api/runs/{run_id}/stream", s.token,
                        headers={"Last-Event-ID": said.data["lastDeliveredEventId"]}) as rest:
                equal([e.key() for e in rest.all()], [e.key() for e in whole[len(got) - 1:]], "it goes on without a gap")


main()
