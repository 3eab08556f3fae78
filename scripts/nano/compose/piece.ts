/** A composed piece as notes. Time is in steps of a sixteenth note. */
import type { Instrument } from "./instruments.js";

export type Metre = "2/4" | "3/4" | "4/4" | "6/8";

/** Steps per bar, and steps per beat of the tempo. A bar of 6/8 has two dotted beats. */
export const metres: Record<Metre, { barSteps: number; beatSteps: number }> = {
  "2/4": { barSteps: 8, beatSteps: 4 },
  "3/4": { barSteps: 12, beatSteps: 4 },
  "4/4": { barSteps: 16, beatSteps: 4 },
  "6/8": { barSteps: 12, beatSteps: 6 },
};

export interface Note {
  /** Steps from the beginning of the piece. Swing and humanised timing make it a fraction. */
  start: number;
  /** In steps. */
  length: number;
  /** MIDI note number; for a drum kit, the number of the General MIDI drum. */
  pitch: number;
  /** 1 .. 127 */
  velocity: number;
}

export const roles = ["drums", "bass", "comp", "pulse", "pad", "lead"] as const;
export type Role = (typeof roles)[number];

/** Notes of one instrument. */
export interface Part {
  role: Role;
  instrument: Instrument;
  notes: Note[];
}

export type SectionName = "Intro" | "Verse" | "Chorus" | "Bridge" | "Outro";

export interface Section {
  name: SectionName;
  firstBar: number;
  bars: number;
}

export type Mode = "major" | "minor";

export interface Key {
  /** Semitones above C. */
  tonic: number;
  mode: Mode;
  /** Spelling in prompts: "F# minor". */
  name: string;
}

/**
 * How a piece ends: its last chord rings and decays; the same after a last bar that slows down; or the music goes on and
 * fades out.
 */
export type Ending = "ring" | "slow" | "fade";

export interface Piece {
  seed: number;
  genre: string;
  bpm: number;
  metre: Metre;
  key: Key;
  sections: Section[];
  ending: Ending;
  /** Usual level of the sides below the middle of the mix, in decibels. */
  sideDecibels: number;
  /** Number of bars. After them the last chord rings. A piece that fades out ends within the last one. */
  bars: number;
  /** Whole seconds. */
  durationSeconds: number;
  parts: Part[];
}

export function secondsPerStep({ bpm, metre }: Pick<Piece, "bpm" | "metre">): number {
  return 60 / bpm / metres[metre].beatSteps;
}
