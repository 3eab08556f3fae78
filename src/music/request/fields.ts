/** Where a parameter's value is looked up in a body, and how its rule is applied under the range policy. */
import { z } from "zod";
import type { RangePolicy } from "../../config.js";
import { describe, namesOf, type Remedy } from "../../parameters.js";
import { RequestError } from "../errors.js";
import { type Fields, isObject, readClientJson } from "./json.js";

/** Where the values of a request may stand beside its top level, in the order of lookup. */
export const NESTED_NAMES = {
  parameters: ["param_obj"],
  metadata: ["metas", "meta", "metadata", "user_metadata", "userMetadata"],
} as const;

interface Found {
  /** The name that the client used. */
  name: string;
  value: unknown;
}

/**
 * The sources of a request in order: the top level, the object in `param_obj`, the metadata object. In
 * each the names are tried in order; the first value that is neither null nor blank wins.
 */
export class FieldSources {
  readonly #sources: readonly Fields[];

  constructor(fields: Fields) {
    const named = (names: readonly string[]) =>
      names
        .map((name): [string, unknown] => [name, own(fields, name)])
        .filter(([, value]) => !isEmpty(value));
    const nested = [...named(NESTED_NAMES.parameters), ...named(NESTED_NAMES.metadata).slice(0, 1)];
    this.#sources = [fields, ...nested.map(readObject)];
  }

  find(names: readonly string[]): Found | undefined {
    for (const source of this.#sources) {
      for (const name of names) {
        const value = own(source, name);
        if (!isAbsent(value)) return { name, value };
      }
    }
    return undefined;
  }
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

/** An object, or the object that JSON text spells; anything else counts as empty. */
function readObject([name, value]: [name: string, value: unknown]): Fields {
  const read = typeof value === "string" ? readClientJson(value, name) : value;
  return isObject(read) ? read : {};
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

/**
 * A parser of bodies in which nothing is clamped or replaced; it throws a RequestError that names the field at fault.
 * `shape`: the parameters, for those who describe them.
 */
export function strictParser<Shape extends z.ZodRawShape>(shape: Shape) {
  const schema = z.object(shape);
  const parse = (fields: Fields) => parseObject(schema, new FieldSources(fields), "refuse", []);
  return Object.assign(parse, { shape });
}

/**
 * The value of a parameter, its default where the client sent none.
 * @param warnings gets a line for every value that was not taken literally
 * @throws RequestError naming the parameter, its rule and the value
 */
export function parseField<S extends z.ZodType>(
  schema: S,
  sources: FieldSources,
  policy: RangePolicy,
  warnings: string[],
): z.output<S> {
  const names = namesOf(schema);
  const found = sources.find(names);
  const result = schema.safeParse(found?.value);
  if (result.success) return result.data;

  const issue = result.error.issues[0] as z.core.$ZodIssue;
  const name = found && found.name !== names[0] ? `${names[0]} (sent as ${found.name})` : names[0];
  const complaint = `${name} ${issue.message}, got ${describe(found?.value)}`;
  const remedy = remedyOf(issue, policy);
  if (remedy === undefined) throw new RequestError(complaint);

  const mended = schema.parse(remedy.use);
  warnings.push(`${complaint}; ${describe(remedy.use ?? mended)} was used`);
  return mended;
}

function remedyOf(issue: z.core.$ZodIssue, policy: RangePolicy): Remedy | undefined {
  if (issue.code === "custom" && issue.params && "use" in issue.params) {
    const remedy = issue.params as unknown as Remedy;
    return policy === "refuse" && remedy.isRange === true ? undefined : remedy;
  }
  if (policy === "refuse") return undefined;
  if (issue.code === "too_small") return { use: issue.minimum };
  if (issue.code === "too_big") return { use: issue.maximum };
  return undefined;
}
