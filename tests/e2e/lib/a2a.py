"""The public A2A protocol, as tests speak it: by the official clients and by hand."""
import json
import os
import subprocess

from lib.check import check, equal
from lib.npm import modules, node
from lib.server import ROOT

AGE = {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}}
FORM = "tool ui.form.request " + json.dumps({"title": "Who are you?", "schema": AGE})
SLOW = {"UAR_SCRIPTED_TOKEN_MS": "60000"}
DONE = ("TASK_STATE_COMPLETED", 3, "completed")


class Judge:
    """The official client in a process of its own."""

    def __init__(self, s, binding="JSONRPC", version="1.0", agent="echo"):
        card = f"/a2a/{agent}/.well-known/agent-card.json"
        self.proc = subprocess.Popen([node(), os.path.join(ROOT, "tests", "e2e", "a2a_judge.mjs"), modules("a2a"), s.url,
                                      s.token, binding, version, card],
                                     stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        equal(json.loads(self.proc.stdout.readline() or "{}"), {"ready": True}, "the client reads the card")

    def call(self, name, *args):
        self.proc.stdin.write(json.dumps({"call": name, "args": args}) + "\n")
        self.proc.stdin.flush()
        return json.loads(self.proc.stdout.readline())

    def ask(self, name, *args):
        answer = self.call(name, *args)
        check("value" in answer, answer)
        return answer["value"]

    def refused(self, error, name, *args):
        answer = self.call(name, *args)
        check("error" in answer, answer)
        check(answer["error"]["name"].endswith(error), answer)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.proc.stdin.close()
        self.proc.wait()


def text_of(artifact):
    return "".join(p.get("text") or (p.get("content") or {}).get("value") or "" for p in artifact["parts"])


def rpc(s, method, params, agent="echo", **headers):
    a = s.http.post(f"/a2a/{agent}", {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}, headers=headers)
    equal((a.status, a.json["jsonrpc"], a.json["id"]), (200, "2.0", 7), a.body)
    return a.json


def message(i, text="hi", **more):
    return {"message": {"messageId": f"m{i}", "role": "ROLE_USER", "parts": [{"text": text}], **more}}
