/** Types of uar_plugin.mjs: write a UAR plugin in TypeScript or JavaScript. */

export const PROTOCOL: "1";

export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json | undefined };
export type JsonObject = { readonly [key: string]: Json | undefined };

/** The run was cancelled: leave, after tidying up. Ends the run as canceled, not as failed. */
export class RunCancelled extends Error {
    constructor(reason?: string);
}

/** A failure with a code, and perhaps the hint that trying again may help. Refused exports throw one, too. */
export class PluginError extends Error {
    constructor(message: string, more?: { code?: string; details?: JsonObject; retriable?: boolean });
    readonly code: string;
    readonly details?: JsonObject;
    readonly retriable: boolean;
}

export interface ProgressMore {
    stage?: string;
    step?: number;
    stepTotal?: number;
    etaSeconds?: number;
    metrics?: JsonObject;
}

export interface ItemMore {
    label?: string;
    mime?: string;
    category?: "user" | "system";
    metadata?: JsonObject;
}

export type Item = ItemMore & { description?: string } & (
    | { type: "text"; text: string }
    | { type: "url"; url: string }
    | { type: "binary_url"; binary_url: string }
    | { type: "binary_url"; upload: string; bytes?: number; sha256?: string }
    | { type: "binary"; binary: string }
    | { type: "json"; json: Json }
);

export type Chunk = Uint8Array | ArrayBuffer | string;
export type Chunks = Iterable<Chunk> | AsyncIterable<Chunk>;

/** The run that a handler executes, and what it may tell about it. */
export interface Run {
    readonly id: string;
    readonly entryId: string;
    readonly attempt: number;
    /** The run was at work when the server stopped: the handler may have been called before. */
    readonly restarted: boolean;
    readonly rootId: string;
    readonly parentId?: string;
    readonly taskId?: string;
    readonly traceId?: string;
    /** Seconds; undefined: no limit. */
    readonly timeout?: number;

    /** Aborted with a RunCancelled when somebody asks the run to stop. */
    readonly signal: AbortSignal;
    readonly cancelled: boolean;
    readonly cancelReason: string;
    /** Throws RunCancelled once somebody has asked the run to stop. Call it in long loops. */
    checkCancelled(): void;
    /** Resolves after so long with false, or with true as soon as the run is cancelled. */
    waitCancelled(seconds: number): Promise<boolean>;

    /** How far the run is, from 0 to 1. The server passes on one report each 100 ms, and always the last. */
    progress(p?: number | null, message?: string, more?: ProgressMore): void;
    /** Names the stage that the run is in. */
    status(status: string, message?: string): void;

    /** These append an item and resolve with its id once it is stored for good. */
    exportText(text: string, description?: string, more?: ItemMore): Promise<string>;
    exportUrl(url: string, description?: string, more?: ItemMore): Promise<string>;
    exportBinaryUrl(url: string, description?: string, more?: ItemMore): Promise<string>;
    exportBinary(data: Uint8Array | ArrayBuffer, description?: string, more?: ItemMore): Promise<string>;
    /** Upload bytes of any size: an item of type binary_url, which the server itself serves. exportText and
     * exportBinary do so by themselves above 65,536 bytes. */
    exportFile(path: string, description?: string, more?: ItemMore): Promise<string>;
    exportStream(chunks: Chunks, description?: string, more?: ItemMore): Promise<string>;
    exportJson(value: Json, description?: string, more?: ItemMore): Promise<string>;
    /** Refers to an artifact that is stored already. */
    exportId(ref: string, description?: string, more?: ItemMore): Promise<string>;
    export(item: Item): Promise<string>;

    /** Names the items that are the run's result, also when it fails or is cancelled. Without it a run that
     * succeeds counts all its items, another one none. */
    keep(...exportItemIds: string[]): void;
}

export interface Context {
    readonly run: Run;
    /** A line in the server's log, with the run's id. */
    log(message: unknown, level?: "debug" | "info" | "warn" | "error"): void;
}

export type Handler<A = any> = (ctx: Context, args: A) => Json | void | Promise<Json | void>;

export class Plugin {
    /** The function executes the entry with that id. */
    entry<A = any>(id: string, handler: Handler<A>): this;
    /** Serves until the server closes the wire. Standard output is the log from here on. */
    run(): void;
}
