/** Where a parameter's value is looked up in a body (reference/music-http.md 2.2). */
import { readClientJson } from "./json.js";
import { NESTED_NAMES } from "./schema.js";

/** A body as it came: names to whatever JSON or a form gave. */
export type Fields = Readonly<Record<string, unknown>>;

export interface Found {
  /** The name that the client used. */
  name: string;
  value: unknown;
}

/**
 * The sources of a request in order: the top level, the object in `param_obj`, the metadata object. In
 * each the names are tried in order; the first value that is neither null nor blank wins.
 */
export class FieldSources {
  private readonly sources: readonly Fields[];

  constructor(fields: Fields) {
    const named = (names: readonly string[]) =>
      names
        .map((name): [string, unknown] => [name, own(fields, name)])
        .filter(([, value]) => !isEmpty(value));
    const nested = [...named(NESTED_NAMES.parameters), ...named(NESTED_NAMES.metadata).slice(0, 1)];
    this.sources = [fields, ...nested.map(readObject)];
  }

  find(names: readonly string[]): Found | undefined {
    for (const source of this.sources) {
      for (const name of names) {
        const value = own(source, name);
        if (!isAbsent(value)) return { name, value };
      }
    }
    return undefined;
  }
}

export function isObject(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
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
