import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Plug, Plus, X } from "lucide-react";
import { lazy, Suspense, useState } from "react";
import { ApiError, api, ok, type Schemas } from "../api/client";
import { AdminOnly } from "../parts/admin-only";
import { type Column, Table, useFilters } from "../parts/table";
import { plain } from "../parts/text";
import {
  Card,
  Empty,
  Failure,
  Loading,
  Page,
  Query,
  ServerLink,
  Snippet,
  State,
  Tabs,
  Time,
} from "../parts/ui";
import { ServerForm } from "./server-form";

const JsonEditor = lazy(() => import("../parts/json-editor"));

type Server = Schemas["Server"];
type Entry = Schemas["ServerRegistration"];

const EXAMPLE = `{
  "mcpServers": {
    "time": { "command": "uvx", "args": ["mcp-server-time==2026.10.19"] }
  }
}`;

const COLUMNS: Column<Server>[] = [
  { name: "Name", kind: "name", cell: (server) => <ServerLink name={server.name} /> },
  { name: "State", kind: "fit", isPlain: true, cell: (server) => <State of={server.state} /> },
  { name: "Since", kind: "fit", cell: (server) => <Time at={server.since} /> },
  { name: "Transport", kind: "fit", cell: (server) => server.transport },
  { name: "Tools", kind: "num", cell: (server) => server.tools ?? "–" },
  {
    name: "Reason",
    isPlain: true,
    cell: (server) => <span className="small clamp">{plain(server.reason ?? "")}</span>,
  },
];

export default function Servers() {
  const [params, set] = useFilters();
  const isAdding = params.get("add") !== null;
  const servers = useQuery({
    queryKey: ["servers"],
    queryFn: () => ok(api.GET("/api/v1/servers")),
    refetchInterval: 2_000,
  });
  return (
    <Page
      title="Servers"
      lead="MCP servers, their states and why."
      actions={
        <button
          type="button"
          className={isAdding ? "" : "primary"}
          onClick={() => set("add", isAdding ? "" : "1")}
        >
          {isAdding ? <X size={15} aria-hidden /> : <Plus size={15} aria-hidden />}
          {isAdding ? "Close" : "Add a server"}
        </button>
      }
    >
      {isAdding && (
        <AdminOnly>
          <AddServer onDone={() => set("add", "")} />
        </AdminOnly>
      )}
      <Query of={servers} what="the servers">
        {(data) =>
          data.servers.length === 0 ? (
            <Empty title="No server is configured" icon={Plug}>
              Add one here, or name it in the configuration file.
            </Empty>
          ) : (
            <Card>
              <Table rows={data.servers} keyOf={(server) => server.name} columns={COLUMNS} />
            </Card>
          )
        }
      </Query>
    </Page>
  );
}

const WAYS = ["Paste", "Form"] as const;

function AddServer(props: { onDone: () => void }) {
  const [way, setWay] = useState<(typeof WAYS)[number]>("Paste");
  const { outcomes, isBusy, add } = useAdd(props.onDone);
  return (
    <Card title="Add servers">
      <Tabs names={WAYS} at={way} onPick={setWay} />
      {way === "Paste" ? (
        <Paste isBusy={isBusy} onAdd={add} />
      ) : (
        <ServerForm isBusy={isBusy} onAdd={(entry) => add([entry])} />
      )}
      {outcomes.map((each) =>
        each.error ? (
          <div key={each.name}>
            <strong>{plain(each.name)}</strong>
            <Failure error={each.error} />
            {each.line && (
              <>
                <p className="small">
                  To allow it, add this to the configuration file of the service, and add the server again. A
                  pinned version keeps the program from changing by itself.
                </p>
                <Snippet label="haft.yaml" text={`policy:\n  allowed_commands:\n    - ${each.line}`} />
              </>
            )}
          </div>
        ) : (
          <p key={each.name}>
            {plain(each.name)} <State of={each.state ?? ""} />
          </p>
        ),
      )}
    </Card>
  );
}

/** The outcome of adding one entry. */
interface Added {
  name: string;
  state?: string;
  error?: unknown;
  /** The line of `policy.allowed_commands` that would allow it. */
  line?: string | undefined;
}

/** The line that allows the command of a refused entry. */
function allowedLine(entry: Entry, error: unknown): string | undefined {
  const isRefused = error instanceof ApiError && error.problem.code === "NotAllowed";
  if (!isRefused || !error.message.includes("policy.allowed_commands")) return undefined;
  const { command, args } = entry as { command?: string; args?: string[] };
  const line = [command ?? "", ...(args ?? [])];
  // A line is split at spaces, so a word with one cannot be written there.
  return line.every((word) => /^[\w@%+=:,./-]+$/.test(word)) ? JSON.stringify(line.join(" ")) : undefined;
}

/** Adds entries one after the other, and reports how each went. */
function useAdd(onDone: () => void) {
  const queries = useQueryClient();
  const [outcomes, setOutcomes] = useState<Added[]>([]);
  const [isBusy, setBusy] = useState(false);
  const add = async (entries: Entry[]) => {
    setBusy(true);
    const all: Added[] = [];
    for (const entry of entries) {
      try {
        const server = await ok(api.POST("/api/v1/servers", { body: entry }));
        all.push({ name: entry.name, state: server.state });
      } catch (error) {
        all.push({ name: entry.name, error, line: allowedLine(entry, error) });
      }
      setOutcomes([...all]);
    }
    setBusy(false);
    await queries.invalidateQueries({ queryKey: ["servers"] });
    if (all.every((each) => !each.error)) onDone();
  };
  return { outcomes, isBusy, add };
}

/** A client's file, read by the code of `haft import`. */
function Paste(props: { isBusy: boolean; onAdd: (entries: Entry[]) => Promise<void> }) {
  const [text, setText] = useState(EXAMPLE);
  const [error, setError] = useState<unknown>(null);
  const [notes, setNotes] = useState<string[]>([]);
  const read = async () => {
    setError(null);
    setNotes([]);
    try {
      const found = await ok(api.POST("/api/v1/servers/import", { body: { text } }));
      const unset = found.unset.map((name) => `The variable ${name} is not set where Haft runs.`);
      setNotes([...found.warnings, ...unset]);
      await props.onAdd(found.servers);
    } catch (reason) {
      setError(reason);
    }
  };
  return (
    <>
      <p className="small muted">
        Paste the file of another client, or a part of it: Claude, VS Code, Cursor, Codex, goose and more, as
        JSON, TOML or YAML.
      </p>
      <Suspense fallback={<Loading what="the editor" />}>
        <JsonEditor label="Server entries as JSON" value={text} onChange={setText} />
      </Suspense>
      <p>
        <button type="button" className="primary" disabled={props.isBusy} onClick={() => void read()}>
          {props.isBusy ? "Adding…" : "Add"}
        </button>
      </p>
      {notes.map((note) => (
        <div className="note warn" key={note}>
          {plain(note)}
        </div>
      ))}
      {error ? <Failure error={error} /> : null}
    </>
  );
}
