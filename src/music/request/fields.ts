/**
 * Looks up parameters in a body and validates them. SVC_RANGE_POLICY decides whether values out of range are
 * clamped or refused.
 */
import { z } from "zod";
import type { RangePolicy } from "../../config.js";
import { say } from "../../notes.js";
import {
  describe,
  type Fields,
  isObject,
  namesOf,
  type ValueReplacement,
  valueAtFault,
} from "../../parameters.js";
import { RequestError } from "../errors.js";
import { tryParseClientJson } from "./json.js";

/** Nested objects that may hold parameters, in the order of lookup after the top level. */
export const NESTED_OBJECT_NAMES = {
  parameters: ["param_obj"],
  guidance: ["guidance_params", "guidanceParams"],
  metadata: ["metas", "meta", "metadata", "user_metadata", "userMetadata"],
} as const;

/**
 * Adds a field of a form. Values of a repeated field become a list, which only list parameters accept. Some clients
 * write such names with brackets, such as `track_classes[]`.
 */
export function addFormField(fields: Record<string, unknown>, sent: string, value: string): void {
  const name = sent.replace(/\[\]$/, "");
  const earlier = fields[name];
  if (earlier === undefined) fields[name] = value;
  else fields[name] = Array.isArray(earlier) ? [...earlier, value] : [earlier, value];
}

interface NamedValue {
  /** Name under which the client sent the value. */
  name: string;
  value: unknown;
}

/**
 * Looks up parameters in the top level of a body, then in `param_obj`, `guidance_params` and the metadata object, then
 * in `defaults`. In each object, the names of a parameter are tried in order. The first value that is neither null nor
 * blank wins.
 */
export class FieldSources {
  readonly #sources: readonly Fields[];
  readonly #defaults: Fields;

  /**
   * @param warnings gets a line for a nested object that cannot be read
   * @param defaults values of parameters that the client did not send
   */
  constructor(fields: Fields, warnings: string[] = [], defaults: Fields = {}) {
    const named = (names: readonly string[]) =>
      names
        .map((name): [string, unknown] => [name, own(fields, name)])
        .filter(([, value]) => !isEmpty(value));
    const nested = [
      ...named(NESTED_OBJECT_NAMES.parameters),
      ...named(NESTED_OBJECT_NAMES.guidance),
      ...named(NESTED_OBJECT_NAMES.metadata).slice(0, 1),
    ];
    this.#sources = [fields, ...nested.map(([name, value]) => readObject(name, value, warnings))];
    this.#defaults = defaults;
  }

  find(names: readonly string[]): NamedValue | undefined {
    return this.#sent(names)[0] ?? valuesIn(this.#defaults, names)[0];
  }

  /** A different value that the client also sent for a parameter, but that does not count. */
  findIgnored(names: readonly string[]): NamedValue | undefined {
    const [used, ...others] = this.#sent(names);
    return others.find(({ value }) => textOf(value) !== textOf(used?.value));
  }

  #sent(names: readonly string[]): NamedValue[] {
    return this.#sources.flatMap((source) => valuesIn(source, names));
  }
}

function valuesIn(source: Fields, names: readonly string[]): NamedValue[] {
  return names.map((name) => ({ name, value: own(source, name) })).filter(({ value }) => !isAbsent(value));
}

function textOf(value: unknown): string {
  return typeof value === "object" ? JSON.stringify(value) : String(value).trim();
}

function own(fields: Fields, name: string): unknown {
  return Object.hasOwn(fields, name) ? fields[name] : undefined;
}

function isAbsent(value: unknown): boolean {
  return value === undefined || value === null || (typeof value === "string" && value.trim() === "");
}

function isEmpty(value: unknown): boolean {
  return isAbsent(value) || (isObject(value) && Object.keys(value).length === 0);
}

/** Reads an object, or JSON text of one. Other values count as an empty object and add a warning. */
function readObject(name: string, value: unknown, warnings: string[]): Fields {
  const read = typeof value === "string" ? tryParseClientJson(value, name) : value;
  if (isObject(read)) return read;
  warnings.push(
    say("parameter_ignored", {
      names: name,
      reason: `it must be an object or JSON text of one, got ${describe(value)}`,
    }),
  );
  return {};
}

/** Parses every parameter of the schema; see `parseField`. */
export function parseObject<Shape extends z.ZodRawShape>(
  schema: z.ZodObject<Shape>,
  sources: FieldSources,
  policy: RangePolicy,
  warnings: string[],
): z.output<z.ZodObject<Shape>> {
  const shape: Record<string, z.ZodType> = schema.shape as never;
  const values = Object.entries(shape).map(([key, type]) => [
    key,
    parseField(type, sources, policy, warnings),
  ]);
  return Object.fromEntries(values);
}

/** Creates a parser that throws RequestError naming the invalid field, and never clamps. */
export function strictParser<Shape extends z.ZodRawShape>(shape: Shape) {
  const schema = z.object(shape);
  const parse = (fields: Fields) => parseObject(schema, new FieldSources(fields), "refuse", []);
  return Object.assign(parse, { shape });
}

/**
 * Returns the value of a parameter, or its default.
 * @param warnings gets a line for every corrected value
 * @throws RequestError with the parameter, its rule and the value
 */
export function parseField<S extends z.ZodType>(
  schema: S,
  sources: FieldSources,
  policy: RangePolicy,
  warnings: string[],
): z.output<S> {
  const names = namesOf(schema);
  const found = sources.find(names);
  const ignored = sources.findIgnored(names);
  if (found && ignored) {
    const spell = ({ name, value }: NamedValue) => `${name} ${describe(value)}`;
    warnings.push(say("field_counts", { lost: spell(ignored), used: spell(found) }));
  }
  const result = schema.safeParse(found?.value);
  if (result.success) return result.data;

  const issue = result.error.issues[0] as z.core.$ZodIssue;
  const name = found && found.name !== names[0] ? `${names[0]} (sent as ${found.name})` : names[0];
  const complaint = `${name} ${issue.message}, got ${describe(valueAtFault(issue, found?.value))}`;
  const replacement = replacementOf(issue, policy);
  if (replacement === undefined) throw new RequestError(complaint);

  const corrected = schema.parse(replacement.use);
  warnings.push(say("value_corrected", { reason: complaint, value: describe(replacement.use ?? corrected) }));
  return corrected;
}

function replacementOf(issue: z.core.$ZodIssue, policy: RangePolicy): ValueReplacement | undefined {
  if (issue.code === "custom" && issue.params && "use" in issue.params) {
    const replacement = issue.params as unknown as ValueReplacement;
    return policy === "refuse" && replacement.isRange === true ? undefined : replacement;
  }
  if (policy === "refuse") return undefined;
  if (issue.code === "too_small") return { use: issue.minimum };
  if (issue.code === "too_big") return { use: issue.maximum };
  return undefined;
}
