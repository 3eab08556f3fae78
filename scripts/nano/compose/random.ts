/** Seeded randomness: the same seed composes the same piece on every machine. */
export class Random {
  readonly #state: Uint32Array;

  /** The generator is sfc32 ("small fast counter", Chris Doty-Humphrey). */
  constructor(seed: number) {
    this.#state = Uint32Array.of(0x9e3779b9, Math.floor(seed / 2 ** 32), seed, 1);
    for (let round = 0; round < 16; round++) this.unit();
  }

  /** Draws a number from 0 (inclusive) to 1 (exclusive). */
  unit(): number {
    const s = this.#state as unknown as [number, number, number, number];
    const sum = (s[0] + s[1] + s[3]) >>> 0;
    s[3]++;
    s[0] = s[1] ^ (s[1] >>> 9);
    s[1] = s[2] + (s[2] << 3);
    s[2] = ((s[2] << 21) | (s[2] >>> 11)) + sum;
    return sum / 2 ** 32;
  }

  chance(probability: number): boolean {
    return this.unit() < probability;
  }

  between(min: number, max: number): number {
    return min + (max - min) * this.unit();
  }

  /** Both ends included. */
  integer(min: number, max: number): number {
    return min + Math.floor(this.unit() * (max - min + 1));
  }

  pick<T>(choices: readonly T[]): T {
    const choice = choices[Math.floor(this.unit() * choices.length)];
    if (choice === undefined) throw new RangeError("nothing to pick from");
    return choice;
  }

  weighted<T extends { weight: number }>(choices: readonly T[]): T {
    let left = this.unit() * choices.reduce((sum, { weight }) => sum + weight, 0);
    for (const choice of choices) {
      left -= choice.weight;
      if (left < 0) return choice;
    }
    return this.pick(choices);
  }

  shuffled<T>(items: readonly T[]): T[] {
    const result = [...items];
    for (let last = result.length - 1; last > 0; last--) {
      const other = this.integer(0, last);
      [result[last], result[other]] = [result[other] as T, result[last] as T];
    }
    return result;
  }
}
