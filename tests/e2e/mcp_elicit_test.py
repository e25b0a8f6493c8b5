#!/usr/bin/env python3
"""What an MCP server asks in the middle of a call is asked of a person: forms, addresses, logins."""
import json

from lib import check, equal, main, test, wait_until
from lib.a2a import rpc
from lib.mcp_host import AGENT, LOOPBACK, Host, browse, connected, log_file, of, pipes, put, state
from lib.mcp_mock import asked
from lib.mcp_oauth import OauthMock


def respond(s, action, decision, payload=None):
    body = {"action_id": action["action_id"], "decision": decision, **({"payload": payload} if payload is not None else {})}
    return s.http.post("/api/control/respond_action", body)


def ended(s, run_id):
    wait_until(lambda: s.record(run_id)["status"] in ("succeeded", "failed", "canceled"), "the run ends")
    return [e.data for e in s.session_events(run_id)]


def open_action(s, run_id):
    action_id = s.asks(run_id)["action_id"]
    return [a for a in s.http.get("/api/actions?run_id=" + run_id).json["actions"] if a["action_id"] == action_id][0]


def said(events):
    return json.loads(of(events, "tool.result")[0]["preview"]["text"])


@test("a_form_of_a_server_is_an_action", "")
def forms():
    for era in ((), ("modern",)):
        log = log_file("a")
        with Host({"pipe": pipes(log, *era, "asks", ask=False)}) as s:
            run_id = s.run("tool mcp__pipe_form")
            action = open_action(s, run_id)
            equal((action["action_type"], action["prompt"]), ("form", "Who are you?"), action)
            check(respond(s, action, "submit", {"size": 1}).status in (400, 422), "a name is wanted")
            equal(respond(s, action, "submit", {"name": "ada"}).status, 200)
            events = ended(s, run_id)
            answer, request_state = said(events)
            equal(answer, {"action": "accept", "content": {"name": "ada", "size": 7}}, "with the default")
            equal(request_state, "s-1" if era else None)
            equal(len(asked(log, "tools/call", "form")), 2 if era else 1)
            run_id = s.run("tool mcp__pipe_form")
            equal(respond(s, open_action(s, run_id), "decline").status, 200)
            equal(said(ended(s, run_id))[0]["action"], "decline")


@test("of_two_questions_the_one_that_cannot_be_asked_is_declined", "")
def pair():
    with Host({"pipe": pipes(log_file("a"), "modern", "asks", ask=False)}) as s:
        run_id = s.run("tool mcp__pipe_pair")
        equal(respond(s, open_action(s, run_id), "submit", {"name": "ada"}).status, 200)
        answers = said(ended(s, run_id))
        equal((answers["empty"]["action"], answers["q"]["action"]), ("decline", "accept"), answers)


@test("a_question_that_may_be_of_another_run_is_refused", "")
def ambiguous():
    log = log_file("a")
    with Host({"pipe": pipes(log, "asks", ask=False)}) as s:
        other = s.run("tool mcp__pipe_wait")
        wait_until(lambda: asked(log, "tools/call", "wait"), "a call is open")
        asking = s.run("tool mcp__pipe_form")
        check("nobody" in said(ended(s, asking))[0]["message"], "the server got an error")
        for run_id in (other, asking):
            equal(s.http.get("/api/actions?run_id=" + run_id).json["actions"], [], "nobody was asked")


@test("an_address_of_a_server_is_shown_whole", "")
def addresses():
    with Host({"pipe": pipes(log_file("a"), "asks", ask=False)}) as s:
        run_id = s.run("tool mcp__pipe_visit")
        action = open_action(s, run_id)
        check("https://shop.example/pay?order=1" in json.dumps(action), action)
        equal(respond(s, action, "submit", {}).status, 200)
        equal(said(ended(s, run_id))[0], {"action": "accept"})


@test("a_server_asks_the_model_of_the_run_when_a_person_allows_it", "")
def sampling():
    for era in ((), ("modern",)):
        with Host({"pipe": pipes(log_file("a"), *era, "asks", ask=False)}) as s:
            run_id = s.run("tool mcp__pipe_think")
            action = open_action(s, run_id)
            check("say the word heron" in json.dumps(action), "the messages are shown", action)
            equal((action["action_type"], action["scope"]["kind"]), ("tool_permission", "sampling"), action)
            equal(respond(s, action, "allow").status, 200)
            events = ended(s, run_id)
            answer = said(events)[0]
            equal((answer["role"], answer["content"]["type"]), ("assistant", "text"), answer)
            check("no tool for that" in answer["content"]["text"], answer)
            equal([m["role"] for m in of(events, "model.requested")], ["execute", "sample", "execute"])
            equal(len([m["usage"] for m in of(events, "model.completed")]), 3, "it counts like any call")
            run_id = s.run("tool mcp__pipe_think")
            equal(respond(s, open_action(s, run_id), "deny").status, 200)
            events = ended(s, run_id)
            equal(len(of(events, "model.requested")), 2, "the model was not asked")
            refused = json.dumps(of(events, "tool.failed") if era else said(events))
            check("not allowed" in refused, refused)


@test("what_a_server_asks_the_model_is_within_the_budget_of_the_run", "")
def sampling_budget():
    routed = {**AGENT["policy"]["provider"], "budget": {"model_calls": 1}}
    agent = {**AGENT, "policy": {**AGENT["policy"], "provider": routed}}
    with Host({"pipe": pipes(log_file("a"), "asks", ask=False)}, agent=agent) as s:
        run_id = s.run("tool mcp__pipe_think")
        equal(respond(s, open_action(s, run_id), "allow").status, 200)
        events = ended(s, run_id)
        equal(len(of(events, "model.requested")), 1, "no further call was made")
        check("budget" in json.dumps(of(events, "tool.result")), of(events, "tool.result"))


@test("what_a_server_asks_the_model_is_cut_off_with_it_and_with_the_run", "MCP-09")
def sampling_cut():
    with Host({"pipe": pipes(log_file("a"), "asks", ask=False)}) as s:
        run_id = s.run("tool mcp__pipe_think")
        s.asks(run_id)
        s.end_children()
        events = ended(s, run_id)
        equal((len(of(events, "tool.failed")), of(events, "action.resolved")[-1]["result"]), (1, "cancel"))
        wait_until(lambda: "mcp:pipe/think" in s.tools(), "the server is back")
        run_id = s.run("tool mcp__pipe_think")
        s.asks(run_id)
        s.http.post(f"/api/runs/{run_id}/cancel")
        ended(s, run_id)
        equal(s.http.get("/api/actions?run_id=" + run_id).json["actions"], [])


@test("a_question_is_withdrawn_when_its_server_dies_and_its_run_goes_on", "MCP-09")
def withdrawn():
    log = log_file("a")
    with Host({"pipe": pipes(log, "asks", ask=False)}) as s:
        run_id = s.run("tool mcp__pipe_form")
        s.asks(run_id)
        s.end_children()
        events = ended(s, run_id)
        equal(len(of(events, "tool.failed")), 1)
        equal(of(events, "action.resolved")[-1]["result"], "cancel")
        equal(len(asked(log, "tools/call", "form")), 1)


@test("a_question_that_a_kill_cuts_off_repeats_nothing", "MCP-09")
def killed():
    log = log_file("a")
    with Host({"pipe": pipes(log, "asks", ask=False)}) as s:
        run_id = s.run("tool mcp__pipe_form")
        first = s.asks(run_id)
        s.kill()
        s.start()
        equal(respond(s, first, "submit", {"name": "ada"}).status, 200)
        again = wait_until(lambda: [a for a in s.record(run_id).get("actions") or [] if a["action_id"] != first["action_id"]],
                           "somebody is asked whether to repeat it")[0]
        equal(len(asked(log, "tools/call", "form")), 1)
        equal(respond(s, again, "allow").status, 200)
        known = {first["action_id"], again["action_id"]}
        third = wait_until(lambda: [a for a in s.record(run_id).get("actions") or [] if a["action_id"] not in known], "it asks again")[0]
        equal(respond(s, third, "decline").status, 200)
        ended(s, run_id)
        equal([m["params"]["arguments"] for m in asked(log, "tools/call", "form")], [{}, {}], "the answer was no argument")


@test("a_cancelled_run_lets_go_of_its_question", "")
def cancelled():
    log = log_file("a")
    with Host({"pipe": pipes(log, "asks", ask=False)}) as s:
        run_id = s.run("tool mcp__pipe_form")
        s.asks(run_id)
        s.http.post(f"/api/runs/{run_id}/cancel")
        ended(s, run_id)
        equal(s.http.get("/api/actions?run_id=" + run_id).json["actions"], [])
        wait_until(lambda: asked(log, "notifications/cancelled"), "the server is told")


@test("a_login_in_the_middle_of_a_call_is_a_credential_action", "")
def login():
    with OauthMock() as web, Host({}, **LOOPBACK) as s:
        put(s, "/api/mcp/servers/web", {"url": web.url, "ask": False})
        shown = wait_until(lambda: state(s, "web")["state"] == "login_required" and state(s, "web"), "a login is wanted")
        browse(browse(shown["login_url"])[1])
        connected(s, "web")
        web.token, web.refreshes = "token-2", False
        run_id = s.run("tool mcp__web_whoami")
        action = open_action(s, run_id)
        equal(action["action_type"], "credential", action)
        task = rpc(s, "GetTask", {"id": run_id}, AGENT["id"])["result"]
        waiting = rpc(s, "ListTasks", {"status": "TASK_STATE_AUTH_REQUIRED"}, AGENT["id"])["result"]["tasks"]
        equal((task["status"]["state"], [t["id"] for t in waiting]), ("TASK_STATE_AUTH_REQUIRED", [run_id]))
        url = action["scope"]["input"]["url"] if "scope" in action else action["input"]["url"]
        web.refreshes = True
        equal(browse(browse(url)[1])[0], 200)
        events = ended(s, run_id)
        check("you are ada" in json.dumps(of(events, "tool.result")), of(events, "tool.failed"))
        check("token-2" not in json.dumps(events), "tokens are in no event")


@test("a_login_that_nobody_finishes_expires", "")
def login_expires():
    with OauthMock() as web, Host({}, **LOOPBACK) as s:
        put(s, "/api/mcp/servers/web", {"url": web.url, "ask": False, "login_seconds": 2})

        def wanted(but=None):
            return wait_until(lambda: state(s, "web").get("login_url") != but and state(s, "web").get("login_url"), "a login is wanted")
        first = wanted()
        wanted(but=first)
        equal(browse(browse(first)[1])[0], 404, "the first one is good no longer")
        wait_until(lambda: browse(browse(wanted(but=first))[1])[0] == 200, "one is finished in time")
        connected(s, "web")
        web.token, web.refreshes = "token-2", False
        run_id = s.run("tool mcp__web_whoami")
        events = ended(s, run_id)
        check(of(events, "action.required")[0]["timeout_at"], "the question says until when")
        equal([e["result"] for e in of(events, "action.resolved")], ["timeout"])
        check("in time" in json.dumps(of(events, "tool.failed")), of(events, "tool.failed"))


if __name__ == "__main__":
    main()
