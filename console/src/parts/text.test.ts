import { describe, expect, it } from "vitest";
import { ms, plain, safeLink, shellQuote, words } from "./text";

describe("text of servers", () => {
  it("shows characters that hide or reorder text", () => {
    expect(plain("safe\u202Eexe\u200B.txt\u0007")).toBe("safe⟨U+202E⟩exe⟨U+200B⟩.txt⟨U+0007⟩");
    expect(plain("a\u{E0041}b")).toBe("a⟨U+E0041⟩b");
  });

  it("keeps joiners of words, line ends and emoji", () => {
    expect(plain("می\u200Cخواهم\n\t👨\u200D👩")).toBe("می\u200Cخواهم\n\t👨\u200D👩");
  });

  it("opens only web addresses", () => {
    expect(safeLink("javascript:alert(1)")).toBeNull();
    expect(safeLink("data:text/html,x")).toBeNull();
    expect(safeLink("https://example.com/a")).toBe("https://example.com/a");
  });

  it("quotes words for a shell", () => {
    expect(shellQuote(`it's "x"`)).toBe(`'it'\\''s "x"'`);
  });

  it("shows durations", () => {
    expect([ms(3), ms(1500), ms(90_000)]).toEqual(["3 ms", "1.5 s", "1.5 min"]);
  });

  it("splits a command line into words", () => {
    expect(words(`uvx "my server" --name 'a b'  x`)).toEqual(["uvx", "my server", "--name", "a b", "x"]);
    expect(words("  ")).toEqual([]);
  });
});
