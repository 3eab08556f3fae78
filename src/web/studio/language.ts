/** The user's language. English texts are the keys; `languages/` has one file for each other language. */

import { keepText, readText } from "./kept.js";

/** Languages by code, with their own names. */
export const LANGUAGES: Readonly<Record<string, string>> = {
  en: "English",
  de: "Deutsch",
  es: "Español",
  fr: "Français",
  pt: "Português",
  ja: "日本語",
  ko: "한국어",
  zh: "中文",
};

const ITEM = "carillon-language";

let texts: Readonly<Record<string, string>> = {};

/** The chosen language, else the first supported language of the browser. */
export function language(): string {
  const wanted = [readText(ITEM) ?? "", ...navigator.languages];
  return wanted.map((code) => code.slice(0, 2)).find((code) => Object.hasOwn(LANGUAGES, code)) ?? "en";
}

let latest = "";

/**
 * Loads the texts of a language, and makes it the page's. Its texts are English if they cannot be loaded. Until they are
 * here, the page stays in its language: a render meanwhile would keep rows of one language as those of the other.
 */
export async function loadLanguage(code = language()): Promise<void> {
  latest = code;
  const loaded = code === "en" ? {} : await read(`/studio/languages/${code}.json`);
  if (code !== latest) return; // Another one was chosen meanwhile.
  texts = loaded;
  document.documentElement.lang = code;
  if (code !== language()) keepText(ITEM, code);
}

/** Explanations of request parameters in the user's language; empty in English, which the server's description has. */
export async function loadHelp(): Promise<Readonly<Record<string, string>>> {
  const code = language();
  return code === "en" ? {} : read(`/studio/help/${code}.json`);
}

/** Texts of a file; none if it cannot be loaded. */
async function read(path: string): Promise<Readonly<Record<string, string>>> {
  const response = await fetch(path).catch(() => null);
  return response?.ok ? response.json() : {};
}

/** Translates a text. `{name}` is replaced by the value of that name. */
export function t(text: string, values: Readonly<Record<string, string | number>> = {}): string {
  return (texts[text] ?? text).replace(/\{(\w+)\}/g, (_, name: string) =>
    isolated(String(values[name] ?? "")),
  );
}

/** Keeps the order of a sentence around Arabic and Hebrew words. */
function isolated(value: string): string {
  return /[\u0590-\u08ff]/.test(value) ? `\u2068${value}\u2069` : value;
}
