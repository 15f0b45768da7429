import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { AxeBuilder } from "@axe-core/playwright";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { launch, signIn, type Watched, watch } from "./browser";
import { EVERYTHING, type Service, startService } from "./service";

const SHOTS = process.env.HAFT_SHOTS ?? "../target/console-shots";

let service: Service;
let browser: Browser;
let context: BrowserContext;
let watched: Watched;
let page: Page;

const PAGES = [
  "",
  "tools",
  "tools/echo",
  "servers",
  "servers/everything",
  "log",
  "inbox",
  "chat",
  "registry",
  "config",
  "access",
  "connect",
];

beforeAll(async () => {
  mkdirSync(SHOTS, { recursive: true });
  service = await startService();
  browser = await launch();
  context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
  watched = await watch(context, service.url);
  page = watched.page;
  page.setDefaultTimeout(60_000);
});

afterAll(async () => {
  await browser?.close();
  await service?.stop();
});

/** Waits until no part of the page is loading. Streams stay open, so the network is never idle. */
const loaded = () => page.waitForFunction(() => !document.querySelector("[aria-busy=true]"));

const go = (path: string) => page.goto(`${service.url}/#/${path}`);

describe("the console", () => {
  it("refuses a wrong key and exchanges a right one for a cookie that scripts cannot read", async () => {
    await page.goto(service.url);
    await page.getByLabel("Key").fill("haft_call_wrong");
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("alert").getByText("the key is not known here").waitFor();
    await signIn(page, service.url, service.key);
    const cookies = await context.cookies();
    expect(cookies).toMatchObject([{ name: "haft_session", httpOnly: true, sameSite: "Strict" }]);
    expect(await page.evaluate(() => document.cookie)).toBe("");
    expect(await page.evaluate(() => JSON.stringify(localStorage))).not.toContain("haft_");
  });

  it("is made for the API of this service", async () => {
    const served = (await (await fetch(`${service.url}/api/openapi.json`)).json()) as unknown;
    const committed = JSON.parse(readFileSync("openapi.json", "utf8")) as unknown;
    expect(served).toEqual(committed);
  });

  it("refuses a change by cookie without the header of the console", async () => {
    const status = await page.evaluate(async () => {
      const response = await fetch("/api/v1/reload", { method: "POST" });
      return response.status;
    });
    expect(status).toBe(403);
  });

  it("runs a tool from a form, shows the result, and finds it in the log", async () => {
    await go("tools");
    await page.getByRole("link", { name: "echo", exact: true }).click();
    await page.getByLabel("message").fill("hello console");
    await page.getByRole("button", { name: "Run", exact: true }).click();
    await page.getByText("Echo: hello console").waitFor();
    // The call is among the recent ones of the tool at once.
    await page.getByText("This tool was not called yet").waitFor({ state: "detached", timeout: 3_000 });
    await go("log");
    await page.getByRole("link", { name: /echo/ }).first().click();
    await page.getByText("hello console").first().waitFor();
    await page.getByRole("link", { name: "Run again" }).click();
    await page.waitForFunction(() => {
      const input = document.querySelector<HTMLInputElement>("input[id$=message]");
      return input?.value === "hello console";
    });
  });

  it("shows progress and cancels a running call", async () => {
    await go("tools/trigger-long-running-operation");
    await page.getByLabel("duration").fill("30");
    await page.getByLabel("steps").fill("60");
    await page.getByRole("button", { name: "Run", exact: true }).click();
    await page.getByRole("progressbar").waitFor();
    await page.getByRole("button", { name: "Cancel" }).click();
    await page.getByText("Cancelled").first().waitFor();
  });

  it("shows errors with their remedy", async () => {
    await go("tools/no-such-tool");
    await page.getByRole("alert").waitFor();
  });

  it("runs a tool that needs an approval when the person at the page gives it", async () => {
    await go("tools/get-sum");
    await page.locator("#root_a").fill("40");
    await page.locator("#root_b").fill("2");
    await page.getByRole("button", { name: "Run", exact: true }).click();
    await page.getByRole("alert").getByText("runs only when a person agrees").waitFor();
    await page.getByText("What to do: tick “I approve this call”").waitFor();
    await page.getByLabel(/I approve this call/).check();
    await page.getByRole("button", { name: "Run", exact: true }).click();
    await page.getByText("is 42").waitFor();
  });

  it("ranks tools by meaning with reasons", async () => {
    await go("tools");
    await page.getByLabel("Describe a task to find its tool").fill("add two numbers");
    await page.getByRole("button", { name: "Find by meaning" }).click();
    await page.getByText("Decision:").waitFor();
    await page.getByRole("link", { name: "get-sum" }).waitFor();
    // The address has the view, and a link to another page leaves none of it behind.
    expect(page.url()).toContain("#/tools?for=add+two+numbers");
    await page.getByRole("button", { name: "Show all tools" }).click();
    await page.getByRole("link", { name: "echo", exact: true }).waitFor();
    expect(new URL(page.url()).hash).toBe("#/tools");
  });

  it("asks for an approval with the exact arguments in two tabs, and one answer is enough", async () => {
    const other = await watch(context, service.url);
    await go("inbox");
    await other.page.goto(`${service.url}/#/inbox`);
    const call = service.callAsClient("get-sum", { a: 20, b: 22 });
    await page.getByText("get-sum").first().waitFor();
    await other.page.getByText('"a": 20').waitFor();
    await other.page.getByRole("button", { name: "Allow", exact: true }).click();
    expect(await call).toContain("is 42");
    await page.getByText("No question is open").waitFor();
    expect(other.problems).toEqual([]);
    await other.page.close();
  });

  it("adds a server from a client's JSON and watches it connect", async () => {
    await go("servers");
    await page.getByRole("button", { name: "Add a server" }).click();
    const editor = page.getByRole("textbox", { name: "Server entries as JSON" });
    await editor.click();
    await page.keyboard.press("Control+A");
    const entry = { command: process.execPath, args: EVERYTHING };
    await page.keyboard.insertText(JSON.stringify({ mcpServers: { second: entry } }));
    await page.getByRole("button", { name: "Add", exact: true }).click();
    await page.getByRole("link", { name: "second" }).waitFor();
    await go("servers/second");
    await page.getByRole("heading", { name: "second", level: 1 }).waitFor();
    await page.getByText("ready", { exact: true }).first().waitFor();
  });

  it("shows the line that a refused server needs", async () => {
    await go("servers?add=1");
    const editor = page.getByRole("textbox", { name: "Server entries as JSON" });
    await editor.click();
    await page.keyboard.press("Control+A");
    const entry = { command: "uvx", args: ["mcp-server-time==1.0"] };
    await page.keyboard.insertText(JSON.stringify({ mcpServers: { clock: entry } }));
    await page.getByRole("button", { name: "Add", exact: true }).click();
    await page.getByText('- "uvx mcp-server-time==1.0"').waitFor();
  });

  it("shows prompts and resources of a server", async () => {
    await go("servers/everything");
    await page.getByRole("tab", { name: "Prompts" }).click();
    await page.getByRole("button", { name: "Get" }).first().click();
    await page.getByText("This is a simple prompt").waitFor();
    await page.getByRole("tab", { name: "Resources" }).click();
    await page.getByRole("button", { name: /architecture\.md/ }).click();
    await page.getByText("# Everything Server – Architecture").first().waitFor();
  });

  it("does not overwrite an entry that was changed elsewhere", async () => {
    await go("servers/second");
    await page.getByRole("tab", { name: "Edit" }).click();
    await page.getByRole("textbox", { name: "Entry as JSON" }).waitFor();
    const status = await page.evaluate(
      async (entry) => {
        const response = await fetch("/api/v1/servers/second", {
          method: "PUT",
          headers: { "content-type": "application/json", "x-haft-console": "1" },
          body: JSON.stringify(entry),
        });
        return response.status;
      },
      { command: process.execPath, args: EVERYTHING, mode: "dynamic" },
    );
    expect(status).toBe(200);
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("The entry was changed elsewhere").waitFor();
    await page.getByRole("button", { name: "Take the changed entry" }).click();
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("saved", { exact: true }).waitFor();
  });

  it("creates a key that is shown once, and revokes it", async () => {
    await go("access");
    await page.getByLabel("Name").fill("robot");
    await page.getByLabel("Scope").selectOption("approve");
    await page.getByLabel("Expires after").fill("30d");
    await page.getByLabel("Rate").fill("60/min");
    await page.getByLabel("Quota", { exact: true }).fill("1000/day");
    await page.getByLabel("Log quota").fill("1MB/day");
    await page.getByRole("button", { name: "Create" }).click();
    await page.getByText("is shown once").waitFor();
    const row = page.getByRole("row", { name: /robot approve everything 60\/min, 1000\/day, log 1MB\/day/ });
    await row.waitFor();
    expect(await row.textContent()).not.toContain("never");
    await row.getByRole("button", { name: "Revoke", exact: true }).click();
    await row.getByRole("button", { name: "Revoke it now" }).click();
    await row.waitFor({ state: "detached" });
    await page.reload();
    await page.getByRole("row", { name: /key\.revoke robot done/ }).waitFor();
    await page.getByRole("row", { name: /key\.create robot done/ }).waitFor();
  });

  it("describes the API with contents and try-out", async () => {
    await page.goto(`${service.url}/api/docs`);
    await page.getByText("list_servers").first().waitFor();
    await page.getByText("list_servers").first().click();
    await page.getByRole("button", { name: "Try it out" }).click();
    await page.getByRole("button", { name: "Execute" }).click();
    await page.getByText('"everything"').first().waitFor();
    expect(watched.problems).toEqual([]);
    await go("");
    await page.getByRole("heading", { name: "Overview" }).waitFor();
  });

  it("explains how to configure a model", async () => {
    await go("chat");
    await page.getByText("No model is configured yet").waitFor();
    await page.getByText('model: "openai::gpt-5"').waitFor();
  });

  it("jumps with the palette by keyboard alone", async () => {
    await go("");
    await page.keyboard.press("Control+k");
    await page.getByRole("combobox", { name: /Tool, server/ }).fill("get-tiny");
    await page.getByRole("option", { name: "get-tiny-image tool", exact: true }).waitFor();
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Get Tiny Image Tool" }).waitFor();
    await page.getByRole("button", { name: "Run", exact: true }).click();
    await page.getByRole("img", { name: /image\/png/ }).waitFor();
  });

  it("takes the pictures of the README", async () => {
    await page.setViewportSize({ width: 1280, height: 800 });
    await go("tools/echo");
    await page.getByLabel("message").fill("hello console");
    await page.getByRole("button", { name: "Run", exact: true }).click();
    await page.getByText("Echo: hello console").first().waitFor();
    await page.screenshot({ path: join(SHOTS, "readme-tool.png") });
    await go("");
    await page.getByRole("img", { name: /Calls and errors per second/ }).waitFor();
    await loaded();
    await page.screenshot({ path: join(SHOTS, "readme-overview.png") });
    await page.setViewportSize({ width: 1280, height: 900 });
  });

  it("disables a server of the registry", async () => {
    await go("servers/second");
    await page.getByRole("button", { name: "Disable" }).click();
    await page.getByText("disabled", { exact: true }).first().waitFor();
    await page.getByRole("button", { name: "Enable" }).waitFor();
  });

  it("follows again after the service restarts", async () => {
    await go("inbox");
    await page.getByText("live", { exact: true }).waitFor();
    await service.restart();
    // The session ended with the process; the page asks for the key again.
    await page.getByRole("button", { name: "Sign in" }).waitFor();
    await signIn(page, service.url, service.key);
    await go("inbox");
    await page.getByText("live", { exact: true }).waitFor();
  });

  it("has no serious accessibility violation on any page, light and dark, and fits small screens", async () => {
    for (const scheme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme: scheme });
      for (const path of PAGES) {
        await go(path);
        await page.getByRole("heading", { level: 1 }).waitFor();
        await loaded();
        const { violations } = await new AxeBuilder({ page }).analyze();
        const serious = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
        const told = serious.map(({ id, nodes }) => `${path} ${scheme} ${id}: ${nodes[0]?.html}`);
        expect(told).toEqual([]);
        const name = path.replaceAll("/", "-") || "overview";
        await page.screenshot({ path: join(SHOTS, `${name}-${scheme}-1280.png`) });
      }
    }
    await page.emulateMedia({ colorScheme: "light" });
    await page.setViewportSize({ width: 390, height: 844 });
    for (const path of PAGES) {
      await go(path);
      await page.getByRole("heading", { level: 1 }).waitFor();
      await loaded();
      const overflow = await page.evaluate(
        () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
      );
      expect(overflow, path).toBeLessThanOrEqual(0);
      await page.screenshot({ path: join(SHOTS, `${path.replaceAll("/", "-") || "overview"}-390.png`) });
    }
    await page.setViewportSize({ width: 1280, height: 900 });
  }, 240_000);

  it("signs out when the key is revoked", async () => {
    await go("");
    service.haft("keys", "create", "--scope", "admin", "--name", "spare");
    service.haft("keys", "revoke", "me");
    await page.getByRole("button", { name: "Sign in" }).waitFor();
  });

  it("ran no foreign script and talked to its own origin only", () => {
    expect(watched.problems).toEqual([]);
  });
});
