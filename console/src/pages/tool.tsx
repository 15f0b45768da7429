import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Play } from "lucide-react";
import { lazy, Suspense, useEffect, useMemo, useRef, useState } from "react";
import { Link, useParams, useSearchParams } from "wouter";
import { type ApiError, api, ok, type Schemas } from "../api/client";
import { postForEvents } from "../api/events";
import { type Envelope, Result } from "../parts/result";
import { Settings } from "../parts/table";
import { plain, shellQuote, tokens } from "../parts/text";
import { Badge, Card, Empty, Failure, Json, Loading, Page, Query, ServerLink, Snippet } from "../parts/ui";
import { useSession } from "../session";
import { LogTable } from "./log-table";

const SchemaForm = lazy(() => import("../parts/schema-form"));

type Tool = Schemas["Tool"];

export default function ToolPage() {
  const { name } = useParams<{ name: string }>();
  const tool = useQuery({
    queryKey: ["tool", name],
    queryFn: () => ok(api.GET("/api/v1/tools/{name}", { params: { path: { name: name ?? "" } } })),
  });
  return (
    <Page title={tool.data?.title ?? name ?? ""} crumb={<Crumb name={name ?? ""} title={tool.data?.title} />}>
      <Query of={tool} what="the tool">
        {(data) => <Details tool={data} key={data.name} />}
      </Query>
    </Page>
  );
}

function Crumb(props: { name: string; title: string | null | undefined }) {
  return (
    <>
      <Link href="/tools">Tools</Link>
      {props.title ? ` / ${plain(props.name)}` : ""}
    </>
  );
}

function Details(props: { tool: Tool }) {
  const { tool } = props;
  const session = useSession();
  return (
    <>
      <Card>
        <p>{plain(tool.description)}</p>
        <p className="row small">
          <Badge>{tool.kind}</Badge>
          <Badge>
            about{" "}
            {tokens({ name: tool.name, description: tool.description, input_schema: tool.input_schema })}{" "}
            tokens
          </Badge>
          {tool.mcp_name && (
            <span>
              from <ServerLink name={tool.mcp_name} />
            </span>
          )}
          {tool.original_name && tool.original_name !== tool.name && (
            <span className="muted">named {plain(tool.original_name)} there</span>
          )}
          {Object.entries(tool.annotations ?? {}).map(([key, value]) => (
            <Badge key={key}>
              {key}: {plain(String(value))}
            </Badge>
          ))}
        </p>
        {tool.name_warning && <div className="note warn">{plain(tool.name_warning)}</div>}
      </Card>
      <Run tool={tool} />
      <div className="two">
        <Effective tool={tool} />
        <Card title="Schemas">
          <details>
            <summary>Input</summary>
            <Json value={tool.input_schema} />
          </details>
          <details>
            <summary>Output</summary>
            <Json value={tool.output_schema} />
          </details>
        </Card>
      </div>
      {session.scope === "admin" && (
        <Card
          title="Recent calls"
          actions={<Link href={`/log?tool=${encodeURIComponent(tool.name)}`}>All calls</Link>}
        >
          <LogTable query={{ tool: tool.name }} limit={10} empty="This tool was not called yet." />
        </Card>
      )}
    </>
  );
}

interface Progress {
  progress?: number;
  total?: number;
  message?: string;
}

/** The state of one call started from this page. */
type RunState =
  | { at: "idle" }
  | { at: "running"; id: string | null; progress: Progress | null }
  | { at: "done"; envelope: Envelope }
  | { at: "failed"; error: unknown };

function Run(props: { tool: Tool }) {
  const { tool } = props;
  const [params] = useSearchParams();
  const [value, setValue] = useState<unknown>(() => initial(params.get("arguments")));
  const [isValid, setValid] = useState(true);
  const [state, setState] = useState<RunState>({ at: "idle" });
  const [isApproved, setApproved] = useState(false);
  const needsApproval = tool.config.some((each) => each.key === "approval" && each.value === "ask");
  const queries = useQueryClient();
  const abort = useRef<AbortController | null>(null);
  // The connection of a call that is not watched any more is given back; the call itself ends with it.
  useEffect(() => () => abort.current?.abort(), []);
  const run = async () => {
    const stop = new AbortController();
    abort.current = stop;
    setState({ at: "running", id: null, progress: null });
    try {
      await postForEvents(
        `/api/v1/tools/${encodeURIComponent(tool.name)}/call`,
        { arguments: value ?? {}, ...(isApproved ? { approved: true } : {}) },
        ({ event, data }) => {
          if (event === "result") setState({ at: "done", envelope: data as Envelope });
          else if (event === "started")
            setState({ at: "running", id: (data as { execution_id: string }).execution_id, progress: null });
          else if (event === "progress")
            setState((before) =>
              before.at === "running" ? { ...before, progress: data as Progress } : before,
            );
        },
        stop.signal,
      );
      setState((before) =>
        before.at === "running"
          ? { at: "failed", error: new Error("the connection ended before the answer") }
          : before,
      );
    } catch (error) {
      const isStopped = stop.signal.aborted;
      setState({
        at: "failed",
        error: isStopped ? new Error("the call was cancelled") : (error as ApiError),
      });
    }
    await queries.invalidateQueries({ queryKey: ["log"] });
  };
  const cancel = async () => {
    if (state.at !== "running") return;
    // Through the API, so that the entry in the log arrives as the answer.
    if (state.id) {
      const path = { execution_id: state.id };
      await api.DELETE("/api/v1/calls/{execution_id}", { params: { path } });
    } else abort.current?.abort();
  };
  return (
    <Card title="Run">
      <div className="two">
        {/* biome-ignore lint/a11y/noStaticElementInteractions: a shortcut for the button below */}
        <div
          onKeyDown={(event) => {
            if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && state.at !== "running")
              void run();
          }}
        >
          <Suspense fallback={<Loading what="the form" />}>
            <SchemaForm
              schema={tool.input_schema}
              value={value}
              label="Arguments as JSON"
              onChange={(next, fits) => {
                setValue(next);
                setValid(fits);
              }}
            />
          </Suspense>
          {needsApproval && (
            <label className="row whole approve">
              <input
                type="checkbox"
                checked={isApproved}
                onChange={(event) => setApproved(event.target.checked)}
              />
              <span>
                I approve this call. <span className="small muted">The tool has </span>
                <code>approval: ask</code>
              </span>
            </label>
          )}
          <div className="row">
            <button
              type="button"
              className="primary"
              disabled={state.at === "running"}
              aria-keyshortcuts="Control+Enter"
              onClick={() => void run()}
              title={isValid ? undefined : "The arguments do not match the schema; the service will explain"}
            >
              <Play size={15} aria-hidden />
              Run
            </button>
            {state.at === "running" && (
              <button type="button" onClick={() => void cancel()}>
                Cancel
              </button>
            )}
            <span className="small muted">
              <kbd>Ctrl Enter</kbd>
            </span>
            {!isValid && <span className="small muted">The arguments do not match the schema yet.</span>}
          </div>
          <Equivalent tool={tool.name} value={value ?? {}} />
        </div>
        <div aria-live="polite">
          {state.at === "idle" && (
            <Empty title="No result yet" icon={Play}>
              Fill in the arguments and run the tool. The call is recorded in the log.
            </Empty>
          )}
          {state.at === "running" && <Running progress={state.progress} />}
          {state.at === "done" && (
            <Result envelope={state.envelope} remedy={remedy(state.envelope, needsApproval && !isApproved)} />
          )}
          {state.at === "failed" && <Failure error={state.error} />}
        </div>
      </div>
    </Card>
  );
}

/** What to do at this page, where the service names a command or a field of the API. */
function remedy(envelope: Envelope, lacksApproval: boolean): string | undefined {
  const code = envelope.error?.code;
  if (code === "Denied" && lacksApproval) return "tick “I approve this call” and run the tool again";
  if (code === "ValidationError") return "change the arguments; “Schemas” below shows what the tool accepts";
  return undefined;
}

/** Arguments in the address come from "run again" in the log. */
function initial(text: string | null): unknown {
  try {
    return text ? JSON.parse(text) : {};
  } catch {
    return {};
  }
}

function Running(props: { progress: Progress | null }) {
  const { progress } = props;
  return (
    <div role="status">
      <p>Running…</p>
      {progress && (
        <>
          <progress value={progress.progress} max={progress.total ?? undefined} aria-label="Progress" />{" "}
          <span className="small">
            {progress.progress}
            {progress.total ? ` of ${progress.total}` : ""} {plain(progress.message ?? "")}
          </span>
        </>
      )}
    </div>
  );
}

function Equivalent(props: { tool: string; value: unknown }) {
  const { is_key: needsKey } = useSession();
  const { curl, cli } = useMemo(() => {
    const args = JSON.stringify(props.value);
    const url = `${window.location.origin}/api/v1/tools/${encodeURIComponent(props.tool)}/call`;
    const body = shellQuote(JSON.stringify({ arguments: props.value }));
    return {
      curl: [
        `curl ${shellQuote(url)}`,
        `-H 'content-type: application/json'${needsKey ? ' -H "x-api-key: $HAFT_KEY"' : ""}`,
        `-d ${body}`,
      ].join(" \\\n  "),
      cli: `haft call ${shellQuote(props.tool)} ${shellQuote(args)}`,
    };
  }, [props.tool, props.value, needsKey]);
  return (
    <details>
      <summary>The same call elsewhere</summary>
      <Snippet label="curl" text={curl} />
      <Snippet label="Command line" text={cli} />
    </details>
  );
}

function Effective(props: { tool: Tool }) {
  const { config, figures } = props.tool;
  return (
    <Card
      title="Settings and their origin"
      actions={
        <span className="small muted">
          {figures.in_flight} of {figures.max_instances} running, {figures.waiting} waiting
        </span>
      }
    >
      <Settings rows={config} />
    </Card>
  );
}
