// The official MCP clients against a server: mcp_judge.mjs MODULES v1|v2-legacy|v2-auto URL TOKEN.
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import path from 'node:path';

const [modules, kind, url, token] = process.argv.slice(2);
const require = createRequire(path.join(modules, 'x.js'));
const load = name => import(pathToFileURL(require.resolve(name)));
const requestInit = { headers: { Authorization: `Bearer ${token}` } };
const info = { name: 'judge', version: '1' };
let client, transport;

if (kind === 'v1') {
  const { Client } = await load('@modelcontextprotocol/sdk/client/index.js');
  const { StreamableHTTPClientTransport } = await load('@modelcontextprotocol/sdk/client/streamableHttp.js');
  client = new Client(info);
  transport = new StreamableHTTPClientTransport(new URL(url), { requestInit });
} else {
  const { Client, StreamableHTTPClientTransport } = await load('@modelcontextprotocol/client');
  client = new Client(info, { versionNegotiation: { mode: kind === 'v2-auto' ? 'auto' : 'legacy' } });
  transport = new StreamableHTTPClientTransport(new URL(url), { requestInit });
}
await client.connect(transport);
const { tools } = await client.listTools();
const call = args => client.callTool({ name: 'agent_echo', arguments: args });
const said = await call({ message: 'hello' });
const failed = await call({});
const run = await client.readResource({ uri: `uar://runs/${said.structuredContent.run_id}` });
const { resources } = await client.listResources();
const prompt = await client.getPrompt({ name: 'demo', arguments: { message: 'hi' } });
const era = client.getProtocolEra ? client.getProtocolEra() : 'legacy';
await client.close();
console.log(JSON.stringify({
  era, tools: tools.map(t => t.name), text: said.content[0].text, isError: failed.isError,
  run: JSON.parse(run.contents[0].text).status, resources: resources.length, prompt: prompt.messages.at(-1).content.text,
}));
process.exit(0);
