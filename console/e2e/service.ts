// A real `haft serve` in a folder of its own, with a key and real MCP servers.

import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** The binary under test and the folder of installed MCP servers: `cargo xtask test` sets both. */
const BIN = process.env.HAFT_BIN ?? "";
const PEERS = process.env.HAFT_PEERS ?? "";

export const EVERYTHING = [
  join(PEERS, "npm/node_modules/@modelcontextprotocol/server-everything/dist/index.js"),
  "stdio",
];

/** The ids of the processes whose command line ends so. */
export function processes(ending: string): number[] {
  const ids = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  const runs = (id: string) => {
    try {
      const line = readFileSync(`/proc/${id}/cmdline`, "utf8").replaceAll("\0", " ").trim();
      return line.endsWith(ending);
    } catch {
      // It ended meanwhile.
      return false;
    }
  };
  return ids.filter(runs).map(Number);
}

export interface Service {
  url: string;
  folder: string;
  key: string;
  haft(...args: string[]): string;
  /** Calls a tool as an MCP client with a call key does, and returns the answer as text. */
  callAsClient(tool: string, args: unknown): Promise<string>;
  stop(): Promise<void>;
  restart(): Promise<void>;
}

/** A server that sends the content of a JSON file, or many tools. */
export const CONTENT_SERVER = join(import.meta.dirname, "stdio-server.mjs");

export interface Options {
  /** Lines below `servers:`, beside the real server `everything`. */
  servers?: string;
  /** More of the configuration file. */
  more?: string;
  /** Without keys the page opens at once. Its user may approve calls, which otherwise needs a key. */
  keyless?: boolean;
  /** Files that are there before the service starts. */
  prepare?: (folder: string) => void;
}

const CONFIG = (port: number, { servers = "", more = "", keyless = false }: Options) => `
api: {listen: "127.0.0.1:${port}"}
registry: {dir: tools}
servers:
  everything:
    command: ${process.execPath}
    args: ${JSON.stringify(EVERYTHING)}
${servers}
tools:
  - {name: get-sum, mcp: everything, approval: ask}
policy:
  allowed_commands: ["${process.execPath} ..."]
  rules:
    - name: no zeros
      match: {tool: get-sum, when: "args.a == 0.0 && args.b == 0.0"}
      effect: deny
      reason: there is nothing to add
${keyless ? "  approvals: caller\n" : ""}${more}`;

export async function startService(options: Options = {}): Promise<Service> {
  if (!BIN) throw new Error("HAFT_BIN names no binary");
  const folder = mkdtempSync(join(tmpdir(), "haft-console-"));
  const tools = join(folder, "tools");
  mkdirSync(tools);
  writeFileSync(join(tools, "tools.json"), '{"tools": []}');
  writeFileSync(join(tools, "mcp.json"), '{"mcp_servers": {}}');
  options.prepare?.(folder);
  const configure = (port: number) => writeFileSync(join(folder, "haft.yaml"), CONFIG(port, options));
  configure(0);
  const haft = (...args: string[]) =>
    execFileSync(BIN, args, { cwd: folder, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
  const create = (scope: string, name: string) =>
    options.keyless ? "" : haft("keys", "create", "--scope", scope, "--name", name).trim();
  const key = create("admin", "me");
  const clientKey = create("call", "client");
  let running = await serve(folder);
  const port = Number(new URL(running.url).port);
  return {
    url: running.url,
    folder,
    key,
    haft,
    callAsClient: (tool, args) => callAsClient(running.url, clientKey, tool, args),
    async stop() {
      await end(running.child);
      rmSync(folder, { recursive: true, force: true });
    },
    async restart() {
      await end(running.child);
      configure(port);
      running = await serve(folder);
    },
  };
}

function serve(folder: string): Promise<{ child: ChildProcess; url: string }> {
  const child = spawn(BIN, ["--json", "serve"], { cwd: folder, stdio: ["ignore", "pipe", "pipe"] });
  return new Promise((resolve, reject) => {
    let [out, errors] = ["", ""];
    child.stderr.on("data", (chunk) => {
      errors += chunk;
    });
    child.stdout.on("data", (chunk) => {
      out += chunk;
      const url = /"listening":\s*"([^"]+)"/.exec(out)?.[1];
      if (url) resolve({ child, url });
    });
    child.on("exit", (code) => reject(new Error(`haft ended with ${code}: ${errors}`)));
  });
}

function end(child: ChildProcess): Promise<void> {
  return new Promise((resolve) => {
    if (child.exitCode !== null) return resolve();
    child.removeAllListeners("exit");
    child.on("exit", () => resolve());
    child.kill("SIGTERM");
  });
}

async function callAsClient(url: string, key: string, tool: string, args: unknown): Promise<string> {
  const send = (body: object, session?: string) =>
    fetch(`${url}/mcp`, {
      method: "POST",
      headers: {
        ...(key ? { authorization: `Bearer ${key}` } : {}),
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
        ...(session ? { "mcp-session-id": session } : {}),
      },
      body: JSON.stringify({ jsonrpc: "2.0", ...body }),
    });
  const params = {
    protocolVersion: "2025-11-25",
    capabilities: {},
    clientInfo: { name: "console-test", version: "1" },
  };
  const opened = await send({ id: 1, method: "initialize", params });
  const session = opened.headers.get("mcp-session-id") ?? undefined;
  await opened.text();
  await send({ method: "notifications/initialized" }, session);
  const answer = await send(
    { id: 2, method: "tools/call", params: { name: tool, arguments: args } },
    session,
  );
  return answer.text();
}
