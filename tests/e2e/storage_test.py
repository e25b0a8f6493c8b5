#!/usr/bin/env python3
"""A full disk, a polite stop, a new configuration, a Unix socket."""
import json
import os
import signal
import stat
import subprocess
import tempfile

from lib import (Provider, Server, Skip, all_of, check, check_session, equal, main, refused, test,
                 text_of, wait_until)


class SmallDisk:
    """A file system of a few megabytes, if this machine lets us have one."""

    def __init__(self, size):
        self.path = tempfile.mkdtemp(prefix="uar-e2e-disk-")
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "uar-e2e", self.path],
                              stderr=subprocess.PIPE, text=True)
        if done.returncode:
            os.rmdir(self.path)
            raise Skip("no tmpfs may be mounted here: " + done.stderr.strip().replace("\n", " "))

    def fill(self):
        with open(os.path.join(self.path, "filler"), "wb", 0) as f:
            for block in (65536, 4096, 1):
                try:
                    while f.write(b"x" * block):
                        pass
                except OSError:
                    pass

    def free(self):
        os.unlink(os.path.join(self.path, "filler"))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        subprocess.run(["umount", "-l", self.path], check=True)
        os.rmdir(self.path)


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
            refused(s.http.post(f"/api/runs/{live}/cancel", {}), 507, "STORAGE_FULL")
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


@test("a_second_signal_does_not_wait", "")
def impatient():
    with Provider() as p, Server(env=p.env("gate"), drain_seconds="1h") as s:
        with s.stream(s.create("assistant", "hi")) as stream:
            stream.until(lambda e: e.type == "ChatDelta")
        s.proc.send_signal(signal.SIGTERM)
        s.proc.send_signal(signal.SIGTERM)
        equal(s.wait(), 0)


@test("sighup_changes_what_may_change", "CFG-04")
def reload():
    with Provider() as p, Server(env=p.env("gate"), start=False) as s:
        os.mkdir(s.data, 0o700)

        def configure(**settings):
            with open(os.path.join(s.data, "config.json"), "w") as f:
                json.dump(settings, f)
        configure(heartbeat_seconds="10m", log_level="info", run_timeout_seconds="5m")
        s.start()
        run_id = s.create("assistant", "hi")
        check("run.created" not in s.log(), "debug lines at level info")
        with s.stream(run_id) as stream:
            stream.until(lambda e: e.type == "ChatDelta")
            configure(heartbeat_seconds="100ms", log_level="debug", run_timeout_seconds="3s",
                      listen="127.0.0.1:1")
            s.proc.send_signal(signal.SIGHUP)
            wait_until(lambda: s.log().count("config.changed") >= 4, "the log names the changes")
            late = s.create("assistant", "with the new limits")
            equal(s.events(late)[-1].data["data"]["code"], "TIMEOUT")
            wait_until(lambda: "run.created" in s.log(), "debug lines at level debug")
            p.release()
            stream.all()
            check(len(stream.comments) >= 3, "heartbeats at the new pace", stream.comments)
        configure(heartbeat_seconds="never")
        s.proc.send_signal(signal.SIGHUP)
        wait_until(lambda: "config.refused" in s.log(), "a bad file is refused")
        equal(s.finish(s.create("echo", "still up"))["status"], "succeeded")
        os.unlink(os.path.join(s.data, "config.json"))


@test("a_unix_socket_is_the_owners_alone", "")
def unix_socket():
    with Server(start=False) as s:
        path = os.path.join(s.root, "uar.sock")
        s.settings["listen"] = "unix:" + path
        s.start()
        equal(s.url, "unix:" + path)
        equal(stat.S_IMODE(os.stat(path).st_mode), 0o600)
        run_id = s.create("demo", "over a socket")
        check("over a socket" in text_of(s.events(run_id)))
        refused(s.http.get("/api/runs", token=False), 401, "UNAUTHORIZED")
        refused(s.http.get("/api/runs", headers={"Host": "evil.example"}), 403, "FORBIDDEN")
        s.restart()
        equal(s.record(run_id)["status"], "succeeded", "a stale socket file is no obstacle")
        equal(s.stop(), 0)
        check(not os.path.exists(path), "the socket file stays behind")


@test("a_hundred_runs_at_once_all_end", "RUN-09 RUN-13")
def many():
    with Server(scripted_token_ms=1) as s:
        runs = all_of([lambda i=i: [s.create("demo", f"{i}-{j}") for j in range(10)]
                       for i in range(10)])
        for run_id in sum(runs, []):
            equal(s.finish(run_id)["status"], "succeeded")
        equal(s.metric("uar_runs_live"), 0)


main()
