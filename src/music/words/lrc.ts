/** Takes the times off lyrics that were pasted from a timed lyrics file (LRC) or from subtitles. */

const TIME = String.raw`(?:\d{1,2}:)?\d{1,3}:\d{2}(?:[.,:;]\d{1,6})?`;
const SPAN = String.raw`${TIME}(?:\s?(?:-->?|[-–—→~])\s?${TIME})?`;
/**
 * A time of a line, `[00:12.34]`, or of a word, `<00:12.34>`. Some players write a start and a length in milliseconds:
 * `[12340,900]`, `<0,250,0>`.
 */
const TIMES = new RegExp(
  String.raw`[[［【]\s{0,3}${SPAN}\s{0,3}[\]］】]|<\s?${TIME}\s?>|^\s?\[\d{1,7},\d{1,7}\]|<\d{1,7},\d{1,7}(?:,\d)?>`,
  "g",
);
/** A header such as `[ar:Name]`, `[title:Name]` or `[offset:+500]`. */
const HEADER =
  /^\s*\[(?:al|album|ar|artist|au|author|by|encoding|id|kana|la|lang|language|length|lr|offset|re|ti|title|tool|total|ve|#)\s?:[^\]]*\]\s*$/i;
/** Times of a subtitle. Its number is in the line above. */
const CUE = new RegExp(String.raw`^\s?${TIME}\s?-->\s?${TIME}`);
const CUE_NUMBER = /^\s?\d{1,5}\s?$/;
const SUBTITLE_HEADER = /^\s?WEBVTT\b/;
const SUBTITLE_STYLE = /<\/?(?:[bciuv]|font|lang)(?:[ .][^<>]*)?>/gi;

/** Lyrics without times and headers of LRC files, and without numbers and styles of subtitles. Section tags stay. */
export function withoutTimes(lyrics: string): string {
  const lines = lyrics.split(/\r?\n/);
  const isSubtitled = lines.some((line) => CUE.test(line));
  const isUntimed = (line: string) => line.search(TIMES) < 0 && !HEADER.test(line);
  if (!isSubtitled && lines.every(isUntimed)) return lyrics;
  return lines
    .filter((line, i) => !HEADER.test(line) && !(isSubtitled && isOfSubtitle(line, lines[i + 1])))
    .map((line) => (isSubtitled ? line.replaceAll(SUBTITLE_STYLE, "") : line))
    .map((line) => (line.search(TIMES) < 0 ? line : line.replaceAll(TIMES, "").replace(/ {2,}/g, " ").trim()))
    .join("\n")
    .replace(/\n{3,}/g, "\n\n")
    .trim();
}

/** Whether the line is not of the words of a subtitle. */
function isOfSubtitle(line: string, next = ""): boolean {
  return CUE.test(line) || SUBTITLE_HEADER.test(line) || (CUE_NUMBER.test(line) && CUE.test(next));
}
