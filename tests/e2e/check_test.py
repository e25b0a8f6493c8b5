"""uar check --log and --url, the OpenAPI document, uar ctl."""
import json
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib.check import check, equal, main, test  # noqa: E402
from lib.server import ROOT, Server, run_uar  # noqa: E402

COUNTS = re.compile(r"log +(\d+) events of (\d+) sessions, (\d+) runs, (\d+) tool calls, (\d+) questions")


def token_of(s):
    return {"UAR_TOKEN": s.token}


@test("the_validator_reads_a_live_server", "VAL-10 VAL-01")
def _():
    with Server() as s:
        for agent in ("echo", "echo", "demo"):
            s.finish(s.create(agent))
        waits = s.create("echo", "x" * 3000)
        equal(s.http.post("/api/control/create_task", {"objective": "without a run"}).status, 200)
        done = run_uar("check", "--url", s.url, env=token_of(s))
        equal(done.returncode, 0, done.stderr)
        events, sessions, runs = map(int, COUNTS.search(done.stdout).groups()[:3])
        equal((sessions, runs), (5, 4))
        check(events > 40, events)
        s.finish(waits)
        s.stop()
        done = run_uar("check", "--log", "--data", s.data)
        equal(done.returncode, 0, done.stderr)
        equal(COUNTS.search(done.stdout).groups()[1:3], ("5", "4"))
        s.start()


@test("a_server_that_breaks_a_rule_is_named", "VAL-10")
def _():
    """A proxy that leaves one event out: what a faulty server would show."""
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
    import threading
    with Server() as s:
        s.finish(s.create("echo"))

        class Faulty(BaseHTTPRequestHandler):
            def do_GET(self):
                body = s.http.get(self.path).body
                if "/events" in self.path:
                    frames = body.split(b"\n\n")
                    lost = next(i for i, f in enumerate(frames) if b'"turn.started"' in f)
                    body = b"\n\n".join(frames[:lost] + frames[lost + 1:])
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream" if "/events" in self.path else "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass
        proxy = ThreadingHTTPServer(("127.0.0.1", 0), Faulty)
        threading.Thread(target=proxy.serve_forever, daemon=True).start()
        done = run_uar("check", "--url", f"http://127.0.0.1:{proxy.server_port}", env=token_of(s))
        proxy.shutdown()
        equal(done.returncode, 1, done.stdout)
        check("rule sequence" in done.stderr, done.stderr)
        check(re.search(r"event [0-9a-f-]{36}, sequence \d+", done.stderr), done.stderr)


def routes():
    with open(os.path.join(ROOT, "src", "gate", "route.def"), encoding="utf-8") as f:
        return re.findall(r'^R\((\w+), "([^"]+)"', f.read(), re.M)


@test("the_openapi_document_is_what_the_server_does", "")
def _():
    with Server() as s:
        equal(s.http.get("/openapi.json", token=False).status, 401)
        doc = s.http.get("/openapi.json").json
        equal(doc["openapi"], "3.1.0")
        written = {(m.upper(), re.sub(r"\{(\w+)\}", r":\1", p)) for p, ops in doc["paths"].items() for m in ops}
        commands = {c["name"]: c for c in s.http.get("/api/control").json["commands"]}
        equal(written, set(routes()) | {("POST", "/api/control/" + name) for name in commands})
        ids = [op["operationId"] for ops in doc["paths"].values() for op in ops.values()]
        equal(len(ids), len(set(ids)))
        for name, command in commands.items():
            op = doc["paths"]["/api/control/" + name]["post"]
            equal(op["requestBody"]["content"]["application/json"]["schema"], command["input_schema"])
        for path, ops in doc["paths"].items():
            for method, op in ops.items():
                names = {p["name"] for p in op.get("parameters", []) if p["in"] == "path"}
                equal(names, set(re.findall(r"\{(\w+)\}", path)), path)
                target = re.sub(r"\{\w+\}", "x", path)
                if op["security"] == [{"token": []}]:
                    equal(s.http.send(method.upper(), target, token=False).status, 401, path)
        refused = s.http.send("DELETE", "/openapi.json")
        equal(refused.status, 405)


@test("a_command_goes_through_the_terminal", "CTL-06")
def _():
    with Server() as s:
        listed = run_uar("ctl")
        equal(listed.returncode, 0)
        check("create_task" in listed.stdout and "submit_turn" in listed.stdout)
        def ctl(*words, **more):
            return run_uar("ctl", "--url", s.url, *words, env=token_of(s), **more)
        made = ctl("create_task", "--json", '{"objective":"paint the wall","task_id":"wall"}')
        equal(made.returncode, 0, made.stderr)
        answer = json.loads(made.stdout)
        equal((answer["ok"], answer["result"]["task"]["task_id"]), (True, "wall"))
        equal(len(answer["event_ids"]) > 0, True)
        again = ctl("get_task", "-", input='{"task_id":"wall"}')
        equal(json.loads(again.stdout)["result"]["task"]["objective"], "paint the wall")
        wrong = ctl("create_tsk")
        equal(wrong.returncode, 2)
        check("did you mean create_task" in wrong.stderr, wrong.stderr)
        wrong = ctl("create_task", '{"objectiv":1}')
        equal(wrong.returncode, 2)
        check("objectiv" in wrong.stderr, wrong.stderr)
        wrong = ctl("get_task", '{"task_id":"nothing"}')
        equal(wrong.returncode, 1)
        check("NOT_FOUND" in wrong.stderr, wrong.stderr)


main()
