import { describe, expect, it } from "vitest";
import { entriesOf } from "./server-entries";

describe("pasted server entries", () => {
  it("takes a client's file, a map, and one entry", () => {
    const entry = { command: "uvx", args: ["mcp-server-time"] };
    const named = [{ ...entry, name: "time" }];
    expect(entriesOf(JSON.stringify({ mcpServers: { time: entry } }))).toEqual(named);
    expect(entriesOf(JSON.stringify({ servers: { time: entry } }))).toEqual(named);
    expect(entriesOf(JSON.stringify({ time: entry }))).toEqual(named);
    expect(entriesOf(JSON.stringify({ ...entry, name: "time" }))).toEqual(named);
  });

  it("explains what cannot be read", () => {
    expect(() => entriesOf("{")).toThrow("this is not JSON");
    expect(() => entriesOf("[]")).toThrow("expected a JSON object");
    expect(() => entriesOf("{}")).toThrow("there is no entry");
    expect(() => entriesOf('{"mcpServers": {"a": 1}}')).toThrow("the entry `a` is not an object");
  });
});
