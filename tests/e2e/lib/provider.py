"""The fake provider of tests/lib, as a child of the test."""
import json
import os
import subprocess
import sys
from urllib.parse import urlencode

from lib.client import Client
from lib.server import ROOT


class Provider:
    """with Provider() as p: Server(env=p.env("hello")). Its key is a canary: see provider_test."""
    KEY = "sk-canary-0123456789abcdefghijklmnop"

    def __init__(self):
        program = os.path.join(ROOT, "tests", "lib", "fake_openai.py")
        self.proc = subprocess.Popen([sys.executable, program], stdout=subprocess.PIPE)
        self.url = f"http://127.0.0.1:{int(self.proc.stdout.readline())}"
        self.http = Client(self.url, "")

    def env(self, model, key=KEY):
        return {"OPENAI_BASE_URL": self.url + "/v1", "OPENAI_API_KEY": key, "UAR_MODEL": model}

    def stats(self):
        return json.loads(self.http.get("/stats").body)

    def wait_for(self, **least):
        """Until each of these counts is at least so much; the answer comes when it is."""
        return json.loads(self.http.get("/wait?" + urlencode(least)).body)

    def release(self):
        """Lets every answer of the model `gate` go on, now and later."""
        self.http.post("/release")

    def hold(self):
        self.http.post("/hold")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.proc.kill()
        self.proc.wait()
        self.proc.stdout.close()
