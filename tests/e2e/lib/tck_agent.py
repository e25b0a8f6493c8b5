"""The agent that the A2A TCK talks to: a model whose script is chosen by the id of the message.

A model is not told ids of messages. This one asks the server for the task that it works on, as any client could."""
import json

from lib.client import Client
from lib.web import Quiet, Web

FORM = ("internal__ui_form_request", {"title": "What else?", "schema": {"type": "object", "properties": {"reply": {"type": "string"}}}})


def put(kind, content):
    return "internal__artifact_put", {"artifact_type": kind, "title": "output.txt", "content": content}


# By the beginning of the id: what is called, what is said.
SCRIPTS = (
    ("tck-input-required", [FORM], ""),
    ("tck-artifact-text", [], "Generated text content"),
    ("tck-artifact-file-url", [put("link", "https://example.com/output.txt")], ""),
    ("tck-artifact-file", [put("file", "Hello")], ""),
    ("tck-artifact-data", [put("json", '{"key": "value", "count": 42}')], ""),
    ("tck-stream-artifact-file", [put("file", "Hello")], ""),
    ("tck-stream-artifact-chunked", [], ("Hel", "lo")),
    ("", [], "Hello"),
)


class Model(Web):
    def __init__(self):
        self.uar = None  # of the agent's server
        super().__init__(Handler)

    def work_for(self, url, token):
        self.uar = url, token

    def message_id(self):
        """Of the last message to the task that began last."""
        http_ = Client(*self.uar)
        task = http_.get("/api/runs?agent_id=tck&limit=1").json["runs"][0]["run_id"]
        return http_.get(f"/a2a/tck/tasks/{task}").json["history"][-1]["messageId"]


class Handler(Quiet):
    def send(self, delta, finish=None):
        value = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "tck",
                 "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
        self.wfile.write(b"data: " + json.dumps(value).encode() + b"\n\n")
        self.wfile.flush()

    def do_POST(self):
        said = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["messages"]
        name = self.server.message_id()
        _, calls, text = next(s for s in SCRIPTS if name.startswith(s[0]))
        if calls and calls != [FORM] and said[-1]["role"] == "tool":
            calls = []  # it is made
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        self.send({"role": "assistant", "content": ""})
        for i, (tool, args) in enumerate(calls):
            self.send({"tool_calls": [{"index": i, "id": f"call{i}", "type": "function",
                                       "function": {"name": tool, "arguments": json.dumps(args)}}]})
        for piece in [text] if isinstance(text, str) else text:
            if piece:
                self.send({"content": piece})
        self.send({}, "tool_calls" if calls else "stop")
        self.wfile.write(b"data: [DONE]\n\n")
