#!/usr/bin/env python3
"""uar exec: a coding agent from a terminal, with and without a server; uar approve beside it."""
import json
import os
import pty
import shutil
import signal
import subprocess
import tempfile

from lib import SAFETY, UAR, all_of, check, equal, main, run_uar, test, wait_until
from lib.backends import FAKE, Shop, recording
from lib.server import clean_environment

ALLOW = "dialogue " + recording("claude_code/dialogue_permission_allow.dialogue.jsonl")
DENY = "dialogue " + recording("claude_code/dialogue_permission_deny.dialogue.jsonl")
TALK = """expect initialize
line {"type":"control_response","response":{"subtype":"success","request_id":"init1","response":{}}}
expect user
line {"type":"system","subtype":"init","session_id":"s-1"}
"""
SAY = 'line {"type":"assistant","message":{"id":"m","content":[{"type":"text","text":"%s"}]}}\n'


class Desk:
    """A home with a `claude` that is the fake CLI, and no server."""

    def __init__(self, script):
        self.root = tempfile.mkdtemp(prefix="uar-e2e-")
        self.bin = os.path.join(self.root, "bin")
        self.here = os.path.join(self.root, "here")
        os.mkdir(self.bin)
        os.mkdir(self.here)
        with open(os.path.join(self.bin, "claude"), "w") as f:
            f.write(f"#!/bin/sh\nexport DESK_OF_TEST={self.root}\nFAKE_DO='{script}' exec {FAKE} \"$@\"\n")
        os.chmod(f.name, 0o755)
        self.env = clean_environment(self.root, {"PATH": self.bin + ":" + os.environ["PATH"]})

    def start(self, *argv, **more):
        return subprocess.Popen([UAR, "exec", *argv], cwd=self.here, env=self.env, text=True,
                                start_new_session=True, **more)

    def exec(self, *argv, input=""):
        p = self.start(*argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        out, err = p.communicate(input, timeout=SAFETY)
        return p.returncode, out, err

    def uar(self, *argv):
        return run_uar(*argv, env={"XDG_DATA_HOME": self.root}, home=self.root)

    def processes(self, word):
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/environ", "rb") as f:
                    if word.encode() in f.read():
                        found.append(int(pid))
            except OSError:
                pass
        return found

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        log = os.path.join(self.root, "uar", "exec.log")
        if kind and os.path.exists(log):
            with open(log) as f:
                print("--- log of the server:\n" + f.read()[-4000:])
        wait_until(lambda: not self.processes("XDG_DATA_HOME=" + self.root), "the server to leave")
        equal(self.processes("DESK_OF_TEST=" + self.root), [])
        shutil.rmtree(self.root, ignore_errors=True)


@test("exec_works_without_a_server_and_the_run_is_in_the_log", "")
def alone():
    with Desk(TALK + SAY % "well done" + "result") as d:
        code, out, err = d.exec("claude_code", "do", "it")
        equal((code, out), (0, "well done\n"), err)
        code, out, err = d.exec("claude_code", "--json", input="from standard input\n")
        equal(code, 0, err)
        events = [json.loads(line) for line in out.splitlines()]
        equal([events[0]["type"], events[-1]["type"]], ["RunStart", "RunDone"])
        check(any(e["type"] == "ChatDelta" for e in events), out)
        with Served(d) as runs:
            equal([r["agent_id"] for r in runs], ["claude_code", "claude_code"])
            equal({r["status"] for r in runs}, {"succeeded"})


class Served:
    """The runs of the desk's log, read by a server of its own once the last one has left."""

    def __init__(self, desk):
        self.desk = desk

    def __enter__(self):
        wait_until(lambda: not self.desk.processes("XDG_DATA_HOME=" + self.desk.root),
                   "the server to leave")
        self.p = subprocess.Popen([UAR, "serve", "--json"], env=self.desk.env, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.p.stdout.readline()
        return json.loads(self.desk.uar("runs", "--json").stdout)["runs"]

    def __exit__(self, *_):
        self.p.send_signal(signal.SIGTERM)
        equal(self.p.wait(SAFETY), 0)
        self.p.stdout.close()


@test("many_at_once_share_one_server", "")
def at_once():
    with Desk(TALK + SAY % "done" + "result") as d:
        for code, out, err in all_of([lambda: d.exec("claude_code", "x") for _ in range(4)]):
            equal((code, out), (0, "done\n"), err)


@test("exec_uses_the_server_that_is_there", "")
def served():
    with Shop({"mine": {"script": (TALK + SAY % "hello" + "result").split("\n")}}) as s:
        p = run_uar("exec", "--data", s.data, "mine", "hi")
        equal((p.returncode, p.stdout), (0, "hello\n"), p.stderr)
        runs = s.http.get("/api/runs").json["runs"]
        equal([r["agent_id"] for r in runs], ["mine"])
        p = run_uar("exec", "--data", s.data, "nobody", "hi")
        check(p.returncode == 1 and "no agent nobody" in p.stderr and "mine" in p.stderr, p.stderr)
        p = run_uar("exec", "--data", s.data, "mine", "--yes", "--deny", "hi")
        equal(p.returncode, 2, p.stderr)


@test("without_a_terminal_the_answer_is_no_unless_yes", "")
def flags():
    with Desk(DENY) as d:
        code, out, err = d.exec("claude_code", "do it")
        equal(code, 0, err)
        check("[denied]" in err and "[answered] deny" in err, err)
    with Desk(ALLOW) as d:
        code, out, err = d.exec("claude_code", "--yes", "do it")
        equal((code, out), (0, "The command finished.\n"), err)


@test("a_terminal_is_asked", "")
def terminal():
    for script, answer, word in ((ALLOW, b"y\n", b"allow"), (DENY, b"n\n", b"deny")):
        with Desk(script) as d:
            pid, fd = pty.fork()
            if pid == 0:
                os.chdir(d.here)
                os.execve(UAR, [UAR, "exec", "claude_code", "do it"], d.env)
            seen = b""
            while b"allow it?" not in seen:
                seen += os.read(fd, 4096)
            check(b"hello file" in seen, seen)  # what exactly is to be allowed
            os.write(fd, answer)
            try:
                while chunk := os.read(fd, 4096):
                    seen += chunk
            except OSError:
                pass  # how a terminal says that it is over
            _, status = os.waitpid(pid, 0)
            os.close(fd)
            equal(os.waitstatus_to_exitcode(status), 0, seen)
            check(b"[answered] " + word in seen, seen)


@test("ctrl_c_cancels_the_run_and_waits_for_its_end", "")
def interrupted():
    with Desk(TALK + SAY % "working" + "ignoreterm\nescape\nhang") as d:
        p = d.start("claude_code", "--json", "x", stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                    stdin=subprocess.DEVNULL)
        for line in p.stdout:
            if "working" in line:
                break
        p.send_signal(signal.SIGINT)
        out, err = p.communicate(timeout=SAFETY)
        equal(p.returncode, 3, err)
        last = json.loads(out.splitlines()[-1])
        equal((last["type"], last["data"]["code"]), ("Error", "CANCELED"))
        equal(d.processes("DESK_OF_TEST=" + d.root), [], "cancelled means gone")


@test("another_terminal_may_answer", "")
def elsewhere():
    script = TALK + ('line {"type":"control_request","request_id":"r1","request":{"subtype":'
                     '"can_use_tool","tool_name":"Bash","input":{"command":"ls"}}}\n'
                     "expect allow\n") + SAY % "thanks" + "result"
    with Desk(script) as d:
        pid, fd = pty.fork()
        if pid == 0:
            os.chdir(d.here)
            os.execve(UAR, [UAR, "exec", "claude_code", "do it"], d.env)
        seen = b""
        while b"allow it?" not in seen:
            seen += os.read(fd, 4096)
        run_id = json.loads(d.uar("runs", "--json").stdout)["runs"][0]["run_id"]
        p = d.uar("approve", run_id)
        equal(p.returncode, 0, p.stderr)
        os.write(fd, b"n\n")  # too late
        try:
            while chunk := os.read(fd, 4096):
                seen += chunk
        except OSError:
            pass
        _, status = os.waitpid(pid, 0)
        os.close(fd)
        equal(os.waitstatus_to_exitcode(status), 0, seen)
        check(b"ACTION_RESOLVED" in seen and b"thanks" in seen, seen)


main()
