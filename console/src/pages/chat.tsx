import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Bot, MessagesSquare, Send, Square, Trash2 } from "lucide-react";
import { lazy, Suspense, useEffect, useRef, useState } from "react";
import { Link, useSearchParams } from "wouter";
import { ApiError, api, ok } from "../api/client";
import { postForEvents, readEvents, type ServerEvent } from "../api/events";
import { Question } from "../parts/question";
import { ms, plain } from "../parts/text";
import { Badge, Card, Empty, Failure, Loading, Page, Query, Snippet, Time, ToolLink } from "../parts/ui";
import { next, type Part, stored, type ToolPart } from "./chat-state";

const MarkdownText = lazy(() => import("../parts/markdown"));

export default function Chat() {
  const [params, setParams] = useSearchParams();
  const session = params.get("session");
  // The conversation that this page began stays when it gets its id; any other choice starts afresh.
  const [own, setOwn] = useState<string | null>(null);
  const [count, setCount] = useState(0);
  const key = session !== null && session !== own ? session : `new ${count}`;
  return (
    <Page
      title="Chat"
      lead="The agent with every tool of the toolbox. It asks here before calls that need an approval."
      actions={
        session && (
          <button
            type="button"
            onClick={() => {
              setOwn(null);
              setCount(count + 1);
              setParams({});
            }}
          >
            New conversation
          </button>
        )
      }
    >
      <div className="chat-layout">
        <Conversation
          key={key}
          session={session}
          isNew={session === null || session === own}
          onSession={(id) => {
            setOwn(id);
            setParams({ session: id }, { replace: true });
          }}
        />
        <Conversations at={session} />
      </div>
    </Page>
  );
}

/** The messages of a stored conversation, and the run that still works on it. */
function useEarlier(session: string | null, isNew: boolean) {
  return useQuery({
    queryKey: ["conversation", session],
    enabled: session !== null && !isNew,
    retry: false,
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
    queryFn: async () => {
      const path = { id: session ?? "" };
      const conversation = await ok(api.GET("/api/v1/conversations/{id}", { params: { path } }));
      const { runs } = await ok(api.GET("/api/v1/runs"));
      const running = runs.find((run) => run.status === "running" && run.session === session);
      return { parts: stored(conversation.messages), model: conversation.model, run: running?.id ?? null };
    },
  });
}

function Conversation(props: { session: string | null; isNew: boolean; onSession: (id: string) => void }) {
  const queries = useQueryClient();
  const earlier = useEarlier(props.session, props.isNew);
  const [parts, setParts] = useState<Part[]>([]);
  const [input, setInput] = useState("");
  const [error, setError] = useState<unknown>(null);
  const [isBusy, setBusy] = useState(false);
  const [run, setRun] = useState<string | null>(null);
  const abort = useRef<AbortController | null>(null);
  const end = useRef<HTMLDivElement>(null);
  useEffect(() => () => abort.current?.abort(), []);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the page follows what is added at its end
  useEffect(() => end.current?.scrollIntoView({ block: "nearest" }), [parts]);
  const take = (event: ServerEvent) => {
    if (event.event === "turn.started") {
      const { session, run: id } = event.data as { session?: string; run?: string };
      if (id) setRun(id);
      if (session && props.session === null) props.onSession(session);
    }
    setParts((before) => next(before, event));
  };
  /** Follows a run to its end. Leaving the page ends the connection, not the run. */
  const watch = async (follow: (signal: AbortSignal) => Promise<void>) => {
    const stop = new AbortController();
    abort.current = stop;
    setError(null);
    setBusy(true);
    try {
      await follow(stop.signal);
    } catch (reason) {
      if (!stop.signal.aborted) setError(reason);
    }
    if (stop.signal.aborted) return;
    setBusy(false);
    setRun(null);
    await queries.invalidateQueries({ queryKey: ["conversations"] });
  };
  const send = () => {
    const body = { input, ...(props.session ? { session: props.session } : {}) };
    setParts((before) => [...before, { kind: "user", text: input }]);
    setInput("");
    return watch((signal) => postForEvents("/api/v1/runs", body, take, signal));
  };
  const running = earlier.data?.run;
  // biome-ignore lint/correctness/useExhaustiveDependencies: a run that is active is followed once
  useEffect(() => {
    if (!running) return;
    setRun(running);
    void watch(async (signal) => {
      const response = await fetch(`/api/v1/runs/${encodeURIComponent(running)}/events`, { signal });
      if (!response.ok) throw new ApiError(response.status, {});
      await readEvents(response, take, signal);
    });
  }, [running]);
  const cancel = async () => {
    if (run) await api.DELETE("/api/v1/runs/{id}", { params: { path: { id: run } } });
  };
  const status = useQuery({ queryKey: ["status"], queryFn: () => ok(api.GET("/api/v1/status")) });
  const model = status.data?.model ?? null;
  const needsModel = status.data !== undefined && model === null;
  const all = [...(earlier.data?.parts ?? []), ...parts];
  if (needsModel && all.length === 0 && !earlier.isLoading) return <NoModel />;
  return (
    <div>
      <div className="chat" aria-live="polite" aria-label="Conversation" role="log">
        {earlier.isLoading && <Loading what="the conversation" />}
        {earlier.error ? <Failure error={earlier.error} retry={() => void earlier.refetch()} /> : null}
        {all.length === 0 && status.data && !earlier.isLoading && !earlier.error && (
          <Card>
            <Empty title="Ask the agent to do something" icon={Bot}>
              It chooses tools, shows each call with its arguments and result, and asks you where a rule wants
              it.
            </Empty>
          </Card>
        )}
        {all.map((part, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: parts are only appended and replaced in place
          <PartView key={index} part={part} />
        ))}
        {isBusy && (
          <p className="muted" role="status">
            Working…
          </p>
        )}
        <div ref={end} />
      </div>
      {needsModel ? <NoModel /> : error ? <Failure error={error} /> : null}
      <form
        className="card composer"
        onSubmit={(event) => {
          event.preventDefault();
          if (input.trim() && !isBusy && !needsModel) void send();
        }}
      >
        <label className="field">
          <span>Message</span>
          <textarea
            rows={3}
            placeholder="Enter sends, Shift Enter begins a new line"
            value={input}
            onChange={(event) => setInput(event.target.value)}
            onKeyDown={(event) => {
              if (event.key === "Enter" && !event.shiftKey && !event.nativeEvent.isComposing) {
                event.preventDefault();
                event.currentTarget.form?.requestSubmit();
              }
            }}
          />
        </label>
        <div className="row between">
          <div className="row">
            <button type="submit" className="primary" disabled={isBusy || needsModel || input.trim() === ""}>
              <Send size={15} aria-hidden />
              Send
            </button>
            {isBusy && (
              <button type="button" disabled={!run} onClick={() => void cancel()}>
                <Square size={14} aria-hidden />
                Cancel
              </button>
            )}
          </div>
          {model && <span className="small muted">{plain(model)}</span>}
        </div>
      </form>
    </div>
  );
}

function NoModel() {
  return (
    <Card>
      <Empty title="No model is configured yet" icon={Bot}>
        <p>
          The agent needs a model. Name one in the configuration file; the service reads the file again by
          itself.
        </p>
      </Empty>
      <Snippet
        label="haft.yaml"
        text={'agent:\n  model: "openai::gpt-5"    # or anthropic::…, gemini::…, ollama::…'}
      />
      <p className="small muted">
        Set the key of the provider, such as <code>OPENAI_API_KEY</code>, in the environment in which you
        start the service. Ollama needs none.
      </p>
    </Card>
  );
}

function PartView(props: { part: Part }) {
  const { part } = props;
  switch (part.kind) {
    case "user":
      return <div className="bubble user">{plain(part.text)}</div>;
    case "text":
      return (
        <div className="bubble markdown">
          <Suspense fallback={plain(part.text)}>
            <MarkdownText text={part.text} />
          </Suspense>
        </div>
      );
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
        {call.result?.durationMs !== undefined && (
          <span className="small muted">{ms(call.result.durationMs)}</span>
        )}
        {call.result?.executionId && (
          <Link className="small" href={`/log/${call.result.executionId}`}>
            log entry
          </Link>
        )}
      </div>
      <details open={!call.result}>
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
            <Empty title="There is none yet" icon={MessagesSquare} />
          ) : (
            data.conversations.map((each) => (
              <div className="conversation" key={each.id}>
                <div>
                  <Link
                    href={`/chat?session=${encodeURIComponent(each.id)}`}
                    aria-current={each.id === props.at ? "true" : undefined}
                  >
                    {plain(each.title || each.id)}
                  </Link>
                  <div className="small muted">
                    {each.messages} messages, <Time at={each.updated} />
                  </div>
                </div>
                <button
                  type="button"
                  className="quiet compact danger"
                  aria-label={`Delete ${plain(each.title || each.id)}`}
                  title="Delete"
                  onClick={() => void remove(each.id)}
                >
                  <Trash2 size={15} aria-hidden />
                </button>
              </div>
            ))
          )
        }
      </Query>
    </Card>
  );
}
