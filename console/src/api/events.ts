// Server-sent events: streams of the service that the browser follows, and calls that report their progress.

import { EventSourceParserStream } from "eventsource-parser/stream";
import { useEffect, useRef, useState } from "react";
import { ApiError, CONSOLE_HEADER, reportSignedOut } from "./client";

export interface ServerEvent {
  event: string;
  data: unknown;
}

export type StreamState = "connecting" | "open" | "lost";

const RETRY_MS_MIN = 500;
const RETRY_MS_MAX = 10_000;

function parsed(data: string): unknown {
  try {
    return JSON.parse(data);
  } catch {
    return data;
  }
}

/** Reads the events of one response until it ends. */
export async function readEvents(
  response: Response,
  onEvent: (event: ServerEvent) => void,
  signal?: AbortSignal,
): Promise<void> {
  if (!response.body) return;
  const events = response.body
    .pipeThrough(new TextDecoderStream() as unknown as ReadableWritablePair<string, Uint8Array<ArrayBuffer>>)
    .pipeThrough(new EventSourceParserStream())
    .getReader();
  signal?.addEventListener("abort", () => void events.cancel().catch(() => {}));
  for (;;) {
    const { done, value } = await events.read();
    if (done) return;
    onEvent({ event: value.event ?? "message", data: parsed(value.data) });
  }
}

/** Follows a stream, and connects again when it ends, until the signal aborts. */
export async function follow(
  url: string,
  onEvent: (event: ServerEvent) => void,
  onState: (state: StreamState) => void,
  signal: AbortSignal,
): Promise<void> {
  let pause = RETRY_MS_MIN;
  while (!signal.aborted) {
    try {
      const response = await fetch(url, { headers: { accept: "text/event-stream" }, signal });
      if (response.status === 401) reportSignedOut();
      if (!response.ok) throw new ApiError(response.status, {});
      onState("open");
      pause = RETRY_MS_MIN;
      await readEvents(response, onEvent, signal);
    } catch {
      // A lost stream is connected again below, whatever ended it.
    }
    if (signal.aborted) return;
    onState("lost");
    await new Promise((resolve) => setTimeout(resolve, pause));
    pause = Math.min(pause * 2, RETRY_MS_MAX);
  }
}

/**
 * Follows a stream while the component is shown. Events are handed over in batches, once a frame, so that a
 * fast stream cannot freeze the page.
 */
export function useEvents(url: string | null, onBatch: (events: ServerEvent[]) => void): StreamState {
  const [state, setState] = useState<StreamState>("connecting");
  const handler = useRef(onBatch);
  handler.current = onBatch;
  useEffect(() => {
    if (url === null) return;
    const abort = new AbortController();
    let batch: ServerEvent[] = [];
    let scheduled = 0;
    const flush = () => {
      scheduled = 0;
      const events = batch;
      batch = [];
      if (!abort.signal.aborted) handler.current(events);
    };
    setState("connecting");
    void follow(
      url,
      (event) => {
        batch.push(event);
        // A hidden tab gets no frames, so a timer delivers there.
        if (!scheduled) scheduled = window.setTimeout(flush, 50);
      },
      setState,
      abort.signal,
    );
    return () => {
      abort.abort();
      window.clearTimeout(scheduled);
    };
  }, [url]);
  return state;
}

/** Posts JSON and reads the answer as events. Throws what the service says if it is refused. */
export async function postForEvents(
  url: string,
  body: unknown,
  onEvent: (event: ServerEvent) => void,
  signal: AbortSignal,
): Promise<void> {
  const response = await fetch(url, {
    method: "POST",
    headers: { accept: "text/event-stream", "content-type": "application/json", [CONSOLE_HEADER]: "1" },
    body: JSON.stringify(body),
    signal,
  });
  if (response.status === 401) reportSignedOut();
  const kind = response.headers.get("content-type") ?? "";
  if (!kind.startsWith("text/event-stream")) {
    const answer = (await response.json().catch(() => ({}))) as Record<string, unknown>;
    // A call that was refused answers with its envelope, whatever the status.
    if ("execution_id" in answer) {
      onEvent({ event: "result", data: answer });
      return;
    }
    throw new ApiError(response.status, answer);
  }
  await readEvents(response, onEvent, signal);
}
