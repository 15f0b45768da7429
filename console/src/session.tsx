// The signed-in session: who the page acts for. The key itself is exchanged for a cookie and never kept.

import { useQuery, useQueryClient } from "@tanstack/react-query";
import { createContext, type ReactNode, useContext, useEffect, useState } from "react";
import { ApiError, api, ok, onSignedOut, type Schemas } from "./api/client";
import icon from "./icon.svg";
import { Failure, Loading } from "./parts/ui";

export type Session = Schemas["Session"];

const Current = createContext<Session | null>(null);

/** Returns the session of the page. Only pages inside `SignedIn` use it. */
export function useSession(): Session {
  const session = useContext(Current);
  if (!session) throw new Error("there is no session");
  return session;
}

export function SignedIn(props: { children: ReactNode }) {
  const queries = useQueryClient();
  const session = useQuery({
    queryKey: ["session"],
    queryFn: () => ok(api.GET("/api/v1/session")),
    retry: false,
    refetchInterval: 30_000,
  });
  const { refetch } = session;
  useEffect(
    () =>
      onSignedOut(() => {
        void refetch();
      }),
    [refetch],
  );
  const error = session.error;
  if (error instanceof ApiError && error.status === 401) {
    return <SignIn onDone={() => void queries.resetQueries()} />;
  }
  if (session.data) return <Current.Provider value={session.data}>{props.children}</Current.Provider>;
  if (error) {
    return (
      <main>
        <Failure error={error} retry={() => void refetch()} />
      </main>
    );
  }
  return <Loading what="the console" />;
}

function SignIn(props: { onDone: () => void }) {
  const [key, setKey] = useState("");
  const [error, setError] = useState<unknown>(null);
  const [isBusy, setBusy] = useState(false);
  const { onDone } = props;
  const enter = async () => {
    setBusy(true);
    setError(null);
    try {
      await ok(api.POST("/api/v1/session", { headers: { "x-api-key": key } }));
      onDone();
    } catch (reason) {
      setError(reason);
    } finally {
      setBusy(false);
    }
  };
  return (
    <main className="sign-in">
      <form
        className="card"
        aria-label="Sign in"
        onSubmit={(event) => {
          event.preventDefault();
          void enter();
        }}
      >
        <img src={icon} alt="" />
        <h1>Sign in to Haft</h1>
        <p className="muted">
          The page exchanges the key for a session cookie and does not keep it. <code>haft keys create</code>{" "}
          creates a key; <code>haft console</code> opens this page signed in.
        </p>
        <label className="field">
          <span>Key</span>
          <input
            // biome-ignore lint/a11y/noAutofocus: the page has one field
            autoFocus
            type="password"
            name="key"
            autoComplete="current-password"
            value={key}
            onChange={(event) => setKey(event.target.value)}
          />
        </label>
        <button className="primary" type="submit" disabled={isBusy || key === ""}>
          Sign in
        </button>
        {error ? <Failure error={error} /> : null}
      </form>
    </main>
  );
}
