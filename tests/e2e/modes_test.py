#!/usr/bin/env python3
"""Where a server may stand: open to a network behind TLS, without any network, without a provider."""
import http.client
import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess

from lib import (BUILD, FIXTURES, ROOT, SAFETY, UAR, Client, Provider, Server, Skip, Stream, check, check_run_stream, equal,
                 main, test, text_of)
from lib.client import Answer
from lib.server import clean_environment
from lib.tls import Certificates, Relay

ID = "01a1e106-d68b-740e-8cdd-a8031c7b3c19"
NAME = "uar.example"


def routes():
    """[(method, path)] of the table that the server is made of, with an id that nobody has."""
    with open(os.path.join(ROOT, "src", "gate", "route.def"), encoding="utf-8") as f:
        rows = re.findall(r'^R\((\w+), "([^"]+)"', f.read(), re.M)
    check(len(rows) >= 20, rows)
    return [(method, re.sub(r":\w+", ID, path)) for method, path in rows]


class Outside:
    """A client on the other side of an ingress that ends TLS and passes on plain HTTP."""

    def __init__(self, port, authority, token):
        self.port, self.token = port, token
        self.context = ssl.create_default_context(cafile=authority)

    def open(self, method, path, body=None, token=True):
        conn = http.client.HTTPSConnection(NAME, self.port, timeout=SAFETY, context=self.context)
        plain = socket.create_connection(("127.0.0.1", self.port), SAFETY)
        conn.sock = self.context.wrap_socket(plain, server_hostname=NAME)
        headers = {"Authorization": "Bearer " + self.token} if token else {}
        if body is not None:
            headers["Content-Type"] = "application/json"
        conn.request(method, path, json.dumps(body) if body is not None else None, headers)
        return conn

    def send(self, method, path, body=None, token=True):
        conn = self.open(method, path, body, token)
        try:
            r = conn.getresponse()
            return Answer(r.status, r.getheaders(), r.read())
        finally:
            conn.close()


def shape(answer):
    """What must not depend on where the server stands."""
    kind = answer.headers.get("content-type")
    return answer.status, kind, answer.json.get("code") if kind == "application/problem+json" and answer.body else None


@test("an_open_server_behind_tls_has_the_same_handlers", "CFG-03 API-17")
def cloud():
    with Certificates() as c:
        authority = c.authority("ours")
        with Server(listen="0.0.0.0:0", allowed_hosts=NAME) as s, Server() as local:
            port = int(s.url.rsplit(":", 1)[1])
            with open("/proc/net/tcp", encoding="ascii") as f:
                bound = {line.split()[1] for line in f.readlines()[1:] if line.split()[3] == "0A"}
            check(f"00000000:{port:04X}" in bound, "it listens on every address of the machine", bound)
            with Relay(port, c.server(by="ours", of="DNS:" + NAME)) as ingress:
                outside = Outside(ingress.port, authority, s.token)
                served = {path for _, path in routes()}
                check({"/api/runs", "/mcp", "/api/mcp/sessions", "/api/a2a/inbox"} <= served, served)
                for method, path in routes():
                    if path.startswith(("/channels/", "/api/a2a/stream/", "/api/admin/log")):
                        method = "HEAD"  # a stream without an end; that of a run is read below
                    body = {} if method == "POST" else None
                    for token in (True, False):
                        equal(shape(outside.send(method, path, body, token)),
                              shape(local.http.send(method, path, body, token=token)), f"{method} {path}")
                made = outside.send("POST", "/api/runs", {"agent_id": "echo", "inputs": {"message": "hello"}})
                equal(made.status, 202, made.body)
                conn = outside.open("GET", made.json["stream_url"])
                r = conn.getresponse()
                equal((r.status, r.getheader("content-type")), (200, "text/event-stream; charset=utf-8"))
                check(b'"text_delta":"hello"' in r.read(), "the stream comes through")
                conn.close()
                equal(outside.send("GET", "/api/runs/" + made.json["run_id"]).json["status"], "succeeded")


INSIDE = """
import json, os, subprocess, sys
uar, data = sys.argv[1:]
def say(*argv):
    p = subprocess.run([uar, *argv, "--data", data], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    return [p.returncode, p.stdout, p.stderr]
server = subprocess.Popen([uar, "serve", "--json", "--data", data, "--listen", "unix:" + data + "/s"],
                          stdout=subprocess.PIPE, text=True)
server.stdout.readline()
with open("/proc/net/dev") as f:
    devices = [line.split(":")[0].strip() for line in f if ":" in line]
out = {"devices": devices, "run": say("run", "echo", "hello"), "tool": say("run", "tools", 'tool fs.list {"path": "."}'),
       "runs": say("runs", "--json")}
server.terminate()
out["status"] = server.wait()
print(json.dumps(out))
"""


@test("without_any_network_everything_of_ones_own_works", "CFG-07")
def offline():
    if not shutil.which("unshare") or subprocess.run(["unshare", "-rn", "true"], check=False).returncode:
        raise Skip("no network namespace may be made here")
    with Server(start=False) as s:
        p = subprocess.run(["unshare", "-rn", "python3", "-c", INSIDE, UAR, s.data], stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, text=True, timeout=SAFETY, check=False,
                           env={**os.environ, "HOME": s.root})
        check(p.returncode == 0, p.stderr)
        got = json.loads(p.stdout)
        equal(got["devices"], ["lo"], "there is a network")
        equal((got["run"][:2], got["status"]), ([0, "hello\n"], 0), got)
        check(got["tool"][0] == 0 and "internal__fs_list said" in got["tool"][1], got["tool"])
        check(os.path.isfile(os.path.join(s.data, "uar.db")), "the database is a file of its own")
        s.start()  # the same data, with a network again
        runs = s.http.get("/api/runs").json["runs"]
        equal([r["status"] for r in runs], ["succeeded"] * 2)
        equal(text_of(s.events(runs[-1]["run_id"])), "hello")


@test("a_live_provider_is_a_choice", "PROV-08")
def without_provider():
    needed = subprocess.run(["readelf", "-d", UAR], stdout=subprocess.PIPE, text=True, check=False).stdout
    check("libuv" in needed and "libcurl" not in needed, "the program needs the library of its provider", needed)
    with Server(fixtures_dir=FIXTURES) as s:
        names = [a["agent_id"] for a in s.http.get("/api/agents").json["agents"]]
        check({"echo", "demo", "fixture"} <= set(names), names)
        s.ready()
        for name in sorted(f.removesuffix(".jsonl") for f in os.listdir(FIXTURES) if f.endswith(".jsonl")):
            run_id = s.create("fixture", None, inputs={"fixture": name, "pace": "full"})
            check_run_stream(s.events(run_id), run_id)
        equal(s.finish(s.create("demo", "hi"))["status"], "succeeded")
        asked = [e.data["payload"] for e in s.session_events(s.create("assistant", "hi"))
                 if e.data["type"] == "model.requested"]
        equal([x["provider"] for x in asked], ["scripted"], "the one that needs nobody")
        with open(f"/proc/{s.pid}/maps", encoding="utf-8") as f:
            check("libcurl" not in f.read(), "it is loaded, and nobody was called")
    with Provider() as p, Server(env=p.env("hello")) as s:  # and when there is one it is used
        equal(s.finish(s.create("assistant", "hi"))["status"], "succeeded")
        equal(p.stats()["requests"], 1)


@test("the_command_that_runs_the_server_serves_streams", "BLD-02")
def make_run():
    """`make run` of this tree, as somebody types it who has just fetched it."""
    build = os.path.relpath(BUILD, ROOT)
    how = ["make", "--no-print-directory", "run", "BUILD=" + build]
    how += ["SAN=" + os.path.basename(build)] if build.endswith(("asan", "tsan")) else []
    with Server(start=False) as s:
        env = clean_environment(s.root, {"UAR_DATA": s.data})
        with open(s.log_path, "w") as log, \
                subprocess.Popen(how, cwd=ROOT, stdout=subprocess.PIPE, stderr=log, text=True, env=env) as proc:
            said = []
            link = next((m[0] for m in (re.search(r"http://\S+", said.append(line) or line) for line in proc.stdout) if m), None)
            check(link, "it printed no link", said)
            with open(os.path.join(s.data, "server.json"), encoding="utf-8") as f:
                hello = json.load(f)
            try:
                with open(os.path.join(s.data, "token"), encoding="utf-8") as f:
                    s.token = f.read().strip()
                check(link.startswith(hello["url"]), link, hello)
                s.url, s.http = hello["url"], Client(hello["url"], s.token)
                run_id = s.create("echo", "hello")
                equal(text_of(s.events(run_id)), "hello")
                equal(s.session_events(run_id)[0].data["type"], "session.created")
                with Stream(s.url, "/api/fixtures/tools/stream?pace=full", s.token) as stream:
                    check(stream.all(), "no fixture is served")
            finally:
                os.kill(hello["pid"], signal.SIGTERM)  # make waits for it
            proc.stdout.read()
            equal(proc.wait(SAFETY), 0, said)


@test("the_command_that_runs_all_tests_leaves_none_out", "BLD-02")
def make_test():
    """What `make test` starts is what CI starts, and each test file of the tree is in one of its stages."""
    def told(*argv):
        p = subprocess.run(argv, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
        equal(p.returncode, 0, argv)
        return p.stdout
    check("tools/test-all" in told("make", "-n", "test"))
    with open(os.path.join(ROOT, ".ci", "run"), encoding="utf-8") as f:
        check(re.search(r"^make .*\btest\b", f.read(), re.M), "CI runs something else")
    planned = told("make", "-n", "unit") + told("make", "-n", "SAN=asan", "unit") + told("make", "-n", "e2e") + \
        told("make", "-n", "SAN=asan", "e2e") + told("make", "-n", "SAN=", "e2e-plain")
    for top in ("src", "tests/sim", "tests/e2e"):
        for folder, _, names in os.walk(os.path.join(ROOT, top)):
            for name in names:
                path = os.path.relpath(os.path.join(folder, name), ROOT)
                if name.endswith("_test.c"):
                    check("tests/" + path.removesuffix(".c") in planned, path, "is in no stage")
                elif name.endswith("_test.py"):
                    check(path in planned, path, "is in no stage")


main()
