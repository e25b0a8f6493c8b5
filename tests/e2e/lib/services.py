"""A web service for tools of agents: it remembers what it was asked, and some paths misbehave."""
import base64
import json
import threading
from urllib.parse import quote

from lib.check import SAFETY
from lib.web import Quiet, Web


class Service(Web):
    """Remembers what it was asked; some paths misbehave."""

    def __init__(self):
        self.seen, self.busy, self.peak = [], 0, 0
        self.documents = {}  # path: text, kind
        self.gate = threading.Event()
        super().__init__(Handler)

    def __exit__(self, *_):
        self.gate.set()
        super().__exit__()


class Handler(Quiet):
    def answer(self, status, body=b"", kind="application/json", **headers):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for k, v in headers.items():
            self.send_header(k, v)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def wait_at_gate(self):
        with self.server.lock:
            self.server.busy += 1
            self.server.peak = max(self.server.peak, self.server.busy)
            self.server.lock.notify_all()
        self.server.gate.wait(SAFETY)
        with self.server.lock:
            self.server.busy -= 1

    def do_GET(self):
        n = int(self.headers.get("Content-Length") or 0)
        seen = {"method": self.command, "path": self.path, "body": self.rfile.read(n).decode(),
                "authorization": self.headers.get("Authorization")}
        with self.server.lock:
            self.server.seen.append(seen)
        if self.path.startswith("/gate"):
            self.wait_at_gate()
        if self.path in self.server.documents:
            text, kind = self.server.documents[self.path]
            self.answer(200, text.encode(), kind)
        elif self.path.startswith("/status/"):
            self.answer(int(self.path.split("/")[2]), b'{"error": "no"}')
        elif self.path.startswith("/redirect"):
            self.answer(302, Location="/landed?from=redirect")
        elif self.path.startswith("/away"):
            self.answer(302, Location=self.path.split("to=")[1])
        elif self.path.startswith("/huge"):
            self.answer(200, b'"' + b"x" * 400000 + b'"')
        elif self.path.startswith("/text"):
            self.answer(200, b"plain words", "text/plain")
        elif self.path.startswith("/coded"):
            key = (self.headers.get("Authorization") or "").encode()
            self.answer(200, json.dumps({"basic": base64.b64encode(b"user:" + key).decode(), "query": quote(key),
                                         "hex": "no", "url": base64.urlsafe_b64encode(key).decode()}).encode())
        elif self.path.startswith("/silent"):
            self.server.gate.wait(SAFETY)
        else:
            self.answer(200, json.dumps(seen).encode())

    do_POST = do_PUT = do_DELETE = do_HEAD = do_GET
