import { HttpError } from "../errors.js";

export interface Caller {
  address: string;
  /** Signal that is aborted when the client disconnects. */
  signal: AbortSignal;
  /** Request id, as in log lines. */
  requestId?: string | undefined;
}

export interface ConcurrencyOptions {
  /** Maximum number of concurrent calls. */
  places: number;
  placesPerAddress: number;
  /** Maximum number of waiting calls per address. */
  waitingPerAddress: number;
  /** `Retry-After` header of rejected calls. */
  retryAfterSeconds: number;
}

/**
 * Limits concurrent calls. Waiting calls are served round-robin by address and in order within an address, so a client
 * with many calls only delays itself. Behind a proxy all clients have one address.
 */
export class ConcurrencyLimit {
  /** Waiting calls per address, in the order in which addresses are served. */
  readonly #waiting = new Map<string, (() => void)[]>();
  readonly #running = new Map<string, number>();
  #free: number;

  constructor(private readonly options: ConcurrencyOptions) {
    this.#free = options.places;
  }

  /** @throws HttpError 429 if too many calls of the address wait */
  async run<T>({ address, signal }: Caller, work: () => Promise<T>): Promise<T> {
    signal.throwIfAborted();
    if (this.#hasPlaceFor(address)) this.#acquire(address);
    else await this.#waitForPlace(address, signal);
    try {
      return await work();
    } finally {
      this.#release(address);
    }
  }

  #hasPlaceFor(address: string): boolean {
    return this.#free > 0 && (this.#running.get(address) ?? 0) < this.options.placesPerAddress;
  }

  #acquire(address: string): void {
    this.#free--;
    this.#running.set(address, (this.#running.get(address) ?? 0) + 1);
  }

  #release(address: string): void {
    this.#free++;
    const left = (this.#running.get(address) as number) - 1;
    if (left > 0) this.#running.set(address, left);
    else this.#running.delete(address);
    this.#startNext();
  }

  #waitForPlace(address: string, signal: AbortSignal): Promise<void> {
    const queue = this.#waiting.get(address) ?? [];
    const { waitingPerAddress, retryAfterSeconds } = this.options;
    if (queue.length >= waitingPerAddress) {
      const headers = { "Retry-After": String(retryAfterSeconds) };
      throw new HttpError(
        429,
        `Server busy: ${queue.length} requests of this client are already waiting`,
        headers,
      );
    }
    return new Promise((resolve, reject) => {
      const start = () => {
        signal.removeEventListener("abort", leave);
        resolve();
      };
      const leave = () => {
        queue.splice(queue.indexOf(start), 1);
        if (queue.length === 0) this.#waiting.delete(address);
        reject(signal.reason);
      };
      signal.addEventListener("abort", leave, { once: true });
      queue.push(start);
      this.#waiting.set(address, queue);
    });
  }

  #startNext(): void {
    for (const [address, queue] of this.#waiting) {
      if (!this.#hasPlaceFor(address)) continue;
      const start = queue.shift() as () => void;
      // Round-robin: this address goes to the back.
      this.#waiting.delete(address);
      if (queue.length > 0) this.#waiting.set(address, queue);
      this.#acquire(address);
      start();
      return;
    }
  }
}
