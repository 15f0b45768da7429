// Server entries as people paste them: a client's whole file, a map of entries, or one entry with its name.

import type { Schemas } from "../api/client";

export type Entry = Schemas["ServerRegistration"];

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Returns the entries of a pasted text. Throws an error that says what was expected. */
export function entriesOf(text: string): Entry[] {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new Error(`this is not JSON: ${error instanceof Error ? error.message : String(error)}`);
  }
  if (!isObject(value))
    throw new Error("expected a JSON object with `mcpServers`, or one entry with its `name`");
  if (typeof value.name === "string") return [value as Entry];
  const map = value.mcpServers ?? value.servers ?? value;
  if (!isObject(map)) throw new Error("`mcpServers` is not an object");
  const entries = Object.entries(map);
  if (entries.length === 0) throw new Error("there is no entry to add");
  return entries.map(([name, entry]) => {
    if (!isObject(entry)) throw new Error(`the entry \`${name}\` is not an object`);
    return { ...entry, name } as Entry;
  });
}
