#!/usr/bin/env python3
"""The first hour with the page: the same address after a restart, a second tab, a start from Home, files beside a message."""
import json
import os
import socket

from lib import Server, check, equal, main, test
from lib.browser import Browser
from lib.web import free_port

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII="


@test("a_data_directory_keeps_its_port", "")
def keeps_port():
    with Server(start=False) as s:
        os.makedirs(s.data)
        with open(os.path.join(s.data, "port"), "w") as f:  # nobody else gets this one after a kill
            f.write(str(free_port()))
        first = s.start().url
        s.restart()
        equal(s.url, first, "after a kill")
        s.stop()
        s.start()
        equal(s.url, first, "after an orderly end")
        s.kill()
        with socket.socket() as other:
            other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            other.bind(("127.0.0.1", int(first.rsplit(":", 1)[1])))
            other.listen()
            s.start()
            check(s.url != first, "somebody else has it")
        second = s.url
        s.restart()
        equal(s.url, second, "the last one counts")
        s.kill()
        for wrong in ("", "0", "65536", "x", "9" * 40):
            with open(os.path.join(s.data, "port"), "w") as f:
                f.write(wrong)
            s.start()
            s.kill()
        s.start()


@test("page_a_second_tab_needs_no_link", "")
def second_tab():
    with Server() as s, Browser() as b:
        b.enter(s)
        b.do(f"globalThis.other = await page.context().newPage(); await other.goto({json.dumps(s.url + '/ui/runs')})")
        b.do("await other.getByRole('heading', {name: 'Runs', level: 1}).waitFor()")
        equal(b.do("return other.evaluate(() => [document.cookie, localStorage.getItem('uar.token')])"), ["", None])
        check("code=" not in b.do("return other.url()"))
        # who has no tab of this browser gets nothing
        b.do(f"""const apart = await page.context().browser().newContext(); globalThis.alone = await apart.newPage();
                 await alone.goto({json.dumps(s.url + '/ui/runs')}); await alone.getByRole('heading', {{name: 'Sign in'}}).waitFor()""")
        b.do("await alone.context().close(); await other.close()")


@test("page_home_starts_a_conversation", "")
def start():
    with Server() as s, Browser() as b:
        b.enter(s)
        b.choose("Agent", "echo")
        b.do("await page.locator('#start-message').fill('from the first screen'); await page.locator('#start-message').press('Enter')")
        b.ended(1)
        check(any("from the first screen" in t for t in b.texts(".blocks")), b.texts(".blocks"))
        b.do("await page.waitForURL(/ui\\/c\\/[^?]+/)")


@test("page_sends_images_and_documents", "")
def attach():
    with Server() as s, Browser() as b:
        b.chat(s)
        b.choose("Agent", "demo")
        b.do(f"""await page.locator('input[type=file]').setInputFiles([
            {{name: 'dot.png', mimeType: 'image/png', buffer: Buffer.from('{PNG}', 'base64')}},
            {{name: 'paper.pdf', mimeType: 'application/pdf', buffer: Buffer.from('%PDF-1.4')}},
            {{name: 'notes.txt', mimeType: 'text/plain', buffer: Buffer.from('plain words')}}])""")
        b.wait(".attached li:nth-child(3)")
        equal(b.texts(".attached li .strong"), ["dot.png", "paper.pdf", "notes.txt"])
        b.click("button", "Preview of dot.png")
        b.do("await page.waitForFunction(() => document.querySelector('dialog img')?.naturalWidth > 0)")
        b.looks("attached", small=False)
        b.do("await page.keyboard.press('Escape')")
        b.click("button", "Preview of notes.txt")
        b.wait("dialog pre", "plain words")
        b.do("await page.keyboard.press('Escape')")
        b.do("globalThis.sent = page.waitForRequest((r) => r.method() === 'POST' && r.url().endsWith('/api/runs'))")
        b.do("await page.locator('#message').fill('look at these'); await page.locator('#message').press('Enter')")
        body = json.loads(b.do("return (await sent).postData()"))
        equal([(a["type"], a["media_type"], a["name"]) for a in body["inputs"]["attachments"]],
              [("image", "image/png", "dot.png"), ("file", "application/pdf", "paper.pdf")])
        check("plain words" in body["inputs"]["message"])
        b.ended(1)
        equal(b.texts(".mine .sent-file"), ["dot.png", "paper.pdf"])
        b.do("await page.reload()")
        b.ended(1)
        b.wait(".mine .sent-file", "paper.pdf")
        for event, selector in (("drop", ".thread"), ("drop", ".composer"), ("paste", "#message")):  # anywhere in the conversation
            b.do(f"""await page.evaluate(([event, selector]) => {{
                const data = new DataTransfer();
                data.items.add(new File(['by ' + event + selector], 'by.txt', {{type: 'text/plain'}}));
                document.querySelector(selector).dispatchEvent(event === 'paste' ? new ClipboardEvent('paste', {{bubbles: true, cancelable: true, clipboardData: data}})
                    : new DragEvent('drop', {{bubbles: true, cancelable: true, dataTransfer: data}}));
            }}, ['{event}', '{selector}'])""")
        b.do("await page.locator('.attached li').nth(2).waitFor()")
        equal(b.count(".attached li"), 3)


if __name__ == "__main__":
    main()
