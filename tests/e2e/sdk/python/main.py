"""The conformance plugin in Python; half of it async, to try both kinds of handlers."""
import asyncio
import os
import subprocess
import sys
import time

sys.path.insert(0, os.environ["LAB_SDK"])

from uar_plugin import Plugin, PluginError, RunCancelled  # noqa: E402

plugin = Plugin()


@plugin.entry("echo")
def echo(ctx, args):
    print("printed, not protocol")
    return args["say"]


@plugin.entry("context")
async def context(ctx, args):
    ctx.log("a line of the log", "warn")
    run = ctx.run
    return {"run_id": run.id, "attempt": run.attempt, "root": run.root_id, "parent": run.parent_id,
            "task_id": run.task_id, "trace_id": run.trace_id, "timeout": run.timeout is not None}


@plugin.entry("args")
def args_(ctx, args):
    items = args["deep"]["list"]
    return [len(items), items[0], items[1], items[2], items[4], args["a/b"], args.get("missing")]


@plugin.entry("items")
async def items(ctx, args):
    run = ctx.run
    ids = [await run.export_text("hello", "a text", label="greeting", metadata={"k": 1}),
           await run.export_url("http://x/y", "a link"),
           await run.export_binary_url("http://x/z"),
           await run.export_binary(bytes(range(256)) * 16, "bytes", mime="application/x-test"),
           await run.export_json({"deep": [1, None]}),
           await run.export_id("some-artifact")]
    if "keep" in args:
        for _ in range(args.get("times", 1)):
            run.keep(ids[args["keep"]])
    return ids


@plugin.entry("refused")
def refused(ctx, args):
    codes = []
    for item in ({"type": "text", "text": "x" * 65537}, {"type": "odd", "odd": "x"}):
        try:
            ctx.run.export(**item)
        except PluginError as e:
            codes.append(e.code)
    return codes


@plugin.entry("large")
def large(ctx, args):
    ctx.run.export_binary(bytes(i * 7 & 255 for i in range(600000)), "many bytes",
                          mime="application/x-test")
    ctx.run.export_text("x" * 100000)
    ctx.run.export_file(args["file"], label="notes.txt", mime="text/plain")


def wait_for_file(ctx, args):
    while not os.path.exists(args["file"]):
        ctx.run.check_cancelled()
        ctx.run.wait_cancelled(0.01)
    return "through"


@plugin.entry("gate")
async def gate(ctx, args):
    ctx.run.progress(0.5, "at the gate again" if ctx.run.restarted else "at the gate")
    while not os.path.exists(args["file"]):
        await asyncio.sleep(0.01)
    return "through"


@plugin.entry("report")
def report(ctx, args):
    ctx.run.progress(0.25, "a quarter", step=1, step_total=4, eta_seconds=9, metrics={"pages": 3})
    ctx.run.status("resting", "all said")
    return wait_for_file(ctx, args)


@plugin.entry("burst")
def burst(ctx, args):
    for i in range(args["n"] + 1):
        ctx.run.progress(i / args["n"], f"step {i}")


@plugin.entry("partial")
def partial(ctx, args):
    ctx.run.progress(0.1)
    while not ctx.run.wait_cancelled(1000):
        pass
    ctx.run.export_text("left out")
    ctx.run.keep(ctx.run.export_text("partial", ctx.run.cancel_reason))
    raise RunCancelled()


@plugin.entry("deaf")
def deaf(ctx, args):
    ctx.run.progress(0.1)
    while not os.path.exists(args["file"]):
        time.sleep(0.01)
    ctx.run.export_text("too late")


@plugin.entry("child")
def child(ctx, args):
    subprocess.run(["sh", "-c", "cat; printf half"], check=True)
    ctx.run.export_text("after")


@plugin.entry("fails")
async def fails(ctx, args):
    left = object() if args.get("odd") else 0
    raise PluginError("no more pages", code=args.get("code", "QUOTA"), details={"left": left}, retriable=True)


@plugin.entry("raises")
def raises(ctx, args):
    raise ValueError("a bug")


@plugin.entry("typed")
def typed(ctx, args):
    return "not an integer"


@plugin.entry("unsound")
def unsound(ctx, args):
    return {"no": object()}


@plugin.entry("crash")
def crash(ctx, args):
    ctx.run.export_text("before")
    os._exit(3)


plugin.run()
