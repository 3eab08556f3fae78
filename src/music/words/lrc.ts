/** Takes the times off lyrics that were pasted from a timed lyrics file (LRC) or from subtitles. */

const TIME = String.raw`(?:\d{1,2}:)?\d{1,3}:\d{2}(?:[.,:]\d{1,3})?`;
/** A time of a line, `[00:12.34]`, or of a word, `<00:12.34>`. */
const TIMES = new RegExp(String.raw`\[\s?${TIME}(?:\s?-->?\s?${TIME})?\s?\]|<\s?${TIME}\s?>`, "g");
/** A header such as `[ar:Name]` or `[offset:+500]`. */
const HEADER = /^\s*\[(?:al|ar|au|by|id|kana|la|length|lr|offset|re|ti|tool|ve|#)\s?:[^\]]*\]\s*$/i;
/** Times of a subtitle. Its number is in the line above. */
const CUE = new RegExp(String.raw`^\s?${TIME}\s?-->\s?${TIME}`);
const CUE_NUMBER = /^\s?\d{1,5}\s?$/;

/** Lyrics without times and headers of LRC files. Section tags such as [Verse 1] stay. */
export function withoutTimes(lyrics: string): string {
  const lines = lyrics.split(/\r?\n/);
  const isUntimed = (line: string) => line.search(TIMES) < 0 && !HEADER.test(line) && !CUE.test(line);
  if (lines.every(isUntimed)) return lyrics;
  const kept = lines.filter(
    (line, index) =>
      !HEADER.test(line) && !CUE.test(line) && !(CUE_NUMBER.test(line) && CUE.test(lines[index + 1] ?? "")),
  );
  return kept
    .map((line) => (line.search(TIMES) < 0 ? line : line.replaceAll(TIMES, "").replace(/ {2,}/g, " ").trim()))
    .join("\n")
    .replace(/\n{3,}/g, "\n\n")
    .trim();
}
