#!/usr/bin/env python3
"""The public A2A protocol: the official clients of versions 1.0 and 0.3 call agents of the real server."""
import json

from lib import Server, check, check_session, equal, main, test, wait_until
from lib.a2a import DONE, FORM, SLOW, Judge, message, rpc, text_of
from lib.push import Receiver, state_of


def judge(binding, version):
    new = version == "1.0"
    with Server() as s, Judge(s, binding, version) as client, Judge(s, binding, version, "tools") as asker:
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


@test("tasks_are_listed_with_artifacts_for_who_wants_them", "A2A-10")
def listed_whole():
    with Server() as s:
        made = [rpc(s, "SendMessage", message(i, f"text {i}"))["result"]["task"]["id"] for i in range(5)]
        plain = rpc(s, "ListTasks", {})["result"]["tasks"]
        check(all("artifacts" not in t and "history" not in t for t in plain), plain)
        for page in (rpc(s, "ListTasks", {"includeArtifacts": True, "pageSize": 3})["result"],
                     s.http.get("/a2a/echo/tasks?includeArtifacts=true&pageSize=3").json):
            equal([(t["id"], text_of(t["artifacts"][0])) for t in page["tasks"]], [(made[i], f"text {i}") for i in (4, 3, 2)])
            check(all("history" not in t for t in page["tasks"]), page)
            equal((page["pageSize"], page["totalSize"]), (3, 5))
            rest = rpc(s, "ListTasks", {"includeArtifacts": True, "pageToken": page["nextPageToken"]})["result"]
            equal(([t["id"] for t in rest["tasks"]], rest["nextPageToken"]), (made[1::-1], ""))
        told = rpc(s, "ListTasks", {"historyLength": 1})["result"]["tasks"]
        check(all("artifacts" not in t and len(t["history"]) == 1 for t in told), told)
        old = rpc(s, "tasks/list", {"includeArtifacts": True})["result"]["tasks"][0]
        equal((old["kind"], old["artifacts"][0]["parts"]), ("task", [{"kind": "text", "text": "text 4"}]))
        last = plain[0]["status"]["timestamp"]
        check(made[4] in [t["id"] for t in rpc(s, "ListTasks", {"statusTimestampAfter": last})["result"]["tasks"]], last)
        equal(rpc(s, "ListTasks", {"statusTimestampAfter": "2099-01-01T00:00:00Z"})["result"]["tasks"], [])
        equal(rpc(s, "ListTasks", {"statusTimestampAfter": "soon"})["error"]["code"], -32602)


@test("what_a_run_makes_keeps_its_kind", "A2A-10")
def parts():
    def put(kind, content):
        return "tool artifact.put " + json.dumps({"artifact_type": kind, "title": "out.txt", "content": content})

    with Server() as s:
        for kind, content, part, old in (
                ("json", '{"a": [1]}', {"data": {"a": [1]}, "mediaType": "application/json"}, {"kind": "data", "data": {"a": [1]}}),
                ("file", "hi", {"raw": "aGk=", "filename": "out.txt", "mediaType": "text/plain"},
                 {"kind": "file", "file": {"bytes": "aGk=", "name": "out.txt", "mimeType": "text/plain"}}),
                ("json", "no json", {"text": "no json"}, {"kind": "text", "text": "no json"})):
            task = rpc(s, "SendMessage", message(kind + content[:1], put(kind, content)), "tools")["result"]["task"]
            [made] = [a["parts"] for a in task["artifacts"] if a["artifactId"] != "answer"]
            equal({k: made[0].get(k) for k in part}, part)
            again = rpc(s, "tasks/get", {"id": task["id"]}, "tools")["result"]
            [made] = [a["parts"] for a in again["artifacts"] if a["artifactId"] != "answer"]
            equal(made, [old])


@test("a_text_answers_a_form_that_asks_for_one_and_is_in_the_history", "A2A-10")
def said():
    with Server() as s:
        asked = rpc(s, "SendMessage", message(1, FORM), agent="tools")["result"]["task"]["id"]
        reply = {"message": {"messageId": "m2", "role": "ROLE_USER", "taskId": asked, "parts": [{"text": "Ann"}]}}
        done = rpc(s, "SendMessage", reply, agent="tools")["result"]["task"]
        equal(done["status"]["state"], "TASK_STATE_COMPLETED", done)
        equal([(m["messageId"], m["parts"]) for m in done["history"]], [("m1", [{"text": FORM}]), ("m2", [{"text": "Ann"}])])
        last = rpc(s, "GetTask", {"id": asked, "historyLength": 1}, agent="tools")["result"]["history"]
        equal([m["messageId"] for m in last], ["m2"], "the most recent")


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


def reply(task, part, url=None, **more):
    """A message that answers the task, with a configuration for notifications."""
    params = {"message": {"messageId": "reply", "role": "ROLE_USER", "taskId": task, "parts": [part]}}
    return {**params, "configuration": {"taskPushNotificationConfig": {"url": url, **more}}} if url else params


@test("a_reply_that_is_refused_leaves_no_configuration", "A2A-10")
def refused_reply():
    def urls(task):
        found = rpc(s, "ListTaskPushNotificationConfigs", {"taskId": task}, "tools")["result"]["configs"]
        return sorted((c["url"], c.get("token")) for c in found)

    with Receiver() as r, Server(outbound_allow="127.0.0.1") as s:
        weak = s.http.post("/api/admin/credentials", {"user": "local", "scopes": ["read", "run"]})
        equal(weak.status, 201, weak.body)
        key = {"Authorization": "Bearer " + weak.json["token"]}
        task = rpc(s, "SendMessage", message(1, 'tool fs.write {"path": "a.txt", "text": "x"}'), "tools")["result"]["task"]["id"]
        form = rpc(s, "SendMessage", message(2, FORM), "tools")["result"]["task"]["id"]
        for asked, part, headers in ((task, {"data": {"decision": "bogus"}}, {}), (task, {"text": "perhaps"}, {}),
                                     (task, {"text": "allow"}, key), (form, {"data": {"name": 7}}, {})):
            a = s.http.post("/a2a/tools/message:send", reply(asked, part, r.url + "/left"), headers=headers)
            equal((a.status, b"messageId" in a.body), (403 if headers else 400, False), a.body)
            equal(urls(asked), [], part)
        kept = {"taskId": task, "id": "c", "url": r.url + "/kept", "token": "t"}
        rpc(s, "CreateTaskPushNotificationConfig", kept, "tools")
        check("error" in rpc(s, "SendMessage", reply(task, {"data": {"decision": "bogus"}}, r.url + "/left", id="c"), "tools"))
        equal(urls(task), [(r.url + "/kept", "t")], "what was there is there again")
        done = rpc(s, "SendMessage", reply(task, {"text": "allow"}, r.url + "/taken"), "tools")
        check("result" in done, done)
        done = done["result"]["task"]
        equal((done["status"]["state"], urls(task)), ("TASK_STATE_COMPLETED", [(r.url + "/kept", "t"), (r.url + "/taken", None)]))
        for path in ("/kept", "/taken"):
            seen = r.wait_state("TASK_STATE_COMPLETED", path=path)
            equal(state_of(seen[0][2]), "TASK_STATE_WORKING", "what follows from the answer")
        equal(r.taken("/left"), [])


@test("an_address_that_cannot_be_called_is_refused_with_its_fault", "A2A-10")
def addresses():
    with Server() as s:
        task = rpc(s, "SendMessage", message(1, FORM), "tools")["result"]["task"]["id"]
        names = ("localhost", "LOCALHOST.", "foo.localhost", "127.1", "2130706433", "0x7f.1", "127.0.0.1", "[::1]", "127.0.0.1:99")
        wrong = [("http://" + n + "/", "not public") for n in names]
        wrong += [(None, "required"), ("", "required"), ("https://8.8.8.8/" + "x" * 2048, "2048"), ("https://8.8.8.8/a b", "visible"),
                  ("https://8.8.8.8/ü", "visible"), ("ftp://8.8.8.8/", "http://"), ("8.8.8.8", "http://"), ("https:///x", "host"),
                  ("https://", "host"), ("https://[2606:4700::1/", "]"), ("https://[::1%lo]/", "zone"), ("https://[x]/", "IPv6"),
                  ("https://8.8.8.8/#x", "#"), ("https://me@8.8.8.8/", "user"), ("https://exa%6dple.com/", "letters")]
        wrong += [(f"https://8.8.8.8:{port}/", "65535") for port in ("99999", "abc", "-1", "", "0")]
        for url, fault in wrong:
            e = rpc(s, "CreateTaskPushNotificationConfig", {"taskId": task, "url": url}, "tools")["error"]
            equal((e["code"], e["data"][1]["fieldViolations"][0]["field"]), (-32602, "/url"), url)
            check(fault in e["message"], url, e)
        where = "/configuration/taskPushNotificationConfig/url"
        e = rpc(s, "SendMessage", {**message(2), "configuration": {"taskPushNotificationConfig": {"url": "http://127.1/"}}}, "tools")["error"]
        equal(e["data"][1]["fieldViolations"][0]["field"], where)
        equal(rpc(s, "ListTaskPushNotificationConfigs", {"taskId": task}, "tools")["result"]["configs"], [])
        for url in ("HTTP://8.8.8.8/", "hTTps://8.8.8.8:65535?x=me@here", "https://[2606:4700::1]:1/"):
            made = rpc(s, "CreateTaskPushNotificationConfig", {"taskId": task, "id": "c", "url": url}, "tools")
            check("result" in made and made["result"]["url"] == url, made)


@test("an_address_is_judged_again_when_it_is_called", "A2A-10")
def judged_again():
    with Receiver() as r, Server(outbound_allow="localhost") as s:
        r.status = 503
        told = {"configuration": {"taskPushNotificationConfig": {"url": f"http://localhost:{r.port}/"}}}
        check("result" in rpc(s, "SendMessage", {**message(1, FORM), **told}, "tools"))
        r.wait(lambda seen: seen)
        s.stop()
        r.at_rest()
        before = len(r.seen)
        del s.settings["outbound_allow"]
        s.start()
        wait_until(lambda: "outbound_allow" in s.log(), "it is not allowed any more")
        equal(len(r.seen), before)


@test("a_page_of_configurations_goes_on_behind_one_that_was_deleted", "A2A-10")
def config_pages():
    with Server() as s:
        task = rpc(s, "SendMessage", message(1, FORM), "tools")["result"]["task"]["id"]

        def page(**more):
            return rpc(s, "ListTaskPushNotificationConfigs", {"taskId": task, **more}, "tools")

        for i in "dbac":
            made = rpc(s, "CreateTaskPushNotificationConfig", {"taskId": task, "id": i, "url": "https://8.8.8.8/"}, "tools")
            equal(made["result"]["id"], i, made)
        first = page(pageSize=2)["result"]
        equal([c["id"] for c in first["configs"]], ["a", "b"])
        rpc(s, "DeleteTaskPushNotificationConfig", {"taskId": task, "id": "b"}, "tools")
        rest = page(pageSize=2, pageToken=first["nextPageToken"])["result"]
        equal(([c["id"] for c in rest["configs"]], rest["nextPageToken"]), (["c", "d"], ""))
        equal([c["id"] for c in page(pageToken="bb")["result"]["configs"]], ["c", "d"])
        equal([c["id"] for c in page(pageToken="")["result"]["configs"]], ["a", "c", "d"])
        for token in ("x" * 65, "a b", "\n"):
            e = page(pageToken=token)["error"]
            equal((e["code"], e["data"][1]["fieldViolations"][0]["field"]), (-32602, "/pageToken"), token)
        equal(s.http.get(f"/a2a/tools/tasks/{task}/pushNotificationConfigs?pageToken={'x' * 65}").status, 400)


@test("a_key_that_may_only_read_sees_the_origin_of_a_receiver", "A2A-10")
def reader():
    with Server() as s:
        task = rpc(s, "SendMessage", message(1, FORM), "tools")["result"]["task"]["id"]
        key = s.http.post("/api/admin/credentials", {"user": "local", "scopes": ["read"]}).json["token"]
        path = f"/a2a/tools/tasks/{task}/pushNotificationConfigs"
        for url, origin in (("https://8.8.8.8:8443/hook/canary?key=canary", "https://8.8.8.8:8443"),
                            ("https://8.8.8.8?canary", "https://8.8.8.8"), ("https://8.8.8.8", "https://8.8.8.8")):
            made = s.http.post(path, {"id": "c", "url": url, "token": "canary"})
            equal((made.status, made.json["url"]), (200, url), made.body)
            reader = {"headers": {"Authorization": "Bearer " + key}}
            seen = [s.http.send("GET", path, **reader).json["configs"][0], s.http.send("GET", path + "/c", **reader).json]
            equal([(c["url"], c["id"], "canary" in str(c)) for c in seen], [(origin, "c", False)] * 2)
            equal(s.http.get(path + "/c").json["url"], url, "a key that may run sees it")


@test("who_subscribes_gets_the_task_then_what_follows", "A2A-10")
def subscribed():
    with Server(env=SLOW) as s, Judge(s, agent="demo") as client:
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
