#!/usr/bin/env python3
"""Knowledge through its other doors: tools of agents, the command line, a watched folder, a provider of embeddings."""
import http.server
import json
import os
import shutil
import sqlite3
import subprocess
import threading

from lib import Server, check, equal, main, refused, run_uar, test, text_of, wait_until
from lib.embed import Embedder
from lib.server import UAR


def put(s, collection, document_id, text, **more):
    a = s.http.send("PUT", f"/api/kb/{collection}/documents", {"document_id": document_id, "text": text, **more})
    check(a.status in (200, 201), a.body)
    return a.json


def names(s, collection, query, **more):
    a = s.http.post(f"/api/kb/{collection}/search", {"query": query, **more})
    equal(a.status, 200, a.body)
    return [p["document_id"] for p in a.json["passages"]]


def state(s, collection, document_id):
    return s.http.get(f"/api/kb/{collection}/documents/{document_id}").json


def call(name, **args):
    return f"tool {name} {json.dumps(args)}"


def agent(s, agent_id, **memory):
    """An agent of the scripted model, which calls what its message says."""
    a = s.http.send("PUT", f"/api/agents/{agent_id}", {
        "version": "1.0", "kind": "agent", "id": agent_id, "runtime": {"entry": "llm.chat"}, "memory": memory,
        "policy": {"provider": {"default": {"provider": "scripted", "model": "scripted-tools"}},
                   "tools": {"allow": ["internal:kb.*", "internal:memory.*"]}}})
    check(a.status in (200, 201), a.body)


def outputs(s, agent_id, *calls, allow=True, **more):
    """What the tools of a run said, in order; what has to be allowed is."""
    run_id = s.create(agent_id, "\nthen\n".join(calls), **more)
    while allow:
        r = wait_until(lambda: (lambda r: r if r.get("actions") or r["status"] in ("succeeded", "failed") else None)(
            s.record(run_id)))
        if not r.get("actions"):
            break
        equal(s.http.post("/api/control/respond_action",
                          {"action_id": r["actions"][0]["action_id"], "decision": "allow"}).status, 200)
        wait_until(lambda: all(a["action_id"] != r["actions"][0]["action_id"] for a in s.record(run_id).get("actions") or []))
    ends = [e.data["data"] for e in s.events(run_id) if e.type == "ToolEnd"]
    equal(len(ends), len(calls), s.record(run_id))
    return [e["output"] if e["ok"] else e for e in ends]


@test("agents_search_ingest_and_relate_within_their_collections", "MEM-01 MEM-08 MEM-11")
def tools():
    with Server() as s:
        put(s, "birds", "heron", "The vermilion heron guards the archive.", title="Herons")
        put(s, "vault", "secret", "The vermilion heron has the key.")
        agent(s, "a", kb={"enabled": True, "collections": ["birds"]})
        found, foreign, new, again, known, related = outputs(
            s, "a", call("kb.search", query="vermilion heron"),
            call("kb.search", query="vermilion heron", collections=["vault", "nothing"]),
            call("kb.ingest", collection="birds", document_id="gull.md", text="# Gulls\nGulls eat chips."),
            call("kb.search", query="chips", mode="keyword"),
            call("kb.relate", collection="birds", relations=[
                {"from": "gull", "kind": "eats", "to": "chips", "document_id": "gull.md"}]),
            call("kb.graph", collection="birds", entity="gull"))
        equal([(p["document_id"], p["title"]) for p in found["passages"]], [("heron", "Herons")])
        equal(s.http.get(found["passages"][0]["url"]).json["passage"]["text"], "The vermilion heron guards the archive.")
        equal(foreign["passages"], [])
        equal((new["change"], new["state"]), ("created", "ready"))
        equal([(p["document_id"], p["heading"]) for p in again["passages"]], [("gull.md", "Gulls")])
        equal(known, {"related": 1})
        (r,) = related["relations"]
        equal((r["from"], r["kind"], r["to"], r["document_id"]), ("gull", "eats", "chips", "gull.md"))
        check(r["by"].startswith("run:"), r)
        (no,) = outputs(s, "a", call("kb.ingest", collection="vault", document_id="x", text="x"))
        check("may not use" in no["error"]["message"] if "error" in no else "may not use" in json.dumps(no), no)
        a = s.http.post("/api/tools/call", {"tool_id": "internal:kb.search",
                                            "arguments": {"query": "key", "collections": ["vault"]}})
        equal([p["document_id"] for p in a.json["output"]["passages"]], ["secret"])
        refused(s.http.post("/api/tools/call", {"tool_id": "internal:kb.ingest", "arguments": {
            "collection": "vault", "document_id": "x", "text": "x"}}), 403, "FORBIDDEN")


@test("a_model_reads_a_document_and_records_its_relations", "MEM-01")
def extraction():
    from lib import Provider
    with Provider() as p, Server(env=p.env("asks")) as s:
        text = "\n\n".join(f"# Part {i}\n" + f"Acme owns plant {i} of the northern coast. " * 24 for i in range(40))
        put(s, "firms", "report.md", text)
        put(s, "vault", "secret.md", "hidden")
        a = s.http.send("PUT", "/api/agents/librarian", {
            "version": "1.0", "kind": "agent", "id": "librarian", "runtime": {"entry": "llm.chat"},
            "memory": {"kb": {"enabled": True, "collections": ["firms"], "top_k": 1}},
            "policy": {"provider": {"default": {"provider": "openai", "model": "asks"}},
                       "tools": {"allow": ["internal:*"]}, "skills": {}}})
        equal(a.status, 201, a.body)
        calls = [("internal__kb_read", {"collection": "firms", "document_id": "report.md"}),
                 ("internal__kb_read", {"collection": "vault", "document_id": "secret.md"}),
                 ("internal__kb_relate", {"collection": "firms", "relations": [
                     {"from": "Acme", "kind": "owns", "to": "plant 1", "document_id": "report.md"}]}),
                 ("extract relations", {})]
        run_id = s.create("librarian", json.dumps([[name, json.dumps(args)] for name, args in calls]))
        action = wait_until(lambda: (s.record(run_id).get("actions") or [None])[0], "a question")
        equal(s.http.post("/api/control/respond_action", {"action_id": action["action_id"], "decision": "allow"}).status, 200)
        equal(s.finish(run_id)["status"], "succeeded")
        last = p.stats()["last"]
        check("## Skill: relations of a text" in last["messages"][0]["content"], last["messages"][0])
        check({"internal__kb_read", "internal__kb_relate"} <= {t["function"]["name"] for t in last["tools"]}, last["tools"])
        read, foreign = [m["content"] for m in last["messages"] if m["role"] == "tool"][:2]
        check("Acme owns plant 0 " in read and '"next":' in read and "hidden" not in foreign, foreign)
        (r,) = s.http.get("/api/kb/firms/relations?entity=Acme").json["relations"]
        equal((r["kind"], r["to"], r["document_id"], r["by"]), ("owns", "plant 1", "report.md", f"run:{run_id}"))


@test("agents_remember_for_a_conversation_the_user_or_themselves", "MEM-01 ART-16")
def memory():
    with Server() as s:
        agent(s, "a", retention_days=7)
        agent(s, "b")
        one = {"conversation_id": "c-one"}
        kept, tea, mood, own = outputs(
            s, "a", call("memory.put", key="tea", value="green"), call("memory.get"),
            call("memory.put", key="mood", value="calm", scope="conversation"),
            call("memory.put", key="role", value="clerk", scope="agent", ttl_seconds=60), **one)
        check(kept["remembered"] and kept["expires_at"], kept)
        equal([(m["key"], m["value"]) for m in tea["memories"]], [("tea", "green")])
        check(own["expires_at"] < kept["expires_at"] and mood["remembered"], own)
        (same,) = outputs(s, "a", call("memory.get", scope="conversation"), **one)
        (other,) = outputs(s, "a", call("memory.get", scope="conversation"), conversation_id="c-two")
        (mine,) = outputs(s, "a", call("memory.get", scope="agent", key="role"))
        user, none = outputs(s, "b", call("memory.get", key="tea"), call("memory.get", scope="agent"))
        equal([len(x["memories"]) for x in (same, other, mine, user, none)], [1, 0, 1, 1, 0])
        s.kill()
        s.start()
        wait_until(lambda: s.http.get("/api/agents/b").status == 200)  # definitions are read
        equal(len(s.http.get("/api/memory").json["memories"]), 3)
        (gone,) = outputs(s, "b", call("memory.forget", key="tea"))
        equal(gone, {"forgotten": 1})
        put(s, "c", "d", "something")
        equal(s.http.send("DELETE", "/api/kb").json, {"documents_removed": 1})
        equal((s.http.get("/api/memory").json["memories"], s.http.get("/api/kb").json["collections"]), ([], []))


@test("what_is_remembered_for_a_time_is_forgotten_after_it", "ART-16")
def retention():
    with Server() as s:
        agent(s, "a")
        outputs(s, "a", call("memory.put", key="k", value="v", ttl_seconds=1))
        wait_until(lambda: not s.http.get("/api/memory").json["memories"])


@test("a_conversation_is_reused_when_it_is_enabled", "MEM-01 MEM-07 ART-16")
def conversation():
    from lib import Provider
    with Provider() as p, Server(env=p.env("repeat")) as s:
        for agent_id, enabled, heard in (("yes", True, ["first", "first", "second"]), ("no", False, ["second"])):
            a = s.http.send("PUT", f"/api/agents/{agent_id}", {
                "version": "1.0", "kind": "agent", "id": agent_id, "runtime": {"entry": "llm.chat"},
                "policy": {"provider": {"default": {"provider": "openai", "model": "repeat"}}},
                "memory": {"conversation": {"enabled": enabled}}})
            check(a.status in (200, 201), a.body)
            for word in ("first", "second"):
                s.finish(s.create(agent_id, word, conversation_id="talk-" + agent_id))
            told = [m["content"] for m in p.stats()["last"]["messages"] if m["role"] in ("user", "assistant")]
            equal(told, heard)


@test("the_command_line_adds_files_folders_and_pages", "")
def command_line():
    class Page(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.end_headers()
            self.wfile.write(b"<title>T</title><script>hidden()</script><h1>Rules</h1><p>Cobalt &amp; tin.</p>")

        def log_message(self, *_):
            pass

    httpd = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=httpd.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{httpd.server_address[1]}/rules.html"
    with Server(env={"UAR_OUTBOUND_ALLOW": "127.0.0.1"}) as s:
        folder = os.path.join(s.root, "notes")
        os.makedirs(os.path.join(folder, "deep"))
        for name, text in (("a.md", "# Alpha\nabout granite"), ("deep/b.c", "int basalt(void);"), (".hidden", "no")):
            with open(os.path.join(folder, name), "w") as f:
                f.write(text)
        os.symlink(os.path.join(s.data, "token"), os.path.join(folder, "tok.txt"))  # it leads out of the folder

        def uar(*words, status=0):
            done = run_uar("kb", *words, "--data", s.data)
            equal(done.returncode, status, done.stdout + done.stderr)
            return done.stdout + done.stderr

        out = uar("add", "n", folder, url)
        check("3 added or changed, 0 as before" in out and "1 symbolic links skipped" in out, out)
        check("0 added or changed, 3 as before" in uar("add", "n", folder, url))
        check("granite" in uar("search", "n", "granite"))
        check("Cobalt & tin" in uar("search", "n", "cobalt") and "hidden" not in uar("search", "n", "hidden"))
        equal(len(uar("list", "n").splitlines()), 3)
        check("3 documents" in uar("list"))
        check("what the documents make it" in uar("check"))
        uar("rebuild")
        wait_until(lambda: "0 pending" in uar("check"))
        check("basalt" in uar("search", "n", "basalt"))
        name = [line.split()[0] for line in uar("list", "n").splitlines() if "a.md" in line][0]
        uar("remove", "n", name)
        check("granite" not in uar("search", "n", "granite"))
        check("removed 2 documents" in uar("remove", "n"))
        uar("forget")
        check("No such file" in uar("add", "n", os.path.join(s.root, "nothing"), status=1))
        uar("nonsense", status=2)
    httpd.shutdown()
    httpd.server_close()


@test("an_agent_says_whose_vectors_count", "ART-16")
def model_policy():
    with Embedder(vector) as e, Server(env=e.env()) as s:
        put(s, "v", "r", "granite everywhere")
        wait_until(lambda: state(s, "v", "r")["state"] == "ready")
        for agent_id, model, found in (("same", "words", ["r"]), ("other", "another", [])):
            agent(s, agent_id, kb={"enabled": True, "collections": ["v"]},
                  embedding={"provider": "openai", "model": model})
            run_id = s.create(agent_id, "a stone")  # no word of the document
            events = [e.data for e in s.events(run_id)]
            equal([i["source"] for e in events if e["type"] == "MemoryRecall" for i in e["data"]["items"]], found)


@test("long_documents_show_how_far_they_are", "")
def long_ones():
    asked, gate = [], threading.Event()

    def slow(text):
        asked.append(text)
        if len(asked) > 70:
            gate.wait(60)
        return [1.0, float(len(asked))]

    with Embedder(slow) as e, Server(env=e.env()) as s:
        path = os.path.join(s.root, "book.md")
        with open(path, "w") as f:
            f.write("\n\n".join(f"# Part {i}\nsentence {i} about harbours" for i in range(150)))
        index = lambda: s.http.get("/api/kb").json["index"]
        with subprocess.Popen([UAR, "kb", "add", "b", path, "--data", s.data], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True) as add:
            try:
                line = next(x for x in add.stderr if "of 150 passages" in x)
                now = index()
                equal((now["state"], now["document_id"].endswith("book.md"), now["passages_total"]), ("working", True, 150))
            finally:
                gate.set()
            out = add.stdout.read()
            add.stderr.read()
        equal(add.returncode, 0, line)
        check("documents to go: 1" in line and "1 added or changed" in out, line, out)
        equal(len(names(s, "b", "harbours", k=50)), 50)


@test("a_watched_folder_removes_what_it_knows_to_be_gone_and_its_own", "")
def watched_removal():
    with Server(start=False) as s:
        folder = os.path.join(s.root, "watched")
        deep = os.path.join(folder, "deep", *["d"] * 20)
        os.makedirs(os.path.join(folder, "books"))
        s.settings["kb_watch_dir"] = folder

        def write(name, text):
            with open(os.path.join(folder, "books", name), "w") as f:
                f.write(text)

        def names():
            return [d["document_id"] for d in s.http.get("/api/kb/books/documents").json["documents"]]

        def found(query):
            a = s.http.post("/api/kb/books/search", {"query": query, "mode": "keyword"})
            return [p["document_id"] for p in a.json["passages"]]

        def put(name, source):
            a = s.http.send("PUT", "/api/kb/books/documents", {"document_id": name, "text": "by hand", "source": source})
            equal(a.status, 201, a.body)
        for name in ("a.md", "b.md", "c.md"):
            write(name, "of the folder")
        s.start()
        wait_until(lambda: names() == ["a.md", "b.md", "c.md"], "the files are taken")
        put("hand1", folder + "/books/hand1")
        put("hand2", folder + "2/hand2")
        os.makedirs(deep)
        write("d.md", "later")
        wait_until(lambda: "d.md" in names() and "kb.folder_not_read" in s.log(), "what cannot be read is told")
        os.remove(os.path.join(folder, "books", "a.md"))
        write("e.md", "later still")
        wait_until(lambda: "e.md" in names(), "another walk")
        write("e.md", "changed")  # taken by the walk after that one, which is over then
        wait_until(lambda: found("changed") == ["e.md"], "a walk after it")
        check("a.md" in names(), "nothing is removed while something cannot be read")
        shutil.rmtree(os.path.join(folder, "deep"))
        wait_until(lambda: "a.md" not in names(), "now it is known to be gone")
        s.stop()
        os.remove(os.path.join(folder, "books", "b.md"))
        s.start()
        wait_until(lambda: "b.md" not in names(), "gone while nobody looked")
        write("f.md", "and again")
        wait_until(lambda: "f.md" in names(), "another walk")
        kept = ["c.md", "d.md", "e.md", "f.md", "hand1", "hand2"]
        equal(names(), kept)
        os.rename(os.path.join(folder, "books"), os.path.join(s.root, "unmounted"))
        os.makedirs(os.path.join(folder, "books"))
        wait_until(lambda: "kb.folder_emptied" in s.log(), "it is told")
        s.stop()
        s.start()  # also when nobody looked
        wait_until(lambda: s.log().count("kb.folder_emptied") == 2, "it is told again")
        equal(names(), kept, "a folder that lost all its files at once")
        os.rmdir(os.path.join(folder, "books"))
        os.rename(os.path.join(s.root, "unmounted"), os.path.join(folder, "books"))
        os.remove(os.path.join(folder, "books", "c.md"))
        wait_until(lambda: "c.md" not in names(), "one file of it is gone")
        equal(names(), kept[1:])


@test("a_file_that_could_not_be_taken_is_tried_again", "")
def watched_again():
    with Server(start=False) as s:
        folder = os.path.join(s.root, "watched")
        os.makedirs(folder)
        s.settings["kb_watch_dir"] = folder
        s.start()
        db = sqlite3.connect(os.path.join(s.data, "knowledge", "documents.db"), isolation_level=None)
        db.execute("BEGIN IMMEDIATE")
        with open(os.path.join(folder, "a.md"), "w") as f:
            f.write("text")
        wait_until(lambda: "kb.file_not_taken" in s.log(), "it is told")
        db.execute("COMMIT")
        db.close()
        wait_until(lambda: s.http.get("/api/kb/default/documents").json["documents"], "it is taken")


@test("a_watched_folder_is_a_collection", "")
def watched():
    with Embedder(lambda text: [1.0, float(len(text))]) as e, Server(env=e.env()) as s:
        folder = os.path.join(s.root, "watched", "books")
        os.makedirs(folder)
        s.stop()
        s.env["UAR_KB_WATCH_DIR"] = os.path.dirname(folder)
        with open(os.path.join(folder, "one.txt"), "w") as f:
            f.write("a story of marble")
        s.start()
        collections = lambda: [c["collection"] for c in s.http.get("/api/kb").json["collections"]]
        wait_until(lambda: collections())
        (name,) = collections()
        wait_until(lambda: names(s, name, "marble", mode="keyword"))
        with open(os.path.join(folder, "two.txt"), "w") as f:
            f.write("a story of slate")
        wait_until(lambda: names(s, name, "slate", mode="keyword"))
        wait_until(lambda: "a story of slate" in e.texts, "its vector, which comes behind its words")
        asked = len(e.texts)
        with open(os.path.join(folder, "two.txt"), "w") as f:
            f.write("a story of basalt")
        wait_until(lambda: names(s, name, "basalt", mode="keyword") and not names(s, name, "slate", mode="keyword"))
        wait_until(lambda: state(s, name, "two.txt")["state"] == "ready", "its vector is kept: a kill before asks twice")
        s.kill()
        os.unlink(os.path.join(folder, "one.txt"))  # while nobody watches
        s.start()
        wait_until(lambda: not names(s, name, "marble", mode="keyword"))
        equal(len(names(s, name, "basalt", mode="keyword")), 1)
        equal(e.texts[asked:], ["a story of basalt"], "nothing else is read again")


@test("an_instance_shows_what_it_is_made_of", "CFG-08")
def instance():
    parts = ["artifact", "provider_policy", "memory", "tool_registry", "skill_registry", "event_bus"]
    with Server() as s:
        put(s, "birds", "heron", "The vermilion heron guards the archive.")
        agent(s, "a", kb={"enabled": True, "collections": ["birds", "nothing"]}, conversation={"enabled": False})
        a = s.http.get("/api/agents/a/instance")
        equal((a.status, list(a.json)), (200, parts))
        equal(a.json["artifact"]["revision"], s.http.get("/api/agents/a").json["revision"])
        equal(a.json["provider_policy"]["rules"]["default"], {"provider": "scripted", "model": "scripted-tools"})
        memory = a.json["memory"]
        equal([(memory[m]["adapter"], memory[m]["enabled"]) for m in ("conversation", "documents", "vectors", "graph")],
              [("log", False), ("documents.db", True), ("index.db", True), ("documents.db", True)])
        equal([(c["collection"], c["found"], c["documents"]) for c in memory["collections"]],
              [("birds", True, 1), ("nothing", False, 0)])
        used = {t["tool_id"] for t in a.json["tool_registry"]["tools"]}
        check("internal:kb.search" in used and "internal:fs.read" not in used, used)
        check("rag_citations" in [k["skill_id"] for k in a.json["skill_registry"]["skills"]], a.json["skill_registry"])
        before = a.json["event_bus"]
        s.finish(s.create("echo", "hello"))
        after = s.http.get("/api/agents/a/instance").json["event_bus"]
        check(after["commits"] > before["commits"] and after["runtime_id"] == before["runtime_id"], (before, after))
        equal(s.http.get("/api/agents/demo/instance").json["provider_policy"]["from"], "agent")
        equal(s.http.get("/api/agents/assistant/instance").json["provider_policy"]["from"], "server")
        refused(s.http.get("/api/agents/nobody/instance"), 404, "NOT_FOUND")
        done = run_uar("agent", "instance", "a", "--data", s.data)
        equal((done.returncode, [line.split(":")[0] for line in done.stdout.splitlines()]),
              (0, ["artifact", "provider_policy", "memory", "event_bus", "tool_registry", "skill_registry"]))
    with Server(env={"UAR_KB": "false"}) as s:
        equal(s.http.get("/api/agents/demo/instance").json["memory"]["documents"], {"adapter": None, "enabled": False})


def vector(text):
    if "zero" in text:
        return [0.0, 0.0, 0.0]
    tea = sum(w in text for w in ("tea", "cup", "brew"))
    rock = sum(w in text for w in ("rock", "stone", "granite"))
    return [0.1, float(tea), float(rock)]


@test("vectors_of_a_provider_are_asked_for_once_and_never_zero", "MEM-01 MEM-03 MEM-10 ART-16")
def embeddings():
    with Embedder(vector) as e, Server(env=e.env()) as s:
        put(s, "v", "t", "a cup to drink from")
        put(s, "v", "r", "granite everywhere")
        wait_until(lambda: all(state(s, "v", d)["state"] == "ready" for d in "tr"))
        equal(names(s, "v", "brew", mode="vector", k=1), ["t"])
        equal(names(s, "v", "stone", mode="vector", k=1), ["r"])
        equal(names(s, "v", "stone", mode="keyword"), [])
        equal(names(s, "v", "stone")[0], "r")
        asked = len(e.texts)
        put(s, "v", "copy", "a cup to drink from")
        put(s, "w", "copy", "a cup to drink from")
        wait_until(lambda: state(s, "w", "copy")["state"] == "ready" and state(s, "v", "copy")["state"] == "ready")
        equal(e.texts[asked:], [])  # by the hash of the passage
        put(s, "v", "nil", "zero")
        wait_until(lambda: state(s, "v", "nil")["state"] == "failed")
        check("zero" in state(s, "v", "nil")["error"], state(s, "v", "nil"))
        a = s.http.post("/api/kb/v/search", {"query": "zero", "mode": "vector"})
        check(a.status >= 400 and "zero" in a.body.decode(), a.body)
        e.failures = 1000  # words go on finding what the embedder cannot compare
        a = s.http.post("/api/kb/v/search", {"query": "granite"})
        equal((a.status, a.json["passages"][0]["document_id"], a.json["partial"]), (200, "r", True))
        check(s.http.post("/api/kb/v/search", {"query": "granite", "mode": "vector"}).status >= 500, "vectors alone")
        e.failures = 0
        equal(s.http.post("/api/kb/v/search", {"query": "granite"}).json["partial"], True, "one has no vector")
        equal(s.http.send("DELETE", "/api/kb/v/documents/nil").status, 200)
        check("partial" not in s.http.post("/api/kb/v/search", {"query": "granite"}).json, "all is compared again")
        e.failures = 1
        put(s, "v", "late", "tea, later")
        wait_until(lambda: state(s, "v", "late")["state"] == "ready")
        equal(s.http.send("PUT", "/api/kb/v", {"embedding": "builtin"}).status, 200)
        wait_until(lambda: s.http.send("POST", "/api/kb-index/check").json["pending"] == 0)
        asked = len(e.texts)
        equal(names(s, "v", "granite", k=1), ["r"])
        equal(e.texts[asked:], [])


@test("a_document_without_vectors_is_found_by_words_and_tried_again", "MEM-03")
def failed_vectors():
    with Embedder(vector) as e, Server(env=e.env()) as s:
        e.failures, e.status = 1000, 401
        for name in ("a", "b"):
            put(s, "v", name, f"granite of quarry {name}")
        wait_until(lambda: all(state(s, "v", d)["state"] == "failed" for d in "ab"))
        equal(sorted(names(s, "v", "granite", mode="keyword")), ["a", "b"])
        check("v/a: " in run_uar("kb", "check", "--data", s.data).stdout, "the check names it")
        refused(s.http.send("PUT", "/api/kb/v", {"embedding": "nobody/words"}), 400, "VALIDATION_ERROR")
        s.stop()
        e.failures = 0
        s.start()
        wait_until(lambda: all(state(s, "v", d)["state"] == "ready" for d in "ab"))
        equal(len(names(s, "v", "stone", mode="vector")), 2)
        e.failures = 1000
        put(s, "v", "c", "granite of quarry c")
        wait_until(lambda: state(s, "v", "c")["state"] == "failed")
        e.failures = 0
        agent(s, "a", kb={"enabled": True, "collections": ["v"]})
        ask = call("kb.search", query="stone", collections=["v"])
        equal(partial(s, "v", "stone"), True, "a document has no vector")
        equal(outputs(s, "a", ask)[0].get("partial"), True, "the tool says so, too")
        equal(s.http.send("PUT", "/api/kb/v", {"embedding": "builtin"}).status, 200)
        wait_until(lambda: state(s, "v", "c")["state"] == "ready")
        equal(len(names(s, "v", "granite", mode="vector")), 3)
        equal(partial(s, "v", "granite"), None)
        check("partial" not in outputs(s, "a", ask)[0], "whole again")


@test("vectors_that_are_no_numbers_are_refused_with_what_the_provider_says", "MEM-03")
def bad_vectors():
    bad = {"null": None, "text": "0.5", "far": 1e39, "square": -1e30}
    with Embedder(lambda text: [0.1, 1.0, next((v for k, v in bad.items() if k in text), 2.0)]) as e, Server(env=e.env()) as s:
        put(s, "v", "good", "granite")
        wait_until(lambda: state(s, "v", "good")["state"] == "ready")
        for name in bad:
            put(s, "v", name, f"granite, {name}")
            wait_until(lambda name=name: state(s, "v", name)["state"] != "pending")
            at = state(s, "v", name)
            check(at["state"] == "failed" and "vector of numbers" in at["error"], name, at)
            a = s.http.post("/api/kb/v/search", {"query": name, "mode": "vector"})
            check(a.status == 502 and "vector of numbers" in a.body.decode(), name, a.body)
        equal(names(s, "v", "granite", mode="vector"), ["good"])
        e.failures, e.status = 1000, 404
        put(s, "v", "lost", "granite, lost")
        wait_until(lambda: state(s, "v", "lost")["state"] == "failed")
        equal(state(s, "v", "lost")["error"], "the provider answered with status 404: busy")


@test("an_embedder_whose_vectors_have_another_length_leaves_the_words", "MEM-03")
def other_dimensions():
    length = 3
    with Embedder(lambda text: [1.0] * length) as e, Server(env=e.env()) as s:
        put(s, "v", "a", "granite")
        wait_until(lambda: state(s, "v", "a")["state"] == "ready")
        agent(s, "reader", kb={"enabled": True, "collections": ["v"]})
        length = 4  # another model behind the same name
        a = s.http.post("/api/kb/v/search", {"query": "granite"})
        equal((a.status, [p["document_id"] for p in a.json["passages"]], a.json["partial"]), (200, ["a"], True))
        check("kb.vectors_not_compared" in s.log() and "uar kb rebuild" in s.log(), s.log())
        refused(s.http.post("/api/kb/v/search", {"query": "granite", "mode": "vector"}), 409, "CONFLICT")
        equal(s.finish(s.create("reader", "granite"))["status"], "succeeded")
        equal(s.http.send("POST", "/api/kb-index/rebuild").status, 200)
        wait_until(lambda: names(s, "v", "granite", mode="vector") == ["a"], "it is embedded anew")
        equal(partial(s, "v", "granite"), None)


@test("an_embedder_that_does_not_answer_holds_up_neither_words_nor_other_embedders", "MEM-03")
def silent_embedder():
    with Embedder(vector) as e, Server(env=e.env()) as s:
        equal(s.http.send("PUT", "/api/kb/own", {"embedding": "builtin"}).status, 200)
        e.failures = 10 ** 9
        for name in "abc":
            put(s, "v", name, f"granite of quarry {name}")
        put(s, "own", "d", "granite of quarry d")
        wait_until(lambda: state(s, "own", "d")["state"] == "ready")
        wait_until(lambda: sorted(names(s, "v", "granite", mode="keyword")) == ["a", "b", "c"], "words find them")
        equal({state(s, "v", d)["state"] for d in "abc"}, {"pending"})
        put(s, "v", "a", "marble of quarry a")
        wait_until(lambda: names(s, "v", "marble", mode="keyword") == ["a"], "and what changed")
        e.failures = 0
        wait_until(lambda: all(state(s, "v", d)["state"] == "ready" for d in "abc"))
        equal(s.http.send("POST", "/api/kb-index/check").json["ok"], True)


def partial(s, collection, query):
    return s.http.post(f"/api/kb/{collection}/search", {"query": query, "mode": "vector"}).json.get("partial")


main()
