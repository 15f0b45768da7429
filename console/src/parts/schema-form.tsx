// The input of a tool or question: a form made from its JSON Schema, with the raw JSON beside it.

import Form, { type IChangeEvent } from "@rjsf/core";
import type { RJSFSchema, UiSchema } from "@rjsf/utils";
import { lazy, Suspense, useMemo, useState } from "react";
import { plain } from "./text";
import { Loading, Tabs } from "./ui";
import { errorsOf, validator } from "./validator";

const JsonEditor = lazy(() => import("./json-editor"));

const uiSchema: UiSchema = { "ui:submitButtonOptions": { norender: true } };

interface Props {
  schema: unknown;
  value: unknown;
  label: string;
  onChange: (value: unknown, isValid: boolean) => void;
}

const VIEWS = ["Form", "JSON"] as const;

export default function SchemaForm(props: Props) {
  const [view, setView] = useState<(typeof VIEWS)[number]>("Form");
  const schema = useMemo(() => clean(props.schema), [props.schema]);
  const take = (value: unknown) => props.onChange(value, errorsOf(schema, value).length === 0);
  return (
    <div>
      <Tabs names={VIEWS} at={view} onPick={setView} />
      {view === "Form" ? (
        <Form
          schema={schema}
          uiSchema={uiSchema}
          validator={validator}
          formData={props.value}
          liveValidate
          showErrorList={false}
          noHtml5Validate
          tagName="div"
          onChange={(event: IChangeEvent) => take(event.formData)}
        >
          {/* The page has its own buttons. */}
          <span />
        </Form>
      ) : (
        <RawInput schema={schema} value={props.value} label={props.label} onChange={props.onChange} />
      )}
    </div>
  );
}

function RawInput(props: Props) {
  const [text, setText] = useState(() => JSON.stringify(props.value ?? {}, null, 2));
  const [problems, setProblems] = useState<string[]>([]);
  const take = (next: string) => {
    setText(next);
    try {
      const value: unknown = JSON.parse(next);
      const errors = errorsOf(props.schema, value);
      setProblems(errors.map((error) => `${error.instanceLocation}: ${error.error}`));
      props.onChange(value, errors.length === 0);
    } catch (error) {
      setProblems([String(error)]);
      props.onChange(props.value, false);
    }
  };
  return (
    <Suspense fallback={<Loading what="the editor" />}>
      <JsonEditor label={props.label} value={text} onChange={take} />
      <div role="status">
        {problems.slice(0, 5).map((problem) => (
          <p key={problem} className="small">
            {plain(problem)}
          </p>
        ))}
      </div>
    </Suspense>
  );
}

const DEPTH_MAX = 64;

/** Returns the schema as the form library takes it: an object schema without a dialect that it does not know. */
export function clean(schema: unknown): RJSFSchema {
  if (typeof schema !== "object" || schema === null) return { type: "object" };
  const { $schema: _, ...rest } = schema as Record<string, unknown>;
  return labelled(rest, 0) as RJSFSchema;
}

/** Returns the schema with labels in which hidden and reordering characters are visible. */
function labelled(schema: unknown, depth: number): unknown {
  if (depth > DEPTH_MAX || typeof schema !== "object" || schema === null) return schema;
  if (Array.isArray(schema)) return schema.map((each) => labelled(each, depth + 1));
  const result: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(schema)) {
    const isLabel = (key === "title" || key === "description") && typeof value === "string";
    if (isLabel) result[key] = plain(value);
    else if (key === "properties" && typeof value === "object" && value !== null) {
      const named = Object.entries(value).map(([name, property]) => [name, titled(name, property, depth)]);
      result[key] = Object.fromEntries(named);
    } else if (key === "enum" || key === "const" || key === "default" || key === "examples")
      result[key] = value;
    else result[key] = labelled(value, depth + 1);
  }
  return result;
}

/** Gives a property whose name hides characters a title that shows them. */
function titled(name: string, property: unknown, depth: number): unknown {
  const schema = labelled(property, depth + 1);
  if (plain(name) === name || typeof schema !== "object" || schema === null || "title" in schema)
    return schema;
  return { ...schema, title: plain(name) };
}
