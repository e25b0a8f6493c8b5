#!/usr/bin/env python3
"""Jobs over the control plane: items, their counts and attempts, cancel, time, and what kills leave."""
# time limit: 600 s, a thousand items through kills
import json
import random

from lib import Server, check, equal, goes_on, main, refused, test, wait_until
from lib.fanout import command, log_of, of_class, parent_of


def create(s, items, agent_id="echo", **more):
    return command(s, "create_job", agent_id=agent_id, instruction="dig", items=items, **more)["result"]["job"]


def job(s, job_id, **more):
    return command(s, "get_job", job_id=job_id, **more)["result"]


def ended(s, job_id):
    """The job once it is over; while it goes on, a minute for each step."""
    counts = None
    while True:
        j = job(s, job_id, limit=1)["job"]
        if j["status"] != "running":
            return job(s, job_id)
        check(j["counts"] != counts, "the job does not go on", j)
        counts = j["counts"]
        goes_on()
        wait_until(lambda: (lambda now: now["counts"] != counts or now["status"] != "running")(
            job(s, job_id, limit=1)["job"]), "the job goes on")


def items_of(s, job_id):
    """All items, by pages."""
    out, cursor = [], None
    while True:
        page = job(s, job_id, limit=100, **({"cursor": cursor} if cursor else {}))
        out += page["items"]
        cursor = page["next_cursor"]
        if not cursor:
            return out


def of_job(events, name, job_id):
    return [e for e in events if e["type"] == name and e["job_id"] == job_id]


@test("a_job_does_the_same_to_each_item", "CTL-46 CTL-40 CTL-41 EVT-108 EVT-109 EVT-110 EVT-111 EVT-112 EVT-114 JOB-02 FACT-09")
def done():
    with Server() as s:
        parent = parent_of(s)
        j = create(s, ["north", {"way": "south"}, 3], thread_id=parent["thread_id"], concurrency=2)
        equal((j["status"], j["item_count"], j["concurrency"], j["counts"]["running"]), ("running", 3, 2, 2))
        end = ended(s, j["job_id"])
        equal(end["job"]["counts"], {"pending": 0, "running": 0, "completed": 3, "failed": 0, "reported": 0})
        equal((end["job"]["status"], end["job"]["item_cursor"]), ("completed", 3))
        equal([(i["index"], i["status"], i["attempt"], i["output"]) for i in end["items"]],
              [(0, "completed", 1, "dig\n\nnorth"), (1, "completed", 1, 'dig\n\n{"way":"south"}'),
               (2, "completed", 1, "dig\n\n3")])
        check(len({i["assigned_thread_id"] for i in end["items"]}) == 3, end)
        for i in end["items"]:
            equal(s.record(i["run_id"])["status"], "succeeded")
        events = [e for e in log_of(s, parent["session_id"]) if e.get("job_id") == j["job_id"]]
        first = events[0]
        equal((first["type"], first["payload"]["status"], first["payload"]["item_count"]), ("job.created", "created", 3))
        equal([i["job_item_id"] for i in first["payload"]["items"]], [j["job_id"] + f".{n}" for n in range(3)])
        equal(first["refs"]["instruction_ref"], j["instruction_ref"])
        equal(of_job(events, "job.started", j["job_id"])[0]["payload"]["concurrency"], 2)
        equal([e["payload"]["index"] for e in of_job(events, "job.item.started", j["job_id"])], [0, 1, 2])
        ends = of_job(events, "job.item.completed", j["job_id"])
        equal(sorted(e["job_item_id"] for e in ends), [i["job_item_id"] for i in end["items"]])
        check(all(e["refs"]["output_refs"] for e in ends), ends)
        equal(of_job(events, "job.progress", j["job_id"])[-1]["payload"]["progress"], 1)
        equal(events[-1]["type"], "job.completed")
        equal(events[-1]["payload"]["counts"]["completed"], 3)
        other = create(s, ["x"])
        ended(s, other["job_id"])
        equal([x["job_id"] for x in command(s, "list_jobs", session_id=parent["session_id"])["result"]["jobs"]], [j["job_id"]])
        equal({x["job_id"] for x in command(s, "list_jobs", status="completed")["result"]["jobs"]},
              {j["job_id"], other["job_id"]})
        equal(command(s, "list_jobs", status="running")["result"]["jobs"], [])


@test("an_item_that_failed_is_done_again_alone", "CTL-50 EVT-113 EVT-115 JOB-03 FACT-09")
def retried():
    with Server() as s:
        j = create(s, ["a", "b"], agent_id="late")
        end = ended(s, j["job_id"])
        equal((end["job"]["status"], end["job"]["counts"]["failed"]), ("failed", 2))
        item = end["items"][1]
        equal((item["status"], item["attempt"], item["last_error"]["code"]), ("failed", 1, "NOT_FOUND"))
        check(item["assigned_thread_id"], item)
        equal(s.http.send("PUT", "/api/agents/late", {
            "version": "1.0", "kind": "agent", "id": "late", "runtime": {"entry": "llm.chat"},
            "policy": {"provider": {"default": {"provider": "scripted", "model": "scripted"}}}}).status, 201)
        again = command(s, "retry_job_item", job_id=j["job_id"], job_item_id=item["job_item_id"])["result"]
        equal((again["item"]["status"], again["item"]["attempt"], again["job"]["status"]), ("running", 2, "running"))
        end = ended(s, j["job_id"])
        equal((end["job"]["status"], end["job"]["counts"]["completed"], end["job"]["counts"]["failed"]), ("completed", 1, 1))
        equal([(i["status"], i["attempt"]) for i in end["items"]], [("failed", 1), ("completed", 2)])
        refused(s.http.post("/api/control/retry_job_item",
                            {"job_id": j["job_id"], "job_item_id": item["job_item_id"]}), 409, "CONFLICT")
        events = log_of(s, j["session_id"])
        failed = of_job(events, "job.item.failed", j["job_id"])
        equal([(e["payload"]["attempt"], e["payload"]["status"]) for e in failed], [(1, "failed"), (1, "failed")])
        check(all(e["payload"]["error"]["code"] == "NOT_FOUND" and e["payload"]["assigned_thread_id"] for e in failed))
        equal([e["payload"]["status"] for e in of_job(events, "job.failed", j["job_id"])], ["failed"])
        equal([(e["payload"]["index"], e["payload"]["attempt"]) for e in of_job(events, "job.item.completed", j["job_id"])],
              [(1, 2)])


@test("an_answer_that_breaks_the_output_schema_is_reported", "JOB-02 JOB-03")
def schema():
    with Server() as s:
        schema = {"type": "object", "required": ["n"]}
        j = command(s, "create_job", agent_id="echo", instruction="", items=[{"n": 1}, {"m": 1}],
                    output_schema=schema)["result"]["job"]
        end = ended(s, j["job_id"])
        equal([i["status"] for i in end["items"]], ["completed", "reported"])
        equal((end["items"][1]["last_error"]["code"], end["job"]["counts"]["reported"]), ("OUTPUT_INVALID", 1))
        equal(json.loads(end["items"][1]["output"]), {"m": 1})
        refused(s.http.post("/api/control/create_job", {
            "agent_id": "echo", "instruction": "x", "items": ["a"], "output_schema": {"type": 7}}), 400,
            "VALIDATION_ERROR", "/output_schema")
        refused(s.http.post("/api/control/create_job", {"agent_id": "echo", "instruction": "x", "items": []}), 400,
                "VALIDATION_ERROR", "/items")


ASK = 'tool fs.write {"path": "a.txt", "text": "x"}'


@test("a_cancelled_job_keeps_what_was_completed", "CTL-42 EVT-116")
def cancelled():
    with Server() as s:
        j = command(s, "create_job", agent_id="tools", instruction="", concurrency=2,
                    items=["tool time.now {}", ASK, ASK, "tool time.now {}"])["result"]["job"]
        wait_until(lambda: job(s, j["job_id"])["job"]["counts"]["running"] == 2
                   and job(s, j["job_id"])["job"]["counts"]["completed"] == 1, "the first is done")
        gone = command(s, "cancel_job", job_id=j["job_id"], reason="enough")
        equal((gone["result"]["job"]["status"], gone["result"]["job"]["counts"]["completed"]), ("cancelled", 1))
        wait_until(lambda: job(s, j["job_id"])["job"]["counts"]["running"] == 0, "its runs stop")
        end = job(s, j["job_id"])
        equal([i["status"] for i in end["items"]], ["completed", "failed", "failed", "pending"])
        equal(end["job"]["status"], "cancelled")
        fact = of_job(log_of(s, j["session_id"]), "job.cancelled", j["job_id"])
        equal([(e["payload"]["reason"], e["payload"]["counts"]["completed"]) for e in fact], [("enough", 1)])
        refused(s.http.post("/api/control/retry_job_item",
                            {"job_id": j["job_id"], "job_item_id": j["job_id"] + ".1"}), 409, "CONFLICT")


@test("a_job_that_takes_too_long_fails_also_after_a_restart", "EVT-115")
def expired():
    with Server() as s:
        j = command(s, "create_job", agent_id="tools", instruction=ASK, items=["", ""], max_runtime_ms=1500)["result"]["job"]
        s.kill()
        s.start()
        end = ended(s, j["job_id"])
        equal((end["job"]["status"], end["job"]["last_error"]["code"]), ("failed", "JOB_TIMEOUT"))
        wait_until(lambda: job(s, j["job_id"])["job"]["counts"]["running"] == 0, "its runs stop")


@test("work_of_a_task_is_delegated_to_a_job", "EVT-092")
def delegated():
    with Server() as s:
        task = command(s, "create_task", objective="dig")["result"]["task"]
        j = create(s, ["a"], task_id=task["task_id"])
        equal((j["task_id"], j["session_id"]), (task["task_id"], task["session_id"]))
        fact = of_class(log_of(s, task["session_id"]), "task.delegated")[0]["payload"]
        equal(fact["target"], {"kind": "job", "id": j["job_id"]})


@test("no_item_of_a_job_starts_again_for_a_cancelled_task", "TASK-04 CTL-50")
def held():
    with Server() as s:
        top = command(s, "create_task", objective="dig")["result"]["task"]
        task = command(s, "create_task", objective="dig", parent_task_id=top["task_id"])["result"]["task"]
        j = create(s, ["a"], agent_id="late", task_id=task["task_id"])
        equal(ended(s, j["job_id"])["job"]["status"], "failed")
        command(s, "cancel_task", task_id=top["task_id"])
        p = refused(s.http.post("/api/control/retry_job_item", {"job_id": j["job_id"], "job_item_id": j["job_id"] + ".0"}),
                    409, "CONFLICT", "/job_id")
        check(top["task_id"] in p["detail"], p)
        equal(ended(s, j["job_id"])["job"]["status"], "failed")


@test("a_thousand_items_are_each_done_once_through_kills", "CTL-46 JOB-02 FACT-09")
def killed():
    rng = random.Random(11)
    with Server() as s:
        j = create(s, [f"item {i}" for i in range(1000)], concurrency=8, job_id="big")
        equal(create(s, ["other"], job_id="big")["item_count"], 1000)
        for _ in range(8):
            at = job(s, "big", limit=1)["job"]["counts"]["completed"]
            goal = min(at + rng.choice((1, 20, 60)), 1000)
            wait_until(lambda: job(s, "big", limit=1)["job"]["counts"]["completed"] >= goal, "progress")
            s.kill()
            s.start()
        end = ended(s, "big")
        equal(end["job"]["counts"], {"pending": 0, "running": 0, "completed": 1000, "failed": 0, "reported": 0})
        items = items_of(s, "big")
        equal([(i["index"], i["attempt"], i["output"]) for i in items],
              [(n, 1, f"dig\n\nitem {n}") for n in range(1000)])
        events = log_of(s, j["session_id"])
        for name in ("job.item.started", "job.item.completed"):
            equal(sorted(e["payload"]["index"] for e in of_job(events, name, "big")), list(range(1000)), name)
        check(len(of_job(events, "job.progress", "big")) <= 102, "progress is coalesced")
        for i in rng.sample(items, 20):
            own = log_of(s, i["assigned_thread_id"])
            equal(len([e for e in own if e["type"] == "turn.submitted"]), 1)


if __name__ == "__main__":
    main()
