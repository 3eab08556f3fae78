/** Renders the stems of a piece and their mix. The role of a part sets its level, place and width. The stems add up to the mix. */
import { centreDrums } from "../compose/drums.js";
import type { StemName } from "../compose/instruments.js";
import { type Part, type Piece, type Role, secondsPerStep } from "../compose/piece.js";
import { Random } from "../compose/random.js";
import { master } from "./master.js";
import { addReverb } from "./reverb.js";
import { activeLevel, addTo, type Stereo, sampleRate, silence, toAmplitude } from "./stereo.js";
import type { Synthesiser } from "./synthesiser.js";
import { addWidth } from "./width.js";

export interface RenderedPiece {
  mix: Stereo;
  stems: Map<StemName, Stereo>;
}

/** Level of each role in decibels, measured while the part sounds. */
const levels: Record<Role, number> = { drums: -16, bass: -16, comp: -20, pulse: -24, pad: -25, lead: -17 };
const levelSpread = 2;

/** Range of each role's distance from the centre; 1 is fully left or right. Comp and pulse are on opposite sides. */
const places: Record<Role, readonly [number, number]> = {
  drums: [0.3, 0.6], // hats, cymbals and toms; kick and snare are in the centre
  bass: [0, 0],
  comp: [0.3, 0.6],
  pulse: [0.4, 0.8],
  pad: [0, 0.1],
  lead: [0, 0.15],
};

/** Side of each role relative to its middle. */
const widths: Record<Role, number> = { drums: 0.25, bass: 0, comp: 0.5, pulse: 0.4, pad: 0.9, lead: 0.35 };

/** Drums have the reverb of a room, which their kits do not name. */
const drumReverb = 0.12;

const fadeOutSeconds = [5, 8] as const;
const sideSpreadDecibels = 1.5;

/** @param keepsStems if false, `stems` is empty and all parts share one reverb */
export async function renderPiece(
  piece: Piece,
  synthesiser: Synthesiser,
  keepsStems: boolean,
): Promise<RenderedPiece> {
  const random = new Random(piece.seed + 1_000_003);
  const buses = new Map<StemName | "mix", Bus>();
  const side = random.chance(0.5) ? 1 : -1;
  for (const part of piece.parts) {
    const { role, instrument } = part;
    const pan = (role === "pulse" ? -side : side) * random.between(...places[role]);
    const level = toAmplitude(levels[role] + random.between(-levelSpread, levelSpread));
    const audio = await playPart(part, piece, pan, synthesiser);
    const own = activeLevel(audio);
    if (own === 0) continue;
    const name = keepsStems ? instrument.stem : "mix";
    const bus = buses.get(name) ?? new Bus(piece.durationSeconds * sampleRate);
    buses.set(name, bus);
    const reverb = instrument.isDrumKit ? drumReverb : instrument.reverb / 127;
    bus.add(audio, level / own, { reverb, width: widths[role] });
  }
  const stems = new Map([...buses].map(([name, bus]) => [name, bus.finish()]));
  const mix = stems.get("mix") ?? silence(piece.durationSeconds * sampleRate);
  stems.delete("mix");
  for (const stem of stems.values()) addTo(mix, stem, 1);
  await master(mix, [...stems.values()], {
    ending: piece.ending,
    fadeSeconds: random.between(...fadeOutSeconds),
    sideDecibels: piece.sideDecibels + random.between(-sideSpreadDecibels, sideSpreadDecibels),
  });
  return { mix, stems: stems as RenderedPiece["stems"] };
}

/** Plays a part at its place. The drums of a kit have two places: the centre and `pan`. */
async function playPart(part: Part, piece: Piece, pan: number, synthesiser: Synthesiser): Promise<Stereo> {
  const play = (notes: Part["notes"], place: number) =>
    synthesiser.play({ ...part, notes }, secondsPerStep(piece), piece.durationSeconds, place);
  if (!part.instrument.isDrumKit) return play(part.notes, pan);
  const isCentre = ({ pitch }: { pitch: number }) => centreDrums.has(pitch);
  const { left, right } = await play(part.notes.filter(isCentre), 0);
  const kit = { left: left.slice(), right: right.slice() };
  addTo(
    kit,
    await play(
      part.notes.filter((note) => !isCentre(note)),
      pan,
    ),
    1,
  );
  return kit;
}

/** Parts that share one reverb and one widening, which are additive. */
class Bus {
  readonly #dry: Stereo;
  readonly #reverbSend: Float32Array;
  readonly #widthSend: Float32Array;

  constructor(samples: number) {
    this.#dry = silence(samples);
    this.#reverbSend = new Float32Array(samples);
    this.#widthSend = new Float32Array(samples);
  }

  /** @param reverb reverb send, 0 .. 1. @param width level of the side relative to the middle */
  add(audio: Stereo, gain: number, { reverb, width }: { reverb: number; width: number }): void {
    addTo(this.#dry, audio, gain);
    const [toReverb, toWidth] = [this.#reverbSend, this.#widthSend];
    for (let i = 0; i < toReverb.length; i++) {
      const both = gain * ((audio.left[i] as number) + (audio.right[i] as number));
      toReverb[i] = (toReverb[i] as number) + reverb * both;
      toWidth[i] = (toWidth[i] as number) + (width / 2) * both;
    }
  }

  finish(): Stereo {
    addWidth(this.#widthSend, this.#dry);
    addReverb(this.#reverbSend, this.#dry);
    return this.#dry;
  }
}
