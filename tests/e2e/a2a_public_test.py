#!/usr/bin/env python3
"""The public A2A protocol: the official clients of versions 1.0 and 0.3 call agents of the real server."""
import json
import os
import subprocess

from lib import ROOT, Server, check, check_session, equal, main, test, wait_until
from lib.npm import modules, node

AGE = {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}}
FORM = "tool ui.form.request " + json.dumps({"title": "Who are you?", "schema": AGE})
SLOW = {"UAR_SCRIPTED_TOKEN_MS": "60000"}
DONE = ("TASK_STATE_COMPLETED", 3, "completed")


class Client:
    """The official client in a process of its own."""

    def __init__(self, s, binding="JSONRPC", version="1.0", agent="echo"):
        card = f"/a2a/{agent}/.well-known/agent-card.json"
        self.proc = subprocess.Popen([node(), os.path.join(ROOT, "tests", "e2e", "a2a_judge.mjs"), modules("a2a"), s.url,
                                      s.token, binding, version, card],
                                     stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        equal(json.loads(self.proc.stdout.readline() or "{}"), {"ready": True}, "the client reads the card")

    def call(self, name, *args):
        self.proc.stdin.write(json.dumps({"call": name, "args": args}) + "\n")
        self.proc.stdin.flush()
        return json.loads(self.proc.stdout.readline())

    def ask(self, name, *args):
        answer = self.call(name, *args)
        check("value" in answer, answer)
        return answer["value"]

    def refused(self, error, name, *args):
        answer = self.call(name, *args)
        check("error" in answer, answer)
        check(answer["error"]["name"].endswith(error), answer)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.proc.stdin.close()
        self.proc.wait()


def text_of(artifact):
    return "".join(p.get("text") or (p.get("content") or {}).get("value") or "" for p in artifact["parts"])


def rpc(s, method, params, agent="echo", **headers):
    a = s.http.post(f"/a2a/{agent}", {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}, headers=headers)
    equal((a.status, a.json["jsonrpc"], a.json["id"]), (200, "2.0", 7), a.body)
    return a.json


def message(i, text="hi", **more):
    return {"message": {"messageId": f"m{i}", "role": "ROLE_USER", "parts": [{"text": text}], **more}}


def judge(binding, version):
    new = version == "1.0"
    with Server() as s, Client(s, binding, version) as client, Client(s, binding, version, "tools") as asker:
        task = client.ask("send", {"id": "m1", "parts": ["hello"], "context": "ctx-1"})
        check(task["status"]["state"] in DONE, task)
        equal((text_of(task["artifacts"][0]), task["contextId"]), ("hello", "ctx-1"))
        equal(task["history"][0]["messageId"], "m1")
        equal(client.ask("send", {"id": "m1", "parts": ["hello"], "context": "ctx-1"})["id"], task["id"], "sent again")
        equal(client.ask("get", task["id"], 0)["history"] if new else [], [])
        events = client.ask("stream", {"id": "m2", "parts": ["a longer text"], "context": "ctx-1"})
        if new:
            equal(list(events[0]), ["task"])
            equal(list(events[-1]), ["statusUpdate"])
            pieces = [e["artifactUpdate"]["artifact"] for e in events if "artifactUpdate" in e]
        else:
            equal((events[0]["kind"], events[-1]["kind"], events[-1]["final"]), ("task", "status-update", True))
            pieces = [e["artifact"] for e in events if e["kind"] == "artifact-update"]
        equal("".join(map(text_of, pieces)), "a longer text")
        asked = asker.ask("send", {"id": "m3", "parts": [FORM]})
        check(asked["status"]["state"] in (6, "input-required"), asked)
        check("Who are you?" in json.dumps(asked["status"]["message"]), asked)
        if new:
            asker.refused("TaskNotFoundError", "get", "nothing")
        done = asker.ask("send", {"id": "m4", "parts": [{"name": "Ann"}], "task": asked["id"], "context": asked["contextId"]})
        equal((done["id"], done["status"]["state"] in DONE), (asked["id"], True), done)
        check("Ann" in text_of(done["artifacts"][0]), done)
        waits = asker.ask("send", {"id": "m5", "parts": [FORM]})
        gone = asker.ask("cancel", waits["id"])
        check(gone["status"]["state"] in (5, "canceled"), gone)
        if new:
            asker.refused("TaskNotCancelableError", "cancel", waits["id"])
            asker.refused("UnsupportedOperationError", "subscribe", waits["id"])
            asker.refused("PushNotificationNotSupportedError", "push", waits["id"])
            listed = asker.ask("list")
            equal({t["id"] for t in listed["tasks"]}, {waits["id"], asked["id"]})
        log = s.session_events(task["id"])
        check_session(log)
        turn = [e.data for e in log if e.data["type"] == "turn.submitted"][0]
        equal((turn["payload"]["source"], turn["payload"]["metadata"]["caller"]["a2a"]["message_id"]), ("a2a", "m1"))


@test("the_official_client_over_json_rpc", "A2A-10 CHAN-02")
def over_rpc():
    judge("JSONRPC", "1.0")


@test("the_official_client_over_http_json", "A2A-10")
def over_rest():
    judge("HTTP+JSON", "1.0")


@test("the_official_client_of_version_0_3", "A2A-10")
def over_old():
    judge("JSONRPC", "0.3")


@test("a_card_says_how_to_reach_an_agent", "A2A-10")
def cards():
    with Server(public_url="https://uar.example/base/", a2a_agent="demo") as s:
        for path in ("/.well-known/agent-card.json", "/.well-known/agent.json"):
            a = s.http.send("GET", path, token=False, headers={"A2A-Version": "1.0"})
            equal(a.status, 200, a.body)
            equal(a.json["supportedInterfaces"][0],
                  {"url": "https://uar.example/base/a2a/demo", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"})
            check("url" not in a.json and len(a.json["skills"]) == 1, a.json)
            tag = a.headers["etag"]
            equal(s.http.send("GET", path, token=False, headers={"A2A-Version": "1.0", "If-None-Match": tag}).status, 304)
        old = s.http.send("GET", "/a2a/echo/.well-known/agent-card.json", token=False).json
        equal((old["url"], old["protocolVersion"]), ("https://uar.example/base/a2a/echo", "0.3.0"))
        equal(s.http.send("GET", "/a2a/nobody/.well-known/agent-card.json", token=False).status, 404)
        made = s.http.send("PUT", "/api/agents/mine", {"version": "1.0", "kind": "agent", "id": "mine",
                                                       "runtime": {"entry": "llm.chat"}})
        equal(made.status, 201, made.body)
        equal(s.http.send("GET", "/a2a/mine/.well-known/agent-card.json", token=False).status, 404, "it is its owner's")
        equal(s.http.get("/a2a/mine/extendedAgentCard").json["supportedInterfaces"][0]["url"],
              "https://uar.example/base/a2a/mine")


@test("tasks_are_listed_by_their_context", "A2A-10")
def listed():
    with Server() as s:
        made = [rpc(s, "SendMessage", message(i, contextId=f"c{i % 2}"))["result"]["task"]["id"] for i in range(7)]
        got, token = [], ""
        while True:
            page = rpc(s, "ListTasks", {"contextId": "c0", "pageSize": 2, "pageToken": token})["result"]
            got += [t["id"] for t in page["tasks"]]
            token = page["nextPageToken"]
            if not token:
                break
        equal(got, made[::2][::-1])
        equal(len(rpc(s, "ListTasks", {})["result"]["tasks"]), 7)


@test("who_has_no_token_learns_nothing", "A2A-10 CHAN-02")
def access():
    with Server() as s:
        a = s.http.send("POST", "/a2a/echo", b"no json at all", token=False)
        equal((a.status, a.json["error"]["code"], a.json["error"]["status"]), (401, 401, "UNAUTHENTICATED"))
        equal(s.http.send("GET", "/a2a/echo/tasks", token=False).status, 401)
        equal(s.http.get("/api/runs").json["runs"], [])
        mine = rpc(s, "SendMessage", message(1))["result"]["task"]["id"]
        s.restart(user="another")
        for method in ("GetTask", "CancelTask", "SubscribeToTask"):
            equal(rpc(s, method, {"id": mine})["error"]["code"], -32001, method)
        equal(rpc(s, "ListTasks", {})["result"]["tasks"], [])
        equal(s.http.get(f"/a2a/echo/tasks/{mine}").status, 404)


@test("an_agent_may_be_closed_to_the_protocol", "A2A-07")
def closed():
    definition = {"version": "1.0", "kind": "agent", "id": "shy",
                  "runtime": {"entry": "llm.chat", "protocols": {"a2a": {"enabled": False}}}}
    with Server() as s:
        equal(s.http.send("PUT", "/api/agents/shy", definition).status, 201)
        e = rpc(s, "SendMessage", message(1), agent="shy")["error"]
        check("runtime.protocols.a2a.enabled" in e["message"], e)
        equal(s.http.post("/a2a/shy/message:send", message(1)).status, 403)
        equal(s.http.get("/api/runs").json["runs"], [])


@test("errors_are_those_of_the_protocol", "A2A-10")
def errors():
    with Server() as s:
        def code(method, params):
            e = rpc(s, method, params)["error"]
            equal(e["data"][0]["@type"], "type.googleapis.com/google.rpc.ErrorInfo")
            return e["code"]

        equal(s.http.post("/a2a/echo", b"{").json["error"]["code"], -32700)
        equal(s.http.post("/a2a/echo", {"id": 1}).json["error"]["code"], -32600)
        equal(code("Nothing", {}), -32601)
        equal(code("SendMessage", {}), -32602)
        equal(code("SendMessage", {"message": {"messageId": "x", "parts": []}}), -32602)
        equal(code("GetTask", {"id": "x"}), -32001)
        equal(code("SendMessage", message(1, taskId="x")), -32001)
        equal(code("ListTasks", {"pageSize": 101}), -32602)
        equal(rpc(s, "GetTask", {"id": "x"}, **{"A2A-Version": "9.9"})["error"]["code"], -32009)
        done = rpc(s, "SendMessage", message(2))["result"]["task"]
        equal(code("SendMessage", message(3, taskId=done["id"])), -32004)
        equal(code("CancelTask", {"id": done["id"]}), -32002)
        equal(rpc(s, "GetTask", {"id": done["id"]}, agent="demo")["error"]["code"], -32001, "of another agent")
        a = s.http.post("/a2a/echo/message:send", {"message": {"messageId": "q"}})
        equal((a.status, a.json["error"]["status"]), (400, "INVALID_ARGUMENT"))
        equal(a.json["error"]["details"][1]["fieldViolations"][0]["field"], "/message/parts")
        equal(s.http.get("/a2a/echo/tasks/x").json["error"]["details"][0]["reason"], "TASK_NOT_FOUND")
        for path in ("/a2a/echo", "/a2a/echo/"):
            a = s.http.send("POST", path, b"{}", headers={"Content-Type": "text/plain"})
            equal((a.status, a.json["jsonrpc"], a.json["id"], a.json["error"]["code"]), (415, "2.0", None, -32005))
            equal(a.json["error"]["data"][0]["reason"], "CONTENT_TYPE_NOT_SUPPORTED")
        a = s.http.send("POST", "/a2a/echo/message:send", b"{}", headers={"Content-Type": "text/plain"})
        equal((a.status, a.json["error"]["details"][0]["reason"]), (415, "CONTENT_TYPE_NOT_SUPPORTED"))
        a = s.http.post("/a2a/echo/", {"jsonrpc": "2.0", "id": 8, "method": "SendMessage", "params": message(9)})
        equal(a.json["result"]["task"]["status"]["state"], "TASK_STATE_COMPLETED")


@test("a_task_goes_on_after_kill_9_and_is_found_again", "A2A-10")
def killed():
    with Server() as s:
        asked = rpc(s, "SendMessage", message(1, FORM), agent="tools")["result"]["task"]
        equal(asked["status"]["state"], "TASK_STATE_INPUT_REQUIRED")
        s.kill()
        s.start()
        again = rpc(s, "SendMessage", message(1, FORM), agent="tools")["result"]["task"]
        equal((again["id"], again["status"]["state"]), (asked["id"], "TASK_STATE_INPUT_REQUIRED"), "not a second task")
        reply = {"message": {"messageId": "m2", "role": "ROLE_USER", "taskId": asked["id"],
                             "parts": [{"data": {"name": "Ann"}}]}}
        done = rpc(s, "SendMessage", reply, agent="tools")["result"]["task"]
        equal((done["id"], done["status"]["state"]), (asked["id"], "TASK_STATE_COMPLETED"))


@test("who_subscribes_gets_the_task_then_what_follows", "A2A-10")
def subscribed():
    with Server(env=SLOW) as s, Client(s, agent="demo") as client:
        task = rpc(s, "SendMessage", {**message(1), "configuration": {"returnImmediately": True}}, agent="demo")["result"]["task"]
        check(task["status"]["state"] in ("TASK_STATE_SUBMITTED", "TASK_STATE_WORKING"), task)
        [first] = client.ask("subscribe", task["id"], 1)
        equal(first["task"]["id"], task["id"])
        wait_until(lambda: s.record(task["id"])["status"] == "running", "the run")
        equal(rpc(s, "SendMessage", message(2, taskId=task["id"]), agent="demo")["error"]["code"], -32004)
        gone = rpc(s, "CancelTask", {"id": task["id"]}, agent="demo")["result"]
        equal(gone["status"]["state"], "TASK_STATE_CANCELED")


if __name__ == "__main__":
    main()
