import { describe, expect, it } from "vitest";
import { type Item, reduce } from "./inbox";

const item = (id: string): Item => ({ id, question: id }) as Item;

describe("the inbox", () => {
  it("starts from the open questions and follows what changes", () => {
    const open = reduce(
      [item("old")],
      [
        { event: "open", data: { items: [item("a")] } },
        { event: "asked", data: item("b") },
        { event: "asked", data: item("b") },
        { event: "closed", data: { id: "a" } },
      ],
    );
    expect(open.map((each) => each.id)).toEqual(["b"]);
  });
});
