#!/usr/bin/env python3
"""The page: its files over HTTP, the link, signing in, and how it stands in a browser."""
# time limit: 400 s, pages share a browser, and draw slowly beside other tests
import gzip
import json
import os
import re
import subprocess

from lib import FIXTURES, Server, Skip, check, equal, main, refused, test
from lib.browser import WIDER, Browser

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
DIST = os.path.join(ROOT, "web", "dist")
TYPES = {"js": "text/javascript; charset=utf-8", "css": "text/css; charset=utf-8", "html": "text/html; charset=utf-8"}
VIEWS = {"/": "index.html", "/ui": "index.html", "/ui/inbox": "index-1.html", "/ui/c/abc": "index-2.html",
         "/ui/c/abc/def": "index-3.html", "/ui/runs?state=failed&q=a%20b": "index-1.html"}


def files():
    return {**VIEWS, **{"/page/" + n: "page/" + n for n in os.listdir(os.path.join(DIST, "page"))}}


def source(name):
    with open(os.path.join(DIST, name), "rb") as f:
        return f.read()


@test("page_files_are_served_with_a_strict_policy", "")
def served():
    with Server() as s:
        for path, name in files().items():
            a = s.http.get(path, token=False)
            equal((a.status, a.headers["content-type"]), (200, TYPES[name.rsplit(".")[-1]]), path)
            equal(a.body, source(name), name)
            policy = dict(p.strip().partition(" ")[::2] for p in a.headers["content-security-policy"].split(";"))
            frame = name == "page/frame.html"
            equal([policy[d] for d in ("default-src", "base-uri", "form-action")], ["'none'"] * 3)
            if frame:  # no origin, no network: what runs there can keep nothing and tell no one
                equal((policy["sandbox"], policy["connect-src"], policy["frame-ancestors"]), ("allow-scripts", "'none'", "'self'"))
                check("http" not in a.headers["content-security-policy"] and "'self'" not in policy["script-src"])
            else:
                equal([policy[d] for d in ("script-src", "style-src", "connect-src", "frame-src")], ["'self'"] * 4)
                equal((policy["frame-ancestors"], policy["trusted-types"]), ("'none'", "'none'"))
                check("unsafe" not in a.headers["content-security-policy"])
            kept = "no-cache" if name.endswith(".html") else "public, max-age=31536000, immutable"
            equal((a.headers["x-frame-options"], a.headers["referrer-policy"], a.headers["cache-control"]),
                  ("SAMEORIGIN" if frame else "DENY", "no-referrer", kept))
            equal(a.headers["x-content-type-options"], "nosniff")
            head = s.http.send("HEAD", path, token=False)
            equal((head.status, head.body, head.headers["content-length"]), (200, b"", str(len(source(name)))))
        refused(s.http.get("/page/other.js", token=False), 404, "NOT_FOUND")
        refused(s.http.get("/ui/inbox?a=1&a=2", token=False), 400, "VALIDATION_ERROR")


@test("page_files_are_not_sent_again", "")
def etags():
    with Server() as s:
        for path in files():
            tag = s.http.get(path, token=False).headers["etag"]
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
        for path, name in files().items():
            many = name.endswith(".html")
            for value in takes if many else takes[:1]:
                a = s.http.get(path, token=False, headers={"Accept-Encoding": value})
                equal((a.headers.get("content-encoding"), a.headers["vary"]), ("gzip", "Accept-Encoding"), value)
                equal(gzip.decompress(a.body), source(name))
                again = s.http.get(path, token=False, headers={"Accept-Encoding": value, "If-None-Match": a.headers["etag"]})
                equal((again.status, again.body), (304, b""))
            for value in not_so if many else not_so[:1]:
                a = s.http.get(path, token=False, headers={"Accept-Encoding": value})
                equal((a.headers.get("content-encoding"), a.body), (None, source(name)), value)


@test("page_holds_no_inline_code_and_no_foreign_address", "")
def plain():
    for name in set(VIEWS.values()):
        html = source(name).decode()
        check(not re.search(r"<style|\sstyle=|\son\w+=|javascript:", html), "inline code")
        equal(re.findall(r"<script[^>]*>(.*?)</script>", html, re.S), [""])
        for address in re.findall(r'(?:src|href)="([^"]*)"', html):
            check(re.match(r"(\./|(\.\./)+)page/[\w.-]+$|data:image/svg\+xml,", address), address)


@test("page_loads_little_at_first", "")
def first_load():
    html = source("index.html").decode()
    first = sum(len(gzip.compress(source(n), 9)) for n in re.findall(r'"\./(page/[^"]+)"', html))
    check(0 < first <= 200 * 1024, first)
    print(f"  first load: {first} bytes compressed")


@test("page_is_what_its_sources_make", "")
def rebuilt():
    done = subprocess.run(["tools/web", "check"], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode == 3:
        raise Skip(done.stdout.strip()[-200:])
    equal(done.returncode, 0, done.stdout)
    licences = source("LICENSES").decode()
    for package in ("react", "react-dom", "@tanstack/query-core", "lucide-react"):
        check(f"\n{package} " in licences, package)


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

@test("page_a1_link_leaves_no_trace", "")
def a1():
    with Browser() as b, Server() as s:
        b.enter(s)
        equal(b.do("return page.url()"), s.url + "/")
        equal(b.do("return page.evaluate(() => history.length)"), 2)  # the blank page and this one
        code = s.link.partition("#code=")[2]
        kept = b.do("return page.evaluate(() => JSON.stringify([location.href, document.cookie, {...localStorage}, {...sessionStorage}, document.documentElement.outerHTML]))")
        check(code not in kept and s.token in kept, "the token is in this tab's storage, the code nowhere")
        equal(b.do("return page.evaluate(() => [Object.keys(sessionStorage), document.cookie])"), [["uar.token"], ""])
        b.goto(s.link)  # the link a second time: the tab is signed in already
        b.do("await page.evaluate(() => sessionStorage.clear())")
        b.goto("about:blank")
        b.goto(s.link)
        b.wait(".sign-in", "This link was used already, or is too old.")


@test("page_a2_needs_the_token", "SEC-01")
def a2():
    with Browser() as b, Server() as s:
        b.goto(s.url + "/ui/inbox")
        b.do("await page.getByRole('heading', {name: 'Sign in'}).waitFor()")
        equal(b.count(".rail"), 0)
        b.do("await page.locator('#token').fill('wrong')")
        b.click("button", "Sign in")
        b.wait("#token-wrong", "The server does not know this token.")
        b.do(f"await page.locator('#token').fill({json.dumps(s.token)})")
        b.click("button", "Sign in")
        b.wait(".rail")
        equal(b.do("return page.url()"), s.url + "/ui/inbox")


@test("page_a3_expired_token_comes_back_to_the_same_view", "SEC-01")
def a3():
    with Browser() as b, Server() as s:
        b.enter(s)
        b.do("await page.evaluate(() => sessionStorage.setItem('uar.token', 'stale'))")
        b.goto(s.url + "/ui/nowhere/x?a=b")
        b.wait(".sign-in", "The token is not valid any more.")
        b.do(f"await page.locator('#token').fill({json.dumps(s.token)})")
        b.click("button", "Sign in")
        b.wait(".empty", "There is no such view")
        equal(b.do("return page.url()"), s.url + "/ui/nowhere/x?a=b")


@test("page_a4_other_origins_cannot_read_or_post", "")
def a4():
    with Browser() as b, Server() as s, Server() as other:
        b.goto(other.url + "/health")
        got = b.do(f"""return page.evaluate(async ([url, token]) => Promise.all([
            fetch(url + '/api/runs', {{headers: {{Authorization: 'Bearer ' + token}}}}).then(() => 'read', String),
            fetch(url + '/api/runs', {{method: 'POST', body: '{{}}', headers: {{'Content-Type': 'application/json', Authorization: 'Bearer ' + token}}}}).then(() => 'posted', String),
            fetch(url + '/').then(() => 'read', String)]), {json.dumps([s.url, s.token])})""")
        equal([g.split(":")[0] for g in got], ["TypeError"] * 3)
        a = s.http.get("/api/runs", headers={"Origin": other.url})
        check("access-control-allow-origin" not in a.headers)
        equal(s.http.get("/api/runs").json["runs"], [])
        b.do("seen.hosts.clear(); seen.violations.length = 0")


@test("page_h5_h6_shortcuts_themes_and_the_palette", "")
def shell():
    with Browser() as b, Server(fixtures_dir=FIXTURES) as s:
        b.enter(s)
        b.do("await page.keyboard.press('?')")
        b.do("await page.getByRole('dialog', {name: 'Shortcuts'}).waitFor()")
        b.do("await page.keyboard.press('Escape')")
        b.do("await page.getByRole('dialog').waitFor({state: 'detached'})")
        b.do("await page.keyboard.press('Control+k')")
        b.do("await page.getByRole('combobox', {name: /Search/}).fill('theme: dark?')")
        equal(b.count("dialog[aria-label=Shortcuts]"), 0)  # no shortcut while typing
        b.do("await page.getByRole('combobox', {name: /Search/}).fill('theme: dark')")
        b.do("await page.getByRole('option', {name: /Theme: dark/}).waitFor(); await page.keyboard.press('Enter')")
        dark = "return page.evaluate(() => getComputedStyle(document.body).backgroundColor)"
        equal(b.do(dark), "rgb(16, 18, 21)")
        b.do("await page.reload()")
        b.wait(".rail")
        equal(b.do(dark), "rgb(16, 18, 21)")
        b.do("await page.evaluate(() => localStorage.clear()); await page.reload()")
        b.wait(".rail")
        equal(b.do(dark), "rgb(255, 255, 255)")
        b.do("await page.emulateMedia({colorScheme: 'dark'})")
        equal(b.do(dark), "rgb(16, 18, 21)")
        equal(b.do(WIDER), [])


main()
