#!/usr/bin/env python3
"""An agent waits for changes of a resource of an MCP server, of both eras, also over a restart of the server."""
import json
import os
import sys

from lib import check, equal, main, test, wait_until
from lib.mcp_host import Host, log_file, of
from lib.mcp_mock import asked

NOTES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib", "mcp_resource.py")


def write(path, text):
    with open(path + ".new", "w", encoding="utf-8") as f:
        f.write(text)
    os.replace(path + ".new", path)


class Notes(Host):
    def __init__(self, *more):
        self.asked_file, self.file = log_file("log"), log_file("notes.txt")
        write(self.file, "first")
        self.era = {"era": "2026-07-28"} if "modern" in more else {}
        super().__init__({"notes": {"command": sys.executable, "args": [NOTES, self.asked_file, self.file, *more], **self.era}})

    def watch(self, **more):
        run_id = self.run("tool mcp__notes_uar_watch_resource " + json.dumps({"uri": "notes://today", **more}))
        self.progress(run_id, 1)
        return run_id

    def facts(self, run_id):
        page = self.http.get(f"/api/runs/{run_id}/events?limit=500").json["events"]
        return [e["payload"] for e in page if e["type"] == "tool.progress"]

    def progress(self, run_id, count):
        return wait_until(lambda: len(self.facts(run_id)) >= count and self.facts(run_id), f"{count} facts of progress")

    def end(self, run_id):
        wait_until(lambda: self.record(run_id)["status"] in ("succeeded", "failed", "canceled"), "the run ends")
        return [e.data for e in self.session_events(run_id)]


def in_both_eras(body):
    for more in ((), ("modern",)):
        with Notes(*more) as s:
            check("mcp:notes/uar.watch_resource" in s.tools(), sorted(s.tools()))
            body(s, "modern" in more)


@test("a_change_of_a_resource_is_progress_and_then_the_result", "")
def changes():
    def body(s, modern):
        run_id = s.watch(changes=2)
        write(s.file, "second")
        s.progress(run_id, 2)
        write(s.file, "third")
        events = s.end(run_id)
        shown = [e["partial"]["text"] for e in of(events, "tool.progress")]
        equal(shown, ["first", "second", "third"])
        result = of(events, "tool.result")[0]["preview"]
        equal((result["changes"], result["timed_out"], result["resource"]["contents"][0]["text"]), (2, False, "third"))
        if modern:
            wait_until(lambda: asked(s.asked_file, "notifications/cancelled"), "the subscription is given up")
        else:
            wait_until(lambda: asked(s.asked_file, "resources/unsubscribe"), "the subscription is given up")
            equal(len(asked(s.asked_file, "resources/subscribe")), 1)
    in_both_eras(body)


@test("a_wait_ends_in_time_and_with_its_run", "")
def ends():
    def body(s, modern):
        result = of(s.end(s.watch(seconds=1)), "tool.result")[0]["preview"]
        equal((result["changes"], result["timed_out"], result["resource"]["contents"][0]["text"]), (0, True, "first"))
        run_id = s.watch()
        s.cancel(run_id)
        events = s.end(run_id)
        equal(len(of(events, "tool.failed")), 1, events)
        method = "notifications/cancelled" if modern else "resources/unsubscribe"
        wait_until(lambda: len(asked(s.asked_file, method)) >= 2, "the server is told")
    in_both_eras(body)


@test("a_wait_outlives_the_server_of_its_resource", "")
def restarts():
    def body(s, modern):
        run_id = s.watch()
        before = len(asked(s.asked_file, "tools/list"))
        write(s.file, "die")
        wait_until(lambda: "mcp:notes/uar.watch_resource" not in s.tools(), "it is gone")
        write(s.file, "after")
        events = s.end(run_id)
        check(len(asked(s.asked_file, "tools/list")) > before, modern)
        result = of(events, "tool.result")[0]["preview"]
        equal((result["changes"], result["resource"]["contents"][0]["text"]), (1, "after"))
    in_both_eras(body)


@test("what_a_server_does_not_tell_of_is_a_failure", "")
def refused():
    with Notes() as s:
        run_id = s.run('tool mcp__notes_uar_watch_resource {"uri":"notes://other"}')
        failed = of(s.end(run_id), "tool.failed")
        equal((failed[0]["failure_category"], failed[0]["message"]), ("dependency", "there is no such thing"))


if __name__ == "__main__":
    main()
