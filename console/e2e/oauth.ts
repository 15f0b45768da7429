// An MCP server on loopback that asks for OAuth, with its own authorization server.

import { createHash } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

const TOKEN = "token-of-the-console";

export interface Guarded {
  url: string;
  stop(): void;
}

async function body(request: IncomingMessage): Promise<string> {
  let text = "";
  for await (const chunk of request) text += chunk;
  return text;
}

function json(
  response: ServerResponse,
  value: unknown,
  status = 200,
  headers: Record<string, string> = {},
): void {
  response.writeHead(status, { "content-type": "application/json", ...headers });
  response.end(JSON.stringify(value));
}

function answer(message: { method: string }): unknown {
  switch (message.method) {
    case "initialize":
      return {
        protocolVersion: "2025-11-25",
        capabilities: { tools: {} },
        serverInfo: { name: "guarded", version: "1" },
      };
    case "tools/list":
      return {
        tools: [{ name: "secret_hello", description: "Says hello", inputSchema: { type: "object" } }],
      };
    default:
      return {};
  }
}

export async function startGuarded(): Promise<Guarded> {
  let challenge = "";
  const server = createServer(async (request, response) => {
    const url = new URL(request.url ?? "/", `http://${request.headers.host}`);
    const origin = url.origin;
    if (url.pathname.startsWith("/.well-known/oauth-protected-resource")) {
      return json(response, { resource: `${origin}/mcp`, authorization_servers: [origin] });
    }
    if (url.pathname.startsWith("/.well-known/")) {
      return json(response, {
        issuer: origin,
        authorization_endpoint: `${origin}/authorize`,
        token_endpoint: `${origin}/token`,
        registration_endpoint: `${origin}/register`,
        response_types_supported: ["code"],
        grant_types_supported: ["authorization_code"],
        code_challenge_methods_supported: ["S256"],
        token_endpoint_auth_methods_supported: ["none"],
      });
    }
    if (url.pathname === "/register") {
      const asked = JSON.parse(await body(request)) as object;
      return json(response, { ...asked, client_id: "console" }, 201);
    }
    if (url.pathname === "/authorize") {
      challenge = url.searchParams.get("code_challenge") ?? "";
      const back = new URL(url.searchParams.get("redirect_uri") ?? "");
      back.searchParams.set("code", "the-code");
      back.searchParams.set("state", url.searchParams.get("state") ?? "");
      response.writeHead(200, { "content-type": "text/html" });
      return response.end(`<!doctype html><a href="${back.href.replaceAll("&", "&amp;")}">Allow Haft</a>`);
    }
    if (url.pathname === "/token") {
      const form = new URLSearchParams(await body(request));
      const hash = createHash("sha256")
        .update(form.get("code_verifier") ?? "")
        .digest("base64url");
      if (form.get("code") !== "the-code" || hash !== challenge) {
        return json(response, { error: "invalid_grant" }, 400);
      }
      return json(response, { access_token: TOKEN, token_type: "Bearer", expires_in: 3600 });
    }
    if (request.headers.authorization !== `Bearer ${TOKEN}`) {
      const metadata = `${origin}/.well-known/oauth-protected-resource`;
      return json(response, {}, 401, { "www-authenticate": `Bearer resource_metadata="${metadata}"` });
    }
    if (request.method !== "POST") return json(response, {}, 405);
    const message = JSON.parse(await body(request)) as { id?: number; method: string };
    if (message.id === undefined) {
      response.writeHead(202);
      return response.end();
    }
    return json(response, { jsonrpc: "2.0", id: message.id, result: answer(message) });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    stop: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}
