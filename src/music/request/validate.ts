/** Applies one parameter's rule to the value that a client sent, under the range policy. */
import type { z } from "zod";
import type { RangePolicy } from "../../config.js";
import { namesOf } from "../../parameters/names.js";
import { describe, type Remedy } from "../../parameters/values.js";
import { RequestError } from "../errors.js";
import type { FieldSources } from "./fields.js";

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
