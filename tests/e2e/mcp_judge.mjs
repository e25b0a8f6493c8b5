// The official MCP clients against a server: mcp_judge.mjs MODULES v1|v2-legacy|v2-auto URL TOKEN,
// or over pipes: mcp_judge.mjs MODULES v1|v2-legacy|v2-auto PROGRAM "" ARGUMENT...
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import path from 'node:path';

const [modules, kind, url, token, ...args] = process.argv.slice(2);
const require = createRequire(path.join(modules, 'x.js'));
const load = name => import(pathToFileURL(require.resolve(name)));
const requestInit = { headers: { Authorization: `Bearer ${token}` } };
const info = { name: 'judge', version: '1' };
const capabilities = { elicitation: { form: {} } };
const asked = [];
const allow = async request => {
  asked.push(Object.keys(request.params.requestedSchema.properties)[0]);
  return { action: 'accept', content: { decision: 'allow' } };
};
let client, transport;

if (kind === 'v1') {
  const { Client } = await load('@modelcontextprotocol/sdk/client/index.js');
  const { StreamableHTTPClientTransport } = await load('@modelcontextprotocol/sdk/client/streamableHttp.js');
  const { StdioClientTransport } = await load('@modelcontextprotocol/sdk/client/stdio.js');
  const { ElicitRequestSchema } = await load('@modelcontextprotocol/sdk/types.js');
  client = new Client(info, { capabilities });
  client.setRequestHandler(ElicitRequestSchema, allow);
  transport = token ? new StreamableHTTPClientTransport(new URL(url), { requestInit })
    : new StdioClientTransport({ command: url, args });
} else {
  const { Client, StreamableHTTPClientTransport } = await load('@modelcontextprotocol/client');
  const { StdioClientTransport } = await load('@modelcontextprotocol/client/stdio');
  client = new Client(info, { capabilities, versionNegotiation: { mode: kind === 'v2-auto' ? 'auto' : 'legacy' } });
  client.setRequestHandler('elicitation/create', allow);
  transport = token ? new StreamableHTTPClientTransport(new URL(url), { requestInit })
    : new StdioClientTransport({ command: url, args });
}
await client.connect(transport);
const { tools } = await client.listTools();
const call = args => client.callTool({ name: 'agent_echo', arguments: args });
const said = await call({ message: 'hello' });
const failed = await call({});
const run = await client.readResource({ uri: `uar://runs/${said.structuredContent.run_id}` });
const { resources } = await client.listResources();
const prompt = await client.getPrompt({ name: 'demo', arguments: { message: 'hi' } });
const progress = [];
const options = { onprogress: p => progress.push(p.message) };
const talk = { name: 'agent_demo', arguments: { message: 'one two three '.repeat(50) } };
const told = await (kind === 'v1' ? client.callTool(talk, undefined, options) : client.callTool(talk, options));
const write = { name: 'agent_tools', arguments: { message: 'tool fs.write {"path":"a.txt","text":"x"}' } };
const written = await client.callTool(write);
const era = client.getProtocolEra ? client.getProtocolEra() : 'legacy';
await client.close();
console.log(JSON.stringify({
  era, tools: tools.map(t => t.name), text: said.content[0].text, isError: failed.isError,
  run: JSON.parse(run.contents[0].text).status, resources: resources.length, prompt: prompt.messages.at(-1).content.text,
  progress: progress.length, told: told.structuredContent.status, asked, written: written.structuredContent.status,
}));
process.exit(0);
