// The place of a view in the fragment of the address, with its parameters: `#/log?status=error`. So a link opens the
// same view in a new tab, and a link without parameters leaves none behind.

import { useSyncExternalStore } from "react";

const CHANGED = "haft-location";

function subscribe(then: () => void): () => void {
  window.addEventListener("hashchange", then);
  window.addEventListener(CHANGED, then);
  return () => {
    window.removeEventListener("hashchange", then);
    window.removeEventListener(CHANGED, then);
  };
}

function parts(): [path: string, search: string] {
  const place = window.location.hash.replace(/^#?\/?/, "");
  const at = place.indexOf("?");
  return at < 0 ? [`/${place}`, ""] : [`/${place.slice(0, at)}`, place.slice(at + 1)];
}

function navigate(to: string, { replace = false } = {}): void {
  window.history[replace ? "replaceState" : "pushState"](null, "", `#${to}`);
  window.dispatchEvent(new Event(CHANGED));
}

export function useFragment(): [string, typeof navigate] {
  return [useSyncExternalStore(subscribe, () => parts()[0]), navigate];
}

useFragment.hrefs = (href: string) => `#${href}`;
useFragment.searchHook = () => useSyncExternalStore(subscribe, () => parts()[1]);
