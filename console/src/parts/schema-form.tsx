// The input of a tool or question: a form made from its JSON Schema, with the raw JSON beside it.

import Form, { type IChangeEvent } from "@rjsf/core";
import type { UiSchema } from "@rjsf/utils";
import { lazy, Suspense, useMemo, useState } from "react";
import { clean } from "./schema-labels";
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
