/** Detects the language of a text. Finds hints in a free-text query: the name of a language, or "instrumental". */
import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { LANGUAGES } from "./metadata.js";

/** Section tags do not count for the language of the lyrics. */
const TAGS = /\[[^[\]\n]*\]/g;

let thread: Worker | null = null;
let last: Promise<unknown> = Promise.resolve();

/** Language of a text (see `LANGUAGES`), or null. Runs in a thread: loading the tables takes a second of CPU. */
export function detectLanguage(text: string): Promise<string | null> {
  const sung = text.replace(TAGS, " ").trim();
  if (sung === "") return Promise.resolve(null);
  // Calls run one at a time, because answers carry no id.
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
    // An idle thread must not keep the process alive.
    thread.unref();
    return language !== null && LANGUAGES.includes(language) ? language : null;
  } catch (error) {
    thread = null;
    throw error;
  }
}

/** Names of each language. If a query names several languages, the first of this list counts. */
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

/** Code of the language that a query names, or null, and whether it asks for a song without vocals. */
export function parseQueryHints(query: string): { language: string | null; instrumental: boolean } {
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

/**
 * Whether the text has the code after "lang:" or "language=". The codes "it" and "hi" are also English words.
 */
function writtenAsCode(text: string, code: string): boolean {
  return new RegExp(`(?<!${LETTER})lang(?:uage)?\\s*[:=]\\s*${code}(?!${LETTER})`, "u").test(text);
}

/** Whether the text contains the name. Han and Hangul names match anywhere, other names only as whole words. */
function mentions(text: string, name: string): boolean {
  if (/^[\p{Script=Han}\p{Script=Hangul}]+$/u.test(name)) return text.includes(name);
  return new RegExp(`(?<!${LETTER})${name}(?!${LETTER})`, "u").test(text);
}
