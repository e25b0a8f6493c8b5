"""A server of a test, on a port of its own: it serves until its block ends."""
import http.server
import random
import socket
import threading

from lib.check import SAFETY, check
from lib.client import send_raw


def free_port():
    """One that the system gives to no one who does not ask for it: it is free again after a kill."""
    while True:
        port = random.randrange(10000, 32000)
        with socket.socket() as s:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                s.bind(("127.0.0.1", port))
                return port
            except OSError:
                pass


class Web(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, handler, port=0):
        self.lock = threading.Condition()
        self.leave = threading.Event()  # set when the block ends; handlers that wait end then
        self.at_work = 0  # connections that have a handler
        super().__init__(("127.0.0.1", port), handler)
        self.port = self.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def process_request(self, request, client_address):
        with self.lock:
            self.at_work += 1
        super().process_request(request, client_address)

    def process_request_thread(self, request, client_address):
        super().process_request_thread(request, client_address)
        with self.lock:
            self.at_work -= 1
            self.lock.notify_all()

    def at_rest(self):
        """Waits until all is done that was sent by one who sends nothing more: what comes last is taken last."""
        send_raw(self.url, b"OPTIONS / HTTP/1.1\r\nConnection: close\r\n\r\n")
        with self.lock:
            check(self.lock.wait_for(lambda: not self.at_work, SAFETY), "a handler does not end")

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
