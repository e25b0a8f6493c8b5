#!/usr/bin/env python3
"""Plugins that misbehave: each way has one outcome, and the server does not mind."""
import os
import signal
import tempfile
import time

from lib import check, check_session, equal, main, test, wait_until
from lib.plugins import Lab, write_plugin
from lib.server import ROOT

SDK = os.path.join(ROOT, "sdk", "python")
WITH_SDK = f"import os, sys, time\nsys.path.insert(0, {SDK!r})\n" \
           "from uar_plugin import Plugin\nplugin = Plugin()\n"
RAW = """import json, os, signal, sys
def read():
    line = sys.stdin.readline()
    if not line: sys.exit(0)
    return json.loads(line)
def say(**m):
    print(json.dumps({"jsonrpc": "2.0", **m}), flush=True)
say(id=read()["id"], result={"protocol": "1"})
start = read()
run = start["params"]["run_id"]
say(id=start["id"], result={})
"""


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().split()[2] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):  # between the two lines, too
        return False


def lab(script, under=(), **manifest):
    return Lab(write_plugin(tempfile.mkdtemp(prefix="uar-plugins-"), manifest, script), under=under)


@test("a_crash_in_the_middle_fails_the_run_and_a_retry_works", "ERR-07")
def crash():
    script = WITH_SDK + """
@plugin.entry("e")
def e(ctx, args):
    ctx.run.export_text("before")
    if ctx.run.attempt == 1:
        os.kill(os.getpid(), 9)
    return "after"
plugin.run()
"""
    with lab(script) as s:
        r = s.play("e", plugin="p")
        equal((r["status"], r["error"]["code"], r["error"]["details"], r["result_refs"]),
              ("failed", "TRANSPORT_ERROR", {"retriable": True}, []))
        equal([i["text"] for i in s.items(r["run_id"])["items"]], ["before"], "what was told stays")
        again = s.http.post(f"/runs/{r['run_id']}/retry", {}).json["run_id"]
        equal(s.done(again)["status"], "succeeded")


@test("the_error_of_a_run_shows_only_its_own_stderr", "ERR-07 OBS-01")
def own_stderr():
    script = WITH_SDK + """
@plugin.entry("e")
def e(ctx, args):
    for _ in range(args.get("lines", 1)):
        os.write(2, (args["say"] + "\\n").encode())
    if args.get("part"):
        os.write(2, args["part"].encode())
    ctx.run.progress(0.5)
    while args.get("file") and not os.path.exists(args["file"]):
        time.sleep(0.01)
    if args.get("die"):
        os._exit(3)
plugin.run()
"""
    with lab(script, concurrency=2) as s:
        r = s.play("e", {"say": "password of A", "part": "rest of A"}, plugin="p")
        equal(r["status"], "succeeded")
        lines = wait_until(lambda: [x for x in s.log().splitlines() if "of A" in x][1:] and s.log().splitlines())
        for line in [x for x in lines if "of A" in x]:
            check(r["run_id"] in line, "written before the return", line)
        r = s.play("e", {"say": "tail of B", "die": True}, plugin="p")
        equal((r["error"]["code"], r["error"]["message"]),
              ("TRANSPORT_ERROR", "the plugin's process exited with status 3: tail of B"))
        first = s.begin("e", {"say": "password of C", "file": s.file("gate")}, plugin="p")
        s.until(first, lambda r: r["progress"] == 0.5)
        r = s.play("e", {"say": "tail of D", "die": True}, plugin="p")
        equal(r["error"]["message"], "the plugin's process exited with status 3", "shared with C")
        equal(s.done(first)["error"]["message"], "the plugin's process exited with status 3", "shared with D")


@test("a_line_before_the_return_is_of_its_run_though_it_is_read_after_it", "OBS-01")
def line_before_return():
    script = RAW + """
say(method="run.progress", params={"run_id": run, "progress": 0.5})
args = start["params"]["args"]
open(args["gate"]).close()  # a pipe: waits for the other end
say(method="run.progress", params={"run_id": run, "progress": 0.75})
os.write(2, b"written before the return\\n")
say(method="run.result", params={"run_id": run, "result": 1})
open(args["done"], "w").close()
read()
"""
    with lab(script) as s:
        os.mkfifo(s.file("gate"))
        run_id = s.begin("e", {"gate": s.file("gate"), "done": s.file("done")}, plugin="p")
        s.until(run_id, lambda r: r["progress"])
        os.kill(s.pid, signal.SIGSTOP)  # it finds everything at once, the messages first
        try:
            s.open_gate()
            wait_until(lambda: os.path.exists(s.file("done")))
        finally:
            os.kill(s.pid, signal.SIGCONT)
        s.done(run_id)
        line = wait_until(lambda: [x for x in s.log().splitlines() if "written before the return" in x])[0]
        check(run_id in line, line)


@test("output_before_hello_explains_a_failed_start", "ERR-07")
def start_stderr():
    with lab("raise SystemExit('no such module')", concurrency=2) as s:
        ids = [s.begin("e", plugin="p") for _ in range(2)]
        for run_id in ids:
            check(s.done(run_id)["error"]["message"].endswith("status 1: no such module"), s.get(run_id))


@test("a_missing_program_is_nothing_to_retry", "ERR-07")
def missing():
    with lab("", command=["./no-such-program"]) as s:
        r = s.play("e", plugin="p")
        equal((r["status"], r["error"]["code"], r["error"]["details"]), ("failed", "TRANSPORT_ERROR", {"retriable": False}))
        check("cannot start ./no-such-program" in r["error"]["message"], r["error"])
        again = s.http.post(f"/runs/{r['run_id']}/retry", {}).json["run_id"]
        equal(s.done(again)["error"]["details"], {"retriable": False}, "nor later")
    with lab("", command=["./main.py"]) as s:
        equal(s.play("e", plugin="p")["error"]["details"], {"retriable": False}, "one that may not be executed")
    with lab("import sys; sys.exit(1)") as s:
        equal(s.play("e", plugin="p")["error"]["details"], {"retriable": True}, "one that merely fails")


@test("addresses_that_are_scripts_are_refused", "")
def scripts():
    script = WITH_SDK + """
from uar_plugin import PluginError
@plugin.entry("e")
def e(ctx, args):
    seen = []
    for url in args["urls"]:
        for export in (ctx.run.export_url, ctx.run.export_binary_url):
            try:
                export(url)
                seen.append("taken")
            except PluginError as error:
                seen.append(error.code)
    return seen
plugin.run()
"""
    bad = ["javascript:alert(1)", " JavaScript:alert(1)", "java\tscr\nipt:alert(1)", "\x01vbscript:x"]
    good = ["https://x/javascript:y", "javascript", "mailto:a@b", "/relative"]
    with lab(script) as s:
        r = s.play("e", {"urls": bad + good}, plugin="p")
        equal(s.items(r["run_id"])["items"][-1]["json"], ["INVALID_ARGUMENT"] * 8 + ["taken"] * 8)


@test("a_run_is_queued_until_its_process_is_ready", "RUN-27")
def slow_start():
    script = """import os, sys, time
while not os.path.exists(sys.argv[1]):
    time.sleep(0.01)
""" + WITH_SDK + """
@plugin.entry("e")
def e(ctx, args):
    with open(args["mark"], "a") as f:
        f.write(ctx.run.id + "\\n")
    assert not ctx.run.restarted, "it had not begun when the server stopped"
    while args.get("file") and not os.path.exists(args["file"]):
        ctx.run.check_cancelled()
        time.sleep(0.01)
plugin.run()
"""
    root = tempfile.mkdtemp(prefix="uar-plugins-")
    gate = os.path.join(root, "hello")
    with Lab(write_plugin(root, {"command": ["python3", "main.py", gate], "concurrency": 3}, script)) as s:
        mark = {"mark": s.file("mark")}
        ids = [s.begin("e", mark, plugin="p") for _ in range(2)]
        gone = s.begin("e", mark, plugin="p")
        for run_id in ids + [gone]:
            r = s.get(run_id)
            equal((r["status"], r["started_at"]), ("queued", None), "hello is not answered")
        equal(s.stop_run(gone)["status"], "canceled")
        s.restart()  # an entry that is not repeated after a crash had not begun
        equal([s.get(i)["status"] for i in ids], ["queued"] * 2)
        opened = time.time()
        s.open_gate(gate)
        for run_id in ids:
            r = s.done(run_id)
            equal(r["status"], "succeeded", r)
            check(r["created_at"] < opened <= r["started_at"], opened, r)
        equal(sorted(s.marks()), sorted(ids), "each once, the cancelled one never")
        with s.channel("runs") as ch:  # a process that is ready takes the next one at once
            seen = [e.data for e in ch.until(lambda e, i=s.begin("e", mark, plugin="p"): e.data["status"] == "succeeded")]
        equal(seen[0]["status"], "running", seen)


@test("a_run_whose_process_never_starts_fails_without_having_run", "ERR-07")
def no_start():
    with lab("raise SystemExit('out of order')", entries=[{"id": "e", "timeout_seconds": 100}]) as s:
        with s.channel("runs") as ch:
            run_id = s.begin("e", plugin="p")
            seen = [e.data["status"] for e in ch.until(lambda e: e.data["status"] == "failed")]
        equal(seen, ["queued", "failed"])
        equal(check_session(s.session_events(run_id)), {run_id: True})


@test("items_that_are_not_the_runs_are_the_plugins_mistake", "ERR-04")
def foreign_refs():
    script = """
import json, sys
for line in sys.stdin:
    m = json.loads(line)
    p = m.get("params", {})
    if m.get("method") == "hello":
        out = {"id": m["id"], "result": {"protocol": "1", "entries": ["e"]}}
        print(json.dumps({"jsonrpc": "2.0", **out}), flush=True)
    elif m.get("method") == "run.start":
        print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": {}}), flush=True)
        end = {"run_id": p["run_id"], **p["args"]["end"]}
        print(json.dumps({"jsonrpc": "2.0", "method": p["args"]["how"], "params": end}), flush=True)
"""
    with lab(script) as s:
        r = s.play("e", {"how": "run.result", "end": {"result": 1, "result_refs": ["foreign"]}}, plugin="p")
        equal((r["status"], r["error"]["code"], r["result_refs"]), ("failed", "PLUGIN_ERROR", []))
        check("result_refs names an item" in r["error"]["message"] and not r["error"]["details"]["retriable"], r)
        r = s.play("e", {"how": "run.error", "end": {"code": "QUOTA", "message": "no more", "result_refs": ["foreign"]}},
                   plugin="p")
        equal((r["error"]["code"], r["error"]["message"], r["result_refs"]), ("QUOTA", "no more", []))
        for bad, why in (({"code": 7}, "code must be a string"), ({"details": 7}, "details must be an object")):
            r = s.play("e", {"how": "run.error", "end": {"message": "no more", **bad}}, plugin="p")
            equal((r["error"]["code"], r["error"]["message"]), ("PLUGIN_ERROR", f"no more ({why})"))


@test("children_of_a_handler_read_and_write_nothing_of_the_protocol", "")
def inheritance():
    script = WITH_SDK + """
import subprocess
@plugin.entry("e")
def e(ctx, args):
    return subprocess.run(["sh", "-c", "cat; printf noise >&2"], capture_output=False).returncode
plugin.run()
"""
    with lab(script, concurrency=8) as s:
        runs = [s.begin("e", plugin="p") for _ in range(8)]
        equal([s.done(r)["status"] for r in runs], ["succeeded"] * 8)


@test("descriptors_that_the_server_was_started_with_do_not_reach_plugins", "")
def descriptors():
    script = WITH_SDK + """
@plugin.entry("e")
def e(ctx, args):
    return [os.readlink(f"/proc/self/fd/{n}") for n in os.listdir("/proc/self/fd")
            if os.path.exists(f"/proc/self/fd/{n}") and int(n) > 2]
plugin.run()
"""
    with tempfile.NamedTemporaryFile() as secret:
        with lab(script, under=["sh", "-c", f'exec 7<{secret.name} 9<{secret.name}; exec "$@"', "sh"]) as s:
            found = s.items(s.play("e", plugin="p")["run_id"])["items"][-1]["json"]
            check(secret.name not in found, found)
            check(os.path.exists(f"/proc/{s.pid}/fd/9"), "the server has it")


@test("a_manifest_or_definition_that_is_no_file_does_not_stop_the_start", "")
def no_file():
    with tempfile.TemporaryDirectory(prefix="uar-fifo-") as root:
        os.makedirs(os.path.join(root, "p"))
        os.mkfifo(os.path.join(root, "p", "plugin.json"))
        os.mkfifo(os.path.join(root, "x.json"))
        with Lab(root, agents_dir=root, env={"OPENAI_API_KEY": "for-another-program"}) as s:
            check("plugin.json: not a file" in s.log(), s.log())
            check("file=x.json" in s.log() and "set UAR_MODEL" in s.log(), s.log())


@test("processes_of_a_cancelled_run_are_gone", "RUN-37 RUN-36")
def tree():
    script = RAW + """
import subprocess
child = subprocess.Popen(["sleep", "1000"], start_new_session=True)
say(id=7, method="run.export", params={"run_id": run, "type": "json",
    "json": [os.getpid(), child.pid]})
say(method="run.progress", params={"run_id": run, "progress": 0.5})
while sys.stdin.readline(): pass
signal.pause()
"""
    with lab(script, cancel_grace_seconds=0.1) as s:
        run_id = s.begin("e", plugin="p")
        s.until(run_id, lambda r: r["progress"] == 0.5)
        pids = s.items(run_id)["items"][0]["json"]
        check(all(alive(p) for p in pids), pids)
        s.stop_run(run_id, reason="now")
        r = s.done(run_id)
        equal((r["status"], r["error"]["code"]), ("canceled", "CANCELED"))
        check(not any(alive(p) for p in pids), "left behind", pids)
        check("plugin.ignored_cancel" in s.log())


@test("no_process_outlives_the_server", "")
def server_gone():
    script = RAW + """
import subprocess
child = subprocess.Popen(["sleep", "1000"], start_new_session=True)
say(id=7, method="run.export", params={"run_id": run, "type": "json",
    "json": [os.getpid(), child.pid]})
say(method="run.progress", params={"run_id": run, "progress": 0.5})
signal.pause()
"""
    with lab(script) as s:
        for end in (s.kill, s.stop):
            run_id = s.begin("e", plugin="p")
            s.until(run_id, lambda r: r["progress"] == 0.5)
            pids = s.items(run_id)["items"][0]["json"]
            end()
            wait_until(lambda: not any(alive(p) for p in pids), "the tree is gone")
            s.start()
            equal(s.done(run_id)["error"]["code"], "LOST")


@test("noise_wrong_ids_and_unknown_methods_are_passed_over", "")
def noise():
    script = "print('hello from a library', flush=True)\n" + RAW + """
print("more noise", flush=True)
print("{broken", flush=True)
say(id=1, method="run.export", params={"run_id": "another", "type": "text", "text": "x"})
answer = read()
say(id="strange", method="run.export", params={"run_id": run, "type": "text", "text": "x"})
strange = read()
say(id=5, method="run.fly", params={})
fly = read()
say(id=999, result={})
say(method="run.progress", params={"run_id": run, "progress": 7})
say(method="run.result", params={"run_id": run, "result": [answer["error"]["data"]["code"],
    strange["error"]["code"], fly["error"]["code"]]})
read()
"""
    with lab(script) as s:
        r = s.play("e", plugin="p")
        equal(r["status"], "succeeded", r)
        equal(s.items(r["run_id"])["items"][0]["json"], ["RUN_NOT_RUNNING", -32602, -32601])
        for what in ("plugin.noise", "plugin.foreign_run", "plugin.unasked_reply",
                     "plugin.bad_message"):
            check(what in s.log(), what)


@test("giant_lines_silence_and_wrong_protocols_end_the_process", "ERR-07")
def wires():
    cases = (("e", RAW + "sys.stdout.write('x' * 3000000)\nsys.stdout.flush()\nsignal.pause()\n", {}),
             ("e", "import signal\nsignal.pause()\n", {"start_timeout_seconds": 0.1}),
             ("e", "import sys\nprint('{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":"
                   "{\"protocol\":\"9\"}}', flush=True)\nsys.stdin.read()\n", {}),
             ("e", "import sys\nsys.exit(3)\n", {}))
    for entry, script, manifest in cases:
        with lab(script, **manifest) as s:
            r = s.play(entry, plugin="p")
            equal((r["status"], r["error"]["code"], r["error"]["details"]["retriable"]),
                  ("failed", "TRANSPORT_ERROR", True), r["error"])


@test("a_plugin_cannot_touch_the_run_of_another", "EXP-20")
def foreign():
    root = tempfile.mkdtemp(prefix="uar-plugins-")
    write_plugin(root, {}, WITH_SDK + """
@plugin.entry("e")
def e(ctx, args):
    ctx.run.progress(0.5)
    while not os.path.exists(args["file"]):
        ctx.run.wait_cancelled(0.01)
plugin.run()
""", name="victim")
    write_plugin(root, {}, RAW + """
victim = start["params"]["args"]["victim"]
codes = []
for method, params in (("run.export", {"type": "text", "text": "mine"}), ("run.progress", {"progress": 1}),
                       ("run.upload", {"upload": "u", "offset": 0, "data": ""}),
                       ("run.error", {"message": "gone"}), ("run.result", {"result": 1})):
    say(id=7, method=method, params={"run_id": victim, **params})
    codes.append(read()["error"]["data"]["code"])
say(method="run.result", params={"run_id": run, "result": codes})
read()
""", name="thief")
    with Lab(root) as s:
        victim = s.begin("e", {"file": s.file("gate")}, plugin="victim")
        before = s.until(victim, lambda r: r["progress"] == 0.5)
        thief = s.play("e", {"victim": victim}, plugin="thief")
        equal(s.items(thief["run_id"])["items"][0]["json"], ["FORBIDDEN"] * 5)
        equal(s.get(victim), before, "nothing has changed")
        equal(s.items(victim)["items"], [])
        s.open_gate()
        equal(s.done(victim)["status"], "succeeded")


@test("half_a_line_at_the_end_is_noted_and_dropped", "")
def half_line():
    script = RAW + """
say(method="run.export", params={"run_id": run, "type": "text", "text": "whole"})
sys.stdout.write('{"jsonrpc":"2.0","method":"run.result","params":{"run_id":"' + run + '"')
sys.stdout.flush()
os._exit(0)
"""
    with lab(script) as s:
        run_id = s.begin("e", plugin="p")
        r = s.done(run_id)
        equal((r["status"], r["error"]["code"]), ("failed", "TRANSPORT_ERROR"))
        equal([i["text"] for i in s.items(run_id)["items"]], ["whole"])
        check("plugin.half_line" in s.log() and f"run_id={run_id}" in s.log(), s.log())


@test("a_pool_grows_to_what_the_manifest_allows", "")
def pool():
    script = WITH_SDK + """
@plugin.entry("e")
def e(ctx, args):
    ctx.run.progress(0.5)
    while not os.path.exists(args["file"]):
        ctx.run.wait_cancelled(0.01)
    return os.getpid()
plugin.run()
"""
    with lab(script, processes=3, concurrency=2) as s:
        runs = [s.begin("e", {"file": s.file("gate")}, plugin="p") for _ in range(8)]
        for run_id in runs[:6]:
            s.until(run_id, lambda r: r["progress"] == 0.5)
        equal([s.get(r)["status"] for r in runs[6:]], ["queued"] * 2)
        equal(s.metric("uar_plugin_processes"), 3)
        s.open_gate()
        pids = [s.done(r) and s.items(r)["items"][0]["json"] for r in runs]
        equal(sorted(pids[:6].count(p) for p in set(pids[:6])), [2, 2, 2])


@test("a_process_that_is_stopped_or_closes_its_output_is_ended", "ERR-07")
def dead():
    silent = RAW.replace('say(id=start["id"], result={})\n', "")
    for script, why in ((RAW + "os.close(1)\nsignal.pause()\n", "closed its standard output"),
                        (silent + "os.kill(os.getpid(), signal.SIGSTOP)\n", "did not answer run.start")):
        with lab(script, answer_timeout_seconds=0.2 if script.startswith(silent) else 600) as s:
            r = s.play("e", plugin="p")
            equal((r["status"], r["error"]["code"], r["error"]["details"]["retriable"]),
                  ("failed", "TRANSPORT_ERROR", True), r["error"])
            check(why in r["error"]["message"], r["error"])


@test("bytes_that_are_no_text_do_not_reach_the_log", "")
def bytes_in_log():
    script = RAW + """
sys.stdout.buffer.write(b"noise \\xff\\x00\\xfe\\n")
sys.stdout.buffer.flush()
os.write(2, b"error \\xc3\\n")
say(method="run.result", params={"run_id": run})
read()
"""
    with lab(script) as s:
        equal(s.play("e", plugin="p")["status"], "succeeded")
        wait_until(lambda: "noise \ufffd\\u0000\ufffd" in s.log() and "error \ufffd" in s.log())


@test("of_two_plugins_with_one_id_the_first_by_name_is_used", "")
def same_id():
    root = tempfile.mkdtemp(prefix="uar-plugins-")
    for name, plugin_id in (("c", "twin"), ("b", "twin"), ("a", "zebra"), ("d", "ant")):
        write_plugin(root, {"id": plugin_id, "version": name}, "", name=name)
    with Lab(root, log_level="debug") as s:
        equal([(e["plugin_id"], e["version"]) for e in s.http.get("/plugins").json["entries"]],
              [("ant", "d"), ("twin", "b"), ("zebra", "a")], "listed by id")
        check("c: another plugin, whose folder comes first by name, has the id twin" in s.log(), s.log())
        check("plugins.read" in s.log() and root in s.log(), s.log())
    with Lab(os.path.join(root, "a")) as s:
        check("the folder of plugins is a plugin itself" in s.log(), s.log())


@test("a_result_beyond_the_bounds_of_json_ends_the_run", "")
def beyond():
    script = WITH_SDK + """
@plugin.entry("e")
def e(ctx, args):
    if args["huge"]:
        return 10 ** 400
    x = 0
    for _ in range(70):
        x = [x]
    return x
plugin.run()
"""
    with lab(script) as s:
        for huge, why in ((True, "larger than a double"), (False, "nested too deeply")):
            r = s.play("e", {"huge": huge}, plugin="p")
            equal((r["status"], r["error"]["code"]), ("failed", "PLUGIN_ERROR"), r)
            check(why in r["error"]["message"], r)


@test("a_broken_manifest_is_told_what_is_allowed", "")
def told():
    for manifest, why in (({"id": "uar.mine"}, "/id: ids that begin with uar. or backend. are taken"),
                          ({"id": "My"}, "/id: pattern: the text does not match ^[a-z0-9]"),
                          ({"entries": [{"id": "e", "restart": "never"}]},
                           '/entries/0/restart: enum: must be one of \\"retry\\", \\"fail\\"'),
                          ({"entries": [{"id": "e", "args_schema": {"type": 7}}]},
                           "/entries/0/args_schema/type: ")):
        with lab("", **manifest) as s:
            check(why in s.log(), why, s.log())


@test("a_broken_manifest_harms_nobody", "")
def manifests():
    root = tempfile.mkdtemp(prefix="uar-plugins-")
    write_plugin(root, {"entries": []}, "", name="bad")
    write_plugin(root, {}, WITH_SDK + "plugin.entry('e')(lambda ctx, args: 'fine')\nplugin.run()\n")
    os.makedirs(os.path.join(root, "empty"))
    with Lab(root) as s:
        equal([e["plugin_id"] for e in s.http.get("/plugins").json["entries"]], ["p"])
        check("plugin.left_out" in s.log() and "/entries" in s.log(), s.log())
        equal(s.play("e", plugin="p")["status"], "succeeded")


@test("a_flood_of_items_is_held_back_and_kept", "EXP-12 PERF-04 PERF-06")
def flood():
    script = RAW + """
for i in range(10100):
    say(method="run.export", params={"run_id": run, "type": "text", "text": str(i)})
say(method="run.result", params={"run_id": run})
read()
"""
    with lab(script) as s:
        run_id = s.begin("e", plugin="p")
        r = s.done(run_id)
        equal((r["status"], r["result_ref_count"]), ("succeeded", 10000))
        got, ids, after = [], [], None
        while True:
            page = s.items(run_id, limit=2000, **({"after": after} if after else {}))
            got += [int(i["text"]) for i in page["items"]]
            ids += [i["export_item_id"] for i in page["items"]]
            after = page["next_after"]
            if not after:
                break
        equal(got, list(range(10000)))
        check(s.http.get(r["result_refs_url"]).json == ids, "all of them are the result")
        equal(s.log().count("a run has at most 10000 items"), 1)


main()
