"""Entries for the tests: each shows one thing a plugin can do."""
import asyncio
import base64
import hashlib
import json
import os
import resource
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "../../../../sdk/python"))

from uar_plugin import Plugin, PluginError, RunCancelled  # noqa: E402

plugin = Plugin()


def mark(args, ctx):
    """Leaves a line in a file: how often the handler really ran."""
    if "mark" in args:
        with open(args["mark"], "a") as f:
            f.write(ctx.run.id + "\n")


@plugin.entry("echo")
def echo(ctx, args):
    mark(args, ctx)
    print("printed, not protocol")
    return args["say"]


@plugin.entry("items")
def items(ctx, args):
    run = ctx.run
    ids = [run.export_text("hello", "a text", label="greeting", metadata={"k": 1}),
           run.export_url("http://x/y", "a link"),
           run.export_binary_url("http://x/z", "bytes elsewhere", mime="image/png"),
           run.export_binary(bytes(range(256)) * 256, "64 KiB", mime="application/octet-stream"),
           run.export_json({"deep": [1, None]}, category="system"),
           run.export_text("ä" * 20000, "a long text"),
           run.export_id("some-artifact")]
    if args.get("keep") is not None:
        run.keep(*[ids[i] for i in args["keep"]])
    return ids


@plugin.entry("many")
def many(ctx, args):
    ids = [ctx.run.export_text(f"item {i}" + "." * args.get("pad", 0)) for i in range(args["n"])]
    if args.get("keep"):
        ctx.run.keep(*reversed(ids))
    if args.get("fail"):
        raise PluginError("after the items")
    if args.get("wait"):
        ctx.run.progress(0.5)
        ctx.run.flag.wait()
        raise RunCancelled()


@plugin.entry("burst")
def burst(ctx, args):
    for i in range(args["n"]):
        ctx.run.progress(i / args["n"], f"step {i}", step=i, step_total=args["n"])
    ctx.run.status("resting", "all said")
    wait_for(ctx, args)


def wait_for(ctx, args):
    while not os.path.exists(args["file"]):
        ctx.run.check_cancelled()
        ctx.run.wait_cancelled(0.01)


@plugin.entry("gate")
@plugin.entry("gate_once")
def gate(ctx, args):
    mark(args, ctx)
    if "export" in args:
        ctx.run.export_text(args["export"])
    ctx.run.progress(0.5, "at the gate again" if ctx.run.restarted else "at the gate")
    wait_for(ctx, args)
    return "through"


@plugin.entry("gate_async")
async def gate_async(ctx, args):
    mark(args, ctx)
    await ctx.run.export_text("from the loop")
    ctx.run.progress(0.5)
    while not os.path.exists(args["file"]):
        await asyncio.sleep(0.01)
    return "through"


@plugin.entry("late")
def late(ctx, args):
    """Finishes although it was cancelled: what it had is kept."""
    ctx.run.progress(0.1)
    ctx.run.flag.wait()
    ctx.run.export_text("what there was")
    if args.get("partial"):
        ctx.run.keep(ctx.run.export_text("partial"))
        raise RunCancelled()
    return "late"


@plugin.entry("fails")
def fails(ctx, args):
    raise PluginError("no more pages", code="QUOTA", details={"left": 0}, retriable=True)


@plugin.entry("raises")
def raises(ctx, args):
    raise ValueError("a bug")


@plugin.entry("context")
def context(ctx, args):
    ctx.log("a line of the log", "warn")
    return {"run_id": ctx.run.id, "trace_id": ctx.run.trace_id, "task_id": ctx.run.task_id,
            "attempt": ctx.run.attempt, "root": ctx.run.root_id, "parent": ctx.run.parent_id,
            "allowed": os.environ.get("LAB_ALLOWED"), "secret": os.environ.get("LAB_SECRET"),
            "cwd": os.getcwd(), "env_run": os.environ.get("UAR_RUN_ID"),
            "env_trace": os.environ.get("UAR_TRACE_ID")}


@plugin.entry("quick")
def quick(ctx, args):
    ctx.run.flag.wait()
    raise RunCancelled()


@plugin.entry("bell")
def bell(ctx, args):
    """Somebody outside hears of the cancel, whatever becomes of the log."""
    ctx.run.progress(0.5)
    ctx.run.flag.wait()
    with open(args["fifo"], "w") as f:
        f.write("cancelled\n")
    raise RunCancelled()


@plugin.entry("typed")
def typed(ctx, args):
    return "not an integer"


@plugin.entry("refused")
def refused(ctx, args):
    problems = []
    too_large = base64.b64encode(b"x" * 65537).decode()
    for attempt in (lambda: ctx.run.export(type="binary", binary=too_large),
                    lambda: ctx.run.export(type="x"),
                    lambda: ctx.run.export(type="binary", binary="Zh==")):
        try:
            attempt()
        except PluginError as e:
            problems.append(e.code)
    return problems


def stuff(n, seed=0):
    """n bytes, always the same ones."""
    block = b"".join(hashlib.sha256(b"%d %d" % (seed, i)).digest() for i in range(2048))
    return (block * (n // len(block) + 1))[:n]


@plugin.entry("large")
def large(ctx, args):
    run, n = ctx.run, args["n"]
    mark(args, ctx)
    ids = [run.export_binary(stuff(n), "large", label="big one.bin", mime="image/png"),
           run.export_text("ä" * 600000, "a long text"),
           run.export_stream((stuff(1000, i) for i in range(300)), mime="text/html", label="x.html"),
           run.export_stream([], "nothing")]
    with open(args["file"], "wb") as f:
        f.write(stuff(n))
    ids.append(run.export_file(args["file"]))
    return ids


@plugin.entry("large_async")
async def large_async(ctx, args):
    return await ctx.run.export_binary(stuff(args["n"]), mime="application/x-thing")


@plugin.entry("courier")
@plugin.entry("courier_once")
def courier(ctx, args):
    """Exports what it reads from a FIFO, a line each, until its end: an address and more."""
    fifo = f"{args['orders']}.{os.getpid()}"  # nobody but this process reads it
    os.mkfifo(fifo)
    ctx.run.progress(0.5, fifo)
    with open(fifo) as orders:
        for line in orders:
            try:
                ctx.run.export_binary_url(**json.loads(line))
            except PluginError as e:
                ctx.run.export_text(f"{e.code}: {e}")


@plugin.entry("bad_uploads")
def bad_uploads(ctx, args):
    """What is refused, by code; then one that is right."""
    run, told = ctx.run, []

    def say(method, **params):
        try:
            told.append(run.wire.request(method, {"run_id": run.id, **params}).result())
        except PluginError as e:
            told.append(e.code)
            why.append(str(e))
    why = []
    say("run.upload", upload="a", offset=5, data="")
    say("run.upload", upload="a", offset=0, data="Zh==")
    say("run.upload", upload="a", offset=0, data=base64.b64encode(b"x" * 262145).decode())
    say("run.upload", upload="a", offset=0, data="YWJj")
    say("run.upload", upload="a", offset=4, data="YWJj")
    say("run.export", type="binary_url", upload="b")
    say("run.export", type="binary_url", upload="a", bytes=4)
    say("run.export", type="binary_url", upload="a", sha256="0" * 64)
    say("run.export", type="binary_url", upload="a")
    for i in range(9):
        say("run.upload", upload=f"many{i}", offset=0, data="")
    say("run.upload", upload="many0", offset=0, data="YWJj")
    say("run.upload", upload="many0", offset=3, data="ZGVm")
    run.export(type="binary_url", upload="many0", bytes=6,
               sha256=hashlib.sha256(b"abcdef").hexdigest())
    run.export_json(why)
    return told


@plugin.entry("chatter")
def chatter(ctx, args):
    """Speaks at length, as often as it is passed on, until the gate opens."""
    i = 0
    while not os.path.exists(args["file"]):
        i += 1
        ctx.run.progress(min(i / 10000, 0.99), "\U0001f600" * 500, step=i)
        ctx.run.wait_cancelled(0.1)
    return i


@plugin.entry("late_for_ever")
def late_for_ever(ctx, args):
    ctx.run.progress(0.1)
    threading.Event().wait()  # which nobody sets


@plugin.entry("pours")
def pours(ctx, args):
    """One output of so many MiB, each with its number, and the most memory it took to make it."""
    block = bytearray(1 << 20)

    def blocks():
        for i in range(args["mib"]):
            block[:8] = i.to_bytes(8, "big")
            yield bytes(block)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    ctx.run.export_stream(blocks())
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before


@plugin.entry("fills")
def fills(ctx, args):
    """Uploads more than the disk has, and lives on."""
    try:
        ctx.run.export_stream(stuff(262144, i) for i in range(args["pieces"]))
    except PluginError as e:
        ctx.run.export_stream([b"small"])
        return e.code


@plugin.entry("rewrites")
def rewrites(ctx, args):
    first = ctx.run.export_text("first")
    try:
        ctx.run.export(type="text", text="second", export_item_id=first)
    except PluginError as e:
        return [e.code, first]


@plugin.entry("never_finished")
def never_finished(ctx, args):
    run = ctx.run
    run.wire.request("run.upload", {"run_id": run.id, "upload": "a", "offset": 0,
                                    "data": "YWJj"}).result()
    run.progress(0.5)
    wait_for(ctx, args)


plugin.run()
