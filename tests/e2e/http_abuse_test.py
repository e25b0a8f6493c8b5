#!/usr/bin/env python3
"""Requests that two readers might frame differently, at the real door. The large corpus is a unit
test (src/http/abuse_test.c); here the whole program must refuse, and serve the next client."""
import contextlib
import re

from lib import Server, all_of, check, connect, equal, main, send_raw, test, wait_until
from lib.client import host_of

BODY = b'{"agent_id":"echo","inputs":{"message":"x"}}'


def head(s, *fields, line=b"POST /api/runs HTTP/1.1", host=True):
    out = [line] + ([b"Host: " + host_of(s.url).encode()] if host else [])
    out += [b"Authorization: Bearer " + s.token.encode(), b"Content-Type: application/json"]
    return b"\r\n".join(out + list(fields)) + b"\r\n\r\n"


def status(answer):
    return int(answer.split(b" ", 2)[1]) if answer.startswith(b"HTTP/1.1 ") else 0


@test("what_can_be_read_in_two_ways_is_refused", "")
def smuggling():
    with Server() as s:
        n = str(len(BODY)).encode()
        hidden = b"GET /api/runs HTTP/1.1\r\nHost: x\r\n\r\n"
        chunked = b"%x\r\n%s\r\n0\r\n\r\n" % (len(BODY), BODY)
        cl, te = b"Content-Length: " + n, b"Transfer-Encoding: chunked"
        cases = [
            (head(s, cl, te) + chunked, 400), (head(s, cl, cl) + BODY, 400),
            (head(s, b"Content-Length: +" + n) + BODY, 400),
            (head(s, b"Content-Length: 0x2c") + BODY, 400),
            (head(s, b"Content-Length: " + n + b", " + n) + BODY, 400),
            (head(s, b"Content-Length : " + n) + BODY, 400),
            (head(s, b"Content-Length: -1") + BODY, 400),
            (head(s, b"Transfer-Encoding: gzip, chunked") + chunked, 501),
            (head(s, b"Transfer-Encoding: xchunked") + chunked, 501),
            (head(s, te, te) + chunked, 400),
            (head(s, b"Transfer-Encoding:\x0bchunked") + chunked, 400),
            (head(s, b"X: a\r\n b", cl) + BODY, 400), (head(s, b"X: a\nY: b", cl) + BODY, 400),
            (head(s, b"X: a\rY: b", cl) + BODY, 400), (head(s, b"X: a\x00b", cl) + BODY, 400),
            (head(s, cl, host=False) + BODY, 400),
            (head(s, b"Host: localhost", cl) + BODY, 400),
            (head(s, b"Authorization: Bearer x", cl) + BODY, 400),
            (head(s, te) + b"1;x=\"\r\n\r\n" + chunked, 400),
            (head(s, te) + b"2c \r\n" + BODY + b"\r\n0\r\n\r\n", 400),
            (head(s, te) + b"fffffffffffffffff\r\n", 400),
            (head(s, cl, line=b"POST  /api/runs HTTP/1.1") + BODY, 400),
            (head(s, cl, line=b"POST http://evil.example/api/runs HTTP/1.1") + BODY, 400),
            (head(s, cl, line=b"POST /api/runs HTTP/2.0") + BODY, 505),
            (head(s, cl, line=b"BREW /api/runs HTTP/1.1") + BODY, 501),
            (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505), (b"\r\n" + head(s, cl) + BODY, 400),
            (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),
            (head(s, b"X: " + b"a" * 20000), 431), (head(s, *[b"X: a"] * 200), 431),
            (head(s, line=b"GET /" + b"a" * 9000 + b" HTTP/1.1"), 414),
            (head(s, b"Content-Length: 999999999"), 413), (head(s, b"Expect: 200-maybe", cl), 417),
        ]
        for data, want in cases:
            answer = send_raw(s.url, data + hidden)
            equal(status(answer), want, data[:200])
            equal(len(re.findall(rb"(?m)^HTTP/1.1 \d", answer)), 1, f"served twice: {data[:200]}")
        equal(s.http.get("/api/runs").json["runs"], [], "a refused request made a run")
        equal(s.finish(s.create("echo", "still fine"))["status"], "succeeded")


@test("pipelined_and_cut_requests_are_taken_as_they_are", "")
def pipelining():
    with Server() as s:
        one = head(s, b"Content-Length: %d" % len(BODY)) + BODY
        get = head(s, line=b"GET /api/runs HTTP/1.1")
        with connect(s.url) as sock:
            sock.sendall(one * 5 + get)
            data = b""
            while data.count(b"HTTP/1.1 ") < 6 or not data.rstrip().endswith(b"}"):
                data += sock.recv(65536)
            equal((data.count(b" 202 "), data.count(b" 200 ")), (5, 1))
        for cut in range(0, len(one), 7):
            with connect(s.url) as sock:
                sock.sendall(one[:cut])
        equal(len(s.http.get("/api/runs").json["runs"]), 5, "half a request made a run")
        with connect(s.url) as sock:
            for i in range(len(one)):
                sock.sendall(one[i:i + 1])
            check(b" 202 " in sock.recv(65536))


@test("slow_and_silent_clients_hold_nobody_up", "")
def slowloris():
    with Server(head_timeout_seconds="3s", max_connections=200) as s:
        idle = [connect(s.url) for _ in range(100)]
        for sock in idle[:50]:
            sock.sendall(b"GET /health HTTP/1.1\r\nHo")

        def health():
            """Nothing for a thread that was too slow itself between connecting and asking."""
            with contextlib.suppress(ConnectionError):
                told = s.http.get("/health").status
                return told != 408 and told
        equal(all_of([lambda: wait_until(health, "an answer")] * 16), [200] * 16)
        for sock in idle:  # each is closed by the server, the half-told ones with a word
            told = b""
            try:
                while chunk := sock.recv(4096):
                    told += chunk
            except ConnectionError:
                pass
            check(status(told) in (0, 408), told)
            sock.close()
        wait_until(lambda: s.metric("uar_http_connections") == 1, "the others are forgotten")


@test("too_many_connections_are_told_so", "")
def crowd():
    with Server(max_connections=8) as s:
        held = [connect(s.url) for _ in range(8)]
        for sock in held:
            sock.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
            check(b" 200 " in sock.recv(4096))
        extra = send_raw(s.url, b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        equal(status(extra), 503, extra)
        for sock in held:
            sock.close()

        def admitted():
            try:
                return s.http.get("/health").status == 200
            except (ConnectionError, OSError):
                return False
        wait_until(admitted, "room again")


main()
