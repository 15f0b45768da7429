import { useQuery, useQueryClient } from "@tanstack/react-query";
import { lazy, Suspense, useState } from "react";
import { api, ok } from "../api/client";
import { plain } from "../parts/text";
import { Card, Empty, Failure, Loading, Page, Query, ServerLink, State } from "../parts/ui";
import { type Entry, entriesOf } from "./server-entries";

const JsonEditor = lazy(() => import("../parts/json-editor"));

const EXAMPLE = `{
  "mcpServers": {
    "time": { "command": "uvx", "args": ["mcp-server-time==2026.10.19"] }
  }
}`;

export default function Servers() {
  const servers = useQuery({
    queryKey: ["servers"],
    queryFn: () => ok(api.GET("/api/v1/servers")),
    refetchInterval: 2_000,
  });
  const [isAdding, setAdding] = useState(false);
  return (
    <Page
      title="Servers"
      actions={
        <button type="button" className="primary" onClick={() => setAdding(!isAdding)}>
          {isAdding ? "Close" : "Add a server"}
        </button>
      }
    >
      {isAdding && <AddServer onDone={() => setAdding(false)} />}
      <Query of={servers} what="the servers">
        {(data) =>
          data.servers.length === 0 ? (
            <Empty>No server is configured. Add one, or name it in the configuration file.</Empty>
          ) : (
            <Card>
              <div className="scroll">
                <table>
                  <thead>
                    <tr>
                      <th>Name</th>
                      <th>State</th>
                      <th>Transport</th>
                      <th>Tools</th>
                      <th>Reason</th>
                    </tr>
                  </thead>
                  <tbody>
                    {data.servers.map((server) => (
                      <tr key={server.name}>
                        <td>
                          <ServerLink name={server.name} />
                        </td>
                        <td>
                          <State of={server.state} />
                        </td>
                        <td>{server.transport}</td>
                        <td>{server.tools ?? "–"}</td>
                        <td className="small">{plain(server.reason ?? "")}</td>
                      </tr>
                    ))}
                  </tbody>
                </table>
              </div>
            </Card>
          )
        }
      </Query>
    </Page>
  );
}

/** The outcome of adding one entry. */
interface Added {
  name: string;
  state?: string;
  error?: unknown;
}

function AddServer(props: { onDone: () => void }) {
  const queries = useQueryClient();
  const [text, setText] = useState(EXAMPLE);
  const [problem, setProblem] = useState<string | null>(null);
  const [added, setAdded] = useState<Added[]>([]);
  const [isBusy, setBusy] = useState(false);
  const add = async () => {
    let entries: Entry[];
    try {
      entries = entriesOf(text);
      setProblem(null);
    } catch (error) {
      setProblem(String(error instanceof Error ? error.message : error));
      return;
    }
    setBusy(true);
    const outcomes: Added[] = [];
    for (const entry of entries) {
      try {
        const server = await ok(api.POST("/api/v1/servers", { body: entry }));
        outcomes.push({ name: entry.name, state: server.state });
      } catch (error) {
        outcomes.push({ name: entry.name, error });
      }
      setAdded([...outcomes]);
    }
    setBusy(false);
    await queries.invalidateQueries({ queryKey: ["servers"] });
    if (outcomes.every((each) => !each.error)) props.onDone();
  };
  return (
    <Card title="Add servers">
      <p className="small muted">
        Paste the entry of another client (<code>mcpServers</code> or <code>servers</code>), or one entry with
        its <code>name</code>.
      </p>
      <Suspense fallback={<Loading what="the editor" />}>
        <JsonEditor label="Server entries as JSON" value={text} onChange={setText} />
      </Suspense>
      <p>
        <button type="button" className="primary" disabled={isBusy} onClick={() => void add()}>
          {isBusy ? "Adding…" : "Add"}
        </button>
      </p>
      {problem && (
        <div className="note bad" role="alert">
          {plain(problem)}
        </div>
      )}
      {added.map((each) =>
        each.error ? (
          <div key={each.name}>
            <strong>{plain(each.name)}</strong>
            <Failure error={each.error} />
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
