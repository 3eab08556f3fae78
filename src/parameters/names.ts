/** The names that a client may give a parameter, kept beside its zod type. */
import { z } from "zod";

/** Names that a client may give a parameter, in the order in which they are looked up. */
const wireNames = z.registry<{ names: readonly string[] }>();

/** Gives a parameter its names: those listed, then the camelCase form of each. */
export function parameter<S extends z.ZodType>(names: string | readonly [string, ...string[]], schema: S): S {
  const listed = typeof names === "string" ? [names] : names;
  // A type may stand for several parameters, each with names of its own.
  const own = schema.clone() as S;
  wireNames.add(own, { names: [...new Set([...listed, ...listed.map(camelCase)])] });
  return own;
}

function camelCase(name: string): string {
  return name.replace(/[_-]([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
}

/** The names of a parameter of the schema, its own name first. */
export function namesOf(schema: z.ZodType): readonly [string, ...string[]] {
  return wireNames.get(schema)?.names as readonly [string, ...string[]];
}
