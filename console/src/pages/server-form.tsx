// A new server by form: a program on the machine of the service, or an address.

import { useState } from "react";
import type { Schemas } from "../api/client";
import { words } from "../parts/text";

type Entry = Schemas["ServerRegistration"];

export function ServerForm(props: { isBusy: boolean; onAdd: (entry: Entry) => Promise<void> }) {
  const [name, setName] = useState("");
  const [kind, setKind] = useState<"command" | "url">("command");
  const [target, setTarget] = useState("");
  const [variables, setVariables] = useState("");
  const add = () => {
    const pairs = variables
      .split("\n")
      .map((line) => line.trim())
      .filter((line) => line.includes("="))
      .map((line) => [line.slice(0, line.indexOf("=")).trim(), line.slice(line.indexOf("=") + 1).trim()]);
    const extra = pairs.length > 0 ? Object.fromEntries(pairs) : undefined;
    const [command = "", ...args] = words(target);
    const entry =
      kind === "command"
        ? { name, command, args, ...(extra ? { env: extra } : {}) }
        : { name, url: target.trim(), ...(extra ? { headers: extra } : {}) };
    void props.onAdd(entry as Entry);
  };
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        add();
      }}
    >
      <label className="field">
        <span>Name of the server</span>
        <input required value={name} onChange={(event) => setName(event.target.value)} />
      </label>
      <fieldset className="segments" aria-label="Kind of server">
        <button type="button" aria-pressed={kind === "command"} onClick={() => setKind("command")}>
          Program
        </button>
        <button type="button" aria-pressed={kind === "url"} onClick={() => setKind("url")}>
          Address
        </button>
      </fieldset>
      <label className="field">
        <span>{kind === "command" ? "Command with its arguments" : "Address of the MCP endpoint"}</span>
        <input
          required
          placeholder={kind === "command" ? "uvx mcp-server-time" : "https://example.com/mcp"}
          value={target}
          onChange={(event) => setTarget(event.target.value)}
        />
      </label>
      <label className="field">
        <span>
          {kind === "command" ? "Environment variables" : "Headers"}, one NAME=VALUE a line; {"${VAR}"} refers
          to the environment of the service
        </span>
        <textarea rows={3} value={variables} onChange={(event) => setVariables(event.target.value)} />
      </label>
      <button type="submit" className="primary" disabled={props.isBusy}>
        {props.isBusy ? "Adding…" : "Add this server"}
      </button>
    </form>
  );
}
