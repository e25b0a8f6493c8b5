#!/usr/bin/env python3
"""MCP servers that are put, listed, imported, brought along by agents, and logged in at."""
import contextlib
import glob
import http.server
import json
import os
import stat
import subprocess
import sys
import threading

from lib import UAR, check, equal, main, test, wait_until
from lib.mcp_host import AGENT, LOOPBACK, Host, browse, connected, delete, log_file, of, pipes, put, state
from lib.mcp_mock import HttpMock, asked
from lib.mcp_oauth import OauthMock


def uar(s, *words):
    return subprocess.run([UAR, "mcp", words[0], "--data", s.data, *words[1:]], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          env={**os.environ, **s.env}, check=False)


@test("a_server_is_put_used_and_removed", "MCP-01 MCP-03")
def rows():
    log = log_file("a")
    with HttpMock(log) as web, Host({"fixed": pipes(log_file("b"))}, **LOOPBACK) as s:
        server = {"url": web.url, "headers": {"X-Key": "very-secret"}, "ask": False}
        answer = put(s, "/api/mcp/servers/web", server)
        equal(answer.status, 201, answer.body)
        shown = connected(s, "web")
        equal((shown["origin"], shown["tools"], shown["server"]["headers"]), ("database", 6, {"X-Key": "<redacted>"}))
        check("very-secret" not in json.dumps(s.http.get("/api/mcp/servers").json), "keys are not shown")
        equal(len(of(s.finished('tool mcp__web_add {"a":1,"b":2}'), "tool.result")), 1)
        equal(asked(log, "tools/call")[0]["headers"]["x-key"], "very-secret")
        equal(put(s, "/api/mcp/servers/web", server).status, 200)
        equal(put(s, "/api/mcp/servers/fixed", server).json["code"], "CONFLICT")
        equal(delete(s, "/api/mcp/servers/fixed").status, 403)
        for back in (shown["server"], {"url": web.url, "oauth": {"client_id": "a", "client_secret": "<redacted>"}}):
            refused = put(s, "/api/mcp/servers/web", back)
            equal(refused.status, 400, refused.body)
            check("not shown" in refused.body.decode(), refused.body)
        refused = put(s, "/api/mcp/servers/bad", {"url": "ftp://x"})
        equal(refused.status, 400, refused.body)
        check("http or https" in refused.body.decode(), refused.body)
        s.kill()
        s.start()
        connected(s, "web")
        equal(delete(s, "/api/mcp/servers/web").status, 200)
        equal(state(s, "web")["code"], "NOT_FOUND")
        check(not [t for t in s.tools() if t.startswith("mcp:web/")], s.tools())
        s.kill()
        s.start()
        s.ready()
        equal(s.http.get("/api/mcp/servers/web").status, 404)


def looked_through(s, canary):
    """No file of the data directory has it, and no door shows it."""
    for path, _, files in os.walk(s.data):
        for name in files:
            with contextlib.suppress(FileNotFoundError), open(os.path.join(path, name), "rb") as f:  # it may have a new name
                check(canary.encode() not in f.read(), os.path.join(path, name))
    for door in ("/api/mcp/servers", "/api/mcp/servers/web", "/api/tools", "/api/agents", "/api/admin/settings", "/metrics"):
        answer = s.http.get(door)
        check(answer.status == 200 and canary not in answer.body.decode(), door, answer.status)
    for words in (("list",), ("list", "--json")):
        done = uar(s, *words)
        check(done.returncode == 0 and canary not in done.stdout, done.stdout)
    check(canary not in s.log(), "the log")


@test("a_key_of_a_server_is_kept_sealed", "")
def sealed_rows():
    log, canary = log_file("a"), "canary-5d1f0e"
    with HttpMock(log) as web, Host({}, mcp_commands="true", env={"MCP_KEY": "given-1"}, **LOOPBACK) as s:
        headers = {"X-Key": canary, "X-Given": "${MCP_KEY}", "X-Both": "${MCP_KEY}" + canary, "X-Secret": "${secret:NAME}"}
        server = {"url": web.url, "headers": headers, "oauth": {"client_id": "a", "client_secret": canary + "-2"}, "ask": False}
        answer = put(s, "/api/mcp/servers/web", server)
        equal(answer.status, 201, answer.body)
        check(canary not in answer.body.decode(), answer.body)
        shown = {"X-Key": "<redacted>", "X-Given": "${MCP_KEY}", "X-Both": "<redacted>", "X-Secret": "${secret:NAME}"}
        for start in range(2):
            equal(connected(s, "web")["server"]["headers"], shown)
            events = s.finished('tool mcp__web_add {"a":1,"b":2}')
            equal(len(of(events, "tool.result")), 1)
            check(canary not in json.dumps(events), "the session")
            sent = asked(log, "tools/call")[start]["headers"]
            equal((sent["x-key"], sent["x-given"], sent["x-both"]), (canary, "given-1", "given-1" + canary))
            looked_through(s, canary)
            s.kill()
            s.start()
        refused = put(s, "/api/mcp/servers/web", {**server, "headers": shown})
        equal(refused.status, 400, refused.body)
        connected(s, "web")
        looked_through(s, canary)


@test("what_is_put_may_not_reach_inside_nor_see_keys", "")
def guarded():
    log = log_file("a")
    with HttpMock(log) as web, Host({}, mcp_commands="true", env={"OTHER_KEY": "secret-1", "MCP_KEY": "given-1"}) as s:
        put(s, "/api/mcp/servers/web", {"url": web.url})
        wait_until(lambda: state(s, "web")["state"] == "failed", "it is refused")
        equal(asked(log), [])
        put(s, "/api/mcp/servers/pipe", pipes(log, env={"A": "${OTHER_KEY}", "B": "${MCP_KEY}"}))
        pid = None
        connected(s, "pipe")
        for path in glob.glob("/proc/[0-9]*/environ"):
            try:
                with open(path, "rb") as f:
                    env = f.read().split(b"\0")
                if b"B=given-1" in env:
                    pid = path
                    check(b"A=" in env and b"A=secret-1" not in env, env)
            except OSError:
                continue
        check(pid, "the child was looked at")


@test("only_files_start_programs_and_name_variables", "")
def programs():
    log, ran = log_file("a"), log_file("ran")
    touch = {"command": "touch", "args": [ran]}
    with Host({}, env={"MCP_KEY": "given-1"}, **LOOPBACK) as s:
        for body in (touch, {"url": "http://127.0.0.1:9/", "headers": {"X": "${MCP_KEY}"}}):
            refused = put(s, "/api/mcp/servers/mine", body)
            equal((refused.status, refused.json["code"]), (403, "FORBIDDEN"), refused.body)
            check("mcp_commands" in refused.body.decode(), refused.body)
        done = uar(s, "add", "mine", "--", "touch", ran)
        check(done.returncode != 0 and "mcp_commands" in done.stdout, done.stdout)
        agent = {**AGENT, "id": "bringer", "tools": {"mcp": [{"server": "x"}, {"name": "own", **touch}]}}
        refused = put(s, "/api/agents/bringer", agent)
        equal((refused.status, refused.json["code"]), (403, "FORBIDDEN"), refused.body)
        check("/tools/mcp/1" in refused.body.decode(), refused.body)
        agent["tools"] = {"mcp": [{"name": "own", **pipes(log, env={"B": "${MCP_KEY}"})}]}
        s.write("agents/bringer.json", agent)
        connected(s, "own")
        check(not os.path.exists(ran), "nothing was started")


@test("a_registry_starts_no_programs", "")
def registry():
    ran, log = log_file("ran"), log_file("a")
    agent = {**AGENT, "id": "far", "tools": {"mcp": [{"name": "far", "command": "touch", "args": [ran]}]}}

    class Feed(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            body = json.dumps({"agents": [agent]}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format, *args):
            pass

    web = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Feed)
    threading.Thread(target=web.serve_forever, daemon=True).start()
    try:
        with Host({"fixed": pipes(log)}, agents_url=f"http://127.0.0.1:{web.server_address[1]}/", **LOOPBACK) as s:
            wait_until(lambda: s.http.get("/api/agents/far").status == 200, "it is listed")
            wait_until(lambda: "mcp.not_used" in s.log(), "its server is refused")
            connected(s, "fixed")
            equal(s.http.get("/api/mcp/servers/far").status, 404)
            check(not os.path.exists(ran), "nothing was started")
    finally:
        web.shutdown()
        web.server_close()


@test("programs_add_list_import_and_remove_servers", "")
def command_line():
    log = log_file("a")
    table = {"mcpServers": {"other": {"type": "stdio", **pipes(log), "alwaysAllow": []}, "worse": {"args": []}}}
    path = log_file("claude.json")
    with open(path, "w", encoding="utf-8") as f:
        json.dump(table, f)
    with Host({}, mcp_commands="true", **LOOPBACK) as s:
        done = uar(s, "add", "mine", "--with", '{"read_only":["say"]}', "--", sys.executable, pipes(log)["args"][0], log)
        equal(done.returncode, 0, done.stdout)
        equal(uar(s, "test", "mine").returncode, 0)
        done = uar(s, "import", path)
        equal(done.returncode, 1, "one of them is wrong")
        check("other" in done.stdout and "worse" in done.stdout, done.stdout)
        connected(s, "other")
        listed = uar(s, "list").stdout
        check("mine\t" in listed and "other\t" in listed and "connected\t6 tools" in listed, listed)
        equal(s.tools()["mcp:mine/say"]["effect"], "read_only")
        equal(uar(s, "remove", "mine").returncode, 0)
        check("mine\t" not in uar(s, "list").stdout)


@test("an_agent_brings_its_server_along", "")
def definitions():
    logs = [log_file("a"), log_file("b")]
    own = {**AGENT, "id": "bringer", "policy": {"provider": AGENT["policy"]["provider"]},
           "tools": {"mcp": [{"name": "own", **pipes(logs[0], ask=False)}, {"server": "shared", "tools": ["say"]}]}}
    with Host({"shared": pipes(logs[1], ask=False)}, mcp_commands="true") as s:
        equal(put(s, "/api/agents/bringer", own).status, 201)
        equal(connected(s, "own")["agent_id"], "bringer")
        run_id = s.create("bringer", "tool mcp__own_say\nthen\ntool mcp__shared_say\nthen\ntool mcp__shared_add {\"a\":1,\"b\":1}")
        wait_until(lambda: s.record(run_id)["status"] == "succeeded", "the run ends")
        events = [e.data for e in s.session_events(run_id)]
        equal([e["tool_id"] for e in of(events, "tool.started")][:2], ["mcp:own/say", "mcp:shared/say"])
        equal(len(of(events, "tool.result")), 2, "of the shared server one tool is meant")
        equal(len(of(s.finished("tool mcp__own_say"), "tool.result")), 0, "it is nobody else's")
        without = {k: v for k, v in own.items() if k != "tools"}
        equal(put(s, "/api/agents/bringer", without).status, 200)
        wait_until(lambda: s.http.get("/api/mcp/servers/own").status == 404, "it goes with the definition")


@test("a_server_of_the_same_name_is_not_lent", "")
def same_name():
    log = log_file("a")

    def agent(name, server):
        return {**AGENT, "id": name, "tools": {"mcp": [server]}}
    with Host({}) as s:
        s.write("agents/ann.json", agent("ann", {"name": "notes", **pipes(log, ask=False)}))
        equal(connected(s, "notes")["agent_id"], "ann")
        s.write("agents/bob.json", agent("bob", {"name": "notes", **pipes(log_file("b"), "modern", ask=False)}))
        s.write("agents/cid.json", agent("cid", {"server": "notes"}))
        for name, results in (("ann", 1), ("bob", 0), ("cid", 0)):
            wait_until(lambda name=name: s.http.get("/api/agents/" + name).status == 200, "it is read")
            run_id = s.create(name, "tool mcp__notes_say")
            wait_until(lambda run_id=run_id: s.record(run_id)["status"] in ("succeeded", "failed"), "the run ends")
            events = [e.data for e in s.session_events(run_id)]
            equal(len(of(events, "tool.result")), results, name)
            if name == "bob":
                shown = {t["tool_id"]: t for c in of(events, "tool.catalog.resolved") for t in c["tools"]}
                equal(shown["mcp:notes/say"]["policy"], "unavailable", shown["mcp:notes/say"])
        equal(len(asked(log, "tools/call")), 1)


@test("a_question_names_the_server_of_its_tool", "")
def question_names_server():
    with Host({"one": pipes(log_file("a")), "two": pipes(log_file("b"))}) as s:
        for server in ("one", "two"):
            run_id = s.run(f'tool mcp__{server}_add {{"a":1,"b":2,"path":"/etc/x"}}')
            equal(s.asks(run_id)["prompt"], f"mcp:{server}/add: /etc/x")


@test("a_grant_does_not_outlive_its_server", "")
def grant_of_server():
    with Host({}, mcp_commands="true") as s:
        put(s, "/api/mcp/servers/ok", pipes(log_file("a")))
        connected(s, "ok")
        call = 'tool mcp__ok_add {"a":1,"b":2}'
        asked_first = s.asks(s.run(call))
        s.http.post("/api/control/respond_action", {"action_id": asked_first["action_id"], "decision": "allow_always"})
        run_id = s.run(call)
        equal(s.finish(run_id)["status"], "succeeded", "the grant holds")
        for body in (pipes(log_file("b")), pipes(log_file("c"), "asks")):
            delete(s, "/api/mcp/servers/ok")
            put(s, "/api/mcp/servers/ok", body)
            connected(s, "ok")
            check(s.asks(s.run(call)), "another program is asked about")


@test("an_agent_narrows_the_tools_of_a_server", "")
def narrowed():
    agent = {**AGENT, "tools": {"mcp": [{"server": "ok", "tools": ["ad*"]}]}}
    with Host({"ok": pipes(log_file("a"), ask=False), "more": pipes(log_file("b"), ask=False)}, agent) as s:
        events = s.finished('tool mcp__ok_add {"a":1,"b":2}', "then", "tool mcp__more_say")
        equal(len(of(events, "tool.result")), 2)
        failed = of(s.finished("tool mcp__ok_say"), "tool.failed")
        equal(len(failed), 1, "it is not among those that the definition names")


@test("a_server_that_wants_a_login_gets_one", "")
def login():
    with OauthMock() as web, Host({}, **LOOPBACK) as s:
        put(s, "/api/mcp/servers/web", {"url": web.url, "ask": False})
        shown = wait_until(lambda: state(s, "web")["state"] == "login_required" and state(s, "web"), "a login is wanted")
        registered = [a[2] for a in web.asked if a[1] == "/register"][0]
        equal(registered["redirect_uris"], [s.url + "/api/mcp/oauth/callback"])
        status, back, _ = browse(shown["login_url"])
        equal(status, 302)
        equal(browse(back.replace("state=", "state=x"))[0], 404, "another state")
        status, _, page = browse(back)
        equal((status, "Thank you" in page), (200, True), page)
        connected(s, "web")
        equal(browse(back)[0], 404, "it is good once")
        events = s.finished("tool mcp__web_whoami")
        check("you are ada" in json.dumps(of(events, "tool.result")), events)
        kept = glob.glob(os.path.join(s.data, "mcp-*.sealed"))
        equal(len(kept), 1)
        equal(stat.S_IMODE(os.stat(kept[0]).st_mode), 0o600)
        with open(kept[0], "rb") as f:
            check(b"token-1" not in f.read(), "it is sealed")
        check("token-1" not in s.log(), "it is not logged")
        s.kill()
        s.start()
        connected(s, "web")
        equal(web.count("POST", "/register"), 1, "nobody has to log in again")
        web.token = "token-2"
        s.finished("tool mcp__web_whoami")
        check([a for a in web.asked if a[1] == "/token" and a[2]["grant_type"] == "refresh_token"], "it is refreshed")
        equal(delete(s, "/api/mcp/servers/web").status, 200)
        equal(glob.glob(os.path.join(s.data, "mcp-*.sealed")), [], "tokens go with it")


@test("a_token_that_cannot_be_renewed_now_is_renewed_later", "")
def renewed():
    with OauthMock() as web, Host({}, **LOOPBACK) as s:
        web.lasts = 2 ** 62  # seconds: more than any clock has
        put(s, "/api/mcp/servers/web", {"url": web.url, "ask": False})
        shown = wait_until(lambda: state(s, "web")["state"] == "login_required" and state(s, "web"), "a login is wanted")
        browse(browse(shown["login_url"])[1])
        connected(s, "web")
        web.token, web.busy = "token-2", 1
        s.finished("tool mcp__web_whoami")
        equal(web.busy, 0, "the first attempt was refused")
        check("you are ada" in json.dumps(of(s.finished("tool mcp__web_whoami"), "tool.result")), "the second was not")
        equal(len([a for a in web.asked if a[1].startswith("/authorize")]), 1, "nobody had to log in again")


def failed_with(s, name, word):
    wait_until(lambda: word in json.dumps(state(s, name)), lambda: f"{name} fails: {state(s, name)}")


@test("a_login_goes_only_where_it_is_safe", "")
def unsafe():
    with OauthMock() as web, Host({}, **LOOPBACK) as s:
        web.authorize = "javascript:alert(1)//"
        put(s, "/api/mcp/servers/script", {"url": web.url})
        failed_with(s, "script", "not an https address")
        web.authorize = "http://127.0.0.1.example/authorize"
        put(s, "/api/mcp/servers/plain", {"url": web.url})
        failed_with(s, "plain", "not an https address")
        equal(web.count("POST", "/register"), 0, "nothing was told to it")


@test("a_client_secret_is_told_to_its_issuer_alone", "")
def secret():
    with OauthMock() as web, Host({}, **LOOPBACK) as s:
        client = {"client_id": "me", "client_secret": "very-secret"}
        put(s, "/api/mcp/servers/other", {"url": web.url, "oauth": {**client, "issuer": "https://login.example"}})
        failed_with(s, "other", "oauth.issuer")
        put(s, "/api/mcp/servers/right", {"url": web.url, "oauth": {**client, "issuer": web.base}})
        wait_until(lambda: state(s, "right")["state"] == "login_required", "a login is wanted")
        equal(web.count("POST", "/token"), 0)


@test("a_stream_of_changes_that_was_lost_is_opened_again", "")
def listens():
    log = log_file("a")
    with HttpMock(log, modern=True) as web, Host({}, **LOOPBACK) as s:
        web.cuts = True
        put(s, "/api/mcp/servers/web", {"url": web.url, "ask": False})
        connected(s, "web")
        wait_until(lambda: asked(log, "subscriptions/listen"), "changes are asked for")
        web.tools = web.tools + [{"name": "late", "description": "Came later.", "inputSchema": {"type": "object"}}]
        wait_until(lambda: "mcp:web/late" in s.tools(), "what changed meanwhile is seen")
        wait_until(lambda: len(asked(log, "subscriptions/listen")) > 1, "it was opened again")


if __name__ == "__main__":
    main()
