"""A reverse proxy in front of a server: what a proxy of a user does, below a prefix or with a name of its own."""
import http.client
import socketserver
import threading
from http.server import BaseHTTPRequestHandler
from urllib.parse import urlsplit

HOP = {"connection", "keep-alive", "transfer-encoding", "content-length"}


class Proxy:
    """with Proxy(server, "/uar/") as p: p.url ends with the prefix. Passes Host on and streams what comes."""

    def __init__(self, server, prefix="/"):
        target = urlsplit(server.url).netloc

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def pass_on(self):
                self.close_connection = True
                if not self.path.startswith(prefix):
                    self.send_error(404)
                    return
                size = int(self.headers.get("Content-Length") or 0)
                body = self.rfile.read(size) if size else None
                up = http.client.HTTPConnection(target)
                try:
                    up.request(self.command, "/" + self.path[len(prefix):], body, {k: v for k, v in self.headers.items() if k.lower() not in HOP})
                    answer = up.getresponse()
                    self.send_response(answer.status)
                    for k, v in answer.getheaders():
                        if k.lower() not in HOP:
                            self.send_header(k, v)
                    self.send_header("Connection", "close")
                    self.end_headers()
                    while data := answer.read1(65536):
                        self.wfile.write(data)
                        self.wfile.flush()
                except OSError:
                    pass  # one side has gone
                finally:
                    up.close()

            do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = pass_on

        class Many(socketserver.ThreadingMixIn, socketserver.TCPServer):
            allow_reuse_address = daemon_threads = True

        self.server = Many(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}{prefix}"

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
