/** Stems and their mix: each part at the level of its role, all scaled by one gain, so stems add up to the mix. */
import type { StemName } from "../compose/instruments.js";
import { type Piece, type Role, secondsPerStep } from "../compose/piece.js";
import { Random } from "../compose/random.js";
import { activeLevel, addTo, amplitude, peakOf, type Stereo, sampleRate, scale, silence } from "./stereo.js";
import type { Synthesiser } from "./synthesiser.js";

export interface RenderedPiece {
  mix: Stereo;
  stems: Map<StemName, Stereo>;
}

/** Relative levels of sounding parts in decibels. */
const levels: Record<Role, number> = { drums: -16, bass: -16, comp: -20, pulse: -24, pad: -25, lead: -17 };
const levelSpread = 2;

/** Maximum panning of a role from the centre. */
const panSpread: Record<Role, number> = { drums: 0, bass: 0, comp: 0.35, pulse: 0.5, pad: 0.1, lead: 0.15 };

const mixPeak = amplitude(-1.5);
const fadeSeconds = 0.25;

export async function renderPiece(piece: Piece, synthesiser: Synthesiser): Promise<RenderedPiece> {
  const random = new Random(piece.seed + 1_000_003);
  const samples = piece.durationSeconds * sampleRate;
  const mix = silence(samples);
  const stems = new Map<StemName, Stereo>();
  for (const part of piece.parts) {
    const { role, instrument } = part;
    const pan = random.between(-panSpread[role], panSpread[role]);
    const level = amplitude(levels[role] + random.between(-levelSpread, levelSpread));
    const audio = await synthesiser.play(part, secondsPerStep(piece), piece.durationSeconds, pan);
    fadeOut(audio);
    const own = activeLevel(audio);
    if (own === 0) continue;
    const stem = stems.get(instrument.stem) ?? silence(samples);
    stems.set(instrument.stem, stem);
    addTo(stem, audio, level / own);
  }
  for (const stem of stems.values()) addTo(mix, stem, 1);
  const gain = mixPeak / peakOf(mix);
  for (const audio of [mix, ...stems.values()]) scale(audio, gain);
  return { mix, stems };
}

function fadeOut({ left, right }: Stereo): void {
  const count = fadeSeconds * sampleRate;
  for (const channel of [left, right]) {
    for (let i = 0; i < count; i++) {
      const index = channel.length - 1 - i;
      channel[index] = ((channel[index] as number) * i) / count;
    }
  }
}
