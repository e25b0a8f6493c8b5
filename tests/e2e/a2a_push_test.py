#!/usr/bin/env python3
"""Push notifications of A2A: where they go is kept, and what is told arrives, whatever the receiver does."""
import json
import os
import sqlite3

from lib import Server, check, equal, main, test, wait_until
from lib.a2a import FORM, SLOW, Judge, message, rpc, text_of
from lib.client import Client
from lib.fanout import command
from lib.push import Receiver, state_of
from lib.web import free_port

ALLOW = {"outbound_allow": "127.0.0.1"}
CANARY = "canary-3f9a"


def told(body):
    """What a notification of 1.0 tells, in a word."""
    [kind] = body
    return state_of(body).replace("TASK_STATE_", "").lower() if kind != "artifactUpdate" else "artifact"


def words(seen):
    return [told(body) for _, _, body in seen]


def config(r, path="/", **more):
    return {"url": r.url + path, **more}


def sent(i, text, push, **more):
    return {**message(i, text), "configuration": {"taskPushNotificationConfig": push, **more}}


def waiting(s, i, push=None, agent="tools"):
    """A task that waits for a form."""
    task = rpc(s, "SendMessage", sent(i, FORM, push) if push else message(i, FORM), agent)["result"]["task"]
    equal(task["status"]["state"], "TASK_STATE_INPUT_REQUIRED")
    return task["id"]


def answer(s, i, task, agent="tools"):
    reply = {"message": {"messageId": f"a{i}", "role": "ROLE_USER", "taskId": task, "parts": [{"data": {"name": "Ann"}}]}}
    equal(rpc(s, "SendMessage", reply, agent)["result"]["task"]["status"]["state"], "TASK_STATE_COMPLETED")


def facts(s, task):
    """Changes of the task's configurations, as the log has them."""
    with sqlite3.connect(f"file:{s.data}/uar.db?mode=ro", uri=True) as db:
        rows = db.execute("SELECT payload FROM events WHERE session_id = ? AND type = 'vendor.uar.push.changed'"
                          " ORDER BY sequence", ("uar.push:" + task,)).fetchall()
    return [json.loads(payload) for payload, in rows]


def acknowledged(s, task, n):
    wait_until(lambda: sum(f["change"] == "acknowledged" for f in facts(s, task)) == n, "all is acknowledged")


def judge(binding, version):
    new = version == "1.0"
    with Receiver() as r, Server(**ALLOW) as s, Judge(s, binding, version, "tools") as client:
        push = {"id": "c1", "url": r.url + "/one", "token": "tok"}
        task = client.ask("send", {"id": "m1", "parts": [FORM], "push": push})["id"]
        inner = (lambda c: c) if new else (lambda c: c["pushNotificationConfig"])
        many = (lambda a: a["configs"]) if new else (lambda a: a)
        made = client.ask("push_set", task, {"url": r.url + "/two", "scheme": "Bearer", "credentials": "key"})
        other = inner(made)["id"]
        check(other and made["taskId"] == task, made)
        equal({inner(c)["id"]: inner(c)["url"] for c in many(client.ask("push_list", task))},
              {"c1": r.url + "/one", other: r.url + "/two"})
        got = inner(client.ask("push_get", task, other))
        auth = got["authentication"]
        equal((auth["scheme"] if new else auth["schemes"], auth["credentials"]), ("Bearer" if new else ["Bearer"], "key"))
        equal(inner(client.ask("push_get", task, "c1"))["token"], "tok")
        equal(inner(client.ask("push_set", task, {"id": "c1", "url": r.url + "/three"}))["url"], r.url + "/three")
        equal(len(many(client.ask("push_list", task))), 2, "the same id takes its place")
        for _ in range(2):
            client.ask("push_delete", task, "c1")
        equal([inner(c)["id"] for c in many(client.ask("push_list", task))], [other])
        check("error" in client.call("push_get", task, "c1"), "it is gone")
        if new:
            client.refused("TaskNotFoundError", "push_get", task, "c1")
            client.refused("TaskNotFoundError", "push_set", "nothing", push)
            client.refused("TaskNotFoundError", "push_list", "nothing")
        done = client.ask("send", {"id": "m2", "parts": [{"name": "Ann"}], "task": task})
        check(done["status"]["state"] in (3, "completed"), done)
        seen = r.wait_state("TASK_STATE_COMPLETED", "completed", path="/two")
        equal({h["Authorization"] for _, h, _ in seen}, {"Bearer key"})
        if new:
            equal(words(seen), ["working", "artifact", "completed"], "of what came after it was made")
            return
        equal({(h["Content-Type"], b["kind"], b["id"]) for _, h, b in seen}, {("application/json", "task", task)})
        check("Ann" in text_of(seen[-1][2]["artifacts"][0]), seen[-1])


@test("the_official_client_keeps_configurations_over_json_rpc", "A2A-10")
def over_rpc():
    judge("JSONRPC", "1.0")


@test("the_official_client_keeps_configurations_over_http_json", "A2A-10")
def over_rest():
    judge("HTTP+JSON", "1.0")


@test("the_official_client_of_0_3_is_told_whole_tasks", "A2A-10")
def over_old():
    judge("JSONRPC", "0.3")


@test("each_kind_of_news_is_told_in_its_order_and_text_in_one_piece", "A2A-10")
def kinds():
    with Receiver() as r, Server(**ALLOW) as s:
        rpc(s, "SendMessage", sent(1, "a text of several words", config(r, "/a", token="tok")))
        seen = r.wait_state("TASK_STATE_COMPLETED", path="/a")
        equal(words(seen), ["submitted", "working", "artifact", "completed"])
        update = seen[2][2]["artifactUpdate"]
        equal((update["append"], update["lastChunk"], text_of(update["artifact"])), (False, True, "a text of several words"))
        equal({(h["Content-Type"], h["X-A2A-Notification-Token"], h["Authorization"]) for _, h, _ in seen},
              {("application/a2a+json", "tok", None)})
        task = waiting(s, 2, config(r, "/b", token="tok", authentication={"scheme": "Basic", "credentials": "eDp5"}))
        seen = r.wait_state("TASK_STATE_INPUT_REQUIRED", path="/b")
        equal(words(seen), ["submitted", "working", "artifact", "input_required"])
        check("Who are you?" in json.dumps(seen[-1][2]), seen[-1])
        equal({(h["X-A2A-Notification-Token"], h["Authorization"]) for _, h, _ in seen}, {(None, "Basic eDp5")})
        answer(s, 2, task)
        equal(words(r.wait_state("TASK_STATE_COMPLETED", path="/b"))[4:], ["working", "artifact", "completed"])
        task = waiting(s, 3, config(r, "/c"))
        rpc(s, "CancelTask", {"id": task}, "tools")
        equal(words(r.wait_state("TASK_STATE_CANCELED", path="/c"))[-1], "canceled")
        wait_until(lambda: facts(s, task)[-1]["change"] == "ended", "it ends with its task")


@test("what_was_not_acknowledged_is_told_after_kill_9", "A2A-10")
def killed():
    with Receiver() as r, Server(**ALLOW) as s:
        task = waiting(s, 1, config(r, id="c"))
        first = r.wait_state("TASK_STATE_INPUT_REQUIRED")
        acknowledged(s, task, len(first))
        r.status = 503
        answer(s, 1, task)
        r.wait(lambda seen: len(seen) > len(first))
        s.kill()
        r.at_rest()
        refused = len(r.seen)
        r.status = 200
        s.start()
        seen = r.wait_state("TASK_STATE_COMPLETED")
        equal(words(seen[refused:]), ["working", "artifact", "completed"], "nothing that was taken, all that was not, in order")
        wait_until(lambda: facts(s, task)[-1]["change"] == "ended", "its end")
        s.restart()
        task = waiting(s, 2, config(r, "/next"))
        r.wait_state("TASK_STATE_INPUT_REQUIRED", path="/next")
        equal(len(r.taken()), len(seen), "a restart tells nothing twice")


@test("a_run_that_goes_on_after_kill_9_is_told", "A2A-10")
def killed_waiting():
    with Receiver() as r, Server(**ALLOW) as s:
        task = waiting(s, 1, config(r))
        r.wait_state("TASK_STATE_INPUT_REQUIRED")
        s.restart()
        answer(s, 1, task)
        seen = words(r.wait_state("TASK_STATE_COMPLETED"))
        equal(seen[-3:], ["working", "artifact", "completed"])


@test("a_receiver_that_was_down_gets_all_of_it", "A2A-10")
def down():
    port = free_port()
    with Server(**ALLOW) as s:
        rpc(s, "SendMessage", sent(1, "hello", {"url": f"http://127.0.0.1:{port}/"}))
        wait_until(lambda: "a2a.push_not_taken" in s.log(), "it is tried")
        with Receiver(port) as r:
            equal(words(r.wait_state("TASK_STATE_COMPLETED")), ["submitted", "working", "artifact", "completed"])


@test("receivers_that_hang_or_redirect_hold_up_nobody", "A2A-10")
def hanging():
    with Receiver() as dead, Receiver() as r, Server(**ALLOW) as s:
        for i in range(40):
            rpc(s, "SendMessage", sent(f"h{i}", "hello", config(dead, "/hang")))
        rpc(s, "SendMessage", sent("r", "hello", config(r, "/redirect")))
        for i in range(3):
            task = rpc(s, "SendMessage", sent(i, "hello", config(r, f"/{i}")))["result"]["task"]
            equal(task["status"]["state"], "TASK_STATE_COMPLETED", "the run goes on")
            equal(words(r.wait_state("TASK_STATE_COMPLETED", path=f"/{i}"))[-1], "completed")
        r.wait(lambda seen: len(seen) > 1, "/redirect")
        equal(r.taken("/"), [], "a redirect is not followed")
        equal({told(b) for _, _, b in r.taken("/redirect")}, {"submitted"}, "and not taken for an answer")


@test("addresses_that_are_not_public_are_refused", "A2A-10")
def guarded():
    with Receiver() as r, Server() as s:
        for url in (r.url, f"http://localhost:{r.port}/", "http://[::1]/", "http://169.254.169.254/latest", "http://10.0.0.1:80", "ftp://example.com/",
                    "http://user:secret@example.com/", "example.com", "http://exa mple.com/", ""):
            e = rpc(s, "SendMessage", sent(1, "hello", {"url": url}))["error"]
            equal(e["code"], -32602, url)
        equal(s.http.get("/api/runs").json["runs"], [], "nothing began")
        task = waiting(s, 2)
        e = rpc(s, "CreateTaskPushNotificationConfig", {"taskId": task, "url": r.url}, "tools")["error"]
        equal((e["code"], "outbound_allow" in e["message"]), (-32602, True))
        equal(r.seen, [])


@test("the_task_of_another_owner_has_no_configurations", "A2A-10")
def owners():
    with Receiver() as r, Server(**ALLOW) as s:
        task = waiting(s, 1, config(r, id="c"))
        s.restart(user="another")
        for method, more in (("CreateTaskPushNotificationConfig", config(r, "/x")), ("GetTaskPushNotificationConfig", {"id": "c"}),
                             ("ListTaskPushNotificationConfigs", {}), ("DeleteTaskPushNotificationConfig", {"id": "c"})):
            equal(rpc(s, method, {"taskId": task, **more}, "tools")["error"]["code"], -32001, method)
        path = f"/a2a/tools/tasks/{task}/pushNotificationConfigs"
        equal([s.http.get(path).status, s.http.post(path, config(r)).status, s.http.send("DELETE", path + "/c").status], [404] * 3)
        s.restart(user="local")
        equal(rpc(s, "GetTaskPushNotificationConfig", {"taskId": task, "id": "c"})["error"]["code"], -32001, "of another agent")


@test("configurations_have_limits_and_their_text_makes_no_header", "A2A-10")
def limits():
    with Receiver() as r, Server(**ALLOW) as s:
        task = waiting(s, 1)

        def make(**more):
            return rpc(s, "CreateTaskPushNotificationConfig", {"taskId": task, **config(r), **more}, "tools")

        for wrong in ({"token": "a\r\nX-Evil: 1"}, {"token": "ü"}, {"token": "x" * 4097}, {"url": r.url + "/" + "x" * 2048},
                      {"authentication": {"scheme": "Bearer: x\r\nY", "credentials": "z"}},
                      {"authentication": {"scheme": "Bearer", "credentials": "a\nb"}}, {"authentication": "Bearer"},
                      {"id": "x" * 65}, {"id": "a b"}):
            equal(make(**wrong)["error"]["code"], -32602, wrong)
        ids = {make()["result"]["id"] for _ in range(16)}
        equal(len(ids), 16, "each has an id of its own")
        equal(make()["error"]["code"], -32602, "and that is all")
        equal(make(id=min(ids))["result"]["id"], min(ids), "one of them may be replaced")
        page = rpc(s, "ListTaskPushNotificationConfigs", {"taskId": task, "pageSize": 10}, "tools")["result"]
        rest = rpc(s, "ListTaskPushNotificationConfigs", {"taskId": task, "pageSize": 10, "pageToken": page["nextPageToken"]},
                   "tools")["result"]
        equal(({c["id"] for c in page["configs"] + rest["configs"]}, len(page["configs"]), rest["nextPageToken"]), (ids, 10, ""))


@test("one_that_is_deleted_or_replaced_is_told_nothing_more", "A2A-10")
def ends():
    with Receiver() as r, Server(**ALLOW) as s:
        task = waiting(s, 1, config(r, "/old", id="c"))
        r.wait_state("TASK_STATE_INPUT_REQUIRED", path="/old")
        acknowledged(s, task, 4)
        rpc(s, "CreateTaskPushNotificationConfig", {"taskId": task, **config(r, "/gone", id="d")}, "tools")
        rpc(s, "CreateTaskPushNotificationConfig", {"taskId": task, **config(r, "/new", id="c")}, "tools")
        rpc(s, "DeleteTaskPushNotificationConfig", {"taskId": task, "id": "d"}, "tools")
        answer(s, 1, task)
        equal(words(r.wait_state("TASK_STATE_COMPLETED", path="/new")), ["working", "artifact", "completed"])
        equal((len(r.taken("/old")), r.taken("/gone")), (4, []))


@test("a_message_that_comes_twice_makes_one_configuration", "A2A-10")
def twice():
    with Receiver() as r, Server(**ALLOW) as s:
        task = {waiting(s, 1, config(r)) for _ in range(3)}
        equal(len(task), 1)
        equal(len(rpc(s, "ListTaskPushNotificationConfigs", {"taskId": min(task)}, "tools")["result"]["configs"]), 1)
        answer(s, 1, min(task))
        equal(words(r.wait_state("TASK_STATE_COMPLETED"))[-1], "completed")
        equal(words(r.taken()).count("input_required"), 1, "and what was taken is not told again")


@test("a_message_to_a_task_that_waits_brings_a_configuration", "A2A-10")
def reply():
    with Receiver() as r, Server(**ALLOW) as s:
        task = waiting(s, 1)
        reply = {"message": {"messageId": "m2", "role": "ROLE_USER", "taskId": task, "parts": [{"data": {"name": "Ann"}}]},
                 "configuration": {"taskPushNotificationConfig": config(r)}}
        equal(rpc(s, "SendMessage", reply, "tools")["result"]["task"]["status"]["state"], "TASK_STATE_COMPLETED")
        equal(words(r.wait_state("TASK_STATE_COMPLETED")), ["working", "artifact", "completed"])


@test("no_secret_of_a_configuration_is_anywhere_else", "A2A-10")
def sealed():
    with Receiver() as r, Server(**ALLOW) as s:
        r.status = 500
        push = config(r, f"/{CANARY}-url", token=CANARY + "-token",
                      authentication={"scheme": "Bearer", "credentials": CANARY + "-credentials"})
        task = rpc(s, "SendMessage", sent(1, "hello", push))["result"]["task"]
        r.wait(lambda seen: len(seen) > 1, f"/{CANARY}-url")
        check(CANARY not in json.dumps(task), task)
        check(CANARY not in json.dumps(facts(s, task["id"])), "its facts have none")
        check(CANARY not in json.dumps(s.http.get("/api/runs").json), "nor have lists")
        s.stop()
        check(CANARY not in s.log(), s.log())
        for folder, _, names in os.walk(s.data):
            for name in names:
                with open(os.path.join(folder, name), "rb") as f:
                    check(CANARY.encode() not in f.read(), name)
        s.start()
        got = rpc(s, "ListTaskPushNotificationConfigs", {"taskId": task["id"]})["result"]["configs"][0]
        equal((got["token"], got["authentication"]["credentials"]), (CANARY + "-token", CANARY + "-credentials"))


@test("who_may_only_read_sees_no_secret_of_a_configuration", "A2A-10")
def reader():
    with Receiver() as r, Server(**ALLOW) as s:
        secret = {"token": CANARY, "authentication": {"scheme": "Bearer", "credentials": CANARY}}
        task = waiting(s, 1, config(r, id="c", **secret))
        key = s.http.post("/api/admin/credentials", {"user": "local", "scopes": ["read"]}).json["token"]
        path = f"/a2a/tools/tasks/{task}/pushNotificationConfigs"
        for place in (path, path + "/c"):
            check(CANARY in str(s.http.get(place).body))
            a = Client(s.url, key).get(place)
            check(a.status == 200 and "Bearer" in str(a.body) and CANARY not in str(a.body), a.body)


@test("evicted_runs_take_their_configurations_along", "A2A-10")
def evicted():
    with Receiver() as r, Server(**ALLOW, keep_runs=1) as s:
        task = rpc(s, "SendMessage", sent(1, "hello", config(r)))["result"]["task"]["id"]
        r.wait_state("TASK_STATE_COMPLETED")
        for i in range(2, 4):
            rpc(s, "SendMessage", message(i))
        wait_until(lambda: s.http.get(f"/api/runs/{task}").status == 404, "the run is evicted")
        with sqlite3.connect(f"file:{s.data}/uar.db?mode=ro", uri=True) as db:
            equal(db.execute("SELECT count(*) FROM rows WHERE kind = 'push'").fetchone(), (0,))


@test("a_stream_is_told_as_well", "A2A-10")
def streamed():
    with Receiver() as r, Server(env=SLOW, **ALLOW) as s:
        task = rpc(s, "SendMessage", sent(1, "hi", config(r), returnImmediately=True), agent="demo")["result"]["task"]["id"]
        r.wait(lambda seen: "working" in words(seen))
        rpc(s, "CancelTask", {"id": task}, agent="demo")
        equal(words(r.wait_state("TASK_STATE_CANCELED"))[-1], "canceled")


@test("one_that_is_set_again_when_its_task_has_ended_gets_what_was_pending", "A2A-10")
def moved():
    with Receiver() as r, Server(**ALLOW) as s:
        def set_again(task, **more):
            made = rpc(s, "CreateTaskPushNotificationConfig", {"taskId": task, "id": "c", **more}, "tools")
            check("result" in made, made)

        task = waiting(s, 1, config(r, "/part", id="c"))
        acknowledged(s, task, len(r.wait_state("TASK_STATE_INPUT_REQUIRED", path="/part")))
        r.status = 503
        answer(s, 1, task)
        r.wait(lambda seen: len(seen) > 4, "/part")
        killed = waiting(s, 2, config(r, "/old", id="c", token="old"))
        answer(s, 2, killed)
        r.wait(len, "/old")
        with Receiver() as other:
            set_again(task, **config(other, "/rest", token="new"))
            seen = other.wait_state("TASK_STATE_COMPLETED", path="/rest")
            equal(words(seen), ["working", "artifact", "completed"], "from where the old address stood")
            equal({h["X-A2A-Notification-Token"] for _, h, _ in seen}, {"new"})
            wait_until(lambda: facts(s, task)[-1]["change"] == "ended", "and then it ends")
            other.status = 503
            set_again(killed, **config(other, "/new", token="new"))
            other.wait(len, "/new")
            s.kill()
            other.status = 200
            s.start()
            seen = words(other.wait_state("TASK_STATE_COMPLETED", path="/new"))
            equal(seen[-7:], ["submitted", "working", "artifact", "input_required", "working", "artifact", "completed"])
            equal(set(seen[:-7]), {"submitted"}, "of those that were refused")
            wait_until(lambda: facts(s, killed)[-1]["change"] == "ended", "a restart forgets nothing of it")
            r.status = 200
            count = len(facts(s, task))
            set_again(task, **config(r, "/late"))
            wait_until(lambda: len(facts(s, task)) == count + 2, "it ends at once")
            equal((facts(s, task)[-1]["change"], r.taken("/late")), ("ended", []), "nothing is told twice")


@test("why_nothing_was_taken_is_said_without_the_address", "A2A-10")
def failures():
    port = free_port()
    with Server(log_level="debug", outbound_allow=f"127.0.0.1,{CANARY}.invalid") as s:
        tasks = [rpc(s, "SendMessage", sent(i, "hello", {"id": f"c{i}", "url": url}))["result"]["task"]
                 for i, url in enumerate((f"http://{CANARY}.invalid/", f"http://127.0.0.1:{port}/"))]
        for i, task in enumerate(tasks):
            equal(task["status"]["state"], "TASK_STATE_COMPLETED")
            wait_until(lambda i=i: any("push_not_taken" in n and f"c{i}" in n for n in s.log().splitlines()), "it is tried")
        a = [s.record(t["id"]) for t in tasks]
        a += [command(s, "export_" + kind, thread_id=run["conversation_id"], turn_id=run["turn_id"])["result"]
              for kind in ("evidence", "replay", "review") for run in a]
        check(len(a) == 8 and CANARY not in str(a) and f":{port}" not in str(a), a)
        s.stop()
        lines = [n for n in s.log().splitlines() if "push_not_taken" in n]
        check(any("resolve" in n.lower() for n in lines) and any("connect" in n.lower() for n in lines), lines)
        for secret in (CANARY, f"port {port}", f":{port}"):
            check(secret not in s.log(), s.log())
        for folder, _, names in os.walk(s.data):
            for name in names:
                with open(os.path.join(folder, name), "rb") as f:
                    check(CANARY.encode() not in f.read(), name)


@test("hundreds_of_notifications_that_hang_hold_up_no_receiver_of_any_owner", "A2A-10")
def fair():
    with Receiver() as dead, Receiver() as shared, Receiver() as r, Server(**ALLOW) as s:
        bob = s.http.post("/api/admin/credentials", {"tenant": "bobs", "user": "bob"}).json["token"]
        for i in range(20):
            task = waiting(s, f"h{i}", config(dead, "/hang"))
            for k in range(15):
                rpc(s, "CreateTaskPushNotificationConfig", {"taskId": task, **config((dead, shared)[k % 2], "/hang")}, "tools")
            rpc(s, "CancelTask", {"id": task}, "tools")
        for receiver in (dead, shared):
            receiver.wait(len, "/hang")

        def one(i, receiver, **headers):
            rpc(s, "SendMessage", sent(i, "hello", config(receiver, f"/{i}")), **headers)
            equal(words(receiver.wait_state("TASK_STATE_COMPLETED", path=f"/{i}")),
                  ["submitted", "working", "artifact", "completed"])

        for i in range(3):
            one(f"own{i}", r)
            one(f"other{i}", r, Authorization="Bearer " + bob)
            one(f"host{i}", shared, Authorization="Bearer " + bob)
        check(all(len(h.taken("/hang")) < 16 for h in (dead, shared)), "they have hung all the time, and few are tried at once")


if __name__ == "__main__":
    main()
