/* openai_judge.mjs - runs tasks with the official client of the OpenAI API.
 *
 * usage: node openai_judge.mjs MODULES URL TOKEN
 * Reads a JSON line for each task, answers with one:
 *   {"call": "models"|"model"|"chat"|"chat_stream"|"chat_part"|"responses"|"responses_stream"|"response"|"cancel",
 *    "args": [...], "options": {...}} -> {"value"} or {"error": {status, code, type, param, message}} */
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { join } from "node:path";

const require = createRequire(join(process.argv[2], "x.js"));
const { OpenAI } = require("openai");
const client = new OpenAI({ baseURL: process.argv[3] + "/v1", apiKey: process.argv[4], maxRetries: 0 });

/* A stream with its events, and what the client's own helper folds them to. */
async function follow(stream, final) {
  const events = [];
  for await (const e of stream) events.push(e);
  return { events, final: await stream[final]() };
}

const calls = {
  models: async () => (await client.models.list()).data,
  model: (id) => client.models.retrieve(id),
  chat: (body, options) => client.chat.completions.create(body, options),
  chat_stream: (body, options) => follow(client.chat.completions.stream(body, options), "finalChatCompletion"),
  chat_part: async (body, n, options) => {
    const events = [];
    for await (const e of await client.chat.completions.create({ ...body, stream: true }, options)) {
      events.push(e);
      if (events.length >= n) break;
    }
    return events;
  },
  responses: (body, options) => client.responses.create(body, options),
  responses_stream: (body, options) => follow(client.responses.stream(body, options), "finalResponse"),
  response: (id) => client.responses.retrieve(id),
  response_stream: async (id, query) => {
    const events = [];
    for await (const e of await client.responses.retrieve(id, { ...query, stream: true })) events.push(e);
    return events;
  },
  cancel: (id) => client.responses.cancel(id),
};

async function answer(task) {
  try {
    return { value: (await calls[task.call](...(task.args ?? []), task.options)) ?? null };
  } catch (e) {
    return { error: { status: e.status ?? null, code: e.code ?? null, type: e.type ?? null, param: e.param ?? null,
                      message: String(e.message), name: e.constructor.name } };
  }
}

for await (const line of createInterface({ input: process.stdin }))
  process.stdout.write(JSON.stringify(await answer(JSON.parse(line))) + "\n");
