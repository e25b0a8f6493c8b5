"""A receiver of A2A notifications: it keeps what it was sent, and paths say how it behaves."""
import json

from lib.check import SAFETY, check
from lib.web import Quiet, Web


class Receiver(Web):
    """`/hang` never answers, `/redirect` answers with 302, anything else with `status`."""

    def __init__(self, port=0):
        self.seen = []  # of (path, headers, body)
        self.status = 200
        super().__init__(Handler, port)

    def taken(self, path="/"):
        with self.lock:
            return [s for s in self.seen if s[0] == path]

    def wait(self, until, path="/"):
        """What came to the path, when `until` is content with it."""
        with self.lock:
            good = self.lock.wait_for(lambda: until([s for s in self.seen if s[0] == path]), SAFETY)
        check(good, "what came:", self.seen)
        return self.taken(path)

    def wait_state(self, *words, path="/"):
        """Until the last one tells that state."""
        return self.wait(lambda seen: seen and state_of(seen[-1][2]) in words, path)


def state_of(body):
    """Of a notification of either version; None: an artifact."""
    inner = body.get("task") or body.get("statusUpdate") or body
    return inner.get("status", {}).get("state")


class Handler(Quiet):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with self.server.lock:
            self.server.seen.append((self.path, self.headers, body))
            self.server.lock.notify_all()
        if self.path == "/hang":
            self.server.leave.wait()
            return
        self.send_response(302 if self.path == "/redirect" else self.server.status)
        self.send_header("Content-Length", "0")
        if self.path == "/redirect":
            self.send_header("Location", self.server.url + "/")
        self.end_headers()

    def do_GET(self):
        with self.server.lock:
            self.server.seen.append((self.path, self.headers, None))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()
