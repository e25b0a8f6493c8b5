// The official MCP clients and an artifact: mcp_artifacts.mjs MODULES v1|v2-legacy|v2-auto URL TOKEN.
// Reads it, subscribes, says "ready", and reads it again when it was told of a new version.
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import path from 'node:path';

const [modules, kind, url, token] = process.argv.slice(2);
const require = createRequire(path.join(modules, 'x.js'));
const load = name => import(pathToFileURL(require.resolve(name)));
const requestInit = { headers: { Authorization: `Bearer ${token}` } };
const info = { name: 'reader', version: '1' };
let client, updated;
const told = new Promise(resolve => { updated = n => resolve(n.params.uri); });

if (kind === 'v1') {
  const { Client } = await load('@modelcontextprotocol/sdk/client/index.js');
  const { StreamableHTTPClientTransport } = await load('@modelcontextprotocol/sdk/client/streamableHttp.js');
  const { ResourceUpdatedNotificationSchema } = await load('@modelcontextprotocol/sdk/types.js');
  client = new Client(info);
  client.setNotificationHandler(ResourceUpdatedNotificationSchema, updated);
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit }));
} else {
  const { Client, StreamableHTTPClientTransport } = await load('@modelcontextprotocol/client');
  client = new Client(info, { versionNegotiation: { mode: kind === 'v2-auto' ? 'auto' : 'legacy' } });
  client.setNotificationHandler('notifications/resources/updated', updated);
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit }));
}
const { resources } = await client.listResources();
const [artifact] = resources.filter(r => r.uri.includes('/artifacts/'));
const { resourceTemplates } = await client.listResourceTemplates();
const read = async () => (await client.readResource({ uri: artifact.uri })).contents[0];
const before = await read();
const missing = await client.readResource({ uri: artifact.uri + 'x' }).then(() => 0, e => e.code);
if (kind === 'v2-auto')
  await client.listen({ resourceSubscriptions: [artifact.uri] });
else
  await client.subscribeResource({ uri: artifact.uri });
console.log('ready');
const uri = await told;
const after = await read();
console.log(JSON.stringify({ artifact, uri, before, after, missing, templates: resourceTemplates.map(t => t.uriTemplate) }));
process.exit(0);
