// An entry of the registry as JSON. A change that was made elsewhere meanwhile is not overwritten.

import { useQueryClient } from "@tanstack/react-query";
import { lazy, Suspense, useState } from "react";
import { ApiError } from "../api/client";
import { Badge, Failure, Json, Loading } from "./ui";

const JsonEditor = lazy(() => import("./json-editor"));

/** An entry with its revision. */
export interface Revision {
  entry: unknown;
  etag: string | null;
}

interface Props {
  opened: Revision;
  /** The entry as it is now. */
  read: () => Promise<Revision>;
  save: (entry: unknown, headers: Record<string, string>) => Promise<Revision>;
  remove: (headers: Record<string, string>) => Promise<unknown>;
  removeLabel: string;
  onRemoved: () => void;
}

export function EntryEditor(props: Props) {
  const queries = useQueryClient();
  // The revision that is edited: a newer one must not be replaced unseen.
  const [etag, setEtag] = useState(props.opened.etag);
  const [text, setText] = useState(() => pretty(props.opened.entry));
  const [error, setError] = useState<unknown>(null);
  const [current, setCurrent] = useState<Revision | null>(null);
  const [isSaved, setSaved] = useState(false);
  const [isSure, setSure] = useState(false);
  const headers: Record<string, string> = etag ? { "If-Match": etag } : {};
  const attempt = async (change: () => Promise<void>) => {
    setError(null);
    setCurrent(null);
    setSaved(false);
    try {
      await change();
    } catch (reason) {
      setError(reason);
      if (reason instanceof ApiError && reason.status === 412) setCurrent(await props.read());
      return;
    }
    await queries.invalidateQueries();
  };
  const save = () =>
    attempt(async () => {
      const saved = await props.save(JSON.parse(text), headers);
      setEtag(saved.etag);
      setSaved(true);
    });
  const remove = () =>
    attempt(async () => {
      await props.remove(headers);
      props.onRemoved();
    });
  return (
    <>
      <Suspense fallback={<Loading what="the editor" />}>
        <JsonEditor
          label="Entry as JSON"
          value={text}
          onChange={(next) => {
            setText(next);
            setSaved(false);
          }}
        />
      </Suspense>
      <p className="row">
        <button type="button" className="primary" onClick={() => void save()}>
          Save
        </button>
        {isSure ? (
          <>
            <button type="button" className="danger" onClick={() => void remove()}>
              {props.removeLabel}: yes
            </button>
            <button type="button" onClick={() => setSure(false)}>
              No
            </button>
          </>
        ) : (
          <button type="button" className="danger" onClick={() => setSure(true)}>
            {props.removeLabel}
          </button>
        )}
        {isSaved && <Badge tone="ok">saved</Badge>}
      </p>
      {current ? (
        <div className="note warn" role="alert">
          <strong>The entry was changed elsewhere since you opened it.</strong> Nothing was saved. It is now:
          <Json value={current.entry} />
          <p className="row">
            <button
              type="button"
              onClick={() => {
                setEtag(current.etag);
                setCurrent(null);
                setError(null);
              }}
            >
              Keep my text, and save over it next
            </button>
            <button
              type="button"
              onClick={() => {
                setEtag(current.etag);
                setText(pretty(current.entry));
                setCurrent(null);
                setError(null);
              }}
            >
              Take the changed entry
            </button>
          </p>
        </div>
      ) : error ? (
        <Failure error={error} />
      ) : null}
    </>
  );
}

function pretty(entry: unknown): string {
  return JSON.stringify(entry ?? {}, null, 2);
}
