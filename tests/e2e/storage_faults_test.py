#!/usr/bin/env python3
"""What an answer means when the disk fails while something is written."""
import os
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from lib import Provider, Server, Stream, check, equal, main, refused, run_uar, test
from lib.check import Skip
from lib.server import ROOT

FAIL_SYNC = [sys.executable, os.path.join(ROOT, "tests", "lib", "fail_sync.py")]


LETTER = {"message_id": "m-1", "from_agent": "alice", "to_agent": "bob", "conversation_id": "c-1",
          "payload": {"type": "text", "text": "hello"}, "capabilities": {"tools": [], "models": []}}
A2A = {"message": {"messageId": "m1", "role": "ROLE_USER", "parts": [{"text": "hi"}]}}
ENTRY = {"plugin_id": "uar.agent", "entry_id": "echo", "args": {"message": "hi"}}
AG_UI = {"threadId": "t", "runId": "r", "messages": [{"id": "1", "role": "user", "content": "hi"}], "tools": [], "context": [],
         "state": {}, "forwardedProps": {}}
CHAT = {"model": "echo", "messages": [{"role": "user", "content": "hi"}]}
TOOL = {"jsonrpc": "2.0", "id": 7, "method": "SendMessage", "params": A2A}
# (path, body): each of them writes. {done} is a run that has ended, {live} one at work.
DOORS = [("/runs", ENTRY), ("/runs", {**ENTRY, "mode": "sync"}), ("/plugin/trigger", ENTRY), ("/api/runs/{done}/retry", None),
         ("/api/runs/{live}/cancel", None), ("/api/a2a/inbox", LETTER), ("/a2a/echo/message:send", A2A),
         ("/a2a/echo/message:stream", A2A), ("/a2a/echo", TOOL), ("/v1/chat/completions", CHAT),
         ("/v1/chat/completions", {**CHAT, "stream": True}), ("/v1/responses", {"model": "echo", "input": "hi"}),
         ("/api/ag-ui/agents/echo", AG_UI), ("/api/control/create_task", {"objective": "tidy up"}),
         ("/api/admin/credentials", {"user": "ann", "tenant": "t"})]


def create(s, key):
    return s.http.post("/api/runs", {"agent_id": "echo", "inputs": {"message": key}, "idempotency_key": key})


def runs_of(s):
    return [r["run_id"] for r in s.http.get("/api/runs?limit=100").json["runs"]]


def repeat_after_restart(s, keys):
    """The keys of creates without a known outcome: each makes one run, however often it is sent."""
    s.start()
    first = [create(s, key) for key in keys]
    for a in first:
        check(a.status in (200, 202), a.status, a.body)
    again = [create(s, key) for key in keys]
    equal([a.json["run_id"] for a in again], [a.json["run_id"] for a in first])
    for a in first:
        equal(s.finish(a.json["run_id"])["status"], "succeeded")
    return [a.json["run_id"] for a in first]


def failing(s):
    """The server's syncs will fail while the file exists whose path is returned."""
    switch = os.path.join(s.root, "fail")
    if subprocess.run([*FAIL_SYNC, "/bin/true"], env={**os.environ, "FAIL_SYNC": switch}).returncode:
        raise Skip("no seccomp listener here")
    s.under, s.env = FAIL_SYNC, {"FAIL_SYNC": switch}
    return switch


@test("a_create_whose_sync_fails_has_no_known_outcome", "")
def sync_fails():
    with Server(start=False) as s:
        switch = failing(s)
        s.start()
        before = s.create("echo", "before")
        equal(s.finish(before)["status"], "succeeded")
        open(switch, "w").close()
        problem = refused(create(s, "k"), 500, "OUTCOME_UNKNOWN")
        check("same idempotency key" in problem["detail"], problem)
        equal(s.wait(), 1, "a supervisor starts it again")
        check("store.broken" in s.log(), s.log())
        os.unlink(switch)
        made, = repeat_after_restart(s, ["k"])
        equal(sorted(runs_of(s)), sorted([before, made]), "the row was in the log, and is one run")


def linked_away(path):
    os.link(path, path + ".kept")
    os.unlink(path)


@test("a_create_that_meets_a_removed_log_has_no_known_outcome", "")
def log_removed():
    for how in (os.unlink, lambda path: os.rename(path, path + ".away"), linked_away):
        with Server() as s:
            before = s.create("echo", "before")
            equal(s.finish(before)["status"], "succeeded")
            how(os.path.join(s.data, "uar.db-wal"))
            refused(create(s, "k"), 500, "OUTCOME_UNKNOWN")
            equal(s.wait(), 1)
            equal(run_uar("check", "--data", s.data).returncode, 0)
            made, = repeat_after_restart(s, ["k"])
            equal(sorted(runs_of(s)), sorted([before, made]))


@test("a_file_that_is_cut_short_under_the_server_ends_it", "")
def cut_short():
    with Server() as s:
        s.stop()  # its tables are in the file then, not in its log alone
        s.start()
        equal(s.finish(s.create("echo", "before"))["status"], "succeeded")
        os.truncate(os.path.join(s.data, "uar.db"), 4096)
        equal(create(s, "k").status, 500)
        equal(s.wait(), 1)
        check("uar.db was cut short by another program" in s.log(), s.log())


@test("a_server_whose_database_is_damaged_is_not_ready", "")
def damaged():
    with Server() as s:
        for n in range(40):
            s.finish(s.create("echo", str(n)))
        s.stop()
        path = os.path.join(s.data, "uar.db")
        with sqlite3.connect(path) as db:
            size, = db.execute("PRAGMA page_size").fetchone()
            root, = db.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'runs_task'").fetchone()
        db.close()
        with open(path, "r+b") as f:
            f.seek((root - 1) * size)
            f.write(bytes(size))
        s.start()
        equal(create(s, "k").status, 500)
        a = s.http.get("/ready")
        equal((a.status, a.json["status"]), (503, "storage damaged"))
        check("store.damaged" in s.log(), s.log())
        equal(len(runs_of(s)), 40)
        equal(s.http.get("/api/admin/storage").json["health"], "damaged")


@test("only_writes_of_the_failed_commit_have_no_known_outcome", "")
def many_at_once():
    """Of many creates at the moment of the failure each is acknowledged, refused, or of unknown outcome.
    What was refused is not there after the restart."""
    keys = [f"k{n}" for n in range(40)]
    with Server() as s, ThreadPoolExecutor(8) as pool:
        def attempt(key):
            try:
                a = create(s, key)
            except OSError:
                return None  # closed without an answer
            return a
        answers = list(pool.map(attempt, keys[:20]))
        os.unlink(os.path.join(s.data, "uar.db-wal"))
        answers += list(pool.map(attempt, keys[20:]))
        equal(s.wait(), 1)
        s.start()
        there = set(runs_of(s))
        acked = {a.json["run_id"] for a in answers if a and a.status == 202}
        check(acked <= there, "acknowledged and lost")
        unknown = sum(1 for a in answers if a is None or a.status == 500)
        check(len(there) - len(acked) <= unknown, len(there), len(acked), unknown)
        for key, a in zip(keys, answers):
            if a and a.status not in (202, 503):
                refused(a, 500, "OUTCOME_UNKNOWN")
            if a and a.status == 503:
                again = create(s, key)
                equal(again.status, 202, "a new one")
                check(again.json["run_id"] not in there, "it was refused, and has happened", key)


@test("every_write_reports_an_unknown_outcome_after_a_lost_log", "")
def doors():
    """A server for each: what runs of another request write must not meet the fault first."""
    for path, body in DOORS:
        with Provider() as p, Server(env=p.env("gate")) as s:
            done = s.create("echo", "over")
            s.finish(done)
            live = s.create("assistant", "hello")
            with s.stream(live) as stream:
                stream.until(lambda e: e.type == "ChatDelta")  # now it waits for its model
            os.unlink(os.path.join(s.data, "uar.db-wal"))
            a = s.http.post(path.format(done=done, live=live), body)
            if path == "/a2a/echo":  # JSON-RPC has its own way to fail
                equal((a.status, a.json["error"]["code"]), (200, -32603), a.body)
            else:
                equal(a.status, 500, (path, a.body))
            check(b"which may or may not have happened" in a.body, path, a.body)
            equal(s.wait(), 1, path)


@test("a_message_of_unknown_outcome_is_sent_again_and_kept_once", "")
def letters():
    with Server() as s:
        s.finish(s.create("echo", "the log is there"))
        os.unlink(os.path.join(s.data, "uar.db-wal"))
        refused(s.http.post("/api/a2a/inbox", LETTER), 500, "OUTCOME_UNKNOWN")
        equal(s.wait(), 1)
        s.start()
        for _ in range(2):
            check(s.http.post("/api/a2a/inbox", LETTER).status in (200, 202))
        last = s.http.post("/api/a2a/inbox", {**LETTER, "message_id": "m-2"})
        equal(last.status, 202, last.body)
        with Stream(s.url, "/api/a2a/stream/bob", s.token) as stream:
            got = [e.data["message_id"] for e in stream.until(lambda e: e.data["message_id"] == "m-2")]
        equal(got, ["m-1", "m-2"])


@test("a_document_whose_sync_fails_has_no_known_outcome", "")
def document():
    with Server(start=False) as s:
        switch = failing(s)
        s.start()
        path, body = "/api/kb/tea/documents", {"document_id": "green", "text": "Green tea is steamed."}
        equal(s.http.send("PUT", path, {**body, "document_id": "black"}).status, 201)
        open(switch, "w").close()
        problem = refused(s.http.send("PUT", path, body), 500, "OUTCOME_UNKNOWN")
        check("whether it is kept is not known" in problem["detail"], problem)
        refused(s.http.send("PUT", path, {**body, "document_id": "white"}), 503, "UNAVAILABLE")
        equal((s.http.get("/ready").status, s.http.get("/ready").json["status"]), (503, "knowledge storage broken"))
        check("kb.broken" in s.log(), s.log())
        s.kill()
        os.unlink(switch)
        s.start()
        equal(s.http.get(path + "/white").status, 404, "it was refused, and has not happened")
        check(s.http.send("PUT", path, body).status in (200, 201))
        equal(s.http.get(path + "/green").status, 200)


main()
