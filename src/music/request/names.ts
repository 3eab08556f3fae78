/** The names that a client may give a parameter, kept beside its zod type. */
import { z } from "zod";

/** Names that a client may give a parameter, in the order in which they are looked up. */
const wireNames = z.registry<{ names: readonly string[] }>();

/** Gives a parameter its names: those listed, then the camelCase form of each. */
export function parameter<S extends z.ZodType>(names: string | readonly [string, ...string[]], schema: S): S {
  const listed = typeof names === "string" ? [names] : names;
  wireNames.add(schema, { names: [...new Set([...listed, ...listed.map(camelCase)])] });
  return schema;
}

function camelCase(name: string): string {
  return name.replace(/[_-]([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
}

/** The names of a parameter of the schema, its own name first. */
export function namesOf(schema: z.ZodType): readonly [string, ...string[]] {
  return wireNames.get(schema)?.names as readonly [string, ...string[]];
}
