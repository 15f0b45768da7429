import { useQuery } from "@tanstack/react-query";
import { Play } from "lucide-react";
import type { ReactNode } from "react";
import { Link, useParams } from "wouter";
import { api, ok } from "../api/client";
import { AdminOnly } from "../parts/admin-only";
import { ms, plain } from "../parts/text";
import { Card, Copy, Json, Page, Query, ServerLink, State, Time, ToolLink } from "../parts/ui";
import type { LogEntry } from "./log-query";

export default function Entry() {
  return (
    <AdminOnly title="Call">
      <EntryPage />
    </AdminOnly>
  );
}

function EntryPage() {
  const { id = "" } = useParams<{ id: string }>();
  const entry = useQuery({
    queryKey: ["entry", id],
    queryFn: () => ok(api.GET("/api/v1/log/{execution_id}", { params: { path: { execution_id: id } } })),
    retry: false,
  });
  const data = entry.data as unknown as LogEntry | undefined;
  return (
    <Page
      title={data ? `Call of ${data.tool}` : "Call"}
      crumb={
        <>
          <Link href="/log">Log</Link> / <span className="mono">{plain(id)}</span>
        </>
      }
      actions={
        data && (
          <Link className="button" href={again(data)}>
            <Play size={15} aria-hidden />
            Run again
          </Link>
        )
      }
    >
      <Query of={entry} what="the entry">
        {(found) => <Details entry={found as unknown as LogEntry} />}
      </Query>
    </Page>
  );
}

/** The page of the tool with the same arguments. */
function again({ tool, input }: LogEntry): string {
  return `/tools/${encodeURIComponent(tool)}?arguments=${encodeURIComponent(JSON.stringify(input ?? {}))}`;
}

function Details(props: { entry: LogEntry }) {
  const { entry } = props;
  const { input, output, content, raw, error, policy } = entry;
  return (
    <>
      {error && (
        <div className="note bad">
          <strong>{plain(error.code)}</strong>: {plain(error.message)}
          {error.remedy && <p>What to do: {plain(error.remedy)}</p>}
        </div>
      )}
      <Card>
        <dl className="facts">
          <Fact name="Tool">
            <ToolLink name={entry.tool} />
          </Fact>
          {entry.server && (
            <Fact name="Server">
              <ServerLink name={entry.server} />
            </Fact>
          )}
          <Fact name="Status">
            <State of={entry.status} />
          </Fact>
          <Fact name="Time">
            <Time at={entry.timestamp} /> <span className="muted small">{plain(entry.timestamp)}</span>
          </Fact>
          <Fact name="Timings">
            queued {ms(entry.queued_ms)}, running {ms(entry.duration_ms)}
          </Fact>
          <Fact name="Caller">{plain(entry.caller ?? "–")}</Fact>
          {entry.session && (
            <Fact name="Session">
              <Link href={`/log?session=${encodeURIComponent(entry.session)}`}>{plain(entry.session)}</Link>
            </Fact>
          )}
          {policy && (
            <Fact name="Rule">
              {plain(policy.rule)} ({plain(policy.file)}:{policy.line}): {plain(policy.effect)}
              {policy.reason && <span className="muted">, {plain(policy.reason)}</span>}
              {policy.problem && <span className="muted">, {plain(policy.problem)}</span>}
            </Fact>
          )}
          {entry.request && <Fact name="Request">{plain(entry.request)}</Fact>}
          {entry.trace_id && <Fact name="Trace">{plain(entry.trace_id)}</Fact>}
          {entry.outcome && (
            <Fact name="Layers">
              {Object.entries(entry.outcome)
                .map(([layer, outcome]) => `${layer}: ${plain(outcome)}`)
                .join(", ")}
            </Fact>
          )}
        </dl>
      </Card>
      <div className="two">
        <Part title="Input" value={input} />
        <Part title="Output" value={output ?? null} />
        {entry.stdout && (
          <Card title="Printed by the script" actions={<Copy text={entry.stdout} />}>
            {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls is reached by keyboard */}
            <pre tabIndex={0}>{plain(entry.stdout)}</pre>
          </Card>
        )}
        {content !== undefined && <Part title="Content" value={content} />}
        {raw !== undefined && <Part title="Raw answer of the server" value={raw} />}
        {policy?.values && <Part title="Values that the rule looked at" value={policy.values} />}
        {error?.details ? <Part title="Details of the error" value={error.details} /> : null}
      </div>
    </>
  );
}

function Part(props: { title: string; value: unknown }) {
  return (
    <Card title={props.title} actions={<Copy text={JSON.stringify(props.value, null, 2) ?? ""} />}>
      <Json value={props.value} />
    </Card>
  );
}

function Fact(props: { name: string; children: ReactNode }) {
  return (
    <>
      <dt>{props.name}</dt>
      <dd>{props.children}</dd>
    </>
  );
}
