#!/usr/bin/env python3
"""AG-UI: the official clients, 1.0.0 and 0.0.59, read what the real server sends."""
import base64
import json
import os
import subprocess
import tempfile

from lib import (FIXTURES, ROOT, Provider, Server, Stream, check, equal, main, refused, test, text_of, wait_until)
from lib.backends import ASK, TALK, Shop
from lib.npm import modules, node

SLOW = {"UAR_SCRIPTED_TOKEN_MS": "60000"}
ENDS = ("RUN_FINISHED", "RUN_ERROR")


class Judge:
    """The official packages in a process of their own."""

    def __init__(self):
        self.proc = subprocess.Popen([node(), os.path.join(ROOT, "tests", "e2e", "agui_judge.mjs"), modules("agui")],
                                     stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, **task):
        self.proc.stdin.write(json.dumps(task) + "\n")
        self.proc.stdin.flush()
        answer = json.loads(self.proc.stdout.readline())
        equal(answer["errors"], [], "what the client complains of")
        return answer

    def http(self, s, path, old=False, **client_input):
        return self.ask(url=s.url + path, token=s.token, old=old, input=client_input)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.proc.stdin.close()
        self.proc.wait()


def body(s, run_id, query="", header=None):
    answer = s.http.get(f"/api/ag-ui/runs/{run_id}/stream{query}", headers={"Last-Event-ID": header} if header else None)
    equal(answer.status, 200, answer.body)
    return answer.body.decode()


def frames(text):
    """(name, id, event) of each."""
    out = []
    for frame in text.split("\n\n")[:-1]:
        fields = dict(line.split(": ", 1) for line in frame.split("\n") if not line.startswith(":"))
        if "data" in fields:
            out.append((fields.get("event"), fields.get("id"), json.loads(fields["data"])))
    return out


def types(events):
    return [e["type"] for e in events]


def comparable(answer):
    """A snapshot tells of a failed tool in one member more than the event that it follows."""
    messages = [{k: v for k, v in m.items() if k != "error"} for m in answer["messages"]]
    return {"messages": messages, "state": answer["state"]}


def fixture(s, name):
    run_id = s.http.post("/api/runs", {"agent_id": "fixture", "inputs": {"fixture": name}}).json["run_id"]
    s.events(run_id)
    return run_id


def call(name, **args):
    return f"tool {name} {json.dumps(args)}"


def question(s, run_id):
    return wait_until(lambda: (s.record(run_id).get("actions") or [None])[0], "a question")


def answer_all(s, run_id, decision):
    action = question(s, run_id)
    equal(s.http.post("/api/control/respond_action", {"action_id": action["action_id"], "decision": decision}).status, 200)


STATE = {"count": 1, "todo": {"a": 1, "x/y~z": True}, "gone": []}
CHANGES = ({"count": 2, "todo": {"a": None, "b": [1, {"c": None}], "x/y~z": False}, "new": {"deep": {"er": 1}}},
           {"gone": None, "nothing": None, "count": 2, "new": {"deep": 7}})
MERGED = {"count": 2, "todo": {"b": [1, {"c": None}], "x/y~z": False}, "new": {"deep": 7}}


def merges():
    return "\nthen\n".join(call("state.merge", changes=c) for c in CHANGES)


def shared_state(s):
    answer = s.http.post("/api/ag-ui/agents/tools", {"threadId": "shared", "runId": "shared", "state": STATE, "protocolVersion": "1.0",
                                                     "messages": [{"id": "1", "role": "user", "content": merges()}]})
    return frames(answer.body.decode())[0][2]["metadata"]["uar"]["runId"]


def resumed_run(s, thread, text, payload):
    """One that stops for a question, which its client answers with the next request."""
    path, base = "/api/ag-ui/agents/tools", {"threadId": thread, "protocolVersion": "1.0",
                                             "messages": [{"id": "1", "role": "user", "content": text}]}
    first = frames(s.http.post(path, {**base, "runId": f"{thread}-1"}).body.decode())
    [asked] = first[-1][2]["outcome"]["interrupts"]
    answer = s.http.post(path, {**base, "runId": f"{thread}-2", "resume": [
        {"interruptId": asked["id"], "status": "resolved", "payload": payload}]})
    equal(answer.status, 200, answer.body)
    return first[0][2]["metadata"]["uar"]["runId"]


def recorded(s):
    """A run of each kind, over when it is returned."""
    asks = call("fs.write", path="a.txt", text="hello") + "\nthen\n" + call("fs.read", path="a.txt")
    runs = {name: fixture(s, name) for name in ("hello", "tools", "failure")}
    runs["demo"] = s.create("demo", "hi")
    runs["rounds"] = s.create("tools", call("math.evaluate", expression="6*7") + "\n" + call("time.now") + "\nthen\n" +
                              call("math.evaluate", expression="1/0"))
    runs["state"] = shared_state(s)
    for decision in ("allow", "deny"):
        runs[decision] = s.create("tools", asks)
        answer_all(s, runs[decision], decision)
    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    form = call("ui.form.request", title="Where?", schema=schema)
    runs["resumed"] = resumed_run(s, "resumed", asks, {"approved": True})
    runs["form"] = s.create("tools", form + "\nthen\n" + call("math.evaluate", expression="6*7"))
    action = question(s, runs["form"])["action_id"]
    equal(s.http.post(f"/api/runs/{runs['form']}/forms/{action}", {"city": "Lisbon"}).status, 200)
    runs["resumed with a form"] = resumed_run(s, "form", form, {"city": "Lisbon"})
    runs["cancelled while asked"] = s.create("tools", asks)
    question(s, runs["cancelled while asked"])
    s.http.post(f"/api/runs/{runs['cancelled while asked']}/cancel")
    for run_id in runs.values():
        s.events(run_id)
    return runs


@test("official_clients_accept_every_kind_of_run",
      "AGUI-01 AGUI-09 AGUI-13 AGUI-14 AGUI-16 API-05 ACC-03 SSE-06")
def judged():
    with Server(fixtures_dir=FIXTURES) as s, Judge() as judge:
        for name, run_id in recorded(s).items():
            text = body(s, run_id)
            got = judge.ask(stream=text)
            equal(text, body(s, run_id), "a replay has the same bytes")
            old = judge.ask(stream=body(s, run_id, "?protocol_version=0"), old=True)
            equal(old["messages"], got["messages"], name)
            written = "".join(m["content"] for m in got["messages"] if m["role"] == "assistant" and m.get("content"))
            equal(written, text_of(s.events(run_id)), name)
            order = [i for _, i, _ in frames(text)]
            equal(order, sorted(order, key=lambda i: tuple(map(int, i.split(".")))), "frames follow their events")


@test("official_clients_accept_the_golden_files", "AGUI-11 AGUI-13 AGUI-14 AGUI-16")
def golden():
    folder = os.path.join(ROOT, "fixtures", "ag_ui")
    with Judge() as judge:
        for name in sorted(n for n in os.listdir(folder) if n.endswith((".v1.sse", ".v0.sse"))):
            with open(os.path.join(folder, name), encoding="utf-8") as f:
                text = f.read()
            judge.ask(stream=text, old=".v0." in name)
            check([e["type"] for _, _, e in frames(text)][-1] in ENDS, name)


def spoken(answer):
    return [(m["role"], m.get("content")) for m in answer["messages"] if m["role"] != "activity"]


@test("recordings_are_shown_as_ag_ui", "FIX-03 AGUI-11 FIX-06")
def fixtures():
    with Server(fixtures_dir=FIXTURES) as s, Judge() as judge:
        for name in ("failure", "hello", "superseded", "tools"):
            for dialect, ending in (("ag-ui", "fixture.v1.sse"), ("chunks", "fixture.chunks.sse")):
                path = f"/api/fixtures/{name}/stream?dialect={dialect}"
                got = s.http.get(path).body
                equal(got, s.http.get(path).body, "the same bytes again")
                golden = os.path.join(ROOT, "fixtures", "ag_ui", f"{name}.{ending}")
                if os.environ.get("UAR_TEST_WRITE"):
                    with open(golden, "wb") as f:
                        f.write(got)
                with open(golden, "rb") as f:
                    equal(got, f.read(), golden)
            text = s.http.get(f"/api/fixtures/{name}/stream?dialect=ag-ui").body.decode()
            want = judge.ask(stream=text)
            run = judge.ask(stream=body(s, fixture(s, name)))
            equal(spoken(want), spoken(run), "as a run of it is shown")
            for _, cursor, _ in frames(text):
                rest = s.http.get(f"/api/fixtures/{name}/stream?dialect=ag-ui&after={cursor}").body.decode()
                equal(comparable(judge.ask(stream=rest)), comparable(want), cursor)


@test("joining_at_every_cursor_gives_the_same_state", "API-05 SSE-05 SSE-07 SSE-08 AGUI-14")
def joined():
    with Server(fixtures_dir=FIXTURES) as s, Judge() as judge:
        for name, run_id in recorded(s).items():
            whole = body(s, run_id)
            want = comparable(judge.ask(stream=whole))
            for _, cursor, _ in frames(whole):
                rest = body(s, run_id, header=cursor)
                equal(comparable(judge.ask(stream=rest)), want, f"{name} after {cursor}")
                equal(rest, body(s, run_id, f"?after={cursor}"))
            last = frames(whole)[-1][1].split(".")[0]
            for n in range(int(last) + 2):
                rest = judge.ask(stream=body(s, run_id, f"?last_event_id={n}"))
                equal(comparable(rest), want, f"{name} after {n}")


@test("messages_calls_and_activities_are_what_the_recording_says",
      "AGUI-02 AGUI-03 AGUI-04 AGUI-05 AGUI-06 AGUI-07 AGUI-15")
def content():
    with Server(fixtures_dir=FIXTURES) as s, Judge() as judge:
        run_id = fixture(s, "tools")
        text = body(s, run_id)
        got = judge.ask(stream=text)
        by_role = {}
        for m in got["messages"]:
            by_role.setdefault(m["role"], []).append(m)
        equal([m["content"] for m in by_role["reasoning"]], ["I need the forecast first."])
        first, second = by_role["assistant"]
        equal(first["content"], "Let me look that up. ")
        equal([(c["id"], c["function"]["name"], json.loads(c["function"]["arguments"])) for c in first["toolCalls"]],
              [("call_1", "weather.forecast", {"city": "Lisbon", "days": 2}), ("call_2", "calendar.read", {"calendar": "work"})])
        equal([c["title"] for c in second["metadata"]["uar.citations"]], ["Forecast for Lisbon", "How forecasts are made"])
        equal([(m["toolCallId"], m["metadata"]["uar"]["toolCallName"], m["metadata"]["uar"]["isError"])
               for m in by_role["tool"]], [("call_1", "weather.forecast", False), ("call_2", "calendar.read", True)])
        equal(json.loads(by_role["tool"][0]["content"])["note"], None)
        kinds = {m["activityType"]: m["content"] for m in by_role["activity"]}
        equal(len(kinds["uar.memory"]["items"]), 2)
        equal(kinds["uar.tool"], {"tool_call_id": "call_1", "delta": "almost done"})
        equal((kinds["uar.artifact"]["artifact_id"], kinds["uar.artifact"]["language"]), ("artifact_1", "html"))
        names = [n for n, _, _ in frames(text) if n != "meta"]
        equal(names, ["run.start", "memory", "thinking.delta", "chat.delta", "tool.start", "tool.delta", "tool.delta",
                      "tool.end", "tool.start", "tool.end", "citation", "artifact", "chat.delta", "run.done"])


@test("chunks_have_the_names_and_data_of_the_document",
      "AGUI-02 AGUI-03 AGUI-04 AGUI-05 AGUI-06 AGUI-07 AGUI-08 AGUI-11")
def chunks():
    with Server(fixtures_dir=FIXTURES) as s:
        got = frames(body(s, fixture(s, "tools"), "?dialect=chunks"))
        lines = [json.loads(line)["data"] for line in open(os.path.join(FIXTURES, "tools.jsonl"), encoding="utf-8")]
        want = []
        for name, data in zip(["run.start", "memory", "thinking.delta", "chat.delta", "tool.start", "tool.delta",
                               "tool.delta", "tool.end", "tool.start", "tool.end", "citation", "artifact",
                               "chat.delta", "run.done"], lines):
            data = {"delta" if k == "text_delta" else k: v for k, v in data.items() if k != "run_id"}
            want.append((name, data.get("artifact", data)))
        equal([(n, d) for n, _, d in got], want)
        failed = frames(body(s, fixture(s, "failure"), "?dialect=chunks"))
        equal(failed[-1][0], "error")
        equal(failed[-1][2], {"code": "PROVIDER_ERROR", "message": "the model stopped answering"})
        run_id = fixture(s, "hello")
        whole = frames(body(s, run_id, "?dialect=chunks"))
        for i, (_, cursor, _) in enumerate(whole):
            equal(frames(body(s, run_id, f"?dialect=chunks&after={cursor}")), whole[i + 1:])


@test("a_slow_reader_gets_every_frame_once", "SSE-05 AGUI-09")
def slow_reader():
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "long.jsonl"), "w", encoding="utf-8") as f:
            rows = [("RunStart", {"agent_id": "fixture"})]
            rows += [("ChatDelta", {"text_delta": f"{i} " + "x" * 600}) for i in range(2000)] + [("RunDone", {})]
            for kind, data in rows:
                f.write(json.dumps({"type": kind, "data": {"run_id": "x", **data}}) + "\n")
        with Server(fixtures_dir=folder) as s:
            run_id = s.http.post("/api/runs", {"agent_id": "fixture", "inputs": {"fixture": "long"}}).json["run_id"]
            with Stream(s.url, f"/api/ag-ui/runs/{run_id}/stream", s.token, receive_buffer=4096) as stream:
                s.events(run_id)  # all of it is there before the reader begins
                got = [e.data for e in stream.all()]
            equal(got, [e for _, _, e in frames(body(s, run_id))])
            equal(sum(e["type"] == "TEXT_MESSAGE_CONTENT" for e in got), 2000)


def user(text, message_id="u1"):
    return {"id": message_id, "role": "user", "content": text}


@test("http_agents_run_an_agent", "API-04 AGUI-01 AGUI-13")
def agents():
    with Server(fixtures_dir=FIXTURES) as s, Judge() as judge:
        for old in (False, True):
            thread, first = f"t-{old}", [user("hi")]
            got = judge.http(s, "/api/ag-ui/agents/demo", old, threadId=thread, runId=f"r-{old}", messages=first,
                             state={"mine": 1})
            equal(got["failed"], None)
            equal((got["events"][0]["type"], got["events"][0]["threadId"], got["events"][0]["runId"]),
                  ("RUN_STARTED", thread, f"r-{old}"))
            equal(got["events"][-1]["type"], "RUN_FINISHED")
            equal(got["events"][-1]["usage"][0]["model"], "scripted-reasoning")
            equal([m["role"] for m in got["messages"]], ["user", "reasoning", "assistant"])
            equal(got["state"], {"mine": 1})
            check('You wrote: "hi" (turns before this one: 0)' in got["messages"][-1]["content"])
            # All messages are sent again, one is new: the server has the others already.
            more = got["messages"] + [user("again", "u2")]
            got = judge.http(s, "/api/ag-ui/agents/demo", old, threadId=thread, runId=f"r2-{old}", messages=more)
            check('You wrote: "again" (turns before this one: 1)' in got["messages"][-1]["content"], got["messages"])
            equal([m["id"] for m in got["messages"][:4]], [m["id"] for m in more])
            got = judge.http(s, "/api/ag-ui/runs", old, threadId="x", runId=f"f-{old}", messages=[user("")],
                             forwardedProps={"agent_id": "fixture", "inputs": {"fixture": "failure"}})
            equal((got["events"][-1]["type"], got["events"][-1]["code"]), ("RUN_ERROR", "PROVIDER_ERROR"))
            equal(types(got["events"])[-2], "STEP_FINISHED" if "STEP_STARTED" in types(got["events"]) else "TEXT_MESSAGE_END")


@test("a_known_run_is_attached_to_and_not_started_again", "API-04 AGUI-01")
def attached():
    with Server() as s, Judge() as judge:
        want = None
        for _ in range(2):
            got = judge.http(s, "/api/ag-ui/agents/demo", threadId="t", runId="r",
                             messages=want["messages"] if want else [user("hi")])
            want = want or got
            equal(got["messages"], want["messages"])
        run_id = want["events"][0]["metadata"]["uar"]["runId"]
        equal([r["run_id"] for r in s.http.get("/api/runs").json["runs"]], [run_id])
        equal(frames(body(s, run_id))[0][2]["runId"], "r")
        answer = s.http.post("/api/ag-ui/agents/tools", {"threadId": "t", "runId": "r", "messages": [user("hi")]})
        refused(answer, 409, "CONFLICT")


@test("a_plain_body_creates_a_run", "API-04")
def created():
    with Server() as s:
        answer = s.http.post("/api/ag-ui/runs", {"agent_id": "demo", "inputs": {"message": "hi"}})
        equal(answer.status, 202)
        run_id = answer.json["run_id"]
        equal(answer.json["stream_url"], f"/api/ag-ui/runs/{run_id}/stream")
        equal(types(e for _, _, e in frames(body(s, run_id)))[-1], "RUN_FINISHED")
        answer = s.http.post("/api/ag-ui/runs", {"agent_id": "demo", "inputs": {"message": "hi"}},
                             headers={"Accept": "text/event-stream"})
        equal(answer.headers["content-type"], "text/event-stream; charset=utf-8")
        equal(types(e for _, _, e in frames(answer.body.decode()))[-1], "RUN_FINISHED")


@test("a_request_ends_where_the_run_asks_and_the_stream_goes_on", "AGUI-01 AGUI-13")
def interrupted():
    with Server() as s, Judge() as judge:
        got = judge.http(s, "/api/ag-ui/agents/tools", threadId="t", runId="r",
                         messages=[user(call("fs.write", path="a.txt", text="x"))])
        end = got["events"][-1]
        equal(types(got["events"])[-3:], ["STATE_SNAPSHOT", "MESSAGES_SNAPSHOT", "RUN_FINISHED"])
        equal((end["runId"], end["outcome"]["type"]), ("r", "interrupt"))
        [asked] = end["outcome"]["interrupts"]
        equal((asked["reason"], asked["message"]), ("tool_call", "fs.write: a.txt"))
        calls = [c for m in got["messages"] for c in m.get("toolCalls", [])]
        equal([(c["id"], json.loads(c["function"]["arguments"])) for c in calls],
              [(asked["toolCallId"], {"path": "a.txt", "text": "x"})])
        run_id = got["events"][0]["metadata"]["uar"]["runId"]
        with Stream(s.url, f"/api/ag-ui/runs/{run_id}/stream", s.token) as stream:
            stream.until(lambda e: e.data["type"] == "RUN_FINISHED")
            equal(s.http.post("/api/control/respond_action", {"action_id": asked["id"], "decision": "allow"}).status, 200)
            rest = [e.data for e in stream.all()]
        equal((rest[0]["type"], rest[0]["runId"]), ("RUN_STARTED", "r.2"))
        equal([e["toolCallId"] for e in rest if e["type"] == "TOOL_CALL_RESULT"], [asked["toolCallId"]])
        check("TOOL_CALL_START" not in types(rest), types(rest))
        equal((rest[-1]["type"], rest[-1]["runId"]), ("RUN_FINISHED", "r.2"))
        judge.ask(stream=body(s, run_id))


@test("an_interrupt_is_answered_by_the_next_run_of_the_client", "AGUI-01 AGUI-13")
def resumed():
    with Server() as s, Judge() as judge:
        for old in (False, True):
            for approved in (True, False):
                thread = f"t-{old}-{approved}"
                first = judge.http(s, "/api/ag-ui/agents/tools", old, threadId=thread, runId=f"{thread}-1",
                                   messages=[user(call("fs.write", path="a.txt", text="x"))])
                [asked] = first["events"][-1]["outcome"]["interrupts"]
                entry = {"interruptId": asked["id"], "status": "resolved", "payload": {"approved": approved}}
                for again in (2, 3):
                    got = judge.http(s, "/api/ag-ui/agents/tools", old, threadId=thread, runId=f"{thread}-{again}",
                                     messages=first["messages"], resume=[entry])
                    equal((got["events"][0]["type"], got["events"][0]["runId"]), ("RUN_STARTED", f"{thread}-{again}"))
                    equal((got["events"][-1]["type"], got["events"][-1]["runId"]), ("RUN_FINISHED", f"{thread}-{again}"))
                    results = [m for m in got["messages"] if m["role"] == "tool"]
                    equal([(m["toolCallId"], m["metadata"]["uar"]["isError"]) for m in results],
                          [(asked["toolCallId"], not approved)])
                    check("TOOL_CALL_START" not in types(got["events"]), types(got["events"]))
                    if again == 2:
                        check("TOOL_CALL_RESULT" in types(got["events"]), types(got["events"]))
        equal(len(s.http.get("/api/runs").json["runs"]), 4, "each went on with its run")
        path, fine = "/api/ag-ui/agents/tools", {"threadId": "t", "messages": [user("hi")]}
        refused(s.http.post(path, {**fine, "resume": [{"interruptId": "i", "status": "resolved"}]}), 404, "NOT_FOUND",
                "/resume/0/interruptId")


@test("several_interrupts_are_answered_together_or_one_by_one", "AGUI-01 AGUI-13")
def several():
    script = TALK + [ASK % (1, 1, "a"), ASK % (2, 2, "b"), "expect allow", "expect deny", "result"]
    with Shop({"two": {"script": script}}) as s, Judge() as judge:
        for together in (True, False):
            def ask(n, resume=None, thread=f"t-{together}"):
                more = {} if resume is None else {"resume": [
                    {"interruptId": i["id"], "status": "resolved", "payload": {"approved": i["message"].endswith(" a")}} for i in resume]}
                return judge.http(s, "/api/ag-ui/agents/two", threadId=thread, runId=f"{thread}-{n}", messages=[user("hi")], **more)
            run_id = ask(1)["events"][0]["metadata"]["uar"]["runId"]
            wait_until(lambda: len(s.record(run_id)["actions"]) == 2, "two questions")  # the program asks one after the other
            asked = ask(1)["events"][-1]["outcome"]["interrupts"]
            equal([i["message"] for i in asked], ["Bash: touch a", "Bash: touch b"])
            if not together:
                left = ask(2, asked[:1])["events"][-1]["outcome"]
                equal((left["type"], [i["id"] for i in left["interrupts"]]), ("interrupt", [asked[1]["id"]]))
            end = ask(3, asked if together else asked[1:])["events"][-1]
            equal((end["type"], "outcome" in end), ("RUN_FINISHED", False))
            equal(s.record(run_id)["status"], "succeeded", "each got its own answer")


@test("a_message_beside_an_answer_is_a_turn_of_its_own", "AGUI-01 AGUI-13")
def said_beside():
    path = "/api/ag-ui/agents/tools"
    with Server() as s, Judge() as judge:
        for thread, whole in (("t", True), ("thin", False)):
            first = judge.http(s, path, threadId=thread, runId=f"{thread}-1", messages=[user(call("fs.write", path="a.txt", text="x"))])
            [asked] = first["events"][-1]["outcome"]["interrupts"]
            got = judge.http(s, path, threadId=thread, runId=f"{thread}-2", resume=[{"interruptId": asked["id"], "status": "cancelled"}],
                             messages=[*(first["messages"] if whole else []), user("something else", "u2")])
            equal((got["events"][0]["runId"], got["events"][-1]["type"]), (f"{thread}-2", "RUN_FINISHED"))
            titles = [r["title"] for r in s.http.get("/api/runs").json["runs"] if r["conversation_id"] == thread]
            equal((len(titles), titles[0]), (2, "something else"))
        # The message of the run itself is not a new one, for a client that has nothing else.
        asks = user(call("fs.write", path="a.txt", text="x"))
        first = judge.http(s, path, threadId="same", runId="same-1", messages=[asks])
        [asked] = first["events"][-1]["outcome"]["interrupts"]
        judge.http(s, path, threadId="same", runId="same-2", messages=[asks], resume=[{"interruptId": asked["id"], "status": "cancelled"}])
        equal(len([r for r in s.http.get("/api/runs").json["runs"] if r["conversation_id"] == "same"]), 1)


@test("a_message_without_an_answer_is_refused_and_not_queued", "AGUI-01 AGUI-13")
def answer_first():
    path = "/api/ag-ui/agents/tools"
    with Server() as s, Judge() as judge:
        asks = user(call("fs.write", path="a.txt", text="x"))
        for old in (False, True):
            thread = f"t-{old}"
            first = judge.http(s, path, old, threadId=thread, runId=f"{thread}-1", messages=[asks])
            [asked] = first["events"][-1]["outcome"]["interrupts"]
            more = {"threadId": thread, "messages": [*first["messages"], user("and then?", "u2")]}
            [(_, _, error)] = frames(s.http.post(path, {**more, "runId": f"{thread}-2"}).body.decode())
            equal((error["type"], error["code"]), ("RUN_ERROR", "WAITING_FOR_ANSWER"))
            check(asked["id"] in error["message"] and "answer it" in error["message"], error)
            [run] = [r for r in s.http.get("/api/runs").json["runs"] if r["conversation_id"] == thread]
            # Who names the run that waits still gets it; the refused name is free.
            again = judge.http(s, path, old, threadId=thread, runId=f"{thread}-1", messages=[asks])
            equal(again["events"][-1]["outcome"]["interrupts"][0]["id"], asked["id"])
            got = judge.http(s, path, old, **more, runId=f"{thread}-2", resume=[{"interruptId": asked["id"], "status": "cancelled"}])
            equal(got["events"][-1]["type"], "RUN_FINISHED")
            equal(len([r for r in s.http.get("/api/runs").json["runs"] if r["conversation_id"] == thread]), 2, run)


@test("answers_to_interrupts_are_checked_before_they_count", "AGUI-01 AGUI-13")
def answers_checked():
    path = "/api/ag-ui/agents/tools"
    with Server() as s, Judge() as judge:
        first = judge.http(s, path, threadId="t", runId="1", messages=[user(call("fs.write", path="a.txt", text="x"))])
        [asked] = first["events"][-1]["outcome"]["interrupts"]
        base = {"threadId": "t", "runId": "2", "messages": first["messages"]}
        good = {"interruptId": asked["id"], "status": "resolved", "payload": {"approved": True}}
        for payload, where in (({"approved": "yes"}, "approved"), ({}, "approved"),
                               ({"approved": True, "editedArgs": {"path": "b"}}, "editedArgs")):
            refused(s.http.post(path, {**base, "resume": [{**good, "payload": payload}]}), 400, "VALIDATION_ERROR",
                    f"/resume/0/payload/{where}")
        refused(s.http.post(path, {**base, "threadId": "other", "resume": [good]}), 400, "VALIDATION_ERROR", "/threadId")
        got = judge.http(s, path, **base, resume=[{"interruptId": "unknown", "status": "resolved"}, good])
        equal([m["metadata"]["uar"]["isError"] for m in got["messages"] if m["role"] == "tool"], [False])


@test("a_form_is_filled_by_the_next_run_of_the_client", "AGUI-01")
def form():
    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    with Server() as s, Judge() as judge:
        first = judge.http(s, "/api/ag-ui/agents/tools", threadId="t", runId="1",
                           messages=[user(call("ui.form.request", title="Where?", schema=schema))])
        [asked] = first["events"][-1]["outcome"]["interrupts"]
        equal((asked["reason"], asked["responseSchema"]), ("input_required", schema))
        answer = s.http.post("/api/ag-ui/agents/tools", {
            "threadId": "t", "runId": "x", "messages": first["messages"],
            "resume": [{"interruptId": asked["id"], "status": "resolved", "payload": {"city": 7}}]})
        refused(answer, 400, "VALIDATION_ERROR", "/payload/city")
        got = judge.http(s, "/api/ag-ui/agents/tools", threadId="t", runId="2", messages=first["messages"],
                         resume=[{"interruptId": asked["id"], "status": "resolved", "payload": {"city": "Lisbon"}}])
        equal(got["events"][-1]["type"], "RUN_FINISHED")
        check("Lisbon" in json.dumps([m for m in got["messages"] if m["role"] == "tool"]), got["messages"])


@test("a_definition_switches_dialects_off", "AGUI-12 ART-07 A2A-07")
def switched():
    def agent(name, **protocols):
        return {"version": "1.0", "kind": "agent", "id": name,
                "policy": {"provider": {"default": {"provider": "scripted", "model": "scripted-tools"}}, "tools": {"allow": ["*"]}},
                "runtime": {"entry": "llm.chat", "protocols": {k: {"enabled": v} for k, v in protocols.items()}}}
    with tempfile.TemporaryDirectory() as folder:
        for a in (agent("quiet", ag_ui=False, a2ui=False, a2a=False), agent("open", ag_ui=True)):
            with open(os.path.join(folder, a["id"] + ".json"), "w", encoding="utf-8") as f:
                json.dump(a, f)
        with Server(agents_dir=folder) as s:
            body_of = {"threadId": "t", "messages": [user("hi")]}
            letter = {"from_agent": "x", "conversation_id": "c", "payload": {"type": "text", "text": "hi"},
                      "capabilities": {"tools": [], "models": []}}
            for name, status in (("quiet", 403), ("open", 200)):
                run_id = s.create(name, "hi")
                s.events(run_id)
                equal(s.http.post(f"/api/ag-ui/agents/{name}", body_of).status, status)
                for path in (f"/api/ag-ui/runs/{run_id}/stream", f"/api/a2ui/runs/{run_id}/stream"):
                    equal(s.http.get(path).status, status, path)
                answer = s.http.post("/api/a2a/inbox", {**letter, "message_id": name, "to_agent": name})
                equal(answer.status, 403 if name == "quiet" else 202, answer.body)
                equal(s.http.get(f"/api/runs/{run_id}/stream").status, 200, "the run itself is there")
                plain = {"agent_id": name, "inputs": {"message": "hi"}}
                equal(s.http.post("/api/ag-ui/runs", plain).status, 403 if name == "quiet" else 202)
                thread = s.record(run_id)["conversation_id"]
                # Another agent in the address changes nothing.
                answer = s.http.post("/api/copilotkit/agent/demo/connect", {"threadId": thread, "runId": "c", "messages": []})
                equal(answer.status, status, answer.body)
            write = s.create("quiet", call("fs.write", path="a.txt", text="x"))
            asked, thread = question(s, write), s.record(write)["conversation_id"]
            answer = s.http.post("/api/ag-ui/agents/demo", {
                "threadId": thread, "messages": [], "resume": [{"interruptId": asked["action_id"], "status": "cancelled"}]})
            refused(answer, 403, "FORBIDDEN")
            refused(s.http.post(f"/api/copilotkit/agent/demo/stop/{thread}"), 403, "FORBIDDEN")
            equal(question(s, write), asked)


@test("the_state_of_the_client_is_shared_with_the_model", "AGUI-13 AGUI-16")
def state():
    with Server() as s, Judge() as judge:
        for old in (False, True):
            got = judge.http(s, "/api/ag-ui/agents/tools", old, threadId=f"t{old}", runId=f"r{old}", state=STATE, messages=[user(merges())])
            equal(got["state"], MERGED)
            deltas = [e["delta"] for e in got["events"] if e["type"] == "STATE_DELTA"]
            equal(deltas[1], [{"op": "remove", "path": "/gone"}, {"op": "replace", "path": "/new/deep", "value": 7}])
            check({"op": "replace", "path": "/todo/x~1y~0z", "value": False} in deltas[0], deltas)
            run_id = got["events"][0]["metadata"]["uar"]["runId"]
            equal(judge.ask(stream=body(s, run_id))["state"], MERGED, "one who had no state")
            empty = judge.http(s, "/api/ag-ui/agents/tools", old, threadId=f"e{old}", runId=f"e{old}", messages=[user(merges())])
            equal(empty["state"], {k: v for k, v in MERGED.items()} | {"todo": {"b": [1, {"c": None}], "x/y~z": False}})
        long = judge.http(s, "/api/ag-ui/agents/tools", threadId="l", runId="l",
                          messages=[user(call("state.merge", changes={"text": "x" * 4000}))])
        check("at most" in json.dumps([m for m in long["messages"] if m["role"] == "tool"]), long["messages"])
        many = judge.http(s, "/api/ag-ui/agents/tools", threadId="m", runId="m", state={"k" * 400: {str(i): 0 for i in range(120)}},
                          messages=[user(call("state.merge", changes={"k" * 400: {str(i): 1 for i in range(120)}}))])
        equal(many["state"], {"k" * 400: {str(i): 1 for i in range(120)}}, "a patch that is too long is a snapshot")
        equal([e["type"] for e in many["events"] if e["type"] == "STATE_DELTA"], [])
        equal(long["state"], {})
    with Provider() as p, Server(env=p.env("hello")) as s, Judge() as judge:
        judge.http(s, "/api/ag-ui/agents/assistant", threadId="t", runId="r", state=STATE, messages=[user("hi")])
        check('"gone":[]' in json.dumps(p.stats()["last"]["messages"]).replace('\\"', '"'), "the model knows it")


PROTO = "application/vnd.ag-ui.event+proto"


def without_empty(value):
    """The binding has no empty lists."""
    if isinstance(value, dict):
        return {k: without_empty(v) for k, v in value.items() if v != []}
    return [without_empty(v) for v in value] if isinstance(value, list) else value


@test("every_run_is_the_same_in_protobuf", "AGUI-01 AGUI-13 AGUI-16")
def protobuf():
    with Server(fixtures_dir=FIXTURES) as s, Judge() as judge:
        for name, run_id in recorded(s).items():
            path = f"/api/ag-ui/runs/{run_id}/stream"
            answer = s.http.get(path, headers={"Accept": PROTO})
            equal(answer.headers["content-type"], PROTO)
            got = judge.ask(proto=base64.b64encode(answer.body).decode())["events"]
            want = [e for _, _, e in frames(body(s, run_id))]
            equal(len(got), len(want), name)
            for g, w in zip(got, want):
                equal(without_empty(g), without_empty(w), name)
            cursor = frames(body(s, run_id))[len(want) // 2][1]
            rest = s.http.get(path, headers={"Accept": PROTO, "Last-Event-ID": cursor})
            equal(without_empty(judge.ask(proto=base64.b64encode(rest.body).decode())["events"]),
                  without_empty([e for _, _, e in frames(body(s, run_id, header=cursor))]), name)


@test("http_agents_that_ask_for_protobuf_get_it", "API-04 AGUI-01")
def protobuf_agents():
    with Server() as s, Judge() as judge:
        for i, accept in enumerate((PROTO, f"text/event-stream;q=0.5, {PROTO}")):
            got = judge.ask(url=s.url + "/api/ag-ui/agents/demo", token=s.token, headers={"Accept": accept},
                            input={"threadId": "t", "runId": f"r{i}", "messages": [user("hi")]})
            equal((got["failed"], got["events"][-1]["type"]), (None, "RUN_FINISHED"))
            check(f"turns before this one: {i}" in got["messages"][-1]["content"], got["messages"][-1])
        for accept in ("*/*", f"{PROTO};q=0, text/event-stream", "application/json"):
            answer = s.http.post("/api/ag-ui/agents/demo", {"threadId": "u", "messages": [user("hi")]}, headers={"Accept": accept})
            equal(answer.headers["content-type"], "text/event-stream; charset=utf-8", accept)


@test("a_stop_ends_protobuf_in_order", "AGUI-14")
def protobuf_stopped():
    with Server(env=SLOW, heartbeat_seconds=1) as s, Judge() as judge:
        run_id = slow_run(s)
        with Stream(s.url, f"/api/ag-ui/runs/{run_id}/stream", s.token, headers={"Accept": PROTO}) as stream:
            wait_until(lambda: stream.chunk() and b"\x1b" in bytes(stream.raw) or None, "a piece of reasoning")
            s.stop()
            while stream.chunk():
                pass
            text = bytes(stream.raw)
        last = judge.ask(proto=base64.b64encode(text).decode())["events"][-1]
        equal((last["type"], last["code"]), ("RUN_ERROR", "unavailable"))


@test("images_and_documents_of_a_message_reach_the_model", "API-04")
def multimodal():
    pixel = "iVBORw0KGgo="
    parts = [{"type": "text", "text": "what is this?"},
             {"type": "image", "source": {"type": "data", "value": pixel, "mimeType": "image/png"}},
             {"type": "image", "source": {"type": "url", "value": "https://example.org/a.png"}},
             {"type": "image", "source": {"type": "file", "value": "handle", "provider": "x"}},
             {"type": "video", "source": {"type": "url", "value": "https://example.org/a.mp4"}},
             {"type": "document", "source": {"type": "data", "value": pixel, "mimeType": "application/pdf"},
              "metadata": {"filename": "a.pdf"}}]
    with Provider() as p, Server(env=p.env("hello")) as s, Judge() as judge:
        got = judge.http(s, "/api/ag-ui/agents/assistant", threadId="t", runId="r", messages=[{"id": "1", "role": "user", "content": parts}])
        equal((got["failed"], got["events"][-1]["type"]), (None, "RUN_FINISHED"))
        equal(got["messages"][0]["content"], parts, "as the client has it")
        told = p.stats()["last"]["messages"][-1]["content"]
        equal([t["type"] for t in told], ["text", "image_url", "image_url", "file"], "what no model can be given is passed over")
        equal((told[1]["image_url"]["url"], told[2]["image_url"]["url"]),
              (f"data:image/png;base64,{pixel}", "https://example.org/a.png"))
        old = [{"type": "binary", "mimeType": "image/png", "data": pixel}]
        judge.http(s, "/api/ag-ui/agents/assistant", threadId="t2", runId="r2", messages=[{"id": "1", "role": "user", "content": old}])
        told = p.stats()["last"]["messages"][-1]["content"]
        equal([t["type"] for t in told], ["text", "image_url"])


@test("agents_say_what_they_can", "")
def capabilities():
    with Server() as s, Judge() as judge:
        for agent in s.http.get("/api/agents").json["agents"]:
            judge.ask(capabilities=s.http.get(f"/api/ag-ui/agents/{agent['agent_id']}/capabilities").json)


def slow_run(s):
    """The first piece of text is there, the next one comes in a minute."""
    run_id = s.create("demo", "hi")
    with Stream(s.url, f"/api/ag-ui/runs/{run_id}/stream", s.token) as stream:
        stream.until(lambda e: e.data["type"] in ("TEXT_MESSAGE_CONTENT", "REASONING_MESSAGE_CONTENT"))
    return run_id


@test("a_cancelled_run_ends_in_order", "AGUI-13 AGUI-14")
def cancelled():
    with Server(env=SLOW) as s, Judge() as judge:
        run_id = slow_run(s)
        s.http.post(f"/api/runs/{run_id}/cancel")
        s.events(run_id)
        text, old = body(s, run_id), body(s, run_id, "?protocol_version=0")
        judge.ask(stream=text)
        judge.ask(stream=old, old=True)
        equal(frames(text)[-1][2]["outcome"], {"type": "cancelled"})
        equal((frames(old)[-1][2]["type"], frames(old)[-1][2]["code"]), ("RUN_ERROR", "cancelled"))


@test("a_stream_that_a_stop_ends_says_so", "AGUI-13 AGUI-14")
def stopped():
    with Server(env=SLOW) as s, Judge() as judge:
        run_id = slow_run(s)
        with Stream(s.url, f"/api/ag-ui/runs/{run_id}/stream", s.token) as stream:
            stream.until(lambda e: e.data["type"] in ("TEXT_MESSAGE_CONTENT", "REASONING_MESSAGE_CONTENT"))
            s.stop()
            stream.all()
            text = bytes(stream.raw).decode()
        judge.ask(stream=text)
        name, cursor, last = frames(text)[-1]
        equal((name, cursor, last["type"], last["code"]), ("error", None, "RUN_ERROR", "unavailable"))


@test("text_that_a_restart_took_back_is_taken_back", "AGUI-14 SSE-08")
def superseded():
    with Server(env=SLOW) as s, Judge() as judge:
        run_id = slow_run(s)
        s.kill()
        s.env = {}
        s.start()
        s.events(run_id)
        log = [e.data for e in s.session_events(run_id)]
        check(any("superseded_message_id" in e["payload"].get("metadata", {}) for e in log), "nothing was superseded")
        whole = body(s, run_id)
        got = judge.ask(stream=whole)
        texts = [m["content"] for m in got["messages"] if m["role"] == "assistant"]
        equal(len(texts), 1)
        check(texts[0].startswith('You wrote: "hi"'), texts)
        for _, cursor, _ in frames(whole):
            equal(comparable(judge.ask(stream=body(s, run_id, header=cursor))), comparable(got), cursor)


@test("what_does_not_fit_is_refused_by_name", "API-04 API-05")
def refusals():
    with Server() as s:
        path, fine = "/api/ag-ui/agents/demo", {"threadId": "t", "runId": "r", "messages": [user("hi")]}
        for change, where in (({"tools": [{"description": ""}]}, "/tools/0"),
                              ({"protocolVersion": "2.0"}, "/protocolVersion"), ({"threadId": "a b"}, "/threadId"),
                              ({"runId": "x" * 101}, "/runId"), ({"runId": 7}, "/runId"),
                              ({"messages": "hi"}, "/messages"), ({"messages": [7]}, "/messages"),
                              ({"messages": []}, "/messages"),
                              ({"messages": [{"id": "u", "role": "user", "content": [{"type": "image"}]}]}, "/messages")):
            refused(s.http.post(path, {**fine, **change}), 400, "VALIDATION_ERROR", where)
        refused(s.http.post("/api/ag-ui/runs", fine), 400, "VALIDATION_ERROR", "/forwardedProps/agent_id")
        wait_until(lambda: s.http.post("/api/ag-ui/agents/nobody", fine).status != 503 or None, "definitions to be read")
        refused(s.http.post("/api/ag-ui/agents/nobody", fine), 404, "NOT_FOUND")
        equal(s.http.post(path, fine, token=False).status, 401)
        equal(s.http.get("/api/runs").json["runs"], [])
        run_id = s.create("demo", "hi")
        stream = f"/api/ag-ui/runs/{run_id}/stream"
        for query, where in (("after=x", "?after"), ("after=1.", "?after"), ("last_event_id=1.x", "?last_event_id"),
                             ("dialect=x", "?dialect"), ("protocol_version=7", "?protocol_version")):
            refused(s.http.get(f"{stream}?{query}"), 400, "VALIDATION_ERROR", where)
        refused(s.http.get(stream, headers={"Last-Event-ID": "-1"}), 400, "VALIDATION_ERROR", "Last-Event-ID")
        refused(s.http.get("/api/ag-ui/runs/nothing/stream"), 404, "NOT_FOUND")
        # null is absent, unknown members and parts are passed over
        text = [{"type": "image", "source": {"type": "url", "value": "u"}}, {"type": "text", "text": "hi"}]
        answer = s.http.post(path, {"messages": [{"id": "u", "role": "user", "content": text, "name": None}],
                                    "threadId": None, "runId": None, "state": None, "tools": None, "other": 1})
        equal(types(e for _, _, e in frames(answer.body.decode()))[-1], "RUN_FINISHED")


main()
