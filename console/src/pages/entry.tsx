import { useQuery } from "@tanstack/react-query";
import { Link, useParams } from "wouter";
import { api, ok } from "../api/client";
import { ms, plain } from "../parts/text";
import { Card, Json, Page, Query, ServerLink, State, Time, ToolLink } from "../parts/ui";
import type { LogEntry } from "./log-query";

export default function Entry() {
  const { id } = useParams<{ id: string }>();
  const entry = useQuery({
    queryKey: ["entry", id],
    queryFn: () =>
      ok(api.GET("/api/v1/log/{execution_id}", { params: { path: { execution_id: id ?? "" } } })),
    retry: false,
  });
  return (
    <Page title={id ?? ""} crumb={<Link href="/log">Log</Link>}>
      <Query of={entry} what="the entry">
        {(data) => <Details entry={data as unknown as LogEntry} />}
      </Query>
    </Page>
  );
}

function Details(props: { entry: LogEntry }) {
  const { entry } = props;
  const { execution_id, timestamp, tool, server, caller, session, input, output, error, ...rest } = entry;
  const again = `/tools/${encodeURIComponent(tool)}?arguments=${encodeURIComponent(JSON.stringify(input ?? {}))}`;
  return (
    <>
      <Card
        actions={
          <Link className="button" href={again}>
            Run again
          </Link>
        }
      >
        <table>
          <tbody>
            <Row name="Tool">
              <ToolLink name={tool} />
            </Row>
            {server && (
              <Row name="Server">
                <ServerLink name={server} />
              </Row>
            )}
            <Row name="Status">
              <State of={entry.status} />
            </Row>
            <Row name="Time">
              <Time at={timestamp} /> <span className="muted small">{timestamp}</span>
            </Row>
            <Row name="Caller">{plain(caller ?? "–")}</Row>
            <Row name="Session">{plain(session ?? "–")}</Row>
            <Row name="Queued">{ms(entry.queued_ms)}</Row>
            <Row name="Running">{ms(entry.duration_ms)}</Row>
            {entry.trace_id && <Row name="Trace">{plain(entry.trace_id)}</Row>}
          </tbody>
        </table>
      </Card>
      {error && (
        <div className="note bad">
          <p>
            <strong>{plain(error.code)}</strong>: {plain(error.message)}
          </p>
          {error.remedy && <p>What to do: {plain(error.remedy)}</p>}
        </div>
      )}
      <div className="two">
        <Card title="Input">
          <Json value={input} />
        </Card>
        <Card title="Output">
          <Json value={output ?? null} />
        </Card>
      </div>
      <Card title="Everything else in the entry">
        <Json value={rest} />
      </Card>
    </>
  );
}

function Row(props: { name: string; children: React.ReactNode }) {
  return (
    <tr>
      <th scope="row">{props.name}</th>
      <td>{props.children}</td>
    </tr>
  );
}
