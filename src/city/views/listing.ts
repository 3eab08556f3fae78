/** Paging, counts and formats of problems and times, shared by all lists. */
import type { Problems } from "../simulation/state/entities.js";
import { FIRST_PROBLEM_SET } from "../terms.js";
import type { JsonObject } from "../wire/answers.js";
import type { Query } from "../wire/requests.js";

export interface LimitRule {
  readonly fallback: number;
  readonly max: number;
}

export const ENTITY_LIMIT: LimitRule = { fallback: 500, max: 5000 };
export const PROBLEM_LIMIT: LimitRule = { fallback: 200, max: 1000 };
/** Limit for lists that are complete unless the request sets a limit. */
export const NO_LIMIT: LimitRule = { fallback: 65_535, max: 65_535 };
export const SHORT_LIMIT: LimitRule = { fallback: 50, max: 200 };

/** A finding of a detector, as sent to clients. Further keys depend on the type. */
export interface Anomaly extends JsonObject {
  readonly type: string;
}

/** Returns one page of rows, and the counts of the page. `total` counts the rows of all pages. */
export function paginate<T>(items: readonly T[], query: Query, rule: LimitRule) {
  const limit = Math.min(Math.max(query.integer("limit", rule.fallback), 0), rule.max);
  const offset = Math.max(query.integer("offset", 0), 0);
  const rows = items.slice(offset, offset + limit);
  return { page: { total: items.length, returned: rows.length, limit }, rows };
}

/** Number of items per key, in order of the keys' first occurrence. */
export function countBy<T>(items: Iterable<T>, keyOf: (item: T) => string): Record<string, number> {
  return Object.fromEntries(tally(items, keyOf));
}

export function tally<T, K>(items: Iterable<T>, keyOf: (item: T) => K): Map<K, number> {
  const counts = new Map<K, number>();
  for (const item of items) {
    const key = keyOf(item);
    counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  return counts;
}

/** Groups the counts by `keyOf` and returns the sum of each group. */
export function sumBy<K>(counts: ReadonlyMap<K, number>, keyOf: (item: K) => string): Record<string, number> {
  const sums = new Map<string, number>();
  for (const [item, count] of counts) {
    const key = keyOf(item);
    sums.set(key, (sums.get(key) ?? 0) + count);
  }
  return Object.fromEntries(sums);
}

const FIRST_SET: ReadonlySet<string> = new Set(FIRST_PROBLEM_SET);

/** Problem names in bit order. The severity marker stands after the problems of the first set. */
export function problemNames({ names, severity }: Problems): string[] {
  if (names.length === 0) return [];
  const marker = severity === "major" ? ["MajorProblem"] : severity === "fatal" ? ["FatalProblem"] : [];
  if (marker.length === 0) return [...names];
  const first = names.filter((name) => FIRST_SET.has(name));
  return [...first, ...marker, ...names.filter((name) => !FIRST_SET.has(name))];
}

const TEXTS = new WeakMap<Problems, string>();

/** Problem names, comma-separated; empty without problems. */
export function problemText(problems: Problems): string {
  if (problems.names.length === 0) return "";
  const known = TEXTS.get(problems);
  if (known !== undefined) return known;
  const text = problemNames(problems).join(", ");
  TEXTS.set(problems, text);
  return text;
}

/** Game time as `yyyy-MM-ddTHH:mm:ss`, without a time zone. */
export function timestamp(ms: number): string {
  return new Date(ms).toISOString().slice(0, 19);
}
