"""An MCP server of 2024-11-05: a stream says where messages go, and every answer comes on that stream."""
import http.server
import json
import queue
import socketserver
import threading

from lib.mcp_mock import Mock


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def plain(self, status, body=b""):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        mock = self.server.mock
        if self.path != "/sse":
            self.plain(404)
            return
        said, number = queue.Queue(), mock.open_stream()
        mock.streams[number] = said
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(f"event: endpoint\ndata: {mock.endpoint(number)}\n\n".encode())
        while True:
            message = said.get()
            if message is None:
                self.close_connection = True
                return
            self.wfile.write(f"event: message\ndata: {json.dumps(message)}\n\n".encode())

    def do_POST(self):
        mock = self.server.mock
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if not self.path.startswith("/messages?session="):
            self.plain(404 if mock.refusal == 404 else 405)
            return
        number = int(self.path.rpartition("=")[2])
        m = json.loads(body)
        mock.note({**m, "headers": {k.lower(): v for k, v in self.headers.items()}})
        if number not in mock.streams:
            self.plain(404)
            return
        self.plain(202, b"Accepted")
        if m.get("method") == "tools/call" and m["params"]["name"] == "die":
            mock.end_streams()
            return
        answer = mock.respond(m)
        if answer and "result" in answer and "protocolVersion" in answer["result"]:
            answer["result"]["protocolVersion"] = "2024-11-05"
        if answer:
            mock.streams[number].put(answer)

    def log_message(self, *_):
        pass


class OldMock(Mock):
    """with OldMock(log) as m: m.url"""

    def __init__(self, log, elsewhere=None, refusal=404):
        super().__init__(log)
        self.elsewhere, self.refusal, self.streams, self.count = elsewhere, refusal, {}, 0

    def open_stream(self):
        with self.lock:
            self.count += 1
            return self.count

    def endpoint(self, number):
        return self.elsewhere or f"/messages?session={number}"

    def end_streams(self):
        for said in list(self.streams.values()):
            said.put(None)
        self.streams.clear()

    def __enter__(self):
        class Threads(socketserver.ThreadingMixIn, http.server.HTTPServer):
            daemon_threads = True

            def handle_error(self, request, client_address):
                pass

        self.http = Threads(("127.0.0.1", 0), Handler)
        self.http.mock = self
        self.url = f"http://127.0.0.1:{self.http.server_port}/sse"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.end_streams()
        self.http.shutdown()
        self.http.server_close()
