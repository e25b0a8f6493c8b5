#!/usr/bin/env python3
"""Commands in a sandbox: what they may do, what they may not, and what is left of them."""
import json
import os
import socket
import sys

from lib import Server, check, check_session, equal, main, refused, test, wait_until
from lib.payloads import check_payload

MODEL = {"default": {"provider": "scripted", "model": "scripted-tools"}}
# It stands in for a program that the agent's model wants to run.
PYTHON = "/usr/bin/python3"


def call(name, **args):
    return f"tool {name} {json.dumps(args)}"


def run(command, **args):
    args.update({"argv": command} if isinstance(command, list) else {"command": command})
    return call("process__run", **args)


def agent(s, agent_id="a", **sandbox):
    a = s.http.send("PUT", f"/api/agents/{agent_id}", {
        "version": "1.0", "kind": "agent", "id": agent_id, "runtime": {"entry": "llm.chat"},
        "policy": {"provider": MODEL, "tools": {"allow": ["process:*", "internal:fs.*"]},
                   **({"sandbox": sandbox} if sandbox else {})}})
    check(a.status in (200, 201), a.body)


def allow(s, run_id):
    """Allows what the run asks for until it is over."""
    seen = set()
    while True:
        r = wait_until(lambda: (lambda r: r if r["status"] in ("succeeded", "failed", "canceled", "timeout") or
                                any(a["action_id"] not in seen for a in r.get("actions") or []) else None)(
            s.record(run_id)), "a question or an end")
        unanswered = [a for a in r.get("actions") or [] if a["action_id"] not in seen]
        if not unanswered:
            return r
        for a in unanswered:
            seen.add(a["action_id"])
            equal(s.http.post("/api/control/respond_action", {"action_id": a["action_id"], "decision": "allow"}).status, 200)


def log_of(s, run_id):
    events = s.session_events(run_id)
    check_session(events)
    log = [e.data for e in events if e.data.get("run_id", run_id) == run_id]
    for e in log:
        check_payload(e)
    return log


def of(log, *kinds):
    return [e for e in log if e["type"] in kinds]


def outcome(s, message, agent_id="a"):
    """The log of a run whose command was allowed, and how its last tool ended."""
    run_id = s.create(agent_id, message)
    allow(s, run_id)
    log = log_of(s, run_id)
    end = of(log, "tool.result", "tool.failed")[-1]["payload"]
    return log, end


class Sandbox(Server):
    def __init__(self, mode="workspace_write", sandbox=None, **settings):
        super().__init__(process_tools=mode, **settings)
        agent(self, **(sandbox or {}))

    def file(self, *names):
        return os.path.join(self.data, "files", *names)

    def put(self, name, text):
        os.makedirs(os.path.dirname(self.file(name)), exist_ok=True)
        with open(self.file(name), "w") as f:
            f.write(text)


def violations(log):
    return [(e["payload"]["kind"], e["payload"]["target"]) for e in of(log, "sandbox.violation")]


def alive(marker):
    """Processes whose command line has that word."""
    found = []
    for pid in os.listdir("/proc"):
        if pid.isdigit():
            try:
                with open(f"/proc/{pid}/cmdline", "rb") as f:
                    if marker.encode() in f.read():
                        found.append(int(pid))
            except OSError:
                pass
    return found


@test("a_command_is_recorded_before_it_runs_and_what_it_did_after", "GOV-10 FACT-03")
def recorded():
    with Sandbox() as s:
        log, end = outcome(s, run("cat && echo out && echo err >&2; rm -rf sub; exit 3", input="in", cwd=".",
                                  justification="shows all"))
        kinds = [e["type"] for e in log]
        order = [kinds.index(k) for k in ("permission.evaluated", "sandbox.applied", "tool.started", "process.started",
                                          "process.output", "process.completed", "tool.result")]
        equal(order, sorted(order), kinds)
        applied = of(log, "sandbox.applied")[0]["payload"]
        files = os.path.realpath(s.file())
        equal((applied["mode"], applied["cwd"], applied["write_roots"], applied["network"]["mode"], applied["enforced"]),
              ("workspace_write", files, [files], "none", True))
        check(applied["process_limits"]["processes"] > 0 and applied["process_limits"]["wall_ms"] > 0, applied)
        started = of(log, "process.started")[0]
        p = started["payload"]
        equal((p["cwd"], p["network"], p["destructive"], p["tty"], p["justification"], p["profile_id"]),
              (files, "none", True, False, "shows all", applied["profile_id"]))
        equal(p["subcommands"], ["cat", "echo out", "echo err >&2", "rm -rf sub", "exit 3"])
        equal(p["path_validation"]["ok"], True)
        equal(p["decision_id"], of(log, "tool.started")[0]["payload"]["decision_id"])
        texts = {e["payload"]["stream"]: e["payload"]["text"] for e in of(log, "process.output")}
        equal(texts, {"stdout": "inout\n", "stderr": "err\n"})
        done = of(log, "process.completed")[0]
        equal((done["payload"]["exit_code"], done["payload"]["stdout_bytes"], done["payload"]["stderr_bytes"]), (3, 6, 4))
        equal(done["process_id"], started["process_id"])
        out = end["preview"]
        equal((out["exit_code"], out["stdout"], out["stderr"], out["status"]), (3, "inout\n", "err\n", "completed"))


@test("a_file_tool_records_permission_and_fence_before_it_writes", "GOV-06")
def file_tool():
    with Sandbox() as s:
        log, end = outcome(s, call("fs.write", path="a.txt", text="x"))
        equal(end["ok"], True)
        kinds = [e["type"] for e in log]
        order = [kinds.index(k) for k in ("permission.evaluated", "sandbox.applied", "tool.started", "tool.result")]
        equal(order, sorted(order), kinds)
        log, end = outcome(s, run("echo y > b.txt"))
        kinds = [e["type"] for e in log]
        order = [kinds.index(k) for k in ("permission.evaluated", "sandbox.applied", "process.started", "tool.result")]
        equal(order, sorted(order), kinds)
        with open(s.file("b.txt")) as f:
            equal(f.read(), "y\n")


@test("a_write_outside_the_roots_is_denied_and_told_as_a_violation", "GOV-04")
def write_outside():
    with Sandbox() as s:
        target = os.path.join(s.root, "outside.txt")
        log, end = outcome(s, run(f"echo x > {target}"))
        check(not os.path.exists(target), "it was written")
        equal((end["failure_category"], end["ok"]), ("sandbox_violation", False), end)
        equal(violations(log), [("filesystem", os.path.realpath(target))])
        v = of(log, "sandbox.violation")[0]["payload"]
        equal((v["action_taken"], v["profile_id"]), ("denied", of(log, "sandbox.applied")[0]["payload"]["profile_id"]))
        # A failure of the command itself is none of the sandbox.
        log, end = outcome(s, run("ls nothing-here"))
        equal((end["ok"], end["preview"]["exit_code"], violations(log)), (True, 2, []), end)


@test("the_summary_shows_a_denial_and_a_violation", "SNAP-09")
def summary():
    with Sandbox() as s:
        run_id = s.create("a", run("echo x > /outside"))
        session_id = s.record(run_id)["session_id"]
        read = lambda: s.http.get(f"/api/sessions/{session_id}?include=permissions").json["permission_sandbox_summary"]
        action = wait_until(lambda: s.record(run_id).get("actions"), "a question")[0]["action_id"]
        equal([a["action_id"] for a in read()["pending"]], [action])
        equal(read()["sandbox"]["profiles"], [])
        equal(s.http.post("/api/control/respond_action", {"action_id": action, "decision": "deny"}).status, 200)
        s.finish(run_id)
        equal((read()["pending"], read()["decisions"][0]["status"], read()["sandbox"]["profiles"]), ([], "denied", []))
        again = s.create("a", run("echo x > /outside"), conversation_id=s.record(run_id)["conversation_id"])
        allow(s, again)
        equal(s.record(again)["session_id"], session_id)
        shown = read()["sandbox"]
        equal([(v["kind"], v["target"], v["run_id"], v["profile_id"]) for v in shown["violations"]],
              [("filesystem", "/outside", again, shown["profiles"][0]["profile_id"])])
        equal(shown["profiles"][0]["mode"], "workspace_write")
        s.restart()
        equal(read()["sandbox"], shown)


@test("a_link_out_of_the_workspace_leads_nowhere", "")
def symlink():
    with Sandbox() as s:
        secret = os.path.join(s.root, "secret.txt")
        with open(secret, "w") as f:
            f.write("the secret")
        s.put("x", "")
        os.symlink(secret, s.file("link"))
        os.symlink(s.root, s.file("dir"))
        for command in ("cat link", "cat dir/secret.txt", "echo x > dir/new.txt", "echo x > link", f"cat {secret}",
                        "ln -s / root && cat root" + secret, f"ln {secret} hard", f"mv {secret} here"):
            log, end = outcome(s, run(command))
            equal(end["ok"], False, (command, end))
            equal(end["failure_category"], "sandbox_violation", (command, end))
            check("the secret" not in json.dumps(log), command)
        with open(secret) as f:
            equal(f.read(), "the secret")
        check(not os.path.exists(os.path.join(s.root, "new.txt")))
        # Nor can a link be the folder that it runs in.
        log, end = outcome(s, run("pwd", cwd="dir"))
        equal((end["ok"], end["failure_category"]), (False, "policy_denied"), end)
        equal(of(log, "process.started"), [])


@test("what_the_server_knows_is_not_read", "")
def secrets_of_the_server():
    with Server(process_tools="workspace_write", env={"UAR_TEST_KEY": "k-123456"}) as s:
        agent(s)
        database = os.path.join(s.data, "uar.db")
        for command in (f"cat {database} | head -c 1", f"cat /proc/{s.proc.pid}/environ", f"cat /proc/{s.proc.pid}/mem",
                        "cat /etc/shadow", "cat ~root/.bashrc /root/.bashrc"):
            log, end = outcome(s, run(command))
            check("k-123456" not in json.dumps([e["payload"] for e in of(log, "process.output")]), command)
            check(not any(e["payload"]["stream"] == "stdout" for e in of(log, "process.output")), (command, end))
        log, end = outcome(s, run("env"))
        check("UAR_" not in end["preview"]["stdout"] and "k-123456" not in end["preview"]["stdout"], end)


@test("a_command_has_no_network", "")
def network():
    with Sandbox() as s, socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.2)
        port = listener.getsockname()[1]
        log, end = outcome(s, run([PYTHON, "-c", f"import socket; socket.create_connection(('127.0.0.1', {port}))"]))
        equal((end["ok"], end["failure_category"]), (False, "sandbox_violation"), end)
        equal(violations(log), [("network", "socket")])
        try:
            listener.accept()
            check(False, "the listener saw a connection")
        except TimeoutError:
            pass
    with Sandbox(process_network="true", sandbox={"network": "full"}) as s, socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        log, end = outcome(s, run([PYTHON, "-c", f"import socket; socket.create_connection(('127.0.0.1', {port}))"]))
        equal(end["ok"], True, end)
        equal(of(log, "process.started")[0]["payload"]["network"], "full")


@test("a_fork_bomb_meets_its_limit", "")
def fork_bomb():
    with Sandbox(sandbox={"limits": {"processes": 24}}) as s:
        bomb = ("import os, signal\nn = 0\nfor i in range(400):\n try:\n  pid = os.fork()\n except OSError:\n  n += 1\n"
                "  continue\n if pid == 0:\n  signal.pause()\n  os._exit(0)\nprint('refused', n, flush=True)\n"
                "os.system('true')\nos._exit(9)")
        log, end = outcome(s, run([PYTHON, "-c", bomb]))
        equal(end["failure_category"], "sandbox_violation", end)
        equal(violations(log), [("resource", "processes")])
        text = "".join(e["payload"]["text"] for e in of(log, "process.output") if e["payload"]["stream"] == "stdout")
        refusals = int(text.split()[1])
        check(refusals >= 400 - 24, text)
        log, end = outcome(s, run("for i in 1 2 3 4 5 6 7 8 9 10; do /bin/true; done; echo fine"))
        equal(end["preview"]["stdout"], "fine\n")


@test("a_process_has_no_more_memory_than_the_operator_says", "")
def memory():
    most = 512 << 20
    with Sandbox(process_memory_bytes=most) as s:
        agent(s, "less", limits={"memory_bytes": 256 << 20})
        agent(s, "more", limits={"memory_bytes": 4 << 30})
        for agent_id, limit in (("a", most), ("less", 256 << 20), ("more", most)):
            log, end = outcome(s, run([PYTHON, "-c", "bytearray(600 << 20)"]), agent_id)
            applied = of(log, "sandbox.applied")[0]["payload"]
            equal((applied["process_limits"]["memory_bytes"], "memory_total" in applied["gaps"]), (limit, True))
            equal((end["preview"]["exit_code"], "MemoryError" in end["preview"]["stderr"]), (1, True), end)
            log, end = outcome(s, run([PYTHON, "-c", "print(len(bytearray(1 << 20)))"]), agent_id)
            equal(end["preview"]["stdout"], "1048576\n", end)


@test("tracing_mounting_and_new_namespaces_are_refused", "")
def system_calls():
    code = ("import ctypes, sys\nlibc = ctypes.CDLL(None, use_errno=True)\n"
            "r = getattr(libc, sys.argv[1])(*map(int, sys.argv[2:]))\nsys.exit(7 if r < 0 and ctypes.get_errno() == 1 else 0)")
    with Sandbox() as s:
        for name, args in (("ptrace", ["16", "1", "0", "0"]), ("unshare", [str(0x10000000)]), ("chroot", ["0"]),
                           ("mount", ["0", "0", "0", "0", "0"])):
            log, end = outcome(s, run([PYTHON, "-c", code, name, *args]))
            equal((end["failure_category"], violations(log)), ("sandbox_violation", [("process", name)]), (name, end))
        # It cannot end the server, nor its own helper.
        log, end = outcome(s, run(f"kill -9 {s.proc.pid}; kill -9 $PPID; echo still here"))
        equal(end["ok"], True, end)
        check("still here" in end["preview"]["stdout"], end)
        log, end = outcome(s, run(f"chmod 777 {s.root}"))
        equal(violations(log), [("filesystem", os.path.realpath(s.root))], end)


@test("nothing_outlives_its_command", "")
def survivors():
    marker = f"sandbox-marker-{os.getpid()}"
    escape = ("import os, signal, sys\nif os.fork() == 0:\n os.setsid()\n if os.fork() == 0:\n"
              "  for fd in (0, 1, 2): os.close(fd)\n  signal.pause()\n os._exit(0)\nos.wait()\nprint('away')")
    with Sandbox() as s:
        log, end = outcome(s, run([PYTHON, "-c", escape, marker]))
        equal(end["preview"]["stdout"], "away\n", end)
        equal(alive(marker), [])
        # One that ignores SIGTERM, and a run that is cancelled.
        stubborn = "import signal, sys\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nopen('up', 'w').close()\nsignal.pause()"
        run_id = s.create("a", run([PYTHON, "-c", stubborn, marker]))
        action = wait_until(lambda: s.record(run_id).get("actions"))[0]
        s.http.post("/api/control/respond_action", {"action_id": action["action_id"], "decision": "allow"})
        wait_until(lambda: os.path.exists(s.file("up")), "it is up")
        s.cancel(run_id)
        wait_until(lambda: s.record(run_id)["status"] == "canceled", "the end")
        equal(alive(marker), [])
        end = of(log_of(s, run_id), "process.terminated")[0]["payload"]
        equal((end["reason"], end["escalated"]), ("parent_cancelled", True), end)


@test("a_command_that_takes_too_long_is_ended", "")
def timeout():
    with Sandbox() as s:
        log, end = outcome(s, run("sleep 300", timeout_seconds=0.5))
        equal((end["status"], end["failure_category"]), ("timed_out", "timeout"), end)
        equal(of(log, "process.failed")[0]["payload"]["stage"], "timeout")
        log, end = outcome(s, run(["/usr/bin/no-such-program"]))
        failed = of(log, "process.failed")[0]["payload"]
        equal((failed["stage"], end["ok"]), ("spawn", False), end)


@test("a_gigabyte_of_output_takes_no_memory", "")
def much_output():
    with Sandbox() as s:
        outcome(s, run("echo warm"))
        before = s.resident_kb()
        log, end = outcome(s, run("head -c 1000000000 /dev/zero | tr '\\0' 'x'"))
        equal((end["ok"], end["truncated"] or end["preview"]["truncated"]), (True, True), end)
        equal(of(log, "process.completed")[0]["payload"]["stdout_bytes"], 1000000000)
        room = 200000 if "asan" in os.environ.get("BUILD", "") else 30000  # a sanitizer keeps what was freed
        check(s.resident_kb() - before < room, "resident", before, s.resident_kb())
        check(len(of(log, "process.output")) < 300, "too many events")
        check(of(log, "process.output")[-1]["payload"]["truncated"], "the last one does not say that there was more")


@test("without_landlock_nothing_runs", "")
def refusal():
    # The server under a filter for which the kernel has no Landlock.
    under = [sys.executable, "-c", (
        "import ctypes, os, struct, sys\nlibc = ctypes.CDLL(None)\n"
        "code = [(0x20, 0, 0, 0), (0x15, 0, 1, 444), (6, 0, 0, 0x50026), (6, 0, 0, 0x7fff0000)]\n"
        "raw = b''.join(struct.pack('HBBI', *i) for i in code)\nbuf = ctypes.create_string_buffer(raw)\n"
        "class P(ctypes.Structure): _fields_ = [('n', ctypes.c_ushort), ('p', ctypes.c_void_p)]\n"
        "p = P(len(code), ctypes.addressof(buf))\nlibc.prctl(38, 1, 0, 0, 0)\n"
        "assert libc.prctl(22, 2, ctypes.byref(p)) == 0\nos.execv(sys.argv[1], sys.argv[1:])")]
    with Server(process_tools="workspace_write", under=under) as s:
        agent(s)
        marker = os.path.join(s.data, "files", "ran")
        run_id = s.create("a", run("touch ran"))
        r = allow(s, run_id)
        log = log_of(s, run_id)
        end = of(log, "tool.failed")[0]["payload"]
        equal(end["failure_category"], "setup_missing", end)
        check("Landlock" in end["message"], end)
        equal((of(log, "process.started"), of(log, "sandbox.applied")), ([], []))
        check(not os.path.exists(marker), "it ran all the same")


def command(s, name, **args):
    return s.http.post(f"/api/control/{name}", args)


def environment(s, **scope):
    a = command(s, "get_execution_environment", **scope)
    equal(a.status, 200, a.body)
    return a.json["result"]["execution_environment"]


def start(s, line, **args):
    """A run that has started a process and waits in front of its next step; the process's id."""
    run_id = s.create("a", call("process__start", command=line, **args) + "\nthen\n" + call("fs.write", path="next", text="x"))
    first = wait_until(lambda: s.record(run_id).get("actions"), "the first question")[0]
    equal(s.http.post("/api/control/respond_action", {"action_id": first["action_id"], "decision": "allow"}).status, 200)
    wait_until(lambda: any(a["tool_name"] == "fs.write" for a in s.record(run_id).get("actions") or []), "the next question")
    session_id = s.record(run_id)["session_id"]
    active = environment(s, session_id=session_id)["active_processes"]
    equal([p["status"] for p in active], ["running"], active)
    return run_id, session_id, active[0]["process_id"]


def ended(s, session_id):
    return wait_until(lambda: environment(s, session_id=session_id)["ended_processes"], "the end")[0]


@test("a_process_is_written_to_and_ended_from_outside",
      "CTL-36 CTL-37 CTL-38 EVT-082 EVT-085 SNAP-10 EVT-074 EVT-075 EVT-080 EVT-081")
def interactive():
    with Sandbox() as s:
        run_id, session_id, process_id = start(s, "echo x > /outside; echo ready; while read line; do echo got $line; done")
        thread_id = s.record(run_id)["conversation_id"]
        a = command(s, "write_process_stdin", process_id=process_id, input="one\n")
        equal((a.status, a.json["result"]["status"], a.json["result"]["bytes"], len(a.json["event_ids"])),
              (200, "written", 4, 1), a.body)
        a = command(s, "write_process_stdin", process_id=process_id, input="hidden\n", secret=True)
        wait_until(lambda: environment(s, session_id=session_id)["active_processes"][0]["output_bytes"] >=
                   len("ready\ngot one\ngot hidden\n"), "it echoes")
        e = environment(s, thread_id=thread_id)
        files = os.path.realpath(s.file())
        equal((e["state"], e["cwd"], e["workspace_roots"], e["environment_refs"]),
              ("available", files, [files], ["env://" + e["sandbox"]["profile_id"]]), e)
        check(e["process_limits"]["processes"] > 0 and e["active_processes"][0]["input_bytes"] == 11, e)
        equal(environment(s, session_id=session_id, turn_id="no-such-turn")["active_processes"], [])
        equal(command(s, "get_execution_environment").status, 400)
        whole = command(s, "get_session", session_id=session_id, include="permissions").json["result"]
        equal(whole["read_models"]["execution_environment_snapshot"]["state"], "available")
        equal(whole["execution_environment"]["active_processes"][0]["process_id"], process_id)
        equal([(v["kind"], v["target"]) for v in whole["permission_sandbox_summary"]["sandbox"]["violations"]], [("filesystem", "/outside")])
        equal(whole["permission_sandbox_summary"]["sandbox"]["profiles"][0]["mode"], "workspace_write")
        a = command(s, "terminate_process", process_id=process_id, reason="enough")
        equal((a.status, a.json["result"]["status"]), (200, "terminating"), a.body)
        over = ended(s, session_id)
        equal((over["status"], over["reason"]), ("terminated", "user"), over)
        equal(command(s, "terminate_process", process_id=process_id).json["result"]["status"], "terminated")
        allow(s, run_id)
        log = log_of(s, run_id)
        inputs = [e["payload"] for e in of(log, "process.input")]
        equal([(i["bytes"], i.get("preview"), i["source"]["type"]) for i in inputs], [(4, "one\n", "user"), (7, None, "user")])
        check("hidden" not in json.dumps([e["payload"] for e in of(log, "process.input")]))
        end = of(log, "process.terminated")[0]["payload"]
        equal((end["reason"], end["terminated_by"]["type"], end["escalated"]), ("user", "user", False), end)
        # Another one knows nothing of it.
        for name, more in (("write_process_stdin", {"input": "x"}), ("terminate_process", {})):
            a = command(s, name, process_id="00000000-0000-7000-8000-000000000000", **more)
            refused(a, 404, "NOT_FOUND", "/process_id")
            check("unavailable" in a.json["detail"], a.body)


@test("a_process_may_have_a_terminal", "")
def terminal():
    with Sandbox() as s:
        run_id, session_id, process_id = start(s, "test -t 0 && test -t 1 && echo terminal; cat", tty=True)
        command(s, "write_process_stdin", process_id=process_id, input="", eof=True)
        over = ended(s, session_id)
        equal((over["status"], over["tty"], over["exit_code"]), ("completed", True, 0), over)
        allow(s, run_id)
        check("terminal" in "".join(e["payload"]["text"] for e in of(log_of(s, run_id), "process.output")))


@test("a_run_takes_its_processes_with_it", "EVT-083 EVT-084")
def end_of_run():
    marker = f"sandbox-run-{os.getpid()}"
    with Sandbox() as s:
        run_id, session_id, process_id = start(s, f"sleep 300; : {marker}")
        check(alive(marker), "it does not run")
        allow(s, run_id)
        wait_until(lambda: not alive(marker), "it is gone with its run")
        end = of(log_of(s, run_id), "process.terminated")[0]["payload"]
        equal((end["reason"], end["terminated_by"]["type"]), ("parent_cancelled", "runtime"), end)
        equal(ended(s, session_id)["status"], "terminated")
        log, _ = outcome(s, run("sleep 300", timeout_seconds=0.3))
        p = ended(s, log[0]["session_id"])
        equal((p["status"], p["reason"]), ("failed", "timeout"), p)
        log, _ = outcome(s, run("exit 4"))
        p = ended(s, log[0]["session_id"])
        equal((p["status"], p["exit_code"]), ("completed", 4), p)


@test("after_a_kill_the_server_says_what_is_left_of_a_process", "GOV-11 CTL-47")
def restart():
    marker = f"sandbox-kill-{os.getpid()}"
    with Sandbox() as s:
        run_id, session_id, process_id = start(s, f"echo before; sleep 300; : {marker}")
        wait_until(lambda: environment(s, session_id=session_id)["active_processes"][0]["output_bytes"] == 7, "its output")
        s.kill()
        wait_until(lambda: not alive(marker), "it ends with the server")
        s.start()
        over = ended(s, session_id)
        equal((over["status"], over["process_id"]), ("lost", process_id), over)
        equal((over["left"]["may_exist"], over["left"]["durable_output_bytes"]), (False, 7), over)
        check("stdin" in over["left"]["gone"] and "start_again" in over["left"]["actions"], over)
        equal(environment(s, session_id=session_id)["active_processes"], [])
        for name, args in (("write_process_stdin", {"input": "x"}), ("terminate_process", {})):
            a = command(s, name, process_id=process_id, **args)
            equal((a.status, a.json["result"]["status"], a.json["result"]["process_status"]), (200, "unavailable", "lost"), a.body)
            equal(len(a.json["event_ids"]), 1, a.body)
        allow(s, run_id)
        events = [e.data for e in s.session_events(run_id)]
        failed = of(events, "process.failed")[0]["payload"]
        equal((failed["stage"], failed["error"]["code"], failed["error"]["details"]["may_exist"]), ("transport", "LOST", False))
        warnings = [e["payload"] for e in of(events, "runtime.warning") if e["payload"]["code"] == "PROCESS_UNAVAILABLE"]
        equal(len(warnings), 2, warnings)


@test("commands_are_off_unless_they_are_switched_on", "")
def off():
    with Server() as s:
        agent(s)
        log, end = outcome(s, run("echo hello"))
        equal(end["failure_category"], "unknown_tool", end)
    with Sandbox(mode="read_only") as s:
        s.put("a.txt", "hello")
        log, end = outcome(s, run("cat a.txt"))
        equal(end["preview"]["stdout"], "hello", end)
        log, end = outcome(s, run("echo x > b.txt"))
        equal(end["failure_category"], "sandbox_violation", end)
        agent(s, "b", mode="workspace_write")
        log, end = outcome(s, run("echo x > b.txt"), "b")
        equal(end["failure_category"], "policy_denied", end)
        # Agents that do not name these tools do not have them.
        log, end = outcome(s, run("echo x"), "tools")
        equal(end["failure_category"], "not_surfaced", end)


main()
