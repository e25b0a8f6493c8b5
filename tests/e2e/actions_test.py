#!/usr/bin/env python3
"""Actions: forms, values by schema, secrets, expiry, kill -9 while a person is asked, answers that race."""
import json
import os
import signal
import termios

from lib import Server, all_of, check, check_run_stream, check_session, equal, main, refused, run_uar, test, text_of, wait_until
from lib.payloads import check_payload
from lib.terminal import Terminal
from lib.server import UAR

AGE = {"type": "object", "required": ["name", "age"],
       "properties": {"name": {"type": "string", "title": "Name"}, "age": {"type": "integer", "minimum": 0}}}
LOGIN = {"type": "object", "required": ["user", "code"],
         "properties": {"user": {"type": "string"}, "code": {"type": "string", "writeOnly": True}}}


def call(name, **args):
    return f"tool {name} {json.dumps(args)}"


def form(title="Who are you?", schema=AGE):
    return call("ui.form.request", title=title, schema=schema)


def log_of(s, run_id):
    events = s.session_events(run_id)
    check_session(events)
    log = [e.data for e in events if e.data.get("run_id", run_id) == run_id]
    for e in log:
        check_payload(e)
    return log


def of(log, *kinds):
    return [e for e in log if e["type"] in kinds]


def asked(s, run_id, status="waiting_input"):
    r = wait_until(lambda: (lambda r: r if r.get("actions") else None)(s.record(run_id)), "a question")
    equal((r["status"], r["engine_status"]), ("running", status))
    return r["actions"][0]


def respond(s, action_id, decision="submit", **more):
    return s.http.post("/api/control/respond_action", {"action_id": action_id, "decision": decision, **more})


def submit(s, run_id, action_id, values):
    return s.http.post(f"/api/runs/{run_id}/forms/{action_id}", values)


def shown(s, run_id, kind):
    return [e.data["data"] for e in s.events(run_id) if e.data["type"] == kind]


@test("a_form_is_asked_filled_in_and_the_run_goes_on",
      "NEV-15 API-13 CTL-20 STAT-05 VAL-04 EVT-027 EVT-030")
def a_form():
    with Server() as s:
        run_id = s.create("tools", form())
        action = asked(s, run_id)
        equal((action["action_type"], action["prompt"]), ("form", "Who are you?"))
        listed = s.http.get("/api/actions?type=form").json["actions"]
        equal([(a["action_id"], a["schema"], a["decisions"]) for a in listed],
              [(action["action_id"], AGE, ["submit", "decline", "cancel"])])
        equal(s.http.get("/api/actions?type=tool_permission").json["actions"], [])
        equal(s.http.get("/api/actions?run_id=other").json["actions"], [])
        second = s.create("tools", form())
        asked(s, second)
        page = s.http.get("/api/actions?limit=1").json
        equal((len(page["actions"]), page["total"]), (1, 2))
        page = s.http.get(f"/api/actions?limit=1&cursor={page['next_cursor']}").json
        equal((len(page["actions"]), page["total"], page["next_cursor"]), (1, 2, None))
        equal(s.http.get(f"/api/actions?run_id={second}").json["total"], 1)
        s.cancel(second)
        refused(s.http.get("/api/actions?type=nothing"), 400, "VALIDATION_ERROR", "?type")
        refused(s.http.get("/api/actions?status=nothing"), 400, "VALIDATION_ERROR", "?status")
        refused(submit(s, run_id, action["action_id"], {"name": "Ann"}), 400, "VALIDATION_ERROR")
        refused(submit(s, run_id, action["action_id"], {"name": "Ann", "age": -1}), 400, "VALIDATION_ERROR", "/age")
        bad = respond(s, action["action_id"], payload={"name": "Ann", "age": "x"})
        refused(bad, 400, "VALIDATION_ERROR", "/payload/age")
        refused(respond(s, action["action_id"]), 400, "VALIDATION_ERROR", "/payload")
        refused(respond(s, action["action_id"], "allow"), 400, "VALIDATION_ERROR", "/decision")
        refused(respond(s, action["action_id"], "decline", payload={}), 400, "VALIDATION_ERROR", "/payload")
        refused(submit(s, "other", action["action_id"], {"name": "Ann", "age": 3}), 404, "NOT_FOUND")
        equal(s.http.send("POST", f"/api/runs/{run_id}/forms/{action['action_id']}", body={}, token=False).status, 401)
        a = submit(s, run_id, action["action_id"], {"name": "Ann", "age": 3})
        equal((a.status, a.json["ok"], a.json["result"]["payload"]), (200, True, {"name": "Ann", "age": 3}))
        again = submit(s, run_id, action["action_id"], {"age": 3, "name": "Ann"})
        equal((again.status, again.json["event_ids"]), (200, a.json["event_ids"]))
        other = submit(s, run_id, action["action_id"], {"name": "Bob", "age": 3})
        refused(other, 409, "ACTION_RESOLVED")
        equal(other.json["action"]["payload"]["name"], "Ann")
        check("Ann" in text_of(s.events(run_id)), "the model heard it")
        equal(s.finish(run_id)["status"], "succeeded")
        check_run_stream(s.events(run_id), run_id)
        request = shown(s, run_id, "ui.form.request")
        equal([(r["form_id"], r["title"], r["schema"]) for r in request], [(action["action_id"], "Who are you?", AGE)])
        log = log_of(s, run_id)
        kinds = [e["type"] for e in log if e["type"].startswith(("action.", "task.wait", "task.resumed", "tool."))]
        equal(kinds, ["tool.catalog.resolved", "action.required", "task.waiting", "action.resolved", "task.resumed",
                      "tool.started", "tool.args", "tool.result"])
        equal(of(log, "task.waiting")[0]["payload"]["status"], "waiting_input")
        p = of(log, "action.resolved")[0]["payload"]
        equal((p["result"], p["decision"], p["payload"]), ("answer", "submit", {"name": "Ann", "age": 3}))
        done = s.http.get(f"/api/actions?status=resolved&run_id={run_id}").json["actions"]
        equal([(a["decision"], a["payload"]) for a in done], [("submit", {"name": "Ann", "age": 3})])


@test("a_missing_argument_becomes_a_form_and_never_a_guess", "TOOL-10 NEV-15")
def missing():
    with Server() as s:
        run_id = s.create("tools", call("math.evaluate"))
        action = asked(s, run_id)
        request = s.http.get(f"/api/actions?run_id={run_id}").json["actions"][0]
        equal((request["schema"]["required"], list(request["schema"]["properties"])), (["expression"], ["expression"]))
        check("expression" in action["prompt"], action)
        equal(submit(s, run_id, action["action_id"], {"expression": "6*7"}).status, 200)
        check("42" in text_of(s.events(run_id)))
        log = log_of(s, run_id)
        equal([e["payload"]["args"] for e in of(log, "tool.args")], [{"expression": "6*7"}])
        kinds = [e["type"] for e in log]
        check(kinds.index("action.resolved") < kinds.index("tool.started"), "it was called before it was whole")
        # What was given is asked about like what the model wrote.
        run_id = s.create("tools", call("fs.write", text="hi"))
        equal(submit(s, run_id, asked(s, run_id)["action_id"], {"path": "f.txt"}).status, 200)
        wait_until(lambda: s.record(run_id)["engine_status"] == "waiting_permission", "the permission")
        action = asked(s, run_id, "waiting_permission")
        equal((action["action_type"], action["prompt"]), ("tool_permission", "fs.write: f.txt"))
        equal(respond(s, action["action_id"], "allow").status, 200)
        equal(s.finish(run_id)["status"], "succeeded")
        with open(os.path.join(s.data, "files", "f.txt"), encoding="utf-8") as f:
            equal(f.read(), "hi")
        # What a person cannot mend is refused as before.
        run_id = s.create("tools", call("math.evaluate", expression=7))
        check("schema_invalid" in text_of(s.events(run_id)))
        equal(s.record(run_id).get("actions", []), [])


@test("a_form_that_is_declined_is_told_to_the_model", "CTL-20")
def declined():
    with Server() as s:
        for decision in ("decline", "cancel"):
            run_id = s.create("tools", form())
            equal(respond(s, asked(s, run_id)["action_id"], decision, reason="not today").status, 200)
            answer = text_of(s.events(run_id))
            check("rejected" in answer and "not today" in answer, answer)
            equal(s.finish(run_id)["status"], "succeeded")
        run_id = s.create("tools", call("ui.form.request", title="x", schema={"type": "string"}))
        check("schema_invalid" in text_of(s.events(run_id)), "a form is an object")


@test("a_form_survives_kill_9_and_its_answer_too", "CTL-20 STAT-05")
def killed():
    with Server() as s:
        run_id = s.create("tools", form() + "\nthen\n" + call("math.evaluate", expression="1+1"))
        action = asked(s, run_id)
        s.kill()
        s.start()
        equal(asked(s, run_id), action)
        equal([a["schema"] for a in s.http.get("/api/actions").json["actions"]], [AGE])
        equal(submit(s, run_id, action["action_id"], {"name": "Ann", "age": 3}).status, 200)
        s.kill()
        s.start()
        again = submit(s, run_id, action["action_id"], {"name": "Ann", "age": 3})
        equal((again.status, again.json["result"]["decision"]), (200, "submit"))
        refused(respond(s, action["action_id"], "decline"), 409, "ACTION_RESOLVED")
        check("Ann" in text_of(s.events(run_id)) or s.finish(run_id)["status"] == "succeeded")
        log = log_of(s, run_id)
        equal(len(of(log, "action.resolved")), 1)
        equal([len(of(log, k)) for k in ("tool.started", "tool.result")], [2, 2])


@test("a_secret_of_a_form_is_recorded_nowhere", "CTL-20")
def secrets():
    canary = "canary-7f3a9c"
    with Server() as s:
        run_id = s.create("tools", form("Sign in", LOGIN))
        action = asked(s, run_id)
        a = submit(s, run_id, action["action_id"], {"user": "ann", "code": canary})
        equal(a.json["result"]["payload"], {"user": "ann", "code": "<redacted>"})
        answer = text_of(s.events(run_id))
        check("<redacted>" in answer and canary not in answer, answer)
        again = submit(s, run_id, action["action_id"], {"user": "ann", "code": canary})
        equal(again.status, 200, "the same answer is known without being readable")
        refused(submit(s, run_id, action["action_id"], {"user": "ann", "code": "other"}), 409, "ACTION_RESOLVED")
        check(canary not in json.dumps(log_of(s, run_id)))
        equal(os.stat(os.path.join(s.data, "seal.key")).st_mode & 0o777, 0o600)
        s.stop()
        for path, _, files in os.walk(s.data):
            for name in files:
                with open(os.path.join(path, name), "rb") as f:
                    check(canary.encode() not in f.read(), os.path.join(path, name))
        s.start()


@test("of_answers_that_race_one_wins", "CTL-20")
def race():
    with Server() as s:
        run_id = s.create("tools", form())
        action = asked(s, run_id)["action_id"]
        answers = all_of([lambda i=i: submit(s, run_id, action, {"name": f"n{i % 4}", "age": i % 4}) for i in range(24)])
        won = of(log_of(s, run_id), "action.resolved")
        equal(len(won), 1)
        age = won[0]["payload"]["payload"]["age"]
        for i, a in enumerate(answers):
            equal(a.status, 200 if i % 4 == age else 409, i)
            equal((a.json["result"] if a.status == 200 else a.json["action"])["payload"]["age"], age)
        equal(s.finish(run_id)["status"], "succeeded")


@test("long_schemas_and_long_values_are_kept_beside_the_events", "CTL-20 API-13")
def long():
    schema = {"type": "object", "properties": {f"f{i}": {"type": "string", "description": "x" * 100} for i in range(200)}}
    values = {f"f{i}": "v" * 200 for i in range(200)}
    with Server() as s:
        run_id = s.create("tools", form("Much", schema))
        action = asked(s, run_id)
        a = s.http.get("/api/actions").json["actions"][0]
        equal(s.http.get(a["schema_url"]).json, schema)
        refused(submit(s, run_id, action["action_id"], {"f1": 1}), 400, "VALIDATION_ERROR", "/f1")
        s.kill()
        s.start()
        asked(s, run_id)
        a = submit(s, run_id, action["action_id"], values)
        equal(a.status, 200)
        equal(s.http.get(a.json["result"]["payload_url"]).json if "payload_url" in a.json["result"] else values, values)
        equal(s.finish(run_id)["status"], "succeeded")
        equal(len(of(log_of(s, run_id), "tool.result")), 1)


@test("navigation_and_forms_are_events_of_one_stream", "")
def navigation():
    with Server() as s:
        run_id = s.create("tools", call("ui.navigate", target="/reports/7", title="Report") + "\nthen\n" + form())
        equal(submit(s, run_id, asked(s, run_id)["action_id"], {"name": "Ann", "age": 3}).status, 200)
        equal(s.finish(run_id)["status"], "succeeded")
        kinds = [e.data["type"] for e in s.events(run_id)]
        check(kinds.index("ui.navigate") < kinds.index("ui.form.request"), kinds)
        equal([(d["target"], d["title"]) for d in shown(s, run_id, "ui.navigate")], [("/reports/7", "Report")])
        check_run_stream(s.events(run_id), run_id)


@test("a_question_that_nobody_answers_expires", "CTL-20 EVT-030")
def expiry():
    with Server(action_timeout_seconds="1s") as s:
        run_id = s.create("tools", form())
        answer = text_of(s.events(run_id))
        check("rejected" in answer, answer)
        log = log_of(s, run_id)
        p = of(log, "action.resolved")[0]["payload"]
        equal((p["result"], p["source"], p["decision"], p["resolved_by"]["type"]),
              ("timeout", "timeout", "decline", "runtime"))
        check("timeout_at" in of(log, "action.required")[0]["payload"], log)
        late = submit(s, run_id, run_id + ".1", {"name": "Ann", "age": 3})
        refused(late, 409, "ACTION_RESOLVED")
        equal(late.json["action"]["result"], "timeout")
        # The time goes on while the server does not run.
        s.restart(action_timeout_seconds="2s")
        run_id = s.create("tools", call("fs.write", path="x.txt", text="x"))
        with s.session_stream(s.record(run_id)["session_id"]) as stream:
            stream.until(lambda e: e.data["type"] == "action.required")
        s.kill()
        s.start()
        answer = text_of(s.events(run_id))
        check("rejected" in answer, answer)
        equal(of(log_of(s, run_id), "permission.resolved")[0]["payload"]["outcome"], "timed_out")
        check(not os.path.exists(os.path.join(s.data, "files", "x.txt")))


@test("a_terminal_asks_again_for_what_is_refused", "NEV-15")
def asked_again():
    both = {"type": "object", "required": ["age"], "minProperties": 2,
            "properties": {"age": {"type": "integer", "minimum": 18}, "note": {"type": "string", "maxLength": 3}}}
    with Server() as s:
        t = Terminal(s, "run", "tools", form("Grown up?", both))
        for prompt, typed in (("age", "17"), ("please: ", None), ("age", "x" * 3000), ("please: a whole number", None),
                              ("age", "41"), ("note", "long"), ("please: ", None), ("note", ""),
                              ("not taken: ", None), ("once more", None), ("age", "41"), ("note", "ok")):
            t.until(prompt)
            if typed is not None:
                t.type(typed)
        equal(t.end(), 0, t.seen)
        run_id = s.http.get("/api/runs?limit=1").json["runs"][0]["run_id"]
        equal(of(log_of(s, run_id), "action.resolved")[0]["payload"]["payload"], {"age": 41, "note": "ok"})


def echoes(t):
    return bool(termios.tcgetattr(t.fd)[3] & termios.ECHO)


@test("ctrl_c_in_a_hidden_field_gives_the_echo_back", "NEV-15")
def echo_back():
    with Server() as s:
        # Attached: once cancels, and the run's end is waited for.
        t = Terminal(s, "run", "tools", form("Log in", LOGIN))
        t.until("user")
        t.type("ann")
        t.until("code")
        wait_until(lambda: not echoes(t), "a hidden field")
        t.press(b"\x03")
        t.until("tokens")
        check(echoes(t), "the terminal is as it was")
        equal(t.end(), 3, t.seen)
        equal(s.http.get("/api/runs?limit=1").json["runs"][0]["status"], "canceled")
        # Only answering: the signal ends the verb, and the run waits on.
        run_id = s.create("tools", form("Log in", LOGIN))
        asked(s, run_id)
        for key, status in ((b"\x03", -signal.SIGINT), (b"\x1c", -signal.SIGQUIT), (b"\x04", 1)):
            t = Terminal(s, "answer", run_id)
            t.until("user")
            t.type("ann")
            t.until("code")
            wait_until(lambda: not echoes(t), "a hidden field")
            t.press(key)
            wait_until(lambda: echoes(t), "the echo")
            equal(t.end(), status, t.seen)
        equal(s.record(run_id)["engine_status"], "waiting_input")
        equal(respond(s, run_id + ".1", "decline").status, 200)
        s.finish(run_id)


def blocks_interrupts(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        mask = next(line for line in f if line.startswith("SigBlk:"))
    return bool(int(mask.split()[1], 16) & 1 << (signal.SIGINT - 1))


@test("ctrl_c_twice_leaves_whatever_the_server_does", "NEV-15")
def twice():
    with Server() as s:
        t = Terminal(s, "run", "tools", form("Log in", LOGIN))
        t.until("user")
        s.proc.send_signal(signal.SIGSTOP)  # the cancel is not answered
        t.press(b"\x03")
        wait_until(lambda: not blocks_interrupts(t.pid), "the first one is taken")
        t.press(b"\x03")
        equal(t.end(), -signal.SIGINT, t.seen)
        s.proc.send_signal(signal.SIGCONT)


@test("a_terminal_fills_in_forms_and_allows", "CTL-20 NEV-15 API-13")
def terminal():
    everything = {"type": "object", "required": ["name", "age", "colour"], "properties": {
        "name": {"type": "string"}, "age": {"type": "integer"}, "colour": {"enum": ["red", "blue"]},
        "vegan": {"type": "boolean", "default": False}, "tags": {"type": "array", "items": {"type": "string"}},
        "password": {"type": "string"}}}
    with Server() as s:
        t = Terminal(s, "run", "tools", form("Sign up", everything) + "\nthen\n" + write("t.txt"))
        t.until("[asks] Sign up")
        for prompt, typed in (("name", "Ann"), ("age", "many"), ("a whole number", None), ("age", "41"), ("2 blue", "2"),
                              ("vegan", ""), ("tags", "a, b"), ("password", "hunter2-canary")):
            t.until(prompt)
            if typed is not None:
                t.type(typed)
        t.until("allow it?")
        check("hunter2-canary" not in t.seen, "a secret is not echoed")
        t.type("perhaps")
        t.until("please answer")
        t.until("allow it?")
        t.type("s")
        check('"t.txt"' in t.until("allow it?"), "the whole input")
        t.type("y")
        equal(t.end(), 0, t.seen)
        check("[answered] allow" in t.seen, t.seen)
        run_id = s.http.get("/api/runs?limit=1").json["runs"][0]["run_id"]
        p = of(log_of(s, run_id), "action.resolved")[0]["payload"]["payload"]
        equal(p, {"name": "Ann", "age": 41, "colour": "blue", "vegan": False, "tags": ["a", "b"],
                  "password": "<redacted>"})
        # The same without a terminal, by words.
        run_id = s.create("tools", form())
        asked(s, run_id)
        listed = run_uar("approve", "--data", s.data)
        check("Who are you?" in listed.stdout, listed.stdout)
        p = run_uar("answer", "--data", s.data, run_id)
        check(p.returncode == 1 and "NAME=VALUE" in p.stderr, p.stderr)
        p = run_uar("answer", "--data", s.data, run_id, "name=Ann", "age=x")
        check(p.returncode == 1 and "whole number" in p.stderr, p.stderr)
        p = run_uar("answer", "--data", s.data, run_id, "name=Ann")
        check(p.returncode == 1 and "/payload" in p.stderr, p.stderr)
        p = run_uar("answer", "--data", s.data, run_id, "1", "name=Ann", "age=3")
        equal((p.returncode, p.stdout), (0, run_id + ".1  submit\n"), p.stderr)
        equal(s.finish(run_id)["status"], "succeeded")
        run_id = s.create("tools", form())
        asked(s, run_id)
        p = run_uar("answer", "--data", s.data, run_id, "--values", '{"name":"Ann","age":4}', "--json")
        equal(json.loads(p.stdout)["result"]["payload"], {"name": "Ann", "age": 4}, p.stderr)
        run_id = s.create("tools", form())
        asked(s, run_id)
        p = run_uar("answer", "--data", s.data, run_id, "--deny", "--reason", "no")
        equal((p.returncode, p.stdout), (0, run_id + ".1  decline\n"), p.stderr)
        s.finish(run_id)
        # `uar approve` asks for the values as well.
        run_id = s.create("tools", form())
        asked(s, run_id)
        p = run_uar("approve", "--data", s.data, run_id)
        check(p.returncode == 1 and "NAME=VALUE" in p.stderr, p.stderr)
        t = Terminal(s, "approve", run_id)
        t.until("Who are you?")
        t.until("Name")
        t.type("Ann")
        t.until("age")
        t.type("5")
        equal(t.end(), 0, t.seen)
        check("submit" in t.seen, t.seen)
        equal(s.finish(run_id)["status"], "succeeded")
        # A grant by the terminal, listed and taken back.
        run_id = s.create("tools", write("g.txt"))
        asked(s, run_id, "waiting_permission")
        equal(run_uar("approve", "--data", s.data, run_id, "--always").returncode, 0)
        s.finish(run_id)
        p = run_uar("grants", "--data", s.data)
        check(run_id + ".1" in p.stdout and "internal:fs.write" in p.stdout and "agent tools" in p.stdout, p.stdout)
        equal(run_uar("grants", "revoke", run_id + ".1", "--data", s.data).stdout, run_id + ".1  revoked\n")
        check("nothing" in run_uar("grants", "--data", s.data).stdout)


def write(path="a.txt", text="x"):
    return call("fs.write", path=path, text=text)


@test("a_grant_holds_for_its_conversation_or_agent_until_it_is_revoked", "CTL-20")
def grants():
    with Server() as s:
        equal(s.http.get("/api/grants").json, {"grants": [], "next_cursor": None})
        first = s.create("tools", write(), conversation_id="c-1")
        action = asked(s, first, "waiting_permission")["action_id"]
        offered = s.http.get("/api/actions").json["actions"][0]["decisions"]
        equal(offered, ["allow", "allow_for_session", "allow_always", "deny"])
        refused(respond(s, action, "allow_for_session", payload={"arguments": "some"}), 400, "VALIDATION_ERROR",
                "/payload/arguments")
        equal(respond(s, action, "allow_for_session").status, 200)
        equal(s.finish(first)["status"], "succeeded")
        log = log_of(s, first)
        p = of(log, "permission.resolved")[0]["payload"]
        equal((p["grant"], p["rule_added"]), ("session", action))
        granted = s.http.get("/api/grants").json["grants"]
        equal([(g["grant_id"], g["scope"], g["conversation_id"], g["tool_id"], g["arguments"]) for g in granted],
              [(action, "conversation", "c-1", "internal:fs.write", "any")])
        # The same conversation is not asked again, also after kill -9; another one is.
        s.kill()
        s.start()
        run_id = s.create("tools", write("b.txt"), conversation_id="c-1")
        equal(s.finish(run_id)["status"], "succeeded")
        log = log_of(s, run_id)
        equal(of(log, "action.required"), [])
        p = of(log, "permission.evaluated")[0]["payload"]
        equal((p["decision"], p["rule_refs"]), ("allow", [action]))
        other = s.create("tools", write("c.txt"), conversation_id="c-2")
        asked(s, other, "waiting_permission")
        # For these arguments alone, by this agent everywhere.
        equal(respond(s, other + ".1", "allow_always", payload={"arguments": "same"}).status, 200)
        equal(s.finish(other)["status"], "succeeded")
        equal(s.finish(s.create("tools", write("c.txt")))["status"], "succeeded")
        changed = s.create("tools", write("c.txt", "y"))
        asked(s, changed, "waiting_permission")
        s.cancel(changed)
        # Taken back: asked again. Twice changes nothing.
        a = s.http.post("/api/control/revoke_grant", {"grant_id": action})
        equal((a.status, a.json["result"]["grant"]["status"], len(a.json["event_ids"])), (200, "revoked", 1))
        a = s.http.post("/api/control/revoke_grant", {"grant_id": action})
        equal((a.status, a.json["result"]["grant"]["status"], a.json["event_ids"]), (200, "revoked", []))
        refused(s.http.post("/api/control/revoke_grant", {"grant_id": "none.1"}), 404, "NOT_FOUND")
        equal([g["grant_id"] for g in s.http.get("/api/grants").json["grants"]], [other + ".1"])
        equal([g["grant_id"] for g in s.http.get("/api/grants?status=revoked").json["grants"]], [action])
        equal(len(s.http.get("/api/grants?status=any&agent_id=tools").json["grants"]), 1)
        refused(s.http.get("/api/grants?status=x"), 400, "VALIDATION_ERROR", "?status")
        run_id = s.create("tools", write("d.txt"), conversation_id="c-1")
        asked(s, run_id, "waiting_permission")
        s.cancel(run_id)
        s.finish(run_id)


if __name__ == "__main__":
    main()
