// Checks form data against a JSON Schema without generated code: the content security policy forbids `eval`,
// which compiled validators need.

import { type OutputUnit, type Schema, Validator } from "@cfworker/json-schema";
import {
  type CustomValidator,
  createErrorHandler,
  type ErrorSchema,
  type ErrorTransformer,
  type FormContextType,
  type RJSFSchema,
  type RJSFValidationError,
  type StrictRJSFSchema,
  toErrorSchema,
  type UiSchema,
  unwrapErrorHandler,
  type ValidationData,
  type ValidatorType,
  validationDataMerge,
} from "@rjsf/utils";

const DRAFT = "2020-12";

/** Keywords whose errors only repeat those of their parts. */
const WRAPPERS = new Set(["properties", "items", "additionalProperties", "prefixItems", "$ref"]);

function draft(schema: Schema): "4" | "7" | "2019-09" | "2020-12" {
  const name = typeof schema.$schema === "string" ? schema.$schema : "";
  if (name.includes("draft-07") || name.includes("draft-06")) return "7";
  if (name.includes("draft-04")) return "4";
  return name.includes("2019-09") ? "2019-09" : DRAFT;
}

/** Returns the errors of `data`; a schema that cannot be read has one error that says so. */
export function errorsOf(schema: unknown, data: unknown): OutputUnit[] {
  try {
    const read = schema as Schema;
    return new Validator(read, draft(read), false).validate(data).errors;
  } catch (error) {
    const text = `the schema cannot be used: ${String(error)}`;
    return [{ keyword: "$schema", keywordLocation: "#", instanceLocation: "#", error: text }];
  }
}

/** Returns `.a.0.b` for `#/a/0/b`, the form in which forms name a field. */
function property({ keyword, instanceLocation, error }: OutputUnit): string {
  const parts = instanceLocation
    .replace(/^#\/?/, "")
    .split("/")
    .filter((part) => part !== "");
  const missing = keyword === "required" ? /"([^"]+)"/.exec(error)?.[1] : undefined;
  if (missing !== undefined) parts.push(missing);
  return parts.map((part) => `.${part.replaceAll("~1", "/").replaceAll("~0", "~")}`).join("");
}

function listed(units: OutputUnit[]): RJSFValidationError[] {
  const own = units.filter((unit) => !WRAPPERS.has(unit.keyword));
  return own.map((unit) => {
    const name = property(unit);
    const message = unit.keyword === "required" ? "is required" : unit.error;
    return { name: unit.keyword, property: name, message, stack: `${name || "the value"}: ${message}` };
  });
}

// biome-ignore lint/suspicious/noExplicitAny: the form library's own types are open here
class InterpretingValidator<T = any, S extends StrictRJSFSchema = RJSFSchema, F extends FormContextType = any>
  implements ValidatorType<T, S, F>
{
  validateFormData(
    formData: T | undefined,
    schema: S,
    customValidate?: CustomValidator<T, S, F>,
    transformErrors?: ErrorTransformer<T, S, F>,
    uiSchema?: UiSchema<T, S, F>,
  ): ValidationData<T> {
    let errors = listed(errorsOf(schema, formData));
    if (transformErrors) errors = transformErrors(errors, uiSchema);
    const data = { errors, errorSchema: toErrorSchema<T>(errors) as ErrorSchema<T> };
    if (!customValidate || formData === undefined) return data;
    const handled = customValidate(formData, createErrorHandler<T>(formData), uiSchema);
    return validationDataMerge<T>(data, unwrapErrorHandler<T>(handled));
  }

  isValid(schema: S, formData: T | undefined, rootSchema: S): boolean {
    // A part may refer to definitions of the whole.
    const { $defs, definitions } = rootSchema as Record<string, unknown>;
    const whole = { ...($defs ? { $defs } : {}), ...(definitions ? { definitions } : {}), ...schema };
    return errorsOf(whole, formData).length === 0;
  }

  rawValidation<Result = unknown>(schema: S, formData?: T): { errors?: Result[]; validationError?: Error } {
    return { errors: listed(errorsOf(schema, formData)) as Result[] };
  }
}

export const validator = new InterpretingValidator();

export default validator;
