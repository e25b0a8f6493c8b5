#!/usr/bin/env python3
"""Messages between agents: kept before they are answered, read from any point, never by others,
and one of them cancels a run."""
import json
import os
import socket
import threading
from http.client import HTTPException

from lib import (Provider, Server, Stream, all_of, check, check_session, connect, equal, main,
                 refused, test, wait_until)
from lib.payloads import check_payload
from lib.sse import Refusal


def message(id="m-1", to="bob", text="hello", **more):
    return {"message_id": id, "from_agent": "alice", "to_agent": to, "conversation_id": "c-1",
            "payload": {"type": "text", "text": text},
            "capabilities": {"tools": ["kb.search"], "models": []}, **more}


def post(s, body, route="inbox"):
    return s.http.post("/api/a2a/" + route, body)


def put(s, body, route="inbox"):
    a = post(s, body, route)
    equal(a.status, 202, a.body)
    return a.json


def inbox(s, agent="bob", header=None, **query):
    path = f"/api/a2a/stream/{agent}" + "".join(f"?{k}={v}" for k, v in query.items())
    headers = {"Last-Event-ID": str(header)} if header is not None else None
    return Stream(s.url, path, s.token, headers)


def first(s, n, agent="bob", **query):
    """The first n messages of an inbox."""
    with inbox(s, agent, **query) as stream:
        return [stream.next() for _ in range(n)]


@test("a_message_is_received_on_the_recipients_stream",
      "API-10 API-11 API-12 A2A-02 A2A-05")
def delivery():
    whole = message(attachments=[{"filename": "a.txt", "media_type": "text/plain", "data": "aGk=",
                                  "note": [1, {"two": None}]}])
    with Server() as s, inbox(s) as stream:
        a = put(s, whole, "send")
        equal({k: a[k] for k in ("message_id", "to_agent", "conversation_id", "status")},
              {"message_id": "m-1", "to_agent": "bob", "conversation_id": "c-1",
               "status": "stored"})
        e = stream.next()
        equal((e.name, e.id, e.data), ("message", a["seq"], whole))
        b = put(s, message("m-2"))
        check(b["seq"] > a["seq"], a, b)
        equal(stream.next().data, message("m-2"), "without attachments it has none")
        put(s, {**message("m-3"), "capabilities": {}, "attachments": None})
        want = {**message("m-3"), "capabilities": {"tools": [], "models": []}}
        equal(stream.next().data, want)


@test("messages_wait_in_the_inbox_and_survive_kill_9", "A2A-03 API-12")
def waiting():
    with Server() as s:
        sent = [message(f"m-{i}", text="x" * i) for i in range(700)]
        seqs = [put(s, m)["seq"] for m in sent[:3]]
        all_of([lambda part=sent[3:][i::8]: [put(s, m) for m in part] for i in range(8)])
        s.restart()
        events = first(s, len(sent))
        equal([e.id for e in events[:3]], seqs)
        equal(sorted(e.data["message_id"] for e in events),
              sorted(m["message_id"] for m in sent))
        by_id = {m["message_id"]: m for m in sent}
        check(all(e.data == by_id[e.data["message_id"]] for e in events))
        check([e.id for e in events] == sorted({e.id for e in events}), "positions grow")
        for cut in (0, 5, 511, 698):
            rest = [e.key() for e in events[cut + 1:]]
            equal([e.key() for e in first(s, len(rest), after=events[cut].id)], rest)
            equal([e.key() for e in first(s, len(rest), header=events[cut].id)], rest)
        with inbox(s, header=events[-1].id) as stream:
            put(s, message("last"))
            equal(stream.next().data["message_id"], "last")


@test("each_agent_has_a_stream_of_its_own", "A2A-04 API-12")
def isolated():
    agents = [f"agent-{i}" for i in range(5)] + ["a", "a:b", "a/b", "echo", "bob.", "Bob"]
    with Server() as s:
        streams = {a: inbox(s, a.replace("/", "%2F")) for a in agents}
        all_of([lambda a=a: [put(s, message(f"{i}", to=a, text=f"{a} {i}"), route)
                             for i, route in enumerate(("send", "inbox") * 5)] for a in agents])
        for a, stream in streams.items():
            got = [stream.next() for _ in range(10)]
            equal({e.data["to_agent"] for e in got}, {a})
            equal([e.data["payload"]["text"] for e in got], [f"{a} {i}" for i in range(10)])
            stream.close()


@test("another_owner_has_another_inbox", "A2A-04 API-12")
def owners():
    """The owner comes from the credential alone: the same data, another user, another inbox."""
    with Server(user="one") as s:
        mine = put(s, message())
        s.restart(user="two")
        with inbox(s) as stream:
            theirs = put(s, message(text="for two"))
            equal(stream.next().data["payload"]["text"], "for two", "and the id was free for two")
        equal(theirs["seq"], mine["seq"])
        run_id = s.finish(s.create("echo"))["run_id"]
        s.restart(user="one")
        equal(first(s, 1)[0].data["payload"]["text"], "hello")
        a = put(s, {**message("m-2", to="echo"), "payload": {"type": "cancel", "run_id": run_id}})
        equal(a["cancel"], {"run_id": run_id, "result": "unknown"})


@test("a_message_id_is_one_message", "API-11 A2A-03")
def idempotent():
    with Server() as s, inbox(s) as stream:
        answers = all_of([lambda: post(s, message())] * 64)
        equal({(a.status, a.body) for a in answers}, {(202, answers[0].body)})
        equal(sum("idempotent-replayed" not in a.headers for a in answers), 1)
        reordered = dict(reversed(message().items()))
        again = post(s, json.dumps(reordered, indent=3).encode(), "send")
        equal((again.status, again.body), (202, answers[0].body), "it means the same")
        for other in (message(text="other"), {**message(), "conversation_id": "c-2"},
                      {**message(), "from_agent": "eve"},
                      {**message(), "payload": {"type": "cancel", "run_id": "r"}},
                      message(attachments=[{}])):
            refused(post(s, other), 409, "CONFLICT", "/message_id")
        s.restart()
        equal(post(s, message()).body, answers[0].body)
        refused(post(s, message(text="other")), 409, "CONFLICT", "/message_id")
        put(s, message(to="carol"))
        put(s, message("end"))
        equal([e.data["message_id"] for e in first(s, 2)], ["m-1", "end"], "stored once")
        equal(stream.next().data, message())


@test("long_messages_are_kept_beside_the_log", "A2A-03 API-12")
def long_ones():
    sizes = (5000, 12000, 200000, 600000, 10, 300000, 20, 7000)
    sent = [message(f"m-{i}", text="é\n" * (n // 4), attachments=[{"data": "A" * (n // 8 * 4)}])
            for i, n in enumerate(sizes)]
    room = 11264 - len(json.dumps(message("m-x", text=""), separators=(",", ":")))
    sent += [message("m-8", text="x" * room), message("m-9", text="x" * (room + 1))]
    with Server() as s, inbox(s) as live:
        for m in sent:
            put(s, m)
        equal([live.next().data for _ in sent], sent)
        s.restart()
        events = first(s, len(sent))
        equal([e.data for e in events], sent)
        for i in range(len(sent) - 1):
            equal([e.key() for e in first(s, len(sent) - 1 - i, after=events[i].id)],
                  [e.key() for e in events[i + 1:]])
        equal(post(s, sent[3]).status, 202)
        with s.session_stream("uar.inbox:bob") as stream:
            log = stream.until(lambda e: e.data["payload"].get("message_id") == "m-9")
        check(all(len(e.text.encode()) <= 16384 for e in log), "an event stays small")
        equal([e.data["payload"]["message_id"] for e in log
               if "content_ref" in e.data.get("refs", {})], ["m-1", "m-2", "m-3", "m-5", "m-9"])
        refused(post(s, message("big", text="x" * 1048576)), 413, "PAYLOAD_TOO_LARGE")


@test("an_event_has_room_for_the_worst_names", "A2A-03")
def worst():
    """Each byte of a name takes two in JSON, of the preview six."""
    q = '"' * 128
    m = {"message_id": q, "from_agent": q, "to_agent": q[:96], "conversation_id": "\\" * 128,
         "payload": {"type": "cancel", "run_id": q, "text": "\x01" * 200, "pad": ""},
         "capabilities": {"tools": [], "models": []}}
    m["payload"]["pad"] = "x" * (11264 - len(json.dumps(m, separators=(",", ":"))))
    with Server(tenant=q, workspace=q, user=q) as s:
        put(s, m)
        equal([e.data for e in first(s, 1, "%22" * 96)], [m])
        with s.session_stream("uar.inbox:" + "%22" * 96) as stream:
            kept = [stream.next() for _ in range(2)][1]
        check("content" in kept.data["payload"] and len(kept.text) > 15000, len(kept.text))


@test("a_slow_reader_of_an_inbox_misses_nothing", "API-12 A2A-05")
def slow():
    """Long and short messages in turn, more than may wait for one reader."""
    sent = [message(f"m-{i}", text="x" * (150000 if i % 3 == 0 else 3000)) for i in range(60)]
    with Server() as s:
        reader = Stream(s.url, "/api/a2a/stream/bob", s.token, receive_buffer=65536)
        for m in sent:
            put(s, m)
        reader.hurry()
        equal([reader.next().data for _ in sent], sent)
        reader.close()
        late = [Stream(s.url, "/api/a2a/stream/bob", s.token, receive_buffer=65536)
                for _ in range(8)]
        for reader in late[::2]:
            reader.close()  # while a long message is on its way to it
        for reader in late[1::2]:
            reader.hurry()
            equal([reader.next().data["message_id"] for _ in sent],
                  [m["message_id"] for m in sent])
            reader.close()


@test("the_log_tells_of_messages", "A2A-02 EVT-105")
def log():
    with Server() as s:
        put(s, message(text="look"))
        with s.session_stream("uar.inbox:bob") as stream:
            created, kept = stream.next().data, stream.next().data
        equal((created["type"], created["payload"]["source"], created["payload"]["agent_id"]),
              ("session.created", "a2a", "bob"))
        equal((kept["type"], kept["channel_id"], kept["sequence"]),
              ("channel.message", "uar.inbox:bob", 2))
        p = kept["payload"]
        equal((p["message_id"], p["direction"], p["kind"], p["preview"]),
              ("m-1", "in", "a2a", "look"))
        equal(p["native_ids"], {"from_agent": "alice", "to_agent": "bob",
                                "conversation_id": "c-1"})
        equal(p["content"], message(text="look"))
        check("run_id" not in kept and "effect" not in p, kept)
        check_payload(kept)
        equal(p["bytes"], len(json.dumps(message(text="look"), separators=(",", ":"))))
        equal(first(s, 1)[0].data, p["content"], "what the recipient reads")


@test("bad_messages_are_refused_with_a_place", "API-10 API-11 A2A-02")
def bad():
    def without(key):
        return {k: v for k, v in message().items() if k != key}
    long = "x" * 129
    deep = {"type": "x", "v": 1}
    for _ in range(50):
        deep = {"type": "x", "v": deep}
    cases = [(without(k), "/" + k) for k in message()]
    cases += [({**message(), k: v}, "/" + k) for k in ("message_id", "from_agent", "to_agent",
              "conversation_id") for v in ("", 7, None, "a b", "ü", long)]
    cases += [(message(to=t), "/to_agent") for t in ("x" * 97, "@", "a@", "@p", "a@b@c", "a@B")]
    cases += [({**message(), "payload": p}, w) for p, w in (
        ("text", "/payload"), ([], "/payload"), ({}, "/payload/type"),
        ({"type": 1}, "/payload/type"), ({"type": ""}, "/payload/type"),
        ({"type": "cancel"}, "/payload/run_id"),
        ({"type": "cancel", "run_id": 1}, "/payload/run_id"),
        ({"type": "cancel", "run_id": "r", "reason": {}}, "/payload/reason"))]
    cases += [({**message(), "capabilities": c}, w) for c, w in (
        ([], "/capabilities"), ({"tool": []}, "/capabilities/tool"),
        ({"tools": "x"}, "/capabilities/tools"), ({"tools": ["a", 1]}, "/capabilities/tools/1"),
        ({"models": [""]}, "/capabilities/models/0"))]
    cases += [(message(attachments=a), w) for a, w in (
        ({}, "/attachments"), (["x"], "/attachments/0"),
        ([{}, {"url": 1}], "/attachments/1/url"),
        ([{"data": "!!!"}], "/attachments/0/data"))]
    cases += [({**message(), "priority": 1}, "/priority")]
    with Server() as s:
        for body, where in cases:
            for route in ("inbox", "send"):
                refused(post(s, body, route), 400, "VALIDATION_ERROR", where)
        refused(post(s, {**message(), "payload": deep}), 400, "VALIDATION_ERROR")
        refused(post(s, [message()]), 400, "VALIDATION_ERROR")
        refused(post(s, b"{"), 400, "VALIDATION_ERROR")
        refused(post(s, message(attachments=[{}] * 65)), 413, "PAYLOAD_TOO_LARGE", "/attachments")
        refused(post(s, message(to="bob@left")), 400, "VALIDATION_ERROR", "/to_agent")
        refused(post(s, message(to="bob@left"), "send"), 404, "NOT_FOUND", "/to_agent")
        refused(s.http.post("/api/a2a/inbox", message(), token=False), 401, "UNAUTHORIZED")
        refused(s.http.get("/api/a2a/stream/bob", token=False), 401, "UNAUTHORIZED")
        put(s, message())
        for query, header in (({"after": 3}, None), ({}, 3), ({}, "x"), ({"after": 1}, None), ({}, 1)):
            try:
                inbox(s, header=header, **query).close()
            except Refusal as r:
                refused(r, 400, "VALIDATION_ERROR")
            else:
                check(False, "a cursor that nobody was given", query, header)
        for agent, after in (("nobody", 1), ("x" * 97, 0), ("b@c", 0)):
            try:
                inbox(s, agent, after=after).close()
            except Refusal as r:
                equal(r.status, 400 if after else 404)
            else:
                check(False, "opened", agent)
        equal([e.data for e in first(s, 1)], [message()], "nothing else was stored")


@test("an_idle_inbox_sends_heartbeats", "API-12")
def heartbeats():
    with Server(heartbeat_seconds="0.1") as s, inbox(s, "nobody-yet") as stream:
        stream.beats(3)
        put(s, message(to="nobody-yet"))
        equal(stream.next().data["message_id"], "m-1")
        equal(s.http.send("HEAD", "/api/a2a/stream/bob").status, 200)


def cancel(run_id, id="stop", to="assistant", **more):
    return {**message(id, to=to), "payload": {"type": "cancel", "run_id": run_id, **more}}


def streaming(s):
    run_id = s.create("assistant", "hi")
    with s.stream(run_id) as stream:
        stream.until(lambda e: e.type == "ChatDelta")
    return run_id


@test("a_message_cancels_the_addressed_run", "RUN-07 A2A-06")
def cancels():
    with Provider() as p, Server(env=p.env("gate")) as s:
        by_route, by_message = streaming(s), streaming(s)
        s.cancel(by_route)
        a = put(s, cancel(by_message, reason="no longer needed"))
        equal(a["cancel"], {"run_id": by_message, "result": "requested"})
        p.wait_for(closed_early=2)
        r = s.finish(by_message)
        equal((r["status"], r["cancel_requested"]), ("canceled", True))
        equal(r["cancel_reason"], "message stop of agent alice: no longer needed")
        logs = [s.session_events(run_id) for run_id in (by_route, by_message)]
        kinds = [[e.data["type"] for e in log] for log in logs]
        equal(kinds[1], kinds[0], "the same facts as by the route")
        check_session(logs[1])
        equal(first(s, 1, "assistant")[0].data["payload"]["run_id"], by_message)
        before = s.http.get("/api/runs/" + by_message).body
        equal(post(s, cancel(by_message, reason="no longer needed")).json, a, "said once more")
        late = put(s, cancel(by_message, "late"))
        equal(late["cancel"]["result"], "over")
        equal(s.http.get("/api/runs/" + by_message).body, before, "no byte has changed")
        s.restart()
        equal(post(s, cancel(by_message, reason="no longer needed")).json, a)
        equal(post(s, cancel(by_message, "late")).json, late)


@test("only_the_agent_of_a_run_is_asked_to_cancel_it", "RUN-07 A2A-06")
def not_yours():
    with Provider() as p, Server(env=p.env("gate")) as s:
        run_id = streaming(s)
        for i, body in enumerate((cancel(run_id, to="echo"), cancel(run_id, to="bob"),
                                  cancel("nothing"), cancel(run_id + "x"))):
            a = put(s, {**body, "message_id": f"m-{i}"})
            equal(a["cancel"]["result"], "unknown", body)
        put(s, message("text", to="assistant", text=f"cancel {run_id}"))
        refused(post(s, cancel(run_id, "text")), 409, "CONFLICT", "/message_id")
        r = s.record(run_id)
        equal((r["status"], r["cancel_requested"]), ("running", False))
        p.release()
        equal(s.finish(run_id)["status"], "succeeded")


@test("a_cancel_is_never_kept_without_its_effect", "RUN-07 A2A-06")
def kill_between():
    """kill -9 at any moment: whenever the message is in the inbox, the run is cancelled."""
    rounds = int(os.environ.get("UAR_TEST_A2A_KILLS", "12"))
    with Provider() as p, Server(env=p.env("gate")) as s:
        kept = 0
        for i in range(rounds):
            run_id, body = streaming(s), None
            body = cancel(run_id, f"stop-{i}")
            sent = threading.Event()

            def send():
                sent.set()
                try:
                    return put(s, body)
                except (OSError, HTTPException):
                    return None
            t = threading.Thread(target=send, daemon=True)
            t.start()
            sent.wait()
            if i % 3 == 1:  # a commit of somebody else passes first
                post(s, message(f"between-{i}", to="assistant"))
            elif i % 3 == 2:
                t.join()
            s.restart()
            t.join()
            put(s, message(f"end-{i}", to="assistant"))
            with inbox(s, "assistant") as stream:
                got = stream.until(lambda e: e.data["message_id"] == f"end-{i}")
            there = f"stop-{i}" in {e.data["message_id"] for e in got}
            kept += there
            if there:
                equal(s.finish(run_id)["status"], "canceled")
            check(there or i % 3 != 2, "it was acknowledged")
            wait_until(lambda: post(s, body).status == 202, "the run is recovered")
            equal(s.finish(run_id)["status"], "canceled")
            with inbox(s, "assistant") as stream:
                ids = [e.data["message_id"] for e in
                       stream.until(lambda e: e.data["message_id"] == f"stop-{i}")]
            equal(ids.count(f"stop-{i}"), 1)
        check(kept >= rounds // 3, kept)


# --- two runtimes ---

class Door:
    """An address that stays while the server behind it comes and goes."""

    def __init__(self):
        self.sock = socket.create_server(("127.0.0.1", 0))
        self.url = "http://127.0.0.1:%d" % self.sock.getsockname()[1]
        self.server = None
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                guest = self.sock.accept()[0]
            except OSError:
                return
            try:
                host = connect(self.server.url)
            except (OSError, AttributeError):
                guest.close()  # nobody is in
                continue
            for a, b in ((guest, host), (host, guest)):
                threading.Thread(target=self.pass_on, args=(a, b), daemon=True).start()

    @staticmethod
    def pass_on(a, b):
        try:
            while data := a.recv(65536):
                b.sendall(data)
        except OSError:
            pass
        for s in (a, b):
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


class Pair:
    """Two servers that know each other as left and right."""

    def __enter__(self):
        self.doors = [Door(), Door()]
        self.both = [Server(start=False, token="secret-" + name, a2a_name=name,
                            a2a_peers=f"{peer}={door.url}",
                            env={"UAR_A2A_PEER_TOKENS": f"{peer}=secret-{peer}"})
                     for name, peer, door in (("left", "right", self.doors[1]),
                                              ("right", "left", self.doors[0]))]
        for door, server in zip(self.doors, self.both):
            door.server = server
        return self

    def __exit__(self, kind, *_):
        for door in self.doors:
            door.sock.close()
        for s in self.both:
            s.__exit__(kind)

    def start(self):
        for s in self.both:
            s.start()
        return self.both


def answers(s, peer, n):
    """What the peer answered to the first n messages, as the outbox has it."""
    with s.session_stream("uar.outbox:" + peer) as stream:
        got = []
        while len(got) < n:
            p = stream.next().data["payload"]
            if p.get("kind") == "status":
                got.append((p["message_id"], p["preview"]))
    return got


@test("agents_of_two_runtimes_exchange_messages", "A2A-01 API-10 API-11 A2A-05")
def exchange():
    with Pair() as pair:
        left, right = pair.start()
        with inbox(left, "alice") as alice, inbox(right, "bob") as bob:
            a = put(left, message(to="bob@right", attachments=[{"data": "A" * 20000}]), "send")
            equal((a["status"], a["to_agent"]), ("queued", "bob@right"))
            got = bob.next().data
            equal((got["to_agent"], got["from_agent"]), ("bob", "alice@left"))
            equal(got["attachments"], [{"data": "A" * 20000}])
            reply = {**message("re", to=got["from_agent"], text="and you?"), "from_agent": "bob"}
            put(right, reply, "send")
            back = alice.next().data
            equal((back["from_agent"], back["payload"]["text"]), ("bob@right", "and you?"))
            for i in range(30):
                put(left, message(f"n-{i}", to="bob@right"), "send")
            equal([bob.next().data["message_id"] for _ in range(30)],
                  [f"n-{i}" for i in range(30)], "in order")
        again = post(left, message(to="bob@right", attachments=[{"data": "A" * 20000}]), "send")
        equal((again.status, again.json), (202, a))
        refused(post(left, message(to="bob@right"), "send"), 409, "CONFLICT", "/message_id")
        put(left, message(to="carol@right"), "send")
        got = answers(left, "right", 32)
        check(all(text.startswith("delivered") for _, text in got), got)
        equal(len({id for id, _ in got}), 31)


@test("a_message_waits_for_a_peer_that_is_away", "A2A-01")
def away():
    """Each is stopped and killed in turn; what was queued arrives, once and in order."""
    with Pair() as pair:
        left, right = pair.both
        left.start()
        sent = [put(left, message(f"m-{i}", to="bob@right"), "send")["message_id"]
                for i in range(3)]
        wait_until(lambda: "a2a.not_delivered" in left.log(), "it was tried")
        left.restart()
        sent += [put(left, message(f"m-{i}", to="bob@right"), "send")["message_id"]
                 for i in range(3, 6)]
        right.start()
        equal([e.data["message_id"] for e in first(right, 6)], sent)
        for i in range(6, 12):
            put(left, message(f"m-{i}", to="bob@right"), "send")
            sent.append(f"m-{i}")
            (left if i % 2 else right).restart()
        equal([e.data["message_id"] for e in first(right, 12)], sent, "each once")
        answers(left, "right", 12)
        left.restart()
        put(left, message("last", to="bob@right"), "send")
        equal([e.data["message_id"] for e in first(right, 13)], sent + ["last"],
              "what has an answer is not sent again")


@test("a_peer_that_refuses_a_message_does_not_hold_up_the_others", "A2A-01")
def refuses():
    with Pair() as pair:
        left, right = pair.start()
        put(right, message("taken", text="something else"))
        put(left, message("taken", to="bob@right"), "send")
        put(left, message("next", to="bob@right"), "send")
        equal([e.data["message_id"] for e in first(right, 2)], ["taken", "next"])
        got = answers(left, "right", 2)
        equal(got[0][0], "taken")
        check(got[0][1].startswith("refused: 409 CONFLICT"), got)
        check(got[1][1].startswith("delivered"), got)


@test("a_wrong_credential_is_no_end", "A2A-01")
def credential():
    with Pair() as pair:
        left, right = pair.both
        left.env = {"UAR_A2A_PEER_TOKENS": "right=wrong"}
        left.start(), right.start()
        put(left, message(to="bob@right"), "send")
        wait_until(lambda: "a2a.not_delivered" in left.log(), "it was tried")
        check("secret" not in left.log() and "wrong" not in left.log())
        left.env = {"UAR_A2A_PEER_TOKENS": "right=secret-right"}
        left.restart()
        equal(first(right, 1)[0].data["message_id"], "m-1")


@test("a_peer_cancels_a_run_by_message", "RUN-07 A2A-06 A2A-01")
def cancel_from_afar():
    with Provider() as p, Pair() as pair:
        left, right = pair.both
        right.env = {**right.env, **p.env("gate")}
        left.start(), right.start()
        run_id = streaming(right)
        put(left, cancel(run_id, to="assistant@right"), "send")
        r = right.finish(run_id)
        equal((r["status"], r["cancel_reason"]), ("canceled", "message stop of agent alice@left"))


if __name__ == "__main__":
    main()
