import { describe, expect, it } from "vitest";
import { next, type Part, stored } from "./chat-state";

function played(events: [string, unknown][]): Part[] {
  return events.reduce<Part[]>((parts, [event, data]) => next(parts, { event, data }), []);
}

describe("a conversation", () => {
  it("joins pieces of text and replaces them by the whole", () => {
    const parts = played([
      ["text.delta", { text: "Hel" }],
      ["text.delta", { text: "lo" }],
      ["text.completed", { text: "Hello." }],
    ]);
    expect(parts).toEqual([{ kind: "text", text: "Hello.", isDone: true }]);
  });

  it("drops text that the model starts again", () => {
    expect(
      played([
        ["text.delta", { text: "x" }],
        ["text.restarted", { reason: "lost" }],
      ]),
    ).toEqual([]);
  });

  it("shows a call with its result, and a question until it is closed", () => {
    const parts = played([
      ["tool.started", { call_id: "1", tool: "echo", arguments: "{}" }],
      ["question.asked", { item: { id: "q" } }],
      ["tool.completed", { call_id: "1", tool: "echo", is_error: false, text: "hi", duration_ms: 3 }],
      ["question.closed", { id: "q" }],
    ]);
    expect(parts).toHaveLength(1);
    expect(parts[0]).toMatchObject({ kind: "tool", result: { text: "hi", isError: false } });
  });

  it("says why a turn ended without a whole answer", () => {
    expect(played([["turn.completed", { end: "answered" }]])).toEqual([]);
    expect(played([["turn.completed", { end: "cancelled" }]])).toMatchObject([
      { kind: "note", text: "You cancelled this answer." },
    ]);
  });

  it("is rebuilt from its stored messages", () => {
    const parts = stored([
      { role: "user", text: "Say hi" },
      { role: "assistant", text: "", calls: [{ id: "1", tool: "echo", arguments: "{}" }] },
      { role: "tools", results: [{ call_id: "1", text: "hi", is_error: false }] },
      { role: "assistant", text: "Done.", calls: [] },
    ]);
    expect(parts).toEqual([
      { kind: "user", text: "Say hi" },
      {
        kind: "tool",
        id: "1",
        tool: "echo",
        arguments: "{}",
        result: { isError: false, text: "hi", executionId: null },
      },
      { kind: "text", text: "Done.", isDone: true },
    ]);
  });
});
