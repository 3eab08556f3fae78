/** Arranges a piece: decides which part plays in which section, and writes the notes over the chords. */
import type { Genre, MetreStyle } from "../genres/genre.js";
import { createAccompanist } from "./accompaniment.js";
import { bassBar } from "./bass.js";
import { crashCymbal, type DrumPattern, drumBar, drumFill } from "./drums.js";
import { readGrid } from "./grid.js";
import type { ChordSpan } from "./harmony.js";
import type { Instrument } from "./instruments.js";
import { composeMotif, composeTheme, sectionMelody } from "./melody.js";
import { humanise, slowDown } from "./performance.js";
import {
  type Ending,
  type Note,
  type Part,
  type Role,
  roles,
  type Section,
  type SectionName,
} from "./piece.js";
import type { Random } from "./random.js";
import { nearestPitch } from "./theory.js";

/** Properties of a piece that the writers of all its parts need. */
export interface Score {
  genre: Genre;
  style: MetreStyle;
  sections: Section[];
  /** Chords of the piece in order, without gaps. The last one is the final chord. */
  spans: ChordSpan[];
  ending: Ending;
  barSteps: number;
  beatSteps: number;
  stepSeconds: number;
  bars: number;
  totalSteps: number;
}

const energies: Record<SectionName, number> = {
  Intro: 0.4,
  Verse: 0.65,
  Chorus: 1,
  Bridge: 0.55,
  Outro: 0.5,
};

/** Probability that a role plays in a section. Sections of a piece with the same name have the same roles. */
const attendance: Record<SectionName, Partial<Record<Role, number>>> = {
  Intro: { comp: 1, pad: 0.8, pulse: 0.8, drums: 0.5, bass: 0.5 },
  Verse: { comp: 1, bass: 1, drums: 1, lead: 0.9, pulse: 0.5, pad: 0.5 },
  Chorus: { comp: 1, bass: 1, drums: 1, lead: 1, pulse: 1, pad: 1 },
  Bridge: { comp: 1, bass: 0.8, drums: 0.6, lead: 0.7, pulse: 0.6, pad: 1 },
  Outro: { comp: 1, bass: 0.9, drums: 0.6, lead: 0.5, pulse: 0.5, pad: 0.8 },
};

export function writeParts(score: Score, parts: readonly Omit<Part, "notes">[], random: Random): Part[] {
  const attends = drawAttendance(score, random);
  const stops = drawStops(score, random);
  return parts.map(({ role, instrument }) => {
    const sections = score.sections.filter(({ name }) => attends(role, name));
    const written = swell(writers[role](score, sections, instrument, random), score);
    const played = stopped.has(role) ? stops.reduce(silenceWithin, written) : written;
    const notes = humanise(played, score.genre.feel, score.stepSeconds, random);
    return { role, instrument, notes: ended(notes, score) };
  });
}

/** The final chord is released this long before the end; what still sounds decays. */
const releaseSeconds = 0.6;

/** Ends the notes with the piece. */
function ended(notes: Note[], { ending, bars, barSteps, stepSeconds, totalSteps }: Score): Note[] {
  const timed = ending === "slow" ? slowDown(notes, (bars - 1) * barSteps, barSteps) : notes;
  const last = ending === "fade" ? totalSteps : totalSteps - releaseSeconds / stepSeconds;
  return timed
    .filter(({ start }) => start < last)
    .map((note) => ({ ...note, length: Math.min(note.length, last - note.start) }));
}

/** Relative increase in loudness from start to end of a bar before a chorus. */
const swellShare = 0.2;

/** Makes the bar before every chorus grow louder. */
function swell(notes: Note[], { sections, barSteps }: Score): Note[] {
  const choruses = sections.filter(({ name }) => name === "Chorus").map(({ firstBar }) => firstBar);
  return notes.map((note) => {
    const bar = Math.floor(note.start / barSteps);
    if (!choruses.includes(bar + 1)) return note;
    return { ...note, velocity: note.velocity * (1 + swellShare * (note.start / barSteps - bar)) };
  });
}

/** Share of pieces in which the accompaniment stops before choruses. */
const stopShare = 0.35;
/** Roles that stop before choruses. */
const stopped: ReadonlySet<Role> = new Set(["bass", "comp", "pulse", "pad"]);

/**
 * Chooses when the accompaniment stops: never, or for the second half of the bar before every chorus.
 */
function drawStops({ sections, barSteps }: Score, random: Random): { start: number; end: number }[] {
  const choruses = sections.filter(({ name, firstBar }) => name === "Chorus" && firstBar > 0);
  const hasStops = random.chance(stopShare);
  return choruses.flatMap(({ firstBar }) =>
    hasStops ? [{ start: (firstBar - 0.5) * barSteps, end: firstBar * barSteps }] : [],
  );
}

function silenceWithin(notes: Note[], { start, end }: { start: number; end: number }): Note[] {
  return notes
    .filter((note) => note.start < start || note.start >= end)
    .map((note) =>
      note.start < start ? { ...note, length: Math.min(note.length, start - note.start) } : note,
    );
}

function drawAttendance(score: Score, random: Random): (role: Role, name: SectionName) => boolean {
  const absent = new Set<string>();
  for (const [name, shares] of Object.entries(attendance)) {
    for (const role of roles) {
      if (!random.chance(shares[role] ?? 0)) absent.add(`${name} ${role}`);
    }
  }
  // If a piece has only one or two sections, all roles play in every section.
  return (role, name) => score.sections.length <= 2 || !absent.has(`${name} ${role}`);
}

type Writer = (score: Score, sections: Section[], instrument: Instrument, random: Random) => Note[];

const writers: Record<Role, Writer> = {
  drums: writeDrums,
  bass: writeBass,
  comp: gridWriter("comp", 60),
  pulse: gridWriter("pulse", 67),
  pad: writePad,
  lead: writeLead,
};

function writeDrums(score: Score, sections: Section[], _: Instrument, random: Random): Note[] {
  const { style, genre, barSteps, beatSteps } = score;
  const patterns = { light: twoOf(style.light, random), full: twoOf(style.full, random) };
  const crashesOn = new Set(["Chorus", "Bridge"]);
  const notes: Note[] = [];
  for (const section of sections) {
    const energy = energies[section.name];
    const [usual, turn] = energy > 0.9 ? patterns.full : patterns.light;
    for (const bar of barsOf(section)) {
      const start = bar * barSteps;
      const end = start + barSteps;
      const isLast = bar === section.firstBar + section.bars - 1;
      // A fill leads into the next section. Sometimes a shorter fill closes a phrase of four bars.
      const lengths = isLast && section.bars > 1 ? [beatSteps, 2 * beatSteps] : [0, beatSteps / 2, beatSteps];
      const fillSteps = isTurn(bar, section) ? random.pick(lengths) : 0;
      const pattern = isTurn(bar, section) ? turn : usual;
      notes.push(...drumBar(pattern, start, energy).filter((note) => note.start < end - fillSteps));
      notes.push(...drumFill(genre.fill, end, fillSteps, random));
    }
    if (crashesOn.has(section.name)) notes.push(crashCymbal(section.firstBar * barSteps));
  }
  const finalStep = score.bars * barSteps;
  return [...notes, ...drumBar([["kick", "X"]], finalStep, 1), crashCymbal(finalStep)];
}

/** Chooses two patterns at random: one for most bars, one for the last bar of a phrase. */
function twoOf(patterns: readonly DrumPattern[], random: Random): [DrumPattern, DrumPattern] {
  const [usual, turn] = random.shuffled(patterns);
  if (usual === undefined) throw new RangeError("a style with drums needs a pattern");
  return [usual, turn ?? usual];
}

/** Whether a bar is the last one of a four-bar phrase or of a section. */
function isTurn(bar: number, { firstBar, bars }: Section): boolean {
  const place = bar - firstBar;
  return place % 4 === 3 || (place === bars - 1 && bars > 1);
}

function writeBass(score: Score, sections: Section[], instrument: Instrument, random: Random): Note[] {
  const { style, barSteps, bars, totalSteps } = score;
  const [usual, lively] = sparserFirst(style.bass, random);
  const notes = sections.flatMap((section) =>
    barsOf(section).flatMap((bar) => {
      const energy = energies[section.name];
      const grid = energy > 0.9 || isTurn(bar, section) ? lively : usual;
      return bassBar(grid, bar * barSteps, spanAt(score), instrument, energy);
    }),
  );
  const final = bassBar("R", bars * barSteps, spanAt(score), instrument, 0.8);
  return [...notes, ...lasting(final, totalSteps)];
}

function gridWriter(role: "comp" | "pulse", centre: number): Writer {
  return (score, sections, instrument, random) => {
    const [usual, lively] = sparserFirst(score.style[role], random);
    const player = createAccompanist(within(centre, instrument), instrument);
    const notes = sections.flatMap((section) =>
      barsOf(section).flatMap((bar) => {
        const isContrast = section.name === "Chorus" || section.name === "Bridge";
        const grid = isContrast !== isTurn(bar, section) ? lively : usual;
        return player.bar(grid, bar * score.barSteps, spanAt(score), energies[section.name]);
      }),
    );
    const final = player.bar("x", score.bars * score.barSteps, spanAt(score), 0.6);
    return [...notes, ...lasting(final, score.totalSteps)];
  };
}

/** Chooses two grids at random. The first has fewer notes and is for verses, the second is for choruses. */
function sparserFirst(grids: readonly string[], random: Random): [string, string] {
  const [one = "", other = one] = random.shuffled(grids);
  return readGrid(one).length <= readGrid(other).length ? [one, other] : [other, one];
}

function writePad(score: Score, sections: Section[], instrument: Instrument): Note[] {
  const player = createAccompanist(within(64, instrument), instrument);
  const final = score.spans.slice(-1);
  return [
    ...sections.flatMap((section) =>
      player.pad(spansWithin(score, section), 62 + 14 * energies[section.name]),
    ),
    ...player.pad(final, 60),
  ];
}

function writeLead(score: Score, sections: Section[], instrument: Instrument, random: Random): Note[] {
  const { barSteps, beatSteps } = score;
  const { melody } = score.genre;
  const motif = (share: number) =>
    composeMotif({ ...melody, density: share * melody.density }, barSteps, beatSteps, random);
  const [verse, chorus, other] = [motif(0.85), motif(1.15), motif(1)];
  const themes = {
    verse: composeTheme(verse, other, random),
    chorus: composeTheme(chorus, other, random),
    bridge: composeTheme(other, verse, random),
  };
  const centre = within(70, instrument, 6);
  const frame = { barSteps, beatSteps, range: instrument, spanAt: spanAt(score) };
  const notes = sections.flatMap((section) => {
    const isChorus = section.name === "Chorus";
    const theme = isChorus ? themes.chorus : section.name === "Bridge" ? themes.bridge : themes.verse;
    const lift = isChorus ? 4 : 0;
    return sectionMelody(theme, section, { ...frame, centre: centre + lift }, energies[section.name]);
  });
  const last = notes.at(-1);
  if (last === undefined) return [];
  const { start, chord } = score.spans.at(-1) as ChordSpan;
  const pitch = nearestPitch(last.pitch, [chord.root], instrument.lowest, instrument.highest);
  return [...notes, ...lasting([{ ...last, start, pitch, velocity: 74 }], score.totalSteps)];
}

/** Lets notes ring until the piece ends. */
function lasting(notes: Note[], totalSteps: number): Note[] {
  return notes.map((note) => ({ ...note, length: Math.max(1, totalSteps - note.start) }));
}

function barsOf({ firstBar, bars }: Section): number[] {
  return Array.from({ length: bars }, (_, bar) => firstBar + bar);
}

function spansWithin(score: Score, { firstBar, bars }: Section): ChordSpan[] {
  const start = firstBar * score.barSteps;
  const end = (firstBar + bars) * score.barSteps;
  return score.spans.filter((span) => span.start >= start && span.start < end);
}

/** Finds the chord that sounds at a step. After the last bar it is the final chord. */
function spanAt({ spans }: Score): (step: number) => ChordSpan {
  return (step) => (spans.find(({ end }) => step < end) ?? spans.at(-1)) as ChordSpan;
}

/** Moves a pitch so that it is at least `margin` semitones from both ends of the instrument's range. */
function within(centre: number, { lowest, highest }: Instrument, margin = 8): number {
  return Math.max(lowest + margin, Math.min(highest - margin, centre));
}
