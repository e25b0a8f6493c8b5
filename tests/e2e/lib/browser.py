"""A real browser on a leash: Debian's Chromium, driven by Playwright (page_driver.mjs)."""
import json
import os
import random
import shutil
import socket
import subprocess

from . import SAFETY, Skip, check, equal, npm

HERE = os.path.dirname(os.path.abspath(__file__))
SHOTS = os.path.join(os.environ.get("BUILD", "build"), "shots")


class Browser:
    """with Browser() as b: b.do("javascript") runs it beside a page and returns its value.
    At the end: no dialog, no fault of the page, no violation of its policy, no request to another host."""

    def __init__(self, width=1280, height=800, dark=False, phone=False):
        chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
        if not chromium:
            raise Skip("chromium is not installed")
        how = {"width": 360 if phone else width, "height": 740 if phone else height, "dark": dark, "phone": phone}
        self.proc = subprocess.Popen(
            [npm.node(), os.path.join(HERE, "page_driver.mjs"), os.path.join(npm.modules("page"), "playwright-core"),
             chromium, str(int(SAFETY * 1000)), json.dumps(how)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if not self.proc.stdout.readline():
            raise Skip("the browser does not start: " + " ".join(self.proc.stderr.read().split())[:160])

    def do(self, script):
        self.proc.stdin.write(json.dumps(script) + "\n")
        self.proc.stdin.flush()
        answer = json.loads(self.proc.stdout.readline() or '{"error": "the driver is gone"}')
        check("error" not in answer, script, "\n", answer.get("error"))
        return answer["value"]

    def wait(self, selector, text=None, page="page"):
        """Until the last that matches is there and visible."""
        has = f", {{hasText: {json.dumps(text)}}}" if text is not None else ""
        self.do(f"await {page}.locator({json.dumps(selector)}{has}).last().waitFor()")

    def texts(self, selector, page="page"):
        return self.do(f"return {page}.locator({json.dumps(selector)}).allTextContents()")

    def count(self, selector):
        return self.do(f"return page.locator({json.dumps(selector)}).count()")

    def click(self, role, name, page="page"):
        """The last visible one with that role and name (a regular expression when it begins with a slash)."""
        name = name if name.startswith("/") else json.dumps(name)
        exact = "" if name.startswith("/") else ", exact: true"
        self.do(f"await {page}.getByRole('{role}', {{name: {name}{exact}}}).last().click()")

    def goto(self, url):
        self.do(f"await page.goto({json.dumps(url)})")

    def enter(self, server):
        """By the one-time link."""
        self.goto(server.link)
        self.do("await page.getByRole('heading', {name: 'Home', level: 1}).waitFor()")

    def chat(self, server):
        """A new conversation, by the one-time link."""
        self.enter(server)
        self.do("await page.locator('.rail').getByRole('link', {name: 'New chat'}).click()")
        self.wait("#message")

    def say(self, agent, message):
        self.choose("Agent", agent)
        self.do(f"await page.locator('#message').fill({json.dumps(message)}); await page.locator('#message').press('Enter')")

    def choose(self, label, value):
        self.do(f"await page.getByLabel({json.dumps(label)}, {{exact: true}}).selectOption({json.dumps(value)})")

    def ended(self, count, words="Done"):
        """Until so many runs have ended with these words."""
        self.do(f"await page.locator('.ending-words', {{hasText: /^{words}/}}).nth({count - 1}).waitFor()")

    def hold(self, address, end="r.continue()"):
        """The next request to that address waits: asked is kept when it is there, go() lets it through."""
        self.do(f"""globalThis.asked = new Promise((there) => page.route({json.dumps(address)}, async (r) => {{
                     await new Promise((on) => {{ globalThis.go = on; there(); }});
                     await {end}.catch(() => {{}}); }}, {{times: 1}}))""")

    def shot(self, name):
        os.makedirs(SHOTS, exist_ok=True)
        self.do(f"await page.screenshot({{path: {json.dumps(os.path.abspath(os.path.join(SHOTS, name + '.png')))}}})")

    def axe(self):
        """What axe-core finds serious or critical on the page as it is."""
        source = json.dumps(os.path.join(npm.modules("page"), "axe-core", "axe.min.js"))
        return self.do(f"""const fs = await import('node:fs');
            const client = await page.context().newCDPSession(page);
            await client.send('Runtime.evaluate', {{expression: fs.readFileSync({source}, 'utf8')}});
            const {{result}} = await client.send('Runtime.evaluate', {{awaitPromise: true, returnByValue: true, expression:
                `axe.run(document, {{resultTypes: ['violations']}}).then((r) => r.violations.filter((v) => ['serious', 'critical'].includes(v.impact))
                    .map((v) => v.id + ': ' + v.nodes.slice(0, 4).map((n) => n.target.join(' ') + ' ' + (n.any[0]?.message ?? '')).join(' | ')))`}});
            return result.value;""")

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        try:
            if kind is None:
                self.clean()
            else:
                self.shot("failed")
        finally:
            self.proc.stdin.close()
            self.proc.wait(SAFETY)

    def clean(self):
        seen = self.do("return {...seen, hosts: [...seen.hosts]}")
        equal((seen["dialogs"], seen["errors"], seen["violations"]), (0, [], []))
        check(len(seen["hosts"]) <= 1, seen)


# What is wider than its place.
WIDER = """return page.evaluate(() => [document.documentElement, ...document.querySelectorAll('body, main, header, .scroll, .card, form')]
               .filter((e) => e.scrollWidth > e.clientWidth + 1 && e.clientWidth && getComputedStyle(e).overflowX !== 'auto').map((e) => e.className || e.tagName))"""
# What a finger does not hit.
SMALL = """return page.locator('button:visible, a.btn:visible').evaluateAll((all) => all.filter((e) => {
               const r = e.getBoundingClientRect(); return r.height < 43.5 || r.width < 43.5; }).map((e) => e.textContent || e.ariaLabel))"""


def free_port():
    """One that the system gives to no one who does not ask for it: it is free again after a kill."""
    while True:
        port = random.randrange(10000, 32000)
        with socket.socket() as s:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                s.bind(("127.0.0.1", port))
                return port
            except OSError:
                pass
