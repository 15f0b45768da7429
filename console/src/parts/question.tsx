// One open question: an approval with the exact arguments, a choice, or a form.

import { lazy, Suspense, useState } from "react";
import { api, ok } from "../api/client";
import type { Item } from "../inbox";
import { plain } from "./text";
import { Badge, Card, Failure, Json, Loading, Time } from "./ui";

const SchemaForm = lazy(() => import("./schema-form"));

export function Question(props: { item: Item }) {
  const { item } = props;
  const [error, setError] = useState<unknown>(null);
  const [isBusy, setBusy] = useState(false);
  const send = async (body: { answer?: unknown; refuse?: boolean }) => {
    setBusy(true);
    setError(null);
    try {
      await ok(api.POST("/api/v1/inbox/{id}", { params: { path: { id: item.id } }, body }));
    } catch (reason) {
      setError(reason);
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
        {item.caller ? `, for ${plain(item.caller)}` : ""}
        {item.server ? `, by the server ${plain(item.server)}` : ""}
      </p>
      {item.tool && (
        <p>
          Tool: <code>{plain(item.tool)}</code>
        </p>
      )}
      {item.arguments !== null && item.arguments !== undefined && (
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
      {error ? <Failure error={error} /> : null}
    </Card>
  );
}

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
            className="primary"
            key={option}
            disabled={props.isBusy}
            onClick={() => props.onAnswer(option)}
          >
            {plain(option)}
          </button>
        ))}
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
