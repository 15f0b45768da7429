// What happens while a page is open: servers that die, keys that end, answers in two tabs, a service that restarts,
// the agent at work, and a sign-in at another server.

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { clientSnippets } from "../src/pages/clients";
import { launch, signIn, type Watched, watch } from "./browser";
import { type Model, startModel } from "./model";
import { type Guarded, startGuarded } from "./oauth";
import { CONTENT_SERVER, processes, type Service, startService } from "./service";

const WAIT_MS = 60_000;

let service: Service;
let model: Model;
let guarded: Guarded;
let browser: Browser;
let context: BrowserContext;
let watched: Watched;
let page: Page;

beforeAll(async () => {
  model = await startModel();
  guarded = await startGuarded();
  service = await startService({
    servers: `  mortal: {command: ${process.execPath}, args: [${CONTENT_SERVER}, --many, "3"]}
  guarded: {url: "${guarded.url}"}`,
    more: `${model.config}profiles: {part: {tools: ["echo", "tool_1"]}}\n`,
  });
  browser = await launch();
  context = await browser.newContext({ viewport: { width: 1280, height: 900 }, acceptDownloads: true });
  watched = await watch(context, service.url);
  page = watched.page;
  page.setDefaultTimeout(WAIT_MS);
  await signIn(page, service.url, service.key);
});

afterAll(async () => {
  await browser?.close();
  await service?.stop();
  model?.stop();
  guarded?.stop();
});

const go = (path: string, on = page) => on.goto(`${service.url}/#/${path}`);

describe("an open page", () => {
  it("shows that a server died, that it came back, and why, in its history", async () => {
    await go("servers/mortal");
    await page.getByText("ready", { exact: true }).first().waitFor();
    const pids = processes(`${CONTENT_SERVER} --many 3`);
    expect(pids).not.toEqual([]);
    for (const pid of pids) process.kill(pid, "SIGKILL");
    await page.getByRole("tab", { name: "History" }).click();
    // Ready, lost, connecting, ready again: the newest change is first.
    await page.waitForFunction(() => {
      const states = [...document.querySelectorAll("ol.timeline .badge")].map((state) => state.textContent);
      return states[0] === "ready" && states.filter((state) => state === "ready").length >= 2;
    });
  });

  it("takes one of two answers that are given at once, and tells the other tab", async () => {
    const other = await watch(context, service.url);
    await go("inbox");
    await go("inbox", other.page);
    const call = service.callAsClient("get-sum", { a: 20, b: 22 });
    const buttons = [page, other.page].map((tab) => tab.getByRole("button", { name: "Allow", exact: true }));
    for (const button of buttons) await button.waitFor();
    await page.getByText(/approval: ask, set by haft\.yaml:\d+/).waitFor();
    // A click on a button that the other answer has just removed is no failure.
    await Promise.all(buttons.map((button) => button.click({ timeout: 10_000 }).catch(() => {})));
    expect(await call).toContain("is 42");
    for (const tab of [page, other.page]) await tab.getByText("No question is open").waitFor();
    expect(other.problems).toEqual([]);
    await other.page.close();
  });

  it("stays usable with more tabs than a browser has connections", async () => {
    const tabs = await Promise.all(Array.from({ length: 8 }, () => context.newPage()));
    for (const tab of tabs) {
      await go("inbox", tab);
      await tab.getByText("live", { exact: true }).waitFor({ timeout: WAIT_MS });
    }
    const call = service.callAsClient("get-sum", { a: 1, b: 2 });
    for (const tab of tabs) await tab.getByText('"a": 1').waitFor({ timeout: WAIT_MS });
    const last = tabs[tabs.length - 1] as Page;
    await last.keyboard.press("Control+k");
    await last
      .getByRole("option", { name: "get-tiny-image tool", exact: true })
      .waitFor({ timeout: WAIT_MS });
    await last.keyboard.press("Escape");
    await last.getByRole("button", { name: "deny" }).click();
    await call;
    for (const tab of tabs) await tab.close();
  });

  it("signs in at a server with OAuth", async () => {
    await go("servers/guarded");
    await page.getByText("The server asks for a sign-in").waitFor();
    await page.getByRole("button", { name: "Sign in with OAuth" }).click();
    const opened = context.waitForEvent("page");
    await page.getByRole("link", { name: "Open the sign-in page" }).click();
    const other = await opened;
    await other.getByRole("link", { name: "Allow Haft" }).click();
    await other.getByText("You can close this page").waitFor({ timeout: WAIT_MS });
    await other.close();
    await page.getByText("signed in", { exact: true }).waitFor();
    await page.getByText("ready", { exact: true }).first().waitFor();
    await page.getByRole("link", { name: "secret_hello" }).waitFor();
    await page.getByRole("button", { name: "Remove the tokens" }).click();
    await page.getByText("The server asks for a sign-in").waitFor();
  });

  it("exports what the filters show, whole, and finds entries by text and code", async () => {
    await service.callAsClient("echo", { message: "needle in the log" });
    await page.goto(`${service.url}/#/log?text=NEEDLE`);
    await page.getByText("1 entry").waitFor();
    const download = page.waitForEvent("download");
    await page.getByRole("button", { name: "Export as JSONL" }).click();
    const lines = readFileSync(await (await download).path(), "utf8")
      .trim()
      .split("\n");
    const entries = lines.map(
      (line) => JSON.parse(line) as { tool: string; input: unknown; output: unknown },
    );
    expect(entries).toMatchObject([{ tool: "echo", input: { message: "needle in the log" } }]);
    await page.goto(`${service.url}/#/log?code=UnknownTool`);
    await page.getByText("No entry matches").waitFor();
  });

  it("shows the settings of one tool with their origin", async () => {
    await go("tools/get-sum");
    const row = page.getByRole("row", { name: /approval/ });
    await row.getByText("ask").waitFor();
    await row.getByText(/haft\.yaml:\d+/).waitFor();
  });

  it("adds a server by form", async () => {
    await page.goto(`${service.url}/#/servers?add=1`);
    await page.getByRole("tab", { name: "Form" }).click();
    await page.getByLabel("Name of the server").fill("formed");
    await page
      .getByLabel("Command with its arguments")
      .fill(`"${process.execPath}" ${CONTENT_SERVER} --many 2`);
    await page.getByRole("button", { name: "Add this server" }).click();
    await page.getByRole("link", { name: "formed" }).waitFor();
  });

  it("has a snippet for every client, as `haft install` writes it", () => {
    const url = `${service.url}/mcp`;
    const compared: string[] = [];
    for (const { client, text } of clientSnippets(url)) {
      let printed: { entry: Record<string, unknown> };
      try {
        printed = JSON.parse(
          service.haft("--json", "install", client, "--url", url, "--key-env", "HAFT_KEY"),
        );
      } catch {
        // The client takes no address, or no variable in its headers.
        continue;
      }
      for (const value of Object.values(printed.entry)) {
        const parts = typeof value === "object" ? Object.values(value as object) : [value];
        for (const part of parts) expect(text).toContain(String(part));
      }
      compared.push(client);
    }
    expect(compared).toEqual(["claude", "vscode", "cursor", "codex", "gemini", "windsurf"]);
  });

  it("shows a profile key its profile only", async () => {
    const key = service.haft("keys", "create", "--profile", "part", "--name", "bound").trim();
    const own = await browser.newContext();
    const tab = await own.newPage();
    await tab.goto(service.url);
    await tab.getByLabel("Key").fill(key);
    await tab.getByRole("button", { name: "Sign in" }).click();
    await tab.getByRole("heading", { name: "Profile part" }).waitFor({ timeout: WAIT_MS });
    await tab.getByRole("cell", { name: "tool_1" }).waitFor({ timeout: WAIT_MS });
    expect(await tab.getByRole("cell", { name: "get-sum" }).count()).toBe(0);
    expect(await tab.getByRole("navigation").count()).toBe(0);
    const refused = await tab.evaluate(async () => (await fetch("/api/v1/tools")).status);
    expect(refused).toBe(403);
    await own.close();
  });

  it("asks for a key again when the key of the page is revoked", async () => {
    service.haft("keys", "create", "--scope", "admin", "--name", "second");
    const own = await browser.newContext();
    const tab = await own.newPage();
    const key = service.haft("keys", "create", "--scope", "admin", "--name", "short").trim();
    await signIn(tab, service.url, key);
    await go("log", tab);
    await tab.getByText("live", { exact: true }).waitFor({ timeout: WAIT_MS });
    service.haft("keys", "revoke", "short");
    await tab.getByRole("button", { name: "Sign in" }).waitFor({ timeout: WAIT_MS });
    await own.close();
  });
});

describe("the chat", () => {
  it("streams text, shows calls with their results, and asks in place", async () => {
    model.script({ call: { name: "get-sum", arguments: { a: 40, b: 2 } } }, { text: ["The sum ", "is 42."] });
    await go("chat");
    await page.getByLabel("Message").fill("What is 40 and 2?");
    await page.getByRole("button", { name: "Send" }).click();
    await page.getByText("What is 40 and 2?").first().waitFor();
    const chat = page.getByRole("log", { name: "Conversation" });
    await chat.getByRole("button", { name: "Allow", exact: true }).click();
    await chat.getByText("The sum is 42.").waitFor();
    await chat.getByText("done", { exact: true }).waitFor();
    await chat.getByText("Result").click();
    await chat.getByText(/is 42/).first().waitFor();
  });

  it("cancels a run, and resumes the conversation with its messages", async () => {
    model.script({ text: ["This takes "], hold: true });
    await page.getByLabel("Message").fill("Take your time");
    await page.getByRole("button", { name: "Send" }).click();
    await page.getByText("This takes").waitFor();
    await page.getByRole("button", { name: "Cancel" }).click();
    await page.getByRole("button", { name: "Cancel" }).waitFor({ state: "detached" });
    await page.getByText("You cancelled this answer.").waitFor();
    await page.getByRole("button", { name: "New conversation" }).click();
    await page.getByText("Ask the agent to do something").waitFor();
    await page.getByRole("link", { name: "What is 40 and 2?" }).first().click();
    await page.getByText("The sum is 42.").waitFor();
    model.script({ text: ["Welcome back."] });
    await page.getByLabel("Message").fill("Again");
    await page.getByRole("button", { name: "Send" }).click();
    await page.getByText("Welcome back.").waitFor();
    expect(JSON.stringify(model.requests.at(-1))).toContain("What is 40 and 2?");
  });

  it("lays out an answer and loads nothing that it names", async () => {
    const image = "![logo](https://example.com/a.png) <img src=https://example.com/b.png onerror=alert(1)>";
    model.script({ text: ["**Ready.**\n\n- one\n- two\n\n", image, " [go](javascript:alert(1))"] });
    await page.getByLabel("Message").fill("Lay it out");
    await page.getByRole("button", { name: "Send" }).click();
    const chat = page.getByRole("log", { name: "Conversation" });
    await chat.locator("strong", { hasText: "Ready." }).waitFor();
    await chat.locator("li", { hasText: "two" }).waitFor();
    await page.getByText("Working…").waitFor({ state: "detached" });
    expect(await chat.locator("img").count()).toBe(0);
    expect(await chat.locator('a[href^="javascript:"]').count()).toBe(0);
  });

  it("ran no foreign script and talked to its own origin only", () => {
    expect(watched.problems).toEqual([]);
  });
});

describe("policy", () => {
  it("explains which rule denied a call, and by which values", async () => {
    expect(await service.callAsClient("get-sum", { a: 0, b: 0 })).toContain("denied by the rule `no zeros`");
    await go("log?tool=get-sum&code=Denied");
    await page
      .getByRole("link", { name: /get-sum/ })
      .first()
      .click();
    await page.getByText(/no zeros \(haft\.yaml:\d+\): deny, there is nothing to add/).waitFor();
    await page.getByRole("heading", { name: "Values that the rule looked at" }).waitFor();
  });

  it("shows how a definition differs from the lock file, and approves it", async () => {
    const content = (description: string) =>
      JSON.stringify({ tools: [{ name: "note", description, inputSchema: { type: "object" } }] });
    const locked = await startService({
      prepare: (folder) => writeFileSync(join(folder, "notes.json"), content("Adds a note.")),
      servers: `  notes: {command: ${process.execPath}, args: [${CONTENT_SERVER}, notes.json]}`,
    });
    locked.haft("lock", "--trust");
    writeFileSync(join(locked.folder, "notes.json"), content("Adds a shared note."));
    await locked.restart();
    const own = await browser.newContext();
    const tab = await own.newPage();
    await signIn(tab, locked.url, locked.key);
    await tab.goto(`${locked.url}/#/inbox`);
    await tab.getByText("Difference from the approved definition").waitFor({ timeout: WAIT_MS });
    expect(await tab.locator("ins").textContent()).toContain("shared");
    await tab.getByRole("button", { name: "approve", exact: true }).click();
    await tab.getByText("No question is open").waitFor({ timeout: WAIT_MS });
    // The answer closes the question; the file follows.
    const lockFile = () => readFileSync(join(locked.folder, "haft.lock"), "utf8");
    await expect.poll(lockFile, { timeout: WAIT_MS }).toContain("Adds a shared note.");
    await own.close();
    await locked.stop();
  });
});

describe("a service that restarts", () => {
  it("is followed again without a reload", async () => {
    const keyless = await startService({ keyless: true });
    const own = await browser.newContext();
    const tab = await own.newPage();
    // The address without `#` leads to the page. Reading the log needs an admin key, and the page names the remedy.
    await tab.goto(`${keyless.url}/log`);
    await tab.getByText("This needs an admin key").waitFor({ timeout: WAIT_MS });
    await tab.getByText("haft keys create --scope admin --name me").waitFor();
    await tab.goto(`${keyless.url}/#/inbox`);
    await tab.getByText("live", { exact: true }).waitFor({ timeout: WAIT_MS });
    await keyless.restart();
    await tab.getByText("live", { exact: true }).waitFor({ timeout: WAIT_MS });
    const call = keyless.callAsClient("get-sum", { a: 20, b: 22 });
    await tab.getByRole("button", { name: "Allow", exact: true }).click({ timeout: WAIT_MS });
    expect(await call).toContain("is 42");
    await own.close();
    await keyless.stop();
  });
});
