/** A piece from a seed: genre, key, metre, tempo, length, form, harmony, then what each part plays. */
import type { Genre, MetreStyle } from "../genres/genre.js";
import { genres } from "../genres/index.js";
import { playParts, type Score } from "./arrange.js";
import { barsWithin, sectionsOf } from "./form.js";
import { type ChordSpan, spansOf } from "./harmony.js";
import { type InstrumentName, instruments } from "./instruments.js";
import { type Key, type Mode, metres, type Part, type Piece, type Role, type Section } from "./piece.js";
import { Random } from "./random.js";
import { chordOf, keyOf } from "./theory.js";

/** What the caller fixes; the seed decides the rest. */
export interface Wishes {
  durationSeconds?: number;
}

/** Consecutive seeds go round all genres. */
export function compose(seed: number, wishes: Wishes = {}): Piece {
  const random = new Random(seed);
  const genre = genres[seed % genres.length] as Genre;
  const style = random.weighted(genre.styles);
  const bpm = random.integer(...style.bpm);
  const mode: Mode = random.chance(genre.minorShare) ? "minor" : "major";
  const key = keyOf(random.integer(0, 11), mode, random.chance(0.2));
  const drawnDuration = drawDurationSeconds(random);
  const durationSeconds = wishes.durationSeconds ?? drawnDuration;

  const { barSteps, beatSteps } = metres[style.metre];
  const stepSeconds = 60 / bpm / beatSteps;
  const bars = barsWithin(durationSeconds, barSteps * stepSeconds);
  const sections = sectionsOf(bars, (choices) => random.pick(choices));
  const spans = harmonise(genre, key, sections, barSteps, random);
  const totalSteps = durationSeconds / stepSeconds;
  spans.push({ chord: tonicChord(key), start: bars * barSteps, end: totalSteps });

  const score: Score = { genre, style, sections, spans, barSteps, beatSteps, stepSeconds, bars, totalSteps };
  const parts = playParts(score, scoring(genre, style, random), random);
  return { seed, genre: genre.name, bpm, metre: style.metre, key, sections, bars, durationSeconds, parts };
}

/** Three in four last 20 to 40 seconds. */
function drawDurationSeconds(random: Random): number {
  const place = random.unit();
  if (place < 0.1) return random.integer(10, 19);
  return place < 0.85 ? random.integer(20, 40) : random.integer(41, 60);
}

/** Sections of one name share their harmony; an intro takes the verse's, an outro the chorus's. */
function harmonise(
  genre: Genre,
  key: Key,
  sections: Section[],
  barSteps: number,
  random: Random,
): ChordSpan[] {
  const { verse, chorus, bridge } = genre.progressions[key.mode];
  const verseChords = random.pick(verse);
  const chorusChords = random.pick(chorus);
  const chords = {
    Intro: verseChords,
    Verse: verseChords,
    Chorus: chorusChords,
    Bridge: random.pick(bridge),
    Outro: random.chance(0.5) ? verseChords : chorusChords,
  };
  return sections.flatMap((section) => spansOf(chords[section.name], key, section, barSteps));
}

function tonicChord(key: Key): ChordSpan["chord"] {
  return chordOf(key.mode === "major" ? "I" : "i", key);
}

/** Who plays: comping and bass always, the others as often as the genre has them. */
function scoring(genre: Genre, style: MetreStyle, random: Random): Omit<Part, "notes">[] {
  const { band, presence } = genre;
  const taken = new Set<InstrumentName>();
  const chosen: Omit<Part, "notes">[] = [];
  const add = (role: Role, candidates: readonly InstrumentName[] = [], probability: number): void => {
    const free = candidates.filter((name) => !taken.has(name));
    const plays = random.chance(probability);
    const name = random.pick(free.length > 0 ? free : (["piano"] as const));
    if (!plays || free.length === 0) return;
    taken.add(name);
    chosen.push({ role, instrument: instruments[name] });
  };
  add("drums", style.drums === undefined ? [] : band.drums, presence.drums);
  add("bass", band.bass, 1);
  add("comp", band.comp, 1);
  add("pulse", style.pulse === undefined ? [] : band.pulse, presence.pulse);
  add("pad", band.pad, presence.pad);
  add("lead", band.lead, presence.lead);
  return chosen;
}
