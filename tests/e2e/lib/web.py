"""A server of a test, on a port of its own: it serves until its block ends."""
import http.server
import threading


class Web(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, handler, port=0):
        self.lock = threading.Condition()
        self.leave = threading.Event()  # set when the block ends; handlers that wait end then
        super().__init__(("127.0.0.1", port), handler)
        self.port = self.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.leave.set()
        self.shutdown()
        self.server_close()


class Quiet(http.server.BaseHTTPRequestHandler):
    """Says nothing of its requests, and nothing of clients that leave."""
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def handle(self):
        try:
            super().handle()
        except ConnectionError:
            pass
