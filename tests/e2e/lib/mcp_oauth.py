"""An MCP server over HTTP that wants a token, with its authorization server: what it was asked is in `asked`."""
import base64
import hashlib
import http.server
import json
import socketserver
import threading
from urllib.parse import parse_qs, urlencode, urlparse

TOOLS = [{"name": "whoami", "description": "Says who you are.", "inputSchema": {"type": "object"}}]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def reply(self, status, value=None, **headers):
        body = b"" if value is None else json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        for k, v in headers.items():
            self.send_header(k.replace("_", "-"), v)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        s, url = self.server.owner, urlparse(self.path)
        s.asked.append(("GET", self.path, {}))
        if url.path.startswith("/.well-known/oauth-protected-resource"):
            self.reply(200, {"resource": s.url, "authorization_servers": [s.base], "scopes_supported": ["tools"]})
        elif url.path.startswith("/.well-known/oauth-authorization-server"):
            self.reply(200, {"issuer": s.base, "authorization_endpoint": s.authorize or s.base + "/authorize", "token_endpoint": s.base + "/token",
                             "registration_endpoint": s.base + "/register", "response_types_supported": ["code"],
                             "code_challenge_methods_supported": ["S256"], "token_endpoint_auth_methods_supported": ["none"],
                             "authorization_response_iss_parameter_supported": True})
        elif url.path == "/authorize":
            q = {k: v[0] for k, v in parse_qs(url.query).items()}
            s.challenge = q["code_challenge"]
            answer = urlencode({"code": "good-code", "state": q["state"], "iss": s.base})
            self.reply(302, Location=q["redirect_uri"] + "?" + answer)
        else:
            self.reply(405)

    def do_POST(self):
        s, text = self.server.owner, self.rfile.read(int(self.headers["Content-Length"])).decode()
        if self.path == "/register":
            s.asked.append(("POST", self.path, json.loads(text)))
            return self.reply(201, {"client_id": "client-1", **json.loads(text)})
        if self.path == "/token":
            q = {k: v[0] for k, v in parse_qs(text).items()}
            s.asked.append(("POST", self.path, q))
            return self.token(s, q)
        m = json.loads(text)
        s.asked.append(("POST", m.get("method"), m))
        if self.headers.get("Authorization") != "Bearer " + s.token:
            return self.reply(401, WWW_Authenticate=f'Bearer resource_metadata="{s.base}/.well-known/oauth-protected-resource/mcp"')
        return self.serve(m)

    def token(self, s, q):
        if q["grant_type"] == "authorization_code":
            made = base64.urlsafe_b64encode(hashlib.sha256(q["code_verifier"].encode()).digest()).rstrip(b"=").decode()
            if q["code"] != "good-code" or made != s.challenge or q["resource"] != s.url:
                return self.reply(400, {"error": "invalid_grant"})
        elif s.busy:
            s.busy -= 1
            return self.reply(503)
        elif not s.refreshes:
            return self.reply(400, {"error": "invalid_grant"})
        return self.reply(200, {"access_token": s.token, "token_type": "Bearer", "expires_in": s.lasts, "refresh_token": "refresh-1"})

    def serve(self, m):
        method = m.get("method")
        if "id" not in m:
            return self.reply(202)
        result = {"initialize": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                                 "serverInfo": {"name": "guarded", "version": "1"}},
                  "tools/list": {"tools": TOOLS},
                  "tools/call": {"content": [{"type": "text", "text": "you are ada"}]}}.get(method)
        if result is None:
            return self.reply(200, {"jsonrpc": "2.0", "id": m["id"], "error": {"code": -32601, "message": "no such method"}})
        return self.reply(200, {"jsonrpc": "2.0", "id": m["id"], "result": result})

    def log_message(self, *_):
        pass


class OauthMock:
    """with OauthMock() as m: m.url"""

    def __init__(self):
        self.asked, self.token, self.challenge, self.refreshes = [], "token-1", None, True
        self.authorize = None  # another address than its own
        self.busy = 0  # so many times it cannot refresh a token now
        self.lasts = 3600

    def __enter__(self):
        class Threads(socketserver.ThreadingMixIn, http.server.HTTPServer):
            daemon_threads = True

        self.http = Threads(("127.0.0.1", 0), Handler)
        self.http.owner = self
        self.base = f"http://127.0.0.1:{self.http.server_port}"
        self.url = self.base + "/mcp"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.http.shutdown()
        self.http.server_close()

    def count(self, kind, what):
        return len([a for a in self.asked if a[:2] == (kind, what)])
