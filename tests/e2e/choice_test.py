#!/usr/bin/env python3
"""The caller of a run chooses its model: what may be chosen, what is refused, what a restart keeps."""
import json

from lib import Provider, Server, check, equal, main, refused, test, text_of


def model(provider, name):
    return {"provider": provider, "model": name}


def two(p, **more):
    """Two providers that are the same program; one of them lists a model."""
    table = {name: {"dialect": "openai_chat", "base_url": p.url + "/v1", "key_env": "WIRE_KEY"} for name in ("a", "b")}
    table["b"]["models"] = {"hello": {}, "old-*": {"tools": False}}
    return {"UAR_PROVIDERS": json.dumps(table), "WIRE_KEY": Provider.KEY, "UAR_MODEL": "a/hello", **more}


def define(s, agent_id, **rules):
    a = s.http.send("PUT", "/api/agents/" + agent_id, {"version": "1.0", "kind": "agent", "id": agent_id, "runtime": {"entry": "llm.chat"},
                                               "policy": {"provider": rules} if rules else {}})
    equal(a.status, 201, a.body)


def choose(s, agent, name, **more):
    return s.http.post("/api/runs", {"agent_id": agent, "inputs": {"message": "hello"}, "options": {"model": name}, **more})


def facts(s, run_id, kind):
    return [e.data["payload"] for e in s.session_events(run_id) if e.data["type"] == kind and e.data["run_id"] == run_id]


def decided(s, run_id):
    """What the log says of the choice: the durable option, the decision and the call."""
    submitted, = facts(s, run_id, "turn.submitted")
    decision, = facts(s, run_id, "routing.decided")
    equal((submitted["options"]["model_chosen"], decision["decision_source"], decision["decision_reason"], decision["routing_mode"]),
          (True, "caller", "the caller chose it", "direct"))
    equal(decision["fallback_chain"], [])
    names = {f"{m['provider']}/{m['model']}" for m in (submitted["options"], decision["selected"], *facts(s, run_id, "model.requested"))}
    equal(len(names), 1, names)
    return names.pop()


@test("a_caller_chooses_the_model_of_a_run", "")
def chosen():
    with Provider() as p, Server(env=two(p)) as s:
        for name, answers in (("b/hello", "b/hello"), ("b/other", "b/other"), ("hello", "a/hello"), ("scripted/scripted", "scripted/scripted"),
                              ("scripted-reasoning", "scripted/scripted-reasoning")):
            a = choose(s, "assistant", name)
            equal(a.status, 202, a.body)
            s.finish(a.json["run_id"])
            equal(decided(s, a.json["run_id"]), answers)
        plain = s.create("assistant", "hello")
        s.finish(plain)
        equal(facts(s, plain, "routing.decided"), [])  # who chooses nothing gets what there was before
        check("model_chosen" not in facts(s, plain, "turn.submitted")[0]["options"])
        turn = s.http.post("/api/control/submit_turn", {"agent_id": "assistant", "message": "hello", "options": {"model": "b/hello"}})
        equal(turn.status, 200, turn.body)
        s.finish(turn.json["result"]["run_id"])
        equal(decided(s, turn.json["result"]["run_id"]), "b/hello")
        again = s.http.post(f"/api/runs/{turn.json['result']['run_id']}/retry").json["run_id"]
        s.finish(again)
        equal(decided(s, again), "b/hello")


@test("an_agent_says_which_models_may_be_chosen", "")
def allowed():
    with Provider() as p, Server(env=two(p)) as s:
        define(s, "listed", default=model("a", "hello"), fallbacks=[model("b", "hello")])
        define(s, "pair", pattern="ensemble", candidates=[model("a", "hello"), model("b", "hello")], ranker=model("a", "rank"))
        define(s, "free", max_tokens=100)

        def offers(agent):
            models = s.http.get("/api/agents/" + agent).json["models"]
            return [f"{m['provider']}/{m['model']}" for m in (models["default"], *models["choices"])], models["open"]
        equal(offers("assistant"), (["a/hello", "a/hello", "b/hello"], True))
        equal(offers("listed"), (["a/hello", "a/hello", "b/hello"], False))
        equal(offers("pair"), (["a/hello", "a/hello", "b/hello"], False))
        equal(offers("free"), (["a/hello", "a/hello", "b/hello"], True))
        equal(offers("demo"), (["scripted/scripted-reasoning"] * 2, False))
        check("models" not in s.http.get("/api/agents/echo").json)
        for agent, name in (("listed", "b/hello"), ("pair", "b/hello"), ("free", "b/other"), ("demo", "scripted-reasoning")):
            a = choose(s, agent, name)
            equal(a.status, 202, a.body)
            s.finish(a.json["run_id"])
            equal(s.record(a.json["run_id"])["status"], "succeeded")
            check(decided(s, a.json["run_id"]).endswith(name))


@test("a_model_that_may_not_be_chosen_is_refused_before_the_run", "")
def not_allowed():
    with Provider() as p, Server(env=two(p)) as s:
        define(s, "listed", default=model("a", "hello"), fallbacks=[model("b", "hello")])
        for agent, name, status, code, says in (
                ("assistant", "nobody/hello", 404, "NOT_FOUND", "a, b"),
                ("assistant", "b/", 400, "VALIDATION_ERROR", "names no model"),
                ("assistant", "b/two words", 400, "VALIDATION_ERROR", "no spaces"),
                ("assistant", "scripted/scripted-none", 400, "VALIDATION_ERROR", "scripted-slow"),
                ("listed", "b/other", 400, "VALIDATION_ERROR", "listed may use only: a/hello, b/hello"),
                ("demo", "a/hello", 400, "VALIDATION_ERROR", "scripted/scripted-reasoning"),
                ("echo", "a/hello", 400, "VALIDATION_ERROR", "uses no model")):
            problem = refused(choose(s, agent, name), status, code, "/options/model")
            check(says in problem["detail"], problem)
            body = {"agent_id": agent, "message": "hello", "options": {"model": name}}
            refused(s.http.post("/api/control/submit_turn", body), status, code, "/options/model")
        refused(choose(s, "assistant", 7), 400, "VALIDATION_ERROR", "/options/model")
        equal(s.http.get("/api/runs").json["runs"], [])
        key = {"idempotency_key": "one"}
        first = choose(s, "assistant", "b/hello", **key).json["run_id"]
        equal(choose(s, "assistant", "b/hello", **key).json["run_id"], first)
        equal(choose(s, "assistant", "b/other", **key).status, 409)  # another request


@test("a_message_that_joins_a_turn_chooses_no_other_model", "")
def joins():
    with Provider() as p, Server(env=two(p)) as s:
        first = choose(s, "assistant", "b/gate", conversation_id="talk").json["run_id"]
        p.wait_for(requests=1)
        steer = {"thread_id": "talk", "agent_id": "assistant", "message": "and", "policy": "steer"}
        problem = refused(s.http.post("/api/control/submit_turn", {**steer, "options": {"model": "b/hello"}}), 409, "CONFLICT", "/options/model")
        check("b/gate" in problem["detail"], problem)
        a = s.http.post("/api/control/submit_turn", {**steer, "options": {"model": "b/gate"}})
        equal((a.status, a.json["result"].get("steered")), (200, True), a.body)
        p.release()
        s.finish(first)
        equal({m["model"] for m in facts(s, first, "model.requested")}, {"gate"})


@test("a_chosen_model_survives_kill_9", "")
def survives():
    with Provider() as p, Server(env=two(p)) as s:
        talk = {"conversation_id": "talk"}
        first = choose(s, "assistant", "b/gate", **talk).json["run_id"]
        second = choose(s, "assistant", "b/hello", **talk).json["run_id"]  # waits for the first
        p.wait_for(requests=1)
        s.kill()
        p.release()
        s.start()
        for run_id, name in ((first, "b/gate"), (second, "b/hello")):
            s.finish(run_id)
            equal(s.record(run_id)["status"], "succeeded")
            submitted, = facts(s, run_id, "turn.submitted")
            equal((submitted["options"]["provider"] + "/" + submitted["options"]["model"], submitted["options"]["model_chosen"]), (name, True))
            equal({f"{m['provider']}/{m['model']}" for m in facts(s, run_id, "model.requested")}, {name})
            equal([d["decision_source"] for d in facts(s, run_id, "routing.decided")], ["caller"])
        check(text_of(s.events(second)), second)


main()
