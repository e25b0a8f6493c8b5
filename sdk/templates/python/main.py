"""@NAME@: an entry that looks at words, one after the other.

    uar plugin check .                                      does it work?
    uar plugin check . count --args '{"text": "one three"}'   executes it, without a server

uar_plugin.py beside this file is the SDK; it needs nothing else."""
from uar_plugin import Plugin, PluginError

plugin = Plugin()


@plugin.entry("count")
def count(ctx, args):  # or: async def
    words = args["text"].split()
    if not words:
        raise PluginError("there are no words", code="EMPTY")
    for i, word in enumerate(words):
        ctx.run.check_cancelled()  # raises RunCancelled when somebody cancels the run
        ctx.run.progress(i / len(words), f"looking at {word[:40]}")
    ctx.run.export_text(max(words, key=len), "the longest word")
    return {"words": len(words)}


plugin.run()
