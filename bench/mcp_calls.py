"""MCP: what a call costs above plain JSON-RPC, and a session, beside the server of the official SDK v2."""
import contextlib
import http.client
import json
import socket
import subprocess
import time
from urllib.parse import urlparse

REVISION = "2025-11-25"
HELLO = {"protocolVersion": REVISION, "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}


class Wire:
    """One connection to an MCP server over HTTP."""

    def __init__(self, url, token=""):
        self.at, self.ids = urlparse(url), 0
        self.http = http.client.HTTPConnection(self.at.hostname, self.at.port)
        self.http.connect()
        self.http.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.head = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        if token:
            self.head["Authorization"] = "Bearer " + token

    def send(self, method, params, answer=True):
        self.ids += 1
        body = {"jsonrpc": "2.0", "method": method, "params": params, **({"id": self.ids} if answer else {})}
        self.http.request("POST", self.at.path, json.dumps(body), self.head)
        said = self.http.getresponse()
        text = said.read().decode()
        if answer and (said.status != 200 or '"result"' not in text):
            raise RuntimeError(f"{method}: {said.status} {text[:200]}")
        return said

    def open(self):
        """True: it has a session."""
        session = self.send("initialize", HELLO).getheader("Mcp-Session-Id")
        self.head["MCP-Protocol-Version"] = REVISION
        if session:
            self.head["Mcp-Session-Id"] = session
        self.send("notifications/initialized", {}, answer=False)
        return bool(session)

    def took_us(self, method, params):
        begin = time.perf_counter()
        self.send(method, params)
        return (time.perf_counter() - begin) * 1e6


def resident_kb(pid):
    with open(f"/proc/{pid}/status", encoding="utf-8") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmRSS:"))


@contextlib.contextmanager
def peer(bench):
    """The server of the SDK; yields (process, address)."""
    here = subprocess.run(["tools/npm-get", "mcp"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    node = subprocess.run(["tools/node", "--where"], stdout=subprocess.PIPE, text=True, check=False).stdout.strip()
    if not here.stdout.strip() or not node:
        raise bench.Missing(here.stderr.strip() or "there is no Node.js")
    proc = subprocess.Popen([node, "tests/e2e/lib/mcp_peer.mjs", here.stdout.strip(), "v2", "http"], stdout=subprocess.PIPE, text=True)
    try:
        yield proc, proc.stdout.readline().strip()
    finally:
        bench.stop(proc)


def measure_calls(url, token, n, tool, arguments):
    """Medians of both, taken in turn, so that whatever else the machine does hits both."""
    w = Wire(url, token)
    w.open()
    pairs = [(w.took_us("ping", {}), w.took_us("tools/call", {"name": tool, "arguments": arguments})) for _ in range(n)]
    return [sorted(column)[n // 2] for column in zip(*pairs)]


def measure_sessions(pid, url, token, n):
    """KB of memory for each, sessions a second, and whether they are sessions at all."""
    before, begin = resident_kb(pid), time.perf_counter()
    wires = [Wire(url, token) for _ in range(n)]
    kept = [w.open() for w in wires]
    took = time.perf_counter() - begin
    return (resident_kb(pid) - before) / n, n / took, all(kept)


def measurements(bench):
    def mcp():
        """Calls of a tool that does next to nothing, and sessions that are open at once."""
        calls, sessions = bench.scaled(3000, 100), bench.scaled(1000, 50)
        with bench.server() as args, peer(bench) as (other, url):
            at = dict(zip(args[::2], args[1::2]))
            ours = at["--url"] + "/mcp"
            ping, tool = measure_calls(ours, at["--token"], calls, "internal__time_now", {})
            ping2, tool2 = measure_calls(url, "", calls, "add", {"a": 1, "b": 2})
            bench.row("MCP, a request without work", f"{ping:.0f} us", limit=f"{ping2:.0f} us SDK v2", ratio=f"{ping / ping2:.2f}")
            bench.row("MCP, what a tool call adds to it", f"{tool - ping:.0f} us", limit=f"{tool2 - ping2:.0f} us SDK v2")
            each, rate, _ = measure_sessions(at["--pid"], ours, at["--token"], sessions)
            each2, rate2, kept = measure_sessions(other.pid, url, "", sessions)
            beside = "SDK v2" if kept else "SDK v2, which keeps no session"
            bench.row(f"MCP, memory of each of {sessions:,} sessions", f"{each:.1f} KB", limit=f"{each2:.1f} KB {beside}")
            bench.row("MCP, sessions opened", f"{rate:.0f}/s", limit=f"{rate2:.0f}/s {beside}")

    return {"mcp": mcp}
