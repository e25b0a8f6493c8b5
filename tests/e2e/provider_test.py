#!/usr/bin/env python3
"""The assistant agent against a provider that speaks OpenAI's chat completions."""
import json
import os
import re
import socket

from lib import Provider, Server, check, check_session, equal, main, run_uar, test, text_of
from lib.backends import Shop, recording


def outcome(model, message="hi", **settings):
    """Runs once against the fake; (stream, record, payload of the call's end, stats)."""
    with Provider() as p, Server(env=p.env(model), **settings) as s:
        run_id = s.create("assistant", message)
        events = s.events(run_id)
        log = s.session_events(run_id)
        equal(check_session(log), {run_id: True})
        end = [e.data for e in log if e.data["type"] in ("model.completed", "model.failed")]
        return events, s.record(run_id), end[-1]["payload"] if end else None, p.stats()


@test("an_answer_is_streamed_with_its_usage", "VAL-02 NEV-03")
def hello():
    events, record, end, stats = outcome("hello", "Good morning, how are you?")
    equal(text_of(events), "Hello from the fake provider. ")
    equal((record["status"], events[-1].type), ("succeeded", "RunDone"))
    equal(end["effective_model"], "fake-hello")
    equal(end["usage"], {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15})
    check(end["ttft_ms"] <= end["latency_ms"], end)
    equal(record["usage"]["output_tokens"], 5)
    sent = stats["last"]
    equal((sent["model"], sent["stream"]), ("hello", True))
    equal([m["role"] for m in sent["messages"]], ["system", "user"])
    equal(sent["messages"][1]["content"], "Good morning, how are you?")


@test("one_provider_is_asked_directly", "PROV-03")
def direct():
    """A run of one candidate: each call of it goes to that provider and to no other, also when it fails."""
    with Provider() as p, Provider() as other:
        for model, calls in (("hello", 1), ("tools", 2), ("err500", 1)):
            with Server(env=p.env(model), model_retries="0") as s:
                before = p.stats()["requests"]
                run_id = s.create("assistant", "hi")
                log = [e.data for e in s.session_events(run_id)]
                asked = [e["payload"] for e in log if e["type"] == "model.requested"]
                equal(len(asked), calls, model)
                equal({(x["provider"], x["model"]) for x in asked}, {("openai", model)})
                equal(p.stats()["requests"] - before, calls, "as many as the log says")
                equal([e["type"] for e in log if e["type"].startswith("routing.")], [], "nothing was chosen")
                equal(s.record(run_id)["status"], "failed" if model == "err500" else "succeeded")
        equal(other.stats()["requests"], 0)


def names_in(value):
    """Every name of a member, however deep."""
    if isinstance(value, dict):
        return set(value).union(*map(names_in, value.values()))
    return set().union(*map(names_in, value)) if isinstance(value, list) else set()


@test("nothing_of_a_providers_own_form_is_shown", "PROV-11")
def normalized():
    """Members of the wire of each kind of provider are in no event, record or snapshot that others read."""
    native = {"delta", "finish_details", "system_fingerprint", "logprobs", "object", "created", "function",
              "prompt_tokens", "completion_tokens", "parent_tool_use_id", "stop_sequence", "tool_use_id", "content_block",
              "rate_limit_info", "num_turns", "total_cost_usd", "apiKeySource", "permission_mode", "jsonrpc", "sessionUpdate"}
    with Provider() as p:
        for model in ("tools", "reasoning", "err429"):
            with Server(env=p.env(model)) as s:
                shown_of(s, s.create("assistant", "hi"), native)
    allow = ["dialogue " + recording("claude_code/dialogue_permission_allow.dialogue.jsonl")]
    codex = ["dialogue " + recording("codex/app_server_approval_accept.dialogue.jsonl")]
    acp = ["dialogue " + recording("acp/claude_permission_allow.dialogue.jsonl")]
    with Shop({"claude": {"script": allow}, "codex-app": {"entry": "codex", "script": codex},
               "acp-claude": {"entry": "acp", "script": acp}}) as s:
        for agent in ("claude", "codex-app", "acp-claude"):
            run_id = s.create(agent, "hi")
            equal(s.respond(s.asked(run_id)["actions"][0]["action_id"]).status, 200)
            shown_of(s, run_id, native)


def shown_of(s, run_id, native):
    stream, log = s.events(run_id, meta=1), s.session_events(run_id)
    equal(check_session(log), {run_id: True})
    shown = [e.data for e in stream + log] + [s.record(run_id), s.http.get("/runs/" + run_id).json]
    for one in shown:
        equal(names_in(one) & native, set(), str(one)[:300])
        check("chatcmpl-" not in json.dumps(one), "the provider's id of its answer", one)


@test("an_answer_that_was_cut_says_so", "")
def cut_answers():
    for reason, told in (("length", "limit of its output"), ("content_filter", "holds back")):
        with Provider() as p, Server(env=p.env("ends:" + reason)) as s:
            run_id = s.create("assistant", "hi")
            events = s.events(run_id)
            equal((events[-1].type, events[-1].data["data"].get("finish_reason")), ("RunDone", reason))
            r = s.record(run_id)
            equal((r["status"], r["finish_reason"]), ("succeeded", reason))
            log = {e.data["type"]: e.data["payload"] for e in s.session_events(run_id)}
            equal((log["model.completed"]["stop_reason"], log["turn.completed"]["finish_reason"],
                   log["task.attempt.completed"]["finish_reason"]), (reason, reason, reason))
            out = run_uar("run", "--data", s.data, "assistant", "hi")
            equal((out.returncode, out.stdout), (0, "This is not \n"), out.stderr)
            lines = [line for line in out.stderr.splitlines() if "[cut]" in line]
            check(len(lines) == 1 and told in lines[0] and reason in lines[0], out.stderr)
            s.restart()
            equal(s.record(run_id), r)
            equal(s.events(run_id)[-1].data, events[-1].data)
    with Provider() as p, Server(env=p.env("hello")) as s:
        run_id = s.create("assistant", "hi")
        check("finish_reason" not in s.events(run_id)[-1].data["data"])
        equal(s.record(run_id)["finish_reason"], "stop")
        out = run_uar("run", "--data", s.data, "assistant", "hi")
        check("[cut]" not in out.stderr, out.stderr)


@test("an_answer_of_nothing_is_a_failure_of_the_provider", "")
def nothing_said():
    events, record, end, _ = outcome("nothing")
    equal((record["status"], record["error"]["code"], events[-1].type), ("failed", "PROVIDER_ERROR", "Error"))
    equal((end["failure_category"], end["retryable"]), ("provider_error", True))
    check("without a word" in end["message"], end)


@test("a_provider_asks_for_tools_and_is_told_what_they_said", "TOOL-07 MCP-10")
def tools():
    events, record, end, stats = outcome("tools", "Compute something.")
    equal(record["status"], "succeeded")
    said = text_of(events)
    check('They said: {"value":42} and ' in said and "value_invalid" in said, said)
    starts = [e.data["data"]["tool_call_id"] for e in events if e.type == "ToolStart"]
    ends = [e.data["data"] for e in events if e.type == "ToolEnd"]
    equal(sorted(starts), sorted(x["tool_call_id"] for x in ends))
    equal(sorted(x["ok"] for x in ends), [False, True])
    sent = stats["last"]
    equal(stats["requests"], 2)
    asked, first, second = sent["messages"][-3:]
    equal([(c["id"], c["function"]["name"], json.loads(c["function"]["arguments"])) for c in asked["tool_calls"]],
          [("call_A", "internal__math_evaluate", {"expression": "6*7"}),
           ("uar_2_2", "internal__math_evaluate", {"expression": "1/0"})])
    equal([(m["role"], m["tool_call_id"]) for m in (first, second)], [("tool", "call_A"), ("tool", "uar_2_2")])
    offered = {t["function"]["name"]: t["function"] for t in sent["tools"]}
    check(all(re.fullmatch("[a-zA-Z0-9_-]+", n) for n in offered), offered)
    equal(offered["internal__math_evaluate"]["parameters"]["required"], ["expression"])


@test("without_tools_none_are_offered", "")
def no_tools():
    _, record, _, stats = outcome("hello", tools="false")
    equal(record["status"], "succeeded")
    check("tools" not in stats["last"], stats["last"])


@test("what_was_said_arrives_whole", "NEV-17 NEV-03")
def echo():
    said = "Zeichen äöü € 🙂 \"quoted\" \\back\\ {braces} </tag> " * 200
    events, _, _, stats = outcome("echo", said)
    equal(text_of(events).split(), said.split())
    equal(stats["last"]["messages"][-1]["content"], said)


@test("reasoning_and_text_are_told_apart", "NEV-04 VAL-02")
def reasoning():
    events, _, _, _ = outcome("reasoning")
    equal(text_of(events, "ReasoningDelta"), "The user said something. I will answer. ")
    equal(text_of(events), "Here is the answer. ")


@test("failures_have_a_category_and_a_message", "NEV-11 ERR-01 STAT-14")
def failures():
    cases = [("err401", "auth", False, 401, "Incorrect API key provided."),
             ("err429", "limit", True, 429, "Rate limit reached."),
             ("err500", "provider_error", True, 500, "The server had an error."),
             ("cut", "network", True, 200, None), ("badjson", "provider_error", True, 200, None)]
    for model, category, retryable, status, message in cases:
        events, record, end, _ = outcome(model, model_retries="0")
        equal((end["failure_category"], end["retryable"], end.get("http_status")),
              (category, retryable, status), model)
        equal(events[-1].data["data"]["code"], "PROVIDER_ERROR")
        equal((record["status"], record["error"]["code"]), ("failed", "PROVIDER_ERROR"))
        check(record["error"]["message"], record)
        if message:
            check(message in record["error"]["message"], record["error"])
    equal(text_of(outcome("cut", model_retries="0")[0]), "This ends ", "what came before the cut stays")


@test("a_model_that_falls_silent_is_given_up", "STAT-14")
def stall():
    events, record, end, stats = outcome("stall", model_idle_timeout_seconds="2s", model_retries="0")
    equal((end["failure_category"], record["status"]), ("timeout", "failed"))
    check("One moment ".startswith(text_of(events)), text_of(events))
    equal(stats["requests"], 1)


@test("a_provider_that_is_not_there_is_a_failed_run", "NEV-11")
def unreachable():
    with socket.socket() as nobody:  # a port that is taken, and where nobody listens
        nobody.bind(("127.0.0.1", 0))
        env = {"OPENAI_BASE_URL": f"http://127.0.0.1:{nobody.getsockname()[1]}/v1",
               "OPENAI_API_KEY": Provider.KEY, "UAR_MODEL": "hello"}
        unreachable_at(env)


def unreachable_at(env):
    with Server(env=env) as s:
        run_id = s.create("assistant", "hi")
        equal(s.events(run_id)[-1].data["data"]["code"], "PROVIDER_ERROR")
        equal(s.record(run_id)["status"], "failed")
        equal(s.finish(s.create("echo", "still here"))["status"], "succeeded")


@test("the_key_appears_nowhere", "SEC-03")
def canary():
    """Not in an answer, event, log, database or blob; also when the provider repeats it."""
    key = Provider.KEY
    with Provider() as p:
        for model in ("hello", "err401", "leak401"):
            with Server(env=p.env(model), log_level="debug") as s:
                run_id = s.create("assistant", "x" * 5000)
                seen = b"".join([e.text.encode() for e in s.events(run_id, meta=1)] +
                                [e.text.encode() for e in s.session_events(run_id)])
                for path in ("/api/runs", "/api/runs/" + run_id, "/metrics", "/version",
                             "/api/agents", "/ready"):
                    seen += s.http.get(path).body
                check(key.encode() not in seen, "in what clients see", model)
                equal(s.stop(), 0)
                check(key not in s.log(), "in the log")
                for folder, _, names in os.walk(s.data):
                    for name in names:
                        with open(os.path.join(folder, name), "rb") as f:
                            check(key.encode() not in f.read(), "in", name)
        equal(p.stats()["models"], {"hello": 1, "err401": 1, "leak401": 1})


main()
