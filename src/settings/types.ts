/** Zod types of environment variables. */
import { isIPv6 } from "node:net";
import { resolve } from "node:path";
import { z } from "zod";
import { hostName } from "../http/origins.js";
import { FALSE_WORDS, refuse, TRUE_WORDS } from "../parameters.js";

const BYTES_PER_MEGABYTE = 2 ** 20;
const SECONDS_PER_MINUTE = 60;
export const SECONDS_PER_HOUR = 3600;

const isTrueWord = (text: string) => ["1", ...TRUE_WORDS].includes(text.toLowerCase());
const isFalseWord = (text: string) => ["0", ...FALSE_WORDS].includes(text.toLowerCase());

export const text = z.string().default("");
export const optionalText = z.string().nullable().default(null);
export const flag = z
  .string()
  .refine((word) => isTrueWord(word) || isFalseWord(word), "must be true or false")
  .transform(isTrueWord);
export const directory = z.string().transform((path) => resolve(path));
/** Path of a directory. null, the default, means a folder in SVC_HOME. */
export const directoryInHome = directory.nullable().default(null);
export const oneOf = <const T extends string>(values: readonly [T, ...T[]]) =>
  z.preprocess(lowerCase, z.enum(values, `must be one of ${values.join(", ")}`));
export const separatedList = (separator: string) =>
  text.transform((value) => value.split(separator).flatMap((item) => item.trim() || []));
/** Comma-separated names; `none` is dropped. */
export const nameList = separatedList(",").transform((items) => items.filter((item) => item !== "none"));
/** Host names and addresses without ports, written as in a `Host` header. */
export const hostList = nameList.pipe(z.array(z.string().transform(hostOf)));
export const originRule = z.string().transform(originOf);

/** A decimal number. Number() alone would also accept other forms, such as 0x50. */
const numberText = z
  .string()
  .regex(/^[+-]?(\d+\.?\d*|\.\d+)$/, "must be a number")
  .transform(Number);
export const integer = (min: number, max: number = Number.MAX_SAFE_INTEGER) => {
  const rule = max === Number.MAX_SAFE_INTEGER ? `${min} or more` : `from ${min} to ${max}`;
  const message = `must be an integer ${rule}`;
  return numberText.pipe(z.int(message).min(min, message).max(max, message));
};
export const numberFrom = (min: number) => numberText.pipe(z.number().min(min, `must be ${min} or more`));
export const megabytes = numberFrom(0).transform((count) => Math.floor(count * BYTES_PER_MEGABYTE));
export const autoOnOrOff = z
  .preprocess(lowerCase, z.string())
  .refine((word) => word === "auto" || isTrueWord(word) || isFalseWord(word), "must be auto, true or false")
  .transform((word): "auto" | "on" | "off" => {
    if (word === "auto") return "auto";
    return isTrueWord(word) ? "on" : "off";
  });
/** A number of minutes, converted to seconds; null for auto. */
export const minutesOrAuto = z
  .preprocess(
    lowerCase,
    z.string().regex(/^(auto|\d+(\.\d+)?)$/, "must be auto or a number of minutes from 0"),
  )
  .transform((word) => (word === "auto" ? null : Number(word) * SECONDS_PER_MINUTE));
export const countOrAuto = z
  .preprocess(lowerCase, z.string().regex(/^(auto|[1-8])$/, "must be auto or a whole number from 1 to 8"))
  .transform((word) => (word === "auto" ? null : Number(word)));
export const device = z.preprocess(
  lowerCase,
  z.string().regex(/^(auto|cpu|cuda(:\d+)?)$/, "must be auto, cpu, cuda or cuda:N"),
);
/** Devices, one per slot. The last one also applies to the remaining slots. */
export const devices = z.preprocess(
  (value) => (typeof value === "string" ? value.split(",").map((name) => name.trim()) : value),
  z.tuple([device], device),
);

function hostOf(text: string, context: z.core.$RefinementCtx): string {
  if (text === "*") return text;
  if (isIPv6(text)) return `[${text.toLowerCase()}]`;
  if (/^[^\s/@?#]+$/.test(text)) return hostName(text);
  return refuse(context, "must list names or addresses such as music.example or 192.168.1.5", text);
}

/** Reduces a page's URL to its origin. */
function originOf(text: string, context: z.core.$RefinementCtx): string {
  if (text === "*" || text === "null") return text;
  if (/^https?:/i.test(text) && URL.canParse(text)) return new URL(text).origin;
  // Origins of desktop applications, such as tauri://localhost.
  if (/^[a-z][a-z\d+.-]*:\/\/[^\s/]+$/i.test(text)) return text;
  return refuse(context, "must list origins such as http://192.168.1.5:3000, or null, or *", text);
}

function lowerCase(value: unknown): unknown {
  return typeof value === "string" ? value.toLowerCase() : value;
}
