#!/usr/bin/env python3
"""Skills: chosen before the model is called, told to it, recorded, and never more than they may be."""
import json
import os
import sqlite3
import tempfile

from lib import Provider, Stream, check, equal, main, refused, run_uar, test, wait_until
from lib.agents import AgentServer, definition


def agent(agent_id="a", model="hello", skills=None, **more):
    """An agent that uses skills."""
    policy = {"provider": {"default": {"provider": "openai", "model": model}},
              "tools": {"allow": ["internal:*"]}, "skills": skills or {}, **more.pop("policy", {})}
    return definition(agent_id, policy=policy, **more)


def skill_file(name, body="BODY", **front):
    lines = "".join(f"{k}: {v}\n" for k, v in front.items())
    return f"---\nname: {name}\n{lines}---\n{body}\n"


class SkillServer(AgentServer):
    """A server with a directory of skills that a test writes to."""

    def __init__(self, *agents, skills=None, **more):
        self.before = skills or {}
        super().__init__(*agents, **more)

    def start(self):
        for name, text in self.before.items():
            self.write_skill(name, text)
        self.before = {}
        super().start()

    def write_skill(self, name, text, file="SKILL.md"):
        path = os.path.join(self.data, "skills", name, file)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path + ".new", "w") as f:
            f.write(text)
        os.rename(path + ".new", path)


def system_of(p):
    return p.stats()["last"]["messages"][0]["content"]


def tools_of(p):
    return sorted(t["function"]["name"] for t in p.stats()["last"].get("tools", []))


def log_of(s, run_id):
    return [e.data for e in s.session_events(run_id) if e.data.get("run_id") == run_id]


def resolved(s, run_id):
    return [e["payload"] for e in log_of(s, run_id) if e["type"] == "context.resolved"]


def chosen(s, run_id):
    return [k["skill_id"] for k in resolved(s, run_id)[0]["selected_skills"]]


@test("search_docs_selects_rag_citations", "SKILL-04 SKILL-12 SKILL-13 SKILL-14 SKILL-16 PROMPT-01 PROMPT-02 ACC-07")
def search_docs():
    with Provider() as p, SkillServer(agent(), definition("plain", policy={
            "provider": {"default": {"provider": "openai", "model": "hello"}},
            "tools": {"allow": ["internal:*"]}}), env=p.env("hello")) as s:
        s.finish(s.create("plain", "search docs"))
        before = tools_of(p)
        check("Skill: answers with sources" not in system_of(p), "an agent without policy.skills uses none")
        run_id = s.create("a", "search docs")
        s.finish(run_id)
        system = system_of(p)
        check("## Skill: answers with sources" in system, system)
        order = [system.index(x) for x in ("# Base", "# Skill rag_citations", "# Tools")]
        equal(order, sorted(order))
        check(set(tools_of(p)) < set(before), tools_of(p))
        check("internal__math_evaluate" in before and "internal__math_evaluate" not in tools_of(p), tools_of(p))
        check("math_evaluate" not in system.split("# Tools")[1], system)
        (facts,) = resolved(s, run_id)
        (skill,) = facts["selected_skills"]
        equal((skill["skill_id"], skill["version"], skill["selection_method"], skill["origin"]),
              ("rag_citations", "1", "keyword", "builtin"))
        check(0 < skill["score"] <= 1 and len(skill["revision"]) == 64, skill)
        equal(facts["narrowed_by"], ["skill:rag_citations"])
        check("skills" in [x["name"] for x in facts["prompt_sections"]], facts)
        types = [e["type"] for e in log_of(s, run_id)]
        check(types.index("context.resolved") < types.index("model.requested"), types)



def activated(s, run_id, path="/api/runs/{}/stream?variants=full"):
    with Stream(s.url, path.format(run_id), s.token) as stream:
        return [e for e in stream.all() if any(x in json.dumps([e.name, e.data])
                                               for x in ("SkillActivated", "skill_activated"))]


@test("streams_tell_which_skills_are_active", "SKILL-04 SKILL-16")
def streams():
    with Provider() as p, SkillServer(agent(), env=p.env("hello")) as s:
        run_id = s.create("a", "search docs")
        s.finish(run_id)
        (seen,) = activated(s, run_id)
        data = seen.data["data"]
        equal((data["skill_id"], data["title"], data["selection_method"]),
              ("rag_citations", "Answers with sources", "keyword"))
        types = [e.data["type"] for e in s.events(run_id)]
        check("SkillActivated" not in types, "only those who ask for variants get it")
        (custom,) = activated(s, run_id, "/api/ag-ui/runs/{}/stream")
        check("rag_citations" in json.dumps(custom.data), custom.data)
        with Stream(s.url, f"/api/ag-ui/runs/{run_id}/stream?dialect=chunks", s.token) as stream:
            metas = [e.data for e in stream.all() if e.name == "meta"]
        check("rag_citations" in json.dumps(metas), metas)


@test("at_most_max_active_and_prefer_breaks_ties", "SKILL-08 SKILL-09 ART-10")
def selection():
    six = {f"s{i}": skill_file(f"s{i}", f"OVERLAY {i}", description="Same words", triggers="[walnut]") for i in range(6)}
    with Provider() as p, SkillServer(
            agent("four", skills={"max_active": 4}), agent("none", skills={"max_active": 0}),
            agent("two", skills={"max_active": 2, "prefer": ["skill:s5", "skill:s4"]}),
            skills=six, env=p.env("hello")) as s:
        now = os.path.getmtime(os.path.join(s.data, "skills", "s0", "SKILL.md"))
        for i in range(6):  # one age for all
            os.utime(os.path.join(s.data, "skills", f"s{i}", "SKILL.md"), (now, now))
        s.restart()
        run_id = s.create("four", "crack a walnut")
        s.finish(run_id)
        equal(chosen(s, run_id), ["s0", "s1", "s2", "s3"])
        order = [system_of(p).index(f"OVERLAY {i}") for i in range(4)]
        equal(order, sorted(order))
        check("OVERLAY 4" not in system_of(p), system_of(p))
        run_id = s.create("two", "crack a walnut")
        s.finish(run_id)
        equal(chosen(s, run_id), ["s5", "s4"])
        run_id = s.create("none", "crack a walnut")
        s.finish(run_id)
        equal(chosen(s, run_id), [])


@test("gates_leave_out_one_skill_each", "SKILL-06 SKILL-05")
def gates():
    files = {
        "fits": skill_file("fits", description="x", triggers="[walnut]"),
        "alien": skill_file("alien", description="x", triggers="[walnut]", requires="{tenants: [others]}"),
        "away": skill_file("away", description="x", triggers="[walnut]", requires="{workspaces: [others]}"),
        "sees": skill_file("sees", description="x", triggers="[walnut]", requires="{capabilities: [images]}"),
        "needs": skill_file("needs", description="x", triggers="[walnut]", requires="{tools: ['internal:no.such']}"),
        "off": skill_file("off", description="x", triggers="[walnut]", enabled="false"),
        "near": skill_file("near", description="How to crack open walnut shells with a hammer"),
        "regex": skill_file("regex", description="x", triggers="{patterns: ['wal.ut']}"),
    }
    with Provider() as p, SkillServer(agent(skills={"max_active": 16}), skills=files, env=p.env("hello")) as s:
        run_id = s.create("a", "crack open a walnut shell with a hammer")
        s.finish(run_id)
        equal(sorted(chosen(s, run_id)), ["fits", "near", "regex"])
        how = {k["skill_id"]: k["selection_method"] for k in resolved(s, run_id)[0]["selected_skills"]}
        equal(how, {"fits": "keyword", "near": "similarity", "regex": "pattern"})


@test("a_run_keeps_its_skills_across_a_kill", "SKILL-16")
def kept():
    with Provider() as p, SkillServer(agent(model="gate"), skills={
            "w": skill_file("w", "OLD OVERLAY", description="x", triggers="[walnut]")}, env=p.env("gate")) as s:
        p.hold()
        run_id = s.create("a", "a walnut")
        p.wait_for(requests=1)
        s.write_skill("w", skill_file("w", "NEW OVERLAY", description="x", triggers="[walnut]"))
        s.restart()
        p.wait_for(requests=2)
        check("OLD OVERLAY" in system_of(p) and "NEW OVERLAY" not in system_of(p), system_of(p))
        p.release()
        equal(s.finish(run_id)["status"], "succeeded")
        first, again = resolved(s, run_id)
        equal([k["revision"] for k in first["selected_skills"]], [k["revision"] for k in again["selected_skills"]])
        next_id = s.create("a", "a walnut")
        s.finish(next_id)
        check("NEW OVERLAY" in system_of(p), system_of(p))


@test("post_processing_rejects_once_then_warns", "SKILL-15 SKILL-01")
def repair():
    rules = "[{rule: must_match, pattern: 'checked', message: 'Say that it is checked.'}]"
    with Provider() as p, SkillServer(
            agent("good", model="seq:hello,repeat"), agent("bad", model="hello"), skills={
                "w": skill_file("w", description="x", triggers="[walnut]", post_processing=rules)},
            env=p.env("hello")) as s:
        run_id = s.create("good", "walnut checked")
        s.finish(run_id)
        equal(p.stats()["requests"], 2)
        check("Say that it is checked." in json.dumps(p.stats()["last"]["messages"]), p.stats()["last"])
        check("checked" in s.record(run_id)["result"]["text"] if s.record(run_id).get("result") else True)
        equal([e["payload"]["error"]["code"] for e in log_of(s, run_id) if e["type"] == "model.failed"], ["OUTPUT_INVALID"])
        run_id = s.create("bad", "walnut")
        equal(s.finish(run_id)["status"], "succeeded")
        equal(p.stats()["requests"], 4, "one repair round and no more")
        check(any("Say that it is checked" in json.dumps(e["payload"]) for e in log_of(s, run_id)
                  if e["type"] != "model.failed"), "the answer is flagged")



def stored(skill_id, **more):
    return {"skill_id": skill_id, "description": f"About {skill_id}", "triggers": {"keywords": ["walnut"]}, **more}


def put(s, value, status=201):
    a = s.http.send("PUT", "/api/skills/" + value["skill_id"], value)
    equal(a.status, status, a.body)
    return a.json


def listed(s, query=""):
    return {k["skill_id"]: k for k in s.http.get("/api/skills" + query).json["skills"]}


FULL = stored("nuts", version="2.1", title="Nuts", prompt_overlay="## Crack gently", preferred_tools=["internal:math.evaluate"],
              triggers={"keywords": ["walnut"], "patterns": ["wal.ut"], "semantic": ["open a shell"]},
              tool_templates={"internal:math.evaluate": {"expression": "1+1"}},
              constraints={"allow": ["internal:math.*", "internal:time.now"], "deny": ["internal:time.now"]},
              post_processing=[{"rule": "must_match", "pattern": "."}])


@test("a_stored_skill_has_all_its_parts_and_acts", "SKILL-01 SKILL-02 SKILL-14 BLD-06")
def parts():
    with Provider() as p, SkillServer(agent(), env=p.env("hello")) as s:
        put(s, FULL)
        got = s.http.get("/api/skills/nuts").json
        equal(got["skill"], FULL)
        equal((got["version"], got["title"], got["origin"], got["enabled"]), ("2.1", "Nuts", "user", True))
        equal(got["metrics"], {"successes": 0, "failures": 0})
        run_id = s.create("a", "a walnut")
        s.finish(run_id)
        equal(chosen(s, run_id), ["nuts"])
        system = system_of(p)
        for part in ("## Crack gently", "preferred_tools: internal:math.evaluate",
                     'Call internal:math.evaluate like this: {"expression":"1+1"}'):
            check(part in system, system)
        equal(tools_of(p), ["internal__math_evaluate"], "what is denied stays out, although it is allowed as well")
        for bad, where in ((dict(FULL, triggers={"patterns": ["("]}), "patterns"),
                           (dict(FULL, colour="red"), "colour"), (dict(FULL, skill_id="other"), "/skill_id"),
                           (dict(FULL, post_processing=[{"rule": "must_match"}]), "post_processing"),
                           (dict(FULL, requires={"capabilities": ["tools", "telepathy"]}), "/requires/capabilities/1"),
                           (dict(FULL, requires={"capabilities": ["telepathy"]}), "reasoning")):
            a = s.http.send("PUT", "/api/skills/nuts", bad)
            equal(a.status, 400, a.body)
            check(where in a.body.decode(), a.body)


@test("skills_are_listed_got_put_removed_and_searched", "SKILL-10 SKILL-03 SKILL-19")
def crud():
    with SkillServer(agent()) as s:
        check({"rag_citations", "tool_calling_strict"} <= set(listed(s)), listed(s))
        equal(put(s, stored("nuts", prompt_overlay="ONE"))["stored_version"], 1)
        equal(put(s, stored("nuts", prompt_overlay="ONE"), 200)["changed"], False)
        equal(put(s, stored("nuts", prompt_overlay="TWO"), 200)["stored_version"], 2)
        put(s, stored("shore", description="Tides and waves of the sea", triggers={}))
        versions = s.http.get("/api/skills/nuts/versions").json["versions"]
        equal([v["stored_version"] for v in versions], [2, 1])
        for n, text in ((1, "ONE"), (2, "TWO")):
            equal(s.http.get(f"/api/skills/nuts?version={n}").json["skill"]["prompt_overlay"], text)
        vector = s.http.get("/api/skills/nuts?embedding=1").json["embedding"]
        check(len(vector) == 256 and any(vector), "description and triggers have a vector")
        equal(list(listed(s, "?q=waves+of+the+sea"))[0], "shore")
        check("nuts" not in listed(s, "?q=waves+of+the+sea"))
        equal(listed(s, "?q=walnut")["nuts"]["method"], "keyword")
        s.restart()
        wait_until(lambda: "nuts" in listed(s), "what was kept is there after a kill")
        equal(s.http.get("/api/skills/nuts").json["stored_version"], 2)
        equal(s.http.get("/api/skills/nuts?embedding=1").json["embedding"], vector)
        db = sqlite3.connect(f"file:{os.path.join(s.data, 'uar.db')}?mode=ro", uri=True)
        check(any("skill_vector" in str(row) for row in rows_of(db)), "the vector is a row")
        db.close()
        equal(s.http.send("DELETE", "/api/skills/nuts").status, 200)
        refused(s.http.get("/api/skills/nuts"), 404, "NOT_FOUND")
        refused(s.http.send("DELETE", "/api/skills/nuts"), 404, "NOT_FOUND")
        equal(s.http.get("/api/skills/nuts?version=2").json["skill"]["prompt_overlay"], "TWO")
        equal(put(s, stored("nuts"))["stored_version"], 4)
        refused(s.http.send("DELETE", "/api/skills/rag_citations"), 403, "FORBIDDEN")
        refused(s.http.send("PUT", "/api/skills/rag_citations", stored("rag_citations")), 409, "CONFLICT")
        with s.session_stream("uar.registry") as events:
            facts = [e.data for e in events.until(lambda e: e.data["payload"].get("version") == 4)]
        equal([(e["type"], e["payload"]["kind"], e["payload"]["change"], e["payload"]["version"])
               for e in facts if e["payload"].get("id") == "nuts"],
              [("vendor.uar.registry.changed", "skill", c, v) for v, c in
               ((1, "put"), (2, "put"), (3, "removed"), (4, "put"))])


def rows_of(db):
    for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type='table'").fetchall():
        yield from db.execute(f"SELECT * FROM {name}")


@test("outcomes_are_counted", "SKILL-17")
def metrics():
    with Provider() as p, SkillServer(agent("good"), agent("bad", model="err401"), agent("gate", model="gate"),
                                      env=p.env("hello")) as s:
        for name in ("brazil", "walnut"):
            put(s, stored(name, description="Nuts", triggers={"keywords": [name]}))
        equal(s.finish(s.create("good", "a walnut"))["status"], "succeeded")
        equal(s.finish(s.create("bad", "a walnut"))["status"], "failed")
        equal(s.finish(s.create("good", "a walnut"))["status"], "succeeded")
        wait_until(lambda: listed(s)["walnut"]["metrics"] == {"successes": 2, "failures": 1}, "the counts")
        counts = registry_counts(s)
        equal([(e["skill_id"], e["outcome"]) for e in counts],
              [("walnut", "success"), ("walnut", "failure"), ("walnut", "success")])
        s.restart()
        wait_until(lambda: listed(s).get("walnut", {}).get("metrics") == {"successes": 2, "failures": 1}, "also later")
        got = s.http.post("/api/skills-test", {"message": "a brazil or a walnut"}).json["candidates"]
        equal({c["skill_id"]: round(c["success_rate"], 3) for c in got}, {"walnut": 0.6, "brazil": 0.5})
        p.hold()
        run_id = s.create("gate", "a walnut")
        s.http.post(f"/api/runs/{run_id}/cancel")
        s.finish(run_id)
        equal(listed(s)["walnut"]["metrics"], {"successes": 2, "failures": 1}, "a cancelled run says nothing")


@test("a_kill_loses_no_count", "SKILL-17")
def killed_counts():
    """The server is killed as soon as somebody knows that a run is over, or a moment later."""
    rounds = 8
    with Provider() as p, SkillServer(agent("good"), env=p.env("hello")) as s:
        put(s, stored("walnut", description="Nuts", triggers={"keywords": ["walnut"]}))
        for _ in range(rounds):
            runs = [s.create("good", "a walnut") for _ in range(3)]
            for run_id in runs:
                equal(s.finish(run_id)["status"], "succeeded")
            s.restart()
        wait_until(lambda: listed(s).get("walnut", {}).get("metrics") == {"successes": 3 * rounds, "failures": 0},
                   "each run once")
        db = sqlite3.connect(f"file:{os.path.join(s.data, 'uar.db')}?mode=ro", uri=True)
        equal(db.execute("SELECT count(*) FROM rows WHERE kind = 'skill_use'").fetchone(), (0,))
        db.close()


def registry_counts(s):
    def is_last(e):
        return e.data["payload"].get("successes", 0) + e.data["payload"].get("failures", 0) == 3
    with Stream(s.url, "/api/sessions/uar.registry/events", s.token) as stream:
        return [e.data["payload"] for e in stream.until(is_last) if e.data["type"] == "vendor.uar.skill.counted"]


@test("a_trial_says_what_a_message_activates", "SKILL-06 SKILL-16")
def trial():
    with SkillServer(agent(skills={"max_active": 1, "prefer": ["nuts"]})) as s:
        put(s, stored("nuts", prompt_overlay="OVERLAY", constraints={"allow": ["internal:math.*"]}))
        put(s, stored("alien", requires={"tenants": ["others"]}))
        put(s, stored("zebra"))
        a = s.http.post("/api/skills-test", {"message": "a walnut", "agent_id": "a"})
        equal(a.status, 200, a.body)
        gates = {c["skill_id"]: (c["gate"], c["active"]) for c in a.json["candidates"]}
        equal(gates, {"nuts": ("passed", True), "zebra": ("rank", False), "alien": ("scope", False)})
        equal([(i["skill_id"], i["prompt_overlay"]) for i in a.json["injected"]], [("nuts", "OVERLAY")])
        check(a.json["tools"] and all(t.startswith("internal:math.") for t in a.json["tools"]), a.json["tools"])
        check("internal:time.now" in a.json["tools_removed"], a.json)
        refused(s.http.post("/api/skills-test", {"message": "m", "agent_id": "no-such"}), 404, "NOT_FOUND")
        refused(s.http.post("/api/skills-test", {}), 400, "VALIDATION_ERROR")



CLAUDE = """---
name: release-notes
description: Writes release notes from a list of changes. Use when somebody asks for release notes or a changelog.
allowed-tools: Read, Grep, Bash(git log:*)
model: inherit
---
# Release notes

Group changes by kind. The order of the groups is in references/groups.md.
"""
CODEX = """---
name: Schema Review
description: >-
  Reviews database schemas
  for missing indexes.
metadata:
  short-description: Review a schema
---

Look at every foreign key.
"""
OPENCODE = """---
name: tidy-imports
description: Sorts imports of source files. Use when: imports are in disorder
license: MIT
compatibility: opencode
metadata:
  audience: maintainers
---
Sort imports by name.
"""


@test("folders_of_other_programs_load_as_they_are", "SKILL-19")
def foreign():
    files = {"release-notes": CLAUDE, "schema": CODEX, "tidy-imports": OPENCODE}
    with Provider() as p, SkillServer(agent(model="asks"), agent("plain"), skills=files, env=p.env("asks")) as s:
        got = listed(s)
        for skill_id in ("release-notes", "schema_review", "tidy-imports"):
            equal(got[skill_id]["origin"], "file")
        equal(got["schema_review"]["description"], "Reviews database schemas for missing indexes.")
        s.write_skill("release-notes", "FIRST Added, THEN Fixed", file="references/groups.md")
        run_id = s.create("plain", "zzz")
        s.finish(run_id)
        check("internal__skill_read" not in tools_of(p), "without an active skill that has files there is no such tool")
        s.write_skill("reads", skill_file("reads", "See references/x.md", description="x", triggers="[skill_read]"))
        s.write_skill("reads", "REFERENCE TEXT", file="references/x.md")
        wait_until(lambda: "reads" in listed(s), "the new folder")
        ask = json.dumps([["internal__skill_read", '{"folder": "reads", "path": "references/x.md"}'],
                          ["internal__skill_read", '{"folder": "reads", "path": "../schema/SKILL.md"}'],
                          ["internal__skill_read", '{"folder": "none", "path": "SKILL.md"}'], ["skill_read", "{}"]])
        run_id = s.create("a", ask)
        s.finish(run_id)
        equal(chosen(s, run_id), ["reads"])
        check('folder "reads"' in system_of(p), system_of(p))
        results = [m["content"] for m in p.stats()["last"]["messages"] if m["role"] == "tool"]
        check("REFERENCE TEXT" in results[0], results)
        check("leads out of the directory" in results[1] and "Reviews" not in results[1], results)
        check("there is no skill in a folder" in results[2], results)


@test("a_broken_folder_is_named_and_its_last_text_stays", "SKILL-19")
def broken():
    with SkillServer(skills={"w": skill_file("w", "GOOD", description="x")}) as s:
        s.write_skill("w", "---\nname: w\ndescription: [\n---\nBAD")
        (b,) = wait_until(lambda: s.http.get("/api/skills").json["broken"], "the broken folder")
        equal((b["folder"], b["skill_id"]), ("w", "w"))
        equal(s.http.get("/api/skills/w").json["skill"]["prompt_overlay"].strip(), "GOOD")
        out = run_uar("check", "--data", s.data)
        check("w/SKILL.md" in out.stdout + out.stderr, out)
        s.write_skill("w", skill_file("w", "MENDED", description="x"))
        wait_until(lambda: not s.http.get("/api/skills").json["broken"], "it is mended")
        equal(s.http.get("/api/skills/w").json["skill"]["prompt_overlay"].strip(), "MENDED")


@test("skills_from_the_command_line", "SKILL-10 SKILL-16")
def command_line():
    with SkillServer(agent(skills={"max_active": 1})) as s, tempfile.TemporaryDirectory() as folder:
        def uar(*argv, status=0):
            out = run_uar("skill", *argv, "--data", s.data)
            equal(out.returncode, status, out.stderr)
            return out.stdout
        check("wrote" in uar("new", "reports"))
        wait_until(lambda: "reports" in listed(s), "the new skill")
        uar("new", "reports", status=1)
        uar("new", "No Such Name", status=2)
        source = os.path.join(folder, "release-notes")
        os.makedirs(os.path.join(source, "references"))
        for name, text in (("SKILL.md", CLAUDE), ("references/groups.md", "GROUPS")):
            with open(os.path.join(source, name), "w") as f:
                f.write(text)
        uar("add", source)
        wait_until(lambda: "release-notes" in listed(s), "the added skill")
        check(os.path.exists(os.path.join(s.data, "skills", "release-notes", "references", "groups.md")))
        uar("add", source, status=1)
        os.symlink("/etc/passwd", os.path.join(source, "link"))
        os.rename(source, source + "2")
        with open(os.path.join(source + "2", "SKILL.md"), "w") as f:
            f.write(CLAUDE.replace("release-notes", "linked"))
        uar("add", source + "2", status=1)
        check(not [x for x in os.listdir(os.path.join(s.data, "skills")) if "linked" in x], "nothing is left of it")
        path = os.path.join(folder, "nuts.json")
        with open(path, "w") as f:
            json.dump(stored("nuts", prompt_overlay="NUTS"), f)
        check("version 1" in uar("add", path))
        text = uar("list")
        for word in ("rag_citations", "tool_calling_strict", "reports", "release-notes", "nuts", "builtin", "file", "user"):
            check(word in text, text)
        text = uar("show", "release-notes")
        check("Group changes by kind" in text and "release-notes" in text, text)
        text = uar("test", "search docs", "--agent", "a")
        first = text.splitlines()[0]
        check(first.startswith("* rag_citations") and "gate passed" in first and "score 0." in first, text)
        check("Skill: answers with sources" in text and "tools that the skills take away" in text, text)
        check("no skill is a candidate" in uar("test", "zzzz"))
        equal(json.loads(uar("show", "nuts", "--json"))["skill"]["prompt_overlay"], "NUTS")
        uar("show", "no-such", status=1)
        uar("frobnicate", status=2)


@test("built_in_skills_are_there_in_every_start_mode", "SKILL-20 SKILL-18")
def modes():
    builtin = {}
    for name, settings in (("desktop", {}), ("cloud", {"listen": "0.0.0.0:0", "allowed_hosts": "uar.example"})):
        with SkillServer(**settings) as s:
            builtin[name] = {k: v["revision"] for k, v in listed(s).items() if v["origin"] == "builtin"}
            overlay = s.http.get("/api/skills/tool_calling_strict").json["skill"]["prompt_overlay"]
    equal(builtin["desktop"], builtin["cloud"])
    check({"rag_citations", "tool_calling_strict"} <= set(builtin["desktop"]), builtin)
    for part in ("`preferred_tools`", "JSON Schema", "`ui.form.request`", "Do not invent", "says why, the call", "sums up"):
        check(part in overlay, overlay)
    with Provider() as p, tempfile.TemporaryDirectory() as data:
        os.mkdir(os.path.join(data, "agents"))
        with open(os.path.join(data, "agents", "a.json"), "w") as f:
            json.dump(agent(), f)
        for message in ("search docs", "call a tool to book a table"):
            out = run_uar("chat", "a", message, "--data", data, input="", env=p.env("hello"))  # without a server
            equal(out.returncode, 0, out.stderr)
            check("## Skill: " in system_of(p), system_of(p))
        mine = json.loads(run_uar("skill", "list", "--json", "--data", data).stdout)["skills"]
        equal({k["skill_id"]: k["revision"] for k in mine if k["origin"] == "builtin"}, builtin["desktop"])
        with open(os.path.join(data, "server.json")) as f:
            pid = json.load(f)["pid"]
        wait_until(lambda: not os.path.exists(f"/proc/{pid}"), "its server leaves by itself")



@test("the_order_of_discovery_never_shows_in_a_prompt", "PROMPT-04 SKILL-08")
def shuffled():
    """The same skills, found in another order and from other sources, give the same bytes."""
    names = [f"s{i}" for i in range(8)]
    prompts = []
    for order in (names, names[::-1], names[3:] + names[:3]):
        with Provider() as p, SkillServer(agent(skills={"max_active": 5}), env=p.env("hello")) as s:
            for name in order:
                s.write_skill(name, skill_file(name, f"OVERLAY {name}", description="Nuts", triggers="[walnut]"))
                os.utime(os.path.join(s.data, "skills", name, "SKILL.md"), (1700000000, 1700000000))
            s.restart()
            run_id = s.create("a", "a walnut")
            s.finish(run_id)
            equal(chosen(s, run_id), names[:5])
            prompts.append((system_of(p), [x["sha256"] for x in resolved(s, run_id)[0]["prompt_sections"]]))
    equal(prompts[0], prompts[1])
    equal(prompts[0], prompts[2])



@test("scripts_run_only_when_a_person_allows_it", "")
def scripts():
    script = "import os, sys\nprint(sys.argv[1:], sys.stdin.read(), sorted(os.environ), os.getcwd())\nsys.exit(3)\n"
    with Provider() as p, SkillServer(agent(model="asks"), skills={
            "w": skill_file("w", description="x", triggers="[skill_run]")}, env={**p.env("asks"), "SECRET": "s"}) as s:
        s.write_skill("w", script, file="scripts/show.py")
        s.write_skill("box", skill_file("quiet", description="Feeds otters.", triggers="[otter]"))
        s.write_skill("box", "print('RAN')", file="scripts/show.py")
        ask = [["internal__skill_run", json.dumps({"folder": "w", "path": "scripts/show.py", "arguments": ["a b", "$HOME"],
                                                   "input": "INPUT"})]]
        for decision in ("allow", "deny"):
            run_id = s.create("a", json.dumps(ask + [["skill_run", "{}"]]))
            action = wait_until(lambda: (s.record(run_id).get("actions") or [None])[0], "a question")["action_id"]
            s.http.post("/api/control/respond_action", {"action_id": action, "decision": decision})
            s.finish(run_id)
            results = [m["content"] for m in p.stats()["last"]["messages"] if m["role"] == "tool"]
            if decision == "deny":
                check("INPUT" not in results[0], results)
                continue
            got = json.loads(results[0])
            equal(got["status"], 3)
            check("['a b', '$HOME'] INPUT" in got["output"] and got["output"].strip().endswith("skills/w"), got)
            check("SECRET" not in got["output"] and "OPENAI_API_KEY" not in got["output"], got)
        other = ["internal__skill_run", json.dumps({"folder": "box", "path": "scripts/show.py"})]
        run_id = s.create("a", json.dumps([other, ["skill_run", "{}"]]))
        asked = wait_until(lambda: (s.record(run_id).get("actions") or [None])[0], "a question")
        equal(asked["prompt"], "skill.run: box/scripts/show.py")
        s.http.post("/api/control/respond_action", {"action_id": asked["action_id"], "decision": "allow"})
        s.finish(run_id)
        results = [m["content"] for m in p.stats()["last"]["messages"] if m["role"] == "tool"]
        equal(chosen(s, run_id), ["w"])
        check("it is not active" in results[0] and "RAN" not in results[0], results)
        other = ["internal__skill_read", json.dumps({"folder": "box", "path": "scripts/show.py"})]
        s.finish(s.create("a", json.dumps([other, ["skill_run", "{}"]])))
        results = [m["content"] for m in p.stats()["last"]["messages"] if m["role"] == "tool"]
        check("it is not active" in results[0] and "RAN" not in results[0], results)
        s.write_skill("w", "import os, time\nopen('begun', 'w').write(str(os.getpid()))\ntime.sleep(600)\n", file="scripts/show.py")
        run_id = s.create("a", json.dumps(ask + [["skill_run", "{}"]]))
        action = wait_until(lambda: (s.record(run_id).get("actions") or [None])[0], "a question")["action_id"]
        s.http.post("/api/control/respond_action", {"action_id": action, "decision": "allow"})
        begun = os.path.join(s.data, "skills", "w", "begun")
        pid = wait_until(lambda: os.path.exists(begun) and open(begun).read(), "the script runs")
        s.cancel(run_id)
        equal(s.finish(run_id)["status"], "canceled")
        wait_until(lambda: not os.path.exists("/proc/" + pid), "the script is ended with its run")
    with Provider() as p, SkillServer(agent(model="asks"), skills={
            "w": skill_file("w", description="x", triggers="[walnut]")}, env=p.env("asks"), skill_scripts="false") as s:
        run_id = s.create("a", json.dumps([["walnut", "{}"]]))
        s.finish(run_id)
        check("internal__skill_read" in tools_of(p) and "internal__skill_run" not in tools_of(p), tools_of(p))


main()
