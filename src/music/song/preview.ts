/** Streams the first song of a running task while it is decoded. */
import { EventEmitter, once } from "node:events";
import type { DecodedAudio } from "../../engine/addon.js";
import { SAMPLE_RATE } from "../../engine/types.js";
import { peakOf } from "../audio/decode.js";
import { int16Of, wavHeader } from "../audio/encode.js";

/** Maximum length of a preview. This much audio takes 88 MiB of memory. */
const MAX_SECONDS = 240;
/**
 * Maximum number of previews that still have listeners after their tasks have ended. Beyond it, the oldest is cut
 * off.
 */
const MAX_ENDED = 2;
const CHANNELS = 2;
/** Number of samples encoded at a time. It is small, so that encoding does not block the event loop. */
const PIECE_SAMPLES = 16_384;
/** Peak amplitude of finished songs: -1 dBFS. */
const PEAK_AMPLITUDE = 10 ** (-1 / 20);

/** Number of pieces that all listeners together get in one turn of the event loop. */
const PIECES_PER_TURN = 16;

interface Part {
  /** Interleaved stereo samples; null once all pieces are encoded. */
  audio: Float32Array | null;
  samples: number;
  startGain: number;
  gain: number;
  /** Pieces encoded so far. All listeners share them. */
  pieces: Uint8Array[];
}

/** Lets a limited number of waiters go on in each turn of the event loop, in their order. */
class Turns {
  readonly #waiting: (() => void)[] = [];

  constructor(private readonly placesPerTurn: number) {}

  next(): Promise<void> {
    return new Promise((resolve) => {
      if (this.#waiting.push(resolve) === 1) setImmediate(this.#admit);
    });
  }

  readonly #admit = (): void => {
    for (const proceed of this.#waiting.splice(0, this.placesPerTurn)) proceed();
    if (this.#waiting.length > 0) setImmediate(this.#admit);
  };
}

/** Turns of the listeners of all previews. */
const turns = new Turns(PIECES_PER_TURN);

/**
 * Audio of a preview. The peak of the whole song is not known yet, so the level differs from the finished song.
 * The gain starts at 1, drops when the peak would exceed -1 dBFS, and never rises again. The preview of a repaint
 * lacks the kept parts of the source. Audio is encoded when the first listener reads it, so that listeners do not delay
 * the song, and then shared by all listeners.
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
    return this.#parts.reduce((sum, { audio, samples }) => sum + (audio?.byteLength ?? 2 * samples), 0);
  }

  get hasListeners(): boolean {
    return this.#listeners > 0;
  }

  /**
   * Adds decoded audio. Ignores audio that was added before, because decoding starts again when memory runs out.
   */
  add({ begin, audio }: Pick<DecodedAudio, "begin" | "audio">): void {
    const room = MAX_SECONDS * SAMPLE_RATE - this.#samples;
    if (begin !== this.#samples || room <= 0) return;
    const kept = audio.subarray(0, room * CHANNELS);
    const previous = this.#parts.length === 0 ? null : this.#gain;
    this.#gain = Math.min(this.#gain, PEAK_AMPLITUDE / peakOf(kept));
    const gains = { startGain: previous ?? this.#gain, gain: this.#gain };
    this.#parts.push({ audio: kept, samples: kept.length, ...gains, pieces: [] });
    this.#samples += kept.length / CHANNELS;
    this.#changes.emit("change");
  }

  /** Marks the audio as complete. */
  complete(): void {
    this.#isComplete = true;
    this.#changes.emit("change");
  }

  /** Must be called when the task ends. Frees the audio unless a listener is reading it. */
  end(): void {
    this.#hasTaskEnded = true;
    if (!this.hasListeners) this.drop();
    this.complete();
  }

  /** Frees the audio, and cuts off all listeners. */
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

  /** Waits for the first audio. Returns false if the song ends without any. @throws if the signal fires first */
  async hasAudio(signal: AbortSignal): Promise<boolean> {
    if (this.#parts.length === 0 && !this.#isComplete) await once(this.#changes, "change", { signal });
    return this.#parts.length > 0;
  }

  /** Streams a 16-bit wav file of unknown length. */
  async *wav(signal: AbortSignal): AsyncGenerator<Uint8Array> {
    yield wavHeader("int16", SAMPLE_RATE, Number.POSITIVE_INFINITY);
    for (let index = 0; ; index++) {
      while (index >= this.#parts.length && !this.#isComplete)
        await once(this.#changes, "change", { signal });
      if (index >= this.#parts.length) return;
      for (let piece = 0; ; piece++) {
        await turns.next();
        const encoded = this.#encoded(index, piece);
        if (encoded === undefined) break;
        yield encoded;
      }
    }
  }

  /**
   * Returns a piece of a part; undefined after the last piece, or if the part was dropped. Listeners read the pieces in
   * order. They must not hold the part itself: a suspended generator would keep it in memory.
   */
  #encoded(index: number, piece: number): Uint8Array | undefined {
    const part = this.#parts[index];
    if (part?.audio && piece === part.pieces.length) {
      const begin = piece * PIECE_SAMPLES;
      const startGain = piece === 0 ? part.startGain : part.gain;
      part.pieces.push(int16Of(part.audio.subarray(begin, begin + PIECE_SAMPLES), startGain, part.gain));
      if (begin + PIECE_SAMPLES >= part.samples) part.audio = null;
    }
    return part?.pieces[piece];
  }
}

/** Previews by task id, for running tasks and for queued tasks with listeners. */
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
