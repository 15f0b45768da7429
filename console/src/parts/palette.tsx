// The command palette: Ctrl-K jumps to any page, tool, server or log entry.

import { useQuery } from "@tanstack/react-query";
import { useEffect, useMemo, useRef, useState } from "react";
import { useLocation } from "wouter";
import { api, ok } from "../api/client";
import { PAGES } from "../app";
import { plain } from "./text";

interface Place {
  kind: string;
  name: string;
  href: string;
}

const SHOWN_MAX = 50;
const EXECUTION_ID = /^[0-9a-f]{8}-[0-9a-f-]{27}$/;

export function Palette() {
  const dialog = useRef<HTMLDialogElement>(null);
  const [isOpen, setOpen] = useState(false);
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
        event.preventDefault();
        dialog.current?.showModal();
        setOpen(true);
      }
    };
    window.addEventListener("keydown", onKey);
    return () => window.removeEventListener("keydown", onKey);
  }, []);
  return (
    <dialog ref={dialog} className="palette" aria-label="Jump to" onClose={() => setOpen(false)}>
      {isOpen && <Choices onDone={() => dialog.current?.close()} />}
    </dialog>
  );
}

function Choices(props: { onDone: () => void }) {
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const [, go] = useLocation();
  const places = usePlaces();
  const found = useMemo(() => matching(places, text), [places, text]);
  const open = (place: Place | undefined) => {
    if (!place) return;
    go(place.href);
    props.onDone();
  };
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
          else if (event.key === "Enter") open(found[at]);
          else return;
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
    </>
  );
}

function usePlaces(): Place[] {
  const tools = useQuery({
    queryKey: ["palette-tools"],
    queryFn: () => ok(api.GET("/api/v1/tools", { params: { query: { limit: 1000 } } })),
  });
  const servers = useQuery({ queryKey: ["servers"], queryFn: () => ok(api.GET("/api/v1/servers")) });
  return useMemo(() => {
    const pages = PAGES.map(({ href, name }) => ({ kind: "page", name, href }));
    const of = (kind: string, names: string[]) =>
      names.map((name) => ({ kind, name, href: `/${kind}s/${encodeURIComponent(name)}` }));
    return [
      ...pages,
      ...of("tool", tools.data?.tools.map((tool) => tool.name) ?? []),
      ...of("server", servers.data?.servers.map((server) => server.name) ?? []),
    ];
  }, [tools.data, servers.data]);
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
