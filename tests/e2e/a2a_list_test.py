#!/usr/bin/env python3
"""ListTasks of the public A2A protocol: what a list says of a task is what the task says of itself."""
import json

from lib import Server, check, equal, main, test, wait_until
from lib.a2a import FORM, message, rpc
from lib.push import Receiver

WRITE = 'tool fs.write {"path": "a.txt", "text": "x"}'
STATES = {"TASK_STATE_SUBMITTED": "submitted", "TASK_STATE_WORKING": "working", "TASK_STATE_COMPLETED": "completed",
          "TASK_STATE_FAILED": "failed", "TASK_STATE_CANCELED": "canceled", "TASK_STATE_INPUT_REQUIRED": "input-required",
          "TASK_STATE_AUTH_REQUIRED": "auth-required", "TASK_STATE_REJECTED": "rejected"}


def define(s, model):
    """The agent `mixed` uses that model from now on."""
    a = s.http.send("PUT", "/api/agents/mixed", {
        "version": "1.0", "kind": "agent", "id": "mixed", "runtime": {"entry": "llm.chat"},
        "policy": {"provider": {"default": {"provider": "scripted", "model": model}},
                   "tools": {"allow": ["internal:*"]}}})
    check(a.status in (200, 201), a.body)


def send(s, i, text, now=False, **more):
    a = rpc(s, "SendMessage", {**message(i, text, **more), "configuration": {"returnImmediately": now}}, "mixed")
    check("result" in a, a)
    return a["result"]["task"]["id"]


def state(s, task, old=False):
    return rpc(s, "tasks/get" if old else "GetTask", {"id": task}, "mixed")["result"]["status"]["state"]


def one_of_each(s):
    """Tasks in every state that a task of UAR can have."""
    define(s, "scripted-tools")
    made = [send(s, i, text) for i, text in enumerate((FORM, FORM, WRITE, WRITE, "no tool", "none either", FORM))]
    rpc(s, "CancelTask", {"id": made[-1]}, "mixed")
    define(s, "scripted-fail")
    made.append(send(s, 7, "fail"))
    define(s, "scripted-stall")
    late = s.create("mixed", "hi", timeout=0.2)
    s.finish(late)
    made += [late, send(s, 8, "hi", now=True, contextId="c")]
    wait_until(lambda: s.record(made[-1])["status"] == "running", "it runs")
    return made + [send(s, 9, "behind it", now=True, contextId="c")]


def send_form(s):
    return rpc(s, "SendMessage", message(1, FORM), "tools")["result"]["task"]["id"]


def listed(s, **params):
    """All pages, of one task each."""
    out, token = [], ""
    while True:
        page = rpc(s, "ListTasks", {**params, "pageSize": 1, "pageToken": token}, "mixed")["result"]
        out += page["tasks"]
        token = page["nextPageToken"]
        if not token:
            equal(page["totalSize"], len(out), params)
            return out


@test("a_list_of_a_state_has_the_tasks_that_are_in_it", "A2A-10")
def states():
    with Server() as s:
        made = one_of_each(s)
        said = {task: state(s, task) for task in made}
        equal(set(said.values()) | {"TASK_STATE_REJECTED"}, set(STATES), said)
        equal([said[i] for i in (made[2], made[8], made[10])],
              ["TASK_STATE_AUTH_REQUIRED", "TASK_STATE_FAILED", "TASK_STATE_SUBMITTED"])
        equal({t["id"]: t["status"]["state"] for t in listed(s)}, said)
        for name, old in STATES.items():
            want = {task for task, its in said.items() if its == name}
            for tasks in (listed(s, status=name), listed(s, status=old), listed(s, status=name, includeArtifacts=True)):
                equal({t["id"] for t in tasks}, want, name)
                equal({t["status"]["state"] for t in tasks}, {name} if want else set())
            whole = s.http.get(f"/a2a/mixed/tasks?status={name}").json
            equal(({t["id"] for t in whole["tasks"]}, whole["totalSize"]), (want, len(want)), name)
            equal({t["status"]["state"] for t in rpc(s, "tasks/list", {"status": old}, "mixed")["result"]["tasks"]},
                  {old} if want else set())
            equal({state(s, task, old=True) for task in want}, {old} if want else set())
        for name in ("TASK_STATE_UNSPECIFIED", "unknown", ""):
            equal({t["id"] for t in listed(s, status=name)}, set(made), "no state is named")
        e = rpc(s, "ListTasks", {"status": "TASK_STATE_FOO"}, "mixed")["error"]
        equal(e["code"], -32602)


@test("a_task_that_waits_for_a_permission_says_so_at_every_door", "A2A-10")
def permission():
    with Receiver() as r, Server(outbound_allow="127.0.0.1") as s:
        told = {"configuration": {"taskPushNotificationConfig": {"url": r.url + "/"}}}
        sent = rpc(s, "SendMessage", {**message(1, WRITE), **told}, "tools")["result"]["task"]
        r.wait_state("TASK_STATE_AUTH_REQUIRED")
        equal(sent["status"]["state"], "TASK_STATE_AUTH_REQUIRED", sent)
        check('"tool_permission"' in json.dumps(sent["status"]["message"]), sent)
        equal(rpc(s, "GetTask", {"id": sent["id"]}, "tools")["result"]["status"]["state"], "TASK_STATE_AUTH_REQUIRED")
        equal(rpc(s, "tasks/get", {"id": sent["id"]}, "tools")["result"]["status"]["state"], "auth-required")
        equal(s.http.get(f"/a2a/tools/tasks/{sent['id']}").json["status"]["state"], "TASK_STATE_AUTH_REQUIRED")
        for more in ({}, {"includeArtifacts": True}):
            for method, word in (("ListTasks", "TASK_STATE_AUTH_REQUIRED"), ("tasks/list", "auth-required")):
                equal([t["status"]["state"] for t in rpc(s, method, more, "tools")["result"]["tasks"]], [word], more)
        reply = {"message": {"messageId": "m2", "role": "ROLE_USER", "taskId": sent["id"], "parts": [{"text": "allow"}]}}
        done = rpc(s, "SendMessage", reply, "tools")["result"]["task"]
        equal(done["status"]["state"], "TASK_STATE_COMPLETED", done)


def field_of(error):
    return [d["fieldViolations"][0]["field"] for d in error.get("data", error.get("details")) if "fieldViolations" in d]


@test("a_member_of_another_type_is_refused_and_named", "A2A-10")
def types():
    with Server() as s:
        task = send_form(s)
        url = {"url": "https://8.8.8.8/"}

        def refused(method, field, params):
            error = rpc(s, method, params, "tools").get("error", {})
            equal((error.get("code"), field_of(error) if error else None), (-32602, [field]), (method, params))

        for more, field in (({"token": 12345}, "/token"), ({"token": ["a"]}, "/token"), ({"id": 7}, "/id"), ({"url": 5}, "/url"),
                            ({"authentication": {"scheme": "Bearer", "credentials": 5}}, "/authentication/credentials"),
                            ({"authentication": {"scheme": 5}}, "/authentication/scheme"), ({"taskId": 5}, "/taskId")):
            params = {"taskId": task, **url, **more}
            refused("CreateTaskPushNotificationConfig", field, params)
            if field != "/taskId":
                refused("tasks/pushNotificationConfig/set", "/pushNotificationConfig" + field,
                        {"taskId": task, "pushNotificationConfig": {**url, **more}})
                before = "/configuration/taskPushNotificationConfig"
                refused("SendMessage", before + field, {**message(2), "configuration": {before[15:]: {**url, **more}}})
                a = s.http.post(f"/a2a/tools/tasks/{task}/pushNotificationConfigs", {**url, **more})
                equal((a.status, field_of(a.json["error"])), (400, [field]), more)
        refused("tasks/pushNotificationConfig/set", "/pushNotificationConfig/authentication/schemes",
                {"taskId": task, "pushNotificationConfig": {**url, "authentication": {"schemes": "Bearer"}}})
        for method, field in (("GetTaskPushNotificationConfig", "id"), ("DeleteTaskPushNotificationConfig", "id"),
                              ("ListTaskPushNotificationConfigs", "pageToken"), ("ListTaskPushNotificationConfigs", "pageSize")):
            refused(method, "/" + field, {"taskId": task, field: [7]})
        for field, value in (("status", 5), ("statusTimestampAfter", 5), ("pageToken", 5), ("contextId", 5), ("includeArtifacts", "yes"),
                             ("historyLength", "1")):
            refused("ListTasks", "/" + field, {field: value})
        refused("GetTask", "/id", {"id": 7})
        refused("GetTask", "/historyLength", {"id": task, "historyLength": "1"})
        for field in ("messageId", "contextId", "taskId", "role"):
            refused("SendMessage", "/message/" + field, message(3, **{field: 5}))
        refused("SendMessage", "/configuration/returnImmediately", {**message(3), "configuration": {"returnImmediately": 1}})
        refused("message/send", "/configuration/blocking", {**message(3), "configuration": {"blocking": "no"}})
        a = s.http.get("/a2a/tools/tasks?includeArtifacts=maybe")
        equal((a.status, field_of(a.json["error"])), (400, ["/includeArtifacts"]))
        equal(s.http.get("/a2a/tools/tasks?includeArtifacts=false").status, 200)
        empty = {"pageToken": None, "status": None, "includeArtifacts": None, "pageSize": None}
        equal([t["id"] for t in rpc(s, "ListTasks", empty, "tools")["result"]["tasks"]], [task], "nothing was begun")
        equal(rpc(s, "ListTaskPushNotificationConfigs", {"taskId": task}, "tools")["result"]["configs"], [], "nothing is stored")


if __name__ == "__main__":
    main()
