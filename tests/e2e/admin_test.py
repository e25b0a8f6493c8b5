#!/usr/bin/env python3
"""What who runs the server looks at: storage, the live log, a Host that is not known, the link as a QR code."""
import json
import os
import signal
import subprocess
import tempfile

from lib import Server, Stream, check, equal, main, npm, refused, run_uar, test

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
