import { useInfiniteQuery } from "@tanstack/react-query";
import { useVirtualizer } from "@tanstack/react-virtual";
import { useCallback, useDeferredValue, useMemo, useRef, useState } from "react";
import { Link, useSearchParams } from "wouter";
import { api, ok } from "../api/client";
import { type ServerEvent, useEvents } from "../api/events";
import { ms, plain } from "../parts/text";
import { Badge, Empty, Failure, Loading, Page, State, Time } from "../parts/ui";
import { FILTERS, fits, type LogEntry, type LogQuery, queryOf } from "./log-query";

/** How many entries one request reads. */
const PAGE_SIZE = 1_000;
/** How many entries the tail keeps; older ones are read from the log again. */
const TAIL_MAX = 5_000;
const ROW_PX = 36;

export default function Log() {
  const [params, setParams] = useSearchParams();
  const [isLive, setLive] = useState(true);
  const query = useMemo(() => queryOf(params), [params]);
  const text = params.get("text") ?? "";
  const code = params.get("code") ?? "";
  const set = (name: string, value: string) =>
    setParams(
      (before) => {
        const after = new URLSearchParams(before);
        if (value) after.set(name, value);
        else after.delete(name);
        return after;
      },
      { replace: true },
    );
  return (
    <Page
      title="Log"
      actions={
        <label className="row">
          <input type="checkbox" checked={isLive} onChange={(event) => setLive(event.target.checked)} />
          Live
        </label>
      }
    >
      <search className="row">
        {[...FILTERS, "code", "text"].map((name) =>
          name === "status" ? (
            <select
              key={name}
              aria-label="status"
              value={params.get(name) ?? ""}
              onChange={(event) => set(name, event.target.value)}
            >
              <option value="">any status</option>
              <option>success</option>
              <option>error</option>
            </select>
          ) : (
            <input
              key={name}
              size={name === "text" ? 18 : 11}
              aria-label={name}
              placeholder={name === "since" ? "since, e.g. 1h" : name}
              value={params.get(name) ?? ""}
              onChange={(event) => set(name, event.target.value)}
            />
          ),
        )}
      </search>
      <br />
      <Entries key={JSON.stringify(query)} query={query} text={text} code={code} isLive={isLive} />
    </Page>
  );
}

function Entries(props: { query: LogQuery; text: string; code: string; isLive: boolean }) {
  const { query } = props;
  const log = useInfiniteQuery({
    queryKey: ["log-pages", query],
    queryFn: async ({ pageParam }) => {
      const until = pageParam ?? query.until;
      const asked = { ...query, limit: PAGE_SIZE, newest_first: true, ...(until ? { until } : {}) };
      const page = await ok(api.GET("/api/v1/log", { params: { query: asked } }));
      return page.calls as unknown as LogEntry[];
    },
    initialPageParam: null as string | null,
    getNextPageParam: (page) => (page.length < PAGE_SIZE ? undefined : page[page.length - 1]?.timestamp),
    retry: false,
    staleTime: Number.POSITIVE_INFINITY,
  });
  const { tail, state } = useTail(query, props.isLive && !query.until);
  const text = useDeferredValue(props.text);
  const entries = useMemo(() => {
    const seen = new Set<string>();
    const unique = (entry: LogEntry) => !seen.has(entry.execution_id) && seen.add(entry.execution_id);
    return [...tail, ...(log.data?.pages.flat() ?? [])]
      .filter(unique)
      .filter((entry) => fits(entry, text, props.code));
  }, [tail, log.data, text, props.code]);
  if (log.error && !log.data) return <Failure error={log.error} retry={() => void log.refetch()} />;
  if (!log.data) return <Loading what="the log" />;
  return (
    <>
      <p className="row small muted">
        {entries.length} entries{log.hasNextPage ? " so far" : ""}
        {props.isLive && (
          <Badge tone={state === "open" ? "ok" : "warn"}>{state === "open" ? "live" : state}</Badge>
        )}
        <Export entries={entries} />
      </p>
      {entries.length === 0 ? (
        <Empty>No entry matches.</Empty>
      ) : (
        <Rows
          entries={entries}
          onEnd={() => {
            if (log.hasNextPage && !log.isFetchingNextPage) void log.fetchNextPage();
          }}
        />
      )}
    </>
  );
}

/** The entries that arrive while the page is open, the newest first. */
function useTail(query: LogQuery, isLive: boolean) {
  const [tail, setTail] = useState<LogEntry[]>([]);
  const take = useCallback((events: ServerEvent[]) => {
    const fresh = events.filter(({ event }) => event === "call").map(({ data }) => data as LogEntry);
    if (fresh.length > 0) setTail((before) => [...fresh.reverse(), ...before].slice(0, TAIL_MAX));
  }, []);
  const { since: _since, until: _until, ...followed } = query;
  const url = `/api/v1/log/tail?${new URLSearchParams(followed as Record<string, string>)}`;
  const state = useEvents(isLive ? url : null, take);
  return { tail, state };
}

function Rows(props: { entries: LogEntry[]; onEnd: () => void }) {
  const holder = useRef<HTMLDivElement>(null);
  const rows = useVirtualizer({
    count: props.entries.length,
    getScrollElement: () => holder.current,
    estimateSize: () => ROW_PX,
    overscan: 12,
  });
  const shown = rows.getVirtualItems();
  const last = shown[shown.length - 1];
  if (last && last.index >= props.entries.length - 50) queueMicrotask(props.onEnd);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls is reached by keyboard
    <section className="vlist" ref={holder} aria-label="Entries" tabIndex={0}>
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
              <State of={entry.error?.code === "Cancelled" ? "cancelled" : entry.status} />
              <span className="wide">{ms(entry.duration_ms)}</span>
            </Link>
          );
        })}
      </div>
    </section>
  );
}

function Export(props: { entries: LogEntry[] }) {
  const save = () => {
    const lines = props.entries.map((entry) => `${JSON.stringify(entry)}\n`);
    const url = URL.createObjectURL(new Blob(lines, { type: "application/jsonl" }));
    const link = document.createElement("a");
    link.href = url;
    link.download = "haft-log.jsonl";
    link.click();
    URL.revokeObjectURL(url);
  };
  return (
    <button type="button" onClick={save} disabled={props.entries.length === 0}>
      Export as JSONL
    </button>
  );
}
