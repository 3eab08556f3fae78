/**
 * How many songs share a batch. On a GPU a song's last bits depend on the batch, because libtorch chooses its kernels by
 * size. On the CPU they do not.
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

/** Maximum number of songs that a device plans at once; Infinity: as many as memory allows. */
export function maxPlannedSongs({ batchMax, deterministic }: BatchLimits, isOnGpu: boolean): number {
  return deterministic && isOnGpu ? 1 : (batchMax ?? Number.POSITIVE_INFINITY);
}

/**
 * Maximum number of songs that a device renders at once. By default the CPU renders songs one by one, so that
 * the first is ready sooner.
 */
export function maxRenderedSongs(limits: BatchLimits, isOnGpu: boolean): number {
  return limits.batchMax === null && !isOnGpu ? 1 : maxPlannedSongs(limits, isOnGpu);
}
