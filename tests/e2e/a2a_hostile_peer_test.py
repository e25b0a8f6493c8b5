#!/usr/bin/env python3
"""Agents elsewhere that lie, leak, flood or contradict themselves: they harm nothing but their own run.

time limit: 240 s"""
import base64
import contextlib
import json
import threading

from lib import Server, check, check_session, equal, main, test, text_of, wait_until
from lib.a2a_faulty import Faulty

ENV = {"UAR_OUTBOUND_ALLOW": "127.0.0.1"}
SECRET = "Zk4-s3cr3t%of/far~wide"


def define(s, url, name="far", **more):
    a = s.http.send("PUT", "/api/agents/" + name, {"version": "1.0", "kind": "agent", "id": name,
                                                   "runtime": {"entry": "peer.a2a", "peer": {"card_url": url, **more}}})
    check(a.status in (200, 201), a.body)


def reply(h, body, result):
    h.reply(json.dumps({"jsonrpc": "2.0", "id": body["id"], "result": result}).encode())


def working(task):
    return {"task": {**task, "status": {"state": "TASK_STATE_WORKING"}, "artifacts": []}}


def piece(task, text, artifact="a", **more):
    return {"artifactUpdate": {"taskId": task["id"], "contextId": task["contextId"], "append": True,
                               "artifact": {"artifactId": artifact, "parts": [{"text": text}]}, **more}}


def status(task, state):
    return {"statusUpdate": {"taskId": task["id"], "contextId": task["contextId"], "status": {"state": "TASK_STATE_" + state}}}


def artifacts(*list_of_parts):
    return [{"artifactId": f"a{i}", "name": f"n{i}", "parts": parts} for i, parts in enumerate(list_of_parts)]


def answer_of(s, run_id):
    record = s.finish(run_id)
    log = s.session_events(run_id)
    check_session(log)
    said = [e.data["payload"] for e in log if e.data["type"] == "model.delta" and e.data["run_id"] == run_id]
    last = record["result_refs"][0] if record["result_refs"] else None
    return record, "".join(p["text"] for p in said if p["message_id"] == last), said


@test("a_secret_that_a_peer_gives_back_is_in_nothing_that_is_kept", "SEC-02 A2A-09")
def leaks():
    def stream(h, body, task):
        seen = h.headers["Authorization"]
        peer.stream(h)
        peer.event(h, body, working(task))
        for c in ("you sent " + seen + ", thanks; ends with " + seen):
            peer.event(h, body, piece(task, c))
        task["artifacts"] = artifacts(
            [{"text": "you sent " + seen + ", thanks; ends with " + seen}],
            [{"data": {"headers": {"authorization": seen, seen: 1}}}],
            [{"raw": base64.b64encode(b"A: " + seen.encode()).decode(), "filename": "x.txt", "mediaType": "text/plain"}],
            [{"url": "http://x.example/?k=" + SECRET}])
        peer.set(task, "COMPLETED", "I had " + seen, {"token": SECRET})
        peer.event(h, body, status(task, "COMPLETED"))

    def asks(h, body, task):
        seen = h.headers["Authorization"]
        peer.set(task, "INPUT_REQUIRED", "Is it " + seen, {"schema": {"type": "object", "title": seen, "properties": {"x": {
            "type": "string", "default": seen}}}})
        reply(h, body, {"task": peer.shown(task)})

    def refuses(h, body, _):
        h.reply(json.dumps({"jsonrpc": "2.0", "id": body["id"], "error": {
            "code": -32000, "message": "no entry for " + h.headers["Authorization"]}}).encode())

    with Faulty(streams=True) as peer:
        grants = json.dumps({"FAR": {"hosts": [f"127.0.0.1:{peer.port}"]}})
        with Server(env={**ENV, "UAR_SECRET_FAR": SECRET}, secret_grants=grants) as s:
            define(s, peer.url, headers={"Authorization": "Bearer ${secret:FAR}"})
            runs = []
            for fault in (stream, asks, refuses):
                peer.faults["SendStreamingMessage"] = fault
                runs.append(s.create("far"))
                if fault is asks:
                    action = wait_until(lambda: s.record(runs[1]).get("actions"), "a question")[0]
                    equal(action["prompt"], "Is it Bearer <redacted>")
                    s.cancel(runs[1])
                s.finish(runs[-1])
            record, text, _ = answer_of(s, runs[0])
            equal((record["status"], text), ("succeeded", "you sent Bearer <redacted>, thanks; ends with Bearer <redacted>"))
            equal(s.record(runs[2])["error"]["message"], "the peer refused: no entry for Bearer <redacted>")
            made = [e.data["payload"] for e in s.session_events(runs[0]) if e.data["type"] == "artifact.changed"]
            equal(len(made), 4)
            everything = [s.log()]
            for run_id in runs:
                everything += [json.dumps(e.data) for e in s.session_events(run_id)]
                everything += [json.dumps(e.data) for e in s.events(run_id)]
            for m in made:
                everything.append(s.http.get(f"/api/runs/{runs[0]}/blobs/{m['sha256']}").body.decode())
            coded = base64.b64encode(SECRET.encode()).decode()[:20]
            for text in everything:
                check(SECRET not in text and coded not in text and "s3cr3t" not in text, text[:1000])


@test("a_secret_is_not_in_the_warning_of_a_cancel_that_failed", "SEC-02 A2A-09")
def leaking_refusal():
    with Faulty() as peer:
        peer.script = lambda p, task, m: p.set(task, "WORKING")
        grants = json.dumps({"FAR": {"hosts": [f"127.0.0.1:{peer.port}"]}})
        with Server(env={**ENV, "UAR_SECRET_FAR": SECRET}, secret_grants=grants) as s:
            define(s, peer.url, headers={"Authorization": "Bearer ${secret:FAR}"})
            peer.faults["CancelTask"] = lambda h, body, _: peer.error(h, body, -32000, "no entry for " + h.headers["Authorization"])
            run_id = s.create("far")
            check(peer.wait(lambda: peer.asked("GetTask")), peer.seen)
            s.cancel(run_id)
            log = json.dumps([e.data for e in s.session_events(run_id)])
            check("no entry for Bearer <redacted>" in log and SECRET not in log + s.log(), log[-2000:])


@test("a_password_in_the_address_of_a_card_is_refused", "SEC-02 A2A-08")
def password():
    with Server() as s:
        for url, status in (("http://user:word@peer.example/card", 400), ("http://user@peer.example", 400),
                            ("http://peer.example:8080/a@b/card", 201)):
            a = s.http.send("PUT", "/api/agents/far", {"version": "1.0", "kind": "agent", "id": "far", "runtime": {
                "entry": "peer.a2a", "peer": {"card_url": url}}})
            equal((a.status, a.json.get("where")), (status, "/runtime/peer/card_url" if status == 400 else None), a.body)


@test("a_definition_cannot_write_requests_into_a_connection_that_others_use", "SEC-02 A2A-08")
def smuggling():
    with Faulty() as peer, Server(env=ENV) as s:
        for name in ("Content-Length", "transfer-encoding", "HOST", "Connection", "Expect"):
            a = s.http.send("PUT", "/api/agents/far", {"version": "1.0", "kind": "agent", "id": "far", "runtime": {
                "entry": "peer.a2a", "peer": {"card_url": peer.url, "headers": {name: "5"}}}})
            equal((a.status, a.json["where"]), (400, "/runtime/peer/headers/" + name), a.body)
        define(s, peer.url, headers={"X-Content-Length": "5"})
        equal(s.finish(s.create("far"))["status"], "succeeded")


@test("text_that_comes_anew_again_and_again_does_not_fill_the_log", "A2A-09")
def anew():
    def words(i):
        return f"{i:03} " + "x" * (100000 if i < 2 else 96)

    seen = [0]

    def more_facts():
        run_id = s.http.get("/api/runs?limit=1").json["runs"][0]["run_id"]
        a = s.http.get(f"/api/runs/{run_id}/events?after={seen[0]}").json
        seen[0] = a["through"] if a["events"] else seen[0]
        return a["events"]

    def stream(h, body, task):
        peer.stream(h)
        peer.event(h, body, working(task))
        for i in range(400):
            peer.event(h, body, piece(task, words(i), "ab"[i % 2]))
            if i < 40:  # it has read these before the next ones come
                while more_facts():
                    pass
                peer.event(h, body, status(task, ("SUBMITTED", "WORKING")[i % 2]))
                wait_until(more_facts)
        task["artifacts"] = artifacts(*[[{"text": "".join(words(i) for i in range(first, 400, 2))}] for first in (0, 1)])
        peer.set(task, "COMPLETED")
        peer.event(h, body, status(task, "COMPLETED"))

    with Faulty(streams=True) as peer, Server(env=ENV) as s:
        define(s, peer.url)
        peer.faults["SendStreamingMessage"] = stream
        record, text, said = answer_of(s, s.create("far"))
        equal(record["status"], "succeeded")
        equal(text, "\n\n".join(a["parts"][0]["text"] for a in peer.tasks["t0"]["artifacts"]))
        check(sum(len(p["text"]) for p in said) < 6 * len(text), sum(len(p["text"]) for p in said), len(text))


@test("text_of_another_answer_is_compared_before_it_goes_on", "A2A-09")
def compared():
    def stream(h, body, task):
        peer.stream(h)
        peer.event(h, body, working(task))
        peer.event(h, body, piece(task, "yes, it"))
        task["artifacts"] = artifacts([{"text": "no, it is not so"}])
        peer.set(task, "COMPLETED")
        if how == "told":
            peer.event(h, body, status(task, "COMPLETED"))

    with Faulty(streams=True) as peer, Server(env=ENV) as s:
        define(s, peer.url)
        for how in ("told", "cut"):
            peer.faults["SendStreamingMessage"] = stream
            record, text, _ = answer_of(s, s.create("far"))
            equal((record["status"], text), ("succeeded", "no, it is not so"), how)


@test("a_task_that_is_over_does_not_begin_again", "A2A-09")
def over():
    def stream(h, body, task):
        peer.stream(h)
        peer.event(h, body, working(task))
        peer.event(h, body, piece(task, "done"))
        peer.event(h, body, status(task, "COMPLETED"))
        peer.event(h, body, status(task, "FAILED"))

    for later in ("WORKING", "INPUT_REQUIRED", "SUBMITTED"):
        with Faulty(streams=True) as peer, Server(env=ENV) as s:
            peer.script = lambda p, task, m, later=later: p.set(task, later, "Who?")
            define(s, peer.url)
            peer.faults["SendStreamingMessage"] = stream
            record, text, _ = answer_of(s, s.create("far"))
            equal((record["status"], text, record["peer"]["state"]), ("succeeded", "done", "delivered"), later)
            equal(len(peer.asked("GetTask")), 1)


@test("an_answer_about_another_task_is_none", "A2A-09")
def strays():
    def other(h, body, task):
        peer.finish(task, "not yours")
        reply(h, body, {**peer.shown(task), "id": "t9"})

    def mixed(h, body, task):
        peer.stream(h)
        peer.event(h, body, {"task": {"id": "t9", "contextId": "c", "status": {"state": "TASK_STATE_COMPLETED"}}})
        peer.event(h, body, {"statusUpdate": {"taskId": "t9", "status": {"state": "TASK_STATE_FAILED"}}})
        peer.finish(task, "yours")
        peer.event(h, body, {"task": peer.shown(task)})

    with Faulty() as peer, Server(env=ENV) as s:
        peer.script = lambda p, task, m: p.set(task, "WORKING")
        define(s, peer.url)
        peer.faults["GetTask"] = other
        record = s.finish(s.create("far"))
        equal((record["status"], record["error"]["code"]), ("failed", "PEER_INVALID"))
        check("not yours" not in json.dumps([e.data for e in s.session_events(record["run_id"])]))
    with Faulty(streams=True) as peer, Server(env=ENV) as s:
        peer.script = lambda p, task, m: p.set(task, "WORKING")
        peer.subscribe = mixed
        define(s, peer.url)
        record, text, _ = answer_of(s, s.create("far"))
        equal((record["status"], text, record["peer"]["remote_task_id"]), ("succeeded", "yours", "t0"))


@test("a_task_is_cancelled_whose_run_has_ended_before_it", "A2A-09")
def abandoned():
    def lies(h, body, task):
        reply(h, body, {"no": "task"})

    for env, fault, status in (({"UAR_RUN_TIMEOUT_SECONDS": "2"}, None, "timeout"), ({}, lies, "failed")):
        with Faulty() as peer, Server(env={**ENV, **env}) as s:
            peer.script = lambda p, task, m: p.set(task, "WORKING")
            peer.faults["GetTask"] = fault
            define(s, peer.url)
            record = s.finish(s.create("far"))
            while not record["peer"]["remote_task_id"]:  # it has ended before it had a task
                record = s.finish(s.create("far"))
            equal(record["status"], status)
            check(peer.wait(lambda: peer.asked("CancelTask")), peer.seen)
            equal(peer.asked("CancelTask"), [{"id": record["peer"]["remote_task_id"]}])


@test("a_peer_without_news_is_asked_less_and_less", "A2A-09")
def quiet():
    def end_if(task, asked, times):
        if len(peer.asked(asked)) >= times:
            peer.finish(task, "at last")

    def one_answer(h, body, task):
        end_if(task, "SubscribeToTask", 8)
        reply(h, body, {"task": peer.shown(task)})

    def one_event(h, body, task):
        end_if(task, "SubscribeToTask", 8)
        peer.stream(h)
        peer.event(h, body, {"task": peer.shown(task)})

    def look(h, body, task):
        end_if(task, "GetTask", looks)
        peer.faults["GetTask"] = look
        reply(h, body, peer.shown(task))

    for subscribe, looks in ((one_answer, 2), (one_event, 5)):
        with Faulty(streams=True) as peer, Server(env=ENV) as s:
            peer.script = lambda p, task, m: p.set(task, "WORKING")
            peer.subscribe = subscribe
            peer.faults["GetTask"] = look
            define(s, peer.url)
            record, text, _ = answer_of(s, s.create("far"))
            equal((record["status"], text), ("succeeded", "at last"))
            check(len(peer.asked("SubscribeToTask")) <= 4, [m for m, _ in peer.seen])


@test("a_stream_of_comments_is_left_and_its_task_asked_for", "A2A-09")
def comments():
    def only_comments(h, body, task):
        peer.stream(h)
        peer.event(h, body, {"task": peer.shown(task)})
        with contextlib.suppress(OSError):
            while True:  # until its caller leaves
                h.wfile.write(b": still there\n\n")
                h.wfile.flush()
                left.wait(0.02)

    def look(h, body, task):
        peer.faults["GetTask"] = look
        if len(peer.asked("SubscribeToTask")) >= 5:  # more than streams that are cut in a row
            peer.finish(task, "at last")
        reply(h, body, peer.shown(task))

    left = threading.Event()
    with Faulty(streams=True) as peer, Server(env=ENV, peer_quiet_seconds="300ms") as s:
        peer.script = lambda p, task, m: p.set(task, "WORKING")
        peer.faults.update(SendStreamingMessage=only_comments, GetTask=look)
        peer.subscribe = only_comments
        define(s, peer.url)
        record, text, _ = answer_of(s, s.create("far"))
        equal((record["status"], text), ("succeeded", "at last"))
        equal(len(peer.messages), 1)
        check(len(peer.asked("GetTask")) >= len(peer.asked("SubscribeToTask")), "asked before each stream", peer.seen)
        left.set()


@test("a_bad_card_is_refused_and_read_anew_when_it_is_mended", "A2A-08")
def cards():
    def raw(body, code=200, **headers):
        return lambda h: h.reply(body, code, **headers)

    with Faulty() as peer, Faulty() as other, Server(env=ENV) as s:
        define(s, peer.url)
        deep = b'{"a":' * 5000 + b"1" + b"}" * 5000
        huge = json.dumps({**peer.card(), "description": "x" * 300000}).encode()
        to_other = {"Location": other.url + "/.well-known/agent-card.json"}
        for what, fault in (("HTML", raw(b"<html>soon</html>")), ("deep", raw(deep)), ("huge", raw(huge)),
                            ("no interface", raw(b'{"supportedInterfaces":[]}')), ("redirect", raw(b"", 302, **to_other)),
                            ("redirect", raw(b"", 308, **to_other)), ("nothing", raw(b"", 304))):
            peer.card_fault = fault
            record = s.finish(s.create("far"))
            equal(record["status"], "failed", what)
            check(record["error"]["code"] in ("PEER_INVALID", "PEER_REFUSED") and record["error"]["message"], what, record["error"])
            equal(peer.messages, [], what)
        peer.card_fault = None
        equal(s.finish(s.create("far"))["status"], "succeeded", "mended, and not a minute later")
        equal((other.cards, other.messages), (0, []))
        for code in (302, 307, 308):
            peer.faults["SendMessage"] = lambda h, body, task, code=code: h.reply(b"", code, Location=other.url)
            record = s.finish(s.create("far"))
            equal((record["status"], record["error"]["code"]), ("failed", "PEER_REFUSED"))
        equal((other.cards, other.messages), (0, []))


@test("a_card_leads_to_no_address_that_the_operator_has_not_allowed", "A2A-08")
def addresses():
    with Faulty() as peer, Faulty() as other, Server(env={"UAR_OUTBOUND_ALLOW": f"127.0.0.1:{peer.port}"}) as s:
        for n, url in enumerate((other.url, other.url.replace("127.0.0.1", "localhost"), other.url.replace("127.0.0.1", "127.1"),
                                 other.url.replace("127.0.0.1", "[::ffff:127.0.0.1]"), "http://169.254.169.254/")):
            peer.host = url
            define(s, f"{peer.url}/{n}", f"far{n}", hosts=[url.split("/")[2]])
            record = s.finish(s.create(f"far{n}"))
            equal(record["status"], "failed", url)
            check("outbound_allow" in record["error"]["message"], record["error"])
        equal((other.cards, other.messages), (0, []))


@test("all_that_a_peer_may_deliver_is_kept_and_more_is_refused", "A2A-09")
def much():
    def parts(n):
        return artifacts(*[[{"text": f"{i} " + "t" * 8000}, {"data": {"n": i, "x": "d" * 8000}},
                            {"raw": base64.b64encode(bytes([i]) * 3000).decode(), "filename": "\u202e" * 200}] for i in range(n)])

    with Faulty() as peer, Server(env=ENV) as s:
        define(s, peer.url)
        for n, want in ((64, "succeeded"), (65, "failed")):
            def script(p, task, m, n=n):
                p.set(task, "COMPLETED")
                task["artifacts"] = parts(n)
            peer.script = script
            record = s.finish(s.create("far"))
            equal(record["status"], want, record["error"])
            log = s.session_events(record["run_id"])
            check_session(log)
            equal(len([e for e in log if e.data["type"] == "artifact.changed"]), 3 * n if want == "succeeded" else 0)
        equal(record["error"]["code"], "PEER_INVALID")


@test("a_schema_that_cannot_be_used_makes_a_plain_question", "A2A-09")
def schemas():
    bad = [{"$ref": "http://169.254.169.254/latest"}, {"type": 7}, {"pattern": "(" * 5000}, {"description": "x" * 100000},
           "text", []]

    def script(p, task, m):
        if len(task["history"]) > 1:
            p.finish(task, "got " + m["parts"][0].get("text", "data"))
        else:
            p.set(task, "INPUT_REQUIRED", "Which\u0007 one?\nReally?", {"schema": bad[int(m["parts"][0]["text"])]})

    with Faulty() as peer, Server(env=ENV) as s:
        peer.script = script
        define(s, peer.url)
        for i, schema in enumerate(bad):
            run_id = s.create("far", str(i))
            action = wait_until(lambda: s.record(run_id).get("actions"), "a question")[0]
            equal(action["prompt"], "Which  one? Really?")
            a = s.http.post("/api/control/respond_action", {"action_id": action["action_id"], "decision": "submit",
                                                            "payload": {"text": "Rome"}})
            equal(a.status, 200, (schema, a.body))
            record = s.finish(run_id)
            equal((record["status"], text_of(s.events(run_id))), ("succeeded", "got Rome"), schema)


@test("a_peer_cannot_make_a_run_wait_longer_than_a_minute_at_a_time", "A2A-09")
def later():
    with Faulty() as peer, Server(env=ENV) as s:
        def busy(h, body, task):
            peer.faults["GetTask"] = busy
            h.reply(b"later", 503, **{"Retry-After": "999999999"})
        peer.script = lambda p, task, m: p.set(task, "WORKING")
        peer.faults["GetTask"] = busy
        define(s, peer.url)
        run_id = s.create("far")
        wait_until(lambda: s.record(run_id)["engine_status"] == "waiting_resource", "it waits")
        s.cancel(run_id)
        equal(s.finish(run_id)["status"], "canceled")
        waits = [e.data["payload"]["metadata"]["wait_ms"] for e in s.session_events(run_id)
                 if e.data["type"] == "run.status" and "wait_ms" in e.data["payload"].get("metadata", {})]
        check(waits and max(waits) <= 60000, waits)
        with contextlib.suppress(KeyError):
            del peer.faults["GetTask"]


if __name__ == "__main__":
    main()
