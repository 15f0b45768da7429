// The difference of a server's definition from the approved one, as the inbox and the API describe it.

import type { Schemas } from "../api/client";
import { plain } from "./text";
import { Json } from "./ui";

type Drift = Schemas["Drift"];
type Change = Schemas["DefinitionChange"];

/** Returns the difference if a question carries one. */
export function driftOf(value: unknown): Drift | null {
  if (typeof value !== "object" || value === null) return null;
  return "changes" in value && Array.isArray(value.changes) ? (value as Drift) : null;
}

export function DefinitionDiff(props: { drift: Drift }) {
  const { drift } = props;
  return (
    <>
      <h3>Difference from the approved definition</h3>
      <p className="small muted">
        {plain(drift.state)}
        {drift.renamed_from ? `, formerly ${plain(drift.renamed_from)}` : ""}
      </p>
      <ul>
        {drift.changes.map((change) => (
          <li key={`${change.kind} ${change.at}`}>
            {plain(change.kind.replaceAll("_", " "))}: <code>{plain(change.at)}</code>
            <Values change={change} />
          </li>
        ))}
      </ul>
    </>
  );
}

function Values(props: { change: Change }) {
  const { words, before, after } = props.change;
  if (words && words.length > 0) {
    return (
      <p>
        {words.map((word, at) => {
          const text = plain(word.text);
          // Words have no identity of their own, and the list never changes.
          const key = `${at} ${word.op}`;
          if (word.op === "added") return <ins key={key}>{text}</ins>;
          if (word.op === "removed") return <del key={key}>{text}</del>;
          return <span key={key}>{text}</span>;
        })}
      </p>
    );
  }
  return (
    <>
      {before !== undefined && before !== null && <Json value={before} />}
      {after !== undefined && after !== null && <Json value={after} />}
    </>
  );
}
