// The conformance plugin in TypeScript's JavaScript.
// @ts-check
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

/** @type {typeof import("../../../../sdk/typescript/uar_plugin.mjs")} */
const { Plugin, PluginError, RunCancelled } = await import(`${process.env.LAB_SDK}/uar_plugin.mjs`);

const plugin = new Plugin();

plugin.entry("echo", (_ctx, args) => {
    console.log("printed, not protocol");
    return args.say;
});

plugin.entry("context", (ctx) => {
    const run = ctx.run;
    ctx.log("a line of the log", "warn");
    return {
        run_id: run.id, attempt: run.attempt, root: run.rootId, parent: run.parentId ?? null,
        task_id: run.taskId ?? null, trace_id: run.traceId ?? null, timeout: run.timeout !== undefined,
    };
});

plugin.entry("args", (_ctx, args) => {
    const list = args.deep.list;
    return [list.length, list[0], list[1], list[2], list[4], args["a/b"], args.missing ?? null];
});

plugin.entry("items", async ({ run }, args) => {
    const bytes = Uint8Array.from({ length: 4096 }, (_, i) => i & 255);
    const ids = [
        await run.exportText("hello", "a text", { label: "greeting", metadata: { k: 1 } }),
        await run.exportUrl("http://x/y", "a link"),
        await run.exportBinaryUrl("http://x/z"),
        await run.exportBinary(bytes, "bytes", { mime: "application/x-test" }),
        await run.exportJson({ deep: [1, null] }),
        await run.exportId("some-artifact"),
    ];
    for (let n = args.times ?? 1; args.keep !== undefined && n > 0; n--)
        run.keep(ids[args.keep]);
    return ids;
});

plugin.entry("refused", async ({ run }) => {
    const codes = [];
    /** @type {any[]} */
    const items = [{ type: "text", text: "x".repeat(65537) }, { type: "odd", odd: "x" }];
    for (const item of items) {
        try {
            await run.export(item);
        } catch (error) {
            if (error instanceof PluginError)
                codes.push(error.code);
        }
    }
    return codes;
});

plugin.entry("large", async ({ run }, args) => {
    const bytes = Uint8Array.from({ length: 600000 }, (_, i) => (i * 7) & 255);
    await run.exportBinary(bytes, "many bytes", { mime: "application/x-test" });
    await run.exportText("x".repeat(100000));
    await run.exportFile(args.file, undefined, { label: "notes.txt", mime: "text/plain" });
});

/** @param {import("../../../../sdk/typescript/uar_plugin.mjs").Context} ctx @param {{file: string}} args */
async function waitForFile({ run }, args) {
    while (!existsSync(args.file))
        await sleep(10, undefined, { signal: run.signal });
    return "through";
}

plugin.entry("gate", (ctx, args) => {
    ctx.run.progress(0.5, ctx.run.restarted ? "at the gate again" : "at the gate");
    return waitForFile(ctx, args);
});

plugin.entry("report", (ctx, args) => {
    ctx.run.progress(0.25, "a quarter", { step: 1, stepTotal: 4, etaSeconds: 9, metrics: { pages: 3 } });
    ctx.run.status("resting", "all said");
    return waitForFile(ctx, args);
});

plugin.entry("burst", ({ run }, args) => {
    for (let i = 0; i <= args.n; i++)
        run.progress(i / args.n, `step ${i}`);
});

plugin.entry("partial", async ({ run }) => {
    run.progress(0.1);
    while (!await run.waitCancelled(1000));
    await run.exportText("left out");
    run.keep(await run.exportText("partial", run.cancelReason));
    throw new RunCancelled();
});

plugin.entry("deaf", async ({ run }, args) => {
    run.progress(0.1);
    while (!existsSync(args.file))
        await sleep(10);
    await run.exportText("too late");
});

plugin.entry("child", async ({ run }) => {
    spawnSync("sh", ["-c", "cat; printf half"], { stdio: "inherit" });
    await run.exportText("after");
});

plugin.entry("fails", (_ctx, args) => {
    const left = /** @type {any} */ (args.odd ? 1n : 0);
    throw new PluginError("no more pages", { code: args.code ?? "QUOTA", details: { left }, retriable: true });
});

plugin.entry("raises", () => {
    throw new TypeError("a bug");
});

plugin.entry("typed", () => "not an integer");

plugin.entry("unsound", () => /** @type {any} */ ({ no: 1n }));

plugin.entry("crash", async ({ run }) => {
    await run.exportText("before");
    process.exit(3);
});

plugin.run();
