// The filters of the log, as they are in the address of the page and in requests.

import type { operations } from "../api/schema";

export type LogQuery = NonNullable<operations["get_api_v1_log"]["parameters"]["query"]>;

export const FILTERS = ["tool", "server", "caller", "status", "session", "since", "until"] as const;

/** An entry of the log. The log keeps more fields than the list needs. */
export interface LogEntry {
  execution_id: string;
  timestamp: string;
  tool: string;
  source?: string | null;
  server?: string | null;
  caller?: string | null;
  session?: string | null;
  status: "success" | "error";
  error?: { code: string; message: string; remedy?: string | null } | null;
  input?: unknown;
  output?: unknown;
  queued_ms: number;
  duration_ms: number;
  trace_id?: string | null;
}

export function queryOf(params: URLSearchParams): LogQuery {
  const query: Record<string, string> = {};
  for (const name of FILTERS) {
    const value = params.get(name);
    if (value) query[name] = value;
  }
  return query as LogQuery;
}

/** Returns whether an entry holds the text and has the error code, which the service does not filter by. */
export function fits(entry: LogEntry, text: string, code: string): boolean {
  if (code && entry.error?.code !== code) return false;
  return text === "" || JSON.stringify(entry).toLowerCase().includes(text.toLowerCase());
}
