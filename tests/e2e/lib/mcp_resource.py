"""An MCP server over pipes with one resource: mcp_resource.py LOG FILE [modern].

The resource is what FILE has in it; who watches it is told when that changes."""
import fcntl
import json
import os
import signal
import sys
import threading

LOG, FILE, MODERN = sys.argv[1], sys.argv[2], "modern" in sys.argv[3:]
URI = "notes://today"
META = "io.modelcontextprotocol/subscriptionId"
lock, watchers = threading.Lock(), {}


def say(message):
    with lock:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def text():
    with open(FILE, encoding="utf-8") as f:
        return f.read()


def look():
    folder = os.open(os.path.dirname(FILE), os.O_RDONLY)
    fcntl.fcntl(folder, fcntl.F_NOTIFY, fcntl.DN_MODIFY | fcntl.DN_CREATE | fcntl.DN_RENAME | fcntl.DN_MULTISHOT)
    before = text()
    while True:
        signal.sigwait([signal.SIGIO])
        now = text()
        if now == "die":
            os._exit(3)
        if now == before:
            continue
        before = now
        for key in list(watchers):
            params = {"uri": URI, **({"_meta": {META: key}} if MODERN else {})}
            say({"method": "notifications/resources/updated", "params": params})


def answer(m):
    method, params = m["method"], m.get("params", {})
    caps = {"tools": {}, "resources": {"subscribe": True, "listChanged": False}}
    if method == "initialize":
        if MODERN:
            return None
        return {"protocolVersion": params["protocolVersion"], "capabilities": caps, "serverInfo": {"name": "notes", "version": "1"}}
    if method == "server/discover" and MODERN:
        return {"supportedVersions": ["2026-07-28"], "capabilities": caps}
    if method == "tools/list":
        return {"tools": []}
    if method == "resources/read":
        return {"contents": [{"uri": params["uri"], "mimeType": "text/plain", "text": text()}]}
    if method == "resources/subscribe" and params["uri"] == URI and not MODERN:
        watchers["legacy"] = True
        return {}
    if method == "resources/unsubscribe" and not MODERN:
        watchers.pop("legacy", None)
        return {}
    return None


signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGIO])  # the thread takes it
threading.Thread(target=look, daemon=True).start()
for line in sys.stdin:
    m = json.loads(line)
    with open(LOG, "a", encoding="utf-8") as f:
        f.write(json.dumps(m) + "\n")
    if m.get("method") == "notifications/cancelled":
        watchers.pop(m["params"]["requestId"], None)
    if "id" not in m or "method" not in m:
        continue
    if m["method"] == "subscriptions/listen" and MODERN:
        wanted = m["params"]["notifications"]
        if URI in wanted.get("resourceSubscriptions", []):
            watchers[m["id"]] = True
        say({"method": "notifications/subscriptions/acknowledged", "params": {"notifications": wanted, "_meta": {META: m["id"]}}})
        continue
    result = answer(m)
    if result is None:
        say({"id": m["id"], "error": {"code": -32601, "message": "there is no such thing"}})
    else:
        say({"id": m["id"], "result": {**result, **({"resultType": "complete"} if MODERN else {})}})
