#!/usr/bin/env python3
"""Lists of runs: filters, order, counts, and the search of titles and messages."""
import os

from lib import Provider, Server, check, equal, main, refused, test, wait_until

WORDS = ("alpha beta gamma", "delta epsilon", 'beta zeta "quoted"', "x " * 900 + "needle")


def listed(s, query):
    a = s.http.get("/api/runs?" + query)
    equal(a.status, 200, a.body)
    return a.json


def titles(s, query):
    return [r["title"].split()[0] for r in listed(s, query)["runs"]]


def talk(s):
    for words in WORDS:
        s.finish(s.create("assistant", words))
    s.finish(s.create("echo", "only an echo"))


@test("runs_are_sorted_bounded_and_counted_by_columns", "")
def columns():
    with Provider() as p, Server(env=p.env("repeat")) as s:
        talk(s)
        equal(titles(s, "sort=title"), ["alpha", "beta", "delta", "only", "x"])
        equal(titles(s, "sort=-title&limit=2"), ["x", "only"])
        equal(titles(s, "sort=-tokens&limit=1"), ["x"])
        equal(titles(s, "sort=created_at"), ["alpha", "delta", "beta", "x", "only"])
        equal((listed(s, "count=1&limit=2")["total"], len(listed(s, "count=1&limit=2")["runs"])), (5, 2))
        equal(listed(s, "min_tokens=1&count=1")["total"], 4)
        equal(listed(s, "max_tokens=0&count=1")["total"], 1)
        equal(listed(s, "min_created_at=2040-01-01T00:00:00Z&count=1")["total"], 0)
        equal(listed(s, "max_created_at=4102444800&status=succeeded&agent_id=echo&count=1")["total"], 1)
        equal(listed(s, "min_duration=3600&count=1")["total"], 0)
        seen, before = [], ""
        while before is not None:
            page = listed(s, "sort=title&limit=2" + (f"&before={before}" if before else ""))
            seen += [r["title"].split()[0] for r in page["runs"]]
            before = page["next_before"]
        equal(seen, ["alpha", "beta", "delta", "only", "x"])
        r = listed(s, "sort=title&limit=1")["runs"][0]
        check(r["tokens"] > 0 and r["duration"] > 0 and r["cost"] == 0, r)
        for bad, where in (("sort=colour", "?sort"), ("min_cost=x", "?min_cost"), ("count=2", "?count"),
                           ("max_created_at=soon", "?max_created_at")):
            refused(s.http.get("/api/runs?" + bad), 400, "VALIDATION_ERROR", where)


@test("failed_runs_are_found_by_their_code", "")
def codes():
    with Server(env={"UAR_SCRIPTED_TOKEN_MS": "60000"}) as s:
        run_id = s.create("tools", "x", timeout=0.2)
        r = s.finish(run_id)
        s.finish(s.create("echo", "fine"))
        code = r["error"]["code"]
        equal([x["run_id"] for x in listed(s, f"error_code={code}")["runs"]], [r["run_id"]])
        equal(listed(s, "error_code=NOTHING")["runs"], [])


@test("titles_and_messages_are_searched", "")
def search():
    with Provider() as p, Server(env=p.env("repeat")) as s:
        equal(listed(s, "q=beta")["runs"], [])
        talk(s)
        page = listed(s, "q=beta&count=1")
        equal((page["total"], page["search_state"]), (2, "complete"))
        equal(titles(s, "q=beta&sort=title"), ["alpha", "beta"])
        equal(titles(s, "q=gam"), ["alpha"], "a word may go on")
        equal(titles(s, "q=zeta%20beta"), ["beta"], "all words count")
        equal(titles(s, "q=needle"), ["x"], "the end of a long answer")
        equal(titles(s, "q=%22quoted%22"), ["beta"])
        for nothing in ("q=AND", "q=%22", "q=beta%20OR%20delta", "q=title:alpha", "q=*"):
            equal(listed(s, nothing)["runs"], [], nothing)
        equal(titles(s, "q=echo&agent_id=assistant"), [])
        s.kill()
        s.start()
        s.finish(s.create("echo", "omega after a kill"))
        equal((titles(s, "q=omega"), titles(s, "q=needle")), (["omega"], ["x"]))
        s.stop()
        with open(os.path.join(s.data, "search.db"), "r+b") as f:
            f.write(b"not a database at all")
        s.start()
        equal((titles(s, "q=omega"), titles(s, "q=needle")), (["omega"], ["x"]), "the index is made anew")
        s.stop()
        os.unlink(os.path.join(s.data, "search.db"))
        s.start()
        s.finish(s.create("echo", "psi"))
        wait_until(lambda: os.path.exists(os.path.join(s.data, "search.db")), "it is filled while nothing happens")


@test("sessions_are_listed_by_filters_in_pages", "SNAP-01")
def sessions():
    with Server(env={"UAR_SCRIPTED_TOKEN_MS": "60000"}) as s:
        for i in range(5):
            s.finish(s.create("echo", f"word {i}", conversation_id=f"talk-{i}"))
        live = s.create("tools", "a long answer")
        task = s.http.post("/api/control/create_task", {"objective": "x"}).json["result"]["task"]

        def get(query=""):
            a = s.http.get("/api/sessions" + query)
            equal(a.status, 200, a.body)
            return a.json
        whole = get()["sessions"]
        equal([x["title"] for x in whole],
              [None, "a long answer", "word 4", "word 3", "word 2", "word 1", "word 0"])
        equal((whole[0]["session_id"], whole[0]["runs"]), (task["session_id"], 0))
        equal([x["live_runs"] for x in whole], [0, 1, 0, 0, 0, 0, 0])
        equal([x["session_id"] for x in get("?live=1")["sessions"]], [s.record(live)["session_id"]])
        equal(len(get("?agent_id=echo")["sessions"]), 5)
        equal([x["title"] for x in get("?title=WORD%203")["sessions"]], ["word 3"])
        archived = whole[3]["session_id"]
        for change in ({"title": "The third"}, {"archived": True}):
            equal(s.http.post("/api/control/update_session", {"session_id": archived, **change}).status, 200)
        equal([(x["session_id"], x["title"]) for x in get("?status=archived")["sessions"]], [(archived, "The third")])
        equal(len(get("?status=active")["sessions"]), 6)
        seen, cursor = [], ""
        while cursor is not None:
            page = get("?limit=3" + (f"&cursor={cursor}" if cursor else ""))
            seen += [x["session_id"] for x in page["sessions"]]
            cursor = page["next_cursor"]
        equal(seen, [x["session_id"] for x in whole])
        for bad in ("?status=old", "?cursor=x", "?cursor=1", "?limit=0", "?live=2"):
            refused(s.http.get("/api/sessions" + bad), 400, "VALIDATION_ERROR")
        s.cancel(live)


main()
