// The list of tools, read page by page.

import { api, ok, type Schemas } from "./client";

/** How many tools one request returns. */
const PAGE_SIZE = 1000;

/** Reads every page of the list. Pages and the palette share it under the query key `tools`. */
export async function allTools(): Promise<Schemas["ToolInfo"][]> {
  const tools: Schemas["ToolInfo"][] = [];
  let cursor: string | undefined;
  do {
    const query = { limit: PAGE_SIZE, ...(cursor ? { cursor } : {}) };
    const page = await ok(api.GET("/api/v1/tools", { params: { query } }));
    tools.push(...page.tools);
    cursor = page.next ?? undefined;
  } while (cursor);
  return tools;
}
