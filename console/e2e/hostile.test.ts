// A server whose every text tries to break out of the page. Nothing may run, and nothing may leave the origin.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { launch, signIn, type Watched, watch } from "./browser";
import { CONTENT_SERVER, type Service, startService } from "./service";

const RUN = "window.broken=1";
const HTML = `<img src="http://evil.invalid/i.png" onerror="${RUN}"><script>${RUN}</script><svg onload="${RUN}"></svg>`;
const LINK = `javascript:${RUN}`;
const HIDDEN = "a\u202eb\u200bc\u2066d\u{e0041}";
const TEXT = `${HTML} [link](${LINK}) ![image](http://evil.invalid/m.png) ${HIDDEN}`;
const SVG = Buffer.from(
  `<svg xmlns="http://www.w3.org/2000/svg" onload="${RUN}"><script>${RUN}</script></svg>`,
);

const SCHEMA = {
  type: "object",
  title: TEXT,
  description: TEXT,
  properties: {
    plainly: { type: "string", title: TEXT, description: TEXT, default: HTML, examples: [HTML] },
    [`${HTML}${HIDDEN}`]: { type: "string", description: TEXT },
    choice: { enum: [HTML, LINK] },
    address: { type: "string", format: "uri", default: LINK },
  },
};

const CONTENT = {
  serverInfo: {
    name: TEXT,
    version: HTML,
    websiteUrl: LINK,
    icons: [{ src: "http://evil.invalid/icon.svg" }],
  },
  instructions: TEXT,
  stderr: TEXT,
  tools: [
    {
      name: "bad_tool",
      title: TEXT,
      description: TEXT,
      inputSchema: SCHEMA,
      outputSchema: { type: "object", description: TEXT },
      annotations: { title: TEXT, readOnlyHint: true },
      icons: [{ src: "http://evil.invalid/tool.png" }, { src: LINK }],
    },
    { name: "bad_error", description: TEXT, inputSchema: { type: "object" } },
  ],
  results: {
    bad_tool: {
      structuredContent: { [HTML]: HTML, link: LINK, hidden: HIDDEN },
      content: [
        { type: "text", text: TEXT },
        { type: "image", mimeType: "image/svg+xml", data: SVG.toString("base64") },
        { type: "image", mimeType: "text/html", data: Buffer.from(HTML).toString("base64") },
        { type: "resource_link", uri: LINK, name: TEXT, description: TEXT },
        { type: "resource_link", uri: "http://evil.invalid/page", name: TEXT },
        { type: "resource", resource: { uri: LINK, mimeType: "text/html", text: TEXT } },
      ],
    },
    bad_error: { isError: true, content: [{ type: "text", text: TEXT }] },
  },
  prompts: [
    { name: "bad_prompt", title: TEXT, description: TEXT, arguments: [{ name: "x", description: TEXT }] },
  ],
  prompt: { description: TEXT, messages: [{ role: "user", content: { type: "text", text: TEXT } }] },
  resources: [{ uri: LINK, name: TEXT, description: TEXT, mimeType: "text/html" }],
  templates: [{ uriTemplate: `${LINK}{x}`, name: TEXT, description: TEXT }],
  resource: { contents: [{ uri: LINK, mimeType: "text/html", text: TEXT }] },
};

let service: Service;
let browser: Browser;
let watched: Watched;
let page: Page;

beforeAll(async () => {
  service = await startService({
    prepare: (folder) => writeFileSync(join(folder, "bad.json"), JSON.stringify(CONTENT)),
    servers: `  bad: {command: ${process.execPath}, args: [${CONTENT_SERVER}, bad.json]}`,
    more: `profiles: {part: {tools: ["bad_*"]}}\n`,
  });
  browser = await launch();
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
  watched = await watch(context, service.url);
  page = watched.page;
  page.setDefaultTimeout(60_000);
  await signIn(page, service.url, service.key);
});

afterAll(async () => {
  await browser?.close();
  await service?.stop();
});

const go = (path: string) => page.goto(`${service.url}/#/${path}`);
const loaded = () => page.waitForFunction(() => !document.querySelector("[aria-busy=true]"));

/** Looks at the page as it is: nothing ran, nothing points elsewhere, nothing is hidden. */
async function expectHarmless(where: string): Promise<void> {
  await loaded();
  const found = await page.evaluate(() => {
    const all = [...document.querySelectorAll("*")];
    const addresses = all.flatMap((element) =>
      ["src", "srcset", "poster", "data", "action", "formaction"].map(
        (name) => element.getAttribute(name) ?? "",
      ),
    );
    const links = [...document.querySelectorAll("a")].map((link) => link.getAttribute("href") ?? "");
    return {
      broken: "broken" in window,
      foreign: addresses.filter(
        (address) => address.includes("evil.invalid") || /^javascript:/i.test(address),
      ),
      scriptLinks: links.filter((link) => /^\s*(javascript|data|vbscript):/i.test(link)),
      elements: all.filter((element) => element.matches("iframe, object, embed, base, form[action]")).length,
      handlers: all.filter((element) => element.getAttributeNames().some((name) => name.startsWith("on")))
        .length,
      // biome-ignore lint/performance/useDomNodeTextContent: what is shown matters, not what is there
      hidden: /[\u202a-\u202e\u2066-\u2069\u200b]|\udb40[\udc00-\udfff]/.test(document.body.innerText),
      title: document.title,
    };
  });
  expect({ where, ...found }).toEqual({
    where,
    broken: false,
    foreign: [],
    scriptLinks: [],
    elements: 0,
    handlers: 0,
    hidden: false,
    title: expect.not.stringMatching(/[\u202a-\u202e\u2066-\u2069\u200b]/),
  });
  expect(watched.problems).toEqual([]);
}

describe("hostile content", () => {
  it("is text on the pages of tools", async () => {
    await go("tools");
    await page.getByRole("link", { name: "bad_tool" }).waitFor();
    await expectHarmless("tools");
    await go("tools/bad_tool");
    await page.getByRole("button", { name: "Run", exact: true }).waitFor();
    await page.getByText("⟨U+202E⟩").first().waitFor();
    await expectHarmless("tool");
    await page.getByRole("button", { name: "Run", exact: true }).click();
    await page.getByRole("region", { name: "Result" }).waitFor();
    await expectHarmless("result");
    await page.getByRole("tab", { name: "JSON" }).click();
    await page.getByRole("textbox", { name: "Arguments as JSON" }).waitFor();
    for (const summary of await page.locator("summary").all()) await summary.click();
    await expectHarmless("schemas");
    await go("tools/bad_error");
    await page.getByRole("button", { name: "Run", exact: true }).click();
    await page.getByRole("alert").waitFor();
    await expectHarmless("error");
  });

  it("is text on the pages of the server", async () => {
    for (const tab of ["Tools", "Prompts", "Resources", "History", "Settings", "Edit"]) {
      await page.goto(`${service.url}/#/servers/bad?tab=${tab}`);
      await page.getByRole("tab", { name: tab, selected: true }).waitFor();
      for (const summary of await page.locator("summary").all()) await summary.click();
      await expectHarmless(tab);
      if (tab === "Prompts") {
        await page.getByRole("button", { name: "Get" }).click();
        await page.locator(".message").first().waitFor();
        await expectHarmless("prompt");
      }
      if (tab === "Resources") {
        await page
          .getByRole("button", { name: /javascript/ })
          .first()
          .click();
        await page.locator("pre").first().waitFor();
        await expectHarmless("resource");
      }
    }
  });

  it("is text in the log, the inbox, the profile and the palette", async () => {
    await page.goto(`${service.url}/#/log`);
    await page
      .getByRole("link", { name: /bad_tool/ })
      .first()
      .click();
    await page.getByRole("heading", { name: "Call of bad_tool" }).waitFor();
    await expectHarmless("entry");
    const call = service.callAsClient("get-sum", { a: 1, b: 2, [HTML]: TEXT }).catch(() => "");
    await go("inbox");
    await page.getByRole("button", { name: "deny" }).waitFor();
    await expectHarmless("inbox");
    await page.getByRole("button", { name: "deny" }).click();
    await call;
    for (const path of ["access", "config", "registry", ""]) {
      await go(path);
      await page.getByRole("heading", { level: 1 }).waitFor();
      for (const summary of await page.locator("summary").all()) await summary.click();
      await expectHarmless(path);
    }
    await page.keyboard.press("Control+k");
    await page.getByRole("option", { name: "bad_tool tool", exact: true }).waitFor();
    await expectHarmless("palette");
  });

  it("comes back from addresses as text", async () => {
    const evil = encodeURIComponent(`${HTML}${HIDDEN}`);
    for (const path of [`tools/${evil}`, `servers/${evil}`, `log/${evil}`, evil]) {
      await page.goto(`${service.url}/#/${path}?q=${evil}&for=${evil}&text=${evil}&arguments=${evil}`);
      await page.getByRole("heading", { level: 1 }).waitFor();
      await expectHarmless(path);
    }
  });
});
