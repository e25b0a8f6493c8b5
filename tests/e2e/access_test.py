#!/usr/bin/env python3
"""Who gets in: every route against every wrong credential, name and origin."""
import json
import os
import re
import signal
import socket
import stat
import subprocess

from lib import Server, check, connect, equal, main, refused, run_uar, test
from lib.check import readable
from lib.client import Answer, Client, host_of
from lib.server import ROOT, UAR, clean_environment

ID = "01a1e106-d68b-740e-8cdd-a8031c7b3c19"


# Written by hand: a row of route.def that says OPEN by mistake is not listed here and fails.
OPEN_ROUTES = {("GET", "/.well-known/agent-card.json"), ("GET", "/.well-known/agent.json"),  # cards are public
               ("GET", "/a2a/:agent_id/.well-known/agent-card.json"), ("GET", "/a2a/:agent_id/.well-known/agent.json"),
               ("GET", "/api/mcp/oauth/callback"),  # a browser comes back with a `state` that counts once
               ("GET", "/"), ("GET", "/ui"), ("GET", "/ui/:view"), ("GET", "/ui/:view/:id"), ("GET", "/ui/:view/:id/:part"),
               ("GET", "/page/:file"), ("GET", "/health"), ("POST", "/api/link")}


def routes():
    """[(method, path, open, takes a body)]; paths and bodies are those of the server's own table."""
    with open(os.path.join(ROOT, "src", "gate", "route.def")) as f:
        rows = re.findall(r'^R\((\w+), "([^"]+)", \w+, \w+, (\w+),', f.read(), re.M)
    check(len(rows) >= 14, rows)
    check(OPEN_ROUTES <= {(m, p) for m, p, _ in rows}, rows)
    return [(m, re.sub(r"(?<=/):\w+", ID, p), (m, p) in OPEN_ROUTES, body in ("JSON", "MAYBE", "BYTES"))
            for m, p, body in rows]


def head_only(s, method, path, body, headers):
    """Sends a head that announces a body and no byte of it: what is refused is refused unread."""
    h = {"Host": host_of(s.url), "Authorization": "Bearer " + s.token, **headers}
    if body:
        h = {"Content-Type": "application/json", "Content-Length": "1000", **h}
    text = f"{method} {path} HTTP/1.1\r\n"
    text += "".join(f"{k}: {v}\r\n" for k, v in h.items() if v is not None) + "\r\n"
    with connect(s.url) as sock:
        sock.sendall(text.encode())
        f = sock.makefile("rb")
        status = int(f.readline().split()[1])
        fields = []
        while (line := f.readline()).strip():
            k, _, v = line.decode().partition(":")
            fields.append((k, v.strip()))
        length = int(dict((k.lower(), v) for k, v in fields).get("content-length", 0))
        return Answer(status, fields, f.read(length))


@test("every_route_refuses_wrong_credentials", "SEC-01 CFG-02 ERR-08")
def credentials():
    with Server() as s:
        t = s.token
        wrong = [None, "", "Bearer", "Bearer ", "Bearer x", "Bearer " + t[:-1], "Bearer " + t + "0",
                 "Bearer " + t.upper(), "Basic " + t, "Token " + t, t, "Bearer  " + t[:10],
                 "Bearer " + t + " " + t, "Bearer\t" + t[1:]]
        for method, path, is_open, body in routes():
            if is_open:
                continue
            for given in wrong:
                denied(path, head_only(s, method, path, body, {"Authorization": given}), 401,
                       "UNAUTHORIZED")
            for query in (f"?token={t}", f"?access_token={t}", f"?authorization=Bearer%20{t}"):
                denied(path, head_only(s, method, path + query, body, {"Authorization": None}), 401,
                       "UNAUTHORIZED")
            denied(path, head_only(s, method, path, body, {"Authorization": None,
                                                           "Cookie": "token=" + t}), 401, "UNAUTHORIZED")
        for path in ("/nothing", "/api", "/api/runs/x/y/z"):
            refused(head_only(s, "GET", path, False, {"Authorization": None}), 401, "UNAUTHORIZED")
        equal(s.http.get("/api/runs", headers={"Authorization": "bearer " + t}).status, 200)


def denied(path, answer, status, code, where=None):
    """A refusal; the routes of another API have its form."""
    if path.startswith("/v1/"):
        equal((answer.status, answer.json["error"]["code"]), (status, code))
    elif path.startswith("/a2a/"):
        equal((answer.status, answer.json["error"]["code"], answer.json["error"]["details"][0]["reason"]), (status, status, code))
    else:
        refused(answer, status, code, where)


@test("every_route_refuses_foreign_names_and_pages", "SEC-01")
def foreign():
    with Server() as s:
        port = s.url.rsplit(":", 1)[1]
        hosts = ["evil.example", "127.0.0.1.evil.example:" + port, "evil.example:" + port,
                 "localhost.evil.example", "2130706433", "[::2]:" + port, "127.0.0.2"]
        origins = ["https://evil.example", "null", "http://evil.example:" + port, "file://",
                   "http://localhost.evil.example", "http://127.0.0.1", "http://127.0.0.1:1",
                   f"http://127.0.0.1:{port}.evil.example", "chrome-extension://abc"]
        for method, path, _, body in routes():
            for host in hosts:
                denied(path, head_only(s, method, path, body, {"Host": host}), 403, "FORBIDDEN", "Host")
            for origin in origins:
                denied(path, head_only(s, method, path, body, {"Origin": origin}), 403, "FORBIDDEN",
                       "Origin")
        for host in ("127.0.0.1:" + port, "localhost:" + port, "LOCALHOST", "[::1]:" + port):
            equal(s.http.get("/api/runs", headers={"Host": host}).status, 200)
        a = s.http.get("/api/runs", headers={"Origin": s.url})
        equal((a.status, [k for k in a.headers if k.startswith("access-control")]), (200, []))
    with Server(allowed_hosts="uar.example", allowed_origins="https://app.example") as s:
        equal(s.http.get("/api/runs", headers={"Host": "uar.example"}).status, 200)
        equal(s.http.get("/api/runs", headers={"Origin": "https://app.example"}).status, 200)
        equal(s.http.get("/api/runs", headers={"Origin": "https://app.example.evil"}).status, 403)


def has_ipv6():
    try:
        with socket.socket(socket.AF_INET6) as s:
            s.bind(("::", 0))
            return True
    except OSError:
        return False


def speaks_to_itself(s):
    """The page at the printed link and the commands on this machine get through."""
    equal(s.http.get("/", token=False).status, 200)
    code = s.link.partition("#code=")[2]
    check(s.link.startswith(s.url + "/#code="), s.link)
    a = s.http.post("/api/link", {"code": code}, token=False, headers={"Origin": s.url})
    equal((a.status, a.json), (200, {"token": s.token}))
    out = run_uar("health", "--json", "--data", s.ready().data, home=s.root)
    equal((out.returncode, json.loads(out.stdout)),
          (0, {"url": s.url, "alive": True, "ready": True}), out)
    out = run_uar("run", "echo", "it is me", "--data", s.data, home=s.root)
    check(out.returncode == 0 and "it is me" in out.stdout, out)
    for host in ("evil.example", "evil.example:" + s.url.rsplit(":", 1)[1]):
        refused(s.http.get("/api/runs", headers={"Host": host}), 403, "FORBIDDEN", "Host")


OPEN = re.compile(r"^.*server\.open_to_network.*$", re.M)


@test("the_bound_address_is_known", "")
def bound():
    """Nobody else can connect to 127.0.0.2, and yet it is no name that every server goes by."""
    with Server(listen="127.0.0.2:0", log_json="true") as s:
        port = s.url.rsplit(":", 1)[1]
        equal(s.url, f"http://127.0.0.2:{port}")
        speaks_to_itself(s)
        for host in ("127.0.0.2", "localhost:" + port):
            equal(s.http.get("/api/runs", headers={"Host": host}).status, 200)
        for host in ("192.0.2.77:" + port, "127.0.0.3"):
            refused(s.http.get("/api/runs", headers={"Host": host}), 403, "FORBIDDEN", "Host")
        refused(s.http.get("/api/runs", headers={"Origin": "http://127.0.0.1:" + port}), 403,
                "FORBIDDEN", "Origin")
        check(not OPEN.search(s.log()), s.log())
    with Server(log_json="true") as s:
        check(not OPEN.search(s.log()), s.log())


@test("a_wildcard_is_known_by_any_address_and_no_name", "")
def wildcard():
    for listen in ["0.0.0.0:0"] + ["[::]:0"] * has_ipv6():
        with Server(listen=listen, log_json="true") as s:
            port = s.url.rsplit(":", 1)[1]
            check(s.url in (f"http://127.0.0.1:{port}", f"http://[::1]:{port}"), s.url)
            with open(os.path.join(s.data, "server.json")) as f:
                equal(json.load(f)["url"], s.url)
            speaks_to_itself(s)
            for host in ("192.0.2.77:" + port, "[2001:db8::7]"):
                equal(s.http.get("/api/runs", headers={"Host": host}).status, 200)
                equal(s.http.get("/api/runs", headers={"Host": host, "Origin": "http://" + host})
                      .status, 200)
                refused(s.http.get("/api/runs", headers={"Host": host, "Origin": s.url}), 403,
                        "FORBIDDEN", "Origin")
            said = json.loads(OPEN.search(s.log())[0])
            equal((said["level"], said["address"]), ("warn", listen[:-1] + port))
            check("TLS" in said["text"], said)


@test("health_is_open_and_says_nothing", "SEC-01")
def health():
    with Server() as s:
        a = s.http.get("/health", token=False)
        equal((a.status, a.json), (200, {"status": "ok"}))
        equal(s.ready().http.get("/ready").json, {"status": "ready"})
        equal(s.http.send("HEAD", "/health", token=False).status, 200)
        equal(sorted(s.http.get("/version").json),
              ["event_schema_version", "incarnation", "name", "runtime_id", "version"])


@test("no_state_changes_without_a_json_body", "SEC-01")
def simple_requests():
    """What a foreign page can send without asking first never reaches a handler."""
    with Server() as s:
        body = json.dumps({"agent_id": "echo", "inputs": {"message": "x"}}).encode()
        for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
            refused(s.http.post("/api/runs", body, headers={"Content-Type": kind}), 415,
                    "UNSUPPORTED_MEDIA_TYPE")
        equal(s.http.get("/api/runs").json["runs"], [])


def serve_for_people(data):
    proc = subprocess.Popen([UAR, "serve", "--data", data], stdout=subprocess.PIPE,
                            stderr=subprocess.DEVNULL, text=True, env=clean_environment(data))
    check(readable(proc.stdout), "said nothing")
    for line in proc.stdout:
        if found := re.search(r"(http://\S+?)/?#code=(\S+)", line):
            return proc, found[1], found[2]
    raise AssertionError("no link was printed")


@test("the_link_works_once", "SEC-01")
def link():
    with Server() as s:
        s.stop()
        proc, url, code = serve_for_people(s.data)
        try:
            http = Client(url, "")
            check(s.token not in code and len(code) >= 32, "a code, not the token")
            for wrong in ("", "x", code[:-1], code + "x", code[::-1]):
                refused(http.post("/api/link", {"code": wrong}, token=False), 401, "UNAUTHORIZED")
            refused(http.post("/api/link", {"code": code}, token=False,
                              headers={"Origin": "https://evil.example"}), 403, "FORBIDDEN")
            refused(http.post("/api/link", {"code": "x" * 5000}, token=False), 413,
                    "PAYLOAD_TOO_LARGE")
            a = http.post("/api/link", {"code": code}, token=False, headers={"Origin": url})
            equal((a.status, a.json), (200, {"token": s.token}))
            equal(a.headers["cache-control"], "no-store")
            refused(http.post("/api/link", {"code": code}, token=False), 401, "UNAUTHORIZED")
            refused(http.post("/api/link", {"code": ""}, token=False), 401, "UNAUTHORIZED")
        finally:
            proc.send_signal(signal.SIGTERM)
            equal(proc.wait(60), 0)
            proc.stdout.close()


@test("secrets_on_disk_are_the_owners_alone", "SEC-01 CFG-02 ID-01")
def files():
    with Server() as s:
        def mode(name):
            return stat.S_IMODE(os.stat(os.path.join(s.data, name)).st_mode)
        equal((mode("."), mode("token"), mode("server.json")), (0o700, 0o600, 0o600))
        with open(os.path.join(s.data, "token")) as f:
            equal(f.read().strip(), s.token)
        check(len(s.token) >= 32, s.token)
        check(s.url.startswith("http://127.0.0.1:") and int(s.url.rsplit(":", 1)[1]) > 1023, s.url)
        with open(os.path.join(s.data, "server.json")) as f:
            check(s.token not in f.read(), "the token is in server.json")
        token, runtime = s.token, s.http.get("/version").json["runtime_id"]
        s.restart()
        equal((s.token, s.http.get("/version").json["runtime_id"]), (token, runtime))
        check(token not in s.log(), "the token is in the log")
    with Server(env={"UAR_TOKEN": "a-token-of-my-own-choosing-1234"}) as s:
        equal(s.token, "a-token-of-my-own-choosing-1234")
        equal(s.http.get("/api/runs").status, 200)


@test("one_directory_one_server", "CFG-04")
def second_server():
    with Server() as s:
        s.ready()
        second = run_uar("serve", "--json", "--data", s.data, home=s.root)
        equal(second.returncode, 1)
        told = json.loads(second.stdout)  # who asks for JSON is told in JSON, too
        equal((told["code"], told["in_use"]), ("UNAVAILABLE", True))
        check("in use" in second.stderr and "in use" in told["error"], second)
        equal(s.ready().finish(s.create("echo", "still mine"))["status"], "succeeded")


@test("bad_configuration_is_refused_with_the_reason", "CFG-04")
def configuration():
    with Server() as s:
        s.stop()
        path = os.path.join(s.data, "config.json")
        cases = [('{"heartbeat_second": 5}', "heartbeat_seconds"), ('{"listen": 5}', "listen"),
                 ('{"heartbeat_seconds": "soon"}', "heartbeat_seconds"), ("{", path),
                 ('{"log_level": "loud"}', "log_level"), ('{"readers": 0}', "readers"),
                 ('{"listen": "nowhere"}', "listen"), ("[]", path)]
        for text, named in cases:
            with open(path, "w") as f:
                f.write(text)
            for verb in (["serve", "--json"], ["check"]):
                out = run_uar(*verb, "--data", s.data, home=s.root)
                check(out.returncode != 0 and named in out.stderr + out.stdout, text, out)
        with open(path, "w") as f:
            f.write('{"heartbeat_second": 5}')
        check("did you mean" in run_uar("check", "--data", s.data, home=s.root).stderr)
        os.unlink(path)
        out = run_uar("serve", "--data", s.data, "--heartbeat-second", "1", home=s.root)
        check(out.returncode == 2 and "--heartbeat-seconds" in out.stderr, out)
        out = run_uar("serve", "--data", s.data, env={"UAR_LOG_LEVEL": "loud"}, home=s.root)
        check(out.returncode != 0 and "UAR_LOG_LEVEL" in out.stderr, out)


@test("pages_of_allowed_origins_may_read_answers", "")
def cross_origin():
    """CORS: a preflight needs no token, an answer names the origin; other origins get nothing."""
    with Server(allowed_origins="https://app.example") as s:
        asks = {"Origin": "https://app.example", "Access-Control-Request-Method": "POST",
                "Access-Control-Request-Headers": "authorization, content-type"}
        for path in ("/api/ag-ui/agents/demo", "/v1/chat/completions", "/not/there"):
            a = s.http.send("OPTIONS", path, token=False, headers=asks)
            equal((a.status, a.headers["access-control-allow-origin"]), (204, "https://app.example"))
            check("POST" in a.headers["access-control-allow-methods"], a.headers)
            for name in ("authorization", "x-stainless-os", "x-stainless-retry-count"):
                check(name in a.headers["access-control-allow-headers"].lower(), a.headers)
            equal(a.headers["vary"], "Origin")
            for other in ("https://evil.example", s.url):
                a = s.http.send("OPTIONS", path, token=False, headers={**asks, "Origin": other})
                check(a.status in (401, 403) and "access-control-allow-origin" not in a.headers, a.headers)
        for path, token, status in (("/api/runs", True, 200), ("/api/runs", False, 401), ("/api/nothing", True, 404)):
            a = s.http.get(path, token=token, headers={"Origin": "https://app.example"})
            equal((a.status, a.headers["access-control-allow-origin"]), (status, "https://app.example"))
            check("access-control-allow-origin" not in s.http.get(path, token=token).headers, "nobody asked")
        run_id = s.create("demo", "hi")
        a = s.http.get(f"/api/runs/{run_id}/stream", headers={"Origin": "https://app.example"})
        equal(a.headers["access-control-allow-origin"], "https://app.example")


main()
