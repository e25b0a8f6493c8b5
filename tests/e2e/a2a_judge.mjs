/* a2a_judge.mjs - calls agents with the official client of A2A.
 *
 * usage: node a2a_judge.mjs MODULES URL TOKEN BINDING VERSION [CARD]
 *   BINDING  JSONRPC or HTTP+JSON; VERSION 1.0 or 0.3 (the client of that version); CARD: path of the card
 * Reads a JSON line for each task, answers with one:
 *   {"call": "card"|"send"|"stream"|"get"|"list"|"cancel"|"subscribe"|"push_set"|"push_get"|"push_list"|"push_delete",
 *    "args": [...]}
 *   -> {"value"} or {"error": {name, message, code}} */
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [, , folder, url, token, binding, version, card] = process.argv;
const name = version === "0.3" ? "a2a-sdk-0.3" : "@a2a-js/sdk";
const require = createRequire(join(folder, "x.js"));
const load = (what) => import(pathToFileURL(require.resolve(name + what)).href);
const { ClientFactory, ClientFactoryOptions, JsonRpcTransportFactory, RestTransportFactory, DefaultAgentCardResolver } =
  await load("/client");
const fetchImpl = (where, init = {}) =>
  fetch(where, { ...init, headers: { ...Object.fromEntries(new Headers(init.headers)), authorization: "Bearer " + token } });
const factory = new ClientFactory(ClientFactoryOptions.createFrom(ClientFactoryOptions.default, {
  transports: [new JsonRpcTransportFactory({ fetchImpl }), new RestTransportFactory({ fetchImpl })],
  preferredTransports: [binding], cardResolver: new DefaultAgentCardResolver({ fetchImpl }) }));
const client = await (card ? factory.createFromUrl(url, card) : factory.createFromUrl(url));
const modern = version !== "0.3";

function part(p) {
  if (!modern) return typeof p === "string" ? { kind: "text", text: p } : { kind: "data", data: p };
  return { content: typeof p === "string" ? { $case: "text", value: p } : { $case: "data", value: p },
           metadata: undefined, filename: "", mediaType: typeof p === "string" ? "text/plain" : "application/json" };
}

function config(taskId, { id = "", url, token = "", scheme, credentials = "" }) {
  if (!modern)
    return { url, ...(id && { id }), ...(token && { token }), ...(scheme && { authentication: { schemes: [scheme], credentials } }) };
  return { tenant: "", taskId, id, url, token, authentication: scheme ? { scheme, credentials } : undefined };
}

function request({ id, parts, context = "", task = "", configuration, push }) {
  if (push && modern)
    configuration = { acceptedOutputModes: [], returnImmediately: false, taskPushNotificationConfig: config("", push) };
  else if (push)
    configuration = { blocking: true, pushNotificationConfig: config("", push) };
  if (!modern)
    return { message: { kind: "message", messageId: id, role: "user", parts: parts.map(part),
                        ...(context && { contextId: context }), ...(task && { taskId: task }) }, configuration };
  return { tenant: "", metadata: undefined, configuration,
           message: { messageId: id, contextId: context, taskId: task, role: 1, parts: parts.map(part), metadata: undefined,
                      extensions: [], referenceTaskIds: [] } };
}

async function follow(stream, n = Infinity) {
  const events = [];
  for await (const e of stream) {
    events.push(modern ? { [e.payload.$case]: e.payload.value } : e);
    if (events.length >= n) break;
  }
  return events;
}

const calls = {
  card: () => client.getAgentCard?.() ?? client.agentCard,
  send: (m) => client.sendMessage(request(m)),
  stream: (m, n) => follow(client.sendMessageStream(request(m)), n),
  get: (id, historyLength) => client.getTask(modern ? { tenant: "", id, historyLength } : { id, historyLength }),
  list: (o = {}) => client.listTasks({ tenant: "", contextId: "", pageToken: "", pageSize: 50, status: 0, ...o }),
  cancel: (id) => client.cancelTask(modern ? { tenant: "", id, metadata: undefined } : { id }),
  subscribe: (id, n) => follow(client.resubscribeTask(modern ? { tenant: "", id } : { id }), n),
  push_set: (taskId, c) => modern ? client.createTaskPushNotificationConfig(config(taskId, c))
                                  : client.setTaskPushNotificationConfig({ taskId, pushNotificationConfig: config(taskId, c) }),
  push_get: (taskId, id) => client.getTaskPushNotificationConfig(modern ? { tenant: "", taskId, id }
                                                                        : { id: taskId, pushNotificationConfigId: id }),
  push_list: (taskId) => client.listTaskPushNotificationConfig(modern ? { tenant: "", taskId, pageSize: 0, pageToken: "" }
                                                                      : { id: taskId }),
  push_delete: (taskId, id) => client.deleteTaskPushNotificationConfig(
    modern ? { tenant: "", taskId, id } : { id: taskId, pushNotificationConfigId: id }),
};

async function answer(task) {
  try {
    return { value: (await calls[task.call](...(task.args ?? []))) ?? null };
  } catch (e) {
    return { error: { name: e.constructor.name, message: String(e.message), code: e.code ?? null } };
  }
}

process.stdout.write('{"ready":true}\n');
for await (const line of createInterface({ input: process.stdin }))
  process.stdout.write(JSON.stringify(await answer(JSON.parse(line))) + "\n");
