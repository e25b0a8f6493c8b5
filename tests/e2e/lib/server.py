"""Starts, stops, kills and restarts the real program in a directory of its own."""
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
from urllib.parse import urlencode

from lib.check import SAFETY, check, equal, readable, wait_until
from lib.client import Client
from lib.sse import Stream

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", ".."))
BUILD = os.path.join(ROOT, os.environ.get("BUILD", "build"))
UAR = os.path.join(BUILD, "uar")
FIXTURES = os.path.join(ROOT, "fixtures", "streams")
FAULTS = re.compile(r"ERROR: \w+Sanitizer|runtime error: |Assertion .* failed|WARNING: ThreadSan")
TERMINAL = ("succeeded", "failed", "canceled", "timeout")


def clean_environment(home, more=None):
    env = {k: v for k, v in os.environ.items()
           if not k.startswith(("UAR_", "OPENAI_", "SSL_CERT_")) and not k.lower().endswith("_proxy")}
    return {**env, "HOME": home, "XDG_DATA_HOME": home, **(more or {})}


def flags(settings):
    out = []
    for key, value in settings.items():
        out += ["--" + key.replace("_", "-"), str(value)]
    return out


def run_uar(*argv, env=None, input=None, home="/nonexistent"):
    return subprocess.run([UAR, *argv], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          input=input, timeout=SAFETY, env=clean_environment(home, env))


# Limits in time that a slow machine must not meet by chance; a test of one sets its own.
PATIENCE = {"UAR_HEAD_TIMEOUT_SECONDS": "600", "UAR_BODY_TIMEOUT_SECONDS": "3600",
            "UAR_IDLE_TIMEOUT_SECONDS": "3600", "UAR_STALL_TIMEOUT_SECONDS": "3600",
            "UAR_MODEL_IDLE_TIMEOUT_SECONDS": "3600", "UAR_RUN_TIMEOUT_SECONDS": "3600"}


class Server:
    """with Server(heartbeat_seconds=1) as s: ... ends it and looks for faults in its log."""

    def __init__(self, env=None, start=True, data=None, under=(), **settings):
        self.root = tempfile.mkdtemp(prefix="uar-e2e-")
        self.data = data or os.path.join(self.root, "data")
        self.log_path = os.path.join(self.root, "log")
        self.env, self.settings = env or {}, settings
        self.under = list(under)  # a program that starts it
        self.proc = None
        if start:
            self.start()

    def start(self):
        argv = [*self.under, UAR, "serve", "--json", "--data", self.data, *flags(self.settings)]
        own = "config" in self.settings or os.path.exists(os.path.join(self.data, "config.json"))
        patience = {} if own else PATIENCE
        with open(self.log_path, "a") as log:
            self.proc = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=log,
                                         env=clean_environment(self.root, {**patience, **self.env}))
        check(readable(self.proc.stdout), "the server said nothing")
        line = self.proc.stdout.readline()
        check(line, "the server did not start:", self.log())
        hello = json.loads(line)
        check("url" in hello, "the server did not start:", line, self.log())
        self.url, self.token, self.pid = hello["url"], hello["token"], hello["pid"]
        self.link = hello["link"]
        self.http = Client(self.url, self.token)
        return self

    def ready(self):
        """Waits until all definitions are read: before that an unknown agent may still come."""
        wait_until(lambda: self.http.get("/ready").status == 200, "the server is ready")
        return self

    def wait(self):
        status = self.proc.wait(SAFETY)
        self.proc.stdout.close()
        self.proc = None
        return status

    def kill(self):
        self.proc.send_signal(signal.SIGKILL)
        return self.wait()

    def stop(self):
        self.proc.send_signal(signal.SIGTERM)
        return self.wait()

    def restart(self, **settings):
        """kill -9, and again on the same data."""
        self.kill()
        self.settings.update(settings)
        return self.start()

    def log(self):
        with open(self.log_path, errors="replace") as f:
            return f.read()

    def close(self, failed=False):
        try:
            status = self.stop() if self.proc else 0
            log = self.log()
            if failed:
                print("--- log of the server:\n" + log[-6000:])
            check(not FAULTS.search(log), log[-6000:])
            if not failed:
                equal(status, 0, log[-3000:])
                self.check_rules()
        finally:
            shutil.rmtree(self.root, ignore_errors=True)

    def check_rules(self):
        """The log that it left keeps every order rule. What a test damaged is not looked at."""
        if os.path.isfile(os.path.join(self.data, "uar.db")):
            done = run_uar("check", "--log", "--data", self.data)
            check("log: rule" not in done.stderr, done.stderr)

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        try:
            self.close(failed=kind is not None)
        except Exception:
            if kind is None:
                raise

    # --- what users do ---

    def create(self, agent="echo", message="hello", **more):
        """A run that must be accepted; its id."""
        inputs = {"message": message} if message is not None else {}
        inputs.update(more.pop("inputs", {}))
        a = self.http.post("/api/runs", {"agent_id": agent, "inputs": inputs, **more})
        equal(a.status, 202, a.body)
        return a.json["run_id"]

    def record(self, run_id):
        a = self.http.get("/api/runs/" + run_id)
        equal(a.status, 200, a.body)
        return a.json

    def cancel(self, run_id, **body):
        a = self.http.post(f"/api/runs/{run_id}/cancel", body)
        equal(a.status, 200, a.body)
        return a.json

    def stream(self, run_id, header=None, receive_buffer=None, **query):
        path = f"/api/runs/{run_id}/stream" + ("?" + urlencode(query) if query else "")
        headers = {"Last-Event-ID": str(header)} if header is not None else None
        return Stream(self.url, path, self.token, headers, receive_buffer)

    def session_stream(self, session_id, **query):
        path = f"/api/sessions/{session_id}/events" + ("?" + urlencode(query) if query else "")
        return Stream(self.url, path, self.token)

    def events(self, run_id, **query):
        """The whole stream of a run; returns when the run has ended."""
        with self.stream(run_id, **query) as s:
            return s.all()

    def finish(self, run_id):
        """Waits for the run's end; its record."""
        self.events(run_id)
        return self.record(run_id)

    def session_events(self, run_id):
        """The session's log up to where it stands once this run has ended."""
        record = self.finish(run_id)
        over = {"task.completed", "task.failed", "task.cancelled", "task.timed_out", "task.lost"}

        def last(event):
            d = event.data
            return d["type"] in ("turn.completed", "turn.failed") and d["run_id"] == run_id
        with self.session_stream(record["session_id"]) as s:
            events = s.until(last)
        check(over & {e.data["type"] for e in events}, "no task has ended")
        return events

    def resident_kb(self):
        with open(f"/proc/{self.pid}/status") as f:
            return int(re.search(r"VmRSS:\s+(\d+)", f.read())[1])

    def metric(self, name):
        text = self.http.get("/metrics").body.decode()
        found = re.search(rf"^{re.escape(name)} (\d+(?:\.\d+)?)$", text, re.M)
        check(found, f"no metric {name}", text)
        return float(found[1])
