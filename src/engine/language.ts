/** What words tell of themselves: the language they are written in, and what a wish asks for. */
import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { LANGUAGES } from "./metadata.js";

/** Section tags say nothing of the language that is sung. */
const TAGS = /\[[^[\]\n]*\]/g;

let thread: Worker | null = null;
let last: Promise<unknown> = Promise.resolve();

/**
 * A code of `languages`, or null where the text is too short or too mixed to tell. A thread of its own tells it: the
 * detector's tables take a second of a processor to load.
 */
export function writtenLanguage(text: string): Promise<string | null> {
  const sung = text.replace(TAGS, " ").trim();
  if (sung === "") return Promise.resolve(null);
  // One answer is awaited at a time.
  const answer = last.catch(() => {}).then(() => detect(sung));
  last = answer;
  return answer;
}

async function detect(text: string): Promise<string | null> {
  thread ??= new Worker(new URL("./language-worker.js", import.meta.url), { execArgv: [] });
  thread.ref();
  thread.postMessage(text);
  try {
    const [language] = (await once(thread, "message")) as [string | null];
    // It keeps no process alive that awaits nothing.
    thread.unref();
    return language !== null && LANGUAGES.includes(language) ? language : null;
  } catch (error) {
    thread = null;
    throw error;
  }
}

/** Hints that a person leaves in a free-text wish. */
export interface QueryHints {
  /** A language code, or null where the wish names none. */
  language: string | null;
  instrumental: boolean;
}

/** The first language that the wish names wins, in this order. */
const LANGUAGE_NAMES: [code: string, ...names: string[]][] = [
  ["en", "english"],
  ["zh", "chinese", "中文", "mandarin"],
  ["ja", "japanese", "日本語"],
  ["ko", "korean", "한국어"],
  ["es", "spanish", "español"],
  ["fr", "french", "français"],
  ["de", "german", "deutsch"],
  ["it", "italian", "italiano"],
  ["pt", "portuguese", "português"],
  ["ru", "russian", "русский"],
  ["bn", "bengali"],
  ["hi", "hindi"],
  ["ar", "arabic"],
  ["th", "thai"],
  ["vi", "vietnamese"],
  ["id", "indonesian"],
  ["tr", "turkish"],
  ["nl", "dutch"],
  ["pl", "polish"],
];

const LETTER = "[\\p{L}\\p{N}_]";

const INSTRUMENTAL_WORDS = ["instrumental", "pure music", "pure instrument"];

export function parseQueryHints(query: string): QueryHints {
  const text = query.normalize("NFC").toLowerCase().trim();
  const found = LANGUAGE_NAMES.find(
    ([code, ...names]) => writtenAsCode(text, code) || names.some((n) => mentions(text, n)),
  );
  return {
    language: found?.[0] ?? null,
    instrumental:
      INSTRUMENTAL_WORDS.some((words) => text.includes(words)) || text === "solo" || text.endsWith(" solo"),
  };
}

/** "it" and "hi" are English words too: a code counts only after "lang" or "language" and a colon or equals sign. */
function writtenAsCode(text: string, code: string): boolean {
  return new RegExp(`(?<!${LETTER})lang(?:uage)?\\s*[:=]\\s*${code}(?!${LETTER})`, "u").test(text);
}

/** Whole words, but anywhere in scripts that are written without spaces. */
function mentions(text: string, name: string): boolean {
  if (/^[\p{Script=Han}\p{Script=Hangul}]+$/u.test(name)) return text.includes(name);
  return new RegExp(`(?<!${LETTER})${name}(?!${LETTER})`, "u").test(text);
}
