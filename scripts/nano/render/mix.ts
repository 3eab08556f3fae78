/**
 * Renders the stems of a piece and their mix. The role of a part sets its level. One gain scales all stems
 * and the mix, so that the stems add up to the mix.
 */
import type { StemName } from "../compose/instruments.js";
import { type Piece, type Role, secondsPerStep } from "../compose/piece.js";
import { Random } from "../compose/random.js";
import { addReverb } from "./reverb.js";
import {
  activeLevel,
  addTo,
  applyGain,
  peakOf,
  type Stereo,
  sampleRate,
  silence,
  toAmplitude,
} from "./stereo.js";
import type { Synthesiser } from "./synthesiser.js";

export interface RenderedPiece {
  mix: Stereo;
  stems: Map<StemName, Stereo>;
}

/** Level of each role in decibels, measured while the part sounds. */
const levels: Record<Role, number> = { drums: -16, bass: -16, comp: -20, pulse: -24, pad: -25, lead: -17 };
const levelSpread = 2;

/** Maximum panning of each role from the centre; 1 is fully left or right. */
const panSpread: Record<Role, number> = { drums: 0, bass: 0, comp: 0.35, pulse: 0.5, pad: 0.1, lead: 0.15 };

const mixPeak = toAmplitude(-1.5);
const fadeSeconds = 0.25;

/** @param keepsStems if false, `stems` is empty and all parts share one reverb */
export async function renderPiece(
  piece: Piece,
  synthesiser: Synthesiser,
  keepsStems: boolean,
): Promise<RenderedPiece> {
  const random = new Random(piece.seed + 1_000_003);
  const buses = new Map<StemName | "mix", Bus>();
  for (const part of piece.parts) {
    const { role, instrument } = part;
    const pan = random.between(-panSpread[role], panSpread[role]);
    const level = toAmplitude(levels[role] + random.between(-levelSpread, levelSpread));
    const audio = await synthesiser.play(part, secondsPerStep(piece), piece.durationSeconds, pan);
    const own = activeLevel(audio);
    if (own === 0) continue;
    const name = keepsStems ? instrument.stem : "mix";
    const bus = buses.get(name) ?? new Bus(piece.durationSeconds * sampleRate);
    buses.set(name, bus);
    bus.add(audio, level / own, instrument.reverb / 127);
  }
  const stems = new Map([...buses].map(([name, bus]) => [name, bus.finish()]));
  const mix = stems.get("mix") ?? silence(piece.durationSeconds * sampleRate);
  stems.delete("mix");
  for (const stem of stems.values()) addTo(mix, stem, 1);
  const gain = mixPeak / peakOf(mix);
  for (const audio of [mix, ...stems.values()]) applyGain(audio, gain);
  return { mix, stems: stems as RenderedPiece["stems"] };
}

/** Parts that share one reverb. */
class Bus {
  readonly #dry: Stereo;
  readonly #send: Float32Array;

  constructor(samples: number) {
    this.#dry = silence(samples);
    this.#send = new Float32Array(samples);
  }

  /** @param reverb reverb send, 0 .. 1 */
  add(audio: Stereo, gain: number, reverb: number): void {
    addTo(this.#dry, audio, gain);
    if (reverb === 0) return;
    const send = this.#send;
    for (let i = 0; i < send.length; i++) {
      const both = (audio.left[i] as number) + (audio.right[i] as number);
      send[i] = (send[i] as number) + gain * reverb * both;
    }
  }

  finish(): Stereo {
    addReverb(this.#send, this.#dry);
    fadeOut(this.#dry);
    return this.#dry;
  }
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
