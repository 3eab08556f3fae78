/** The language of words, told in a thread of its own: the detector's tables take a second of a processor to load. */
import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { LANGUAGES } from "./metadata.js";

/** Section tags say nothing of the language that is sung. */
const TAGS = /\[[^[\]\n]*\]/g;

let thread: Worker | null = null;
let last: Promise<unknown> = Promise.resolve();

/** A code of `languages`, or null where the text is too short or too mixed to tell. */
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
