#!/usr/bin/env python3
"""A2UI: the official schemas and the official processor read what the real server sends."""
import json
import os
import random
import subprocess
import tempfile

from lib import FIXTURES, ROOT, Server, Stream, check, equal, main, refused, test, text_of, wait_until
from lib.npm import modules, node


class Judge:
    """The official package in a process of its own."""

    def __init__(self):
        self.proc = subprocess.Popen([node(), os.path.join(ROOT, "tests", "e2e", "a2ui_judge.mjs"), modules("a2ui")],
                                     stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, messages=None, **more):
        self.proc.stdin.write(json.dumps({"messages": messages, **more}) + "\n")
        self.proc.stdin.flush()
        answer = json.loads(self.proc.stdout.readline())
        equal(answer["errors"], [], "what the judges complain of")
        return answer

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.proc.stdin.close()
        self.proc.wait()


def body(s, run_id, query="", header=None):
    answer = s.http.get(f"/api/a2ui/runs/{run_id}/stream{query}", headers={"Last-Event-ID": header} if header else None)
    equal(answer.status, 200, answer.body)
    return answer.body.decode()


def frames(text):
    """(id, message) of each."""
    out = []
    for frame in text.split("\n\n")[:-1]:
        fields = dict(line.split(": ", 1) for line in frame.split("\n") if not line.startswith(":"))
        if "data" in fields:
            out.append((fields.get("id"), json.loads(fields["data"])))
    return out


def messages(text):
    return [m for _, m in frames(text)]


def fixture(s, name):
    run_id = s.http.post("/api/runs", {"agent_id": "fixture", "inputs": {"fixture": name}}).json["run_id"]
    s.events(run_id)
    return run_id


def golden_file(path, got):
    """Compares with a file of fixtures/; UAR_TEST_WRITE=1 writes it."""
    path = os.path.join(ROOT, "fixtures", path)
    if os.environ.get("UAR_TEST_WRITE"):
        with open(path, "wb") as f:
            f.write(got)
    with open(path, "rb") as f:
        equal(got, f.read(), path)


def call(name, **args):
    return f"tool {name} {json.dumps(args)}"


def question(s, run_id):
    return wait_until(lambda: (s.record(run_id).get("actions") or [None])[0], "a question")


def recorded(s):
    """A run of each kind, over when it is returned."""
    runs = {name: fixture(s, name) for name in ("hello", "tools", "failure")}
    runs["demo"] = s.create("demo", "hi")
    runs["rounds"] = s.create("tools", call("math.evaluate", expression="6*7") + "\n" + call("time.now") + "\nthen\n" +
                              call("math.evaluate", expression="1/0"))
    runs["asked"] = s.create("tools", call("fs.write", path="a.txt", text="x"))
    action = question(s, runs["asked"])
    s.http.post("/api/control/respond_action", {"action_id": action["action_id"], "decision": "allow"})
    for run_id in runs.values():
        s.events(run_id)
    return runs


@test("official_judges_accept_every_kind_of_run", "A2UI-01 A2UI-03 A2UI-05 A2UI-06 API-06 ACC-04")
def judged():
    with Server(fixtures_dir=FIXTURES) as s, Judge() as judge:
        for name, run_id in recorded(s).items():
            text = body(s, run_id)
            got = judge.ask(messages(text))
            equal(text, body(s, run_id), "a replay has the same bytes")
            equal(list(got["surfaces"]), [f"run-{run_id}"], name)
            model = got["models"][f"run-{run_id}"]
            equal("".join(model["text"]), text_of(s.events(run_id)), name)
            equal(model["status"], "failed" if name == "failure" else "done")
            equal({m["version"] for m in messages(text)}, {"v0.9"})
            order = [i for i, _ in frames(text)]
            equal(order, sorted(order, key=lambda i: tuple(map(int, i.split(".")))), "frames follow their events")


@test("official_judges_accept_the_golden_files", "A2UI-04")
def golden():
    folder = os.path.join(ROOT, "fixtures", "a2ui")
    with Judge() as judge:
        for name in sorted(os.listdir(folder)):
            with open(os.path.join(folder, name), encoding="utf-8") as f:
                judge.ask(messages(f.read()))
        with open(os.path.join(folder, "form.sse"), encoding="utf-8") as f:
            form = messages(f.read())
        got = judge.ask(form, press={"surface": "form-a1", "component": "submit",
                                     "set": {"/form/name": "Ada", "/form/age": "36", "/form/color": ["green"]}})
        [action] = got["actions"]
        equal((action["name"], action["context"]["formId"]), ("uar.form.submit", "a1"))
        equal((action["context"]["values"]["name"], action["context"]["values"]["level"]), ("Ada", 3))


NAMES = ("failure", "hello", "superseded", "tools")


@test("recordings_are_shown_as_surfaces", "FIX-03 A2UI-04 FIX-06")
def fixtures():
    with Server(fixtures_dir=FIXTURES) as s, Judge() as judge:
        for name in NAMES:
            answer = s.http.get(f"/api/fixtures/{name}/stream?dialect=a2ui")
            equal(answer.body, s.http.get(f"/api/fixtures/{name}/stream?dialect=a2ui").body, "the same bytes again")
            golden_file(os.path.join("a2ui", name + ".fixture.sse"), answer.body)
            shown = judge.ask(messages(answer.body.decode()))
            run_id = fixture(s, name)
            run = judge.ask(messages(body(s, run_id)))
            equal(shown["models"]["run-fixture"], run["models"][f"run-{run_id}"], "as a run of it is shown")
            for cursor, _ in frames(answer.body.decode()):
                rest = s.http.get(f"/api/fixtures/{name}/stream?dialect=a2ui&after={cursor}").body.decode()
                equal(judge.ask(messages(rest))["models"], shown["models"], cursor)
        refused(s.http.get("/api/fixtures/hello/stream?dialect=x"), 400, "VALIDATION_ERROR", "?dialect")


@test("a_published_schema_describes_normalized_events", "A2UI-02")
def schema():
    path = os.path.join(ROOT, "docs", "normalized.schema.json")
    with Server(fixtures_dir=FIXTURES) as s, Judge() as judge:
        lines = []
        for name in NAMES:
            with open(os.path.join(FIXTURES, name + ".jsonl"), encoding="utf-8") as f:
                lines += [json.loads(line) for line in f]
        judge.ask(schema=path, values=lines)
        for name, run_id in recorded(s).items():
            judge.ask(schema=path, values=[e.data for e in s.events(run_id)])
            with Stream(s.url, f"/api/runs/{run_id}/stream?meta=1", s.token) as stream:
                judge.ask(schema=path, values=[e.data for e in stream.all()])


@test("a_run_becomes_sections_of_its_surface", "A2UI-03")
def sections():
    with Server(fixtures_dir=FIXTURES) as s, Judge() as judge:
        run_id = fixture(s, "tools")
        got = judge.ask(messages(body(s, run_id)))
        model, shown = got["models"][f"run-{run_id}"], json.dumps(got["surfaces"])
        equal(model["reasoning"], ["I need the forecast first."])
        equal([(t["name"], t["status"]) for t in model["tools"]], [("weather.forecast", "ok"), ("calendar.read", "error")])
        equal(len(model["memory"][0]), 2)
        check(model["artifacts"][0]["text"].startswith("```html\n"), model["artifacts"])
        for part in ("weather.forecast (ok)", "Forecast for Lisbon", "Reasoning"):
            check(part in shown, part, shown[:3000])
        failed = fixture(s, "failure")
        got = judge.ask(messages(body(s, failed)))
        check("the model stopped answering" in json.dumps(got["surfaces"]), got)


@test("joining_at_every_cursor_shows_the_same", "A2UI-01 A2UI-05 SSE-07 SSE-08")
def joined():
    with Server(fixtures_dir=FIXTURES) as s, Judge() as judge:
        for name, run_id in recorded(s).items():
            whole = frames(body(s, run_id))
            want = judge.ask([m for _, m in whole])
            for i, (cursor, _) in enumerate(whole):
                rest = messages(body(s, run_id, header=cursor))
                got = judge.ask(rest)
                equal(got["models"], want["models"], f"{name} after {cursor}")
                equal(got["surfaces"], want["surfaces"], f"{name} after {cursor}")
                again = judge.ask([m for _, m in whole[:i + 1]] + rest)  # one who has kept what it had
                equal(again["surfaces"], want["surfaces"], f"{name} goes on after {cursor}")


@test("an_approval_is_a_surface_with_buttons", "A2UI-03 A2UI-06")
def approval():
    with Server() as s, Judge() as judge:
        for button, status in (("approve", "ok"), ("deny", "error")):
            run_id = s.create("tools", call("fs.write", path="a.txt", text="x"))
            action = question(s, run_id)["action_id"]
            surface = f"action-{action}"
            with Stream(s.url, f"/api/a2ui/runs/{run_id}/stream", s.token) as stream:
                stream.until(lambda e: "waiting for input" in e.text)
                seen = messages(bytes(stream.raw).decode())
                got = judge.ask(seen, press={"surface": surface, "component": button})
                check("fs.write: a.txt" in json.dumps(got["surfaces"][surface]), got["surfaces"])
                [pressed] = got["actions"]
                equal((pressed["name"], pressed["surfaceId"]), ("uar.action.resolve", surface))
                path = f"/api/a2ui/runs/{run_id}/messages"
                answer = s.http.post(path, {"version": "v0.9", "action": pressed})
                equal((answer.status, answer.json["results"][0]["action_id"]), (200, action))
                stream.all()
                seen = messages(bytes(stream.raw).decode())
            got = judge.ask(seen)
            equal(list(got["surfaces"]), [f"run-{run_id}"])
            equal([t["status"] for t in got["models"][f"run-{run_id}"]["tools"]], [status])
            answer = s.http.post(path, {"messages": [{"version": "v0.9.1", "action": pressed}]})
            equal(answer.status, 200, "the same answer again")


@test("a_form_is_filled_on_its_surface", "A2UI-03")
def form():
    schema = {"type": "object", "required": ["age"], "properties": {"age": {"type": "integer", "minimum": 1, "maximum": 500},
                                                                     "color": {"enum": ["red", "green"]}}}
    with Server() as s, Judge() as judge:
        run_id = s.create("tools", call("ui.form.request", title="Who?", schema=schema))
        surface = f"form-{question(s, run_id)['action_id']}"
        path = f"/api/a2ui/runs/{run_id}/messages"
        with Stream(s.url, f"/api/a2ui/runs/{run_id}/stream", s.token) as stream:
            stream.until(lambda e: "waiting for input" in e.text)
            seen = messages(bytes(stream.raw).decode())
            for age, status in (("0", 400), ("36", 200)):
                [action] = judge.ask(seen, press={"surface": surface, "component": "submit",
                                                  "set": {"/form/age": age, "/form/color": ["green"]}})["actions"]
                answer = s.http.post(path, {"version": "v0.9", "action": action})
                equal(answer.status, status, answer.body)
                if status == 400:
                    got = judge.ask(seen + answer.json["messages"])
                    check("/age" in got["models"][surface]["errors"], got["models"])
            stream.all()
            seen = messages(bytes(stream.raw).decode())
        got = judge.ask(seen)
        equal(list(got["surfaces"]), [f"run-{run_id}"])
        [tool] = got["models"][f"run-{run_id}"]["tools"]
        check('36' in tool["output"] and "green" in tool["output"], tool)


def made(*changes):
    """An interface as a model makes it; each change edits the list of its messages."""
    catalog = "https://a2ui.org/specification/v0_9/catalogs/basic/catalog.json"
    parts = [{"id": "root", "component": "Column", "children": ["title", "go"]},
             {"id": "title", "component": "Text", "text": {"path": "/title"}},
             {"id": "go", "component": "Button", "child": "title", "action": {"event": {"name": "go"}}}]
    out = [{"version": "v0.9", "createSurface": {"surfaceId": "mine", "catalogId": catalog}},
           {"version": "v0.9", "updateComponents": {"surfaceId": "mine", "components": parts}},
           {"version": "v0.9", "updateDataModel": {"surfaceId": "mine", "path": "/", "value": {"title": "Hello"}}}]
    for change in changes:
        change(out, parts)
    return out


BROKEN = {
    "an id twice": lambda out, parts: parts.append(dict(parts[1])),
    "no component with the id root": lambda out, parts: parts.pop(0),
    "a component that is not there": lambda out, parts: parts[0]["children"].append("nothing"),
    "a component inside of itself": lambda out, parts: parts[2].update(child="root"),
    "not a component of the basic catalog": lambda out, parts: parts[1].update(component="Script"),
    "code in its data": lambda out, parts: out[2]["updateDataModel"]["value"].update(title="<ScRipt>alert(1)</script>"),
    "v0.9": lambda out, parts: out[1].update(version="v7"),
    "one surface of the basic catalog": lambda out, parts: out[0]["createSurface"].update(catalogId="mine"),
    "openUrl takes an http address": lambda out, parts: parts[2].update(
        action={"functionCall": {"call": "openUrl", "args": {"url": "file:///etc/passwd"}, "returnType": "void"}}),
    "a colour like #1a2b3c": lambda out, parts: out[0]["createSurface"].update(theme={"primaryColor": "red"}),
    "an http address": lambda out, parts: out[0]["createSurface"].update(theme={"iconUrl": "file:///etc/passwd"}),
    "an unknown member": lambda out, parts: out[0]["createSurface"].update(themes={}),
    "a JSON Pointer": lambda out, parts: out[2]["updateDataModel"].update(path="title"),
    "the whole data is an object": lambda out, parts: out[2]["updateDataModel"].update(value="Hello"),
    "a path that data must not have": lambda out, parts: parts[1].update(text={"path": "/constructor/name"}),
    "a name that data must not have": lambda out, parts: out[2]["updateDataModel"]["value"].update({"__proto__": {"a": 1}}),
}


@test("an_interface_that_a_model_makes_is_shown_when_it_is_fit", "A2UI-07")
def model_made():
    with tempfile.TemporaryDirectory() as folder:
        for i, change in enumerate([lambda out, parts: None, *BROKEN.values()]):
            artifact = {"artifact_id": "a1", "artifact_type": "a2ui", "title": "Mine", "content": json.dumps(made(change)),
                        "metadata": {}}
            with open(os.path.join(folder, f"made{i}.jsonl"), "w", encoding="utf-8") as f:
                for kind, data in (("RunStart", {"agent_id": "x"}), ("Artifact", {"artifact": artifact}), ("RunDone", {})):
                    f.write(json.dumps({"type": kind, "data": {"run_id": "x", **data}}) + "\n")
        with Server(fixtures_dir=folder) as s, Judge() as judge:
            run_id = fixture(s, "made0")
            got = judge.ask(messages(body(s, run_id)))
            check("Hello" in json.dumps(got["surfaces"]["artifact-a1"]), got)
            equal(judge.ask(messages(body(s, run_id, "?after=12")))["surfaces"], got["surfaces"])
            for i, reason in enumerate(BROKEN):
                run_id = fixture(s, f"made{i + 1}")
                got = judge.ask(messages(body(s, run_id)))
                equal(list(got["surfaces"]), [f"run-{run_id}"], reason)
                [shown] = got["models"][f"run-{run_id}"]["artifacts"]
                check(shown["text"].startswith("This interface is not shown: ") and reason in shown["text"], shown)


def put(*lists):
    """Calls that give each list of messages to keep, one after the other."""
    return "\nthen\n".join(call("artifact.put", artifact_type="a2ui", title="Mine", content=json.dumps(m)) for m in lists)


def examples():
    folder = os.path.join(modules("a2ui"), "@a2ui", "web_core", "src", "v0_9", "schemas", "catalogs", "basic", "examples")
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), encoding="utf-8") as f:
            yield name, json.load(f)["messages"]


def shown_surfaces(judge, s, run_id):
    return {k: v for k, v in judge.ask(messages(body(s, run_id)))["surfaces"].items() if k.startswith("artifact-")}


@test("interfaces_of_the_protocol_are_shown_when_a_model_makes_them", "A2UI-03 A2UI-07")
def official_examples():
    with Server() as s, Judge() as judge:
        count = 0
        for name, example in examples():
            size = len(json.dumps(example, separators=(",", ":")))
            run_id = s.create("tools", put(example))
            s.events(run_id)
            fits = size <= 9216 and not any("deleteSurface" in m for m in example)
            equal(len(shown_surfaces(judge, s, run_id)), int(fits), f"{name} of {size} bytes")
            count += fits
        check(count > 30, count)


def wrong_interfaces():
    """Each example with one fault."""
    faults = {"nothing": lambda c: None,
              "unknown": lambda c: c.update(colour="red"),
              "null": lambda c: c.update(weight=None),
              "variant": lambda c: c.update(variant="huge"),
              "missing": lambda c: c.pop([k for k in c if k not in ("id", "component")][0]),
              "number": lambda c: c.update({[k for k in c if k not in ("id", "component")][0]: 7}),
              "function": lambda c: c.update({[k for k in c if k not in ("id", "component")][0]: {"call": "eval", "args": {}}})}
    chosen = random.Random(17)
    for name, example in examples():
        fault = chosen.choice(list(faults))
        parts = [c for m in example for c in m.get("updateComponents", {}).get("components", [])]
        some = [c for c in parts if len(c) > 2]
        if some and len(json.dumps(example)) < 9000:
            faults[fault](chosen.choice(some))
            yield f"{fault} in {name}", example


@test("nothing_is_shown_that_the_official_schemas_refuse", "A2UI-07")
def sound():
    with Server() as s, Judge() as judge:
        verdicts = set()
        for name, example in wrong_interfaces():
            run_id = s.create("tools", put(example))
            s.events(run_id)
            ours = bool(shown_surfaces(judge, s, run_id))
            official = judge.ask(valid=example)["valid"]
            check(official or not ours, f"{name}: shown, but refused by the schemas")
            verdicts.add((ours, official))
        check((False, False) in verdicts and (True, True) in verdicts, verdicts)


@test("a_model_corrects_an_interface_three_times_at_most", "A2UI-07")
def repaired():
    with Server() as s, Judge() as judge:
        wrong = made(lambda out, parts: parts[1].pop("text"))
        run_id = s.create("tools", put(wrong, wrong, made()))
        s.events(run_id)
        told = [e.data["data"] for e in s.events(run_id) if e.type == "ToolEnd"]
        equal([t["ok"] for t in told], [False, False, True])
        check("Text lacks its text" in json.dumps(told[0]) and "2 of 3 corrections are left" in json.dumps(told[1]), told)
        equal(len(shown_surfaces(judge, s, run_id)), 1)
        run_id = s.create("tools", put(wrong, wrong, wrong, wrong))
        s.events(run_id)
        told = [e.data["data"] for e in s.events(run_id) if e.type == "ToolEnd"]
        check("No corrections are left: answer with text" in json.dumps(told[3]), told)
        equal(shown_surfaces(judge, s, run_id), {})
        equal([e for e in s.events(run_id) if e.type == "Artifact"], [], "nothing wrong is kept")


@test("ag_ui_clients_get_the_interface_and_say_what_the_user_does", "A2UI-01 AGUI-07")
def over_agui():
    catalog = "https://a2ui.org/specification/v0_9/basic_catalog.json"
    with Server() as s, Judge() as judge:
        def run(run_id, text, **more):
            answer = s.http.post("/api/ag-ui/agents/tools", {"threadId": "t", "runId": run_id, **more,
                                                             "messages": [{"id": "1", "role": "user", "content": text}]})
            return [json.loads(line[6:]) for line in answer.body.decode().split("\n") if line.startswith("data: ")]
        got = run("r1", put(made()))
        [surface] = [e for e in got if e.get("activityType") == "a2ui-surface"]
        operations = surface["content"]["a2ui_operations"]
        equal(operations[0]["createSurface"]["catalogId"], catalog)
        known = {"description": "A2UI Component Schema - available components", "value": json.dumps({"catalogId": made()[0]["createSurface"]["catalogId"]})}
        [other] = [e for e in run("r2", put(made()), context=[known]) if e.get("activityType") == "a2ui-surface"]
        shown = judge.ask(other["content"]["a2ui_operations"], press={"surface": surface_of(other), "component": "go"})
        check("Hello" in json.dumps(shown["surfaces"]), shown)
        [action] = shown["actions"]
        # One who comes back finds it among the messages.
        answer = s.http.post("/api/copilotkit/agent/tools/connect", {"threadId": "t", "runId": "c"})
        check(surface["messageId"] in answer.body.decode(), answer.body)
        action["context"] = {"colour": "red"}
        got = run("r3", "as before", forwardedProps={"a2uiAction": {"userAction": action}})
        text = "".join(e["delta"] for e in got if e["type"] == "TEXT_MESSAGE_CONTENT")
        equal(got[-1]["type"], "RUN_FINISHED", text)
        newest = s.http.get("/api/runs").json["runs"][0]
        check(newest["title"].startswith(f'The user chose "go" on the interface "{surface_of(other)}"'), newest)


def surface_of(activity):
    return activity["content"]["a2ui_operations"][0]["createSurface"]["surfaceId"]


@test("long_text_costs_in_proportion_to_its_length", "")
def long_text():
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "long.jsonl"), "w", encoding="utf-8") as f:
            rows = [("RunStart", {"agent_id": "fixture"})]
            rows += [("ChatDelta", {"text_delta": f"{i} words that follow. "}) for i in range(4000)] + [("RunDone", {})]
            for kind, data in rows:
                f.write(json.dumps({"type": kind, "data": {"run_id": "x", **data}}) + "\n")
        with Server(fixtures_dir=folder) as s, Judge() as judge:
            run_id = fixture(s, "long")
            text = body(s, run_id)
            [shown] = judge.ask(messages(text))["models"][f"run-{run_id}"]["text"]
            equal(shown, text_of(s.events(run_id)))
            check(len(shown) > 80000 and len(text) < 20 * len(shown), len(shown), len(text))


@test("what_does_not_fit_is_refused_by_name", "API-06")
def refusals():
    with Server() as s:
        run_id = s.create("demo", "hi")
        stream, path = f"/api/a2ui/runs/{run_id}/stream", f"/api/a2ui/runs/{run_id}/messages"
        for query, where in (("after=x", "?after"), ("v=1.0", "?v"), ("catalog=mine", "?catalog")):
            refused(s.http.get(f"{stream}?{query}"), 400, "VALIDATION_ERROR", where)
        refused(s.http.get("/api/a2ui/runs/nothing/stream"), 404, "NOT_FOUND")
        action = {"name": "uar.action.resolve", "surfaceId": "action-act_none", "sourceComponentId": "c",
                  "timestamp": "2026-01-01T00:00:00Z", "context": {"actionId": "act_none", "decision": "allow"}}
        for change, where in (({"version": "v0.8"}, "/version"), ({"action": {**action, "name": "x"}}, "/action/name"),
                              ({"action": {**action, "context": {"actionId": "a", "decision": "perhaps"}}},
                               "/action/context/decision"),
                              ({"action": {**action, "name": "uar.form.submit", "context": {"formId": "a"}}},
                               "/action/context/values"),
                              ({"action": {**action, "surfaceId": "run-" + run_id}}, "/action/surfaceId"),
                              ({"action": {**action, "surfaceId": "form-act_none"}}, "/action/surfaceId"),
                              ({"action": {**action, "name": "uar.form.submit", "surfaceId": "form-a", "context": {
                                  "formId": "a", "values": {"x": [{"__proto__": 1}]}}}}, "/action/context/values")):
            refused(s.http.post(path, {"version": "v0.9", "action": action, **change}), 400, "VALIDATION_ERROR", where)
        refused(s.http.post(path, {"version": "v0.9", "action": action}), 404, "NOT_FOUND")
        equal(s.http.post(path, {"version": "v0.9", "error": {"code": "X", "surfaceId": "s", "message": "m"}}).status, 200)
        equal(s.http.get(stream, token=False).status, 401)
        other = "https://a2ui.org/specification/v0_9/basic_catalog.json"
        equal(messages(body(s, run_id, f"?catalog={other}"))[0]["createSurface"]["catalogId"], other)


main()
