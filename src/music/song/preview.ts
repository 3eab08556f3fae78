/** Streams the first song of a running task while it is decoded. */
import { EventEmitter, once } from "node:events";
import type { DecodedAudio } from "../../engine/addon.js";
import { SAMPLE_RATE } from "../../engine/types.js";
import { peakOf } from "../audio/decode.js";
import { int16Of, wavHeader } from "../audio/encode.js";

/** Maximum length of a preview, which takes 88 MiB of memory. */
const MAX_SECONDS = 240;
/** Maximum number of previews that play on after their tasks have ended. For one more, the oldest is cut off. */
const MAX_ENDED = 2;
const CHANNELS = 2;
/** Number of samples encoded at a time, few enough not to block the event loop. */
const PIECE_SAMPLES = 16_384;
/** Peak of finished songs: -1 dB of full scale. */
const PEAK_AMPLITUDE = 10 ** (-1 / 20);

interface Part {
  /** Samples of the part, interleaved stereo. */
  audio: Float32Array;
  gain: number;
}

/**
 * Audio of a preview. The final level is set by the song's peak, which is not known yet. A preview plays at the
 * decoder's level; the gain drops when the peak would exceed -1 dB and does not rise again. The preview of a repaint is
 * the decoder's output, before kept parts of the source are restored. Audio is encoded while it is read, so a slow
 * listener does not delay the song.
 */
export class Preview {
  readonly #parts: Part[] = [];
  readonly #changes = new EventEmitter().setMaxListeners(0);
  #samples = 0;
  #gain = 1;
  #isComplete = false;
  #hasTaskEnded = false;
  #listeners = 0;

  get seconds(): number {
    return this.#samples / SAMPLE_RATE;
  }

  get bytes(): number {
    return this.#parts.reduce((sum, { audio }) => sum + audio.byteLength, 0);
  }

  get hasListeners(): boolean {
    return this.#listeners > 0;
  }

  /** Adds decoded audio. Parts already added are ignored, because decoding starts again after running out of memory. */
  add({ begin, audio }: Pick<DecodedAudio, "begin" | "audio">): void {
    const room = MAX_SECONDS * SAMPLE_RATE - this.#samples;
    if (begin !== this.#samples || room <= 0) return;
    const kept = audio.subarray(0, room * CHANNELS);
    this.#gain = Math.min(this.#gain, PEAK_AMPLITUDE / peakOf(kept));
    this.#parts.push({ audio: kept, gain: this.#gain });
    this.#samples += kept.length / CHANNELS;
    this.#changes.emit("change");
  }

  /** Marks the audio as complete, once decoding is finished. */
  complete(): void {
    this.#isComplete = true;
    this.#changes.emit("change");
  }

  /** Called when the task ends; frees the audio unless it is being played. */
  end(): void {
    this.#hasTaskEnded = true;
    if (!this.hasListeners) this.drop();
    this.complete();
  }

  /** Frees the audio and cuts playback off. */
  drop(): void {
    this.#parts.length = 0;
  }

  addListener(signal: AbortSignal): void {
    this.#listeners++;
    signal.addEventListener("abort", () => {
      this.#listeners--;
      if (this.#hasTaskEnded && !this.hasListeners) this.drop();
    });
  }

  /** Waits for the first audio; false if the song ends without any. @throws if the signal fires first */
  async hasAudio(signal: AbortSignal): Promise<boolean> {
    if (this.#parts.length === 0 && !this.#isComplete) await once(this.#changes, "change", { signal });
    return this.#parts.length > 0;
  }

  /** Streams a 16-bit wav file of unknown length. */
  async *wav(signal: AbortSignal): AsyncGenerator<Uint8Array> {
    yield wavHeader("int16", SAMPLE_RATE, Number.POSITIVE_INFINITY);
    let gain = this.#parts[0]?.gain ?? 1;
    for (let index = 0; ; index++) {
      while (index >= this.#parts.length && !this.#isComplete)
        await once(this.#changes, "change", { signal });
      if (index >= this.#parts.length) return;
      for (let begin = 0; begin < this.#samplesOf(index); begin += PIECE_SAMPLES) {
        yield this.#encoded(index, begin, gain);
        gain = this.#parts[index]?.gain ?? gain;
      }
    }
  }

  /** Encodes a piece of a part. A separate function, so that the suspended generator holds no reference to the part. */
  #encoded(index: number, begin: number, fromGain: number): Uint8Array {
    const { audio, gain } = this.#parts[index] as Part;
    return int16Of(audio.subarray(begin, begin + PIECE_SAMPLES), fromGain, gain);
  }

  /** Number of samples in a part; 0 if the part was dropped. */
  #samplesOf(index: number): number {
    return this.#parts[index]?.audio.length ?? 0;
  }
}

/** Previews of running tasks, and of queued tasks with listeners. */
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

  get bytes(): number {
    return [...this.#previews.values(), ...this.#ended].reduce((sum, { bytes }) => sum + bytes, 0);
  }

  end(taskId: string): void {
    const preview = this.#previews.get(taskId);
    if (preview === undefined) return;
    this.#previews.delete(taskId);
    preview.end();
    if (!preview.hasListeners) return;
    this.#ended.push(preview);
    if (this.#ended.length > MAX_ENDED) this.#ended.shift()?.drop();
  }
}
