#!/usr/bin/env python3
"""A full disk, a polite stop, a new configuration, a Unix socket."""
import contextlib
import json
import os
import shutil
import signal
import sqlite3
import stat
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import quote

from lib import (SAFETY, Provider, Server, Stream, all_of, check, check_session, connect, equal, main,
                 refused, test, text_of, wait_until)
from lib.check import readable
from lib.client import host_of
from lib.disk import SmallDisk
from lib.plugins import Lab
from lib.server import TERMINAL, UAR, clean_environment, flags, run_uar


def create_status(s, key):
    return s.http.post("/api/runs", {"agent_id": "echo", "inputs": {"message": "x" * 1000},
                                     "idempotency_key": key})


@test("a_full_disk_refuses_writes_and_recovers", "RUN-32 ERR-08")
def disk_full():
    with SmallDisk("6m") as disk, Provider() as p:
        with Server(env=p.env("gate"), data=os.path.join(disk.path, "data")) as s:
            before = s.create("echo", "there before")
            whole = [e.key() for e in s.events(before)]
            live = s.create("assistant", "under way")
            with s.stream(live) as stream:
                stream.until(lambda e: e.type == "ChatDelta")
            disk.fill()
            acked = []
            for n in range(20000):
                a = create_status(s, f"k{n}")
                if a.status != 202:
                    break
                acked.append(a.json["run_id"])
            refused(a, 507, "STORAGE_FULL")
            equal(s.http.get("/ready").status, 503)
            equal(s.http.get("/health").status, 200)
            equal(s.record(before)["status"], "succeeded")
            equal([e.key() for e in s.events(before)], whole)
            check(len(s.http.get("/api/runs").json["runs"]) >= 2)
            equal(s.cancel(before)["status"], "succeeded", "what is over needs no space")
            p.release()
            disk.free()
            again = wait_until(lambda: (r := create_status(s, f"k{n}")).status == 202 and r,
                               "space is back, writes are taken")
            equal(s.finish(again.json["run_id"])["status"], "succeeded")
            equal(text_of(s.events(live)), "before after", "the run went on by itself")
            equal(s.http.get("/ready").status, 200)
            for run_id in acked:
                equal(s.finish(run_id)["status"], "succeeded")
            s.restart()
            for run_id in acked + [before, live]:
                equal(s.record(run_id)["status"], "succeeded")
            equal(check_session(s.session_events(live)), {live: True})


@test("a_message_that_does_not_fit_beside_the_log_is_a_full_disk", "ERR-08")
def blob_full():
    """The log may still have room in its file when a large message has none."""
    with SmallDisk("12m") as disk, Server(data=os.path.join(disk.path, "data")) as s:
        equal(s.ready().http.get("/ready").json, {"status": "ready"})
        disk.fill()
        large = {"agent_id": "echo", "inputs": {"message": "x" * 20000}, "idempotency_key": "k"}
        refused(s.http.post("/api/runs", large), 507, "STORAGE_FULL")
        a = s.http.get("/ready")
        equal((a.status, a.json), (503, {"status": "storage full"}))
        disk.free()
        equal(s.http.get("/ready").json, {"status": "ready"}, "without a write")
        a = s.http.post("/api/runs", large)
        equal(a.status, 202, a.body)
        equal(s.finish(a.json["run_id"])["status"], "succeeded")


@test("a_full_disk_does_not_keep_a_run_from_being_stopped", "")
def stop_on_full_disk():
    """The worker ends while the log can take nothing; the facts follow when it can."""
    with SmallDisk("6m") as disk, Provider() as p, tempfile.TemporaryDirectory() as home:
        bell = os.path.join(home, "bell")
        os.mkfifo(bell)
        ear = os.open(bell, os.O_RDONLY | os.O_NONBLOCK)  # who rings does not wait for us
        with Lab(env=p.env("gate"), data=os.path.join(disk.path, "data")) as s:
            run_id = s.begin("bell", {"fifo": bell})
            s.until(run_id, lambda r: r["progress"] == 0.5)
            talk = s.create("assistant", "to be stopped")
            with s.stream(talk) as stream:
                stream.until(lambda e: e.type == "ChatDelta")
            disk.fill()
            for n in range(20000):
                a = create_status(s, f"k{n}")
                if a.status != 202:
                    break
            refused(a, 507, "STORAGE_FULL")
            equal(a.json["detail"], "no space left for new facts")
            for path in (f"/runs/{run_id}/cancel", f"/api/runs/{talk}/cancel"):
                a = s.http.post(path, {"reason": "it fills the disk"})
                refused(a, 507, "STORAGE_FULL")
                check("the run is stopped" in a.json["detail"], a.body)
                equal(s.http.post(path, {}).status, 507, "and again")
            check(readable(ear), "the plugin was not told")
            equal(os.read(ear, 100), b"cancelled\n")
            os.close(ear)
            for x in (run_id, talk):
                check(s.record(x)["status"] == "running", "nothing is shown that is not recorded")
            disk.free()
            for x in (run_id, talk):
                r = s.finish(x)
                equal((r["status"], r["cancel_reason"]), ("canceled", "it fills the disk"), r)
            equal(check_session(s.session_events(talk)), {talk: True})
            equal(s.play("echo", {"say": 1})["status"], "succeeded", "its place is free again")


@test("a_server_starts_on_a_full_disk_and_can_be_read", "ERR-08")
def start_on_full_disk():
    for leave in ("stop", "kill"):
        with SmallDisk("6m") as disk, Server(data=os.path.join(disk.path, "data")) as s:
            before = s.create("echo", "there before")
            whole = [e.key() for e in s.events(before)]
            getattr(s, leave)()
            disk.fill()
            for again in range(2):
                s.start()
                equal(s.http.get("/health").status, 200)
                wait_until(lambda: s.http.get("/ready").json == {"status": "storage full"}, "it says so")
                equal([e.key() for e in s.events(before)], whole)
                equal(s.record(before)["status"], "succeeded")
                p = run_uar("show", before, "--data", s.data)
                check(p.returncode == 0 and "succeeded" in p.stdout, p.stderr)
                if not again:
                    getattr(s, leave)()
            check("server.disk_full" in s.log(), s.log())
            n = 0
            while (a := create_status(s, f"k{n}")).status == 202:
                n += 1
            refused(a, 507, "STORAGE_FULL")
            disk.free()
            equal(s.http.get("/ready").status, 200)
            equal(s.finish(wait_until(lambda: (r := create_status(s, "new")).status == 202 and r).json["run_id"])["status"],
                  "succeeded")


@test("a_start_on_a_full_disk_says_so", "ERR-08")
def full_disk_is_told():
    def hello(data, *argv):
        """What a server says about the disk: on its output, in its log."""
        proc = subprocess.Popen([UAR, "serve", "--data", data, *argv], stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, env=clean_environment(data))
        last, out = ("}\n" if argv else "next start.\n"), ""
        while not out.endswith(last):
            out += proc.stdout.readline()
        proc.terminate()
        err = proc.communicate(timeout=SAFETY)[1]
        equal(proc.returncode, 0, err)
        return out, "server.disk_full" in err
    for live in (False, True):  # a run that goes on writes before anything is announced
        with Provider() as p, SmallDisk("6m") as disk, Server(data=os.path.join(disk.path, "data"), env=p.env("gate")) as s:
            if live:
                s.create("assistant", "x")
                p.wait_for(requests=1)
            s.kill()
            out, logged = hello(s.data)
            check("disk " not in out and not logged, out)
            check("disk_full" not in hello(s.data, "--json")[0])
            disk.fill()
            out, logged = hello(s.data)
            check("\n  disk      full: what is stored can be read; " in out and logged, live, out)
            out, logged = hello(s.data, "--json")
            check(json.loads(out)["disk_full"] is True and logged, live, out)


@test("a_data_directory_that_others_may_write_is_told_at_the_start", "")
def open_directory():
    for mode, told in ((0o700, False), (0o755, False), (0o770, True), (0o777, True), (0o1777, True)):
        with Server() as s:
            s.stop()
            os.chmod(s.data, mode)
            open(s.log_path, "w").close()
            s.start()
            equal("warn server.data_open_to_others" in s.log(), told, oct(mode))
            s.stop()
            out = run_uar("check", "--data", s.data).stdout
            equal((out.count("can be written by other users (chmod 700 closes it)"),
                   out.count("is open to other users (chmod 700 closes it)")),
                  (told, mode == 0o755), out)


def told_on_full_disk(s, disk, home, seconds):
    """Whether a run of so many seconds was ended while the log could take nothing. None: too late to see."""
    bell = os.path.join(home, f"bell-{seconds}")
    os.mkfifo(bell)
    ear = os.open(bell, os.O_RDONLY | os.O_NONBLOCK)  # who rings does not wait for us
    run_id = s.begin("bell", {"fifo": bell}, timeout=seconds)
    r = s.until(run_id, lambda r: r["progress"] == 0.5 or r["status"] in TERMINAL)
    seen = None
    if r["status"] == "running":
        disk.fill()
        while create_status(s, os.urandom(8).hex()).status == 202:
            pass
        check(readable(ear), "the plugin was not told")
        seen = s.record(run_id)["status"] == "running" or None
        disk.free()
    equal(s.finish(run_id)["status"], "timeout")
    os.close(ear)
    return seen


@test("a_full_disk_does_not_extend_the_time_of_a_run", "")
def time_limit_on_full_disk():
    with SmallDisk("6m") as disk, tempfile.TemporaryDirectory() as home:
        with Lab(data=os.path.join(disk.path, "data")) as s:
            check(any(told_on_full_disk(s, disk, home, n) for n in (1, 5, 20, 60)), "too slow to see it")
            equal(s.play("echo", {"say": 1})["status"], "succeeded", "its place is free again")


@test("an_upload_that_does_not_fit_is_refused_and_leaves_nothing", "EXP-21")
def upload_full():
    with SmallDisk("12m") as disk:
        with Lab(data=os.path.join(disk.path, "data")) as s:
            run_id = s.begin("fills", {"pieces": 80})
            r = s.done(run_id)
            equal(r["status"], "succeeded", r)
            small, code = s.items(run_id)["items"]
            equal(code["json"], "STORAGE_FULL")
            equal(s.http.get(small["binary_url"]).body, b"small")
            wait_until(lambda: not os.listdir(os.path.join(s.data, "blobs", "tmp")), "no rest")
            equal(s.http.get("/ready").status, 200)


def fails_to_start(s, code, *words, **settings):
    out = run_uar("serve", "--data", s.data, *flags(settings), home=s.root)
    check(out.returncode != 0 and all(w in out.stderr for w in words + (code,)), words, out)
    equal((out.stdout, out.stderr.count("\n")), ("", 1), "one line says it")


@test("a_start_that_cannot_be_says_why", "ERR-08")
def bad_starts():
    with Server() as s, SmallDisk("480k") as disk:
        with Server(start=False, data=os.path.join(disk.path, "new")) as other:
            disk.fill()
            fails_to_start(other, "[STORAGE_FULL]", disk.path, "No space left")
            disk.free()
            other.start().stop()
            os.unlink(os.path.join(other.data, "reserve"))  # else it could start
            disk.fill()
            fails_to_start(other, "[STORAGE_FULL]", disk.path, "uar.db", "no space left")
            disk.free()
        fails_to_start(s, "[UNAVAILABLE]", s.data, "in use by another process")
        with Server(start=False) as other:
            taken = s.url.partition("//")[2]
            fails_to_start(other, "[", taken, "in use", listen=taken)
            fails_to_start(other, "[", "/nowhere/s", listen="unix:/nowhere/s")
            with open(os.path.join(other.data, "uar.db"), "wb") as f:
                f.write(b"this is no database at all" * 100)
            fails_to_start(other, "[INTERNAL]", other.data, "uar.db")
            os.unlink(os.path.join(other.data, "uar.db"))
            for name in ("uar.db-wal", "uar.db-shm"):
                check(not os.path.exists(os.path.join(other.data, name)), name)
            other.start()
            for name in ("uar.db", "uar.db-wal", "uar.db-shm", "lock", "token"):
                mode = stat.S_IMODE(os.stat(os.path.join(other.data, name)).st_mode)
                equal(mode, 0o600, name)


@test("large_messages_are_taken_after_blobs_were_removed", "")
def blobs_removed():
    with Server() as s:
        blobs = os.path.join(s.data, "blobs")
        lost = s.create("echo", "lost " * 5000)
        s.finish(lost)
        shutil.rmtree(blobs)
        kept = s.create("echo", "kept " * 5000)
        equal(s.finish(kept)["status"], "succeeded")
        equal(text_of(s.events(kept)), "kept " * 5000)
        equal(s.log().count("store.blobs_remade"), 1, s.log())
        equal(s.http.get("/ready").status, 200)
        shutil.rmtree(blobs)
        open(blobs, "w").close()  # where no directory can be made
        for n in range(2):
            refused(s.http.post("/api/runs", {"agent_id": "echo", "inputs": {"message": f"{n}" * 20000}}),
                    503, "UNAVAILABLE")
        equal(s.log().count("store.blobs_missing"), 1, s.log())
        os.unlink(blobs)
        again = s.create("echo", "kept " * 5000)
        equal(s.finish(again)["status"], "succeeded")
        equal(s.log().count("store.blobs_remade"), 2, s.log())
        equal(s.stop(), 0)
        out = run_uar("check", "--data", s.data, home=s.root)
        check(out.returncode == 1 and "blob" in out.stderr, "what is lost is named", out)


@contextlib.contextmanager
def held(s):
    """Another program has begun a transaction and does not end it."""
    with contextlib.closing(sqlite3.connect(os.path.join(s.data, "uar.db"), isolation_level=None)) as c:
        c.execute("BEGIN IMMEDIATE")
        yield


@test("who_holds_the_lock_of_the_database_is_told_of", "")
def lock_held():
    with Server(drain_seconds=1) as s, ThreadPoolExecutor(4) as pool:
        def told(what, n):
            wait_until(lambda: s.log().count(what) == n, f"{what} for the {n}th time")
        with held(s):
            late = pool.submit(create_status, s, "late")
            told("store.held", 1)
            check(not late.done(), "acknowledged, and not stored")
        equal(late.result().status, 202)
        told("store.released", 1)
        with held(s):
            for a in [f.result() for f in [pool.submit(create_status, s, f"k{n}") for n in range(4)]]:
                problem = refused(a, 503, "UNAVAILABLE")
                check("another program holds the write lock" in problem["detail"], problem)
                check(s.data not in a.body.decode(), problem)
            told("store.held", 2)
        again = create_status(s, "k0")
        equal(s.finish(again.json["run_id"])["status"], "succeeded")
        told("store.released", 2)
        with held(s):
            cut = pool.submit(create_status, s, "cut")
            told("store.held", 3)
            s.proc.send_signal(signal.SIGTERM)
            equal(s.wait(), 0, "the lock is still held")
            check(cut.exception() or cut.result().status == 503)
            s.settings["keep_runs"] = 100  # which makes an index
            start = pool.submit(s.start)
            told("store.held", 4)
        start.result()
        told("store.released", 3)
        equal(len(s.http.get("/api/runs").json["runs"]), 2, "what was refused is not there")


@test("a_problem_of_storage_does_not_say_where_it_lies", "")
def no_paths():
    with Server() as s:
        for _ in range(50):
            s.finish(s.create())
        s.stop()
        s.start()
        with open(os.path.join(s.data, "uar.db"), "r+b") as f:
            f.seek(3 * 4096)
            f.write(b"\xa5" * (os.path.getsize(f.name) - 3 * 4096))
        for path in ("/api/runs", "/api/runs/x", "/api/sessions/x/events"):
            problem = refused(s.http.get(path), 500, "INTERNAL")
            check("uar.db: stored data is damaged" in problem["detail"] and "/" not in problem["detail"], problem)
        s.kill()


def bytes_of(path):
    if not os.path.exists(path):
        return None
    with open(path, "rb") as f:
        return f.read()


@test("a_log_that_is_older_than_its_file_stops_the_start", "")
def older_log():
    with Server() as s:
        db, log = (os.path.join(s.data, name) for name in ("uar.db", "uar.db-wal"))
        runs = [s.create("echo", f"run {i}") for i in range(6)]
        for run_id in runs:
            s.finish(run_id)
        with contextlib.closing(sqlite3.connect(db)) as c:
            equal(c.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()[0], 0)
        s.kill()
        folded, whole = bytes_of(db), bytes_of(log)

        def put(file, kept):
            for path, data in ((db, file), (log, kept)):
                if data is None:
                    os.unlink(path)
                    continue
                with open(path, "wb") as f:
                    f.write(data)

        def refuses(file, kept, *words):
            put(file, kept)
            fails_to_start(s, "[INTERNAL]", "uar.db-wal", "Nothing was changed", *words)
            out = run_uar("check", "--data", s.data, home=s.root)
            check(out.returncode == 1 and all(w in out.stderr for w in words), out)
            equal((bytes_of(db), bytes_of(log)), (file, kept), "something was changed")
        refuses(folded, whole[:len(whole) * 2 // 3], "cut short")  # a copy that did not end
        refuses(b"", whole, "uar.db is empty")
        refuses(None, whole, "missing")
        put(folded, whole)
        s.start()
        for run_id in runs:
            equal(s.record(run_id)["status"], "succeeded")


OPENED = ("token", "server.json", "reserve", "lock", "uar.db", "uar.db-wal", "uar.db-shm", "uar.db-journal", "swept")


@test("what_is_no_regular_file_ends_a_start_at_once", "")
def irregular():
    """Who opens a FIFO waits until somebody writes."""
    with Server() as s:
        s.stop()
        for name in OPENED:
            path = os.path.join(s.data, name)
            kept = path + ".kept" if os.path.exists(path) else None
            if kept:
                os.rename(path, kept)
            for make, unmake in ((os.mkfifo, os.unlink), (os.mkdir, os.rmdir)):
                make(path)
                fails_to_start(s, "[VALIDATION_ERROR]", f"{path} is not a regular file")
                out = run_uar("check", "--data", s.data, home=s.root)
                check(out.returncode == 1 and f"{path} is not a regular file\n" in out.stderr, out)
                equal(run_uar("runs", "--data", s.data, home=s.root).returncode, 1)
                unmake(path)
            if kept:
                os.rename(kept, path)
        pipe = os.path.join(s.root, "pipe")
        os.mkfifo(pipe)
        for flag, status in (("--config", 1), ("--ca-file", 2), ("--token-file", 1)):
            out = run_uar("serve", "--data", s.data, flag, pipe, home=s.root)
            check(out.returncode == status and f"cannot read {pipe}: not a file\n" in out.stderr, out)
        log = os.path.join(s.data, "exec.log")
        os.mkfifo(log)
        out = run_uar("exec", "codex", "hi", "--data", s.data, home=s.root)
        check(out.returncode == 1 and log in out.stderr, out)
        os.unlink(log)
        s.start()


@test("a_fifo_among_the_blobs_holds_up_nobody", "")
def irregular_blob():
    with Server() as s:
        run_id = s.create("echo", "x" * 20000)
        s.finish(run_id)
        s.stop()
        [blob] = [os.path.join(d, n) for d, _, names in os.walk(os.path.join(s.data, "blobs")) for n in names]
        os.unlink(blob)
        os.mkfifo(blob)
        out = run_uar("check", "--data", s.data, home=s.root)
        check(out.returncode == 1 and "is damaged" in out.stderr, out)
        s.start()
        s.record(run_id)
        equal(s.finish(s.create("echo", "x" * 20000))["status"], "succeeded", "it is written anew")
        s.stop()
        equal(run_uar("check", "--data", s.data, home=s.root).returncode, 0)


@test("what_killed_starts_left_half_written_is_swept", "")
def leftovers():
    with Server() as s:
        ours = ["token.new-aZ0bY9", "server.json.new-000000"]
        others = ["token.backup", "server.json.000000", "token.new-toolong", "token.new-short", "token.new-a_b-c.",
                  "uar.db.new-000000", "xtoken.new-000000"]
        s.kill()
        for name in ours + others:
            with open(os.path.join(s.data, name), "w") as f:
                f.write("half")
        os.symlink("token", os.path.join(s.data, "token.new-Linked"))
        os.mkdir(os.path.join(s.data, "token.new-Folder"))
        s.start()
        os.rename(os.path.join(s.data, others[0]), os.path.join(s.data, ours[0]))
        fails_to_start(s, "[UNAVAILABLE]", "in use by another process")  # and leaves it alone
        there = os.listdir(s.data)
        equal([n for n in ours if n in there], ours[:1])
        equal([n for n in [*others[1:], "token.new-Linked", "token.new-Folder"] if n not in there], [])


@contextlib.contextmanager
def serving(root, redirections):
    """A server that says nothing by itself, once it can be reached; it is to end properly."""
    data = os.path.join(root, "data")
    proc = subprocess.Popen(["sh", "-c", 'exec "$@" ' + redirections, "sh", UAR, "serve", "--data", data],
                            stdin=subprocess.DEVNULL, env=clean_environment(root))
    try:
        there = os.path.join(data, "server.json")
        wait_until(lambda: os.path.exists(there) or proc.poll() is not None, "it has started")
        out = run_uar("run", "echo", "hello", "--data", data, home=root)
        equal((proc.poll(), out.returncode, out.stdout), (None, 0, "hello\n"), out)
        yield proc
        proc.terminate()
        equal(proc.wait(SAFETY), 0)
    finally:
        proc.kill()
        proc.wait()


@test("a_server_that_cannot_say_where_it_is_says_so_in_its_log", "")
def unsaid():
    for target, why in (("/dev/full", "No space left on device"), ("&-", "Bad file descriptor")):
        with tempfile.TemporaryDirectory() as root:
            path = os.path.join(root, "log")

            def log():
                with open(path) as f:
                    return f.read()
            with serving(root, f">{target} 2>{path}"):
                wait_until(lambda: log().endswith("\n"), "it is told")
            check("error server.not_announced" in log() and why in log(), log())
            check("uar: " not in log(), "it was told already", log())


@test("nothing_takes_the_place_of_a_stream_that_is_closed", "")
def closed_streams():
    """Else a line of the log would go where the number leads: into the database, or to a client."""
    with tempfile.TemporaryDirectory() as root:
        with serving(root, "0<&- 1>&- 2>&-") as proc:
            equal([os.readlink(f"/proc/{proc.pid}/fd/{n}") for n in range(3)], ["/dev/null"] * 3)
        out = run_uar("check", "--data", os.path.join(root, "data"), home=root)
        check(out.returncode == 0 and out.stdout.endswith("ok\n"), out)
    out = subprocess.run(["sh", "-c", 'exec "$1" version >&-', "sh", UAR], stderr=subprocess.PIPE, text=True,
                         timeout=SAFETY, check=False)
    equal((out.returncode, out.stderr), (1, "uar: the output cannot be written: Bad file descriptor\n"))


@test("a_polite_stop_ends_streams_and_keeps_runs", "SSE-11")
def drain():
    with Provider() as p, Server(env=p.env("gate")) as s:
        runs = [s.create("assistant", "hi", conversation_id=f"c{i}") for i in range(3)]
        waiting = s.create("assistant", "later", conversation_id="c0")
        streams = [s.stream(r) for r in runs]
        for stream in streams:
            stream.until(lambda e: e.type == "ChatDelta")
        session = s.session_stream(s.record(runs[0])["session_id"])
        idle = s.stream(waiting)
        s.proc.send_signal(signal.SIGTERM)
        for stream in streams + [session, idle]:
            rest = stream.all()  # fails unless the end was proper
            check("Error" not in [e.type for e in rest], rest)
            equal(stream.retry, 1000, "and said when to come back")
        equal(s.wait(), 0)
        check(not os.path.exists(os.path.join(s.data, "server.json")), "still announced")
        s.start()
        for run_id in runs + [waiting]:
            check(s.record(run_id)["status"] in ("running", "queued"), s.record(run_id))
        p.release()
        for run_id in runs + [waiting]:
            equal(s.finish(run_id)["status"], "succeeded")
            notes = [e for e in s.events(run_id) if e.type == "meta"]
            equal(len(notes), 0 if run_id == waiting else 1, "the cut answer is marked")
            check_session(s.session_events(run_id))


def answer_of(sock):
    """The status and the body of the one answer that comes before the server closes."""
    data = b""
    while chunk := sock.recv(65536):
        data += chunk
    head, _, body = data.partition(b"\r\n\r\n")
    return (int(head.split()[1]), json.loads(body)) if head else (None, None)


@test("a_stop_waits_for_nobody_who_has_not_asked_yet", "")
def half_asked():
    with Provider() as p, Server(env=p.env("gate"), drain_seconds="1h") as s:
        head = (f"POST /runs HTTP/1.1\r\nHost: {host_of(s.url)}\r\n"
                f"Authorization: Bearer {s.token}\r\nContent-Type: application/json\r\n")
        start = json.dumps({"plugin_id": "uar.agent", "entry_id": "assistant", "mode": "sync",
                            "args": {"message": "hi"}})
        whole = f"Content-Length: {len(start)}\r\n\r\n{start}"
        idle, half, body, sync, again = (connect(s.url) for _ in range(5))
        again.sendall(f"GET /health HTTP/1.1\r\nHost: {host_of(s.url)}\r\n\r\n".encode())
        check(again.recv(65536).startswith(b"HTTP/1.1 200"))
        again.sendall(b"GET /hea")
        half.sendall(head.encode())
        body.sendall((head + "Content-Length: 100\r\n\r\n{").encode())
        sync.sendall((head + whole).encode())
        p.wait_for(requests=1)
        wait_until(lambda: s.metric("uar_http_connections") == 6, "all have come")
        s.proc.send_signal(signal.SIGTERM)
        equal([answer_of(x)[0] for x in (idle, half, again)], [None] * 3)
        status, problem = answer_of(body)
        equal((status, problem["code"]), (503, "UNAVAILABLE"))
        status, record = answer_of(sync)
        equal((status, record["status"]), (202, "running"), "told that it goes on")
        for x in (idle, half, body, sync, again):
            x.close()
        equal(s.wait(), 0)
        s.start()
        p.release()
        equal(s.finish(record["run_id"])["status"], "succeeded")


def no_longer_listens(s):
    try:
        connect(s.url).close()
    except (ConnectionRefusedError, FileNotFoundError):
        return True
    return False


@test("a_stop_waits_for_an_answer_that_is_still_being_read", "")
def slow_answer():
    """The client begins to read once the server has stopped listening: the answer arrives whole."""
    with tempfile.TemporaryDirectory(prefix="uar-drain-") as place, \
            Lab(listen=f"unix:{place}/s", drain_seconds="1h", stall_timeout_seconds="1h") as s:
        run_id = s.begin("many", {"n": 100, "pad": 30000})
        equal(s.done(run_id)["status"], "succeeded")
        path = f"/runs/{run_id}/export?limit=100"
        whole = s.http.get(path).body
        check(len(whole) > 3000000, len(whole), "more than the kernel holds for a Unix socket")
        with connect(s.url) as sock:
            sock.sendall(f"GET {path} HTTP/1.1\r\nHost: {host_of(s.url)}\r\n"
                         f"Authorization: Bearer {s.token}\r\n\r\n".encode())
            data = sock.recv(1000)
            s.proc.send_signal(signal.SIGTERM)
            wait_until(lambda: no_longer_listens(s), "it listens no more")
            while chunk := sock.recv(1 << 20):
                data += chunk
        head, _, body = data.partition(b"\r\n\r\n")
        check(head.startswith(b"HTTP/1.1 200"), head)
        check(body == whole, "it was cut", len(body), len(whole))
        equal(s.wait(), 0)


@test("a_stop_that_cancels_waits_for_runs_within_the_drain_time", "RUN-50")
def slow_cancel():
    """The run ends when the test reads its FIFO; until then the server answers as before."""
    with Lab(shutdown="cancel", drain_seconds="1h") as s:
        bell = s.file("bell")
        os.mkfifo(bell)
        run_id = s.begin("bell", {"fifo": bell})
        s.until(run_id, lambda r: r["progress"] == 0.5)
        with s.channel("runs", run_id=run_id) as ch:
            s.proc.send_signal(signal.SIGTERM)
            s.until(run_id, lambda r: r["cancel_requested"])
            for _ in range(100):  # longer than it takes to look at the runs once
                check(s.get(run_id)["status"] not in TERMINAL, "it has not ended")
            with open(bell) as f:
                equal(f.read(), "cancelled\n")
            check("canceled" in [e.data["status"] for e in ch], "the watcher is told")
        equal(s.wait(), 0)


@test("a_second_signal_does_not_wait", "")
def impatient():
    """Whatever is open or under way then is forgotten; the sanitizers look for what is left."""
    with Provider() as p, Server(env=p.env("gate"), drain_seconds="1h",
                                 stall_timeout_seconds="1h") as s:
        first = s.create("echo", "0123456789abcdef" * 65536, conversation_id="c")
        session = s.record(first)["session_id"]
        s.finish(first)
        slow = [Stream(s.url, path, s.token, receive_buffer=4096) for path in (
            f"/api/runs/{first}/stream", f"/api/sessions/{session}/events")]
        for stream in slow:
            stream.next()
        with s.stream(s.create("assistant", "hi")) as stream:
            stream.until(lambda e: e.type == "ChatDelta")
        asking = [connect(s.url) for _ in range(8)]
        for x in asking:
            x.sendall((f"GET /api/runs?limit=500 HTTP/1.1\r\nHost: {host_of(s.url)}\r\n"
                       f"Authorization: Bearer {s.token}\r\n\r\n" * 40).encode())
        s.proc.send_signal(signal.SIGTERM)
        wait_until(lambda: "server.draining" in s.log(), "the first was heard")
        s.proc.send_signal(signal.SIGTERM)
        for x in asking:
            x.close()
        equal(s.wait(), 0)
        for stream in slow:
            stream.close()


@test("a_bad_configuration_changes_nothing", "CFG-04")
def bad_reload():
    with Server(start=False) as s:
        os.mkdir(s.data, 0o700)
        s.start()
        with open(os.path.join(s.data, "config.json"), "w") as f:
            json.dump({"heartbeat_seconds": "never", "heartbeet": 3}, f)
        s.proc.send_signal(signal.SIGHUP)
        wait_until(lambda: s.log().count("config.refused") == 2, "a bad file is refused")
        check("000a" not in s.log() and '\\n' not in s.log(), s.log())
        equal(s.finish(s.create("echo", "still up"))["status"], "succeeded")
        os.unlink(os.path.join(s.data, "config.json"))


@test("a_unix_socket_is_the_owners_alone", "")
def unix_socket():
    with Server(start=False) as s:
        path = os.path.join(s.root, "uar.sock")
        s.settings["listen"] = "unix:" + path
        s.start()
        equal((s.url, s.link), ("unix:" + path, None))
        equal(stat.S_IMODE(os.stat(path).st_mode), 0o600)
        run_id = s.create("demo", "over a socket")
        check("over a socket" in text_of(s.events(run_id)))
        refused(s.http.get("/api/runs", token=False), 401, "UNAUTHORIZED")
        refused(s.http.get("/api/runs", headers={"Host": "evil.example"}), 403, "FORBIDDEN")
        s.restart()
        equal(s.record(run_id)["status"], "succeeded", "a stale socket file is no obstacle")
        equal(s.stop(), 0)
        check(not os.path.exists(path), "the socket file stays behind")


SHORT = "/tmp"  # the address of a socket has 107 bytes
ODD = "it's \"a\" $HOME `x` \\ 50% ä"  # for shells, for URLs


@test("a_path_too_long_for_a_socket_is_told_the_limit", "")
def unix_too_long():
    with tempfile.TemporaryDirectory(dir=SHORT) as root:
        path = os.path.join(root, "s" * 108)[:108]
        for verb in ("serve", "check"):
            out = run_uar(verb, "--data", os.path.join(root, "data"), "--listen", "unix:" + path, home=root)
            equal((out.returncode, out.stderr), (2, "uar: --listen: listen: the path of a Unix socket has at most 107 "
                                                    "bytes, this one has 108\n"))
        out = run_uar("runs", "--url", "unix:" + path, home=root)
        check(out.returncode == 2 and "1 to 107 bytes" in out.stderr, out)


@test("any_path_of_a_socket_is_found_by_commands", "")
def unix_paths():
    with tempfile.TemporaryDirectory(dir=SHORT) as root:
        fill = "é" * ((107 - len(os.path.join(root, "s"))) // 2)
        for name in ("da ta", ODD, "s" + fill, b"not utf-8: \xff\x01\n"):
            path = os.path.join(os.fsencode(root), os.fsencode(name))
            with Server(listen=os.fsdecode(b"unix:" + path)) as s:
                equal(s.url, "unix:" + quote(path))
                with open(os.path.join(s.data, "server.json")) as f:
                    equal(json.load(f)["url"], s.url)
                out = run_uar("health", "--json", "--data", s.ready().data, home=s.root)
                equal(json.loads(out.stdout), {"url": s.url, "alive": True, "ready": True}, out)
                out = run_uar("run", "echo", "found", "--data", s.data, home=s.root)
                check(out.returncode == 0 and "found" in out.stdout, out)
                out = run_uar("runs", "--json", "--url", s.url, "--data", s.data, home=s.root)
                equal(len(json.loads(out.stdout)["runs"]), 1, out)


@test("a_socket_is_found_from_another_directory", "")
def unix_relative():
    for depth, found in ((0, True), (110, False)):  # no socket can have so long a path
        with tempfile.TemporaryDirectory(dir=SHORT) as root:
            here = os.path.join(os.path.realpath(root), "d" * depth)
            os.makedirs(here, exist_ok=True)
            with Server(listen="unix:s", under=["env", "-C", here]) as s:
                equal(s.url, "unix:" + os.path.join(here, "s") if found else "unix:s")
                for where, reached in ((here, True), (s.root, found)):
                    argv = ["env", "-C", where, UAR, "health", "--data", s.data]
                    out = subprocess.run(argv, env=clean_environment(s.root),
                                         stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                    equal(out.returncode, 0 if reached else 1, out)


def announced_commands(argv, env, shell="sh"):
    """What `uar serve` prints to be pasted: {word: what a shell says to it}."""
    proc = subprocess.Popen([UAR, "serve", *argv], env=env, stdout=subprocess.PIPE,
                            stderr=subprocess.DEVNULL)
    lines, said = [], {}
    try:
        while not lines or "Ctrl-C" not in lines[-1]:
            lines.append(proc.stdout.readline().decode())
            check(lines[-1] and lines[-1][:-1].isprintable(), lines)
        for word in ("call", "try"):
            command = next(line for line in lines if line.split()[:1] == [word]).split(None, 1)[1]
            out = subprocess.run([shell, "-c", command], env=env, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, text=True)
            equal(out.returncode, 0, out)
            said[word] = out.stdout
    finally:
        proc.send_signal(signal.SIGTERM)
        status = proc.wait()
        proc.stdout.close()
    equal(status, 0)
    return said


@test("a_socket_is_announced_with_commands_that_work", "")
def unix_command():
    for name in ("plain", "da ta", ODD):
        with tempfile.TemporaryDirectory(dir=SHORT) as root:
            path = f"{os.path.dirname(UAR)}:{os.environ['PATH']}"
            env = clean_environment(root, {"PATH": path})
            data = os.path.join(root, name)
            said = announced_commands(["--data", data, "--listen", f"unix:{data}.sock"], env)
            equal(json.loads(said["call"]), {"runs": [], "next_before": None})
            check("hello" in said["try"], said)
    with tempfile.TemporaryDirectory(dir=SHORT) as root:  # the default directory needs no naming
        env = clean_environment(root, {"PATH": path})
        check("hello" in announced_commands(["--listen", f"unix:{root}/s"], env)["try"])
    with tempfile.TemporaryDirectory(dir=SHORT) as root:  # what steers a terminal is not printed
        env = clean_environment(root, {"PATH": path})
        address = os.fsencode(f"unix:{root}/") + b"\x1b[31m'\\\xa0\xe2\x80\xae\n"
        said = announced_commands(["--listen", address], env, shell="bash")
        equal(json.loads(said["call"]), {"runs": [], "next_before": None})


@test("a_hundred_runs_at_once_all_end", "RUN-09 RUN-13")
def many():
    with Server(scripted_token_ms=1) as s:
        runs = all_of([lambda i=i: [s.create("demo", f"{i}-{j}") for j in range(10)]
                       for i in range(10)])
        for run_id in sum(runs, []):
            equal(s.finish(run_id)["status"], "succeeded")
        equal(s.metric("uar_runs_live"), 0)


main()
