/* a2ui_judge.mjs - judges A2UI messages with the official schemas and processor.
 *
 * usage: node a2ui_judge.mjs MODULES
 * Reads a JSON line for each task, answers with one:
 *   {"messages": [...], "press"?: {surface, component, set?: {path: value}}}
 *     -> {errors, surfaces: {id: tree}, models: {id: data}, actions: [...]}
 *   {"schema": file, "values": [...]} -> {errors}: each value against a JSON Schema
 *   {"valid": [...]} -> {valid: bool}: messages against the schemas of A2UI */
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { dirname, join } from "node:path";
import { readFileSync } from "node:fs";

const require = createRequire(join(process.argv[2], "x.js"));
const Ajv2020 = require("ajv/dist/2020").default;
const addFormats = require("ajv-formats").default;
const core = await import(require.resolve("@a2ui/web_core/v0_9"));
const { basicCatalog } = await import(require.resolve("@a2ui/web_core/v0_9/basic_catalog"));
const { MessageProcessor, NodeResolver, peekValue } = core;

let schemas = dirname(require.resolve("@a2ui/web_core/v0_9"));
const read = (name) => JSON.parse(readFileSync(join(schemas, "schemas", name), "utf8"));
const ajv = new Ajv2020({ strict: false, allErrors: true });
addFormats(ajv);
ajv.addSchema(read("common_types.json"));
ajv.addSchema({ ...read("catalogs/basic/catalog.json"), $id: "https://a2ui.org/specification/v0_9/catalog.json" });
const fromServer = ajv.compile(read("server_to_client.json"));
const fromClient = ajv.compile(read("client_to_server.json"));

let errors = [];
const say = (...what) => errors.push(what.join(" "));
console.warn = (...what) => say("warning:", ...what);
console.error = (...what) => say("error:", ...what);
console.log = console.info = console.debug = () => {};
process.on("unhandledRejection", (e) => say("unhandled:", e));

function checkSchema(valid, message) {
  if (!valid(message)) say("schema:", JSON.stringify(message).slice(0, 400), ajv.errorsText(valid.errors).slice(0, 600));
}

/* What neither judge notices: a root, children that exist, ids once in a message. */
function checkComponents(components) {
  for (const [surface, parts] of Object.entries(components)) {
    if (!parts.root) say(surface, "has no root");
    for (const part of Object.values(parts)) {
      const named = [part.child, part.trigger, part.content].filter(Boolean);
      if (Array.isArray(part.children)) named.push(...part.children);
      else if (part.children) named.push(part.children.componentId);
      for (const id of named) if (!parts[id]) say(surface, part.id, "names", id, "which does not exist");
    }
  }
}

function gather(messages) {
  const components = {};
  for (const m of messages) {
    if (m.createSurface) components[m.createSurface.surfaceId] = {};
    if (m.deleteSurface) delete components[m.deleteSurface.surfaceId];
    if (!m.updateComponents) continue;
    const ids = m.updateComponents.components.map((c) => c.id);
    if (new Set(ids).size !== ids.length) say("an id twice in one message", ids);
    for (const c of m.updateComponents.components) components[m.updateComponents.surfaceId][c.id] = c;
  }
  return components;
}

function judge(task) {
  const actions = [];
  const processor = new MessageProcessor([basicCatalog], (action) => actions.push(action));
  processor.onSurfaceCreated((s) => s.onError.subscribe((e) => say("surface:", JSON.stringify(e))));
  for (const m of task.messages) {
    checkSchema(fromServer, m);
    try { processor.processMessages([m]); } catch (e) { say("processor:", e.message, JSON.stringify(m).slice(0, 300)); }
  }
  const components = gather(task.messages);
  checkComponents(components);
  const surfaces = {}, models = {};
  for (const id of Object.keys(components)) {
    const surface = processor.model.getSurface(id);
    if (!surface) { say("no surface", id); continue; }
    for (const [path, value] of Object.entries(task.press?.surface === id ? task.press.set ?? {} : {}))
      surface.dataModel.set(path, value);
    const resolver = new NodeResolver(surface, surface.catalog);
    const root = peekValue(resolver.rootNode);
    surfaces[id] = root ? JSON.parse(JSON.stringify(root.toJSON())) : null;
    models[id] = surface.dataModel.get("/");
    if (task.press?.surface === id) press(root, task.press.component);
  }
  for (const action of actions) checkSchema(fromClient, { version: "v0.9", action });
  return { surfaces, models, actions };
}

function press(root, component) {
  const seen = new Set();
  const walk = (node) => {
    if (!node || seen.has(node)) return;
    seen.add(node);
    const props = peekValue(node.props);
    if ((node.componentId ?? node.id) === component || node.component?.id === component) {
      props.action();
      return true;
    }
    for (const v of Object.values(props ?? {})) {
      for (const child of Array.isArray(v) ? v : [v]) {
        const inner = typeof child?.peek === "function" ? peekValue(child) : child;
        for (const node of Array.isArray(inner) ? inner : [inner]) if (node?.props && walk(node)) return true;
      }
    }
    return false;
  };
  if (!walk(root)) say("nothing to press:", component);
}

for await (const line of createInterface({ input: process.stdin })) {
  const task = JSON.parse(line);
  errors = [];
  let answer = {};
  try {
    if (task.schema) {
      const valid = new Ajv2020({ strict: false }).compile(JSON.parse(readFileSync(task.schema, "utf8")));
      for (const value of task.values) checkSchema(valid, value);
    } else if (task.valid) answer = { valid: task.valid.every((m) => fromServer(m)) };
    else answer = judge(task);
  } catch (e) { say("judge:", e.stack); }
  process.stdout.write(JSON.stringify({ errors, ...answer }) + "\n");
}
