#!/usr/bin/env python3
"""Points that the page promises, each by its number: the door, the network, the keyboard, voices; page_screens_test.py has those of every screen."""
import json
import os
import re
import shutil
import subprocess
import tempfile

from lib import FIXTURES, Provider, Server, Skip, check, equal, main, test, wait_until
from lib.agents import AgentServer, scripted
from lib.browser import Browser
from lib.proxy import Proxy
from lib.services import Service
from lib.web import free_port

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
WRITES = 'tool fs.write {"path": "note.txt", "text": "kept"}'


def link_at(s, address):
    """A second browser needs a second link."""
    s.link = s.url + "/#code=" + s.http.post("/api/links", {}).json["code"]
    return address + s.link.partition("/")[2].partition("/")[2].partition("/")[2]


# --- A: the door -------------------------------------------------------------------

def walk(b, address):
    """Signs in below an address and uses what has an address of its own."""
    b.do("await page.getByRole('heading', {name: 'Home', level: 1}).waitFor()")
    equal(b.do("return page.url()"), address)
    b.do("await page.locator('.rail').getByRole('link', {name: 'New chat'}).click()")
    b.wait("#message")
    b.say("demo", "**below a prefix**")
    b.ended(1)
    b.wait(".answer strong", "below a prefix")
    for name in ("Inbox", "Runs", "Replay", "Home"):
        b.do(f"await page.locator('.rail nav').getByRole('link', {{name: '{name}'}}).click()")
        b.do(f"await page.getByRole('heading', {{name: '{name}', level: 1}}).waitFor()")
        check(b.do("return page.url()").startswith(address))
        b.do("await page.reload()")
        b.do(f"await page.getByRole('heading', {{name: '{name}', level: 1}}).waitFor()")
    b.do("await page.locator('.rail-talk a').first().click()")
    b.wait(".answer strong", "below a prefix")


@test("page_a5_works_below_a_prefix", "")
def a5():
    with Server(fixtures_dir=FIXTURES) as s, Proxy(s, "/studio/of/mine/") as p, Browser() as b:
        b.goto(link_at(s, p.url))
        walk(b, p.url)


def nginx_block(n):
    """The n-th block for nginx of docs/http.md."""
    with open(os.path.join(ROOT, "docs", "http.md"), encoding="utf-8") as f:
        return re.findall(r"```nginx\n(.*?)```", f.read(), re.S)[n]


@test("page_a5_nginx_of_the_manual_works", "")
def nginx():
    program = shutil.which("nginx")
    if not program:
        raise Skip("nginx is not installed")
    for n, prefix in ((0, "/"), (1, "/uar/")):
        with tempfile.TemporaryDirectory() as folder, Server(allowed_hosts="studio.test", fixtures_dir=FIXTURES) as s:
            port = free_port()
            block = nginx_block(n).replace("http://127.0.0.1:8080", s.url)
            with open(os.path.join(folder, "nginx.conf"), "w", encoding="utf-8") as f:
                f.write(f"""daemon off; pid {folder}/pid; error_log {folder}/error.log;
events {{ }}
http {{ access_log off; client_body_temp_path {folder}; proxy_temp_path {folder}; fastcgi_temp_path {folder}; uwsgi_temp_path {folder}; scgi_temp_path {folder};
server {{ listen 127.0.0.1:{port}; {block} }} }}""")
            proc = subprocess.Popen([program, "-e", f"{folder}/error.log", "-p", folder, "-c", f"{folder}/nginx.conf"], stderr=subprocess.DEVNULL)
            try:
                wait_until(lambda: os.path.exists(f"{folder}/pid"), "nginx")
                with Browser() as b:
                    address = f"http://127.0.0.1:{port}{prefix}"
                    b.goto(link_at(s, address))
                    walk(b, address)
            finally:
                proc.terminate()
                proc.wait()


@test("page_home_says_what_can_run_and_how_things_ended", "UI-16")
def home():
    with tempfile.TemporaryDirectory() as folder, Browser() as b, Server(fixtures_dir=FIXTURES, env={"PATH": folder}) as s:
        program = os.path.join(folder, "codex")
        with open(program, "w", encoding="utf-8") as f:
            f.write("#!/bin/sh\n")
        os.chmod(program, 0o755)
        s.finish(s.create("fixture", None, inputs={"fixture": "failure", "pace": "full"}))
        agents = {a["agent_id"]: a for a in s.http.get("/api/agents").json["agents"]}
        equal((agents["codex"]["runnable"], agents["claude_code"]["runnable"]), (True, False))
        equal(s.http.get("/api/sessions").json["sessions"][0]["last_status"], "failed")
        b.enter(s)
        b.wait(".home .item", "Failed")  # as the server says, not as one would like it
        b.wait(".rail-talk a", "Failed")
        b.wait(".home-card[data-off]", agents["claude_code"]["reason"])
        b.wait(".home-card[data-off]", agents["claude_code"]["next_step"])
        equal(b.do("return page.locator('a.home-card', {hasText: 'Codex'}).first().count()"), 1)
        equal(b.do("return page.locator('a.home-card', {hasText: 'Claude Code'}).count()"), 0)
        b.do("await page.locator('.rail').getByRole('link', {name: 'New chat'}).click()")
        b.wait("#message")
        offered = b.do("return page.getByLabel('Agent', {exact: true}).locator('option').allTextContents()")
        check("Codex" in offered and "Claude Code" not in offered, offered)
        b.choose("Agent", "codex")
        b.do("await page.getByLabel('Working directory').fill('/nowhere/at/all'); await page.locator('#message').fill('go'); await page.locator('#message').press('Enter')")
        b.wait(".ending[data-state=bad]", "working_dir")  # and the field is used


# --- B: the conversation ------------------------------------------------------------

@test("page_b2_enter_sends_and_shift_enter_breaks", "")
def b2():
    with Browser() as b, Server() as s:
        b.chat(s)
        b.choose("Agent", "echo")
        b.do("await page.locator('#message').focus(); await page.keyboard.press('Enter'); await page.keyboard.type('   '); await page.keyboard.press('Enter')")
        check(b.do("return page.getByRole('button', {name: 'Send'}).isDisabled()"), "nothing was written")
        b.do("await page.locator('#message').fill(''); await page.keyboard.type('one'); await page.keyboard.press('Shift+Enter'); await page.keyboard.type('two'); await page.keyboard.press('Enter')")
        b.ended(1)
        equal(b.texts(".mine-text"), ["one\ntwo"])
        equal(len(s.http.get("/api/runs").json["runs"]), 1)


@test("page_b5_a_conversation_of_500_turns", "")
def b5():
    turns = 500
    with Browser() as b, Server() as s:
        first = s.create("echo", "turn 0")
        s.finish(first)
        record = s.record(first)
        made = [s.http.post("/api/runs", {"agent_id": "echo", "conversation_id": record["conversation_id"], "inputs": {"message": f"turn {i}"}}).json["run_id"] for i in range(1, turns)]
        s.finish(made[-1])
        b.enter(s)
        took = b.do(f"""const t = Date.now(); await page.goto('{s.url}/ui/c/{record["session_id"]}');
            await page.locator('.answer', {{hasText: 'turn {turns - 1}'}}).waitFor(); return Date.now() - t""")
        print(f"  a conversation of {turns} turns is open after {took} ms")
        equal(b.count("article.run"), 20)  # the rest is read when one scrolls up
        b.do("""await page.locator('.thread').hover();
                while (await page.locator('article.run').count() < 120) {
                    await page.mouse.wheel(0, -20000);
                    await page.evaluate(() => new Promise(requestAnimationFrame));
                }""")
        b.do(f"await page.waitForFunction(() => [...document.querySelectorAll('.mine-text')].slice(-100).every((e, i) => e.textContent === `turn ${{{turns - 100} + i}}`))")


@test("page_b8_a_cut_network_is_caught_up", "UI-01")
def b8():
    with Browser() as b, Provider() as p, Server(env=p.env("gate")) as s:
        b.chat(s)
        b.say("assistant", "slowly")
        b.wait(".answer", "before")
        # what is under way is cut as well: offline alone leaves open streams alone
        b.do("await page.context().setOffline(true); globalThis.cdp = await page.context().newCDPSession(page)")
        s.kill()
        b.wait(".banner", "No network")
        b.wait(".ending", "Reconnecting")
        p.release()
        s.settings["listen"] = s.url.removeprefix("http://")
        s.start()
        run = s.http.get("/api/runs").json["runs"][0]["run_id"]
        s.finish(run)
        equal([t.strip() for t in b.texts(".answer")], ["before"])  # still cut off
        b.do("await page.context().setOffline(false)")
        b.ended(1)
        equal(b.texts(".answer"), ["before after"])
        b.do("await page.locator('.banner').waitFor({state: 'detached'})")


# --- C: drawing ---------------------------------------------------------------------

@test("page_c4_reasoning_opens_live_and_is_never_copied", "UI-03")
def c4():
    with Browser() as b, Provider() as p, Server(env=p.env("gate:thinks")) as s:
        b.chat(s)
        b.say("assistant", "think")
        b.wait(".answer", "before")
        equal(b.do("return page.locator('.reasoning').evaluate((e) => e.open)"), False)
        b.do("await page.locator('.reasoning summary').click()")  # while the answer comes
        check(b.texts(".reasoning p")[0].strip())
        p.release()
        b.ended(1)
        b.do("await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])")
        b.click("button", "Copy the answer")
        equal(b.do("return page.evaluate(() => navigator.clipboard.readText())").strip(), "before after")


# --- D: tools and questions ----------------------------------------------------------

@test("page_d1_a_tool_goes_from_running_to_ok_with_its_time", "UI-04")
def d1():
    with Service() as web, Browser() as b:
        shop = scripted("shop", {"http": [{"name": "slow", "url": web.url + "/gate"}]}, allow=["http:*"])
        with AgentServer(shop, outbound_allow="127.0.0.1") as s:
            b.chat(s)
            b.say("shop", "tool http__slow")
            b.wait(".tool[data-state=running]", "slow")
            web.gate.set()
            b.ended(1)
            b.wait(".tool[data-state=ok] summary .num")
            check(re.search(r"\d+ (ms|s)|\d\.\d s", b.texts(".tool summary .num")[0]), "how long it took")


@test("page_d7_a_question_survives_a_restart", "UI-16")
def d7():
    with Browser() as b, Server(listen=f"127.0.0.1:{free_port()}") as s:
        b.chat(s)
        b.say("tools", WRITES)
        b.do("await page.getByRole('button', {name: /^Allow once:/}).waitFor()")
        s.kill()
        s.start()
        b.do("await page.reload()")
        b.do("await page.getByRole('button', {name: /^Allow once:/}).click()")
        b.ended(1)
        equal(b.texts(".thread .ask-state"), ["Allowed once"])


@test("page_d10_an_expired_question_takes_no_answer", "UI-16")
def d10():
    with Browser() as b, Server(action_timeout_seconds="10s") as s:  # time enough to be shown before
        b.chat(s)
        b.say("tools", WRITES)
        b.wait(".question .state", "Waits for you")
        b.do("await page.locator('.question.settled').waitFor()")  # by itself
        b.ended(1)
        equal((b.count(".question button"), b.count(".question[data-state=pending]")), (0, 0))
        b.wait(".question .ask-state", "Expired")
        b.do("await page.reload()")
        b.wait(".question.settled")
        equal(b.count(".question button"), 0)


@test("page_d12_a_form_offers_alternatives", "UI-12")
def d12():
    schema = {"type": "object", "required": ["contact"], "properties": {"contact": {"title": "Contact", "oneOf": [
        {"title": "By mail", "type": "object", "required": ["mail"], "properties": {"mail": {"type": "string", "title": "Mail"}}},
        {"title": "By phone", "type": "object", "required": ["phone"], "properties": {"phone": {"type": "string", "title": "Phone", "pattern": "^[0-9]+$"}}}]}}}
    with Browser() as b, Server() as s:
        b.chat(s)
        b.say("tools", "tool ui.form.request " + json.dumps({"title": "How?", "schema": schema}))
        b.wait(".schema-form")
        b.do("await page.locator('.schema-form select').first().selectOption({label: 'By phone'})")
        b.do("await page.locator('.schema-form').getByLabel('Phone').fill('abc'); await page.getByRole('button', {name: 'Submit'}).click()")
        b.wait(".schema-form", "It must look like ^[0-9]+$")
        b.do("await page.locator('.schema-form').getByLabel('Phone').fill('123'); await page.getByRole('button', {name: 'Submit'}).click()")
        b.ended(1)
        equal(s.http.get("/api/actions?status=resolved").json["actions"][0]["payload"], {"contact": {"phone": "123"}})


# --- E: artifacts -------------------------------------------------------------------

@test("page_e6_a_download_has_a_safe_name", "SEC-04")
def e6():
    title = "../../etc/<b>pass\u202ewd\n.exe?*:|"
    rows = [("RunStart", {"agent_id": "fixture"}), ("Artifact", {"artifact": {"artifact_id": "a", "artifact_type": "html", "title": title, "content": "<p>x", "language": "html", "metadata": {}}}), ("RunDone", {})]
    with tempfile.TemporaryDirectory() as folder, Browser() as b:
        with open(os.path.join(folder, "odd.jsonl"), "w", encoding="utf-8") as f:
            f.writelines(json.dumps({"type": t, "data": {"run_id": "x", **d}, "at_ms": 0}) + "\n" for t, d in rows)
        with Server(fixtures_dir=folder) as s:
            b.chat(s)
            b.choose("Agent", "fixture")
            b.click("button", "Send")
            b.ended(1)
            b.do("seen.frames = true; await page.locator('.artifact-chip button').click()")
            b.do("globalThis.saved = page.waitForEvent('download'); await page.getByRole('button', {name: /^Download/}).click()")
            name, url = b.do("const d = await saved; return [d.suggestedFilename(), d.url()]")
            check(re.fullmatch(r"[\w .-]+\.html", name) and ".." not in name, name)
            check(url.startswith("blob:"), url)


# --- H: access and devices ------------------------------------------------------------

@test("page_h2_chat_and_approval_by_keyboard_alone", "UI-16")
def h2():
    with Browser() as b, Server() as s:
        b.enter(s)
        b.do("await page.keyboard.press('c')")
        b.wait("#message")
        b.do("await page.waitForFunction(() => document.activeElement?.id === 'message')")
        b.do("await page.keyboard.press('Tab')")  # out of the message and through everything: no trap, and it is seen where one is
        seen = b.do("""const ring = [];
            for (let i = 0; i < 60; i++) {
                const at = await page.evaluate(() => { const e = document.activeElement; if (!e || e === document.body) return null;
                    const o = getComputedStyle(e); return [e.getAttribute('aria-label') || e.textContent.trim().slice(0, 30) || e.tagName, o.outlineStyle !== 'none' || o.boxShadow !== 'none' || e.matches('input, textarea, iframe')]; });
                if (at) ring.push(at);
                if (at && i > 3 && at[0] === 'Message') break;
                await page.keyboard.press('Tab');
            }
            return ring;""")
        check(len({name for name, _ in seen}) > 6 and any(name == "Message" for name, _ in seen), "it goes round", seen)
        equal([name for name, visible in seen if not visible], [], "the focus is always seen")
        b.do("await page.getByLabel('Agent', {exact: true}).focus(); await page.keyboard.type('Tools'); await page.getByLabel('Message', {exact: true}).focus()")
        b.do(f"await page.keyboard.type({json.dumps(WRITES)}); await page.keyboard.press('Enter')")
        b.do("await page.getByRole('button', {name: /^Allow once:/}).waitFor(); await page.locator('.thread').focus()")
        b.do("await page.keyboard.press('a')")
        b.ended(1)
        equal(b.texts(".thread .ask-state"), ["Allowed once"])


@test("page_h3_news_are_said_once", "")
def h3():
    with Browser() as b, Server(fixtures_dir=FIXTURES) as s:
        b.chat(s)
        b.do("""await page.evaluate(() => { globalThis.said = []; const e = document.querySelector('[data-spoken]');
            new MutationObserver(() => { if (e.textContent) said.push(e.textContent); }).observe(e, {childList: true, characterData: true, subtree: true}); })""")
        b.say("echo", "a new answer")
        b.ended(1)
        b.say("tools", WRITES)
        b.do("await page.getByRole('button', {name: /^Deny:/}).waitFor()")
        b.do("await page.getByRole('button', {name: 'Stop', exact: true}).click()")
        b.ended(1, "Cancelled")
        b.do("await page.waitForFunction(() => said.some((t) => t.includes('ancel')))")
        said = b.do("return page.evaluate(() => said)")
        for words in ("echo answered: a new answer", "tools asks: fs.write: note.txt"):
            equal(said.count(words), 1, said)
        equal(b.do("return page.locator('[aria-live=polite]').count()"), 1)


@test("page_h5_reduced_motion_is_honoured", "")
def h5():
    with Browser() as b, Server(env={"UAR_SCRIPTED_TOKEN_MS": "60000"}) as s:
        b.chat(s)
        b.say("demo", "slow")
        spins = "await page.waitForFunction((want) => { const e = document.querySelector('.spin'), a = e && getComputedStyle(e); return a && `${a.animationIterationCount} ${parseFloat(a.animationDuration) > 0.1}` === want; }, '%s')"
        b.do(spins % "infinite true")
        b.do("await page.emulateMedia({reducedMotion: 'reduce'})")
        b.do(spins % "1 false")


@test("page_h7_works_on_a_slow_network", "")
def h7():
    with Browser() as b, Server(fixtures_dir=FIXTURES) as s:
        b.do("""const c = await page.context().newCDPSession(page);
            await c.send('Network.enable'); await c.send('Network.emulateNetworkConditions', {offline: false, latency: 400, downloadThroughput: 50000, uploadThroughput: 50000})""")
        b.chat(s)
        b.say("demo", "over a slow line")
        b.ended(1)
        b.wait(".answer", "over a slow line")


# --- I: endurance -----------------------------------------------------------------------

@test("page_i2_leaves_no_stream_behind", "")
def i2():
    count = 200 if os.environ.get("UAR_TEST_FULL") else 20
    with Browser() as b, Server() as s:
        for i in range(count):
            s.finish(s.create("echo", f"talk {i}"))
        b.enter(s)
        sessions = [x["session_id"] for x in s.http.get(f"/api/sessions?limit={count}").json["sessions"]]
        equal(len(sessions), count)
        for session in sessions:
            b.do(f"await page.evaluate((u) => history.pushState(null, '', u), '/ui/c/{session}')")
            b.wait(".ending", "Done")
        wait_until(lambda: s.metric("uar_http_streams") <= 1, "the list of runs alone is followed")
        b.goto("about:blank")
        wait_until(lambda: s.metric("uar_http_streams") == 0, "nothing is followed")
        b.do("seen.hosts.delete('')")


main()
