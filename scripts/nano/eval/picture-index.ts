/** The page that shows the pictures, with the prompts they are of. */
import type { PieceRecord } from "../dataset/record.js";

export function indexOf(
  records: readonly PieceRecord[],
  pictureOf: (record: PieceRecord) => string,
  areSongs: boolean,
): string {
  const intro = areSongs
    ? "What carillon-nano makes of ten held-out prompts."
    : "Ten held-out pieces of the generator that carillon-nano learns from.";
  const entries = records.map((record) => entryOf(record, pictureOf(record)));
  return [
    "# Pictures of songs",
    `${intro} Above, the waveform; below, a spectrogram with its pitches an octave a step: a held note is a line
with its partials above it, a drum an upright stroke. Made by \`scripts/nano/draw.ts\`.`,
    ...entries,
  ]
    .join("\n\n")
    .concat("\n");
}

function entryOf(record: PieceRecord, picture: string): string {
  const { genre, caption, lyrics, bpm, keyScale, timeSignature, durationSeconds, seed } = record;
  const facts = `${bpm} bpm, ${keyScale}, ${timeSignature}${timeSignature === "6" ? "/8" : "/4"}, ${durationSeconds} s`;
  const sections = lyrics.match(/\[[^\]]+\]/g)?.join(" ") ?? "";
  return [
    `## ${genre}`,
    `> ${caption}`,
    `${facts}, seed ${seed}${sections === "" ? "" : `; lyrics: ${sections}`}`,
    `![${genre}](${picture})`,
  ].join("\n\n");
}
