#!/usr/bin/env python3
"""The OpenAI API: the official client gets models, chat completions and responses from the real server."""
import json
import os
import subprocess

from lib import ROOT, Provider, Server, Stream, check, equal, main, test, wait_until
from lib.npm import modules, node

SLOW = {"UAR_SCRIPTED_TOKEN_MS": "60000"}


class Client:
    """The official package in a process of its own."""

    def __init__(self, s):
        self.proc = subprocess.Popen([node(), os.path.join(ROOT, "tests", "e2e", "openai_judge.mjs"),
                                      modules("openai"), s.url, s.token],
                                     stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def send(self, call, *args, **options):
        self.proc.stdin.write(json.dumps({"call": call, "args": args, "options": options or None}) + "\n")
        self.proc.stdin.flush()

    def receive(self):
        return json.loads(self.proc.stdout.readline())

    def ask(self, call, *args, **options):
        self.send(call, *args, **options)
        answer = self.receive()
        check("value" in answer, answer)
        return answer["value"]

    def refused(self, status, call, *args, **options):
        self.send(call, *args, **options)
        error = self.receive()["error"]
        equal(error["status"], status, error)
        return error

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.proc.stdin.close()
        self.proc.wait()


def said(text, role="user"):
    return {"role": role, "content": text}


def run_of(answer):
    return answer["id"].split("chatcmpl-")[-1].split("resp_")[-1]


@test("agents_are_models", "")
def models():
    with Server() as s, Client(s) as client:
        listed = client.ask("models")
        equal([m["id"] for m in listed], [a["agent_id"] for a in s.http.get("/api/agents").json["agents"]])
        equal({(m["object"], m["owned_by"]) for m in listed}, {("model", "uar")})
        equal(client.ask("model", "demo")["id"], "demo")
        error = client.refused(404, "model", "nothing")
        equal((error["code"], error["type"], error["param"]), ("model_not_found", "invalid_request_error", "model"))


@test("chat_completions_are_runs", "")
def chat():
    with Server() as s, Client(s) as client:
        body = {"model": "demo", "messages": [said("hi")], "user": "u7", "metadata": {"a": "b"}}
        got = client.ask("chat", body)
        [choice] = got["choices"]
        check('You wrote: "hi" (turns before this one: 0)' in choice["message"]["content"], got)
        equal((got["object"], got["model"], choice["finish_reason"]), ("chat.completion", "demo", "stop"))
        check(got["usage"]["total_tokens"] == got["usage"]["prompt_tokens"] + got["usage"]["completion_tokens"] > 0, got)
        equal(s.record(run_of(got))["status"], "succeeded")
        whole = client.ask("chat_stream", {**body, "stream_options": {"include_usage": True}})
        equal(whole["final"]["choices"][0]["message"]["content"], choice["message"]["content"])
        equal(whole["events"][-1]["usage"], got["usage"])
        equal(whole["events"][-1]["choices"], [])
        equal(whole["events"][0]["choices"][0]["delta"], {"role": "assistant", "content": ""})
        check(all(e["choices"][0]["delta"].get("content") != "" for e in whole["events"][1:-1]), "an empty delta")
        log = s.session_events(run_of(got))
        check(any("u7" in json.dumps(e.data["payload"]) for e in log), "the user is kept with the run")


@test("the_client_owns_the_history_of_chat_completions", "")
def history():
    with Server() as s, Client(s) as client:
        messages = [said("Be kind.", "system"), said("one"), said("1", "assistant"), said("two"), said("2", "assistant"),
                    said([{"type": "text", "text": "thr"}, {"type": "text", "text": "ee"}])]
        got = client.ask("chat", {"model": "demo", "messages": messages})
        check('You wrote: "thr\nee" (turns before this one: 2)' in got["choices"][0]["message"]["content"], got)


@test("sources_are_annotations_of_the_text", "MEM-06")
def annotations():
    with Provider() as p, Server(env=p.env("repeat")) as s, Client(s) as client:
        for name in ("heron", "gull"):
            a = s.http.send("PUT", "/api/kb/birds/documents", {"document_id": name, "title": name.title(),
                                                               "text": f"The vermilion {name} guards the archive."})
            equal(a.status, 201, a.body)
        a = s.http.send("PUT", "/api/agents/watcher", {
            "version": "1.0", "kind": "agent", "id": "watcher", "runtime": {"entry": "llm.chat"},
            "policy": {"provider": {"default": {"provider": "openai", "model": "repeat"}}},
            "memory": {"kb": {"enabled": True, "collections": ["birds"]}}})
        equal(a.status, 201, a.body)
        text = "é the vermilion heron [1]."
        chat = {"model": "watcher", "messages": [{"role": "user", "content": text}]}

        def seen(notes):
            return [(n["title"], text[n["start_index"]:n["end_index"]]) for n in notes]

        wanted = [("Heron", "[1]"), ("Gull", "")]
        message = client.ask("chat", chat)["choices"][0]["message"]
        equal(seen([n["url_citation"] for n in message["annotations"]]), wanted)
        check("vermilion heron" in s.http.get(message["annotations"][0]["url_citation"]["url"]).json["passage"]["text"], message)
        last = [e for e in client.ask("chat_stream", chat)["events"] if e["choices"][0]["delta"].get("annotations")][0]
        equal(seen([n["url_citation"] for n in last["choices"][0]["delta"]["annotations"]]), wanted)
        part = client.ask("responses", {"model": "watcher", "input": text})["output"][-1]["content"][0]
        equal((part["text"], seen(part["annotations"])), (text, wanted))
        stream = client.ask("responses_stream", {"model": "watcher", "input": text})
        added = [e["annotation"] for e in stream["events"] if e["type"] == "response.output_text.annotation.added"]
        equal(seen(added), wanted)
        equal(seen(stream["final"]["output"][-1]["content"][0]["annotations"]), wanted)


@test("responses_follow_each_other_on_a_thread", "")
def responses():
    with Server() as s, Client(s) as client:
        first = client.ask("responses", {"model": "demo", "input": "hi"})
        equal((first["object"], first["status"], first["model"], first["error"]), ("response", "completed", "demo", None))
        equal([i["type"] for i in first["output"]], ["reasoning", "message"])
        check('You wrote: "hi" (turns before this one: 0)' in first["output_text"], first)
        check(first["usage"]["total_tokens"] > 0, first)
        second = client.ask("responses_stream", {"model": "demo", "input": [said("again")],
                                                 "previous_response_id": first["id"]})
        final = second["final"]
        check('You wrote: "again" (turns before this one: 1)' in final["output_text"], final)
        equal(final["previous_response_id"], first["id"])
        equal(final["conversation"], first["conversation"])
        equal([e["sequence_number"] for e in second["events"]], list(range(len(second["events"]))))
        types = [e["type"] for e in second["events"]]
        equal((types[0], types[1], types[-1]), ("response.created", "response.in_progress", "response.completed"))
        third = client.ask("responses", {"model": "demo", "input": "more", "conversation": first["conversation"]["id"]})
        check("(turns before this one: 2)" in third["output_text"], third)
        kept = client.ask("response", first["id"])
        equal({k: kept[k] for k in ("id", "output", "usage", "status")},
              {k: first[k] for k in ("id", "output", "usage", "status")})
        error = client.refused(404, "responses", {"model": "demo", "input": "x", "previous_response_id": "resp_none"})
        equal(error["param"], "previous_response_id")


@test("a_response_that_is_not_stored_is_not_shown_again", "")
def not_stored():
    with Server() as s:
        with Client(s) as client:
            body = {"model": "demo", "input": "hi", "store": False}
            whole, streamed = client.ask("responses", body), client.ask("responses_stream", body)
            equal({whole["store"]} | {e["response"]["store"] for e in streamed["events"] if "response" in e}, {False})
            chat_answer = client.ask("chat", {"model": "demo", "messages": [said("hi")], "store": False, "metadata": {"a": "b"}})
            kept = client.ask("responses", {**body, "store": True})
            hidden = [whole["id"], streamed["final"]["id"], "resp_" + run_of(chat_answer)]
            equal(client.refused(400, "responses", {**body, "background": True})["param"], "background")
            equal(client.refused(400, "responses", {**body, "store": "no"})["param"], "store")
            key = {"Idempotency-Key": "k1"}
            first = client.ask("responses", body, headers=key)
            equal(client.ask("responses", body, headers=key)["output"], first["output"], "the same request again")
            tool = {"model": "tools", "store": False, "tools": [{"type": "function", "name": "pick", "parameters": {"type": "object"}}]}
            asked = client.ask("responses", {**tool, "input": 'tool pick {"a": 1}'})
            [call] = [i for i in asked["output"] if i["type"] == "function_call"]
            result = {**tool, "input": [call, {"type": "function_call_output", "call_id": call["call_id"], "output": "blue"}]}
            error = client.refused(404, "responses", {**result, "previous_response_id": asked["id"]})
            equal(error["param"], "previous_response_id")
            after = client.ask("responses", result)
            equal((after["id"], after["status"], after["store"]), (asked["id"] + ".2", "completed", False))
            hidden += [asked["id"], after["id"]]
        s.kill()
        s.start()
        with Client(s) as client:
            equal((kept["store"], client.ask("response", kept["id"])["store"]), (True, True))
            runs = len(s.http.get("/api/runs").json["runs"])
            for response in hidden:
                for refused in (client.refused(404, "response", response), client.refused(404, "response_stream", response, {}),
                                client.refused(404, "cancel", response)):
                    equal((refused["code"], refused["type"]), ("NOT_FOUND", "invalid_request_error"))
                error = client.refused(404, "responses", {"model": "demo", "input": "x", "previous_response_id": response})
                equal((error["code"], error["param"]), ("NOT_FOUND", "previous_response_id"))
            equal(len(s.http.get("/api/runs").json["runs"]), runs, "a refused one makes no run")
            equal(s.record(run_of(whole))["status"], "succeeded", "the log keeps it")
            check(s.events(run_of(whole)), "and its events")


@test("tools_of_the_agent_are_shown_as_calls_of_a_server", "")
def tools():
    with Server() as s, Client(s) as client:
        text = 'tool math.evaluate {"expression": "6*7"}\nthen\ntool math.evaluate {"expression": "1/0"}'
        got = client.ask("responses", {"model": "tools", "input": text})
        calls = [i for i in got["output"] if i["type"] == "mcp_call"]
        equal([(c["name"], c["status"], bool(c["error"])) for c in calls],
              [("math.evaluate", "completed", False), ("math.evaluate", "failed", True)])
        check("42" in calls[0]["output"], calls)
        streamed = client.ask("responses_stream", {"model": "tools", "input": text})
        equal([i["type"] for i in streamed["final"]["output"]], [i["type"] for i in got["output"]])
        chat_answer = client.ask("chat", {"model": "tools", "messages": [said(text)]})
        equal(chat_answer["choices"][0]["finish_reason"], "stop")
        check("tool_calls" not in chat_answer["choices"][0]["message"], chat_answer)


@test("an_approval_is_waited_for", "")
def approval():
    with Server(heartbeat_seconds=1) as s, Client(s) as client:
        body = {"model": "tools", "messages": [said('tool fs.write {"path": "a.txt", "text": "x"}')]}
        client.send("chat", body)
        [run] = wait_until(lambda: s.http.get("/api/runs").json["runs"], "a run")
        action = wait_until(lambda: (s.record(run["run_id"]).get("actions") or [None])[0], "a question")
        s.http.post("/api/control/respond_action", {"action_id": action["action_id"], "decision": "allow"})
        equal(client.receive()["value"]["choices"][0]["finish_reason"], "stop")
        with Stream(s.url, "/v1/chat/completions", s.token, body={**body, "stream": True}) as stream:
            newest = wait_until(lambda: [r for r in s.http.get("/api/runs").json["runs"]
                                         if r["run_id"] != run["run_id"]], "another run")[0]["run_id"]
            action = wait_until(lambda: (s.record(newest).get("actions") or [None])[0], "a question")
            s.http.post("/api/control/respond_action", {"action_id": action["action_id"], "decision": "deny"})
            while stream.chunk():
                pass
        raw = bytes(stream.raw).decode()
        check(f": waiting for action {action['action_id']}: fs.write: a.txt\n\n" in raw, raw)
        check(raw.endswith("data: [DONE]\n\n"), raw)


@test("a_turn_behind_a_question_is_refused", "")
def behind_a_question():
    with Server() as s, Client(s) as client:
        first = client.ask("responses", {"model": "tools", "input": 'tool fs.write {"path": "a.txt", "text": "x"}', "background": True})
        action = wait_until(lambda: (s.record(run_of(first)).get("actions") or [None])[0], "a question")["action_id"]
        turn = {"model": "tools", "input": "more", "previous_response_id": first["id"]}
        error = client.refused(409, "responses", turn)
        equal((error["code"], error["type"]), ("WAITING_FOR_ANSWER", "invalid_request_error"))
        check(action in error["message"], error)
        equal(len(s.http.get("/api/runs").json["runs"]), 1)
        s.http.post("/api/control/respond_action", {"action_id": action, "decision": "deny"})
        equal(client.ask("responses", turn)["status"], "completed")


@test("each_response_of_a_run_has_an_id_of_its_own", "")
def several():
    with Server() as s, Client(s) as client:
        body = {"model": "tools", "tools": [{"type": "function", "name": "pick", "parameters": {"type": "object"}}]}
        first = client.ask("responses", {**body, "input": 'tool pick {"a": 1}'})
        [call] = [i for i in first["output"] if i["type"] == "function_call"]
        second = client.ask("responses", {**body, "previous_response_id": first["id"], "input": [
            {"type": "function_call_output", "call_id": call["call_id"], "output": "blue"}]})
        equal(second["id"], first["id"] + ".2")
        for response in (first, second):
            kept = client.ask("response", response["id"])
            equal((kept["id"], kept["status"], kept["output"]), (response["id"], "completed", response["output"]))
        client.refused(404, "response", first["id"] + ".3")
        client.refused(404, "response", first["id"] + ".x")
        third = client.ask("responses", {"model": "tools", "input": "more", "previous_response_id": second["id"]})
        equal(third["conversation"], first["conversation"])


@test("failures_have_the_shape_that_clients_read", "")
def failures():
    with Server() as s, Client(s) as client:
        fine = {"model": "demo", "messages": [said("hi")]}
        for change, param in (({"n": 2}, "n"), ({"messages": []}, "messages"), ({"messages": [said("", "user")]}, "messages"),
                              ({"messages": [said("x", "robot")]}, "messages"), ({"tools": [{"type": "web_search"}]}, "tools"),
                              ({"response_format": {"type": "json_object"}}, "response_format"), ({"model": ""}, "model"),
                              ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "messages")):
            error = client.refused(400, "chat", {**fine, **change})
            equal((error["code"], error["type"], error["param"]), ("VALIDATION_ERROR", "invalid_request_error", param))
        equal(client.refused(404, "chat", {**fine, "model": "nothing"})["code"], "model_not_found")
        equal(client.refused(400, "responses", {"model": "demo"})["param"], "input")
        equal(client.refused(404, "response", "resp_x")["code"], "NOT_FOUND")
        answer = s.http.get("/v1/models", token=False)
        equal((answer.status, answer.json["error"]["type"]), (401, "authentication_error"))
        equal(s.http.get("/v1/nothing").json["error"]["code"], "NOT_FOUND")
        equal(s.http.get("/api/runs").json["runs"], [])


@test("a_response_is_read_on_behind_every_event", "SSE-05 SSE-08")
def resumed():
    """Also after a kill: whatever a client had when it was cut off, the rest follows and the response is the same."""
    with Server() as s:
        with Client(s) as client:
            whole = client.ask("responses_stream", {"model": "tools", "input": 'tool math.evaluate {"expression": "6*7"}'})
            events = whole["events"]
            response = events[-1]["response"]["id"]
        s.kill()
        s.start()
        with Client(s) as client:
            equal(client.ask("response_stream", response, {}), events)
            for i in range(len(events)):
                equal(client.ask("response_stream", response, {"starting_after": i}), events[i + 1:], i)
            equal(client.refused(400, "response_stream", response, {"starting_after": "x"})["param"], "starting_after")


@test("a_provider_that_fails_is_an_error", "")
def failed():
    with Provider() as p, Server(env=p.env("err500")) as s, Client(s) as client:
        body = {"model": "assistant", "messages": [said("hi")]}
        error = client.refused(502, "chat", body)
        equal((error["type"], error["code"]), ("server_error", "PROVIDER_ERROR"))
        error = client.refused(None, "chat_stream", body)
        equal((error["type"], error["code"]), ("server_error", "PROVIDER_ERROR"))
        got = client.ask("responses", {"model": "assistant", "input": "hi"})
        equal((got["status"], got["error"]["code"]), ("failed", "PROVIDER_ERROR"))


@test("the_provider_is_told_what_the_client_says", "")
def told():
    with Provider() as p, Server(env=p.env("hello")) as s, Client(s) as client:
        client.ask("chat", {"model": "assistant", "messages": [said("Be brief.", "developer"), said("a"),
                                                               said("b", "assistant"), said("c")]})
        equal([(m["role"], m["content"]) for m in p.stats()["last"]["messages"]][1:],
              [("system", "Be brief."), ("user", "a"), ("assistant", "b"), ("user", "c")])


PIXEL = "iVBORw0KGgo="


@test("images_and_files_reach_the_model", "")
def attached():
    image, url = f"data:image/png;base64,{PIXEL}", "https://example.org/a.png"
    with Provider() as p, Server(env=p.env("hello")) as s, Client(s) as client:
        def told():
            return [m["content"] for m in p.stats()["last"]["messages"] if m["role"] == "user"]
        client.ask("chat", {"model": "assistant", "messages": [
            said([{"type": "text", "text": "before"}, {"type": "image_url", "image_url": {"url": url}}]),
            said("yes", "assistant"),
            said([{"type": "text", "text": "what is this?"}, {"type": "image_url", "image_url": {"url": image}},
                  {"type": "file", "file": {"filename": "a.pdf", "file_data": f"data:application/pdf;base64,{PIXEL}"}}])]})
        before, now = told()
        equal([part["type"] for part in before], ["text", "image_url"])
        equal((before[1]["image_url"]["url"], now[0]["text"], now[1]["image_url"]["url"]), (url, "what is this?", image))
        check(PIXEL in json.dumps(now[2]) and "a.pdf" in json.dumps(now[2]), now)
        client.ask("responses", {"model": "assistant", "input": [said([{"type": "input_image", "image_url": image}])]})
        equal(told()[-1][1]["image_url"]["url"], image, "also without a word")
        for part in ({"type": "image_url", "image_url": {"url": "file:///etc/passwd"}}, {"type": "input_audio"},
                     {"type": "image_url", "image_url": {"url": "data:image/png;base64,!!"}}):
            equal(client.refused(400, "chat", {"model": "assistant", "messages": [said([part])]})["param"], "messages")


@test("an_idempotency_key_makes_one_run", "")
def idempotent():
    with Server() as s, Client(s) as client:
        body = {"model": "demo", "messages": [said("hi")]}
        first = client.ask("chat", body, headers={"Idempotency-Key": "k1"})
        equal(client.ask("chat", body, headers={"Idempotency-Key": "k1"}), first)
        equal(len(s.http.get("/api/runs").json["runs"]), 1)
        client.refused(409, "chat", {**body, "messages": [said("other")]}, headers={"Idempotency-Key": "k1"})


@test("a_repeated_completion_has_no_text_that_a_restart_took_back", "SSE-08")
def repeated():
    """Killed between the frames that a client reads; the same key attaches to the run and its text as it is."""
    body, key = {"model": "demo", "messages": [said("hi")]}, {"Idempotency-Key": "k1"}
    for n in (2, 12, 20):
        with Server(env={"UAR_SCRIPTED_TOKEN_MS": "100"}) as s:
            with Client(s) as client:
                seen = client.ask("chat_part", body, n, headers=key)
                s.kill()
            s.env["UAR_SCRIPTED_TOKEN_MS"] = "30"
            s.start()
            with Client(s) as client:
                early = client.ask("chat_stream", body, headers=key)["final"]["choices"][0]["message"]
                whole = client.ask("response", seen[0]["id"].replace("chatcmpl-", "resp_"))
                late = client.ask("chat_stream", body, headers=key)["final"]["choices"][0]["message"]
            text = whole["output_text"]
            equal((early["content"], late["content"]), (text, text), n)
            equal(text.count("You wrote:"), 1, text)
            log = [e.data["payload"].get("metadata", {}) for e in s.session_events(run_of(whole))]
            check(any("superseded_message_id" in m for m in log), "nothing was cut off")


@test("a_response_in_the_background_is_asked_for_and_cancelled", "")
def background():
    with Server(env=SLOW) as s, Client(s) as client:
        got = client.ask("responses", {"model": "demo", "input": "hi", "background": True})
        check(got["status"] in ("queued", "in_progress"), got)
        equal(client.ask("response", got["id"])["status"], "in_progress")
        client.ask("cancel", got["id"])
        s.events(run_of(got))
        equal(client.ask("response", got["id"])["status"], "cancelled")


main()
