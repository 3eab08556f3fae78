/** Fields that nothing reads. Clients send many that only their own servers know, so they are named, not refused. */
import { distance } from "fastest-levenshtein";
import { namesOf } from "../../parameters/names.js";
import { describe } from "../../parameters/values.js";
import { UPLOAD_FIELDS } from "../audio/uploads.js";
import { NESTED_NAMES } from "./fields.js";
import type { Fields } from "./json.js";
import { generationSchema } from "./schema.js";

/** More are counted. */
const MAX_SHOWN = 8;
/** More are not compared with the known names, which takes a while. */
const MAX_COMPARED = 100;
/** Letters wrong, missing or too many. */
const MAX_TYPOS = 2;

const PARAMETER_NAMES: readonly string[] = Object.values(generationSchema.shape).flatMap((type) =>
  namesOf(type),
);
const OTHER_NAMES = [
  "ai_token",
  ...Object.values(NESTED_NAMES).flat(),
  ...Object.values(UPLOAD_FIELDS).flat(),
] as const;
const KNOWN_NAMES: ReadonlySet<string> = new Set([...PARAMETER_NAMES, ...OTHER_NAMES]);

/** Adds a line that names the unknown fields of POST /release_task, those that look like a slip first. */
export function warnOfUnknownFields(fields: Fields, warnings: string[]): void {
  const unknown = Object.keys(fields).filter((name) => !KNOWN_NAMES.has(name));
  if (unknown.length === 0) return;
  const compared = unknown.slice(0, MAX_COMPARED);
  const isMeant = (name: string) => meantName(name) !== undefined;
  const ordered = [...compared.filter(isMeant), ...compared.filter((name) => !isMeant(name))];
  const shown = ordered.slice(0, MAX_SHOWN).map(withSuggestion).join(", ");
  const rest = unknown.length > MAX_SHOWN ? `, and ${unknown.length - MAX_SHOWN} more` : "";
  warnings.push(`unknown fields were ignored: ${shown}${rest}`);
}

function withSuggestion(name: string): string {
  const meant = meantName(name);
  return describe(name) + (meant === undefined ? "" : ` (did you mean ${meant}?)`);
}

/** The parameter that a name is a slip of, or the only one whose last word it is. */
function meantName(name: string): string | undefined {
  if (name.length <= MAX_TYPOS || name.length > 40) return undefined;
  const typos = Math.min(MAX_TYPOS, Math.floor(name.length / 3));
  const near = PARAMETER_NAMES.find((known) => distance(name, known) <= typos);
  if (near !== undefined) return near;
  if (name.includes("_")) return undefined;
  const longer = PARAMETER_NAMES.filter((known) => known.endsWith(`_${name}`));
  return longer.length === 1 ? longer[0] : undefined;
}
