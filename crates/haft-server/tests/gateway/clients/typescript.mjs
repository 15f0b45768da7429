// A client made with the official TypeScript SDK: release 1 in the legacy era, release 2 in either.
//
// Arguments: the folder that has node_modules, and the release (1 or 2). Reads where the gateway is, and
// the era, from standard input and prints one report of everything it got.

import { readFile, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { pathToFileURL } from 'node:url';

const MILLISECONDS_MAX = 60_000;
const LOG_LEVEL = 'io.modelcontextprotocol/logLevel';

const [folder, release] = process.argv.slice(2);
const require = createRequire(join(folder, 'package.json'));
const load = (name) => import(pathToFileURL(require.resolve(name)));

const request = JSON.parse(await text(process.stdin));
const isModern = request.era === 'modern';
const report = {};
setTimeout(() => {
  console.error(`no end within ${MILLISECONDS_MAX} ms`, JSON.stringify(report));
  process.exit(1);
}, MILLISECONDS_MAX).unref();

/** Both releases behind one face: release 1 names handlers by schema, release 2 by method. */
async function sdk() {
  if (release === '1') {
    const types = await load('@modelcontextprotocol/sdk/types.js');
    const schemas = {
      'sampling/createMessage': types.CreateMessageRequestSchema,
      'elicitation/create': types.ElicitRequestSchema,
      'roots/list': types.ListRootsRequestSchema,
      'notifications/message': types.LoggingMessageNotificationSchema,
      'notifications/resources/updated': types.ResourceUpdatedNotificationSchema,
      'notifications/tools/list_changed': types.ToolListChangedNotificationSchema,
      'notifications/prompts/list_changed': types.PromptListChangedNotificationSchema,
    };
    return {
      ...(await load('@modelcontextprotocol/sdk/client/index.js')),
      ...(await load('@modelcontextprotocol/sdk/client/stdio.js')),
      ...(await load('@modelcontextprotocol/sdk/client/streamableHttp.js')),
      named: (method) => schemas[method],
    };
  }
  return {
    ...(await load('@modelcontextprotocol/client')),
    ...(await load('@modelcontextprotocol/client/stdio')),
    named: (method) => method,
  };
}

/** What the server says unasked. Whoever waits for it is woken. */
const heard = { logs: [], updated: [], changes: 0, wake: () => {} };
function note(change) {
  change();
  heard.wake();
}
const woken = () => new Promise((wake) => (heard.wake = wake));

/** Breaks the next stream of events after its first event, and notes where the SDK takes it up. */
const broken = { isNext: false, resumedFrom: [], refused: new Set() };
async function breakingFetch(url, init) {
  const resumedFrom = new Headers(init?.headers).get('last-event-id');
  if (resumedFrom) broken.resumedFrom.push(resumedFrom);
  const response = await fetch(url, init);
  if (resumedFrom && response.status === 400) note(() => broken.refused.add(resumedFrom));
  const isStream = response.headers.get('content-type')?.startsWith('text/event-stream');
  if (!broken.isNext || init?.method !== 'POST' || !isStream) return response;
  broken.isNext = false;
  const reader = response.body.getReader();
  let first = '';
  while (!first.includes('\n\n')) {
    first += Buffer.from((await reader.read()).value).toString();
  }
  await reader.cancel();
  let isSent = false;
  const body = new ReadableStream({
    pull(controller) {
      if (isSent) controller.error(new Error('the connection broke'));
      else controller.enqueue(new TextEncoder().encode(`${first.split('\n\n')[0]}\n\n`));
      isSent = true;
    },
  });
  return new Response(body, { status: response.status, headers: response.headers });
}

async function everyPage(ask, key) {
  const items = [];
  let cursor;
  do {
    const page = await ask({ cursor });
    items.push(...page[key]);
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  return items;
}

/** Looks again whenever the server says that there is something new. */
async function untilListed(ask, key, name) {
  for (;;) {
    const changes = heard.changes;
    if ((await everyPage(ask, key)).some((item) => item.name === name)) return true;
    while (heard.changes === changes) await woken();
  }
}

async function codeOf(call) {
  try {
    await call;
    return null;
  } catch (error) {
    return error.code;
  }
}

const { Client, StdioClientTransport, StreamableHTTPClientTransport, named } = await sdk();
const client = new Client(
  { name: 'client-of-a-test', version: '1.0.0' },
  {
    capabilities: { sampling: {}, elicitation: { form: {} }, roots: {} },
    versionNegotiation: { mode: isModern ? { pin: '2026-07-28' } : 'legacy' },
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
client.setNotificationHandler(named('notifications/message'), ({ params }) =>
  note(() => heard.logs.push(params.level)),
);
client.setNotificationHandler(named('notifications/resources/updated'), ({ params }) =>
  note(() => heard.updated.push(params.uri)),
);
for (const list of ['tools', 'prompts']) {
  client.setNotificationHandler(named(`notifications/${list}/list_changed`), () =>
    note(() => (heard.changes += 1)),
  );
}

const call = (name, args = {}, options = undefined) => {
  const meta = isModern ? { _meta: { [LOG_LEVEL]: 'error' } } : {};
  // Release 1 takes a schema of the result before the options.
  return release === '1'
    ? client.callTool({ name, arguments: args }, undefined, options)
    : client.callTool({ name, arguments: args, ...meta }, options);
};
const listTools = (params) => client.listTools(params);
const listPrompts = (params) => client.listPrompts(params);

/**
 * The steps that reached the SDK. They are counted where its transport hands them over: the SDK itself
 * forgets those that stand in one read with the answer.
 */
const steps = [];
function countSteps(transport) {
  const deliver = transport.onmessage;
  transport.onmessage = (message, extra) => {
    if (message.method === 'notifications/progress') {
      const { progress, total, message: words } = message.params;
      steps.push([progress, total, words]);
    }
    deliver(message, extra);
  };
}

async function progressOf(tool) {
  steps.length = 0;
  await call(tool, { steps: 3 }, { onprogress: () => {} });
  return [...steps];
}

/** Cancels a call that says it has begun. */
async function cancelled(tool) {
  const cancel = new AbortController();
  const onprogress = () => cancel.abort('enough');
  return (await codeOf(call(tool, {}, { onprogress, signal: cancel.signal }))) !== null;
}

async function tools() {
  report.tools = (await everyPage(listTools, 'tools')).map((tool) => tool.name);
  report.greet = (await call('greet', { name: 'you' })).structuredContent;
  report.echo = [];
  for (const tool of ['old_echo', 'new_echo']) {
    report.echo.push((await call(tool, { n: 1 })).structuredContent);
  }
  report.failed = (await call('old_fail')).isError;
  report.refused = await codeOf(call('old_rpc_error'));
  report.unknown = await codeOf(call('nobody_has_it'));
  report.blocks = (await call('old_every_content')).content.map((block) => block.type);
  report.progress = [await progressOf('old_progress'), await progressOf('new_progress')];
  report.cancelled = [await cancelled('old_drip'), await cancelled('new_drip')];
}

async function promptsAndResources() {
  report.prompts = (await everyPage(listPrompts, 'prompts')).map((prompt) => prompt.name);
  const prompt = await client.getPrompt({ name: 'old_prompt', arguments: { name: 'you' } });
  report.prompt = prompt.messages[0].content.text;
  const resources = await everyPage((params) => client.listResources(params), 'resources');
  report.resources = resources.map((resource) => resource.uri);
  const templates = await everyPage(
    (params) => client.listResourceTemplates(params),
    'resourceTemplates',
  );
  report.templates = templates.map((template) => template.uriTemplate);
  report.read = [];
  for (const uri of ['old://note', 'new://note', 'test://template/7/data']) {
    report.read.push((await client.readResource({ uri })).contents[0].text);
  }
  const { completion } = await client.complete({
    ref: { type: 'ref/prompt', name: 'completable-prompt' },
    argument: { name: 'department', value: 'E' },
  });
  report.completion = completion.values;
}

async function askedBack() {
  if (!isModern) await client.setLoggingLevel('error');
  report.logs = [];
  for (const tool of ['old_log', 'new_log']) {
    heard.logs.length = 0;
    await call(tool);
    report.logs.push([...heard.logs]);
  }
  report.answers = {};
  for (const question of ['sample', 'elicit', 'roots']) {
    report.answers[question] = [];
    for (const server of ['old', 'new']) {
      const { structuredContent } = await call(`${server}_${question}`);
      report.answers[question].push(structuredContent.result);
    }
  }
}

/** Hears of changes, in whatever way the era has. */
async function follow() {
  if (!isModern) {
    await client.subscribeResource({ uri: 'old://note' });
    return () => client.unsubscribeResource({ uri: 'old://note' });
  }
  const subscription = await client.listen({
    toolsListChanged: true,
    promptsListChanged: true,
    resourceSubscriptions: ['old://note'],
  });
  return () => subscription.close();
}

async function changes() {
  const unfollow = await follow();
  await call('old_add_tool', { name: 'late_tool' });
  await call('old_add_prompt', { name: 'late_prompt' });
  report.changed = [
    await untilListed(listTools, 'tools', 'late_tool'),
    await untilListed(listPrompts, 'prompts', 'late_prompt'),
  ];
  const registered = JSON.parse(await readFile(request.registry, 'utf8'));
  registered.tools.push({ ...registered.tools[0], name: 'late_greet' });
  await writeFile(request.registry, JSON.stringify(registered));
  report.changed.push(await untilListed(listTools, 'tools', 'late_greet'));
  await call('old_update_resource', { uri: 'old://note' });
  while (heard.updated.length === 0) await woken();
  report.updated = heard.updated[0];
  await unfollow();
  report.crash = (await call('crash')).isError;
  report.after = [];
  for (const tool of ['old_echo', 'new_echo']) {
    report.after.push((await call(tool, { n: 2 })).structuredContent);
  }
}

/** What becomes of a call whose stream breaks off. */
async function resumption() {
  // The streams of the two cancelled calls ended without an answer. The SDK asks for them again, and
  // would do so for ever were it not told that there is nothing to come.
  while (broken.refused.size < 2) await woken();
  broken.resumedFrom.length = 0;
  broken.isNext = true;
  report.resumed = { steps: await progressOf('old_progress'), from: broken.resumedFrom };
}

/** What a session answers that the SDK has ended with DELETE. */
async function ended(transport) {
  const { sessionId } = transport;
  await transport.terminateSession();
  const response = await fetch(request.url, {
    method: 'POST',
    headers: {
      'Content-Type': 'application/json',
      Accept: 'application/json, text/event-stream',
      'Mcp-Session-Id': sessionId,
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' }),
  });
  return response.status;
}

async function use() {
  const isHttp = request.transport === 'http';
  const [command, ...args] = request.command ?? [];
  const transport = isHttp
    ? new StreamableHTTPClientTransport(new URL(request.url), { fetch: breakingFetch })
    : new StdioClientTransport({ command, args });
  await client.connect(transport);
  countSteps(transport);
  // Release 1 keeps the version where only a transport over HTTP needs it.
  report.version = client.getNegotiatedProtocolVersion?.() ?? transport.protocolVersion ?? null;
  report.server = client.getServerVersion()?.name ?? null;
  await tools();
  await promptsAndResources();
  await askedBack();
  await changes();
  if (isHttp && !isModern) {
    await resumption();
    report.ended = await ended(transport);
  }
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
