/** The first song of a running task as it is decoded, to be heard while the rest of it is made. */
import { EventEmitter, once } from "node:events";
import type { DecodedAudio } from "../../engine/addon.js";
import { SAMPLE_RATE } from "../../engine/types.js";
import { peakOf } from "../audio/decode.js";
import { int16Of, wavHeader } from "../audio/encode.js";

/** What is kept of a song to be heard: 88 MiB. Its rest is heard once the song is finished. */
const MAX_SECONDS = 240;
/** Ended tasks whose previews are still read to their end; of more the oldest ones break off. */
const MAX_ENDED = 2;
const CHANNELS = 2;
/** Encoded at a time: so much does not hold up the event loop. */
const PIECE_SAMPLES = 16_384;
/** -1 dB of full scale, the peak of finished songs. */
const PEAK_AMPLITUDE = 10 ** (-1 / 20);

interface Part {
  /** Interleaved stereo. */
  audio: Float32Array;
  gain: number;
}

/**
 * The level of a finished song is known once all of it is. A preview has the level that the decoder gives it, from where
 * it would exceed the finished song's peak lowered so far that it does not; it never rises again.
 */
export class Preview {
  readonly #parts: Part[] = [];
  readonly #changes = new EventEmitter().setMaxListeners(0);
  #samples = 0;
  #gain = 1;
  #isComplete = false;
  #hasTaskEnded = false;
  #listeners = 0;

  /** What can be heard by now. */
  get seconds(): number {
    return this.#samples / SAMPLE_RATE;
  }

  get isHeard(): boolean {
    return this.#listeners > 0;
  }

  /** A song that is decoded once more, as memory ran out the first time, is the same song. */
  add({ begin, audio }: Pick<DecodedAudio, "begin" | "audio">): void {
    const room = MAX_SECONDS * SAMPLE_RATE - this.#samples;
    if (begin !== this.#samples || room <= 0) return;
    const kept = audio.subarray(0, room * CHANNELS);
    this.#gain = Math.min(this.#gain, PEAK_AMPLITUDE / peakOf(kept));
    this.#parts.push({ audio: kept, gain: this.#gain });
    this.#samples += kept.length / CHANNELS;
    this.#changes.emit("change");
  }

  /** The song is decoded: no more follows. */
  complete(): void {
    this.#isComplete = true;
    this.#changes.emit("change");
  }

  /** The task has ended: nothing stays but what is being heard. */
  end(): void {
    this.#hasTaskEnded = true;
    if (!this.isHeard) this.drop();
    this.complete();
  }

  /** Breaks off. */
  drop(): void {
    this.#parts.length = 0;
  }

  /** Counts a listener until the signal fires. */
  hold(signal: AbortSignal): void {
    this.#listeners++;
    signal.addEventListener("abort", () => {
      this.#listeners--;
      if (this.#hasTaskEnded && !this.isHeard) this.drop();
    });
  }

  /** Resolves to whether there is anything to hear, once that is known. @throws where the signal fires before */
  async begun(signal: AbortSignal): Promise<boolean> {
    if (this.#parts.length === 0 && !this.#isComplete) await once(this.#changes, "change", { signal });
    return this.#parts.length > 0;
  }

  /** A wav file of 16 bits and unknown length: what there is, and what follows as it comes. */
  async *wav(signal: AbortSignal): AsyncGenerator<Uint8Array> {
    yield wavHeader("int16", SAMPLE_RATE, Number.POSITIVE_INFINITY);
    let gain = this.#parts[0]?.gain ?? 1;
    for (let index = 0; ; index++) {
      while (index >= this.#parts.length && !this.#isComplete)
        await once(this.#changes, "change", { signal });
      const part = this.#parts[index];
      if (part === undefined) return;
      for (let begin = 0; begin < part.audio.length; begin += PIECE_SAMPLES) {
        yield int16Of(part.audio.subarray(begin, begin + PIECE_SAMPLES), gain, part.gain);
        gain = part.gain;
      }
    }
  }
}

/** The previews of tasks that wait, where someone waits for their sound, and of those that run. */
export class Previews {
  readonly #previews = new Map<string, Preview>();
  readonly #ended: Preview[] = [];

  of(taskId: string): Preview {
    const known = this.#previews.get(taskId);
    if (known !== undefined) return known;
    const preview = new Preview();
    this.#previews.set(taskId, preview);
    return preview;
  }

  end(taskId: string): void {
    const preview = this.#previews.get(taskId);
    if (preview === undefined) return;
    this.#previews.delete(taskId);
    preview.end();
    if (!preview.isHeard) return;
    this.#ended.push(preview);
    if (this.#ended.length > MAX_ENDED) this.#ended.shift()?.drop();
  }
}
