"""Plain HTTP over a socket, with nothing between the test and the bytes."""
import http.client
import json
import re
import socket
import time
from urllib.parse import unquote_to_bytes, urlsplit

from lib.check import SAFETY, check


def connect(url, timeout=SAFETY):
    if url.startswith("unix:"):
        s = socket.socket(socket.AF_UNIX)
        s.settimeout(timeout)
        s.connect(unquote_to_bytes(url[5:]))
        return s
    parts = urlsplit(url)
    s = socket.create_connection((parts.hostname, parts.port), timeout)
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return s


def host_of(url):
    return "localhost" if url.startswith("unix:") else urlsplit(url).netloc


def send_raw(url, data):
    """Sends bytes as they are; everything that comes back until the server closes."""
    with connect(url) as s:
        try:  # the answer may come, and the end, before all was said
            s.sendall(data)
            s.shutdown(socket.SHUT_WR)
        except OSError:
            pass
        out = b""
        try:
            while chunk := s.recv(65536):
                out += chunk
        except ConnectionError:
            pass
        return out


PLACES = re.compile(r"(?<![\w.:/-])/(?:tmp|home|root|usr|etc|var|opt|proc|srv|mnt)/[^\s\"',;)]*")
STARTING = re.compile(rb"(?:keys|definitions) are being read|is still being recovered")


class Connection(http.client.HTTPConnection):
    def __init__(self, url):
        super().__init__("localhost", timeout=SAFETY)
        self.url = url

    def connect(self):
        self.sock = connect(self.url)


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.body = status, body
        self.headers = {k.lower(): v for k, v in headers}

    @property
    def json(self):
        return json.loads(self.body)


class Client:
    """One connection per request; safe from any thread."""

    def __init__(self, url, token):
        self.url, self.token = url, token

    def send(self, method, path, body=None, headers=None, token=True):
        """Asked again while the server has just started and says so, as its clients do."""
        until = time.monotonic() + SAFETY
        while True:
            a = self.send_once(method, path, body, headers, token)
            if a.status != 503 or not STARTING.search(a.body) or time.monotonic() > until:
                return a
            time.sleep(0.01)

    def send_once(self, method, path, body=None, headers=None, token=True):
        h = {"Host": host_of(self.url)}
        if token:
            h["Authorization"] = "Bearer " + self.token
        if body is not None:
            h["Content-Type"] = "application/json"
            body = body if isinstance(body, bytes) else json.dumps(body).encode()
            h["Content-Length"] = str(len(body))
        for key, value in (headers or {}).items():
            h.pop(key, None)
            if value is not None:
                h[key] = value
        conn = Connection(self.url)
        try:
            conn.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            for key, value in h.items():
                conn.putheader(key, value)
            conn.endheaders(body)
            r = conn.getresponse()
            a = Answer(r.status, r.getheaders(), r.read())
            self.check_places(a, path, body)
            return a
        finally:
            conn.close()

    @staticmethod
    def check_places(a, path, body):
        """A problem says nothing of where files lie, unless the request did."""
        if a.headers.get("content-type") != "application/problem+json" or not a.body:
            return
        asked = unquote_to_bytes(path) + (body or b"")
        for key in ("title", "detail", "where"):  # the rest is what others said, as an agent's question
            for found in PLACES.findall(a.json.get(key) or ""):
                check(found.encode() in asked, "a problem names a place", found, a.body)

    def get(self, path, **more):
        return self.send("GET", path, **more)

    def post(self, path, body=b"{}", **more):
        return self.send("POST", path, body, **more)
