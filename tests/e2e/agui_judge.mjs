/* agui_judge.mjs - judges streams with the official AG-UI clients.
 *
 * usage: node agui_judge.mjs MODULES
 * Reads a JSON line for each task, answers with one:
 *   {"stream": text, "old": bool}        judges raw frames, folds them -> {errors, messages, state, types}
 *   {"url", "token", "input", "old"}     runs HttpAgent against it     -> {errors, messages, state, types, failed}
 *   {"proto": base64}                    decodes frames of the protobuf binding -> {errors, events}
 *   {"capabilities": value}              judges what an agent says of itself */
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { join } from "node:path";

const require = createRequire(join(process.argv[2], "x.js"));
const { from, lastValueFrom, toArray } = require("rxjs");
const now = require("@ag-ui/client");
const old = require("ag-ui-client-0");
const { EventSchemas, AgentCapabilitiesSchema } = require("@ag-ui/core/schemas");
const proto = require("@ag-ui/proto");

let errors = [];
const say = (...what) => errors.push(what.join(" "));
console.warn = (...what) => say("warning:", ...what);
console.error = (...what) => say("error:", ...what);
console.log = console.info = console.debug = () => {};
process.on("unhandledRejection", (e) => say("unhandled:", e));

const ENDS = ["RUN_FINISHED", "RUN_ERROR"];
const FREE = ["value", "content", "snapshot", "patch", "delta", "responseSchema", "metadata", "arguments"];

function checkNulls(value, where) {
  if (value === null) return say("null at", where);
  if (typeof value !== "object") return;
  for (const [k, v] of Object.entries(value)) if (!FREE.includes(k)) checkNulls(v, `${where}/${k}`);
}

/* Judge 1: the bytes. */
function readFrames(text) {
  const events = [];
  if (text.includes("\r")) say("a carriage return");
  for (const frame of text.split("\n\n").slice(0, -1)) {
    const data = frame.split("\n").filter((l) => l.startsWith("data: "));
    if (!data.length) continue; // a comment, or when to come back
    if (data.length > 1) say("more than one data line");
    events.push(JSON.parse(data[0].slice(6)));
  }
  if (text.length && !text.endsWith("\n\n")) say("the last frame is not complete");
  return events;
}

function checkRuns(events) {
  let open = null;
  for (const e of events) {
    checkNulls(e, e.type);
    if (e.delta === "") say("empty delta in", e.type);
    if (e.type === "RUN_STARTED") {
      if (open) say("a run starts in another one");
      open = e;
    } else if (!open) {
      say(e.type, "outside of a run");
    } else if (ENDS.includes(e.type)) {
      if (e.type === "RUN_FINISHED" && (e.runId !== open.runId || e.threadId !== open.threadId))
        say("the ids of a run differ");
      open = null;
    }
  }
  if (open) say("a run without an end");
  if (!events.length) say("nothing");
}

/* Judge 2: the schemas, and no member that they do not name. */
function checkSchemas(events) {
  for (const e of events) {
    const parsed = EventSchemas.safeParse(e);
    if (!parsed.success) say(e.type, JSON.stringify(parsed.error.issues));
    const shape = EventSchemas.options.find((o) => {
      const type = o.shape.type;
      return (type.value ?? type._def?.values?.[0] ?? type.def?.values?.[0]) === e.type;
    })?.shape;
    if (!shape) say("no schema for", e.type);
    for (const key of Object.keys(e)) if (shape && !(key in shape)) say(e.type, "has an unknown member", key);
  }
}

/* Judge 3: the pipeline. */
async function checkOrder(events) {
  await lastValueFrom(from(structuredClone(events)).pipe(now.enforceEvents(), now.transformChunks(),
    now.verifyEvents(), toArray()));
}

/* What the client makes of it. */
async function foldEvents(api, events) {
  class Replay extends api.AbstractAgent {
    run() {
      return from(structuredClone(events));
    }
  }
  const agent = new Replay({ threadId: events[0]?.threadId });
  await agent.runAgent({}, {});
  return { messages: agent.messages, state: agent.state };
}

async function judgeStream(task) {
  const events = readFrames(task.stream);
  checkRuns(events);
  if (!task.old) {
    checkSchemas(events);
    await checkOrder(events);
  }
  return { ...(await foldEvents(task.old ? old : now, events)), events };
}

/* Frames of bytes, each with its length; what is decoded is encoded again and must be the same event. */
function judgeProto(task) {
  const bytes = Buffer.from(task.proto, "base64");
  const events = [];
  let at = 0;
  while (at + 4 <= bytes.length) {
    const n = bytes.readUInt32BE(at);
    const event = proto.decode(bytes.subarray(at + 4, at + 4 + n));
    const again = proto.decode(proto.encode(event));
    if (JSON.stringify(again) !== JSON.stringify(event)) say("another event after a round trip", event.type);
    events.push(event);
    at += 4 + n;
  }
  if (at !== bytes.length) say("bytes that are no frame");
  return { events };
}

function judgeCapabilities(task) {
  const parsed = AgentCapabilitiesSchema.safeParse(task.capabilities);
  if (!parsed.success) say(JSON.stringify(parsed.error.issues));
  return {};
}

async function runAgent(task) {
  const api = task.old ? old : now;
  const agent = new api.HttpAgent({ url: task.url, threadId: task.input.threadId,
    headers: { Authorization: `Bearer ${task.token}`, ...task.headers }, initialMessages: task.input.messages,
    initialState: task.input.state });
  const events = [];
  let failed = null;
  try {
    const { runId, forwardedProps = {}, resume, tools, context } = task.input;
    await agent.runAgent({ runId, forwardedProps, ...(resume && { resume }), ...(tools && { tools }),
      ...(context && { context }) },
      { onEvent: ({ event }) => { events.push(event); } });
  } catch (e) {
    failed = { message: String(e.message), status: e.status };
  }
  return { messages: agent.messages, state: agent.state, events, failed };
}

for await (const line of createInterface({ input: process.stdin })) {
  const task = JSON.parse(line);
  let answer = {};
  errors = [];
  try {
    if (task.proto !== undefined) answer = judgeProto(task);
    else if (task.capabilities) answer = judgeCapabilities(task);
    else answer = task.url ? await runAgent(task) : await judgeStream(task);
  } catch (e) {
    say(e.name, e.message);
  }
  process.stdout.write(JSON.stringify({ ...answer, errors }) + "\n");
}
