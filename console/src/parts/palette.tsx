// The command palette: Ctrl-K jumps to any page, tool, server or log entry.

import { useQuery } from "@tanstack/react-query";
import { useEffect, useMemo, useRef, useState } from "react";
import { useLocation } from "wouter";
import { api, ok } from "../api/client";
import { allTools } from "../api/tools";
import { plain } from "./text";

interface Place {
  kind: string;
  name: string;
  href: string;
}

const SHOWN_MAX = 50;
const EXECUTION_ID = /^[0-9a-f]{8}-[0-9a-f-]{27}$/;

const OPEN = "haft-palette";

/** Opens the palette, as Ctrl-K does. */
export function openPalette(): void {
  window.dispatchEvent(new Event(OPEN));
}

export function Palette(props: { pages: { href: string; name: string }[] }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [isOpen, setOpen] = useState(false);
  useEffect(() => {
    const open = () => {
      if (!dialog.current?.open) dialog.current?.showModal();
      setOpen(true);
    };
    const onKey = (event: KeyboardEvent) => {
      if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
        event.preventDefault();
        open();
      }
    };
    window.addEventListener("keydown", onKey);
    window.addEventListener(OPEN, open);
    return () => {
      window.removeEventListener("keydown", onKey);
      window.removeEventListener(OPEN, open);
    };
  }, []);
  return (
    <dialog ref={dialog} className="palette" aria-label="Jump to" onClose={() => setOpen(false)}>
      {isOpen && <Choices pages={props.pages} onDone={() => dialog.current?.close()} />}
    </dialog>
  );
}

function Choices(props: { pages: { href: string; name: string }[]; onDone: () => void }) {
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const [, go] = useLocation();
  const { places, isLoading, error } = usePlaces(props.pages);
  const [isWaiting, setWaiting] = useState(false);
  const found = useMemo(() => matching(places, text), [places, text]);
  const open = (place: Place | undefined) => {
    if (!place) return;
    go(place.href);
    props.onDone();
  };
  useEffect(() => {
    // Enter was pressed before the tools were loaded: jump as soon as there is a match.
    if (isWaiting && !isLoading) {
      setWaiting(false);
      open(found[at]);
    }
  });
  return (
    <>
      <input
        // biome-ignore lint/a11y/noAutofocus: the palette is opened to type into it
        autoFocus
        role="combobox"
        aria-expanded="true"
        aria-controls="palette-list"
        aria-activedescendant={`palette-${at}`}
        aria-label="Tool, server, page or execution id"
        placeholder="Tool, server, page or execution id"
        value={text}
        onChange={(event) => {
          setText(event.target.value);
          setAt(0);
        }}
        onKeyDown={(event) => {
          if (event.key === "ArrowDown") setAt(Math.min(at + 1, found.length - 1));
          else if (event.key === "ArrowUp") setAt(Math.max(at - 1, 0));
          else if (event.key === "Enter") {
            if (found[at]) open(found[at]);
            else setWaiting(isLoading);
          } else return;
          event.preventDefault();
        }}
      />
      {/* The input keeps the focus and names the active option. */}
      <div className="options" id="palette-list" role="listbox" aria-label="Places">
        {found.map((place, index) => (
          // biome-ignore lint/a11y/useFocusableInteractive: the input keeps the focus and names the active option
          // biome-ignore lint/a11y/useKeyWithClickEvents: the input handles the keys
          <div
            key={place.href}
            id={`palette-${index}`}
            role="option"
            aria-selected={index === at}
            onMouseMove={() => setAt(index)}
            onClick={() => open(place)}
          >
            <span>{plain(place.name)}</span>
            <span className="muted">{place.kind}</span>
          </div>
        ))}
      </div>
      <div className="hint" role="status">
        {error
          ? "Tools and servers could not be loaded; pages can be opened."
          : isLoading
            ? "Loading tools and servers…"
            : found.length === 0
              ? "Nothing matches."
              : "↑ ↓ to choose, Enter to open, Esc to close"}
      </div>
    </>
  );
}

function usePlaces(listed: { href: string; name: string }[]) {
  const tools = useQuery({
    queryKey: ["tools"],
    queryFn: allTools,
  });
  const servers = useQuery({ queryKey: ["servers"], queryFn: () => ok(api.GET("/api/v1/servers")) });
  const places = useMemo(() => {
    const pages = listed.map(({ href, name }) => ({ kind: "page", name, href }));
    const of = (kind: string, names: string[]) =>
      names.map((name) => ({ kind, name, href: `/${kind}s/${encodeURIComponent(name)}` }));
    return [
      ...pages,
      ...of("tool", tools.data?.map((tool) => tool.name) ?? []),
      ...of("server", servers.data?.servers.map((server) => server.name) ?? []),
    ];
  }, [listed, tools.data, servers.data]);
  const error = tools.error ?? servers.error;
  return { places, isLoading: tools.isPending || servers.isPending, error };
}

/** Returns the places whose name holds every word, those that begin with the text first. */
export function matching(places: Place[], text: string): Place[] {
  const typed = text.trim().toLowerCase();
  if (EXECUTION_ID.test(typed)) return [{ kind: "log entry", name: typed, href: `/log/${typed}` }];
  const words = typed.split(/\s+/);
  const fits = (place: Place) => words.every((word) => place.name.toLowerCase().includes(word));
  const begins = (place: Place) => (place.name.toLowerCase().startsWith(typed) ? 0 : 1);
  return places
    .filter(fits)
    .sort((a, b) => begins(a) - begins(b))
    .slice(0, SHOWN_MAX);
}
