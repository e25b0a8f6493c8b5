#!/usr/bin/env python3
"""Hooks of the operator: programs and endpoints that are called at points of a run.

time limit: 400 s, each hook is a program that starts on a busy machine"""
import http.server
import json
import os
import threading

from lib import Server, check, check_session, equal, main, run_uar, test, text_of, wait_until
from lib.payloads import check_payload

READ = "tool fs.list {}"
WRITE = 'tool fs.write {"path": "a.txt", "text": "x"}'
POINTS = ["session_start", "user_prompt_submit", "pre_tool_use", "permission_request", "post_tool_use",
          "post_tool_failure", "post_sampling", "stop"]
# Keeps what it is told and its environment, and answers with what stands in a file of the point's name.
HOOK = """import json, os, signal, sys
told = json.load(sys.stdin)
here = os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(here, "told"), "a") as f:
    f.write(json.dumps({"told": told, "env": dict(os.environ)}) + chr(10))
path = os.path.join(here, told["hook_point"])
if os.path.exists(path):
    text = open(path).read()
    if text == "exit":
        sys.exit(3)
    if text == "hang":
        signal.pause()
    sys.stdout.write(text)
"""


class Shop:
    """with Shop({"guard": {...}}) as s: the hooks run HOOK in a folder of their own."""

    def __init__(self, hooks, env=None, **more):
        self.server = Server(start=False, **more)
        self.folder = os.path.join(self.server.root, "hooks")
        os.mkdir(self.folder)
        script = os.path.join(self.folder, "hook.py")
        with open(script, "w") as f:
            f.write(HOOK)
        for h in hooks.values():
            if "url" not in h:
                h["command"] = ["python3", "-I", "-S", script]
        self.server.env = {**(env or {}), "UAR_HOOKS": json.dumps(hooks)}
        self.server.start()

    def __enter__(self):
        return self

    def __exit__(self, *args):
        self.server.__exit__(*args)

    def answers(self, point, answer):
        with open(os.path.join(self.folder, point), "w") as f:
            f.write(answer if isinstance(answer, str) else json.dumps(answer))

    def told(self):
        path = os.path.join(self.folder, "told")
        if not os.path.exists(path):
            return []
        with open(path) as f:
            return [json.loads(line) for line in f]

    def log(self, run_id):
        events = self.server.session_events(run_id)
        check_session(events)
        log = [e.data for e in events if e.data.get("run_id", run_id) == run_id]
        for e in log:
            check_payload(e)
        return log

    def run(self, message, **more):
        run_id = self.server.create("tools", message, **more)
        self.server.finish(run_id)
        return run_id


def of(log, *kinds):
    return [e for e in log if e["type"] in kinds]


def decision(log):
    return of(log, "permission.evaluated")[0]["payload"]


@test("each_point_is_called_once_and_recorded_before_it_acts", "GOV-07")
def points():
    with Shop({"all": {"points": POINTS, "risk": "read_only"}}) as s:
        run_id = s.server.create("tools", READ + "\n" + 'tool fs.read {"path": "none"}' + "\nthen\n" + WRITE)
        action = wait_until(lambda: s.server.record(run_id).get("actions"), "a question")[0]
        s.server.http.post("/api/control/respond_action", {"action_id": action["action_id"], "decision": "deny"})
        s.server.finish(run_id)
        log = s.log(run_id)
        began = [e["payload"]["hook_point"] for e in of(log, "hook.started")]
        ended = [e["payload"]["hook_point"] for e in of(log, "hook.completed")]
        equal(began, ended)
        counts = {p: began.count(p) for p in POINTS}
        equal(counts, {"session_start": 1, "user_prompt_submit": 1, "pre_tool_use": 3, "permission_request": 1,
                       "post_tool_use": 1, "post_tool_failure": 2, "post_sampling": 3, "stop": 1})
        equal([t["told"]["hook_point"] for t in s.told()], began)
        kinds = [(e["type"], e["payload"].get("hook_point")) for e in log]
        check(kinds.index(("hook.completed", "user_prompt_submit")) < kinds.index(("model.requested", None)), kinds)
        check(kinds.index(("hook.completed", "pre_tool_use")) < kinds.index(("tool.started", None)), kinds)
        check(kinds.index(("hook.completed", "permission_request")) < kinds.index(("action.required", None)), kinds)
        check(kinds.index(("hook.completed", "stop")) < kinds.index(("task.completed", None)), kinds)
        thread = of(log, "turn.submitted")[0]["thread_id"]
        t = s.server.http.post("/api/control/submit_turn", {"agent_id": "tools", "message": "hello", "thread_id": thread})
        s.server.finish(t.json["result"]["run_id"])
        later = [e["payload"]["hook_point"] for e in of(s.log(t.json["result"]["run_id"]), "hook.started")]
        equal((later[0], later[-1], "session_start" in later), ("user_prompt_submit", "stop", False))


@test("what_a_hook_says_of_a_call_is_one_source", "GOV-03 GOV-08 FACT-05")
def one_source():
    with Shop({"guard": {"points": ["pre_tool_use"]}}, env={"UAR_PERMISSIONS": json.dumps(
            {"rules": [{"tool": "internal:math.*", "decision": "ask"}]})}) as s:
        for outcome, want in (("continue", "allow"), ("allow", "allow"), ("deny", "deny"), ("block", "deny")):
            s.answers("pre_tool_use", {"outcome": outcome, "reason": "because"})
            log = s.log(s.run(READ))
            p = decision(log)
            equal(of(log, "hook.completed")[0]["payload"]["outcome"], outcome)
            equal((p["decision"], p["decision_source"]), (want, "mode" if outcome == "continue" else "hook"))
            if want == "deny":
                equal(p["rule_refs"], ["hook:guard"])
                f = of(log, "tool.failed")[0]["payload"]
                equal((f["failure_category"], f["status"]), ("hook_blocked", "denied"))
                check("because" in f["error"]["message"], f)
        # An ask rule holds against the hook's allow, and a hook can ask.
        for message, answer in (('tool math.evaluate {"expression": "1"}', "allow"), (READ, "ask")):
            s.answers("pre_tool_use", {"outcome": answer})
            run_id = s.server.create("tools", message)
            action = wait_until(lambda: s.server.record(run_id).get("actions"), "a question")[0]
            s.server.http.post("/api/control/resolve_permission", {"action_id": action["action_id"], "decision": "allow"})
            s.server.finish(run_id)
            p = decision(s.log(run_id))
            equal((p["decision"], p["decision_source"]), ("ask", "host_policy" if answer == "allow" else "hook"))


@test("a_hook_changes_input_output_and_context_through_facts", "GOV-08")
def changes():
    with Shop({"edit": {"points": ["user_prompt_submit", "pre_tool_use", "post_tool_use"]}}) as s:
        s.answers("user_prompt_submit", {"updated_input": 'tool math.evaluate {"expression": "1+1"}'})
        s.answers("pre_tool_use", {"updated_input": {"expression": "40+2"}, "audit": {"who": "me"}})
        log = s.log(s.run("hello"))
        args = of(log, "tool.args")[0]["payload"]
        equal((args["args"], args["changed_by_hook"]), ({"expression": "40+2"}, "edit"))
        equal(of(log, "tool.result")[0]["payload"]["preview"], {"value": 42})
        h = next(e for e in of(log, "hook.completed") if e["payload"]["hook_point"] == "pre_tool_use")
        equal(h["payload"]["changed_fields"], ["expression"])
        check(h["refs"]["audit_refs"] and h["refs"]["updated_input_ref"], h)
        equal(of(log, "permission.evaluated")[0]["refs"]["updated_input_ref"], h["refs"]["updated_input_ref"])
        s.answers("post_tool_use", {"updated_tool_output": {"value": 7}, "additional_context": ["seven", "is odd"]})
        run_id = s.run("hello")
        check('{"value":7}' in text_of(s.server.events(run_id)), "the model is told the hook's output")
        equal(of(s.log(run_id), "tool.result")[0]["payload"]["preview"], {"value": 42})
        s.answers("post_tool_use", {"suppress_output": True})
        check("withholds" in text_of(s.server.events(s.run("hello"))), "the model is not told the output")
        s.answers("user_prompt_submit", {"outcome": "block", "reason": "not today"})
        r = s.server.record(s.run("hello"))
        equal((r["status"], r["error"]["code"]), ("failed", "HOOK_BLOCKED"))
        check("not today" in r["error"]["message"], r)


@test("a_hook_behind_a_call_is_called_when_that_call_ends", "")
def behind_a_call():
    with Shop({"all": {"points": ["post_tool_use", "post_tool_failure"]}}) as s:
        run_id = s.server.create("tools", READ + "\n" + WRITE)
        action = wait_until(lambda: s.server.record(run_id).get("actions"), "a question about the second call")[0]
        equal([t["told"]["hook_point"] for t in s.told()], ["post_tool_use"])
        s.server.http.post("/api/control/respond_action", {"action_id": action["action_id"], "decision": "deny"})
        s.server.finish(run_id)
        log = s.log(run_id)
        told = [t["told"] for t in s.told()]
        equal([(t["hook_point"], t["tool"]["name"], t["result"]["ok"]) for t in told],
              [("post_tool_use", "fs.list", True), ("post_tool_failure", "fs.write", False)])
        equal(told[0]["result"]["bytes"], of(log, "tool.result")[0]["payload"]["output_bytes"])
        s.answers("post_tool_use", {"outcome": "block", "reason": "enough"})
        r = s.server.record(s.run(READ + "\n" + WRITE))
        equal((r["status"], r["error"]["code"]), ("failed", "HOOK_BLOCKED"))
        equal(of(s.log(r["run_id"]), "action.required"), [], "the second call does not begin")


@test("a_hook_of_high_risk_fails_closed_and_one_that_reads_open", "GOV-09")
def failures():
    with Shop({"high": {"points": ["pre_tool_use"]}}) as s:
        for broken in ("exit", "no json", '{"outcome": "maybe"}', '{"updated_input": 7}', "x" * 70000):
            s.answers("pre_tool_use", broken)
            log = s.log(s.run(READ))
            equal(of(log, "hook.failed")[0]["payload"]["failure_behavior"], "fail_closed", broken[:20])
            equal(of(log, "tool.failed")[0]["payload"]["failure_category"], "hook_blocked", broken[:20])
    with Shop({"low": {"points": ["pre_tool_use"], "risk": "read_only"}}) as s:
        s.answers("pre_tool_use", "exit")
        log = s.log(s.run(READ))
        equal(of(log, "hook.failed")[0]["payload"]["failure_behavior"], "fail_open")
        equal(of(log, "runtime.warning")[0]["payload"]["code"], "HOOK_FAILED")
        equal(len(of(log, "tool.result")), 1)
    with Shop({"slow": {"points": ["pre_tool_use"], "timeout_seconds": 0.3}}) as s:
        s.answers("pre_tool_use", "hang")
        log = s.log(s.run(READ))
        check("too long" in of(log, "hook.failed")[0]["payload"]["error"]["message"], log)
        s.answers("pre_tool_use", "")


@test("hooks_are_told_no_secrets_files_or_environment", "SEC-05")
def filtered():
    with Shop({"spy": {"points": POINTS, "risk": "read_only", "env": ["HOOK_MAY_SEE"]}},
              env={"HOOK_MAY_SEE": "yes", "HOOK_MUST_NOT": "canary-env", "OPENAI_BASE_URL_X": "canary-env"}) as s:
        os.makedirs(os.path.join(s.server.data, "files"), exist_ok=True)
        with open(os.path.join(s.server.data, "files", "diary.txt"), "w") as f:
            f.write("canary-file")
        log = s.log(s.run('tool fs.read {"path": "diary.txt"}\nthen\ntool math.evaluate {"expression": "1", '
                          '"api_key": "canary-secret"}', context={"state": {"x": "canary-state"}}))
        check(len(of(log, "hook.completed")) >= 6, "hooks were called")
        told = json.dumps([t["told"] for t in s.told() if t["told"]["hook_point"] != "user_prompt_submit"])
        for canary in ("canary-secret", "canary-file", "canary-state"):
            check(canary not in told, canary)
        check("<redacted>" in told, told)
        for t in s.told():
            equal(sorted(set(t["env"]) - {"LC_CTYPE"}), ["HOOK_MAY_SEE", "LANG", "PATH"], t["env"])
    with Shop({"reader": {"points": ["post_tool_use"], "risk": "read_only", "send": ["output"]}}) as s:
        s.run(READ)
        check("entries" in s.told()[0]["told"]["result"]["output"], s.told())


class Endpoint:
    """An endpoint that answers each request with what it is set to."""

    def __init__(self):
        self.answer, self.bodies = (200, b"{}"), []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                outer.bodies.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(outer.answer[0])
                self.send_header("Content-Length", str(len(outer.answer[1])))
                self.end_headers()
                self.wfile.write(outer.answer[1])

            def log_message(self, *args):
                pass

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}/hook?key=canary"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()


@test("an_endpoint_is_a_hook_and_its_query_is_not_recorded", "")
def endpoint():
    peer = Endpoint()
    with Shop({"web": {"points": ["pre_tool_use"], "url": peer.url}}) as s:
        log = s.log(s.run(READ))
        equal(len(of(log, "tool.result")), 1)
        check("canary" not in json.dumps(log), "the URL's query is in the log")
        equal(peer.bodies[0]["tool"]["name"], "fs.list")
        peer.answer = (500, b"")
        equal(of(s.log(s.run(READ)), "hook.failed")[0]["payload"]["failure_behavior"], "fail_closed")
        peer.answer = (200, b'{"outcome": "deny"}')
        equal(decision(s.log(s.run(READ)))["decision"], "deny")
    peer.http.shutdown()


@test("after_a_kill_a_hook_is_called_again_only_if_it_had_not_answered", "")
def killed():
    with Shop({"first": {"points": ["pre_tool_use"]}, "second": {"points": ["pre_tool_use"]}}) as s:
        s.answers("pre_tool_use", "hang")
        run_id = s.server.create("tools", READ)
        wait_until(lambda: len(s.told()) == 1, "the first hook is at work")
        s.server.kill()
        s.answers("pre_tool_use", {"additional_context": "seen"})
        s.server.start()
        s.server.finish(run_id)
        log = s.log(run_id)
        equal([e["payload"]["hook_id"] for e in of(log, "hook.started")], ["first", "first", "second"])
        equal([e["payload"]["hook_id"] for e in of(log, "hook.completed")], ["first", "second"])
        check("[first] seen" in text_of(s.server.events(run_id)), "the model is told the context")


@test("a_definition_has_the_optional_hooks_that_the_operator_offers", "")
def optional():
    with Shop({"lint": {"points": ["pre_tool_use"], "optional": True},
               "ours": {"points": ["stop"], "optional": True, "agents": "ours-*"}}) as s:
        def define(agent_id, *hooks):
            a = s.server.http.send("PUT", "/api/agents/" + agent_id, {
                "version": "1.0", "kind": "agent", "id": agent_id, "runtime": {"entry": "llm.chat"},
                "policy": {"provider": {"default": {"provider": "scripted", "model": "scripted-tools"}},
                           "tools": {"allow": ["internal:*"]}, **({"hooks": hooks} if hooks else {})}})
            check(a.status in (200, 201), a.body)
        s.answers("pre_tool_use", {"outcome": "deny", "reason": "not clean"})
        for agent_id, hooks, want in (("plain", (), []), ("clean", ("lint",), ["lint"]), ("ours-1", ("lint", "ours"), ["lint", "ours"])):
            define(agent_id, *hooks)
            run_id = s.server.create(agent_id, READ)
            s.server.finish(run_id)
            log = s.log(run_id)
            equal([e["payload"]["hook_id"] for e in of(log, "hook.completed")], want, agent_id)
            equal([e["payload"]["failure_category"] for e in of(log, "tool.failed")], ["hook_blocked"] if hooks else [], agent_id)
        for agent_id, hook in (("wants", "guard"), ("other", "ours")):
            define(agent_id, hook)
            r = s.server.finish(s.server.create(agent_id, READ))
            equal((r["status"], hook in r["error"]["message"], s.told()[-1]["told"]["agent_id"] != agent_id), ("failed", True, True), r)


@test("a_wrong_setting_is_refused_with_its_place", "")
def setting():
    for hooks, word in (({"x": {"points": ["nowhere"], "command": ["a"]}}, "/x/points"),
                        ({"x": {"points": ["stop"]}}, "either command or url"),
                        ({"x": {"points": ["stop"], "command": ["a"], "on_failure": "open"}}, "/x/on_failure"),
                        ({"x": {"points": ["stop"], "command": ["a"], "colour": 1}}, "/x/colour")):
        done = run_uar("check", env={"UAR_HOOKS": json.dumps(hooks)})
        check(done.returncode == 1 and word in done.stderr + done.stdout, (done.returncode, done.stdout, done.stderr))


main()
