"""A reader of Server-Sent Events that keeps the raw bytes and tells an end from a cut."""
import json
import time

from lib.check import SAFETY
from lib.client import connect, host_of


class Event:
    __slots__ = ("id", "name", "text")

    def __init__(self, id, name, text):
        self.id, self.name, self.text = id, name, text

    @property
    def data(self):
        return json.loads(self.text)

    @property
    def type(self):
        return self.data["type"]

    def key(self):
        return self.id, self.name, self.text

    def __repr__(self):
        return f"{self.id}:{self.text[:200]}"


class Refusal(Exception):
    def __init__(self, status, body):
        super().__init__(f"{status} {body[:300]}")
        self.status, self.body = status, body
        self.headers = {"content-type": "application/problem+json"}

    @property
    def json(self):
        return json.loads(self.body)


class Stream:
    """for event in stream; .ended: the server said so; .cut: the connection broke."""

    def __init__(self, url, path, token, headers=None, receive_buffer=None, body=None):
        self.sock = connect(url)
        if receive_buffer:
            self.sock.setsockopt(1, 8, receive_buffer)  # SO_RCVBUF
        h = {"Host": host_of(url), "Authorization": "Bearer " + token,
             "Accept": "text/event-stream", **(headers or {})}
        sent = b"" if body is None else json.dumps(body).encode()
        if sent:
            h |= {"Content-Type": "application/json", "Content-Length": len(sent)}
        head = f"{'POST' if sent else 'GET'} {path} HTTP/1.1\r\n" + "".join(f"{k}: {v}\r\n" for k, v in h.items())
        self.sock.sendall((head + "\r\n").encode() + sent)
        self.file = self.sock.makefile("rb", 65536)
        self.raw = bytearray()    # the body as it came, without chunk framing
        self.pending = bytearray()
        self.comments = []
        self.ended = self.cut = False
        self.retry = None
        self.patience = time.monotonic() + SAFETY
        self.read_head()

    def read_head(self):
        line = self.file.readline()
        self.headers = {}
        while (field := self.file.readline()).strip():
            key, _, value = field.decode().partition(":")
            self.headers[key.lower()] = value.strip()
        self.status = int(line.split()[1]) if line else 0
        if self.status != 200:
            body = self.file.read(int(self.headers.get("content-length", 0))) if line else b""
            self.close()
            raise Refusal(self.status, body)

    def chunk(self):
        try:
            size = self.file.readline()
            if not size.endswith(b"\r\n"):
                self.cut = True
                return False
            n = int(size, 16)
            data = self.file.read(n + 2)
        except (ConnectionError, OSError):
            self.cut = True
            return False
        if len(data) != n + 2:
            self.cut = True
            return False
        if n == 0:
            self.ended = True
            return False
        if time.monotonic() > self.patience:
            raise AssertionError("nothing but heartbeats for too long")
        self.pending += data[:-2]
        self.raw += data[:-2]
        return True

    def parse(self, block):
        fields = {}
        for line in block.decode().split("\n"):
            if line.startswith(":"):
                self.comments.append(line)
                continue
            key, _, value = line.partition(": ")
            fields[key] = fields[key] + "\n" + value if key in fields else value
        if "retry" in fields:
            self.retry = int(fields["retry"])
        if "data" not in fields:
            return None
        id = fields.get("id")  # a number, but for channels
        return Event(int(id) if id and id.isdigit() else id, fields.get("event"), fields["data"])

    def __iter__(self):
        while True:
            while (end := self.pending.find(b"\n\n")) >= 0:
                block = bytes(self.pending[:end])
                del self.pending[:end + 2]
                event = self.parse(block)
                if event:
                    self.patience = time.monotonic() + SAFETY
                    yield event
            if not self.chunk():
                return

    def hurry(self):
        """No longer slow: what waits comes in large pieces."""
        self.sock.setsockopt(1, 8, 1 << 20)  # SO_RCVBUF

    def next(self):
        return next(iter(self), None)

    def all(self):
        """Everything up to the proper end."""
        events = list(self)
        self.close()
        if not self.ended:
            raise AssertionError(f"cut after {len(events)} events: {events[-1:]}")
        return events

    def until(self, wanted):
        """Events up to and with the first for which wanted(event) holds."""
        events = []
        for event in self:
            events.append(event)
            if wanted(event):
                return events
        raise AssertionError(f"the stream ended first: {events[-3:]}")

    def beats(self, count):
        """Waits for so many comments; no event may come between them."""
        want = len(self.comments) + count
        while len(self.comments) < want:
            while (end := self.pending.find(b"\n\n")) >= 0:
                block = bytes(self.pending[:end])
                del self.pending[:end + 2]
                event = self.parse(block)
                if event:
                    raise AssertionError(f"an event instead of a heartbeat: {event}")
            if len(self.comments) < want and not self.chunk():
                raise AssertionError("the stream ended first")

    def close(self):
        self.file.close()
        self.sock.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
