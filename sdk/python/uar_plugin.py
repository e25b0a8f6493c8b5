"""Write a UAR plugin in Python; the standard library is all it needs.

    from uar_plugin import Plugin

    plugin = Plugin()

    @plugin.entry("greet")
    def greet(ctx, args):
        ctx.run.progress(0.5, "thinking")
        ctx.run.export_text(f"Hello {args['name']}")
        return {"length": len(args["name"])}

    plugin.run()

Handlers may be plain functions, each in a thread of its own, or `async def`, all in one event
loop; there the export methods are awaited. What a handler returns is the run's result and must be
JSON. Raise PluginError for a failure with a code of your own; any other exception is reported as
PLUGIN_ERROR. Whatever is printed goes to the server's log, never into the protocol.

The protocol is described in docs/plugins.md."""
import asyncio
import base64
import concurrent.futures
import contextvars
import hashlib
import inspect
import io
import itertools
import json
import mimetypes
import os
import sys
import threading
import traceback

__all__ = ["Plugin", "PluginError", "RunCancelled", "PROTOCOL"]
PROTOCOL = "1"
INLINE = 65536  # bytes of an item's content; larger ones are uploaded
PIECE = 262144  # bytes of one piece of an upload
AHEAD = 2  # pieces on their way at once


class RunCancelled(Exception):
    """The run was cancelled: leave, after tidying up. Ends the run as canceled, not as failed."""


class PluginError(Exception):
    """A failure with a code, and perhaps the hint that trying again may help."""

    def __init__(self, message, code="PLUGIN_ERROR", details=None, retriable=False):
        super().__init__(message)
        self.code, self.details, self.retriable = code, details, retriable


class Refused(PluginError):
    """The server refused a call, such as an export that is too large."""


class Wire:
    """Lines of JSON over the two ends of the process, and the answers to our requests."""

    def __init__(self, source, sink):
        self.source, self.sink = source, sink
        self.lock = threading.Lock()
        self.waiting, self.last_id = {}, 0
        self.line_bytes = 1048576  # until hello says otherwise

    def send(self, message):
        text = json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False, allow_nan=False)
        line = text.encode("utf-8", "replace") + b"\n"  # half a surrogate pair is no text
        if len(line) > self.line_bytes:
            raise Refused("larger than a message may be", "PAYLOAD_TOO_LARGE")
        with self.lock:
            self.sink.write(line)
            self.sink.flush()

    def notify(self, method, params):
        self.send({"method": method, "params": params})

    def request(self, method, params):
        """A future of the answer."""
        future = concurrent.futures.Future()
        with self.lock:
            self.last_id += 1
            number = self.last_id
            self.waiting[number] = future
        try:
            self.send({"id": number, "method": method, "params": params})
        except BaseException:
            self.waiting.pop(number, None)
            raise
        return future

    def answered(self, message):
        future = self.waiting.pop(message["id"], None)
        if future is None:
            return
        if "error" in message:
            error = message["error"]
            code = (error.get("data") or {}).get("code", "PLUGIN_ERROR")
            future.set_exception(Refused(error.get("message", "refused"), code))
        else:
            future.set_result(message.get("result"))

    def messages(self):
        for line in self.source:
            if line.strip():
                yield json.loads(line)


current = contextvars.ContextVar("the run that is executed here", default=None)


class Printed(io.TextIOBase):
    """Standard output: what a handler prints is a line of the log with its run's id."""

    def __init__(self, fallback):
        self.fallback = fallback

    def writable(self):
        return True

    def write(self, text):
        run = current.get()
        if run is None:
            return self.fallback.write(text)
        *lines, run.printed = (run.printed + text).split("\n")
        for line in lines:
            run.log(line)
        return len(text)

    def flush(self):
        self.fallback.flush()


def without_none(**members):
    return {k: v for k, v in members.items() if v is not None}


def read_file(path):
    with open(path, "rb") as f:
        while chunk := f.read(PIECE):
            yield chunk


def pieces(chunks):
    """The same bytes, no piece larger than the server takes; one at least."""
    empty = True
    for chunk in chunks:
        for at in range(0, len(chunk), PIECE):
            empty = False
            yield chunk[at:at + PIECE]
    if empty:
        yield b""


class Run:
    """ctx.run: the run that a handler executes, and what it may tell about it."""

    def __init__(self, wire, start):
        self.wire = wire
        self.id = start["run_id"]
        self.attempt = start.get("attempt", 1)
        self.restarted = start.get("restarted", False)  # may have been begun before the server stopped
        self.root_id = start.get("root_run_id", self.id)
        self.parent_id = start.get("parent_run_id")
        self.task_id, self.trace_id = start.get("task_id"), start.get("trace_id")
        self.timeout = start.get("timeout_seconds")
        self.cancel_reason = None
        self.kept = None
        self.uploads = itertools.count(1)
        self.printed = ""  # of a line that is not complete
        self.flag = threading.Event()

    def log(self, message, level="info"):
        self.wire.notify("log", {"run_id": self.id, "level": level, "message": str(message)})

    def progress(self, p=None, message=None, *, stage=None, step=None, step_total=None,
                 eta_seconds=None, metrics=None):
        """How far the run is, from 0 to 1. The server passes on one report each 100 ms, and always
        the last."""
        self.wire.notify("run.progress", without_none(
            run_id=self.id, progress=p, message=message, stage=stage, step=step,
            step_total=step_total, eta_seconds=eta_seconds, metrics=metrics))

    def status(self, status, message=None):
        """Names the stage that the run is in."""
        self.wire.notify("run.status", without_none(run_id=self.id, status=status, message=message))

    @property
    def cancelled(self):
        return self.flag.is_set()

    def check_cancelled(self):
        """Raises RunCancelled once somebody has asked the run to stop. Call it in long loops."""
        if self.flag.is_set():
            raise RunCancelled(self.cancel_reason or "cancelled")

    def wait_cancelled(self, seconds):
        """Sleeps at most so long; true as soon as the run is cancelled."""
        return self.flag.wait(seconds)

    def keep(self, *export_item_ids):
        """Names the items that are the run's result, also when it fails or is cancelled. Without
        it a run that succeeds counts all its items, another one none."""
        self.kept = (self.kept or []) + list(export_item_ids)

    def export_text(self, text, description=None, **more):
        data = text.encode("utf-8", "replace")
        if len(data) > INLINE:
            more.setdefault("mime", "text/plain; charset=utf-8")
            return self.export_stream([data], description, **more)
        return self.export(type="text", text=text, description=description, **more)

    def export_url(self, url, description=None, **more):
        return self.export(type="url", url=url, description=description, **more)

    def export_binary_url(self, url, description=None, **more):
        return self.export(type="binary_url", binary_url=url, description=description, **more)

    def export_binary(self, data, description=None, **more):
        """Up to 65,536 bytes are part of the item; more are uploaded and become a binary_url."""
        if len(data) > INLINE:
            return self.export_stream([data], description, **more)
        return self.export(type="binary", binary=base64.b64encode(data).decode(),
                           description=description, **more)

    def export_file(self, path, description=None, **more):
        """Uploads a file; its name is the label, its type guessed from it."""
        more.setdefault("label", os.path.basename(path))
        guess = mimetypes.guess_type(path)[0]
        if guess:
            more.setdefault("mime", guess)
        return self.export_stream(read_file(path), description, **more)

    def export_stream(self, chunks, description=None, **more):
        """Uploads bytes that come in chunks of any size: an item of type binary_url, which the
        server itself serves."""
        uploaded = self.upload(chunks)
        return Run.export(self, type="binary_url", description=description, **uploaded, **more)

    def upload(self, chunks):
        """Sends bytes to the server; what the item that shows them must name."""
        name, offset, sha256, ahead = f"u{next(self.uploads)}", 0, hashlib.sha256(), []
        for piece in pieces(chunks):
            if len(ahead) == AHEAD:
                ahead.pop(0).result()
            ahead.append(self.wire.request("run.upload", {
                "run_id": self.id, "upload": name, "offset": offset,
                "data": base64.b64encode(piece).decode()}))
            offset += len(piece)
            sha256.update(piece)
        for future in ahead:
            future.result()
        return {"upload": name, "bytes": offset, "sha256": sha256.hexdigest()}

    def export_json(self, value, description=None, **more):
        return self.export(type="json", json=value, description=description, **more)

    def export_id(self, ref, description=None, **more):
        """Refers to an artifact that is stored already."""
        return self.export(type="url", url=f"artifact://{ref}", description=description, **more)

    def export(self, **item):
        """Appends an item; its id once it is stored for good. Members besides the content:
        description, label, mime, category ("user" or "system"), metadata."""
        json_value = item.get("json")
        params = without_none(run_id=self.id, **item)
        if item.get("type") == "json":
            params["json"] = json_value
        return self.wire.request("run.export", params).result()["export_item_id"]


class AsyncRun(Run):
    """The same for `async def` handlers: exports are awaited."""

    async def export(self, **item):
        return await asyncio.to_thread(Run.export, self, **item)

    async def export_stream(self, chunks, description=None, **more):
        return await asyncio.to_thread(Run.export_stream, self, chunks, description, **more)


class Context:
    def __init__(self, run):
        self.run = run

    def log(self, message, level="info"):
        """A line in the server's log, with the run's id."""
        self.run.log(message, level)


class Plugin:
    def __init__(self):
        self.entries = {}
        self.runs = {}
        self.loop = None

    def entry(self, entry_id):
        """Decorator: the function executes the entry with that id."""
        def keep(fn):
            self.entries[entry_id] = fn
            return fn
        return keep

    # --- runs

    def last_line(self, run):
        if run.printed:
            run.log(run.printed)
            run.printed = ""

    def end_with(self, run, error):
        self.last_line(run)
        if isinstance(error, (RunCancelled, asyncio.CancelledError)):
            code, message, details, retriable = "CANCELED", str(error), None, None
        elif isinstance(error, PluginError):
            code, message = error.code, str(error)
            details, retriable = error.details, error.retriable
        else:
            traceback.print_exception(type(error), error, error.__traceback__)
            code, message = "PLUGIN_ERROR", f"{type(error).__name__}: {error}"
            details, retriable = None, None
        params = without_none(run_id=run.id, code=code, message=message[:1000], details=details,
                              retriable=retriable, result_refs=run.kept)
        try:
            run.wire.notify("run.error", params)
        except (TypeError, ValueError, PluginError):  # the run ends, if without its details
            run.wire.notify("run.error", {**params, "details": {"left_out": "not JSON, or too large"}})

    def finish(self, run, result):
        self.last_line(run)
        params = without_none(run_id=run.id, result_refs=run.kept)
        params["result"] = result
        try:
            run.wire.notify("run.result", params)
        except (TypeError, ValueError) as error:
            self.end_with(run, PluginError(f"the result is not JSON: {error}"))
        except PluginError as error:
            self.end_with(run, PluginError(f"the result is {error}"))

    def execute(self, fn, run, args):
        current.set(run)
        try:
            result = fn(Context(run), args)
        except BaseException as error:  # the run must end, whatever it was
            self.end_with(run, error)
        else:
            self.finish(run, result)
        finally:
            self.runs.pop(run.id, None)

    async def execute_async(self, fn, run, args):
        run.task = asyncio.current_task()
        current.set(run)
        try:
            run.check_cancelled()
            result = await fn(Context(run), args)
        except BaseException as error:
            self.end_with(run, error)
        else:
            self.finish(run, result)
        finally:
            self.runs.pop(run.id, None)

    def start(self, wire, message):
        params = message["params"]
        fn = self.entries.get(params["entry_id"])
        if fn is None:
            wire.send({"id": message["id"], "error": {
                "code": -32602, "message": f"no entry {params['entry_id']!r} in this plugin"}})
            return
        is_async = inspect.iscoroutinefunction(fn)
        run = (AsyncRun if is_async else Run)(wire, params)
        self.runs[run.id] = run
        wire.send({"id": message["id"], "result": {}})
        if is_async:
            asyncio.run_coroutine_threadsafe(
                self.execute_async(fn, run, params["args"]), self.event_loop())
        else:
            threading.Thread(target=self.execute, args=(fn, run, params["args"]),
                             name=f"run {run.id}", daemon=True).start()

    def event_loop(self):
        if self.loop is None:
            self.loop = asyncio.new_event_loop()
            threading.Thread(target=self.loop.run_forever, name="event loop", daemon=True).start()
        return self.loop

    def cancel(self, params):
        run = self.runs.get(params["run_id"])
        if run is None:
            return
        run.cancel_reason = params.get("reason")
        run.flag.set()
        task = getattr(run, "task", None)
        if task is not None:
            self.loop.call_soon_threadsafe(task.cancel)

    # --- the process

    def serve(self, wire):
        for message in wire.messages():
            method = message.get("method")
            if method is None:
                wire.answered(message)
            elif method == "hello":
                limits = (message.get("params") or {}).get("limits") or {}
                wire.line_bytes = limits.get("line_bytes", wire.line_bytes)
                wire.send({"id": message["id"], "result": {
                    "protocol": PROTOCOL, "sdk": "python", "ping": True,
                    "entries": sorted(self.entries)}})
            elif method == "ping":
                wire.send({"id": message["id"], "result": {}})
            elif method == "run.start":
                self.start(wire, message)
            elif method == "run.cancel":
                self.cancel(message["params"])
            elif "id" in message:
                wire.send({"id": message["id"], "error": {
                    "code": -32601, "message": f"no method {method!r}"}})

    def run(self):
        """Serves until the server closes the wire. Standard output is the log from here on.

        Children of handlers inherit neither side of the wire: standard input is empty."""
        source, sink = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        os.dup2(2, 1)
        sys.stdout.reconfigure(line_buffering=True)
        sys.stdout = Printed(sys.stdout)
        self.serve(Wire(source, sink))
        for run in list(self.runs.values()):
            run.flag.set()
        sys.stdout.flush()
        os._exit(0)  # handlers that do not listen must not keep the process
