#!/usr/bin/env python3
"""One run through every door at once: started in one dialect, watched in the others, answered once."""
import json
import os
import shutil
import tempfile

from lib import FIXTURES, Server, Stream, check, equal, main, run_uar, test, text_of, wait_until

CALL = 'tool fs.write {"path": "a.txt", "text": "x"}'


def frames(stream):
    out = []
    for frame in bytes(stream.raw).decode().split("\n\n"):
        out += [line[6:] for line in frame.split("\n") if line.startswith("data: ")]
    return [json.loads(d) for d in out if d != "[DONE]"]


def drained(stream):
    while stream.chunk():
        pass
    stream.close()
    return frames(stream)


def chat_text(chunks):
    return "".join(c["choices"][0]["delta"].get("content") or "" for c in chunks if c["choices"])


def agui_text(events):
    return "".join(e["delta"] for e in events if e["type"] == "TEXT_MESSAGE_CONTENT")


def a2ui_text(messages):
    texts = {}
    for m in messages:
        update = m.get("updateDataModel", {})
        if update.get("path", "").startswith("/text/"):
            texts[update["path"]] = update["value"]
    return "".join(texts[k] for k in sorted(texts))


def thread_of(s, run_id):
    with Stream(s.url, f"/api/ag-ui/runs/{run_id}/stream", s.token) as stream:
        return next(iter(stream)).data["threadId"]


def answers(s, run_id, action):
    """The answer through each door that has one; all mean: allow it."""
    shown = {"name": "uar.action.resolve", "surfaceId": f"action-{action}", "sourceComponentId": "c",
             "timestamp": "2026-01-01T00:00:00Z", "context": {"actionId": action, "decision": "allow"}}
    resume = {"threadId": thread_of(s, run_id), "runId": "again", "messages": [{"id": "1", "role": "user", "content": CALL}],
              "resume": [{"interruptId": action, "status": "resolved", "payload": {"approved": True}}]}
    return {"a2ui": lambda: s.http.post(f"/api/a2ui/runs/{run_id}/messages", {"version": "v0.9", "action": shown}),
            "ag-ui": lambda: s.http.post("/api/ag-ui/agents/tools", resume),
            "control": lambda: s.http.post("/api/control/respond_action", {"action_id": action, "decision": "allow"})}


@test("a_run_is_watched_and_answered_in_every_dialect", "SSE-06 AGUI-01 A2UI-01")
def every_door():
    for first in ("a2ui", "ag-ui", "control"):
        with Server() as s:
            chat = Stream(s.url, "/v1/chat/completions", s.token,
                          body={"model": "tools", "stream": True, "messages": [{"role": "user", "content": CALL}]})
            [run] = wait_until(lambda: s.http.get("/api/runs").json["runs"], "a run")
            run_id = run["run_id"]
            action = wait_until(lambda: (s.record(run_id).get("actions") or [None])[0], "a question")["action_id"]
            agui = Stream(s.url, f"/api/ag-ui/runs/{run_id}/stream", s.token)
            a2ui = Stream(s.url, f"/api/a2ui/runs/{run_id}/stream", s.token)
            doors = answers(s, run_id, action)
            for door in [first] + [d for d in doors if d != first]:
                equal(doors[door]().status, 200, f"{door} after {first}: the same answer counts once")
            text = text_of(s.events(run_id))
            equal(chat_text(drained(chat)), text)
            equal(agui_text(drained(agui)), text)
            equal(a2ui_text(drained(a2ui)), text)
            kept = s.http.get(f"/v1/responses/resp_{run_id}").json
            equal("".join(p["text"] for i in kept["output"] if i["type"] == "message" for p in i["content"]), text)
            log = [e.data["type"] for e in s.session_events(run_id)]
            equal(log.count("action.resolved"), 1, "one answer in the log")
            check(log.count("tool.started") == 1, log)


@test("a_recording_is_the_same_in_every_dialect", "FIX-02 FIX-06")
def recordings():
    with Server(fixtures_dir=FIXTURES) as s:
        for name in ("hello", "tools"):
            def told(dialect):
                answer = s.http.get(f"/api/fixtures/{name}/stream?dialect={dialect}")
                equal(answer.body, s.http.get(f"/api/fixtures/{name}/stream?dialect={dialect}").body)
                data = [line[6:] for line in answer.body.decode().split("\n") if line.startswith("data: ")]
                return [json.loads(d) for d in data if d != "[DONE]"]
            text = "".join(e["data"]["text_delta"] for e in told("normalized") if e["type"] == "ChatDelta")
            equal(chat_text(told("openai-chat")), text)
            equal(agui_text(told("ag-ui")), text)
            equal(a2ui_text(told("a2ui")), text)
            last = told("openai-responses")[-1]["response"]
            equal("".join(p["text"] for i in last["output"] if i["type"] == "message" for p in i["content"]), text)


def kept_text(events):
    """Of normalized events, as their readers do it: what was taken back is dropped."""
    text = b""
    for e in events:
        taken_back = e["data"].get("metadata", {}).get("superseded_bytes", 0) if e["type"] == "meta" else 0
        text = text[:len(text) - taken_back]
        text += e["data"]["text_delta"].encode() if e["type"] == "ChatDelta" else b""
    return text.decode()


SAID = 'You wrote: "hi" (turns before this one: 0).'


@test("what_a_restart_took_back_is_taken_back_in_every_recording", "FIX-02 FIX-03")
def taken_back():
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(os.path.join(FIXTURES, "superseded.jsonl"), folder)
        with Server(fixtures_dir=folder, env={"UAR_SCRIPTED_TOKEN_MS": "120"}) as s:
            cut = s.create("demo", "hi")
            with Stream(s.url, f"/api/runs/{cut}/stream", s.token) as stream:
                stream.until(lambda e: e.type == "ChatDelta")
            s.kill()
            s.env = {}
            s.start()
            s.events(cut)
            done = run_uar("fixture", "record", cut, "--url", s.url, env={"UAR_TOKEN": s.token})
            equal(done.returncode, 0, done.stderr)
            with open(os.path.join(folder, "mine.jsonl"), "w", encoding="utf-8") as f:
                f.write(done.stdout)
            want = kept_text(e.data for e in s.events(cut))
            check(want.startswith(SAID[:-1]) and want.count("You wrote") == 1, want)
            for name, text in (("superseded", SAID), ("mine", want)):
                def told(dialect):
                    answer = s.http.get(f"/api/fixtures/{name}/stream?dialect={dialect}")
                    return [json.loads(line[6:]) for line in answer.body.decode().split("\n") if line.startswith("data: {")]
                run = s.http.post("/api/runs", {"agent_id": "fixture", "inputs": {"fixture": name}}).json["run_id"]
                equal(kept_text(e.data for e in s.events(run)), text)
                shown = {d: s.http.get(f"/api/{d}/runs/{run}/stream").body.decode() for d in ("ag-ui", "a2ui")}
                shown = {d: [json.loads(x[6:]) for x in raw.split("\n") if x.startswith("data: ")] for d, raw in shown.items()}
                equal(kept_text(told("normalized")), text)
                for events in (told("ag-ui"), shown["ag-ui"]):
                    equal(agui_messages(events)[-1], text)
                    equal(len([m for m in agui_messages(events) if "You wrote" in m]), 1)
                for messages in (told("a2ui"), shown["a2ui"]):
                    check(a2ui_text(messages).endswith(text) and a2ui_text(messages).count("You wrote") == 1, messages)
                for answer in (told("openai-responses")[-1]["response"], s.http.get(f"/v1/responses/resp_{run}").json):
                    equal("".join(p["text"] for i in answer["output"] if i["type"] == "message" for p in i["content"]), text)


def agui_messages(raw):
    """What a reader of AG-UI has: the text of each message, with snapshots in their place."""
    texts = {}
    for e in raw:
        if e["type"] == "MESSAGES_SNAPSHOT":
            texts = {m["id"]: m.get("content", "") for m in e["messages"] if m["role"] in ("assistant", "reasoning")}
        elif e["type"] in ("TEXT_MESSAGE_CONTENT", "REASONING_MESSAGE_CONTENT"):
            texts[e["messageId"]] = texts.get(e["messageId"], "") + e["delta"]
    return [t for t in texts.values() if t]


@test("a_kill_between_any_two_frames_costs_no_reader_anything", "SSE-05 SSE-08 AGUI-14 A2UI-05")
def killed():
    """The server is killed while a reader of each dialect stands at the n-th frame; each comes back with its cursor."""
    for n in range(1, 12, 2):
        with Server(env={"UAR_SCRIPTED_TOKEN_MS": "40"}) as s:
            run_id = s.create("demo", "hi")
            paths = {"ag-ui": f"/api/ag-ui/runs/{run_id}/stream", "a2ui": f"/api/a2ui/runs/{run_id}/stream",
                     "normalized": f"/api/runs/{run_id}/stream"}
            seen = {}
            for name, path in paths.items():
                with Stream(s.url, path, s.token) as stream:
                    events = iter(stream)
                    seen[name] = [next(events) for _ in range(n)]
            s.kill()
            s.env = {}
            s.start()
            want = s.events(run_id)
            for name, path in paths.items():
                last = [e.id for e in seen[name] if e.id][-1]
                with Stream(s.url, path, s.token, headers={"Last-Event-ID": str(last)}) as stream:
                    rest = list(stream.all())
                both = seen[name] + rest
                if name == "normalized":
                    equal([e.key() for e in both], [e.key() for e in want], n)
                elif name == "ag-ui":
                    with Stream(s.url, path, s.token) as stream:
                        whole = agui_messages([e.data for e in stream.all()])
                    equal(agui_messages([e.data for e in both]), whole, n)
                else:
                    with Stream(s.url, path, s.token) as stream:
                        whole = a2ui_text([e.data for e in stream.all()])
                    equal(a2ui_text([e.data for e in both]), whole, n)


FORM = "tool ui.form.request " + json.dumps({"title": "Where?", "schema": {
    "type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}) + "\nthen\ntool math.evaluate {\"expression\": \"6*7\"}"


@test("a_run_that_asks_is_the_same_for_whoever_joins_it", "SSE-05 SSE-07")
def asked():
    """OpenAI's dialects: joined before the question, while it is open and after it, and behind every event."""
    for text in (CALL, FORM):
        with Server() as s:
            def chat():
                return Stream(s.url, "/v1/chat/completions", s.token, headers={"Idempotency-Key": "k1"}, body={
                    "model": "tools", "stream": True, "messages": [{"role": "user", "content": text}]})
            readers = [chat()]
            [run] = wait_until(lambda: s.http.get("/api/runs").json["runs"], "a run")
            run_id = run["run_id"]
            readers.append(chat())
            action = wait_until(lambda: (s.record(run_id).get("actions") or [None])[0], "a question")["action_id"]
            readers.append(chat())
            if text == FORM:
                answer = s.http.post(f"/api/runs/{run_id}/forms/{action}", {"city": "Lisbon"})
            else:
                answer = s.http.post("/api/control/respond_action", {"action_id": action, "decision": "allow"})
            equal(answer.status, 200, answer.body)
            readers.append(chat())
            want = text_of(s.events(run_id))
            for i, reader in enumerate(readers + [chat()]):
                equal(chat_text(drained(reader)), want, i)
            equal(len(s.http.get("/api/runs").json["runs"]), 1)

            def response(query):
                return drained(Stream(s.url, f"/v1/responses/resp_{run_id}?stream=true{query}", s.token))
            events = response("")
            equal("".join(e["delta"] for e in events if e["type"] == "response.output_text.delta"), want)
            for i in range(len(events)):
                equal(response(f"&starting_after={i}"), events[i + 1:], i)


@test("a_run_is_recorded_and_replayed", "FIX-02 FIX-04")
def record():
    with tempfile.TemporaryDirectory() as folder, Server(fixtures_dir=folder) as s:
        run_id = s.create("tools", 'tool math.evaluate {"expression": "6*7"}')
        s.events(run_id)
        done = run_uar("fixture", "record", run_id, "--url", s.url, env={"UAR_TOKEN": s.token})
        equal(done.returncode, 0, done.stderr)
        with open(os.path.join(folder, "mine.jsonl"), "w", encoding="utf-8") as f:
            f.write(done.stdout)
        want = [(e.data["type"], {k: v for k, v in e.data["data"].items() if k not in ("run_id", "agent_id")})
                for e in s.events(run_id) if e.data["type"] != "meta"]
        again = s.http.post("/api/runs", {"agent_id": "fixture", "inputs": {"fixture": "mine", "pace": "full"}}).json["run_id"]
        got = [(e.data["type"], {k: v for k, v in e.data["data"].items() if k not in ("run_id", "agent_id")})
               for e in s.events(again)]
        equal(got, want)
        equal(run_uar("fixture", "play", run_id, "--url", s.url, env={"UAR_TOKEN": s.token}).returncode, 2)


main()
