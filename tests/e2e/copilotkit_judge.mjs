/* copilotkit_judge.mjs - runs tasks with the client agent of CopilotKit.
 *
 * usage: node copilotkit_judge.mjs MODULES
 * Reads a JSON line for each task, answers with one:
 * Each has "url" and "token" of the runtime.
 *   {"do": "info", "transport"}                             -> {value}
 *   {"do": "run"|"connect", "agent", "thread", "transport",
 *    "messages", "tools", "run", "stop": type of event}     -> {value: {messages, state, events, errors}}
 * With "stop" the run is stopped when an event of that type has come. */
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { join } from "node:path";

const require = createRequire(join(process.argv[2], "x.js"));
const { ProxiedCopilotRuntimeAgent } = require("@copilotkit/core");
const where = (task) => ({ runtimeUrl: task.url, headers: { Authorization: `Bearer ${task.token}` } });

let errors = [];
const say = (...what) => errors.push(what.map(String).join(" "));
console.warn = console.error = say;
console.log = console.info = console.debug = () => {};
process.on("unhandledRejection", (e) => say("unhandled:", e));

/* What the client finds out about the runtime before its first run. */
async function info(task) {
  const agent = new ProxiedCopilotRuntimeAgent({ ...where(task), agentId: "any", transport: task.transport });
  const found = await agent.fetchRuntimeInfo();
  return { ...found, errors, agents: Object.fromEntries(Object.entries(found.agents).map(([id, a]) => [id, a.capabilities])) };
}

async function talk(task) {
  const agent = new ProxiedCopilotRuntimeAgent({ ...where(task), agentId: task.agent, threadId: task.thread,
    transport: task.transport ?? "rest", initialMessages: task.messages ?? [] });
  const events = [];
  const seen = { onEvent: ({ event }) => {
    events.push(event);
    if (event.type === task.stop) {
      task.stop = null;
      agent.abortRun();
    }
  } };
  if (task.do === "connect") await agent.connectAgent({ runId: task.run }, seen);
  else await agent.runAgent({ runId: task.run, tools: task.tools ?? [] }, seen);
  return { messages: agent.messages, state: agent.state, events, errors };
}

for await (const line of createInterface({ input: process.stdin })) {
  const task = JSON.parse(line);
  let answer;
  errors = [];
  try {
    answer = { value: await (task.do === "info" ? info(task) : talk(task)) };
  } catch (e) {
    answer = { error: String(e.stack) };
  }
  process.stdout.write(JSON.stringify(answer) + "\n");
}
