"""What a store costs as it grows: parked runs, events, one long session, tasks. Each is measured at a tenth and at the
whole of its size. bench/run gives its helpers as `b`."""
import contextlib
import http.client
import json
import os
import shutil
import signal
import tempfile
import threading
import time
import urllib.parse

ASK = 'tool fs.write {"path": "a.txt", "text": "x"}'
CLIENTS = 16


class Caller:
    """Requests over one connection."""

    def __init__(self, at):
        self.host, self.token = urllib.parse.urlparse(at[1]).netloc, at[3]
        self.http = http.client.HTTPConnection(self.host, timeout=120)

    def status(self, path):
        self.http.request("GET", path, None, {"Authorization": f"Bearer {self.token}"})
        answer = self.http.getresponse()
        answer.read()
        return answer.status

    def ask(self, method, path, body=None):
        """(seconds, bytes of the answer, its JSON)"""
        began = time.perf_counter()
        self.http.request(method, path, json.dumps(body) if body is not None else None,
                          {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"})
        answer = self.http.getresponse()
        data = answer.read()
        seconds = time.perf_counter() - began
        if answer.status >= 300:
            raise RuntimeError(f"{method} {path}: {answer.status} {data[:200]}")
        return seconds, len(data), json.loads(data)


def post_many(at, n, path, body_of):
    """n requests over several connections; the first that fails ends it."""
    failed, numbers, lock = [], iter(range(n)), threading.Lock()

    def work():
        caller = Caller(at)
        while not failed:
            with lock:
                i = next(numbers, None)
            if i is None:
                return
            try:
                caller.ask("POST", path, body_of(i))
            except (RuntimeError, OSError, ValueError) as e:
                failed.append(e)
    threads = [threading.Thread(target=work) for _ in range(CLIENTS)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    if failed:
        raise failed[0]


def resident_mb(at):
    with open(f"/proc/{at[-1]}/status", encoding="ascii") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmRSS")) / 1024


def rested(b, data, ask=None):
    """Memory of a server that has just started on this data, after one request."""
    with b.server(data=data) as at:
        caller = ready(at)
        value = ask(caller) if ask else None
        return resident_mb(at), value


def ready(at):
    """A caller of a server whose start is over."""
    caller = Caller(at)
    wait_for(lambda: caller.status("/ready") == 200)
    return caller


def start_cpu_ms(b, data):
    """CPU time of a start, all threads; the least of three."""
    def once():
        with b.server(data=data) as at:
            ready(at)
            with open(f"/proc/{at[-1]}/schedstat", encoding="ascii") as f:
                first = int(f.read().split()[0])
            others = 0
            for t in os.listdir(f"/proc/{at[-1]}/task"):
                if t != str(at[-1]):
                    with open(f"/proc/{at[-1]}/task/{t}/schedstat", encoding="ascii") as f:
                        others += int(f.read().split()[0])
            return (first + others) / 1e6
    return min(once() for _ in range(3))


def start_ms(b, data):
    return b.load("cold", "--repeat", 3, "--path", "/ready", "--", *b.serve_argv(data))["cold_max_us"] / 1e3


@contextlib.contextmanager
def folder(b):
    path = tempfile.mkdtemp(prefix="uar-", dir=b.DATA)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def steps(b, n, least):
    whole = b.scaled(n, least)
    return whole // 10, whole


def wait_for(what):
    end = time.monotonic() + 600
    while not what():
        if time.monotonic() > end:
            raise RuntimeError("it took longer than ten minutes")
        time.sleep(0.05)


def parked_runs(b):
    """Runs that wait for an answer: memory and start, against an empty store."""
    with folder(b) as empty, folder(b) as data:
        base_mb, _ = rested(b, empty)
        base_ms, base_cpu, made = start_ms(b, empty), start_cpu_ms(b, empty), 0
        tenth, whole = steps(b, 100000, 200)
        for n in (tenth, whole):
            with b.server(data=data) as at:
                post_many(at, n - made, "/api/runs", lambda i: {"agent_id": "tools", "inputs": {"message": ASK}})
                made = n
                wait_for(lambda at=at, n=n: b.metric(at, "uar_runs_parked") == n)
                os.kill(at[-1], signal.SIGKILL)
            ms = start_ms(b, data) - base_ms
            cpu = start_cpu_ms(b, data) - base_cpu
            mb = rested(b, data)[0] - base_mb
            last = n == whole
            b.row(f"{n} parked runs, memory", f"{mb:.1f} MB", "<= 20 MB" if last else "", mb <= 20 if last else None)
            b.row("the same, start", f"{cpu:.0f} ms CPU more ({ms:.0f} ms)", "<= 200 ms" if last else "",
                  cpu <= 200 if last else None)


def large_store(b):
    """Events of many finished runs in one store: start and memory."""
    with folder(b) as data:
        events = 0
        for wanted in steps(b, 1000000, 20000):
            with b.server(data=data) as at:
                while events < wanted:
                    n = min(20000, max(200, (wanted - events) // 12))
                    events += b.load("runs", *at, "--clients", 128, "--runs", n, "--fetch", 0)["log_events"]
                os.kill(at[-1], signal.SIGKILL)
            ms, (mb, (took, size, _)) = start_ms(b, data), rested(b, data, lambda c: c.ask("GET", "/api/runs?limit=50"))
            b.row(f"a store of {events / 1e6:.2f}M events, start", f"{start_cpu_ms(b, data):.0f} ms CPU, {ms:.0f} ms")
            b.row("the same, memory", f"{mb:.1f} MB")
            b.row("the same, first list of runs", f"{took * 1e3:.1f} ms, {size} B")


def long_session(b):
    """One session with so many events: its first answer after a start."""
    for events in steps(b, 100000, 5000):
        with folder(b) as data, folder(b) as fixtures:
            with b.server(data=data, fixtures=fixtures) as at:
                caller, run = Caller(at), b.long_run(at, fixtures, events)
                wait_for(lambda c=caller, r=run: c.ask("GET", f"/api/runs/{r}")[2]["status"] == "succeeded")
                path = "/api/sessions/" + caller.ask("GET", f"/api/runs/{run}")[2]["session_id"]
                caller.ask("GET", path)
                os.kill(at[-1], signal.SIGKILL)
            empty_mb, _ = rested(b, data)
            mb, (took, size, value) = rested(b, data, lambda c, p=path: c.ask("GET", p))
            window = rested(b, data, lambda c, p=path: c.ask("GET", p + "?window=50"))[1]
            b.row(f"a session of {value['through_sequence']} events, opened", f"{took * 1e3:.1f} ms, {size} B")
            b.row("the same, memory", f"{mb - empty_mb:.1f} MB more")
            b.row("the same, with a window of 50", f"{window[0] * 1e3:.1f} ms, {window[1]} B")


def task_body(sessions, i):
    return {"task_id": f"t-{i}", "objective": f"task {i}", "session_id": sessions[i % len(sessions)],
            "status": "draft" if i % 7 == 0 else "accepted"}


def many_tasks(b):
    """Tasks listed by filters, a page of 50."""
    with folder(b) as data, b.server(data=data) as at:
        caller, made = Caller(at), 0
        sessions = [caller.ask("POST", "/api/control/create_task", {"objective": "first"})[2]["result"]["task"]["session_id"]
                    for _ in range(100)]
        for n in steps(b, 100000, 2000):
            before = resident_mb(at)
            post_many(at, n - made, "/api/control/create_task", lambda i, made=made: task_body(sessions, made + i))
            made = n
            for name, query in (("status", "status=draft"), ("session", f"session_id={sessions[7]}"),
                                ("session and status", f"session_id={sessions[9]}&status=draft"), ("none", "")):
                took = sorted(caller.ask("GET", f"/api/tasks?limit=50&{query}".rstrip("&"))[0] for _ in range(20))
                b.row(f"{n} tasks listed by {name}", f"{took[10] * 1e3:.2f} ms, slowest {took[-1] * 1e3:.2f} ms")
            b.row("the same, memory", f"{resident_mb(at) - before:.1f} MB more")


def measurements(b):
    return {f.__name__: (lambda f=f: f(b)) for f in (parked_runs, large_store, long_session, many_tasks)}
