/** Write a UAR plugin in TypeScript or JavaScript; Node 18 or later is all it needs.
 *
 *     import { Plugin } from "./uar_plugin.mjs";
 *
 *     const plugin = new Plugin();
 *
 *     plugin.entry("greet", async (ctx, args) => {
 *         ctx.run.progress(0.5, "thinking");
 *         await ctx.run.exportText(`Hello ${args.name}`);
 *         return { length: args.name.length };
 *     });
 *
 *     plugin.run();
 *
 * What a handler returns is the run's result and must be JSON. Throw a PluginError for a failure
 * with a code of your own; anything else that is thrown is reported as PLUGIN_ERROR. Pass
 * `ctx.run.signal` to whatever takes an AbortSignal, and a cancel ends it. What is printed goes to
 * the server's log, never into the protocol. Types are in uar_plugin.d.mts, the protocol is
 * described in docs/plugins.md. */
import { createHash } from "node:crypto";
import { closeSync, constants, createReadStream, openSync, writeSync } from "node:fs";
import { Socket } from "node:net";
import { basename } from "node:path";
import { format } from "node:util";

export const PROTOCOL = "1";
const INLINE = 65536; // bytes of an item's content; larger ones are uploaded
const PIECE = 262144; // bytes of one piece of an upload
const AHEAD = 2; // pieces on their way at once

/** The run was cancelled: leave, after tidying up. Ends the run as canceled, not as failed. */
export class RunCancelled extends Error {
    constructor(reason) {
        super(reason || "cancelled");
        this.name = "RunCancelled";
    }
}

/** A failure with a code, and perhaps the hint that trying again may help. */
export class PluginError extends Error {
    constructor(message, { code = "PLUGIN_ERROR", details, retriable = false } = {}) {
        super(message);
        this.name = "PluginError";
        Object.assign(this, { code, details, retriable });
    }
}

/** Half of a surrogate pair is no text, and the server would not take the line. */
function wellFormed(json) {
    return json.replace(/\\\\|\\ud[89a-f][0-9a-f]{2}/g, (m) => (m === "\\\\" ? m : "\\ufffd"));
}

/** The same bytes, no piece larger than the server takes; one at least. */
async function* pieces(chunks) {
    let empty = true;
    for await (const chunk of chunks) {
        const bytes = typeof chunk === "string" ? Buffer.from(chunk) : asBuffer(chunk);
        for (let at = 0; at < bytes.length; at += PIECE) {
            empty = false;
            yield bytes.subarray(at, at + PIECE);
        }
    }
    if (empty)
        yield Buffer.alloc(0);
}

function asBuffer(data) {
    return Buffer.from(data.buffer ?? data, data.byteOffset, data.byteLength);
}

/** Puts another file in the place of a standard stream: the lowest free number is taken. Once the
 * stream is closed there is no way back: another file could get its number and be written to. */
function replace(fd, path, flags) {
    closeSync(fd);
    try {
        if (openSync(path, flags) === fd)
            return;
    } catch (e) {
        process.stderr.write(`uar_plugin: ${path}: ${e.message}\n`);
    }
    process.stderr.write(`uar_plugin: standard stream ${fd} could not be set aside\n`);
    process.exit(1);
}

/** All of it, before anything else happens: the process may exit next. */
function writeAll(fd, text) {
    const bytes = Buffer.from(text);
    for (let at = 0; at < bytes.length;)
        at += writeSync(fd, bytes, at);
}

/** Takes both sides of the wire for ourselves. Children of handlers inherit neither: what they
 * print is for the log, and what they read is empty. Where the streams cannot be opened again
 * (they belong to another user) they stay, and an empty line keeps noise off our messages. */
function takeWire() {
    const { O_RDONLY, O_WRONLY, O_APPEND, O_NONBLOCK } = constants;
    try {
        const source = openSync("/proc/self/fd/0", O_RDONLY | O_NONBLOCK);
        const sink = openSync("/proc/self/fd/1", O_WRONLY | O_APPEND);
        closeSync(openSync("/proc/self/fd/2", O_WRONLY | O_APPEND)); // or nothing is replaced
        replace(0, "/dev/null", O_RDONLY);
        replace(1, "/proc/self/fd/2", O_WRONLY | O_APPEND);
        return { input: new Socket({ fd: source }), write: (line) => writeAll(sink, line) };
    } catch {
        const write = process.stdout.write.bind(process.stdout);
        process.stdout.write = process.stderr.write.bind(process.stderr);
        return { input: process.stdin, write: (line) => write("\n" + line) };
    }
}

/** Lines of JSON to and from the server, and the answers to our requests. */
class Wire {
    #write;
    #waiting = new Map();
    #lastId = 0;
    lineBytes = 1048576;

    constructor(write) {
        this.#write = write;
    }

    send(message) {
        const line = wellFormed(JSON.stringify({ jsonrpc: "2.0", ...message })) + "\n";
        if (Buffer.byteLength(line) > this.lineBytes)
            throw new PluginError("larger than a message may be", { code: "PAYLOAD_TOO_LARGE" });
        this.#write(line);
    }

    notify(method, params) {
        this.send({ method, params });
    }

    request(method, params) {
        const id = ++this.#lastId;
        return new Promise((resolve, reject) => {
            this.send({ id, method, params });
            this.#waiting.set(id, { resolve, reject });
        });
    }

    answered({ id, result, error }) {
        const call = this.#waiting.get(id);
        this.#waiting.delete(id);
        if (error)
            call?.reject(new PluginError(error.message, { code: error.data?.code }));
        else
            call?.resolve(result);
    }
}

/** ctx.run: the run that a handler executes, and what it may tell about it. */
class Run {
    #wire;
    #abort = new AbortController();
    #uploads = 0;
    kept;
    cancelReason = "";

    constructor(wire, start) {
        this.#wire = wire;
        this.id = start.run_id;
        this.entryId = start.entry_id;
        this.attempt = start.attempt ?? 1;
        this.restarted = start.restarted ?? false;
        this.rootId = start.root_run_id ?? this.id;
        this.parentId = start.parent_run_id;
        this.taskId = start.task_id;
        this.traceId = start.trace_id;
        this.timeout = start.timeout_seconds;
    }

    get signal() {
        return this.#abort.signal;
    }

    get cancelled() {
        return this.signal.aborted;
    }

    checkCancelled() {
        if (this.cancelled)
            throw this.signal.reason;
    }

    waitCancelled(seconds) {
        if (this.cancelled)
            return Promise.resolve(true);
        return new Promise((resolve) => {
            const timer = setTimeout(() => over(false), Math.min(seconds * 1000, 2 ** 31 - 1));
            const heard = () => over(true);
            const over = (cancelled) => {
                clearTimeout(timer);
                this.signal.removeEventListener("abort", heard);
                resolve(cancelled);
            };
            this.signal.addEventListener("abort", heard);
        });
    }

    cancel(reason) {
        this.cancelReason = reason ?? "";
        this.#abort.abort(new RunCancelled(reason));
    }

    progress(p, message, { stage, step, stepTotal, etaSeconds, metrics } = {}) {
        this.#wire.notify("run.progress", {
            run_id: this.id, progress: p ?? undefined, message, stage, step, step_total: stepTotal,
            eta_seconds: etaSeconds, metrics,
        });
    }

    status(status, message) {
        this.#wire.notify("run.status", { run_id: this.id, status, message });
    }

    keep(...exportItemIds) {
        this.kept = [...(this.kept ?? []), ...exportItemIds];
    }

    exportText(text, description, more) {
        if (Buffer.byteLength(text) > INLINE)
            return this.exportStream([text], description, { mime: "text/plain; charset=utf-8", ...more });
        return this.export({ type: "text", text, description, ...more });
    }

    exportUrl(url, description, more) {
        return this.export({ type: "url", url, description, ...more });
    }

    exportBinaryUrl(url, description, more) {
        return this.export({ type: "binary_url", binary_url: url, description, ...more });
    }

    exportBinary(data, description, more) {
        const bytes = asBuffer(data);
        if (bytes.length > INLINE)
            return this.exportStream([bytes], description, more);
        return this.export({ type: "binary", binary: bytes.toString("base64"), description, ...more });
    }

    exportFile(path, description, more) {
        const chunks = createReadStream(path, { highWaterMark: PIECE });
        return this.exportStream(chunks, description, { label: basename(path), ...more });
    }

    async exportStream(chunks, description, more) {
        const uploaded = await this.upload(chunks);
        return this.export({ type: "binary_url", description, ...uploaded, ...more });
    }

    /** Sends bytes to the server; what the item that shows them must name. */
    async upload(chunks) {
        const upload = `u${++this.#uploads}`;
        const sha256 = createHash("sha256");
        const ahead = [];
        let offset = 0;
        for await (const piece of pieces(chunks)) {
            if (ahead.length === AHEAD)
                await ahead.shift();
            const answer = this.#wire.request("run.upload", {
                run_id: this.id, upload, offset, data: piece.toString("base64"),
            });
            answer.catch(() => {}); // told where it is awaited
            ahead.push(answer);
            offset += piece.length;
            sha256.update(piece);
        }
        await Promise.all(ahead);
        return { upload, bytes: offset, sha256: sha256.digest("hex") };
    }

    exportJson(value, description, more) {
        return this.export({ type: "json", json: value ?? null, description, ...more });
    }

    exportId(ref, description, more) {
        return this.exportUrl(`artifact://${ref}`, description, more);
    }

    async export(item) {
        const answer = await this.#wire.request("run.export", { run_id: this.id, ...item });
        return answer.export_item_id;
    }
}

class Context {
    #wire;

    constructor(wire, run) {
        this.#wire = wire;
        this.run = run;
    }

    log(message, level = "info") {
        this.#wire.notify("log", { run_id: this.run.id, level, message: String(message) });
    }
}

function isCancel(run, error) {
    return error instanceof RunCancelled || (run.cancelled && error?.name === "AbortError");
}

export class Plugin {
    #entries = new Map();
    #runs = new Map();
    #wire;

    entry(id, handler) {
        this.#entries.set(id, handler);
        return this;
    }

    #fail(run, error) {
        const known = error instanceof PluginError;
        if (!known && !isCancel(run, error))
            process.stderr.write(format(error) + "\n");
        const message = known ? error.message : String(error);
        const params = {
            run_id: run.id,
            code: known ? error.code : isCancel(run, error) ? "CANCELED" : "PLUGIN_ERROR",
            message: message.slice(0, 1000),
            details: known ? error.details : undefined,
            retriable: known ? error.retriable : undefined,
            result_refs: run.kept,
        };
        try {
            this.#wire.notify("run.error", params);
        } catch { // the run ends, if without its details
            const details = { left_out: "not JSON, or too large" };
            this.#wire.notify("run.error", { ...params, details });
        }
    }

    #finish(run, result) {
        const json = JSON.stringify(result ?? null);
        if (json === undefined)
            throw new PluginError("the result is not JSON");
        this.#wire.notify("run.result", { run_id: run.id, result: result ?? null, result_refs: run.kept });
    }

    async #execute(handler, run, args) {
        try {
            this.#finish(run, await handler(new Context(this.#wire, run), args));
        } catch (error) {
            this.#fail(run, error);
        } finally {
            this.#runs.delete(run.id);
        }
    }

    #start({ id, params }) {
        const handler = this.#entries.get(params.entry_id);
        if (!handler) {
            const message = `no entry "${params.entry_id}" in this plugin`;
            this.#wire.send({ id, error: { code: -32602, message } });
            return;
        }
        const run = new Run(this.#wire, params);
        this.#runs.set(run.id, run);
        this.#wire.send({ id, result: {} });
        this.#execute(handler, run, params.args);
    }

    #hello({ id, params }) {
        this.#wire.lineBytes = params?.limits?.line_bytes ?? this.#wire.lineBytes;
        const entries = [...this.#entries.keys()].sort();
        this.#wire.send({ id, result: { protocol: PROTOCOL, sdk: "typescript", ping: true, entries } });
    }

    #message(message) {
        const { id, method, params } = message;
        if (method === undefined)
            this.#wire.answered(message);
        else if (method === "hello")
            this.#hello(message);
        else if (method === "run.start")
            this.#start(message);
        else if (method === "run.cancel")
            this.#runs.get(params.run_id)?.cancel(params.reason);
        else if (method === "ping")
            this.#wire.send({ id, result: {} });
        else if (id !== undefined)
            this.#wire.send({ id, error: { code: -32601, message: `no method "${method}"` } });
    }

    /** Serves until the server closes the wire. Standard output is the log from here on. */
    run() {
        const { input, write } = takeWire();
        this.#wire = new Wire(write);
        let rest = "";
        input.setEncoding("utf8");
        input.on("data", (piece) => {
            const lines = (rest + piece).split("\n");
            rest = lines.pop();
            for (const line of lines)
                if (line.trim())
                    this.#message(JSON.parse(line));
        });
        input.on("end", () => {
            for (const run of this.#runs.values())
                run.cancel("the server is gone");
            process.exit(0); // handlers that do not listen must not keep the process
        });
        process.on("unhandledRejection", (error) => process.stderr.write(format(error) + "\n"));
    }
}
