// One open question: an approval with the exact arguments, a choice, or a form.

import { lazy, Suspense, useState } from "react";
import { ApiError, api, ok } from "../api/client";
import type { Item } from "../inbox";
import { DefinitionDiff, driftOf } from "./definition-diff";
import { plain } from "./text";
import { Badge, Card, Failure, Json, Loading, Time, ToolLink } from "./ui";

const SchemaForm = lazy(() => import("./schema-form"));

export function Question(props: { item: Item }) {
  const { item } = props;
  const drift = item.kind === "definition" ? driftOf(item.arguments) : null;
  const [error, setError] = useState<unknown>(null);
  const [isBusy, setBusy] = useState(false);
  const [isGone, setGone] = useState(false);
  const send = async (body: { answer?: unknown; refuse?: boolean }) => {
    setBusy(true);
    setError(null);
    try {
      await ok(api.POST("/api/v1/inbox/{id}", { params: { path: { id: item.id } }, body }));
    } catch (reason) {
      // Answered in another tab a moment before: the question disappears by itself.
      if (reason instanceof ApiError && reason.status === 404) setGone(true);
      else setError(reason);
      setBusy(false);
    }
  };
  return (
    <Card
      label={`Question ${item.id}`}
      title={plain(item.question)}
      actions={<Badge tone="info">{item.kind}</Badge>}
    >
      <p className="small muted">
        asked <Time at={item.asked} />, expires <Time at={item.expires} />
        {!item.tool && item.server ? `, by the server ${plain(item.server)}` : ""}
      </p>
      <dl className="facts">
        {item.tool && (
          <>
            <dt>Tool</dt>
            <dd>
              <ToolLink name={item.tool} />
              {item.server ? ` of ${plain(item.server)}` : ""}
            </dd>
          </>
        )}
        {item.caller && (
          <>
            <dt>Caller</dt>
            <dd>{plain(item.caller)}</dd>
          </>
        )}
        {item.rule && (
          <>
            <dt>Rule</dt>
            <dd>{plain(item.rule)}</dd>
          </>
        )}
      </dl>
      {drift && <DefinitionDiff drift={drift} />}
      {!drift && item.arguments !== null && item.arguments !== undefined && (
        <>
          <h3>Arguments</h3>
          <Json value={item.arguments} />
        </>
      )}
      <Answer item={item} isBusy={isBusy} onAnswer={(answer) => void send({ answer })} />
      {item.kind !== "approval" && (
        <p>
          <button
            type="button"
            className="danger"
            disabled={isBusy}
            onClick={() => void send({ refuse: true })}
          >
            Refuse to answer
          </button>
        </p>
      )}
      {isGone && (
        <div className="note" role="status">
          The question is closed: it was answered elsewhere, or it expired.
        </div>
      )}
      {error ? <Failure error={error} /> : null}
    </Card>
  );
}

/** The answers of an approval. */
const LABELS: Record<string, string> = { allow: "Allow", always: "Always allow", deny: "Deny" };

function Answer(props: { item: Item; isBusy: boolean; onAnswer: (answer: unknown) => void }) {
  const { item } = props;
  const [value, setValue] = useState<unknown>(undefined);
  const [isValid, setValid] = useState(false);
  const [text, setText] = useState("");
  if (item.options.length > 0) {
    return (
      <p className="row">
        {item.options.map((option) => (
          <button
            type="button"
            className={option === "deny" ? "danger" : option === "always" ? "" : "primary"}
            key={option}
            disabled={props.isBusy}
            onClick={() => props.onAnswer(option)}
          >
            {item.kind === "approval" ? (LABELS[option] ?? plain(option)) : plain(option)}
          </button>
        ))}
        {item.options.includes("always") && item.kind === "approval" && (
          <span className="small muted">
            “Always” holds for this tool and {item.session ? "session" : "caller"} until the service ends.
          </span>
        )}
      </p>
    );
  }
  if (typeof item.schema === "object" && item.schema !== null) {
    return (
      <>
        <Suspense fallback={<Loading what="the form" />}>
          <SchemaForm
            schema={item.schema}
            value={value}
            label="Answer as JSON"
            onChange={(next, fits) => {
              setValue(next);
              setValid(fits);
            }}
          />
        </Suspense>
        <button
          type="button"
          className="primary"
          disabled={props.isBusy || !isValid}
          onClick={() => props.onAnswer(value)}
        >
          Answer
        </button>
      </>
    );
  }
  return (
    <form
      className="row"
      onSubmit={(event) => {
        event.preventDefault();
        props.onAnswer(text);
      }}
    >
      <input aria-label="Answer" value={text} onChange={(event) => setText(event.target.value)} />
      <button type="submit" className="primary" disabled={props.isBusy || text === ""}>
        Answer
      </button>
    </form>
  );
}
