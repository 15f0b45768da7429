// The filters of the log, as they are in the address of the page and in requests.

import type { operations } from "../api/schema";

export type LogQuery = NonNullable<operations["list_log"]["parameters"]["query"]>;

export const FILTERS = [
  "tool",
  "server",
  "caller",
  "status",
  "code",
  "session",
  "since",
  "until",
  "text",
] as const;

export const CODES = [
  "UnknownTool",
  "Denied",
  "ValidationError",
  "OutputValidationError",
  "Busy",
  "Timeout",
  "Cancelled",
  "ToolExecutionError",
  "ServiceUnavailable",
  "ProtocolError",
  "OutcomeUnknown",
  "Stopping",
];

/** An entry of the log. The log keeps more fields than the list needs. */
export interface LogEntry {
  /** What a script printed. */
  stdout?: string;
  execution_id: string;
  timestamp: string;
  tool: string;
  source?: string | null;
  server?: string | null;
  caller?: string | null;
  session?: string | null;
  request?: string | null;
  status: "success" | "error";
  error?: { code: string; message: string; remedy?: string | null; details?: unknown } | null;
  input?: unknown;
  output?: unknown;
  content?: unknown;
  raw?: unknown;
  outcome?: Record<string, string>;
  queued_ms: number;
  duration_ms: number;
  trace_id?: string | null;
  /** The rule that decided on the call. */
  policy?: {
    rule: string;
    file: string;
    line: number;
    effect: string;
    reason?: string;
    problem?: string;
    values?: Record<string, unknown>;
  };
}

/** The fields of an entry that the list shows. Inputs and outputs may be large, and there may be many. */
export type LogRow = Pick<
  LogEntry,
  "execution_id" | "timestamp" | "tool" | "caller" | "status" | "duration_ms"
> & {
  code: string | null;
};

export function rowOf(entry: LogEntry): LogRow {
  const { execution_id, timestamp, tool, caller = null, status, duration_ms } = entry;
  return { execution_id, timestamp, tool, caller, status, duration_ms, code: entry.error?.code ?? null };
}

export function queryOf(params: URLSearchParams): LogQuery {
  const query: Record<string, string> = {};
  for (const name of FILTERS) {
    const value = params.get(name);
    if (value) query[name] = value;
  }
  return query as LogQuery;
}
