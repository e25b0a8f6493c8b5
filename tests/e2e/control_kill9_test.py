#!/usr/bin/env python3
"""kill -9 at random moments while clients send commands of the control plane.

UAR_TEST_CONTROL_KILLS says how often (40). Tasks with edges, queues, intents that reach the children of a
task and questions are under way. Every command has a key and is repeated until it is answered. What was answered
is in the log once, a repetition brings the same outcome, tasks, queues and questions are after a kill what they
were before it, and the log keeps its rules (the harness runs `uar check --log`). UAR_TEST_SEED repeats a run's
choices."""
# time limit: 600 s, forty kills under load take half a minute, four hundred five minutes
import json
import os
import random
import threading

from lib import Server, check, equal, goes_on, main, test, wait_until
from lib.world import World

KILLS = int(os.environ.get("UAR_TEST_CONTROL_KILLS", "40"))
SEED = os.environ.get("UAR_TEST_SEED") or f"{random.SystemRandom().getrandbits(32):x}"
CLIENTS = 8
REFUSALS = (404, 409, 413, 422, 501)
ASK = 'tool fs.write {"path": "a.txt", "text": "x"}'


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


def submit(family, rng, agent="echo", message=None):
    body = {"agent_id": agent, "message": message or "m" * rng.choice((3, 3000)), "thread_id": family.thread}
    if family.session:
        body["session_id"] = family.session
    return "submit_turn", body


def answer(world, rng):
    """An answer to one of the questions that are open."""
    a = world.ask("GET", "/api/actions")
    open_ones = a.json["actions"] if a.status == 200 else []
    return "respond_action", {"action_id": rng.choice(open_ones)["action_id"] if open_ones else "none.1",
                              "decision": rng.choice(("allow", "deny", "allow_for_session"))}


def any_command(world, family, rng):
    """(name, body): of a task, an edge, a turn, a queue or a question."""
    task, other = pick(rng, family.tasks), pick(rng, family.tasks)
    turn = {"thread_id": family.thread, "queued_turn_id": pick(rng, family.queued)}
    choices = [
        lambda: make_task(family, rng), lambda: make_task(family, rng),
        lambda: submit(family, rng), lambda: submit(family, rng), lambda: submit(family, rng, "tools", ASK),
        lambda: answer(world, rng), lambda: answer(world, rng),
        lambda: ("update_task", {"task_id": task, "title": f"n{rng.randrange(9)}"}),
        lambda: ("append_task_progress", {"task_id": task, "progress": rng.random()}),
        lambda: ("start_task", {"task_id": task}),
        lambda: ("retry_task", {"task_id": task}),
        lambda: ("pause_task", {"task_id": task, "propagation": propagation(rng)}),
        lambda: ("resume_task", {"task_id": task, "propagation": propagation(rng)}),
        lambda: ("cancel_task", {"task_id": task, "propagation": propagation(rng)}),
        lambda: ("complete_task", {"task_id": task}),
        lambda: ("fail_task", {"task_id": task, "message": "no"}),
        lambda: ("link_tasks", {"from": task, "to": other, "kind": rng.choice(("blocks", "blocked_by", "parent", "child"))}),
        lambda: ("unlink_tasks", {"from": task, "to": other, "kind": rng.choice(("blocks", "parent"))}),
        lambda: ("pause_queue", {"thread_id": family.thread}),
        lambda: ("resume_queue", {"thread_id": family.thread}),
        lambda: ("remove_queued_turn", turn),
        lambda: ("promote_queued_turn", turn),
        lambda: ("edit_queued_turn", {**turn, "message": "changed"}),
        lambda: ("interrupt_turn", {"session_id": family.session or "none", "thread_id": family.thread}),
    ]
    return rng.choice(choices)()


def send(world, family, rng):
    name, body = any_command(world, family, rng)
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


def all_pages(server, path, member):
    items, after = [], ""
    while True:
        page = server.http.get(f"{path}?limit=100{after}").json
        items += page[member]
        if not page.get("next_cursor"):
            return items
        after = "&cursor=" + page["next_cursor"]


def standing(server, families):
    """Tasks with their attempts and edges, queues and questions, as they are read."""
    tasks = {}
    for family in families:
        for task_id in family.tasks:
            a = server.http.get("/api/tasks/" + task_id)
            if a.status == 200:
                tasks[task_id] = {k: v for k, v in a.json["task"].items() if k != "through_sequence"}
    queues = {}
    for family in families:
        if family.session:
            model = server.http.get(f"/api/sessions/{family.session}/threads/{family.thread}").json["thread"]
            queues[family.thread] = model["queued_turns"]
    actions = sorted(a["action_id"] for a in all_pages(server, "/api/actions", "actions"))
    return {"tasks": tasks, "queues": queues, "actions": actions}


def check_graph(tasks):
    """Nothing waits for what is over, and each task names the top of its tree."""
    over = ("completed", "failed", "lost", "cancelled", "timed_out", "archived")
    for t in tasks.values():
        waits = [e["source_id"] for e in t["relationships"] if (e["kind"], e["status"], e["target_id"]) == (
            "blocks", "active", t["task_id"]) and tasks[e["source_id"]]["status"] not in over]
        check(0 <= t["blockers"] <= len(waits), t, waits)
        top = t
        for _ in range(64):
            top = tasks.get(top["parent_task_id"], top)
        equal((t["root_task_id"], top["parent_task_id"]), (top["task_id"], None), t)


def check_standing(server, families):
    """Nobody asks for anything any more: what was begun comes to rest, and a kill changes nothing of it."""
    def at_work():
        return [r for r in server.http.get("/api/runs?status=running&limit=100").json["runs"] if not r.get("actions")]
    wait_until(lambda: not at_work(), "all that is at work ends")
    before = standing(server, families)
    check_graph(before["tasks"])
    server.kill()
    server.start()
    server.ready()
    after = standing(server, families)
    for what, was in before.items():
        equal(json.dumps(after[what], sort_keys=True), json.dumps(was, sort_keys=True), what)
    return {k: len(v) for k, v in before.items()}


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
        stood = check_standing(server, families)
        answers = sum(len(f.answers) for f in families)
        print(f"# {KILLS} kills, {answers} commands answered, {named} events, {stood}; seed {SEED}", flush=True)


main()
