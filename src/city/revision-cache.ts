/** Caches a value derived from an object until the object's revision number changes. */
export function cachedByRevision<Counter extends string, Owner extends Readonly<Record<Counter, number>>, T>(
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
