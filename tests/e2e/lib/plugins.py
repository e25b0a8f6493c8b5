"""The run protocol as its callers use it, over a Server with plugins."""
import os
import shutil
from urllib.parse import urlencode

from lib.check import check, equal, wait_until
from lib.server import ROOT, TERMINAL, Server
from lib.sse import Stream

LAB = os.path.join(ROOT, "tests", "e2e", "plugins")


class Lab(Server):
    """A server with the plugins of tests/e2e/plugins, or with scripts written by the test."""

    def __init__(self, plugins=LAB, env=None, **settings):
        super().__init__(env=env, plugins_dir=plugins, **settings)

    def post_run(self, entry, args=None, plugin="lab", headers=None, path="/runs", **more):
        body = {"plugin_id": plugin, "entry_id": entry, "args": args or {}, **more}
        return self.http.post(path, body, headers=headers)

    def begin(self, entry, args=None, **more):
        a = self.post_run(entry, args, **more)
        equal(a.status, 202, a.body)
        check(a.headers["location"] == "/runs/" + a.json["run_id"], a.headers)
        return a.json["run_id"]

    def get(self, run_id):
        a = self.http.get("/runs/" + run_id)
        equal(a.status, 200, a.body)
        return a.json

    def done(self, run_id):
        """The record once the run is over."""
        with self.stream(run_id) as s:
            s.all()
        r = self.get(run_id)
        check(r["status"] in TERMINAL, r)
        return r

    def play(self, entry, args=None, **more):
        return self.done(self.begin(entry, args, **more))

    def until(self, run_id, what):
        """The record once what(record) holds."""
        return wait_until(lambda: (lambda r: r if what(r) else None)(self.get(run_id)))

    def stop_run(self, run_id, **body):
        a = self.http.post(f"/runs/{run_id}/cancel", body)
        equal(a.status, 200, a.body)
        return a.json

    def items(self, run_id, **query):
        a = self.http.get(f"/runs/{run_id}/export" + ("?" + urlencode(query) if query else ""))
        equal(a.status, 200, a.body)
        return a.json

    def channel(self, name, header=None, receive_buffer=None, **query):
        path = f"/channels/{name}" + ("?" + urlencode(query) if query else "")
        return Stream(self.url, path, self.token, {"Last-Event-ID": header} if header else None,
                      receive_buffer)

    def session_stream_all(self, run_id):
        """The session's events up to and with the end of its last turn."""
        with self.session_stream(self.get(run_id)["session_id"]) as stream:
            return stream.until(lambda e: e.data["type"] == "thread.updated" and
                                e.data["payload"]["status"] == "idle")

    def file(self, name):
        return os.path.join(self.root, name)

    def open_gate(self, name="gate"):
        with open(self.file(name), "w"):
            pass

    def file_that_exists(self, name="open"):
        self.open_gate(name)
        return self.file(name)

    def marks(self, name="mark"):
        try:
            with open(self.file(name)) as f:
                return f.read().split()
        except FileNotFoundError:
            return []


def write_plugin(root, manifest, script, name="p"):
    """A folder of plugins with one of them, its program a Python script."""
    import json
    folder = os.path.join(root, name)
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    with open(os.path.join(folder, "plugin.json"), "w") as f:
        json.dump({"id": name, "version": "1", "command": ["python3", "main.py"],
                   "start_timeout_seconds": 600, "answer_timeout_seconds": 600, "entries": [{"id": "e"}], **manifest}, f)
    with open(os.path.join(folder, "main.py"), "w") as f:
        f.write(script)
    return root
