import { useQuery } from "@tanstack/react-query";
import { CircleCheck, Plug } from "lucide-react";
import { lazy, Suspense } from "react";
import { Link } from "wouter";
import { api, ok, type Schemas } from "../api/client";
import { useInbox } from "../inbox";
import { Table } from "../parts/table";
import { ms, plain } from "../parts/text";
import { Card, Empty, Loading, Page, Query, ServerLink, State, Time, ToolLink } from "../parts/ui";
import { useSession } from "../session";
import { LogTable } from "./log-table";

const Chart = lazy(() => import("../parts/chart"));

const REFRESH_MS = 5_000;
/** The steps that the figures of the last five minutes cover. */
const RECENT_STEPS = 60;

type Point = Schemas["SeriesPoint"];

export default function Overview() {
  const session = useSession();
  const status = useQuery({
    queryKey: ["status"],
    queryFn: () => ok(api.GET("/api/v1/status")),
    refetchInterval: REFRESH_MS,
  });
  const series = useQuery({
    queryKey: ["series"],
    queryFn: () => ok(api.GET("/api/v1/series")),
    refetchInterval: REFRESH_MS,
  });
  const ready = useQuery({
    queryKey: ["ready"],
    // A service that is not ready answers 503 with its reasons.
    queryFn: async () => {
      const { data, error } = await api.GET("/readyz");
      return (data ?? error) as Schemas["Readiness"];
    },
    refetchInterval: REFRESH_MS,
  });
  return (
    <Page
      title="Overview"
      lead={
        status.data && (
          <>
            Haft {status.data.version}, running since <Time at={status.data.started} />
          </>
        )
      }
    >
      <Warnings ready={ready.data} status={status.data} />
      <Query of={status} what="the status">
        {(data) => <Figures status={data} points={series.data?.points ?? []} />}
      </Query>
      <Query of={series} what="the charts">
        {(data) => <Charts series={data} />}
      </Query>
      <div className="two">
        <ServerStates />
        <RunningCalls />
      </div>
      {session.scope === "admin" && (
        <Card title="Latest errors" actions={<Link href="/log?status=error">All errors</Link>}>
          <LogTable query={{ status: "error" }} limit={5} empty="No call failed." />
        </Card>
      )}
    </Page>
  );
}

/** What needs attention: a service that is not ready, files that are not in use, a log that cannot be written. */
function Warnings(props: { ready: Schemas["Readiness"] | undefined; status: Schemas["Glance"] | undefined }) {
  const { ready, status } = props;
  const reasons = ready?.reasons ?? [];
  const isReady = !ready || (ready.status === "ready" && reasons.length === 0);
  const problem = status?.live.problem;
  return (
    <>
      {!isReady && (
        <div className={`note ${ready.status === "unready" ? "bad" : "warn"}`} role="alert">
          <strong>The service is {ready.status}.</strong>
          {reasons.map((reason) => (
            <p key={reason.what}>
              <Reason what={reason.what} />: {plain(reason.why)}
            </p>
          ))}
        </div>
      )}
      {problem && (
        <div className="note warn" role="alert">
          <strong>The files on disk are not in use:</strong> {plain(problem.text)}{" "}
          <Link href="/config">Show the problems</Link>
        </div>
      )}
      {status && !status.log.is_working && (
        <div className="note bad" role="alert">
          <strong>The execution log cannot be written:</strong> {plain(status.log.problem ?? "")}
          {status.log.remedy && <p>What to do: {plain(status.log.remedy)}</p>}
        </div>
      )}
      {status?.log.warning && <div className="note warn">{plain(status.log.warning)}</div>}
    </>
  );
}

function Reason(props: { what: string }) {
  const server = /^server:(.+)$/.exec(props.what)?.[1];
  return server ? <ServerLink name={server} /> : plain(props.what);
}

function Figures(props: { status: Schemas["Glance"]; points: Point[] }) {
  const { status } = props;
  const { items } = useInbox();
  const recent = props.points.slice(-RECENT_STEPS);
  const calls = recent.reduce((sum, point) => sum + point.calls, 0);
  const errors = recent.reduce((sum, point) => sum + point.errors, 0);
  const p95 = recent.findLast((point) => typeof point.p95_ms === "number")?.p95_ms;
  return (
    <div className="grid">
      <Tile name="Tools" href="/tools" value={status.tools} />
      <Tile name="Servers" href="/servers" value={status.servers} />
      <Tile name="Questions" href="/inbox" value={items.length} isBad={items.length > 0} />
      <Tile
        name="Running calls"
        value={status.calls.in_flight}
        more={`of ${status.calls.max_concurrent}, ${status.calls.waiting} queued`}
      />
      <Tile name="Calls, 5 min" href="/log" value={calls} />
      <Tile
        name="Errors, 5 min"
        href="/log?status=error"
        value={calls === 0 ? "–" : `${Math.round((errors / calls) * 100)} %`}
        more={errors > 0 ? `${errors} failed` : ""}
        isBad={errors > 0}
      />
      <Tile name="p95 duration" value={typeof p95 === "number" ? ms(p95) : "–"} />
    </div>
  );
}

function Tile(props: {
  name: string;
  value: string | number;
  more?: string;
  href?: string;
  isBad?: boolean;
}) {
  const content = (
    <>
      <div className="muted">{props.name}</div>
      <div className={`figure ${props.isBad ? "bad" : ""}`}>
        {props.value} {props.more && <small>{props.more}</small>}
      </div>
    </>
  );
  if (!props.href) return <div className="card tile">{content}</div>;
  return (
    <Link className="card tile" href={props.href}>
      {content}
    </Link>
  );
}

function Charts(props: { series: Schemas["TimeSeries"] }) {
  const { step_secs, points } = props.series;
  if (points.length === 0) {
    return (
      <Card>
        <Empty title="The charts begin with the first five seconds">They cover the last hour.</Empty>
      </Card>
    );
  }
  const times = points.map((point) => new Date(point.at).getTime() / 1_000);
  const newest = points[points.length - 1];
  const rate = (value: number | undefined) => ((value ?? 0) / step_secs).toFixed(1);
  const line = (label: string, color: string, of: (point: Point) => number | null) => ({
    label,
    color,
    values: points.map(of),
  });
  const shown = (value: number | null | undefined) => (typeof value === "number" ? ms(value) : "–");
  return (
    <Suspense fallback={<Loading what="the charts" />}>
      <div className="three">
        <Card
          title="Calls / s"
          actions={
            <div className="legend">
              <span className="dot-main">calls {rate(newest?.calls)}</span>
              <span className="dot-bad">errors {rate(newest?.errors)}</span>
            </div>
          }
        >
          <Chart
            label={`Calls and errors per second, now ${rate(newest?.calls)}`}
            times={times}
            lines={[
              line("calls", "#2f9478", (point) => point.calls / step_secs),
              line("errors", "#d04545", (point) => point.errors / step_secs),
            ]}
          />
        </Card>
        <Card
          title="Duration, ms"
          actions={
            <div className="legend">
              <span className="dot-main">p50 {shown(newest?.p50_ms)}</span>
              <span className="dot-warn">p95 {shown(newest?.p95_ms)}</span>
            </div>
          }
        >
          <Chart
            label={`Duration of calls in milliseconds, 95th percentile now ${newest?.p95_ms ?? 0}`}
            times={times}
            lines={[
              line("p50 ms", "#2f9478", (point) => point.p50_ms ?? null),
              line("p95 ms", "#c98a1b", (point) => point.p95_ms ?? null),
            ]}
          />
        </Card>
        <Card
          title="Load"
          actions={
            <div className="legend">
              <span className="dot-info">running {newest?.in_flight ?? 0}</span>
              <span className="dot-warn">waiting {newest?.waiting ?? 0}</span>
            </div>
          }
        >
          <Chart
            label="Running calls and queue length"
            times={times}
            lines={[
              line("running", "#2f7fd0", (point) => point.in_flight),
              line("waiting", "#c98a1b", (point) => point.waiting),
            ]}
          />
        </Card>
      </div>
    </Suspense>
  );
}

function ServerStates() {
  const servers = useQuery({
    queryKey: ["servers"],
    queryFn: () => ok(api.GET("/api/v1/servers")),
    refetchInterval: REFRESH_MS,
  });
  return (
    <Card title="Servers" actions={<Link href="/servers">All servers</Link>}>
      <Query of={servers} what="the servers">
        {(data) =>
          data.servers.length === 0 ? (
            <Empty title="No server is configured" icon={Plug}>
              <Link className="button" href="/servers?add=1">
                Add a server
              </Link>
            </Empty>
          ) : (
            <Table
              rows={data.servers}
              keyOf={(server) => server.name}
              columns={[
                { name: "Name", kind: "name", cell: (server) => <ServerLink name={server.name} /> },
                { name: "State", kind: "fit", isPlain: true, cell: (server) => <State of={server.state} /> },
                {
                  name: "Details",
                  isPlain: true,
                  cell: (server) => (
                    <span className="small muted clamp">
                      {plain(
                        server.reason ?? (typeof server.tools === "number" ? `${server.tools} tools` : ""),
                      )}
                    </span>
                  ),
                },
              ]}
            />
          )
        }
      </Query>
    </Card>
  );
}

function RunningCalls() {
  const calls = useQuery({
    queryKey: ["calls"],
    queryFn: () => ok(api.GET("/api/v1/calls")),
    refetchInterval: 1_000,
  });
  const cancel = async (id: string) => {
    await api.DELETE("/api/v1/calls/{execution_id}", { params: { path: { execution_id: id } } });
    await calls.refetch();
  };
  return (
    <Card title="Running calls">
      <Query of={calls} what="the running calls">
        {(data) =>
          data.calls.length === 0 ? (
            <Empty title="No call is running" icon={CircleCheck} />
          ) : (
            <Table
              rows={data.calls}
              keyOf={(call) => call.execution_id}
              columns={[
                { name: "Tool", kind: "name", cell: (call) => <ToolLink name={call.tool} /> },
                { name: "State", kind: "fit", isPlain: true, cell: (call) => <State of={call.state} /> },
                { name: "Caller", cell: (call) => plain(call.caller ?? "–") },
                {
                  name: "For",
                  kind: "num",
                  cell: (call) => ms(Math.max(0, Date.now() - new Date(call.started).getTime())),
                },
                {
                  name: "Action",
                  kind: "fit",
                  isPlain: true,
                  cell: (call) => (
                    <button type="button" className="compact" onClick={() => void cancel(call.execution_id)}>
                      Cancel
                    </button>
                  ),
                },
              ]}
            />
          )
        }
      </Query>
    </Card>
  );
}
