#!/usr/bin/env python3
"""A data directory that was restored from an older copy, or copied: clients are told."""
import itertools
import os
import shutil
import subprocess

from lib import SAFETY, UAR, Server, Stream, check, equal, main, refused, run_uar, test, text_of, wait_until
from lib.plugins import Lab
from lib.server import clean_environment

FILES = ("uar.db", "uar.db-wal", "uar.db-shm")


def files(s, names=FILES):
    """As a backup of a stopped server has them."""
    out = {}
    for name in names:
        path = os.path.join(s.data, name)
        if os.path.exists(path):
            with open(path, "rb") as f:
                out[name] = f.read()
    return out


def restore(s, kept, in_place=True):
    for name in FILES:
        path = os.path.join(s.data, name)
        if os.path.exists(path) and not (in_place and name in kept):
            os.unlink(path)
        if name in kept:
            with open(path, "wb") as f:
                f.write(kept[name])


def incarnation(s):
    return s.http.get("/version").json["incarnation"]


def forked():
    """A server whose history forked: one run that both histories have, one that only the first has."""
    s = Server()
    both = s.create("echo", "both")
    s.finish(both)
    equal(s.stop(), 0)
    backup = files(s)
    s.start()
    lost = s.create("echo", "lost")
    s.finish(lost)
    return s, both, lost, backup


@test("a_restored_older_copy_is_a_new_incarnation", "")
def older_copy():
    for in_place in (True, False):
        s, both, lost, backup = forked()
        with s:
            equal(incarnation(s), 1)
            old = s.events(both)
            check(all(isinstance(e.id, int) for e in old), "bare numbers")
            equal(s.stop(), 0)
            restore(s, backup, in_place)
            p = run_uar("check", "--data", s.data)
            check(p.returncode == 1 and "was acknowledged and is not in the log" in p.stderr, p)
            s.start()
            now = incarnation(s)
            check(now > 1, now)
            log = s.log()
            check("store.tail_missing" in log or not in_place, log)
            check("store.copied" in log or in_place, log)
            equal(s.http.get("/api/runs/" + lost).status, 404)
            new = s.events(both)
            equal([e.id for e in new], [f"{now}-{e.id}" for e in old], "ids carry the incarnation")
            equal([e.text for e in new], [e.text for e in old])
            s.restart()
            equal(incarnation(s), now, "once is enough")
            equal(s.stop(), 0)
            equal(run_uar("check", "--data", s.data).returncode, 0)
            s.start()


@test("a_whole_directory_that_is_copied_back_is_a_new_incarnation", "")
def copied_back():
    """As an operator does it: cp -a writes into the files that are there, uar.mark among them."""
    with Server() as s:
        both = s.create("echo", "both")
        s.finish(both)
        equal(s.stop(), 0)
        backup = os.path.join(s.root, "backup")
        subprocess.run(["cp", "-a", s.data, backup], check=True)
        s.start()
        lost = s.create("echo", "lost")
        s.finish(lost)
        equal(s.stop(), 0)
        subprocess.run(["cp", "-a", os.path.join(backup, "."), s.data], check=True)
        equal(run_uar("check", "--data", s.data).returncode, 0)
        s.start()
        check("store.put_back" in s.log(), s.log())
        now = incarnation(s)
        check(now > 1, now)
        equal(s.http.get("/api/runs/" + lost).status, 404)
        check(s.events(both)[0].id.startswith(f"{now}-"), "ids carry the incarnation")
        s.restart()
        equal(incarnation(s), now, "once is enough")


@test("a_cursor_of_another_incarnation_starts_again", "SSE-10")
def other_cursor():
    s, both, _, backup = forked()
    with s:
        old = s.events(both)
        session = s.record(both)["session_id"]
        equal(s.stop(), 0)
        restore(s, backup)
        s.start()
        now = incarnation(s)
        new = s.events(both)
        for cursor in (str(old[1].id), str(old[-1].id + 40), f"{now + 5}-{old[1].id}"):
            for how in ({"header": cursor}, {"after": cursor}, {"last_event_id": cursor}):
                with s.stream(both, **how) as stream:
                    first, *rest = stream.all()
                equal((first.name, first.data["code"], first.data["incarnation"]), ("resync", "RESYNC", now))
                equal((first.data["requested"], first.data["used"]), (cursor, f"{now}-0"))
                equal(first.id or None, None, "a browser forgets its cursor")
                equal([e.key() for e in rest], [e.key() for e in new], (cursor, how))
        with s.stream(both, header=new[1].id) as stream:
            equal([e.key() for e in stream.all()], [e.key() for e in new[2:]], "one of this incarnation")
        equal([e.key() for e in s.events(both, after=0)], [e.key() for e in new], "the beginning is the same in all")
        with s.session_stream(session, after=3) as stream:
            first = next(iter(stream))
            equal(first.name, "resync")
            equal(next(iter(stream)).id, f"{now}-1")
        for bad in ("x", "1-3", f"{now}-", f"{now}-1-1"):
            refused(s.http.get(f"/api/runs/{both}/stream?after={bad}"), 400, "VALIDATION_ERROR", "?after")


DIALECTS = ("ag-ui/runs/{}/stream", "ag-ui/runs/{}/stream?protocol_version=0", "ag-ui/runs/{}/stream?dialect=chunks",
            "a2ui/runs/{}/stream")


def shown(s, path, cursor=None, how="Last-Event-ID"):
    headers = {"Last-Event-ID": cursor} if cursor and how == "Last-Event-ID" else {}
    query = f"{'&' if '?' in path else '?'}{how}={cursor}" if cursor and not headers else ""
    with Stream(s.url, "/api/" + path + query, s.token, headers) as stream:
        return stream.all()


@test("frames_of_dialects_start_again_as_well", "")
def dialects():
    s, both, _, backup = forked()
    with s:
        paths = [d.format(both) for d in DIALECTS]
        old = [shown(s, path) for path in paths]
        for events in old:
            check(all("-" not in str(e.id) for e in events), "the first incarnation has bare numbers", events)
        equal(s.stop(), 0)
        restore(s, backup)
        s.start()
        now = incarnation(s)
        for path, before in zip(paths, old):
            new = shown(s, path)
            equal([str(e.id) for e in new], [f"{now}-{e.id}" for e in before if e.id], path)
            for cursor in (str(before[1].id), "9999.1", f"{now + 5}-{before[1].id}"):
                for how in ("Last-Event-ID", "after", "last_event_id"):
                    first, *rest = shown(s, path, cursor, how)
                    equal((first.name, first.data["code"], first.id or None), ("resync", "RESYNC", None), path)
                    equal((first.data["requested"], first.data["used"]), (cursor, f"{now}-0"))
                    equal([e.key() for e in rest], [e.key() for e in new], (path, cursor, how))
            rest = shown(s, path, new[-2].id)
            equal(rest[-1].key(), new[-1].key(), "one of this incarnation")
            check("resync" not in [e.name for e in rest], path, rest)
            refused(s.http.get(f"/api/{path}", headers={"Last-Event-ID": "1-3.1"}), 400, "VALIDATION_ERROR", "Last-Event-ID")
        binary = {"Accept": "application/vnd.ag-ui.event+proto", "Last-Event-ID": "2.1"}
        refused(s.http.get(f"/api/{paths[0]}", headers=binary), 410, "RESYNC", "Last-Event-ID")


@test("a_task_of_a2a_that_is_subscribed_to_anew_says_so", "")
def a2a_task():
    with Server(scripted_token_ms=60000) as s:
        task = s.create("demo", "hello")
        wait_until(lambda: s.record(task)["status"] == "running", "it is at work")
        s.kill()
        backup = files(s)
        s.start()
        s.kill()
        restore(s, backup, in_place=False)
        s.start()
        now = incarnation(s)
        check(now > 1, now)
        path = f"/a2a/demo/tasks/{task}:subscribe"
        a = s.http.get(path, headers={"Last-Event-ID": "1.1", "A2A-Version": "1.0"})
        equal(a.status, 400, "as the protocol says what is wrong")
        check("of another history" in a.json["error"]["message"], a.body)
        with s.stream(task) as stream:
            seen = stream.next().id
        check(seen.startswith(f"{now}-"), seen)
        with Stream(s.url, path, s.token, {"Last-Event-ID": seen, "A2A-Version": "1.0"}) as stream:
            equal(stream.next().data["task"]["id"], task)
        s.cancel(task)


@test("windows_of_sessions_and_streams_of_mcp_are_refused", "")
def windows():
    with Server() as s:
        both = s.create("echo", "both")
        s.finish(both)
        window = f"/api/sessions/{s.record(both)['session_id']}"
        old = s.http.get(window).json["cursor"]
        events = s.http.post("/api/mcp/sessions", {}).json["events_url"]
        equal(s.stop(), 0)
        backup = files(s)
        s.start()
        s.finish(s.create("echo", "lost"))
        equal(s.stop(), 0)
        restore(s, backup)
        s.start()
        now = incarnation(s)
        equal(s.http.get(window).json["cursor"], f"{now}-{old}")
        equal(s.http.get(f"{window}?cursor={now}-{old}").status, 200)
        for cursor in (old, f"{now + 5}-3"):
            refused(s.http.get(f"{window}?cursor={cursor}"), 410, "RESYNC", "?cursor")
            refused(s.http.get(f"{events}?after={cursor}"), 410, "RESYNC", "?after")


@test("inboxes_and_items_start_again_as_well", "")
def inboxes_and_items():
    with Lab() as s:
        message = {"message_id": "m-1", "from_agent": "alice", "to_agent": "bob", "conversation_id": "c-1",
                   "payload": {"type": "text", "text": "hello"}, "capabilities": {"tools": [], "models": []}}
        for n in range(2):
            equal(s.http.post("/api/a2a/inbox", {**message, "message_id": f"m-{n}"}).status, 202)
        run_id = s.begin("many", {"n": 4})
        s.done(run_id)
        equal(s.stop(), 0)
        backup = files(s)
        s.start()
        s.finish(s.create("echo", "lost"))
        equal(s.stop(), 0)
        restore(s, backup)
        s.start()
        now = incarnation(s)
        with Stream(s.url, "/api/a2a/stream/bob?after=3", s.token) as stream:
            events = iter(stream)
            first, second = next(events), next(events)
        equal((first.name, second.name), ("resync", "message"))
        check(second.id.startswith(f"{now}-"), second.id)
        page = s.http.get(f"/runs/{run_id}/export?limit=2").json
        check(page["next_after"].startswith(f"{now}-"), page["next_after"])
        rest = s.http.get(f"/runs/{run_id}/export?limit=9&after={page['next_after']}").json
        equal((len(page["items"]), rest["next_after"]), (2, None))
        number = page["next_after"].partition("-")[2]
        refused(s.http.get(f"/runs/{run_id}/export?after={number}"), 410, "RESYNC", "?after")
        with Stream(s.url, f"/channels/export?run_id={run_id}&after={number}", s.token) as stream:
            equal(stream.all()[0].name, "resync")
        with Stream(s.url, f"/channels/export?run_id={run_id}&after={page['next_after']}", s.token) as stream:
            equal(len(stream.all()), len(rest["items"]))


@test("a_copied_directory_is_a_new_incarnation_and_the_original_is_not", "")
def copied():
    with Server() as s, Server(start=False) as other:
        run_id = s.create("echo", "x")
        s.finish(run_id)
        equal(s.stop(), 0)
        shutil.copytree(s.data, other.data, dirs_exist_ok=True)
        equal(run_uar("check", "--data", other.data).returncode, 0, "nothing is wrong with a copy")
        other.start()
        s.start()
        check(incarnation(other) > 1)
        check("store.copied" in other.log())
        equal(incarnation(s), 1)
        equal(text_of(other.events(run_id)), "x")


@test("a_log_that_lost_its_end_after_a_kill_is_told", "")
def lost_tail():
    """In a data directory that has had a stop, and in a young one whose uar.db is empty still."""
    for young, cut in itertools.product((False, True), (0, 32, None)):
        with Server() as s:
            if not young:
                s.finish(s.create("echo", "first"))
                equal(s.stop(), 0)
                s.start()
            run_id = s.create("echo", "second")
            s.finish(run_id)
            mark = os.path.join(s.data, "uar.mark")
            before = os.stat(mark).st_mtime_ns
            looks = 0

            def marked():
                """A few commits over a second: with many the log would be folded into the file."""
                nonlocal looks
                if looks % (100 if young else 20) == 0:
                    s.create("echo", "again")
                looks += 1
                return os.stat(mark).st_mtime_ns > before
            wait_until(marked, "the mark follows within a second or so")
            s.kill()
            wal = os.path.join(s.data, "uar.db-wal")
            if cut is None:
                os.unlink(wal)
            else:
                os.truncate(wal, cut)
            p = run_uar("check", "--data", s.data)
            told = "was acknowledged, and there is no log" if young else "the end of uar.db-wal is missing"
            check(p.returncode == 1 and told in p.stderr, p)
            s.start()
            check("store.tail_missing" in s.log(), s.log())
            check(incarnation(s) > 1)
            equal(s.http.get("/api/runs/" + run_id).status, 404)


@test("logs_follow_into_a_restored_copy", "")
def follower():
    """uar logs -f is told, shows the run again and goes on to its end."""
    with Server(scripted_token_ms=100) as s:
        run_id = s.create("demo", "hello")
        with s.stream(run_id) as stream:
            stream.until(lambda e: e.type == "ChatDelta")
        s.kill()
        backup = files(s)
        s.start()
        with subprocess.Popen([UAR, "logs", "-f", run_id, "--json", "--data", s.data], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, env=clean_environment(s.root)) as logs:
            for _ in range(8):
                check(logs.stdout.readline(), "it follows")
            s.kill()
            restore(s, backup, in_place=False)
            s.settings["scripted_token_ms"] = 20
            s.start()
            out, err = logs.communicate(timeout=SAFETY)
        equal(logs.returncode, 0, err)
        check("restored from another copy" in err, err)
        check('"RunDone"' in out.splitlines()[-1], out[-500:])


main()
