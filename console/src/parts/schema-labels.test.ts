import { describe, expect, it } from "vitest";
import { clean } from "./schema-labels";

describe("a schema for a form", () => {
  it("shows hidden characters in labels and keeps values as they are", () => {
    const schema = clean({
      $schema: "https://json-schema.org/draft/2020-12/schema",
      type: "object",
      title: "a\u202eb",
      properties: { "x\u200by": { type: "string", enum: ["\u202e"] }, plain: { description: "\u2066" } },
    });
    expect(schema).toEqual({
      type: "object",
      title: "a⟨U+202E⟩b",
      properties: {
        "x\u200by": { type: "string", enum: ["\u202e"], title: "x⟨U+200B⟩y" },
        plain: { description: "⟨U+2066⟩" },
      },
    });
  });
});
