import { describe, expect, it } from "vitest";
import { errorsOf, validator } from "./validator";

const schema = {
  type: "object",
  required: ["city"],
  properties: {
    city: { type: "string" },
    days: { type: "integer", minimum: 1 },
    place: { $ref: "#/$defs/place" },
  },
  $defs: { place: { type: "object", required: ["lat"], properties: { lat: { type: "number" } } } },
} as const;

describe("the validator", () => {
  it("accepts what fits", () => {
    expect(errorsOf(schema, { city: "Oslo", days: 2, place: { lat: 1 } })).toEqual([]);
  });

  it("names the field of each error", () => {
    // biome-ignore lint/suspicious/noExplicitAny: a literal schema
    const { errors } = validator.validateFormData({ days: 0, place: {} } as any, schema as any);
    expect(errors.map((error) => error.property).sort()).toEqual([".city", ".days", ".place.lat"]);
  });

  it("reports a schema that cannot be used instead of accepting everything", () => {
    expect(errorsOf({ $ref: "https://elsewhere.example/x.json" }, {})).not.toEqual([]);
  });
});
