#!/usr/bin/env python3
"""Many users: keys, scopes, and that one user finds nothing of another."""
import re

from lib import Server, check, equal, main, refused, run_uar, test, wait_until
from lib.client import Client
from lib.sse import Stream


def new_key(s, user, **more):
    a = s.http.post("/api/admin/credentials", {"user": user, **more})
    equal(a.status, 201, a.body)
    return a.json


def as_user(s, user, **more):
    """A client with a key of its own."""
    return Client(s.url, new_key(s, user, **more)["token"])


def run_echo(http, message, **more):
    a = http.post("/api/runs", {"agent_id": "echo", "inputs": {"message": message}, **more})
    check(a.status in (200, 201, 202), a.body)
    return a.json["run_id"]


# --- keys --------------------------------------------------------------------------------------


@test("a_key_admits_its_user_until_it_is_revoked", "")
def keys():
    with Server() as s:
        made = new_key(s, "alice", tenant="acme", label="laptop", scopes=["read", "run"])
        equal((made["tenant"], made["user"], made["scopes"], made["status"]),
              ("acme", "alice", ["read", "run"], "active"))
        check(re.fullmatch(r"uar_[0-9a-f]{16}_[0-9a-f]{64}", made["token"]), made)
        alice = Client(s.url, made["token"])
        run_id = run_echo(alice, "mine")
        equal(alice.get("/api/runs/" + run_id).status, 200)
        equal(s.http.get("/api/runs/" + run_id).status, 404)
        listed = s.http.get("/api/admin/credentials").json["credentials"]
        equal([k["credential_id"] for k in listed], [made["credential_id"]])
        check("token" not in listed[0], listed)
        for wrong in (made["token"][:-1], made["token"] + "0", "uar_" + "0" * 16 + made["token"][20:], "uar_", "uar__",
                      made["token"][:21], made["token"].upper()):
            refused(Client(s.url, wrong).get("/api/runs"), 401, "UNAUTHORIZED")
        s.restart()
        alice = Client(s.url, made["token"])
        equal(s.ready().http.get("/api/runs").json["runs"], [])
        equal(alice.get("/api/runs/" + run_id).status, 200)
        gone = s.http.send("DELETE", "/api/admin/credentials/" + made["credential_id"])
        equal((gone.status, gone.json["status"]), (200, "revoked"))
        equal(s.http.send("DELETE", "/api/admin/credentials/" + made["credential_id"]).status, 200)
        refused(alice.get("/api/runs"), 401, "UNAUTHORIZED")
        s.restart()
        s.ready()
        refused(Client(s.url, made["token"]).get("/api/runs"), 401, "UNAUTHORIZED")
        equal([k["status"] for k in s.http.get("/api/admin/credentials").json["credentials"]], ["revoked"])
        refused(s.http.send("DELETE", "/api/admin/credentials/0000000000000000"), 404, "NOT_FOUND")
        facts = s.http.get("/api/sessions/uar.registry/events?stored=1").body.decode()
        check(facts.count("vendor.uar.credential.changed") >= 2, facts)
        secret = made["token"].rpartition("_")[2]
        check(secret not in facts and secret not in s.log(), "the secret part was written down")


@test("a_revoked_key_ends_its_streams", "")
def streams():
    with Server() as s:
        made, other = new_key(s, "alice", tenant="acme"), new_key(s, "alice", tenant="acme")
        first, second = (Stream(s.url, "/channels/runs", k["token"]) for k in (made, other))
        equal(s.http.send("DELETE", "/api/admin/credentials/" + made["credential_id"]).status, 200)
        equal(list(first), [])  # it ends
        run_id = run_echo(Client(s.url, other["token"]), "still there")
        check(run_id in next(iter(second)).text, "the other stream is open")
        second.close()


@test("an_expired_key_is_refused", "")
def expiry():
    with Server() as s:
        made = new_key(s, "alice", expires_seconds=1)
        wait_until(lambda: Client(s.url, made["token"]).get("/api/runs").status == 401, "it has expired")
        for wrong in (-1, 315360001, "1"):
            equal(s.http.post("/api/admin/credentials", {"user": "a", "expires_seconds": wrong}).status, 400)


@test("scopes_say_what_a_key_is_for", "")
def scopes():
    with Server() as s:
        reader = as_user(s, "local", scopes=["read"])
        run_id = run_echo(s.http, "shared")
        equal(reader.get("/api/runs/" + run_id).status, 200)  # the same user as the holder of the token
        for method, path, body, scope in (
                ("POST", "/api/runs", {"agent_id": "echo"}, "run"), ("GET", "/metrics", None, "metrics"),
                ("POST", f"/api/runs/{run_id}/cancel", None, "run"), ("PUT", "/api/agents/a", {}, "define"),
                ("POST", "/api/control/create_task", {"objective": "x"}, "run"),
                ("POST", "/api/control/respond_action", {"action_id": "x"}, "answer"),
                ("GET", "/api/admin/settings", None, "admin"), ("GET", "/api/admin/log", None, "admin"),
                ("POST", "/api/links", None, "admin"), ("POST", "/api/admin/credentials", {"user": "x"}, "admin")):
            problem = refused(reader.send(method, path, body), 403, "FORBIDDEN")
            check(f'"{scope}"' in problem["detail"], problem)
        equal(as_user(s, "scraper", scopes=["metrics"]).get("/metrics").status, 200)
        equal(as_user(s, "second", scopes=["admin"]).get("/api/admin/credentials").status, 200)
        for body in ({}, {"user": "a b"}, {"user": "a", "scopes": ["all"]}, {"user": "a", "owner": "x"}):
            equal(s.http.post("/api/admin/credentials", body).status, 400, body)


@test("keys_are_made_on_the_command_line", "")
def commands():
    with Server() as s:
        def uar(*argv):
            return run_uar("token", *argv, "--data", s.data, home=s.root)
        made = uar("new", "acme/alice", "--scopes", "read,run", "--label", "phone", "--expires", "30d")
        equal(made.returncode, 0, made)
        equal(Client(s.url, made.stdout.strip()).get("/api/runs").status, 200)
        listed = uar("list")
        check("active\tacme/alice\tread,run\tphone" in listed.stdout, listed)
        equal(uar("revoke", made.stdout.strip()).returncode, 0)
        equal(Client(s.url, made.stdout.strip()).get("/api/runs").status, 401)
        for wrong in (("new",), ("old", "x"), ("list", "x"), ("new", "a", "--expires", "soon"), ("new", "a", "--scopes", "x")):
            check(uar(*wrong).returncode != 0, wrong)


main()
