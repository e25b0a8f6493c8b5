#!/usr/bin/env python3
"""The conformance suite of the Model Context Protocol against UAR as a server and as a client, of both eras."""
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
from urllib.parse import urlparse

from lib import BUILD, ROOT, SAFETY, Server, check, equal, main, test
from lib.mcp import offered
from lib.npm import modules, node

FIXTURE = os.path.join(ROOT, "tests", "e2e", "lib", "mcp_fixture.py")
# What a revision requires; the suite runs further scenarios that it does not score.
SCORED = {"2025-11-25": 30, "2026-07-28": 37}
SCORED_CLIENT = {"2025-11-25": 18, "2026-07-28": 32}
# Extensions of the authorization that UAR does not offer; no revision requires them.
NOT_OFFERED = {"auth/client-credentials-jwt", "auth/client-credentials-basic", "auth/enterprise-managed-authorization", "auth/dpop",
               "auth/dpop-nonce", "auth/wif-jwt-bearer"}
CLIENT = os.path.join(BUILD, "mcp-client")


class TokenProxy:
    """Adds the token to each request: the suite has none. Heads and bodies stay as they are."""

    def __init__(self, s):
        self.up, self.token = urlparse(s.url), s.token.encode()
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://localhost:{self.socket.getsockname()[1]}/mcp"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client = self.socket.accept()[0]
            except OSError:
                return
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client):
        """One request a connection: the answer says so, and the client opens another."""
        head = b""
        while b"\r\n\r\n" not in head:
            more = client.recv(65536)
            if not more:
                return client.close()
            head += more
        head, _, body = head.partition(b"\r\n\r\n")
        lines = [x for x in head.split(b"\r\n") if not x.lower().startswith(b"connection:")]
        lines += [b"Connection: close", b"Authorization: Bearer " + self.token]
        server = socket.create_connection((self.up.hostname, self.up.port))
        server.sendall(b"\r\n".join(lines) + b"\r\n\r\n" + body)
        threading.Thread(target=self.pump, args=(client, server), daemon=True).start()
        self.pump(server, client)
        server.close()
        return client.close()

    @staticmethod
    def pump(a, b):
        try:
            while data := a.recv(65536):
                b.sendall(data)
            b.shutdown(socket.SHUT_WR)
        except OSError:
            pass


def judged(revision, folder, *how):
    """(scored, unscored): names of scenarios with True where all checks passed; and all that was said."""
    program = os.path.join(modules("mcp-conformance"), "@modelcontextprotocol", "conformance", "dist", "index.js")
    p = subprocess.run([node(), program, *how, "--requirements", revision, "-o", folder],
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=SAFETY, cwd=folder,
                       env={**os.environ, "HOME": folder})
    summary = re.split(r"=== (?:SUITE )?SUMMARY ===", p.stdout)[-1]
    rest = set(re.findall(r"^  [✓✗] (\S+) \(", summary, re.M))
    all_of = {name: mark == "✓" for mark, name in re.findall(r"^([✓✗]) (\S+): \d+ passed", summary, re.M)}
    return {n: v for n, v in all_of.items() if n not in rest}, {n: all_of[n] for n in rest}, p.stdout


@test("official_suite_passes_in_both_eras", "MCP-08")
def conformance():
    servers = {"fixture": {"command": sys.executable, "args": [FIXTURE], "offer": True}}
    modules("mcp-conformance"), node()
    with Server(env={"UAR_MCP_SERVERS": json.dumps(servers)}) as s, tempfile.TemporaryDirectory() as folder:
        offered(s, "test_simple_text")
        proxy = TokenProxy(s)
        for revision, count in SCORED.items():
            scored, rest, said = judged(revision, folder, "server", "--url", proxy.url)
            print(f"server, {revision}: {sum(scored.values())} of {len(scored)} scored scenarios, "
                  f"{sum(rest.values())} of {len(rest)} others; not: {sorted(n for n, v in rest.items() if not v)}")
            equal([n for n, v in scored.items() if not v], [], said[-6000:])
            equal([n for n, v in rest.items() if not v], [], said[-6000:])
            equal(len(scored), count, said[-3000:])
        proxy.socket.close()
        check("mcp.not_offered" not in s.log(), s.log()[-2000:])


@test("official_suite_passes_for_connections_of_both_eras", "MCP-01 MCP-02 MCP-03")
def clients():
    modules("mcp-conformance"), node()
    for revision, count in SCORED_CLIENT.items():
        with tempfile.TemporaryDirectory() as folder:
            scored, rest, said = judged(revision, folder, "client", "--command", CLIENT)
        print(f"client, {revision}: {sum(scored.values())} of {len(scored)} scored scenarios, {sum(rest.values())} of {len(rest)} others")
        equal([n for n, v in scored.items() if not v], [], said[-6000:])
        equal(len(scored), count, said[-3000:])
        equal({n for n, v in rest.items() if not v}, NOT_OFFERED, said[-3000:])


if __name__ == "__main__":
    main()
