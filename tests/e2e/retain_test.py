#!/usr/bin/env python3
"""Retention: with `keep_runs` the oldest ended runs go, and all that shows them with them."""
import os
import re

from lib import (Provider, Server, check, equal, main, refused, run_uar, test, text_of,
                 wait_until)
from lib.backends import SAY, TALK, Shop
from lib.payloads import check_payload
from lib.plugins import Lab
from lib.sse import Refusal


def stream_refused(open_stream):
    try:
        open_stream().close()
        check(False, "the stream of a run that is gone was opened")
    except Refusal as r:
        equal((r.status, r.json["code"]), (404, "NOT_FOUND"))


def check_gone(s, run_id, item=None):
    """No path knows it, on either surface."""
    for path in ("/api/runs/{}", "/runs/{}", "/runs/{}/export", "/runs/{}/export?limit=1",
                 "/channels/runs?run_id={}", "/channels/export?run_id={}",
                 "/api/runs/{}/actions/1/input"):
        refused(s.http.get(path.format(run_id)), 404, "NOT_FOUND")
    if item:
        refused(s.http.get(f"/runs/{run_id}/export/{item}/content"), 404, "NOT_FOUND")
    for surface in ("/api/runs", "/runs"):
        refused(s.http.post(f"{surface}/{run_id}/cancel", {}), 404, "NOT_FOUND")
        refused(s.http.post(f"{surface}/{run_id}/retry", {}), 404, "NOT_FOUND")
    stream_refused(lambda: s.stream(run_id))
    stream_refused(lambda: s.stream(run_id, header=1))
    for surface in ("/api/runs", "/runs"):
        for query in ("", f"?prefix={run_id}", f"?root_run_id={run_id}"):
            runs = s.http.get(surface + query).json["runs"]
            check(run_id not in [r["run_id"] for r in runs], surface + query)


def deleted(channel, count):
    """The ids of the next runs that the channel says are gone."""
    seen = []
    channel.until(lambda e: seen.append(e.data) or
                  sum(d["op"] == "del" for d in seen) == count)
    return [d for d in seen if d["op"] == "del"]


@test("the_two_oldest_of_cap_and_two_are_gone_from_every_path", "RUN-48 RUN-52 RCH-05 EVT-120")
def every_path():
    with Lab(keep_runs=3) as s:
        with s.channel("runs") as ch, s.channel("runs", plugin_id="lab") as of_lab:
            first = s.begin("many", {"n": 2}, task_id="t-1")
            item = s.items(s.done(first)["run_id"])["items"][0]["export_item_id"]
            runs = [first] + [s.finish(s.create("echo", f"m{i}"))["run_id"] for i in range(4)]
            gone = deleted(ch, 2)
            equal([d["run_id"] for d in gone], runs[:2], "oldest first")
            equal({d["status"] for d in gone}, {"succeeded"})
            equal([d["task_id"] for d in gone], ["t-1", None])
            equal([d["run_id"] for d in deleted(of_lab, 1)], [first])
        for run_id, its_item in ((runs[0], item), (runs[1], None)):
            check_gone(s, run_id, its_item)
        equal([r["run_id"] for r in s.http.get("/api/runs").json["runs"]], runs[:1:-1])
        for run_id in runs[2:]:
            equal(s.finish(run_id)["status"], "succeeded")
        equal(s.metric("uar_runs_evicted_total"), 2)
        with s.session_stream("uar.retention") as log:
            facts = [log.next().data for _ in range(2)]
        equal([f["type"] for f in facts], ["output.expired"] * 2)
        equal([f["refs"]["output_ref"] for f in facts], ["run://" + r for r in runs[:2]])
        for fact in facts:
            check_payload(fact)
            equal((fact["payload"]["policy"], fact["payload"]["bytes_freed"]), ("keep_runs", 0), "the log keeps its bytes")
            check(fact["payload"]["expired_at"] <= fact["timestamp"], fact)


@test("a_conversation_remembers_what_its_evicted_runs_said", "RUN-52")
def memory():
    long = "7 " * 40_000  # kept as a blob
    with Provider() as p, Server(env=p.env("hello"), keep_runs=1) as s:
        runs = []
        for text in (long, "second", "third"):
            runs.append(s.finish(s.create("assistant", text, conversation_id="c"))["run_id"])
        wait_until(lambda: s.http.get("/api/runs/" + runs[1]).status == 404)
        check_gone(s, runs[0])
        s.restart()  # nothing of it is in memory
        last = s.create("assistant", "fourth", conversation_id="c")
        log = [e.data for e in s.session_events(last)]
        said = [m["content"] for m in p.stats()["last"]["messages"] if m["role"] == "user"]
        equal(said, [long, "second", "third", "fourth"])
        equal([e["sequence"] for e in log], list(range(1, len(log) + 1)))
        check(set(runs) <= {e.get("run_id") for e in log}, "its events are in the log")


@test("an_agent_that_is_a_program_resumes_the_session_of_an_evicted_run", "RUN-52")
def program():
    with Shop({"claude": {"script": TALK + [SAY % "yes", "result"]}}, keep_runs=1) as s:
        first = s.finish(s.create("claude", "hi", conversation_id="c"))
        equal(first["backend_session"]["id"], "s-1")
        s.finish(s.create("echo", "x"))
        wait_until(lambda: s.http.get("/api/runs/" + first["run_id"]).status == 404)
        s.restart()
        # Who asks to resume where there is nothing to resume is refused.
        again = s.create("claude", "again", conversation_id="c", inputs={"session": "resume"})
        r = s.finish(again)
        equal((r["status"], r["error"]), ("succeeded", None), r)


@test("nothing_is_evicted_unless_it_is_asked_for", "RUN-48")
def default():
    with Server() as s:
        runs = [s.finish(s.create("echo", str(i)))["run_id"] for i in range(12)]
        s.restart()
        equal([r["run_id"] for r in s.http.get("/api/runs").json["runs"]], runs[::-1])


@test("a_run_that_goes_on_is_not_evicted", "RUN-48")
def live():
    with Lab(keep_runs=1) as s:
        slow = s.begin("gate", {"file": s.file("gate")})
        with s.channel("runs") as ch:
            runs = [s.finish(s.create("echo", str(i)))["run_id"] for i in range(3)]
            equal([d["run_id"] for d in deleted(ch, 2)], runs[:2])
            check(s.get(slow)["status"] in ("queued", "running"), s.get(slow))
            s.open_gate()
            equal([d["run_id"] for d in deleted(ch, 1)], runs[2:], "what ended before it")
        check_gone(s, runs[2])
        equal(s.record(slow)["status"], "succeeded", "whoever waited for it finds it")


@test("a_key_is_free_again_once_its_run_is_evicted", "RUN-52")
def keys():
    with Server(keep_runs=1) as s:
        first = s.create("echo", "a", idempotency_key="k")
        s.finish(first)
        equal(s.create("echo", "a", idempotency_key="k"), first)
        s.finish(s.create("echo", "b"))
        wait_until(lambda: s.http.get("/api/runs/" + first).status == 404)
        again = s.create("echo", "another request", idempotency_key="k")
        check(again != first)
        equal(s.finish(again)["idempotency_key"], "k")


@test("a_kill_in_the_middle_of_many_evictions_is_made_good", "RUN-48 RUN-52")
def killed():
    """A lower cap at a start: kill -9 while they go, and the next start does the rest."""
    total = 300
    with Server() as s:
        runs = [s.create("echo", str(i)) for i in range(total)]
        for run_id in runs:
            s.finish(run_id)
        for _ in range(4):
            s.restart(keep_runs=5)  # at any moment of the evictions
            left = [r["run_id"] for r in s.http.get("/api/runs?limit=500").json["runs"]]
            equal(left, runs[total - len(left):][::-1], "always the newest, without a gap")
        wait_until(lambda: len(s.http.get("/api/runs?limit=500").json["runs"]) == 5)
        for run_id in (runs[0], runs[-6]):
            check_gone(s, run_id)
        equal(s.stop(), 0)
        s.start()
        text = text_of(s.events(s.create("demo", "x")))
        check(re.search(r"turns before this one: 0", text), text)


def blobs(s):
    root = os.path.join(s.data, "blobs")
    return {d + name for d in os.listdir(root) if d != "tmp"
            for name in os.listdir(os.path.join(root, d))}


@test("what_only_evicted_runs_refer_to_is_unlinked_after_a_start", "RUN-48 RUN-52")
def sweep():
    with Lab(keep_runs=1) as s:
        s.finish(s.create("echo", "q" * 100_000, conversation_id="c"))
        question = blobs(s)
        equal(len(question), 1)
        old = s.play("large", {"n": 70_000, "file": s.file("f")})["run_id"]
        both = blobs(s)
        last = s.play("large", {"n": 70_000, "file": s.file("f")})["run_id"]
        wait_until(lambda: s.http.get("/runs/" + old).status == 404)
        equal(blobs(s), both, "the same bytes")
        s.restart()
        for item in s.items(last)["items"]:
            if item.get("binary_url"):
                equal(s.http.get(item["binary_url"]).status, 200, item)
        equal(blobs(s), both, "a run that is there refers to them")
        s.finish(s.create("echo", "x"))
        wait_until(lambda: s.http.get("/runs/" + last).status == 404)
        s.restart()
        s.restart()  # whether or not the sweep had come to its end
        wait_until(lambda: blobs(s) == question)
        s.restart()
        equal(blobs(s), question, "the conversation remembers it")
        equal(s.stop(), 0)
        a = run_uar("check", "--data", s.data)
        equal(a.returncode, 0, a.stdout + a.stderr)


main()
