"""An MCP server for tests, over pipes or HTTP: what it was asked is in a file, one line each.

As a program: mcp_mock.py LOG [modern] [asks]; with "asks" it has tools that need a person."""
import http.server
import json
import os
import socketserver
import sys
import threading

LEGACY, MODERN = "2025-11-25", "2026-07-28"
NUMBERS = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a", "b"]}
NOTHING = {"type": "object"}
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
TOOLS = [
    {"name": "add", "description": "Adds two numbers.", "inputSchema": NUMBERS,
     "outputSchema": {"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]}},
    {"name": "say", "description": "Says something.", "inputSchema": NOTHING, "annotations": {"readOnlyHint": True}},
    {"name": "picture", "description": "Shows a picture.", "inputSchema": NOTHING},
    {"name": "fails", "description": "Fails.", "inputSchema": NOTHING},
    {"name": "die", "description": "Ends the server.", "inputSchema": NOTHING},
    {"name": "wait", "description": "Never answers.", "inputSchema": NOTHING},
    {"name": "broken tool", "inputSchema": NOTHING},
    {"name": "no_schema", "description": "Has no schema."},
]


FORM = {"type": "object", "properties": {"name": {"type": "string"}, "size": {"type": "integer", "default": 7}}, "required": ["name"]}
ASKING = [{"name": "form", "description": "Asks for values.", "inputSchema": NOTHING},
          {"name": "pair", "description": "Asks two things.", "inputSchema": NOTHING},
          {"name": "visit", "description": "Sends to an address.", "inputSchema": NOTHING},
          {"name": "think", "description": "Asks the model.", "inputSchema": NOTHING}]
ASKED = {"form": {"message": "Who are you?", "requestedSchema": FORM},
         "visit": {"mode": "url", "message": "Please pay", "url": "https://shop.example/pay?order=1", "elicitationId": "e-1"},
         "think": {"messages": [{"role": "user", "content": {"type": "text", "text": "say the word heron"}}], "maxTokens": 100}}


def asking(name):
    return "sampling/createMessage" if name == "think" else "elicitation/create"


class Mock:
    def __init__(self, log, modern=False, asks=False):
        self.log, self.modern, self.lock = log, modern, threading.Lock()
        self.tools = TOOLS + (ASKING if asks else [])
        self.headers = {}  # of the last request
        self.cuts = False  # streams of changes end at once, without an answer

    def note(self, message):
        with self.lock, open(self.log, "a", encoding="utf-8") as f:
            f.write(json.dumps(message) + "\n")

    def call(self, params):
        name, args = params["name"], params.get("arguments", {})
        if name == "add":
            total = args["a"] + args["b"]
            return {"content": [{"type": "text", "text": str(total)}], "structuredContent": {"sum": total}}
        if name == "picture":
            return {"content": [{"type": "text", "text": "a pixel"}, {"type": "image", "data": PIXEL, "mimeType": "image/png"}]}
        if name == "pair" and self.modern:
            said = params.get("inputResponses")
            if said is None:
                questions = {"empty": {"message": "Nothing to fill in"}, "q": ASKED["form"]}
                return {"resultType": "input_required", "requestState": "s-2",
                        "inputRequests": {k: {"method": "elicitation/create", "params": v} for k, v in questions.items()}}
            return {"content": [{"type": "text", "text": json.dumps(said)}]}
        if name in ASKED and self.modern:
            said = params.get("inputResponses", {}).get("q")
            if said is None:
                return {"resultType": "input_required", "requestState": "s-1",
                        "inputRequests": {"q": {"method": asking(name), "params": ASKED[name]}}}
            return {"content": [{"type": "text", "text": json.dumps([said, params.get("requestState")])}]}
        if name == "fails":
            return {"content": [{"type": "text", "text": "it does not work"}], "isError": True}
        if "leaks" in args:  # what it was given, as an answer or as an error
            given = "|".join([os.environ.get("MOCK_API_KEY", ""), self.headers.get("authorization", ""), os.environ.get("MOCK_MODE", "")])
            return {"content": [{"type": "text", "text": given}], "isError": args["leaks"] == "failing",
                    **({"structuredContent": {"given": given, "more": [given]}} if args["leaks"] == "structured" else {})}
        return {"content": [{"type": "text", "text": "said: " + json.dumps(args)}]}

    def answer(self, m):
        """The answer of a request; None: there is none."""
        method, params = m["method"], m.get("params", {})
        if method == "initialize" and not self.modern:
            return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {"listChanged": True}},
                    "serverInfo": {"name": "mock", "version": "1"}}
        if method == "server/discover" and self.modern:
            return {"resultType": "complete", "supportedVersions": [MODERN], "capabilities": {"tools": {"listChanged": self.cuts}}, "ttlMs": 0,
                    "cacheScope": "private"}
        if method == "tools/list":  # two pages
            half = len(self.tools) // 2
            second = params.get("cursor") == "2"
            page = {"tools": self.tools[half:] if second else self.tools[:half]}
            return {**page, **({} if second else {"nextCursor": "2"}), **({"resultType": "complete"} if self.modern else {})}
        if method == "tools/call":
            return {**({"resultType": "complete"} if self.modern else {}), **self.call(params)}
        if method == "ping":
            return {}
        return None

    def respond(self, m):
        if "id" not in m or "method" not in m:
            return None
        result = self.answer(m)
        if result is None:
            return {"jsonrpc": "2.0", "id": m["id"], "error": {"code": -32601, "message": "there is no such method"}}
        return {"jsonrpc": "2.0", "id": m["id"], "result": result}


def serve_pipes(mock):
    def say(message):
        sys.stdout.write(json.dumps(message) + "\n")
        sys.stdout.flush()

    print("the mock has begun", file=sys.stderr, flush=True)
    waits = {}
    for line in sys.stdin:
        m = json.loads(line)
        mock.note(m)
        if m.get("method") == "tools/call" and m["params"]["name"] == "die":
            os._exit(3)
        if m.get("method") == "tools/call" and m["params"]["name"] == "wait":
            continue
        if m.get("method") == "tools/call" and m["params"]["name"] == "say":
            token = m["params"]["_meta"]["progressToken"]
            say({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": token, "progress": 1}})
            say({"jsonrpc": "2.0", "id": "p", "method": "ping"})
        if m.get("method") == "tools/call" and m["params"]["name"] in ASKED and not mock.modern:
            waits["ask-1"] = m["id"]
            name = m["params"]["name"]
            say({"jsonrpc": "2.0", "id": "ask-1", "method": asking(name), "params": ASKED[name]})
            continue
        if m.get("id") in waits and "method" not in m:
            text = json.dumps([m.get("result") or m.get("error"), None])
            say({"jsonrpc": "2.0", "id": waits.pop(m["id"]), "result": {"content": [{"type": "text", "text": text}]}})
            continue
        answer = mock.respond(m)
        if answer:
            say(answer)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def reply(self, status, body=b"", **headers):
        self.send_response(status)
        for k, v in headers.items():
            self.send_header(k.replace("_", "-"), v)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        if self.path == "/weather":
            self.reply(200, b'{"sky":"blue"}', Content_Type="application/json")
        else:
            self.reply(405)

    def do_POST(self):
        mock = self.server.mock
        m = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        mock.headers = {k.lower(): v for k, v in self.headers.items()}
        mock.note({**m, "headers": mock.headers})
        if m.get("method") == "tools/call" and m["params"]["name"] == "die":
            self.close_connection = True
            self.connection.close()
            return
        if not mock.modern and m.get("method") != "initialize" and self.headers.get("Mcp-Session-Id") != mock.session:
            status, code = mock.refusal
            error = {"jsonrpc": "2.0", "id": m.get("id"), "error": {"code": code, "message": "Session not found"}}
            self.reply(status if "Mcp-Session-Id" in self.headers else 400,
                       json.dumps(error).encode() if code else b"", Content_Type="application/json")
            return
        answer = mock.respond(m)
        if m.get("method") == "subscriptions/listen" and mock.cuts:
            self.reply(200, b": hello\n\n", Content_Type="text/event-stream")
        elif answer is None:
            self.reply(202)
        elif m["method"] == "tools/call":
            data = "event: message\nid: 1\ndata: " + json.dumps(answer) + "\n\n"
            self.reply(200, data.encode(), Content_Type="text/event-stream")
        else:
            self.reply(200, json.dumps(answer).encode(), Content_Type="application/json",
                       **({"Mcp_Session_Id": mock.session} if m["method"] == "initialize" else {}))

    def log_message(self, *_):
        pass


class HttpMock(Mock):
    """with HttpMock(log) as m: m.url"""

    def __init__(self, log, modern=False):
        super().__init__(log, modern)
        self.session = "s-1"
        self.refusal = (404, None)  # of a session that is not there: the status, the code of an error with the request's id

    def __enter__(self):
        class Threads(socketserver.ThreadingMixIn, http.server.HTTPServer):
            daemon_threads = True

            def handle_error(self, request, client_address):
                pass

        self.http = Threads(("127.0.0.1", 0), Handler)
        self.http.mock = self
        self.url = f"http://127.0.0.1:{self.http.server_port}/mcp"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.http.shutdown()
        self.http.server_close()


def asked(log, method=None, name=None):
    """What it was asked, by method, and for calls by the tool's name."""
    if not os.path.exists(log):
        return []
    with open(log, encoding="utf-8") as f:
        all_of_it = [json.loads(line) for line in f]
    return [m for m in all_of_it if (not method or m.get("method") == method) and
            (not name or m["params"]["name"] == name)]


if __name__ == "__main__":
    serve_pipes(Mock(sys.argv[1], "modern" in sys.argv[2:], "asks" in sys.argv[2:]))
