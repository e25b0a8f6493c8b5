#!/usr/bin/env python3
"""Plugins whose manifests change while the server is at work."""
import json
import os
import shutil
import tempfile

from lib import check, equal, main, refused, test, wait_until
from lib.plugins import Lab, write_plugin
from lib.server import ROOT

SDK = os.path.join(ROOT, "sdk", "python")
WITH_SDK = f"import os, sys, time\nsys.path.insert(0, {SDK!r})\n" \
           "from uar_plugin import Plugin\nplugin = Plugin()\n"


@test("plugins_follow_their_manifests", "")
def reload():
    script = WITH_SDK + """
@plugin.entry("e")
@plugin.entry("f")
def e(ctx, args):
    ctx.run.progress(0.5)
    while args.get("file") and not os.path.exists(args["file"]):
        ctx.run.check_cancelled()
        time.sleep(0.01)
    return sys.argv[1]
plugin.run()
"""
    def write(version, name="p", **more):
        manifest = {"id": name, "version": version, "command": ["python3", "main.py", version],
                    "entries": [{"id": "e"}], **more}
        path = os.path.join(root, name, "plugin.json")
        with open(path + ".new", "w") as f:
            json.dump(manifest, f)
        os.rename(path + ".new", path)

    def installed(want):
        wait_until(lambda: {(e["plugin_id"], e["entry_id"], e["version"])
                            for e in s.http.get("/plugins").json["entries"]} == want, want)

    root = write_plugin(tempfile.mkdtemp(prefix="uar-plugins-"), {"command": ["python3", "main.py", "1"]}, script)
    with Lab(root) as s:
        def result(run_id):
            equal(s.done(run_id)["status"], "succeeded", s.get(run_id))
            return s.items(run_id)["items"][-1]["json"]

        equal(result(s.begin("e", plugin="p")), "1")
        at_work = s.begin("e", {"file": s.file("gate")}, plugin="p")
        s.until(at_work, lambda r: r["progress"])
        waits, misfits = s.begin("e", {"file": "/"}, plugin="p"), s.begin("e", plugin="p")
        write("2", entries=[{"id": "e", "args_schema": {"required": ["file"]}}, {"id": "f"}])
        installed({("p", "e", "2"), ("p", "f", "2")})
        equal(result(waits), "2", "one that waited for a place goes to the new one")
        r = s.done(misfits)
        equal((r["status"], r["error"]["code"], r["error"]["details"]["retriable"]), ("failed", "VALIDATION_ERROR", False))
        check("/args" in r["error"]["message"] and "file" in r["error"]["message"] and "has changed" in r["error"]["message"], r)
        equal(result(s.begin("f", plugin="p")), "2")
        refused(s.post_run("e", plugin="p"), 400, "VALIDATION_ERROR")
        equal(s.get(at_work)["status"], "running")
        s.open_gate()
        equal(result(at_work), "1", "one at work goes on where it is")
        with open(os.path.join(root, "p", "plugin.json"), "w") as f:
            f.write("{")
        wait_until(lambda: "plugin.left_out" in s.log(), "a broken one is told of")
        equal(result(s.begin("f", plugin="p")), "2", "and changes nothing")
        os.makedirs(os.path.join(root, "q"))
        shutil.copy(os.path.join(root, "p", "main.py"), os.path.join(root, "q"))
        write("1", "q")
        installed({("p", "e", "2"), ("p", "f", "2"), ("q", "e", "1")})
        equal(result(s.begin("e", plugin="q")), "1")
        busy = s.begin("e", {"file": s.file("never")}, plugin="q")
        s.until(busy, lambda r: r["progress"])
        late = s.begin("e", plugin="q")
        shutil.rmtree(os.path.join(root, "q"))
        installed({("p", "e", "2"), ("p", "f", "2")})
        refused(s.post_run("e", plugin="q"), 404, "NOT_FOUND")
        r = s.done(late)
        equal((r["status"], r["error"]["code"]), ("failed", "NOT_FOUND"))
        s.stop_run(busy)
        equal(s.done(busy)["status"], "canceled")
        wait_until(lambda: s.metric("uar_plugin_processes") <= 1, "the process of what is gone has left")


main()
