/** The names that a client may give a parameter, kept beside its zod type. */
import { z } from "zod";

/** Names that a client may give a parameter, in the order in which they are looked up. */
const wireNames = z.registry<{ names: readonly string[] }>();

declare const wireName: unique symbol;

/** A type that knows, for the compiler alone, what clients call its parameter. */
export type Named<Name extends string> = { readonly [wireName]?: Name };

/** A body of these parameters under the names that clients give them; what has a default may be left out. */
export type BodyOf<Shape extends Record<string, z.ZodType>> = {
  [Key in keyof Shape as Shape[Key] extends Named<infer Name> ? Name : never]?: z.output<Shape[Key]>;
};

/**
 * Gives a parameter its names: those listed, then the camelCase form of each.
 * @param help what it does, for people
 */
export function parameter<const Name extends string, S extends z.ZodType>(
  names: Name | readonly [Name, ...string[]],
  schema: S,
  help?: string,
): S & Named<Name> {
  const listed = typeof names === "string" ? [names] : names;
  // A type may stand for several parameters, each with names of its own.
  const own = schema.clone() as S;
  wireNames.add(own, { names: [...new Set([...listed, ...listed.map(camelCase)])] });
  if (help !== undefined) z.globalRegistry.add(own, { description: help });
  return own;
}

function camelCase(name: string): string {
  return name.replace(/[_-]([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
}

/** The names of a parameter of the schema, its own name first. */
export function namesOf(schema: z.ZodType): readonly [string, ...string[]] {
  return wireNames.get(schema)?.names as readonly [string, ...string[]];
}
