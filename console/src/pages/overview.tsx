import { useQuery } from "@tanstack/react-query";
import { lazy, Suspense } from "react";
import { Link } from "wouter";
import { api, ok, type Schemas } from "../api/client";
import { useInbox } from "../inbox";
import { ms, plain } from "../parts/text";
import { Badge, Card, Empty, Page, Query, ServerLink, State, Time, ToolLink } from "../parts/ui";

const Chart = lazy(() => import("../parts/chart"));

const REFRESH_MS = 5_000;

export default function Overview() {
  const status = useQuery({
    queryKey: ["status"],
    queryFn: () => ok(api.GET("/api/v1/status")),
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
    <Page title="Overview">
      <Warnings ready={ready.data} />
      <Query of={status} what="the status">
        {(data) => <Figures status={data} />}
      </Query>
      <Charts />
      <div className="two">
        <ServerStates />
        <RunningCalls />
      </div>
    </Page>
  );
}

function Warnings(props: { ready: Schemas["Readiness"] | undefined }) {
  const reasons = props.ready?.reasons ?? [];
  if (!props.ready || (props.ready.status === "ready" && reasons.length === 0)) return null;
  return (
    <div className={`note ${props.ready.status === "unready" ? "bad" : "warn"}`} role="alert">
      <p>
        <strong>The service is {props.ready.status}.</strong>
      </p>
      {reasons.map((reason) => (
        <p key={reason.what}>
          {plain(reason.what)}: {plain(reason.why)}
        </p>
      ))}
    </div>
  );
}

function Figures(props: { status: Schemas["Glance"] }) {
  const { status } = props;
  const { items } = useInbox();
  const figures = [
    { name: "Tools", value: status.tools, href: "/tools" },
    { name: "Servers", value: status.servers, href: "/servers" },
    { name: "Running calls", value: `${status.calls.in_flight} / ${status.calls.max_concurrent}`, href: "/" },
    { name: "Waiting in queues", value: status.calls.waiting, href: "/" },
    { name: "Open questions", value: items.length, href: "/inbox" },
  ];
  const problem = status.live.problem;
  return (
    <>
      {problem && (
        <div className="note warn" role="alert">
          <p>
            <strong>The files on disk are not in use:</strong> {plain(problem.text)}
          </p>
          <p>
            <Link href="/config">Show the problems</Link>
          </p>
        </div>
      )}
      {!status.log.is_working && (
        <div className="note bad" role="alert">
          <p>
            <strong>The execution log cannot be written:</strong> {plain(status.log.problem ?? "")}
          </p>
          {status.log.remedy && <p>What to do: {plain(status.log.remedy)}</p>}
        </div>
      )}
      {status.log.warning && <div className="note warn">{plain(status.log.warning)}</div>}
      <div className="grid">
        {figures.map(({ name, value, href }) => (
          <Card key={name} label={name}>
            <div className="muted small">{name}</div>
            <div className="figure">
              {href === "/" ? (
                value
              ) : (
                <Link className="list-link" href={href}>
                  {value}
                </Link>
              )}
            </div>
          </Card>
        ))}
      </div>
      <p className="muted small">
        Haft {status.version}, running since <Time at={status.started} />
      </p>
    </>
  );
}

function Charts() {
  const series = useQuery({
    queryKey: ["series"],
    queryFn: () => ok(api.GET("/api/v1/series")),
    refetchInterval: REFRESH_MS,
  });
  return (
    <Query of={series} what="the charts">
      {({ step_secs, points }) => {
        if (points.length === 0) return <Empty>The charts begin with the first five seconds.</Empty>;
        const times = points.map((point) => new Date(point.at).getTime() / 1_000);
        const newest = points[points.length - 1];
        const line = (
          label: string,
          color: string,
          of: (point: (typeof points)[number]) => number | null,
        ) => ({
          label,
          color,
          values: points.map(of),
        });
        return (
          <Suspense fallback={null}>
            <div className="two">
              <Card title="Calls per second">
                <Chart
                  label={`Calls and errors per second, now ${((newest?.calls ?? 0) / step_secs).toFixed(1)}`}
                  times={times}
                  lines={[
                    line("calls", "#2f9478", (point) => point.calls / step_secs),
                    line("errors", "#d04545", (point) => point.errors / step_secs),
                  ]}
                />
              </Card>
              <Card title="Duration">
                <Chart
                  label={`Duration of calls in milliseconds, 95th percentile now ${newest?.p95_ms ?? 0}`}
                  times={times}
                  lines={[
                    line("p50 ms", "#2f9478", (point) => point.p50_ms ?? null),
                    line("p95 ms", "#c98a1b", (point) => point.p95_ms ?? null),
                  ]}
                />
              </Card>
              <Card title="Running and waiting">
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
      }}
    </Query>
  );
}

function ServerStates() {
  const servers = useQuery({
    queryKey: ["servers"],
    queryFn: () => ok(api.GET("/api/v1/servers")),
    refetchInterval: REFRESH_MS,
  });
  return (
    <Card title="Servers">
      <Query of={servers} what="the servers">
        {(data) =>
          data.servers.length === 0 ? (
            <Empty>
              No server is configured. <Link href="/servers">Add one</Link>
            </Empty>
          ) : (
            <table>
              <tbody>
                {data.servers.map((server) => (
                  <tr key={server.name}>
                    <td>
                      <ServerLink name={server.name} />
                    </td>
                    <td>
                      <State of={server.state} />
                    </td>
                    <td className="small muted">{plain(server.reason ?? "")}</td>
                  </tr>
                ))}
              </tbody>
            </table>
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
            <Empty>No call is running.</Empty>
          ) : (
            <table>
              <tbody>
                {data.calls.map((call) => (
                  <tr key={call.execution_id}>
                    <td>
                      <ToolLink name={call.tool} />
                    </td>
                    <td>
                      <State of={call.state} />
                    </td>
                    <td className="small">
                      <Badge>{plain(call.caller ?? "")}</Badge>{" "}
                      {ms(Math.max(0, Date.now() - new Date(call.started).getTime()))}
                    </td>
                    <td>
                      <button type="button" onClick={() => void cancel(call.execution_id)}>
                        Cancel
                      </button>
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          )
        }
      </Query>
    </Card>
  );
}
