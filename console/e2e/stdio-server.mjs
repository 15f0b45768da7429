// A small MCP server over standard input and output whose content is given as a JSON file: names, descriptions,
// schemas, results and errors are sent as they are, whatever they carry. `--many N` offers N ordinary tools instead.

import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";

const [, , path, count] = process.argv;
const content = path === "--many" ? many(Number(count)) : JSON.parse(readFileSync(path, "utf8"));

function many(number) {
  const tools = Array.from({ length: number }, (_, index) => ({
    name: `tool_${index}`,
    description: `Does the work number ${index} for the load test`,
    inputSchema: { type: "object", properties: { text: { type: "string" } } },
  }));
  return { tools };
}

function result({ method, params }) {
  switch (method) {
    case "initialize":
      return {
        protocolVersion: "2025-11-25",
        capabilities: { tools: {}, prompts: {}, resources: {} },
        serverInfo: content.serverInfo ?? { name: "content", version: "1" },
        instructions: content.instructions,
      };
    case "tools/list":
      return { tools: content.tools ?? [] };
    case "prompts/list":
      return { prompts: content.prompts ?? [] };
    case "prompts/get":
      return content.prompt ?? { messages: [] };
    case "resources/list":
      return { resources: content.resources ?? [] };
    case "resources/templates/list":
      return { resourceTemplates: content.templates ?? [] };
    case "resources/read":
      return content.resource ?? { contents: [] };
    case "tools/call":
      return content.results?.[params.name] ?? { content: [{ type: "text", text: "done" }] };
    default:
      return {};
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  const message = JSON.parse(line);
  if (message.id === undefined || message.method === undefined) continue;
  if (message.method === "tools/call" && content.stderr) process.stderr.write(`${content.stderr}\n`);
  process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", id: message.id, result: result(message) })}\n`);
}
