// Schemas of servers with labels that hide nothing.

import type { RJSFSchema } from "@rjsf/utils";
import { plain } from "./text";

const DEPTH_MAX = 64;

/** Returns the schema as the form library takes it: an object schema without a dialect that it does not know. */
export function clean(schema: unknown): RJSFSchema {
  if (typeof schema !== "object" || schema === null) return { type: "object" };
  const { $schema: _, ...rest } = schema as Record<string, unknown>;
  return labelled(rest, 0) as RJSFSchema;
}

/** Returns the schema with labels in which hidden and reordering characters are visible. */
function labelled(schema: unknown, depth: number): unknown {
  if (depth > DEPTH_MAX || typeof schema !== "object" || schema === null) return schema;
  if (Array.isArray(schema)) return schema.map((each) => labelled(each, depth + 1));
  const result: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(schema)) {
    const isLabel = (key === "title" || key === "description") && typeof value === "string";
    if (isLabel) result[key] = plain(value);
    else if (key === "properties" && typeof value === "object" && value !== null) {
      const named = Object.entries(value).map(([name, property]) => [name, titled(name, property, depth)]);
      result[key] = Object.fromEntries(named);
    } else if (key === "enum" || key === "const" || key === "default" || key === "examples")
      result[key] = value;
    else result[key] = labelled(value, depth + 1);
  }
  return result;
}

/** Gives a property whose name hides characters a title that shows them. */
function titled(name: string, property: unknown, depth: number): unknown {
  const schema = labelled(property, depth + 1);
  if (plain(name) === name || typeof schema !== "object" || schema === null || "title" in schema)
    return schema;
  return { ...schema, title: plain(name) };
}
