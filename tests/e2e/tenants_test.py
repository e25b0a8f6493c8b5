#!/usr/bin/env python3
"""Many users: keys, scopes, and that one user finds nothing of another."""
import os
import re
import tempfile

from lib import Server, check, equal, main, refused, run_uar, test, wait_until
from lib.client import Client
from lib.sse import Stream


def new_key(s, user, **more):
    a = s.http.post("/api/admin/credentials", {"user": user, **more})
    equal(a.status, 201, a.body)
    return a.json


def as_user(s, user, **more):
    """A client with a key of its own."""
    return Client(s.url, new_key(s, user, **more)["token"])


def run_echo(http, message, **more):
    a = http.post("/api/runs", {"agent_id": "echo", "inputs": {"message": message}, **more})
    check(a.status in (200, 201, 202), a.body)
    return a.json["run_id"]


# --- keys --------------------------------------------------------------------------------------


@test("a_key_admits_its_user_until_it_is_revoked", "")
def keys():
    with Server() as s:
        made = new_key(s, "alice", tenant="acme", label="laptop", scopes=["read", "run"])
        equal((made["tenant"], made["user"], made["scopes"], made["status"]),
              ("acme", "alice", ["read", "run"], "active"))
        check(re.fullmatch(r"uar_[0-9a-f]{16}_[0-9a-f]{64}", made["token"]), made)
        alice = Client(s.url, made["token"])
        run_id = run_echo(alice, "mine")
        equal(alice.get("/api/runs/" + run_id).status, 200)
        equal(s.http.get("/api/runs/" + run_id).status, 404)
        listed = s.http.get("/api/admin/credentials").json["credentials"]
        equal([k["credential_id"] for k in listed], [made["credential_id"]])
        check("token" not in listed[0], listed)
        for wrong in (made["token"][:-1], made["token"] + "0", "uar_" + "0" * 16 + made["token"][20:], "uar_", "uar__",
                      made["token"][:21], made["token"].upper()):
            refused(Client(s.url, wrong).get("/api/runs"), 401, "UNAUTHORIZED")
        s.restart()
        alice = Client(s.url, made["token"])
        equal(s.ready().http.get("/api/runs").json["runs"], [])
        equal(alice.get("/api/runs/" + run_id).status, 200)
        gone = s.http.send("DELETE", "/api/admin/credentials/" + made["credential_id"])
        equal((gone.status, gone.json["status"]), (200, "revoked"))
        equal(s.http.send("DELETE", "/api/admin/credentials/" + made["credential_id"]).status, 200)
        refused(alice.get("/api/runs"), 401, "UNAUTHORIZED")
        s.restart()
        s.ready()
        refused(Client(s.url, made["token"]).get("/api/runs"), 401, "UNAUTHORIZED")
        equal([k["status"] for k in s.http.get("/api/admin/credentials").json["credentials"]], ["revoked"])
        refused(s.http.send("DELETE", "/api/admin/credentials/0000000000000000"), 404, "NOT_FOUND")
        facts = s.http.get("/api/sessions/uar.registry/events?stored=1").body.decode()
        check(facts.count("vendor.uar.credential.changed") >= 2, facts)
        secret = made["token"].rpartition("_")[2]
        check(secret not in facts and secret not in s.log(), "the secret part was written down")


@test("a_revoked_key_ends_its_streams", "")
def streams():
    with Server() as s:
        made, other = new_key(s, "alice", tenant="acme"), new_key(s, "alice", tenant="acme")
        first, second = (Stream(s.url, "/channels/runs", k["token"]) for k in (made, other))
        equal(s.http.send("DELETE", "/api/admin/credentials/" + made["credential_id"]).status, 200)
        equal(list(first), [])  # it ends
        run_id = run_echo(Client(s.url, other["token"]), "still there")
        check(run_id in next(iter(second)).text, "the other stream is open")
        second.close()


@test("an_expired_key_is_refused", "")
def expiry():
    with Server() as s:
        made = new_key(s, "alice", expires_seconds=1)
        wait_until(lambda: Client(s.url, made["token"]).get("/api/runs").status == 401, "it has expired")
        for wrong in (-1, 315360001, "1"):
            equal(s.http.post("/api/admin/credentials", {"user": "a", "expires_seconds": wrong}).status, 400)


@test("scopes_say_what_a_key_is_for", "")
def scopes():
    with Server() as s:
        reader = as_user(s, "local", scopes=["read"])
        run_id = run_echo(s.http, "shared")
        equal(reader.get("/api/runs/" + run_id).status, 200)  # the same user as the holder of the token
        for method, path, body, scope in (
                ("POST", "/api/runs", {"agent_id": "echo"}, "run"), ("GET", "/metrics", None, "metrics"),
                ("POST", f"/api/runs/{run_id}/cancel", None, "run"), ("PUT", "/api/agents/a", {}, "define"),
                ("POST", "/api/control/create_task", {"objective": "x"}, "run"),
                ("POST", "/api/control/respond_action", {"action_id": "x"}, "answer"),
                ("GET", "/api/admin/settings", None, "admin"), ("GET", "/api/admin/log", None, "admin"),
                ("POST", "/api/links", None, "admin"), ("POST", "/api/admin/credentials", {"user": "x"}, "admin")):
            problem = refused(reader.send(method, path, body), 403, "FORBIDDEN")
            check(f'"{scope}"' in problem["detail"], problem)
        equal(as_user(s, "scraper", scopes=["metrics"]).get("/metrics").status, 200)
        equal(as_user(s, "second", scopes=["admin"]).get("/api/admin/credentials").status, 200)
        for body in ({}, {"user": "a b"}, {"user": "a", "scopes": ["all"]}, {"user": "a", "owner": "x"}):
            equal(s.http.post("/api/admin/credentials", body).status, 400, body)


@test("a_key_that_may_only_run_answers_through_no_door", "")
def no_answers():
    with Server() as s:
        runner = as_user(s, "local", scopes=["read", "run"])
        path, base = "/api/ag-ui/agents/tools", {"threadId": "t", "tools": [], "context": [], "state": {}, "forwardedProps": {}}
        text = 'tool fs.write {"path": "a.txt", "text": "x"}'
        a = runner.post(path, {**base, "runId": "t-1", "messages": [{"id": "m", "role": "user", "content": text}]})
        asked = re.search(r'"id":"([^"]+)"', a.body.decode().split('"interrupts"')[1])[1]
        resume = {**base, "runId": "t-2", "messages": [], "resume": [{"interruptId": asked, "status": "resolved", "payload": {"approved": True}}]}
        refused(runner.post(path, resume), 403, "FORBIDDEN")
        (waiting,) = s.http.get("/api/actions").json["actions"]
        action = waiting["action_id"]
        for name, more in (("respond_action", {"decision": "allow"}), ("resolve_permission", {"decision": "allow"})):
            refused(runner.post("/api/control/" + name, {"action_id": action, **more}), 403, "FORBIDDEN")
        refused(runner.post("/api/control/update_permissions", {"session_id": waiting["session_id"], "mode": "never"}), 403, "FORBIDDEN")
        equal(len(s.record(waiting["run_id"])["actions"]), 1)
        check(s.http.post(path, resume).status == 200, "the holder of the token answers")
        equal(s.finish(waiting["run_id"])["status"], "succeeded")


@test("keys_are_made_on_the_command_line", "")
def commands():
    with Server() as s:
        def uar(*argv):
            return run_uar("token", *argv, "--data", s.data, home=s.root)
        made = uar("new", "acme/alice", "--scopes", "read,run", "--label", "phone", "--expires", "30d")
        equal(made.returncode, 0, made)
        equal(Client(s.url, made.stdout.strip()).get("/api/runs").status, 200)
        listed = uar("list")
        check("active\tacme/alice\tread,run\tphone" in listed.stdout, listed)
        equal(uar("revoke", made.stdout.strip()).returncode, 0)
        equal(Client(s.url, made.stdout.strip()).get("/api/runs").status, 401)
        for wrong in (("new",), ("old", "x"), ("list", "x"), ("new", "a", "--expires", "soon"), ("new", "a", "--scopes", "x")):
            check(uar(*wrong).returncode != 0, wrong)


# --- what belongs to whom ----------------------------------------------------------------------

CANARY = "canary7f3a"
START = 'tool process__start {"command": "echo %s; sleep 600"}' % CANARY
ASK = 'tool fs.write {"path": "a.txt", "text": "%s"}' % CANARY


def define(agent_id, **more):
    return {"version": "1.0", "kind": "agent", "id": agent_id, "metadata": {"title": CANARY}, "runtime": {"entry": "llm.chat"},
            "policy": {"provider": {"default": {"provider": "scripted", "model": "scripted-tools"}}}, **more}


def graph_with(agent_id, title=CANARY):
    """A workflow whose one node lets that agent work."""
    nodes = [{"id": "start", "type": "input", "config": {}}, {"id": "end", "type": "output", "config": {}},
             {"id": "work", "type": "agent", "config": {"agent": agent_id, "message": "{{/inputs/message}}"}}]
    edges = [{"from": {"node": a}, "to": {"node": b}} for a, b in (("start", "work"), ("work", "end"))]
    return {"version": "1.0", "kind": "agent", "id": "own_flow", "metadata": {"title": title}, "runtime": {"entry": "workflow.run"},
            "schemas": {"inputs": {"type": "object", "properties": {"message": {"type": "string"}}}},
            "workflow": {"nodes": nodes, "edges": edges}}


def done(a, status=(200, 201, 202)):
    check(a.status in status, a.status, a.body)
    return a.json


class World:
    """One of each thing that a user can have; ids holds what paths name."""

    def __init__(self, s, http):
        self.s, self.http = s, http
        done(http.send("PUT", "/api/agents/own_agent", define("own_agent")))
        done(http.send("PUT", "/api/workflows/own_flow", graph_with("own_agent")))
        done(http.send("PUT", "/api/skills/own_skill", {"skill_id": "own_skill", "description": CANARY,
                                                        "triggers": {"keywords": ["walnut"]}}))
        done(http.send("PUT", "/api/mcp/servers/own-server", {"url": "https://mcp.example/" + CANARY}))
        done(http.send("PUT", "/api/kb/own_kb", {"mode": "hybrid"}))
        done(http.send("PUT", "/api/kb/own_kb/documents", {"document_id": "own_doc", "title": CANARY, "text": "walnuts " + CANARY}))
        done(http.send("PUT", "/api/kb/own_kb/relations", {"relations": [
            {"from": CANARY, "kind": "is", "to": "nut", "document_id": "own_doc"}]}))
        run = done(http.post("/api/runs", {"agent_id": "own_agent", "inputs": {"message": "say " + CANARY}}))["run_id"]
        wait_until(lambda: http.get("/api/runs/" + run).json["status"] in ("succeeded", "failed"), "its end")
        done(http.send("PUT", "/api/agents/own_shell", define("own_shell", policy={
            "provider": {"default": {"provider": "scripted", "model": "scripted-tools"}}, "sandbox": {"mode": "workspace_write"},
            "tools": {"allow": ["process:*", "internal:fs.*"]}})))
        waits = done(http.post("/api/runs", {"agent_id": "own_shell", "inputs": {"message": START + "\nthen\n" + ASK}}))["run_id"]
        asked = lambda tool: next((r for r in [http.get("/api/runs/" + waits).json] if [
            a for a in r.get("actions") or [] if a["tool_name"] == tool]), None)
        begin = wait_until(lambda: asked("process.start"), "a question before the process")["actions"][0]["action_id"]
        done(http.post("/api/control/respond_action", {"action_id": begin, "decision": "allow"}))
        record = wait_until(lambda: asked("fs.write"), "a question")
        made = done(http.get(f"/api/sessions/{record['session_id']}?include=permissions"))["execution_environment"]
        process = (made["active_processes"] + made["ended_processes"])[0]["process_id"]
        output = f"/api/runs/{waits}/processes/{process}/output"
        wait_until(lambda: CANARY in http.get(output).body.decode(), "the output of the process")
        task = done(http.post("/api/control/create_task", {"objective": CANARY}))["result"]["task"]["task_id"]
        pack = done(http.post("/api/control/export_evidence", {"session_id": http.get("/api/runs/" + run).json["session_id"]}))["result"]
        response = done(http.post("/v1/responses", {"model": "echo", "input": CANARY}))["id"]
        session = record["session_id"]
        opened = http.post("/api/mcp/sessions", {"protocolVersion": "2025-11-25"})
        thread = re.search(r'"thread_id":"([^"]+)"', http.get("/api/sessions/" + session).body.decode()).group(1)
        self.ids = {"run_id": waits, "ended_run": run, "session_id": session, "thread_id": thread, "task_id": task,
                    "action_id": record["actions"][0]["action_id"], "agent_id": "own_agent", "skill_id": "own_skill",
                    "name": "own-server", "collection": "own_kb", "document_id": "own_doc", "response_id": response,
                    "model": "own_agent", "evidence_id": pack.get("evidence_id", "none"), "number": "1",
                    "mcp_session": opened.json.get("session_id", "none"), "sha256": "0" * 64, "artifact_id": "a1",
                    "form_id": record["actions"][0]["action_id"], "item_id": "1", "upload_id": "u1", "blob_id": "b1",
                    "channel_id": "chan-1", "config_id": "conf-1", "process_id": process,
                    "workflow_id": "own_flow",
                    "turn_id": record.get("turn_id") or "t1", "conversation_id": thread, "edge_id": "e1"}

    def shown(self):
        """What its owner sees, to be compared after others have tried."""
        paths = ["/api/runs", "/api/agents/own_agent", "/api/skills/own_skill", "/api/mcp/servers/own-server", "/api/kb",
                 "/api/kb/own_kb/documents/own_doc", "/api/tasks", "/api/actions", "/api/runs/" + self.ids["run_id"],
                 "/api/sessions/" + self.ids["session_id"]]
        return [re.sub(r'"(reason|state|updated_at|now)":"[^"]*"', "", self.http.get(p).body.decode()) for p in paths]


# What a user may try with the ids of another one. Each route of the server has a row; "id": the answer is that for an
# id that nobody has; "list": it shows nothing of others; "admin": 403; "open": nobody is asked; "live": see below.
ID_BODIES = {
    "/api/kb/{collection}/search": {"query": "walnuts " + CANARY}, "/api/kb/{collection}/documents": {"document_id": "x", "text": "y"},
    "/api/kb/{collection}/relations": {"relations": []}, "/api/kb/{collection}": {"mode": "hybrid"},
    "/api/skills/{skill_id}": {"skill_id": "own_skill", "description": "mine"}, "/api/agents/{agent_id}": define("own_agent", metadata={"title": "b"}),
    "/api/workflows/{workflow_id}": graph_with("own_agent", "b"),
    "/api/mcp/servers/{name}": {"url": "https://b.example/"}, "/api/runs/{run_id}/forms/{form_id}": {"values": {}},
    "/api/a2ui/runs/{run_id}/messages": {"messages": []},
    "/api/copilotkit/agent/{agent_id}/run": {"threadId": "t", "runId": "r", "messages": [{"id": "1", "role": "user", "content": "x"}]},
    "/api/ag-ui/agents/{agent_id}": {"threadId": "t", "runId": "r", "messages": [{"id": "1", "role": "user", "content": "x"}]},
    "/api/copilotkit/agent/{agent_id}/connect": {"threadId": "t", "runId": "r", "messages": []},
    "/api/mcp/sessions/{session_id}/messages": {"jsonrpc": "2.0", "id": 1, "method": "ping"},
    "/api/runs/{run_id}/artifacts/{artifact_id}/errors": {"message": "x"}}
MAKES = {  # (method, path): the body, with ids of the other one
    ("post", "/api/agents-check"): {"text": "{}", "format": "json"}, ("post", "/api/workflows-check"): {"definition": graph_with("own_agent", "x")},
    ("post", "/api/skills-test"): {"message": "walnut", "agent_id": "own_agent"},
    ("post", "/api/tools/call"): {"tool_id": "mcp:own-server/x", "arguments": {}}, ("post", "/api/runs"): {"agent_id": "own_agent"},
    ("post", "/runs"): {"plugin_id": "uar.agent", "entry_id": "own_agent"}, ("post", "/api/ag-ui/runs"): {"agent_id": "own_agent"},
    ("post", "/api/copilotkit"): {"method": "agent/run", "params": {"agentId": "own_agent"}, "body": {}},
    ("post", "/v1/chat/completions"): {"model": "own_agent", "messages": [{"role": "user", "content": "x"}]},
    ("post", "/v1/responses"): {"model": "own_agent", "input": "x"}, ("post", "/mcp"): {"jsonrpc": "2.0", "id": 1, "method": "ping"},
    ("post", "/api/mcp/sessions"): {"protocolVersion": "2025-11-25"}, ("post", "/plugin/trigger"): {"plugin_id": "x", "entry_id": "y"},
    ("post", "/api/a2a/inbox"): {"message_id": "1", "from_agent": "echo", "to_agent": "own_agent", "conversation_id": "c-1",
                                "payload": {"type": "text", "text": "y"}, "capabilities": {"tools": [], "models": []}},
    ("post", "/api/a2a/send"): {"message_id": "2", "from_agent": "echo", "to_agent": "own_agent", "conversation_id": "c-1",
                               "payload": {"type": "text", "text": "y"}, "capabilities": {"tools": [], "models": []}}}
LISTS = """/ready /version /openapi.json /api/agents /api/skills /api/models /api/tools /api/kb /api/memory /api/runs /runs
    /api/copilotkit/info /v1/models /api/actions /api/grants /api/control /api/tasks /api/sessions /api/mcp/servers
    /api/fixtures /plugins /api/workflows /api/workflows-node-types""".split()
SHARED = ["/api/fixtures/{name}/stream"]
EMPTIES = [("delete", "/api/kb"), ("delete", "/api/memory")]
LIVE = ["/channels/runs", "/channels/export", "/api/a2a/stream/{agent_id}", "/mcp", "/api/channels/{channel_id}/events"]
ADMIN = ["/metrics", "/api/admin/", "/api/links", "/api/models/check", "/api/kb-index/"]
OPEN = ["/", "/ui", "/health", "/api/link", "/page/{file}", "/api/mcp/oauth/callback"]


def kind_of(method, path):
    path = "/mcp" if path == "/mcp/" else path  # the same route, for clients that put a slash behind an address
    if path in OPEN or path.startswith("/ui/"):
        return "open"
    if any(path.startswith(p) if p.endswith("/") else path == p for p in ADMIN):
        return "admin"
    if path == "/api/control/{command}":
        return "command"
    if (method, path) in MAKES:
        return "make"
    if (method, path) in EMPTIES or path in SHARED or path.startswith("/.well-known/"):
        return "list"
    if path in LIVE:
        return "live"
    if method == "get" and path in LISTS:
        return "list"
    if "{" in path and all(p in KNOWN_IDS for p in re.findall(r"{(\w+)}", path)):
        return "id"
    return None


KNOWN_IDS = """run_id session_id thread_id task_id agent_id skill_id name collection document_id response_id model evidence_id
    number sha256 artifact_id form_id item_id upload_id blob_id channel_id action_id config_id process_id workflow_id""".split()


def routes(s):
    for path, methods in s.http.get("/openapi.json").json["paths"].items():
        if path.startswith("/api/control/") and "{" not in path:
            continue
        for method in methods:
            if method != "parameters":
                yield method, path


def place(path, ids):
    for name in re.findall(r"{(\w+)}", path):
        own = ids["mcp_session"] if name == "session_id" and "/mcp/" in path else ids[name]
        path = path.replace("{%s}" % name, own)
    return path


def nobodys(ids):
    """Ids of the same form that nobody has."""
    other = str.maketrans("0123456789abcdef", "123456789abcdef0")
    return {k: "none" if v == "none" else v.translate(other) if re.fullmatch(r"[0-9a-f-]{30,}|(run|resp)_.*", v) else "no-" + v
            for k, v in ids.items()}


def bare(a, ids):
    """Status and body without the ids that were sent, and without what differs from call to call."""
    text = a.body.decode(errors="replace")
    for v in sorted(set(ids.values()), key=len, reverse=True):
        if len(v) > 2:
            text = text.replace(v, "ID")
    return a.status, re.sub(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}|[0-9a-f]{32,64}|\d{4}-\d\d-\d\dT[0-9:.]+Z|\d{10,}", "X", text)


def attempt(http, method, path, ids, headers=None):
    """The request as a client would make it; it may be about nothing."""
    body = ID_BODIES.get(path)
    at = place(path, ids)
    if "stream" in path or path.endswith("/events"):
        at += "?stored=1" if path.startswith("/api/sessions/") else ""
    if body is not None and method not in ("get", "delete"):
        body = {k: ids.get(k, v) if k in ("skill_id", "id") and isinstance(v, str) else v for k, v in body.items()}
        if path in ("/api/agents/{agent_id}", "/api/workflows/{workflow_id}"):
            body["id"] = ids[path[:-1].rpartition("{")[2]]
    elif method in ("post", "put", "patch"):
        body = b"x" if path.startswith("/uploads") else {}
    return http.send(method.upper(), at, body if method not in ("get", "delete") else None, headers=headers)


def check_route(method, path, mine, http):
    """One route with the ids of another user, and with ids of nobody."""
    kind, where = kind_of(method, path), f"{method} {path}"
    check(kind, "no row in this test for", where)
    if kind == "admin":
        equal(http.send(method.upper(), place(path, {**mine.ids, "credential_id": "0" * 16}), None if method == "get" else {}).status, 403, where)
    elif kind == "list":
        a = http.send(method.upper(), place(path, {"name": "nothing"}))
        check(CANARY not in a.body.decode(errors="replace"), where, a.body)
    elif kind == "id":
        theirs, nothing = attempt(http, method, path, mine.ids), attempt(http, method, path, nobodys(mine.ids))
        if method == "put":  # it makes something of its own
            equal(theirs.status, nothing.status, where)
        else:
            equal(bare(theirs, mine.ids), bare(nothing, nobodys(mine.ids)), where)
        check(CANARY not in theirs.body.decode(errors="replace"), where, theirs.body)
        if not (path.startswith(("/api/kb", "/api/copilotkit", "/a2a/", "/api/channels/")) or method == "put"):
            check(theirs.status in (400, 404), where, theirs.status, theirs.body)
    elif kind == "make":
        body = MAKES[method, path if path != "/mcp/" else "/mcp"]
        for more in ({}, {"tenant": "acme", "user": "alice"}):
            a = http.send(method.upper(), path, {**body, **more})
            check(CANARY not in a.body.decode(errors="replace").replace("own", ""), where, a.body)
            if path == "/api/workflows-check":
                nobodys_ = http.post(path, {"definition": graph_with("nobodys", "x")}).body.decode()
                equal(a.body.decode(), re.sub(r"\bnobodys\b", "own_agent", nobodys_), where)
            if "own_agent" in str(body) and "a2a" not in path and not path.endswith(("skills-test", "workflows-check")):
                check(a.status >= 400, where, a.status, a.body)


def value_of(name, schema, ids):
    if name in ids:
        return ids[name]
    if "enum" in schema:
        return schema["enum"][0]
    if name in ("from", "to"):
        return ids["task_id"]
    return {"string": "x", "integer": 1, "number": 1, "boolean": True, "array": [], "object": {}}.get(schema.get("type"), "x")


def check_command(c, mine, http):
    schema = c["input_schema"]
    wanted = {k: v for k, v in schema["properties"].items()
              if k in schema.get("required", []) or (k in mine.ids and k not in ("turn_id", "conversation_id"))}
    both = []
    for ids in (mine.ids, nobodys(mine.ids)):
        body = {k: value_of(k, v, ids) for k, v in wanted.items()}
        a = http.post("/api/control/" + c["name"], body)
        check(CANARY not in a.body.decode(errors="replace"), c["name"], a.body)
        both.append(bare(a, ids))
    equal(both[0], both[1], c["name"])
    if {"run_id", "task_id", "action_id", "thread_id"} & set(wanted) and c["name"] not in ("submit_turn", "create_task", "list_tasks", "list_jobs"):
        check(both[0][0] >= 400, c["name"], both[0])


def matrix(user, tenant):
    """Everything that alice of acme has, tried by another user."""
    with Server(process_tools="workspace_write") as s:
        s.ready()
        alice = World(s, as_user(s, "alice", tenant="acme"))
        other = as_user(s, user, tenant=tenant)
        run_echo(other, "own")
        before = alice.shown()
        tried = 0
        # PUT comes last: it makes things of the same names, which are the other one's own.
        for method, path in sorted(routes(s), key=lambda r: r[0] == "put"):
            if kind_of(method, path) not in ("open", "live", "command"):
                check_route(method, path, alice, other)
                tried += 1
        for c in s.http.get("/api/control").json["commands"]:
            if c["available"]:
                check_command(c, alice, other)
        check(tried > 90, tried)
        equal(alice.shown(), before)
        # The answer to the question still counts once, and only from its user.
        body = {"action_id": alice.ids["action_id"], "decision": "allow"}
        equal(other.post("/api/control/respond_action", body).status, 404)
        done(alice.http.post("/api/control/respond_action", body))
        wait_until(lambda: alice.http.get("/api/runs/" + alice.ids["run_id"]).json["status"] == "succeeded", "its end")
        return s.log()


@test("nothing_of_a_tenant_is_seen_by_another", "TEN-02 TEN-03 TEN-04 TEN-05 MCP-06")
def other_tenant():
    matrix("bob", "globex")


@test("nothing_of_a_user_is_seen_by_another_of_the_tenant", "TEN-07")
def other_user():
    matrix("bob", "acme")


def letter(text):
    return {"message_id": "m-" + text, "from_agent": "echo", "to_agent": "own_agent", "conversation_id": "c-1",
            "payload": {"type": "text", "text": text}, "capabilities": {"tools": [], "models": []}}


def rpc(http, method, session=None, **params):
    return http.post("/mcp", {"jsonrpc": "2.0", "id": 1, "method": method, "params": params},
                     headers={"Accept": "application/json, text/event-stream", **({"Mcp-Session-Id": session} if session else {})})


@test("keys_tokens_and_sessions_of_one_are_refused_for_another", "TEN-06")
def session_keys():
    with Server() as s:
        made = new_key(s, "alice", tenant="acme")
        alice, bob = Client(s.url, made["token"]), as_user(s, "bob", tenant="globex")
        a, b = (done(http.post("/runs", {"plugin_id": "uar.agent", "entry_id": "echo", "args": {"message": "x"}}))
                for http in (alice, bob))
        watch = "/channels/runs?run_id=%s&run_token=%s"
        with_token = Stream(s.url, watch % (a["run_id"], a["run_token"]), "", {"Authorization": None})
        with_token.close()
        damaged = a["run_token"][:-1] + ("1" if a["run_token"].endswith("0") else "0")
        for run_id, token in ((b["run_id"], a["run_token"]), (a["run_id"], b["run_token"]), (a["run_id"], damaged),
                              (a["run_id"], a["run_token"].partition(".")[0] + "." + a["run_token"].rpartition(".")[2])):
            refused(s.http.send("GET", watch % (run_id, token), token=False), 401, "UNAUTHORIZED")
        opened = rpc(alice, "initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo={"name": "t", "version": "1"})
        session = opened.headers["mcp-session-id"]
        equal(rpc(alice, "ping", session).status, 200)
        equal(rpc(bob, "ping", session).status, 404)
        equal(bob.send("DELETE", "/mcp", headers={"Mcp-Session-Id": session}).status, 404)
        equal(rpc(alice, "ping", session).status, 200)
        waits = done(alice.post("/api/runs", {"agent_id": "tools", "inputs": {"message": ASK}}))["run_id"]
        wait_until(lambda: alice.get("/api/runs/" + waits).json.get("actions"), "a question")
        place_ = done(alice.post(f"/runs/{waits}/uploads"))
        other = done(bob.post("/api/runs", {"agent_id": "tools", "inputs": {"message": ASK}}))["run_id"]
        wait_until(lambda: bob.get("/api/runs/" + other).json.get("actions"), "a question")
        theirs = done(bob.post(f"/runs/{other}/uploads"))
        refused(bob.send("PUT", "/uploads/" + place_["upload_id"], b"x"), 404, "NOT_FOUND")
        mixed = place_["upload_url"].partition("?")[0] + "?" + theirs["upload_url"].partition("?")[2]
        refused(s.http.send("PUT", mixed, b"x", token=False), 401, "UNAUTHORIZED")
        equal(s.http.send("PUT", place_["upload_url"], b"x", token=False).status // 100, 2)
        s.http.send("DELETE", "/api/admin/credentials/" + made["credential_id"])
        refused(s.http.send("GET", watch % (a["run_id"], a["run_token"]), token=False), 401, "UNAUTHORIZED")


@test("live_streams_and_lists_of_protocols_show_ones_own_alone", "TEN-04 TEN-07")
def live():
    with Server() as s:
        alice, bob = as_user(s, "alice", tenant="acme"), as_user(s, "bob", tenant="globex")
        done(alice.send("PUT", "/api/agents/own_agent", define("own_agent")))
        streams = [Stream(s.url, path, bob.token) for path in ("/channels/runs", "/channels/export", "/api/a2a/stream/own_agent")]
        for http, text in ((alice, CANARY), (bob, "bobs")):
            done(http.post("/api/a2a/send", letter(text)))
            run_echo(http, text)
        for stream in (streams[0], streams[2]):
            check(CANARY not in next(iter(stream)).text, "a stream of another one")
        for stream in streams:
            stream.close()
        opened = rpc(bob, "initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo={"name": "t", "version": "1"})
        for method in ("tools/list", "resources/list", "prompts/list"):
            a = rpc(bob, method, opened.headers["mcp-session-id"])
            equal(a.status, 200, a.body)
            check(CANARY not in a.body.decode() and "own_agent" not in a.body.decode(), method, a.body)
        check(CANARY not in s.http.get("/metrics").body.decode() and "acme" not in s.http.get("/metrics").body.decode(), "labels")


@test("files_of_tools_are_the_users_own", "TEN-05 TEN-07")
def files():
    with Server() as s:
        alice, bob = as_user(s, "alice", tenant="acme"), as_user(s, "bob", tenant="acme")
        run_id = done(alice.post("/api/runs", {"agent_id": "tools", "inputs": {"message": ASK}}))["run_id"]
        action = wait_until(lambda: alice.get("/api/runs/" + run_id).json.get("actions"), "a question")[0]["action_id"]
        done(alice.post("/api/control/respond_action", {"action_id": action, "decision": "allow"}))
        wait_until(lambda: alice.get("/api/runs/" + run_id).json["status"] == "succeeded", "its end")

        def read(http):
            return http.post("/api/tools/call", {"tool_id": "internal:fs.read", "arguments": {"path": "a.txt"}}).json
        check(CANARY in str(read(alice)), read(alice))
        for http in (bob, s.http):
            check(read(http)["ok"] is False, read(http))


@test("a_tenant_has_quotas", "")
def quotas():
    with Server(tenant_live_runs=2, tenant_requests=3) as s:
        alice, bert, bob = (as_user(s, user, tenant=t) for user, t in (("alice", "acme"), ("bert", "acme"), ("bob", "globex")))

        s.restart(scripted_token_ms=1000)
        alice, bert, bob = (Client(s.url, c.token) for c in (alice, bert, bob))
        talk = {"agent_id": "demo", "inputs": {"message": "talk " * 50}}
        first = done(alice.post("/api/runs", {**talk, "idempotency_key": "same"}))["run_id"]
        done(bert.post("/api/runs", talk))
        refused(alice.post("/api/runs", talk), 429, "QUOTA_EXCEEDED")
        equal(done(alice.post("/api/runs", {**talk, "idempotency_key": "same"}))["run_id"], first)
        other = done(bob.post("/api/runs", talk))["run_id"]
        for _ in range(3):
            done(s.http.post("/api/runs", talk))  # the operator has none
        done(alice.post(f"/api/runs/{first}/cancel"))
        wait_until(lambda: alice.post("/api/runs", talk).status == 202, "a place")
        streams = [Stream(s.url, "/channels/runs", alice.token) for _ in range(3)]
        refused(bert.get("/api/runs"), 429, "QUOTA_EXCEEDED")
        equal((bob.get("/api/runs/" + other).status, s.http.get("/api/runs").status), (200, 200))
        streams.pop().close()
        wait_until(lambda: bert.get("/api/runs").status == 200, "the stream is gone")
        for stream in streams:
            stream.close()


@test("one_program_serves_desktop_cloud_and_local_data", "CFG-01")
def three_configs():
    seen = []
    with tempfile.TemporaryDirectory() as home:
        for settings, name in (({}, None), ({"listen": "0.0.0.0:0", "allowed_hosts": "agents.example"}, "agents.example"),
                               ({"listen": "unix:" + os.path.join(home, "uar.sock"), "data": os.path.join(home, "own")}, None)):
            with Server(**settings) as s:
                if name:  # behind a proxy, with a key and not with the operator's token
                    port = s.url.rsplit(":", 1)[1]
                    http = Client("http://127.0.0.1:" + port, new_key(s, "alice", tenant="acme")["token"])
                    headers = {"Host": name}
                else:
                    http, headers = s.http, None
                equal(http.get("/api/runs", token=False).status, 401)
                made = http.post("/api/runs", {"agent_id": "echo", "inputs": {"message": "hello"}}, headers=headers)
                run_id = done(made)["run_id"]
                shown = http.get(f"/api/runs/{run_id}/stream", headers=headers).body.decode()
                check("hello" in shown and "RunDone" in shown, shown)
                api = http.get("/openapi.json", headers=headers).json
                seen.append((sorted(api["paths"]), re.findall(r'"type":"(\w+)"', shown)))
                if not settings:
                    check(s.url.startswith("http://127.0.0.1:"), s.url)
                    continue
                key = http.token
                s.restart()  # the embedded database has it all
                again = Client(http.url if not name else "http://127.0.0.1:" + s.url.rsplit(":", 1)[1], key)
                if not name:
                    again = s.http
                equal(again.get("/api/runs/" + run_id, headers=headers).json["status"], "succeeded")
    equal(seen[0], seen[1])
    equal(seen[0], seen[2])


main()
