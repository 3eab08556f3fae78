import { HttpError } from "./errors.js";

/** Who asks for work, and for how long the answer is of use. */
export interface Caller {
  /** Network address. */
  address: string;
  /** Fires when the caller has gone. */
  signal: AbortSignal;
  /** Id of the request, as the log names it. */
  requestId?: string | undefined;
  /** Whose tasks take turns with those of others: see `Turns` of the queue's rules. */
  share?: string;
}

export interface ConcurrencyOptions {
  /** Calls that run at a time. */
  places: number;
  /** Calls of one address among them. */
  placesPerAddress: number;
  /** Calls of one address that may wait. */
  waitingPerAddress: number;
  /** What a caller is told to wait where there are more. */
  retryAfterSeconds: number;
}

/**
 * Lets only so many calls run at a time. The others wait: addresses take turns, each with its calls in the order they
 * came, so that whoever sends many waits for them and nobody else does.
 */
export class ConcurrencyLimit {
  /** Waiting calls per address; the address whose turn is next comes first. */
  readonly #waiting = new Map<string, (() => void)[]>();
  readonly #running = new Map<string, number>();
  #free: number;

  constructor(private readonly options: ConcurrencyOptions) {
    this.#free = options.places;
  }

  /**
   * What `work` resolves with.
   * @throws HttpError 429 where too many calls of the address wait already; the reason of the caller's signal, which
   * ends the waiting; what `work` throws
   */
  async run<T>({ address, signal }: Caller, work: () => Promise<T>): Promise<T> {
    signal.throwIfAborted();
    if (this.#hasPlaceFor(address)) this.#take(address);
    else await this.#turn(address, signal);
    try {
      return await work();
    } finally {
      this.#give(address);
    }
  }

  #hasPlaceFor(address: string): boolean {
    return this.#free > 0 && (this.#running.get(address) ?? 0) < this.options.placesPerAddress;
  }

  #take(address: string): void {
    this.#free--;
    this.#running.set(address, (this.#running.get(address) ?? 0) + 1);
  }

  #give(address: string): void {
    this.#free++;
    const left = (this.#running.get(address) as number) - 1;
    if (left > 0) this.#running.set(address, left);
    else this.#running.delete(address);
    this.#startNext();
  }

  /** Resolves once the call has been given a place. */
  #turn(address: string, signal: AbortSignal): Promise<void> {
    const queue = this.#waiting.get(address) ?? [];
    const { waitingPerAddress, retryAfterSeconds } = this.options;
    if (queue.length >= waitingPerAddress) {
      const headers = { "Retry-After": String(retryAfterSeconds) };
      throw new HttpError(429, `Server busy: ${queue.length} requests of this client wait already`, headers);
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
      // Its next call comes after those of all others.
      this.#waiting.delete(address);
      if (queue.length > 0) this.#waiting.set(address, queue);
      this.#take(address);
      start();
      return;
    }
  }
}
