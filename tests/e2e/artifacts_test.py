#!/usr/bin/env python3
"""What an answer leaves behind: the conversation's memory and artifacts."""
import hashlib
import os

from lib import Provider, Server, check, check_run_stream, equal, main, test

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


main()
