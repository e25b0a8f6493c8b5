#!/usr/bin/env python3
"""What an answer leaves behind: the conversation's memory and artifacts."""
import hashlib
import json
import os

from lib import Provider, Server, check, check_run_stream, equal, main, test, wait_until

PAGE = "<h1>Title</h1>\n" * 400
ANSWER = ("Two things.\n```html A page\n" + PAGE + "```\nand ~~~ in a line\n~~~python\nprint(1)\n~~~\n"
          "```\nnot named\n```\nThat is all.")


def kinds(events):
    return [e.data["type"] for e in events]


@test("an_answer_leaves_memory_and_artifacts_before_the_end", "RUN-04")
def finalize():
    with Provider() as p, Server(env=p.env("repeat")) as s:
        run_id = s.create("assistant", ANSWER, conversation_id="c-1")
        events = s.events(run_id)
        check_run_stream(events, run_id)
        equal(kinds(events)[-3:], ["Artifact", "Artifact", "RunDone"])
        html, code = (e.data["data"]["artifact"] for e in events[-3:-1])
        equal((html["artifact_type"], html["title"], html["language"]), ("html", "A page", "html"))
        equal((code["artifact_type"], code["title"], code["content"]), ("code", "python 2", "print(1)\n"))
        sha256 = hashlib.sha256(PAGE.encode()).hexdigest()
        equal((html["content_ref"], html["truncated"]), ("blob://" + sha256, True))
        check(PAGE.startswith(html["content"]), "the beginning is shown")
        with open(os.path.join(s.data, "blobs", sha256[:2], sha256[2:])) as f:
            equal(f.read(), PAGE)
        log = [e.data for e in s.session_events(run_id)]
        at = [i for i, e in enumerate(log) if e["type"] == "artifact.changed"]
        memory = next(i for i, e in enumerate(log)
                      if e["type"] == "thread.updated" and "memory" in e["payload"]["changed"])
        done = next(i for i, e in enumerate(log) if e["type"] == "task.attempt.completed")
        check(memory < at[0] < at[1] < done, [e["type"] for e in log])
        equal(log[memory]["payload"]["memory"]["bytes"], len(ANSWER.encode()))
        s.kill()
        s.start()
        s.events(s.create("assistant", "and then?", conversation_id="c-1"))
        told = p.stats()["last"]["messages"]
        equal([(m["role"], m["content"]) for m in told[-3:]],
              [("user", ANSWER), ("assistant", ANSWER), ("user", "and then?")])


@test("what_events_refer_to_can_be_read", "EVT-011 PERF-10")
def references():
    with Provider() as p, Server(env=p.env("repeat")) as s:
        run_id, other = s.create("assistant", ANSWER), s.create("assistant", "nothing long")
        html = next(e for e in s.events(run_id) if e.type == "Artifact").data["data"]["artifact"]
        s.finish(other)
        sha256 = html["content_ref"].removeprefix("blob://")
        path = f"/api/runs/{run_id}/blobs/{sha256}"
        answer = s.http.get(path)
        equal((answer.status, answer.body.decode()), (200, PAGE))
        equal((answer.headers["content-type"], answer.headers["etag"]), ("text/html; charset=utf-8", f'"{sha256}"'))
        check("immutable" in answer.headers["cache-control"], answer.headers)
        check(answer.headers["content-disposition"].startswith("attachment"), "a browser would run it")
        equal(s.http.get(path, headers={"If-None-Match": f'"{sha256}"'}).status, 304)
        part = s.http.get(path, headers={"Range": "bytes=4-9"})
        equal((part.status, part.body.decode()), (206, PAGE[4:10]))
        equal(s.http.get(path, token=False).status, 401)
        again = s.create("assistant", ANSWER)  # refers to the same bytes
        s.finish(again)
        for run in (again, run_id, again):
            equal(s.http.get(f"/api/runs/{run}/blobs/{sha256}").body.decode(), PAGE)
        for wrong in (f"/api/runs/{other}/blobs/{sha256}", f"/api/runs/{run_id}/blobs/{sha256[:-1]}0",
                      f"/api/runs/{run_id}/blobs/{sha256[:-1]}", f"/api/runs/{run_id}/blobs/..%2f..%2ftoken",
                      f"/api/runs/none/blobs/{sha256}"):
            equal(s.http.get(wrong).status, 404, wrong)
        s.restart()
        equal(s.http.get(path).body.decode(), PAGE)
        os.unlink(os.path.join(s.data, "blobs", sha256[:2], sha256[2:]))
        equal(s.http.get(path).status, 404)


@test("what_a_tool_said_can_be_read_whole", "")
def tool_output():
    with Server() as s:
        os.makedirs(os.path.join(s.data, "files"))
        with open(os.path.join(s.data, "files", "a.txt"), "w") as f:
            f.write("y" * 9000)
        run_id = s.create("tools", 'tool fs.read {"path":"a.txt"}')
        end = next(e for e in s.events(run_id) if e.type == "ToolEnd").data["data"]
        answer = s.http.get(f"/api/runs/{run_id}/blobs/" + end["output_ref"].removeprefix("blob://"))
        equal((answer.status, answer.headers["content-type"]), (200, "application/json"))
        equal(answer.json["text"], "y" * 9000)


def put(**args):
    return "tool artifact.put " + json.dumps({"artifact_type": "html", "title": "A page", **args})


@test("tools_make_artifacts_and_versions_of_them", "NEV-14 EVT-059 AGUI-07 NEV-10")
def made_by_tools():
    with Provider() as p, Server(env=p.env("tools")) as s:
        run_id = s.create("tools", put(content=PAGE, metadata={"k": [1]}))
        events = s.events(run_id)
        check_run_stream(events, run_id)
        [made] = [e.data["data"]["artifact"] for e in events if e.data["type"] == "Artifact"]
        sha256 = hashlib.sha256(PAGE.encode()).hexdigest()
        equal((made["artifact_type"], made["title"], made["content_ref"]), ("html", "A page", "blob://" + sha256))
        check(PAGE.startswith(made["content"]), "the beginning is shown")
        equal(s.http.get(f"/api/runs/{run_id}/blobs/{sha256}").body.decode(), PAGE)
        equal(made["metadata"]["k"], [1])
        log = [e.data for e in s.session_events(run_id)]
        types = [e["type"] for e in log]
        at = types.index("artifact.changed")
        equal(types[at + 1], "tool.result", "with the end of its call")
        equal((log[at]["artifact_id"], log[at]["tool_call_id"]), (made["artifact_id"], log[at + 1]["tool_call_id"]))
        equal(log[at + 1]["payload"]["preview"], {"artifact_id": made["artifact_id"], "version": 1, "bytes": len(PAGE)})
        equal((log[at]["payload"]["op"], log[at]["payload"]["mime"]), ("created", "text/html"))
        # In AG-UI it is an activity; the whole is behind its URL.
        frames = s.http.get(f"/api/ag-ui/runs/{run_id}/stream").body.decode().split("\n\n")
        [activity] = [json.loads(f.split("data: ")[1]) for f in frames if "uar.artifact" in f and "ACTIVITY" in f]
        equal(activity["content"]["artifact_id"], made["artifact_id"])
        equal(s.http.get(activity["content"]["url"]).body.decode(), PAGE)
        for path, part in ((f"/api/a2ui/runs/{run_id}/stream", "A page"), (f"/api/ag-ui/runs/{run_id}/stream?dialect=chunks",
                                                                          "event: artifact")):
            check(part in s.http.get(path).body.decode(), path)


@test("an_artifact_has_versions", "NEV-14 EVT-059")
def versions():
    with Provider() as p, Server(env=p.env("revise")) as s:
        run_id = s.create("assistant", "write a program")
        made = [e.data["data"]["artifact"] for e in s.events(run_id) if e.data["type"] == "Artifact"]
        equal([(a["content"], a.get("version", 1)) for a in made], [("print(0)", 1), ("print(1)", 2), ("print(2)", 3)])
        equal(len({a["artifact_id"] for a in made}), 1)
        ops = [e.data["payload"]["op"] for e in s.session_events(run_id) if e.data["type"] == "artifact.changed"]
        equal(ops, ["created", "version_created", "version_created"])
        [shown] = s.http.get(f"/api/sessions/{s.record(run_id)['session_id']}?include=artifacts").json["artifacts"]["artifacts"]
        equal((shown["artifact_id"], shown["version"]), (made[0]["artifact_id"], 3))
        # A client of AG-UI has one message for it, with the last version.
        stream = s.http.get(f"/api/ag-ui/runs/{run_id}/stream").body.decode()
        got = [json.loads(f.split("data: ")[1]) for f in stream.split("\n\n") if '"uar.artifact"' in f]
        equal(len({e["messageId"] for e in got}), 1)
        equal([e["type"] for e in got], ["ACTIVITY_SNAPSHOT", "ACTIVITY_DELTA", "ACTIVITY_DELTA"])
        check("print(2)" in json.dumps(got[-1]["patch"]), got[-1])


@test("a_form_an_artifact_and_a_navigation_are_events_of_one_stream", "NEV-14")
def one_stream():
    form = {"title": "Who?", "schema": {"type": "object", "properties": {"name": {"type": "string"}}}}
    with Server() as s:
        run_id = s.create("tools", put(content="<p>x</p>") + "\nthen\ntool ui.navigate " + json.dumps({"target": "/x"}) +
                          "\nthen\ntool ui.form.request " + json.dumps(form))
        wait_until(lambda: s.record(run_id)["engine_status"] == "waiting_input", "the form")
        s.kill()
        s.start()
        [action] = s.http.get(f"/api/actions?run_id={run_id}").json["actions"]
        equal(s.http.post("/api/control/respond_action", {"action_id": action["action_id"], "decision": "submit",
                                                          "payload": {"name": "Ann"}}).status, 200)
        equal(s.finish(run_id)["status"], "succeeded")
        seen = [k for k in kinds(s.events(run_id)) if k in ("Artifact", "ui.navigate", "ui.form.request")]
        equal(seen, ["Artifact", "ui.navigate", "ui.form.request"])
        equal(len([e for e in s.session_events(run_id) if e.data["type"] == "artifact.changed"]), 1)


@test("artifacts_that_do_not_fit_are_refused_and_the_model_is_told", "ART-20")
def refused_artifacts():
    with Server() as s:
        for args, why in (({"content": "x", "artifact_id": "other"}, "leave it out"),
                          ({"content": "x", "metadata": {"k": "x" * 3000}}, "metadata has at most"),
                          ({}, "content"), ({"content": "x", "artifact_type": "A B"}, "artifact_type")):
            run_id = s.create("tools", put(**args))
            equal(s.finish(run_id)["status"], "succeeded")
            [failed] = [e.data for e in s.session_events(run_id) if e.data["type"] == "tool.failed"]
            check(why in json.dumps(failed["payload"]), failed["payload"])
            check("Artifact" not in kinds(s.events(run_id)), "none was made")


main()
