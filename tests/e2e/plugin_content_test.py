#!/usr/bin/env python3
"""Bytes that are too large for an item: uploaded, stored once, served in whole or in part."""
import hashlib
import http.client
import os

from lib import check, equal, main, refused, test, wait_until
from lib.client import Client
from lib.plugins import Lab
from lib.server import run_uar

BIG = 3 * 1024 * 1024 + 17


def stuff(n, seed=0):
    block = b"".join(hashlib.sha256(b"%d %d" % (seed, i)).digest() for i in range(2048))
    return (block * (n // len(block) + 1))[:n]


def large(s, n=BIG):
    """The items of a run that uploads."""
    r = s.play("large", {"n": n, "file": s.file("report.csv")})
    equal(r["status"], "succeeded", r)
    return s.items(r["run_id"])["items"]


def tmp_files(s):
    return os.listdir(os.path.join(s.data, "blobs", "tmp"))


@test("large_bytes_are_uploaded_and_served", "EXP-05 EXP-11 EXP-21 EXP-01")
def uploads():
    with Lab() as s:
        items = large(s)
        want = [stuff(BIG), ("ä" * 600000).encode(),
                b"".join(stuff(1000, i) for i in range(300)), b"", stuff(BIG)]
        types = ["image/png", "text/plain; charset=utf-8", "text/html", "application/octet-stream",
                 "text/csv"]
        names = ['inline; filename="big_one.bin"', None, 'attachment; filename="x.html"', None,
                 'attachment; filename="report.csv"']
        for item, data, mime, name in zip(items, want, types, names):
            equal((item["type"], item["bytes"], item["sha256"]),
                  ("binary_url", len(data), hashlib.sha256(data).hexdigest()))
            equal(item["binary_url"],
                  f"/runs/{item['run_id']}/export/{item['export_item_id']}/content")
            a = s.http.get(item["binary_url"])
            equal((a.status, a.headers["content-type"], len(a.body)), (200, mime, len(data)))
            check(a.body == data, "other bytes", item)
            equal((a.headers["etag"], a.headers["accept-ranges"]), (f'"{item["sha256"]}"', "bytes"))
            equal(a.headers["x-content-type-options"], "nosniff")
            check("sandbox" in a.headers["content-security-policy"], a.headers)
            check(name is None or a.headers["content-disposition"] == name, a.headers)
        blobs = [f for d, _, names in os.walk(os.path.join(s.data, "blobs")) for f in names]
        equal(len(blobs), 4, "the same bytes are stored once")
        equal(tmp_files(s), [])
        s.restart()
        check(s.http.get(items[0]["binary_url"]).body == want[0], "after a restart")
        run_id = s.begin("large_async", {"n": 70000})
        s.done(run_id)
        item = s.items(run_id)["items"][0]
        check(s.http.get(item["binary_url"]).body == stuff(70000), "from async def")
        artifact = [e for e in s.events(run_id) if e.type == "Artifact"][0].data["data"]["artifact"]
        equal(artifact["content"], item["binary_url"], "the stream names it as well")


@test("ranges_of_content", "EXP-21")
def ranges():
    with Lab() as s:
        item = large(s)[0]
        url, data = item["binary_url"], stuff(BIG)
        tag = f'"{item["sha256"]}"'

        def get(method="GET", **headers):
            return s.http.send(method, url, headers={k.replace("_", "-"): v
                                                     for k, v in headers.items()})
        for text, first, last in (("0-0", 0, 0), ("100-199", 100, 199), ("-5", BIG - 5, BIG - 1),
                                  (f"{BIG - 10}-", BIG - 10, BIG - 1), (f"7-{BIG * 2}", 7, BIG - 1),
                                  ("100000-900000", 100000, 900000)):
            a = get(Range=f"bytes={text}")
            equal((a.status, a.headers["content-range"], a.headers["content-length"]),
                  (206, f"bytes {first}-{last}/{BIG}", str(last - first + 1)), text)
            check(a.body == data[first:last + 1], "other bytes", text)
            equal(a.headers["etag"], tag)
        for text in (f"bytes={BIG}-", "bytes=-0"):
            a = get(Range=text)
            equal((a.status, a.headers["content-range"], a.body), (416, f"bytes */{BIG}", b""))
        for text in ("bytes=5-2", "lines=1-2", "bytes=0-1,4-5", "bytes=x-"):
            a = get(Range=text)
            equal((a.status, len(a.body)), (200, BIG), text)
        equal(get(Range="bytes=0-9", If_Range=tag).status, 206)
        equal(get(Range="bytes=0-9", If_Range='"other"').status, 200, "not those bytes any more")
        a = get(If_None_Match=f'"x", {tag}')
        equal((a.status, a.body, a.headers["etag"]), (304, b"", tag))
        a = get("HEAD")
        equal((a.status, a.headers["content-length"], a.body), (200, str(BIG), b""))
        a = get("HEAD", Range="bytes=1-3")
        equal((a.status, a.headers["content-length"], a.body), (206, "3", b""))


def flip(s, sha256, at):
    with open(os.path.join(s.data, "blobs", sha256[:2], sha256[2:]), "r+b") as f:
        f.seek(at)
        byte = f.read(1)[0]
        f.seek(at)
        f.write(bytes([byte ^ 1]))


def whole(s, url, **headers):
    """All of it, or None when it ended before its end."""
    try:
        return s.http.get(url, headers=headers).body
    except (http.client.IncompleteRead, ConnectionError):
        return None


@test("damaged_bytes_are_never_whole", "EXP-21")
def damaged():
    with Lab() as s:
        item, text = large(s)[:2]
        url, out = item["binary_url"], s.file("out")
        cuts = 0
        for where, at in ((url, 0), (url, BIG // 2),
                          (f"/api/runs/{item['run_id']}/blobs/{item['sha256']}", BIG - 1)):
            flip(s, item["sha256"], at)
            check(whole(s, where) is None, "it came to its end", at)
            check(whole(s, where, Range="bytes=0-") is None, "it came to its end", at)
            tried = run_uar("export", item["run_id"], "1", "-o", out, "--url", s.url,
                            env={"UAR_TOKEN": s.token})
            check(tried.returncode == 1 and not os.path.exists(out), tried)
            cuts += 3
            wait_until(lambda: s.log().count("export.content_cut") == cuts, "the log says so")
            check(whole(s, text["binary_url"]), "others are not harmed")
            flip(s, item["sha256"], at)
            check(whole(s, where) == stuff(BIG), "as it was")


@test("content_is_as_private_as_its_run", "EXP-21")
def private():
    with Lab() as s:
        item = large(s, 70000)[0]
        url = item["binary_url"]
        refused(Client(s.url, "wrong").get(url), 401, "UNAUTHORIZED")
        refused(s.http.get(url, token=False), 401, "UNAUTHORIZED")
        equal(s.http.get(url).status, 200)
        equal(s.http.get(url).status, 200, "found again where it was")
        other = s.play("echo", {"say": 1})["run_id"]
        refused(s.http.get(f"/runs/{other}/export/{item['export_item_id']}/content"), 404,
                "NOT_FOUND")
        refused(s.http.get(f"/runs/{item['run_id']}/export/nothing/content"), 404, "NOT_FOUND")
        refused(s.http.get(f"/runs/nobody/export/{item['export_item_id']}/content"), 404,
                "NOT_FOUND")
        refused(s.http.post(url), 405, "METHOD_NOT_ALLOWED")


@test("every_item_with_bytes_has_content", "EXP-21")
def every_type():
    with Lab() as s:
        run_id = s.begin("items")
        s.done(run_id)
        want = ["text/plain; charset=utf-8", None, None, "application/octet-stream",
                "application/json", "text/plain; charset=utf-8", None, "application/json"]
        for item, mime in zip(s.items(run_id)["items"], want):
            a = s.http.get(f"/runs/{run_id}/export/{item['export_item_id']}/content")
            if mime is None:
                refused(a, 404, "NOT_FOUND")
                continue
            equal((a.status, a.headers["content-type"]), (200, mime))
            equal(hashlib.sha256(a.body).hexdigest(), item["sha256"])
            equal(len(a.body), item["bytes"])


@test("wrong_uploads_are_refused_and_forgotten", "EXP-21 EXP-20")
def wrong():
    with Lab() as s:
        run_id = s.begin("bad_uploads")
        equal(s.done(run_id)["status"], "succeeded")
        items = s.items(run_id)["items"]
        bad = "INVALID_ARGUMENT"
        equal(items[-1]["json"], [bad, bad, "PAYLOAD_TOO_LARGE", {}, bad, bad, bad, bad, bad]
              + [{}] * 8 + ["RATE_LIMITED", {}, {}])
        for why in ("the next offset of this upload is 0, not 5", "the next offset of this upload is 3, not 4",
                    "no upload has the name b", "the upload has 3 bytes, not 4",
                    "the bytes that arrived have another sha256", "a run has at most 8 open uploads"):
            check(why in items[1]["json"], why, items[1]["json"])
        equal(s.http.get(items[0]["binary_url"]).body, b"abcdef")
        wait_until(lambda: not tmp_files(s), "they are gone with the run")
        run_id = s.begin("never_finished", {"file": s.file("never")})
        s.until(run_id, lambda r: r["progress"] == 0.5)
        equal(len(tmp_files(s)), 1)
        s.stop_run(run_id)
        s.done(run_id)
        wait_until(lambda: not tmp_files(s), "the upload is dropped")
        run_id = s.begin("never_finished", {"file": s.file("never")})
        s.until(run_id, lambda r: r["progress"] == 0.5)
        s.restart()
        equal(tmp_files(s), [], "swept at the start")


@test("a_kill_while_uploading_loses_nothing_that_was_told", "EXP-06 EXP-21")
def killed():
    with Lab() as s:
        for _ in range(4):
            run_id = s.begin("large", {"n": BIG, "file": s.file("f"), "mark": s.file("mark")})
            wait_until(lambda: run_id in s.marks(), "it has begun")
            told = s.items(run_id)["items"]
            s.restart()
            for item in told + s.items(run_id)["items"]:
                a = s.http.get(item["binary_url"])
                equal((a.status, hashlib.sha256(a.body).hexdigest()), (200, item["sha256"]))
            r = s.done(run_id)
            equal(r["status"], "succeeded", r)
            for item in s.items(run_id)["items"][:-1]:
                equal(s.http.get(item["binary_url"]).status, 200)


main()
