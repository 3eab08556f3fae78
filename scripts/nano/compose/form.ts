/** Number of bars and sections of a piece. */
import type { Section, SectionName } from "./piece.js";
import type { Random } from "./random.js";

/** Seconds of decay after the last bar: at least this, at most a bar more. */
const minTailSeconds = 0.8;

export function barsWithin(durationSeconds: number, barSeconds: number): number {
  return Math.max(1, Math.floor((durationSeconds - minTailSeconds) / barSeconds));
}

/** Sections of equal length, by their number. */
const forms: Record<number, readonly string[]> = {
  1: ["Verse", "Chorus"],
  2: ["Verse Chorus", "Intro Verse"],
  3: ["Chorus Verse Chorus", "Intro Verse Chorus", "Verse Chorus Outro"],
  4: ["Verse Chorus Verse Chorus", "Chorus Verse Chorus Outro", "Verse Chorus Bridge Chorus"],
  5: ["Intro Verse Chorus Verse Chorus", "Intro Verse Chorus Bridge Chorus"],
  6: ["Intro Verse Chorus Verse Chorus Outro", "Intro Verse Chorus Bridge Chorus Outro"],
  7: ["Intro Verse Chorus Verse Chorus Bridge Chorus"],
  8: ["Intro Verse Chorus Verse Chorus Bridge Chorus Outro"],
};
const mostSections = 8;

/** Cuts `bars` into sections of 1, 2, 4, 8 or 16 bars; the last one takes the rest. */
export function sectionsOf(bars: number, random: Random): Section[] {
  let sectionBars = bars >= 12 ? 4 : bars >= 6 ? 2 : 1;
  while (Math.floor(bars / sectionBars) > mostSections) sectionBars *= 2;
  const count = Math.floor(bars / sectionBars);
  const names = random.pick(forms[count] ?? []).split(" ") as SectionName[];
  return names.map((name, index) => ({
    name,
    firstBar: index * sectionBars,
    bars: index === count - 1 ? bars - index * sectionBars : sectionBars,
  }));
}
