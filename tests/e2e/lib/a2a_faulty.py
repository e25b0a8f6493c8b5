"""An agent of A2A that does what a test tells it, and a few things that no agent should do."""
import http.server
import json
import threading

from lib.check import SAFETY

TEXT = "TASK_STATE_"


class Faulty:
    """with Faulty() as peer: tasks in peer.tasks; peer.behave(name) chooses what it does next.

    Each request is kept in peer.seen as (method, params)."""

    def __init__(self, version="1.0", streams=False, history=True, lists=True):
        self.version, self.streams, self.history, self.lists = version, streams, history, lists
        self.tasks, self.seen, self.messages, self.cards = {}, [], [], 0
        self.faults, self.headers, self.host = {}, [], None
        self.subscribe = None   # answers SubscribeToTask
        self.card_fault = None  # called instead of answering with the card
        self.changed = threading.Condition()
        self.script = lambda peer, task, message: peer.finish(task, "done")
        peer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def reply(self, body, status=200, kind="application/json", **more):
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                for k, v in more.items():
                    self.send_header(k, v)
                self.end_headers()
                self.wfile.write(body)

            def do_GET(self):
                peer.cards += 1
                if peer.card_fault:
                    peer.card_fault(self)
                elif self.headers.get("If-None-Match") == '"card"':
                    self.reply(b"", 304)
                else:
                    self.reply(json.dumps(peer.card()).encode(), ETag='"card"')

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                peer.headers.append(dict(self.headers))
                with peer.changed:
                    peer.seen.append((body["method"], body["params"]))
                    peer.changed.notify_all()
                peer.answer(self, body)

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        with self.changed:
            self.faults.clear()
            self.changed.notify_all()
        self.server.shutdown()
        self.server.server_close()

    def card(self):
        url = self.host or self.url
        if self.version == "0.3":
            return {"name": "old", "description": "d", "version": "1", "url": url, "preferredTransport": "JSONRPC",
                    "protocolVersion": "0.3.0", "capabilities": {"streaming": self.streams}, "skills": [],
                    "defaultInputModes": ["text"], "defaultOutputModes": ["text"]}
        return {"name": "new", "description": "d", "version": "1", "capabilities": {"streaming": self.streams},
                "supportedInterfaces": [{"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
                "skills": [{"id": "s", "name": "s", "description": "s", "tags": ["s"]}],
                "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"]}

    # --- tasks -----------------------------------------------------------------------------

    def set(self, task, state, text=None, data=None):
        old = self.version == "0.3"
        task["status"] = {"state": state.lower().replace("_", "-") if old else TEXT + state}
        parts = [{"text": text, **({"kind": "text"} if old else {})}] if text else []
        if data is not None:
            parts.append({"data": data, **({"kind": "data"} if old else {})})
        if parts:
            task["status"]["message"] = {"messageId": "s", "role": "agent" if old else "ROLE_AGENT", "parts": parts,
                                         **({"kind": "message"} if old else {})}

    def finish(self, task, text):
        old = self.version == "0.3"
        task["artifacts"] = [{"artifactId": "a", "name": "Result",
                              "parts": [{"text": text, **({"kind": "text"} if old else {})}]}]
        self.set(task, "COMPLETED")

    def shown(self, task):
        t = {k: v for k, v in task.items() if k != "history" or self.history}
        return {**t, "kind": "task"} if self.version == "0.3" else t

    def take(self, message):
        with self.changed:
            self.messages.append(message)
            task = self.tasks.get(message.get("taskId"))
            if not task:
                task = {"id": f"t{len(self.tasks)}", "contextId": message.get("contextId") or f"c{len(self.tasks)}",
                        "history": []}
                self.set(task, "SUBMITTED")
                self.tasks[task["id"]] = task
            task["history"].append(message)
        self.script(self, task, message)
        return task

    def wait(self, condition):
        with self.changed:
            return self.changed.wait_for(condition, SAFETY)

    def asked(self, *methods):
        return [p for m, p in self.seen if m in methods]

    # --- answers ---------------------------------------------------------------------------

    def answer(self, h, body):
        method, params, old = body["method"], body["params"], self.version == "0.3"
        fault = self.faults.get(method)
        if fault != "deaf":
            self.faults.pop(method, None)
        if fault in ("drop before", "deaf"):
            return self.cut(h)
        if fault == "silent":  # until its caller leaves
            return h.connection.recv(1)
        if method in ("SendMessage", "message/send", "SendStreamingMessage", "message/stream"):
            task = self.take(params["message"])
            result = self.shown(task) if old else {"task": self.shown(task)}
        elif method in ("GetTask", "tasks/get", "CancelTask", "tasks/cancel"):
            task = self.tasks.get(params["id"])
            if not task:
                return self.error(h, body, -32001, "there is no such task")
            if "ancel" in method:
                self.set(task, "CANCELED")
            result = self.shown(task)
        elif method == "SubscribeToTask" and self.subscribe:
            return self.subscribe(h, body, self.tasks[params["id"]])
        elif method == "ListTasks" and self.lists:
            result = {"tasks": [self.shown(t) for t in self.tasks.values()], "nextPageToken": "",
                      "pageSize": 50, "totalSize": len(self.tasks)}
        else:
            return self.error(h, body, -32601, "no such method")
        if fault == "drop after":
            return self.cut(h)
        frame = {"jsonrpc": "2.0", "id": body["id"] + 7 if fault == "wrong id" else body["id"], "result": result}
        if callable(fault):
            return fault(h, body, task)
        h.reply(json.dumps(frame).encode())

    def cut(self, h):
        h.close_connection = True
        h.connection.shutdown(2)

    def error(self, h, body, code, text):
        h.reply(json.dumps({"jsonrpc": "2.0", "id": body["id"], "error": {"code": code, "message": text}}).encode())

    def stream(self, h):
        """The head of a stream; events follow with event()."""
        h.send_response(200)
        h.send_header("Content-Type", "text/event-stream")
        h.send_header("Connection", "close")
        h.end_headers()
        h.close_connection = True

    def event(self, h, body, result):
        h.wfile.write(b"data: " + json.dumps({"jsonrpc": "2.0", "id": body["id"], "result": result}).encode() + b"\n\n")
        h.wfile.flush()
