// One stream for all tabs. A browser opens six connections to an HTTP/1.1 service, so a stream for each tab would
// leave the seventh tab without any.

import { useEffect, useRef, useState } from "react";
import { follow, type ServerEvent, type StreamState } from "./events";

interface Shared {
  events: ServerEvent[];
  state: StreamState;
}

/**
 * Follows a stream whose first event is the whole state. The tab that holds the lock reads it and passes it on;
 * when that tab closes, another one takes the lock.
 */
export function useShared(url: string, onBatch: (events: ServerEvent[]) => void): StreamState {
  const [state, setState] = useState<StreamState>("connecting");
  const handler = useRef(onBatch);
  handler.current = onBatch;
  useEffect(() => {
    const abort = new AbortController();
    const take = (events: ServerEvent[]) => {
      if (!abort.signal.aborted && events.length > 0) handler.current(events);
    };
    // Only secure contexts have locks: a service beyond loopback without TLS has one stream for each tab.
    if (!navigator.locks || !window.BroadcastChannel) {
      void follow(url, (event) => take([event]), setState, abort.signal);
      return () => abort.abort();
    }
    const channel = new BroadcastChannel(`haft ${url}`);
    let isReader = false;
    channel.onmessage = ({ data }: MessageEvent<Shared | "hello">) => {
      if (data === "hello") {
        // A tab that opened later needs the whole state: the stream begins again with it.
        if (isReader) restart();
        return;
      }
      take(data.events);
      setState(data.state);
    };
    let current = new AbortController();
    const restart = () => current.abort();
    const read = async () => {
      isReader = true;
      while (!abort.signal.aborted) {
        current = new AbortController();
        const stop = () => current.abort();
        abort.signal.addEventListener("abort", stop, { once: true });
        let now: StreamState = "connecting";
        const pass = (events: ServerEvent[]) => {
          take(events);
          channel.postMessage({ events, state: now } satisfies Shared);
        };
        await follow(
          url,
          (event) => pass([event]),
          (next) => {
            now = next;
            setState(next);
            pass([]);
          },
          current.signal,
        );
        abort.signal.removeEventListener("abort", stop);
      }
    };
    const lock = navigator.locks.request(`haft ${url}`, { signal: abort.signal }, read);
    void lock.catch(() => {}).finally(() => channel.close());
    channel.postMessage("hello");
    return () => abort.abort();
  }, [url]);
  return state;
}
