import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { api, ok } from "../api/client";
import { ms, plain } from "../parts/text";
import { Empty, Query, State, Time } from "../parts/ui";
import type { LogEntry, LogQuery } from "./log-query";

/** The newest entries that match, as a short table. */
export function LogTable(props: { query: LogQuery; limit: number }) {
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
        if (calls.length === 0) return <Empty>No call was recorded yet.</Empty>;
        return (
          <div className="scroll">
            <table>
              <tbody>
                {calls.map((entry) => (
                  <tr key={entry.execution_id}>
                    <td>
                      <Link href={`/log/${entry.execution_id}`}>
                        <Time at={entry.timestamp} />
                      </Link>
                    </td>
                    <td>
                      <State of={entry.status} /> {entry.error?.code ?? ""}
                    </td>
                    <td>{plain(entry.caller ?? "")}</td>
                    <td>{ms(entry.duration_ms)}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        );
      }}
    </Query>
  );
}
