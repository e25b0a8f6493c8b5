#!/usr/bin/env python3
"""Workflows: graphs that are checked, loaded with the agents, and run with the events of any run."""
# time limit: 300 s, a server is killed at each step of a run
import collections
import json
import os
import random
import subprocess

from lib import ROOT, Server, check, check_session, equal, main, refused, run_uar, test, wait_until
from lib.agents import AgentServer
from lib.client import Client
from lib.payloads import check_payload
from lib.services import Service

ENV = {"UAR_OUTBOUND_ALLOW": "127.0.0.1"}
TEXT = {"type": "object", "required": ["message"], "additionalProperties": False,
        "properties": {"message": {"type": "string"}}}


def edge(a, b):
    """`start.message` to `answer`."""
    ends = [dict(zip(("node", "port"), e.split("."))) for e in (a, b)]
    return {"from": ends[0], "to": ends[1]}


def flow(name, nodes, edges, inputs=None, **more):
    """Nodes as {id: (type, settings)} between `start` and `end`."""
    nodes = {"start": ("input", {}), **nodes, "end": ("output", {})}
    return {"version": "1.0", "kind": "agent", "id": name, "runtime": {"entry": "workflow.run"},
            "schemas": {"inputs": inputs or TEXT},
            "workflow": {"nodes": [{"id": i, "type": t, "config": c} for i, (t, c) in nodes.items()],
                         "edges": [edge(*e.split(" ")) for e in edges]}, **more}


def log_of(s, run_id):
    log = s.session_events(run_id)
    check_session(log)
    for e in log:
        check_payload(e.data)
    return [e.data for e in log if e.data.get("run_id") == run_id]


def changes(log):
    """What was recorded of nodes: (id, status)."""
    told = [e["payload"].get("metadata", {}).get("workflow_node") for e in log if e["type"] == "run.status"]
    return [(n["id"], n["status"]) for n in told if n]


def text(log):
    return "".join(e["payload"].get("text", "") for e in log if e["type"] == "model.delta")


def asked(s, run_id):
    return wait_until(lambda: s.record(run_id).get("actions"), "a question")[0]


def answer(s, run_id, **values):
    body = {"action_id": asked(s, run_id)["action_id"], "decision": "submit", "payload": values}
    a = s.http.post("/api/control/respond_action", body)
    equal(a.status, 200, a.body)


ECHO = flow("greet", {"answer": ("agent", {"agent": "echo", "message": "Say {{/in}}"})},
            ["start.message answer", "answer end"])


@test("two_nodes_run_with_the_events_of_any_run", "WF-03 ART-06")
def two_nodes():
    with AgentServer(ECHO) as s:
        listed = [a for a in s.http.get("/api/agents").json["agents"] if a["agent_id"] == "greet"]
        equal([(a["entry"], a["runnable"]) for a in listed], [("workflow.run", True)])
        run = s.create("greet", "hello")
        log = log_of(s, run)
        equal(s.record(run)["status"], "succeeded")
        equal(text(log), "Say hello")
        equal(changes(log), [("start", "completed"), ("answer", "running"), ("answer", "completed"), ("end", "completed")])
        kinds = [e["type"] for e in log]
        for kind in ("turn.started", "task.started", "tool.started", "tool.result", "turn.completed", "task.completed"):
            check(kind in kinds, kind, kinds)
        equal([e["payload"]["entry"] for e in log if e["type"] == "turn.started"], ["workflow.run"])
        check("model.requested" not in kinds, kinds)
        refused(s.http.post("/api/runs", {"agent_id": "greet", "inputs": {"message": "x", "more": 1}}), 400, "VALIDATION_ERROR")
        listed = run_uar("agents", "--url", s.url, "--token", s.token)
        check("greet" in listed.stdout, listed.stdout)


@test("a_condition_leads_one_way_and_values_are_made", "WF-03")
def branch():
    number = {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}
    f = flow("size", {
        "big": ("condition", {"all": [{"pointer": "/inputs/n", "op": "greater", "value": 9}]}),
        "yes": ("transform", {"value": {"big": "{{/inputs/n}}", "words": "it is {{/inputs/n}}"}}),
        "no": ("agent", {"agent": "echo", "message": "small"}),
        "both": ("join", {})},
        ["start big", "big.yes yes", "big.no no", "yes both", "no both", "both end"], number)
    with AgentServer(f) as s:
        log = log_of(s, s.create("size", None, inputs={"n": 12}))
        equal(json.loads(text(log)), [{"big": 12, "words": "it is 12"}])
        check(("no", "skipped") in changes(log), changes(log))
        log = log_of(s, s.create("size", None, inputs={"n": 2}))
        equal(json.loads(text(log)), ["small"])
        check(("yes", "skipped") in changes(log), changes(log))


@test("a_loop_does_the_same_for_each_and_keeps_their_order", "WF-03")
def loop():
    words = {"type": "object", "required": ["words"], "properties": {"words": {"type": "array"}}}
    f = flow("each", {
        "each": ("loop", {"do": "agent", "at_once": 3, "with": {"agent": "echo", "message": "{{/index}} {{/item}}"}})},
        ["start.words each", "each end"], words)
    with AgentServer(f) as s:
        log = log_of(s, s.create("each", None, inputs={"words": list("abcdefg")}))
        equal(json.loads(text(log)), [f"{i} {w}" for i, w in enumerate("abcdefg")])


@test("a_person_approves_in_the_middle_or_declines", "WF-03")
def approval():
    nodes = {"may": ("approval", {"title": "Send {{/in}}?"}), "send": ("agent", {"agent": "echo"})}
    stops = flow("stops", nodes, ["start.message may", "may send", "send end"])
    goes = flow("goes", {**nodes, "sad": ("transform", {"value": "not sent"})},
                ["start.message may", "may send", "send end", "may.declined sad", "sad end"])
    with AgentServer(stops, goes) as s:
        run = s.create("goes", "it")
        action = asked(s, run)
        check("Send it?" in json.dumps(action), action)
        s.restart()
        answer(s, run, decision="approve")
        equal(text(log_of(s, run)), "it")
        run = s.create("goes", "it")
        answer(s, run, decision="decline")
        equal(text(log_of(s, run)), "not sent")
        run = s.create("stops", "it")
        answer(s, run, decision="decline")
        record = s.finish(run)
        equal((record["status"], record["error"]["code"]), ("failed", "NODE_FAILED"))
        check("node may" in record["error"]["message"], record["error"])


@test("a_form_gives_values_and_a_wait_takes_its_time", "WF-03")
def form_and_wait():
    f = flow("form", {
        "pause": ("wait", {"seconds": 0.3}),
        "ask": ("form", {"title": "Who?", "schema": {"type": "object", "required": ["name"],
                                                      "properties": {"name": {"type": "string"}}}}),
        "greet": ("transform", {"value": "Hello {{/in/name}}"})},
        ["start pause", "pause ask", "ask greet", "greet end"])
    with AgentServer(f) as s:
        run = s.create("form", "x")
        answer(s, run, name="Ann")
        log = log_of(s, run)
        equal(text(log), "Hello Ann")
        equal(changes(log)[:3], [("start", "completed"), ("pause", "waiting"), ("pause", "completed")])
        check("task.waiting" in [e["type"] for e in log])


def shop(service, **more):
    """Tools that count what they are asked."""
    return {"http": [{"name": n, "description": n, "url": f"{service.url}/{n}", "method": "POST", "effect": effect, "ask": False,
                      "input_schema": {"type": "object", "properties": {"n": {"type": "string"}}}, **more}
                     for n, effect in (("pay", "once"), ("put", "idempotent"), ("look", "read_only"))]}


def tool(name, **more):
    return ("tool", {"tool": "http:" + name, "arguments": {"n": "{{/inputs/message}}"}, **more})


@test("a_failure_names_its_node_unless_an_edge_takes_it", "WF-03")
def failure():
    with Service() as service:
        bad = {"http": [{"name": "bad", "description": "x", "url": service.url + "/status/500",
                         "input_schema": {"type": "object"}}]}
        plain = flow("plain", {"bad": ("tool", {"tool": "http:bad"})}, ["start bad", "bad end"], tools=bad)
        taken = flow("taken", {"bad": ("tool", {"tool": "http:bad", "on_error": "port"}),
                               "say": ("transform", {"value": "caught: {{/in/category}}"})},
                     ["start bad", "bad end", "bad.error say", "say end"], tools=bad)
        with AgentServer(plain, taken, env=ENV) as s:
            record = s.finish(s.create("plain", "x"))
            equal((record["status"], record["error"]["code"]), ("failed", "NODE_FAILED"))
            check("node bad: " in record["error"]["message"], record)
            log = log_of(s, s.create("taken", "x"))
            check(text(log).startswith("caught: "), text(log))


@test("an_answer_of_an_agent_is_whole_or_fails_its_node", "WF-03")
def long_answers():
    nodes = {n: ("agent", {"agent": "late"}) for n in "abcdef"}
    f = flow("long", nodes, [e for n in nodes for e in (f"start.message {n}", f"{n} end")])
    late = flow("late", {"nap": ("wait", {"seconds": 1})}, ["start.message nap", "nap end"])
    one = flow("one", {"say": ("agent", {"agent": "echo"})}, ["start.message say", "say end"])
    with AgentServer(f, late, one) as s:
        run = s.create("long", "x" * 60000)  # together more than one wait tells
        wait_until(lambda: len(of_agent(s, "late")) == 6, "all are at work")
        s.kill()
        s.start()
        log = log_of(s, run)
        equal(text(log), "x" * 60000)
        told = [e["payload"]["metadata"]["workflow_node"] for e in log if "workflow_node" in e["payload"].get("metadata", {})]
        equal([n["output_bytes"] for n in told if n["type"] == "agent" and n["status"] == "completed"], [60002] * 6)
        equal(text(log_of(s, s.create("one", "x" * 65536))), "x" * 65536)
        record = s.finish(s.create("one", "x" * 65537))
        equal((record["status"], record["error"]["code"]), ("failed", "NODE_FAILED"))
        check("65537 bytes" in record["error"]["message"], record["error"])


@test("policies_and_approvals_hold_for_the_tools_of_nodes", "WF-03 TOOL-05")
def policy():
    with Service() as service:
        asks = flow("asks", {"pay": tool("pay")}, ["start pay", "pay end"], tools=shop(service),
                    policy={"tools": {"ask": ["http:pay"]}})
        denies = flow("denies", {"pay": tool("pay")}, ["start pay", "pay end"], tools=shop(service),
                      policy={"tools": {"deny": ["http:pay"]}})
        with AgentServer(asks, denies, env=ENV) as s:
            run = s.create("asks", "p1")
            action = asked(s, run)
            equal(action["action_type"], "tool_permission")
            equal(service.seen, [])
            equal(s.http.post("/api/control/respond_action",
                              {"action_id": action["action_id"], "decision": "allow"}).status, 200)
            equal(s.finish(run)["status"], "succeeded")
            equal(len(service.seen), 1)
            equal(s.finish(s.create("denies", "p2"))["status"], "failed")
            equal(len(service.seen), 1)


@test("what_is_finished_is_not_repeated_after_kills", "WF-03")
def kills():
    rng = random.Random(os.environ.get("UAR_TEST_SEED", "flow"))
    with Service() as service:
        f = flow("long", {
            "look": tool("look"), "pay": tool("pay"), "sub": ("agent", {"agent": "echo"}),
            "put": tool("put"), "all": ("join", {})},
            ["start look", "look pay", "pay sub", "start put", "sub all", "put all", "all end"], tools=shop(service))
        with AgentServer(f, env=ENV) as s:
            for round_ in range(12):
                name = f"p{round_}"
                run = s.create("long", name)
                seen = iter(range(rng.randrange(1, 30)))
                with s.stream(run) as stream:
                    stream.until(lambda e: e.type == "RunDone" or next(seen, None) is None)
                s.kill()
                s.start()

                def over():
                    r = s.record(run)
                    for a in r.get("actions") or []:  # it may have happened: it is not repeated
                        s.http.post("/api/control/respond_action", {"action_id": a["action_id"], "decision": "deny"})
                    return r["finished_at"]
                wait_until(over, "the run ends")
                paid = [x for x in service.seen if x["path"] == "/pay" and json.loads(x["body"]).get("n") == name]
                check(len(paid) <= 1, name, paid)
                log = log_of(s, run)
                ends = collections.Counter(e["tool_call_id"] for e in log if e["type"] in ("tool.result", "tool.failed"))
                check(all(n == 1 for n in ends.values()), ends)
                twice = [c for c, n in collections.Counter(changes(log)).items() if n > 1]
                equal(twice, [])


def of_agent(s, name):
    return s.http.get(f"/api/runs?agent_id={name}").json["runs"]


@test("a_cancel_reaches_what_is_at_work", "WF-03")
def cancel():
    slow = flow("slow", {"child": ("agent", {"agent": "nap"})}, ["start.message child", "child end"])
    nap = flow("nap", {"nap": ("wait", {"seconds": 3000})}, ["start nap", "nap end"])
    with AgentServer(slow, nap) as s:
        run = s.create("slow", "x")
        wait_until(lambda: [r for r in of_agent(s, "nap") if r["engine_status"] == "waiting_resource"], "the child waits")
        s.cancel(run)
        equal(s.finish(run)["status"], "canceled")
        child = of_agent(s, "nap")[0]["run_id"]
        equal(s.finish(child)["status"], "canceled")


@test("a_failure_of_one_branch_ends_the_agents_of_the_others", "WF-03")
def failed_branch():
    nap = flow("nap", {"nap": ("wait", {"seconds": 3000})}, ["start nap", "nap end"])
    f = flow("both", {"child": ("agent", {"agent": "nap"}), "may": ("approval", {"title": "Go on?"}), "all": ("join", {})},
             ["start.message child", "start may", "child all", "may all", "all end"])
    with AgentServer(nap, f) as s:
        run = s.create("both", "x")
        wait_until(lambda: [r for r in of_agent(s, "nap") if r["engine_status"] == "waiting_resource"], "the child waits")
        answer(s, run, decision="decline")
        equal(s.finish(run)["status"], "failed")
        equal(s.finish(of_agent(s, "nap")[0]["run_id"])["status"], "canceled")


@test("an_output_has_the_form_that_is_promised", "WF-03")
def outputs():
    f = flow("typed", {"make": ("transform", {"value": {"n": "{{/inputs/message}}"}})}, ["start make", "make end"])
    f["schemas"]["outputs"] = {"type": "object", "properties": {"n": {"const": "right"}}}
    with AgentServer(f) as s:
        equal(s.finish(s.create("typed", "right"))["status"], "succeeded")
        record = s.finish(s.create("typed", "wrong"))
        equal((record["status"], record["error"]["code"]), ("failed", "OUTPUT_INVALID"))


def put(s, f, status=201):
    a = s.http.send("PUT", "/api/workflows/" + f["id"], f)
    equal(a.status, status, a.body)
    return a.json


def graph(s, run_id):
    a = s.http.get(f"/api/runs/{run_id}/workflow")
    equal(a.status, 200, a.body)
    return a.json


@test("one_of_each_kind_is_listed_after_start", "CFG-05 WF-02 WF-01")
def listed():
    with AgentServer(ECHO, {"version": "1.0", "kind": "agent", "id": "plain", "runtime": {"entry": "llm.chat"}}) as s:
        one, = s.http.get("/api/workflows").json["workflows"]
        equal({k: one[k] for k in ("workflow_id", "source", "file", "nodes", "edges")},
              {"workflow_id": "greet", "source": "file", "file": "greet.json", "nodes": 3, "edges": 2})
        kinds = {a["agent_id"]: a.get("kind") for a in s.http.get("/api/agents").json["agents"]}
        equal((kinds["greet"], kinds["plain"]), ("workflow", None))
        types = {t["type"]: t for t in s.http.get("/api/workflows-node-types").json["node_types"]}
        equal(len(types), 12)
        equal([p["type"] for p in types["loop"]["inputs"]], ["list"])
        whole = s.http.get("/api/workflows/greet").json
        equal(whole["definition"]["workflow"], ECHO["workflow"])
        refused(s.http.get("/api/workflows/plain"), 404, "NOT_FOUND")
        refused(s.http.send("DELETE", "/api/workflows/plain"), 404, "NOT_FOUND")
        s.define({**ECHO, "metadata": {"title": "Anew"}})
        wait_until(lambda: s.http.get("/api/workflows/greet").json["title"] == "Anew", "the file is read again")
        s.define({**ECHO, "workflow": {"nodes": [], "edges": []}})
        broken = wait_until(lambda: s.http.get("/api/agents").json["broken"], "the file is refused")
        check("/workflow/nodes" in broken[0]["error"] and "no input" in broken[0]["error"], broken)


@test("workflows_are_kept_with_versions_and_a_run_goes_on_with_its_own", "WF-01 WF-02 WF-03")
def versions():
    f = flow("kept", {"may": ("approval", {"title": "Go on?"}), "say": ("transform", {"value": "first"})},
             ["start may", "may say", "say end"])
    with Server() as s:
        first = put(s, f)
        equal((first["workflow_id"], first["version"], first["changed"]), ("kept", 1, True))
        equal(put(s, f, 200)["changed"], False)
        run = s.create("kept", "x")
        asked(s, run)
        f["workflow"]["nodes"][2]["config"]["value"] = "second"
        equal(put(s, f, 200)["version"], 2)
        history = s.http.get("/api/workflows/kept/versions").json
        equal([v["version"] for v in history["versions"]], [2, 1])
        old = s.http.get("/api/workflows/kept?version=1").json["definition"]
        equal(old["workflow"]["nodes"][2]["config"]["value"], "first")
        equal(s.http.send("DELETE", "/api/workflows/kept").status, 200)
        s.restart()
        answer(s, run, decision="approve")
        equal(text(log_of(s, run)), "first")
        equal(graph(s, run)["revision"], first["revision"])
        refused(s.http.post("/api/runs", {"agent_id": "kept", "inputs": {"message": "x"}}), 404, "NOT_FOUND")
        refused(s.http.send("PUT", "/api/workflows/kept", {**f, "runtime": {"entry": "llm.chat"}}), 400, "VALIDATION_ERROR")


@test("the_graph_of_a_run_says_how_each_node_stands", "WF-03")
def live():
    words = {"type": "object", "required": ["words"], "properties": {"words": {"type": "array"}}}
    f = flow("live", {
        "big": ("condition", {"all": [{"pointer": "/inputs/words", "op": "empty"}]}),
        "each": ("loop", {"do": "agent", "with": {"agent": "echo", "message": "{{/item}}"}}),
        "may": ("approval", {"title": "Go on?"})},
        ["start.words each", "start big", "big.yes end", "each may", "may end"], words)
    with AgentServer(f) as s:
        run = s.create("live", None, inputs={"words": ["a", "b"]})
        action = asked(s, run)
        g = graph(s, run)
        nodes = {n["id"]: n for n in g["nodes"]}
        equal({i: n["status"] for i, n in nodes.items()},
              {"start": "completed", "big": "completed", "each": "completed", "may": "waiting", "end": "pending"})
        equal(nodes["may"]["action_id"], action["action_id"])
        equal(nodes["big"]["taken"], ["no"])
        items = nodes["each"]["items"]
        equal([items[k] for k in ("total", "completed", "failed", "running")], [2, 2, 0, 0])
        check(all(i["child"]["subagent_id"] and i["events"]["first"] for i in items["list"]), items)
        equal([e["taken"] for e in g["edges"]], [True, True, False, True, None])
        child = s.record(items["list"][0]["child"]["run_id"])
        equal(child["agent_id"], "echo")
        s.cancel(run)
        s.finish(run)
        g = graph(s, run)
        equal((g["status"], [n["status"] for n in g["nodes"] if n["id"] == "may"]), ("cancelled", ["cancelled"]))
        refused(s.http.get(f"/api/runs/{s.create()}/workflow"), 404, "NOT_FOUND")


WRONG = [  # code, pointer, how the graph is spoilt
    ("cycle", "/workflow/edges/", lambda w: w["edges"].append(edge("answer", "answer"))),
    ("dangling_edge", "/workflow/edges/2/to/node", lambda w: w["edges"].append(edge("answer", "nobody"))),
    ("node_type", "/workflow/nodes/1/type", lambda w: w["nodes"][1].update(type="agnt")),
    ("no_edge_in", "/workflow/nodes/1", lambda w: w["edges"].pop(0)),
    ("wrong_type", "/workflow/edges/0", lambda w: w["nodes"][1].update(type="loop", config={"do": "model", "with": {"prompt": "x"}})),
    ("settings", "/workflow/nodes/1/config", lambda w: w["nodes"][1].update(config={})),
    ("unknown_value", "/workflow/nodes/1/config/message", lambda w: w["nodes"][1]["config"].update(message="{{/nodes/x/out}}")),
]


@test("a_wrong_graph_is_refused_with_line_and_pointer", "WF-04")
def wrong():
    with Server() as s:
        for code, pointer, spoil in WRONG:
            f = json.loads(json.dumps(ECHO))
            spoil(f["workflow"])
            a = s.http.post("/api/workflows-check", {"definition": f}).json
            problem = next(p for p in a["problems"] if p["severity"] == "error")
            equal((a["good"], problem["code"]), (False, code))
            check(problem["pointer"].startswith(pointer), problem)
            check(problem["next_step"], problem)
            refused(s.http.send("PUT", "/api/workflows/greet", f), 400, "VALIDATION_ERROR", problem["pointer"])
            path = os.path.join(s.data, "wrong.json")
            with open(path, "w") as out:
                json.dump(f, out, indent=1)
            told = run_uar("workflow", "check", path)
            lines = open(path).read().split("\n")
            first = next(t for t in told.stdout.split("\n") if problem["pointer"] in t)
            equal(told.returncode, 1)
            check(1 < int(first.split(":")[1].split(" ")[0]) <= len(lines), first)
        a = s.http.post("/api/workflows-check", {"definition": ECHO}).json
        equal((a["good"], a["problems"]), (True, []))
        f = json.loads(json.dumps(ECHO))
        f["workflow"]["nodes"][1]["config"]["agent"] = "nobody"
        a = s.http.post("/api/workflows-check", {"definition": f}).json
        equal((a["good"], [(p["severity"], p["code"]) for p in a["problems"]]), (True, [("warning", "unknown_agent")]))
        refused(s.http.post("/api/workflows-check", {"definition": 1}), 400, "VALIDATION_ERROR", "/definition")


@test("each_route_of_workflows_asks_for_its_scope_and_owner", "WF-02 WF-03")
def scopes():
    with Server() as s:
        put(s, ECHO)
        run = s.create("greet", "x")
        s.finish(run)
        routes = [("GET", "/api/workflows", None, 200), ("GET", "/api/workflows-node-types", None, 200),
                  ("GET", "/api/workflows/greet", None, 200), ("GET", "/api/workflows/greet/versions", None, 200),
                  ("POST", "/api/workflows-check", {"definition": ECHO}, 200), ("PUT", "/api/workflows/greet", ECHO, 403),
                  ("DELETE", "/api/workflows/greet", None, 403), ("GET", f"/api/runs/{run}/workflow", None, 200)]
        own = s.http.post("/api/admin/credentials", {"user": "local", "scopes": ["read"]})
        other = s.http.post("/api/admin/credentials", {"user": "eve", "tenant": "other", "scopes": ["read", "define"]})
        equal((own.status, other.status), (201, 201), (own.body, other.body))
        for method, path, body, status in routes:
            equal(s.http.send(method, path, body, token=False).status, 401, path)
        eve = Client(s.url, other.json["token"])
        equal(eve.get("/api/workflows").json["workflows"], [])
        for path in ("/api/workflows/greet", f"/api/runs/{run}/workflow"):
            equal(eve.get(path).status, 404, path)
        equal(eve.send("DELETE", "/api/workflows/greet").status, 404)
        reader = Client(s.url, own.json["token"])
        for method, path, body, status in routes:
            if status == 403 or "-" in path or path == "/api/workflows":
                equal(reader.send(method, path, body).status, status, path)


@test("the_example_of_the_documentation_works", "WF-03 WF-04")
def example():
    with open(os.path.join(ROOT, "docs", "workflows.md")) as f:
        page = f.read()
    example = page.split("```yaml\n")[1].split("```")[0]
    curl, = [line for line in page.splitlines() if line.startswith("curl ")]
    with Server() as s:
        os.makedirs(os.path.join(s.data, "agents"), exist_ok=True)
        path = os.path.join(s.data, "agents", "release.yaml")
        with open(path, "w") as f:
            f.write(example)
        told = run_uar("workflow", "check", path)
        equal((told.returncode, told.stdout.split(",")[0]), (0, "release.yaml: workflow release is right"))
        wait_until(lambda: [w for w in s.http.get("/api/workflows").json["workflows"] if w["workflow_id"] == "release"], "it is read")
        told = subprocess.run(["sh", "-c", curl], env={**os.environ, "UAR_URL": s.url, "UAR_TOKEN": s.token},
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=60)
        check(b'"run_id"' in told.stdout, told.stdout)
        log = log_of(s, json.loads(told.stdout)["run_id"])
        equal(json.loads(text(log)), {"version": "2.0", "changes": ["- faster"]})
        run = s.create("release", "2.1", inputs={"lines": ["a", "b", "c"]})
        answer(s, run, decision="approve")
        equal(json.loads(text(log_of(s, run))), {"version": "2.1", "changes": ["- a", "- b", "- c"]})


main()
