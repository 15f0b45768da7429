import { useInfiniteQuery } from "@tanstack/react-query";
import { useVirtualizer } from "@tanstack/react-virtual";
import { Download, ListX } from "lucide-react";
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { Link } from "wouter";
import { api, ok } from "../api/client";
import { type ServerEvent, useEvents } from "../api/events";
import { AdminOnly } from "../parts/admin-only";
import { SearchBox, useFilters } from "../parts/table";
import { ms, plain } from "../parts/text";
import { Empty, Failure, Live, Loading, Page, State, Time } from "../parts/ui";
import { CODES, FILTERS, type LogEntry, type LogQuery, type LogRow, queryOf, rowOf } from "./log-query";

/** How many entries one request reads. */
const PAGE_SIZE = 1_000;
/** How many entries the tail keeps; older ones are read from the log again. */
const TAIL_MAX = 5_000;
/** How long a filter is typed before the log is read again. */
const TYPING_MS = 300;
const ROW_PX = 36;

/** The filters behind “More filters”. */
const MORE = ["tool", "server", "caller", "session", "since", "until"] as const;

const HINTS: Record<string, string> = {
  caller: "key:NAME",
  since: "2h or 2026-01-31",
  until: "1h or a date",
};

export default function Log() {
  return (
    <AdminOnly title="Log">
      <LogPage />
    </AdminOnly>
  );
}

function LogPage() {
  const [params, set] = useFilters();
  const [isLive, setLive] = useState(true);
  const query = useMemo(() => queryOf(params), [params]);
  const settled = useSettled(query);
  const active = FILTERS.filter((name) => params.get(name));
  const clear = () => {
    for (const name of active) set(name, "");
  };
  return (
    <Page
      title="Log"
      lead="Every call with its input, output and timings."
      actions={
        <label className="row">
          <input type="checkbox" checked={isLive} onChange={(event) => setLive(event.target.checked)} />
          Live
        </label>
      }
    >
      <search className="toolbar">
        <SearchBox
          label="Search in tools, inputs and outputs"
          value={params.get("text") ?? ""}
          onChange={(text) => set("text", text)}
        />
        <select
          aria-label="status"
          value={params.get("status") ?? ""}
          onChange={(event) => set("status", event.target.value)}
        >
          <option value="">any status</option>
          <option>success</option>
          <option>error</option>
        </select>
        <select
          aria-label="code"
          value={params.get("code") ?? ""}
          onChange={(event) => set("code", event.target.value)}
        >
          <option value="">any code</option>
          {CODES.map((code) => (
            <option key={code}>{code}</option>
          ))}
        </select>
        <details className="more" open={MORE.some((name) => params.get(name)) || undefined}>
          <summary className="small">More filters</summary>
          <div className="row">
            {MORE.map((name) => (
              <input
                key={name}
                size={HINTS[name] ? 20 : 10}
                aria-label={name}
                placeholder={HINTS[name] ? `${name}: ${HINTS[name]}` : name}
                value={params.get(name) ?? ""}
                onChange={(event) => set(name, event.target.value)}
              />
            ))}
          </div>
        </details>
        {active.length > 0 && (
          <button type="button" className="quiet" onClick={() => clear()}>
            Clear
          </button>
        )}
      </search>
      <Entries key={JSON.stringify(settled)} query={settled} isLive={isLive} />
    </Page>
  );
}

/** Reads the newest entries before a timestamp. */
async function readPage(query: LogQuery, before: string | null): Promise<LogEntry[]> {
  const until = before ?? query.until;
  const asked = { ...query, limit: PAGE_SIZE, newest_first: true, ...(until ? { until } : {}) };
  const page = await ok(api.GET("/api/v1/log", { params: { query: asked } }));
  return page.calls as unknown as LogEntry[];
}

/** Returns the value once it has not changed for a while. */
function useSettled(query: LogQuery): LogQuery {
  const [settled, setSettled] = useState(query);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(query), TYPING_MS);
    return () => clearTimeout(timer);
  }, [query]);
  return settled;
}

function Entries(props: { query: LogQuery; isLive: boolean }) {
  const { query } = props;
  const log = useInfiniteQuery({
    queryKey: ["log-pages", query],
    queryFn: async ({ pageParam }) => {
      const page = await readPage(query, pageParam);
      return page.map(rowOf);
    },
    initialPageParam: null as string | null,
    getNextPageParam: (page) => (page.length < PAGE_SIZE ? undefined : page[page.length - 1]?.timestamp),
    retry: false,
    staleTime: Number.POSITIVE_INFINITY,
    // Pages are large: they are dropped when the log is left.
    gcTime: 0,
  });
  const { tail, state } = useTail(query, props.isLive && !query.until);
  const entries = useMemo(() => {
    const seen = new Set<string>();
    const unique = (entry: LogRow) => !seen.has(entry.execution_id) && seen.add(entry.execution_id);
    return [...tail, ...(log.data?.pages.flat() ?? [])].filter(unique);
  }, [tail, log.data]);
  if (log.error && !log.data) return <Failure error={log.error} retry={() => void log.refetch()} />;
  if (!log.data) return <Loading what="the log" />;
  return (
    <>
      <div className="row between">
        <p className="row small muted">
          {entries.length.toLocaleString("en")} {entries.length === 1 ? "entry" : "entries"}
          {log.hasNextPage ? " so far; scroll for older ones" : ""}
          {props.isLive && <Live state={state} />}
        </p>
        <Export query={query} isEmpty={entries.length === 0} />
      </div>
      {log.error && <Failure error={log.error} retry={() => void log.fetchNextPage()} />}
      {entries.length === 0 ? (
        <Empty title="No entry matches" icon={ListX}>
          Calls appear here when they end. Filters that are set are in the address.
        </Empty>
      ) : (
        <Rows
          entries={entries}
          onEnd={() => {
            if (log.hasNextPage && !log.isFetchingNextPage && !log.error) void log.fetchNextPage();
          }}
        />
      )}
    </>
  );
}

/** The entries that arrive while the page is open, the newest first. */
function useTail(query: LogQuery, isLive: boolean) {
  const [tail, setTail] = useState<LogRow[]>([]);
  const take = useCallback((events: ServerEvent[]) => {
    const fresh = events.filter(({ event }) => event === "call").map(({ data }) => rowOf(data as LogEntry));
    if (fresh.length > 0) setTail((before) => [...fresh.reverse(), ...before].slice(0, TAIL_MAX));
  }, []);
  const { since: _since, until: _until, ...followed } = query;
  const url = `/api/v1/log/tail?${new URLSearchParams(followed as Record<string, string>)}`;
  const state = useEvents(isLive ? url : null, take);
  return { tail, state };
}

function Rows(props: { entries: LogRow[]; onEnd: () => void }) {
  const holder = useRef<HTMLDivElement>(null);
  const rows = useVirtualizer({
    count: props.entries.length,
    getScrollElement: () => holder.current,
    estimateSize: () => ROW_PX,
    overscan: 12,
  });
  const shown = rows.getVirtualItems();
  const last = shown[shown.length - 1];
  const isNearEnd = last !== undefined && last.index >= props.entries.length - 50;
  const { onEnd } = props;
  useEffect(() => {
    if (isNearEnd) onEnd();
  });
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls is reached by keyboard
    <section className="vlist" ref={holder} aria-label="Entries" tabIndex={0}>
      <div className="vrow heading" aria-hidden>
        <span>Time</span>
        <span>Tool</span>
        <span className="wide">Caller</span>
        <span>Status</span>
        <span className="wide num">Duration</span>
      </div>
      <div className="lane" style={{ height: rows.getTotalSize() }}>
        {shown.map((row) => {
          const entry = props.entries[row.index];
          if (!entry) return null;
          return (
            <Link
              key={entry.execution_id}
              href={`/log/${entry.execution_id}`}
              className="vrow"
              style={{ transform: `translateY(${row.start}px)` }}
            >
              <Time at={entry.timestamp} />
              <span>{plain(entry.tool)}</span>
              <span className="wide muted">{plain(entry.caller ?? "")}</span>
              <State of={entry.code === "Cancelled" ? "cancelled" : entry.status}>
                {entry.code ?? entry.status}
              </State>
              <span className="wide num">{ms(entry.duration_ms)}</span>
            </Link>
          );
        })}
      </div>
    </section>
  );
}

/** The largest number of entries in one exported file. */
const EXPORT_MAX = 100_000;

/** Saves every entry that matches, whole, as lines of JSON. */
function Export(props: { query: LogQuery; isEmpty: boolean }) {
  const [count, setCount] = useState<number | null>(null);
  const [error, setError] = useState<unknown>(null);
  const save = async () => {
    setError(null);
    setCount(0);
    try {
      const parts: Blob[] = [];
      let before: string | null = null;
      for (let total = 0; total < EXPORT_MAX; ) {
        const page: LogEntry[] = await readPage(props.query, before);
        parts.push(new Blob(page.map((entry) => `${JSON.stringify(entry)}\n`)));
        total += page.length;
        setCount(total);
        before = page[page.length - 1]?.timestamp ?? null;
        if (page.length < PAGE_SIZE) break;
      }
      download(new Blob(parts, { type: "application/jsonl" }));
    } catch (reason) {
      setError(reason);
    }
    setCount(null);
  };
  return (
    <div>
      <button
        type="button"
        className="compact"
        onClick={() => void save()}
        disabled={props.isEmpty || count !== null}
      >
        <Download size={14} aria-hidden />
        {count === null ? "Export as JSONL" : `Reading ${count.toLocaleString("en")}…`}
      </button>
      {error ? <Failure error={error} /> : null}
    </div>
  );
}

function download(content: Blob): void {
  const url = URL.createObjectURL(content);
  const link = document.createElement("a");
  link.href = url;
  link.download = "haft-log.jsonl";
  link.click();
  URL.revokeObjectURL(url);
}
