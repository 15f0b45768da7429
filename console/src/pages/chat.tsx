import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useRef, useState } from "react";
import { Link, useSearchParams } from "wouter";
import { ApiError, api, ok } from "../api/client";
import { postForEvents } from "../api/events";
import { Question } from "../parts/question";
import { ms, plain } from "../parts/text";
import { Badge, Card, Empty, Failure, Page, Query, Time, ToolLink } from "../parts/ui";
import { next, type Part, type ToolPart } from "./chat-state";

export default function Chat() {
  const [params, setParams] = useSearchParams();
  const session = params.get("session");
  return (
    <Page
      title="Chat"
      actions={
        session && (
          <button type="button" onClick={() => setParams({})}>
            New conversation
          </button>
        )
      }
    >
      <div className="two">
        <Conversation session={session} onSession={(id) => setParams({ session: id }, { replace: true })} />
        <Conversations at={session} />
      </div>
    </Page>
  );
}

function Conversation(props: { session: string | null; onSession: (id: string) => void }) {
  const queries = useQueryClient();
  const [parts, setParts] = useState<Part[]>([]);
  const [input, setInput] = useState("");
  const [error, setError] = useState<unknown>(null);
  const [isBusy, setBusy] = useState(false);
  const abort = useRef<AbortController | null>(null);
  const send = async () => {
    const stop = new AbortController();
    abort.current = stop;
    const body = { input, ...(props.session ? { session: props.session } : {}) };
    setParts((before) => [...before, { kind: "user", text: input }]);
    setInput("");
    setError(null);
    setBusy(true);
    try {
      await postForEvents(
        "/api/v1/runs",
        body,
        (event) => {
          if (event.event === "turn.started") {
            const { session } = event.data as { session?: string };
            if (session) props.onSession(session);
          }
          setParts((before) => next(before, event));
        },
        stop.signal,
      );
    } catch (reason) {
      if (!stop.signal.aborted) setError(reason);
    }
    setBusy(false);
    await queries.invalidateQueries({ queryKey: ["conversations"] });
  };
  const cancel = async () => {
    const { runs } = await ok(api.GET("/api/v1/runs"));
    const running = runs.filter((run) => run.status === "running" && run.session === props.session);
    for (const run of running) await api.DELETE("/api/v1/runs/{id}", { params: { path: { id: run.id } } });
    if (running.length === 0) abort.current?.abort();
  };
  const needsModel = error instanceof ApiError && error.status === 503;
  return (
    <div>
      <div className="chat" aria-live="polite" aria-label="Conversation" role="log">
        {parts.length === 0 && !needsModel && (
          <Empty>
            {props.session
              ? "Your next message continues the conversation."
              : "Ask the agent to do something."}
          </Empty>
        )}
        {parts.map((part, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: parts are only appended and replaced in place
          <PartView key={index} part={part} />
        ))}
        {isBusy && (
          <p className="muted" role="status">
            Working…
          </p>
        )}
      </div>
      {needsModel && <NoModel />}
      {error ? <Failure error={error} /> : null}
      <form
        className="card"
        onSubmit={(event) => {
          event.preventDefault();
          if (input.trim() && !isBusy) void send();
        }}
      >
        <label className="field">
          <span>Message</span>
          <textarea
            rows={3}
            value={input}
            onChange={(event) => setInput(event.target.value)}
            onKeyDown={(event) => {
              if (event.key === "Enter" && !event.shiftKey) {
                event.preventDefault();
                event.currentTarget.form?.requestSubmit();
              }
            }}
          />
        </label>
        <div className="row">
          <button type="submit" className="primary" disabled={isBusy || input.trim() === ""}>
            Send
          </button>
          {isBusy && (
            <button type="button" onClick={() => void cancel()}>
              Cancel
            </button>
          )}
        </div>
      </form>
    </div>
  );
}

function NoModel() {
  return (
    <div className="note" role="status">
      <p>
        <strong>No model can be used yet.</strong> Name one in the configuration file and set its key in the
        environment of the service:
      </p>
      <pre>{'agent:\n  model: "openai::gpt-5"        # or anthropic::…, gemini::…, ollama::…'}</pre>
      <p>
        Then reload on the <Link href="/config">Configuration</Link> page.
      </p>
    </div>
  );
}

function PartView(props: { part: Part }) {
  const { part } = props;
  switch (part.kind) {
    case "user":
      return <div className="bubble user">{plain(part.text)}</div>;
    case "text":
      return <div className="bubble">{plain(part.text)}</div>;
    case "note":
      return <div className={`note ${part.tone}`}>{plain(part.text)}</div>;
    case "question":
      return <Question item={part.item} />;
    case "tool":
      return <ToolCall call={part} />;
  }
}

function ToolCall(props: { call: ToolPart }) {
  const { call } = props;
  return (
    <Card>
      <div className="row">
        <Badge tone={call.result ? (call.result.isError ? "bad" : "ok") : "info"}>
          {call.result ? (call.result.isError ? "failed" : "done") : "running"}
        </Badge>
        <ToolLink name={call.tool} />
        {call.result && <span className="small muted">{ms(call.result.durationMs)}</span>}
        {call.result?.executionId && (
          <Link className="small" href={`/log/${call.result.executionId}`}>
            log entry
          </Link>
        )}
      </div>
      <details>
        <summary className="small">Arguments</summary>
        <pre>{plain(call.arguments)}</pre>
      </details>
      {call.progress && !call.result && <p className="small muted">{plain(call.progress)}</p>}
      {call.result && (
        <details>
          <summary className="small">Result</summary>
          <pre>{plain(call.result.text)}</pre>
        </details>
      )}
    </Card>
  );
}

function Conversations(props: { at: string | null }) {
  const conversations = useQuery({
    queryKey: ["conversations"],
    queryFn: () => ok(api.GET("/api/v1/conversations")),
  });
  const remove = async (id: string) => {
    await api.DELETE("/api/v1/conversations/{id}", { params: { path: { id } } });
    await conversations.refetch();
  };
  return (
    <Card title="Earlier conversations">
      <Query of={conversations} what="the conversations">
        {(data) =>
          data.conversations.length === 0 ? (
            <Empty>There is none yet.</Empty>
          ) : (
            <table>
              <tbody>
                {data.conversations.map((each) => (
                  <tr key={each.id}>
                    <td>
                      <Link
                        href={`/chat?session=${encodeURIComponent(each.id)}`}
                        aria-current={each.id === props.at ? "true" : undefined}
                      >
                        {plain(each.title || each.id)}
                      </Link>
                      <div className="small muted">
                        {each.messages} messages, {plain(each.model)}, <Time at={each.updated} />
                      </div>
                    </td>
                    <td>
                      <button type="button" className="danger" onClick={() => void remove(each.id)}>
                        Delete
                      </button>
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          )
        }
      </Query>
    </Card>
  );
}
