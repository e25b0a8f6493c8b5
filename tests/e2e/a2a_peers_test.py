#!/usr/bin/env python3
"""Runs whose work an agent of another runtime does over A2A: the official SDK of both versions, another UAR, and an agent
that drops, forgets and repeats.

time limit: 300 s, peers are processes that start, die and come back"""
import contextlib
import json
import os
import subprocess
import threading

from lib import ROOT, SAFETY, Server, check, check_session, equal, main, refused, test, text_of, wait_until
from lib.a2a_faulty import Faulty
from lib.npm import modules, node
from lib.payloads import check_payload
from lib.web import free_port

ENV = {"UAR_OUTBOUND_ALLOW": "127.0.0.1"}
DONE = {"succeeded", "failed", "canceled", "timeout"}


class Sdk:
    """An agent of the official SDK in a process of its own."""

    def __init__(self, version="1.0"):
        self.version, self.port = version, free_port()
        self.lines, self.changed = [], threading.Condition()
        self.start()

    def start(self):
        self.proc = subprocess.Popen([node(), os.path.join(ROOT, "tests", "e2e", "lib", "a2a_peer.mjs"), modules("a2a"),
                                      self.version, str(self.port)],
                                     stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.url = json.loads(self.proc.stdout.readline())["url"]
        threading.Thread(target=self.listen, args=[self.proc], daemon=True).start()

    def listen(self, proc):
        for line in proc.stdout:
            with self.changed:
                self.lines.append(json.loads(line))
                self.changed.notify_all()

    def wait(self, key, n=1):
        with self.changed:
            check(self.changed.wait_for(lambda: len(self.of(key)) >= n, SAFETY), key, self.lines)
            return self.of(key)

    def of(self, key):
        return [x for x in self.lines if key in x]

    def go(self):
        self.proc.stdin.write("go\n")
        self.proc.stdin.flush()

    def kill(self):
        self.proc.kill()
        self.proc.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()


def define(s, url, name="far", **more):
    definition = {"version": "1.0", "kind": "agent", "id": name,
                  "runtime": {"entry": "peer.a2a", "peer": {"card_url": url, **more}}}
    a = s.http.send("PUT", "/api/agents/" + name, definition)
    equal(a.status, 201, a.body)


def events(s, run_id):
    log = s.session_events(run_id)
    check_session(log)
    for e in log:
        check_payload(e.data)
    return [e.data for e in log if e.data.get("run_id") == run_id]


def steps(s, run_id):
    """What was recorded about the peer: (step, found)."""
    with s.session_stream(s.record(run_id)["session_id"], stored=1) as stream:
        log = [e.data for e in stream.all()]
    return [(p["step"], p.get("found")) for p in (e["payload"].get("metadata", {}).get("peer") for e in log
                                                  if e["type"] == "run.status" and e["run_id"] == run_id) if p]


def peer_of(s, run_id):
    return s.record(run_id)["peer"]


def wait_peer(s, run_id, what, **members):
    def there():
        r = s.record(run_id)
        return all(r["peer"].get(k) == v for k, v in members.items()) and r
    return wait_until(there, what)


def asked(s, run_id):
    return wait_until(lambda: (lambda r: r if r.get("actions") else None)(s.record(run_id)), "a question")["actions"][0]


def answer(s, action, decision, **more):
    a = s.http.post("/api/control/respond_action", {"action_id": action["action_id"], "decision": decision, **more})
    equal(a.status, 200, a.body)


def made(log):
    return [(e["payload"]["artifact_type"], e["payload"]["title"], e["payload"]["bytes"]) for e in log
            if e["type"] == "artifact.changed"]


def judge(version):
    with Sdk(version) as peer, Server(env=ENV) as s:
        define(s, peer.url)
        run_id = s.create("far", "hello")
        equal(text_of(s.events(run_id)), "hello")
        record, log = s.record(run_id), events(s, run_id)
        task = peer.wait("executed")[0]["task"]
        equal((record["status"], record["peer"]["remote_task_id"], record["peer"]["state"]), ("succeeded", task, "delivered"))
        given = [e["payload"]["remote"] for e in log if e["type"] == "task.delegated"]
        equal(len(given), 1)
        equal({**given[0], "native_status": "", "remote_context_id": ""},
              {"native_protocol": "a2a", "remote_task_id": task, "remote_context_id": "", "agent_card_ref": peer.url,
               "delivery_mechanism": "streaming", "native_status": ""})
        view = s.http.get(f"/api/sessions/{record['session_id']}?include=tasks").json
        seen = [t for group in view["tasks"].values() if isinstance(group, list) for t in group if "remote" in t]
        equal([(t["remote"]["remote_task_id"], t["remote"]["remote_context_id"]) for t in seen],
              [(task, given[0]["remote_context_id"])])
        equal(seen[0]["task_id"], [e["task_id"] for e in log if e["type"] == "task.delegated"][0])
        equal(seen[0]["native_status"], record["peer"]["native_status"])

        run_id = s.create("far", "parts")
        equal(text_of(s.events(run_id)), "one two")
        equal(sorted(made(events(s, run_id))), [("file", "x.bin", 4), ("json", "Extra", 7), ("markdown", "Answer", 7)])
        for word, code, why in (("fail", "PEER_FAILED", "it broke"), ("reject", "PEER_REJECTED", "not my trade")):
            r = s.finish(s.create("far", word))
            equal((r["status"], r["error"]["code"], r["error"]["message"]), ("failed", code, why))
        equal(text_of(s.events(s.create("far", "message"))), "no task was needed")

        talk = {"conversation_id": "talk"}
        first = s.finish(s.create("far", "one", **talk))
        second = s.finish(s.create("far", "two", **talk))
        equal(second["peer"]["remote_context_id"], first["peer"]["remote_context_id"], "one conversation on both sides")
        check(second["peer"]["remote_task_id"] != first["peer"]["remote_task_id"])


@test("an_agent_of_the_official_sdk_does_the_work", "A2A-08 A2A-09")
def official():
    judge("1.0")


@test("an_agent_of_the_official_sdk_of_0_3_does_the_work", "A2A-08 A2A-09")
def official_old():
    judge("0.3")


def asks(version):
    with Sdk(version) as peer, Server(env=ENV) as s:
        define(s, peer.url)
        run_id = s.create("far", "ask")
        action = asked(s, run_id)
        equal((action["action_type"], action["prompt"]), ("structured_input", "Which city?"))
        equal(s.record(run_id)["engine_status"], "waiting_input")
        s.restart()
        equal(s.record(run_id)["peer"]["state"], "waiting")
        refused(s.http.post("/api/control/respond_action", {"action_id": action["action_id"], "decision": "submit",
                                                            "payload": {"no": 1}}), 400, "VALIDATION_ERROR")
        answer(s, action, "submit", payload={"text": "Rome"})
        equal(text_of(s.events(run_id)), "told: Rome")
        equal([x["text"] for x in peer.of("executed")], ["ask", "Rome"])
        equal(len({x["task"] for x in peer.of("executed")}), 1)
        run_id = s.create("far", "auth")
        action = asked(s, run_id)
        equal((action["action_type"], action["prompt"]), ("tool_permission", "May I call the bank?"))
        answer(s, action, "allow")
        equal(text_of(s.events(run_id)), "told: allow")
        run_id = s.create("far", "ask")
        answer(s, asked(s, run_id), "decline", reason="not today")
        check(text_of(s.events(run_id)).startswith("told: decline"), s.record(run_id))


@test("what_a_peer_asks_is_an_action_and_its_answer_goes_back", "A2A-09")
def questions():
    asks("1.0")


@test("the_same_with_a_peer_of_0_3", "A2A-09")
def questions_old():
    asks("0.3")


@test("a_kill_in_the_middle_of_a_stream_sends_nothing_twice", "A2A-09")
def killed():
    for version in ("1.0", "0.3"):
        with Sdk(version) as peer, Server(env=ENV) as s:
            define(s, peer.url)
            run_id = s.create("far", "slow")
            with s.stream(run_id) as stream:
                stream.until(lambda e: e.data.get("type") == "ChatDelta")
            before = steps(s, run_id)
            s.restart()
            wait_until(lambda: ("status", "running") in steps(s, run_id)[len(before):], "the peer's task was found at work")
            peer.go()
            record = s.finish(run_id)
            equal((record["status"], len(peer.of("executed"))), ("succeeded", 1), record)
            a = s.http.get(f"/api/runs/{run_id}/answer")
            if a.status == 200:
                check(b"half whole" in a.body, a.body)
            equal(record["peer"]["delivery_mechanism"] in ("subscription", "polling"), True)
            log = events(s, run_id)
            equal("".join(e["payload"]["text"] for e in log if e["type"] == "model.delta" and e["payload"]["message_id"] ==
                          record["result_refs"][0]), "half whole")


@test("a_peer_that_dies_is_waited_for_and_its_task_never_completes", "A2A-09 CHAN-04")
def died():
    with Sdk() as peer, Server(env=ENV) as s:
        define(s, peer.url)
        run_id = s.create("far", "slow")
        with s.stream(run_id) as stream:
            stream.until(lambda e: e.data.get("type") == "ChatDelta")
        peer.kill()
        r = wait_peer(s, run_id, "the peer is gone", state="unreachable")
        wait_until(lambda: s.record(run_id)["engine_status"] == "waiting_resource", "it waits")
        before = steps(s, run_id)
        s.restart()
        wait_until(lambda: len(steps(s, run_id)) > len(before), "the peer is looked for again")
        wait_until(lambda: s.record(run_id)["engine_status"] == "waiting_resource", "it waits again")
        equal((r["status"], r["error"]), ("running", None))
        peer.start()  # a peer that remembers nothing
        record = s.finish(run_id)
        equal((record["status"], record["error"]["code"], record["peer"]["state"]), ("failed", "PEER_TASK_MISSING", "missing"))
        check("task.completed" not in {e["type"] for e in events(s, run_id)})


@test("a_cancel_reaches_the_peer", "A2A-09")
def cancelled():
    for version in ("1.0", "0.3"):
        with Sdk(version) as peer, Server(env=ENV) as s:
            define(s, peer.url)
            run_id = s.create("far", "slow")
            with s.stream(run_id) as stream:
                stream.until(lambda e: e.data.get("type") == "ChatDelta")
            s.cancel(run_id)
            equal(s.finish(run_id)["status"], "canceled")
            peer.wait("cancelled")
    for state in ("INPUT_REQUIRED", "WORKING"):
        with Faulty() as peer, Server(env=ENV) as s:
            peer.script = lambda p, task, m, state=state: p.set(task, state, "What?")
            define(s, peer.url)
            run_id = s.create("far")
            wait_peer(s, run_id, "the task is known", remote_task_id="t0")
            if state == "INPUT_REQUIRED":  # nobody is at work here
                asked(s, run_id)
                s.restart()
            else:
                peer.faults["CancelTask"] = "silent"  # the server dies before the peer has heard it
                s.cancel(run_id)
                peer.wait(lambda: peer.asked("CancelTask"))
                s.kill()
                s.start()
            if state == "INPUT_REQUIRED":
                s.cancel(run_id)
            equal(s.finish(run_id)["status"], "canceled")
            check(peer.asked("CancelTask") and peer.tasks["t0"]["status"]["state"] == "TASK_STATE_CANCELED", peer.seen)


@test("a_cancel_that_the_peer_did_not_hear_is_told", "A2A-09")
def deaf():
    with Faulty() as peer, Server(env=ENV) as s:
        peer.script = lambda p, task, m: p.set(task, "WORKING")
        define(s, peer.url)
        run_id = s.create("far")
        wait_peer(s, run_id, "the task is known", remote_task_id="t0")
        peer.faults["CancelTask"] = "deaf"
        s.cancel(run_id)
        equal(s.finish(run_id)["status"], "canceled")
        check([e for e in events(s, run_id) if e["type"] == "runtime.warning" and
               e["payload"]["code"] == "PEER_NOT_CANCELLED"])


@test("a_cancel_is_over_when_the_task_is_and_is_told_when_it_is_not", "A2A-09")
def unconfirmed():
    def goes_on(h, body, task):
        peer.set(task, "WORKING")
        h.reply(json.dumps({"jsonrpc": "2.0", "id": body["id"], "result": peer.shown(task)}).encode())

    def stops(h, body, task):
        peer.set(task, "CANCELED" if len(peer.asked("GetTask")) > looks + 1 else "WORKING")
        peer.faults["GetTask"] = stops
        h.reply(json.dumps({"jsonrpc": "2.0", "id": body["id"], "result": peer.shown(task)}).encode())

    def refuses(state):
        def fault(h, body, task):
            peer.set(task, state)
            peer.error(h, body, -32002 if state == "COMPLETED" else -32004, "this is not done")
        return fault

    for cancel, get, told in ((goes_on, stops, None), (refuses("COMPLETED"), None, None),
                              (refuses("WORKING"), None, "does not cancel"), (goes_on, None, "did not confirm")):
        with Faulty() as peer, Server(env=ENV) as s:
            peer.script = lambda p, task, m: p.set(task, "WORKING")
            define(s, peer.url)
            run_id = s.create("far")
            wait_peer(s, run_id, "the task is known", remote_task_id="t0")
            looks = len(peer.asked("GetTask"))
            peer.faults.update({"CancelTask": cancel, **({"GetTask": get} if get else {})})
            s.cancel(run_id)
            equal(s.finish(run_id)["status"], "canceled")
            warned = [e["payload"] for e in events(s, run_id) if e["type"] == "runtime.warning"]
            equal([w["code"] for w in warned], ["PEER_NOT_CANCELLED"] if told else [])
            check(not told or told in json.dumps(warned), warned)
            equal(len(peer.asked("CancelTask")), 1)
            check(told or peer.tasks["t0"]["status"]["state"].endswith(("CANCELED", "COMPLETED")), peer.tasks)


@test("six_states_are_told_apart_after_a_restart", "CHAN-04")
def six():
    words = {"running": ("WORKING", None), "idle": ("SUBMITTED", None), "waiting": ("INPUT_REQUIRED", "Which one?"),
             "completed_undelivered": ("COMPLETED", None), "missing": (None, None), "unreachable": (None, None)}
    with contextlib.ExitStack() as stack:
        s = stack.enter_context(Server(env=ENV))
        peers, runs = {}, {}
        for word in words:
            peers[word] = stack.enter_context(Faulty())
            peers[word].script = lambda p, task, m: p.set(task, "WORKING")
            define(s, peers[word].url, word)
            runs[word] = s.create(word)
            wait_peer(s, runs[word], "the task is known", remote_task_id="t0")
        s.kill()
        for word, (state, text) in words.items():
            peer = peers[word]
            if word == "missing":
                peer.tasks.clear()
            elif word == "unreachable":
                peer.server.shutdown()
                peer.server.server_close()
            elif word == "completed_undelivered":
                peer.finish(peer.tasks["t0"], "here it is")
            else:
                peer.set(peer.tasks["t0"], state, text)
        s.start()
        for word, run_id in runs.items():
            if word == "completed_undelivered":
                equal(s.finish(run_id)["status"], "succeeded")
                check(("status", word) in steps(s, run_id), steps(s, run_id))
            else:
                wait_peer(s, run_id, word, state=word)
            equal(len(peers[word].asked("SendMessage")), 1, word)
        wait_until(lambda: s.record(runs["waiting"])["engine_status"] == "waiting_input", "the question")
        equal(s.finish(runs["missing"])["error"]["code"], "PEER_TASK_MISSING")
        for word in ("running", "idle", "waiting", "unreachable"):
            check(s.record(runs[word])["status"] not in DONE, word)
            s.cancel(runs[word])
            equal(s.finish(runs[word])["status"], "canceled")
        peers["unreachable"].server_close = None
        peers["unreachable"].__class__ = Closed


class Closed(Faulty):
    def __exit__(self, *_):
        pass


@test("an_answer_that_was_lost_is_looked_for_and_not_asked_for_again", "A2A-09")
def lost():
    with Faulty() as peer, Server(env=ENV) as s:
        define(s, peer.url)
        peer.faults["SendMessage"] = "drop after"  # it has it, and we do not know
        run_id = s.create("far", "once")
        equal((s.finish(run_id)["status"], len(peer.messages)), ("succeeded", 1))
        peer.faults["SendMessage"] = "drop before"  # it does not
        run_id = s.create("far", "again")
        equal((s.finish(run_id)["status"], len(peer.messages)), ("succeeded", 2))
        check(("unsent", "idle") in steps(s, run_id), steps(s, run_id))
        equal(len({m["messageId"] for m in peer.messages}), 2)


@test("who_cannot_know_asks_before_a_message_is_sent_again", "A2A-09")
def uncertain():
    for peer in (Faulty("0.3"), Faulty(history=False), Faulty(lists=False)):
        send = "message/send" if peer.version == "0.3" else "SendMessage"
        with peer, Server(env=ENV) as s:
            define(s, peer.url)
            peer.faults[send] = "drop after"
            run_id = s.create("far", "one")
            action = asked(s, run_id)
            equal((action["kind"], action["action_type"]), ("peer_send_again", "tool_permission"))
            check(s.record(run_id)["peer"]["message_in_doubt"])
            s.restart()
            equal(len(peer.messages), 1)
            answer(s, action, "deny")
            r = s.finish(run_id)
            equal((r["status"], r["error"]["code"], len(peer.messages)), ("failed", "PEER_UNCERTAIN", 1))
            peer.faults[send] = "drop before"
            run_id = s.create("far", "two")
            answer(s, asked(s, run_id), "allow")
            equal((s.finish(run_id)["status"], len(peer.messages)), ("succeeded", 2))


@test("an_answer_to_a_question_is_given_once", "A2A-09")
def answers_once():
    def script(p, task, m):
        if len(task["history"]) > 1:
            p.finish(task, "thanks")
        else:
            p.set(task, "INPUT_REQUIRED", "Which one?", {"schema": {"type": "object", "required": ["n"],
                                                                   "properties": {"n": {"type": "integer"}}}})
    with Faulty() as peer, Server(env=ENV) as s:
        peer.script = script
        define(s, peer.url)
        for fault, sent in (("drop after", 2), ("drop before", 2)):
            peer.messages.clear()
            run_id = s.create("far", "x")
            action = asked(s, run_id)
            peer.faults["SendMessage"] = fault
            refused(s.http.post("/api/control/respond_action", {"action_id": action["action_id"], "decision": "submit",
                                                                "payload": {"n": "no"}}), 400, "VALIDATION_ERROR")
            answer(s, action, "submit", payload={"n": 7})
            equal((s.finish(run_id)["status"], len(peer.messages)), ("succeeded", sent), fault)
            equal(peer.messages[1]["parts"], [{"data": {"n": 7}}])


@test("streams_that_repeat_mix_up_flood_or_break_are_not_believed", "A2A-09")
def hostile():
    def update(task, **artifact):
        return {"artifactUpdate": {"taskId": task["id"], "contextId": task["contextId"], **artifact}}

    def mixed(h, body, task):
        peer.stream(h)
        peer.event(h, body, {"task": {**task, "status": {"state": "TASK_STATE_WORKING"}, "artifacts": []}})
        for _ in range(2):  # a replay
            peer.event(h, body, update(task, append=True, artifact={"artifactId": "a", "parts": [{"text": "false "}]}))
        peer.event(h, body, {"statusUpdate": {"taskId": "another", "contextId": "c", "status": {"state": "TASK_STATE_FAILED"}}})
        peer.event(h, body, {"statusUpdate": {"taskId": task["id"], "contextId": "c", "status": {"state": "TASK_STATE_COMPLETED"}}})

    def flood(h, body, task):
        peer.stream(h)
        peer.event(h, body, {"task": {**task, "status": {"state": "TASK_STATE_WORKING"}, "artifacts": []}})
        with contextlib.suppress(OSError):
            while True:
                peer.event(h, body, update(task, append=True, artifact={"artifactId": "a", "parts": [{"text": "x" * 50000}]}))

    def cut(h, body, task):
        peer.stream(h)
        peer.event(h, body, {"task": {**task, "status": {"state": "TASK_STATE_WORKING"}, "artifacts": []}})

    with Faulty(streams=True) as peer, Server(env=ENV) as s:
        define(s, peer.url)
        for fault, status, what in ((mixed, "succeeded", "done"), (cut, "succeeded", "done"), (flood, "failed", "PEER_INVALID"),
                                    ("wrong id", "failed", "PEER_INVALID")):
            peer.faults["SendStreamingMessage"] = fault
            run_id = s.create("far", "x")
            record = s.finish(run_id)
            equal(record["status"], status, (fault, record))
            if status == "failed":
                equal(record["error"]["code"], what)
                continue
            log = events(s, run_id)
            equal("".join(e["payload"]["text"] for e in log if e["type"] == "model.delta" and
                          e["payload"]["message_id"] == record["result_refs"][0]), what)
        check(s.resident_kb() < 400000, s.resident_kb())


@test("an_agent_elsewhere_is_the_child_of_one_here", "A2A-08 A2A-09")
def child():
    boss = {"version": "1.0", "kind": "agent", "id": "boss", "runtime": {"entry": "llm.chat"},
            "policy": {"provider": {"default": {"provider": "scripted", "model": "scripted-tools"}}, "agents": ["far"],
                       "tools": {"allow": ["internal:agent.*"]}}}

    def outputs(run_id):
        return [e.data["data"]["output"] for e in s.events(run_id) if e.type == "ToolEnd"]

    with Faulty() as peer, Server(env=ENV) as s:
        define(s, peer.url)
        equal(s.http.send("PUT", "/api/agents/boss", boss).status, 201)
        draft = 'tool agent.spawn {"agent_id":"far","message":"draft"}'
        [started, waited] = outputs(s.create("boss", draft + "\nthen\ntool agent.wait {}"))
        check("done" in json.dumps(waited), started, waited)
        equal([m["parts"] for m in peer.messages], [[{"text": "draft"}]])
        peer.script = lambda p, task, m: p.set(task, "WORKING")
        [started] = outputs(s.create("boss", draft))
        check(peer.wait(lambda: len(peer.messages) == 2), peer.seen)
        a = s.http.post("/api/control/close_subagent", {"subagent_id": started["subagent"]["subagent_id"], "reason": "enough"})
        equal(a.status, 200, a.body)
        check(peer.wait(lambda: peer.asked("CancelTask")), peer.seen)


@test("a_card_is_kept_checked_and_may_not_lead_elsewhere", "A2A-08")
def cards():
    with Faulty() as peer, Faulty() as other, Server(env={**ENV, "UAR_SECRET_FAR": "s3cr3t-of-far"},
                                                     secret_grants=json.dumps({"FAR": {"hosts": [f"127.0.0.1:{peer.port}"]}})) as s:
        define(s, peer.url, headers={"Authorization": "Bearer ${secret:FAR}"})
        for _ in range(3):
            equal(s.finish(s.create("far"))["status"], "succeeded")
        equal(peer.cards, 1, "one card for a while")
        equal({h["Authorization"] for h in peer.headers}, {"Bearer s3cr3t-of-far"})
        equal({h["A2A-Version"] for h in peer.headers}, {"1.0"})
        define(s, other.url, "leads")
        other.host = peer.url
        r = s.finish(s.create("leads"))
        equal((r["status"], r["error"]["code"]), ("failed", "PEER_INVALID"))
        check("runtime.peer.hosts" in r["error"]["message"], r["error"])
        define(s, other.url, "allowed", hosts=[f"127.0.0.1:{peer.port}"])
        equal(s.finish(s.create("allowed"))["status"], "succeeded")
        define(s, other.url, "stray", hosts=[f"127.0.0.1:{peer.port}"], headers={"X": "${secret:NONE}"})
        r = s.finish(s.create("stray"))
        equal((r["status"], r["error"]["code"]), ("failed", "PEER_SETUP"))
        check("s3cr3t" not in s.log() and b"s3cr3t" not in s.http.get("/api/runs").body)
    with Faulty() as peer, Server() as s:  # nobody has allowed this machine
        define(s, peer.url)
        r = s.finish(s.create("far"))
        equal((r["status"], peer.cards), ("failed", 0), r)
    with Server() as s:
        bad = {"version": "1.0", "kind": "agent", "id": "far", "runtime": {"entry": "peer.a2a"}}
        refused(s.http.send("PUT", "/api/agents/far", bad), 400, "VALIDATION_ERROR")
        bad["runtime"] = {"entry": "llm.chat", "peer": {"card_url": "http://x.example"}}
        refused(s.http.send("PUT", "/api/agents/far", bad), 400, "VALIDATION_ERROR")


@test("another_uar_is_a_peer_and_may_be_killed_at_any_point", "A2A-08 A2A-09")
def uar_to_uar():
    age = {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}}
    form = "tool ui.form.request " + json.dumps({"title": "Who are you?", "schema": age})
    with Server() as right:
        host = right.url.removeprefix("http://")
        right.settings["listen"] = host
        stack = Server(env={**ENV, "UAR_SECRET_RIGHT": right.token}, secret_grants=json.dumps({"RIGHT": {"hosts": [host]}}))
        with stack as left:
            two_runtimes(left, right, form)


def two_runtimes(left, right, form):
    for name in ("echo", "tools"):
        define(left, f"{right.url}/a2a/{name}", name + "-there", headers={"Authorization": "Bearer ${secret:RIGHT}"})
    run_id = left.create("echo-there", "hello over there")
    equal(text_of(left.events(run_id)), "hello over there")
    equal(right.record(peer_of(left, run_id)["remote_task_id"])["status"], "succeeded")
    run_id = left.create("tools-there", form)
    action = asked(left, run_id)
    equal(action["prompt"], "Who are you?")
    right.restart()
    left.restart()
    refused(left.http.post("/api/control/respond_action", {"action_id": action["action_id"], "decision": "submit",
                                                           "payload": {}}), 400, "VALIDATION_ERROR")
    right.stop()
    answer(left, action, "submit", payload={"name": "Ann"})
    wait_peer(left, run_id, "right is away", state="unreachable")
    left.restart()
    right.start()
    record = left.finish(run_id)
    equal((record["status"], record["peer"]["state"]), ("succeeded", "delivered"), record)
    check("Ann" in text_of(left.events(run_id)))
    equal(len(right.http.get("/api/runs").json["runs"]), 2)


if __name__ == "__main__":
    main()
