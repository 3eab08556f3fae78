import { hasCode } from "./errors.js";

/**
 * How many songs share a batch. On a GPU a song's last bits depend on the batch, because libtorch chooses its kernels by
 * size. On the CPU they do not, up to MAX_PLANNED_ON_CPU songs.
 */
export interface BatchLimits {
  /** Maximum number of songs; null: as many as memory allows. */
  batchMax: number | null;
  /**
   * Whether a GPU plans and renders one request at a time. Other requests then cannot change the bytes of a
   * song. A request with several seeds is still one batch.
   */
  deterministic: boolean;
}

/** Larger batches of the language model take other kernels, so that a plan would depend on its batch. */
const MAX_PLANNED_ON_CPU = 8;

/** Maximum number of songs that a device plans at once; Infinity: as many as memory allows. */
export function maxPlannedSongs({ batchMax, deterministic }: BatchLimits, isOnGpu: boolean): number {
  if (!isOnGpu) return Math.min(batchMax ?? MAX_PLANNED_ON_CPU, MAX_PLANNED_ON_CPU);
  return deterministic ? 1 : (batchMax ?? Number.POSITIVE_INFINITY);
}

/**
 * Maximum number of songs that a device renders at once. By default the CPU renders songs one by one, so that
 * the first is ready sooner.
 */
export function maxRenderedSongs(limits: BatchLimits, isOnGpu: boolean): number {
  return limits.batchMax === null && !isOnGpu ? 1 : maxPlannedSongs(limits, isOnGpu);
}

/**
 * Runs songs in batches of at most `atOnce`, and yields their results in order. If memory runs out, halves the batches
 * from then on and runs the failed batch again.
 * @param takeBatch returns the first songs of a list that may share a batch; default: all
 * @param log receives the error and the new size of the batches
 */
export async function* runInBatches<Song, Result>(
  songs: readonly Song[],
  {
    atOnce,
    takeBatch = (some) => some,
    log,
  }: {
    atOnce: number;
    takeBatch?: (songs: readonly Song[]) => readonly Song[];
    log: (message: string) => void;
  },
  run: (batch: readonly Song[], begin: number) => Promise<readonly Result[]>,
): AsyncGenerator<Result> {
  let most = atOnce;
  for (let begin = 0; begin < songs.length; ) {
    const batch = takeBatch(songs.slice(begin, begin + most));
    try {
      yield* await run(batch, begin);
      begin += batch.length;
    } catch (error) {
      if (!hasCode(error, "OUT_OF_MEMORY") || batch.length === 1) throw error;
      most = Math.ceil(batch.length / 2);
      log(`${error.message}; running ${most} songs at a time`);
    }
  }
}
