#!/usr/bin/env python3
"""Runs as a user makes them: create, read, list, repeat, converse, time out."""
import json
import re
import subprocess

from lib import (UAR, Provider, Server, all_of, check, check_session, equal, main, refused, test, text_of,
                 wait_until)
from lib.events import UUID

RECORD = {"run_id": str, "plugin_id": str, "entry_id": str, "agent_id": str, "status": str,
          "session_id": str, "conversation_id": str, "turn_id": str, "root_run_id": str, "attempt": int,
          "created_at": float, "updated_at": float, "started_at": float, "finished_at": float,
          "cancel_requested": bool, "result_refs": list}
OR_NULL = ("parent_run_id", "task_id", "trace_id", "idempotency_key", "cancel_reason",
           "cancel_requested_at", "error")


@test("create_answers_at_once_and_the_run_ends",
      "API-01 API-19 API-26 ACC-01 RUN-01 RUN-09 RUN-23 RUN-24 RUN-25 RUN-27 RUN-29 RUN-32 "
      "RUN-44")
def create():
    with Server() as s:
        a = s.http.post("/api/runs", {"agent_id": "echo", "inputs": {"message": "hi"}})
        equal(a.status, 202, a.body)
        run_id = a.json["run_id"]
        check(UUID.match(run_id), run_id)
        equal(sorted(a.json), ["run_id", "status", "stream_url"])
        check(a.json["status"] in ("queued", "running", "succeeded"), a.json)  # an echo may be over
        equal(a.json["stream_url"], f"/api/runs/{run_id}/stream")
        equal(a.headers["location"], f"/api/runs/{run_id}")
        equal(text_of(s.events(run_id)), "hi")
        r = s.http.get(a.headers["location"]).json
        for key, kind in RECORD.items():
            check(isinstance(r[key], kind), key, r)
        for key in OR_NULL:
            check(key in r and r[key] is None, key, r)
        equal((r["status"], r["progress"], r["attempt"]), ("succeeded", None, 1))
        equal((r["plugin_id"], r["entry_id"], r["root_run_id"]), ("uar.agent", "echo", run_id))
        check(r["created_at"] <= r["started_at"] <= r["finished_at"] <= r["updated_at"], r)


@test("every_field_comes_back", "RUN-02 RUN-11 RUN-12 RUN-24 EVT-008")
def fields():
    trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    body = {"agent_id": "echo", "inputs": {"message": "hi", "colour": {"a": [1, None, "ü"]}},
            "conversation_id": "talk-1", "context": {"files": ["a.txt"]}, "idempotency_key": "k-1",
            "task_id": "task-1", "trace_id": trace, "timeout": 7.5}
    with Server() as s:
        a = s.http.post("/api/runs", body)
        equal(a.status, 202, a.body)
        log = [e.data for e in s.session_events(a.json["run_id"])]
        r = s.record(a.json["run_id"])
        equal((r["conversation_id"], r["task_id"], r["trace_id"], r["idempotency_key"]),
              ("talk-1", "task-1", trace, "k-1"))
        turn = next(e for e in log if e["type"] == "turn.submitted")
        equal(turn["payload"]["metadata"]["context"], body["context"])
        equal(json.loads(turn["payload"]["input_parts"][1]["preview"]),
              {"colour": {"a": [1, None, "ü"]}})
        equal(turn["payload"]["options"]["timeout_ms"], 7500)
        equal({(e["task_id"], e["trace_id"]) for e in log if "run_id" in e}, {("task-1", trace)})
        header = s.http.post("/api/runs", {"agent_id": "echo", "inputs": {"message": "x"}},
                             headers={"Idempotency-Key": "k-2"})
        equal(s.record(header.json["run_id"])["idempotency_key"], "k-2")


def nested(levels):
    return {"a": nested(levels - 1)} if levels > 1 else {}


@test("bad_bodies_are_refused_with_a_pointer", "ERR-05 ERR-08 API-01")
def bad_bodies():
    ok = {"agent_id": "echo", "inputs": {"message": "hi"}}
    deep = b'{"agent_id":"echo","inputs":' + b'{"a":' * 80 + b"1" + b"}" * 81
    cases = [
        ({**ok, "agent_id": 5}, "/agent_id"), ({"inputs": {"message": "x"}}, "/agent_id"),
        ({**ok, "agent_id": ""}, "/agent_id"), ({**ok, "agent_id": "a b"}, "/agent_id"),
        ({**ok, "agent_id": "a" * 129}, "/agent_id"), ({**ok, "inputs": []}, "/inputs"),
        ({**ok, "inputs": "hi"}, "/inputs"), ({**ok, "inputs": {"message": 5}}, "/inputs/message"),
        ({**ok, "inputs": {}}, "/inputs/message"), ({**ok, "context": "x"}, "/context"),
        ({**ok, "conversation_id": "ü"}, "/conversation_id"),
        ({**ok, "idempotency_key": ["k"]}, "/idempotency_key"), ({**ok, "task_id": 1}, "/task_id"),
        ({**ok, "trace_id": True}, "/trace_id"), ({**ok, "trace_id": "two words"}, "/trace_id"),
        ({**ok, "colour": 1}, "/colour"),
        ({**ok, "context": nested(49)}, "/context"),
        (b"", "/agent_id"), (b"nonsense", "1:1"), (b"[]", "1:1"), (b"null", "1:1"),
        (b'{"agent_id":', "1:13"), (b'{"a":\n1,"a":2}', "2:3"), (b'{"a":"\xff"}', "1:7"),
        (deep, "1:344"), (b'\xef\xbb\xbf{"agent_id":"echo","inputs":{"message":"x"}}', "1:1"),
    ]
    with Server() as s:
        for body, where in cases:
            refused(s.http.post("/api/runs", body), 400, "VALIDATION_ERROR", where)
        refused(s.http.post("/api/runs", {**ok, "agent_id": "nobody"}), 404, "NOT_FOUND",
                "/agent_id")
        refused(s.http.post("/api/runs", {**ok, "context": {"a": "x" * 9000}}), 413,
                "PAYLOAD_TOO_LARGE", "/context")
        refused(s.http.post("/api/runs", {**ok, "inputs": {"message": "m", "x": "y" * 9000}}), 413,
                "PAYLOAD_TOO_LARGE", "/inputs")
        many = b'{"agent_id":"echo","inputs":{"message":"m","x":[' + b"1e-300," * 1000000 + b"1]}}"
        refused(s.http.post("/api/runs", many), 413, "PAYLOAD_TOO_LARGE", f"1:{49 + 7 * (262144 - 5)}")
        for kind in ("text/plain", "application/x-www-form-urlencoded", None):
            refused(s.http.post("/api/runs", ok, headers={"Content-Type": kind}), 415,
                    "UNSUPPORTED_MEDIA_TYPE", "Content-Type")
        equal(s.http.post("/api/runs", ok, headers={
            "Content-Type": "Application/JSON; charset=utf-8"}).status, 202)
        refused(s.http.send("PUT", "/api/runs", ok), 405, "METHOD_NOT_ALLOWED")
        for key in ("a b", ""):
            refused(s.http.post("/api/runs", ok, headers={"Idempotency-Key": key}), 400,
                    "VALIDATION_ERROR", "Idempotency-Key")
        refused(s.http.post("/api/runs", {**ok, "idempotency_key": "a"},
                            headers={"Idempotency-Key": "b"}), 400, "VALIDATION_ERROR")
        equal(len(s.http.get("/api/runs").json["runs"]), 1, "refused bodies made runs")


@test("what_is_not_there_is_404", "ERR-08 API-19")
def not_found():
    missing = "01a1e106-d68b-740e-8cdd-a8031c7b3c19"
    with Server() as s:
        for path in (f"/api/runs/{missing}", f"/api/runs/{missing}/stream", "/api/runs/x",
                     f"/api/sessions/{missing}/events", "/api/fixtures/none/stream", "/nothing",
                     "/api/runs/" + "x" * 200, "/api/runs/%ff"):
            refused(s.http.get(path), 404, "NOT_FOUND")
        refused(s.http.post(f"/api/runs/{missing}/cancel"), 404, "NOT_FOUND")


@test("what_is_not_there_is_named", "ERR-08")
def named():
    with Server() as s:
        s.ready()
        s.finish(s.create("echo"))  # an owner without runs has none of anything
        run, session = "no run none", "no session none"
        for method, path, what in (
                ("GET", "/api/runs/none", run), ("GET", "/api/runs/none/stream", run),
                ("POST", "/api/runs/none/cancel", run), ("POST", "/api/runs/none/retry", run),
                ("GET", "/api/runs/none/actions/1/input", run), ("GET", "/runs/none/export", run),
                ("GET", "/runs/none/export/x/content", run), ("GET", "/runs/none/export?after=x", run),
                ("GET", "/channels/export?run_id=none", run), ("GET", "/api/sessions/none/events", session),
                ("GET", "/api/runs/%C3%A9", "ids are 1 to 128 visible ASCII characters")):
            a = s.http.send(method, path, {} if method == "POST" else None)
            refused(a, 404, "NOT_FOUND")
            equal(a.json["detail"], what, path)


@test("list_filters_and_pages", "API-21 RUN-14")
def listing():
    with Server() as s:
        made = [s.create("echo", f"m{i}", task_id=f"t{i % 3}") for i in range(20)]
        made += [s.create("demo", "m", conversation_id="c") for _ in range(3)]
        for run_id in made:
            s.finish(run_id)

        def ids(query=""):
            a = s.http.get("/api/runs" + query)
            equal(a.status, 200, a.body)
            return [r["run_id"] for r in a.json["runs"]]
        newest = made[::-1]
        equal(ids("?limit=500"), newest)
        equal(ids("?agent_id=demo"), newest[:3])
        equal(ids("?task_id=t1"), made[1:20:3][::-1])
        equal(ids("?task_id=t1&agent_id=demo"), [])
        equal(ids("?status=succeeded&plugin_id=uar.agent"), newest)
        equal(ids("?status=failed"), [])
        equal(ids("?session_id=" + s.record(made[-1])["session_id"]), newest[:3])
        for size in (1, 7, 23):
            seen, cursor = [], ""
            while cursor is not None:
                page = s.http.get(f"/api/runs?limit={size}" + cursor).json
                check(len(page["runs"]) <= size)
                seen += [r["run_id"] for r in page["runs"]]
                cursor = page["next_before"] and "&before=" + page["next_before"]
            equal(seen, newest, f"pages of {size}")
        for query in ("limit=0", "limit=501", "limit=x", "limit=-1", "limit=1e2", "status=done"):
            refused(s.http.get("/api/runs?" + query), 400, "VALIDATION_ERROR",
                    "?" + query.split("=")[0])


@test("one_key_is_one_run_also_after_a_crash", "RUN-40 RUN-41 RUN-43")
def idempotency():
    body = {"agent_id": "echo", "inputs": {"message": "once"}, "idempotency_key": "key"}
    with Server() as s:
        answers = all_of([lambda: s.http.post("/api/runs", body)] * 64)
        equal({a.status for a in answers}, {202})
        equal(len({a.json["run_id"] for a in answers}), 1)
        equal(len([a for a in answers if a.headers.get("idempotent-replayed") == "true"]), 63)
        run_id = answers[0].json["run_id"]
        s.finish(run_id)
        for change in ({"agent_id": "demo"}, {"inputs": {"message": "twice"}},
                       {"conversation_id": "c"}, {"context": {"a": 1}}):
            refused(s.http.post("/api/runs", {**body, **change}), 409, "CONFLICT")
        s.restart()
        again = s.http.post("/api/runs", {**body, "trace_id": "ab" * 16, "timeout": 9})
        equal((again.status, again.json["run_id"]), (202, run_id))
        equal(again.json["status"], "succeeded")
        refused(s.http.post("/api/runs", {**body, "inputs": {"message": "x"}}), 409, "CONFLICT")
        entry = {"plugin_id": "uar.agent", "entry_id": "echo", "args": body["inputs"],
                 "idempotency_key": "key"}
        equal(s.http.post("/runs", entry).json["run_id"], run_id, "the same work, asked elsewhere")
        equal(len(s.http.get("/api/runs").json["runs"]), 1)
        equal([e.type for e in s.events(run_id)], ["RunStart", "ChatDelta", "RunDone"])


@test("a_conversation_remembers", "RUN-02 RUN-09 ID-02 ID-04")
def conversation():
    with Server() as s:
        for turn in range(4):
            if turn == 2:
                s.restart()
            run_id = s.create("demo", f"number {turn}", conversation_id="talk")
            text = text_of(s.events(run_id))
            equal(re.search(r"turns before this one: (\d+)", text)[1], str(turn), text)
        equal(len({r["session_id"] for r in s.http.get("/api/runs").json["runs"]}), 1)
        ended = check_session(s.session_events(run_id))
        equal((len(ended), all(ended.values())), (4, True))
        other = s.create("demo", "hi", conversation_id="other")
        check("turns before this one: 0" in text_of(s.events(other)))


@test("long_messages_are_remembered_whole", "RUN-02")
def long_memory():
    """What was kept apart because of its size is part of the past all the same."""
    long = [f"{i} " * 3000 for i in (1, 2)]
    with Provider() as p, Server(env=p.env("hello")) as s:
        for text in long + ["short"]:
            s.finish(s.create("assistant", text, conversation_id="c"))
        said = [m["content"] for m in p.stats()["last"]["messages"] if m["role"] == "user"]
        equal([len(m) for m in said], [len(m) for m in long] + [5])
        equal(said[:2], long)
        for _ in range(3):
            s.finish(s.create("assistant", "x" * 500_000, conversation_id="c"))
        last = s.create("assistant", "after it", conversation_id="c")
        equal(s.finish(last)["status"], "succeeded")
        total = sum(len(m["content"]) for m in p.stats()["last"]["messages"])
        check(1_000_000 < total < 1_050_000, "the past is bounded", total)
        log = [e.data for e in s.session_events(last)]
        told = [e["payload"]["omissions"] for e in log
                if e["type"] == "context.resolved" and e["run_id"] == last]
        check(len(told) == 1 and "older messages" in told[0][0]["reason"], told)


@test("turns_of_one_conversation_take_turns", "RUN-13 RUN-16 STAT-02")
def one_after_the_other():
    with Server() as s:
        runs = all_of([lambda i=i: s.create("demo", f"m{i}", conversation_id="c")
                       for i in range(16)])
        texts = [text_of(s.events(r)) for r in runs]
        equal(sorted(int(re.search(r"this one: (\d+)", t)[1]) for t in texts), list(range(16)))
        ended = check_session(s.session_events(runs[0]))
        equal(len({s.record(r)["session_id"] for r in runs}), 1)
        check(ended[runs[0]])


@test("a_second_turn_waits_for_the_first", "STAT-02 RUN-27")
def waits():
    with Provider() as p, Server(env=p.env("gate")) as s:
        first = s.create("assistant", "one", conversation_id="c")
        p.wait_for(requests=1)
        second = s.create("assistant", "two", conversation_id="c")
        r = s.record(second)
        equal((r["status"], r["started_at"], r["finished_at"]), ("queued", None, None))
        with s.stream(second) as stream:
            equal(stream.next().type, "RunStart")
            p.release()
            stream.all()
        equal(s.record(first)["status"], "succeeded")
        said = p.stats()["last"]["messages"]
        equal([m["content"] for m in said[-3:]], ["one", "before after", "two"])
        check(s.record(first)["finished_at"] <= s.record(second)["started_at"])


@test("a_run_that_takes_too_long_is_stopped", "ERR-01 ERR-02 RUN-49 STAT-12")
def timeout():
    with Provider() as p, Server(env=p.env("stall"), run_timeout_seconds="300s") as s:
        run_id = s.create("assistant", "hi", timeout=0.2)
        end = s.events(run_id)[-1].data
        equal((end["type"], end["data"]["code"]), ("Error", "TIMEOUT"))
        if any(e.data["type"] == "model.requested" for e in s.session_events(run_id)):
            wait_until(lambda: (n := p.stats())["closed_early"] == n["requests"], "it is let go")
        r = s.record(run_id)
        equal((r["status"], r["error"]["code"]), ("timeout", "TIMEOUT"))
        check(r["error"]["message"] and "details" in r["error"], r["error"])
        check(r["finished_at"] - r["created_at"] > 0.19, r)  # the loop's clock has milliseconds
        kinds = [e.data["type"] for e in s.session_events(run_id)]
        began = ["model.failed"] if "model.requested" in kinds else []
        equal([k for k in kinds if k in ("model.failed", "task.timed_out", "turn.failed")],
              began + ["task.timed_out", "turn.failed"], "also on a machine that slow")
        for override in (0, -1, None, "x", True, []):
            quick = s.create("echo", "hi", timeout=override)
            turn = [e.data for e in s.session_events(quick)][2]
            equal(turn["payload"]["options"]["timeout_ms"], 300000, override)


@test("a_run_behind_a_question_says_what_it_waits_for", "")
def behind_a_question():
    with Server() as s:
        asks = s.create("tools", 'tool fs.write {"path": "a.txt", "text": "x"}', conversation_id="c")
        action = wait_until(lambda: (s.record(asks).get("actions") or [None])[0], "a question")["action_id"]
        more = {"agent_id": "echo", "conversation_id": "c", "inputs": {"message": "more"}}
        for path in ("/api/runs", "/api/ag-ui/runs"):
            queued = s.http.post(path, more).json
            equal((queued["status"], queued["waits_behind"]["run_id"], queued["waits_behind"]["action_id"]), ("queued", asks, action))
        again = subprocess.Popen([UAR, "run", "echo", "again", "--conversation", "c", "--data", s.data], stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, text=True)
        told = again.stderr.readline()
        check(asks in told and "waits for an answer" in told and "uar approve" in told, told)
        check("waits_behind" not in s.http.post("/api/runs", {**more, "conversation_id": "d"}).json)
        s.http.post("/api/control/respond_action", {"action_id": action, "decision": "deny"})
        equal(s.finish(queued["run_id"])["status"], "succeeded")
        check("again" in again.communicate()[0], "it has begun")
        check("waits_behind" not in s.http.post("/api/runs", more).json, "nobody waits any more")


@test("long_input_comes_back_whole", "NEV-03 NEV-17 PERF-10 EVT-011")
def long_input():
    texts = ["".join(chr(97 + i % 26) for i in range(100_000)), '"\\\n' * 40_000,
             "\x01\x1f" * 30_000, "äöü€🙂" * 8_000, " \u2028\u00e9\x7f" * 9_000, "x"]
    with Server() as s:
        for text in texts:
            run_id = s.create("echo", text)
            log = s.session_events(run_id)
            equal(text_of(s.events(run_id)), text, text[:20])
            check(max(len(e.text) for e in log) <= 16384, "an event is larger than its limit")
        s.restart()
        equal(text_of(s.events(run_id)), "x")


main()
