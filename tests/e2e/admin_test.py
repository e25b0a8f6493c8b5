#!/usr/bin/env python3
"""What who runs the server looks at: storage, the live log, a Host that is not known, the link as a QR code."""
import json
import os
import signal
import socket
import struct
import subprocess
import tempfile

from lib import ROOT, Provider, Server, Stream, check, equal, main, npm, refused, run_uar, test

READ = """
const jsQR = require(process.argv[2]);
const rows = JSON.parse(require('fs').readFileSync(process.argv[3]));
const scale = 4, w = rows[0].length * scale, h = rows.length * scale;
const px = new Uint8ClampedArray(w * h * 4);
for (let y = 0; y < h; y++) for (let x = 0; x < w; x++) {
  const v = rows[(y / scale) | 0][(x / scale) | 0] ? 0 : 255, i = (y * w + x) * 4;
  px[i] = px[i + 1] = px[i + 2] = v; px[i + 3] = 255;
}
const found = jsQR(px, w, h);
process.stdout.write(found ? found.data : '');
"""
HALVES = {"█": (0, 0), "▀": (0, 1), "▄": (1, 0), " ": (1, 1)}


def modules(lines):
    """Half blocks back to rows of dark (1) and light (0)."""
    rows = []
    for line in lines:
        rows.append([HALVES[c][0] for c in line])
        rows.append([HALVES[c][1] for c in line])
    return rows


def scanned(rows):
    with tempfile.TemporaryDirectory() as d:
        script, data = os.path.join(d, "read.cjs"), os.path.join(d, "rows.json")
        with open(script, "w") as f:
            f.write(READ)
        with open(data, "w") as f:
            json.dump(rows, f)
        where = os.path.join(npm.modules("qr"), "jsqr")
        return subprocess.run([npm.node(), script, where, data], capture_output=True, check=True).stdout.decode()


@test("storage_is_shown_to_its_owner", "")
def storage():
    with Server() as s:
        s.finish(s.create("echo", "x" * 100000))
        a = s.http.get("/api/admin/storage")
        equal(a.status, 200, a.body)
        d = a.json
        equal((d["health"], d["complete"], os.path.realpath(d["data_dir"])), ("fine", True, os.path.realpath(s.data)))
        check(d["database_bytes"] + d["write_ahead_bytes"] > 4096 and d["free_bytes"] > 0 and d["commits"] > 0, d)
        check(d["total_bytes"] >= d["free_bytes"] and d["files"] > 1, d)
        equal(s.http.get("/api/admin/storage", token=False).status, 401)
        equal(s.http.get("/api/admin/log", token=False).status, 401)


@test("log_is_followed_live", "")
def log():
    with Server(log_level="debug") as s:
        with Stream(s.url, "/api/admin/log", s.token) as lines:
            with open(os.path.join(s.data, "config.json"), "w") as f:
                f.write("{broken")
            os.kill(s.proc.pid, signal.SIGHUP)  # reads its settings again, and says that it cannot
            seen = []
            for e in lines:
                seen.append((int(e.id), e.data["line"]))
                if "config.refused" in e.data["line"]:
                    break
        numbers = [n for n, _ in seen]
        equal(numbers, sorted(set(numbers)))
        with Stream(s.url, f"/api/admin/log?after={numbers[-1] - 1}", s.token) as again:
            e = next(iter(again))
            equal((int(e.id), e.data["line"]), seen[-1])


@test("settings_are_shown_without_secrets", "")
def settings():
    servers = {"notes": {"command": "cat", "env": {"KEY": "canary-of-a-server"}}}
    with Server(env={"UAR_MCP_SERVERS": json.dumps(servers), "OPENAI_API_KEY": "canary-of-a-key"}, log_level="warn") as s:
        a = s.http.get("/api/admin/settings")
        equal(a.status, 200, a.body)
        check(b"canary" not in a.body and s.token.encode() not in a.body, a.body)
        of = {x["name"]: x for x in a.json["settings"]}
        equal([of["log_level"][k] for k in ("value", "source", "where", "reloadable")], ["warn", "flag", "--log-level", True])
        equal((of["mcp_servers"]["value"], of["openai_api_key"]["set"], of["token"]["set"]), (["notes"], True, False))
        limits = {(x["room"], x["name"]): x["value"] for x in a.json["limits"]}
        equal(limits[("base", "LOG_KEPT")], 1000)
        with open(os.path.join(ROOT, "docs", "limits.md")) as f:
            rows = [line for line in f if line.startswith("| `")]
        equal(len(limits), len(rows))
        equal(s.http.get("/api/admin/settings", token=False).status, 401)


@test("models_show_how_their_calls_went", "")
def models():
    with Provider() as p, Server(env={**p.env("hello"), "UAR_MODEL_RETRIES": "0"}) as s:
        def row():
            return {m["provider"]: m for m in s.http.get("/api/models").json["providers"]}["openai"]
        equal((row()["dialect"], row()["url"], row()["models"]), ("openai_chat", p.url + "/v1/chat/completions", []))
        equal(s.http.get("/api/models").json["default"], {"provider": "openai", "model": "hello"})
        s.finish(s.create("assistant", "hi"))
        m = row()["models"][0]
        equal([m[k] for k in ("model", "health", "calls", "failures", "known")], ["hello", "fine", 1, 0, False])
        equal(len(m["first_token_ms"]), 1)
        check("last_error" not in m, m)
        a = s.http.post("/api/models/check", {"provider": "openai"})
        equal((a.status, a.json["status"]), (200, "ok"), a.body)
        check("hello" in a.json["models"], a.json)
        p.proc.kill()
        p.proc.wait()
        s.finish(s.create("assistant", "hi"))
        m = row()["models"][0]
        equal([m[k] for k in ("health", "calls", "failures")], ["failing", 2, 1])
        equal(m["last_error"]["failure_category"], "network")
        a = s.http.post("/api/models/check", {"provider": "openai"}).json
        equal((a["status"], a["models"], a["http_status"]), ("failed", [], 0))
        check(a["message"], a)
        equal(s.http.post("/api/models/check", {"provider": "scripted"}).json["status"], "ok")
        refused(s.http.post("/api/models/check", {"provider": "none"}), 404, "NOT_FOUND")
        refused(s.http.post("/api/models/check", {}), 400, "VALIDATION_ERROR")


@test("who_leaves_while_a_provider_is_checked_leaves_nothing_behind", "")
def left():
    with socket.create_server(("127.0.0.1", 0)) as slow, Server(env={
            "UAR_OPENAI_API_KEY": "k", "UAR_OPENAI_BASE_URL": f"http://127.0.0.1:{slow.getsockname()[1]}/v1", "UAR_MODEL": "m"}) as s:
        for _ in range(3):
            body = b'{"provider": "openai"}'
            caller = socket.create_connection(("127.0.0.1", int(s.url.rpartition(":")[2])))
            caller.sendall(b"POST /api/models/check HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer " + s.token.encode() +
                           b"\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            asked, _ = slow.accept()
            asked.recv(4096)
            caller.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            caller.close()
            equal(s.http.get("/api/models").status, 200)
            asked.sendall(b"HTTP/1.1 500 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            asked.close()
        equal(s.http.post("/api/models/check", {"provider": "scripted"}).json["status"], "ok")


@test("definition_is_checked_while_it_is_written", "")
def definition():
    with Server() as s:
        def judged(text, form="yaml"):
            a = s.http.post("/api/agents-check", {"text": text, "format": form})
            equal(a.status, 200, a.body)
            return a.json
        good = 'version: "1.0"\nkind: agent\nid: poet\nruntime: {entry: llm.chat}\nprompt:\n  system: You write {{form}}.\n  variables:\n    form: {}\n'
        a = judged(good)
        equal((a["good"], a["problems"], a["agent_id"], a["definition"]["id"]), (True, [], "poet", "poet"))
        check("You write <form>." in a["prompt"]["system"] and a["prompt"]["message"] == "<message>", a["prompt"])
        bad = judged(good.replace("  system: You write {{form}}.", "  system: 5"))
        equal((bad["good"], bad["problems"][0]["line"], bad["problems"][0]["pointer"]), (False, 6, "/prompt/system"))
        broken = judged('{"version": "1.0",\n "kind": }', "json")
        equal((broken["good"], broken["problems"][0]["line"]), (False, 2))
        unknown = judged(good.replace("prompt:", "promt:"))["problems"][0]
        check("prompt" in unknown["message"], unknown)
        refused(s.http.post("/api/agents-check", {"text": "", "format": "toml"}), 400, "VALIDATION_ERROR")
        equal([x for x in s.http.get("/api/agents").json["agents"] if x["agent_id"] == "poet"], [])


@test("wrong_host_explains_itself", "")
def host():
    with Server() as s:
        a = s.http.get("/", token=False, headers={"Host": "studio.example:8443", "Accept": "text/html,*/*;q=0.8"})
        equal((a.status, a.headers["content-type"]), (403, "text/html; charset=utf-8"))
        page = a.body.decode()
        for word in ("studio.example:8443", "allowed_hosts", "$http_host", "<h1>"):
            check(word in page, word, page)
        a = s.http.get("/", token=False, headers={"Host": "<b>x", "Accept": "text/html"})
        check(b"<b>" not in a.body, a.body)
        a = s.http.get("/api/runs", headers={"Host": "studio.example"})
        refused(a, 403, "FORBIDDEN", "Host")
        check("allowed_hosts" in a.json["detail"], a.json)
    with Server(allowed_hosts="studio.example") as s:
        equal(s.http.get("/", token=False, headers={"Host": "studio.example:8443"}).status, 200)


@test("link_is_drawn_for_a_phone", "")
def qr():
    with Server() as s:
        for more in ((), ("--as", "https://uar.example.org/studio/"), ("--as", "https://" + "long." * 40 + "example")):
            done = run_uar("open", "--qr", "--data", s.data, *more)
            equal(done.returncode, 0, done.stderr)
            *drawn, link = done.stdout.rstrip("\n").split("\n")
            equal(scanned(modules(drawn)), link)
            check(link.startswith(more[1].rstrip("/") + "/#code=" if more else "http://127.0.0.1"), link)
            equal("--as" in done.stderr, not more, done.stderr)
        code = link.split("#code=")[1]
        equal(s.http.post("/api/link", {"code": code}, token=False).json["token"], s.token)
        refused(s.http.post("/api/link", {"code": code}, token=False), 401, "UNAUTHORIZED")


if __name__ == "__main__":
    main()
