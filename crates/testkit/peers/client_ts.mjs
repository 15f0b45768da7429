// The reference client of the official TypeScript SDK: release 1 in the legacy era, release 2 in
// either. Arguments: the folder that has node_modules, and the release (1 or 2). Reads the same
// request as client_py1.py and client_py2.py.

import { createRequire } from 'node:module';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { pathToFileURL } from 'node:url';

const PAGES_MAX = 100;
const MILLISECONDS_MAX = 30_000;
setTimeout(() => {
  console.error(`no end within ${MILLISECONDS_MAX} ms`);
  process.exit(1);
}, MILLISECONDS_MAX).unref();

const [folder, release] = process.argv.slice(2);
const require = createRequire(join(folder, 'package.json'));
const load = (name) => import(pathToFileURL(require.resolve(name)));

async function release1() {
  const sdk = '@modelcontextprotocol/sdk/client';
  const { Client } = await load(`${sdk}/index.js`);
  const { StdioClientTransport } = await load(`${sdk}/stdio.js`);
  const { StreamableHTTPClientTransport } = await load(`${sdk}/streamableHttp.js`);
  const { SSEClientTransport } = await load(`${sdk}/sse.js`);
  const { WebSocketClientTransport } = await load(`${sdk}/websocket.js`);
  return {
    Client,
    StdioClientTransport,
    StreamableHTTPClientTransport,
    SSEClientTransport,
    WebSocketClientTransport,
  };
}

async function release2() {
  const client = await load('@modelcontextprotocol/client');
  const { StdioClientTransport } = await load('@modelcontextprotocol/client/stdio');
  return { ...client, StdioClientTransport };
}

function transport(sdk, request) {
  switch (request.transport) {
    case 'stdio': {
      const [command, ...args] = request.command;
      return new sdk.StdioClientTransport({ command, args, env: { PATH: process.env.PATH, ...request.env } });
    }
    case 'http':
      return new sdk.StreamableHTTPClientTransport(new URL(request.url));
    case 'sse':
      return new sdk.SSEClientTransport(new URL(request.url));
    default:
      if (!sdk.WebSocketClientTransport) {
        throw new Error('release 2 of the TypeScript SDK has no WebSocket: use release 1');
      }
      return new sdk.WebSocketClientTransport(new URL(request.url));
  }
}

async function call(client, name, args) {
  try {
    return { result: await client.callTool({ name, arguments: args }) };
  } catch (error) {
    const { code, message, data } = error;
    return { error: { code, message, data } };
  }
}

async function listTools(client) {
  const tools = [];
  let cursor;
  for (let page = 0; page < PAGES_MAX; page += 1) {
    const answer = await client.listTools({ cursor });
    tools.push(...answer.tools);
    cursor = answer.nextCursor;
    if (cursor === undefined) break;
  }
  return tools;
}

const request = JSON.parse(await text(process.stdin));
const sdk = release === '1' ? await release1() : await release2();
const mode = request.era === 'modern' ? { pin: '2026-07-28' } : 'legacy';
const client = new sdk.Client(
  { name: 'reference-client', version: '1.0.0' },
  { capabilities: {}, versionNegotiation: { mode } },
);
const connection = transport(sdk, request);
await client.connect(connection);
const tools = await listTools(client);
const results = [];
for (const { name, arguments: args } of request.calls) {
  results.push(await call(client, name, args));
}
const seen = {
  // Release 1 keeps the version where only a transport over HTTP needs it.
  protocolVersion: client.getNegotiatedProtocolVersion?.() ?? connection.protocolVersion ?? null,
  serverInfo: client.getServerVersion(),
  capabilities: client.getServerCapabilities(),
  tools,
  results,
};
await client.close();
process.stdout.write(`${JSON.stringify(seen)}\n`, () => process.exit(0));
