#!/usr/bin/env python3
"""SIGHUP: every setting that may change in a running server does; the others say when they will."""
import json
import os
import re
import signal
import socket
import tempfile

from lib import Provider, Server, check, connect, equal, main, test, wait_until
from lib.client import host_of
from lib.payloads import check_payload
from lib.server import ROOT


def rows():
    """{key: may be reloaded} from the table that the server is made of."""
    with open(os.path.join(ROOT, "src", "app", "config.def")) as f:
        text = re.sub(r"/\*.*?\*/", "", f.read(), flags=re.S)
    found = re.findall(r'^C\(\w+, "(\w+)", \w+, "[^"]*", "[^"]*", "[^"]*", ([01]),', text, re.M)
    equal(len(found), len(re.findall(r"^C\(", text, re.M)))
    return {key: reload == "1" for key, reload in found}


def turn_limit(s):
    log = s.session_events(s.create("echo", "hi"))
    return next(e.data["payload"]["options"]["timeout_ms"] for e in log
                if e.data["type"] == "turn.submitted")


def debug_lines(s, _):
    s.finish(s.create("echo", "hi"))
    wait_until(lambda: "run.created" in s.log(), "debug lines")


def json_lines(s, _):
    s.stop()
    check('"what":"server.draining"' in s.log(), s.log())
    s.start()


def idle_model(s, _):
    end = s.events(s.create("assistant", "hi"))[-1].data
    equal((end["type"], end["data"]["code"]), ("Error", "PROVIDER_ERROR"))


def cancelled_is_done(s, _):
    run_id = s.create("assistant", "hi")
    s.cancel(run_id)
    equal(s.events(run_id)[-1].type, "RunDone")


def quick_heartbeat(s, _):
    with s.stream(s.create("assistant", "hi")) as stream:
        stream.until(lambda e: e.type == "ChatDelta")
        stream.beats(3)


def no_grace(s, _):
    """A client that asks on and on and reads nothing would hold the stop up for an hour."""
    with connect(s.url) as x:
        x.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        ask = f"GET /page/page.js HTTP/1.1\r\nHost: {host_of(s.url)}\r\n\r\n".encode() * 100
        x.settimeout(1)
        try:
            while True:
                x.sendall(ask)
        except TimeoutError:
            pass
        s.proc.send_signal(signal.SIGTERM)
        equal(s.wait(), 0)
        s.start()


def stop_cancels(s, _):
    run_id = s.create("assistant", "hi")
    with s.stream(run_id) as stream:
        stream.until(lambda e: e.type == "ChatDelta")
    s.stop()
    s.start()
    equal(s.finish(run_id)["status"], "canceled")


def requests_of(s):
    """How often a model that always fails was asked in one run."""
    log = s.session_events(s.create("assistant", "err500"))
    return sum(e.data["type"] == "model.requested" for e in log)


def denied_from_now_on(s, _):
    """The change is a fact before it decides about a call."""
    wait_until(lambda: s.http.get("/api/sessions/uar.registry/events?stored=1").status == 200, "the first fact of its session")
    with s.session_stream("uar.registry") as stream:
        fact = stream.until(lambda e: e.data["type"] == "policy.changed")[-1].data
    check_payload(fact)
    p = fact["payload"]
    equal((p["policy_id"], p["scope"], p["changed"], p["interactive"], p["rule_count"]), ("host", "host", ["mode", "rules"], True, 1))
    equal(fact["refs"]["policy_ref"], "policy://host@" + p["version"])
    log = [e.data for e in s.session_events(s.create("tools", "tool fs.list {}"))]
    d = next(e["payload"] for e in log if e["type"] == "permission.evaluated")
    equal((d["decision"], d["decision_source"], d["decision_reason"]), ("deny", "host_policy", "not now"))


MODELS = {"model_retries": "fault", "model_retry_seconds": "fault"}
PROBES = {  # key: value before, value after, what shows it
    "log_level": ("info", "debug", debug_lines),
    "log_json": (False, True, json_lines),
    "model_idle_timeout_seconds": ("1h", "1s", idle_model),
    "model_retries": (2, 0, lambda s, _: equal(requests_of(s), 1)),
    "model_retry_seconds": ("60s", "1ms", lambda s, _: equal(requests_of(s), 3)),
    "run_timeout_seconds": ("1h", "77s", lambda s, _: equal(turn_limit(s), 77000)),
    "cancel_terminal": ("error", "done", cancelled_is_done),
    "heartbeat_seconds": ("10m", "100ms", quick_heartbeat),
    "drain_seconds": ("1h", "0s", no_grace),
    "shutdown": ("keep", "cancel", stop_cancels),
    "permissions": ({"mode": "plan"}, {"rules": [{"tool": "internal:fs.*", "decision": "deny", "reason": "not now"}]},
                    denied_from_now_on),
}


@test("every_setting_that_may_change_does", "CFG-04")
def reload():
    equal({key for key, reload in rows().items() if reload}, set(PROBES), "a probe for each")
    for key, (before, after, probe) in PROBES.items():
        with Provider() as p, Server(env=p.env(MODELS.get(key, "gate")), start=False) as s:
            os.mkdir(s.data, 0o700)

            def configure(value):
                with open(os.path.join(s.data, "config.json"), "w") as f:
                    json.dump({key: value, "stall_timeout_seconds": "1h"}, f)
            configure(before)
            s.start()
            configure(after)
            s.proc.send_signal(signal.SIGHUP)
            wait_until(lambda: "config.changed" in s.log(), "the change of " + key)
            check("at next start" not in s.log(), key)
            probe(s, p)


@test("what_may_not_change_says_so", "CFG-04")
def fixed():
    with Server(start=False) as s:
        os.mkdir(s.data, 0o700)
        s.start()
        with open(os.path.join(s.data, "config.json"), "w") as f:
            json.dump({"max_connections": 5, "scripted_token_ms": 7, "tenant": "other"}, f)
        s.proc.send_signal(signal.SIGHUP)
        wait_until(lambda: s.log().count("config.changed") == 3, "three are named")
        equal(s.log().count("at next start"), 3, s.log())
        os.unlink(os.path.join(s.data, "config.json"))


AGENT = """version: "1.0"
kind: agent
id: poet
metadata: {title: %s}
runtime: {entry: llm.chat}
"""
SKILL = """---
name: nuts
description: %s
---
Crack them.
"""
PLUGIN = '{"id": "p", "version": "%s", "command": ["true"], "entries": [{"id": "e"}]}'


@test("definitions_and_manifests_are_read_again_without_a_watch", "")
def unwatched():
    """Files are changed by other names that they have elsewhere: a watch of their folders does not see that."""
    def place(name, text):
        path, other = os.path.join(s.data, name), os.path.join(aside, name.replace("/", "-"))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(other, "w") as f:
            f.write(text)
        os.link(other, path)

    def change(name, text):
        with open(os.path.join(aside, name.replace("/", "-")), "w") as f:
            f.write(text)

    def seen():
        agents = {a["agent_id"]: a["title"] for a in s.http.get("/api/agents").json["agents"]}
        skills = {k["skill_id"]: k["description"] for k in s.http.get("/api/skills").json["skills"]}
        plugins = {e["plugin_id"]: e["version"] for e in s.http.get("/plugins").json["entries"]}
        return agents["poet"], skills["nuts"], plugins["p"]

    files = (("agents/poet.yaml", AGENT), ("skills/nuts/SKILL.md", SKILL), ("plugins/p/plugin.json", PLUGIN))
    with Server(start=False) as s:
        os.makedirs(s.data, 0o700)
        aside = tempfile.mkdtemp(prefix="aside-", dir=s.root)
        for name, text in files:
            place(name, text % "one")
        s.start()
        equal(seen(), ("one",) * 3)
        for name, text in files:
            change(name, text % "two")
        s.finish(s.create("echo", "hi"))
        equal(seen(), ("one",) * 3, "nobody has looked")
        s.proc.send_signal(signal.SIGHUP)
        wait_until(lambda: seen() == ("two",) * 3, "all of it is read again")


main()
