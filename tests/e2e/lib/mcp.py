"""MCP clients of both eras, as bytes: what the official ones hide can be seen."""
import json

from lib.check import check, equal, wait_until
from lib.sse import Stream

MODERN = "2026-07-28"
LEGACY = "2025-11-25"
META = "io.modelcontextprotocol/"
BOTH = "application/json, text/event-stream"


def frames(body):
    """(id, message) of each event of an answer; the message of one without data is None."""
    out = []
    for frame in body.decode().split("\n\n"):
        fields = dict(line.partition(": ")[::2] for line in frame.split("\n") if line and not line.startswith(":"))
        if "data" in fields or "data:" in frame:
            out.append((fields.get("id"), json.loads(fields["data"]) if fields.get("data") else None))
    return out


def last_message(answer):
    """The answer of a request, as JSON or at the end of a stream."""
    equal(answer.status, 200, answer.body)
    if answer.headers["content-type"].startswith("application/json"):
        return answer.json
    return frames(answer.body)[-1][1]


class Session:
    """A legacy session at /mcp."""

    def __init__(self, s, version=LEGACY, **capabilities):
        self.s, self.version, self.count = s, version, 0
        self.id = None
        answer = self.post("initialize", {"protocolVersion": version, "capabilities": capabilities,
                                          "clientInfo": {"name": "test", "version": "1"}})
        equal(answer.status, 200, answer.body)
        self.id = answer.headers["mcp-session-id"]
        self.hello = answer.json["result"]
        self.version = self.hello["protocolVersion"]
        equal(self.notify("notifications/initialized").status, 202)

    def headers(self, **more):
        own = {"Mcp-Session-Id": self.id, "MCP-Protocol-Version": self.version} if self.id else {}
        return {"Accept": BOTH, **own, **more}

    def message(self, method, params=None):
        self.count += 1
        m = {"jsonrpc": "2.0", "id": self.count, "method": method}
        return {**m, "params": params} if params is not None else m

    def post(self, method, params=None, **headers):
        return self.s.http.post("/mcp", self.message(method, params), headers=self.headers(**headers))

    def ask(self, method, params=None):
        m = last_message(self.post(method, params))
        check("result" in m, m)
        return m["result"]

    def error(self, method, params=None):
        return last_message(self.post(method, params))["error"]

    def notify(self, method, params=None):
        m = {"jsonrpc": "2.0", "method": method, **({"params": params} if params else {})}
        return self.s.http.post("/mcp", m, headers=self.headers())

    def open(self, method, params=None):
        """A stream that is the answer of the request, read as it comes."""
        return Stream(self.s.url, "/mcp", self.s.token, self.headers(), body=self.message(method, params))

    def listen(self, last=None):
        more = {"Last-Event-ID": last} if last else {}
        return Stream(self.s.url, "/mcp", self.s.token, {**self.headers(), "Accept": "text/event-stream", **more})


class Modern:
    """Requests of the stateless era."""

    def __init__(self, s, **capabilities):
        self.s, self.capabilities, self.count = s, capabilities, 0

    def envelope(self, params=None, **meta):
        return {**(params or {}), "_meta": {META + "protocolVersion": MODERN, META + "clientCapabilities":
                                            self.capabilities, META + "clientInfo": {"name": "t", "version": "1"},
                                            **meta}}

    def headers(self, method, params=None, **more):
        name = next((params[k] for k in ("name", "uri", "taskId") if k in (params or {})), None)
        own = {"Accept": BOTH, "MCP-Protocol-Version": MODERN, "Mcp-Method": method, **more}
        return {**own, "Mcp-Name": name} if name else own

    def post(self, method, params=None, meta=None, **headers):
        self.count += 1
        m = {"jsonrpc": "2.0", "id": self.count, "method": method, "params": self.envelope(params, **(meta or {}))}
        return self.s.http.post("/mcp", m, headers=self.headers(method, params, **headers))

    def ask(self, method, params=None, **meta):
        m = last_message(self.post(method, params, meta))
        check("result" in m, m)
        equal(m["result"]["resultType"], "complete")
        return m["result"]

    def open(self, method, params=None, **meta):
        self.count += 1
        m = {"jsonrpc": "2.0", "id": self.count, "method": method, "params": self.envelope(params, **meta)}
        return Stream(self.s.url, "/mcp", self.s.token, self.headers(method, params), body=m)


def offered(s, tool):
    """Waits until a server whose tools are passed on is connected: this one is among its tools."""
    wait_until(lambda: tool in [t["name"] for t in Modern(s).ask("tools/list")["tools"]], tool + " is offered")
