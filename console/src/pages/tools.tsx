import { useQuery } from "@tanstack/react-query";
import { SearchX, Sparkles, Wrench } from "lucide-react";
import { useDeferredValue, useMemo, useState } from "react";
import { Link } from "wouter";
import { api, ok, type Schemas } from "../api/client";
import { allTools } from "../api/tools";
import { type Column, SearchBox, Table, useFilters } from "../parts/table";
import { plain, tokens } from "../parts/text";
import { Badge, Card, Empty, Page, Query, ToolLink } from "../parts/ui";

type ToolInfo = Schemas["ToolInfo"];

export default function Tools() {
  const [params, set] = useFilters();
  const filter = params.get("q") ?? "";
  const request = params.get("for") ?? "";
  const tools = useQuery({ queryKey: ["tools"], queryFn: allTools });
  return (
    <Page title="Tools" lead={tools.data && summary(tools.data)}>
      <div className="toolbar">
        <SearchBox label="Filter by name or description" value={filter} onChange={(text) => set("q", text)} />
        <Ask initial={request} onAsk={(text) => set("for", text)} />
      </div>
      {request ? (
        <Ranked request={request} onClose={() => set("for", "")} />
      ) : (
        <Query of={tools} what="the tools">
          {(list) => <Grouped tools={list} filter={filter} />}
        </Query>
      )}
    </Page>
  );
}

function summary(tools: ToolInfo[]): string {
  const total = tools.reduce((sum, tool) => sum + cost(tool), 0);
  return `${tools.length} tools; all definitions together cost a model about ${total.toLocaleString("en")} tokens.`;
}

function Ask(props: { initial: string; onAsk: (text: string) => void }) {
  const [text, setText] = useState(props.initial);
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        props.onAsk(text);
      }}
    >
      <div className="searchbox">
        <Sparkles size={15} aria-hidden />
        <input
          type="search"
          aria-label="Describe a task to find its tool"
          placeholder="Describe a task: “convert 3 pm to Tokyo time”"
          value={text}
          onChange={(event) => setText(event.target.value)}
        />
      </div>
      <button type="submit">Find by meaning</button>
    </form>
  );
}

function Grouped(props: { tools: ToolInfo[]; filter: string }) {
  const typed = useDeferredValue(props.filter.trim().toLowerCase());
  const groups = useMemo(() => {
    const fits = (tool: ToolInfo) => `${tool.name} ${tool.description}`.toLowerCase().includes(typed);
    const byServer = new Map<string, ToolInfo[]>();
    for (const tool of props.tools.filter(fits)) {
      const group = tool.mcp_name ?? (tool.kind === "builtin" ? "Built-in tools" : "Local tools");
      byServer.set(group, [...(byServer.get(group) ?? []), tool]);
    }
    return [...byServer];
  }, [props.tools, typed]);
  if (props.tools.length === 0) {
    return (
      <Empty title="There are no tools yet" icon={Wrench}>
        <p>Add an MCP server, or register a script as a local tool.</p>
        <div className="row">
          <Link className="button" href="/servers?add=1">
            Add a server
          </Link>
          <Link className="button" href="/registry">
            Register a tool
          </Link>
        </div>
      </Empty>
    );
  }
  if (groups.length === 0) {
    return (
      <Empty title={`No tool matches “${plain(props.filter)}”`} icon={SearchX}>
        Describe the task beside the filter to search by meaning.
      </Empty>
    );
  }
  return groups.map(([group, tools]) => <Group key={group} name={group} tools={tools} />);
}

/** How many tools a group shows before it asks. */
const SHOWN_MAX = 50;

function Group(props: { name: string; tools: ToolInfo[] }) {
  const [isWhole, setWhole] = useState(false);
  const { tools } = props;
  const shown = isWhole ? tools : tools.slice(0, SHOWN_MAX);
  const total = tools.reduce((sum, tool) => sum + cost(tool), 0);
  return (
    <Card
      title={plain(props.name)}
      actions={
        <span className="muted small">
          {tools.length} {tools.length === 1 ? "tool" : "tools"}, about {total.toLocaleString("en")} tokens
        </span>
      }
    >
      <Table rows={shown} keyOf={(tool) => tool.name} columns={COLUMNS} />
      {shown.length < tools.length && (
        <button type="button" onClick={() => setWhole(true)}>
          Show all {tools.length} tools
        </button>
      )}
    </Card>
  );
}

const COLUMNS: Column<ToolInfo>[] = [
  {
    name: "Name",
    kind: "name",
    cell: (tool) => (
      <>
        <ToolLink name={tool.name} />{" "}
        {tool.name_warning && <Badge tone="warn">{plain(tool.name_warning)}</Badge>}
      </>
    ),
  },
  {
    name: "Description",
    isPlain: true,
    cell: (tool) => <span className="small clamp">{plain(tool.description).slice(0, 400)}</span>,
  },
  { name: "Tokens", kind: "num", cell: (tool) => <span className="small muted">{cost(tool)}</span> },
];

/** About how many tokens the definition costs a model. */
function cost(tool: ToolInfo): number {
  return tokens({ name: tool.name, description: tool.description, input_schema: tool.input_schema });
}

type Found = Schemas["Found"]["tools"][number];

const RANKED: Column<Found>[] = [
  { name: "Tool", kind: "name", cell: (each) => <ToolLink name={each.tool} /> },
  { name: "Score", kind: "num", cell: (each) => each.score.toFixed(2) },
  { name: "Words", kind: "num", cell: (each) => each.why.lexical.toFixed(2) },
  { name: "Meaning", kind: "num", cell: (each) => each.why.semantic.toFixed(2) },
  { name: "Matched words", cell: (each) => each.why.words.map(plain).join(", ") || "–" },
];

/** The decision of the service in words. */
function decision(found: Schemas["Found"]): string {
  const missing = found.missing.map((each) => plain(each.name)).join(", ");
  switch (found.decision) {
    case "use_tool":
      return `use ${plain(found.tools[0]?.tool ?? "a tool")}`;
    case "ask_human":
      return missing ? `ask the user first for ${missing}` : "ask the user first";
    case "no_tool":
      return "no tool is needed";
  }
}

function Ranked(props: { request: string; onClose: () => void }) {
  const found = useQuery({
    queryKey: ["search", props.request],
    queryFn: () =>
      ok(api.GET("/api/v1/tools/search", { params: { query: { q: props.request, limit: 20 } } })),
  });
  return (
    <Card
      title={`Tools for “${plain(props.request)}”`}
      actions={
        <button type="button" onClick={props.onClose}>
          Show all tools
        </button>
      }
    >
      <Query of={found} what="the ranking">
        {(data) => (
          <>
            <p className="row">
              Decision:
              <Badge tone={data.decision === "use_tool" ? "ok" : "info"}>{decision(data)}</Badge>
              <code className="small muted">{data.decision}</code>
            </p>
            <p className="small muted">
              The score adds up what the words of the request and their meaning say for a tool.
            </p>
            <Table rows={data.tools} keyOf={(each) => each.tool} columns={RANKED} />
          </>
        )}
      </Query>
    </Card>
  );
}
