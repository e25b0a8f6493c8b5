#!/usr/bin/env python3
"""The page: its files and its link over HTTP, and itself in a real browser."""
import gzip
import json
import os
import random
import re
import shutil
import socket
import subprocess
import tempfile

from lib import FIXTURES, SAFETY, Provider, Server, Skip, check, equal, main, npm, refused, test, text_of
from lib.backends import SAY, TALK, Shop, recording

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCES = os.path.join(HERE, "..", "..", "web", "page")
SCRIPTS = ("page.js", "server.js", "run.js", "follow.js", "screen.js", "draw.js", "form.js")
FILES = {"/": ("page.html", "text/html; charset=utf-8"), "/page/page.css": ("page.css", "text/css; charset=utf-8"),
         **{"/page/" + name: (name, "text/javascript; charset=utf-8") for name in SCRIPTS}}


@test("page_files_are_served_with_a_strict_policy", "")
def files():
    with Server() as s:
        for path, (name, kind) in FILES.items():
            with open(os.path.join(SOURCES, name), "rb") as f:
                source = f.read()
            a = s.http.get(path, token=False)
            equal((a.status, a.headers["content-type"]), (200, kind))
            equal(a.body, source, name)
            policy = dict(p.strip().partition(" ")[::2] for p in a.headers["content-security-policy"].split(";"))
            equal([policy[d] for d in ("default-src", "base-uri", "form-action", "frame-ancestors")], ["'none'"] * 4)
            equal([policy[d] for d in ("script-src", "style-src", "connect-src")], ["'self'"] * 3)
            check("unsafe" not in a.headers["content-security-policy"])
            equal((a.headers["x-frame-options"], a.headers["referrer-policy"], a.headers["cache-control"]),
                  ("DENY", "no-referrer", "no-cache"))
            equal(a.headers["x-content-type-options"], "nosniff")
            head = s.http.send("HEAD", path, token=False)
            equal((head.status, head.body, head.headers["content-length"]), (200, b"", str(len(source))))
        refused(s.http.get("/page/other.js", token=False), 404, "NOT_FOUND")
        equal({"page.html", "page.css", *SCRIPTS}, set(os.listdir(SOURCES)))


@test("page_files_are_not_sent_again", "")
def etags():
    with Server() as s:
        tags = {path: s.http.get(path, token=False).headers["etag"] for path in FILES}
        equal(len(set(tags.values())), len(FILES))
        for path, tag in tags.items():
            for known in (tag, "W/" + tag, f'"other", {tag}', "*"):
                a = s.http.get(path, token=False, headers={"If-None-Match": known})
                equal((a.status, a.body, a.headers["etag"]), (304, b"", tag), known)
            for other in ('"other"', "", tag.strip('"')):
                equal(s.http.get(path, token=False, headers={"If-None-Match": other}).status, 200, other)


@test("page_files_are_compressed_for_who_takes_that", "")
def compressed():
    takes = ("gzip", "GZIP", "br, gzip", "deflate;q=0.5, gzip;q=1.0", "gzip; q=0.001")
    not_so = (None, "", "br", "identity", "gzip;q=0", "gzip; q=0.000", "x-gzip", "gzipped")
    with Server() as s:
        for path in FILES:
            plain = s.http.get(path, token=False)
            for value in takes:
                a = s.http.get(path, token=False, headers={"Accept-Encoding": value})
                equal((a.headers.get("content-encoding"), a.headers["vary"]),
                      ("gzip", "Accept-Encoding"), value)
                equal(gzip.decompress(a.body), plain.body)
                check(len(a.body) < len(plain.body) and a.headers["etag"] != plain.headers["etag"])
                again = s.http.get(path, token=False, headers={"Accept-Encoding": value,
                                                               "If-None-Match": a.headers["etag"]})
                equal((again.status, again.body), (304, b""))
            for value in not_so:
                a = s.http.get(path, token=False, headers={"Accept-Encoding": value})
                equal((a.headers.get("content-encoding"), a.body), (None, plain.body), value)


@test("page_holds_no_inline_code_and_no_foreign_address", "")
def plain():
    with open(os.path.join(SOURCES, "page.html"), encoding="utf-8") as f:
        html = f.read()
    check(not re.search(r"<style|\sstyle=|\son\w+=|javascript:", html), "inline code")
    equal(re.findall(r"<script[^>]*>(.*?)</script>", html, re.S), [""])
    for address in re.findall(r'(?:src|href)="([^"]*)"', html):
        check(re.match(r"page/page\.(js|css)$|data:image/svg\+xml,", address), address)
    for name in SCRIPTS:
        with open(os.path.join(SOURCES, name), encoding="utf-8") as f:
            source = f.read()
        check(not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|https?://", source), name)
        imported = re.findall(r"from '([^']*)'", source)
        check(all(i.removeprefix("./") in SCRIPTS for i in imported), name, imported)


@test("page_holds_its_types", "")
def types():
    equal(npm.tsc(SOURCES, *SCRIPTS), "")


@test("page_link_works_once", "")
def link():
    with Server() as s:
        url, _, code = s.link.partition("/#code=")
        equal(url, s.url)
        check(len(code) >= 43, code)

        def give(body):
            return s.http.post("/api/link", body, token=False)
        refused(give({"code": code[:-1]}), 401, "UNAUTHORIZED")
        refused(give({"code": ""}), 401, "UNAUTHORIZED")
        refused(give({}), 400, "VALIDATION_ERROR")
        foreign = s.http.post("/api/link", {"code": code}, token=False, headers={"Origin": "https://evil.example"})
        refused(foreign, 403, "FORBIDDEN", "Origin")
        a = give({"code": code})
        equal((a.status, a.json), (200, {"token": s.token}))
        equal(a.headers["cache-control"], "no-store")
        refused(give({"code": code}), 401, "UNAUTHORIZED")
        equal(s.http.get("/api/agents").status, 200)


# --- in a browser ------------------------------------------------------------------

class Browser:
    """with Browser() as b: b.do("javascript") runs it beside a page and returns its value."""

    def __init__(self):
        chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
        if not chromium:
            raise Skip("chromium is not installed")
        self.proc = subprocess.Popen(
            [npm.node(), os.path.join(HERE, "page_driver.mjs"), os.path.join(npm.modules("page"), "playwright-core"), chromium, str(int(SAFETY * 1000))],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if not self.proc.stdout.readline():
            raise Skip("the browser does not start: " + " ".join(self.proc.stderr.read().split())[:160])

    def do(self, script):
        self.proc.stdin.write(json.dumps(script) + "\n")
        self.proc.stdin.flush()
        answer = json.loads(self.proc.stdout.readline() or '{"error": "the driver is gone"}')
        check("error" not in answer, script, "\n", answer.get("error"))
        return answer["value"]

    def wait(self, selector, text):
        self.do(f"await page.locator({json.dumps(selector)}, {{hasText: {json.dumps(text)}}}).last().waitFor()")

    def texts(self, selector):
        return self.do(f"return page.locator({json.dumps(selector)}).allTextContents()")

    def enter(self, server):
        self.do(f"await page.goto({json.dumps(server.link)})")
        self.do("await page.getByRole('button', {name: 'Send'}).waitFor()")

    def say(self, agent, message):
        self.do(f"await page.getByLabel('Agent').selectOption({json.dumps(agent)})")
        self.do(f"await page.getByLabel('Message', {{exact: true}}).fill({json.dumps(message)})")
        self.do("await page.getByLabel('Message', {exact: true}).press('Enter')")

    def ended(self, count, words="Done"):
        self.do(f"await page.locator('.ending', {{hasText: /^{words}/}}).nth({count - 1}).waitFor()")

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        try:
            if kind is None:
                self.clean()
        finally:
            self.proc.stdin.close()
            self.proc.wait(SAFETY)

    def clean(self):
        seen = self.do("return {...seen, hosts: [...seen.hosts]}")
        equal((seen["dialogs"], seen["errors"], seen["violations"]), (0, [], []))
        equal(len(seen["hosts"]), 1, seen)


def free_port():
    """One that the system gives to nobody who does not ask for it: it is free again after a kill."""
    while True:
        port = random.randrange(10000, 32000)
        with socket.socket() as s:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                s.bind(("127.0.0.1", port))
                return port
            except OSError:
                pass


def hold(b, address, end="r.continue()"):
    """The next request to that address waits: asked is kept when it is there, go() lets it through."""
    b.do(f"""globalThis.asked = new Promise((there) => page.route({json.dumps(address)}, async (r) => {{
                 await new Promise((on) => {{ globalThis.go = on; there(); }});
                 await {end}.catch(() => {{}}); }}, {{times: 1}}))""")


@test("page_talks_and_shows_a_run_live", "UI-01 UI-02 UI-03")
def live():
    with Browser() as b, Server() as s:
        b.enter(s)
        equal(b.do("return page.url()"), s.url + "/")
        equal(b.do("return page.evaluate(() => history.length)"), 2)  # the blank page and this one
        check(b.do("return page.getByRole('button', {name: 'Send'}).isDisabled()"))
        b.say("demo", "hello")
        b.ended(1)
        equal(b.texts(".mine"), ["hello"])
        check(b.texts(".answer")[0].startswith('You wrote: "hello" (turns before this one: 0)'))
        check(b.texts(".reasoning p")[0].startswith('The user wrote "hello".'))
        b.say("demo", "again")
        b.ended(2)
        check("(turns before this one: 1)" in b.texts(".answer")[1], "the conversation goes on")
        answers = b.texts(".answer")
        b.do("await page.reload()")
        b.ended(2)
        equal((b.texts(".mine"), b.texts(".answer")), (["hello", "again"], answers))
        equal((b.do("return page.title()"), b.texts("#said")), ("hello · UAR", [""]))  # what is old is no news


@test("page_goes_on_after_kill_9", "UI-01")
def killed():
    with Browser() as b, Provider() as p, \
            Server(env=p.env("gate:thinks"), listen=f"127.0.0.1:{free_port()}") as s:
        b.enter(s)
        b.say("assistant", "survive this")
        b.wait(".answer", "before")
        s.kill()
        b.wait(".ending", "Reconnecting")
        p.release()
        s.start()
        b.ended(1)
        run = s.http.get("/api/runs").json["runs"][0]["run_id"]
        calls = [e for e in s.session_events(run) if e.data["type"] == "model.requested"]
        equal(len(calls), 2, "the call was cut off and made again")
        equal(b.texts(".answer"), ["before after"])
        equal(len(b.texts(".reasoning")), 1)
        b.say("echo", "and on")
        b.ended(2)


@test("page_sends_what_was_said_while_the_server_was_away", "")
def said_away():
    with Browser() as b, Server(listen=f"127.0.0.1:{free_port()}") as s:
        b.enter(s)
        b.say("echo", "before")
        b.ended(1)
        s.kill()
        words = ["first", "second", "third"]
        for i, word in enumerate(words):
            b.say("echo", word)
            b.do(f"await page.locator('.ending', {{hasText: 'Sending'}}).nth({i}).waitFor()")
        equal(b.texts(".mine"), ["before", *words])
        b.do("await page.getByRole('button', {name: 'New'}).click()")  # looks at something else meanwhile
        b.say("echo", "elsewhere")
        b.wait(".ending", "Sending")
        s.start()
        b.ended(1)
        equal(b.texts(".answer"), ["elsewhere"])
        b.do("await page.locator('#run-list button').nth(4).waitFor()")
        b.do("await page.locator('#run-list button').last().click()")
        b.ended(4)
        equal((b.texts(".mine"), b.texts(".answer")), (["before", *words],) * 2)
        equal(len(s.http.get("/api/runs").json["runs"]), 5)


@test("page_gives_back_what_was_refused", "")
def not_taken():
    refusal = {"status": 413, "contentType": "application/problem+json",
               "body": json.dumps({"code": "PAYLOAD_TOO_LARGE", "detail": "too much"})}
    with Browser() as b, Server() as s:
        b.enter(s)
        b.do(f"await page.route('**/api/runs', (r) => r.request().method() === 'POST' ? r.fulfill({json.dumps(refusal)}) : r.continue())")
        b.say("echo", "a long story")
        b.wait(".ending[data-state=bad]", "Not sent. PAYLOAD_TOO_LARGE: too much")
        equal((b.texts(".mine"), b.texts("#said")), (["a long story"], ["Not sent: too much"]))
        equal(b.do("return page.locator('#message').inputValue()"), "a long story")
        check(b.do("return page.locator('#cancel').isHidden()"))
        b.do("await page.unroute('**/api/runs')")
        b.do("await page.getByLabel('Message', {exact: true}).press('Enter')")
        b.ended(1)
        equal(b.texts(".answer"), ["a long story"])


@test("page_cancels", "UI-01")
def cancels():
    with Browser() as b, Provider() as p, Server(env=p.env("gate:thinks")) as s:
        b.enter(s)
        b.say("assistant", "stop me")
        b.wait(".reasoning", "Let me see")
        equal(b.do("return page.title()"), "Running · stop me · UAR")
        b.do("await page.getByRole('button', {name: 'Cancel', exact: true}).press('Enter')")
        b.ended(1, "Cancelled")
        check(b.do("return page.locator('#cancel').isHidden()"))
        check(b.do("return page.locator('#message').evaluate((e) => e === document.activeElement)"), "the focus is not lost")
        record = s.http.get("/api/runs").json["runs"][0]
        equal((record["status"], record["cancel_reason"]), ("canceled", "cancelled on the page"))


CANCEL = "await page.getByRole('button', {name: 'Cancel', exact: true}).click()"


@test("page_cancels_also_what_is_not_on_the_screen", "")
def cancels_elsewhere():
    refusal = {"status": 409, "contentType": "application/problem+json", "body": json.dumps({"code": "CONFLICT", "detail": "not now"})}
    with Browser() as b, Provider() as p, Server(env=p.env("gate")) as s:
        b.enter(s)
        b.say("assistant", "stop me")
        b.wait(".answer", "before")
        run = s.http.get("/api/runs").json["runs"][0]["run_id"]
        refuse = f"r.fulfill({json.dumps(refusal)})"
        b.do(f"await page.route('**/cancel', (r) => {refuse})")
        b.do(CANCEL)
        b.wait("#talk > .ending[data-state=bad]", "CONFLICT: not now")
        b.do("await page.locator('#cancel', {hasText: /^Cancel$/}).waitFor()")  # it can be tried again
        b.do("await page.unroute('**/cancel')")
        hold(b, "**/cancel", refuse)
        b.do(CANCEL + "; await asked")
        b.do("await page.getByRole('button', {name: 'New'}).click()")
        b.say("echo", "meanwhile")
        b.ended(1)
        b.do("await Promise.all([page.waitForResponse('**/cancel'), go()])")
        b.say("echo", "and on")
        b.ended(2)
        equal(b.texts("#talk .ending"), ["Done", "Done"])  # and nothing of the other run
        b.do(f"await page.locator('[data-run=\"{run}\"]').click()")
        b.wait(".answer", "before")
        b.do("await page.route('**/cancel', (r) => r.abort())")  # the network is away
        lost = "page.waitForEvent('requestfailed', (r) => r.url().endsWith('/cancel'))"
        b.do(f"globalThis.lost = {lost}; {CANCEL}; await lost")
        b.do(f"globalThis.lost = {lost}; await page.getByRole('button', {{name: 'New'}}).click(); await lost")
        b.do("""await page.unroute('**/cancel');
                await Promise.race([page.waitForResponse('**/cancel'), page.locator('#talk .ending').waitFor()])""")
        equal(b.texts("#talk .ending"), [])
        s.events(run)
        equal(s.record(run)["status"], "canceled")


@test("page_says_that_an_answer_was_cut", "")
def cut_short():
    for reason, words in (("length", "Done, but cut: the model came to the limit of its output"), ("constructor", "Done")):
        with Browser() as b, Provider() as p, Server(env=p.env("ends:" + reason)) as s:
            b.enter(s)
            b.say("assistant", "tell me all")
            b.ended(1)
            equal((b.texts(".answer"), b.texts(".ending")), (["This is not "], [words]))


@test("page_replays_fixtures_and_opens_old_runs", "UI-02 UI-03 UI-04 UI-05 UI-07 UI-08 UI-15 BLD-03 FIX-04 ACC-09")
def replays():
    with open(os.path.join(FIXTURES, "tools.jsonl"), encoding="utf-8") as f:
        lines = [json.loads(line) for line in f]

    def of(kind):
        return [line["data"] for line in lines if line["type"] == kind]
    with Browser() as b, Server(fixtures_dir=FIXTURES) as s:
        b.enter(s)
        b.do("await page.getByLabel('Agent').selectOption('fixture')")
        b.do("await page.getByLabel('Recording').selectOption('tools')")
        b.do("await page.getByRole('button', {name: 'Send'}).click()")
        b.ended(1)
        shown = {k: b.texts(k) for k in (".answer", ".reasoning p", ".tool", ".artifact", ".note")}
        equal("".join(shown[".answer"]), "".join(d["text_delta"] for d in of("ChatDelta")))
        equal("".join(shown[".reasoning p"]), "".join(d["text_delta"] for d in of("ReasoningDelta")))
        for start, card in zip(of("ToolStart"), shown[".tool"], strict=True):
            end = next(d for d in of("ToolEnd") if d["tool_call_id"] == start["tool_call_id"])
            check(card.startswith(start["tool"] + ("ok" if end["ok"] else "failed")), card)
        artifact = of("Artifact")[0]["artifact"]
        check(artifact["title"] in shown[".artifact"][0] and artifact["content"] in shown[".artifact"][0], shown)
        check(any(of("Citation")[0]["sources"][0]["title"] in note for note in shown[".note"]), shown)
        b.do("await page.getByRole('button', {name: 'New'}).click()")
        b.do("await page.getByLabel('Agent').selectOption('fixture')")
        b.do("await page.getByLabel('Recording').selectOption('failure')")
        b.do("await page.getByRole('button', {name: 'Send'}).click()")
        b.wait(".ending[data-state=bad]", "PROVIDER_ERROR: the model stopped answering")
        b.say("echo", "live again")  # from a recording to a live run
        b.ended(1)
        equal(b.texts(".answer")[-1:], ["live again"])
        b.do("await page.locator('#run-list button').last().click()")
        b.wait(".artifact", artifact["title"])
        b.ended(1)
        equal({k: b.texts(k) for k in shown}, shown)


@test("page_draws_at_most_once_a_frame", "UI-17")
def batches():
    """A thousand deltas: the answer on the page changes as often as there are frames, not as there are deltas."""
    words = [f"w{i} " for i in range(1000)]
    rows = [("RunStart", {"run_id": "x", "agent_id": "fixture"}),
            *(("ChatDelta", {"run_id": "x", "text_delta": w}) for w in words), ("RunDone", {"run_id": "x"})]
    with tempfile.TemporaryDirectory() as folder, Browser() as b, Server(fixtures_dir=folder) as s:
        with open(os.path.join(folder, "many.jsonl"), "w", encoding="utf-8") as f:
            f.writelines(json.dumps({"type": kind, "data": data}) + "\n" for kind, data in rows)
        b.enter(s)
        b.do("""await page.evaluate(() => {
                    globalThis.frames = 0; globalThis.changes = 0;
                    const frame = () => { frames++; requestAnimationFrame(frame); };
                    requestAnimationFrame(frame);
                    const inAnswer = (r) => (r.target.parentElement ?? r.target).closest?.('.answer') || r.target.closest?.('.answer');
                    new MutationObserver((all) => { changes += all.filter(inAnswer).length; })
                        .observe(document.body, {subtree: true, childList: true, characterData: true}); })""")
        b.do("await page.getByLabel('Agent').selectOption('fixture')")
        b.do("await page.getByLabel('Recording').selectOption('many')")
        b.do("await page.getByRole('button', {name: 'Send'}).click()")
        b.ended(1)
        equal("".join(b.texts(".answer")), "".join(words), "nothing is lost")
        run = s.http.get("/api/runs").json["runs"][0]["run_id"]
        deltas = sum(e.type == "ChatDelta" for e in s.events(run))
        equal(deltas, len(words), "each came alone")
        seen = b.do("return page.evaluate(() => ({frames, changes}))")
        check(0 < seen["changes"] <= 2 * seen["frames"], "it is drawn more often than once a frame", seen)


@test("page_goes_where_the_address_says", "")
def addresses():
    with Browser() as b, Server() as s:
        b.enter(s)
        for word in ("one", "two"):
            b.do("await page.getByRole('button', {name: 'New'}).click()")
            b.say("echo", word)
            b.ended(1)
            b.do("await page.waitForURL(/#run=/)")
        two, one = (r["run_id"] for r in s.http.get("/api/runs").json["runs"])
        b.do("await page.locator('#run-list button').nth(1).click()")
        b.wait(".answer", "one")
        equal(b.do("return page.url()"), f"{s.url}/#run={one}")
        b.do("await page.goBack()")
        b.wait(".answer", "two")
        b.do("await page.goForward()")
        b.wait(".answer", "one")
        b.do(f"await page.evaluate(() => {{ location.hash = '#run={two}' }})")
        b.wait(".answer", "two")
        equal(b.texts(".answer"), ["two"])
        b.do("await page.evaluate(() => { location.hash = '#run=gone' })")
        b.wait(".ending[data-state=bad]", "NOT_FOUND: no run gone")
        b.wait(".welcome", "What shall be done?")
        equal(b.do("return page.url()"), s.url + "/")
        b.say("echo", "three")  # one can go on from there
        b.ended(1)
        equal(b.texts(".answer"), ["three"])


@test("page_keeps_conversations_apart", "")
def apart():
    with Browser() as b, Server() as s:
        one, two = (s.create("echo", word) for word in ("one", "two"))
        sessions = [s.record(r)["session_id"] for r in (one, two)]
        b.enter(s)
        for i, held in enumerate((f"runs/{one}", f"runs?limit=50&session_id={sessions[0]}", f"sessions/{sessions[0]}/events")):
            for elsewhere in (f"locator('[data-run=\"{two}\"]')", "getByRole('button', {name: 'New'})"):
                hold(b, "**/api/" + held)
                b.do(f"""globalThis.over = Promise.race([
                         page.waitForEvent('requestfailed', (r) => r.url().endsWith({json.dumps(held)})),
                         page.waitForResponse('**/api/runs/{one}/stream')])""")
                b.do(f"await page.locator('[data-run=\"{one}\"]').click(); await asked")
                b.do(f"await page.{elsewhere}.click()")
                b.do("go(); await over")  # it was given up, or went on all the same
                b.do("await page.locator('.welcome, .answer').first().waitFor()")
                new, word = "New" in elsewhere, f"said {i}"
                b.say("echo", word)
                b.wait(".answer", word)
                said = ["two", *(f"said {n}" for n in range(i))]
                equal(b.texts(".answer"), [word] if new else [*said, word])
                session = s.http.get("/api/runs").json["runs"][0]["session_id"]
                check(session not in sessions if new else session == sessions[1], held, elsewhere)


AT_END = "(({scrollHeight: all, scrollTop: above, clientHeight: seen}) => all - above - seen < 80)(document.getElementById('talk'))"


@test("page_stays_at_the_end_with_who_reads_it", "")
def at_end():
    with Browser() as b, Provider() as p, Server(env=p.env("gate")) as s:
        b.enter(s)
        b.say("echo", "many words " * 800)
        b.ended(1)
        for width, height in ((390, 600), (390, 300), (1280, 800)):
            b.do(f"await page.setViewportSize({{width: {width}, height: {height}}})")
            b.do(f"await page.waitForFunction(() => {AT_END} && document.getElementById('latest').hidden)")
        b.say("assistant", "and more")
        b.wait(".answer", "before")
        b.do("await page.locator('#talk').evaluate((e) => { e.scrollTop = 0; })")
        b.do("await page.getByRole('button', {name: 'Jump to latest'}).waitFor()")
        b.do("await page.setViewportSize({width: 390, height: 600})")
        p.release()
        b.ended(2)
        equal(b.do("return page.locator('#talk').evaluate((e) => e.scrollTop)"), 0)  # who reads above stays there
        b.do("await page.getByRole('button', {name: 'Jump to latest'}).click()")
        b.do(f"await page.waitForFunction(() => {AT_END} && document.getElementById('latest').hidden)")


@test("page_offers_something_to_who_is_new", "")
def new_here():
    with Browser() as b, Server(fixtures_dir=FIXTURES) as s:
        b.enter(s)
        b.do("await page.getByRole('button', {name: 'Say hello to the demo'}).click()")
        b.ended(1)
        equal(b.texts(".mine"), ["Hello"])
        b.wait("#run-list .agent", "demo")
        b.do("await page.getByRole('button', {name: 'New'}).click()")
        b.wait(".welcome", "What shall be done?")
        equal(b.do("return page.locator('.welcome button:visible').count()"), 0)  # no longer new
        b.do("await page.getByLabel('Agent').selectOption('fixture')")
        equal(b.do("return page.locator('#message').getAttribute('placeholder')"), "The recording is replayed as it was.")
        b.do("await page.getByLabel('Agent').selectOption('tools')")
        b.do("await page.getByPlaceholder('Say something').waitFor()")


WIDER = """return page.evaluate(() => [document.documentElement, ...document.querySelectorAll('body, header, main, #talk, #composer, #runs')]
               .filter((e) => e.scrollWidth > e.clientWidth && e.clientWidth).map((e) => e.id || e.tagName))"""


@test("page_fits_a_phone", "")
def phone():
    with Browser() as b, Server(listen=f"127.0.0.1:{free_port()}") as s:
        b.do("await page.setViewportSize({width: 360, height: 740})")
        b.enter(s)
        equal(b.do(WIDER), [])
        for i, words in enumerate(("x" * 500, "\u0645\u0631\u062d\u0628\u0627 " * 80, "/path" * 200)):
            b.say("echo", words)
            b.ended(i + 1)
        b.say("tools", 'tool fs.write {"path": "%s", "text": "%s"}' % ("n" * 200, "long" * 400))
        b.do("await page.getByRole('button', {name: 'Deny'}).waitFor()")
        equal(b.do(WIDER), [])
        small = "(e) => e.getBoundingClientRect().height < 44 || e.getBoundingClientRect().width < 44"
        equal(b.do(f"return page.locator('button:visible').evaluateAll((all) => all.filter({small}).map((e) => e.textContent))"), [])
        b.do("await page.getByRole('button', {name: 'Runs'}).click()")
        b.do("await page.locator('#run-list button').first().focus()")
        equal(b.do(WIDER), [])
        b.do("await page.keyboard.press('Escape')")
        check(b.do("return page.locator('#runs').isHidden()"))
        s.kill()
        b.wait("#line", "Reconnecting")
        equal(b.do(WIDER), [])


@test("page_keeps_the_focus_in_the_list", "")
def list_focus():
    with Browser() as b, Provider() as p, Server(env=p.env("gate")) as s:
        b.enter(s)
        b.say("assistant", "wait")
        b.wait(".answer", "before")
        b.do("await page.locator('#run-list button').first().focus()")
        mine = s.http.get("/api/runs").json["runs"][0]["run_id"]
        s.create("echo", "another")
        p.release()
        b.do("await page.locator('#run-list button').nth(1).waitFor()")
        equal(b.do("return page.evaluate(() => document.activeElement.dataset.run)"), mine)


@test("page_lists_every_run_once", "")
def lists():
    with Browser() as b, Server() as s:
        runs = [s.create("echo", str(i)) for i in range(70)][::-1]
        early = {"json": {"runs": [{**s.record(runs[-1]), "engine_status": "waiting_input"}]}}  # the page knows of one
        b.do(f"await page.route('**/api/runs?limit=30', (r) => r.fulfill({json.dumps(early)}))")
        b.enter(s)
        b.wait("#run-list .status", "waits for you")
        b.do("await page.unroute('**/api/runs?limit=30')")
        b.do("await page.getByRole('button', {name: 'New'}).click()")
        more = "await page.locator('#more-runs').click()"
        b.do("""globalThis.both = new Promise((there) => { globalThis.held = []; page.route('**/api/runs?limit=30&before=*',
                    (r) => { if (held.push(r) === 2) there(); }, {times: 2}); })""")
        b.do(f"{more}; {more}; await both")
        b.do("""await Promise.all(held.map(async (r) => { const was = page.waitForResponse((a) => a.request() === r.request());
                    await r.continue(); await was; }))""")
        b.do("await page.locator('#run-list button').nth(59).waitFor()")
        b.do(more)
        b.do("await page.locator('#more-runs').waitFor({state: 'hidden'})")
        equal(b.do("return page.locator('#run-list button').evaluateAll((all) => all.map((e) => e.dataset.run))"), runs)


@test("page_shows_foreign_text_as_text", "")
def inert():
    payloads = ["<img src=x onerror=alert(1)>", "<script>alert(1)</script>", "<svg onload=alert(1)>",
                "<iframe src='javascript:alert(1)'></iframe>", "<a href='javascript:alert(1)'>x</a>",
                "<style>*{display:none}</style>", "\u202egnp.exe \U0001f469\u200d\U0001f4bb e\u0301", "<img src=http://evil.example/x>"]
    with Browser() as b, Server() as s:
        b.enter(s)
        for i, payload in enumerate(payloads):
            b.say("echo", payload)
            b.ended(i + 1)
        equal(b.texts(".answer"), payloads)
        equal(b.do("return page.locator('#talk img, #talk script, #talk svg, #talk iframe, #talk a, #talk style').count()"), 0)


@test("page_lets_a_person_decide", "")
def decides():
    recorded = "dialogue " + recording("claude_code/dialogue_permission_{}.dialogue.jsonl")
    with Browser() as b, Shop({"yes": {"script": [recorded.format("allow")]},
                               "no": {"script": [recorded.format("deny")]}}) as s:
        b.enter(s)
        for i, (agent, button, result) in enumerate((("yes", "Allow", "allowed"), ("no", "Deny", "denied"))):
            b.say(agent, "write it")
            b.wait(".ask", "hello file")
            b.do(f"await page.getByRole('button', {{name: /^{button}:/}}).last().click()")
            b.ended(i + 1)
            b.wait(".ask .state", result)
        equal(b.do("return page.locator('.ask button:visible').count()"), 0)


WRITES = 'tool fs.write {"path": "note.txt", "text": "kept"}'


@test("page_says_that_a_run_waits_for_somebody", "")
def waits():
    with Browser() as b, Server() as s:
        b.enter(s)
        b.say("tools", WRITES)
        b.wait(".ask .state", "waits for you")
        b.wait(".ending", "Waits for your answer")
        b.wait("#run-list .status", "waits for you")
        equal(b.texts("#said"), ["tools asks: fs.write: note.txt"])
        check(b.do("return page.title()").startswith("Waits for you · tool fs.write"))
        b.do("await page.reload()")
        b.do("await page.getByRole('region', {name: 'Question: fs.write: note.txt'}).waitFor()")
        b.do("await page.getByRole('button', {name: 'Allow: fs.write: note.txt'}).focus()")
        b.do("await page.keyboard.press('Enter')")
        b.wait(".ask .state", "allowed")
        check(b.do("return page.locator('.ask').evaluate((e) => e === document.activeElement)"), "the focus is not lost")
        b.ended(1)
        b.wait("#run-list .status", "succeeded")
        check(b.do("return page.locator('.ask pre').isHidden()"), "what was decided folds away")
        b.say("tools", WRITES)
        b.do("await page.getByRole('button', {name: 'Deny'}).waitFor()")
        b.do("await page.getByRole('button', {name: 'Cancel', exact: true}).click()")
        b.ended(1, "Cancelled")
        equal(b.texts(".ask .state"), ["allowed", "not answered"])
        equal(b.do("return page.locator('.decisions button:visible').count()"), 0)


@test("page_keeps_an_answer_until_the_server_has_it", "")
def answered_away():
    with Browser() as b, Server(listen=f"127.0.0.1:{free_port()}") as s:
        b.enter(s)
        b.say("tools", WRITES)
        b.do("await page.getByRole('button', {name: /^Allow:/}).waitFor()")
        s.kill()
        b.wait(".ending", "Reconnecting")
        b.do("await page.getByRole('button', {name: /^Allow:/}).click()")
        b.wait(".ask .state", "answering")
        check(b.do("return page.getByRole('button', {name: 'Deny'}).isDisabled()"))
        s.start()
        b.ended(1)
        equal((b.texts(".ask .state"), b.texts(".ending")), (["allowed"], ["Done"]))


@test("page_shows_a_form_and_sends_its_values", "UI-12 CTL-20")
def form():
    schema = {"type": "object", "required": ["name", "age", "colour"], "properties": {
        "name": {"type": "string", "title": "Your name", "pattern": "^[A-Z]"}, "age": {"type": "integer", "minimum": 0},
        "colour": {"enum": ["red", "blue"]}, "vegan": {"type": "boolean"},
        "tags": {"type": "array", "items": {"type": "string"}}, "password": {"type": "string"}}}
    ask = "tool ui.form.request " + json.dumps({"title": "Sign <b>up</b>", "schema": schema})
    with Browser() as b, Server() as s:
        b.enter(s)
        b.say("tools", ask)
        b.do("await page.getByRole('button', {name: 'Submit'}).waitFor()")
        equal(b.texts(".ask .state"), ["waits for you"])
        check(b.texts(".ask h3")[0].startswith("Sign <b>up</b>"), "markup is text")
        b.do("await page.getByRole('button', {name: 'Submit'}).click()")  # the browser misses what is required
        equal(s.http.get("/api/actions").json["actions"][0]["status"], "pending")
        equal(b.do("return page.locator('.fields').last().getByLabel('password').getAttribute('type')"), "password")
        b.do("await page.locator('.fields').last().getByLabel('Your name').fill('ann')")
        b.do("await page.locator('.fields').last().getByLabel('age').fill('41')")
        b.do("await page.locator('.fields').last().getByLabel('colour').selectOption('blue')")
        b.do("await page.locator('.fields').last().getByLabel('vegan').check()")
        b.do("await page.locator('.fields').last().getByLabel('tags').fill('a, b')")
        b.do("await page.locator('.fields').last().getByLabel('password').fill('hunter2')")
        b.do("await page.getByRole('button', {name: 'Submit'}).click()")
        b.wait(".ask .wrong", "/name")  # the server's word, at the form
        b.do("await page.locator('.fields').last().getByLabel('Your name').fill('Ann')")
        b.do("await page.getByRole('button', {name: 'Submit'}).click()")
        b.ended(1)
        equal((b.texts(".ask .state"), b.texts(".ending")), (["answered"], ["Done"]))
        done = s.http.get("/api/actions?status=resolved").json["actions"][0]
        equal(done["payload"], {"name": "Ann", "age": 41, "colour": "blue", "vegan": True, "tags": ["a", "b"],
                                "password": "<redacted>"})
        b.say("tools", ask)
        b.do("await page.getByRole('button', {name: 'Decline'}).click()")
        b.ended(2)
        equal(b.texts(".ask .state"), ["answered", "declined"])


@test("page_takes_the_answer_of_somebody_else", "")
def answered_elsewhere():
    with Browser() as b, Server() as s:
        b.enter(s)
        b.say("tools", WRITES)
        b.do("await page.getByRole('button', {name: /^Allow:/}).waitFor()")
        action = s.http.get("/api/actions").json["actions"][0]["action_id"]
        hold(b, "**/respond_action")
        b.do("await page.getByRole('button', {name: /^Allow:/}).click(); await asked")
        equal(s.http.post("/api/control/respond_action", {"action_id": action, "decision": "deny"}).status, 200)
        b.wait(".ask .state", "denied")
        b.do("await Promise.all([page.waitForResponse('**/respond_action'), go()])")
        b.ended(1)
        equal(b.texts(".ending"), ["Done"])  # and no complaint: the question was answered


@test("page_shows_the_whole_of_what_is_to_be_allowed", "")
def whole():
    command = "echo \u202egnp.exe\u200b " + "x" * 20000 + " \u2066the-end"
    ask = {"type": "control_request", "request_id": "r1", "request": {
        "subtype": "can_use_tool", "tool_name": "Bash", "tool_use_id": "call-1", "input": {"command": command}}}
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as f, Browser() as b, Shop({"long": {
            "script": TALK + ["cat " + f.name, "expect deny", SAY % "not done", "result"]}}) as s:
        f.write(json.dumps(ask) + "\n")
        f.flush()
        b.enter(s)
        b.say("long", "do it")
        b.wait(".ask", "The beginning of")
        check(len(b.texts(".ask h3")[0]) < 200, "a heading is no place to read it all")
        check("the-end" not in "".join(b.texts(".ask pre")))
        b.do("await page.getByRole('button', {name: 'Show all'}).click()")
        b.wait(".ask pre", "the-end")
        for part in (".ask h3", ".ask pre"):  # what cannot be seen is written out
            check("echo \\u{202e}gnp.exe\\u{200b} x" in b.texts(part)[0], b.texts(part)[0][:300])
        check(not re.search("[\u200b\u202e\u2066]", b.do("return page.locator('.ask').evaluate((e) => e.outerHTML)")))
        b.do("await page.getByRole('button', {name: 'Deny'}).last().click()")
        b.ended(1)


@test("page_needs_the_token", "SEC-01")
def token():
    with Browser() as b, Server() as s:
        b.do(f"await page.goto({json.dumps(s.url + '/')})")
        b.do("await page.getByRole('heading', {name: 'Sign in'}).waitFor()")
        b.do("await page.locator('#token').fill('wrong')")
        b.do("await page.getByRole('button', {name: 'Sign in'}).click()")
        b.wait("#sign-in-why", "The token is not valid any more.")
        b.do(f"await page.locator('#token').fill({json.dumps(s.token)})")
        b.do("await page.getByRole('button', {name: 'Sign in'}).click()")
        b.say("echo", "hello")
        b.ended(1)
        equal(b.texts(".answer"), [text_of(s.events(s.http.get("/api/runs").json["runs"][0]["run_id"]))])


main()
