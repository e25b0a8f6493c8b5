"""A real browser on a leash: Debian's Chromium, driven by Playwright (page_driver.mjs)."""
import json
import os
import shutil
import subprocess

from . import SAFETY, Skip, check, equal, npm

HERE = os.path.dirname(os.path.abspath(__file__))
SHOTS = os.path.join(os.environ.get("BUILD", "build"), "shots")


class Driver:
    """The process that drives one Chromium. It is kept for the next test: to start a browser takes
    longer than most tests, and a page has a profile of its own."""
    idle, keep = [], True

    def __init__(self):
        # Chromium without a window takes a third of the processor time of the one with it.
        names = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
        chromium = next(filter(None, map(shutil.which, names)), None)
        if not chromium:
            raise Skip("chromium is not installed")
        self.proc = subprocess.Popen(
            [npm.node(), os.path.join(HERE, "page_driver.mjs"), os.path.join(npm.modules("page"), "playwright-core"),
             chromium, str(int(SAFETY * 1000))],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def ask(self, what):
        """The answer, nothing when the process is gone."""
        try:
            self.proc.stdin.write(json.dumps(what) + "\n")
            self.proc.stdin.flush()
        except BrokenPipeError:
            return None
        line = self.proc.stdout.readline()
        return json.loads(line) if line else None

    def end(self):
        self.proc.stdin.close()
        self.proc.wait(SAFETY)


class Browser:
    """with Browser() as b: b.do("javascript") runs it beside a page and returns its value.
    At the end: no dialog, no fault of the page, no violation of its policy, no request to another host."""

    def __init__(self, width=1280, height=800, dark=False, phone=False):
        self.driver = Driver.idle.pop() if Driver.idle else Driver()
        self.width, self.dark, self.phone = 360 if phone else width, dark, phone
        how = {"width": self.width, "height": 740 if phone else height, "dark": dark, "phone": phone}
        if not self.driver.ask(how):
            raise Skip("the browser does not start: " + " ".join(self.driver.proc.stderr.read().split())[:160])

    def do(self, script):
        answer = self.driver.ask(script) or {"error": "the driver is gone"}
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
        """A new conversation, by the one-time link; all agents are there to choose from."""
        server.ready()
        self.enter(server)
        self.do("await page.locator('.rail').getByRole('link', {name: 'New chat'}).click()")
        self.wait("#message")

    def allow_longer(self, words):
        """From the menu beside Allow, once the card stands still: a press on one that moves can miss."""
        self.do("await page.locator('[data-allow]:not([aria-disabled])').first().waitFor(); "
                "await page.getByRole('button', {name: 'Allow for longer'}).click(); "
                f"await page.getByRole('menuitem', {{name: '{words}'}}).click()")

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

    def theme(self, dark):
        """As if the system had changed it while the page is open."""
        self.dark = dark
        self.do(f"""await page.emulateMedia({{colorScheme: '{'dark' if dark else 'light'}'}});
            await page.evaluate(() => Promise.all(document.getAnimations().filter((a) => a instanceof CSSTransition).map((a) => a.finished.catch(() => {{}}))))""")

    def size(self, width, height):
        self.width = width
        self.do(f"await page.setViewportSize({{width: {width}, height: {height}}}); await page.evaluate(() => new Promise(requestAnimationFrame))")

    def looks(self, name, small=True):
        """The page as it is, in both themes: nothing is wider than its place, axe is content, and on a phone a finger
        hits every button. The theme stays changed, so that the next page is opened in the other one."""
        for dark in (self.dark, not self.dark):
            self.theme(dark)
            self.shot(f"{name}-{'dark' if dark else 'light'}-{self.width}")
            equal((self.do(WIDER), self.do(SMALL) if self.phone and small else [], self.axe()), ([], [], []), (name, self.width, dark))

    def axe(self):
        """What axe-core finds serious or critical on the page as it is."""
        source = json.dumps(os.path.join(npm.modules("page"), "axe-core", "axe.min.js"))
        return self.do(f"""const client = await page.context().newCDPSession(page);
            const ask = async (expression) => (await client.send('Runtime.evaluate', {{awaitPromise: true, returnByValue: true, expression}})).result.value;
            if (!await ask('"axe" in globalThis'))
                await ask((await import('node:fs')).readFileSync({source}, 'utf8') + ';0');
            const found = await ask(`axe.run(document, {{resultTypes: ['violations']}}).then((r) => r.violations.filter((v) => ['serious', 'critical'].includes(v.impact))
                    .map((v) => v.id + ': ' + v.nodes.slice(0, 4).map((n) => n.target.join(' ') + ' ' + (n.any[0]?.message ?? '')).join(' | ')))`);
            await client.detach();
            return found;""")

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        good = False
        try:
            if kind is None:
                self.clean()
                self.goto("about:blank")  # nothing asks the server any more
                good = Driver.keep
            else:
                self.shot("failed")
        finally:
            if good:
                Driver.idle.append(self.driver)
            else:
                self.driver.end()

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
