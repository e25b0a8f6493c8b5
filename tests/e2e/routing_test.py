#!/usr/bin/env python3
"""Routing between models, repeated calls, prices and budgets, through the doors that users have."""
import json
import os
import subprocess

from lib import ROOT, Provider, Server, check, check_session, equal, main, test, text_of

DIALECTS = ("openai_chat", "openai_responses", "anthropic")
QUICK = {"model_retry_seconds": "1ms"}


def providers(**urls):
    """UAR_PROVIDERS with one provider a name: NAME=(url, dialect) or NAME=(url, dialect, members)."""
    table = {}
    for name, (url, dialect, *more) in urls.items():
        table[name] = {"dialect": dialect, "base_url": url + "/v1", "key_env": "WIRE_KEY", **(more[0] if more else {})}
    return {"UAR_PROVIDERS": json.dumps(table), "WIRE_KEY": Provider.KEY}


def model(name):
    provider, _, rest = name.partition("/")
    return {"provider": provider, "model": rest}


def route(first, *rest, **rules):
    return {"UAR_ROUTING": json.dumps({"default": model(first), "fallbacks": [model(m) for m in rest], **rules})}


class Facts:
    """What the log has of a run."""

    def __init__(self, s, run_id):
        self.log = [e.data for e in s.session_events(run_id)]
        equal(check_session(s.session_events(run_id))[run_id], True)

    def of(self, kind):
        return [e["payload"] for e in self.log if e["type"] == kind]

    def kinds(self, *prefixes):
        return [e["type"] for e in self.log if e["type"].startswith(prefixes)]

    def requests(self, kind):
        return [e["model_request_id"] for e in self.log if e["type"] == kind]


def log_until(s, run_id, kind, **members):
    """The log of the run's session up to an event of that kind whose payload has these members."""
    def is_it(event):
        payload = event.data["payload"]
        return event.data["type"] == kind and all(payload.get(k) == v for k, v in members.items())
    with s.session_stream(s.record(run_id)["session_id"]) as stream:
        return [e.data for e in stream.until(is_it)]


def run(s, message="hello", agent="assistant"):
    run_id = s.create(agent, message)
    events = s.events(run_id)
    return events, s.record(run_id), Facts(s, run_id)


ROUTING = ("task.profile.resolved", "routing.")


@test("the_first_provider_is_limited_and_dies_and_the_second_answers", "PROV-04 PROV-09 EVT-086 EVT-087 EVT-088 EVT-089 EVT-099 STAT-07")
def fallback():
    for dialect in DIALECTS:
        with Provider() as p, Server(env={**providers(a=(p.url, dialect), b=(p.url, dialect)),
                                          **route("a/seq:err429,die", "b/hello")}, **QUICK) as s:
            events, record, facts = run(s)
            equal((dialect, record["status"], text_of(events)), (dialect, "succeeded", "Hello from the fake provider. "))
            equal(facts.kinds(*ROUTING), ["task.profile.resolved", "routing.candidates.resolved", "routing.decided",
                                          "routing.fallback.applied"])
            equal(p.stats()["models"]["hello"], 1)
            ends = facts.of("model.failed")
            equal([e["failure_category"] for e in ends], ["limit", "network", "network"])
            equal(len(set(facts.requests("model.requested"))), 4)
            hit, = facts.of("rate_limit.hit")
            equal((hit["scope"], hit["provider"], hit["http_status"], hit["retry_after_ms"]), ("provider", "a", 429, 1000))
            fell, = facts.of("routing.fallback.applied")
            equal((fell["from"]["provider"], fell["to"]["provider"], fell["remaining"]), ("a", "b", 0))
            equal(fell["failed_model_request_id"], facts.requests("model.failed")[-1])
            statuses = [e["status"] for e in facts.of("run.status")]
            equal(statuses.count("waiting_resource"), 2)
            waits = facts.of("task.waiting")
            equal([w["waiting_on"]["kind"] for w in waits], ["resource", "resource"])
            check(all("timeout_at" in w for w in waits), waits)


@test("the_read_model_of_routing_and_limits_after_a_fallback", "SNAP-11")
def read_model():
    prices = {"UAR_PRICES": json.dumps({"b/*": {"input": 1000, "output": 2000}})}
    with Provider() as p, Server(env={**providers(a=(p.url, "openai_chat"), b=(p.url, "openai_chat")), **prices,
                                      **route("a/err429", "b/hello", budget={"model_calls": 4})}, **QUICK) as s:
        _, record, facts = run(s)
        for _ in range(2):  # from the log, and after a restart
            a = s.http.get(f"/api/sessions/{record['session_id']}")
            equal(a.status, 200, a.body)
            summary = a.json["active_thread"]["routing_limits"]
            equal((summary["state"], summary["run_id"]), ("available", record["run_id"]))
            equal(summary["task_profile"], facts.of("task.profile.resolved")[0])
            equal(summary["candidate_count"], 2)
            equal(summary["decision"]["selected"], {"provider": "b", "model": "hello"})
            equal((summary["decision"]["state"], summary["decision"]["fallbacks"]), ("decided", 1))
            equal(summary["cost"]["cumulative"], facts.of("cost.recorded")[-1]["cumulative"])
            equal((summary["quota"]["state"], summary["rate_limit"]["hits"]), ("low", 3))
            s.kill()
            s.start()


@test("one_candidate_and_none_are_facts_of_their_own", "PROV-09 PROV-03 EVT-090 EVT-091")
def one_and_none():
    with Provider() as p, Server(env={**providers(a=(p.url, "openai_chat")), **route("a/hello")}) as s:
        _, record, facts = run(s)
        equal(record["status"], "succeeded")
        equal(facts.kinds(*ROUTING), ["task.profile.resolved", "routing.candidates.resolved", "routing.single_candidate",
                                      "routing.decided"])
    rows = {"models": {"hello": {"context_tokens": 5}}}
    with Provider() as p, Server(env={**providers(a=(p.url, "openai_chat", rows)), **route("a/hello", "gone/x")}) as s:
        _, record, facts = run(s)
        equal((record["status"], record["error"]["code"]), ("failed", "ROUTING_NOT_POSSIBLE"))
        equal(facts.kinds(*ROUTING), ["task.profile.resolved", "routing.candidates.resolved", "routing.not_possible"])
        excluded = facts.of("routing.candidates.resolved")[0]["excluded"]
        equal([(e["provider"], e["reason"]) for e in excluded], [("a", "context_too_long"), ("gone", "credentials")])
        equal(p.stats()["requests"], 0)


CRITERIA = [  # what the models can do, the rules of the policy, which one is used
    ({"x": {"classes": ["code"]}}, {"task_class": "chat"}, "y"),
    ({"y": {"classes": ["code"]}}, {"task_class": "code"}, "y"),
    ({"x": {"latency_ms": 3000}, "y": {"latency_ms": 200}}, {"max_latency_ms": 500}, "y"),
    ({}, {"max_cost_usd_per_mtok": 1}, "y"),
    ({"x": {"tools": False}}, {}, "y"),
    ({"x": {"context_tokens": 4}}, {}, "y"),
    ({"x": {"context_tokens": 4000}}, {"min_context_tokens": 9000}, "y"),
    ({"y": {"reasoning": True}}, {"reasoning": "high"}, "y"),
    ({}, {}, "x"),
]


@test("each_criterion_chooses_the_model", "PROV-02 PROV-12")
def criteria():
    prices = {"UAR_PRICES": json.dumps({"x": {"input": 1, "output": 5}, "y": {"input": 0.1, "output": 0.5}})}
    with Provider() as p:
        for rows, rules, used in CRITERIA:
            rows = {k: {"tools": True, **v} for k, v in rows.items()}
            env = {**providers(a=(p.url, "openai_chat", {"models": rows})), **route("a/x", "a/y", **rules), **prices}
            with Server(env=env) as s:
                _, record, facts = run(s)
                equal((record["status"], facts.of("model.completed")[0]["model"]), ("succeeded", used), rules)
                decided, = facts.of("routing.decided")
                equal(decided["selected"]["model"], used)


@test("a_wait_for_a_provider_survives_kill_9", "STAT-07")
def wait_survives():
    with Provider() as p, Server(env={**providers(a=(p.url, "anthropic")), **route("a/seq:wait429,hello")}) as s:
        run_id = s.create("assistant", "hello")
        log_until(s, run_id, "run.status", status="waiting_resource")
        equal(s.record(run_id)["status"], "running")
        s.kill()
        s.start()
        log = log_until(s, run_id, "history.reconstructed")
        waiting, = [e["payload"] for e in log if e["type"] == "run.status" and e["payload"]["status"] == "waiting_resource"]
        check("due_at" in waiting["metadata"], waiting)
        equal(s.record(run_id)["status"], "running")
        equal(p.stats()["requests"], 1)
        s.cancel(run_id)
        equal(s.finish(run_id)["status"], "canceled")
        equal(p.stats()["requests"], 1)


@test("a_repetition_that_was_due_is_made_after_kill_9", "STAT-07")
def due_survives():
    with Provider() as p, Server(env={**providers(a=(p.url, "anthropic")), **route("a/seq:err429,hello")}) as s:
        run_id = s.create("assistant", "hello")
        log_until(s, run_id, "run.status", status="waiting_resource")
        s.kill()
        s.start()
        equal(s.finish(run_id)["status"], "succeeded")
        equal(p.stats()["requests"], 2)
        equal(len(Facts(s, run_id).of("model.failed")), 1)


@test("a_call_that_may_succeed_later_is_repeated_and_its_text_superseded", "STAT-11")
def repeated():
    for dialect in DIALECTS:
        with Provider() as p, Server(env=providers(a=(p.url, dialect)), model="a/seq:cut,err500,hello", **QUICK) as s:
            events, record, facts = run(s)
            equal((dialect, record["status"]), (dialect, "succeeded"))
            check(text_of(events).endswith("Hello from the fake provider. "), text_of(events))
            retries = [e for e in facts.of("run.status") if "retry" in e.get("metadata", {})]
            equal([e["metadata"]["retry"] for e in retries], [1, 2])
            check(retries[0]["metadata"]["superseded_bytes"] > 0, retries)
            equal(len(set(facts.requests("model.requested"))), 3)
            equal(facts.of("task.retrying"), [])
            answer = s.http.get(f"/api/runs/{record['run_id']}/items")
            if answer.status == 200:
                check(b"Hello from the fake provider" in answer.body, answer.body)


@test("what_repeating_cannot_mend_is_not_repeated", "")
def not_repeated():
    for name, count in (("err401", 1), ("page", 1), ("big", 1)):
        with Provider() as p, Server(env=providers(a=(p.url, "openai_chat")), model="a/" + name, **QUICK) as s:
            _, record, _ = run(s)
            equal((name, record["status"], p.stats()["requests"]), (name, "failed", count))


@test("costs_are_estimated_recorded_once_and_joined_by_request", "PROV-10 EVT-097 EVT-098")
def costs():
    prices = {"UAR_PRICES": json.dumps({"a/*": {"input": 1000, "output": 2000}})}
    with Provider() as p, Server(env={**providers(a=(p.url, "openai_chat")), **prices}, model="a/seq:cut,err500,hello",
                                 **QUICK) as s:
        _, record, facts = run(s)
        equal(record["status"], "succeeded")
        recorded = facts.of("cost.recorded")
        equal(len(recorded), 2)  # what was refused before a word was said costs nothing
        equal(facts.requests("cost.estimated"), facts.requests("model.requested"))
        equal(facts.requests("cost.recorded"), [facts.requests("model.failed")[0], facts.requests("model.completed")[0]])
        equal([c["is_estimate"] for c in recorded], [True, False])
        last = recorded[-1]
        usage = facts.of("model.completed")[0]["usage"]
        equal(last["usage"]["output_tokens"], usage["output_tokens"])
        amount = usage["input_tokens"] * 0.001 + usage["output_tokens"] * 0.002
        check(abs(last["amount"] - amount) < 1e-6, last)
        check(abs(last["cumulative"]["run"] - recorded[0]["amount"] - last["amount"]) < 1e-6, recorded)
        check(abs(record["cost"] - last["cumulative"]["run"]) < 1e-5, record)


BUDGETS = [({"model_calls": 1}, "run.model_calls"), ({"tokens": 60}, "run.tokens"), ({"cost_usd": 0.05}, "run.money"),
           ({"tool_calls": 1}, "run.tool_calls")]


@test("a_budget_stops_before_the_call", "EVT-100 EVT-101 STAT-08")
def budgets():
    prices = {"UAR_PRICES": json.dumps({"a/*": {"input": 1000, "output": 2000}})}
    for budget, name in BUDGETS:
        with Provider() as p, Server(env={**providers(a=(p.url, "openai_chat")), **prices,
                                          **route("a/tools", budget=budget)}) as s:
            _, record, facts = run(s, "Compute something.")
            equal((name, record["status"], record["error"]["code"]), (name, "failed", "BUDGET_EXCEEDED"))
            blocked, = facts.of("quota.blocked")
            equal(blocked["quota_name"], name)
            equal(blocked["blocked_operation"], "tool_call" if name == "run.tool_calls" else "model_call")
            equal((name, p.stats()["requests"]), (name, 1))
            thread = s.http.get(f"/api/sessions/{record['session_id']}").json["active_thread"]
            equal((thread["routing_limits"]["quota"]["state"], thread["routing_limits"]["quota"]["fact"]["quota_name"]),
                  ("blocked", name))
            if name == "run.model_calls":
                equal(len(facts.of("quota.low")), 1)


@test("one_model_plans_and_another_executes", "PROV-05")
def split():
    for dialect in DIALECTS:
        policy = {"pattern": "split", "plan": model("a/reasoning"), "execute": model("b/echo")}
        with Provider() as p, Server(env={**providers(a=(p.url, dialect), b=(p.url, dialect)),
                                          "UAR_ROUTING": json.dumps(policy)}, tools="false") as s:
            events, record, facts = run(s, "Count the apples.")
            equal((dialect, record["status"]), (dialect, "succeeded"))
            asked = facts.of("model.requested")
            equal([(e["role"], e["provider"], e["model"]) for e in asked],
                  [("plan", "a", "reasoning"), ("execute", "b", "echo")])
            equal([(e["role"], e["selected"]["provider"]) for e in facts.of("routing.decided")],
                  [("plan", "a"), ("execute", "b")])
            check("Follow this plan:" in text_of(events) and "Here is the answer." in text_of(events), text_of(events))
            check("Here is the answer. " in text_of(events, "ReasoningDelta"), "the plan is shown as reasoning")


@test("a_plan_is_written_once_whatever_happens", "PROV-05")
def split_killed():
    policy = {"pattern": "split", "plan": model("a/hello"), "execute": model("b/seq:gate,hello")}
    with Provider() as p, Server(env={**providers(a=(p.url, "anthropic"), b=(p.url, "anthropic")),
                                      "UAR_ROUTING": json.dumps(policy)}, tools="false") as s:
        run_id = s.create("assistant", "go")
        p.wait_for(requests=2)
        s.kill()
        s.start()
        equal(s.finish(run_id)["status"], "succeeded")
        equal(p.stats()["models"], {"hello": 1, "seq:gate,hello": 2})
        check("Follow this plan:\\nHello from the fake provider." in json.dumps(p.stats()["last"]), p.stats()["last"])


def ensemble(p, ranker, *candidates, dialect="openai_chat", **rules):
    policy = {"pattern": "ensemble", "candidates": [model(f"a/{c}") for c in candidates],
              "ranker": model(f"b/{ranker}"), **rules}
    return {**providers(a=(p.url, dialect), b=(p.url, dialect)), "UAR_ROUTING": json.dumps(policy),
            "UAR_MODEL_RETRY_SECONDS": "1ms"}


@test("several_models_answer_and_a_ranker_chooses_one", "PROV-06")
def ensembles():
    for dialect in DIALECTS:
        with Provider() as p, Server(env=ensemble(p, "says:The_best_is_2.", "says:one_fish", "says:two_fish",
                                                  "says:red_fish", dialect=dialect)) as s:
            events, record, facts = run(s, "Name a fish.")
            equal((dialect, record["status"], text_of(events)), (dialect, "succeeded", "two fish"))
            equal([(e["role"], e["model"], e["tool_count"]) for e in facts.of("model.requested")],
                  [("candidate", "says:one_fish", 0), ("candidate", "says:two_fish", 0),
                   ("candidate", "says:red_fish", 0), ("rank", "says:The_best_is_2.", 0)])
            told = json.dumps(p.stats()["last"])
            for n, answer in enumerate(("one fish", "two fish", "red fish")):
                check(f'<data source=\\"answer {n + 1}\\">\\n{answer}\\n</data>' in told, told)
            equal([(e["role"], e["selected"]["model"], e.get("chosen_index")) for e in facts.of("routing.decided")],
                  [("rank", "says:The_best_is_2.", None), ("candidate", "says:one_fish", None),
                   ("candidate", "says:two_fish", 1)])
            equal(facts.of("routing.decided")[-1]["decision_source"], "ranker")
            equal(len(facts.of("routing.candidates.resolved")[0]["candidates"]), 4)
            equal(len(set(facts.requests("model.completed"))), 4)
            equal(text_of(s.events(s.create("assistant", "And another?", conversation_id=record["conversation_id"]))),
                  "two fish")


@test("candidates_that_fail_are_left_out_and_an_undecided_ranker_gets_the_first", "PROV-06")
def ensembles_with_faults():
    for ranker, candidates, said, fallbacks in (
            ("says:2", ("err401", "says:b", "says:c"), "c", 1), ("says:1", ("says:a", "err401"), "a", 1),
            ("says:I_like_9_and_0", ("says:a", "says:b"), "a", 0), ("says:1", ("says:a",), "a", 0),
            ("err401", ("says:a", "says:b"), "a", 0), ("err500", ("err401", "says:b"), "b", 1)):
        with Provider() as p, Server(env=ensemble(p, ranker, *candidates)) as s:
            events, record, facts = run(s)
            equal((record["status"], text_of(events)), ("succeeded", said))
            equal(len(facts.of("routing.fallback.applied")), fallbacks)
            if ranker.startswith("err"):
                equal(facts.of("routing.decided")[-1]["decision_reason"], "the ranker failed: the first answer is used")
    with Provider() as p, Server(env=ensemble(p, "says:1", "err401", "err401")) as s:
        equal(run(s)[1]["status"], "failed")


@test("an_ensemble_keeps_to_its_budget", "PROV-06 EVT-101")
def ensembles_cost():
    with Provider() as p, Server(env=ensemble(p, "says:1", "says:a", "says:b", budget={"model_calls": 2})) as s:
        _, record, facts = run(s)
        equal((record["status"], record["error"]["code"]), ("failed", "BUDGET_EXCEEDED"))
        equal([e["role"] for e in facts.of("model.requested")], ["candidate", "candidate"])
        equal(p.stats()["requests"], 2)


@test("candidates_answer_once_whatever_happens", "PROV-06")
def ensembles_killed():
    with Provider() as p, Server(env=ensemble(p, "says:2", "says:a", "seq:gate,says:b", "says:c")) as s:
        run_id = s.create("assistant", "go")
        p.wait_for(requests=2)
        s.kill()
        s.start()
        equal((s.finish(run_id)["status"], text_of(s.events(run_id))), ("succeeded", "b"))
        equal(p.stats()["models"], {"says:a": 1, "seq:gate,says:b": 2, "says:c": 1, "says:2": 1})
        equal(check_session(s.session_events(run_id))[run_id], True)
    with Provider() as p, Server(env=ensemble(p, "seq:gate,says:1", "says:a", "says:b")) as s:
        run_id = s.create("assistant", "go")
        p.wait_for(requests=3)
        s.kill()
        s.start()
        equal((s.finish(run_id)["status"], text_of(s.events(run_id))), ("succeeded", "a"))
        equal(p.stats()["models"], {"says:a": 1, "says:b": 1, "seq:gate,says:1": 2})


@test("a_policy_that_cannot_be_followed_is_refused_at_the_start", "")
def bad_policy():
    for policy, place in (({"pattern": "ensemble", "candidates": [model("a/x")]}, "/ranker"),
                          ({"default": {"provider": "a"}}, "/default"), ({"budget": {"usd": 1}}, "/budget/usd"),
                          ({"budget": {"tool_calls": 0}}, "/budget/tool_calls"), ({"budget": {"cost_usd": "1"}}, "/budget/cost_usd")):
        out = uar_models({"UAR_ROUTING": json.dumps(policy)})
        check(out.returncode != 0 and place in out.stderr, out.stderr)


WINDOW = {"models": {"*": {"context_tokens": 500}}}
LONG = "word " * 240


def talk(s, *messages, conversation="talk"):
    """The turns of a conversation, one after the other; the id of the last run."""
    for message in messages:
        run_id = s.create("assistant", message, conversation_id=conversation)
        equal(s.finish(run_id)["status"], "succeeded")
    return run_id


@test("a_full_window_is_condensed_with_a_boundary", "EVT-056 EVT-057 FACT-06")
def compaction():
    for dialect in DIALECTS:
        with Provider() as p, Server(env=providers(a=(p.url, dialect, WINDOW)), model="a/hello", tools="false") as s:
            run_id = talk(s, LONG, LONG)
            facts = Facts(s, run_id)
            equal(facts.kinds("context.compaction"), ["context.compaction.started", "context.compaction.completed"])
            started, done = facts.of("context.compaction.started")[0], facts.of("context.compaction.completed")[0]
            equal((started["trigger"], started["compaction_id"]), ("token_limit", done["compaction_id"]))
            equal(len(done["affected_turn_ids"]), 1)
            check(done["tokens_after"] < done["tokens_before"], done)
            equal(done["summary_preview"], "Hello from the fake provider.")
            equal([e["role"] for e in facts.of("model.requested")][-2:], ["summarize", "execute"])
            last = json.dumps(p.stats()["last"])
            check("Summary of the conversation so far:\\nHello from the fake provider." in last, last)
            equal(last.count(LONG.strip()), 1)
            s.kill()
            s.start()
            talk(s, "short")
            last = json.dumps(p.stats()["last"])
            check("Summary of the conversation so far:" in last, "the boundary is gone after a restart")


def control(s, command, **body):
    a = s.http.post(f"/api/control/{command}", body)
    equal(a.status, 200, a.body)
    return a.json["result"]


@test("a_question_that_waits_survives_a_compaction", "CHAN-05")
def compaction_keeps_questions():
    with Provider() as p, Server(env=providers(a=(p.url, "openai_chat", WINDOW)), model="a/hello") as s:
        asking = s.create("tools", 'tool fs.write {"path": "a.txt", "text": "x"}', conversation_id="asks")
        log_until(s, asking, "action.required")
        action, = s.http.get(f"/api/runs/{asking}").json["actions"]
        session_id = s.record(asking)["session_id"]
        for message in (LONG, LONG):
            turn = control(s, "submit_turn", session_id=session_id, thread_id="other", agent_id="assistant", message=message)
            run_id = turn["run_id"]
            with s.stream(run_id) as stream:
                stream.all()
        log = log_until(s, asking, "context.compaction.completed")
        equal(log[-1]["payload"]["preserved"]["action_ids"], [action["action_id"]])
        s.kill()
        s.start()
        control(s, "respond_action", action_id=action["action_id"], decision="allow")
        equal(s.finish(asking)["status"], "succeeded")


@test("a_compaction_survives_kill_9_in_its_middle", "FACT-06")
def compaction_killed():
    with Provider() as p, Server(env=providers(a=(p.url, "openai_chat", WINDOW)), model="a/seq:hello,gate,hello",
                                 tools="false") as s:
        talk(s, LONG)
        run_id = s.create("assistant", LONG, conversation_id="talk")
        p.wait_for(requests=2)
        s.kill()
        s.start()
        equal(s.finish(run_id)["status"], "succeeded")
        equal(Facts(s, run_id).kinds("context.compaction"), ["context.compaction.started", "context.compaction.completed"])


@test("what_cannot_be_condensed_is_left_out", "EVT-058")
def compaction_fails():
    with Provider() as p, Server(env=providers(a=(p.url, "openai_chat", WINDOW)), model="a/seq:hello,err401,hello",
                                 tools="false") as s:
        run_id = talk(s, LONG, LONG)
        facts = Facts(s, run_id)
        failed, = facts.of("context.compaction.failed")
        equal((failed["fallback"], failed["error"]["failure_category"]), ("truncate", "auth"))
        last = json.dumps(p.stats()["last"])
        equal(last.count(LONG.strip()), 1)


def uar_models(env, *words):
    full = {**{k: v for k, v in os.environ.items() if not k.startswith(("UAR_", "OPENAI", "ANTHROPIC", "OLLAMA"))}, **env}
    return subprocess.run([os.path.join(ROOT, "build", "uar"), "models", *words], env=full, capture_output=True, text=True,
                          timeout=60)


@test("uar_models_lists_and_tries_providers", "")
def models_verb():
    for dialect in DIALECTS:
        with Provider() as p:
            env = providers(a=(p.url, dialect), b=("http://127.0.0.1:9", dialect))
            out = uar_models(env, "a", "--json")
            answer = json.loads(out.stdout)["providers"][0]
            equal((out.returncode, answer["provider"], answer["status"]), (0, "a", "ok"), out.stderr)
            check(answer["models"], answer)
            out = uar_models(env)
            equal(out.returncode, 1, out.stdout)
            check("a: ok" in out.stdout and "b: failed" in out.stdout, out.stdout)
            out = uar_models(env, "a/hello")
            check(out.returncode == 0 and "Hello from the fake provider." in out.stdout, out.stdout, out.stderr)
            out = uar_models(env, "a/err401")
            check(out.returncode == 1 and "Incorrect API key" in out.stdout, out.stdout)
            check(Provider.KEY not in out.stdout + out.stderr, "the key is shown")
    out = uar_models({"OLLAMA_HOST": "127.0.0.1:9", "OPENAI_API_KEY": "sk-x", "ANTHROPIC_API_KEY": "sk-y",
                      "OPENAI_BASE_URL": "http://127.0.0.1:9/v1", "ANTHROPIC_BASE_URL": "http://127.0.0.1:9"})
    for name in ("openai", "anthropic", "ollama"):
        check(f"{name}: failed" in out.stdout, out.stdout)
    check("No provider is configured" in uar_models({}).stdout, "none")


main()
