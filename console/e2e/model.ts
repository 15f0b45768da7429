// A scripted model on loopback that speaks OpenAI's chat completions as a stream.

import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export type Step =
  /** Text, sent in pieces. With `hold`, the stream stays open after the last piece. */
  { text: string[]; hold?: boolean } | { call: { name: string; arguments: unknown } };

export interface Model {
  /** The lines of a configuration file that use it. */
  config: string;
  script(...steps: Step[]): void;
  /** The bodies of the requests so far. */
  requests: unknown[];
  stop(): void;
}

function send(response: ServerResponse, delta: object, finish: string | null = null): void {
  const choice = { index: 0, delta, finish_reason: finish };
  const chunk = {
    id: "c1",
    object: "chat.completion.chunk",
    created: 1,
    model: "scripted",
    choices: [choice],
  };
  response.write(`data: ${JSON.stringify(chunk)}\n\n`);
}

function play(response: ServerResponse, step: Step, number: number): void {
  if ("call" in step) {
    const { name, arguments: args } = step.call;
    const call = { name, arguments: JSON.stringify(args) };
    send(response, {
      role: "assistant",
      tool_calls: [{ index: 0, id: `call_${number}`, type: "function", function: call }],
    });
    send(response, {}, "tool_calls");
  } else {
    send(response, { role: "assistant", content: "" });
    for (const text of step.text) send(response, { content: text });
    if (step.hold) return;
    send(response, {}, "stop");
  }
  response.end("data: [DONE]\n\n");
}

export async function startModel(): Promise<Model> {
  const steps: Step[] = [];
  const requests: unknown[] = [];
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += chunk;
    requests.push(JSON.parse(body || "{}"));
    const step = steps.shift() ?? { text: ["The script is over."] };
    response.writeHead(200, { "content-type": "text/event-stream" });
    play(response, step, requests.length);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    config: `agent: {model: "openai::scripted", base_url: "http://127.0.0.1:${port}/v1"}\n`,
    script: (...more) => void steps.push(...more),
    requests,
    stop: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}
