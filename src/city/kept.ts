/** What is kept for as long as it holds: rows of answers, and what follows from a state that has a revision. */
import { type Json, JsonText, writeJson } from "./wire/answers.js";

const ROWS_PER_PIECE = 100;

/** The rows of a long list, whose texts are kept for as long as what they tell is the same. */
export class KeptRows<T extends object> {
  readonly #kept = new WeakMap<T, { readonly facts: readonly unknown[]; readonly text: string }>();
  readonly #rowOf: (thing: T) => Json;
  readonly #factsOf: (thing: T) => readonly unknown[];

  /** @param factsOf all that a row tells and that may change, each a plain value or an object that never changes */
  constructor(rowOf: (thing: T) => Json, factsOf: (thing: T) => readonly unknown[]) {
    this.#rowOf = rowOf;
    this.#factsOf = factsOf;
  }

  write(things: readonly T[]): JsonText {
    const pieces: string[] = [];
    for (let at = 0; at < things.length; at += ROWS_PER_PIECE) {
      const texts = things.slice(at, at + ROWS_PER_PIECE).map((thing) => this.#textOf(thing));
      pieces.push((at === 0 ? "" : ",") + texts.join(","));
    }
    return new JsonText(["[", ...pieces, "]"]);
  }

  #textOf(thing: T): string {
    const facts = this.#factsOf(thing);
    const known = this.#kept.get(thing);
    if (known?.facts.every((fact, i) => fact === facts[i])) return known.text;
    const text = writeJson(this.#rowOf(thing));
    this.#kept.set(thing, { facts, text });
    return text;
  }
}

/** What depends on nothing but what a revision counts the changes of, made once for each. */
export function keptPer<Counter extends string, Owner extends Readonly<Record<Counter, number>>, T>(
  counter: Counter,
  make: (owner: Owner) => T,
): (owner: Owner) => T {
  const kept = new WeakMap<Owner, { revision: number; made: T }>();
  return (owner) => {
    const revision = owner[counter];
    const known = kept.get(owner);
    if (known?.revision === revision) return known.made;
    const made = make(owner);
    kept.set(owner, { revision, made });
    return made;
  };
}
