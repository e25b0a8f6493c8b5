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
from lib.check import readable
from lib.client import Client
from lib.disk import SmallDisk
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
    """A home with a `claude` (or `codex`) that is the fake CLI, and no server."""

    def __init__(self, script, program="claude"):
        self.root = tempfile.mkdtemp(prefix="uar-e2e-")
        self.bin = os.path.join(self.root, "bin")
        self.here = os.path.join(self.root, "here")
        os.mkdir(self.bin)
        os.mkdir(self.here)
        with open(os.path.join(self.bin, program), "w") as f:
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

    def server_pid(self):
        with open(os.path.join(self.root, "uar", "server.json")) as f:
            return json.load(f)["pid"]

    def until_alone(self):
        wait_until(lambda: not self.processes("XDG_DATA_HOME=" + self.root), "the server to leave")

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
        self.until_alone()
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


@test("exec_runs_an_agent_that_is_no_program", "")
def of_your_own():
    with Desk("") as d:
        os.makedirs(os.path.join(d.root, "uar", "agents"))
        with open(os.path.join(d.root, "uar", "agents", "mine.yaml"), "w") as f:
            f.write('version: "1.0"\nkind: agent\nid: mine\nruntime: {entry: llm.chat}\n')
        code, out, err = d.exec("mine", "what I said")
        check(code == 0 and "what I said" in out, code, out, err)
        code, out, err = d.exec("nobody", "x")
        check(code == 1 and "no agent nobody here; there are: " in err and "claude_code" in err, err)


class Served:
    """The runs of the desk's log, read by a server of its own once the last one has left."""

    def __init__(self, desk):
        self.desk = desk

    def __enter__(self):
        self.desk.until_alone()
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


@test("a_failure_is_told_in_the_agents_words_where_only_this_machine_listens", "")
def own_words():
    said = "error: not logged in, run /login; key sk-ant-1234 or s3cret-value"
    with Desk(f"err {said}\nexit 9") as d:
        d.env["ACME_API_KEY"] = "s3cret-value"
        status, out, err = d.exec("claude_code", "hi")
        equal((status, out), (1, ""), err)
        check("code=9" in err and "the agent says: error: not logged in, run /login; key *** or ***" in err, err)
        check("variables that it was not given: " in err and "ACME_API_KEY" in err, err)
        check("sk-ant" not in err and "s3cret" not in err, err)
    agents = {"broken": {"script": ["err not logged in", "exit 9"]}}
    with Shop(agents, env={"ACME_API_KEY": "s3cret-value"}, listen="0.0.0.0:0") as s:
        message = s.finish(s.create("broken", "hi"))["error"]["message"]
        check("code=9" in message and "says" not in message and "given" not in message, message)


@test("a_server_that_others_reach_through_a_proxy_tells_no_words", "")
def behind_a_proxy():
    agents = {"broken": {"script": ["err not logged in", "exit 9"]}}
    with Shop(agents, public_url="https://uar.example.com") as s:
        message = s.finish(s.create("broken", "hi"))["error"]["message"]
        check("code=9" in message and "says" not in message, message)


NOT_LOGGED_IN = json.dumps({"type": "result", "subtype": "success", "is_error": True,
                            "result": "Invalid API key · Please run /login"}, ensure_ascii=False)


@test("a_turn_that_failed_for_no_known_cause_is_told_in_the_agents_words", "")
def why_it_failed():
    with open(recording("codex/app_server_error_401.dialogue.jsonl")) as f:
        lines = f.read().replace('"codexErrorInfo":{"httpConnectionFailed":{"httpStatusCode":401}}',
                                 '"codexErrorInfo":"other"')
    said = "Missing environment variable: `MY_CODEX_KEY`."
    at = lines.index("unexpected status 401")
    lines = lines.replace(lines[at:lines.index('"', at)], said)
    recorded = tempfile.NamedTemporaryFile("w", suffix=".jsonl", prefix="uar-e2e-")
    with recorded as f:
        f.write(lines)
        f.flush()
        for agent, program, script, wanted in (
                ("codex", "codex", "dialogue " + f.name, "the agent says: " + said),
                ("claude_code", "claude", TALK + "line " + NOT_LOGGED_IN + "\nexit 1",
                 "the agent says: Invalid API key · Please run /login")):
            with Desk(script, program) as d:
                d.env["MY_CODEX_KEY"] = "s3cret-value"
                status, out, err = d.exec(agent, "hi")
                equal((status, out), (1, ""), err)
                check("turn failed" in err and wanted in err, err)
                check("variables that it was not given: " in err and "MY_CODEX_KEY" in err.rpartition("given: ")[2], err)
                check("s3cret" not in err, err)
        with Shop({"mine": {"script": ["dialogue " + f.name], "entry": "codex"}}, listen="0.0.0.0:0") as s:
            message = s.finish(s.create("mine", "hi"))["error"]["message"]
            check("turn failed" in message and "says" not in message and "given" not in message, message)


@test("refused_credentials_are_told_in_the_agents_words_and_a_providers_failures_are_not", "")
def whose_words():
    def replayed(name):
        return "expect initialize\ncat " + recording(f"claude_code/{name}.jsonl") + "\nexit 1"

    says = "authentication failed; the agent says: "
    for agent, program, script, wanted in (
            ("claude_code", "claude", replayed("error_401"), says + "Invalid API key"),
            ("claude_code", "claude", replayed("error_500_retries"), "provider error: http=500"),
            ("codex", "codex", "dialogue " + recording("codex/app_server_error_401.dialogue.jsonl"),
             says + "unexpected status 401 Unauthorized")):
        with Desk(script, program) as d:
            status, out, err = d.exec(agent, "hi")
            equal(status, 1, out + err)
            check(wanted in err, err)
            check(("agent says" in err) == (says in wanted), err)
            check(not any(word in err for word in ("SECRET", "sk-", "http://", "\x1b")), err)


@test("a_wrong_command_line_starts_no_server", "")
def nothing_started():
    with Desk("result") as d:
        for wrong in (["--timeout", "0"], ["--timeout", "soon"], ["--timeout", "-1"], ["--yes", "--deny"], ["--nope"]):
            code, out, err = d.exec("claude_code", *wrong, "x")
            equal((code, out), (2, ""), (wrong, err))
            # Whoever starts one makes the directory first, with a log in it.
            equal(os.path.exists(os.path.join(d.root, "uar")), False, (wrong, err))
            equal(d.processes("XDG_DATA_HOME=" + d.root), [], (wrong, err))
        code, out, err = d.exec("claude_code", "--timeout", "1h", "x")
        check(os.path.exists(os.path.join(d.root, "uar", "exec.log")), (code, out, err))


class Terminal:
    """uar exec on a terminal of its own."""

    def __init__(self, desk, *argv, typed_ahead=b""):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(desk.here)
            os.execve(UAR, [UAR, "exec", *(argv or ("claude_code", "do it"))], desk.env)
        self.seen = b""
        if typed_ahead:
            self.type(typed_ahead)

    def until(self, text, times=1):
        while self.seen.count(text) < times:
            try:
                check(readable(self.fd), "still no", text, self.seen)
                self.seen += os.read(self.fd, 4096)
            except OSError:  # how a terminal says that it is over
                raise AssertionError(f"it ended without {text}: {self.seen}") from None

    def type(self, text):
        os.write(self.fd, text)

    def end(self):
        try:
            while chunk := os.read(self.fd, 4096):
                self.seen += chunk
        except OSError:
            pass  # how a terminal says that it is over
        _, status = os.waitpid(self.pid, 0)
        os.close(self.fd)
        return os.waitstatus_to_exitcode(status)


ASK = """line {"type":"control_request","request_id":"%s","request":{"subtype":\
"can_use_tool","tool_name":"Bash","input":{"command":"ls"}}}
""".replace("\\\n", "")


@test("a_terminal_is_asked", "")
def terminal():
    for script, answer, word in ((ALLOW, b"y\n", b"allow"), (DENY, b"No\n", b"deny")):
        with Desk(script) as d:
            t = Terminal(d)
            t.until(b"allow it?")
            check(b"hello file" in t.seen, t.seen)  # what exactly is to be allowed
            t.type(answer)
            equal(t.end(), 0, t.seen)
            check(b"[answered] " + word in t.seen, t.seen)


@test("only_a_clear_answer_to_the_question_counts", "")
def clear_answer():
    with Desk(ALLOW) as d:
        t = Terminal(d, typed_ahead=b"n\n")  # before there was a question
        t.until(b"allow it?")
        t.type(b"maybe\n")
        t.until(b"please answer y, n, a or s")
        t.until(b"allow it?", 2)
        t.type(b"n" * 300 + b"\n")  # longer than any answer, and no part of it is one
        t.until(b"allow it?", 3)
        t.type(b"YES\n")
        equal(t.end(), 0, t.seen)
        check(b"[answered] allow" in t.seen, t.seen)


@test("a_terminal_that_does_not_control_us_will_do", "")
def uncontrolled():
    with Desk(ALLOW) as d:
        ours, theirs = pty.openpty()
        p = d.start("claude_code", "do it", stdin=theirs, stdout=theirs, stderr=theirs)
        os.close(theirs)
        t = Terminal.__new__(Terminal)
        t.fd, t.seen = ours, b""
        t.until(b"allow it?")
        t.type(b"y\n")
        t.until(b"[answered] allow")
        equal(p.wait(SAFETY), 0, t.seen)
        os.close(ours)


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


@test("ctrl_c_stops_a_run_that_a_full_disk_cannot_record", "")
def interrupted_when_full():
    with SmallDisk("6m") as disk, Desk(TALK + SAY % "working" + "hang") as d:
        d.env["XDG_DATA_HOME"] = disk.path
        p = d.start("claude_code", "--json", "x", stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                    stdin=subprocess.DEVNULL)
        for line in p.stdout:
            if "working" in line:
                break
        with open(os.path.join(disk.path, "uar", "server.json")) as a, \
                open(os.path.join(disk.path, "uar", "token")) as b:
            server = Client(json.load(a)["url"], b.read().strip())
        disk.fill()
        while server.post("/api/runs", {"agent_id": "echo", "inputs": {"message": "x" * 1000}}).status == 202:
            pass
        p.send_signal(signal.SIGINT)
        told = p.stderr.readline()
        check("STORAGE_FULL" in told and "the run is stopped" in told, told)
        disk.free()
        out, err = p.communicate(timeout=SAFETY)
        equal(p.returncode, 3, err)
        equal(json.loads(out.splitlines()[-1])["data"]["code"], "CANCELED")
        wait_until(lambda: not d.processes("XDG_DATA_HOME=" + disk.path), "the server to leave")


@test("another_terminal_may_answer", "")
def elsewhere():
    with Desk(TALK + ASK % "r1" + "expect allow\n" + ASK % "r2" + "expect deny\n" +
              SAY % "thanks" + "result") as d:
        t = Terminal(d)
        t.until(b"allow it?")
        run_id = json.loads(d.uar("runs", "--json").stdout)["runs"][0]["run_id"]
        p = d.uar("approve", run_id)
        equal(p.returncode, 0, p.stderr)
        t.until(b"[answered elsewhere]")
        t.until(b"allow it?", 2)  # it goes on, and the next question is asked
        t.type(b"n\n")
        equal(t.end(), 0, t.seen)
        check(b"thanks" in t.seen, t.seen)


@test("a_question_ends_with_its_time_and_with_its_run", "")
def no_longer_asked():
    script = (TALK + ASK % "r1" + "expect deny\n" + SAY % "then not" + "result").split("\n")
    with Shop({"hasty": {"script": script, "policy": {"default": "ask", "timeout_seconds": 1}},
               "slow": {"script": (TALK + ASK % "r1" + "hang").split("\n")}}) as s:
        d = type("Place", (), {"here": s.work, "env": clean_environment(s.root, {})})
        t = Terminal(d, "--data", s.data, "hasty", "do it")
        t.until(b"[nobody answered in time]")
        equal(t.end(), 0, t.seen)
        check(b"then not" in t.seen, t.seen)
        t = Terminal(d, "--data", s.data, "slow", "do it")
        t.until(b"allow it?")
        run_id = s.http.get("/api/runs").json["runs"][0]["run_id"]
        equal(run_uar("cancel", "--data", s.data, run_id).returncode, 0)
        t.until(b"[no longer asked")
        equal(t.end(), 3, t.seen)


@test("exec_goes_on_with_another_server_when_its_own_is_killed", "")
def killed():
    with Desk(TALK + SAY % "working" + "hang") as d:
        p = d.start("claude_code", "--json", "x", stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                    stdin=subprocess.DEVNULL)
        first = json.loads(p.stdout.readline())
        for line in p.stdout:
            if "working" in line:
                break
        os.kill(d.server_pid(), signal.SIGKILL)
        out, err = p.communicate(timeout=SAFETY)
        equal(p.returncode, 1, err)
        last = json.loads(out.splitlines()[-1])
        equal((last["type"], last["data"]["code"]), ("Error", "LOST"), out + err)
        # and later, when that one has left as well, every verb still finds the run
        d.until_alone()
        p = d.uar("show", first["data"]["run_id"])
        check(p.returncode == 0 and "LOST" in p.stdout, p.stdout + p.stderr)
        d.until_alone()
        p = d.uar("logs", first["data"]["run_id"])
        check(p.returncode == 0 and "working" in p.stdout, p.stdout + p.stderr)
        d.until_alone()
        equal(d.uar("health").returncode, 1, "that verb starts nothing")


@test("a_signal_ends_exec_when_the_server_is_gone", "")
def gone():
    with Shop({"slow": {"script": (TALK + SAY % "working" + "hang").split("\n")}}) as s:
        p = subprocess.Popen([UAR, "exec", "--data", s.data, "slow", "x"], text=True,
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, env=clean_environment(s.root, {}),
                             start_new_session=True)
        equal(p.stdout.read(7), "working")
        s.kill()
        p.send_signal(signal.SIGTERM)
        out, err = p.communicate(timeout=SAFETY)
        equal(p.returncode, 1, err)
        check("could not be cancelled" in err, err)


@test("a_server_that_cannot_start_is_started_once_and_says_why", "")
def misconfigured():
    with Desk("result") as d:
        d.env["UAR_OPENAI_BASE_URL"] = "http://127.0.0.1:1/v1"
        code, out, err = d.exec("claude_code", "x")
        equal(code, 1, err)
        check("a provider is configured but no model" in err, err)
        with open(os.path.join(d.root, "uar", "exec.log")) as f:
            equal(f.read().count("a provider is configured but no model"), 1)


main()
