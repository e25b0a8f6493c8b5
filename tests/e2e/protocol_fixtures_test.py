#!/usr/bin/env python3
"""Recorded exchanges of protocols (fixtures/mcp, fixtures/a2a), played against the real server."""
import json
import os

from lib import ROOT, Server, Stream, check, equal, main, test
from lib.mcp import BOTH, frames

FIXTURES = os.path.join(ROOT, "fixtures")


def recordings(folder):
    path = os.path.join(FIXTURES, folder)
    for name in sorted(os.listdir(path)):
        with open(os.path.join(path, name), encoding="utf-8") as f:
            yield name, json.load(f)


def holds(got, want, where):
    """Everything that is wanted is there; more may be."""
    if isinstance(want, dict):
        check(isinstance(got, dict), where, got)
        for key, value in want.items():
            check(key in got, where, key, got)
            holds(got[key], value, f"{where}/{key}")
    elif isinstance(want, list):
        equal(len(got), len(want), where)
        for i, value in enumerate(want):
            holds(got[i], value, f"{where}/{i}")
    else:
        equal(got, want, where)


def answer_of(a):
    if a.headers.get("content-type", "").startswith("text/event-stream"):
        return frames(a.body)[-1][1]
    return a.json


def play(s, name, recording):
    session = {}
    for n, step in enumerate(recording["steps"]):
        body = step["text"].encode() if "text" in step else step["send"]
        a = s.http.post(recording["path"], body, headers={"Accept": BOTH, **session, **step.get("headers", {})})
        equal(a.status, step["status"], f"{name}, step {n}: {a.body}")
        if "mcp-session-id" in a.headers:
            session = {"Mcp-Session-Id": a.headers["mcp-session-id"]}
        if "answer" in step:
            holds(answer_of(a), step["answer"], f"{name}, step {n}")


@test("recorded_exchanges_of_mcp_and_a2a_hold", "FIX-05")
def recorded():
    for folder in ("ag_ui", "a2ui", "a2a", "mcp"):
        check(os.listdir(os.path.join(FIXTURES, folder)), folder)
    with Server() as s:
        for name, recording in recordings("mcp"):
            play(s, name, recording)
        for name, recording in recordings("a2a"):
            play(s, name, {**recording, "path": "/api/a2a/inbox"})
            with Stream(s.url, "/api/a2a/stream/bob", s.token) as stream:
                equal([stream.next().data for _ in recording["inbox"]], recording["inbox"], name)


if __name__ == "__main__":
    main()
