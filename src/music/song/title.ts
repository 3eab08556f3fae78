/** Titles of songs, and the names of their files. */
import type { GenerationRequest } from "../request/generation-request.js";

/**
 * Maximum length of a title in characters. A file name with version and extension then fits into 255 bytes in any
 * script.
 */
const MAX_TITLE = 56;
/** Characters that at least one operating system does not allow in file names. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are not allowed either
const UNSAFE = /[\u0000-\u001f\u007f<>:"/\\|?*\u200e\u200f\u202a-\u202e\u2066-\u2069]+/g;

interface Titled {
  title?: string | undefined;
  request: Pick<GenerationRequest, "taskType"> & {
    words: Pick<GenerationRequest["words"], "prompt" | "lyrics">;
  };
  /**
   * Result of the task. `prompt` is the caption of the first song, which is used if the request has no
   * prompt.
   */
  result?: { prompt: string } | null;
}

/** Returns the title set by the user, or a title made from the prompt or the lyrics. */
export function titleOf({ title, request, result }: Titled): string {
  const { prompt, lyrics } = request.words;
  const words =
    prompt.trim() ||
    result?.prompt.trim() ||
    (lyrics.split("\n").find((line) => /^\s*[^\s[]/.test(line)) ?? "");
  return title?.trim() || shortened(words) || request.taskType;
}

/** Cuts the text at a word boundary. */
function shortened(text: string): string {
  const characters = [...text.replace(/\s+/g, " ").trim()];
  if (characters.length <= MAX_TITLE) return characters.join("");
  const cut = characters.slice(0, MAX_TITLE).join("");
  return cut.replace(/\s\S*$/, "").replace(/[,;.]$/, "");
}

/** Returns the file name of a song: `Title - A.mp3`, or `Title - drums.mp3` for a stem. */
export function songFileName(title: string, version: string | null, extension: string): string {
  const safe = [...title.replace(UNSAFE, " ").replace(/\s+/g, " ").trim()].slice(0, MAX_TITLE).join("");
  // Windows drops dots at the end of a file name. A dot at the start hides the file on Linux and macOS.
  const name = safe.replace(/^[. ]+|[. ]+$/g, "") || "song";
  return `${name}${version === null ? "" : ` - ${version}`}.${extension}`;
}

export function versionLetter(index: number): string {
  return String.fromCharCode(65 + index);
}
