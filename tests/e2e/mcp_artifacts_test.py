#!/usr/bin/env python3
"""What runs make as resources of MCP: listed, read, subscribed to, in both eras."""
import base64
import json
import os
import subprocess

from lib import ROOT, SAFETY, Provider, Server, check, equal, main, test, wait_until
from lib.mcp import META, Modern, Session, last_message
from lib.npm import modules, node
from lib.plugins import Lab

TEMPLATE = "uar://runs/{run_id}/artifacts/{artifact_id}"
UPDATED = "notifications/resources/updated"


def put(**args):
    return "tool artifact.put " + json.dumps({"artifact_type": "markdown", "title": "A page", **args})


def messages(stream):
    return (e.data for e in stream if e.text)


def pages(client, most=50):
    """Everything that resources/list has, page by page."""
    cursor, out = None, []
    while most:
        got = client.ask("resources/list", {"cursor": cursor} if cursor else {})
        out, cursor, most = out + [got["resources"]], got.get("nextCursor"), most - 1
        if not cursor:
            return out
    raise AssertionError("the list has no end")


def artifacts(client):
    return [r for page in pages(client) for r in page if "/artifacts/" in r["uri"]]


def text_of(client, uri):
    [content] = client.ask("resources/read", {"uri": uri})["contents"]
    equal(content["uri"], uri)
    return content["text"]


def error(client, method, uri):
    return last_message(client.post(method, {"uri": uri}))["error"]


def first_version(s):
    """A run that has made an artifact and waits before it makes further versions."""
    run_id = s.create("assistant", "write a program")
    [made] = wait_until(lambda: artifacts(Modern(s)), "an artifact")
    return run_id, made


@test("an_artifact_is_listed_read_and_told_of_in_both_eras", "")
def both_eras():
    with Provider() as p, Server(env=p.env("revise:gate")) as s:
        run_id, made = first_version(s)
        old, new = Session(s), Modern(s)
        check(made["uri"].startswith(f"uar://runs/{run_id}/artifacts/") and made["uri"].endswith(made["name"]), made)
        equal((made["title"], made["description"]), ("Program", "code"))
        for c in (old, new):
            [[run, listed]] = pages(c)
            equal((run["uri"], listed), (f"uar://runs/{run_id}", made), "behind its run")
            check(TEMPLATE in [t["uriTemplate"] for t in c.ask("resources/templates/list")["resourceTemplates"]])
            [content] = c.ask("resources/read", {"uri": made["uri"]})["contents"]
            equal(content, {"uri": made["uri"], "mimeType": made["mimeType"], "text": "print(0)"})
        own = old.listen()
        equal(old.ask("resources/subscribe", {"uri": made["uri"]}), {})
        held = new.open("subscriptions/listen", {"notifications": {"resourceSubscriptions": [made["uri"]]}})
        equal(next(messages(held))["params"]["notifications"], {"resourceSubscriptions": [made["uri"]]})
        p.release()
        for said in (messages(own), messages(held)):
            told = next(said)
            equal((told["method"], told["params"]["uri"]), (UPDATED, made["uri"]))
        check(META + "subscriptionId" in told["params"]["_meta"], told)
        s.finish(run_id)
        for c in (old, new):
            equal(text_of(c, made["uri"]), "print(2)")
            equal(artifacts(c), [made], "one resource, whatever versions it has")
        own.close()
        held.close()


@test("a_version_that_commits_while_the_client_is_away_is_told_to_it", "MCP-08")
def reconnects():
    with Provider() as p, Server(env=p.env("revise:gate")) as s:
        run_id, made = first_version(s)
        c = Session(s)
        own = c.listen()
        equal(c.ask("resources/subscribe", {"uri": made["uri"]}), {})
        own.close()
        s.restart()
        p.release()
        equal(s.finish(run_id)["status"], "succeeded")
        own = c.listen()
        last = next(e for e in own if e.text)
        equal((last.data["method"], last.data["params"]["uri"]), (UPDATED, made["uri"]))
        equal(text_of(c, made["uri"]), "print(2)")
        own.close()
        equal(c.ask("resources/unsubscribe", {"uri": made["uri"]}), {})
        # The server was there all the time: the notice is in the log, and the stream is resumed.
        p.hold()
        run_id = s.create("assistant", "another one")
        [other] = wait_until(lambda: [a for a in artifacts(c) if a != made], "another artifact")
        equal(c.ask("resources/subscribe", {"uri": other["uri"]}), {})
        p.release()
        s.finish(run_id)
        again = messages(c.listen(last.id))
        while (told := next(again))["params"]["uri"] != other["uri"]:
            pass
        equal(told["method"], UPDATED)


@test("what_is_not_there_and_what_is_of_others_is_the_same_error", "")
def not_found():
    with Server() as s:
        run_id = s.create("tools", put(content="mine alone"))
        s.finish(run_id)
        [made] = artifacts(Modern(s))
        equal(text_of(Session(s), made["uri"]), "mine alone")
        unknown = [f"uar://runs/{run_id}/artifacts/none", f"uar://runs/none/artifacts/{made['name']}",
                   made["uri"] + "/", made["uri"].replace(made["name"], "%2E%2E"), f"uar://runs/{run_id}/artifacts/"]

        def refused(uri):
            for c, code in ((Session(s), -32002), (Modern(s), -32602)):
                for method in ("resources/read", "resources/subscribe")[:1 + (code == -32002)]:
                    equal(error(c, method, uri), {"code": code, "message": "there is no such resource", "data": {"uri": uri}})
        for uri in unknown:
            refused(uri)
        s.restart(tenant="other")  # the same log, another owner
        refused(made["uri"])
        equal(artifacts(Modern(s)), [])
        for wrong in ("x", "0", "7~", f"3~{run_id}", f"0~{run_id}"):
            equal(last_message(Modern(s).post("resources/list", {"cursor": wrong}))["error"]["code"], -32602, wrong)


@test("bytes_are_text_or_a_blob_and_long_ones_are_read_over_http", "")
def contents():
    with Lab() as s:
        tools = s.create("tools", put(content="ä" * 20000) + "\nthen\n" + put(content="<svg/>", artifact_type="svg"))
        s.finish(tools)
        large = s.play("large", {"n": 300000, "file": s.file("f")})["run_id"]
        quotes = s.play("echo", {"say": '"' * 250000})["run_id"]  # in an answer each of its bytes is two
        listed = artifacts(Modern(s))

        def made(run_id):
            return [a for a in listed if run_id in a["uri"]]
        page, svg = made(tools)
        image, too_long, invalid, nothing, *_ = made(large)
        equal([a["mimeType"] for a in (svg, image, invalid)], ["image/svg+xml", "image/png", "text/html"])
        for c in (Session(s), Modern(s)):
            equal((text_of(c, page["uri"]), text_of(c, svg["uri"])), ("ä" * 20000, "<svg/>"))
            for a, size in ((image, 300000), (invalid, 300000), (nothing, 0)):  # the second says that it is text, and is not
                [got] = c.ask("resources/read", {"uri": a["uri"]})["contents"]
                check("text" not in got and len(base64.b64decode(got["blob"])) == size, got)
            for a in (too_long, made(quotes)[-1]):
                refused = error(c, "resources/read", a["uri"])
                equal((refused["code"], refused["data"]["limit"]), (-32602, 524288))
                check("GET " + refused["data"]["url"] in refused["message"], refused)
                whole = s.http.get(refused["data"]["url"])
                equal((whole.status, len(whole.body)), (200, refused["data"]["size"]), "as the error says")


@test("what_plugins_export_is_read_by_its_type", "")
def exports():
    with Lab() as s:
        run_id = s.begin("items")
        s.done(run_id)
        items = {i["export_item_id"]: i for i in s.items(run_id)["items"]}
        listed = {a["name"]: a for a in artifacts(Modern(s))}
        equal(set(listed), set(items))
        for c in (Session(s), Modern(s)):
            for name, item in items.items():
                [got] = c.ask("resources/read", {"uri": listed[name]["uri"]})["contents"]
                equal((got["uri"], got["mimeType"]), (listed[name]["uri"], listed[name]["mimeType"]))
                if item["type"] == "binary":
                    equal(base64.b64decode(got["blob"]), base64.b64decode(item["binary"]))
                elif item["type"] == "json":
                    equal((json.loads(got["text"]), got["mimeType"]), (item["json"], "application/json"))
                else:
                    equal(got["text"], item[item["type"]], item)
                    equal(got["mimeType"], "text/plain" if item["type"] == "text" else "text/uri-list")


@test("a_long_list_has_pages_without_gaps_or_doubles", "")
def paged():
    with Server() as s:
        many = "\nthen\n".join(put(content=f"{i}") for i in range(20))
        made = []
        for i in range(60):
            made.append(s.create("tools", many if i % 6 == 0 else put(content="x")))
        for run_id in made:
            s.finish(run_id)
        for c in (Session(s), Modern(s)):
            got = pages(c)
            check(len(got) > 2 and max(len(page) for page in got) <= 50 + 128, [len(page) for page in got])
            uris = [r["uri"] for page in got for r in page]
            equal(len(uris), len(set(uris)), "none twice")
            equal({u for u in uris if "/artifacts/" not in u}, {"uar://runs/" + r for r in made})
            for i, run_id in enumerate(made):
                equal(len([u for u in uris if u.startswith(f"uar://runs/{run_id}/artifacts/")]), 20 if i % 6 == 0 else 1)


@test("the_official_clients_read_and_subscribe", "MCP-08")
def official():
    reader = os.path.join(ROOT, "tests", "e2e", "mcp_artifacts.mjs")
    here, program = modules("mcp"), node()
    for kind in ("v1", "v2-legacy", "v2-auto"):
        with Provider() as p, Server(env=p.env("revise:gate")) as s:
            run_id, made = first_version(s)
            client = subprocess.Popen([program, reader, here, kind, s.url + "/mcp", s.token], stdout=subprocess.PIPE, text=True)
            try:
                equal(client.stdout.readline().strip(), "ready", kind)
                p.release()
                got = json.loads(client.stdout.readline())
                equal(client.wait(SAFETY), 0)
            finally:
                client.kill()
                client.wait()
                client.stdout.close()
            equal((got["artifact"]["uri"], got["uri"], got["before"]["text"]), (made["uri"], made["uri"], "print(0)"), kind)
            check(got["after"]["text"] in ("print(1)", "print(2)"), got)
            check(TEMPLATE in got["templates"] and got["missing"] == (-32002 if kind == "v1" else -32602), kind, got)
            s.finish(run_id)


if __name__ == "__main__":
    main()
