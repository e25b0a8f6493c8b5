#!/usr/bin/env python3
"""kill -9 at random moments while agents call models and tools of every class, ask and are answered.

UAR_TEST_AGENT_KILLS says how often (30). The service behind the HTTP tools counts: a payment, which may
not be made twice, is made at most once though the server dies around it. The provider counts too: it is
asked at most once more for each kill. Each question has one answer, each call one end, and the log keeps its
rules (the harness runs `uar check --log`). UAR_TEST_SEED repeats a run's choices."""
# time limit: 600 s, thirty kills under load take half a minute, three hundred five minutes
import collections
import http.server
import json
import os
import random
import threading

from lib import Provider, check, equal, goes_on, main, test
from lib.agents import AgentServer, definition, scripted
from lib.world import World

KILLS = int(os.environ.get("UAR_TEST_AGENT_KILLS", "30"))
SEED = os.environ.get("UAR_TEST_SEED") or f"{random.SystemRandom().getrandbits(32):x}"
CLIENTS = 6
LONG = "word " * 240
FORM = {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}}


def model(provider, name):
    return {"provider": provider, "model": name}


POLICIES = {  # agents that use a provider
    "talker": {"default": model("openai", "hello")},
    "unlucky": {"default": model("openai", "err500"), "fallbacks": [model("openai", "says:lucky")]},
    "rambler": {"default": model("small", "says:so_be_it")},
    "jury": {"pattern": "ensemble", "candidates": [model("openai", "says:a"), model("openai", "says:b")],
             "ranker": model("openai", "says:2")},
}


class Shop(http.server.ThreadingHTTPServer):
    """Counts payments by their number."""
    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.paid, self.lock = collections.Counter(), threading.Lock()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def handle(self):
        try:
            super().handle()
        except ConnectionError:
            pass  # the server died

    def do_GET(self):
        n = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(n)
        if self.path.startswith("/pay"):
            with self.server.lock:
                self.server.paid[json.loads(body)["number"]] += 1
        out = b'{"ok":true}'
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(out)))
        self.end_headers()
        self.wfile.write(out)

    do_POST = do_GET


def call(name, **args):
    return f"tool {name} {json.dumps(args)}"


def lines(rng):
    """One to four calls; `then` puts the next one into another round."""
    choices = [
        lambda: call("time.now"),
        lambda: call("look", q=rng.randrange(9)),
        lambda: call("pay", number=f"p{rng.getrandbits(64):x}"),
        lambda: call("fs.write", path=f"f{rng.randrange(99)}.txt", text="x"),
        lambda: call("ui.form.request", title="Who?", schema=FORM),
    ]
    rows = []
    for _ in range(rng.randrange(1, 5)):
        rows += [rng.choice(choices)()] + (["then"] if rng.random() < 0.5 else [])
    return "\n".join(rows)


def answer_one(world, rng):
    """Answers a question of any run; a call that may have happened is not repeated."""
    a = world.ask("GET", "/api/actions")
    if a.status != 200 or not a.json["actions"]:
        return
    action = rng.choice(a.json["actions"])
    body = {"action_id": action["action_id"]}
    if action["action_type"] == "tool_permission":
        # "deny" where its start is known: the only question that says so names no permission rule.
        body["decision"] = "deny" if "pay" in json.dumps(action) else rng.choice(("allow", "deny"))
    else:
        body |= {"decision": "submit", "payload": {"name": "Ann"}}
    a = world.ask("POST", "/api/control/respond_action", body)
    check(a.status in (200, 404, 409, 422, 503), a.body)


def act(world, rng):
    kind = rng.random()
    if kind < 0.5:
        answer_one(world, rng)
        return
    agent = "shop" if kind < 0.75 else rng.choice(("talker", "unlucky", "rambler", "rambler", "jury"))
    more = {"conversation_id": "ramble"} if agent == "rambler" else {}
    message = {"shop": lambda: lines(rng), "rambler": lambda: LONG}.get(agent, lambda: "hi")()
    run_id = world.create(rng, agent, {"agent_id": agent, "inputs": {"message": message}, **more})
    if agent != "shop":
        world.follow(run_id)


def torment(world):
    rng = random.Random(f"{world.seed}-kills")
    for _ in range(KILLS):
        goes_on()
        world.wait_progress(rng.choice((0, 1, 2, 5, 10, 20)))
        world.server.kill()
        world.server.start()
        world.risen()


def finish(world):
    """Answers until every run has ended; the records of all."""
    rng = random.Random("finish")
    left = set(world.acked)
    while left:
        goes_on()
        answer_one(world, rng)
        left = {i for i in left if world.server.record(i)["finished_at"] is None}


def check_models(world):
    """Repeated and condensed calls went on: how many of the runs did which; each request has one end."""
    seen = collections.Counter()
    for run_id in world.acked:
        log = [e.data for e in world.server.session_events(run_id) if e.data.get("run_id") == run_id]
        kinds = collections.Counter(e["type"] for e in log)
        asked = [e["model_request_id"] for e in log if e["type"] == "model.requested"]
        ended = [e["model_request_id"] for e in log if e["type"] in ("model.completed", "model.failed")]
        equal(sorted(asked), sorted(ended), run_id)
        check(kinds["context.compaction.completed"] + kinds["context.compaction.failed"]
              == kinds["context.compaction.started"], run_id, kinds)
        seen.update(k for k in ("routing.fallback.applied", "context.compaction.completed") if kinds[k])
        done = [e["payload"] for e in log if e["type"] == "model.completed"]
        if world.acked[run_id]["kind"] == "jury":
            equal(len(done), 3, "two candidates and a ranker, each finished once")
    return seen


def check_calls(world):
    """Each call that was started has one end; returns how many."""
    ends = collections.Counter()
    started = set()
    for run_id in world.acked:
        for e in world.server.session_events(run_id):
            if e.data["type"] == "tool.started":
                started.add(e.data["tool_call_id"])
            if e.data["type"] in ("tool.result", "tool.failed"):
                ends[e.data["tool_call_id"]] += 1
    equal({i: ends[i] for i in started if ends[i] != 1}, {}, "ends of calls")
    return len(started)


@test("agents_survive_kill_9", "")
def survive():
    with Shop() as shop, Provider() as p:
        tools = {"http": [
            {"name": "look", "url": shop.url + "/look"},
            {"name": "pay", "method": "POST", "url": shop.url + "/pay", "ask": False, "effect": "once"}]}
        agents = (scripted("shop", tools),
                  *(definition(name, policy={"provider": policy}) for name, policy in POLICIES.items()))
        table = {"small": {"dialect": "openai_chat", "base_url": p.url + "/v1", "key_env": "OPENAI_API_KEY",
                           "models": {"*": {"context_tokens": 500}}}}
        with AgentServer(*agents, env={"UAR_OUTBOUND_ALLOW": "127.0.0.1", "UAR_PROVIDERS": json.dumps(table),
                                       "UAR_MODEL_RETRY_SECONDS": "5ms", **p.env("hello")}) as server:
            world = World(server, SEED)
            threads = [threading.Thread(target=world.client, args=(n, act), daemon=True) for n in range(CLIENTS)]
            for t in threads:
                t.start()
            torment(world)
            world.stopping = True
            for t in threads:
                t.join()
            if world.faults:
                raise world.faults[0]
            finish(world)
            twice = {k: n for k, n in shop.paid.items() if n > 1}
            equal(twice, {}, "paid twice")
            calls = check_calls(world)
            talks = sum(1 for a in world.acked.values() if a["kind"] == "talker")
            asked = p.stats()["models"].get("hello", 0)
            check(talks <= asked <= talks + KILLS * CLIENTS, f"{talks} answers, {asked} requests")
            models = check_models(world)
            print(f"# {KILLS} kills, {len(world.acked)} runs, {calls} calls, {sum(shop.paid.values())} payments, "
                  f"{models['routing.fallback.applied']} other models, {models['context.compaction.completed']} summaries; seed {SEED}",
                  flush=True)


main()
