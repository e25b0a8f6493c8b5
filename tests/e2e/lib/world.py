"""Clients that go on while the server under them is killed, and remember all they were told."""
import http.client
import random
import threading

from lib.check import SAFETY, check, equal
from lib.server import TERMINAL
from lib.sse import Refusal, Stream

GONE = (ConnectionError, http.client.HTTPException, OSError)


class World:
    def __init__(self, server, seed):
        self.server, self.seed = server, seed
        self.changed = threading.Condition()
        self.generation = 0   # of the server; clients that lost it wait for the next
        self.progress = 0     # answers and events that clients got
        self.stopping = False
        self.acked = {}       # run_id: what was asked for
        self.told = {}        # run_id: {event id: its text}
        self.over = {}        # run_id: bytes of its record once it was terminal
        self.faults = []

    # --- between the one who kills and those who are killed under ---

    def moved(self):
        with self.changed:
            self.progress += 1
            self.changed.notify_all()

    def risen(self):
        with self.changed:
            self.generation += 1
            self.changed.notify_all()

    def wait_progress(self, n):
        with self.changed:
            goal = self.progress + n
            good = self.changed.wait_for(lambda: self.progress >= goal or self.faults, SAFETY)
            check(good, "clients make no progress")
        if self.faults:
            raise self.faults[0]

    def lost(self, generation):
        """The server went away under a client: waits until it is back."""
        with self.changed:
            check(self.changed.wait_for(lambda: self.generation > generation, SAFETY),
                  "a connection broke though nobody was killed")

    def ask(self, method, path, body=None):
        while True:
            generation = self.generation
            try:
                a = self.server.http.send(method, path, body)
            except GONE:
                self.lost(generation)
                continue
            if a.status == 401:  # another program has got the port of the dead one
                self.lost(generation)
                continue
            self.moved()
            return a

    # --- what a client does ---

    def create(self, rng, kind, body):
        """Repeats with the same key until it is told a run."""
        body["idempotency_key"] = f"k{rng.getrandbits(64):x}"
        a = self.ask("POST", "/api/runs", body)
        equal(a.status, 202, a.body)
        run_id = a.json["run_id"]
        with self.changed:
            check(run_id not in self.acked, "one run for two keys")
            self.acked[run_id] = {"kind": kind, "canceled": False, **body}
        return run_id

    def follow(self, run_id, limit=None):
        """Reads to the end across every crash. No event twice, none missing, none changed."""
        seen = self.told.setdefault(run_id, {})
        last = 0
        while True:
            generation = self.generation
            try:
                with Stream(self.server.url, f"/api/runs/{run_id}/stream", self.server.token,
                            {"Last-Event-ID": str(last)} if last else None) as stream:
                    for event in stream:
                        check(event.id > last, "came twice", event)
                        equal(seen.setdefault(event.id, event.text), event.text, "changed")
                        last = event.id
                        self.moved()
                        if limit and len(seen) >= limit:
                            return
                    if stream.ended and event_ends(seen[last]):
                        return
            except Refusal as r:
                if r.status not in (0, 401):  # it broke, or another program has its port
                    raise
            except GONE:
                pass
            self.lost(generation)

    def client(self, number, scenario):
        rng = random.Random(f"{self.seed}-{number}")
        try:
            while not self.stopping:
                scenario(self, rng)
        except BaseException as e:  # the one who kills raises it
            with self.changed:
                self.faults.append(e)
                self.changed.notify_all()

    # --- after a restart ---

    def check_record(self, run_id):
        a = self.server.http.get("/api/runs/" + run_id)
        equal(a.status, 200, f"{run_id} was acknowledged and is gone: {a.body}")
        r = a.json
        equal(r["run_id"], run_id)
        equal(r["agent_id"], self.acked[run_id]["agent_id"])
        check(r["status"] in TERMINAL + ("queued", "running", "cancel_requested"), r)
        check((r["status"] in TERMINAL) == (r["finished_at"] is not None), r)
        if run_id in self.over:
            equal(a.body, self.over[run_id], "a terminal record changed")
        elif r["status"] in TERMINAL:
            self.over[run_id] = a.body


def event_ends(text):
    return text.startswith(('{"type":"RunDone"', '{"type":"Error"'))
