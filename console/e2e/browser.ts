// Chromium, with the flags that keep it from talking to anything but the service.

import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core";

const CHROMIUM = process.env.HAFT_CHROMIUM ?? "/usr/bin/chromium";

export function launch(): Promise<Browser> {
  return chromium.launch({
    executablePath: CHROMIUM,
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
      "--no-first-run",
    ],
  });
}

export interface Watched {
  page: Page;
  /** Errors of scripts, violations of the content security policy, and requests to other origins. */
  problems: string[];
}

/** Opens a page and collects what must never happen. */
export async function watch(context: BrowserContext, origin: string): Promise<Watched> {
  const page = await context.newPage();
  const problems: string[] = [];
  page.on("pageerror", (error) => problems.push(`script error: ${error.message}`));
  page.on("console", (message) => {
    const text = message.text();
    if (text.includes("Content Security Policy")) problems.push(text);
  });
  await page.addInitScript(() => {
    document.addEventListener("securitypolicyviolation", (event) => {
      console.error(`Content Security Policy violated: ${event.violatedDirective} ${event.blockedURI}`);
    });
  });
  page.on("request", (request) => {
    const url = request.url();
    if (!url.startsWith(origin) && !url.startsWith("data:") && !url.startsWith("blob:")) {
      problems.push(`request to another origin: ${url}`);
    }
  });
  return { page, problems };
}

export async function signIn(page: Page, url: string, key: string): Promise<void> {
  await page.goto(url);
  await page.getByLabel("Key").fill(key);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { name: "Overview" }).waitFor();
}
