// Servers made with the official SDKs: mcp_peer.mjs MODULES v1|v2 stdio|http. Over HTTP its address is the first line.
import { createRequire } from 'node:module';
import { createServer } from 'node:http';
import { randomUUID } from 'node:crypto';
import { pathToFileURL } from 'node:url';
import path from 'node:path';

const [modules, kind, wire] = process.argv.slice(2);
const require = createRequire(path.join(modules, 'x.js'));
const load = name => import(pathToFileURL(require.resolve(name)));
const z = await load('zod/v4');
const numbers = { a: z.number(), b: z.number() };
const add = async ({ a, b }) => ({ content: [{ type: 'text', text: String(a + b) }], structuredContent: { sum: a + b } });
const question = { messages: [{ role: 'user', content: { type: 'text', text: 'say the word heron' } }], maxTokens: 100 };
const heard = said => ({ content: [{ type: 'text', text: JSON.stringify(said) }] });
const listen = handler => {
  const server = createServer(handler).listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}/mcp`));
};
const body = async request => {
  let text = '';
  for await (const piece of request) text += piece;
  return text ? JSON.parse(text) : undefined;
};

if (kind === 'v1') {
  const { McpServer } = await load('@modelcontextprotocol/sdk/server/mcp.js');
  const make = () => {
    const server = new McpServer({ name: 'peer', version: '1' });
    server.registerTool('add', { description: 'Adds.', inputSchema: numbers, outputSchema: { sum: z.number() } }, add);
    server.registerTool('think', { description: 'Asks the model.' }, async () => heard(await server.server.createMessage(question)));
    return server;
  };
  if (wire === 'stdio') {
    const { StdioServerTransport } = await load('@modelcontextprotocol/sdk/server/stdio.js');
    await make().connect(new StdioServerTransport());
  } else {
    const { StreamableHTTPServerTransport } = await load('@modelcontextprotocol/sdk/server/streamableHttp.js');
    const sessions = {};
    listen(async (request, answer) => {
      let transport = sessions[request.headers['mcp-session-id']];
      if (!transport) {
        transport = new StreamableHTTPServerTransport({ sessionIdGenerator: randomUUID, onsessioninitialized: id => { sessions[id] = transport; } });
        await make().connect(transport);
      }
      await transport.handleRequest(request, answer, await body(request));
    });
  }
} else {
  const { McpServer, createMcpHandler, inputRequired } = await load('@modelcontextprotocol/server');
  const make = ({ era } = {}) => {
    const server = new McpServer({ name: 'peer', version: '2' });
    server.registerTool('add', { description: 'Adds.', inputSchema: z.object(numbers), outputSchema: z.object({ sum: z.number() }) }, add);
    server.registerTool('think', { description: 'Asks the model.' }, async context => {
      if (era !== 'modern') return heard(await context.mcpReq.requestSampling(question));
      const said = context.mcpReq.inputResponses?.q;
      return said ? heard(said) : inputRequired({ inputRequests: { q: { method: 'sampling/createMessage', params: question } } });
    });
    return server;
  };
  if (wire === 'stdio') {
    const { serveStdio } = await load('@modelcontextprotocol/server/stdio');
    serveStdio(make);
  } else {
    const { toNodeHandler } = await load('@modelcontextprotocol/node');
    listen(toNodeHandler(createMcpHandler(make)));
  }
}
