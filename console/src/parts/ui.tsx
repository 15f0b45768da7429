// Small pieces that every page uses.

import { type ReactNode, useEffect, useState } from "react";
import { Link } from "wouter";
import { ApiError } from "../api/client";
import { plain } from "./text";

export function Page(props: { title: string; crumb?: ReactNode; actions?: ReactNode; children: ReactNode }) {
  useEffect(() => {
    document.title = `${plain(props.title)} · Haft`;
  }, [props.title]);
  return (
    <>
      <div className="head">
        <div>
          {props.crumb && <div className="crumb">{props.crumb}</div>}
          <h1>{plain(props.title)}</h1>
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
        <div className="row between">
          <h2>{props.title}</h2>
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

export function State(props: { of: string }) {
  return <Badge tone={STATE_TONES[props.of] ?? ""}>{props.of}</Badge>;
}

export function Loading(props: { what: string }) {
  return (
    <div className="empty" role="status">
      Loading {props.what}…
    </div>
  );
}

export function Empty(props: { children: ReactNode }) {
  return <div className="empty">{props.children}</div>;
}

/** An error with its cause and remedy, as the service gives them. */
export function Failure(props: { error: unknown; retry?: () => void }) {
  const { error } = props;
  const problem = error instanceof ApiError ? error.problem : {};
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
          {each.remedy ? ` — ${plain(each.remedy)}` : ""}
        </p>
      ))}
      {problem.remedy && <p>What to do: {plain(problem.remedy)}</p>}
      {props.retry && (
        <button type="button" onClick={props.retry}>
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
      {date.toLocaleTimeString([], { hour12: false })}
    </time>
  );
}

export function Copy(props: { text: string; label?: string }) {
  const [isDone, setDone] = useState(false);
  const copy = async () => {
    await navigator.clipboard?.writeText(props.text).catch(() => {});
    setDone(true);
    setTimeout(() => setDone(false), 1500);
  };
  return (
    <button type="button" onClick={() => void copy()}>
      {isDone ? "Copied" : (props.label ?? "Copy")}
    </button>
  );
}

export function Snippet(props: { text: string; label: string }) {
  return (
    <div>
      <div className="row between">
        <h3>{props.label}</h3>
        <Copy text={props.text} />
      </div>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls is reached by keyboard */}
      <pre tabIndex={0}>{plain(props.text)}</pre>
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

export function Tabs<T extends string>(props: { names: readonly T[]; at: T; onPick: (name: T) => void }) {
  return (
    <div className="tabs" role="tablist">
      {props.names.map((name) => (
        <button
          type="button"
          key={name}
          role="tab"
          aria-selected={name === props.at}
          onClick={() => props.onPick(name)}
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
