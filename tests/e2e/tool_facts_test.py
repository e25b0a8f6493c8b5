#!/usr/bin/env python3
"""What a tool call leaves in the log: its schema, how far it is, what it brings, and where long outputs are."""
import hashlib
import json
import os

from lib import Server, check, check_session, equal, main, refused, test, wait_until
from lib.payloads import check_payload
from lib.services import Service

MODEL = {"default": {"provider": "scripted", "model": "scripted-tools"}}
EVENT_MOST = 16384
HOOK = """import json, sys
told = json.load(sys.stdin)
with open(sys.argv[1], "a") as f:
    f.write(json.dumps(told) + chr(10))
"""


def define(s, agent_id="a", on_failure="continue", **more):
    a = s.http.send("PUT", f"/api/agents/{agent_id}", {
        "version": "1.0", "kind": "agent", "id": agent_id, "runtime": {"entry": "llm.chat"},
        "policy": {"provider": MODEL, "tools": {"allow": ["process:*", "internal:*", "http:*"], "on_failure": on_failure}},
        **more})
    check(a.status in (200, 201), a.body)


def log_of(s, run_id):
    events = s.session_events(run_id)
    check_session(events)
    log = [e.data for e in events if e.data.get("run_id", run_id) == run_id]
    for e in log:
        check_payload(e)
        check(len(json.dumps(e, separators=(",", ":"))) <= EVENT_MOST, "an event is too long", e["type"])
    return log


def of(log, *kinds):
    return [e for e in log if e["type"] in kinds]


def allow(s, run_id):
    action = wait_until(lambda: s.record(run_id).get("actions"), "a question")[0]
    a = s.http.post("/api/control/respond_action", {"action_id": action["action_id"], "decision": "allow"})
    equal(a.status, 200, a.body)


def allowed(s, message, agent="a"):
    run_id = s.create(agent, message)
    allow(s, run_id)
    return run_id, log_of(s, run_id)


def thread(s, run_id):
    """What the thread of the run shows of itself."""
    r = s.record(run_id)
    a = s.http.get(f"/api/sessions/{r['session_id']}/threads/{r['conversation_id']}")
    equal(a.status, 200, a.body)
    return a.json["thread"]


def read_process(s, ref, **query):
    run_id, process_id = ref.removeprefix("output://").split("/")
    a = s.http.get(f"/api/runs/{run_id}/processes/{process_id}/output" +
                   "".join(f"?{k}={v}" for k, v in query.items()))
    equal((a.status, a.headers["content-type"]), (200, "application/octet-stream"), a.body)
    return a.body


@test("one_call_leaves_all_seven_kinds_of_facts", "TOOL-11")
def seven():
    with Server(start=False, process_tools="workspace_write") as s:
        script, told = os.path.join(s.root, "hook.py"), os.path.join(s.root, "told")
        with open(script, "w") as f:
            f.write(HOOK)
        s.env = {"UAR_HOOKS": json.dumps({"watch": {
            "points": ["pre_tool_use", "permission_request", "post_tool_failure"], "risk": "read_only",
            "command": ["python3", "-I", "-S", script, told]}})}
        s.start()
        define(s)
        command = "echo first; while ! [ -e go ]; do sleep 0.05; done; echo last; echo x > /outside"
        run_id = s.create("a", "tool process__run " + json.dumps({"command": command}))
        allow(s, run_id)
        session = s.record(run_id)["session_id"]
        with s.session_stream(session) as stream:
            progress = stream.until(lambda e: e.data["type"] == "tool.progress")[-1].data
        open(os.path.join(s.data, "files", "go"), "w").close()
        log = log_of(s, run_id)
        kinds = [e["type"] for e in log]
        # 1: schema. The catalogue names the tool, and the call the schema by which it was checked.
        catalog = next(t for t in of(log, "tool.catalog.resolved")[0]["payload"]["tools"] if t["tool_id"] == "process:run")
        equal((catalog["policy"], catalog["is_destructive"]), ("ask", True))
        args = of(log, "tool.args")[0]["payload"]
        listed = next(t for t in s.http.get("/api/tools").json["tools"] if t["tool_id"] == "process:run")
        schema = json.dumps(listed["input_schema"], separators=(",", ":"))
        equal((args["valid"], args["schema_sha256"]), (True, hashlib.sha256(schema.encode()).hexdigest()))
        # 2, 3: progress and partial output, before the call is over.
        equal((progress["payload"]["partial"]["last_line"], progress["payload"]["partial"]["stdout_bytes"]), ("first", 6))
        call = progress["tool_call_id"]
        partial = of(log, "process.output")[0]
        equal((partial["payload"]["text"], partial["tool_call_id"]), ("first\n", call))
        check(kinds.index("process.output") < kinds.index("tool.failed"), kinds)
        # 4: the permission gate, before the tool begins.
        order = [kinds.index(k) for k in ("permission.evaluated", "permission.requested", "action.required",
                                          "permission.resolved", "action.resolved", "tool.started")]
        equal(order, sorted(order), kinds)
        equal(of(log, "permission.resolved")[0]["payload"]["outcome"], "allowed")
        # 5: hooks.
        points = [e["payload"]["hook_point"] for e in of(log, "hook.completed")]
        equal(points, ["pre_tool_use", "permission_request", "post_tool_failure"])
        with open(told) as f:
            equal([json.loads(line)["hook_point"] for line in f], points)
        # 6, 7: a reference to the result, and the category of the failure.
        failed = of(log, "tool.failed")[0]
        equal((failed["payload"]["failure_category"], failed["tool_call_id"]), ("sandbox_violation", call))
        equal(failed["refs"]["output_ref"], of(log, "process.completed")[0]["refs"]["output_ref"])
        ref = failed["refs"]["output_ref"]
        equal(read_process(s, ref, stream="stdout"), b"first\nlast\n")
        check(b"/outside" in read_process(s, ref, stream="stderr"))
        calls = thread(s, run_id)["tool_calls"]
        check([c for c in calls if c["tool_call_id"] == call and c["failure_category"] == "sandbox_violation" and
               c["output_ref"] == ref], calls)
        s.restart()
        equal(read_process(s, ref, stream="stdout"), b"first\nlast\n")


def shown(s, run_id, ref):
    return next(o for o in thread(s, run_id)["outputs"] if o["output_ref"] == ref)


@test("a_long_output_is_kept_with_all_that_is_known_of_it", "JOB-04")
def spilled():
    echo = {"name": "echo", "url": "{url}/say", "headers": {"Authorization": "${secret:KEY}"},
            "query": {"text": "{text}"}, "input_schema": {"type": "object", "properties": {"text": {"type": "string"}}}}
    with Service() as web, Server(process_tools="workspace_write", outbound_allow="127.0.0.1",
                                  secret_grants='{"KEY": {"hosts": ["127.0.0.1"]}}', env={"UAR_SECRET_KEY": "canary-of-the-output"}) as s:
        define(s, tools={"http": [{**echo, "url": web.url + "/say"}]})
        os.makedirs(os.path.join(s.data, "files"), exist_ok=True)
        with open(os.path.join(s.data, "files", "long.txt"), "w") as f:
            f.write("alpha " + "x" * 20000 + " omega")
        # Text: the whole is a blob, the fact has its beginning and its end.
        run_id = s.create("a", 'tool fs.read {"path": "long.txt"}')
        log = log_of(s, run_id)
        fact, end = of(log, "output.spilled")[0], of(log, "tool.result")[0]
        ref = fact["refs"]["output_ref"]
        equal(ref, end["refs"]["output_ref"])
        blob = s.http.get(f"/api/runs/{run_id}/blobs/{ref.removeprefix('blob://')}").body
        p = fact["payload"]
        equal((p["owner"], p["media_type"], p["encoding"]),
              ({"kind": "tool", "id": end["tool_call_id"]}, "application/json", "utf-8"))
        equal((p["total_bytes"], p["sha256"], p["expiry"]),
              (len(blob), hashlib.sha256(blob).hexdigest(), {"policy": "keep_runs"}))
        equal((p["head"], p["tail"]), (blob[:512].decode(), blob[-512:].decode()))
        equal((p["inline_bytes"], end["payload"]["truncated"]), (len(end["payload"]["preview"]), True))
        o = shown(s, run_id, ref)
        equal((o["owner"], o["media_type"], o["encoding"], o["bytes"], o["truncated"], o["redactions"]),
              (p["owner"], p["media_type"], p["encoding"], len(blob), False, []))
        equal((o["preview"], o["expiry"]), ({"head": p["head"], "tail": p["tail"]},
                                            {"policy": "keep_runs", "expires_at": None}))
        # What was hidden in it.
        hidden = s.create("a", "tool http__echo " + json.dumps({"text": "y" * 6000}))
        log = log_of(s, hidden)
        ref = of(log, "output.spilled")[0]["refs"]["output_ref"]
        equal(of(log, "output.redacted")[0]["refs"]["output_ref"], ref)
        equal(shown(s, hidden, ref)["redactions"], [{"kind": "secret", "count": 1}])
        check(b"canary" not in s.http.get(f"/api/runs/{hidden}/blobs/{ref.removeprefix('blob://')}").body)
        # Of a process the log has the first 512 KiB, and says what it lacks.
        cut, log = allowed(s, "tool process__run " + json.dumps({"command": "head -c 700000 /dev/zero | tr '\\0' y"}))
        fact = of(log, "output.truncated")[0]
        p, ref = fact["payload"], fact["refs"]["output_ref"]
        equal((p["owner"]["kind"], p["original_bytes"], p["kept_bytes"], p["policy"]), ("process", 700000, 524288, "head"))
        equal(read_process(s, ref), b"y" * 524288)
        o = shown(s, cut, ref)
        equal((o["owner"], o["media_type"], o["bytes"], o["kept_bytes"], o["truncated"], o["expiry"]["policy"]),
              (p["owner"], "application/octet-stream", 700000, 524288, True, "keep_runs"))
        # Bytes that are no text are in base64, and come back as they were.
        _, log = allowed(s, "tool process__run " + json.dumps({"command": "printf '\\377\\376\\000x'"}))
        equal([(e["payload"]["encoding"], e["payload"]["data"]) for e in of(log, "process.output")], [("base64", "//4AeA==")])
        equal(read_process(s, of(log, "process.completed")[0]["refs"]["output_ref"]), b"\xff\xfe\x00x")
        for path, code in ((f"{cut}/processes/none/output", "NOT_FOUND"), (f"{run_id[:-1]}x/processes/none/output", "NOT_FOUND")):
            refused(s.http.get("/api/runs/" + path), 404, code)
        refused(s.http.get(f"/api/runs/{cut}/processes/none/output?stream=all"), 400, "VALIDATION_ERROR", "?stream")
        # It goes with its run.
        s.restart(keep_runs=1)
        s.finish(s.create("echo", "the only one that is kept"))
        wait_until(lambda: s.http.get("/api/runs/" + run_id).status == 404, "the run is evicted")
        equal(s.http.get(f"/api/runs/{cut}/processes/{p['owner']['id']}/output").status, 404)
        with s.session_stream("uar.retention") as stream:
            stream.until(lambda e: e.data["refs"]["output_ref"] == "run://" + cut)


if __name__ == "__main__":
    main()
