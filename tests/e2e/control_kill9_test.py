#!/usr/bin/env python3
"""kill -9 at random moments while clients send commands of the control plane.

UAR_TEST_CONTROL_KILLS says how often (40). Every command has a key and is repeated until it is
answered. What was answered is in the log once, a repetition brings the same outcome, and the log
keeps its rules (the harness runs `uar check --log`). UAR_TEST_SEED repeats a run's choices."""
# time limit: 600 s, forty kills under load take half a minute, four hundred five minutes
import json
import os
import random
import threading

from lib import Server, check, equal, goes_on, main, test
from lib.world import World

KILLS = int(os.environ.get("UAR_TEST_CONTROL_KILLS", "40"))
SEED = os.environ.get("UAR_TEST_SEED") or f"{random.SystemRandom().getrandbits(32):x}"
CLIENTS = 8
REFUSALS = (404, 409, 413, 422, 501)


class Family:
    """What one client has made, and the answers it was given."""

    def __init__(self, number):
        self.number, self.tasks, self.queued, self.answers = number, [], [], []
        self.session = None
        self.thread = f"talk-{number}"


def pick(rng, tasks):
    return rng.choice(tasks) if tasks else "none"


def propagation(rng):
    return rng.choice(("none", "children", "all"))


def make_task(family, rng):
    task_id = f"t{family.number}-{len(family.tasks)}"
    body = {"task_id": task_id, "objective": "dig", "agent_id": "echo", "input": {"message": "dig"}}
    if family.tasks and rng.random() < 0.6:
        body["parent_task_id"] = rng.choice(family.tasks)
    family.tasks.append(task_id)
    return "create_task", body


def submit(family, rng):
    body = {"agent_id": "echo", "message": "m" * rng.choice((3, 3000)), "thread_id": family.thread}
    if family.session:
        body["session_id"] = family.session
    return "submit_turn", body


def any_command(family, rng):
    """(name, body): of a task, an edge, a turn or a queue."""
    task, other = pick(rng, family.tasks), pick(rng, family.tasks)
    turn = {"thread_id": family.thread, "queued_turn_id": pick(rng, family.queued)}
    choices = [
        lambda: make_task(family, rng), lambda: make_task(family, rng),
        lambda: submit(family, rng), lambda: submit(family, rng),
        lambda: ("update_task", {"task_id": task, "title": f"n{rng.randrange(9)}"}),
        lambda: ("append_task_progress", {"task_id": task, "progress": rng.random()}),
        lambda: ("start_task", {"task_id": task}),
        lambda: ("retry_task", {"task_id": task}),
        lambda: ("pause_task", {"task_id": task, "propagation": propagation(rng)}),
        lambda: ("resume_task", {"task_id": task, "propagation": propagation(rng)}),
        lambda: ("cancel_task", {"task_id": task, "propagation": propagation(rng)}),
        lambda: ("complete_task", {"task_id": task}),
        lambda: ("fail_task", {"task_id": task, "message": "no"}),
        lambda: ("link_tasks", {"from": task, "to": other, "kind": rng.choice(("blocks", "blocked_by"))}),
        lambda: ("unlink_tasks", {"from": task, "to": other, "kind": "blocks"}),
        lambda: ("pause_queue", {"thread_id": family.thread}),
        lambda: ("resume_queue", {"thread_id": family.thread}),
        lambda: ("remove_queued_turn", turn),
        lambda: ("promote_queued_turn", turn),
        lambda: ("edit_queued_turn", {**turn, "message": "changed"}),
        lambda: ("interrupt_turn", {"session_id": family.session or "none", "thread_id": family.thread}),
    ]
    return rng.choice(choices)()


def send(world, family, rng):
    name, body = any_command(family, rng)
    body["idempotency_key"] = f"k{rng.getrandbits(64):x}"
    a = world.ask("POST", f"/api/control/{name}", body)
    if a.status in REFUSALS or a.status == 200 and not a.json["event_ids"]:
        return  # nothing happened
    equal(a.status, 200, f"{name} {body} {a.body}")
    family.answers.append((name, body, a.json))
    if name == "submit_turn":
        family.session = a.json["result"]["session_id"]
        if a.json["result"]["status"] == "queued":
            family.queued.append(a.json["result"]["turn_id"])


def check_repetition(world, family, rng):
    """The first outcome again, before and after a kill."""
    if not family.answers:
        return
    name, body, first = rng.choice(family.answers)
    again = world.server.http.post(f"/api/control/{name}", body)
    equal(again.status, 200, f"{name} {again.body}")
    equal(json.dumps(again.json, sort_keys=True), json.dumps(first, sort_keys=True), name)


def torment(world, families, kills):
    rng = random.Random(f"{world.seed}-kills")
    for _ in range(kills):
        goes_on()
        world.wait_progress(rng.choice((0, 1, 2, 5, 10, 30, 60)))
        world.server.kill()
        world.server.start()
        for family in families:
            check_repetition(world, family, rng)
        world.risen()


def check_events(server, families):
    """Every event that an answer named is in the log, once."""
    named = [i for f in families for _, _, answer in f.answers for i in answer["event_ids"]]
    sessions = {a["result"]["session_id"] for f in families for _, _, a in f.answers if "session_id" in a["result"]}
    sessions |= {t["session_id"] for f in families for _, _, a in f.answers for t in [a["result"].get("task")] if t}
    stored = []
    for session_id in sessions:
        with server.session_stream(session_id, stored=1) as s:
            stored += [e.data["event_id"] for e in s]
    equal(len(stored), len(set(stored)))
    missing = set(named) - set(stored)
    check(not missing, f"{len(missing)} of {len(named)} events were answered and are gone")
    return len(named)


@test("commands_survive_kill_9", "VAL-05 VAL-06 CTL-45")
def survive():
    families = [Family(n) for n in range(CLIENTS)]
    with Server() as server:
        world = World(server, SEED)
        threads = [threading.Thread(target=world.client, args=(f.number, lambda w, rng, f=f: send(w, f, rng)), daemon=True)
                   for f in families]
        for t in threads:
            t.start()
        torment(world, families, KILLS)
        world.stopping = True
        for t in threads:
            t.join()
        if world.faults:
            raise world.faults[0]
        named = check_events(server, families)
        answers = sum(len(f.answers) for f in families)
        print(f"# {KILLS} kills, {answers} commands answered, {named} events; seed {SEED}", flush=True)


main()
