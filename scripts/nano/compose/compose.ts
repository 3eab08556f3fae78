/** Composes a piece from a seed: genre, key, metre, tempo, length, form, harmony, parts. */
import type { Genre, MetreStyle } from "../genres/genre.js";
import { genres } from "../genres/index.js";
import { type Score, writeParts } from "./arrange.js";
import { type ChordSpan, chordSpansOf } from "./harmony.js";
import { type InstrumentName, instruments } from "./instruments.js";
import { slowShare } from "./performance.js";
import {
  type Ending,
  type Key,
  type Mode,
  metres,
  type Part,
  type Piece,
  type Role,
  roles,
  type Section,
  type SectionName,
} from "./piece.js";
import { Random } from "./random.js";
import { chordOf, keyOf } from "./theory.js";

/** Share of pieces whose last bar is a cadence, of those that end on a chord. The others keep their progression. */
const cadenceShare = 0.7;
const cadences: Record<Mode, readonly string[]> = { major: ["V", "V", "IV"], minor: ["V", "V", "bVII"] };

/**
 * Composes the piece of a seed. Consecutive seeds cycle through all genres.
 * @param wantedSeconds length of the piece; by default the seed determines it
 */
export function compose(seed: number, wantedSeconds?: number): Piece {
  const random = new Random(seed);
  const genre = genres[seed % genres.length] as Genre;
  const style = random.weighted(genre.styles);
  const bpm = random.integer(...style.bpm);
  const mode: Mode = random.chance(genre.minorShare) ? "minor" : "major";
  const key = keyOf(random.integer(0, 11), mode, random.chance(0.2));
  const drawnSeconds = random.integer(10, 60);
  const durationSeconds = wantedSeconds ?? drawnSeconds;

  const { barSteps, beatSteps } = metres[style.metre];
  const stepSeconds = 60 / bpm / beatSteps;
  const { ending } = random.weighted(genre.endings);
  const bars = barsWithin(durationSeconds, barSteps * stepSeconds, ending);
  const sections = sectionsOf(bars, random);
  const hasCadence = random.chance(cadenceShare) && ending !== "fade";
  const chords = harmonise(genre, key, sections, barSteps, random);
  const spans = hasCadence ? endOnCadence(chords, key, barSteps, random) : chords;
  const totalSteps = durationSeconds / stepSeconds;
  const start = bars * barSteps;
  const end = Math.max(totalSteps, start + barSteps);
  spans.push({ chord: chordOf(mode === "major" ? "I" : "i", key), start, end });

  const score: Score = {
    ...{ genre, style, sections, spans, ending },
    ...{ barSteps, beatSteps, stepSeconds, bars, totalSteps },
  };
  const parts = writeParts(score, scoring(genre, style, random), random);
  const { name, sideDecibels } = genre;
  const form = { sections, ending, bars, durationSeconds };
  return { seed, genre: name, sideDecibels, bpm, metre: style.metre, key, ...form, parts };
}

/** Minimum time for the last chord to ring and decay. */
const minTailSeconds = 2.5;

function barsWithin(durationSeconds: number, barSeconds: number, ending: Ending): number {
  if (ending === "fade") return Math.ceil(durationSeconds / barSeconds);
  const slowed = ending === "slow" ? slowShare * barSeconds : 0;
  return Math.max(1, Math.floor((durationSeconds - minTailSeconds - slowed) / barSeconds));
}

/** Possible sequences of sections, by the number of sections. */
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
function sectionsOf(bars: number, random: Random): Section[] {
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

/**
 * Sections with the same name share their chords. An intro has the chords of the verse, an outro those of the
 * verse or the chorus.
 */
function harmonise(
  genre: Genre,
  key: Key,
  sections: Section[],
  barSteps: number,
  random: Random,
): ChordSpan[] {
  const chordsOf = (part: "verse" | "chorus" | "bridge"): string =>
    random.pick(genre.progressions[`${key.mode} ${part}`]);
  const [verse, chorus, bridge] = [chordsOf("verse"), chordsOf("chorus"), chordsOf("bridge")];
  const outro = random.chance(0.5) ? verse : chorus;
  const chords = { Intro: verse, Verse: verse, Chorus: chorus, Bridge: bridge, Outro: outro };
  return sections.flatMap((section) => chordSpansOf(chords[section.name], key, section, barSteps));
}

/** Replaces the chords of the last bar by one chord that leads to the final tonic chord. */
function endOnCadence(spans: ChordSpan[], key: Key, barSteps: number, random: Random): ChordSpan[] {
  const end = spans.at(-1)?.end ?? barSteps;
  const numeral = random.pick(cadences[key.mode]);
  return [
    ...spans.filter(({ start }) => start < end - barSteps),
    { chord: chordOf(numeral, key), start: end - barSteps, end },
  ];
}

/**
 * Chooses the roles that play and their instruments at random. No two roles get the same instrument.
 */
function scoring({ band }: Genre, style: MetreStyle, random: Random): Omit<Part, "notes">[] {
  const taken = new Set<InstrumentName>();
  const without = { drums: style.full.length === 0, pulse: style.pulse.length === 0 } as Record<
    Role,
    boolean
  >;
  return roles.flatMap((role) => {
    const [share = 0, ...candidates] = band[role] ?? [];
    const free = without[role] ? [] : candidates.filter((name) => !taken.has(name));
    const plays = random.chance(share);
    const name = random.pick(free.length > 0 ? free : (["piano"] as const));
    if (!plays || free.length === 0) return [];
    taken.add(name);
    return { role, instrument: instruments[name] };
  });
}
