// Small pieces that every page uses.

import { Check, Copy as CopyIcon, type LucideIcon, RotateCw } from "lucide-react";
import { type ReactNode, useEffect, useRef, useState } from "react";
import { Link } from "wouter";
import { ApiError } from "../api/client";
import type { StreamState } from "../api/events";
import { plain } from "./text";

export function Page(props: {
  title: string;
  lead?: ReactNode;
  crumb?: ReactNode;
  actions?: ReactNode;
  children: ReactNode;
}) {
  useEffect(() => {
    document.title = `${plain(props.title)} · Haft`;
  }, [props.title]);
  return (
    <>
      <div className="head">
        <div>
          {props.crumb && <div className="crumb">{props.crumb}</div>}
          <h1>{plain(props.title)}</h1>
          {props.lead && <p className="lead">{props.lead}</p>}
        </div>
        <div className="grow" />
        {props.actions}
      </div>
      {props.children}
    </>
  );
}

export function Card(props: { title?: ReactNode; actions?: ReactNode; children: ReactNode; label?: string }) {
  return (
    <section className="card" aria-label={props.label}>
      {(props.title || props.actions) && (
        <div className="card-head">
          {props.title && <h2>{props.title}</h2>}
          <div className="row">{props.actions}</div>
        </div>
      )}
      {props.children}
    </section>
  );
}

export type Tone = "ok" | "warn" | "bad" | "info" | "";

export function Badge(props: { tone?: Tone; children: ReactNode }) {
  return <span className={`badge ${props.tone ?? ""}`}>{props.children}</span>;
}

const STATE_TONES: Record<string, Tone> = {
  ready: "ok",
  success: "ok",
  completed: "ok",
  connecting: "info",
  running: "info",
  waiting: "info",
  configured: "",
  disabled: "",
  stopped: "",
  degraded: "warn",
  cancelled: "warn",
  error: "bad",
  failed: "bad",
  unavailable: "bad",
};

export function State(props: { of: string; children?: ReactNode }) {
  return (
    <span className={`badge state ${STATE_TONES[props.of] ?? ""}`}>{props.children ?? plain(props.of)}</span>
  );
}

/** The state of a live stream. */
export function Live(props: { state: StreamState }) {
  const isOpen = props.state === "open";
  return (
    <span className={`badge state ${isOpen ? "ok" : "warn"}`} role="status">
      {isOpen ? "live" : props.state === "lost" ? "reconnecting" : "connecting"}
    </span>
  );
}

export function Loading(props: { what: string }) {
  return (
    <div className="skeleton" role="status" aria-busy="true">
      <span className="hidden">Loading {props.what}…</span>
      <i />
      <i />
      <i />
    </div>
  );
}

/** What a page shows in place of an empty list: what would be here, and how it gets here. */
export function Empty(props: { title: string; icon?: LucideIcon; children?: ReactNode }) {
  const Icon = props.icon;
  return (
    <div className="empty">
      {Icon && <Icon size={34} strokeWidth={1.5} aria-hidden />}
      <strong>{props.title}</strong>
      {typeof props.children === "string" ? <p>{props.children}</p> : props.children}
    </div>
  );
}

/** An error with its cause and remedy, as the service gives them. */
export function Failure(props: { error: unknown; retry?: () => void }) {
  const { error } = props;
  const problem = error instanceof ApiError ? error.problem : {};
  // The remedy of the whole is often that of its first error.
  const isSaid = problem.errors?.some((each) => each.remedy === problem.remedy);
  const text = error instanceof Error ? error.message : String(error);
  return (
    <div className="note bad" role="alert">
      <p>
        <strong>{plain(problem.title ?? "This did not work")}</strong>
        {problem.code ? ` (${plain(problem.code)})` : ""}
      </p>
      <p>{plain(text)}</p>
      {problem.errors?.map((each) => (
        <p key={`${each.place}${each.problem}`}>
          <code>{plain(each.place)}</code>: {plain(each.problem)}
          {each.remedy ? `. What to do: ${plain(each.remedy)}` : ""}
        </p>
      ))}
      {problem.remedy && !isSaid && <p>What to do: {plain(problem.remedy)}</p>}
      {props.retry && (
        <button type="button" className="compact" onClick={props.retry}>
          <RotateCw size={14} aria-hidden />
          Try again
        </button>
      )}
    </div>
  );
}

interface QueryLike<T> {
  data: T | undefined;
  error: unknown;
  isPending: boolean;
  refetch: () => unknown;
}

/** The states of a query: loading, failed, there. */
export function Query<T>(props: { of: QueryLike<T>; what: string; children: (data: T) => ReactNode }) {
  const { of } = props;
  if (of.data !== undefined) {
    return (
      <>
        {of.error ? <Failure error={of.error} retry={() => void of.refetch()} /> : null}
        {props.children(of.data)}
      </>
    );
  }
  if (of.error) return <Failure error={of.error} retry={() => void of.refetch()} />;
  return <Loading what={props.what} />;
}

export function Time(props: { at: string | null | undefined }) {
  if (!props.at) return <span className="muted">–</span>;
  const date = new Date(props.at);
  if (Number.isNaN(date.getTime())) return <span>{plain(props.at)}</span>;
  return (
    <time dateTime={props.at} title={date.toLocaleString()}>
      {isToday(date) ? "" : `${date.toLocaleDateString([], { month: "short", day: "numeric" })} `}
      {date.toLocaleTimeString([], { hour12: false })}
    </time>
  );
}

function isToday(date: Date): boolean {
  return date.toDateString() === new Date().toDateString();
}

export function Copy(props: { text: string; label?: string }) {
  const [isDone, setDone] = useState(false);
  const copy = async () => {
    await navigator.clipboard?.writeText(props.text).catch(() => {});
    setDone(true);
    setTimeout(() => setDone(false), 1500);
  };
  return (
    <button type="button" className="compact" onClick={() => void copy()}>
      {isDone ? <Check size={14} aria-hidden /> : <CopyIcon size={14} aria-hidden />}
      {isDone ? "Copied" : (props.label ?? "Copy")}
    </button>
  );
}

export function Snippet(props: { text: string; label: string }) {
  return (
    <div>
      <div className="row between whole">
        <h3>{props.label}</h3>
        <Copy text={props.text} />
      </div>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls is reached by keyboard */}
      <pre className="code" tabIndex={0}>
        {plain(props.text)}
      </pre>
    </div>
  );
}

export function Json(props: { value: unknown }) {
  const text = JSON.stringify(props.value, null, 2) ?? "null";
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls is reached by keyboard
    <pre tabIndex={0}>{plain(text)}</pre>
  );
}

/** Tabs with the keys of the ARIA pattern: arrows move, one tab is in the tab order. */
export function Tabs<T extends string>(props: { names: readonly T[]; at: T; onPick: (name: T) => void }) {
  const holder = useRef<HTMLDivElement>(null);
  const move = (step: number) => {
    const index = (props.names.indexOf(props.at) + step + props.names.length) % props.names.length;
    const name = props.names[index];
    if (name === undefined) return;
    props.onPick(name);
    holder.current?.querySelectorAll<HTMLElement>("[role=tab]")[index]?.focus();
  };
  return (
    <div className="tabs" role="tablist" ref={holder}>
      {props.names.map((name) => (
        <button
          type="button"
          key={name}
          role="tab"
          aria-selected={name === props.at}
          tabIndex={name === props.at ? 0 : -1}
          onClick={() => props.onPick(name)}
          onKeyDown={(event) => {
            if (event.key === "ArrowRight") move(1);
            else if (event.key === "ArrowLeft") move(-1);
            else return;
            event.preventDefault();
          }}
        >
          {name}
        </button>
      ))}
    </div>
  );
}

export function ToolLink(props: { name: string }) {
  return <Link href={`/tools/${encodeURIComponent(props.name)}`}>{plain(props.name)}</Link>;
}

export function ServerLink(props: { name: string }) {
  return <Link href={`/servers/${encodeURIComponent(props.name)}`}>{plain(props.name)}</Link>;
}
