/**
 * Composes melodies from motifs. A motif is a rhythm and a contour of one bar. A phrase has four bars: it
 * states the motif, answers it, varies it and closes. Strong beats take notes of the chord, other beats notes
 * of the scale. Sections with the same name share a theme, so every chorus has the same melody.
 */
import type { ChordSpan } from "./harmony.js";
import type { Note } from "./piece.js";
import type { Random } from "./random.js";
import { moveAlong, nearestPitch } from "./theory.js";

interface MotifNote {
  step: number;
  steps: number;
  /** Distance from the central note of the phrase, in degrees of the scale. */
  contour: number;
}

export interface MelodyStyle {
  /** Approximate notes per beat. */
  density: number;
  /** 0 .. 1: how often notes start off the beat. */
  syncopation: number;
  /** The widest step within a motif, in scale degrees. */
  leap: number;
}

/** Notes of one bar. */
export type Motif = MotifNote[];

export function composeMotif(style: MelodyStyle, barSteps: number, beatSteps: number, random: Random): Motif {
  const onsets = new Set<number>();
  const wanted = Math.max(2, Math.round((barSteps / 4) * style.density * random.between(0.8, 1.2)));
  if (random.chance(0.8)) onsets.add(0);
  for (let attempt = 0; onsets.size < wanted && attempt < 60; attempt++) {
    const step = random.integer(0, barSteps - 1);
    const onBeat = step % beatSteps === 0;
    const onHalf = step % 2 === 0;
    const likely = onBeat
      ? 1 - 0.5 * style.syncopation
      : onHalf
        ? 0.5 + 0.4 * style.syncopation
        : 0.35 * style.syncopation;
    if (random.chance(likely)) onsets.add(step);
  }
  const steps = [...onsets].sort((a, b) => a - b);
  let contour = random.integer(-1, 2);
  let move = 0;
  return steps.map((step, index) => {
    // A leap is followed by a step back.
    const isAfterLeap = Math.abs(move) > 2;
    if (index > 0) {
      move = isAfterLeap
        ? -Math.sign(move)
        : random.pick([-2, -1, -1, -1, 1, 1, 1, 2, random.integer(-style.leap, style.leap)]);
      contour = Math.max(-5, Math.min(6, contour + move));
    }
    const until = steps[index + 1] ?? barSteps;
    return { step, steps: until - step, contour };
  });
}

/** Writes an answer to a motif: the same rhythm, with a shifted or inverted contour. */
export function varyMotif(motif: Motif, random: Random): Motif {
  const shift = random.pick([-2, -1, 1, 2]);
  const kind = random.pick(["sequence", "tail", "invert"]);
  const firstShifted = kind === "sequence" ? 0 : Math.ceil(motif.length / 2);
  return motif.map((note, index) => {
    if (kind === "invert") return { ...note, contour: -note.contour };
    return index < firstShifted ? note : { ...note, contour: note.contour + shift };
  });
}

/**
 * What each bar of a phrase plays: the motif, its answer, another motif or a rest. "close" is a shortened motif
 * that ends on a long note of the chord.
 */
const phraseForms = [
  ["motif", "answer", "motif", "close"],
  ["motif", "motif", "answer", "close"],
  ["motif", "answer", "other", "close"],
  ["motif", "rest", "answer", "close"],
] as const;

/**
 * Offset of each bar in a phrase from the central note, in degrees of the scale. The phrase rises until the
 * third bar and returns.
 */
const phraseArc = [0, 1, 2, 0] as const;

/** Melodic material that all sections with the same name share. */
export interface Theme {
  form: (typeof phraseForms)[number];
  motif: Motif;
  answer: Motif;
  other: Motif;
}

export function composeTheme(motif: Motif, other: Motif, random: Random): Theme {
  return { form: random.pick(phraseForms), motif, answer: varyMotif(motif, random), other };
}

export interface MelodyContext {
  barSteps: number;
  beatSteps: number;
  /** Central MIDI note of the section's melody. */
  centre: number;
  range: { lowest: number; highest: number };
  spanAt: (step: number) => ChordSpan;
}

export function sectionMelody(
  theme: Theme,
  section: { firstBar: number; bars: number },
  frame: MelodyContext,
  energy: number,
): Note[] {
  const notes: Note[] = [];
  for (let bar = 0; bar < section.bars; bar++) {
    const isLast = bar === section.bars - 1;
    const place = isLast ? "close" : (theme.form[bar % 4] ?? "motif");
    if (place === "rest") continue;
    const motif = place === "answer" ? theme.answer : place === "other" ? theme.other : theme.motif;
    const firstStep = (section.firstBar + bar) * frame.barSteps;
    const rise = isLast ? 0 : (phraseArc[bar % 4] ?? 0);
    const rendered = renderMotif(motif, rise, firstStep, frame, notes.at(-1)?.pitch, energy);
    notes.push(...(place === "close" ? closeWithLongNote(rendered, firstStep, frame) : rendered));
  }
  return notes;
}

function renderMotif(
  motif: Motif,
  rise: number,
  firstStep: number,
  frame: MelodyContext,
  before: number | undefined,
  energy: number,
): Note[] {
  const { lowest, highest } = frame.range;
  let previous = before ?? frame.centre;
  return motif.map(({ step, steps, contour }) => {
    const start = firstStep + step;
    const { chord } = frame.spanAt(start);
    const anchor = nearestPitch(frame.centre, chord.pitchClasses, lowest, highest);
    const target = moveAlong(anchor, chord.scale, contour + rise);
    const isStrong = step % frame.beatSteps === 0;
    const allowed = isStrong || steps >= 6 ? chord.pitchClasses : chord.scale;
    // Pulls the target towards the previous note, so that the melody moves in small steps, even across bar
    // lines.
    const pitch = nearestPitch(0.65 * target + 0.35 * previous, allowed, lowest, highest);
    previous = pitch;
    const accent = isStrong ? 10 : 0;
    return { start, length: steps * 0.92, pitch, velocity: (78 + accent) * (0.7 + 0.3 * energy) };
  });
}

/** Keeps the first half of the bar and lets its last note ring. */
function closeWithLongNote(notes: Note[], firstStep: number, frame: MelodyContext): Note[] {
  const middle = firstStep + frame.barSteps / 2;
  const kept = notes.filter(({ start }, index) => index === 0 || start <= middle);
  const last = kept.at(-1);
  if (last !== undefined) {
    const { chord } = frame.spanAt(last.start);
    last.pitch = nearestPitch(last.pitch, chord.pitchClasses, frame.range.lowest, frame.range.highest);
    last.length = firstStep + frame.barSteps - last.start - 1;
  }
  return kept;
}
