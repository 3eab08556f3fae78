/** JSON as the bridge prints it: at most three decimals, whole 64-bit integers, never an exponent, NaN or -0. */

export type Json = null | boolean | number | bigint | string | readonly Json[] | JsonObject;
export interface JsonObject {
  readonly [key: string]: Json | undefined;
}

/**
 * The text of a value; properties that are undefined are left out.
 * @throws RangeError for a number that JSON cannot hold
 */
export function writeJson(value: Json): string {
  switch (typeof value) {
    case "string":
      return JSON.stringify(value);
    case "number":
      return writeNumber(value);
    case "boolean":
    case "bigint":
      return String(value);
  }
  if (value === null) return "null";
  return isArray(value) ? writeArray(value) : writeObject(value);
}

function isArray(value: readonly Json[] | JsonObject): value is readonly Json[] {
  return Array.isArray(value);
}

function writeArray(items: readonly Json[]): string {
  let text = "[";
  for (const item of items) {
    if (text.length > 1) text += ",";
    text += writeJson(item);
  }
  return `${text}]`;
}

function writeObject(object: JsonObject): string {
  let text = "{";
  for (const key in object) {
    const value = object[key];
    if (value === undefined) continue;
    if (text.length > 1) text += ",";
    text += `${JSON.stringify(key)}:${writeJson(value)}`;
  }
  return `${text}}`;
}

function writeNumber(value: number): string {
  if (!Number.isFinite(value)) throw new RangeError(`${value} is not a number that JSON can hold`);
  // Adding zero turns -0 into 0.
  return String(Number.isInteger(value) ? value + 0 : Math.round(value * 1000) / 1000 + 0);
}
