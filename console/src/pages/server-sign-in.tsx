// OAuth at a remote server: the page opens the authorization server, which sends the browser back to the service.

import { useQuery, useQueryClient } from "@tanstack/react-query";
import { LogIn } from "lucide-react";
import { useEffect, useState } from "react";
import { api, ok } from "../api/client";
import { plain, safeLink } from "../parts/text";
import { Card, Failure, State } from "../parts/ui";

export function SignIn(props: { server: string; isNeeded: boolean }) {
  const queries = useQueryClient();
  const path = { name: props.server };
  const [url, setUrl] = useState<string | null>(null);
  const [error, setError] = useState<unknown>(null);
  const status = useQuery({
    queryKey: ["sign-in", props.server],
    queryFn: () => ok(api.GET("/api/v1/servers/{name}/sign-in", { params: { path } })),
    refetchInterval: (query) => (query.state.data?.state === "waiting" ? 1_000 : false),
    retry: false,
  });
  const state = status.data?.state;
  useEffect(() => {
    if (state === "signed_in") {
      setUrl(null);
      void queries.invalidateQueries({ queryKey: ["server"] });
    }
  }, [state, queries]);
  const attempt = async (action: () => Promise<void>) => {
    setError(null);
    try {
      await action();
    } catch (reason) {
      setError(reason);
    }
    await status.refetch();
  };
  const begin = () =>
    attempt(async () => {
      const begun = await ok(api.POST("/api/v1/servers/{name}/sign-in", { params: { path } }));
      setUrl(begun.url);
    });
  const end = () =>
    attempt(async () => {
      await ok<unknown>(api.DELETE("/api/v1/servers/{name}/sign-in", { params: { path } }));
    });
  const link = url ? safeLink(url) : null;
  return (
    <Card
      title="Sign-in"
      actions={state && state !== "none" ? <State of={state}>{state.replace("_", " ")}</State> : null}
    >
      {props.isNeeded && state !== "signed_in" && <p>The server asks for a sign-in.</p>}
      <p className="row">
        <button type="button" className={props.isNeeded ? "primary" : ""} onClick={() => void begin()}>
          <LogIn size={15} aria-hidden />
          Sign in with OAuth
        </button>
        <button type="button" onClick={() => void end()}>
          Remove the tokens
        </button>
      </p>
      {state === "waiting" && link && (
        <div className="note" role="status">
          <p>
            Continue at <strong>{plain(new URL(link).host)}</strong>. This page notices when you are back.
          </p>
          <a className="button" href={link} target="_blank" rel="noreferrer noopener">
            Open the sign-in page
          </a>
        </div>
      )}
      {url && !link && (
        <div className="note bad" role="alert">
          The server names an address that a browser must not open: <code>{plain(url)}</code>
        </div>
      )}
      {state === "failed" && (
        <div className="note bad" role="alert">
          <strong>The sign-in failed:</strong> {plain(status.data?.problem ?? "")}
          {status.data?.remedy && <p>What to do: {plain(status.data.remedy)}</p>}
        </div>
      )}
      {error ? <Failure error={error} /> : null}
    </Card>
  );
}
