#!/usr/bin/env python3
"""The assistant agent against providers of all three wires: what they say, and how they fail."""
import json
import os
import re
import subprocess
import tempfile

from lib import ROOT, Provider, Server, check, check_session, equal, main, run_uar, test, text_of
from lib.agents import AgentServer, definition

DIALECTS = ("openai_chat", "openai_responses", "anthropic")


def wire_env(url, dialect, model, **more):
    table = {"w": {"dialect": dialect, "base_url": url, "key_env": "WIRE_KEY", **more}}
    return {"UAR_PROVIDERS": json.dumps(table), "UAR_MODEL": "w/" + model, "WIRE_KEY": Provider.KEY}


def outcome(s, message="hi"):
    """One run: (stream, record, payloads of the ends of its model calls)."""
    run_id = s.create("assistant", message)
    events = s.events(run_id)
    log = s.session_events(run_id)
    equal(check_session(log)[run_id], True)
    ends = [e.data["payload"] for e in log if e.data["type"] in ("model.completed", "model.failed")]
    return events, s.record(run_id), ends


@test("every_wire_streams_text_and_reasoning", "VAL-02 NEV-04 EVT-045")
def wires_speak():
    for dialect in DIALECTS:
        with Provider() as p, Server(env=wire_env(p.url + "/v1", dialect, "fault")) as s:
            events, record, ends = outcome(s, "hello")
            equal((dialect, text_of(events)), (dialect, "Hello from the fake provider. "))
            equal((record["status"], len(ends)), ("succeeded", 1))
            equal((ends[0]["provider"], ends[0]["model"], ends[0]["effective_model"]), ("w", "fault", "fake-hello"))
            equal(ends[0]["usage"]["output_tokens"], 5)
            equal(ends[0]["usage"].get("cached_tokens"), None if dialect == "openai_chat" else 2)
            events, _, _ = outcome(s, "reasoning")
            equal(text_of(events, "ReasoningDelta"), "The user said something. I will answer. ")
            equal(text_of(events), "Here is the answer. ")
            run_id = s.create("assistant", "reasoning")
            summary, = [e.data["payload"] for e in s.session_events(run_id) if e.data["type"] == "reasoning.summary"]
            equal((summary["text"], summary["redacted"]), ("The user said something. I will answer. ", False))
            equal(summary["chars"], len(summary["text"]))


@test("a_key_is_in_a_variable_a_file_or_a_credential_of_systemd", "")
def keys():
    with Provider() as p, tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "model-key"), "w", encoding="utf-8") as f:
            f.write(Provider.KEY + "\n")
        for place, env in (({"key_env": "MY_KEY"}, {"MY_KEY": Provider.KEY}),
                           ({"key_file": os.path.join(folder, "model-key")}, {}),
                           ({"credential": "model-key"}, {"CREDENTIALS_DIRECTORY": folder})):
            table = {"w": {"dialect": "openai_chat", "base_url": p.url + "/v1", **place}}
            with Server(env={"UAR_PROVIDERS": json.dumps(table), "UAR_MODEL": "w/hello", **env}) as s:
                _, record, ends = outcome(s)
                equal((record["status"], len(ends)), ("succeeded", 1), (place, ends))
                check(Provider.KEY not in s.log() + json.dumps(ends), place)
            wrong = {"UAR_PROVIDERS": json.dumps({"w": {**table["w"], "key_env": "NONE", "key_file": "/x"}}), "UAR_MODEL": "w/hello"}
            out = run_uar("models", env={**wrong, **env})
            check(out.returncode == 1 and "/w" in out.stderr, out.stderr)


@test("the_first_status_comes_before_any_output", "")
def first_status():
    with Provider() as p, Server(env=p.env("mute"), model_idle_timeout_seconds="60") as s:
        run_id = s.create("assistant", "hi")
        with s.stream(run_id) as stream:
            stream.until(lambda e: e.type == "RunStart")
        session_id = s.record(run_id)["session_id"]
        with s.session_stream(session_id) as log:  # the model has not said a word
            log.until(lambda e: e.data["type"] == "model.requested")
        seen = [e.data["payload"]["status"] for e in read_stored(s, session_id) if e.data["type"] == "run.status"]
        check("preparing" in seen, seen)
        s.cancel(run_id)
        equal(s.finish(run_id)["status"], "canceled")


def read_stored(s, session_id):
    with s.session_stream(session_id, stored=1) as log:
        return list(log)


@test("every_wire_asks_for_tools_at_once", "TOOL-07")
def wires_ask():
    for dialect in DIALECTS:
        with Provider() as p, Server(env=wire_env(p.url + "/v1", dialect, "tools")) as s:
            events, record, ends = outcome(s, "Compute something.")
            equal((dialect, record["status"]), (dialect, "succeeded"))
            check('They said: {"value":42} and ' in text_of(events), text_of(events))
            check("value_invalid" in text_of(events), text_of(events))
            equal([e.get("tool_call_count") for e in ends], [2, None])
            equal(p.stats()["requests"], 2)


SHAPED = {"openai_chat": ("response_format", "json_schema"), "openai_responses": ("text", "format"),
          "anthropic": ("output_config", "format")}


@test("every_wire_asks_for_an_answer_by_its_schema", "ART-13")
def wires_shape():
    schema = {"type": "object", "required": ["answer"], "properties": {"answer": {"type": "string"}}}
    for dialect in DIALECTS:
        agent = definition("shaped", schemas={"outputs": schema},
                           policy={"provider": {"default": {"provider": "w", "model": 'says:{"answer":_"yes"}'}}})
        with Provider() as p, AgentServer(agent, env=wire_env(p.url + "/v1", dialect, "hello")) as s:
            run_id = s.create("shaped", "Is it?")
            equal((dialect, json.loads(text_of(s.events(run_id)))), (dialect, {"answer": "yes"}))
            equal((s.record(run_id)["status"], p.stats()["requests"]), ("succeeded", 1))
            member, kind = SHAPED[dialect]
            asked = p.stats()["last"][member]
            check(kind in asked and '"answer"' in json.dumps(asked), asked)


def check_sealed(dialect, s, run_id):
    """The answer says whether what was sealed came back; the log keeps it in a blob, and nobody is shown it."""
    events = s.events(run_id)
    log = [e.data for e in s.session_events(run_id)]
    equal((dialect, text_of(events)), (dialect, "I will compute.It is whole."))
    equal(text_of(events, "ReasoningDelta"), "Let me see. ")
    ends = [e for e in log if e["type"] == "model.completed"]
    refs = [(e.get("refs") or {}).get("raw_ref") for e in ends]
    check(refs[0].startswith("blob://") and refs[-1] is None, refs)
    for shown in (events, log):
        check(SEAL not in json.dumps([e if isinstance(e, dict) else e.data for e in shown]), "it is shown")


SEALING = ("openai_responses", "anthropic")
SEAL = "c2VhbGVk"


@test("blocks_of_a_provider_come_back_unmodified", "PROV-11")
def sealed_blocks():
    for dialect in SEALING:
        with Provider() as p, Server(env=wire_env(p.url + "/v1", dialect, "sealed")) as s:
            check_sealed(dialect, s, s.create("assistant", "go"))
            equal(p.stats()["requests"], 2)


@test("blocks_of_a_provider_come_back_after_kill_9", "")
def sealed_blocks_survive():
    for dialect in SEALING:
        with Provider() as p, Server(env=wire_env(p.url + "/v1", dialect, "sealed:gate")) as s:
            run_id = s.create("assistant", "go")
            p.wait_for(requests=2)
            s.kill()
            s.start()
            p.wait_for(requests=3)
            p.release()
            check_sealed(dialect, s, run_id)


FAULTS = [  # what the provider does, category, retryable, http_status, a part of the message
    ("err401", "auth", False, 401, "Incorrect API key"),
    ("err429", "limit", True, 429, "Rate limit"),
    ("err500", "provider_error", True, 500, "had an error"),
    ("err529", "provider_error", True, 529, "Overloaded"),
    ("leak401", "auth", False, 401, "Bad key [key]"),
    ("cut", "network", True, 200, ""),
    ("badjson", "provider_error", True, 200, "not JSON"),
    ("garbage", "provider_error", True, 200, "not JSON"),
    ("inerror", "provider_error", True, 200, "It broke."),
    ("bodyerror", "provider_error", True, 200, "It broke."),
    ("big", "provider_error", False, 200, "larger than its limit"),
    ("page", "provider_error", False, 200, "not an event stream"),
    ("nothing", None, None, 200, None),
]
SILENCES = [
    ("stall", "timeout", True, 200, "no token for"),
    ("mute", "timeout", True, None, "no answer for"),
]


def check_fault(s, dialect, fault):
    name, category, retryable, status, message = fault
    events, record, ends = outcome(s, name)
    place = (dialect, name, ends)
    equal((record["status"], events[-1].type), ("failed", "Error"), place)
    equal(len(ends), 1, place)
    if category:
        equal((ends[0]["failure_category"], ends[0]["retryable"]), (category, retryable), place)
        equal(ends[0].get("http_status"), status, place)
        check(message in ends[0]["message"], place)


@test("every_fault_of_every_wire_ends_the_call_once", "NEV-11 ERR-01 STAT-14")
def faults():
    for dialect in DIALECTS:
        with Provider() as p:
            env = wire_env(p.url + "/v1", dialect, "fault")
            with Server(env=env, model_idle_timeout_seconds="1", model_retries="0") as s:
                for fault in SILENCES:
                    check_fault(s, dialect, fault)
                check(Provider.KEY not in s.log(), "the key is in the log")
            with Server(env=env, model_retries="0") as s:
                for fault in FAULTS:
                    check_fault(s, dialect, fault)
                for name in ("nousage", "twice", "unknown"):
                    events, record, ends = outcome(s, name)
                    equal((dialect, name, record["status"], len(ends)), (dialect, name, "succeeded", 1), ends)
                    equal(ends[0]["usage"].get("estimated", False), name == "nousage", ends)
                check(Provider.KEY not in s.log(), "the key is in the log")


@test("nobody_listens_and_the_run_says_so", "")
def nobody():
    with Server(env=wire_env("http://127.0.0.1:9/v1", "anthropic", "m"), model_retries="0") as s:
        _, record, ends = outcome(s)
        equal((record["status"], ends[0]["failure_category"], ends[0]["retryable"]), ("failed", "network", True))


@test("a_model_without_a_provider_and_a_key_without_a_model_are_said", "")
def half_set():
    for env, text in (({"UAR_MODEL": "gpt-5"}, "a model but no provider"), ({"OPENAI_API_KEY": "sk-x"}, "a key but no model")):
        with Server(env=env) as s:
            line, = [line for line in s.log().splitlines() if "model.none" in line]
            check(text in line, line)
    with Server() as s:
        check("model.none" not in s.log(), s.log())


@test("the_lines_of_the_manual_are_understood", "")
def manual():
    with open(os.path.join(ROOT, "docs", "models.md"), encoding="utf-8") as f:
        blocks = re.findall(r"```json\n(.*?)```", f.read(), flags=re.S)
    names = set()
    for block in blocks:
        settings = json.loads(block)
        provider, _, model = settings["model"].partition("/")
        check(provider in settings["providers"] and model, block)
        names.add(provider)
        env = {p["key_env"]: "sk-x" for p in settings["providers"].values() if "key_env" in p}
        env.update({"UAR_PROVIDERS": json.dumps(settings["providers"]), "UAR_MODEL": settings["model"]})
        with Server(env=env) as s:
            check(f"provider={provider} model={model} " in s.log(), s.log())
    check(names >= {"openai", "claude", "azure", "ollama", "llama", "vllm", "litellm", "openrouter"}, names)


class Toy:
    """tests/fixtures/toy_model_server.mjs, the judge of all three wires."""
    def __init__(self):
        program = os.path.join(ROOT, "tests", "fixtures", "toy_model_server.mjs")
        self.proc = subprocess.Popen(["node", program, "0"], stdout=subprocess.PIPE)
        self.port = int(self.proc.stdout.readline().split()[1])

    def url(self, scenario):
        return f"http://127.0.0.1:{self.port}/{scenario}/v1"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.proc.kill()
        self.proc.wait()
        self.proc.stdout.close()


@test("the_toy_server_is_understood", "")
def toy():
    good = {"hello": "hello", "big": None, "unicode": None, "think": "hello"}
    bad = {"err401": "auth", "err500": "provider_error", "err404": "invalid_request", "midcut": "network",
           "sseerr": "provider_error", "failed": "limit", "quota": "limit", "drop": "network"}
    only = {"sseerr": "anthropic", "think": "anthropic", "failed": "openai_responses", "quota": "openai_responses"}
    not_chat = ("err404", "midcut", "drop", "big", "unicode")
    with Toy() as t:
        for dialect in DIALECTS:
            for scenario in [*good, *bad]:
                if only.get(scenario, dialect) != dialect or (dialect == "openai_chat" and scenario in not_chat):
                    continue
                with Server(env=wire_env(t.url(scenario), dialect, "toy")) as s:
                    events, record, ends = outcome(s)
                    place = (dialect, scenario, ends)
                    if scenario in good:
                        equal(record["status"], "succeeded", place)
                        check(good[scenario] in (None, text_of(events)), place)
                    else:
                        equal((record["status"], ends[0]["failure_category"]), ("failed", bad[scenario]), place)


if __name__ == "__main__":
    main()
