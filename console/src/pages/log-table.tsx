import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { api, ok } from "../api/client";
import { Table } from "../parts/table";
import { ms, plain } from "../parts/text";
import { Empty, Query, State, Time } from "../parts/ui";
import type { LogEntry, LogQuery } from "./log-query";

/** The newest entries that match, as a short table. */
export function LogTable(props: { query: LogQuery; limit: number; empty: string }) {
  const query = { ...props.query, limit: props.limit, newest_first: true };
  const log = useQuery({
    queryKey: ["log", query],
    queryFn: () => ok(api.GET("/api/v1/log", { params: { query } })),
    refetchInterval: 5_000,
    retry: false,
  });
  return (
    <Query of={log} what="the calls">
      {(data) => {
        const calls = data.calls as unknown as LogEntry[];
        if (calls.length === 0) return <Empty title={props.empty} />;
        return (
          <Table
            rows={calls}
            keyOf={(entry) => entry.execution_id}
            columns={[
              {
                name: "Time",
                kind: "fit",
                isPlain: true,
                cell: (entry) => (
                  <Link href={`/log/${entry.execution_id}`}>
                    <Time at={entry.timestamp} />
                  </Link>
                ),
              },
              ...(props.query.tool
                ? []
                : [{ name: "Tool", kind: "name" as const, cell: (entry: LogEntry) => plain(entry.tool) }]),
              {
                name: "Status",
                kind: "fit",
                isPlain: true,
                cell: (entry) => <State of={entry.status}>{entry.error?.code ?? entry.status}</State>,
              },
              { name: "Caller", kind: "fit", cell: (entry) => plain(entry.caller ?? "–") },
              {
                name: "Message",
                isPlain: true,
                cell: (entry) => (
                  <span className="small muted clamp">{plain(entry.error?.message ?? "")}</span>
                ),
              },
              { name: "Duration", kind: "num", cell: (entry) => ms(entry.duration_ms) },
            ]}
          />
        );
      }}
    </Query>
  );
}
