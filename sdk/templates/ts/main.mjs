// @ts-check
// @NAME@: an entry that looks at words, one after the other.
//
//     uar plugin check .                                      does it work?
//     uar plugin check . count --args '{"text": "one three"}'   executes it, without a server
//
// uar_plugin.mjs beside this file is the SDK, uar_plugin.d.mts has its types. This file runs as it is; an editor checks
// it while you type, and so does: tsc --noEmit --checkJs --strict --lib es2022,dom --module nodenext main.mjs
import { Plugin, PluginError } from "./uar_plugin.mjs";

const plugin = new Plugin();

/** @type {import("./uar_plugin.mjs").Handler<{text: string}>} */
const count = async ({ run }, args) => {
    const words = args.text.split(/\s+/).filter(Boolean);
    if (!words.length)
        throw new PluginError("there are no words", { code: "EMPTY" });
    let longest = "";
    for (const [i, word] of words.entries()) {
        run.checkCancelled(); // throws RunCancelled when somebody cancels the run
        run.progress(i / words.length, `looking at ${word.slice(0, 40)}`);
        longest = word.length > longest.length ? word : longest;
    }
    await run.exportText(longest, "the longest word");
    return { words: words.length };
};

plugin.entry("count", count).run();
