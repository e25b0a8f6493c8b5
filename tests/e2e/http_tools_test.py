#!/usr/bin/env python3
"""HTTP tools of definitions, in runs of the real server against a real service: requests, secrets, policy, guard."""
import contextlib
import http.server
import json
import os
import re
import subprocess
import tempfile
import threading

from lib import ROOT, SAFETY, check, check_session, equal, main, refused, run_uar, test, text_of, wait_until
from lib.agents import AgentServer as Shop
from lib.agents import definition, scripted
from lib.mcp import Modern
from lib.payloads import check_payload
from lib.services import Service

CANARY = "canary-5e9d0c1f7a"


def call(name, **args):
    return f"tool {name} {json.dumps(args)}"


def env(**more):
    return {"UAR_OUTBOUND_ALLOW": "127.0.0.1", **more}


def ends(s, run_id):
    """The ends of the calls by tool: (type, payload), in the order of the calls."""
    log = [e.data for e in s.session_events(run_id)]
    names = {e["tool_call_id"]: e["payload"]["tool_name"] for e in log if e["type"] == "tool.started"}
    found = {e["tool_call_id"]: e for e in log if e["type"] in ("tool.result", "tool.failed")}
    return [(names[i], found[i]["type"], found[i]["payload"]) for i in names]


def run(s, agent, *lines):
    run_id = s.create(agent, "\n".join(lines))
    s.events(run_id)
    return run_id


@test("a_request_is_a_tool", "TOOL-01")
def request_tool():
    with Service() as web:
        tools = {"http": [
            {"name": "weather", "description": "Weather of a city", "url": web.url + "/weather/{city}",
             "query": {"units": "{units}"},
             "input_schema": {"type": "object", "required": ["city"],
                              "properties": {"city": {"type": "string"}, "units": {"type": "string"}}}},
            {"name": "note", "method": "POST", "url": web.url + "/notes", "ask": False,
             "body": {"note": {"text": "{text}", "title": "About {topic}", "n": "{n}"}}},
            {"name": "search", "url": web.url + "/search"},
            {"name": "plain", "url": web.url + "/text"},
            {"name": "moved", "url": web.url + "/redirect"},
        ]}
        with Shop(scripted("shop", tools), env=env()) as s:
            run_id = run(s, "shop", call("weather", city="S\u00e3o Paulo/../x"), call("weather", city="Rome", units="c"),
                         call("note", text='say "hi"', topic="A", n=3), call("search", q="a&b", page=2),
                         call("plain"), call("moved"))
            equal(s.record(run_id)["status"], "succeeded")
            done = ends(s, run_id)
            equal([e[1] for e in done], ["tool.result"] * 6, done)
            got = [e[2]["preview"] for e in done]
            equal(got[0]["path"], "/weather/S%C3%A3o%20Paulo%2F..%2Fx")
            equal(got[1]["path"], "/weather/Rome?units=c")
            equal((got[2]["method"], json.loads(got[2]["body"])),
                  ("POST", {"note": {"text": 'say "hi"', "title": "About A", "n": 3}}))
            equal(got[3]["path"], "/search?q=a%26b&page=2")
            equal(got[4], {"text": "plain words"})
            equal(got[5]["path"], "/landed?from=redirect")
            started = [e.data["payload"] for e in s.session_events(run_id) if e.data["type"] == "tool.started"]
            equal({x["transport"] for x in started}, {"http"})
            equal(started[0]["tool_id"], "http:weather")


@test("operations_of_an_openapi_document_are_tools", "TOOL-01")
def openapi():
    with Service() as web:
        document = {
            "openapi": "3.1.0", "info": {"title": "Pets", "version": "1"}, "servers": [{"url": web.url + "/v1/"}],
            "paths": {"/pets/{pet_id}": {
                "parameters": [{"$ref": "#/components/parameters/id"}],
                "get": {"operationId": "getPet", "summary": "One pet",
                        "parameters": [{"name": "full", "in": "query", "schema": {"type": "boolean"}}]},
                "put": {"operationId": "putPet", "requestBody": {"content": {"application/json": {
                    "schema": {"$ref": "#/components/schemas/Pet"}}}}}}},
            "components": {
                "parameters": {"id": {"name": "pet_id", "in": "path", "required": True,
                                      "schema": {"type": "string"}}},
                "schemas": {"Pet": {"type": "object", "required": ["name"],
                                    "properties": {"name": {"type": "string"}}}}}}
        tools = {"openapi": [{"document": document, "operations": ["getPet", "put*"],
                              "headers": {"Authorization": "Bearer ${secret:PETS}"}}]}
        with Shop(scripted("pets", tools), env=env(UAR_SECRET_PETS="k-1234")) as s:
            run_id = run(s, "pets", call("getPet", pet_id="7", full=True), call("getPet", pet_id=7),
                         call("putPet", pet_id="7", body={"name": 1}))
            done = ends(s, run_id)
            equal((done[0][2]["preview"]["path"], web.seen[0]["authorization"]),
                  ("/v1/pets/7?full=true", "Bearer k-1234"))
            equal([d[2].get("failure_category") for d in done[1:]], ["schema_invalid"] * 2, done)
            equal(len(web.seen), 1)


PETS = """\
openapi: 3.0.3
info: {title: Pets, version: "1"}
servers: [{url: /v1}]
paths:
  /pets:
    get:
      operationId: listPets
      parameters: [{$ref: '#/components/parameters/limit'}]
      responses: {'200': {description: all, content: {application/json: {schema: {$ref: '#/components/schemas/Pets'}}}}}
    post:
      operationId: addPet
      requestBody: {content: {application/json: {schema: {$ref: '#/components/schemas/Pet'}}}}
  /pets/{id}:
    parameters: [{name: id, in: path, required: true, schema: {type: string}}]
    delete: {operationId: dropPet}
components:
  parameters: {limit: {name: limit, in: query, schema: {$ref: '#/components/schemas/Limit'}}}
  schemas:
    Limit: {type: integer, maximum: 10}
    Pet: {type: object, required: [name], properties: {name: {type: string}, parent: {$ref: '#/components/schemas/Pet'}}}
    Pets: {type: array, items: {$ref: '#/components/schemas/Pet'}}
"""


@test("a_document_by_its_url_becomes_tools_of_a_definition", "TOOL-01")
def openapi_by_url():
    with Service() as web:
        web.documents["/api/pets.yaml"] = (PETS, "text/yaml")
        place = web.url + "/away?to=/api/pets.yaml"
        out = run_uar("agent", "openapi", place, "*Pet*")
        equal(out.returncode, 0, out.stderr)
        check("# Tools: http:listPets, http:addPet, http:dropPet\n" in out.stdout, out.stdout)
        few = json.loads(run_uar("agent", "openapi", place, "list*", "--json").stdout)
        equal(few["base_url"], web.url + "/v1", "the server's address is relative to the document's")
        equal((list(few["document"]["paths"]), list(few["document"]["paths"]["/pets"])), (["/pets"], ["get"]))
        equal(few["document"]["components"], {"schemas": {"Limit": {"type": "integer", "maximum": 10}}},
              "what is not needed is left out")
        with Shop(scripted("other", {}), env=env()) as s:
            path = os.path.join(s.data, "agents", "pets.yaml")
            with open(path, "w", encoding="utf-8") as f:
                f.write('version: "1.0"\nkind: agent\nid: pets\nruntime: {entry: llm.chat}\npolicy:\n  provider: '
                        '{default: {provider: scripted, model: scripted-tools}}\n  tools: {allow: ["http:*"]}\n' + out.stdout)
            equal(run_uar("agent", "check", path).returncode, 0)
            web.documents.clear()
            wait_until(lambda: s.http.get("/api/agents/pets").status == 200, "the server has seen it")
            run_id = run(s, "pets", call("listPets", limit=3), call("listPets", limit=30))
            done = ends(s, run_id)
            equal((done[0][2]["preview"]["path"], done[1][2]["failure_category"]), ("/v1/pets?limit=3", "schema_invalid"), done)
        for what, said in ((web.url + "/api/pets.yaml", "no OpenAPI document"), (web.url + "/status/404", "status 404"),
                           ("http://127.0.0.1:1/", "127.0.0.1:1"), ("/nothing", "/nothing")):
            bad = run_uar("agent", "openapi", what)
            check(bad.returncode == 1 and said in bad.stderr, what, bad.stderr)
        path = os.path.join(tempfile.mkdtemp(), "pets.yaml")
        with open(path, "w", encoding="utf-8") as f:
            f.write(PETS)
        bad = run_uar("agent", "openapi", path)
        check(bad.returncode == 1 and "servers/0/url" in bad.stderr, bad.stderr)
        web.documents["/p.json"] = (json.dumps({"openapi": "3.1.0", "paths": {}}), "application/json")
        bad = run_uar("agent", "openapi", web.url + "/p.json")
        check(bad.returncode == 1 and "no operation" in bad.stderr, bad.stderr)


@test("an_agent_of_the_database_gets_only_granted_secrets", "SEC-02")
def granted():
    with Service() as web:
        tools = {"http": [{"name": "keyed", "url": web.url + "/echo", "headers": {"Authorization": "Bearer ${secret:API_KEY}"}}]}
        other = {**scripted("put", tools), "id": "put"}
        with Shop(scripted("keys", tools), env=env(UAR_SECRET_API_KEY=CANARY)) as s:
            equal(s.http.send("PUT", "/api/agents/put", other).status, 201)
            done = ends(s, run(s, "put", call("keyed")))
            equal((done[0][2].get("failure_category"), len(web.seen)), ("policy_denied", 0), done)
            check("secret_grants" in done[0][2]["message"], done)
            ends(s, run(s, "keys", call("keyed")))
            equal(len(web.seen), 1)
            s.stop()
            s.env["UAR_SECRET_GRANTS"] = json.dumps({"API_KEY": {"hosts": ["127.0.0.1"], "agents": ["put"]}})
            s.start()
            s.ready()
            ends(s, run(s, "put", call("keyed")))
            equal(web.seen[-1]["authorization"], "Bearer " + CANARY)


@test("a_secret_is_sent_and_never_told", "SEC-02")
def secrets():
    with Service() as web:
        tools = {"http": [
            {"name": "keyed", "url": web.url + "/echo", "headers": {"Authorization": "Bearer ${secret:API_KEY}"}},
            {"name": "sly", "url": web.url + "/echo", "query": {"q": "{q}"}},
            {"name": "refused", "url": web.url + "/status/403", "headers": {"Authorization": "${secret:API_KEY}"}},
            {"name": "poor", "url": web.url + "/echo", "headers": {"X-Key": "${secret:MISSING}"}},
        ]}
        with Shop(scripted("keys", tools)) as s:
            s.stop()
            secret = os.path.join(s.data, "secrets", "API_KEY")
            os.makedirs(os.path.dirname(secret))
            with open(secret, "w") as f:
                f.write(CANARY + "\n")
            s.env.update(env())
            s.start()
            run_id = run(s, "keys", call("keyed"), call("sly", q="${secret:API_KEY}"), call("refused"), call("poor"))
            done = ends(s, run_id)
            equal(web.seen[0]["authorization"], "Bearer " + CANARY)
            equal(done[0][2]["preview"]["authorization"], "Bearer <redacted>", "the service gave it back")
            check(CANARY not in web.seen[1]["path"], "a model must not get a secret by asking")
            equal([d[2].get("failure_category") for d in done[2:]], ["setup_missing"] * 2, done)
            check("MISSING" in done[3][2]["message"], done[3])
            listed = s.http.get("/api/tools").body + s.http.get("/api/agents").body
            shown = json.dumps([e.data for e in s.session_events(run_id)]) + text_of(s.events(run_id))
            for name, text in (("lists", listed.decode()), ("events", shown), ("log", s.log()),
                               ("record", json.dumps(s.record(run_id)))):
                check(CANARY not in text, name)
            session = s.record(run_id)["session_id"]
            doors = [f"/api/runs/{run_id}/{what}" for what in ("events", "timeline", "state", "stream")]
            doors += [f"/api/ag-ui/runs/{run_id}/stream", f"/api/a2ui/runs/{run_id}/stream", f"/runs/{run_id}/export",
                      "/metrics", "/api/settings", "/api/actions", "/openapi.json", "/api/agents/keys", "/ready"]
            for door in doors:
                a = s.http.get(door)
                check(a.status in (200, 404) and a.body, door, a.status)
                check(CANARY not in a.body.decode(errors="replace"), door)
            for verb in (("show", run_id), ("show", run_id, "--json"), ("logs", run_id), ("logs", run_id, "--json"),
                         ("fixture", "record", run_id), ("config",), ("config", "--json"), ("agent", "show", "keys"), ("tools",),
                         ("ctl", "get_session", json.dumps({"session_id": session}))):
                out = run_uar(*verb, "--data", s.data)
                check(CANARY not in out.stdout + out.stderr, verb)
            for e in s.session_events(run_id):  # what lies beside the events
                for ref in re.findall(r"blob://([0-9a-f]{64})", json.dumps(e.data)):
                    check(CANARY.encode() not in s.http.get(f"/api/runs/{run_id}/blobs/{ref}").body, ref)
            s.stop()
            for folder, _, files in os.walk(s.data):
                for name in files:
                    path = os.path.join(folder, name)
                    with open(path, "rb") as f:
                        check(path == secret or CANARY.encode() not in f.read(), path)


@test("a_secret_may_be_a_credential_of_systemd", "SEC-02")
def credential():
    with Service() as web, tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "API_KEY"), "w", encoding="utf-8") as f:
            f.write(CANARY + "\n")
        tools = {"http": [{"name": "keyed", "url": web.url + "/echo", "headers": {"Authorization": "Bearer ${secret:API_KEY}"}}]}
        with Shop(scripted("keys", tools), env=env(CREDENTIALS_DIRECTORY=folder)) as s:
            done = ends(s, run(s, "keys", call("keyed")))
            equal((web.seen[0]["authorization"], done[0][2]["preview"]["authorization"]), ("Bearer " + CANARY, "Bearer <redacted>"))


@test("a_secret_goes_only_where_it_is_granted", "SEC-02")
def granted():
    key = CANARY + "/+?"
    keyed = {"headers": {"Authorization": "${secret:API_KEY}"}}
    with Service() as web:
        tools = {"http": [{"name": "coded", "url": web.url + "/coded", **keyed},
                          {"name": "away", "url": web.url.replace("127.0.0.1", "localhost") + "/echo", **keyed}]}
        grants = {"API_KEY": {"hosts": ["127.0.0.1"], "agents": ["good*"]}, "*": {}}
        with Shop(scripted("good", tools), scripted("bad", tools)) as s:
            s.stop()
            s.env.update(env(UAR_SECRET_API_KEY=key, UAR_SECRET_GRANTS=json.dumps(grants),
                             UAR_OUTBOUND_ALLOW="127.0.0.1,localhost"))
            s.start()
            good = run(s, "good", call("coded"), call("away"))
            done = ends(s, good)
            equal(web.seen[0]["authorization"], key)
            for name, value in done[0][2]["preview"].items():
                check(name == "hex" or "<redacted>" in value, (name, value))
            equal([d[2].get("failure_category") for d in done], [None, "policy_denied"], done)
            check("localhost" in done[1][2]["message"] and "secret_grants" in done[1][2]["message"], done[1])
            denied = ends(s, run(s, "bad", call("coded")))
            equal(denied[0][2]["failure_category"], "policy_denied", denied)
            check("agent bad" in denied[0][2]["message"], denied)
            equal(len(web.seen), 1, "nothing else was asked")
    out = subprocess.run([os.path.join(ROOT, "build", "uar"), "config"], capture_output=True, text=True, timeout=60,
                         env={**os.environ, "UAR_SECRET_GRANTS": '{"API_KEY": {"host": []}}'})
    check(out.returncode != 0 and "/API_KEY/host" in out.stderr, out)


@test("failures_of_services_are_told_apart", "")
def failures():
    with Service() as web:
        cases = {"bad": ("/status/400", "value_invalid"), "gone": ("/status/404", "value_invalid"),
                 "busy": ("/status/503", "dependency"), "limited": ("/status/429", "dependency"),
                 "locked": ("/status/401", "setup_missing"), "huge": ("/huge", "result_too_large"),
                 "silent": ("/silent", "timeout"), "odd": ("/echo", "execution"),
                 "strange": ("/away?to=gopher://127.0.0.1/", "value_invalid")}
        tools = {"http": [{"name": n, "url": web.url + path, **({"timeout_seconds": 0.3} if n == "silent" else {}),
                           **({"output_schema": {"required": ["nothing"]}} if n == "odd" else {})}
                          for n, (path, _) in cases.items()]
                 + [{"name": "nobody", "url": "http://127.0.0.1:1/"}]}
        with Shop(scripted("faults", tools), env=env()) as s:
            run_id = run(s, "faults", *(call(n) for n in cases), call("nobody"))
            got = {name: p.get("failure_category") for name, _, p in ends(s, run_id)}
            equal(got, {**{n: c for n, (_, c) in cases.items()}, "nobody": "dependency"})
            equal(s.record(run_id)["status"], "succeeded")


@test("refused_and_stopped_calls_are_told_apart", "")
def refused_calls():
    with Service() as web:
        tools = {"http": [{"name": "slow", "url": web.url + "/gate"},
                          {"name": "pay", "method": "POST", "url": web.url + "/pay"}]}
        agent = scripted("shop", tools, allow=["http:*", "internal:fs.*", "internal:math.*"], deny=["internal:math.*"])
        with Shop(agent, env=env()) as s:
            def categories(run_id):
                return [p.get("failure_category") for _, _, p in ends(s, run_id)]

            def answered(run_id, decision):
                action = wait_until(lambda: s.record(run_id).get("actions"), "a question")[0]
                equal(s.http.post("/api/control/respond_action", {"action_id": action["action_id"], "decision": decision,
                                                                  "reason": "not today"}).status, 200)
            run_id = run(s, "shop", call("internal__math_evaluate", expression="1"), call("internal__time_now"), call("nothing"),
                         call("fs.read", path="../uar.db"))
            equal(categories(run_id), ["not_surfaced", "not_surfaced", "unknown_tool", "sandbox_violation"])
            run_id = s.create("shop", call("pay"))
            answered(run_id, "deny")
            s.finish(run_id)
            equal(categories(run_id), ["rejected"])
            run_id = s.create("shop", call("slow"))
            wait_until(lambda: web.busy, "the tool is at work")
            equal(s.http.post(f"/api/runs/{run_id}/cancel", {}).status, 200)
            s.finish(run_id)
            equal(categories(run_id), ["cancelled"])
            equal([x["path"] for x in web.seen], ["/gate"], "what was refused asked nobody")


@test("no_tool_reaches_this_machine_unless_allowed", "")
def guard():
    with Service() as web:
        port = web.server_address[1]
        tools = {"http": [{"name": "inside", "url": f"http://localhost:{port}/"},
                          {"name": "meta", "url": "http://169.254.169.254/latest/meta-data/"},
                          {"name": "v6", "url": f"http://[::ffff:127.0.0.1]:{port}/"}]}
        with Shop(scripted("curious", tools)) as s:
            run_id = run(s, "curious", call("inside"), call("meta"), call("v6"))
            equal([p.get("failure_category") for _, _, p in ends(s, run_id)], ["sandbox_violation"] * 3)
            check("outbound_allow" in ends(s, run_id)[0][2]["message"], "it says what to do")
        equal(web.seen, [])
        # A host that is allowed must not lead on to one that is not.
        tools = {"http": [{"name": "away", "url": web.url + f"/away?to=http://127.0.0.2:{port}/"}]}
        with Shop(scripted("led", tools), env=env()) as s:
            run_id = run(s, "led", call("away"))
            equal([p.get("failure_category") for _, _, p in ends(s, run_id)], ["sandbox_violation"])
        equal(len(web.seen), 1)


@test("deny_wins_over_allow", "TOOL-08")
def policy():
    tools = {"http": [{"name": n, "url": "http://127.0.0.1:1/"} for n in ("one", "two")]}
    cases = (  # allow, deny, what the run has
        (["internal:*"], [], {"internal:time.now": True, "internal:fs.read": True, "http:one": False}),
        (["internal:*"], ["internal:fs.*"], {"internal:time.now": True, "internal:fs.read": False}),
        (["*"], ["http:one"], {"http:two": True, "http:one": False, "internal:fs.read": True}),
        (["http:*", "internal:math.*"], ["*:two"], {"http:one": True, "http:two": False, "internal:math.evaluate": True,
                                                     "internal:time.now": False}),
        (["internal:time.now"], ["*"], {"internal:time.now": False}),
        (["mcp:*"], [], {"internal:time.now": False, "http:one": False}),
    )
    args = {"internal:fs.read": {"path": "x"}, "internal:math.evaluate": {"expression": "1"}}
    agents = [scripted(f"p{i}", tools, allow=a, deny=d) for i, (a, d, _) in enumerate(cases)]
    with Shop(*agents, env=env()) as s:
        for i, (_, _, want) in enumerate(cases):
            run_id = run(s, f"p{i}", *(call(t.replace(":", "__").replace(".", "_"), **args.get(t, {})) for t in want))
            got = {}
            for e in (x.data for x in s.session_events(run_id)):
                if e["type"] == "tool.started":
                    got[e["payload"]["tool_id"]] = e["payload"]["policy"] != "denied"
            equal({k: got.get(k, False) for k in want}, want, (i, got))


@test("so_many_calls_run_at_once_and_no_more", "TOOL-09")
def concurrent():
    with Service() as web:
        tools = {"http": [{"name": "slow", "url": web.url + "/gate"}]}
        agents = [scripted(f"c{n}", tools, allow=["http:*"], max_concurrent=n) for n in (2, 3, 5)]
        with Shop(*agents, env=env()) as s:
            for n in (2, 3, 5):
                web.gate.clear()
                web.peak = 0
                run_id = s.create(f"c{n}", "\n".join(call("slow", i=i) for i in range(6)))
                with web.lock:
                    check(web.lock.wait_for(lambda: web.busy == n, SAFETY), "not enough run together", n)
                web.gate.set()
                s.events(run_id)
                equal((web.peak, s.record(run_id)["status"]), (n, "succeeded"))


@test("a_required_bundle_must_be_whole", "ART-17")
def bundles():
    def agent(name, required, *names):
        return scripted(name, {"bundles": [{"id": "office", "tools": list(names), "required": required}]})

    with Shop(agent("whole", True, "internal:time.now", "internal:math.*"),
              agent("lacking", True, "internal:time.now", "mcp:calendar/*"),
              agent("easy", False, "internal:time.now", "mcp:calendar/*")) as s:
        run_id = run(s, "whole", call("time.now"), call("fs.list"))
        equal([(n, k) for n, k, _ in ends(s, run_id)][0], ("time.now", "tool.result"))
        check(ends(s, run_id)[1][1] == "tool.failed", "only what the bundle names")
        answer = s.http.post("/api/runs", {"agent_id": "lacking", "inputs": {"message": "hi"}})
        equal(answer.status, 409)
        check(b"office" in answer.body and b"mcp:calendar/*" in answer.body, answer.body)
        equal(s.record(run(s, "easy", call("time.now")))["status"], "succeeded")


@test("overrides_narrow_and_guardrails_block", "ART-18")
def guardrails():
    tools = {
        "overrides": {"internal:math.evaluate": {
            "description": "Adds up small sums", "input_schema": {"properties": {"expression": {"maxLength": 5}}}}},
        "guardrails": [
            {"tools": ["internal:fs.*"], "deny_if": {"properties": {"path": {"pattern": "^private"}},
                                                     "required": ["path"]}, "reason": "private files"},
            {"tools": ["internal:time.now"], "max_calls": 1, "reason": "once is enough"},
            {"tools": ["internal:math.*"], "ask_if": {"properties": {"expression": {"const": "1/0"}}}},
        ]}
    with Shop(scripted("careful", tools, allow=["internal:*"])) as s:
        run_id = run(s, "careful", call("math.evaluate", expression="1+1"), call("math.evaluate", expression="1+1+1+1"),
                     call("fs.list", path="private"), call("fs.list", path="."), call("time.now"), call("time.now"))
        got = [p.get("failure_category") for _, _, p in ends(s, run_id)]
        equal(got, [None, "schema_invalid", "policy_denied", None, None, "policy_denied"], ends(s, run_id))
        check("private files" in ends(s, run_id)[2][2]["message"], ends(s, run_id)[2])
        run_id = s.create("careful", call("math.evaluate", expression="1/0"))
        wait_until(lambda: s.record(run_id)["engine_status"] == "waiting_permission", "somebody is asked")


@test("what_is_wrong_with_a_tools_file_is_told", "")
def tools_file():
    with Service() as web, Shop() as s:
        s.stop()
        path = os.path.join(s.root, "tools.json")
        s.settings["tools_file"] = path
        with open(path, "w") as f:
            json.dump({"http": [{"name": "everywhere", "url": web.url + "/all"}]}, f)
        s.env.update(env())
        s.start()
        listed = {t["tool_id"]: t for t in s.http.get("/api/tools").json["tools"]}
        equal((listed["http:everywhere"]["transport"], listed["http:everywhere"]["policy"]), ("http", "allowed"))
        equal(listed["internal:http.fetch"]["policy"], "ask")
        run_id = run(s, "tools", call("everywhere"))
        equal(ends(s, run_id)[0][1], "tool.result")
        s.stop()
        out = run_uar("check", "--data", s.data, "--tools-file", path)
        check(out.returncode == 0 and "1 tool is in " + path in out.stdout, out)
        with open(path, "w") as f:
            json.dump({"http": [{"name": "nowhere", "url": "ftp://x/"}]}, f)
        out = run_uar("check", "--data", s.data, "--tools-file", path)
        check(out.returncode == 1 and path + ", at /http/0/url" in out.stderr and "not usable" in out.stdout, out)
        out = run_uar("check", "--data", s.data, "--tools-file", path + ".not")
        check(out.returncode == 1 and "tools_file" in out.stderr, out)
        s.settings.pop("tools_file")
        s.start()


@test("a_call_of_a_definitions_own_tool_is_shown_and_made_again", "TOOL-04")
def own_tool_again():
    with Service() as web:
        tools = {"http": [{"name": "weather", "url": web.url + "/weather/{city}", "input_schema": {
            "type": "object", "required": ["city"], "properties": {"city": {"type": "string"}}}}]}
        with Shop(scripted("shop", tools), env=env()) as s:
            def uar(*argv):
                return run_uar(*argv, "--data", s.data)
            shown = uar("agent", "show", "shop").stdout
            check("http:weather" in shown, shown)
            inventory = s.http.get("/api/agents/shop/instance").json["tool_registry"]
            check("http:weather" in [t["tool_id"] for t in inventory["tools"]], inventory)
            run_id = run(s, "shop", call("weather", city="Rome"))
            (call_id,) = [e.data["tool_call_id"] for e in s.session_events(run_id) if e.data["type"] == "tool.started"]
            s.restart()
            out = uar("tool", "replay", run_id, call_id, "--json")
            equal(out.returncode, 0, out.stderr)
            got = json.loads(out.stdout)
            equal((got["equal"], got["tool_id"], got["arguments"]), (True, "http:weather", {"city": "Rome"}))
            equal(len(web.seen), 2, "the service was asked again")
            refused(s.http.post("/api/tools/call", {"tool_id": "http:weather", "arguments": {"city": "x"},
                                                    "agent_id": "shop", "revision": "0" * 64}), 404, "NOT_FOUND")
            refused(s.http.post("/api/tools/call", {"tool_id": "http:weather", "arguments": {"city": "x"}}), 404, "NOT_FOUND")


class Model(http.server.ThreadingHTTPServer):
    """A model that calls one tool with the arguments it was made with, then says that it is done."""
    daemon_threads = True

    def __init__(self, tool, arguments):
        super().__init__(("127.0.0.1", 0), ModelHandler)
        self.tool, self.arguments, self.asked, self.gate = tool, json.dumps(arguments), [], threading.Event()
        self.gate.set()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()

    @property
    def env(self):
        return {"OPENAI_BASE_URL": f"http://127.0.0.1:{self.server_address[1]}/v1", "OPENAI_API_KEY": "k",
                "UAR_MODEL": "one-call"}


class ModelHandler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append(request)
        if not self.server.gate.wait(60):
            return
        if not self.server.tool or request["messages"][-1]["role"] == "tool":
            delta, why = {"content": "done"}, "stop"
        else:
            delta, why = {"tool_calls": [{"index": 0, "id": "c1", "type": "function", "function": {
                "name": self.server.tool, "arguments": self.server.arguments}}]}, "tool_calls"
        chunks = [{"choices": [{"index": 0, "delta": delta}]}, {"choices": [{"index": 0, "delta": {},
                                                                            "finish_reason": why}]}]
        body = "".join(f"data: {json.dumps(c)}\n\n" for c in chunks) + "data: [DONE]\n\n"
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        with contextlib.suppress(BrokenPipeError):  # who asked was killed
            self.wfile.write(body.encode())


@test("arguments_that_are_secret_are_used_and_not_recorded", "SEC-06")
def secret_arguments():
    schema = {"type": "object", "properties": {"user": {"type": "string"}, "password": {"type": "string"},
                                               "pin": {"type": "string", "writeOnly": True},
                                               "note": {"type": "string", "x-sensitive": True}}}
    args = {"user": "bob", "password": CANARY + "-a", "pin": CANARY + "-b", "note": CANARY + "-c"}
    with Service() as web, Model("http__login", args) as model:
        # The service gives back all that it was sent.
        login = {"name": "login", "method": "POST", "url": web.url + "/login", "input_schema": schema}
        agent = definition("doorman", tools={"http": [login]})
        with Shop(agent, env=env(**model.env)) as s:
            run_id = s.create("doorman", "let him in")
            action = wait_until(lambda: s.record(run_id).get("actions"), "a question")[0]
            shown = [json.dumps(action)]
            s.kill()  # the real values must outlive the process
            s.start()
            answer = s.http.post("/api/control/respond_action", {"action_id": action["action_id"],
                                                                 "decision": "allow"})
            equal(answer.status, 200)
            shown += [json.dumps([e.data for e in s.events(run_id)]), json.dumps(s.record(run_id))]
            log = [e.data for e in s.session_events(run_id)]
            equal(s.record(run_id)["status"], "succeeded")
            equal(json.loads(web.seen[0]["body"]), args, "execution gets the real values")
            recorded = next(e["payload"]["args"] for e in log if e["type"] == "tool.args")
            equal(recorded, {"user": "bob", "password": "<redacted>", "pin": "<redacted>", "note": "<redacted>"})
            result = next(e["payload"]["preview"] for e in log if e["type"] == "tool.result")
            check("bob" in result["body"] and result["body"].count("<redacted>") == 3, result)
            shown += [json.dumps(log), s.log(), s.http.get(f"/api/ag-ui/runs/{run_id}/stream").body.decode()]
            s.stop()
            for text in shown:
                check(CANARY not in text, text[:2000])
            for folder, _, files in os.walk(s.data):
                for name in files:
                    with open(os.path.join(folder, name), "rb") as f:
                        check(CANARY.encode() not in f.read(), os.path.join(folder, name))


@test("what_was_hidden_in_an_output_is_told", "EVT-119")
def redacted():
    schema = {"type": "object", "properties": {"pin": {"type": "string", "writeOnly": True}, "pad": {"type": "string"}}}
    with Service() as web:
        key = {"Authorization": "Bearer ${secret:API_KEY}"}
        tools = {"http": [{"name": "keyed", "url": web.url + "/echo", "headers": key},
                          {"name": "both", "method": "POST", "url": web.url + "/login", "headers": key, "ask": False,
                           "input_schema": schema},
                          {"name": "plain", "url": web.url + "/echo"}]}
        with Shop(scripted("keys", tools), env=env(UAR_SECRET_API_KEY=CANARY)) as s:
            run_id = run(s, "keys", call("keyed"), call("both", pin="pin-4711-b", pad="x" * 20000), call("plain"))
            equal(s.record(run_id)["status"], "succeeded")
            events = s.session_events(run_id)
            check_session(events)
            log = [e.data for e in events]
            for e in log:
                check_payload(e)
            calls = [e["tool_call_id"] for e in log if e["type"] == "tool.started"]
            found = [e for e in log if e["type"] == "output.redacted"]
            equal([e["payload"]["owner"] for e in found], [{"kind": "tool", "id": i} for i in calls[:2]], "and not the third")
            equal(found[0]["payload"]["redactions"], [{"kind": "secret", "count": 1}])
            kinds = {r["kind"]: r["count"] for r in found[1]["payload"]["redactions"]}
            check(kinds.get("argument") == 1, kinds)
            # The second one is large: its bytes are beside the log, and the record of them says what they are.
            ref = found[1]["refs"]["output_ref"]
            check(ref == next(e["refs"]["output_ref"] for e in log if e["type"] == "output.spilled"), found[1])
            at = {(e["type"], e["payload"].get("owner", {}).get("id") or e.get("tool_call_id")): i for i, e in enumerate(log)}
            for i in calls[:2]:
                check(at["output.redacted", i] < at["tool.result", i], "told before the end shows it")
            thread = log[-1]["thread_id"]
            read = s.http.post("/api/control/get_thread_read", {"thread_id": thread}).json
            kept = [o for o in read["result"]["thread"]["outputs"] if o["output_ref"] == ref]
            equal([(o["status"], o["media_type"], o["bytes"] > 16000) for o in kept], [("redacted", "application/json", True)])
            body = s.http.get(f"/api/runs/{run_id}/blobs/" + ref.removeprefix("blob://")).body.decode()
            check("<redacted>" in body and CANARY not in body and "pin-4711-b" not in body, body[:300])


def keeps_nothing(s, shown):
    """The canary is in no answer, no log line and no file."""
    for text in shown:
        check(CANARY not in text, text[:2000])
    for folder, _, files in os.walk(s.data):
        for name in files:
            with open(os.path.join(folder, name), "rb") as f:
                check(CANARY.encode() not in f.read(), os.path.join(folder, name))


@test("inputs_that_are_secret_are_used_and_not_recorded", "SEC-06")
def secret_inputs():
    schema = {"type": "object", "properties": {"who": {"type": "string"}, "api_key": {"type": "string", "minLength": 12},
                                               "card": {"type": "object", "properties": {
                                                   "number": {"type": "string", "writeOnly": True}}},
                                               "token_count": {"type": "integer"}}}
    secret = {"who": "Ada", "api_key": CANARY + "-a", "card": {"number": CANARY + "-b", "kind": "gold"}, "token_count": 7}
    agent = definition("clerk", schemas={"inputs": schema},
                       prompt={"template": "{{message}} for {{who}} with {{api_key}}", "variables": {"who": {}, "api_key": {}}})
    with Model(None, {}) as model, Shop(agent, env=env(**model.env)) as s:
        def asked(n):
            wait_until(lambda: len(model.asked) >= n, "the model is asked")
            return json.dumps(model.asked[n - 1]["messages"])
        shown = []

        def told(run_id, n):
            prompt = asked(n)
            for value in ("-a", "-b"):
                check(CANARY + value in prompt, "execution gets the real value", prompt)
            log = [e.data for e in s.session_events(run_id)]
            parts = next(e["payload"]["input_parts"] for e in log if e["type"] == "turn.submitted" and e["run_id"] == run_id)
            first = next(json.loads(x["preview"]) for x in parts if x["type"] == "json")
            equal((first["api_key"], first["card"]), ("<redacted>", {"number": "<redacted>", "kind": "gold"}))
            equal(first["token_count"], 7, "its name is no secret's")
            shown.extend([json.dumps(log), json.dumps(s.record(run_id)), json.dumps([e.data for e in s.events(run_id)])])
        # A run that is killed while its model is asked asks again, with the same values.
        model.gate.clear()
        run_id = s.create("clerk", "a seat", inputs=secret)
        asked(1)
        s.kill()
        model.gate.set()
        s.start()
        s.finish(run_id)
        told(run_id, 2)
        # Other doors.
        a = s.http.post("/api/control/submit_turn", {"agent_id": "clerk", "message": "a seat", "options": {"inputs": secret}})
        run_id = a.json["result"]["run_id"]
        shown.append(a.body.decode())
        s.finish(run_id)
        told(run_id, 3)
        a = s.http.post("/api/ag-ui/agents/clerk", {"threadId": "t", "runId": "r", "messages": [
            {"id": "u", "role": "user", "content": "a seat"}], "forwardedProps": {"inputs": secret}})
        equal(a.status, 200, a.body)
        shown.append(a.body.decode())
        told(s.http.get("/api/runs?limit=1").json["runs"][0]["run_id"], 4)
        got = Modern(s).ask("tools/call", {"name": "agent_clerk", "arguments": {"message": "a seat", "inputs": secret}})
        shown.append(json.dumps(got))
        told(s.http.get("/api/runs?limit=1").json["runs"][0]["run_id"], 5)
        # Another attempt has the values of the first one; so has who gives back what was recorded.
        a = s.http.post(f"/api/runs/{run_id}/retry", {})
        equal(a.status, 202, a.body)
        s.finish(a.json["run_id"])
        told(a.json["run_id"], 6)
        equal(s.finish(s.create("demo", "x", inputs={"password": CANARY}))["status"], "succeeded")
        # What the schema wants is wanted of the real value, and a stranger's seal opens nothing.
        for inputs, where in (({**secret, "api_key": "short"}, "/inputs/api_key"), ({**secret, "$sealed": "AAAA"}, "/inputs/$sealed")):
            a = s.http.post("/api/runs", {"agent_id": "clerk", "inputs": {"message": "x", **inputs}})
            refused(a, 400, "VALIDATION_ERROR", where)
            shown.append(a.body.decode())
        shown.append(s.log())
        s.stop()
        keeps_nothing(s, shown)


if __name__ == "__main__":
    main()
