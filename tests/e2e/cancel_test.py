#!/usr/bin/env python3
"""Cancel really stops the work, says so truthfully, and may be asked for twice."""
from lib import (FIXTURES, Provider, Server, all_of, check, check_session, equal, main, refused,
                 test, text_of)


def streaming(s, **more):
    """A run in the middle of its model's answer."""
    run_id = s.create("assistant", "hi", **more)
    with s.stream(run_id) as stream:
        stream.until(lambda e: e.type == "ChatDelta")
    return run_id


@test("cancel_while_streaming_closes_the_model_at_once",
      "API-03 API-20 RUN-06 RUN-15 RUN-16 RUN-28 RUN-33 RUN-35 RUN-36 ERR-03 STAT-15 NEV-11")
def while_streaming():
    with Provider() as p, Server(env=p.env("gate")) as s:
        run_id = streaming(s)
        reader = s.stream(run_id)
        r = s.cancel(run_id, reason="no longer needed")
        check(r["status"] in ("cancel_requested", "canceled"), r)
        equal((r["cancel_requested"], r["cancel_reason"]), (True, "no longer needed"))
        check(r["started_at"] <= r["cancel_requested_at"] <= r["updated_at"], r)
        p.wait_for(closed_early=1)
        events = reader.all()
        equal(text_of(events), "before ", "what was said stays")
        equal(events[-1].data, {"type": "Error", "data": {
            "run_id": run_id, "code": "CANCELED", "message": "no longer needed"}})
        r = s.record(run_id)
        equal((r["status"], r["error"]["code"]), ("canceled", "CANCELED"))
        check(r["finished_at"] >= r["cancel_requested_at"], r)
        log = s.session_events(run_id)
        equal(check_session(log), {run_id: True})
        kinds = [e.data["type"] for e in log]
        want = ["task.cancel_requested", "model.failed", "task.attempt.failed", "task.cancelled",
                "turn.failed"]
        equal([k for k in kinds if k in want], want)
        payload = {e.data["type"]: e.data["payload"] for e in log}
        equal(payload["turn.failed"]["status"], "cancelled")
        equal(payload["model.failed"]["error"]["code"], "CANCELED", "nobody blames the provider")


@test("cancel_twice_is_cancel_once", "RUN-51 RUN-17")
def twice():
    with Provider() as p, Server(env=p.env("gate")) as s:
        run_id = streaming(s)
        answers = all_of([lambda: s.http.post(f"/api/runs/{run_id}/cancel", {})] * 8)
        equal({a.status for a in answers}, {200})
        events = s.events(run_id)
        equal([e.type for e in events].count("Error"), 1)
        before = s.http.get("/api/runs/" + run_id).body
        equal(s.http.post(f"/api/runs/{run_id}/cancel", {"reason": "again"}).body, before)
        log = [e.data["type"] for e in s.session_events(run_id)]
        equal(log.count("task.cancel_requested"), 1)
        s.restart()
        equal(s.http.post(f"/api/runs/{run_id}/cancel").body, before)


@test("cancel_of_what_is_over_changes_no_byte", "RUN-17 RUN-51")
def over():
    with Server(fixtures_dir=FIXTURES) as s:
        for run_id in (s.create("echo", "x"), s.create("demo", "x"),
                       s.create("fixture", None,
                                inputs={"fixture": "failure", "pace": "full"})):
            s.finish(run_id)
            before = s.http.get("/api/runs/" + run_id).body
            events = [e.key() for e in s.events(run_id)]
            a = s.http.post(f"/api/runs/{run_id}/cancel", {"reason": "late"})
            equal((a.status, a.body), (200, before))
            equal(s.http.get("/api/runs/" + run_id).body, before)
            equal([e.key() for e in s.events(run_id)], events)


@test("cancel_may_end_with_done", "RUN-10")
def as_done():
    with Provider() as p, Server(env=p.env("gate"), cancel_terminal="done") as s:
        run_id = streaming(s)
        s.cancel(run_id)
        equal(s.events(run_id)[-1].data, {"type": "RunDone", "data": {"run_id": run_id}})
        equal(s.record(run_id)["status"], "canceled")
        s.restart(cancel_terminal="error")
        equal(s.events(run_id)[-1].data["data"]["code"], "CANCELED")


@test("a_queued_run_is_cancelled_before_it_starts", "RUN-34 RUN-16 RUN-27")
def queued():
    with Provider() as p, Server(env=p.env("gate")) as s:
        first = streaming(s, conversation_id="c")
        second, third = (s.create("assistant", m, conversation_id="c") for m in ("two", "three"))
        r = s.cancel(second, reason="changed my mind")
        equal((r["status"], r["started_at"], r["cancel_requested"]), ("canceled", None, True))
        kinds = [e.type for e in s.events(second)]
        equal(kinds, ["RunStart", "Error"])
        p.release()
        equal(s.finish(first)["status"], "succeeded")
        equal(s.finish(third)["status"], "succeeded")
        equal(p.stats()["requests"], 2, "the cancelled run asked the model")
        ended = check_session(s.session_events(third))
        equal(ended, {first: True, second: True, third: True})


@test("the_next_turn_follows_a_cancelled_one", "RUN-16")
def next_turn():
    with Provider() as p, Server(env=p.env("gate")) as s:
        first = streaming(s, conversation_id="c")
        second = s.create("assistant", "two", conversation_id="c")
        s.cancel(first)
        p.release()
        equal(s.finish(second)["status"], "succeeded")
        said = [m["content"] for m in p.stats()["last"]["messages"]]
        equal(said[1:], ["hi", "before ", "two"])


@test("a_cancelled_run_reports_its_usage", "")
def usage():
    """The call that was cut reported none; the run says so with a count, not with silence."""
    with Provider() as p, Server(env=p.env("gate")) as s:
        run_id = streaming(s)
        s.cancel(run_id)
        r = s.finish(run_id)
        check("usage" in r and r["usage"]["output_tokens"] >= 0, r)
        end = next(e.data for e in s.session_events(run_id)
                   if e.data["type"] == "task.attempt.failed")
        check("usage" in end["payload"], end)


@test("cancel_survives_a_crash", "RUN-35 RUN-17")
def crash():
    """Asked for and acknowledged: after kill -9 the run is over, not going on."""
    with Provider() as p, Server(env=p.env("gate")) as s:
        for _ in range(5):
            run_id = streaming(s)
            s.cancel(run_id, reason="stop")
            s.restart()
            equal(s.events(run_id)[-1].data["data"]["code"], "CANCELED")
            r = s.record(run_id)
            equal((r["status"], r["cancel_reason"]), ("canceled", "stop"))


@test("bad_cancels_are_refused", "ERR-05 ERR-08")
def bad():
    with Server() as s:
        run_id = s.create("echo", "x")
        s.finish(run_id)
        path = f"/api/runs/{run_id}/cancel"
        for body in ({"reason": 5}, {"why": "x"}):
            refused(s.http.post(path, body), 400, "VALIDATION_ERROR", "/" + next(iter(body)))
        refused(s.http.post(path, b"[]"), 400, "VALIDATION_ERROR")
        refused(s.http.get(path), 405, "METHOD_NOT_ALLOWED")
        equal(s.http.send("POST", path, headers={"Content-Length": "0"}).status, 200)
        equal(s.http.post(path, {"reason": "x" * 5000}).status, 200)


main()
