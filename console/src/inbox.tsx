// The open questions, followed while the console is open: the counter, notifications and the inbox page read them.

import { createContext, type ReactNode, useCallback, useContext, useEffect, useState } from "react";
import type { Schemas } from "./api/client";
import type { ServerEvent, StreamState } from "./api/events";
import { useShared } from "./api/shared";
import { plain } from "./parts/text";

export type Item = Schemas["InboxItem"];

interface Inbox {
  items: Item[];
  state: StreamState;
}

const Current = createContext<Inbox>({ items: [], state: "connecting" });

export function useInbox(): Inbox {
  return useContext(Current);
}

/** Returns the open questions after some events. */
export function reduce(items: Item[], events: ServerEvent[]): Item[] {
  let open = items;
  for (const { event, data } of events) {
    if (event === "open") open = (data as { items: Item[] }).items;
    if (event === "asked") open = [...open.filter((it) => it.id !== (data as Item).id), data as Item];
    if (event === "closed") open = open.filter((it) => it.id !== (data as { id: string }).id);
  }
  return open;
}

function notify(events: ServerEvent[]): void {
  if (!("Notification" in window) || Notification.permission !== "granted" || !document.hidden) return;
  for (const { event, data } of events) {
    if (event === "asked")
      new Notification("Haft asks", { body: plain((data as Item).question).slice(0, 200) });
  }
}

export function InboxProvider(props: { children: ReactNode }) {
  const [items, setItems] = useState<Item[]>([]);
  const take = useCallback((events: ServerEvent[]) => {
    setItems((before) => reduce(before, events));
    notify(events);
  }, []);
  const state = useShared("/api/v1/inbox/events", take);
  useEffect(() => {
    // Pages set the title; the counter goes in front of whatever it is.
    const titled = () => {
      const bare = document.title.replace(/^\(\d+\) /, "");
      const title = items.length > 0 ? `(${items.length}) ${bare}` : bare;
      if (document.title !== title) document.title = title;
    };
    titled();
    const observer = new MutationObserver(titled);
    const element = document.querySelector("title");
    if (element) observer.observe(element, { childList: true });
    return () => observer.disconnect();
  }, [items.length]);
  return <Current.Provider value={{ items, state }}>{props.children}</Current.Provider>;
}
