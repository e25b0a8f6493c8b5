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


main()
