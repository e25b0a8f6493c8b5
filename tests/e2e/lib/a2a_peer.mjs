/* a2a_peer.mjs - an agent made with the official SDK of A2A, for UAR to call.
 *
 * usage: node a2a_peer.mjs MODULES VERSION [PORT]      VERSION: 1.0 or 0.3 (the SDK of that version)
 * Says {"url"} and then a line for each message that it executes: {"executed": ID, "text", "task"}. A line "go" on
 * standard input lets tasks that wait go on. What it does the text of a message says:
 *   ask, auth     asks for something, and ends with what it is told
 *   slow          is at work until "go"
 *   parts         an artifact in pieces, and one with a file and data
 *   fail, reject  ends so; message: answers without a task; anything else is sent back */
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [, , folder, version, port = "0"] = process.argv;
const modern = version !== "0.3";
const require = createRequire(join(folder, "x.js"));
const load = (what) => import(pathToFileURL(require.resolve(what)).href);
const server = await load(modern ? "@a2a-js/sdk/server" : "a2a-sdk-0.3/server");
const say = (o) => process.stdout.write(JSON.stringify(o) + "\n");
let goes = [];
createInterface({ input: process.stdin }).on("line", () => { goes.forEach((go) => go()); goes = []; });

const states = { SUBMITTED: 1, WORKING: 2, COMPLETED: 3, FAILED: 4, CANCELED: 5, INPUT_REQUIRED: 6, REJECTED: 7, AUTH_REQUIRED: 8 };
const state = (s) => (modern ? states[s] : s.toLowerCase().replace("_", "-"));
const text = (t) => (modern ? { content: { $case: "text", value: t }, metadata: undefined, filename: "", mediaType: "text/plain" }
                            : { kind: "text", text: t });
const data = (d) => (modern ? { content: { $case: "data", value: d }, metadata: undefined, filename: "", mediaType: "application/json" }
                            : { kind: "data", data: d });
const file = (name, bytes) => (modern
  ? { content: { $case: "raw", value: Buffer.from(bytes) }, metadata: undefined, filename: name, mediaType: "application/octet-stream" }
  : { kind: "file", file: { name, mimeType: "application/octet-stream", bytes: Buffer.from(bytes).toString("base64") } });
const textOf = (m) => m.parts.map((p) => (modern ? (p.content?.$case === "text" ? p.content.value : "") : p.text ?? "")).join("");

function publish(bus, kind, value) {
  if (modern) bus.publish(server.AgentEvent[kind](value));
  else bus.publish({ kind: kind.replace(/[A-Z]/, (c) => "-" + c.toLowerCase()), ...value });
}

class Executor {
  async execute(context, bus) {
    const { taskId, contextId, userMessage, task } = context;
    const said = textOf(userMessage);
    say({ executed: userMessage.messageId, text: said, task: taskId });
    const message = (t) => ({ messageId: "s-" + Math.random(), role: modern ? 2 : "agent", parts: [text(t)], taskId, contextId,
                              metadata: undefined, extensions: [], referenceTaskIds: [], ...(modern ? {} : { kind: "message" }) });
    const status = (s, t) => publish(bus, "statusUpdate", { taskId, contextId, metadata: undefined,
      status: { state: state(s), timestamp: new Date().toISOString(), message: t ? message(t) : undefined },
      ...(modern ? {} : { final: !["WORKING", "SUBMITTED"].includes(s) }) });
    const artifact = (id, name, parts, more = {}) => publish(bus, "artifactUpdate", { taskId, contextId, metadata: undefined,
      append: false, lastChunk: true, ...more,
      artifact: { artifactId: id, name, description: "", parts, metadata: undefined, extensions: [] } });
    if (said === "message") {
      publish(bus, "message", message("no task was needed"));
      return bus.finished();
    }
    if (task) publish(bus, "task", { ...task, status: { ...task.status, state: state("WORKING"), message: undefined } });
    else
      publish(bus, "task", { id: taskId, contextId, artifacts: [], history: [userMessage], metadata: undefined,
                             status: { state: state("SUBMITTED"), timestamp: new Date().toISOString(), message: undefined } });
    if (!task && said === "ask") status("INPUT_REQUIRED", "Which city?");
    else if (!task && said === "auth") status("AUTH_REQUIRED", "May I call the bank?");
    else if (said === "fail") status("FAILED", "it broke");
    else if (said === "reject") status("REJECTED", "not my trade");
    else {
      status("WORKING", "thinking");
      if (said === "slow") {
        artifact("a", "Answer", [text("half ")], { lastChunk: false });
        await new Promise((go) => goes.push(go));
        if (this.gone?.has(taskId)) return bus.finished();
        artifact("a", "Answer", [text("whole")], { append: true });
      } else if (said === "parts") {
        artifact("a", "Answer", [text("one ")], { lastChunk: false });
        artifact("a", "Answer", [text("two")], { append: true });
        artifact("b", "Extra", [file("x.bin", [0, 255, 1, 254]), data({ n: 1 })]);
      } else artifact("a", "Answer", [text((task ? "told: " : "") + said)]);
      status("COMPLETED");
    }
    bus.finished();
  }

  async cancelTask(taskId, bus) {
    (this.gone ??= new Set()).add(taskId);
    say({ cancelled: taskId });
    publish(bus, "statusUpdate", { taskId, contextId: "", metadata: undefined, ...(modern ? {} : { final: true }),
                                   status: { state: state("CANCELED"), timestamp: new Date().toISOString(), message: undefined } });
    bus.finished();
  }
}

const http = createServer();
await new Promise((ready) => http.listen(Number(port), "127.0.0.1", ready));
const url = "http://127.0.0.1:" + http.address().port;
const common = { name: "judge", description: "An agent of the official SDK", version: "1", capabilities: { streaming: true },
                 defaultInputModes: ["text/plain"], defaultOutputModes: ["text/plain"],
                 skills: [{ id: "s", name: "s", description: "s", tags: ["s"] }] };
const card = modern
  ? { ...common, supportedInterfaces: [{ url: url + "/rpc", protocolBinding: "JSONRPC", protocolVersion: "1.0", tenant: "" }],
      securitySchemes: {}, securityRequirements: [], signatures: [] }
  : { ...common, url: url + "/rpc", preferredTransport: "JSONRPC", protocolVersion: "0.3.0" };
const handler = new server.DefaultRequestHandler(card, new server.InMemoryTaskStore(), new Executor());
const rpc = new server.JsonRpcTransportHandler(handler);

async function body(request) {
  let all = "";
  for await (const piece of request) all += piece;
  return JSON.parse(all);
}

http.on("request", async (request, response) => {
  if (request.method === "GET") {
    response.writeHead(200, { "content-type": "application/json" });
    return response.end(JSON.stringify(card));
  }
  const asked = await body(request);
  const answer = await rpc.handle(asked, new server.ServerCallContext(modern ? { requestedVersion: "1.0", user: new server.UnauthenticatedUser() } : undefined));
  if (!answer[Symbol.asyncIterator]) {
    response.writeHead(200, { "content-type": "application/json" });
    return response.end(JSON.stringify(answer));
  }
  response.writeHead(200, { "content-type": "text/event-stream" });
  response.flushHeaders();
  const write = (event) => response.write("data: " + JSON.stringify(event) + "\n\n");
  try {
    for await (const event of answer) write(event);
  } catch (refusal) {  // such as a subscription to a task that has ended since
    write({ jsonrpc: "2.0", id: asked.id, error: { code: -32004, message: refusal.message } });
  }
  response.end();
});
say({ url });
