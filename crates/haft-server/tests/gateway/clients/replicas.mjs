// A client made with the official TypeScript SDK (release 1 in the legacy era, release 2 in either) whose every request may
// arrive at another replica.
//
// Arguments: the folder that has node_modules, and the release. Reads the address, the key and the era from standard input
// and prints one report.

import { createRequire } from 'node:module';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { pathToFileURL } from 'node:url';

const MILLISECONDS_MAX = 60_000;
const TIMES = 4;

const [folder, release] = process.argv.slice(2);
const require = createRequire(join(folder, 'package.json'));
const load = (name) => import(pathToFileURL(require.resolve(name)));
const request = JSON.parse(await text(process.stdin));
const report = { echo: [], answers: { sample: [], elicit: [], roots: [] }, steps: [], cancelled: 0 };
setTimeout(() => {
  console.error(`no end within ${MILLISECONDS_MAX} ms`, JSON.stringify(report));
  process.exit(1);
}, MILLISECONDS_MAX).unref();

async function sdk() {
  if (release === '1') {
    const types = await load('@modelcontextprotocol/sdk/types.js');
    const schemas = {
      'sampling/createMessage': types.CreateMessageRequestSchema,
      'elicitation/create': types.ElicitRequestSchema,
      'roots/list': types.ListRootsRequestSchema,
    };
    return {
      ...(await load('@modelcontextprotocol/sdk/client/index.js')),
      ...(await load('@modelcontextprotocol/sdk/client/streamableHttp.js')),
      named: (method) => schemas[method],
    };
  }
  return { ...(await load('@modelcontextprotocol/client')), named: (method) => method };
}

const { Client, StreamableHTTPClientTransport, named } = await sdk();
const client = new Client(
  { name: 'client-of-replicas', version: '1.0.0' },
  {
    capabilities: { sampling: {}, elicitation: { form: {} }, roots: {} },
    versionNegotiation: { mode: request.era === 'modern' ? { pin: '2026-07-28' } : 'legacy' },
  },
);
client.setRequestHandler(named('sampling/createMessage'), () => ({
  role: 'assistant',
  content: { type: 'text', text: 'from the model' },
  model: 'none',
}));
client.setRequestHandler(named('elicitation/create'), () => ({
  action: 'accept',
  content: { name: 'Ada' },
}));
client.setRequestHandler(named('roots/list'), () => ({
  roots: [{ uri: 'file:///here', name: 'here' }],
}));

const call = (name, args = {}, options = undefined) =>
  release === '1'
    ? client.callTool({ name, arguments: args }, undefined, options)
    : client.callTool({ name, arguments: args }, options);

/**
 * Counted where the transport hands them over: the SDK forgets those that stand in one read with the answer. By token: the last
 * notification of a cancelled call may arrive during the next one.
 */
let steps = 0;
let counted = null;
function countSteps(transport) {
  const send = transport.send.bind(transport);
  transport.send = (message, options) => {
    if (message.params?.name === 'progress') counted = message.params._meta.progressToken;
    return send(message, options);
  };
  const deliver = transport.onmessage;
  transport.onmessage = (message, extra) => {
    const isProgress = message.method === 'notifications/progress';
    if (isProgress && message.params.progressToken === counted) steps += 1;
    deliver(message, extra);
  };
}

async function cancelled() {
  const cancel = new AbortController();
  const options = { onprogress: () => cancel.abort('enough'), signal: cancel.signal };
  try {
    await call('drip', {}, options);
    return false;
  } catch {
    return true;
  }
}

async function use() {
  const headers = { 'X-API-Key': request.key };
  const transport = new StreamableHTTPClientTransport(new URL(request.url), {
    requestInit: { headers },
  });
  await client.connect(transport);
  countSteps(transport);
  report.version = client.getNegotiatedProtocolVersion?.() ?? transport.protocolVersion ?? null;
  for (let n = 0; n < TIMES; n += 1) {
    report.tools = (await client.listTools()).tools.length;
    report.echo.push((await call('echo', { n })).structuredContent);
    for (const question of ['sample', 'elicit', 'roots']) {
      report.answers[question].push((await call(question)).structuredContent.result);
    }
    steps = 0;
    await call('progress', { steps: 3 }, { onprogress: () => {} });
    report.steps.push(steps);
    report.cancelled += (await cancelled()) ? 1 : 0;
  }
  if (request.era === 'legacy') await transport.terminateSession();
  await client.close();
}

let code = 0;
try {
  await use();
} catch (error) {
  console.error(error);
  code = 1;
}
process.stdout.write(`${JSON.stringify(report)}\n`, () => process.exit(code));
