#!/usr/bin/env python3
"""A peer leaves while a worker or the store is busy for it: what it asked for still ends, in order."""
import json
import os
import signal
import sqlite3
import tempfile

from lib import Server, check, connect, equal, main, refused, test, wait_until
from lib.client import host_of


def request(s, method, path, body=None):
    data = json.dumps(body).encode() if body is not None else b""
    lines = [f"{method} {path} HTTP/1.1", "Host: " + host_of(s.url), "Authorization: Bearer " + s.token,
             f"Content-Length: {len(data)}"]
    lines += ["Content-Type: application/json"] if body is not None else []
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + data


def ask_and_leave(s, *requests):
    """The server finds each request and the end of its connection at the same time. They are few: it would
    answer one whose end it finds before its turn."""
    s.proc.send_signal(signal.SIGSTOP)
    try:
        for r in requests:
            with connect(s.url) as sock:
                sock.sendall(request(s, *r))
    finally:
        s.proc.send_signal(signal.SIGCONT)


def left(s):
    wait_until(lambda: s.metric("uar_http_connections") <= 1, "the others have left")


def document(name, text="the heron stands in the river"):
    return ("PUT", "/api/kb/birds/documents", {"document_id": name, "text": text})


def names(s):
    return [d["document_id"] for d in s.http.get("/api/kb/birds/documents").json["documents"]]


@test("who_leaves_during_a_call_to_knowledge_harms_nobody", "")
def knowledge():
    with Server() as s:
        equal(s.http.send(*document("first")).status, 201)
        agent = {"version": "1.0", "kind": "agent", "id": "a", "runtime": {"entry": "llm.chat"}}
        check(s.http.send("PUT", "/api/agents/a", agent).status in (200, 201))
        relation = {"from": "heron", "kind": "in", "to": "river", "document_id": "first"}
        reads = [("POST", "/api/kb/birds/search", {"query": "heron"}),
                 ("GET", "/api/kb"), ("GET", "/api/kb/birds/documents?after=" + "a" * 60),
                 ("GET", "/api/kb/birds/relations?entity=" + "heron" * 20),
                 ("GET", "/api/memory?scope=user&key=" + "k" * 60), ("GET", "/api/agents/a/instance"),
                 ("POST", "/api/kb-index/check"), ("GET", "/api/kb/birds/documents/first")]
        writes = [document(f"left{i}") for i in range(8)]
        writes += [("PUT", "/api/kb/birds", {"deny_labels": "internal", "top_k": 3}),
                   ("PUT", "/api/kb/birds/relations", {"relations": [relation]}),
                   ("DELETE", "/api/kb/birds/documents/first"), ("DELETE", "/api/memory?key=" + "k" * 60)]
        for _ in range(3):
            ask_and_leave(s, *reads)
            left(s)
        db = sqlite3.connect(os.path.join(s.data, "knowledge", "documents.db"), isolation_level=None)
        db.execute("BEGIN IMMEDIATE")  # workers wait for it, and what is asked next for them
        for requests in (writes, reads):
            ask_and_leave(s, *requests)
            left(s)
        db.execute("COMMIT")
        db.close()
        wait_until(lambda: names(s) == [f"left{i}" for i in range(8)], "all that was asked for is done")
        equal(s.http.send(*document("last")).status, 201)


@test("who_leaves_during_a_change_of_an_agent_or_a_skill_harms_nobody", "")
def definitions():
    def skill(i):
        return {"skill_id": f"s{i}", "description": "of herons", "triggers": {"keywords": ["heron"]}}

    def agent(i):
        return {"version": "1.0", "kind": "agent", "id": f"a{i}", "runtime": {"entry": "llm.chat"}}
    with Server() as s:
        s.ready()
        equal(s.http.send("PUT", "/api/skills/s", {**skill(0), "skill_id": "s"}).status, 201)
        equal(s.http.send("PUT", "/api/agents/a", {**agent(0), "id": "a"}).status, 201)
        ask_and_leave(s, *[("PUT", f"/api/skills/s{i}", skill(i)) for i in range(4)],
                      *[("PUT", f"/api/agents/a{i}", agent(i)) for i in range(4)],
                      ("GET", "/api/skills/s/versions"), ("GET", "/api/agents/a/versions"),
                      ("GET", "/api/skills/s?version=1"), ("GET", "/api/agents/a?version=1"))
        left(s)
        wait_until(lambda: all(s.http.get(f"/api/skills/s{i}").status == 200 and
                               s.http.get(f"/api/agents/a{i}").status == 200 for i in range(4)))
        equal(s.http.send("DELETE", "/api/skills/s").status, 200)
        refused(s.http.get("/api/skills/s"), 404, "NOT_FOUND")


@test("a_server_ends_while_its_knowledge_is_busy", "")
def ending():
    with Server() as s:
        equal(s.http.send(*document("first")).status, 201)
        db = sqlite3.connect(os.path.join(s.data, "knowledge", "documents.db"), isolation_level=None)
        db.execute("BEGIN IMMEDIATE")
        ask_and_leave(s, *[document(f"left{i}") for i in range(8)])
        left(s)
        equal(s.stop(), 0)
        db.close()


@test("a_server_ends_while_a_program_reads_a_document", "")
def reading():
    with tempfile.TemporaryDirectory() as bin_dir:
        begun = os.path.join(bin_dir, "begun")
        with open(os.path.join(bin_dir, "pdftotext"), "w") as f:
            f.write(f"#!/bin/sh\ntouch {begun}\nexec sleep 600\n")
        os.chmod(f.name, 0o755)
        with Server(env={"PATH": bin_dir + ":" + os.environ["PATH"]}) as s:
            body = {"document_id": "p", "media_type": "application/pdf", "text": "%PDF-1.4"}
            equal(s.http.send("PUT", "/api/kb/birds/documents", body).status, 201)
            wait_until(lambda: os.path.exists(begun), "the program is at work")
            equal(s.stop(), 0)


main()
