/** What follows from a state that has a revision, kept for as long as it holds: of a city, or of its simulation. */

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
