#!/usr/bin/env python3
"""What every route says to a wrong method, a wrong query, a broken path, to HEAD and OPTIONS."""
import json
import os
import re

from lib import Server, check, equal, main, refused, send_raw, test, wait_until
from lib.client import host_of
from lib.server import ROOT

ID = "01a1e106-d68b-740e-8cdd-a8031c7b3c19"
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")


def table():
    """{path: {method: query names}} from the table that the server is made of."""
    with open(os.path.join(ROOT, "src", "gate", "route.def")) as f:
        rows = re.findall(r'^R\((\w+), "([^"]+)", \w+, \w+, \w+,\s+"([^"]*)",', f.read(), re.M)
    check(len(rows) >= 20, rows)
    paths = {}
    for method, path, query in rows:
        paths.setdefault(re.sub(r"/:\w+", "/" + ID, path), {})[method] = query.split()
    return paths


def allowed(answer):
    return set(answer.headers["allow"].split(", "))


@test("a_wrong_method_is_told_the_right_ones", "ERR-08")
def methods():
    with Server() as s:
        for path, rows in table().items():
            own = set(rows) | ({"HEAD"} if "GET" in rows else set()) | {"OPTIONS"}
            equal(allowed(s.http.send("OPTIONS", path)), own, path)
            for method in set(METHODS) - own:
                a = s.http.send(method, path)
                equal((a.status, allowed(a)), (405, own), method + " " + path)
        every = s.http.send("OPTIONS", "*")
        equal((every.status, allowed(every)), (204, {"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"}))
        refused(s.http.send("OPTIONS", "*", token=False), 401, "UNAUTHORIZED")
        refused(s.http.send("OPTIONS", "/nothing"), 404, "NOT_FOUND")


@test("a_query_that_a_route_does_not_take_is_refused", "ERR-05 ERR-08")
def queries():
    with Server() as s:
        for path, rows in table().items():
            for method, names in rows.items():
                if names == ["*"]:  # views and OAuth: what a query means is said by others
                    check(s.http.send(method, path + "?colour=1").status in (200, 404), path)
                    continue
                bad = [("colour=1", "?colour"), ("Limit=1", "?Limit"), ("%61fter=1", "?%61fter"),
                       ("=1", "?")]
                for name in names:
                    bad += [(f"{name}=%zz", "?" + name), (f"{name}=%00", "?" + name),
                            (f"{name}=%ff", "?" + name), (f"{name}=1&{name}=1", "?" + name)]
                for query, where in bad:
                    a = s.http.send(method, path + "?" + query)
                    if path.startswith("/v1/"):  # of another API, in its form
                        equal((a.status, a.json["error"]["code"]), (400, "VALIDATION_ERROR"), path)
                    elif method == "POST" and path.rstrip("/") == "/a2a/" + ID:
                        equal((a.status, a.json["error"]["code"]), (400, -32600), path)
                    elif path.startswith("/a2a/"):
                        equal((a.status, a.json["error"]["status"]), (400, "INVALID_ARGUMENT"), path)
                    else:
                        refused(a, 400, "VALIDATION_ERROR", where)
        equal(s.http.get("/health?").status, 200)
        equal(s.http.get("/api/runs?&limit=1&").status, 200)


@test("a_broken_escape_in_a_path_is_a_bad_request", "ERR-08")
def escapes():
    with Server() as s:
        for path in ("/api/runs/%zz", "/api/runs/%", "/api/runs/%4", "/api/runs/%00",
                     "/api/runs/x%0", "/api/runs/%zz/stream", "/%zz", "/api/fixtures/%g0/stream"):
            refused(s.http.get(path), 400, "VALIDATION_ERROR")
            refused(s.http.get(path, token=False), 401, "UNAUTHORIZED")


@test("head_is_what_get_would_be", "API-19 ERR-08")
def heads():
    with Server() as s:
        run_id = s.create("echo", "hi")
        s.finish(run_id)
        session = s.record(run_id)["session_id"]
        for path in ("/health", "/version", "/api/agents", "/api/runs", f"/api/runs/{run_id}",
                     f"/api/runs/{ID}", f"/api/runs/{ID}/stream", f"/api/sessions/{ID}/events",
                     f"/api/runs/{run_id}/stream?after=x", f"/api/runs/{run_id}/stream?after=99",
                     "/api/fixtures/none/stream", "/channels/runs?after=x", "/channels/runs?x=1",
                     "/nothing"):
            head, get = s.http.send("HEAD", path), s.http.get(path)
            for a in (head, get):
                a.headers.pop("date")
            equal((head.status, head.headers, head.body), (get.status, get.headers, b""), path)
        for path in (f"/api/runs/{run_id}/stream", f"/api/sessions/{session}/events",
                     "/channels/runs", "/channels/export", f"/channels/export?run_id={run_id}"):
            a = s.http.send("HEAD", path)
            equal((a.status, a.body), (200, b""), path)
            equal(a.headers["content-type"], "text/event-stream; charset=utf-8")
            equal(a.headers["transfer-encoding"], "chunked")
        wait_until(lambda: s.metric("uar_http_streams") == 0, "no stream is left")


@test("what_may_have_no_body_needs_none", "API-20 RUN-27")
def bodies():
    with Server() as s:
        for family in ("/api/runs", "/runs"):
            for body, headers in ((None, {}), (None, {"Content-Length": "0"}), (b"", {}), ({}, {}),
                                  (None, {"Content-Length": "0", "Content-Type": "text/plain"})):
                run_id = s.create("echo", "hi")
                s.finish(run_id)
                a = s.http.send("POST", f"{family}/{run_id}/cancel", body, headers)
                equal((a.status, a.json["status"]), (200, "succeeded"), a.body)
                a = s.http.send("POST", f"{family}/{run_id}/retry", body, headers)
                equal(a.status, 202, a.body)
                refused(s.http.send("POST", f"{family}/{run_id}/cancel", b"{}",
                                    {"Content-Type": "text/plain"}), 415, "UNSUPPORTED_MEDIA_TYPE")


@test("what_could_be_read_in_two_ways_is_refused", "ERR-05 ERR-08")
def two_ways():
    body = b'{"agent_id":"echo","inputs":{"message":"hi"}}'
    with Server() as s:
        run_id = s.create("echo", "hi")
        s.finish(run_id)

        def raw(method, path, fields, sent=b""):
            head = {"Host": host_of(s.url), "Authorization": "Bearer " + s.token,
                    "Connection": "close", "Content-Length": str(len(sent))}
            lines = [f"{k}: {v}" for k, v in [*head.items(), *fields]]
            data = f"{method} {path} HTTP/1.1\r\n" + "\r\n".join(lines) + "\r\n\r\n"
            status, _, answer = send_raw(s.url, data.encode() + sent).partition(b"\r\n")
            return int(status.split()[1]), json.loads(answer.partition(b"\r\n\r\n")[2])
        kind = ("Content-Type", "application/json")
        for fields, where in (
                ([kind, ("Idempotency-Key", "a"), ("Idempotency-Key", "b")], "Idempotency-Key"),
                ([("Last-Event-ID", "1"), ("last-event-id", "2"), kind], "last-event-id")):
            status, problem = raw("POST", "/api/runs", fields, body)
            equal((status, problem["where"].lower()), (400, where.lower()), problem)
        for charset, want in (("utf-8", 202), ('"UTF-8"', 202), ("latin1", 415), ("utf-16", 415)):
            kind = {"Content-Type": "application/json; charset=" + charset}
            a = s.http.post("/api/runs", body, headers=kind)
            equal(a.status, want, charset)
        status, problem = raw("GET", "/health", [], b"{}")
        equal((status, problem["detail"]), (413, "this request takes no body"))
        refused(s.http.get("/api/runs?before=nobody"), 400, "VALIDATION_ERROR", "?before")
        for value in ("2", "", "true"):
            refused(s.http.get(f"/api/runs/{run_id}/stream?meta={value}"), 400,
                    "VALIDATION_ERROR", "?meta")


@test("a_place_is_named_as_its_route_names_it", "ERR-05")
def places():
    with Server() as s:
        s.ready()
        good = {"plugin_id": "uar.agent", "entry_id": "echo", "args": {"message": "hi"}}
        for change, status, where in (
                ({"entry_id": "nobody"}, 404, "/entry_id"),
                ({"args": {}}, 400, "/args/message"), ({"args": {"message": 1}}, 400, "/args/message"),
                ({"args": {"message": "m", "x": "y" * 9000}}, 413, "/args"),
                ({"mode": "later"}, 400, "/mode")):
            a = s.http.post("/runs", {**good, **change})
            equal((a.status, a.json.get("where")), (status, where), a.body)


main()
