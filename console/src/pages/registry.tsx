import { useQuery, useQueryClient } from "@tanstack/react-query";
import { lazy, Suspense, useState } from "react";
import { ApiError, api, ok, type Schemas, withRevision } from "../api/client";
import { plain } from "../parts/text";
import { Badge, Card, Empty, Failure, Loading, Page, Query, ToolLink } from "../parts/ui";

const JsonEditor = lazy(() => import("../parts/json-editor"));

type ToolEntry = Schemas["ToolEntry"];

const NEW_ENTRY = `{
  "name": "greet",
  "description": "Greets a person by name",
  "type": "local",
  "input_schema": {
    "type": "object",
    "properties": { "name": { "type": "string" } },
    "required": ["name"]
  },
  "config": { "runtime": "python", "script_path": "greet.py" }
}`;

export default function Registry() {
  const [open, setOpen] = useState<string | null>(null);
  const tools = useQuery({
    queryKey: ["registry"],
    queryFn: () => ok(api.GET("/api/v1/tools", { params: { query: { source: "local", limit: 1000 } } })),
  });
  return (
    <Page
      title="Registry"
      actions={
        <button type="button" className="primary" onClick={() => setOpen("")}>
          Register a tool
        </button>
      }
    >
      {open === "" && <NewTool onDone={() => setOpen(null)} />}
      {open ? <EditTool key={open} name={open} onDone={() => setOpen(null)} /> : null}
      <Query of={tools} what="the registered tools">
        {(data) =>
          data.tools.length === 0 ? (
            <Empty>No local tool is registered.</Empty>
          ) : (
            <Card>
              <table>
                <tbody>
                  {data.tools.map((tool) => (
                    <tr key={tool.name}>
                      <td>
                        <ToolLink name={tool.name} /> <Badge>{tool.kind}</Badge>
                      </td>
                      <td className="small">
                        {plain(tool.description).slice(0, 200)}
                        {tool.program ? (
                          <div className="muted">
                            <code>{plain(JSON.stringify(tool.program))}</code>
                          </div>
                        ) : null}
                      </td>
                      <td>
                        {tool.kind !== "builtin" && (
                          <button type="button" onClick={() => setOpen(tool.name)}>
                            Edit
                          </button>
                        )}
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </Card>
          )
        }
      </Query>
    </Page>
  );
}

function useChange(onDone: () => void) {
  const queries = useQueryClient();
  const [error, setError] = useState<unknown>(null);
  const change = async (request: () => Promise<unknown>) => {
    setError(null);
    try {
      await request();
    } catch (reason) {
      setError(reason);
      return;
    }
    await queries.invalidateQueries();
    onDone();
  };
  return { error, change };
}

function NewTool(props: { onDone: () => void }) {
  const [text, setText] = useState(NEW_ENTRY);
  const { error, change } = useChange(props.onDone);
  const add = () =>
    change(() => ok<unknown>(api.POST("/api/v1/tools", { body: JSON.parse(text) as ToolEntry })));
  return (
    <Card title="Register a tool">
      <p className="small muted">The script lies in the registry's folder; its path is relative to it.</p>
      <Suspense fallback={<Loading what="the editor" />}>
        <JsonEditor label="Entry of the new tool" value={text} onChange={setText} />
      </Suspense>
      <p className="row">
        <button type="button" className="primary" onClick={() => void add()}>
          Register
        </button>
        <button type="button" onClick={props.onDone}>
          Close
        </button>
      </p>
      {error ? <Failure error={error} /> : null}
    </Card>
  );
}

function EditTool(props: { name: string; onDone: () => void }) {
  const path = { name: props.name };
  const tool = useQuery({
    queryKey: ["edit-tool", props.name],
    queryFn: () => withRevision(api.GET("/api/v1/tools/{name}", { params: { path } })),
    staleTime: Number.POSITIVE_INFINITY,
    refetchOnWindowFocus: false,
  });
  return (
    <Card title={`Edit ${plain(props.name)}`}>
      <Query of={tool} what="the entry">
        {({ data, etag }) => <EntryEditor tool={data} etag={etag} onDone={props.onDone} />}
      </Query>
    </Card>
  );
}

function EntryEditor(props: { tool: Schemas["Tool"]; etag: string | null; onDone: () => void }) {
  const { tool } = props;
  const [text, setText] = useState(() => JSON.stringify(tool.entry ?? {}, null, 2));
  const { error, change } = useChange(props.onDone);
  if (!tool.entry && tool.registered) {
    return <Empty>The entry is shown to admins only, and not at all if it holds a literal secret.</Empty>;
  }
  if (!tool.registered)
    return <Empty>A configuration file names this tool; the registry cannot change it.</Empty>;
  const params = { path: { name: tool.name }, header: props.etag ? { "If-Match": props.etag } : {} };
  const save = () =>
    change(() =>
      ok<unknown>(api.PUT("/api/v1/tools/{name}", { params, body: JSON.parse(text) as ToolEntry })),
    );
  const remove = () => change(() => ok<unknown>(api.DELETE("/api/v1/tools/{name}", { params })));
  return (
    <>
      <Suspense fallback={<Loading what="the editor" />}>
        <JsonEditor label="Entry as JSON" value={text} onChange={setText} />
      </Suspense>
      <p className="row">
        <button type="button" className="primary" onClick={() => void save()}>
          Save
        </button>
        <button type="button" className="danger" onClick={() => void remove()}>
          Delete
        </button>
        <button type="button" onClick={props.onDone}>
          Close
        </button>
      </p>
      {error instanceof ApiError && error.status === 412 && (
        <div className="note warn" role="alert">
          The entry was changed elsewhere since you opened it. Copy your text, close, and open it again.
        </div>
      )}
      {error ? <Failure error={error} /> : null}
    </>
  );
}
