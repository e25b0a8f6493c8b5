#!/usr/bin/env python3
"""Admin in a browser: version, storage, access, settings, limits, the live log."""
# time limit: 300 s, four browsers look at every view
import json
import os
import signal

from lib import Server, check, equal, main, test
from lib.browser import Browser
from lib.client import Client

TABS = {"": "Storage", "access": "One-time link", "settings": "log_level", "limits": "ANSWER_BLOCKS", "log": "Live, "}


@test("page_admin_shows_the_server_and_its_storage", "")
def overview():
    with Browser() as b, Server() as s:
        b.enter(s)
        b.do("await page.keyboard.press('g'); await page.keyboard.press('d')")
        b.wait(".fact-list dd", s.http.get("/version").json["runtime_id"])
        b.wait(".fact-list dd", "uar " + s.http.get("/version").json["version"])
        b.wait(".fact-list dd", "Fine")
        b.wait(".fact-list dd", s.http.get("/api/admin/storage").json["data_dir"])
        before = s.http.get("/api/admin/storage").json["commits"]
        s.finish(s.create("echo", "one more"))
        check(s.http.get("/api/admin/storage").json["commits"] > before)
        b.click("button", "Read again")
        b.do(f"await page.waitForFunction((n) => [...document.querySelectorAll('dd')].some((d) => parseInt(d.textContent) > n && d.textContent.includes('on average')), {before})")


@test("page_admin_makes_a_link_for_another_device", "")
def access():
    with Browser() as b, Server() as s:
        b.enter(s)
        b.goto(s.url + "/ui/admin?tab=access")
        b.wait(".fact-list dd", "Made by the server")
        b.click("button", "New link")
        link = b.do("return page.getByLabel('One-time link').inputValue()")
        check(link.startswith(s.url + "/#code="), link)
        check(s.token not in b.do("return page.content()"), "the token itself is nowhere on the page")
        with Browser(phone=True) as other:
            other.goto(link)
            other.do("await page.getByRole('heading', {name: 'Home', level: 1}).waitFor()")


@test("page_admin_settings_and_limits_are_found", "")
def settings():
    with Browser() as b, Server(log_level="warn", env={"OPENAI_API_KEY": "canary-of-a-key"}) as s:
        b.enter(s)
        b.goto(s.url + "/ui/admin?tab=settings")
        b.choose("Where it comes from", "flag")
        b.wait(".admin-row", "--log-level")
        b.wait(".admin-row", "warn")
        b.choose("Where it comes from", "environment")
        b.do("await page.getByRole('searchbox').fill('openai_api')")
        b.wait(".admin-row", "set, not shown")
        b.do("await page.waitForURL(/q=openai_api/)")
        check("canary" not in b.do("return page.content()"))
        b.do("await page.reload()")
        b.wait(".admin-row", "openai_api_key")
        equal(b.count(".admin-row"), 1)
        b.goto(s.url + "/ui/admin?tab=limits")
        b.wait(".admin-row", "ANSWER_BLOCKS")
        all_of_them = len(s.http.get("/api/admin/settings").json["limits"])
        check(b.count(".admin-row") < all_of_them / 3, "only what is seen is drawn")
        b.wait(".admin .t3", f"{all_of_them} of {all_of_them}")
        b.do("await page.getByRole('searchbox').fill('LOG_KEPT')")
        b.wait(".admin-row", "1,000")
        b.do("await page.getByRole('searchbox').fill('no such limit')")
        b.wait(".empty", "No limit fits")


@test("page_admin_follows_the_log_live", "")
def log():
    with Browser() as b, Server(log_level="debug") as s:
        b.enter(s)
        b.goto(s.url + "/ui/admin?tab=log")
        first = s.create("echo", "one")
        b.wait(".admin-line", f"run_id={first}")
        b.click("button", "Pause")
        second = s.create("echo", "two")
        b.do("await page.getByRole('button', {name: /Follow \\(\\d+ new\\)/}).waitFor()")
        check(second not in b.do("return page.locator('.admin-log').textContent()"))
        b.do("await page.getByRole('button', {name: /Follow/}).click()")
        b.wait(".admin-line", f"run_id={second}")
        with open(os.path.join(s.data, "config.json"), "w") as f:
            f.write("{broken")
        os.kill(s.proc.pid, signal.SIGHUP)
        b.wait(".admin-line[data-level=error], .admin-line[data-level=warn]", "config.refused")
        b.choose("Level", "warn")
        b.do("await page.waitForFunction(() => [...document.querySelectorAll('.admin-line')].length && [...document.querySelectorAll('.admin-line')].every((l) => l.dataset.level === 'warn' || l.dataset.level === 'error'))")
        b.do("await page.getByRole('searchbox').fill('no such line')")
        b.wait(".empty", "No line fits")
        os.remove(os.path.join(s.data, "config.json"))


@test("page_admin_log_goes_on_after_a_restart", "")
def restart():
    from lib.web import free_port
    with Browser() as b, Server(log_level="debug", listen=f"127.0.0.1:{free_port()}") as s:
        b.enter(s)
        b.goto(s.url + "/ui/admin?tab=log")
        run_id = s.create("echo", "before")
        b.wait(".admin-line", f"run_id={run_id}")
        s.restart()
        run_id = s.create("echo", "after")
        b.wait(".admin-line", f"run_id={run_id}")


@test("page_admin_gives_out_keys_and_takes_them_back", "")
def keys():
    with Browser() as b, Server() as s:
        b.enter(s)
        b.goto(s.url + "/ui/admin?tab=access")
        if s.http.get("/api/admin/credentials").status == 404:  # it has one token only
            b.wait(".fact-list dd", "one token")
            equal(b.do("return page.getByRole('button', {name: 'New key'}).count()"), 0)
            return
        b.wait(".admin .empty", "No key was given out")
        b.click("button", "New key")
        b.do("await page.getByRole('textbox', {name: 'User', exact: true}).fill('alice'); await page.getByRole('textbox', {name: /^Tenant/}).fill('acme'); await page.getByLabel('What it is for').fill('laptop')")
        b.do("await page.getByRole('checkbox', {name: /^answer/}).uncheck()")
        b.looks("admin-new-key", small=False)
        b.click("button", "Make the key")
        b.wait("dialog", "It is shown this once")
        token = b.do("return page.getByLabel('Token', {exact: true}).inputValue()")
        alice = Client(s.url, token)
        equal(alice.get("/api/runs").json["runs"], [])
        equal(alice.get("/api/admin/credentials").status, 403)
        made = s.http.get("/api/admin/credentials").json["credentials"]
        equal([(k["tenant"], k["user"], k["label"], sorted(k["scopes"])) for k in made], [("acme", "alice", "laptop", ["read", "run"])])
        check(made[0]["expires_at"], "30 days, as it was offered")
        b.click("button", "I have it")
        b.wait(".admin-key", "acme/alice")
        check(token not in b.do("return page.content()"), "the secret is nowhere any more")
        b.looks("admin-keys")
        b.click("button", "Revoke the key of acme/alice")
        b.click("button", "Revoke")
        b.wait(".admin-key .badge", "revoked")
        equal(alice.get("/api/runs").status, 401)
        b.click("button", "New key")
        b.do("await page.getByRole('textbox', {name: 'User', exact: true}).fill('a b')")
        b.click("button", "Make the key")
        b.wait("dialog .problem", "user")  # the server's own words


@test("page_admin_on_a_phone_and_in_both_themes", "")
def looks():
    with Server() as s:
        for phone in (True, False):
            with Browser(phone=phone, dark=phone) as b:
                s.link = s.url + "/#code=" + s.http.post("/api/links", {}).json["code"]
                b.enter(s)
                for tab, words in TABS.items():
                    b.goto(f"{s.url}/ui/admin?tab={tab}")
                    b.wait("main", words)
                    b.looks(f"admin-{tab or 'overview'}")


main()
