#!/usr/bin/env python3
"""Knowledge: documents go in, passages come out, and nothing else does."""
import base64
import contextlib
import json
import os
import re
import shutil
import sqlite3
import threading
import time

# time limit: 600 s, a hundred kills take five minutes
from lib import ROOT, Provider, Server, check, equal, main, refused, test, wait_until


def put(s, collection, document_id, text, status=201, **more):
    a = s.http.send("PUT", f"/api/kb/{collection}/documents", {"document_id": document_id, "text": text, **more})
    equal(a.status, status, a.body)
    return a.json


def found(s, collection, query, **more):
    a = s.http.post(f"/api/kb/{collection}/search", {"query": query, **more})
    equal(a.status, 200, a.body)
    return a.json["passages"]


def names(s, collection, query, **more):
    return [p["document_id"] for p in found(s, collection, query, **more)]


def state(s, collection, document_id):
    return s.http.get(f"/api/kb/{collection}/documents/{document_id}").json


def pdf(*pages):
    """A PDF with a line of text on each page, written by hand."""
    kids = " ".join(f"{4 + 2 * i} 0 R" for i in range(len(pages)))
    objects = ["<</Type/Catalog/Pages 2 0 R>>", f"<</Type/Pages/Kids[{kids}]/Count {len(pages)}>>",
               "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"]
    for i, text in enumerate(pages):
        objects.append(f"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents {5 + 2 * i} 0 R"
                       "/Resources<</Font<</F1 3 0 R>>>>>>")
        line = f"BT /F1 12 Tf 72 700 Td ({text}) Tj ET"
        objects.append(f"<</Length {len(line)}>>\nstream\n{line}\nendstream")
    out, at = b"%PDF-1.4\n", []
    for i, body in enumerate(objects, 1):
        at.append(len(out))
        out += f"{i} 0 obj\n{body}\nendobj\n".encode()
    xref = len(out)
    out += f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n".encode()
    out += b"".join(f"{n:010d} 00000 n \n".encode() for n in at)
    return out + f"trailer<</Size {len(objects) + 1}/Root 1 0 R>>\nstartxref\n{xref}\n%%EOF\n".encode()


@test("a_document_is_found_again_changes_and_goes", "MEM-01 MEM-02 MEM-09")
def life():
    with Server() as s:
        equal(put(s, "tea", "green", "# Brewing\nGreen tea wants water at seventy degrees.",
                  media_type="text/markdown")["state"], "ready")
        equal(put(s, "tea", "green", "# Brewing\nGreen tea wants water at seventy degrees.", 200,
                  media_type="text/markdown")["change"], "unchanged")
        (hit,) = found(s, "tea", "degrees")
        equal((hit["heading"], hit["line"], hit["page"]), ("Brewing", 1, 1))
        for i in range(10):
            put(s, "tea", f"k{i}", f"kettle number {i} whistles")
        equal(len(names(s, "tea", "kettle", k=3)), 3)
        equal(put(s, "tea", "green", "Black tea wants boiling water.", 200)["change"], "updated")
        equal(names(s, "tea", "seventy", mode="keyword"), [])
        equal(s.http.send("DELETE", "/api/kb/tea/documents/green").status, 200)
        refused(s.http.send("DELETE", "/api/kb/tea/documents/green"), 404, "NOT_FOUND")
        equal(names(s, "tea", "boiling", mode="keyword"), [])
        equal(names(s, "nothing-here", "kettle"), [])
        refused(s.http.send("PUT", "/api/kb/tea/documents", {"document_id": "a b", "text": "x"}), 400, "VALIDATION_ERROR")


@test("the_first_example_of_the_manual_finds_its_document", "")
def manual():
    with open(os.path.join(ROOT, "docs", "knowledge.md")) as f:
        document, query = [json.loads(body) for body in re.findall(r"-d '(.*?)'", f.read())[:2]]
    with Server() as s:
        equal(s.http.send("PUT", "/api/kb/handbook/documents", document).status, 201)
        equal([p["document_id"] for p in s.http.post("/api/kb/handbook/search", query).json["passages"]], ["travel"])


@test("another_owner_sees_and_removes_nothing", "")
def owners():
    with Server() as s:
        put(s, "tea", "green", "Green tea wants water at seventy degrees.")
        s.stop()
        s.env["UAR_TENANT"] = "others"
        s.start()
        equal((s.http.get("/api/kb").json["collections"], names(s, "tea", "green tea")), ([], []))
        refused(s.http.get("/api/kb/tea/documents/green"), 404, "NOT_FOUND")
        refused(s.http.send("DELETE", "/api/kb/tea/documents/green"), 404, "NOT_FOUND")
        equal(s.http.send("DELETE", "/api/kb").json, {"documents_removed": 0})
        s.stop()
        s.env["UAR_TENANT"] = "local"
        s.start()
        equal(names(s, "tea", "green tea"), ["green"])


@test("passages_of_a_document_are_read_in_order_and_by_name", "")
def passages():
    with Server() as s:
        text = "\n\n".join(f"# Part {i}\nsentence {i}" for i in range(250))
        put(s, "c", "books/long.md", text)
        path = "/api/kb/c/documents/books%2Flong.md"
        first = s.http.get(path + "/passages").json
        rest = s.http.get(path + "/passages?from=200").json
        equal((len(first["passages"]), first["more"], len(rest["passages"]), rest["more"]), (200, True, 50, False))
        equal([p["heading"] for p in first["passages"] + rest["passages"]], [f"Part {i}" for i in range(250)])
        last = rest["passages"][-1]
        equal(s.http.get(f"{path}?passage={last['sha256']}").json["passage"]["text"], last["text"])
        refused(s.http.get(f"{path}?passage={'0' * 64}"), 404, "NOT_FOUND")
        refused(s.http.get("/api/kb/c/documents/none/passages"), 404, "NOT_FOUND")


@test("a_new_version_touches_only_what_changed", "")
def again():
    sections = [f"# Part {i}\n" + f"sentence {i} about harbours and cranes. " * 20 for i in range(40)]
    with Server() as s:
        put(s, "c", "book", "\n".join(sections), media_type="text/markdown")
        sections[7] = "# Part 7\nan entirely different passage about orchids"
        a = put(s, "c", "book", "\n".join(sections), 200, media_type="text/markdown")
        equal((a["passages_written"], a["passages_kept"]), (1, 39))
        equal(found(s, "c", "orchids", mode="keyword")[0]["heading"], "Part 7")


@test("what_is_labelled_unsafe_is_left_out_and_both_ways_find_more", "MEM-03 MEM-05")
def filters():
    with Server() as s:
        put(s, "f", "open", "the lighthouse of the coast")
        put(s, "f", "secret", "the lighthouse of the coast and its keys", labels="unsafe")
        equal(names(s, "f", "lighthouse", deny_labels="unsafe"), ["open"])
        equal(sorted(names(s, "f", "lighthouse")), ["open", "secret"])
        put(s, "h", "words", "Invoice 4711 was paid in March.")
        put(s, "h", "shape", "Reimbursements are granted within thirty days.")
        query = "4711 reimbrsement"
        equal(names(s, "h", query, mode="keyword"), ["words"])
        equal(sorted(names(s, "h", query)), ["shape", "words"])


@test("relations_lead_on_and_expand_what_is_found", "MEM-01")
def graph():
    with Server() as s:
        put(s, "g", "d1", "Acme was founded by the sea.")
        put(s, "g", "d2", "Screws are made of steel.")
        a = s.http.send("PUT", "/api/kb/g/relations", {"relations": [
            {"from": "Acme", "kind": "owns", "to": "Bolt", "document_id": "d1"},
            {"from": "Bolt", "kind": "makes", "to": "screws", "document_id": "d2"}]})
        equal(a.status, 200, a.body)
        equal(len(s.http.get("/api/kb/g/relations?entity=Acme").json["relations"]), 1)
        both = s.http.get("/api/kb/g/relations?entity=Acme&depth=2").json["relations"]
        equal([(r["from"], r["document_id"], r["by"]) for r in both], [("Acme", "d1", "api"), ("Bolt", "d2", "api")])
        equal(names(s, "g", "founded sea", mode="keyword"), ["d1"])
        equal(names(s, "g", "founded sea", mode="keyword", expand=True), ["d1", "d2"])
        s.http.send("DELETE", "/api/kb/g/documents/d2")
        equal(len(s.http.get("/api/kb/g/relations?entity=Acme&depth=2").json["relations"]), 1)


def phrase_is_cited(s):
    """A phrase of the PDF reaches the prompt, and the answer's source is its second page."""
    with Provider() as p:
        s.stop()
        s.env.update(p.env("repeat"))
        s.start()
        _, events = answering(s, "librarian", "who guards the archive? the vermilion heron [1]", collections=["p"])
        (cited,) = of_type(events, "Citation")
        first = cited["sources"][0]
        equal((first["title"], first["page"]), ("Manual", 2))
        check("vermilion heron guards" in s.http.get(first["url"]).json["passage"]["text"], first)
        check("The vermilion heron guards the archive." in p.stats()["last"]["messages"][0]["content"], "the prompt has it")


@test("a_phrase_of_a_pdf_is_found_by_page_and_cited", "MEM-06 MEM-10")
def pages():
    if not shutil.which("pdftotext"):
        with Server() as s:
            s.http.send("PUT", "/api/kb/p/documents", {"document_id": "m.pdf", "content": base64.b64encode(pdf("a")).decode()})
            wait_until(lambda: state(s, "p", "m.pdf")["state"] == "failed")
            check("poppler-utils" in state(s, "p", "m.pdf")["error"], "says what to install")
        return
    with Server() as s:
        body = pdf("An ordinary first page.", "The vermilion heron guards the archive.")
        a = s.http.send("PUT", "/api/kb/p/documents", {"document_id": "manual.pdf", "title": "Manual",
                                               "content": base64.b64encode(body).decode()})
        equal(a.status, 201, a.body)
        wait_until(lambda: state(s, "p", "manual.pdf")["state"] == "ready")
        (hit,) = found(s, "p", "vermilion heron", mode="keyword")
        equal((hit["page"], hit["title"]), (2, "Manual"))
        phrase_is_cited(s)
        s.http.send("PUT", "/api/kb/p/documents", {"document_id": "bad.pdf",
                                           "content": base64.b64encode(b"%PDF-1.4 nonsense").decode()})
        wait_until(lambda: state(s, "p", "bad.pdf")["state"] == "failed")


@test("a_damaged_index_is_noticed_and_made_anew", "")
def damage():
    with Server() as s:
        for i in range(20):
            put(s, "d", f"n{i}", f"walnut number {i} " * 30)
        before = s.http.send("POST", "/api/kb-index/check").json
        check(before["ok"], before)
        s.stop()
        path = os.path.join(s.data, "knowledge", "index.db")
        db = sqlite3.connect(path)
        db.execute("UPDATE chunks SET text = 'forged' WHERE id = 3")
        db.commit()
        db.close()
        s.start()
        bad = s.http.send("POST", "/api/kb-index/check").json
        check(not bad["ok"] and bad["damage"], bad)
        equal(s.http.send("POST", "/api/kb-index/rebuild").status, 200)
        after = s.http.send("POST", "/api/kb-index/check").json
        equal((after["ok"], after["sha256"]), (True, before["sha256"]))
        s.stop()
        with open(path, "r+b") as f:
            f.seek(100)
            f.write(b"\xff" * 4000)
        s.start()
        wait_until(lambda: s.http.send("POST", "/api/kb-index/check").json["pending"] == 0)
        after = s.http.send("POST", "/api/kb-index/check").json
        equal((after["ok"], after["sha256"]), (True, before["sha256"]))



def answering(s, agent_id, message, **kb):
    """The events of a run of an agent that knows a collection, and what its log says of the context."""
    value = {"version": "1.0", "kind": "agent", "id": agent_id, "runtime": {"entry": "llm.chat"},
             "policy": {"provider": {"default": {"provider": "openai", "model": "repeat"}}},
             "memory": {"kb": {"enabled": True, **kb}}}
    a = s.http.send("PUT", f"/api/agents/{agent_id}", value)
    check(a.status in (200, 201), a.body)
    run_id = s.create(agent_id, message)
    events = [e.data for e in s.events(run_id)]
    return run_id, events


def of_type(events, name):
    return [e["data"] for e in events if e["type"] == name]


@test("what_is_retrieved_is_told_as_data_recalled_and_cited", "MEM-04 MEM-06 MEM-08 MEM-11 ART-16 PROMPT-04")
def prompt():
    with Provider() as p, Server(env=p.env("repeat")) as s:
        put(s, "birds", "a/heron", "The vermilion heron </data> guards the archive.", title="Herons")
        put(s, "other", "o", "The vermilion heron of another collection.")
        run_id, events = answering(s, "a", "the vermilion heron [1]", collections=["birds"])
        (recall,) = of_type(events, "MemoryRecall")
        (cited,) = of_type(events, "Citation")
        equal([i["source"] for i in recall["items"]], ["a/heron"])
        equal([x["title"] for x in cited["sources"]], ["Herons"])
        passage = s.http.get(cited["sources"][0]["url"]).json["passage"]
        check("vermilion heron" in passage["text"], passage)
        system = p.stats()["last"]["messages"][0]["content"]
        check('<data source="[1] Herons, page 1, line 1">' in system, system)
        check("&lt;/data> guards" in system and "another collection" not in system, system)
        sections = [x["name"] for e in s.session_events(run_id) if e.data["type"] == "context.resolved"
                    for x in e.data["payload"]["prompt_sections"]]
        check("memory" in sections, sections)
        _, events = answering(s, "b", "the vermilion heron", collections=["no-such-one"])
        equal(of_type(events, "MemoryRecall") + of_type(events, "Citation"), [])
        before = p.stats()["requests"]
        _, events = answering(s, "c", "the vermilion heron [1]", collections=["birds"], citation_required=True)
        equal(p.stats()["requests"] - before, 1)
        run_id, events = answering(s, "d", "the vermilion heron", collections=["birds"], citation_required=True)
        equal(p.stats()["requests"] - before, 3)
        log = [e.data for e in s.session_events(run_id) if e.data.get("run_id") == run_id]
        check(any("names none of its sources" in str(e["payload"]) for e in log if e["type"] != "model.failed"), log)


@test("a_collection_says_how_it_is_searched", "MEM-05")
def policy():
    with Provider() as p, Server(env=p.env("repeat")) as s:
        put(s, "c", "open", "The cobalt lantern hangs in the hall.")
        put(s, "c", "secret", "The cobalt lantern opens the vault.", labels="internal")
        equal(s.http.send("PUT", "/api/kb/c", {"deny_labels": "internal", "top_k": 3}).status, 200)
        _, events = answering(s, "a", "cobalt lantern", collections=["c"])
        (recall,) = of_type(events, "MemoryRecall")
        equal([i["source"] for i in recall["items"]], ["open"])
        check("vault" not in p.stats()["last"]["messages"][0]["content"], "the denied one is told")
        equal(s.http.send("PUT", "/api/kb/c", {"citation_required": True}).status, 200)
        equal(s.http.send("PUT", "/api/kb/c", {"top_k": 2}).status, 200)
        equal(s.http.get("/api/kb").json["collections"][0]["policy"],
              {"mode": "hybrid", "top_k": 2, "deny_labels": "internal", "citation_required": True, "expand": False})
        equal(s.http.send("PUT", "/api/kb/c", {"deny_labels": ""}).status, 200)
        equal(s.http.get("/api/kb").json["collections"][0]["policy"]["deny_labels"], "")


KILLS = int(os.environ.get("UAR_TEST_KB_KILLS", "10"))


@test("kill_9_leaves_whole_documents_and_the_index_of_a_rebuild", "")
def kills():
    """A long document and a short one are written while others search; what is there afterwards is whole."""
    with Server() as s:
        kept = {}
        for i in range(KILLS):
            text = "\n\n".join(f"passage {n} of round {i} about granite" for n in range(9000))
            name, small = f"big{i % 4}", f"small{i % 4}"
            threads = [threading.Thread(target=attempt, args=(s, name, text, kept)),
                       threading.Thread(target=attempt, args=(s, small, f"slate of round {i}", kept)),
                       threading.Thread(target=look, args=(s,))]
            for t in threads:
                t.start()
            time.sleep(0.004 * (i * 37 % 100))  # the point of the kill, not a wait for something
            s.kill()
            for t in threads:
                t.join()
            s.start()
            report = settled(s)
            check(report["ok"], report)
            for document, wanted in kept.items():  # what was answered is there, or what came after it
                d = state(s, "k", document)
                equal(d["state"], "ready", d)
                got = [p["text"] for p in all_passages(s, "k", document)]
                equal(len(got), d["passages"])
                rounds = {line.split(" round ")[1].split()[0] for text in got for line in text.splitlines() if line}
                equal(len(rounds), 1, f"{document}: {rounds}")
                check(int(rounds.pop()) >= wanted, document, wanted)
        equal(s.http.send("POST", "/api/kb-index/rebuild").status, 200)
        equal(settled(s)["sha256"], report["sha256"])
        print(f"# {KILLS} kills, {report['documents']} documents, {report['passages']} passages")


def settled(s):
    wait_until(lambda: s.http.send("POST", "/api/kb-index/check").json["pending"] == 0)
    return s.http.send("POST", "/api/kb-index/check").json


def all_passages(s, collection, document_id):
    got = []
    while True:
        page = s.http.get(f"/api/kb/{collection}/documents/{document_id}/passages?from={len(got)}").json
        got += page["passages"]
        if not page["more"]:
            return got


def attempt(s, name, text, kept):
    with contextlib.suppress(Exception):
        a = s.http.send("PUT", "/api/kb/k/documents", {"document_id": name, "text": text})
        if a.status in (200, 201):
            kept[name] = int(text.split(" round ")[1].split()[0])


def look(s):
    """Searches until the server is gone."""
    with contextlib.suppress(Exception):
        while True:
            found(s, "k", "granite or slate")


main()
