#!/usr/bin/env python3
"""A loopback provider that speaks three wires (fake_wires.py) and breaks them on demand, for end-to-end tests.

The model's name picks what happens: hello, echo, repeat (to the letter), says:WORDS_WITH_SIGNS_BETWEEN, slow, long:N, reasoning, stall, cut, badjson,
gate, paced:N:MS, ends:REASON, nothing, tools, asks (for what the message lists: [[name, arguments], ...]), leak401, err401, err429, err500, err529,
sealed (thinks, asks for a tool, wants back what it thought; sealed:gate waits before it looks), and faults of the wire: mute, page, garbage, inerror,
bodyerror, big, restless (asks for a tool whatever it is told), die (closes the connection), nousage, twice, unknown. `fault` does what the user's message names, seq:A,B does A at
its first request and B from then on. The port is the first line of output. GET /stats answers
{"requests": N, "closed_early": N, "open": N, "models": {name: N}, "last": {...}}: closed_early
counts streams that the client left before their end, last is the last request's body.
GET /wait?requests=N answers the same once each count named is at least so much. `gate` says a
word and waits for POST /release (POST /hold closes the gate again); `gate:thinks` reasons first.
`revise` makes an artifact and two versions of it; `revise:gate` waits before each of these.

    python3 tests/lib/fake_openai.py [PORT]
"""
import json
import select
import socket
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, urlsplit

from fake_wires import WIRES

WORDS = "every event is kept before it is shown so a reader may leave and come back".split()
ERRORS = {  # status, type, message, code, headers
    "err401": (401, "invalid_request_error", "Incorrect API key provided.", "invalid_api_key", {}),
    "err429": (429, "requests", "Rate limit reached.", "rate_limit_exceeded", {"Retry-After": "1"}),
    "wait429": (429, "requests", "Rate limit reached.", "rate_limit_exceeded", {"Retry-After": "30"}),
    "err500": (500, "server_error", "The server had an error.", None, {}),
    "err529": (529, "overloaded", "Overloaded.", None, {"retry-after-ms": "1500"}),
}


class Gone(Exception):
    """The client closed the connection."""


class Stats:
    def __init__(self):
        self.lock = threading.Condition()
        self.gate = threading.Event()
        self.values = {"requests": 0, "closed_early": 0, "open": 0, "models": {}, "last": None}

    def add(self, **changes):
        with self.lock:
            for key, value in changes.items():
                self.values[key] += value
            self.lock.notify_all()

    def seen(self, body):
        name = str(body.get("model"))
        with self.lock:
            self.values["requests"] += 1
            self.values["open"] += 1
            self.values["last"] = body
            self.values["models"][name] = self.values["models"].get(name, 0) + 1
            self.lock.notify_all()

    def wait(self, least):
        with self.lock:
            self.lock.wait_for(lambda: all(self.values[k] >= int(n) for k, n in least))

    def text(self):
        with self.lock:
            return json.dumps(self.values)


STATS = Stats()


def words_of(text):
    return [w + " " for w in text.split()]


def tool_round(wire):
    """Asks for two tools at once, in pieces and one of them without an id; then quotes what they said."""
    results = wire.results(wire.body)
    if results:
        yield "text", "They said: " + " and ".join(results)
        return
    yield "text", "I will see. "
    yield "calls", [{"index": 0, "id": "call_A", "type": "function",
                     "function": {"name": "internal__math_evaluate", "arguments": ""}}]
    yield "calls", [{"index": 1, "type": "function", "function": {"name": "internal__math_evaluate",
                                                                  "arguments": '{"expression":"1/0"}'}}]
    for piece in ('{"expre', 'ssion":"6', '*7"}'):
        yield "calls", [{"index": 0, "function": {"arguments": piece}}]


def asked_for(wire):
    """Asks for what the message lists, with the arguments to the letter; then quotes what came of it."""
    results = wire.results(wire.body)
    if results:
        yield "text", " and ".join(results)
        return
    for i, (name, arguments) in enumerate(json.loads(wire.last_user(wire.body))):
        yield "calls", [{"index": i, "id": f"call_{i}", "type": "function",
                         "function": {"name": name, "arguments": arguments}}]


def restless():
    """Asks for a tool whatever it is told."""
    yield "text", "I will look once more."
    yield "calls", [{"index": 0, "id": "call_R", "type": "function",
                     "function": {"name": "internal__math_evaluate", "arguments": '{"expression":"6*7"}'}}]


def revised(wire, wait):
    """Makes an artifact, then two further versions of it."""
    results = wire.results(wire.body)
    if results and wait:
        yield "gate", None
    if len(results) == 3:
        yield "text", "done"
        return
    made = {"artifact_id": json.loads(results[0])["artifact_id"]} if results else {}
    yield "calls", [{"index": 0, "id": f"call_{len(results)}", "type": "function", "function": {
        "name": "internal__artifact_put", "arguments": json.dumps({
            "artifact_type": "code", "language": "python", "title": "Program", "content": f"print({len(results)})", **made})}}]


def sealed(wire, wait):
    """Thinks and asks for a tool; then wants back what it thought, to the letter."""
    if wire.results(wire.body):
        if wait:
            yield "gate", None
        yield "text", "It is whole." if wire.has_seal() else "It is broken: " + json.dumps(wire.body)
        return
    yield "reasoning", "Let me see. "
    yield "seal", None
    yield "text", "I will compute."
    yield "calls", [{"index": 0, "id": "call_A", "type": "function",
                     "function": {"name": "internal__math_evaluate", "arguments": '{"expression":"6*7"}'}}]


def script(model, wire):
    """Yields what to stream: ("text" | "reasoning" | "calls" | "raw" | "wait", value)."""
    name, _, argument = model.partition(":")
    body = wire.body
    last_user = wire.last_user
    if name == "echo":
        yield from (("text", w) for w in words_of(last_user(body)))
    elif name == "says":
        yield "text", argument.replace("_", " ")
    elif name == "repeat":
        text = last_user(body)
        yield from (("text", text[i:i + 7]) for i in range(0, len(text), 7))
    elif name == "slow":
        for word in words_of("this answer takes its time to arrive word by word"):
            yield "text", word
            yield "wait", 0.1
    elif name == "long":
        for i in range(int(argument or 1000)):
            yield "text", WORDS[i % len(WORDS)] + " "
    elif name == "paced":
        count, _, pause = argument.partition(":")
        for i in range(int(count)):
            yield "text", WORDS[i % len(WORDS)] + " "
            yield "wait", int(pause or 10) / 1000
    elif name == "gate":
        if argument == "thinks":
            yield "reasoning", "Let me see. "
        yield "text", "before "
        yield "gate", None
        yield "text", "after"
    elif name == "reasoning":
        yield from (("reasoning", w) for w in words_of("The user said something. I will answer."))
        yield from (("text", w) for w in words_of("Here is the answer."))
    elif name == "tools":
        yield from tool_round(wire)
    elif name == "asks":
        yield from asked_for(wire)
    elif name == "restless":
        yield from restless()
    elif name == "revise":
        yield from revised(wire, argument == "gate")
    elif name == "stall":
        yield "text", "One "
        yield "text", "moment "
        yield "wait", None
    elif name == "ends":
        yield "text", "This is not "
        yield "finish", argument
    elif name == "nothing":
        yield "finish", None
    elif name == "cut":
        yield "text", "This ends "
        yield "cut", None
    elif name == "sealed":
        yield from sealed(wire, argument == "gate")
    elif name == "inerror":
        yield "text", "Fine so far. "
        yield "fail", None
        yield "wait", None
    elif name == "big":
        yield "text", "Fine so far. "
        yield "raw", b"data: {\"x\":\"" + b"x" * (2 << 20)
        yield "wait", None
    elif name == "garbage":
        yield "text", "Fine so far. "
        yield "raw", b"\x00\xff\xfe\x80 no event\n\n: \xc3\x28\r\r\ndata\n\ndata: \xff\n\n"
        yield "wait", None
    elif name == "unknown":
        for word in words_of("what is not known is passed over"):
            yield "text", word
            yield "unknown", None
    elif name == "badjson":
        yield "text", "Fine so far. "
        yield "raw", b'data: {"choices":[{"delta":{"cont\n\n'
        yield "wait", None
    else:
        yield from (("text", w) for w in words_of("Hello from the fake provider."))


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = 0

    def log_message(self, *_):
        pass

    def answer(self, status, value, headers=None):
        data = value.encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        for name, text in (headers or {}).items():
            self.send_header(name, text)
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        path = urlsplit(self.path)
        if path.path in ("/stats", "/wait"):
            STATS.wait(parse_qsl(path.query))
            self.answer(200, STATS.text())
        elif self.path.endswith("/models"):
            names = ["hello", "echo", "slow", "reasoning"]
            self.answer(200, json.dumps({"object": "list", "data": [
                {"id": n, "object": "model", "owned_by": "fake"} for n in names]}))
        else:
            self.answer(404, '{"error":{"message":"no such path"}}')

    def do_POST(self):
        raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path in ("/release", "/hold"):
            (STATS.gate.set if self.path == "/release" else STATS.gate.clear)()
            self.answer(200, "{}")
            return
        wire = next((w for w in WIRES if urlsplit(self.path).path.endswith(w.path)), None)
        if not wire:
            self.answer(404, '{"error":{"message":"no such path"}}')
            return
        if len(raw) < int(self.headers.get("Content-Length", 0)):
            return  # killed while it asked
        body = json.loads(raw)
        STATS.seen(body)
        try:
            self.complete(wire, body)
        except (Gone, ConnectionError):
            STATS.add(closed_early=1)
            self.close_connection = True
        finally:
            STATS.add(open=-1)

    def complete(self, kind, body):
        model = str(body.get("model"))
        if model == "fault":
            model = kind.last_user(body).strip()
        if model.startswith("seq:"):  # seq:A,B,C: A for the first request with this name, then B, then C for the rest
            steps = model[4:].split(",")
            model = steps[min(STATS.values["models"][model], len(steps)) - 1]
        wire = kind(self, model, body)
        if model == "die":
            raise Gone()
        if model == "leak401":  # quotes the key that it was sent, as some do
            given = self.headers.get("Authorization", "").removeprefix("Bearer ") or self.headers.get("x-api-key")
            self.answer(401, json.dumps(wire.error("invalid_request_error", f"Bad key {given}.", "invalid_api_key")))
        elif model in ERRORS:
            status, name, message, code, headers = ERRORS[model]
            self.answer(status, json.dumps(wire.error(name, message, code)), headers)
        elif model == "bodyerror":
            self.answer(200, json.dumps(wire.error("server_error", "It broke.", "server_error")))
        elif model == "page":
            self.page()
        elif model == "mute":
            self.wait(None)
        elif body.get("stream"):
            self.stream(model, wire)
        else:
            text = "".join(v for kind, v in script(model, wire) if kind == "text")
            self.answer(200, json.dumps({"id": "chatcmpl-fake", "object": "chat.completion", "created": 1700000000,
                                         "model": "fake-" + model, "choices": [
                                             {"index": 0, "message": {"role": "assistant", "content": text},
                                              "finish_reason": "stop"}]}))

    def page(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", "15")
        self.end_headers()
        self.wfile.write(b"<html>Hi</html>")

    def chunk(self, data):
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

    def wait(self, seconds):
        """Waits, or for ever with None; leaves when the client does."""
        end = None if seconds is None else time.monotonic() + seconds
        while end is None or time.monotonic() < end:
            left = None if end is None else max(0, end - time.monotonic())
            if select.select([self.connection], [], [], left)[0]:
                if not self.connection.recv(1, socket.MSG_PEEK):
                    raise Gone()
                return

    def stream(self, model, wire):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.send_header("request-id", "req_fake")
        self.end_headers()
        finish = "stop"
        wire.twice, wire.usage = model == "twice", model != "nousage"
        wire.begin()
        for kind, value in script(model, wire):
            if kind == "wait":
                self.wait(value)
            elif kind == "gate":
                while not STATS.gate.wait(0.01):
                    self.wait(0.001)
            elif kind == "raw":
                self.chunk(value)
            elif kind == "calls":
                finish = "tool_calls"
                wire.calls(value)
            elif kind == "finish":
                finish = value
            elif kind == "cut":
                self.close_connection = True
                return
            elif kind in ("seal", "fail", "unknown"):
                getattr(wire, kind)()
            else:
                getattr(wire, kind)(value)
        wire.end(finish)
        self.wfile.write(b"0\r\n\r\n")


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 512

    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], ConnectionError):  # those who are killed just go
            super().handle_error(request, client_address)


def main():
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 0
    server = Server(("127.0.0.1", port), Handler)
    print(server.server_address[1], flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass


if __name__ == "__main__":
    main()
