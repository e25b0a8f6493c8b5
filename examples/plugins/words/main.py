"""Counts words. Run it with: uar trigger words count --args '{"text": "one two three"}' --wait"""
import os
import sys

# An installed SDK would be found without this.
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../sdk/python"))

from uar_plugin import Plugin  # noqa: E402

plugin = Plugin()


@plugin.entry("count")
def count(ctx, args):
    words = args["text"].split()
    pause = args.get("seconds_per_word", 0)
    ctx.run.status("counting", f"{len(words)} words to look at")
    for i, word in enumerate(words):
        ctx.run.check_cancelled()
        ctx.run.progress(i / len(words), f"looking at {word[:40]}", step=i, step_total=len(words))
        if pause:
            ctx.run.wait_cancelled(pause)
    if words:
        ctx.run.export_text(max(words, key=len), "the longest word")
    return {"words": len(words)}


plugin.run()
