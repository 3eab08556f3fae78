/** Seeded random generator with a state that can be saved, and stateless hashes. */

/** Small fast counter generator (sfc32, Chris Doty-Humphrey): 128 bits of state, period at least 2^32. */
export class Random {
  /** The whole state: four unsigned 32-bit words. */
  constructor(readonly state: Uint32Array) {
    if (state.length !== 4) throw new RangeError(`a random state must have 4 words, but has ${state.length}`);
  }

  static fromSeed(seed: number): Random {
    const random = new Random(Uint32Array.of(0x9e3779b9, 0x243f6a88, seed >>> 0, 1));
    for (let i = 0; i < 16; i++) random.nextUint32();
    return random;
  }

  nextUint32(): number {
    const s = this.state as unknown as [number, number, number, number];
    const sum = (s[0] + s[1] + s[3]) >>> 0;
    s[3]++;
    s[0] = s[1] ^ (s[1] >>> 9);
    s[1] = s[2] + (s[2] << 3);
    s[2] = ((s[2] << 21) | (s[2] >>> 11)) + sum;
    return sum;
  }

  /** An integer from 0 to `count - 1`. */
  below(count: number): number {
    return Math.floor((this.nextUint32() / 0x1_0000_0000) * count);
  }

  /** True with a probability of `percent` / 100. */
  percent(percent: number): boolean {
    return this.nextUint32() / 0x1_0000_0000 < percent / 100;
  }
}

/** Mixes two integers and a seed into an unsigned 32-bit hash (the finaliser of MurmurHash3). */
export function hash(seed: number, a: number, b: number): number {
  let h = (seed ^ Math.imul(a, 0x85ebca6b) ^ Math.imul(b, 0xc2b2ae35)) >>> 0;
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}

/** Picks a word by a hash of the three numbers. */
export function pick(words: readonly string[], seed: number, a: number, b: number): string {
  return words[hash(seed, a, b) % words.length] as string;
}
