/** Keeps a model in memory while calls use it. */
export class Leases<Model extends object> {
  readonly #calls = new Map<Model, Set<Promise<unknown>>>();

  /** Runs `work`, and holds the model until it ends. The lease begins before this method returns. */
  async hold<T>(model: Model, work: () => Promise<T>): Promise<T> {
    const calls = this.#calls.get(model) ?? new Set();
    this.#calls.set(model, calls);
    const call = work();
    calls.add(call);
    try {
      return await call;
    } finally {
      calls.delete(call);
      if (calls.size === 0) this.#calls.delete(model);
    }
  }

  isHeld(model: Model): boolean {
    return this.#calls.has(model);
  }

  /** Waits for the calls that hold the model now. */
  async released(model: Model): Promise<void> {
    await Promise.allSettled(this.#calls.get(model) ?? []);
  }
}
