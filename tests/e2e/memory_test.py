#!/usr/bin/env python3
"""A server whose address space is limited says when it cannot serve, and comes back."""
import http.client
import re
from concurrent.futures import ThreadPoolExecutor

from lib import Server, check, equal, main, test, wait_until
from lib.check import Skip
from lib.server import TERMINAL, UAR

ROOM_KB = 6000  # beside what an idle server has mapped
ONE_HEAP = {"MALLOC_ARENA_MAX": "1"}  # each thread's own heap would map 64 MB more, now and then
CLIENTS, CREATES = 40, 6000


def mapped_kb(s):
    with open(f"/proc/{s.pid}/status") as f:
        return int(re.search(r"VmSize:\s+(\d+)", f.read())[1])


def sanitized():
    with open(UAR, "rb") as f:
        return re.search(rb"__[at]san_init", f.read())


class Load:
    """Creates runs until a client is told that there is no memory, and a little longer."""

    def __init__(self, s):
        self.s, self.acked, self.refused, self.unready = s, [], 0, None

    def ask_ready(self):
        a = self.s.http.get("/ready")
        if a.status == 503:
            self.unready = a.json

    def create(self, n):
        if self.unready and self.refused > 200:
            return
        try:
            a = self.s.http.post("/api/runs", {"agent_id": "echo", "inputs": {"message": f"{n} " + "x" * 15000}})
            if a.status == 202:
                self.acked.append(a.json["run_id"])
            elif b"out of memory" in a.body:
                self.refused += 1
                self.ask_ready()
        except (OSError, http.client.HTTPException):
            pass  # there was no memory for an answer

    def run(self):
        with ThreadPoolExecutor(CLIENTS) as pool:
            list(pool.map(self.create, range(CREATES)))
        return self


def is_over(s, run_id):
    a = s.http.get("/api/runs/" + run_id)
    return a.status == 200 and a.json["status"] in TERMINAL


def supervise(s, acked):
    """As a supervisor does: one that exits with an error is started again, until it is ready."""
    left = set(acked)

    def settled():
        if s.proc.poll() is not None:
            equal(s.wait(), 1)
            check("server.out_of_memory" in s.log() or "store.broken" in s.log(), s.log()[-2000:])
            s.start()
        try:
            if s.http.get("/ready").status != 200:
                return False
            left.difference_update([r for r in left if is_over(s, r)])
        except (OSError, http.client.HTTPException):
            return False
        return not left
    wait_until(settled, "every run is over and the server is ready")


@test("ready_fails_while_there_is_no_memory_and_every_run_ends", "")
def no_memory():
    if sanitized():
        raise Skip("a sanitizer needs the whole address space")
    with Server(env=ONE_HEAP) as s:
        limit = mapped_kb(s.ready()) + ROOM_KB
    with Server(env=ONE_HEAP, under=["sh", "-c", f'ulimit -v {limit}; exec "$@"', "sh"]) as s:
        load = Load(s).run()
        check(load.refused, "memory was never short", len(load.acked))
        equal(load.unready, {"status": "out of memory"})
        check("memory.short" in s.log(), s.log()[-2000:])
        supervise(s, load.acked)
        equal(s.http.get("/api/runs").status, 200, "what is stored can be read")
        equal(s.finish(s.create("echo", "after"))["status"], "succeeded")


main()
