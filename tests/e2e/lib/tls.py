"""Certificates made on the spot, and relays that stand between UAR and whom it calls."""
import asyncio
import os
import shutil
import ssl
import subprocess
import tempfile
import threading

from lib.check import SAFETY, check, Skip

# None of the machine's own defaults: what a certificate says is what the test asks for.
PLAIN = "[req]\ndistinguished_name = dn\n[dn]\n"


class Certificates:
    """with Certificates() as c: c.authority("a") is a PEM file, c.server() a pair of files."""

    def __init__(self):
        if not shutil.which("openssl"):
            raise Skip("openssl is not installed")
        self.dir = tempfile.mkdtemp(prefix="uar-tls-")
        with open(self.path("cnf"), "w") as f:
            f.write(PLAIN)

    def path(self, name):
        return os.path.join(self.dir, name)

    def openssl(self, *argv):
        done = subprocess.run(["openssl", *argv], stderr=subprocess.PIPE, text=True, timeout=SAFETY)
        check(done.returncode == 0, done.stderr)

    def make(self, name, *more):
        pair = self.path(name + ".pem"), self.path(name + ".key")
        self.openssl("req", "-x509", "-config", self.path("cnf"), "-newkey", "ec", "-pkeyopt",
                     "ec_paramgen_curve:prime256v1", "-nodes", "-sha256", "-subj", "/CN=" + name,
                     "-days", "2", "-out", pair[0], "-keyout", pair[1], *more)
        return pair

    def authority(self, name):
        return self.make(name, "-addext", "basicConstraints=critical,CA:TRUE",
                         "-addext", "keyUsage=critical,keyCertSign")[0]

    def server(self, name="server", by=None, of="IP:127.0.0.1", days=2):
        """Signed by that authority, or by itself. No days: it is over as soon as it is made."""
        pair = self.make(name, "-addext", "basicConstraints=critical,CA:FALSE",
                         "-addext", "subjectAltName=" + of)
        if by:
            signed = self.path(name + ".signed.pem")
            self.openssl("x509", "-in", pair[0], "-days", str(days), "-out", signed,
                         "-CA", self.path(by + ".pem"), "-CAkey", self.path(by + ".key"))
            return signed, pair[1]
        return pair

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.dir, ignore_errors=True)


class Relay:
    """Passes bytes on to a port of this machine and remembers what callers sent. With a pair of
    files it is the end of TLS; without one it sees what is on the wire."""

    def __init__(self, target, pair=None):
        self.target, self.context = target, None
        self.sent = bytearray()  # by callers
        self.lock = threading.Condition()
        self.begun = self.over = 0
        if pair:
            self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.context.load_cert_chain(*pair)
            self.context.set_alpn_protocols(["http/1.1"])
        self.loop = asyncio.new_event_loop()
        self.loop.set_exception_handler(lambda *_: None)  # callers may leave as they like
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.ready = threading.Event()
        self.thread.start()
        check(self.ready.wait(SAFETY), "the relay did not start")

    def run(self):
        asyncio.set_event_loop(self.loop)
        start = asyncio.start_server(self.serve, "127.0.0.1", 0, ssl=self.context)
        self.server = self.loop.run_until_complete(start)
        self.port = self.server.sockets[0].getsockname()[1]
        self.ready.set()
        self.loop.run_forever()

    async def serve(self, reader, writer):
        with self.lock:
            self.begun += 1
        to_reader, to_writer = await asyncio.open_connection("127.0.0.1", self.target)
        await asyncio.gather(self.copy(reader, to_writer, self.sent), self.copy(to_reader, writer, None))
        with self.lock:
            self.over += 1
            self.lock.notify_all()

    async def copy(self, reader, writer, keep):
        try:
            while data := await reader.read(65536):
                if keep is not None:
                    with self.lock:
                        keep += data
                writer.write(data)
                await writer.drain()
        except (ConnectionError, ssl.SSLError):
            pass
        writer.close()

    def all_sent(self):
        """What callers sent, once each that came has gone."""
        with self.lock:
            check(self.lock.wait_for(lambda: self.begun and self.over == self.begun, SAFETY), "a caller stays")
            return bytes(self.sent)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(SAFETY)
