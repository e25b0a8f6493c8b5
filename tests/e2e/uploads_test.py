#!/usr/bin/env python3
"""Uploads over HTTP: a place, its bytes, an item; cut off, repeated, forbidden, swept."""
import hashlib
import itertools
import json
import os

from lib import all_of, check, equal, main, refused, test, wait_until
from lib.client import Client, connect, host_of
from lib.disk import SmallDisk
from lib.plugins import Lab

BIG = 3 * 1024 * 1024 + 17
MOST = 256 * 1024 * 1024


def stuff(n, seed=0):
    block = b"".join(hashlib.sha256(b"%d %d" % (seed, i)).digest() for i in range(2048))
    return (block * (n // len(block) + 1))[:n]


def sha256(data):
    return hashlib.sha256(data).hexdigest()


class Courier:
    """A run that exports what it is told to, until it is let go."""

    count = itertools.count()

    def __init__(self, s, entry="courier"):
        self.s, self.fifo = s, None
        self.run_id = s.begin(entry, {"orders": s.file(f"orders{next(self.count)}")})
        self.meet()

    def meet(self):
        """Waits for a handler that it has not seen before: at first, and after a restart."""
        known = (None, self.fifo)
        self.fifo = self.s.until(self.run_id, lambda r: r["message"] not in known)["message"]
        self.orders = open(self.fifo, "w")

    def place(self, **body):
        a = self.s.http.post(f"/runs/{self.run_id}/uploads", body)
        equal(a.status, 201, a.body)
        equal(a.json["blob_url"], f"/runs/{self.run_id}/blobs/{a.json['blob_id']}")
        check(a.json["upload_url"].startswith(f"/uploads/{a.json['upload_id']}"), a.json)
        return a.json

    def export(self, url, **more):
        self.orders.write(json.dumps({"url": url, **more}) + "\n")
        self.orders.flush()

    def end(self):
        self.orders.close()
        return self.s.done(self.run_id)


def put(s, place, data, http=None, **more):
    headers = {"Content-Type": "application/octet-stream", **more.pop("headers", {})}
    return (http or s.http).send("PUT", place["upload_url"], data, headers=headers, **more)


def stored(answer, data, place):
    equal(answer.status, 200, answer.body)
    equal(answer.json, {"blob_id": place["blob_id"], "blob_url": place["blob_url"],
                        "bytes": len(data), "sha256": sha256(data)})


def raw_put(s, place, fields, body=b""):
    """A connection that has said a head and some bytes."""
    c = connect(s.url)
    head = f"PUT {place['upload_url']} HTTP/1.1\r\nHost: {host_of(s.url)}\r\n{fields}\r\n\r\n"
    c.sendall(head.encode() + body)
    return c


def status_of(c):
    """The next status that comes; the rest is read until the server closes or says no more."""
    text = b""
    while b"\r\n\r\n" not in text:
        more = c.recv(65536)
        if not more:
            break
        text += more
    return int(text.split()[1]), text


def in_stage(s):
    return [f for _, _, names in os.walk(os.path.join(s.data, "blobs", "up")) for f in names]


def in_tmp(s):
    return os.listdir(os.path.join(s.data, "blobs", "tmp"))


@test("an_upload_becomes_an_item_and_is_served", "EXP-21 EXP-11 EXP-05")
def whole():
    with Lab() as s:
        c, data = Courier(s), stuff(BIG)
        place = c.place()
        refused(s.http.get(place["blob_url"]), 404, "NOT_FOUND")
        stored(put(s, place, data), data, place)
        equal((len(in_stage(s)), in_tmp(s)), (1, []))
        a = s.http.get(place["blob_url"])
        equal((a.status, len(a.body), a.headers["content-type"]),
              (200, BIG, "application/octet-stream"))
        check(a.body == data, "other bytes")
        equal((a.headers["etag"], a.headers["x-content-type-options"]),
              (f'"{sha256(data)}"', "nosniff"))
        check("attachment" in a.headers["content-disposition"], a.headers)
        check("sandbox" in a.headers["content-security-policy"], a.headers)
        a = s.http.get(place["blob_url"], headers={"Range": "bytes=100000-900000"})
        equal((a.status, a.headers["content-range"]), (206, f"bytes 100000-900000/{BIG}"))
        check(a.body == data[100000:900001], "other bytes")
        equal(s.http.send("HEAD", place["blob_url"]).headers["content-length"], str(BIG))
        # a turn may name it as well, by its place
        said = {"agent_id": "echo", "input": [{"type": "file", "ref": place["blob_url"], "name": "x.png"}]}
        equal(s.http.post("/api/control/submit_turn", said).status, 200)
        said["input"][0]["ref"] = place["blob_url"][:-1] + ("0" if place["blob_url"][-1] != "0" else "1")
        refused(s.http.post("/api/control/submit_turn", said), 400, "VALIDATION_ERROR", "/input/0/ref")
        c.export(place["blob_url"], description="large", mime="image/png", label="x.png")
        c.export("https://proxy.example/uar" + place["blob_url"] + "?run_token=1.x#y")
        for wrong in ("/", "x", "/../" + place["blob_id"]):
            c.export(place["blob_url"] + wrong)
        c.export(f"/runs/{c.run_id}/blobs/")
        equal(c.end()["status"], "succeeded")
        items = s.items(c.run_id)["items"]
        for said in items[2:]:
            equal(said["text"].split(":")[0], "INVALID_ARGUMENT", said)
        equal(len(items), 6)
        items = items[:2]
        for item in items:
            equal((item["type"], item["bytes"], item["sha256"]), ("binary_url", BIG, sha256(data)))
            equal(item["binary_url"],
                  f"/runs/{c.run_id}/export/{item['export_item_id']}/content")
        equal((items[0]["label"], items[0]["description"]), ("x.png", "large"))
        wait_until(lambda: not in_stage(s), "the run is over, its blob stays")
        for _ in range(2):
            for url in (items[0]["binary_url"], items[1]["binary_url"], place["blob_url"]):
                a = s.http.get(url)
                equal((a.status, len(a.body)), (200, BIG), url)
                check(a.body == data, "other bytes", url)
            equal(s.http.get(place["blob_url"]).headers["content-type"], "image/png")
            s.restart()


@test("bodies_come_with_a_length_or_in_chunks", "EXP-21")
def framing():
    with Lab() as s:
        c = Courier(s)
        for n in (0, 1, 262144, 262145, 1000003):
            data, place = stuff(n), c.place()
            chunks = b"".join(b"%x\r\n%s\r\n" % (len(p), p) for p in
                              (data[i:i + 70001] for i in range(0, n, 70001))) + b"0\r\n\r\n"
            with raw_put(s, place, "Transfer-Encoding: chunked", chunks) as conn:
                equal(status_of(conn)[0], 200)
            check(s.http.get(place["blob_url"]).body == data, "other bytes", n)
            place = c.place()
            stored(put(s, place, data), data, place)
            check(s.http.get(place["blob_url"]).body == data, "other bytes", n)
        place = c.place()
        with raw_put(s, place, "X-Length: none") as conn:
            equal(status_of(conn)[0], 400, "a forgotten body is not an empty one")
        with raw_put(s, place, "Content-Length: 5\r\nExpect: 100-continue") as conn:
            equal(status_of(conn)[0], 100)
            conn.sendall(b"helloGET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
            status, text = status_of(conn)
            equal(status, 200)
            while b"/1.1 200 OK" not in text.split(b"\r\n\r\n", 1)[1]:
                text += conn.recv(65536)  # the request behind the body is answered, too
        equal(s.http.get(place["blob_url"]).body, b"hello")
        c.end()


def peak(s):
    """The most memory that the server has had since it was asked for the last time, in bytes."""
    with open(f"/proc/{s.proc.pid}/status") as f:
        rss = [int(x.split()[1]) for x in f if x.startswith("VmHWM:")][0] * 1024
    with open(f"/proc/{s.proc.pid}/clear_refs", "w") as f:
        f.write("5")
    return rss


# A sanitizer keeps freed memory for a while; as little of it as it takes.
FEW = {"ASAN_OPTIONS": "quarantine_size_mb=1:thread_local_quarantine_size_kb=64:malloc_context_size=0"}


@test("an_output_of_a_gibibyte_takes_no_memory", "EXP-21 EXP-11")
def gibibyte():
    size, block = 1 << 30, bytearray(1 << 20)
    with Lab(env=FEW) as s:
        c = Courier(s)
        place = c.place(bytes=size)
        peak(s)
        before = peak(s)
        hashed = hashlib.sha256()
        with raw_put(s, place, f"Content-Length: {size}") as conn:
            for i in range(size // len(block)):
                block[:8] = i.to_bytes(8, "big")
                conn.sendall(block)
                hashed.update(block)
            equal(status_of(conn)[0], 200)
        c.export(place["blob_url"], mime="application/octet-stream")
        equal(c.end()["status"], "succeeded")
        item = s.items(c.run_id)["items"][0]
        equal((item["bytes"], item["sha256"]), (size, hashed.hexdigest()))
        with connect(s.url) as conn:
            conn.sendall(f"GET {item['binary_url']} HTTP/1.0\r\nHost: {host_of(s.url)}\r\n"
                         f"Authorization: Bearer {s.token}\r\n\r\n".encode())
            back = status_of(conn)[1].split(b"\r\n\r\n", 1)[1]
            got, read = len(back), hashlib.sha256(back)
            while more := conn.recv(1 << 20):
                got += len(more)
                read.update(more)
        equal((got, read.hexdigest()), (size, hashed.hexdigest()))
        grown = peak(s) - before
        check(grown < 24 << 20, f"{grown} bytes more than {before}")
        wait_until(lambda: not in_tmp(s) and not in_stage(s))


@test("a_plugin_writes_a_gibibyte_and_takes_no_memory", "EXP-11")
def poured():
    mib = 1024
    with Lab(env=FEW) as s:
        s.play("pours", {"mib": 2})
        peak(s)
        before = peak(s)
        r = s.play("pours", {"mib": mib})
        grown = peak(s) - before
        check(grown < 24 << 20, f"{grown} bytes more than {before}")
        item, own = s.items(r["run_id"])["items"]
        equal((r["status"], item["type"], item["bytes"]), ("succeeded", "binary_url", mib << 20), r)
        check(own["json"] < 24 << 10, "KiB more in the plugin", own["json"])
        for i in (0, 255, 256, mib - 1):  # each part is where it belongs
            a = s.http.get(item["binary_url"], headers={"Range": f"bytes={i << 20}-{(i << 20) + 15}"})
            equal((a.status, a.body), (206, i.to_bytes(8, "big") + bytes(8)))
        wait_until(lambda: not in_tmp(s) and not in_stage(s))


@test("outputs_may_be_bounded", "EXP-21")
def bounded():
    with Lab() as s:  # 4 GiB unless somebody says otherwise
        c = Courier(s)
        c.place(bytes=4 << 30)
        refused(s.http.post(f"/runs/{c.run_id}/uploads", {"bytes": (4 << 30) + 1}), 413, "PAYLOAD_TOO_LARGE", "/bytes")
        c.end()
    with Lab(output_max_bytes=1 << 20) as s:
        for pieces, sizes in ((4, [1 << 20]), (5, [5])):  # of the second what it exports after the refusal
            r = s.play("fills", {"pieces": pieces})
            equal([i["bytes"] for i in s.items(r["run_id"])["items"] if i["type"] == "binary_url"], sizes, r)
        c = Courier(s)
        refused(s.http.post(f"/runs/{c.run_id}/uploads", {"bytes": (1 << 20) + 1}), 413, "PAYLOAD_TOO_LARGE", "/bytes")
        refused(put(s, c.place(), bytes((1 << 20) + 1)), 413, "PAYLOAD_TOO_LARGE")
        c.end()


@test("what_was_announced_must_come", "EXP-21 EXP-20")
def announced():
    with Lab(output_max_bytes=MOST) as s:
        c, data = Courier(s), stuff(5000)
        place = c.place(bytes=5000, sha256=sha256(data))
        refused(put(s, place, data[:-1]), 400, "VALIDATION_ERROR")
        refused(put(s, place, stuff(5000, 1)), 400, "VALIDATION_ERROR")
        for body in (b"1387\r\n" + data[:-1] + b"\r\n0\r\n\r\n", b"1389\r\n" + data + b"x\r\n0\r\n\r\n"):
            with raw_put(s, place, "Transfer-Encoding: chunked", body) as conn:
                equal(status_of(conn)[0], 400)
        refused(s.http.get(place["blob_url"]), 404, "NOT_FOUND")
        stored(put(s, place, data), data, place)
        place = c.place(bytes=0)
        stored(put(s, place, b""), b"", place)
        url = f"/runs/{c.run_id}/uploads"
        refused(s.http.post(url, {"bytes": -1}), 400, "VALIDATION_ERROR", "/bytes")
        refused(s.http.post(url, {"bytes": MOST + 1}), 413, "PAYLOAD_TOO_LARGE", "/bytes")
        refused(s.http.post(url, {"sha256": "AB" * 32}), 400, "VALIDATION_ERROR", "/sha256")
        refused(s.http.post(url, {"size": 1}), 400, "VALIDATION_ERROR")
        place = c.place()
        for fields, body in ((f"Content-Length: {MOST + 1}", b""),
                             ("Transfer-Encoding: chunked", b"10000001\r\n")):
            with raw_put(s, place, fields, body) as conn:
                equal(status_of(conn)[0], 413, fields)
        equal(c.end()["status"], "succeeded")
        wait_until(lambda: not in_tmp(s) and not in_stage(s))


@test("the_same_bytes_may_come_again", "EXP-21")
def again():
    with Lab() as s:
        c, data = Courier(s), stuff(BIG)
        place = c.place()
        for _ in range(2):
            stored(put(s, place, data), data, place)
        refused(put(s, place, data[1:]), 409, "CONFLICT")
        refused(put(s, place, b""), 409, "CONFLICT")
        check(s.http.get(place["blob_url"]).body == data, "other bytes")
        c.export(place["blob_url"])
        place = c.place()
        for a in all_of([lambda: put(s, place, data) for _ in range(4)]):
            stored(a, data, place)
        place = c.place()
        answers = all_of([lambda i=i: put(s, place, stuff(BIG, i)) for i in range(4)])
        equal(sorted(a.status for a in answers), [200, 409, 409, 409])
        won = [i for i, a in enumerate(answers) if a.status == 200][0]
        check(s.http.get(place["blob_url"]).body == stuff(BIG, won), "not the first one's bytes")
        c.end()
        equal(len(s.items(c.run_id)["items"]), 1)
        wait_until(lambda: not in_tmp(s) and not in_stage(s))


@test("an_upload_that_is_cut_off_leaves_nothing_and_may_be_repeated", "EXP-21")
def cut():
    with Lab() as s:
        c, data = Courier(s), stuff(BIG)
        place = c.place()
        for part in (data[:1000], data[:BIG - 1]):
            with raw_put(s, place, f"Content-Length: {BIG}", part):
                pass
            wait_until(lambda: not in_tmp(s), "it is gone with its sender")
        refused(s.http.get(place["blob_url"]), 404, "NOT_FOUND")
        stored(put(s, place, data), data, place)
        c.end()


@test("an_upload_outlives_a_kill_between_its_steps", "EXP-21")
def killed():
    with Lab() as s:
        c, data = Courier(s), stuff(BIG)
        place = c.place(bytes=BIG, sha256=sha256(data))
        half = raw_put(s, place, f"Content-Length: {BIG}", data[:1000000])
        wait_until(lambda: in_tmp(s), "it has begun")
        s.restart()
        half.close()
        equal(in_tmp(s), [], "swept at the start")
        c.meet()
        stored(put(s, place, data), data, place)
        s.restart()
        c.meet()
        check(s.http.get(place["blob_url"]).body == data, "other bytes")
        c.export(place["blob_url"])
        equal(c.end()["status"], "succeeded")
        check(s.http.get(s.items(c.run_id)["items"][0]["binary_url"]).body == data, "other bytes")
        # A run that does not go on after a restart takes its uploads with it.
        c = Courier(s, "courier_once")
        place = c.place()
        stored(put(s, place, data), data, place)
        equal(len(in_stage(s)), 1)
        s.restart()
        equal(s.done(c.run_id)["status"], "failed")
        wait_until(lambda: not in_stage(s), "swept with its run")
        refused(s.http.get(place["blob_url"]), 404, "NOT_FOUND")


@test("who_may_upload", "EXP-21 EXP-20")
def rights():
    with Lab() as s:
        c, other = Courier(s), Courier(s)
        url, place, foreign = f"/runs/{c.run_id}/uploads", c.place(), other.place()
        bare, token = place["upload_url"].split("?upload_token=")
        stranger = Client(s.url, "wrong")
        refused(stranger.post(url), 401, "UNAUTHORIZED")
        refused(stranger.send("PUT", bare, b"x"), 401, "UNAUTHORIZED")
        refused(s.http.send("PUT", bare, b"x", token=False), 401, "UNAUTHORIZED")
        wrong = foreign["upload_url"].split("?")[0] + "?upload_token=" + token
        refused(s.http.send("PUT", wrong, b"x", token=False), 401, "UNAUTHORIZED")
        refused(s.http.send("PUT", bare + "?upload_token=2" + token[1:], b"x", token=False), 401,
                "UNAUTHORIZED")
        run_token = s.post_run("echo", {"say": 1}).json["run_token"]
        refused(s.http.send("PUT", f"{bare}?run_token={run_token}", b"x", token=False), 401,
                "UNAUTHORIZED")
        refused(s.http.get(f"{place['blob_url']}?run_token={run_token}", token=False), 401,
                "UNAUTHORIZED")
        upload_id = place["upload_id"]
        other_end = upload_id[:-1] + ("A" if upload_id[-1] == "-" else "-")
        for bad in ("nothing", c.run_id, upload_id[:-1], upload_id + "A", other_end,
                    other.run_id + upload_id[36:], upload_id[:40] + "AAAA" + upload_id[44:],
                    "." + upload_id, "a" * 128):
            refused(s.http.send("PUT", "/uploads/" + bad, b"x"), 404, "NOT_FOUND")
        refused(s.http.post("/runs/nobody/uploads"), 404, "NOT_FOUND")
        refused(s.http.get("/uploads/" + upload_id), 405, "METHOD_NOT_ALLOWED")
        # The token in the address is enough for the one upload it belongs to.
        stored(put(s, place, b"hello", token=False), b"hello", place)
        stored(s.http.send("PUT", bare, b"hello"), b"hello", place)
        refused(s.http.get(place["blob_url"], token=False), 401, "UNAUTHORIZED")
        refused(s.http.get(f"/runs/{other.run_id}/blobs/{place['blob_id']}"), 404, "NOT_FOUND")
        refused(s.http.get(f"/runs/{c.run_id}/blobs/..%2f..%2fx"), 404, "NOT_FOUND")
        # Of another run it is an address like any other; of this one it must be there.
        other.export(place["blob_url"])
        other.export(foreign["blob_url"])
        other.end()
        items = s.items(other.run_id)["items"]
        equal((items[0]["binary_url"], items[1]["text"].split(":")[0]),
              (place["blob_url"], "INVALID_ARGUMENT"))
        refused(s.http.get(f"/runs/{other.run_id}/export/{items[0]['export_item_id']}/content"),
                404, "NOT_FOUND")
        c.end()


@test("only_a_run_at_work_takes_uploads", "EXP-21")
def states():
    with Lab() as s:
        c, data = Courier(s), stuff(100000)
        place, late, unwanted = c.place(), c.place(), c.place()
        stored(put(s, unwanted, data), data, unwanted)
        equal(s.stop_run(c.run_id)["status"], "cancel_requested")
        stored(put(s, place, data), data, place)
        c.export(place["blob_url"])
        check(c.end()["status"] in ("canceled", "succeeded"), s.get(c.run_id))
        refused(s.http.post(f"/runs/{c.run_id}/uploads"), 409, "CONFLICT")
        refused(put(s, late, data), 409, "CONFLICT")
        refused(put(s, place, data), 409, "CONFLICT")
        wait_until(lambda: not in_stage(s), "what nobody wanted is swept")
        refused(s.http.get(unwanted["blob_url"]), 404, "NOT_FOUND")
        check(s.http.get(place["blob_url"]).body == data, "other bytes")
        blobs = [f for d, _, names in os.walk(os.path.join(s.data, "blobs")) for f in names]
        equal(len(blobs), 1)
        couriers = [Courier(s) for _ in range(16)]  # as many as there are places
        queued = s.begin("courier", {"orders": s.file("never")})
        refused(s.http.post(f"/runs/{queued}/uploads"), 409, "CONFLICT")
        s.stop_run(queued)
        for c in couriers:
            c.end()


@test("a_reader_goes_on_when_the_run_ends", "EXP-21")
def slow_reader():
    with Lab() as s:
        c, data = Courier(s), stuff(12 * 1024 * 1024)
        place = c.place()
        stored(put(s, place, data), data, place)
        with connect(s.url) as conn:
            conn.sendall(f"GET {place['blob_url']} HTTP/1.1\r\nHost: {host_of(s.url)}\r\n"
                         f"Authorization: Bearer {s.token}\r\nConnection: close\r\n\r\n".encode())
            status, text = status_of(conn)
            equal(status, 200)
            c.export(place["blob_url"])
            c.end()
            wait_until(lambda: not in_stage(s), "it is a blob alone")
            while more := conn.recv(1 << 20):
                text += more
        check(text.split(b"\r\n\r\n", 1)[1] == data, "other bytes")


@test("an_upload_that_meets_a_full_disk_may_come_again", "EXP-21 ERR-08")
def full():
    with SmallDisk("24m") as disk, Lab(data=os.path.join(disk.path, "data")) as s:
        c, data = Courier(s), stuff(700000)  # what is thrown away after a refusal is more
        place = c.place()
        disk.fill()
        refused(put(s, place, data), 507, "STORAGE_FULL")
        equal(in_tmp(s), [])
        disk.free()
        stored(put(s, place, data), data, place)
        c.export(place["blob_url"])
        equal(c.end()["status"], "succeeded")
        check(s.http.get(place["blob_url"]).body == data, "other bytes")


main()
