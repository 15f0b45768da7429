// The typed client. Its types are generated from the service's own API document.

import createClient, { type Middleware } from "openapi-fetch";
import type { components, paths } from "./schema";

export type Schemas = components["schemas"];
export type Problem = Schemas["Problem"];

/** An answer other than success, as the service explains it. */
export class ApiError extends Error {
  readonly status: number;
  readonly problem: Partial<Problem>;

  constructor(status: number, problem: Partial<Problem>) {
    super(problem.detail ?? problem.title ?? `the service answered ${status}`);
    this.status = status;
    this.problem = problem;
  }
}

/** Marks a change as made by this page: another origin cannot add a header without being allowed to. */
export const CONSOLE_HEADER = "x-haft-console";

const signedOut = new EventTarget();

/** Calls `then` when the service no longer accepts the session. */
export function onSignedOut(then: () => void): () => void {
  signedOut.addEventListener("401", then);
  return () => signedOut.removeEventListener("401", then);
}

export function reportSignedOut(): void {
  signedOut.dispatchEvent(new Event("401"));
}

const middleware: Middleware = {
  onRequest({ request }) {
    if (request.method !== "GET") request.headers.set(CONSOLE_HEADER, "1");
    return request;
  },
  onResponse({ response }) {
    if (response.status === 401 && !response.url.endsWith("/api/v1/session")) reportSignedOut();
    return response;
  },
};

export const api = createClient<paths>({ baseUrl: "" });
api.use(middleware);

interface Outcome<T> {
  data?: T;
  error?: unknown;
  response: Response;
}

/** Returns the data of a successful answer and throws what the service says otherwise. */
export async function ok<T>(request: Promise<Outcome<T>>): Promise<T> {
  const { data, error, response } = await request;
  if (!response.ok) {
    const problem = typeof error === "object" && error !== null ? (error as Partial<Problem>) : {};
    throw new ApiError(response.status, problem);
  }
  return data as T;
}

/** As `ok`, with the revision of what was read, for a change that must not overwrite another. */
export async function withRevision<T>(
  request: Promise<Outcome<T>>,
): Promise<{ data: T; etag: string | null }> {
  const outcome = await request;
  const data = await ok(Promise.resolve(outcome));
  return { data, etag: outcome.response.headers.get("etag") };
}
