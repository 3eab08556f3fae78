/** Page state outside of components, so that a change renders only the parts that show it. */
import { useEffect, useState } from "preact/hooks";

export class Store<T> {
  readonly #listeners = new Set<(value: T) => void>();

  constructor(public value: T) {}

  set(value: T): void {
    if (value === this.value) return;
    this.value = value;
    for (const listener of this.#listeners) listener(value);
  }

  /** @returns a function that unsubscribes */
  subscribe(listener: (value: T) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }
}

/** Hook for the value of a store. */
export function useStore<T>(store: Store<T>): T {
  const [value, setValue] = useState(() => store.value);
  useEffect(() => {
    // The value may have changed between the render and this effect.
    setValue(() => store.value);
    return store.subscribe((next) => setValue(() => next));
  }, [store]);
  return value;
}
