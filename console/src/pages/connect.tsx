import { Card, Page, Snippet } from "../parts/ui";

export default function Connect() {
  const origin = window.location.origin;
  const url = `${origin}/mcp`;
  const remote = { type: "http", url, headers: { Authorization: "Bearer YOUR_KEY" } };
  const json = (value: unknown) => JSON.stringify(value, null, 2);
  return (
    <Page title="Connect">
      <p className="muted">
        Create a key on the Access page and put it in place of <code>YOUR_KEY</code>. On this machine{" "}
        <code>haft install CLIENT --write</code> writes the client's file for you.
      </p>
      <div className="two">
        <Card title="MCP clients">
          <Snippet
            label="Claude Code"
            text={`claude mcp add --transport http haft ${url} --header "Authorization: Bearer YOUR_KEY"`}
          />
          <Snippet label="Claude Desktop, .mcp.json" text={json({ mcpServers: { haft: remote } })} />
          <Snippet label="VS Code, .vscode/mcp.json" text={json({ servers: { haft: remote } })} />
          <Snippet
            label="Cursor, .cursor/mcp.json"
            text={json({ mcpServers: { haft: { url, headers: remote.headers } } })}
          />
          <Snippet
            label="Codex, config.toml"
            text={`[mcp_servers.haft]\nurl = "${url}"\nbearer_token_env_var = "HAFT_KEY"`}
          />
        </Card>
        <Card title="Programs">
          <Snippet
            label="curl"
            text={`curl ${origin}/api/v1/tools/TOOL/call \\\n  -H "x-api-key: $HAFT_KEY" -H 'content-type: application/json' \\\n  -d '{"arguments": {}}'`}
          />
          <Snippet
            label="Python"
            text={`import os, httpx

answer = httpx.post(
    "${origin}/api/v1/tools/TOOL/call",
    headers={"x-api-key": os.environ["HAFT_KEY"]},
    json={"arguments": {}},
).json()
print(answer["status"], answer["content"])`}
          />
          <Snippet
            label="TypeScript"
            text={`const answer = await fetch("${origin}/api/v1/tools/TOOL/call", {
  method: "POST",
  headers: { "x-api-key": process.env.HAFT_KEY!, "content-type": "application/json" },
  body: JSON.stringify({ arguments: {} }),
}).then((response) => response.json());
console.log(answer.status, answer.content);`}
          />
        </Card>
      </div>
    </Page>
  );
}
