/** Warns about fields that are no parameters, and suggests the parameter that was probably meant. */
import { distance } from "fastest-levenshtein";
import { say } from "../../notes.js";
import { describe, type Fields } from "../../parameters.js";

/** Maximum number of unknown field names in a warning. The warning then gives the number of the other fields. */
const MAX_SHOWN = 8;
/** Maximum number of unknown field names that are compared with the known names, because comparing is slow. */
const MAX_COMPARED = 100;
/** Maximum edit distance at which a name counts as a typo. */
const MAX_TYPOS = 2;

interface OtherNames {
  /** Fields that are known, but no parameters. */
  others?: readonly string[];
  /** Names in other programs, separated by spaces, by the parameter that they mean. */
  meanings?: Readonly<Record<string, string>>;
}

/**
 * Returns a function whose warning lists the unknown fields of a body, those with a suggestion first. They are not
 * refused, because clients also send fields that are meant for other server products.
 * @param parameters the names of each parameter
 */
export function unknownFieldReporter(
  parameters: readonly (readonly string[])[],
  { others = [], meanings = {} }: OtherNames = {},
): (fields: Fields) => string[] {
  const parameterNames = parameters.flat();
  const known = new Set([...parameterNames, ...others]);
  const namesByLetters = new Map([
    ...Object.entries(meanings).flatMap(([meant, names]) =>
      names.split(" ").map((name) => [lettersOf(name), meant] as const),
    ),
    ...parameters.flatMap((names) => names.map((name) => [lettersOf(name), names[0]] as const)),
  ]);

  /**
   * Returns the parameter that was probably meant: its name in another program, one with a similar name, or the only
   * one that ends with this name.
   */
  function suggestedName(name: string): string | undefined {
    if (name.length <= MAX_TYPOS || name.length > 40) return undefined;
    const same = namesByLetters.get(lettersOf(name));
    if (same !== undefined) return same;
    const typos = Math.min(MAX_TYPOS, Math.floor(name.length / 3));
    const near = parameterNames.find((other) => distance(name, other) <= typos);
    if (near !== undefined) return near;
    if (name.includes("_")) return undefined;
    const longer = parameters.filter((names) => names.some((other) => other.endsWith(`_${name}`)));
    return longer.length === 1 ? longer[0]?.[0] : undefined;
  }

  function withSuggestion(name: string): string {
    const meant = suggestedName(name);
    return describe(name) + (meant === undefined ? "" : ` (did you mean ${meant}?)`);
  }

  return (fields) => {
    const unknown = Object.keys(fields).filter((name) => !known.has(name));
    if (unknown.length === 0) return [];
    const compared = unknown.slice(0, MAX_COMPARED);
    const hasSuggestion = (name: string) => suggestedName(name) !== undefined;
    const ordered = [...compared.filter(hasSuggestion), ...compared.filter((name) => !hasSuggestion(name))];
    const shown = ordered.slice(0, MAX_SHOWN).map(withSuggestion).join(", ");
    const rest = unknown.length > MAX_SHOWN ? `, and ${unknown.length - MAX_SHOWN} more` : "";
    return [say("fields_unknown", { names: shown + rest })];
  };
}

/** A name without case, underscores and hyphens. */
function lettersOf(name: string): string {
  return name.toLowerCase().replace(/[_-]/g, "");
}
