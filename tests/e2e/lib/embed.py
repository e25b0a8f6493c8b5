"""A provider of embeddings: POST /v1/embeddings, its vectors made by a function of the test."""
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Embedder:
    """with Embedder(lambda text: [1.0, 0.0]) as e: Server(env=e.env()). e.texts: what was asked, in order."""

    def __init__(self, vector_of):
        self.texts, self.failures, self.status = [], 0, 503
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = 65536  # head and body in one packet

            def log_message(self, *_):
                pass

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                texts = body["input"] if isinstance(body["input"], list) else [body["input"]]
                if outer.failures:
                    outer.failures -= 1
                    status, answer = outer.status, {"error": {"message": "busy"}}
                else:
                    outer.texts += texts
                    status = 200
                    answer = {"object": "list", "model": body["model"], "usage": {"prompt_tokens": 1, "total_tokens": 1},
                              "data": [{"object": "embedding", "index": i, "embedding": vector_of(t)}
                                       for i, t in enumerate(texts)]}
                data = json.dumps(answer).encode()
                self.send_response(status if self.path == "/v1/embeddings" else 404)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)
                self.wfile.flush()

        self.httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.httpd.server_address[1]}"
        self.thread = threading.Thread(target=self.httpd.serve_forever, daemon=True)
        self.thread.start()

    def env(self, **more):
        return {"OPENAI_BASE_URL": self.url + "/v1", "OPENAI_API_KEY": "sk-none", "UAR_MODEL": "none",
                "UAR_KB_EMBEDDING": "openai/words",
                **more}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.httpd.shutdown()
        self.httpd.server_close()
        self.thread.join()
