import { renderToStaticMarkup } from "react-dom/server";
import { describe, expect, it } from "vitest";
import MarkdownText from "./markdown";

const shown = (text: string) => renderToStaticMarkup(<MarkdownText text={text} />);

describe("the answer of a model", () => {
  it("is laid out", () => {
    expect(shown("**Done.**\n\n- one\n- two")).toContain("<strong>Done.</strong>");
    expect(shown("```json\n{}\n```")).toContain("<code");
    expect(shown("|a|b|\n|-|-|\n|1|2|")).toContain("<td>1</td>");
  });

  it("runs nothing, loads nothing and leads to web addresses only", () => {
    expect(shown("<img src=x onerror=alert(1)>")).not.toContain("<img");
    expect(shown("<script>alert(1)</script>")).not.toContain("<script");
    expect(shown("![a](https://example.com/a.png)")).not.toContain("<img");
    expect(shown("[a](javascript:alert(1))")).not.toContain("href");
    expect(shown("[a](https://example.com)")).toContain('href="https://example.com/"');
    expect(shown("a\u202eb")).toContain("⟨U+202E⟩");
  });
});
