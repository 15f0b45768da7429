import { useQuery, useQueryClient } from "@tanstack/react-query";
import { FileCog, FileLock, Package, Plus } from "lucide-react";
import { lazy, Suspense, useState } from "react";
import { api, ok, type Schemas, withRevision } from "../api/client";
import { AdminOnly } from "../parts/admin-only";
import { EntryEditor } from "../parts/entry-editor";
import { type Column, Table } from "../parts/table";
import { plain } from "../parts/text";
import { Badge, Card, Empty, Failure, Loading, Page, Query, ToolLink } from "../parts/ui";

const JsonEditor = lazy(() => import("../parts/json-editor"));

type ToolEntry = Schemas["ToolEntry"];
type ToolInfo = Schemas["ToolInfo"];

const NEW_ENTRY = `{
  "name": "greet",
  "type": "local",
  "input_schema": "signature",
  "config": { "script_path": "greet.py" }
}`;

export default function Registry() {
  const [open, setOpen] = useState<string | null>(null);
  const tools = useQuery({
    queryKey: ["registry"],
    queryFn: async () => {
      const query = { source: "local" as const, limit: 1000 };
      const { tools } = await ok(api.GET("/api/v1/tools", { params: { query } }));
      // Built-in tools have no entry to edit.
      return tools.filter((tool) => tool.kind !== "builtin");
    },
  });
  const columns: Column<ToolInfo>[] = [
    {
      name: "Name",
      kind: "name",
      cell: (tool) => (
        <>
          <ToolLink name={tool.name} /> {tool.kind !== "local" && <Badge>{tool.kind}</Badge>}
        </>
      ),
    },
    {
      name: "Description",
      isPlain: true,
      cell: (tool) => <span className="small clamp">{plain(tool.description).slice(0, 400)}</span>,
    },
    {
      name: "Program",
      cell: (tool) => <code>{plain(programOf(tool))}</code>,
    },
    {
      name: "Action",
      kind: "fit",
      isPlain: true,
      cell: (tool) => (
        <button type="button" className="compact" onClick={() => setOpen(tool.name)}>
          Edit
        </button>
      ),
    },
  ];
  return (
    <Page
      title="Registry"
      lead="Local tools: scripts with an entry that describes them."
      actions={
        <button type="button" className="primary" onClick={() => setOpen("")}>
          <Plus size={15} aria-hidden />
          Register a tool
        </button>
      }
    >
      {open === "" && (
        <AdminOnly>
          <NewTool onDone={() => setOpen(null)} />
        </AdminOnly>
      )}
      {open ? <EditTool key={open} name={open} onDone={() => setOpen(null)} /> : null}
      <Query of={tools} what="the registered tools">
        {(data) =>
          data.length === 0 ? (
            <Empty title="No local tool is registered" icon={Package}>
              Put a script into the registry's folder and register it here.
            </Empty>
          ) : (
            <Card>
              <Table rows={data} keyOf={(tool) => tool.name} columns={columns} />
            </Card>
          )
        }
      </Query>
    </Page>
  );
}

/** The script or command of a tool, and what it needs. */
function programOf(tool: ToolInfo): string {
  const program = (tool.program ?? {}) as {
    script_path?: string;
    command?: string[];
    requirements?: string[];
  };
  const line = [...(program.command ?? []), program.script_path].filter(Boolean).join(" ");
  const packages = program.requirements?.length ? ` (${program.requirements.join(", ")})` : "";
  return `${line || "–"}${packages}`;
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
      <p className="small muted">
        The script lies in the registry's folder; its path is relative to it. “signature” reads schema and
        description from a Python function; write a JSON Schema instead for any other program.
      </p>
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
  const read = async () => {
    const { data, etag } = await withRevision(api.GET("/api/v1/tools/{name}", { params: { path } }));
    return { tool: data, entry: data.entry, etag };
  };
  const tool = useQuery({
    queryKey: ["edit-tool", props.name],
    queryFn: read,
    staleTime: Number.POSITIVE_INFINITY,
    refetchOnWindowFocus: false,
    gcTime: 0,
  });
  return (
    <Card
      title={`Edit ${plain(props.name)}`}
      actions={
        <button type="button" className="compact" onClick={props.onDone}>
          Close
        </button>
      }
    >
      <Query of={tool} what="the entry">
        {(opened) =>
          !opened.tool.registered ? (
            <Empty title="A configuration file names this tool" icon={FileCog}>
              Edit that file and reload; the registry cannot change it.
            </Empty>
          ) : opened.entry ? (
            <EntryEditor
              opened={opened}
              read={read}
              save={async (entry, header) => {
                const body = entry as ToolEntry;
                const { etag } = await withRevision<unknown>(
                  api.PUT("/api/v1/tools/{name}", { params: { path, header }, body }),
                );
                return { entry, etag };
              }}
              remove={(header) =>
                ok<unknown>(api.DELETE("/api/v1/tools/{name}", { params: { path, header } }))
              }
              removeLabel="Delete"
              onRemoved={props.onDone}
            />
          ) : (
            <Empty title="The entry is not shown" icon={FileLock}>
              It is shown to admins only, and not at all if it holds a literal secret.
            </Empty>
          )
        }
      </Query>
    </Card>
  );
}
