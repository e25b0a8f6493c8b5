#!/usr/bin/env python3
"""uar chat, and what makes a terminal comfortable."""
import json
import os
import signal
import subprocess
import tempfile

from lib import Provider, Server, UAR, check, equal, main, run_uar, test, wait_until
from lib.server import clean_environment
from lib.terminal import Terminal


@test("a_chat_is_one_conversation", "")
def chat():
    with Server() as s:
        out = run_uar("chat", "demo", "one", "--data", s.data, input="two\n\n/quit\nthree\n")
        equal(out.returncode, 0, out.stderr)
        check('"one" (turns before this one: 0)' in out.stdout, out.stdout)
        check('"two" (turns before this one: 1)' in out.stdout, out.stdout)
        check('"three"' not in out.stdout, out.stdout)
        runs = s.http.get("/api/runs").json["runs"]
        equal(len({r["conversation_id"] for r in runs}), 1)
        equal(len(runs), 2)
        out = run_uar("logs", "last", "--data", s.data)
        check('"two"' in out.stdout, out.stdout)
        equal(run_uar("chat", "nobody", "x", "--data", s.data, input="").returncode, 1)


@test("a_chat_starts_its_server", "")
def alone():
    with tempfile.TemporaryDirectory() as root:
        data = os.path.join(root, "data")
        equal(run_uar("agent", "new", "poet", "--data", data).returncode, 0)
        out = run_uar("chat", "poet", "--data", data, input="hello\n")
        equal(out.returncode, 0, out.stderr)
        check('"hello"' in out.stdout, out.stdout)
        with open(os.path.join(data, "server.json")) as f:
            pid = json.load(f)["pid"]
        wait_until(lambda: not os.path.exists(f"/proc/{pid}"), "its server leaves by itself")


@test("ctrl_c_cancels_the_answer_at_hand", "")
def interrupt():
    with Provider() as p, Server(env=p.env("gate")) as s:
        p.hold()
        proc = subprocess.Popen([UAR, "chat", "assistant", "wait", "--data", s.data], text=True,
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                env=clean_environment("/nonexistent"))
        p.wait_for(requests=1)
        wait_until(lambda: os.read(proc.stdout.fileno(), 100), "its text")
        proc.send_signal(signal.SIGINT)
        (run,) = wait_until(lambda: [r for r in s.http.get("/api/runs").json["runs"] if r["status"] == "canceled"],
                            "it is cancelled")
        p.release()
        out, _ = proc.communicate("again\n", timeout=60)
        check("after" in out, out)
        equal(proc.returncode, 0)
        equal(s.record(run["run_id"])["status"], "canceled")


@test("ctrl_c_at_a_terminal_cancels_a_run_then_leaves", "")
def interrupt_run():
    with Provider() as p, Server(env=p.env("gate")) as s:
        p.hold()
        t = Terminal(s, "run", "assistant", "wait")
        p.wait_for(requests=1)
        (run,) = wait_until(lambda: s.http.get("/api/runs").json["runs"], "the run")
        wait_until(lambda: os.read(t.fd, 100), "its text")
        t.press(b"\x03")
        wait_until(lambda: s.record(run["run_id"])["status"] == "canceled", "it is cancelled")
        equal(t.end(), 3, t.seen)
        check("tokens" in t.seen, t.seen)


@test("a_terminal_lists_short_ids_and_titles", "")
def short_ids():
    with Server() as s:
        ids = [s.create("echo", f"message {i}") for i in range(4)]
        for run_id in ids:
            s.finish(run_id)
        t = Terminal(s, "runs")
        equal(t.end(), 0, t.seen)
        rows = t.seen.splitlines()[1:]
        short = [row.split()[0] for row in rows]
        equal(len(rows), 4, t.seen)
        check(all(len(a) < 36 for a in short) and len(set(short)) == 4, short)
        for a, whole, n in zip(short, ids[::-1], (3, 2, 1, 0)):
            check(whole.startswith(a), (a, whole))
            check(f"message {n}" in rows[3 - n], rows)
            equal(json.loads(run_uar("show", a, "--json", "--data", s.data).stdout)["run_id"], whole)
        piped = run_uar("runs", "--data", s.data).stdout.splitlines()[1:]
        equal([row.split()[0] for row in piped], ids[::-1], "programs get whole ids")


@test("a_new_link_works_once", "")
def link():
    with Server() as s:
        out = run_uar("open", "--data", s.data)
        url, code = out.stdout.strip().split("/#code=")
        equal(url, s.url)
        a = s.http.send("POST", "/api/link", {"code": code}, token=False)
        equal((a.status, a.json["token"]), (200, s.token))
        equal(s.http.send("POST", "/api/link", {"code": code}, token=False).status, 401)
        equal(s.http.send("POST", "/api/links", {}, token=False).status, 401)


@test("shells_complete_commands", "")
def completion():
    with Server() as s:
        script = run_uar("completion", "bash").stdout
        ask = ('PATH=$2:$PATH; export UAR_DATA=$1; COMP_WORDS=(uar run de); COMP_CWORD=2; _uar; echo "${COMPREPLY[*]}"; '
               'COMP_WORDS=(uar comp); COMP_CWORD=1; _uar; echo "${COMPREPLY[*]}"')
        out = subprocess.run(["bash", "-c", script + "\n" + ask, "bash", s.data, os.path.dirname(UAR)], text=True,
                             stdout=subprocess.PIPE, timeout=60, env=clean_environment("/nonexistent"), check=True)
        equal(out.stdout.split(), ["demo", "completion"])
        for shell in ("zsh", "fish"):
            check("chat" in run_uar("completion", shell).stdout)
        equal(run_uar("completion", "csh").returncode, 2)


if __name__ == "__main__":
    main()
