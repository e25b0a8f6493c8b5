#!/usr/bin/env python3
"""UAR as an MCP server: both eras at /mcp, the hybrid routes, resumption, cancellation."""
import json
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor

from lib import ROOT, SAFETY, UAR, Server, Stream, check, equal, main, refused, send_raw, test, wait_until
from lib.npm import modules, node
from lib.server import clean_environment
from lib.mcp import BOTH, LEGACY, META, MODERN, Modern, Session, frames

SLOW = {"UAR_SCRIPTED_TOKEN_MS": "60000"}
SPOKEN = {"UAR_SCRIPTED_TOKEN_MS": "5"}  # pieces come apart: a client drops a progress that comes with the answer


def runs(s):
    return s.http.get("/api/runs").json["runs"]


def the_run(s):
    return wait_until(lambda: runs(s), "a run")[0]


@test("legacy_client_initializes_lists_and_calls", "MCP-08")
def legacy():
    with Server() as s:
        for version in ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"):
            equal(Session(s, version).hello["protocolVersion"], version)
        c = Session(s, "1999-01-01")
        equal(c.hello["protocolVersion"], LEGACY, "an unknown revision gets the newest")
        equal(c.ask("ping"), {})
        tools = {t["name"]: t for t in c.ask("tools/list")["tools"]}
        check("agent_echo" in tools and "internal__time_now" in tools, sorted(tools))
        got = c.ask("tools/call", {"name": "agent_echo", "arguments": {"message": "hello there"}})
        equal(got["content"][0]["text"], "hello there")
        equal(got["structuredContent"]["status"], "succeeded")
        record = c.ask("resources/read", {"uri": "uar://runs/" + got["structuredContent"]["run_id"]})
        equal(json.loads(record["contents"][0]["text"])["status"], "succeeded")
        check([r for r in c.ask("resources/list")["resources"] if r["name"] == got["structuredContent"]["run_id"]])
        equal(c.error("resources/read", {"uri": "uar://runs/none"})["code"], -32002)
        sums = c.ask("tools/call", {"name": "internal__math_evaluate", "arguments": {"expression": "6*7"}})
        check("42" in sums["content"][0]["text"], sums)
        bad = c.ask("tools/call", {"name": "internal__math_evaluate", "arguments": {}})
        check(bad["isError"], bad)
        check(c.ask("tools/call", {"name": "agent_echo", "arguments": {}})["isError"])
        equal(c.error("tools/call", {"name": "nothing"})["code"], -32602)
        equal(c.error("no/such/method")["code"], -32601)
        check(c.ask("prompts/list")["prompts"])
        equal(c.ask("prompts/get", {"name": "demo", "arguments": {"message": "hi"}})["messages"][-1]["content"]["text"],
              "hi")
        equal(s.http.send("DELETE", "/mcp", headers=c.headers()).status, 204)
        equal(c.post("ping").status, 404)


@test("heads_are_checked_before_messages", "")
def heads():
    with Server() as s:
        c = Session(s)
        equal(s.http.post("/mcp", c.message("ping"), headers={"Accept": BOTH}).status, 400, "no session")
        equal(c.post("ping", **{"Mcp-Session-Id": "nothing"}).status, 404)
        equal(c.post("ping", **{"MCP-Protocol-Version": "1999-01-01"}).status, 400)
        equal(c.post("ping", **{"Accept": "text/html"}).status, 406)
        equal(c.post("ping", **{"Origin": "http://evil.example"}).status, 403)
        equal(c.post("ping", **{"Host": "evil.example"}).status, 403)
        equal(s.http.post("/mcp", c.message("ping"), headers=c.headers(), token=False).status, 401)
        equal(s.http.post("/mcp", b"{", headers=c.headers()).json["error"]["code"], -32700)
        equal(s.http.post("/mcp", b"[]", headers=c.headers()).json["error"]["code"], -32600)
        equal(s.http.post("/mcp/", c.message("ping"), headers=c.headers()).json["result"], {})
        equal(s.http.send("GET", "/mcp/", headers={"MCP-Protocol-Version": MODERN, "Accept": BOTH}).status, 405)
        equal(s.http.send("GET", "/mcp", headers={"MCP-Protocol-Version": MODERN, "Accept": BOTH}).status, 405)
        m = Modern(s)
        equal(m.post("tools/list", **{"Mcp-Method": "tools/call"}).json["error"]["code"], -32020)
        equal(m.post("ping").status, 404)
        old = s.http.post("/mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": {
            META + "protocolVersion": "2099-01-01", META + "clientCapabilities": {}}}},
            headers=m.headers("tools/list", **{"MCP-Protocol-Version": "2099-01-01"}))
        equal((old.status, old.json["error"]["code"], old.json["error"]["data"]["supported"]), (400, -32022, [MODERN]))


@test("calls_and_messages_have_limits", "MCP-08")
def limits():
    with Server(env=SLOW) as s:
        c = Session(s)
        call = {"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "agent_demo", "arguments": {"message": "x"}}}

        def begin(n):
            return s.http.post(f"/api/mcp/sessions/{c.id}/messages", {**call, "id": n})
        with ThreadPoolExecutor(16) as clients:  # one after the other they would take the grace of an answer each
            equal(set(clients.map(lambda n: begin(n).status, range(256))), {202}, "so many are under way")
        a = begin(256)
        equal((a.status, a.json["error"]["data"]), (429, {"code": "RATE_LIMITED", "retryable": True}))
        equal(len(s.http.get("/api/runs?limit=500").json["runs"]), 256)
        equal(c.ask("ping"), {}, "the others are answered")
        c.notify("notifications/cancelled", {"requestId": 0})
        wait_until(lambda: begin(257).status == 202, "a place is free")
        values = b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":[' + b"0," * 300000 + b"0]}}"
        equal(s.http.post("/mcp", values, headers=c.headers()).json["error"]["code"], -32700)
        head = f"POST /mcp HTTP/1.1\r\nHost: {s.url.split('/')[2]}\r\nAuthorization: Bearer {s.token}\r\nContent-Type: application/json\r\n"
        check(send_raw(s.url, (head + "Content-Length: 5000000\r\n\r\n").encode()).startswith(b"HTTP/1.1 413 "), "4 MiB are the most")
        for r in s.http.get("/api/runs?limit=500").json["runs"]:
            s.http.post(f"/api/runs/{r['run_id']}/cancel", {})


@test("modern_client_discovers_and_calls", "")
def modern():
    with Server() as s:
        m = Modern(s)
        equal(m.ask("server/discover")["supportedVersions"], [MODERN])
        tools = m.ask("tools/list")
        check(tools["ttlMs"] >= 0 and tools["cacheScope"] == "private", tools)
        check([t for t in tools["tools"] if t["name"] == "agent_echo"])
        got = m.ask("tools/call", {"name": "agent_echo", "arguments": {"message": "one"}})
        equal(got["content"][0]["text"], "one")
        answer = m.post("tools/call", {"name": "agent_demo", "arguments": {"message": "one two three"}},
                        {"progressToken": "p"})
        parts = [f for _, f in frames(answer.body)]
        equal({p["params"]["progressToken"] for p in parts[:-1]}, {"p"})
        equal(parts[-1]["result"]["structuredContent"]["status"], "succeeded")


@test("modern_client_cancels_by_leaving", "MCP-07")
def modern_cancel():
    with Server(env=SLOW) as s:
        stream = Modern(s).open("tools/call", {"name": "agent_demo", "arguments": {"message": "a b c"}},
                                progressToken=1)
        next(iter(stream))
        stream.close()
        wait_until(lambda: the_run(s)["status"] == "canceled", "the run is cancelled")


@test("a_message_is_answered_with_200_or_202", "API-07 API-08 API-09 MCP-05 MCP-08")
def hybrid():
    with Server() as s:
        opened = s.http.post("/api/mcp/sessions", {"protocolVersion": LEGACY, "capabilities": {}})
        equal(opened.status, 201, opened.body)
        session = opened.json
        equal(opened.headers["mcp-session-id"], session["session_id"])
        equal(session["result"]["protocolVersion"], LEGACY)

        def send(message, **headers):
            return s.http.post(session["messages_url"], message, headers={"Accept": "application/json", **headers})

        quick = send({"jsonrpc": "2.0", "id": "q", "method": "tools/list"})
        equal((quick.status, quick.json["id"]), (200, "q"))
        fast = send({"jsonrpc": "2.0", "id": 5, "method": "tools/call",
                     "params": {"name": "agent_echo", "arguments": {"message": "short"}}})
        slow = send({"jsonrpc": "2.0", "id": 6, "method": "tools/call", "params": {
            "name": "agent_tools", "arguments": {"message": 'tool fs.write {"path":"a.txt","text":"x"}'}}})
        equal(slow.status, 202, slow.body)
        check(slow.json["accepted"])
        action = wait_until(lambda: [r for r in runs(s) if s.record(r["run_id"]).get("actions")], "a question")
        equal(s.http.post("/api/control/respond_action", {
            "action_id": s.record(action[0]["run_id"])["actions"][0]["action_id"], "decision": "allow"}).status, 200)
        stream = Stream(s.url, session["events_url"], s.token)
        want = {6} if fast.status == 200 else {5, 6}
        got = {}
        while set(got) != want:
            event = next(iter(stream))
            got[event.data["id"]] = (event.id, event.data)
        stream.close()
        equal(got[6][1]["result"]["structuredContent"]["status"], "succeeded")
        again = Stream(s.url, session["events_url"] + "?after=0", s.token)
        equal(next(iter(again)).data["id"], sorted(got)[0], "a reader who comes later has all of it")
        again.close()
        equal(send({"jsonrpc": "2.0", "method": "notifications/initialized"}).status, 202)
        refused(s.http.get("/api/mcp/sessions/nothing/events"), 404, "NOT_FOUND")
        equal(s.http.send("DELETE", "/api/mcp/sessions/" + session["session_id"]).status, 204)
        equal(send({"jsonrpc": "2.0", "id": 7, "method": "ping"}).status, 404)


@test("a_call_is_cancelled_by_notification", "RUN-08 MCP-07")
def cancelled():
    with Server(env=SLOW) as s:
        c = Session(s)
        for how in ("notifications/cancelled", "$/cancelRequest"):
            stream = c.open("tools/call", {"name": "agent_demo", "arguments": {"message": "a b c"}})
            run = wait_until(lambda: [r for r in runs(s) if r["status"] == "running"], "a run")[0]
            equal(c.notify(how, {"requestId" if how[0] == "n" else "id": c.count, "reason": "enough"}).status, 202)
            wait_until(lambda r=run: s.record(r["run_id"])["status"] == "canceled", "the run is cancelled")
            messages = [e.data for e in stream if e.text]
            equal([m["error"]["code"] for m in messages], [] if how[0] == "n" else [-32800])
            check(stream.ended, "the stream ends")


@test("a_stream_is_resumed_after_a_cut_and_after_a_kill", "MCP-08")
def resumed():
    with Server() as s:
        c = Session(s)
        ask = {"name": "agent_tools", "arguments": {"message": 'tool fs.write {"path":"a.txt","text":"x"}'}}
        stream = c.open("tools/call", ask)
        primed = next(iter(stream))
        equal(primed.text, "", "the first event has an id and no data")
        stream.close()
        run_id = wait_until(lambda: [r for r in runs(s) if s.record(r["run_id"]).get("actions")], "asks")[0]["run_id"]
        s.kill()
        s.start()
        wait_until(lambda: s.record(run_id).get("actions"), "the question again")
        again = c.listen(primed.id)
        equal(s.http.post("/api/control/respond_action", {
            "action_id": s.record(run_id)["actions"][0]["action_id"], "decision": "allow"}).status, 200)
        got = [e.data for e in again]
        equal(len(got), 1, got)
        equal((got[0]["id"], got[0]["result"]["structuredContent"]["run_id"]), (c.count, run_id))
        check(again.ended)
        equal([e.data for e in c.listen(primed.id)], got, "a replay says the same")
        equal(len(runs(s)), 1, "the call was made once")


def pipe(s):
    """A client that starts its server: the process, and how it speaks and hears."""
    p = subprocess.Popen([UAR, "mcp", "serve", "--data", s.data], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                         env=clean_environment(s.root))

    def say(**message):
        p.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        p.stdin.flush()

    def hear():
        return json.loads(p.stdout.readline())

    return p, say, hear


@test("over_pipes_a_client_outlives_a_restart_of_its_server", "")
def pipes_survive():
    with Server() as s:
        p, say, hear = pipe(s)
        say(id=1, method="initialize", params={"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {}})
        hear()
        say(method="notifications/initialized")
        write = {"name": "agent_tools", "arguments": {"message": 'tool fs.write {"path":"a.txt","text":"x"}'}}
        say(id="old", method="tools/call", params=write)
        run_id = wait_until(lambda: [r for r in runs(s) if s.record(r["run_id"]).get("actions")], "asks")[0]["run_id"]
        say(id="new", method="tools/call", params=Modern(s).envelope(write))
        wait_until(lambda: len(runs(s)) == 2, "the second call")
        s.kill()
        answer = hear()
        equal((answer["id"], answer["error"]["code"]), ("new", -32603))
        say(id="list", method="tools/list")
        s.start()
        check("agent_echo" in [t["name"] for t in hear()["result"]["tools"]], "what was asked meanwhile is answered")
        wait_until(lambda: s.record(run_id).get("actions"), "the question again")
        equal(s.http.post("/api/control/respond_action", {
            "action_id": s.record(run_id)["actions"][0]["action_id"], "decision": "allow"}).status, 200)
        answer = hear()
        equal((answer["id"], answer["result"]["structuredContent"]["run_id"]), ("old", run_id), "the call goes on")
        before = {r["run_id"] for r in runs(s)}
        say(id="cut", method="tools/call", params=Modern(s).envelope(write))
        run = wait_until(lambda: [r for r in runs(s) if r["run_id"] not in before], "a run")[0]
        say(method="$/cancelRequest", params={"id": "cut"})
        equal(hear()["error"]["code"], -32800)
        wait_until(lambda: s.record(run["run_id"])["status"] == "canceled", "the run is cancelled")
        p.stdin.close()
        equal(p.wait(), 0)
        p.stdout.close()


@test("over_pipes_a_lost_session_is_opened_again", "")
def pipes_reopen():
    with Server() as s:
        p, say, hear = pipe(s)
        say(id=1, method="initialize", params={"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {}})
        hear()
        write = {"name": "agent_tools", "arguments": {"message": 'tool fs.write {"path":"a.txt","text":"x"}'}}
        say(id="lost", method="tools/call", params=write)
        wait_until(lambda: [r for r in runs(s) if s.record(r["run_id"]).get("actions")], "asks")
        s.kill()
        for name in os.listdir(s.data):  # another server, which knows nothing of it
            if name != "token" and os.path.isfile(os.path.join(s.data, name)):
                os.unlink(os.path.join(s.data, name))
        s.start()
        answer = hear()
        equal((answer["id"], answer["error"]["code"]), ("lost", -32603), answer)
        say(id="list", method="tools/list")
        answer = hear()
        check("result" in answer, answer)
        p.stdin.close()
        equal(p.wait(), 0)
        p.stdout.close()


@test("a_client_that_starts_its_server_speaks_over_pipes", "")
def over_pipes():
    with Server() as s:
        p, say, hear = pipe(s)
        say(id=1, method="initialize", params={"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {}})
        equal(hear()["result"]["serverInfo"]["name"], "uar")
        say(method="notifications/initialized")
        say(id=2, method="tools/list")
        check("agent_echo" in [t["name"] for t in hear()["result"]["tools"]])
        say(id="call", method="tools/call", params={"name": "agent_echo", "arguments": {"message": "hello"}})
        answer = hear()
        equal((answer["id"], answer["result"]["content"][0]["text"]), ("call", "hello"))
        say(id=4, method="tools/call", params=Modern(s).envelope({"name": "agent_echo", "arguments": {"message": "new"}}))
        answer = hear()
        equal((answer["id"], answer["result"]["resultType"]), (4, "complete"))
        say(id=3, method="nothing")
        equal(hear()["error"]["code"], -32601)
        p.stdin.close()
        equal(p.wait(), 0, "it ends with its input")
        p.stdout.close()


def judged(s, kind, *where):
    judge = os.path.join(ROOT, "tests", "e2e", "mcp_judge.mjs")
    p = subprocess.run([node(), judge, modules("mcp"), kind, *where], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                       text=True, timeout=SAFETY, env={**os.environ, **clean_environment(s.root)})
    equal(p.returncode, 0, p.stderr)
    got = json.loads(p.stdout)
    check("agent_echo" in got["tools"], got)
    equal((got["text"], got["prompt"], got["isError"]), ("hello", "hi", True))
    equal(got["era"], "modern" if kind == "v2-auto" else "legacy", got)
    check(got["progress"] > 0, got)
    equal((got["asked"], got["told"], got["written"]), (["decision"], "succeeded", "succeeded"))


@test("official_clients_of_both_versions_call_and_are_asked", "MCP-08")
def official():
    with Server(env=SPOKEN) as s:
        for kind in ("v1", "v2-legacy", "v2-auto"):
            judged(s, kind, s.url + "/mcp", s.token)


@test("official_clients_start_uar_as_their_server", "MCP-08")
def official_pipes():
    with Server(env=SPOKEN) as s:
        for kind in ("v1", "v2-legacy", "v2-auto"):
            judged(s, kind, UAR, "", "mcp", "serve", "--data", s.data)


if __name__ == "__main__":
    main()
