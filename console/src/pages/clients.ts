// How each client that `haft install` knows reaches a service. A test compares these with the command.

export interface ClientSnippet {
  /** The name on the command line of `haft install`. */
  client: string;
  title: string;
  file: string;
  text: string;
}

const json = (value: unknown) => JSON.stringify(value, null, 2);

export function clientSnippets(url: string, needsKey = true): ClientSnippet[] {
  const bearer = (key: string) => (needsKey ? { headers: { Authorization: `Bearer ${key}` } } : {});
  return [
    {
      client: "claude",
      title: "Claude Code",
      file: ".mcp.json",
      text: json({ mcpServers: { haft: { type: "http", url, ...bearer("${HAFT_KEY}") } } }),
    },
    {
      client: "claude-desktop",
      title: "Claude Desktop",
      file: "claude_desktop_config.json",
      text: json({ mcpServers: { haft: { command: "haft", args: ["mcp"] } } }),
    },
    {
      client: "vscode",
      title: "VS Code",
      file: ".vscode/mcp.json",
      text: json({ servers: { haft: { type: "http", url, ...bearer("${env:HAFT_KEY}") } } }),
    },
    {
      client: "cursor",
      title: "Cursor",
      file: ".cursor/mcp.json",
      text: json({ mcpServers: { haft: { url, ...bearer("${env:HAFT_KEY}") } } }),
    },
    {
      client: "codex",
      title: "Codex",
      file: "~/.codex/config.toml",
      text: `[mcp_servers.haft]\nurl = "${url}"${needsKey ? '\nbearer_token_env_var = "HAFT_KEY"' : ""}`,
    },
    {
      client: "goose",
      title: "goose",
      file: "~/.config/goose/config.yaml",
      text: `extensions:
  haft:
    type: streamable_http
    name: haft
    enabled: true
    uri: ${url}${needsKey ? "\n    headers: {Authorization: Bearer YOUR_KEY}" : ""}
    timeout: 300`,
    },
    {
      client: "gemini",
      title: "Gemini CLI",
      file: "~/.gemini/settings.json",
      text: json({ mcpServers: { haft: { httpUrl: url, ...bearer("${HAFT_KEY}") } } }),
    },
    {
      client: "windsurf",
      title: "Windsurf",
      file: "~/.codeium/windsurf/mcp_config.json",
      text: json({ mcpServers: { haft: { serverUrl: url, ...bearer("${env:HAFT_KEY}") } } }),
    },
    {
      client: "zed",
      title: "Zed",
      file: "~/.config/zed/settings.json",
      text: json({ context_servers: { haft: { url, ...bearer("YOUR_KEY") } } }),
    },
  ];
}
