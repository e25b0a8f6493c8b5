#!/usr/bin/env python3
"""The server as a process: a log that nobody reads, limits of the system, signals at any time."""
import contextlib
import http.client
import json
import os
import resource
import signal
import subprocess
import tempfile
from urllib.parse import urlsplit

from lib import SAFETY, UAR, check, equal, main, run_uar, test, wait_until
from lib.agents import AgentServer, scripted
from lib.check import readable
from lib.client import Client
from lib.server import clean_environment
from lib.services import Service


@contextlib.contextmanager
def server(stderr, *flags, under=()):
    """Its process, a client, and what it says at first; it is killed at the end if it is still there."""
    with tempfile.TemporaryDirectory() as root:
        proc = subprocess.Popen([*under, UAR, "serve", "--json", "--data", os.path.join(root, "data"), *flags],
                                stdout=subprocess.PIPE, stderr=stderr, env=clean_environment(root))
        try:
            check(readable(proc.stdout), "the server said nothing")
            hello = json.loads(proc.stdout.readline())
            yield proc, Client(hello["url"], hello["token"])
        finally:
            proc.kill()
            proc.wait()
            proc.stdout.close()


@test("a_log_that_nobody_reads_stops_no_server", "")
def unread():
    out, into = os.pipe()
    with os.fdopen(out, "rb") as log, server(into, "--log-level", "debug", "--log-json", "true") as (proc, http):
        os.close(into)
        body = {"agent_id": "echo", "inputs": {"message": "hi"}}
        for _ in range(400):  # each leaves several lines; a pipe holds 64 KiB
            equal(http.post("/api/runs", body).status, 202)
        equal(http.get("/health").status, 200)
        os.set_blocking(log.fileno(), False)
        text = b""

        def told():
            nonlocal text
            text += log.read() or b""
            http.post("/api/runs", body)
            return b"log.lost" in text
        wait_until(told, "it says what was lost")
        for line in text.splitlines()[:-1]:  # none is torn
            json.loads(line)
        proc.terminate()
        equal(proc.wait(SAFETY), 0)


@test("a_limit_for_the_size_of_files_is_a_full_disk", "ERR-08")
def file_limit():
    limited = ["sh", "-c", 'ulimit -f 1000; exec "$@"', "sh"]
    with server(subprocess.DEVNULL, under=limited) as (proc, http):
        for i in range(400):
            a = http.post("/api/runs", {"agent_id": "echo", "inputs": {"message": str(i) * 3000}})
            if a.status != 202:
                break
        equal((a.status, a.json["code"]), (507, "STORAGE_FULL"))
        for n in (3000, 20000):  # small writes may pass between
            refusals = 0
            while refusals < 5:
                a = http.post("/api/runs", {"agent_id": "echo", "inputs": {"message": "x" * n}})
                if a.status != 202:
                    refusals += 1
                    equal(http.get("/ready").status, 503)
        equal(http.get("/api/runs").status, 200)  # what is there can be read
        proc.terminate()
        equal(proc.wait(SAFETY), 0)


@test("too_few_descriptors_are_called_so", "")
def few_descriptors():
    with tempfile.TemporaryDirectory() as root:
        for n in (8, *range(9, 30, 3)):
            def limit(n=n):
                resource.setrlimit(resource.RLIMIT_NOFILE, (n, n))
            with subprocess.Popen([UAR, "serve", "--json", "--data", os.path.join(root, "d")], stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, env=clean_environment(root), preexec_fn=limit) as proc:
                told = json.loads(proc.stdout.readline())
                proc.terminate()
                err = proc.communicate(timeout=SAFETY)[1].decode()
                check("out of memory" not in err, n, err)
                check("url" in told or (proc.returncode == 1 and "oo many open files" in told["error"]), n, told, err)
            check(n > 8 or ("error" in told and "ulimit -n" in told["error"]), told)


@contextlib.contextmanager
def no_descriptors(pid):
    """The process gets no further one meanwhile."""
    before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    there = {int(n) for n in os.listdir(f"/proc/{pid}/fd")}
    lowest = min(set(range(len(there) + 1)) - there)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (lowest, before[1]))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, before)


def call(name, **args):
    return f"tool {name} {json.dumps(args)}"


@test("a_tool_of_any_kind_without_descriptors_may_be_tried_again", "")
def tools_without_descriptors():
    env = {"UAR_OUTBOUND_ALLOW": "127.0.0.1"}
    with Service() as web:
        made = scripted("shop", {"http": [{"name": "text", "url": web.url + "/text"}]},
                        allow=["http:*", "internal:fs.*", "process:*"])
        with AgentServer(made, env=env, process_tools="workspace_write") as s:
            s.finish(s.create("shop", call("fs.list")))
            kept = http.client.HTTPConnection(urlsplit(s.url).netloc, timeout=SAFETY)

            def told(method, path, body=None):
                kept.request(method, path, body and json.dumps(body), {"Authorization": "Bearer " + s.token,
                                                                       "Content-Type": "application/json"})
                return kept.getresponse().read()

            def ask(*more):
                return json.loads(told(*more))
            wait_until(lambda: b"\nuar_http_connections 1\n" in told("GET", "/metrics"), "the others have left their descriptors")
            with no_descriptors(s.pid):
                lines = [call("fs.list"), call("text"), call("process__run", argv=["true"])]
                run_id = ask("POST", "/api/runs", {"agent_id": "shop", "inputs": {"message": "\n".join(lines)}})["run_id"]

                def over():
                    r = ask("GET", "/api/runs/" + run_id)
                    for a in r.get("actions") or []:
                        ask("POST", "/api/control/respond_action", {"action_id": a["action_id"], "decision": "allow"})
                    return r["status"] == "succeeded"
                wait_until(over, "the model has heard of all of them")
            kept.close()
            for _ in range(2):
                run_again = s.create("shop", call("text"))
                s.finish(run_again)
                equal([e.data["type"] for e in s.session_events(run_again) if e.data["type"] in ("tool.result", "tool.failed")],
                      ["tool.result"], "it may, and goes well")
            failed = [e.data["payload"] for e in s.session_events(run_id)
                      if e.data["type"] == "tool.failed"]
            equal([(f["tool_name"], f["retryable"]) for f in failed],
                  [("fs.list", True), ("text", True), ("process.run", True)], failed)


def started(root, n):
    """A start of which nothing is there but the data directory."""
    data = os.path.join(root, str(n))
    proc = subprocess.Popen([UAR, "serve", "--json", "--data", data], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, env=clean_environment(root))
    while not os.path.exists(data) and proc.poll() is None:
        pass
    return proc


@test("signals_during_the_start_act_once_it_is_over", "")
def early_signals():
    with tempfile.TemporaryDirectory() as root:
        for n, signum in enumerate([signal.SIGTERM, signal.SIGINT, signal.SIGHUP] * 4):
            with started(root, n) as proc:
                proc.send_signal(signum)
                if signum == signal.SIGHUP:
                    check("url" in json.loads(proc.stdout.readline()))
                    proc.terminate()
                _, err = proc.communicate(timeout=SAFETY)
                equal((proc.returncode, b"server.draining" in err), (0, True), (signum, err))


@test("health_does_not_wait_long_for_a_server_that_stands_still", "")
def frozen():
    with server(subprocess.DEVNULL) as (proc, http):
        proc.send_signal(signal.SIGSTOP)
        out = run_uar("health", "--url", http.url)
        proc.send_signal(signal.SIGCONT)
        check(out.returncode == 1 and "does not answer: nothing came for 5 seconds" in out.stderr, out)


if __name__ == "__main__":
    main()
