/** Who plays in which section, and what: the parts of a piece from its harmony. */
import type { Genre, MetreStyle } from "../genres/genre.js";
import { Accompanist } from "./accompaniment.js";
import { bassBar } from "./bass.js";
import { crash, type DrumPattern, drumBar, drumFill } from "./drums.js";
import type { ChordSpan } from "./harmony.js";
import type { Instrument } from "./instruments.js";
import { composeMotif, sectionMelody } from "./melody.js";
import { perform } from "./performance.js";
import type { Note, Part, Role, Section, SectionName } from "./piece.js";
import type { Random } from "./random.js";

/** All that the players read. */
export interface Score {
  genre: Genre;
  style: MetreStyle;
  sections: Section[];
  /** Without gaps to the end of the piece; the last is the final chord. */
  spans: ChordSpan[];
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

/** How often a role plays in a section; drawn once a piece and section name. */
const attendance: Record<SectionName, Partial<Record<Role, number>>> = {
  Intro: { comp: 1, pad: 0.8, pulse: 0.8, drums: 0.5, bass: 0.5 },
  Verse: { comp: 1, bass: 1, drums: 1, lead: 0.9, pulse: 0.5, pad: 0.5 },
  Chorus: { comp: 1, bass: 1, drums: 1, lead: 1, pulse: 1, pad: 1 },
  Bridge: { comp: 1, bass: 0.8, drums: 0.6, lead: 0.7, pulse: 0.6, pad: 1 },
  Outro: { comp: 1, bass: 0.9, drums: 0.6, lead: 0.5, pulse: 0.5, pad: 0.8 },
};

export function playParts(score: Score, parts: readonly Omit<Part, "notes">[], random: Random): Part[] {
  const attends = drawAttendance(score, random);
  return parts.map(({ role, instrument }) => {
    const sections = score.sections.filter(({ name }) => attends(role, name));
    const written = writers[role](score, sections, instrument, random);
    return { role, instrument, notes: perform(written, score.genre.feel, score.stepSeconds, random) };
  });
}

function drawAttendance(score: Score, random: Random): (role: Role, name: SectionName) => boolean {
  const absent = new Set<string>();
  for (const [name, shares] of Object.entries(attendance)) {
    for (const role of ["drums", "bass", "comp", "pulse", "pad", "lead"] as const) {
      if (!random.chance(shares[role] ?? 0)) absent.add(`${name} ${role}`);
    }
  }
  // With two sections or fewer there is no time to build up: all play.
  return (role, name) => score.sections.length <= 2 || !absent.has(`${name} ${role}`);
}

type Writer = (score: Score, sections: Section[], instrument: Instrument, random: Random) => Note[];

const writers: Record<Role, Writer> = {
  drums: writeDrums,
  bass: writeBass,
  comp: (score, sections, instrument, random) =>
    writeGrids(score, sections, instrument, random, score.style.comp, 60),
  pulse: (score, sections, instrument, random) =>
    writeGrids(score, sections, instrument, random, score.style.pulse ?? [], 67),
  pad: writePad,
  lead: writeLead,
};

function writeDrums(score: Score, sections: Section[], _: Instrument, random: Random): Note[] {
  const { style, genre, barSteps, beatSteps } = score;
  if (style.drums === undefined) return [];
  const light = random.pick(style.drums.light);
  const full = random.pick(style.drums.full);
  const notes: Note[] = [];
  for (const section of sections) {
    const energy = energies[section.name];
    const pattern: DrumPattern = energy > 0.9 ? full : light;
    const end = (section.firstBar + section.bars) * barSteps;
    const fillSteps = section.bars > 1 ? random.pick([0, beatSteps, 2 * beatSteps]) : 0;
    for (let bar = 0; bar < section.bars; bar++) {
      const firstStep = (section.firstBar + bar) * barSteps;
      notes.push(...drumBar(pattern, firstStep, energy).filter(({ start }) => start < end - fillSteps));
    }
    notes.push(...drumFill(genre.fill, end, fillSteps, random));
    if (section.name === "Chorus") notes.push(crash(section.firstBar * barSteps));
  }
  const finalStep = score.bars * barSteps;
  return [...notes, ...drumBar({ kick: "X" }, finalStep, 1), crash(finalStep)];
}

function writeBass(score: Score, sections: Section[], instrument: Instrument, random: Random): Note[] {
  const { style, barSteps, bars, totalSteps } = score;
  const usual = random.pick(style.bass);
  const lively = random.pick(style.bass);
  const notes = sections.flatMap((section) =>
    barsOf(section).flatMap((bar) => {
      const energy = energies[section.name];
      const grid = energy > 0.9 ? lively : usual;
      return bassBar(grid, bar * barSteps, spanAt(score), instrument, energy);
    }),
  );
  const final = bassBar("R", bars * barSteps, spanAt(score), instrument, 0.8);
  return [...notes, ...lasting(final, totalSteps)];
}

function writeGrids(
  score: Score,
  sections: Section[],
  instrument: Instrument,
  random: Random,
  grids: readonly string[],
  centre: number,
): Note[] {
  const usual = random.pick(grids);
  const other = random.pick(grids);
  const player = new Accompanist(within(centre, instrument), instrument);
  const notes = sections.flatMap((section) =>
    barsOf(section).flatMap((bar) => {
      const grid = section.name === "Chorus" || section.name === "Bridge" ? other : usual;
      return player.bar(grid, bar * score.barSteps, spanAt(score), energies[section.name]);
    }),
  );
  const final = player.bar("x", score.bars * score.barSteps, spanAt(score), 0.6);
  return [...notes, ...lasting(final, score.totalSteps)];
}

function writePad(score: Score, sections: Section[], instrument: Instrument): Note[] {
  const player = new Accompanist(within(64, instrument), instrument);
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
  const motif = () => composeMotif(score.genre.melody, barSteps, beatSteps, random);
  const [verse, chorus, other] = [motif(), motif(), motif()];
  const centre = within(70, instrument, 6);
  const frame = { barSteps, beatSteps, range: instrument, spanAt: spanAt(score) };
  const notes = sections.flatMap((section) => {
    const isChorus = section.name === "Chorus";
    const main = isChorus ? chorus : section.name === "Bridge" ? other : verse;
    const lift = isChorus ? 3 : 0;
    return sectionMelody(
      { main, other },
      section,
      { ...frame, centre: centre + lift },
      energies[section.name],
      random,
    );
  });
  const last = notes.at(-1);
  if (last === undefined) return [];
  const finalChord = score.spans.at(-1) as ChordSpan;
  const final = {
    ...last,
    start: finalChord.start,
    pitch: nearestTonic(last.pitch, finalChord, instrument),
    velocity: 74,
  };
  return [...notes, ...lasting([final], score.totalSteps)];
}

function nearestTonic(pitch: number, { chord }: ChordSpan, { lowest, highest }: Instrument): number {
  const candidates = Array.from({ length: highest - lowest + 1 }, (_, index) => lowest + index);
  const tonics = candidates.filter((candidate) => candidate % 12 === chord.root);
  return tonics.reduce((best, next) => (Math.abs(next - pitch) < Math.abs(best - pitch) ? next : best));
}

/** Notes that ring until just before the piece ends. */
function lasting(notes: Note[], totalSteps: number): Note[] {
  return notes.map((note) => ({ ...note, length: totalSteps - note.start - 0.5 }));
}

function barsOf({ firstBar, bars }: Section): number[] {
  return Array.from({ length: bars }, (_, bar) => firstBar + bar);
}

function spansWithin(score: Score, { firstBar, bars }: Section): ChordSpan[] {
  const start = firstBar * score.barSteps;
  const end = (firstBar + bars) * score.barSteps;
  return score.spans.filter((span) => span.start >= start && span.start < end);
}

/** The chord that sounds at a step; the final one from the last bar's end on. */
function spanAt({ spans }: Score): (step: number) => ChordSpan {
  return (step) => (spans.find(({ end }) => step < end) ?? spans.at(-1)) as ChordSpan;
}

/** A centre that leaves some semitones of the instrument's range on both sides. */
function within(centre: number, { lowest, highest }: Instrument, margin = 8): number {
  return Math.max(lowest + margin, Math.min(highest - margin, centre));
}
