import { useQuery } from "@tanstack/react-query";
import { useDeferredValue, useMemo, useState } from "react";
import { useSearchParams } from "wouter";
import { api, ok, type Schemas } from "../api/client";
import { plain, tokens } from "../parts/text";
import { Badge, Card, Empty, Page, Query, ToolLink } from "../parts/ui";

type ToolInfo = Schemas["ToolInfo"];

/** How many tools one request returns. */
const PAGE_SIZE = 1000;

export default function Tools() {
  const [params, setParams] = useSearchParams();
  const filter = params.get("q") ?? "";
  const request = params.get("for") ?? "";
  const set = (name: string, value: string) =>
    setParams(
      (before) => {
        const after = new URLSearchParams(before);
        if (value) after.set(name, value);
        else after.delete(name);
        return after;
      },
      { replace: true },
    );
  const tools = useQuery({ queryKey: ["tools"], queryFn: all });
  return (
    <Page title="Tools">
      <div className="row">
        <input
          type="search"
          aria-label="Filter by name or description"
          placeholder="Filter by name or description"
          value={filter}
          onChange={(event) => set("q", event.target.value)}
        />
        <Ask initial={request} onAsk={(text) => set("for", text)} />
      </div>
      <br />
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

/** Reads every page of the list. */
async function all(): Promise<ToolInfo[]> {
  const tools: ToolInfo[] = [];
  let cursor: string | undefined;
  do {
    const query = { limit: PAGE_SIZE, ...(cursor ? { cursor } : {}) };
    const page = await ok(api.GET("/api/v1/tools", { params: { query } }));
    tools.push(...page.tools);
    cursor = page.next ?? undefined;
  } while (cursor);
  return tools;
}

function Ask(props: { initial: string; onAsk: (text: string) => void }) {
  const [text, setText] = useState(props.initial);
  return (
    <form
      className="row"
      onSubmit={(event) => {
        event.preventDefault();
        props.onAsk(text);
      }}
    >
      <input
        type="search"
        size={34}
        aria-label="Describe a task to find its tool"
        placeholder="Describe a task: “convert 3 pm to Tokyo time”"
        value={text}
        onChange={(event) => setText(event.target.value)}
      />
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
    return <Empty>There are no tools. Add a server, or register a local tool.</Empty>;
  }
  if (groups.length === 0) return <Empty>No tool matches “{plain(props.filter)}”.</Empty>;
  return groups.map(([group, tools]) => (
    <Card
      key={group}
      title={plain(group)}
      actions={
        <span className="muted small">
          {tools.length} {tools.length === 1 ? "tool" : "tools"}, about{" "}
          {tools.reduce((sum, tool) => sum + cost(tool), 0)} tokens
        </span>
      }
    >
      <div className="scroll">
        <table>
          <thead>
            <tr>
              <th>Name</th>
              <th>Description</th>
              <th>Tokens</th>
            </tr>
          </thead>
          <tbody>
            {tools.map((tool) => (
              <tr key={tool.name}>
                <td>
                  <ToolLink name={tool.name} />{" "}
                  {tool.name_warning && <Badge tone="warn">{plain(tool.name_warning)}</Badge>}
                </td>
                <td className="small">{plain(tool.description).slice(0, 240)}</td>
                <td className="small muted">{cost(tool)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Card>
  ));
}

/** About how many tokens the definition costs a model. */
function cost(tool: ToolInfo): number {
  return tokens({ name: tool.name, description: tool.description, input_schema: tool.input_schema });
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
            <p>
              Decision: <Badge tone={data.decision === "use_tool" ? "ok" : "info"}>{data.decision}</Badge>
              {data.missing.length > 0 && (
                <span className="small">
                  {" "}
                  missing: {data.missing.map((each) => plain(each.name)).join(", ")}
                </span>
              )}
            </p>
            <table>
              <thead>
                <tr>
                  <th>Tool</th>
                  <th>Score</th>
                  <th>Words</th>
                  <th>Meaning</th>
                  <th>Matched words</th>
                </tr>
              </thead>
              <tbody>
                {data.tools.map((each) => (
                  <tr key={each.tool}>
                    <td>
                      <ToolLink name={each.tool} />
                    </td>
                    <td>{each.score.toFixed(2)}</td>
                    <td>{each.why.lexical.toFixed(2)}</td>
                    <td>{each.why.semantic.toFixed(2)}</td>
                    <td className="small">{each.why.words.map(plain).join(", ") || "–"}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </>
        )}
      </Query>
    </Card>
  );
}
